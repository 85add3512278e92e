"""Strings of a table by number, behind one another in one array."""

from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

UInt32 = NDArray[np.uint32]


class Texts(Sequence[bytes]):
    """Strings by number: string `rows[i]` is `data[offsets[rows[i]]:offsets[rows[i] + 1]]`, read when asked for."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[Any], rows: NDArray[Any]) -> None:
        self._data = data.data
        self._offsets = offsets
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, row: int) -> bytes: ...
    @overload
    def __getitem__(self, row: slice) -> list[bytes]: ...
    def __getitem__(self, row: int | slice) -> bytes | list[bytes]:
        if isinstance(row, slice):
            return self.take(np.arange(*row.indices(len(self))))
        return self.take(np.array([row]))[0]

    def take(self, rows: NDArray[Any]) -> list[bytes]:
        """The strings of some rows."""
        strings = self._rows[rows]
        begins, ends = self._offsets[strings].tolist(), self._offsets[strings + 1].tolist()
        return [bytes(self._data[begin:end]) for begin, end in zip(begins, ends, strict=True)]


class TextPool:
    """Strings by number, each once, in the order in which they come; string 0 is empty."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {b"": 0}

    def add(self, texts: Iterable[bytes]) -> UInt32:
        """The numbers of `texts`."""
        numbers = self._numbers
        return np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.uint32)

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """All strings behind one another, and where each begins."""
        text = np.frombuffer(b"".join(self._numbers), np.uint8)
        lengths = np.fromiter(map(len, self._numbers), np.int64, len(self._numbers))
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        return text, offsets.astype(np.uint32 if len(text) < 1 << 32 else np.uint64)
