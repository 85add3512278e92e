"""Which function answers for which addresses, and which line row."""

import numpy as np

from symbolize.core.arrays import Int64, UInt64, first_of_runs, is_among, ranges, views
from symbolize.core.range_kernels import clip_to_parents, inline_depths, lay_rows, mark_owners, merge_runs, sort_runs
from symbolize.core.ranges import Cover, Gaps, Pieces, disjoint, in_order, union, without
from symbolize.dwarf.files import Lines
from symbolize.dwarf.unit_ranges import Claims, cut_at, lines_of

MAX_RANKED_SIZE = 1 << 60
"""Functions at least this large rank alike."""

UNCLAIMED_RANK = 1 << 62
"""What code that its unit does not claim ranks behind."""

PIECES_PER_SEQUENCE = 16
MORE_PIECES = 1 << 16
"""Pieces that line sequences may be cut into, for each sequence or function and in addition."""

MAX_INLINE_DEPTH = 256
"""Inlining deeper than this is not followed (R30, depth of inlining)."""


def only_around(begin: UInt64, end: UInt64, owner: Int64, vaddrs: UInt64, count: int) -> tuple[UInt64, UInt64, Int64]:
    """The ranges of those of `count` nodes that have code at one of `vaddrs` (ascending), whose segments suffice
    there."""
    chosen = np.zeros(count, np.uint8)
    mark_owners(*views(begin, end, owner, vaddrs, chosen))
    kept = np.flatnonzero(chosen[owner])
    return begin[kept], end[kept], owner[kept]


def function_segments(
    begin: UInt64,
    end: UInt64,
    owner: Int64,
    parent: Int64,
    unit: Int64,
    lines: Lines,
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
    if not sort_runs(*views(begin, end, owner)):
        order = np.lexsort((begin, owner))
        begin, end, owner = begin[order], end[order], owner[order]
    count = merge_runs(*views(begin, end, owner))
    begin, end, owner = begin[:count], end[:count], owner[:count]
    pieces = claims.cut_ranges(begin, end, np.where(parent[owner] < 0, unit[owner], -1), problems)
    if pieces is not None:
        begin, end, owner, count = pieces.begin, pieces.end, owner[pieces.source], len(pieces.begin)
    capacity = count + (count >> 2) + 1024
    while True:
        first, last = np.zeros(len(parent), np.int64), np.zeros(len(parent), np.int64)
        clipped = np.zeros(capacity, np.uint64), np.zeros(capacity, np.uint64), np.zeros(capacity, np.int64)
        kept = clip_to_parents(*views(begin, end, owner, parent, first, last, *clipped))
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
    lines: Lines,
    segments: tuple[UInt64, Int64, UInt64],
    unit: Int64,
    claims: Claims,
    problems: list[str],
    unknown: Gaps,
) -> tuple[UInt64, Int64]:
    """Line entries by address: start and row, -1 for gaps (R38, no line between sequences). `segments` are those of
    `function_segments`.

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
    count = lay_rows(*pieces, *views(np.zeros(0, np.uint64), np.zeros(0, np.int64)), False)
    row_starts, rows = np.zeros(count, np.uint64), np.zeros(count, np.int64)
    lay_rows(*pieces, *views(row_starts, rows), True)
    if unknown:
        gaps = union(*(np.concatenate(columns) for columns in zip(*unknown, strict=True)))
        size = int((gaps[1] - gaps[0]).sum())
        problems.append(f"absurdly many functions at one address; {size} bytes of code stay without names and lines")
        row_starts, rows = without(row_starts, rows, gaps)
    return row_starts, rows


def without_strays(
    lines: Lines, segments: tuple[UInt64, Int64, UInt64], unit: Int64, claims: Claims, problems: list[str]
) -> Lines:
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
    lines: Lines, segment_start: UInt64, segment_node: Int64, unit: Int64, problems: list[str], unknown: Gaps
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
