# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Writes protobuf messages, for compiled modules.

A message is written from its end to its begin: when the length in front of it is due, its content is there.
"""

import cython

if not cython.compiled:
    from symbolize.core.protobuf import LAST_BYTE

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cclass
class Encoder:
    """What is written is `out[pos:]`; the caller gives a buffer that is large enough."""

    def __init__(self, out: cython.uchar[::1]) -> None:
        self.out = out
        self.pos = len(out)

    def varint(self, value: cython.ulonglong) -> cython.void:
        """Put a number in front, in as few bytes as hold it."""
        pos: cython.Py_ssize_t = self.pos - 1
        rest: cython.ulonglong = value >> 7
        while rest != 0:
            rest >>= 7
            pos -= 1
        self.pos = pos
        while value >= LAST_BYTE:
            self.out[pos] = value & 0x7F | LAST_BYTE
            value >>= 7
            pos += 1
        self.out[pos] = cython.cast(cython.uchar, value)

    def int64(self, value: cython.longlong) -> cython.void:
        """Put a signed number in front."""
        self.varint(cython.cast(cython.ulonglong, value) & MASK64)

    def fixed64(self, value: cython.ulonglong) -> cython.void:
        """Put a number of eight bytes in front."""
        i: cython.int
        self.pos -= 8
        for i in range(8):
            self.out[self.pos + i] = (value >> (8 * i)) & 0xFF

    def number(self, tag: cython.ulonglong, value: cython.ulonglong) -> cython.void:
        """Put a field with a number in front, unless it is zero (proto3)."""
        if value != 0:
            self.varint(value)
            self.varint(tag)

    def signed(self, tag: cython.ulonglong, value: cython.longlong) -> cython.void:
        """Put a field with a signed number in front, unless it is zero."""
        self.number(tag, cython.cast(cython.ulonglong, value) & MASK64)

    def raw(
        self, data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.void:
        """Put the bytes `data[begin:end]` in front."""
        self.pos -= end - begin
        self.out[self.pos : self.pos + end - begin] = data[begin:end]

    def close(self, tag: cython.ulonglong, end: cython.Py_ssize_t) -> cython.void:
        """Put tag and length in front of what was written since `pos` was `end`."""
        self.varint(end - self.pos)
        self.varint(tag)
