"""What a trace holds: its tables, its names, the sources of its CPU samples, and notes of what was left out."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from symbolize.core.interning import random_mixer
from symbolize.formats.perfetto.clocks import Clocks
from symbolize.formats.perfetto.constants import MAX_FOLLOWERS
from symbolize.formats.perfetto.dumps import HeapDumps
from symbolize.formats.perfetto.events import (
    SAMPLES,
    Event,
    Session,
    read_descriptor,
    read_stack_defaults,
    read_timebase,
)
from symbolize.formats.perfetto.java import Java
from symbolize.formats.perfetto.packet_reader import PacketReader
from symbolize.formats.perfetto.processes import TraceProcesses
from symbolize.formats.perfetto.samples import TraceSamples
from symbolize.formats.perfetto.wire import message
from symbolize.profile.model import Strings
from symbolize.proto import perfetto_trace_tags as tags

MAX_DEFAULTS: Final = 1 << 14
"""Bytes of TracePacketDefaults."""
MAX_SESSIONS: Final = 1 << 12


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
