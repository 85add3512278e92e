"""A quick look at a file: is it ELF, what is its build id, and what does it offer?

Reads the ELF header, the program headers, the notes and the section headers with a few small reads, because a folder
of binaries has thousands of files that are never opened for more. Nothing is mapped, and no more is read of a file
than its headers may take, however large it claims to be.
"""

import os
import struct
from typing import NamedTuple

from symbolize.elf.code import holds_code
from symbolize.elf.image import SHF_EXECINSTR, ElfError
from symbolize.elf.layout import SHF_ALLOC
from symbolize.elf.notes import gnu_build_id, go_build_id

PT_LOAD, PT_NOTE = 1, 4
PF_X = 1
SHT_NOTE, SHT_NOBITS = 7, 8
SHN_XINDEX = 0xFFFF
HEADER_BYTES = 4096
MAX_NOTE_BYTES = 1 << 20
MAX_PROGRAM_HEADERS = 4096
MAX_SECTION_BYTES = 1 << 22
MAX_NAME_BYTES = 1 << 22
MAX_LINK_BYTES = 4096
MAX_NAME = 64
"""Longer names of sections are none of those looked for."""

DWARF, SYMTAB, DYNSYM, MINI, GOPCLNTAB, CODE, SPLIT, PACKAGE = (1 << bit for bit in range(8))
"""What a file may offer; CODE are the bytes of its code (rule R103), SPLIT the units of a `.dwo` file, PACKAGE those of
many."""

OFFERS = {
    b".debug_info": DWARF,
    b".zdebug_info": DWARF,
    b".symtab": SYMTAB,
    b".dynsym": DYNSYM,
    b".gnu_debugdata": MINI,
    b".gopclntab": GOPCLNTAB,
    b".data.rel.ro.gopclntab": GOPCLNTAB,
    b".debug_info.dwo": SPLIT,
    b".zdebug_info.dwo": SPLIT,
    b".debug_cu_index": PACKAGE,
}
LINK, ALTERNATE, GO_NOTE = b".gnu_debuglink", b".gnu_debugaltlink", b".note.go.buildid"


class Ident(NamedTuple):
    """What a look at an ELF file tells: its ELF type, its build id ("" if it has none) and what it offers.

    `link` and `link_check` are name and CRC32 of its debug file (`.gnu_debuglink`), `alternate` the contents of
    `.gnu_debugaltlink`, `go_build_id` the id that Go's linker writes; all empty where there is none.
    """

    kind: int
    build_id: str
    offers: int
    link: bytes = b""
    link_check: int = 0
    alternate: bytes = b""
    go_build_id: str = ""


def read_build_id(path: str) -> str | None:
    """The build id of the ELF file at `path`, "" if it has none; None if the file is no ELF file.

    Raises OSError if it cannot be read, ElfError if its headers are cut off.
    """
    ident = identify(path)
    return None if ident is None else ident.build_id


def identify(path: str) -> Ident | None:
    """What the file at `path` is and offers; None if it is no ELF file.

    Raises OSError if it cannot be read, ElfError if its headers are cut off.
    """
    # Never block on a FIFO that took the file's place, never become the owner of a terminal.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        return identify_open(descriptor, path, os.read(descriptor, HEADER_BYTES))
    finally:
        os.close(descriptor)


def identify_open(descriptor: int, path: str, head: bytes) -> Ident | None:
    """What an open file is and offers, of which `head` are the first 4096 bytes; see `identify`."""
    if head[:4] != b"\x7fELF":
        return None
    if len(head) < 52 or head[4] not in (1, 2) or head[5] not in (1, 2):
        raise ElfError(path, "ELF header is cut off or of an unknown class")
    is_64, big_endian = head[4] == 2, head[5] == 2
    order = ">" if big_endian else "<"
    try:
        kind, programs, sections, program_size, program_count, section_size, section_count, names = struct.unpack_from(
            order + ("H14xQQ6xHHHHH" if is_64 else "H10xII6xHHHHH"), head, 16
        )
    except struct.error:
        raise ElfError(path, "ELF header is cut off") from None
    if program_count > MAX_PROGRAM_HEADERS or (program_count and program_size < (56 if is_64 else 32)):
        raise ElfError(path, "absurd program header table", programs)
    headers = read_at(descriptor, head, programs, program_size * program_count)
    if len(headers) < program_size * program_count:
        raise ElfError(path, "program headers reach past the end of the file", programs)
    build_id, left = None, MAX_NOTE_BYTES  # many headers could name the same long notes
    executable: list[int] = []
    for position in range(0, len(headers), program_size or 1):
        if is_64:
            type_, flags, offset, _, _, length = struct.unpack_from(order + "IIQQQQ", headers, position)
        else:
            type_, offset, _, _, length, _, flags = struct.unpack_from(order + "IIIIIII", headers, position)
        if type_ == PT_NOTE and build_id is None and length <= left:
            left -= length
            build_id = in_notes(descriptor, head, offset, length, big_endian)
        elif type_ == PT_LOAD and flags & PF_X:
            executable.append(length)
    try:
        table = section_table(descriptor, path, head, (sections, section_size, section_count, names), order, is_64)
    except ElfError:
        if build_id is None:
            raise
        table = [], b""
    return in_sections(descriptor, head, table, Ident(kind, build_id or "", 0), executable, big_endian)


def read_at(descriptor: int, head: bytes, offset: int, size: int) -> bytes:
    """`size` bytes at `offset`, fewer at the end of the file; what `head` has of them is not read again."""
    if offset + size <= len(head):
        return head[offset : offset + size]
    return os.pread(descriptor, size, offset) if offset < 1 << 63 else b""


def in_notes(descriptor: int, head: bytes, offset: int, length: int, big_endian: bool) -> str | None:
    """The build id among the notes at `offset`."""
    return gnu_build_id(memoryview(read_at(descriptor, head, offset, length)), big_endian)


Row = tuple[int, int, int, int, int, int]
"""Of a section header: the offset of the name, the type, the flags, offset and size of the contents, and the link."""


def section_table(
    descriptor: int, path: str, head: bytes, place: tuple[int, int, int, int], order: str, is_64: bool
) -> tuple[list[Row], bytes]:
    """The section headers, of which `place` has offset, size, number and the index of their names; and the names.

    A table that is absurdly large is left out. Raises ElfError if it is cut off.
    """
    table, size, count, names = place
    layout = struct.Struct(order + ("IIQ8xQQI20x" if is_64 else "III4xIII12x"))
    if not table:
        return [], b""
    if size < (64 if is_64 else 40):
        if count:
            raise ElfError(path, "section headers reach past the end of the file", table)
        return [], b""
    if count == 0 or names == SHN_XINDEX:  # what does not fit into the header (rule R101)
        first = read_at(descriptor, head, table, size)
        if len(first) < size:
            raise ElfError(path, "section headers reach past the end of the file", table)
        _, _, _, _, number, link = layout.unpack_from(first)
        count = count or number
        names = link if names == SHN_XINDEX else names
    if count * size > MAX_SECTION_BYTES:
        return [], b""
    headers = read_at(descriptor, head, table, size * count)
    if len(headers) < size * count:
        raise ElfError(path, "section headers reach past the end of the file", table)
    if size == layout.size:
        rows: list[Row] = list(layout.iter_unpack(headers))
    else:
        rows = [layout.unpack_from(headers, position) for position in range(0, len(headers), size)]
    if names >= len(rows) or rows[names][1] == SHT_NOBITS:
        return rows, b""
    return rows, read_at(descriptor, head, rows[names][3], min(rows[names][4], MAX_NAME_BYTES))


def in_sections(
    descriptor: int, head: bytes, table: tuple[list[Row], bytes], ident: Ident, executable: list[int], big_endian: bool
) -> Ident:
    """`ident` with what the sections add; `executable` are the sizes of executable segments in the file.

    Relocatable files have no segments, and Go's linker leaves the note out of them, so that only a section may have the
    build id.
    """
    kind, build_id, offers, link, check, alternate, go = ident
    left = MAX_NOTE_BYTES
    rows, names = table
    code: list[bool] = []
    for place, type_, flags, offset, size, _ in rows:
        if flags & SHF_EXECINSTR and flags & SHF_ALLOC and size:
            code.append(type_ != SHT_NOBITS)
        if type_ == SHT_NOBITS:
            continue
        end = names.find(b"\0", place, place + MAX_NAME)
        name = names[place:end] if end > 0 else b""
        offers |= OFFERS.get(name, 0)
        if type_ == SHT_NOTE:
            if name == GO_NOTE and size <= MAX_LINK_BYTES:
                go = go_build_id(memoryview(read_at(descriptor, head, offset, size)), big_endian)
            elif not build_id and size <= left:
                left -= size
                build_id = in_notes(descriptor, head, offset, size, big_endian) or ""
        elif name == LINK and 0 < size <= MAX_LINK_BYTES:
            link, check = read_link(read_at(descriptor, head, offset, size), big_endian)
        elif name == ALTERNATE and 0 < size <= MAX_LINK_BYTES:
            alternate = read_at(descriptor, head, offset, size)
    offers |= CODE if holds_code(code, executable) else 0
    return Ident(kind, build_id, offers, link, check, alternate, go)


def read_link(data: bytes, big_endian: bool) -> tuple[bytes, int]:
    """Name and checksum in a `.gnu_debuglink`: a string, padding to four bytes, a CRC32; empty if it is corrupt."""
    end = data.find(b"\0")
    place = (end + 4) & ~3
    if end <= 0 or place + 4 > len(data):
        return b"", 0
    return data[:end], int.from_bytes(data[place : place + 4], "big" if big_endian else "little")
