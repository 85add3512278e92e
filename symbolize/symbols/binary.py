"""One binary: its files, and the symbol table that answers for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import distinct_inverse, layer_at
from symbolize.elf import ElfImage, Segment
from symbolize.elf.gotable import GO_SECTIONS, go_table
from symbolize.symbols.cache import TableCache, facts_of, table_name
from symbolize.symbols.table import FunctionsAt, SymbolTable

if TYPE_CHECKING:
    from symbolize.symbols.build import Builder
    from symbolize.symbols.debug_files import Finder
    from symbolize.symbols.elf_symbols import SymbolLayer
    from symbolize.symbols.table_file import Facts

UInt64 = NDArray[np.uint64]

WHOLE_SHARE = 0.5
"""From this share of the debug information on, all of it is decoded, if the table can be kept."""


class Binary:
    """A binary, opened: the files that share its build id, and their symbol table.

    The first image with DWARF gives functions and lines; the symbol tables of all are united (rules R113,
    R142). Files that lie at other addresses are left out, apart from the one with the code: `loaded` has the
    segments by which addresses are placed, and what `shift` adds to their vaddrs gives those of the names (rule R145).
    A whole table is kept in memory and, if there is one, in `cache`. `finder` tells where further files with
    DWARF may lie: split units and the supplementary file. `is_kept` tells whether the whole table is in the cache;
    it is False if that could not be written, None as long as there is none or some of the further files are missing.
    `refused` says which files do not fit the others.
    """

    def __init__(
        self, images: Sequence[ElfImage], finder: Finder | None = None, cache: TableCache | None = None
    ) -> None:
        ordered = agreeing(sorted(images, key=source_rank))
        self.refused: list[str] = []
        self.loaded, self.images, self.shift = aligned(ordered, self.refused)
        self._finder = finder
        self._cache = cache
        self._whole: SymbolTable | None = None
        self.is_kept: bool | None = None
        self._asked = False
        self._companions: Sequence[tuple[str, int, int]] = ()
        self._made: Builder | None = None
        self._layer: SymbolLayer | None = None

    def table(self, vaddrs: UInt64 | None = None) -> SymbolTable:
        """The symbol table; with `vaddrs` (ascending) it may be one that answers for these addresses alone.

        What decides is the cost: where a whole table is at hand, or most of the debug information is needed anyway and
        the table can be kept, or the binary is met for the second time, it is the whole one. The answers are the
        same.
        """
        if not self.is_cached() and (vaddrs is None or self._is_worth_it(vaddrs)):
            self._whole = self._build(None)
            if self._cache is not None and self._builder.is_complete:
                self.is_kept = self._cache.store(self._whole, self.facts_of_table)
            self.forget()
        return self._whole if self._whole is not None else self._build(vaddrs)

    def table_again(self, vaddrs: UInt64) -> SymbolTable:
        """The table for one more question of the lookup that `table` was asked for: one for `vaddrs` (ascending) alone.

        It is no second visit, which would be a reason to build the whole table.
        """
        return self._whole if self._whole is not None else self._build(vaddrs)

    def _build(self, vaddrs: UInt64 | None) -> SymbolTable:
        table = self._builder.build(vaddrs)
        self._companions = self._builder.companions
        return table

    @property
    def has_whole(self) -> bool:
        """Whether the whole table is in memory, and what `table` hands out."""
        return self._whole is not None

    def functions_at(self, vaddrs: UInt64) -> FunctionsAt:
        """The functions at `vaddrs` (ascending) by their symbols, which costs less than a table; else by the table."""
        from symbolize.symbols.build import read_layer

        if self._layer is None:
            self._layer = read_layer(self.images) if self.is_cached() else self._builder.symbols
        layer = self._layer
        if not len(layer.start):
            return self.table(vaddrs).lookup(vaddrs).outermost()
        symbols, number = distinct_inverse(layer_at(layer.start, layer.symbol, vaddrs))
        if len(symbols) and symbols[0] < 0:  # where no symbol is
            symbols, number = symbols[1:], number - 1
        names = [
            list(dict.fromkeys(layer.names[row] for row in (symbol, *layer.aliases(symbol))))
            for symbol in symbols.tolist()
        ]
        return FunctionsAt(number, names)

    def is_cached(self) -> bool:
        """Whether the whole table is at hand, in memory or in the cache."""
        if self._whole is None and self._cache is not None:
            self._whole = self._cache.load(self.facts)
            self.is_kept = True if self._whole is not None else None
        return self._whole is not None

    @cached_property
    def facts(self) -> Facts:
        """What identifies the files."""
        return facts_of(self.images)

    @property
    def facts_of_table(self) -> Facts:
        """What identifies the files, and the further ones that were read for the table that was built last."""
        return self.facts._replace(companions=self._companions)

    @property
    def key(self) -> str:
        """A name for the binary by the contents of its files, as its kept table has it."""
        return table_name(self.facts)

    def adopt(self, table: SymbolTable) -> None:
        """Let `table`, a whole one that was made of the same files, answer from now on."""
        if self._whole is None:
            self._whole = table
            self.forget()

    def _is_worth_it(self, vaddrs: UInt64) -> bool:
        """Whether to build the whole table for a lookup of `vaddrs`, and for those to come."""
        asked, self._asked = self._asked, True
        if asked:
            return True
        if self._cache is None:
            return False
        return self._cache.was_seen(self.facts) or self._builder.share(vaddrs) >= WHOLE_SHARE

    @property
    def _builder(self) -> Builder:
        """What reads the files, made when a table has to be built: one that is at hand needs none of it."""
        if self._made is None:
            from symbolize.symbols.build import Builder

            self._made = Builder(self.images, self._finder)
        return self._made

    def forget(self) -> None:
        """Let go of what only building a table needs; it is read again when one has to be built."""
        if self._made is not None:
            self._made.close()
            self._made = None
        self._layer = None
        for image in self.images:
            image.forget()

    @cached_property
    def is_stripped(self) -> bool:
        """Whether the files have neither DWARF nor .symtab nor a line table of Go: exported symbols at most."""
        return source_rank(self.images[0]) > 1 and not any(go_table(image) for image in self.images)

    def close(self) -> None:
        """Close the files."""
        self._whole = None
        self.forget()
        for image in {id(image): image for image in (*self.images, self.loaded)}.values():
            image.close()


def aligned(images: Sequence[ElfImage], refused: list[str]) -> tuple[ElfImage, list[ElfImage], int]:
    """The file that tells where segments lie, the files with the names, and the way from its vaddrs to theirs.

    prelink and eu-strip may leave other addresses in a binary than in its debug file: then all segments are shifted by
    one distance. A file whose segments are laid out in another way is of another build, whatever its build id says; it
    is closed, and a sentence added to `refused` (rule R145). The order of `images` decides which of the others give the
    names.
    """
    # Of those with true offsets the file with the code comes first.
    loaded = max(images, key=lambda image: (image.has_code, image.has_file_offsets))
    distances: list[tuple[ElfImage, int]] = []
    for image in images:
        distance = 0 if image is loaded else distance_between(loaded, image)
        if distance is None:
            refused.append(f"{image.path} has segments that do not agree with those of {loaded.path} and is not used")
            image.close()
        else:
            distances.append((image, distance))
    shift = distances[0][1]
    kept = [image for image, distance in distances if distance == shift]
    for image, distance in distances:
        if distance != shift and image is not loaded:
            refused.append(f"{image.path} lies at other addresses than {kept[0].path} and is not used")
            image.close()
    return loaded, kept, shift & (1 << 64) - 1


def distance_between(loaded: ElfImage, image: ElfImage) -> int | None:
    """By how much `image` lies higher than `loaded`; None if their segments are not the same but for one distance.

    Where the executable segments lie at the same addresses the others do not matter. Where tools have added or dropped
    segments, the executable ones decide. A file without segments, as some debug files are, has nothing to compare and
    lies where the other one does.
    """
    if image.is_relocatable or not loaded.segments or not image.segments:
        return 0
    code = distances([s for s in loaded.segments if s.executable], [s for s in image.segments if s.executable])
    every = distances(loaded.segments, image.segments)
    if code == {0} or every == {0}:
        return 0
    found = every if len(loaded.segments) == len(image.segments) else code
    return found.pop() if len(found) == 1 else None


def distances(own: Sequence[Segment], others: Sequence[Segment]) -> set[int]:
    """By how much each of the other segments lies higher than its counterpart; empty if they are no counterparts."""
    if len(own) != len(others):
        return set()
    found = {other.vaddr - mine.vaddr for mine, other in zip(own, others, strict=True)}
    sizes = ([segment.memory_size for segment in each] for each in (own, others))
    return found if found == {0} or next(sizes) == next(sizes) else set()


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


def source_names(image: ElfImage) -> set[str]:
    """The names of the sections that have contents."""
    return {section.name for section in image.sections if section.type != "SHT_NOBITS"}


def source_rank(image: ElfImage) -> int:
    """DWARF beats .symtab, also a compressed one, and Go's line table, beats .dynsym: 0 to 3, the lower the better."""
    if has_dwarf(image):
        return 0
    names = source_names(image)
    return 1 if names & {".symtab", ".gnu_debugdata", *GO_SECTIONS} else 2 if ".dynsym" in names else 3


def has_dwarf(image: ElfImage) -> bool:
    """Whether a file has debug information that can describe code."""
    return any(
        section.name in (".debug_info", ".zdebug_info") and section.type != "SHT_NOBITS" for section in image.sections
    )


def build_table(images: Sequence[ElfImage], vaddrs: UInt64 | None = None, finder: Finder | None = None) -> SymbolTable:
    """The symbol table of the binary whose files are `images`, the whole one or one for `vaddrs` (ascending) alone."""
    return Binary(images, finder).table(vaddrs)
