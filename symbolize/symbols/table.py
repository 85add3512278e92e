"""The symbol table of one binary: flat arrays, and their bulk lookup."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import (
    Bool,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    distinct,
    distinct_inverse,
    offsets_of,
    ranges,
    views,
)
from symbolize.core.errors import ReadFailure
from symbolize.core.folded_code import FoldedCode, FoldedFunction, FoldingEvidence
from symbolize.core.mapped import MappedFile
from symbolize.core.records import record
from symbolize.core.string_array import StringArray, joined_arrays
from symbolize.symbols.functions import Calls, Function, FunctionNames
from symbolize.symbols.range_table import LeafColumns, TableNodes, TableRanges, count_frames, fill_frames, lookup


class Leaves(NamedTuple):
    """Node (-1: none), file (-1: unknown), line and column (0: unknown) at some addresses."""

    node: Int32
    file: Int32
    line: UInt32
    column: UInt32


@dataclass(eq=False)
class Frames:
    """The frames at n addresses, CSR: those of address `i` are `[offsets[i], offsets[i + 1])`, innermost first.

    `function` is a row of `functions`, `file` an index into `files` (-1: unknown); line and column 0 are unknown.
    `folded`: whether several distinct functions share the code of the outermost one.

    Column 0 is unknown in line rows too (R40, column 0).
    """

    offsets: Int64
    function: Int32
    file: Int32
    line: UInt32
    column: UInt32
    functions: FunctionNames
    files: Sequence[bytes]
    folded: Bool

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<Frames: {len(self.function):,} at {len(self):,} addresses>"

    def take(self, rows: Int64) -> "Frames":
        """The frames at some of the addresses (indices of them, in any order, also several times)."""
        counts = np.diff(self.offsets)[rows]
        frames = ranges(self.offsets[:-1][rows], counts)
        function, file, line, column = self.function[frames], self.file[frames], self.line[frames], self.column[frames]
        folded = self.folded[rows]
        return Frames(offsets_of(counts), function, file, line, column, self.functions, self.files, folded)

    def outermost(self) -> "FunctionsAt":
        """The function that each address is in, whatever was inlined there."""
        number = np.full(len(self.offsets) - 1, -1, np.int64)
        has_frame = np.diff(self.offsets) > 0
        rows, index = distinct_inverse(self.function[self.offsets[1:][has_frame] - 1])
        number[has_frame] = index
        functions = self.functions.take(rows.astype(np.int64))
        return FunctionsAt(
            number, [[linked or name] for linked, name in zip(functions.linkage, functions.name, strict=True)]
        )


class FunctionsAt(NamedTuple):
    """The functions at n addresses: `number` is an index into `names` (-1: none), all names of each, preferably linkage
    names."""

    number: Int64
    names: list[list[bytes]]


def joined_frames(parts: Sequence[Frames]) -> Frames:
    """Frames at the addresses of several tables, one after another."""
    functions = np.cumsum([0, *(len(part.functions) for part in parts)]).tolist()
    files = np.cumsum([0, *(len(part.files) for part in parts)]).tolist()
    return Frames(
        offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
        np.concatenate([shifted(part.function, first) for part, first in zip(parts, functions, strict=False)]),
        np.concatenate([shifted(part.file, first) for part, first in zip(parts, files, strict=False)]),
        np.concatenate([part.line for part in parts]),
        np.concatenate([part.column for part in parts]),
        FunctionNames(
            joined_arrays([StringArray.of(part.functions.linkage) for part in parts]),
            joined_arrays([StringArray.of(part.functions.name) for part in parts]),
            np.concatenate([shifted(p.functions.decl_file, first) for p, first in zip(parts, files, strict=False)]),
            np.concatenate([part.functions.decl_line for part in parts]),
        ),
        joined_arrays([StringArray.of(part.files) for part in parts]),
        np.concatenate([part.folded for part in parts]),
    )


def shifted(numbers: Int32, first: int) -> Int32:
    """Numbers that count from `first` on, but -1, which stays."""
    return np.where(numbers >= 0, numbers + np.int32(first), numbers)


@record
class SymbolTable:
    """The DWARF and symbols of one binary, by ELF vaddr, as flat arrays.

    `ranges` are encoded (see `range_table`), in blocks from vaddr `block_start` and byte `block_offset` on. Nodes,
    parents before children, have the row of their function, the node they are inlined into (-1: none) and the call
    site. Functions have a linkage name, a qualified name (each 0 if unknown) and a declaration. Names and paths are
    string numbers, string `i` is `text[text_offset[i]:text_offset[i + 1]]`, string 0 empty. Files are rows of
    `file_path`, or -1.

    The code `[folded_begin[i], folded_end[i])` is shared by the functions `[folded_offset[i], folded_offset[i + 1])`:
    name, path and line (0: unknown), by `folded_evidence` (`FoldingEvidence`). Calls of them return to `call_return`,
    which ascends; `call_caller` and `call_callee` (-1: by a pointer) are rows of the functions `call_linkage` and so on
    (R355, described calls). At `doubtful` ranges a name may be
    missing because debug information is unreadable. `has_names`: the binary had DWARF or symbols. A table for certain
    addresses answers for those only. `file_size` are the bytes of its file, 0 if there is none; `file` is the one that
    the columns are mapped from.
    """

    block_start: UInt64
    block_offset: UInt64
    ranges: UInt8
    node_parent: Int32
    node_function: Int32
    node_call_file: Int32
    node_call_line: UInt32
    node_call_column: UInt16
    function_linkage: UInt32
    function_name: UInt32
    function_decl_file: Int32
    function_decl_line: UInt32
    file_path: UInt32
    text: UInt8
    text_offset: NDArray[Any]
    folded_begin: UInt64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    folded_end: UInt64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    folded_offset: UInt64 = field(default_factory=lambda: np.zeros(1, np.uint64))
    folded_evidence: UInt8 = field(default_factory=lambda: np.zeros(0, np.uint8))
    folded_name: UInt32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    folded_path: UInt32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    folded_line: UInt32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    call_return: UInt64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    call_caller: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    call_callee: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    call_linkage: UInt32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    call_name: UInt32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    call_path: UInt32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    call_line: UInt32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    doubtful_begin: UInt64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    doubtful_end: UInt64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    has_names: bool = True
    problems: list[str] = field(default_factory=list)
    file_size: int = 0
    file: MappedFile | None = field(default=None, repr=False)

    @property
    def has_changed(self) -> bool:
        """Whether the file that the table is read from was changed, so that no answer counts."""
        return self.file is not None and bool(self.file.problem)

    def check(self) -> None:
        """Raise ChangedFile if the file that the table is read from was changed."""
        if self.file is not None:
            self.file.check()

    def lookup(self, vaddrs: UInt64) -> Frames:
        """The frames at `vaddrs` (ELF vaddrs, ascending). An address that nothing covers has none."""
        leaves = self.leaves(vaddrs)
        offsets = np.zeros(len(vaddrs) + 1, np.int64)
        count_frames(*views(leaves.node, self.node_parent, offsets))
        total = int(offsets[-1])
        function, file = np.empty(total, np.int32), np.empty(total, np.int32)
        line, column = np.empty(total, np.uint32), np.empty(total, np.uint32)
        calls = self.node_call_file, self.node_call_line, self.node_call_column
        nodes = TableNodes(*views(self.node_parent, self.node_function, *calls))
        fill_frames(LeafColumns(*views(*leaves)), nodes, *views(offsets, function, file, line, column))
        folded = range_at(vaddrs, self.folded_begin, self.folded_end) >= 0
        return Frames(offsets, function, file, line, column, self.functions, self.files, folded)

    def leaves(self, vaddrs: UInt64) -> Leaves:
        """What the ranges say at `vaddrs`, in any order; ascending ones take one pass."""
        count = len(vaddrs)
        leaves = Leaves(
            np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.uint32), np.empty(count, np.uint32)
        )
        blocks = views(self.block_start, self.block_offset, self.ranges)
        ranges = TableRanges(len(self.node_parent), len(self.file_path), *blocks)
        lookup(ranges, *views(vaddrs), LeafColumns(*views(*leaves)))
        return leaves

    def folded(self, vaddrs: UInt64) -> Iterator[tuple[FoldedCode, Int64]]:
        """The code shared by several functions that `vaddrs` fall into, each with the indices of those that do."""
        rows = range_at(vaddrs, self.folded_begin, self.folded_end)
        for row in distinct(rows[rows >= 0]).tolist():
            chosen = np.arange(int(self.folded_offset[row]), int(self.folded_offset[row + 1]))
            names = StringArray(self.text, self.text_offset, self.folded_name).take(chosen)
            paths = StringArray(self.text, self.text_offset, self.folded_path).take(chosen)
            functions = [*map(FoldedFunction, names, paths, self.folded_line[chosen].tolist())]
            evidence = FoldingEvidence(int(self.folded_evidence[row]))
            code = FoldedCode(int(self.folded_begin[row]), int(self.folded_end[row]), evidence, functions)
            yield code, np.flatnonzero(rows == row)

    def calls(self) -> Calls:
        """The calls of functions that share code."""
        columns = (
            StringArray(self.text, self.text_offset, column)
            for column in (self.call_linkage, self.call_name, self.call_path)
        )
        functions = [Function(*each) for each in zip(*columns, self.call_line.tolist(), strict=True)]
        caller, callee = self.call_caller.astype(np.int64), self.call_callee.astype(np.int64)
        return Calls(self.call_return, caller, callee, functions)

    @cached_property
    def functions(self) -> FunctionNames:
        """The functions, a row each; their names are read when they are asked for."""
        return FunctionNames(
            StringArray(self.text, self.text_offset, self.function_linkage),
            StringArray(self.text, self.text_offset, self.function_name),
            self.function_decl_file,
            self.function_decl_line,
        )

    @property
    def files(self) -> StringArray:
        """The paths of files."""
        return StringArray(self.text, self.text_offset, self.file_path)

    def doubtful(self, vaddrs: UInt64) -> Bool:
        """Which of `vaddrs` (ascending) may lack a name because debug information could not be read."""
        return range_at(vaddrs, self.doubtful_begin, self.doubtful_end) >= 0


class FailedTable(ReadFailure):
    """The table of a binary could not be made: it took too long, too much memory, or the process with it."""


def range_at(vaddrs: UInt64, begin: UInt64, end: UInt64) -> Int64:
    """The range `[begin, end)` that holds each of `vaddrs`, or -1; the ranges ascend and are disjoint."""
    if not len(begin):
        return np.full(len(vaddrs), -1, np.int64)
    index = np.searchsorted(begin, vaddrs, side="right") - 1
    return np.where((index >= 0) & (vaddrs < end[np.maximum(index, 0)]), index, -1)
