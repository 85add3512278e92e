"""Lists of functions as columns."""

from dataclasses import field
from typing import Self

import numpy as np

from symbolize.core.arrays import Int32, UInt32, UInt64
from symbolize.core.records import record


@record
class SharedNames:
    """Code that several functions share, as identical code folding leaves it: those of `[begin[i], end[i])`, ascending
    and disjoint, are `names[offset[i]:offset[i + 1]]`."""

    begin: UInt64
    end: UInt64
    offset: UInt64
    names: list[bytes]

    @classmethod
    def none(cls) -> Self:
        """No code is shared."""
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(1, np.uint64), [])


@record
class SymbolList:
    """Functions, inlined functions and lines by address, from a source that is neither DWARF nor an ELF symbol table.

    Two layers of disjoint ranges, ascending, each up to the start of the next: at `[start[i], start[i + 1])` the
    innermost function is node `node[i]` (-1: none), at `[row_start[i], row_start[i + 1])` the line is `row_line[i]` (0:
    unknown) of file `row_file[i]` (-1: unknown).

    Nodes, parents before children, have the node around them (-1: none), the row of their function, and file (-1:
    unknown) and line of the call. Functions have a linkage name or else a readable one (the other is empty), and a
    declaration. `files` are paths, `shared` is code of several functions, `problems` are sentences about what is
    unreadable.
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
    shared: SharedNames = field(default_factory=SharedNames.none)
    problems: list[str] = field(default_factory=list)

    def function_ranges(self) -> tuple[UInt64, UInt64]:
        """Begins, ascending, and ends of what each outermost function covers."""
        root = self.node.astype(np.int64)
        inner = np.flatnonzero(root >= 0)
        while len(inner):
            parent = self.node_parent[root[inner]]
            inner, parent = inner[parent >= 0], parent[parent >= 0]
            root[inner] = parent
        is_first = np.append(True, root[1:] != root[:-1]) if len(root) else np.zeros(0, np.bool_)
        begin, root = self.start[is_first], root[is_first]
        end = np.append(begin[1:], begin[-1:])
        return begin[root >= 0], end[root >= 0]

    @classmethod
    def of_functions(cls, begin: UInt64, end: UInt64, linkage: list[bytes]) -> Self:
        """Functions `linkage[i]` at `[begin[i], end[i])`, ascending, disjoint, without lines; empty ones are left
        out."""
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
