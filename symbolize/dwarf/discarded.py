"""Discarded code that begins where live code is (R54, discarded code; R55, address 0)."""

from typing import Protocol

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt64
from symbolize.dwarf.files import LineRows
from symbolize.dwarf.unit_ranges import Claims


class Witness(Protocol):
    """Says what the symbols know of code that may be discarded."""

    def of_functions(self, dies: UInt64, begin: UInt64, end: UInt64) -> Int64:
        """1 for each function, by DIE and range, that a symbol names, -1 where there are symbols and none does, else
        0."""

    def of_sequences(self, end: UInt64, program: Int64) -> Bool:
        """Which line sequences that begin at address 0, by end and program, are those of the code there."""


def are_discarded(
    claims: Claims, witness: Witness, dies: UInt64, ranges: tuple[UInt64, UInt64], unit: Int64, lines: LineRows | None
) -> Bool:
    """Which functions are discarded, by DIE, range that begins in code, and unit.

    In doubt are those in ranges that their unit claims outside of code, as gold places a discarded section at 0; those
    that begin at 0; and those that neither the claims nor the lines of their unit have. They are not what symbols say,
    and of the first, where these say nothing, those are not that neither other claims nor lines have. The second
    function of a section at 0 may lie in live code. A function in doubt is live if a symbol with its name begins where
    it does and, if it has a size, has the same. It is dead if one begins elsewhere in it, or another one with a size
    covers its begin. Where there are no symbols those in a range outside of code are live if another range that the
    unit claims, or a line sequence, holds them, and those at 0 always (R54, discarded code; R55, address 0).
    """
    begin, end = ranges
    misplaced = claims.outside.hold(begin, unit)
    result: Bool = misplaced | (begin == 0) | claims.uncertain[unit]
    rows = np.flatnonzero(result)
    if not len(rows):
        return result
    begin, end, unit, misplaced = begin[rows], end[rows], unit[rows], misplaced[rows]
    known = claims.hold(begin, unit) & claims.hold(end - np.minimum(end, np.uint64(1)), unit)
    doubtful = misplaced | (begin == 0)
    if lines is not None:
        known |= lines.cover(begin, unit)
        doubtful |= ~known & (lines.program_of_unit[unit] >= 0)
    result[rows] = False
    rows, misplaced, known = rows[doubtful], misplaced[doubtful], known[doubtful]
    verdict = witness.of_functions(dies[rows], begin[doubtful], end[doubtful])
    result[rows] = (verdict < 0) | ((verdict == 0) & misplaced & ~known)
    return result
