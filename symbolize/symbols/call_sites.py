"""The calls of a binary as its debug information describes them: one table, by where calls return to, and by the DIEs
and entries of the functions, of which parts are read when they are asked for.

Functions are numbers: references to the DIEs by which calls name them (see `Sources`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import (
    Bool,
    Int64,
    UInt8,
    UInt64,
    distinct,
    distinct_inverse,
    is_among,
    layer_at,
    marked,
    offsets_of,
    ranges,
)
from symbolize.core.folded_code import FoldedCode
from symbolize.core.parallel import at_once
from symbolize.core.ranges import clip_to, inside
from symbolize.core.records import record
from symbolize.dwarf.call_sites import COLUMNS, CallColumns, walk_call_sites
from symbolize.dwarf.constants import ALL_CALLS, ALL_TAIL_CALLS, FUNCTION, NOWHERE, OFFSET_MASK, TAIL_CALL
from symbolize.dwarf.decode import Dwarf
from symbolize.dwarf.producers import listed_calls
from symbolize.dwarf.qualify import resolve_functions
from symbolize.dwarf.sources import Source
from symbolize.dwarf.units import make_reader
from symbolize.symbols.elf_symbols import SymbolLayer
from symbolize.symbols.functions import DISTANCES, Calls, Function, Namesakes, name_key

UNKNOWN: Final = NOWHERE
"""No function, or a vaddr that is not known."""
LTO_MARK: Final = b".lto_priv."
"""What gcc appends, with a number, to the names of local functions at link time."""
MAX_NAMESAKES: Final = 256
"""Symbols and functions of one name, and functions that begin at one vaddr, that are distinguished."""
UNITS_AT_ONCE: Final = 16
"""Units that one thread walks without looking for the next work."""
MAX_PARTS: Final = 256
"""Parts that units are walked in at most."""
GroupsOf = Callable[[Function], Sequence[int]]
"""Gives the numbers of the shared code that a function may be one of."""
TWINS_PER_FUNCTION = 16
MORE_TWINS = 1 << 16
"""Pairs of functions with the same code and calls: so many for each function, and in addition."""


class Sites(NamedTuple):
    """What is known of return addresses: `callee` is the function that is called there (UNKNOWN: by a pointer,
    too), `is_call` whether there is a call, and `is_none` whether a function that lists all its calls has none."""

    callee: UInt64
    is_call: Bool
    is_none: Bool


class TailCall(NamedTuple):
    """A call at vaddr `pc` (2⁶⁴-1: unknown) that does not return to the function that makes it; `callee` 2⁶⁴-1: by a
    pointer."""

    pc: int
    callee: int


class Definition(NamedTuple):
    """A function with its tail calls; `vouches`: whether these are all. `die` is its own DIE, and `entry` where it
    begins (2⁶⁴-1: unknown)."""

    die: int
    vouches: bool
    entry: int
    tail_calls: Sequence[TailCall]


@record
class CallRows:
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


class CallSites:
    """The calls of the binary with the debug information `dwarf` and the symbols `symbols`.

    `jumps` are the vaddrs of its jumps through tables at fixed addresses, ascending, None if they are not known, and
    `distances` those from the address of a caller to where its call may return, the likeliest first. With
    `believes_all` lists of calls that the compiler calls complete count as such, whether they are or not; if they may
    not be, `may_lack_calls` says so.
    """

    def __init__(
        self,
        dwarf: Dwarf,
        symbols: SymbolLayer,
        jumps: UInt64 | None,
        distances: Sequence[int],
        *,
        believes_all: bool,
    ) -> None:
        self.may_lack_calls = False
        self._dwarf = dwarf
        self._symbols = symbols
        self._jumps = jumps
        self._distances = distances
        self._believes_all = believes_all
        self._is_read = np.zeros(len(dwarf.units.offset), np.bool_)
        self._table = CallRows.none(dwarf)
        self._functions: dict[int, Function] = {}
        self._keys: dict[int, bytes] = {}
        self._defined: dict[int, Definition | None] = {}
        self._of_row: dict[int, Definition] = {}
        self._vaddrs: dict[bytes, list[int]] | None = None

    def at(self, vaddrs: UInt64) -> Sites:
        """What is known of each of `vaddrs` (ascending), which are inside of calls (R356, where calls return)."""
        found = Sites(np.full(len(vaddrs), UNKNOWN, np.uint64), *np.zeros((2, len(vaddrs)), np.bool_))
        for distance in self._distances:
            callee, is_call, is_none = self._returns(vaddrs + np.uint64(distance))
            is_first = is_call & ~found.is_call
            found = Sites(np.where(is_first, callee, found.callee), found.is_call | is_call, found.is_none | is_none)
        return found._replace(is_none=found.is_none & ~found.is_call)

    def _returns(self, return_vaddrs: UInt64) -> Sites:
        """What is known of each return address (ascending)."""
        self._read(self._dwarf.claims.units_for(return_vaddrs - np.uint64(1)))
        table = self._table
        at = np.searchsorted(table.return_pcs, return_vaddrs)
        row = np.append(table.by_return, -1)[at]
        is_call = np.append(table.return_pcs, np.uint64(UNKNOWN))[at] == return_vaddrs
        callee = np.full(len(at), UNKNOWN, np.uint64)
        callee[is_call] = table.origin[row[is_call]]
        # Between two calls of one function that lists all of them there is no other, unless its code is in several
        # parts: then another function may be there, of which no call is known.
        owner = np.concatenate(([-1], table.owner[table.by_return], [-2]))
        is_none = ~is_call & (owner[at] == owner[at + 1])
        is_none[is_none] = (table.flags[owner[at[is_none]]] & ALL_CALLS) > 0
        at = at[is_none]
        before, here, behind = map(
            self._symbols_at, (table.return_pcs[at - 1], return_vaddrs[is_none], table.return_pcs[at])
        )
        is_none[is_none] = (here >= 0) & (before == here) & (behind == here)
        return Sites(callee, is_call, is_none)

    def key(self, function: int) -> bytes:
        """What all spellings of the name of a function have in common, see `name_key`; empty where the name is not
        known, as without the supplementary file that has it."""
        if function not in self._keys:
            self.name([function])
            self._keys[function] = name_key(self._functions[function])
        return self._keys[function]

    def entry(self, function: int) -> int:
        """Where a function begins, 2⁶⁴-1 if that is not known. Names alone do not say: gold keeps no symbols of folded
        local functions."""
        definition = self.definition(function)
        return definition.entry if definition is not None else UNKNOWN

    def name(self, functions: Iterable[int]) -> None:
        """Read the names of many functions at once."""
        new = np.array(sorted({each for each in functions if each not in self._functions}), np.uint64)
        if len(new):
            named, number = functions_of(self._dwarf, new)
            self._functions |= zip(new.tolist(), map(named.__getitem__, number.tolist()), strict=True)

    def _symbols_at(self, return_vaddrs: UInt64) -> Int64:
        """The symbols with the calls that return to `return_vaddrs` (ascending), -1 where there is none."""
        layer = self._symbols
        return layer_at(layer.start, layer.symbol, return_vaddrs - np.uint64(1))

    def own(self, function: int) -> int:
        """The DIE of the definition of a function, which several calls may name by different ones."""
        definition = self.definition(function)
        return definition.die if definition is not None else function

    def definition(self, function: int) -> Definition | None:
        """The definition of a function, None if it is not here or several have its name."""
        if function not in self._defined:
            self.define([function])
        return self._defined[function]

    def define(self, functions: Iterable[int]) -> list[Definition]:
        """Find the definitions of many functions at once: what completes the DIE that names one, else what its symbol
        is at. Those of the functions that were not looked for before."""
        new = np.array(sorted({each for each in functions if each not in self._defined}), np.uint64)
        if not len(new):
            return []
        row, dead = self._table.linked(new)
        rest = np.flatnonzero(row < 0)
        row[rest] = self._by_symbol(new[rest].tolist())
        # Of a function that was folded only this copy is known, without code.
        row = np.where(row < 0, dead, row)
        self._add_definitions(distinct(row[row >= 0]))
        found = [*map(self._of_row.get, row.tolist())]
        self._defined |= zip(new.tolist(), found, strict=True)
        return [*filter(None, found)]

    def _by_symbol(self, functions: list[int]) -> list[int]:
        """The rows of the definitions of functions by the symbols with their names, -1 where none is or several are."""
        if not functions:
            return []
        self.name(functions)
        named = [self._functions[function] for function in functions]
        vaddrs = [
            self._vaddrs_of(each.linkage or each.name) if self.key(function) else []
            for function, each in zip(functions, named, strict=True)
        ]
        every = distinct(np.array([vaddr for some in vaddrs for vaddr in some], np.uint64))
        self._read(self._dwarf.claims.units_for(every))
        table, dies = self._table, self._table.origin.tolist()
        candidates = [table.entered_at(some) for some in vaddrs]
        self.name({dies[row] for some in candidates for row in some})
        same = [
            [row for row in some if self.key(dies[row]) == self.key(function)]
            for function, some in zip(functions, candidates, strict=True)
        ]
        if any(some and not rows for some, rows in zip(vaddrs, same, strict=True)):
            self.name(dies[row] for row in table.ranged.tolist())
            ranged: dict[bytes, list[int]] = {}
            for row in table.ranged.tolist():  # where these begin is not known
                ranged.setdefault(self.key(dies[row]), []).append(row)
            ranged.pop(b"", None)
            same = [rows or ranged.get(self.key(function), []) for function, rows in zip(functions, same, strict=True)]
        return [self._only(rows, self._functions[function]) for function, rows in zip(functions, same, strict=True)]

    def _only(self, rows: list[int], function: Function) -> int:
        """The one of the definitions `rows` of functions of one name that is `function`, -1 if that is not known."""
        table = self._table
        if len(rows) > MAX_NAMESAKES:
            return -1
        rows = [row for row in rows if self._functions[int(table.origin[row])].declared == function.declared] or rows
        return rows[0] if rows and len(set(table.pc[rows].tolist())) == 1 else -1

    def _add_definitions(self, rows: Int64) -> None:
        """Add the functions of some rows."""
        rows = rows[[row not in self._of_row for row in rows.tolist()]]
        table = self._table
        offsets, pcs, callees = table.tail_calls(rows)
        tail_calls = [*map(TailCall, pcs.tolist(), callees.tolist())]
        ends = offsets.tolist()
        vouches = (table.flags[rows] & ALL_TAIL_CALLS) > 0
        columns = rows.tolist(), table.origin[rows].tolist(), vouches.tolist(), table.entries(rows).tolist()
        for row, die, is_whole, entry, begin, end in zip(*columns, ends[:-1], ends[1:], strict=True):
            self._of_row[row] = Definition(die, is_whole, entry, tail_calls[begin:end])

    def _vaddrs_of(self, name: bytes) -> list[int]:
        """Where symbols with a name are, ascending, or with one that a local function got at link time; nowhere if
        there are too many."""
        if self._vaddrs is None:
            self._vaddrs = {}
            for symbol, vaddr in zip(self._symbols.names, self._symbols.vaddr.tolist(), strict=True):
                self._vaddrs.setdefault(symbol.partition(LTO_MARK)[0], []).append(vaddr)
        found = self._vaddrs.get(name, [])
        return sorted(set(found)) if len(found) <= MAX_NAMESAKES else []

    def _read(self, units: Int64) -> None:
        """Read the functions and calls of those of `units` that were not read yet."""
        new = units[~self._is_read[units]]
        if len(new):
            self._is_read[new] = True
            parts = [self._walk(*each) for each in sources_of(self._dwarf, new)]
            self._table = CallRows.joined([self._table, *parts])

    def _walk(self, source: Source, units: Int64) -> CallRows:
        """The functions and calls of units. That a list of calls is complete is believed as far as its compiler can be
        (R371, lists of calls)."""
        found = CallRows.read(self._dwarf, source, units)
        listed = listed_calls(self._dwarf.sources, source, units)
        rows = np.flatnonzero(found.flags & ALL_TAIL_CALLS)
        begins = np.asarray(source.reader.units.offset)[units]
        unit = np.searchsorted(begins, found.origin[rows] & np.uint64(OFFSET_MASK), side="right") - 1
        lacks_calls = ~listed.all_calls[unit]
        lacks_tail_calls = lacks_calls & (~listed.tail_calls[unit] | self._may_jump(found.pc[rows]))
        if self._believes_all:
            self.may_lack_calls |= bool(lacks_calls.any())
        else:
            found.flags[rows[lacks_calls]] &= np.uint8(FUNCTION | ALL_TAIL_CALLS)
            found.flags[rows[lacks_tail_calls]] = np.uint8(FUNCTION)
        return found

    def _may_jump(self, entries: UInt64) -> Bool:
        """Which of the functions that begin at `entries` may have jumps through tables at fixed addresses."""
        layer, jumps = self._symbols, self._jumps
        if jumps is None or not len(jumps):
            return np.full(len(entries), jumps is None)
        symbol = layer_at(layer.start, layer.symbol, entries)
        is_known = (symbol >= 0) & (np.append(layer.vaddr, np.uint64(0))[symbol] == entries)
        ends = np.append(layer.end, np.uint64(0))[symbol]
        may_jump: Bool = ~is_known | (np.searchsorted(jumps, entries) < np.searchsorted(jumps, ends))
        return may_jump


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


def calls_of(dwarf: Dwarf, folded: Sequence[FoldedCode], vaddrs: UInt64 | None) -> Calls:
    """The calls of functions that share code: all, or those by callers at `vaddrs` (ascending).

    Linkers leave the call sites of a folded function without addresses. They are taken for calls of the function whose
    code it shares: the n-th of each for the same call, if all that they call is the same or shared too (R358, calls of
    folded functions).
    """
    if not folded or (vaddrs is not None and not len(vaddrs)):
        return Calls.none()
    groups_of = Namesakes(folded).groups
    columns: list[list[UInt64]] = [[np.zeros(0, np.uint64)] for _ in range(3)]
    units, returns = dwarf.holding_code(), None
    if vaddrs is not None:
        returns = distinct(np.concatenate([vaddrs + np.uint64(distance) for distance in DISTANCES]))
        units = dwarf.claims.units_for(distinct(np.concatenate((vaddrs, vaddrs - np.minimum(vaddrs, np.uint64(1))))))
    for source, walked in sources_of(dwarf, units):
        found = CallRows.read(dwarf, source, walked)
        rows = found.by_return
        rows = rows[is_among(found.return_pc[rows], returns)] if returns is not None else rows
        functions, number = functions_of(dwarf, found.origin[rows])
        chosen = np.array([*(bool(groups_of(function)) for function in functions), False])[number]
        rows = rows[is_among(found.return_pc[rows], found.return_pc[rows[chosen]])]
        for at, meant in ((rows, rows), *_folded_twins(dwarf, found, rows, groups_of)):
            columns[0].append(found.return_pc[at])
            columns[1].append(found.origin[found.owner[meant]])
            columns[2].append(found.origin[meant])
    return_pc, caller, callee = (np.concatenate(parts) for parts in columns)
    live, _, _ = clip_to(return_pc - np.minimum(return_pc, np.uint64(1)), return_pc, dwarf.code)
    order = live[np.argsort(return_pc[live], kind="stable")]
    functions, row = functions_of(dwarf, np.concatenate((caller[order], callee[order])))
    return Calls(return_pc[order], row[: len(order)], row[len(order) :], functions)


def _folded_twins(dwarf: Dwarf, found: CallRows, rows: Int64, groups_of: GroupsOf) -> Iterator[tuple[Int64, Int64]]:
    """Calls that functions without code of their own have where the calls `rows` are: some of `rows`, and the call that
    is meant by each.

    lld and mold leave the calls of a folded function without addresses. Its code is that of the function that was kept,
    so that the n-th call of one is the n-th of the other, if both have as many, and each calls the same function or one
    that shares its code (R358, calls of folded functions).
    """
    sites = np.flatnonzero(found.owner >= 0)
    order = sites[np.argsort(found.owner[sites], kind="stable")]
    offsets = offsets_of(np.bincount(found.owner[sites], minlength=len(found.owner)))
    owners = distinct(found.owner[rows])
    live, _, _ = clip_to(found.return_pc[order], found.return_pc[order] + np.uint64(1), dwarf.code)
    has_code = np.zeros(len(found.owner), np.bool_)
    has_code[found.owner[order[live]]] = True
    count = np.diff(offsets)
    others = np.flatnonzero((count > 0) & ~has_code & is_among(count, count[owners]))
    if not len(others) or not len(owners):
        return
    functions, row = functions_of(dwarf, found.origin[np.concatenate((owners, others))])
    groups = [*map(groups_of, functions)]
    shared = np.array([bool(each) for each in groups], np.bool_)[row]
    groups_of_row = dict(zip((*owners.tolist(), *others.tolist()), map(groups.__getitem__, row.tolist()), strict=True))
    others = others[shared[len(owners) :]]
    owners = owners[shared[: len(owners)]]
    meant = np.concatenate([order[offsets[row] : offsets[row + 1]] for row in (*owners, *others)] or [order[:0]])
    called, number = functions_of(dwarf, found.origin[meant])
    may_be = np.array([*(bool(groups_of(function)) for function in called), False])  # the last: called by a pointer
    callee = np.full(len(found.owner), -1, np.int64)
    callee[meant] = np.where(may_be[number], len(called), number)  # whatever shares code is one
    is_asked = marked(rows, len(found.owner))
    alike: dict[tuple[int, bytes], list[int]] = {}
    for other in others.tolist():
        its = callee[order[offsets[other] : offsets[other + 1]]].tobytes()
        for group in groups_of_row[other]:
            alike.setdefault((group, its), []).append(other)
    left = TWINS_PER_FUNCTION * len(others) + MORE_TWINS
    for owner in owners.tolist():
        own = order[offsets[owner] : offsets[owner + 1]]
        asked = np.flatnonzero(is_asked[own])
        calls = callee[own].tobytes()
        twins = dict.fromkeys(other for group in groups_of_row[owner] for other in alike.get((group, calls), ()))
        for other in islice(twins, left):
            yield own[asked], order[offsets[other] : offsets[other + 1]][asked]
        left -= min(len(twins), left)
