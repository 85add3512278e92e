# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Unit headers (DWARF 5 §7.5.1) and the attributes of the root DIE of each unit.

The size of an address is that of the unit header, not of the ELF class (R65, address size). The header of a DWARF 5
unit has its fields in another order and a kind of unit, which may add a signature (R66, header of DWARF 5 units).
"""

import cython
import numpy as np

from symbolize.dwarf.abbrevs import AbbrevTables, find_roots

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.dwarf.columns import Ranges
    from symbolize.dwarf.constants import *
    from symbolize.dwarf.reader import Reader, Units, is_address_form

MAX_VERSION = cython.declare(cython.ulonglong, 255)
"""Later versions of units are as good as this one."""


def scan_headers(  # type: ignore[no-untyped-def]
    info: cython.const[cython.uchar][::1], big: cython.bint, types: cython.bint, units: Units, fill: cython.bint
) -> int:
    """Walk the unit headers of .debug_info, or of .debug_types if `types`, and fill `units` if `fill`; how many there
    are.

    A unit of an unknown version is marked bad. A length that is reserved (R64, 64-bit DWARF) or exceeds the section
    ends the walk, the latter with a shortened unit.
    """
    c: Cursor = Cursor(info, 0, -1, big)
    count: cython.Py_ssize_t = 0
    offset: cython.Py_ssize_t
    end: cython.ulonglong
    length: cython.ulonglong
    offset_size: cython.int
    version: cython.ulonglong
    kind: cython.ulonglong
    address_size: cython.ulonglong
    abbrev_offset: cython.ulonglong
    signature: cython.ulonglong
    type_die: cython.ulonglong
    while c.pos < c.end:
        offset = c.pos
        offset_size = 4
        length = c.uint(4)
        if length == 0 and not c.bad:  # zero padding between units (R72, padding of units)
            continue
        if length == DW_LENGTH_DWARF64:
            offset_size = 8
            length = c.uint(8)
        elif length >= DW_LENGTH_lo_reserved:
            break
        if c.bad:
            break
        end = c.end
        if length < end - c.pos:
            end = c.pos + length
        version = c.uint(2)
        kind = DW_UT_type if types else DW_UT_compile  # of older units, until their root is read
        signature = type_die = NOWHERE
        if version >= DWARF_5:
            kind = c.uint(1)
            address_size = c.uint(1)
            abbrev_offset = c.uint(offset_size)
            if kind in (DW_UT_skeleton, DW_UT_split_compile):  # a dwo id
                signature = c.uint(8)
            elif kind in (DW_UT_type, DW_UT_split_type):  # a signature and the offset of the type
                signature = c.uint(8)
                type_die = (offset + c.uint(offset_size)) & MASK64
        else:
            abbrev_offset = c.uint(offset_size)
            address_size = c.uint(1)
            if types:
                signature = c.uint(8)
                type_die = (offset + c.uint(offset_size)) & MASK64
        if fill:
            units.offset[count] = offset
            units.end[count] = end
            units.first_die[count] = c.pos if cython.cast(cython.ulonglong, c.pos) < end else end
            units.abbrev_offset[count] = abbrev_offset
            units.version[count] = version if version < MAX_VERSION else MAX_VERSION
            units.kind[count] = kind
            units.signature[count] = signature
            units.type_die[count] = type_die
            units.address_size[count] = address_size
            units.offset_size[count] = offset_size
            units.bad[count] = (
                c.bad
                or version < DWARF_2
                or version > DWARF_5
                or kind < DW_UT_compile
                or kind > DW_UT_split_type
                or address_size not in (2, 4, 8)
                or cython.cast(cython.ulonglong, c.pos) > end
            )
        count += 1
        c.bad = False
        c.pos = end
    return count


def read_root(
    reader: Reader,
    units: Units,
    unit: cython.Py_ssize_t,
    abbreviation: Cursor,
    position: cython.ulonglong,
    bases: cython.bint,
    ranges: cython.ulonglong[::1],
) -> cython.bint:
    """Read the bases of the root DIE of `unit`, or all else (R67, bases first); False if it is
    unreadable.

    Its abbreviation is read from `position` of .debug_abbrev, because most tables need not be compiled for it. `ranges`
    receives low_pc, high_pc (as an address) and the position of a range list.
    """
    count: cython.int = 0
    name: cython.ulonglong
    form: cython.int
    raw_form: cython.ulonglong
    constant: cython.longlong
    v: cython.ulonglong
    high_is_address: cython.bint = False
    reader.set_unit(unit)
    reader.info.pos = units.first_die[unit]
    reader.info.uleb()
    abbreviation.seek(position)
    if abbreviation.uleb() == DW_TAG_partial_unit and units.kind[unit] == DW_UT_compile:
        units.kind[unit] = DW_UT_partial  # which headers have since DWARF 5 only
    abbreviation.uint(1)
    while True:
        name = abbreviation.uleb()
        raw_form = abbreviation.uleb()
        constant = abbreviation.sleb() if raw_form == DW_FORM_implicit_const else 0
        if name == 0 and raw_form == 0:
            break
        count += 1
        if count > MAX_ATTRIBUTES:
            return False
        form = cython.cast(cython.int, raw_form if raw_form < MASK16 else MASK16)
        v = reader.value(form, constant)
        if bases:
            if name == DW_AT_str_offsets_base:
                units.str_offsets_base[unit] = v
            elif name in (DW_AT_addr_base, DW_AT_GNU_addr_base):
                units.addr_base[unit] = v
            elif name == DW_AT_rnglists_base:
                units.rnglists_base[unit] = v
            elif name == DW_AT_GNU_ranges_base:
                units.ranges_base[unit] = v
        elif name == DW_AT_name:
            units.name[unit] = v
        elif name == DW_AT_comp_dir:
            units.comp_dir[unit] = v
        elif name == DW_AT_stmt_list:
            units.line_program[unit] = v
        elif name == DW_AT_language:
            units.language[unit] = v & MASK16
        elif name == DW_AT_low_pc:
            ranges[0] = v
        elif name == DW_AT_high_pc:
            ranges[1] = v
            high_is_address = is_address_form(form)
        elif name == DW_AT_ranges:
            ranges[2] = reader.range_list(form, v)
        elif name == DW_AT_GNU_dwo_id and units.version[unit] < DWARF_5:
            units.signature[unit] = v
        elif name in (DW_AT_dwo_name, DW_AT_GNU_dwo_name):
            units.dwo_name[unit] = v
        if reader.info.bad:
            return False
    if not bases:
        units.low_pc[unit] = ranges[0]
        if ranges[0] != NOWHERE and ranges[1] != NOWHERE and not high_is_address:
            ranges[1] = (ranges[0] + ranges[1]) & MASK64
    return True


def read_units(sections) -> tuple[Reader, np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[no-untyped-def, type-arg]
    """Read all unit headers and root DIEs of `sections` (DebugSections): a Reader, and the ranges that the roots claim:
    begin, end (uint64[m]) and unit (int64[m])."""
    count = scan_headers(sections.info, sections.big_endian, sections.holds_types, Units(0), False)
    units = Units(count)
    scan_headers(sections.info, sections.big_endian, sections.holds_types, units, True)
    if sections.is_split:
        set_split_bases(units)
    keys = np.stack(
        [
            np.asarray(units.abbrev_offset).view(np.int64),
            np.asarray(units.address_size).astype(np.int64),
            np.asarray(units.offset_size).astype(np.int64),
            np.minimum(np.asarray(units.version), 3).astype(np.int64),
        ]
    )
    order = np.lexsort(keys)
    keys = keys[:, order]
    new = np.ones(count, np.bool_)
    new[1:] = np.diff(keys, axis=1).any(axis=0)
    table = np.empty(count, np.int64)
    table[order] = np.cumsum(new) - 1
    units.table = memoryview(table)
    shapes = (np.ascontiguousarray(row[new]) for row in keys)
    tables = AbbrevTables(sections.abbrev, *shapes, has_discriminators=sections.has_discriminators)
    reader = make_reader(sections, units, tables)
    begins, ends, owners = collect_root_ranges(reader, sections.abbrev)
    return reader, begins, ends, owners


def set_split_bases(units: Units) -> None:
    """Set the bases of split units behind the headers of the tables, which DWARF 4 has not (R78, bases of split
    units)."""
    wide = np.asarray(units.offset_size) == 8
    modern = np.asarray(units.version) >= DWARF_5
    units.str_offsets_base = memoryview(np.where(modern, np.where(wide, 16, 8), 0).astype(np.uint64))
    units.rnglists_base = memoryview(np.where(wide, 20, 12).astype(np.uint64))


def make_reader(sections, units: Units, tables: AbbrevTables) -> Reader:  # type: ignore[no-untyped-def]
    """A reader over `sections`; every thread needs its own."""
    return Reader(
        sections.info,
        sections.addr,
        sections.str_offsets,
        sections.ranges,
        sections.rnglists,
        sections.big_endian,
        units,
        tables,
    )


def root_positions(reader: Reader, abbrev: cython.const[cython.uchar][::1]):  # type: ignore[no-untyped-def]
    """The position in .debug_abbrev of the abbreviation of each root DIE: int64[n], -1 for none."""
    units: Units = reader.units
    count: cython.Py_ssize_t = len(units.offset)
    found = np.zeros(count, np.uint64), np.full(count, -1, np.int64)
    codes: cython.ulonglong[::1] = memoryview(found[0])
    unit: cython.Py_ssize_t
    with cython.nogil:
        for unit in range(count):
            if not units.bad[unit]:
                reader.set_unit(unit)
                reader.info.pos = units.first_die[unit]
                codes[unit] = reader.info.uleb()
    order = memoryview(np.lexsort((found[0], np.asarray(units.abbrev_offset))))
    find_roots(abbrev, units.abbrev_offset, codes, order, memoryview(found[1]))
    return found[1]


def collect_root_ranges(  # type: ignore[no-untyped-def]
    reader: Reader, abbrev: cython.const[cython.uchar][::1]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Read every root DIE into the reader's units; the claimed ranges as arrays begin, end, unit."""
    units: Units = reader.units
    abbreviation: Cursor = Cursor(abbrev)
    positions: cython.longlong[::1] = memoryview(root_positions(reader, abbrev))
    ranges: cython.ulonglong[::1] = memoryview(np.zeros(3, np.uint64))
    claimed: Ranges = Ranges()
    unit: cython.Py_ssize_t
    first: cython.Py_ssize_t
    end: cython.ulonglong
    usable: cython.bint
    with cython.nogil:
        for unit in range(len(units.offset)):
            if units.bad[unit]:
                continue
            ranges[0] = ranges[1] = ranges[2] = NOWHERE
            if (
                positions[unit] < 0
                or not read_root(reader, units, unit, abbreviation, positions[unit], True, ranges)
                or not read_root(reader, units, unit, abbreviation, positions[unit], False, ranges)
            ):
                units.bad[unit] = 1
                continue
            if units.kind[unit] not in (DW_UT_compile, DW_UT_skeleton):  # others hold no code (R90, units with code)
                continue
            if ranges[2] != NOWHERE:
                reader.set_unit(unit)
                reader.start_ranges(ranges[2])
                first = claimed.count
                usable = False
                while reader.next_range():
                    usable |= reader.range_begin < reader.range_end
                    # The address of a function of length zero (R8, functions of length zero).
                    end = reader.range_begin + 1
                    claimed.append(reader.range_begin, reader.range_end if reader.range_end > end else end, unit)
                if not usable:
                    claimed.count = first
            elif ranges[0] != NOWHERE and ranges[1] != NOWHERE and ranges[0] < ranges[1]:
                claimed.append(ranges[0], ranges[1], unit)
    return claimed.arrays()  # type: ignore[no-any-return]
