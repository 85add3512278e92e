"""Compressed sections: SHF_COMPRESSED (gABI) and the older .zdebug (R97, types of compression)."""

from typing import Any

from symbolize.core.compression import ZLIB, ZSTD, CompressionError, inflate_exact

ELFCOMPRESS = {1: ZLIB, 2: ZSTD}
CHDR_SIZE = {False: 12, True: 24}
ZDEBUG_MAGIC = b"ZLIB"
ZDEBUG_HEADER = 12
MAX_SIZE = 1 << 34


def inflate_section(data: memoryview, is_64: bool, big_endian: bool, limit: int = MAX_SIZE) -> bytes | memoryview:
    """The contents of an SHF_COMPRESSED section (R97, types of compression).

    Raises CompressionError if it is corrupt or the contents are larger than `limit` bytes.
    """
    header_size = CHDR_SIZE[is_64]
    if len(data) < header_size:
        raise CompressionError("", "compression header is cut off")
    order: Any = "big" if big_endian else "little"
    kind = int.from_bytes(data[0:4], order)
    size = int.from_bytes(data[8:16] if is_64 else data[4:8], order)
    check_limit(size, len(data), limit)
    if kind not in ELFCOMPRESS:
        raise CompressionError("", f"unknown compression type {kind}")
    return inflate_exact(data[header_size:], ELFCOMPRESS[kind], size)


def inflate_zdebug(data: memoryview, limit: int = MAX_SIZE) -> bytes | memoryview:
    """The contents of a .zdebug section: `ZLIB`, a big-endian size, a zlib stream (R98, .zdebug sections)."""
    if bytes(data[: len(ZDEBUG_MAGIC)]) != ZDEBUG_MAGIC or len(data) < ZDEBUG_HEADER:
        raise CompressionError("", "no ZLIB header")
    size = int.from_bytes(data[len(ZDEBUG_MAGIC) : ZDEBUG_HEADER], "big")
    check_limit(size, len(data), limit)
    return inflate_exact(data[ZDEBUG_HEADER:], ZLIB, size)


def check_limit(size: int, compressed: int, limit: int) -> None:
    """Refuse a size that is out of all proportion to the file (R99, sizes of compressed sections)."""
    if size > min(limit, MAX_SIZE):
        problem = f"claims to expand from {compressed} to {size} bytes, out of all proportion to the file"
        raise CompressionError("", problem)
