"""Decompression of whole inputs, by magic number, bounded."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from symbolize.errors import InputError

MAX_OUTPUT: Final = 4 << 30
"""Bytes after decompression that no profile reaches."""

FREE_OUTPUT: Final = 256 << 20
"""Output up to here passes whatever its ratio: it harms nobody, and one sample repeated a million times is smaller."""

FREE_NESTED: Final = 32 << 20
"""The same for what was compressed more than once, where every layer multiplies the ratio of the one around it."""

MAX_RATIO: Final = 200
"""The ratio above which larger output is a bomb: profiles compress 3 to 40 times, zeros 1032 times with deflate and
more with zstd."""

MAX_LAYERS: Final = 2

MAGIC_SIZE: Final = 4

ZSTD: Final = b"\x28\xb5\x2f\xfd"
LZ4: Final = b"\x04\x22\x4d\x18"
SKIPPABLE: Final = tuple(bytes((0x50 + i, 0x2A, 0x4D, 0x18)) for i in range(16))
"""Frames of user data, which zstd and lz4 share and every decoder passes over."""


class Codec(NamedTuple):
    """A compressed format: `step` bytes of input are decoded at a time, so that one step's output stays small."""

    name: str
    magics: tuple[bytes, ...]
    step: int
    decoder: Callable[[str], Any]


def _gzip(source: str) -> Any:
    try:
        return importlib.import_module("isal.isal_zlib").decompressobj(31)
    except ImportError:
        return importlib.import_module("zlib").decompressobj(31)


def _zstd(source: str) -> Any:
    return _needed("zstandard", "zstd", source).ZstdDecompressor().decompressobj()


def _lz4(source: str) -> Any:
    return _needed("lz4.frame", "lz4", source).LZ4FrameDecompressor()


def _needed(module: str, name: str, source: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(source, f"is {name} compressed, which needs the Python package {package}") from None


CODECS: Final = (
    Codec("gzip", (b"\x1f\x8b\x08",), 16 << 10, _gzip),
    Codec("zstd", (ZSTD, *SKIPPABLE), 4 << 10, _zstd),
    Codec("lz4", (LZ4, *SKIPPABLE), 16 << 10, _lz4),
)


class CutShort(InputError):
    """A stream that ends too early."""


def decompress(data: bytes | memoryview, source: str) -> bytes | memoryview:
    """What gzip, zstd or lz4 compressed `data` holds; the same `data` if it is not compressed.

    Concatenated streams are one input (RFC 1952 §2.2), zeros may pad the end, and a layer may hold another. Offsets
    in errors count in the compressed input.
    """
    if _codec(data) is None:
        return data
    out = bytearray()
    for piece in pieces(data, source):
        out += piece
    return memoryview(out)


def pieces(data: bytes | memoryview, source: str) -> Iterator[bytes | memoryview]:
    """What `decompress` gives, piece by piece; only the data of an inner layer is in memory as a whole."""
    packed = len(data)
    for layer in range(MAX_LAYERS):
        codec = _codec(data)
        if codec is None:
            break
        inflated = _inflate(memoryview(data), codec, source, packed, FREE_NESTED if layer else FREE_OUTPUT)
        head = b""
        while len(head) < MAGIC_SIZE and (piece := next(inflated, None)) is not None:
            head += piece
        if _codec(head) is None:
            yield head
            yield from inflated
            return
        data = memoryview(head + b"".join(inflated))
    if _codec(data) is not None:
        raise InputError(source, f"is compressed more than {MAX_LAYERS} times")
    yield data


def _codec(data: bytes | memoryview) -> Codec | None:
    start = bytes(data[:MAGIC_SIZE])
    return next((codec for codec in CODECS if start.startswith(codec.magics)), None)


def check_ratio(size: int, packed: int, free: int, codec: Codec, source: str, position: int) -> None:
    """Refuse output of `size` bytes, of which `free` pass in any case, made of `packed` bytes of the input itself: the
    ratio is that of all layers together (rule R277)."""
    if size > free and size > MAX_RATIO * packed:
        ratio = size // max(packed, 1)
        raise InputError(source, f"{codec.name} stream expands {ratio} times, as only a bomb does", position)


def _inflate(data: memoryview, codec: Codec, source: str, packed: int, free: int) -> Iterator[bytes]:
    """All streams of `data`, one after another, in an input of `packed` bytes."""
    position = size = 0
    while position < len(data):
        if position and not bytes(data[position : position + MAGIC_SIZE]).startswith(codec.magics):
            if not any(data[position:]):
                break
            raise InputError(source, f"has something else after its {codec.name} stream", position)
        decoder = codec.decoder(source)
        while not decoder.eof:
            read = data[position : position + codec.step]
            if not read:
                raise CutShort(source, f"{codec.name} stream is cut short", len(data))
            try:
                piece = decoder.decompress(read)
            except Exception as error:  # each library has its own error class, and one of them is RuntimeError
                raise InputError(source, f"{codec.name} stream is damaged ({error})", position) from error
            position += len(read) - len(decoder.unused_data or b"")
            size += len(piece)
            if size > MAX_OUTPUT:
                raise InputError(source, f"{codec.name} stream holds more than {MAX_OUTPUT} bytes", position)
            check_ratio(size, min(position, packed), free, codec, source, position)
            yield piece
