"""The header tables of ELF files: the ELF header, program headers, section headers; and notes (gABI, "Note Section").

Their layouts come from pyelftools. `struct` unpacks a table in one call, because pyelftools reads a field at a time,
and a folder has thousands of files.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

EI_CLASS, EI_DATA, EI_NIDENT = 4, 5, 16
MAX_HEADER = 64
"""Bytes of the larger of the two ELF headers."""
CLASSES = {1: False, 2: True}
BYTE_ORDERS = {1: False, 2: True}
"""Whether a file of this EI_CLASS has 64 bits, whether one of this EI_DATA is big-endian."""
ET_REL = 1
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_GNU_EH_FRAME = 1, 2, 4, 0x6474E550
PF_X = 0x1
SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_NOTE, SHT_NOBITS = 0, 1, 2, 3, 7, 8
SHF_ALLOC = 0x2
SHF_EXECINSTR = 0x4
SHF_COMPRESSED = 0x800
PN_XNUM = 0xFFFF
SHN_XINDEX = 0xFFFF

FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""How `struct` calls an unsigned number of so many bytes."""

Row = tuple[int, ...]
NT_GNU_BUILD_ID = 3
NT_GO_BUILD_ID = 4
MAX_GO_BUILD_ID_BYTES = 256
MIN_BUILD_ID_BYTES = 2
MAX_BUILD_ID_BYTES = 64
MAX_NOTES_BYTES = 1 << 20


class HeaderLayout:
    """One kind of header: the `names` of its fields in order, and its `size` in bytes."""

    def __init__(self, structure: Any, order: str) -> None:
        self.names = tuple(field.name for field in structure.subcons)
        self._widths = [field.sizeof() for field in structure.subcons]
        self._order = order
        self._struct, _ = self._reader(self.names)
        self.size = self._struct.size
        self._readers = cache(self._reader)

    def _reader(self, names: tuple[str, ...]) -> tuple[struct.Struct, Callable[[Row], Row] | None]:
        """What unpacks the fields `names`, and what puts them into this order, if it is not that of the header."""
        parts = (
            FORMATS.get(width, f"{width}s") if name in names else f"{width}x"
            for name, width in zip(self.names, self._widths, strict=True)
        )
        known = [name for name in self.names if name in names]
        reorder = None if known == list(names) else itemgetter(*map(known.index, names))
        return struct.Struct(self._order + "".join(parts)), reorder

    def rows(self, table: bytes | memoryview, entry_size: int, names: tuple[str, ...]) -> list[Row]:
        """The fields `names` of each header in `table`, one every `entry_size` bytes."""
        reader, reorder = self._readers(names)
        rows: Iterable[Row]
        if entry_size == self.size:
            rows = reader.iter_unpack(table[: len(table) // self.size * self.size])
        else:
            rows = (reader.unpack_from(table, at) for at in range(0, len(table) - self.size + 1, entry_size))
        return list(rows if reorder is None else map(reorder, rows))

    def parse(self, header: bytes | memoryview) -> dict[str, Any]:
        """All fields of a header."""
        return dict(zip(self.names, self._struct.unpack_from(header), strict=True))

    def pack(self, **values: Any) -> bytes:
        """A header with these values, 0 in the other fields."""
        return self._struct.pack(*(values.get(name, 0) for name in self.names))


class Layouts(NamedTuple):
    """The layouts of the headers of a file."""

    file: HeaderLayout
    segment: HeaderLayout
    section: HeaderLayout


@cache
def layouts_of(is_64: bool, big_endian: bool) -> Layouts:
    """The layouts in files of a class and byte order."""
    from elftools.elf.structs import ELFStructs

    structs: Any = ELFStructs(little_endian=not big_endian, elfclass=64 if is_64 else 32)
    structs.create_basic_structs()
    structs.create_advanced_structs()
    kinds = (structs.Elf_Ehdr, structs.Elf_Phdr, structs.Elf_Shdr)
    return Layouts(*(HeaderLayout(kind, ">" if big_endian else "<") for kind in kinds))


@cache
def names_of(enumeration: str) -> dict[int, str]:
    """The names of the numbers of one of pyelftools' enumerations."""
    from elftools.elf import enums

    return {value: name for name, value in getattr(enums, enumeration).items() if name != "_default_"}


class Headers:
    """The headers of a file; `read_at(offset, size)` gives its bytes, fewer at the end of the file.

    `file` has the fields of the ELF header by name, the counts are of headers that can be read. Raises ValueError if
    the ELF header is cut off or of an unknown class.

    Files with very many sections keep their number in section 0 (R101, very many sections).
    """

    def __init__(self, read_at: Callable[[int, int], bytes | memoryview]) -> None:
        self._read_at = read_at
        ident = bytes(read_at(0, MAX_HEADER))
        if len(ident) < EI_NIDENT or ident[EI_CLASS] not in CLASSES or ident[EI_DATA] not in BYTE_ORDERS:
            raise ValueError("cut off or of an unknown class")
        self.is_64, self.big_endian = CLASSES[ident[EI_CLASS]], BYTE_ORDERS[ident[EI_DATA]]
        self.layouts = layouts_of(self.is_64, self.big_endian)
        layout = self.layouts.file
        if len(ident) < layout.size:
            raise ValueError("cut off")
        self.file: dict[str, Any] = layout.parse(ident)
        self.segment_count: int = self.file["e_phnum"]
        self.section_count: int = self.file["e_shnum"]
        self.names_index: int = self.file["e_shstrndx"]
        if self.file["e_shoff"] and (self.section_count == 0 or PN_XNUM in (self.segment_count, self.names_index)):
            self._read_first()
        # Headers smaller than their structure would overlap, and there could be very many.
        if not self.file["e_shoff"] or self.file["e_shentsize"] < self.layouts.section.size:
            self.section_count = 0
        if self.file["e_phentsize"] < self.layouts.segment.size:
            self.segment_count = 0

    def _read_first(self) -> None:
        """Read section header 0, which holds what does not fit into the ELF header (R101, very many sections)."""
        layout = self.layouts.section
        row = self._read_at(self.file["e_shoff"], layout.size)
        if len(row) < layout.size:
            self.section_count = self.section_count or 1  # and this one is cut off
            return
        first = layout.parse(row)
        self.section_count = self.section_count or first["sh_size"]
        self.segment_count = first["sh_info"] if self.segment_count == PN_XNUM else self.segment_count
        self.names_index = first["sh_link"] if self.names_index == SHN_XINDEX else self.names_index

    def segments(self, *names: str) -> list[Row]:
        """The fields `names` of the program headers, fewer if they are cut off."""
        return self._rows(self.layouts.segment, self.file["e_phoff"], self.segment_count, "e_phentsize", names)

    def sections(self, *names: str) -> list[Row]:
        """The fields `names` of the section headers, fewer if they are cut off."""
        return self._rows(self.layouts.section, self.file["e_shoff"], self.section_count, "e_shentsize", names)

    def _rows(
        self, layout: HeaderLayout, offset: int, count: int, entry_size: str, names: tuple[str, ...]
    ) -> list[Row]:
        size = self.file[entry_size]
        return layout.rows(self._read_at(offset, count * size), size, names) if count else []


def holds_code(sections: Iterable[bool], segments: Iterable[int]) -> bool:
    """Whether a file has the bytes of its code, which a debug file has not (R103, code of debug files).

    `sections` tell of each section with code whether it has bytes, `segments` are the sizes in the file of executable
    segments. The sections decide: a debug file may keep the ELF headers as the only bytes of such a segment.
    """
    found = list(sections)
    return any(found) if found else any(segments)


def gnu_build_id(notes: memoryview, big_endian: bool) -> str | None:
    """The GNU build id among `notes` as lower-case hex digits; None if there is none of a sensible length."""
    for owner, kind, content in read_notes(notes, big_endian):
        if (owner, kind) == (b"GNU\0", NT_GNU_BUILD_ID) and MIN_BUILD_ID_BYTES <= len(content) <= MAX_BUILD_ID_BYTES:
            return content.hex()
    return None


def go_build_id(notes: memoryview, big_endian: bool) -> str:
    """The build id that Go's linker writes, which is text, empty if there is none among `notes`.

    Files without a GNU build id that have it in common are of one binary; no profile has it (R250, Go build ids).
    """
    for owner, kind, content in read_notes(notes, big_endian):
        if (owner, kind) == (b"Go\0\0", NT_GO_BUILD_ID) and 0 < len(content) <= MAX_GO_BUILD_ID_BYTES:
            return content.decode("ascii", "replace")
    return ""


def read_notes(notes: memoryview, big_endian: bool) -> Iterator[tuple[bytes, int, bytes]]:
    """Owner, kind and contents of each note, up to one that is cut off."""
    notes = notes[:MAX_NOTES_BYTES]
    position = 0
    while position + 12 <= len(notes):
        words = (bytes(notes[position + i : position + i + 4]) for i in (0, 4, 8))
        name_size, size, kind = (int.from_bytes(word, "big" if big_endian else "little") for word in words)
        name = position + 12
        content = name + (name_size + 3 & ~3)
        if content + size > len(notes):
            return
        yield bytes(notes[name : name + name_size]), kind, bytes(notes[content : content + size])
        position = content + (size + 3 & ~3)
