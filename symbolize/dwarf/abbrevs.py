# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""Abbreviation tables (DWARF 5 §7.5.3), compiled once per table and shared by all units that name it (rule R73).

Each abbreviation becomes a run of skip operations in which neighbouring fixed-size attributes are one step,
so a DIE that is of no interest costs one table look-up, and a list of its attributes for the DIEs that are.
"""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.cursor import Cursor

# What an abbreviation is to the walk, as bits of AbbrevTables.flags.
HAS_CHILDREN = cython.declare(cython.int, 1)
CODE = cython.declare(cython.int, 2)
SKIP_SUBTREE = cython.declare(cython.int, 4)
SUBPROGRAM = cython.declare(cython.int, 8)
TYPE_SUBTREE = cython.declare(cython.int, 16)
FIXED = cython.declare(cython.int, 32)

MAX_FIXED_SIZE = cython.declare(cython.int, 1 << 20)
"""Attributes of a DIE that take more bytes than this are skipped one by one, so that no size overflows."""

MAX_ATTRIBUTES = cython.declare(cython.Py_ssize_t, 256)
"""Attributes of an abbreviation; real ones have a few dozen. A DIE that takes no bytes for thousands takes time."""

# Skip operations: the kind in the low 4 bits, a byte count above them.
OP_FIXED = cython.declare(cython.int, 0)
OP_LEB = cython.declare(cython.int, 1)
OP_STRING = cython.declare(cython.int, 2)
OP_BLOCK = cython.declare(cython.int, 3)
OP_BLOCK_LEB = cython.declare(cython.int, 4)
OP_INDIRECT = cython.declare(cython.int, 5)
OP_SIBLING = cython.declare(cython.int, 6 | (4 << 4))
OP_BAD = cython.declare(cython.int, 15)

# Read operations, see read_operation.
READ_FIXED = cython.declare(cython.int, 0)
READ_RELATIVE = cython.declare(cython.int, 32)
READ_VALUE = cython.declare(cython.int, 64)

TABLES_PER_BYTE = cython.declare(cython.int, 4)
"""A table may be compiled a few times, for units of different shape."""


def skip_operation(
    form: cython.ulonglong, address_size: cython.int, offset_size: cython.int, version: cython.int
) -> cython.int:
    """The operation that skips one attribute of `form` (rule R68), OP_BAD for an unknown form (rule R69)."""
    if form == 0x19 or form == 0x21:  # flag_present, implicit_const
        return OP_FIXED
    if form == 0x0B or form == 0x0C or form == 0x11 or form == 0x25 or form == 0x29:  # data1 flag ref1 strx1 addrx1
        return OP_FIXED | (1 << 4)
    if form == 0x05 or form == 0x12 or form == 0x26 or form == 0x2A:  # data2 ref2 strx2 addrx2
        return OP_FIXED | (2 << 4)
    if form == 0x27 or form == 0x2B:  # strx3 addrx3
        return OP_FIXED | (3 << 4)
    if form == 0x06 or form == 0x13 or form == 0x1C or form == 0x28 or form == 0x2C:  # data4 ref4 ref_sup4 strx4 addrx4
        return OP_FIXED | (4 << 4)
    if form == 0x07 or form == 0x14 or form == 0x20 or form == 0x24:  # data8 ref8 ref_sig8 ref_sup8
        return OP_FIXED | (8 << 4)
    if form == 0x1E:  # data16
        return OP_FIXED | (16 << 4)
    if form == 0x01:  # addr
        return OP_FIXED | (address_size << 4)
    if form == 0x10:  # ref_addr: an address in DWARF 2, an offset since (rule R16)
        return OP_FIXED | ((address_size if version <= 2 else offset_size) << 4)
    if form == 0x0E or form == 0x17 or form == 0x1D or form == 0x1F or form == 0x1F20 or form == 0x1F21:
        return OP_FIXED | (offset_size << 4)  # strp sec_offset strp_sup line_strp GNU_ref_alt GNU_strp_alt
    if form == 0x0D or form == 0x0F or form == 0x15:  # sdata udata ref_udata
        return OP_LEB
    if form == 0x1A or form == 0x1B or form == 0x22 or form == 0x23:  # strx addrx loclistx rnglistx
        return OP_LEB
    if form == 0x1F01 or form == 0x1F02:  # GNU_addr_index GNU_str_index
        return OP_LEB
    if form == 0x08:  # string
        return OP_STRING
    if form == 0x0A:  # block1
        return OP_BLOCK | (1 << 4)
    if form == 0x03:  # block2
        return OP_BLOCK | (2 << 4)
    if form == 0x04:  # block4
        return OP_BLOCK | (4 << 4)
    if form == 0x09 or form == 0x18:  # block exprloc
        return OP_BLOCK_LEB
    if form == 0x16:  # indirect
        return OP_INDIRECT
    return OP_BAD


def read_operation(name: cython.ulonglong, form: cython.ulonglong, skipped: cython.int) -> cython.int:
    """How the walk reads an attribute of a function with code: the field in the bits from 8 on, 0 if it is of no use.

    Below them `READ_FIXED` with a number of bytes, possibly `READ_RELATIVE` to the unit, or `READ_VALUE` for what
    the reader reads. `skipped` is the skip operation of the attribute.
    """
    field: cython.int = 0
    if name == 0x11 or name == 0x12:  # low_pc high_pc
        field = cython.cast(cython.int, name) - 0x10
    elif name == 0x55:  # ranges
        field = 3
    elif name == 0x52:  # entry_pc
        field = 4
    elif name == 0x31:  # abstract_origin
        field = 5
    elif name == 0x57 or name == 0x58 or name == 0x59:  # call_column call_file call_line
        field = 6 + cython.cast(cython.int, name) - 0x57
    if skipped & 15 != OP_FIXED and skipped != OP_SIBLING:
        return READ_VALUE | (field << 8)
    if field == 0 and form != 0x21:
        return READ_FIXED | (skipped >> 4)
    if form == 0x11 or form == 0x12 or form == 0x13 or form == 0x14:  # ref1 ref2 ref4 ref8
        return READ_RELATIVE | (skipped >> 4) | (field << 8)
    if form == 0x01 or form == 0x0B or form == 0x05 or form == 0x06 or form == 0x07:  # addr data1 data2 data4 data8
        return READ_FIXED | (skipped >> 4) | (field << 8)
    if form == 0x17 or form == 0x10:  # sec_offset ref_addr
        return READ_FIXED | (skipped >> 4) | (field << 8)
    return READ_VALUE | (field << 8)


@cython.cclass
class AbbrevTables:
    """Compiled tables, concatenated: table `t` has the abbreviations `[first[t], first[t + 1])`.

    `step` is all that the walk needs of most DIEs: the flags, and above them the size of the attributes if it is fixed
    (FIXED). `sibling_at` is where the sibling attribute lies behind the abbreviation code, -1 if that varies.
    `has_code` tells whether any abbreviation of a table can describe a function with code. A table whose codes are
    1, 2, 3 … is dense and indexed; the others have `codes` sorted and `order` beside it.
    """

    def find(self, table: cython.Py_ssize_t, code: cython.ulonglong) -> cython.Py_ssize_t:
        """The abbreviation of `code` in `table`, -1 if there is none; codes may be sparse (rule R71)."""
        low: cython.Py_ssize_t = self.first[table]
        high: cython.Py_ssize_t = self.first[table + 1]
        middle: cython.Py_ssize_t
        if code > 0x7FFFFFFF:
            return -1
        wanted: cython.longlong = code
        if self.dense[table]:
            return low + wanted - 1 if 0 < wanted <= high - low else -1
        while low < high:
            middle = (low + high) // 2
            if self.codes[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        return self.order[low] if low < self.first[table + 1] and self.codes[low] == wanted else -1


def count_tables(data: cython.const[cython.uchar][::1], offsets: cython.longlong[::1], counts: cython.longlong[::1]):  # type: ignore[no-untyped-def]
    """Fill counts[0] and counts[1] with the abbreviations and attributes of the tables at `offsets`.

    Tables that overlap could add up to any size; where they do, counts[2] tells how many of them are to be read.
    """
    c: Cursor = Cursor(data)
    abbreviations: cython.longlong = 0
    attributes: cython.longlong = 0
    limit: cython.longlong = TABLES_PER_BYTE * c.end
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(offsets)
    name: cython.ulonglong
    form: cython.ulonglong
    with cython.nogil:
        for i in range(n):
            c.bad = offsets[i] < 0 or offsets[i] > c.end
            c.pos = 0 if c.bad else offsets[i]
            while not c.bad and c.uleb() != 0:
                c.uleb()
                c.uint(1)
                abbreviations += 1
                while not c.bad:
                    name = c.uleb()
                    form = c.uleb()
                    if form == 0x21:
                        c.sleb()
                    if name == 0 and form == 0:
                        break
                    attributes += 1
            counts[2] = i + 1
            if abbreviations + attributes > limit:
                break
    counts[0] = abbreviations
    counts[1] = attributes


def fill_tables(  # type: ignore[no-untyped-def]
    tables: AbbrevTables,
    data: cython.const[cython.uchar][::1],
    offsets: cython.longlong[::1],
    address_sizes: cython.longlong[::1],
    offset_sizes: cython.longlong[::1],
    versions: cython.longlong[::1],
    readable: cython.Py_ssize_t,
):
    """Decode the first `readable` of the tables at `offsets` into `tables`, which count_tables has measured."""
    c: Cursor = Cursor(data)
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(offsets)
    abbreviation: cython.Py_ssize_t = 0
    attribute: cython.Py_ssize_t = 0
    op: cython.Py_ssize_t = 0
    code: cython.ulonglong
    name: cython.ulonglong
    form: cython.ulonglong
    tag: cython.ulonglong
    constant: cython.longlong
    last: cython.longlong
    flags: cython.int
    operation: cython.int
    size: cython.int
    has_pc: cython.bint
    has_sibling: cython.bint
    declaration: cython.bint
    fixed: cython.bint
    sibling_at: cython.int
    with cython.nogil:
        for i in range(n):
            tables.first[i] = abbreviation
            tables.dense[i] = 1
            last = 0
            c.bad = i >= readable or offsets[i] < 0 or offsets[i] > c.end
            c.pos = 0 if c.bad else offsets[i]
            while not c.bad:
                code = c.uleb()
                if code == 0:
                    break
                tag = c.uleb()
                flags = HAS_CHILDREN if c.uint(1) else 0
                if code != last + 1:
                    tables.dense[i] = 0
                last = code if code < 0x7FFFFFFF else 0x7FFFFFFF
                tables.codes[abbreviation] = last
                tables.tag[abbreviation] = tag if tag < 0xFFFF else 0xFFFF
                tables.op_first[abbreviation] = op
                tables.attribute_first[abbreviation] = attribute
                has_pc = False
                has_sibling = False
                declaration = False
                fixed = True
                size = 0
                sibling_at = -1
                while not c.bad:
                    name = c.uleb()
                    form = c.uleb()
                    constant = c.sleb() if form == 0x21 else 0
                    if name == 0 and form == 0:
                        break
                    if attribute - tables.attribute_first[abbreviation] > MAX_ATTRIBUTES:
                        continue
                    if attribute - tables.attribute_first[abbreviation] == MAX_ATTRIBUTES:
                        name = form = 0  # the last one stands for all others and cannot be read
                    tables.attribute_name[attribute] = name if name < 0xFFFF else 0xFFFF
                    tables.attribute_form[attribute] = form if form < 0xFFFF else 0xFFFF
                    tables.attribute_constant[attribute] = constant
                    attribute += 1
                    if name == 0x11 or name == 0x55:  # low_pc ranges
                        has_pc = True
                    elif name == 0x3C:
                        declaration = True
                    operation = skip_operation(
                        form,
                        cython.cast(cython.int, address_sizes[i]),
                        cython.cast(cython.int, offset_sizes[i]),
                        cython.cast(cython.int, versions[i]),
                    )
                    if name == 0x01 and operation == OP_FIXED | (4 << 4) and form == 0x13:
                        if fixed and not has_sibling:
                            sibling_at = size
                        has_sibling = True
                        operation = OP_SIBLING
                    tables.attribute_read[attribute - 1] = read_operation(name, form, operation)
                    if operation & 15 == OP_FIXED or operation == OP_SIBLING:
                        size += operation >> 4
                        if size > MAX_FIXED_SIZE:
                            fixed = False
                            size = 0
                        elif (
                            operation != OP_SIBLING
                            and op > tables.op_first[abbreviation]
                            and tables.ops[op - 1] & 15 == OP_FIXED
                        ):
                            tables.ops[op - 1] += operation & ~15
                            continue
                    else:
                        fixed = False
                    if operation != OP_FIXED:
                        tables.ops[op] = operation
                        op += 1
                if (tag == 0x2E or tag == 0x1D) and has_pc:  # subprogram, inlined_subroutine
                    flags |= CODE
                    tables.has_code[i] = 1
                if tag == 0x2E:
                    flags |= SUBPROGRAM
                if has_sibling and flags & HAS_CHILDREN:
                    # Subtrees that cannot hold code (rule R12): arrays, enumerations, subroutine types, call sites,
                    # declarations.
                    if (
                        tag == 0x01
                        or tag == 0x04
                        or tag == 0x15
                        or tag == 0x48
                        or tag == 0x4109
                        or (tag == 0x2E and declaration)
                    ):
                        flags |= SKIP_SUBTREE
                    elif tag == 0x13 or tag == 0x17:  # structure and union: only in C, which the unit knows
                        flags |= TYPE_SUBTREE
                tables.flags[abbreviation] = flags
                tables.fixed_size[abbreviation] = size if fixed and not has_sibling else -1
                tables.sibling_at[abbreviation] = sibling_at
                tables.step[abbreviation] = flags | ((FIXED | (size << 8)) if fixed else 0)
                abbreviation += 1
        tables.first[n] = abbreviation
        tables.op_first[abbreviation] = op
        tables.attribute_first[abbreviation] = attribute


def compile_tables(data, offsets, address_sizes, offset_sizes, versions) -> AbbrevTables:  # type: ignore[no-untyped-def]
    """Compile the tables at `offsets` of .debug_abbrev for units of the given sizes and versions (int64[n] each).

    A table that is cut off or out of bounds holds the abbreviations that could be read.
    """
    counts = np.zeros(3, np.int64)
    count_tables(data, memoryview(offsets), memoryview(counts))
    abbreviations, attributes = int(counts[0]) + 1, int(counts[1])
    tables = AbbrevTables()
    tables.dense = memoryview(np.zeros(len(offsets) + 1, np.uint8))
    tables.has_code = memoryview(np.zeros(len(offsets) + 1, np.uint8))
    tables.first = memoryview(np.zeros(len(offsets) + 1, np.int64))
    tables.codes = memoryview(np.zeros(abbreviations, np.int64))
    tables.order = memoryview(np.arange(abbreviations, dtype=np.int64))
    tables.tag = memoryview(np.zeros(abbreviations, np.uint16))
    tables.flags = memoryview(np.zeros(abbreviations, np.uint8))
    tables.fixed_size = memoryview(np.zeros(abbreviations, np.int32))
    tables.step = memoryview(np.zeros(abbreviations, np.uint32))
    tables.sibling_at = memoryview(np.zeros(abbreviations, np.int32))
    tables.op_first = memoryview(np.zeros(abbreviations + 1, np.int32))
    tables.ops = memoryview(np.zeros(attributes + 1, np.int32))
    tables.attribute_first = memoryview(np.zeros(abbreviations + 1, np.int32))
    tables.attribute_name = memoryview(np.zeros(attributes + 1, np.uint16))
    tables.attribute_form = memoryview(np.zeros(attributes + 1, np.uint16))
    tables.attribute_read = memoryview(np.zeros(attributes + 1, np.uint16))
    tables.attribute_constant = memoryview(np.zeros(attributes + 1, np.int64))
    fill_tables(
        tables,
        data,
        memoryview(offsets),
        memoryview(address_sizes),
        memoryview(offset_sizes),
        memoryview(versions),
        int(counts[2]),
    )
    codes, order, first = np.asarray(tables.codes), np.asarray(tables.order), np.asarray(tables.first)
    for table in np.flatnonzero(np.asarray(tables.dense)[: len(offsets)] == 0):
        run = slice(first[table], first[table + 1])
        order[run] = first[table] + np.argsort(codes[run], kind="stable")
        codes[run] = codes[order[run]]
    return tables
