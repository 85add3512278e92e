"""Builds ELF files in memory: the sections, segments and symbols that a test wants, and nothing else."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

NULL, PROGBITS, SYMTAB, STRTAB, RELA, NOTE, NOBITS, REL, DYNSYM, SYMTAB_SHNDX = 0, 1, 2, 3, 4, 7, 8, 9, 11, 18
CREL = 0x40000014
WRITE, ALLOC, EXEC, COMPRESSED = 1, 2, 4, 0x800
NOTYPE, OBJECT, FUNC, SECTION, FILE, COMMON, TLS, GNU_IFUNC = 0, 1, 2, 3, 4, 5, 6, 10
LOCAL, GLOBAL, WEAK = 0, 1, 2
UNDEF, ABS, COMMON_INDEX, XINDEX = 0, 0xFFF1, 0xFFF2, 0xFFFF
ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
X86_64, ARM, MIPS, AARCH64, PPC64, S390, RISCV, I386, LOONGARCH = 62, 40, 8, 183, 21, 22, 243, 3, 258


class Section(NamedTuple):
    """A section; `size` is that of a NOBITS section, `link` and `info` are names of other ones."""

    name: str
    data: bytes = b""
    type: int = PROGBITS
    flags: int = 0
    address: int = 0
    size: int | None = None
    link: str = ""
    entry_size: int = 0
    info: str = ""
    alignment: int = 1


class Segment(NamedTuple):
    """A program header, PT_LOAD unless `type` says otherwise."""

    address: int
    size: int
    flags: int = 5
    offset: int = 0
    type: int = 1


class Symbol(NamedTuple):
    """A symbol; `section` is a name or a section index, `extended` sends the index through SHT_SYMTAB_SHNDX."""

    name: str | bytes
    value: int = 0
    size: int = 0
    type: int = FUNC
    binding: int = GLOBAL
    section: str | int = ".text"
    extended: bool = False


def text(address: int = 0x1000, size: int = 0x1000, name: str = ".text", flags: int = ALLOC | EXEC) -> Section:
    """A section of code without bytes, as debug files have it."""
    return Section(name, type=NOBITS, flags=flags, address=address, size=size)


def build_id_note(build_id: bytes, big_endian: bool = False) -> bytes:
    """A GNU build id note."""
    return struct.pack(">III" if big_endian else "<III", 4, len(build_id), 3) + b"GNU\0" + build_id


class Strings:
    """A string table; equal strings share a place."""

    def __init__(self, data: bytes = b"\0") -> None:
        self.data = bytearray(data)
        self._places: dict[bytes, int] = {b"": 0} if data else {}

    def add(self, string: str | bytes) -> int:
        """The offset of `string`, which is added if it is new."""
        raw = string.encode() if isinstance(string, str) else string
        if raw not in self._places:
            self._places[raw] = len(self.data)
            self.data += raw + b"\0"
        return self._places[raw]


def elf_file(
    sections: Sequence[Section] = (),
    segments: Sequence[Segment] = (),
    symbols: Sequence[Symbol] = (),
    dynamic: Sequence[Symbol] = (),
    *,
    is_64: bool = True,
    big_endian: bool = False,
    machine: int = X86_64,
    kind: int = ET_DYN,
    section_headers: bool = True,
    headers_first: bool = False,
    escaped_count: bool = False,
) -> bytes:
    """An ELF file of these sections; `symbols` become .symtab and `dynamic` .dynsym.

    Section headers come last, as linkers put them, or with `headers_first` in front, with the names of the sections.
    `escaped_count` gives the number of sections in section 0 (rule R101).
    """
    order = ">" if big_endian else "<"
    table = [Section("", type=NULL), *sections]
    for name, rows in ((".symtab", symbols), (".dynsym", dynamic)):
        if rows:
            table += symbol_sections(name, rows, [section.name for section in table], is_64, order)
    names = Strings()
    places = [names.add(section.name) for section in table] + [names.add(".shstrtab")]
    table.append(Section(".shstrtab", bytes(names.data), STRTAB))
    header_size, segment_size = (64, 56) if is_64 else (52, 32)
    body = bytearray(header_size + segment_size * len(segments))
    body += bytes(-len(body) % 8)
    start = len(body)
    if headers_first:
        body += bytes((64 if is_64 else 40) * len(table))
    offsets = [0] * len(table)
    for i in sorted(range(len(table)), key=lambda i: headers_first and i < len(table) - 1):
        body += bytes(-len(body) % 8)
        offsets[i] = len(body)
        body += table[i].data
    body += bytes(-len(body) % 8)
    rows = bytearray()
    index = [section.name for section in table]
    if section_headers:
        for i, section in enumerate(table):
            size = len(section.data) if section.size is None else section.size
            link = index.index(section.link) if section.link else 0
            if i == 0 and escaped_count:
                size, link = len(table), len(table) - 1
            info = index.index(section.info) if section.info else 0
            fields = (places[i], section.type, section.flags, section.address, offsets[i], size, link, info)
            rows += struct.pack(
                order + ("IIQQQQIIQQ" if is_64 else "10I"), *fields, section.alignment, section.entry_size
            )
    if headers_first:
        body[start : start + len(rows)] = rows
    else:
        start = len(body)
        body += rows
    for i, s in enumerate(segments):
        place = header_size + i * segment_size
        if is_64:
            fields = (s.type, s.flags, s.offset, s.address, s.address, s.size, s.size, 0x1000)
        else:
            fields = (s.type, s.offset, s.address, s.address, s.size, s.size, s.flags, 0x1000)
        struct.pack_into(order + ("IIQQQQQQ" if is_64 else "8I"), body, place, *fields)
    count, names_index = (len(table), len(table) - 1) if section_headers else (0, 0)
    if escaped_count:
        count, names_index = 0, XINDEX
    body[:16] = b"\x7fELF" + bytes([2 if is_64 else 1, 2 if big_endian else 1, 1]) + bytes(9)
    struct.pack_into(
        order + ("HHIQQQIHHHHHH" if is_64 else "HHIIIIIHHHHHH"),
        body,
        16,
        *(kind, machine, 1, 0, header_size if segments else 0, start if section_headers else 0, 0),
        *(header_size, segment_size, len(segments), 64 if is_64 else 40, count, names_index),
    )
    return bytes(body)


def symbol_sections(
    name: str, symbols: Sequence[Symbol], sections: Sequence[str], is_64: bool, order: str
) -> list[Section]:
    """A symbol table with its strings, and its section indices if a symbol wants them."""
    strings = Strings()
    rows, indices = bytearray(24 if is_64 else 16), bytearray(4)
    for symbol in symbols:
        index = sections.index(symbol.section) if isinstance(symbol.section, str) else symbol.section
        indices += struct.pack(order + "I", index)
        place, info = strings.add(symbol.name), symbol.binding << 4 | symbol.type
        short = XINDEX if symbol.extended else index
        if is_64:
            rows += struct.pack(order + "IBBHQQ", place, info, 0, short, symbol.value, symbol.size)
        else:
            rows += struct.pack(order + "IIIBBH", place, symbol.value, symbol.size, info, 0, short)
    link = ".strtab" if name == ".symtab" else ".dynstr"
    kind, size = (SYMTAB if name == ".symtab" else DYNSYM), 24 if is_64 else 16
    result = [
        Section(name, bytes(rows), kind, link=link, entry_size=size),
        Section(link, bytes(strings.data), STRTAB),
    ]
    if any(symbol.extended for symbol in symbols):
        result.append(Section(name + "_shndx", bytes(indices), SYMTAB_SHNDX, link=name, entry_size=4))
    return result
