"""What small inputs may become: products of lengths are counted before they are made."""

from collections.abc import Hashable
from typing import Final

from symbolize.core.arrays import AT_ONCE, Int32, Int64
from symbolize.core.errors import InputError

JSON_OBJECT: Final = 184
JSON_LIST: Final = 64
JSON_ITEM: Final = 12
"""Bytes of an object with a few keys, of a list with an item, and of a further item whose text is as short as it may
be. Longer ones take no more than a few times their text."""
MEMORY: Final = "would take {times:,.0f} times its size in memory, as only a bomb does"
"""What is said of memory."""
NO_MOST: Final = 1 << 63
Limit = tuple[int, int, str] | tuple[int, int, str, int]
"""What is free, the ratio, the problem and the most of a budget."""


def json_cost(text: bytes) -> int:
    """About how many bytes the objects of a JSON text will take, which may be 25 times its size (`{},{},…`)."""
    return JSON_OBJECT * text.count(b"{") + JSON_LIST * text.count(b"[") + JSON_ITEM * text.count(b",")


class Budget:
    """How much may be made of an input called `source`: in any case `free`, and beyond it `ratio` times its `size`, in
    the same unit, but never more than `most`. What needs more raises InputError with `problem`, which may name how
    much is `spent` and how many `times` the size that is (R276, size of tables)."""

    def __init__(
        self, source: str, size: int, free: int, ratio: int, problem: str = MEMORY, most: int = NO_MOST
    ) -> None:
        self.source = source
        self.limit = min(max(free, ratio * size), most)
        self._size = size
        self._problem = problem
        self._spent = 0
        self._parts: dict[Hashable, int] = {}
        self._part: Hashable = None

    def begin(self, part: Hashable) -> None:
        """Count what follows as that of a part of the input, which is made anew if it was made before."""
        self._part = part
        self._spent -= self._parts.pop(part, 0)

    def spend(self, size: int) -> None:
        """Count what is about to be made."""
        self._spent += size
        self._parts[self._part] = self._parts.get(self._part, 0) + size
        if self._spent > self.limit:
            times = self._spent / max(self._size, 1)
            raise InputError(self.source, self._problem.format(spent=self._spent, times=times))

    def spend_by_reference(self, sizes: Int64, rows: Int32) -> None:
        """Count the sizes of some rows where they may be too many; what surely fits costs no sum, and is not spent."""
        if int(sizes.max(initial=0)) * len(rows) > self.limit - self._spent:
            for first in range(0, len(rows), AT_ONCE):
                self.spend(int(sizes[rows[first : first + AT_ONCE]].sum()))
