# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Distinct strings, collected for a table."""

from collections.abc import Iterable
from typing import Any

import cython
import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import UInt8, UInt32, extended, views
from symbolize.core.interning import random_mixer
from symbolize.core.string_array import StringArray

PRIME = cython.declare(cython.ulonglong, (1 << 31) - 1)
SHIFT = cython.declare(cython.int, 31)
SPREAD = cython.declare(cython.ulonglong, 0x9E3779B1)
SPREAD_SHIFT = cython.declare(cython.int, 15)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)


@cython.cclass
class StringTable:
    """Distinct strings by number, in order of appearance; string 0 is empty.

    String `i` is `data[offset[i]:offset[i + 1]]`. `slots` is a hash table of numbers + 1; `hashes` are polynomials in a
    random `base`, against chosen collisions. Strings that differ in their last bytes alone have hashes in a row, which
    `first_slot` spreads.
    """

    def __init__(self) -> None:
        self.base = 1 + random_mixer() % (PRIME - 1)
        self.count = 0
        self.size = 0
        self.data = memoryview(np.zeros(0, np.uint8))
        self.offset = memoryview(np.zeros(1, np.int64))
        self.hashes = memoryview(np.zeros(0, np.uint32))
        self.slots = memoryview(np.zeros(16, np.int32))
        self.add([b""])

    def add(self, texts: Iterable[bytes]) -> UInt32:
        """The numbers of `texts`."""
        if not isinstance(texts, StringArray):
            texts = StringArray.of(texts)
        numbers = np.empty(len(texts), np.uint32)
        known = np.zeros(max(len(texts.offsets) - 1, 0), np.uint32)
        self.reserve(min(len(texts), len(known)), len(texts.data))
        columns = views(texts.offsets.astype(np.int64), texts.rows.astype(np.int64), known, numbers)
        self.enter(*views(texts.data), *columns)
        return numbers

    def reserve(self, strings: cython.Py_ssize_t, size: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        """Allow so many more strings, of so many bytes."""
        if self.size + size > len(self.data):
            self.data = extended(self.data, self.size + size)
        if self.count + strings >= len(self.hashes):
            self.offset = extended(self.offset, self.count + strings + 1)
            self.hashes = extended(self.hashes, self.count + strings + 1)
        slots: cython.Py_ssize_t = len(self.slots)
        while slots < 2 * (self.count + strings):
            slots *= 2
        if slots > len(self.slots):
            self.slots = memoryview(np.zeros(slots, np.int32))
            self.fill_slots()

    def fill_slots(self) -> cython.void:
        """Enter all strings into empty slots."""
        i: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        with cython.nogil:
            for i in range(self.count):
                slot = self.first_slot(self.hashes[i])
                while self.slots[slot] != 0:
                    slot = (slot + 1) & (len(self.slots) - 1)
                self.slots[slot] = cython.cast(cython.int, i + 1)

    def enter(  # type: ignore[no-untyped-def]
        self,
        data: cython.const[cython.uchar][::1],
        offsets: cython.const[cython.longlong][::1],
        rows: cython.const[cython.longlong][::1],
        known: cython.uint[::1],
        numbers: cython.uint[::1],
    ):
        """Fill `numbers` with those of strings `rows`; `known` holds a zero for each string of `data`."""
        i: cython.Py_ssize_t
        string: cython.longlong
        new: cython.Py_ssize_t
        with cython.nogil:
            for i in range(len(rows)):
                string = rows[i]
                if known[string] == 0:
                    new = self.number(data, offsets[string], offsets[string + 1])
                    known[string] = cython.cast(cython.uint, new + 1)
                numbers[i] = known[string] - 1

    def number(
        self, data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The number of `data[begin:end]`, made if it is new."""
        mixed: cython.ulonglong = self.hashed(data, begin, end)
        slot: cython.Py_ssize_t = self.slot(data, begin, end, mixed)
        number: cython.Py_ssize_t = self.count
        i: cython.Py_ssize_t
        if self.slots[slot] != 0:
            return self.slots[slot] - 1
        for i in range(end - begin):
            self.data[self.size + i] = data[begin + i]
        self.size += end - begin
        self.slots[slot] = cython.cast(cython.int, number + 1)
        self.hashes[number] = cython.cast(cython.uint, mixed)
        self.offset[number + 1] = self.size
        self.count += 1
        return number

    def first_slot(self, mixed: cython.ulonglong) -> cython.Py_ssize_t:
        """Where the search for a string with this hash begins: neighbouring hashes are far apart."""
        mixed ^= mixed >> SPREAD_SHIFT
        mixed = (mixed * SPREAD) & MASK32
        mixed ^= mixed >> SPREAD_SHIFT
        mixed = (mixed * SPREAD) & MASK32
        mixed ^= mixed >> SPREAD_SHIFT
        return cython.cast(cython.Py_ssize_t, mixed & cython.cast(cython.ulonglong, len(self.slots) - 1))

    def slot(
        self,
        data: cython.const[cython.uchar][::1],
        begin: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        mixed: cython.ulonglong,
    ) -> cython.Py_ssize_t:
        """The slot of `data[begin:end]`, whose hash is `mixed`: an empty one if it is not there."""
        slot: cython.Py_ssize_t = self.first_slot(mixed)
        number: cython.Py_ssize_t
        at: cython.Py_ssize_t
        i: cython.Py_ssize_t
        while self.slots[slot] != 0:
            number = self.slots[slot] - 1
            if self.hashes[number] == mixed and self.offset[number + 1] - self.offset[number] == end - begin:
                at = self.offset[number]
                i = 0
                while i < end - begin and data[begin + i] == self.data[at + i]:
                    i += 1
                if i == end - begin:
                    break
            slot = (slot + 1) & (len(self.slots) - 1)
        return slot

    def hashed(
        self, data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.ulonglong:
        """The hash of `data[begin:end]`: a polynomial in `base` modulo PRIME, three bytes a coefficient."""
        mixed: cython.ulonglong = cython.cast(cython.ulonglong, end - begin) & PRIME
        i: cython.Py_ssize_t = begin
        part: cython.ulonglong
        while i < end:
            part = data[i]
            if i + 2 < end:
                part |= (cython.cast(cython.ulonglong, data[i + 1]) << 8) | (
                    cython.cast(cython.ulonglong, data[i + 2]) << 16
                )
            elif i + 1 < end:
                part |= cython.cast(cython.ulonglong, data[i + 1]) << 8
            i += 3
            mixed = mixed * self.base + part
            mixed = (mixed & PRIME) + (mixed >> SHIFT)
            mixed = (mixed & PRIME) + (mixed >> SHIFT)
        return mixed

    def find(self, text: bytes) -> int:
        """The number of `text`, -1 if it is not among the strings."""
        slot = self.slot(text, 0, len(text), self.hashed(text, 0, len(text)))
        return self.slots[slot] - 1

    def arrays(self) -> tuple[UInt8, NDArray[Any]]:
        """All strings behind one another, and where each begins."""
        text = np.asarray(self.data)[: self.size].copy()
        offsets = np.asarray(self.offset)[: self.count + 1]
        return text, offsets.astype(np.uint32 if len(text) < 1 << 32 else np.uint64)


@cython.ccall
def equal_texts(  # type: ignore[no-untyped-def]
    first: cython.const[cython.uchar][::1],
    first_begin: cython.const[cython.longlong][::1],
    first_end: cython.const[cython.longlong][::1],
    second: cython.const[cython.uchar][::1],
    second_begin: cython.const[cython.longlong][::1],
    second_end: cython.const[cython.longlong][::1],
    equal: cython.uchar[::1],
):
    """Which ranges of `first` and `second` hold the same bytes."""
    i: cython.Py_ssize_t
    size: cython.longlong
    k: cython.longlong
    with cython.nogil:
        for i in range(len(equal)):
            size = first_end[i] - first_begin[i]
            k = 0
            if second_end[i] - second_begin[i] == size:
                while k < size and first[first_begin[i] + k] == second[second_begin[i] + k]:
                    k += 1
                equal[i] = k == size
            else:
                equal[i] = 0
