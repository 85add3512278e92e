"""Line programs of units: which rows to trust, and the paths of files."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import (
    Bool,
    Int32,
    Int64,
    UInt32,
    UInt64,
    distinct,
    distinct_inverse,
    first_of_runs,
    offsets_of,
    pair,
    ranges,
    unpair,
)
from symbolize.core.ranges import Cover, clip_to
from symbolize.core.records import record
from symbolize.dwarf.constants import DWARF_5, NOWHERE, UNSORTED_BY_SET_ADDRESS, DW_LNE_set_address
from symbolize.dwarf.lines import LineTables, read_program
from symbolize.dwarf.reader import Reader
from symbolize.dwarf.sections import DebugSections, holds_code

ADDRESS_SIZES = (2, 4, 8)
CHUNK = 1 << 22
"""Bytes of .debug_line that are searched for opcodes in one step."""
HEADERS_PER_BYTE = 4
"""Bytes of line programs that are read for file tables, for each byte of .debug_line."""
PATHS_PER_BYTE = 32
MORE_PATHS = 1 << 22
"""Bytes that paths may take, for each byte of .debug_line and in addition."""


SequenceTest = Callable[[UInt64, Int64], Bool]
"""Says which line sequences that begin at address 0 are live, by their ends and programs."""


class FileTable(NamedTuple):
    """The file table of a line program: string references of names and of directories; the directory of each file."""

    version: int
    names: UInt64
    directory: UInt32
    directories: UInt64


@record
class LineRows:
    """Decoded line programs: live sequences `[begin, end)` with the rows `[first_row, last_row)` of `tables`.

    `claimed`: whether units of the program claim the sequence (see `Claims.cut_lines`). `address` are the row
    addresses, ascending within a sequence, `row_unit` the first units of their programs; `program_of_unit` maps units
    to decoded programs (-1: none), `unit_of_program` programs to their first unit, by which they ascend.
    """

    tables: LineTables
    begin: UInt64
    end: UInt64
    first_row: Int64
    last_row: Int64
    program: Int64
    claimed: Bool
    address: UInt64
    row_unit: Int32
    program_of_unit: Int64
    unit_of_program: Int64

    def cover(self, vaddrs: UInt64, units: Int64) -> Bool:
        """Whether the line program of each unit has a sequence over the address beside it."""
        cover = Cover(self.begin, self.end, self.program, len(self.unit_of_program))
        return cover.hold(vaddrs, self.program_of_unit[units])


class FileTables:
    """The line programs and file tables of a binary; `strings` gives the strings of references, `problems` is appended
    to."""

    def __init__(
        self,
        reader: Reader,
        sections: DebugSections,
        code: tuple[UInt64, UInt64],
        problems: list[str],
        strings: Callable[[UInt64], list[bytes]],
    ) -> None:
        self._reader = reader
        self._units = reader.units
        self._sections = sections
        self._code = code
        self._problems = problems
        self._headers = LineTables()
        self._tables: dict[tuple[int, int], FileTable] = {}
        self._paths: dict[tuple[bytes, bytes, bytes], bytes] = {}
        self._header_bytes = 0
        self._path_bytes = 0
        self._strings = strings

    def read_rows(self, units: Int64, are_at_zero: SequenceTest | None = None) -> LineRows:
        """Decode the line programs of `units`, each program once.

        A program belongs to all units that name it; its files are those of the first (R255, claims of units).
        """
        tables = LineTables(self._sections.has_discriminators)
        size = 0
        first = self._first_units
        unit_of_program = distinct(first[units])
        unit_of_program = unit_of_program[unit_of_program >= 0]
        for program, unit in enumerate(unit_of_program.tolist()):
            offset = self._units.line_program[unit]
            if not read_program(self._sections.line, offset, self._reader, unit, tables, program, True):
                self._problems.append(f"corrupt line program at .debug_line offset {offset:#x}")
            size += tables.length
            if size > 2 * len(self._sections.line):
                self._problems.append("line programs overlap absurdly; some lines are left out")
                unit_of_program = unit_of_program[: program + 1]
                break
        program_of_first = np.full(len(first) + 1, -1, np.int64)  # the last is for units without a program
        program_of_first[unit_of_program] = np.arange(len(unit_of_program))
        program_of_unit = program_of_first[first]
        return live_sequences(tables, self._code, program_of_unit, unit_of_program, are_at_zero)

    @cached_property
    def set_addresses(self) -> tuple[UInt64, UInt64]:
        """The operands of all `DW_LNE_set_address`, ascending, and the offsets of their line programs.

        The bytes are searched for the opcode. A chance hit is harmless: it names a unit without code at the address.
        """
        lines = np.frombuffer(self._sections.line, np.uint8)
        programs = distinct(np.asarray(self._units.line_program))
        programs = programs[programs < len(lines)]
        addresses, offsets = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
        sizes = distinct(np.asarray(self._units.address_size)).tolist() if len(programs) else []
        for size in (size for size in sizes if size in ADDRESS_SIZES):
            kind = (">" if self._sections.big_endian else "<") + f"u{size}"
            for start in range(0, len(lines), CHUNK):
                chunk = lines[start : start + CHUNK + size + 2]
                count = max(len(chunk) - size - 2, 0)
                at = np.flatnonzero(chunk[1 : count + 1] == size + 1)
                at = at[(chunk[at] == 0) & (chunk[at + 2] == DW_LNE_set_address)]
                operand = chunk[at[:, None] + np.arange(3, 3 + size)]
                addresses.append(np.ascontiguousarray(operand).view(kind).ravel().astype(np.uint64))
                offsets.append(at + start)
        address = np.concatenate(addresses)
        program = np.searchsorted(programs, np.concatenate(offsets).astype(np.uint64), side="right") - 1
        inside = np.flatnonzero(program >= 0)
        order = inside[np.argsort(address[inside], kind="stable")]
        return address[order], programs[program[order]]

    @cached_property
    def _first_units(self) -> Int64:
        """For each unit the first one with its line program, preferably one that holds code; -1: none.

        So the row of an address does not depend on which units of a program are decoded.
        """
        offset, kind = np.asarray(self._units.line_program), np.asarray(self._units.kind)
        result = np.full(len(offset), -1, np.int64)
        known = np.flatnonzero((offset != np.uint64(NOWHERE)) & (np.asarray(self._units.bad) == 0))
        order = known[np.lexsort((known, ~holds_code(kind[known]), offset[known]))]
        new = first_of_runs(offset[order])
        result[order] = order[new][np.cumsum(new) - 1]
        return result

    def paths(self, unit: Int64, index: Int64, is_row: bool) -> tuple[list[bytes], Int64]:
        """The paths of files `index` in the file tables of `unit`: distinct ones in order of appearance, and the index
        of each, -1 for no file.

        Index 0 before DWARF 5 differs in line rows and attributes (R23, file 0 in attributes; R44, file 0 in rows).
        """
        units, of_unit = distinct_inverse(unit)
        tables, of_unit = self._tables_of(units, of_unit)
        is_old = np.array([table.version < DWARF_5 for table in tables], np.bool_)[of_unit]
        comp_dir, own_name = np.asarray(self._units.comp_dir)[unit], np.asarray(self._units.name)[unit]
        listed, first, count = joined([table.names for table in tables])
        numbers, _, _ = joined([table.directory for table in tables])
        name, base, directory = np.full((3, len(unit)), NOWHERE, np.uint64)
        itself = (index == 0) & is_old & is_row
        name[itself], directory[itself] = own_name[itself], comp_dir[itself]
        index = index - is_old  # R41, file indices
        known = np.flatnonzero((index >= 0) & (index < count[of_unit]))
        row = first[of_unit[known]] + index[known]
        name[known] = listed[row]
        base[known], directory[known] = self._directories(tables, of_unit[known], comp_dir[known], numbers[row])
        itself[known] = True
        there, result = np.flatnonzero(itself), np.full(len(unit), -1, np.int64)
        paths, result[there] = self._join(base[there], directory[there], name[there])
        return paths, result

    def _directories(
        self, tables: list[FileTable], table: Int64, comp_dir: UInt64, number: UInt32
    ) -> tuple[UInt64, UInt64]:
        """Directories `number` of tables: references of their base and of their own path. Number 0 is the compilation
        directory, which only DWARF 5 lists (R42, directory 0)."""
        listed, first, count = joined([some.directories for some in tables])
        is_new = np.array([some.version >= DWARF_5 for some in tables], np.bool_)
        has_top = np.flatnonzero(is_new & (count > 0))
        tops = np.full(len(tables), NOWHERE, np.uint64)
        tops[has_top] = listed[first[has_top]]
        tops[[not top for top in self._strings(tops)]] = NOWHERE
        base, directory = np.full((2, len(number)), NOWHERE, np.uint64)
        row = number.astype(np.int64) - ~is_new[table]
        known = np.flatnonzero((number > 0) & (row < count[table]))
        base[known], directory[known] = comp_dir[known], listed[first[table[known]] + row[known]]
        top = number == 0
        directory[top] = np.where(tops[table] != np.uint64(NOWHERE), tops[table], comp_dir)[top]
        return base, directory

    def _join(self, base: UInt64, directory: UInt64, name: UInt64) -> tuple[list[bytes], Int64]:
        """The paths of files `name` in `directory`, which is relative to `base`: distinct ones, which each is."""
        references, which = distinct_inverse(np.concatenate((base, directory, name)))
        texts = self._strings(references)
        base_text, directory_text, name_text = which.reshape(3, -1)
        folders, folder = distinct_inverse(pair(base_text, directory_text))
        folder_parts = [(texts[b], texts[d]) for b, d in zip(*(c.tolist() for c in unpair(folders)), strict=True)]
        files, file = distinct_inverse(pair(folder, name_text))
        earliest = np.empty(len(files), np.int64)
        earliest[file[::-1]] = np.arange(len(file))[::-1]
        order = np.argsort(earliest)
        number = np.empty(len(files), np.int64)
        result: dict[bytes, int] = {}
        for i, f, n in zip(order.tolist(), *(c.tolist() for c in unpair(files[order])), strict=True):
            number[i] = result.setdefault(self._path(folder_parts[f], texts[n]), len(result))
        return list(result), number[file]

    def _path(self, folder: tuple[bytes, bytes], name: bytes) -> bytes:
        """The path of file `name` in a directory, which is given by what it is relative to and its own path."""
        key = *folder, name
        if key not in self._paths:
            base, directory = folder
            path = join_path(b"", join_path(b"", base, directory) if directory else base, name)
            self._path_bytes += len(path)
            if self._path_bytes > PATHS_PER_BYTE * len(self._sections.line) + MORE_PATHS:
                self._problems.append("paths of files are absurdly long; some are missing")
                return b""
            self._paths[key] = path
        return self._paths[key]

    def _tables_of(self, units: Int64, which: Int64) -> tuple[list[FileTable], Int64]:
        """The distinct file tables of `units[which]`, empty without a line program, and the index of each."""
        numbers: dict[tuple[int, int], int] = {}
        table = np.empty(len(units), np.int64)
        for i, unit in enumerate(units.tolist()):
            key = (self._units.line_program[unit], self._units.str_offsets_base[unit])
            if key not in self._tables:
                self._tables[key] = self._read_table(unit, key[0])
            table[i] = numbers.setdefault(key, len(numbers))
        return [self._tables[key] for key in numbers], table[which]

    def _read_table(self, unit: int, offset: int) -> FileTable:
        headers = self._headers
        headers.entry_count = headers.version = headers.length = headers.directory_count = headers.file_count = 0
        if offset != NOWHERE:
            if not read_program(self._sections.line, offset, self._reader, unit, headers, 0, False):
                self._problems.append(f"corrupt header of the line program at .debug_line offset {offset:#x}")
        directory_count, file_count = headers.directory_count, headers.file_count
        self._header_bytes += headers.length
        if self._header_bytes > HEADERS_PER_BYTE * len(self._sections.line):
            self._problems.append("line programs overlap absurdly; some files are left out")
            directory_count = file_count = 0
        entries = slice(directory_count, directory_count + file_count)
        names, directory = np.asarray(headers.name), np.asarray(headers.directory)[entries].copy()
        return FileTable(headers.version, names[entries].copy(), directory, names[:directory_count].copy())


def live_sequences(
    tables: LineTables,
    code: tuple[UInt64, UInt64],
    program_of_unit: Int64,
    unit_of_program: Int64,
    are_at_zero: SequenceTest | None,
) -> LineRows:
    """The sequences that lie where code can be (R54, discarded code; R62, line tables filtered alone), their rows in
    order of address.

    Address 0 is an address like others, but linkers place discarded functions there too, each with a line sequence. A
    sequence there is live only if the symbol at 0 is one of code and the sequence ends where a symbol does; beside one
    that is as long as the function at 0 others of its program are dead (R55, address 0).
    """
    count = tables.sequence_count
    begin, end, first_row, last_row, program, unsorted = (
        np.asarray(column)[:count]
        for column in (tables.begin, tables.end, tables.first_row, tables.last_row, tables.program, tables.unsorted)
    )
    row_unit = np.repeat(unit_of_program[program].astype(np.int32), last_row - first_row)
    if unsorted.any():
        backward = np.flatnonzero(unsorted)
        pieces = sort_sequences(tables, backward, code)
        straight = np.flatnonzero(unsorted == 0)
        sequence = np.concatenate((straight, backward[pieces[0]]))
        order = np.argsort(sequence, kind="stable")
        program = program[sequence[order]]
        begin, end, first_row, last_row = (
            np.concatenate((column[straight], piece))[order]
            for column, piece in zip((begin, end, first_row, last_row), pieces[1:], strict=True)
        )
    sound = np.flatnonzero(begin < end)
    live, begin, clipped = clip_to(begin[sound], end[sound], code)
    kept = sound[live]
    if are_at_zero is not None and not begin.all():
        whole = begin > 0
        whole[~whole] = are_at_zero(end[kept[~whole]], program[kept[~whole]])
        kept, begin, clipped = kept[whole], begin[whole], clipped[whole]
    return LineRows(
        tables,
        begin,
        clipped,
        first_row[kept],
        last_row[kept],
        program[kept],
        np.ones(len(kept), np.bool_),
        np.asarray(tables.address)[: tables.row_count],
        row_unit,
        program_of_unit,
        unit_of_program,
    )


def sort_sequences(
    tables: LineTables, sequences: Int64, code: tuple[UInt64, UInt64]
) -> tuple[Int64, UInt64, UInt64, Int64, Int64]:
    """Sort the rows of `sequences` with unordered addresses, stably, in place (R34, unsorted rows; R35, rows out of
    order).

    Rows outside of executable ranges are dropped, and of rows at one address the last is kept (R32, last row at an
    address). After a backward set_address rows may be behind the end of the sequence, or it ends in dropped rows: the
    last of such rows counts for its own address only. Returns pieces: index in `sequences`, begin, end, first row, last
    row.
    """
    columns = [np.asarray(column) for column in (tables.address, tables.file, tables.line, tables.column)]
    first, last = np.asarray(tables.first_row)[sequences], np.asarray(tables.last_row)[sequences]
    size = last - first
    sequence = np.repeat(np.arange(len(size)), size)
    row = ranges(first, size)
    address = columns[0][row]
    live, _, _ = clip_to(address, address, code)
    is_live = np.zeros(len(row), np.bool_)
    is_live[live] = True
    jumped = np.asarray(tables.unsorted)[sequences] == UNSORTED_BY_SET_ADDRESS
    end = np.asarray(tables.end)[sequences]
    end[jumped & ~is_live[np.cumsum(size) - 1]] = 0
    order = live[np.lexsort((address[live], sequence[live]))]
    final = np.ones(len(order), np.bool_)
    final[:-1] = (sequence[order][1:] != sequence[order][:-1]) | (address[order][1:] != address[order][:-1])
    order = order[final]
    sequence, address = sequence[order], address[order]
    count = np.bincount(sequence, minlength=len(size))
    target = ranges(first, count)
    for column in columns:
        column[target] = column[row[order]]
    behind = address >= end[sequence]
    at = np.flatnonzero(first_of_runs(sequence) | first_of_runs(behind))
    after = np.append(at[1:], len(order))
    ends = np.where(behind[at], address[after - 1] + np.uint64(1), end[sequence[at]]) if len(at) else end[:0]
    pieces = sequence[at], address[at], ends, target[at], target[after - 1] + 1 if len(at) else target
    kept = ~behind[at] | jumped[sequence[at]]
    return tuple(column[kept] for column in pieces)


def joined(columns: list[NDArray[Any]]) -> tuple[NDArray[Any], Int64, Int64]:
    """Columns behind one another, where each begins, and how long each is."""
    count = np.array([len(column) for column in columns], np.int64)
    return np.concatenate(columns) if columns else np.zeros(0, np.int64), offsets_of(count)[:-1], count


def join_path(comp_dir: bytes, directory: bytes, name: bytes) -> bytes:
    """A file's path (R43, relative paths; R45, relative compilation folder; R46, cleaned paths): only `/./` and `//`
    are collapsed, never `..`."""
    path = name
    for prefix in (directory, comp_dir):
        if path.startswith(b"/"):
            break
        if prefix:
            path = prefix + b"/" + path
    while b"/./" in path:
        path = path.replace(b"/./", b"/")
    while b"//" in path:
        path = path.replace(b"//", b"/")
    return path
