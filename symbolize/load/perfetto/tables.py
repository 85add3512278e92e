# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type,index"
"""What a trace repeats, each once: numbers, tuples of numbers and lists of numbers, by row.

All are open hash tables. The multiplier comes from the caller, at random, so that no file can choose keys that collide.
"""

import cython
import numpy as np
from numpy.typing import NDArray

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

FIRST_SLOTS = cython.declare(cython.Py_ssize_t, 16)
DENSITY = cython.declare(cython.Py_ssize_t, 8)

NO_WORDS = cython.declare(cython.ulonglong[::1], memoryview(np.zeros(0, np.uint64)))
NO_ROWS = cython.declare(cython.int[::1], memoryview(np.zeros(0, np.int32)))


def extended(array, size: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
    """A copy of `array` with room for `size` items and more; the part that is never written takes no memory."""
    old = np.asarray(array)
    new = np.zeros(max(size, 2 * len(old), 16), old.dtype)
    new[: len(old)] = old
    return memoryview(new)


@cython.cclass
class Table:
    """Rows by 64-bit keys; the first row that a key gets stays.

    Most ids are counted up: those below eight times the number of keys have their row in `dense`, all others in a hash
    table.
    """

    def __init__(self, mixer: cython.ulonglong) -> None:
        self.mixer = mixer | 1
        self.count = self.hashed = 0
        self.shift = 64
        self.dense = self.rows = NO_ROWS
        self.keys = NO_WORDS

    def slot(self, key: cython.ulonglong) -> cython.Py_ssize_t:
        """Where `key`, which is not 0, stands, or the free slot where it would; the table has slots."""
        mixed: cython.ulonglong = (key * self.mixer) & MASK64
        mixed = ((mixed ^ (mixed >> 32)) * self.mixer) & MASK64
        place: cython.Py_ssize_t = mixed >> self.shift
        while self.keys[place] != 0 and self.keys[place] != key:
            place += 1
            if place == self.keys.shape[0]:
                place = 0
        return place

    def find(self, key: cython.ulonglong) -> cython.int:
        """The row of `key`, or -1."""
        place: cython.Py_ssize_t
        row: cython.int = 0
        if key < cython.cast(cython.ulonglong, self.dense.shape[0]):
            # Rows plus 1; what is not here may have come before there was room for it.
            row = self.dense[cython.cast(cython.Py_ssize_t, key)]
        if row == 0 and self.hashed > 0 and key != 0:
            place = self.slot(key)
            if self.keys[place] != 0:
                row = self.rows[place]
        return row - 1

    def put(self, key: cython.ulonglong, row: cython.int):  # type: ignore[no-untyped-def]
        """Enter a key that is not there."""
        place: cython.Py_ssize_t
        near: cython.ulonglong = DENSITY * self.count + FIRST_SLOTS
        if key < near and key >= cython.cast(cython.ulonglong, self.dense.shape[0]):
            self.dense = extended(self.dense, max(key + 1, min(near, 2 * self.dense.shape[0])))
        self.count += 1
        if key < cython.cast(cython.ulonglong, self.dense.shape[0]):
            self.dense[cython.cast(cython.Py_ssize_t, key)] = row + 1
            return
        if 2 * (self.hashed + 1) > self.keys.shape[0]:
            self.grow()
        place = self.slot(key)
        self.keys[place] = key
        self.rows[place] = row + 1
        self.hashed += 1

    def move(self, key: cython.ulonglong, row: cython.int):  # type: ignore[no-untyped-def]
        """Give a key that is there another row."""
        if key < cython.cast(cython.ulonglong, self.dense.shape[0]):
            if self.dense[cython.cast(cython.Py_ssize_t, key)] != 0:
                self.dense[cython.cast(cython.Py_ssize_t, key)] = row + 1
                return
        self.rows[self.slot(key)] = row + 1

    def grow(self):  # type: ignore[no-untyped-def]
        """Make more slots."""
        keys, rows = self.keys, self.rows
        i: cython.Py_ssize_t
        place: cython.Py_ssize_t
        size: cython.Py_ssize_t = max(FIRST_SLOTS, 2 * keys.shape[0])
        self.keys = memoryview(np.zeros(size, np.uint64))
        self.rows = memoryview(np.zeros(size, np.int32))
        self.shift = 65 - int(size).bit_length()
        for i in range(keys.shape[0]):
            if keys[i] != 0:
                place = self.slot(keys[i])
                self.keys[place] = keys[i]
                self.rows[place] = rows[i]


@cython.cclass
class Totals:
    """The running totals of callstack ids: four values each."""

    def __init__(self, mixer: cython.ulonglong) -> None:
        self.mixer = mixer
        self.ids = Table(mixer)
        self.count = self.base = 0
        self.last = memoryview(np.zeros(0, np.int64))
        self.stacks = memoryview(np.zeros(0, np.int32))

    def restart(self) -> None:
        """Take ids for those of other callstacks from now on; rows from `base` on are theirs."""
        self.ids = Table(self.mixer)
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

    def stack_rows(self) -> NDArray[np.int32]:
        """The stack of each row."""
        return np.asarray(self.stacks)[: self.count]


@cython.cclass
class Tuples:
    """Tuples of `width` words. The one that is asked for is written to `key`."""

    def __init__(self, width: cython.Py_ssize_t, mixer: cython.ulonglong) -> None:
        self.width = width
        self.count = 0
        self.mixer = mixer | 1
        self.key = memoryview(np.zeros(width, np.uint64))
        self.words = memoryview(np.zeros(0, np.uint64))
        self.slots = memoryview(np.zeros(FIRST_SLOTS, np.int32))

    def slot(self, words: cython.ulonglong[::1], begin: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the tuple at `words[begin]` stands, or the free slot where it would; slots hold the row plus 1."""
        mixed: cython.ulonglong = 0
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        place: cython.Py_ssize_t
        mask: cython.Py_ssize_t = self.slots.shape[0] - 1
        for i in range(self.width):
            mixed = ((mixed ^ words[begin + i]) * self.mixer) & MASK64
            mixed ^= mixed >> 29
        place = (mixed >> 20) & mask
        while self.slots[place] != 0:
            at = (self.slots[place] - 1) * self.width
            i = 0
            while i < self.width and self.words[at + i] == words[begin + i]:
                i += 1
            if i == self.width:
                break
            place = (place + 1) & mask
        return place

    def add(self) -> cython.Py_ssize_t:
        """The row of the tuple in `key`, which is added if it is new."""
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        place: cython.Py_ssize_t = self.slot(self.key, 0)
        if self.slots[place] != 0:
            return self.slots[place] - 1
        if 2 * (self.count + 1) > self.slots.shape[0]:
            self.grow()
            place = self.slot(self.key, 0)
        at = self.count * self.width
        if at + self.width > self.words.shape[0]:
            self.words = extended(self.words, at + self.width)
        for i in range(self.width):
            self.words[at + i] = self.key[i]
        self.count += 1
        self.slots[place] = self.count
        return self.count - 1

    def grow(self):  # type: ignore[no-untyped-def]
        """Make more slots."""
        row: cython.Py_ssize_t
        self.slots = memoryview(np.zeros(4 * self.slots.shape[0], np.int32))
        for row in range(self.count):
            self.slots[self.slot(self.words, row * self.width)] = row + 1

    def array(self) -> NDArray[np.uint64]:
        """All tuples: uint64[n, width]."""
        return np.asarray(self.words)[: self.count * self.width].reshape(self.count, self.width)


@cython.cclass
class Lists:
    """Lists of row numbers. The one that is asked for is built with `append`, after `size` was set to 0."""

    def __init__(self, mixer: cython.ulonglong) -> None:
        self.count = self.size = self.used = 0
        self.mixer = mixer | 1
        self.item = memoryview(np.zeros(64, np.int32))
        self.items = memoryview(np.zeros(0, np.int32))
        self.offsets = memoryview(np.zeros(64, np.int64))
        self.slots = memoryview(np.zeros(FIRST_SLOTS, np.int32))

    def append(self, value: cython.int):  # type: ignore[no-untyped-def]
        """Add one item to the list that is built."""
        if self.size == self.item.shape[0]:
            self.item = extended(self.item, self.size + 1)
        self.item[self.size] = value
        self.size += 1

    def slot(self, items: cython.int[::1], begin: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the list of `size` items at `items[begin]` stands, or the free slot where it would."""
        mixed: cython.ulonglong = size
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        place: cython.Py_ssize_t
        mask: cython.Py_ssize_t = self.slots.shape[0] - 1
        for i in range(begin, begin + size):
            mixed = ((mixed ^ cython.cast(cython.ulonglong, items[i])) * self.mixer) & MASK64
            mixed ^= mixed >> 29
        place = (mixed >> 20) & mask
        while self.slots[place] != 0:
            at = self.offsets[self.slots[place] - 1]
            if self.offsets[self.slots[place]] - at == size:
                i = 0
                while i < size and self.items[at + i] == items[begin + i]:
                    i += 1
                if i == size:
                    break
            place = (place + 1) & mask
        return place

    def add(self) -> cython.Py_ssize_t:
        """The row of the list that was built, which is added if it is new."""
        i: cython.Py_ssize_t
        place: cython.Py_ssize_t = self.slot(self.item, 0, self.size)
        if self.slots[place] != 0:
            return self.slots[place] - 1
        if 2 * (self.count + 1) > self.slots.shape[0]:
            self.grow()
            place = self.slot(self.item, 0, self.size)
        if self.used + self.size > self.items.shape[0]:
            self.items = extended(self.items, self.used + self.size)
        if self.count + 2 > self.offsets.shape[0]:
            self.offsets = extended(self.offsets, self.count + 2)
        for i in range(self.size):
            self.items[self.used + i] = self.item[i]
        self.used += self.size
        self.count += 1
        self.offsets[self.count] = self.used
        self.slots[place] = self.count
        return self.count - 1

    def grow(self):  # type: ignore[no-untyped-def]
        """Make more slots."""
        row: cython.Py_ssize_t
        begin: cython.Py_ssize_t
        self.slots = memoryview(np.zeros(4 * self.slots.shape[0], np.int32))
        for row in range(self.count):
            begin = self.offsets[row]
            self.slots[self.slot(self.items, begin, self.offsets[row + 1] - begin)] = row + 1

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """All lists, as offsets and items."""
        return np.asarray(self.offsets)[: self.count + 1], np.asarray(self.items)[: self.used]
