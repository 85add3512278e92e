"""Lists of code that was loaded while a process ran: addresses that were given to one function after another.

`perf-PID.map` has a function on each line, jitdump files (`jit-PID.dump`) the code with source lines, as perf's agents
record it (tools/perf/Documentation/jitdump-specification.txt).
"""

import re
import struct
from collections.abc import Sequence
from dataclasses import field
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
from symbolize.core.interning import number_tuples
from symbolize.core.records import record
from symbolize.symbol_files.symbol_list import SymbolList

MAX_SIZE = 1 << 38
"""Bytes that an entry answers for, so that all of them have places below 2⁶⁴."""
MAX_COMPARED = 1 << 24
"""Entries that are looked at for all addresses together."""
_LINE = re.compile(rb"^[ \t]*(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]+(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]+(\S[^\n]*)$", re.M)
MAGIC = 0x4A695444
HEADER_SIZE, PREFIX_SIZE = 40, 16
COUNTER_TIMES = 1
"""The flag that times are values of a counter of the processor."""
LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING = 0, 1, 2, 3, 4
PADDING = 7
"""Bytes by which a debug record may be longer than its entries."""
SAME_FILE = b"\xff"
"""An escape for the name of the entry before."""

MAX_UNWINDING = 1 << 16
"""Bytes of the call frame information of one function that are read."""
ELF_HEADER = 0x40
"""Some runtimes add the size of an ELF header to the addresses of lines, because `perf inject` takes it off."""


Entry = tuple[int, int, bytes]
"""Where a line begins in its code, the line, and the name of its file."""
Line = tuple[int, int, int]
"""Where a line begins in its code, the number of its file, and the line."""


class CodeFrames(NamedTuple):
    """The call frame information of the entries of a list, for the machine that has the number `machine` in ELF files.
    Entry `i` has the .eh_frame `sections[section[i]]`, its contents and how far it is behind the begin of the code;
    NONE: it has none."""

    machine: int
    sections: Sequence[tuple[bytes, int]]
    section: Int64


@record(frozen=True)
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


@record(frozen=True)
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


@record
class JitCode:
    """One function as it was loaded at a time, with the lines of its code, and the number of its call frame
    information."""

    time: int
    address: int
    size: int
    name: bytes
    lines: list[Line] = field(default_factory=list)
    section: int = NONE


def is_jitdump(head: bytes) -> bool:
    """Whether a file that begins so is a jitdump, in either byte order."""
    return head[:4] in (b"JiTD", b"DTiJ")


def process_of(head: bytes) -> int:
    """The process that wrote the jitdump that begins so; 0 if that is cut off."""
    if len(head) < HEADER_SIZE or not is_jitdump(head):
        return 0
    return int(struct.unpack_from((">" if head[:4] == b"JiTD" else "<") + "I", head, 20)[0])


def read_jitdump(data: bytes | memoryview) -> CodeList:
    """The functions and lines of a jitdump; addresses are those at run time.

    Code that moved is at both addresses. A file that is cut off, as that of a killed process, gives what it has, with a
    sentence in `problems`. A debug record that has addresses outside of its code, or more bytes than its entries need,
    is damaged, as V8 writes some of them: its lines are left out (R462, damaged debug records). Call frame information
    is that of the code that is loaded next, behind which it has its addresses (R467, call frames of jitdumps). An
    `.eh_frame` begins at the next multiple of 8 bytes behind the code, as in the files of `perf inject`. CPython leaves
    the machine 0.
    """
    problems: list[str] = []
    files: dict[bytes, int] = {}
    loaded: list[JitCode] = []
    order = ">" if bytes(data[:4]) == b"JiTD" else "<"
    at = struct.unpack_from(order + "I", data, 8)[0] if len(data) >= HEADER_SIZE else 0
    flags = struct.unpack_from(order + "Q", data, HEADER_SIZE - 8)[0] if at else 0
    if not is_jitdump(bytes(data[:4])) or at < HEADER_SIZE:
        problems.append("is no jitdump, or its header is cut off")
        at = len(data)
    by_number: dict[int, JitCode] = {}
    waiting: dict[int, list[Entry] | None] = {}
    sections: dict[tuple[bytes, int], int] = {}
    frames = b""
    damaged = corrupt = 0
    while at < len(data):
        if at + PREFIX_SIZE > len(data):
            problems.append(f"is cut off at offset {at}")
            break
        kind, size, time = struct.unpack_from(order + "IIQ", data, at)
        if size < PREFIX_SIZE or at + size > len(data):
            problems.append(f"is cut off or corrupt at offset {at}")
            break
        record = bytes(data[at + PREFIX_SIZE : at + size])
        at += size
        try:
            if kind == LOAD:
                its_frames, frames = frames, b""  # also of code that cannot be read
                _, _, _, address, length, number = struct.unpack_from(order + "IIQQQQ", record)
                name, _, _ = record[40:].partition(b"\0")
                entries = waiting.pop(address, [])
                if entries is None or any(not 0 <= offset <= length + ELF_HEADER for offset, _, _ in entries):
                    damaged += 1
                    entries = []
                lines = [(offset, files.setdefault(file, len(files)), line) for offset, line, file in entries]
                code = by_number[number] = JitCode(time, address, length, name, lines)
                if its_frames:
                    code.section = sections.setdefault((its_frames, min(length, MAX_SIZE) + 7 & -8), len(sections))
                loaded.append(code)
            elif kind == MOVE:
                _, _, _, _, address, length, number = struct.unpack_from(order + "IIQQQQQ", record)
                if (old := by_number.get(number)) is not None:
                    code = by_number[number] = JitCode(time, address, length, old.name, old.lines, old.section)
                    loaded.append(code)
            elif kind == DEBUG_INFO:
                address, count = struct.unpack_from(order + "QQ", record)
                waiting[address] = read_lines(record, order, address, count)
            elif kind == UNWINDING:
                frames = b""
                whole, header, _ = struct.unpack_from(order + "QQQ", record)
                if not header <= whole <= len(record) - 24:
                    raise struct.error
                if whole - header <= MAX_UNWINDING:
                    frames = record[24 : 24 + whole - header]
            elif kind == CLOSE:
                break
        except struct.error:
            corrupt += 1
    if damaged:
        problems.append(f"{damaged} debug records are damaged: the lines of their functions are left out")
    if corrupt:
        problems.append(f"{corrupt} records are corrupt")
    found = None
    if sections and order == "<":
        machine = struct.unpack_from(order + "I", data, 12)[0]
        found = CodeFrames(machine, list(sections), np.array([code.section for code in loaded], np.int64))
    code_list = lay_out(loaded, len(data), found, has_counter_times=bool(flags & COUNTER_TIMES))
    code_list.listing.files = list(files)
    code_list.listing.problems += problems
    return code_list


def read_lines(record: bytes, order: str, address: int, count: int) -> list[Entry] | None:
    """The lines of a debug record; None if it ends before its entries, or goes on behind them.

    Addresses of entries may be behind the code by the size of an ELF header (R462, damaged debug records).
    """
    entries: list[Entry] = []
    at, name = 16, b""
    entry = struct.Struct(order + "QII")
    for _ in range(count):  # each takes at least 17 bytes, so a false count ends with the record
        end = record.find(b"\0", at + entry.size)
        if end < 0:
            return None
        position, line, _ = entry.unpack_from(record, at)
        text = record[at + entry.size : end]
        name = name if text == SAME_FILE else text
        entries.append((position - address, line, name))
        at = end + 1
    return entries if len(record) - at <= PADDING else None


def lay_out(loaded: list[JitCode], budget: int, frames: CodeFrames | None, *, has_counter_times: bool) -> CodeList:
    """The list of functions in order of loading, with `budget` lines at most, which code that moves often repeats."""
    offsets = [offset for code in loaded for offset, _, _ in code.lines]
    bias = ELF_HEADER if offsets and min(offsets) >= ELF_HEADER else 0
    begin, end, place = placed([code.address for code in loaded], [code.size for code in loaded])
    listing = SymbolList.of_functions(place, place + (end - begin), [code.name for code in loaded])
    rows: dict[int, tuple[int, int]] = {}
    for code, start, size in zip(loaded, place.tolist(), (end - begin).tolist(), strict=True):
        budget -= len(code.lines)
        if budget < 0:
            listing.problems.append("lines repeat absurdly often, the rest of them is left out")
            break
        if not size:
            continue
        rows[start] = -1, 0
        for offset, file, line in sorted(code.lines, key=lambda each: each[0]):
            if offset - bias < size:
                rows[start + max(offset - bias, 0)] = file, line
        rows[start + size] = -1, 0
    listing.row_start = np.fromiter(rows, np.uint64, len(rows))
    listing.row_file = np.array([file for file, _ in rows.values()], np.int32)
    listing.row_line = np.array([line for _, line in rows.values()], np.uint32)
    time = np.array([code.time for code in loaded], np.uint64)
    return CodeList(begin, end, time, place, listing, has_counter_times, frames)
