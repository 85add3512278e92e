"""Inputs that may be larger than the memory: read and decompressed piece by piece."""

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, Final

from symbolize.core.compression import Limits, codec_of, inflate
from symbolize.core.errors import InputError
from symbolize.load.compression import CODECS, FREE_OUTPUT, MAX_LAYERS, MAX_RATIO

CHUNK: Final = 1 << 20
STANDARD_INPUT: Final = "-"

MAX_STREAM: Final = 1 << 40
"""Bytes of input, or of what was decompressed of it, that no recording reaches."""

HEAD: Final = 1 << 16
"""How much is decompressed to see what an input is."""


def source_name(source: str | os.PathLike[str] | BinaryIO) -> str:
    """What errors call the source."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == STANDARD_INPUT else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def chunks(source: str | os.PathLike[str] | BinaryIO, name: str, limit: int = MAX_STREAM) -> Iterator[bytes]:
    """The whole of the source in pieces, at most `limit` bytes."""
    size = 0
    try:
        with _opened(source, name) as file:
            while chunk := file.read(CHUNK):
                if isinstance(chunk, str):
                    raise InputError(name, "is open as text; a profile is binary")
                size += len(chunk)
                if size > limit:
                    raise InputError(name, f"is larger than {limit} bytes")
                yield chunk
    except (OSError, ValueError) as error:  # ValueError: a NUL in a path, a closed file
        raise InputError(name, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _opened(source: str | os.PathLike[str] | BinaryIO, name: str) -> AbstractContextManager[BinaryIO]:
    """The source, open; closed at the end if it was opened here."""
    if not isinstance(source, str | os.PathLike):
        return nullcontext(source)
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


def beginning(head: bytes, name: str) -> bytes:
    """What the content begins with that begins with `head` and may be compressed."""
    for _ in range(MAX_LAYERS):
        codec = codec_of(head, CODECS)
        if codec is None:
            break
        out = bytearray()
        try:
            for piece in inflate([head], codec, name, Limits(MAX_STREAM, MAX_RATIO, FREE_OUTPUT, adds=False)):
                out += piece
                if len(out) >= HEAD:
                    break
        except InputError:
            pass  # whoever reads the whole of it says what is wrong
        head = bytes(out)
    return head


class Replayed(io.RawIOBase):
    """Pieces as a file object, for a reader that takes the whole."""

    def __init__(self, pieces: Iterator[bytes], name: str) -> None:
        self.name = name
        self._pieces = pieces

    def read(self, size: int = -1) -> bytes:
        """The next piece, whatever its size; empty at the end."""
        return next(self._pieces, b"")
