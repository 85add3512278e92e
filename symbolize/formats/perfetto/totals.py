# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, index, no-any-return, no-untyped-call, untyped-decorator, valid-type"
"""The running totals of a heap's callstacks, and how much each dump adds to them."""

import cython
import numpy as np

from symbolize.core.arrays import Int32, extended

if not cython.compiled:
    from symbolize.core.interning import InternTable


@cython.cclass
class Totals:
    """The running totals of callstack ids: four values each."""

    def __init__(self, mixer: cython.ulonglong) -> None:
        self.mixer = mixer
        self.ids = InternTable(mixer)
        self.count = self.base = 0
        self.last = memoryview(np.zeros(0, np.int64))
        self.stacks = memoryview(np.zeros(0, np.int32))

    def restart(self) -> None:
        """Take ids for those of other callstacks from now on; rows from `base` on are theirs."""
        self.ids = InternTable(self.mixer)
        self.base = self.count

    def add(
        self,
        waiting: cython.const[cython.ulonglong][::1],
        found: cython.const[cython.int][::1],
        rows: cython.int[::1],
        added: cython.longlong[:, ::1],
    ) -> int:
        """Enter new totals; how many rows changed, which are written to `rows`, and by how much to `added`.

        `waiting` has six words for each id: a number that is not used, the id, its values. `found` has the stack of
        each id; what has none (below 0) is left out. An id that is now of another stack counts from 0 in a row of its
        own (R269, ids used again).

        Recorders of Android 10 repeat all callstacks with each dump, and may give an id that was free again to another
        one. The stack before keeps its last value.
        """
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        column: cython.Py_ssize_t
        row: cython.int
        known: cython.int
        change: cython.longlong
        changes: cython.bint
        changed: cython.Py_ssize_t = 0
        for i in range(found.shape[0]):
            if found[i] < 0:
                continue
            at = 6 * i + 1
            row = known = self.ids.find(waiting[at])
            if known < 0 or self.stacks[known] != found[i]:
                row = self.count
                if known < 0:
                    self.ids.put(waiting[at], row)
                else:
                    self.ids.move(waiting[at], row)
                if row == self.stacks.shape[0]:
                    self.stacks = extended(self.stacks, row + 1)
                    self.last = extended(self.last, 4 * self.stacks.shape[0])
                self.stacks[row] = found[i]
                self.count += 1
            changes = False
            for column in range(4):
                # Values have 63 bits, so that nothing is lost.
                change = cython.cast(cython.longlong, waiting[at + 1 + column]) - self.last[4 * row + column]
                added[column, changed] = change
                changes |= change != 0
                self.last[4 * row + column] += change
            if changes:
                rows[changed] = row
                changed += 1
        return changed

    def stack_rows(self) -> Int32:
        """The stack of each row."""
        return np.asarray(self.stacks)[: self.count]
