"""What a trace says once: names of processes, sessions, heaps, symbols; and the samples of its heap dumps."""

import importlib
import os
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from symbolize.core.arrays import Int32, UInt64
from symbolize.load.perfetto.dumps import Dump, Heap
from symbolize.load.perfetto.events import (
    MAX_FOLLOWERS,
    SAMPLES,
    Event,
    Session,
    read_descriptor,
    read_stack_defaults,
    read_timebase,
)
from symbolize.load.perfetto.java import Java
from symbolize.load.perfetto.processes import Processes, place_of
from symbolize.load.perfetto.scan import Scanner
from symbolize.load.perfetto.wire import fields, message, number, signed, text
from symbolize.profile.strings import Strings

MAX_INFLATED: Final = 16 << 20
"""Bytes in one compressed packet; Perfetto's own have less than 512 KiB before they are compressed."""

MAX_INFLATED_RATIO: Final = 100
FREE_INFLATED: Final = 32 << 20
"""Beyond so many bytes in all compressed packets, they may be only so many times as large as what they were made of:
the packets, and the input itself where that was compressed too (rule R277)."""

READ_AT_ONCE: Final = 1 << 16
"""Bytes that are asked of zstd at a time."""

MAX_MAPPINGS: Final = 1 << 17
MAX_PATH: Final = 1 << 12
MAX_STRING_BYTES: Final = 1 << 27
STRING_COST: Final = 128
"""Bytes of all distinct strings; each takes so many beside its content."""
MAX_CHANGE_BYTES: Final = 1 << 28
"""Bytes of all that dumps say of the samples of heaps."""
MAX_DEFAULTS: Final = 1 << 14
"""Bytes of TracePacketDefaults."""
MAX_SESSIONS: Final = 1 << 12
MAX_DUMPS: Final = 1 << 14
MAX_RECORDS: Final = 1 << 21
"""Times that processes and threads are described."""
MAX_NAME_BYTES: Final = 1 << 27
NAME_COST: Final = 256
"""Bytes of all names of processes and threads; each takes so many beside its content."""
MAX_SYMBOLS: Final = 1 << 20
"""Modules and addresses that the trace brings symbols for, and lines of them."""

KTHREADD: Final = 2

ZLIB_PACKETS, ZSTD_PACKETS = 50, 133
PROCESS_TREE, CLOCKS, PROCESS, THREAD, TRACK, SYMBOLS, DEOBFUSCATION = 2, 6, 43, 44, 60, 61, 64

REALTIME, MONOTONIC, MONOTONIC_COARSE, BOOTTIME = 1, 3, 4, 6
BUILTIN_CLOCKS: Final = range(1, 64)
"""Clocks that mean the same in the whole trace."""

HEAP_FLAGS: Final = (
    (4, "was not profiled because another session profiled it"),
    (6, "ended or closed its connection before the profiling did"),
    (7, "overran the buffer, so that allocations are missing"),
    (8, "has a corrupted buffer: allocations are missing or wrong"),
    (10, "reached a limit of CPU or memory, so that profiling stopped early"),
)
"""Fields of ProcessHeapSamples that say that something is missing."""

CLIENT_ERRORS: Final = {1: "did not get through to the profiler in time", 2: "had a stack outside its bounds"}


@dataclass(frozen=True, slots=True)
class Mapping:
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
    """A trace under the scanner, which calls the methods up to `finish`."""

    def __init__(self, packed: Callable[[], int] | None = None) -> None:
        self._packed = packed
        mixer = int.from_bytes(os.urandom(8), "little")
        self.mixer = mixer
        self.strings = Strings()
        self.string_bytes = 0
        self.scanner = Scanner(self, mixer)
        self.mappings: list[Mapping] = []
        self._mapping_rows: dict[Mapping, int] = {}
        self.sessions: list[Session] = []
        self._session_rows: dict[tuple[int, int, bytes | tuple[Any, ...]], int] = {}
        self._timebases: dict[bytes, tuple[Session, int]] = {}
        self._stream: int | None = None
        self.instances = Processes()
        self.processes: dict[tuple[int, int], bytes] = {}
        """Names by place and pid."""
        self.threads: dict[tuple[int, int], bytes] = {}
        """Names by machine and tid."""
        self._records = self._name_bytes = 0
        self.heaps: dict[tuple[int, int, int | None, str], Heap] = {}
        """By sequence, place, pid and name."""
        self.dumps: list[tuple[Heap, Dump]] = []
        self._dump_rows: dict[tuple[int, int, int | None, str, int], int] = {}
        self.symbols: dict[tuple[bytes, bytes], dict[int, list[SymbolLine]]] = {}
        self.symbol_count = 0
        self.clocks: dict[int, int] = {}
        self.notes: Counter[str] = Counter()
        self.java = Java(lambda note: self.notes.update([note]))
        self.warnings: list[str] = []
        self._inflated = self._deflated = 0
        self._change_bytes = 0

    # What the scanner asks for

    def instance(self, machine: int, pid: int, time: int, clock: int) -> int:
        """The place of the process that had a pid at the time of a sample."""
        return self.instances.at(machine, pid, self._boottime(time, clock) if clock else time)

    def _described(self, machine: int, pid: int, start: int) -> int:
        """The place of a process that a packet describes."""
        place = self.instances.described(machine, pid, start)
        if self.instances.is_reused(machine, pid):
            self.scanner.samples.reused.add(pid)
        return place

    def inflate(self, kind: int, data: bytes) -> bytes | None:
        """The packets in a compressed packet; None, which is noted, if they cannot be had."""
        self._deflated += len(data)
        packed = self._deflated if self._packed is None else min(self._deflated, self._packed())
        limit = min(MAX_INFLATED, max(FREE_INFLATED, MAX_INFLATED_RATIO * packed) - self._inflated)
        try:
            out = self._inflate_zlib(data, limit) if kind == ZLIB_PACKETS else self._inflate_zstd(data, limit)
        except Exception as error:  # each library has its own error class
            self.notes["compressed packets were left out because they are damaged"] += 1
            del error
            return None
        if out is None:
            return None
        self._inflated += len(out)
        return out

    def _inflate_zlib(self, data: bytes, limit: int) -> bytes | None:
        decoder: Any
        try:
            decoder = importlib.import_module("isal.isal_zlib").decompressobj(47)
        except ImportError:
            decoder = zlib.decompressobj(47)
        out: bytes = decoder.decompress(data, max(limit, 0) + 1)
        if len(out) > limit:
            self.notes["compressed packets were left out because they expand as only bombs do"] += 1
            return None
        if not decoder.eof:
            self.notes["compressed packets end too early"] += 1
        return out

    def _inflate_zstd(self, data: bytes, limit: int) -> bytes | None:
        try:
            zstandard = importlib.import_module("zstandard")
        except ImportError:
            self.notes["compressed packets were left out: zstd needs the Python package zstandard"] += 1
            return None
        out = bytearray()
        with zstandard.ZstdDecompressor().stream_reader(data) as reader:
            # What is asked for is allocated, so not all that the packet may expand to.
            while len(out) <= limit and (piece := reader.read(READ_AT_ONCE)):
                out += piece
        if len(out) > limit:
            self.notes["compressed packets were left out because they expand as only bombs do"] += 1
            return None
        return bytes(out)

    def string(self, value: bytes) -> int:
        """The row of a string."""
        before = len(self.strings)
        if self.string_bytes + len(value) > MAX_STRING_BYTES:
            self.notes["strings were left out because the trace has too many"] += 1
            return 0
        row = self.strings.add(value)
        if len(self.strings) > before:
            self.string_bytes += len(value) + STRING_COST
        return row

    def mapping(self, build: int, record: tuple[Any, ...], parts: list[int]) -> int:
        """The row of a mapping; -1 if there are too many."""
        name = bytearray()
        for part in parts:
            if len(name) > MAX_PATH:
                break
            name += b"/" + self.strings[part][:MAX_PATH]
        if name.startswith(b"//"):
            del name[0]
        start_offset, start, limit, load_bias, exact = record
        # Equal names are one object, and count with the strings.
        path = self.strings[self.string(bytes(name[:MAX_PATH]))]
        mapping = Mapping(path, self.strings[build], start_offset, start, limit, load_bias, exact)
        row = self._mapping_rows.get(mapping)
        if row is None:
            if len(self.mappings) >= MAX_MAPPINGS:
                self.notes["mappings were left out, with the frames in them, because the trace has too many"] += 1
                return -1
            row = self._mapping_rows[mapping] = len(self.mappings)
            self.mappings.append(mapping)
        return row

    def defaults(self, seq: Any, data: bytes) -> None:
        """TracePacketDefaults: the clock, and the events of the samples that follow."""
        if len(data) > MAX_DEFAULTS:
            self.notes["defaults were left out because they are larger than any real ones"] += 1
            return
        values = message(data)
        seq.clock = number(values, 58)
        if 100 in values:
            seq.stack_defaults = text(values, 100)
            seq.stack_events = read_stack_defaults(seq.stack_defaults)
        if 12 in values:
            self._use_session(seq, text(values, 12))

    def no_defaults(self, seq: Any) -> None:
        """Samples come without defaults, as producers of Android 11 write them: cpu-clock is what they count."""
        self._use_session(seq, b"")

    def _use_session(self, seq: Any, data: bytes) -> None:
        known = self._timebases.get(data)
        if known is None:
            known = read_timebase(data)
            if len(self._timebases) < MAX_SESSIONS:
                self._timebases[data] = known
        session, nominal = known
        if seq.defaults != data:
            seq.reset_counters()
        seq.defaults = data
        if seq.followers != len(session.followers):
            seq.reset_counters()
        seq.followers = len(session.followers)
        seq.nominal = nominal
        seq.session = self._session((1, seq.number, data), session)

    def _session(self, key: Any, session: Session) -> int:
        """The row of a session; -1 if there are too many."""
        row = self._session_rows.get(key)
        if row is None:
            if len(self.sessions) >= MAX_SESSIONS:
                self.notes["samples were left out because the trace has too many kinds of them"] += 1
                return -1
            row = self._session_rows[key] = len(self.sessions)
            self.sessions.append(session)
            self.scanner.samples.widen(len(session.followers))
        return row

    def stream_session(self) -> int:
        """The session of Chromium's sampler, which takes samples by time; -1 if there are too many sessions."""
        if self._stream is None:
            row = self._session((3, 0, b""), Session("chromium", "wall", "nanoseconds"))
            if row < 0:
                return row
            self._stream = row
        return self._stream

    def descriptor(self, data: bytes) -> tuple[int, Event]:
        """Id of a CounterDescriptor, and what `read_descriptor` says of it."""
        return number(message(data), 1), read_descriptor(data)

    def stack_session(
        self, seq: Any, descriptors: dict[int, Event], primary: int, described: bytes, followers: Any
    ) -> tuple[int, int, tuple[int, ...]]:
        """The session of a StackSample, -1 where an event is not known, how many followers it has, and the multipliers
        of all events, none where each is 1 (rule R237).

        Events that the sample does not name are those of the defaults.
        """
        default, further = seq.stack_events if seq.stack_defaults else (SAMPLES, ())
        event: Event | None = default
        if described:
            event = read_descriptor(described)
        elif primary:
            event = descriptors.get(primary)
        events = [read_descriptor(each) if isinstance(each, bytes) else descriptors.get(each) for each in followers]
        events = events or list(further)
        if event is None or None in events:
            return -1, 0, ()
        known = [each for each in events if each is not None][:MAX_FOLLOWERS]
        session = Session("cpu", *event[:2], followers=tuple(each[:2] for each in known))
        row = self._session((2, seq.number, (event[:2], session.followers)), session)
        multipliers = tuple(each[2] for each in (event, *known))
        return row, len(known), multipliers if set(multipliers) != {1} else ()

    def rare(self, kind: int, data: bytes, seq: Any, machine: int, time: int | None) -> None:
        """A packet whose content a trace has little of: of the kinds above, or a PackagesList."""
        if kind == PROCESS_TREE:
            self._process_tree(data, machine)
        elif kind == CLOCKS:
            if not self.clocks:
                for field_number, value in fields(data):
                    if field_number == 1 and isinstance(value, bytes):
                        clock = message(value)
                        if number(clock, 1) in BUILTIN_CLOCKS:
                            self.clocks[number(clock, 1)] = number(clock, 2)
        elif kind == PROCESS:
            self._process(message(data), machine)
        elif kind == THREAD:
            self._thread(message(data), machine, seq)
        elif kind == TRACK:
            track = message(data)
            if 3 in track:
                self._process(message(text(track, 3)), machine)
            if 4 in track:
                self._thread(message(text(track, 4)), machine, seq)
        elif kind == SYMBOLS:
            self._module_symbols(data)
        elif kind == DEOBFUSCATION:
            self.java.mapping(data)
        else:
            self.java.packages(data)

    def dump(self, seq: Any, machine: int, header: dict[int, Any]) -> int:
        """The number of the dump that a ProcessHeapSamples belongs to. One without a time is of when its first packet
        was written."""
        pid = number(header, 1) if 1 in header else None
        time = number(header, 9) or seq.dump_time
        name = text(header, 11).decode("utf-8", "backslashreplace")[:256]
        place = place_of(machine, 0)
        if pid is not None:
            began = self._boottime(number(header, 9), MONOTONIC_COARSE) or seq.dump_time
            place = self.instances.at(machine, pid, began)
        key = seq.number, place, pid, name, time
        row = self._dump_rows.get(key)
        if row is None and len(self.dumps) >= MAX_DUMPS:
            self.notes["heap dumps were left out because the trace has too many"] += 1
            return -1 & 0xFFFFFFFFFFFFFFFF
        heap = self.heaps.get(key[:4])
        if heap is None:
            heap = self.heaps[key[:4]] = Heap(place, pid, name, self.mixer)
        heap.interval = number(header, 12) or heap.interval
        for field_number, what in HEAP_FLAGS:
            if number(header, field_number):
                heap.notes[what] += 1
        if error := number(header, 14):
            known = CLIENT_ERRORS.get(error) or f"had error {min(error, 100)} in the profiled process"
            heap.notes[known] += 1
        if row is None:
            row = self._dump_rows[key] = len(self.dumps)
            self.dumps.append((heap, Dump(time)))
        return row

    def finish(self, seq: Any, waiting: UInt64, stacks: Int32) -> None:
        """Take the samples of heap dumps whose callstacks were looked up; below 0 are those that are not there.

        `waiting` is uint64[n, 6]: dump, callstack id, count, size, frees, freed.
        """
        numbers = waiting[:, 0]
        edges = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
        for begin, end in pairwise(edges):
            row = int(numbers[begin])
            if row >= len(self.dumps):
                continue
            heap, dump = self.dumps[row]
            found, here = stacks[begin:end], waiting[begin:end]
            for why, lost in heap.lost.items():
                without = found == why
                lost[0] += int(without.sum())
                lost[1] += int(here[without, 3].astype(np.float64).sum())
            if self._change_bytes > MAX_CHANGE_BYTES:
                self.notes["times samples of heaps were left out because the trace has too many"] += 1
                continue
            self._change_bytes += heap.add(seq.generation, dump, here, found)

    def _boottime(self, time: int, clock: int) -> int:
        """A time of a clock in nanoseconds since boot; 0 where the clocks of the trace do not tell yet."""
        base = self.clocks.get(clock) or (self.clocks.get(MONOTONIC) if clock == MONOTONIC_COARSE else None)
        boot = self.clocks.get(BOOTTIME)
        return max(boot + time - base, 0) if base and boot and time else 0

    # Packets with names

    def _process_tree(self, data: bytes, machine: int) -> None:
        for kind, value in fields(data):
            if not isinstance(value, bytes) or kind not in (1, 2):
                continue
            if not self._has_room():
                return
            if kind == 1:
                command: list[bytes] = []
                process: dict[int, int | bytes] = {}
                for each, part in fields(value):
                    if each != 3:
                        process[each] = part
                    elif isinstance(part, bytes) and len(command) < 2:
                        command.append(part)
                pid = number(process, 1)
                place = self._described(machine, pid, number(process, 7))
                if 5 in process:
                    self.java.user(place, pid, number(process, 5))
                if command and command[0]:
                    name = command[0].partition(b" ")[0] if len(command) == 1 else command[0]
                    if number(process, 2) == KTHREADD:
                        name = name.removesuffix(b"-workqueue")
                    self._name(self.processes, (place, pid), name)
            else:
                thread = message(value)
                if name := text(thread, 2):
                    self._name(self.threads, (machine, number(thread, 1)), name)

    def _has_room(self) -> bool:
        """Whether one more process or thread may be described; counts it."""
        self._records += 1
        if self._records > MAX_RECORDS:
            self.notes["times processes or threads were left out because the trace describes too many"] += 1
        return self._records <= MAX_RECORDS

    def _name(self, names: dict[tuple[int, int], bytes], key: tuple[int, int], name: bytes) -> None:
        """Take the name of a process or thread, as long as all names stay within their limit."""
        known, name = names.get(key), name[:MAX_PATH]
        more = len(name) + NAME_COST if known is None else len(name) - len(known)
        if self._name_bytes + more > MAX_NAME_BYTES:
            self.notes["names of processes and threads were left out because the trace has too many"] += 1
            return
        self._name_bytes += more
        names[key] = name

    def _process(self, process: dict[int, int | bytes], machine: int) -> None:
        name = text(process, 6) or text(process, 2)
        pid = number(process, 1) & 0xFFFFFFFF
        if 1 in process and self._has_room():
            place = self._described(machine, pid, number(process, 7))
            if name and (place, pid) not in self.processes:
                self._name(self.processes, (place, pid), name)

    def _thread(self, thread: dict[int, int | bytes], machine: int, seq: Any) -> None:
        """A ThreadDescriptor: a name, and the thread and the beginning of time of Chromium's samples."""
        tid = number(thread, 2)
        named = 2 in thread and (machine, tid) not in self.threads
        if (name := text(thread, 5)) and named and self._has_room():
            self._name(self.threads, (machine, tid), name)
        if seq is not None:
            seq.pid = (number(thread, 1) & 0xFFFFFFFF) + 1 if 1 in thread else 0
            seq.tid, seq.has_tid = tid, 2 in thread
            if 6 in thread:
                seq.time_us = max(min(signed(number(thread, 6)), 1 << 52), -(1 << 52))
                seq.has_time = True

    def _module_symbols(self, data: bytes) -> None:
        """A ModuleSymbols packet; what comes later about an address replaces what came before."""
        values = message(data)
        module = text(values, 1)[:MAX_PATH], text(values, 2)[:MAX_PATH]
        if self.symbol_count > MAX_SYMBOLS:
            self.notes["symbols were left out because the trace has too many"] += 1
            return
        self.symbol_count += module not in self.symbols
        found = self.symbols.setdefault(module, {})
        for kind, value in fields(data):
            if kind != 3 or not isinstance(value, bytes):
                continue
            address = 0
            lines: list[SymbolLine] = []
            for each, part in fields(value):
                if each == 1 and isinstance(part, int):
                    address = part
                elif each == 2 and isinstance(part, bytes) and len(lines) < 1000:
                    line = message(part)
                    source = text(line, 2)
                    if source == b"??":
                        source = b""
                    if name := text(line, 1):
                        row = number(line, 3) & 0xFFFFFFFF if source else 0
                        lines.append(SymbolLine(self.string(name), self.string(source), row))
            self.symbol_count += 1 + len(lines)
            if self.symbol_count > MAX_SYMBOLS:
                self.notes["symbols were left out because the trace has too many"] += 1
                return
            # An address that the symbolizer found nothing at keeps the name that it has.
            if lines:
                found[address] = lines
