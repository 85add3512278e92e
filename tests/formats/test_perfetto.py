"""What a Perfetto trace is: detection, compression, splits of the input, truncation."""

import gzip
import io
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard

from symbolize.core.errors import InputError
from symbolize.formats import encode, load, load_all
from symbolize.formats.perfetto import matches
from symbolize.formats.perfetto import packets as rare_packets
from tests.support import interpreted, pprof_writer
from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import only, read, refused, stacks
from tests.support.perfetto_traces import (
    CHROMIUM,
    CLEAR,
    CUT_HEAP,
    CYCLES,
    HEAP,
    SOUND,
    STATE,
    THREAD,
    only_of,
    stream,
)


def test_traces_and_pprof_are_told_apart() -> None:
    """Both begin with the same byte; the fields decide (rule R220)."""
    pprof = pprof_writer.profile([pprof_writer.Mapping(1, 2)], [([pprof_writer.Place(1, 1)], [5])])
    assert pprof[:1] == SOUND[:1] == b"\n"
    assert not matches(pprof)
    assert load(io.BytesIO(pprof)).samples.values.tolist() == [[5]]
    for trace in (SOUND, HEAP, w.compressed(SOUND), w.module_symbols("/a", b"x", {1: [("f", "", 0)]})):
        assert matches(trace)
    assert load(io.BytesIO(SOUND)).samples.values.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\n\n\n", b"\nmain 3\n", bytes(100), b"\x0a\x00" * 5, b"\n\x02\x08\x01"]
)
def test_what_is_no_trace(content: bytes) -> None:
    """Text, zeros and the beginning of a pprof profile are no traces."""
    assert not matches(content)


def test_a_single_profile_or_an_error() -> None:
    """`load` gives the one profile of a trace, and names several."""
    with pytest.raises(InputError, match=r"holds 2 profiles: heap_dump\.1\.7\.libc\.malloc, profile\.1\.pid\.10"):
        load(io.BytesIO(HEAP + SOUND))
    assert "without heap profiles" in refused(CLEAR)


@pytest.mark.parametrize("wrap", [gzip.compress, zstandard.ZstdCompressor().compress, w.compressed, w.zstd])
def test_compression_changes_nothing(wrap: Any) -> None:
    """Compressed from outside or packet by packet, the profiles are the same bytes."""
    plain = [encode(profile) for profile in read(HEAP + SOUND).values()]
    assert [encode(profile) for profile in read(wrap(HEAP + SOUND)).values()] == plain


def test_concatenated_files() -> None:
    """Traces and symbols may be put together in one file, compressed each by itself or not."""
    first, second = HEAP, w.packet(9, w.CLEARED, STATE) + w.perf_sample(2, seq=9)
    assert [*read(first + second)] == ["heap_dump.1.7.libc.malloc", "profile.1.pid.10"]
    assert [*read(gzip.compress(first) + gzip.compress(second))] == [*read(first + second)]


def test_packets_compressed_in_any_way_and_from_anywhere(tmp_path: Path) -> None:
    """Packets one by one in zlib, in zstd, plain or in turn; from a file, from a pipe, whole or with others behind:
    the profiles are the same."""
    packets = [CLEAR, CUT_HEAP, w.packet(1, interned=STATE), w.heap_packet([], index=1)]
    packets += [
        w.packet(2, w.CLEARED, STATE, CYCLES),
        w.packet(3, w.CLEARED, CHROMIUM),
        THREAD.replace(b"P\x01", b"P\x03"),
    ]
    packets += [w.perf_sample(2 + n % 2, tid=n, cpu=n % 3, total=n * 1000, followers=[n], seq=2) for n in range(20)]
    packets += [stream([1, 2], [20, 5]).replace(b"P\x01", b"P\x03")]
    plain = {name: encode(profile) for name, profile in read(b"".join(packets)).items()}
    assert [*plain] == ["heap_dump.1.7.libc.malloc", "profile.1.pid.10", "chromium_profile.1.pid.50"]
    wraps: list[Any] = [w.compressed, w.zstd, bytes]
    ways = [b"".join(map(wrap, packets)) for wrap in wraps[:2]]
    ways.append(b"".join(wraps[n % 3](packet) for n, packet in enumerate(packets)))
    ways += [gzip.compress(ways[-1]), w.compressed(b"".join(packets[:9])) + w.zstd(b"".join(packets[9:]))]
    ways += [gzip.compress(b"".join(packets[:8])) + gzip.compress(b"".join(packets[8:]))]
    path = tmp_path / "trace"
    for way in ways:
        assert {name: encode(profile) for name, profile in read(way).items()} == plain
        path.write_bytes(way)
        assert {each.name: encode(each.profile) for each in load_all(path)} == plain
        with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert {each.name: encode(each.profile) for each in load_all(process.stdout)} == plain  # type: ignore[arg-type]


def test_dumps_split_anywhere() -> None:
    """Wherever the samples of dumps are split over packets, with the state before, between or behind: the same."""
    samples = [w.heap_sample(number % 3 + 1, 10 * number, number, number) for number in range(1, 10)]
    state = w.packet(1, interned=STATE)
    whole = CLEAR + state + w.heap_packet([w.heap_dump(7, samples), w.heap_dump(8, samples[:4])])
    expected = {name: encode(profile) for name, profile in read(whole).items()}
    assert len(expected) == 2
    for cut in range(10):
        for place in range(3):
            parts = [
                w.heap_packet([w.heap_dump(7, samples[:cut])], True, 0),
                w.heap_packet([w.heap_dump(7, samples[cut:]), w.heap_dump(8, samples[:2])], True, 1),
                w.heap_packet([w.heap_dump(8, samples[2:4])], False, 2),
            ]
            parts.insert(place, state)
            found = read(CLEAR + b"".join(parts))
            assert {name: encode(profile) for name, profile in found.items()} == expected


def test_every_split_of_the_input() -> None:
    """However the bytes arrive, the profile is the same."""

    class Slow(io.RawIOBase):
        def __init__(self, step: int) -> None:
            self.rest, self.step = trace, step

        def read(self, size: int = -1) -> bytes:
            piece, self.rest = self.rest[: self.step], self.rest[self.step :]
            return piece

    trace = HEAP
    whole = encode(only(trace))
    for step in (1 << 10, 200, 97):
        (found,) = load_all(Slow(step))  # type: ignore[arg-type]
        assert encode(found.profile) == whole


def test_truncated_traces_keep_whole_packets() -> None:
    """A trace that is cut off anywhere keeps the packets before that, and says so."""
    trace = SOUND + w.perf_sample(3)
    for cut in range(len(SOUND) + 1, len(trace)):
        profile = only(trace[:cut])
        assert stacks(profile) == {("alloc", "main"): [1, 0]}
        assert f"cut off at offset {len(SOUND):#x}" in profile.warnings[0]
    assert "cut short" in only(gzip.compress(SOUND)[:-4]).warnings[0]


def test_other_fields_at_the_top_are_skipped() -> None:
    """Only field 1 is a packet; what cannot be a field ends the trace with a warning."""
    profile = only(SOUND + w.field(7, b"abc") + w.field(9, 3) + w.perf_sample(3))
    assert len(stacks(profile)) == 2
    profile = only(SOUND + b"\x0f" * 30)
    assert f"damaged at offset {len(SOUND):#x}" in profile.warnings[0]
    profile = only(SOUND + b"\x0f")
    assert f"damaged at offset {len(SOUND):#x}" in profile.warnings[0]
    # The beginning of a tag may be cut off; one of more than five bytes is none.
    for count, what in ((1, "cut off"), (5, "cut off"), (6, "damaged"), (9, "damaged"), (12, "damaged")):
        assert f"{what} at offset {len(SOUND):#x}" in only(SOUND + b"\x8a" * count).warnings[0]
    assert f"damaged at offset {len(SOUND):#x}" in only(SOUND + b"\x0a" + b"\x8a" * 19).warnings[0]


def test_empty_packets_and_gzip_within() -> None:
    """Packets without content are legal; what is compressed in a packet may be gzip as well as zlib."""
    assert encode(only(b"\n\x00" + SOUND + b"\n\x00")) == encode(only(SOUND))
    assert encode(only(w.field(1, w.field(50, gzip.compress(SOUND))))) == encode(only(SOUND))


DIGEST = """
import hashlib, sys
from symbolize.core import cursor
from symbolize.formats import load_all
from symbolize.formats import encode
found = load_all(sys.argv[1])
print(cursor.COMPILED, [each.name for each in found])
for each in found:
    profile = each.profile
    print(hashlib.sha256(encode(profile)).hexdigest(), profile.warnings)
"""


@pytest.mark.process
@pytest.mark.full
def test_interpreted(tmp_path: Path) -> None:
    """Without the compiled modules the profiles and warnings are the same."""
    trace = HEAP + w.packet(1, w.CLEARED, STATE, CYCLES) + w.perf_sample(2, total=5000, followers=[1 << 63])
    trace += w.perf_sample(3, total=(1 << 64) - 1, cpu=3, mode=1, f16=4) + w.perf_sample(2, total=6000, followers=[5])
    trace += w.packet(5, w.CLEARED, CHROMIUM, rest={44: w.message({1: 5, 2: 6, 6: -7})})
    trace += w.packet(5, rest={54: w.message({1: [1, 2, 2], 2: [20, -5, -20]})})
    trace += w.packet(5, rest={135: w.message({1: w.message({2: 5}), 6: 2, 11: (1 << 63) + 5})})
    trace += w.compressed(w.heap_packet([w.heap_dump(9, [w.heap_sample(1, 1 << 63), w.heap_sample(1, 7)])], seq=5))
    path, script = tmp_path / "trace", tmp_path / "digest.py"
    path.write_bytes(trace + b"\x0f")
    script.write_text(DIGEST)
    compiled = subprocess.run(
        [sys.executable, str(script), str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(interpreted.PACKAGE.parent)},
    ).stdout.partition(" ")
    plain = interpreted.run(tmp_path / "package", script, str(path)).partition(" ")
    assert (compiled[0], plain[0]) == ("True", "False")
    assert compiled[2] == plain[2]
    assert compiled[2].count("chromium_profile") == 1


def test_compressed_packets_in_a_compressed_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """R277: what compressed packets hold is judged against the file too, where that is compressed itself."""
    monkeypatch.setattr(rare_packets, "FREE_INFLATED", 10_000)
    packet = w.compressed(w.packet(1, rest={200: random.Random(1).randbytes(300) + bytes(4000)}))
    trace = SOUND + packet * 100
    (tmp_path / "plain").write_bytes(trace)
    (tmp_path / "packed").write_bytes(gzip.compress(trace))
    assert not any("bombs" in each for each in only_of(tmp_path / "plain").warnings)
    assert any("expand as only bombs do" in each for each in only_of(tmp_path / "packed").warnings)


@pytest.mark.parametrize("wrap", [w.compressed, w.zstd])
def test_small_packets_take_little(wrap: Any) -> None:
    """What a compressed packet may expand to, 16 MiB, is not allocated for each."""
    trace = w.packet(1, w.CLEARED, STATE) + wrap(w.perf_sample(2))
    only(trace)
    tracemalloc.start()
    try:
        only(trace)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
