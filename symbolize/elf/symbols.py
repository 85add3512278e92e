"""ELF symbol tables as columns."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from symbolize.elf.dynamic import dynamic_tables
from symbolize.elf.image import Buffer, ElfImage, Section

STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_FILE, STT_GNU_IFUNC = 0, 1, 2, 4, 10
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
SHN_LORESERVE = 0xFF00
TAGGED_MACHINES = frozenset({"EM_ARM", "EM_MIPS"})
"""Machines on which bit 0 of a function's address marks another instruction set (rule R133)."""

CODE_TYPES = np.zeros(16, np.bool_)
CODE_TYPES[[STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC]] = True
ARM_MAPPING = np.zeros(256, np.bool_)
ARM_MAPPING[list(b"adtx")] = True

NAME_PREFIX = 9
"""How many bytes of a name the rejection of rule R106 looks at."""


@dataclass(eq=False)
class Symbols:
    """Code symbols of one table, a row each: vaddr, size (0: unknown), type, binding, end of the section.

    `name` is the offset of the name in `strings`, where it ends with a NUL, `file` that of the source
    file of a local symbol (0: unknown, rule R120); `dynamic` marks a .dynsym.
    """

    vaddr: NDArray[np.uint64]
    size: NDArray[np.uint64]
    type: NDArray[np.uint8]
    binding: NDArray[np.uint8]
    section_end: NDArray[np.uint64]
    name: NDArray[np.int64]
    file: NDArray[np.int64]
    strings: bytes
    dynamic: bool

    def __len__(self) -> int:
        return len(self.vaddr)

    def take(self, rows: NDArray[np.bool_]) -> Self:
        """The symbols that `rows` selects."""
        return replace(
            self,
            vaddr=self.vaddr[rows],
            size=self.size[rows],
            type=self.type[rows],
            binding=self.binding[rows],
            section_end=self.section_end[rows],
            name=self.name[rows],
            file=self.file[rows],
        )

    def text(self, start: int) -> bytes:
        """The string at offset `start`; one without an end reaches to the end of the table (rule R75)."""
        end = self.strings.find(b"\0", start)
        return self.strings[start:] if end < 0 else self.strings[start:end]


def read_symbols(image: ElfImage, table: str) -> Symbols | None:
    """The code symbols of the section `table` (`.symtab` or `.dynsym`); None if there is no such table.

    Kept are FUNC, GNU_IFUNC and what else lies in an executable section (rules R104, R105), except mapping
    symbols and temporaries (rule R106).
    """
    found = table_bytes(image, table)
    if found is None:
        return None
    data, strings = found
    order = ">" if image.big_endian else "<"
    if image.is_64:
        fields = [("name", "u4"), ("info", "u1"), ("other", "u1"), ("shndx", "u2"), ("value", "u8"), ("size", "u8")]
    else:
        fields = [("name", "u4"), ("value", "u4"), ("size", "u4"), ("info", "u1"), ("other", "u1"), ("shndx", "u2")]
    layout = np.dtype([(name, order + kind) for name, kind in fields])
    rows = np.frombuffer(data, layout, len(data) // layout.itemsize)
    kind = (rows["info"] & 15).astype(np.uint8)
    code, index, ends = code_places(image, rows)
    wanted = code & CODE_TYPES[kind] & (rows["name"] > 0) & (rows["name"] < len(strings))
    files = source_files(rows)
    rows, index, kind = rows[wanted], index[wanted], kind[wanted]
    file = files[wanted]
    name = rows["name"].astype(np.int64)
    blob = bytes(strings)
    kept = ~rejected(blob, name)
    vaddr = rows["value"].astype(np.uint64)
    if image.machine in TAGGED_MACHINES:
        vaddr = np.where(kind == STT_FUNC, vaddr & ~np.uint64(1), vaddr)
    return Symbols(
        vaddr[kept],
        rows["size"].astype(np.uint64)[kept],
        kind[kept],
        (rows["info"] >> 4).astype(np.uint8)[kept],
        ends[index][kept],
        name[kept],
        file[kept],
        blob,
        table == ".dynsym",
    )


def table_bytes(image: ElfImage, table: str) -> tuple[Buffer, Buffer] | None:
    """The bytes of a symbol table and of its strings, by section headers or, for a file without them, PT_DYNAMIC."""
    section = image.find(table)
    if section is None:
        return dynamic_tables(image) if table == ".dynsym" and not image.sections else None
    if not 0 < section.link < len(image.sections):
        return None
    data, strings = image.contents(table), image.raw(image.sections[section.link])
    return (data, strings) if data is not None and strings is not None else None


def code_places(
    image: ElfImage, rows: NDArray[np.void]
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.uint64]]:
    """Which symbols lie in code, in which section, and where each section ends.

    Without section headers the executable segments stand for sections (rule R54). They may hold constants too, so
    data symbols do not count there.
    """
    if image.sections:
        index = section_indices(image, rows["shndx"])
        known = (index > 0) & (index < len(image.sections))
        index = np.where(known, index, 0)
        executable = np.array([section.is_code for section in image.sections])
        ends = np.array([min(s.vaddr + s.size, (1 << 64) - 1) for s in image.sections], np.uint64)
        return known & executable[index], index, ends
    begins, ends = image.code_ranges
    value = rows["value"].astype(np.uint64)
    index = np.searchsorted(begins, value, side="right") - 1
    inside = (index >= 0) & (rows["shndx"] > 0) & (rows["shndx"] < SHN_LORESERVE) & (len(begins) > 0)
    inside &= rows["info"] & 15 != STT_OBJECT
    index = np.maximum(index, 0)
    if len(ends):
        inside &= value < ends[index]
    return inside, index, ends


def source_files(rows: NDArray[np.void]) -> NDArray[np.int64]:
    """For each local symbol the name offset of the FILE symbol before it, 0 for all others (rule R120)."""
    place = np.where(rows["info"] & 15 == STT_FILE, np.arange(len(rows)), 0)
    names = np.where(rows["info"] & 15 == STT_FILE, rows["name"], 0).astype(np.int64)
    local = rows["info"] >> 4 == STB_LOCAL
    return np.where(local, names[np.maximum.accumulate(place)], 0)


def section_indices(image: ElfImage, shndx: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Section indices of symbols, 0 for the reserved ones; escapes go through SHT_SYMTAB_SHNDX (rule R101)."""
    index = shndx.astype(np.int64)
    escaped = index == 0xFFFF
    index[index >= SHN_LORESERVE] = 0
    if escaped.any():
        table: Section | None = next((s for s in image.sections if s.type == "SHT_SYMTAB_SHNDX"), None)
        raw = image.raw(table) if table is not None else None
        if raw is not None:
            words = np.frombuffer(raw, ">u4" if image.big_endian else "<u4", len(raw) // 4)
            escaped[len(words) :] = False
            index[escaped] = words[: len(index)][escaped[: len(words)]]
    return index


def rejected(strings: bytes, name: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which names are no functions (rule R106): mapping symbols `$a $d $t $x`, `.L…`, `__typeid_…`, `.annobin_…`."""
    padded = np.frombuffer(strings + bytes(NAME_PREFIX), np.uint8)

    def starts(prefix: bytes) -> NDArray[np.bool_]:
        match = np.ones(len(name), np.bool_)
        for i, byte in enumerate(prefix):
            match &= padded[name + i] == byte
        return match

    mapping = starts(b"$") & ARM_MAPPING[padded[name + 1]]
    mapping &= (padded[name + 2] == 0) | (padded[name + 2] == ord(".")) | starts(b"$xrv")
    result: NDArray[np.bool_] = (
        mapping | starts(b".L") | starts(b"__typeid_") | starts(b".annobin_") | (padded[name] == 0)
    )
    return result
