"""Unwinds the copies of stacks of a profile, a block of them at a time, and says why each ends where it does."""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import (
    NONE,
    Bool,
    Int32,
    Int64,
    UInt8,
    UInt64,
    distinct_inverse,
    first_of_runs,
    is_among,
    marked,
    offsets_of,
    views,
)
from symbolize.core.cursor import Cursor
from symbolize.core.interning import random_mixer
from symbolize.core.records import record
from symbolize.elf import ElfImage, inside_calls
from symbolize.elf.call_frames import FramesAt
from symbolize.profile import Mappings, StackDumps
from symbolize.profile.attachments import REGISTERS
from symbolize.unwind import constants
from symbolize.unwind.call_frames import MACHINES, CallFrames, Expressions, FunctionFrames
from symbolize.unwind.constants import BY_TIME, FIRST_RULE, FLAGS, IS_SIGNAL, MAX_FRAMES
from symbolize.unwind.walk import Machine, Walker

NO_MACHINE = "EM_NONE"
"""What CPython calls the machine of its code."""
BLOCK = 1 << 14
"""Stacks that are unwound side by side."""


class End(IntEnum):
    """Why unwinding a stack ended (R309, ends of stacks).

    The limit of 127 frames is perf's default.
    """

    COMPLETE = constants.COMPLETE
    TRUNCATED = constants.TRUNCATED
    NO_BINARY = constants.NO_BINARY
    NO_FRAME_INFO = constants.NO_FRAME_INFO
    BAD_FRAME_INFO = constants.BAD_FRAME_INFO
    NO_MAPPING = constants.NO_MAPPING
    OUTSIDE_DUMP = constants.OUTSIDE_DUMP
    NO_PROGRESS = constants.NO_PROGRESS
    TOO_DEEP = constants.TOO_DEEP
    UNKNOWN_REGISTER = constants.UNKNOWN_REGISTER
    NO_CALL = constants.NO_CALL
    NO_FILE = constants.NO_FILE
    NO_DUMP = constants.NO_DUMP
    IS_32BIT = constants.IS_32BIT
    OTHER_MACHINE = constants.OTHER_MACHINE


END_TEXTS = {
    End.TRUNCATED: "at the end of the copy of the stack (a larger one can be recorded)",
    End.NO_BINARY: "in files that were not found, or may not be those that ran",
    End.NO_FRAME_INFO: "in code without call frame information",
    End.BAD_FRAME_INFO: "in code whose call frame information is damaged or unknown",
    End.NO_MAPPING: "at an address outside of all executable mappings",
    End.OUTSIDE_DUMP: "because memory beside the copy of the stack would be needed",
    End.NO_PROGRESS: "because the next frame would not be above the last one",
    End.TOO_DEEP: f"after {constants.MAX_FRAMES} frames",
    End.UNKNOWN_REGISTER: "because the value of a register is not known",
    End.NO_CALL: "where a frame pointer leads to no call",
    End.NO_FILE: "in code without a file",
    End.NO_DUMP: "at the first frame, because no stack was recorded",
    End.IS_32BIT: "at the first frame, because 32-bit code is not unwound",
    End.OTHER_MACHINE: "in files of another machine",
}
"""Where a stack ends early, by the reason."""


class MappedCode(NamedTuple):
    """The binary that answers for a mapping: its files, each with what is to be added to vaddrs to get those in it, and
    the map from addresses to vaddrs, and which of them lie in the binary; None if it does not fit."""

    images: Sequence[tuple[ElfImage, int]]
    to_vaddrs: Callable[[UInt64], tuple[UInt64, Bool] | None]


class ListedCode(NamedTuple):
    """Code that no file has: `find` gives its call frame information at addresses and times, 0 where these are not
    known; None if there is none at all."""

    find: Callable[[UInt64, UInt64], FramesAt | None]


CodeFinder = Callable[[int], MappedCode | ListedCode | End]
"""From a row of the mappings to its code, or why it has none."""


@record
class Unwound:
    """The frames of dumps: those of dump i are `sites[offsets[i]:offsets[i + 1]]`, the leaf first; a site is an address
    in a mapping. `ends` says why each ends, `no_evidence` which sites say nothing of a binary: code was interrupted
    there, in no call (R315, interrupted code), or a frame pointer led there, which is followed to calls of the binary
    only (R310, frame pointers)."""

    offsets: Int64
    sites: Int32
    ends: UInt8
    mapping: Int32
    address: UInt64
    no_evidence: Bool


@dataclass(eq=False)
class Rules:
    """The rules of sites: a row of `rows`, each once, or minus the reason why there is none; `is_call`: whether the
    site is in a call, as far as that was wanted."""

    width: int
    rows: list[bytes] = field(default_factory=list)
    known: dict[bytes, int] = field(default_factory=dict)
    of_site: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    is_call: UInt8 = field(default_factory=lambda: np.zeros(0, np.uint8))

    def add(self, row: bytes) -> int:
        """The number of a row."""
        number = self.known.setdefault(row, len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number

    def add_all(self, rows: UInt64, reasons: UInt8) -> Int32:
        """The numbers of rows, or minus the reason of those that there are not."""
        found = zip(rows, reasons.tolist(), strict=True)
        return np.array([-reason if reason else self.add(row.tobytes()) for row, reason in found], np.int32)

    @property
    def is_signal(self) -> Bool:
        """Which sites are where the kernel calls signal handlers from."""
        is_signal = self.table()[:, FLAGS] & np.uint64(IS_SIGNAL) != 0
        result = np.zeros(len(self.of_site), np.bool_)
        known = self.of_site >= 0
        result[known] = is_signal[self.of_site[known]]
        return result

    def table(self) -> UInt64:
        """All rows: uint64[n, width]."""
        return np.frombuffer(b"".join(self.rows), np.uint64).reshape(-1, self.width)


class Unwinder:
    """Unwinds dumps of a profile with these mappings, copied at `times` (0: unknown); `find` is asked for the binary of
    each mapping that they reach, once."""

    def __init__(self, dumps: StackDumps, times: UInt64, mappings: Mappings, find: CodeFinder) -> None:
        self._dumps = dumps
        self._times = times
        self._find = find
        self._machine = MACHINES[dumps.machine]
        self._expressions = Expressions()
        self._rules = Rules(FIRST_RULE + 2 * self._machine.registers)
        self._codes: dict[int, MappedCode | ListedCode | End] = {}
        self._functions = FunctionFrames(self._machine, self._expressions)
        self._frames: dict[tuple[int, ...], CallFrames] = {}
        machine = self._machine
        start, limit = views(mappings.start, mappings.limit)
        offsets, rows = views(dumps.space_offsets.astype(np.int64), dumps.space_mappings.astype(np.int32))
        self._walker = Walker(
            Machine(dumps.data, machine.registers),
            random_mixer(),
            start,
            limit,
            offsets,
            rows,
            (machine.sp, machine.pc, machine.fp),
            machine.code_mask,
        )
        self._know()

    @property
    def reached(self) -> Set[int]:
        """The mappings for which a binary was asked."""
        return self._codes.keys()

    def run(self) -> Unwound:
        """Unwind all dumps."""
        counts: list[Int64] = []
        sites: list[Int32] = []
        ends: list[UInt8] = []
        for first in range(0, len(self._dumps), BLOCK):
            frames, depth, end = self._unwind_block(slice(first, first + BLOCK))
            inside = np.arange(MAX_FRAMES) < depth[:, None]
            counts.append(depth.astype(np.int64))
            sites.append(frames[inside])
            ends.append(end)
        keys = self._walker.sites.array()
        none = [np.zeros(0, np.int32)]
        frames = np.concatenate([*none, *sites]).astype(np.int32)
        offsets = offsets_of(np.concatenate([*none, *counts]))
        no_evidence = self._rules.is_signal | marked(-1 - frames[frames < 0], len(keys))
        frames[frames < 0] = -1 - frames[frames < 0]
        no_evidence |= self._led_to(frames, offsets)
        return Unwound(
            offsets,
            frames,
            np.concatenate([*none, *ends]).astype(np.uint8),
            keys[:, 0].astype(np.int32),
            keys[:, 1].copy(),
            no_evidence,
        )

    def _led_to(self, frames: Int32, offsets: Int64) -> Bool:
        """Which sites a frame pointer led to on some stack."""
        above = np.ones(len(frames), np.bool_)
        above[offsets[:-1][np.diff(offsets) > 0]] = False
        at = np.flatnonzero(above)
        rules = self._rules.of_site
        has_none = is_among(rules, np.array([-End.NO_FRAME_INFO, -End.NO_FILE, -BY_TIME], np.int32))
        return marked(frames[at[has_none[frames[at - 1]]]], len(rules))

    def _unwind_block(self, block: slice) -> tuple[Int32, Int32, UInt8]:
        """The frames of some dumps, how many each has, and why they end."""
        dumps, walker = self._dumps, self._walker
        registers = dumps.registers[block].astype(np.uint64)
        size = np.where(dumps.is_32bit[block], 0, dumps.size[block]).astype(np.int64)
        is_full = dumps.is_full[block].astype(np.uint8)
        space, times = dumps.space[block].astype(np.int32), self._times[block]
        columns = views(dumps.offset[block].astype(np.int64), size, is_full, space, times)
        walker.take(registers.data, *columns)
        while walker.run():
            self._fill()
        frames, depth, end = walker.results()  # type: ignore[no-untyped-call]
        return frames, depth, np.where(dumps.is_32bit[block], End.IS_32BIT, end).astype(np.uint8)

    def _fill(self) -> None:
        """Find the rules of the sites that have none yet, and which sites are in calls once that matters."""
        rules = self._rules
        sites = self._walker.sites.array()
        of_site = np.zeros(len(sites) - len(rules.of_site), np.int32)
        new = sites[len(rules.of_site) :]
        for mapping, rows, addresses in groups(new):
            of_site[rows] = self._rules_in(mapping, addresses, new[rows, 2])
        rules.of_site = np.concatenate((rules.of_site, of_site))
        if self._walker.wants_calls:
            is_call = np.zeros(len(sites) - len(rules.is_call), np.uint8)
            for mapping, rows, addresses in groups(sites[len(rules.is_call) :]):
                is_call[rows] = self._calls_in(mapping, addresses)
            rules.is_call = np.concatenate((rules.is_call, is_call))
        self._know()

    def _know(self) -> None:
        """Hand the rules to the walker."""
        rules = self._rules
        rows, of_site, is_call = views(rules.table(), rules.of_site, rules.is_call)
        self._walker.know(rows, of_site, is_call, Cursor(bytes(self._expressions.data)))

    def _code(self, mapping: int) -> MappedCode | ListedCode | End:
        """What a mapping has, asked for once."""
        if mapping not in self._codes:
            self._codes[mapping] = self._find(mapping)
        return self._codes[mapping]

    def _rules_in(self, mapping: int, addresses: UInt64, times: UInt64) -> Int32:
        """The rules at addresses of one mapping, which ascend, at times."""
        code = self._code(mapping)
        if isinstance(code, ListedCode):
            return self._listed_rules(code, addresses, times)
        found = code.to_vaddrs(addresses) if isinstance(code, MappedCode) else None
        if isinstance(code, End) or found is None:
            return np.full(len(addresses), -int(code if isinstance(code, End) else End.NO_BINARY), np.int32)
        vaddrs, inside = found
        frames = self._frames_of(code)
        if frames is None:
            return np.full(len(addresses), -int(End.OTHER_MACHINE), np.int32)
        rules = np.full(len(addresses), -int(End.NO_FRAME_INFO), np.int32)
        rules[inside] = self._rules.add_all(*frames.rows(vaddrs[inside]))
        return rules

    def _listed_rules(self, code: ListedCode, addresses: UInt64, times: UInt64) -> Int32:
        """The rules at addresses of code that no file has (R467, call frames of jitdumps)."""
        rules = np.full(len(addresses), -int(End.NO_FILE), np.int32)
        found = code.find(addresses, times)
        if found is None:
            return rules
        if found.machine not in (NO_MACHINE, self._machine.elf_name):
            return np.full(len(addresses), -int(End.OTHER_MACHINE), np.int32)
        rules[found.undecided & (times == 0)] = -BY_TIME
        here = np.flatnonzero(found.section != NONE)
        keys = np.stack((found.section[here].astype(np.uint64), found.vaddr[here]), axis=1)
        for section, rows, vaddrs in groups(keys):
            at, which = distinct_inverse(vaddrs)
            added = self._rules.add_all(*self._functions.rows(found.sections[section], at))
            rules[here[rows]] = added[which]
        return rules

    def _calls_in(self, mapping: int, addresses: UInt64) -> Bool:
        """Which addresses of one mapping are in calls; of code without a file that is not known, and all may be."""
        code = self._code(mapping)
        found = code.to_vaddrs(addresses) if isinstance(code, MappedCode) else None
        if not isinstance(code, MappedCode) or found is None:
            return np.full(len(addresses), isinstance(code, ListedCode), np.bool_)
        vaddrs, inside = found
        image, shift = next((each for each in code.images if each[0].has_code), code.images[0])
        calls = inside_calls(image, vaddrs + np.uint64(shift))
        return calls & inside if calls is not None else np.zeros(len(addresses), np.bool_)

    def _frames_of(self, code: MappedCode) -> CallFrames | None:
        """The call frame information of a binary; None if it is of another machine."""
        if any(image.machine != self._machine.elf_name or image.big_endian for image, _ in code.images):
            return None
        key = tuple(id(image) for image, _ in code.images)
        if key not in self._frames:
            self._frames[key] = CallFrames(code.images, self._machine, self._expressions)
        return self._frames[key]


def groups(keys: UInt64) -> Iterator[tuple[int, Int64, UInt64]]:
    """The numbers in the first column, as the mappings of sites, each with its rows and the second column of these, as
    their addresses, which ascends."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    number = keys[order, 0]
    edges = [*np.flatnonzero(first_of_runs(number)).tolist(), len(order)]
    for first, behind in pairwise(edges):
        rows = order[first:behind]
        yield int(number[first]), rows, keys[rows, 1]


def is_sound(dumps: StackDumps) -> bool:
    """Whether dumps are of a machine that is known here, with its registers."""
    return dumps.machine in MACHINES and dumps.registers.shape[1:] == (REGISTERS[dumps.machine],)
