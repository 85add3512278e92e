"""Names of functions as their DIEs and the scopes around them give them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import distinct, distinct_inverse, views
from symbolize.dwarf.decode import Dwarf
from symbolize.dwarf.files import STRING_SECTIONS
from symbolize.dwarf.names import Ancestors, find_ancestors, resolve
from symbolize.dwarf.strings import strings_at

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]
UInt32 = NDArray[np.uint32]

UNSCOPED_LANGUAGES = frozenset({0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E, 0x8001})
"""C89, C, C99, C11, C17, C23, assembly: names have no scopes there."""

ANONYMOUS = {
    0x39: b"(anonymous namespace)",
    0x02: b"(anonymous class)",
    0x13: b"(anonymous struct)",
    0x17: b"(anonymous union)",
    0x04: b"(anonymous enum)",
}
"""Names of scopes without a name, by tag."""

MAX_SCOPE_HOPS = 16
"""How often a class that is defined away from its declaration may lead to another scope."""


@dataclass(eq=False)
class ResolvedFunctions:
    """Functions, a row each: linkage name (empty: none), qualified name, declaration."""

    linkage: list[bytes]
    name: list[bytes]
    decl_file: UInt32
    decl_line: UInt32
    decl_unit: Int64


@dataclass(eq=False)
class _Resolved:
    linkage: UInt64
    name: UInt64
    decl_file: UInt32
    decl_line: UInt32
    decl_unit: Int64
    owner_unit: Int64
    target: UInt64
    tag: NDArray[np.uint16]


def resolve_functions(dwarf: Dwarf, dies: UInt64) -> ResolvedFunctions:
    """Names and declarations of the functions whose DIEs stand at the .debug_info offsets `dies`.

    A function without a linkage name gets its plain name, qualified by the scopes around the DIE that declares
    it (rule R15).
    """
    resolved = _resolve(dwarf, dies)
    linkage = _strings(dwarf, resolved.linkage)
    names = _strings(dwarf, resolved.name)
    languages = np.asarray(dwarf.units.language)
    bare = [
        i
        for i, (linked, unit) in enumerate(zip(linkage, resolved.owner_unit.tolist(), strict=True))
        if not linked and unit >= 0 and int(languages[unit]) not in UNSCOPED_LANGUAGES
    ]
    for i, scope in zip(bare, _scopes(dwarf, resolved.target[bare], resolved.owner_unit[bare]), strict=True):
        names[i] = b"::".join([*scope, names[i]]) if names[i] else b""
    return ResolvedFunctions(linkage, names, resolved.decl_file, resolved.decl_line, resolved.decl_unit)


def _resolve(dwarf: Dwarf, dies: UInt64) -> _Resolved:
    count = len(dies)
    result = _Resolved(
        np.zeros(count, np.uint64),
        np.zeros(count, np.uint64),
        np.zeros(count, np.uint32),
        np.zeros(count, np.uint32),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.uint64),
        np.zeros(count, np.uint16),
    )
    columns = [getattr(result, name) for name in _Resolved.__dataclass_fields__]
    resolve(dwarf.reader, *views(dies, *columns))
    return result


def _strings(dwarf: Dwarf, references: UInt64) -> list[bytes]:
    """The strings that references name, empty where they name none."""
    result = [b""] * len(references)
    section = (references >> np.uint64(60)).astype(np.int64)
    offset = (references & np.uint64((1 << 60) - 1)).astype(np.int64)
    for number, name in STRING_SECTIONS.items():
        rows = np.flatnonzero(section == number)
        for row, value in zip(rows.tolist(), strings_at(getattr(dwarf.sections, name), offset[rows]), strict=True):
            result[row] = value
    return result


def _scopes(dwarf: Dwarf, dies: UInt64, units: Int64) -> list[list[bytes]]:
    """The names of the scopes around each DIE, outermost first.

    A scope that only completes a declaration elsewhere (DW_AT_specification) has the scopes of that
    declaration.
    """
    scopes: list[list[bytes]] = [[] for _ in range(len(dies))]
    waiting = np.arange(len(dies))
    for _ in range(MAX_SCOPE_HOPS):
        if not len(waiting):
            break
        order = np.lexsort((dies, units))
        dies, units, waiting = dies[order], units[order], waiting[order]
        targets, which = distinct_inverse(dies)
        unit_of = np.empty(len(targets), np.int64)
        unit_of[which] = units
        found = Ancestors()
        for unit in distinct(unit_of[unit_of >= 0]).tolist():
            run = np.flatnonzero(unit_of == unit)
            find_ancestors(dwarf.reader, unit, *views(targets[run]), int(run[0]), found)
        parents = np.asarray(found.die)[: found.count].copy()
        inside = np.asarray(found.target)[: found.count]
        resolved = _resolve(dwarf, parents)
        names = _strings(dwarf, resolved.name)
        chains: list[list[bytes]] = [[] for _ in range(len(targets))]
        onward: dict[int, int] = {}
        for k, target in enumerate(inside.tolist()):
            if target in onward:
                continue
            tag = int(resolved.tag[k])
            chains[target].append(names[k] or ANONYMOUS.get(tag, b"(anonymous)"))
            if resolved.target[k] != parents[k]:
                onward[target] = k
        for i, chain in zip(waiting.tolist(), (chains[w] for w in which.tolist()), strict=True):
            scopes[i] = chain[::-1] + scopes[i]
        again = np.array([i for i, w in enumerate(which.tolist()) if w in onward], np.int64)
        next_scope = np.array([onward[int(which[i])] for i in again.tolist()], np.int64)
        waiting = waiting[again]
        dies, units = resolved.target[next_scope], resolved.owner_unit[next_scope]
    return scopes
