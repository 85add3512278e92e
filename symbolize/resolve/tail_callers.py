"""Puts frames back that tail calls took off the stacks (R360, frames of tail calls)."""

from dataclasses import replace

import numpy as np

from symbolize.core.arrays import Int64, offsets_of, ranges
from symbolize.profile import Lines, Locations, Profile, Samples
from symbolize.resolve.resolution import Resolutions
from symbolize.resolve.stack_pairs import StackReader
from symbolize.symbols import Function
from symbolize.symbols.call_graph import Chain

MASK64 = (1 << 64) - 1

Links = tuple[tuple[Function, int], ...]


def insert_tail_callers(profile: Profile, resolutions: Resolutions) -> None:
    """Insert the callers that tail calls took off the stacks of a profile, as locations behind the others, which
    `resolutions` know as `inserted`."""
    reader = StackReader(profile, resolutions)
    pairs, locations = reader.pairs, profile.locations
    added: dict[tuple[int, int, int], int] = {}
    inserted: list[list[int]] = []
    for callee, caller in zip(pairs.callee.tolist(), pairs.caller.tolist(), strict=True):
        rows: list[int] = []
        for _, vaddr in between(reader, callee, caller):
            address = (int(locations.address[caller]) + vaddr - int(pairs.vaddrs[caller])) & MASK64
            key = int(locations.mapping[caller]), address, vaddr
            rows.append(added.setdefault(key, len(locations) + len(added)))
        inserted.append(rows[::-1])  # from the leaf on
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


def between(reader: StackReader, callee: int, caller: int) -> Links:
    """The functions between two locations that are next to each other, the caller's side first: those that all chains
    of tail calls have in common at their ends, if all chains are known."""
    called = reader.site(caller).callee
    graph, is_callee = reader.graph(caller), reader.is_in(callee)
    if called is None or graph is None or is_callee is None or is_callee(called):
        return ()
    chains, is_whole = graph.chains(called, is_callee)
    return common(chains) if is_whole and chains else ()


def common(chains: list[Chain]) -> Links:
    """What chains have in common at their begin, and, if that is not all of one, at their end."""
    first = chains[0].links
    if all(chain.links == first for chain in chains):
        return first
    begin = shared_begin([chain.links for chain in chains])
    rest = [chain.links[len(begin) :] for chain in chains]
    end = shared_begin([links[::-1] for links in rest])[::-1]
    return (*begin, *end)


def shared_begin(chains: list[Links]) -> Links:
    """The links with which all of `chains` begin."""
    shared: list[tuple[Function, int]] = []
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
