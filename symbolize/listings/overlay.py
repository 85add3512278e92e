"""Entries that overlap: of those that hold an address, the latest answers."""

from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]


def latest(begin: UInt64, end: UInt64) -> tuple[UInt64, UInt64, Int64]:
    """Cut entries, given in order of time, into disjoint ascending ranges: begins, ends and rows of the entries.

    Code that is compiled at run time takes the place of older code, so an entry hides what earlier ones have there.
    Empty entries are left out.
    """
    rows = np.flatnonzero(end > begin)
    rows = rows[np.lexsort((rows, begin[rows]))]
    last = np.ones(len(rows), np.bool_)
    last[:-1] = (begin[rows[1:]] != begin[rows[:-1]]) | (end[rows[1:]] != end[rows[:-1]])
    rows = rows[last]  # the same range again and again, as tracers of methods write it
    if not len(rows) or (end[rows[:-1]] <= begin[rows[1:]]).all():
        return begin[rows], end[rows], rows
    borders = np.sort(np.concatenate((begin[rows], end[rows]))).tolist()
    starts, ends, order = begin[rows].tolist(), end.tolist(), rows.tolist()
    pieces: list[tuple[int, int, int]] = []
    current: list[int] = []  # what began already, negated so that the latest is on top
    entered = 0
    for low, high in pairwise(borders):
        while entered < len(order) and starts[entered] <= low:
            heappush(current, -order[entered])
            entered += 1
        while current and ends[-current[0]] <= low:
            heappop(current)
        if low == high or not current:
            continue
        row = -current[0]
        if pieces and pieces[-1][2] == row and pieces[-1][1] == low:
            pieces[-1] = pieces[-1][0], high, row
        else:
            pieces.append((low, high, row))
    cut = np.array(pieces, np.uint64).reshape(-1, 3)
    return cut[:, 0].copy(), cut[:, 1].copy(), cut[:, 2].astype(np.int64)
