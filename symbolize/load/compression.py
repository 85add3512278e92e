"""Decompression of whole inputs, by magic number, bounded."""

from collections.abc import Iterable, Iterator
from typing import Final

from symbolize.core.compression import GZIP, LZ4, MAGIC_SIZE, ZSTD, Counted, Limits, codec_of, inflate
from symbolize.core.errors import InputError

FREE_OUTPUT: Final = 256 << 20
"""Output up to here passes whatever its ratio: it harms nobody, and one sample repeated a million times is smaller."""

FREE_NESTED: Final = 32 << 20
"""The same for what was compressed more than once, where every layer multiplies the ratio of the one around it."""

MAX_RATIO: Final = 200
"""The ratio above which larger output is a bomb: profiles compress 3 to 40 times, zeros 1032 times with deflate and
more with zstd."""

MAX_LAYERS: Final = 2

CODECS: Final = (GZIP, ZSTD, LZ4)


def decompressed(pieces: Iterable[bytes], source: str, size: int) -> Iterator[bytes]:
    """The content of `pieces`, which gzip, zstd or lz4 may have compressed, at most `size` bytes then.

    Concatenated streams are one input (RFC 1952 §2.2), zeros may pad the end, and a layer may hold another. Offsets in
    errors count in the compressed input. Pieces that are not compressed come as they are.
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
        limits = Limits(size, MAX_RATIO, FREE_NESTED if layer else FREE_OUTPUT, adds=False)
        unread = inflate(unread, codec, source, limits, packed)
    yield from unread


def _joined(head: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from pieces
