# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""Samples of any profiler (StackSample).

The constants are field tags as they stand on the wire: field number << 3 | wire type.
"""

from typing import Any

import cython
import numpy as np

if not cython.compiled:
    from symbolize.load.perfetto.interned_state import Names
    from symbolize.load.perfetto.packet_reader import Common
    from symbolize.load.perfetto.samples import Samples
    from symbolize.load.perfetto.sequences import Sequence

MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
INT64_MAX = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)

EMPTY = cython.declare(cython.int, -2)
"""What `Names.stack` gives for a callstack without frames."""
MAX_FOLLOWERS = cython.declare(cython.Py_ssize_t, 64)
MAX_DEPTH = cython.declare(cython.Py_ssize_t, 1 << 12)
"""Frames of one callstack; unwinders stop at 1000."""
MAX_EVENT = cython.declare(cython.Py_ssize_t, 1 << 12)
"""Bytes of a CounterDescriptor in a sample; of a longer one the beginning is read."""
MAX_KEPT = cython.declare(cython.Py_ssize_t, 1 << 10)
"""Combinations of events of one sequence that are remembered."""


@cython.cclass
class StackReader:
    """Reads packets and counts their samples."""

    def __init__(self, common: Common, samples: Samples) -> None:
        self.common = common
        self.samples = samples
        self.weights = memoryview(np.zeros(MAX_FOLLOWERS, np.uint64))

    def stack_sample(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read a StackSample: what it says by id, in itself, or not at all and leaves to the defaults (rule R229)."""
        common: Common = self.common
        samples: Samples = self.samples
        names: Names = seq.names
        tag: cython.ulonglong
        outer: cython.Py_ssize_t
        task: cython.ulonglong = 0
        execution: cython.ulonglong = 0
        iid: cython.ulonglong = 0
        inline_begin: cython.Py_ssize_t = -1
        inline_end: cython.Py_ssize_t = 0
        error: cython.ulonglong = 0
        primary: cython.ulonglong = 0
        weight: cython.ulonglong = 1
        given: cython.Py_ssize_t = 0
        pid: cython.ulonglong = 0
        tid: cython.ulonglong = 0
        has_tid: cython.bint
        cpu: cython.ulonglong = 0
        mode: cython.ulonglong = 0
        i: cython.Py_ssize_t
        count: cython.Py_ssize_t
        stack: cython.int
        described = b""
        followed: list[Any] = []
        common.pos = begin
        common.end = end
        while common.field():
            tag = common.tag
            if tag == 0x0A:
                outer = common.enter()
                names.parse_context(False)
                common.leave(outer)
                pid, tid = names.context_first, names.context_second
            elif tag == 0x1A:
                outer = common.enter()
                names.parse_context(True)
                common.leave(outer)
                cpu, mode = names.context_first, names.context_second
            elif tag == 0x10:
                task = common.value
            elif tag == 0x20:
                execution = common.value
            elif tag == 0x2A:
                inline_begin, inline_end = common.begin, common.pos
            elif tag == 0x30:
                iid = common.value
            elif tag == 0x38:
                error = common.value & MASK32
            elif tag == 0x4A:
                described = common.text(common.begin, min(common.pos, common.begin + MAX_EVENT))
            elif tag == 0x50:
                primary = common.value
            elif tag == 0x58:
                weight = common.value
            elif tag == 0x62 and len(followed) < MAX_FOLLOWERS:
                followed.append(common.text(common.begin, min(common.pos, common.begin + MAX_EVENT)))
            elif (tag == 0x68 or tag == 0x6A) and len(followed) < MAX_FOLLOWERS:
                common.numbers_count = 0
                common.take_numbers(MAX_FOLLOWERS)
                followed += np.asarray(common.numbers)[: common.numbers_count].tolist()
            elif tag == 0x70 or tag == 0x72:
                common.numbers_count = 0
                common.take_numbers(MAX_FOLLOWERS)
                for i in range(min(common.numbers_count, MAX_FOLLOWERS - given)):
                    self.weights[given + i] = common.numbers[i]
                given += min(common.numbers_count, MAX_FOLLOWERS - given)
        if common.bad:
            return
        if task != 0:
            if not names.find_context(names.tasks, task):
                samples.rejected += 1
                return
            pid, tid = names.context_first, names.context_second
        if execution != 0:
            if not names.find_context(names.executions, execution):
                samples.rejected += 1
                return
            cpu, mode = names.context_first, names.context_second
        if inline_begin < 0 and iid == 0:
            samples.counter_only += 1
            return
        key = (primary, described, tuple(followed[:MAX_FOLLOWERS]), seq.stack_defaults)
        session = names.sessions.get(key)
        if session is None:
            session = common.trace.stack_session(seq, names.descriptors, *key[:3])
            size = sum(len(each) for each in (described, seq.stack_defaults or b"", *followed) if type(each) is bytes)
            if len(names.sessions) < MAX_KEPT and names.takes(size >> 3):
                names.sessions[key] = session
        if session[0] < 0:
            samples.rejected += 1
            return
        stack = names.stack(iid) if inline_begin < 0 else self.inline_stack(inline_begin, inline_end)
        if stack < 0:
            samples.reject(stack)
            return
        count = session[1]
        samples.reserve(count)
        multipliers = session[2]
        for i in range(count):
            samples.weights[i] = self.weights[i] if i < given else 0
        if multipliers:
            weight = self.scaled(weight, multipliers[0])
            for i in range(count):
                samples.weights[i] = self.scaled(samples.weights[i], multipliers[1 + i])
        if common.clock == 0:
            common.clock = seq.clock
        has_tid = tid > 0
        samples.count(session[0], pid, tid - 1 if has_tid else 0, has_tid, cpu, mode, error, stack, weight, count)

    def scaled(self, weight: cython.ulonglong, multiplier: cython.ulonglong) -> cython.ulonglong:
        """A weight in the unit of its event, at most the largest number (rule R237)."""
        if weight != 0 and multiplier > INT64_MAX // weight:
            self.samples.saturated += 1
            return INT64_MAX
        return weight * multiplier

    def inline_stack(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """The callstack of a StackSample that says its frames itself, outermost first; as `Names.stack` gives it."""
        common: Common = self.common
        outer: cython.Py_ssize_t
        function: cython.int
        source: cython.int
        line: cython.ulonglong
        key: cython.ulonglong[::1] = common.frames.key
        rows: list[int] = []
        common.pos = begin
        common.end = end
        while common.field():
            if common.tag != 0x0A:
                continue
            outer = common.enter()
            function = source = 0
            line = 0
            while common.field():
                if common.tag == 0x0A:
                    function = common.trace.string(common.content())
                elif common.tag == 0x12:
                    source = common.trace.string(common.content())
                elif common.tag == 0x18:
                    line = common.value & MASK32
            common.leave(outer)
            key[0] = key[1] = 0
            key[2] = function
            key[3] = source
            key[4] = line
            if common.frames.count >= common.max_frames or len(rows) >= MAX_DEPTH:
                common.too_many += 1
                return -1
            rows.append(common.frames.add())
        if not rows and not common.bad:
            return EMPTY
        if common.bad or common.stacks.count >= common.max_stacks:
            return -1
        if common.stacks.used + len(rows) > common.max_items:
            return -1
        common.stacks.size = 0
        for row in reversed(rows):
            common.stacks.append(row)
        return common.stacks.add()
