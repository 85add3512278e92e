"""Which code units claim by the ranges of their roots, and where code outside of that counts (rules R61, R255)."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symbolize.dwarf.cover import Cover, Pieces
from symbolize.dwarf.files import Lines
from symbolize.dwarf.live import clip_to_code, united
from symbolize.dwarf.reader import Reader
from symbolize.dwarf.sections import holds_code

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

ASSEMBLY = 0x8001
"""DW_LANG_Mips_Assembler, the language of units that an assembler describes."""

FIRST_WITH_RANGES = 3
"""The version of DWARF from which on a root can claim several ranges."""


@dataclass(eq=False)
class Claims:
    """The live ranges of the roots: begin, end, unit.

    A unit whose claims are all of its code is certain: what it has outside of them does not count. Of `uncertain` ones
    it counts where no function of a unit is that claims the place (rule R255).
    """

    begin: UInt64
    end: UInt64
    unit: Int64
    uncertain: Bool

    @cached_property
    def by_unit(self) -> Cover:
        """The claims of each unit."""
        return Cover(self.begin, self.end, self.unit, len(self.uncertain))

    def units_for(self, vaddrs: UInt64) -> Int64:
        """The units that claim any of `vaddrs` (ascending)."""
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
        begin, end = united(self.begin, self.end)
        at = np.searchsorted(begin, vaddrs, side="right") - 1
        return (at >= 0) & (vaddrs < np.append(end, np.uint64(0))[at])

    def cut_ranges(self, begin: UInt64, end: UInt64, unit: Int64, problems: list[str]) -> Pieces | None:
        """Ranges of functions of `unit` (-1: not to be cut) cut at the claims; what does not count is left out.

        None if all lies in the claims.
        """
        pieces = self.by_unit.cut(begin, end, unit, problems)
        if pieces is None:
            return None
        return pieces.take(pieces.inside | self.uncertain[unit[pieces.source]])

    def cut_lines(self, lines: Lines, problems: list[str]) -> Lines:
        """Line sequences cut at the claims of all units that have their program; what does not count is left out."""
        pieces = self._by_program(lines).cut(lines.begin, lines.end, lines.program, problems)
        if pieces is None:
            return lines
        uncertain = np.zeros(len(lines.unit_of_program), np.bool_)
        uncertain[lines.program_of_unit[self.uncertain & (lines.program_of_unit >= 0)]] = True
        return lines_of(lines, pieces.take(pieces.inside | uncertain[lines.program[pieces.source]]))

    def _by_program(self, lines: Lines) -> Cover:
        """The claims of the units of each line program."""
        program = lines.program_of_unit[self.unit]
        known = program >= 0
        return Cover(self.begin[known], self.end[known], program[known], len(lines.unit_of_program))


def lines_of(lines: Lines, pieces: Pieces) -> Lines:
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

    Uncertain are units that claim nothing usable, those whose version of DWARF knows one range for a root only, and
    those that an assembler describes, some of which forget the last section.
    """
    units = reader.units
    begin, end, unit = ranges
    alone = (np.asarray(units.version)[unit] < FIRST_WITH_RANGES) & (begin == np.asarray(units.low_pc)[unit])
    live, begin, end = clip_to_code(begin, end, code)
    uncertain = np.ones(len(units.offset), np.bool_)
    uncertain[unit[live]] = False
    uncertain[unit[alone]] = True
    uncertain[np.asarray(units.language) == ASSEMBLY] = True
    uncertain &= holds_code(np.asarray(units.kind)) & (np.asarray(units.bad) == 0)
    return Claims(begin, end, unit[live], uncertain)
