# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Names and declarations of DIEs, across units, and the scopes that qualify a name."""

import cython
import numpy as np

from symbolize.core.arrays import views
from symbolize.dwarf.columns import grow_columns

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.dwarf.abbrevs import AbbrevTables
    from symbolize.dwarf.constants import *
    from symbolize.dwarf.reader import Reader

WORK_PER_BYTE = cython.declare(cython.longlong, 32)
WORK = cython.declare(cython.longlong, 1 << 20)
"""Bytes and attributes that a lookup of names may read, for each byte of the section and in addition."""


@cython.cclass
class Resolved:
    """What `resolve` finds of DIEs, a row each; unknown are references of 2⁶⁴-1, units of -1, and zeros.

    `linkage` and `name` are string references, the first along abstract_origin and specification (R13, abstract
    instances; R14, chains of references); `decl_file` with `decl_line` counts in the file table of `decl_unit` (R22,
    file of a call). `target` is the DIE at the end of the chain, whose parents qualify the name (R15, qualified names),
    with its `tag` and `unit`. Where a chain leaves this source, `onward` is the reference that does, and where it goes
    to a type unit, `signature` that of the type (R16, kinds of references).
    """

    def __init__(self, dies) -> None:  # type: ignore[no-untyped-def]
        count = len(dies)
        self.linkage, self.name, self.onward, self.signature = views(*np.full((4, count), NOWHERE, np.uint64))
        self.decl_unit, self.unit = views(*np.full((2, count), -1, np.int64))
        self.decl_file, self.decl_line = views(*np.zeros((2, count), np.uint32))
        self.target = memoryview(dies.copy())
        self.tag = memoryview(np.zeros(count, np.uint16))


@cython.ccall
def resolve(reader: Reader, found: Resolved) -> cython.bint:
    """Follow the chains from the DIEs `found.target`, section offsets, and fill in what they have.

    False if some are left out because they lead to too many bytes. The linked name is the first one along the chain; a
    plain name in between does not end the search (R14, chains of references).
    """
    c: Cursor = reader.info
    tables: AbbrevTables = reader.tables
    i: cython.Py_ssize_t
    k: cython.int
    _: cython.int
    unit: cython.Py_ssize_t
    abbreviation: cython.Py_ssize_t
    following: cython.ulonglong
    attribute: cython.int
    v: cython.ulonglong
    signed: cython.ulonglong
    declared_in: cython.ulonglong
    left: cython.longlong = WORK + WORK_PER_BYTE * len(c.data)
    with cython.nogil:
        for i in range(len(found.target)):
            following = found.target[i]
            for _ in range(MAX_CHAIN):
                if left < 0:
                    break
                unit = reader.unit_at(following)
                if unit < 0:
                    found.onward[i] = following
                    break
                abbreviation = reader.enter_die(unit, following)
                if abbreviation < 0:
                    break
                found.target[i] = following
                found.tag[i] = tables.tag[abbreviation]
                found.unit[i] = unit
                left += following
                following = signed = declared_in = NOWHERE
                for k in range(tables.attribute_first[abbreviation], tables.attribute_first[abbreviation + 1]):
                    attribute = tables.attribute_name[k]
                    if attribute == DW_AT_signature and tables.attribute_form[k] == DW_FORM_ref_sig8:
                        signed = c.uint(8)
                        continue
                    v = reader.value(tables.attribute_form[k], tables.attribute_constant[k])
                    if c.bad:
                        break
                    if attribute in (DW_AT_linkage_name, DW_AT_MIPS_linkage_name):
                        if found.linkage[i] == NOWHERE:
                            found.linkage[i] = v
                    elif attribute == DW_AT_name:
                        if found.name[i] == NOWHERE:
                            found.name[i] = v
                    elif attribute == DW_AT_decl_file:
                        declared_in = v
                    elif attribute == DW_AT_decl_line:
                        if found.decl_line[i] == 0 and v < MASK32:
                            found.decl_line[i] = v
                    elif attribute == DW_AT_abstract_origin or (
                        attribute == DW_AT_specification and following == NOWHERE
                    ):
                        following = v
                left -= c.pos + tables.attribute_first[abbreviation + 1] - tables.attribute_first[abbreviation]
                if declared_in < MASK32 and found.decl_unit[i] < 0:
                    found.decl_file[i] = declared_in
                    found.decl_unit[i] = unit
                if c.bad:
                    break
                if following == NOWHERE:
                    found.signature[i] = signed
                    break
    return left >= 0


@cython.ccall
def read_die(reader: Reader, die: cython.ulonglong) -> object:
    """The DIE at a section offset: its tag, and its attributes by number as in `Reader.value`; None if there is
    none."""
    c: Cursor = reader.info
    tables: AbbrevTables = reader.tables
    unit: cython.Py_ssize_t = reader.unit_at(die)
    k: cython.int
    v: cython.ulonglong
    abbreviation: cython.Py_ssize_t = reader.enter_die(unit, die) if unit >= 0 else -1
    attributes: dict[int, int] = {}
    if abbreviation < 0:
        return None
    for k in range(tables.attribute_first[abbreviation], tables.attribute_first[abbreviation + 1]):
        v = reader.value(tables.attribute_form[k], tables.attribute_constant[k])
        if v != NOWHERE:
            attributes[tables.attribute_name[k]] = v
    return None if c.bad else (tables.tag[abbreviation], attributes)


@cython.ccall
def find_below(  # type: ignore[no-untyped-def]
    reader: Reader, die: cython.ulonglong, tags: cython.ulonglong, through: cython.ulonglong, limit: cython.Py_ssize_t
):
    """Section offsets of children of a DIE whose tags are in `tags`, and how many DIEs were read, `limit` at most.

    Those below children whose tags are in `through` count too. Both are sets of bits, of tags below 64.
    """
    c: Cursor = reader.info
    tables: AbbrevTables = reader.tables
    unit: cython.Py_ssize_t = reader.unit_at(die)
    abbreviation: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    depth: cython.Py_ssize_t = 0
    hidden: cython.Py_ssize_t = 0
    offset: cython.ulonglong
    code: cython.ulonglong
    sibling: cython.ulonglong
    bit: cython.ulonglong
    tag: cython.int
    found: list[int] = []
    if unit < 0:
        return found, count
    reader.enter(unit)
    c.pos = die
    while count < limit:
        offset = c.pos
        code = c.uleb()
        count += 1
        if c.bad:
            break
        if code == 0:
            depth -= 1
            if hidden > 0:
                hidden -= 1
        else:
            abbreviation = tables.find(reader.units.table[unit], code)
            if abbreviation < 0:
                break
            tag = tables.tag[abbreviation]
            bit = cython.cast(cython.ulonglong, 1) << tag if tag < TAG_BITS else 0
            if bit & tags and depth > 0 and hidden == 0:
                found.append(offset)
            sibling = 0
            if tables.step[abbreviation] & HAS_CHILDREN:
                if depth > 0 and (hidden > 0 or not bit & through):
                    if tables.sibling_at[abbreviation] >= 0:
                        offset = c.pos
                        c.skip(tables.sibling_at[abbreviation])
                        sibling = (c.uint(4) + reader.unit_offset) & MASK64
                        if c.bad or sibling <= cython.cast(cython.ulonglong, c.pos) or sibling > c.end:
                            sibling = 0
                            c.bad = False
                            c.pos = offset
                    if sibling == 0:
                        hidden += 1
                        depth += 1
                else:
                    depth += 1
            if sibling > 0:
                c.pos = sibling
            else:
                reader.skip_attributes(abbreviation)
        if depth <= 0:
            break
    return found, count


@cython.cclass
class Ancestors:
    """Scopes around DIEs: `die` encloses DIE number `target`; the scopes of one target are listed innermost first.

    DIEs whose scopes exceed `limit` have none, and set `cut_off`.
    """

    def __init__(self, limit: cython.Py_ssize_t) -> None:
        self.limit = limit
        self.cut_off = False
        self.count = self.capacity = 0
        self.die = memoryview(np.zeros(0, np.uint64))
        self.target = memoryview(np.zeros(0, np.int64))
        self.grow()

    def append(self, die: cython.ulonglong, target: cython.longlong) -> cython.int:
        """Add one scope."""
        if self.count == self.capacity:
            with cython.gil:
                self.grow()
        self.die[self.count] = die
        self.target[self.count] = target
        self.count += 1
        return 0

    def grow(self):  # type: ignore[no-untyped-def]
        """Enlarge the columns."""
        self.capacity = grow_columns(self, ("die", "target"), self.capacity)


def sibling(reader: Reader, abbreviation: cython.Py_ssize_t) -> cython.ulonglong:
    """Move over the attributes of a DIE; its sibling attribute, or 0 if it has none of use."""
    i: cython.int
    found: cython.ulonglong = 0
    for i in range(reader.tables.op_first[abbreviation], reader.tables.op_first[abbreviation + 1]):
        if reader.tables.ops[i] & OP_KIND == OP_SIBLING:
            found = (reader.unit_offset + reader.info.uint(4)) & MASK64
        else:
            reader.skip_operations(i, i + 1)
    if cython.cast(cython.ulonglong, reader.info.pos) < found <= cython.cast(cython.ulonglong, reader.info.end):
        return found
    return 0


@cython.ccall
def find_ancestors(  # type: ignore[no-untyped-def]
    reader: Reader, unit: cython.Py_ssize_t, dies: cython.ulonglong[::1], first: cython.longlong, found: Ancestors
):
    """Add the scopes of the DIEs `dies` (ascending, all in `unit`), which are targets `first`, `first` + 1 …

    Scopes are namespaces, classes, structures, unions and enumerations, and last a function around one of them, whose
    name has what is around it (R264, local classes and lambdas).
    """
    c: Cursor = reader.info
    tables: AbbrevTables = reader.tables
    stack: cython.ulonglong[::1] = memoryview(np.zeros(MAX_DIE_DEPTH, np.uint64))
    tags: cython.ushort[::1] = memoryview(np.zeros(MAX_DIE_DEPTH, np.uint16))
    depth: cython.int = 0
    level: cython.int
    i: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = len(dies)
    die: cython.ulonglong
    code: cython.ulonglong
    after: cython.ulonglong
    abbreviation: cython.Py_ssize_t
    tag: cython.int
    inner: cython.bint
    with cython.nogil:
        reader.enter(unit)
        c.pos = reader.units.first_die[unit]
        while c.pos < c.end and i < n and not c.bad:
            die = c.pos
            code = c.uleb()
            if code == 0:
                depth -= 1
                if depth <= 0:
                    break
                continue
            abbreviation = tables.find(reader.units.table[unit], code)
            if abbreviation < 0:
                break
            while i < n and dies[i] <= die:
                if dies[i] == die:
                    level = depth
                    if found.count + depth > found.limit:
                        found.cut_off = True
                        level = 0
                    inner = False
                    while level > 1:
                        level -= 1
                        tag = tags[level]
                        if tag in (DW_TAG_subprogram, DW_TAG_inlined_subroutine):
                            if inner:
                                found.append(stack[level], first + i)
                            break
                        if tag in (
                            DW_TAG_namespace,
                            DW_TAG_class_type,
                            DW_TAG_structure_type,
                            DW_TAG_union_type,
                            DW_TAG_enumeration_type,
                        ):
                            found.append(stack[level], first + i)
                            inner = True
                i += 1
            if tables.step[abbreviation] & FIXED and tables.sibling_at[abbreviation] < 0:
                reader.skip_attributes(abbreviation)
                after = 0
            else:
                after = sibling(reader, abbreviation)
            if tables.step[abbreviation] & HAS_CHILDREN:
                if after != 0 and i < n and dies[i] >= after:
                    c.pos = after
                    continue
                if depth + 1 >= MAX_DIE_DEPTH:
                    break
                stack[depth] = die
                tags[depth] = tables.tag[abbreviation]
                depth += 1
            elif depth == 0:
                break
