"""Damage and limits: what is beyond them is left out and reported."""

import io
import sys
import tracemalloc
import zlib
from collections import Counter
from typing import Any

import pytest

from symbolize.core.errors import InputError
from symbolize.formats import encode, load_all
from symbolize.formats.perfetto import heaps, packet_reader, samples, scan
from symbolize.formats.perfetto import packets as rare_packets
from symbolize.formats.perfetto import reader as loading
from symbolize.formats.perfetto import trace as tracing
from symbolize.formats.perfetto.trace import TraceProcesses, instance_of
from symbolize.formats.perfetto.wire import fields, message
from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import labels, only, read, refused, stacks, types
from tests.support.perfetto_traces import (
    APP,
    BASE,
    CHROMIUM,
    CLEAR,
    CYCLES,
    END,
    HEAP,
    NAMES,
    SECOND,
    SOUND,
    STATE,
    THREAD,
    heap,
    stream,
    warned,
)


def test_nothing_is_lost_beside_damage() -> None:
    """Lengths past the end of their message cost the packet that they are in."""
    for inner in (b"\x62\x7f", b"\x92\x04\x7f", b"\x62\x03\x32\x7f\x00", b"\x0b", b"\x50", b"\x92\x04\x02\x20\xff"):
        trace = w.packet(1, w.CLEARED, STATE) + w.field(1, b"\x50\x01" + inner) + w.perf_sample(2)
        profile = only(trace)
        assert stacks(profile) == {("alloc", "main"): [1, 0]}
        assert any("1 packets are damaged" in warning for warning in profile.warnings), inner


@pytest.mark.full
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
        profile = warned(SOUND + odd + w.perf_sample(3), what)
        assert stacks(profile) == good | {("other", "main"): [1, 0]}
    monkeypatch.setattr(rare_packets, "MAX_INFLATED", 100)
    fits, bomb = wrap(w.perf_sample(3) + bytes([10, 0]) * 30), wrap(w.perf_sample(3) + bytes([10, 0]) * 300)
    assert stacks(only(SOUND + fits)) == good | {("other", "main"): [1, 0]}
    assert stacks(warned(SOUND + bomb, "1 compressed packets were left out because they expand")) == good
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
    assert stacks(warned(trace, "1 packets are damaged")) == {("alloc", "main"): [1, 0]}
    samples = [w.heap_sample(2, 5, 0, 1), b"\x08", w.heap_sample(3, 6, 0, 1) + b"\x98\x01\x05"]
    trace = CLEAR + w.packet(1, interned=STATE) + w.heap_packet([w.heap_dump(7, samples)])
    profile = warned(trace, "1 packets are damaged")
    assert stacks(profile) == {("alloc", "main"): [1, 5, 1, 5], ("other", "main"): [1, 6, 1, 6]}


def test_callstacks_that_are_too_deep() -> None:
    """A callstack of more frames than any unwinder follows is left out without being held; others stay."""
    for frames in (w.field(2, b"\1" * 2_000_000), w.field(2, 1) * 50_000, w.field(2, b"\1" * 4097)):
        trace = w.packet(1, w.CLEARED, STATE) + w.packet(1, interned=w.field(7, w.field(1, 9) + frames))
        profile = warned(trace + w.perf_sample(9) + w.perf_sample(2), "1 entries were left out")
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
    profile = warned(trace, "strings were left out")
    assert [profile.strings[name] for name in profile.mappings.filename.tolist()] == [b"", b""]


@pytest.mark.parametrize(("build", "part"), [(3000, 1), (20, 3000)])
def test_mappings_without_all_of_their_strings(monkeypatch: pytest.MonkeyPatch, build: int, part: int) -> None:
    """One of which the build id, or a part of the path, was left out has no path, which might be of another file."""
    names = NAMES | {
        "builds": {1: b"\x12" * build},
        "paths": {1: "lib", 2: "x" * part, 3: "app.so"},
        "mappings": [w.mapping(1, 1, BASE, END, path=[1, 2, 3])],
    }
    trace = w.packet(1, w.CLEARED, w.interned(**names)) + w.perf_sample(2)
    (name,) = only(trace).mappings.filename.tolist()
    assert only(trace).strings[name] == b"/lib/" + b"x" * part + b"/app.so"
    monkeypatch.setattr(tracing, "MAX_STRING_BYTES", 2500)
    profile = warned(trace, "strings were left out")
    (name,) = profile.mappings.filename.tolist()
    assert profile.strings[name] == b""
    assert stacks(profile) == {("alloc", "main"): [1, 0]}


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
    assert stacks(warned(trace, what))["alloc", "main"][0] > 0


def test_more_dumps_than_any_trace_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dumps beyond a limit, of the same heap or of another, are left out with a warning."""
    monkeypatch.setattr("symbolize.formats.perfetto.trace.MAX_DUMPS", 2)
    dumps = [w.heap_dump(pid, [w.heap_sample(2, 5, 0, 1)], time) for pid, time in ((7, 1), (8, 1), (7, 2), (9, 1))]
    trace = CLEAR + w.packet(1, interned=STATE) + b"".join(w.heap_packet([each]) for each in dumps)
    found = read(trace)
    assert [*found] == ["heap_dump.1.7.libc.malloc", "heap_dump.2.8.libc.malloc"]
    assert "2 heap dumps were left out because the trace has too many" in found["heap_dump.1.7.libc.malloc"].warnings


def test_more_kinds_of_samples_than_any_trace_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of events beyond a limit are left out with a warning, whatever kind of sample they are."""
    monkeypatch.setattr(tracing, "MAX_SESSIONS", 1)
    event = w.message({1: w.message({2: 5}), 6: 2, 9: w.message({2: "event"})})
    chromium = w.packet(3, w.CLEARED, CHROMIUM) + (THREAD + stream([1], [20])).replace(b"P\x01", b"P\x03")
    for more in (
        w.packet(2, w.CLEARED, STATE, CYCLES) + w.perf_sample(2, seq=2),
        w.packet(1, rest={135: event}),
        chromium,
    ):
        profile = warned(SOUND + more, "samples were left out because the trace has too many kinds of them")
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
    profile = warned(start + w.heap_packet(dumps), "2 heap dumps end before their last packet")
    assert stacks(profile) == {("alloc", "main"): [5, 50, 5, 50], ("other", "main"): [4, 40, 4, 40]}


def test_limits_of_what_heaps_and_symbols_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of heaps, symbols, defaults and mappings beyond their limits are left out with a warning."""
    start = CLEAR + w.packet(1, interned=STATE)
    dumps = [w.heap_packet([w.heap_dump(7, [w.heap_sample(2, n + 1)], n + 1)], index=n) for n in range(9)]
    monkeypatch.setattr("symbolize.formats.perfetto.trace.MAX_CHANGE_BYTES", 2000)
    found = read(start + b"".join(dumps))
    assert len(found) == 2
    assert any("7 times samples of heaps were left out" in each for each in next(iter(found.values())).warnings)
    monkeypatch.setattr(rare_packets, "MAX_SYMBOLS", 3)
    symbols = b"".join(w.module_symbols(f"/{n}", b"x", {}) for n in range(9))
    warned(SOUND + symbols, "5 symbols were left out")
    warned(SOUND + w.packet(1, defaults=bytes([0x7A]) + w.varint(20_000) + bytes(20_000)), "defaults were left out")
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
        monkeypatch.setattr("symbolize.core.arrays.AT_ONCE", piece)
        assert encode(only(trace)) == encode(whole)
    for limits in ({"MAX_PROFILE_FRAMES": 1000}, {"FREE_FRAMES": 1000, "MAX_DEPTH": 120}):
        with monkeypatch.context() as context:
            for name, value in limits.items():
                context.setattr(loading, name, value)
            profile = warned(trace, "5 samples were left out because a profile of all would be too large")
            assert len(profile.samples) == 3


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
    monkeypatch.setattr("symbolize.formats.perfetto.trace.MAX_NAME_BYTES", 5000)
    profile = warned(SOUND + tree + many * 2, "names of processes and threads were left out")
    assert labels(profile)[0] == {
        "pid": 10,
        "process": "app",
        "tid": 11,
        "thread": "worker",
        "cpu": 0,
        "mode": "user",
    }
    monkeypatch.setattr("symbolize.formats.perfetto.trace.MAX_RECORDS", 2)
    warned(SOUND + tree + many * 2, "2 times processes or threads were left out")
    monkeypatch.setattr("symbolize.formats.perfetto.trace.MAX_KNOWN", 1)
    known = TraceProcesses(Counter())
    places = [known.described(0, pid, start * SECOND) for pid in (5, 6) for start in (1, 9)]
    assert places == [0, instance_of(0, 1), 0, 0]


def test_processes_between_others_of_their_pid(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is too many is none of the others that had its pid, before it or after it."""
    monkeypatch.setattr("symbolize.formats.perfetto.trace.MAX_SAME", 2)
    known = TraceProcesses(Counter())
    first, second, others = (instance_of(0, number) for number in range(3))
    assert [known.described(0, 5, start * SECOND) for start in (100, 300, 200)] == [first, second, others]
    assert [known.at(0, 5, time * SECOND) for time in (150, 250, 350)] == [first, others, second]
    assert known.described(0, 5, 400 * SECOND) == others
    assert [known.at(0, 5, time * SECOND) for time in (150, 250, 450)] == [first, others, others]
    assert known.at(0, 5, 350 * SECOND) == others  # of those left out only the first and the last start are known


@pytest.mark.full
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
