"""Samples of the CPU: of traced_perf, and StackSamples."""

from typing import Any

from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import labels, only, read, refused, stacks, types
from tests.support.perfetto_traces import CYCLES, SOUND, STATE


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
    bare = w.message(
        {2: 1, 4: 1, 6: 2, 10: 1, 11: 5, 13: w.packed([2])}
    )  # the weights of the others are not those before
    again = w.packet(1, w.CLEARED, STATE + more) + w.packet(1, rest={135: by_id}) + w.packet(1, rest={135: bare})
    assert stacks(only(again)) == {("alloc", "main"): [2, 505, 4]}
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
