"""The sources of the DWARF of one binary: its own sections, split units, a supplementary file, type units.

References to DIEs and strings carry the number of their source, 20 bits above an offset of 40; the binary's own is 0.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from symbolize.core.arrays import Int64, UInt64, distinct, distinct_inverse, first_of_runs, views
from symbolize.core.c_strings import sound_lengths, string_lengths, texts_of_lengths
from symbolize.core.records import record
from symbolize.core.string_array import StringArray, joined_arrays
from symbolize.dwarf.constants import *
from symbolize.dwarf.reader import Reader
from symbolize.dwarf.sections import Buffer, DebugSections, Package, PackageError
from symbolize.dwarf.units import read_units

SUPPLEMENTARY = 1
MAX_SOURCES = 1 << 20

STRING_SECTIONS = {
    section >> SECTION_SHIFT: name
    for section, name in ((IN_INFO, "info"), (IN_STR, "str"), (IN_LINE_STR, "line_str"), (IN_LINE, "line"))
}
"""The sections of string references, by their top bits."""

MAX_PATH = 1 << 14
"""Names of files and directories that are longer are none."""

PATHS_PER_BYTE = 8
MORE_PATHS = 1 << 20
"""Bytes that such names may take, for each byte of debug information and in addition."""

MAX_NAMED = 3
"""So many split units that are missing are named, the others counted."""


class DwarfCompanions(Protocol):
    """What opens the other files of a binary; it notes by itself what it cannot open or may not use."""

    def packages(self) -> Iterable[Package]:
        """The packages of split units."""

    def split(self, name: bytes, comp_dir: bytes) -> Iterator[tuple[str, DebugSections]]:
        """Label and sections of files that may be the `.dwo` file `name`, the likeliest first, the same at each
        call."""

    def supplementary(self) -> DebugSections | None:
        """The supplementary file, None if it is not there."""

    def types(self) -> Buffer:
        """The binary's own .debug_types section."""


@record
class Source:
    """One source. `file_unit` is the unit of the binary with the file table of each unit (-1: none), `parent` the
    source whose types these are."""

    number: int
    reader: Reader
    sections: DebugSections
    file_unit: Int64
    parent: "Source | None" = None
    types: "Source | None" = None
    _signatures: tuple[UInt64, UInt64] | None = field(default=None, repr=False)

    def tagged(self, references: UInt64) -> UInt64:
        """References as this source's reader gives them, with the number of this source."""
        tag = np.uint64(self.number << SOURCE_SHIFT)
        foreign = (references >> np.uint64(SOURCE_SHIFT)) & np.uint64(MAX_SOURCES - 1) != 0
        return np.where(foreign, references, references | tag)

    def tagged_one(self, reference: int) -> int:
        """One reference, as `tagged` does it."""
        foreign = (reference >> SOURCE_SHIFT) & (MAX_SOURCES - 1)
        return reference if foreign else reference | self.number << SOURCE_SHIFT

    def type_die(self, signature: int) -> int | None:
        """The DIE of a type, None if its unit is not here."""
        if self._signatures is None:
            units = self.reader.units
            kind = np.asarray(units.kind)
            rows = np.flatnonzero(((kind == DW_UT_type) | (kind == DW_UT_split_type)) & (np.asarray(units.bad) == 0))
            rows = rows[np.argsort(np.asarray(units.signature)[rows], kind="stable")]
            self._signatures = np.asarray(units.signature)[rows], np.asarray(units.type_die)[rows]
        known, die = self._signatures
        row = int(np.searchsorted(known, np.uint64(signature)))
        if row == len(known) or int(known[row]) != signature:
            return None
        return self.tagged_one(min(int(die[row]), OFFSET_MASK))


class DwarfSources:
    """All sources of a binary, opened when they are first needed. `problems` lists what is missing or wrong."""

    def __init__(self, sections: DebugSections, companions: DwarfCompanions | None, problems: list[str]) -> None:
        self._companions = companions
        self._problems = problems
        reader, begin, end, unit = read_units(sections)
        self.claims: tuple[UInt64, UInt64, Int64] = begin, end, unit
        self.main = Source(0, reader, sections, np.arange(len(reader.units.offset)))
        self._sources: list[Source | None] = [self.main, None]
        self._supplementary_is_read = self._types_are_read = False
        self._packages: list[Package] | None = None
        self._of_sections: dict[DebugSections, Source] = {}
        self._splits: dict[int, tuple[Source, int] | None] = {}
        self._types: dict[int, int | None] = {}
        self._strings: dict[int, bytes] = {}
        self._path_bytes = 0
        self._missing = 0
        self._counted = ""
        units = reader.units
        named = np.asarray(units.dwo_name) != np.uint64(NOWHERE)
        kind, old = np.asarray(units.kind), np.asarray(units.version) < DWARF_5
        self.is_skeleton = named & ((kind == DW_UT_skeleton) | (old & (kind == DW_UT_compile)))
        """Which units are skeletons (R82, what is a skeleton). A compile unit of DWARF 5 with a dwo id is none."""
        self.has_skeletons = bool(self.is_skeleton.any())

    def get(self, number: int) -> Source | None:
        """The source with this number, None if there is none."""
        if number == SUPPLEMENTARY and not self._supplementary_is_read:
            self._supplementary_is_read = True
            sections = self._companions.supplementary() if self._companions is not None else None
            if sections is not None:
                reader = read_units(sections)[0]
                first = len(self.main.file_unit)
                self._sources[1] = Source(1, reader, sections, first + np.arange(len(reader.units.offset)))
        return self._sources[number] if 0 <= number < len(self._sources) else None

    def split(self, skeleton: int) -> tuple[Source, int] | None:
        """The split unit of a skeleton: its source and number there. None, with a problem, if it is missing."""
        if skeleton not in self._splits:
            found = self._find_split(skeleton)
            self._splits[skeleton] = found
            if found is not None:
                self._attach(skeleton, *found)
        return self._splits[skeleton]

    def type_die(self, source: Source, signature: int) -> int | None:
        """The DIE of the type with this signature (R16, kinds of references), looked for near `source` first; None if
        it is missing.

        Type units are in `.debug_types`, among other units, or in the package (R16, kinds of references).
        """
        if signature not in self._types:
            self._types[signature] = self._find_type(source, signature)
        return self._types[signature]

    def string(self, reference: int) -> bytes:
        """The path that a reference names, empty if it names none or an absurdly long one."""
        if reference not in self._strings:
            self.paths(np.array([reference], np.uint64))
        return self._strings[reference]

    def paths(self, references: UInt64) -> list[bytes]:
        """The paths that references name, empty where they name none or an absurdly long one."""
        known = self._strings
        missing = [reference for reference in references.tolist() if reference not in known]
        if missing:
            new = distinct(np.array(missing, np.uint64))
            known.update(zip(new.tolist(), self._distinct_strings(new, self._path_lengths), strict=True))
        return [known[reference] for reference in references.tolist()]

    def _path_lengths(self, data: Buffer, offsets: Int64) -> Int64:
        """The lengths of the paths at `offsets` (ascending) of a section, 0 for those that are left out."""
        lengths = np.zeros(len(offsets), np.int64)
        string_lengths(*views(np.frombuffer(data, np.uint8), offsets, lengths), 1 << 62)
        if (lengths >= MAX_PATH).any():
            self._problems.append(f"names of files longer than {MAX_PATH} bytes are left out")
            lengths[lengths >= MAX_PATH] = 0
        total = self._path_bytes + np.cumsum(lengths)
        self._path_bytes = int(total[-1])
        if self._path_bytes > PATHS_PER_BYTE * self.size + MORE_PATHS:
            self._problems.append("names of files overlap absurdly; some are missing")
            lengths[total > PATHS_PER_BYTE * self.size + MORE_PATHS] = 0
        return lengths

    @property
    def size(self) -> int:
        """Bytes of debug information in all sources that are open."""
        known = [source.sections for source in self._sources if source is not None]
        # Split units out of one package share all but their .debug_info.
        shared = max(len(sections.str) + len(sections.line_str) + len(sections.line) for sections in known)
        return shared + sum(len(sections.info) for sections in known)

    def strings(self, references: UInt64) -> StringArray:
        """The strings that references name, empty where they name none."""
        references, inverse = distinct_inverse(references)  # most strings are named many times
        return self._distinct_strings(
            references, lambda section, offsets: sound_lengths(section, offsets, self._problems)
        ).only(inverse)

    def _distinct_strings(self, references: UInt64, measure: Callable[[Buffer, Int64], Int64]) -> StringArray:
        """The strings that references (ascending) name; `measure` gives their lengths, by section and offsets."""
        section = (references >> np.uint64(SOURCE_SHIFT)).astype(np.int64)
        offset = (references & np.uint64(OFFSET_MASK)).astype(np.int64)
        first = np.flatnonzero(first_of_runs(section))
        parts = [StringArray.empty(0)]
        for i, j in pairwise([*first.tolist(), len(section)]):
            key = int(section[i])
            name = STRING_SECTIONS.get(key >> (SECTION_SHIFT - SOURCE_SHIFT))
            source = self.get(key & (MAX_SOURCES - 1)) if name is not None else None
            if name is None or source is None:
                parts.append(StringArray.empty(j - i))
                continue
            data = getattr(source.sections, name)
            parts.append(texts_of_lengths(data, offset[i:j], measure(data, offset[i:j])))
        return joined_arrays(parts) if len(parts) > 2 else parts[-1]

    def _find_split(self, skeleton: int) -> tuple[Source, int] | None:
        """The split unit of a skeleton and its source; None, with a problem, if it is missing.

        Build trees keep old `.dwo` files: one with another dwo id is named in the problem, and the search continues
        (R81, matching dwo ids). Children of the skeleton are read only if nothing is found (R83, children of a
        skeleton).
        """
        units = self.main.reader.units
        dwo_id = int(units.signature[skeleton])
        name, comp_dir = self.string(units.dwo_name[skeleton]), self.string(units.comp_dir[skeleton])
        rejected: list[str] = []
        for label, sections in self._split_candidates(name, comp_dir, dwo_id, rejected):
            source = self._source_of(sections)
            if source is None:
                break
            kind, own = np.asarray(source.reader.units.kind), np.asarray(source.reader.units.signature)
            is_unit = (kind == DW_UT_compile) | (kind == DW_UT_split_compile)
            rows = np.flatnonzero(is_unit & (own == np.uint64(dwo_id)))
            if len(rows) and not source.reader.units.bad[int(rows[0])]:
                return source, int(rows[0])
            # R81, matching dwo ids
            rejected.append(f"{label} is damaged" if len(rows) else f"{label} has another dwo id")
        self._missing += 1
        text = name.decode(errors="backslashreplace")
        reason = "; ".join(rejected[:MAX_NAMED]) or "not found"
        if self._missing <= MAX_NAMED:
            self._problems.append(
                f"split unit {text} with dwo id {dwo_id:#018x}: {reason}; its skeleton is used instead"
            )
        return None

    @property
    def is_complete(self) -> bool:
        """Whether every split unit that was needed was found."""
        return self._missing == 0

    def report(self) -> None:
        """Bring the sentence that counts the missing split units up to date."""
        count = f"{self._missing - MAX_NAMED} more split units are missing"
        if self._missing > MAX_NAMED and count != self._counted:
            if self._counted:
                self._problems.remove(self._counted)
            self._problems.append(count)
            self._counted = count

    def _split_candidates(
        self, name: bytes, comp_dir: bytes, dwo_id: int, rejected: list[str]
    ) -> Iterator[tuple[str, DebugSections]]:
        """Where the split unit may be, in the order of R88, search for split units.

        Packages come first: `<file>.dwp`, of a debug file also under the name of its binary. Then files of the recorded
        name: the more of the recorded path a file shares, from its end, the earlier it comes; and then one beside the
        binary. Only files below the given folders count, and paths from the binary are never opened as they are.
        """
        if self._companions is None:
            return
        for package in self._all_packages():
            try:
                for sections in package.unit(dwo_id):
                    yield package.label, sections
            except PackageError as error:
                rejected.append(f"{package.label}: {error}")
        yield from self._companions.split(name, comp_dir)

    def _all_packages(self) -> list[Package]:
        if self._packages is None:
            self._packages = list(self._companions.packages()) if self._companions is not None else []
        return self._packages

    def _find_type(self, source: Source, signature: int) -> int | None:
        found = self._type_in(source, signature)
        if found is None and source.parent is not None:
            found = self._type_in(source.parent, signature)
        if found is None and source is not self.main:
            found = self._type_in(self.main, signature)
        if found is not None:
            return found
        for package in self._all_packages():
            try:
                for sections in package.type(signature):
                    unit = self._source_of(sections)
                    if unit is not None and (found := unit.type_die(signature)) is not None:
                        return found
            except PackageError as error:
                self._problems.append(f"{package.label}: {error}")
        return None

    def _type_in(self, source: Source, signature: int) -> int | None:
        """The DIE of a type in a source or in the .debug_types that belongs to it."""
        found = source.type_die(signature)
        if found is not None:
            return found
        if source.types is None:
            types = source.sections.types
            if source is self.main and not self._types_are_read and self._companions is not None:
                self._types_are_read = True
                types = self._companions.types()
            if not len(types):
                return None
            source.types = self._add(replace(source.sections, info=types, types=b"", holds_types=True), source)
        return source.types.type_die(signature) if source.types is not None else None

    def _source_of(self, sections: DebugSections) -> Source | None:
        """The source of these sections of a split unit, opened once.

        Range lists of DWARF 5 are in the binary where there is no `.debug_rnglists.dwo`, as gcc before 11.1 left them.
        That of a skeleton's own root is in the binary always (R84, range lists of split units).
        """
        if sections not in self._of_sections:
            main = self.main.sections
            source = self._add(
                replace(
                    sections,
                    addr=main.addr,
                    ranges=main.ranges,
                    rnglists=sections.rnglists or main.rnglists,
                    big_endian=main.big_endian,
                    is_split=True,
                    has_discriminators=main.has_discriminators,
                )
            )
            if source is None:
                return None
            if not len(sections.rnglists):  # gcc before 11.1 left them in the binary (R84, range lists of split units)
                source.reader.units.rnglists_base = np.full(len(source.file_unit), NOWHERE, np.uint64).data
            self._of_sections[sections] = source
        return self._of_sections[sections]

    def _add(self, sections: DebugSections, parent: Source | None = None) -> Source | None:
        number = len(self._sources)
        if number >= MAX_SOURCES - 1:
            return None
        reader = read_units(sections)[0]
        source = Source(number, reader, sections, np.full(len(reader.units.offset), -1, np.int64), parent)
        self._sources.append(source)
        return source

    def _attach(self, skeleton: int, source: Source, unit: int) -> None:
        """Give a split unit what only its skeleton knows (R78, bases of split units; R79, split DWARF 4; R80, lines of
        split units).

        Addresses are those of the skeleton's table. `DW_AT_GNU_ranges_base` is added to the range lists that the split
        unit names, not to the skeleton's own, and the `low_pc` of the skeleton is the base of the lists. The
        `.debug_line.dwo` of type units is not needed.
        """
        own, units = source.reader.units, self.main.reader.units
        source.file_unit[unit] = skeleton
        own.addr_base[unit] = units.addr_base[skeleton]
        own.low_pc[unit] = units.low_pc[skeleton]
        if own.version[unit] < DWARF_5 and units.ranges_base[skeleton] != NOWHERE:
            own.list_base[unit] = units.ranges_base[skeleton]
        if own.rnglists_base[unit] == NOWHERE:
            own.rnglists_base[unit] = units.rnglists_base[skeleton]
        if units.name[skeleton] == NOWHERE:
            units.name[skeleton] = source.tagged_one(own.name[unit]) if own.name[unit] != NOWHERE else NOWHERE
