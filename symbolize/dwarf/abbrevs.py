# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Abbreviation tables (DWARF 5 §7.5.3), compiled when first needed and shared by units (R73, shared abbreviation
tables).

Each abbreviation becomes a run of skip operations, in which neighbouring attributes of fixed size are one step, and a
list of its attributes for the DIEs that are read.
"""

from threading import Lock

import cython
import numpy as np

from symbolize.core.arrays import distinct

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.dwarf.constants import *

MAX_FIXED_SIZE = cython.declare(cython.int, 1 << 20)
"""Attributes of a DIE that take more bytes than this are skipped one by one, so that no size overflows."""

MIN_ABBREVIATION = cython.declare(cython.int, 5)
"""Bytes of the shortest abbreviation: code, tag, whether it has children, two zeros."""

TABLES_PER_BYTE = cython.declare(cython.int, 4)
"""A table may be compiled a few times, for units of different shape."""

ROOTS_PER_BYTE = cython.declare(cython.int, 16)
"""A table may be searched for a few roots; those of all units are few different ones."""


def skip_operation(
    form: cython.ulonglong, address_size: cython.int, offset_size: cython.int, version: cython.int
) -> cython.int:
    """The operation that skips one attribute of `form` (R68, sizes of forms), OP_BAD for an unknown one (R69,
    unknown forms).

    `ref_addr` has the size of an address in DWARF 2 and of an offset from DWARF 3 on (R16, kinds of references);
    `indirect` names its form in the DIE, `implicit_const` has its value in the abbreviation.
    """
    if form in (DW_FORM_flag_present, DW_FORM_implicit_const):
        return OP_FIXED
    if form in (DW_FORM_data1, DW_FORM_flag, DW_FORM_ref1, DW_FORM_strx1, DW_FORM_addrx1):
        return OP_FIXED | (1 << OP_SIZE_SHIFT)
    if form in (DW_FORM_data2, DW_FORM_ref2, DW_FORM_strx2, DW_FORM_addrx2):
        return OP_FIXED | (2 << OP_SIZE_SHIFT)
    if form in (DW_FORM_strx3, DW_FORM_addrx3):
        return OP_FIXED | (3 << OP_SIZE_SHIFT)
    if form in (DW_FORM_data4, DW_FORM_ref4, DW_FORM_ref_sup4, DW_FORM_strx4, DW_FORM_addrx4):
        return OP_FIXED | (4 << OP_SIZE_SHIFT)
    if form in (DW_FORM_data8, DW_FORM_ref8, DW_FORM_ref_sig8, DW_FORM_ref_sup8):
        return OP_FIXED | (8 << OP_SIZE_SHIFT)
    if form == DW_FORM_data16:
        return OP_FIXED | (16 << OP_SIZE_SHIFT)
    if form == DW_FORM_addr:
        return OP_FIXED | (address_size << OP_SIZE_SHIFT)
    if form == DW_FORM_ref_addr:  # an address in DWARF 2, an offset since
        return OP_FIXED | ((address_size if version <= DWARF_2 else offset_size) << OP_SIZE_SHIFT)
    if form in (DW_FORM_strp, DW_FORM_sec_offset, DW_FORM_strp_sup, DW_FORM_line_strp):
        return OP_FIXED | (offset_size << OP_SIZE_SHIFT)
    if form in (DW_FORM_GNU_ref_alt, DW_FORM_GNU_strp_alt):
        return OP_FIXED | (offset_size << OP_SIZE_SHIFT)
    if form in (DW_FORM_sdata, DW_FORM_udata, DW_FORM_ref_udata, DW_FORM_loclistx, DW_FORM_rnglistx):
        return OP_LEB
    if form in (DW_FORM_strx, DW_FORM_addrx, DW_FORM_GNU_addr_index, DW_FORM_GNU_str_index):
        return OP_LEB
    if form == DW_FORM_string:
        return OP_STRING
    if form == DW_FORM_block1:
        return OP_BLOCK | (1 << OP_SIZE_SHIFT)
    if form == DW_FORM_block2:
        return OP_BLOCK | (2 << OP_SIZE_SHIFT)
    if form == DW_FORM_block4:
        return OP_BLOCK | (4 << OP_SIZE_SHIFT)
    if form in (DW_FORM_block, DW_FORM_exprloc):
        return OP_BLOCK_LEB
    if form == DW_FORM_indirect:
        return OP_INDIRECT
    return OP_BAD


def read_operation(
    name: cython.ulonglong, form: cython.ulonglong, skipped: cython.int, has_discriminators: cython.bint
) -> cython.int:
    """How the walk reads an attribute of a function with code; `skipped` is its skip operation. With
    `has_discriminators` that of a call is taken for its column.

    The attribute from bit READ_ATTRIBUTE_SHIFT on, 0 if unused; below it a number of bytes, possibly READ_RELATIVE to
    the unit, or READ_VALUE, which the reader reads.
    """
    attribute: cython.int = 0
    if has_discriminators and name in (DW_AT_call_column, DW_AT_GNU_discriminator):
        name = DW_AT_call_column if name == DW_AT_GNU_discriminator else 0
    if name in (
        DW_AT_low_pc,
        DW_AT_high_pc,
        DW_AT_ranges,
        DW_AT_entry_pc,
        DW_AT_abstract_origin,
        DW_AT_call_column,
        DW_AT_call_file,
        DW_AT_call_line,
    ):
        attribute = cython.cast(cython.int, name) << READ_ATTRIBUTE_SHIFT
    if skipped & OP_KIND != OP_FIXED and skipped & OP_KIND != OP_SIBLING:
        return READ_VALUE | attribute
    if attribute == 0 and form != DW_FORM_implicit_const:
        return skipped >> OP_SIZE_SHIFT
    if form in (DW_FORM_ref1, DW_FORM_ref2, DW_FORM_ref4, DW_FORM_ref8):
        return READ_RELATIVE | (skipped >> OP_SIZE_SHIFT) | attribute
    if form in (
        DW_FORM_addr,
        DW_FORM_data1,
        DW_FORM_data2,
        DW_FORM_data4,
        DW_FORM_data8,
        DW_FORM_sec_offset,
        DW_FORM_ref_addr,
    ):
        return (skipped >> OP_SIZE_SHIFT) | attribute
    return READ_VALUE | attribute


@cython.cclass
class AbbrevTables:
    """The tables at `offsets` of .debug_abbrev for units of the given sizes and versions (int64[n] each).

    `compile` fills common arrays; table `t`, if `ready`, has the abbreviations `[first[t], last[t])`, those that could
    be read if it is cut off. The arrays never move: threads read tables that are ready while others are compiled. Their
    sizes are bounds; where overlapping tables exceed them, the later ones are cut off.

    `step` is what the walk needs of most DIEs: the flags, and above them the size of the attributes if it is fixed
    (FIXED). `sibling_at` is the offset of the sibling attribute from the end of the abbreviation code, -1 if that
    varies. `has_code`: whether any abbreviation of a table can describe a function with code. A table whose codes are
    1, 2, 3 … is dense and indexed; others have `codes` sorted, with `order`. `attribute_constant` is that of
    DW_FORM_implicit_const, and not written for others: the tables of a large binary fill some megabytes.
    """

    def __init__(  # type: ignore[no-untyped-def]
        self, data, offsets, address_sizes, offset_sizes, versions, *, has_discriminators
    ):
        count = len(offsets)
        self.has_discriminators = has_discriminators
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
        bound = min(int((end - begin).sum()), TABLES_PER_BYTE * size)
        abbreviations, attributes = bound // MIN_ABBREVIATION + count + 1, bound // 2 + count + 1
        self.max_abbreviations = abbreviations - 1
        self.max_attributes = attributes - 1
        self.dense = memoryview(np.zeros(count + 1, np.uint8))
        self.has_code = memoryview(np.zeros(count + 1, np.uint8))
        self.ready = memoryview(np.zeros(count + 1, np.uint8))
        self.first = memoryview(np.zeros(count + 1, np.int64))
        self.last = memoryview(np.zeros(count + 1, np.int64))
        self.codes = memoryview(np.zeros(abbreviations, np.int32))
        self.order = memoryview(np.zeros(abbreviations, np.int32))
        self.tag = memoryview(np.zeros(abbreviations, np.uint16))
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

    def need(self, table: cython.Py_ssize_t) -> cython.int:
        """Make `table` ready."""
        if not self.ready[table]:
            with cython.gil:
                self.compile(np.array([table], np.int64))
        return 0

    def find(self, table: cython.Py_ssize_t, code: cython.ulonglong) -> cython.Py_ssize_t:
        """The abbreviation of `code` in `table`, -1 if there is none; codes may be sparse (R71, abbreviation codes)."""
        low: cython.Py_ssize_t = self.first[table]
        high: cython.Py_ssize_t = self.last[table]
        middle: cython.Py_ssize_t
        if code > MAX_CODE:
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
                last = code if code < MAX_CODE else MAX_CODE
                tables.codes[abbreviation] = last
                tables.tag[abbreviation] = tag if tag < MASK16 else MASK16
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
                    constant = c.sleb() if form == DW_FORM_implicit_const else 0
                    if name == 0 and form == 0:
                        break
                    if attribute >= tables.max_attributes:
                        c.bad = True
                        break
                    if attribute - tables.attribute_first[abbreviation] > MAX_ATTRIBUTES:
                        continue
                    if attribute - tables.attribute_first[abbreviation] == MAX_ATTRIBUTES:
                        name = form = 0  # the last one represents all others and cannot be read
                    tables.attribute_name[attribute] = name if name < MASK16 else MASK16
                    tables.attribute_form[attribute] = form if form < MASK16 else MASK16
                    if form == DW_FORM_implicit_const:
                        tables.attribute_constant[attribute] = constant
                    attribute += 1
                    if name in (DW_AT_low_pc, DW_AT_ranges):
                        has_pc = True
                    elif name == DW_AT_declaration:
                        declaration = True
                    operation = skip_operation(
                        form,
                        cython.cast(cython.int, tables.address_sizes[i]),
                        cython.cast(cython.int, tables.offset_sizes[i]),
                        cython.cast(cython.int, tables.versions[i]),
                    )
                    if name == DW_AT_sibling and form == DW_FORM_ref4:
                        if fixed and not has_sibling:
                            sibling_at = size
                        has_sibling = True
                        operation = OP_SIBLING | (4 << OP_SIZE_SHIFT)
                    tables.attribute_read[attribute - 1] = read_operation(
                        name, form, operation, tables.has_discriminators
                    )
                    if operation & OP_KIND == OP_FIXED or operation & OP_KIND == OP_SIBLING:
                        size += operation >> OP_SIZE_SHIFT
                        if size > MAX_FIXED_SIZE:
                            fixed = False
                            size = 0
                        elif (
                            operation & OP_KIND == OP_FIXED
                            and op > tables.op_first[abbreviation]
                            and tables.ops[op - 1] & OP_KIND == OP_FIXED
                        ):
                            tables.ops[op - 1] += operation & ~OP_KIND
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
                if (tag in (DW_TAG_subprogram, DW_TAG_inlined_subroutine)) and has_pc:
                    flags |= CODE
                    tables.has_code[i] = 1
                if tag == DW_TAG_subprogram:
                    flags |= SUBPROGRAM
                if has_sibling and flags & HAS_CHILDREN:
                    # Subtrees that cannot hold code (R12, subtrees without code).
                    if tag == DW_TAG_subprogram:
                        flags |= SKIP_SUBTREE if declaration else 0
                    elif tag in (
                        DW_TAG_array_type,
                        DW_TAG_enumeration_type,
                        DW_TAG_subroutine_type,
                        DW_TAG_call_site,
                        DW_TAG_GNU_call_site,
                    ):
                        flags |= SKIP_SUBTREE
                    elif tag in (DW_TAG_structure_type, DW_TAG_union_type):  # only in C, as the language of the unit
                        flags |= TYPE_SUBTREE
                tables.sibling_at[abbreviation] = sibling_at
                tables.step[abbreviation] = flags | ((FIXED | (size << STEP_SIZE_SHIFT)) if fixed else 0)
                abbreviation += 1
            tables.last[i] = abbreviation
            if c.bad or abbreviation >= tables.max_abbreviations:
                tables.has_code[i] = 1  # what is missing may describe some; the walk finds out which units need it
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
    positions: cython.longlong[::1],
):
    """Fill `positions` with those in .debug_abbrev of the tags of root DIEs, -1 where there is none.

    Row `i` is code `codes[i]` in the table at `offsets[i]`; `order` sorts the rows by offset, then code.
    """
    c: Cursor = Cursor(data)
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    position: cython.longlong = -1
    left: cython.longlong = ROOTS_PER_BYTE * c.end
    with cython.nogil:
        for k in range(len(order)):
            i = order[k]
            if k == 0 or offsets[i] != offsets[order[k - 1]] or codes[i] != codes[order[k - 1]]:
                c.seek(offsets[i])
                position = find_abbreviation(data, c, codes[i]) if left > 0 and not c.bad else -1
                left -= c.pos - cython.cast(cython.longlong, offsets[i])
            positions[i] = position


def find_abbreviation(data: cython.const[cython.uchar][::1], c: Cursor, wanted: cython.ulonglong) -> cython.longlong:
    """The position behind the code `wanted` in the table at the cursor, which moves; -1 if it is not there."""
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
            while (
                pos + 2 <= c.end
                and 0 < data[pos] < LEB_MORE
                and data[pos + 1] < LEB_MORE
                and data[pos + 1] != DW_FORM_implicit_const
            ):
                pos += 2  # most attributes: a name and a form of a byte each
            c.pos = pos
            name = c.uleb()
            form = c.uleb()
            if form == DW_FORM_implicit_const:
                c.sleb()
            if name == 0 and form == 0:
                break
    return -1
