# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""The walks over the DIEs of a unit: one finds every function and inlined function with code, the other all definitions
of functions, those whose code is gone too."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.core.integers import unsigned_at
    from symbolize.dwarf.abbrevs import AbbrevTables
    from symbolize.dwarf.columns import Nodes, Ranges
    from symbolize.dwarf.constants import *
    from symbolize.dwarf.reader import Reader, Units, is_address_form

UNASKED = cython.declare(cython.longlong, -2)
"""In place of a node without code at an address that is asked for."""


def is_c(language: cython.int) -> cython.bint:
    """Languages in which a structure holds no functions (R12, subtrees without code)."""
    return language in (DW_LANG_C89, DW_LANG_C, DW_LANG_C99, DW_LANG_C11, DW_LANG_C17, DW_LANG_C23)


def read_code_die(
    data: cython.const[cython.uchar][::1],
    reader: Reader,
    tables: AbbrevTables,
    abbreviation: cython.Py_ssize_t,
    parent: cython.longlong,
    nodes: Nodes,
    ranges: Ranges,
) -> cython.longlong:
    """Read the DIE of a function or inlined function and add its node and ranges; the node, or -1 if it has no range
    (R7, empty ranges; R28, inlined functions without ranges). Ranges without an asked address are not added, nor is the
    node if it is inlined into another: UNASKED.

    A function whose ranges are all empty keeps the first, which is its address (R8, functions of length zero). The
    lowest address is not the entry: compilers put cold parts below it (R5, entry of a function).
    """
    i: cython.int
    read: cython.int
    attribute: cython.int
    size: cython.int
    v: cython.ulonglong
    low: cython.ulonglong = NOWHERE
    high: cython.ulonglong = NOWHERE
    high_is_length: cython.bint = False
    entry: cython.ulonglong = NOWHERE
    position: cython.ulonglong = NOWHERE
    origin: cython.ulonglong = NOWHERE
    empty_at: cython.ulonglong = NOWHERE
    call_file: cython.ulonglong = 0
    call_line: cython.ulonglong = 0
    call_column: cython.ulonglong = 0
    node: cython.longlong
    asked: cython.bint = True
    first: cython.Py_ssize_t = ranges.count
    for i in range(tables.attribute_first[abbreviation], tables.attribute_first[abbreviation + 1]):
        read = tables.attribute_read[i]
        attribute = read >> READ_ATTRIBUTE_SHIFT
        size = read & READ_SIZE
        if read & READ_VALUE:
            v = reader.value(tables.attribute_form[i], tables.attribute_constant[i])
        elif reader.info.end - reader.info.pos < size:
            reader.info.bad = True
            break
        else:
            if attribute != 0:
                v = unsigned_at(data, reader.info.pos, size, reader.info.big)
                if read & READ_RELATIVE:
                    v = (v + reader.unit_offset) & MASK64
            reader.info.pos += size
        if attribute == 0:
            continue
        if attribute == DW_AT_low_pc:
            low = v
        elif attribute == DW_AT_high_pc:
            high = v
            high_is_length = not is_address_form(tables.attribute_form[i])
        elif attribute == DW_AT_ranges:
            position = reader.range_list(tables.attribute_form[i], v)
        elif attribute == DW_AT_entry_pc:  # of use only as an address
            if is_address_form(tables.attribute_form[i]):
                entry = v
        elif attribute == DW_AT_abstract_origin:
            origin = v
        elif attribute == DW_AT_call_column:
            call_column = v
        elif attribute == DW_AT_call_file:
            call_file = v
        else:
            call_line = v
    if reader.info.bad:
        return -1
    node = nodes.count
    if position != NOWHERE:  # a range list wins over low_pc and high_pc (R2, range list before low and high pc)
        reader.start_ranges(position)
        while reader.next_range():
            if reader.range_begin < reader.range_end:
                ranges.append(reader.range_begin, reader.range_end, node)
            elif empty_at == NOWHERE:
                empty_at = reader.range_begin
    elif low != NOWHERE and high != NOWHERE:
        if high_is_length:
            high = (low + high) & MASK64
        if low < high:
            ranges.append(low, high, node)
        elif low == high:
            empty_at = low
    if ranges.count == first:
        if empty_at == NOWHERE or not tables.step[abbreviation] & SUBPROGRAM:
            return -1
        ranges.append(empty_at, empty_at, node)
    elif not ranges.is_asked(first):
        if parent >= 0:
            ranges.count = first
            return UNASKED
        asked = False
    if entry == NOWHERE:  # R5, entry of a function
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
    if not asked:
        ranges.count = first
    return node


@cython.ccall
def walk_unit(
    reader: Reader, unit: cython.Py_ssize_t, nodes: Nodes, ranges: Ranges, stack: cython.longlong[::1]
) -> cython.longlong:
    """Add the nodes and ranges of `unit`; `stack` is scratch space of MAX_DIE_DEPTH entries. Returns the number of
    DIEs.

    From corrupt DIEs on nothing more is read, and the unit is marked corrupt.
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
    before: cython.Py_ssize_t
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
            if code >= LEB_MORE:
                if pos < end and data[pos] < LEB_MORE:
                    code = (code & (LEB_MORE - 1)) | (cython.cast(cython.ulonglong, data[pos]) << 7)
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
            # Of what has no asked address neither has what is inlined there, but functions inside may (R11, functions
            # inside functions).
            if step & CODE and not step & SUBPROGRAM and stack[depth] == UNASKED:
                step &= ~CODE
            if step & slow == FIXED:  # of no interest, and of one size: most DIEs
                pos += step >> STEP_SIZE_SHIFT
            elif step & CODE:
                # A nested function is a function of its own, never inlined into its DIE parent (R11, functions inside
                # functions).
                c.pos = pos
                before = ranges.count
                node = read_code_die(
                    data, reader, tables, abbreviation, -1 if step & SUBPROGRAM else stack[depth], nodes, ranges
                )
                pos = c.pos
                if c.bad:
                    sound = False
                    break
                if node >= 0:
                    nodes.die[node] = die
                    if ranges.count == before:
                        node = UNASKED  # see `read_code_die`
                    elif ranges.begin[ranges.count - 1] == ranges.end[ranges.count - 1]:
                        node = -1  # nothing is inlined into a function of length zero
            else:
                if step & skip and sibling_at[abbreviation] >= 0:
                    # Past the subtree, unless the attribute with its end is of no use (R76, sibling attributes).
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
                    kind = operation & OP_KIND
                    if kind == OP_FIXED:
                        pos += operation >> OP_SIZE_SHIFT
                        continue
                    if kind == OP_STRING:  # up to the end of the unit (R75, strings without an end)
                        while pos < end and data[pos] != 0:
                            pos += 1
                        if pos < end:
                            pos += 1
                        continue
                    if (kind in (OP_LEB, OP_BLOCK_LEB)) and pos < end and data[pos] < LEB_MORE:
                        pos += 1 + (data[pos] if kind == OP_BLOCK_LEB else 0)
                        continue
                    c.pos = pos if pos <= end else end
                    if kind == OP_SIBLING and step & skip:
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
            if step & HAS_CHILDREN:
                if depth + 1 >= MAX_DIE_DEPTH:
                    sound = False
                    break
                # Functions may be anywhere in the tree (R10, functions anywhere in the tree), below blocks without
                # code too (R24, blocks without code).
                if node == -1 and not step & SUBPROGRAM and depth > 0:
                    node = stack[depth]
                depth += 1
                stack[depth] = node
            elif depth == 0:
                break
    if not sound:
        units.corrupt[unit] = 1
    return read


def walk_units(reader: Reader, selected, nodes: Nodes, ranges: Ranges) -> int:  # type: ignore[no-untyped-def]
    """Add the nodes and ranges of the units `selected` (int64[m]), within `ranges_left`; how many DIEs were read."""
    units: Units = reader.units
    tables: AbbrevTables = reader.tables
    stack = memoryview(np.full(MAX_DIE_DEPTH, -1, np.int64))
    read: cython.longlong = 0
    tables.compile(np.asarray(units.table)[selected])
    for unit in selected.tolist():
        if (
            not units.bad[unit]
            and units.kind[unit] not in (DW_UT_type, DW_UT_split_type)
            and tables.has_code[units.table[unit]]
        ):
            read += walk_unit(reader, unit, nodes, ranges, stack)
    return read


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
            if tables.step[abbreviation] & HAS_CHILDREN:
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
