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
FIXED = cython.declare(cython.int, 32)

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
@cython.inline
@cython.nogil
@cython.boundscheck(False)
@cython.exceptval(check=False)
def unsigned_at(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.int, big: cython.bint
) -> cython.ulonglong:
    """The integer of `size` bytes, at most 8, at `at`.

    The bounds are not checked here: callers have compared `at + size` with the end of the unit, which lies in `data`.
    """
    i: cython.int
    value: cython.ulonglong = 0
    if big:
        for i in range(size):
            value = (value << 8) | data[at + i]
        return value
    if size == 1:
        return data[at]
    if size == 2:
        return data[at] | (cython.cast(cython.ulonglong, data[at + 1]) << 8)
    if size == 4 or size == 8:
        value = (
            data[at]
            | (cython.cast(cython.ulonglong, data[at + 1]) << 8)
            | (cython.cast(cython.ulonglong, data[at + 2]) << 16)
            | (cython.cast(cython.ulonglong, data[at + 3]) << 24)
        )
        if size == 8:
            value |= (
                (cython.cast(cython.ulonglong, data[at + 4]) << 32)
                | (cython.cast(cython.ulonglong, data[at + 5]) << 40)
                | (cython.cast(cython.ulonglong, data[at + 6]) << 48)
                | (cython.cast(cython.ulonglong, data[at + 7]) << 56)
            )
        return value
    for i in range(size):
        value |= cython.cast(cython.ulonglong, data[at + i]) << (8 * i)
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_code_die(
    data: cython.const[cython.uchar][::1],
    reader: Reader,
    tables: AbbrevTables,
    abbreviation: cython.Py_ssize_t,
    parent: cython.longlong,
    nodes: Nodes,
    ranges: Ranges,
) -> cython.longlong:
    """Read the DIE of a function or inlined function and add its node and ranges.

    Returns the node, or -1 if no range is left (rules R7, R28). A function whose ranges are all empty keeps the first
    of them, which is its place (rule R8).
    """
    i: cython.int
    read: cython.int
    field: cython.int
    size: cython.int
    v: cython.ulonglong
    low: cython.ulonglong = NOWHERE
    high: cython.ulonglong = NOWHERE
    high_is_length: cython.bint = False
    entry: cython.ulonglong = NOWHERE
    position: cython.ulonglong = NOWHERE
    origin: cython.ulonglong = NOWHERE
    place: cython.ulonglong = NOWHERE
    call_file: cython.ulonglong = 0
    call_line: cython.ulonglong = 0
    call_column: cython.ulonglong = 0
    node: cython.longlong
    first: cython.Py_ssize_t = ranges.count
    for i in range(tables.attribute_first[abbreviation], tables.attribute_first[abbreviation + 1]):
        read = tables.attribute_read[i]
        field = read >> 8
        size = read & 31
        if read & 64:
            v = reader.value(tables.attribute_form[i], tables.attribute_constant[i])
        elif reader.info.end - reader.info.pos < size:
            reader.info.bad = True
            break
        else:
            if field != 0:
                v = unsigned_at(data, reader.info.pos, size, reader.info.big)
                if read & 32:
                    v = (v + reader.unit_offset) & MASK64
            reader.info.pos += size
        if field == 0:
            continue
        if field == 1:  # low_pc
            low = v
        elif field == 2:  # high_pc
            high = v
            high_is_length = not is_address_form(tables.attribute_form[i])
        elif field == 3:  # ranges
            position = reader.range_list(tables.attribute_form[i], v)
        elif field == 4:  # entry_pc, of use only as an address
            if is_address_form(tables.attribute_form[i]):
                entry = v
        elif field == 5:  # abstract_origin
            origin = v
        elif field == 6:
            call_column = v
        elif field == 7:
            call_file = v
        else:
            call_line = v
    if reader.info.bad:
        return -1
    node = nodes.count
    if position != NOWHERE:  # a range list wins over low_pc and high_pc (rule R2)
        reader.start_ranges(position)
        while reader.next_range():
            if reader.range_begin < reader.range_end:
                ranges.append(reader.range_begin, reader.range_end, node)
            elif place == NOWHERE:
                place = reader.range_begin
    elif low != NOWHERE and high != NOWHERE:
        if high_is_length:
            high = (low + high) & MASK64
        if low < high:
            ranges.append(low, high, node)
        elif low == high:
            place = low
    if ranges.count == first:
        if place == NOWHERE or not tables.flags[abbreviation] & SUBPROGRAM:
            return -1
        ranges.append(place, place, node)
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
) -> cython.longlong:
    """Add the nodes and ranges of `unit`; `stack` is scratch space of MAX_DEPTH entries. Returns how many DIEs it read.

    If the DIEs are corrupt from some point on, what was read before it stands, and the unit is marked corrupt.
    """
    units: Units = reader.units
    tables: AbbrevTables = reader.tables
    c: Cursor = reader.info
    data: cython.const[cython.uchar][::1] = c.data
    steps: cython.uint[::1] = tables.step
    sibling_at: cython.int[::1] = tables.sibling_at
    op_first: cython.int[::1] = tables.op_first
    ops: cython.int[::1] = tables.ops
    table: cython.Py_ssize_t = units.table[unit]
    first: cython.Py_ssize_t
    known: cython.ulonglong
    dense: cython.bint
    skip: cython.uint = SKIP_SUBTREE
    # Module variables would be loaded again for every DIE.
    has_children: cython.uint = HAS_CHILDREN
    is_code: cython.uint = CODE
    is_function: cython.uint = SUBPROGRAM
    is_fixed: cython.uint = FIXED
    slow: cython.uint
    depth: cython.int = 0
    step: cython.uint
    pos: cython.Py_ssize_t = units.first_die[unit]
    end: cython.Py_ssize_t
    die: cython.Py_ssize_t
    abbreviation: cython.Py_ssize_t
    node: cython.longlong
    code: cython.ulonglong
    target: cython.ulonglong
    at: cython.Py_ssize_t
    i: cython.int
    operation: cython.int
    kind: cython.int
    big: cython.bint = c.big
    read: cython.longlong = 0
    sound: cython.bint = True
    if is_c(units.language[unit]):
        skip |= TYPE_SUBTREE
    slow = CODE | skip | FIXED
    with cython.nogil:
        reader.enter(unit)
        first = tables.first[table]
        known = tables.last[table] - first
        dense = tables.dense[table]
        end = c.end
        while pos < end:
            die = pos
            code = data[pos]
            pos += 1
            if code >= 0x80:
                if pos < end and data[pos] < 0x80:
                    code = (code & 0x7F) | (cython.cast(cython.ulonglong, data[pos]) << 7)
                    pos += 1
                else:
                    c.pos = die
                    code = c.uleb()
                    pos = c.pos
                    if c.bad:
                        sound = False
                        break
            if code == 0:
                depth -= 1
                if depth <= 0:
                    break
                continue
            if not dense:
                abbreviation = tables.find(table, code)
                if abbreviation < 0:
                    sound = False
                    break
            elif code <= known:
                abbreviation = first + cython.cast(cython.Py_ssize_t, code) - 1
            else:
                sound = False
                break
            read += 1
            step = steps[abbreviation]
            node = -1
            if step & slow == is_fixed:  # of no interest, and of one size: most DIEs
                pos += step >> 8
            elif step & is_code:
                # A nested function is a function of its own, never inlined into its DIE parent (rule R11).
                c.pos = pos
                node = read_code_die(
                    data, reader, tables, abbreviation, -1 if step & is_function else stack[depth], nodes, ranges
                )
                pos = c.pos
                if c.bad:
                    sound = False
                    break
                if node >= 0:
                    nodes.die[node] = die
                    if ranges.begin[ranges.count - 1] == ranges.end[ranges.count - 1]:
                        node = -1  # nothing is inlined into a function of length zero
            else:
                if step & skip and sibling_at[abbreviation] >= 0:
                    # Past the subtree, unless the attribute that tells its end is of no use (rule R76).
                    at = pos + sibling_at[abbreviation]
                    if at > end - 4:
                        sound = False
                        break
                    target = unsigned_at(data, at, 4, big)
                    target = (reader.unit_offset + target) & MASK64
                    if cython.cast(cython.ulonglong, at + 4) < target <= cython.cast(cython.ulonglong, end):
                        pos = target
                        continue
                target = 0
                for i in range(op_first[abbreviation], op_first[abbreviation + 1]):
                    operation = ops[i]
                    kind = operation & 15
                    if kind == 0:  # of fixed size
                        pos += operation >> 4
                        continue
                    if kind == 2:  # a string; one without an end goes to the end of the unit (rule R75)
                        while pos < end and data[pos] != 0:
                            pos += 1
                        if pos < end:
                            pos += 1
                        continue
                    if (kind == 1 or kind == 4) and pos < end and data[pos] < 0x80:  # LEB128, a block of such a length
                        pos += 1 + (data[pos] if kind == 4 else 0)
                        continue
                    c.pos = pos if pos <= end else end
                    if kind == 6 and step & skip:
                        target = (reader.unit_offset + c.uint(4)) & MASK64
                        if cython.cast(cython.ulonglong, c.pos) < target <= cython.cast(cython.ulonglong, end):
                            pos = target
                            break
                        target = 0
                    else:
                        reader.skip_operations(i, i + 1)
                    pos = c.pos
                    if c.bad:
                        break
                if target != 0:
                    continue
            if c.bad or pos > end:
                sound = False
                break
            if step & has_children:
                if depth + 1 >= MAX_DEPTH:
                    sound = False
                    break
                # Blocks, types and code-less functions are passed through (rules R10, R24, R28).
                if node < 0 and not step & is_function and depth > 0:
                    node = stack[depth]
                depth += 1
                stack[depth] = node
            elif depth == 0:
                break
    if not sound:
        units.corrupt[unit] = 1
    return read


def walk_units(reader: Reader, selected, nodes: Nodes, ranges: Ranges) -> int:  # type: ignore[no-untyped-def]
    """Add the nodes and ranges of the units `selected` (int64[m]), within `ranges_left` of the reader.

    Returns how many DIEs it read.
    """
    units: Units = reader.units
    tables: AbbrevTables = reader.tables
    stack = memoryview(np.full(MAX_DEPTH, -1, np.int64))
    read: cython.longlong = 0
    tables.compile(np.asarray(units.table)[selected])
    for unit in selected.tolist():
        if not units.bad[unit] and units.kind[unit] not in (2, 6) and tables.has_code[units.table[unit]]:
            read += walk_unit(reader, unit, nodes, ranges, stack)
    return read
