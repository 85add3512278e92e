"""Heap dumps: how the samples of each heap changed from dump to dump, and their totals at each."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import NONE, Int32, Int64, UInt64, distinct_inverse
from symbolize.formats.perfetto.clocks import Clocks
from symbolize.formats.perfetto.constants import EMPTY, MISSING
from symbolize.formats.perfetto.processes import TraceProcesses, instance_of
from symbolize.formats.perfetto.totals import Totals
from symbolize.proto import perfetto_trace_tags as tags

ROW_COST: Final = 80
"""Bytes that each callstack of a heap takes beside its changes."""
DUMP_COST: Final = 1 << 10
"""Bytes that the samples of one heap in one packet take beside their content."""

MAX_CHANGE_BYTES: Final = 1 << 28
"""Bytes of all changes of the samples of heaps."""
MAX_DUMPS: Final = 1 << 14

FLAGS: Final = {
    tags.PROCESS_HEAP_SAMPLES_REJECTED_CONCURRENT: "was not profiled because another session profiled it",
    tags.PROCESS_HEAP_SAMPLES_DISCONNECTED: "ended or closed its connection before the profiling did",
    tags.PROCESS_HEAP_SAMPLES_BUFFER_OVERRAN: "overran the buffer, so that allocations are missing",
    tags.PROCESS_HEAP_SAMPLES_BUFFER_CORRUPTED: "has a corrupted buffer: allocations are missing or wrong",
    tags.PROCESS_HEAP_SAMPLES_HIT_GUARDRAIL: "reached a limit of CPU or memory, so that profiling stopped early",
}
"""What is missing where one of these fields is true."""

CLIENT_ERRORS: Final = {
    tags.CLIENT_ERROR_HIT_TIMEOUT: "did not get through to the profiler in time",
    tags.CLIENT_ERROR_INVALID_STACK_BOUNDS: "had a stack outside its bounds",
}


@dataclass(eq=False)
class Dump:
    """How the samples of a heap changed up to one moment: rows of `Heap`, and what was added to their values."""

    timestamp: int
    number: int = NONE
    """Its number among the dumps of its heap; NONE until it has samples."""
    bases: list[int] = field(default_factory=list)
    """Rows before the first one belong to callstacks of a state that was cleared. The others are where the rows of
    states begin that came later, with more of this dump."""
    end: int = 0
    """The first row that was not known by then."""
    has_samples: bool = False
    """Whether any callstack has values by then."""
    rows: list[Int32] = field(default_factory=list)
    added: list[list[NDArray[Any]]] = field(default_factory=list)
    """Columns count, size, frees, freed, each as narrow as it can be."""

    @property
    def known(self) -> int:
        """How many callstacks have values by then."""
        return self.end - self.bases[0]


class Heap:
    """One heap of a process: the running totals of each callstack id, and its dumps.

    A callstack that is no longer in a dump keeps what it had: the producer forgets callstacks whose memory is all
    freed and gives them a new id, which counts from 0, when they allocate again (R224, totals of heap dumps).
    """

    def __init__(self, instance: int, pid: int | None, name: str, mixer: int) -> None:
        self.instance, self.pid, self.name = instance, pid, name
        self.interval = 0
        self.generation = -1
        self._has_samples = False
        self.dumps: list[Dump] = []
        self.notes: Counter[str] = Counter()
        self.lost = {MISSING: [0, 0], EMPTY: [0, 0]}
        """Samples and bytes without a callstack, by what `InternedState.stack` returned."""
        self._totals = Totals(mixer)
        # The values of all rows after the first `_done` dumps, for that which is asked for next
        self._values: Int64 | None = None
        self._done = self._end = 0

    def add(self, generation: int, dump: Dump, waiting: UInt64, stacks: Int32) -> int:
        """Take samples of a dump: words as `Totals.add` reads them, and the stack of each. The bytes that this took."""
        if generation != self.generation:
            # Ids of another generation are other callstacks; the producer writes all its totals again.
            self.generation = generation
            self._has_samples = False
            self._totals.restart()
        if dump.number == NONE:
            dump.number = len(self.dumps)
            self.dumps.append(dump)
        if not dump.bases or dump.bases[-1] < self._totals.base:
            dump.bases.append(self._totals.base)
        before = self._totals.count
        rows = np.empty(len(stacks), np.int32)
        added = np.empty((4, len(stacks)), np.int64)
        changed = self._totals.add(waiting.reshape(-1).data, stacks.data, rows.data, added.data)
        self._has_samples |= changed > 0
        dump.has_samples |= self._has_samples
        dump.rows.append(rows[:changed].copy())
        dump.added.append([narrow(column[:changed]) for column in added])
        dump.end = self._totals.count
        more = (self._totals.count - before) * ROW_COST + DUMP_COST
        return sum(each.nbytes for each in (dump.rows[-1], *dump.added[-1])) + more

    def totals(self, last: int) -> tuple[Int32, Int64]:
        """Stacks and their count, size, frees and freed (int64[n, 4]) at the dump of this number. Quick in the order of
        the dumps: a dump goes on from the one before."""
        values = self._values
        if values is None or last + 1 < self._done:
            values, self._done, self._end = np.zeros((self._totals.count, 4), np.int64), 0, 0
        for dump in self.dumps[self._done : last + 1]:
            self._end = max(self._end, dump.end)
            for rows, added in zip(dump.rows, dump.added, strict=True):
                for column, numbers in enumerate(added):
                    np.add.at(values[:, column], rows, numbers)
        self._values, self._done = (values, last + 1) if last + 1 < len(self.dumps) else (None, 0)
        stacks, bases = self._totals.stack_rows(), self.dumps[last].bases
        used = bases[0] + np.flatnonzero(values[bases[0] : self._end].any(axis=1))
        # A callstack that several states name has the totals of the last one.
        state = np.searchsorted(bases, used, side="right")
        distinct, which = distinct_inverse(stacks[used])
        latest = np.zeros(len(distinct), np.int64)
        np.maximum.at(latest, which, state)
        used = used[state == latest[which]]
        return stacks[used], values[used]


class HeapDumps:
    """The heaps of a trace and their dumps. `seq` is the state of a sequence."""

    def __init__(self, processes: TraceProcesses, clocks: Clocks, notes: Counter[str], mixer: int) -> None:
        self.dumps: list[tuple[Heap, Dump]] = []
        self._heaps: dict[tuple[int, int, int | None, str], Heap] = {}
        self._row_of: dict[tuple[int, int, int | None, str, int], int] = {}
        self._processes, self._clocks, self._notes, self._mixer = processes, clocks, notes, mixer
        self._change_bytes = 0

    def dump(self, seq: Any, machine: int, header: dict[int, Any]) -> int:
        """The row of the dump of a ProcessHeapSamples with the fields `header`; past all rows if there are too many. A
        dump without a time has that of its first packet."""
        pid = header.get(tags.PROCESS_HEAP_SAMPLES_PID)
        given = header.get(tags.PROCESS_HEAP_SAMPLES_TIMESTAMP, 0)
        time = given or seq.dump_time
        name = header.get(tags.PROCESS_HEAP_SAMPLES_HEAP_NAME, b"").decode("utf-8", "backslashreplace")[:256]
        instance = instance_of(machine, 0)
        if pid is not None:
            began = self._clocks.boottime(given, tags.BUILTIN_CLOCK_MONOTONIC_COARSE) or seq.dump_time
            instance = self._processes.at(machine, pid, began)
        key = seq.number, instance, pid, name
        row = self._row_of.get((*key, time))
        if row is None and len(self.dumps) >= MAX_DUMPS:
            self._notes["heap dumps were left out because the trace has too many"] += 1
            return MAX_DUMPS
        heap = self._heaps.get(key)
        if heap is None:
            heap = self._heaps[key] = Heap(instance, pid, name, self._mixer)
        heap.interval = header.get(tags.PROCESS_HEAP_SAMPLES_SAMPLING_INTERVAL_BYTES) or heap.interval
        heap.notes.update(what for tag, what in FLAGS.items() if header.get(tag))
        if error := header.get(tags.PROCESS_HEAP_SAMPLES_CLIENT_ERROR):
            heap.notes[CLIENT_ERRORS.get(error) or f"had error {min(error, 100)} in the profiled process"] += 1
        if row is None:
            row = self._row_of[(*key, time)] = len(self.dumps)
            self.dumps.append((heap, Dump(time)))
        return row

    def finish(self, seq: Any, waiting: UInt64, stacks: Int32) -> None:
        """Take the samples of heap dumps whose callstacks were looked up; MISSING or EMPTY where there are none.

        `waiting` is uint64[n, 6]: dump, callstack id, count, size, frees, freed.
        """
        rows = waiting[:, 0]
        edges = [0, *(np.flatnonzero(rows[1:] != rows[:-1]) + 1).tolist(), len(rows)]
        for begin, end in pairwise(edges):
            row = int(rows[begin])
            if row >= len(self.dumps):
                continue
            heap, dump = self.dumps[row]
            found, here = stacks[begin:end], waiting[begin:end]
            for why, lost in heap.lost.items():
                without = found == why
                lost[0] += int(without.sum())
                lost[1] += int(here[without, 3].astype(np.float64).sum())
            if self._change_bytes > MAX_CHANGE_BYTES:
                self._notes["times samples of heaps were left out because the trace has too many"] += 1
                continue
            self._change_bytes += heap.add(seq.generation, dump, here, found)


def narrow(numbers: Int64) -> NDArray[Any]:
    """The same numbers in as few bytes as hold all of them."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers.copy()
