# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""What a sequence interned since its state was last cleared, and what it means in the tables of the whole trace.

Frames and callstacks are kept as they were written and looked up when a sample first needs them, because their parts
may come in any order. The first definition of an id stays (rule R222). The constants are field tags as they stand on
the wire: field number << 3 | wire type.
"""

import cython
import numpy as np

from symbolize.core.arrays import extended

if not cython.compiled:
    from symbolize.core.interning import Table
    from symbolize.load.perfetto.packet_reader import Common

MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)

MAX_DEPTH = cython.declare(cython.Py_ssize_t, 1 << 12)
"""Frames of one callstack; unwinders stop at 1000."""
MAX_PATH_PARTS = cython.declare(cython.Py_ssize_t, 256)
MAX_KEPT = cython.declare(cython.Py_ssize_t, 1 << 10)
"""Descriptions of events of one sequence, and combinations of them, that are remembered."""

MAPPING_WORDS = cython.declare(cython.Py_ssize_t, 8)
FRAME_WORDS = cython.declare(cython.Py_ssize_t, 6)

HAS_SOURCE = cython.declare(cython.ulonglong, 1)

NOT_TRIED = cython.declare(cython.int, -2)
EMPTY = cython.declare(cython.int, -2)
"""In place of the row of a callstack: it is there and has no frames."""

NO_WORDS = cython.declare(cython.ulonglong[::1], memoryview(np.zeros(0, np.uint64)))
NO_ROWS = cython.declare(cython.int[::1], memoryview(np.zeros(0, np.int32)))
NO_OFFSETS = cython.declare(cython.longlong[::1], memoryview(np.zeros(0, np.int64)))


@cython.cclass
class Names:
    """The tables of one sequence. `shared`: strings of all kinds have one space of ids, as on Android 10."""

    def __init__(self, common: Common, shared: cython.bint) -> None:
        mixer: cython.ulonglong = common.mixer
        self.common = common
        self.functions = Table(mixer)
        self.builds = self.functions if shared else Table(mixer)
        self.paths = self.functions if shared else Table(mixer)
        self.sources = self.functions if shared else Table(mixer)
        self.mappings = Table(mixer)
        self.mapping_words = self.path_ids = NO_WORDS
        self.mapping_rows = NO_ROWS
        self.frames = Table(mixer)
        self.frame_words = NO_WORDS
        self.frame_rows = NO_ROWS
        self.stacks = Table(mixer)
        self.stack_offsets = self.stack_tried = NO_OFFSETS
        self.stack_ids = self.stack_missing = NO_WORDS
        self.stack_rows = NO_ROWS
        self.entries = self.ids = 0
        self.mapping_count = self.path_used = self.frame_count = self.stack_count = self.stack_used = 0
        self.version = 1
        self.tasks = Table(mixer)
        self.executions = Table(mixer)
        self.context_words = NO_WORDS
        self.context_count = 0
        self.context_iid = self.context_first = self.context_second = 0
        self.descriptors = {}
        self.sessions = {}

    def takes(self, ids: cython.Py_ssize_t) -> cython.bint:
        """Whether there is room for one more entry with so many ids; counts it."""
        common: Common = self.common
        if common.room <= 0 or common.id_room < ids:
            common.too_many += 1
            return False
        common.room -= 1
        common.id_room -= ids
        self.entries += 1
        self.ids += ids
        self.version += 1
        return True

    def release(self):
        """Give back the room that the entries took; they are not used any more."""
        common: Common = self.common
        common.room += self.entries
        common.id_room += self.ids
        self.entries = self.ids = 0

    def read(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Enter what an InternedData has. Damage costs the entry that it is in (rule R238)."""
        common: Common = self.common
        tag: cython.ulonglong
        outer: cython.Py_ssize_t
        damaged: cython.bint = False
        common.pos = begin
        common.end = end
        while common.field():
            tag = common.tag
            if tag & 7 != 2:
                continue
            outer = common.enter()
            if tag == 0x32:
                self.read_frame()
            elif tag == 0x3A:
                self.read_stack()
            elif tag == 0x2A:
                self.read_string(self.functions)
            elif tag == 0x82:
                self.read_string(self.builds)
            elif tag == 0x8A:
                self.read_string(self.paths)
            elif tag == 0x92:
                self.read_string(self.sources)
            elif tag == 0x9A:
                self.read_mapping()
            elif tag == 0x182:
                self.read_context(self.tasks, False)
            elif tag == 0x18A:
                self.read_context(self.executions, True)
            elif tag == 0x192 and len(self.descriptors) < MAX_KEPT:
                iid, descriptor = common.trace.descriptor(common.text(common.pos, common.end))
                if iid not in self.descriptors and self.takes(0):
                    self.descriptors[iid] = descriptor
            common.leave(outer)
            damaged |= common.forgive()
        if common.forgive() or damaged:
            common.damaged += 1

    def read_string(self, table: Table):
        """Enter an InternedString."""
        common: Common = self.common
        iid: cython.ulonglong = 0
        begin: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = 0
        while common.field():
            if common.tag == 0x08:
                iid = common.value
            elif common.tag == 0x12:
                begin = common.begin
                end = common.pos
        if not common.bad and table.find(iid) < 0 and self.takes(0):
            table.put(iid, common.trace.string(common.text(begin, end)))

    def read_mapping(self):
        """Enter a Mapping: ids of build id and path, start_offset, start, end, load_bias and exact_offset."""
        common: Common = self.common
        tag: cython.ulonglong
        iid: cython.ulonglong = 0
        build: cython.ulonglong = 0
        start_offset: cython.ulonglong = 0
        start: cython.ulonglong = 0
        limit: cython.ulonglong = 0
        bias: cython.ulonglong = 0
        exact: cython.ulonglong = 0
        has_exact: cython.ulonglong = 0
        at: cython.Py_ssize_t
        count: cython.Py_ssize_t
        i: cython.Py_ssize_t
        common.numbers_count = 0
        while common.field():
            tag = common.tag
            if tag == 0x08:
                iid = common.value
            elif tag == 0x10:
                build = common.value
            elif tag == 0x18:
                start_offset = common.value
            elif tag == 0x20:
                start = common.value
            elif tag == 0x28:
                limit = common.value
            elif tag == 0x30:
                bias = common.value
            elif tag == 0x38 or tag == 0x3A:
                common.take_numbers(MAX_PATH_PARTS)
            elif tag == 0x40:
                exact = common.value
                has_exact = 1
        count = min(common.numbers_count, MAX_PATH_PARTS)
        if common.bad or self.mappings.find(iid) >= 0 or not self.takes(count):
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
            self.path_ids[self.path_used + i] = common.numbers[i]
        self.mapping_words[at] = build
        self.mapping_words[at + 1] = start_offset
        self.mapping_words[at + 2] = start
        self.mapping_words[at + 3] = limit
        self.mapping_words[at + 4] = bias
        self.mapping_words[at + 5] = exact
        self.mapping_words[at + 6] = has_exact
        self.path_used += count
        self.mapping_words[at + 7] = self.path_used
        self.mapping_rows[self.mapping_count] = NOT_TRIED
        self.mapping_count += 1

    def read_frame(self):
        """Enter a Frame."""
        common: Common = self.common
        tag: cython.ulonglong
        iid: cython.ulonglong = 0
        function: cython.ulonglong = 0
        mapping: cython.ulonglong = 0
        rel_pc: cython.ulonglong = 0
        source: cython.ulonglong = 0
        line: cython.ulonglong = 0
        flags: cython.ulonglong = 0
        at: cython.Py_ssize_t
        while common.field():
            tag = common.tag
            if tag == 0x08:
                iid = common.value
            elif tag == 0x10:
                function = common.value
            elif tag == 0x18:
                mapping = common.value
            elif tag == 0x20:
                rel_pc = common.value
            elif tag == 0x28:
                source = common.value
                flags |= HAS_SOURCE
            elif tag == 0x30:
                line = common.value & MASK32
        if common.bad or self.frames.find(iid) >= 0 or not self.takes(0):
            return
        self.frames.put(iid, self.frame_count)
        at = self.frame_count * FRAME_WORDS
        if at + FRAME_WORDS > self.frame_words.shape[0]:
            self.frame_words = extended(self.frame_words, at + FRAME_WORDS)
        if self.frame_count == self.frame_rows.shape[0]:
            self.frame_rows = extended(self.frame_rows, self.frame_count + 1)
        self.frame_words[at] = function
        self.frame_words[at + 1] = mapping
        self.frame_words[at + 2] = rel_pc
        self.frame_words[at + 3] = source
        self.frame_words[at + 4] = line
        self.frame_words[at + 5] = flags
        self.frame_rows[self.frame_count] = -1
        self.frame_count += 1

    def read_stack(self):
        """Enter a Callstack; its frames stay outermost first, as they are written."""
        common: Common = self.common
        iid: cython.ulonglong = 0
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        common.numbers_count = 0
        while common.field():
            if common.tag == 0x08:
                iid = common.value
                common.take_run(0x10, MAX_DEPTH)
            elif common.tag == 0x10 or common.tag == 0x12:
                common.take_numbers(MAX_DEPTH)
        if common.bad or self.stacks.find(iid) >= 0:
            return
        if common.numbers_count > MAX_DEPTH:
            common.too_many += 1
            return
        if not self.takes(common.numbers_count):
            return
        row = self.stack_count
        self.stacks.put(iid, row)
        if row == self.stack_rows.shape[0]:
            self.stack_rows = extended(self.stack_rows, row + 1)
            self.stack_tried = extended(self.stack_tried, row + 1)
            self.stack_missing = extended(self.stack_missing, row + 1)
        if row + 2 > self.stack_offsets.shape[0]:
            self.stack_offsets = extended(self.stack_offsets, row + 2)
        if self.stack_used + common.numbers_count > self.stack_ids.shape[0]:
            self.stack_ids = extended(self.stack_ids, self.stack_used + common.numbers_count)
        for i in range(common.numbers_count):
            self.stack_ids[self.stack_used + i] = common.numbers[i]
        self.stack_used += common.numbers_count
        self.stack_count += 1
        self.stack_offsets[row + 1] = self.stack_used
        self.stack_rows[row] = -1
        self.stack_tried[row] = 0

    def read_context(self, table: Table, execution: cython.bint):
        """Enter a context of StackSamples: a task, or where it is executed."""
        at: cython.Py_ssize_t = 2 * self.context_count
        self.parse_context(execution)
        if self.common.bad or table.find(self.context_iid) >= 0 or not self.takes(0):
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
        common: Common = self.common
        value: cython.ulonglong
        self.context_iid = self.context_first = self.context_second = 0
        while common.field():
            value = common.value
            if common.tag == 0x08:
                self.context_iid = value
            elif common.tag == 0x10:
                self.context_first = (value & MASK32) + 1
            elif common.tag == 0x18 and execution:
                self.context_second = (0, 2, 1, 3, 5, 4)[value] if value < 6 else 0
            elif common.tag == 0x18:
                self.context_second = (value & MASK32) + 1

    def find_context(self, table: Table, iid: cython.ulonglong) -> cython.bint:
        """Take the context of an id to `context_first` and `context_second`; False if it is not there."""
        row: cython.int = table.find(iid)
        if row < 0:
            return False
        self.context_first = self.context_words[2 * row]
        self.context_second = self.context_words[2 * row + 1]
        return True

    # Looking up

    def text_row(self, table: Table, iid: cython.ulonglong) -> cython.int:
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
            self.mapping_rows[row] = self.common.trace.mapping(build, record, parts)
        return self.mapping_rows[row]

    def frame(self, iid: cython.ulonglong) -> cython.int:
        """The frame of an id as a row of the whole trace; -1 if it, or a part of it, is not there."""
        common: Common = self.common
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
        if self.frame_words[at + 5] & HAS_SOURCE:
            source = self.sources.find(self.frame_words[at + 3])
            if source < 0:
                return -1
        if common.frames.count >= common.max_frames:
            common.too_many += 1
            return -1
        key = common.frames.key
        key[0] = mapping + 1
        key[1] = self.frame_words[at + 2] if mapping >= 0 else 0
        key[2] = function
        key[3] = source
        key[4] = self.frame_words[at + 4]
        self.frame_rows[row] = common.frames.add()
        return self.frame_rows[row]

    def stack(self, iid: cython.ulonglong) -> cython.int:
        """The callstack of an id as a row of the whole trace; EMPTY if it has no frames, -1 if it or a part of it is
        missing."""
        common: Common = self.common
        row: cython.int = self.stacks.find(iid)
        i: cython.Py_ssize_t
        frame: cython.int
        if row < 0:
            return -1
        if self.stack_rows[row] >= 0:
            return self.stack_rows[row]
        if self.stack_offsets[row] == self.stack_offsets[row + 1]:
            return EMPTY
        if self.stack_tried[row] == self.version or common.stacks.count >= common.max_stacks:
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
        common.stacks.size = 0
        # From the last to the first: the leaf first.
        i = self.stack_offsets[row + 1]
        if common.stacks.used + i - self.stack_offsets[row] > common.max_items:
            common.too_many += 1
            return -1
        while i > self.stack_offsets[row]:
            i -= 1
            frame = self.frame(self.stack_ids[i])
            if frame < 0:
                self.stack_tried[row] = self.version
                self.stack_missing[row] = i
                return -1
            common.stacks.append(frame)
        self.stack_rows[row] = common.stacks.add()
        return self.stack_rows[row]
