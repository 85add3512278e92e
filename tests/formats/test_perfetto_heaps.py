"""Heap dumps: totals, dumps, processes over time."""

import io

import pytest

from symbolize.formats import encode, load_all
from symbolize.formats.perfetto import reader as loading
from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import labels, only, read, refused, stacks, types
from tests.support.perfetto_traces import (
    BASE,
    BUILD_ID,
    CLEAR,
    CLOCKS,
    CUT_HEAP,
    END,
    HEAP,
    NAMES,
    SECOND,
    SOUND,
    STATE,
    born,
    dumped,
    heap,
)


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


@pytest.mark.parametrize("limit", ["MAX_SAME", "MAX_MORE"])
def test_pids_that_are_used_too_often(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Nothing is known of processes beyond a limit, whose samples and dumps are of none within it."""
    defaults = w.perf_defaults({1: 100, 4: 10}, clock=3)
    start = CLOCKS + w.packet(1, w.CLEARED, STATE, defaults)
    names = ("first", "second", "third", "fourth")
    start += b"".join(born(7, name, 1000 + 100 * i) for i, name in enumerate(names))
    samples = [w.perf_sample(2, 7, 7, time=(2 + 100 * i) * SECOND) for i in range(len(names))]
    whole = read(start + b"".join(samples))
    assert [labels(each)[0].get("process") for each in whole.values()] == list(names)
    for value, known in ((2, 2), (1, 1)):
        monkeypatch.setattr(f"symbolize.formats.perfetto.trace.{limit}", value - (limit == "MAX_MORE"))
        found = read(start + b"".join(samples))
        assert [labels(each)[0].get("process") for each in found.values()] == [*names[:known], None]
        assert [int(each.samples.values[:, 0].sum()) for each in found.values()] == [*[1] * known, 4 - known]
        said = next(iter(found.values())).warnings
        assert f"{4 - known} times processes were left out because the trace has too many with their pid" in said


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


def test_ids_as_large_as_those_of_before() -> None:
    """Callstacks of before the state was cleared are not those that later get ids of any size, in the same dump."""
    ids = [(1 << 32) + number for number in range(8)]
    again = w.interned(**NAMES | {"callstacks": [w.callstack(each, [1, 2]) for each in ids]})
    trace = CLEAR + w.packet(1, interned=STATE)
    trace += w.heap_packet([w.heap_dump(7, [w.heap_sample(2, 100, 40, 3, 1)])], True)
    trace += w.packet(1, w.CLEARED, again)
    trace += w.heap_packet([w.heap_dump(7, [w.heap_sample(each, 10, 0, 1) for each in ids])], index=1)
    assert stacks(only(trace)) == {("alloc", "main"): [11, 180, 10, 140]}
