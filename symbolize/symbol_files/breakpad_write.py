"""Writes lists of functions as Breakpad symbol files."""

from collections.abc import Iterator

import numpy as np

from symbolize.symbol_files.breakpad import Module
from symbolize.symbol_files.inline_trees import InlineTrees, inline_trees
from symbolize.symbol_files.symbol_list import SymbolList

BREAKS = bytes.maketrans(b"\n\r\0", b"???")
"""What would end a record before its time."""


def write_breakpad(listing: SymbolList, module: Module, cpu: str, base: int) -> Iterator[bytes]:
    """The functions, lines and inlined calls of `listing` as a symbol file of `module`, whose first segment is at the
    vaddr `base`, in pieces.

    All functions have a size, also those that only a symbol names, so that there are no PUBLIC records. Functions
    without a name, and those before `base`, are left out.
    """
    trees = inline_trees(listing)
    names = [name.translate(BREAKS) for name in listing.names()]
    yield f"MODULE Linux {cpu} {module.debug_id} ".encode() + module.name.encode(errors="replace").translate(BREAKS)
    yield b"\n"
    if module.build_id:
        yield f"INFO CODE_ID {module.build_id.upper()}\n".encode()
    for number, path in enumerate(listing.files):
        yield b"FILE %d %b\n" % (number, path.translate(BREAKS))
    origins, origin_of = np.unique(listing.node_function[trees.call_node], return_inverse=True)
    for number, function in enumerate(origins.tolist()):
        yield b"INLINE_ORIGIN %d %b\n" % (number, names[function])
    offset, node = trees.offset.tolist(), trees.node.tolist()
    calls = list(call_records(listing, trees, origin_of, base))
    lines = line_records(listing, trees, base)
    begin, end = trees.begin.tolist(), trees.end.tolist()
    for row, of_function in enumerate(lines):
        name = names[int(listing.node_function[node[row]])]
        if not name or begin[row] < base:
            continue
        yield b"FUNC %x %x 0 %b\n" % (begin[row] - base, end[row] - begin[row], name)
        yield b"".join(calls[offset[row] : offset[row + 1]])
        yield of_function


def call_records(listing: SymbolList, trees: InlineTrees, origin: np.ndarray, base: int) -> Iterator[bytes]:
    """The record of each inlined call. A file that is not known has a number that no file has."""
    file = listing.node_call_file[trees.call_node]
    columns = (
        trees.call_depth - 1,
        listing.node_call_line[trees.call_node],
        np.where(file < 0, len(listing.files), file),
        origin,
        trees.range_offset[:-1],
        trees.range_offset[1:],
    )
    begin, end = trees.range_begin.tolist(), trees.range_end.tolist()
    for depth, line, number, name, first, last in zip(*(column.tolist() for column in columns), strict=True):
        spans = b"".join(b" %x %x" % (max(begin[i] - base, 0), end[i] - begin[i]) for i in range(first, last))
        yield b"INLINE %d %d %d %d%b\n" % (depth, line, number, name, spans)


def line_records(listing: SymbolList, trees: InlineTrees, base: int) -> Iterator[bytes]:
    """The lines of each function; equal neighbours are one record, code of no file has none."""
    row = np.searchsorted(listing.row_start, listing.start, side="right") - 1
    file = np.append(listing.row_file, np.int32(-1))[row].tolist()
    line = np.append(listing.row_line, np.uint32(0))[row].tolist()
    starts = listing.start.tolist()
    for first, last, end in zip(trees.first.tolist(), trees.last.tolist(), trees.end.tolist(), strict=True):
        records = []
        begin = first
        for i in range(first + 1, last + 1):
            if i < last and (file[i], line[i]) == (file[begin], line[begin]):
                continue
            if file[begin] >= 0:
                size = (starts[i] if i < last else end) - starts[begin]
                records.append(b"%x %x %d %d\n" % (starts[begin] - base, size, line[begin], file[begin]))
            begin = i
        yield b"".join(records)
