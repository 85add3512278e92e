"""Line programs of units: which rows to trust, and the paths of files."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import distinct
from symbolize.dwarf.lines import LineTables, read_program
from symbolize.dwarf.live import clip_to_code
from symbolize.dwarf.reader import Reader
from symbolize.dwarf.sections import DebugSections

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]
NOWHERE = (1 << 64) - 1


class FileTable(NamedTuple):
    """The file table of a line program: string references of the names, and the directory of each by number."""

    version: int
    names: list[int]
    directory: list[int]
    directories: dict[int, bytes]


@dataclass(eq=False)
class Lines:
    """Decoded line programs: live sequences `[begin, end)` with the rows `[first_row, last_row)` of `tables`.

    `address` are the row addresses, ascending within a sequence; `program_of_unit` maps units to programs (-1: none),
    `unit_of_program` programs to their first unit.
    """

    tables: LineTables
    begin: UInt64
    end: UInt64
    first_row: Int64
    last_row: Int64
    program: Int64
    address: UInt64
    row_program: Int64
    program_of_unit: Int64
    unit_of_program: Int64

    def cover(self, vaddrs: UInt64, units: Int64) -> NDArray[np.bool_]:
        """Whether the line program of each unit has a sequence over the address beside it."""
        wanted = self.program_of_unit[units]
        result = np.zeros(len(vaddrs), np.bool_)
        for program in distinct(wanted[wanted >= 0]):
            own = np.flatnonzero(self.program == program)
            own = own[np.argsort(self.begin[own], kind="stable")]
            rows = np.flatnonzero(wanted == program)
            place = np.searchsorted(self.begin[own], vaddrs[rows], side="right") - 1
            if len(own):
                result[rows] = (place >= 0) & (vaddrs[rows] < np.maximum.accumulate(self.end[own])[place])
        return result


class FileTables:
    """The line programs and file tables of a binary; what cannot be read is added to `problems`.

    `string` gives the string that a reference names, empty if it names none.
    """

    def __init__(
        self,
        reader: Reader,
        sections: DebugSections,
        code: tuple[UInt64, UInt64],
        problems: list[str],
        string: Callable[[int], bytes],
    ) -> None:
        self._reader = reader
        self._units = reader.units
        self._sections = sections
        self._code = code
        self._problems = problems
        self._headers = LineTables()
        self._tables: dict[tuple[int, int], FileTable] = {}
        self.string = string

    def read_rows(self, units: Int64) -> Lines:
        """Decode the line programs of `units`, each program once."""
        tables = LineTables()
        shape = np.zeros(5, np.uint64).data
        size = 0
        programs: dict[int, int] = {}
        program_of_unit = np.full(len(self._units.offset), -1, np.int64)
        for unit in units.tolist():
            offset = self._units.line_program[unit]
            if offset == NOWHERE or self._units.bad[unit]:
                continue
            if offset not in programs:
                programs[offset] = len(programs)
                if not read_program(
                    self._sections.line, offset, self._reader, unit, tables, programs[offset], True, shape
                ):
                    self._problems.append(f"corrupt line program at .debug_line offset {offset:#x}")
                size += shape[4]
                if size > 2 * len(self._sections.line):
                    self._problems.append("line programs overlap absurdly; some lines are left out")
                    break
            program_of_unit[unit] = programs[offset]
        unit_of_program = np.zeros(len(programs), np.int64)
        rows = np.flatnonzero(program_of_unit >= 0)[::-1]
        unit_of_program[program_of_unit[rows]] = rows
        return live_sequences(tables, self._code, program_of_unit, unit_of_program)

    def path(self, unit: int, index: int, is_row: bool) -> bytes:
        """The path of file `index` in the file table of `unit`, empty if there is none.

        Line rows and attributes differ in what index 0 means before DWARF 5 (rules R23, R44).
        """
        table = self._table(unit)
        if is_row and index == 0 and table.version < 5:
            return join_path(self.string(self._units.comp_dir[unit]), b"", self.string(self._units.name[unit]))
        if table.version < 5:  # rule R41
            index -= 1
        if not 0 <= index < len(table.names):
            return b""
        return join_path(b"", table.directories.get(table.directory[index], b""), self.string(table.names[index]))

    def _table(self, unit: int) -> FileTable:
        """The file table of the line program of `unit`, read once; an empty one if it has none."""
        key = (self._units.line_program[unit], self._units.comp_dir[unit])
        if key not in self._tables:
            self._tables[key] = self._read_table(unit, key[0])
        return self._tables[key]

    def _read_table(self, unit: int, offset: int) -> FileTable:
        shape = np.zeros(5, np.uint64).data
        self._headers.entry_count = 0
        if offset != NOWHERE:
            if not read_program(self._sections.line, offset, self._reader, unit, self._headers, 0, False, shape):
                self._problems.append(f"corrupt header of the line program at .debug_line offset {offset:#x}")
        version, _, directory_count, file_count, _ = shape.tolist()
        entries = slice(directory_count, directory_count + file_count)
        names = np.asarray(self._headers.name)
        directory_of = np.asarray(self._headers.directory)[entries].tolist()
        comp_dir = self.string(self._units.comp_dir[unit])
        # Directory 0 is the compilation directory, which DWARF 5 lists and older versions do not (rule R42).
        listed = [self.string(name) for name in names[:directory_count].tolist()]
        directories = {0: (listed[0] if version >= 5 and listed else b"") or comp_dir}
        first = 0 if version >= 5 else 1
        for number, directory in enumerate(listed, first):
            if number:
                directories[number] = join_path(b"", comp_dir, directory) if directory else comp_dir
        return FileTable(version, names[entries].tolist(), directory_of, directories)


def live_sequences(
    tables: LineTables, code: tuple[UInt64, UInt64], program_of_unit: Int64, unit_of_program: Int64
) -> Lines:
    """The sequences that lie where code can be (rules R54, R62), their rows in order of address."""
    rows, count = tables.row_count, tables.sequence_count
    address = np.asarray(tables.address)[:rows]
    first_row, last_row = np.asarray(tables.first_row)[:count].copy(), np.asarray(tables.last_row)[:count].copy()
    begin, end = np.asarray(tables.begin)[:count].copy(), np.asarray(tables.end)[:count].copy()
    program = np.asarray(tables.program)[:count]
    for i in np.flatnonzero(np.asarray(tables.unsorted)[:count]):
        first_row[i], last_row[i] = sort_sequence(tables, first_row[i], last_row[i], code)
        begin[i] = address[first_row[i]] if first_row[i] < last_row[i] else end[i]
    row_program = np.repeat(program, np.asarray(tables.last_row)[:count] - np.asarray(tables.first_row)[:count])
    sound = np.flatnonzero(begin < end)
    live, begin, end = clip_to_code(begin[sound], end[sound], code)
    kept = sound[live]
    return Lines(
        tables,
        begin,
        end,
        first_row[kept],
        last_row[kept],
        program[kept],
        address,
        row_program,
        program_of_unit,
        unit_of_program,
    )


def sort_sequence(tables: LineTables, first: int, last: int, code: tuple[UInt64, UInt64]) -> tuple[int, int]:
    """Sort the rows of a sequence whose addresses go backwards, stably, in place (rules R34, R35).

    Rows outside of where code can be are dropped, and of rows at one address the last is kept (rule R32).
    Returns where the rows lie now.
    """
    columns = [np.asarray(column)[first:last] for column in (tables.address, tables.file, tables.line, tables.column)]
    address = columns[0]
    order, _, _ = clip_to_code(address, address, code)
    order = order[np.argsort(address[order], kind="stable")]
    final = np.ones(len(order), np.bool_)
    final[:-1] = address[order][1:] != address[order][:-1]
    order = order[final]
    for column in columns:
        column[: len(order)] = column[order]
    return first, first + len(order)


def join_path(comp_dir: bytes, directory: bytes, name: bytes) -> bytes:
    """A file's path (rules R43, R45, R46): only `/./` and `//` are collapsed, never `..`."""
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
