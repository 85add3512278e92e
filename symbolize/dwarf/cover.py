"""Ranges of several owners: which addresses they hold, and other ranges cut at their borders."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import views
from symbolize.dwarf.sweep import cut, hold, merge_runs

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

PIECES_PER_RANGE = 16
MORE_PIECES = 1 << 16
"""Pieces that ranges may be cut into at the borders of claims, for each range and in addition."""


@dataclass
class Pieces:
    """Ranges that were cut, in order of where they come from: index of the range, begin, end, whether it is covered."""

    source: Int64
    begin: UInt64
    end: UInt64
    inside: Bool

    @classmethod
    def empty(cls, count: int) -> Self:
        """Columns for so many pieces."""
        bounds = np.zeros((2, count), np.uint64)
        return cls(np.zeros(count, np.int64), bounds[0], bounds[1], np.zeros(count, np.bool_))

    def views(self) -> list[Any]:
        """The columns as `cut` takes them."""
        return views(self.source, self.begin, self.end, self.inside.view(np.uint8))

    def take(self, kept: Bool) -> "Pieces":
        """Some of the pieces."""
        return Pieces(self.source[kept], self.begin[kept], self.end[kept], self.inside[kept])


class Cover:
    """Ranges of owners 0 to `count`, by owner and begin; those of one owner are disjoint."""

    def __init__(self, begin: UInt64, end: UInt64, owner: Int64, count: int) -> None:
        order = np.lexsort((begin, owner))
        self.begin, self.end, owner = begin[order], end[order], owner[order]
        rows = slice(merge_runs(*views(self.begin, self.end, owner)))
        self.begin, self.end = self.begin[rows], self.end[rows]
        self.first = np.searchsorted(owner[rows], np.arange(count + 1))

    def hold(self, vaddrs: UInt64, owners: Int64) -> Bool:
        """Whether each of `owners` (-1: nobody) has the address beside it."""
        held = np.zeros(len(vaddrs), np.uint8)
        hold(*views(vaddrs, owners, self.first, self.begin, self.end, held))
        return held.view(np.bool_)

    def cut(self, begin: UInt64, end: UInt64, owner: Int64, problems: list[str]) -> Pieces | None:
        """Cut ranges at the borders of what their owners have (-1: not to be cut, and inside).

        None if each is inside as a whole. If the pieces would be absurdly many no range is cut, and those are inside
        that begin inside; that is added to `problems`.
        """
        limit = PIECES_PER_RANGE * len(begin) + MORE_PIECES
        inputs = views(begin, end, owner, self.first, self.begin, self.end)
        counts = np.zeros(2, np.int64)
        cut(*inputs, *Pieces.empty(0).views(), counts.data, limit, False)
        count, outside = counts.tolist()
        if count == len(begin) and not outside:
            return None
        if count > limit:
            problems.append("the ranges that units claim are absurdly fragmented; some functions may be missing")
            return Pieces(np.arange(len(begin)), begin, end, (owner < 0) | self.hold(begin, owner))
        pieces = Pieces.empty(count)
        cut(*inputs, *pieces.views(), counts.data, limit, True)
        return pieces
