# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""What the readers of all packets share: the bytes and the field read last, the tables of a trace, and its limits."""

import cython
import numpy as np

from symbolize.core.arrays import extended

if not cython.compiled:
    from symbolize.core.interning import Lists, Tuples

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

MAX_ENTRIES = 1 << 21
"""Interned entries that are alive at one time, of all sequences together."""
MAX_IDS = 1 << 24
"""Frames in all interned callstacks, and parts of all paths, that are alive at one time."""
MAX_FRAMES = 1 << 21
MAX_STACKS = 1 << 21
MAX_STACK_ITEMS = 1 << 25
"""Distinct frames and callstacks of a whole trace, and the frames in those."""
MAX_COUNTERS = 1 << 22
"""Counters of all CPUs of all sequences."""


@cython.cclass
class Common:
    """The bytes under the cursor and the packet that they are of. `trace` is asked for what is rare."""

    def __init__(self, trace: object, mixer: cython.ulonglong) -> None:
        self.trace = trace
        self.mixer = mixer
        self.start(b"")
        self.tag = self.value = 0
        self.begin = 0
        self.numbers = memoryview(np.zeros(64, np.uint64))
        self.numbers_count = 0
        self.machine = self.timestamp = self.clock = 0
        self.has_time = False
        self.frames = Tuples(5, mixer)
        self.stacks = Lists(mixer)
        self.max_frames, self.max_stacks, self.max_items = MAX_FRAMES, MAX_STACKS, MAX_STACK_ITEMS
        self.room = MAX_ENTRIES
        self.id_room = MAX_IDS
        self.counter_room = MAX_COUNTERS
        self.damaged = self.too_many = 0

    def start(self, data: bytes) -> None:
        """Put the cursor at the beginning of other data."""
        self.data = data
        self.view = data
        self.pos = 0
        self.end = len(data)
        self.bad = False

    def varint(self) -> cython.ulonglong:
        """The next varint; one of more than ten bytes is damage (protobuf encoding)."""
        value: cython.ulonglong = 0
        byte: cython.ulonglong
        shift: cython.int = 0
        pos: cython.Py_ssize_t = self.pos
        while pos < self.end and shift < 70:
            byte = self.view[pos]
            pos += 1
            value |= ((byte & 0x7F) << shift) & MASK64
            if byte < 0x80:
                self.pos = pos
                return value
            shift += 7
        self.bad = True
        return 0

    def field(self) -> cython.bint:
        """Read the next field before the end of the cursor; False where there is none, or it is damaged.

        `tag` is its tag and `value` its number. A field of bytes has `value` of them, from `begin` to the cursor.
        Groups are damage, as they are for pprof.
        """
        pos: cython.Py_ssize_t = self.pos
        end: cython.Py_ssize_t = self.end
        tag: cython.ulonglong
        byte: cython.ulonglong
        value: cython.ulonglong = 0
        shift: cython.int = 0
        if self.bad or pos >= end:
            return False
        tag = self.view[pos]
        pos += 1
        if tag > 0x7F:
            tag = self.varint()
            if self.bad:
                return False
            pos = self.pos
        if tag < 8 or tag >> 32 != 0:
            self.bad = True
            return False
        self.tag = tag
        if tag & 5 == 0:
            while True:
                if pos >= end or shift > 63:
                    self.bad = True
                    return False
                byte = self.view[pos]
                pos += 1
                value |= ((byte & 0x7F) << shift) & MASK64
                if byte < 0x80:
                    break
                shift += 7
            self.value = value
            if tag & 2:
                if value > cython.cast(cython.ulonglong, end - pos):
                    self.bad = True
                    return False
                self.begin = pos
                pos += cython.cast(cython.Py_ssize_t, value)
        elif tag & 7 == 1 and end - pos >= 8:
            pos += 8
        elif tag & 7 == 5 and end - pos >= 4:
            pos += 4
        else:
            self.bad = True
            return False
        self.pos = pos
        return True

    def enter(self) -> cython.Py_ssize_t:
        """Go back into the field of bytes that was read; the end of the message around it, to give to `leave`."""
        outer: cython.Py_ssize_t = self.end
        self.end = self.pos
        self.pos = self.begin
        return outer

    def leave(self, outer: cython.Py_ssize_t) -> cython.void:
        """Go on behind the field that was entered; damage inside of it stays noted until `forgive` is asked."""
        self.pos = self.end
        self.end = outer

    def forgive(self) -> cython.bint:
        """Whether there was damage, which is then over."""
        bad: cython.bint = self.bad
        self.bad = False
        return bad

    def content(self) -> bytes:
        """The bytes of the field that was read."""
        return self.data[self.begin : self.pos]

    def text(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes:
        """Bytes of the data."""
        return self.data[begin:end]

    def take_numbers(self, limit: cython.Py_ssize_t):
        """Add what the field that was read has, a number or packed ones, to `numbers`; up to one more than `limit`."""
        outer: cython.Py_ssize_t
        value: cython.ulonglong
        if self.tag & 7 == 0:
            if self.numbers_count <= limit:
                self.add_number(self.value)
            return
        outer = self.enter()
        while self.pos < self.end and self.numbers_count <= limit:
            value = self.varint()
            if self.bad:
                break
            self.add_number(value)
        self.leave(outer)

    def take_run(self, tag: cython.ulonglong, limit: cython.Py_ssize_t):
        """Add the numbers of the fields that follow and have this tag, of one byte, as long as `numbers` has room."""
        pos: cython.Py_ssize_t = self.pos
        count: cython.Py_ssize_t = self.numbers_count
        room: cython.Py_ssize_t = min(self.numbers.shape[0], limit)
        byte: cython.ulonglong
        value: cython.ulonglong
        shift: cython.int
        while count < room and self.end - pos >= 2 and self.view[pos] == tag:
            pos += 1
            value = 0
            shift = 0
            while True:
                if pos >= self.end or shift > 63:
                    self.bad = True
                    return
                byte = self.view[pos]
                pos += 1
                value |= ((byte & 0x7F) << shift) & MASK64
                if byte < 0x80:
                    break
                shift += 7
            self.numbers[count] = value
            count += 1
            self.numbers_count = count
            self.pos = pos

    def add_number(self, value: cython.ulonglong):
        """Add to `numbers`."""
        if self.numbers_count == self.numbers.shape[0]:
            self.numbers = extended(self.numbers, self.numbers_count + 1)
        self.numbers[self.numbers_count] = value
        self.numbers_count += 1
