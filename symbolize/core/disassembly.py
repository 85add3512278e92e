"""Machine code of functions as a page shows it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from symbolize.core.arrays import Float64, Int64


class Instruction(NamedTuple):
    """An instruction, or bytes that are none: `.byte`. Its innermost source line, and the function that was inlined
    there, are empty or 0 where unknown."""

    vaddr: int
    size: int
    text: str
    file: str = ""
    line: int = 0
    inlined: str = ""


class CodeBlock(NamedTuple):
    """The code of a function, or of one of its parts, from `begin` up to `end`: vaddrs in a file called `file`. `rows`
    are the locations of the profile in it, in the `instructions` at `places`."""

    file: str
    begin: int
    end: int
    instructions: Sequence[Instruction]
    rows: Int64
    places: Int64


class Disassembly(NamedTuple):
    """The functions in which a profile has most value of their own, the heaviest first, and sentences on what is
    missing."""

    blocks: Sequence[CodeBlock]
    missing: Sequence[str]


Disassembler = Callable[[Float64], Disassembly]
"""Gives the code at the locations of a profile with the largest of these values, one a location."""
