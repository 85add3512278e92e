"""perf.data: everything that the reference of the format lists, in both byte orders, as made recordings."""

import io
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symbolize import Symbolizer
from symbolize.core.errors import ChangedFile, InputError
from symbolize.formats.model import Choice, LoadOptions
from symbolize.formats.open import load_one
from symbolize.formats.perf import header, processes, recording
from symbolize.formats.perf.header import RecordedBuildId, read_build_id, read_event
from symbolize.formats.perf.processes import BuildIds
from symbolize.formats.perf.reader import build
from symbolize.formats.perf.recording import Recording
from symbolize.profile import AddressKind, IdOrigin, Profile
from symbolize.profile.attachments import TimeConversion
from tests.support import perf_writer as w
from tests.support.needs import needs_compiled
from tests.support.perf_writer import BIG, LITTLE, Event, Format

FORMS = pytest.mark.parametrize("form", [LITTLE, BIG], ids=["little", "big"])
KERNEL = 0xFFFF_FFFF_8100_0000
ALL = LoadOptions(sample_labels=("pid", "tid", "comm", "thread_comm", "cpu", "cgroup", "execution_mode"))
NONE = LoadOptions(sample_labels=())


def read(data: bytes, options: LoadOptions = NONE) -> Profile:
    """The profile of a recording."""
    return load_one(io.BytesIO(data), options)


def stacks(profile: Profile) -> list[list[tuple[str, int]]]:
    """The stacks as files and addresses."""
    mappings, locations = profile.mappings, profile.locations
    edges = profile.samples.location_offsets.tolist()
    return [
        [
            (profile.strings.text(mappings.filename[locations.mapping[each]]), int(locations.address[each]))
            for each in profile.samples.locations[begin:end].tolist()
        ]
        for begin, end in pairwise(edges)
    ]


def labels(profile: Profile) -> list[dict[str, Any]]:
    """The labels of each sample."""
    table, edges, text = profile.samples.labels, profile.samples.label_offsets.tolist(), profile.strings.text
    return [
        {text(table.key[i]): text(table.text[i]) or int(table.number[i]) for i in range(begin, end)}
        for begin, end in pairwise(edges)
    ]


def types(profile: Profile) -> list[str]:
    """The sample types."""
    text = profile.strings.text
    return [f"{text(each.type)}/{text(each.unit)}" for each in profile.sample_types]


def app(form: Format, event: Event, pid: int = 7, **rest: int) -> list[bytes]:
    """A process with one mapping of 0x400000 to 0x410000."""
    start = form.comm(event, pid, "app", w.EXEC, **rest)
    return [start, form.mmap2(event, pid, 0x400000, 0x10000, "/bin/app", 0x1000, **rest)]


@FORMS
@pytest.mark.parametrize("is_pipe", [False, True], ids=["file", "pipe"])
def test_a_recording(form: Format, is_pipe: bool) -> None:
    """Events by their ids, stacks of kernel and process, labels, times, build ids, comments."""
    kind = w.IDENTIFIER | w.IP | w.TID | w.TIME | w.CPU | w.PERIOD | w.CALLCHAIN
    cycles = Event(0, 0, 4000, True, kind, ids=(10, 11), name="cycles")
    faults = Event(1, 2, 1, False, kind, ids=(20,), name="page-faults:u")
    records = [
        form.mmap(cycles, -1, KERNEL, 0x1000000, "[kernel.kallsyms]_text", KERNEL, w.KERNEL, id=10),
        *app(form, cycles, id=10),
        form.sample(cycles, w.KERNEL, id=11, ip=KERNEL + 8, pid=7, tid=8, time=100, cpu=3, period=5,
                    chain=[w.KERNEL_CHAIN, KERNEL + 8, KERNEL + 32, w.USER_CHAIN, 0x400100, 0x400200]),
        form.sample(cycles, w.KERNEL, id=10, ip=KERNEL + 8, pid=7, tid=8, time=200, cpu=3, period=7,
                    chain=[w.KERNEL_CHAIN, KERNEL + 8, KERNEL + 32, w.USER_CHAIN, 0x400100, 0x400200]),
        form.sample(faults, id=20, ip=0x400100, pid=7, tid=8, time=300, cpu=2, chain=[w.USER_CHAIN, 0x400100]),
    ]  # fmt: skip
    features = {
        2: form.build_id("/bin/app", b"\x12" * 20) + form.build_id("[kernel.kallsyms]", b"\x34" * 20, w.KERNEL),
        5: form.text("6.1"),
        11: form.pack("I", 2) + form.text("perf") + form.text("record"),
        21: form.pack("QQ", 100, 350),
        29: form.pack("IIQQ", 1, 1, 1_700_000_000_000_000_000, 90),
        200: b"unknown",
    }
    if not is_pipe:
        features[12] = form.names([cycles, faults])
        features[3] = form.text("host")
    profile = read((form.pipe if is_pipe else form.file)([cycles, faults], records, features), ALL)
    assert profile.warnings == []
    assert types(profile) == [
        *("cycles_sample/count", "cycles_event/count", "page-faults:u_sample/count", "page-faults:u_event/count"),
    ]
    assert profile.strings.text(profile.default_sample_type) == "cycles_event"
    assert profile.samples.values.tolist() == [[2, 12, 0, 0], [0, 0, 1, 1]]
    kernel = "[kernel.kallsyms]_text"
    assert stacks(profile) == [
        [(kernel, KERNEL + 8), (kernel, KERNEL + 31), ("/bin/app", 0x400100), ("/bin/app", 0x4001FF)],
        [("/bin/app", 0x400100)],
    ]
    common = {"pid": 7, "tid": 8, "comm": "app", "thread_comm": "app"}
    assert labels(profile) == [
        {**common, "cpu": 3, "execution_mode": "Host Kernel"},
        {**common, "cpu": 2, "execution_mode": "Host User"},
    ]
    rows = {profile.strings.text(name): row for row, name in enumerate(profile.mappings.filename.tolist())}
    assert rows["/bin/app"] == 0
    ids = [profile.strings.text(each) for each in profile.mappings.build_id.tolist()]
    assert (ids[rows["/bin/app"]], ids[rows[kernel]]) == ("12" * 20, "34" * 20)
    assert profile.time_nanos == 1_700_000_000_000_000_010
    assert profile.duration_nanos == 250
    assert [profile.strings.text(each) for each in profile.comments] == ["perf-version:6.1", "perf-command:perf record"]


@FORMS
@pytest.mark.parametrize("word", [4, 8])
def test_words_of_the_bitmap(form: Format, word: int) -> None:
    """The bitmap of features is of the machine's own words (R290, the bitmap of features)."""
    event = Event()
    features = {3: form.text("host"), 5: form.text("6.1"), 11: form.pack("I", 1) + form.text("x")}
    profile = read(form.file([event], [form.record(w.FINISHED_ROUND)], features, word))
    assert [profile.strings.text(each) for each in profile.comments] == ["perf-version:6.1", "perf-command:x"]


@FORMS
@pytest.mark.parametrize("kind", [w.COMPRESSED, w.COMPRESSED2])
@pytest.mark.parametrize("is_pipe", [False, True], ids=["file", "pipe"])
def test_compressed(form: Format, kind: int, is_pipe: bool) -> None:
    """Records may begin in one compressed record and end in the next; others come between."""
    event = Event()
    samples = [form.sample(event, ip=0x400000 + 16 * i, pid=7, time=i, chain=[w.USER_CHAIN, 0x400000 + 16 * i])
               for i in range(50)]  # fmt: skip
    raw = b"".join([*app(form, event), *samples])
    packed = form.compressed([raw[:301], raw[301:302], raw[302:1000], raw[1000:]], kind)
    packed.insert(2, form.comm(event, 7, "late", time=30))
    profile = read((form.pipe if is_pipe else form.file)([event], packed))
    assert profile.warnings == []
    assert [stack[0][1] for stack in stacks(profile)] == [0x400000 + 16 * i for i in range(50)]


@FORMS
@pytest.mark.parametrize("parts", [1, 3])
def test_sizes_that_overflow(form: Format, parts: int) -> None:
    """perf cuts the size of a large compressed record to 16 bits, and leaves out the padding (R295, size of compressed
    records)."""
    import zstandard

    event = Event(sample_type=w.IP | w.TID | w.TIME | w.RAW)
    noise = np.random.default_rng(1).integers(0, 256, (400, 604), np.uint8)
    raw = b"".join([*app(form, event), *(form.sample(event, ip=0x400000, pid=7, raw=each.tobytes()) for each in noise)])
    stream = zstandard.ZstdCompressor(level=1).compressobj()
    packed = stream.compress(raw) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    most = (1 << 16) - 17
    size = most if parts == 1 else 2 * most + 5
    first, rest = packed[:size], packed[size:]
    record = first[:most]
    for at in range(most, size, most):
        part = first[at : at + most]
        record += form.pack("IHHQ", w.COMPRESSED2, 0, 16 + len(part), 0xBAD) + part
    cut = (16 + len(record) + 7) // 8 * 8 & 0xFFFF
    records = [form.pack("IHHQ", w.COMPRESSED2, 0, cut, len(record)) + record]
    while rest:
        records.append(form.record(w.COMPRESSED2, form.pack("Q", len(rest[:60000])) + rest[:60000], 0))
        rest = rest[60000:]
    for data in (form.pipe([event], records), form.file([event], records)):
        profile = read(data)
        assert profile.warnings == []
        assert profile.samples.values[:, 0].sum() == 400


@FORMS
def test_fields_before_the_callchain(form: Format) -> None:
    """Every field of a sample has its size, whatever it holds."""
    kind = (1 << 25) - 1 & ~(w.WEIGHT | 1 << 24) | w.WEIGHT
    event = Event(sample_type=kind, read_format=0x1F, branches=1 << 17 | 1 << 19, registers=0b101, ids=(5,))
    group = form.pack("QQQ", 2, 100, 90) + form.pack("QQQ", 9, 5, 0) + form.pack("QQQ", 3, 99, 0)
    branches = form.pack("QQ", 1, 0) + form.pack("QQQ", 0x400500, 0x400600, 1) + form.pack("Q", 0)
    for event_format, values in ((0x1F, group), (0x17, form.pack("QQQQQ", 9, 100, 90, 5, 0))):
        each = Event(**{**vars(event), "read_format": event_format})
        sample = form.sample(
            each, id=5, ip=0x400100, pid=7, read=values, branches=branches, registers=(1, 2), raw=b"abcd", cgroup=77,
            chain=[w.USER_CHAIN, 0x400100, 0x400200]
        )  # fmt: skip
        cgroup = form.side(each, w.CGROUP_RECORD, form.pack("Q", 77) + b"/a/b\0", id=5)
        profile = read(form.file([each], [cgroup, *app(form, each, id=5), sample]), ALL)
        assert profile.warnings == []
        assert stacks(profile) == [[("/bin/app", 0x400100), ("/bin/app", 0x4001FF)]]
        assert profile.samples.values.tolist() == [[1, 9]]
        assert labels(profile)[0]["cgroup"] == "/a/b"


@FORMS
def test_values_of_groups(form: Format) -> None:
    """A sample of a group counts for each of its events by how much it grew (R296, values of groups)."""
    kind = w.IDENTIFIER | w.IP | w.TID | w.READ
    one = Event(0, 0, 100, False, kind, 0xC, ids=(1,), name="cycles")
    two = Event(0, 1, 100, False, kind, 0xC, ids=(2,), name="instructions")

    def sample(a: int, b: int) -> bytes:
        return form.sample(one, id=1, ip=0x400000, pid=7, read=form.pack("QQQQQ", 2, a, 1, b, 2))

    data = form.file([one, two], [*app(form, one, id=1), sample(100, 30), sample(250, 30), sample(300, 70)])
    assert read(data).samples.values.tolist() == [[3, 300, 2, 70]]


@FORMS
@pytest.mark.parametrize("is_inherited", [False, True])
def test_values_of_groups_by_thread(form: Format, is_inherited: bool) -> None:
    """Threads have counters of their own where events are inherited; else one counter goes on."""
    kind = w.IDENTIFIER | w.IP | w.TID | w.READ
    one = Event(0, 0, 100, False, kind, 0xC, ids=(1,), name="cycles", is_inherited=is_inherited)
    two = Event(0, 1, 100, False, kind, 0xC, ids=(2,), name="instructions", is_inherited=is_inherited)

    def sample(tid: int, a: int, b: int) -> bytes:
        return form.sample(one, id=1, ip=0x400000, pid=7, tid=tid, read=form.pack("QQQQQ", 2, a, 1, b, 2))

    ours, theirs = ((300, 5), (90, 3)) if is_inherited else ((100, 1), (300, 5))
    samples = [sample(7, 100, 1), sample(8, *theirs), sample(7, ours[0] + 300, ours[1] + 5)]
    found = read(form.file([one, two], [*app(form, one, id=1), *samples])).samples.values.tolist()
    assert found == [[3, 690, 3, 13] if is_inherited else [3, 400, 3, 6]]


WAYS = {
    "chain": (w.CALLCHAIN, {"chain": [w.USER_CHAIN, 0x400100, 0x400200]}),
    "branches": (w.CALLCHAIN | w.BRANCHES, {"chain": [w.USER_CHAIN, 0x400100, 0x400200]}),
    "dump": (w.USER_REGISTERS | w.USER_STACK, {"registers": [0x400100] * w.X86_64.bit_count(), "stack": b"12345678"}),
    "unusable dump": (w.USER_REGISTERS | w.USER_STACK, {"registers": [1], "stack": b"12345678"}),
    "deferred": (w.CALLCHAIN, {"chain": [w.DEFERRED_CHAIN, 9]}),
    "deferred, branches": (w.CALLCHAIN | w.BRANCHES, {"chain": [w.DEFERRED_CHAIN, 9]}),
    "never finished": (w.CALLCHAIN, {"chain": [w.DEFERRED_CHAIN, 8]}),
}
"""Fields of samples by how their stacks come."""


@FORMS
@pytest.mark.parametrize("way", WAYS)
def test_values_of_groups_whatever_becomes_of_the_stack(form: Format, way: str) -> None:
    """Each event of a group has its values, and a sample has one stack, on every way to it; samples of processes that
    are left out take what counters grew by there."""
    fields, stack = WAYS[way]
    kind = w.IDENTIFIER | w.IP | w.TID | w.TIME | w.READ | fields
    registers = 1 if way == "unusable dump" else w.X86_64
    one = Event(0, 0, 100, False, kind, 0xC, ids=(1,), name="cycles", registers=registers, stack=8)
    two = Event(0, 1, 100, False, kind, 0xC, ids=(2,), name="instructions", registers=registers, stack=8)

    def sample(time: int, a: int, b: int, pid: int = 7) -> bytes:
        counters = form.pack("QQQQQ", 2, a, 1, b, 2)
        no_branches = form.pack("QQQQ", 1, 0, 0, 0)
        branches = {"branches": no_branches} if fields & w.BRANCHES else {}
        return form.sample(one, id=1, ip=0x400100, pid=pid, time=time, read=counters, **stack, **branches)

    callers = form.side(one, w.DEFERRED, form.pack("Q", 9) + form.words([0x400100, 0x400200]), pid=7, time=6, id=1)
    samples = [sample(2, 100, 30), sample(3, 250, 30), sample(4, 1250, 1030, 8), sample(5, 1300, 1070)]
    records = [*app(form, one, id=1), *app(form, one, 8, id=1), *samples, callers]
    profile = read(form.file([one, two], records), LoadOptions(sample_labels=(), choice=Choice(pids=[7])))
    assert profile.samples.values.sum(axis=0).tolist() == [3, 300, 2, 70]
    assert len(profile.samples.values) == (3 if way == "dump" else 1)
    if profile.stack_dumps is not None:
        assert profile.stack_dumps.sample.tolist() == [0, 1, 2]
        assert profile.samples.values.tolist() == [[1, 100, 1, 30], [1, 150, 0, 0], [1, 50, 1, 40]]
    chain = [0x400100] if way in ("dump", "unusable dump", "never finished") else [0x400100, 0x4001FF]
    assert {tuple(address for _, address in each) for each in stacks(profile)} == {tuple(chain)}


@FORMS
def test_periods(form: Format) -> None:
    """A sample counts what it says, else the period of the event, else 1 where that is a frequency."""
    kind = w.IP | w.TID
    sampled = [*app(form, Event(sample_type=kind)), form.sample(Event(sample_type=kind), ip=0x400000, pid=7)]
    fixed = read(form.file([Event(0, 0, 250, False, kind)], sampled))
    assert fixed.samples.values.tolist() == [[1, 250]]
    assert (fixed.period, fixed.strings.text(fixed.period_type.type)) == (250, "cycles")
    frequency = read(form.file([Event(0, 0, 4000, True, kind)], sampled))
    assert frequency.samples.values.tolist() == [[1, 1]]
    assert frequency.period == 0


@pytest.mark.parametrize(
    ("periods", "shown"),
    [
        ((5, 9), "cycles_event"),
        ((None, 9), "instructions_event"),
        ((0, 9), "instructions_event"),
        ((0, None), "cycles_sample"),
        ((), "instructions_event"),
    ],
)
def test_the_first_event_with_values_is_shown(periods: Sequence[int | None], shown: str) -> None:
    """By its periods, else by how often it was sampled; the period of the profile is that of this event."""
    kind = w.IDENTIFIER | w.IP | w.TID | w.PERIOD
    events = [
        Event(0, i, 100 + i, False, kind, ids=(i + 1,), name=name) for i, name in enumerate(("cycles", "instructions"))
    ]
    samples = [
        LITTLE.sample(event, id=event.ids[0], ip=0x400000, pid=7, period=period)
        for event, period in zip(events, periods, strict=False)
        if period is not None
    ]
    profile = read(LITTLE.file(events, [*app(LITTLE, events[0], id=1), *samples]))
    text = profile.strings.text
    assert text(profile.sample_types[profile.weight_column()].type) == shown
    event = shown.partition("_")[0]
    assert (text(profile.period_type.type), profile.period) == (event, {"cycles": 100, "instructions": 101}[event])


def test_units() -> None:
    """The clocks count nanoseconds; events without a name get the one that perf has for them."""
    events = [Event(1, 0, ids=(1,)), Event(1, 1, ids=(2,)), Event(0, 1 | 5 << 32, ids=(3,)), Event(4, 0x3C, ids=(4,)),
              Event(1, 9, ids=(5,))]  # fmt: skip
    assert types(read(LITTLE.file(events, []))) == [
        *("cpu-clock_sample/count", "cpu-clock_event/nanoseconds"),
        *("task-clock_sample/count", "task-clock_event/nanoseconds"),
        *("instructions_sample/count", "instructions_event/count", "4:0x3c_sample/count", "4:0x3c_event/count"),
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("cpu_core/cycles/", "cpu_atom/cycles/"), ["cycles"]),
        (("cpu_core/cycles/u", "cpu_atom/cycles/u"), ["cycles:u"]),
        (("cycles", "cycles"), ["cycles"]),
        (("cpu_core/cycles/", "cpu_atom/instructions/"), ["cpu_core/cycles/", "cpu_atom/instructions/"]),
    ],
)
def test_events_of_hybrid_processors(names: tuple[str, str], expected: list[str]) -> None:
    """Events that differ in the kind of core are one (R292, events of hybrid processors)."""
    kind = w.IDENTIFIER | w.IP | w.TID | w.PERIOD
    events = [Event(0, i, 1, False, kind, ids=(i + 1,), name=name) for i, name in enumerate(names)]
    samples = [LITTLE.sample(events[i], id=i + 1, ip=0x400000, pid=7, period=10 + i) for i in range(2)]
    features = {3: LITTLE.text("h"), 12: LITTLE.names(events)}
    profile = read(LITTLE.file(events, [*app(LITTLE, events[0], id=1), *samples], features))
    assert [each.removesuffix("_sample/count") for each in types(profile)[::2]] == expected
    assert profile.samples.values.sum(axis=0)[1::2].tolist() == ([21] if len(expected) == 1 else [10, 11])
    assert len(profile.samples) == 1


@FORMS
@pytest.mark.parametrize("size", [64, 72, 96, 112, 136])
def test_sizes_of_attributes(form: Format, size: int) -> None:
    """Attributes of any version are read; what they are too short for is 0."""
    event = Event(sample_type=w.IP | w.TID, size=size)
    data = form.file([event], [*app(form, event), form.sample(event, ip=0x400000, pid=7)])
    assert stacks(read(data)) == [[("/bin/app", 0x400000)]]


@FORMS
def test_order_of_times(form: Format) -> None:
    """Records count in the order of their times; those without one come before all others (R294, order of records)."""
    event = Event(sample_type=w.IP | w.TID | w.TIME)
    records = [
        form.sample(event, ip=0x400100, pid=7, time=50),
        form.sample(event, ip=0x400100, pid=7, time=20),
        form.mmap2(event, 7, 0x400000, 0x1000, "/bin/new", time=40),
        form.mmap2(event, 7, 0x400000, 0x1000, "/bin/old", time=10),
        form.record(w.FINISHED_ROUND),
        form.sample(event, ip=0x400100, pid=7, time=60),
        form.mmap2(event, 7, 0x400000, 0x1000, "/bin/last", time=55),
        form.mmap2(event, 7, 0x500000, 0x1000, "/bin/other"),
        form.sample(event, ip=0x500100, pid=7, time=1),
    ]
    for data in (form.file([event], records), form.pipe([event], records)):
        found = stacks(read(data))
        assert found == [
            *([("/bin/other", 0x500100)], [("/bin/old", 0x400100)], [("/bin/new", 0x400100)], [("/bin/last", 0x400100)])
        ]


def test_processes() -> None:
    """A process has the mappings of the one it was forked off, until it executes a program; threads share them; a pid
    may be used again."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID | w.TIME)
    times = iter(range(1, 100))

    def at(pid: int, tid: int = 0) -> bytes:
        return form.sample(event, ip=0x400100, pid=pid, tid=tid, time=next(times))

    records = [
        *app(form, event),
        form.fork(event, 8, 7, time=next(times)),
        at(8),
        form.comm(event, 8, "ls", w.EXEC, time=next(times)),
        at(8),
        form.mmap2(event, 8, 0x400000, 0x1000, "/bin/ls", time=next(times)),
        at(8),
        form.fork(event, 7, 7, 9, time=next(times)),
        form.comm(event, 7, "worker", tid=9, time=next(times)),
        at(7, 9),
        form.fork(event, 8, 8, kind=w.EXIT, time=next(times)),
        at(8),
        form.fork(event, 8, 7, time=next(times)),
        at(8),
        form.record(w.FORK, form.fork(event, 10, 7, time=next(times))[8:], w.EXEC),  # a process that was there before
        at(10),
    ]
    profile = read(form.file([event], records), LoadOptions(sample_labels=("pid", "comm", "thread_comm")))
    found = list(zip((stack[0][0] for stack in stacks(profile)), map(dict.values, labels(profile)), strict=True))
    assert [(name, *values) for name, values in found] == [
        ("/bin/app", 8, "app", "app"),
        ("[unknown]", 8, "ls", "ls"),
        ("/bin/ls", 8, "ls", "ls"),
        ("/bin/app", 7, "app", "worker"),
        ("[unknown]", 10, "app", "app"),
    ]
    assert profile.samples.values[:, 0].tolist() == [2, 1, 2, 1, 1]


def test_processes_that_share_mappings() -> None:
    """Each has the mappings of the one that it was forked off, which are in use, and none of another one: neither a
    second child, nor one whose pid another process had."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID | w.TIME)
    times = iter(range(1, 100))

    def at(pid: int) -> bytes:
        return form.sample(event, ip=0x400100, pid=pid, time=next(times))

    records = [
        *app(form, event),
        at(7),
        form.comm(event, 8, "ls", w.EXEC, time=next(times)),
        form.mmap2(event, 8, 0x400000, 0x1000, "/bin/ls", time=next(times)),
        at(8),
        form.fork(event, 17, 7, time=next(times)),
        form.fork(event, 18, 8, time=next(times)),
        at(17),
        at(18),
        form.fork(event, 8, 7, time=next(times)),
        at(8),
        at(7),
    ]
    profile = read(form.file([event], records), LoadOptions(sample_labels=("pid",)))
    found = zip((stack[0][0] for stack in stacks(profile)), labels(profile), profile.samples.values[:, 0], strict=True)
    assert [(file, label["pid"], int(count)) for file, label, count in found] == [
        ("/bin/app", 7, 2),
        ("/bin/ls", 8, 1),
        ("/bin/app", 17, 1),
        ("/bin/ls", 18, 1),
        ("/bin/app", 8, 1),
    ]


def test_a_process_first_named_by_a_thread() -> None:
    """Where a recording begins later, a thread may be named before its process, which is called so until it is too."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID | w.TIME)
    records = [
        form.comm(event, 7, "worker", tid=9, time=1),
        form.sample(event, ip=0x400100, pid=7, tid=9, time=2),
        form.comm(event, 7, "late", tid=10, time=3),
        form.sample(event, ip=0x400100, pid=7, tid=10, time=4),
        form.comm(event, 7, "app", time=5),
        form.sample(event, ip=0x400100, pid=7, tid=9, time=6),
    ]
    options = LoadOptions(sample_labels=("comm", "thread_comm"))
    found = [tuple(each.values()) for each in labels(read(form.file([event], records), options))]
    assert found == [("worker", "worker"), ("worker", "late"), ("app", "worker")]
    chosen = read(form.file([event], records), LoadOptions(choice=Choice(processes=["worker"])))
    assert chosen.samples.values[:, 0].sum() == 2


def test_idle_threads() -> None:
    """No record names the process 0; it is called as perf calls it, and can be chosen by that."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID)
    records = [*app(form, event), *(form.sample(event, ip=0x400000, pid=pid) for pid in (0, 7, 0))]
    data = form.file([event], records)
    profile = read(data, LoadOptions(sample_labels=("pid", "comm", "thread_comm")))
    assert [list(each.values()) for each in labels(profile)] == [[0, "swapper", "swapper"], [7, "app", "app"]]
    assert profile.samples.values[:, 0].tolist() == [2, 1]
    chosen = read(data, LoadOptions(choice=Choice(processes=["swapper"])))
    assert chosen.samples.values[:, 0].tolist() == [2]


def test_overlapping_mappings() -> None:
    """A mapping takes the place of what it covers; what is left of that keeps its offsets."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID)
    records = [
        *app(form, event),
        form.mmap2(event, 7, 0x404000, 0x1000, "/lib/b", 0x9000),
        form.mmap2(event, 7, 0x40F000, 0x2000, "/lib/c"),
        form.mmap2(event, 7, 0x401000, 0x1000, "/data", protection=1),
        form.mmap(event, 7, 0x402000, 0x1000, "/data", misc=w.USER | w.DATA),
        *(form.sample(event, ip=ip, pid=7) for ip in (0x401000, 0x403FFF, 0x404000, 0x405000, 0x40F000, 0x410FFF)),
    ]
    profile = read(form.file([event], records))
    mappings, rows = profile.mappings, profile.locations.mapping
    offsets = profile.locations.address - mappings.start[rows] + mappings.file_offset[rows]
    names = [stack[0][0] for stack in stacks(profile)]
    assert list(zip(names, offsets.tolist(), strict=True)) == [
        *(("/bin/app", 0x2000), ("/bin/app", 0x4FFF), ("/lib/b", 0x9000), ("/bin/app", 0x6000)),
        *(("/lib/c", 0), ("/lib/c", 0x1FFF)),
    ]
    assert all(mappings.limit > mappings.start)


def test_kernel() -> None:
    """A kernel whose mapping begins at 0 begins at its symbol; functions come and go; a module has its build id."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID | w.TIME)
    module = 0xFFFF_FFFF_C000_0000
    bpf = module + 0x100000
    records = [
        form.mmap(event, -1, 0, KERNEL + 0x1000000, "[kernel.kallsyms]_text", KERNEL + 0x10, w.KERNEL),
        form.mmap(event, -1, module, 0x4000, "/lib/modules/6.1/kernel/fs/ex-t.ko.xz", 0, w.KERNEL),
        form.side(event, w.KSYMBOL, form.pack("QIHH", bpf, 64, 1, 0) + b"bpf_prog_1_x\0"),
        form.sample(event, w.KERNEL, ip=KERNEL + 0x20, pid=7, time=1),
        form.sample(event, w.KERNEL, ip=module + 16, pid=7, time=2),
        form.sample(event, w.KERNEL, ip=bpf + 16, pid=7, time=3),
        form.side(event, w.KSYMBOL, form.pack("QIHH", bpf, 64, 1, 1) + b"bpf_prog_1_x\0", time=4),
        form.sample(event, w.KERNEL, ip=bpf + 16, pid=7, time=5),
    ]
    features = {2: form.build_id("[ex_t]", b"\x56" * 20, w.KERNEL | w.HAS_SIZE), 3: form.text("host")}
    profile = read(form.file([event], records, features))
    names = [stack[0][0] for stack in stacks(profile)]
    assert names == ["[kernel.kallsyms]_text", "/lib/modules/6.1/kernel/fs/ex-t.ko.xz", "[bpf]", "[kernel.kallsyms]"]
    rows = profile.locations.mapping.tolist()
    assert profile.mappings.start[rows[0]] == KERNEL
    assert profile.strings.text(profile.mappings.build_id[rows[1]]) == "56" * 20
    assert profile.address_kind(rows[2]) == AddressKind.NO_BINARY
    frames = [stack[0] for stack in profile.stacks()]
    assert [frame.function for frame in frames] == ["", "", "bpf_prog_1_x", ""]


def test_build_ids() -> None:
    """A mapping's own build id counts before the table; sizes are given, or zeros are padding (R289, sizes of build
    ids)."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID)
    paths = {"/a": b"", "/b": b"", "/c": b"", "/d": b"\x77" * 20}
    records = [form.comm(event, 7, "x", w.EXEC)]
    for i, (path, own) in enumerate(paths.items()):
        records.append(form.mmap2(event, 7, 0x10000 * (i + 1), 0x1000, path, build_id=own))
        records.append(form.sample(event, ip=0x10000 * (i + 1), pid=7))
    table = [("/a", b"\x11" * 18, w.USER | w.HAS_SIZE), ("/b", b"\x22" * 16, w.USER), ("/d", b"\x33" * 20, w.USER)]
    features = {2: b"".join(form.build_id(*each) for each in table), 3: form.text("host")}
    profile = read(form.file([event], records, features))
    names, found = ([profile.strings.text(each) for each in column.tolist()]
                    for column in (profile.mappings.filename, profile.mappings.build_id))  # fmt: skip
    ids = dict(zip(names, found, strict=True))
    assert ids == {"/a": "11" * 18, "/b": "22" * 16, "/c": "", "/d": "77" * 20}


@pytest.mark.parametrize(
    ("build_id", "misc", "size", "expected"),
    [
        (b"\x11" * 15 + b"\0", w.HAS_SIZE, 16, 16),
        (b"\x11" * 15 + b"\0", 0, 0, 16),  # zeros are padding four at a time
        (b"\x11" * 15, 0, 15, 16),  # without the bit the byte says nothing
        (b"\x11" * 12, 0, 0, 12),
        (b"\x11" * 20, w.HAS_SIZE, 99, 20),
        (b"", 0, 0, 0),
    ],
)
def test_sizes_of_build_ids(build_id: bytes, misc: int, size: int, expected: int) -> None:
    """The size of a build id is given, or found by its padding (R289, sizes of build ids)."""
    body = bytes(4) + build_id.ljust(20, b"\0") + bytes([size, 0, 0, 0]) + b"/bin/app\0"
    found = read_build_id(w.USER | misc, body)
    assert (found.name, found.build_id) == (b"/bin/app", build_id.ljust(expected, b"\0"))


@FORMS
def test_ids_among_other_fields(form: Format) -> None:
    """Without identifiers the id is behind the fields before it, in samples and at the end of other records (R291, ids
    of events)."""
    kind = w.IP | w.TID | w.TIME | w.ADDR | w.ID | w.STREAM_ID | w.CPU
    events = [Event(ids=(5,), sample_type=kind, name="one"), Event(ids=(6,), sample_type=kind, name="two")]
    records = app(form, events[1], id=6, time=1, cpu=2)
    records += [
        form.sample(events[1], ip=0x400100, pid=7, id=6, time=2),
        form.sample(events[0], ip=0x400100, pid=7, id=5),
    ]
    records.append(form.mmap2(events[1], 7, 0x400000, 0x1000, "/bin/new", id=6, time=3))
    profile = read(form.file(events, records))
    text = profile.strings.text
    assert [text(each.type) for each in profile.sample_types if text(each.type) != "samples"]
    assert sorted(stack[0][0] for stack in stacks(profile)) == ["/bin/app", "[unknown]"]
    assert profile.warnings == []


def test_kernel_of_the_table() -> None:
    """The kernel may be in the table under the path of its file (R293, names in the table of build ids)."""
    for name in (b"[kernel.kallsyms]", b"[kernel.kallsyms]_text", b"/usr/lib/debug/boot/vmlinux-6.1", b"/proc/kcore"):
        table = BuildIds(
            [
                RecordedBuildId(name, b"\x11" * 20, True, False),
                RecordedBuildId(b"/boot/vmlinux", b"\x22" * 20, True, True),
            ]
        )
        assert table.find(b"[kernel.kallsyms]_text") == (b"\x11" * 20, IdOrigin.RECORDED)


def test_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record may come a round late, and records of one time count as they come (R294, order of records)."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID | w.TIME)
    records = [
        *app(form, event),
        form.sample(event, ip=0x400100, pid=7, time=20),
        form.record(w.FINISHED_ROUND),
        form.mmap2(event, 7, 0x400000, 0x1000, "/bin/late", time=10),
        form.mmap2(event, 7, 0x400000, 0x1000, "/bin/later", time=10),
        form.record(w.FINISHED_ROUND),
    ]
    monkeypatch.setattr(recording, "PENDING", 1)
    made = Recording("test", False, NONE)
    made.add_event(read_event(form.attr(event), False))
    made.read_pieces(records)
    made.finish()
    assert stacks(build(made)) == [[("/bin/later", 0x400100)]]


def test_guests() -> None:
    """Addresses of guests are in no mapping of the host, and their samples say what they are."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID | w.CALLCHAIN)
    records = [
        *app(form, event),
        form.mmap(event, -1, KERNEL, 0x1000000, "[guest.kernel.kallsyms]_text", KERNEL, w.GUEST_KERNEL),
        form.sample(event, w.GUEST_KERNEL, ip=KERNEL, pid=7),
        form.sample(event, w.GUEST_USER, ip=0x400100, pid=7, chain=[w.GUEST_CHAIN, 0x400100, 0x400200]),
        form.sample(event, w.HYPERVISOR, ip=0x400100, pid=7, chain=[w.HYPERVISOR_CHAIN, 0x400100]),
    ]
    profile = read(form.file([event], records))
    assert [stack[0][0] for stack in stacks(profile)] == ["[guest]", "[guest]", "[hypervisor]"]
    assert [each.get("execution_mode") for each in labels(profile)] == ["Guest Kernel", "Guest User", None]


CHAINS = [
    # The address is repeated, then come callers.
    (w.USER, 0x400100, [w.USER_CHAIN, 0x400100, 0x400200], [0x400100, 0x4001FF]),
    # A precise address is not that of the callchain.
    (w.USER, 0x400100, [w.USER_CHAIN, 0x400104, 0x400200], [0x400100, 0x4001FF]),
    # The kernel's part was not recorded.
    (w.KERNEL, KERNEL, [w.USER_CHAIN, 0x400100, 0x400200], [KERNEL, 0x400100, 0x4001FF]),
    (w.USER, 0x400100, [], [0x400100]),
    # What frame pointers end with, and markers that are not known.
    (w.USER, 0x400100, [w.USER_CHAIN, 0x400100, 0, 8, (1 << 64) - 4000, 0x400200], [0x400100, 0x400200]),
    (w.USER, 0x400100, [w.USER_CHAIN, 0x400100, 0x99999999], [0x400100, 0x99999998]),
]


@FORMS
@pytest.mark.parametrize(("mode", "address", "chain", "expected"), CHAINS)
def test_callchains(form: Format, mode: int, address: int, chain: Sequence[int], expected: Sequence[int]) -> None:
    """The address of the sample is the first frame, callers are inside their calls (R297, callchains)."""
    event = Event(sample_type=w.IP | w.TID | w.CALLCHAIN)
    data = form.file([event], [*app(form, event), form.sample(event, mode, ip=address, pid=7, chain=chain)])
    assert [each for _, each in stacks(read(data))[0]] == list(expected)


@FORMS
def test_calls_of_the_processor(form: Format) -> None:
    """Recorded calls are the user part of the stack (R298, call stacks of the processor)."""
    event = Event(sample_type=w.IP | w.TID | w.CALLCHAIN | w.BRANCHES, branches=1 << 11)
    calls = form.pack("Q", 2) + form.pack("QQQ", 0x400200, 0x400100, 0) + form.pack("QQQ", 0x400300, 0x400200, 0)
    in_user = form.sample(event, ip=0x400110, pid=7, branches=calls, chain=[w.USER_CHAIN, 0x400110, 0x409999])
    chain = [w.KERNEL_CHAIN, KERNEL, KERNEL + 16, w.USER_CHAIN, 0x400110, 0x409999]
    in_kernel = form.sample(event, w.KERNEL, ip=KERNEL, pid=7, branches=calls, chain=chain)
    found = stacks(read(form.file([event], [*app(form, event), in_user, in_kernel])))
    assert [[each for _, each in stack] for stack in found] == [
        [0x400110, 0x400200, 0x400300],
        [KERNEL, KERNEL + 15, 0x400110, 0x400200, 0x400300],
    ]


@FORMS
def test_deferred_callchains(form: Format) -> None:
    """The user part of a callchain may come later, for all samples that wait for it (R299, deferred callchains)."""
    event = Event(sample_type=w.IP | w.TID | w.TIME | w.CALLCHAIN)

    def sample(address: int, cookie: int, time: int) -> bytes:
        chain = [w.KERNEL_CHAIN, address, w.DEFERRED_CHAIN, cookie]
        return form.sample(event, w.KERNEL, ip=address, pid=7, time=time, chain=chain)

    deferred = form.side(event, w.DEFERRED, form.pack("Q", 99) + form.words([0x400100, 0x400200]), pid=7, time=4)
    records = [*app(form, event), sample(KERNEL, 99, 1), sample(KERNEL + 16, 99, 2), sample(KERNEL, 5, 3)]
    mapped = form.mmap2(event, 7, 0x400000, 0x1000, "/bin/new", time=3)
    profile = read(form.file([event], [*records, mapped, deferred]))
    assert stacks(profile) == [
        [("[kernel.kallsyms]", KERNEL + i), ("/bin/new", 0x400100), ("/bin/new", 0x4001FF)] for i in (0, 16)
    ] + [[("[kernel.kallsyms]", KERNEL)]]
    assert profile.warnings == ["1 samples lack their user callers, which the recording does not have."]


@FORMS
@pytest.mark.parametrize("is_packed", [False, True])
def test_dumps(form: Format, is_packed: bool, tmp_path: Path) -> None:
    """Registers by their DWARF numbers, the valid part of the copy, and the mappings at that time."""
    kind = w.IP | w.TID | w.TIME | w.CALLCHAIN | w.USER_REGISTERS | w.USER_STACK
    event = Event(sample_type=kind, registers=w.X86_64, stack=32)
    registers = [100 + bit for bit in range(24) if w.X86_64 >> bit & 1]
    registers[8] = 0x400100  # ip
    samples = [
        form.sample(event, ip=0x400100, pid=7, time=1, registers=registers, stack=b"a" * 32, valid=24),
        form.mmap2(event, 7, 0x300000, 0x1000, "/lib/new", time=2),
        form.sample(event, w.KERNEL, ip=KERNEL, pid=7, time=3, registers=registers, stack=b"b" * 32,
                    chain=[w.KERNEL_CHAIN, KERNEL, KERNEL + 16]),
        form.sample(event, ip=0x400100, pid=7, time=4, registers=registers, stack=b"c" * 32, abi=1),
        form.sample(event, w.KERNEL, ip=KERNEL, pid=7, time=5, chain=[w.KERNEL_CHAIN, KERNEL]),
    ]  # fmt: skip
    records = [*app(form, event), *samples]
    path = tmp_path / "perf.data"
    path.write_bytes(form.file([event], form.compressed([b"".join(records)]) if is_packed else records))
    profile = load_one(path, NONE)
    dumps = profile.stack_dumps
    assert dumps is not None
    assert profile.warnings == ["3 samples lack their callers until their stack dumps are unwound."]
    assert dumps.machine == "x86-64"
    assert dumps.sample.tolist() == [0, 1, 2]
    copies = [bytes(dumps.data[i : i + n]) for i, n in zip(dumps.offset.tolist(), dumps.size.tolist(), strict=True)]
    assert copies == [b"a" * 24, b"b" * 32, b"c" * 32]
    assert dumps.is_full.tolist() == [False, True, True]
    assert dumps.is_32bit.tolist() == [False, False, True]
    expected = [100, 103, 102, 101, 104, 105, 106, 107, *range(116, 124), 0x400100]
    assert dumps.registers.tolist() == [expected] * 3
    names = [profile.strings.text(each) for each in profile.mappings.filename[dumps.space_mappings].tolist()]
    spaces = [names[slice(*dumps.space_offsets[each : each + 2].tolist())] for each in dumps.space.tolist()]
    assert spaces == [["/bin/app"], ["/lib/new", "/bin/app"], ["/lib/new", "/bin/app"]]
    assert [[each for _, each in stack] for stack in stacks(profile)] == [
        *([0x400100], [KERNEL, KERNEL + 15, 0x400100], [0x400100], [KERNEL]),
    ]


def test_aarch64_registers() -> None:
    """perf numbers the registers of arm64 as DWARF does; the machine is that of the recording."""
    form, kind = LITTLE, w.IP | w.TID | w.USER_REGISTERS | w.USER_STACK
    event = Event(sample_type=kind, registers=(1 << 33) - 1, stack=8)
    sample = form.sample(event, ip=32, pid=7, registers=range(33), stack=b"12345678")
    features = {3: form.text("host"), 6: form.text("aarch64")}
    dumps = read(form.file([event], [*app(form, event), sample], features)).stack_dumps
    assert dumps is not None
    assert (dumps.machine, dumps.registers.tolist()) == ("aarch64", [list(range(33))])


def test_dumps_of_unknown_machines() -> None:
    """Registers that are not known cannot be unwound from: the samples are counted without callers."""
    form, kind = LITTLE, w.IP | w.TID | w.USER_REGISTERS | w.USER_STACK
    event = Event(sample_type=kind, registers=0b11, stack=8)
    sample = form.sample(event, ip=0x400000, pid=7, registers=(1, 2), stack=b"12345678")
    profile = read(form.file([event], [*app(form, event), sample]))
    assert profile.stack_dumps is None
    assert profile.warnings == ["1 samples have copies of their stacks that cannot be used: they lack callers."]


def test_neighbours_of_run_time_code() -> None:
    """What touches memory without a file in the process comes along, and nothing else (R301, run-time code)."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID)
    places = {0x3FF000: "/lib/below", 0x400000: "//anon", 0x401000: "/lib/above", 0x500000: "/lib/apart"}
    records = [form.comm(event, 7, "java", w.EXEC)]
    records += [form.mmap2(event, 7, start, 0x1000, name) for start, name in places.items()]
    profile = read(form.file([event], [*records, form.sample(event, ip=0x400000, pid=7)]))
    names = {profile.strings.text(each) for each in profile.mappings.filename.tolist()}
    assert names == {"/lib/below", "/tmp/perf-7.map", "/lib/above"}


def test_addresses_of_an_unknown_mode() -> None:
    """Where nobody knows what ran, the upper half of the addresses is the kernel's (R302, stand-ins for no mapping)."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID)
    samples = [form.sample(event, 0, ip=ip, pid=7) for ip in (0x400100, KERNEL)]
    profile = read(form.file([event], [*app(form, event), *samples]))
    assert stacks(profile) == [[("/bin/app", 0x400100)], [("[kernel.kallsyms]", KERNEL)]]


def test_run_time_code() -> None:
    """Executable memory without a file is called as the file in which compilers at run time list their code."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID)
    records = [form.comm(event, 7, "java", w.EXEC), form.mmap2(event, 7, 0x400000, 0x1000, "//anon")]
    profile = read(form.file([event], [*records, form.sample(event, ip=0x400000, pid=7)]))
    assert stacks(profile) == [[("/tmp/perf-7.map", 0x400000)]]


@pytest.mark.parametrize(
    ("choice", "count"),
    [(Choice(pids=[8]), 2), (Choice(processes=["app"]), 1), (Choice(processes=["l*"]), 1), (Choice(pids=[9]), 0)],
)
def test_choice_of_processes(choice: Choice, count: int) -> None:
    """Processes are chosen by pid, or by the name that they have when the sample is taken."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID | w.TIME)
    records = [
        *app(form, event, 8),
        form.sample(event, ip=0x400000, pid=8, time=1),
        form.comm(event, 8, "ls", w.EXEC, time=2),
        form.sample(event, ip=0x400000, pid=8, time=3),
    ]
    profile = read(form.file([event], records), LoadOptions(choice=choice))
    assert profile.samples.values[:, 0].sum() == count


def test_what_was_lost_is_reported() -> None:
    """Lost records, samples of unknown events, samples that are too short."""
    form, kind = LITTLE, w.IDENTIFIER | w.IP | w.TID
    events = [Event(sample_type=kind, ids=(1,)), Event(config=1, sample_type=kind, ids=(2,))]
    records = [
        form.side(events[0], w.LOST, form.pack("QQ", 1, 5), id=1),
        form.side(events[0], w.LOST_SAMPLES, form.pack("Q", 1000), id=1),
        form.sample(events[0], id=77, ip=1, pid=7),
        form.record(w.SAMPLE, form.pack("QQ", 1, 0x400000)),
    ]
    assert read(form.file(events, records)).warnings == [
        "1,005 records were lost while they were recorded.",
        "1 samples are shorter than their fields: they were left out.",
        "1 samples are of no known event: they were left out.",
    ]


def test_trace_data_is_skipped() -> None:
    """Bytes that follow a record without being in it."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID)
    tracing = form.record(w.TRACING_DATA, form.pack("I", 13) + b"\0" * 4, 0) + b"x" * 16
    trace = form.record(w.AUXTRACE, form.pack("QQQIIII", 24, 0, 0, 0, 0, 0, 0), 0) + b"y" * 24
    records = [*app(form, event), tracing, trace, form.sample(event, ip=0x400000, pid=7)]
    for data in (form.file([event], records), form.pipe([event], records)):
        profile = read(data)
        assert stacks(profile) == [[("/bin/app", 0x400000)]]
        assert profile.warnings == ["The trace data of the processor (AUX) in the recording is not decoded."]


ROUND = LITTLE.record(w.FINISHED_ROUND)
CUT = "The recording was cut off: its last records, or what perf writes at the end, are missing."


@FORMS
def test_recordings_that_were_cut_off(form: Format) -> None:
    """A recording whose perf was killed has no features; whole records are read, whatever is behind them."""
    event = Event(sample_type=w.IP | w.TID)
    records = [*app(form, event), form.sample(event, ip=0x400000, pid=7)]
    for data in (
        form.file([event], records, is_killed=True),
        form.file([event], [*records, records[-1][:12]], is_killed=True),
        form.pipe([event], [*records, records[-1][:12]]),
    ):
        profile = read(data)
        assert profile.warnings == [CUT]
        assert stacks(profile) == [[("/bin/app", 0x400000)]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PERFFILE" + bytes(100), "is a perf.data of perf before 3.4 (PERFFILE), which is not read; record it"),
        (LITTLE.file([Event()], [])[:90], "is a perf.data file that ends in its header"),
        (LITTLE.file([Event()], [LITTLE.record(32769)]), "simpleperf report-sample --protobuf --show-callchain"),
        (LITTLE.file([Event()], [ROUND], {3: LITTLE.text("h"), 129: b"x"}), "simpleperf report-sample --protobuf"),
        (LITTLE.file([Event()], [ROUND], {27: LITTLE.pack("IIIII", 1, 9, 0, 0, 0)}), "compressed with method 9"),
        (LITTLE.file([Event()], [])[:32] + b"\xff" * 8 + bytes(100), "a damaged list of events"),
    ],
)
def test_refused(data: bytes, message: str) -> None:
    """What is not read is refused with what to do."""
    with pytest.raises(InputError) as error:
        read(data)
    assert message in str(error.value)


@FORMS
@pytest.mark.full
def test_every_truncation(form: Format) -> None:
    """A recording that ends anywhere is read or refused."""
    event = Event(ids=(1,))
    features = {3: form.text("host"), 12: form.names([event])}
    records = [*app(form, event), form.sample(event, ip=0x400000, pid=7, time=1, chain=[w.USER_CHAIN, 0x400000])]
    for data in (form.file([event], records, features), form.pipe([event], form.compressed(records), features)):
        for end in range(16, len(data), 3):
            try:
                assert read(data[:end]).samples.values.sum() in (0, 2)
            except InputError:
                assert end < 300


@FORMS
@pytest.mark.parametrize("size", [8, 16, 24, 4000])
def test_damaged_sizes_of_compressed_records(form: Format, size: int) -> None:
    """A compressed record without content, or that is longer than the file, ends the recording."""
    event = Event(sample_type=w.IP | w.TID)
    start = [*app(form, event), form.sample(event, ip=0x400000, pid=7)]
    for left in (0, 1, 3000, 1 << 63):
        bad = form.pack("IHHQ", w.COMPRESSED2, 0, size, left)
        for data in (form.pipe([event], [*start, bad]), form.file([event], [*start, bad])):
            profile = read(data)
            assert stacks(profile) == [[("/bin/app", 0x400000)]]


def test_times_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a short queue and a small buffer the answer is the same, as long as rounds end."""
    form, event = LITTLE, Event(sample_type=w.IP | w.TID | w.TIME)
    records = app(form, event)
    for i in range(400):
        records.append(form.sample(event, ip=0x400000 + i, pid=7, time=1000 + (i ^ 3)))
        records += [form.record(w.FINISHED_ROUND)] if i % 8 == 7 else []
    files = [form.file([event], records), form.pipe([event], records)]
    expected = [stacks(read(data)) for data in files]
    monkeypatch.setattr(recording, "MAX_QUEUE", 64)
    monkeypatch.setattr(recording, "PENDING", 1 << 10)
    monkeypatch.setattr(recording, "FIRST_BUFFER", 1 << 9)
    for data, stack in zip(files, expected, strict=True):
        profile = read(data)
        assert profile.warnings == []
        assert stacks(profile) == stack


def test_mappings_of_many_processes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that were forked off share mappings until they change; copies count like all others, until their
    process ended. What was mapped where there is no room for it has no file, not even that which was there before."""
    monkeypatch.setattr(processes, "MAX_ALL_MAPS", 100)
    event = Event(has_trailer=False, sample_type=w.IP | w.TID)
    records = [LITTLE.mmap(event, 7, 0x10000 * (i + 1), 0x1000, "/bin/app") for i in range(40)]
    for pid, ends in ((8, True), (9, True), (10, False), (11, False)):
        records += [LITTLE.fork(event, pid, 7), LITTLE.mmap(event, pid, 0x4000000, 0x1000, "/lib/own.so")]
        records.append(LITTLE.sample(event, pid=pid, tid=pid, ip=0x4000010))
        records += [LITTLE.fork(event, pid, 7, kind=w.EXIT)] * ends
    records += [LITTLE.sample(event, pid=11, ip=0x10010), LITTLE.mmap(event, 11, 0x20000, 0x1000, "/lib/own.so")]
    records += [LITTLE.sample(event, pid=pid, ip=0x20010) for pid in (7, 11)]
    profile = read(LITTLE.file([event], records))
    assert stacks(profile) == [
        *[[("/lib/own.so", 0x4000010)]] * 3,
        [("[unknown]", 0x4000010)],
        [("/bin/app", 0x10010)],
        [("/bin/app", 0x20010)],
        [("/lib/own.so", 0x20010)],
    ]
    assert profile.samples.values[:, 0].tolist() == [1] * 7
    assert profile.warnings == ["41 mappings are too many: they were left out."]


def test_cgroups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond the limit have no names, and the other labels of their samples are what they are."""
    monkeypatch.setattr(recording, "MAX_CGROUPS", 1)
    event = Event(sample_type=w.IP | w.TID | w.CPU | w.CGROUP)
    records = [LITTLE.side(event, w.CGROUP_RECORD, LITTLE.pack("Q", each) + b"/%d\0" % each) for each in (77, 78)]
    records += [LITTLE.sample(event, ip=0x400100, pid=7, cpu=3, cgroup=each) for each in (78, 77)]
    profile = read(LITTLE.file([event], records), LoadOptions(sample_labels=("cgroup", "cpu")))
    assert labels(profile) == [{"cpu": 3}, {"cpu": 3, "cgroup": "/77"}]
    assert profile.warnings == ["1 records of cgroups are too many: these have no names."]


def test_the_program_comes_first() -> None:
    """The first mapping is that of the program: the file that the process is called after, whatever is mapped before
    and behind it, else the first file."""
    event = Event(has_trailer=False, sample_type=w.IP | w.TID)
    files = ["/lib/ld.so", "/bin/app", "/lib/libc.so"]
    for comm, wanted in (("app", "/bin/app"), ("renamed", "/lib/ld.so")):
        records = [LITTLE.comm(event, 7, comm, w.EXEC)]
        records += [LITTLE.mmap(event, 7, 0x10000 * row, 0x1000, name) for row, name in enumerate(files, start=1)]
        records += [LITTLE.sample(event, pid=7, ip=0x10000 * row + 8) for row in (3, 3, 2, 1)]
        profile = read(LITTLE.file([event], records))
        assert profile.strings.text(profile.mappings.filename[0]) == wanted


def test_processes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is mapped in processes beyond the limit is not known, and none of it is in others."""
    monkeypatch.setattr(processes, "MAX_PROCESSES", 3)  # the kernel and two others
    event = Event(sample_type=w.IP | w.TID | w.TIME)
    times = iter(range(1, 100))

    def at(pid: int, tid: int = 0) -> bytes:
        return LITTLE.sample(event, ip=0x400100, pid=pid, tid=tid, time=next(times))

    def run(pid: int, name: str) -> list[bytes]:
        start = LITTLE.comm(event, pid, name, w.EXEC, time=next(times))
        return [start, LITTLE.mmap2(event, pid, 0x400000, 0x1000, f"/bin/{name}", time=next(times))]

    records = [
        LITTLE.mmap(event, -1, KERNEL, 0x1000000, "[kernel.kallsyms]_text", KERNEL, w.KERNEL),
        *run(7, "app"),
        *run(8, "ls"),
        *run(9, "vi"),  # by a COMM
        LITTLE.fork(event, 10, 7, time=next(times)),  # by a FORK of a process, which shares mappings
        *(at(pid) for pid in (7, 8, 9, 10, 11)),  # by a sample
        LITTLE.fork(event, 12, 10, time=next(times)),
        LITTLE.fork(event, 9, 9, kind=w.EXIT, time=next(times)),
        *(at(pid) for pid in (12, 9)),
        LITTLE.fork(event, 8, 7, time=next(times)),  # one more of a pid that one within the limit had
        at(8),
        at(7),
        LITTLE.sample(event, w.KERNEL, ip=KERNEL + 8, pid=10, tid=10, time=next(times)),
    ]
    data = LITTLE.file([event], records)
    profile = read(data, LoadOptions(sample_labels=("pid", "comm")))
    found = zip((stack[0][0] for stack in stacks(profile)), labels(profile), profile.samples.values[:, 0], strict=True)
    assert [(file, label["pid"], label.get("comm"), int(count)) for file, label, count in found] == [
        ("/bin/app", 7, "app", 2),
        ("/bin/ls", 8, "ls", 1),
        ("[unknown]", 9, None, 2),
        ("[unknown]", 10, None, 1),
        ("[unknown]", 11, None, 1),
        ("[unknown]", 12, None, 1),
        ("[unknown]", 8, None, 1),
        ("[kernel.kallsyms]_text", 10, None, 1),
    ]
    assert profile.warnings == ["5 processes are too many: what is mapped in them was left out."]
    for choice in (Choice(pids=[7]), Choice(processes=["app"])):
        assert read(data, LoadOptions(choice=choice)).samples.values[:, 0].tolist() == [2]


@needs_compiled
def test_a_recording_that_changes_before_its_stacks_are_unwound(tmp_path: Path) -> None:
    """What is read of it then does not count."""
    event = Event(sample_type=w.IP | w.TID | w.USER_REGISTERS | w.USER_STACK, registers=w.X86_64, stack=64)
    sample = LITTLE.sample(event, pid=7, tid=7, ip=0x400010, registers=[0x400010] * 20, stack=bytes(64))
    path = tmp_path / "perf.data"
    path.write_bytes(LITTLE.file([event], [*app(LITTLE, event), sample]))
    profile = load_one(path, NONE)
    assert profile.stack_dumps is not None
    profile.stack_dumps.check()
    path.write_bytes(b"PERFILE2")
    with pytest.raises(ChangedFile), Symbolizer() as symbolizer:
        symbolizer.symbolize(profile)


def test_sections_at_the_end_that_were_cut_off() -> None:
    """Names and build ids that are missing are reported."""
    data = LITTLE.file([Event()], app(LITTLE, Event()), {3: LITTLE.text("host")})
    assert "cut off" not in str(read(data).warnings)
    assert "cut off" in str(read(data[:-1]).warnings)


@FORMS
@pytest.mark.parametrize("features", [{}, {3: "host"}], ids=["plain", "features"])
def test_two_recordings_in_one_file(form: Format, features: dict[int, str]) -> None:
    """The first one is read as if it were alone, and the other one is named with its offset."""
    event = Event(sample_type=w.IP | w.TID)
    records = [*app(form, event), form.sample(event, ip=0x400000, pid=7)]
    one = form.file([event], records, {bit: form.text(text) for bit, text in features.items()})
    both = read(one * 2)
    assert both.samples.values.tolist() == read(one).samples.values.tolist() == [[1, 1]]
    assert [f" {len(one):#x}:" in each for each in both.warnings] == [True]
    assert read(one).warnings == []


def test_sums_of_events_that_are_one() -> None:
    """A sum that exceeds 64 bits is the largest number, and reported."""
    fields = w.IDENTIFIER | w.IP | w.TID | w.PERIOD
    events = [Event(name="cycles", ids=(1,), sample_type=fields), Event(name="cycles", ids=(2,), sample_type=fields)]
    samples = [LITTLE.sample(e, pid=7, tid=7, ip=0x400010, id=e.ids[0], period=(1 << 63) - 1) for e in events]
    profile = read(LITTLE.file(events, [*app(LITTLE, events[0]), *samples]))
    assert profile.samples.values.tolist() == [[2, (1 << 63) - 1]]
    assert "1 sums of values were too large" in profile.warnings[-1]


def test_events_that_are_added_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events at the begin of a stream are entered at once; between other records, as perf never writes them, that may
    not take forever."""
    monkeypatch.setattr(recording, "MAX_ENTERED", 2000)
    events = [Event(ids=(i,)) for i in range(1, 60)]
    assert read(LITTLE.pipe(events, w.Simple().start())).warnings == []
    attrs = [LITTLE.record(w.HEADER_ATTR, LITTLE.attr(event) + LITTLE.pack("Q", event.ids[0]), 0) for event in events]
    records = [record for attr in attrs for record in (attr, LITTLE.comm(events[0], 7, "app"))]
    with pytest.raises(InputError, match="adds events again and again"):
        read(LITTLE.pipe([Event(ids=(99,))], records))


def test_only_an_event_that_counts_nothing() -> None:
    """A recording whose only event carries the records of processes has that one, without samples."""
    dummy = Event(config=9)
    profile = read(LITTLE.file([dummy], w.Simple(event=dummy).start()))
    text = profile.strings.text
    assert [text(each.type) for each in profile.sample_types] == ["dummy_sample", "dummy_event"]
    assert len(profile.samples) == 0


class TestTimes:
    """When samples were taken, of processes that map a jitdump (rule R461)."""

    EVENT = Event(clock=1)
    JIT = 0x7F00_0000

    def start(self, form: Format, pid: int = 7, event: Event = EVENT) -> list[bytes]:
        """A process with code made at run time, which lists it."""
        return [
            form.comm(event, pid, "app", w.EXEC),
            form.mmap2(event, pid, self.JIT, 0x1000, "//anon"),
            form.mmap2(event, pid, 0x5000_0000, 0x1000, "/tmp/jit-7.dump"),
        ]

    @FORMS
    def test_kept_once(self, form: Format) -> None:
        """Samples are one where their stacks are, and each has its time, its column and its value."""
        events = [
            Event(clock=1, ids=(1,), config=0, sample_type=Event.sample_type | w.IDENTIFIER),
            Event(clock=1, ids=(2,), config=1, sample_type=Event.sample_type | w.IDENTIFIER),
        ]
        records = [
            *self.start(form, event=events[0]),
            form.comm(events[0], 8, "other", w.EXEC),
            *(
                form.sample(events[each - 1], pid=7, time=time, id=each, ip=self.JIT, period=10 * time)
                for time, each in ((20, 1), (30, 2), (40, 1))
            ),
            form.sample(events[0], pid=8, time=50, id=1, ip=0x1000),
        ]
        profile = read(form.file(events, records), ALL)
        times = profile.sample_times
        assert times is not None
        assert (times.is_monotonic, times.conversion) == (True, None)
        rows = zip(*(each.tolist() for each in (times.sample, times.time, times.column, times.value)), strict=True)
        assert list(rows) == [(0, 20, 0, 200), (0, 30, 2, 300), (0, 40, 0, 400)]
        assert profile.samples.values.tolist() == [[2, 600, 1, 300], [1, 1, 0, 0]]

    @pytest.mark.parametrize("event", [Event(), Event(clock=4), Event(clock=1, sample_type=w.IP | w.TID)])
    def test_other_clocks(self, event: Event) -> None:
        """Times that cannot be compared with any others are not kept."""
        records = [*self.start(LITTLE, event=event), LITTLE.sample(event, pid=7, time=20, ip=self.JIT)]
        assert read(LITTLE.file([event], records)).sample_times is None

    def test_without_a_jitdump(self) -> None:
        """Nor are those of other processes."""
        records = [*self.start(LITTLE)[:2], LITTLE.sample(self.EVENT, pid=7, time=20, ip=self.JIT)]
        assert read(LITTLE.file([self.EVENT], records)).sample_times is None

    def test_forked_processes(self) -> None:
        """A process that was forked runs the code of its parent."""
        records = [
            *self.start(LITTLE), LITTLE.fork(self.EVENT, 9, 7, time=10),
            LITTLE.sample(self.EVENT, pid=9, time=20, ip=self.JIT),
        ]  # fmt: skip
        times = read(LITTLE.file([self.EVENT], records)).sample_times
        assert times is not None
        assert times.time.tolist() == [20]

    def test_deferred_callchains(self) -> None:
        """A sample whose callchain comes later was taken when it was; one that never gets it has no time."""
        form, event, chain = LITTLE, self.EVENT, [w.KERNEL_CHAIN, KERNEL, w.DEFERRED_CHAIN]
        records = [
            *self.start(form),
            *(form.sample(event, w.KERNEL, pid=7, time=t, ip=KERNEL, chain=[*chain, t]) for t in (20, 30)),
            form.side(event, w.DEFERRED, form.pack("QQQ", 20, 1, self.JIT), pid=7, tid=7, time=90),
        ]  # fmt: skip
        times = read(form.file([event], records)).sample_times
        assert times is not None
        assert times.time.tolist() == [20]

    def test_too_many(self) -> None:
        """A warning counts samples whose times were left out."""
        made = Recording("it", False, NONE)
        for record in (False, True):
            assert any("times were left out" in each for each in made.warnings()) is record
            made.samples = SimpleNamespace(untimed=3, saturated=0)

    @pytest.mark.parametrize(
        ("multiplier", "more", "expected"),
        [
            (3, (), (2, 3, 5)),  # of versions that had no more
            (3, (7, 0xFF, 1, 0), (2, 3, 5)),
            (3, (7, 0xFF, 1, 1), (2, 3, 5, 7, 0xFF)),
            (3, (7, 0xFF, 0, 1), None),  # the processor's counter has no zero
            (0, (), None),
            (0, (7, 0xFF, 1, 1), None),
        ],
    )
    @FORMS
    def test_counter_of_the_processor(
        self, form: Format, multiplier: int, more: tuple[int, ...], expected: tuple[int, ...] | None
    ) -> None:
        """How a counter becomes the times of a recording is known if it has a factor and a zero."""
        event = Event()
        body = form.pack("QQQ", 2, multiplier, 5) + (form.pack("QQBB", *more) if more else b"")
        records = [form.record(79, body), *self.start(form, event=event)]
        times = read(
            form.file([event], [*records, form.sample(event, pid=7, time=20, ip=self.JIT)], {3: form.text("host")})
        ).sample_times
        assert (times is not None) == (expected is not None)
        if times is not None and expected is not None:
            assert times.conversion == TimeConversion(*expected)


@pytest.mark.parametrize(("name", "limit", "problem"), [("MAX_IDS", 5, "of event ids"), ("MAX_EVENTS", 2, "of events")])
def test_how_many_events_and_ids(monkeypatch: pytest.MonkeyPatch, name: str, limit: int, problem: str) -> None:
    """A file may have so many, and not one more."""
    kind = Event.sample_type | w.IDENTIFIER
    events = [Event(ids=(1, 2), sample_type=kind), Event(config=1, ids=(3, 4, 5), sample_type=kind)]
    sample = LITTLE.sample(events[1], id=5, ip=0x400100, pid=7)
    data = LITTLE.file(events, [*app(LITTLE, events[0], id=1), sample])
    monkeypatch.setattr(header, name, limit)
    assert len(read(data).samples) == 1
    monkeypatch.setattr(header, name, limit - 1)
    with pytest.raises(InputError, match=f"a damaged list {problem}"):
        read(data)


@FORMS
@pytest.mark.parametrize("is_pipe", [False, True], ids=["file", "pipe"])
def test_samples_of_no_event(form: Format, is_pipe: bool) -> None:
    """A sample counts for the event that has its id, and for none where no event has it, such as 0."""
    kind = Event.sample_type | w.IDENTIFIER
    events = [Event(ids=(1, 2), sample_type=kind), Event(config=1, ids=(3,), sample_type=kind)]
    samples = [form.sample(events[0], id=each, ip=0x400100, pid=7) for each in (0, 1, 2, 3, 3, 4, 1 << 32)]
    profile = read((form.pipe if is_pipe else form.file)(events, [*app(form, events[0], id=1), *samples]))
    assert profile.samples.values.sum(axis=0).tolist() == [2, 2, 2, 2]
    assert len(profile.warnings) == 1 and profile.warnings[0].startswith("3 samples")


@pytest.mark.parametrize("name", ["//anon", "/bin/app"])
def test_mappings_beside_those_in_use(name: str) -> None:
    """What touches anonymous memory in use may be the file whose text that is, and is kept; what touches a file is
    not."""
    event = Event()
    records = [LITTLE.comm(event, 7, "app", w.EXEC)]
    for number, path in enumerate(("/bin/far", "/bin/below", name, "/bin/above", "/bin/farther")):
        records.append(LITTLE.mmap2(event, 7, 0x400000 + 0x10000 * number, 0x10000, path))
    profile = read(LITTLE.file([event], [*records, LITTLE.sample(event, pid=7, ip=0x420100)]))
    files = {profile.strings.text(each) for each in profile.mappings.filename.tolist()}
    assert {each for each in files if each.startswith("/bin/")} == (
        {"/bin/below", "/bin/above"} if name == "//anon" else {"/bin/app"}
    )


@pytest.mark.parametrize(
    ("at", "change", "problem"),
    [
        (16, lambda _: 64 + 16, ""),  # the first version of attributes
        (16, lambda _: 64 + 15, "a damaged list of events"),
        (16, lambda _: 4096, ""),
        (16, lambda _: 4097, "a damaged list of events"),
        (24, lambda size: size - 144, ""),  # where the attributes are: up to the end
        (24, lambda size: size - 143, "a damaged list of events"),
        (40, lambda size: size, ""),  # where the records are
        (40, lambda size: size + 1, "ends before its records"),
        (232, lambda size: size - 8, ""),  # where the ids are
        (232, lambda size: size - 7, "a damaged list of event ids"),
    ],
)
@FORMS
def test_sections_at_the_end(form: Format, at: int, change: Callable[[int], int], problem: str) -> None:
    """Sections may reach to the end of the file, and no further; attributes have a size that some version has."""
    data = bytearray(form.file([Event(ids=(1,))], app(form, Event(), id=1)) + bytes(5000))
    data[at : at + 8] = form.pack("Q", change(len(data)))
    with pytest.raises(InputError, match=problem) if problem else nullcontext():
        header.read_header(memoryview(data), "x")
        list(header.read_attrs(memoryview(data), header.read_header(memoryview(data), "x"), "x"))
