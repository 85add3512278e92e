# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type, index", no-warn-unused-ignores
"""What a trace repeats, each once: numbers, tuples of numbers and lists of numbers, by row; numbers for equal rows, and
sums by such numbers.

All are open hash tables. The multiplier comes from the caller, at random, so that no file can choose keys that collide.
What is hashed is multiplied at least twice: one product of numbers in a row lies in a row, or in clusters, with many a
multiplier.
"""

import os

import cython
import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt64, extended

if not cython.compiled:
    from symbolize.core.integers import folded_product, unsigned_at

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)

FIRST_BITS = cython.declare(cython.int, 4)
FIRST_SLOTS = cython.declare(cython.Py_ssize_t, 16)
DENSITY = cython.declare(cython.Py_ssize_t, 8)
TWO_WORDS = cython.declare(cython.Py_ssize_t, 16)

NO_WORDS = cython.declare(cython.ulonglong[::1], memoryview(np.zeros(0, np.uint64)))
NO_ROWS = cython.declare(cython.int[::1], memoryview(np.zeros(0, np.int32)))
LARGEST = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
SMALLEST = cython.declare(cython.longlong, -LARGEST - 1)


def random_mixer() -> int:
    """A multiplier of 64 bits that no file can foresee."""
    return int.from_bytes(os.urandom(8), "little")


@cython.cclass
class InternTable:
    """Rows by 64-bit keys; the first row that a key gets stays.

    Most ids are counted up: the keys 1 to `numbered` have the rows 0, 1, 2, ... without any table, those below eight
    times the number of keys have their row in `dense`, all others in a hash table.
    """

    def __init__(self, mixer: cython.ulonglong, numbered: cython.ulonglong = 0) -> None:
        self.mixer = mixer | 1
        self.numbered = numbered
        self.count = self.hashed = 0
        self.shift = 64
        self.dense = NO_ROWS
        # A key and its row plus 1 side by side, in one line of the cache; key 0: free.
        self.slots = NO_WORDS

    @cython.boundscheck(False)
    def slot(self, key: cython.ulonglong) -> cython.Py_ssize_t:
        """Where `key`, which is not 0, is in `slots`, or the free slot for it.

        Bounds need no check: there are 2^(64 - shift) slots, of which some are free.
        """
        mixed: cython.ulonglong = (key * self.mixer) & MASK64
        mixed = ((mixed ^ (mixed >> 32)) * self.mixer) & MASK64
        slot: cython.Py_ssize_t = (mixed >> self.shift) << 1
        while self.slots[slot] != 0 and self.slots[slot] != key:
            slot += 2
            if slot == self.slots.shape[0]:
                slot = 0
        return slot

    def find(self, key: cython.ulonglong) -> cython.int:
        """The row of `key`, or -1."""
        slot: cython.Py_ssize_t
        row: cython.int = 0
        if 0 < key <= self.numbered:
            return cython.cast(cython.int, key - 1)
        if key < cython.cast(cython.ulonglong, self.dense.shape[0]):
            # Rows plus 1; what is not here may have come before `dense` reached so far.
            row = self.dense[cython.cast(cython.Py_ssize_t, key)]
        if row == 0 and self.hashed > 0 and key != 0:
            slot = self.slot(key)
            if self.slots[slot] != 0:
                row = cython.cast(cython.int, self.slots[slot + 1])
        return row - 1

    def put(self, key: cython.ulonglong, row: cython.int) -> cython.int:
        """Enter a key that is not there."""
        slot: cython.Py_ssize_t
        near: cython.ulonglong = DENSITY * self.count + FIRST_SLOTS
        if key < near and key >= cython.cast(cython.ulonglong, self.dense.shape[0]):
            self.extend_dense(max(key + 1, min(near, 2 * self.dense.shape[0])))
        self.count += 1
        if key < cython.cast(cython.ulonglong, self.dense.shape[0]):
            self.dense[cython.cast(cython.Py_ssize_t, key)] = row + 1
            return 0
        self.reserve(self.hashed + 1)
        slot = self.slot(key)
        self.slots[slot] = key
        self.slots[slot + 1] = cython.cast(cython.ulonglong, row + 1)
        self.hashed += 1
        return 0

    def put_all(self, keys: cython.const[cython.ulonglong][::1]) -> int:
        """Enter all keys with the rows 0, 1, 2, ...; the row of the first key that is there already, or -1."""
        row: cython.Py_ssize_t
        repeated: cython.Py_ssize_t = -1
        self.reserve(keys.shape[0])
        with cython.nogil:
            for row in range(keys.shape[0]):
                if self.find(keys[row]) >= 0:
                    repeated = row
                    break
                self.put(keys[row], cython.cast(cython.int, row))
        return repeated

    def move(self, key: cython.ulonglong, row: cython.int) -> cython.void:
        """Give a key that is there another row."""
        if key < cython.cast(cython.ulonglong, self.dense.shape[0]):
            if self.dense[cython.cast(cython.Py_ssize_t, key)] != 0:
                self.dense[cython.cast(cython.Py_ssize_t, key)] = row + 1
                return
        self.slots[self.slot(key) + 1] = cython.cast(cython.ulonglong, row + 1)

    def extend_dense(self, size: cython.Py_ssize_t) -> cython.int:
        """Have rows for the keys below `size`."""
        self.dense = extended(self.dense, size)
        return 0

    def reserve(self, count: cython.Py_ssize_t) -> cython.int:
        """Have slots for `count` keys, of which a quarter stays free."""
        if 8 * count > 3 * self.slots.shape[0]:
            self.grow(count)
        return 0

    def grow(self, count: cython.Py_ssize_t) -> cython.int:
        """Make slots for `count` keys."""
        old: cython.ulonglong[::1] = self.slots
        i: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        bits: cython.int = max(FIRST_BITS, int(count + count // 3).bit_length())
        self.slots = memoryview(np.zeros(2 << bits, np.uint64))
        self.shift = 64 - bits
        for i in range(0, old.shape[0], 2):
            if old[i] != 0:
                slot = self.slot(old[i])
                self.slots[slot] = old[i]
                self.slots[slot + 1] = old[i + 1]
        return 0


@cython.cclass
class HashedRows:
    """The slots of `count` rows: 32 bits of the row's hash, which begin with its first slot, and the row plus 1."""

    def __init__(self, mixer: cython.ulonglong) -> None:
        self.mixer = mixer | 1
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self.count = 0
        self.shift = 32 - FIRST_BITS
        self.slots = memoryview(np.zeros(1 << FIRST_BITS, np.uint64))

    def enter(self, slot: cython.Py_ssize_t, hashed: cython.ulonglong) -> cython.int:
        """Put the last row into a free slot."""
        self.slots[slot] = hashed << 32 | cython.cast(cython.ulonglong, self.count)
        if 8 * self.count >= 7 * self.slots.shape[0]:
            self.grow()
        return 0

    def grow(self) -> cython.int:
        """Make twice the slots."""
        old: cython.ulonglong[::1] = self.slots
        mask: cython.Py_ssize_t = 2 * old.shape[0] - 1
        i: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        self.slots = memoryview(np.zeros(2 * old.shape[0], np.uint64))
        self.shift -= 1
        for i in range(old.shape[0]):
            if old[i] != 0:
                slot = old[i] >> 32 >> self.shift
                while self.slots[slot] != 0:
                    slot = (slot + 1) & mask
                self.slots[slot] = old[i]
        return 0


@cython.cclass
class Tuples(HashedRows):
    """Tuples of `width` words. The one that is asked for is written to `key`.

    Each is a row of `stride` words: `more` of them, 0 at first, are free for what belongs to a tuple, beside it in the
    cache.
    """

    def __init__(self, width: cython.Py_ssize_t, mixer: cython.ulonglong, more: cython.Py_ssize_t = 0) -> None:
        HashedRows.__init__(self, mixer)
        self.width = width
        self.stride = width + more
        self.key = memoryview(np.zeros(width, np.uint64))
        self.words = NO_WORDS

    @cython.boundscheck(False)
    def add(self) -> cython.Py_ssize_t:
        """The row of the tuple in `key`, which is added if it is new.

        Bounds need no check: slots hold rows that are there, and `key` has `width` words.
        """
        hashed: cython.ulonglong = 0
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        mask: cython.Py_ssize_t = self.slots.shape[0] - 1
        for i in range(self.width):
            hashed = folded_product(hashed ^ self.key[i], self.mixer)
        hashed = folded_product(hashed, self.mixer) >> 32
        slot = hashed >> self.shift
        while self.slots[slot] != 0:
            if self.slots[slot] >> 32 == hashed:
                at = cython.cast(cython.Py_ssize_t, (self.slots[slot] & MASK32) - 1) * self.stride
                i = 0
                while i < self.width and self.words[at + i] == self.key[i]:
                    i += 1
                if i == self.width:
                    return cython.cast(cython.Py_ssize_t, (self.slots[slot] & MASK32) - 1)
            slot = (slot + 1) & mask
        self.append()
        self.enter(slot, hashed)
        return self.count - 1

    def append(self) -> cython.Py_ssize_t:
        """A new row for the tuple in `key`, whether it is there or not. It is not known to `add`."""
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t = self.count * self.stride
        if at + self.stride > self.words.shape[0]:
            self.extend_words(at + self.stride)
        for i in range(self.width):
            self.words[at + i] = self.key[i]
        self.count += 1
        return self.count - 1

    def extend_words(self, size: cython.Py_ssize_t) -> cython.int:
        """Grow `words` to at least `size`."""
        self.words = extended(self.words, size)
        return 0

    def array(self) -> UInt64:
        """All tuples: uint64[n, stride]."""
        return np.asarray(self.words)[: self.count * self.stride].reshape(self.count, self.stride)


@cython.cclass
class Lists(HashedRows):
    """Lists of row numbers. The one that is asked for is built with `append`, after `size` was set to 0.

    It is built after the last one, where it remains if it is new.
    """

    def __init__(self, mixer: cython.ulonglong) -> None:
        HashedRows.__init__(self, mixer)
        self.size = self.used = 0
        self.items_array = np.zeros(64, np.int32)
        self.items = memoryview(self.items_array)
        self.offsets = memoryview(np.zeros(64, np.int64))

    def restart(self) -> None:
        """Forget all lists. Their items and offsets stay until others are added."""
        self.clear()
        self.size = self.used = 0

    def append(self, value: cython.int) -> cython.int:
        """Add one item to the list that is built."""
        at: cython.Py_ssize_t = self.used + self.size
        if at == self.items.shape[0]:
            self.extend_items()
        self.items[at] = value
        self.size += 1
        return 0

    def extend_items(self) -> cython.int:
        """Grow `items` by a quarter, in place, since they are most of the memory."""
        count: cython.Py_ssize_t = self.items.shape[0]
        self.items = NO_ROWS  # nothing may refer to the memory while it moves
        self.items_array.resize(count + count // 4, refcheck=False)
        self.items = memoryview(self.items_array)
        return 0

    @cython.boundscheck(False)
    def add(self) -> cython.Py_ssize_t:
        """The row of the list that was built, which is added if it is new.

        Bounds need no check: the list is one of the rows or the one that is built; slots hold rows that are there.
        """
        hashed: cython.ulonglong = self.size
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        row: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        begin: cython.Py_ssize_t = self.used
        mask: cython.Py_ssize_t = self.slots.shape[0] - 1
        for i in range(begin, begin + self.size):
            hashed = folded_product(hashed ^ cython.cast(cython.uint, self.items[i]), self.mixer)
        hashed = folded_product(hashed, self.mixer) >> 32
        slot = hashed >> self.shift
        while self.slots[slot] != 0:
            if self.slots[slot] >> 32 == hashed:
                row = cython.cast(cython.Py_ssize_t, (self.slots[slot] & MASK32) - 1)
                at = self.offsets[row]
                if self.offsets[row + 1] - at == self.size:
                    i = 0
                    while i < self.size and self.items[at + i] == self.items[begin + i]:
                        i += 1
                    if i == self.size:
                        return row
            slot = (slot + 1) & mask
        if self.count + 2 > self.offsets.shape[0]:
            self.extend_offsets()
        self.used += self.size
        self.count += 1
        self.offsets[self.count] = self.used
        self.enter(slot, hashed)
        return self.count - 1

    def extend_offsets(self) -> cython.int:
        """Grow `offsets` for one more list."""
        self.offsets = extended(self.offsets, self.count + 2)
        return 0

    def arrays(self) -> tuple[Int64, Int32]:
        """All lists, as offsets and items, which are those of this table: nothing may be added any more."""
        return np.asarray(self.offsets)[: self.count + 1], self.items_array[: self.used]


@cython.boundscheck(False)
def hash_of(
    data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t, mixer: cython.ulonglong
) -> cython.ulonglong:
    """The hash of `data[begin:end]`. Bounds are checked once, not for each byte."""
    mixed: cython.ulonglong = MASK64 ^ mixer  # another number, or a pair of words would hash as the reversed one
    word: cython.ulonglong
    i: cython.Py_ssize_t = begin
    if begin < 0 or end > len(data):
        return 0
    while end - i >= TWO_WORDS:
        word = mixed ^ unsigned_at(data, i, 8, False)
        mixed = folded_product(word, mixer ^ unsigned_at(data, i + 8, 8, False))
        i += TWO_WORDS
    if end - i >= 8:
        mixed = folded_product(mixed ^ unsigned_at(data, i, 8, False), mixer)
        i += 8
    word = end - begin
    while i < end:
        word = (word << 8) & MASK64 | data[i]
        i += 1
    return folded_product(folded_product(mixed ^ word, mixer), mixer)


@cython.boundscheck(False)
def is_same(
    data: cython.const[cython.uchar][::1],
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    known: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
) -> cython.bint:
    """Whether `data[begin:end]` is in `known` at `at`; bounds are checked once."""
    i: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = end - begin
    if begin < 0 or at < 0 or end > len(data) or size > len(known) - at:
        return False
    while size - i >= 8:
        if unsigned_at(data, begin + i, 8, False) != unsigned_at(known, at + i, 8, False):
            return False
        i += 8
    while i < size:
        if data[begin + i] != known[at + i]:
            return False
        i += 1
    return True


@cython.cclass
class Chunks:
    """Rows by byte strings: at most `count` byte strings with `size` bytes together."""

    def __init__(self, count: int, size: int, mixer: cython.ulonglong) -> None:
        self.mixer = mixer | 1
        self.count = self.used = 0
        self.hash = 0
        self.slot = 0
        self.known = memoryview(np.empty(size, np.uint8))
        # A row is one line of the cache: hash, where the bytes begin, how many they are, and the row plus 1 (0: free).
        self.table = memoryview(np.zeros((2 << (count - 1).bit_length(), 4), np.int64))

    def find(
        self, data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The row of `data[begin:end]`, or -1."""
        mask: cython.Py_ssize_t = self.table.shape[0] - 1
        # One bit less, so that it is the same number signed.
        mixed: cython.longlong = hash_of(data, begin, end, self.mixer) >> 1
        slot: cython.Py_ssize_t = (mixed ^ (mixed >> 32)) & mask
        self.hash = mixed
        while self.table[slot, 3] != 0:
            if self.table[slot, 0] == mixed and self.table[slot, 2] == end - begin:
                if is_same(data, begin, end, self.known, self.table[slot, 1]):
                    return self.table[slot, 3] - 1
            slot = (slot + 1) & mask
        self.slot = slot
        return -1

    def put(
        self,
        data: cython.const[cython.uchar][::1],
        begin: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        row: cython.Py_ssize_t,
    ) -> cython.void:
        """Give `data[begin:end]`, which `find` has just not found, a row, unless the table is full."""
        size: cython.Py_ssize_t = end - begin
        if 2 * self.count < self.table.shape[0] and size <= self.known.shape[0] - self.used:
            self.known[self.used : self.used + size] = data[begin:end]
            self.table[self.slot, 0] = self.hash
            self.table[self.slot, 1] = self.used
            self.table[self.slot, 2] = size
            self.table[self.slot, 3] = row + 1
            self.used += size
            self.count += 1


@cython.ccall
def number_tuples(rows: cython.const[cython.ulonglong][:, ::1]) -> Int32:
    """The number of each row of a table: int32[n]."""
    tuples: Tuples = Tuples(rows.shape[1], random_mixer())
    numbers = np.empty(rows.shape[0], np.int32)
    out: cython.int[::1] = memoryview(numbers)
    i: cython.Py_ssize_t
    column: cython.Py_ssize_t
    with cython.nogil:
        for i in range(rows.shape[0]):
            for column in range(rows.shape[1]):
                tuples.key[column] = rows[i, column]
            out[i] = cython.cast(cython.int, tuples.add())
    return numbers


@cython.ccall
def number_lists(offsets: cython.const[cython.longlong][::1], items: cython.const[cython.int][::1]) -> Int32:
    """The number of each list of a CSR table: int32[n]."""
    lists: Lists = Lists(random_mixer())
    numbers = np.empty(offsets.shape[0] - 1, np.int32)
    out: cython.int[::1] = memoryview(numbers)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    with cython.nogil:
        for i in range(out.shape[0]):
            lists.size = 0
            for j in range(offsets[i], offsets[i + 1]):
                lists.append(items[j])
            out[i] = cython.cast(cython.int, lists.add())
    return numbers


@cython.ccall
def add_up(
    values: cython.const[cython.longlong][:, ::1], numbers: cython.const[cython.int][::1], sums: cython.longlong[:, ::1]
) -> cython.Py_ssize_t:
    """Add each row of `values` to the row of `sums` that has its number; how many sums exceeded 64 bits, which become
    the largest or smallest number instead."""
    i: cython.Py_ssize_t
    column: cython.Py_ssize_t
    known: cython.longlong
    value: cython.longlong
    exceeded: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(values.shape[0]):
            for column in range(values.shape[1]):
                known, value = sums[numbers[i], column], values[i, column]
                if value > 0 and known > LARGEST - value:
                    exceeded += 1
                    known, value = LARGEST, 0
                elif value < 0 and known < SMALLEST - value:
                    exceeded += 1
                    known, value = SMALLEST, 0
                sums[numbers[i], column] = known + value
    return exceeded


def first_of_numbers(numbers: Int32) -> Bool:
    """Which rows are the first with their number: bool[n]."""
    return np.diff(np.maximum.accumulate(numbers), prepend=np.int32(-1)) > 0
