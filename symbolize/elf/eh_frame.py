# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""The ranges of code that .eh_frame describes, a frame description entry (FDE) each (LSB, "Exception Frames")."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
UNKNOWN = cython.declare(cython.int, -1)
OMITTED = cython.declare(cython.int, 0xFF)
MAX_AUGMENTATION = cython.declare(cython.int, 16)


@cython.cclass
class FrameReader:
    """Reads one .eh_frame section whose first byte lies at vaddr `base`.

    `encoding` is how the entries of the common information entry (CIE) at `cie` encode addresses; UNKNOWN if
    that cannot be read.
    """

    def __init__(self, data, base: cython.ulonglong, address_size: cython.int, big: cython.bint) -> None:  # type: ignore[no-untyped-def]
        self.c = Cursor(data, 0, -1, big)
        self.base = base
        self.address_size = address_size
        self.cie = -1
        self.encoding = UNKNOWN

    def enter(self, position: cython.Py_ssize_t) -> cython.bint:
        """Read the CIE at `position` unless it is the last one read; whether addresses can be decoded.

        The position in the section is undefined afterwards.
        """
        length: cython.ulonglong
        version: cython.ulonglong
        letters: cython.int = 0
        first: cython.Py_ssize_t
        letter: cython.ulonglong
        i: cython.int
        personality: cython.int
        if position == self.cie:
            return self.encoding != UNKNOWN
        self.cie = position
        self.encoding = UNKNOWN
        self.c.pos = position
        self.c.bad = False
        length = self.c.uint(4)
        if length == MASK32:
            self.c.skip(8)
        if self.c.uint(4) != 0 or self.c.bad:  # an entry that is no CIE
            return False
        version = self.c.uint(1)
        first = self.c.pos
        while letters <= MAX_AUGMENTATION and self.c.uint(1) != 0:
            letters += 1
        if self.c.bad or letters > MAX_AUGMENTATION or (version != 1 and version != 3):
            return False
        if letters and self.c.data[first] != 0x7A:  # without "z" nobody knows what follows
            return False
        self.c.uleb()
        self.c.sleb()
        if version == 1:
            self.c.skip(1)
        else:
            self.c.uleb()
        personality = OMITTED
        self.encoding = 0
        if letters:
            self.c.uleb()
            for i in range(1, letters):
                letter = self.c.data[first + i]
                if letter == 0x52:  # R: how addresses are encoded
                    self.encoding = self.c.uint(1)
                elif letter == 0x4C:  # L: how the language-specific data are
                    self.c.skip(1)
                elif letter == 0x50:  # P: how the personality routine is, and its address
                    personality = self.c.uint(1)
                    if personality & 0x70 == 0x50:
                        self.encoding = UNKNOWN
                        return False
                    self.pointer(personality & 0x0F)
                elif letter != 0x53 and letter != 0x42 and letter != 0x47:  # S, B, G: nothing
                    break
        # Absolute and relative to the place; all else needs bases that only a running program has.
        if self.c.bad or self.encoding & 0xF0 not in (0x00, 0x10):
            self.encoding = UNKNOWN
        return self.encoding != UNKNOWN

    def pointer(self, encoding: cython.int) -> cython.ulonglong:
        """The number at the position, in one of the encodings DW_EH_PE_absptr to DW_EH_PE_sdata8, modulo 2⁶⁴."""
        size: cython.int = encoding & 7
        value: cython.ulonglong
        if size == 1:
            if encoding & 8:
                return cython.cast(cython.ulonglong, self.c.sleb()) & MASK64
            return self.c.uleb()
        if size == 0:
            return self.c.uint(self.address_size)
        if size > 4:
            self.c.bad = True
            return 0
        size = 1 << (size - 1)  # 2, 3 and 4 stand for 2, 4 and 8 bytes
        value = self.c.uint(size)
        if encoding & 8 and size < 8 and value >> (8 * size - 1):
            value |= (MASK64 << (8 * size)) & MASK64
        return value


def read_frames(data, base: cython.ulonglong, address_size: cython.int, big: cython.bint):  # type: ignore[no-untyped-def]
    """Begin and end vaddrs (uint64[n]) of the FDEs of an .eh_frame section at vaddr `base`, in file order.

    Entries that are empty or cannot be read are left out. A length that runs out of the section ends the walk.
    """
    reader: FrameReader = FrameReader(data, base, address_size, big)
    c: Cursor = reader.c
    rows = np.zeros((2, len(data) // 12 + 1), np.uint64)  # an FDE has 12 bytes at least
    columns: cython.ulonglong[:, ::1] = rows.data
    count: cython.Py_ssize_t = 0
    next_entry: cython.Py_ssize_t = 0
    field: cython.Py_ssize_t
    length: cython.ulonglong
    back: cython.ulonglong
    begin: cython.ulonglong
    size: cython.ulonglong
    mask: cython.ulonglong = MASK64 if address_size == 8 else MASK32
    with cython.nogil:
        while c.end - next_entry >= 12:
            c.pos = next_entry
            c.bad = False
            length = c.uint(4)
            if length == MASK32:
                length = c.uint(8)
            if c.bad or length > cython.cast(cython.ulonglong, c.end - c.pos):
                break
            next_entry = c.pos + cython.cast(cython.Py_ssize_t, length)
            if length < 4:  # a zero ends the part of one object file
                continue
            field = c.pos
            back = c.uint(4)
            if back == 0 or back > cython.cast(cython.ulonglong, field):
                continue
            if not reader.enter(field - cython.cast(cython.Py_ssize_t, back)):
                continue
            c.pos = field + 4
            c.bad = False
            begin = reader.pointer(reader.encoding & 0x0F)
            if reader.encoding & 0x70 == 0x10:
                begin += base + cython.cast(cython.ulonglong, field + 4)
            begin &= mask
            size = reader.pointer(reader.encoding & 0x07) & mask
            if c.bad or c.pos > next_entry or size == 0 or size > mask - begin:
                continue
            columns[0, count] = begin
            columns[1, count] = begin + size
            count += 1
    return rows[0, :count].copy(), rows[1, :count].copy()
