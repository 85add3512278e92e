"""Writes lists of functions as GSYM files of version 1, little-endian."""

from itertools import pairwise

import numpy as np

from symbolize.core.arrays import Int64, UInt8, UInt32, UInt64, offsets_of, ranges, views
from symbolize.core.string_table import StringTable
from symbolize.symbol_files.gsym import HEADER_1, MAGIC, MAX_UUID
from symbolize.symbol_files.gsym_encode import (
    MAX_CALL,
    MAX_FUNCTION,
    MAX_MERGED,
    MAX_RANGE,
    MAX_ROW,
    encode_functions,
)
from symbolize.symbol_files.inline_trees import InlineTrees, inline_trees
from symbolize.symbol_files.symbol_list import SymbolList

LARGEST: int = (1 << 32) - 1
"""The largest offset and size that version 1 holds."""


def write_gsym(listing: SymbolList, uuid: bytes, base: int, *, merged: bool = False) -> bytes:
    """The functions, lines and inlined calls of `listing` as a GSYM file of the binary `uuid`, whose first segment is
    at the vaddr `base`.

    With `merged` functions that share code with others have the names of these too, which readers before LLVM 20 do
    not know. Functions without a name are left out. Raises ValueError for what the format cannot hold.
    """
    if len(uuid) > MAX_UUID:
        raise ValueError(f"a build id of {len(uuid)} bytes does not fit into GSYM, which holds {MAX_UUID}")
    trees = inline_trees(listing)
    strings = StringTable()
    string_of = strings.add_all(listing.names())
    folders, bases = zip(*map(split_path, listing.files), strict=True) if listing.files else ((), ())
    # The first is none; LLVM takes a line of it for damage, so lines of no file get the last, which has no name.
    file_table = np.zeros((len(listing.files) + 2, 2), np.uint32)
    file_table[1:-1, 0], file_table[1:-1, 1] = strings.add_all(folders), strings.add_all(bases)
    shared_names = strings.add_all(listing.shared.names if merged else [])
    named = string_of[listing.node_function[trees.node]] > 0
    named &= (trees.end > trees.begin) & (trees.end - trees.begin <= np.uint64(LARGEST))
    trees = chosen(trees, np.flatnonzero(named))
    text, text_offset = strings.columns()
    place_of = text_offset.astype(np.int64)[:-1] + np.arange(len(text_offset) - 1)  # each ends with a NUL
    table = joined(text, text_offset)
    records, places = encoded(listing, trees, place_of[string_of], merged_names(listing, trees, place_of[shared_names]))

    first = min(base, int(trees.begin[0])) if len(trees.begin) else base
    offsets = trees.begin - np.uint64(first)
    size = next(size for size in (1, 2, 4, 8) if not len(offsets) or int(offsets[-1]) >> 8 * size == 0)
    addresses = offsets.astype(f"<u{size}").tobytes()
    files = np.uint32(len(file_table)).tobytes() + place_of[file_table].astype("<u4").tobytes()
    head = HEADER_1.size + padded(len(addresses), 4)
    strings_at = head + 4 * len(offsets) + len(files)
    records_at = padded(strings_at + len(table), 4)
    if records_at + len(records) > LARGEST:
        raise ValueError("more than 4 GiB, which do not fit into GSYM of version 1")
    header = HEADER_1.pack(
        *(MAGIC, 1, size, len(uuid), first, len(offsets), strings_at, len(table)), uuid.ljust(MAX_UUID, b"\0")
    )
    info = (places + records_at).astype("<u4").tobytes()
    before = header + addresses.ljust(head - HEADER_1.size, b"\0") + info + files + table
    return before.ljust(records_at, b"\0") + records


def chosen(trees: InlineTrees, rows: Int64) -> InlineTrees:
    """Some of the functions, with their inlined calls."""
    counts = np.diff(trees.offset)[rows]
    calls = ranges(trees.offset[:-1][rows], counts)
    if len(rows) == len(trees.begin):
        return trees
    place = np.full(len(trees.call_node) + 1, -1, np.int32)
    place[calls] = np.arange(len(calls), dtype=np.int32)
    range_counts = np.diff(trees.range_offset)[calls]
    of_calls = ranges(trees.range_offset[:-1][calls], range_counts)
    return InlineTrees(
        begin=trees.begin[rows],
        end=trees.end[rows],
        first=trees.first[rows],
        last=trees.last[rows],
        node=trees.node[rows],
        offset=offsets_of(counts),
        call_node=trees.call_node[calls],
        call_depth=trees.call_depth[calls],
        call_parent=place[trees.call_parent[calls]],
        range_offset=offsets_of(range_counts),
        range_begin=trees.range_begin[of_calls],
        range_end=trees.range_end[of_calls],
    )


def encoded(
    listing: SymbolList, trees: InlineTrees, place_of: Int64, merged: tuple[Int64, UInt32]
) -> tuple[bytes, Int64]:
    """The records of all functions, and where each begins in them; `place_of` functions is that of their names."""
    row = np.searchsorted(listing.row_start, listing.start, side="right") - 1
    file = np.append(listing.row_file, np.int32(-1))[row]
    line = np.where(file >= 0, np.append(listing.row_line, np.uint32(0))[row], 0).astype(np.uint32)
    file_number = np.where(file < 0, len(listing.files), file).astype(np.int32)
    known = np.concatenate(([0], np.cumsum(file >= 0)))
    functions = np.zeros((4, len(trees.begin) + 1), np.int64)
    functions[0, :-1], functions[1, :-1], functions[2] = trees.first, trees.last, trees.offset
    # Readers look at inlined calls only where there is a line.
    functions[3, :-1] = (known[trees.last] > known[trees.first]) | (np.diff(trees.offset) > 0)
    node = trees.call_node
    calls = np.zeros((5, len(node)), np.int64)
    calls[0], calls[1], calls[2] = trees.call_depth, trees.call_parent, place_of[listing.node_function[node]]
    calls[3], calls[4] = listing.node_call_file[node] + 1, listing.node_call_line[node]
    names = place_of[listing.node_function[trees.node]].astype(np.uint32)
    rows = int((trees.last - trees.first).sum())
    size = MAX_FUNCTION * len(names) + MAX_ROW * rows + MAX_CALL * len(node) + MAX_RANGE * len(trees.range_begin)
    data = np.zeros(size + MAX_MERGED * len(merged[1]), np.uint8)
    places = np.zeros(len(names), np.int64)
    count = encode_functions(
        *views(listing.start, file_number, line, functions, trees.begin, trees.end, names, calls),
        *views(trees.range_offset, trees.range_begin, trees.range_end, *merged, data, places),
    )
    return data[:count].tobytes(), places


def merged_names(listing: SymbolList, trees: InlineTrees, places: Int64) -> tuple[Int64, UInt32]:
    """The further names of each function whose code is shared as a whole, CSR: where each is in the strings."""
    counts = np.zeros(len(trees.begin), np.int64)
    if not len(places):
        return offsets_of(counts), np.zeros(0, np.uint32)
    shared = listing.shared
    row = np.searchsorted(shared.begin, trees.begin)
    begin, end = (np.append(column, np.uint64(0))[row] for column in (shared.begin, shared.end))
    found = np.flatnonzero((begin == trees.begin) & (end == trees.end))
    names, known = [], listing.names()
    for function, group in zip(found.tolist(), row[found].tolist(), strict=True):
        own = known[int(listing.node_function[trees.node[function]])]
        first, last = int(shared.offset[group]), int(shared.offset[group + 1])
        others = [i for i in range(first, last) if shared.names[i] not in (b"", own)]
        names += places[others].tolist()
        counts[function] = len(others)
    return offsets_of(counts), np.array(names, np.uint32)


def split_path(path: bytes) -> tuple[bytes, bytes]:
    """Folder and base name, which readers put a slash between."""
    folder, slash, base = path.rpartition(b"/")
    return folder or slash, base


def joined(text: UInt8, offset: UInt64) -> bytes:
    """The strings, each with a NUL behind it."""
    data, ends = text.tobytes(), offset.tolist()
    return b"".join(data[begin:end] + b"\0" for begin, end in pairwise(ends))


def padded(size: int, alignment: int) -> int:
    """The next multiple of `alignment`."""
    return -(-size // alignment) * alignment
