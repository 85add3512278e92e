# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Flat arrays that grow while a decoder fills them without the GIL."""

import cython
import numpy as np

from symbolize.core.arrays import extended

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
    """Address ranges `[begin, end)`, each of one owner; the first `count` rows are valid."""

    def __init__(self) -> None:
        self.begin = self.end = memoryview(np.zeros(0, np.uint64))
        self.owner = memoryview(np.zeros(0, np.int64))
        self.count = self.capacity = 0
        self.grow()

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

    def extend(self, other, shift) -> None:  # type: ignore[no-untyped-def]
        """Add all ranges of `other`, to whose owners `shift` is added."""
        first, count = self.count, self.count + other.count
        while self.capacity < count:
            self.grow()
        for name in RANGE_COLUMNS:
            np.asarray(getattr(self, name))[first:count] = np.asarray(getattr(other, name))[: other.count]
        np.asarray(self.owner)[first:count] += shift
        self.count = count

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

    def extend(self, other) -> None:  # type: ignore[no-untyped-def]
        """Add all nodes of `other`."""
        first, count = self.count, self.count + other.count
        while self.capacity < count:
            self.grow()
        for name in NODE_COLUMNS:
            np.asarray(getattr(self, name))[first:count] = np.asarray(getattr(other, name))[: other.count]
        parent = np.asarray(self.parent)[first:count]
        parent[parent >= 0] += first
        self.count = count
