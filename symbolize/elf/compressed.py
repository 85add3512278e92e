"""Compressed sections: SHF_COMPRESSED (gABI) and the older .zdebug (rules R97–R99)."""

import zlib
from typing import Any

ZLIB_MAX_RATIO = 1032
"""No deflate stream expands further; a header that claims more is corrupt."""
ZSTD_MAX_RATIO = 4096
"""Debug sections reach a few dozen; zstd itself has no bound, so one is set here."""
MAX_SIZE = 1 << 34


def inflate_section(data: memoryview, is_64: bool, big_endian: bool, limit: int = MAX_SIZE) -> bytes:
    """The contents of an SHF_COMPRESSED section. Raises ValueError with a sentence if it is corrupt (rule R97).

    It is also raised if the contents are larger than `limit` bytes.
    """
    header_size = 24 if is_64 else 12
    if len(data) < header_size:
        raise ValueError("compression header is cut off")
    order: Any = "big" if big_endian else "little"
    kind = int.from_bytes(data[0:4], order)
    size = int.from_bytes(data[8:16] if is_64 else data[4:8], order)
    body = data[header_size:]
    check_limit(size, len(data), limit)
    if kind == 1:
        return inflate_zlib(body, size)
    if kind == 2:
        return inflate_zstd(body, size)
    raise ValueError(f"unknown compression type {kind}")


def inflate_zdebug(data: memoryview, limit: int = MAX_SIZE) -> bytes:
    """The contents of a .zdebug section: `ZLIB`, a big-endian size, a zlib stream (rule R98)."""
    if bytes(data[:4]) != b"ZLIB" or len(data) < 12:
        raise ValueError("no ZLIB header")
    size = int.from_bytes(data[4:12], "big")
    check_limit(size, len(data), limit)
    return inflate_zlib(data[12:], size)


def check_limit(size: int, compressed: int, limit: int) -> None:
    """Refuse a size that is out of all proportion to the file (rule R99)."""
    if size > limit:
        raise ValueError(f"claims to expand from {compressed} to {size} bytes, out of all proportion to the file")


def check_size(size: int, compressed: int, ratio: int) -> None:
    """Refuse an absurd size before anything is allocated for it (rule R99)."""
    if size > MAX_SIZE or size > compressed * ratio + 64:
        raise ValueError(f"claims to expand from {compressed} to {size} bytes")


def decompressor() -> Any:
    """A zlib decompression object, of the fastest library there is."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.decompressobj()
    return isal_zlib.decompressobj()


def inflate_zlib(data: memoryview, size: int) -> bytes:
    """Inflate a zlib stream to exactly `size` bytes."""
    check_size(size, len(data), ZLIB_MAX_RATIO)
    try:
        stream = decompressor()
        inflated = stream.decompress(data, size + 1)
    except Exception as error:
        raise ValueError(f"corrupt zlib stream ({error})") from error
    if len(inflated) != size:
        raise ValueError(f"zlib stream does not expand to the {size} bytes that its header gives")
    return bytes(inflated)


def inflate_zstd(data: memoryview, size: int) -> bytes:
    """Decompress a zstd frame to exactly `size` bytes."""
    import zstandard

    check_size(size, len(data), ZSTD_MAX_RATIO)
    try:
        inflated = zstandard.ZstdDecompressor().stream_reader(data).read(size + 1)
    except zstandard.ZstdError as error:
        raise ValueError(f"corrupt zstd frame ({error})") from error
    if len(inflated) != size:
        raise ValueError(f"zstd frame does not expand to the {size} bytes that its header gives")
    return inflated
