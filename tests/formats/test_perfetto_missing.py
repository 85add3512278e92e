"""What a trace does not have: packets, tasks, frames; and what of it is not read."""

import gzip
import subprocess
from pathlib import Path
from typing import Any

import pytest

from symbolize.formats import encode, write
from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import labels, only, read, refused, stacks

STATE = w.interned(
    {1: "main", 2: "alloc"},
    frames=[w.frame(1, 1), w.frame(2, 2)],
    callstacks=[w.callstack(2, [1, 2]), w.callstack(9, [])],
)
START = w.packet(1, w.CLEARED, STATE)
LOST = "packets of a sequence were lost"


def warnings(trace: bytes) -> str:
    """All warnings of a trace."""
    return "; ".join(warning for profile in read(trace).values() for warning in profile.warnings)


def stack_sample(task: dict[int, Any] | None = None, **more: Any) -> bytes:
    """A packet with a StackSample."""
    fields: dict[int, Any] = {1: None if task is None else w.message(task), 6: 2, 11: 8}
    return w.packet(1, rest={135: w.message(fields | {int(name[1:]): value for name, value in more.items()})})


# Losses


def test_the_first_packet_of_a_sequence_reports_no_loss() -> None:
    """Recorders mark the first packet of each sequence like one after a loss, with state or without, in a packet of
    any kind; only what comes later is a loss (R271, losses)."""
    ftrace = {1: w.message({1: 1})}
    pairs = b"".join(
        w.packet(number, time=number, dropped=1, rest=ftrace) + w.packet(number, time=number, rest=ftrace)
        for number in range(100, 200)
    )
    begin = w.packet(1, w.CLEARED, STATE, dropped=1) + w.perf_sample(2)
    for trace in (begin + pairs, pairs + begin, w.compressed(pairs) + begin, gzip.compress(begin + pairs)):
        assert LOST not in warnings(trace)
    assert f"1 times {LOST}" in warnings(begin + pairs + w.packet(150, dropped=1, rest=ftrace))
    assert f"2 times {LOST}" in warnings(begin + w.packet(1, w.CLEARED, STATE, dropped=1) * 2)
    # A packet that says that it is the first is none after a loss, also in a file put behind another.
    assert LOST not in warnings(begin + w.packet(1, w.CLEARED, STATE, dropped=1, rest={87: 1}) + w.perf_sample(2))


def test_the_first_packet_leaves_counters_as_they_are() -> None:
    """A counter that is known before a packet that is marked first in another sequence goes on (rule R226)."""
    defaults = w.perf_defaults({1: 1000, 4: 10})
    trace = w.packet(1, w.CLEARED, STATE, defaults, dropped=1) + w.perf_sample(2, total=5000)
    assert stacks(only(trace + w.packet(2, dropped=1) + w.perf_sample(2, total=5300)))["alloc", "main"] == [2, 1300]
    lost = trace + w.packet(1, w.CLEARED, STATE, defaults, dropped=1) + w.perf_sample(2, total=5300)
    assert stacks(only(lost))["alloc", "main"] == [2, 2000]


def test_many_sequences_report_no_loss() -> None:
    """Of more sequences than are remembered no loss is reported (R271)."""
    many = b"".join(w.packet(number, dropped=1) for number in range(2, (1 << 16) + 20))
    assert LOST not in warnings(START + w.perf_sample(2) + many)


# Tasks

ZERO = w.message({1: 1, 2: 0, 3: 0})
CONTEXT = w.message({48: [ZERO, w.message({1: 2, 2: 5}), w.message({1: 3, 3: 6}), w.message({1: 4})]})


@pytest.mark.parametrize(
    ("packet", "name", "expected"),
    [
        (stack_sample(), "profile.1.pid.unknown", {}),
        (stack_sample({}), "profile.1.pid.unknown", {}),
        (stack_sample({2: 5}), "profile.1.pid.5", {"pid": 5}),
        (stack_sample({2: 5, 3: 5}), "profile.1.pid.5", {"pid": 5, "tid": 5, "thread": "main"}),
        (stack_sample({3: 6}), "profile.1.pid.unknown", {"tid": 6}),
        (stack_sample({2: 0, 3: 0}), "profile.1.pid.0", {"pid": 0, "tid": 0}),
        (stack_sample(f2=1), "profile.1.pid.0", {"pid": 0, "tid": 0}),
        (stack_sample(f2=2), "profile.1.pid.5", {"pid": 5}),
        (stack_sample(f2=3), "profile.1.pid.unknown", {"tid": 6}),
        (stack_sample(f2=4), "profile.1.pid.unknown", {}),
        (stack_sample(f3=w.message({2: 0, 3: 1})), "profile.1.pid.unknown", {"cpu": 0, "mode": "user"}),
        (stack_sample(f3=w.message({3: 2})), "profile.1.pid.unknown", {"mode": "kernel"}),
        (w.packet(1, rest={66: w.message({4: 2})}), "profile.1.pid.unknown", {}),
        (w.packet(1, rest={66: w.message({1: 0, 2: 0, 4: 2})}), "profile.1.pid.0", {"pid": 0, "cpu": 0}),
        (w.packet(1, rest={66: w.message({3: 7, 4: 2})}), "profile.1.pid.unknown", {"tid": 7}),
    ],
)
def test_samples_without_a_task(packet: bytes, name: str, expected: dict[str, Any]) -> None:
    """What a sample does not say of its process, thread and processor it has no label for; 0 is a number like any
    other (R270, numbers of tasks)."""
    found = read(w.packet(1, w.CLEARED, STATE + CONTEXT) + packet)
    assert [*found] == [name]
    assert labels(found[name]) == [expected]


def test_streams_and_heaps_without_a_task() -> None:
    """Samples of Chromium and heap dumps that say no pid have none (R270)."""
    stream = w.packet(1, rest={54: w.message({1: [2], 2: [10]})})
    for thread, name, expected in (
        ({6: 5}, "unknown", {}),
        ({1: 4, 6: 5}, "4", {"pid": 4}),
        ({2: 4, 6: 5}, "unknown", {"tid": 4}),
        ({1: 0, 2: 0, 5: "idle", 6: 5}, "0", {"pid": 0, "tid": 0, "thread": "idle"}),
    ):
        found = read(START + w.packet(1, rest={44: w.message(thread)}) + stream)
        assert [*found] == [f"chromium_profile.1.pid.{name}"]
        assert [labels(each) for each in found.values()] == [[expected]]
    dump = w.message({2: w.heap_sample(2, 5, 0, 1), 9: 1000, 11: "libc.malloc"})
    trace = START + w.heap_packet([dump])
    found = read(trace)
    assert [*found] == ["heap_dump.1.unknown.libc.malloc"]
    profile = found["heap_dump.1.unknown.libc.malloc"]
    assert (labels(profile), stacks(profile)) == ([{}], {("alloc", "main"): [1, 5, 1, 5]})
    assert profile.strings.text(profile.comments[0]).startswith("heap libc.malloc of an unknown process,")
    assert "no such profile" in refused(trace, pids=[0])


def test_merged_processes_of_which_one_is_unknown() -> None:
    """With and without a pid, samples stay apart by their labels (R270)."""
    trace = START + stack_sample() + stack_sample({2: 5})
    assert labels(only(trace, merge=["processes"])) == [{}, {"pid": 5}]


TASKS = START + w.perf_sample(2, pid=0, tid=0, cpu=0) + w.perf_sample(2, pid=0, tid=(1 << 32) - 1, cpu=3)
"""Samples of numbers at the limits."""


def test_numbers_of_tasks() -> None:
    """Labels of tasks are numbers in the file, 0 too, which have a unit (R270)."""
    profile = only(TASKS)
    table, text = profile.samples.labels, profile.strings.text
    assert {(text(key), text(unit)) for key, unit in zip(table.key, table.unit, strict=True) if unit} == {
        (name, name) for name in ("pid", "tid", "cpu")
    }
    assert {text(key) for key, value in zip(table.key, table.text, strict=True) if value} == {"mode"}
    assert encode(profile)


@pytest.mark.needs("go")
def test_numbers_of_tasks_in_pprof(tmp_path: Path) -> None:
    """The unit keeps pprof from dropping a 0 (R270)."""
    path = tmp_path / "p.pb.gz"
    write(only(TASKS), path)
    tags = subprocess.run(["go", "tool", "pprof", "-raw", str(path)], capture_output=True, text=True, check=True).stdout
    assert "cpu:[0 cpu]" in tags
    assert "tid:[4294967295 tid]" in tags


# Frames


def test_empty_callstacks() -> None:
    """A callstack without frames is called empty, in samples of all kinds (R273, empty callstacks)."""
    empty = "1 samples were left out because their callstack is empty"
    thread = w.packet(1, rest={44: w.message({1: 5, 2: 5, 6: 5})})
    inline = w.packet(1, rest={135: w.message({1: w.message({2: 5}), 5: w.message({})})})
    for packet in (
        w.perf_sample(9),
        stack_sample({2: 5}, f6=9),
        inline,
        thread + w.packet(1, rest={54: w.message({1: 9, 2: 1})}),
    ):
        assert empty in refused(START + packet)
        assert "a part of their callstack" not in refused(START + packet)
    assert "1 samples were left out because a part of their callstack" in refused(START + w.perf_sample(77))


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("cleared", [False, True])
def test_empty_callstacks_of_heaps(inline: bool, cleared: bool) -> None:
    """Bytes of an empty callstack and of a missing one are counted apart, also if the state is cleared before the dump
    ends, and if the dump says its callstacks itself (R273)."""
    samples = [w.heap_sample(2, 5, 0, 1), w.heap_sample(8, 40, 0, 1), w.heap_sample(77, 30, 0, 1)]
    stack = w.callstack(8, [])
    state = START if inline else w.packet(1, w.CLEARED, STATE + w.field(7, stack))
    more = {"f3": stack} if inline else {}
    trace = state + w.heap_packet([w.heap_dump(7, samples)], True, **more)
    trace += w.packet(1, w.CLEARED) * cleared + w.heap_packet([], index=1)
    profile = only(trace)
    assert stacks(profile) == {("alloc", "main"): [1, 5, 1, 5]}
    assert "1 samples with 40 bytes of process 7 were left out because their callstack is empty" in profile.warnings
    assert any("1 samples with 30 bytes of process 7 were left out because a part" in each for each in profile.warnings)


# What is not read


def test_java_heap_graphs_are_not_read() -> None:
    """A trace with Java heap graphs says that they are not read, whether it has anything else or not."""
    graph = w.packet(1, rest={56: w.message({1: 7, 6: 0})}) + w.packet(1, rest={56: w.message({1: 7, 6: 1})})
    expected = "2 packets of Java heap graphs were left out, which have no addresses: look at them with ui.perfetto.dev"
    for trace in (graph, w.compressed(graph), gzip.compress(graph)):
        assert expected in refused(trace)
    assert expected in warnings(START + w.perf_sample(2) + graph)
    assert "Java heap graphs" not in warnings(START + w.perf_sample(2))
