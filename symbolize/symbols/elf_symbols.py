"""The layer of a symbol table that ELF symbols make: which symbol answers for which addresses."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from symbolize.core.arrays import (
    TOP,
    Bool,
    Int64,
    UInt8,
    UInt32,
    UInt64,
    distinct,
    distinct_inverse,
    is_among,
    offsets_of,
    ranges,
)
from symbolize.core.c_strings import same_texts, texts_at
from symbolize.core.ranges import disjoint, inside
from symbolize.core.records import record
from symbolize.core.string_array import StringArray, joined_arrays
from symbolize.core.string_table import StringTable
from symbolize.elf import ElfImage, Symbols, read_plt, read_symbols
from symbolize.elf.call_frames import frame_ranges
from symbolize.elf.symbols import (
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_NOTYPE,
    has_descriptors,
    mini_image,
)
from symbolize.names import demangle, strip_version
from symbolize.symbols.builds import source_names

MAX_ALIASES = 64
"""How many symbols with one start are compared with DWARF."""

CHUNK = 1 << 12
"""Symbols whose demangled names are held at a time."""

NO_FRAMES = np.zeros(0, np.uint64), np.zeros(0, np.uint64)


class SymbolNames:
    """The names of the symbols of some tables, one table after the other, each read when it is asked for."""

    def __init__(self, tables: Sequence[Symbols]) -> None:
        self._tables = tables
        self._ends = list(accumulate(len(table) for table in tables))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, row: int) -> bytes:
        number = bisect_right(self._ends, row)
        table = self._tables[number]
        return table.text(int(table.name[row - self._ends[number] + len(table)]))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.take(np.arange(len(self))))

    def take(self, rows: Int64) -> list[bytes]:
        """The names of some rows."""
        return list(self.texts(rows))

    def texts(self, rows: Int64) -> StringArray:
        """The names of some rows, in one array."""
        if len(self._tables) == 1:
            return texts_at(self._tables[0].strings, self._tables[0].name[rows], [])
        number = np.searchsorted(self._ends, rows, side="right")
        parts, rows_of_parts = [StringArray.empty(0)], [np.zeros(0, np.int64)]
        for i in distinct(number).tolist():
            here = np.flatnonzero(number == i)
            table = self._tables[i]
            parts.append(texts_at(table.strings, table.name[rows[here] - self._ends[i] + len(table)], []))
            rows_of_parts.append(here)
        return joined_arrays(parts).only(np.argsort(np.concatenate(rows_of_parts)))

    def table_of(self, row: int) -> int:
        """Which of the tables a row is of."""
        return bisect_right(self._ends, row)


@record
class SymbolLayer:
    """Symbols, a row each, and the disjoint ranges in which they answer (see `SymbolTable`).

    `end` is the end of a symbol, `is_function` marks FUNC and IFUNC, `file` is an index into `files`, the source files
    of local symbols (0: none). `complete`: there is a table of all symbols, not only of exported ones; `has_functions`:
    there are others than linker-made code.

    Entries of linkage tables have no file and no line, are not folded, and do not make a stripped file one with names.
    """

    start: UInt64
    symbol: Int64
    vaddr: UInt64
    end: UInt64
    sized: Bool
    is_function: Bool
    binding: UInt8
    complete: bool
    has_functions: bool
    names: SymbolNames
    file: Int64
    files: list[bytes]

    def aliases(self, symbol: int) -> Iterator[int]:
        """`symbol` and the other sized symbols that start where it does (R118, aliases)."""
        if self.sized[symbol]:
            yield symbol
        order, starts = self.by_vaddr
        first = np.searchsorted(starts, self.vaddr[symbol])
        last = np.searchsorted(starts, self.vaddr[symbol], side="right")
        yield from (int(k) for k in order[first:last][:MAX_ALIASES] if k != symbol and self.sized[k])

    def all_names(self, symbols: Int64) -> list[list[bytes]]:
        """The names of each symbol, each once: its own, then those of its aliases."""
        order, starts = self.by_vaddr
        first, last = (np.searchsorted(starts, self.vaddr[symbols], side) for side in ("left", "right"))
        count = np.minimum(last - first, MAX_ALIASES)
        rows, own = order[ranges(first, count)], np.repeat(symbols, count)
        rows = np.where((rows == own) | ~self.sized[rows], -1, rows)
        rows = np.insert(rows, offsets_of(count)[:-1], symbols)
        ends = offsets_of(count + 1).tolist()
        is_name = rows >= 0
        ends = offsets_of(is_name)[ends].tolist()
        names = self.names.take(rows[is_name])
        return [list(dict.fromkeys(names[begin:end])) for begin, end in pairwise(ends)]

    def starting_at(self, vaddr: int) -> Int64:
        """The symbols that start at `vaddr`."""
        order, starts = self.by_vaddr
        first = np.searchsorted(starts, np.uint64(vaddr))
        last = np.searchsorted(starts, np.uint64(vaddr), side="right")
        return order[first:last][:MAX_ALIASES]

    def names_at(self, vaddr: int) -> list[bytes]:
        """The names of the symbols that start at `vaddr`."""
        return self.names.take(self.starting_at(vaddr))

    def is_alone(self, rows: Int64) -> Bool:
        """Which of the symbols are the only ones at their vaddr."""
        _, starts = self.by_vaddr
        vaddr = self.vaddr[rows]
        result: Bool = np.searchsorted(starts, vaddr, side="right") - np.searchsorted(starts, vaddr) == 1
        return result

    def has_name(self, name: bytes) -> bool:
        """Whether a symbol has this name."""
        return self._all_names[0].find(name) >= 0

    def named(self, name: bytes) -> Int64:
        """The symbols that have this name."""
        order, numbers = self._by_name
        number = self._all_names[0].find(name)
        return order[np.searchsorted(numbers, number) : np.searchsorted(numbers, number, side="right")]

    def demangled(self, text: bytes) -> Int64:
        """The symbols that this is the whole name of, demangled with all parameters; no clones, whose whole names say
        that they are some."""
        hashes, rows = self._by_text
        key = hash(text)
        found = rows[np.searchsorted(hashes, key) : np.searchsorted(hashes, key, side="right")]
        names = [strip_version(name) for name in self.names.take(found)]
        return found[[each == text and b"." not in name for name, each in zip(names, whole_names(names), strict=True)]]

    @cached_property
    def _by_text(self) -> tuple[Int64, Int64]:
        """The hashes of the demangled names, ascending, and their symbols."""
        parts = [np.arange(begin, min(begin + CHUNK, len(self.names))) for begin in range(0, len(self.names), CHUNK)]
        hashes = np.array([hash(name) for part in parts for name in whole_names(self.names.take(part))], np.int64)
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order

    @cached_property
    def _all_names(self) -> tuple[StringTable, UInt32]:
        """The names, and the number of that of each symbol."""
        names = StringTable()
        return names, names.add_all(self.names.texts(np.arange(len(self.names))))

    @cached_property
    def _by_name(self) -> tuple[Int64, Int64]:
        """The symbols in order of the numbers of their names, and those numbers."""
        numbers = self._all_names[1].astype(np.int64)
        order = np.argsort(numbers, kind="stable")
        return order, numbers[order]

    @cached_property
    def by_vaddr(self) -> tuple[Int64, UInt64]:
        """The symbols in order of vaddr, and those vaddrs."""
        order = np.argsort(self.vaddr, kind="stable")
        return order, self.vaddr[order]


def whole_names(names: Sequence[bytes]) -> list[bytes]:
    """Names as they are linked, demangled with all parameters."""
    return demangle([strip_version(name) for name in names], "full")


def read_layer(images: Sequence[ElfImage]) -> SymbolLayer:
    """The symbols of all files of a binary, united (R113, united symbol tables), and bounded by the FDEs of the file
    that has some.

    Those of .gnu_debugdata count unless a file with DWARF has a .symtab anyway.
    """
    opd = next((image for image in images if has_descriptors(image)), None)
    tables = [table for image in images for table in symbol_tables(image, opd)]
    if not is_complete(images):
        minis = [mini for image in images if (mini := mini_image(image)) is not None]
        tables += [table for mini in minis for table in symbol_tables(mini, opd)]
    tables = without_copies(tables)
    frames = NO_FRAMES
    if tables and needs_frames(tables):
        found = (frame_ranges(image) for image in images)
        frames = next((ranges for ranges in found if len(ranges[0])), NO_FRAMES)
    return symbol_layer(tables, frames)


def symbol_tables(image: ElfImage, descriptors: ElfImage | None = None) -> Iterator[Symbols]:
    """The symbol tables of a file: .symtab, what .dynsym has at other addresses (R113, united symbol tables), and
    PLT entries at others still (R263, names of PLT entries). `descriptors` is as in `read_symbols`."""
    full, dynamic = (read_symbols(image, name, descriptors) for name in (".symtab", ".dynsym"))
    known = np.zeros(0, np.uint64)
    for table in (full, dynamic, read_plt(image)):
        if table is not None and len(table):
            new = table.take(~is_among(table.vaddr, known)) if len(known) else table
            known = np.concatenate((known, new.vaddr))
            if len(new):
                yield new


def is_complete(images: Sequence[ElfImage]) -> bool:
    """Whether a file with DWARF has all symbols too, so that mini debug info would add none."""
    return any(image.has_dwarf and ".symtab" in source_names(image) for image in images)


def symbol_layer(tables: Sequence[Symbols], frames: tuple[UInt64, UInt64] = NO_FRAMES) -> SymbolLayer:
    """Unite symbol tables; `frames` are begins (ascending) and ends of the FDEs, see `needs_frames`.

    Of the symbols that cover an address the one with the nearest start answers (R107, choice among symbols; R108,
    enclosing symbols). At one start sized ones come before sizeless, functions before untyped before objects, global
    before weak before local, then as `name_order` says.
    """
    if not tables:
        none = np.zeros(0, np.uint64)
        nothing = none.astype(np.int64)
        no = none.astype(np.bool_)
        return SymbolLayer(
            none, nothing, none, none, no, no, none.astype(np.uint8), False, False, SymbolNames([]), nothing, [b""]
        )
    vaddr = np.concatenate([table.vaddr for table in tables])
    sized = np.concatenate([table.size > 0 for table in tables])
    end = np.concatenate([extents(table, frames) for table in tables])
    kind = np.concatenate([table.type for table in tables])
    binding = np.concatenate([table.binding for table in tables])
    names = SymbolNames(tables)
    kept = end > vaddr
    kept &= sized | ~inside(vaddr, vaddr[sized], end[sized])  # R110, labels inside symbols
    rows = np.flatnonzero(kept)
    rank = np.empty(len(rows), np.int64)
    rank[
        np.lexsort(
            (
                name_order(vaddr, names)[rows],
                preference(binding, (STB_GLOBAL, STB_WEAK, STB_LOCAL))[rows],
                preference(kind, (STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE))[rows],
                ~sized[rows],
                ~vaddr[rows],
            )
        )
    ] = np.arange(len(rows))
    starts, winners = disjoint(vaddr[rows], end[rows], np.arange(len(rows)), rank, np.full(len(rows), -1, np.int64))
    symbol = np.where(winners >= 0, np.append(rows, -1)[winners], -1)
    files = [b""]
    columns = []
    for table in tables:
        offsets, which = distinct_inverse(np.append(table.file, 0))  # the first is 0, no file
        columns.append(np.where(which[:-1] > 0, which[:-1] + len(files) - 1, 0))
        files += [table.text(offset) for offset in offsets.tolist()[1:]]
    function = (kind == STT_FUNC) | (kind == STT_GNU_IFUNC)
    complete = any(not table.dynamic for table in tables)
    has_functions = any(not table.stubs for table in tables)
    file = np.concatenate(columns)
    return SymbolLayer(
        starts, symbol, vaddr, end, sized, function, binding, complete, has_functions, names, file, files
    )


def without_copies(tables: Sequence[Symbols]) -> list[Symbols]:
    """The tables without those that have the same symbols as one before: a binary that was not stripped has a copy of
    what is in its debug file. Source files of local symbols do not count, of which the first table is believed."""
    kept: list[Symbols] = []
    for table in tables:
        if not any(are_copies(table, other) for other in kept):
            kept.append(table)
    return kept


def are_copies(one: Symbols, other: Symbols) -> bool:
    """Whether two tables have the same symbols, those of one vaddr in the same order."""
    if (len(one), one.dynamic, one.stubs) != (len(other), other.dynamic, other.stubs):
        return False
    orders = [np.argsort(table.vaddr, kind="stable") for table in (one, other)]
    for column in ("vaddr", "size", "type", "binding", "section_end"):
        first, second = (getattr(table, column)[order] for table, order in zip((one, other), orders, strict=True))
        if not np.array_equal(first, second):
            return False
    return same_texts(*(SymbolNames([table]).texts(order) for table, order in zip((one, other), orders, strict=True)))


def needs_frames(tables: Sequence[Symbols]) -> bool:
    """Whether the ends of symbols depend on FDEs: some have no size, or exported ones are all there are."""
    return any((table.size == 0).any() for table in tables) or all(table.dynamic for table in tables)


def extents(symbols: Symbols, frames: tuple[UInt64, UInt64] = NO_FRAMES) -> UInt64:
    """The end of each symbol: by its size, and no further than its section (R109, symbols without a size; R111,
    exported symbols without a size).

    Without a size one of .symtab ends at the next start, or with its FDE; one of .dynsym, which is sparse, with its
    FDE, or after one byte. A sized symbol of .dynsym ends with its FDE too (R112, end of sized symbols). As .dynsym has
    exported symbols only the next one may be far away.
    """
    sized = symbols.vaddr + np.minimum(symbols.size, ~symbols.vaddr)
    starts = distinct(symbols.vaddr)
    following = np.append(starts, np.uint64(TOP))[np.searchsorted(starts, symbols.vaddr, side="right")]
    frame = frame_ends(symbols.vaddr, frames)
    if symbols.dynamic:
        sized = np.minimum(sized, frame)
        sizeless = np.where(frame < np.uint64(TOP), frame, symbols.vaddr + np.uint64(1))
    else:
        sizeless = np.minimum(following, frame)
    end: UInt64 = np.minimum(np.where(symbols.size > 0, sized, sizeless), symbols.section_end)
    return end


def frame_ends(vaddr: UInt64, frames: tuple[UInt64, UInt64]) -> UInt64:
    """The end of the FDE that covers each vaddr, the one with the nearest begin; TOP where none does."""
    begin, end = frames
    if not len(begin):
        return np.full(len(vaddr), TOP, np.uint64)
    nearest = np.searchsorted(begin, vaddr, side="right") - 1
    found = np.where(nearest >= 0, end[nearest], 0)
    return np.where(found > vaddr, found, np.uint64(TOP))


def preference(values: UInt8, order: Sequence[int]) -> Int64:
    """The index of each value in `order`, its length if it is not there."""
    rank = np.full(256, len(order), np.int64)
    rank[list(order)] = np.arange(len(order))
    return rank[values]


def name_order(vaddr: UInt64, names: SymbolNames) -> Int64:
    """The rank of each name among the symbols of its address (R107, choice among symbols): default version, none, other
    version; fewer leading underscores; shorter; byte order."""
    starts, which = distinct_inverse(vaddr)
    shared = np.flatnonzero(np.bincount(which, minlength=len(starts))[which] > 1)
    texts = names.take(shared)
    in_order = np.empty(len(texts), np.int64)
    in_order[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    version = [0 if b"@@" in text else 2 if b"@" in text else 1 for text in texts]
    underscores = [len(text) - len(text.lstrip(b"_")) for text in texts]
    rank = np.zeros(len(names), np.int64)
    rank[shared[np.lexsort(np.array((in_order, [*map(len, texts)], underscores, version)))]] = np.arange(len(texts))
    return rank
