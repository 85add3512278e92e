"""Records of symbol files, which overlap and nest, as a list of functions."""

import numpy as np

from symbolize.core.arrays import Int32, Int64, UInt32, UInt64, first_of_runs, views
from symbolize.core.kernels import RangeColumns
from symbolize.core.records import record
from symbolize.symbol_files.breakpad_scan import nest
from symbolize.symbol_files.symbol_list import SharedNames, SymbolList

PAGE = 4096
MAX_PUBLIC = 1 << 20
"""Bytes behind its start that a symbol without a size may answer for."""


@record
class Records:
    """What a symbol file says, in its order. Names and files are indices into `names` and `files`, -1: unknown.

    Functions have a size; symbols have none. An inlined call is in a function, at a depth (0: called by the function),
    and has ranges; it gets lines of the ranges of its own that are around it. Lines have sizes.
    """

    function_begin: UInt64
    function_size: UInt64
    function_name: Int64
    symbol_begin: UInt64
    symbol_name: Int64
    call_function: Int64
    call_depth: UInt64
    call_name: Int64
    call_file: Int32
    call_line: UInt32
    range_call: Int64
    range_begin: UInt64
    range_size: UInt64
    line_begin: UInt64
    line_size: UInt64
    line_file: Int32
    line: UInt32
    names: list[bytes]
    files: list[bytes]
    shared: SharedNames
    problems: list[str]


def as_listing(records: Records) -> SymbolList:
    """The list of functions. A function ends by its size, and where the next one begins; a symbol without a size where
    the next function or such symbol begins."""
    begin, end, function = cut_at_next(records.function_begin, records.function_size)
    symbol_begin, symbol_end, symbol = symbol_ranges(records.symbol_begin, begin, end)
    # What owns a range: functions, then symbols without a size, then inlined calls.
    functions = len(records.function_begin)
    roots = functions + len(records.symbol_begin)
    calls = len(records.call_name)
    call, low, high = records.range_call, records.range_begin, records.range_size
    range_of = np.full(functions + 1, -1, np.int64)
    range_of[function] = np.arange(len(function))
    around = range_of[records.call_function[call]]
    high = low + np.minimum(high, ~low)
    begin_of, end_of = np.append(begin, np.uint64(0)), np.append(end, np.uint64(0))  # the last is of no function
    low, high = np.maximum(low, begin_of[around]), np.minimum(high, end_of[around])
    keep = (around >= 0) & (low < high)
    call, low, high = call[keep], low[keep], high[keep]
    all_begin = np.concatenate((begin, symbol_begin, low))
    all_end = np.concatenate((end, symbol_end, high))
    owner = np.concatenate((function, functions + symbol, roots + call))
    none = np.zeros(len(begin) + len(symbol), np.uint64)
    order = np.lexsort((np.concatenate((none, records.call_depth[call] + np.uint64(1))), all_begin))
    start, node, parent, owners = nested(all_begin[order], all_end[order], owner[order], roots + calls)

    row_start, row_file, row_line = line_rows(records)
    names = [*records.names, b""]  # -1, an unknown one, is the last
    name_of = np.concatenate((records.function_name, records.symbol_name, records.call_name))
    return SymbolList(
        start=start,
        node=node,
        row_start=row_start,
        row_file=row_file,
        row_line=row_line,
        node_parent=parent,
        node_function=np.where(name_of < 0, len(names) - 1, name_of).astype(np.int32)[owners],
        node_call_file=np.concatenate((np.full(roots, -1, np.int32), records.call_file)).astype(np.int32)[owners],
        node_call_line=np.concatenate((np.zeros(roots, np.uint32), records.call_line)).astype(np.uint32)[owners],
        function_linkage=names,
        function_name=[b""] * len(names),
        function_decl_file=np.full(len(names), -1, np.int32),
        function_decl_line=np.zeros(len(names), np.uint32),
        files=records.files,
        shared=records.shared,
        problems=records.problems,
    )


def nested(begin: UInt64, end: UInt64, owner: Int64, owners: int) -> tuple[UInt64, Int32, Int32, Int64]:
    """Starts and nodes of disjoint ranges made of nested ones; the parent of each node, and what it is of."""
    starts = np.empty(2 * len(begin) + 1, np.uint64)
    nodes = np.empty(len(starts), np.int32)
    parents = np.empty(owners + 1, np.int32)
    numbers = np.full(owners + 1, -1, np.int32)
    order = np.zeros(owners + 1, np.int32)
    count = nest(RangeColumns(*views(begin, end, owner)), *views(starts, nodes, parents, numbers, order))
    made = int(order[-1])
    return starts[:count].copy(), nodes[:count].copy(), parents[:made].copy(), order[:made].astype(np.int64)


def cut_at_next(begin: UInt64, size: UInt64) -> tuple[UInt64, UInt64, Int64]:
    """Begins and ends of ranges, cut where the next one begins, ascending, and their rows; of equals the first."""
    rows = np.flatnonzero(size > 0)
    rows = rows[np.argsort(begin[rows], kind="stable")]
    rows = rows[first_of_runs(begin[rows])]
    starts = begin[rows]
    ends = starts + np.minimum(size[rows], ~starts)
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    return starts, ends, rows


def symbol_ranges(address: UInt64, begin: UInt64, end: UInt64) -> tuple[UInt64, UInt64, Int64]:
    """Ranges of symbols without sizes outside of the functions `[begin, end)`, ascending, and their rows."""
    rows = np.argsort(address, kind="stable")
    rows = rows[first_of_runs(address[rows])]
    starts = address[rows]
    if len(begin):
        at = np.searchsorted(begin, starts, side="right") - 1
        outside = (at < 0) | (starts >= end[np.maximum(at, 0)])
        rows, starts = rows[outside], starts[outside]
    borders = np.sort(np.concatenate((begin, starts)))
    at = np.searchsorted(borders, starts, side="right")
    page = starts | np.uint64(PAGE - 1)
    following = np.append(borders, np.uint64(0))[at]
    ends = np.where(at < len(borders), following, page + (page < ~np.uint64(0)))
    return starts, np.minimum(ends, starts + np.minimum(np.uint64(MAX_PUBLIC), ~starts)), rows


def line_rows(records: Records) -> tuple[UInt64, Int32, UInt32]:
    """The lines as a layer; a gap behind one has no line."""
    begin, end, row = cut_at_next(records.line_begin, records.line_size)
    gap = np.append(begin[1:], np.uint64(0)) != end
    start = np.concatenate((begin, end[gap]))
    order = np.argsort(start, kind="stable")
    none = np.full(int(gap.sum()), -1, np.int32)
    return (
        start[order],
        np.concatenate((records.line_file[row], none)).astype(np.int32)[order],
        np.concatenate((records.line[row], np.zeros(len(none), np.uint32))).astype(np.uint32)[order],
    )


def small(values: UInt64) -> UInt32:
    """Line numbers; one that is too large is unknown."""
    return np.where(values < np.uint64(1 << 31), values, np.uint64(0)).astype(np.uint32)
