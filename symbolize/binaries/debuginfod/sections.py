"""A small ELF file composed of the sections that lookups need and the headers of the executable."""

import hashlib
import os
import shutil
import struct
from collections.abc import Mapping, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np

from symbolize.binaries.build_id import same_build_id
from symbolize.binaries.debuginfod.cache import COMPOSED
from symbolize.core.compression import ZSTD_MAGIC
from symbolize.elf import ElfImage
from symbolize.elf.headers import (
    PF_X,
    PT_LOAD,
    SHF_ALLOC,
    SHF_COMPRESSED,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_NULL,
    SHT_PROGBITS,
    SHT_STRTAB,
    SHT_SYMTAB,
    Headers,
    gnu_build_id,
)
from symbolize.elf.image import Buffer
from symbolize.elf.symbols import SHN_LORESERVE, STT_FUNC, STT_OBJECT, symbol_rows

REQUIRED = (".debug_info", ".debug_abbrev")
NOTE = ".note.gnu.build-id"
NEEDED = (
    *REQUIRED,
    ".debug_line",
    ".debug_str",
    ".debug_line_str",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_addr",
    ".debug_str_offsets",
    ".debug_types",
    ".symtab",
    ".strtab",
    ".gnu_debugaltlink",
)
"""The sections that lookups read. Left out are, above all, where variables live, macros, and indexes for debuggers."""

PF_R = 4
STB_GLOBAL, BIND_SHIFT, TYPE_MASK = 1, 4, 15
ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD = 1, 2
CHDR32_SIZE, CHDR64_SIZE = 12, 24
ZLIB_DEFLATE, ZLIB_CHECK = 8, 31  # RFC 1950
ALIGNMENT = 8
MAX_SECTIONS = 0xFE00
STT_SECTION = 3
PLACED = (STT_OBJECT, STT_FUNC, STT_SECTION)
STRAY = 100
"""One symbol in so many may lie elsewhere than in its section."""
COPY_CHUNK = 1 << 20


class NotComposable(Exception):
    """A file cannot be composed of what there is."""


class Header(NamedTuple):
    """A section to write, its fields as `sh_` ones are called: its bytes are `data`, or those of the file at `path`."""

    name: str
    type: int = SHT_NULL
    flags: int = 0
    addr: int = 0
    size: int = 0
    data: bytes = b""
    path: str = ""
    link: int = 0
    info: int = 0
    addralign: int = 1
    entsize: int = 0


def compose(executable: ElfImage, sections: Mapping[str, str], out: BinaryIO) -> None:
    """Write an ELF file to `out`: the sections, each in a file at a path, and what `executable` has in memory.

    Loaded sections keep their index, address, size and flags, without bytes (R103, code of debug files), save the build
    id; PT_LOAD segments are those of the executable. Raises NotComposable, OSError.
    """
    table = section_table(executable, sections)
    headers = Headers(lambda offset, size: executable.data[offset : offset + size])
    layouts, segments = headers.layouts, executable.segments
    out.write(bytes(layouts.file.size + layouts.segment.size * len(segments)))
    offsets = [write_section(header, out) for header in table]
    out.write(bytes(-out.tell() % ALIGNMENT))
    start, name_offset = out.tell(), 1
    for header, offset in zip(table, offsets, strict=True):
        fields = {f"sh_{field}": value for field, value in header._asdict().items()}
        own = {"sh_name": name_offset if header.name else 0, "sh_offset": offset}
        out.write(layouts.section.pack(**fields | own))
        name_offset += len(encoded(header))
    out.seek(0)
    changed = {
        "e_entry": 0,
        "e_phoff": layouts.file.size if segments else 0,
        "e_shoff": start,
        "e_ehsize": layouts.file.size,
        "e_phentsize": layouts.segment.size,
        "e_phnum": len(segments),
        "e_shentsize": layouts.section.size,
        "e_shnum": len(table),
        "e_shstrndx": len(table) - 1,
    }
    out.write(layouts.file.pack(**headers.file | changed))
    for segment in segments:
        out.write(
            layouts.segment.pack(
                p_type=PT_LOAD,
                p_flags=PF_R | PF_X if segment.executable else PF_R,
                p_offset=segment.file_offset,
                p_vaddr=segment.vaddr,
                p_paddr=segment.vaddr,
                p_filesz=segment.file_size,
                p_memsz=segment.memory_size,
                p_align=segment.alignment,
            )
        )
    out.seek(0, os.SEEK_END)


def section_table(executable: ElfImage, sections: Mapping[str, str]) -> list[Header]:
    """The sections to write, their names last. Raises NotComposable, OSError."""
    if executable.is_relocatable:
        raise NotComposable("sections of a relocatable file refer to each other by their numbers")
    if any(not sections.get(name) for name in REQUIRED):
        raise NotComposable("there is no " + " or ".join(name for name in REQUIRED if not sections.get(name)))
    if not executable.sections:
        raise NotComposable("the executable has no section headers")
    table = loaded_sections(executable)
    if sections.get(".symtab") and sections.get(".strtab"):
        with open(sections[".symtab"], "rb") as file:
            symtab = file.read()
        check_symbols(executable, symtab, table)
        rows, strings = symbol_rows(executable, symtab), len(table) + 1
        is_global = rows["info"] >= STB_GLOBAL << BIND_SHIFT
        first = int(is_global.argmax()) if is_global.any() else len(is_global)
        table.append(of_file(".symtab", sections, SHT_SYMTAB, link=strings, info=first, entsize=rows.itemsize))
        table.append(of_file(".strtab", sections, SHT_STRTAB))
    order = ">" if executable.big_endian else "<"
    for name, path in sections.items():
        if path and name not in (".symtab", ".strtab", NOTE):
            packed = SHF_COMPRESSED if is_compressed(path, executable.is_64, order) else 0
            table.append(of_file(name, sections, SHT_PROGBITS, packed))
    names = b"\0" + b"".join(map(encoded, [*table, Header(".shstrtab")]))
    table.append(Header(".shstrtab", SHT_STRTAB, size=len(names), data=names))
    if len(table) > MAX_SECTIONS:
        raise NotComposable(f"{len(table)} sections are too many")
    return table


def encoded(header: Header) -> bytes:
    """The name of a section as it is in the table of names."""
    return header.name.encode("utf-8", "replace") + b"\0" if header.name else b""


def write_section(header: Header, out: BinaryIO) -> int:
    """Write the bytes of a section; their offset. Raises NotComposable, OSError."""
    out.write(bytes(-out.tell() % max(header.addralign, ALIGNMENT)))
    offset = out.tell()
    if header.path:
        with open(header.path, "rb") as file:
            shutil.copyfileobj(file, out, COPY_CHUNK)
        if out.tell() - offset != header.size:
            raise NotComposable(f"{header.name} changed its size")
    else:
        out.write(header.data)
    return offset


def loaded_sections(executable: ElfImage) -> list[Header]:
    """The sections that are loaded, at the index that they have in the executable; others before them are empty."""
    last = max((i for i, section in enumerate(executable.sections) if section.flags & SHF_ALLOC), default=0)
    table = []
    for section in executable.sections[: last + 1]:
        if not section.flags & SHF_ALLOC:
            table.append(Header(""))
        elif section.name == NOTE and (data := executable.raw(section)) is not None:
            table.append(Header(NOTE, SHT_NOTE, section.flags, section.vaddr, section.size, bytes(data), addralign=4))
        else:
            table.append(Header(section.name, SHT_NOBITS, section.flags, section.vaddr, section.size))
    return table


def of_file(
    name: str, sections: Mapping[str, str], kind: int, flags: int = 0, link: int = 0, info: int = 0, entsize: int = 0
) -> Header:
    """A section whose bytes are in a file."""
    path = sections[name]
    size = os.stat(path).st_size
    return Header(name, kind, flags, 0, size, b"", path, link, info, ALIGNMENT, entsize)


def is_compressed(path: str, is_64: bool, order: str) -> bool:
    """Whether the bytes of a section begin with a compression header and what follows can be such data.

    A section comes without its flags, but no section of DWARF begins so.
    """
    size = CHDR64_SIZE if is_64 else CHDR32_SIZE
    with open(path, "rb") as file:
        head = file.read(size + len(ZSTD_MAGIC))
    if len(head) < size + len(ZSTD_MAGIC):
        return False
    kind, reserved = struct.unpack_from(order + "II", head)
    payload = head[size:]
    if is_64 and reserved:
        return False
    if kind == ELFCOMPRESS_ZLIB:
        return payload[0] & 0xF == ZLIB_DEFLATE and (payload[0] << 8 | payload[1]) % ZLIB_CHECK == 0
    return bool(kind == ELFCOMPRESS_ZSTD and payload == ZSTD_MAGIC)


def check_symbols(executable: ElfImage, symtab: Buffer, table: list[Header]) -> None:
    """Symbols name their sections by number, so the debug file has to number them as the executable does.

    Raises NotComposable if more than a stray symbol does not lie in its section.
    """
    rows = symbol_rows(executable, symtab)
    number, kind = rows["shndx"].astype(np.int64), rows["info"] & TYPE_MASK
    known = number < len(table)
    # Those of sections that are not loaded lie beyond the table.
    placed = (number > 0) & (number < SHN_LORESERVE) & np.isin(kind, PLACED) & (known | (kind != STT_SECTION))
    vaddr, number = rows["value"].astype(np.uint64), np.where(known, number, 0)
    begin = np.array([header.addr for header in table], np.uint64)[number]
    size = np.array([header.size for header in table], np.uint64)[number]
    loaded = np.array([bool(header.flags & SHF_ALLOC) for header in table])[number]
    wrong = int((placed & ~(loaded & (vaddr >= begin) & (vaddr - begin <= size))).sum())
    if wrong * STRAY > len(rows):
        raise NotComposable(f"{wrong} symbols do not lie in the sections of the executable")


def composed_entry(names: Sequence[str]) -> str:
    """The name of a file composed of some sections."""
    if set(names) == set(NEEDED):
        return COMPOSED
    return f"{COMPOSED}-{hashlib.sha256(' '.join(sorted(names)).encode()).hexdigest()[:16]}"


def check_note(path: str, build_id: str, big_endian: bool) -> None:
    """Check the build id in a note section. Raises NotComposable."""
    with open(path, "rb") as file:
        found = gnu_build_id(memoryview(file.read(1 << 20)), big_endian)
    if found is None or not same_build_id(found, build_id):
        raise NotComposable(f"section {NOTE} has {found or 'no build id'}, wanted {build_id}")
