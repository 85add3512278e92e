"""Which functions are called where, by the call sites of the debug information (R355, described calls)."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from symbolize.core.arrays import Int64, UInt64, distinct, is_among, marked, offsets_of
from symbolize.core.folded_code import FoldedCode
from symbolize.core.ranges import clip_to
from symbolize.dwarf.decode import Dwarf
from symbolize.symbols.call_sites import CallRows, functions_of, sources_of
from symbolize.symbols.functions import DISTANCES, Calls, Function, Namesakes

GroupsOf = Callable[[Function], Sequence[int]]
"""Gives the numbers of the shared code that a function may be one of."""
TWINS_PER_FUNCTION = 16
MORE_TWINS = 1 << 16
"""Pairs of functions with the same code and calls: so many for each function, and in addition."""


def calls_of(dwarf: Dwarf, folded: Sequence[FoldedCode], vaddrs: UInt64 | None) -> Calls:
    """The calls of functions that share code: all, or those by callers at `vaddrs` (ascending).

    Linkers leave the call sites of a folded function without addresses. They are taken for calls of the function whose
    code it shares: the n-th of each for the same call, if all that they call is the same or shared too (R358, calls of
    folded functions).
    """
    if not folded:
        return Calls.none()
    groups_of = Namesakes(folded).groups
    columns: list[list[UInt64]] = [[np.zeros(0, np.uint64)] for _ in range(3)]
    units, returns = dwarf.holding_code(), None
    if vaddrs is not None:
        returns = distinct(np.concatenate([vaddrs + np.uint64(distance) for distance in DISTANCES]))
        units = dwarf.claims.units_for(distinct(np.concatenate((vaddrs, vaddrs - np.minimum(vaddrs, np.uint64(1))))))
    for source, walked in sources_of(dwarf, units):
        found = CallRows.read(dwarf, source, walked)
        rows = found.by_return
        rows = rows[is_among(found.return_pc[rows], returns)] if returns is not None else rows
        functions, number = functions_of(dwarf, found.origin[rows])
        chosen = np.array([*(bool(groups_of(function)) for function in functions), False])[number]
        rows = rows[is_among(found.return_pc[rows], found.return_pc[rows[chosen]])]
        for at, meant in ((rows, rows), *_folded_twins(dwarf, found, rows, groups_of)):
            columns[0].append(found.return_pc[at])
            columns[1].append(found.origin[found.owner[meant]])
            columns[2].append(found.origin[meant])
    return_pc, caller, callee = (np.concatenate(parts) for parts in columns)
    live, _, _ = clip_to(return_pc - np.minimum(return_pc, np.uint64(1)), return_pc, dwarf.code)
    order = live[np.argsort(return_pc[live], kind="stable")]
    functions, row = functions_of(dwarf, np.concatenate((caller[order], callee[order])))
    return Calls(return_pc[order], row[: len(order)], row[len(order) :], functions)


def _folded_twins(dwarf: Dwarf, found: CallRows, rows: Int64, groups_of: GroupsOf) -> Iterator[tuple[Int64, Int64]]:
    """Calls that functions without code of their own have where the calls `rows` are: some of `rows`, and the call that
    is meant by each.

    lld and mold leave the calls of a folded function without addresses. Its code is that of the function that was kept,
    so that the n-th call of one is the n-th of the other, if both have as many, and each calls the same function or one
    that shares its code (R358, calls of folded functions).
    """
    sites = np.flatnonzero(found.owner >= 0)
    order = sites[np.argsort(found.owner[sites], kind="stable")]
    offsets = offsets_of(np.bincount(found.owner[sites], minlength=len(found.owner)))
    owners = distinct(found.owner[rows])
    live, _, _ = clip_to(found.return_pc[order], found.return_pc[order] + np.uint64(1), dwarf.code)
    has_code = np.zeros(len(found.owner), np.bool_)
    has_code[found.owner[order[live]]] = True
    count = np.diff(offsets)
    others = np.flatnonzero((count > 0) & ~has_code & is_among(count, count[owners]))
    if not len(others) or not len(owners):
        return
    functions, row = functions_of(dwarf, found.origin[np.concatenate((owners, others))])
    groups = [*map(groups_of, functions)]
    shared = np.array([bool(each) for each in groups], np.bool_)[row]
    groups_of_row = dict(zip((*owners.tolist(), *others.tolist()), map(groups.__getitem__, row.tolist()), strict=True))
    others = others[shared[len(owners) :]]
    owners = owners[shared[: len(owners)]]
    meant = np.concatenate([order[offsets[row] : offsets[row + 1]] for row in (*owners, *others)] or [order[:0]])
    called, number = functions_of(dwarf, found.origin[meant])
    may_be = np.array([*(bool(groups_of(function)) for function in called), False])  # the last: called by a pointer
    callee = np.full(len(found.owner), -1, np.int64)
    callee[meant] = np.where(may_be[number], len(called), number)  # whatever shares code is one
    is_asked = marked(rows, len(found.owner))
    alike: dict[tuple[int, bytes], list[int]] = {}
    for other in others.tolist():
        its = callee[order[offsets[other] : offsets[other + 1]]].tobytes()
        for group in groups_of_row[other]:
            alike.setdefault((group, its), []).append(other)
    left = TWINS_PER_FUNCTION * len(others) + MORE_TWINS
    for owner in owners.tolist():
        own = order[offsets[owner] : offsets[owner + 1]]
        asked = np.flatnonzero(is_asked[own])
        calls = callee[own].tobytes()
        twins = dict.fromkeys(other for group in groups_of_row[owner] for other in alike.get((group, calls), ()))
        for other in islice(twins, left):
            yield own[asked], order[offsets[other] : offsets[other + 1]][asked]
        left -= min(len(twins), left)
