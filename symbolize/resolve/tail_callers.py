"""Puts frames back that tail calls took off the stacks (R360, frames of tail calls)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from symbolize.core.arrays import Int64, offsets_of, ranges
from symbolize.profile import Lines, Locations, Profile, Samples
from symbolize.resolve.resolution import Resolutions
from symbolize.resolve.stack_pairs import StackReader
from symbolize.symbols.call_graph import UNKNOWN, Chain

MASK64 = (1 << 64) - 1


def insert_tail_callers(profile: Profile, resolutions: Resolutions, reader: StackReader) -> None:
    """Insert the callers that tail calls took off the stacks of a profile, as locations behind the others, which
    `resolutions` know as `inserted`."""
    pairs, locations = reader.pairs, profile.locations
    added: dict[tuple[int, int, int], int] = {}
    inserted: list[list[int]] = [[]] * len(pairs.callee)
    chains, which = reader.chains()
    vaddrs_of = [between(each) if each else () for each in chains]
    for number in np.flatnonzero(which >= 0).tolist():
        caller = int(pairs.caller[number])
        rows: list[int] = []
        for vaddr in vaddrs_of[which[number]]:
            address = (int(locations.address[caller]) + vaddr - int(reader.vaddrs[caller])) & MASK64
            key = int(locations.mapping[caller]), address, vaddr
            rows.append(added.setdefault(key, len(locations) + len(added)))
        inserted[number] = rows[::-1]  # from the leaf on
    if not added:
        return
    count = len(added)
    mappings, addresses, vaddrs = (np.array(column, np.uint64) for column in zip(*added, strict=True))
    new = Locations(
        addresses,
        mappings.astype(np.int32),
        np.zeros(count, np.bool_),
        np.zeros(count + 1, np.int64),
        Lines(),
        np.zeros(count if len(locations.rel_pc) else 0, np.uint64),
        np.full(count if len(locations.source_row) else 0, -1, np.int64),
    )
    resolutions.insert(len(locations) + np.arange(count), new.mapping, vaddrs)
    profile.locations = Locations.joined([locations, new])
    profile.samples = with_inserted(profile.samples, pairs.which, inserted)


def between(chains: list[Chain]) -> Sequence[int]:
    """Where the functions between two locations that are next to each other made their calls, the caller's side first:
    those that all chains of tail calls have in common at their begin, and, if that is not all of one, at their end;
    none if it is not known where one of the calls is."""
    first = chains[0]
    shared = first
    if any(chain != first for chain in chains):
        begin = shared_begin(chains)
        end = shared_begin([chain[len(begin) :][::-1] for chain in chains])[::-1]
        shared = (*begin, *end)
    vaddrs = [vaddr for _, vaddr in shared]
    return vaddrs if UNKNOWN not in vaddrs else ()


def shared_begin(chains: list[Chain]) -> Chain:
    """The links with which all of `chains` begin."""
    shared: list[tuple[int, int]] = []
    for links in zip(*chains, strict=False):
        if any(link != links[0] for link in links):
            break
        shared.append(links[0])
    return tuple(shared)


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
