# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""Abbreviation tables (DWARF 5 §7.5.3), compiled when first needed and shared by all units that name them (rule R73).

Each abbreviation becomes a run of skip operations in which neighbouring fixed-size attributes are one step,
so a DIE that is of no interest costs one table look-up, and a list of its attributes for the DIEs that are.
"""

from threading import Lock

import cython
import numpy as np

from symbolize.arrays import distinct

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

MIN_ABBREVIATION = cython.declare(cython.int, 5)
"""Bytes of the shortest abbreviation: code, tag, whether it has children, two zeros."""

TABLES_PER_BYTE = cython.declare(cython.int, 4)
"""A table may be compiled a few times, for units of different shape."""

ROOTS_PER_BYTE = cython.declare(cython.int, 16)
"""A table may be searched for a few roots; those of all units are few different ones."""


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
    """The tables at `offsets` of .debug_abbrev for units of the given sizes and versions (int64[n] each).

    They are compiled by `compile` into common arrays; table `t`, if `ready`, has the abbreviations
    `[first[t], last[t])`. A table that is cut off or out of bounds holds the abbreviations that could be read. The
    arrays never move: threads may read tables that are ready while others are compiled. Their sizes are bounds, and
    what is never written of them takes no memory: where tables that overlap need more, the later ones are cut off.

    `step` is all that the walk needs of most DIEs: the flags, and above them the size of the attributes if it is fixed
    (FIXED). `sibling_at` is where the sibling attribute lies behind the abbreviation code, -1 if that varies.
    `has_code` tells whether any abbreviation of a table can describe a function with code. A table whose codes are
    1, 2, 3 … is dense and indexed; the others have `codes` sorted and `order` beside it.
    """

    def __init__(self, data, offsets, address_sizes, offset_sizes, versions):  # type: ignore[no-untyped-def]
        count = len(offsets)
        self.data = data
        self.offsets = memoryview(offsets)
        self.address_sizes = memoryview(address_sizes)
        self.offset_sizes = memoryview(offset_sizes)
        self.versions = memoryview(versions)
        self.lock = Lock()
        self.abbreviations = self.attributes = self.operations = 0
        # A table ends where the next one begins; tables that overlap could add up to any size.
        size = len(data)
        begin = np.clip(offsets, 0, size)
        distinct_begin = distinct(begin)
        end = np.append(distinct_begin, size)[np.searchsorted(distinct_begin, begin, side="right")]
        room = min(int((end - begin).sum()), TABLES_PER_BYTE * size)
        abbreviations, attributes = room // MIN_ABBREVIATION + count + 1, room // 2 + count + 1
        self.max_abbreviations = abbreviations - 1
        self.max_attributes = attributes - 1
        self.dense = memoryview(np.zeros(count + 1, np.uint8))
        self.has_code = memoryview(np.zeros(count + 1, np.uint8))
        self.ready = memoryview(np.zeros(count + 1, np.uint8))
        self.first = memoryview(np.zeros(count + 1, np.int64))
        self.last = memoryview(np.zeros(count + 1, np.int64))
        self.codes = memoryview(np.zeros(abbreviations, np.int64))
        self.order = memoryview(np.zeros(abbreviations, np.int64))
        self.tag = memoryview(np.zeros(abbreviations, np.uint16))
        self.flags = memoryview(np.zeros(abbreviations, np.uint8))
        self.fixed_size = memoryview(np.zeros(abbreviations, np.int32))
        self.step = memoryview(np.zeros(abbreviations, np.uint32))
        self.sibling_at = memoryview(np.zeros(abbreviations, np.int32))
        self.op_first = memoryview(np.zeros(abbreviations, np.int32))
        self.ops = memoryview(np.zeros(attributes, np.int32))
        self.attribute_first = memoryview(np.zeros(abbreviations, np.int32))
        self.attribute_name = memoryview(np.zeros(attributes, np.uint16))
        self.attribute_form = memoryview(np.zeros(attributes, np.uint16))
        self.attribute_read = memoryview(np.zeros(attributes, np.uint16))
        self.attribute_constant = memoryview(np.zeros(attributes, np.int64))

    def compile(self, selected):  # type: ignore[no-untyped-def]
        """Compile those of the tables `selected` (int64[m]) that are not ready."""
        with self.lock:
            wanted = distinct(selected)
            wanted = wanted[np.asarray(self.ready)[wanted] == 0]
            if not len(wanted):
                return
            fill_tables(self, memoryview(wanted))
            codes, order, ready = np.asarray(self.codes), np.asarray(self.order), np.asarray(self.ready)
            for table in wanted[np.asarray(self.dense)[wanted] == 0].tolist():
                run = slice(self.first[table], self.last[table])
                order[run] = self.first[table] + np.argsort(codes[run], kind="stable")
                codes[run] = np.sort(codes[run], kind="stable")
            ready[wanted] = 1

    def need(self, table: cython.Py_ssize_t) -> cython.void:
        """Make `table` ready."""
        if not self.ready[table]:
            with cython.gil:
                self.compile(np.array([table], np.int64))

    def find(self, table: cython.Py_ssize_t, code: cython.ulonglong) -> cython.Py_ssize_t:
        """The abbreviation of `code` in `table`, -1 if there is none; codes may be sparse (rule R71)."""
        low: cython.Py_ssize_t = self.first[table]
        high: cython.Py_ssize_t = self.last[table]
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
        return self.order[low] if low < self.last[table] and self.codes[low] == wanted else -1


@cython.ccall
def fill_tables(tables: AbbrevTables, selected: cython.const[cython.longlong][::1]):  # type: ignore[no-untyped-def]
    """Decode the tables `selected` behind what `tables` has already."""
    c: Cursor = Cursor(tables.data)
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    abbreviation: cython.Py_ssize_t = tables.abbreviations
    attribute: cython.Py_ssize_t = tables.attributes
    op: cython.Py_ssize_t = tables.operations
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
        for k in range(len(selected)):
            i = selected[k]
            tables.first[i] = abbreviation
            tables.dense[i] = 1
            last = 0
            c.bad = tables.offsets[i] < 0 or tables.offsets[i] > c.end
            c.pos = 0 if c.bad else tables.offsets[i]
            while not c.bad:
                code = c.uleb()
                if code == 0 or abbreviation >= tables.max_abbreviations:
                    break
                tag = c.uleb()
                flags = HAS_CHILDREN if c.uint(1) else 0
                if code != last + 1:
                    tables.dense[i] = 0
                last = code if code < 0x7FFFFFFF else 0x7FFFFFFF
                tables.codes[abbreviation] = last
                tables.order[abbreviation] = abbreviation
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
                    if attribute >= tables.max_attributes:
                        c.bad = True
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
                        cython.cast(cython.int, tables.address_sizes[i]),
                        cython.cast(cython.int, tables.offset_sizes[i]),
                        cython.cast(cython.int, tables.versions[i]),
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
                if c.bad:  # without its last attributes it would lead past the end of a DIE, or not as far
                    attribute = tables.attribute_first[abbreviation]
                    op = tables.op_first[abbreviation]
                    break
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
            tables.last[i] = abbreviation
            if c.bad or abbreviation >= tables.max_abbreviations:
                tables.has_code[i] = 1  # what is missing may describe some; the walk tells which units need it
        tables.op_first[abbreviation] = op
        tables.attribute_first[abbreviation] = attribute
        tables.abbreviations = abbreviation
        tables.attributes = attribute
        tables.operations = op


def find_roots(  # type: ignore[no-untyped-def]
    data: cython.const[cython.uchar][::1],
    offsets: cython.const[cython.ulonglong][::1],
    codes: cython.const[cython.ulonglong][::1],
    order: cython.const[cython.longlong][::1],
    places: cython.longlong[::1],
):
    """Where in .debug_abbrev the abbreviations of root DIEs stand: fill `places`, -1 where there is none.

    Row `i` is code `codes[i]` in the table at `offsets[i]`; `order` leads through the rows by offset, then code. The
    position is that of the tag.
    """
    c: Cursor = Cursor(data)
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    place: cython.longlong = -1
    left: cython.longlong = ROOTS_PER_BYTE * c.end
    with cython.nogil:
        for k in range(len(order)):
            i = order[k]
            if k == 0 or offsets[i] != offsets[order[k - 1]] or codes[i] != codes[order[k - 1]]:
                c.seek(offsets[i])
                place = find_abbreviation(data, c, codes[i]) if left > 0 and not c.bad else -1
                left -= c.pos - cython.cast(cython.longlong, offsets[i])
            places[i] = place


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def find_abbreviation(data: cython.const[cython.uchar][::1], c: Cursor, wanted: cython.ulonglong) -> cython.longlong:
    """The position behind the code `wanted` in the table that `c` stands at, -1 if the table does not have it.

    Leaves the cursor where the search ended.
    """
    code: cython.ulonglong
    name: cython.ulonglong
    form: cython.ulonglong
    pos: cython.Py_ssize_t
    while not c.bad:
        code = c.uleb()
        if code == 0 or c.bad:
            break
        if code == wanted:
            return c.pos
        c.uleb()
        c.uint(1)
        while not c.bad:
            pos = c.pos
            while pos + 2 <= c.end and 0 < data[pos] < 0x80 and data[pos + 1] < 0x80 and data[pos + 1] != 0x21:
                pos += 2  # most attributes: a name and a form of a byte each
            c.pos = pos
            name = c.uleb()
            form = c.uleb()
            if form == 0x21:
                c.sleb()
            if name == 0 and form == 0:
                break
    return -1
