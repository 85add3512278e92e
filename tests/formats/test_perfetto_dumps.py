"""Heap dumps that name callstacks anew, and dumps of one time."""

import io
import time
from typing import Any

import numpy as np
import pytest

from symbolize.formats import load_all
from symbolize.formats.perfetto.trace import Dump, Heap
from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import only, read, stacks

FUNCTIONS = {1: "main", 2: "alloc", 3: "other"}
STATE = w.interned(
    FUNCTIONS,
    frames=[w.frame(iid, iid) for iid in FUNCTIONS],
    callstacks=[w.callstack(1, [1]), w.callstack(2, [1, 2]), w.callstack(3, [1, 3])],
)
ALLOC, OTHER = ("alloc", "main"), ("other", "main")


def tables(function: str, path: str, build: bytes, iid: int = 1) -> dict[str, Any]:
    """The tables in a packet of Android 10: one callstack of one frame."""
    return {
        "f1": [w.string(1, function), w.string(2, path), w.string(3, build)],
        "f2": [w.frame(1, 1, 1, 4096)],
        "f3": [w.callstack(iid, [1])],
        "f4": [w.mapping(1, 3, path=[2])],
    }


def dump(size: int, time: int | None, stack: int = 2, **more: Any) -> bytes:
    """A packet with a dump of process 7."""
    return w.heap_packet([w.heap_dump(7, [w.heap_sample(stack, size, 0, 1)], time or 0)], **more)


def start(seq: int = 1, state: bytes = STATE) -> bytes:
    """A packet that clears the state and says it anew."""
    return w.packet(seq, w.CLEARED, state)


@pytest.mark.parametrize("iid", [1, 0, 1 << 35, (1 << 64) - 1])
def test_ids_that_a_later_dump_gives_another_callstack(iid: int) -> None:
    """The values of a callstack id that a dump of Android 10 defines anew are those of the new callstack, which counts
    from 0; the one before keeps what it had, and so does one that gets its id again (R269, ids used again)."""
    old, new = tables("f_old", "liba.so", b"bid\0", iid), tables("g_new", "libb.so", b"bid\1", iid)
    samples = [w.heap_sample(iid, 2000, 1000, 2, 1), w.heap_sample(iid, 3000, 500, 2, 1), w.heap_sample(iid, 7, 0, 1)]
    packets = [
        w.heap_packet([w.heap_dump(2, [sample], time)], index=time - 1, seq=9, **names)
        for time, sample, names in zip((1, 2, 3), samples, (old, new, old), strict=True)
    ]
    trace = w.packet(9, w.CLEARED) + b"".join(packets)
    first, second, third = read(trace).values()
    assert stacks(first) == {("f_old",): [2, 2000, 1, 1000]}
    assert stacks(second) == {("f_old",): [2, 2000, 1, 1000], ("g_new",): [2, 3000, 1, 2500]}
    assert stacks(third) == {("f_old",): [3, 2007, 2, 1007], ("g_new",): [2, 3000, 1, 2500]}
    text = second.strings.text
    frames = second.samples.locations.tolist()
    files = [text(second.mappings.filename[second.locations.mapping[row]]) for row in frames]
    assert sorted(files) == ["/liba.so", "/libb.so"]


def test_ids_that_stay() -> None:
    """A callstack that each dump says anew with the same frames goes on from the total before (rule R224)."""
    same = tables("f", "a.so", b"x")
    trace = w.packet(1, w.CLEARED) + b"".join(dump(10 * n, n, 1, index=n - 1, **same) for n in (1, 2, 3))
    assert [stacks(each) for each in read(trace).values()] == [{("f",): [1, 10 * n, 1, 10 * n]} for n in (1, 2, 3)]


def test_an_id_that_moves_from_the_packets_to_the_sequence() -> None:
    """A callstack id that a dump defines itself, and the next one takes from the sequence, is two callstacks (R269)."""
    trace = start() + dump(5, 1, 2, **tables("inline", "a.so", b"x", 2)) + dump(9, 2, 2, index=1)
    last = [*read(trace).values()][-1]
    assert stacks(last) == {("inline",): [1, 5, 1, 5], ALLOC: [1, 9, 1, 9]}


def test_dumps_of_one_time_in_one_sequence() -> None:
    """Two dumps of one time are one profile, with the totals of the last (R272, dumps of one time)."""
    trace = start() + dump(5, 1000) + dump(8, 1000, index=1) + dump(9, 2000, index=2)
    assert [stacks(each) for each in read(trace).values()] == [{ALLOC: [1, 8, 1, 8]}, {ALLOC: [1, 9, 1, 9]}]
    late = start() + dump(5, 1000) + dump(8, 2000, index=1) + dump(6, 1000, 3, index=2)
    assert [stacks(each) for each in read(late).values()] == [
        {ALLOC: [1, 5, 1, 5], OTHER: [1, 6, 1, 6]},
        {ALLOC: [1, 8, 1, 8], OTHER: [1, 6, 1, 6]},
    ]


def test_dumps_of_one_time_in_several_sequences() -> None:
    """Dumps of one process, heap and time are one profile, whichever sequences they are of; each sequence has totals of
    its own (R272)."""
    trace = start() + start(2) + dump(5, 1000) + dump(8, 1000, 3, seq=2) + dump(1, 1000, 2, seq=2, index=1)
    trace += dump(9, 2000, index=1)
    found = read(trace)
    assert [stacks(each) for each in found.values()] == [
        {ALLOC: [2, 6, 2, 6], OTHER: [1, 8, 1, 8]},
        {ALLOC: [1, 9, 1, 9]},
    ]
    assert {len(each.samples) for each in found.values()} == {1, 2}
    text = [each.strings.text(each.comments[0]) for each in found.values()]
    assert [each.rpartition(", ")[2] for each in text] == ["dump 1 of 2", "dump 2 of 2"]
    # Other heaps, processes and times stay apart.
    other = w.heap_packet(
        [w.heap_dump(8, [w.heap_sample(2, 3, 0, 1)]), w.heap_dump(7, [w.heap_sample(2, 4)], heap="b")], seq=2
    )
    assert len(read(trace + other)) == 4
    last = read(trace, merge=["dumps"])
    assert [stacks(each) for each in last.values()] == [
        {ALLOC: [1, 1, 1, 1], OTHER: [1, 8, 1, 8]},
        {ALLOC: [1, 9, 1, 9]},
    ]
    assert len(load_all(io.BytesIO(trace))) == 2


def test_a_clear_between_dumps_of_one_time() -> None:
    """Of dumps of one time none is lost where the state was cleared between them; a callstack that both have has the
    total of the last (R272). The next dump has what came after the clear."""
    again = w.interned(
        {1: "main", 2: "free", 3: "other"},
        frames=[w.frame(iid, iid) for iid in (1, 2, 3)],
        callstacks=[w.callstack(2, [1, 2]), w.callstack(5, [1, 3])],
    )
    first = start() + dump(5, 1000) + dump(6, 1000, 3, index=1)
    trace = first + start(state=again) + dump(8, 1000, index=2) + dump(7, 1000, 5, index=3) + dump(9, 2000, index=4)
    assert [stacks(each) for each in read(trace).values()] == [
        {ALLOC: [1, 5, 1, 5], OTHER: [1, 7, 1, 7], ("free", "main"): [1, 8, 1, 8]},
        {("free", "main"): [1, 9, 1, 9], OTHER: [1, 7, 1, 7]},
    ]


def test_parts_of_a_dump_without_a_time() -> None:
    """The packets of a dump that says no time are one dump, at the time of the first (R272)."""
    parts = [w.heap_sample(2, 5, 0, 1), w.heap_sample(3, 6, 0, 1)]
    packets = [
        w.packet(
            1, time=time, rest={37: w.message({5: w.message({1: 7, 2: part}), 6: int(time < 6) or None, 7: time - 5})}
        )
        for time, part in zip((5, 6), parts, strict=True)
    ]
    assert stacks(only(start() + b"".join(packets))) == {ALLOC: [1, 5, 1, 5], OTHER: [1, 6, 1, 6]}


def test_a_dump_without_any_callstack_is_no_profile() -> None:
    """A dump all of whose callstacks are missing after a clear has no profile; what is lost is reported."""
    trace = start() + dump(5, 1000) + w.packet(1, w.CLEARED) + dump(8, 2000, index=1)
    profile = only(trace)
    assert stacks(profile) == {ALLOC: [1, 5, 1, 5]}
    assert any("1 samples with 8 bytes of process 7 were left out" in warning for warning in profile.warnings)


def test_many_clears_within_one_dump() -> None:
    """Callstacks of many states cost what those of one do; of those that several states name the last one counts."""
    count = 100_000
    heap, moment = Heap(0, 7, "x", 1), Dump(1)
    waiting = np.ones((count, 6), np.uint64)
    waiting[:, 1] = waiting[:, 2] = np.arange(1, count + 1)
    found = np.arange(count, dtype=np.int32)
    found[-3:] = 0, 1, 1
    heap.add(0, moment, waiting, found)
    moment.bases = list(range(count - 1))
    began = time.process_time()
    used, values = heap.totals(0)
    assert time.process_time() - began < 2
    assert used.tolist() == found[2:].tolist()
    assert values[:, 0].tolist() == list(range(3, count + 1))
