"""Perfetto traces: the state of sequences, heap dumps, CPU samples, addresses and names."""

import gzip
import io
import os
import subprocess
import sys
import tracemalloc
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import zstandard

from symbolize.core.errors import InputError
from symbolize.load import load, load_all
from symbolize.load.detect import is_trace
from symbolize.load.perfetto import build as building
from symbolize.load.perfetto import dumps as heap_dumps
from symbolize.load.perfetto import heaps, packet_reader, processes, samples, scan, sessions
from symbolize.load.perfetto import load as loading
from symbolize.load.perfetto import packets as rare_packets
from symbolize.load.perfetto import trace as tracing
from symbolize.load.perfetto.wire import fields, message
from symbolize.profile import Profile
from symbolize.write import encode
from tests.support import interpreted, pprof_writer
from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import labels, only, read, refused, stack_names, stacks, types

BUILD_ID = bytes(range(20))
BASE, END = 0x10000, 0x30000
APP = w.mapping(1, 1, BASE, END, 0x1000, 0, 0x1000, [1, 2, 3])

NAMES: dict[str, Any] = {
    "functions": {1: "main", 2: "alloc", 3: "other"},
    "builds": {1: BUILD_ID},
    "paths": {1: "usr", 2: "bin", 3: "app"},
    "mappings": [APP],
    "frames": [w.frame(1, 1, 1, 0x2100), w.frame(2, 2, 1, 0x2200), w.frame(3, 3, 1, 0x2300)],
    "callstacks": [w.callstack(1, [1]), w.callstack(2, [1, 2]), w.callstack(3, [1, 3])],
}
STATE = w.interned(**NAMES)
CLEAR = w.packet(1, w.CLEARED)
SOUND = w.packet(1, w.CLEARED, STATE) + w.perf_sample(2)
CUT_HEAP = w.heap_packet([w.heap_dump(7, [w.heap_sample(2, 100, 40, 3, 1), w.heap_sample(3, 50, 0, 1)])], True)
HEAP = CLEAR + CUT_HEAP + w.packet(1, interned=STATE) + w.heap_packet([], index=1)


# What a trace is


def test_traces_and_pprof_are_told_apart() -> None:
    """Both begin with the same byte; the fields decide (rule R220)."""
    pprof = pprof_writer.profile([pprof_writer.Mapping(1, 2)], [([pprof_writer.Place(1, 1)], [5])])
    assert pprof[:1] == SOUND[:1] == b"\n"
    assert not is_trace(pprof)
    assert load(io.BytesIO(pprof)).samples.values.tolist() == [[5]]
    for trace in (SOUND, HEAP, w.compressed(SOUND), w.module_symbols("/a", b"x", {1: [("f", "", 0)]})):
        assert is_trace(trace)
    assert load(io.BytesIO(SOUND)).samples.values.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\n\n\n", b"\nmain 3\n", bytes(100), b"\x0a\x00" * 5, b"\n\x02\x08\x01"]
)
def test_what_is_no_trace(content: bytes) -> None:
    """Text, zeros and the beginning of a pprof profile are no traces."""
    assert not is_trace(content)


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


def test_empty_packets_and_gzip_within() -> None:
    """Packets without content are legal; what is compressed in a packet may be gzip as well as zlib."""
    assert encode(only(b"\n\x00" + SOUND + b"\n\x00")) == encode(only(SOUND))
    assert encode(only(w.field(1, w.field(50, gzip.compress(SOUND))))) == encode(only(SOUND))


# State of sequences


def sampled(*packets: bytes) -> dict[tuple[str, ...], list[int]]:
    """The stacks of the samples in packets."""
    return stacks(only(b"".join(packets)))


def test_nothing_is_interned_before_a_clear() -> None:
    """A sequence begins invalid: what it interns is ignored and what needs it is left out (rule R222)."""
    before = w.packet(1, interned=STATE) + w.perf_sample(2, flags=w.NEEDS_STATE)
    assert "1 packets were left out because what they refer to was lost" in refused(before)
    assert "1 samples were left out because a part of their callstack" in refused(
        w.packet(1, interned=STATE) + w.perf_sample(2)
    )
    assert sampled(before, SOUND) == {("alloc", "main"): [1, 0]}
    old = w.packet(1, None, STATE, rest={41: 1}) + w.perf_sample(2)
    assert sampled(old) == {("alloc", "main"): [1, 0]}


def test_a_clear_wins_over_loss_and_empties_all() -> None:
    """A clear empties tables and defaults, also in a packet that tells of a loss (rule R222)."""
    other = w.interned(**NAMES | {"functions": {1: "start", 2: "free"}})
    trace = [SOUND, w.packet(1, w.CLEARED, dropped=1), w.perf_sample(2), w.packet(1, w.CLEARED, other, dropped=1)]
    profile = only(b"".join([*trace, w.perf_sample(2)]))
    assert stacks(profile) == {("alloc", "main"): [1, 0], ("free", "start"): [1, 0]}
    assert any("1 samples were left out" in warning for warning in profile.warnings)
    alone = w.packet(1, w.CLEARED, w.interned({1: "main"}))
    rest = w.interned(**NAMES | {"functions": {2: "alloc", 3: "other"}})
    assert sampled(alone, w.packet(1, interned=rest), w.perf_sample(2)) == {("alloc", "main"): [1, 0]}
    assert "a part of their callstack" in refused(alone + w.packet(1, w.CLEARED, rest) + w.perf_sample(2))


def test_loss_stops_interning_until_the_next_clear() -> None:
    """After a loss old ids still work where a packet does not need state, new entries are ignored (rule R222)."""
    new = w.interned(callstacks=[w.callstack(9, [1])])
    trace = SOUND + w.packet(1, dropped=1) + w.packet(1, interned=new) + w.perf_sample(9) + w.perf_sample(3)
    profile = only(trace + w.perf_sample(3, flags=w.NEEDS_STATE))
    assert stacks(profile) == {("alloc", "main"): [1, 0], ("other", "main"): [1, 0]}
    text = "; ".join(profile.warnings)
    assert "1 times packets of a sequence were lost" in text
    assert "1 packets were left out" in text
    assert "1 samples were left out" in text


def test_the_first_definition_stays() -> None:
    """An id that is defined again keeps its first meaning, in every table (rule R222)."""
    again = w.interned(
        functions={1: "X", 2: "X"},
        builds={1: b"X"},
        paths={1: "X"},
        mappings=[w.mapping(1, 0, 1, 2)],
        frames=[w.frame(2, 3, 1, 5)],
        callstacks=[w.callstack(2, [3])],
    )
    assert encode(only(w.packet(1, w.CLEARED, STATE) + w.packet(1, interned=again) + w.perf_sample(2))) == encode(
        only(SOUND)
    )


def test_ids_belong_to_their_sequence_and_field() -> None:
    """Another sequence has other ids; ids of 2⁶³ and more are ids like any other."""
    big = (1 << 64) - 1
    names = w.interned(functions={big: "big"}, frames=[w.frame(big, big)], callstacks=[w.callstack(big, [big])])
    trace = w.packet(2, w.CLEARED, names) + w.perf_sample(big, seq=2) + w.packet(1, w.CLEARED) + w.perf_sample(big)
    profile = only(trace)
    assert stacks(profile) == {("big",): [1, 0]}
    assert any("1 samples were left out" in warning for warning in profile.warnings)


def test_entries_of_the_same_packet_and_later_ones() -> None:
    """A sample sees what its own packet interns, in any order, and nothing that comes later (rule R222)."""
    assert sampled(CLEAR, w.perf_sample(2, state=STATE)) == {("alloc", "main"): [1, 0]}
    profile = only(CLEAR + w.perf_sample(2) + w.packet(1, interned=STATE) + w.perf_sample(2))
    assert stacks(profile) == {("alloc", "main"): [1, 0]}
    # Parts of a frame may come before or after it, as long as the sample comes last.
    parts = [{key: NAMES[key]} for key in ("callstacks", "frames", "mappings", "functions", "builds", "paths")]
    for order in (parts, parts[::-1]):
        packets = [w.packet(1, interned=w.interned(**part)) for part in order]
        assert sampled(CLEAR, *packets, w.perf_sample(2)) == {("alloc", "main"): [1, 0]}


@pytest.mark.parametrize(
    "change",
    [
        {"functions": {1: "main"}},
        {"builds": {}},
        {"mappings": []},
        {"frames": NAMES["frames"][:1]},
        {"callstacks": [w.callstack(2, [9])]},
        {"frames": [w.frame(1, 1, 1, 1), w.frame(2, 2, 1, 2, source=5)]},
        {"frames": [w.frame(1, 1, 1, 1), w.frame(2, 2, 1, 2, source=0)]},
    ],
)
def test_missing_parts_reject_the_callstack(change: dict[str, Any]) -> None:
    """A callstack with an unknown function, build id, mapping, frame or source is left out and counted (rule R222)."""
    trace = w.packet(1, w.CLEARED, w.interned(**NAMES | change)) + w.perf_sample(2)
    assert "1 samples were left out because a part of their callstack is not in the trace" in refused(trace)


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        ({1: "system", 2: "lib64", 3: "libc.so"}, "/system/lib64/libc.so"),
        ({1: "/full/path"}, "/full/path"),
        ({1: "libfoo.so"}, "/libfoo.so"),
        ({1: "[vdso]"}, "/[vdso]"),
        ({2: "cut"}, ""),
        ({1: "a", 3: "cut"}, "/a"),
    ],
)
def test_names_of_mappings(paths: dict[int, str], name: str) -> None:
    """Parts get a slash each; an unknown part cuts the name short (rule R222)."""
    profile = only(w.packet(1, w.CLEARED, w.interned(**NAMES | {"paths": paths})) + w.perf_sample(2))
    assert profile.strings.text(profile.mappings.filename[0]) == name


def test_fields_of_a_newer_recorder() -> None:
    """Fields that nothing reads, of any number and wire type, leave every message what it is; what no field can be
    is damage (protobuf encoding)."""
    known = encode(only(SOUND))
    later = {0: b"\x81\x01", 1: bytes(range(8)), 2: b"\x02\x08\x08", 5: b"\x08\x08\x08\x08"}
    for wire, content in later.items():
        extra = w.varint(1000 << 3 | wire) + content
        names = {
            key: [each + extra for each in value] if isinstance(value, list) else value for key, value in NAMES.items()
        }
        sample = w.message({1: 0, 2: 10, 3: 11, 4: 2, 5: 2}) + extra
        trace = w.packet(1, w.CLEARED, w.interned(**names) + extra) + w.packet(1, rest={66: sample})
        assert encode(only(trace)) == known
        assert (
            encode(only(w.field(1, w.message({10: 1, 13: 1, 12: STATE}) + extra) + w.packet(1, rest={66: sample})))
            == known
        )
        cut = STATE + w.varint(1000 << 3 | wire) + content[:-1] * (wire != 0)
        assert stacks(said(w.packet(1, w.CLEARED, cut) + w.perf_sample(2), "1 packets are damaged")) == {
            ("alloc", "main"): [1, 0]
        }
    for tag in (b"\x00\x01", b"\x07\x01", b"\x0b", b"\x0c", b"\x0e\x01", b"\x88\x80\x80\x80\x10\x01", b"\x88" * 11):
        said(w.packet(1, w.CLEARED, STATE + tag) + w.perf_sample(2), "1 packets are damaged")
    top = w.varint((1 << 29) - 1 << 3) + b"\x01"
    assert encode(only(w.packet(1, w.CLEARED, STATE + top) + w.perf_sample(2))) == known


def test_sequences_without_a_number() -> None:
    """Sequence 0 is none: there is no state to look anything up in."""
    assert "1 packets were left out" in refused(w.packet(None, w.CLEARED, STATE) + w.perf_sample(2, seq=None))


def test_frames_that_come_one_by_one() -> None:
    """A callstack is there once its last frame is, in whatever order they come, and trying it before costs little."""
    frames = [w.frame(number, 0, 1, 0x2000 + number) for number in range(1, 401)]
    start = w.packet(1, w.CLEARED, w.interned(**NAMES | {"frames": [], "callstacks": [w.callstack(9, range(1, 401))]}))
    for order in (frames, frames[::-1], frames[200:] + frames[:200], frames[::2] + frames[1::2]):
        trace = start + b"".join(w.packet(1, interned=w.interned(frames=[each])) + w.perf_sample(9) for each in order)
        profile = said(trace, "399 samples were left out because a part of their callstack")
        assert stack_names(profile) == [tuple(hex(BASE + number) for number in range(400, 0, -1))]


def test_packed_numbers() -> None:
    """Lists of numbers may be packed."""
    names = NAMES | {
        "callstacks": [w.message({1: 2, 2: w.packed([1, 2])})],
        "mappings": [w.message({1: 1, 2: 1, 4: BASE, 5: END, 6: 0x1000, 8: 0x1000, 7: w.packed([1, 2, 3])})],
    }
    assert encode(only(w.packet(1, w.CLEARED, w.interned(**names)) + w.perf_sample(2))) == encode(only(SOUND))


def test_id_zero() -> None:
    """Id 0 is the empty string, whether it is defined or not; only in paths it is an id like any other (rule R222)."""
    frames = [w.frame(1, 0, 1, 0x2100), w.frame(2, 0, 1, 0x2200)]
    names = NAMES | {"frames": frames, "mappings": [w.mapping(1, 0, BASE, END, 0x1000, 0, 0x1000, [0, 1])]}
    for more, path in (({}, ""), ({"functions": {0: ""}, "builds": {0: b""}, "paths": {0: "zero", 1: "x"}}, "/zero/x")):
        profile = only(w.packet(1, w.CLEARED, w.interned(**names | more)) + w.perf_sample(2))
        assert stack_names(profile) == [("0x10200", "0x10100")]
        text = profile.strings.text
        assert (text(profile.mappings.filename[0]), text(profile.mappings.build_id[0])) == (path, "")


def test_bytes_that_are_no_text() -> None:
    """Names are bytes; what is no UTF-8 is kept, and so are build ids (rule R74)."""
    build_id = bytes(range(0xF0, 0x100)) + b"\x80\xfe"
    names = NAMES | {"functions": {1: b"ma\xffin", 2: b"\x80"}, "builds": {1: build_id}}
    symbols = w.module_symbols("/usr/bin/app", build_id, {0x2200: [("found", "", 0)]})
    profile = only(w.packet(1, w.CLEARED, w.interned(**names)) + w.perf_sample(2) + symbols)
    assert {profile.strings[row] for row in profile.functions.name.tolist()} >= {b"ma\xffin", b"found"}
    assert profile.strings.text(profile.mappings.build_id[0]) == build_id.hex()


def test_old_clears() -> None:
    """The field that older recorders clear with empties tables as the flag does (rule R222)."""
    trace = SOUND + w.packet(1, rest={41: 1}) + w.perf_sample(2)
    profile = only(trace)
    assert stacks(profile) == {("alloc", "main"): [1, 0]}
    assert any("1 samples were left out" in warning for warning in profile.warnings)


def test_one_mapping_of_several_processes() -> None:
    """Processes that were forked share mappings, frames and callstacks by id."""
    found = read(SOUND + w.perf_sample(2, pid=77))
    assert [*found] == ["profile.1.pid.10", "profile.2.pid.77"]
    for profile in found.values():
        assert stacks(profile) == {("alloc", "main"): [1, 0]}
        assert profile.strings.text(profile.mappings.filename[0]) == "/usr/bin/app"


def test_frames_without_mapping_go_by_function_and_line() -> None:
    """Frames without a mapping are told apart by function, file and line."""
    names = NAMES | {
        "sources": {4: "a.c"},
        "frames": [w.frame(1, 1, source=4, line=5), w.frame(2, 1, source=4, line=6), w.frame(3, 1, source=4, line=5)],
        "callstacks": [w.callstack(1, [1]), w.callstack(2, [2]), w.callstack(3, [3])],
    }
    samples = b"".join(map(w.perf_sample, (1, 2, 3)))
    profile = only(w.packet(1, w.CLEARED, w.interned(**names)) + samples)
    assert sorted(profile.samples.values[:, 0].tolist()) == [1, 2]
    assert sorted(profile.locations.lines.line.tolist()) == [5, 6]
    assert not len(profile.mappings)


# Heap dumps


def test_heap_dumps() -> None:
    """Callstacks that come behind the samples are known when the dump ends (rule R223); names are traceconv's."""
    found = read(HEAP)
    assert [*found] == ["heap_dump.1.7.libc.malloc"]
    profile = found["heap_dump.1.7.libc.malloc"]
    assert types(profile) == [
        "Total malloc count/count",
        "Total malloc size/bytes",
        "Unreleased malloc count/count",
        "Unreleased malloc size/bytes",
    ]
    assert stacks(profile) == {("alloc", "main"): [3, 100, 2, 60], ("other", "main"): [1, 50, 1, 50]}
    assert labels(profile)[0]["pid"] == 7


def test_split_over_packets() -> None:
    """One packet or several that are continued say the same (rule R223)."""
    samples = [w.heap_sample(number, 10 * number, 0, number) for number in (1, 2, 3)]
    whole = CLEAR + w.packet(1, interned=STATE) + w.heap_packet([w.heap_dump(7, samples)])
    parts = [w.heap_packet([w.heap_dump(7, [each])], True, index) for index, each in enumerate(samples)]
    split = CLEAR + b"".join(parts) + w.packet(1, interned=STATE) + w.heap_packet([], index=3)
    assert encode(only(whole)) == encode(only(split))
    assert not only(split).warnings


def test_a_dump_without_its_end() -> None:
    """What is known of a dump that is cut off is shown, with a warning."""
    profile = only(CLEAR + w.packet(1, interned=STATE) + CUT_HEAP)
    assert stacks(profile)["alloc", "main"] == [3, 100, 2, 60]
    assert any("end before their last packet" in warning for warning in profile.warnings)


def heap(*dumps: tuple[int, list[bytes]], **more: Any) -> bytes:
    """A trace with dumps at times."""
    packets = [
        w.heap_packet([w.heap_dump(7, samples, time, **more)], index=i) for i, (time, samples) in enumerate(dumps)
    ]
    return CLEAR + w.packet(1, interned=STATE) + b"".join(packets)


def test_dumps_hold_running_totals() -> None:
    """Each dump has the totals up to it; what is no longer in a dump keeps what it had (rule R224)."""
    first = [w.heap_sample(2, 100, 0, 1), w.heap_sample(3, 70, 0, 2)]
    second = [w.heap_sample(2, 150, 60, 2, 1)]
    again = w.interned(callstacks=[w.callstack(8, [1, 3])])
    trace = heap((1000, first), (2000, second)) + w.packet(1, interned=again)
    trace += w.heap_packet([w.heap_dump(7, [w.heap_sample(8, 5, 0, 1)], 3000)], index=2)
    values = [stacks(profile) for profile in read(trace).values()]
    assert values == [
        {("alloc", "main"): [1, 100, 1, 100], ("other", "main"): [2, 70, 2, 70]},
        {("alloc", "main"): [2, 150, 1, 90], ("other", "main"): [2, 70, 2, 70]},
        {("alloc", "main"): [2, 150, 1, 90], ("other", "main"): [3, 75, 3, 75]},
    ]
    assert stacks(only(trace, merge=["dumps"])) == values[-1]


def test_dump_at_max() -> None:
    """The maximum replaces what is allocated; its count counts where the interval was recorded (rule R224)."""
    sample = w.heap_sample(2, 100, 40, 3, 1, top=80, top_count=2)
    # Fields that nobody knows yet are read over.
    for given in (
        [sample],
        [sample + b"\x98\x01\x05"],
        [sample + b"\x92\x01\x02\x08\x05"],
        [sample + w.field(15, "x" * 200)],
    ):
        assert stacks(only(heap((1, given)))) == {("alloc", "main"): [0, 80, 0, 80]}
        assert stacks(only(heap((1, given), f13=4096))) == {("alloc", "main"): [2, 80, 2, 80]}
    profile = only(heap((1, [sample]), f12=4096))
    assert profile.period == 4096
    assert [profile.strings.text(each) for each in profile.period_type] == ["space", "bytes"]
    assert only(heap((1, [sample]))).period == 0


@pytest.mark.parametrize(
    ("name", "file", "first", "count"),
    [
        (None, "unknown", "Total count/count", 4),
        ("custom pool/x", "custom_pool_x", "Total count/count", 4),
        ("com.android.art", "com.android.art", "Total allocation count/count", 2),
    ],
)
def test_other_heaps(name: str | None, file: str, first: str, count: int) -> None:
    """Heaps have names; those of Java know no frees. No name can lead to another folder."""
    trace = (
        CLEAR + w.packet(1, interned=STATE) + w.heap_packet([w.heap_dump(7, [w.heap_sample(2, 9, 1, 2, 1)], heap=name)])
    )
    found = read(trace)
    assert [*found] == [f"heap_dump.1.7.{file}"]
    assert [*read(trace, heaps=[name or "unknown"])] == [*found]
    assert "no such profile" in refused(trace, heaps=["other"])
    assert types(*found.values())[0] == first
    assert [*stacks(*found.values()).values()] == [[2, 9, 1, 8][:count]]


def test_android_10() -> None:
    """Tables within the packets have one space of ids and end with the dump; addresses stay within the mapping
    though nothing says where it begins in the file (rule R221)."""
    tables = {
        1: [w.string(1, "main"), w.string(2, BUILD_ID), w.string(3, "app"), w.string(4, "alloc")],
        2: [w.frame(1, 1, 1, 0x42100), w.frame(2, 4, 1, 0x43200)],
        3: [w.callstack(1 << 35, [1, 2])],
        4: [w.mapping(1, 2, BASE, END, None, 0, 0x1000, [3])],
    }
    dump = w.heap_packet([w.heap_dump(7, [w.heap_sample(1 << 35, 9, 0, 1)], heap=None)], f1=tables[1], f2=tables[2],
                         f3=tables[3], f4=tables[4])  # fmt: skip
    profile = only(dump)
    assert stacks(profile) == {("alloc", "main"): [1, 9, 1, 9]}
    mappings, address = profile.mappings, sorted(profile.locations.address.tolist())
    assert [each - int(mappings.start[0]) + int(mappings.file_offset[0]) for each in address] == [0x41100, 0x42200]
    assert BASE <= address[0] < address[1] < END
    assert profile.strings.text(mappings.build_id[0]) == BUILD_ID.hex()
    later = w.heap_packet([w.heap_dump(7, [w.heap_sample(1 << 35, 9, 0, 1)], 2000, None)], index=1)
    last = [*read(dump + later).values()][-1]
    assert stacks(last) == {("alloc", "main"): [1, 9, 1, 9]}
    assert any("1 samples with 9 bytes" in warning for warning in last.warnings)


def test_what_heaps_report() -> None:
    """Gaps, errors of the client and lost callstacks are said."""
    samples = [w.heap_sample(2, 9, 0, 1), w.heap_sample(77, 1000, 0, 5)]
    trace = CLEAR + w.packet(1, interned=STATE) + w.heap_packet([w.heap_dump(7, samples, f7=1, f8=1, f14=1)], index=4)
    text = "; ".join(only(trace).warnings)
    for part in ("heap packets are missing", "overran", "corrupted", "in time", "1 samples with 1000 bytes"):
        assert part in text


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        (4, 1, "another session"),
        (6, 1, "closed its connection"),
        (7, 1, "overran"),
        (8, 1, "corrupted"),
        (10, 1, "stopped early"),
        (14, 1, "in time"),
        (14, 2, "outside its bounds"),
        (14, 9, "error 9"),
    ],
)
def test_each_trouble_of_a_heap(field: int, value: int, part: str) -> None:
    """Whatever the profiler says went wrong with a heap is said."""
    warnings = only(heap((1, [w.heap_sample(2, 9, 0, 1)]), **{f"f{field}": value})).warnings
    assert any(part in warning for warning in warnings)


def test_heaps_share_callstacks_and_no_totals() -> None:
    """Each heap of a process has totals of its own for the callstacks that both use (rule R224)."""
    dumps = [
        w.heap_dump(7, [w.heap_sample(2, size, 0, 1)], time, name)
        for time, size, name in ((1000, 10, "a"), (1000, 500, "b"), (2000, 12, "a"), (2000, 700, "b"))
    ]
    trace = CLEAR + w.packet(1, interned=STATE)
    trace += w.heap_packet(dumps[:2]) + w.heap_packet(dumps[2:], index=1)
    found = {name: profile.samples.values[0, 1] for name, profile in read(trace).items()}
    assert found == {"heap_dump.1.7.a": 10, "heap_dump.2.7.b": 500, "heap_dump.3.7.a": 12, "heap_dump.4.7.b": 700}


def test_a_clear_between_dumps() -> None:
    """What was dumped before a clear is shown with the callstacks of before (rule R222)."""
    other = w.interned(**NAMES | {"functions": {1: "start", 2: "free", 3: "x"}})
    first = CLEAR + w.packet(1, interned=STATE) + w.heap_packet([w.heap_dump(7, [w.heap_sample(2, 5, 0, 1)], 1000)])
    again = w.packet(1, w.CLEARED, other) + w.heap_packet([w.heap_dump(7, [w.heap_sample(2, 6, 0, 1)], 2000)], index=1)
    assert [*map(stacks, read(first + again).values())] == [
        {("alloc", "main"): [1, 5, 1, 5]},
        {("free", "start"): [1, 6, 1, 6]},
    ]


def test_dumps_in_any_order() -> None:
    """Profiles are the same whichever dump is asked for first, of heaps in turn, and when one is asked for again."""
    trace = CLEAR + w.packet(1, interned=STATE)
    for number in range(5):
        dumps = [
            w.heap_dump(7, [w.heap_sample(2 + number % 2, 10 + number * size, 0, 1)], number + 1, heap)
            for heap, size in (("a", 1), ("b", 2))
        ]
        trace += w.heap_packet(dumps, index=number)
    found = load_all(io.BytesIO(trace))
    expected = [stacks(each.profile) for each in found]
    assert [each["other", "main"][1] for each in expected[-2:]] == [13, 16]
    assert [each["alloc", "main"][1] for each in expected[-2:]] == [14, 18]
    for order in ([9, 1, 0, 8, 2], [3, 3, 5, 5, 9, 9], [4, 0, 2, 4, 6, 8]):
        assert [stacks(found[number].profile) for number in order] == [expected[number] for number in order]


def test_dumps_have_a_limit_of_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each dump has the callstacks of those before; of too many the first are shown, which is said (rule R224)."""
    trace = CLEAR + w.packet(1, interned=STATE)
    for number in range(5):
        trace += w.heap_packet([w.heap_dump(7, [w.heap_sample(2 + number % 2, 9, 0, 1)], number + 1)], index=number)
    monkeypatch.setattr(loading, "MAX_DUMP_SAMPLES", 5)
    found = read(trace)
    assert [len(profile.samples) for profile in found.values()] == [1, 2, 2]
    assert "2 heap dumps were left out" in "; ".join(next(iter(found.values())).warnings)
    assert len(only(trace, merge=["dumps"]).samples) == 2


@pytest.mark.parametrize("clears", [1, 2])
def test_a_clear_within_a_dump(clears: int) -> None:
    """Samples of a dump that come before a clear have the callstacks of before, and are not mistaken for those of the
    same ids behind it; the next dump says all anew (rule R222)."""
    other = w.interned(**NAMES | {"functions": {1: "start", 2: "free", 3: "x"}})
    trace = CLEAR + w.packet(1, interned=STATE) + w.heap_packet([w.heap_dump(7, [w.heap_sample(3, 9, 0, 1)], 1000)])
    trace += w.heap_packet([w.heap_dump(7, [w.heap_sample(2, 5, 0, 1), w.heap_sample(99, 7)], 2000)], True, 1)
    trace += w.packet(1, w.CLEARED) * (clears - 1) + w.packet(1, w.CLEARED, other)
    trace += w.heap_packet([w.heap_dump(7, [w.heap_sample(2, 6, 0, 1)], 2000)], index=2)
    trace += w.heap_packet([w.heap_dump(7, [w.heap_sample(2, 8, 0, 1)], 3000)], index=3)
    found = read(trace)
    assert [*map(stacks, found.values())] == [
        {("other", "main"): [1, 9, 1, 9]},
        {("alloc", "main"): [1, 5, 1, 5], ("free", "start"): [1, 6, 1, 6]},
        {("free", "start"): [1, 8, 1, 8]},
    ]
    assert any("1 samples with 7 bytes" in each for each in found["heap_dump.2.7.libc.malloc"].warnings)


def test_choosing_and_merging() -> None:
    """Profiles are chosen by pid, process, heap and kind; processes can be one profile."""
    dumps = [
        w.heap_dump(pid, [w.heap_sample(2, pid, 0, 1)], heap=heap) for pid in (7, 8) for heap in ("libc.malloc", "own")
    ]
    tree = w.process_tree({7: ["/bin/seven --flag"], 8: ["eight", "x"]}, {11: ("worker", 10)})
    trace = CLEAR + w.packet(1, interned=STATE) + w.heap_packet(dumps) + tree + w.perf_sample(2)
    names = ["heap_dump.1.7.libc.malloc", "heap_dump.2.7.own", "heap_dump.3.8.libc.malloc", "heap_dump.4.8.own"]
    assert [*read(trace)] == [*names, "profile.1.pid.10"]
    assert [*read(trace, pids=[8])] == ["heap_dump.1.8.libc.malloc", "heap_dump.2.8.own"]
    assert [*read(trace, processes=["sev*"])] == ["heap_dump.1.7.libc.malloc", "heap_dump.2.7.own"]
    assert [*read(trace, heaps=["own"], pids=[7])] == ["heap_dump.1.7.own"]
    assert [*read(trace, kinds=["cpu"])] == ["profile.1.pid.10"]
    merged = read(trace, merge=["processes"], kinds=["heap"])
    assert [*merged] == ["heap_dump.1.all.libc.malloc", "heap_dump.2.all.own"]
    assert stacks(merged["heap_dump.2.all.own"]) == {("alloc", "main"): [2, 15, 2, 15]}
    assert {(each["pid"], each["process"]) for each in labels(merged["heap_dump.2.all.own"])} == {
        (7, "/bin/seven"),
        (8, "eight"),
    }
    assert "the trace has no such profile; it has heap_dump.1.7" in refused(trace, pids=[99])


CLOCKS = w.packet(None, rest={6: w.message({1: [w.message({1: 3, 2: 10**9}), w.message({1: 6, 2: 10**12})]})})
SECOND = 10**9


def born(pid: int, name: str, start: int, machine: int | None = None) -> bytes:
    """A packet with a ProcessTree of one process and its start, in seconds since boot."""
    process = w.message({1: pid, 2: 1, 3: name, 7: start * SECOND})
    return w.packet(None, rest={98: machine, 2: w.message({1: process})})


def dumped(pid: int, bytes_: int, time: int, machine: int | None = None) -> bytes:
    """A packet with a heap dump at so many seconds of the monotonic clock; the boot clock is 999 s ahead."""
    dump = w.heap_dump(pid, [w.heap_sample(2, bytes_, 0, 1)], time * SECOND)
    return w.packet(1, rest={98: machine, 37: w.message({5: dump})})


def test_pids_that_are_used_again() -> None:
    """A process that starts later under the same pid is another one, and has profiles of its own; each dump is of the
    process that lived at its time (rule R243)."""
    start = CLOCKS + CLEAR + w.packet(1, interned=STATE) + born(7, "old", 1000)
    late = dumped(7, 8, 2) + dumped(7, 10, 101)
    found = read(start + dumped(7, 5, 3) + born(7, "new", 1100) + late)
    assert [*found] == ["heap_dump.1.7.libc.malloc", "heap_dump.2.7.libc.malloc", "heap_dump.3.7.libc.malloc"]
    sizes = [(labels(each)[0]["process"], each.samples.values[0, 1]) for each in found.values()]
    assert sizes == [("old", 5), ("old", 8), ("new", 10)]
    # A start that two sources tell a little differently, or one of them not at all, is that of one process.
    again = w.packet(None, rest={60: w.message({3: w.message({1: 7, 6: "own", 7: 1000 * SECOND + 10**7})})})
    nothing = w.process_tree({7: ["again"]})
    found = read(start + dumped(7, 5, 2) + again + nothing + dumped(7, 6, 101))
    assert [labels(each)[0]["process"] for each in found.values()] == ["again", "again"]
    assert read(start + dumped(7, 5, 3) + born(7, "new", 1100) + late, processes=["new"]).keys() == {
        "heap_dump.1.7.libc.malloc"
    }


def test_samples_of_pids_that_are_used_again() -> None:
    """Samples are of the process that had the pid at their time, on whatever clock (rule R243)."""
    defaults = w.perf_defaults({1: 100, 4: 10}, clock=3)
    start = CLOCKS + w.packet(1, w.CLEARED, STATE, defaults) + born(7, "old", 1000) + born(7, "new", 1100)
    samples = [w.perf_sample(2, 7, 7, time=second * SECOND) for second in (2, 3, 102, 3)]
    boot = w.packet(1, time=1101 * SECOND, rest={58: 6, 66: w.message({2: 7, 3: 7, 4: 2})})
    found = read(start + b"".join(samples) + boot)
    assert [*found] == ["profile.1.pid.7", "profile.2.pid.7"]
    assert [(labels(each)[0]["process"], int(each.samples.values[:, 0].sum())) for each in found.values()] == [
        ("old", 3),
        ("new", 2),
    ]


def test_track_events() -> None:
    """Callstacks of track events are left out, and counted."""
    events = [{55: w.message({1: w.message({1: "f"})})}, {56: 3}, {56: 3, 57: 1}, {9: 1, 1: 5}]
    packets = b"".join(w.packet(1, w.NEEDS_STATE, rest={11: w.message(each)}) for each in events)
    assert "3 callstacks of track events were left out" in only(SOUND + packets).warnings
    assert "3 callstacks of track events" in refused(packets)


def test_many_processes_with_one_pid() -> None:
    """A trace that tells of more processes than any machine has costs no more than a limit (rule R243)."""
    births = b"".join(born(7, f"p{number}", 10 * number) for number in range(1, 6000))
    found = read(CLEAR + w.packet(1, interned=STATE) + births + dumped(7, 5, 3))
    assert len(found) == 1


def test_machines() -> None:
    """The same pid on two machines is two processes (rule R243)."""
    tree = born(7, "here", 5) + born(7, "there", 5, machine=3)
    start = CLEAR + w.packet(1, interned=STATE) + tree
    for packets in (
        dumped(7, 5, 3) + dumped(7, 6, 3, machine=3),
        w.perf_sample(2, pid=7) + w.packet(1, rest={98: 3, 66: w.message({2: 7, 3: 7, 4: 2})}),
    ):
        found = read(start + packets)
        assert [labels(each)[0]["process"] for each in found.values()] == ["here", "there"]
        assert [labels(each)[0]["pid"] for each in found.values()] == [7, 7]
        text = found[[*found][1]].strings.text
        assert "of machine 3" in text(found[[*found][1]].comments[0])


# CPU samples

CYCLES = w.perf_defaults({1: 1000, 4: 10}, [w.message({1: 11}), w.message({2: w.message({1: "sched:x"})})])


def test_weights_are_what_the_counter_went_on() -> None:
    """The counter of each CPU is a running total; the first sample of one counts for the period (rule R226)."""
    samples = [(0, 5000, [10, 1]), (0, 5400, [15, 1]), (1, 9000, [7, 0]), (0, 6400, [15, 3]), (1, 9001, [8, 0])]
    packets = [w.perf_sample(2, cpu=cpu, total=total, followers=more) for cpu, total, more in samples]
    trace = w.packet(1, w.CLEARED, STATE, CYCLES) + b"".join(packets)
    profile = only(trace)
    assert types(profile) == ["samples/count", "cpu-cycles/cycles", "instructions/instructions", "sched:x/count"]
    assert stacks(profile) == {("alloc", "main"): [5, 1000 + 400 + 1000 + 1000 + 1, 5 + 1, 2]}
    assert (profile.period, profile.strings.text(profile.period_type.type)) == (1000, "cpu-cycles")
    assert {(each["cpu"], each["mode"], each["pid"], each["tid"]) for each in labels(profile)} == {
        (0, "user", 10, 11),
        (1, "user", 10, 11),
    }


def test_counters_begin_at_zero_where_the_sequence_does() -> None:
    """In a sequence that is there from its first packet on, counters without a period began at 0 (rule R226)."""
    defaults = w.perf_defaults({2: 100, 4: 10})
    trace = w.packet(1, w.CLEARED, STATE, defaults, rest={87: 1}) + w.perf_sample(2, total=700)
    assert stacks(only(trace)) == {("alloc", "main"): [1, 700]}
    beside = w.perf_defaults({2: 100, 4: 10}, [w.message({1: 11}), w.message({1: 12})])
    trace = w.packet(1, w.CLEARED, STATE, beside, rest={87: 1}) + w.perf_sample(2, total=700, followers=[30])
    assert stacks(only(trace)) == {("alloc", "main"): [1, 700, 30, 0]}
    late = w.packet(1, w.CLEARED, STATE, beside) + w.perf_sample(2, total=700, followers=[30])
    assert stacks(only(late)) == {("alloc", "main"): [1, 0, 0, 0]}
    clock = w.perf_defaults({2: 100, 4: 1})
    assert stacks(only(w.packet(1, w.CLEARED, STATE, clock) + w.perf_sample(2, total=700))) == {
        ("alloc", "main"): [1, 10_000_000]
    }


def test_other_events_after_a_clear() -> None:
    """A clear leaves the counters of the same events as they are; those of others begin anew (rule R226)."""
    before = w.packet(1, w.CLEARED, STATE, w.perf_defaults({1: 100, 4: 10})) + w.perf_sample(2, total=5000)
    for counter, weight in ((10, 700), (11, 100)):
        again = w.packet(1, w.CLEARED, STATE, w.perf_defaults({1: 100, 4: counter})) + w.perf_sample(2, total=5700)
        found = read(before + again)
        assert sum(stacks(profile)["alloc", "main"][1] for profile in found.values()) == 100 + weight


def test_what_is_shown_first() -> None:
    """The weight, not the event that comes last; the count where no sample has a weight."""
    defaults = w.perf_defaults({1: 100, 4: 10}, [w.message({1: 11})])
    start = w.packet(1, w.CLEARED, STATE)
    for trace, shown in (
        (w.packet(1, w.CLEARED, STATE, defaults) + w.perf_sample(2, followers=[5]), "cpu-cycles"),
        (start + w.perf_sample(2, total=5) + w.perf_sample(2, total=8), "cpu-clock"),
        (start + w.perf_sample(2), "samples"),
    ):
        profile = only(trace)
        assert profile.strings.text(profile.default_sample_type) == shown


def test_loss_and_setbacks_count_for_the_period() -> None:
    """A counter that went back, or on while packets were lost, tells no weight (rule R226)."""
    start = w.packet(1, w.CLEARED, STATE, CYCLES) + w.perf_sample(2, total=5000)
    assert stacks(only(start + w.perf_sample(2, total=100)))["alloc", "main"][:2] == [2, 2000]
    lost = w.packet(1, w.CLEARED, STATE, CYCLES, dropped=1) + w.perf_sample(2, total=999_000)
    assert stacks(only(start + lost))["alloc", "main"][:2] == [2, 2000]


def test_what_is_no_sample() -> None:
    """Losses, events and skipped samples are told apart in this order and counted (rule R225); a skipped sample has
    its share of the counter."""
    trace = w.packet(1, w.CLEARED, STATE, CYCLES) + w.perf_sample(2, total=5000)
    trace += w.perf_sample(2, total=5100, f17=7) + w.perf_sample(2, total=5200, f19=w.message({1: 1}))
    trace += w.perf_sample(2, total=5300, f18=3) + w.perf_sample(None, total=5400) + w.perf_sample(2, total=5500)
    profile = only(trace)
    assert stacks(profile)["alloc", "main"][:2] == [2, 1000 + 100]
    text = "; ".join(profile.warnings)
    for part in ("7 samples were lost in the kernel", "1 times the profiler stopped early", "could not keep up"):
        assert part in text
    assert "1 samples count events and have no stack" in text


def test_labels_of_samples() -> None:
    """Threads, processes, modes and errors of the unwinder are labels."""
    tree = w.process_tree({10: ["/system/bin/app"]}, {11: ("worker", 10)})
    trace = tree + SOUND + w.perf_sample(2, tid=10, mode=1, f16=6)
    assert labels(only(trace)) == [
        {"pid": 10, "process": "/system/bin/app", "tid": 11, "thread": "worker", "cpu": 0, "mode": "user"},
        {"pid": 10, "process": "/system/bin/app", "tid": 10, "thread": "main", "cpu": 0, "mode": "kernel",
         "unwind_error": "max_frames_exceeded"},
    ]  # fmt: skip


def test_names_of_nobody() -> None:
    """A descriptor without a pid or tid names no process 0 and no thread 0; of names for one, the process tree's
    counts, and else the first."""
    nobody = w.packet(None, rest={43: w.message({6: "nobody"})}) + w.packet(None, rest={44: w.message({5: "nobody"})})
    idle = w.perf_sample(2, pid=0, tid=0)
    assert labels(only(w.packet(1, w.CLEARED, STATE) + nobody + idle))[0] == {
        "pid": 0,
        "tid": 0,
        "cpu": 0,
        "mode": "user",
    }
    packets = [w.packet(None, rest={43: w.message({1: 0, 6: name})}) for name in "ab"]
    packets += [w.packet(None, rest={44: w.message({2: 0, 5: name})}) for name in "ab"]
    for more, name in ((b"", "a"), (w.process_tree({0: ["tree"]}, {0: ("tree", 0)}), "tree")):
        found = labels(only(w.packet(1, w.CLEARED, STATE) + b"".join(packets) + more + idle))[0]
        assert (found["process"], found["thread"]) == (name, name)
        found = labels(only(w.packet(1, w.CLEARED, STATE) + more + b"".join(packets) + idle))[0]
        assert (found["process"], found["thread"]) == (name, name)
    kernel = w.packet(None, rest={2: w.message({1: w.message({1: 9, 2: 2, 3: "kworker/0:1-workqueue"})})})
    found = labels(only(w.packet(1, w.CLEARED, STATE) + kernel + w.perf_sample(2, pid=9)))[0]
    assert found["process"] == "kworker/0:1"


def test_defaults_and_names_of_events() -> None:
    """Without defaults cpu-clock is counted; names come from the timebase, its counter, tracepoint or raw event."""
    assert types(only(SOUND)) == ["samples/count", "cpu-clock/nanoseconds"]
    for timebase, name in (
        ({4: 11, 10: "mine"}, "mine/instructions"),
        ({3: w.message({1: "sched:switch"})}, "sched:switch/count"),
        ({5: w.message({1: 4, 2: 0x11, 3: 1})}, "raw.0x4.0x11.0x1.0x0/count"),
        ({4: 2, 12: [1, 2]}, "page-faults:uk/count"),
        ({4: 2, 12: w.packed([3, 1])}, "page-faults:uh/count"),
        ({1: 5}, "cpu-clock/nanoseconds"),
        ({4: 20}, "dummy/count"),
        ({4: 21}, "cpu-clock/count"),
    ):
        trace = w.packet(1, w.CLEARED, STATE, w.perf_defaults(timebase)) + w.perf_sample(2)
        assert types(only(trace))[1] == name


def test_times() -> None:
    """Time and duration come from the timestamps and the clocks of the trace."""
    clocks = w.packet(None, rest={6: w.message({1: [w.message({1: 1, 2: 10**18}), w.message({1: 5, 2: 1000})]})})
    trace = clocks + w.packet(1, w.CLEARED, STATE, CYCLES) + w.perf_sample(2, time=1500) + w.perf_sample(2, time=2500)
    profile = only(trace)
    assert (profile.time_nanos, profile.duration_nanos) == (10**18 + 500, 1000)


def test_stack_samples() -> None:
    """StackSamples give task, CPU, stack, events by id or themselves, or leave events to the defaults (rule R229)."""
    more = w.message(
        {
            48: w.message({1: 1, 2: 10, 3: 12}),
            49: w.message({1: 1, 2: 3, 3: 1}),
            50: [w.message({1: 1, 2: "cycles", 3: 2}), w.message({1: 2, 2: "misses", 4: "events"})],
        }
    )
    by_id = w.message({2: 1, 4: 1, 6: 2, 10: 1, 11: 500, 13: w.packed([2]), 14: w.packed([4])})
    inline = w.message(
        {1: w.message({2: 10, 3: 12}), 3: w.message({2: 3, 3: 1}), 9: w.message({2: "cycles", 3: 2}), 11: 30,
         5: w.message({1: [w.message({1: "main"}), w.message({1: "leaf", 2: "a.c", 3: 9})]}),
         12: w.message({2: "misses", 4: "events"}), 14: 1}
    )  # fmt: skip
    trace = w.packet(1, w.CLEARED, STATE + more) + w.packet(1, rest={135: by_id}) + w.packet(1, rest={135: inline})
    profile = only(trace)
    assert types(profile) == ["samples/count", "cycles/cycles", "misses/events"]
    assert stacks(profile) == {("alloc", "main"): [1, 500, 4], ("leaf", "main"): [1, 30, 1]}
    assert {(each["tid"], each["cpu"], each["mode"]) for each in labels(profile)} == {(12, 3, "user")}
    defaults = w.message({100: w.message({2: w.message({2: "wall", 3: 1})})})
    left = w.packet(1, w.CLEARED, STATE, defaults) + w.packet(
        1, rest={135: w.message({1: w.message({2: 5}), 6: 2, 11: 8})}
    )
    assert types(only(left))[1] == "wall/nanoseconds"
    unknown = w.packet(1, w.CLEARED, STATE) + w.packet(1, rest={135: w.message({2: 4, 6: 2})})
    assert "1 samples were left out" in refused(unknown)


def test_stack_samples_that_are_not_whole() -> None:
    """Errors of the unwinder are labels; a sample without a stack is told of, and one whose context, event or bytes
    are not there is left out (rule R229)."""
    start = w.packet(1, w.CLEARED, STATE + w.message({48: w.message({1: 1, 2: 10}), 49: w.message({1: 1, 2: 3})}))

    def sampled(content: dict[int, Any]) -> bytes:
        odd, whole = {2: 1, 4: 1} | content, {2: 1, 6: 3}
        return start + w.packet(1, rest={135: w.message(odd)}) + w.packet(1, rest={135: w.message(whole)})

    failed = labels(only(sampled({6: 2, 7: "no unwind info"})))[0]
    assert failed == {"pid": 10, "cpu": 3, "unwind_error": "no unwind info"}
    for content, what in (
        ({}, "1 samples count events and have no stack"),
        ({6: 77}, "1 samples were left out because a part of their callstack"),
        ({4: 9, 6: 2}, "1 samples were left out because a part"),
        ({6: 2, 10: 5}, "1 samples were left out because a part"),
        ({6: 2, 13: 5}, "1 samples were left out because a part"),
        ({6: 2, 14: b"\xff"}, "1 packets are damaged"),
        ({5: w.message({1: [w.message({1: "f"})]}) + b"\x0a"}, "1 packets are damaged"),
        ({5: w.message({1: [w.message({1: "f", 3: 1}) + b"\x08"]})}, "1 packets are damaged"),
    ):
        profile = only(sampled(content))
        assert any(what in each for each in profile.warnings), (content, profile.warnings)
        assert stacks(profile) == {("other", "main"): [1, 1]}


def test_weights_in_multiples() -> None:
    """Weights of StackSamples count in multiples of their units, up to the largest number (rule R237)."""
    task = {1: w.message({2: 5})}
    cycles, misses = w.message({2: "cycles", 3: 2, 5: 1000}), w.message({2: "misses", 5: 64})
    more = w.message({50: [w.message({1: 1, 2: "cycles", 3: 2, 5: 1000}), w.message({1: 2, 2: "misses", 5: 64})]})
    given = w.message(task | {6: 2, 9: cycles, 11: 7, 12: misses, 14: 3})
    by_id = w.message(task | {6: 2, 10: 1, 11: 7, 13: 2, 14: 3})
    start = w.packet(1, w.CLEARED, STATE + more)
    for sample in (given, by_id):
        profile = only(start + w.packet(1, rest={135: sample}))
        assert types(profile) == ["samples/count", "cycles/cycles", "misses/count"]
        assert stacks(profile) == {("alloc", "main"): [1, 7000, 192]}
    defaults = w.message({100: w.message({2: cycles, 3: misses})})
    left = w.packet(1, w.CLEARED, STATE, defaults) + w.packet(1, rest={135: w.message(task | {6: 2, 14: 3})})
    assert stacks(only(left)) == {("alloc", "main"): [1, 1000, 192]}
    for multiplier in (0, -5):
        odd = w.message(task | {6: 2, 9: w.message({2: "cycles", 5: multiplier}), 11: 7})
        assert stacks(only(start + w.packet(1, rest={135: odd}))) == {("alloc", "main"): [1, 7]}
    top = (1 << 63) - 1
    huge = w.message(task | {6: 2, 9: w.message({2: "cycles", 5: top}), 11: 2})
    profile = only(start + w.packet(1, rest={135: huge}))
    assert stacks(profile) == {("alloc", "main"): [1, top]}
    assert any("1 sums of values were too large" in warning for warning in profile.warnings)


def test_defaults_of_stack_samples_may_change() -> None:
    """Samples that leave their event to the defaults follow those that came last (rule R229)."""
    sample = w.packet(1, rest={135: w.message({1: w.message({2: 5}), 6: 2, 11: 8})})
    trace = w.packet(1, w.CLEARED, STATE)
    for name in ("first", "second"):
        defaults = w.message({100: w.message({2: w.message({2: name})})})
        trace += w.packet(1, defaults=defaults) + sample
    assert [types(profile)[1] for profile in read(trace).values()] == ["first/count", "second/count"]


# Chromium

MODULE = "67452301AB89EFCD0123456789ABCDEF0"
CHROMIUM = w.interned(
    functions={1: "named"},
    builds={1: MODULE.encode()},
    paths={1: "/opt/chrome/chrome"},
    mappings=[w.mapping(1, 1, path=[1], exact_offset=None)],
    frames=[w.frame(1, 0, 1, 0x5000), w.frame(2, 0, 1, 0x6000), w.frame(3, 1, 1)],
    callstacks=[w.callstack(1, [1, 2]), w.callstack(2, [2, 3, 1])],
)


def stream(stacks: list[int], deltas: list[int]) -> bytes:
    """A packet with a StreamingProfilePacket."""
    return w.packet(1, rest={54: w.message({1: stacks, 2: deltas})})


THREAD = w.packet(1, rest={44: w.message({1: 50, 2: 51, 5: "CrBrowserMain", 6: 5})})


def test_chromium() -> None:
    """Times add up over packets, callers are moved into the call, module ids stay (rules R131, R228, R240)."""
    trace = w.packet(1, w.CLEARED, CHROMIUM) + THREAD + stream([1, 2], [20, 5]) + stream([1], [100])
    found = read(trace)
    assert [*found] == ["chromium_profile.1.pid.50"]
    profile = found["chromium_profile.1.pid.50"]
    assert types(profile) == ["samples/count", "wall/nanoseconds"]
    # 0x5000 is a caller in one stack and the leaf of the other.
    assert stacks(profile) == {("0x6000", "0x4fff"): [2, 120_000], ("0x5000", "named", "0x5fff"): [1, 5000]}
    # A frame without an address is no caller that could be moved.
    assert sorted(profile.locations.address.tolist()) == [0, 0x4FFF, 0x5000, 0x5FFF, 0x6000]
    assert profile.duration_nanos == 130_000 - 25_000
    assert labels(profile)[0] == {"pid": 50, "tid": 51, "thread": "CrBrowserMain"}
    mappings = profile.mappings
    assert (mappings.start[0], int(mappings.limit[0]), mappings.file_offset[0]) == (0, (1 << 64) - 1, 0)
    assert profile.strings.text(mappings.build_id[0]) == "67452301AB89EFCD0123456789ABCDEF0"


def test_threads_of_chromium() -> None:
    """A TrackDescriptor tells the thread and its time as a ThreadDescriptor does; pid and tid outlive a clear, the time
    does not (rule R228)."""
    thread = w.message({1: 50, 2: 52, 5: "Compositor", 6: 5})
    track = w.packet(1, rest={60: w.message({4: thread})})
    timed = w.packet(1, w.CLEARED, CHROMIUM) + w.packet(1, rest={60: w.message({4: w.message({1: 50, 2: 52, 6: 5})})})
    profile = only(w.packet(1, w.CLEARED, CHROMIUM) + track + stream([1], [20]) + timed + stream([1], [30]))
    assert labels(profile) == [{"pid": 50, "tid": 52, "thread": "Compositor"}]
    assert stacks(profile) == {("0x6000", "0x4fff"): [2, 50_000]}


def test_modules_of_chromium_keep_apart() -> None:
    """Equal addresses in two modules are two locations, each with its module."""
    names = w.interned(
        builds={1: MODULE.encode(), 2: b"8" * 32 + b"0"},
        paths={1: "a", 2: "b"},
        mappings=[w.mapping(1, 1, path=[1], exact_offset=None), w.mapping(2, 2, path=[2], exact_offset=None)],
        frames=[w.frame(1, 0, 1, 0x5000), w.frame(2, 0, 2, 0x5000)],
        callstacks=[w.callstack(1, [1]), w.callstack(2, [2])],
    )
    profile = only(w.packet(1, w.CLEARED, names) + THREAD + stream([1, 2], [20, 5]))
    assert profile.locations.address.tolist() == [0x5000, 0x5000]
    files = [profile.strings.text(profile.mappings.filename[row]) for row in profile.locations.mapping.tolist()]
    assert sorted(files) == ["/a", "/b"]


def test_times_of_chromium() -> None:
    """Missing times end a packet, times below 0 too, and after a clear the base is missing (rule R228)."""
    start = w.packet(1, w.CLEARED, CHROMIUM) + THREAD
    assert stacks(only(start + stream([1, 1, 1], [1, 1])))["0x6000", "0x4fff"] == [2, 2000]
    assert stacks(only(start + stream([1, 1], [1, -500])))["0x6000", "0x4fff"] == [1, 1000]
    assert stacks(only(start + stream([1], [1, 7]) + stream([1], [2])))["0x6000", "0x4fff"] == [2, 3000]
    # Thousands of times that only move the time on, each by as much as one may, do not wrap around.
    back = stream([1], [1] + [-(1 << 52)] * 3000) + stream([1], [3])
    assert stacks(only(start + back))["0x6000", "0x4fff"] == [2, 4000]
    cleared = start + stream([1], [1]) + w.packet(1, w.CLEARED, CHROMIUM) + stream([1], [1])
    profile = only(cleared)
    assert stacks(profile)["0x6000", "0x4fff"] == [1, 1000]
    assert any("time is not known" in warning for warning in profile.warnings)
    assert "time is not known" in refused(w.packet(1, w.CLEARED, CHROMIUM) + stream([1], [1 << 62]))
    longest = 1 << 52
    for delta, count in ((longest - 6, 3), (longest - 5, 2), (longest, 2), (longest + 1, 1), (-longest - 1, 1)):
        profile = only(start + stream([1, 1, 1], [1, delta, 1]))
        assert stacks(profile)["0x6000", "0x4fff"] == [count, 1000 * sum([1, delta, 1][:count])]
        told = [each for each in profile.warnings if "time is not known" in each]
        assert [each.split()[0] for each in told] == [str(3 - count)] * (count < 3)
    damaged = w.packet(1, rest={54: w.message({1: b"\x01\xff", 2: [7]})})
    assert stacks(said(start + stream([1], [1]) + damaged, "1 packets are damaged"))["0x6000", "0x4fff"] == [1, 1000]
    # What is behind more callstacks than any packet has is left out.
    many = w.packet(1, rest={54: w.field(1, bytes([1]) * ((1 << 20) + 1)) + w.field(2, [1])})
    profile = said(start + many, "1 entries were left out")
    assert stacks(profile)["0x6000", "0x4fff"] == [1, 1000]


def test_heap_dumps_of_chromium() -> None:
    """Mappings without a range are Chromium's in heap dumps too; those of other CPU samples are not touched."""
    start = w.packet(1, w.CLEARED, CHROMIUM)
    dump = w.heap_packet([w.heap_dump(7, [w.heap_sample(1, 8, 0, 1)])], True) + w.heap_packet([], index=1)
    assert [*stacks(only(start + dump))] == [("0x6000", "0x4fff")]
    assert [*stacks(only(start + w.perf_sample(1)))] == [("0x6000", "0x5000")]


# Addresses and names


def test_addresses() -> None:
    """address - start + file offset is the offset in the ELF file: load bias and place in an archive are out of it
    (rule R221); nothing is subtracted from callers."""
    mapping = w.mapping(1, 1, BASE, END, exact_offset=0x5000, start_offset=0x4000, load_bias=0x3000, path=[1])
    frames = [w.frame(1, 0, 1, 0x4100), w.frame(2, 0, 1, 0x4200)]
    profile = only(
        w.packet(1, w.CLEARED, w.interned(**NAMES | {"mappings": [mapping], "frames": frames})) + w.perf_sample(2)
    )
    mappings, address = profile.mappings, profile.locations.address.tolist()
    assert (int(mappings.start[0]), int(mappings.limit[0]), int(mappings.file_offset[0])) == (BASE, END, 0x1000)
    assert sorted(each - BASE + 0x1000 + 0x3000 for each in address) == [0x4100, 0x4200]


def test_frames_without_code() -> None:
    """Errors of the unwinder, kernel frames and frames without mapping keep names and have no address."""
    names = NAMES | {
        "functions": {1: "ERROR INVALID_MAP", 2: "schedule", 3: "synthetic"},
        "builds": {},
        "paths": {1: "kernel", 2: "ERROR"},
        "mappings": [w.mapping(1, path=[1]), w.mapping(2), w.mapping(3, path=[2])],
        "frames": [w.frame(1, 1, 2), w.frame(2, 2, 1), w.frame(3, 3, 0, 0x99), w.frame(4, 1, 3)],
        "callstacks": [w.callstack(2, [1, 4, 3, 2])],
    }
    profile = only(w.packet(1, w.CLEARED, w.interned(**names)) + w.perf_sample(2))
    assert stack_names(profile) == [("schedule", "synthetic", "ERROR INVALID_MAP", "ERROR INVALID_MAP")]
    assert profile.locations.address.tolist() == [0] * 4
    text = profile.strings.text
    assert [text(each) for each in profile.mappings.filename] == ["[kernel]"]
    assert (profile.mappings.start.tolist(), profile.mappings.limit.tolist()) == ([0], [0])


@pytest.mark.parametrize(("exact", "in_file"), [(0x1000, 0x1000), (None, 0x5000)])
def test_names_without_an_address(exact: int | None, in_file: int) -> None:
    """A frame with a name and without a relative address has no address, and says nothing of where the mapping begins
    in the file; one that has neither is at the first byte (rule R221)."""
    mapping = w.mapping(1, 1, BASE, END, exact, path=[3])
    frames = [w.frame(1, 1, 1, 0x5100), w.frame(2, 2, 1)]
    profile = only(
        w.packet(1, w.CLEARED, w.interned(**NAMES | {"mappings": [mapping], "frames": frames})) + w.perf_sample(2)
    )
    assert dict(zip(stack_names(profile)[0], profile.locations.address[profile.samples.locations], strict=True)) == {
        "alloc": 0,
        "main": 0x5100 - in_file + BASE,
    }
    assert profile.mappings.file_offset.tolist() == [in_file]
    mapping = w.mapping(1, 1, BASE, END, 0, path=[3])
    unnamed = {"mappings": [mapping], "frames": [w.frame(1, 0, 1, 0x5100), w.frame(2, 0, 1)]}
    profile = only(w.packet(1, w.CLEARED, w.interned(**NAMES | unnamed)) + w.perf_sample(2))
    assert sorted(profile.locations.address.tolist()) == [BASE, BASE + 0x5100]


def test_names_with_source() -> None:
    """Names, files and lines of frames become lines."""
    names = NAMES | {"sources": {4: "a.c"}, "frames": [w.frame(1, 1, 1, 1), w.frame(2, 2, 1, 2, source=4, line=33)]}
    profile = only(w.packet(1, w.CLEARED, w.interned(**names)) + w.perf_sample(2))
    lines, functions = profile.locations.lines, profile.functions
    found = {
        (profile.strings.text(functions.name[f]), profile.strings.text(functions.filename[f]), line)
        for f, line in zip(lines.function.tolist(), lines.line.tolist(), strict=True)
    }
    assert found == {("main", "", 0), ("alloc", "a.c", 33)}


def test_module_symbols() -> None:
    """Symbols in the trace, also behind its samples, replace names of frames where they name anything: path, raw build
    id and address must agree, and the last packet counts."""
    symbols = w.module_symbols("/usr/bin/app", BUILD_ID, {0x2200: [("old", "", 0)]})
    symbols += w.module_symbols(
        "/usr/bin/app", BUILD_ID, {0x2200: [("inlined", "a.h", 3), ("outer", "a.c", 9)], 0x2100: [("", "??", 0)]}
    )
    symbols += w.module_symbols("/usr/bin/app", b"other", {0x2100: [("wrong", "", 0)]})
    assert stack_names(only(SOUND + symbols)) == [("inlined/outer", "main")]


def test_the_main_binary_comes_first() -> None:
    """Row 0 of the mappings is the program, not a library (pprof schema)."""
    names = NAMES | {
        "paths": {1: "libc.so", 2: "app"},
        "mappings": [w.mapping(1, 1, BASE, END, path=[1]), w.mapping(2, 1, 2 * END, 3 * END, path=[2])],
        "frames": [w.frame(1, 0, 1, 1), w.frame(2, 0, 2, 1)],
    }
    profile = only(w.packet(1, w.CLEARED, w.interned(**names)) + w.perf_sample(2))
    assert [profile.strings.text(each) for each in profile.mappings.filename] == ["/app", "/libc.so"]


# Hostile traces


def test_nothing_is_lost_beside_damage() -> None:
    """Lengths past the end of their message cost the packet that they are in."""
    for inner in (b"\x62\x7f", b"\x92\x04\x7f", b"\x62\x03\x32\x7f\x00", b"\x0b", b"\x50", b"\x92\x04\x02\x20\xff"):
        trace = w.packet(1, w.CLEARED, STATE) + w.field(1, b"\x50\x01" + inner) + w.perf_sample(2)
        profile = only(trace)
        assert stacks(profile) == {("alloc", "main"): [1, 0]}
        assert any("1 packets are damaged" in warning for warning in profile.warnings), inner


def test_damaged_bytes() -> None:
    """No damage raises anything but InputError."""
    trace = HEAP + SOUND + w.packet(1, w.CLEARED, CHROMIUM) + THREAD + stream([1, 2], [20, 5]) + w.compressed(SOUND)
    for at in range(0, len(trace), 3):
        for value in (0xFF, trace[at] ^ 0x80):
            damaged = trace[:at] + bytes([value]) + trace[at + 1 :]
            try:
                for each in load_all(io.BytesIO(damaged)):
                    encode(each.profile)
            except InputError:
                pass


def test_compressed_packets_do_not_nest() -> None:
    """A compressed packet within one is left out; one that is damaged, too."""
    profile = only(SOUND + w.compressed(w.compressed(SOUND)))
    assert any("within compressed packets" in warning for warning in profile.warnings)
    profile = only(SOUND + w.field(1, w.field(50, b"nonsense")) + w.field(1, w.field(133, b"nonsense")))
    assert any("2 compressed packets were left out" in warning for warning in profile.warnings)


@pytest.mark.parametrize("wrap", [w.compressed, w.zstd])
def test_damage_in_compressed_packets(wrap: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed packet that is cut or damaged costs itself, or what is behind its whole packets, and is told of."""
    good = stacks(only(SOUND))
    for odd, what in (
        (wrap(w.perf_sample(2)[:-3]), "1 packets are damaged"),
        (wrap(b"\x0f" * 30), "1 packets are damaged"),
        (w.field(1, w.field(50, b"no zlib")), "1 compressed packets were left out because they are damaged"),
        (w.field(1, w.field(133, b"no zstd")), "1 compressed packets were left out because they are damaged"),
        (w.field(1, w.field(50, zlib.compress(bytes(100))[:-6])), "1 compressed packets end too early"),
    ):
        profile = said(SOUND + odd + w.perf_sample(3), what)
        assert stacks(profile) == good | {("other", "main"): [1, 0]}
    monkeypatch.setattr(rare_packets, "MAX_INFLATED", 100)
    fits, bomb = wrap(w.perf_sample(3) + bytes([10, 0]) * 30), wrap(w.perf_sample(3) + bytes([10, 0]) * 300)
    assert stacks(only(SOUND + fits)) == good | {("other", "main"): [1, 0]}
    assert stacks(said(SOUND + bomb, "1 compressed packets were left out because they expand")) == good
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "isal", None)
    monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    if wrap is w.compressed:
        assert stacks(only(SOUND + fits)) == good | {("other", "main"): [1, 0]}


def test_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed packets are inflated up to a limit."""
    bomb = w.field(1, w.field(50, zlib.compress(bytes(80 << 20), 1)))
    profile = only(SOUND + bomb)
    assert any("expand as only bombs do" in warning for warning in profile.warnings)
    assert stacks(profile) == {("alloc", "main"): [1, 0]}


def test_packets_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet beyond all measure is passed over without being held."""
    monkeypatch.setattr(loading, "MAX_PACKET", 1000)
    profile = only(SOUND + w.field(1, w.field(900, bytes(3_000_000))) + w.perf_sample(3))
    assert len(stacks(profile)) == 2
    assert any("larger than 16 MiB" in warning for warning in profile.warnings)
    assert "cut off" in only(SOUND + b"\x0a" + w.varint((1 << 64) - 1) + b"abc").warnings[0]


def test_huge_values() -> None:
    """Values beyond 64 bits are left out or become the largest number, and that is said."""
    top = (1 << 63) - 1
    samples = [w.heap_sample(2, 1 << 63), w.heap_sample(3, top, 0, 1)]
    more = w.interned(callstacks=[w.callstack(8, [1, 3])])
    trace = heap((1, [*samples, w.heap_sample(8, top, 0, 1)])).replace(STATE, STATE)
    trace = CLEAR + w.packet(1, interned=STATE) + w.packet(1, interned=more)
    trace += w.heap_packet([w.heap_dump(7, [*samples, w.heap_sample(8, top, 0, 1)])])
    profile = only(trace)
    assert stacks(profile)["other", "main"][:2] == [2, top]
    text = "; ".join(profile.warnings)
    assert "1 heap samples were left out because their values are impossible" in text
    assert "too large" in text
    stacked = w.message({1: w.message({2: 5}), 6: 2, 11: top})
    profile = only(w.packet(1, w.CLEARED, STATE) + w.packet(1, rest={135: stacked}) * 3)
    assert stacks(profile)["alloc", "main"] == [3, top]


def said(trace: bytes, what: str) -> Profile:
    """The one profile of a trace, of which `what` is said."""
    profile = only(trace)
    assert any(what in warning for warning in profile.warnings), profile.warnings
    return profile


@pytest.mark.parametrize("number", [2**64 - 1, 2**63, 2**63 - 1])
def test_pids_and_tids_of_64_bits(number: int) -> None:
    """What no label can hold as it is has the same bits there, as a signed number (R270, numbers of tasks)."""
    trace = CLEAR + w.packet(1, interned=STATE) + w.heap_packet([w.heap_dump(number, [w.heap_sample(2, 5, 0, 1)])])
    thread = w.message({1: 5, 2: number, 6: 1000})
    trace += w.packet(1, rest={44: thread}) + w.packet(1, rest={54: w.message({1: 2, 2: 10})})
    heap, chromium = read(trace).values()
    shown = number - 2**64 if number >= 2**63 else number
    assert (labels(heap), labels(chromium)) == ([{"pid": shown}], [{"pid": 5, "tid": shown}])


def test_damage_costs_its_entry_or_sample() -> None:
    """Entries and heap samples beside a damaged one are kept (rule R238)."""
    bad = w.field(6, b"\x08")
    trace = w.packet(1, w.CLEARED, bad + STATE) + w.perf_sample(2)
    assert stacks(said(trace, "1 packets are damaged")) == {("alloc", "main"): [1, 0]}
    samples = [w.heap_sample(2, 5, 0, 1), b"\x08", w.heap_sample(3, 6, 0, 1) + b"\x98\x01\x05"]
    trace = CLEAR + w.packet(1, interned=STATE) + w.heap_packet([w.heap_dump(7, samples)])
    profile = said(trace, "1 packets are damaged")
    assert stacks(profile) == {("alloc", "main"): [1, 5, 1, 5], ("other", "main"): [1, 6, 1, 6]}


def test_callstacks_that_are_too_deep() -> None:
    """A callstack of more frames than any unwinder follows is left out without being held; others stay."""
    for frames in (w.field(2, b"\1" * 2_000_000), w.field(2, 1) * 50_000, w.field(2, b"\1" * 4097)):
        trace = w.packet(1, w.CLEARED, STATE) + w.packet(1, interned=w.field(7, w.field(1, 9) + frames))
        profile = said(trace + w.perf_sample(9) + w.perf_sample(2), "1 entries were left out")
        assert stacks(profile) == {("alloc", "main"): [1, 0]}
    deep = w.field(7, w.field(1, 9) + w.field(2, b"\1" * 4096))
    profile = only(w.packet(1, w.CLEARED, STATE + deep) + w.perf_sample(9))
    assert len(profile.samples.locations) == 4096


def test_long_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of mappings have the length that paths have, and all together one that strings have."""
    names = NAMES | {
        "paths": dict.fromkeys((1, 2, 3), "x" * 3000),
        "mappings": [APP, w.mapping(2, 1, END, END + 4096, path=[1] * 100_000)],
        "frames": [w.frame(number, number, 1 + number % 2, 0x2100) for number in (1, 2, 3)],
    }
    trace = w.packet(1, w.CLEARED, w.interned(**names)) + w.perf_sample(2)
    profile = only(trace)
    assert {len(profile.strings[name]) for name in profile.mappings.filename.tolist()} == {4096}
    monkeypatch.setattr(tracing, "MAX_STRING_BYTES", 4000)
    profile = said(trace, "strings were left out")
    assert [profile.strings[name] for name in profile.mappings.filename.tolist()] == [b"", b""]


@pytest.mark.parametrize(
    ("module", "limit", "value", "what"),
    [
        (packet_reader, "MAX_ENTRIES", 14, "24 entries were left out"),
        (packet_reader, "MAX_IDS", 8, "14 entries were left out"),
        (packet_reader, "MAX_FRAMES", 2, "entries were left out"),
        (packet_reader, "MAX_STACK_ITEMS", 4, "10 entries were left out"),
        (packet_reader, "MAX_STACKS", 2, "samples were left out because a part of their callstack"),
        (packet_reader, "MAX_COUNTERS", 1, "10 entries were left out"),
        (samples, "MAX_SAMPLES", 2, "10 entries were left out"),
        (samples, "MAX_CONTEXTS", 2, "10 entries were left out"),
        (samples, "MAX_VALUES", 4, "10 entries were left out"),
        (scan, "MAX_SEQUENCES", 1, "entries were left out because the trace has more than any real one"),
    ],
)
def test_tables_have_limits(monkeypatch: pytest.MonkeyPatch, module: Any, limit: str, value: int, what: str) -> None:
    """What is beyond a limit of a table is left out and counted; what came before it is kept."""
    more = [w.callstack(number, [number % 3 + 1] * 5) for number in range(10, 20)]
    trace = w.packet(1, w.CLEARED, STATE) + w.perf_sample(2) + w.packet(1, interned=w.interned(callstacks=more))
    trace += b"".join(w.perf_sample(number, tid=number, cpu=number) for number in range(10, 20))
    trace += w.packet(2, w.CLEARED, STATE) + w.perf_sample(2)
    monkeypatch.setattr(module, limit, value)
    assert stacks(said(trace, what))["alloc", "main"][0] > 0


def test_more_dumps_than_any_trace_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dumps beyond a limit, of the same heap or of another, are left out with a warning."""
    monkeypatch.setattr(heap_dumps, "MAX_DUMPS", 2)
    dumps = [w.heap_dump(pid, [w.heap_sample(2, 5, 0, 1)], time) for pid, time in ((7, 1), (8, 1), (7, 2), (9, 1))]
    trace = CLEAR + w.packet(1, interned=STATE) + b"".join(w.heap_packet([each]) for each in dumps)
    found = read(trace)
    assert [*found] == ["heap_dump.1.7.libc.malloc", "heap_dump.2.8.libc.malloc"]
    assert "2 heap dumps were left out because the trace has too many" in found["heap_dump.1.7.libc.malloc"].warnings


def test_more_kinds_of_samples_than_any_trace_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of events beyond a limit are left out with a warning, whatever kind of sample they are."""
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 1)
    event = w.message({1: w.message({2: 5}), 6: 2, 9: w.message({2: "event"})})
    chromium = w.packet(3, w.CLEARED, CHROMIUM) + (THREAD + stream([1], [20])).replace(b"P\x01", b"P\x03")
    for more in (
        w.packet(2, w.CLEARED, STATE, CYCLES) + w.perf_sample(2, seq=2),
        w.packet(1, rest={135: event}),
        chromium,
    ):
        profile = said(SOUND + more, "samples were left out because the trace has too many kinds of them")
        assert stacks(profile) == {("alloc", "main"): [1, 0]}
        assert any(each.startswith("1 samples were left out because a part") for each in profile.warnings)


def test_frames_in_stack_samples_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that say more frames themselves than any stack has, or than there is room for, are left out; as many as
    a limit says are read."""

    def inline(*names: str) -> bytes:
        frames = w.message({1: [w.message({1: name}) for name in names]})
        whole = w.packet(1, rest={135: w.message({1: w.message({2: 5}), 6: 2})})
        return (
            w.packet(1, w.CLEARED, STATE)
            + whole
            + w.packet(1, rest={135: w.message({1: w.message({2: 5}), 5: frames})})
        )

    for depth, rows in ((4096, 2), (4097, 1)):
        profile = only(inline(*["f"] * depth))
        assert len(profile.samples) == rows
        assert any("entries were left out" in each for each in profile.warnings) == (rows == 1)
    for limit, enough in (("MAX_FRAMES", 4), ("MAX_STACKS", 2), ("MAX_STACK_ITEMS", 4)):
        for value in (enough, enough - 1):
            monkeypatch.setattr(packet_reader, limit, value)
            found = stacks(only(inline("f", "g")))
            assert found == {("alloc", "main"): [1, 1]} | ({("g", "f"): [1, 1]} if value == enough else {})
        monkeypatch.undo()


def test_dumps_that_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many samples that wait, those before are taken as they are; their callstacks are there or not."""
    monkeypatch.setattr(heaps, "MAX_PENDING", 2)
    start = CLEAR + w.packet(1, interned=STATE)
    dumps = [w.heap_dump(7, [w.heap_sample(2 + n % 2, 10 * (n + 1), 0, n + 1) for n in range(5)])]
    profile = said(start + w.heap_packet(dumps), "2 heap dumps end before their last packet")
    assert stacks(profile) == {("alloc", "main"): [5, 50, 5, 50], ("other", "main"): [4, 40, 4, 40]}


def test_limits_of_what_heaps_and_symbols_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of heaps, symbols, defaults and mappings beyond their limits are left out with a warning."""
    start = CLEAR + w.packet(1, interned=STATE)
    dumps = [w.heap_packet([w.heap_dump(7, [w.heap_sample(2, n + 1)], n + 1)], index=n) for n in range(9)]
    monkeypatch.setattr(heap_dumps, "MAX_CHANGE_BYTES", 2000)
    found = read(start + b"".join(dumps))
    assert len(found) == 2
    assert any("7 times samples of heaps were left out" in each for each in next(iter(found.values())).warnings)
    monkeypatch.setattr(rare_packets, "MAX_SYMBOLS", 3)
    symbols = b"".join(w.module_symbols(f"/{n}", b"x", {}) for n in range(9))
    said(SOUND + symbols, "5 symbols were left out")
    said(SOUND + w.packet(1, defaults=bytes([0x7A]) + w.varint(20_000) + bytes(20_000)), "defaults were left out")
    monkeypatch.setattr(tracing, "MAX_MAPPINGS", 0)
    text = refused(SOUND + w.perf_sample(3))
    assert "; 1 mappings were left out, with the frames in them, because the trace has too many" in text


def test_samples_of_one_deep_callstack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bytes a sample stand for all frames of its callstack; the frames of a profile have a limit."""
    deep = w.interned(callstacks=[w.callstack(9, [1, 2, 3] * 100)])
    trace = w.packet(1, w.CLEARED, STATE + deep) + b"".join(w.perf_sample(9, tid=n) for n in range(1, 9))
    whole = only(trace)
    assert whole.samples.locations.tolist() == whole.samples.locations[:300].tolist() * 8
    for piece in (1, 299, 300, 301, 2399):
        monkeypatch.setattr(building, "PIECE", piece)
        assert encode(only(trace)) == encode(whole)
    monkeypatch.setattr(loading, "MAX_PROFILE_FRAMES", 1000)
    assert len(said(trace, "5 samples were left out because a profile of all would be too large").samples) == 3


def test_heaps_of_many_processes_in_one_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dumps that are put together have the same limit of frames, which is said; each alone is whole."""
    trace = CLEAR + w.packet(1, interned=STATE)
    samples = [w.heap_sample(2, 5, 0, 1), w.heap_sample(3, 6, 0, 1)]
    trace += w.heap_packet([w.heap_dump(pid, samples) for pid in (7, 8, 9)])
    monkeypatch.setattr(loading, "MAX_PROFILE_FRAMES", 7)
    assert [len(profile.samples) for profile in read(trace).values()] == [2, 2, 2]
    merged = only(trace, merge=["processes"])
    assert [each["pid"] for each in labels(merged)] == [7, 7, 8]
    assert "3 samples were left out because a profile of all would be too large" in merged.warnings


def test_messages_with_many_fields() -> None:
    """Numbers of fields that nothing has cost nothing: neither where headers are read, nor in rare packets."""
    many = b"".join(w.field(number, 1) for number in range(16, 5000))
    dump = w.heap_dump(7, [w.heap_sample(2, 5, 0, 1)]) + many
    process = w.packet(None, rest={43: many + w.message({1: 7, 6: "named"})})
    profile = only(CLEAR + w.packet(1, interned=STATE) + w.heap_packet([dump]) + process)
    assert labels(profile)[0] == {"pid": 7, "process": "named"}
    assert len(message(many)) == 128 - 16
    assert [*fields(w.field(3, 5) + bytes(100))] == [(3 << 3, 5)]


def test_many_events_of_one_sequence() -> None:
    """Samples that each describe their event anew: only some kinds of them are profiles, the others are told of."""
    trace = w.packet(1, w.CLEARED, STATE)
    for number in range(5000):
        event = w.message({2: f"event{number}"})
        trace += w.packet(1, rest={135: w.message({1: w.message({2: 5}), 6: 2, 9: event})})
    found = load_all(io.BytesIO(trace))
    assert len(found) == 4096
    assert "samples were left out because the trace has too many kinds" in "; ".join(found[0].warnings)
    assert {each.profile.samples.values[0, 0] for each in found[-2:]} == {1}


def test_events_that_are_described_at_length() -> None:
    """Of a description that is too long its beginning counts; what is remembered of events does not grow with it."""
    trace = w.packet(1, w.CLEARED, STATE)
    for number in range(30):
        event = w.message({2: "event", 5: 3, 6: f"{number}" + "x" * 400_000})
        trace += w.compressed(w.packet(1, rest={135: w.message({6: 2, 9: event, 11: 1, 12: [event], 14: [2]})}))
    tracemalloc.start()
    try:
        (profile,) = read(trace).values()
        assert tracemalloc.get_traced_memory()[0] < 4_000_000
    finally:
        tracemalloc.stop()
    assert types(profile) == ["samples/count", "event/count", "event/count"]
    assert stacks(profile) == {("alloc", "main"): [30, 90, 180]}


def test_names_of_processes_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, starts and records of processes and threads are bounded, and what is left out is said; others stay."""
    tree = w.process_tree({10: ["app"]}, {11: ("worker", 10)})
    many = w.process_tree({pid: [f"{pid}" * 50] for pid in range(100, 200)}, dict.fromkeys(range(100, 200), ("x", 1)))
    monkeypatch.setattr(processes, "MAX_NAME_BYTES", 5000)
    profile = said(SOUND + tree + many * 2, "names of processes and threads were left out")
    assert labels(profile)[0] == {
        "pid": 10,
        "process": "app",
        "tid": 11,
        "thread": "worker",
        "cpu": 0,
        "mode": "user",
    }
    monkeypatch.setattr(processes, "MAX_RECORDS", 2)
    said(SOUND + tree + many * 2, "2 times processes or threads were left out")
    monkeypatch.setattr(processes, "MAX_KNOWN", 1)
    known = processes.Processes(Counter())
    places = [known.described(0, pid, start * SECOND) for pid in (5, 6) for start in (1, 9)]
    assert places == [0, processes.instance_of(0, 1), 0, 0]


def test_many_mappings_and_sequences() -> None:
    """Thousands of mappings are read in moderate time; sequences have a limit."""
    numbers = range(1, 10_000)
    mappings = [w.mapping(number, 0, number << 12, (number + 1) << 12) for number in numbers]
    frames = [w.frame(number, 0, number, 5) for number in numbers]
    stack = [w.callstack(number, [number]) for number in numbers]
    trace = w.packet(1, w.CLEARED, w.interned(mappings=mappings, frames=frames, callstacks=stack))
    trace += b"".join(map(w.perf_sample, numbers))
    assert len(only(trace).mappings) == 9999
    many = b"".join(w.packet(number, w.CLEARED) for number in range(2, 9000))
    assert any("more than any real one" in warning for warning in only(SOUND + many).warnings)


def test_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of profiles has a limit, which is said; merged into one, all are there."""
    monkeypatch.setattr(loading, "MAX_PROFILES", 2)
    trace = SOUND + b"".join(w.perf_sample(2, pid=pid) for pid in (1, 2, 3))
    found = read(trace)
    assert [*found] == ["profile.1.pid.10", "profile.2.pid.1"]
    assert any("samples of 2 processes were left out" in warning for warning in found["profile.1.pid.10"].warnings)
    merged = only(trace, merge=["processes"])
    assert stacks(merged)["alloc", "main"] == [4, 0]
    assert {each["pid"] for each in labels(merged)} == {10, 1, 2, 3}


DIGEST = """
import hashlib, sys
from symbolize.core import cursor
from symbolize.load import load_all
from symbolize.write import encode
found = load_all(sys.argv[1])
print(cursor.COMPILED, [each.name for each in found])
for each in found:
    profile = each.profile
    print(hashlib.sha256(encode(profile)).hexdigest(), profile.warnings)
"""


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
    packet = w.compressed(w.packet(1, rest={200: os.urandom(300) + bytes(4000)}))
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


def only_of(path: Path) -> Profile:
    """The one profile of a file."""
    (found,) = load_all(path)
    return found.profile
