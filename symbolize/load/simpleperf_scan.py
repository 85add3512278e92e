# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""The records of a simpleperf report_sample file, piece by piece into tables of what is distinct.

A frame, a stack and, as long as no order in time is asked for, a sample stand once in their table, so the tables
grow with what is distinct in the file and not with its length. The constants are field tags as they stand on the
wire: field number << 3 | wire type.
"""

from typing import Any

import cython
import numpy as np

if not cython.compiled:
    from symbolize.cursor import Cursor
    from symbolize.load.pprof_scan import enter, leave, skip, varint

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
TOP = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)

MAX_RECORD: int = 1 << 27
"""Bytes that no record reaches: the largest hold the symbols of one file."""

RECORD_LIMIT = cython.declare(cython.ulonglong, 1 << 27)

MORE: int = 0
"""The data ends before the next record does."""
OTHER: int = 1
"""A record for the caller: its message is of `Scan.kind` and stands at `begin:end`."""
FULL: int = 2
"""A table is full: `Scan.grow`, and scan again."""
BAD: int = 3
"""What stands here is no record; the next one would begin at `Scan.end`."""
TOO_LARGE: int = 4
"""The next record would have more than `MAX_RECORD` bytes."""
ENDED: int = 5
"""The mark behind the last record."""

C_MORE = cython.declare(cython.int, 0)
C_OTHER = cython.declare(cython.int, 1)
C_FULL = cython.declare(cython.int, 2)
C_BAD = cython.declare(cython.int, 3)
C_TOO_LARGE = cython.declare(cython.int, 4)
C_ENDED = cython.declare(cython.int, 5)

SAMPLE = cython.declare(cython.int, 0x0A)
SWITCH = cython.declare(cython.int, 0x32)

CHAINS: int = 1 << 17
CHAIN_BYTES: int = 48 << 20
"""How many encoded stacks, and bytes of them, are known again as they stand. Others are decoded every time."""

NO_EXECUTION: int = 255
"""The execution type of a frame that does not have one."""
C_NO_EXECUTION = cython.declare(cython.int, 255)

SWITCHED = cython.declare(cython.longlong, -1)
"""The kind of a row that is no sample: the thread came back on a processor."""

NATIVE: int = 0
JAVA: int = 1
ART: int = 2
TRAMPOLINE: int = 3
"""What a frame is for `mark_art`."""
C_JAVA = cython.declare(cython.int, 1)
C_ART = cython.declare(cython.int, 2)
C_TRAMPOLINE = cython.declare(cython.int, 3)


@cython.cclass
class Scan:
    """The tables, and where the scan stands.

    `mixer` comes from the caller, at random, so that no file can choose what collides. At first every sample and every
    switch to a processor is a row, in the order of the file; after `merge_samples` equal samples are one row.
    """

    def __init__(self, mixer: cython.ulonglong) -> None:
        self.mixer = mixer | 1
        self.keeps_order = True
        self.pos = self.begin = self.end = self.frames_wanted = 0
        self.kind = 0
        self.left_out = self.samples = self.failed = 0
        self.total = self.last_time = 0
        self.first_time = MASK64
        self.overflow = False
        self.frames = self.stacks = self.rows = 0
        self.span_begin = self.span_end = 0
        self.frame_columns, self.stack_columns, self.row_columns = no_columns(), no_columns(), no_columns()
        self.items_column = np.zeros(1, np.int32)
        self.chain_bytes = np.empty(CHAIN_BYTES, np.uint8).data
        self.chain_table = np.zeros((slots_for(CHAINS), 4), np.int64).data
        self.chains = self.chain_used = 0
        self.grow_frames(1 << 10)
        self.grow_stacks(1 << 8)
        self.grow_items(1 << 12)
        self.grow_rows(1 << 8)

    def grow(self) -> None:
        """Make room for one more sample with `frames_wanted` frames."""
        frames: Any = self.frames
        stacks: Any = self.stacks
        rows: Any = self.rows
        wanted: Any = self.frames_wanted
        used: Any = self.stack_ends[self.stacks - 1] if self.stacks else 0
        if frames + wanted > len(self.vaddr):
            self.grow_frames(max(2 * len(self.vaddr), frames + wanted))
        if used + wanted > len(self.items):
            self.grow_items(max(len(self.items) * 5 // 4, used + wanted))
        if stacks == len(self.stack_ends):
            self.grow_stacks(2 * stacks)
        if rows == len(self.row_table):
            self.grow_rows(2 * rows)

    def grow_frames(self, size: int) -> None:
        """Give the table of frames `size` rows."""
        columns = [np.zeros(size, kind) for kind in (np.uint64, np.uint32, np.int32, np.uint8)]
        slots = np.zeros(slots_for(size), np.int32)
        keep(self.frame_columns, columns, self.frames)
        self.frame_columns = columns
        self.vaddr, self.file, self.symbol, self.execution = (each.data for each in columns)
        self.frame_slots = slots.data
        rehash_frames(self)

    def grow_stacks(self, size: int) -> None:
        """Give the table of stacks `size` rows."""
        columns = [np.zeros(size, np.int64)]
        keep(self.stack_columns, columns, self.stacks)
        self.stack_columns = columns
        self.stack_ends = columns[0].data
        self.stack_slots = np.zeros(slots_for(size), np.int32).data
        rehash_stacks(self)

    def grow_items(self, size: int) -> None:
        """Give all stacks together `size` frames; in place, since they are most of the memory."""
        self.items = np.zeros(1, np.int32).data  # nobody may look on while the memory moves
        self.items_column.resize(size, refcheck=False)
        self.items = self.items_column.data

    def grow_rows(self, size: int) -> None:
        """Give the table of samples `size` rows."""
        columns = [np.zeros((size, 4), np.int64), np.zeros(size if self.keeps_order else 0, np.uint64)]
        keep(self.row_columns, columns, self.rows)
        self.row_columns = columns
        self.row_table = columns[0].data
        self.row_time = columns[1].data
        self.row_slots = np.zeros(1 if self.keeps_order else slots_for(size), np.int32).data
        rehash_rows(self)

    def merge_samples(self) -> None:
        """Give equal samples one row from now on, unless rows are there already."""
        if self.rows == 0:
            self.keeps_order = False
            self.grow_rows(len(self.row_table))


def finish(s: Scan) -> None:
    """Give back the memory of what only the reading of records needs."""
    s.chain_bytes = np.zeros(1, np.uint8).data
    s.chain_table = np.zeros((1, 4), np.int64).data
    s.frame_slots = s.row_slots = np.zeros(1, np.int32).data


def drop_rows(s: Scan) -> None:
    """Give back the memory of the rows."""
    s.row_columns = no_columns()
    s.row_table = np.zeros((1, 4), np.int64).data
    s.row_time = np.zeros(1, np.uint64).data
    s.rows = 0


def no_columns() -> list[Any]:
    """A table that has no columns yet."""
    return []


def slots_for(size: int) -> int:
    """The slots of a hash table that is at most half full with `size` rows."""
    return 2 << (size - 1).bit_length()


def rows_of(s: Scan) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """The rows as columns: stack (-1: none, the thread came back), thread, event, error, samples, value, time."""
    table = s.row_columns[0][: s.rows]
    what, kind = table[:, 0], table[:, 1]
    stack = np.where(kind < 0, -1, what >> 32).astype(np.int32)
    thread = (what & 0xFFFFFFFF).astype(np.uint32)
    event = (kind >> 8 & 0xFFFFFFFF).astype(np.uint32)
    return (
        stack,
        thread,
        event,
        (kind & 0xFF).astype(np.uint8),
        table[:, 2].copy(),
        table[:, 3].copy(),
        s.row_columns[1][: s.rows],
    )


def keep(old: Any, new: Any, count: Any) -> None:
    """Copy the first `count` rows of all columns."""
    if old:
        for source, target in zip(old, new, strict=True):
            target[:count] = source[: min(count, len(target))]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mixed(s: Scan, hash: cython.ulonglong, value: cython.ulonglong) -> cython.ulonglong:
    """The hash with one more value in it."""
    hash = ((hash ^ value) * s.mixer) & MASK64
    return hash ^ (hash >> 29)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def slot_of(hash: cython.ulonglong, slots: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where to look first in a table of `slots` slots, a power of two."""
    return (hash ^ (hash >> 32)) & cython.cast(cython.ulonglong, slots - 1)


def frame_hash(
    s: Scan, vaddr: cython.ulonglong, file: cython.uint, symbol: cython.int, execution: cython.int
) -> cython.ulonglong:
    """The hash of a frame."""
    rest: cython.ulonglong = cython.cast(cython.ulonglong, file) << 32
    rest |= cython.cast(cython.ulonglong, symbol) & MASK32
    return mixed(s, mixed(s, mixed(s, 0, vaddr), rest), execution)


def stack_hash(s: Scan, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
    """The hash of the stack whose frames stand at `begin:end` of the items."""
    hash: cython.ulonglong = s.mixer
    i: cython.Py_ssize_t
    for i in range(begin, end):
        hash = mixed(s, hash, s.items[i])
    return hash


def row_hash(s: Scan, what: cython.longlong, kind: cython.longlong) -> cython.ulonglong:
    """The hash of a sample."""
    return mixed(s, mixed(s, 0, cython.cast(cython.ulonglong, what)), cython.cast(cython.ulonglong, kind))


def rehash_frames(s: Scan) -> None:
    """Enter all frames into new slots."""
    i: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    size: cython.Py_ssize_t = len(s.frame_slots)
    with cython.nogil:
        for i in range(s.frames):
            slot = slot_of(frame_hash(s, s.vaddr[i], s.file[i], s.symbol[i], s.execution[i]), size)
            while s.frame_slots[slot] != 0:
                slot = (slot + 1) & (size - 1)
            s.frame_slots[slot] = i + 1


def rehash_stacks(s: Scan) -> None:
    """Enter all stacks into new slots."""
    i: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    begin: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = len(s.stack_slots)
    with cython.nogil:
        for i in range(s.stacks):
            slot = slot_of(stack_hash(s, begin, s.stack_ends[i]), size)
            begin = s.stack_ends[i]
            while s.stack_slots[slot] != 0:
                slot = (slot + 1) & (size - 1)
            s.stack_slots[slot] = i + 1


def rehash_rows(s: Scan) -> None:
    """Enter all samples into new slots, if equal ones are to be found."""
    i: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    size: cython.Py_ssize_t = len(s.row_slots)
    if s.keeps_order:
        return
    with cython.nogil:
        for i in range(s.rows):
            slot = slot_of(row_hash(s, s.row_table[i, 0], s.row_table[i, 1]), size)
            while s.row_slots[slot] != 0:
                slot = (slot + 1) & (size - 1)
            s.row_slots[slot] = i + 1


def intern_frame(
    s: Scan, vaddr: cython.ulonglong, file: cython.uint, symbol: cython.int, execution: cython.int
) -> cython.int:
    """The row of a frame, which is added if it is new."""
    size: cython.Py_ssize_t = len(s.frame_slots)
    slot: cython.Py_ssize_t = slot_of(frame_hash(s, vaddr, file, symbol, execution), size)
    row: cython.Py_ssize_t
    while s.frame_slots[slot] != 0:
        row = s.frame_slots[slot] - 1
        if s.vaddr[row] == vaddr and s.file[row] == file and s.symbol[row] == symbol and s.execution[row] == execution:
            return row
        slot = (slot + 1) & (size - 1)
    row = s.frames
    s.vaddr[row] = vaddr
    s.file[row] = file
    s.symbol[row] = symbol
    s.execution[row] = execution
    s.frames += 1
    s.frame_slots[slot] = s.frames
    return row


def intern_stack(s: Scan, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """The row of the stack that stands behind the last one at `begin:end` of the items; it stays there if it is new."""
    size: cython.Py_ssize_t = len(s.stack_slots)
    slot: cython.Py_ssize_t = slot_of(stack_hash(s, begin, end), size)
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    i: cython.Py_ssize_t
    while s.stack_slots[slot] != 0:
        row = s.stack_slots[slot] - 1
        at = s.stack_ends[row - 1] if row > 0 else 0
        if s.stack_ends[row] - at == end - begin:
            i = begin
            while i < end and s.items[i] == s.items[at + i - begin]:
                i += 1
            if i == end:
                return row
        slot = (slot + 1) & (size - 1)
    row = s.stacks
    s.stack_ends[row] = end
    s.stacks += 1
    s.stack_slots[slot] = s.stacks
    return row


def new_row(s: Scan, what: cython.longlong, kind: cython.longlong) -> cython.Py_ssize_t:
    """A new row."""
    row: cython.Py_ssize_t = s.rows
    s.row_table[row, 0] = what
    s.row_table[row, 1] = kind
    s.rows += 1
    return row


def row_for(s: Scan, what: cython.longlong, kind: cython.longlong) -> cython.Py_ssize_t:
    """The row of samples like this, which is added if it is new."""
    size: cython.Py_ssize_t = len(s.row_slots)
    slot: cython.Py_ssize_t = slot_of(row_hash(s, what, kind), size)
    row: cython.Py_ssize_t
    while s.row_slots[slot] != 0:
        row = s.row_slots[slot] - 1
        if s.row_table[row, 0] == what and s.row_table[row, 1] == kind:
            return row
        slot = (slot + 1) & (size - 1)
    row = new_row(s, what, kind)
    s.row_slots[slot] = s.rows
    return row


LAST_RECORD = cython.declare(cython.ulonglong, 6)
LAST_SAMPLE = cython.declare(cython.ulonglong, 6)
LAST_FRAME = cython.declare(cython.ulonglong, 4)
LAST_RESULT = cython.declare(cython.ulonglong, 3)
LAST_SWITCH = cython.declare(cython.ulonglong, 3)
"""The highest numbers of fields that the schema knows."""


def skip_unknown(c: Cursor, tag: cython.ulonglong, last: cython.ulonglong) -> cython.void:
    """Move over a field that is none of the message's. One of a known number, up to `last`, has another wire type than
    the schema says: the message is bad (rule R275)."""
    skip(c, tag)
    if tag >> 3 <= last:
        c.bad = True


def count_entries(data: object, numbers: cython.ulonglong, texts: cython.ulonglong, lists: cython.ulonglong) -> int:
    """How many entries the lists of a message have, -1 if a field of it is damaged or of another wire type.

    Bits by field number say which fields are integers (`numbers`), which bytes (`texts`), and which of these are
    repeated (`lists`).
    """
    c: Cursor = Cursor(data)
    count: cython.Py_ssize_t = 0
    tag: cython.ulonglong
    bit: cython.ulonglong
    with cython.nogil:
        while c.pos < c.end and not c.bad:
            tag = varint(c)
            skip(c, tag)
            bit = cython.cast(cython.ulonglong, 1) << (tag >> 3) if tag >> 3 < 64 else 0
            if (numbers & bit and tag & 7 != 0) or (texts & bit and tag & 7 != 2):
                c.bad = True
            if lists & bit:
                count += 1
    return -1 if c.bad else count


def open_record(s: Scan, c: Cursor) -> cython.int:
    """The kind of message in the record under the cursor, and where it stands; of several the last counts (protobuf
    oneof). 0: none that we know."""
    kind: cython.int = 0
    tag: cython.ulonglong
    outer: cython.Py_ssize_t
    while c.pos < c.end and not c.bad:
        tag = varint(c)
        if tag in (0x0A, 0x12, 0x1A, 0x22, 0x2A, 0x32):
            outer = enter(c)
            if not c.bad:
                kind = tag
                s.span_begin = c.pos
                s.span_end = c.end
            leave(c, outer)
        else:
            skip_unknown(c, tag, LAST_RECORD)
    return kind


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def number(c: Cursor) -> cython.ulonglong:
    """The next varint, as `varint` reads it; most are of one byte."""
    value: cython.ulonglong
    shift: cython.int = 7
    pos: cython.Py_ssize_t = c.pos
    if pos >= c.end or c.data[pos] < 0x80:
        if pos >= c.end:
            c.bad = True
            return 0
        c.pos = pos + 1
        return c.data[pos]
    value = c.data[pos] & 0x7F
    pos += 1
    while pos < c.end and shift < 70:
        value |= (cython.cast(cython.ulonglong, c.data[pos] & 0x7F) << shift) & MASK64
        pos += 1
        if c.data[pos - 1] < 0x80:
            c.pos = pos
            return value
        shift += 7
    c.bad = True
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def next_other(
    data: cython.const[cython.uchar][::1], pos: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the short frames at `pos`, one after another, end; the caller checks that this is not behind `end`."""
    if pos < 0 or end > len(data):
        return pos
    while end - pos >= 2 and data[pos] == 0x1A and data[pos + 1] < 0x80:
        pos += 2 + data[pos + 1]
    return pos


def outline(s: Scan, c: Cursor) -> cython.void:
    """Read all of the sample under the cursor but its frames, and where these stand."""
    start: cython.Py_ssize_t
    outer: cython.Py_ssize_t
    tag: cython.ulonglong
    s.time = s.value = 0
    s.thread = s.event = 0
    s.error = 0
    s.unwinding_failed = False
    s.chain_begin = s.chain_end = 0
    s.in_one_piece = True
    while c.pos < c.end and not c.bad:
        start = c.pos
        c.pos = next_other(c.data, start, c.end)
        if c.pos > c.end:
            c.pos = start
            c.bad = True
        tag = 0x1A
        if c.pos == start and not c.bad:
            tag = number(c)
            if tag == 0x1A:
                skip(c, tag)
        if tag == 0x1A:
            if s.chain_end == 0:
                s.chain_begin = start
            elif s.chain_end != start:
                s.in_one_piece = False
            s.chain_end = c.pos
        elif tag == 0x08:
            s.time = varint(c)
        elif tag == 0x10:
            s.thread = varint(c) & MASK32
        elif tag == 0x20:
            s.value = varint(c)
        elif tag == 0x28:
            s.event = varint(c) & MASK32
        elif tag == 0x32:
            outer = enter(c)
            s.error = read_error(c)
            s.unwinding_failed = True
            leave(c, outer)
        else:
            skip_unknown(c, tag, LAST_SAMPLE)


def count_frames(c: Cursor) -> cython.Py_ssize_t:
    """How many frames the sample under the cursor has."""
    count: cython.Py_ssize_t = 0
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        tag = number(c)
        skip(c, tag)
        count += tag == 0x1A
    return count


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def chain_hash(
    data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t, mixer: cython.ulonglong
) -> cython.ulonglong:
    """The hash of `data[begin:end]`. Bounds are checked once, not for each of the bytes, which are most of a file."""
    hash: cython.ulonglong = mixer
    word: cython.ulonglong
    i: cython.Py_ssize_t = begin
    if begin < 0 or end > len(data):
        return 0
    while end - i >= 8:
        word = data[i]
        word |= cython.cast(cython.ulonglong, data[i + 1]) << 8
        word |= cython.cast(cython.ulonglong, data[i + 2]) << 16
        word |= cython.cast(cython.ulonglong, data[i + 3]) << 24
        word |= cython.cast(cython.ulonglong, data[i + 4]) << 32
        word |= cython.cast(cython.ulonglong, data[i + 5]) << 40
        word |= cython.cast(cython.ulonglong, data[i + 6]) << 48
        word |= cython.cast(cython.ulonglong, data[i + 7]) << 56
        hash = ((hash ^ word) * mixer) & MASK64
        hash ^= hash >> 29
        i += 8
    word = end - begin
    while i < end:
        word = (word << 8) & MASK64 | data[i]
        i += 1
    hash = ((hash ^ word) * mixer) & MASK64
    return hash ^ (hash >> 29)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def is_same(
    data: cython.const[cython.uchar][::1],
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    known: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
) -> cython.bint:
    """Whether `data[begin:end]` stands in `known` at `at`; bounds are checked once."""
    i: cython.Py_ssize_t = 0
    differs: cython.int = 0
    size: cython.Py_ssize_t = end - begin
    if begin < 0 or at < 0 or end > len(data) or size > len(known) - at:
        return False
    while size - i >= 8 and differs == 0:
        # Without a jump for each byte.
        differs = (data[begin + i] ^ known[at + i]) | (data[begin + i + 1] ^ known[at + i + 1])
        differs |= (data[begin + i + 2] ^ known[at + i + 2]) | (data[begin + i + 3] ^ known[at + i + 3])
        differs |= (data[begin + i + 4] ^ known[at + i + 4]) | (data[begin + i + 5] ^ known[at + i + 5])
        differs |= (data[begin + i + 6] ^ known[at + i + 6]) | (data[begin + i + 7] ^ known[at + i + 7])
        i += 8
    while i < size and differs == 0:
        differs = data[begin + i] ^ known[at + i]
        i += 1
    return differs == 0


def known_chain(s: Scan, c: Cursor) -> cython.int:
    """The stack of the encoded frames at `chain_begin:chain_end`, if they were seen before, or -1; notes the slot."""
    size: cython.Py_ssize_t = len(s.chain_table)
    begin: cython.Py_ssize_t = s.chain_begin
    end: cython.Py_ssize_t = s.chain_end
    # One bit less, so that it is the same number signed.
    hash: cython.longlong = chain_hash(c.data, begin, end, s.mixer) & TOP
    slot: cython.Py_ssize_t = slot_of(hash, size)
    s.chain_hash = hash
    # A slot is one line of the cache: hash, where the bytes begin, how many they are, and the stack plus 1 (0: free).
    while s.chain_table[slot, 3] != 0:
        if s.chain_table[slot, 0] == hash and s.chain_table[slot, 2] == end - begin:
            if is_same(c.data, begin, end, s.chain_bytes, s.chain_table[slot, 1]):
                return cython.cast(cython.int, s.chain_table[slot, 3] - 1)
        slot = (slot + 1) & (size - 1)
    s.chain_slot = slot
    return -1


def remember_chain(s: Scan, c: Cursor, stack: cython.longlong) -> cython.void:
    """Know the encoded frames at `chain_begin:chain_end` from now on, while there is room."""
    i: cython.Py_ssize_t
    size: cython.Py_ssize_t = s.chain_end - s.chain_begin
    if 2 * s.chains < len(s.chain_table) and size <= len(s.chain_bytes) - s.chain_used:
        for i in range(size):
            s.chain_bytes[s.chain_used + i] = c.data[s.chain_begin + i]
        s.chain_table[s.chain_slot, 0] = s.chain_hash
        s.chain_table[s.chain_slot, 1] = s.chain_used
        s.chain_table[s.chain_slot, 2] = size
        s.chain_table[s.chain_slot, 3] = stack + 1
        s.chain_used += size
        s.chains += 1


def has_room(s: Scan, frames: cython.Py_ssize_t) -> cython.bint:
    """Whether one more sample with that many frames fits into all tables."""
    used: cython.Py_ssize_t = s.stack_ends[s.stacks - 1] if s.stacks > 0 else 0
    return (
        s.frames + frames <= len(s.vaddr)
        and used + frames <= len(s.items)
        and s.stacks < len(s.stack_ends)
        and s.rows < len(s.row_table)
    )


def low32(value: cython.ulonglong) -> cython.int:
    """The low 32 bits as a signed number, which is how an int32 is read (protobuf encoding)."""
    if cython.compiled:
        return cython.cast(cython.int, value & MASK32)
    value &= MASK32
    return value - (1 << 32) if value >> 31 else value


def read_frame(s: Scan, c: Cursor) -> cython.int:
    """The row of the frame under the cursor."""
    vaddr: cython.ulonglong = 0
    file: cython.uint = 0
    symbol: cython.int = 0
    execution: cython.int = C_NO_EXECUTION
    value: cython.ulonglong
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        tag = number(c)
        if tag == 0x08:
            vaddr = number(c)
        elif tag == 0x10:
            file = number(c) & MASK32
        elif tag == 0x18:
            symbol = low32(number(c))
        elif tag == 0x20:
            value = number(c)
            if value <= 3:
                execution = value
        else:
            skip_unknown(c, tag, LAST_FRAME)
    return -1 if c.bad else intern_frame(s, vaddr, file, symbol, execution)


def read_error(c: Cursor) -> cython.int:
    """The error code of the unwinding result under the cursor, at most 255."""
    error: cython.int = 0
    value: cython.ulonglong
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        tag = varint(c)
        if tag == 0x18:
            value = varint(c)
            error = 255 if value > 255 else value
        elif tag == 0x08 or tag == 0x10:
            skip(c, tag)
        else:
            skip_unknown(c, tag, LAST_RESULT)
    return error


def read_stack(s: Scan, c: Cursor) -> cython.int:
    """The row of the stack of the sample under the cursor; -1 if it is damaged. There has to be room."""
    begin: cython.Py_ssize_t = s.stack_ends[s.stacks - 1] if s.stacks > 0 else 0
    at: cython.Py_ssize_t = begin
    outer: cython.Py_ssize_t
    size: cython.ulonglong
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        tag = number(c)
        if tag == 0x1A:
            outer = c.end
            size = number(c)
            if c.need(size):
                c.end = c.pos + cython.cast(cython.Py_ssize_t, size)
                s.items[at] = read_frame(s, c)
                at += 1
                c.end = outer
        else:
            skip(c, tag)
    return -1 if c.bad else intern_stack(s, begin, at)


def read_sample(s: Scan, c: Cursor, stack: cython.int) -> cython.bint:
    """Enter the sample under the cursor, of which the outline is known, and the stack if it is not -1; false, and
    nothing is entered, if it is damaged. There has to be room."""
    row: cython.Py_ssize_t
    what: cython.longlong
    kind: cython.longlong
    if stack < 0:
        stack = read_stack(s, c)
        if stack < 0:
            return False
        if s.in_one_piece:
            remember_chain(s, c, stack)
    if s.value > TOP - s.total:
        s.overflow = True
        s.value = 0
    s.total += s.value
    what = (cython.cast(cython.longlong, stack) << 32) | s.thread
    kind = (cython.cast(cython.longlong, s.event) << 8) | s.error
    if s.keeps_order:
        row = new_row(s, what, kind)
        s.row_time[row] = s.time
    else:
        row = row_for(s, what, kind)
    s.row_table[row, 2] += 1
    s.row_table[row, 3] += cython.cast(cython.longlong, s.value)
    if s.time != 0:
        s.first_time = min(s.first_time, s.time)
        s.last_time = max(s.last_time, s.time)
    s.samples += 1
    s.failed += s.unwinding_failed
    return True


def read_switch(s: Scan, c: Cursor) -> cython.bint:
    """Enter the context switch under the cursor, if it leads to a processor; false if it is damaged."""
    time: cython.ulonglong = 0
    thread: cython.uint = 0
    on: cython.bint = False
    row: cython.Py_ssize_t
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        tag = varint(c)
        if tag == 0x08:
            on = varint(c) != 0
        elif tag == 0x10:
            time = varint(c)
        elif tag == 0x18:
            thread = varint(c) & MASK32
        else:
            skip_unknown(c, tag, LAST_SWITCH)
    if c.bad:
        return False
    if on and s.keeps_order:
        row = new_row(s, thread, SWITCHED)
        s.row_time[row] = time
    return True


def scan(s: Scan, data: object) -> int:
    """Read records of `data` from `s.pos` on; says why it stopped there."""
    c: Cursor = Cursor(data)
    total: cython.Py_ssize_t = c.end
    status: cython.int = C_MORE
    size: cython.ulonglong
    start: cython.Py_ssize_t
    kind: cython.int
    stack: cython.int
    good: cython.bint
    with cython.nogil:
        while True:
            start = s.pos
            c.bad = False
            c.pos = start
            c.end = total
            if total - start < 4:
                break
            size = c.uint(4)
            if size == 0:
                status = C_ENDED
                break
            if size > RECORD_LIMIT:
                status = C_TOO_LARGE
                break
            if size > cython.cast(cython.ulonglong, total - c.pos):
                break
            c.end = c.pos + cython.cast(cython.Py_ssize_t, size)
            s.end = c.end
            kind = open_record(s, c)
            if c.bad:
                status = C_BAD
                break
            if kind in (SAMPLE, SWITCH):
                c.pos = s.span_begin
                c.end = s.span_end
                s.frames_wanted = 0
                stack = -1
                if kind == SAMPLE:
                    outline(s, c)
                    if not c.bad and s.in_one_piece:
                        stack = known_chain(s, c)
                    if not c.bad and stack < 0:
                        c.pos = s.span_begin
                        s.frames_wanted = count_frames(c)
                good = not c.bad
                if good:
                    if not has_room(s, s.frames_wanted):
                        status = C_FULL
                        break
                    c.pos = s.span_begin
                    good = read_sample(s, c, stack) if kind == SAMPLE else read_switch(s, c)
                s.left_out += not good
            elif kind != 0:
                status = C_OTHER
                s.kind = kind >> 3
                s.begin = s.span_begin
                s.end = s.span_end
                s.pos = start + 4 + cython.cast(cython.Py_ssize_t, size)
                break
            s.pos = start + 4 + cython.cast(cython.Py_ssize_t, size)
    return status


def mark_art(s: Scan, kinds: cython.const[cython.uchar][::1], hidden: cython.uchar[::1]) -> bool:
    """Mark the stack items that are ART frames next to Java frames; whether there are more than a converter that hides
    them leaves.

    `kinds` says of each frame what it is. Next to Java is an ART frame that no other code parts from a Java frame. A
    frame that a JNI trampoline calls is the native method itself and not marked.
    """
    stack: cython.Py_ssize_t
    begin: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t
    at: cython.Py_ssize_t
    run: cython.Py_ssize_t
    i: cython.Py_ssize_t
    found: cython.bint = False
    with cython.nogil:
        for stack in range(s.stacks):
            end = s.stack_ends[stack]
            at = begin
            while at < end:
                run = at
                while run < end and kinds[s.items[run]] >= C_ART:
                    run += 1
                if run > at and (
                    (at > begin and kinds[s.items[at - 1]] == C_JAVA) or (run < end and kinds[s.items[run]] == C_JAVA)
                ):
                    found = found or run - at > 1 or kinds[s.items[at]] == C_TRAMPOLINE
                    for i in range(at, run):
                        hidden[i] = (
                            i + 1 == end or kinds[s.items[i]] == C_TRAMPOLINE or kinds[s.items[i + 1]] != C_TRAMPOLINE
                        )
                at = run + 1
            begin = end
    return bool(found)


def mark_frames(s: Scan, frames: cython.const[cython.uchar][::1], hidden: cython.uchar[::1]) -> None:
    """Mark the items that are one of the marked frames."""
    i: cython.Py_ssize_t
    end: cython.Py_ssize_t = s.stack_ends[s.stacks - 1] if s.stacks > 0 else 0
    with cython.nogil:
        for i in range(end):
            if frames[s.items[i]] != 0:
                hidden[i] = 1


def mark_used(s: Scan, hidden: cython.const[cython.uchar][::1], used: cython.uchar[::1]) -> None:
    """Mark the frames of all items that are not hidden."""
    i: cython.Py_ssize_t
    end: cython.Py_ssize_t = s.stack_ends[s.stacks - 1] if s.stacks > 0 else 0
    with cython.nogil:
        for i in range(end):
            if hidden[i] == 0:
                used[s.items[i]] = 1


def leaves(s: Scan, hidden: cython.const[cython.uchar][::1], frames: cython.int[::1]) -> None:
    """The first frame of each stack that is not hidden, or -1."""
    stack: cython.Py_ssize_t
    i: cython.Py_ssize_t = 0
    with cython.nogil:
        for stack in range(s.stacks):
            while i < s.stack_ends[stack] and hidden[i] != 0:
                i += 1
            frames[stack] = s.items[i] if i < s.stack_ends[stack] else -1
            i = s.stack_ends[stack]


def copy_stacks(
    s: Scan, stacks: cython.const[cython.int][::1], offsets: cython.const[cython.longlong][::1], out: cython.int[::1]
) -> None:
    """Write the items of each of `stacks` to its place in `out`."""
    row: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for row in range(len(stacks)):
            begin = s.stack_ends[stacks[row] - 1] if stacks[row] > 0 else 0
            for i in range(offsets[row + 1] - offsets[row]):
                out[offsets[row] + i] = s.items[begin + i]


def renumber(
    s: Scan, locations: cython.const[cython.int][::1], hidden: cython.const[cython.uchar][::1], rows: cython.int[::1]
) -> None:
    """Put locations in the place of frames and leave out the hidden items; `rows` gets the new row of each stack.

    Stacks that become equal become one. Works in place: no stack grows.
    """
    stack: cython.Py_ssize_t
    count: cython.Py_ssize_t = s.stacks
    begin: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t
    first: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(s.stack_slots)):
            s.stack_slots[i] = 0
        s.stacks = 0
        for stack in range(count):
            end = s.stack_ends[stack]
            at = first
            for i in range(begin, end):
                if hidden[i] == 0:
                    s.items[at] = locations[s.items[i]]
                    at += 1
            begin = end
            i = s.stacks
            rows[stack] = intern_stack(s, first, at)
            if s.stacks > i:
                first = at
