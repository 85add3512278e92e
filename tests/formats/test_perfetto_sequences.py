"""The state of sequences of packets: what they intern, when it is valid."""

from typing import Any

import pytest

from symbolize.formats import encode
from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import only, read, refused, stack_names, stacks
from tests.support.perfetto_traces import BASE, CLEAR, END, NAMES, SOUND, STATE, sampled, warned


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
        assert stacks(warned(w.packet(1, w.CLEARED, cut) + w.perf_sample(2), "1 packets are damaged")) == {
            ("alloc", "main"): [1, 0]
        }
    for tag in (b"\x00\x01", b"\x07\x01", b"\x0b", b"\x0c", b"\x0e\x01", b"\x88\x80\x80\x80\x10\x01", b"\x88" * 11):
        warned(w.packet(1, w.CLEARED, STATE + tag) + w.perf_sample(2), "1 packets are damaged")
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
        profile = warned(trace, "399 samples were left out because a part of their callstack")
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
