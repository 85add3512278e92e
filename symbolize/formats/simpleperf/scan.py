# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""The records of a simpleperf report_sample file, piece by piece into tables of what is distinct.

A frame, a stack and, as long as no order in time is asked for, a sample are once in their table, so the tables
grow with what is distinct in the file and not with its length.
"""

from typing import Any

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.core.interning import Chunks, Lists, Tuples
    from symbolize.core.protobuf import BYTES, LAST_BYTE, NUMBER, VARINT, WIRE_TYPE
    from symbolize.formats.simpleperf.numbers import *
    from symbolize.proto.report_sample_tags import *

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
TOP = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)

MAX_CHAINS: int = 1 << 17
MAX_CHAIN_BYTES: int = 48 << 20
"""How many encoded stacks, and bytes of them, are recognized by their bytes. Others are decoded every time."""

SWITCHED = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
"""The kind of a row that is no sample: the thread came back on a processor."""

SAMPLES = cython.declare(cython.Py_ssize_t, 2)
VALUE = cython.declare(cython.Py_ssize_t, 3)
TIME = cython.declare(cython.Py_ssize_t, 4)
"""What a row has after its key: sums and, while the order is kept, the time."""


@cython.cclass
class SimpleperfScan:
    """The tables, and the position of the scan.

    A frame is vaddr, file and symbol (32 bits each), and execution type; a row is stack and thread, and event and
    error. `mixer` comes from the caller, at random, so that no file can choose what collides. At first every sample
    and every switch to a processor is a row, in the order of the file; after `merge_samples` equal samples are one.
    """

    def __init__(self, mixer: cython.ulonglong) -> None:
        self.frames = Tuples(3, mixer)
        self.stacks = Lists(mixer)
        self.rows = Tuples(2, mixer, 3)
        self.keeps_order = True
        self.pos = self.begin = self.end = 0
        self.kind = 0
        self.left_out = self.samples = self.failed = 0
        self.total = self.last_time = 0
        self.first_time = MASK64
        self.overflow = False
        self.span_begin = self.span_end = 0
        self.chains = Chunks(MAX_CHAINS, MAX_CHAIN_BYTES, mixer)

    def merge_samples(self) -> None:
        """Give equal samples one row from now on, unless rows are there already."""
        if self.rows.count == 0:
            self.keeps_order = False
            self.rows = Tuples(2, self.rows.mixer, 2)

    def frame_columns(self) -> tuple[Any, Any, Any, Any]:
        """The frames as columns: vaddr, file, symbol, execution type."""
        table = self.frames.array()
        file, symbol = (table[:, 1] >> np.uint64(32)).astype(np.uint32), table[:, 1].astype(np.uint32).view(np.int32)
        return table[:, 0], file, symbol, table[:, 2].astype(np.uint8)

    def take_rows(self) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
        """The rows as columns, and none are left: stack (-1: none, the thread came back), thread, event, error,
        samples, value, time."""
        table = self.rows.array()
        self.chains = Chunks(1, 1, 1)
        self.rows = Tuples(2, 1)
        what, kind = table[:, 0], table[:, 1].view(np.int64)
        stack = np.where(kind < 0, np.int32(-1), (what >> np.uint64(32)).astype(np.int32))
        event, error = (kind >> 8).astype(np.uint32), (kind & 0xFF).astype(np.uint8)
        samples, values = table[:, 2].astype(np.int64), table[:, 3].astype(np.int64)
        return stack, what.astype(np.uint32), event, error, samples, values, table[:, 4:].ravel()


def skip_unknown(c: Cursor, tag: cython.ulonglong, last: cython.ulonglong) -> cython.void:
    """Move over a field that is none of the message's. One of a known number, up to `last`, has another wire type than
    the schema says: the message is bad (R275, other wire types)."""
    c.skip_field(tag)
    if tag >> NUMBER <= last:
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
            tag = c.varint()
            c.skip_field(tag)
            bit = cython.cast(cython.ulonglong, 1) << (tag >> NUMBER) if tag >> NUMBER < 64 else 0
            if (numbers & bit and tag & WIRE_TYPE != VARINT) or (texts & bit and tag & WIRE_TYPE != BYTES):
                c.bad = True
            if lists & bit:
                count += 1
    return -1 if c.bad else count


def read_file(
    data: object, symbols: cython.longlong[::1], mangled: cython.longlong[::1]
) -> tuple[int, int, int, int, int]:
    """The fields of a file: its number, where its path begins and ends, and how many of the numbers in `symbols` and in
    `mangled` were written: where each name begins and ends, in turn.

    `count_entries` found the fields to be sound, and how many names there are.
    """
    c: Cursor = Cursor(data)
    number: cython.ulonglong = 0
    path_begin: cython.Py_ssize_t = 0
    path_end: cython.Py_ssize_t = 0
    named: cython.Py_ssize_t = 0
    linked: cython.Py_ssize_t = 0
    outer: cython.Py_ssize_t
    tag: cython.ulonglong
    with cython.nogil:
        while c.pos < c.end and not c.bad:
            tag = c.varint()
            if tag == FILE_ID:
                number = c.varint() & MASK32
            elif tag in (FILE_PATH, FILE_SYMBOL, FILE_MANGLED_SYMBOL):
                outer = c.enter()
                if tag == FILE_PATH:
                    path_begin = c.pos
                    path_end = c.end
                elif tag == FILE_SYMBOL:
                    symbols[named] = c.pos
                    symbols[named + 1] = c.end
                    named += 2
                else:
                    mangled[linked] = c.pos
                    mangled[linked + 1] = c.end
                    linked += 2
                c.leave(outer)
            else:
                c.skip_field(tag)
    return number, path_begin, path_end, named, linked


def open_record(s: SimpleperfScan, c: Cursor) -> cython.int:
    """The kind of message in the record under the cursor, and where it is; of several the last counts (protobuf
    oneof). 0: none that we know."""
    kind: cython.int = 0
    tag: cython.ulonglong
    outer: cython.Py_ssize_t
    while c.pos < c.end and not c.bad:
        tag = c.varint()
        if RECORD_SAMPLE <= tag <= RECORD_CONTEXT_SWITCH and tag & WIRE_TYPE == BYTES:
            outer = c.enter()
            if not c.bad:
                kind = tag
                s.span_begin = c.pos
                s.span_end = c.end
            c.leave(outer)
        else:
            skip_unknown(c, tag, LAST_RECORD)
    return kind


def read_frame(s: SimpleperfScan, c: Cursor) -> cython.int:
    """Add the frame under the cursor to the stack that is built."""
    vaddr: cython.ulonglong = 0
    file: cython.ulonglong = 0
    symbol: cython.ulonglong = 0
    execution: cython.ulonglong = NO_EXECUTION
    value: cython.ulonglong
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        tag = c.varint()
        if tag == CALL_CHAIN_ENTRY_VADDR_IN_FILE:
            vaddr = c.varint()
        elif tag == CALL_CHAIN_ENTRY_FILE_ID:
            file = c.varint() & MASK32
        elif tag == CALL_CHAIN_ENTRY_SYMBOL_ID:
            symbol = c.varint() & MASK32
        elif tag == CALL_CHAIN_ENTRY_EXECUTION_TYPE:
            value = c.varint()
            if value <= ART_METHOD:
                execution = value
        else:
            skip_unknown(c, tag, LAST_CALL_CHAIN_ENTRY)
    if c.bad:
        return 0
    s.frames.key[0] = vaddr
    s.frames.key[1] = file << 32 | symbol
    s.frames.key[2] = execution
    return s.stacks.append(cython.cast(cython.int, s.frames.add()))


def read_error(c: Cursor) -> cython.int:
    """The error code of the unwinding result under the cursor, at most 255."""
    error: cython.int = 0
    value: cython.ulonglong
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        tag = c.varint()
        if tag == UNWINDING_RESULT_ERROR_CODE:
            value = c.varint()
            error = MAX_ERROR if value > MAX_ERROR else value
        elif tag in (UNWINDING_RESULT_RAW_ERROR_CODE, UNWINDING_RESULT_ERROR_ADDR):
            c.skip_field(tag)
        else:
            skip_unknown(c, tag, LAST_UNWINDING_RESULT)
    return error


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
def next_other(
    data: cython.const[cython.uchar][::1], pos: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the short frames at `pos`, one after another, end; the caller checks that this is not after `end`."""
    if pos < 0 or end > len(data):
        return pos
    while end - pos >= 2 and data[pos] == SAMPLE_CALLCHAIN and data[pos + 1] < LAST_BYTE:
        pos += 2 + data[pos + 1]
    return pos


def row_of(s: SimpleperfScan, what: cython.ulonglong, kind: cython.ulonglong) -> cython.Py_ssize_t:
    """Where the words of samples like this begin, which are added if they are new, or if the order is kept."""
    s.rows.key[0] = what
    s.rows.key[1] = kind
    return s.rows.stride * (s.rows.append() if s.keeps_order else s.rows.add())


def read_stack(s: SimpleperfScan, c: Cursor) -> cython.Py_ssize_t:
    """The row of the stack of the sample under the cursor."""
    outer: cython.Py_ssize_t
    size: cython.ulonglong
    tag: cython.ulonglong
    s.stacks.size = 0
    while c.pos < c.end and not c.bad:
        tag = c.varint()
        if tag == SAMPLE_CALLCHAIN:
            outer = c.end
            size = c.varint()
            if c.need(size):
                c.end = c.pos + cython.cast(cython.Py_ssize_t, size)
                read_frame(s, c)
                c.end = outer
        else:
            c.skip_field(tag)
    return 0 if c.bad else s.stacks.add()


def read_sample(s: SimpleperfScan, c: Cursor) -> cython.int:
    """Enter the sample under the cursor; nothing but frames is entered if the cursor turns bad.

    Stacks repeat, mostly byte by byte, so that most need not be decoded: on recordings that makes reading twice as
    fast.
    """
    begin: cython.Py_ssize_t = c.pos
    start: cython.Py_ssize_t
    chain_begin: cython.Py_ssize_t = 0
    chain_end: cython.Py_ssize_t = 0
    one_piece: cython.bint = True
    row: cython.Py_ssize_t
    stack: cython.Py_ssize_t
    outer: cython.Py_ssize_t
    tag: cython.ulonglong
    time: cython.ulonglong = 0
    thread: cython.ulonglong = 0
    value: cython.ulonglong = 0
    event: cython.ulonglong = 0
    error: cython.ulonglong = 0
    failed: cython.bint = False
    while c.pos < c.end and not c.bad:
        start = c.pos
        c.pos = next_other(c.data, start, c.end)
        if c.pos > c.end:
            c.pos = start
            c.bad = True
        tag = SAMPLE_CALLCHAIN
        if c.pos == start and not c.bad:
            tag = c.varint()
            if tag == SAMPLE_CALLCHAIN:
                c.skip_field(tag)
        if tag == SAMPLE_CALLCHAIN:
            if chain_end == 0:
                chain_begin = start
            elif chain_end != start:
                one_piece = False
            chain_end = c.pos
        elif tag == SAMPLE_TIME:
            time = c.varint()
        elif tag == SAMPLE_THREAD_ID:
            thread = c.varint() & MASK32
        elif tag == SAMPLE_EVENT_COUNT:
            value = c.varint()
        elif tag == SAMPLE_EVENT_TYPE_ID:
            event = c.varint() & MASK32
        elif tag == SAMPLE_UNWINDING_RESULT:
            outer = c.enter()
            error = read_error(c)
            failed = True
            c.leave(outer)
        else:
            skip_unknown(c, tag, LAST_SAMPLE)
    if c.bad:
        return 0
    stack = s.chains.find(c.data, chain_begin, chain_end) if one_piece else -1
    if stack < 0:
        c.pos = begin
        stack = read_stack(s, c)
        if c.bad:
            return 0
        if one_piece:
            s.chains.put(c.data, chain_begin, chain_end, stack)
    if value > TOP - s.total:
        s.overflow = True
        value = 0
    s.total += value
    row = row_of(s, cython.cast(cython.ulonglong, stack) << 32 | thread, event << 8 | error)
    s.rows.words[row + SAMPLES] += 1
    s.rows.words[row + VALUE] += value
    if s.keeps_order:
        s.rows.words[row + TIME] = time
    if time != 0:
        s.first_time = min(s.first_time, time)
        s.last_time = max(s.last_time, time)
    s.samples += 1
    s.failed += failed
    return 0


def read_switch(s: SimpleperfScan, c: Cursor) -> cython.int:
    """Enter the context switch under the cursor, if it leads to a processor and is not damaged."""
    time: cython.ulonglong = 0
    thread: cython.ulonglong = 0
    on: cython.bint = False
    row: cython.Py_ssize_t
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        tag = c.varint()
        if tag == CONTEXT_SWITCH_SWITCH_ON:
            on = c.varint() != 0
        elif tag == CONTEXT_SWITCH_TIME:
            time = c.varint()
        elif tag == CONTEXT_SWITCH_THREAD_ID:
            thread = c.varint() & MASK32
        else:
            skip_unknown(c, tag, LAST_CONTEXT_SWITCH)
    if on and s.keeps_order and not c.bad:
        row = row_of(s, thread, SWITCHED)
        s.rows.words[row + TIME] = time
    return 0


def scan(s: SimpleperfScan, data: object) -> int:
    """Read records of `data` from `s.pos` on; says why it stopped there."""
    c: Cursor = Cursor(data)
    total: cython.Py_ssize_t = c.end
    status: cython.int = MORE
    size: cython.ulonglong
    start: cython.Py_ssize_t
    kind: cython.int
    with cython.nogil:
        while True:
            start = s.pos
            c.bad = False
            c.pos = start
            c.end = total
            if total - start < SIZE_BYTES:
                break
            size = c.uint(SIZE_BYTES)
            if size == 0:
                status = ENDED
                break
            if size > MAX_RECORD:
                status = TOO_LARGE
                break
            if size > cython.cast(cython.ulonglong, total - c.pos):
                break
            c.end = c.pos + cython.cast(cython.Py_ssize_t, size)
            s.end = c.end
            kind = open_record(s, c)
            if c.bad:
                status = BAD
                break
            if kind in (RECORD_SAMPLE, RECORD_CONTEXT_SWITCH):
                c.pos = s.span_begin
                c.end = s.span_end
                if kind == RECORD_SAMPLE:
                    read_sample(s, c)
                else:
                    read_switch(s, c)
                s.left_out += c.bad
            elif kind != 0:
                status = OTHER
                s.kind = kind
                s.begin = s.span_begin
                s.end = s.span_end
                s.pos = start + SIZE_BYTES + cython.cast(cython.Py_ssize_t, size)
                break
            s.pos = start + SIZE_BYTES + cython.cast(cython.Py_ssize_t, size)
    return status


def mark_art(s: SimpleperfScan, kinds: cython.const[cython.uchar][::1], hidden: cython.uchar[::1]) -> bool:
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
    items: cython.int[::1] = s.stacks.items
    with cython.nogil:
        for stack in range(s.stacks.count):
            end = s.stacks.offsets[stack + 1]
            at = begin
            while at < end:
                run = at
                while run < end and kinds[items[run]] >= ART:
                    run += 1
                if run > at and (
                    (at > begin and kinds[items[at - 1]] == JAVA) or (run < end and kinds[items[run]] == JAVA)
                ):
                    found = found or run - at > 1 or kinds[items[at]] == TRAMPOLINE
                    for i in range(at, run):
                        hidden[i] = i + 1 == end or kinds[items[i]] == TRAMPOLINE or kinds[items[i + 1]] != TRAMPOLINE
                at = run + 1
            begin = end
    return bool(found)


def mark_frames(s: SimpleperfScan, frames: cython.const[cython.uchar][::1], hidden: cython.uchar[::1]) -> None:
    """Mark the items that are one of the marked frames."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(s.stacks.used):
            if frames[s.stacks.items[i]] != 0:
                hidden[i] = 1


def mark_used(s: SimpleperfScan, hidden: cython.const[cython.uchar][::1], used: cython.uchar[::1]) -> None:
    """Mark the frames of all items that are not hidden."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(s.stacks.used):
            if hidden[i] == 0:
                used[s.stacks.items[i]] = 1


def leaves(s: SimpleperfScan, hidden: cython.const[cython.uchar][::1], frames: cython.int[::1]) -> None:
    """The first frame of each stack that is not hidden, or -1."""
    stack: cython.Py_ssize_t
    i: cython.Py_ssize_t
    end: cython.Py_ssize_t
    with cython.nogil:
        for stack in range(s.stacks.count):
            i = s.stacks.offsets[stack]
            end = s.stacks.offsets[stack + 1]
            while i < end and hidden[i] != 0:
                i += 1
            frames[stack] = s.stacks.items[i] if i < end else -1


def copy_stacks(
    s: SimpleperfScan,
    stacks: cython.const[cython.int][::1],
    offsets: cython.const[cython.longlong][::1],
    out: cython.int[::1],
) -> None:
    """Write the items of each of `stacks` to `out` at its offset."""
    row: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for row in range(len(stacks)):
            begin = s.stacks.offsets[stacks[row]]
            for i in range(offsets[row + 1] - offsets[row]):
                out[offsets[row] + i] = s.stacks.items[begin + i]


def renumber(
    s: SimpleperfScan,
    locations: cython.const[cython.int][::1],
    hidden: cython.const[cython.uchar][::1],
    rows: cython.int[::1],
) -> None:
    """Replace frames by locations and leave out the hidden items; `rows` gets the new row of each stack.

    Stacks that become equal become one. Works in place: no stack grows, so none is written before it was read.
    """
    stacks: Lists = s.stacks
    stack: cython.Py_ssize_t
    count: cython.Py_ssize_t = stacks.count
    begin: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t
    i: cython.Py_ssize_t
    stacks.restart()
    for stack in range(count):
        end = stacks.offsets[stack + 1]
        stacks.size = 0
        for i in range(begin, end):
            if hidden[i] == 0:
                stacks.append(locations[stacks.items[i]])
        begin = end
        rows[stack] = cython.cast(cython.int, stacks.add())
