"""What a trace holds: its tables, its names, its clocks, its processes and threads, whose pids belong to a machine and
are used again, the sources of its CPU samples, how the samples of each heap changed from dump to dump, and notes of
what was left out."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import NONE, Int32, Int64, UInt64, distinct_inverse
from symbolize.core.interning import random_mixer
from symbolize.formats.perfetto.constants import EMPTY, MAX_FOLLOWERS, MISSING
from symbolize.formats.perfetto.events import (
    SAMPLES,
    Event,
    Session,
    read_descriptor,
    read_stack_defaults,
    read_timebase,
)
from symbolize.formats.perfetto.heaps import Totals
from symbolize.formats.perfetto.java import Java
from symbolize.formats.perfetto.packet_reader import PacketReader
from symbolize.formats.perfetto.samples import TraceSamples
from symbolize.formats.perfetto.wire import message
from symbolize.profile.model import Strings
from symbolize.proto import perfetto_trace_tags as tags
from symbolize.proto.perfetto_trace_tags import (
    BUILTIN_CLOCK_BOOTTIME,
    BUILTIN_CLOCK_MAX_ID,
    BUILTIN_CLOCK_MONOTONIC,
    BUILTIN_CLOCK_MONOTONIC_COARSE,
    BUILTIN_CLOCK_REALTIME,
)

SAME_START: Final = 1_000_000_000
"""Nanoseconds. Two sources may differ in the start of one process; no pid is used again so soon."""

MAX_MORE: Final = 1 << 12
"""Processes whose pid another one had before, in a whole trace."""
MAX_KNOWN: Final = 1 << 18
"""Pids whose first process is known by its start."""
MAX_SAME: Final = 64
"""Processes that had one pid. Those beyond the limits are one, of which nothing is known, with this number."""
MAX_RECORDS: Final = 1 << 21
"""Times that processes and threads are described."""
MAX_NAME: Final = 1 << 12
MAX_NAME_BYTES: Final = 1 << 27
NAME_COST: Final = 256
"""Bytes of a name, and of all names of processes and threads; each takes so many beside its content."""

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

MAX_DEFAULTS: Final = 1 << 14
"""Bytes of TracePacketDefaults."""
MAX_SESSIONS: Final = 1 << 12


class TraceProcesses:
    """Processes and threads with their names.

    An instance is one process of those that had a pid: the machine, and above its 32 bits how many had the pid before
    (R243, processes over time). A process whose start differs by a second or more from that of the one before under its
    pid is another; a time belongs to the last that had started by then.
    """

    def __init__(self, notes: Counter[str]) -> None:
        self.names: dict[tuple[int, int], bytes] = {}
        """By instance and pid."""
        self.threads: dict[tuple[int, int], bytes] = {}
        """By machine and tid."""
        self._notes = notes
        self._starts: dict[tuple[int, int], list[int]] = {}
        self._others: dict[tuple[int, int], tuple[int, int]] = {}
        """Where processes with a pid of `_starts` are too many, when the first and the last of these that were left out
        started."""
        self._more = self._records = self._name_bytes = 0

    def takes(self) -> bool:
        """Whether one more process or thread may be described; counts it."""
        self._records += 1
        if self._records > MAX_RECORDS:
            self._notes["times processes or threads were left out because the trace describes too many"] += 1
        return self._records <= MAX_RECORDS

    def described(self, machine: int, pid: int, start: int) -> int:
        """The instance of a process that a packet describes; `start` is in nanoseconds since boot, 0 unknown."""
        starts, others = self._starts.get((machine, pid), []), self._others.get((machine, pid))
        if start:
            for number, known in enumerate(starts):
                if abs(known - start) < SAME_START:
                    return instance_of(machine, number)
            if not starts:
                if len(self._starts) < MAX_KNOWN:
                    self._starts[machine, pid] = [start]
            elif self._more < MAX_MORE and len(starts) < MAX_SAME:
                self._more += 1
                starts.append(start)
            else:
                self._notes["times processes were left out because the trace has too many with their pid"] += 1
                first, last = others or (start, start)
                self._others[machine, pid] = min(start, first), max(start, last)
                return instance_of(machine, MAX_SAME)
        return instance_of(machine, MAX_SAME if others else max(len(starts) - 1, 0))

    def is_kept(self, instance: int) -> bool:
        """Whether what a packet says of a process is kept; of one beyond the limits nothing is."""
        return instance >> 32 < MAX_SAME

    def is_reused(self, machine: int, pid: int) -> bool:
        """Whether several processes had the pid, according to the packets read so far."""
        return len(self._starts.get((machine, pid), ())) > 1 or (machine, pid) in self._others

    def at(self, machine: int, pid: int, time: int) -> int:
        """The process instance that had the pid at a time in nanoseconds since boot; 0: the one described last."""
        starts, others = self._starts.get((machine, pid), []), self._others.get((machine, pid))
        if len(starts) < 2 and not others:
            return instance_of(machine, 0)
        if not time:
            return instance_of(machine, MAX_SAME if others else len(starts) - 1)
        began = [start for start in starts if start < time + SAME_START]
        if others and others[0] < time + SAME_START and others[1] > max(began, default=0):
            return instance_of(machine, MAX_SAME)
        return instance_of(machine, starts.index(max(began) if began else min(starts)))

    def name(self, names: dict[tuple[int, int], bytes], key: tuple[int, int], name: bytes) -> None:
        """Enter a name into `names` or `threads`, as long as all names stay within their limit."""
        known, name = names.get(key), name[:MAX_NAME]
        more = len(name) + NAME_COST if known is None else len(name) - len(known)
        if self._name_bytes + more > MAX_NAME_BYTES:
            self._notes["names of processes and threads were left out because the trace has too many"] += 1
            return
        self._name_bytes += more
        names[key] = name

    def name_of(self, instance: int, pid: int | None) -> bytes:
        """The name of a process, empty if it or the pid is unknown."""
        return b"" if pid is None else self.names.get((instance, pid), b"")


def instance_of(machine: int, number: int) -> int:
    """A process instance as one number."""
    return machine & 0xFFFFFFFF | number << 32


def machine_of(instance: int) -> int:
    """The machine of a process instance."""
    return instance & 0xFFFFFFFF


class Clocks:
    """What clocks showed at one moment, in nanoseconds. Clocks of a single sequence are left out."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._times)

    def add(self, clock: int, time: int) -> None:
        """Take what a clock showed."""
        if 0 < clock <= BUILTIN_CLOCK_MAX_ID:
            self._times[clock] = time

    def boottime(self, time: int, clock: int) -> int:
        """A time of a clock in nanoseconds since boot; 0 if the clocks that are known yet do not relate them."""
        return max(self._converted(time, clock, BUILTIN_CLOCK_BOOTTIME), 0)

    def realtime(self, time: int, clock: int) -> int:
        """A time of a clock in nanoseconds since 1970; 0 if the clocks of the trace do not relate them."""
        result = self._converted(time, clock, BUILTIN_CLOCK_REALTIME)
        return result if 0 < result < 1 << 63 else 0

    def _converted(self, time: int, clock: int, to: int) -> int:
        base, shown = self._times.get(clock), self._times.get(to)
        if not base and clock == BUILTIN_CLOCK_MONOTONIC_COARSE:
            base = self._times.get(BUILTIN_CLOCK_MONOTONIC)
        return shown + time - base if base and shown and time else 0


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


class Sessions:
    """The sessions of a trace, each a row. `seq` is the state of a sequence."""

    def __init__(self, samples: TraceSamples, notes: Counter[str]) -> None:
        self.rows: list[Session] = []
        self._row_of: dict[Any, int] = {}
        self._timebases: dict[bytes, tuple[Session, int]] = {}
        self._samples = samples
        self._notes = notes

    def _row(self, key: Any, session: Session) -> int:
        """The row of a session; -1 if there are too many."""
        row = self._row_of.get(key)
        if row is None:
            if len(self.rows) >= MAX_SESSIONS:
                self._notes["samples were left out because the trace has too many kinds of them"] += 1
                return -1
            row = self._row_of[key] = len(self.rows)
            self.rows.append(session)
            self._samples.widen(len(session.followers))
        return row

    def defaults(self, seq: Any, data: bytes) -> None:
        """Read TracePacketDefaults: the clock, and the events of the samples that follow."""
        if len(data) > MAX_DEFAULTS:
            self._notes["defaults were left out because they are larger than any real ones"] += 1
            return
        values = message(data)
        seq.clock = values.get(tags.TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID, 0)
        if (stack_defaults := values.get(tags.TRACE_PACKET_DEFAULTS_STACK_SAMPLE_DEFAULTS)) is not None:
            seq.stack_defaults = stack_defaults
            seq.stack_events = read_stack_defaults(stack_defaults)
        if (perf_defaults := values.get(tags.TRACE_PACKET_DEFAULTS_PERF_SAMPLE_DEFAULTS)) is not None:
            self.use(seq, perf_defaults)

    def use(self, seq: Any, data: bytes) -> None:
        """Give a sequence the session of PerfSampleDefaults; b"" (Android 11 writes none) is that of cpu-clock."""
        known = self._timebases.get(data)
        if known is None:
            known = read_timebase(data)
            if len(self._timebases) < MAX_SESSIONS:
                self._timebases[data] = known
        session, nominal = known
        if seq.defaults != data or seq.followers != len(session.followers):
            seq.reset_counters()
        seq.defaults = data
        seq.followers = len(session.followers)
        seq.nominal = nominal
        seq.session = self._row((1, seq.number, data), session)

    def of_stream(self) -> int:
        """The session of Chromium's sampler, which takes samples by time; -1 if there are too many sessions."""
        return self._row("stream", Session("chromium", "wall", "nanoseconds"))

    def of_stack_sample(
        self, seq: Any, descriptors: dict[int, Event], primary: int, described: bytes, followers: Any
    ) -> tuple[int, int, tuple[int, ...]]:
        """The session of a StackSample, -1 if an event is unknown, how many followers it has, and the multipliers of
        all events, none if each is 1 (R237, multiplied weights).

        Events that the sample does not name are those of the defaults.
        """
        default, further = seq.stack_events if seq.stack_defaults else (SAMPLES, ())
        event: Event | None = default
        if described:
            event = read_descriptor(described)[1]
        elif primary:
            event = descriptors.get(primary)
        events = [read_descriptor(each)[1] if isinstance(each, bytes) else descriptors.get(each) for each in followers]
        events = events or list(further)
        if event is None or None in events:
            return -1, 0, ()
        known = [each for each in events if each is not None][:MAX_FOLLOWERS]
        session = Session("cpu", *event[:2], followers=tuple(each[:2] for each in known))
        row = self._row((2, seq.number, (event[:2], session.followers)), session)
        multipliers = tuple(each[2] for each in (event, *known))
        return row, len(known), multipliers if set(multipliers) != {1} else ()


MAX_MAPPINGS: Final = 1 << 17
MAX_PATH: Final = 1 << 12
MAX_STRING_BYTES: Final = 1 << 27
STRING_COST: Final = 128
"""Bytes of all distinct strings; each takes so many beside its content."""


@dataclass(frozen=True, slots=True)
class TraceMapping:
    """A mapping as the trace has it; `exact_offset` is None where it is not there (Android 10)."""

    name: bytes
    build_id: bytes
    start_offset: int
    start: int
    limit: int
    load_bias: int
    exact_offset: int | None


@dataclass(frozen=True, slots=True)
class SymbolLine:
    """A line of a frame that the trace brings symbols for, by strings."""

    function: int
    source: int
    line: int


class Trace:
    """The content of a trace, which the scanner and `Packets` enter within its limits."""

    def __init__(self) -> None:
        mixer = random_mixer()
        self.notes: Counter[str] = Counter()
        self.warnings: list[str] = []
        self.reader = PacketReader(self, mixer)
        self.frames, self.stacks = self.reader.frames, self.reader.stacks
        self.samples = TraceSamples(self.reader)
        self.strings = Strings()
        self._string_bytes = 0
        self._has_all_strings = True
        self.mappings: list[TraceMapping] = []
        self._mapping_rows: dict[TraceMapping, int] = {}
        self.clocks = Clocks()
        self.processes = TraceProcesses(self.notes)
        self.sessions = Sessions(self.samples, self.notes)
        self.heaps = HeapDumps(self.processes, self.clocks, self.notes, mixer)
        self.symbols: dict[tuple[bytes, bytes], dict[int, list[SymbolLine]]] = {}
        """By module (path and build id) and address."""
        self.java = Java(self.notes)

    def instance(self, machine: int, pid: int, time: int, clock: int) -> int:
        """The process instance that had a pid at the time of a sample."""
        return self.processes.at(machine, pid, self.clocks.boottime(time, clock) if clock else time)

    def string(self, value: bytes) -> int:
        """The row of a string, 0 if there are too many."""
        before = len(self.strings)
        if self._string_bytes + len(value) > MAX_STRING_BYTES:
            self.notes["strings were left out because the trace has too many"] += 1
            self._has_all_strings = False
            return 0
        row = self.strings.add(value)
        if len(self.strings) > before:
            self._string_bytes += len(value) + STRING_COST
        return row

    def mapping(self, build: int, record: tuple[Any, ...], parts: list[int]) -> int:
        """The row of a mapping; -1 if there are too many."""
        name = bytearray()
        # Without its build id, or with a part of its path, a mapping would be taken for another file.
        for part in parts if self._has_all_strings or 0 not in (build, *parts) else ():
            if len(name) > MAX_PATH:
                break
            name += b"/" + self.strings[part][:MAX_PATH]
        if name.startswith(b"//"):
            del name[0]
        start_offset, start, limit, load_bias, exact = record
        # Equal names are one object, and count with the strings.
        path = self.strings[self.string(bytes(name[:MAX_PATH]))]
        mapping = TraceMapping(path, self.strings[build], start_offset, start, limit, load_bias, exact)
        row = self._mapping_rows.get(mapping)
        if row is None:
            if len(self.mappings) >= MAX_MAPPINGS:
                self.notes["mappings were left out, with the frames in them, because the trace has too many"] += 1
                return -1
            row = self._mapping_rows[mapping] = len(self.mappings)
            self.mappings.append(mapping)
        return row
