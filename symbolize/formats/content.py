"""What an input holds: read and decompressed once, piece by piece or as a whole, since it may be larger than the
memory, and without the byte order mark with which PowerShell and editors on Windows save texts."""

import codecs
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, Final

from symbolize.core.compression import GZIP, LZ4, MAGIC_SIZE, ZSTD, Counted, InflateLimits, codec_of, inflate
from symbolize.core.errors import EmptyInput, InputError
from symbolize.core.files import no_such, open_regular, os_error_text
from symbolize.core.mapped import MappedFile
from symbolize.formats.perf import recording_in

CHUNK: Final = 1 << 20
STANDARD_INPUT: Final = "-"
MAX_STREAM: Final = 1 << 40
"""Bytes after decompression that no recording reaches."""
HEAD: Final = 1 << 16
"""Bytes of content that decide what an input is."""
FREE_OUTPUT: Final = 256 << 20
"""Output up to here passes whatever its ratio: it harms nobody, and one sample repeated a million times is smaller."""
FREE_NESTED: Final = 32 << 20
"""The same for what was compressed more than once, where every layer multiplies the ratio of the one around it."""
MAX_RATIO: Final = 200
"""The ratio above which larger output is a bomb: profiles compress 3 to 40 times, zeros 1032 times with deflate and
more with zstd."""
MAX_LAYERS: Final = 2
CODECS: Final = (GZIP, ZSTD, LZ4)
MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
"""How such texts begin, and how they are encoded. No other format begins so."""
LONGEST: Final = max(len(mark) for mark, _ in MARKS)
MAX_INPUT: Final = 4 << 30
"""Bytes, also after decompression, that no profile has: a pipe without end does not fill the memory."""


def source_name(source: str | os.PathLike[str] | BinaryIO) -> str:
    """What errors call the source. Raises TypeError for what is none."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == STANDARD_INPUT else os.fspath(source)
    if not hasattr(source, "read"):
        hint = "; io.BytesIO makes one of bytes" if isinstance(source, bytes | bytearray | memoryview) else ""
        raise TypeError(f"source: expected a path or a binary file object, not {type(source).__name__}{hint}")
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def chunks(source: str | os.PathLike[str] | BinaryIO, name: str, *, is_named: bool = True) -> Iterator[bytes]:
    """The whole of the source in pieces. Of files that nobody named only regular ones are read, as a FIFO blocks."""
    try:
        with _opened(source, name, is_named) as file:
            while chunk := file.read(CHUNK):
                if isinstance(chunk, str):
                    raise InputError(name, "is open as text; a profile is binary")
                yield chunk
    except FileNotFoundError as error:
        if "://" in name:
            raise InputError(name, "is a URL: download it first (curl -o profile.pb.gz URL)") from error
        raise InputError(name, no_such(name)) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in a path, a closed file
        raise InputError(name, f"cannot be read: {os_error_text(error)}") from error


def _opened(source: str | os.PathLike[str] | BinaryIO, name: str, is_named: bool) -> AbstractContextManager[BinaryIO]:
    """The source, open; closed at the end if it was opened here."""
    if not isinstance(source, str | os.PathLike):
        return nullcontext(source)
    if not is_named:
        return open(open_regular(source), "rb")
    if source == STANDARD_INPUT:
        if sys.stdin is None:
            raise InputError(name, "cannot be read: it is closed")
        return nullcontext(sys.stdin.buffer)
    mode = os.stat(source).st_mode
    if stat.S_ISDIR(mode):
        raise InputError(name, "is a directory")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise InputError(name, "is a device or socket, not a file")
    return open(source, "rb")


class Limited(Counted):
    """The same pieces, of at most `limit` bytes, which may be changed meanwhile; more raise InputError."""

    def __init__(self, pieces: Iterable[bytes], name: str, limit: int) -> None:
        super().__init__(pieces)
        self.limit = limit
        self._name = name

    def __next__(self) -> bytes:
        piece = super().__next__()
        if self.size > self.limit:
            raise InputError(self._name, f"holds more than {self.limit} bytes")
        return piece


def peeked(pieces: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """The first `size` bytes or more, as far as they can be read, and all pieces. An error is raised by these."""
    first: list[bytes] = []
    failures: list[InputError] = []
    have = 0
    try:
        while have < size and (piece := next(pieces, b"")):
            first.append(piece)
            have += len(piece)
    except InputError as error:
        failures.append(error)

    def all_pieces() -> Iterator[bytes]:
        yield from first
        for error in failures:
            raise error
        yield from pieces

    return b"".join(first), all_pieces()


def decompressed(pieces: Iterable[bytes], source: str, size: int) -> Iterator[bytes]:
    """The content of `pieces`, which gzip, zstd or lz4 may have compressed, at most `size` bytes then.

    Concatenated streams are one input (RFC 1952 §2.2), zeros may pad the end, and a layer may hold another. Offsets in
    errors count in the compressed input. Pieces that are not compressed come as they are. A second layer may expand to
    32 MiB whatever the ratio.
    """
    packed = pieces if isinstance(pieces, Counted) else Counted(pieces)
    unread: Iterator[bytes] = packed
    for layer in range(MAX_LAYERS + 1):
        head: bytes = b""
        while len(head) < MAGIC_SIZE and (piece := next(unread, b"")):
            head += piece
        codec = codec_of(head, CODECS)
        unread = _joined(head, unread)
        if codec is None:
            break
        if layer == MAX_LAYERS:
            raise InputError(source, f"is compressed more than {MAX_LAYERS} times")
        limits = InflateLimits(size, MAX_RATIO, FREE_NESTED if layer else FREE_OUTPUT, adds=False)
        unread = inflate(unread, codec, source, limits, packed)
    yield from unread


def _joined(head: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from pieces


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
