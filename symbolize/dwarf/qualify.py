"""Names of functions as their DIEs and the scopes around them give them."""

from dataclasses import dataclass

import numpy as np

from symbolize.core.arrays import Int64, UInt16, UInt32, UInt64, distinct, distinct_inverse, is_among, views
from symbolize.core.string_array import StringArray
from symbolize.dwarf.closures import Closures
from symbolize.dwarf.constants import *
from symbolize.dwarf.decode import Dwarf
from symbolize.dwarf.names import Ancestors, Resolved, find_ancestors, resolve
from symbolize.dwarf.sources import Source

UNSCOPED_LANGUAGES = np.array(
    [DW_LANG_C89, DW_LANG_C, DW_LANG_C99, DW_LANG_C11, DW_LANG_C17, DW_LANG_C23, DW_LANG_Mips_Assembler], np.uint16
)
"""Languages whose names have no scopes."""

ANONYMOUS = {
    DW_TAG_namespace: b"(anonymous namespace)",
    DW_TAG_class_type: b"(anonymous class)",
    DW_TAG_structure_type: b"(anonymous struct)",
    DW_TAG_union_type: b"(anonymous union)",
    DW_TAG_enumeration_type: b"(anonymous enum)",
}
"""Names of scopes without a name, by tag."""

NAMELESS = frozenset(ANONYMOUS.values())
FUNCTIONS = (DW_TAG_subprogram, DW_TAG_inlined_subroutine)

SCOPED_BY_FUNCTIONS = frozenset(
    {
        DW_LANG_C_plus_plus,
        DW_LANG_C_plus_plus_03,
        DW_LANG_C_plus_plus_11,
        DW_LANG_C_plus_plus_14,
        DW_LANG_C_plus_plus_17,
        DW_LANG_C_plus_plus_20,
        DW_LANG_C_plus_plus_23,
        DW_LANG_C_plus_plus_26,
    }
)
"""Languages in which what is local to a function has it as a scope."""

MAX_NESTED_FUNCTIONS = 8
"""How deep functions may be local to each other."""

MAX_SOURCE_HOPS = 4
"""How often a chain may lead to another file or to a type unit."""

MAX_UNITS = 1 << 40
"""No section has as many units."""

SCOPES_PER_NAME = 16
MORE_SCOPES = 1 << 16
"""Scopes around all functions that are named at a time: so many for each, and in addition."""

NAMES_PER_BYTE = 8
MORE_NAMES = 1 << 20
"""Bytes that qualified names may take, for each byte of debug information and in addition."""

TOO_MUCH = "names of functions lead to absurdly much debug information; some are missing or not qualified"

MAX_SCOPE_HOPS = 16
"""How often a class that is defined away from its declaration may lead to another scope."""


@dataclass(eq=False)
class ResolvedFunctions:
    """Functions, a row each: linkage name (empty: none), qualified name, declaration."""

    linkage: StringArray
    name: StringArray
    decl_file: UInt32
    decl_line: UInt32
    decl_unit: Int64

    def take(self, rows: Int64) -> "ResolvedFunctions":
        """Some rows."""
        linkage, name = self.linkage.only(rows), self.name.only(rows)
        return ResolvedFunctions(linkage, name, self.decl_file[rows], self.decl_line[rows], self.decl_unit[rows])


@dataclass(eq=False)
class _Resolved:
    """What `resolve` finds of some DIEs. Strings and `target` are references (see `Sources`), `unit` is a unit of the
    target's source and `decl_unit` one of the binary; `language` is that of `unit`."""

    linkage: UInt64
    name: UInt64
    decl_file: UInt32
    decl_line: UInt32
    decl_unit: Int64
    unit: Int64
    target: UInt64
    tag: UInt16
    onward: UInt64
    signature: UInt64

    @classmethod
    def of(cls, found: Resolved) -> "_Resolved":
        """The columns of `found`."""
        return cls(*(np.asarray(getattr(found, name)) for name in cls.__dataclass_fields__))


def resolve_functions(dwarf: Dwarf, dies: UInt64, nesting: int = 0) -> ResolvedFunctions:
    """Names and declarations of the functions whose DIEs are `dies` (references, see `Sources`).

    A function without a linkage name gets its plain name, qualified by the scopes around its declaration (R15,
    qualified names), but for the innermost of `nesting` functions that are local to each other.
    """
    resolved = resolve_references(dwarf, dies)
    linkage = dwarf.sources.strings(resolved.linkage)
    names = dwarf.sources.strings(resolved.name)
    scoped = ~is_among(_languages(dwarf, resolved), UNSCOPED_LANGUAGES)
    bare = np.flatnonzero((linkage.lengths() == 0) & (names.lengths() > 0) & (resolved.unit >= 0) & scoped)
    bytes_left = NAMES_PER_BYTE * dwarf.sources.size + MORE_NAMES
    rows, qualified = [], []
    scopes, around = _scopes(dwarf, resolved.target[bare], resolved.unit[bare])
    if around:
        _add_functions(dwarf, scopes, around, _languages(dwarf, resolved)[bare], nesting)
    for i, name, scope in zip(bare.tolist(), names.take(bare), scopes, strict=True):
        if scope:
            bytes_left -= sum(map(len, scope)) + len(name)
            if bytes_left < 0:
                dwarf.problems.append(TOO_MUCH)
                break
            rows.append(i)
            qualified.append(b"::".join([*scope, name]))
    names = names.with_changed(np.array(rows, np.int64), qualified)
    return ResolvedFunctions(linkage, names, resolved.decl_file, resolved.decl_line, resolved.decl_unit)


def resolve_references(dwarf: Dwarf, dies: UInt64) -> _Resolved:
    """Resolve DIEs, along chains that lead from one source to another (R16, kinds of references; R91, supplementary
    files)."""
    result = _Resolved.of(Resolved(dies))
    rows, references = np.arange(len(dies)), dies
    for _ in range(MAX_SOURCE_HOPS):
        numbers = references >> np.uint64(SOURCE_SHIFT)
        rows_onward, onward = [], []
        for number in distinct(numbers).tolist():
            source = dwarf.sources.get(number)
            if source is None:
                continue
            here = np.flatnonzero(numbers == number)
            leaving, following = _resolve_in(dwarf, source, rows[here], references[here], result)
            rows_onward.append(leaving)
            onward.append(following)
        rows = np.concatenate(rows_onward) if rows_onward else rows[:0]
        if not len(rows):
            break
        references = np.concatenate(onward)
    return result


def _resolve_in(
    dwarf: Dwarf, source: Source, rows: Int64, references: UInt64, result: _Resolved
) -> tuple[Int64, UInt64]:
    """Add to the rows of `result` what one source has of DIEs there; which go on elsewhere, and with which DIEs."""
    columns = Resolved(references - np.uint64(source.number << SOURCE_SHIFT))
    if not resolve(source.reader, columns):
        dwarf.problems.append(TOO_MUCH)
    found = _Resolved.of(columns)
    for mine, new in ((result.linkage, found.linkage), (result.name, found.name)):
        fresh = (mine[rows] == np.uint64(NOWHERE)) & (new != np.uint64(NOWHERE))
        mine[rows[fresh]] = source.tagged(new[fresh])
    fresh = (result.decl_line[rows] == 0) & (found.decl_line > 0)
    result.decl_line[rows[fresh]] = found.decl_line[fresh]
    declared = found.decl_unit >= 0
    declared[declared] = source.file_unit[found.decl_unit[declared]] >= 0
    fresh = (result.decl_unit[rows] < 0) & declared
    result.decl_unit[rows[fresh]] = source.file_unit[found.decl_unit[fresh]]
    result.decl_file[rows[fresh]] = found.decl_file[fresh]
    read = found.unit >= 0
    result.unit[rows[read]] = found.unit[read]
    result.target[rows[read]] = source.tagged(found.target[read])
    result.tag[rows[read]] = found.tag[read]
    leaves = (found.onward != np.uint64(NOWHERE)) & (found.onward >> np.uint64(SOURCE_SHIFT) != 0)
    following = found.onward
    for k in np.flatnonzero(found.signature != np.uint64(NOWHERE)).tolist():
        die = dwarf.sources.type_die(source, int(found.signature[k]))
        if die is not None:
            leaves[k], following[k] = True, die
    return rows[leaves], following[leaves]


def _languages(dwarf: Dwarf, resolved: _Resolved) -> UInt16:
    """The language of each function, 0 where it is not known (R17, language of a function)."""
    result = np.zeros(len(resolved.unit), np.uint16)
    numbers = resolved.target >> np.uint64(SOURCE_SHIFT)
    for number in distinct(numbers).tolist():
        source = dwarf.sources.get(number)
        rows = np.flatnonzero((numbers == number) & (resolved.unit >= 0))
        if source is not None and len(rows):
            result[rows] = np.asarray(source.reader.units.language)[resolved.unit[rows]]
    return result


def _add_functions(
    dwarf: Dwarf,
    scopes: list[list[bytes]],
    around: dict[int, tuple[int, int]],
    language: UInt16,
    nesting: int,
) -> None:
    """Prepend the functions that classes are local to, as c++filt does (R264, local classes and lambdas); `around` has
    for some rows the function and the class in it."""
    rows = [i for i in around if int(language[i]) in SCOPED_BY_FUNCTIONS]
    if not rows or nesting == MAX_NESTED_FUNCTIONS:
        return
    closures = Closures(dwarf, lambda reference: _type_name(dwarf, reference))
    functions, which = distinct_inverse(np.array([around[i][0] for i in rows], np.uint64))
    named = resolve_functions(dwarf, functions, nesting + 1)
    texts: list[bytes] = []
    for function, linkage, name in zip(functions.tolist(), named.linkage, named.name, strict=True):
        if linkage or not name:
            texts.append(dwarf.readable(linkage))
        else:
            signature = closures.signature(function)
            texts.append(name.rpartition(b"::")[2] if signature is None else name + signature)
    for i, k in zip(rows, which.tolist(), strict=True):
        if scopes[i][0] in NAMELESS:
            scopes[i][0] = closures.name(*around[i]) or scopes[i][0]
        if texts[k]:
            scopes[i].insert(0, texts[k])
    if closures.is_cut_off:
        dwarf.problems.append(TOO_MUCH)


def _type_name(dwarf: Dwarf, die: int) -> bytes:
    """The name of a type with its scopes; empty if it has none, or is local to a function."""
    resolved = resolve_references(dwarf, np.array([die], np.uint64))
    name = dwarf.sources.string(int(resolved.name[0]))
    if not name or resolved.unit[0] < 0:
        return b""
    (scopes,), around = _scopes(dwarf, resolved.target, resolved.unit)
    return b"" if around else b"::".join([*scopes, name])


def _scopes(dwarf: Dwarf, dies: UInt64, units: Int64) -> tuple[list[list[bytes]], dict[int, tuple[int, int]]]:
    """The names of the scopes around each DIE, outermost first; `units` are units of the DIEs' sources. For scopes that
    are local to a function also, by row, that function and the scope next to it, as references.

    A scope with DW_AT_specification or DW_AT_signature has the scopes of the declaration or type that it refers to.
    """
    scopes: list[list[bytes]] = [[] for _ in range(len(dies))]
    around: dict[int, tuple[int, int]] = {}
    waiting = np.arange(len(dies))
    for _ in range(MAX_SCOPE_HOPS):
        if not len(waiting):
            break
        order = np.argsort(dies, kind="stable")
        dies, units, waiting = dies[order], units[order], waiting[order]
        targets, which = distinct_inverse(dies)
        unit_of = np.empty(len(targets), np.int64)
        unit_of[which] = units
        number_of = (targets >> np.uint64(SOURCE_SHIFT)).astype(np.int64)
        unit_key = np.where(unit_of >= 0, number_of * MAX_UNITS + unit_of, -1)
        found = Ancestors(SCOPES_PER_NAME * len(targets) + MORE_SCOPES)
        tags: list[int] = []
        for key in distinct(unit_key[unit_key >= 0]).tolist():
            source = dwarf.sources.get(key // MAX_UNITS)
            if source is not None:
                run = np.flatnonzero(unit_key == key)
                offsets = targets[run] - np.uint64(source.number << SOURCE_SHIFT)
                find_ancestors(source.reader, key % MAX_UNITS, *views(offsets), int(run[0]), found)
                tags += [source.number << SOURCE_SHIFT] * (found.count - len(tags))
        if found.cut_off:
            dwarf.problems.append(TOO_MUCH)
        parents, scope_of = distinct_inverse(
            np.bitwise_or(np.asarray(found.die)[: found.count], np.array(tags, np.uint64))
        )
        inside = np.asarray(found.target)[: found.count]
        resolved = resolve_references(dwarf, parents)
        names = [*dwarf.sources.strings(resolved.name)]
        chains: list[list[bytes]] = [[] for _ in range(len(targets))]
        onward: dict[int, int] = {}
        outermost: dict[int, int] = {}
        local: dict[int, tuple[int, int]] = {}
        scope, tag, moved = parents.tolist(), resolved.tag.tolist(), (resolved.target != parents).tolist()
        for k, target in zip(scope_of.tolist(), inside.tolist(), strict=True):
            if target in onward:
                continue
            if tag[k] in FUNCTIONS:
                if target in outermost:  # else a class refers to a function, which is corrupt
                    local[target] = scope[k], outermost[target]
                continue
            outermost[target] = scope[k]
            chains[target].append(names[k] or ANONYMOUS.get(tag[k], b"(anonymous)"))
            if moved[k]:
                onward[target] = k
        for i, chain in zip(waiting.tolist(), (chains[w] for w in which.tolist()), strict=True):
            scopes[i] = chain[::-1] + scopes[i]
        around |= {row: local[w] for row, w in zip(waiting.tolist(), which.tolist(), strict=True) if w in local}
        again = np.array([i for i, w in enumerate(which.tolist()) if w in onward], np.int64)
        next_scope = np.array([onward[int(which[i])] for i in again.tolist()], np.int64)
        waiting = waiting[again]
        dies, units = resolved.target[next_scope], resolved.unit[next_scope]
    return scopes, around
