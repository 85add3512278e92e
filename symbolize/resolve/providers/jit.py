"""Code that was compiled at run time: `perf-PID.map` and jitdump files."""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from symbolize.binaries import SpecialFiles
from symbolize.core.arrays import NONE, TOP, Bool, Int64, UInt64, distinct_inverse, offsets_of, passed, ranges
from symbolize.core.errors import first_names
from symbolize.core.reasons import Reason
from symbolize.elf.call_frames import FramesAt
from symbolize.elf.headers import machine_name
from symbolize.profile.attachments import SampleTimes
from symbolize.profile.sample_times import Borders
from symbolize.resolve.mapping_record import NO_ADDRESSES, NO_ROWS, LocationTimes, MappingRecord
from symbolize.resolve.providers.symbol_lists import SymbolLists
from symbolize.resolve.resolution import Resolution, by_symbol_list
from symbolize.symbol_files import CodeList, process_of, read_jitdump, read_perf_map
from symbolize.symbol_files.code_list import HEADER_SIZE, Covering, is_jitdump
from symbolize.symbols import SymbolListBinary

MAX_DUMP, MAX_MAP = 1 << 30, 128 << 20
"""Bytes of the largest jitdump, which has the code as well, and of the largest perf map that are read."""
MAX_LOOKED_AT = 1 << 27
"""Entries of lists that are looked at for the call frame information of all stacks together."""
MAX_NAME = 200
"""Characters of the name of a function in a sentence."""

PROCESS = re.compile(
    r"(?:.*/)?(?:perf-(\d{1,10})\.map|jit-(\d{1,10})\.dump|jitted-(\d{1,10})-\d+\.so)|\[JIT\] tid (\d{1,10})"
)


def process_in(name: str) -> int:
    """The process that a name of such a file has, 0 if it has none."""
    match = PROCESS.fullmatch(name)
    return int(next(filter(None, match.groups()))) if match else 0


Listed = tuple[CodeList, SymbolListBinary]
"""A list, and what answers by it."""


class Chosen(NamedTuple):
    """The list that answers for a mapping, what answers by it, and at which addresses another list of the process, at
    `other`, has other code."""

    code: CodeList
    binary: SymbolListBinary
    of_two_runs: Bool
    other: str


class Lookup(NamedTuple):
    """Where addresses are in a list of code: their places, TOP of those that are in none, and the entry, NONE likewise.
    `undecided` are those that several functions had, of which nothing says which ran; `early` those that were sampled
    before the first of several was loaded there."""

    places: UInt64
    entry: Int64
    undecided: Bool
    early: Bool


class CompiledCode:
    """The lists of code compiled at run time among `files`, each read once."""

    def __init__(self, files: SpecialFiles, lists: SymbolLists) -> None:
        self._files = files
        self._lists = lists

    def find(self, mapping: MappingRecord, processes: set[int]) -> Resolution | None:
        """The list for a mapping; None if there is none that covers one of its addresses. `processes` are those of the
        profile."""
        chosen = self._choose(mapping, processes)
        if chosen is None:
            return None
        if isinstance(chosen, str):
            return Resolution(reason=Reason.AMBIGUOUS, detail=chosen)
        code, binary, of_two_runs, other = chosen
        found = look_up(code, mapping.addresses, mapping.times)
        undecided = found.undecided | of_two_runs
        result = by_symbol_list(binary, lambda _: (found.places, ~undecided))
        problems = []
        if of_two_runs.any():
            count = int(of_two_runs.sum())
            problems.append(f"{binary.path} and {other} are of two runs: {count} addresses have other code in each")
        if found.undecided.any():
            problems.append(f"{binary.path}: {two_functions(code, mapping.addresses[found.undecided])}")
        if found.early.any():
            count = int(found.early.sum())
            problems.append(
                f"{binary.path}: {count} addresses that several functions had were sampled before the first of them "
                "was loaded, and have its name"
            )
        return replace(result, reused=mapping.rows[undecided], problems=problems)

    def absent(self, filename: str, processes: set[int]) -> str:
        """What is not there for a mapping without a list, and which lists of other processes are; empty if its list is
        there, or if it is not known whose it is (R482, lists that are not there).

        In a container the process has another number.
        """
        own = process_in(filename)
        wanted = {own} if own else processes
        if len(wanted) != 1 or wanted & self._by_process.keys():
            return ""
        (process,) = wanted
        absent = f"no perf-{process}.map or jit-{process}.dump in the folders"
        others = sorted(os.path.basename(path) for each in self._by_process.values() for path, _, _ in each)
        if not others:
            return absent if own else ""
        hint = "rename it if it is of this process, which has another number in a container"
        return f"{absent}, but {first_names(others)}: {hint}"

    def borders(self, mapping: MappingRecord, processes: set[int], clock: SampleTimes) -> Borders:
        """When the functions at the addresses of a mapping changed, by the times of the samples."""
        chosen = self._choose(mapping, processes)
        if isinstance(chosen, Chosen):
            code = chosen.code
            times = clock.on_this_clock(code.time, is_counter=code.has_counter_times)
            if times is not None and len(times):
                known, which = distinct_inverse(mapping.addresses)
                covering = code.covering(known)
                changes = covering.changes(covering.answers)
                counts = np.bincount(covering.owner[changes], minlength=len(known))[which]
                begins = offsets_of(np.bincount(covering.owner[changes], minlength=len(known)))[:-1][which]
                kept = np.flatnonzero(counts)
                at = times[covering.entry[changes]]
                offsets = offsets_of(counts[kept])
                return Borders(mapping.rows[kept], offsets, at[ranges(begins[kept], counts[kept])])
        return Borders(NO_ROWS, offsets_of([]), NO_ADDRESSES)

    @cached_property
    def _by_process(self) -> dict[int, list[tuple[str, Callable[[bytes], CodeList], int]]]:
        """The files of each process, with their readers and the bytes that are read at most. A dump knows lines, and
        comes first."""
        result: dict[int, list[tuple[str, Callable[[bytes], CodeList], int]]] = {}
        for file in self._files.of_kind("jitdump"):
            head = self._files.head(file.path, HEADER_SIZE)
            if is_jitdump(head):
                result.setdefault(process_of(head), []).append((file.path, read_jitdump, MAX_DUMP))
        for file in self._files.of_kind("perf-map"):
            result.setdefault(process_in(file.name), []).append((file.path, read_perf_map, MAX_MAP))
        return result

    def _choose(self, mapping: MappingRecord, processes: set[int]) -> Chosen | str | None:
        """The list that covers most addresses of a mapping, with where others of its process differ; None if none
        covers any; a sentence where lists of several processes do."""
        addresses = mapping.addresses
        if not len(addresses):
            return None
        best: list[Chosen] = []
        for lists in self.lists_in(
            mapping.filename, int(addresses.min()), int(addresses.max()) + 1, processes
        ).values():
            covered = [int((code.count_at(addresses) > 0).sum()) for code, _ in lists]
            if any(covered):
                code, binary = lists[covered.index(max(covered))]
                of_two_runs, other_path = np.zeros(len(addresses), np.bool_), ""
                for other, other_binary in lists:
                    if other is not code and (differing := other.differing(code, addresses)).any():
                        of_two_runs, other_path = of_two_runs | differing, other_binary.path
                best.append(Chosen(code, binary, of_two_runs, other_path))
        if len(best) > 1:
            return f"lists of several processes cover it: {' and '.join(each.binary.path for each in best[:3])}"
        return best[0] if best else None

    def lists_in(self, filename: str, low: int, high: int, processes: set[int]) -> dict[int, list[Listed]]:
        """Of each process that may be meant the lists with entries at addresses in [low, high), if there are any.

        The process is that of the name, else that of the profile, else any.
        """
        own = process_in(filename)
        wanted = {own} if own else processes
        result: dict[int, list[Listed]] = {}
        for process, files in self._by_process.items():
            if not wanted or process in wanted:
                for each in files:
                    listed = self._lists.read(*each)
                    if listed is not None and (bounds := listed[0].bounds)[0] < high and low < bounds[1]:
                        result.setdefault(process, []).append(listed)
        return result

    def tell(self, problem: str) -> None:
        """Report a problem with the lists."""
        self._files.tell(problem)


class ListedFrames:
    """The call frame information that lists of code have, of the processes of a profile, at times of its `clock`.

    An address at which functions with different rules were has those that were loaded last before the stack was copied,
    and none if no time says so. All lists that reach into a mapping have to be of one process, and none of another run
    (R467, call frames of jitdumps).
    """

    def __init__(self, compiled: CompiledCode, processes: set[int], clock: SampleTimes | None) -> None:
        self._compiled = compiled
        self._processes = processes
        self._clock = clock
        self._lists: dict[int, list[Listed]] = {}
        self._left = MAX_LOOKED_AT

    def find(self, mapping: MappingRecord, addresses: UInt64, times: UInt64) -> FramesAt | None:
        """The call frame information at addresses and times; None if no list of the mapping has any, or those of
        several processes, or if too many entries were looked at before.

        It is asked for addresses of a mapping again and again, so that all lists that reach into the mapping have to
        agree on them: which of them covers most is not known yet.
        """
        if mapping.mapping not in self._lists:
            self._lists[mapping.mapping] = self._of(mapping)
        lists = self._lists[mapping.mapping]
        if not lists or self._left < 0:
            return None
        (code, binary), *others = lists
        self._left -= sum(each.cost_at(addresses) for each, _ in lists)
        if self._left < 0:
            self._compiled.tell(f"{binary.path}: so many functions had the same addresses that some stacks end there")
            return None
        known = LocationTimes(times, self._clock) if self._clock is not None else None
        found = look_up(code, addresses, known, lambda covering: covering.rules)
        frames = code.frames
        assert frames is not None  # as of the first of all that were chosen
        agreed = found.entry != NONE
        for other, _ in others:
            agreed &= ~other.differing(code, addresses)
            if other.frames is not None:
                agreed &= other.count_at(addresses) > 0
        section, vaddrs = np.full(len(addresses), NONE, np.int64), np.zeros(len(addresses), np.uint64)
        inside = np.flatnonzero(agreed)
        section[inside] = frames.section[found.entry[inside]]
        vaddrs[inside] = addresses[inside] - code.begin[found.entry[inside]]
        machine = machine_name(frames.machine)
        return FramesAt(machine, frames.sections, section, vaddrs, found.undecided)

    def _of(self, mapping: MappingRecord) -> list[Listed]:
        """The lists that reach into a mapping, if all are of one process and some have call frame information: those
        come first."""
        found = self._compiled.lists_in(mapping.filename, mapping.start, mapping.limit, self._processes)
        if len(found) != 1:
            return []
        (lists,) = found.values()
        lists = sorted(lists, key=lambda each: each[0].frames is None)
        return lists if lists[0][0].frames is not None else []


def look_up(
    code: CodeList,
    addresses: UInt64,
    times: LocationTimes | None,
    numbers: Callable[[Covering], Int64] = lambda covering: covering.names,
) -> Lookup:
    """Find addresses in a list of code, each at the time when it was sampled, if that is known (R460, code by time).

    The last entry that was loaded before counts, before all of them the first. Where the time is not known an address
    that entries of different names, or other `numbers`, had is undecided, and one that entries of one name had is that
    of the last. Times are compared if the dump's are those of CLOCK_MONOTONIC and all events were recorded with that
    clock, or the dump has values of the processor's counter and the recording says how they are converted (TIME_CONV).
    An address that two lists of one process number cover with entries that begin elsewhere has no name either: they are
    of two runs.
    """
    known, which = distinct_inverse(addresses)
    covering = code.covering(known)
    listed = np.diff(covering.offsets)
    place = np.maximum(listed - 1, 0)[which]
    undecided = covering.differing(numbers(covering))[which]
    early = np.zeros(len(which), np.bool_)
    clock = times.clock.on_this_clock(code.time, is_counter=code.has_counter_times) if times is not None else None
    if times is not None and clock is not None and len(clock):
        timed = np.flatnonzero((times.at != 0) & (listed[which] > 0))
        before = passed(covering.offsets, clock[covering.entry], which[timed], times.at[timed])
        place[timed] = np.maximum(before - 1, 0)
        early[timed] = (before == 0) & covering.differing(covering.answers)[which[timed]]
        undecided[timed] = False
    inside = (listed[which] > 0) & ~undecided
    entry = np.full(len(which), NONE, np.int64)
    entry[inside] = covering.entry[(covering.offsets[:-1][which] + place)[inside]]
    places = np.full(len(which), TOP, np.uint64)
    places[inside] = code.places(entry[inside], addresses[inside])
    return Lookup(places, entry, undecided, early)


def two_functions(code: CodeList, addresses: UInt64) -> str:
    """Which functions had the first of some addresses one after another, in words."""
    address = addresses[:1]
    covering = code.covering(address)
    what = "more functions than are compared"
    if len(changes := covering.changes(covering.names)):  # none if only all addresses together have too many entries
        first, last = int(covering.entry[0]), int(covering.entry[changes[0]])
        what = " and ".join(code.name(each).decode(errors="replace")[:MAX_NAME] for each in (first, last))
    others = f", as others had {len(addresses) - 1} more addresses" if len(addresses) > 1 else ""
    return f"{what} had the address {int(address[0]):#x} one after another{others}; no time says which of them ran"
