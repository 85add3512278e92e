"""Decompression of one stream."""

import errno
import gzip
import sys
import tempfile
import zlib
from typing import Any

import pytest
import zstandard

from symbolize.core import compression
from symbolize.core.compression import (
    DEFLATE,
    ZLIB,
    ZLIB_OR_GZIP,
    ZSTD,
    Codec,
    CompressionError,
    InflateLimits,
    first_bytes,
    inflate,
    inflate_exact,
)

DATA = bytes(range(256)) * 40


class Exhausted:
    """A decoder without memory."""

    eof = False

    def decompress(self, *_: Any) -> bytes:
        raise MemoryError


@pytest.mark.parametrize(
    ("codec", "compress"),
    [(ZLIB_OR_GZIP, zlib.compress), (ZLIB_OR_GZIP, gzip.compress), (ZSTD, zstandard.ZstdCompressor().compress)],
)
def test_first_bytes(codec: Codec, compress: Any) -> None:
    """No more bytes are returned than asked for; a stream that is cut short is reported where the codec can tell."""
    packed = compress(DATA)
    assert first_bytes(packed, codec, len(DATA) + 1) == (DATA, False)
    assert first_bytes(packed, codec, 100)[0] == DATA[:100]
    begin, is_cut = first_bytes(packed[: len(packed) // 2], codec, len(DATA))
    assert DATA.startswith(begin)
    assert is_cut is (codec is not ZSTD)
    with pytest.raises(CompressionError, match="damaged"):
        first_bytes(b"\0" + packed, codec, 100)


@pytest.mark.parametrize("in_memory", [1 << 28, 0], ids=["in memory", "in a file"])
@pytest.mark.parametrize("missing", [(), ("deflate",), ("deflate", "isal", "isal.isal_zlib")])
@pytest.mark.parametrize(("codec", "begin", "end"), [(ZLIB, 0, None), (DEFLATE, 2, -4)], ids=["zlib", "deflate"])
def test_exact_size(
    codec: Codec,
    begin: int,
    end: int | None,
    missing: tuple[str, ...],
    in_memory: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever library inflates, and into whatever, the content and what is said of a damaged stream are the same."""
    monkeypatch.setattr(compression, "MAX_IN_MEMORY", in_memory)
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    packed = zlib.compress(DATA)[begin:end]
    assert bytes(inflate_exact(packed, codec, len(DATA))) == DATA
    assert bytes(inflate_exact(memoryview(packed + b"more"), codec, len(DATA))) == DATA
    for size in (0, 1, len(DATA) - 1, len(DATA) + 1):
        with pytest.raises(CompressionError, match=f"does not expand to the {size} bytes that are announced"):
            inflate_exact(packed, codec, size)
    with pytest.raises(CompressionError, match="does not expand to"):
        inflate_exact(packed[:-20], codec, len(DATA))
    with pytest.raises(CompressionError, match=f"{codec.name} stream is damaged"):
        inflate_exact(b"\xff" + packed, codec, len(DATA))
    with pytest.raises(CompressionError, match="claims to expand"):
        inflate_exact(packed, codec, 1 << 40)


def test_without_room_for_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no temporary file can be written, large contents are kept in memory."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(compression, "MAX_IN_MEMORY", 0)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    assert bytes(inflate_exact(zlib.compress(DATA), ZLIB, len(DATA))) == DATA


def test_exhausted_memory_is_no_damage() -> None:
    """A MemoryError of a decoder reaches the caller."""
    codec = Codec("zlib", (), 16, lambda source: Exhausted())
    with pytest.raises(MemoryError):
        next(inflate([DATA], codec, "", InflateLimits(1 << 20, 1, 0)))
    with pytest.raises(MemoryError):
        inflate_exact(DATA, codec, len(DATA))
