# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""The ranges of a table: functions, line rows and symbols as one sequence, encoded in blocks, and looked up in them.

A block starts with nothing known: address `block_start`, node 0, file 0, line 0, column 0. Each range is the
distance of its address from the range before it (LEB128, left out for the first of a block), a byte of flags and
what the flags announce, as differences from the range before it:

    bit 0    the node, as signed LEB128
    bit 1    the file, as signed LEB128
    bit 2    the column, as LEB128, not a difference
    bits 3-7 the line: the difference + LINE_BIAS, or LINE_ESCAPE and the difference as signed LEB128

Node and file count from 1; node 0 is a gap.
"""

from typing import Any, NamedTuple

import cython
import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Int32, UInt8, UInt32, UInt64, extended, views

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
LEB_MORE = cython.declare(cython.ulonglong, 0x80)
LEB_SIGN = cython.declare(cython.ulonglong, 0x40)
LAST_SHIFT = cython.declare(cython.int, 49)
"""Where the last byte begins of LEB128 numbers that are differences; more would not fit."""
LINE_BIAS = cython.declare(cython.longlong, 10)
LINE_ESCAPE = cython.declare(cython.longlong, 31)

BLOCK = cython.declare(cython.Py_ssize_t, 64)
BLOCK_SIZE = 64
"""How many ranges a block holds."""

MAX_PACKED = 40
"""The most bytes a range takes: a flag byte and five LEB128 numbers of up to 10, 5, 5, 5 and 5 bytes."""

NODE_CHANGES = cython.declare(cython.int, 1 << 0)
FILE_CHANGES = cython.declare(cython.int, 1 << 1)
COLUMN_CHANGES = cython.declare(cython.int, 1 << 2)
LINE_SHIFT = cython.declare(cython.int, 3)
"""The bits of the flags."""

FIRST_ROWS = cython.declare(cython.Py_ssize_t, 1 << 16)
MAX_CHAIN = cython.declare(cython.Py_ssize_t, 4096)
"""Functions inlined into each other; what is deeper is cut off. The decoder follows 256 (R30, depth of inlining)."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_uleb(data: cython.uchar[::1], position: cython.Py_ssize_t, value: cython.ulonglong) -> cython.Py_ssize_t:
    """Write an unsigned LEB128 number; the position behind it."""
    while value >= LEB_MORE:
        data[position] = cython.cast(cython.uchar, (value & (LEB_MORE - 1)) | LEB_MORE)
        position += 1
        value >>= 7
    data[position] = cython.cast(cython.uchar, value)
    return position + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_sleb(data: cython.uchar[::1], position: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    """Write a signed LEB128 number; the position behind it."""
    while value > 63 or value < -64:
        data[position] = cython.cast(cython.uchar, (value & (LEB_MORE - 1)) | LEB_MORE)
        position += 1
        value >>= 7
    data[position] = cython.cast(cython.uchar, value & (LEB_MORE - 1))
    return position + 1


@cython.cclass
class LayerColumns:
    """A layer of disjoint ranges: `numbers[i]` (int64[n], -1: a gap) holds from `starts[i]` (uint64[n], ascending) up
    to the next start."""

    def __init__(
        self, starts: cython.const[cython.ulonglong][::1], numbers: cython.const[cython.longlong][::1]
    ) -> None:
        self.starts = starts
        self.numbers = numbers


@cython.ccall
def merge_into(
    segment_layer: LayerColumns,
    row_layer: LayerColumns,
    symbol_layer: LayerColumns,
    starts: cython.ulonglong[::1],
    out_segments: cython.int[::1],
    out_rows: cython.int[::1],
    out_symbols: cython.int[::1],
) -> cython.Py_ssize_t:
    """Cut three layers at each other's borders.

    The outputs have the size of all three together; returns how many entries there are.
    """
    segment_starts: cython.const[cython.ulonglong][::1] = segment_layer.starts
    segments: cython.const[cython.longlong][::1] = segment_layer.numbers
    row_starts: cython.const[cython.ulonglong][::1] = row_layer.starts
    rows: cython.const[cython.longlong][::1] = row_layer.numbers
    symbol_starts: cython.const[cython.ulonglong][::1] = symbol_layer.starts
    symbols: cython.const[cython.longlong][::1] = symbol_layer.numbers
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
class DecodedNodes:
    """The nodes of the decoder, parents before children: `parents` (int64[n], -1: none), `functions`, rows of the table
    (int32[n], -1: a function of its own), and where each is called: `files` (int32[n], -1: unknown), `lines` and
    `columns` (uint32[n], 0: unknown)."""

    def __init__(
        self,
        parents: cython.const[cython.longlong][::1],
        functions: cython.const[cython.int][::1],
        files: cython.const[cython.int][::1],
        lines: cython.const[cython.uint][::1],
        columns: cython.const[cython.uint][::1],
    ) -> None:
        self.parents = parents
        self.functions = functions
        self.files = files
        self.lines = lines
        self.columns = columns


@cython.cclass
class InlineTree:
    """The nodes of a table, each combination of parent, function and call site once, parents before children.

    `slots` is a hash table of rows + 1, with a random `mixer` against chosen collisions. From `limit` rows on only
    functions of their own are entered, and `cut_off` is set.
    """

    def __init__(self, limit: cython.Py_ssize_t, mixer: cython.ulonglong) -> None:
        self.limit = limit
        self.cut_off = False
        self.slots = self.parent = self.function = self.file = memoryview(np.zeros(0, np.int32))
        self.line = self.column = memoryview(np.zeros(0, np.uint32))
        self.count = 0
        self.mixer = mixer | 1
        self.grow()

    def grow(self):  # type: ignore[no-untyped-def]
        """Make the columns four times as long, and twice as many slots as rows."""
        size = max(4 * len(self.parent), FIRST_ROWS)
        for name in ("parent", "function", "file", "line", "column"):
            setattr(self, name, extended(getattr(self, name), size))
        self.slots = memoryview(np.zeros(2 * len(self.parent), np.int32))
        rows, self.count = self.count, 0
        for i in range(rows):
            self.row(self.parent[i], self.function[i], self.file[i], self.line[i], self.column[i])

    def row(
        self,
        parent: cython.longlong,
        function: cython.longlong,
        file: cython.longlong,
        line: cython.ulonglong,
        column: cython.ulonglong,
    ) -> cython.longlong:
        """The row of a node, made if it is new; the columns are long enough for it."""
        mixed: cython.ulonglong = cython.cast(cython.ulonglong, parent + 1)
        mixed = ((mixed << 32) ^ cython.cast(cython.ulonglong, function)) & MASK64
        mixed = (mixed * self.mixer) & MASK64
        mixed = mixed ^ (mixed >> 29) ^ cython.cast(cython.ulonglong, file + 1) ^ (line << 24) ^ (column << 48)
        mixed = ((mixed & MASK64) * self.mixer) & MASK64
        slot: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, (mixed ^ (mixed >> 32)) & (len(self.slots) - 1))
        known: cython.longlong
        while self.slots[slot] != 0:
            known = self.slots[slot] - 1
            if (
                self.parent[known] == parent
                and self.function[known] == function
                and self.file[known] == file
                and self.line[known] == line
                and self.column[known] == column
            ):
                return known
            slot += 1
            if slot == len(self.slots):
                slot = 0
        known = self.count
        self.slots[slot] = cython.cast(cython.int, known + 1)
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
    nodes: DecodedNodes,
    tree: InlineTree,
    found: cython.int[::1],
):
    """Enter the chain of functions of every range into `tree`; `found` receives the innermost row, or -1.

    Range `i` is in node `leaves[i]` of the decoder (-1: none), its outermost function is row `outer_functions[i]` of
    the table (-1: none), which depends on the symbol.
    """
    parents: cython.const[cython.longlong][::1] = nodes.parents
    functions: cython.const[cython.int][::1] = nodes.functions
    files: cython.const[cython.int][::1] = nodes.files
    lines: cython.const[cython.uint][::1] = nodes.lines
    columns: cython.const[cython.uint][::1] = nodes.columns
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
            if tree.count >= tree.limit and depth > 0 and row < 0:
                tree.cut_off = True
                depth = 0
            while len(tree.parent) - tree.count <= depth:
                with cython.gil:
                    tree.grow()
            if depth == 0 and row < 0:
                row = tree.row(-1, outer, -1, 0, 0)
            while depth > 0:
                depth -= 1
                k = stack[depth]
                if parents[k] < 0:
                    row = tree.row(-1, outer, -1, 0, 0)
                else:
                    row = tree.row(row, functions[k], files[k], lines[k], columns[k])
                seen_function[k] = cython.cast(cython.int, outer)
                seen_row[k] = cython.cast(cython.int, row)
            found[i] = cython.cast(cython.int, row)


@cython.ccall
def encode_into(  # type: ignore[no-untyped-def]
    starts: cython.const[cython.ulonglong][::1],
    nodes: cython.const[cython.int][::1],
    files: cython.const[cython.int][::1],
    lines: cython.const[cython.uint][::1],
    columns: cython.const[cython.uint][::1],
    data: cython.uchar[::1],
    block_starts: cython.ulonglong[::1],
    block_offsets: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """Encode ranges in blocks; equal neighbours become one. Returns the number of blocks.

    Range `i` ends at `starts[i + 1]`; `nodes` and `files` are -1 where there is none. `data` has MAX_PACKED bytes a
    range, the block columns a row for every BLOCK_SIZE ranges and one more; the last offset is the number of bytes.
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
                flags |= NODE_CHANGES
                position = put_sleb(data, position, n - node)
            if f != file:
                flags |= FILE_CHANGES
                position = put_sleb(data, position, f - file)
            if c != column:
                flags |= COLUMN_CHANGES
                position = put_uleb(data, position, c)
            if -LINE_BIAS <= r - line < LINE_ESCAPE - LINE_BIAS:
                flags |= (r - line + LINE_BIAS) << LINE_SHIFT
            else:
                flags |= LINE_ESCAPE << LINE_SHIFT
                position = put_sleb(data, position, r - line)
            data[at] = cython.cast(cython.uchar, flags)
            node = n
            file = f
            line = r
            column = c
        block_offsets[block] = position
    return block


class Blocks(NamedTuple):
    """Encoded ranges: the vaddr at which each block starts, its offset in `data`, with the end of the last."""

    start: UInt64
    offset: UInt64
    data: UInt8


def encode(starts: UInt64, nodes: Int32, files: Int32, lines: UInt32, columns: UInt32) -> Blocks:
    """Encode ranges, each up to the start of the next; nodes and files are -1 where there is none.

    Addresses have 64 bits, and code of one file may be farther apart than 32 bits can express (R135, 64-bit addresses).
    """
    data = np.empty(MAX_PACKED * len(starts) + 1, np.uint8)
    start, offset = (np.zeros(len(starts) // BLOCK_SIZE + 2, np.uint64) for _ in range(2))
    count = encode_into(*views(starts, nodes, files, lines, columns, data, start, offset))
    return Blocks(start[:count].copy(), offset[: count + 1].copy(), data[: int(offset[count])].copy())


def merge_layers(*layers: tuple[UInt64, NDArray[Any]]) -> tuple[UInt64, Int32, Int32, Int32]:
    """Cut three layers, starts and numbers, at each other's borders: starts, and the number in each layer or -1."""
    size = sum(len(start) for start, _ in layers)
    columns: list[NDArray[Any]] = [np.empty(size, np.uint64), *(np.empty(size, np.int32) for _ in layers)]
    count = merge_into(*(LayerColumns(*views(*layer)) for layer in layers), *views(*columns))
    start, first, second, third = (column[:count] for column in columns)
    return start, first, second, third


@cython.cclass
class TableRanges:
    """Encoded ranges: the vaddr at which each block starts (`starts`, uint64[n]), its offset in `data`, with the end of
    the last (`offsets`, uint64[n + 1]), and how many nodes and files there are."""

    def __init__(
        self,
        node_count: cython.longlong,
        file_count: cython.longlong,
        starts: cython.const[cython.ulonglong][::1],
        offsets: cython.const[cython.ulonglong][::1],
        data: cython.const[cython.uchar][::1],
    ) -> None:
        self.node_count = node_count
        self.file_count = file_count
        self.starts = starts
        self.offsets = offsets
        self.data = data


@cython.cclass
class LeafColumns:
    """What ranges say at some addresses: `nodes` and `files` (int32[n], -1: none), `lines` and `columns` (uint32[n],
    0: unknown)."""

    def __init__(
        self, nodes: cython.int[::1], files: cython.int[::1], lines: cython.uint[::1], columns: cython.uint[::1]
    ) -> None:
        self.nodes = nodes
        self.files = files
        self.lines = lines
        self.columns = columns


@cython.ccall
def lookup(  # type: ignore[no-untyped-def]
    ranges: TableRanges, vaddrs: cython.const[cython.ulonglong][::1], leaves: LeafColumns
):
    """Fill `leaves` at `vaddrs` (ascending), in one pass.

    Nodes and files beyond their counts, as in a forged table, are none.
    """
    block_starts: cython.const[cython.ulonglong][::1] = ranges.starts
    block_offsets: cython.const[cython.ulonglong][::1] = ranges.offsets
    data: cython.const[cython.uchar][::1] = ranges.data
    node_count: cython.longlong = ranges.node_count
    file_count: cython.longlong = ranges.file_count
    nodes: cython.int[::1] = leaves.nodes
    files: cython.int[::1] = leaves.files
    lines: cython.uint[::1] = leaves.lines
    columns: cython.uint[::1] = leaves.columns
    blocks: cython.Py_ssize_t = len(block_starts)
    block: cython.Py_ssize_t = -1
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    step: cython.Py_ssize_t
    position: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = 0
    vaddr: cython.ulonglong
    address: cython.ulonglong = 0
    following: cython.ulonglong = 0
    value: cython.ulonglong
    byte: cython.ulonglong
    shift: cython.int
    field: cython.int
    flags: cython.int
    delta: cython.longlong
    node: cython.longlong = 0
    file: cython.longlong = 0
    line: cython.longlong = 0
    column: cython.ulonglong = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(vaddrs)):
            vaddr = vaddrs[i]
            nodes[i] = files[i] = -1
            lines[i] = columns[i] = 0
            if blocks == 0 or vaddr < block_starts[0]:
                continue
            if block < 0 or vaddr < address or (block + 1 < blocks and vaddr >= block_starts[block + 1]):
                # Another block: usually close behind the present one.
                low = block if block >= 0 and vaddr >= block_starts[block] else 0
                step = 1
                while low + step < blocks and block_starts[low + step] <= vaddr:
                    low += step
                    step *= 2
                high = low + step if low + step < blocks else blocks
                while low + 1 < high:
                    step = (low + high) // 2
                    if block_starts[step] <= vaddr:
                        low = step
                    else:
                        high = step
                block = low
                position = block_offsets[block]
                end = block_offsets[block + 1]
                following = block_starts[block]
                node = file = line = 0
                column = 0
            while following <= vaddr and position < end:
                address = following
                flags = data[position]
                position += 1
                for field in range(4):
                    if field < 3 and not flags >> field & 1:
                        continue
                    if field == 3 and flags >> LINE_SHIFT != LINE_ESCAPE:
                        line += (flags >> LINE_SHIFT) - LINE_BIAS
                        continue
                    value = 0
                    shift = 0
                    byte = 0
                    while position < end:
                        byte = data[position]
                        position += 1
                        value |= (byte & (LEB_MORE - 1)) << shift
                        shift += 7
                        if byte < LEB_MORE or shift > LAST_SHIFT:
                            break
                    if field == 2:
                        column = value
                        continue
                    delta = value
                    if byte & LEB_SIGN:
                        delta -= cython.cast(cython.longlong, 1) << shift
                    if field == 0:
                        node += delta
                    elif field == 1:
                        file += delta
                    else:
                        line += delta
                if position < end:
                    value = 0
                    shift = 0
                    while position < end:
                        byte = data[position]
                        position += 1
                        if shift < 64:
                            value |= ((byte & (LEB_MORE - 1)) << shift) & MASK64
                            shift += 7
                        if byte < LEB_MORE:
                            break
                    following = (following + value) & MASK64
                else:
                    following = MASK64
            if 0 < node <= node_count:
                nodes[i] = cython.cast(cython.int, node - 1)
                if 0 < file <= file_count:
                    files[i] = cython.cast(cython.int, file - 1)
                lines[i] = cython.cast(cython.uint, line & MASK32)
                columns[i] = cython.cast(cython.uint, column & MASK32)


@cython.cclass
class TableNodes:
    """The nodes of a table, parents before children: `parents` (int32[n], -1: none), `functions` (int32[n]), and where
    each is called: `files` (int32[n], -1: unknown), `lines` (uint32[n]) and `columns` (uint16[n], 0: unknown)."""

    def __init__(
        self,
        parents: cython.const[cython.int][::1],
        functions: cython.const[cython.int][::1],
        files: cython.const[cython.int][::1],
        lines: cython.const[cython.uint][::1],
        columns: cython.const[cython.ushort][::1],
    ) -> None:
        self.parents = parents
        self.functions = functions
        self.files = files
        self.lines = lines
        self.columns = columns


@cython.ccall
def count_frames(  # type: ignore[no-untyped-def]
    nodes: cython.const[cython.int][::1], parents: cython.const[cython.int][::1], offsets: cython.longlong[::1]
):
    """Fill `offsets` (int64[n + 1]) with those of the frames: one for each node and parent, MAX_CHAIN at most."""
    i: cython.Py_ssize_t
    k: cython.int
    depth: cython.int
    total: cython.longlong = 0
    with cython.nogil:
        for i in range(len(nodes)):
            offsets[i] = total
            k = nodes[i]
            depth = 0
            while k >= 0 and depth < MAX_CHAIN:
                depth += 1
                k = parents[k] if parents[k] < k else -1
            total += depth
        offsets[len(nodes)] = total


@cython.ccall
def fill_frames(  # type: ignore[no-untyped-def]
    leaves: LeafColumns,
    table: TableNodes,
    offsets: cython.const[cython.longlong][::1],
    functions: cython.int[::1],
    files: cython.int[::1],
    lines: cython.uint[::1],
    columns: cython.uint[::1],
):
    """Fill the frames that count_frames has measured, innermost first.

    The first frame has its line row (R19, innermost frame), others the call site of the frame before (R20, call sites
    as lines). A call without a line gives a frame with line 0: leaving it out would change the depth of the stack (R21,
    calls without a line). Where line table and inline tree disagree on the innermost frame the line row is used (R29,
    line row over inline tree). Line 0 is code that the compiler made; name and file stay (R39, line 0).
    """
    nodes: cython.int[::1] = leaves.nodes
    leaf_files: cython.int[::1] = leaves.files
    leaf_lines: cython.uint[::1] = leaves.lines
    leaf_columns: cython.uint[::1] = leaves.columns
    parents: cython.const[cython.int][::1] = table.parents
    node_functions: cython.const[cython.int][::1] = table.functions
    call_files: cython.const[cython.int][::1] = table.files
    call_lines: cython.const[cython.uint][::1] = table.lines
    call_columns: cython.const[cython.ushort][::1] = table.columns
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.int
    with cython.nogil:
        for i in range(len(nodes)):
            j = offsets[i]
            if j == offsets[i + 1]:
                continue
            k = nodes[i]
            functions[j] = node_functions[k]
            files[j] = leaf_files[i]
            lines[j] = leaf_lines[i]
            columns[j] = leaf_columns[i]
            j += 1
            while j < offsets[i + 1]:
                files[j] = call_files[k]
                lines[j] = call_lines[k]
                columns[j] = call_columns[k]
                k = parents[k]
                functions[j] = node_functions[k]
                j += 1
