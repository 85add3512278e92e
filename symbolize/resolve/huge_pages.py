"""Text of files that was moved onto huge pages, so that the memory map has anonymous memory there.

Programs, and libraries such as Intel's iodlr, BOLT's runtime and Chromium's, copy their text into anonymous memory at
the same addresses. What is left of the file in the memory map tells which one it is.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, Self

from symbolize.core.arrays import TOP
from symbolize.core.mapped_names import is_no_file
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.elf import Segment
from symbolize.evidence.choice import AddressBase, BuildMatch
from symbolize.evidence.judge import REFUTED, Judge
from symbolize.profile import AddressKind
from symbolize.resolve.address_maps import in_file
from symbolize.resolve.addresses import PAGE
from symbolize.resolve.mapping_record import KERNEL_HALF, MappingRecord
from symbolize.resolve.resolution import Resolution
from symbolize.symbols import Binary, is_same_build

NAMES: Final = re.compile(
    r"|//anon|\[anon\b.*|/anon_hugepage.*|/memfd:.*|/dev/zero.*|/dev/hugepages/.*|(.*/)?libhugetlbfs\.tmp\.[^/]*"
    r"|/tmp/perf-\d+\.map"
)
"""Recorded names of memory onto which text is moved. The last one is perf's for all anonymous executable memory."""
HUGE_PAGE: Final = 2 << 20
"""What is moved may be rounded to this, beyond the ends of the text."""
MAX_NEIGHBOURS: Final = 8
"""Mappings of files that are looked at below, and so many above. In one process the nearest are enough; the memory maps
of several may be mixed."""
MAX_DISTANCE: Final = 4 << 30
"""Bytes between parts of one file in memory, at most. No compiler's usual code model lets it be as large."""

MatchOf = Callable[[Binary], BuildMatch]
"""How a binary matches."""


def is_moved_text(record: MappingRecord) -> bool:
    """Whether a mapping may be of memory onto which the text of a file was moved."""
    return (
        not record.build_id
        and record.kind == AddressKind.PROCESS
        and 0 < record.start < record.limit <= KERNEL_HALF
        and NAMES.fullmatch(record.filename) is not None
    )


class FileLayout(NamedTuple):
    """Where a file is mapped: its ELF type and its segments, none if they have lost their file offsets."""

    kind: str
    segments: Sequence[Segment]

    @classmethod
    def of(cls, binary: Binary) -> Self:
        """The layout of a binary; a debug file alone has no file offsets."""
        return cls(binary.loaded.kind, binary.loaded.segments if binary.loaded.has_file_offsets else ())


class HugePages:
    """Deduces the file of moved text from the mappings around it (R353, text on huge pages).

    `find` answers for a mapping of a file, by how each candidate matches; `layouts` are those of all builds that it may
    choose from, which are asked for once.

    The memory has to be within an executable segment at the distance of the mapping around it, whose ends may be
    rounded to huge pages, 2 MiB. A list of code compiled at run time that covers an address comes first.
    """

    def __init__(
        self,
        judge: Judge,
        find: Callable[[MappingRecord, MatchOf], Resolution],
        layouts: Callable[[MappingRecord], Sequence[FileLayout]],
    ) -> None:
        self._judge = judge
        self._find = find
        self._layouts = layouts
        self._known: dict[tuple[str, str], Sequence[FileLayout]] = {}
        self._files: list[MappingRecord] = []
        self._starts: list[int] = []

    def prepare(self, records: Iterable[MappingRecord]) -> None:
        """The mappings of a profile."""
        self._files = sorted((each.without_locations() for each in records if _is_file(each)), key=lambda x: x.start)
        self._starts = [each.start for each in self._files]
        self._known.clear()

    def find(self, record: MappingRecord, found: Resolution) -> Resolution:
        """The file whose text `record` is, if what was sampled confirms that (R354, confirmed text); otherwise `found`,
        with what was tried.

        Of several builds of the file's name the same evidence chooses. Two files of which neither has much more support
        are ambiguous; without enough evidence the reason is `unconfirmed`.
        """
        confirmed: list[tuple[float, Resolution]] = []
        doubtful: list[str] = []
        tried = [*found.tried]
        judged: set[tuple[Binary, int]] = set()
        for neighbour in self._around(record):
            if not self._may_be_text(record, neighbour):
                continue
            match_of = partial(match_text, self._judge, record, neighbour)
            answer = self._find(neighbour, match_of)
            text = f"text of {neighbour.filename or neighbour.build_id} on huge pages"
            if not isinstance(answer.binary, Binary):
                if answer.reason is Reason.MISFIT and (text, answer.detail) not in tried:
                    tried.append((text, answer.detail))
                continue
            match = match_of(answer.binary)
            if match.base is None or (answer.binary, match.base.distance) in judged:
                continue
            judged.add((answer.binary, match.base.distance))
            tried.append((text, match.text))
            if match.verdict is Verdict.SUPPORTED:
                address_map = partial(in_file, answer.binary, match.base)
                settled = replace(
                    answer, address_map=address_map, verdict=match.verdict, evidence=match.evidence, build_id=""
                )
                confirmed.append((match.judgement.support, settled))
            elif not match.refusal:
                doubtful.append(f"may be {text}; {match.evidence}")
        if not confirmed:
            found = replace(found, tried=tried)
            return found.refused(Reason.UNCONFIRMED, detail=doubtful[0]) if doubtful else found
        most, best = max(confirmed, key=lambda each: each[0])
        for support, other in confirmed:
            if support > most - REFUTED and not _is_same(best, other):
                detail = f"what was sampled fits {best.files[0]} and {other.files[0]}"
                return replace(found, reason=Reason.AMBIGUOUS, detail=detail, tried=tried)
        return replace(best, tried=tried)

    def _may_be_text(self, record: MappingRecord, neighbour: MappingRecord) -> bool:
        """Whether memory is where some build of a neighbour has its text, which most memory is not."""
        key = neighbour.build_id, neighbour.filename
        if key not in self._known:
            self._known[key] = self._layouts(neighbour)
        return any(distances(record, neighbour, layout) for layout in self._known[key])

    def _around(self, record: MappingRecord) -> Iterator[MappingRecord]:
        """The mappings of files around one, the nearest below and above first."""
        above = bisect_right(self._starts, record.start)
        for rank in range(MAX_NEIGHBOURS):
            for at in (above - 1 - rank, above + rank):
                if 0 <= at < len(self._files) and abs(self._starts[at] - record.start) <= MAX_DISTANCE:
                    yield self._files[at]


def match_text(judge: Judge, record: MappingRecord, neighbour: MappingRecord, binary: Binary) -> BuildMatch:
    """Whether memory may be text of the binary that `neighbour` is mapped from, by where its segments are then; without
    a base if it is not where the text is.

    The distance from addresses to vaddrs is that of the segment that `neighbour` is of; on a page that two segments
    share it may be either. The one that fits better is taken.
    """
    best = BuildMatch("not where its text is")
    for distance in distances(record, neighbour, FileLayout.of(binary)):
        base = AddressBase(distance, "placed by the mappings around it")
        mapped = in_file(binary, base, record.addresses)
        match = BuildMatch(judgement=judge.judge(binary, record.observed(mapped)), base=base)
        if best.base is None or match.judgement.support > best.judgement.support:
            best = match
    return best


def distances(record: MappingRecord, neighbour: MappingRecord, layout: FileLayout) -> list[int]:
    """How far vaddrs may be above the addresses of memory that is text, with `neighbour` a mapping of the same file."""
    size = record.limit - record.start
    found = load_distances(neighbour, layout)
    return [each for each in found if is_in_text(layout, record.start + each & TOP, size)]


def load_distances(mapping: MappingRecord, layout: FileLayout) -> list[int]:
    """How far vaddrs may be above the addresses of a mapping of a file, modulo 2⁶⁴: by the segments that hold its file
    offset, executable ones first."""
    if layout.kind == "ET_EXEC":
        return [0]
    found: dict[int, None] = {}
    for segment in sorted(layout.segments, key=lambda each: not each.executable):
        unit = max(segment.alignment, PAGE)
        begin, end = segment.file_offset // unit * unit, segment.file_offset + segment.file_size
        if begin <= mapping.file_offset < end:
            found[mapping.file_offset - segment.file_offset + segment.vaddr - mapping.start & TOP] = None
    return list(found)


def is_in_text(layout: FileLayout, vaddr: int, size: int) -> bool:
    """Whether memory is within an executable segment, whose ends may be rounded to huge pages."""
    for segment in layout.segments:
        begin = segment.vaddr // HUGE_PAGE * HUGE_PAGE
        end = -(-(segment.vaddr + segment.memory_size) // HUGE_PAGE) * HUGE_PAGE
        if segment.executable and segment.memory_size and begin <= vaddr and vaddr + size <= end:
            return True
    return False


def _is_file(record: MappingRecord) -> bool:
    return (
        record.kind == AddressKind.PROCESS
        and 0 < record.start < record.limit <= KERNEL_HALF
        and bool(record.filename or record.build_id)
        and not is_no_file(record.filename)
        and not is_moved_text(record)
    )


def _is_same(one: Resolution, other: Resolution) -> bool:
    """Whether two resolutions lead to the same code."""
    if one.binary is other.binary:
        return True
    return (
        isinstance(one.binary, Binary)
        and isinstance(other.binary, Binary)
        and is_same_build(one.binary.files, other.binary.files)
    )
