"""Ranges of addresses as columns: clipped, joined, made disjoint, and cut at the borders of others.

A range is `[begin, end)`. Ranges may have owners, numbers from 0 on. A layer is a list of ranges that ascend and touch:
`value[i]` holds from `start[i]` to `start[i + 1]`, -1 is a gap (see `layer_at`).
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt64, first_of_runs, layer_at, views
from symbolize.core.kernels import CoverColumns, PieceColumns, RangeColumns, clip, cut, hold, merge_runs, sweep

PIECES_PER_RANGE = 16
MORE_PIECES = 1 << 16
"""Pieces that ranges may be cut into, for each range and in addition."""

Gaps = list[tuple[UInt64, UInt64]]
"""Begins and ends of ranges of which nothing can be answered."""


def clip_to(begin: UInt64, end: UInt64, allowed: tuple[UInt64, UInt64]) -> tuple[Int64, UInt64, UInt64]:
    """Keep the ranges that begin in one of the `allowed` ranges (ascending, disjoint), cut at its end.

    Returns the indices of the ranges that are kept, with their begins and ends. Ranges of discarded code begin in none,
    whatever value the linker writes for them, provided that a discarded section is one function: no list of such values
    is needed (R54, discarded code; R63, no list of marker values).
    """
    kept, begins, ends = np.empty(len(begin), np.int64), np.empty_like(begin), np.empty_like(end)
    count = clip(*views(begin, end, *allowed, kept, begins, ends))
    return kept[:count], begins[:count], ends[:count]


def union(begin: UInt64, end: UInt64) -> tuple[UInt64, UInt64]:
    """Join ranges that touch or overlap; the result ascends."""
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    first = np.ones(len(begin), np.bool_)
    first[1:] = begin[1:] > reach[:-1]
    return begin[first], reach[np.append(first[1:], True)] if len(begin) else reach


def inside(vaddrs: UInt64, begin: UInt64, end: UInt64) -> Bool:
    """Which of `vaddrs` lie in any of the ranges."""
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    if not len(begin):
        return np.zeros(len(vaddrs), np.bool_)
    at = np.searchsorted(begin, vaddrs, side="right") - 1
    return (at >= 0) & (vaddrs < reach[np.maximum(at, 0)])


def in_order(begin: UInt64) -> Int64:
    """The order of `begin`, stable."""
    lowest = begin.min() if len(begin) else np.uint64(0)
    bits = len(begin).bit_length()
    if not len(begin) or int(begin.max() - lowest).bit_length() + bits > 64:
        return np.argsort(begin, kind="stable")
    # Begin and place in one number: several times as fast to sort.
    key = (begin - lowest) << np.uint64(bits)
    key |= np.arange(len(begin), dtype=np.uint64)
    key.sort()
    key &= np.uint64((1 << bits) - 1)
    return key.view(np.int64)


def disjoint(
    begin: UInt64, end: UInt64, owner: Int64, rank: Int64, parent: Int64, unknown: Gaps | None = None
) -> tuple[UInt64, Int64]:
    """Sweep ranges into disjoint segments; see `sweep`.

    Returns where segments start and whose they are. Where ranges had to be left out nobody answers, not even those that
    were not left out (R254, hidden ranges); begins and ends of that are added to `unknown`. A problem says how much
    code more than 1,024 open ranges leave unknown; addresses there may lack a name (`corrupt-debug-info`).
    """
    order = np.lexsort((owner, begin)) if (owner[1:] < owner[:-1]).any() else in_order(begin)
    starts = np.zeros(2 * len(begin) + 2, np.uint64)
    winners = np.zeros(2 * len(begin) + 2, np.int64)
    lost = np.zeros(len(begin), np.uint8)
    count = sweep(*views(begin[order], end[order], owner[order], rank[order], parent, starts, winners, lost))
    starts, winners = starts[:count].copy(), winners[:count].copy()
    if not lost.any():
        return starts, winners
    left_out = order[lost != 0]
    gaps = union(begin[left_out], end[left_out])
    if unknown is not None:
        unknown.append(gaps)
    return without(starts, winners, gaps)


def without(starts: UInt64, values: Int64, gaps: tuple[UInt64, UInt64]) -> tuple[UInt64, Int64]:
    """A layer of segments with nothing (-1) in `gaps`, ranges that ascend and are disjoint."""
    begin, end = gaps
    kept = np.searchsorted(end, starts, side="right") >= np.searchsorted(begin, starts, side="right")
    behind = layer_at(starts, values, end)
    starts = np.concatenate((begin, end, starts[kept]))
    values = np.concatenate((np.full(len(begin), -1, np.int64), behind, values[kept]))
    order = np.argsort(starts, kind="stable")
    order = order[first_of_runs(starts[order])]
    return starts[order], values[order]


@dataclass
class Pieces:
    """Ranges that were cut, in order of where they come from: index of the range, begin, end, whether it is covered.

    Not `complete` if the pieces would have been absurdly many; then no range is cut.
    """

    source: Int64
    begin: UInt64
    end: UInt64
    inside: Bool
    complete: bool = True

    @classmethod
    def empty(cls, count: int) -> Self:
        """Columns for so many pieces."""
        bounds = np.zeros((2, count), np.uint64)
        return cls(np.zeros(count, np.int64), bounds[0], bounds[1], np.zeros(count, np.bool_))

    def columns(self) -> Any:
        """The columns as `cut` takes them."""
        return PieceColumns(*views(self.source, self.begin, self.end, self.inside.view(np.uint8)))

    def take(self, kept: Bool) -> "Pieces":
        """Some of the pieces."""
        return Pieces(self.source[kept], self.begin[kept], self.end[kept], self.inside[kept], self.complete)


class Cover:
    """Ranges of owners 0 to `count`, by owner and begin; those of one owner are disjoint."""

    def __init__(self, begin: UInt64, end: UInt64, owner: Int64, count: int) -> None:
        order = np.lexsort((begin, owner))
        begin, end, owner = begin[order], end[order], owner[order]
        rows = slice(merge_runs(RangeColumns(*views(begin, end, owner))))
        first = np.searchsorted(owner[rows], np.arange(count + 1))
        self._columns = CoverColumns(*views(begin[rows], end[rows], first))

    def hold(self, vaddrs: UInt64, owners: Int64) -> Bool:
        """Whether each of `owners` (-1: nobody) has the address beside it."""
        held = np.zeros(len(vaddrs), np.uint8)
        hold(*views(vaddrs, owners), self._columns, held.data)
        return held.view(np.bool_)

    def cut(self, begin: UInt64, end: UInt64, owner: Int64) -> Pieces | None:
        """Cut ranges at the borders of what their owners have (-1: not to be cut, and inside).

        None if each is inside as a whole. If the pieces would be absurdly many no range is cut, and those are inside
        that begin inside.
        """
        limit = PIECES_PER_RANGE * len(begin) + MORE_PIECES
        ranges = RangeColumns(*views(begin, end, owner))
        counts = np.zeros(2, np.int64)
        cut(ranges, self._columns, Pieces.empty(0).columns(), counts.data, limit, False)
        count, outside = counts.tolist()
        if count == len(begin) and not outside:
            return None
        if count > limit:
            return Pieces(np.arange(len(begin)), begin, end, (owner < 0) | self.hold(begin, owner), False)
        pieces = Pieces.empty(count)
        cut(ranges, self._columns, pieces.columns(), counts.data, limit, True)
        return pieces
