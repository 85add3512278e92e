# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""The samples of CPU profilers: each distinct one once, with the sums of its values."""

import cython
import numpy as np

from symbolize.core.arrays import Int64, extended

if not cython.compiled:
    from symbolize.core.interning import Tuples
    from symbolize.formats.perfetto.constants import EMPTY, MAX_INT64
    from symbolize.formats.perfetto.packet_reader import PacketReader


MAX_CONTEXTS = 1 << 19
"""Distinct combinations of all that a sample has beside its callstack."""
MAX_SAMPLES = 1 << 22
"""Distinct samples, after those that are equal were added up."""
MAX_VALUES = 1 << 24
"""Values of all those samples."""


@cython.cclass
class SampleContext:
    """All that a sample has beside its callstack and values. `pid` and `cpu`, which have 32 bits, are one more, 0
    unknown (R270, numbers of tasks)."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> cython.void:
        """Forget all of it."""
        self.session = -1
        self.pid = self.tid = self.cpu = self.mode = self.error = 0
        self.has_tid = False


@cython.cclass
class TraceSamples:
    """A sample is a row of `contexts` and one of the callstacks of the trace. `context`, and `weights` for the
    followers, are those of the one that is counted next."""

    def __init__(self, reader: PacketReader) -> None:
        self.reader = reader
        self.context = SampleContext()
        self.contexts = Tuples(8, reader.mixer)
        self.table = Tuples(2, reader.mixer)
        self.stride = 2
        self.values = memoryview(np.zeros(0, np.int64))
        self.times = memoryview(np.zeros(0, np.int64))
        self.weights = memoryview(np.zeros(64, np.uint64))
        self.max_contexts, self.max_samples, self.max_values = MAX_CONTEXTS, MAX_SAMPLES, MAX_VALUES
        self.rejected = self.empty = self.counter_only = self.saturated = 0
        # Pids that several processes had, which the trace enters.
        self.reused = set()

    def reserve(self, followers: cython.Py_ssize_t):
        """Grow `weights` for so many followers."""
        if followers > self.weights.shape[0]:
            self.weights = extended(self.weights, followers)

    def reject(self, stack: cython.int):
        """Count a sample that is left out because of what `InternedState.stack` gave for its callstack."""
        if stack == EMPTY:
            self.empty += 1
        else:
            self.rejected += 1

    def count(self, stack: cython.int, weight: cython.ulonglong, followers: cython.Py_ssize_t):
        """Add one sample with `context`."""
        reader: PacketReader = self.reader
        context: SampleContext = self.context
        session: cython.Py_ssize_t = context.session
        key: cython.ulonglong[::1] = self.contexts.key
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        if (
            self.table.count >= self.max_samples
            or self.contexts.count >= self.max_contexts
            or self.table.count * self.stride >= self.max_values
        ):
            reader.too_many += 1
            return
        key[0] = session
        key[1] = reader.machine
        if self.reused and context.pid > 0 and context.pid - 1 in self.reused:
            time = reader.timestamp if reader.has_time else 0
            key[1] = reader.trace.instance(reader.machine, context.pid - 1, time, reader.clock)
        key[2] = context.pid
        key[3] = context.tid
        key[4] = context.cpu
        key[5] = context.mode
        key[6] = context.error
        key[7] = context.has_tid
        row = self.contexts.add()
        self.table.key[0] = row
        self.table.key[1] = stack
        row = self.table.add() * self.stride
        if row + self.stride > self.values.shape[0]:
            self.values = extended(self.values, row + self.stride)
        self.values[row] += 1
        self.add_value(row + 1, weight)
        for i in range(min(followers, self.stride - 2)):
            self.add_value(row + 2 + i, self.weights[i])
        if reader.has_time and reader.timestamp <= MAX_INT64:
            if 3 * session + 3 > self.times.shape[0]:
                self.times = extended(self.times, 3 * session + 3)
            if self.times[3 * session] == 0 or reader.timestamp < self.times[3 * session]:
                self.times[3 * session] = reader.timestamp
            if reader.timestamp > self.times[3 * session + 1]:
                self.times[3 * session + 1] = reader.timestamp
            self.times[3 * session + 2] = reader.clock & MAX_INT64

    def add_value(self, at: cython.Py_ssize_t, value: cython.ulonglong):
        """Add to a value, which stops at the largest one."""
        if value > MAX_INT64 - self.values[at]:
            self.saturated += 1
            self.values[at] = MAX_INT64
        else:
            self.values[at] += value

    def widen(self, followers: cython.Py_ssize_t) -> None:
        """Give each sample so many values of followers, as long as the values stay within their limit."""
        stride: cython.Py_ssize_t = self.stride
        if followers + 2 <= stride:
            return
        if self.table.count * (followers + 2) > self.max_values:
            self.reader.too_many += 1
            return
        old = np.asarray(self.values)[: self.table.count * stride].reshape(-1, stride)
        new = np.zeros((len(old), followers + 2), np.int64)
        new[:, :stride] = old
        self.values = memoryview(new.reshape(-1))
        self.stride = followers + 2

    def array(self) -> Int64:
        """Count, weight and weights of followers of all samples: int64[n, stride]."""
        return np.asarray(self.values)[: self.table.count * self.stride].reshape(-1, self.stride)

    def session_times(self, session: int) -> tuple[int, int, int]:
        """First and last timestamp of a session's samples and their clock; 0 where there are none."""
        if 3 * session + 3 > self.times.shape[0]:
            return 0, 0, 0
        return self.times[3 * session], self.times[3 * session + 1], self.times[3 * session + 2]
