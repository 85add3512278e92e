"""Which functions of DWARF the symbols contradict, because a linker discarded them or they have no code (R8, functions
of length zero; R54, discarded code; R55, address 0)."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt64, distinct, is_among, layer_at
from symbolize.dwarf.decode import Decoded, Dwarf
from symbolize.dwarf.qualify import resolve_functions
from symbolize.names import strip_version
from symbolize.symbols.elf_symbols import SymbolLayer
from symbolize.symbols.naming import agreeing


class SymbolWitness:
    """What the symbols know of code that may be discarded; implements `symbolize.dwarf.discarded.Witness`."""

    def __init__(self, dwarf: Dwarf, symbols: Callable[[], SymbolLayer]) -> None:
        self._dwarf = dwarf
        self._symbols = symbols

    def of_functions(self, dies: UInt64, begin: UInt64, end: UInt64) -> Int64:
        """1 for each function that a symbol names at its begin which is as long, if it has a size; -1 where another
        symbol with a size covers the begin, or one begins in the function; else 0."""
        if not len(dies):
            return np.zeros(0, np.int64)
        symbols, functions = self._symbols(), resolve_functions(self._dwarf, dies)
        result = -(self._begins_in(begin, end) | (sized_at(symbols, begin) >= 0)).astype(np.int64)
        for i in np.flatnonzero(result).tolist():
            rows = symbols.starting_at(int(begin[i]))
            rows = rows[~symbols.sized[rows] | (symbols.end[rows] == end[i])]
            names = (strip_version(name) for name in symbols.names.take(rows))
            if agreeing(names, functions.linkage[i], functions.name[i]):
                result[i] = 1
        return result

    def of_sequences(self, end: UInt64, program: Int64) -> Bool:
        """Which sequences end where a function does, if the symbol at 0 names code.

        Where a sequence ends with the function at 0, others of its program do not count.
        """
        symbols = self._symbols()
        rows = symbols.starting_at(0)
        sized = symbols.sized[rows]
        is_code = bool((symbols.is_function[rows] | ~sized).any())
        last = layer_at(symbols.start, symbols.symbol, end - np.uint64(1))
        is_whole = ~np.append(symbols.sized, False)[last] | (layer_at(symbols.start, symbols.symbol, end) != last)
        is_whole &= (last >= 0) & (end <= self._dwarf.code[1][0])
        exact = is_among(end, distinct(symbols.end[rows[sized & symbols.is_function[rows]]]))
        better = is_among(program, distinct(program[exact])) & ~exact
        result: Bool = ~self._begins_in(np.zeros_like(end), end) | (is_code & is_whole & ~better)
        return result

    def _begins_in(self, begin: UInt64, end: UInt64) -> Bool:
        """Whether a symbol begins in each of the ranges."""
        starts = self._symbols().by_vaddr[1]
        result: Bool = np.searchsorted(starts, begin) < np.searchsorted(starts, end)
        return result


def without_covered(dwarf: Dwarf, decoded: Decoded, symbols: SymbolLayer) -> Decoded:
    """`decoded` without functions of length zero in a sized symbol of another function (R8, functions of length
    zero)."""
    segment = np.searchsorted(decoded.segment_start, decoded.empty_starts)
    symbol = sized_at(symbols, decoded.empty_starts)
    segment, symbol = segment[symbol >= 0], symbol[symbol >= 0]
    if not len(segment):
        return decoded
    starts = symbols.vaddr[symbol] == decoded.segment_start[segment]
    own = starts & are_named(dwarf, symbols, symbol, decoded.node_die[decoded.segment_node[segment]])
    nodes = decoded.segment_node.copy()
    nodes[segment[~own]] = -1
    return replace(decoded, segment_node=nodes)


def sized_at(symbols: SymbolLayer, vaddrs: UInt64) -> Int64:
    """The symbol with a size that answers for each of `vaddrs`, -1 if there is none."""
    symbol = layer_at(symbols.start, symbols.symbol, vaddrs)
    symbol[~np.append(symbols.sized, False)[symbol]] = -1
    return symbol


def are_named(dwarf: Dwarf, symbols: SymbolLayer, symbol: Int64, dies: UInt64) -> Bool:
    """Whether each symbol or one of its aliases is the DWARF function beside it."""
    functions = resolve_functions(dwarf, dies)
    pairs = zip(symbol.tolist(), functions.linkage, functions.name, strict=True)
    return np.array([is_named(symbols, number, linkage, name) for number, linkage, name in pairs], np.bool_)


def is_named(symbols: SymbolLayer, symbol: int, linkage: bytes, name: bytes) -> bool:
    """Whether a symbol or one of its aliases is the DWARF function with these names."""
    return bool(agreeing((strip_version(symbols.names[alias]) for alias in symbols.aliases(symbol)), linkage, name))
