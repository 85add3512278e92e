# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""Samples of any profiler (StackSample)."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.formats.perfetto.constants import EMPTY, MASK32, MAX_DEPTH, MAX_FOLLOWERS, MAX_INT64, MAX_KEPT
    from symbolize.formats.perfetto.interned_state import InternedState
    from symbolize.formats.perfetto.packet_reader import PacketReader
    from symbolize.formats.perfetto.samples import SampleContext, TraceSamples
    from symbolize.formats.perfetto.sequences import Sequence
    from symbolize.proto.perfetto_trace_tags import *


MAX_EVENT = cython.declare(cython.Py_ssize_t, 1 << 12)
"""Bytes of a CounterDescriptor in a sample; of a longer one the beginning is read."""
MAX_ERROR = cython.declare(cython.Py_ssize_t, 256)
"""Bytes of the text of an unwinding error."""
TEXT_ERROR = 1 << 32
"""Added to the row of the string where an error is a text instead of a number."""


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
