"""Puts what was decoded of a binary together as its symbol table, without the functions that its symbols contradict,
because a linker discarded them or they have no code (R8, functions of length zero; R54, discarded code; R55, address
0)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import (
    Bool,
    Int32,
    Int64,
    UInt16,
    UInt32,
    UInt64,
    distinct,
    distinct_inverse,
    first_of_runs,
    is_among,
    layer_at,
    offsets_of,
    pair,
    unpair,
    views,
)
from symbolize.core.folded_code import Callers
from symbolize.core.interning import random_mixer
from symbolize.core.parallel import together
from symbolize.core.string_table import StringTable
from symbolize.dwarf.decode import Decoded, Dwarf
from symbolize.dwarf.qualify import ResolvedFunctions, resolve_functions
from symbolize.names import strip_version
from symbolize.symbols.call_sites import calls_of
from symbolize.symbols.elf_symbols import SymbolLayer
from symbolize.symbols.functions import UNKNOWN, Calls, FunctionNames
from symbolize.symbols.icf import find_shared
from symbolize.symbols.naming import agreeing, choose_names
from symbolize.symbols.range_table import (
    Blocks,
    DecodedNodes,
    InlineTree,
    chain_nodes,
    encode,
    mark_chains,
    merge_layers,
    outermost,
)
from symbolize.symbols.table import SymbolTable

CHAINS_PER_RANGE = 4
MORE_CHAINS = 1 << 16
"""Nodes of a table, for each node and range that was decoded and in addition."""

NOWHERE = np.uint64(0xFFFFFFFFFFFFFFFF)
TOP = np.uint64(0xFFFFFFFFFFFFFFFF)


SLOTS_PER_ROW = 4
MORE_SLOTS = 1 << 16
"""Pairs of unit and file number are indexed by a table of up to so many, for each row and in addition, else sorted."""


class SegmentRanges(NamedTuple):
    """Ranges of vaddrs, each up to the start of the next, with the node, line row and symbol there (-1: none)."""

    start: UInt64
    node: Int32
    row: Int32
    symbol: Int32


class ResolvedNodes(NamedTuple):
    """Functions that are named already, by their DIEs, which ascend."""

    dies: UInt64
    functions: ResolvedFunctions


def resolve_nodes(dwarf: Dwarf, columns: Mapping[str, NDArray[Any]], owners: Int64) -> ResolvedNodes:
    """Name the functions of the nodes `owners` and of all that they are inlined into; see `Dwarf.decode_beside`."""
    used = np.zeros(len(columns["parent"]), np.uint8)
    mark_chains(*views(owners.astype(np.int32), columns["parent"], used))
    nodes = np.flatnonzero(used)
    dies = distinct(function_dies(*(columns[name][nodes] for name in ("parent", "origin", "die"))))
    return ResolvedNodes(dies, resolve_functions(dwarf, dies))


def function_dies(parent: Int64, origin: UInt64, die: UInt64) -> UInt64:
    """The DIE that names the function of each node: all inlined instances of a function share one."""
    return np.where((parent >= 0) & (origin != NOWHERE), origin, die)


def assemble(
    dwarf: Dwarf | None,
    decoded: Decoded,
    symbols: SymbolLayer,
    vaddrs: UInt64 | None,
    callers: Callers | None = None,
    resolved: ResolvedNodes | None = None,
) -> SymbolTable:
    """The table of everything that was decoded, or of what lookups of `vaddrs` (ascending) need, with the calls by
    `callers` of shared code (None: all); `resolved` are its functions if they are named already."""
    if dwarf is not None and len(decoded.empty_starts):
        decoded = without_covered(dwarf, decoded, symbols)
    ranges = all_ranges(decoded, symbols) if vaddrs is None else ranges_at(decoded, symbols, vaddrs)
    files = Files()
    pool = StringTable()
    functions, node_function, function = name_ranges(dwarf, decoded, symbols, ranges, files, pool, resolved)
    calls = call_files(dwarf, decoded, node_function, files)
    positions = leaf_positions(dwarf, decoded, symbols, ranges, function, files)
    # All paths are known by now, so that the two share nothing that changes.
    shared, (tree, blocks) = together(
        lambda: find_shared(symbols, dwarf, decoded, vaddrs),
        lambda: encode_ranges(decoded, ranges, node_function, function, calls, positions),
    )
    if tree.cut_off and dwarf is not None:
        dwarf.problems.append("absurdly many symbols in inlined functions; some are left out")
    paths = pool.add_all(files.paths)
    sharing = [function for code in shared for function in code.functions]
    shared_name = pool.add_all([function.name for function in sharing])
    shared_path = pool.add_all([function.path for function in sharing])
    at = callers(shared) if callers is not None else None
    of_shared = calls_of(dwarf, shared, at) if dwarf is not None else Calls.none()
    call_linkage = pool.add_all([function.linkage for function in of_shared.functions])
    call_name = pool.add_all([function.name for function in of_shared.functions])
    call_path = pool.add_all([function.path for function in of_shared.functions])
    text, text_offset = pool.columns()
    nodes = tree.count
    return SymbolTable(
        block_start=blocks.start,
        block_offset=blocks.offset,
        ranges=blocks.data,
        node_parent=np.asarray(tree.parent)[:nodes].copy(),
        node_function=np.asarray(tree.function)[:nodes].copy(),
        node_call_file=np.asarray(tree.file)[:nodes].copy(),
        node_call_line=np.asarray(tree.line)[:nodes].copy(),
        node_call_column=narrow(np.asarray(tree.column)[:nodes]),
        function_linkage=functions.linkage,
        function_name=functions.name,
        function_decl_file=functions.decl_file,
        function_decl_line=functions.decl_line,
        file_path=paths,
        text=text,
        text_offset=text_offset,
        folded_begin=np.array([code.begin for code in shared], np.uint64),
        folded_end=np.array([code.end for code in shared], np.uint64),
        folded_offset=offsets_of([len(code.functions) for code in shared]).astype(np.uint64),
        folded_evidence=np.array([code.evidence for code in shared], np.uint8),
        folded_name=shared_name,
        folded_path=shared_path,
        folded_line=np.array([function.line for function in sharing], np.uint32),
        call_return=of_shared.return_vaddr,
        call_caller=of_shared.caller.astype(np.int32),
        call_callee=of_shared.callee.astype(np.int32),
        call_linkage=call_linkage,
        call_name=call_name,
        call_path=call_path,
        call_line=np.array([function.line for function in of_shared.functions], np.uint32),
        has_names=dwarf is not None or symbols.has_functions,
    )


def narrow(columns: UInt32) -> UInt16:
    """Columns in 16 bits; one that does not fit is as good as unknown."""
    return np.where(columns < 1 << 16, columns, 0).astype(np.uint16)


def all_ranges(decoded: Decoded, symbols: SymbolLayer) -> SegmentRanges:
    """The three layers cut at each other's borders."""
    segments, rows = (decoded.segment_start, decoded.segment_node), (decoded.row_start, decoded.row)
    return SegmentRanges(*merge_layers(segments, rows, (symbols.start, symbols.symbol)))


def ranges_at(decoded: Decoded, symbols: SymbolLayer, vaddrs: UInt64) -> SegmentRanges:
    """The ranges of `all_ranges` that hold one of `vaddrs` (ascending), with gaps between them."""
    begin = np.zeros(len(vaddrs), np.uint64)
    end = np.full(len(vaddrs), TOP)
    columns = []
    layers = (
        (decoded.segment_start, decoded.segment_node),
        (decoded.row_start, decoded.row),
        (symbols.start, symbols.symbol),
    )
    for start, value in layers:
        index = np.searchsorted(start, vaddrs, side="right")
        limits = np.concatenate((np.zeros(1, np.uint64), start, np.full(1, TOP)))
        begin, end = np.maximum(begin, limits[index]), np.minimum(end, limits[index + 1])
        columns.append(np.append(value, -1)[index - 1].astype(np.int32))
    new = first_of_runs(begin)
    begin, end = begin[new], end[new]
    gap = np.append(begin[1:], TOP) != end  # the end of the entry before
    start = np.concatenate((begin, end[gap]))
    order = np.argsort(start, kind="stable")
    nothing = np.full(int(gap.sum()), -1, np.int32)
    return SegmentRanges(start[order], *(np.concatenate((column[new], nothing))[order] for column in columns))


class FunctionRows(NamedTuple):
    """Functions, a row each: linkage name and qualified name as string numbers, file and line of the declaration."""

    linkage: UInt32
    name: UInt32
    decl_file: Int32
    decl_line: UInt32


def name_ranges(
    dwarf: Dwarf | None,
    decoded: Decoded,
    symbols: SymbolLayer,
    ranges: SegmentRanges,
    files: "Files",
    pool: StringTable,
    done: ResolvedNodes | None,
) -> tuple[FunctionRows, Int32, Int32]:
    """The functions of the table; the row of each inlined node of the decoder; and that of the outermost function of
    each range (-1: none), whose name depends on the symbol too."""
    parent = decoded.node_parent
    used = np.zeros(len(parent), np.uint8)
    mark_chains(*views(ranges.node, parent, used))
    nodes = np.flatnonzero(used)
    known = FunctionNames([], [], np.zeros(0, np.int32), np.zeros(0, np.uint32))
    dwarf_function = np.full(len(parent) + 1, -1, np.int64)  # the last is for ranges without a node
    outer = np.empty(len(parent), np.int64)
    outermost(*views(parent, outer))
    if dwarf is not None:
        known, dwarf_function[nodes] = name_functions(dwarf, decoded, nodes, files, done)
    inlined = nodes[parent[nodes] >= 0]
    outer_node = np.append(outer, -1)[ranges.node]
    begins = begin_together(outer_node, outer, decoded, ranges.symbol, symbols)
    wanted, of_range = distinct_inverse(pair(2 * (dwarf_function[outer_node] + 1) + begins, ranges.symbol + 1))
    function, symbol = (column.astype(np.int64) for column in unpair(wanted))
    begins, function, symbol = function & 1 > 0, (function >> 1) - 1, symbol - 1
    # First all functions of DWARF by themselves, then those named with a symbol.
    by_symbol = np.flatnonzero(symbol >= 0)
    chosen = choose_names(function[by_symbol], symbol[by_symbol], known, symbols, begins[by_symbol])
    linkage = np.concatenate((pool.add_all(known.linkage), pool.add_all(chosen.linkage)))
    name = np.concatenate((pool.add_all(known.name), pool.add_all(chosen.name)))
    by_itself = slice(len(known))
    name[by_itself][linkage[by_itself] > 0] = 0
    name[by_itself][(linkage[by_itself] == 0) & (name[by_itself] == 0)] = pool.add_all([UNKNOWN])[0]
    decl_file = np.concatenate((known.decl_file, chosen.decl_file))
    decl_line = np.concatenate((known.decl_line, chosen.decl_line))
    candidate = np.append(function, -1)[:-1]
    candidate[by_symbol] = len(known) + np.arange(len(by_symbol))
    range_candidate = candidate[of_range]
    node_candidate = dwarf_function[inlined]
    # Of all these the ones in use, each once.
    present = np.zeros(len(linkage), np.bool_)
    present[range_candidate[range_candidate >= 0]] = True
    present[node_candidate] = True
    used_rows = np.flatnonzero(present)
    names, declarations = pair(linkage, name), pair(decl_file, decl_line)
    order = used_rows[np.lexsort((declarations[used_rows], names[used_rows]))]
    new = first_of_runs(names[order]) | first_of_runs(declarations[order])
    row = np.full(len(linkage) + 1, -1, np.int32)
    row[order] = np.cumsum(new) - 1
    first = order[new]
    functions = FunctionRows(linkage[first], name[first], decl_file[first], decl_line[first])
    node_function = np.full(len(parent), -1, np.int32)
    node_function[inlined] = row[node_candidate]
    return functions, node_function, row[range_candidate]


def begin_together(node: Int64, outer: Int64, decoded: Decoded, symbol: Int32, symbols: SymbolLayer) -> Bool:
    """Where the symbol and a range of the outermost function `node` (-1: none) begin together (R262, fuller symbol
    names); `outer` is the outermost function of each node."""
    begin = symbols.vaddr
    tops = np.append(outer, -1)
    here = tops[layer_at(decoded.segment_start, decoded.segment_node, begin)]
    before = tops[layer_at(decoded.segment_start, decoded.segment_node, begin - np.minimum(begin, np.uint64(1)))]
    entered = np.where((before != here) | (begin == 0), here, -1)
    result: Bool = (node >= 0) & (np.append(entered, -1)[symbol] == node)
    return result


def name_functions(
    dwarf: Dwarf, decoded: Decoded, nodes: Int64, files: "Files", done: ResolvedNodes | None
) -> tuple[FunctionNames, Int64]:
    """The functions that `nodes` are instances of, and for each of the nodes its function."""
    parent, origin, die = decoded.node_parent[nodes], decoded.node_origin[nodes], decoded.node_die[nodes]
    dies, function = distinct_inverse(function_dies(parent, origin, die))
    if done is None:
        resolved = resolve_functions(dwarf, dies)
    else:
        resolved = done.functions.take(np.searchsorted(done.dies, dies))
    decl_file = files.attribute(dwarf, resolved.decl_unit, resolved.decl_file)
    return FunctionNames(resolved.linkage, resolved.name, decl_file, resolved.decl_line), function


def call_files(dwarf: Dwarf | None, decoded: Decoded, node_function: Int32, files: "Files") -> Int32:
    """The file of the call site of each inlined node of the decoder (-1: unknown)."""
    result = np.full(len(node_function), -1, np.int32)
    if dwarf is not None:
        inlined = np.flatnonzero(node_function >= 0)
        result[inlined] = files.attribute(dwarf, decoded.node_unit[inlined], decoded.node_call_file[inlined])
    return result


def encode_ranges(
    decoded: Decoded,
    ranges: SegmentRanges,
    node_function: Int32,
    function: Int32,
    calls: Int32,
    positions: tuple[Int32, UInt32, UInt32],
) -> tuple[InlineTree, Blocks]:
    """The nodes of the table, and its ranges with their nodes and `positions`: file, line, column."""
    calls_at = calls, decoded.node_call_line, decoded.node_call_column
    nodes = DecodedNodes(*views(decoded.node_parent, node_function, *calls_at))
    count, inlined = len(ranges.start), int(np.count_nonzero(node_function >= 0))
    node = np.empty(count, np.int32)
    tree = InlineTree(CHAINS_PER_RANGE * (inlined + count) + MORE_CHAINS, random_mixer())
    chain_nodes(*views(ranges.node, function), nodes, tree, node.data)
    return tree, encode(ranges.start, node, *positions)


def leaf_positions(
    dwarf: Dwarf | None, decoded: Decoded, symbols: SymbolLayer, ranges: SegmentRanges, function: Int32, files: "Files"
) -> tuple[Int32, UInt32, UInt32]:
    """File (-1: unknown), line and column of each range where there is a function."""
    count = len(function)
    file = np.full(count, -1, np.int32)
    line, column = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
    if dwarf is not None:
        at = np.flatnonzero((ranges.row >= 0) & (function >= 0))
        row = ranges.row[at]
        found = files.of_rows(dwarf, decoded, row)
        at, row = at[found >= 0], row[found >= 0]  # a line without a file is useless
        file[at] = found[found >= 0]
        line[at], column[at] = decoded.row_line[row], decoded.row_column[row]
    # Without DWARF the FILE symbol is all there is (R120, source file of local symbols).
    alone = np.flatnonzero((ranges.node < 0) & (ranges.symbol >= 0) & (file < 0))
    if len(alone):
        file[alone] = files.of_symbols(symbols.files)[symbols.file[ranges.symbol[alone]]]
    return file, line, column


class Files:
    """Paths by number, each once."""

    def __init__(self) -> None:
        self.paths: list[bytes] = []
        self._numbers: dict[bytes, int] = {}

    def attribute(self, dwarf: Dwarf, unit: Int64, index: UInt32) -> Int32:
        """The paths that file attributes `index` of DIEs in `unit` name; -1 for no file (R23, file 0 in attributes)."""
        return self._resolve(dwarf, unit, index.astype(np.int64), False)

    def of_rows(self, dwarf: Dwarf, decoded: Decoded, rows: Int32) -> Int32:
        """The paths of the files of line rows."""
        unit, index = (column[rows].astype(np.int64) for column in (decoded.row_unit, decoded.row_file))
        return self._resolve(dwarf, unit, index, True)

    def of_symbols(self, paths: list[bytes]) -> Int32:
        """The numbers of `paths`."""
        return np.array([self._add(path) for path in paths], np.int32)

    def _resolve(self, dwarf: Dwarf, unit: Int64, index: Int64, is_row: bool) -> Int32:
        result = np.full(len(unit), -1, np.int32)
        width = int(index.max(initial=0)) + 1
        count = (int(unit.max(initial=-1)) + 1) * width
        known = np.flatnonzero(unit >= 0)
        if count > SLOTS_PER_ROW * len(known) + MORE_SLOTS:  # a file attribute may be any number
            keys, inverse = distinct_inverse(pair(unit[known], index[known]))
            units, indices = (column.astype(np.int64) for column in unpair(keys))
        else:
            inverse = unit[known] * width + index[known]
            present = np.zeros(count, np.bool_)
            present[inverse] = True
            units, indices = np.divmod(np.flatnonzero(present), width)
            inverse = (np.cumsum(present, dtype=np.int32) - 1)[inverse].astype(np.int64)
        paths, which = dwarf.paths(units, indices & 0xFFFFFFFF, is_row)
        resolved = np.append(self.of_symbols(paths), np.int32(-1))[which]  # -1 is the last
        result[known] = resolved[inverse]
        return result

    def _add(self, path: bytes) -> int:
        if not path:
            return -1
        if path not in self._numbers:
            self._numbers[path] = len(self.paths)
            self.paths.append(path)
        return self._numbers[path]


class SymbolWitness:
    """What the symbols know of code that may be discarded; implements `Witness` of `dwarf/unit_ranges.py`."""

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
