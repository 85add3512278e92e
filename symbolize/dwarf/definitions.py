# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""The walk that finds all definitions of functions in a unit, those whose code is gone too."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.dwarf.abbrevs import AbbrevTables
    from symbolize.dwarf.columns import Ranges
    from symbolize.dwarf.constants import *
    from symbolize.dwarf.reader import Reader, is_address_form


def read_definition(
    reader: Reader, tables: AbbrevTables, abbreviation: cython.Py_ssize_t, die: cython.ulonglong, found: Ranges
) -> cython.int:
    """Read the DIE of a subprogram and add it, unless it is a declaration, an inline function without code, or
    unreadable."""
    i: cython.int
    name: cython.int
    form: cython.int
    v: cython.ulonglong
    low: cython.ulonglong = NOWHERE
    high: cython.ulonglong = NOWHERE
    high_is_length: cython.bint = False
    entry: cython.ulonglong = NOWHERE
    is_first: cython.bint = True
    position: cython.ulonglong = NOWHERE
    declaration: cython.bint = False
    inlined: cython.ulonglong = 0
    for i in range(tables.attribute_first[abbreviation], tables.attribute_first[abbreviation + 1]):
        name = tables.attribute_name[i]
        form = tables.attribute_form[i]
        v = reader.value(form, tables.attribute_constant[i])
        if name == DW_AT_low_pc:
            low = v
        elif name == DW_AT_high_pc:
            high = v
            high_is_length = not is_address_form(form)
        elif name == DW_AT_ranges:
            position = reader.range_list(form, v)
        elif name == DW_AT_entry_pc:  # of use only as an address
            if is_address_form(form):
                entry = v
        elif name == DW_AT_declaration:
            declaration = v != 0
        elif name == DW_AT_inline:
            inlined = v
    if reader.info.bad or declaration:
        return 0
    if position != NOWHERE:
        if entry == NOWHERE:  # R5, entry of a function
            entry = low
        reader.start_ranges(position)
        while (is_first or (entry != NOWHERE and low != entry)) and reader.next_range():
            if is_first or reader.range_begin == entry:
                low = reader.range_begin
                high = reader.range_end
                high_is_length = is_first = False
    if low == NOWHERE or high == NOWHERE:
        if inlined >= DW_INL_declared_not_inlined:
            return 0
        low = high = NOWHERE
    elif high_is_length:
        high = (low + high) & MASK64
    return found.append(low, high, cython.cast(cython.longlong, die))


@cython.ccall
def find_definitions(reader: Reader, unit: cython.Py_ssize_t, found: Ranges):  # type: ignore[no-untyped-def]
    """Add the definitions of functions in `unit` to `found`: the range of the entry (R5, entry of a function), else the
    first, and the DIE.

    A definition without code has 2⁶⁴-1 as begin and end; one whose code was discarded has what the linker left. The
    walk ends where the DIEs are corrupt.
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
            if tables.tag[abbreviation] == DW_TAG_subprogram:
                read_definition(reader, tables, abbreviation, die, found)
            else:
                reader.skip_attributes(abbreviation)
            if tables.flags[abbreviation] & HAS_CHILDREN:
                depth += 1
                if depth >= MAX_DIE_DEPTH:
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
