# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""Samples of traced_perf (PerfSample) and of Chromium (StreamingProfilePacket).

A PerfSample is a record of losses, else an event of the profiler, else a sample that was skipped, else a sample; one
without a callstack counts events only (R225, kinds of PerfSample).
"""

import cython
import numpy as np

from symbolize.core.arrays import extended

if not cython.compiled:
    from symbolize.formats.perfetto.constants import MASK32, MAX_FOLLOWERS, MAX_INT64
    from symbolize.formats.perfetto.packet_reader import PacketReader
    from symbolize.formats.perfetto.samples import SampleContext, TraceSamples
    from symbolize.formats.perfetto.sequences import Sequence
    from symbolize.proto.perfetto_trace_tags import *

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

MAX_CPUS = cython.declare(cython.Py_ssize_t, 1 << 16)
MAX_TIMES = cython.declare(cython.Py_ssize_t, 1 << 20)
"""Callstacks, or times, of one StreamingProfilePacket."""
MAX_TIME = cython.declare(cython.ulonglong, 1 << 52)
"""Microseconds: a century is more than any trace has; without the limit sums could leave 64 bits."""


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
