"""The calls that the callers of a profile's stacks made."""

from collections.abc import Mapping

import numpy as np

from symbolize.core.arrays import Int64, UInt64, marked, offsets_of, ranges
from symbolize.resolve.resolution import Resolutions
from symbolize.symbols import Binary, Calls, Function, LocationCalls

DISTANCES = {"EM_AARCH64": (1, 0, 4)}
USUAL_DISTANCES = (1, 0)
"""How far behind a caller's address its call returns to, the likeliest first: profiles have an address inside the call
instruction or, against the rules, the return address; on AArch64 also the call itself (R356, where calls return)."""


def calls_at(resolutions: Resolutions, calls_of: Mapping[int, Calls], locations: Int64) -> LocationCalls:
    """The calls at `locations` (ascending), which are those of callers, out of those of each binary, by its id."""
    count = int(locations[-1]) + 1 if len(locations) else 0
    is_asked = marked(locations, count)
    index, caller, callee = [[np.zeros(0, np.int64)] for _ in range(3)]
    functions: list[Function] = []
    for binary, answered in resolutions.by_binary():
        calls = calls_of.get(id(binary), Calls.none())
        if not len(calls.return_vaddr) or not isinstance(binary, Binary):
            continue
        rows = np.concatenate([each.rows for each in answered])
        vaddrs = np.concatenate([each.vaddrs for each in answered])
        asked = rows < count
        asked[asked] = is_asked[rows[asked]]
        first, last = _calls_of(calls, vaddrs[asked], DISTANCES.get(binary.loaded.machine, USUAL_DISTANCES))
        index.append(np.repeat(np.searchsorted(locations, rows[asked]), last - first))
        found = ranges(first, last - first)
        caller.append(calls.caller[found] + len(functions))
        callee.append(np.where(calls.callee[found] < 0, -1, calls.callee[found] + len(functions)))
        functions += calls.functions
    order = np.argsort(np.concatenate(index), kind="stable")
    counts = np.bincount(np.concatenate(index), minlength=len(locations))
    return LocationCalls(offsets_of(counts), np.concatenate(caller)[order], np.concatenate(callee)[order], functions)


def _calls_of(calls: Calls, vaddrs: UInt64, distances: tuple[int, ...]) -> tuple[Int64, Int64]:
    """The first row and the one behind the last of the calls at each of `vaddrs`, by the first distance with any."""
    first = last = np.zeros(len(vaddrs), np.int64)
    for distance in distances:
        returns = vaddrs + np.uint64(distance)
        low, high = (np.searchsorted(calls.return_vaddr, returns, side) for side in ("left", "right"))
        none = first == last
        first, last = np.where(none, low, first), np.where(none, high, last)
    return first, last
