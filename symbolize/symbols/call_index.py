"""Functions and calls that were read, by where calls return to, and by the DIEs and entries of the functions."""

from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Bool, Int64, UInt64, offsets_of, ranges
from symbolize.core.ranges import inside
from symbolize.dwarf.constants import FUNCTION, NOWHERE, TAIL_CALL
from symbolize.symbols.calls import UnitCalls

MAX_NAMESAKES: Final = 256
"""Symbols and functions of one name, and functions that begin at one vaddr, that are distinguished."""


class CallIndex:
    """The rows of `calls` in the orders in which they are looked for; `code` are the ranges of code."""

    def __init__(self, calls: UnitCalls, code: tuple[UInt64, UInt64]) -> None:
        self.calls = calls
        self._code = code

    def _sorted(self, rows: Int64, column: NDArray[Any]) -> Int64:
        """Some rows in the order of a column."""
        ordered: Int64 = rows[np.argsort(column[rows], kind="stable")]
        return ordered

    @cached_property
    def by_return(self) -> Int64:
        """The calls in the order of where they return to."""
        rows = np.flatnonzero((self.calls.owner >= 0) & (self.calls.return_pc != np.uint64(NOWHERE)))
        return self._sorted(rows, self.calls.return_pc)

    @cached_property
    def return_pcs(self) -> UInt64:
        """Where calls return to, ascending."""
        return self.calls.return_pc[self.by_return]

    @cached_property
    def _functions(self) -> Int64:
        return np.flatnonzero(self.calls.flags & FUNCTION > 0)

    @cached_property
    def _is_dead(self) -> Bool:
        """Which of all rows begin where no code is: the linker dropped or folded the function."""
        entry = self.calls.pc
        dead: Bool = (entry != np.uint64(NOWHERE)) & ~inside(entry, *self._code)
        return dead

    @cached_property
    def _by_declaration(self) -> Int64:
        rows = self._functions[~self._is_dead[self._functions]]
        rows = rows[self.calls.declared[rows] != np.uint64(NOWHERE)]
        return self._sorted(rows, self.calls.declared)

    @cached_property
    def _by_die(self) -> Int64:
        return self._sorted(self._functions, self.calls.origin)

    @cached_property
    def _by_entry(self) -> Int64:
        rows = self._functions[self.calls.pc[self._functions] != np.uint64(NOWHERE)]
        return self._sorted(rows, self.calls.pc)

    @cached_property
    def ranged(self) -> Int64:
        """Functions of several ranges of code: where these begin is not known."""
        rows: Int64 = self._functions[self.calls.pc[self._functions] == np.uint64(NOWHERE)]
        return rows

    @cached_property
    def _tail(self) -> tuple[Int64, Int64]:
        """The tail calls in the order of the functions that make them, and those functions."""
        rows = np.flatnonzero((self.calls.owner >= 0) & (self.calls.flags & TAIL_CALL > 0))
        rows = self._sorted(rows, self.calls.owner)
        return rows, self.calls.owner[rows]

    def linked(self, dies: UInt64) -> tuple[Int64, Int64]:
        """For each of `dies` the function with code that is there, or the only one that completes it, else -1; and the
        one that is there and has no code, else -1."""
        order = self._by_die
        known = self.calls.origin[order]
        at = np.searchsorted(known, dies)
        own = np.where(np.append(known, np.uint64(NOWHERE))[at] == dies, np.append(order, -1)[at], -1)
        is_dead = (own >= 0) & np.append(self._is_dead, False)[own]
        order = self._by_declaration
        first, last = (np.searchsorted(self.calls.declared[order], dies, side) for side in ("left", "right"))
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
        return self.calls.pc[self._by_entry]

    def entries(self, rows: Int64) -> UInt64:
        """Where functions begin, 2⁶⁴-1 if that is not known or no code."""
        return np.where(self._is_dead[rows], np.uint64(NOWHERE), self.calls.pc[rows])

    def tail_calls(self, rows: Int64) -> tuple[Int64, UInt64, UInt64]:
        """The tail calls of functions, CSR: offsets, the vaddr of each call and the function that is called. The vaddr
        is in the call, or the one before where it would return to; 2⁶⁴-1 where that is no code."""
        tail, owners = self._tail
        first, last = (np.searchsorted(owners, rows, side) for side in ("left", "right"))
        found = tail[ranges(first, last - first)]
        pc = self.calls.pc[found]
        pc = np.where(pc != np.uint64(NOWHERE), pc, self.calls.return_pc[found] - np.uint64(1))
        pc = np.where(inside(pc, *self._code), pc, np.uint64(NOWHERE))
        return offsets_of(last - first), pc, self.calls.origin[found]
