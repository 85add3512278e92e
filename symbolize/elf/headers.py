"""The header tables of ELF files: the ELF header, program headers, section headers; and notes (gABI, "Note Section").

`struct` unpacks a table in one call, because pyelftools reads a field at a time, and a folder has thousands of files.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

EI_CLASS, EI_DATA, EI_NIDENT = 4, 5, 16
MAX_HEADER = 64
"""Bytes of the larger of the two ELF headers."""
CLASSES = {1: False, 2: True}
BYTE_ORDERS = {1: False, 2: True}
"""Whether a file of this EI_CLASS has 64 bits, whether one of this EI_DATA is big-endian."""
ET_REL = 1
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_GNU_EH_FRAME = 1, 2, 4, 0x6474E550
PF_X = 0x1
SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_REL = 0, 1, 2, 3, 4, 7, 8, 9
SHT_SYMTAB_SHNDX, SHT_CREL = 18, 0x40000014
SHF_ALLOC = 0x2
SHF_EXECINSTR = 0x4
SHF_COMPRESSED = 0x800
PN_XNUM = 0xFFFF
SHN_XINDEX = 0xFFFF

FILE: Final = (
    "e_ident:16s e_type:H e_machine:H e_version:I e_entry:A e_phoff:A e_shoff:A e_flags:I e_ehsize:H "
    "e_phentsize:H e_phnum:H e_shentsize:H e_shnum:H e_shstrndx:H"
)
SEGMENT: Final = {
    False: "p_type:I p_offset:I p_vaddr:I p_paddr:I p_filesz:I p_memsz:I p_flags:I p_align:I",
    True: "p_type:I p_flags:I p_offset:Q p_vaddr:Q p_paddr:Q p_filesz:Q p_memsz:Q p_align:Q",
}
SECTION: Final = (
    "sh_name:I sh_type:I sh_flags:A sh_addr:A sh_offset:A sh_size:A sh_link:I sh_info:I sh_addralign:A sh_entsize:A"
)
"""The fields of the headers, each with what `struct` calls its type; A is an unsigned number of the size of an
address. Program headers of 64 bits have another order."""
KINDS: Final = {
    **dict(enumerate(("ET_NONE", "ET_REL", "ET_EXEC", "ET_DYN", "ET_CORE"))),
    0xFF00: "ET_LOPROC",
    0xFFFF: "ET_HIPROC",
}
"""The names of types of files."""
USUAL_MACHINES: Final = {
    3: "EM_386",
    20: "EM_PPC",
    21: "EM_PPC64",
    22: "EM_S390",
    40: "EM_ARM",
    62: "EM_X86_64",
    183: "EM_AARCH64",
    243: "EM_RISCV",
    258: "EM_LOONGARCH",
}
"""The names of machines for which pyelftools is not imported: that takes longer than reading a small program."""

Row = tuple[int, ...]
NT_GNU_BUILD_ID = 3
NT_GO_BUILD_ID = 4
MAX_GO_BUILD_ID_BYTES = 256
MIN_BUILD_ID_BYTES = 2
MAX_BUILD_ID_BYTES = 64
MAX_NOTES_BYTES = 1 << 20


class HeaderLayout:
    """One kind of header: the `names` of its fields in order, and its `size` in bytes."""

    def __init__(self, fields: str, is_64: bool, order: str) -> None:
        types = dict(field.split(":") for field in fields.replace(":A", ":Q" if is_64 else ":I").split())
        self.names = tuple(types)
        self._types = types
        self._order = order
        self._struct, _ = self._reader(self.names)
        self.size = self._struct.size
        self._readers = cache(self._reader)

    def _reader(self, names: tuple[str, ...]) -> tuple[struct.Struct, Callable[[Row], Row] | None]:
        """What unpacks the fields `names`, and what puts them into this order, if it is not that of the header."""
        parts = (kind if name in names else f"{struct.calcsize(kind)}x" for name, kind in self._types.items())
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
    order = ">" if big_endian else "<"
    return Layouts(*(HeaderLayout(fields, is_64, order) for fields in (FILE, SEGMENT[is_64], SECTION)))


def machine_name(number: int) -> str:
    """The name of a machine; empty for one that has none."""
    if number in USUAL_MACHINES:
        return USUAL_MACHINES[number]
    from elftools.elf.enums import ENUM_E_MACHINE

    return {value: name for name, value in ENUM_E_MACHINE.items() if name != "_default_"}.get(number, "")


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
