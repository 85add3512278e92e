"""Decompression: the codecs, one decompressor for streams, one policy against bombs, one error."""

import importlib
import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from symbolize.core.errors import InputError
from symbolize.core.mapped import let_go

MAGIC_SIZE: Final = 6
"""Bytes by which every codec is recognized."""

MAX_WINDOW: Final = 1 << 27
"""Bytes of the largest dictionary that a stream may ask for."""

ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
SKIPPABLE: Final = tuple(bytes((0x50 + i, 0x2A, 0x4D, 0x18)) for i in range(16))
"""Frames of user data, which zstd and lz4 share and every decoder passes over."""

WBITS_GZIP: Final = 31
WBITS_ZLIB: Final = 15
WBITS_RAW: Final = -15
WBITS_ZLIB_OR_GZIP: Final = 47

DEFLATE_MAX_RATIO: Final = 1032
"""No deflate stream expands further."""
ZSTD_MAX_RATIO: Final = 4096
"""Debug sections reach a few dozen; zstd itself has no bound, so one is set here."""
READ_AT_ONCE: Final = 1 << 18
"""Bytes of output of unknown size that are allocated at a time."""
MAX_IN_MEMORY: Final = 1 << 28
"""Bytes of what streams of known size hold that are kept in memory, not in a file."""
UNLIMITED: Final = 1 << 62
FREE_EXACT: Final = 64
"""Bytes that a stream of known size may have beyond the ratio of its codec, for what is smallest."""


class Spool:
    """A file that is gone when nothing refers to its bytes any more."""

    def __init__(self) -> None:
        import tempfile  # which takes as long as much of a start

        self._file = tempfile.TemporaryFile(prefix="symbolize-")  # noqa: SIM115
        self._size = 0

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes; where they begin."""
        begin = self._size
        self._file.write(data)
        self._size += len(data)
        return begin

    def mapped(self) -> memoryview:
        """All bytes, mapped for reading."""
        self._file.flush()
        if not self._size:
            return memoryview(b"")
        return memoryview(mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ))


class Codec(NamedTuple):
    """A compressed format. `step` bytes of input are decoded at a time, so that one step's output stays small; `ratio`
    is how many times a stream expands at most, if that is known."""

    name: str
    magics: tuple[bytes, ...]
    step: int
    decoder: Callable[[str], Any]
    ratio: int | None = None


class InflateLimits(NamedTuple):
    """How large output may become: `ratio` times the compressed input, and `free` bytes in addition, or instead where
    not `adds`, but at most `size` bytes."""

    size: int
    ratio: int
    free: int
    adds: bool = True

    def most(self, packed: int) -> int:
        """Bytes that `packed` compressed ones may expand to."""
        share = self.ratio * packed
        return min(self.size, self.free + share if self.adds else max(self.free, share))


class CompressionError(InputError):
    """A compressed input is damaged, or expands out of all proportion. Offsets count in the compressed input."""


class CutShort(CompressionError):
    """A stream that ends too early."""


class MissingCodec(CompressionError):
    """A stream that needs a Python package which is not installed."""


class Counted:
    """An iterator over the pieces of another, which counts their bytes in `size`."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.size = 0
        self._pieces = iter(pieces)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self.size += len(piece)
        return piece


def zlib_module() -> Any:
    """`isal.isal_zlib`, the fastest inflater that works in pieces, or `zlib`, which has the same interface."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return importlib.import_module("zlib")


def _zstd(source: str) -> Any:
    return _needed("zstandard", "zstd", source).ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()


def _lz4(source: str) -> Any:
    return _needed("lz4.frame", "lz4", source).LZ4FrameDecompressor()


def _xz(source: str) -> Any:
    lzma = _needed("lzma", "xz", source)
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, MAX_WINDOW)


def _needed(module: str, name: str, source: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        how = ": pip install lz4" if package == "lz4" else ""
        raise MissingCodec(source, f"is {name} compressed, which needs the Python package {package}{how}") from None


def _deflated(wbits: int) -> Callable[[str], Any]:
    return lambda source: zlib_module().decompressobj(wbits)


GZIP: Final = Codec("gzip", (b"\x1f\x8b\x08",), 16 << 10, _deflated(WBITS_GZIP), DEFLATE_MAX_RATIO)
ZSTD: Final = Codec("zstd", (ZSTD_MAGIC, *SKIPPABLE), 4 << 10, _zstd, ZSTD_MAX_RATIO)
LZ4: Final = Codec("lz4", (LZ4_MAGIC, *SKIPPABLE), 16 << 10, _lz4)
XZ: Final = Codec("xz", (b"\xfd7zXZ\0",), 4 << 10, _xz)
ZLIB: Final = Codec("zlib", (), 16 << 10, _deflated(WBITS_ZLIB), DEFLATE_MAX_RATIO)
ZLIB_OR_GZIP: Final = Codec("zlib", (), 16 << 10, _deflated(WBITS_ZLIB_OR_GZIP), DEFLATE_MAX_RATIO)
DEFLATE: Final = Codec("deflate", (), 16 << 10, _deflated(WBITS_RAW), DEFLATE_MAX_RATIO)
"""These three are not recognized: the file around them names them."""


def gzipped(pieces: Iterable[Any]) -> Iterator[bytes]:
    """Pieces as one gzip stream, whose header names no file and no time, so that equal pieces make equal bytes."""
    try:
        from isal import isal_zlib

        compressor: Any = isal_zlib.compressobj(2, isal_zlib.DEFLATED, WBITS_GZIP)
    except ImportError:
        import zlib

        compressor = zlib.compressobj(6, zlib.DEFLATED, WBITS_GZIP)
    for piece in pieces:
        if chunk := compressor.compress(piece):
            yield chunk
    yield compressor.flush()


def codec_of(head: bytes | memoryview, codecs: tuple[Codec, ...]) -> Codec | None:
    """The one of `codecs` in which data that begins with `head` is compressed."""
    start = bytes(head[:MAGIC_SIZE])
    return next((codec for codec in codecs if start.startswith(codec.magics)), None)


def inflate(
    pieces: Iterable[bytes | memoryview],
    codec: Codec,
    source: str,
    limits: InflateLimits,
    packed: Counted | int | None = None,
    is_single: bool = False,
) -> Iterator[bytes]:
    """What one or more streams hold, one after another, that come in pieces of any size; zeros may pad the end. Of what
    `is_single` only the first stream is read.

    The output is judged by the compressed bytes that were read, of the input itself where `packed` counts those of one
    that is compressed more than once (R277, ratio of all layers), or by those of the whole input, `packed`, where they
    are known. Raises CompressionError about `source`.
    """
    rest, unread = memoryview(b""), iter(pieces)
    position = size = 0
    while True:
        while len(rest) < MAGIC_SIZE and (piece := next(unread, b"")):
            rest = memoryview(bytes(rest) + piece if rest else piece)
        if not rest:
            return
        if position and not bytes(rest[:MAGIC_SIZE]).startswith(codec.magics):
            while rest and not any(rest):
                rest = memoryview(next(unread, b""))
            if not rest:
                return
            raise CompressionError(source, f"has something else after its {codec.name} stream", position)
        decoder = codec.decoder(source)
        while not decoder.eof:
            rest = rest or memoryview(next(unread, b""))
            if not rest:
                raise CutShort(source, f"{codec.name} stream is cut short", position)
            step = rest[: codec.step]
            try:
                out = decoder.decompress(step)
            except MemoryError:
                raise
            except Exception as error:  # each library has its own error class, and one of them is RuntimeError
                raise CompressionError(source, f"{codec.name} stream is damaged ({error})", position) from error
            used = len(step) - len(decoder.unused_data or b"")
            rest = rest[used:]
            position += used
            size += len(out)
            if packed is None:
                whole = position
            else:
                whole = packed if isinstance(packed, int) else min(position, packed.size)
            if size > limits.most(whole):
                raise _too_large(codec, source, size, whole, limits, position)
            if out:
                yield out
        if is_single:
            return


def _too_large(
    codec: Codec, source: str, size: int, packed: int, limits: InflateLimits, position: int | None = None
) -> CompressionError:
    if size > limits.size:
        return CompressionError(source, f"{codec.name} stream holds more than {limits.size} bytes", position)
    ratio = size // max(packed, 1)
    return CompressionError(source, f"{codec.name} stream expands {ratio} times, as only a bomb does", position)


def _inflate_whole(data: bytes | memoryview, codec: Codec, size: int) -> memoryview | None:
    """What the stream `data` of ZLIB or DEFLATE holds, at most `size` bytes, by libdeflate: four fifths of the time of
    those that also work in pieces. None without it, and where the stream is damaged, of which it says nothing more."""
    try:
        deflate = importlib.import_module("deflate")
    except ImportError:
        return None
    read = deflate.zlib_decompress if codec is ZLIB else deflate.deflate_decompress
    try:
        return memoryview(read(data, size)).toreadonly()
    except deflate.DeflateError:
        return None


def _inflate_to_file(data: bytes | memoryview, codec: Codec, size: int, source: str) -> memoryview | None:
    """What the stream `data` holds, not much more than `size` bytes, in a temporary file that is mapped. None without
    room for one. Raises CompressionError."""
    limits = InflateLimits(UNLIMITED, 1, UNLIMITED)
    try:
        spool = Spool()
        with suppress(CutShort):
            for piece in inflate(released(data), codec, source, limits, is_single=True):
                if spool.write(piece) > size:
                    break
        return spool.mapped()
    except OSError:
        return None


def released(data: bytes | memoryview) -> Iterator[memoryview]:
    """`data` in pieces, each of which leaves memory after it, if it can come back."""
    for begin in range(0, len(data), READ_AT_ONCE):
        yield memoryview(data)[begin : begin + READ_AT_ONCE]
        let_go(data, begin, READ_AT_ONCE)


def inflate_exact(data: bytes | memoryview, codec: Codec, size: int, source: str = "") -> bytes | memoryview:
    """What the stream `data` of ZLIB, DEFLATE or ZSTD holds, `size` bytes according to the file around it.

    A size that no stream of this length expands to is refused before anything is allocated for it (R99, sizes of
    compressed sections). Raises CompressionError.
    """
    if codec.ratio is not None and size > len(data) * codec.ratio + FREE_EXACT:
        raise CompressionError(source, f"claims to expand from {len(data)} to {size} bytes")
    out: bytes | memoryview | None = None
    if size > MAX_IN_MEMORY:
        out = _inflate_to_file(data, codec, size, source)
    elif codec in (ZLIB, DEFLATE) and size:
        out = _inflate_whole(data, codec, size)
    if out is None:
        out, _ = first_bytes(data, codec, size + 1, source, at_once=size + 1)
    if len(out) != size:
        raise CompressionError(source, f"{codec.name} stream does not expand to the {size} bytes that are announced")
    return out


def first_bytes(
    data: bytes | memoryview, codec: Codec, count: int, source: str = "", at_once: int = READ_AT_ONCE
) -> tuple[bytes, bool]:
    """The first `count` bytes, at least 1, of the stream `data`, and whether it has more or is cut short (always False
    for ZSTD, which does not report it). ZSTD is read `at_once` bytes at a time. Raises CompressionError."""
    try:
        if codec is ZSTD:
            zstandard = _needed("zstandard", "zstd", source)
            reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(data)
            pieces, left = [], count
            while left and (piece := reader.read(min(left, at_once))):
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces), False
        decoder = codec.decoder(source)
        return bytes(decoder.decompress(data, max(count, 1))), not decoder.eof
    except (CompressionError, MemoryError):
        raise
    except Exception as error:  # each library has its own
        raise CompressionError(source, f"{codec.name} stream is damaged ({error})") from error
