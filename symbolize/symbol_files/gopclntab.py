"""The line table of Go, `.gopclntab`, as a listing (R121, Go line table); functions over buffers.

Go 1.16 gave names, files and values sections of their own, 1.18 made entries offsets from the begin of the code, 1.20
added lines of declarations and moved call sites of inlined functions into the table.

| first word | since | entries of functions | names, files | call site of an inlined call | declarations |
|---|---|---|---|---|---|
| `fffffffb` | Go 1.2 | addresses | offsets into the table | stated | – |
| `fffffffa` | 1.16 | addresses | offsets into parts of it; files by unit | stated | – |
| `fffffff0` | 1.18 | offsets from the begin of the code | as before | stated | – |
| `fffffff1` | 1.20 | offsets | as before | that of an instruction | there |

Every Go program has the table: neither `strip` nor the linker's `-s -w` removes it. Symbols answer in the gaps, as for
C code, and complete the names of generic functions, of which the table has `main.Map[...]` only. A function ends where
its lines end, so that padding has no name; one without lines is a marker of the linker and no function. The tree of
inlined calls is the function data number 3, until Go 1.16 number 4: the one under which trees are consistent. Before Go
1.13 inlined calls are not shown, and calls that contain each other never. Files that profilers upload may keep the
table and no section of code: there functions lie within the bounds of the table, and have the lines of what is inlined
into them, whose trees are elsewhere.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Bool, Int32, Int64, UInt64, distinct_inverse, views
from symbolize.symbol_files.pcvalues import PcValueWalk, count_changes, read_functions
from symbolize.symbol_files.symbol_list import SymbolList

Buffer = bytes | memoryview

GO_1_2, GO_1_16, GO_1_18, GO_1_20 = range(4)
"""Layouts, by the release of Go that introduced them."""
RELEASES = ("1.2", "1.16", "1.18", "1.20")
"""Those releases, by layout."""
LAYOUTS = {0xFFFFFFFB: GO_1_2, 0xFFFFFFFA: GO_1_16, 0xFFFFFFF0: GO_1_18, 0xFFFFFFF1: GO_1_20}
"""The layouts by the first word of the table."""
FUNCTION_SIZES = (32, 36, 36, 40)
"""Bytes of the record of a function behind its entry, by layout."""
MIN_HEADER = 16
CODE_UNITS, WORD_SIZES = (1, 2, 4), (4, 8)
NO_DATA = 0xFFFFFFFF
NO_PARENT = 0xFFFF
"""Escapes for no data of a function, and for no call around an inlined one before Go 1.20."""

INLINE_VALUES = 2
"""The table of values of a function with its inlined calls (PCDATA_InlTreeIndex), since Go 1.13."""
INLINE_TREES = (3, 4)
"""Which of the data of a function has the tree of them (FUNCDATA_InlTree): since Go 1.17, and before."""

MAX_FUNCTIONS = 1 << 24
CHANGES_PER_BYTE = 1
MORE_CHANGES = 1 << 16
"""Values that are read for each byte of the table, and in addition: functions may share tables of values."""
NAMES_PER_BYTE = 8
MORE_NAMES = 1 << 16
LONG_NAME = 1 << 12
"""If names, which may overlap, exceed NAMES_PER_BYTE for each byte of the table and MORE_NAMES in addition, those of
LONG_NAME bytes and more are left out."""


class TableBases(NamedTuple):
    """The vaddr of a table and, since Go 1.18, the bases of entries of functions and of their data.

    `parts` are those of the code, if there are several: the first and the end of the offsets of each, and its vaddr.
    """

    vaddr: int
    text: int = 0
    function_data: int = 0
    parts: Sequence[tuple[int, int, int]] = ()


class Memory(NamedTuple):
    """The file and the pieces of it that are loaded: vaddr, offset and size of each."""

    data: Buffer
    pieces: Sequence[tuple[int, int, int]]


class LineTableHeader(NamedTuple):
    """Layout, unit of code, size of a pointer, number of functions, and offsets of the parts of the table.

    `data` is the base of offsets of functions, and `list` where their list begins.
    """

    layout: int
    unit: int
    word: int
    functions: int
    names: int
    units: int
    files: int
    values: int
    data: int
    list: int


def read_header(table: Buffer, big: bool) -> LineTableHeader:
    """The header of a table. Raises ValueError, with a few words, if it is none or does not fit."""
    order = "big" if big else "little"

    def number(offset: int, size: int) -> int:
        return int.from_bytes(table[offset : offset + size], "big" if big else "little")

    layout = LAYOUTS.get(number(0, 4))
    if layout is None or len(table) < MIN_HEADER:
        raise ValueError(f"no {order}-endian header")
    unit, word = table[6], table[7]
    if unit not in CODE_UNITS or word not in WORD_SIZES or len(table) < 8 + 8 * word:
        raise ValueError("an invalid header")
    words = [number(8 + word * i, word) for i in range(8)]
    functions = words[0]
    if layout == GO_1_2:
        start = 8 + word
        # The offset of the files is behind the functions and their end.
        files = number(start + (2 * functions + 1) * word, 4) if functions <= len(table) // (2 * word) else 0
        header = LineTableHeader(layout, unit, word, functions, 0, 0, files, 0, 0, start)
    else:
        first = 2 if layout == GO_1_16 else 3
        names, units, files, values, data = words[first : first + 5]
        header = LineTableHeader(layout, unit, word, functions, names, units, files, values, data, data)
    if not 0 < header.functions <= MAX_FUNCTIONS or max(header[4:]) >= len(table):
        raise ValueError("offsets that lead out of it")
    if header.list + (2 * header.functions + 1) * (word if layout < GO_1_18 else 4) > len(table):
        raise ValueError("more functions than bytes")
    return header


class Fields:
    """Fields at any offsets of a buffer; those that do not fit read as 0."""

    def __init__(self, data: Buffer, big: bool) -> None:
        self._data, self.big, self.size = data, big, len(data)

    def at(self, offset: Int64, size: int) -> UInt64:
        """Unsigned integers of 1, 4 or 8 bytes."""
        inside = (offset >= 0) & (offset <= self.size - size)
        if self.size < size:
            return np.zeros(len(offset), np.uint64)
        view = np.ndarray((self.size - size + 1,), f"{'>' if self.big else '<'}u{size}", self._data, strides=(1,))
        return np.where(inside, view[np.where(inside, offset, 0)], 0).astype(np.uint64)


def read_go_table(
    table: Buffer, bases: TableBases, memory: Memory, code: tuple[UInt64, UInt64], big: bool = False
) -> SymbolList:
    """The functions of a Go program, with inlined functions, files and lines.

    `table` is the line table, with relocations applied; functions outside of `code`, begins and ends of executable
    ranges, are left out. Raises ValueError with a reason if nothing can be read.
    """
    header = read_header(table, big)
    problems: list[str] = []
    fields = Fields(table, big)
    entry, bound, offset = function_list(header, fields, bases, code)
    if len(entry) < header.functions:
        problems.append(
            f"{header.functions - len(entry)} functions of the line table of Go are out of order or of bounds"
        )
    word = 4 if header.layout >= GO_1_18 else header.word
    at = offset + word
    name = fields.at(at, 4).astype(np.int64)
    files, lines, value_tables = (fields.at(at + shift, 4).astype(np.int64) for shift in (16, 20, 24))
    unit = fields.at(at + 28, 4).astype(np.int64) if header.layout >= GO_1_16 else np.zeros(len(at), np.int64)
    decl_line = fields.at(at + 32, 4) if header.layout >= GO_1_20 else np.zeros(len(at), np.uint64)
    after = at + FUNCTION_SIZES[header.layout]
    inlines = fields.at(after + 4 * INLINE_VALUES, 4).astype(np.int64)
    inlines[value_tables <= INLINE_VALUES] = 0
    data_count = fields.at(after - 1, 1)
    tree, tree_end = find_trees(header, fields, bases, memory, after + 4 * value_tables, data_count)
    inlines[tree < 0] = 0
    columns: list[NDArray[Any]] = [entry, bound]
    for values in (files, lines, inlines):
        columns.append(np.where((values > 0) & (values < len(table) - header.values), values + header.values, 0))
    columns += [tree, tree_end, unit]
    units = unit_table(header, table, big)
    budget = CHANGES_PER_BYTE * len(table) + MORE_CHANGES
    walk = PcValueWalk(table, units, memory.data, header.unit, header.layout < GO_1_20, big, budget)
    columns = views(*columns)
    changes = count_changes(walk, *columns[:5])
    own = name, np.where(decl_line < 1 << 31, decl_line, 0).astype(np.uint32)
    ends, rows, segments, nodes, bad_trees, is_over = read_functions(walk, columns, changes, own)
    if bad_trees:
        problems.append(f"the line table of Go has {bad_trees} inlined calls that cannot be followed")
    if is_over:
        problems.append("the tables of values in the line table of Go overlap absurdly; the rest is left out")
    ends = ends[ends > entry]
    start, (node,) = with_gaps(segments[0], segments[1:], ends, (-1,))
    row_start, (row_file, row_line) = with_gaps(rows[0], rows[1:], ends, (-1, 0))
    parent, name, call_file, call_line, decl_file, decl_line = nodes
    base = header.files if header.layout >= GO_1_16 else 0
    (row_file, call_file, decl_file), paths = take_strings(table, base, (row_file, call_file, decl_file), problems)
    keys = np.stack((name, decl_file.astype(np.int64), decl_line.astype(np.int64)))
    order = np.lexsort(keys)
    new = np.ones(len(order), np.bool_)
    new[1:] = (keys[:, order[1:]] != keys[:, order[:-1]]).any(axis=0)
    function = np.empty(len(order), np.int32)
    function[order] = np.cumsum(new) - 1
    first = order[new]
    (which,), names = take_strings(table, header.names, (name[first],), problems)
    return SymbolList(
        start=start,
        node=node,
        row_start=row_start,
        row_file=row_file,
        row_line=row_line,
        node_parent=parent,
        node_function=function,
        node_call_file=call_file,
        node_call_line=call_line,
        function_linkage=[b""] * len(first),
        function_name=[names[k] if k >= 0 else b"" for k in which.tolist()],
        function_decl_file=decl_file[first],
        function_decl_line=decl_line[first],
        files=paths,
        problems=problems,
    )


def unit_table(header: LineTableHeader, table: Buffer, big: bool) -> Buffer:
    """The offsets of the names of files: of all units, or before Go 1.16 one list, behind its length."""
    if header.layout >= GO_1_16:
        return table[header.units : max(header.units, header.files)]
    count = int.from_bytes(table[header.files : header.files + 4], "big" if big else "little")
    return table[header.files : header.files + 4 * count]


def function_list(
    header: LineTableHeader, fields: Fields, bases: TableBases, code: tuple[UInt64, UInt64]
) -> tuple[UInt64, UInt64, Int64]:
    """Entry, bound and offset of the functions in code, ascending; the bound is the next entry, or the end of the
    code."""
    word = header.word if header.layout < GO_1_18 else 4
    at = header.list + np.arange(header.functions + 1, dtype=np.int64) * 2 * word
    entry = fields.at(at, word)
    offset = fields.at(at[:-1] + word, word).astype(np.int64)
    if header.layout >= GO_1_18:
        entry = leads_to(entry, bases)
    offset = np.where((offset >= 0) & (offset < fields.size), offset + header.data, fields.size)
    begins, ends = code
    if not len(begins):
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64)
    reach = np.maximum.accumulate(np.append(np.uint64(0), entry[:-1]))[:-1]
    kept = (entry[:-1] >= reach) & (offset < fields.size)
    part = np.searchsorted(begins, entry[:-1], side="right") - 1
    kept &= (part >= 0) & (entry[:-1] < ends[np.maximum(part, 0)])
    bound = np.minimum(entry[1:], ends[np.maximum(part, 0)])
    kept &= bound >= entry[:-1]
    return np.ascontiguousarray(entry[:-1][kept]), bound[kept], offset[kept]


def leads_to(offset: UInt64, bases: TableBases) -> UInt64:
    """The vaddrs of offsets into the code."""
    result = offset + np.uint64(bases.text)
    for first, end, vaddr in bases.parts[1:]:
        here = (offset >= np.uint64(first)) & (offset <= np.uint64(end))
        result[here] = offset[here] - np.uint64(first) + np.uint64(vaddr)
    return result


def find_trees(
    header: LineTableHeader, fields: Fields, bases: TableBases, memory: Memory, data: Int64, data_count: UInt64
) -> tuple[Int64, Int64]:
    """File offsets of the trees of inlined calls, -1 for none, and of the ends of their segments.

    `data` is where the list of the data of each function begins: offsets, or until Go 1.17 aligned pointers. Then the
    index of the tree in the list depends on the release, which is unknown, so the one with most sound trees is taken.
    """
    if header.layout >= GO_1_18:
        value = fields.at(data + 4 * INLINE_TREES[0], 4)
        known = (data_count > INLINE_TREES[0]) & (value != NO_DATA) & (bases.function_data > 0)
        return in_file(memory, value + np.uint64(bases.function_data), known)
    data = data + -(data + bases.vaddr) % header.word
    best, most = (np.full(len(data), -1, np.int64), np.zeros(len(data), np.int64)), 0
    contents = Fields(memory.data, fields.big)
    for number in INLINE_TREES:
        value = fields.at(data + header.word * number, header.word)
        tree, end = in_file(memory, value, (data_count > number) & (value > 0))
        # The first call is in no other, and its function has a name, which follows the end of another one.
        name = contents.at(tree + 12, 4).astype(np.int64) + header.names
        sound = (
            (tree >= 0) & (contents.at(tree, 2) == NO_PARENT) & (fields.at(name - 1, 1) == 0) & (fields.at(name, 1) > 0)
        )
        if sound.sum() > most:
            best, most = (np.where(sound, tree, -1), end), int(sound.sum())
    return best


def in_file(memory: Memory, vaddr: UInt64, known: Bool) -> tuple[Int64, Int64]:
    """The file offset of `vaddr`, -1 where there is none or it is not `known`, and the end of its segment."""
    offset, end = np.full(len(vaddr), -1, np.int64), np.zeros(len(vaddr), np.int64)
    for begin, start, size in memory.pieces:
        size = min(size, len(memory.data) - start)
        if size <= 0:
            continue
        here = known & (vaddr >= np.uint64(begin)) & (vaddr - np.uint64(begin) < np.uint64(size))
        offset[here] = start + (vaddr[here] - np.uint64(begin)).astype(np.int64)
        end[here] = start + size
    offset[offset >= end] = -1
    return offset, end


def with_gaps(
    start: UInt64, columns: Sequence[NDArray[Any]], ends: UInt64, empty: Sequence[int]
) -> tuple[UInt64, list[NDArray[Any]]]:
    """A layer with gaps, which hold `empty`, from those `ends` on at which nothing starts."""
    index = np.searchsorted(start, ends)
    gap = np.append(start, np.uint64(0))[index] != ends
    index, ends = index[gap], ends[gap]
    return np.insert(start, index, ends), [
        np.insert(column, index, value) for column, value in zip(columns, empty, strict=True)
    ]


def take_strings(
    table: Buffer, base: int, columns: Sequence[Int64], problems: list[str]
) -> tuple[list[Int32], list[bytes]]:
    """Columns of offsets from `base` (-1: none) as numbers of strings, and those; a string ends with a NUL."""
    offsets, which = distinct_inverse(np.concatenate(columns))
    inside = (offsets >= 0) & (offsets < len(table) - base)
    begins = np.where(inside, offsets + base, 0)
    zeros = np.append(np.flatnonzero(np.frombuffer(table, np.uint8) == 0), len(table))
    length = np.where(inside, zeros[np.searchsorted(zeros, begins)] - begins, 0)
    if length.sum() > NAMES_PER_BYTE * len(table) + MORE_NAMES:
        problems.append(f"names in the line table of Go overlap absurdly; those of {LONG_NAME} bytes are left out")
        inside &= length < LONG_NAME
    texts = [
        bytes(table[begin : begin + size])
        for begin, size in zip(begins[inside].tolist(), length[inside].tolist(), strict=True)
    ]
    number = np.where(inside, np.cumsum(inside) - 1, -1).astype(np.int32)[which]
    ends = np.cumsum([len(column) for column in columns])
    return np.split(number, ends[:-1]), texts
