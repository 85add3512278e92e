"""Breakpad symbol files: functions, inlined functions, lines and exported symbols as text."""

import re
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import Int32, Int64, UInt32, UInt64, first_of_runs, offsets_of, views
from symbolize.symbol_files.breakpad_scan import KINDS, count_records, nest, read_records
from symbolize.symbol_files.symbol_list import SymbolList

FUNCTION, PUBLIC, FILE, ORIGIN, INLINE, LINE = range(1, KINDS)
"""The kinds of records, as `breakpad_scan` numbers them."""

MAX_NESTING = 256
"""Functions inlined into each other; what is deeper is left out."""
PAGE = 4096
MAX_PUBLIC = 1 << 20
"""Bytes behind its start that a symbol without a size may answer for."""

HEAD = 4096
"""Bytes of a file with its first records."""

_MODULE = re.compile(rb"MODULE (\S+) (\S+) ([0-9A-Fa-f]{33,40}) ([^\r\n]*)\r?\n")
_CODE_ID = re.compile(rb"^INFO CODE_ID ([0-9A-Fa-f]+)", re.MULTILINE)


class Module(NamedTuple):
    """The debug id of a module (32 hex digits and the age), its build id if there is one, and its name."""

    debug_id: str
    build_id: str
    name: str


def read_module(head: bytes) -> Module | None:
    """The module of the symbol file that begins with `head`; None if it is no such file."""
    match = _MODULE.match(head)
    if match is None:
        return None
    code = _CODE_ID.search(head[:HEAD])
    name = match[4].decode(errors="backslashreplace")
    return Module(match[3].decode().upper(), code[1].decode().lower() if code else "", name)


def debug_id(build_id: str) -> str:
    """The debug id, without its age, of a module with this build id: its first 16 bytes as a GUID, whose three numbers
    are little-endian in a build id."""
    raw = bytes.fromhex(build_id)[:16].ljust(16, b"\0")
    return (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex().upper()


def read_breakpad(data: bytes | memoryview) -> SymbolList:
    """The functions, inlined functions, lines and exported symbols of a symbol file.

    Addresses count from where the first segment of the module is loaded. A function ends by its size, and where the
    next one begins; a PUBLIC record, which has no size, where the next function or such record begins. Names are as in
    the file. Damaged records are counted in `problems`.
    """
    counts = np.zeros(KINDS + 1, np.int64)
    count_records(data, *views(counts))
    first = offsets_of(counts[1:KINDS])
    rows = np.concatenate(([0], first[:-1], [0]))
    numbers = np.zeros((4, int(first[-1])), np.uint64)
    spans = np.zeros((2, int(first[LINE - 1])), np.int64)
    ranges = np.zeros((3, int(counts[0])), np.uint64)
    read_records(data, *views(numbers, spans, ranges, rows))
    functions, publics, files, origins, inlines, lines = map(slice, first[:-1].tolist(), rows[1:KINDS].tolist())
    problems = [f"{rows[KINDS]} lines are no sound records"] if rows[KINDS] else []

    begin, end, function = cut_at_next(*numbers[:2, functions])
    symbol_begin, symbol_end, symbol = public_ranges(numbers[0, publics], begin, end)
    # What owns a range: functions, then exported symbols, then inlined functions.
    function_count = functions.stop - functions.start
    roots = function_count + publics.stop - publics.start
    row, low, high = ranges[:, : rows[0]]
    row = row.astype(np.int64)
    # Inlined functions are cut to the function before them in the file.
    range_of = np.full(function_count + 1, -1, np.int64)
    range_of[function] = np.arange(len(function))
    around = range_of[spans[0, row] - 1]
    high = low + np.minimum(high, ~low)
    row, low, high, around = (column[around >= 0] for column in (row, low, high, around))
    low, high = np.maximum(low, begin[around]), np.minimum(high, end[around])
    row, low, high = (column[low < high] for column in (row, low, high))
    all_begin = np.concatenate((begin, symbol_begin, low))
    all_end = np.concatenate((end, symbol_end, high))
    owner = np.concatenate((function, function_count + symbol, roots + row - inlines.start))
    depth = np.concatenate((np.zeros(len(begin) + len(symbol), np.uint64), numbers[0, row] + np.uint64(1)))
    order = np.lexsort((depth, all_begin))
    owners = roots + inlines.stop - inlines.start
    start, node, parent, owners = nested(all_begin[order], all_end[order], owner[order], owners)

    file_row = rows_of(numbers[0, files], np.concatenate((numbers[3, lines], numbers[2, inlines])))
    line_count = lines.stop - lines.start
    row_start, row_file, row_line = line_rows(numbers[:, lines], file_row[:line_count])
    names = [name for kind in (functions, publics, origins) for name in texts(data, spans[:, kind])] + [b""]
    origin = rows_of(numbers[0, origins], numbers[3, inlines])  # -1, an unknown one, is the last name, which is empty
    called = np.where(origin < 0, len(names) - 1, roots + origin)
    return SymbolList(
        start=start,
        node=node,
        row_start=row_start,
        row_file=row_file,
        row_line=row_line,
        node_parent=parent,
        node_function=np.concatenate((np.arange(roots), called)).astype(np.int32)[owners],
        node_call_file=np.concatenate((np.full(roots, -1, np.int32), file_row[line_count:]))[owners],
        node_call_line=np.concatenate((np.zeros(roots, np.uint32), small(numbers[1, inlines])))[owners],
        function_linkage=names,
        function_name=[b""] * len(names),
        function_decl_file=np.full(len(names), -1, np.int32),
        function_decl_line=np.zeros(len(names), np.uint32),
        files=texts(data, spans[:, files]),
        problems=problems,
    )


def nested(begin: UInt64, end: UInt64, owner: Int64, owners: int) -> tuple[UInt64, Int32, Int32, Int64]:
    """Starts and nodes of disjoint ranges made of nested ones; the parent of each node, and what it is of."""
    starts = np.empty(2 * len(begin) + 1, np.uint64)
    nodes = np.empty(len(starts), np.int32)
    parents = np.empty(owners + 1, np.int32)
    numbers = np.full(owners + 1, -1, np.int32)
    order = np.zeros(owners + 1, np.int32)
    stack = np.zeros(MAX_NESTING, np.uint64), np.zeros(MAX_NESTING, np.int32)
    count = nest(*views(begin, end, owner, starts, nodes, parents, numbers, order, *stack))
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


def public_ranges(address: UInt64, begin: UInt64, end: UInt64) -> tuple[UInt64, UInt64, Int64]:
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


def line_rows(lines: UInt64, file: Int32) -> tuple[UInt64, Int32, UInt32]:
    """Line records as a layer; a gap behind a record has no line."""
    begin, end, row = cut_at_next(lines[0], lines[1])
    gap = np.append(begin[1:], np.uint64(0)) != end
    start = np.concatenate((begin, end[gap]))
    order = np.argsort(start, kind="stable")
    none = np.full(int(gap.sum()), -1, np.int32)
    number = small(lines[2][row])
    return (
        start[order],
        np.concatenate((file[row], none)).astype(np.int32)[order],
        np.concatenate((number, np.zeros(len(none), np.uint32)))[order],
    )


def rows_of(numbers: UInt64, wanted: UInt64) -> Int32:
    """For each of `wanted` the row of that number, -1 where there is none; of equal numbers the first counts."""
    if not len(numbers):
        return np.full(len(wanted), -1, np.int32)
    if int(numbers.max()) < 2 * len(numbers):  # writers number from 0
        row_of = np.full(2 * len(numbers) + 1, -1, np.int32)
        row_of[numbers[::-1].astype(np.int64)] = np.arange(len(numbers), dtype=np.int32)[::-1]
        return row_of[np.minimum(wanted, np.uint64(2 * len(numbers))).astype(np.int64)]
    order = np.argsort(numbers, kind="stable")
    at = np.minimum(np.searchsorted(numbers[order], wanted), len(numbers) - 1)
    return np.where(numbers[order[at]] == wanted, order[at], -1).astype(np.int32)


def small(values: UInt64) -> UInt32:
    """Line numbers; one that is too large is unknown."""
    return np.where(values < np.uint64(1 << 31), values, np.uint64(0)).astype(np.uint32)


def texts(data: bytes | memoryview, spans: Int64) -> list[bytes]:
    """The strings between begins and ends in `data`."""
    return [bytes(data[begin:end]) for begin, end in zip(*spans.tolist(), strict=True)]
