"""Inputs that may be larger than the memory: read and decompressed piece by piece."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import BinaryIO, Final

from symbolize.core.compression import Counted
from symbolize.core.errors import InputError
from symbolize.core.files import no_such, open_regular, os_error_text

CHUNK: Final = 1 << 20
STANDARD_INPUT: Final = "-"

PERF_DATA: Final = (b"PERFILE2", b"2ELIFREP", b"PERFFILE")
"""How perf.data begins, in both byte orders, and before that."""

MAX_STREAM: Final = 1 << 40
"""Bytes after decompression that no recording reaches."""

HEAD: Final = 1 << 16
"""Bytes of content that decide what an input is."""


def recording_in(folder: str | os.PathLike[str]) -> str | None:
    """The first file of a recording of `perf record --threads`, which is a folder; None if `folder` is none."""
    path = os.path.join(os.fspath(folder), "data")
    with suppress(OSError, ValueError), open(open_regular(path), "rb", buffering=0) as file:
        return path if file.read(8) in PERF_DATA else None
    return None


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
