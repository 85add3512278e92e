"""The symbol table of one binary: sorted flat arrays and their bulk lookup."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import distinct_inverse, views
from symbolize.names import same_function
from symbolize.symbols.join import count_frames, fill_frames
from symbolize.symbols.naming import FunctionNames, choose_names

UInt64 = NDArray[np.uint64]
UInt32 = NDArray[np.uint32]
Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]


MAX_ALIASES = 64
"""How many symbols with one start are compared with DWARF."""


@dataclass(eq=False)
class Frames:
    """The frames at n addresses, CSR: those of address `i` are `[offsets[i], offsets[i + 1])`, innermost first.

    `function` is a row of `functions`, `file` an index into `files` (-1: unknown); line and column 0 are
    unknown. `folded` tells for each address whether several distinct functions share the code of its outermost
    one.
    """

    offsets: Int64
    function: Int32
    file: Int32
    line: UInt32
    column: UInt32
    functions: FunctionNames
    files: list[bytes]
    folded: Bool


@dataclass(eq=False)
class SymbolTable:
    """What DWARF and symbol tables say of one binary, by ELF vaddr.

    Segments, rows and symbols are three layers of disjoint ranges: entry `i` of a layer reaches from `start[i]`
    to `start[i + 1]`; -1 marks a gap. Nodes are functions and inlined functions, parents before children.
    `has_names` tells whether the binary had DWARF or symbols at all. A table that was built for certain addresses
    answers for those only.
    """

    segment_start: UInt64
    segment_node: Int64
    node_parent: Int64
    node_function: Int64
    node_entry: UInt64
    node_call_file: Int32
    node_call_line: UInt32
    node_call_column: UInt32
    row_start: UInt64
    row: Int64
    row_file: Int32
    row_line: UInt32
    row_column: UInt32
    symbol_start: UInt64
    symbol: Int64
    symbol_vaddr: UInt64
    symbol_sized: Bool
    symbol_names: Sequence[bytes]
    symbol_file: Int32
    functions: FunctionNames
    files: list[bytes]
    has_names: bool
    problems: list[str] = field(default_factory=list)

    def lookup(self, vaddrs: UInt64) -> Frames:
        """The frames at `vaddrs` (ELF vaddrs, ascending). An address that nothing covers has none."""
        node = layer_at(self.segment_start, self.segment_node, vaddrs)
        row = layer_at(self.row_start, self.row, vaddrs)
        symbol = layer_at(self.symbol_start, self.symbol, vaddrs)
        offsets = np.zeros(len(vaddrs) + 1, np.int64)
        count_frames(*views(node, symbol, self.node_parent, offsets))
        count = int(offsets[-1])
        key, file = np.zeros(count, np.uint64), np.zeros(count, np.int32)
        line, column = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
        inputs = (
            node,
            symbol,
            row,
            self.node_parent,
            self.node_function,
            self.node_call_file,
            self.node_call_line,
            self.node_call_column,
            self.row_file,
            self.row_line,
            self.row_column,
            self.symbol_file,
            offsets,
        )
        fill_frames(*views(*inputs, key, file, line, column))
        keys, function = distinct_inverse(key)
        functions = choose_names(
            (keys >> np.uint64(32)).astype(np.int64) - 1,
            (keys & np.uint64(0xFFFFFFFF)).astype(np.int64) - 1,
            self.functions,
            self.symbol_names,
            self._aliases,
            lambda name: name in self._names,
        )
        folded = self._folded(node, symbol)
        return Frames(offsets, function.astype(np.int32), file, line, column, functions, self.files, folded)

    def _folded(self, node: Int64, symbol: Int64) -> Bool:
        """Whether more than one distinct function symbol starts at the entry of the function at each address."""
        outer = node.copy()
        inlined = np.flatnonzero(outer >= 0)
        while len(inlined):
            inlined = inlined[self.node_parent[outer[inlined]] >= 0]
            outer[inlined] = self.node_parent[outer[inlined]]
        entry = np.zeros(len(node), np.uint64)
        named = outer >= 0
        entry[named] = self.node_entry[outer[named]]
        alone = ~named & (symbol >= 0)
        entry[alone] = self.symbol_vaddr[symbol[alone]]
        named |= alone
        folded = np.zeros(len(node), np.bool_)
        entries, which = distinct_inverse(entry[named])
        folded[named] = self._shared_entries(entries)[which]
        return folded

    def _shared_entries(self, entries: UInt64) -> Bool:
        """At which of `entries` symbols of more than one distinct function start."""
        order, starts = self._by_vaddr
        first = np.searchsorted(starts, entries)
        last = np.searchsorted(starts, entries, side="right")
        shared = np.zeros(len(entries), np.bool_)
        for i in np.flatnonzero(last - first > 1).tolist():
            names = [self.symbol_names[k] for k in order[first[i] : last[i]].tolist() if self.symbol_sized[k]]
            shared[i] = any(not same_function(names[0], name) for name in names[1:])
        return shared

    def _aliases(self, symbol: int) -> Iterator[int]:
        """`symbol` and the other sized symbols that start where it does (rule R118)."""
        if self.symbol_sized[symbol]:
            yield symbol
        order, starts = self._by_vaddr
        first = np.searchsorted(starts, self.symbol_vaddr[symbol])
        last = np.searchsorted(starts, self.symbol_vaddr[symbol], side="right")
        yield from (int(k) for k in order[first:last][:MAX_ALIASES] if k != symbol and self.symbol_sized[k])

    @cached_property
    def _names(self) -> frozenset[bytes]:
        """The names of all symbols."""
        return frozenset(self.symbol_names)

    @cached_property
    def _by_vaddr(self) -> tuple[Int64, UInt64]:
        """The symbols in order of vaddr, and those vaddrs."""
        order = np.argsort(self.symbol_vaddr, kind="stable")
        return order, self.symbol_vaddr[order]


def layer_at(start: UInt64, value: Int64, vaddrs: UInt64) -> Int64:
    """What a layer of disjoint ranges holds at `vaddrs`, -1 outside."""
    if not len(start):
        return np.full(len(vaddrs), -1, np.int64)
    place = np.searchsorted(start, vaddrs, side="right") - 1
    return np.where(place >= 0, value[np.maximum(place, 0)], -1)
