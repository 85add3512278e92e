# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""The samples of CPU profilers: of traced_perf (PerfSample), of Chromium (StreamingProfilePacket) and of any profiler
(StackSample); each distinct one once, with the sums of its values.

A PerfSample is a record of losses, else an event of the profiler, else a sample that was skipped, else a sample; one
without a callstack counts events only (R225, kinds of PerfSample).
"""

import cython
import numpy as np

from symbolize.core.arrays import Int64, extended

if not cython.compiled:
    from symbolize.core.interning import Tuples
    from symbolize.formats.perfetto.constants import EMPTY, MASK32, MAX_DEPTH, MAX_FOLLOWERS, MAX_INT64, MAX_KEPT
    from symbolize.formats.perfetto.packet_reader import PacketReader
    from symbolize.formats.perfetto.sequences import InternedState, Sequence
    from symbolize.proto.perfetto_trace_tags import *


MAX_CONTEXTS = 1 << 19
"""Distinct combinations of all that a sample has beside its callstack."""
MAX_SAMPLES = 1 << 22
"""Distinct samples, after those that are equal were added up."""
MAX_VALUES = 1 << 24
"""Values of all those samples."""

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

MAX_CPUS = cython.declare(cython.Py_ssize_t, 1 << 16)
MAX_TIMES = cython.declare(cython.Py_ssize_t, 1 << 20)
"""Callstacks, or times, of one StreamingProfilePacket."""
MAX_TIME = cython.declare(cython.ulonglong, 1 << 52)
"""Microseconds: a century is more than any trace has; without the limit sums could leave 64 bits."""

MAX_EVENT = cython.declare(cython.Py_ssize_t, 1 << 12)
"""Bytes of a CounterDescriptor in a sample; of a longer one the beginning is read."""
MAX_ERROR = cython.declare(cython.Py_ssize_t, 256)
"""Bytes of the text of an unwinding error."""
TEXT_ERROR = 1 << 32
"""Added to the row of the string where an error is a text instead of a number."""


@cython.cclass
class SampleContext:
    """All that a sample has beside its callstack and values. `pid` and `cpu`, which have 32 bits, are one more, 0
    unknown (R270, numbers of tasks); `tid` is as it is, if the sample `has_tid`."""

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


@cython.cclass
class CpuReader:
    """Reads packets and counts what is a sample; the other counts are of what is none."""

    def __init__(self, reader: PacketReader, samples: TraceSamples) -> None:
        self.reader = reader
        self.samples = samples
        self.deltas = memoryview(np.zeros(64, np.uint64))
        self.records_lost = 0
        self.guardrails = self.bad_streams = 0
        self.skipped = [0] * (PROFILER_SKIP_NOT_IN_SCOPE + 1)

    def perf_sample(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read a PerfSample (R225, kinds of PerfSample; R226, running counters)."""
        reader: PacketReader = self.reader
        samples: TraceSamples = self.samples
        context: SampleContext = samples.context
        tag: cython.ulonglong
        iid: cython.ulonglong = 0
        total: cython.ulonglong = 0
        lost: cython.ulonglong = 0
        reason: cython.ulonglong = 0
        weight: cython.ulonglong
        timed: cython.bint = False
        skipped: cython.bint = False
        event: cython.bint = False
        stack: cython.int
        context.clear()
        reader.pos = begin
        reader.end = end
        reader.numbers_count = 0
        while reader.field():
            tag = reader.tag
            if tag == PERF_SAMPLE_CPU:
                context.cpu = (reader.value & MASK32) + 1
            elif tag == PERF_SAMPLE_PID:
                context.pid = (reader.value & MASK32) + 1
            elif tag == PERF_SAMPLE_TID:
                context.tid = reader.value & MASK32
                context.has_tid = True
            elif tag == PERF_SAMPLE_CALLSTACK_IID:
                iid = reader.value
            elif tag == PERF_SAMPLE_CPU_MODE:
                context.mode = reader.value & MASK32
            elif tag == PERF_SAMPLE_TIMEBASE_COUNT:
                total = reader.value
                timed = True
            elif tag in (PERF_SAMPLE_FOLLOWER_COUNTS, PERF_SAMPLE_FOLLOWER_COUNTS_PACKED):
                reader.take_numbers(MAX_FOLLOWERS)
            elif tag == PERF_SAMPLE_UNWIND_ERROR:
                context.error = reader.value & MASK32
            elif tag == PERF_SAMPLE_KERNEL_RECORDS_LOST:
                lost = reader.value
            elif tag == PERF_SAMPLE_SAMPLE_SKIPPED_REASON:
                reason = reader.value
                skipped = True
            elif tag == PERF_SAMPLE_PRODUCER_EVENT:
                event = True
        if reader.bad:
            return
        if lost > 0:
            self.records_lost += lost
            return
        if event:
            self.guardrails += 1
            return
        if seq.session < 0:
            reader.trace.sessions.use(seq, b"")
        weight = self.weigh(seq, context.cpu, timed, total)
        if skipped:
            self.skipped[reason if reason < len(self.skipped) else 0] += 1
            return
        if iid == 0:
            samples.counter_only += 1
            return
        stack = seq.interned.stack(iid)
        if stack < 0:
            samples.reject(stack)
            return
        if seq.session < 0:
            samples.rejected += 1
            return
        if reader.clock == 0:
            reader.clock = seq.clock
        context.session = seq.session
        samples.count(stack, weight, seq.followers)

    def weigh(
        self, seq: Sequence, cpu: cython.ulonglong, timed: cython.bint, total: cython.ulonglong
    ) -> cython.ulonglong:
        """What a sample counts for: how far the counter of its CPU went, those of the followers in `weights`. `cpu` is
        one more, 0 unknown.

        A counter that comes first, went back, or went on while packets were lost, counts for the period; in a
        sequence that is there from its beginning, it began at 0 where there is no period.
        """
        reader: PacketReader = self.reader
        samples: TraceSamples = self.samples
        width: cython.Py_ssize_t = seq.followers + 1
        slot: cython.int = seq.cpus.find(cpu)
        at: cython.Py_ssize_t
        i: cython.Py_ssize_t
        known: cython.bint
        weight: cython.ulonglong = seq.nominal
        samples.reserve(width)
        if slot < 0:
            if seq.cpus.count >= MAX_CPUS or reader.counters_left < width:
                reader.too_many += 1
                for i in range(width - 1):
                    samples.weights[i] = 0
                return weight
            reader.counters_left -= width
            seq.counter_words += width
            slot = seq.cpus.count
            seq.cpus.put(cpu, slot)
        at = slot * width
        if at + width > seq.counters.shape[0]:
            seq.counters = extended(seq.counters, at + width)
        if slot >= seq.counted.shape[0]:
            seq.counted = extended(seq.counted, slot + 1)
        known = seq.counted[slot] == seq.losses
        if timed:
            if known and total >= seq.counters[at]:
                weight = total - seq.counters[at]
            elif weight == 0 and seq.began and not known:
                weight = total
            seq.counters[at] = total
        for i in range(width - 1):
            samples.weights[i] = 0
            if i < reader.numbers_count:
                if known and reader.numbers[i] >= seq.counters[at + 1 + i]:
                    samples.weights[i] = reader.numbers[i] - seq.counters[at + 1 + i]
                elif seq.began and not known:
                    samples.weights[i] = reader.numbers[i]
                seq.counters[at + 1 + i] = reader.numbers[i]
        if timed or reader.numbers_count > 0:
            seq.counted[slot] = seq.losses
        return weight

    def streaming(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read a StreamingProfilePacket: one delta of time for each callstack (R228, streaming profiles).

        A time is the sum of all deltas since the reference time of the thread, which a clear or loss removes. Deltas
        left over move the time on; a callstack without one, and a time below 0, end the packet.
        """
        reader: PacketReader = self.reader
        i: cython.Py_ssize_t
        tag: cython.ulonglong
        count: cython.Py_ssize_t
        deltas: cython.Py_ssize_t
        value: cython.ulonglong
        delta: cython.longlong
        time: cython.longlong
        weight: cython.ulonglong
        stack: cython.int
        reader.pos = begin
        reader.end = end
        reader.numbers_count = 0
        while reader.field():
            tag = reader.tag
            if tag in (STREAMING_PROFILE_PACKET_TIMESTAMP_DELTA_US, STREAMING_PROFILE_PACKET_TIMESTAMP_DELTA_US_PACKED):
                reader.take_numbers(MAX_TIMES)
        deltas = min(reader.numbers_count, MAX_TIMES)
        if self.deltas.shape[0] < deltas:
            self.deltas = extended(self.deltas, deltas)
        for i in range(deltas):
            self.deltas[i] = reader.numbers[i]
        reader.numbers_count = 0
        reader.pos = begin
        while reader.field():
            if reader.tag in (STREAMING_PROFILE_PACKET_CALLSTACK_IID, STREAMING_PROFILE_PACKET_CALLSTACK_IID_PACKED):
                reader.take_numbers(MAX_TIMES)
        if reader.bad:
            return
        count = reader.numbers_count
        if count > MAX_TIMES:
            reader.too_many += 1
            count = MAX_TIMES
        if not seq.has_time:
            self.bad_streams += count
            return
        context: SampleContext = self.samples.context
        context.clear()
        context.session = reader.trace.sessions.of_stream()
        context.pid, context.tid, context.has_tid = seq.pid, seq.tid, seq.has_tid
        time = seq.time_us
        for i in range(max(deltas, count)):
            if i >= deltas:
                self.bad_streams += count - i
                break
            value = self.deltas[i]
            if value <= MAX_INT64:
                if value > MAX_TIME or time > cython.cast(cython.longlong, MAX_TIME):
                    self.bad_streams += max(count - i, 0)
                    break
                delta = cython.cast(cython.longlong, value)
            else:
                if ((~value) & MASK64) > MAX_TIME:
                    self.bad_streams += max(count - i, 0)
                    break
                delta = -1 - cython.cast(cython.longlong, (~value) & MASK64)
            time += delta
            if time < 0:
                self.bad_streams += max(count - i, 0)
                break
            if i >= count:
                continue
            stack = seq.interned.stack(reader.numbers[i])
            if stack < 0 or context.session < 0:
                self.samples.reject(stack)
                continue
            reader.timestamp = cython.cast(cython.ulonglong, time) * 1000
            reader.has_time = True
            reader.clock = BUILTIN_CLOCK_MONOTONIC
            weight = 1000 * cython.cast(cython.ulonglong, delta) if delta > 0 else 0
            self.samples.count(stack, weight, 0)
        seq.time_us = time if time >= 0 else 0


@cython.cclass
class StackReader:
    """Reads packets and counts their samples."""

    def __init__(self, reader: PacketReader, samples: TraceSamples) -> None:
        self.reader = reader
        self.samples = samples
        self.weights = memoryview(np.zeros(MAX_FOLLOWERS, np.uint64))

    def stack_sample(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read a StackSample: what it has by id, in itself, or not at all and leaves to the defaults (R229, stack
        samples).

        Its modes have other numbers than those of a PerfSample; its unwinding error is a text.
        """
        reader: PacketReader = self.reader
        samples: TraceSamples = self.samples
        state: InternedState = seq.interned
        weight: cython.ulonglong
        i: cython.Py_ssize_t
        count: cython.Py_ssize_t
        stack: cython.int
        context: SampleContext = samples.context
        self.read(state, begin, end)
        if reader.bad:
            return
        if self.task != 0:
            if not state.find_context(state.tasks, self.task):
                samples.rejected += 1
                return
            context.pid, context.tid = state.context_first, state.context_second
        if self.execution != 0:
            if not state.find_context(state.executions, self.execution):
                samples.rejected += 1
                return
            context.cpu, context.mode = state.context_first, state.context_second
        if self.inline_begin < 0 and self.iid == 0:
            samples.counter_only += 1
            return
        session = self.session(seq)
        if session[0] < 0:
            samples.rejected += 1
            return
        if self.inline_begin < 0:
            stack = state.stack(self.iid)
        else:
            stack = self.inline_stack(self.inline_begin, self.inline_end)
        if stack < 0:
            samples.reject(stack)
            return
        count = session[1]
        multipliers = session[2]
        samples.reserve(count)
        for i in range(count):
            samples.weights[i] = self.weights[i] if i < self.given else 0
        weight = self.weight
        if multipliers:
            weight = self.scaled(weight, multipliers[0])
            for i in range(count):
                samples.weights[i] = self.scaled(samples.weights[i], multipliers[1 + i])
        if reader.clock == 0:
            reader.clock = seq.clock
        context.session = session[0]
        context.has_tid = context.tid > 0
        if context.has_tid:
            context.tid -= 1
        samples.count(stack, weight, count)

    def read(self, state: InternedState, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read the fields of a StackSample into attributes, and into the context of the next sample."""
        reader: PacketReader = self.reader
        context: SampleContext = self.samples.context
        tag: cython.ulonglong
        outer: cython.Py_ssize_t
        i: cython.Py_ssize_t
        taken: cython.Py_ssize_t
        self.task = self.execution = self.iid = self.primary = 0
        context.clear()
        self.weight = 1
        self.given = 0
        self.inline_begin = -1
        self.described = b""
        self.followed = []
        reader.pos = begin
        reader.end = end
        while reader.field():
            tag = reader.tag
            if tag == STACK_SAMPLE_TASK_CONTEXT:
                outer = reader.reenter()
                state.parse_context(False)
                reader.go_on(outer)
                context.pid, context.tid = state.context_first, state.context_second
            elif tag == STACK_SAMPLE_EXECUTION_CONTEXT:
                outer = reader.reenter()
                state.parse_context(True)
                reader.go_on(outer)
                context.cpu, context.mode = state.context_first, state.context_second
            elif tag == STACK_SAMPLE_TASK_CONTEXT_IID:
                self.task = reader.value
            elif tag == STACK_SAMPLE_EXECUTION_CONTEXT_IID:
                self.execution = reader.value
            elif tag == STACK_SAMPLE_CALLSTACK:
                self.inline_begin, self.inline_end = reader.begin, reader.pos
            elif tag == STACK_SAMPLE_CALLSTACK_IID:
                self.iid = reader.value
            elif tag == STACK_SAMPLE_UNWIND_ERROR:
                context.error = reader.trace.string(reader.content()[:MAX_ERROR])
                context.error = TEXT_ERROR + context.error if context.error else 0
            elif tag == STACK_SAMPLE_PRIMARY_DESCRIPTOR:
                self.described = reader.content()[:MAX_EVENT]
            elif tag == STACK_SAMPLE_PRIMARY_DESCRIPTOR_IID:
                self.primary = reader.value
            elif tag == STACK_SAMPLE_PRIMARY_WEIGHT:
                self.weight = reader.value
            elif tag == STACK_SAMPLE_FOLLOWER_DESCRIPTORS:
                if len(self.followed) < MAX_FOLLOWERS:
                    self.followed.append(reader.content()[:MAX_EVENT])
            elif tag in (STACK_SAMPLE_FOLLOWER_DESCRIPTOR_IIDS, STACK_SAMPLE_FOLLOWER_DESCRIPTOR_IIDS_PACKED):
                if len(self.followed) < MAX_FOLLOWERS:
                    reader.numbers_count = 0
                    reader.take_numbers(MAX_FOLLOWERS)
                    self.followed += np.asarray(reader.numbers)[: reader.numbers_count].tolist()
            elif tag in (STACK_SAMPLE_FOLLOWER_WEIGHTS, STACK_SAMPLE_FOLLOWER_WEIGHTS_PACKED):
                reader.numbers_count = 0
                reader.take_numbers(MAX_FOLLOWERS)
                taken = min(reader.numbers_count, MAX_FOLLOWERS - self.given)
                for i in range(taken):
                    self.weights[self.given + i] = reader.numbers[i]
                self.given += taken

    def session(self, seq: Sequence):
        """The session of the sample that was read, as `Sessions.of_stack_sample` returns it."""
        state: InternedState = seq.interned
        key = (self.primary, self.described, tuple(self.followed[:MAX_FOLLOWERS]), seq.stack_defaults)
        found = state.sessions.get(key)
        if found is None:
            found = self.reader.trace.sessions.of_stack_sample(seq, state.descriptors, *key[:3])
            texts = (self.described, seq.stack_defaults or b"", *self.followed)
            size = sum(len(each) for each in texts if type(each) is bytes)
            if len(state.sessions) < MAX_KEPT and state.takes(size >> 3):
                state.sessions[key] = found
        return found

    def scaled(self, weight: cython.ulonglong, multiplier: cython.ulonglong) -> cython.ulonglong:
        """A weight in the unit of its event, at most the largest number (R237, multiplied weights)."""
        if weight != 0 and multiplier > MAX_INT64 // weight:
            self.samples.saturated += 1
            return MAX_INT64
        return weight * multiplier

    def inline_stack(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """The callstack with the frames in a StackSample, outermost first; as `InternedState.stack` returns it."""
        reader: PacketReader = self.reader
        outer: cython.Py_ssize_t
        function: cython.int
        source: cython.int
        line: cython.ulonglong
        key: cython.ulonglong[::1] = reader.frames.key
        rows: list[int] = []
        reader.pos = begin
        reader.end = end
        while reader.field():
            if reader.tag != INLINE_CALLSTACK_FRAMES:
                continue
            outer = reader.reenter()
            function = source = 0
            line = 0
            while reader.field():
                if reader.tag == INLINE_CALLSTACK_FRAME_FUNCTION_NAME:
                    function = reader.trace.string(reader.content())
                elif reader.tag == INLINE_CALLSTACK_FRAME_SOURCE_FILE:
                    source = reader.trace.string(reader.content())
                elif reader.tag == INLINE_CALLSTACK_FRAME_LINE_NUMBER:
                    line = reader.value & MASK32
            reader.go_on(outer)
            key[0] = key[1] = 0
            key[2] = function
            key[3] = source
            key[4] = line
            if reader.frames.count >= reader.max_frames or len(rows) >= MAX_DEPTH:
                reader.too_many += 1
                return -1
            rows.append(reader.frames.add())
        if not rows and not reader.bad:
            return EMPTY
        if reader.bad or reader.stacks.count >= reader.max_stacks:
            return -1
        if reader.stacks.used + len(rows) > reader.max_items:
            return -1
        reader.stacks.size = 0
        for row in reversed(rows):
            reader.stacks.append(row)
        return reader.stacks.add()
