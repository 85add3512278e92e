"""The symbol table of a binary whose functions come from a listing; symbols fill the gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from symbolize.core.arrays import Bool, UInt64, distinct_inverse, layer_at
from symbolize.core.folded_code import Callers, FoldingEvidence, no_callers
from symbolize.core.string_table import StringTable
from symbolize.elf import ElfImage
from symbolize.symbols.answer import Answer, Asked, in_order, table_answer
from symbolize.symbols.elf_symbols import SymbolLayer, symbol_layer
from symbolize.symbols.functions import FunctionNames
from symbolize.symbols.naming import choose_names
from symbolize.symbols.range_table import encode, merge_layers
from symbolize.symbols.table import SymbolTable

if TYPE_CHECKING:
    from symbolize.symbol_files import SymbolList

ANY = b"[...]"
"""The placeholder for type arguments in the line table of Go."""


def with_type_arguments(listing: SymbolList, symbols: SymbolLayer) -> SymbolList:
    """The listing of a Go program with the names of generic functions completed where symbols know them (R121, Go line
    table)."""
    generic = np.array([ANY in name for name in listing.function_name], np.bool_)
    here = np.flatnonzero(listing.node >= 0)
    here = here[generic[listing.node_function[listing.node[here]]] & (listing.node_parent[listing.node[here]] < 0)]
    symbol = layer_at(symbols.start, symbols.symbol, listing.start[here])
    node_function, names = listing.node_function.copy(), list(listing.function_name)
    rows = list(range(len(names)))
    numbers: dict[tuple[int, bytes], int] = {}
    for node, text in zip(
        listing.node[here[symbol >= 0]].tolist(), symbols.names.take(symbol[symbol >= 0]), strict=True
    ):
        function = int(node_function[node])
        head, _, tail = listing.function_name[rows[function]].partition(ANY)
        if function < len(generic) and text.startswith(head + b"[") and text.endswith(b"]" + tail):
            if (function, text) not in numbers:
                numbers[function, text] = len(names)
                names.append(text)
                rows.append(function)
            node_function[node] = numbers[function, text]
    return replace(
        listing,
        node_function=node_function,
        function_linkage=[listing.function_linkage[row] for row in rows],
        function_name=names,
        function_decl_file=listing.function_decl_file[rows],
        function_decl_line=listing.function_decl_line[rows],
    )


def symbol_list_table(listing: SymbolList, symbols: SymbolLayer) -> SymbolTable:
    """The table of everything that `listing` has; where it has no function, a symbol answers."""
    nodes, rows = (listing.start, listing.node.astype(np.int64)), (listing.row_start, np.arange(len(listing.row_start)))
    start, node, row, symbol = merge_layers(nodes, rows, (symbols.start, symbols.symbol))
    count = len(start)
    file, line = np.full(count, -1, np.int32), np.zeros(count, np.uint32)
    at = np.flatnonzero((node >= 0) & (row >= 0))
    at = at[listing.row_file[row[at]] >= 0]  # a line without a file is useless
    file[at], line[at] = listing.row_file[row[at]], listing.row_line[row[at]]
    alone = np.flatnonzero((node < 0) & (symbol >= 0))
    wanted, of_range = distinct_inverse(symbol[alone].astype(np.int64))
    none = FunctionNames([], [], np.zeros(0, np.int32), np.zeros(0, np.uint32))
    chosen = choose_names(np.full(len(wanted), -1, np.int64), wanted, none, symbols)
    node[alone] = len(listing.node_parent) + of_range
    file[alone] = len(listing.files) + symbols.file[wanted[of_range]]
    pool = StringTable()
    paths = pool.add_all([*listing.files, *symbols.files])
    file[file >= 0] = np.where(paths[file[file >= 0]] > 0, file[file >= 0], -1)
    linkage = pool.add_all([*listing.function_linkage, *chosen.linkage])
    name = pool.add_all([*listing.function_name, *chosen.name])
    name[: len(listing.function_name)][linkage[: len(listing.function_name)] > 0] = 0
    shared = listing.shared
    shared_names = pool.add_all(shared.names)
    blocks = encode(start, node, file, line, np.zeros(count, np.uint32))
    text, text_offset = pool.columns()
    more = len(wanted)
    return SymbolTable(
        block_start=blocks.start,
        block_offset=blocks.offset,
        ranges=blocks.data,
        node_parent=np.concatenate((listing.node_parent, np.full(more, -1, np.int32))),
        node_function=np.concatenate(
            (listing.node_function, len(listing.function_linkage) + np.arange(more, dtype=np.int32))
        ).astype(np.int32),
        node_call_file=np.concatenate((listing.node_call_file, np.full(more, -1, np.int32))),
        node_call_line=np.concatenate((listing.node_call_line, np.zeros(more, np.uint32))),
        node_call_column=np.zeros(len(listing.node_parent) + more, np.uint16),
        function_linkage=linkage,
        function_name=name,
        function_decl_file=np.concatenate((listing.function_decl_file, chosen.decl_file)),
        function_decl_line=np.concatenate((listing.function_decl_line, chosen.decl_line)),
        file_path=paths,
        text=text,
        text_offset=text_offset,
        folded_begin=shared.begin,
        folded_end=shared.end,
        folded_offset=shared.offset,
        folded_evidence=np.full(len(shared.begin), FoldingEvidence.DEFINITIONS, np.uint8),
        folded_name=shared_names,
        folded_path=np.zeros(len(shared_names), np.uint32),
        folded_line=np.zeros(len(shared_names), np.uint32),
        has_names=len(linkage) > 0,
        problems=list(listing.problems),
    )


class SymbolListBinary:
    """A binary whose functions come from a list, the file `path`: it has no image, and vaddrs are those of the list."""

    images: Sequence[ElfImage] = ()
    is_stripped = is_android_linker = False
    has_whole = True

    def __init__(self, path: str, listing: SymbolList) -> None:
        self.path = path
        self._listing = listing
        self._table: SymbolTable | None = None

    def table(self, vaddrs: UInt64 | None = None, callers: Callers | None = None) -> SymbolTable:
        """The symbol table of all that is listed."""
        if self._table is None:
            self._table = symbol_list_table(self._listing, symbol_layer([]))
        return self._table

    def answer(
        self, vaddrs: ArrayLike, *, nearest_line: bool = False, tables: object = None, callers: Callers = no_callers
    ) -> Answer:
        """As `Binary.answer`; no tables are made ahead of lists."""
        return in_order(vaddrs, lambda asked: table_answer(self, Asked(asked, no_callers, nearest_line)))

    def is_loaded(self, vaddrs: UInt64) -> Bool:
        """All of `vaddrs`: a list has no segments."""
        return np.ones(len(vaddrs), np.bool_)

    def function_starts(self, vaddrs: UInt64) -> UInt64:
        """None: what is not listed is no function."""
        return np.zeros(len(vaddrs), np.uint64)

    def check(self) -> None:
        """Nothing: the list was read whole."""

    table_again = table

    def covers(self, vaddrs: UInt64) -> Bool:
        """Which of `vaddrs` a function of the list covers."""
        return layer_at(self._listing.start, self._listing.node.astype(np.int64), vaddrs) >= 0

    def names_at(self, vaddrs: UInt64) -> list[bytes]:
        """The linked name of the outermost function at each of `vaddrs`, empty where there is none."""
        listing = self._listing
        node = layer_at(listing.start, listing.node.astype(np.int64), vaddrs)
        function = np.where(node >= 0, listing.node_function[node], -1)
        return [listing.function_linkage[row] if row >= 0 else b"" for row in function.tolist()]
