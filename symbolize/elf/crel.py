# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""Relocations of SHT_CREL sections: a stream of LEB128 differences (gABI proposal, "CREL", R95, packed relocations)."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
COUNT_SHIFT = cython.declare(cython.int, 3)
ADDENDS = cython.declare(cython.int, 4)
SHIFT_MASK = cython.declare(cython.int, 3)
"""The header: how many relocations there are, whether they have addends, and by how much offsets are shifted."""
SYMBOL_CHANGES = cython.declare(cython.int, 1)
TYPE_CHANGES = cython.declare(cython.int, 2)
ADDEND_CHANGES = cython.declare(cython.int, 4)
MORE = cython.declare(cython.int, 0x80)
"""The flags of a relocation; MORE of its offset follows as LEB128."""


def read_crel(data: cython.const[cython.uchar][::1]):  # type: ignore[no-untyped-def]
    """Offsets, symbols, types and addends (uint64[n]), and whether the section has addends.

    Each relocation begins with a byte that has flags of what differs from the one before, and the low bits of the
    difference of the offsets; its high bits and the other differences follow. Raises ValueError if it is cut off.
    """
    c: Cursor = Cursor(data)
    header: cython.ulonglong = c.uleb()
    count: cython.ulonglong = header >> COUNT_SHIFT
    flag_bits: cython.int = 3 if header & ADDENDS else 2
    shift: cython.int = header & SHIFT_MASK
    i: cython.Py_ssize_t
    byte: cython.ulonglong
    offset: cython.ulonglong = 0
    symbol: cython.ulonglong = 0
    kind: cython.ulonglong = 0
    addend: cython.ulonglong = 0
    columns: cython.ulonglong[:, ::1]
    if c.bad or count > cython.cast(cython.ulonglong, c.end - c.pos):  # a relocation takes a byte at least
        raise ValueError("more relocations than bytes")
    rows = np.zeros((4, count), np.uint64)
    columns = rows.data
    with cython.nogil:
        for i in range(count):
            byte = c.uint(1)
            offset = (offset + (byte >> flag_bits)) & MASK64
            if byte & MORE:
                # MORE was added as a part of the offset.
                offset = (offset + ((c.uleb() << (7 - flag_bits)) & MASK64) - (MORE >> flag_bits)) & MASK64
            if byte & SYMBOL_CHANGES:
                symbol = (symbol + cython.cast(cython.ulonglong, c.sleb())) & MASK64
            if byte & TYPE_CHANGES:
                kind = (kind + cython.cast(cython.ulonglong, c.sleb())) & MASK64
            if byte & ADDEND_CHANGES and header & ADDENDS:
                addend = (addend + cython.cast(cython.ulonglong, c.sleb())) & MASK64
            if c.bad:
                break
            columns[0, i] = (offset << shift) & MASK64
            columns[1, i] = symbol & MASK32
            columns[2, i] = kind & MASK32
            columns[3, i] = addend
    if c.bad:
        raise ValueError("cut off")
    return (*rows, bool(header & ADDENDS))
