"""The calls of a binary as a graph, of which parts are read when they are asked for: what is called where, and how tail
calls lead from one function to another (R359, chains of tail calls)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from posixpath import basename
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Int64, UInt64, distinct
from symbolize.dwarf.constants import ALL_CALLS, ALL_TAIL_CALLS, NOWHERE, TAIL_CALL
from symbolize.dwarf.decode import Dwarf
from symbolize.symbols.calls import UnitCalls, functions_of, sources_of, walk
from symbolize.symbols.elf_symbols import SymbolLayer
from symbolize.symbols.functions import Function, name_key

MAX_DEPTH: Final = 5
"""Tail calls behind each other that are followed."""
MAX_CHAINS: Final = 64
"""Chains from one function to another that are looked at; with more nothing is common to all."""
MAX_STEPS: Final = 1024
"""Functions on the way that are looked at; with more it is not known where they lead."""


class Site(NamedTuple):
    """What is known of a return address: the function that is called there (None: by a pointer, or unknown). `is_call`
    is False where a function that lists all its calls has none, None where it does not say."""

    callee: Function | None
    is_call: bool | None


class TailCall(NamedTuple):
    """A call at vaddr `pc` that does not return to the function that makes it; `callee` None: by a pointer."""

    pc: int
    callee: Function | None


@dataclass(slots=True)
class Definition:
    """A function with its tail calls; `vouches`: whether these are all. `entry` is where it begins (2⁶⁴-1: unknown)."""

    function: Function
    vouches: bool
    entry: int
    tail_calls: list[TailCall] = field(default_factory=list)


class Chain(NamedTuple):
    """Functions that called each other by tail calls, the first one first, each with the vaddr of its call."""

    links: tuple[tuple[Function, int], ...]


class CallGraph:
    """The calls of the binary with the debug information `dwarf` and the symbols `symbols`."""

    def __init__(self, dwarf: Dwarf, symbols: SymbolLayer) -> None:
        self._dwarf = dwarf
        self._symbols = symbols
        self._is_read = np.zeros(len(dwarf.units.offset), np.bool_)
        self._parts: list[UnitCalls] = []
        self._undefined: list[UnitCalls] = []
        self._exact: dict[tuple[bytes, str, int], Definition] = {}
        self._named: dict[bytes, list[Definition]] = {}
        self._vaddrs: dict[bytes, list[int]] | None = None
        self._definitions: dict[Function, Definition | None] = {}

    def sites(self, return_vaddrs: UInt64) -> list[Site]:
        """What is known of each return address (ascending)."""
        units = self._dwarf.claims.units_for(return_vaddrs - np.uint64(1))
        found: list[Site | None] = [None] * len(return_vaddrs)
        self._parts += self._read(units)
        for calls in self._parts:
            order = np.flatnonzero((calls.owner >= 0) & (calls.return_pc != np.uint64(NOWHERE)))
            order = order[np.argsort(calls.return_pc[order], kind="stable")]
            pcs = calls.return_pc[order]
            at = np.searchsorted(pcs, return_vaddrs)
            hit = np.append(pcs, np.uint64(NOWHERE))[at] == return_vaddrs
            functions, number = functions_of(self._dwarf, calls.origin[order[at[hit]]])
            for i, which in zip(np.flatnonzero(hit).tolist(), number.tolist(), strict=True):
                found[i] = Site(functions[which] if which >= 0 else None, True)
            # Between two calls of one function that lists all of them there is no other.
            owner = np.concatenate(([-1], calls.owner[order], [-2]))
            lists_all = (calls.flags & ALL_CALLS) > 0
            between = ~hit & (owner[at] == owner[at + 1])
            between[between] = lists_all[owner[at[between]]]
            for i in np.flatnonzero(between).tolist():
                found[i] = found[i] or Site(None, False)
        return [site or Site(None, None) for site in found]

    def chains(self, first: Function, is_last: Callable[[Function], bool]) -> tuple[list[Chain], bool]:
        """The chains of tail calls from `first` to a function that `is_last`, which is not part of them, and whether
        these are all: every function on the way vouches for its tail calls, and none is made by a pointer."""
        found: list[Chain] = []
        is_whole = True
        waiting: list[tuple[Function, tuple[tuple[Function, int], ...]]] = [(first, ())]
        for _ in range(MAX_STEPS):
            if not waiting:
                return found, is_whole
            function, links = waiting.pop()
            definition = self._definition(function)
            if definition is None or not definition.vouches or len(found) > MAX_CHAINS:
                is_whole = False
                continue
            for pc, callee in definition.tail_calls:
                chain = (*links, (function, pc))
                if callee is None:
                    is_whole = False
                elif is_last(callee):
                    found.append(Chain(chain))
                elif len(chain) >= MAX_DEPTH:
                    is_whole = False
                elif all(callee != each for each, _ in chain):
                    waiting.append((callee, chain))
        return found, False

    def begins_at(self, function: Function, name: bytes) -> bool:
        """Whether a function begins where a symbol `name` is: gold keeps no symbols of folded local functions."""
        definition = self._definition(function)
        return definition is not None and definition.entry in self._vaddrs_of(name)

    def _definition(self, function: Function) -> Definition | None:
        """The definition of a function, None if it is not here or several have its name."""
        if function not in self._definitions:
            self._define_read()
            found = self._known(function)
            vaddrs = self._vaddrs_of(function.linkage or function.name) if found is None else []
            if vaddrs:
                self._parts += self._read(self._dwarf.claims.units_for(np.array(vaddrs, np.uint64)))
                self._define_read()
                found = self._known(function)
            self._definitions[function] = found
        return self._definitions[function]

    def _define_read(self) -> None:
        """Add the definitions of what was read."""
        while self._undefined:
            self._define(self._undefined.pop())

    def _known(self, function: Function) -> Definition | None:
        exact = self._exact.get(exact_key(function))
        if exact is not None:
            return exact
        named = self._named.get(name_key(function), [])
        return named[0] if len(named) == 1 else None

    def _vaddrs_of(self, name: bytes) -> list[int]:
        """Where symbols with a name are, ascending."""
        if self._vaddrs is None:
            self._vaddrs = {}
            for symbol, vaddr in zip(self._symbols.names, self._symbols.vaddr.tolist(), strict=True):
                self._vaddrs.setdefault(symbol, []).append(vaddr)
        return sorted(set(self._vaddrs.get(name, [])))

    def _read(self, units: Int64) -> list[UnitCalls]:
        """The functions and calls of those of `units` that were not read yet; their definitions are to be added."""
        new = units[~self._is_read[units]]
        if not len(new):
            return []
        self._is_read[new] = True
        parts = [walk(source, walked) for source, walked in sources_of(self._dwarf, new)]
        self._undefined += parts
        return parts

    def _define(self, calls: UnitCalls) -> None:
        """Add the functions of some units that have calls or vouch that they have none, with their tail calls."""
        tail = np.flatnonzero((calls.owner >= 0) & (calls.flags & TAIL_CALL > 0))
        vouches = (calls.owner < 0) & (calls.flags & ALL_TAIL_CALLS > 0)
        has_code = (calls.owner < 0) & (calls.pc != np.uint64(NOWHERE))
        rows = distinct(np.concatenate((np.flatnonzero(vouches | has_code), calls.owner[tail])))
        functions, number = functions_of(self._dwarf, np.concatenate((calls.origin[rows], calls.origin[tail])))
        of_row = {
            row: Definition(functions[which], bool(vouches[row]), int(calls.pc[row]))
            for row, which in zip(rows.tolist(), number.tolist(), strict=False)
        }
        pcs = np.where(calls.pc[tail] != np.uint64(NOWHERE), calls.pc[tail], calls.return_pc[tail] - np.uint64(1))
        columns = calls.owner[tail].tolist(), pcs.tolist(), number[len(rows) :].tolist()
        for owner, pc, which in zip(*columns, strict=True):
            of_row[owner].tail_calls.append(TailCall(pc, functions[which] if which >= 0 else None))
        for definition in of_row.values():
            self._exact.setdefault(exact_key(definition.function), definition)
            self._named.setdefault(name_key(definition.function), []).append(definition)


def exact_key(function: Function) -> tuple[bytes, str, int]:
    """A function with its declaration, for those that several files have."""
    return name_key(function), basename(function.path.decode(errors="replace")), function.line
