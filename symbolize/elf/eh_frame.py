# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""The ranges of code that .eh_frame describes, a frame description entry (FDE) each (LSB, "Exception Frames")."""

import cython
import numpy as np

from symbolize.core.arrays import UInt64
from symbolize.elf.image import ElfImage
from symbolize.elf.relocate import section_reader

if not cython.compiled:
    from symbolize.core.cursor import Cursor

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
UNKNOWN = cython.declare(cython.int, -1)

# Encodings of addresses (LSB, "DWARF Exception Header Encoding"): a format, SIGNED or not, and a base.
DW_EH_PE_FORMAT = cython.declare(cython.int, 0x07)
DW_EH_PE_SIGNED = cython.declare(cython.int, 0x08)
DW_EH_PE_BASE = cython.declare(cython.int, 0x70)
DW_EH_PE_INDIRECT = cython.declare(cython.int, 0x80)
DW_EH_PE_absptr = cython.declare(cython.int, 0x00)
DW_EH_PE_uleb128 = cython.declare(cython.int, 0x01)
DW_EH_PE_udata2 = cython.declare(cython.int, 0x02)
DW_EH_PE_udata8 = cython.declare(cython.int, 0x04)
DW_EH_PE_pcrel = cython.declare(cython.int, 0x10)
DW_EH_PE_aligned = cython.declare(cython.int, 0x50)

LENGTH_64 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
"""An escape: the length is in the 64 bits that follow."""
MIN_ENTRY = cython.declare(cython.Py_ssize_t, 12)
"""Bytes of the shortest FDE."""
MAX_AUGMENTATION = cython.declare(cython.int, 16)


@cython.cclass
class FrameReader:
    """Reads one .eh_frame section at vaddr `base`; `encoding` is that of addresses of the CIE at `cie`, or UNKNOWN."""

    def __init__(self, data, base: cython.ulonglong, address_size: cython.int, big: cython.bint) -> None:  # type: ignore[no-untyped-def]
        self.c = Cursor(data, 0, -1, big)
        self.base = base
        self.address_size = address_size
        self.cie = -1
        self.encoding = UNKNOWN

    def enter(self, position: cython.Py_ssize_t) -> cython.bint:
        """Read the common information entry (CIE) at `position`, unless it was the last one; whether its FDEs can be
        decoded."""
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
        if length == LENGTH_64:
            self.c.skip(8)
        if self.c.uint(4) != 0 or self.c.bad:  # an entry that is no CIE
            return False
        version = self.c.uint(1)
        first = self.c.pos
        while letters <= MAX_AUGMENTATION and self.c.uint(1) != 0:
            letters += 1
        if self.c.bad or letters > MAX_AUGMENTATION or (version != 1 and version != 3):
            return False
        if letters and self.c.data[first] != ord("z"):  # without "z" the layout of what follows is unknown
            return False
        self.c.uleb()
        self.c.sleb()
        if version == 1:
            self.c.skip(1)
        else:
            self.c.uleb()
        self.encoding = 0
        if letters:
            self.c.uleb()
            for i in range(1, letters):
                letter = self.c.data[first + i]
                if letter == ord("R"):  # the encoding of addresses
                    self.encoding = self.c.uint(1)
                elif letter == ord("L"):  # that of the language-specific data
                    self.c.skip(1)
                elif letter == ord("P"):  # that of the personality routine, and its address
                    personality = self.c.uint(1)
                    if personality & DW_EH_PE_BASE == DW_EH_PE_aligned:
                        self.encoding = UNKNOWN
                        return False
                    self.pointer(personality)
                elif letter not in (ord("S"), ord("B"), ord("G")):  # flags
                    break
        # Other bases are known to a running program only.
        if self.c.bad or self.encoding & (DW_EH_PE_BASE | DW_EH_PE_INDIRECT) not in (DW_EH_PE_absptr, DW_EH_PE_pcrel):
            self.encoding = UNKNOWN
        return self.encoding != UNKNOWN

    def pointer(self, encoding: cython.int) -> cython.ulonglong:
        """The number at the position, in one of the encodings DW_EH_PE_absptr to DW_EH_PE_sdata8, modulo 2⁶⁴."""
        size: cython.int = encoding & DW_EH_PE_FORMAT
        value: cython.ulonglong
        if size == DW_EH_PE_uleb128:
            if encoding & DW_EH_PE_SIGNED:
                return cython.cast(cython.ulonglong, self.c.sleb()) & MASK64
            return self.c.uleb()
        if size == DW_EH_PE_absptr:
            return self.c.uint(self.address_size)
        if size > DW_EH_PE_udata8:
            self.c.bad = True
            return 0
        size = 2 << (size - DW_EH_PE_udata2)
        value = self.c.uint(size)
        if encoding & DW_EH_PE_SIGNED and size < 8 and value >> (8 * size - 1):
            value |= (MASK64 << (8 * size)) & MASK64
        return value


def read_frames(data, base: cython.ulonglong, address_size: cython.int, big: cython.bint):  # type: ignore[no-untyped-def]
    """Begin and end vaddrs (uint64[n]) of the FDEs of an .eh_frame section at vaddr `base`, in file order.

    Empty and unreadable entries are left out. A length that exceeds the section ends the walk.
    """
    reader: FrameReader = FrameReader(data, base, address_size, big)
    c: Cursor = reader.c
    rows = np.zeros((2, len(data) // MIN_ENTRY + 1), np.uint64)
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
        while c.end - next_entry >= MIN_ENTRY:
            c.pos = next_entry
            c.bad = False
            length = c.uint(4)
            if length == LENGTH_64:
                length = c.uint(8)
            if c.bad or length > cython.cast(cython.ulonglong, c.end - c.pos):
                break
            next_entry = c.pos + cython.cast(cython.Py_ssize_t, length)
            if length < 4:  # no CIE or FDE; a zero ends the part of one object file
                continue
            field = c.pos
            back = c.uint(4)
            if back == 0 or back > cython.cast(cython.ulonglong, field):
                continue
            if not reader.enter(field - cython.cast(cython.Py_ssize_t, back)):
                continue
            c.pos = field + 4
            c.bad = False
            begin = reader.pointer(reader.encoding)
            if reader.encoding & DW_EH_PE_BASE == DW_EH_PE_pcrel:
                begin += base + cython.cast(cython.ulonglong, field + 4)
            begin &= mask
            size = reader.pointer(reader.encoding & DW_EH_PE_FORMAT) & mask
            if c.bad or c.pos > next_entry or size == 0 or size > mask - begin:
                continue
            columns[0, count] = begin
            columns[1, count] = begin + size
            count += 1
    return rows[0, :count].copy(), rows[1, :count].copy()


def frame_ranges(image: ElfImage) -> tuple[UInt64, UInt64]:
    """Begin and end vaddrs of the FDEs of .eh_frame that begin in code, by begin; none if the file has none."""
    none = np.zeros(0, np.uint64)
    section, contents = image.find(".eh_frame"), section_reader(image)(".eh_frame")
    code_begin, code_end = image.code_ranges
    if section is None or not contents or not len(code_begin):
        return none, none
    begin, end = read_frames(contents, section.vaddr, 8 if image.is_64 else 4, image.big_endian)
    found = np.searchsorted(code_begin, begin, side="right") - 1
    rows = np.flatnonzero((found >= 0) & (begin < code_end[found]))
    rows = rows[np.argsort(begin[rows], kind="stable")]
    return begin[rows], end[rows]
