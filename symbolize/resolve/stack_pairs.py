"""Callers and what they called, next to each other on the stacks of a profile, as the debug information has them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np

from symbolize.core.arrays import Int64, UInt64, distinct, distinct_inverse, pair, unpair
from symbolize.core.errors import ReadFailure
from symbolize.profile import Profile
from symbolize.resolve.callers import DISTANCES, USUAL_DISTANCES
from symbolize.resolve.mapping_record import caller_mask
from symbolize.resolve.resolution import Resolutions
from symbolize.symbols import Binary, Function, names_it
from symbolize.symbols.call_graph import CallGraph, Site

UNKNOWN: Final = Site(None, None)


@dataclass(eq=False)
class StackPairs:
    """The distinct pairs of locations of which one is the caller of the other: int64[n] each, `which` for each frame of
    the stacks its pair as the called one, -1 without a caller. `vaddrs` are those of all locations."""

    callee: Int64
    caller: Int64
    which: Int64
    vaddrs: UInt64


class StackReader:
    """Reads what is known of pairs: which function the caller calls there, and which the other one is."""

    def __init__(self, profile: Profile, resolutions: Resolutions) -> None:
        count = len(profile.locations)
        self.pairs = pairs_of(profile, count)
        self._graphs: list[CallGraph | None] = []
        self._sites: dict[int, Site] = {}
        self._names: dict[int, tuple[bytes, ...]] = {}
        self._graph_of = np.full(count, -1, np.int64)
        callers, callees = (distinct(column) for column in (self.pairs.caller, self.pairs.callee))
        for binary, answered in resolutions.by_binary():
            if not isinstance(binary, Binary):
                continue
            rows = np.concatenate([each.rows for each in answered])
            vaddrs = np.concatenate([each.vaddrs for each in answered])
            self.pairs.vaddrs[rows] = vaddrs
            with suppress(ReadFailure):  # what cannot be read says nothing
                self._read(binary, rows, vaddrs, callers, callees)

    def graph(self, location: int) -> CallGraph | None:
        """The calls of the binary that a caller is in."""
        number = int(self._graph_of[location])
        return self._graphs[number] if number >= 0 else None

    def site(self, caller: int) -> Site:
        """What a caller calls."""
        return self._sites.get(caller, UNKNOWN)

    def is_in(self, callee: int) -> Callable[[Function], bool] | None:
        """Whether a function is the one that a location is in; None if that has no name."""
        names, graph = self._names.get(callee), self.graph(callee)
        if not names:
            return None

        def is_it(function: Function) -> bool:
            return any(map(names_it(function), names)) or (graph is not None and graph.begins_at(function, names[0]))

        return is_it

    def _read(self, binary: Binary, rows: Int64, vaddrs: UInt64, callers: Int64, callees: Int64) -> None:
        is_callee = np.isin(rows, callees)
        there, inverse = distinct_inverse(vaddrs[is_callee])
        number, names = binary.functions_at(there)
        for row, which in zip(rows[is_callee].tolist(), number[inverse].tolist(), strict=True):
            if which >= 0:
                self._names[row] = tuple(names[which])
        graph = binary.call_graph()
        is_caller = np.isin(rows, callers)
        if graph is None or not is_caller.any():
            return
        self._graph_of[rows] = len(self._graphs)
        self._graphs.append(graph)
        asked, inverse = distinct_inverse(vaddrs[is_caller])
        found = sites_of(graph, asked, DISTANCES.get(binary.loaded.machine, USUAL_DISTANCES))
        for row, which in zip(rows[is_caller].tolist(), inverse.tolist(), strict=True):
            self._sites[row] = found[which]


def sites_of(graph: CallGraph, vaddrs: UInt64, distances: tuple[int, ...]) -> list[Site]:
    """What is called at each of `vaddrs` (ascending), which are inside of calls (R356, where calls return)."""
    found = [UNKNOWN] * len(vaddrs)
    for distance in reversed(distances):
        sites = graph.sites(vaddrs + np.uint64(distance))
        found = [
            site if site.is_call or before.is_call is None else before
            for site, before in zip(sites, found, strict=True)
        ]
    return found


def pairs_of(profile: Profile, count: int) -> StackPairs:
    """The pairs on the stacks of a profile with `count` locations."""
    samples = profile.samples
    at = np.flatnonzero(caller_mask(profile)[1:])
    keys, number = distinct_inverse(pair(samples.locations[at], samples.locations[at + 1]))
    which = np.full(len(samples.locations), -1, np.int64)
    which[at] = number
    callee, caller = (column.astype(np.int64) for column in unpair(keys))
    return StackPairs(callee, caller, which, np.zeros(count, np.uint64))
