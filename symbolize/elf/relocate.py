"""Relocated contents of sections of relocatable files (R93, relocated debug sections).

Relocations of one type are applied together. Types are those of the processor supplements of the ELF ABI.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import Int64, UInt8, UInt64, distinct
from symbolize.elf.crel import read_crel
from symbolize.elf.headers import SHT_CREL, SHT_REL, SHT_RELA
from symbolize.elf.image import Buffer, ElfImage, Section
from symbolize.elf.symbols import section_indices, symbol_rows

CHUNK = 1 << 18
"""Relocations that are applied at a time, to bound the memory."""
MAX_ULEB = 10
LEB_PAYLOAD = np.uint8(0x7F)
LOW_6 = np.uint64(0x3F)


class Effect(Enum):
    """The new value of a field, from S + A, its address P and its old value V. Types are applied in this order."""

    NONE = "nothing that lookups could see"
    VALUE = "S + A"
    DISTANCE = "S + A - P"
    LOW6 = "S + A in the low 6 bits"
    ULEB_SET = "S + A, as a LEB128 number of the length that is there"
    ADD = "V + S + A"
    ADD6 = "V + S + A in the low 6 bits"
    ULEB_ADD = "V + S + A, LEB128"
    SUBTRACT = "V - (S + A)"
    SUBTRACT6 = "V - (S + A) in the low 6 bits"
    ULEB_SUBTRACT = "V - (S + A), LEB128"


class Type(NamedTuple):
    """What a relocation of a type does to a field of so many bytes."""

    effect: Effect
    size: int = 0


def types(
    value: dict[int, int], distance: dict[int, int] | None = None, nothing: tuple[int, ...] = (0,), **effects: int
) -> dict[int, Type]:
    """Types by number, from sizes by number; `effects` name one number each."""
    table = {number: Type(Effect.NONE) for number in nothing}
    table |= {number: Type(Effect.VALUE, size) for number, size in value.items()}
    table |= {number: Type(Effect.DISTANCE, size) for number, size in (distance or {}).items()}
    return table | {number: Type(Effect[name.upper()], 1) for name, number in effects.items()}


def sums(add: dict[int, int], subtract: dict[int, int]) -> dict[int, Type]:
    """Types that add to a field and subtract from it, from sizes by number."""
    table = {number: Type(Effect.ADD, size) for number, size in add.items()}
    return table | {number: Type(Effect.SUBTRACT, size) for number, size in subtract.items()}


# What has no effect here: NONE, offsets of thread-local variables, marks for the linker, sizes of symbols, differences
# that are there already.
TYPES = {
    "EM_X86_64": types({1: 8, 10: 4, 11: 4, 12: 2, 14: 1}, {2: 4, 13: 2, 15: 1, 24: 8}, (0, 17, 21, 32, 33)),
    "EM_386": types({1: 4, 20: 2, 22: 1}, {2: 4, 21: 2, 23: 1}, (0, 32)),
    "EM_AARCH64": types({1: 4, 257: 8, 258: 4, 259: 2}, {260: 8, 261: 4, 262: 2}, (0, 256, 1029)),
    "EM_ARM": types({2: 4, 5: 2, 8: 1, 38: 4}, {3: 4}, (0, 106)),
    "EM_RISCV": types(
        {1: 4, 2: 8, 54: 1, 55: 2, 56: 4},
        {57: 4},
        (0, 8, 9, 51),
        low6=53,
        subtract6=52,
        uleb_set=60,
        uleb_subtract=61,
    )
    | sums({33: 1, 34: 2, 35: 4, 36: 8}, {37: 1, 38: 2, 39: 4, 40: 8}),
    "EM_LOONGARCH": types(
        {1: 4, 2: 8}, {99: 4, 109: 8}, (0, 7, 8, 100), add6=105, subtract6=106, uleb_add=107, uleb_subtract=108
    )
    | sums({47: 1, 48: 2, 50: 4, 51: 8}, {52: 1, 53: 2, 55: 4, 56: 8}),
    "EM_PPC64": types({1: 4, 24: 4, 38: 8, 43: 8}, {26: 4, 44: 8}, (0, 78)),
    "EM_PPC": types({1: 4, 24: 4}, {26: 4}, (0, 78)),
    "EM_MIPS": types({2: 4, 18: 8}, {248: 4}, (0, 39, 41)),
    "EM_S390": types({1: 1, 3: 2, 4: 4, 22: 8}, {5: 4, 16: 2, 23: 8}, (0, 52, 53)),
    **dict.fromkeys(
        ("EM_SPARC", "EM_SPARC32PLUS", "EM_SPARCV9"),
        types({1: 1, 2: 2, 3: 4, 23: 4, 32: 8, 54: 8, 55: 2}, {4: 1, 5: 2, 6: 4, 46: 8}, (0, 76, 77)),
    ),
    "EM_68K": types({1: 4, 2: 2, 3: 1}, {4: 4, 5: 2, 6: 1}, (0, 31, 32, 33)),
    "EM_BPF": types({2: 8, 3: 4, 4: 4}),
    "EM_AMDGPU": types({3: 8, 6: 4}, {4: 4, 5: 8}),
    "EM_QDSP6": types({6: 4, 7: 2, 8: 1}, {31: 4}),
    "EM_AVR": types({1: 4, 4: 2, 26: 1}, nothing=(0, 30, 31, 32)),
    "EM_MSP430": types({1: 4, 3: 2, 5: 2, 9: 1}),
}
"""The types of each machine. R_RISCV_SET6 and its like replace what ADD6 and its like add to."""

ORDER = list(Effect)


class Relocations(NamedTuple):
    """Relocations of one section, a row each; without `addend` the field holds it (SHT_REL)."""

    offset: UInt64
    symbol: UInt64
    type: UInt64
    addend: UInt64 | None


def section_reader(image: ElfImage) -> Callable[[str], Buffer | None]:
    """What gives the contents of a section by name, decompressed and, in a relocatable file, relocated (R93, relocated
    debug sections)."""
    return Relocator(image).contents if image.is_relocatable else image.contents


class Relocator:
    """Relocates sections of one relocatable file to its virtual bases (R94, sections of object files).

    Fields are relocated as the processor supplement of their type defines, with addends in the relocation or in the
    field. A type that is unknown leaves its fields, and a problem names it (R93, relocated debug sections).
    """

    def __init__(self, image: ElfImage) -> None:
        self.image = image
        self._values: dict[int, UInt64] = {}
        self._tables: dict[int, list[Section]] = {}
        self._pieces: dict[str, list[int]] = {}
        budgets: dict[str, int] = {}

        def fits(section: Section, use: str) -> bool:
            # Overlapping sections could add up to any size; real ones do not fill the file.
            budgets[use] = budgets.get(use, len(image.data)) - section.size
            if budgets[use] < 0:
                image.note(f"section {section.name}: left out, the sections of this kind are larger than the file")
            return budgets[use] >= 0

        for index, section in enumerate(image.sections):
            if section.type in (SHT_REL, SHT_RELA, SHT_CREL) and fits(section, "relocations"):
                self._tables.setdefault(section.info, []).append(section)
            debug = section.name.startswith((".debug_", ".zdebug_")) and section.has_bytes
            if debug and fits(section, name := section.name.replace(".zdebug_", ".debug_")):
                self._pieces.setdefault(name, []).append(index)
        bases = np.array([section.vaddr for section in image.sections], np.uint64)
        for pieces in self._pieces.values():
            if len(pieces) > 1:
                sizes = [len(image.section_contents(image.sections[index]) or b"") for index in pieces]
                fitting = int(np.searchsorted(np.cumsum(sizes), image.max_inflated, side="right"))
                if fitting < len(pieces):
                    image.note(f"sections {image.sections[pieces[0]].name} expand out of all proportion to the file")
                    del pieces[fitting:], sizes[fitting:]
                bases[pieces] = np.cumsum([0, *sizes[:-1]])
        for link in {section.link for tables in self._tables.values() for section in tables}:
            if 0 < link < len(image.sections) and fits(image.sections[link], "symbols"):
                self._values[link] = symbol_values(image, link, bases)

    def contents(self, name: str) -> Buffer | None:
        """The relocated contents of the sections called `name`, joined as a linker would do it; None if corrupt or
        missing."""
        found = self.image.find(name)
        pieces = self._pieces.get(name) or ([] if found is None else [self.image.sections.index(found)])
        if len(pieces) > 1:
            parts = [np.frombuffer(self._piece(index) or b"", np.uint8) for index in pieces]
            return np.concatenate(parts).data
        return self._piece(pieces[0]) if pieces else None

    def _piece(self, index: int) -> Buffer | None:
        """The relocated contents of one section."""
        section = self.image.sections[index]
        contents, tables = self.image.section_contents(section), self._tables.get(index, [])
        if contents is None or not tables:
            return contents
        data = np.frombuffer(contents, np.uint8).copy()
        for table in tables:
            self._apply(section, table, data)
        return data.data

    def _apply(self, section: Section, table: Section, data: UInt8) -> None:
        """Apply the relocations of `table` to `data`, the contents of `section`."""
        try:
            relocations = read_relocations(self.image, table)
        except ValueError as error:
            self.image.note(f"section {section.name} is not relocated: {table.name}: {error}")
            return
        known = TYPES.get(self.image.machine, {})
        found = distinct(relocations.type).tolist()
        unknown = [number for number in found if number not in known]
        if unknown:
            numbers = ", ".join(map(str, unknown[:3])) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
            machine = str(self.image.machine).removeprefix("EM_")
            self.image.note(f"section {section.name}: relocations of unknown type {numbers} ({machine}) are left")
        values = self._values.get(table.link, np.zeros(0, np.uint64))
        outside = False
        for number in sorted(set(found) & known.keys(), key=lambda number: ORDER.index(known[number].effect)):
            if known[number].effect is Effect.NONE:
                continue
            rows = np.flatnonzero(relocations.type == np.uint64(number))
            size = known[number].size
            inside = relocations.offset[rows] <= np.uint64(max(len(data) - size, 0))
            inside &= (relocations.symbol[rows] < len(values)) & (len(data) >= size)
            outside |= not inside.all()
            rows = rows[inside]
            for first in range(0, len(rows), CHUNK):
                self._apply_type(known[number], section, relocations, rows[first : first + CHUNK], values, data)
        if outside:
            self.image.note(f"section {section.name}: relocations out of bounds are left")

    def _apply_type(
        self,
        kind: Type,
        section: Section,
        relocations: Relocations,
        rows: Int64,
        values: UInt64,
        data: UInt8,
    ) -> None:
        """Apply the relocations `rows`, which are of one type and inside of `data`."""
        offset = relocations.offset[rows].astype(np.int64)
        value = values[relocations.symbol[rows].astype(np.int64)]
        if relocations.addend is not None:
            value = value + relocations.addend[rows]
        if kind.effect in (Effect.ULEB_SET, Effect.ULEB_ADD, Effect.ULEB_SUBTRACT):
            relocate_uleb(data, offset, value, kind.effect)
            return
        order = ">" if self.image.big_endian else "<"
        # Every byte of the section begins a field of this view; the fields that are used do not overlap.
        fields = np.ndarray((len(data) - kind.size + 1,), f"{order}u{kind.size}", data, strides=(1,))
        held = fields[offset].astype(np.uint64)
        if kind.effect in (Effect.VALUE, Effect.DISTANCE):
            held = value if relocations.addend is not None else value + held
            if kind.effect is Effect.DISTANCE:
                held = held - (np.uint64(section.vaddr) + relocations.offset[rows])
        elif kind.effect is Effect.ADD:
            held = held + value
        elif kind.effect is Effect.SUBTRACT:
            held = held - value
        else:
            sign = {Effect.LOW6: value, Effect.ADD6: held + value, Effect.SUBTRACT6: held - value}[kind.effect]
            held = held & ~LOW_6 | sign & LOW_6
        fields[offset] = (held & np.uint64((1 << 8 * kind.size) - 1)).astype(fields.dtype)


def relocate_uleb(data: UInt8, offset: Int64, value: UInt64, effect: Effect) -> None:
    """Change LEB128 numbers at `offset`, which keep their lengths; one that is cut off or too long is left.

    Sums are modulo the length, so that several changes come out right even where one alone would not fit.
    """
    lengths = np.zeros(len(offset), np.int64)
    held = np.zeros(len(offset), np.uint64)
    going = np.ones(len(offset), np.bool_)
    for i in range(MAX_ULEB):
        going &= offset + i < len(data)
        byte = data[np.minimum(offset + i, len(data) - 1)]
        held = np.where(going, held | (byte & LEB_PAYLOAD).astype(np.uint64) << np.uint64(7 * i), held)
        ends = going & (byte <= LEB_PAYLOAD)
        lengths[ends] = i + 1
        going &= ~ends
    if effect is Effect.ULEB_SET:
        held = value
    else:
        held = held + value if effect is Effect.ULEB_ADD else held - value
    for i in range(MAX_ULEB):
        rows = np.flatnonzero(lengths > i)
        at = offset[rows] + i
        byte = (held[rows] >> np.uint64(7 * i)).astype(np.uint8) & LEB_PAYLOAD
        data[at] = data[at] & ~LEB_PAYLOAD | byte


def symbol_values(image: ElfImage, index: int, bases: UInt64) -> UInt64:
    """The values of the symbols of section `index`, which count from the `bases` of their sections."""
    if (raw := image.raw(image.sections[index])) is None:
        return np.zeros(0, np.uint64)
    rows = symbol_rows(image, raw)
    section = section_indices(image, rows["shndx"], index)
    values: UInt64 = rows["value"].astype(np.uint64) + bases[np.where(section < len(bases), section, 0)]
    return values


def read_relocations(image: ElfImage, table: Section) -> Relocations:
    """The relocations of the section `table`. Raises ValueError with a few words if they cannot be read."""
    raw = image.raw(table)
    if raw is None:
        raise ValueError("no contents")
    if table.type == SHT_CREL:
        offset, symbol, kind, addend, has_addend = read_crel(raw)
        return Relocations(offset, symbol, kind, addend if has_addend else None)
    order = ">" if image.big_endian else "<"
    word = order + ("u8" if image.is_64 else "u4")
    fields = [("offset", word), ("info", word)]
    mips64 = image.is_64 and image.machine == "EM_MIPS"
    if mips64:  # a symbol and up to three types, in this order in either byte order
        fields = [("offset", word), ("symbol", order + "u4"), ("special", "u1"), ("third", "u1"), ("second", "u1")]
        fields.append(("type", "u1"))
    has_addend = table.type == SHT_RELA
    if has_addend:
        fields.append(("addend", order + ("i8" if image.is_64 else "i4")))
    layout = np.dtype(fields)
    rows = np.frombuffer(raw, layout, len(raw) // layout.itemsize)
    if mips64:
        symbol = rows["symbol"].astype(np.uint64)
        kind = rows["type"].astype(np.uint64) | rows["second"].astype(np.uint64) << np.uint64(8)
        kind |= rows["third"].astype(np.uint64) << np.uint64(16)
    else:
        info = rows["info"].astype(np.uint64)
        bits = np.uint64(32 if image.is_64 else 8)
        symbol, kind = info >> bits, info & np.uint64((1 << int(bits)) - 1)
    addend = rows["addend"].astype(np.int64).view(np.uint64) if has_addend else None
    return Relocations(rows["offset"].astype(np.uint64), symbol, kind, addend)
