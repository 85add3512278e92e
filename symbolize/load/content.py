"""What an input holds: read and decompressed once, piece by piece or as a whole, and without the byte order mark with
which PowerShell and editors on Windows save texts."""

import codecs
import os
from collections.abc import Iterator
from typing import BinaryIO, Final

from symbolize.core.compression import MAGIC_SIZE, codec_of
from symbolize.core.errors import EmptyInput, InputError
from symbolize.core.mapped import MappedFile
from symbolize.load.compression import CODECS, decompressed
from symbolize.load.streams import HEAD, MAX_STREAM, STANDARD_INPUT, Limited, chunks, peeked, recording_in, source_name

MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
"""How such texts begin, and how they are encoded. No other format begins so."""
LONGEST: Final = max(len(mark) for mark, _ in MARKS)


def without_mark(pieces: Iterator[bytes], source: str) -> Iterator[bytes]:
    """The content of `pieces`; of a text with a byte order mark, its text in UTF-8 without the mark. Raises InputError
    for one that is not encoded as its mark says."""
    head = b""
    while len(head) < LONGEST and (piece := next(pieces, b"")):
        head += piece
    for mark, encoding in MARKS:
        if head.startswith(mark):
            if encoding == "utf-8":
                head = head[len(mark) :]
            elif is_text(head[len(mark) :], encoding):
                pieces, head = recoded(head[len(mark) :], pieces, encoding, source), b""
            break
    if head:
        yield head
    yield from pieces


def is_text(data: bytes, encoding: str) -> bool:
    """Whether data may begin a text: other data may begin with the two bytes of a mark."""
    try:
        return "\0" not in codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeError:
        return False


def recoded(first: bytes, pieces: Iterator[bytes], encoding: str, source: str) -> Iterator[bytes]:
    """The text of `first` and `pieces` in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        if text := decoder.decode(first):
            yield text.encode()
        for piece in pieces:
            if text := decoder.decode(piece):
                yield text.encode()
        decoder.decode(b"", final=True)
    except UnicodeError as error:
        raise InputError(source, f"begins as {encoding.upper()} text does, and is none") from error


MAX_INPUT: Final = 4 << 30
"""Bytes, also after decompression, that no profile has: a pipe without end does not fill the memory."""


class Content:
    """The content of an input, which may be compressed; offsets in errors about it count in what it holds.

    The content of a recording that is a folder is that of its first file. `name` is what errors call the input, `head`
    the first bytes of the content, up to `HEAD` or somewhat more. One of `pieces`, `whole` and `mapped` is asked for,
    once. Raises InputError, as these do, where nothing can be read.
    """

    def __init__(self, source: str | os.PathLike[str] | BinaryIO) -> None:
        self.name = source_name(source)
        if isinstance(source, str | os.PathLike) and os.path.isdir(source):
            source = recording_in(source) or source
        self._source = source
        self._packed = Limited(chunks(source, self.name), self.name, MAX_INPUT)
        first, pieces = peeked(self._packed, MAGIC_SIZE)
        self._is_plain = codec_of(first, CODECS) is None
        content = decompressed(pieces, self.name, MAX_STREAM)
        self.head, self._pieces = peeked(without_mark(content, self.name), HEAD)

    @property
    def packed_size(self) -> int:
        """Bytes of the input that were read so far, compressed as they are."""
        return self._packed.size

    def pieces(self, *, is_recording: bool = False) -> Iterator[bytes]:
        """The content in pieces. Only that of a recording, of which pieces are not retained, may be of any size."""
        limit = MAX_STREAM if is_recording else MAX_INPUT
        self._packed.limit = limit
        return Limited(self._pieces, self.name, limit)

    def whole(self) -> memoryview:
        """All of the content, in memory. An empty one raises InputError."""
        data = bytearray()
        for piece in self.pieces():
            data += piece
        if not data:
            raise EmptyInput(self.name, "is empty")
        return memoryview(data)

    @property
    def path(self) -> str:
        """The path of the input itself, empty if it has none."""
        is_path = isinstance(self._source, str | os.PathLike) and self._source != STANDARD_INPUT
        return os.fspath(self._source) if is_path else ""  # type: ignore[arg-type]

    def mapped(self) -> MappedFile | None:
        """The input itself, mapped for reading, if it is a regular file that is not compressed."""
        if not self._is_plain or not isinstance(self._source, str | os.PathLike) or self._source == STANDARD_INPUT:
            return None
        return MappedFile(self._source) if os.path.isfile(self._source) else None
