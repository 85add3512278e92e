# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""Line programs (DWARF 5 §6.2): rows, sequences and file tables as flat arrays."""

import cython
import numpy as np

from symbolize.dwarf.columns import extended

if not cython.compiled:
    from symbolize.cursor import Cursor
    from symbolize.dwarf.reader import Reader

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
NOWHERE = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
IN_STR = cython.declare(cython.ulonglong, 2 << 60)
IN_LINE_STR = cython.declare(cython.ulonglong, 3 << 60)
IN_LINE = cython.declare(cython.ulonglong, 4 << 60)
OFFSET_MASK = cython.declare(cython.ulonglong, (1 << 40) - 1)


@cython.cclass
class LineTables:
    """Decoded line programs.

    Rows: `address`, `file` (as the program counts files), `line`, `column`. Sequences `[begin, end)` own the
    rows `[first_row, last_row)` and belong to `program`. `emitted` counts what the programs emitted, of which not all
    is kept. File table entries: `name` (a string reference) and
    `directory`; directories are entries of the same kind. `formats`, `operands`, `advances` and `line_advances`
    are scratch space for the program that is being decoded.
    """

    def __init__(self) -> None:
        self.row_count = self.row_capacity = self.emitted = 0
        self.sequence_count = self.sequence_capacity = 0
        self.entry_count = self.entry_capacity = 0
        u8, u4, i8 = (memoryview(np.zeros(0, dtype)) for dtype in (np.uint64, np.uint32, np.int64))
        self.address = self.begin = self.end = self.name = u8
        self.file = self.line = self.column = self.directory = u4
        self.first_row = self.last_row = self.program = i8
        self.unsorted = memoryview(np.zeros(0, np.uint8))
        self.formats = memoryview(np.zeros(512, np.uint64))
        self.operands = memoryview(np.zeros(256, np.uint64))
        self.advances = memoryview(np.zeros(256, np.uint64))
        self.line_advances = memoryview(np.zeros(256, np.uint64))
        self.grow_rows()
        self.grow_sequences()
        self.grow_entries()

    def grow_rows(self):  # type: ignore[no-untyped-def]
        """Make room for more rows."""
        self.address = extended(self.address, "u8")
        self.file = extended(self.file, "u4")
        self.line = extended(self.line, "u4")
        self.column = extended(self.column, "u4")
        self.row_capacity = len(self.address)

    def grow_sequences(self):  # type: ignore[no-untyped-def]
        """Make room for more sequences."""
        self.begin = extended(self.begin, "u8")
        self.end = extended(self.end, "u8")
        self.first_row = extended(self.first_row, "i8")
        self.last_row = extended(self.last_row, "i8")
        self.program = extended(self.program, "i8")
        self.unsorted = extended(self.unsorted, "u1")
        self.sequence_capacity = len(self.begin)

    def grow_entries(self):  # type: ignore[no-untyped-def]
        """Make room for more files and directories."""
        self.name = extended(self.name, "u8")
        self.directory = extended(self.directory, "u4")
        self.entry_capacity = len(self.name)

    def add_sequence(
        self, first_row: cython.Py_ssize_t, end: cython.ulonglong, program: cython.longlong, unsorted: cython.int
    ) -> cython.void:
        """Close the rows from `first_row` as a sequence that ends at `end`; without rows there is none."""
        if first_row == self.row_count:
            return
        if self.sequence_count == self.sequence_capacity:
            with cython.gil:
                self.grow_sequences()
        self.begin[self.sequence_count] = self.address[first_row]
        self.end[self.sequence_count] = end
        self.first_row[self.sequence_count] = first_row
        self.last_row[self.sequence_count] = self.row_count
        self.program[self.sequence_count] = program
        self.unsorted[self.sequence_count] = unsorted
        self.sequence_count += 1

    def add_entry(self, name: cython.ulonglong, directory: cython.uint) -> cython.void:
        """Add a file or a directory."""
        if self.entry_count == self.entry_capacity:
            with cython.gil:
                self.grow_entries()
        self.name[self.entry_count] = name
        self.directory[self.entry_count] = directory
        self.entry_count += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def entry_value(c: Cursor, form: cython.ulonglong, offset_size: cython.int, reader: Reader) -> cython.ulonglong:
    """Read one field of a DWARF 5 directory or file entry (rules R47, R48); strings as string references."""
    v: cython.ulonglong
    if form == 0x08:  # string
        v = IN_LINE | cython.cast(cython.ulonglong, c.pos)
        c.skip_string()
        return v
    if form == 0x1F:  # line_strp
        return IN_LINE_STR | (c.uint(offset_size) & OFFSET_MASK)
    if form == 0x0E:  # strp
        return IN_STR | (c.uint(offset_size) & OFFSET_MASK)
    if form == 0x0F:  # udata
        return c.uleb()
    if form == 0x0B:  # data1
        return c.uint(1)
    if form == 0x05:  # data2
        return c.uint(2)
    if form == 0x06:  # data4
        return c.uint(4)
    if form == 0x07:  # data8
        return c.uint(8)
    if form == 0x1E:  # data16
        c.skip(16)
        return 0
    if form == 0x09:  # block
        c.skip(c.uleb())
        return 0
    if form == 0x1A or 0x25 <= form <= 0x28:  # strx strx1–4
        return reader.indexed_string(c.uleb() if form == 0x1A else c.uint(cython.cast(cython.int, form) - 0x24))
    c.bad = True
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_entries(
    c: Cursor, offset_size: cython.int, reader: Reader, tables: LineTables, formats: cython.ulonglong[::1]
) -> cython.void:
    """Read a DWARF 5 table of directories or files: entry formats, then entries (rule R47).

    `formats` is scratch space for the at most 255 pairs of content type and form.
    """
    fields: cython.Py_ssize_t = c.uint(1)
    k: cython.Py_ssize_t
    i: cython.ulonglong
    count: cython.ulonglong
    v: cython.ulonglong
    name: cython.ulonglong
    directory: cython.ulonglong
    for k in range(2 * fields):
        formats[k] = c.uleb()
    count = c.uleb()
    # Every entry takes a byte at least, so a count beyond the bytes that are left is corrupt.
    if count > cython.cast(cython.ulonglong, c.end - c.pos) or (fields == 0 and count != 0):
        c.bad = True
    i = 0
    while i < count and not c.bad:
        name = NOWHERE
        directory = 0
        for k in range(fields):
            v = entry_value(c, formats[2 * k + 1], offset_size, reader)
            if formats[2 * k] == 1:  # path
                name = v
            elif formats[2 * k] == 2:  # directory_index
                directory = v
        tables.add_entry(name, directory if directory < MASK32 else 0)
        i += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_string_tables(c: Cursor, tables: LineTables, directory_count: cython.ulonglong[::1]) -> cython.void:
    """Read the directories and files of a header before DWARF 5 (DWARF 4 §6.2.4), which are strings."""
    first: cython.Py_ssize_t = tables.entry_count
    name: cython.ulonglong
    directory: cython.ulonglong
    while c.pos < c.end and c.data[c.pos] != 0:
        tables.add_entry(IN_LINE | cython.cast(cython.ulonglong, c.pos), 0)
        c.skip_string()
    c.skip(1)
    directory_count[0] = tables.entry_count - first
    while c.pos < c.end and c.data[c.pos] != 0:
        name = IN_LINE | cython.cast(cython.ulonglong, c.pos)
        c.skip_string()
        directory = c.uleb()
        c.uleb()
        c.uleb()
        tables.add_entry(name, directory if directory < MASK32 else 0)


@cython.ccall
def run(  # type: ignore[no-untyped-def]
    c: Cursor,
    tables: LineTables,
    program: cython.longlong,
    min_inst_length: cython.ulonglong,
    max_ops: cython.ulonglong,
    opcode_base: cython.int,
    max_address: cython.ulonglong,
):
    """Execute a line program (DWARF 5 §6.2.5) up to the end of the cursor.

    Addresses wrap around behind `max_address` (rule R36). Rows at one address keep the last (rule R32). A sequence
    whose addresses do not ascend is marked unsorted: 1, or 2 if DW_LNE_set_address led backwards (rules R34, R35). In
    the others a row that only repeats the row before it is left out.
    """
    data: cython.const[cython.uchar][::1] = c.data
    advances: cython.ulonglong[::1] = tables.advances
    line_advances: cython.ulonglong[::1] = tables.line_advances
    addresses: cython.ulonglong[::1]
    files: cython.uint[::1]
    lines: cython.uint[::1]
    columns: cython.uint[::1]
    pos: cython.Py_ssize_t = c.pos
    end: cython.Py_ssize_t = c.end
    after: cython.Py_ssize_t
    count: cython.Py_ssize_t = tables.row_count
    capacity: cython.Py_ssize_t
    first: cython.Py_ssize_t = count
    sequence: cython.Py_ssize_t = pos
    address: cython.ulonglong = 0
    op_index: cython.ulonglong = 0
    file: cython.ulonglong = 1
    line: cython.ulonglong = 1
    column: cython.ulonglong = 0
    previous: cython.ulonglong = 0
    row_file: cython.uint
    row_line: cython.uint
    row_column: cython.uint
    unsorted: cython.int = 0
    jumped: cython.bint = False
    emitted: cython.bint = False
    stored: cython.bint = False
    dropped: cython.bint = False
    opcode: cython.int
    operand: cython.ulonglong
    length: cython.ulonglong
    _: cython.ulonglong
    while pos < end and not c.bad:
        if count == tables.row_capacity:
            tables.grow_rows()
        addresses = tables.address
        files = tables.file
        lines = tables.line
        columns = tables.column
        capacity = tables.row_capacity
        with cython.nogil:
            while pos < end and count < capacity:
                opcode = data[pos]
                pos += 1
                if opcode >= opcode_base or opcode == 8 or opcode == 2:  # special, const_add_pc, advance_pc
                    if opcode >= opcode_base:
                        operand = advances[opcode]
                        line = (line + line_advances[opcode]) & MASK32
                    elif opcode == 8:
                        operand = advances[255]
                    elif pos < end and data[pos] < 0x80:
                        operand = data[pos]
                        pos += 1
                    else:
                        c.pos = pos
                        operand = c.uleb()
                        pos = c.pos
                    if max_ops == 1:
                        address = (address + min_inst_length * operand) & max_address
                    else:
                        operand = (operand + op_index) & MASK64
                        address = (address + min_inst_length * (operand // max_ops)) & max_address
                        op_index = operand % max_ops
                    if opcode < opcode_base:
                        if c.bad:
                            break
                        continue
                elif opcode != 1:  # all but copy
                    if opcode == 5 or opcode == 4 or opcode == 3 or opcode == 12:
                        if pos < end and data[pos] < 0x80:
                            operand = data[pos]
                            pos += 1
                            if opcode == 3 and operand >= 0x40:  # a negative number
                                operand |= MASK64 ^ 0x7F
                        else:
                            c.pos = pos
                            if opcode == 3:
                                operand = cython.cast(cython.ulonglong, c.sleb()) & MASK64
                            else:
                                operand = c.uleb()
                            pos = c.pos
                        if opcode == 5:  # set_column
                            column = operand
                        elif opcode == 4:  # set_file
                            file = operand
                        elif opcode == 3:  # advance_line
                            line = (line + operand) & MASK32
                    elif opcode == 0:
                        c.pos = pos
                        length = c.uleb()
                        pos = c.pos
                        if length > cython.cast(cython.ulonglong, end - pos):
                            c.bad = True
                        if c.bad:
                            break
                        if length == 0:
                            continue
                        after = pos + cython.cast(cython.Py_ssize_t, length)
                        opcode = data[pos]
                        if opcode == 1:  # end_sequence
                            tables.row_count = count
                            tables.add_sequence(first, address, program, 2 if jumped else unsorted)
                            first = count
                            sequence = after
                            address = op_index = column = 0
                            file = line = 1
                            unsorted = 0
                            jumped = emitted = dropped = False
                        elif opcode == 2:  # set_address
                            if 1 < length <= 9:
                                c.pos = pos + 1
                                address = c.uint(cython.cast(cython.int, length) - 1)
                                jumped |= emitted and address < previous
                            op_index = 0
                        pos = after  # rule R51
                    elif opcode == 9:  # fixed_advance_pc
                        c.pos = pos
                        address = (address + c.uint(2)) & max_address
                        pos = c.pos
                        op_index = 0
                    elif opcode != 6 and opcode != 7 and opcode != 10 and opcode != 11:
                        # An opcode of a later standard: its operands are LEB128 numbers (rule R49). The others are
                        # flags that do not matter here (rule R33).
                        c.pos = pos
                        for _ in range(tables.operands[opcode]):
                            c.uleb()
                        pos = c.pos
                    if c.bad:
                        break
                    continue
                tables.emitted += 1
                if emitted:
                    if previous == address:
                        if stored:
                            count -= 1
                    elif previous > address and unsorted == 0:
                        unsorted = 1
                        if dropped:  # sorting needs all rows: decode the sequence again
                            pos = sequence
                            count = first
                            address = op_index = column = 0
                            file = line = 1
                            jumped = emitted = False
                            continue
                emitted = True
                previous = address
                row_file = file if file < MASK32 else MASK32
                row_line = line
                row_column = column if column < MASK32 else 0
                stored = (
                    unsorted != 0
                    or count == first
                    or lines[count - 1] != row_line
                    or columns[count - 1] != row_column
                    or files[count - 1] != row_file
                )
                if stored:
                    addresses[count] = address
                    files[count] = row_file
                    lines[count] = row_line
                    columns[count] = row_column
                    count += 1
                else:
                    dropped = True
    c.pos = pos
    tables.row_count = first  # rows without an end_sequence have no end (rule R31)


@cython.ccall
def read_program(  # type: ignore[no-untyped-def]
    data: cython.const[cython.uchar][::1],
    offset: cython.ulonglong,
    reader: Reader,
    unit: cython.Py_ssize_t,
    tables: LineTables,
    program: cython.longlong,
    rows: cython.bint,
    shape: cython.ulonglong[::1],
) -> bool:
    """Decode the line program at `offset` of .debug_line for `unit`: its rows if `rows`, else its file table.

    `shape` receives: the version, the first entry, how many of the entries are directories, how many files, and
    the length of the program.
    False if the header or the program is corrupt; what was read before stands.
    """
    c: Cursor = Cursor(data, 0, -1, reader.info.big)
    scratch: cython.ulonglong[::1] = tables.formats
    offset_size: cython.int = 4
    length: cython.ulonglong
    version: cython.ulonglong
    header_length: cython.ulonglong
    start: cython.Py_ssize_t
    min_inst_length: cython.ulonglong
    max_ops: cython.ulonglong = 1
    line_base: cython.longlong
    line_range: cython.ulonglong
    opcode_base: cython.int
    adjusted: cython.ulonglong
    i: cython.int
    first: cython.Py_ssize_t = tables.entry_count
    directories: cython.ulonglong = 0
    with cython.nogil:
        shape[0] = 0
        shape[1] = first
        shape[2] = 0
        shape[3] = 0
        shape[4] = 0
        reader.settle(unit)
        if offset >= cython.cast(cython.ulonglong, c.end):
            return False
        c.pos = offset
        length = c.uint(4)
        if length == MASK32:
            offset_size = 8
            length = c.uint(8)
        if c.bad or length > cython.cast(cython.ulonglong, c.end - c.pos):
            return False
        c.end = c.pos + length
        shape[4] = length
        version = c.uint(2)
        if version < 2 or version > 5:  # also the two-level tables of a DWARF 5 draft, version 0xf006 (rule R52)
            return False
        if version >= 5:
            c.skip(2)  # address_size, segment_selector_size
        header_length = c.uint(offset_size)
        if c.bad or header_length > cython.cast(cython.ulonglong, c.end - c.pos):
            return False
        start = c.pos + header_length
        min_inst_length = c.uint(1)
        if version >= 4:
            max_ops = c.uint(1)
            if max_ops == 0:
                max_ops = 1
        c.uint(1)
        line_base = c.uint(1)
        if line_base >= 128:
            line_base -= 256
        line_range = c.uint(1)
        opcode_base = cython.cast(cython.int, c.uint(1))
        if c.bad or line_range == 0 or opcode_base == 0:  # rule R52
            return False
        for i in range(1, opcode_base):
            tables.operands[i] = c.uint(1)
        # A special opcode advances address and line (DWARF 5 §6.2.5.1); const_add_pc advances like opcode 255.
        for i in range(opcode_base, 256):
            adjusted = i - opcode_base
            tables.advances[i] = adjusted // line_range
            tables.line_advances[i] = (
                cython.cast(cython.ulonglong, line_base + cython.cast(cython.longlong, adjusted % line_range)) & MASK32
            )
        shape[0] = version
        if not rows:
            if version >= 5:
                read_entries(c, offset_size, reader, tables, scratch)
                directories = tables.entry_count - first
                read_entries(c, offset_size, reader, tables, scratch)
            else:
                read_string_tables(c, tables, scratch)
                directories = scratch[0]
            shape[2] = directories
            shape[3] = tables.entry_count - first - directories
    if rows:
        c.pos = start
        run(c, tables, program, min_inst_length, max_ops, opcode_base, reader.max_address)
    return not c.bad
