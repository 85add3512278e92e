"""What a list of functions says of addresses, as columns."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from symbolize.core.arrays import Int32, UInt32, UInt64


@dataclass(eq=False)
class SymbolList:
    """Functions, inlined functions and lines by address, from a source that is neither DWARF nor an ELF symbol table.

    Two layers of disjoint ranges, each range up to the start of the next: in `[start[i], start[i + 1])` the innermost
    function is node `node[i]` (-1: none), in `[row_start[i], row_start[i + 1])` the place is line `row_line[i]` (0:
    unknown) of file `row_file[i]` (-1: unknown). Starts ascend and differ.

    Nodes are functions and inlined functions, parents before children: the node it is inlined into (-1: none), the
    row of its function, and file (-1: unknown) and line of the call. Functions have a name as linked, or a readable one
    where there is no such thing (the other is empty), and the place of their declaration. Files are paths.
    `problems` says, a sentence each, what could not be read.
    """

    start: UInt64
    node: Int32
    row_start: UInt64
    row_file: Int32
    row_line: UInt32
    node_parent: Int32
    node_function: Int32
    node_call_file: Int32
    node_call_line: UInt32
    function_linkage: list[bytes]
    function_name: list[bytes]
    function_decl_file: Int32
    function_decl_line: UInt32
    files: list[bytes] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of_functions(cls, begin: UInt64, end: UInt64, linkage: list[bytes]) -> Self:
        """Functions without lines: function `i` is called `linkage[i]` and lies in `[begin[i], end[i])`.

        The ranges ascend and are disjoint; empty ones are left out.
        """
        rows = np.flatnonzero(end > begin).astype(np.int32)
        begin, end = begin[rows], end[rows]
        gap = np.append(begin[1:], np.uint64(0)) != end
        start = np.concatenate((begin, end[gap]))
        order = np.argsort(start, kind="stable")
        node = np.concatenate((rows, np.full(int(gap.sum()), -1, np.int32)))[order]
        count = len(linkage)
        return cls(
            start=start[order],
            node=node,
            row_start=np.zeros(0, np.uint64),
            row_file=np.zeros(0, np.int32),
            row_line=np.zeros(0, np.uint32),
            node_parent=np.full(count, -1, np.int32),
            node_function=np.arange(count, dtype=np.int32),
            node_call_file=np.full(count, -1, np.int32),
            node_call_line=np.zeros(count, np.uint32),
            function_linkage=linkage,
            function_name=[b""] * count,
            function_decl_file=np.full(count, -1, np.int32),
            function_decl_line=np.zeros(count, np.uint32),
        )
