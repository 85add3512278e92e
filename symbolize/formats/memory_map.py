"""The memory map that ends a legacy profile: text lines in, mappings out, and an owner for every address.

The lines are those of /proc/PID/maps, or brief ones, `START-LIMIT FILE (@OFFSET) BUILDID`. What is done with them is
what pprof's legacy reader does, except that a line is read whole or not at all: a path keeps its blanks, and prose
never turns into a mapping.
"""

import heapq
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from symbolize.core.arrays import NONE, Int32, UInt64, distinct
from symbolize.core.budget import MEMORY, Budget
from symbolize.profile.model import Mappings, Profile, Strings

MAX_ADDRESS = 0xFFFFFFFFFFFFFFFF
USUAL_MAIN_START = 0x400000
"""Where a Linux program that is not position independent starts."""

PAGE = 0x1000
FULL_LENGTH = 8
"""gperftools and the kernel pad addresses to eight digits."""

MIN_BUILD_ID = 8
"""A shorter hex word at the end of a brief line without offset belongs to the path ("/opt/My Cafe")."""

MAX_VARIABLES = 256
MAX_NAME = 64
MAX_VALUE = 4096
MAX_EXPANSIONS = 16
EXPANDED = (16 << 20, 32, MEMORY)
"""Bounds on `$name` variables: values may use earlier variables, so a few lines could otherwise grow without end. Lines
with what their variables stand for have so many bytes in any case, and for each byte of the map (R276, size of
tables)."""

_HEX = rb"[0-9a-fA-F]+"
_PERMISSIONS = rb"(?P<permissions>[r-][w-][x-][ps-]|[-rwxp]+)"
_RANGE = rb"(?P<start>(?:0x)?%b)(?P<gap>-\s*|\s+)(?P<limit>(?:0x)?%b)(?::\s*|\s+|$)" % (_HEX, _HEX)
_PROC = re.compile(
    rb"%b(?:%b\s+)?(?:(?:0x)?(?P<offset>%b)\s+)?%b:%b\s+[0-9]+(?:\s+(?P<file>.*))?$"
    % (_RANGE, _PERMISSIONS, _HEX, _HEX, _HEX),
    re.DOTALL,
)
_BRIEF = re.compile(rb"%b(?:%b(?:\s+|$))?(?P<tail>.*)$" % (_RANGE, _PERMISSIONS), re.DOTALL)
_AT_OFFSET = re.compile(rb"\(@(?:0x)?(%b)\)" % _HEX)
_BUILD_ID = re.compile(_HEX)
_LOOKS_LIKE_A_RANGE = re.compile(rb"(?:0x%b|[0-9a-fA-F]{8,})-(?:0x)?[0-9a-fA-F]" % _HEX)
_GLOG_PREFIX = re.compile(rb"[^\[\]]+:[0-9]+\]\s")
_SHARED_LIBRARY = re.compile(rb"\.so$|\.so[._][0-9]")
_DECIMAL = re.compile(rb"[0-9]")


@dataclass(slots=True)
class MapRow:
    """One executable mapping as the text gives it."""

    start: int
    limit: int
    file_offset: int = 0
    file: bytes = b""
    build_id: bytes = b""


@dataclass(slots=True)
class MemoryMap:
    """The executable mappings in file order, and which lines (counted from 1) looked like one but could not be read."""

    rows: list[MapRow] = field(default_factory=list)
    ignored: list[int] = field(default_factory=list)


def parse(text: bytes, source: str = "memory map") -> MemoryMap:
    """Read the lines of a memory map.

    As in pprof's legacy reader, a line may carry a glog prefix and use `$name` for what an earlier line `name=value`
    gave (the first one wins), and mappings that are known not to be executable are left out. Lines with numbers beyond
    64 bits are ignored, and unlike there also empty and reversed ranges.
    """
    found = MemoryMap()
    variables = _Variables(Budget(source, len(text), *EXPANDED))
    files: dict[bytes, bytes] = {}
    for number, raw in enumerate(text.split(b"\n"), 1):
        line = variables.expand(_without_glog_prefix(raw)).strip()
        entry = _entry(line)
        if entry is not None:
            row, executable = entry
            if executable:
                row.file = files.setdefault(row.file, row.file)
                found.rows.append(row)
            continue
        if _LOOKS_LIKE_A_RANGE.match(line):
            found.ignored.append(number)
        name, equals, value = line.partition(b"=")
        if equals:
            variables.add(name.strip(), value.strip())
    return found


def arrange(rows: list[MapRow]) -> list[MapRow]:
    """Join the pieces of mappings, put the main binary first and mend its start (pprof's legacy reader).

    Anonymous memory next to a file is no piece of it here: it may be code compiled at run time, and which file it is
    the text of is decided with the file (R353, text on huge pages).
    """
    joined: list[MapRow] = []
    for row in rows:
        if joined and _continues(joined[-1], row):
            last = joined[-1]
            last.limit = row.limit
            last.build_id = row.build_id or last.build_id
        else:
            joined.append(row)
    for index, row in enumerate(joined):
        if row.file and not row.file.startswith(b"[") and not _SHARED_LIBRARY.search(row.file):
            joined[0], joined[index] = row, joined[0]
            break
    if joined and joined[0].start - joined[0].file_offset == USUAL_MAIN_START:
        is_free = all(row.limit <= USUAL_MAIN_START or row.start >= joined[0].start for row in joined[1:])
        if is_free:
            joined[0].start = USUAL_MAIN_START
            joined[0].file_offset = 0
    return joined


def assign(rows: list[MapRow], addresses: UInt64) -> Int32:
    """Give every address a row: the index of each address' one.

    As in pprof's legacy reader an address belongs to the first mapping that contains it; failing that to the first one
    that contains it when extended down to the beginning of its file, which it then is; failing that to a mapping of
    everything, which is appended. Address 0 has none. Unlike there, the order of the addresses does not matter.
    """
    starts = _uint64(row.start for row in rows)
    owner = _first_covering(starts, _uint64(row.limit for row in rows), addresses)
    lost = np.flatnonzero((owner == NONE) & (addresses != 0))
    reach = _uint64(row.file_offset if row.file_offset <= row.start else 0 for row in rows)
    owner[lost] = below = _first_covering(starts - reach, starts, addresses[lost])
    for index in distinct(below[below != NONE]).tolist():
        rows[index].start -= rows[index].file_offset
        rows[index].file_offset = 0
    if (below == NONE).any():
        owner[lost[below == NONE]] = len(rows)
        rows.append(MapRow(0, MAX_ADDRESS))
    owner[addresses == 0] = NONE
    return owner


def attach(profile: Profile, text: bytes, source: str = "memory map") -> None:
    """Read the memory map `text` of the input `source` and give its mappings to the profile and its locations; says
    what it had to ignore."""
    found = parse(text, source)
    rows = arrange(found.rows)
    profile.locations.mapping = assign(rows, profile.locations.address)
    profile.mappings = _columns(rows, profile.strings)
    if found.ignored:
        profile.warnings.append(
            f"Lines of the memory map that look like mappings but cannot be read: {len(found.ignored)} "
            f"(the first is line {found.ignored[0]}); they are ignored."
        )


class _Variables:
    """What lines `name=value` gave so far; `budget` is for the lines that use them."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._values: dict[bytes, bytes] = {}
        self._pattern: re.Pattern[bytes] | None = None

    def add(self, name: bytes, value: bytes) -> None:
        is_new = 0 < len(name) <= MAX_NAME and name not in self._values
        if is_new and len(value) <= MAX_VALUE and len(self._values) < MAX_VARIABLES:
            self._values[name] = value
            self._pattern = None

    def expand(self, line: bytes) -> bytes:
        if b"$" not in line or not self._values:
            return line
        if self._pattern is None:
            self._pattern = re.compile(rb"\$(%b)" % b"|".join(re.escape(name) for name in self._values))
        expanded = self._pattern.sub(lambda found: self._values[found[1]], line, count=MAX_EXPANSIONS)
        self._budget.spend(len(expanded))
        return expanded


def _without_glog_prefix(line: bytes) -> bytes:
    prefix = _GLOG_PREFIX.match(line)
    return line[prefix.end() :] if prefix else line


def _entry(line: bytes) -> tuple[MapRow, bool] | None:
    """The mapping in a line without blanks around it, and whether it may be executable."""
    match = _PROC.match(line)
    if match:
        file, offset, build_id = match["file"] or b"", match["offset"], b""
    else:
        match = _BRIEF.match(line)
        if not match:
            return None
        file, offset, build_id = _brief_tail(match["tail"])
    permissions = match["permissions"]
    if not permissions and not _is_credible(match, file, offset):
        return None
    start, limit = int(match["start"], 16), int(match["limit"], 16)
    row = MapRow(start, limit, int(offset or b"0", 16), _without_deleted(file), build_id)
    if row.start >= row.limit or max(row.limit, row.file_offset) > MAX_ADDRESS:
        return None
    return row, not permissions or b"x" in permissions


def _brief_tail(tail: bytes) -> tuple[bytes, bytes | None, bytes]:
    """Split `FILE (@OFFSET) BUILDID`, each of which may be absent, from the end: only the file can hold blanks."""
    head, last = _last_word(tail)
    at = _AT_OFFSET.fullmatch(last)
    if at:
        return head, at[1], b""
    if not _BUILD_ID.fullmatch(last):
        return tail, None, b""
    head_of_offset, offset = _last_word(head)
    at = _AT_OFFSET.fullmatch(offset)
    if at:
        return head_of_offset, at[1], last
    return (head, None, last) if head and len(last) >= MIN_BUILD_ID else (tail, None, b"")


def _last_word(text: bytes) -> tuple[bytes, bytes]:
    words = text.rsplit(None, 1)
    return (words[0], words[1]) if len(words) == 2 else (b"", text)


def _is_credible(match: re.Match[bytes], file: bytes, offset: bytes | None) -> bool:
    """Whether a line without permissions is a mapping and not prose that starts with two words like `bad` or `1984`.

    Numbers must be marked by `0x` or hold a decimal digit, as every page-aligned one does, and be either of full length
    or joined by a hyphen and followed by something that only a mapping has.
    """
    bounds = match["start"], match["limit"]
    if all(bound.startswith(b"0x") for bound in bounds):
        return True
    if not all(bound.startswith(b"0x") or _DECIMAL.search(bound) for bound in bounds):
        return False
    if all(len(bound) >= FULL_LENGTH for bound in bounds):
        return True
    if not match["gap"].startswith(b"-"):
        return False
    return offset is not None or b"/" in file or file.startswith(b"[") or (not file and int(bounds[0], 16) % PAGE == 0)


def _without_deleted(file: bytes) -> bytes:
    return b"" if file == b"(deleted)" else file.removesuffix(b" (deleted)").rstrip()


def _continues(last: MapRow, row: MapRow) -> bool:
    """Whether `row` is the next piece of the mapping `last`: what both know must agree (pprof's legacy reader)."""
    if last.limit != row.start:
        return False
    if last.file != row.file:
        return False
    if last.build_id and row.build_id and last.build_id != row.build_id:
        return False
    if last.file_offset and row.file_offset:
        return last.file_offset + (last.limit - last.start) == row.file_offset
    return True


def _first_covering(starts: UInt64, limits: UInt64, addresses: UInt64) -> Int32:
    """The index of the first range [start, limit) that contains each address, or NONE.

    The ranges cut the address space into segments with one answer each; a sweep with a heap of open ranges finds them,
    so that overlapping ranges cost no more than disjoint ones.
    """
    bounds = distinct(np.concatenate([starts, limits]))
    if not len(bounds):
        return np.full(len(addresses), NONE, np.int32)
    answers = np.full(len(bounds), NONE, np.int32)
    first = np.searchsorted(bounds, starts)
    last = np.searchsorted(bounds, limits).tolist()
    order = np.argsort(first, kind="stable")
    opening = zip(first[order].tolist(), order.tolist(), strict=True)
    pending = next(opening, None)
    open_ranges: list[int] = []
    for segment in range(len(bounds)):
        while pending and pending[0] == segment:
            heapq.heappush(open_ranges, pending[1])
            pending = next(opening, None)
        while open_ranges and last[open_ranges[0]] <= segment:
            heapq.heappop(open_ranges)
        if open_ranges:
            answers[segment] = open_ranges[0]
    segments = np.searchsorted(bounds, addresses, "right") - 1
    return np.where(segments >= 0, answers[segments], np.int32(NONE))


def _columns(rows: list[MapRow], strings: Strings) -> Mappings:
    mappings = Mappings.zeros(len(rows))
    mappings.start = _uint64(row.start for row in rows)
    mappings.limit = _uint64(row.limit for row in rows)
    mappings.file_offset = _uint64(row.file_offset for row in rows)
    mappings.filename = np.array([strings.add(row.file) for row in rows], np.int32)
    mappings.build_id = np.array([strings.add(row.build_id) for row in rows], np.int32)
    return mappings


def _uint64(values: Iterable[int]) -> UInt64:
    return np.array(list(values), np.uint64)
