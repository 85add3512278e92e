# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""The walk over the DIEs of a unit that finds every function and inlined function with code."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.cursor import Cursor
    from symbolize.dwarf.abbrevs import AbbrevTables
    from symbolize.dwarf.columns import Nodes, Ranges
    from symbolize.dwarf.reader import Reader, Units, is_address_form

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
NOWHERE = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

# Bits of AbbrevTables.flags.
HAS_CHILDREN = cython.declare(cython.int, 1)
CODE = cython.declare(cython.int, 2)
SKIP_SUBTREE = cython.declare(cython.int, 4)
SUBPROGRAM = cython.declare(cython.int, 8)
TYPE_SUBTREE = cython.declare(cython.int, 16)

MAX_DEPTH = cython.declare(cython.int, 4096)
"""DIEs nested deeper than this are corrupt data; real ones stay below a few hundred."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def is_c(language: cython.int) -> cython.bint:
    """Languages in which a structure holds no functions (rule R12): C89, C, C99, C11, C17, C23."""
    return (
        language == 0x01
        or language == 0x02
        or language == 0x0C
        or language == 0x1D
        or language == 0x2C
        or language == 0x3E
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def skip_to_sibling(reader: Reader, abbreviation: cython.Py_ssize_t) -> cython.bint:
    """Move from a DIE's attributes past its subtree; False if its sibling attribute is of no use (rule R76).

    On False the cursor stands behind the attributes.
    """
    i: cython.int
    last: cython.int = reader.tables.op_first[abbreviation + 1]
    target: cython.ulonglong
    for i in range(reader.tables.op_first[abbreviation], last):
        if reader.tables.ops[i] & 15 == 6:
            target = (reader.unit_offset + reader.info.uint(4)) & MASK64
            if (
                cython.cast(cython.ulonglong, reader.info.pos)
                < target
                <= cython.cast(cython.ulonglong, reader.info.end)
            ):
                reader.info.pos = target
                return True
            reader.skip_operations(i + 1, last)
            return False
        reader.skip_operations(i, i + 1)
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_code_die(
    reader: Reader,
    tables: AbbrevTables,
    abbreviation: cython.Py_ssize_t,
    parent: cython.longlong,
    nodes: Nodes,
    ranges: Ranges,
) -> cython.longlong:
    """Read the DIE of a function or inlined function and add its node and ranges.

    Returns the node, or -1 if no range is left (rules R7, R28).
    """
    i: cython.int
    name: cython.int
    form: cython.int
    v: cython.ulonglong
    low: cython.ulonglong = NOWHERE
    high: cython.ulonglong = NOWHERE
    high_is_length: cython.bint = False
    entry: cython.ulonglong = NOWHERE
    position: cython.ulonglong = NOWHERE
    origin: cython.ulonglong = NOWHERE
    call_file: cython.ulonglong = 0
    call_line: cython.ulonglong = 0
    call_column: cython.ulonglong = 0
    node: cython.longlong
    first: cython.Py_ssize_t = ranges.count
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
        elif name == 0x52:  # entry_pc, of use only as an address
            if is_address_form(form):
                entry = v
        elif name == 0x31:  # abstract_origin
            origin = v
        elif name == 0x58:
            call_file = v
        elif name == 0x59:
            call_line = v
        elif name == 0x57:
            call_column = v
    if reader.info.bad:
        return -1
    node = nodes.count
    if position != NOWHERE:  # a range list wins over low_pc and high_pc (rule R2)
        reader.start_ranges(position)
        while reader.next_range():
            ranges.append(reader.range_begin, reader.range_end, node)
    elif low != NOWHERE and high != NOWHERE:
        if high_is_length:
            high = (low + high) & MASK64
        if low < high:
            ranges.append(low, high, node)
    if ranges.count == first:
        return -1
    if entry == NOWHERE:  # rule R5
        entry = low if low != NOWHERE else ranges.begin[first]
    nodes.add()
    nodes.die[node] = 0
    nodes.origin[node] = origin
    nodes.entry[node] = entry
    nodes.unit[node] = reader.unit
    nodes.parent[node] = parent
    nodes.call_file[node] = call_file if call_file < MASK32 else 0
    nodes.call_line[node] = call_line if call_line < MASK32 else 0
    nodes.call_column[node] = call_column if call_column < MASK32 else 0
    return node


@cython.ccall
def walk_unit(
    reader: Reader, unit: cython.Py_ssize_t, nodes: Nodes, ranges: Ranges, stack: cython.longlong[::1]
) -> cython.bint:
    """Add the nodes and ranges of `unit`; `stack` is scratch space of MAX_DEPTH entries.

    False if the DIEs are corrupt from some point on: what was read before it stands, and the unit is marked corrupt.
    """
    units: Units = reader.units
    tables: AbbrevTables = reader.tables
    c: Cursor = reader.info
    table: cython.Py_ssize_t = units.table[unit]
    skip: cython.int = SKIP_SUBTREE
    depth: cython.int = 0
    flags: cython.int
    die: cython.Py_ssize_t
    abbreviation: cython.Py_ssize_t
    node: cython.longlong
    code: cython.ulonglong
    sound: cython.bint = True
    if is_c(units.language[unit]):
        skip |= TYPE_SUBTREE
    with cython.nogil:
        reader.enter(unit)
        c.pos = units.first_die[unit]
        while c.pos < c.end:
            die = c.pos
            code = c.uleb()
            if code == 0 and not c.bad:
                depth -= 1
                if depth <= 0:
                    break
                continue
            abbreviation = tables.find(table, code)
            if abbreviation < 0 or c.bad:
                sound = False
                break
            flags = tables.flags[abbreviation]
            node = -1
            if flags & CODE:
                # A nested function is a function of its own, never inlined into its DIE parent (rule R11).
                node = read_code_die(
                    reader, tables, abbreviation, -1 if flags & SUBPROGRAM else stack[depth], nodes, ranges
                )
                if node >= 0:
                    nodes.die[node] = die
            elif flags & skip:
                if skip_to_sibling(reader, abbreviation):
                    continue
            else:
                reader.skip_attributes(abbreviation)
            if c.bad:
                sound = False
                break
            if flags & HAS_CHILDREN:
                if depth + 1 >= MAX_DEPTH:
                    sound = False
                    break
                # Blocks, types and code-less functions are passed through (rules R10, R24, R28).
                if node < 0 and not flags & SUBPROGRAM and depth > 0:
                    node = stack[depth]
                depth += 1
                stack[depth] = node
            elif depth == 0:
                break
    if not sound:
        units.corrupt[unit] = 1
    return sound


def walk_units(reader: Reader, selected, nodes: Nodes, ranges: Ranges) -> None:  # type: ignore[no-untyped-def]
    """Add the nodes and ranges of the units `selected` (int64[m]), within `ranges_left` of the reader."""
    units: Units = reader.units
    tables: AbbrevTables = reader.tables
    stack = memoryview(np.full(MAX_DEPTH, -1, np.int64))
    for unit in selected.tolist():
        if not units.bad[unit] and units.kind[unit] not in (2, 6) and tables.has_code[units.table[unit]]:
            walk_unit(reader, unit, nodes, ranges, stack)
