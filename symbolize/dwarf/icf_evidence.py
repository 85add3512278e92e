"""What DWARF knows of shared code: all definitions of functions in chosen units, and which sequences begin where."""

from functools import cached_property
from typing import Final

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt32, UInt64, distinct, distinct_inverse, ranges
from symbolize.core.ranges import clip_to
from symbolize.core.records import record
from symbolize.core.string_array import StringArray
from symbolize.dwarf.columns import Ranges
from symbolize.dwarf.constants import NOWHERE, SOURCE_SHIFT
from symbolize.dwarf.decode import Dwarf
from symbolize.dwarf.die_walk import walk_definitions
from symbolize.dwarf.producers import producers_of
from symbolize.dwarf.qualify import resolve_functions, resolve_references
from symbolize.dwarf.reader import Reader
from symbolize.dwarf.unit_ranges import are_discarded

ONE_BY_ONE: Final = 64
"""Paths that are resolved one by one; then those of all functions, which costs about as much as so many."""


@record
class Definitions:
    """Definitions of functions, a row each, as `walk_definitions` finds them.

    `is_live`: whether the code is in the file (R54, discarded code); else `begin` is meaningless and `size` that of the
    discarded code, or 0. `path`, `line` and the unit `home` are those of the declaration (empty, 0, -1: unknown).
    """

    die: UInt64
    unit: Int64
    begin: UInt64
    size: UInt64
    is_live: Bool
    linkage: StringArray
    name: StringArray
    path: "Paths"
    line: list[int]
    home: Int64


class Paths:
    """The files in which functions are declared, by row; each is resolved when it is asked for, all when many are."""

    def __init__(self, dwarf: Dwarf, unit: Int64, file: UInt32) -> None:
        self._dwarf, self._unit, self._file = dwarf, unit, file
        self._asked = 0

    def __getitem__(self, row: int) -> bytes:
        unit = int(self._unit[row])
        if unit < 0:
            return b""
        self._asked += 1
        if self._asked > ONE_BY_ONE:
            paths, number_of = self._all
            return paths[int(number_of[row])]
        return self._dwarf.path(unit, int(self._file[row]), False)

    @cached_property
    def _all(self) -> tuple[list[bytes], Int64]:
        """The distinct paths, the last of which is empty, and which of them is that of each row."""
        rows = np.flatnonzero(self._unit >= 0)
        paths, number = self._dwarf.paths(self._unit[rows], self._file[rows].astype(np.int64), False)
        number_of = np.full(len(self._unit), -1, np.int64)
        number_of[rows] = number
        return [*paths, b""], number_of


def definitions_of(dwarf: Dwarf, units: Int64) -> Definitions:
    """The definitions of functions in `units`."""
    parts = []
    plain = units
    for skeleton in units[dwarf.sources.is_skeleton[units]].tolist() if dwarf.sources.has_skeletons else []:
        split = dwarf.sources.split(skeleton)
        if split is not None:
            source, unit = split
            plain = plain[plain != skeleton]
            begin, end, die = _walk(source.reader, np.array([unit]))
            parts.append((begin, end, die | np.uint64(source.number << SOURCE_SHIFT), np.full(len(die), skeleton)))
    begin, end, die = _walk(dwarf.reader, plain)
    of_unit = np.searchsorted(np.asarray(dwarf.units.offset), die, side="right") - 1
    parts.insert(0, (begin, end, die, of_unit))
    begin, end, die, of_unit = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    has_code = (begin != np.uint64(NOWHERE)) & (begin < end)
    is_live = np.zeros(len(die), np.bool_)
    live, _, _ = clip_to(begin, end, dwarf.code)
    is_live[live] = True
    is_live &= has_code
    if dwarf.witness is not None:
        rows = np.flatnonzero(is_live)
        ranges_of = begin[rows], end[rows]
        is_live[rows] = ~are_discarded(dwarf.claims, dwarf.witness, die[rows], ranges_of, of_unit[rows], None)
    resolved = resolve_functions(dwarf, die)
    return Definitions(
        die,
        of_unit,
        begin,
        np.where(has_code, end - begin, np.uint64(0)),
        is_live,
        resolved.linkage,
        resolved.name,
        Paths(dwarf, resolved.decl_unit, resolved.decl_file),
        resolved.decl_line.tolist(),
        resolved.decl_unit,
    )


def _walk(reader: Reader, units: Int64) -> tuple[UInt64, UInt64, UInt64]:
    """First begin and end of the definitions in `units`, and their DIEs."""
    found = Ranges()
    walk_definitions(reader, units, found)
    begin, end, owner = found.arrays()
    return begin, end, owner.astype(np.uint64)


def lists_all_definitions(dwarf: Dwarf, units: Int64) -> Bool:
    """Which units have a DIE for every function that they define, even if its code is gone (R162, definitions of gcc).

    gcc describes functions before it optimizes, clang afterwards. So a name without a definition, such as an old
    spelling kept for compatibility, is an alias, unless it may be that of a local function, of which DWARF has no
    linked name. When gcc optimizes while linking, definitions are in the units that the functions refer to.
    """
    producers = producers_of(dwarf.sources, dwarf.sources.main, units)
    return np.array([producer.startswith(b"GNU C") for producer in producers], np.bool_)


def entries_of_several(dwarf: Dwarf, dies: UInt64, entries: UInt64) -> UInt64:
    """Those of `entries`, ascending, at which distinct functions may begin; `dies` are the DIEs of each.

    Names are compared as references to strings, which linkers merge, so copies of one inline function drop out.
    """
    live, _, _ = clip_to(entries, entries + np.uint64(1), dwarf.code)
    order = live[np.argsort(entries[live], kind="stable")]
    dies, entries = dies[order], entries[order]
    if not len(entries):
        return entries
    same = entries[1:] == entries[:-1]
    several = np.append(same, False) | np.append(False, same)
    dies, entries = dies[several], entries[several]
    resolved = resolve_references(dwarf, dies)
    name, line = np.where(resolved.linkage != NOWHERE, resolved.linkage, resolved.name), resolved.decl_line
    differ = (entries[1:] == entries[:-1]) & ((name[1:] != name[:-1]) | (line[1:] != line[:-1]))
    return distinct(entries[1:][differ])


def units_at(dwarf: Dwarf, vaddrs: UInt64, starts: tuple[Int64, UInt64] | None = None) -> tuple[Int64, Int64]:
    """The units with a claim or the begin of a sequence at one of `vaddrs` (ascending): indices of `vaddrs`, and units.

    The sequences are what is left of units that lost their copy of a folded function. `starts` are those of
    `sequence_starts`, if known. Pairs are distinct, by address, and do not depend on what was decoded before.

    Sequences are found in the bytes of `.debug_line`, so that the answer does not depend on which units were decoded
    (R159, units with definitions).
    """
    begin, end, unit = dwarf.claims.begin, dwarf.claims.end, dwarf.claims.unit
    first, last = np.searchsorted(vaddrs, begin), np.searchsorted(vaddrs, end)
    count = np.maximum(last - first, 0)
    claims = ranges(first, count)
    indices, programs = sequence_starts(dwarf, vaddrs) if starts is None else starts
    of_unit = np.asarray(dwarf.units.line_program)
    order = np.argsort(of_unit, kind="stable")
    low = np.searchsorted(of_unit[order], programs)
    many = np.searchsorted(of_unit[order], programs, side="right") - low
    index = np.concatenate((claims, np.repeat(indices, many)))
    units = np.concatenate((np.repeat(unit, count), order[ranges(low, many)]))
    pairs = distinct((index << 32) | units)
    return pairs >> 32, pairs & 0xFFFFFFFF


def sequence_starts(dwarf: Dwarf, vaddrs: UInt64) -> tuple[Int64, UInt64]:
    """Where line programs set the address to one of `vaddrs` (ascending): index and offset of the program.

    Linkers fold whole sections, and a sequence is in one section, so a folded function begins a sequence.
    """
    address, program = dwarf.files.set_addresses
    low = np.searchsorted(address, vaddrs)
    count = np.searchsorted(address, vaddrs, side="right") - low
    return np.repeat(np.arange(len(vaddrs)), count), program[ranges(low, count)]


def sequences_at(
    dwarf: Dwarf, units: Int64, vaddrs: UInt64, ends: UInt64 | None = None
) -> list[list[tuple[int, bytes, int]]]:
    """For each of `vaddrs` the distinct sequences of the line programs of `units` that begin there, and reach to
    `ends`: unit, path and line of the first row with a line."""
    lines = dwarf.read_lines(units)
    result: list[list[tuple[int, bytes, int]]] = [[] for _ in range(len(vaddrs))]
    order = np.argsort(lines.begin, kind="stable")
    begins = lines.begin[order]
    of_vaddr, which = distinct_inverse(vaddrs)
    first = np.searchsorted(begins, of_vaddr)[which]
    last = np.searchsorted(begins, of_vaddr, side="right")[which]
    file, number = np.asarray(lines.tables.file), np.asarray(lines.tables.line)
    found: list[tuple[int, int, int, int]] = []
    for i in range(len(vaddrs)):
        for sequence in order[first[i] : last[i]].tolist():
            if ends is not None and lines.end[sequence] < ends[i]:
                continue
            rows = range(int(lines.first_row[sequence]), int(lines.last_row[sequence]))
            row = next((row for row in rows if number[row]), None)
            if row is not None:
                unit = int(lines.unit_of_program[lines.program[sequence]])
                found.append((i, unit, int(file[row]), int(number[row])))
    asked = np.array(found, np.int64).reshape(-1, 4)
    paths, path = dwarf.paths(asked[:, 1].copy(), asked[:, 2].copy(), True)
    for (i, unit, _, line), p in zip(found, path.tolist(), strict=True):
        start = unit, paths[p] if p >= 0 else b"", line
        if start not in result[i]:
            result[i].append(start)
    return result
