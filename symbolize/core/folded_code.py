"""Code of a binary that several functions share, as linkers and compilers leave it that fold equal functions."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from posixpath import basename
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import UInt64


class FoldingEvidence(IntEnum):
    """Why functions are taken to share code, as tables have it."""

    NAMES = 1
    """Names of symbols."""
    DEFINITIONS = 2
    """Definitions in .debug_info."""
    LINES = 3
    """Line tables."""

    @property
    def text(self) -> str:
        """The evidence in words."""
        return ("symbols", "debug information", "line tables")[self - 1]


def declaration(path: bytes, line: int) -> tuple[bytes, int]:
    """Where a function is declared, to compare: name of the file and line. Headers may have several paths."""
    return basename(path), line


class FoldedFunction(NamedTuple):
    """One of several functions with the same code: linkage name, or qualified name of one that is not linked by a name
    of its own, and path and line of its declaration (empty and 0: unknown)."""

    name: bytes
    path: bytes = b""
    line: int = 0

    @property
    def declared(self) -> tuple[bytes, int]:
        """Its `declaration`."""
        return declaration(self.path, self.line)


class FoldedCode(NamedTuple):
    """Code that several functions share: vaddrs `[begin, end)`. The first function is the one that is shown where DWARF
    does not decide."""

    begin: int
    end: int
    evidence: FoldingEvidence
    functions: list[FoldedFunction]


Callers = Callable[[Sequence[FoldedCode]], UInt64]
"""Gives the vaddrs, ascending, of the calls that led into shared code."""


def no_callers(folded: Sequence[FoldedCode]) -> UInt64:
    """The calls that led into shared code where none is known."""
    return np.zeros(0, np.uint64)
