# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type,index,assignment,return-value,union-attr,var-annotated"
"""The packets of a trace: which state each sequence is in, what it interned, and the samples that use it.

The constants are field tags as they stand on the wire: field number << 3 | wire type. Repeated integers are read
packed and unpacked. Damage costs the packet that it is in. What is said once a trace is left to the `trace` that the
scanner is given; samples, frames and callstacks go into tables here.
"""

from typing import Any

import cython
import numpy as np
from numpy.typing import NDArray

from symbolize.load.perfetto.tables import extended

if not cython.compiled:
    from symbolize.cursor import Cursor
    from symbolize.load.perfetto.tables import Lists, Table, Tuples
    from symbolize.load.pprof_scan import enter, leave, skip
    from symbolize.load.pprof_scan import varint as slow_varint

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
INT64_MAX = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)

CLEARED = cython.declare(cython.ulonglong, 1)
NEEDS_STATE = cython.declare(cython.ulonglong, 2)

MAX_SEQUENCES = cython.declare(cython.Py_ssize_t, 1 << 13)
"""Sequences that a trace has at most: one a thread that writes packets with state."""
MAX_ENTRIES = cython.declare(cython.Py_ssize_t, 1 << 22)
"""Interned entries that are alive at one time, of all sequences together."""
MAX_IDS = cython.declare(cython.Py_ssize_t, 1 << 24)
"""Frames in all interned callstacks that are alive at one time."""
MAX_DEPTH = cython.declare(cython.Py_ssize_t, 1 << 12)
"""Frames of one callstack; unwinders stop at 1000."""
MAX_FRAMES = cython.declare(cython.Py_ssize_t, 1 << 22)
MAX_STACKS = cython.declare(cython.Py_ssize_t, 1 << 22)
MAX_STACK_ITEMS = cython.declare(cython.Py_ssize_t, 1 << 26)
"""Distinct frames and callstacks of a whole trace, and the frames in those."""
MAX_SAMPLES = cython.declare(cython.Py_ssize_t, 1 << 24)
"""Distinct samples, after those that are equal were added up."""
MAX_PENDING = cython.declare(cython.Py_ssize_t, 1 << 22)
"""Samples of one heap dump that wait for its end."""
MAX_FOLLOWERS = cython.declare(cython.int, 64)
MAX_CPUS = cython.declare(cython.Py_ssize_t, 1 << 16)
MAX_PATH_PARTS = 256
MAX_PATH = 1 << 16

FRAME_WORDS = cython.declare(cython.Py_ssize_t, 7)
PENDING_WORDS = cython.declare(cython.Py_ssize_t, 6)

HAS_SOURCE = cython.declare(cython.ulonglong, 1)


def varint(c: Cursor) -> cython.ulonglong:
    """The next varint; most have one or two bytes."""
    first: cython.ulonglong
    second: cython.ulonglong
    pos: cython.Py_ssize_t = c.pos
    if pos + 1 < c.end:
        first = c.data[pos]
        if first < 0x80:
            c.pos = pos + 1
            return first
        second = c.data[pos + 1]
        if second < 0x80:
            c.pos = pos + 2
            return first & 0x7F | second << 7
    return slow_varint(c)


@cython.cclass
class Names:
    """What a sequence interned since its state was last cleared. Frames and callstacks are kept as they were written
    and looked up when a sample first needs them, because their parts may come in any order."""

    def __init__(self, mixer: cython.ulonglong, shared: cython.bint) -> None:
        self.functions = Table(mixer)
        # Android 10 has one space of ids for all strings.
        self.builds = self.functions if shared else Table(mixer)
        self.paths = self.functions if shared else Table(mixer)
        self.sources = self.functions if shared else Table(mixer)
        self.mappings = Table(mixer)
        self.mapping_records = []
        self.mapping_rows = []
        self.frames = Table(mixer)
        self.frame_words = memoryview(np.zeros(0, np.uint64))
        self.frame_rows = memoryview(np.zeros(0, np.int32))
        self.stacks = Table(mixer)
        self.stack_offsets = memoryview(np.zeros(1, np.int64))
        self.stack_ids = memoryview(np.zeros(0, np.uint64))
        self.stack_rows = memoryview(np.zeros(0, np.int32))
        self.stack_tried = memoryview(np.zeros(0, np.int64))
        self.stack_used = self.frame_count = self.stack_count = self.entries = self.context_count = 0
        self.version = 1
        self.tasks = Table(mixer)
        self.executions = Table(mixer)
        self.context_words = memoryview(np.zeros(0, np.uint64))
        self.descriptors = {}
        self.sessions = {}


@cython.cclass
class Sequence:
    """The state of one trusted_packet_sequence_id."""

    def __init__(self, number: object, mixer: cython.ulonglong) -> None:
        self.number = number
        self.valid = False
        self.began = False
        self.names = Names(mixer, False)
        self.inline = None
        self.generation = 0
        self.session = -1
        self.followers = 0
        self.nominal = 0
        self.defaults = b""
        self.stack_defaults = None
        self.clock = 0
        self.cpus = Table(mixer)
        self.counters = memoryview(np.zeros(0, np.uint64))
        self.counted = memoryview(np.zeros(0, np.uint8))
        self.pending = memoryview(np.zeros(0, np.uint64))
        self.pending_count = 0
        self.index = -1
        self.pid = self.tid = 0
        self.time_us = 0
        self.has_time = False


@cython.cclass
class Scanner:
    """Reads packets. `trace` is asked for what is rare: strings, inflating, headers, sessions, ends of heap dumps."""

    def __init__(self, trace: object, mixer: cython.ulonglong) -> None:
        self.trace = trace
        self.mixer = mixer
        self.data = b""
        self.c = Cursor(b"")
        self.sequences = {}
        self.current = None
        self.frames = Tuples(7, mixer)
        self.stacks = Lists(mixer)
        self.contexts = Tuples(7, mixer)
        self.samples = Tuples(2, mixer)
        self.stride = 2
        self.values = memoryview(np.zeros(0, np.int64))
        self.times = memoryview(np.zeros(0, np.int64))
        self.room = MAX_ENTRIES
        self.id_room = MAX_IDS
        self.numbers = memoryview(np.zeros(64, np.uint64))
        self.others = memoryview(np.zeros(64, np.uint64))
        self.numbers_count = self.others_count = 0
        self.machine = self.timestamp = self.clock = 0
        self.has_time = False
        self.broken = False
        self.wanted = 0
        self.packets = self.damaged = self.nested = self.invalid_state = self.losses = self.too_many = 0
        self.rejected = self.saturated = self.out_of_range = self.perf_samples = self.counter_only = 0
        self.records_lost = 0
        self.guardrails = self.bad_streams = self.index_gaps = self.early_heaps = 0
        self.skipped = [0, 0, 0, 0, 0]

    def scan(self, data: bytes) -> int:
        """Read the packets of `data`; up to where, which is short of the end where the last packet goes on behind it.

        `wanted` then tells how many bytes from there the packet has, 0 if not even its length is there. `broken`
        becomes true where what follows is no field of a trace.
        """
        self.data = data
        self.c = Cursor(data)
        return self.walk(0)

    def forget(self) -> None:
        """Wait no longer for the packet that `wanted` tells of."""
        self.wanted = 0

    def walk(self, depth: cython.int) -> cython.Py_ssize_t:
        """Read the packets under the cursor."""
        c: Cursor = self.c
        start: cython.Py_ssize_t
        size: cython.ulonglong
        tag: cython.ulonglong
        self.wanted = 0
        while c.pos < c.end:
            start = c.pos
            tag = varint(c)
            size = 0
            if not c.bad and tag & 7 == 2 and tag >> 3 != 0 and tag >> 32 == 0:
                size = varint(c)
                if not c.bad and size > cython.cast(cython.ulonglong, c.end - c.pos):
                    # No file is as large, and the sum must not wrap.
                    self.wanted = c.pos - start + min(size, INT64_MAX >> 1)
                    c.pos = start
                    break
            elif not c.bad:
                skip(c, tag)
            if c.bad:
                c.bad = False
                c.pos = start
                self.broken = c.end - start >= 20 or self.is_broken(c)
                break
            if tag == 0x0A:
                self.packet(c.pos + cython.cast(cython.Py_ssize_t, size), depth)
            elif tag & 7 == 2:
                c.pos += cython.cast(cython.Py_ssize_t, size)
        return c.pos

    def is_broken(self, c: Cursor) -> cython.bint:
        """Whether the bytes before the end cannot be the beginning of a field."""
        tag: cython.ulonglong = 0
        shift: cython.int = 0
        pos: cython.Py_ssize_t = c.pos
        while pos < c.end and shift < 63:
            tag |= (cython.cast(cython.ulonglong, c.data[pos]) & 0x7F) << shift
            shift += 7
            pos += 1
            if c.data[pos - 1] < 0x80:
                return tag < 8 or tag >> 32 != 0 or tag & 7 in (3, 4, 6, 7)
        return shift > 35

    def sequence(self, number: cython.ulonglong) -> Sequence:
        """The state of a sequence; None for 0, and for more sequences than any trace has."""
        seq: Sequence
        if number == 0:
            return None
        if self.current is not None and self.current.number == number:
            return self.current
        found = self.sequences.get(number)
        if found is None:
            if len(self.sequences) >= MAX_SEQUENCES:
                self.too_many += 1
                return None
            found = self.sequences[number] = Sequence(number, self.mixer)
        seq = found
        self.current = seq
        return seq

    def clear(self, seq: Sequence):  # type: ignore[no-untyped-def]
        """Forget what a sequence interned, and its defaults."""
        self.room += seq.names.entries
        self.id_room += seq.names.stack_used
        seq.names = Names(self.mixer, False)
        seq.valid = True
        seq.generation += 1
        seq.session = -1
        seq.defaults = b""
        seq.stack_defaults = None
        seq.clock = 0
        seq.has_time = False

    def packet(self, end: cython.Py_ssize_t, depth: cython.int):  # type: ignore[no-untyped-def]
        """Read the packet from the cursor to `end`: first its state, then what it interns, then what it carries."""
        c: Cursor = self.c
        outer: cython.Py_ssize_t = c.end
        tag: cython.ulonglong
        value: cython.ulonglong
        number: cython.ulonglong = 0
        flags: cython.ulonglong = 0
        dropped: cython.ulonglong = 0
        first: cython.bint = False
        defaults: cython.Py_ssize_t = -1
        defaults_end: cython.Py_ssize_t = 0
        interned: cython.Py_ssize_t = -1
        interned_end: cython.Py_ssize_t = 0
        kind: cython.ulonglong = 0
        begin: cython.Py_ssize_t = 0
        stop: cython.Py_ssize_t = 0
        seq: Sequence = None
        c.end = end
        self.machine = self.timestamp = self.clock = 0
        self.has_time = False
        self.packets += 1
        while c.pos < end and not c.bad:
            tag = varint(c)
            if tag & 7 == 2:
                value = varint(c)
                if not c.need(value):
                    break
                if tag == 0x62:
                    interned = c.pos
                    interned_end = c.pos + cython.cast(cython.Py_ssize_t, value)
                elif tag == 0x1DA:
                    defaults = c.pos
                    defaults_end = c.pos + cython.cast(cython.Py_ssize_t, value)
                elif (
                    tag == 0x212 or tag == 0x12A or tag == 0x192 or tag == 0x42A or tag == 0x1B2 or tag == 0x43A
                    or tag == 0x12 or tag == 0x32 or tag == 0x15A or tag == 0x162 or tag == 0x16A or tag == 0x17A
                    or tag == 0x1E2 or tag == 0x1EA or tag == 0x202
                ):  # fmt: skip
                    kind = tag
                    begin = c.pos
                    stop = c.pos + cython.cast(cython.Py_ssize_t, value)
                elif tag < 8 or tag >> 32 != 0:
                    c.bad = True
                c.pos += cython.cast(cython.Py_ssize_t, value)
            elif tag & 7 == 0 and tag >= 8:
                value = varint(c)
                if tag == 0x50:
                    number = value & 0xFFFFFFFF
                elif tag == 0x40:
                    self.timestamp = value
                    self.has_time = True
                elif tag == 0x68:
                    flags = value
                elif tag == 0x148:
                    if value != 0:
                        flags |= CLEARED
                elif tag == 0x150:
                    dropped = value
                elif tag == 0x2B8:
                    first = value != 0
                elif tag == 0x1D0:
                    self.clock = value
                elif tag == 0x310:
                    self.machine = value & 0xFFFFFFFF
            else:
                skip(c, tag)
        if c.bad:
            self.damaged += 1
            kind = 0
            interned = defaults = -1
            c.bad = False
        if number != 0 and (flags != 0 or dropped != 0 or first or interned >= 0 or defaults >= 0):
            seq = self.sequence(number)
            if seq is not None:
                if first:
                    seq.began = True
                if flags & CLEARED:
                    self.clear(seq)
                if dropped != 0 and not first:
                    self.losses += 1
                    seq.counted = memoryview(np.zeros(len(seq.counted), np.uint8))
                    seq.began = False
                    seq.has_time = False
                if dropped != 0 and not flags & CLEARED:
                    seq.valid = False
                    seq.has_time = False
                if defaults >= 0:
                    self.trace.defaults(seq, self.text(defaults, defaults_end))
                if interned >= 0 and seq.valid:
                    self.intern(seq, interned, interned_end)
        if kind == 0x192 or kind == 0x42A:
            if depth > 0:
                self.nested += 1
            else:
                self.inner(kind, begin, stop)
        elif kind != 0:
            if flags & NEEDS_STATE and (seq is None or not seq.valid):
                self.invalid_state += 1
            else:
                self.payload(kind, begin, stop, number)
        if c.bad:
            self.damaged += 1
            c.bad = False
        c.pos = end
        c.end = outer

    def inner(self, tag: cython.ulonglong, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        """Read the packets that were compressed into one."""
        inflated = self.trace.inflate(tag >> 3, self.text(begin, end))
        if inflated is None:
            self.damaged += 1
            return
        c: Cursor = self.c
        data = self.data
        self.data = inflated
        self.c = Cursor(inflated)
        wanted: cython.ulonglong = self.wanted
        if self.walk(1) != len(inflated):
            self.damaged += 1
        self.broken = False
        self.wanted = wanted
        self.data = data
        self.c = c

    def payload(  # type: ignore[no-untyped-def]
        self, tag: cython.ulonglong, begin: cython.Py_ssize_t, end: cython.Py_ssize_t, number: cython.ulonglong
    ):
        """Read what a packet carries besides its state."""
        seq: Sequence = self.sequence(number)
        if tag == 0x212 or tag == 0x43A or tag == 0x12A or tag == 0x1B2:
            if seq is None:
                self.invalid_state += 1
            elif tag == 0x212:
                self.perf_sample(seq, begin, end)
            elif tag == 0x43A:
                self.stack_sample(seq, begin, end)
            elif tag == 0x12A:
                self.heap_packet(seq, begin, end)
            else:
                self.streaming(seq, begin, end)
        else:
            time = self.timestamp if self.has_time else None
            self.trace.rare(tag >> 3, self.text(begin, end), seq, self.machine, time)

    def text(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes:
        """Bytes of the data."""
        return self.data[begin:end]  # type: ignore[no-any-return]

    # What is interned

    def takes(self, names: Names, ids: cython.Py_ssize_t) -> cython.bint:
        """Whether there is room for one more entry with so many ids; counts it."""
        if self.room <= 0 or self.id_room < ids:
            self.too_many += 1
            return False
        self.room -= 1
        self.id_room -= ids
        names.entries += 1
        names.version += 1
        return True

    def intern(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        """Enter what a packet interns; the first definition of an id stays."""
        c: Cursor = self.c
        names: Names = seq.names
        tag: cython.ulonglong
        size: cython.ulonglong
        c.pos = begin
        c.end = end
        while c.pos < end and not c.bad:
            tag = varint(c)
            if tag & 7 != 2:
                skip(c, tag)
                continue
            size = varint(c)
            if not c.need(size):
                break
            c.end = c.pos + cython.cast(cython.Py_ssize_t, size)
            if tag == 0x32:
                self.read_frame(names)
            elif tag == 0x3A:
                self.read_stack(names)
            elif tag == 0x2A:
                self.read_string(names.functions, names)
            elif tag == 0x82:
                self.read_string(names.builds, names)
            elif tag == 0x8A:
                self.read_string(names.paths, names)
            elif tag == 0x92:
                self.read_string(names.sources, names)
            elif tag == 0x9A:
                self.read_mapping(names)
            elif tag == 0x182:
                self.read_task(names, -1)
            elif tag == 0x18A:
                self.read_execution(names, -1)
            elif tag == 0x192:
                iid, descriptor = self.trace.descriptor(self.text(c.pos, c.end))
                if iid not in names.descriptors and self.takes(names, 0):
                    names.descriptors[iid] = descriptor
            if not c.bad:
                c.pos = c.end
                c.end = end
        if c.bad:
            # Only what the damage is in is lost.
            self.damaged += 1
            c.bad = False

    def read_string(self, table: Table, names: Names):  # type: ignore[no-untyped-def]
        """Enter an InternedString."""
        c: Cursor = self.c
        tag: cython.ulonglong
        size: cython.ulonglong
        iid: cython.ulonglong = 0
        begin: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = 0
        while c.pos < c.end and not c.bad:
            tag = varint(c)
            if tag == 0x08:
                iid = varint(c)
            elif tag == 0x12:
                size = varint(c)
                if c.need(size):
                    begin = c.pos
                    c.pos += cython.cast(cython.Py_ssize_t, size)
                    end = c.pos
            else:
                skip(c, tag)
        if not c.bad and table.find(iid) < 0 and self.takes(names, 0):
            table.put(iid, self.trace.string(self.text(begin, end)))

    def read_mapping(self, names: Names):  # type: ignore[no-untyped-def]
        """Enter a Mapping: build id, start_offset, start, end, load_bias, exact_offset (None: absent), path ids."""
        c: Cursor = self.c
        tag: cython.ulonglong
        iid: cython.ulonglong = 0
        build: cython.ulonglong = 0
        start_offset: cython.ulonglong = 0
        start: cython.ulonglong = 0
        limit: cython.ulonglong = 0
        bias: cython.ulonglong = 0
        exact: cython.ulonglong = 0
        has_exact: cython.bint = False
        self.numbers_count = 0
        while c.pos < c.end and not c.bad:
            tag = varint(c)
            if tag == 0x08:
                iid = varint(c)
            elif tag == 0x10:
                build = varint(c)
            elif tag == 0x18:
                start_offset = varint(c)
            elif tag == 0x20:
                start = varint(c)
            elif tag == 0x28:
                limit = varint(c)
            elif tag == 0x30:
                bias = varint(c)
            elif tag == 0x38 or tag == 0x3A:
                self.read_numbers(tag)
            elif tag == 0x40:
                exact = varint(c)
                has_exact = True
            else:
                skip(c, tag)
        if c.bad or names.mappings.find(iid) >= 0:
            return
        count = min(self.numbers_count, MAX_PATH_PARTS)
        if self.takes(names, count):
            path = np.asarray(self.numbers)[:count].tolist()
            names.mappings.put(iid, len(names.mapping_records))
            names.mapping_records.append(
                (build, start_offset, start, limit, bias, exact if has_exact else None, tuple(path))
            )
            names.mapping_rows.append(-2)

    def read_frame(self, names: Names):  # type: ignore[no-untyped-def]
        """Enter a Frame."""
        c: Cursor = self.c
        tag: cython.ulonglong
        iid: cython.ulonglong = 0
        function: cython.ulonglong = 0
        mapping: cython.ulonglong = 0
        rel_pc: cython.ulonglong = 0
        source: cython.ulonglong = 0
        line: cython.ulonglong = 0
        kind: cython.ulonglong = 0
        flags: cython.ulonglong = 0
        at: cython.Py_ssize_t
        while c.pos < c.end and not c.bad:
            tag = varint(c)
            if tag == 0x08:
                iid = varint(c)
            elif tag == 0x10:
                function = varint(c)
            elif tag == 0x18:
                mapping = varint(c)
            elif tag == 0x20:
                rel_pc = varint(c)
            elif tag == 0x28:
                source = varint(c)
                flags |= HAS_SOURCE
            elif tag == 0x30:
                line = varint(c) & 0xFFFFFFFF
            elif tag == 0x38:
                kind = varint(c) & 0xFF
            else:
                skip(c, tag)
        if c.bad or names.frames.find(iid) >= 0 or not self.takes(names, 0):
            return
        names.frames.put(iid, names.frame_count)
        at = names.frame_count * FRAME_WORDS
        if at + FRAME_WORDS > names.frame_words.shape[0]:
            names.frame_words = extended(names.frame_words, at + FRAME_WORDS)
        if names.frame_count == names.frame_rows.shape[0]:
            names.frame_rows = extended(names.frame_rows, names.frame_count + 1)
        names.frame_words[at] = function
        names.frame_words[at + 1] = mapping
        names.frame_words[at + 2] = rel_pc
        names.frame_words[at + 3] = source
        names.frame_words[at + 4] = line
        names.frame_words[at + 5] = kind
        names.frame_words[at + 6] = flags
        names.frame_rows[names.frame_count] = -1
        names.frame_count += 1

    def read_stack(self, names: Names):  # type: ignore[no-untyped-def]
        """Enter a Callstack; its frames stay outermost first, as they are written."""
        c: Cursor = self.c
        tag: cython.ulonglong
        iid: cython.ulonglong = 0
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        self.numbers_count = 0
        while c.pos < c.end and not c.bad:
            tag = varint(c)
            if tag == 0x08:
                iid = varint(c)
            elif tag == 0x10 and self.numbers_count < self.numbers.shape[0]:
                self.numbers[self.numbers_count] = varint(c)
                self.numbers_count += 1
            elif tag == 0x10 or tag == 0x12:
                self.read_numbers(tag)
            else:
                skip(c, tag)
        if c.bad or names.stacks.find(iid) >= 0:
            return
        if self.numbers_count > MAX_DEPTH:
            self.too_many += 1
            return
        if not self.takes(names, self.numbers_count):
            return
        row = names.stack_count
        names.stacks.put(iid, row)
        if row == names.stack_rows.shape[0]:
            names.stack_rows = extended(names.stack_rows, row + 1)
            names.stack_tried = extended(names.stack_tried, row + 1)
            names.stack_offsets = extended(names.stack_offsets, names.stack_rows.shape[0] + 1)
        if names.stack_used + self.numbers_count > names.stack_ids.shape[0]:
            names.stack_ids = extended(names.stack_ids, names.stack_used + self.numbers_count)
        for i in range(self.numbers_count):
            names.stack_ids[names.stack_used + i] = self.numbers[i]
        names.stack_used += self.numbers_count
        names.stack_count += 1
        names.stack_offsets[row + 1] = names.stack_used
        names.stack_rows[row] = -1
        names.stack_tried[row] = 0

    def read_numbers(self, tag: cython.ulonglong) -> cython.Py_ssize_t:
        """Add one integer, or a packed list of them, to `numbers`."""
        c: Cursor = self.c
        outer: cython.Py_ssize_t = c.end
        value: cython.ulonglong
        if tag & 7 == 2:
            outer = enter(c)
        while not c.bad and c.pos < c.end:
            value = varint(c)
            if c.bad:
                break
            if self.numbers_count == self.numbers.shape[0]:
                self.numbers = extended(self.numbers, self.numbers_count + 1)
            self.numbers[self.numbers_count] = value
            self.numbers_count += 1
            if tag & 7 != 2:
                return 0
        if tag & 7 == 2:
            leave(c, outer)
        return 0

    # Looking up what was interned

    def text_row(self, table: Table, iid: cython.ulonglong) -> cython.int:
        """The string of an id, where 0 is the empty one; -1 for an unknown id."""
        return 0 if iid == 0 else table.find(iid)

    def mapping(self, names: Names, iid: cython.ulonglong) -> cython.int:
        """The mapping of an id as a row of the whole trace; -1 if it is not there or its build id is not."""
        at: cython.int = names.mappings.find(iid)
        build: cython.int
        path_row: cython.int
        part: cython.ulonglong
        if at < 0:
            return -1
        if names.mapping_rows[at] < 0:
            record = names.mapping_records[at]
            build = self.text_row(names.builds, record[0])
            if build < 0:
                return -1
            parts = []
            for part in record[6]:
                path_row = names.paths.find(part)
                if path_row < 0:
                    break
                parts.append(path_row)
            names.mapping_rows[at] = self.trace.mapping(build, record[1:6], parts)
        return names.mapping_rows[at]

    def frame(self, names: Names, iid: cython.ulonglong) -> cython.int:
        """The frame of an id as a row of the whole trace; -1 if it, or a part of it, is not there."""
        row: cython.int = names.frames.find(iid)
        at: cython.Py_ssize_t
        function: cython.int
        mapping: cython.int = -1
        source: cython.int = 0
        key: cython.ulonglong[::1] = self.frames.key
        if row < 0 or names.frame_rows[row] >= 0:
            return names.frame_rows[row] if row >= 0 else -1
        at = row * FRAME_WORDS
        function = self.text_row(names.functions, names.frame_words[at])
        if function < 0:
            return -1
        if names.frame_words[at + 1] != 0:
            mapping = self.mapping(names, names.frame_words[at + 1])
            if mapping < 0:
                return -1
        if names.frame_words[at + 6] & HAS_SOURCE:
            source = names.sources.find(names.frame_words[at + 3])
            if source < 0:
                return -1
        if self.frames.count >= MAX_FRAMES:
            self.too_many += 1
            return -1
        key[0] = mapping + 1
        key[1] = names.frame_words[at + 2] if mapping >= 0 else 0
        key[2] = function
        key[3] = source
        key[4] = names.frame_words[at + 4]
        key[5] = names.frame_words[at + 5]
        key[6] = 0
        names.frame_rows[row] = self.frames.add()
        return names.frame_rows[row]

    def stack(self, names: Names, iid: cython.ulonglong) -> cython.int:
        """The callstack of an id as a row of the whole trace; -1 if it or a part of it is not there, or it is empty."""
        row: cython.int = names.stacks.find(iid)
        i: cython.Py_ssize_t
        frame: cython.int
        if row < 0:
            return -1
        if names.stack_rows[row] >= 0:
            return names.stack_rows[row]
        if names.stack_tried[row] == names.version or self.stacks.count >= MAX_STACKS:
            return -1
        self.stacks.size = 0
        # From the last to the first: the leaf first.
        i = names.stack_offsets[row + 1]
        if self.stacks.used + i - names.stack_offsets[row] > MAX_STACK_ITEMS:
            self.too_many += 1
            return -1
        while i > names.stack_offsets[row]:
            i -= 1
            frame = self.frame(names, names.stack_ids[i])
            if frame < 0:
                names.stack_tried[row] = names.version
                return -1
            self.stacks.append(frame)
        if self.stacks.size == 0:
            return -1
        names.stack_rows[row] = self.stacks.add()
        return names.stack_rows[row]

    # Samples of the CPU

    def count(  # type: ignore[no-untyped-def]
        self,
        session: cython.int,
        pid: cython.ulonglong,
        tid: cython.ulonglong,
        cpu: cython.ulonglong,
        mode: cython.ulonglong,
        error: cython.ulonglong,
        stack: cython.int,
        weight: cython.ulonglong,
        followers: cython.Py_ssize_t,
    ):
        """Add one sample; the weights of the followers are the first of `others`. `cpu` is one more, 0 unknown."""
        key: cython.ulonglong[::1] = self.contexts.key
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        if self.samples.count >= MAX_SAMPLES:
            self.too_many += 1
            return
        key[0] = session
        key[1] = self.machine
        key[2] = pid
        key[3] = tid
        key[4] = cpu
        key[5] = mode
        key[6] = error
        row = self.contexts.add()
        self.samples.key[0] = row
        self.samples.key[1] = stack
        row = self.samples.add() * self.stride
        if row + self.stride > self.values.shape[0]:
            self.values = extended(self.values, row + self.stride)
        self.values[row] += 1
        self.add_value(row + 1, weight)
        for i in range(min(followers, self.stride - 2)):
            self.add_value(row + 2 + i, self.others[i])
        if self.has_time and self.timestamp <= INT64_MAX:
            if 3 * session + 3 > self.times.shape[0]:
                self.times = extended(self.times, 3 * session + 3)
            if self.times[3 * session] == 0 or self.timestamp < self.times[3 * session]:
                self.times[3 * session] = self.timestamp
            if self.timestamp > self.times[3 * session + 1]:
                self.times[3 * session + 1] = self.timestamp
            self.times[3 * session + 2] = self.clock & INT64_MAX

    def add_value(self, at: cython.Py_ssize_t, value: cython.ulonglong):  # type: ignore[no-untyped-def]
        """Add to a value, which stops at the largest one."""
        if value > INT64_MAX - self.values[at]:
            self.saturated += 1
            self.values[at] = INT64_MAX
        else:
            self.values[at] += value

    def widen(self, followers: cython.Py_ssize_t) -> None:
        """Make room for so many values of followers in each sample."""
        stride: cython.Py_ssize_t = self.stride
        if followers + 2 <= stride:
            return
        old = np.asarray(self.values)[: self.samples.count * stride].reshape(-1, stride)
        new = np.zeros((len(old), followers + 2), np.int64)
        new[:, :stride] = old
        self.values = memoryview(new.reshape(-1))
        self.stride = followers + 2

    def sample_values(self) -> NDArray[np.int64]:
        """Count, weight and weights of followers of all samples: int64[n, stride]."""
        return np.asarray(self.values)[: self.samples.count * self.stride].reshape(-1, self.stride)

    def session_times(self, session: int) -> tuple[int, int, int]:
        """First and last timestamp of a session's samples and their clock; 0 where there are none."""
        if 3 * session + 3 > self.times.shape[0]:
            return 0, 0, 0
        return self.times[3 * session], self.times[3 * session + 1], self.times[3 * session + 2]

    def perf_sample(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        """Read a PerfSample (rules R225, R226)."""
        c: Cursor = self.c
        tag: cython.ulonglong
        cpu: cython.ulonglong = 0
        pid: cython.ulonglong = 0
        tid: cython.ulonglong = 0
        iid: cython.ulonglong = 0
        mode: cython.ulonglong = 0
        total: cython.ulonglong = 0
        error: cython.ulonglong = 0
        lost: cython.ulonglong = 0
        reason: cython.ulonglong = 0
        weight: cython.ulonglong
        timed: cython.bint = False
        skipped: cython.bint = False
        event: cython.bint = False
        stack: cython.int
        c.pos = begin
        c.end = end
        self.numbers_count = 0
        while c.pos < end and not c.bad:
            tag = varint(c)
            if tag == 0x08:
                cpu = varint(c) & 0xFFFFFFFF
            elif tag == 0x10:
                pid = varint(c) & 0xFFFFFFFF
            elif tag == 0x18:
                tid = varint(c) & 0xFFFFFFFF
            elif tag == 0x20:
                iid = varint(c)
            elif tag == 0x28:
                mode = varint(c) & 0xFFFFFFFF
            elif tag == 0x30:
                total = varint(c)
                timed = True
            elif tag == 0x38 or tag == 0x3A:
                self.read_numbers(tag)
            elif tag == 0x80:
                error = varint(c) & 0xFFFFFFFF
            elif tag == 0x88:
                lost = varint(c)
            elif tag == 0x90:
                reason = varint(c)
                skipped = True
            elif tag == 0x9A:
                skip(c, tag)
                event = True
            else:
                skip(c, tag)
        if c.bad:
            return
        if lost > 0:
            self.records_lost += lost
            return
        if event:
            self.guardrails += 1
            return
        if seq.session < 0:
            self.trace.no_defaults(seq)
        weight = self.weigh(seq, cpu, timed, total)
        if skipped:
            self.skipped[reason if reason < 4 else 4 if reason == 4 else 0] += 1
            return
        if iid == 0:
            self.counter_only += 1
            return
        self.perf_samples += 1
        stack = self.stack(seq.names, iid)
        if stack < 0:
            self.rejected += 1
            return
        if self.clock == 0:
            self.clock = seq.clock
        self.count(seq.session, pid, tid, cpu + 1, mode, error, stack, weight, seq.followers)

    def weigh(
        self, seq: Sequence, cpu: cython.ulonglong, timed: cython.bint, total: cython.ulonglong
    ) -> cython.ulonglong:
        """What a sample counts for: how far the counter of its CPU went, those of the followers in `others`.

        A counter that is seen first, went back, or went on while packets were lost, counts for the period; in a
        sequence that is there from its beginning, it began at 0 where there is no period.
        """
        width: cython.Py_ssize_t = seq.followers + 1
        slot: cython.int = seq.cpus.find(cpu)
        at: cython.Py_ssize_t
        i: cython.Py_ssize_t
        known: cython.bint
        weight: cython.ulonglong = seq.nominal
        while self.others.shape[0] < width:
            self.others = extended(self.others, width)
        if slot < 0:
            if seq.cpus.count >= MAX_CPUS:
                for i in range(width - 1):
                    self.others[i] = 0
                return weight
            slot = seq.cpus.count + (seq.cpus.zero >= 0)
            seq.cpus.put(cpu, slot)
        at = slot * width
        if at + width > seq.counters.shape[0]:
            seq.counters = extended(seq.counters, at + width)
        if slot >= seq.counted.shape[0]:
            seq.counted = extended(seq.counted, slot + 1)
        known = seq.counted[slot] != 0
        if timed:
            if known and total >= seq.counters[at]:
                weight = total - seq.counters[at]
            elif weight == 0 and seq.began and not known:
                weight = total
            seq.counters[at] = total
        for i in range(width - 1):
            self.others[i] = 0
            if i < self.numbers_count:
                if known and self.numbers[i] >= seq.counters[at + 1 + i]:
                    self.others[i] = self.numbers[i] - seq.counters[at + 1 + i]
                elif seq.began and not known:
                    self.others[i] = self.numbers[i]
                seq.counters[at + 1 + i] = self.numbers[i]
        if timed or self.numbers_count > 0:
            seq.counted[slot] = 1
        return weight

    def reset_counters(self, seq: Sequence) -> None:
        """Forget the counters of a sequence whose events changed."""
        seq.cpus = Table(self.mixer)
        seq.counters = memoryview(np.zeros(0, np.uint64))
        seq.counted = memoryview(np.zeros(0, np.uint8))

    def streaming(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        """Read a StreamingProfilePacket: one delta of time for each callstack (rule R228)."""
        c: Cursor = self.c
        tag: cython.ulonglong
        i: cython.Py_ssize_t
        deltas: cython.Py_ssize_t
        delta: cython.longlong
        time: cython.longlong
        stack: cython.int
        c.pos = begin
        c.end = end
        self.numbers_count = 0
        while c.pos < end and not c.bad:
            tag = varint(c)
            if tag == 0x10 or tag == 0x12:
                self.read_numbers(tag)
            else:
                skip(c, tag)
        deltas = self.numbers_count
        if self.others.shape[0] < deltas:
            self.others = extended(self.others, deltas)
        for i in range(deltas):
            self.others[i] = self.numbers[i]
        self.numbers_count = 0
        c.pos = begin
        while c.pos < end and not c.bad:
            tag = varint(c)
            if tag == 0x08 or tag == 0x0A:
                self.read_numbers(tag)
            else:
                skip(c, tag)
        if c.bad:
            return
        if not seq.has_time:
            self.bad_streams += self.numbers_count
            return
        session: cython.int = self.trace.stream_session()
        time = seq.time_us
        for i in range(max(deltas, self.numbers_count)):
            if i >= deltas:
                self.bad_streams += self.numbers_count - i
                break
            # A century is more than any trace has; without the limit the sum could leave 64 bits.
            if self.others[i] <= INT64_MAX:
                if self.others[i] > 1 << 52 or time > 1 << 52:
                    self.bad_streams += max(self.numbers_count - i, 0)
                    break
                delta = cython.cast(cython.longlong, self.others[i])
            else:
                if ((~self.others[i]) & MASK64) > 1 << 52:
                    self.bad_streams += max(self.numbers_count - i, 0)
                    break
                delta = -1 - cython.cast(cython.longlong, (~self.others[i]) & MASK64)
            time += delta
            if i >= self.numbers_count:
                continue
            if time < 0:
                self.bad_streams += self.numbers_count - i
                break
            stack = self.stack(seq.names, self.numbers[i])
            if stack < 0:
                self.rejected += 1
                continue
            self.timestamp = cython.cast(cython.ulonglong, time) * 1000
            self.has_time = True
            self.clock = 3
            self.count(session, seq.pid, seq.tid, 0, 0, 0, stack, 1000 * delta if delta > 0 else 0, 0)
        seq.time_us = time if time >= 0 else 0

    # Samples of a profiler that says everything itself

    def read_task(self, names: Names, row: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        """Read a task context: pid and tid. With `row` -1 it is entered, else it becomes this row."""
        c: Cursor = self.c
        tag: cython.ulonglong
        iid: cython.ulonglong = 0
        pid: cython.ulonglong = 0
        tid: cython.ulonglong = 0
        while c.pos < c.end and not c.bad:
            tag = varint(c)
            if tag == 0x08:
                iid = varint(c)
            elif tag == 0x10:
                pid = varint(c) & 0xFFFFFFFF
            elif tag == 0x18:
                tid = varint(c) & 0xFFFFFFFF
            else:
                skip(c, tag)
        if c.bad:
            return
        if row >= 0:
            self.numbers[2 * row] = pid
            self.numbers[2 * row + 1] = tid
        elif names.tasks.find(iid) < 0 and self.takes(names, 0):
            if 2 * names.context_count + 2 > names.context_words.shape[0]:
                names.context_words = extended(names.context_words, 2 * names.context_count + 2)
            names.tasks.put(iid, names.context_count)
            names.context_words[2 * names.context_count] = pid
            names.context_words[2 * names.context_count + 1] = tid
            names.context_count += 1

    def read_execution(self, names: Names, row: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        """Read an execution context: the CPU plus 1, and the mode as PerfSample numbers it."""
        c: Cursor = self.c
        tag: cython.ulonglong
        iid: cython.ulonglong = 0
        cpu: cython.ulonglong = 0
        mode: cython.ulonglong = 0
        while c.pos < c.end and not c.bad:
            tag = varint(c)
            if tag == 0x08:
                iid = varint(c)
            elif tag == 0x10:
                cpu = (varint(c) & 0xFFFFFFFF) + 1
            elif tag == 0x18:
                mode = varint(c)
                mode = (0, 2, 1, 3, 5, 4)[mode] if mode < 6 else 0
            else:
                skip(c, tag)
        if c.bad:
            return
        if row >= 0:
            self.numbers[2 * row] = cpu
            self.numbers[2 * row + 1] = mode
        elif names.executions.find(iid) < 0 and self.takes(names, 0):
            if 2 * names.context_count + 2 > names.context_words.shape[0]:
                names.context_words = extended(names.context_words, 2 * names.context_count + 2)
            names.executions.put(iid, names.context_count)
            names.context_words[2 * names.context_count] = cpu
            names.context_words[2 * names.context_count + 1] = mode
            names.context_count += 1

    def stack_sample(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        """Read a StackSample: what it says by id, in itself, or not at all and leaves to the defaults (rule R229)."""
        c: Cursor = self.c
        names: Names = seq.names
        tag: cython.ulonglong
        value: cython.ulonglong
        outer: cython.Py_ssize_t
        task: cython.ulonglong = 0
        execution: cython.ulonglong = 0
        iid: cython.ulonglong = 0
        inline_begin: cython.Py_ssize_t = -1
        inline_end: cython.Py_ssize_t = 0
        error: cython.ulonglong = 0
        primary: cython.ulonglong = 0
        weight: cython.ulonglong = 1
        weighed: cython.bint = False
        pid: cython.ulonglong = 0
        tid: cython.ulonglong = 0
        cpu: cython.ulonglong = 0
        mode: cython.ulonglong = 0
        row: cython.int
        i: cython.Py_ssize_t
        stack: cython.int
        described = b""
        followed: list[Any] = []
        c.pos = begin
        c.end = end
        self.numbers_count = self.others_count = 0
        while c.pos < end and not c.bad:
            tag = varint(c)
            if tag == 0x0A or tag == 0x1A:
                outer = enter(c)
                if c.bad:
                    break
                if self.numbers.shape[0] < 4:
                    self.numbers = extended(self.numbers, 4)
                if tag == 0x0A:
                    self.read_task(names, 0)
                    pid, tid = self.numbers[0], self.numbers[1]
                else:
                    self.read_execution(names, 1)
                    cpu, mode = self.numbers[2], self.numbers[3]
                leave(c, outer)
            elif tag == 0x10:
                task = varint(c)
            elif tag == 0x20:
                execution = varint(c)
            elif tag == 0x2A:
                outer = enter(c)
                if c.bad:
                    break
                inline_begin, inline_end = c.pos, c.end
                leave(c, outer)
            elif tag == 0x30:
                iid = varint(c)
            elif tag == 0x38:
                error = varint(c) & 0xFFFFFFFF
            elif tag == 0x4A or tag == 0x62:
                outer = enter(c)
                if c.bad:
                    break
                if tag == 0x4A:
                    described = self.text(c.pos, c.end)
                elif len(followed) < MAX_FOLLOWERS:
                    followed.append(self.text(c.pos, c.end))
                leave(c, outer)
            elif tag == 0x50:
                primary = varint(c)
            elif tag == 0x58:
                weight = varint(c)
                weighed = True
            elif tag == 0x68 or tag == 0x6A:
                self.numbers_count = 0
                self.read_numbers(tag)
                followed += np.asarray(self.numbers)[: min(self.numbers_count, MAX_FOLLOWERS)].tolist()
                self.numbers_count = 0
            elif tag == 0x70 or tag == 0x72:
                self.numbers_count = 0
                self.read_numbers(tag)
                while self.others.shape[0] < self.others_count + self.numbers_count:
                    self.others = extended(self.others, self.others_count + self.numbers_count)
                for i in range(self.numbers_count):
                    self.others[self.others_count + i] = self.numbers[i]
                self.others_count += self.numbers_count
                self.numbers_count = 0
            else:
                skip(c, tag)
        if c.bad:
            return
        if task != 0:
            row = names.tasks.find(task)
            if row < 0:
                self.rejected += 1
                return
            pid, tid = names.context_words[2 * row], names.context_words[2 * row + 1]
        if execution != 0:
            row = names.executions.find(execution)
            if row < 0:
                self.rejected += 1
                return
            cpu, mode = names.context_words[2 * row], names.context_words[2 * row + 1]
        self.perf_samples += 1
        if inline_begin < 0 and iid == 0:
            self.counter_only += 1
            return
        key = (primary, described, tuple(followed[:MAX_FOLLOWERS]))
        session = names.sessions.get(key)
        if session is None:
            session = self.trace.stack_session(seq, names.descriptors, *key)
            if self.takes(names, 0):
                names.sessions[key] = session
        if session[0] < 0:
            self.rejected += 1
            return
        stack = self.stack(names, iid) if inline_begin < 0 else self.inline_stack(inline_begin, inline_end)
        if stack < 0:
            self.rejected += 1
            return
        while self.others.shape[0] < session[1]:
            self.others = extended(self.others, session[1])
        for i in range(self.others_count, session[1]):
            self.others[i] = 0
        if self.clock == 0:
            self.clock = seq.clock
        value = weight if weighed else 1
        self.count(session[0], pid, tid, cpu, mode, error, stack, value, session[1])

    def inline_stack(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """The callstack of a StackSample that says its frames itself, outermost first."""
        c: Cursor = self.c
        tag: cython.ulonglong
        outer: cython.Py_ssize_t
        function: cython.int
        source: cython.int
        line: cython.ulonglong
        key: cython.ulonglong[::1] = self.frames.key
        rows: list[int] = []
        c.pos = begin
        c.end = end
        while c.pos < end and not c.bad:
            tag = varint(c)
            if tag != 0x0A:
                skip(c, tag)
                continue
            outer = enter(c)
            function = source = 0
            line = 0
            while c.pos < c.end and not c.bad:
                tag = varint(c)
                if tag == 0x0A or tag == 0x12:
                    size = varint(c)
                    if c.need(size):
                        text = self.trace.string(self.text(c.pos, c.pos + size))
                        if tag == 0x0A:
                            function = text
                        else:
                            source = text
                        c.pos += size
                elif tag == 0x18:
                    line = varint(c) & 0xFFFFFFFF
                else:
                    skip(c, tag)
            leave(c, outer)
            key[0] = key[1] = key[5] = key[6] = 0
            key[2] = function
            key[3] = source
            key[4] = line
            if self.frames.count >= MAX_FRAMES or len(rows) >= MAX_DEPTH:
                self.too_many += 1
                return -1
            rows.append(self.frames.add())
        if c.bad or not rows or self.stacks.count >= MAX_STACKS or self.stacks.used + len(rows) > MAX_STACK_ITEMS:
            return -1
        self.stacks.size = 0
        for row in reversed(rows):
            self.stacks.append(row)
        return self.stacks.add()

    # Heap dumps

    def heap_packet(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        """Read a ProfilePacket; its samples wait until one comes that is not continued (rule R223)."""
        c: Cursor = self.c
        tag: cython.ulonglong
        index: cython.ulonglong = 0
        outer: cython.Py_ssize_t
        continued: cython.bint = False
        c.pos = begin
        c.end = end
        if seq.inline is None:
            seq.inline = Names(self.mixer, True)
        while c.pos < end and not c.bad:
            tag = varint(c)
            if tag & 7 == 2:
                outer = enter(c)
                if c.bad:
                    break
                if tag == 0x0A:
                    self.read_string(seq.inline.functions, seq.inline)
                elif tag == 0x12:
                    self.read_frame(seq.inline)
                elif tag == 0x1A:
                    self.read_stack(seq.inline)
                elif tag == 0x22:
                    self.read_mapping(seq.inline)
                elif tag == 0x2A:
                    self.heap_samples(seq, c.pos, c.end)
                leave(c, outer)
            elif tag == 0x30:
                continued = varint(c) != 0
            elif tag == 0x38:
                index = varint(c)
            else:
                skip(c, tag)
        if index != cython.cast(cython.ulonglong, seq.index + 1):
            self.index_gaps += 1
        seq.index = cython.cast(cython.longlong, index & INT64_MAX)
        if not continued:
            self.finish(seq)

    def heap_samples(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        """Read a ProcessHeapSamples: what it says of itself first, wherever it stands, then its samples."""
        c: Cursor = self.c
        tag: cython.ulonglong
        start: cython.Py_ssize_t
        size: cython.ulonglong
        dump: cython.ulonglong
        counts_max: cython.bint = False
        header: dict[int, Any] = {}
        while c.pos < end and not c.bad:
            tag = varint(c)
            if tag == 0x12:
                size = varint(c)
                if c.need(size):
                    c.pos += cython.cast(cython.Py_ssize_t, size)
            elif tag & 7 == 0:
                header[tag >> 3] = varint(c)
            elif tag & 7 == 2:
                start = enter(c)
                if not c.bad:
                    header[tag >> 3] = self.text(c.pos, c.end)
                leave(c, start)
            else:
                skip(c, tag)
        if c.bad:
            return
        counts_max = header.get(13, 0) != 0
        dump = self.trace.dump(seq, self.machine, self.timestamp, header)
        c.pos = begin
        while c.pos < end and not c.bad:
            tag = varint(c)
            if tag == 0x12:
                size = varint(c)
                if c.need(size):
                    c.end = c.pos + cython.cast(cython.Py_ssize_t, size)
                    self.heap_sample(seq, dump, counts_max)
                    if not c.bad:
                        c.pos = c.end
                        c.end = end
            else:
                skip(c, tag)

    def heap_sample(self, seq: Sequence, dump: cython.ulonglong, counts_max: cython.bint):  # type: ignore[no-untyped-def]
        """Read a HeapSample: callstack, bytes allocated and freed, and how often."""
        c: Cursor = self.c
        tag: cython.ulonglong
        iid: cython.ulonglong = 0
        size: cython.ulonglong = 0
        freed: cython.ulonglong = 0
        count: cython.ulonglong = 0
        frees: cython.ulonglong = 0
        top: cython.ulonglong = 0
        top_count: cython.ulonglong = 0
        has_top: cython.bint = False
        at: cython.Py_ssize_t
        while c.pos < c.end and not c.bad:
            tag = varint(c)
            if tag == 0x08:
                iid = varint(c)
            elif tag == 0x10:
                size = varint(c)
            elif tag == 0x18:
                freed = varint(c)
            elif tag == 0x28:
                count = varint(c)
            elif tag == 0x30:
                frees = varint(c)
            elif tag == 0x40:
                top = varint(c)
                has_top = True
            elif tag == 0x48:
                top_count = varint(c)
            else:
                skip(c, tag)
        if c.bad:
            return
        if has_top:
            size = top
            count = top_count if counts_max else 0
            freed = frees = 0
        if size > INT64_MAX or freed > INT64_MAX or count > INT64_MAX or frees > INT64_MAX:
            self.out_of_range += 1
            return
        if seq.pending_count >= MAX_PENDING:
            self.early_heaps += 1
            self.finish(seq)
        at = seq.pending_count * PENDING_WORDS
        if at + PENDING_WORDS > seq.pending.shape[0]:
            seq.pending = extended(seq.pending, at + PENDING_WORDS)
        seq.pending[at] = dump
        seq.pending[at + 1] = iid
        seq.pending[at + 2] = count
        seq.pending[at + 3] = size
        seq.pending[at + 4] = frees
        seq.pending[at + 5] = freed
        seq.pending_count += 1

    def finish(self, seq: Sequence):  # type: ignore[no-untyped-def]
        """Look up the callstacks of the samples that waited, and hand them to the trace."""
        count: cython.Py_ssize_t = seq.pending_count
        i: cython.Py_ssize_t
        stack: cython.int
        iid: cython.ulonglong
        if count > 0:
            found = np.empty(count, np.int32)
            rows: cython.int[::1] = memoryview(found)
            for i in range(count):
                iid = seq.pending[i * PENDING_WORDS + 1]
                stack = -1
                if seq.inline is not None and seq.inline.stack_count > 0:
                    stack = self.stack(seq.inline, iid)
                if stack < 0:
                    stack = self.stack(seq.names, iid)
                rows[i] = stack
            waiting = np.asarray(seq.pending)[: count * PENDING_WORDS].reshape(-1, PENDING_WORDS)
            self.trace.finish(seq, waiting, found)
            seq.pending_count = 0
            if seq.pending.shape[0] > 1 << 20:
                seq.pending = memoryview(np.zeros(0, np.uint64))
        if seq.inline is not None:
            self.room += seq.inline.entries
            self.id_room += seq.inline.stack_used
            seq.inline = None

    def finish_all(self) -> None:
        """End the heap dumps whose last packet did not come."""
        for seq in self.sequences.values():
            self.end_dump(seq)

    def end_dump(self, seq: Sequence) -> None:
        """End the heap dump of one sequence, if one is open."""
        if seq.pending_count > 0:
            self.early_heaps += 1
            self.finish(seq)
