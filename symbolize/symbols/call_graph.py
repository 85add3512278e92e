"""The calls of a binary as a graph, of which parts are read when they are asked for: what is called where, and how tail
calls lead from one function to another (R359, chains of tail calls).

Functions are numbers: references to the DIEs by which calls name them (see `Sources`).
"""

from collections.abc import Callable, Iterable, Sequence
from posixpath import basename
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt64, distinct, layer_at
from symbolize.dwarf.constants import ALL_CALLS, ALL_TAIL_CALLS, FUNCTION, NOWHERE, OFFSET_MASK
from symbolize.dwarf.decode import Dwarf
from symbolize.dwarf.producers import listed_calls
from symbolize.dwarf.sources import Source
from symbolize.symbols.call_sites import MAX_NAMESAKES, CallSites, functions_of, sources_of
from symbolize.symbols.elf_symbols import SymbolLayer
from symbolize.symbols.functions import Function, name_key

UNKNOWN: Final = NOWHERE
"""No function, or a vaddr that is not known."""
LTO_MARK: Final = b".lto_priv."
"""What gcc appends, with a number, to the names of local functions at link time."""
MAX_DEPTH: Final = 5
"""Tail calls behind each other that are followed."""
MAX_CHAINS: Final = 64
"""Chains from one function to another that are looked at; with more nothing is common to all."""
MAX_STEPS: Final = 1024
"""Functions and calls on the way that are looked at; with more it is not known where they lead."""


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


Chain = tuple[tuple[int, int], ...]
"""Functions that called each other by tail calls, the first one first, each with the vaddr of its call."""


class Reach(NamedTuple):
    """Where the tail calls of a function may lead: the keys of the names and the entries of the functions, and whether
    these are all."""

    keys: frozenset[bytes]
    entries: frozenset[int]
    is_whole: bool


class CallGraph:
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
        self._table = CallSites.none(dwarf)
        self._functions: dict[int, Function] = {}
        self._keys: dict[int, bytes] = {}
        self._defined: dict[int, Definition | None] = {}
        self._of_row: dict[int, Definition] = {}
        self._vaddrs: dict[bytes, list[int]] | None = None
        self._reaches: dict[int, Reach] = {}

    def sites(self, vaddrs: UInt64) -> Sites:
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
            if function not in self._functions:
                self.name([function])
            self._keys[function] = name_key(self._functions[function])
        return self._keys[function]

    def entry(self, function: int) -> int:
        """Where a function begins, 2⁶⁴-1 if that is not known. Names alone do not say: gold keeps no symbols of folded
        local functions."""
        definition = self._definition(function)
        return definition.entry if definition is not None else UNKNOWN

    def chains(self, first: int, is_last: Callable[[int], bool]) -> tuple[list[Chain], bool]:
        """The chains of tail calls from `first` to a function that `is_last`, which is not part of them, and whether
        these are all: every function on the way vouches for its tail calls, and none is made by a pointer."""
        found: list[Chain] = []
        is_whole = True
        waiting: list[tuple[int, Chain]] = [(first, ())]
        steps = 0
        while waiting:
            function, links = waiting.pop()
            definition = self._definition(function)
            if definition is None or not definition.vouches or len(found) > MAX_CHAINS:
                is_whole = False
                continue
            steps += 1 + len(definition.tail_calls)
            if steps > MAX_STEPS:
                return found, False
            for pc, callee in definition.tail_calls:
                chain = (*links, (definition.die, pc))
                if callee == UNKNOWN:
                    is_whole = False
                elif is_last(callee):
                    found.append(chain)
                elif len(chain) >= MAX_DEPTH or not self.key(callee):
                    is_whole = False
                elif all(self._own(callee) != each for each, _ in chain):
                    waiting.append((callee, chain))
        return found, is_whole

    def reach(self, function: int) -> Reach:
        """Where the tail calls of a function may lead: nothing else can be the end of `chains`."""
        if function not in self._reaches:
            met: set[int] = set()

            def is_last(callee: int) -> bool:
                met.add(callee)
                return False

            _, is_whole = self.chains(function, is_last)
            entries = frozenset(entry for each in met if (entry := self.entry(each)) != UNKNOWN)
            self._reaches[function] = Reach(frozenset(map(self.key, met)), entries, is_whole)
        return self._reaches[function]

    def prepare(self, functions: Iterable[int]) -> None:
        """Find the definitions of many functions at once, and of those that their tail calls lead to."""
        waiting = set(functions)
        for _ in range(MAX_DEPTH + 1):
            new = sorted(waiting - self._defined.keys())
            if not new:
                break
            self._define(np.array(new, np.uint64))
            definitions = filter(None, map(self._defined.__getitem__, new))
            waiting = {call.callee for each in definitions for call in each.tail_calls} - {UNKNOWN}

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

    def _own(self, function: int) -> int:
        """The DIE of the definition of a function, which several calls may name by different ones."""
        definition = self._definition(function)
        return definition.die if definition is not None else function

    def _definition(self, function: int) -> Definition | None:
        """The definition of a function, None if it is not here or several have its name."""
        if function not in self._defined:
            self._define(np.array([function], np.uint64))
        return self._defined[function]

    def _define(self, functions: UInt64) -> None:
        """Find the definitions of functions: what completes the DIE that names one, else what its symbol is at."""
        row, dead = self._table.linked(functions)
        rest = np.flatnonzero(row < 0)
        row[rest] = self._by_symbol(functions[rest].tolist())
        # Of a function that was folded only this copy is known, without code.
        row = np.where(row < 0, dead, row)
        self._add_definitions(distinct(row[row >= 0]))
        for function, which in zip(functions.tolist(), row.tolist(), strict=True):
            self._defined[function] = self._of_row.get(which)

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
        exact = [row for row in rows if declaration(self._functions[int(table.origin[row])]) == declaration(function)]
        rows = exact or rows
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
            self._table = CallSites.joined([self._table, *parts])

    def _walk(self, source: Source, units: Int64) -> CallSites:
        """The functions and calls of units. That a list of calls is complete is believed as far as its compiler can be
        (R371, lists of calls)."""
        found = CallSites.read(self._dwarf, source, units)
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


def declaration(function: Function) -> tuple[str, int]:
    """Where a function is declared, for those that several files have."""
    return basename(function.path.decode(errors="replace")), function.line
