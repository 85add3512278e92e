"""Lists of code that was loaded while a process ran: addresses that were given to one function after another. Perf
maps are such lists."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import (
    NONE,
    Bool,
    Int64,
    UInt64,
    distinct,
    distinct_inverse,
    first_of_runs,
    is_among,
    marked,
    offsets_of,
    ranges,
    views,
)
from symbolize.core.grouping import number_tuples
from symbolize.symbol_files.symbol_list import SymbolList

MAX_SIZE = 1 << 38
"""Bytes that an entry answers for, so that all of them have places below 2⁶⁴."""
MAX_COMPARED = 1 << 24
"""Entries that are looked at for all addresses together."""
_LINE = re.compile(rb"^[ \t]*(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]+(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]+(\S[^\n]*)$", re.M)


class CodeFrames(NamedTuple):
    """The call frame information of the entries of a list, for the machine that has the number `machine` in ELF files.
    Entry `i` has the .eh_frame `sections[section[i]]`, its contents and how far it is behind the begin of the code;
    NONE: it has none."""

    machine: int
    sections: Sequence[tuple[bytes, int]]
    section: Int64


@dataclass(frozen=True, eq=False)
class Covering:
    """The entries of a list at some addresses. Those at address `i` are `entry[offsets[i]:offsets[i + 1]]`, in the
    order in which they were loaded.

    `totals` is how many there are at each address; of very many none are listed.
    """

    code: "CodeList"
    addresses: UInt64
    totals: Int64
    offsets: Int64
    entry: Int64

    @cached_property
    def names(self) -> Int64:
        """Numbers for the names of the entries."""
        names: dict[bytes, int] = {}
        number = np.zeros(len(self.code.begin), np.int64)
        for each in distinct(self.entry).tolist():
            number[each] = names.setdefault(self.code.name(each), len(names))
        return number[self.entry]

    @cached_property
    def answers(self) -> Int64:
        """Numbers for name, file and line of the entries together."""
        listing = self.code.listing
        table = np.zeros((len(self.entry), 3), np.uint64)
        table[:, 0] = self.names
        if len(listing.row_start):
            places = self.code.places(self.entry, self.addresses[self.owner])
            row = np.searchsorted(listing.row_start, places, side="right") - 1
            table[:, 1] = np.where(row >= 0, listing.row_file[row], NONE)
            table[:, 2] = np.where(row >= 0, listing.row_line[row], 0)
        return np.asarray(number_tuples(*views(table)), np.int64)

    @cached_property
    def rules(self) -> Int64:
        """Numbers for the call frame information of the entries, with the place of the address in it."""
        frames = self.code.frames
        table = np.zeros((len(self.entry), 2), np.uint64)
        if frames is not None:
            section = frames.section[self.entry]
            table[:, 0] = section
            table[:, 1] = np.where(section == NONE, 0, self.addresses[self.owner] - self.code.begin[self.entry])
        return np.asarray(number_tuples(*views(table)), np.int64)

    def differing(self, numbers: Int64) -> Bool:
        """At which addresses some of the numbers of their entries differ, or are too many to be known."""
        found = np.diff(self.offsets) < self.totals
        found[self.owner[self.changes(numbers)]] = True
        return found

    def changes(self, numbers: Int64) -> Int64:
        """The entries whose number is another than that of the entry before at the same address."""
        return np.flatnonzero(first_of_runs(numbers) & ~first_of_runs(self.owner))

    @property
    def owner(self) -> Int64:
        """Which address each entry is listed for."""
        return np.repeat(np.arange(len(self.totals)), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class CodeList:
    """Code in the order in which it was loaded: entry `i` is at the addresses `[begin[i], end[i])` from `time[i]` on.

    `time` is empty if the file has no times; with `has_counter_times` it is a counter of the processor. `listing` has
    each entry at a place of its own, from `place[i]` on, so that those that had one address are told apart. `frames` is
    the call frame information, if the file has any.
    """

    begin: UInt64
    end: UInt64
    time: UInt64
    place: UInt64
    listing: SymbolList
    has_counter_times: bool = False
    frames: CodeFrames | None = None

    @classmethod
    def of_functions(cls, begins: Sequence[int], sizes: Sequence[int], names: list[bytes]) -> "CodeList":
        """Functions without lines and times."""
        begin, end, place = placed(begins, sizes)
        listing = SymbolList.of_functions(place, place + (end - begin), names)
        return cls(begin, end, np.zeros(0, np.uint64), place, listing)

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The lowest address and the one behind the highest; (0, 0) if there are none."""
        return (int(self.begin.min()), int(self.end.max())) if len(self.begin) else (0, 0)

    def count_at(self, addresses: UInt64) -> Int64:
        """How many entries cover each of some addresses."""
        begun = np.searchsorted(self._begins, addresses, side="right")
        return begun - np.searchsorted(self._ends, addresses, side="right")

    def cost_at(self, addresses: UInt64) -> int:
        """How many entries `covering` looks at and lists for some addresses."""
        first, last = self._window(addresses)
        return min(int((last - first).sum()), len(self.begin)) + int(self.count_at(addresses).sum())

    def differing(self, other: "CodeList", addresses: UInt64) -> Bool:
        """At which of some addresses both lists have entries, none of which begin alike: they are of two runs. Where
        very many entries are not compared nothing is known."""
        at, which = distinct_inverse(addresses)
        coverings = [each.covering(at) for each in (self, other)]
        tables = [
            np.stack((covering.owner.astype(np.uint64), covering.code.begin[covering.entry]), axis=1)
            for covering in coverings
        ]
        numbers = np.asarray(number_tuples(*views(np.concatenate(tables))), np.int64)
        here, there = numbers[: len(tables[0])], numbers[len(tables[0]) :]
        agreeing = marked(coverings[0].owner[is_among(here, there)], len(at))
        both = (np.diff(coverings[0].offsets) > 0) & (np.diff(coverings[1].offsets) > 0)
        found: Bool = (both & ~agreeing)[which]
        return found

    def covering(self, addresses: UInt64) -> Covering:
        """The entries that cover each of some addresses, which ascend."""
        count = self.count_at(addresses)
        order = np.argsort(count, kind="stable")
        few = np.zeros(len(count), np.bool_)
        few[order[np.cumsum(count[order]) <= MAX_COMPARED]] = True
        asked = np.flatnonzero(few & (count > 0))
        entry, which = self._pairs(addresses[asked])
        which = asked[which]
        time = self.time[entry] if len(self.time) else entry
        order = np.lexsort((entry, time, which))
        entry, which = entry[order], which[order]
        offsets = offsets_of(np.bincount(which, minlength=len(addresses)))
        return Covering(self, addresses, count, offsets, entry)

    def places(self, entry: Int64, addresses: UInt64) -> UInt64:
        """The places of addresses in entries that cover them."""
        return self.place[entry] + (addresses - self.begin[entry])

    def name(self, entry: int) -> bytes:
        """The name of an entry."""
        listing = self.listing
        function = int(listing.node_function[entry])
        return listing.function_linkage[function] or listing.function_name[function]

    def _pairs(self, addresses: UInt64) -> tuple[Int64, Int64]:
        """Each entry that covers one of some addresses, which ascend, and that address; in any order."""
        first, last = self._window(addresses)
        if int((last - first).sum()) > len(self.begin):  # an entry that is much longer than others
            first, last = (np.searchsorted(addresses, edge) for edge in (self.begin, self.end))
            return np.repeat(np.arange(len(first)), last - first), ranges(first, last - first)
        entry = self._by_begin[ranges(first, last - first)]
        which = np.repeat(np.arange(len(addresses)), last - first)
        covers = self.end[entry] > addresses[which]
        return entry[covers], which[covers]

    def _window(self, addresses: UInt64) -> tuple[Int64, Int64]:
        """Between which places of `_by_begin` the entries are that may cover each of some addresses."""
        last = np.searchsorted(self._begins, addresses, side="right")
        return np.minimum(np.searchsorted(self._farthest, addresses, side="right"), last), last

    @cached_property
    def _by_begin(self) -> Int64:
        return np.argsort(self.begin, kind="stable")

    @cached_property
    def _begins(self) -> UInt64:
        return self.begin[self._by_begin]

    @cached_property
    def _ends(self) -> UInt64:
        return np.sort(self.end)

    @cached_property
    def _farthest(self) -> UInt64:
        """The highest end of the entries up to each place of `_by_begin`."""
        return np.maximum.accumulate(self.end[self._by_begin])


def placed(begins: Sequence[int], sizes: Sequence[int]) -> tuple[UInt64, UInt64, UInt64]:
    """Begins, ends and places of entries."""
    begin = np.array(begins, np.uint64)
    size = np.minimum(np.minimum(np.array(sizes, np.uint64), np.uint64(MAX_SIZE)), ~begin)
    place = np.zeros(len(begin), np.uint64)
    np.cumsum(size[:-1], out=place[1:])
    return begin, begin + size, place


def read_perf_map(data: bytes) -> CodeList:
    """The functions of a perf map: lines `START SIZE NAME`, numbers in hexadecimal, names with spaces, runtime
    addresses.

    The runtime appends a line whenever it compiles. Other lines are counted in `problems`.
    """
    begins: list[int] = []
    sizes: list[int] = []
    names: list[bytes] = []
    for start, size, name in _LINE.findall(data):
        begins.append(int(start, 16))
        sizes.append(int(size, 16))
        names.append(name.rstrip())
    code = CodeList.of_functions(begins, sizes, names)
    lines = [line for line in data.split(b"\n") if line.strip()]
    if len(names) < len(lines):
        code.listing.problems.append(f"{len(lines) - len(names)} of {len(lines)} lines are not START SIZE NAME")
    return code
