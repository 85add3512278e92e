# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Units as columns, and a reader of attribute values and range lists in the context of one unit."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.dwarf.abbrevs import skip_operation
    from symbolize.dwarf.constants import *

MAX_INDIRECTIONS = cython.declare(cython.int, 8)


def is_address_form(form: cython.int) -> cython.bint:
    """True for forms of class address: addr, addrx, addrx1–4, GNU_addr_index (R1, form of high_pc)."""
    return form in (DW_FORM_addr, DW_FORM_addrx, DW_FORM_GNU_addr_index) or DW_FORM_addrx1 <= form <= DW_FORM_addrx4


def bounded(offset: cython.ulonglong) -> cython.ulonglong:
    """An offset as it is in a reference; none is as large as the largest, which no section reaches."""
    return offset if offset < OFFSET_MASK else OFFSET_MASK


@cython.cclass
class Units:
    """Units of .debug_info, a row each, by offset. Absent offsets and addresses are 2⁶⁴-1.

    `signature` is the dwo id of a skeleton or split unit, or that of a type unit, whose type is the DIE at `type_die`;
    `dwo_name` names the `.dwo` file. `ranges_base` is GNU_ranges_base, `list_base` is added to offsets of range lists.
    `bad` units have no readable header or root, `corrupt` ones unreadable DIEs.
    """

    def __init__(self, count: int) -> None:
        nowhere = [
            "offset", "end", "first_die", "abbrev_offset", "name", "comp_dir", "line_program", "low_pc",
            "str_offsets_base", "addr_base", "rnglists_base", "ranges_base", "signature", "type_die", "dwo_name",
        ]  # fmt: skip
        for name in nowhere:
            setattr(self, name, memoryview(np.full(count, NOWHERE, np.uint64)))
        for name in ("version", "address_size", "offset_size", "kind", "bad", "corrupt"):
            setattr(self, name, memoryview(np.zeros(count, np.uint8)))
        self.list_base = memoryview(np.zeros(count, np.uint64))
        self.language = memoryview(np.zeros(count, np.uint16))
        self.table = memoryview(np.zeros(count, np.int64))


@cython.cclass
class Reader:
    """Reads DIE attributes and range lists of one unit at a time; `enter` chooses the unit.

    The cursor `info` is at the next byte. A value outside of a section marks its cursor bad until the next `enter`.
    """

    def __init__(self, info, addr, str_offsets, ranges, rnglists, big: cython.bint, units, tables):  # type: ignore[no-untyped-def]
        self.info = Cursor(info, 0, -1, big)
        self.addr = Cursor(addr, 0, -1, big)
        self.str_offsets = Cursor(str_offsets, 0, -1, big)
        self.ranges = Cursor(ranges, 0, -1, big)
        self.rnglists = Cursor(rnglists, 0, -1, big)
        self.units = units
        self.tables = tables
        self.unit = -1
        self.refill()

    def enter(self, unit: cython.Py_ssize_t) -> cython.int:
        """Read DIEs in the context of `unit` from now on; the position of `info` stays.

        Versions 2 to 5 may occur in one file: what depends on the version is decided for each unit (R70, mixed
        versions).
        """
        self.set_unit(unit)
        return self.tables.need(self.table)

    def enter_die(self, unit: cython.Py_ssize_t, offset: cython.ulonglong) -> cython.Py_ssize_t:
        """Enter `unit` and go to the attributes of its DIE at section offset `offset`; its abbreviation, or -1."""
        abbreviation: cython.Py_ssize_t
        self.enter(unit)
        self.info.pos = offset
        abbreviation = self.tables.find(self.table, self.info.uleb())
        return -1 if self.info.bad else abbreviation

    def set_unit(self, unit: cython.Py_ssize_t) -> cython.void:
        """Read values in the context of `unit` from now on, without its abbreviations; the position of `info` stays."""
        self.unit = unit
        self.table = self.units.table[unit]
        self.version = self.units.version[unit]
        self.address_size = self.units.address_size[unit]
        self.offset_size = self.units.offset_size[unit]
        self.unit_offset = self.units.offset[unit]
        self.low_pc = self.units.low_pc[unit]
        self.list_base = self.units.list_base[unit]
        self.max_address = MASK32 if self.address_size == 4 else MASK16 if self.address_size == 2 else MASK64
        self.info.end = self.units.end[unit]
        self.info.bad = False
        self.addr.bad = False
        self.str_offsets.bad = False
        self.ranges.bad = False
        self.rnglists.bad = False

    def unit_at(self, offset: cython.ulonglong) -> cython.Py_ssize_t:
        """The unit whose DIEs include section offset `offset`, -1 if there is none."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = len(self.units.offset)
        middle: cython.Py_ssize_t
        while low < high:
            middle = (low + high) // 2
            if self.units.offset[middle] <= offset:
                low = middle + 1
            else:
                high = middle
        if low == 0 or offset >= self.units.end[low - 1] or offset < self.units.first_die[low - 1]:
            return -1
        return low - 1

    def value(self, form: cython.int, constant: cython.longlong) -> cython.ulonglong:
        """Read one attribute value of `form` (R16, kinds of references; R68, sizes of forms).

        References are offsets in .debug_info, with their source if supplementary (R91, supplementary files), strings
        are string references, addresses resolved, rnglistx an index; unused kinds (blocks, signatures) are 2⁶⁴-1.
        """
        nesting: cython.int = 0
        v: cython.ulonglong
        while form == DW_FORM_indirect:
            form = cython.cast(cython.int, self.info.uleb() & MASK16)
            nesting += 1
            if nesting > MAX_INDIRECTIONS or form == DW_FORM_implicit_const:
                self.info.bad = True
                return NOWHERE
        if form == DW_FORM_addr:
            return self.info.uint(self.address_size)
        if form in (DW_FORM_data1, DW_FORM_flag):
            return self.info.uint(1)
        if form == DW_FORM_data2:
            return self.info.uint(2)
        if form == DW_FORM_data4:
            return self.info.uint(4)
        if form == DW_FORM_data8:
            return self.info.uint(8)
        if form in (DW_FORM_udata, DW_FORM_loclistx, DW_FORM_rnglistx):
            return self.info.uleb()
        if form == DW_FORM_sdata:
            return cython.cast(cython.ulonglong, self.info.sleb()) & MASK64
        if form == DW_FORM_implicit_const:
            return cython.cast(cython.ulonglong, constant) & MASK64
        if form == DW_FORM_flag_present:
            return 1
        if form == DW_FORM_ref4:
            return (self.unit_offset + self.info.uint(4)) & MASK64
        if form == DW_FORM_ref1:
            return (self.unit_offset + self.info.uint(1)) & MASK64
        if form == DW_FORM_ref2:
            return (self.unit_offset + self.info.uint(2)) & MASK64
        if form == DW_FORM_ref8:
            return (self.unit_offset + self.info.uint(8)) & MASK64
        if form == DW_FORM_ref_udata:
            return (self.unit_offset + self.info.uleb()) & MASK64
        if form == DW_FORM_ref_addr:
            return self.info.uint(self.address_size if self.version <= DWARF_2 else self.offset_size)
        if form == DW_FORM_sec_offset:
            return self.info.uint(self.offset_size)
        if form == DW_FORM_strp:
            return IN_STR | bounded(self.info.uint(self.offset_size))
        if form == DW_FORM_line_strp:
            return IN_LINE_STR | bounded(self.info.uint(self.offset_size))
        if form == DW_FORM_string:
            v = IN_INFO | cython.cast(cython.ulonglong, self.info.pos)
            self.info.skip_string()
            return v
        if form in (DW_FORM_strx, DW_FORM_GNU_str_index):
            return self.indexed_string(self.info.uleb())
        if DW_FORM_strx1 <= form <= DW_FORM_strx4:
            return self.indexed_string(self.info.uint(form - DW_FORM_strx1 + 1))
        if form in (DW_FORM_addrx, DW_FORM_GNU_addr_index):
            return self.indexed_address(self.info.uleb())
        if DW_FORM_addrx1 <= form <= DW_FORM_addrx4:
            return self.indexed_address(self.info.uint(form - DW_FORM_addrx1 + 1))
        if form in (DW_FORM_GNU_strp_alt, DW_FORM_strp_sup):
            return IN_STR | IN_SUPPLEMENTARY | bounded(self.info.uint(self.offset_size))
        if form == DW_FORM_GNU_ref_alt:
            return IN_SUPPLEMENTARY | bounded(self.info.uint(self.offset_size))
        if form in (DW_FORM_ref_sup4, DW_FORM_ref_sup8):
            return IN_SUPPLEMENTARY | bounded(self.info.uint(4 if form == DW_FORM_ref_sup4 else 8))
        self.skip_operation_of(form)
        return NOWHERE

    def skip_operation_of(self, form: cython.int) -> cython.void:
        """Move over one attribute of a form whose value is of no use here."""
        operation: cython.int = skip_operation(form, self.address_size, self.offset_size, self.version)
        kind: cython.int = operation & OP_KIND
        if kind == OP_FIXED:
            self.info.skip(operation >> OP_SIZE_SHIFT)
        elif kind == OP_BLOCK:
            self.info.skip(self.info.uint(operation >> OP_SIZE_SHIFT))
        elif kind == OP_BLOCK_LEB:
            self.info.skip(self.info.uleb())
        else:
            self.info.bad = True

    def indexed_string(self, index: cython.ulonglong) -> cython.ulonglong:
        """The string that entry `index` of the unit's part of .debug_str_offsets names, 2⁶⁴-1 if there is none."""
        base: cython.ulonglong = self.units.str_offsets_base[self.unit]
        limit: cython.ulonglong = self.str_offsets.end
        if base > limit or index > limit or base + index * self.offset_size + self.offset_size > limit:
            return NOWHERE
        self.str_offsets.pos = base + index * self.offset_size
        return IN_STR | bounded(self.str_offsets.uint(self.offset_size))

    def indexed_address(self, index: cython.ulonglong) -> cython.ulonglong:
        """Entry `index` of the unit's part of .debug_addr, 2⁶⁴-1 if there is none."""
        base: cython.ulonglong = self.units.addr_base[self.unit]
        limit: cython.ulonglong = self.addr.end
        if base > limit or index > limit or base + (index + 1) * self.address_size > limit:
            self.addr.bad = True
            return NOWHERE
        self.addr.pos = base + index * self.address_size
        return self.addr.uint(self.address_size)

    def range_list(self, form: cython.int, value: cython.ulonglong) -> cython.ulonglong:
        """The section offset of the range list that an attribute of `form` names (R4, range lists of DWARF 5; R79,
        split DWARF 4)."""
        base: cython.ulonglong
        limit: cython.ulonglong = self.rnglists.end
        if form != DW_FORM_rnglistx:
            return (value + self.list_base) & MASK64
        base = self.units.rnglists_base[self.unit]
        if base > limit or value > limit or base + value * self.offset_size > limit:
            self.rnglists.bad = True
            return NOWHERE
        self.rnglists.pos = base + value * self.offset_size
        return base + self.rnglists.uint(self.offset_size)

    def skip_attributes(self, abbreviation: cython.Py_ssize_t) -> cython.void:
        """Move over all attributes of a DIE."""
        step: cython.uint = self.tables.step[abbreviation]
        if step & FIXED:
            self.info.skip(step >> STEP_SIZE_SHIFT)
        else:
            self.skip_operations(self.tables.op_first[abbreviation], self.tables.op_first[abbreviation + 1])

    def skip_operations(self, first: cython.int, last: cython.int) -> cython.void:
        """Execute the skip operations `[first, last)`; an unknown form marks the cursor bad (R69, unknown forms)."""
        i: cython.int
        operation: cython.int
        kind: cython.int
        form: cython.int
        nesting: cython.int
        for i in range(first, last):
            operation = self.tables.ops[i]
            nesting = 0
            while operation & OP_KIND == OP_INDIRECT:
                form = cython.cast(cython.int, self.info.uleb() & MASK16)
                nesting += 1
                if nesting > MAX_INDIRECTIONS or form == DW_FORM_implicit_const:
                    self.info.bad = True
                    return
                operation = skip_operation(form, self.address_size, self.offset_size, self.version)
            kind = operation & OP_KIND
            if kind in (OP_FIXED, OP_SIBLING):
                self.info.skip(operation >> OP_SIZE_SHIFT)
            elif kind == OP_LEB:
                self.info.uleb()
            elif kind == OP_STRING:
                self.info.skip_string()
            elif kind == OP_BLOCK:
                self.info.skip(self.info.uint(operation >> OP_SIZE_SHIFT))
            elif kind == OP_BLOCK_LEB:
                self.info.skip(self.info.uleb())
            else:
                self.info.bad = True
                return

    def refill(self) -> None:
        """Allow more range list entries than a file without overlapping lists can hold; DIEs could name the same long
        list."""
        self.ranges_left = 1024 + self.ranges.end + self.rnglists.end + len(self.info.data)

    def may_read_range(self) -> cython.bint:
        """Count one range list entry; False when there were too many."""
        self.ranges_left -= 1
        return self.ranges_left >= 0

    def start_ranges(self, position: cython.ulonglong) -> cython.void:
        """Begin to read the range list at section offset `position` of .debug_ranges or .debug_rnglists."""
        if self.version < DWARF_5:
            self.ranges.seek(position)
        else:
            self.rnglists.seek(position)
        self.ranges_base = 0 if self.low_pc == NOWHERE else self.low_pc

    def next_range(self) -> cython.bint:
        """Advance to the next range, `range_begin` to `range_end`; False at the end of the list or of the section.

        Inverted and tombstoned entries are skipped (R57, marks in range lists; R58, marks remove one entry), base
        selectors applied (R3, range lists up to DWARF 4). Empty ranges are not skipped (R8, functions of length zero).
        """
        return self.next_range_4() if self.version < DWARF_5 else self.next_range_5()

    def next_range_4(self) -> cython.bint:
        """One entry of .debug_ranges (DWARF 4 §2.17.3).

        Ranges count from the `low_pc` of the unit, from 0 if it has none; an entry that begins with the highest address
        selects another base for those behind it (R3, range lists up to DWARF 4).
        """
        begin: cython.ulonglong
        end: cython.ulonglong
        while self.may_read_range():
            begin = self.ranges.uint(self.address_size)
            end = self.ranges.uint(self.address_size)
            if self.ranges.bad or (begin == 0 and end == 0):
                return False
            if begin == self.max_address:
                self.ranges_base = end
            elif begin <= end and begin != self.max_address - 1 and self.ranges_base < self.max_address - 1:
                self.range_begin = (begin + self.ranges_base) & self.max_address
                self.range_end = (end + self.ranges_base) & self.max_address
                if self.range_begin <= self.range_end:
                    return True
        return False

    def next_range_5(self) -> cython.bint:
        """One entry of .debug_rnglists (DWARF 5 §2.17.3)."""
        kind: cython.ulonglong
        begin: cython.ulonglong
        end: cython.ulonglong
        while self.may_read_range():
            kind = self.rnglists.uint(1)
            if self.rnglists.bad or kind == DW_RLE_end_of_list:
                return False
            if kind == DW_RLE_base_addressx:
                self.ranges_base = self.indexed_address(self.rnglists.uleb())
                continue
            if kind == DW_RLE_base_address:
                self.ranges_base = self.rnglists.uint(self.address_size)
                continue
            if kind == DW_RLE_offset_pair:
                begin = self.rnglists.uleb()
                end = self.rnglists.uleb()
                if self.ranges_base >= self.max_address - 1:
                    continue
                begin = (begin + self.ranges_base) & self.max_address
                end = (end + self.ranges_base) & self.max_address
            elif kind == DW_RLE_startx_endx:
                begin = self.indexed_address(self.rnglists.uleb())
                end = self.indexed_address(self.rnglists.uleb())
                if end == NOWHERE:
                    continue
            elif kind == DW_RLE_startx_length:
                begin = self.indexed_address(self.rnglists.uleb())
                end = (begin + self.rnglists.uleb()) & self.max_address
            elif kind == DW_RLE_start_end:
                begin = self.rnglists.uint(self.address_size)
                end = self.rnglists.uint(self.address_size)
            elif kind == DW_RLE_start_length:
                begin = self.rnglists.uint(self.address_size)
                end = (begin + self.rnglists.uleb()) & self.max_address
            else:
                self.rnglists.bad = True
                return False
            if self.rnglists.bad:
                return False
            if begin <= end and begin < self.max_address - 1:
                self.range_begin = begin
                self.range_end = end
                return True
        return False
