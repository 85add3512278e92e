"""Decompression of inputs."""

import gzip
import io
import sys
from collections.abc import Callable

import lz4.frame
import pytest
import zstandard

from symbolize.core.errors import InputError
from symbolize.formats import content as contents
from symbolize.formats.content import decompressed

CODECS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "lz4": lambda data: bytes(lz4.frame.compress(data, content_checksum=True)),
}

DATA = b"".join(i.to_bytes(3, "little") for i in range(50_000))


@pytest.fixture(autouse=True, params=["isal", "zlib"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs with isal and without."""
    if request.param == "zlib":
        monkeypatch.setitem(sys.modules, "isal", None)
        monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)


def decompress(data: bytes | memoryview, source: str, limit: int = 1 << 30) -> bytes:
    """The content of a whole input."""
    return b"".join(decompressed([data], source, limit))


def refused(data: bytes) -> InputError:
    """The error of data that cannot be decompressed."""
    with pytest.raises(InputError) as caught:
        decompress(data, "x.gz")
    assert "\n" not in str(caught.value)
    return caught.value


def test_what_is_not_compressed_is_not_copied() -> None:
    """Other data comes back itself."""
    for data in (b"", b"\x1f", DATA):
        assert all(piece is data for piece in decompressed([data], "x", 1 << 30))


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("data", [b"", b"x", DATA], ids=["none", "one", "many"])
def test_every_codec(name: str, data: bytes) -> None:
    """One stream, several, and zeros after them."""
    packed = CODECS[name](data)
    assert decompress(packed, "x") == data
    assert decompress(memoryview(packed + packed), "x") == data * 2
    assert decompress(packed + bytes(700), "x") == data


@pytest.mark.parametrize("name", CODECS)
def test_every_truncation(name: str) -> None:
    """A stream that is cut anywhere is an error that says so, with the length as offset."""
    packed = CODECS[name](DATA[:300])
    for end in range(4, len(packed)):
        error = refused(packed[:end])
        assert error.problem == f"{name} stream is cut short"
        assert error.offset == end


@pytest.mark.parametrize("name", CODECS)
def test_damage(name: str) -> None:
    """A checksum that is wrong is an error with an offset."""
    packed = bytearray(CODECS[name](DATA))
    packed[-6] ^= 0xFF
    packed[len(packed) // 2] ^= 0xFF
    error = refused(bytes(packed))
    assert error.problem.startswith(f"{name} stream is damaged")
    assert error.offset is not None


def test_wrong_checksum() -> None:
    """The checksum of a gzip stream is checked."""
    packed = bytearray(gzip.compress(DATA))
    packed[-6] ^= 0xFF
    assert refused(bytes(packed)).problem.startswith("gzip stream is damaged")


@pytest.mark.parametrize("name", CODECS)
def test_something_else_after_the_stream(name: str) -> None:
    """What follows a stream is another one, or zeros."""
    packed = CODECS[name](DATA)
    error = refused(packed + b"more")
    assert error.problem == f"has something else after its {name} stream"
    assert error.offset == len(packed)


def test_layers() -> None:
    """Two layers are taken off, a third is refused."""
    twice = zstandard.compress(gzip.compress(DATA))
    assert decompress(twice, "x") == DATA
    assert refused(gzip.compress(twice)).problem == "is compressed more than 2 times"


@pytest.mark.parametrize("name", CODECS)
def test_bombs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output that is large and repetitive beyond any profile is refused on the way."""
    monkeypatch.setattr(contents, "FREE_OUTPUT", 1 << 20)
    monkeypatch.setattr(contents, "MAX_RATIO", 100)
    packed = CODECS[name](bytes(16 << 20))
    error = refused(packed)
    assert "as only a bomb does" in error.problem
    assert error.offset is not None
    assert error.offset <= len(packed)


def test_a_gigabyte_of_zeros_is_a_bomb() -> None:
    """The real limits refuse the classic bomb."""
    packed = gzip.compress(bytes(1 << 20)) * (1 << 10)
    assert "as only a bomb does" in refused(packed).problem


def test_one_sample_over_and_over_is_no_bomb() -> None:
    """The most repetitive of real profiles, a million equal samples, is read."""
    samples = b"\x12\x44" + DATA[:0x44]
    assert len(decompress(gzip.compress(samples * 1_000_000, 6), "x")) == len(samples) * 1_000_000


def test_absolute_limit() -> None:
    """Nothing decompresses without end."""
    with pytest.raises(InputError, match="more than 1000 bytes"):
        decompress(gzip.compress(DATA), "x", 1000)


def test_skippable_frames() -> None:
    """Frames of user data, such as a seek table after zstd frames, are passed over."""
    skippable = b"\x5e\x2a\x4d\x18\x03\x00\x00\x00abc"
    for codec in (CODECS["zstd"], CODECS["lz4"]):
        assert decompress(codec(DATA) + skippable, "x") == DATA


def test_zstd_stream_without_size() -> None:
    """A zstd frame need not say how large its content is."""
    buffer = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(buffer, closefd=False) as writer:
        writer.write(DATA)
    assert decompress(buffer.getvalue(), "x") == DATA


@pytest.mark.parametrize(
    ("module", "name", "package"),
    [("zstandard", "zstd", "zstandard"), ("lz4.frame", "lz4", "lz4: pip install lz4")],
)
def test_a_missing_library_is_named(module: str, name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its library a codec says what to install."""
    packed = CODECS[name](DATA)
    monkeypatch.setitem(sys.modules, module, None)
    assert refused(packed).problem == f"is {name} compressed, which needs the Python package {package}"


def streamed(data: bytes, step: int, size: int = 1 << 40) -> tuple[bytes, str, int | None]:
    """What comes out of data that comes in pieces, and the problem with its offset that ended it."""
    out = b""
    try:
        for piece in decompressed([data[i : i + step] for i in range(0, len(data), step)], "x.gz", size):
            out += piece
    except InputError as error:
        return out, error.problem, error.offset
    return out, "", None


@pytest.mark.parametrize("name", CODECS)
def test_streams(name: str) -> None:
    """Data that comes in pieces of any size is read as data in one piece is, and refused for the same reason."""
    data = DATA[:5000]
    packed = CODECS[name](data)
    damaged = bytearray(packed)
    damaged[-6] ^= 0xFF
    damaged[len(packed) // 2] ^= 0xFF
    for step in (1, 3, 1000, len(packed), 1 << 20):
        for good, content in (
            (packed, data),
            (packed + packed, data * 2),
            (packed + bytes(700), data),
            (packed + packed + bytes(1), data * 2),
            (gzip.compress(packed), data),
            (CODECS[name](b""), b""),
            (data, data),
            (b"", b""),
        ):
            assert streamed(good, step) == (content, "", None)
        for bad in (packed + b"more", packed + packed[:-1], packed[:-9], packed + bytes(700) + packed, bytes(damaged)):
            error = refused(bad)
            assert streamed(bad, step)[1].partition("(")[0] == error.problem.partition("(")[0]
        assert streamed(packed + b"more", step)[2] == len(packed)
        assert streamed(packed + bytes(700) + packed, step)[2] == len(packed)
        assert streamed(packed[:-9], step)[2] == len(packed) - 9
        thrice = gzip.compress(gzip.compress(packed))
        assert streamed(thrice, step) == (b"", "is compressed more than 2 times", None)


def test_streams_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing decompresses without end, and a second layer multiplies the ratio of the first (rule R277)."""
    packed = gzip.compress(DATA)
    assert streamed(packed, 1000, len(DATA)) == (DATA, "", None)
    assert streamed(packed, 1000, len(DATA) - 1)[1] == f"gzip stream holds more than {len(DATA) - 1} bytes"
    zeros = bytes(8 << 20)
    assert streamed(gzip.compress(gzip.compress(zeros)), 1 << 20)[1] == ""
    monkeypatch.setattr(contents, "FREE_NESTED", 1 << 20)
    assert streamed(gzip.compress(zeros), 1 << 20)[1] == ""
    assert "as only a bomb does" in streamed(gzip.compress(gzip.compress(zeros)), 1 << 20)[1]
