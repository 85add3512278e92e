"""Puts frames back that tail calls took off the stacks, and marks them (R360, frames of tail calls)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from symbolize.core.arrays import Int64, UInt64, distinct_inverse, offsets_of, ranges
from symbolize.profile import NONE, Functions, Lines, Locations, Profile, Samples

SUFFIX: Final = b" [tail call]"
MASK64: Final = (1 << 64) - 1


def insert_tail_callers(
    profile: Profile, caller: Int64, which: Int64, vaddrs: UInt64, lost: Sequence[Sequence[int]]
) -> UInt64:
    """Insert the callers that tail calls took off the stacks, as locations behind the others; the vaddr of each.

    Pairs of locations have a `caller` and, from its side on, the vaddrs of calls that were `lost`; `which` is for each
    frame of the stacks its pair as the called one. `vaddrs` are those of all locations.

    Where the caller calls X, the next frame is another function F, and all chains from X to F are known, the
    functions that these have in common at their begin and at their end are put between, at their calls, as gdb
    does. They are marked `[tail call]`, their linked names are not (R360, frames of tail calls).
    """
    locations = profile.locations
    added: dict[tuple[int, int, int], int] = {}
    inserted: list[list[int]] = [[]] * len(lost)
    for number in [number for number, calls in enumerate(lost) if calls]:
        row = int(caller[number])
        rows: list[int] = []
        for vaddr in lost[number]:
            address = (int(locations.address[row]) + vaddr - int(vaddrs[row])) & MASK64
            key = int(locations.mapping[row]), address, vaddr
            rows.append(added.setdefault(key, len(locations) + len(added)))
        inserted[number] = rows[::-1]  # from the leaf on
    if not added:
        return np.zeros(0, np.uint64)
    count = len(added)
    mappings, addresses, found = (np.array(column, np.uint64) for column in zip(*added, strict=True))
    new = Locations(
        addresses,
        mappings.astype(np.int32),
        np.zeros(count, np.bool_),
        np.zeros(count + 1, np.int64),
        Lines(),
        np.zeros(count if len(locations.rel_pc) else 0, np.uint64),
        np.full(count if len(locations.source_row) else 0, -1, np.int64),
    )
    profile.locations = Locations.joined([locations, new])
    profile.samples = with_inserted(profile.samples, which, inserted)
    return found


def with_inserted(samples: Samples, which: Int64, inserted: list[list[int]]) -> Samples:
    """The samples with the locations `inserted` behind the called frame of each pair; `which` is that of each frame."""
    first = offsets_of([len(rows) for rows in inserted])
    more = np.append(np.diff(first), 0)[which]
    offsets = offsets_of(more + 1)
    locations = np.empty(int(offsets[-1]), np.int32)
    locations[offsets[:-1]] = samples.locations
    at = np.flatnonzero(more)
    rows = np.array([row for rows in inserted for row in rows], np.int32)
    locations[ranges(offsets[at] + 1, more[at])] = rows[ranges(first[which[at]], more[at])]
    return replace(samples, locations=locations, location_offsets=offsets[samples.location_offsets])


def mark_tail_callers(profile: Profile, rows: Int64) -> None:
    """Append SUFFIX to the names of the functions of the locations `rows`; linked names stay."""
    locations, functions = profile.locations, profile.functions
    counts = np.diff(locations.line_offsets)[rows]
    lines = ranges(locations.line_offsets[:-1][rows], counts)
    lines = lines[locations.lines.function[lines] != NONE]
    used, which = distinct_inverse(locations.lines.function[lines])
    marked = functions.take(used)
    named = np.flatnonzero(marked.name)
    texts = [profile.strings[number] + SUFFIX for number in marked.name[named].tolist()]
    marked.name[named] = profile.strings.add_all(texts)
    profile.functions = Functions.joined([functions, marked])
    locations.lines.function[lines] = len(functions) + which
