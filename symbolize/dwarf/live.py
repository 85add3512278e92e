"""The one test that tells live code from what linkers leave of dead code (rule R54)."""

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import views
from symbolize.dwarf.sweep import clip

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]


def clip_to_code(begin: UInt64, end: UInt64, code: tuple[UInt64, UInt64]) -> tuple[Int64, UInt64, UInt64]:
    """Keep the ranges that begin where code can be and cut them at its end (rule R54).

    Returns the indices of the ranges that are kept, with their begins and ends.
    """
    kept, begins, ends = np.empty(len(begin), np.int64), np.empty_like(begin), np.empty_like(end)
    count = clip(*views(begin, end, *code, kept, begins, ends))
    return kept[:count], begins[:count], ends[:count]


def united(begin: UInt64, end: UInt64) -> tuple[UInt64, UInt64]:
    """Ranges that touch or overlap joined to one, in order of address."""
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    first = np.ones(len(begin), np.bool_)
    first[1:] = begin[1:] > reach[:-1]
    return begin[first], reach[np.append(first[1:], True)] if len(begin) else reach
