# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""The walk that finds the calls of functions: which function is called, and where the call returns to (DWARF 5
§3.4.1).

`DW_AT_call_return_pc`, or `DW_AT_low_pc` of the older form, is where the call returns to, `DW_AT_call_origin`, or
`DW_AT_abstract_origin`, the function. A call site without a function is a call by a pointer (R355, described calls).
"""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.core.integers import unsigned_at
    from symbolize.dwarf.abbrevs import AbbrevTables
    from symbolize.dwarf.constants import *
    from symbolize.dwarf.die_walk import is_c
    from symbolize.dwarf.reader import Reader

from symbolize.dwarf.columns import grow_columns

COLUMNS = ("return_pc", "pc", "origin", "declared", "owner", "flags")


@cython.cclass
class CallColumns:
    """Functions and their calls, a row each; the first `count` rows are valid.

    Of a call `return_pc` is where it returns to and `pc` where it is (2⁶⁴-1: unknown), `origin` the DIE of the function
    that is called (2⁶⁴-1: it is called by a pointer) and `owner` the row of the function that it is in. Of a function
    `pc` is its `low_pc`, `origin` its own DIE, `declared` the one that it completes (2⁶⁴-1: none), and `owner` -1.
    `flags` are TAIL_CALL, or FUNCTION with ALL_CALLS and ALL_TAIL_CALLS: the compiler vouches for its list of calls.
    """

    def __init__(self) -> None:
        self.count = self.capacity = 0
        self.return_pc = self.pc = self.origin = self.declared = memoryview(np.zeros(0, np.uint64))
        self.owner = memoryview(np.zeros(0, np.int64))
        self.flags = memoryview(np.zeros(0, np.uint8))
        self.grow()

    def add(self) -> cython.Py_ssize_t:
        """Add a row; its index."""
        if self.count == self.capacity:
            with cython.gil:
                self.grow()
        self.count += 1
        return self.count - 1

    def grow(self):  # type: ignore[no-untyped-def]
        """Enlarge the columns."""
        self.capacity = grow_columns(self, COLUMNS, self.capacity)


def read_call_site(
    reader: Reader,
    tables: AbbrevTables,
    abbreviation: cython.Py_ssize_t,
    owner: cython.longlong,
    found: CallColumns,
) -> cython.int:
    """Read the DIE of a call in the function of row `owner` and add it, unless nothing says where it is: then the
    function does not list all calls. A tail call counts wherever it is."""
    i: cython.int
    name: cython.int
    v: cython.ulonglong
    row: cython.Py_ssize_t
    is_gnu: cython.bint = tables.tag[abbreviation] == DW_TAG_GNU_call_site
    return_pc: cython.ulonglong = NOWHERE
    pc: cython.ulonglong = NOWHERE
    origin: cython.ulonglong = NOWHERE
    flags: cython.int = 0
    for i in range(tables.attribute_first[abbreviation], tables.attribute_first[abbreviation + 1]):
        name = tables.attribute_name[i]
        v = reader.value(tables.attribute_form[i], tables.attribute_constant[i])
        if name == DW_AT_call_return_pc or (is_gnu and name == DW_AT_low_pc):
            return_pc = v
        elif name == DW_AT_call_pc:
            pc = v
        elif name == DW_AT_call_origin or (is_gnu and name == DW_AT_abstract_origin):
            origin = v
        elif name in (DW_AT_call_tail_call, DW_AT_GNU_tail_call):
            flags = TAIL_CALL if v != 0 else 0
    if reader.info.bad or owner < 0:
        return 0
    if return_pc == NOWHERE and pc == NOWHERE and flags == 0:
        found.flags[owner] &= FUNCTION | ALL_TAIL_CALLS
        return 0
    row = found.add()
    found.return_pc[row] = return_pc
    found.pc[row] = pc
    found.origin[row] = origin
    found.declared[row] = NOWHERE
    found.owner[row] = owner
    found.flags[row] = flags
    return 0


def read_caller(
    reader: Reader,
    tables: AbbrevTables,
    abbreviation: cython.Py_ssize_t,
    die: cython.ulonglong,
    found: CallColumns,
) -> cython.longlong:
    """Read the DIE of a subprogram and add it; its row."""
    i: cython.int
    name: cython.int
    v: cython.ulonglong
    row: cython.Py_ssize_t
    entry: cython.ulonglong = NOWHERE
    declared: cython.ulonglong = NOWHERE
    flags: cython.int = FUNCTION
    for i in range(tables.attribute_first[abbreviation], tables.attribute_first[abbreviation + 1]):
        name = tables.attribute_name[i]
        v = reader.value(tables.attribute_form[i], tables.attribute_constant[i])
        if name == DW_AT_low_pc:
            entry = v
        elif name in (DW_AT_abstract_origin, DW_AT_specification):
            declared = v
        if v == 0:
            continue
        if name in (
            DW_AT_call_all_calls,
            DW_AT_call_all_source_calls,
            DW_AT_GNU_all_call_sites,
            DW_AT_GNU_all_source_call_sites,
        ):
            flags |= ALL_CALLS | ALL_TAIL_CALLS
        elif name in (DW_AT_call_all_tail_calls, DW_AT_GNU_all_tail_call_sites):
            flags |= ALL_TAIL_CALLS
    row = found.add()
    found.return_pc[row] = NOWHERE
    found.pc[row] = entry
    found.origin[row] = die
    found.declared[row] = declared
    found.owner[row] = -1
    found.flags[row] = flags
    return row


@cython.ccall
def find_call_sites(  # type: ignore[no-untyped-def]
    reader: Reader, unit: cython.Py_ssize_t, found: CallColumns, stack: cython.longlong[::1]
):
    """Add the functions of `unit` and their calls to `found`; `stack` is scratch space of MAX_DIE_DEPTH entries.

    The walk ends where the DIEs are corrupt.
    """
    c: Cursor = reader.info
    data: cython.const[cython.uchar][::1] = c.data
    tables: AbbrevTables = reader.tables
    steps: cython.uint[::1] = tables.step
    table: cython.Py_ssize_t = reader.units.table[unit]
    depth: cython.int = 0
    pos: cython.Py_ssize_t
    end: cython.Py_ssize_t
    at: cython.Py_ssize_t
    target: cython.ulonglong
    die: cython.ulonglong
    code: cython.ulonglong
    abbreviation: cython.Py_ssize_t
    tag: cython.int
    step: cython.uint
    skip: cython.uint = SKIP_SUBTREE | TYPE_SUBTREE if is_c(reader.units.language[unit]) else SKIP_SUBTREE
    row: cython.longlong
    with cython.nogil:
        reader.enter(unit)
        pos = reader.units.first_die[unit]
        end = c.end
        stack[0] = -1
        while pos < end:
            die = pos
            code = data[pos]
            pos += 1
            if code >= LEB_MORE:
                c.pos = die
                code = c.uleb()
                pos = c.pos
            if code == 0:
                depth -= 1
                if depth <= 0:
                    break
                continue
            abbreviation = tables.find(table, code)
            if abbreviation < 0:
                break
            tag = tables.tag[abbreviation]
            step = steps[abbreviation]
            row = stack[depth]
            c.pos = pos
            if step & CODE and tag == DW_TAG_subprogram:
                row = read_caller(reader, tables, abbreviation, die, found)
            elif tag in (DW_TAG_call_site, DW_TAG_GNU_call_site):
                read_call_site(reader, tables, abbreviation, row, found)
            elif step & FIXED:  # most DIEs
                c.pos = pos + (step >> STEP_SIZE_SHIFT)
            elif (
                step & skip
                and tables.sibling_at[abbreviation] >= 0
                and pos + tables.sibling_at[abbreviation] <= end - 4
            ):
                # Past the subtree, unless the attribute with its end is of no use (R76, sibling attributes).
                at = pos + tables.sibling_at[abbreviation]
                target = (reader.unit_offset + unsigned_at(data, at, 4, c.big)) & MASK64
                if cython.cast(cython.ulonglong, at + 4) < target <= cython.cast(cython.ulonglong, end):
                    pos = target
                    continue
                reader.skip_attributes(abbreviation)
            else:
                reader.skip_attributes(abbreviation)
            pos = c.pos
            if c.bad or pos > end:
                break
            if tables.step[abbreviation] & HAS_CHILDREN:
                depth += 1
                if depth >= MAX_DIE_DEPTH:
                    break
                stack[depth] = row
            elif depth == 0:
                break


def walk_call_sites(reader: Reader, selected, found: CallColumns) -> None:  # type: ignore[no-untyped-def]
    """Add the functions of the units `selected` (int64[m]) and their calls."""
    stack = memoryview(np.full(MAX_DIE_DEPTH, -1, np.int64))
    reader.tables.compile(np.asarray(reader.units.table)[selected])
    for unit in selected.tolist():
        if not reader.units.bad[unit]:
            find_call_sites(reader, unit, found, stack)
