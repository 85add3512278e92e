"""The symbol table of one binary: flat arrays, and their bulk lookup."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import views
from symbolize.symbols.naming import FunctionNames
from symbolize.symbols.seek import count_frames, fill_frames, seek

UInt64 = NDArray[np.uint64]
UInt32 = NDArray[np.uint32]
Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]


class Texts(Sequence[bytes]):
    """Strings by number: string `rows[i]` is `data[offsets[rows[i]]:offsets[rows[i] + 1]]`, read when asked for."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[Any], rows: NDArray[Any]) -> None:
        self._data = data.data
        self._offsets = offsets
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, row: int) -> bytes: ...
    @overload
    def __getitem__(self, row: slice) -> list[bytes]: ...
    def __getitem__(self, row: int | slice) -> bytes | list[bytes]:
        if isinstance(row, slice):
            return self.take(np.arange(*row.indices(len(self))))
        return self.take(np.array([row]))[0]

    def take(self, rows: NDArray[Any]) -> list[bytes]:
        """The strings of some rows."""
        strings = self._rows[rows]
        begins, ends = self._offsets[strings].tolist(), self._offsets[strings + 1].tolist()
        return [bytes(self._data[begin:end]) for begin, end in zip(begins, ends, strict=True)]


@dataclass(eq=False)
class Frames:
    """The frames at n addresses, CSR: those of address `i` are `[offsets[i], offsets[i + 1])`, innermost first.

    `function` is a row of `functions`, `file` an index into `files` (-1: unknown); line and column 0 are
    unknown. `folded` tells for each address whether several distinct functions share the code of its outermost
    one.
    """

    offsets: Int64
    function: Int32
    file: Int32
    line: UInt32
    column: UInt32
    functions: FunctionNames
    files: Sequence[bytes]
    folded: Bool


@dataclass(eq=False)
class SymbolTable:
    """What DWARF and symbol tables say of one binary, by ELF vaddr, as flat arrays.

    `ranges` are the packed ranges of vaddrs (see `lay`), each with a node and a line row, in blocks that start at
    vaddr `block_start` and byte `block_offset`. Nodes are functions and inlined functions, parents before
    children: the row of the function, the node it is inlined into (-1: none) and the call site. Functions have
    a linkage name, a qualified name (each 0 where there is none) and a declaration; names and the paths of files
    are string numbers, string `i` being `text[text_offset[i]:text_offset[i + 1]]`, and string 0 is empty.
    File columns of nodes and functions are rows of `file_path`, or -1.

    `folded_begin` and `folded_end` are the ranges of code that several distinct functions share.
    At `doubtful` ranges a name may be missing because debug information could not be read. `has_names` tells
    whether the binary had DWARF or symbols at all. A table that was built for certain addresses answers for those
    only.
    """

    block_start: UInt64
    block_offset: UInt64
    ranges: NDArray[np.uint8]
    node_parent: Int32
    node_function: Int32
    node_call_file: Int32
    node_call_line: UInt32
    node_call_column: NDArray[np.uint16]
    function_linkage: UInt32
    function_name: UInt32
    function_decl_file: Int32
    function_decl_line: UInt32
    file_path: UInt32
    text: NDArray[np.uint8]
    text_offset: NDArray[Any]
    folded_begin: UInt64
    folded_end: UInt64
    doubtful_begin: UInt64
    doubtful_end: UInt64
    has_names: bool = True
    problems: list[str] = field(default_factory=list)

    def lookup(self, vaddrs: UInt64) -> Frames:
        """The frames at `vaddrs` (ELF vaddrs, ascending). An address that nothing covers has none."""
        count = len(vaddrs)
        node, leaf_file = np.empty(count, np.int32), np.empty(count, np.int32)
        leaf_line, leaf_column = np.empty(count, np.uint32), np.empty(count, np.uint32)
        leaves = views(node, leaf_file, leaf_line, leaf_column)
        seek(*views(self.block_start, self.block_offset, self.ranges, vaddrs), *leaves)
        offsets = np.zeros(count + 1, np.int64)
        count_frames(*views(node, self.node_parent, offsets))
        total = int(offsets[-1])
        function, file = np.empty(total, np.int32), np.empty(total, np.int32)
        line, column = np.empty(total, np.uint32), np.empty(total, np.uint32)
        nodes = (
            self.node_parent,
            self.node_function,
            self.node_call_file,
            self.node_call_line,
            self.node_call_column,
        )
        fill_frames(*leaves, *views(*nodes, offsets, function, file, line, column))
        folded = inside(vaddrs, self.folded_begin, self.folded_end)
        return Frames(offsets, function, file, line, column, self.functions, self.files, folded)

    @property
    def functions(self) -> FunctionNames:
        """The functions, a row each; their names are read when they are asked for."""
        return FunctionNames(
            Texts(self.text, self.text_offset, self.function_linkage),
            Texts(self.text, self.text_offset, self.function_name),
            self.function_decl_file,
            self.function_decl_line,
        )

    @property
    def files(self) -> Texts:
        """The paths of files."""
        return Texts(self.text, self.text_offset, self.file_path)

    def doubtful(self, vaddrs: UInt64) -> Bool:
        """Which of `vaddrs` (ascending) may lack a name because debug information could not be read."""
        return inside(vaddrs, self.doubtful_begin, self.doubtful_end)


def inside(vaddrs: UInt64, begin: UInt64, end: UInt64) -> Bool:
    """Which of `vaddrs` lie in the ranges `[begin, end)`, which ascend and are disjoint; the last vaddr is in all."""
    if not len(begin):
        return np.zeros(len(vaddrs), np.bool_)
    place = np.searchsorted(begin, vaddrs, side="right") - 1
    result: Bool = (place >= 0) & (vaddrs < end[np.maximum(place, 0)])
    return result


class TextPool:
    """Strings by number, each once, in the order in which they come; string 0 is empty."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {b"": 0}

    def add(self, texts: Iterable[bytes]) -> UInt32:
        """The numbers of `texts`."""
        numbers = self._numbers
        return np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.uint32)

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """All strings behind one another, and where each begins."""
        text = np.frombuffer(b"".join(self._numbers), np.uint8)
        lengths = np.fromiter(map(len, self._numbers), np.int64, len(self._numbers))
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        return text, offsets.astype(np.uint32 if len(text) < 1 << 32 else np.uint64)
