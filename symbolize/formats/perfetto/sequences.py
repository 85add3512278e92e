# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""The state of one sequence of packets (trusted_packet_sequence_id): what it interned since its state was last cleared,
and what that means in the tables of the whole trace.

Frames and callstacks are stored as they were written and looked up when a sample first needs them, because their parts
may come in any order. The first definition of an id stays (R222, state of sequences).
"""

import cython
import numpy as np

from symbolize.core.arrays import extended
from symbolize.formats.perfetto.events import read_descriptor

if not cython.compiled:
    from symbolize.core.interning import InternTable
    from symbolize.core.protobuf import BYTES, NUMBER, WIRE_TYPE
    from symbolize.formats.perfetto.constants import EMPTY, MASK32, MAX_DEPTH, MAX_KEPT
    from symbolize.formats.perfetto.packet_reader import PacketReader
    from symbolize.proto.perfetto_trace_tags import *


MAX_PATH_PARTS = cython.declare(cython.Py_ssize_t, 256)

MAPPING_WORDS = cython.declare(cython.Py_ssize_t, 8)
FRAME_WORDS = cython.declare(cython.Py_ssize_t, 6)

CPU_MODES = (0, 2, 1, 3, 5, 4)
"""Numbers of Profiling.CpuMode by those of StackSample.Mode."""

NOT_TRIED = cython.declare(cython.int, -2)

NO_WORDS = cython.declare(cython.ulonglong[::1], memoryview(np.zeros(0, np.uint64)))
NO_ROWS = cython.declare(cython.int[::1], memoryview(np.zeros(0, np.int32)))
NO_OFFSETS = cython.declare(cython.longlong[::1], memoryview(np.zeros(0, np.int64)))


@cython.cclass
class InternedState:
    """The tables of one sequence. `shared`: strings of all kinds have one space of ids, as on Android 10."""

    def __init__(self, reader: PacketReader, shared: cython.bint) -> None:
        mixer: cython.ulonglong = reader.mixer
        self.reader = reader
        self.functions = InternTable(mixer)
        self.builds = self.functions if shared else InternTable(mixer)
        self.paths = self.functions if shared else InternTable(mixer)
        self.sources = self.functions if shared else InternTable(mixer)
        self.mappings = InternTable(mixer)
        self.mapping_words = self.path_ids = NO_WORDS
        self.mapping_rows = NO_ROWS
        self.frames = InternTable(mixer)
        self.frame_words = NO_WORDS
        self.frame_rows = NO_ROWS
        self.stacks = InternTable(mixer)
        self.stack_offsets = self.stack_tried = NO_OFFSETS
        self.stack_ids = self.stack_missing = NO_WORDS
        self.stack_rows = NO_ROWS
        self.entries = self.ids = 0
        self.mapping_count = self.path_used = self.frame_count = self.stack_count = self.stack_used = 0
        self.version = 1
        self.tasks = InternTable(mixer)
        self.executions = InternTable(mixer)
        self.context_words = NO_WORDS
        self.context_count = 0
        self.context_iid = self.context_first = self.context_second = 0
        self.descriptors = {}
        self.sessions = {}

    def takes(self, ids: cython.Py_ssize_t) -> cython.bint:
        """Whether one more entry with so many ids is within the limits; counts it."""
        reader: PacketReader = self.reader
        if reader.entries_left <= 0 or reader.ids_left < ids:
            reader.too_many += 1
            return False
        reader.entries_left -= 1
        reader.ids_left -= ids
        self.entries += 1
        self.ids += ids
        self.version += 1
        return True

    def release(self):
        """Subtract the entries from the limits; they are not used any more."""
        reader: PacketReader = self.reader
        reader.entries_left += self.entries
        reader.ids_left += self.ids
        self.entries = self.ids = 0

    def read(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Enter what an InternedData has. Damage costs the entry that it is in (R238, damaged messages).

        Of several definitions of an id the first is kept.
        """
        reader: PacketReader = self.reader
        tag: cython.ulonglong
        outer: cython.Py_ssize_t
        damaged: cython.bint = False
        reader.pos = begin
        reader.end = end
        while reader.field():
            tag = reader.tag
            if tag & WIRE_TYPE != BYTES:
                continue
            outer = reader.reenter()
            if tag == INTERNED_DATA_FRAMES:
                self.read_frame()
            elif tag == INTERNED_DATA_CALLSTACKS:
                self.read_stack()
            elif tag == INTERNED_DATA_FUNCTION_NAMES:
                self.read_string(self.functions)
            elif tag == INTERNED_DATA_BUILD_IDS:
                self.read_string(self.builds)
            elif tag == INTERNED_DATA_MAPPING_PATHS:
                self.read_string(self.paths)
            elif tag == INTERNED_DATA_SOURCE_PATHS:
                self.read_string(self.sources)
            elif tag == INTERNED_DATA_MAPPINGS:
                self.read_mapping()
            elif tag == INTERNED_DATA_STACK_SAMPLE_TASK_CONTEXTS:
                self.read_context(self.tasks, False)
            elif tag == INTERNED_DATA_STACK_SAMPLE_EXECUTION_CONTEXTS:
                self.read_context(self.executions, True)
            elif tag == INTERNED_DATA_STACK_SAMPLE_COUNTER_DESCRIPTORS and len(self.descriptors) < MAX_KEPT:
                iid, descriptor = read_descriptor(reader.source[reader.pos : reader.end])
                if iid not in self.descriptors and self.takes(0):
                    self.descriptors[iid] = descriptor
            reader.go_on(outer)
            damaged |= reader.forgive()
        if reader.forgive() or damaged:
            reader.damaged += 1

    def read_string(self, table: InternTable):
        """Enter an InternedString."""
        reader: PacketReader = self.reader
        iid: cython.ulonglong = 0
        begin: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = 0
        while reader.field():
            if reader.tag == INTERNED_STRING_IID:
                iid = reader.value
            elif reader.tag == INTERNED_STRING_STR:
                begin = reader.begin
                end = reader.pos
        if not reader.bad and table.find(iid) < 0 and self.takes(0):
            table.put(iid, reader.trace.string(reader.source[begin:end]))

    def read_mapping(self):
        """Enter a Mapping: ids of build id and path, start_offset, start, end, load_bias and exact_offset."""
        reader: PacketReader = self.reader
        iid: cython.ulonglong
        at: cython.Py_ssize_t
        count: cython.Py_ssize_t
        i: cython.Py_ssize_t
        reader.read_small(reader.pos, reader.end)
        reader.numbers_count = 0
        while reader.field():
            if reader.tag in (MAPPING_PATH_STRING_IDS, MAPPING_PATH_STRING_IDS_PACKED):
                reader.take_numbers(MAX_PATH_PARTS)
        iid = reader.small[MAPPING_IID >> NUMBER]
        count = min(reader.numbers_count, MAX_PATH_PARTS)
        if reader.bad or self.mappings.find(iid) >= 0 or not self.takes(count):
            return
        self.mappings.put(iid, self.mapping_count)
        at = self.mapping_count * MAPPING_WORDS
        if at + MAPPING_WORDS > self.mapping_words.shape[0]:
            self.mapping_words = extended(self.mapping_words, at + MAPPING_WORDS)
        if self.mapping_count == self.mapping_rows.shape[0]:
            self.mapping_rows = extended(self.mapping_rows, self.mapping_count + 1)
        if self.path_used + count > self.path_ids.shape[0]:
            self.path_ids = extended(self.path_ids, self.path_used + count)
        for i in range(count):
            self.path_ids[self.path_used + i] = reader.numbers[i]
        self.mapping_words[at] = reader.small[MAPPING_BUILD_ID >> NUMBER]
        self.mapping_words[at + 1] = reader.small[MAPPING_START_OFFSET >> NUMBER]
        self.mapping_words[at + 2] = reader.small[MAPPING_START >> NUMBER]
        self.mapping_words[at + 3] = reader.small[MAPPING_END >> NUMBER]
        self.mapping_words[at + 4] = reader.small[MAPPING_LOAD_BIAS >> NUMBER]
        self.mapping_words[at + 5] = reader.small[MAPPING_EXACT_OFFSET >> NUMBER]
        self.mapping_words[at + 6] = reader.small[0] >> (MAPPING_EXACT_OFFSET >> NUMBER) & 1
        self.path_used += count
        self.mapping_words[at + 7] = self.path_used
        self.mapping_rows[self.mapping_count] = NOT_TRIED
        self.mapping_count += 1

    def read_frame(self):
        """Enter a Frame."""
        reader: PacketReader = self.reader
        iid: cython.ulonglong
        at: cython.Py_ssize_t
        reader.read_small(reader.pos, reader.end)
        iid = reader.small[FRAME_IID >> NUMBER]
        if reader.bad or self.frames.find(iid) >= 0 or not self.takes(0):
            return
        self.frames.put(iid, self.frame_count)
        at = self.frame_count * FRAME_WORDS
        if at + FRAME_WORDS > self.frame_words.shape[0]:
            self.frame_words = extended(self.frame_words, at + FRAME_WORDS)
        if self.frame_count == self.frame_rows.shape[0]:
            self.frame_rows = extended(self.frame_rows, self.frame_count + 1)
        self.frame_words[at] = reader.small[FRAME_FUNCTION_NAME_ID >> NUMBER]
        self.frame_words[at + 1] = reader.small[FRAME_MAPPING_ID >> NUMBER]
        self.frame_words[at + 2] = reader.small[FRAME_REL_PC >> NUMBER]
        self.frame_words[at + 3] = reader.small[FRAME_SOURCE_PATH_IID >> NUMBER]
        self.frame_words[at + 4] = reader.small[FRAME_LINE_NUMBER >> NUMBER] & MASK32
        self.frame_words[at + 5] = reader.small[0] >> (FRAME_SOURCE_PATH_IID >> NUMBER) & 1
        self.frame_rows[self.frame_count] = -1
        self.frame_count += 1

    def read_stack(self):
        """Enter a Callstack; its frames stay outermost first, as they are written."""
        reader: PacketReader = self.reader
        iid: cython.ulonglong = 0
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        reader.numbers_count = 0
        while reader.field():
            if reader.tag == CALLSTACK_IID:
                iid = reader.value
                reader.take_run(CALLSTACK_FRAME_IDS, MAX_DEPTH)
            elif reader.tag == CALLSTACK_FRAME_IDS or reader.tag == CALLSTACK_FRAME_IDS_PACKED:
                reader.take_numbers(MAX_DEPTH)
        if reader.bad or self.stacks.find(iid) >= 0:
            return
        if reader.numbers_count > MAX_DEPTH:
            reader.too_many += 1
            return
        if not self.takes(reader.numbers_count):
            return
        row = self.stack_count
        self.stacks.put(iid, row)
        if row == self.stack_rows.shape[0]:
            self.stack_rows = extended(self.stack_rows, row + 1)
            self.stack_tried = extended(self.stack_tried, row + 1)
            self.stack_missing = extended(self.stack_missing, row + 1)
        if row + 2 > self.stack_offsets.shape[0]:
            self.stack_offsets = extended(self.stack_offsets, row + 2)
        if self.stack_used + reader.numbers_count > self.stack_ids.shape[0]:
            self.stack_ids = extended(self.stack_ids, self.stack_used + reader.numbers_count)
        for i in range(reader.numbers_count):
            self.stack_ids[self.stack_used + i] = reader.numbers[i]
        self.stack_used += reader.numbers_count
        self.stack_count += 1
        self.stack_offsets[row + 1] = self.stack_used
        self.stack_rows[row] = -1
        self.stack_tried[row] = 0

    def read_context(self, table: InternTable, execution: cython.bint):
        """Enter a context of StackSamples: a task, or where it is executed."""
        at: cython.Py_ssize_t = 2 * self.context_count
        self.parse_context(execution)
        if self.reader.bad or table.find(self.context_iid) >= 0 or not self.takes(0):
            return
        if at + 2 > self.context_words.shape[0]:
            self.context_words = extended(self.context_words, at + 2)
        table.put(self.context_iid, self.context_count)
        self.context_words[at] = self.context_first
        self.context_words[at + 1] = self.context_second
        self.context_count += 1

    def parse_context(self, execution: cython.bint):
        """Read the context under the cursor: pid and tid of a task; or the CPU, and the mode as PerfSample numbers it.
        All but the mode are one more, 0 unknown."""
        reader: PacketReader = self.reader
        mode: cython.ulonglong
        reader.read_small(reader.pos, reader.end)
        if execution:
            mode = reader.small[EXECUTION_CONTEXT_MODE >> NUMBER]
            self.context_iid = reader.small[EXECUTION_CONTEXT_IID >> NUMBER]
            self.context_first = self.one_more(EXECUTION_CONTEXT_CPU >> NUMBER)
            self.context_second = CPU_MODES[mode] if mode < len(CPU_MODES) else 0
        else:
            self.context_iid = reader.small[TASK_CONTEXT_IID >> NUMBER]
            self.context_first = self.one_more(TASK_CONTEXT_PID >> NUMBER)
            self.context_second = self.one_more(TASK_CONTEXT_TID >> NUMBER)

    def one_more(self, number: cython.Py_ssize_t) -> cython.ulonglong:
        """The field of a message that `read_small` read, of 32 bits, plus 1; 0 if it is not there."""
        reader: PacketReader = self.reader
        return (reader.small[number] & MASK32) + 1 if reader.small[0] >> number & 1 else 0

    def find_context(self, table: InternTable, iid: cython.ulonglong) -> cython.bint:
        """Take the context of an id to `context_first` and `context_second`; False if it is not there."""
        row: cython.int = table.find(iid)
        if row < 0:
            return False
        self.context_first = self.context_words[2 * row]
        self.context_second = self.context_words[2 * row + 1]
        return True

    # Looking up

    def text_row(self, table: InternTable, iid: cython.ulonglong) -> cython.int:
        """The string of an id, where 0 is the empty one; -1 for an unknown id."""
        return 0 if iid == 0 else table.find(iid)

    def mapping(self, iid: cython.ulonglong) -> cython.int:
        """The mapping of an id as a row of the whole trace; -1 if it is not there or its build id is not."""
        row: cython.int = self.mappings.find(iid)
        build: cython.int
        part: cython.int
        at: cython.Py_ssize_t
        begin: cython.Py_ssize_t
        end: cython.Py_ssize_t
        i: cython.Py_ssize_t
        if row < 0:
            return -1
        if self.mapping_rows[row] == NOT_TRIED:
            at = row * MAPPING_WORDS
            build = self.text_row(self.builds, self.mapping_words[at])
            if build < 0:
                return -1
            parts: list[int] = []
            # Where a path begins is where the one before ends.
            begin = self.mapping_words[at - 1] if row > 0 else 0
            end = self.mapping_words[at + 7]
            for i in range(begin, end):
                part = self.paths.find(self.path_ids[i])
                if part < 0:
                    break
                parts.append(part)
            exact = self.mapping_words[at + 5] if self.mapping_words[at + 6] != 0 else None
            words = self.mapping_words
            record = (words[at + 1], words[at + 2], words[at + 3], words[at + 4], exact)
            self.mapping_rows[row] = self.reader.trace.mapping(build, record, parts)
        return self.mapping_rows[row]

    def frame(self, iid: cython.ulonglong) -> cython.int:
        """The frame of an id as a row of the whole trace; -1 if it, or a part of it, is not there."""
        reader: PacketReader = self.reader
        row: cython.int = self.frames.find(iid)
        at: cython.Py_ssize_t
        function: cython.int
        mapping: cython.int = -1
        source: cython.int = 0
        key: cython.ulonglong[::1]
        if row < 0 or self.frame_rows[row] >= 0:
            return self.frame_rows[row] if row >= 0 else -1
        at = row * FRAME_WORDS
        function = self.text_row(self.functions, self.frame_words[at])
        if function < 0:
            return -1
        if self.frame_words[at + 1] != 0:
            mapping = self.mapping(self.frame_words[at + 1])
            if mapping < 0:
                return -1
        if self.frame_words[at + 5] != 0:
            source = self.sources.find(self.frame_words[at + 3])
            if source < 0:
                return -1
        if reader.frames.count >= reader.max_frames:
            reader.too_many += 1
            return -1
        key = reader.frames.key
        key[0] = mapping + 1
        key[1] = self.frame_words[at + 2] if mapping >= 0 else 0
        key[2] = function
        key[3] = source
        key[4] = self.frame_words[at + 4]
        self.frame_rows[row] = reader.frames.add()
        return self.frame_rows[row]

    def stack(self, iid: cython.ulonglong) -> cython.int:
        """The callstack of an id as a row of the whole trace; EMPTY if it has no frames, -1 if it or a part of it is
        missing.

        A path that is cut short is no missing part. A callstack without frames is left out like one with a missing
        part, and counted apart (R273, empty callstacks).
        """
        reader: PacketReader = self.reader
        row: cython.int = self.stacks.find(iid)
        i: cython.Py_ssize_t
        frame: cython.int
        if row < 0:
            return -1
        if self.stack_rows[row] >= 0:
            return self.stack_rows[row]
        if self.stack_offsets[row] == self.stack_offsets[row + 1]:
            return EMPTY
        if self.stack_tried[row] == self.version or reader.stacks.count >= reader.max_stacks:
            return -1
        if self.stack_tried[row] != 0:
            # Up to the frame that was missing all were there.
            self.stack_tried[row] = self.version
            i = self.stack_missing[row] + 1
            while i > self.stack_offsets[row]:
                i -= 1
                if self.frame(self.stack_ids[i]) < 0:
                    self.stack_missing[row] = i
                    return -1
        reader.stacks.size = 0
        # From the last to the first: the leaf first.
        i = self.stack_offsets[row + 1]
        if reader.stacks.used + i - self.stack_offsets[row] > reader.max_items:
            reader.too_many += 1
            return -1
        while i > self.stack_offsets[row]:
            i -= 1
            frame = self.frame(self.stack_ids[i])
            if frame < 0:
                self.stack_tried[row] = self.version
                self.stack_missing[row] = i
                return -1
            reader.stacks.append(frame)
        self.stack_rows[row] = reader.stacks.add()
        return self.stack_rows[row]


@cython.cclass
class Sequence:
    """What is known of a sequence. `valid`: what it interns can be trusted (R222, state of sequences)."""

    def __init__(self, number: cython.ulonglong, reader: PacketReader) -> None:
        self.reader = reader
        self.number = number
        self.valid = self.began = False
        self.interned = InternedState(reader, False)
        self.generation = 0
        # Of PerfSamples: the events, the defaults that named them, and the counters of each CPU
        self.session = -1
        self.followers = 0
        self.nominal = 0
        self.defaults = b""
        self.stack_defaults = self.stack_events = None
        self.clock = 0
        self.cpus = InternTable(reader.mixer)
        self.counters = NO_WORDS
        self.counted = NO_ROWS
        self.counter_words = 0
        self.losses = 1
        # Of heap dumps: samples that wait for the end of theirs, of which the first `settled` have their callstack, the
        # tables within the packets (Android 10), and whether one began, and when in the trace
        self.inline = None
        self.pending = NO_WORDS
        self.pending_count = self.settled = 0
        self.dump_began = False
        self.dump_time = 0
        self.index = -1
        # Of Chromium: its pid, one more, 0 unknown; the thread and its time
        self.pid = self.tid = 0
        self.has_tid = False
        self.time_us = 0
        self.has_time = False

    def clear(self):
        """Forget what was interned, and the defaults."""
        if self.interned.entries > 0 or len(self.interned.sessions) > 0:
            self.interned.release()
            self.interned = InternedState(self.reader, False)
        self.valid = True
        self.generation += 1
        self.session = -1
        self.stack_defaults = self.stack_events = None
        self.clock = 0
        self.has_time = False

    def lose(self):
        """Packets were lost: what counters and times were is not known any more."""
        self.losses = (self.losses + 1) & 0x3FFFFFFF
        self.began = False
        self.has_time = False

    def reset_counters(self) -> None:
        """Forget the counters because the events changed."""
        self.reader.counters_left += self.counter_words
        self.counter_words = 0
        self.cpus = InternTable(self.reader.mixer)
        self.counters = NO_WORDS
        self.counted = NO_ROWS
