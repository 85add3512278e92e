"""Inputs that may be larger than the memory: read and decompressed piece by piece."""

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, Final

from symbolize.errors import InputError
from symbolize.load import compression
from symbolize.load.compression import Codec, CutShort

CHUNK: Final = 1 << 20
STANDARD_INPUT: Final = "-"

MAX_STREAM: Final = 1 << 40
"""Bytes of input, or of what was decompressed of it, that no recording reaches."""

HEAD: Final = 1 << 16
"""How much is decompressed to see what an input is."""

MAGIC_SIZE: Final = 4


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


def codec_of(head: bytes) -> Codec | None:
    """The format in which data that begins with `head` is compressed."""
    start = head[:MAGIC_SIZE]
    return next((codec for codec in compression.CODECS if start.startswith(codec.magics)), None)


def beginning(head: bytes, name: str) -> bytes:
    """What the content begins with that begins with `head` and may be compressed."""
    for _ in range(compression.MAX_LAYERS):
        codec = codec_of(head)
        if codec is None:
            break
        out = bytearray()
        try:
            whole = Counted(iter([head]))
            for piece in inflate(whole, codec, name, whole):
                out += piece
                if len(out) >= HEAD:
                    break
        except InputError:
            pass  # whoever reads the whole of it says what is wrong
        head = bytes(out)
    return head


class Counted:
    """An iterator over the pieces of another, which counts their bytes in `size`."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.size = 0
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self.size += len(piece)
        return piece


def decompressed(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The content of `pieces`, whatever it is compressed with; zeros may pad the end, a layer may hold another."""
    packed = pieces = pieces if isinstance(pieces, Counted) else Counted(pieces)
    for layer in range(compression.MAX_LAYERS + 1):
        head = b""
        while len(head) < MAGIC_SIZE and (piece := next(pieces, b"")):
            head += piece
        codec = codec_of(head)
        pieces = _joined(head, pieces)
        if codec is None:
            break
        if layer == compression.MAX_LAYERS:
            raise InputError(name, f"is compressed more than {compression.MAX_LAYERS} times")
        pieces = inflate(pieces, codec, name, packed, compression.FREE_NESTED if layer else compression.FREE_OUTPUT)
    yield from pieces


def _joined(head: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from pieces


def inflate(
    pieces: Iterator[bytes], codec: Codec, name: str, packed: Counted, free: int = compression.FREE_OUTPUT
) -> Iterator[bytes]:
    """What one or more streams hold that come in pieces; `packed` counts what was read of the input itself."""
    position = size = 0
    rest = b""
    first = True
    while True:
        while len(rest) < MAGIC_SIZE and (piece := next(pieces, b"")):
            rest += piece
        if not rest:
            return
        if not first and not rest.startswith(codec.magics):
            while rest and not any(rest):
                rest = next(pieces, b"")
            if not rest:
                return
            raise InputError(name, f"has something else after its {codec.name} stream", position)
        first = False
        decoder = codec.decoder(name)
        at = 0
        while not decoder.eof:
            if not rest:
                rest = next(pieces, b"")
            if not rest:
                raise CutShort(name, f"{codec.name} stream is cut short", position)
            step = rest[at : at + codec.step]
            at += len(step)
            try:
                out = decoder.decompress(step)
            except Exception as error:  # each library has its own error class, and one of them is RuntimeError
                raise InputError(name, f"{codec.name} stream is damaged ({error})", position) from error
            unused = len(decoder.unused_data or b"")
            at -= unused
            position += len(step) - unused
            if at == len(rest):
                rest, at = b"", 0
            size += len(out)
            if size > MAX_STREAM:
                raise InputError(name, f"{codec.name} stream holds more than {MAX_STREAM} bytes", position)
            compression.check_ratio(size, min(position, packed.size), free, codec, name, position)
            if out:
                yield out
        rest = rest[at:]


class Replayed(io.RawIOBase):
    """Pieces as a file object, for a reader that takes the whole."""

    def __init__(self, pieces: Iterator[bytes], name: str) -> None:
        self.name = name
        self._pieces = pieces

    def read(self, size: int = -1) -> bytes:
        """The next piece, whatever its size; empty at the end."""
        return next(self._pieces, b"")
