"""Functions of a table: their names and declarations; calls between them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt32, UInt64
from symbolize.core.string_array import StringArray
from symbolize.elf.plt import MARK
from symbolize.names import function_key, split_suffix

UNKNOWN = b"??"
"""The name of a function whose name is unknown, so that the stack keeps its depth."""


@dataclass(eq=False)
class FunctionNames:
    """Functions, a row each: `linkage` and qualified `name`, of which either may be empty, `decl_file`, an index into
    the table's files (-1: unknown), and `decl_line`. `known` caches what is derived from the names."""

    linkage: Sequence[bytes]
    name: Sequence[bytes]
    decl_file: Int32
    decl_line: UInt32
    known: dict[Any, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.linkage)

    def take(self, rows: Int64) -> "FunctionNames":
        """The functions of some rows, with their names read."""
        return FunctionNames(
            texts_of(self.linkage, rows), texts_of(self.name, rows), self.decl_file[rows], self.decl_line[rows]
        )

    def unnamed(self) -> Bool:
        """Which functions are there without a name that could be read."""
        return np.array([name == UNKNOWN for name in self.name], np.bool_)


class Function(NamedTuple):
    """A function as the debug information has it: linkage name and qualified name, of which either may be empty; path
    and line of its declaration (empty and 0: unknown)."""

    linkage: bytes
    name: bytes
    path: bytes
    line: int


def name_key(function: Function) -> bytes:
    """The name of a function, however it is spelled."""
    return function_key(function.linkage) if function.linkage else function.name


def spellings_of(linked: bytes, text: bytes) -> set[bytes]:
    """The names by which `name_key` may know the function `linked`, whose readable name is `text`. gcc gives local
    functions of C++ no linkage name (R6, names from symbols). What calls a function by the linkage table calls it."""
    linked, text = linked.removesuffix(MARK), text.removesuffix(MARK)
    return {function_key(linked), linked, split_suffix(linked)[0], text}


@dataclass(eq=False)
class Calls:
    """Calls, a row each, by where they return to: `return_vaddr` ascends, and several rows may have one.

    `caller` and `callee` are rows of `functions`; the callee is -1 where the function is called by a pointer.
    """

    return_vaddr: UInt64
    caller: Int64
    callee: Int64
    functions: list[Function]

    @classmethod
    def none(cls) -> Self:
        """No calls, as of a binary without debug information."""
        nothing = np.zeros(0, np.int64)
        return cls(np.zeros(0, np.uint64), nothing, nothing, [])


class LocationCalls(NamedTuple):
    """The calls at some locations, CSR: those of the i-th are `[offsets[i], offsets[i + 1])`, several where functions
    with calls there share their code. `caller` and `callee` are rows of `functions`; the callee is -1 where it is
    called by a pointer."""

    offsets: Int64
    caller: Int64
    callee: Int64
    functions: list[Function]


def texts_of(names: Sequence[bytes], rows: Int64) -> list[bytes]:
    """Some texts of a table, all at once where they are columns."""
    return names.take(rows) if isinstance(names, StringArray) else [names[row] for row in rows.tolist()]
