# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""Lays functions, line rows and symbols out as one sequence of ranges and packs it into blocks.

A block starts with nothing known: address `block_start`, node 0, file 0, line 0, column 0. Each range is the
distance of its address from the range before it (LEB128, left out for the first of a block), a byte of flags and
what the flags announce, as differences from the range before it:

    bit 0    the node, as signed LEB128
    bit 1    the file, as signed LEB128
    bit 2    the column, as LEB128, not a difference
    bits 3-7 the line: the difference + LINE_BIAS, or LINE_ESCAPE and the difference as signed LEB128

Node and file count from 1; node 0 is a gap.
"""

import cython
import numpy as np

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
LINE_BIAS = cython.declare(cython.longlong, 10)
LINE_ESCAPE = cython.declare(cython.longlong, 31)

BLOCK = cython.declare(cython.Py_ssize_t, 64)
BLOCK_SIZE = 64
"""How many ranges a block holds."""

MAX_PACKED = 40
"""The most bytes a range takes: a flag byte and five LEB128 numbers of up to 10, 5, 5, 5 and 5 bytes."""

MAX_CHAIN = cython.declare(cython.Py_ssize_t, 4096)
"""Functions inlined into each other; what is deeper is cut off (rule R30 allows 256)."""


@cython.ccall
def merge_layers(  # type: ignore[no-untyped-def]
    segment_starts: cython.const[cython.ulonglong][::1],
    segments: cython.const[cython.longlong][::1],
    row_starts: cython.const[cython.ulonglong][::1],
    rows: cython.const[cython.longlong][::1],
    symbol_starts: cython.const[cython.ulonglong][::1],
    symbols: cython.const[cython.longlong][::1],
    starts: cython.ulonglong[::1],
    out_segments: cython.int[::1],
    out_rows: cython.int[::1],
    out_symbols: cython.int[::1],
) -> cython.Py_ssize_t:
    """Cut three layers of disjoint ranges at each other's borders.

    Entry `i` of a layer reaches from its start to the next one's and holds a number, or -1. The outputs have room
    for all entries of the three; returns how many there are, each from its start to that of the next.
    """
    count: cython.Py_ssize_t = 0
    a: cython.Py_ssize_t = 0
    b: cython.Py_ssize_t = 0
    c: cython.Py_ssize_t = 0
    segment: cython.longlong = -1
    row: cython.longlong = -1
    symbol: cython.longlong = -1
    start: cython.ulonglong
    with cython.nogil:
        while a < len(segment_starts) or b < len(row_starts) or c < len(symbol_starts):
            start = MASK64
            if a < len(segment_starts) and segment_starts[a] < start:
                start = segment_starts[a]
            if b < len(row_starts) and row_starts[b] < start:
                start = row_starts[b]
            if c < len(symbol_starts) and symbol_starts[c] < start:
                start = symbol_starts[c]
            while a < len(segment_starts) and segment_starts[a] == start:
                segment = segments[a]
                a += 1
            while b < len(row_starts) and row_starts[b] == start:
                row = rows[b]
                b += 1
            while c < len(symbol_starts) and symbol_starts[c] == start:
                symbol = symbols[c]
                c += 1
            starts[count] = start
            out_segments[count] = cython.cast(cython.int, segment)
            out_rows[count] = cython.cast(cython.int, row)
            out_symbols[count] = cython.cast(cython.int, symbol)
            count += 1
    return count


@cython.ccall
def outermost(  # type: ignore[no-untyped-def]
    parents: cython.const[cython.longlong][::1], outer: cython.longlong[::1]
):
    """Fill `outer` with the function of its own that each node is inlined into; parents come before children."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(parents)):
            outer[i] = outer[parents[i]] if parents[i] >= 0 else i


@cython.ccall
def mark_chains(  # type: ignore[no-untyped-def]
    leaves: cython.const[cython.int][::1], parents: cython.const[cython.longlong][::1], used: cython.uchar[::1]
):
    """Mark the nodes `leaves` (-1: none) and all that they are inlined into."""
    i: cython.Py_ssize_t
    k: cython.longlong
    with cython.nogil:
        for i in range(len(leaves)):
            k = leaves[i]
            while k >= 0 and used[k] == 0:
                used[k] = 1
                k = parents[k]


@cython.cclass
class Chains:
    """The nodes of a table, each combination of parent, function and call site once, parents before children.

    `slots` is a hash table of rows + 1; the random `mixer` keeps a file from choosing values that collide. From `limit`
    rows on only functions of their own are entered, and `cut_off` is set.
    """

    def __init__(self, room: cython.Py_ssize_t, limit: cython.Py_ssize_t, mixer: cython.ulonglong) -> None:
        self.limit = limit
        self.cut_off = False
        size: cython.Py_ssize_t = 16
        while size < 2 * room:
            size *= 2
        self.slots = memoryview(np.zeros(size, np.int32))
        self.parent = memoryview(np.zeros(room, np.int32))
        self.function = memoryview(np.zeros(room, np.int32))
        self.file = memoryview(np.zeros(room, np.int32))
        self.line = memoryview(np.zeros(room, np.uint32))
        self.column = memoryview(np.zeros(room, np.uint32))
        self.room = room
        self.count = 0
        self.mixer = mixer | 1

    def row(
        self,
        parent: cython.longlong,
        function: cython.longlong,
        file: cython.longlong,
        line: cython.ulonglong,
        column: cython.ulonglong,
    ) -> cython.longlong:
        """The row of a node, made if it is new; -1 if there is no room for it."""
        mixed: cython.ulonglong = cython.cast(cython.ulonglong, parent + 1)
        mixed = ((mixed << 32) ^ cython.cast(cython.ulonglong, function)) & MASK64
        mixed = (mixed * self.mixer) & MASK64
        mixed = mixed ^ (mixed >> 29) ^ cython.cast(cython.ulonglong, file + 1) ^ (line << 24) ^ (column << 48)
        mixed = ((mixed & MASK64) * self.mixer) & MASK64
        place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, (mixed ^ (mixed >> 32)) & (len(self.slots) - 1))
        known: cython.longlong
        while self.slots[place] != 0:
            known = self.slots[place] - 1
            if (
                self.parent[known] == parent
                and self.function[known] == function
                and self.file[known] == file
                and self.line[known] == line
                and self.column[known] == column
            ):
                return known
            place += 1
            if place == len(self.slots):
                place = 0
        if self.count >= self.room:
            return -1
        known = self.count
        self.slots[place] = cython.cast(cython.int, known + 1)
        self.parent[known] = cython.cast(cython.int, parent)
        self.function[known] = cython.cast(cython.int, function)
        self.file[known] = cython.cast(cython.int, file)
        self.line[known] = cython.cast(cython.uint, line)
        self.column[known] = cython.cast(cython.uint, column)
        self.count += 1
        return known


@cython.ccall
def chain_nodes(  # type: ignore[no-untyped-def]
    leaves: cython.const[cython.int][::1],
    outer_functions: cython.const[cython.int][::1],
    parents: cython.const[cython.longlong][::1],
    functions: cython.const[cython.int][::1],
    files: cython.const[cython.int][::1],
    lines: cython.const[cython.uint][::1],
    columns: cython.const[cython.uint][::1],
    chains: Chains,
    found: cython.int[::1],
) -> cython.bint:
    """Enter the chain of functions behind every range into `chains`; `found` receives the innermost row, or -1.

    Range `i` lies in node `leaves[i]` of the decoder, or in none (-1), and the outermost function there has the
    row `outer_functions[i]` of the table, which depends on the symbol at the address; -1 if nothing is there.
    `functions` are the rows of the other nodes. False if `chains` has too little room.
    """
    seen_function: cython.int[::1] = memoryview(np.full(len(parents), -1, np.int32))
    seen_row: cython.int[::1] = memoryview(np.full(len(parents), -1, np.int32))
    stack: cython.longlong[::1] = memoryview(np.zeros(MAX_CHAIN, np.int64))
    depth: cython.Py_ssize_t
    i: cython.Py_ssize_t
    k: cython.longlong
    outer: cython.longlong
    row: cython.longlong
    with cython.nogil:
        for i in range(len(leaves)):
            outer = outer_functions[i]
            found[i] = -1
            if outer < 0:
                continue
            k = leaves[i]
            row = -1
            depth = 0
            while k >= 0 and depth < MAX_CHAIN:
                if seen_function[k] == outer:
                    row = seen_row[k]
                    break
                stack[depth] = k
                depth += 1
                k = parents[k]
            if chains.count >= chains.limit and depth > 0 and row < 0:
                chains.cut_off = True
                depth = 0
            if depth == 0 and row < 0:
                row = chains.row(-1, outer, -1, 0, 0)
                if row < 0:
                    return False
            while depth > 0:
                depth -= 1
                k = stack[depth]
                if parents[k] < 0:
                    row = chains.row(-1, outer, -1, 0, 0)
                else:
                    row = chains.row(row, functions[k], files[k], lines[k], columns[k])
                if row < 0:
                    return False
                seen_function[k] = cython.cast(cython.int, outer)
                seen_row[k] = cython.cast(cython.int, row)
            found[i] = cython.cast(cython.int, row)
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_uleb(data: cython.uchar[::1], position: cython.Py_ssize_t, value: cython.ulonglong) -> cython.Py_ssize_t:
    """Write an unsigned LEB128 number; the position behind it."""
    while value >= 0x80:
        data[position] = cython.cast(cython.uchar, (value & 0x7F) | 0x80)
        position += 1
        value >>= 7
    data[position] = cython.cast(cython.uchar, value)
    return position + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_sleb(data: cython.uchar[::1], position: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    """Write a signed LEB128 number; the position behind it."""
    while value >= 64 or value < -64:
        data[position] = cython.cast(cython.uchar, (value & 0x7F) | 0x80)
        position += 1
        value >>= 7
    data[position] = cython.cast(cython.uchar, value & 0x7F)
    return position + 1


@cython.ccall
def pack(  # type: ignore[no-untyped-def]
    starts: cython.const[cython.ulonglong][::1],
    nodes: cython.const[cython.int][::1],
    files: cython.const[cython.int][::1],
    lines: cython.const[cython.uint][::1],
    columns: cython.const[cython.uint][::1],
    data: cython.uchar[::1],
    block_starts: cython.ulonglong[::1],
    block_offsets: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """Pack ranges into blocks; neighbours that say the same become one.

    Range `i` reaches to `starts[i + 1]`; `nodes` and `files` are -1 where there is none. `data` has MAX_PACKED bytes
    a range, the block columns a row for every BLOCK_SIZE ranges and one more. Returns the number of blocks; the
    offset behind the last is the number of bytes.
    """
    position: cython.Py_ssize_t = 0
    block: cython.Py_ssize_t = 0
    in_block: cython.Py_ssize_t = BLOCK
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    address: cython.ulonglong = 0
    node: cython.longlong = 0
    file: cython.longlong = 0
    line: cython.longlong = 0
    column: cython.longlong = 0
    n: cython.longlong
    f: cython.longlong
    r: cython.longlong
    c: cython.longlong
    flags: cython.longlong
    with cython.nogil:
        for i in range(len(starts)):
            n = nodes[i] + 1
            f = 0
            r = 0
            c = 0
            if n != 0:
                f = files[i] + 1
                r = lines[i]
                c = columns[i]
            if block > 0 and n == node and f == file and r == line and c == column:
                continue
            if block == 0 and n == 0:
                continue
            if in_block == BLOCK:
                block_starts[block] = starts[i]
                block_offsets[block] = position
                block += 1
                in_block = 0
                node = file = line = column = 0
            else:
                position = put_uleb(data, position, starts[i] - address)
            address = starts[i]
            in_block += 1
            at = position
            position += 1
            flags = 0
            if n != node:
                flags |= 1
                position = put_sleb(data, position, n - node)
            if f != file:
                flags |= 2
                position = put_sleb(data, position, f - file)
            if c != column:
                flags |= 4
                position = put_uleb(data, position, c)
            if -LINE_BIAS <= r - line < LINE_ESCAPE - LINE_BIAS:
                flags |= (r - line + LINE_BIAS) << 3
            else:
                flags |= LINE_ESCAPE << 3
                position = put_sleb(data, position, r - line)
            data[at] = cython.cast(cython.uchar, flags)
            node = n
            file = f
            line = r
            column = c
        block_offsets[block] = position
    return block
