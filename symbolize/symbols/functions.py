"""Functions of a table: their names and declarations."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt32
from symbolize.core.string_array import StringArray

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


def texts_of(names: Sequence[bytes], rows: Int64) -> list[bytes]:
    """Some texts of a table, all at once where they are columns."""
    return names.take(rows) if isinstance(names, StringArray) else [names[row] for row in rows.tolist()]
