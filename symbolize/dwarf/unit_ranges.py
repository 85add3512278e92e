"""Which code units claim by the ranges of their roots, and where code outside of that counts (R61, units by root
ranges; R255, claims of units)."""

from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt64
from symbolize.core.ranges import Cover, Pieces, clip_to, inside
from symbolize.core.records import record
from symbolize.dwarf.constants import DW_LANG_Mips_Assembler
from symbolize.dwarf.files import LineRows
from symbolize.dwarf.reader import Reader
from symbolize.dwarf.sections import holds_code

FIRST_WITH_RANGES = 3
"""The version of DWARF from which on a root can claim several ranges."""


@record
class Claims:
    """The live ranges of the roots: begin, end, unit.

    Code of a unit outside of its claims is ignored. That of `uncertain` units counts where no function of a unit is
    that claims the address (R255, claims of units). `outside` are the claims of each unit that begin outside of code.
    So the answer for an address depends on the binary alone, not on what else is asked.
    """

    begin: UInt64
    end: UInt64
    unit: Int64
    uncertain: Bool
    outside: Cover

    @cached_property
    def by_unit(self) -> Cover:
        """The claims of each unit."""
        return Cover(self.begin, self.end, self.unit, len(self.uncertain))

    def units_for(self, vaddrs: UInt64) -> Int64:
        """The units that claim any of `vaddrs` (ascending).

        `.debug_aranges` is not read: units without an entry there have code too (R59, no aranges), and what is damaged
        there does no harm (R60, damaged aranges).
        """
        first, last = np.searchsorted(vaddrs, self.begin), np.searchsorted(vaddrs, self.end)
        chosen = np.zeros(len(self.uncertain), np.bool_)
        chosen[self.unit[first < last]] = True
        return np.flatnonzero(chosen)

    def uncertain_units(self) -> Int64:
        """The units that may have code that they do not claim."""
        return np.flatnonzero(self.uncertain)

    def hold(self, vaddrs: UInt64, units: Int64) -> Bool:
        """Whether each of `units` claims the address beside it."""
        return self.by_unit.hold(vaddrs, units)

    def anywhere(self, vaddrs: UInt64) -> Bool:
        """Whether any unit claims each of `vaddrs`."""
        return inside(vaddrs, self.begin, self.end)

    def cut_ranges(self, begin: UInt64, end: UInt64, unit: Int64, problems: list[str]) -> Pieces | None:
        """Ranges of functions of `unit` (-1: whole) cut at the claims, without those that do not count; None if all are
        claimed."""
        pieces = cut_at(self.by_unit, begin, end, unit, problems)
        if pieces is None:
            return None
        return pieces.take(pieces.inside | self.uncertain[unit[pieces.source]])

    def cut_lines(self, lines: LineRows, problems: list[str]) -> LineRows:
        """Line sequences cut at the claims of all units that have their program; what does not count is left out."""
        pieces = cut_at(self._by_program(lines), lines.begin, lines.end, lines.program, problems)
        if pieces is None:
            return lines
        uncertain = np.zeros(len(lines.unit_of_program), np.bool_)
        uncertain[lines.program_of_unit[self.uncertain & (lines.program_of_unit >= 0)]] = True
        return lines_of(lines, pieces.take(pieces.inside | uncertain[lines.program[pieces.source]]))

    def _by_program(self, lines: LineRows) -> Cover:
        """The claims of the units of each line program."""
        program = lines.program_of_unit[self.unit]
        known = program >= 0
        return Cover(self.begin[known], self.end[known], program[known], len(lines.unit_of_program))


def cut_at(cover: Cover, begin: UInt64, end: UInt64, owner: Int64, problems: list[str]) -> Pieces | None:
    """Cut ranges at the borders of `cover`, as `Cover.cut` does."""
    pieces = cover.cut(begin, end, owner)
    if pieces is not None and not pieces.complete:
        problems.append("the ranges that units claim are absurdly fragmented; some functions may be missing")
    return pieces


def lines_of(lines: LineRows, pieces: Pieces) -> LineRows:
    """`lines` with pieces of its sequences."""
    source = pieces.source
    return replace(
        lines,
        begin=pieces.begin,
        end=pieces.end,
        first_row=lines.first_row[source],
        last_row=lines.last_row[source],
        program=lines.program[source],
        claimed=lines.claimed[source] & pieces.inside,
    )


def claims_of(ranges: tuple[UInt64, UInt64, Int64], code: tuple[UInt64, UInt64], reader: Reader) -> Claims:
    """The claims of the units of `reader` by the ranges of their roots: begin, end, unit.

    Uncertain are units that claim nothing usable, those of a DWARF with one range for a root, and those of assemblers,
    some of which forget the last section. With `-gstrict-dwarf` the one range of a unit of DWARF 2 is `.text`, whatever
    other sections the unit has.
    """
    units = reader.units
    begin, end, unit = ranges
    alone = (np.asarray(units.version)[unit] < FIRST_WITH_RANGES) & (begin == np.asarray(units.low_pc)[unit])
    outside = np.ones(len(unit), np.bool_)
    live, live_begin, live_end = clip_to(begin, end, code)
    outside[live] = False
    dead = Cover(begin[outside], end[outside], unit[outside], len(units.offset))
    uncertain = np.ones(len(units.offset), np.bool_)
    uncertain[unit[live]] = False
    uncertain[unit[alone]] = True
    uncertain[np.asarray(units.language) == DW_LANG_Mips_Assembler] = True
    uncertain &= holds_code(np.asarray(units.kind)) & (np.asarray(units.bad) == 0)
    return Claims(live_begin, live_end, unit[live], uncertain, dead)


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
