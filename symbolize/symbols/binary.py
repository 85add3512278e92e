"""One binary: its files, the symbol table that answers for them, and what it answers for many addresses at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from symbolize.core.arrays import NONE, Bool, Int64, UInt64, distinct_inverse, layer_at
from symbolize.core.errors import ChangedFile, InputError, ReadFailure, UsageError
from symbolize.core.files import os_error_text
from symbolize.core.folded_code import Callers, FoldedCode, no_callers
from symbolize.core.mapped import CHANGED
from symbolize.elf import ElfImage, jumps_through_tables
from symbolize.elf.call_frames import frame_ranges
from symbolize.elf.go_header import GO_SECTIONS
from symbolize.elf.gotable import go_table
from symbolize.elf.plt import TABLES
from symbolize.names import is_android_linker
from symbolize.symbols.answer import Answer, Asked, in_order, table_answer
from symbolize.symbols.builds import agreeing, aligned, builds_of, misfit, source_names
from symbolize.symbols.cache import TableCache, content_of, facts_of, table_name
from symbolize.symbols.elf_symbols import SymbolLayer, read_layer
from symbolize.symbols.functions import Calls, return_distances
from symbolize.symbols.table import Frames, FunctionsAt, SymbolTable, joined_frames, range_at

if TYPE_CHECKING:
    from symbolize.symbols.build import Builder
    from symbolize.symbols.call_sites import CallSites
    from symbolize.symbols.split_dwarf_files import Finder
    from symbolize.symbols.table_file import TableFacts

MAX_TABLES = 3
"""Tables of one binary that are tried where one after the other changes while it is read."""

WHOLE_SHARE = 0.5
"""If this share of the debug information is needed and the table can be cached, all is decoded."""


MAX_AT_ONCE = 1 << 29
"""Bytes of debug information that are decoded at once, but for a whole table that is asked for."""

SYMBOL_BYTES = 64
"""Bytes of memory that a symbol takes about."""


class Tables(Protocol):
    """Symbol tables that were made ahead for the addresses of many profiles."""

    def find(self, binary: Binary, vaddrs: UInt64) -> SymbolTable | None:
        """The table for all of `vaddrs` (ascending), None if there is none. Raises FailedTable if it could not be
        made."""


class Binary:
    """A binary, opened: the files that share its build id, and their symbol table.

    The first image with DWARF gives functions and lines; the symbol tables of all are united (R113, united symbol
    tables; R142, DWARF and symbols apart). `loaded` defines the segments; `shift` is added to its vaddrs to get those
    of `images` (R145, distance of a debug file). A whole table is retained, also in `cache` if given. `finder` proposes
    paths of split units and the supplementary file. `is_kept`: whether the whole table is in the cache, None if there
    is none or further files are missing. `refused` are sentences about files that do not fit. If it
    `has_discriminators`, frames have these for columns.
    """

    def __init__(
        self,
        images: Sequence[ElfImage],
        finder: Finder | None = None,
        cache: TableCache | None = None,
        has_discriminators: bool = False,
    ) -> None:
        ordered = agreeing(sorted(images, key=source_rank))
        self.refused: list[str] = []
        self.loaded, self.images, self.shift = aligned(ordered, self.refused)
        self._finder = finder
        self._cache = cache
        self._has_discriminators = has_discriminators
        self._whole: SymbolTable | None = None
        self.is_kept: bool | None = None
        self._content = ""
        self._asked = False
        self._companions: Sequence[tuple[str, int, int]] = ()
        self._made: Builder | None = None
        self._layer: SymbolLayer | None = None
        self._frames: tuple[UInt64, UInt64] | None = None

    @property
    def files(self) -> list[ElfImage]:
        """The files that are used, those with the names first."""
        return list(dict.fromkeys((*self.images, self.loaded)))

    @property
    def code(self) -> ElfImage | None:
        """The file with the bytes of the code, None if there are debug files only."""
        return self.loaded if self.loaded.has_code else None

    @property
    def rank(self) -> int:
        """DWARF beats symbols beats exported symbols: 0 to 3, the lower the better."""
        return source_rank(self.images[0])

    def with_discriminators(self) -> Binary:
        """The same files, whose frames have discriminators for columns (R493, discriminators for columns); they stay
        open if it is forgotten."""
        return Binary(self.files, self._finder, has_discriminators=True)

    def differs_from(self, other: Binary) -> str:
        """Why `other`, which has the same build id, is not used beside this one, in a sentence."""
        return misfit(self.loaded, other.loaded)

    def answer(
        self,
        vaddrs: ArrayLike,
        *,
        nearest_line: bool = False,
        tables: Tables | None = None,
        callers: Callers = no_callers,
    ) -> Answer:
        """The frames at n `vaddrs` (of `images`, in any order: uint64[n], or a list of integers), and why some have
        none. With `nearest_line` frames without a line get the nearest earlier one (R170, nearest line); `tables` are
        asked first. The calls by `callers` of shared code come with it, where a table does not have them all. Raises
        ReadFailure if a file changed meanwhile, TypeError and ValueError for wrong addresses."""
        return in_order(vaddrs, lambda asked: answer_of(self, Asked(asked, callers, nearest_line), tables))

    def is_loaded(self, vaddrs: UInt64) -> Bool:
        """Which of `vaddrs` (of `images`) are in a segment; all of them in a file without any."""
        segments = self.loaded.segments
        own = vaddrs - np.uint64(self.shift)
        inside = np.full(len(vaddrs), not segments)
        for segment in segments:
            inside |= own - np.uint64(segment.vaddr) < np.uint64(segment.memory_size)
        return inside

    @cached_property
    def is_android_linker(self) -> bool:
        """Whether one of the files is that of Android's dynamic linker, by name."""
        return any(is_android_linker(image.path) for image in self.images)

    def table(self, vaddrs: UInt64 | None = None, callers: Callers | None = None) -> SymbolTable:
        """The symbol table; with `vaddrs` (ascending) it may be one for these addresses alone, with the same answers,
        and with the calls by `callers` (None: all) of shared code.

        The whole one is taken if it is at hand, or worth its cost: most of the debug information is needed and the
        table can be cached, or it is the second lookup; of more than MAX_AT_ONCE bytes it never is, and not now if the
        cache puts it off. Raises ChangedFile if a file changed meanwhile (R280, files that change).
        """
        with self.reading():
            if not self.is_cached() and (vaddrs is None or self._is_worth_it(vaddrs)):
                whole = self._build(None)
                self.check()
                self._whole = whole
                if self._cache is not None and self._builder.is_complete:
                    self.is_kept = self._cache.store(self._whole, self.facts_of_table, self.content)
                self.forget()
            return self._whole if self._whole is not None else self._build(vaddrs, callers)

    def portions(self, vaddrs: UInt64) -> Iterator[slice]:
        """`vaddrs` (ascending) in slices, each for a table of its own that needs a bounded part of the debug
        information; one slice where all of that is small, or the whole table is at hand. Between them the pages of the
        files leave memory."""
        with self.reading():
            is_small = self.is_cached() or self._builder.size <= MAX_AT_ONCE
        if is_small:
            yield slice(0, len(vaddrs))
            return
        waiting = [slice(0, len(vaddrs))]
        while waiting:
            part = waiting.pop()
            middle = (part.start + part.stop) // 2
            if middle > part.start and self._builder.needed(vaddrs[part]) > MAX_AT_ONCE // 2:
                waiting += [slice(middle, part.stop), slice(part.start, middle)]
            else:
                yield part
                for image in self.images:
                    image.let_go()

    def check(self) -> None:
        """Raise ChangedFile if a file that was read changed since it was opened (R280, files that change)."""
        for image in self.files:
            image.check()
        if self._made is not None:
            try:
                self._made.check()
            except ReadFailure:  # of split units or a supplementary file, which the next question opens anew
                self.forget()
                raise

    @property
    def has_changed(self) -> bool:
        """Whether one of the files changed since it was opened."""
        return any(image.has_changed for image in self.files)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raises ChangedFile instead of whatever reading inside raises or gives, if a file changed meanwhile."""
        try:
            yield
        except Exception:
            self.check()
            raise
        self.check()

    def table_again(self, vaddrs: UInt64, callers: Callers | None = None) -> SymbolTable:
        """A table for `vaddrs` (ascending), as a part of the lookup that `table` was called for."""
        with self.reading():
            return self._whole if self._whole is not None else self._build(vaddrs, callers)

    def drop_changed(self) -> bool:
        """Have the whole table made anew if the file that it is read from has changed; whether it has."""
        if self._whole is None or not self._whole.has_changed:
            return False
        self._whole, self.is_kept = None, None
        return True

    def _build(self, vaddrs: UInt64 | None, callers: Callers | None = None) -> SymbolTable:
        table = self._builder.build(vaddrs, callers)
        self._companions = self._builder.companions
        return table

    def prepare(self) -> bool:
        """Have the whole table at hand, unless it is of more than MAX_AT_ONCE bytes of debug information; whether it
        is. Of all processes with the cache one makes it, and all map what is kept there."""
        if self.is_cached():
            return True
        with self.reading():
            if self._builder.size > MAX_AT_ONCE:
                return False
        with nullcontext() if self._cache is None else self._cache.only_one(self.facts):
            made = self.table()
        if self.is_kept:
            self._whole = None
            if not self.is_cached():
                self._whole = made
        return True

    @property
    def memory(self) -> int:
        """Bytes that the table and the symbols take about, in memory or mapped."""
        table = 0
        if self._whole is not None:
            table = sum(value.nbytes for value in vars(self._whole).values() if isinstance(value, np.ndarray))
        return table + (len(self._layer.vaddr) * SYMBOL_BYTES if self._layer is not None else 0)

    @property
    def has_whole(self) -> bool:
        """Whether the whole table is in memory, and what `table` hands out."""
        return self._whole is not None

    def functions_at(self, vaddrs: UInt64) -> FunctionsAt:
        """The functions at `vaddrs` (ascending) by their symbols, which costs less than a table; else by the table."""
        with self.reading():
            return self._functions_at(vaddrs)

    @property
    def _symbols(self) -> SymbolLayer:
        """The symbols of the files, read once."""
        if self._layer is None:
            self._layer = read_layer(self.images) if self.is_cached() else self._builder.symbols
        return self._layer

    def function_bounds(self, vaddrs: UInt64) -> tuple[UInt64, UInt64]:
        """Begin and end of the functions at `vaddrs` (ascending) by their symbols: the vaddr itself and 0 where none
        is, and the end is 0 where the symbol has no size."""
        with self.reading():
            layer = self._symbols
        row = layer_at(layer.start, layer.symbol, vaddrs)
        has_symbol = row >= 0
        if not len(layer.vaddr):
            return vaddrs, np.zeros(len(vaddrs), np.uint64)
        begin = np.where(has_symbol, layer.vaddr[row], vaddrs)
        return begin, np.where(has_symbol & layer.sized[row], layer.end[row], np.uint64(0))

    def function_starts(self, vaddrs: UInt64) -> UInt64:
        """Where the functions at `vaddrs` begin by the call frame information of the file with the code, as vaddrs of
        that; 0 where it has none, and in procedure linkage tables, which have it as a whole (R492, functions without
        names)."""
        code = self.code
        if code is None or code.is_relocatable:
            return np.zeros(len(vaddrs), np.uint64)
        own = vaddrs - np.uint64(self.shift)
        with self.reading():
            if self._frames is None:
                self._frames = frame_ranges(code)
        begin, end = self._frames
        row = range_at(own, begin, end)
        for section in filter(None, map(code.find, TABLES)):
            row[own - np.uint64(section.vaddr) < np.uint64(section.size)] = NONE
        return np.append(begin, np.uint64(0))[row]  # the last is for none

    def sized_functions(self) -> tuple[UInt64, UInt64]:
        """Begins, ascending, and ends of the functions by symbols with a size, and of a Go program by its line table:
        stripped, it may still have the symbols of its C code."""
        with self.reading():
            layer = self._symbols
            chosen = layer.sized & layer.is_function
            begin, end = layer.vaddr[chosen], layer.end[chosen]
            if self.rank > 0:
                from symbolize.symbols.build import go_listing

                listing = go_listing(self.images)
                if listing is not None:
                    pairs = zip((begin, end), listing.function_ranges(), strict=True)
                    begin, end = (np.concatenate(columns) for columns in pairs)
        order = np.lexsort((end, begin))
        return begin[order], end[order]

    def symbol_bounds(self, name: bytes, is_demangled: bool = False) -> list[tuple[int, int]]:
        """Begin and end of the symbols of a name, as it is linked or demangled with all parameters, in order; the end
        is the begin where a symbol has no size."""
        with self.reading():
            layer = self._symbols
            rows = layer.demangled(name) if is_demangled else layer.named(name)
        ends = np.where(layer.sized[rows], layer.end[rows], layer.vaddr[rows])
        return sorted(set(zip(layer.vaddr[rows].tolist(), ends.tolist(), strict=True)))

    def next_symbol(self, vaddr: int) -> int | None:
        """Where the first symbol behind `vaddr` begins; None if there is none, in a relocatable file none in the same
        section."""
        with self.reading():
            _, starts = self._symbols.by_vaddr
        row = int(np.searchsorted(starts, np.uint64(vaddr), side="right"))
        found = int(starts[row]) if row < len(starts) else None
        if found is not None and self.loaded.is_relocatable:
            for _, begin, size in self.loaded.loaded_sections:
                if begin <= vaddr < begin + size:
                    return found if found < begin + size else None
        return found

    def _functions_at(self, vaddrs: UInt64) -> FunctionsAt:
        layer = self._symbols
        if not len(layer.start):
            return self.table(vaddrs).lookup(vaddrs).outermost()
        symbols, number = distinct_inverse(layer_at(layer.start, layer.symbol, vaddrs))
        if len(symbols) and symbols[0] < 0:  # where no symbol is
            symbols, number = symbols[1:], number - 1
        return FunctionsAt(number, layer.all_names(symbols))

    def calls(self, folded: Sequence[FoldedCode], vaddrs: UInt64) -> Calls:
        """The calls at `vaddrs` (ascending) of functions that share code, by the debug information; see `calls_of`."""
        from symbolize.symbols.call_sites import calls_of

        with self.reading():
            dwarf = self._builder.dwarf
            return calls_of(dwarf, folded, vaddrs) if dwarf is not None else Calls.none()

    def call_sites(self, *, believes_all: bool = False) -> CallSites | None:
        """The calls of the binary, see `CallSites`; None without debug information. It is good until the files are
        closed."""
        from symbolize.symbols.call_sites import CallSites

        with self.reading():
            dwarf, symbols = self._builder.dwarf, self._builder.symbols
            if dwarf is None:
                return None
            jumps = jumps_through_tables(self.loaded)
            if jumps is not None:
                jumps = np.sort(jumps + np.uint64(self.shift))
            distances = return_distances(self.loaded.machine)
            return CallSites(dwarf, symbols, jumps, distances, believes_all=believes_all)

    def is_cached(self) -> bool:
        """Whether the whole table is at hand, in memory or in the cache."""
        if self._whole is None and self._cache is not None:
            self._whole = self._cache.load(self.facts, self.content)
            self.is_kept = True if self._whole is not None else None
        return self._whole is not None

    @cached_property
    def facts(self) -> TableFacts:
        """What identifies the files."""
        return facts_of(self.images)

    def content(self) -> str:
        """The hash of the files; they are read as a whole, once. Raises ChangedFile."""
        if not self._content:
            with self.reading():
                self._content = content_of(self.images)
        return self._content

    @property
    def facts_of_table(self) -> TableFacts:
        """What identifies the files, and the further ones that were read for the table that was built last."""
        return self.facts._replace(companions=self._companions)

    @property
    def key(self) -> str:
        """The cache key: a name for the binary by the contents of its files."""
        return table_name(self.facts)

    def adopt(self, table: SymbolTable) -> None:
        """Let `table`, a whole one that was made of the same files, answer from now on."""
        if self._whole is None:
            self._whole = table
            self.forget()

    def _is_worth_it(self, vaddrs: UInt64) -> bool:
        """Whether to build the whole table for a lookup of `vaddrs`, and for those to come."""
        if self._builder.size > MAX_AT_ONCE:
            return False
        asked, self._asked = self._asked, True
        if asked:
            return True
        if self._cache is None:
            return False
        builder = self._builder
        pays = self._cache.was_seen(self.facts) or builder.needed(vaddrs) >= WHOLE_SHARE * builder.size
        return pays and not self._cache.puts_off(self, builder.size)

    @property
    def _builder(self) -> Builder:
        """What reads the files, made when a table has to be built: one that is at hand needs none of it."""
        if self._made is None:
            from symbolize.symbols.build import Builder

            self._made = Builder(self.images, self._finder, self._has_discriminators)
        return self._made

    def forget(self) -> None:
        """Free what only building a table needs."""
        if self._made is not None:
            self._made.close()
            self._made = None
        self._layer = self._frames = None
        for image in self.images:
            image.forget()

    @cached_property
    def is_stripped(self) -> bool:
        """Whether the files have neither DWARF nor .symtab nor a line table of Go: exported symbols at most."""
        return self.rank > 1 and not any(go_table(image) for image in self.images)

    def close(self) -> None:
        """Close the files."""
        self._whole = None
        self.forget()
        for image in {id(image): image for image in (*self.images, self.loaded)}.values():
            image.close()


def source_rank(image: ElfImage) -> int:
    """DWARF beats .symtab, also a compressed one, and Go's line table, beats .dynsym: 0 to 3, the lower the better."""
    if image.has_dwarf:
        return 0
    names = source_names(image)
    return 1 if names & {".symtab", ".gnu_debugdata", *GO_SECTIONS} else 2 if ".dynsym" in names else 3


def build_table(images: Sequence[ElfImage], vaddrs: UInt64 | None = None, finder: Finder | None = None) -> SymbolTable:
    """The symbol table of the binary whose files are `images`, the whole one or one for `vaddrs` (ascending) alone."""
    return Binary(images, finder).table(vaddrs)


def answer_of(binary: Binary, asked: Asked, tables: Tables | None) -> Answer:
    """The answer of a binary, see `Binary.answer`."""
    # With `nearest_line` one that is found is the whole one, and the binary's from now on.
    made = tables.find(binary, asked.vaddrs) if tables is not None else None
    if made is not None:
        return _unchanged(binary, asked, made)
    answers = []
    for portion in binary.portions(asked.vaddrs):
        part = asked._replace(vaddrs=asked.vaddrs[portion], callers=no_callers)
        is_all = len(part.vaddrs) == len(asked.vaddrs)
        answers.append((portion, _unchanged(binary, asked if is_all else part)))
    return answers[0][1] if len(answers) == 1 else _joined(binary, asked, answers)


def _unchanged(binary: Binary, asked: Asked, made: SymbolTable | None = None) -> Answer:
    """The answer of a table, `made` or that of the binary, that has not changed when everything is read of it: a cached
    table that did is made anew (R280, files that change). That does not retry the mapping: if a file of the binary
    changed, ReadFailure is raised at once."""
    for _ in range(MAX_TABLES):
        try:
            answer = table_answer(binary, asked, made)
        except ReadFailure:
            raise
        except Exception:
            if not _drop_changed(binary, made):
                raise
        else:
            if not _drop_changed(binary, made):
                return answer
        made = None
    raise ChangedFile(binary.images[0].path, CHANGED)


def _joined(binary: Binary, asked: Asked, answers: Sequence[tuple[slice, Answer]]) -> Answer:
    """One answer, of those for portions of the vaddrs; which calls are of shared code is known with all of them."""
    parts = [answer for _, answer in answers]
    folded: dict[tuple[int, int], tuple[FoldedCode, Int64]] = {}
    for portion, answer in answers:
        for code, rows in answer.folded:
            before = folded.get((code.begin, code.end), (code, rows[:0]))[1]
            folded[code.begin, code.end] = code, np.concatenate((before, rows + portion.start))
    approximate = [answer.approximate for answer in parts if answer.approximate is not None]
    return replace(
        parts[-1],
        vaddrs=asked.vaddrs,
        frames=joined_frames([answer.frames for answer in parts]),
        reasons=np.concatenate([answer.reasons for answer in parts]),
        function_start=np.concatenate([answer.function_start for answer in parts]),
        approximate=np.concatenate(approximate) if approximate else None,
        folded=list(folded.values()),
        calls=binary.calls(codes := [code for code, _ in folded.values()], asked.callers(codes)),
        problems=list(dict.fromkeys(problem for answer in parts for problem in answer.problems)),
    )


def _drop_changed(binary: Binary, table: SymbolTable | None) -> bool:
    """Have a table made anew if the file that it is read from has changed; whether it has."""
    return binary.drop_changed() or (table is not None and table.has_changed)


def lookup(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    vaddrs: ArrayLike,
    *,
    cache: TableCache | None = None,
    finder: Finder | None = None,
) -> Frames:
    """The frames at `vaddrs` of the binary that `files` are of: its file, its debug file, or both.

    `vaddrs` are n ELF virtual addresses (as `nm` prints them) in any order, uint64[n] or what numpy makes of it. The
    answer is columns, see `Frames`: the frames of address i are `[offsets[i], offsets[i + 1])`, innermost first. Only
    the debug information that the addresses need is decoded; with a `cache` a table that is kept there is used.
    `finder` finds split units and supplementary files. Raises InputError for a file that cannot be read, UsageError
    for files of several binaries, TypeError and ValueError for addresses that are none.
    """
    with opened(files, cache=cache, finder=finder) as binary:
        answer = binary.answer(vaddrs)
        answer.check()
        return answer.frames


@contextmanager
def opened(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    cache: TableCache | None = None,
    finder: Finder | None = None,
) -> Iterator[Binary]:
    """The binary that `files` are of: its file, its debug file, or both. Raises as `lookup` does for the files."""
    paths = [files] if isinstance(files, str | os.PathLike) else list(files)
    with ExitStack() as held:
        images = []
        for path in paths:
            try:
                images.append(held.enter_context(ElfImage.open(os.fspath(path))))
            except OSError as error:
                raise InputError(os.fspath(path), os_error_text(error)) from error
        builds = builds_of(images)
        if len(builds) != 1:
            names = ", ".join(image.path for build in builds for image in build)
            raise UsageError(f"files: not the files of one binary: {names or 'none'}")
        binary = Binary(builds[0], finder, cache)
        held.callback(binary.close)
        yield binary
