"""Builds the symbol table of a binary from the files that share its build id."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import distinct, layer_at
from symbolize.dwarf.decode import Decoded, Dwarf
from symbolize.elf import ElfImage, Symbols, read_symbols
from symbolize.symbols.assemble import assemble
from symbolize.symbols.debug_files import CompanionFiles, Finder, debug_sections
from symbolize.symbols.elf_symbols import SymbolLayer, shared_ranges, symbol_layer
from symbolize.symbols.table import SymbolTable

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]


class Binary:
    """A binary, opened: the files that share its build id, what was decoded of them, and their symbol tables.

    The first image with DWARF gives functions and lines; the symbol tables of all are united (rules R113,
    R142). Units and symbols are read once, however many tables are built. `finder` tells where further files with
    DWARF may lie: split units and the supplementary file.
    """

    def __init__(self, images: Sequence[ElfImage], finder: Finder | None = None) -> None:
        self.images = sorted(images, key=source_rank)
        self._finder = finder
        self._companions: CompanionFiles | None = None
        self._symbols: SymbolLayer | None = None
        self._dwarf: Dwarf | None = None

    def table(self, vaddrs: UInt64 | None = None) -> SymbolTable:
        """The symbol table.

        With `vaddrs` (ascending) only the units that may hold one of them are decoded, and the table answers
        for these addresses alone.
        """
        if self._symbols is None:
            debug = next((image for image in self.images if has_dwarf(image)), None)
            if debug is not None:
                self._companions = CompanionFiles(debug, self._finder)
                self._dwarf = Dwarf(debug_sections(debug), debug.code_ranges, self._companions)
            self._symbols = symbol_layer([table for image in self.images for table in symbol_tables(image)])
        decoded = Decoded.nothing()
        if self._dwarf is not None:
            decoded = decode_for(self._dwarf, vaddrs)
        table = assemble(self._dwarf, decoded, self._symbols, vaddrs)
        table.folded_begin, table.folded_end = shared_ranges(self._symbols)
        table.problems = [f"{image.path}: {problem}" for image in self.images for problem in image.problems]
        if self._dwarf is not None:
            table.problems += self._dwarf.problems
            table.doubtful_begin, table.doubtful_end = self._dwarf.doubtful()
        if self._companions is not None:
            table.problems += self._companions.problems
        if any(image.problems for image in self.images):
            table.doubtful_begin, table.doubtful_end = np.zeros(1, np.uint64), np.full(1, (1 << 64) - 1, np.uint64)
        return table

    @property
    def is_stripped(self) -> bool:
        """Whether the files have neither DWARF nor .symtab: exported symbols at most."""
        return source_rank(self.images[0]) > 1

    def close(self) -> None:
        """Close the files."""
        self._dwarf = self._symbols = None
        if self._companions is not None:
            self._companions.close()
            self._companions = None
        for image in self.images:
            image.close()


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
    """The symbol table of the binary whose files are `images`; see `Binary`."""
    return Binary(images, finder).table(vaddrs)


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


def source_rank(image: ElfImage) -> int:
    """DWARF beats .symtab beats .dynsym: 0 to 3, the lower the better."""
    if has_dwarf(image):
        return 0
    names = {section.name for section in image.sections if section.type != "SHT_NOBITS"}
    return 1 if ".symtab" in names else 2 if ".dynsym" in names else 3


def has_dwarf(image: ElfImage) -> bool:
    """Whether a file has debug information that can describe code."""
    return any(
        section.name in (".debug_info", ".zdebug_info") and section.type != "SHT_NOBITS" for section in image.sections
    )
