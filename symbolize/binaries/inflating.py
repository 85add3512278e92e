"""Files that are compressed as a whole, into memory of bounded size."""

import zlib

MAX_MEMORY = 256 << 20
"""Bytes that an xz decoder may take for itself."""


def decompress(data: bytes, limit: int) -> bytes:
    """The contents of an xz, gzip or zstd file, at most `limit` bytes. Raises ValueError with what is wrong with it."""
    if data[:6] == b"\xfd7zXZ\0":
        return _unpack_xz(data, limit)
    if data[:2] == b"\x1f\x8b":
        return _unpack_gzip(data, limit)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return _unpack_zstd(data, limit)
    raise ValueError("is neither xz nor gzip nor zstd")


def _unpack_xz(data: bytes, limit: int) -> bytes:
    from lzma import FORMAT_XZ, LZMADecompressor, LZMAError

    stream = LZMADecompressor(FORMAT_XZ, MAX_MEMORY)
    try:
        result = stream.decompress(data, limit + 1)
    except (LZMAError, EOFError, MemoryError) as error:
        raise ValueError(f"is a corrupt xz file ({error})") from error
    return _checked(result, stream.eof, limit)


def _unpack_gzip(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(31)
    try:
        result = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(f"is a corrupt gzip file ({error})") from error
    return _checked(result, stream.eof, limit)


def _unpack_zstd(data: bytes, limit: int) -> bytes:
    import zstandard

    try:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data)
        result = reader.read(limit + 1)
    except zstandard.ZstdError as error:
        raise ValueError(f"is a corrupt zstd file ({error})") from error
    return _checked(result, True, limit)


def inflate(data: bytes, size: int, limit: int) -> bytes:
    """A raw deflate stream that has to expand to `size` bytes, at most `limit`. Raises ValueError if it does not."""
    if size > limit:
        raise ValueError(f"expands to more than {limit} bytes")
    stream = zlib.decompressobj(-15)
    try:
        result = stream.decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError(f"is corrupt ({error})") from error
    if len(result) != size:
        raise ValueError(f"does not expand to the {size} bytes that the archive tells")
    return result


def _checked(result: bytes, is_whole: bool, limit: int) -> bytes:
    if len(result) > limit:
        raise ValueError(f"expands to more than {limit} bytes")
    if not is_whole:
        raise ValueError("is cut off")
    return result
