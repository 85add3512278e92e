# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type, index", no-warn-unused-ignores
"""Byte strings, each once, by number."""

from collections.abc import Iterable, Iterator
from typing import Any, Self

import cython
import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import UInt32, extended, views
from symbolize.core.interning import random_mixer
from symbolize.core.string_array import StringArray

if not cython.compiled:
    from symbolize.core.interning import HashedRows, hash_of, is_same

MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)


@cython.cclass
class StringTable(HashedRows):
    """Distinct byte strings by number, in order of appearance; string 0 is empty.

    String `i` is `data[offset[i]:offset[i + 1]]`.
    """

    def __init__(self, texts: Iterable[bytes] = ()) -> None:
        HashedRows.__init__(self, random_mixer())
        self.size = 0
        self.data = memoryview(np.zeros(64, np.uint8))
        self.offset = memoryview(np.zeros(16, np.int64))
        self.add(b"")
        self.add_all(texts)

    def copy(self) -> Self:
        """The same strings, to which others can be added."""
        result = type(self)()
        other: StringTable = result
        other.count, other.size, other.shift, other.mixer = self.count, self.size, self.shift, self.mixer
        other.slots = memoryview(np.array(self.slots))
        other.data = memoryview(np.array(self.data[: max(self.size, 1)]))
        other.offset = memoryview(np.array(self.offset[: self.count + 1]))
        return result

    def add(self, text: bytes) -> int:
        """The number of `text`, which is added if it is new."""
        return self.number(text, 0, len(text))

    def add_all(self, texts: Iterable[bytes]) -> UInt32:
        """The number of each of `texts`; those that are new are added."""
        distinct, which = StringArray.of(texts).distinct()
        numbers = self.add_slices(distinct.data, *distinct.places())
        return numbers if which is None else numbers[which]

    def add_slices(self, data: Any, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> UInt32:
        """The number of each string `data[begins[i]:ends[i]]`; those that are new are added."""
        numbers = np.empty(len(begins), np.uint32)
        if len(begins) > self.count:  # as when a profile is loaded: room for all at once
            self.reserve(int((ends - begins).sum()), len(begins))
        self.enter_slices(memoryview(data), *views(begins, ends, numbers))
        return numbers

    def enter_slices(  # type: ignore[no-untyped-def]
        self,
        data: cython.const[cython.uchar][::1],
        begins: cython.const[cython.longlong][::1],
        ends: cython.const[cython.longlong][::1],
        numbers: cython.uint[::1],
    ):
        """Fill `numbers` with those of the strings `data[begins[i]:ends[i]]`."""
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(len(begins)):
                numbers[i] = cython.cast(cython.uint, self.number(data, begins[i], ends[i]))

    def number(
        self, data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The number of `data[begin:end]`, made if it is new."""
        hashed: cython.ulonglong = hash_of(data, begin, end, self.mixer) >> 32
        slot: cython.Py_ssize_t = self.slot(data, begin, end, hashed)
        if begin < 0 or end < begin or end > len(data):
            with cython.gil:
                raise IndexError("a string that is not in its data")
        if self.slots[slot] != 0:
            return cython.cast(cython.Py_ssize_t, (self.slots[slot] & MASK32) - 1)
        if self.size + end - begin > len(self.data) or self.count + 1 >= len(self.offset):
            self.reserve(end - begin, 1)
        self.data[self.size : self.size + end - begin] = data[begin:end]
        self.size += end - begin
        self.count += 1
        self.offset[self.count] = self.size
        self.enter(slot, hashed)
        return self.count - 1

    @cython.boundscheck(False)
    def slot(
        self,
        data: cython.const[cython.uchar][::1],
        begin: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        hashed: cython.ulonglong,
    ) -> cython.Py_ssize_t:
        """The slot of `data[begin:end]`: an empty one if it is not there.

        Bounds need no check: slots hold rows that are there.
        """
        row: cython.Py_ssize_t
        slot: cython.Py_ssize_t = hashed >> self.shift
        while self.slots[slot] != 0:
            if self.slots[slot] >> 32 == hashed:
                row = cython.cast(cython.Py_ssize_t, (self.slots[slot] & MASK32) - 1)
                if self.offset[row + 1] - self.offset[row] == end - begin:
                    if is_same(data, begin, end, self.data, self.offset[row]):
                        break
            slot = (slot + 1) & (len(self.slots) - 1)
        return slot

    def reserve(self, size: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
        """Have room for `count` strings more, of `size` bytes together."""
        if self.size + size > len(self.data):
            self.data = extended(self.data, self.size + size)
        if self.count + count >= len(self.offset):
            self.offset = extended(self.offset, self.count + count + 1)
        return 0

    def find(self, text: bytes) -> int:
        """The number of `text`, -1 if it is not among the strings."""
        slot: cython.Py_ssize_t = self.slot(text, 0, len(text), hash_of(text, 0, len(text), self.mixer) >> 32)
        return cython.cast(cython.Py_ssize_t, self.slots[slot] & MASK32) - 1

    def __getitem__(self, number: cython.Py_ssize_t) -> bytes:
        if number < 0 or number >= self.count:
            raise IndexError(f"there is no string {number}")
        begin: cython.Py_ssize_t = self.offset[number]
        size: cython.Py_ssize_t = self.offset[number + 1] - begin
        if not cython.compiled:
            return bytes(self.data[begin : begin + size])
        return cython.cast(cython.p_char, cython.address(self.data[begin]))[:size] if size > 0 else b""

    def __len__(self) -> int:
        return self.count

    def __reduce__(self) -> Any:
        return type(self), (list(self),)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.array())

    def array(self) -> StringArray:
        """All strings, as they are now."""
        offsets = np.asarray(self.offset)[: self.count + 1]
        return StringArray(np.asarray(self.data)[: self.size], offsets, np.arange(self.count))

    def columns(self) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """All strings behind one another, and where each begins, in arrays of their own."""
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
    with cython.nogil:
        for i in range(len(equal)):
            size = first_end[i] - first_begin[i]
            equal[i] = size == second_end[i] - second_begin[i] and is_same(
                first, first_begin[i], first_end[i], second, second_begin[i]
            )
