# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type, no-untyped-def, index, assignment", no-warn-unused-ignores
"""The samples of a recording, each distinct one once: which process, which mapping, which stack, what sums."""

from typing import Any

import cython
import numpy as np

from symbolize.core.arrays import UInt64, extended

if not cython.compiled:
    from symbolize.core.interning import InternTable, Lists, Tuples
    from symbolize.formats.perf.numbers import *

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
MAX_INT64 = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)
KERNEL_HALF = cython.declare(cython.ulonglong, 0x8000000000000000)

CACHE_BITS = cython.declare(cython.int, 16)
"""Two to this power frames are found again without a search."""
MAX_POOL = cython.declare(cython.Py_ssize_t, 1 << 21)
"""Maps in the pool; when it is full all processes enter theirs anew."""
MAX_SPACE_MAPS = cython.declare(cython.Py_ssize_t, 1 << 26)
"""Maps in all address spaces of stack dumps."""
MAX_TIMES = cython.declare(cython.Py_ssize_t, 1 << 24)
"""Samples whose times are kept."""


@cython.cclass
class PerfSamples:
    """The tables. `labels` says which labels are wanted, `mixer` is random, so that no file can choose what collides.

    Threads and processes are rows, which the caller makes. The maps of a process are a run of the pool, ascending,
    which is entered before the first sample after they changed.
    """

    def __init__(self, labels: cython.ulonglong, mixer: cython.ulonglong) -> None:
        self.labels = labels
        self.mixer = mixer | 1
        self.threads = InternTable(mixer)
        self.thread_process = memoryview(np.zeros(64, np.int32))
        self.thread_comm = memoryview(np.zeros(64, np.int32))
        self.processes = memoryview(np.zeros((64, PROCESS_WORDS), np.int64))
        self.pool_used = 0
        self.versions = 0
        self.pool_start = memoryview(np.zeros(1024, np.uint64))
        self.pool_limit = memoryview(np.zeros(1024, np.uint64))
        self.pool_mapping = memoryview(np.zeros(1024, np.int32))
        self.cache = memoryview(np.zeros(2 << CACHE_BITS, np.uint64))
        self.frames = Tuples(2, mixer)
        self.stacks = Lists(mixer)
        self.spaces = Lists(mixer)
        self.contexts = Tuples(CONTEXT_WORDS, mixer)
        self.rows = Tuples(3, mixer, 2)
        self.cgroups = InternTable(mixer)
        self.dumps = memoryview(np.zeros(0, np.uint64))
        self.dump_count = 0
        self.dump_stride = DUMP_WORDS
        self.times = memoryview(np.zeros(0, np.uint64))
        self.time_count = self.untimed = 0
        self.time = 0
        self.saturated = 0
        self.process = 0
        self.context = 0

    # What the caller enters.

    def add_thread(self, pid: cython.ulonglong, tid: cython.ulonglong) -> int:
        """The row of a thread, which is new."""
        row: cython.int = cython.cast(cython.int, self.threads.count)
        if row >= self.thread_comm.shape[0]:
            self.thread_comm = extended(self.thread_comm, row + 1)
            self.thread_process = extended(self.thread_process, row + 1)
        self.threads.put(thread_key(pid, tid), row)
        return row

    def find_thread(self, pid: cython.ulonglong, tid: cython.ulonglong) -> int:
        """The row of a thread, or -1."""
        return self.threads.find(thread_key(pid, tid))

    def set_thread(self, row: cython.Py_ssize_t, process: cython.int, comm: cython.int) -> None:
        """Say which process a thread is of, and what it is called."""
        self.thread_process[row] = process
        self.thread_comm[row] = comm

    def comm_of(self, row: cython.Py_ssize_t) -> int:
        """What a thread is called."""
        return self.thread_comm[row]

    def set_process(self, row: cython.Py_ssize_t, comm: cython.longlong, wanted: cython.bint) -> None:
        """Enter or change a process."""
        if row >= self.processes.shape[0]:
            old = np.asarray(self.processes)
            new = np.zeros((2 * row, old.shape[1]), np.int64)
            new[: len(old)] = old
            self.processes = memoryview(new)
        if self.processes[row, VERSION] == 0:
            self.versions += 1
            self.processes[row, VERSION] = self.versions
            self.processes[row, SPACE] = NO_SPACE
        self.processes[row, COMM_OF] = comm
        self.processes[row, WANTED] = wanted

    def keep_times(self, row: cython.Py_ssize_t) -> None:
        """Keep the times of the samples of a process from now on."""
        self.processes[row, TIMED] = 1

    def keeps_times(self, row: cython.Py_ssize_t) -> bool:
        """Whether the times of the samples of a process are kept."""
        return self.processes[row, TIMED] != 0

    def set_stale(self, row: cython.Py_ssize_t) -> None:
        """The maps of a process changed."""
        self.processes[row, COUNT] = STALE

    def fits(self, count: int) -> bool:
        """Whether so many maps can be entered into the pool."""
        return self.pool_used + count <= MAX_POOL

    def empty_pool(self, processes: cython.Py_ssize_t) -> None:
        """Take all maps out of the pool."""
        row: cython.Py_ssize_t
        self.pool_used = 0
        for row in range(processes):
            self.processes[row, COUNT] = STALE

    def set_maps(self, row: cython.Py_ssize_t, start: Any, limit: Any, mapping: Any) -> None:
        """Enter the maps of a process: disjoint and ascending arrays of start, limit, row of the mapping."""
        first: cython.Py_ssize_t = self.pool_used
        end: cython.Py_ssize_t = first + len(start)
        if end > self.pool_start.shape[0]:
            self.pool_start = extended(self.pool_start, end)
            self.pool_limit = extended(self.pool_limit, end)
            self.pool_mapping = extended(self.pool_mapping, end)
        np.asarray(self.pool_start)[first:end] = start
        np.asarray(self.pool_limit)[first:end] = limit
        np.asarray(self.pool_mapping)[first:end] = mapping
        self.pool_used = end
        self.versions += 1
        self.processes[row, FIRST] = first
        self.processes[row, COUNT] = end - first
        self.processes[row, VERSION] = self.versions
        self.processes[row, SPACE] = NO_SPACE

    def share_maps(self, row: cython.Py_ssize_t, other: cython.Py_ssize_t) -> bool:
        """Let a process have the maps of another that has the same; False if those are not in the pool."""
        if self.processes[other, COUNT] < 0:
            return False
        for word in (FIRST, COUNT, VERSION, SPACE):
            self.processes[row, word] = self.processes[other, word]
        return True

    def set_registers(self, count: int) -> None:
        """Stack dumps have so many registers; once, before the first of them."""
        self.dump_stride = DUMP_WORDS + count

    # The tables, for the caller.

    def dump_array(self) -> UInt64:
        """The stack dumps: uint64[n, DUMP_WORDS + registers]."""
        used = self.dump_count * self.dump_stride
        return np.asarray(self.dumps)[:used].reshape(self.dump_count, self.dump_stride)

    def time_array(self) -> UInt64:
        """The samples whose times are kept: uint64[n, TIMED_WORDS]."""
        return np.asarray(self.times)[: self.time_count * TIMED_WORDS].reshape(self.time_count, TIMED_WORDS)

    # What a scan asks for.

    def locate_thread(self, pid: cython.ulonglong, tid: cython.ulonglong) -> cython.int:
        """The row of a thread, whose process becomes the one that `frame` asks for, or -1."""
        row: cython.int = self.threads.find(thread_key(pid, tid))
        if row >= 0:
            self.process = self.thread_process[row]
        return row

    def is_stale(self, process: cython.Py_ssize_t) -> cython.bint:
        """Whether the maps of a process have to be entered first."""
        return self.processes[process, COUNT] < 0

    def version(self, process: cython.Py_ssize_t) -> cython.ulonglong:
        """The version of the maps of a process, which no others have."""
        return self.processes[process, VERSION]

    def is_wanted(self) -> cython.bint:
        """Whether the samples of the process are wanted."""
        return self.processes[self.process, WANTED] != 0

    def begin_stack(self) -> cython.void:
        """Begin a stack, which `frame` extends."""
        self.stacks.size = 0

    def append_frames(self, stack: cython.Py_ssize_t) -> cython.int:
        """Append the frames of another stack."""
        i: cython.Py_ssize_t
        for i in range(self.stacks.offsets[stack], self.stacks.offsets[stack + 1]):
            self.stacks.append(self.stacks.items[i])
        return 0

    def is_built_of(self, address: cython.ulonglong) -> cython.bint:
        """Whether the stack that is built has one frame, at this address."""
        frame: cython.Py_ssize_t
        if self.stacks.size != 1:
            return False
        frame = self.stacks.items[self.stacks.used]
        return self.frames.words[frame * self.frames.stride] == address

    @cython.boundscheck(False)
    def frame(self, mode: cython.int, address: cython.ulonglong) -> cython.int:
        """Append a frame: an address in the mode of the processor that it belongs to.

        Bounds need no check: `slot` is below the size of the cache, and `process` is a row.
        """
        process: cython.Py_ssize_t = self.process
        version: cython.ulonglong
        slot: cython.Py_ssize_t
        row: cython.int
        if mode == KERNEL_MODE:
            process = KERNEL_PROCESS
        elif mode != USER_MODE:
            if mode in (GUEST_KERNEL_MODE, GUEST_USER_MODE):
                return self.stacks.append(self.frame_row(address, GUEST_MAPPING))
            if mode == HYPERVISOR_MODE:
                return self.stacks.append(self.frame_row(address, HYPERVISOR_MAPPING))
            if address >= KERNEL_HALF:
                process = KERNEL_PROCESS
        version = self.processes[process, VERSION]
        slot = (((address ^ (version << 40)) * self.mixer) & MASK64) >> (64 - CACHE_BITS) << 1
        if self.cache[slot] == address and self.cache[slot + 1] >> 32 == version:
            row = cython.cast(cython.int, self.cache[slot + 1] & MASK32)
        else:
            row = self.frame_row(address, self.mapping_at(process, address))
            self.cache[slot] = address
            self.cache[slot + 1] = version << 32 | row
        return self.stacks.append(row)

    def frame_row(self, address: cython.ulonglong, mapping: cython.int) -> cython.int:
        """The row of a frame."""
        self.frames.key[0] = address
        self.frames.key[1] = mapping
        return cython.cast(cython.int, self.frames.add())

    def mapping_at(self, process: cython.Py_ssize_t, address: cython.ulonglong) -> cython.int:
        """The mapping of a process, of row 0 the kernel, that holds an address, or what stands for none.

        Stand-ins are `[unknown]`, for the kernel `[kernel.kallsyms]`, for guests and hypervisors `[guest]` and
        `[hypervisor]`: all addresses, so that no mapping of another process takes them (R302, stand-ins for no
        mapping).
        """
        low: cython.Py_ssize_t = self.processes[process, FIRST]
        high: cython.Py_ssize_t = low + self.processes[process, COUNT]
        first: cython.Py_ssize_t = low
        middle: cython.Py_ssize_t
        while low < high:
            middle = (low + high) >> 1
            if self.pool_start[middle] <= address:
                low = middle + 1
            else:
                high = middle
        if low > first and address < self.pool_limit[low - 1]:
            return self.pool_mapping[low - 1]
        return KERNEL_MAPPING if process == KERNEL_PROCESS else UNKNOWN_MAPPING

    def set_context(
        self,
        thread: cython.Py_ssize_t,
        pid: cython.ulonglong,
        tid: cython.ulonglong,
        cpu: cython.ulonglong,
        cgroup: cython.ulonglong,
        mode: cython.ulonglong,
    ) -> cython.int:
        """Find the labels of the samples that are counted next. `pid`, `tid` and `cpu` are MASK32 where unknown."""
        key: cython.ulonglong[::1] = self.contexts.key
        row: cython.int
        labels: cython.ulonglong = self.labels
        key[CONTEXT_THREAD] = (pid if labels & LABEL_PID else MASK32) << 32
        key[CONTEXT_THREAD] |= tid if labels & LABEL_TID else MASK32
        key[CONTEXT_COMMS] = 0
        if labels & LABEL_COMM:
            key[CONTEXT_COMMS] = cython.cast(cython.ulonglong, self.processes[self.process, COMM_OF]) << 32
        if labels & LABEL_THREAD_COMM:
            key[CONTEXT_COMMS] |= cython.cast(cython.ulonglong, self.thread_comm[thread])
        key[CONTEXT_CPU] = (cpu if labels & LABEL_CPU else MASK32) << 32
        if labels & LABEL_CGROUP:
            row = self.cgroups.find(cgroup)
            key[CONTEXT_CPU] |= cython.cast(cython.ulonglong, row + 1) << 8
        if labels & LABEL_MODE or mode >= GUEST_KERNEL_MODE:
            key[CONTEXT_CPU] |= mode
        key[CONTEXT_TIME] = self.time if labels & LABEL_TIME else 0
        self.context = self.contexts.add()
        return 0

    def count(self, event: cython.ulonglong, stack: cython.Py_ssize_t, value: cython.ulonglong) -> cython.int:
        """Add a sample of the context."""
        key: cython.ulonglong[::1] = self.rows.key
        key[ROW_EVENT] = event
        key[ROW_CONTEXT] = self.context
        key[ROW_STACK] = stack
        return self.add_value(self.rows.add(), value)

    def add_value(self, row: cython.Py_ssize_t, value: cython.ulonglong) -> cython.int:
        """Add one sample, taken at `time`, to a row; the sum stops at the largest number of 63 bits."""
        at: cython.Py_ssize_t = row * self.rows.stride
        self.rows.words[at + ROW_COUNT] += 1
        if value > MAX_INT64 - self.rows.words[at + ROW_VALUE]:
            self.saturated += 1
            value = MAX_INT64 - self.rows.words[at + ROW_VALUE]
        self.rows.words[at + ROW_VALUE] += value
        if self.time != 0 and self.processes[self.process, TIMED] != 0:
            if self.time_count == MAX_TIMES:
                self.untimed += 1
                return 0
            at = self.time_count * TIMED_WORDS
            if at + TIMED_WORDS > self.times.shape[0]:
                self.extend_times()
            self.times[at + TIMED_ROW] = row
            self.times[at + TIMED_AT] = self.time
            self.times[at + TIMED_VALUE] = value
            self.time_count += 1
        return 0

    def extend_times(self) -> cython.int:
        """Grow the table of times."""
        self.times = extended(self.times, (self.time_count + 1) * TIMED_WORDS)
        return 0

    def add_dump(self) -> cython.Py_ssize_t:
        """Add a stack dump, whose rows `append_to_dump` adds: where its words begin, or -1 if there are too many."""
        at: cython.Py_ssize_t = self.dump_count * self.dump_stride
        space: cython.Py_ssize_t = self.space()
        if space < 0:
            return -1
        if at + self.dump_stride > self.dumps.shape[0]:
            self.extend_dumps(at + self.dump_stride)
        self.dumps[at + DUMP_ROW] = self.rows.count
        self.dumps[at + DUMP_ROWS] = 0
        self.dumps[at + DUMP_SPACE] = space
        self.dump_count += 1
        return at

    def append_to_dump(
        self, at: cython.Py_ssize_t, event: cython.ulonglong, stack: cython.Py_ssize_t, value: cython.ulonglong
    ) -> cython.int:
        """Add a row of its own for an event that the sample of the last dump, whose words begin there, counts for."""
        key: cython.ulonglong[::1] = self.rows.key
        key[ROW_EVENT] = event
        key[ROW_CONTEXT] = self.context
        key[ROW_STACK] = stack
        self.dumps[at + DUMP_ROWS] += 1
        return self.add_value(self.rows.append(), value)

    def extend_dumps(self, size: cython.Py_ssize_t) -> cython.int:
        """Grow the table of dumps."""
        self.dumps = extended(self.dumps, size)
        return 0

    def space(self) -> cython.Py_ssize_t:
        """The address space of the process as it is now, or -1 if there are too many."""
        process: cython.Py_ssize_t = self.process
        i: cython.Py_ssize_t
        first: cython.Py_ssize_t = self.processes[process, FIRST]
        if self.processes[process, SPACE] == NO_SPACE:
            if self.spaces.used + self.processes[process, COUNT] > MAX_SPACE_MAPS:
                return -1
            self.spaces.size = 0
            for i in range(first, first + self.processes[process, COUNT]):
                self.spaces.append(self.pool_mapping[i])
            self.processes[process, SPACE] = self.spaces.add()
        return self.processes[process, SPACE]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def thread_key(pid: cython.ulonglong, tid: cython.ulonglong) -> cython.ulonglong:
    """The key of a thread in the table of them, which is not 0."""
    key: cython.ulonglong = ((pid << 32 | (tid & MASK32)) + 1) & MASK64
    return key if key != 0 else MASK64
