"""Builds the symbol table of a binary from the files that share its build id."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from symbolize.core.arrays import UInt64, distinct, is_among, layer_at
from symbolize.core.folded_code import Callers
from symbolize.core.parallel import beside
from symbolize.dwarf.decode import Decoded, Dwarf
from symbolize.dwarf.producers import unpacked_discriminators
from symbolize.elf import ElfImage
from symbolize.elf.gotable import go_table
from symbolize.names import scope_text
from symbolize.symbol_files import SymbolList
from symbolize.symbol_files.gopclntab import Memory, TableBases, read_go_table
from symbolize.symbols.assemble import SymbolWitness, assemble, resolve_nodes
from symbolize.symbols.elf_symbols import SymbolLayer, read_layer
from symbolize.symbols.icf import entries_at
from symbolize.symbols.split_dwarf_files import CompanionFiles, Finder, debug_sections
from symbolize.symbols.symbol_list_binary import symbol_list_table, with_type_arguments
from symbolize.symbols.table import SymbolTable

MAX_PIECES = 64
"""In how many loaded segments of a Go program the trees of inlined calls are looked for."""


class Builder:
    """Reads the files of a binary, once, and builds its tables, from `dwarf` or else `listing`, the line table of
    Go. With `has_discriminators` these have discriminators for columns."""

    def __init__(self, images: Sequence[ElfImage], finder: Finder | None, has_discriminators: bool = False) -> None:
        self._images = images
        debug = next((image for image in images if image.has_dwarf), None)
        self.dwarf: Dwarf | None = None
        self._files: CompanionFiles | None = None
        self.listing: SymbolList | None = None
        self._symbols = beside(lambda: read_layer(images))
        try:
            if debug is not None:
                self._files = CompanionFiles(debug, finder)
                sections, code = debug_sections(debug, has_discriminators), debug.code_ranges
                self.dwarf = Dwarf(sections, code, self._files, scope_text, lambda vaddr: self.symbols.names_at(vaddr))
                self.dwarf.witness = SymbolWitness(self.dwarf, self._symbols)
            else:
                self.listing = go_listing(images)
        except BaseException:
            try:
                self.check()
            finally:
                self.close()
            raise

    @property
    def symbols(self) -> SymbolLayer:
        """The symbols of all files. They are read beside the debug information, and not waited for before."""
        return self._symbols()

    def build(self, vaddrs: UInt64 | None, callers: Callers | None = None) -> SymbolTable:
        """The whole table, or one for lookups of `vaddrs` (ascending), with the calls by `callers`, see `assemble`."""
        dwarf, images = self.dwarf, self._images
        if self.listing is not None:
            table = symbol_list_table(with_type_arguments(self.listing, self.symbols), self.symbols)
        else:
            decoded, resolved = Decoded.nothing(), None
            if dwarf is not None and vaddrs is not None:
                decoded = decode_for(dwarf, vaddrs, self._symbols)
            elif dwarf is not None:
                decoded, resolved = dwarf.decode_beside(partial(resolve_nodes, dwarf))
            if dwarf is not None and dwarf.sections.has_discriminators:
                base, copies = unpacked_discriminators(dwarf.sources, decoded.row_column, decoded.row_unit)
                of_call, _ = unpacked_discriminators(dwarf.sources, decoded.node_call_column, decoded.node_unit)
                decoded = replace(decoded, row_column=base | copies << np.uint32(16), node_call_column=of_call)
            table = assemble(dwarf, decoded, self.symbols, vaddrs, callers, resolved)
        # Two threads note them, each when it comes to it.
        table.problems = [f"{image.path}: {problem}" for image in images for problem in sorted(image.problems)]
        if dwarf is not None and self._files is not None:
            table.problems += [*dwarf.problems, *self._files.problems]
            table.doubtful_begin, table.doubtful_end = dwarf.doubtful()
        if any(image.problems for image in images):
            table.doubtful_begin, table.doubtful_end = np.zeros(1, np.uint64), np.full(1, (1 << 64) - 1, np.uint64)
        return table

    def needed(self, vaddrs: UInt64) -> int:
        """How many bytes of the debug information lookups of `vaddrs` (ascending) need."""
        return self.dwarf.size(self.dwarf.claims.units_for(vaddrs)) if self.dwarf is not None else 0

    @cached_property
    def size(self) -> int:
        """Bytes of the debug information."""
        return self.dwarf.size() if self.dwarf is not None else 0

    @property
    def is_complete(self) -> bool:
        """Whether no file is missing that may be there the next time."""
        if self.dwarf is None or self._files is None:
            return True
        return self.dwarf.sources.is_complete and not self._files.problems

    @property
    def companions(self) -> list[tuple[str, int, int]]:
        """The further files that were read: path, size and time of modification."""
        return [(path, *known) for path, known in self._files.opened.items()] if self._files is not None else []

    def check(self) -> None:
        """Raise ChangedFile if one of the further files changed since it was opened (R280, files that change)."""
        if self._files is not None:
            self._files.check()

    def close(self) -> None:
        """Close the further files."""
        with suppress(Exception):
            self._symbols()  # reads the files until it is done
        if self._files is not None:
            self._files.close()


def decode_for(dwarf: Dwarf, vaddrs: UInt64, symbols: Callable[[], SymbolLayer] | None = None) -> Decoded:
    """Decode the units that may hold one of `vaddrs` (ascending).

    Where no unit that claims an address has a function there, units with unclaimed code are decoded too (R61, units by
    root ranges; R255, claims of units). With `symbols`, called when the line programs are read, segments and line
    entries are right only as far as lookups of `vaddrs` need them.
    """

    def asked() -> UInt64:
        # Shared code depends on the functions at and before the begins of symbols (R160, whole shared code).
        assert symbols is not None
        layer = symbols()
        symbol = layer_at(layer.start, layer.symbol, vaddrs)
        begin = layer.vaddr[symbol[symbol >= 0]]
        return np.concatenate((vaddrs, begin, begin - np.minimum(begin, np.uint64(1))))

    needed = asked if symbols is not None else None
    units = dwarf.claims.units_for(vaddrs)
    decoded = dwarf.decode(units, needed)
    uncovered = vaddrs[dwarf.uncovered(decoded, vaddrs)]
    uncertain = dwarf.claims.uncertain_units()
    uncertain = uncertain[~is_among(uncertain, units)]
    if len(uncovered) and len(uncertain):
        others = dwarf.decode(uncertain, lambda: uncovered)
        layers = (others.segment_start, others.segment_node), (others.row_start, others.row)
        if any((layer_at(*layer, uncovered) >= 0).any() for layer in layers):
            units = distinct(np.concatenate((units, uncertain)))
            decoded = dwarf.decode(units, needed)
    # What shares the code of a function is claimed where that begins.
    sharing = dwarf.claims.units_for(entries_at(decoded, vaddrs))
    if not is_among(sharing, units).all():
        decoded = dwarf.decode(distinct(np.concatenate((units, sharing))), needed)
    return decoded


def go_listing(images: Sequence[ElfImage]) -> SymbolList | None:
    """The functions of a Go program by its line table, of the first file that has one (R121, Go line table)."""
    for image in images:
        found = go_table(image)
        if found is None:
            continue
        bases = TableBases(found.vaddr, found.text, found.function_data, found.parts)
        memory = Memory(image.data, [(s.vaddr, s.file_offset, s.file_size) for s in image.segments[:MAX_PIECES]])
        try:
            listing = read_go_table(found.data, bases, memory, image.code_ranges, image.big_endian)
        except ValueError as error:
            image.note(f"the line table of Go cannot be read: {error}")
            continue
        for problem in listing.problems:
            image.note(problem)
        return listing
    return None
