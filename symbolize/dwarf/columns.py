# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Flat arrays that grow while a decoder fills them without the GIL."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import cython
import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Int64, UInt64, extended

if not cython.compiled:
    from symbolize.core.kernels import first_from

RANGE_COLUMNS = ("begin", "end", "owner")
NODE_COLUMNS = ("die", "origin", "entry", "unit", "parent", "call_file", "call_line", "call_column")
FIRST_CAPACITY = cython.declare(cython.Py_ssize_t, 4096)


def grow_columns(table, names, capacity: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
    """Give the columns `names` of a table four times their capacity, which is returned."""
    size = max(4 * capacity, FIRST_CAPACITY)
    for name in names:
        setattr(table, name, extended(getattr(table, name), size))
    return size


@cython.cclass
class Ranges:
    """Address ranges `[begin, end)`, each of one owner; the first `count` rows are valid. Of interest are those that
    hold one of the vaddrs `asked` (ascending; None: all)."""

    def __init__(self, asked: UInt64 | None = None) -> None:
        self.asked = None if asked is None else memoryview(asked)
        self.next_asked = 0
        self.begin = self.end = memoryview(np.zeros(0, np.uint64))
        self.owner = memoryview(np.zeros(0, np.int64))
        self.count = self.capacity = 0
        self.grow()

    def is_asked(self, first: cython.Py_ssize_t) -> cython.bint:
        """Whether one of the ranges from row `first` on is of interest."""
        i: cython.Py_ssize_t
        if self.asked is None:
            return True
        for i in range(first, self.count):
            self.next_asked = first_from(self.asked, self.next_asked, self.begin[i])
            if self.next_asked < len(self.asked) and self.asked[self.next_asked] < self.end[i]:
                return True
        return False

    def append(self, begin: cython.ulonglong, end: cython.ulonglong, owner: cython.longlong) -> cython.int:
        """Add one range."""
        if self.count == self.capacity:
            with cython.gil:
                self.grow()
        self.begin[self.count] = begin
        self.end[self.count] = end
        self.owner[self.count] = owner
        self.count += 1
        return 0

    def grow(self):  # type: ignore[no-untyped-def]
        """Enlarge the columns."""
        self.capacity = grow_columns(self, RANGE_COLUMNS, self.capacity)

    def arrays(self) -> tuple:  # type: ignore[type-arg]
        """Copies of begin, end and owner, as long as there are ranges."""
        count = self.count
        return (
            np.asarray(self.begin)[:count].copy(),
            np.asarray(self.end)[:count].copy(),
            np.asarray(self.owner)[:count].copy(),
        )


@cython.cclass
class Nodes:
    """Functions and inlined functions with code, parents before their children; the first `count` rows are valid.

    `die` is the offset of the DIE, `origin` that of its abstract_origin or 2⁶⁴-1, `parent` the node it is inlined into,
    -1 for a function of its own (R11, functions inside functions), `call_*` the call site.
    """

    def __init__(self) -> None:
        self.count = self.capacity = 0
        self.die = self.origin = self.entry = memoryview(np.zeros(0, np.uint64))
        self.unit = self.parent = memoryview(np.zeros(0, np.int64))
        self.call_file = self.call_line = self.call_column = memoryview(np.zeros(0, np.uint32))
        self.grow()

    def add(self) -> cython.Py_ssize_t:
        """Add a row; its index."""
        if self.count == self.capacity:
            with cython.gil:
                self.grow()
        self.count += 1
        return self.count - 1

    def grow(self):  # type: ignore[no-untyped-def]
        """Enlarge the columns."""
        self.capacity = grow_columns(self, NODE_COLUMNS, self.capacity)


class Part(NamedTuple):
    """Some nodes and the ranges that they own: rows of two tables, from the first to before the last."""

    nodes: Nodes
    ranges: Ranges
    first: int
    last: int
    first_range: int
    last_range: int


def joined(parts: Sequence[Part]) -> tuple[dict[str, NDArray[Any]], tuple[UInt64, UInt64, Int64]]:
    """All of `parts`, one after another: the columns of the nodes by name; begin, end and owner of the ranges. The
    tables lose them, so that there are never two of all."""
    nodes = {name: taken(name, [(part.nodes, part.first, part.last) for part in parts]) for name in NODE_COLUMNS}
    begin, end, owner = (
        taken(name, [(part.ranges, part.first_range, part.last_range) for part in parts]) for name in RANGE_COLUMNS
    )
    row = row_of_range = 0
    for part in parts:
        count, range_count = part.last - part.first, part.last_range - part.first_range
        parent = nodes["parent"][row : row + count]
        parent[parent >= 0] += row - part.first
        owner[row_of_range : row_of_range + range_count] += row - part.first
        row += count
        row_of_range += range_count
    return nodes, (begin, end, owner)


def taken(name, parts):  # type: ignore[no-untyped-def]
    """Some rows of the column `name` of tables, which lose it."""
    column = np.concatenate([np.asarray(getattr(table, name))[first:last] for table, first, last in parts])
    for table, _, _ in parts:
        setattr(table, name, memoryview(np.zeros(0, column.dtype)))
    return column
