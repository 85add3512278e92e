# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""Flat arrays that grow while a decoder fills them without the GIL."""

import cython
import numpy as np

RANGE_COLUMNS = ("begin", "end", "owner")
NODE_COLUMNS = ("die", "origin", "entry", "unit", "parent", "call_file", "call_line", "call_column")
FIRST_CAPACITY = cython.declare(cython.Py_ssize_t, 4096)


def extended(array, dtype: str):  # type: ignore[no-untyped-def]
    """A copy of `array` with four times the capacity, of which the part that is never written takes no memory."""
    old = np.asarray(array)
    new = np.zeros(max(4 * len(old), FIRST_CAPACITY), dtype)
    new[: len(old)] = old
    return memoryview(new)


@cython.cclass
class Ranges:
    """Address ranges `[begin, end)`, each of one owner; the first `count` rows are valid."""

    def __init__(self) -> None:
        self.begin = memoryview(np.zeros(FIRST_CAPACITY, np.uint64))
        self.end = memoryview(np.zeros(FIRST_CAPACITY, np.uint64))
        self.owner = memoryview(np.zeros(FIRST_CAPACITY, np.int64))
        self.count = 0
        self.capacity = FIRST_CAPACITY

    def append(self, begin: cython.ulonglong, end: cython.ulonglong, owner: cython.longlong) -> cython.void:
        """Add one range."""
        if self.count == self.capacity:
            with cython.gil:
                self.grow()
        self.begin[self.count] = begin
        self.end[self.count] = end
        self.owner[self.count] = owner
        self.count += 1

    def grow(self):  # type: ignore[no-untyped-def]
        """Make room for more rows."""
        self.begin = extended(self.begin, "u8")
        self.end = extended(self.end, "u8")
        self.owner = extended(self.owner, "i8")
        self.capacity = len(self.begin)

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

    `die` is the offset of the DIE; `origin` the one that its abstract_origin names, or 2⁶⁴-1; `parent` the node
    it is inlined into, or -1 for a function of its own (rule R11); `call_*` the place it is inlined at.
    """

    def __init__(self) -> None:
        self.count = 0
        self.capacity = 0
        empty = np.zeros(0, np.uint64)
        self.die = self.origin = self.entry = memoryview(empty)
        self.unit = self.parent = memoryview(empty.astype(np.int64))
        self.call_file = self.call_line = self.call_column = memoryview(empty.astype(np.uint32))
        self.grow()

    def add(self) -> cython.Py_ssize_t:
        """Add a row; its index."""
        if self.count == self.capacity:
            with cython.gil:
                self.grow()
        self.count += 1
        return self.count - 1

    def grow(self):  # type: ignore[no-untyped-def]
        """Make room for more rows."""
        self.die = extended(self.die, "u8")
        self.origin = extended(self.origin, "u8")
        self.entry = extended(self.entry, "u8")
        self.unit = extended(self.unit, "i8")
        self.parent = extended(self.parent, "i8")
        self.call_file = extended(self.call_file, "u4")
        self.call_line = extended(self.call_line, "u4")
        self.call_column = extended(self.call_column, "u4")
        self.capacity = len(self.die)

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
