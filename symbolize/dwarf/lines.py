# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Line programs (DWARF 5 §6.2): rows, sequences and file tables as flat arrays."""

import cython
import numpy as np

from symbolize.dwarf.columns import grow_columns

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.dwarf.constants import *
    from symbolize.dwarf.reader import Reader


ROWS = ("address", "file", "line", "column")
SEQUENCES = ("begin", "end", "first_row", "last_row", "program", "unsorted")
ENTRIES = ("name", "directory")


@cython.cclass
class LineTables:
    """Decoded line programs.

    Rows: `address`, `file` (as the program counts files), `line`, `column`, which is the discriminator if
    `has_discriminators` (R493, discriminators for columns). Sequences `[begin, end)` own the rows
    `[first_row, last_row)` and belong to `program`. `emitted` counts all rows, not only those that are kept. File table
    entries: `name` (a string reference) and `directory`; directories are entries too. The others are of the last
    program: `version`, 0 if its header is corrupt; `length` in bytes; numbers of directories and files; its opcodes.
    """

    def __init__(self, has_discriminators: bool = False) -> None:
        self.has_discriminators = has_discriminators
        self.row_count = self.row_capacity = self.emitted = 0
        self.sequence_count = self.sequence_capacity = 0
        self.entry_count = self.entry_capacity = 0
        self.version = self.length = self.directory_count = self.file_count = 0
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
        """Enlarge the columns of rows."""
        self.row_capacity = grow_columns(self, ROWS, self.row_capacity)

    def grow_sequences(self):  # type: ignore[no-untyped-def]
        """Enlarge the columns of sequences."""
        self.sequence_capacity = grow_columns(self, SEQUENCES, self.sequence_capacity)

    def grow_entries(self):  # type: ignore[no-untyped-def]
        """Enlarge the columns of files and directories."""
        self.entry_capacity = grow_columns(self, ENTRIES, self.entry_capacity)

    def add_sequence(
        self, first_row: cython.Py_ssize_t, end: cython.ulonglong, program: cython.longlong, unsorted: cython.int
    ) -> cython.int:
        """Close the rows from `first_row` as a sequence that ends at `end`; without rows there is none."""
        if first_row == self.row_count:
            return 0
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
        return 0

    def add_entry(self, name: cython.ulonglong, directory: cython.uint) -> cython.int:
        """Add a file or a directory."""
        if self.entry_count == self.entry_capacity:
            with cython.gil:
                self.grow_entries()
        self.name[self.entry_count] = name
        self.directory[self.entry_count] = directory
        self.entry_count += 1
        return 0


def entry_value(c: Cursor, form: cython.ulonglong, offset_size: cython.int, reader: Reader) -> cython.ulonglong:
    """Read one field of a DWARF 5 directory or file entry (R47, described header fields; R48, names in line headers);
    strings as string references."""
    v: cython.ulonglong
    if form == DW_FORM_string:
        v = IN_LINE | cython.cast(cython.ulonglong, c.pos)
        c.skip_string()
        return v
    if form == DW_FORM_line_strp:
        return IN_LINE_STR | (c.uint(offset_size) & OFFSET_MASK)
    if form == DW_FORM_strp:
        return IN_STR | (c.uint(offset_size) & OFFSET_MASK)
    if form == DW_FORM_udata:
        return c.uleb()
    if form == DW_FORM_data1:
        return c.uint(1)
    if form == DW_FORM_data2:
        return c.uint(2)
    if form == DW_FORM_data4:
        return c.uint(4)
    if form == DW_FORM_data8:
        return c.uint(8)
    if form == DW_FORM_data16:
        c.skip(16)
        return 0
    if form == DW_FORM_block:
        c.skip(c.uleb())
        return 0
    if form == DW_FORM_strx:
        return reader.indexed_string(c.uleb())
    if DW_FORM_strx1 <= form <= DW_FORM_strx4:
        return reader.indexed_string(c.uint(cython.cast(cython.int, form) - DW_FORM_strx1 + 1))
    c.bad = True
    return 0


def read_entries(c: Cursor, reader: Reader, tables: LineTables) -> cython.int:
    """Read a DWARF 5 table of directories or files: entry formats, then entries (R47, described header fields)."""
    formats: cython.ulonglong[::1] = tables.formats  # at most 255 pairs of content type and form
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
            v = entry_value(c, formats[2 * k + 1], tables.offset_size, reader)
            if formats[2 * k] == DW_LNCT_path:
                name = v
            elif formats[2 * k] == DW_LNCT_directory_index:
                directory = v
        tables.add_entry(name, directory if directory < MASK32 else 0)
        i += 1
    return 0


def read_string_tables(c: Cursor, tables: LineTables) -> cython.int:
    """Read the directories and files of a header before DWARF 5 (DWARF 4 §6.2.4), which are strings."""
    first: cython.Py_ssize_t = tables.entry_count
    name: cython.ulonglong
    directory: cython.ulonglong
    while c.pos < c.end and c.data[c.pos] != 0:
        tables.add_entry(IN_LINE | cython.cast(cython.ulonglong, c.pos), 0)
        c.skip_string()
    c.skip(1)
    tables.directory_count = tables.entry_count - first
    while c.pos < c.end and c.data[c.pos] != 0:
        name = IN_LINE | cython.cast(cython.ulonglong, c.pos)
        c.skip_string()
        directory = c.uleb()
        c.uleb()
        c.uleb()
        tables.add_entry(name, directory if directory < MASK32 else 0)
    return 0


@cython.ccall
def run(  # type: ignore[no-untyped-def]
    c: Cursor,
    tables: LineTables,
    program: cython.longlong,
    max_address: cython.ulonglong,
):
    """Execute the line program whose header was read last (DWARF 5 §6.2.5) up to the end of the cursor.

    Addresses wrap around behind `max_address` (R36, wrapping addresses). Rows at one address keep the last (R32, last
    row at an address), and rows that repeat the one before are left out. A sequence whose addresses do not ascend keeps
    all and is marked unsorted: 1, or 2 after a backward DW_LNE_set_address (R34, unsorted rows; R35, rows out of
    order). Advances of the address are scaled by the instruction length and the operations in an instruction;
    `const_add_pc` advances like special opcode 255, `fixed_advance_pc` is not scaled (R50, scaled advances). A row
    resets the flags and the discriminator, and keeps file, line and column (R53, what a row resets).
    """
    data: cython.const[cython.uchar][::1] = c.data
    min_inst_length: cython.ulonglong = tables.min_inst_length
    max_ops: cython.ulonglong = tables.max_ops
    opcode_base: cython.int = tables.opcode_base
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
    kept: cython.ulonglong = 0 if tables.has_discriminators else MASK64  # of the column behind a row
    column_opcode: cython.int = NO_OPCODE if tables.has_discriminators else DW_LNS_set_column
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
                if opcode >= opcode_base or opcode in (DW_LNS_const_add_pc, DW_LNS_advance_pc):
                    if opcode >= opcode_base:
                        operand = advances[opcode]
                        line = (line + line_advances[opcode]) & MASK32
                    elif opcode == DW_LNS_const_add_pc:
                        operand = advances[LAST_OPCODE]
                    elif pos < end and data[pos] < LEB_MORE:
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
                elif opcode != DW_LNS_copy:
                    if opcode in (DW_LNS_set_column, DW_LNS_set_file, DW_LNS_advance_line, DW_LNS_set_isa):
                        if pos < end and data[pos] < LEB_MORE:
                            operand = data[pos]
                            pos += 1
                            if opcode == DW_LNS_advance_line and operand >= LEB_SIGN:  # a negative number
                                operand |= MASK64 ^ (LEB_MORE - 1)
                        else:
                            c.pos = pos
                            if opcode == DW_LNS_advance_line:
                                operand = cython.cast(cython.ulonglong, c.sleb()) & MASK64
                            else:
                                operand = c.uleb()
                            pos = c.pos
                        if opcode == column_opcode:
                            column = operand
                        elif opcode == DW_LNS_set_file:
                            file = operand
                        elif opcode == DW_LNS_advance_line:
                            line = (line + operand) & MASK32
                    elif opcode == DW_LNS_extended_op:
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
                        if opcode == DW_LNE_end_sequence:
                            tables.row_count = count
                            tables.add_sequence(
                                first, address, program, UNSORTED_BY_SET_ADDRESS if jumped else unsorted
                            )
                            first = count
                            sequence = after
                            address = op_index = column = 0
                            file = line = 1
                            unsorted = 0
                            jumped = emitted = dropped = False
                        elif opcode == DW_LNE_set_address:
                            if 1 < length <= 1 + MAX_ADDRESS:
                                c.pos = pos + 1
                                address = c.uint(cython.cast(cython.int, length) - 1)
                                jumped |= emitted and address < previous
                            op_index = 0
                        elif opcode == DW_LNE_set_discriminator and kept == 0:
                            c.pos = pos + 1
                            column = c.uleb()
                        pos = after  # R51, extended opcodes
                    elif opcode == DW_LNS_fixed_advance_pc:
                        c.pos = pos
                        address = (address + c.uint(2)) & max_address
                        pos = c.pos
                        op_index = 0
                    elif opcode not in (
                        DW_LNS_negate_stmt,
                        DW_LNS_set_basic_block,
                        DW_LNS_set_prologue_end,
                        DW_LNS_set_epilogue_begin,
                    ):
                        # An opcode of a later standard: its operands are LEB128 numbers (R49, unknown standard
                        # opcodes). The others are flags that do not matter here (R33, flags of rows).
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
                        unsorted = UNSORTED
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
                column &= kept
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
    tables.row_count = first  # rows without an end_sequence have no end (R31, end of a sequence)


def read_header(c: Cursor, tables: LineTables) -> cython.bint:
    """Read the header of the program at the cursor into `tables`, up to the directories; the cursor ends with the
    program.

    False if the header is corrupt (R52, refused line headers).
    """
    length: cython.ulonglong
    header_length: cython.ulonglong
    line_base: cython.longlong
    line_range: cython.ulonglong
    adjusted: cython.ulonglong
    i: cython.int
    tables.offset_size = 4
    length = c.uint(4)
    if length == DW_LENGTH_DWARF64:
        tables.offset_size = 8
        length = c.uint(8)
    if c.bad or length > cython.cast(cython.ulonglong, c.end - c.pos):
        return False
    c.end = c.pos + length
    tables.length = length
    tables.version = c.uint(2)
    # Refused are also the two-level tables of a draft of DWARF 5, version 0xf006.
    if tables.version < DWARF_2 or tables.version > DWARF_5:
        tables.version = 0
        return False
    if tables.version >= DWARF_5:
        c.skip(2)  # address_size, segment_selector_size
    header_length = c.uint(tables.offset_size)
    if c.bad or header_length > cython.cast(cython.ulonglong, c.end - c.pos):
        tables.version = 0
        return False
    tables.opcodes = c.pos + header_length
    tables.min_inst_length = c.uint(1)
    tables.max_ops = c.uint(1) if tables.version >= DWARF_4 else 1
    if tables.max_ops == 0:
        tables.max_ops = 1
    c.uint(1)
    line_base = c.uint(1)
    line_base -= (line_base & 0x80) << 1  # a signed byte
    line_range = c.uint(1)
    tables.opcode_base = cython.cast(cython.int, c.uint(1))
    if c.bad or line_range == 0 or tables.opcode_base == 0:
        tables.version = 0
        return False
    for i in range(1, tables.opcode_base):
        tables.operands[i] = c.uint(1)
    # A special opcode advances address and line (DWARF 5 §6.2.5.1); const_add_pc advances like opcode 255.
    for i in range(tables.opcode_base, LAST_OPCODE + 1):
        adjusted = i - tables.opcode_base
        tables.advances[i] = adjusted // line_range
        tables.line_advances[i] = (
            cython.cast(cython.ulonglong, line_base + cython.cast(cython.longlong, adjusted % line_range)) & MASK32
        )
    return True


@cython.ccall
def read_program(  # type: ignore[no-untyped-def]
    data: cython.const[cython.uchar][::1],
    offset: cython.ulonglong,
    reader: Reader,
    unit: cython.Py_ssize_t,
    tables: LineTables,
    program: cython.longlong,
    rows: cython.bint,
) -> bool:
    """Decode the line program at `offset` of .debug_line for `unit`: its rows if `rows`, else its file table; False if
    it is corrupt, with what was read before.

    Unknown versions are refused, such as the two-level tables of a draft, and headers that would divide by zero (R52,
    refused line headers).
    """
    c: Cursor = Cursor(data, 0, -1, reader.info.big)
    first: cython.Py_ssize_t = tables.entry_count
    tables.version = tables.length = tables.directory_count = tables.file_count = 0
    with cython.nogil:
        reader.set_unit(unit)
        if offset >= cython.cast(cython.ulonglong, c.end):
            return False
        c.pos = offset
        if not read_header(c, tables):
            return False
        if not rows:
            if tables.version >= DWARF_5:
                read_entries(c, reader, tables)
                tables.directory_count = tables.entry_count - first
                read_entries(c, reader, tables)
            else:
                read_string_tables(c, tables)
            tables.file_count = tables.entry_count - first - tables.directory_count
    if rows:
        c.pos = tables.opcodes
        run(c, tables, program, reader.max_address)
    return not c.bad
