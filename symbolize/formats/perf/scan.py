# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, untyped-decorator, valid-type", no-warn-unused-ignores
"""The records of perf.data: where they begin, a queue of those that have an order in time, and the samples among them
into tables."""

from typing import Any

import cython
import numpy as np

from symbolize.core.arrays import extended

if not cython.compiled:
    from symbolize.core.integers import unsigned_at
    from symbolize.core.interning import Chunks, InternTable, Tuples
    from symbolize.formats.perf.numbers import *
    from symbolize.formats.perf.samples import PerfSamples

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
MAX_CHAINS: int = 1 << 17
MAX_CHAIN_BYTES: int = 48 << 20
"""How many callchains, and bytes of them, are recognized by their bytes. Others are looked up frame by frame."""

MAX_COUNTS: int = 1 << 12
"""Counters in a sample, at most: each takes two words at least of a record, whose size has 16 bits."""

FIRST_MARKER = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFF001)
"""The lowest value in a callchain that is a marker of the context."""


def ordinary_end(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t, is_big: cython.bint
) -> int:
    """Where the whole records from `at` on end, the last before `end`: at one that `data` does not have all of, at one
    behind which there are more bytes than its size says, or at what is no record."""
    kind: cython.uint
    size: cython.Py_ssize_t
    end = min(end, len(data))
    if at < 0:
        return 0
    with cython.nogil:
        while end - at >= RECORD_HEADER:
            kind = unsigned_at(data, at, 4, is_big)
            size = unsigned_at(data, at + 6, 2, is_big)
            if size < RECORD_HEADER or size > end - at:
                break
            if kind in (COMPRESSED, COMPRESSED2, TRACING_DATA, AUXTRACE):
                break
            at += size
    return at


@cython.cclass
class PerfScan:
    """The position in `data`, the queue, and the sample that is read.

    Every record from `pos` up to `end` is looked at once by `scan`, which queues it with its time, and once more by
    `run`, in the order that the caller chooses. `events` has a row of EVENT_WORDS for each event.
    """

    def __init__(self, samples: PerfSamples, is_big: cython.bint) -> None:
        self.samples = samples
        self.big = is_big
        self.data = memoryview(b"")
        self.pos = self.end = self.begin = self.stop = self.at = 0
        self.events = memoryview(np.zeros((0, EVENT_WORDS), np.uint64))
        self.ids = InternTable(1)
        self.event_of_id = memoryview(np.zeros(0, np.int32))
        self.values = Tuples(2, samples.mixer, 1)  # by id and thread, if each has its own: what was read last
        self.register_columns = memoryview(np.zeros((0, 64), np.int32))
        self.has_ids = False
        self.sample_id_at = self.trailer_id_at = 0
        self.times = memoryview(np.zeros(1024, np.uint64))
        self.offsets = memoryview(np.zeros(1024, np.int64))
        self.count = 0
        self.most = 0
        self.max_time = self.last_time = self.flushed = 0
        self.is_sorted = True
        self.lost = self.late = self.seen = 0
        self.first_sample = MASK64
        self.last_sample = 0
        self.next = 0
        self.damaged = self.unknown_ids = self.unwanted = self.left_out = self.without_callers = 0
        self.pid = self.tid = 0
        self.cookie = self.value = 0
        self.stack = self.event = 0
        # What the sample counts for: events and values.
        self.counts = memoryview(np.zeros((MAX_COUNTS, 2), np.uint64))
        self.count_of_counts = 0
        self.is_bad = False
        self.chains = Chunks(MAX_CHAINS, MAX_CHAIN_BYTES, samples.mixer)
        # By row of `chains`: address of the sample, versions of the maps with the mode, stack.
        self.known = memoryview(np.zeros((MAX_CHAINS, 4), np.uint64))

    def set_data(self, data: Any, pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> None:
        """Read `data[pos:end]`. Offsets of queued records stay as they are."""
        self.data = data
        self.pos = pos
        self.end = min(end, len(data))

    def set_events(
        self,
        events: Any,
        event_of_id: Any,
        register_columns: Any,
        ids: InternTable,
        sample_id_at: int,
        trailer_id_at: int,
    ) -> None:
        """Say which events there are. An id is `sample_id_at` bytes behind the begin of a sample, and `trailer_id_at`
        before the end of other records; 0: there is none, and all belong to the first event."""
        self.events = events
        self.ids = ids
        self.event_of_id = event_of_id
        self.register_columns = register_columns
        self.has_ids = sample_id_at > 0 and len(events) > 1
        self.sample_id_at = sample_id_at
        self.trailer_id_at = trailer_id_at

    def queued(self) -> tuple[Any, Any]:
        """Times and offsets of the queued records."""
        return np.asarray(self.times)[: self.count], np.asarray(self.offsets)[: self.count]

    def set_queue(self, times: Any, offsets: Any, flushed: cython.ulonglong) -> None:
        """Have only these records in the queue; all up to the time `flushed` were processed."""
        self.count = len(times)
        np.asarray(self.times)[: self.count] = times
        np.asarray(self.offsets)[: self.count] = offsets
        self.flushed = max(self.flushed, flushed)
        self.is_sorted = True
        self.last_time = self.times[self.count - 1] if self.count else 0

    def scan(self) -> int:
        """Queue records until the caller has to do something, which the status says."""
        status: cython.int
        with cython.nogil:
            status = self.queue_records()
        return int(status)

    def run(self, offsets: cython.const[cython.longlong][::1]) -> int:
        """Process queued records from number `next` on until the caller has to do something, which the status says."""
        status: cython.int = DONE
        with cython.nogil:
            while self.next < offsets.shape[0]:
                self.begin = offsets[self.next]
                self.stop = self.begin + self.short(self.begin + 6)
                if self.half(self.begin) != SAMPLE:
                    self.next += 1
                    status = SIDE_BAND
                    break
                status = self.read_sample()
                if status in (UNKNOWN_THREAD, STALE_MAPS):
                    break
                self.next += 1
                if status == DEFERRED:
                    break
        return status

    # Numbers. Callers check that they are in a record, and `scan` that records are in the data.

    def word(self, at: cython.Py_ssize_t) -> cython.ulonglong:
        """Eight bytes, 0 outside of the data."""
        return unsigned_at(self.data, at, 8, self.big) if 0 <= at <= self.data.shape[0] - 8 else 0

    def half(self, at: cython.Py_ssize_t) -> cython.ulonglong:
        """Four bytes, 0 outside of the data."""
        return unsigned_at(self.data, at, 4, self.big) if 0 <= at <= self.data.shape[0] - 4 else 0

    def short(self, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Two bytes, 0 outside of the data."""
        return unsigned_at(self.data, at, 2, self.big) if 0 <= at <= self.data.shape[0] - 2 else 0

    def take(self) -> cython.ulonglong:
        """The next eight bytes of the sample, which is bad if they are not there."""
        if self.stop - self.at < 8:
            self.is_bad = True
            return 0
        self.at += 8
        return self.word(self.at - 8)

    def skip(self, count: cython.ulonglong, size: cython.ulonglong) -> cython.void:
        """Move over so many items of a size in bytes; the sample is bad if they are not there."""
        if count > cython.cast(cython.ulonglong, self.stop - self.at) // size:
            self.is_bad = True
        else:
            self.at += cython.cast(cython.Py_ssize_t, count * size)

    # Records.

    def queue_records(self) -> cython.int:
        """Queue records, without the GIL."""
        kind: cython.ulonglong
        size: cython.Py_ssize_t
        begin: cython.Py_ssize_t
        while self.end - self.pos >= RECORD_HEADER:
            begin = self.pos
            kind = self.half(begin)
            size = self.short(begin + 6)
            if kind == COMPRESSED2:  # its size may be cut to 16 bits
                self.begin = begin
                return OTHER
            if size < RECORD_HEADER:
                return BAD
            if size > self.end - begin:
                return MORE
            if kind >= USER_RECORDS:
                self.begin = begin
                self.pos = begin + size
                return OTHER
            if self.count >= self.most:
                return FULL
            self.pos = begin + size
            if kind == SAMPLE:
                self.put(begin, self.sample_time(begin, self.pos))
            elif kind in (MMAP, MMAP2, COMM, FORK, EXIT, NAMESPACES, KSYMBOL, CGROUP, CALLCHAIN_DEFERRED):
                self.put(begin, self.trailer_time(begin, self.pos))
            elif kind == LOST and size >= RECORD_HEADER + 16:
                self.lost += self.word(begin + 16)
            elif kind == LOST_SAMPLES and size >= RECORD_HEADER + 8:
                self.lost += self.word(begin + 8)
        return MORE

    def put(self, begin: cython.Py_ssize_t, time: cython.ulonglong) -> cython.int:
        """Queue a record."""
        if self.count >= self.times.shape[0]:
            self.extend_queue()
        if time < self.last_time:
            self.is_sorted = False
            if time < self.flushed and time != 0:
                self.late += 1
        self.last_time = time
        if time > self.max_time:
            self.max_time = time
        self.times[self.count] = time
        self.offsets[self.count] = begin
        self.count += 1
        return 0

    def extend_queue(self) -> cython.int:
        """Enlarge the queue."""
        self.times = extended(self.times, self.count + 1)
        self.offsets = extended(self.offsets, self.count + 1)
        return 0

    def event_of(self, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The event of the id at a position, or NO_EVENT."""
        row: cython.int = self.ids.find(self.word(at))
        return self.event_of_id[row] if row >= 0 else NO_EVENT

    def sample_event(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The event that a sample is of, or NO_EVENT."""
        if not self.has_ids:
            return 0 if self.events.shape[0] > 0 else NO_EVENT
        if end - begin < self.sample_id_at + 8:
            return NO_EVENT
        return self.event_of(begin + self.sample_id_at)

    def sample_time(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """When a sample was taken, 0 if that is unknown."""
        event: cython.Py_ssize_t = self.sample_event(begin, end)
        at: cython.Py_ssize_t = 0
        if event >= 0:
            at = self.events[event, TIME_AT]
        return self.word(begin + at) if at > 0 and at + 8 <= end - begin else 0

    def trailer_time(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """When another record was made, 0 if that is unknown."""
        event: cython.Py_ssize_t = NO_EVENT
        at: cython.Py_ssize_t
        if self.trailer_id_at > 0 and end - begin >= RECORD_HEADER + self.trailer_id_at:
            event = self.event_of(end - self.trailer_id_at)
        if self.events.shape[0] == 0:
            return 0
        at = self.events[max(event, 0), TRAILER_TIME]
        return self.word(end - at) if at > 0 and at + RECORD_HEADER <= end - begin else 0

    # Samples.

    def read_sample(self) -> cython.int:
        """Read the sample from `begin` to `stop` and count it, without the GIL."""
        event: cython.Py_ssize_t = self.sample_event(self.begin, self.stop)
        thread: cython.int
        mode: cython.int = self.short(self.begin + 4) & MODE_MASK
        if event < 0:
            self.unknown_ids += 1
            return DONE
        self.event = event
        self.read_fields(event)
        if self.is_bad:
            self.damaged += 1
            return DONE
        thread = self.samples.locate_thread(self.pid, self.tid)
        if thread < 0:
            return UNKNOWN_THREAD
        if not self.samples.is_wanted():
            self.read_counts(event)  # what counters grew by here is not for the next sample
            self.unwanted += 1
            return DONE
        if self.samples.is_stale(self.samples.process):
            return STALE_MAPS
        if self.samples.is_stale(KERNEL_PROCESS):
            self.samples.process = KERNEL_PROCESS
            return STALE_MAPS
        if self.time != 0:
            self.first_sample = min(self.first_sample, self.time)
            self.last_sample = max(self.last_sample, self.time)
        self.seen += 1
        self.samples.time = self.time
        self.samples.set_context(thread, self.pid, self.tid, self.cpu, self.cgroup, mode)
        self.read_counts(event)
        if self.count_of_counts == 0:
            return DONE
        if self.branch_count > 0 or self.stack_size > 0:
            self.read_stack(mode)
            if self.user_frames == 0 and self.registers > 0:
                self.add_dump(mode)
                return DONE
            self.stack = self.samples.stacks.add()
        else:
            self.find_stack(mode)
        if self.cookie != 0:
            return DEFERRED
        self.count_sample()
        return DONE

    def count_sample(self) -> cython.int:
        """Count the sample with its stack."""
        i: cython.Py_ssize_t
        for i in range(self.count_of_counts):
            self.samples.count(self.counts[i, 0], self.stack, self.counts[i, 1])
        return 0

    def counted(self) -> list[list[int]]:
        """Events and values that the sample counts for."""
        return np.asarray(self.counts)[: self.count_of_counts].tolist()

    def find_stack(self, mode: cython.int) -> cython.int:
        """Find the stack of the sample by the bytes of its callchain, or build it."""
        end: cython.Py_ssize_t = self.chain + 8 * self.chain_size
        row: cython.Py_ssize_t = self.chains.find(self.data, self.chain, end)
        process: cython.ulonglong = self.samples.version(self.samples.process) << 8 | mode
        kernel: cython.ulonglong = self.samples.version(KERNEL_PROCESS)
        if row < 0:
            row = self.chains.count
            self.chains.put(self.data, self.chain, end, row)
        elif self.known[row, 0] == self.ip and self.known[row, 1] == process and self.known[row, 2] == kernel:
            self.stack = cython.cast(cython.Py_ssize_t, self.known[row, 3])
            self.cookie = 0
            return 0
        self.read_stack(mode)
        self.stack = self.samples.stacks.add()
        if row < self.chains.count:
            self.known[row, 0] = self.ip
            self.known[row, 1] = process if self.cookie == 0 else 0
            self.known[row, 2] = kernel
            self.known[row, 3] = self.stack
        return 0

    def read_fields(self, event: cython.Py_ssize_t) -> cython.void:
        """Read what a sample has, as far as it is used; `is_bad` if it is shorter than its fields."""
        has: cython.ulonglong = self.events[event, SAMPLE_TYPE]
        size: cython.ulonglong
        self.at = self.begin + RECORD_HEADER
        self.is_bad = False
        self.ip = self.time = self.cgroup = 0
        self.pid = self.tid = self.cpu = MASK32
        self.value = self.events[event, FIXED_PERIOD]
        self.chain = self.chain_size = self.branches = self.branch_count = 0
        self.registers = self.abi = self.stack_at = self.stack_size = self.read_values = self.read_count = 0
        self.is_full = False
        if has & HAS_IDENTIFIER:
            self.take()
        if has & HAS_IP:
            self.ip = self.take()
        if has & HAS_TID:
            self.pid = self.half(self.at)
            self.tid = self.half(self.at + 4)
            self.take()
        if has & HAS_TIME:
            self.time = self.take()
        if has & HAS_ADDR:
            self.take()
        if has & HAS_ID:
            self.take()
        if has & HAS_STREAM_ID:
            self.take()
        if has & HAS_CPU:
            self.cpu = self.half(self.at)
            self.take()
        if has & HAS_PERIOD:
            self.value = self.take()
        if has & HAS_READ:
            self.skip_values(self.events[event, READ_FORMAT])
        if has & HAS_CALLCHAIN:
            size = self.take()
            self.chain = self.at
            self.skip(size, 8)
            self.chain_size = 0 if self.is_bad else size
        if has & HAS_RAW:
            size = self.half(self.at) + 4
            if self.stop - self.at < 4:
                self.is_bad = True
            else:
                self.skip(size, 1)
        if has & HAS_BRANCH_STACK:
            self.read_branches(event)
        if has & HAS_REGS_USER:
            self.abi = self.take()
            if self.abi != 0:
                self.registers = self.at
                self.skip(self.events[event, USER_REGISTERS], 8)
        if has & HAS_STACK_USER:
            size = self.take()
            if size != 0:
                self.stack_at = self.at
                self.skip(size, 1)
                self.stack_size = min(size, self.take())
                self.is_full = self.stack_size == size
        if has & (HAS_WEIGHT | HAS_WEIGHT_STRUCT):
            self.take()
        if has & HAS_DATA_SRC:
            self.take()
        if has & HAS_TRANSACTION:
            self.take()
        if has & HAS_REGS_INTR:
            if self.take() != 0:
                self.skip(self.events[event, INTR_REGISTERS], 8)
        if has & HAS_PHYS_ADDR:
            self.take()
        if has & HAS_CGROUP:
            self.cgroup = self.take()

    def skip_values(self, form: cython.ulonglong) -> cython.void:
        """Move over the values of counters, of which `read_values` and `read_count` say where and how many."""
        fixed: cython.ulonglong = (1 if form & READ_ENABLED else 0) + (1 if form & READ_RUNNING else 0)
        each: cython.ulonglong = 1 + (1 if form & READ_ID else 0) + (1 if form & READ_LOST else 0)
        self.read_values = self.at
        self.read_count = 1
        if form & READ_GROUP:
            self.read_count = self.take()
            self.skip(fixed, 8)
            self.read_values = self.at
            self.skip(self.read_count, 8 * each)
        else:
            self.skip(fixed + each, 8)

    def read_counts(self, event: cython.Py_ssize_t) -> cython.int:
        """Find what the sample counts for: its event, or each event of a group whose counter grew since it was read
        last (R296, values of groups). Once for each sample, whatever becomes of its stack.

        Where events are inherited (perf 6.12), each thread has counters of its own.
        """
        form: cython.ulonglong = self.events[event, READ_FORMAT]
        each: cython.Py_ssize_t = 2 + (1 if form & READ_LOST else 0)
        id_at: cython.Py_ssize_t = 8
        at: cython.Py_ssize_t = self.read_values
        row: cython.int
        last: cython.Py_ssize_t
        value: cython.ulonglong
        key: cython.ulonglong[::1] = self.values.key
        self.count_of_counts = 0
        if not (self.events[event, SAMPLE_TYPE] & HAS_READ and form & READ_ID):
            self.add_count(event, self.value)
            return 0
        key[1] = self.tid if self.events[event, PER_THREAD] != 0 else 0
        if not form & READ_GROUP:
            id_at += (8 if form & READ_ENABLED else 0) + (8 if form & READ_RUNNING else 0)
        for _i in range(self.read_count):
            row = self.ids.find(self.word(at + id_at))
            if row >= 0:
                value = self.word(at)
                key[0] = self.word(at + id_at)
                last = self.values.add() * self.values.stride + 2
                if value != self.values.words[last]:
                    self.add_count(self.event_of_id[row], (value - self.values.words[last]) & MASK64)
                    self.values.words[last] = value
            at += 8 * each
        return 0

    def add_count(self, event: cython.ulonglong, value: cython.ulonglong) -> cython.void:
        """Have the sample count for one more event."""
        self.counts[self.count_of_counts, 0] = event
        self.counts[self.count_of_counts, 1] = value
        self.count_of_counts += 1

    def read_branches(self, event: cython.Py_ssize_t) -> cython.void:
        """Move over the branches, of which `branches` and `branch_count` say where and how many."""
        form: cython.ulonglong = self.events[event, BRANCH_TYPE]
        count: cython.ulonglong = self.take()
        if form & BRANCH_HW_INDEX:
            self.take()
        self.branches = self.at
        self.skip(count, BRANCH_ENTRY)
        self.branch_count = 0 if self.is_bad else count
        if form & BRANCH_COUNTERS:
            self.skip(count, 8)

    def read_stack(self, mode: cython.int) -> cython.int:
        """Build the stack of the sample: the address, then what the callchain or the branches have beyond it (R297,
        callchains).

        The first entry of the callchain repeats the address and is skipped, unless that is of another context
        (the kernel's part was not recorded). The first entry behind a marker of a context is where that was
        entered: it is exact. All others are return addresses, and lose 1 (R131, one adjustment). Addresses
        below 4,096 are left out; others that no mapping holds are kept.
        """
        has: cython.ulonglong = self.events[self.event, SAMPLE_TYPE]
        has_calls: cython.bint = self.branch_count > 0 and self.events[self.event, BRANCH_TYPE] & BRANCH_CALL_STACK != 0
        current: cython.int = mode
        is_first: cython.bint = True
        repeats: cython.bint = has & HAS_IP != 0
        i: cython.Py_ssize_t
        value: cython.ulonglong
        self.samples.begin_stack()
        self.cookie = 0
        self.user_frames = 0
        if repeats:
            self.samples.frame(mode, self.ip)
        if has_calls and mode == USER_MODE:
            return self.read_calls()
        for i in range(self.chain_size):
            value = self.word(self.chain + 8 * i)
            if value >= FIRST_MARKER:
                if MASK64 - value + 1 == MARK_USER_DEFERRED:
                    if i + 1 < self.chain_size:
                        self.cookie = self.word(self.chain + 8 * i + 8)
                    break
                current = mode_after(MASK64 - value + 1, current)
                is_first = True
                continue
            if repeats:
                repeats = False
                if current == mode or value == self.ip:
                    is_first = False
                    continue
            if value >= LOWEST_CODE:
                self.samples.frame(current, value if is_first else value - 1)
                self.user_frames += current == USER_MODE
                if has_calls and current == USER_MODE:
                    return self.read_calls()
            is_first = False
        return 0

    def read_calls(self) -> cython.int:
        """Append the calls that the processor recorded, the innermost first (R298, call stacks of the processor).

        The kernel's part comes from the callchain, up to the first address of the process; the source of a recorded
        call is inside the call.
        """
        i: cython.Py_ssize_t
        call: cython.ulonglong
        for i in range(self.branch_count):
            call = self.word(self.branches + BRANCH_ENTRY * i)
            if call >= LOWEST_CODE:
                self.samples.frame(USER_MODE, call)
                self.user_frames += 1
        return 0

    def add_dump(self, mode: cython.int) -> cython.int:
        """Count the sample on its own, with its registers and the copy of its stack."""
        pc: cython.Py_ssize_t = self.events[self.event, IP_REGISTER]
        count: cython.Py_ssize_t = self.events[self.event, USER_REGISTERS]
        at: cython.Py_ssize_t = -1
        i: cython.Py_ssize_t
        column: cython.int
        if pc > 0 and mode != USER_MODE:
            self.samples.frame(USER_MODE, self.word(self.registers + 8 * (pc - 1)))
        self.stack = self.samples.stacks.add()
        if pc > 0:
            at = self.samples.add_dump()
        if at < 0:
            self.without_callers += 1
            return self.count_sample()
        for i in range(self.count_of_counts):
            self.samples.append_to_dump(at, self.counts[i, 0], self.stack, self.counts[i, 1])
        self.samples.dumps[at + DUMP_OFFSET] = self.stack_at
        self.samples.dumps[at + DUMP_SIZE] = self.stack_size
        self.samples.dumps[at + DUMP_FLAGS] = (DUMP_32BIT if self.abi == ABI_32 else 0) | (
            DUMP_FULL if self.is_full else 0
        )
        for i in range(min(count, 64)):
            column = self.register_columns[self.event, i]
            if column >= 0:
                self.samples.dumps[at + DUMP_WORDS + column] = self.word(self.registers + 8 * i)
        return 0

    def finish_deferred(self, chain: cython.Py_ssize_t, count: cython.Py_ssize_t) -> int:
        """The stack that was begun with the user part of a callchain, which the caller checked (R299, deferred
        callchains).

        Mappings are those at the time of the record. Of a sample in user code the record repeats the address.
        """
        i: cython.Py_ssize_t
        value: cython.ulonglong
        is_first: cython.bint = True
        for i in range(count):
            value = self.word(chain + 8 * i)
            if is_first and self.samples.is_built_of(value):  # a sample in user code: it is the address
                is_first = False
            elif LOWEST_CODE <= value < FIRST_MARKER:
                self.samples.frame(USER_MODE, value if is_first else value - 1)
                is_first = False
        return self.samples.stacks.add()


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mode_after(marker: cython.ulonglong, mode: cython.int) -> cython.int:
    """The mode of the addresses behind a marker of the context."""
    if marker == MARK_USER:
        return USER_MODE
    if marker == MARK_KERNEL:
        return KERNEL_MODE
    if marker == MARK_HYPERVISOR:
        return HYPERVISOR_MODE
    if marker == MARK_GUEST_KERNEL:
        return GUEST_KERNEL_MODE
    if marker in (MARK_GUEST, MARK_GUEST_USER):
        return GUEST_USER_MODE
    return mode
