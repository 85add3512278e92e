"""A symbol table as a list of functions, to be written in the formats of other tools."""

import numpy as np

from symbolize.core.string_array import StringArray
from symbolize.symbol_files.symbol_list import SharedNames, SymbolList
from symbolize.symbols.table import SymbolTable


def listing_of(table: SymbolTable) -> SymbolList:
    """All that a whole table knows of functions, inlined functions, lines and code that functions share.

    A function has its linkage name or else its readable one, as lists have. Columns are not part of a list.
    """
    start = table.starts()
    node, file, line, _ = table.leaves(start)
    functions = table.functions
    linkage = list(functions.linkage)
    return SymbolList(
        start=start,
        node=node,
        row_start=start,
        row_file=file,
        row_line=np.where(file >= 0, line, 0).astype(np.uint32),
        node_parent=table.node_parent,
        node_function=table.node_function,
        node_call_file=table.node_call_file,
        node_call_line=table.node_call_line,
        function_linkage=linkage,
        function_name=[b"" if known else name for known, name in zip(linkage, functions.name, strict=True)],
        function_decl_file=functions.decl_file,
        function_decl_line=functions.decl_line,
        files=list(table.files),
        shared=SharedNames(
            table.folded_begin,
            table.folded_end,
            table.folded_offset,
            list(StringArray(table.text, table.text_offset, table.folded_name)),
        ),
    )
