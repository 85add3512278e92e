"""The one test that tells live code from what linkers leave of dead code (rule R54)."""

import numpy as np
from numpy.typing import NDArray

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]


def clip_to_code(begin: UInt64, end: UInt64, code: tuple[UInt64, UInt64]) -> tuple[Int64, UInt64, UInt64]:
    """Keep the ranges that begin where code can be and cut them at its end (rule R54).

    Returns the indices of the ranges that are kept, with their begins and ends.
    """
    code_begin, code_end = code
    if not len(code_begin):
        return np.zeros(0, np.int64), begin[:0], end[:0]
    place = np.searchsorted(code_begin, begin, side="right") - 1
    inside = (place >= 0) & (begin < code_end[np.maximum(place, 0)])
    kept = np.flatnonzero(inside)
    return kept, begin[kept], np.minimum(end[kept], code_end[place[kept]])


def united(begin: UInt64, end: UInt64) -> tuple[UInt64, UInt64]:
    """Ranges that touch or overlap joined to one, in order of address."""
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    first = np.ones(len(begin), np.bool_)
    first[1:] = begin[1:] > reach[:-1]
    return begin[first], reach[np.append(first[1:], True)] if len(begin) else reach
