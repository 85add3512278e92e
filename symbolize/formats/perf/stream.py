"""Records out of a stream in which some are compressed, or are followed by more bytes than they say."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from symbolize.core.compression import ZSTD, CompressionError
from symbolize.core.errors import InputError
from symbolize.formats.content import FREE_OUTPUT, MAX_RATIO
from symbolize.formats.perf import numbers as n
from symbolize.formats.perf.records import ordinary_end

STEP: Final = 1 << 10
"""Compressed bytes that are decoded at a time, so that the output of one step stays small."""
SIZE_AT: Final = 6
PREFIX: Final = 16
"""Bytes in front of the compressed ones: the header of a record, and their number."""
MAX_PART: Final = (1 << 16) - PREFIX - 1
"""Compressed bytes that perf puts into a record."""
SKIPPED_BY: Final = {n.TRACING_DATA: 4, n.AUXTRACE: 8}
"""How large the number is, behind the header, of the bytes that follow a record."""
ALIGNMENT: Final = 8
MAX_RECORD: Final = 1 << 16
"""No record is larger."""


class Stream:
    """The records in `pieces`, which begin with a record, as pieces again, of whole records or parts of them.

    `problems` are sentences on what was wrong; the stream ends where it cannot go on.

    The size of a COMPRESSED2 record wraps around at 65,536. If it is smaller than what the number of bytes behind the
    header says, that number counts, no padding follows, and beyond 65,519 bytes there are further headers of 16 bytes
    in between, with the size of their part (R295, size of compressed records).
    """

    def __init__(self, pieces: Iterable[bytes | memoryview], is_big: bool, name: str) -> None:
        self.problems: list[str] = []
        self.has_trace_data = False
        self._pieces = iter(pieces)
        self._order: Final = "big" if is_big else "little"
        self._is_big = is_big
        self._name = name
        self._data = b""
        self._at = 0
        self._tail = b""
        self._decoder: Any = None
        self._packed = self._unpacked = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            end = ordinary_end(self._data, self._at, len(self._data), self._is_big)
            if end > self._at:
                yield self._data[self._at : end]
                self._at = end
            if not self._has(n.RECORD_HEADER):
                break
            kind, size = self._number(0, 4), self._number(SIZE_AT, 2)
            if kind == n.COMPRESSED2:
                parts = self._compressed2(size)
            elif size < n.RECORD_HEADER or not self._has(size):
                break
            elif kind == n.COMPRESSED:
                parts = iter([self._take(size)[n.RECORD_HEADER :]])
            elif kind in SKIPPED_BY:
                self._skip(kind, size)
                continue
            else:  # it was cut off before
                continue
            try:
                for part in parts:
                    yield from self._inflated(part)
            except CompressionError as error:
                self.problems.append(f"The compressed records are damaged; the rest was left out: {error.problem}.")
                return
        if self._at < len(self._data) or self._tail:
            yield self._data[self._at :] or self._tail

    def _has(self, count: int) -> bool:
        """Whether so many bytes come next; reads pieces until they do."""
        if len(self._data) - self._at >= count:
            return True
        parts = [self._data[self._at :]]
        have = len(parts[0])
        while have < count and (piece := next(self._pieces, b"")):
            parts.append(bytes(piece))
            have += len(piece)
        self._data, self._at = b"".join(parts), 0
        return have >= count

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self, at: int, size: int) -> int:
        """An integer behind the position."""
        return int.from_bytes(self._data[self._at + at : self._at + at + size], self._order)

    def _skip(self, kind: int, size: int) -> None:
        """Move over a record and the bytes behind it."""
        left = self._number(n.RECORD_HEADER, SKIPPED_BY[kind]) if size > n.RECORD_HEADER else 0
        self.has_trace_data |= kind == n.AUXTRACE
        self._take(size)
        if kind == n.TRACING_DATA:
            left += -left % ALIGNMENT
        while left and self._has(1):
            step = min(left, len(self._data) - self._at)
            self._at += step
            left -= step

    def _compressed2(self, size: int) -> Iterator[bytes]:
        """The compressed bytes of a record of the second kind, whose size overflows where these are many (R295, size of
        compressed records)."""
        if not self._has(PREFIX):
            self._at = len(self._data)
            return
        left = self._number(n.RECORD_HEADER, 8)
        whole = PREFIX + left + -(PREFIX + left) % ALIGNMENT
        if whole <= size:
            if self._has(size):
                yield self._take(size)[PREFIX : PREFIX + left]
            else:
                self._at = len(self._data)
                raise CompressionError(self._name, "the last of them is cut off")
            return
        if not left:
            raise CompressionError(self._name, "one has no size")
        part = MAX_PART
        while left > 0 and self._has(PREFIX):
            self._take(PREFIX)
            part = min(part, left)
            if not self._has(part):
                self._at = len(self._data)
                return
            yield self._take(part)
            left -= part + PREFIX
            if left > 0 and self._has(PREFIX):
                part = self._number(SIZE_AT, 2) - PREFIX
                if part <= 0:
                    raise CompressionError(self._name, "a part has no size")

    def _inflated(self, part: bytes) -> Iterator[bytes]:
        """The records in compressed bytes, of which the last may end in the next part of the stream."""
        for at in range(0, len(part), STEP):
            step = part[at : at + STEP]
            self._packed += len(step)
            out = self._inflate(step)
            self._unpacked += len(out)
            if self._unpacked > max(FREE_OUTPUT, MAX_RATIO * self._packed):
                raise InputError(self._name, "has compressed records that expand as only a bomb does")
            data = self._tail + out
            end = ordinary_end(data, 0, len(data), self._is_big)
            if end:
                yield data[:end]
            self._tail = data[end:]
            if len(self._tail) > MAX_RECORD:
                raise CompressionError(self._name, "they hold no records")

    def _inflate(self, step: bytes) -> bytes:
        out = b""
        while step:
            if self._decoder is None:
                self._decoder = ZSTD.decoder(self._name)
            try:
                out += self._decoder.decompress(step)
            except MemoryError:
                raise
            except Exception as error:  # the library's own
                raise CompressionError(self._name, str(error)) from error
            step = self._decoder.unused_data or b""
            if step or getattr(self._decoder, "eof", False):
                self._decoder = None
        return out
