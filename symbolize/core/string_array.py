"""Strings by number, behind one another in one array."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Int64, UInt8, distinct_inverse

LONG = 256
"""Bytes that names have on average where they are longer than those of programs."""


class StringArray(Sequence[bytes]):
    """Strings by number: string `i` is `data[offsets[rows[i]]:offsets[rows[i] + 1]]`, read when asked for."""

    def __init__(self, data: UInt8, offsets: NDArray[Any], rows: NDArray[Any]) -> None:
        self.data = data
        self.offsets = offsets
        self.rows = rows
        self._view = data.data

    @classmethod
    def of(cls, texts: Iterable[bytes]) -> Self:
        """The strings `texts`. Where they are long equal ones are kept once: many functions may share a name."""
        if isinstance(texts, cls):
            return texts
        known = list(texts)
        rows = np.arange(len(known))
        if sum(map(len, known)) > LONG * len(known):
            numbers: dict[bytes, int] = {}
            rows = np.array([numbers.setdefault(text, len(numbers)) for text in known], np.int64)
            known = list(numbers)
        offsets = np.fromiter(accumulate(map(len, known), initial=0), np.int64, len(known) + 1)
        return cls(np.frombuffer(b"".join(known), np.uint8), offsets, rows)

    @classmethod
    def empty(cls, count: int) -> Self:
        """So many empty strings."""
        return cls(np.zeros(0, np.uint8), np.zeros(2, np.int64), np.zeros(count, np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, row: int) -> bytes: ...
    @overload
    def __getitem__(self, row: slice) -> list[bytes]: ...
    def __getitem__(self, row: int | slice) -> bytes | list[bytes]:
        if isinstance(row, slice):
            return self.take(np.arange(*row.indices(len(self))))
        string = int(self.rows[row])
        return bytes(self._view[int(self.offsets[string]) : int(self.offsets[string + 1])])

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.take(np.arange(len(self))))

    def take(self, rows: NDArray[Any]) -> list[bytes]:
        """The strings of some rows. Where many rows share a long string it is one object."""
        some, which = self.only(rows).distinct()
        begin, end = some.places()
        texts = [bytes(self._view[i:j]) for i, j in zip(begin.tolist(), end.tolist(), strict=True)]
        return texts if which is None else [texts[number] for number in which.tolist()]

    def distinct(self) -> tuple["StringArray", Int64 | None]:
        """Where many rows share long strings, each of them once, in order of appearance, and which each row is; else
        all rows as they are (None)."""
        if int(self.lengths().sum()) <= 2 * len(self.data):
            return self, None
        numbers, which = distinct_inverse(self.rows)
        first = np.empty(len(numbers), np.int64)
        first[which[::-1]] = np.arange(len(which))[::-1]
        order = np.argsort(first)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return StringArray(self.data, self.offsets, numbers[order]), place[which]

    def only(self, rows: NDArray[Any]) -> "StringArray":
        """Some rows, of the same data."""
        return StringArray(self.data, self.offsets, self.rows[rows])

    def places(self) -> tuple[Int64, Int64]:
        """Where in `data` each string begins and ends."""
        return self.offsets[self.rows].astype(np.int64), self.offsets[self.rows + 1].astype(np.int64)

    def lengths(self) -> Int64:
        """How long each string is."""
        begin, end = self.places()
        return end - begin

    def with_changed(self, rows: Int64, texts: list[bytes]) -> "StringArray":
        """The same strings, but `texts` at some rows."""
        if not len(rows):
            return self
        new, count = StringArray.of(texts), len(self.offsets) - 1
        numbers = self.rows.astype(np.int64)
        numbers[rows] = count + new.rows
        offsets = np.concatenate((self.offsets[:-1].astype(np.int64), new.offsets + int(self.offsets[-1])))
        return StringArray(np.concatenate((self.data[: int(self.offsets[-1])], new.data)), offsets, numbers)


def joined_arrays(parts: Sequence[StringArray]) -> StringArray:
    """Strings behind one another."""
    data_before = accumulate((len(part.data) for part in parts), initial=0)
    strings_before = accumulate((len(part.offsets) for part in parts), initial=0)
    return StringArray(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.offsets + shift for part, shift in zip(parts, data_before, strict=False)]),
        np.concatenate([part.rows + shift for part, shift in zip(parts, strings_before, strict=False)]),
    )
