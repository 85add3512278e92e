"""Reports of simpleperf."""

import gzip
import io
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from symbolize.cli import main
from symbolize.core.errors import InputError
from symbolize.formats import load as load_any
from symbolize.formats.simpleperf import (
    reader as simpleperf,
)
from symbolize.formats.simpleperf import reader as simpleperf_report
from symbolize.formats.simpleperf import (
    scan as simpleperf_scan,
)
from symbolize.formats.stand_ins import settle_stand_ins
from symbolize.profile import NONE, AddressKind, Profile, compact
from tests.support import dump_profiles, interpreted
from tests.support.messages import profile_pb2
from tests.support.messages import report_sample_pb2 as schema
from tests.support.seeds import examples
from tests.support.simpleperf_writer import (
    MAGIC,
    Model,
    file,
    framed,
    meta,
    model,
    records,
    report,
    sample,
    switch,
    thread,
)

RECORDED = sorted((Path(__file__).parents[2] / "fixtures" / "simpleperf").glob("*.proto"))


def load(found: Iterable[schema.Record | bytes], **options: Any) -> Profile:
    """The profile of records."""
    return simpleperf.load(report(found), "r.trace", **options)


def read(profile: Profile) -> Model:
    """What a profile says, in the form of the model."""
    strings, samples, locations, lines = profile.strings, profile.samples, profile.locations, profile.locations.lines
    types = [strings[each.type] for each in profile.sample_types]
    frames = []
    for row in range(len(locations)):
        mapping = locations.mapping[row]
        path = strings[profile.mappings.filename[mapping]]
        name = linked = b""
        begin, end = locations.line_offsets[row : row + 2].tolist()
        if begin < end:
            assert end == begin + 1
            function = lines.function[begin]
            name = strings[profile.functions.name[function]]
            linked = strings[profile.functions.system_name[function]]
        frames.append((path, int(locations.address[row]), name, linked))
    result: Model = {}
    seen: set[tuple[Any, ...]] = set()
    for row in range(len(samples)):
        begin, end = samples.location_offsets[row : row + 2].tolist()
        rows = tuple(samples.locations[begin:end].tolist())
        begin, end = samples.label_offsets[row : row + 2].tolist()
        labels = sorted((strings[samples.labels.key[i]], strings[samples.labels.text[i]]) for i in range(begin, end))
        assert (rows, *labels) not in seen
        seen.add((rows, *labels))
        # Mappings without a name stay apart, but the model knows files by their name only.
        values = result.setdefault((tuple(frames[each] for each in rows), tuple(labels)), {})
        for name, value in zip(types, samples.values[row].tolist(), strict=True):
            if value:
                values[name] = values.get(name, 0) + value
    return result


def totals(profile: Profile, label: bytes = b"thread") -> dict[bytes, dict[bytes, int]]:
    """Values by event for each value of a label."""
    result: dict[bytes, Counter[bytes]] = {}
    for (_, labels), values in read(profile).items():
        result.setdefault(dict(labels).get(label, b""), Counter()).update(values)
    return {text: dict(values) for text, values in result.items()}


def types_of(profile: Profile) -> list[tuple[bytes, bytes]]:
    """The sample types."""
    return [(profile.strings[each.type], profile.strings[each.unit]) for each in profile.sample_types]


def comments_of(profile: Profile) -> list[bytes]:
    """The comments."""
    return [profile.strings[each] for each in profile.comments]


NAMED = [
    meta(b"cpu-clock"),
    sample(11, [(0x10, 0, 0), (0x20, 1, -1)], 5, 100),
    sample(12, [(0x10, 0, 0), (0x20, 1, -1)], 7, 200),
    sample(11, [(0x10, 0, 0), (0x20, 1, -1)], 6, 300),
    file(0, b"/lib/liba.so", [b"a()"], [b"_Z1av"]),
    file(1, b"/bin/b"),
    thread(11, 11, b"main"),
    thread(12, 11, b"worker"),
]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recordings(path: Path) -> None:
    """What simpleperf recorded: every stack, label and value is that of the reader beside ours."""
    profile = load_any(path)
    wanted = model(records(path.read_bytes()))
    assert read(profile) == wanted
    by_thread: Counter[int] = Counter()
    for each in records(path.read_bytes()):
        if each.HasField("sample"):
            by_thread[each.sample.thread_id] += each.sample.event_count
    found = {int(tid): values[b"task-clock:u"] for tid, values in totals(profile, b"tid").items()}
    assert found == by_thread
    assert len(by_thread) == 3
    assert profile.warnings == []
    assert types_of(profile) == [(b"task-clock:u_samples", b"count"), (b"task-clock:u", b"nanoseconds")]
    assert profile.strings[profile.mappings.filename[0]] == b"/opt/mixer/mixer"


def test_main_binary() -> None:
    """The file that a process is called after comes first; a thread may be called after any other."""
    files = [file(0, b"/lib/liba.so", [b"a()"]), file(1, b"/bin/b")]
    threads = [thread(11, 11, b"b"), thread(12, 11, b"liba.so")]
    profile = load([meta(), sample(11, [(0x10, 0, 0), (0x20, 1, -1)]), *files, *threads])
    assert [profile.strings[each] for each in profile.mappings.filename] == [b"/bin/b", b"/lib/liba.so"]


def test_threads_stay_apart() -> None:
    """Equal stacks of two threads are two samples, each with its own time."""
    assert totals(load(NAMED)) == {
        b"main": {b"cpu-clock": 11, b"cpu-clock_samples": 2},
        b"worker": {b"cpu-clock": 7, b"cpu-clock_samples": 1},
    }
    assert len(load(NAMED).samples) == 2


def test_what_comes_out() -> None:
    """Labels, types, duration, mapping and addresses of a small report."""
    profile = load(NAMED)
    assert read(profile) == model(NAMED)
    assert types_of(profile) == [(b"cpu-clock_samples", b"count"), (b"cpu-clock", b"nanoseconds")]
    assert profile.strings[profile.default_sample_type] == b"cpu-clock"
    assert profile.weight_column() == 1
    assert (profile.time_nanos, profile.duration_nanos, profile.period) == (0, 200, 0)
    assert profile.mappings.start.tolist() == [0, 0]
    assert profile.mappings.limit.tolist() == [(1 << 64) - 1] * 2
    assert profile.mappings.file_offset.tolist() == [0, 0]
    assert profile.mappings.has_functions.tolist() == [True, False]
    assert profile.address_kinds.tolist() == [AddressKind.IN_FILE] * 2
    assert compact(profile).address_kind(1) is AddressKind.IN_FILE
    assert profile.warnings == []


def test_any_order() -> None:
    """Records may stand in any order; meta information last is as good as first."""
    assert read(load(reversed(NAMED))) == model(NAMED)


@pytest.mark.parametrize(
    ("event", "unit"),
    [
        (b"cpu-clock", b"nanoseconds"),
        (b"cpu-clock:u", b"nanoseconds"),
        (b"task-clock:k", b"nanoseconds"),
        (b"task-clock:ukhHG", b"nanoseconds"),
        (b"cpu-cycles:u", b"cpu-cycles"),
        (b"cpu-cycles", b"cpu-cycles"),
        (b"instructions:u:k", b"instructions"),
        (b"sched:sched_switch", b"count"),
        (b"cpu-clock-like", b"count"),
        (b"page-faults", b"count"),
    ],
)
def test_units(event: bytes, unit: bytes) -> None:
    """The unit does not depend on the modifiers of an event; the name of the type is the event as it was recorded."""
    assert types_of(load([meta(event)])) == [(event + b"_samples", b"count"), (event, unit)]


def test_several_events() -> None:
    """Each event has two types; a stack with equal labels is one sample in all of them."""
    found = [
        meta(b"cpu-cycles", b"instructions"),
        sample(1, [(1, 0, -1)], 5),
        sample(1, [(1, 0, -1)], 9, event_type_id=1),
        sample(1, [(1, 0, -1)], 4, event_type_id=7),
    ]
    profile = load(found)
    assert profile.samples.values.tolist() == [[1, 5, 1, 9, 1, 4]]
    assert profile.strings[profile.default_sample_type] == b"cpu-cycles"
    assert types_of(profile)[4] == (b"event 7_samples", b"count")
    assert any("no name" in each for each in profile.warnings)


def test_old_reports() -> None:
    """Without meta information, threads and counts, as the first versions wrote, the frames are there all the same."""
    chain = [schema.Sample.CallChainEntry(vaddr_in_file=5, file_id=0, symbol_id=-1)]
    profile = load([schema.Record(sample=schema.Sample(callchain=chain)), file(0, b"/x")])
    assert types_of(profile) == [(b"event_samples", b"count"), (b"event", b"count")]
    assert profile.samples.values.tolist() == [[1, 0]]
    assert read(profile) == {(((b"/x", 5, b"", b""),), ((b"tid", b"0"),)): {b"event_samples": 1}}


def test_no_samples() -> None:
    """A report without samples is a profile without samples."""
    profile = load([meta(b"cpu-clock"), file(0, b"/x")])
    assert len(profile.samples) == 0
    assert len(types_of(profile)) == 2
    assert load([]).sample_types == []


def test_errors_of_unwinding() -> None:
    """What stopped the unwinding is a label, and how often it happened a comment."""
    found = [sample(1, [(1, 0, -1)], error=2), sample(1, [(1, 0, -1)], error=0), sample(1, [(1, 0, -1)])]
    profile = load([meta(), *found])
    assert read(profile) == model([meta(), *found])
    assert totals(profile, b"unwinding_error").keys() == {b"NOT_ENOUGH_STACK", b""}
    assert b"Samples whose stack could not be unwound to its end: 2" in comments_of(profile)


def test_lost_samples() -> None:
    """Lost samples are a comment and a warning, and so is a count that was not reached."""
    profile = load([meta(), sample(1, []), schema.Record(lost=schema.LostSituation(sample_count=3, lost_count=8))])
    assert b"Lost samples: 8" in comments_of(profile)
    assert any(each.startswith("8 samples were lost") for each in profile.warnings)
    assert any("announces 3 samples; 1 were read" in each for each in profile.warnings)
    assert load([meta(), schema.Record(lost=schema.LostSituation(sample_count=0, lost_count=0))]).warnings == []


def test_comments() -> None:
    """What the meta information says about the app and the device."""
    fields = {
        "app_package_name": b"com.example",
        "app_type": b"debuggable",
        "android_sdk_version": b"34",
        "android_build_type": b"user",
    }
    assert comments_of(load([meta(b"cpu-cycles", **fields)])) == [
        b"App: com.example",
        b"App type: debuggable",
        b"Android SDK version: 34",
        b"Android build type: user",
    ]
    assert b"perf of Linux" in comments_of(load([meta(b"cycles:P")]))[0]
    assert b"perf of Linux" in comments_of(load([meta(b"cpu_core/cycles/")]))[0]
    assert comments_of(load([meta(b"cpu-cycles:u")])) == []


def test_mappings() -> None:
    """One mapping a path; compiled code is as many mappings as files, and what is outside all has no name."""
    paths = [
        (b"[kernel.kallsyms]", AddressKind.KERNEL),
        (b"/lib/a.so", AddressKind.IN_FILE),
        (b"/lib/a.so", AddressKind.IN_FILE),
        (b"[JIT app cache]", AddressKind.NO_BINARY),
        (b"[JIT app cache]", AddressKind.NO_BINARY),
        (b"unknown", AddressKind.NO_BINARY),
        (b"perf-12.map", AddressKind.NO_BINARY),
        (b"/data/base.apk!/classes2.dex", AddressKind.NO_BINARY),
        (b"/data/base.apk!/lib/arm64/liba.so", AddressKind.IN_FILE),
        (b"/system/framework/x.oat", AddressKind.IN_FILE),
        (b"./TemporaryFile-abcd", AddressKind.NO_BINARY),
        (b"[vdso]", AddressKind.IN_FILE),
        (b"/vendor/m.ko", AddressKind.IN_FILE),
        (b"[anon:dalvik]", AddressKind.NO_BINARY),
        (b"/data/x.vdex", AddressKind.NO_BINARY),
        (b"/x/core.jar", AddressKind.NO_BINARY),
        (b"dexfile_in_memory_12_34", AddressKind.NO_BINARY),
    ]
    frames = [(0x100, i, 0) for i in range(len(paths))]
    files = [file(i, path, [b"f"]) for i, (path, _) in enumerate(paths)]
    profile = load([meta(), sample(1, frames), *files])
    names = [profile.strings[each] for each in profile.mappings.filename]
    mapping = profile.locations.mapping[profile.samples.locations]
    assert [names[each] for each in mapping] == [b"" if path == b"unknown" else path for path, _ in paths]
    assert [profile.address_kind(each) for each in mapping] == [kind for _, kind in paths]
    assert profile.samples.locations[1] == profile.samples.locations[2]
    assert mapping[3] != mapping[4]
    assert len(set(mapping.tolist())) == len(paths) - 1
    assert profile.address_kind(0) is AddressKind.IN_FILE
    assert not profile.locations.has_lines()[profile.samples.locations[5]]


def test_names() -> None:
    """Names stay as they are; the linked name is kept, and functions of one name but two linked names stay apart."""
    names = [b"A::~A()", b"A::~A()", b"[linker]open", b"__dl_close", b"unknown", b"Main.run [DEDUPED]", b""]
    linked = [b"_ZN1AD0Ev", b"_ZN1AD2Ev", b"__dl_open", b"__dl_close", b"unknown", b"Main.run [DEDUPED]", b"_Z1x"]
    frames = [(i, 0, i) for i in range(-1, 8) if i >= 0] + [(90, 0, -1), (91, 0, 77)]
    profile = load([meta(), sample(1, frames), file(0, b"/x", names, linked)])
    settle_stand_ins(profile)
    (stack, _), *rest = read(profile)
    assert rest == []
    assert [frame[2:] for frame in stack] == [
        (b"A::~A()", b"_ZN1AD0Ev"),
        (b"A::~A()", b"_ZN1AD2Ev"),
        (b"[linker]open", b"__dl_open"),
        (b"[linker]close", b"__dl_close"),
        (b"", b""),
        (b"Main.run [DEDUPED]", b"Main.run [DEDUPED]"),
        (b"_Z1x", b"_Z1x"),
        *[(b"", b"")] * 3,
    ]
    assert [frame[1] for frame in stack] == [0, 1, 2, 3, 4, 5, 6, 7, 90, 91]
    assert any("2 functions are not in the list" in each for each in profile.warnings)
    uneven = load([meta(), sample(1, [(1, 0, 0)]), file(0, b"/x", [b"a", b"b"], [b"c"])])
    assert any("mangled names" in each for each in uneven.warnings)
    assert [frame for (stack, _) in read(uneven) for frame in stack] == [(b"/x", 1, b"a", b"")]


JAVA = [
    file(
        0,
        b"/apex/com.android.art/lib64/libart.so",
        [b"art_quick_generic_jni_trampoline", b"ExecuteNterpImpl", b"Sleep"],
    ),
    file(1, b"/data/app/base.apk!/classes.dex", [b"Main.run"]),
    file(2, b"/data/app/lib.so", [b"work"]),
]
NATIVE_METHOD, INTERPRETED, JIT, ART = range(4)


def frames_shown(frames: list[Any], **options: Any) -> list[int]:
    """The addresses that are left of a stack."""
    profile = load([meta(), sample(1, frames), *JAVA], **options)
    return profile.locations.address[profile.samples.locations].tolist()  # type: ignore[no-any-return]


def test_art_frames_by_type() -> None:
    """Frames of the type are hidden unless they are asked for; a NATIVE frame of the library is not."""
    stack = [(1, 2, 0, NATIVE_METHOD), (2, 0, 1, ART), (3, 1, 0, INTERPRETED), (4, 0, 1, ART), (5, 0, 1, NATIVE_METHOD)]
    assert frames_shown(stack) == [1, 3, 5]
    assert frames_shown(stack, show_art_frames=True) == [1, 2, 3, 4, 5]
    hidden = load([meta(), sample(1, [(2, 0, 1, ART), (3, 1, 0, INTERPRETED)]), *JAVA])
    assert dict(next(iter(read(hidden)))[1])[b"execution_type"] == b"interpreted"


def test_art_frames_by_path() -> None:
    """Without types, frames of the library next to Java frames are hidden, but not what a JNI trampoline calls."""
    assert frames_shown([(1, 2, 0), (2, 0, 0), (3, 1, 0), (4, 0, 1), (5, 2, 0)]) == [1, 3, 5]
    assert frames_shown([(1, 0, 2), (2, 0, 0), (3, 1, 0), (4, 0, 1), (5, 2, 0)]) == [1, 3, 5]
    assert frames_shown([(1, 0, 1), (2, 0, 1), (3, 2, 0), (4, 1, 0)]) == [1, 2, 3, 4]
    assert frames_shown([(1, 0, 1), (2, 0, 1), (3, 1, 0)]) == [3]
    assert frames_shown([(1, 0, 2), (2, 0, 0), (3, 1, 0)], show_art_frames=True) == [1, 2, 3]


def test_art_frames_that_the_converter_left() -> None:
    """A single frame of the library is what the converter leaves of a native method: it stays."""
    assert frames_shown([(1, 0, 2), (3, 1, 0)]) == [1, 3]


OFF_CPU = [
    meta(b"cpu-clock:u", b"sched:sched_switch", trace_offcpu=True),
    sample(1, [(0x10, 0, -1)], 250, 1000),
    sample(1, [(0x20, 0, -1)], 1, 2000, event_type_id=1),
    switch(1, 2000, False),
    switch(2, 2500, True),
    sample(2, [(0x10, 0, -1)], 250, 2700),
    switch(1, 5000, True),
    sample(1, [(0x10, 0, -1)], 250, 5500),
    sample(1, [(0x20, 0, -1)], 1, 6000, event_type_id=1),
    sample(1, [(0x10, 0, -1)], 250, 6400),
    sample(2, [(0x30, 0, -1)], 1, 6500, event_type_id=1),
    file(0, b"/x"),
]
BY_MODE = {
    "on-cpu": {b"cpu-clock:u": {0x10: 1000}},
    "off-cpu": {b"sched:sched_switch": {0x20: 3400}},
    "on-off-cpu": {b"cpu-clock:u": {0x10: 1000}, b"sched:sched_switch": {0x20: 3400}},
    "mixed-on-off-cpu": {b"cpu-clock:u": {0x10: 1000, 0x20: 3400}},
}


def by_event(profile: Profile) -> dict[bytes, dict[int, int]]:
    """Values by leaf for each event."""
    result: dict[bytes, dict[int, int]] = {name: {} for name, _ in types_of(profile)[1::2]}
    for (stack, _), values in read(profile).items():
        for name in result:
            if name in values:
                result[name][stack[0][1]] = result[name].get(stack[0][1], 0) + values[name]
    return result


@pytest.mark.parametrize("mode", BY_MODE)
def test_off_cpu(mode: Any) -> None:
    """The time off the processor lasts until the thread is back or sampled; what does not end is left out."""
    profile = load(OFF_CPU, trace_offcpu=mode)
    assert by_event(profile) == BY_MODE[mode]
    assert {unit for _, unit in types_of(profile)[1::2]} == {b"nanoseconds"}
    assert b"Samples off the processor left out because they do not end: 1" in comments_of(profile)


def test_off_cpu_by_default() -> None:
    """Both kinds come under the event on the processor, and late samples go to their place in time."""
    assert by_event(load(OFF_CPU)) == BY_MODE["mixed-on-off-cpu"]
    late = [OFF_CPU[0], *OFF_CPU[3:], OFF_CPU[1], OFF_CPU[2]]
    assert by_event(load(late)) == BY_MODE["mixed-on-off-cpu"]
    assert by_event(load([*OFF_CPU[1:], OFF_CPU[0]])) == BY_MODE["mixed-on-off-cpu"]


def test_off_cpu_at_equal_times() -> None:
    """The order of the file decides between equal times, and no time is less than 1."""
    found = [OFF_CPU[0], switch(1, 5, True), sample(1, [(1, 0, -1)], 1, 5, event_type_id=1), sample(1, [], 9, 5)]
    assert load(found, trace_offcpu="off-cpu").samples.values.tolist() == [[1, 1]]


def test_off_cpu_where_it_was_not_recorded() -> None:
    """The option has no effect, and says so."""
    profile = load(NAMED, trace_offcpu="off-cpu")
    assert read(profile) == model(NAMED)
    assert any("no effect" in each for each in profile.warnings)


def test_fields_of_a_newer_schema() -> None:
    """Fields and records that we do not know are skipped."""
    raw = [each.SerializeToString() for each in NAMED]
    body = NAMED[1].sample.SerializeToString() + b"\xba\x06\x01y\x4d\x01\x02\x03\x04\x49" + bytes(8) + b"\x38\x01"
    raw[1] = b"\x0a" + bytes([len(body)]) + body
    assert read(load([b"\x3a\x02\x08\x01", *raw, b"\xba\x06\x01y", b"\x40\x01"])) == model(NAMED)


def test_frames_apart() -> None:
    """Frames that do not stand together, as no encoder writes them, are one stack all the same."""
    one, two = (sample(1, [frame]).sample.SerializeToString() for frame in ((1, 0, -1), (2, 0, -1)))
    body = one + two
    joined = sample(1, [(1, 0, -1), (2, 0, -1)])
    profile = load([meta(), b"\x0a" + bytes([len(body)]) + body, joined])
    assert profile.samples.values.tolist() == [[2, 2]]
    assert profile.samples.locations.tolist() == [0, 1]


def test_long_frames() -> None:
    """A frame of more than 127 bytes, which a newer schema may have."""
    entry = schema.Sample.CallChainEntry(vaddr_in_file=7, file_id=0, symbol_id=-1).SerializeToString()
    entry += b"\xba\x06\xc8\x01" + bytes(200)
    body = b"\x1a" + bytes([len(entry) & 0x7F | 0x80, len(entry) >> 7]) + entry
    size = len(body)
    raw = b"\x0a" + bytes([size & 0x7F | 0x80, size >> 7]) + body
    profile = load([meta(), raw, raw])
    assert profile.locations.address.tolist() == [7]
    assert profile.samples.values.tolist() == [[2, 0]]


U64 = st.one_of(st.integers(0, 3), st.integers(0, (1 << 64) - 1))
ID = st.integers(0, 3)
TEXT = st.sampled_from([b"", b"a", b"b()", b"unknown", b"\xff\xfe", b"/lib/x.so"])


@st.composite
def any_record(draw: st.DrawFn) -> schema.Record:
    """A record of any kind; each of its fields may be absent."""

    def fields(**made: st.SearchStrategy[Any]) -> dict[str, Any]:
        return {name: draw(value) for name, value in made.items() if draw(st.booleans())}

    kind = draw(st.sampled_from(["sample", "sample", "sample", "lost", "file", "thread", "meta", "switch", "none"]))
    if kind == "sample":
        chain = []
        for _ in range(draw(st.integers(0, 3))):
            kinds = {"execution_type": st.sampled_from([0, 1, 2, 3])}
            entry = fields(vaddr_in_file=U64, file_id=ID, symbol_id=st.integers(-1, 3), **kinds)
            chain.append(schema.Sample.CallChainEntry(**entry))
        given = fields(time=U64, thread_id=st.integers(-1, 3), event_count=st.integers(0, 1 << 50), event_type_id=ID)
        if draw(st.booleans()):
            given["unwinding_result"] = schema.Sample.UnwindingResult(
                **fields(raw_error_code=ID, error_addr=U64, error_code=st.integers(0, 8))
            )
        return schema.Record(sample=schema.Sample(callchain=chain, **given))
    if kind == "lost":
        return schema.Record(lost=schema.LostSituation(**fields(sample_count=U64, lost_count=U64)))
    if kind == "file":
        names = draw(st.lists(TEXT, max_size=3))
        mangled = draw(st.sampled_from([[], names, [b"_Z1a"] * len(names), [b"_Z1b"]]))
        return schema.Record(file=schema.File(symbol=names, mangled_symbol=mangled, **fields(id=ID, path=TEXT)))
    if kind == "thread":
        return schema.Record(thread=schema.Thread(**fields(thread_id=ID, process_id=ID, thread_name=TEXT)))
    if kind == "meta":
        events = draw(st.lists(st.sampled_from([b"cpu-clock", b"x:u"]), max_size=2, unique=True))
        text = fields(app_package_name=TEXT, app_type=TEXT, android_sdk_version=TEXT, android_build_type=TEXT)
        flag = fields(trace_offcpu=st.just(False))
        return schema.Record(meta_info=schema.MetaInfo(event_type=events, **text, **flag))
    if kind == "switch":
        return schema.Record(context_switch=schema.ContextSwitch(**fields(switch_on=st.booleans(), time=U64)))
    return schema.Record()


@examples(300)
@given(st.lists(any_record(), max_size=12), st.integers(1, 40))
def test_what_is_written_is_read(found: list[schema.Record], size: int) -> None:
    """Records of every kind with any fields absent, in pieces of any size, are what the reader beside ours says."""
    found = [each for each in found if each.ByteSize()]
    data = report(found)
    pieces = (data[i : i + size] for i in range(0, len(data), size))
    assert read(simpleperf.load(pieces, "x", show_art_frames=True)) == model(found)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
@pytest.mark.full
def test_compressed(compress: Any) -> None:
    """Compressed reports, also twice, are read; one whose compressed stream is cut keeps what was read."""
    data = report(
        [meta(), *[sample(1, [(i * i * 2654435761 % (1 << 40), 0, -1)]) for i in range(20_000)], file(0, b"/x")]
    )
    whole = read(load_any(io.BytesIO(data)))
    assert read(load_any(io.BytesIO(compress(data)))) == whole
    assert read(load_any(io.BytesIO(compress(compress(data))))) == whole
    packed = compress(data)
    profile = load_any(io.BytesIO(packed[: len(packed) // 2]))
    assert 0 < profile.samples.values[:, 0].sum() < 20_000
    assert any("cut short" in each for each in profile.warnings)
    assert any("cut off" in each or "end mark" in each for each in profile.warnings)


def test_every_cut() -> None:
    """A report that is cut anywhere keeps its whole records and says so; without one it is an error."""
    data = report(NAMED)
    ends = [len(MAGIC)]
    for each in NAMED:
        ends.append(ends[-1] + len(framed(each)))
    for size in range(len(data)):
        whole = sum(end <= size for end in ends) - 1
        if whole < 1:
            with pytest.raises(InputError, match=r"cut off|not a profile|end mark|is empty"):
                load_any(io.BytesIO(data[:size]))
            continue
        profile = load_any(io.BytesIO(data[:size]))
        assert read(profile) == model(NAMED[:whole])
        assert any("cut off" in each for each in profile.warnings)
        assert len(profile.warnings) >= 1


@pytest.mark.parametrize("change", [1, -1, 2, -2, 5, 128, 1 << 16, 1 << 31, "zero"])
def test_every_size_wrong(change: Any) -> None:
    """A wrong size of a record costs at most the records from there on, and never passes in silence."""
    data = bytearray(report(NAMED))
    at = len(MAGIC)
    for number, each in enumerate(NAMED):
        size = each.ByteSize()
        wrong = 0 if change == "zero" else (size + change) & 0xFFFFFFFF
        if wrong != size:
            damaged = data[:at] + struct.pack("<I", wrong) + data[at + 4 :]
            try:
                profile = simpleperf.load(bytes(damaged), "x")
            except InputError:
                assert number == 0
            else:
                assert profile.warnings
                before = sum(one.HasField("sample") for one in NAMED[:number])
                assert profile.samples.values[:, :1].sum() >= before
                assert profile.samples.values[:, :1].sum() <= 3
        at += 4 + size


@pytest.mark.full
def test_every_byte_wrong() -> None:
    """Any byte changed gives a profile or a clear error."""
    data = report(NAMED)
    for at in range(len(MAGIC), len(data)):
        for value in (0, 0x7F, 0x80, 0xFF, data[at] ^ 1):
            try:
                simpleperf.load(data[:at] + bytes([value]) + data[at + 1 :], "x")
            except InputError as error:
                assert "\n" not in str(error)


def test_damaged_records() -> None:
    """A record that makes no sense is left out; those behind it are read."""
    bad = [b"\x0a\x7f\x01", b"\x0a\x03\x1a\x05\x01", b"\x0a\x04\x1a\x02\x08\x80", b"\x1a\x02\x1a\x09"]
    for raw in bad:
        profile = load([*NAMED[:2], raw, *NAMED[2:]])
        assert read(profile) == model(NAMED)
        assert any(each.startswith("1 damaged records") for each in profile.warnings)
    profile = load([*NAMED[:2], b"\x0a\x7f\x01", b"\x0a\x7f\x02", *NAMED[2:]])
    assert profile.samples.values.tolist() == [[1, 5]]
    assert any("is damaged at offset" in each for each in profile.warnings)


def test_hostile_numbers() -> None:
    """Sizes, counts and ids that no file has cost an error or a warning, and neither time nor memory."""
    with pytest.raises(InputError, match="more than"):
        simpleperf.load(MAGIC + b"\xff\xff\xff\xff" + bytes(100), "x")
    with pytest.raises(InputError, match="version 2"):
        simpleperf.load(b"SIMPLEPERF\x02\x00" + bytes(4), "x")
    with pytest.raises(InputError, match="64 bits"):
        load([meta(), sample(1, [], 1 << 63)])
    with pytest.raises(InputError, match="64 bits"):
        load([meta(), sample(1, [], 1 << 62), sample(2, [], 1 << 62)])
    top = (1 << 32) - 1
    profile = load([meta(), sample(1, [(1, top, (1 << 31) - 1)], event_type_id=top), file(top - 1, b"/x")])
    assert profile.strings[profile.sample_types[3].type] == b"event %d" % top
    assert any("have no record" in each for each in profile.warnings)
    off = [OFF_CPU[0], *[sample(i, [], 1, 1, event_type_id=1) for i in (1, 2)]]
    with pytest.raises(InputError, match="64 bits"):
        load([*off, switch(1, (1 << 64) - 1, True), switch(2, (1 << 64) - 1, True)])
    with pytest.raises(InputError, match="64 bits"):  # of both kinds together, which may be under one event
        load([*off[:2], sample(1, [], 1 << 62, 1 << 62)])
    with pytest.raises(InputError, match="kinds of events"):
        load([meta(*[b"e"] * 5000)])


def test_headers() -> None:
    """A file that ends within its header says where; the last byte of it is that of the version."""
    whole = report([meta(), sample(1, [])])
    for size, what in (
        (10, "is cut off within its header"),
        (11, "is cut off within its header"),
        (12, "no record is"),
    ):
        with pytest.raises(InputError, match=what) as caught:
            simpleperf.load(whole[:size], "x")
        assert caught.value.offset == size


def test_meta_information_twice() -> None:
    """The first counts, and that there are more is told."""
    profile = load([meta(b"cpu-clock"), sample(1, []), meta(b"cpu-cycles")])
    assert types_of(profile)[1] == (b"cpu-clock", b"nanoseconds")
    assert profile.warnings == ["There are several records of meta information; the first one counts."]


def limit_to(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    """Set a limit where it is read."""
    for module in (simpleperf, simpleperf_report):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, most)


@pytest.mark.parametrize(
    ("limit", "most", "records", "problem"),
    [
        ("MAX_EVENTS", 2, [sample(1, [], event_type_id=n) for n in (7, 8)], "has 2 kinds of events without a name"),
        ("MAX_FILES", 2, [sample(1, [(1, 1, -1), (1, 2, -1)])], "has frames in 2 files; 1 is the limit"),
        ("MAX_SYMBOLS", 2, [file(1, b"/a", [b"f", b"g"])], "has more than 1 names of functions"),
    ],
)
def test_limits(limit: str, most: int, records: list[Any], problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as a limit says is read, and what has one more is refused."""
    limit_to(monkeypatch, limit, most)
    load([meta(), *records])
    limit_to(monkeypatch, limit, most - 1)
    with pytest.raises(InputError, match=problem):
        load([meta(), *records])


def test_numbers_of_many_bytes() -> None:
    """A number may have ten bytes, of which the bits beyond 64 are dropped (protobuf encoding); one of eleven, or one
    that does not end, is damage."""
    address = b"\x80\x81" + b"\x80" * 7

    def loaded(number: bytes) -> Profile:
        frame = b"\x08" + number + b"\x10\x00"
        content = b"\x08\x01\x10\x01" + b"\x1a" + bytes([len(frame)]) + frame + b"\x20\x01"
        return load([meta(), b"\x0a" + bytes([len(content)]) + content, sample(2, [(9, 0, -1)]), file(0, b"/x")])

    for last, top in ((b"\x01", 1 << 63), (b"\x03", 1 << 63), (b"\x00", 0)):
        assert sorted(loaded(address + last).locations.address.tolist()) == [9, 128 + top]
    for number in (address + b"\x80\x01", address + b"\x80" * 9):
        profile = loaded(number)
        assert profile.locations.address.tolist() == [9]
        assert any(each.startswith("1 damaged records") for each in profile.warnings)


def test_kinds_of_code_that_nobody_knows() -> None:
    """An execution type of a newer simpleperf is none that a label could name."""
    frames = b"\x1a\x06\x08\x05\x10\x00\x20\x02", b"\x1a\x06\x08\x05\x10\x00\x20\x04"
    profile = load(
        [meta(), *(b"\x0a" + bytes([len(each) + 4]) + b"\x08\x01\x10\x01" + each for each in frames), file(0, b"/x")]
    )
    assert totals(profile, b"execution_type").keys() == {b"jit", b""}


def test_more_names_than_any_program_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of all files together are limited, whatever each of them has."""
    found = [meta(), sample(1, [(1, 0, 0)]), *[file(i, b"/x", [b"f"] * 2, [b"g"] * 2) for i in range(3)]]
    limit_to(monkeypatch, "MAX_SYMBOLS", 12)
    assert read(load(found)) == model(found)
    limit_to(monkeypatch, "MAX_SYMBOLS", 11)
    with pytest.raises(InputError, match="names of functions"):
        load(found)


def test_data_behind_the_end() -> None:
    """What stands behind the end mark is named; so is an end without one."""
    assert any("behind the end" in each for each in simpleperf.load(report(NAMED) + b"more", "x").warnings)
    profile = simpleperf.load(report(NAMED, b""), "x")
    assert read(profile) == model(NAMED)
    assert any("without an end mark" in each for each in profile.warnings)


def test_many_of_everything() -> None:
    """Tables that grow keep what is in them: more frames, stacks, threads and files than fit at first."""
    found: list[schema.Record] = [meta()]
    for i in range(3000):
        frames = [(j * 7919 % 5000 + i, j % 50, -1) for j in range(i % 40)]
        found.append(sample(i % 700, frames, i, i))
    found += [file(i, b"/lib/%d.so" % i) for i in range(50)]
    assert read(load(found)) == model(found)
    assert read(load(found[::-1])) == model(found)


def test_stacks_beyond_those_known_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no more encoded stacks are kept, stacks are still known again."""
    monkeypatch.setattr(simpleperf_scan, "MAX_CHAINS", 2)
    monkeypatch.setattr(simpleperf_scan, "MAX_CHAIN_BYTES", 40)
    found = [meta(), *[sample(1, [(i % 5, 0, -1)]) for i in range(50)], file(0, b"/x")]
    assert read(load(found)) == model(found)
    assert len(load(found).samples) == 5


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command converts a report, with the options."""
    monkeypatch.chdir(tmp_path)
    Path("r.trace").write_bytes(report([*OFF_CPU, sample(1, [(2, 7, 1, ART), (3, 7, 0)], 1, 7000)]))
    sizes = []
    for options in ([], ["--show-art-frames"], ["--trace-offcpu", "off-cpu"]):
        assert main(["r.trace", "-o", "o.pb.gz", "-q", *options]) == 0
        written = profile_pb2.Profile.FromString(gzip.decompress(Path("o.pb.gz").read_bytes()))
        sizes.append((len(written.location), written.string_table[written.sample_type[1].type]))
        assert all(each.memory_limit == (1 << 64) - 1 for each in written.mapping)
    assert sizes == [(3, b"cpu-clock:u"), (4, b"cpu-clock:u"), (1, b"sched:sched_switch")]


@pytest.mark.process
def test_interpreted(tmp_path: Path) -> None:
    """Uncompiled, the scan gives the same."""
    data = tmp_path / "r.trace"
    data.write_bytes(report([*OFF_CPU, *NAMED[1:], *[sample(-5, [(1 << 63, 1, -1, 2)], error=3)] * 3, *JAVA]))
    printed = interpreted.run(tmp_path, Path(dump_profiles.__file__), str(data)).split()
    assert printed == ["False", dump_profiles.digest(data)]


def test_no_location_without_a_mapping() -> None:
    """Every frame is in a mapping, and all columns fit each other."""
    profile = load(NAMED)
    assert (profile.locations.mapping != NONE).all()
    assert profile.samples.locations.dtype == np.int32
    assert profile.samples.label_offsets[-1] == len(profile.samples.labels)


@pytest.mark.parametrize(
    "record",
    [
        b"\x1a\x04\x08\x01\x18\x05",  # File.symbol as a number: the names behind it would be of other functions
        b"\x1a\x04\x08\x01\x10\x05",  # File.path
        b"\x22\x05\x08\x01\x12\x01\x05",  # Thread.process_id as bytes
        b"\x0a\x08\x08\x01\x1a\x04\x08\x01\x12\x00",  # file_id of a frame as bytes
        b"\x0a\x04\x08\x01\x18\x05",  # callchain as a number
        b"\x08\x05",  # a sample as a number
    ],
)
def test_fields_of_another_wire_type(record: bytes) -> None:
    """R275: a record with a field that is not what the format says is left out, and said to be."""
    sound = [meta(), sample(1, [(0x10, 1, 0)]), file(1, b"/a.so", [b"f"])]
    profile = simpleperf.load(report([*sound, record, sample(1, [(0x20, 1, 0)])]), "x")
    assert any("1 damaged records were left out" in each for each in profile.warnings)
    assert len(profile.samples) == 2


def test_too_many_files_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """R276: what is an object each is limited, which is said; those that are known may be described again."""
    limit_to(monkeypatch, "MAX_FILES", 1)
    limit_to(monkeypatch, "MAX_THREADS", 1)
    records = [meta(), sample(1, [(0x10, 1, 0)])]
    records += [file(1, b"/a.so"), file(2, b"/b.so"), file(1, b"/c.so")]
    records += [thread(1, 1, b"a"), thread(2, 1, b"b"), thread(1, 1, b"c")]
    profile = simpleperf.load(report(records), "x")
    said = [each for each in profile.warnings if "no recording has as many" in each]
    assert said == [f"1 records of {what} were left out: no recording has as many." for what in ("files", "threads")]
