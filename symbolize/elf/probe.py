"""Identifies files: whether they are ELF, their build ids, and what they offer.

Reads the headers and notes with a few small reads, because a folder of binaries has thousands of files that are never
opened for more. Nothing is mapped, and no more is read than headers may take.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from symbolize.elf.headers import (
    PF_X,
    PT_LOAD,
    PT_NOTE,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHT_NOBITS,
    SHT_NOTE,
    Headers,
    Row,
    gnu_build_id,
    go_build_id,
    holds_code,
)
from symbolize.elf.image import ElfError

Reader = Callable[[int, int], bytes]
"""What gives bytes of a file from an offset on, so many, fewer at its end."""

HEADER_BYTES = 4096
MAX_NOTE_BYTES = 1 << 20
MAX_PROGRAM_HEADERS = 4096
MAX_SECTION_BYTES = 1 << 22
MAX_NAME_BYTES = 1 << 22
MAX_LINK_BYTES = 4096
MAX_NAME = 64
"""Longer names of sections are none of those looked for."""

DWARF, SYMTAB, DYNSYM, MINI, GOPCLNTAB, CODE, SPLIT, PACKAGE = (1 << bit for bit in range(8))
"""What a file may offer; CODE are the bytes of its code (R103, code of debug files), SPLIT the units of a `.dwo` file,
PACKAGE those of many."""

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
    """The ELF type of a file, its build id ("" if it has none) and what it offers.

    `link` and `link_check` are name and CRC32 of its debug file (`.gnu_debuglink`), `alternate` is the contents of
    `.gnu_debugaltlink`, `go_build_id` the id of Go's linker; all empty where there is none.
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
    # Never block on a FIFO under this name, never become the owner of a terminal.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        return identify_open(descriptor, path, os.read(descriptor, HEADER_BYTES))
    finally:
        os.close(descriptor)


def identify_open(descriptor: int, path: str, head: bytes) -> Ident | None:
    """What an open file is and offers, of which `head` are the first 4096 bytes; see `identify`."""
    if head[:4] != b"\x7fELF":
        return None
    read = partial(read_at, descriptor, head)
    try:
        headers = Headers(read)
    except ValueError as error:
        raise ElfError(path, f"ELF header is {error}") from None
    file, start = headers.file, headers.file["e_phoff"]
    if file["e_phnum"] > MAX_PROGRAM_HEADERS or (file["e_phnum"] and not headers.segment_count):
        raise ElfError(path, "absurd program header table", start)
    segments = headers.segments("p_type", "p_flags", "p_offset", "p_filesz")
    if len(segments) < headers.segment_count:
        raise ElfError(path, "program headers reach past the end of the file", start)
    build_id, left = None, MAX_NOTE_BYTES  # many headers could name the same long notes
    executable: list[int] = []
    for kind, flags, offset, size in segments:
        if kind == PT_NOTE and build_id is None and size <= left:
            left -= size
            build_id = gnu_build_id(memoryview(read(offset, size)), headers.big_endian)
        elif kind == PT_LOAD and flags & PF_X:
            executable.append(size)
    try:
        sections, names = section_table(headers, read)
    except ValueError:
        if build_id is None:
            raise ElfError(path, "section headers reach past the end of the file", file["e_shoff"]) from None
        sections, names = [], b""
    ident = Ident(file["e_type"], build_id or "", 0)
    return in_sections(read, sections, names, ident, executable, headers.big_endian)


def read_at(descriptor: int, head: bytes, offset: int, size: int) -> bytes:
    """`size` bytes at `offset`, fewer at the end of the file; what `head` has of them is not read again."""
    if offset + size <= len(head):
        return head[offset : offset + size]
    return os.pread(descriptor, size, offset) if offset < 1 << 63 else b""


def section_table(headers: Headers, read: Reader) -> tuple[list[Row], bytes]:
    """Name, type, flags, offset and size of the sections, and their names; nothing if they are absurdly many.

    Raises ValueError if it is cut off.
    """
    count = headers.section_count
    if count * headers.file["e_shentsize"] > MAX_SECTION_BYTES:
        return [], b""
    rows = headers.sections("sh_name", "sh_type", "sh_flags", "sh_offset", "sh_size")
    if len(rows) < count or (headers.file["e_shoff"] and headers.file["e_shnum"] and not count):
        raise ValueError
    index = headers.names_index if rows else 0
    if index >= len(rows) or rows[index][1] == SHT_NOBITS:
        return rows, b""
    return rows, read(rows[index][3], min(rows[index][4], MAX_NAME_BYTES))


def in_sections(
    read: Reader, rows: list[Row], names: bytes, ident: Ident, executable: list[int], big_endian: bool
) -> Ident:
    """`ident` with what the sections add; `executable` are the sizes in the file of executable segments.

    Relocatable files have no segments, and Go's linker leaves the note out of them, so a section may have the build id.
    """
    kind, build_id, offers, link, check, alternate, go = ident
    left = MAX_NOTE_BYTES
    code: list[bool] = []
    for start, type_, flags, offset, size in rows:
        if flags & SHF_EXECINSTR and flags & SHF_ALLOC and size:
            code.append(type_ != SHT_NOBITS)
        if type_ == SHT_NOBITS:
            continue
        end = names.find(b"\0", start, start + MAX_NAME)
        name = names[start:end] if end > 0 else b""
        offers |= OFFERS.get(name, 0)
        if type_ == SHT_NOTE:
            if name == GO_NOTE and size <= MAX_LINK_BYTES:
                go = go_build_id(memoryview(read(offset, size)), big_endian)
            elif not build_id and size <= left:
                left -= size
                build_id = gnu_build_id(memoryview(read(offset, size)), big_endian) or ""
        elif name == LINK and 0 < size <= MAX_LINK_BYTES:
            link, check = read_link(read(offset, size), big_endian)
        elif name == ALTERNATE and 0 < size <= MAX_LINK_BYTES:
            alternate = read(offset, size)
    offers |= CODE if holds_code(code, executable) else 0
    return Ident(kind, build_id, offers, link, check, alternate, go)


def read_link(data: bytes, big_endian: bool) -> tuple[bytes, int]:
    """Name and checksum in a `.gnu_debuglink`: a string, padding to four bytes, a CRC32; empty if it is corrupt."""
    end = data.find(b"\0")
    start = (end + 4) & ~3
    if end <= 0 or start + 4 > len(data):
        return b"", 0
    return data[:end], int.from_bytes(data[start : start + 4], "big" if big_endian else "little")
