"""Builds the symbol table of a binary from the files that share its build id."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import distinct, layer_at
from symbolize.dwarf.decode import Decoded, Dwarf
from symbolize.elf import ElfImage, Symbols, frame_ranges, mini_image, read_symbols
from symbolize.parallel import together
from symbolize.symbols.assemble import assemble
from symbolize.symbols.cache import TableCache, facts_of
from symbolize.symbols.debug_files import CompanionFiles, Finder, debug_sections
from symbolize.symbols.elf_symbols import NO_FRAMES, SymbolLayer, needs_frames, symbol_layer
from symbolize.symbols.table import SymbolTable

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]


WHOLE_SHARE = 0.5
"""From this share of the debug information on, all of it is decoded, if the table can be kept."""


class Binary:
    """A binary, opened: the files that share its build id, what was decoded of them, and their symbol tables.

    The first image with DWARF gives functions and lines; the symbol tables of all are united (rules R113,
    R142). A whole table is kept in memory and, if there is one, in `cache`. `finder` tells where further files with
    DWARF may lie: split units and the supplementary file.
    """

    def __init__(
        self, images: Sequence[ElfImage], finder: Finder | None = None, cache: TableCache | None = None
    ) -> None:
        self.images = agreeing(sorted(images, key=source_rank))
        self._finder = finder
        self._companions: CompanionFiles | None = None
        self._cache = cache
        self._facts = facts_of(self.images) if cache is not None else None
        self._whole: SymbolTable | None = None
        self._asked = False
        self._symbols: SymbolLayer | None = None
        self._dwarf: Dwarf | None = None

    def table(self, vaddrs: UInt64 | None = None) -> SymbolTable:
        """The symbol table; with `vaddrs` (ascending) it may be one that answers for these addresses alone.

        What decides is the cost: where a whole table is at hand, or most of the debug information is needed anyway and
        the table can be kept, or the binary is met for the second time, it is the whole one. The answers are the
        same.
        """
        if not self.is_cached() and (vaddrs is None or self._is_worth_it(vaddrs)):
            self._whole = self._build(None)
            self._keep(self._whole)
            self._forget()
        if self._whole is not None:
            return self._whole
        return self._build(vaddrs)

    def is_cached(self) -> bool:
        """Whether the whole table is at hand, in memory or in the cache."""
        if self._whole is None and self._cache is not None and self._facts is not None:
            self._whole = self._cache.load(self._facts)
        return self._whole is not None

    def _is_worth_it(self, vaddrs: UInt64) -> bool:
        """Whether to build the whole table for a lookup of `vaddrs`, and for those to come."""
        asked, self._asked = self._asked, True
        if asked:
            return True
        if self._cache is None or self._facts is None:
            return False
        if self._cache.was_seen(self._facts):
            return True
        dwarf, _ = self._sources()
        return dwarf is None or dwarf.share(dwarf.units_for(vaddrs)) >= WHOLE_SHARE

    def _build(self, vaddrs: UInt64 | None) -> SymbolTable:
        dwarf, symbols = self._sources()
        decoded = decode_for(dwarf, vaddrs) if dwarf is not None else Decoded.nothing()
        table = assemble(dwarf, decoded, symbols, vaddrs)
        table.problems = [f"{image.path}: {problem}" for image in self.images for problem in image.problems]
        if dwarf is not None:
            table.problems += dwarf.problems
            table.doubtful_begin, table.doubtful_end = dwarf.doubtful()
        if self._companions is not None:
            table.problems += self._companions.problems
        if any(image.problems for image in self.images):
            table.doubtful_begin, table.doubtful_end = np.zeros(1, np.uint64), np.full(1, (1 << 64) - 1, np.uint64)
        return table

    def _sources(self) -> tuple[Dwarf | None, SymbolLayer]:
        """The DWARF and the symbols of the files, read once."""
        if self._symbols is not None:
            return self._dwarf, self._symbols
        debug = next((image for image in self.images if has_dwarf(image)), None)
        if debug is None:
            self._symbols = read_layer(self.images)
            return None, self._symbols
        companions = self._companions = CompanionFiles(debug, self._finder)
        dwarf, symbols = together(
            lambda: Dwarf(debug_sections(debug), debug.code_ranges, companions), lambda: read_layer(self.images)
        )
        self._dwarf, self._symbols = dwarf, symbols
        return dwarf, symbols

    def _keep(self, table: SymbolTable) -> None:
        """Write a whole table to the cache, unless files are missing that may be there the next time."""
        companions = self._companions
        if (self._dwarf is not None and not self._dwarf.sources.is_complete) or (companions and companions.problems):
            return
        if self._cache is not None and self._facts is not None:
            opened = companions.opened if companions is not None else {}
            self._cache.store(
                table, self._facts._replace(companions=[(path, *known) for path, known in opened.items()])
            )

    def _forget(self) -> None:
        """Let go of what only building a table needs."""
        self._dwarf = self._symbols = None
        if self._companions is not None:
            self._companions.close()
            self._companions = None
        for image in self.images:
            image.forget()

    @property
    def is_stripped(self) -> bool:
        """Whether the files have neither DWARF nor .symtab: exported symbols at most."""
        return source_rank(self.images[0]) > 1

    def close(self) -> None:
        """Close the files."""
        self._whole = None
        self._forget()
        for image in self.images:
            image.close()


def agreeing(images: Sequence[ElfImage]) -> list[ElfImage]:
    """The files that agree with the first on where sections lie, if nothing is linked; the others are closed.

    Virtual bases depend on all sections of a file (rule R94).
    """
    first = images[0]
    kept = [first]
    for image in images[1:]:
        if image.is_relocatable == first.is_relocatable and (
            not first.is_relocatable or image.loaded_sections == first.loaded_sections
        ):
            kept.append(image)
        else:
            first.note(f"{image.path} has other sections and is not used")
            image.close()
    return kept


def decode_for(dwarf: Dwarf, vaddrs: UInt64 | None) -> Decoded:
    """Decode the units that may hold one of `vaddrs` (ascending), or all.

    Where no unit that claims an address has a function there, the claim may be wrong, and the units that claim
    nothing are decoded too (rule R61).
    """
    if vaddrs is None:
        return dwarf.decode()
    units = dwarf.units_for(vaddrs)
    decoded = dwarf.decode(units)
    if (layer_at(decoded.segment_start, decoded.segment_node, vaddrs) < 0).any():
        unclaiming = dwarf.unclaiming_units()
        others = dwarf.decode(unclaiming)
        if len(others.segment_start) or len(others.row_start):
            decoded = dwarf.decode(distinct(np.concatenate((units, unclaiming))))
    return decoded


def build_table(images: Sequence[ElfImage], vaddrs: UInt64 | None = None, finder: Finder | None = None) -> SymbolTable:
    """The symbol table of the binary whose files are `images`, the whole one or one for `vaddrs` (ascending) alone."""
    return Binary(images, finder).table(vaddrs)


def read_layer(images: Sequence[ElfImage]) -> SymbolLayer:
    """The symbols of all files of a binary, united (rule R113), and bounded by the FDEs of the file that has some."""
    tables = [table for image in images for table in symbol_tables(image)]
    if not is_complete(images):
        minis = [mini for image in images if (mini := mini_image(image)) is not None]
        tables += [table for mini in minis for table in symbol_tables(mini)]
    frames = NO_FRAMES
    if tables and needs_frames(tables):
        found = (frame_ranges(image) for image in images)
        frames = next((ranges for ranges in found if len(ranges[0])), NO_FRAMES)
    return symbol_layer(tables, frames)


def symbol_tables(image: ElfImage) -> Iterator[Symbols]:
    """The symbol tables of a file; of .dynsym what .symtab has no symbol at the address of (rule R113)."""
    full = read_symbols(image, ".symtab")
    if full is not None and len(full):
        yield full
    dynamic = read_symbols(image, ".dynsym")
    if dynamic is not None and full is not None and len(full):
        known = np.sort(full.vaddr)
        place = np.minimum(np.searchsorted(known, dynamic.vaddr), len(known) - 1)
        dynamic = dynamic.take(known[place] != dynamic.vaddr)
    if dynamic is not None and len(dynamic):
        yield dynamic


def is_complete(images: Sequence[ElfImage]) -> bool:
    """Whether a file with DWARF has all symbols too, so that mini debug info would add none."""
    return any(has_dwarf(image) and ".symtab" in source_names(image) for image in images)


def source_names(image: ElfImage) -> set[str]:
    """The names of the sections that have contents."""
    return {section.name for section in image.sections if section.type != "SHT_NOBITS"}


def source_rank(image: ElfImage) -> int:
    """DWARF beats .symtab, also a compressed one, beats .dynsym: 0 to 3, the lower the better."""
    if has_dwarf(image):
        return 0
    names = source_names(image)
    return 1 if names & {".symtab", ".gnu_debugdata"} else 2 if ".dynsym" in names else 3


def has_dwarf(image: ElfImage) -> bool:
    """Whether a file has debug information that can describe code."""
    return any(
        section.name in (".debug_info", ".zdebug_info") and section.type != "SHT_NOBITS" for section in image.sections
    )
