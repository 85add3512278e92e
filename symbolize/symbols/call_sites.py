"""The calls that debug information describes: a table of functions and calls, by where calls return to, and by the DIEs
and entries of the functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Bool, Int64, UInt8, UInt64, distinct_inverse, offsets_of, ranges
from symbolize.core.parallel import at_once
from symbolize.core.ranges import inside
from symbolize.dwarf.call_sites import COLUMNS, CallColumns, walk_call_sites
from symbolize.dwarf.constants import FUNCTION, NOWHERE, TAIL_CALL
from symbolize.dwarf.decode import Dwarf
from symbolize.dwarf.qualify import resolve_functions
from symbolize.dwarf.sources import Source
from symbolize.dwarf.units import make_reader
from symbolize.symbols.functions import Function

MAX_NAMESAKES: Final = 256
"""Symbols and functions of one name, and functions that begin at one vaddr, that are distinguished."""
UNITS_AT_ONCE: Final = 16
"""Units that one thread walks without looking for the next work."""
MAX_PARTS: Final = 256
"""Parts that units are walked in at most."""


@dataclass(eq=False)
class CallSites:
    """Functions and their calls, a row each, with the columns of `CallColumns`. DIEs are references (see `Sources`);
    `code` are the ranges of code."""

    code: tuple[UInt64, UInt64]
    return_pc: UInt64
    pc: UInt64
    origin: UInt64
    declared: UInt64
    owner: Int64
    flags: UInt8

    @classmethod
    def none(cls, dwarf: Dwarf) -> Self:
        """A table without rows, as of no units."""
        none = np.zeros(0, np.uint64)
        return cls(dwarf.code, none, none, none, none, none.astype(np.int64), none.astype(np.uint8))

    @classmethod
    def read(cls, dwarf: Dwarf, source: Source, units: Int64) -> Self:
        """The functions and calls of `units`, read in as many threads as there are processors."""

        def walk_part(part: Int64) -> CallColumns:
            found = CallColumns()
            walk_call_sites(make_reader(source.sections, source.reader.units, source.reader.tables), part, found)
            return found

        if not len(units):
            return cls.none(dwarf)
        parts = np.array_split(units, min(-(-len(units) // UNITS_AT_ONCE), MAX_PARTS))
        found = at_once([partial(walk_part, part) for part in parts])
        sites = cls.joined(
            [cls(dwarf.code, *(np.asarray(getattr(each, name))[: each.count] for name in COLUMNS)) for each in found]
        )
        for dies in (sites.origin, sites.declared):
            known = dies != np.uint64(NOWHERE)
            dies[known] = source.tagged(dies[known])
        return sites

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of several parts, one after another."""
        made = cls(parts[0].code, *(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))
        counts = [len(part.owner) for part in parts]
        made.owner[:] = np.where(made.owner >= 0, made.owner + np.repeat(offsets_of(counts)[:-1], counts), -1)
        return made

    def _sorted(self, rows: Int64, column: NDArray[Any]) -> Int64:
        """Some rows in the order of a column."""
        ordered: Int64 = rows[np.argsort(column[rows], kind="stable")]
        return ordered

    @cached_property
    def by_return(self) -> Int64:
        """The calls in the order of where they return to."""
        rows = np.flatnonzero((self.owner >= 0) & (self.return_pc != np.uint64(NOWHERE)))
        return self._sorted(rows, self.return_pc)

    @cached_property
    def return_pcs(self) -> UInt64:
        """Where calls return to, ascending."""
        return self.return_pc[self.by_return]

    @cached_property
    def _functions(self) -> Int64:
        return np.flatnonzero(self.flags & FUNCTION > 0)

    @cached_property
    def _is_dead(self) -> Bool:
        """Which of all rows begin where no code is: the linker dropped or folded the function."""
        entry = self.pc
        dead: Bool = (entry != np.uint64(NOWHERE)) & ~inside(entry, *self.code)
        return dead

    @cached_property
    def _by_declaration(self) -> Int64:
        rows = self._functions[~self._is_dead[self._functions]]
        rows = rows[self.declared[rows] != np.uint64(NOWHERE)]
        return self._sorted(rows, self.declared)

    @cached_property
    def _by_die(self) -> Int64:
        return self._sorted(self._functions, self.origin)

    @cached_property
    def _by_entry(self) -> Int64:
        rows = self._functions[self.pc[self._functions] != np.uint64(NOWHERE)]
        return self._sorted(rows, self.pc)

    @cached_property
    def ranged(self) -> Int64:
        """Functions of several ranges of code: where these begin is not known."""
        rows: Int64 = self._functions[self.pc[self._functions] == np.uint64(NOWHERE)]
        return rows

    @cached_property
    def _tail(self) -> tuple[Int64, Int64]:
        """The tail calls in the order of the functions that make them, and those functions."""
        rows = np.flatnonzero((self.owner >= 0) & (self.flags & TAIL_CALL > 0))
        rows = self._sorted(rows, self.owner)
        return rows, self.owner[rows]

    def linked(self, dies: UInt64) -> tuple[Int64, Int64]:
        """For each of `dies` the function with code that is there, or the only one that completes it, else -1; and the
        one that is there and has no code, else -1."""
        order = self._by_die
        known = self.origin[order]
        at = np.searchsorted(known, dies)
        own = np.where(np.append(known, np.uint64(NOWHERE))[at] == dies, np.append(order, -1)[at], -1)
        is_dead = (own >= 0) & np.append(self._is_dead, False)[own]
        order = self._by_declaration
        first, last = (np.searchsorted(self.declared[order], dies, side) for side in ("left", "right"))
        completing = np.where(last - first == 1, np.append(order, -1)[first], -1)
        return np.where((own >= 0) & ~is_dead, own, completing), np.where(is_dead, own, -1)

    def entered_at(self, vaddrs: list[int]) -> list[int]:
        """The functions that begin at one of `vaddrs`, of very many at one of them some."""
        entries = self._entries
        wanted = np.array(vaddrs, np.uint64)
        first, last = (np.searchsorted(entries, wanted, side) for side in ("left", "right"))
        found: list[int] = self._by_entry[ranges(first, np.minimum(last - first, MAX_NAMESAKES))].tolist()
        return found

    @cached_property
    def _entries(self) -> UInt64:
        return self.pc[self._by_entry]

    def entries(self, rows: Int64) -> UInt64:
        """Where functions begin, 2⁶⁴-1 if that is not known or no code."""
        return np.where(self._is_dead[rows], np.uint64(NOWHERE), self.pc[rows])

    def tail_calls(self, rows: Int64) -> tuple[Int64, UInt64, UInt64]:
        """The tail calls of functions, CSR: offsets, the vaddr of each call and the function that is called. The vaddr
        is in the call, or the one before where it would return to; 2⁶⁴-1 where that is no code."""
        tail, owners = self._tail
        first, last = (np.searchsorted(owners, rows, side) for side in ("left", "right"))
        found = tail[ranges(first, last - first)]
        pc = self.pc[found]
        pc = np.where(pc != np.uint64(NOWHERE), pc, self.return_pc[found] - np.uint64(1))
        pc = np.where(inside(pc, *self.code), pc, np.uint64(NOWHERE))
        return offsets_of(last - first), pc, self.origin[found]


def functions_of(dwarf: Dwarf, dies: UInt64) -> tuple[list[Function], Int64]:
    """The functions whose DIEs are `dies`, each once, and the one of each, -1 for 2⁶⁴-1."""
    dies, row = distinct_inverse(dies)
    resolved = resolve_functions(dwarf, dies[: np.searchsorted(dies, np.uint64(NOWHERE))])
    path = np.full(len(resolved.decl_unit), -1, np.int64)
    declared = np.flatnonzero(resolved.decl_unit >= 0)
    files = resolved.decl_file[declared].astype(np.int64)
    paths, path[declared] = dwarf.paths(resolved.decl_unit[declared], files, False)
    functions = [
        Function(linkage, name, paths[file] if file >= 0 else b"", line)
        for linkage, name, file, line in zip(
            resolved.linkage, resolved.name, path.tolist(), resolved.decl_line.tolist(), strict=True
        )
    ]
    return functions, np.where(row < len(functions), row, -1)


def sources_of(dwarf: Dwarf, units: Int64) -> list[tuple[Source, Int64]]:
    """Where the DIEs of `units` are: in the binary, or in the split units of skeletons; sources and units there."""
    sources = dwarf.sources
    found = []
    skeletons = units[sources.is_skeleton[units]] if sources.has_skeletons else units[:0]
    for skeleton in skeletons.tolist():
        split = sources.split(skeleton)
        if split is not None:
            found.append((split[0], np.array([split[1]])))
            units = units[units != skeleton]
    return [(sources.main, units), *found]
