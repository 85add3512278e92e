"""Reading a recording: records out of a stream in which some are compressed, or are followed by more bytes than they
say; in the order of their times, side-band records into processes, samples into tables."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import views
from symbolize.core.compression import ZSTD, CompressionError, Spool
from symbolize.core.errors import InputError, UsageError, first_names
from symbolize.core.interning import InternTable, random_mixer
from symbolize.formats.content import FREE_OUTPUT, MAX_RATIO
from symbolize.formats.model import LoadOptions
from symbolize.formats.perf import numbers as n
from symbolize.formats.perf.header import (
    ARCH,
    MAX_EVENTS,
    MAX_IDS,
    MAX_TEXT,
    MIN_ATTR,
    SIMPLEPERF_FILE,
    Bytes,
    Event,
    RecordingFacts,
    layout_of,
    machine_of,
    read_build_id,
    read_conversion,
    read_event,
)
from symbolize.formats.perf.processes import EXECUTABLE, FileId, RecordedProcesses
from symbolize.formats.perf.samples import PerfSamples
from symbolize.formats.perf.scan import PerfScan, ordinary_end
from symbolize.profile.attachments import REGISTERS
from symbolize.profile.model import Strings

STEP: Final = 1 << 10
"""Compressed bytes that are decoded at a time, so that the output of one step stays small."""
SIZE_AT: Final = 6
PREFIX: Final = 16
"""Bytes in front of the compressed ones: the header of a record, and their number."""
MAX_PART: Final = (1 << 16) - PREFIX - 1
"""Compressed bytes that perf puts into a record."""
SKIPPED_BY: Final = {n.TRACING_DATA: 4, n.AUXTRACE: 8}
"""How large the number is, behind the header, of the bytes that follow a record."""
ALIGNMENT: Final = 8
MAX_RECORD: Final = 1 << 16
"""No record is larger."""

MAX_QUEUE: Final = 1 << 21
"""Records that wait to be processed in the order of their times."""
MAX_ENTERED: Final = 1 << 24
"""Words of events and ids that are entered into the tables of samples, all of them again when there are more."""

FIRST_BUFFER: Final = 4 << 20
PENDING: Final = 16 << 20
"""Bytes of a stream that are kept before records are processed."""
MAX_PENDING: Final = 256 << 20
"""Bytes that wait for the end of a round at most."""
MAX_CGROUPS: Final = (1 << 24) - 1
"""Cgroups that labels tell apart: 24 bits of a context have which one it is."""
TRAILER: Final = n.HAS_TID | n.HAS_TIME | n.HAS_ID | n.HAS_STREAM_ID | n.HAS_CPU | n.HAS_IDENTIFIER

KERNEL_PID: Final = 0xFFFFFFFF
EVENT_NAME: Final = 2
"""The kind of EVENT_UPDATE that has a name."""
BPF_SYMBOL: Final = 1
JITDUMP: Final = re.compile(rb"(?:.*/)?jit-\d+\.dump")
"""What runtimes map to say that they write a list of their code with times."""
MOUNT_SPACE: Final = 5
"""Which of the namespaces of a process is that of its mounts."""
NO_FILE: Final = FileId(0, 0, 0, 0)

LABELS: Final = {
    "pid": n.LABEL_PID,
    "tid": n.LABEL_TID,
    "comm": n.LABEL_COMM,
    "thread_comm": n.LABEL_THREAD_COMM,
    "cpu": n.LABEL_CPU,
    "cgroup": n.LABEL_CGROUP,
    "execution_mode": n.LABEL_MODE,
}
"""The labels that samples may have, as perf_data_converter calls them."""
DEFAULT_LABELS: Final = ("pid", "tid", "comm")


class Stream:
    """The records in `pieces`, which begin with a record, as pieces again, of whole records or parts of them.

    `problems` are sentences on what was wrong; the stream ends where it cannot go on.

    The size of a COMPRESSED2 record wraps around at 65,536. If it is smaller than what the number of bytes behind the
    header says, that number counts, no padding follows, and beyond 65,519 bytes there are further headers of 16 bytes
    in between, with the size of their part (R295, size of compressed records).
    """

    def __init__(self, pieces: Iterable[bytes | memoryview], is_big: bool, name: str) -> None:
        self.problems: list[str] = []
        self.has_trace_data = False
        self._pieces = iter(pieces)
        self._order: Final = "big" if is_big else "little"
        self._is_big = is_big
        self._name = name
        self._data = b""
        self._at = 0
        self._tail = b""
        self._decoder: Any = None
        self._packed = self._unpacked = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            end = ordinary_end(self._data, self._at, len(self._data), self._is_big)
            if end > self._at:
                yield self._data[self._at : end]
                self._at = end
            if not self._has(n.RECORD_HEADER):
                break
            kind, size = self._number(0, 4), self._number(SIZE_AT, 2)
            if kind == n.COMPRESSED2:
                parts = self._compressed2(size)
            elif size < n.RECORD_HEADER or not self._has(size):
                break
            elif kind == n.COMPRESSED:
                parts = iter([self._take(size)[n.RECORD_HEADER :]])
            elif kind in SKIPPED_BY:
                self._skip(kind, size)
                continue
            else:  # it was cut off before
                continue
            try:
                for part in parts:
                    yield from self._inflated(part)
            except CompressionError as error:
                self.problems.append(f"The compressed records are damaged; the rest was left out: {error.problem}.")
                return
        if self._at < len(self._data) or self._tail:
            yield self._data[self._at :] or self._tail

    def _has(self, count: int) -> bool:
        """Whether so many bytes come next; reads pieces until they do."""
        if len(self._data) - self._at >= count:
            return True
        parts = [self._data[self._at :]]
        have = len(parts[0])
        while have < count and (piece := next(self._pieces, b"")):
            parts.append(bytes(piece))
            have += len(piece)
        self._data, self._at = b"".join(parts), 0
        return have >= count

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self, at: int, size: int) -> int:
        """An integer behind the position."""
        return int.from_bytes(self._data[self._at + at : self._at + at + size], self._order)

    def _skip(self, kind: int, size: int) -> None:
        """Move over a record and the bytes behind it."""
        left = self._number(n.RECORD_HEADER, SKIPPED_BY[kind]) if size > n.RECORD_HEADER else 0
        self.has_trace_data |= kind == n.AUXTRACE
        self._take(size)
        if kind == n.TRACING_DATA:
            left += -left % ALIGNMENT
        while left and self._has(1):
            step = min(left, len(self._data) - self._at)
            self._at += step
            left -= step

    def _compressed2(self, size: int) -> Iterator[bytes]:
        """The compressed bytes of a record of the second kind, whose size overflows where these are many (R295, size of
        compressed records)."""
        if not self._has(PREFIX):
            self._at = len(self._data)
            return
        left = self._number(n.RECORD_HEADER, 8)
        whole = PREFIX + left + -(PREFIX + left) % ALIGNMENT
        if whole <= size:
            if self._has(size):
                yield self._take(size)[PREFIX : PREFIX + left]
            else:
                self._at = len(self._data)
                raise CompressionError(self._name, "the last of them is cut off")
            return
        if not left:
            raise CompressionError(self._name, "one has no size")
        part = MAX_PART
        while left > 0 and self._has(PREFIX):
            self._take(PREFIX)
            part = min(part, left)
            if not self._has(part):
                self._at = len(self._data)
                return
            yield self._take(part)
            left -= part + PREFIX
            if left > 0 and self._has(PREFIX):
                part = self._number(SIZE_AT, 2) - PREFIX
                if part <= 0:
                    raise CompressionError(self._name, "a part has no size")

    def _inflated(self, part: bytes) -> Iterator[bytes]:
        """The records in compressed bytes, of which the last may end in the next part of the stream."""
        for at in range(0, len(part), STEP):
            step = part[at : at + STEP]
            self._packed += len(step)
            out = self._inflate(step)
            self._unpacked += len(out)
            if self._unpacked > max(FREE_OUTPUT, MAX_RATIO * self._packed):
                raise InputError(self._name, "has compressed records that expand as only a bomb does")
            data = self._tail + out
            end = ordinary_end(data, 0, len(data), self._is_big)
            if end:
                yield data[:end]
            self._tail = data[end:]
            if len(self._tail) > MAX_RECORD:
                raise CompressionError(self._name, "they hold no records")

    def _inflate(self, step: bytes) -> bytes:
        out = b""
        while step:
            if self._decoder is None:
                self._decoder = ZSTD.decoder(self._name)
            try:
                out += self._decoder.decompress(step)
            except MemoryError:
                raise
            except Exception as error:  # the library's own
                raise CompressionError(self._name, str(error)) from error
            step = self._decoder.unused_data or b""
            if step or getattr(self._decoder, "eof", False):
                self._decoder = None
        return out


class WaitingRecords(NamedTuple):
    """A sample that lacks its user callers so far: events and values that it counts for, context, stack, time."""

    counts: list[list[int]]
    context: int
    stack: int
    time: int


class Recording:
    """What was read so far of the recording that errors call `name`."""

    def __init__(self, name: str, is_big: bool, options: LoadOptions) -> None:
        mixer = random_mixer()
        wanted = options.sample_labels
        if wanted is None:  # threads in the order of time are known by their names
            wanted = (*DEFAULT_LABELS, "thread_comm") if options.timestamps else DEFAULT_LABELS
        if unknown := set(wanted) - set(LABELS):
            raise UsageError(f"unknown label {min(unknown)!r}; the labels of samples are {', '.join(LABELS)}")
        labels = sum(LABELS[label] for label in set(wanted)) | (n.LABEL_TIME if options.timestamps else 0)
        self.name = name
        self._is_choice = options.choice.selects
        self.strings = Strings()
        self.samples: Any = PerfSamples(labels, mixer)
        self.scan: Any = PerfScan(self.samples, is_big)
        self.processes = RecordedProcesses(self.samples, self.strings, options.choice)
        self.facts = RecordingFacts(is_big)
        self.events: list[Event] = []
        self.cgroups: list[int] = []
        self.too_many_cgroups = 0
        self._names: dict[int, bytes] = {}
        self._ids = self._entered = 0
        self._mixer = mixer
        self._is_big = is_big
        self._data = memoryview(b"")
        self._round_end = 0
        self._safe = 0
        self._registers = False
        self._spool: Spool | None = None
        self._spooled = 0
        self._deferred: dict[tuple[int, int], list[WaitingRecords]] = {}
        self.unfinished = 0
        self.is_damaged = self.is_cut = self.has_compressed = False
        self._is_stale = True

    def read(self, data: memoryview, begin: int, end: int) -> int:
        """Read the records in `data[begin:end]`; where the last whole one of them ends."""
        self._data = data
        self.scan.set_data(data, begin, end)
        while True:
            # While events are added only records of perf itself are read.
            self.scan.most = 0 if self._is_stale else MAX_QUEUE
            status = self.scan.scan()
            if status == n.FULL and self._is_stale:
                self._enter_events()
            elif status == n.FULL:
                self.flush(self._safe)
            elif status == n.OTHER:
                self._user_record(self.scan.begin, max(self.scan.pos, self.scan.begin + n.RECORD_HEADER))
            else:
                if status == n.BAD:
                    self.is_damaged = True
                return int(self.scan.pos)
            if self.has_compressed:
                return int(self.scan.begin)

    def finish(self) -> None:
        """Process what is queued, and name the events."""
        self.flush(None)
        self._name_events()
        for waiting in self._deferred.values():
            for each in waiting:
                self.samples.context, self.samples.time = each.context, 0
                for event, value in each.counts:
                    self.samples.count(event, each.stack, value)
                self.unfinished += 1
        self._deferred.clear()

    def read_pieces(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Read the records of a stream, of which no more is kept than what the order of times needs."""
        self._spool = self._spool or Spool()
        self._spool_dumps()
        self.has_compressed = False
        buffer = np.empty(FIRST_BUFFER, np.uint8)
        used = pos = 0
        limit = PENDING
        for piece in pieces:
            if used + len(piece) > len(buffer):
                larger = np.empty(2 * (used + len(piece)), np.uint8)
                larger[:used] = buffer[:used]
                buffer = larger
            buffer[used : used + len(piece)] = np.frombuffer(piece, np.uint8)
            used += len(piece)
            pos = self.read(buffer.data, pos, used)
            if self.is_damaged:
                break
            if used >= limit and not self.facts.is_directory:
                self.flush(self._safe, must=False)
                low = self._first_offset(pos)
                while used - low > MAX_PENDING and self.scan.count:
                    self.flush(self._safe)
                    low = self._first_offset(pos)
                buffer[: used - low] = buffer[low:used].copy()
                times, offsets = self.scan.queued()
                self.scan.set_queue(times.copy(), offsets - low, 0)
                used, pos = used - low, pos - low
                limit = max(PENDING, 2 * used)
        self.is_cut |= pos < used and not self.is_damaged

    def _first_offset(self, pos: int) -> int:
        """Where the first record begins that is still needed."""
        _, offsets = self.scan.queued()
        return int(offsets.min()) if len(offsets) else pos

    def flush(self, limit: int | None, must: bool = True) -> None:
        """Process the queued records up to the time `limit`, or half of them if there are none and some `must` be, or
        all if it is None (R294, order of records).

        Records of equal times keep their order in the file; those without a time, or with time 0, count before all
        others that wait. What waits may be processed up to the latest time before the last FINISHED_ROUND but one.
        """
        times, offsets = self.scan.queued()
        if not self.scan.is_sorted:
            order = np.argsort(times, kind="stable")
            times, offsets = times[order], offsets[order]
        count = len(times)
        if limit is not None:
            count = int(np.searchsorted(times, np.uint64(limit), side="right"))
            count = count or (len(times) + 1) // 2 * must
        if count:
            self._run(*views(offsets[:count].copy()))
            if self._spool is not None:
                self._spool_dumps()
        flushed = int(times[count - 1]) if count else 0
        self.scan.set_queue(times[count:].copy(), offsets[count:].copy(), flushed)

    def _spool_dumps(self) -> None:
        """Copy the stack dumps that are not copied yet to a file, before the buffer has others."""
        assert self._spool is not None
        table = self.samples.dump_array()
        for row in range(self._spooled, len(table)):
            begin, size = int(table[row, n.DUMP_OFFSET]), int(table[row, n.DUMP_SIZE])
            table[row, n.DUMP_OFFSET] = self._spool.write(self._data[begin : begin + size])
        self._spooled = len(table)

    def warnings(self) -> list[str]:
        """What was repaired or left out, a sentence each."""
        scan, found = self.scan, list(self.facts.warnings)
        if self._is_choice and not len(self.samples.rows.array()):
            names = {
                self.strings[each.comm].decode("utf-8", "backslashreplace") for each in self.processes.all if each.comm
            }
            found.append(f"No process with samples is one that was asked for; there are {first_names(sorted(names))}.")
        if self.is_damaged:
            found.append(f"There is no record at offset {scan.pos:#x}: the rest of the recording was left out.")
        elif self.is_cut:
            found.append("The recording was cut off: its last records, or what perf writes at the end, are missing.")
        for count, what in (
            (scan.lost, "records were lost while they were recorded"),
            (scan.damaged, "samples are shorter than their fields: they were left out"),
            (scan.unknown_ids, "samples are of no known event: they were left out"),
            (scan.late, "records are older than others before the end of a round: they were read out of order"),
            (scan.without_callers, "samples have copies of their stacks that cannot be used: they lack callers"),
            (self.unfinished, "samples lack their user callers, which the recording does not have"),
            (self.samples.untimed, "samples in code compiled at run time are too many: their times were left out"),
            (self.samples.saturated, "values are too large to be added up: they were cut at 2⁶³ - 1"),
            (self.processes.too_many_maps, "mappings are too many: they were left out"),
            (self.processes.too_many_processes, "processes are too many: what is mapped in them was left out"),
            (self.too_many_cgroups, "records of cgroups are too many: these have no names"),
        ):
            if count:
                found.append(f"{count:,} {what}.")
        if self.facts.has_trace_data:
            found.append("The trace data of the processor (AUX) in the recording is not decoded.")
        return found

    def dump_data(self) -> memoryview:
        """What the offsets of stack dumps refer to."""
        return self._data if self._spool is None else self._spool.mapped()

    @property
    def is_monotonic(self) -> bool:
        """Whether times are those of CLOCK_MONOTONIC."""
        return bool(self.events) and all(event.is_monotonic for event in self.events)

    @property
    def has_clock(self) -> bool:
        """Whether the times of samples can be compared with those of a jitdump (R461, times of samples)."""
        return self.is_monotonic or self.facts.conversion is not None

    def add_event(self, event: Event) -> None:
        """Have one more event. Raises InputError if there are too many."""
        self.events.append(event)
        self._is_stale = True
        self._ids += len(event.ids)
        if len(self.events) > MAX_EVENTS or self._ids > MAX_IDS:
            raise InputError(self.name, f"has more than {MAX_EVENTS} events or {MAX_IDS} ids of events")

    def _name_events(self) -> None:
        """Give the events the names that the recording has for them."""
        named = {each: name for event, name in self.facts.names for each in event.ids} | self._names
        for event in self.events:
            if not event.name:
                event.name = next((named[each] for each in event.ids if each in named), b"")
        if len(self.facts.names) == len(self.events):
            for event, (_, name) in zip(self.events, self.facts.names, strict=True):
                event.name = event.name or name

    def _enter_events(self) -> None:
        self._is_stale = False
        self._entered += len(self.events) * n.EVENT_WORDS + self._ids
        if self._entered > MAX_ENTERED:
            raise InputError(self.name, "adds events again and again after records of the kernel")
        machine = machine_of(self.facts.arch, self.events)
        layout = layout_of(self.events, machine)
        ids = InternTable(self._mixer)
        event_of_id: list[int] = []
        for row, event in enumerate(self.events):
            for each in event.ids:
                if each and ids.find(each) < 0:
                    ids.put(each, len(event_of_id))
                    event_of_id.append(row)
        if machine and not self._registers:
            self._registers = True
            self.samples.set_registers(REGISTERS[machine])
        numbers = np.array(event_of_id, np.int32)
        self.scan.set_events(
            *views(layout.table, numbers, layout.register_columns), ids, layout.sample_id_at, layout.trailer_id_at
        )

    def _run(self, offsets: Any) -> None:
        """Process records at these offsets."""
        self.scan.next = 0
        while (status := self.scan.run(offsets)) != n.DONE:
            if status == n.SIDE_BAND:
                self._side_band(self.scan.begin, self.scan.stop)
            elif status == n.UNKNOWN_THREAD:
                self.processes.thread(self.scan.pid, self.scan.tid)
            elif status == n.STALE_MAPS:
                self.processes.refresh(self.samples.process)
            elif status == n.DEFERRED:
                scan = self.scan
                waiting = self._deferred.setdefault((scan.tid, scan.cookie), [])
                waiting.append(WaitingRecords(scan.counted(), self.samples.context, scan.stack, self.samples.time))

    def _side_band(self, begin: int, end: int) -> None:
        """Process a record of the kernel that is no sample."""
        record = Bytes(self._data[begin:end], self._is_big)
        kind, misc, _ = record.number(4), record.number(2), record.number(2)
        if kind in (n.MMAP, n.MMAP2):
            self._map(record, kind, misc)
        elif kind == n.COMM:
            pid, tid = record.number(4), record.number(4)
            self.processes.comm(pid, tid, text(record), bool(misc & n.MISC_BIT13))
        elif kind in (n.FORK, n.EXIT):
            pid, parent, tid, parent_tid = (record.number(4) for _ in range(4))
            if kind == n.FORK:
                self.processes.fork(pid, parent, tid, parent_tid, bool(misc & n.MISC_BIT13))
            elif pid == tid:
                self.processes.exit(pid)
        elif kind == n.KSYMBOL:
            start, size, what, flags = record.number(8), record.number(4), record.number(2), record.number(2)
            self.processes.symbol(start, size, what == BPF_SYMBOL, text(record), bool(flags & 1))
        elif kind == n.NAMESPACES:
            pid, tid, count = record.number(4), record.number(4), record.number(8)
            spaces = [(record.number(8), record.number(8)) for _ in range(min(count, MOUNT_SPACE + 1))]
            if len(spaces) > MOUNT_SPACE and pid == tid:
                self.processes.namespace(pid, spaces[MOUNT_SPACE])
        elif kind == n.CALLCHAIN_DEFERRED:
            self._finish_deferred(record, begin)
        elif kind == n.CGROUP:
            number = record.number(8)
            if number and self.samples.cgroups.find(number) < 0:
                if len(self.cgroups) == MAX_CGROUPS:
                    self.too_many_cgroups += 1
                    return
                self.samples.cgroups.put(number, len(self.cgroups))
                self.cgroups.append(self.strings.add(text(record)))

    def _map(self, record: Bytes, kind: int, misc: int) -> None:
        pid, _ = record.number(4), record.number(4)
        start, size, offset = record.number(8), record.number(8), record.number(8)
        build_id, file, protection = b"", NO_FILE, 0 if misc & n.MISC_BIT13 else EXECUTABLE
        if kind == n.MMAP2 and misc & n.MISC_BUILD_ID:
            raw = record.take(24)
            build_id = raw[4 : 4 + raw[0]] if raw else b""
        elif kind == n.MMAP2:
            file = FileId(record.number(4), record.number(4), record.number(8), record.number(8))
        if kind == n.MMAP2:
            protection, _ = record.number(4), record.number(4)
        mode = misc & n.MODE_MASK
        if protection & EXECUTABLE and mode < n.GUEST_KERNEL_MODE:
            is_kernel = pid == KERNEL_PID
            name = text(record)
            self.processes.map(pid, start, size, offset, name, build_id, file, is_kernel)
            if self.has_clock and not is_kernel and JITDUMP.fullmatch(name):
                self.processes.keep_times(pid)

    def _user_record(self, begin: int, end: int) -> None:
        """Process a record that perf wrote on its own account."""
        record = Bytes(self._data[begin:end], self._is_big)
        kind, misc, _ = record.number(4), record.number(2), record.number(2)
        if kind >= n.SIMPLEPERF_RECORDS:
            raise InputError(self.name, SIMPLEPERF_FILE)
        if kind == n.FINISHED_ROUND:
            self._safe, self._round_end = self._round_end, self.scan.max_time
        elif kind == n.HEADER_ATTR:
            size = max(int.from_bytes(record.data[12:16], "big" if self._is_big else "little"), MIN_ATTR)
            event = read_event(record.take(size), self._is_big)
            event.ids = [record.number(8) for _ in range(record.left // 8)]
            self.add_event(event)
        elif kind == n.HEADER_FEATURE:
            feature = record.number(8)
            self.facts.read(feature, record.take(record.left), self.name)
            self._is_stale |= feature == ARCH
        elif kind == n.BUILD_ID:
            self.facts.build_ids.append(read_build_id(misc, record.take(record.left)))
        elif kind == n.TIME_CONV:
            self.facts.conversion = read_conversion(record)
        elif kind == n.EVENT_UPDATE:
            what, number = record.number(8), record.number(8)
            if what == EVENT_NAME:
                self._names.setdefault(number, text(record))
        elif kind in (n.COMPRESSED, n.COMPRESSED2):
            # In the records of a stream there are none: those in compressed records are damaged.
            self.has_compressed = True
            self.is_damaged = self._spool is not None
        elif kind in SKIPPED_BY:
            left = record.number(SKIPPED_BY[kind])
            self.facts.has_trace_data |= kind == n.AUXTRACE
            self.scan.pos = min(end + left + (-left % 8 if kind == n.TRACING_DATA else 0), self.scan.end)

    def _finish_deferred(self, record: Bytes, begin: int) -> None:
        """Append a user callchain to the stacks that were waiting for it."""
        cookie, count = record.number(8), record.number(8)
        trailer = 8 * (self.events[0].sample_type & TRAILER).bit_count() if self.events else 0
        if count > (record.left - trailer) // 8:
            return
        chain = begin + record.at
        record.at = len(record.data) - trailer
        pid, tid = record.number(4), record.number(4)
        waiting = self._deferred.pop((tid, cookie), None)
        if waiting is None:
            return
        self.processes.thread(pid, tid)
        self.samples.locate_thread(pid, tid)
        for process in (self.samples.process, n.KERNEL_PROCESS):
            if self.samples.is_stale(process):
                self.processes.refresh(process)
        for each in waiting:
            self.samples.context, self.samples.time = each.context, each.time
            self.samples.begin_stack()
            self.samples.append_frames(each.stack)
            stack = self.scan.finish_deferred(chain, count)
            for event, value in each.counts:
                self.samples.count(event, stack, value)


def text(record: Bytes) -> bytes:
    """The rest of a record up to a NUL."""
    return record.take(min(record.left, MAX_TEXT)).partition(b"\0")[0]
