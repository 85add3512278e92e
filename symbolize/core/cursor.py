# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""A bounded reader of integers and protobuf fields out of untrusted bytes, shared by the compiled decoders.

A read past the end sets `bad`, returns 0 and moves nothing, so a loop tests one flag where it would
otherwise need a check, or an exception that cannot be raised without the GIL, after every field.
"""

import cython

if not cython.compiled:
    from symbolize.core.integers import unsigned_at
    from symbolize.core.protobuf import (
        BYTES,
        FIXED32,
        FIXED64,
        LAST_BYTE,
        MAX_TAG,
        MAX_VARINT,
        NUMBER,
        VARINT,
        WIRE_TYPE,
    )

COMPILED: bool = cython.compiled
"""Whether this module, and with it the others, was compiled."""


def uncompiled() -> str | None:
    """Say that the compiled modules are missing and what that costs, or return None when they are there."""
    if COMPILED:
        return None
    what = "running without the compiled core, about ten times slower"
    return f"{what}; install a C compiler and build symbolize again"


MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def as_signed(value: cython.ulonglong) -> cython.longlong:
    """The signed number with the same 64 bits."""
    if cython.compiled:
        return cython.cast(cython.longlong, value)
    return value - (1 << 64) if value >> 63 else value


def varint_at(data: object, at: int) -> tuple[int, int] | None:
    """The protobuf varint at `at` and where it ends; None if it has more than ten bytes or the data end before it."""
    c: Cursor = Cursor(data, at)
    value: cython.ulonglong = c.varint()
    return None if c.bad else (value, c.pos)


@cython.cclass
class Cursor:
    """Position in `data[pos:end]`; `big` selects big-endian fixed-size integers.

    Offsets are checked before they are used; what nests has limits of its own (R77, checked offsets). Methods that
    others in this module call are marked final here too: the mark in the `.pxd` alone does not make the calls direct.
    """

    def __init__(self, data, pos: cython.Py_ssize_t = 0, end: cython.Py_ssize_t = -1, big: cython.bint = False):  # type: ignore[no-untyped-def]
        size: cython.Py_ssize_t = len(data)
        self.data = data
        self.end = size if end < 0 or end > size else end
        self.bad = pos < 0 or pos > self.end
        self.pos = self.end if self.bad else pos
        self.big = big

    @cython.final
    def need(self, count: cython.ulonglong) -> cython.bint:
        """True if `count` more bytes can be read; marks the cursor bad otherwise."""
        left: cython.ulonglong = self.end - self.pos
        if count <= left:
            return True
        self.bad = True
        return False

    def uint(self, size: cython.int) -> cython.ulonglong:
        """An unsigned integer of 1 to 8 bytes in the file's byte order."""
        if self.pos < 0 or self.end > len(self.data) or not self.need(size):
            return 0
        self.pos += size
        return unsigned_at(self.data, self.pos - size, size, self.big)

    @cython.final
    def uleb(self) -> cython.ulonglong:
        """An unsigned LEB128 number (DWARF 5 §7.6), which is also a protobuf varint; bits above 64 are dropped."""
        value: cython.ulonglong = 0
        shift: cython.int = 0
        byte: cython.ulonglong
        start: cython.Py_ssize_t = self.pos
        while self.pos < self.end:
            byte = self.data[self.pos]
            self.pos += 1
            if shift < 64:
                value |= ((byte & 0x7F) << shift) & MASK64
                shift += 7
            if byte < LAST_BYTE:
                return value
        self.pos = start
        self.bad = True
        return 0

    def sleb(self) -> cython.longlong:
        """A signed LEB128 number (DWARF 5 §7.6); bits above 64 are dropped."""
        start: cython.Py_ssize_t = self.pos
        value: cython.ulonglong = self.uleb()
        bits: cython.Py_ssize_t = 7 * (self.pos - start)
        if 0 < bits < 64 and self.data[self.pos - 1] & 0x40:
            value |= (MASK64 << bits) & MASK64
        return as_signed(value)

    @cython.final
    def skip(self, count: cython.ulonglong) -> cython.void:
        """Move over `count` bytes."""
        if self.need(count):
            self.pos += count

    def skip_string(self) -> cython.void:
        """Move past the next NUL; an unterminated string ends at the end (R75, strings without an end)."""
        while self.pos < self.end:
            self.pos += 1
            if self.data[self.pos - 1] == 0:
                return

    def seek(self, position: cython.ulonglong) -> cython.void:
        """Move to `position`, which clears `bad`, or sets it if the position is past the end."""
        self.bad = position > cython.cast(cython.ulonglong, self.end)
        self.pos = self.end if self.bad else position

    @cython.boundscheck(False)
    @cython.final
    def varint(self) -> cython.ulonglong:
        """A protobuf varint; one of more than ten bytes is bad. Bounds are checked once, not for each byte."""
        value: cython.ulonglong = 0
        byte: cython.ulonglong
        shift: cython.int = 0
        pos: cython.Py_ssize_t = self.pos
        end: cython.Py_ssize_t = self.end
        if pos < 0 or end > len(self.data):
            end = pos
        if end - pos > MAX_VARINT:
            end = pos + MAX_VARINT
        while pos < end:
            byte = self.data[pos]
            pos += 1
            value |= ((byte & 0x7F) << shift) & MASK64
            if byte < LAST_BYTE:
                self.pos = pos
                return value
            shift += 7
        self.bad = True
        return 0

    def int64(self) -> cython.longlong:
        """A varint as the signed number that its 64 bits are."""
        return as_signed(self.varint())

    def read_tag(self) -> cython.ulonglong:
        """The tag of a protobuf field; one of more bytes than protobuf reads is bad."""
        start: cython.Py_ssize_t = self.pos
        tag: cython.ulonglong = self.varint()
        if self.pos - start > MAX_TAG:
            self.bad = True
        return tag

    def skip_field(self, tag: cython.ulonglong) -> cython.void:
        """Move over the content of the field whose tag was read; groups are bad, as they are for pprof."""
        wire_type: cython.int = tag & WIRE_TYPE
        if tag >> NUMBER == 0 or tag >> 32 != 0:
            self.bad = True
        elif wire_type == VARINT:
            self.varint()
        elif wire_type == FIXED64:
            self.skip(8)
        elif wire_type == BYTES:
            self.skip(self.varint())
        elif wire_type == FIXED32:
            self.skip(4)
        else:
            self.bad = True

    @cython.boundscheck(False)
    def count_packed(self) -> cython.Py_ssize_t:
        """Move over a packed list of varints; how many they are. Bounds are checked once, not for each byte."""
        count: cython.Py_ssize_t = 0
        i: cython.Py_ssize_t
        outer: cython.Py_ssize_t = self.enter()
        if self.bad or self.pos < 0 or self.end > len(self.data):
            self.bad = True
            return 0
        for i in range(self.pos, self.end):
            count += self.data[i] < LAST_BYTE
        if self.pos < self.end and self.data[self.end - 1] >= LAST_BYTE:
            self.pos = self.end - 1
            self.bad = True
        self.leave(outer)
        return count

    @cython.final
    def enter(self) -> cython.Py_ssize_t:
        """Narrow the cursor to the length-delimited content that starts here; the end to give to `leave`."""
        outer: cython.Py_ssize_t = self.end
        size: cython.ulonglong = self.varint()
        if self.need(size):
            self.end = self.pos + cython.cast(cython.Py_ssize_t, size)
        return outer

    @cython.final
    def leave(self, outer: cython.Py_ssize_t) -> cython.void:
        """Widen the cursor again; a bad one stays narrow, which tells damage inside a message from a cut end."""
        if not self.bad:
            self.pos = self.end
            self.end = outer
