# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""The walk that finds all definitions of functions in a unit, those whose code is gone too."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.cursor import Cursor
    from symbolize.dwarf.abbrevs import AbbrevTables
    from symbolize.dwarf.columns import Ranges
    from symbolize.dwarf.reader import Reader, is_address_form

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
NOWHERE = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MAX_DEPTH = cython.declare(cython.int, 4096)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_definition(
    reader: Reader, tables: AbbrevTables, abbreviation: cython.Py_ssize_t, die: cython.ulonglong, found: Ranges
) -> cython.void:
    """Read the DIE of a subprogram and add it, unless it is a declaration or unreadable.

    Functions that are declared inline stand in headers; without code they are no definition of a symbol.
    """
    i: cython.int
    name: cython.int
    form: cython.int
    v: cython.ulonglong
    low: cython.ulonglong = NOWHERE
    high: cython.ulonglong = NOWHERE
    high_is_length: cython.bint = False
    position: cython.ulonglong = NOWHERE
    declaration: cython.bint = False
    inlined: cython.ulonglong = 0
    for i in range(tables.attribute_first[abbreviation], tables.attribute_first[abbreviation + 1]):
        name = tables.attribute_name[i]
        form = tables.attribute_form[i]
        v = reader.value(form, tables.attribute_constant[i])
        if name == 0x11:  # low_pc
            low = v
        elif name == 0x12:  # high_pc
            high = v
            high_is_length = not is_address_form(form)
        elif name == 0x55:  # ranges
            position = reader.range_list(form, v)
        elif name == 0x3C:
            declaration = v != 0
        elif name == 0x20:  # inline
            inlined = v
    if reader.info.bad or declaration:
        return
    if position != NOWHERE:
        reader.start_ranges(position)
        if reader.next_range():
            low = reader.range_begin
            high = reader.range_end
            high_is_length = False
    if low == NOWHERE or high == NOWHERE:
        if inlined >= 2:
            return
        low = high = NOWHERE
    elif high_is_length:
        high = (low + high) & MASK64
    found.append(low, high, cython.cast(cython.longlong, die))


@cython.ccall
def find_definitions(reader: Reader, unit: cython.Py_ssize_t, found: Ranges):  # type: ignore[no-untyped-def]
    """Add the definitions of functions in `unit` to `found`: the first range of each, and its DIE as the owner.

    A definition is a subprogram that is no declaration. One without code has 2⁶⁴-1 as begin and end; one whose
    code a linker discarded has what the linker left. The walk ends where the DIEs are corrupt.
    """
    c: Cursor = reader.info
    tables: AbbrevTables = reader.tables
    table: cython.Py_ssize_t = reader.units.table[unit]
    depth: cython.int = 0
    die: cython.ulonglong
    code: cython.ulonglong
    abbreviation: cython.Py_ssize_t
    with cython.nogil:
        reader.enter(unit)
        c.pos = reader.units.first_die[unit]
        while c.pos < c.end and not c.bad:
            die = c.pos
            code = c.uleb()
            if code == 0:
                depth -= 1
                if depth <= 0:
                    break
                continue
            abbreviation = tables.find(table, code)
            if abbreviation < 0:
                break
            if tables.tag[abbreviation] == 0x2E:
                read_definition(reader, tables, abbreviation, die, found)
            else:
                reader.skip_attributes(abbreviation)
            if tables.flags[abbreviation] & 1:
                depth += 1
                if depth >= MAX_DEPTH:
                    break
            elif depth == 0:
                break


def walk_definitions(reader: Reader, selected, found: Ranges) -> None:  # type: ignore[no-untyped-def]
    """Add the definitions of functions in the units `selected` (int64[m])."""
    reader.refill()
    reader.tables.compile(np.asarray(reader.units.table)[selected])
    for unit in selected.tolist():
        if not reader.units.bad[unit]:
            find_definitions(reader, unit, found)


@cython.ccall
def read_producers(reader: Reader, units: cython.const[cython.longlong][::1], producers: cython.ulonglong[::1]):  # type: ignore[no-untyped-def]
    """Fill in what made each of `units`, as a string reference, 2⁶⁴-1 where it does not say."""
    c: Cursor = reader.info
    tables: AbbrevTables = reader.tables
    i: cython.Py_ssize_t
    k: cython.int
    unit: cython.Py_ssize_t
    abbreviation: cython.Py_ssize_t
    v: cython.ulonglong
    with cython.nogil:
        for i in range(len(units)):
            unit = units[i]
            producers[i] = NOWHERE
            reader.enter(unit)
            c.pos = reader.units.first_die[unit]
            abbreviation = tables.find(reader.units.table[unit], c.uleb())
            if abbreviation < 0:
                continue
            for k in range(tables.attribute_first[abbreviation], tables.attribute_first[abbreviation + 1]):
                v = reader.value(tables.attribute_form[k], tables.attribute_constant[k])
                if c.bad:
                    break
                if tables.attribute_name[k] == 0x25:  # producer
                    producers[i] = v
