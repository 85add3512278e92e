"""From debug sections to flat arrays: the decoder of chosen units, the segments of their functions, their line rows,
and where those show that functions were folded."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Bool, Int32, Int64, UInt32, UInt64, distinct, first_of_runs, is_among, ranges, views
from symbolize.core.kernels import (
    RangeColumns,
    clip_to_parents,
    inline_depths,
    lay_rows,
    mark_owners,
    merge_runs,
    sort_runs,
)
from symbolize.core.mapped import let_go
from symbolize.core.parallel import at_once, together
from symbolize.core.ranges import Cover, Gaps, Pieces, clip_to, disjoint, in_order, union, without
from symbolize.core.records import record
from symbolize.dwarf.columns import Nodes, Part, Ranges, joined
from symbolize.dwarf.constants import NOWHERE, SOURCE_SHIFT
from symbolize.dwarf.die_walk import walk_units
from symbolize.dwarf.files import FileTables, LineRows
from symbolize.dwarf.names import Resolved, resolve
from symbolize.dwarf.reader import Reader
from symbolize.dwarf.sections import DebugSections, holds_code
from symbolize.dwarf.sources import SUPPLEMENTARY, DwarfCompanions, DwarfSources, Source
from symbolize.dwarf.unit_ranges import Claims, Witness, are_discarded, claims_of, cut_at, lines_of
from symbolize.dwarf.units import make_reader

MAX_RANKED_SIZE = 1 << 60
"""Functions at least this large rank alike."""

UNCLAIMED_RANK = 1 << 62
"""What code that its unit does not claim ranks behind."""

PIECES_PER_SEQUENCE = 16
MORE_PIECES = 1 << 16
"""Pieces that line sequences may be cut into, for each sequence or function and in addition."""

MAX_INLINE_DEPTH = 256
"""Inlining deeper than this is not followed (R30, depth of inlining). Real programs need some thirty levels."""

MAX_ROUNDS = 8
"""How often units may be added that decide between the line sequences of those before; then all units are decoded."""

PART_SIZE = 1 << 22
"""Bytes of DIEs that one thread walks without looking for the next work."""

MAX_PARTS = 256
"""Parts that the DIEs of a binary are walked in at most."""

MAX_SPLIT_WALKS = 4
"""How often split units may be walked on average: more than one skeleton for each is corrupt data."""

Columns = Mapping[str, NDArray[Any]]
Result = TypeVar("Result")


def only_around(begin: UInt64, end: UInt64, owner: Int64, vaddrs: UInt64, count: int) -> tuple[UInt64, UInt64, Int64]:
    """The ranges of those of `count` nodes that have code at one of `vaddrs` (ascending), whose segments suffice
    there."""
    chosen = np.zeros(count, np.uint8)
    mark_owners(RangeColumns(*views(begin, end, owner)), *views(vaddrs, chosen))
    kept = np.flatnonzero(chosen[owner])
    return begin[kept], end[kept], owner[kept]


class OwnedRanges(NamedTuple):
    """Ranges of code, and the node that each belongs to."""

    begin: UInt64
    end: UInt64
    owner: Int64


def function_segments(
    ranges: OwnedRanges,
    parent: Int64,
    unit: Int64,
    lines: LineRows,
    claims: Claims,
    problems: list[str],
    unknown: Gaps,
) -> tuple[UInt64, Int64, UInt64]:
    """Segments and their innermost nodes from the ranges of all nodes, which may be reordered in place.

    An inlined function owns what it covers of the function around it (R25, gaps of inlined functions; R26, ranges cut
    to their parents), the smallest range first (R27, inlined side by side). Of overlapping functions one whose unit
    claims the code wins (R255, claims of units), then the smallest, then one with a line table over it, then the first
    (R9, overlapping functions). Empty ranges own free addresses (R8, functions of length zero); the third column are
    the starts of these segments of one byte. `problems` and `unknown`, if a function is uncertain, receive what was
    left out.
    """
    begin, end, owner = ranges
    empty = begin == end
    empty_functions = None
    if empty.any():
        empty_functions = begin[empty], owner[empty]
        begin, end, owner = begin[~empty], end[~empty], owner[~empty]
        pieces = claims.cut_ranges(empty_functions[0], empty_functions[0], unit[empty_functions[1]], problems)
        if pieces is not None:
            empty_functions = pieces.begin, empty_functions[1][pieces.source]
    depth = np.zeros(len(parent), np.int64)
    if inline_depths(*views(parent, depth)) > MAX_INLINE_DEPTH:
        shallow = depth[owner] <= MAX_INLINE_DEPTH
        begin, end, owner = begin[shallow], end[shallow], owner[shallow]
    del depth
    if not sort_runs(RangeColumns(*views(begin, end, owner))):
        order = np.lexsort((begin, owner))
        begin, end, owner = begin[order], end[order], owner[order]
    count = merge_runs(RangeColumns(*views(begin, end, owner)))
    begin, end, owner = begin[:count], end[:count], owner[:count]
    pieces = claims.cut_ranges(begin, end, np.where(parent[owner] < 0, unit[owner], -1), problems)
    if pieces is not None:
        begin, end, owner, count = pieces.begin, pieces.end, owner[pieces.source], len(pieces.begin)
    capacity = count + (count >> 2) + 1024
    while True:
        first, last = np.zeros(len(parent), np.int64), np.zeros(len(parent), np.int64)
        clipped = np.zeros(capacity, np.uint64), np.zeros(capacity, np.uint64), np.zeros(capacity, np.int64)
        own = RangeColumns(*views(begin, end, owner))
        kept = clip_to_parents(own, *views(parent, first, last), RangeColumns(*views(*clipped)))
        if kept >= 0:
            break
        if capacity > 16 * count + 65536:
            problems.append("the ranges of inlined functions are absurdly fragmented; those are left out")
            top = parent[owner] < 0
            begin, end, owner = begin[top], end[top], owner[top]
            continue
        capacity *= 4
    del first, last
    begin, end, owner = (column[:kept] for column in clipped)
    rank = np.minimum(end - begin, np.uint64(MAX_RANKED_SIZE)).astype(np.int64)
    rank *= 2
    outer = np.flatnonzero(parent[owner] < 0)
    if pieces is not None:
        rank[outer[~claims.hold(begin[outer], unit[owner[outer]])]] += UNCLAIMED_RANK
    outer = outer[in_order(begin[outer])]
    apart = np.ones(len(outer) + 1, np.bool_)
    apart[1:-1] = begin[outer][1:] >= np.maximum.accumulate(end[outer])[:-1]
    outer = outer[~(apart[1:] & apart[:-1])]
    rank[outer] += ~lines.cover(begin[outer], unit[owner[outer]])
    starts, winners = disjoint(begin, end, owner, rank, parent, unknown)
    if empty_functions is None:
        return starts, winners, np.zeros(0, np.uint64)
    return with_empty_functions(starts, winners, *empty_functions)


def with_empty_functions(starts: UInt64, winners: Int64, start: UInt64, owner: Int64) -> tuple[UInt64, Int64, UInt64]:
    """Segments with those of empty functions, a byte each, where nothing else is (R8, functions of length zero), and
    the starts of these."""
    order = np.lexsort((owner, start))
    order = order[first_of_runs(start[order])]
    start, owner = start[order], owner[order]
    at = np.searchsorted(starts, start, side="right") - 1
    free = at < 0
    free[~free] = winners[at[~free]] < 0
    start, owner = start[free], owner[free]
    # Of segments that start at one address the first of these three stays.
    columns = (start, starts, start + np.uint64(1)), (owner, winners, np.full(len(owner), -1, np.int64))
    starts, winners = np.concatenate(columns[0]), np.concatenate(columns[1])
    order = np.argsort(starts, kind="stable")
    order = order[first_of_runs(starts[order])]
    return starts[order], winners[order], start


def line_rows(
    lines: LineRows,
    segments: tuple[UInt64, Int64, UInt64],
    unit: Int64,
    claims: Claims,
    problems: list[str],
    unknown: Gaps,
    asked: UInt64 | None,
) -> tuple[UInt64, Int64]:
    """Line entries by address: start and row, -1 for gaps (R38, no line between sequences). `segments` are those of
    `function_segments`; right are the entries that hold one of the vaddrs `asked` (ascending; None: all).

    Of overlapping sequences that of the program of the function's unit wins (R37, overlapping sequences), then a
    claimed one, then the first; beside a function of a unit that claims the address only claimed ones count (R255,
    claims of units). There are no lines in `unknown`.
    """
    starts, nodes, _ = segments
    if not lines.claimed.all():
        lines = without_strays(lines, segments, unit, claims, problems)
    begin, end, sequence = lines.begin, lines.end, np.arange(len(lines.begin))
    order = np.lexsort((end, begin))
    begin, end, sequence = begin[order], end[order], sequence[order]
    if (begin[1:] < np.maximum.accumulate(end)[:-1]).any():
        begin, end, sequence = prefer_owners(lines, starts, nodes, unit, problems, unknown)
    pieces = views(begin, end, lines.first_row[sequence], lines.last_row[sequence], lines.address)
    wanted = None if asked is None else asked.data
    count = lay_rows(*pieces, *views(np.zeros(0, np.uint64), np.zeros(0, np.int64)), wanted)
    row_starts, rows = np.zeros(count, np.uint64), np.zeros(count, np.int64)
    lay_rows(*pieces, *views(row_starts, rows), wanted)
    if unknown:
        gaps = union(*(np.concatenate(columns) for columns in zip(*unknown, strict=True)))
        size = int((gaps[1] - gaps[0]).sum())
        problems.append(f"absurdly many functions at one address; {size} bytes of code stay without names and lines")
        row_starts, rows = without(row_starts, rows, gaps)
    return row_starts, rows


def without_strays(
    lines: LineRows, segments: tuple[UInt64, Int64, UInt64], unit: Int64, claims: Claims, problems: list[str]
) -> LineRows:
    """`lines` without what is not claimed where a function of a unit is that claims the address (R255, claims of
    units)."""
    starts, nodes, empty_functions = segments
    there = np.flatnonzero(nodes >= 0)
    there = there[~is_among(starts[there], empty_functions)]
    begin, end, node = starts[there], starts[there + 1], nodes[there]
    claimed = claims.cut_ranges(begin, end, unit[node], problems)
    if claimed is not None:
        begin, end = claimed.begin[claimed.inside], claimed.end[claimed.inside]
    covered = Cover(begin, end, np.zeros(len(begin), np.int64), 1)
    owner = np.where(lines.claimed, -1, 0)
    pieces = cut_at(covered, lines.begin, lines.end, owner, problems)
    if pieces is None:
        pieces = Pieces(np.arange(len(owner)), lines.begin, lines.end, np.ones(len(owner), np.bool_))
    return lines_of(lines, pieces.take(~pieces.inside | lines.claimed[pieces.source]))


def prefer_owners(
    lines: LineRows, segment_start: UInt64, segment_node: Int64, unit: Int64, problems: list[str], unknown: Gaps
) -> tuple[UInt64, UInt64, Int64]:
    """Disjoint pieces of overlapping sequences by address: begin, end and sequence of each.

    Sequences are cut where the program of the function changes; a piece inside its own program's functions ranks first,
    then a claimed one.
    """
    program = np.full(len(segment_node), -1, np.int64)
    has_node = segment_node >= 0
    program[has_node] = lines.program_of_unit[unit[segment_node[has_node]]]
    change = first_of_runs(program)
    cut, cut_program = segment_start[change], program[change]
    first = np.searchsorted(cut, lines.begin, side="right")
    last = np.searchsorted(cut, lines.end, side="left")
    pieces = np.maximum(last - first, 0) + 1
    if pieces.sum() > PIECES_PER_SEQUENCE * (len(pieces) + len(cut)) + MORE_PIECES:
        problems.append("line sequences overlap absurdly; some lines may be those of other functions")
        last, pieces = first, np.ones_like(pieces)
    sequence = np.repeat(np.arange(len(pieces)), pieces)
    step = ranges(np.zeros(len(pieces), np.int64), pieces)
    limits = np.append(cut, np.uint64(0xFFFFFFFFFFFFFFFF))
    begin = np.where(step == 0, lines.begin[sequence], limits[np.minimum(first[sequence] + step - 1, len(cut))])
    is_last = step == pieces[sequence] - 1
    end = np.where(is_last, lines.end[sequence], limits[np.minimum(first[sequence] + step, len(cut))])
    owner = first[sequence] + step - 1
    own = (owner >= 0) & (np.append(cut_program, -2)[owner] == lines.program[sequence])
    rank = np.empty(len(begin), np.int64)
    rank[np.lexsort((begin, sequence, ~lines.claimed[sequence], ~own))] = np.arange(len(begin))
    piece = np.arange(len(begin))
    starts, winners = disjoint(begin, end, piece, rank, np.full(len(begin), -1, np.int64), unknown)
    covered = np.flatnonzero(winners >= 0)
    return starts[covered], starts[covered + 1], sequence[winners[covered]]


def prefer_declared(
    reader: Reader,
    lines: LineRows,
    claims: Claims,
    nodes: dict[str, NDArray[Any]],
    segments: tuple[UInt64, Int64],
    rows: tuple[UInt64, Int64],
) -> tuple[UInt64, Int64]:
    """The line entries `rows`, where several sequences of a program begin at one address with those of the function
    there: of the sequence with the row nearest behind its declaration.

    So name and lines agree. A sequence that ends elsewhere was not this code (R161, sequence of the shown function).
    """
    several = _several(lines)
    if not len(several) or not len(segments[0]):
        return rows
    begin, program = lines.begin[several], lines.program[several]
    first = np.flatnonzero(first_of_runs(begin) | first_of_runs(program))
    last = np.append(first[1:], len(several))
    first, last = first[last - first > 1], last[last - first > 1]
    node = segments[1][np.searchsorted(segments[0], begin[first], side="right") - 1]
    node[begin[first] < segments[0][0]] = -1
    parent, unit = nodes["parent"], nodes["unit"]
    while (inlined := (node >= 0) & (parent[node] >= 0)).any():
        node[inlined] = parent[node[inlined]]
    own = (node >= 0) & (lines.program_of_unit[unit[node]] == program[first])
    own[own] = claims.hold(begin[first][own], unit[node[own]]) == lines.claimed[several[first[own]]]
    first, last, node = first[own], last[own], node[own]
    decl_file, decl_line = _declarations(reader, nodes["die"][node])
    file, line = np.asarray(lines.tables.file), np.asarray(lines.tables.line)
    start, row = rows
    pieces: list[tuple[UInt64, Int64]] = []
    done = 0
    for i, j, declared_file, declared in zip(first.tolist(), last.tolist(), decl_file, decl_line, strict=True):
        sequences = several[i:j].tolist()
        best, nearest = sequences[0], None
        for sequence in sequences:
            run = slice(int(lines.first_row[sequence]), int(lines.last_row[sequence]))
            behind = line[run][(file[run] == declared_file) & (line[run] >= declared)]
            if declared and len(behind) and (nearest is None or int(behind.min()) < nearest):
                best, nearest = sequence, int(behind.min())
        low = int(np.searchsorted(start, lines.begin[best]))
        high = int(np.searchsorted(start, lines.end[best]))
        present = int(row[low]) if low < len(row) and start[low] == lines.begin[best] else -1
        shown = [s for s in sequences if lines.first_row[s] <= present < lines.last_row[s]]
        if nearest is None or not shown or shown[0] == best or low < done or lines.end[shown[0]] != lines.end[best]:
            continue
        run = slice(int(lines.first_row[best]), int(lines.last_row[best]))
        # A sequence that was cut has rows before and behind it.
        low_row = int(np.searchsorted(lines.address[run], lines.begin[best], side="right")) - 1
        high_row = int(np.searchsorted(lines.address[run], lines.end[best]))
        run = slice(run.start + max(low_row, 0), run.start + high_row)
        address = np.maximum(lines.address[run], lines.begin[best])
        # Other functions may be inside, with lines of their own.
        cuts = distinct(np.concatenate((start[low:high], address)))
        present_rows = row[low:high][np.searchsorted(start[low:high], cuts, side="right") - 1]
        rows_of_best = np.searchsorted(address, cuts, side="right") - 1 + run.start
        replaced = (present_rows >= lines.first_row[shown[0]]) & (present_rows < lines.last_row[shown[0]])
        chosen = np.where(replaced, rows_of_best, present_rows)
        new_row = first_of_runs(chosen)
        pieces += [(start[done:low], row[done:low]), (cuts[new_row], chosen[new_row])]
        done = high
    if not pieces:
        return rows
    pieces.append((start[done:], row[done:]))
    return np.concatenate([piece[0] for piece in pieces]), np.concatenate([piece[1] for piece in pieces])


def begins_of_several(lines: LineRows, vaddrs: UInt64) -> UInt64:
    """Begins shared by several sequences of one program that hold any of `vaddrs` (ascending), for
    `prefer_declared`."""
    several = _several(lines)
    first, last = (np.searchsorted(vaddrs, column[several]) for column in (lines.begin, lines.end))
    begins: UInt64 = lines.begin[several[first < last]]
    return begins


def _several(lines: LineRows) -> Int64:
    """The sequences that begin where others of their program begin, in order of address, then program."""
    order = np.lexsort((lines.program, lines.begin))
    new = first_of_runs(lines.begin[order]) | first_of_runs(lines.program[order])
    several: Int64 = order[~(new & np.append(new[1:], True))]
    return several


def _declarations(reader: Reader, dies: UInt64) -> tuple[list[int], list[int]]:
    """File number and line of the declaration of each DIE; 0 of those of other files."""
    found = Resolved(dies)
    resolve(reader, found)
    return np.asarray(found.decl_file).tolist(), np.asarray(found.decl_line).tolist()


@record
class Decoded:
    """The code of some units.

    Segment `i` is `[segment_start[i], segment_start[i + 1])`, and its innermost function is node `segment_node[i]` (-1:
    none); see `Nodes`. `node_die` and `node_origin` are references (see `DwarfSources`), `node_unit` is a unit of the
    binary's own .debug_info. Line entry `j` is `[row_start[j], row_start[j + 1])` and has row `row[j]` of the row
    columns (-1: none). `empty_starts` are the starts of the segments of functions of length zero.
    """

    segment_start: UInt64
    segment_node: Int64
    empty_starts: UInt64
    node_die: UInt64
    node_origin: UInt64
    node_entry: UInt64
    node_unit: Int64
    node_parent: Int64
    node_call_file: UInt32
    node_call_line: UInt32
    node_call_column: UInt32
    row_start: UInt64
    row: Int64
    row_unit: Int32
    row_file: UInt32
    row_line: UInt32
    row_column: UInt32

    @classmethod
    def nothing(cls) -> Self:
        """No code at all, as of a binary without debug information."""
        u8, u4 = np.zeros(0, np.uint64), np.zeros(0, np.uint32)
        i8, i4 = np.zeros(0, np.int64), np.zeros(0, np.int32)
        return cls(u8, i8, u8, u8, u8, u8, i8, i8, u4, u4, u4, u8, i8, i4, u4, u4, u4)


class DecodeProblems(list[str]):
    """Sentences, each once. A corrupt file may be good for a hundred thousand of them."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[str] = set()

    def append(self, problem: str) -> None:
        """Add a sentence if it is new."""
        if problem not in self._known:
            self._known.add(problem)
            super().append(problem)


class Walks:
    """Walks over parts of the units of `sections`, in any number of threads, that share the budget of `reader` for
    range lists: `ranges_left` is what was left of it by those that are done. Read is what has code at one of the vaddrs
    `asked`, see `Ranges`."""

    def __init__(self, sections: DebugSections, reader: Reader, asked: UInt64 | None) -> None:
        self._sections = sections
        self._reader = reader
        self._asked = asked
        self._used: list[int] = []
        self._idle: list[tuple[Reader, Nodes, Ranges]] = []

    @property
    def ranges_left(self) -> int:
        """Entries of range lists that may still be read, negative where too many were."""
        return int(self._reader.ranges_left) - sum(self._used)

    def walk(self, units: Int64) -> Part:
        """The nodes and ranges of `units`."""
        try:
            tables = self._idle.pop()
        except IndexError:
            reader = make_reader(self._sections, self._reader.units, self._reader.tables)
            tables = reader, Nodes(), Ranges(self._asked)
        reader, nodes, ranges = tables
        first, first_range = nodes.count, ranges.count
        reader.ranges_left = before = max(self.ranges_left, 0)
        walk_units(reader, units, nodes, ranges)
        if len(units):
            begin = int(reader.units.offset[units[0]])
            let_go(self._sections.info, begin, int(reader.units.end[units[-1]]) - begin)
        self._used.append(before - reader.ranges_left)
        self._idle.append(tables)
        return Part(nodes, ranges, first, nodes.count, first_range, ranges.count)


def outermost_by_origin(nodes: Columns) -> tuple[UInt64, UInt64]:
    """The functions that are not inlined and have an abstract origin: that, ascending, and their DIEs."""
    rows = np.flatnonzero((nodes["parent"] < 0) & (nodes["origin"] != np.uint64(NOWHERE)))
    rows = rows[np.argsort(nodes["origin"][rows], kind="stable")]
    return nodes["origin"][rows], nodes["die"][rows]


class Dwarf:
    """The DWARF of one binary. Units are indexed at once, decoded on demand.

    `code` are begins and ends of executable ranges (R54, discarded code), ascending. `companions` opens split units and
    the supplementary file. `readable` gives the text of a linkage name as it precedes names that are local to the
    function, `linked_at` the names of symbols at a vaddr. `claims` are the ranges of the roots, `problems` sentences
    about what is unreadable. `witness`, set before anything is decoded, tells discarded functions from live ones.
    """

    def __init__(
        self,
        sections: DebugSections,
        code: tuple[UInt64, UInt64],
        companions: DwarfCompanions | None = None,
        readable: Callable[[bytes], bytes] = bytes,
        linked_at: Callable[[int], list[bytes]] = lambda _: [],
    ) -> None:
        self.witness: Witness | None = None
        self.readable = readable
        self.linked_at = linked_at
        self.sections = sections
        self.code = code
        self.problems = DecodeProblems()
        self._corrupt_splits: list[int] = []
        self.sources = DwarfSources(sections, companions, self.problems)
        self.reader = self.sources.main.reader
        self.units = self.reader.units
        let_go(sections.info, 0, len(sections.info))  # all headers were read, and around each some pages
        self.claims = claims_of(self.sources.claims, code, self.reader)
        self._unknown: Gaps = []
        self._outermost: Callable[[], tuple[UInt64, UInt64]] = lambda: (np.zeros(0, np.uint64), np.zeros(0, np.uint64))
        self.files = self._file_tables(self.sources.main)
        self._supplementary_files: FileTables | None = None
        self._report_bad_units()

    def doubtful(self) -> tuple[UInt64, UInt64]:
        """Begins and ends, disjoint and ascending, of where a name may be missing: everything if a unit is unreadable,
        else claims of units with corrupt DIEs, among those that were decoded, and where functions were left out."""
        if np.asarray(self.units.bad).any() or self._ends_early:
            return np.zeros(1, np.uint64), np.full(1, (1 << 64) - 1, np.uint64)
        claims = self.claims
        corrupt = np.asarray(self.units.corrupt)[claims.unit] != 0
        ranges = (claims.begin[corrupt], claims.end[corrupt]), *self._unknown
        return union(*(np.concatenate(columns) for columns in zip(*ranges, strict=True)))

    def size(self, units: Int64 | None = None) -> int:
        """Bytes of debug information that `units` are, or all."""
        sizes = np.asarray(self.units.end) - np.asarray(self.units.offset)
        return int(sizes.sum() if units is None else sizes[units].sum())

    def uncovered(self, decoded: Decoded, vaddrs: UInt64) -> Bool:
        """At which of `vaddrs` (ascending) no function is of a unit that claims the address (R255, claims of units)."""
        at = np.searchsorted(decoded.segment_start, vaddrs, side="right") - 1
        node = np.append(decoded.segment_node, -1)[at]
        node[is_among(at, np.searchsorted(decoded.segment_start, decoded.empty_starts))] = -1
        return ~self.claims.hold(vaddrs, np.append(decoded.node_unit, -1)[node])

    def holding_code(self) -> Int64:
        """The units that may hold code: compile and skeleton units (R90, units with code).

        Partial units add no code of their own, also not where another unit imports them (R89, partial units).
        """
        return np.flatnonzero(holds_code(np.asarray(self.units.kind)))

    def bodies(self, die: int) -> list[int]:
        """References of the DIEs with the code of the function `die`, in its unit, if that is decoded.

        Those in other units do not count, so that the answer does not depend on which of them are decoded.
        """
        source = self.sources.get(die >> SOURCE_SHIFT)
        origins, dies = self._outermost()
        found = dies[slice(*np.searchsorted(origins, np.array([die, die + 1], np.uint64)).tolist())]
        if source is None or not len(found):
            return []
        units = np.asarray(source.reader.units.offset) | np.uint64(source.number << SOURCE_SHIFT)
        own = np.searchsorted(units, found, side="right") == np.searchsorted(units, np.uint64(die), side="right")
        bodies: list[int] = found[own].tolist()
        return bodies

    def path(self, unit: int, index: int, is_row: bool) -> bytes:
        """The path of file `index` in the file table of `unit`, empty if there is none; see `paths`."""
        paths, which = self.paths(np.array([unit]), np.array([index]), is_row)
        return paths[which[0]] if which[0] >= 0 else b""

    def paths(self, unit: Int64, index: Int64, is_row: bool) -> tuple[list[bytes], Int64]:
        """The paths of files `index` in the file tables of `unit`, as `FileTables.paths`; units of the supplementary
        file follow those of the binary."""
        own = len(self.units.offset)
        foreign = unit >= own
        if not foreign.any():
            return self.files.paths(unit, index, is_row)
        if self._supplementary_files is None:
            source = self.sources.get(SUPPLEMENTARY)
            assert source is not None, "units of a file that was never read"
            self._supplementary_files = self._file_tables(source)
        paths, here = self.files.paths(unit[~foreign], index[~foreign], is_row)
        more, there = self._supplementary_files.paths(unit[foreign] - own, index[foreign], is_row)
        which = np.empty(len(unit), np.int64)
        which[~foreign], which[foreign] = here, np.where(there >= 0, there + len(paths), -1)
        return paths + more, which

    def decode(self, units: Int64 | None = None, needed: Callable[[], UInt64] | None = None) -> Decoded:
        """Decode `units`, or all that hold code.

        `needed` is called when the line programs are read; only at the vaddrs that it gives segments and line entries
        need to be right.
        """
        return self._decode(units, needed, None)

    def decode_beside(self, job: Callable[[Columns, Int64], Result]) -> tuple[Decoded, Result]:
        """Decode all units that hold code, and run `job` in a second thread as soon as the DIEs are read.

        Its arguments are the columns of the nodes, as in `Decoded`, and the nodes that have code of their own.
        """
        results: list[Result] = []
        decoded = self._decode(None, None, lambda nodes, owners: results.append(job(nodes, owners)))
        return decoded, results[0]

    def _decode(
        self,
        units: Int64 | None,
        needed: Callable[[], UInt64] | None,
        job: Callable[[Columns, Int64], None] | None,
        rounds: int = MAX_ROUNDS,
    ) -> Decoded:
        if units is None:
            units = self.holding_code()
        known = np.asarray(self.units.corrupt).copy()
        found: list[LineRows] = []

        def read_lines() -> None:
            found.append(self.claims.cut_lines(self.read_lines(units), self.problems))

        around: UInt64 | None = None
        if needed is not None:
            read_lines()
            asked = distinct(needed())
            begins = begins_of_several(found[0], asked)
            deciding = distinct(np.concatenate((units, self.claims.units_for(begins))))
            if len(deciding) > len(units):
                return self._decode(deciding if rounds else None, needed, job, rounds - 1)
            around = distinct(np.concatenate((asked, begins)))
        nodes, (begin, end, owner), complete = self._walk(units, around, [] if found else [read_lines])
        (lines,) = found
        if not complete:
            self.problems.append("absurdly many range list entries; some functions are left out")
        for broken in np.flatnonzero(np.asarray(self.units.corrupt) != known).tolist():
            what = "the split unit of the one" if broken in self._corrupt_splits else "the unit"
            offset = self.units.offset[broken]
            self.problems.append(f"corrupt DIEs in {what} at .debug_info offset {offset:#x}")
        parent, unit = nodes["parent"], nodes["unit"]
        self._outermost = cache(partial(outermost_by_origin, nodes))
        begin, end, owner = self._live(begin, end, owner, nodes, lines)
        if around is not None:
            begin, end, owner = only_around(begin, end, owner, around, len(parent))
        problems: list[str] = []
        unknown: Gaps = []

        def build_layers() -> tuple[tuple[UInt64, Int64, UInt64], tuple[UInt64, Int64]]:
            ranges = OwnedRanges(begin, end, owner)
            segments = function_segments(ranges, parent, unit, lines, self.claims, problems, unknown)
            return segments, line_rows(lines, segments, unit, self.claims, problems, unknown, around)

        if job is not None:
            has_code = np.zeros(len(parent), np.bool_)
            has_code[owner] = True
            layers, _ = together(build_layers, lambda: job(nodes, np.flatnonzero(has_code)))
        else:
            layers = build_layers()
        for problem in problems:
            self.problems.append(problem)
        self._unknown += unknown
        (segment_start, segment_node, of_empty), rows = layers
        segments = segment_start, segment_node
        row_start, row = prefer_declared(self.reader, lines, self.claims, nodes, segments, rows)
        count = lines.tables.row_count
        return Decoded(
            segment_start,
            segment_node,
            of_empty,
            nodes["die"],
            nodes["origin"],
            nodes["entry"],
            unit,
            parent,
            nodes["call_file"],
            nodes["call_line"],
            nodes["call_column"],
            row_start,
            row,
            lines.row_unit,
            np.asarray(lines.tables.file)[:count],
            np.asarray(lines.tables.line)[:count],
            np.asarray(lines.tables.column)[:count],
        )

    def _walk(
        self, units: Int64, asked: UInt64 | None, beside: list[Callable[[], Any]]
    ) -> tuple[dict[str, NDArray[Any]], tuple[UInt64, UInt64, Int64], bool]:
        """Walk the DIEs of `units`, or of their split units, and run the jobs `beside`, at once.

        Returns the columns of the nodes; begin, end and node of the ranges, with `asked` (ascending) of functions with
        code at one of these vaddrs; and whether all range lists were read. Children of a skeleton are read only where
        its other half is missing; its lines are read in any case (R83, children of a skeleton).
        """
        split = self._split_units(units)
        whole = np.ones(len(self.units.offset), np.bool_)
        whole[list(split)] = False
        walked = units[whole[units]]
        self.reader.refill()
        walks = Walks(self.sections, self.reader, asked)
        jobs: list[Callable[[], Any]] = [partial(walks.walk, part) for part in self._parts(walked)]
        parts = at_once([*beside, *jobs])[len(beside) :]
        if walks.ranges_left < 0:  # which lists are left out must not depend on the threads
            walks = Walks(self.sections, self.reader, asked)
            parts = [walks.walk(walked)]
        self.reader.ranges_left = walks.ranges_left
        nodes, ranges = Nodes(), Ranges(asked)
        self._walk_split(split, nodes, ranges)
        columns, ranges_of = joined([*parts, Part(nodes, ranges, 0, nodes.count, 0, ranges.count)])
        return columns, ranges_of, self.reader.ranges_left >= 0

    def read_lines(self, units: Int64) -> LineRows:
        """Decode the line programs of `units`, each program once."""
        return self.files.read_rows(units, None if self.witness is None else self.witness.of_sequences)

    def _live(
        self, begin: UInt64, end: UInt64, owner: Int64, nodes: Columns, lines: LineRows
    ) -> tuple[UInt64, UInt64, Int64]:
        """The ranges of `nodes` in code, without those of functions that were discarded."""
        live, begin, clipped = clip_to(begin, end, self.code)
        owner = owner[live]
        if self.witness is None:
            return begin, clipped, owner
        own = np.flatnonzero(nodes["parent"][owner] < 0)
        die, unit = nodes["die"][owner[own]], nodes["unit"][owner[own]]
        ranges = begin[own], end[live[own]]
        dead = own[are_discarded(self.claims, self.witness, die, ranges, unit, lines)]
        if not len(dead):
            return begin, clipped, owner
        return np.delete(begin, dead), np.delete(clipped, dead), np.delete(owner, dead)

    def _split_units(self, units: Int64) -> dict[int, tuple[Source, int]]:
        """The split units of those of `units` that are skeletons, where they are found: source and unit in it."""
        if not self.sources.has_skeletons:
            return {}
        skeletons = units[self.sources.is_skeleton[units]].tolist()
        found = {skeleton: unit for skeleton in skeletons if (unit := self.sources.split(skeleton)) is not None}
        self.sources.report()
        return found

    def _walk_split(self, split: dict[int, tuple[Source, int]], nodes: Nodes, ranges: Ranges) -> None:
        """Add the nodes and ranges of split units, as those of their skeletons."""
        bytes_left = MAX_SPLIT_WALKS * sum(
            {source.number: len(source.sections.info) for source, _ in split.values()}.values()
        )
        for skeleton, (source, unit) in split.items():
            first = nodes.count
            bytes_left -= int(source.reader.units.end[unit] - source.reader.units.offset[unit])
            if bytes_left < 0:
                self.problems.append("absurdly many skeletons of the same split units; some are left out")
                break
            # One budget for all: each split unit may name the same lists in the binary.
            source.reader.ranges_left = self.reader.ranges_left + len(source.sections.info)
            walk_units(source.reader, np.array([unit]), nodes, ranges)
            self.reader.ranges_left = source.reader.ranges_left
            own = slice(first, nodes.count)
            die, origin = np.asarray(nodes.die)[own], np.asarray(nodes.origin)[own]
            die |= np.uint64(source.number << SOURCE_SHIFT)
            origin[:] = source.tagged(origin)
            np.asarray(nodes.unit)[own] = skeleton
            if source.reader.units.corrupt[unit]:
                self.units.corrupt[skeleton] = 1
                self._corrupt_splits.append(skeleton)

    def _parts(self, units: Int64) -> list[Int64]:
        """`units` (ascending) in parts of about PART_SIZE bytes of DIEs, or larger ones where there would be too
        many."""
        size = np.cumsum(np.asarray(self.units.end)[units] - np.asarray(self.units.offset)[units])
        if not len(size):
            return []
        number = (size - np.uint64(1)) // np.uint64(max(PART_SIZE, int(size[-1]) // MAX_PARTS))
        return np.split(units, np.flatnonzero(first_of_runs(number))[1:])

    def _file_tables(self, source: Source) -> FileTables:
        """The line programs and file tables of a source, with a reader of their own."""
        reader = make_reader(source.sections, source.reader.units, source.reader.tables)
        return FileTables(
            reader, source.sections, self.code, self.problems, lambda names: self.sources.paths(source.tagged(names))
        )

    def _report_bad_units(self) -> None:
        end = int(self.units.end[len(self.units.end) - 1]) if len(self.units.end) else 0
        self._ends_early = bool(np.frombuffer(self.sections.info, np.uint8)[end:].any())
        if self._ends_early:
            self.problems.append(f"no unit can be read from .debug_info offset {end:#x} on")
        bad = np.flatnonzero(np.asarray(self.units.bad))
        if len(bad):
            at = ", ".join(f"{self.units.offset[unit]:#x}" for unit in bad[:3])
            more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
            self.problems.append(f"unreadable units at .debug_info offset {at}{more}")
