# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""Protobuf messages, field by field: a compiled cursor, and generators for messages that a trace has few of."""

from collections.abc import Iterator
from typing import Any

import cython
import numpy as np

from symbolize.core.arrays import extended

if not cython.compiled:
    from symbolize.core.cursor import Cursor

    SMALL_FIELDS = 16
    """Fields whose tags have one byte have numbers below this one."""
    from symbolize.core.protobuf import BYTES, FIXED32, FIXED64, LAST_BYTE, NUMBER, VARINT, WIRE_TYPE
    from symbolize.proto.perfetto_trace_tags import *

LAST_TAG = 1 << 10
"""Tags of the fields that `message` returns are below this one; no message that is read here has more."""

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
NO_WORDS = cython.declare(cython.ulonglong[::1], memoryview(np.zeros(0, np.uint64)))


class Damaged(ValueError):
    """A message is not protobuf."""


@cython.cclass
class MessageReader(Cursor):
    """A cursor in the fields of a message, and the field read last; damage may be forgiven."""

    def __init__(self, data: bytes) -> None:
        Cursor.__init__(self, data)
        self.numbers = NO_WORDS
        self.numbers_count = 0
        self.small = NO_WORDS
        self.tag = self.value = 0
        self.begin = 0
        self.start(data)

    def start(self, data: bytes) -> None:
        """Put the cursor at the beginning of other data."""
        self.source = data
        self.data = data
        self.pos = 0
        self.end = len(data)
        self.bad = False

    @cython.boundscheck(False)
    def field(self) -> cython.bint:
        """Read the next field before the end of the cursor; False where there is none, or it is damaged.

        `tag` is its tag and `value` its number. A field of bytes has `value` of them, from `begin` to the cursor.
        Groups are damage, as they are for pprof. Bounds need no check: they are checked once, and `pos` stays below.
        """
        pos: cython.Py_ssize_t = self.pos
        end: cython.Py_ssize_t = self.end
        tag: cython.ulonglong
        byte: cython.ulonglong
        value: cython.ulonglong = 0
        shift: cython.int = 0
        if self.bad or pos >= end or pos < 0 or end > len(self.data):
            return False
        tag = self.data[pos]
        pos += 1
        if tag >= LAST_BYTE:
            tag = self.varint()
            pos = self.pos
        if tag >> NUMBER == 0 or tag >> 32 != 0:
            self.bad = True
            return False
        self.tag = tag
        if tag & WIRE_TYPE == VARINT or tag & WIRE_TYPE == BYTES:
            # As `varint`, which costs a third more here.
            while True:
                if pos >= end or shift > 63:
                    self.bad = True
                    return False
                byte = self.data[pos]
                pos += 1
                value |= ((byte & 0x7F) << shift) & MASK64
                if byte < LAST_BYTE:
                    break
                shift += 7
            self.value = value
            if tag & WIRE_TYPE == VARINT:
                self.pos = pos
                return True
        elif tag & WIRE_TYPE == FIXED64:
            value = 8
        elif tag & WIRE_TYPE == FIXED32:
            value = 4
        if tag & WIRE_TYPE not in (BYTES, FIXED64, FIXED32) or value > cython.cast(cython.ulonglong, end - pos):
            self.bad = True
            return False
        self.begin = pos
        self.pos = pos + cython.cast(cython.Py_ssize_t, value)
        return True

    @cython.boundscheck(False)
    def read_small(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.void:
        """Read the message from `begin` to `end`: the last value of each number field below `SMALL_FIELDS` to `small`,
        by field number, 0 if it is not there; in `small[0]` a bit for each that is there. The cursor does not move.

        Bounds need no check: those of the message are checked once, numbers in tags of one byte are below 16.
        """
        pos: cython.Py_ssize_t = begin
        tag: cython.ulonglong
        byte: cython.ulonglong
        value: cython.ulonglong
        present: cython.ulonglong = 0
        shift: cython.int
        number: cython.Py_ssize_t
        if begin < 0 or end > len(self.data) or self.small.shape[0] != SMALL_FIELDS:
            self.bad = True
            return
        for number in range(SMALL_FIELDS):
            self.small[number] = 0
        while pos < end:
            tag = self.data[pos]
            if tag & WIRE_TYPE != VARINT or tag >> NUMBER == 0 or tag >= LAST_BYTE:
                pos = self.pass_over(pos, end)
                # A tag of one byte may be padded to more.
                if tag >= LAST_BYTE and not self.bad and self.tag < LAST_BYTE and self.tag & WIRE_TYPE == VARINT:
                    number = cython.cast(cython.Py_ssize_t, self.tag >> NUMBER)
                    self.small[number] = self.value
                    present |= cython.cast(cython.ulonglong, 1) << number
                continue
            pos += 1
            value = 0
            shift = 0
            while True:
                if pos >= end or shift > 63:
                    self.bad = True
                    return
                byte = self.data[pos]
                pos += 1
                value |= ((byte & 0x7F) << shift) & MASK64
                if byte < LAST_BYTE:
                    break
                shift += 7
            number = cython.cast(cython.Py_ssize_t, tag >> NUMBER)
            self.small[number] = value
            present |= cython.cast(cython.ulonglong, 1) << number
        self.small[0] = present

    def pass_over(self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the field at `pos` ends; `end` if it is damaged. The cursor does not move."""
        before: cython.Py_ssize_t = self.pos
        outer: cython.Py_ssize_t = self.end
        self.pos = pos
        self.end = end
        pos = self.pos if self.field() else end
        self.pos = before
        self.end = outer
        return pos

    def reenter(self) -> cython.Py_ssize_t:
        """Go back into the field of bytes that was read; the end of the message around it, to give to `go_on`."""
        outer: cython.Py_ssize_t = self.end
        self.end = self.pos
        self.pos = self.begin
        return outer

    def go_on(self, outer: cython.Py_ssize_t) -> cython.void:
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
        return self.source[self.begin : self.pos]

    def take_numbers(self, limit: cython.Py_ssize_t):
        """Add what the field that was read has, a number or packed ones, to `numbers`; up to one more than `limit`."""
        outer: cython.Py_ssize_t
        value: cython.ulonglong
        if self.tag & WIRE_TYPE == VARINT:
            if self.numbers_count <= limit:
                self.add_number(self.value)
            return
        outer = self.reenter()
        while self.pos < self.end and self.numbers_count <= limit:
            value = self.varint()
            if self.bad:
                break
            self.add_number(value)
        self.go_on(outer)

    def take_run(self, tag: cython.ulonglong, limit: cython.Py_ssize_t):
        """Add the numbers of the fields that follow and have this tag, of one byte; up to one more than `limit`."""
        value: cython.ulonglong
        while self.numbers_count <= limit and self.pos < self.end and self.data[self.pos] == tag:
            self.pos += 1
            value = self.varint()
            if self.bad:
                break
            self.add_number(value)

    def add_number(self, value: cython.ulonglong):
        """Add to `numbers`."""
        if self.numbers_count == self.numbers.shape[0]:
            self.numbers = extended(self.numbers, self.numbers_count + 1)
        self.numbers[self.numbers_count] = value
        self.numbers_count += 1


def spans(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Tag, begin and end of the content of each field; numbers have none. Raises Damaged at the first damaged one."""
    reader: MessageReader = MessageReader(data)
    while reader.field():
        yield reader.tag, reader.pos if reader.tag & WIRE_TYPE == VARINT else reader.begin, reader.pos
    if reader.bad:
        raise Damaged


def fields(data: bytes, is_strict: bool = False) -> Iterator[tuple[int, Any]]:
    """Tag and value of each field, a number or bytes, up to the first that is damaged, where it raises Damaged if
    `is_strict`. Fixed-size numbers are bytes."""
    reader: MessageReader = MessageReader(data)
    while reader.field():
        if reader.tag & WIRE_TYPE == VARINT:
            yield reader.tag, reader.value
        else:
            yield reader.tag, reader.content()
    if is_strict and reader.bad:
        raise Damaged


def message(data: bytes) -> dict[int, Any]:
    """The last value of each field with a tag below `LAST_TAG`."""
    return {tag: value for tag, value in fields(data) if tag < LAST_TAG}


def signed(value: int, bits: int = 64) -> int:
    """The same bits as a signed number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
