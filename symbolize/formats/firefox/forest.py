"""The stacks of all trees of a recording together, and which locations of a profile their nodes are."""

from itertools import pairwise
from typing import Any, Final

import numpy as np

from symbolize.core.arrays import NONE, TOP, Bool, Int64, distinct_inverse, offsets_of, pair
from symbolize.core.budget import Budget
from symbolize.formats.firefox.tables import MappedLibrary, StackTables, depths
from symbolize.formats.samples import note_names
from symbolize.profile.facts import recorded_ids
from symbolize.profile.model import AddressKind, Functions, Lines, Locations, Mappings, Profile, Samples

MAX_DEPTH: Final = 1 << 14
"""Frames of a stack; Firefox keeps 1,024."""
FRAMES: Final = "has stacks of {spent:,} frames, {times:,.0f} times its size, as only a bomb has"
LIMIT: Final = 1 << 24, 64, FRAMES, 1 << 28
"""Places on all stacks: in any case, and for each byte, and the most."""


class Forest:
    """The nodes and frames of all trees, one after another; those of tree i begin at `first_node[i]` and
    `first_frame[i]`.

    A place in a library is a site, once for all frames there: `site` has that of each frame, NONE for frames of no
    library, and `caller_site` that of a frame that called another one. Before version 38 return addresses are not in
    their calls yet, so that these differ (R495, addresses of Firefox' profiles).
    """

    def __init__(self, tables: list[StackTables], libraries: list[MappedLibrary], is_in_calls: bool, text: Any) -> None:
        self._tables, self._libraries = tables, libraries
        self._source, self._size = text.source, len(text.data)
        self.first_node = offsets_of([len(each.frame) for each in tables])
        self.first_frame = offsets_of([len(each.function) for each in tables])
        self.frame = self._moved("frame", self.first_frame)
        self.prefix = self._moved("prefix", self.first_node)
        self.library, self.address = self._joined("library"), self._joined("address")
        self.line, self.column = self._joined("line"), self._joined("column")
        self.is_bare: Bool = np.concatenate([np.zeros(0, np.bool_), *(each.is_bare for each in tables)])
        self.is_inlined: Bool = np.concatenate([np.zeros(0, np.bool_), *(each.is_inlined for each in tables)])
        self.category = self._categories()
        is_site = (self.library != NONE) & (self.address >= 0)
        inside = np.where(is_site & (not is_in_calls) & (self.address > 0), self.address - 1, self.address)
        both = numbered(np.tile(self.library, 2), np.concatenate((self.address, inside)))
        both[~np.tile(is_site, 2)] = NONE
        self.site, self.caller_site = both[: len(is_site)], both[len(is_site) :]
        self._inside = inside
        self.depth = depths(self.prefix, self._source, MAX_DEPTH)
        self.outer, self._level = self._outermost()

    def _joined(self, name: str) -> Int64:
        return np.concatenate([np.zeros(0, np.int64), *(getattr(each, name) for each in self._tables)])

    def _moved(self, name: str, firsts: Int64) -> Int64:
        """A column of rows, those of later trees behind those of earlier ones."""
        moved = []
        for each, first in zip(self._tables, firsts.tolist(), strict=False):  # the last one is the end
            part = getattr(each, name)
            moved.append(np.where(part == NONE, NONE, part + first))
        return np.concatenate([np.zeros(0, np.int64), *moved])

    def _categories(self) -> Int64:
        """The category of each node: its own, else that of its frame, else of the node before: int64[n]."""
        own = self._joined("node_category")
        found = np.where(own == NONE, self._joined("category")[self.frame], own)
        before, open_rows = self.prefix.copy(), np.flatnonzero((found == NONE) & (self.prefix != NONE))
        while len(open_rows):
            found[open_rows] = found[before[open_rows]]
            before[open_rows] = before[before[open_rows]]
            open_rows = open_rows[(found[open_rows] == NONE) & (before[open_rows] != NONE)]
        return found

    def _outermost(self) -> tuple[Int64, Int64]:
        """Of each node the one that it is inlined into, itself if it is not, and how many nodes are between."""
        is_part = self.is_inlined[self.frame] & (self.prefix != NONE)
        into = np.where(is_part, self.prefix, NONE)
        outer = np.where(is_part, self.prefix, np.arange(len(self.frame)))
        while len(outer) and (outer[outer] != outer).any():
            outer = outer[outer]
        return outer, depths(into, self._source, MAX_DEPTH) - 1

    def places(self) -> dict[int, tuple[int, int]]:
        """The library of each site and the address there."""
        found = dict(
            zip(self.site.tolist(), zip(self.library.tolist(), self.address.tolist(), strict=True), strict=True)
        )
        inside = zip(self.library.tolist(), self._inside.tolist(), strict=True)
        return found | dict(zip(self.caller_site.tolist(), inside, strict=True))

    def fill(self, profile: Profile, nodes: Int64, is_call: Bool) -> None:
        """Give a profile a stack for each of `nodes`, with the locations, mappings and functions of these; `is_call`
        says where the leaf called something too. Raises InputError for too many frames."""
        after = self.prefix[self.outer]
        offsets = offsets_of(depths(after, self._source, MAX_DEPTH)[nodes])
        Budget(self._source, self._size, *LIMIT).spend(int(offsets[-1]))
        function, names = self._functions(profile)
        frame_key = numbered(
            np.concatenate((self.site, self.caller_site)),
            np.tile(np.where(self.is_bare, NONE, function), 2),
            np.tile(self.line, 2),
            np.tile(self.column, 2),
            np.tile(self.is_bare, 2),
        )
        # A node is a location as a leaf and another one as a caller, in old versions: rows behind those of leaves.
        keys, row = distinct_inverse(self._node_keys(frame_key))
        first = np.zeros(len(keys), np.int64)
        first[row[::-1]] = np.arange(len(row))[::-1]
        locations = np.zeros(int(offsets[-1]), np.int32)
        to, at = offsets[:-1], nodes + is_call * len(after)
        onto = np.tile(np.where(after == NONE, NONE, after + len(after)), 2)
        while len(to):
            locations[to] = row[at]
            at = onto[at]
            goes_on = at != NONE
            to, at = to[goes_on] + 1, at[goes_on]
        is_used = np.zeros(len(keys), np.bool_)
        is_used[locations] = True
        first = first[is_used]
        is_caller, node = np.divmod(first, max(len(after), 1))
        profile.samples = Samples(
            location_offsets=offsets,
            locations=(np.cumsum(is_used, dtype=np.int32) - 1)[locations],
            values=np.zeros((len(nodes), 0), np.int64),
            label_offsets=np.zeros(len(nodes) + 1, np.int64),
        )
        profile.functions = names
        profile.locations = self._locations(node, is_caller == 0, function)
        profile.mappings = self._mappings(profile)
        profile.address_kinds = np.full(len(profile.mappings), AddressKind.LOADED, np.uint8)
        profile.id_origins = recorded_ids(profile.mappings)
        note_names(profile)

    def _node_keys(self, frame_key: Int64) -> Int64:
        """A number for the frames that each node shares a location with, of the leaves and then of the callers:
        int64[2 * n]."""
        count, nodes = len(self.site), len(self.frame)
        keys = np.concatenate((frame_key[self.frame], frame_key[self.frame + count]))
        prefix = np.concatenate((self.prefix, self.prefix + nodes))
        order = np.argsort(np.tile(self._level, 2), kind="stable")
        ends = np.cumsum(np.bincount(self._level) * 2)
        known = int(keys.max(initial=NONE)) + 1
        for begin, end in pairwise(ends.tolist()):
            rows = order[begin:end]
            of = numbered(keys[prefix[rows]], keys[rows])
            keys[rows] = of + known  # behind those of all others
            known += int(of.max()) + 1
        return keys

    def _locations(self, node: Int64, is_leaf: Bool, function: Int64) -> Locations:
        """The locations that some nodes are the innermost ones of."""
        outer = self.frame[self.outer[node]]
        levels = self._level[node] + 1
        has_lines = (levels > 1) | ~self.is_bare[outer]
        counts = np.where(has_lines, levels, 0)
        offsets = offsets_of(counts)
        lines = Lines.zeros(int(offsets[-1]))
        rows, at = np.flatnonzero(counts), node[counts > 0]
        for step in range(int(counts.max(initial=0))):
            frame, to = self.frame[at], offsets[rows] + step
            lines.function[to], lines.line[to], lines.column[to] = function[frame], self.line[frame], self.column[frame]
            left = counts[rows] > step + 1
            rows, at = rows[left], self.prefix[at[left]]
        library = self.library[outer]
        address = np.where(is_leaf, self.address[outer], self._inside[outer])
        is_there = (library != NONE) & (address >= 0)
        return Locations(
            address=np.where(is_there, address, 0).astype(np.uint64),
            mapping=np.where(is_there, library, NONE).astype(np.int32),
            is_folded=np.zeros(len(node), np.bool_),
            line_offsets=offsets,
            lines=lines,
            source_row=np.where(is_leaf, self.site[outer], self.caller_site[outer]),
        )

    def _functions(self, profile: Profile) -> tuple[Int64, Functions]:
        """The function of each frame, and all of them: those of one name and file once."""
        parts: list[Int64] = []
        known: dict[tuple[int, int], int] = {}
        for each in self._tables:
            rows = np.zeros(len(each.name), np.int64)
            for row in np.unique(each.function).tolist():
                name = profile.strings.add(each.texts[int(each.name[row])])
                file = profile.strings.add(each.texts[int(each.file[row])])
                rows[row] = known.setdefault((name, file), len(known))
            parts.append(rows[each.function])
        table = Functions.zeros(len(known))
        names = np.array(list(known), np.int32).reshape(len(known), 2)
        table.name = table.system_name = names[:, 0].copy()
        table.filename = names[:, 1].copy()
        return np.concatenate([np.zeros(0, np.int64), *parts]), table

    def _mappings(self, profile: Profile) -> Mappings:
        """A mapping of everything for each library, whose addresses count from where it was loaded."""
        table = Mappings.zeros(len(self._libraries))
        table.limit[:] = TOP
        table.filename[:] = [profile.strings.add(encoded(each.path)) for each in self._libraries]
        table.build_id[:] = [profile.strings.add(encoded(each.build_id)) for each in self._libraries]
        return table


def encoded(text: str) -> bytes:
    """A text of a profile."""
    return text.encode(errors="backslashreplace")


def numbered(*columns: Any) -> Int64:
    """A number for each row, the same for rows that are equal in all columns: int64[n]."""
    found = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        found = distinct_inverse(pair(found, distinct_inverse(column)[1]))[1]
    return found
