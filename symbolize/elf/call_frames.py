# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""Call frame information: the entries of .eh_frame (LSB, "Exception Frames") and .debug_frame (DWARF 5 §6.4.1).

A frame description entry (FDE) covers a range of code, and refers to a common information entry (CIE).
"""

from collections.abc import Sequence
from typing import NamedTuple

import cython
import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt64
from symbolize.elf.dynamic import file_offset
from symbolize.elf.image import Buffer, ElfImage
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
MIN_ENTRY = cython.declare(cython.Py_ssize_t, 10)
"""Bytes of the shortest FDE: a length, a CIE pointer, and two numbers of a byte each."""
HEADER = 4
"""Bytes of .eh_frame_hdr before the address of .eh_frame: a version, and the encoding of this address and others."""
MAX_AUGMENTATION = cython.declare(cython.int, 16)


@cython.cclass
class FrameReader:
    """Reads the entries of one section at vaddr `base`, an .eh_frame or, with `is_debug`, a .debug_frame (R306, entries
    of call frame information).

    `header` reads where an entry ends (`next`) and which CIE an FDE has (`owner`, -1: it is a CIE itself), `enter` that
    CIE and the FDE: the range `begin` to `end` that it covers, and its instructions, `program` to `program_end`. Of the
    CIE at `cie` it keeps how addresses are encoded (UNKNOWN: its FDEs cannot be decoded), the alignment factors, the
    return address column, whether its frames are those of signals, and its instructions, `initial` to `initial_end`.

    Of the letters of an augmentation `R` gives the encoding of addresses, `P` and `L` are skipped, `S` marks frames of
    signals, `B` and `G` are flags. In the 64-bit form the CIE pointer has 4 bytes in .eh_frame and 8 in .debug_frame;
    it counts back from its own place in the first, and from the begin of the section in the second.
    """

    def __init__(  # type: ignore[no-untyped-def]
        self, data, base: cython.ulonglong, address_size: cython.int, big: cython.bint, is_debug: cython.bint = False
    ) -> None:
        self.c = Cursor(data, 0, -1, big)
        self.base = base
        self.address_size = address_size
        self.is_debug = is_debug
        self.cie = -1
        self.encoding = UNKNOWN

    def header(self, position: cython.Py_ssize_t) -> cython.bint:
        """Read the header of the entry at `position`, and leave the cursor behind it; False where the section ends."""
        length: cython.ulonglong
        back: cython.ulonglong
        top: cython.ulonglong
        width: cython.int = 4
        self.c.pos = position
        self.c.bad = self.c.end - position < MIN_ENTRY
        length = self.c.uint(4)
        if length == LENGTH_64:
            length = self.c.uint(8)
            width = 8 if self.is_debug else 4
        if self.c.bad or length > cython.cast(cython.ulonglong, self.c.end - self.c.pos):
            return False
        self.next = self.c.pos + cython.cast(cython.Py_ssize_t, length)
        self.field = self.c.pos
        self.owner = -1
        if length < 4:  # no CIE or FDE; a zero ends the part of one object file
            self.c.bad = True
            return True
        back = self.c.uint(width)
        if self.is_debug:
            top = LENGTH_64 if width == 4 else MASK64
            if back != top and back < cython.cast(cython.ulonglong, position):
                self.owner = cython.cast(cython.Py_ssize_t, back)
            self.c.bad |= back != top and self.owner < 0
        elif back != 0:
            self.c.bad |= back > cython.cast(cython.ulonglong, self.field)
            self.owner = self.field - cython.cast(cython.Py_ssize_t, back) if not self.c.bad else -1
        return True

    def enter(self, position: cython.Py_ssize_t) -> cython.bint:
        """Read the FDE at `position` with its CIE; whether it covers code that is known."""
        after: cython.Py_ssize_t
        next_entry: cython.Py_ssize_t
        known: cython.bint
        if not self.header(position) or self.c.bad or self.owner < 0:
            return False
        after = self.c.pos
        next_entry = self.next
        known = self.enter_cie(self.owner)
        self.next = next_entry
        self.c.pos = after
        self.c.bad = False
        return known and self.description()

    def enter_cie(self, position: cython.Py_ssize_t) -> cython.bint:
        """Read the CIE at `position`, unless it was the last one; whether its FDEs can be decoded."""
        version: cython.ulonglong
        letters: cython.int = 0
        first: cython.Py_ssize_t
        if position == self.cie:
            return self.encoding != UNKNOWN
        self.cie = position
        self.encoding = UNKNOWN
        if not self.header(position) or self.c.bad or self.owner >= 0:  # an entry that is no CIE
            return False
        version = self.c.uint(1)
        first = self.c.pos
        while letters <= MAX_AUGMENTATION and self.c.uint(1) != 0:
            letters += 1
        if self.c.bad or letters > MAX_AUGMENTATION or version not in (1, 3, 4):
            return False
        if letters and self.c.data[first] != ord("z"):  # without "z" the layout of what follows is unknown
            return False
        self.size = self.address_size
        if version == 4:  # sizes of addresses and of segment selectors
            self.size = self.c.uint(1)
            if self.c.uint(1) != 0 or (self.size != 4 and self.size != 8):
                return False
        self.code_factor = self.c.uleb()
        self.data_factor = self.c.sleb()
        self.return_register = self.c.uint(1) if version == 1 else self.c.uleb()
        self.is_signal = False
        self.has_data = letters != 0
        return self.augmentation(first, letters)

    def augmentation(self, first: cython.Py_ssize_t, letters: cython.int) -> cython.bint:
        """Read what the letters from `first` on announce, and where the instructions of the CIE are."""
        letter: cython.ulonglong
        i: cython.int
        personality: cython.int
        encoding: cython.int = DW_EH_PE_absptr
        length: cython.ulonglong
        if letters:
            length = self.c.uleb()
            self.initial = self.c.pos
            if self.c.need(length):
                self.initial += cython.cast(cython.Py_ssize_t, length)
            for i in range(1, letters):
                letter = self.c.data[first + i]
                if letter == ord("R"):  # the encoding of addresses
                    encoding = self.c.uint(1)
                elif letter == ord("L"):  # that of the language-specific data
                    self.c.skip(1)
                elif letter == ord("P"):  # that of the personality routine, and its address
                    personality = self.c.uint(1)
                    if personality & DW_EH_PE_BASE == DW_EH_PE_aligned:
                        return False
                    self.pointer(personality)
                elif letter == ord("S"):
                    self.is_signal = True
                elif letter not in (ord("B"), ord("G")):  # flags
                    break
        else:
            self.initial = self.c.pos
        self.initial_end = self.next
        return not self.c.bad and self.choose(encoding)

    def choose(self, encoding: cython.int) -> cython.bint:
        """Let addresses have an encoding, unless its base is known to a running program only; whether they have one."""
        if encoding & (DW_EH_PE_BASE | DW_EH_PE_INDIRECT) in (DW_EH_PE_absptr, DW_EH_PE_pcrel):
            self.encoding = encoding
        return self.encoding != UNKNOWN

    def description(self) -> cython.bint:
        """Read the FDE behind its header: the code that it covers, if any, and where its instructions are."""
        mask: cython.ulonglong = MASK64 if self.size == 8 else MASK32
        size: cython.ulonglong
        length: cython.ulonglong
        self.begin = self.address()
        size = self.pointer(self.encoding & DW_EH_PE_FORMAT) & mask
        if self.c.bad or self.c.pos > self.next or size == 0 or size > mask - self.begin:
            return False
        self.end = self.begin + size
        self.program = self.program_end = self.next
        if self.has_data:
            length = self.c.uleb()
            if self.c.bad or self.c.pos > self.next or length > cython.cast(cython.ulonglong, self.next - self.c.pos):
                return True  # the range is known all the same
            self.c.pos += cython.cast(cython.Py_ssize_t, length)
        self.program = self.c.pos
        return True

    def address(self) -> cython.ulonglong:
        """The vaddr at the position, encoded as the CIE says."""
        at: cython.ulonglong = self.base + cython.cast(cython.ulonglong, self.c.pos)
        value: cython.ulonglong = self.pointer(self.encoding)
        if self.encoding & DW_EH_PE_BASE == DW_EH_PE_pcrel:
            value += at
        return value & (MASK64 if self.size == 8 else MASK32)

    def pointer(self, encoding: cython.int) -> cython.ulonglong:
        """The number at the position, in one of the encodings DW_EH_PE_absptr to DW_EH_PE_sdata8, modulo 2⁶⁴."""
        size: cython.int = encoding & DW_EH_PE_FORMAT
        value: cython.ulonglong
        if size == DW_EH_PE_uleb128:
            if encoding & DW_EH_PE_SIGNED:
                return cython.cast(cython.ulonglong, self.c.sleb()) & MASK64
            return self.c.uleb()
        if size == DW_EH_PE_absptr:
            return self.c.uint(self.size)
        if size > DW_EH_PE_udata8:
            self.c.bad = True
            return 0
        size = 2 << (size - DW_EH_PE_udata2)
        value = self.c.uint(size)
        if encoding & DW_EH_PE_SIGNED and size < 8 and value >> (8 * size - 1):
            value |= (MASK64 << (8 * size)) & MASK64
        return value


def read_frames(  # type: ignore[no-untyped-def]
    data,
    base: cython.ulonglong,
    address_size: cython.int,
    big: cython.bint,
    is_debug: cython.bint = False,
    has_end: cython.bint = True,
):
    """Begin and end vaddrs (uint64[n]) of the FDEs of a section at vaddr `base`, and their positions in it (int64[n]),
    in file order.

    Empty and unreadable entries are left out. A length that exceeds the section ends the walk, and so does a length of
    zero where other data follow (not `has_end`).
    """
    reader: FrameReader = FrameReader(data, base, address_size, big, is_debug)
    rows = np.zeros((2, len(data) // MIN_ENTRY + 1), np.uint64)
    positions = np.zeros(rows.shape[1], np.int64)
    columns: cython.ulonglong[:, ::1] = rows.data
    at: cython.longlong[::1] = positions.data
    count: cython.Py_ssize_t = 0
    next_entry: cython.Py_ssize_t = 0
    position: cython.Py_ssize_t
    with cython.nogil:
        while reader.header(next_entry):
            position = next_entry
            next_entry = reader.next
            if not has_end and next_entry == position + 4:
                break
            if reader.c.bad or reader.owner < 0 or not reader.enter(position):
                continue
            columns[0, count] = reader.begin
            columns[1, count] = reader.end
            at[count] = position
            count += 1
    return rows[0, :count].copy(), rows[1, :count].copy(), positions[:count].copy()


class FrameSection(NamedTuple):
    """The FDEs of a section that begin in code, by begin: the ranges that they cover and their positions in `data`,
    which is at vaddr `base`."""

    data: Buffer
    base: int
    is_debug: bool
    address_size: int
    big_endian: bool
    begin: UInt64
    end: UInt64
    position: Int64


def frame_section(image: ElfImage, name: str = ".eh_frame") -> FrameSection | None:
    """The FDEs of the section `name` of a file, .eh_frame or .debug_frame; None if it has none.

    An FDE that does not begin in code is ignored. The section is read from end to end, whether it has an .eh_frame_hdr
    or not; in a file without section headers it begins where the header of PT_GNU_EH_FRAME says, and ends with its
    first zero. Separate debug files and Go programs have .debug_frame (R305, call frame information that counts).
    """
    found = loaded_frames(image) if not image.sections and name == ".eh_frame" else section_of(image, name)
    code_begin, code_end = image.code_ranges
    if found is None or not len(code_begin):
        return None
    contents, vaddr = found
    size, is_debug = 8 if image.is_64 else 4, name == ".debug_frame"
    columns = read_frames(contents, vaddr, size, image.big_endian, is_debug, len(image.sections) > 0)
    begin, end, position = columns
    place = np.searchsorted(code_begin, begin, side="right") - 1
    rows = np.flatnonzero((place >= 0) & (begin < code_end[place]))
    rows = rows[np.argsort(begin[rows], kind="stable")]
    return FrameSection(contents, vaddr, is_debug, size, image.big_endian, begin[rows], end[rows], position[rows])


class FramesAt(NamedTuple):
    """The call frame information at some addresses of code that no file has: address `i` is at vaddr `vaddr[i]` of the
    code that the .eh_frame `sections[section[i]]` describes, its contents and its vaddr. NONE: there is no such code;
    `undecided`: there was one after another, and nothing says which. `machine` is called as in ELF files."""

    machine: str
    sections: Sequence[tuple[bytes, int]]
    section: Int64
    vaddr: UInt64
    undecided: Bool


def frames_in(contents: Buffer, vaddr: int) -> FrameSection:
    """The FDEs of an .eh_frame without a file, of a little-endian machine of 64 bits."""
    begin, end, position = read_frames(contents, vaddr, 8, False)
    rows = np.argsort(begin, kind="stable")
    return FrameSection(contents, vaddr, False, 8, False, begin[rows], end[rows], position[rows])


def section_of(image: ElfImage, name: str) -> tuple[Buffer, int] | None:
    """The contents and the vaddr of a section; None if it has none."""
    section, contents = image.find_debug(name), section_reader(image)(name)
    return (contents, section.vaddr) if section is not None and contents else None


def loaded_frames(image: ElfImage) -> tuple[Buffer, int] | None:
    """The .eh_frame of a file without section headers, with what is loaded behind it, and its vaddr; None without one.

    PT_GNU_EH_FRAME is the .eh_frame_hdr, which begins with that address (LSB, "The .eh_frame_hdr section").
    """
    at = image.frame_header
    begin = None if at is None else file_offset(image, at)
    if begin is None:
        return None
    reader: FrameReader = FrameReader(image.data[begin:], at, 8 if image.is_64 else 4, image.big_endian)
    reader.size = reader.address_size
    if reader.c.uint(1) != 1 or not reader.choose(reader.c.uint(1)):
        return None
    reader.c.seek(HEADER)
    vaddr: cython.ulonglong = reader.address()
    offset = None if reader.c.bad else file_offset(image, vaddr)
    if offset is None:
        return None
    segment = next(s for s in image.segments if s.vaddr <= vaddr < s.vaddr + s.file_size)
    return image.data[offset : segment.file_offset + segment.file_size], vaddr


def frame_ranges(image: ElfImage) -> tuple[UInt64, UInt64]:
    """Begin and end vaddrs of the FDEs of .eh_frame that begin in code, by begin; none if the file has none."""
    found = frame_section(image)
    none = np.zeros(0, np.uint64)
    return (found.begin, found.end) if found is not None else (none, none)
