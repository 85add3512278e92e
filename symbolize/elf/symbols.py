"""ELF symbol tables as columns, those of mini debug info too."""

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Bool, Int64, UInt8, UInt16, UInt64, distinct
from symbolize.core.compression import XZ, InflateLimits, inflate
from symbolize.core.errors import InputError
from symbolize.core.ranges import union
from symbolize.core.records import record
from symbolize.elf.dynamic import dynamic_tables
from symbolize.elf.headers import SHT_SYMTAB_SHNDX
from symbolize.elf.image import Buffer, ElfImage

STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_FILE, STT_GNU_IFUNC = 0, 1, 2, 4, 10
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
SHN_LORESERVE, SHN_XINDEX = 0xFF00, 0xFFFF
STT_MASK, STB_SHIFT = 0xF, 4
"""Where st_info has the type and the binding."""
TAGGED_MACHINES = frozenset({"EM_ARM", "EM_MIPS"})
"""Machines on which bit 0 of a function's address marks another instruction set (R133, instruction set bit)."""

CODE_TYPES = np.zeros(16, np.bool_)
CODE_TYPES[[STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC]] = True
ARM_MAPPING = np.zeros(256, np.bool_)
ARM_MAPPING[list(b"adtx")] = True

NAMES_PER_BYTE = 8
MORE_NAMES = 1 << 16
LONG_NAME = 1 << 12
"""If names, which may overlap, exceed NAMES_PER_BYTE for each byte of the strings and MORE_NAMES in addition, those of
LONG_NAME bytes and more are left out."""

CONTAINED_SHARE = 2
"""Data symbols that span more than one in so many bytes of an executable section contain code."""

WORD = 8
"""Bytes of the first word of a function descriptor."""
NAME_PREFIX = 9
"""Bytes of a name that decide whether it is one of a function (R106, mapping symbols)."""
MINI_LIMITS = InflateLimits(size=1 << 28, ratio=256, free=4096)
"""Symbol tables reach a few times that what they are compressed to; xz itself would allow seven thousand."""


def without_tag(image: ElfImage, vaddrs: UInt64) -> UInt64:
    """`vaddrs` of code without the bit that marks another instruction set, on machines that have one (R133, instruction
    set bit)."""
    return vaddrs & ~np.uint64(1) if image.machine in TAGGED_MACHINES else vaddrs


@record
class Symbols:
    """Code symbols of one table, a row each: vaddr, size (0: unknown), type, binding, end of the section.

    `name` is an offset in `strings`, where names end with a NUL, `file` that of the source file of a local symbol (0:
    unknown, R120, source file of local symbols); `dynamic` marks a .dynsym, `stubs` linker-made code.
    """

    vaddr: UInt64
    size: UInt64
    type: UInt8
    binding: UInt8
    section_end: UInt64
    name: Int64
    file: Int64
    strings: bytes
    dynamic: bool
    stubs: bool = False

    def __len__(self) -> int:
        return len(self.vaddr)

    def take(self, rows: Bool) -> Self:
        """The symbols that `rows` selects."""
        columns = ("vaddr", "size", "type", "binding", "section_end", "name", "file")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def text(self, start: int) -> bytes:
        """The string at offset `start`; one without an end reaches to the end of the table (R75, strings without an
        end)."""
        end = self.strings.find(b"\0", start)
        return self.strings[start:] if end < 0 else self.strings[start:end]


def read_symbols(image: ElfImage, table: str, descriptors: ElfImage | None = None) -> Symbols | None:
    """The code symbols of the section `table` (`.symtab` or `.dynsym`); None if there is no such table.

    These are FUNC, GNU_IFUNC and others in executable sections, without data that contains code (R104, types of code
    symbols; R105, symbols left out), mapping symbols and temporaries (R106, mapping symbols). `descriptors` is the file
    of the binary with the bytes of `.opd`, if any (R134, function descriptors).
    """
    found = table_bytes(image, table)
    if found is None:
        return None
    contents, strings = found
    rows = symbol_rows(image, contents)
    kind = (rows["info"] & STT_MASK).astype(np.uint8)
    vaddr, code, index, ends = code_places(image, rows, table, descriptors or image)
    wanted = code & CODE_TYPES[kind] & (rows["name"] > 0) & (rows["name"] < len(strings))
    if (objects := np.flatnonzero(wanted & (kind == STT_OBJECT))).size:
        wanted[objects] = ~contain_code(image, vaddr[objects], rows["size"][objects], index[objects])
    files = source_files(rows)
    rows, index, kind, vaddr = rows[wanted], index[wanted], kind[wanted], vaddr[wanted]
    file = files[wanted]
    name = rows["name"].astype(np.int64)
    blob = bytes(strings)
    kept = ~rejected(blob, name)
    lengths = name_lengths(blob, name)
    if lengths.sum() > NAMES_PER_BYTE * len(blob) + MORE_NAMES:
        image.note(f"section {table}: names of symbols overlap absurdly; those of {LONG_NAME} bytes are left out")
        kept &= lengths < LONG_NAME
    if image.machine in TAGGED_MACHINES:
        vaddr = np.where(kind == STT_FUNC, vaddr & ~np.uint64(1), vaddr)
    return Symbols(
        vaddr[kept],
        rows["size"].astype(np.uint64)[kept],
        kind[kept],
        (rows["info"] >> STB_SHIFT).astype(np.uint8)[kept],
        ends[index][kept],
        name[kept],
        file[kept],
        blob,
        table == ".dynsym",
    )


def contain_code(image: ElfImage, vaddr: UInt64, size: UInt64, section: Int64) -> Bool:
    """Which data symbols in executable sections are of one that data symbols span for the most part: it holds code that
    they contain (R104, types of code symbols), as the text of a Dart snapshot is one object."""
    result = np.zeros(len(vaddr), np.bool_)
    for number in distinct(section).tolist():
        own = np.flatnonzero(section == number)
        begin, end = union(vaddr[own], vaddr[own] + np.minimum(size[own], ~vaddr[own]))
        result[own] = int((end - begin).sum()) > image.sections[number].size // CONTAINED_SHARE
    return result


def table_bytes(image: ElfImage, table: str) -> tuple[Buffer, Buffer] | None:
    """The bytes of a symbol table and of its strings, by section headers or, for a file without them, PT_DYNAMIC."""
    section = image.find(table)
    if section is None:
        return dynamic_tables(image) if table == ".dynsym" and not image.sections else None
    if not 0 < section.link < len(image.sections):
        return None
    data, strings = image.contents(table), image.raw(image.sections[section.link])
    return (data, strings) if data is not None and strings is not None else None


def symbol_rows(image: ElfImage, data: Buffer) -> NDArray[np.void]:
    """A symbol table as records: name, info, other, shndx, value, size."""
    order = ">" if image.big_endian else "<"
    if image.is_64:
        fields = [("name", "u4"), ("info", "u1"), ("other", "u1"), ("shndx", "u2"), ("value", "u8"), ("size", "u8")]
    else:
        fields = [("name", "u4"), ("value", "u4"), ("size", "u4"), ("info", "u1"), ("other", "u1"), ("shndx", "u2")]
    layout = np.dtype([(name, order + kind) for name, kind in fields])
    return np.frombuffer(data, layout, len(data) // layout.itemsize)


def code_places(
    image: ElfImage, rows: NDArray[np.void], table: str, descriptors: ElfImage
) -> tuple[UInt64, Bool, Int64, UInt64]:
    """Vaddrs of symbols, which of them are in code, their sections, and where each section ends.

    Without section headers the executable segments count as sections (R54, discarded code), without data symbols. In a
    relocatable file values are offsets in the section (R94, sections of object files).
    """
    value = rows["value"].astype(np.uint64)
    if image.sections:
        names = [section.name for section in image.sections]
        index = section_indices(image, rows["shndx"], names.index(table) if table in names else -1)
        known = (index > 0) & (index < len(image.sections))
        index = np.where(known, index, 0)
        executable = np.array([section.is_code for section in image.sections])
        ends = np.array([min(s.vaddr + s.size, (1 << 64) - 1) for s in image.sections], np.uint64)
        if image.is_relocatable:
            known &= value <= np.array([section.size for section in image.sections], np.uint64)[index]
            value = value + np.array([section.vaddr for section in image.sections], np.uint64)[index]
        elif image.machine == "EM_PPC64" and ".opd" in names:
            functions = known & (index == names.index(".opd")) & (rows["info"] & STT_MASK != STT_OBJECT)
            if functions.any() and not has_descriptors(descriptors):
                # The functions in between are not known, and a symbol without a size would reach over them.
                known &= rows["size"] > 0
            value, index = follow_descriptors(image, value, index, functions, descriptors)
        return value, known & executable[index], index, ends
    begins, ends = image.code_ranges
    index = np.searchsorted(begins, value, side="right") - 1
    inside = (index >= 0) & (rows["shndx"] > 0) & (rows["shndx"] < SHN_LORESERVE) & (len(begins) > 0)
    inside &= rows["info"] & STT_MASK != STT_OBJECT
    index = np.maximum(index, 0)
    if len(ends):
        inside &= value < ends[index]
    return value, inside, index, ends


def has_descriptors(image: ElfImage) -> bool:
    """Whether a file has function descriptors with their bytes, which a debug file has not (PPC64 ELFv1, R134, function
    descriptors)."""
    return image.machine == "EM_PPC64" and image.contents(".opd") is not None


def follow_descriptors(
    image: ElfImage, value: UInt64, index: Int64, functions: Bool, descriptors: ElfImage
) -> tuple[UInt64, Int64]:
    """Vaddrs and sections of symbols, of which `functions` name descriptors in .opd (PPC64 ELFv1, R134, function
    descriptors).

    The first word of a descriptor is where the code begins. An invalid one stays in .opd, which is no code. A debug
    file has no bytes of .opd, so the descriptors are those of the file with the code. Where there is none such
    functions are not known, and symbols without a size cover nothing.
    """
    section, contents = descriptors.find(".opd"), descriptors.contents(".opd")
    code = sorted((s.vaddr, s.vaddr + s.size, i) for i, s in enumerate(image.sections) if s.is_code and s.size)
    code = [span for span in code if span[1] < 1 << 64]
    if section is None or contents is None or len(contents) < WORD or not code:
        return value, index
    rows = np.flatnonzero(functions)
    offset = value[rows] - np.uint64(section.vaddr)
    inside = offset <= np.uint64(len(contents) - WORD)
    rows, offset = rows[inside], offset[inside].astype(np.int64)
    words = np.ndarray((len(contents) - WORD + 1,), ">u8" if image.big_endian else "<u8", contents, strides=(1,))
    target = words[offset].astype(np.uint64)
    begins, ends, numbers = (np.array(column) for column in zip(*code, strict=True))
    nearest = np.searchsorted(begins.astype(np.uint64), target, side="right") - 1
    found = (nearest >= 0) & (target < ends.astype(np.uint64)[nearest])
    value, index = value.copy(), index.copy()
    value[rows[found]] = target[found]
    index[rows[found]] = numbers[nearest[found]]
    return value, index


def source_files(rows: NDArray[np.void]) -> Int64:
    """For each local symbol the name offset of the FILE symbol before it, 0 for all others (R120, source file of local
    symbols)."""
    last_file = np.where(rows["info"] & STT_MASK == STT_FILE, np.arange(len(rows)), 0)
    names = np.where(rows["info"] & STT_MASK == STT_FILE, rows["name"], 0).astype(np.int64)
    local = rows["info"] >> STB_SHIFT == STB_LOCAL
    return np.where(local, names[np.maximum.accumulate(last_file)], 0)


def section_indices(image: ElfImage, shndx: UInt16, table: int) -> Int64:
    """Section indices of the symbols of section `table`, 0 for reserved ones; SHT_SYMTAB_SHNDX extends them (rule
    R101)."""
    index = shndx.astype(np.int64)
    escaped = index == SHN_XINDEX
    index[index >= SHN_LORESERVE] = 0
    if escaped.any():
        extended = next((s for s in image.sections if s.type == SHT_SYMTAB_SHNDX and s.link == table), None)
        raw = image.raw(extended) if extended is not None else None
        if raw is not None:
            words = np.frombuffer(raw, ">u4" if image.big_endian else "<u4", len(raw) // 4)
            escaped[len(words) :] = False
            index[escaped] = words[: len(index)][escaped[: len(words)]]
    return index


def name_lengths(strings: bytes, name: Int64) -> Int64:
    """The lengths of the names at offsets `name`; one without an end reaches to the end of the table (R75, strings
    without an end)."""
    ends = np.append(np.flatnonzero(np.frombuffer(strings, np.uint8) == 0), len(strings))
    result: Int64 = ends[np.searchsorted(ends, name)] - name
    return result


def rejected(strings: bytes, name: Int64) -> Bool:
    """Which names are no functions (R106, mapping symbols): mapping symbols `$a $d $t $x`, `.L…`, `__typeid_…`,
    `.annobin_…`."""
    padded = np.frombuffer(strings + bytes(NAME_PREFIX), np.uint8)

    def starts(prefix: bytes) -> Bool:
        match = np.ones(len(name), np.bool_)
        for i, byte in enumerate(prefix):
            match &= padded[name + i] == byte
        return match

    mapping = starts(b"$") & ARM_MAPPING[padded[name + 1]]
    mapping &= (padded[name + 2] == 0) | (padded[name + 2] == ord(".")) | starts(b"$xrv")
    result: Bool = mapping | starts(b".L") | starts(b"__typeid_") | starts(b".annobin_") | (padded[name] == 0)
    return result


def mini_image(image: ElfImage) -> ElfImage | None:
    """The smaller, xz-compressed ELF file in .gnu_debugdata, which has symbols (R113, united symbol tables); None if
    there is none, or it is corrupt or of another kind than `image`."""
    packed = image.contents(".gnu_debugdata")
    if packed is None:
        return None
    try:
        contents = b"".join(inflate([packed], XZ, image.path, MINI_LIMITS, len(packed), is_single=True))
        mini = ElfImage.parse(memoryview(contents), image.path)
    except InputError as error:
        image.note(f"section .gnu_debugdata: {error.problem}")
        return None
    if any(getattr(mini, name) != getattr(image, name) for name in ("machine", "kind", "is_64", "big_endian")):
        image.note("section .gnu_debugdata: another kind of file than the one around it")
        return None
    return mini
