"""Ranges to segments, against brute force over small address spaces (rules R9, R25, R26, R27, R37)."""

import itertools
from collections.abc import Iterable
from typing import NamedTuple, cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from symbolize.core.arrays import layer_at, views
from symbolize.core.cursor import COMPILED
from symbolize.core.kernels import RangeColumns, clip_to_parents, inline_depths, lay_rows, mark_owners, merge_runs
from symbolize.core.ranges import Cover, Gaps, clip_to, disjoint, union
from symbolize.dwarf.decode import OwnedRanges, function_segments, only_around
from symbolize.dwarf.files import LineRows
from symbolize.dwarf.unit_ranges import Claims
from tests.support.seeds import examples

SPACE = 24
EXAMPLES = examples(300 if COMPILED else 100)

Range = tuple[int, int, int]
"""Begin, end and owner."""


class Forest(NamedTuple):
    """Nodes with their parents, and ranges of these nodes."""

    parents: list[int]
    ranges: list[Range]


@st.composite
def forests(draw: st.DrawFn, nodes: int = 8) -> Forest:
    """Up to so many nodes, parents before children, and any ranges of theirs."""
    parents = [draw(st.integers(-1, i - 1)) for i in range(draw(st.integers(1, nodes)))]
    bounds = st.tuples(st.integers(0, SPACE), st.integers(0, SPACE)).filter(lambda b: b[0] < b[1])
    ranges = draw(st.lists(st.tuples(bounds, st.integers(0, len(parents) - 1)), max_size=2 * nodes - 2))
    return Forest(parents, [(begin, end, owner) for (begin, end), owner in ranges])


@st.composite
def copies(draw: st.DrawFn) -> Forest:
    """More copies of a few functions, with what is inlined into them, than may be open at one address."""
    kinds = draw(st.lists(forests(3), min_size=1, max_size=2))
    parents: list[int] = []
    ranges: list[Range] = []
    for number in range(1100 * len(kinds)):
        kind, first = kinds[number % len(kinds)], len(parents)
        parents += [parent + first if parent >= 0 else -1 for parent in kind.parents]
        ranges += [(begin, end, owner + first) for begin, end, owner in kind.ranges]
    return Forest(parents, ranges)


def columns(ranges: list[Range]) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    """Ranges as columns in order of owner, then begin."""
    rows = sorted(ranges, key=lambda r: (r[2], r[0]))
    begin, end, owner = ([row[i] for row in rows] for i in range(3))
    return np.array(begin, np.uint64), np.array(end, np.uint64), np.array(owner, np.int64)


def merged(ranges: list[Range]) -> list[Range]:
    """Ranges of one owner that touch or overlap, joined by `merge_runs`."""
    begin, end, owner = columns(ranges)
    count = merge_runs(RangeColumns(*views(begin, end, owner)))
    return list(zip(begin[:count].tolist(), end[:count].tolist(), owner[:count].tolist(), strict=True))


def clipped(forest: Forest) -> list[Range]:
    """The merged ranges, cut to those of the parents by `clip_to_parents`."""
    inputs = columns(merged(forest.ranges))
    parents = np.array(forest.parents, np.int64)
    first, last = np.zeros((2, len(parents)), np.int64)
    room = SPACE * (len(parents) + 1)
    outputs = np.zeros(room, np.uint64), np.zeros(room, np.uint64), np.zeros(room, np.int64)
    inner, clipped = (RangeColumns(*views(*each)) for each in (inputs, outputs))
    count = clip_to_parents(inner, *views(parents, first, last), clipped)
    assert count >= 0
    result = list(zip(*(column[:count].tolist() for column in outputs), strict=True))
    for node in range(len(parents)):
        assert all(owner == node for _, _, owner in result[first[node] : last[node]])
    return result


def covered(ranges: list[Range], owner: int) -> set[int]:
    """The addresses in the ranges of `owner`."""
    return {x for begin, end, who in ranges if who == owner for x in range(begin, end)}


def winner_at(x: int, ranges: list[Range], ranks: list[int], parents: list[int]) -> int:
    """The owner that answers at `x`: from the root down, of the siblings that cover it the one of the lowest rank."""
    winner = -1
    while True:
        candidates = [
            (rank, owner)
            for (begin, end, owner), rank in zip(ranges, ranks, strict=True)
            if begin <= x < end and parents[owner] == winner
        ]
        if not candidates:
            return winner
        winner = min(candidates)[1]


@EXAMPLES
@given(forests())
def test_merge_runs(forest: Forest) -> None:
    """Merging keeps what each owner covers, in disjoint ranges that do not touch."""
    result = merged(forest.ranges)
    for owner in range(len(forest.parents)):
        assert covered(result, owner) == covered(forest.ranges, owner)
        own = [row for row in result if row[2] == owner]
        assert all(a[1] < b[0] for a, b in itertools.pairwise(own))


@EXAMPLES
@given(forests())
def test_clip_to_parents(forest: Forest) -> None:
    """An inlined function keeps what lies in all the functions around it, and nothing else (rules R25, R26)."""
    result = clipped(forest)
    expected: list[set[int]] = []
    for owner, parent in enumerate(forest.parents):
        own = covered(forest.ranges, owner)
        expected.append(own if parent < 0 else own & expected[parent])
    assert [covered(result, owner) for owner in range(len(forest.parents))] == expected
    assert result == sorted(result, key=lambda r: (r[2], r[0]))


def test_clip_reports_lack_of_room() -> None:
    """Output arrays that are too short are no overrun but -1."""
    inputs = columns([(0, 4, 0), (6, 8, 0)])
    first, last = np.zeros((2, 1), np.int64)
    outputs = np.zeros(1, np.uint64), np.zeros(1, np.uint64), np.zeros(1, np.int64)
    inner, clipped = (RangeColumns(*views(*each)) for each in (inputs, outputs))
    assert clip_to_parents(inner, *views(np.array([-1]), first, last), clipped) == -1


@EXAMPLES
@given(forests(), st.randoms(use_true_random=False))
def test_sweep(forest: Forest, random: "np.random.Generator") -> None:
    """Segments name for every address the winner that brute force finds, whatever the ranks (rules R9, R27)."""
    ranges = clipped(forest)
    ranks = list(range(len(ranges)))
    random.shuffle(ranks)
    begin, end, owner = (np.array([row[i] for row in ranges], kind) for i, kind in enumerate(("u8", "u8", "i8")))
    starts, winners = disjoint(begin, end, owner, np.array(ranks, np.int64), np.array(forest.parents, np.int64))
    assert (starts[1:] > starts[:-1]).all()
    assert not len(winners) or winners[-1] == -1
    for x in range(SPACE + 1):
        place = int(np.searchsorted(starts, x, side="right")) - 1
        found = int(winners[place]) if place >= 0 else -1
        assert found == winner_at(x, ranges, ranks, forest.parents), x


@EXAMPLES
@given(forests(), st.sets(st.integers(0, SPACE)), st.lists(st.tuples(st.integers(0, SPACE), st.integers(0, 7))))
def test_segments_around_addresses(forest: Forest, wanted: set[int], empty: list[tuple[int, int]]) -> None:
    """Ranges that are not around the addresses that count change nothing there (rules R8, R9, R25, R27)."""
    parents = np.array(forest.parents, np.int64)
    empty_ranges = [(x, x, owner) for x, owner in empty if owner < len(parents) and parents[owner] < 0]
    begin, end, owner = columns(forest.ranges + empty_ranges)
    addresses = np.array(sorted(wanted), np.uint64)
    found = []
    for ranges in ((begin, end, owner), only_around(begin, end, owner, addresses, len(parents))):
        starts, nodes, _ = segments_of(*ranges, parents, parents * 0, claims_of_units((0, SPACE + 1, 0)))
        found.append(layer_at(starts, nodes, addresses).tolist())
    assert found[0] == found[1]


@settings(EXAMPLES, max_examples=50)
@given(copies(), st.data())
def test_segments_of_copies(forest: Forest, data: st.DataObject) -> None:
    """However many equal copies of a function there are, each address has the answer of brute force.

    So it has where units claim a part of their code: what an uncertain one does not claim ranks last, what a certain
    one does not is not there (rules R9, R26, R27, R254, R255).
    """
    parents = np.array(forest.parents, np.int64)
    units = np.zeros(len(parents), np.int64)
    for node, parent in enumerate(forest.parents):
        units[node] = units[parent] if parent >= 0 else node % 3
    bounds = st.tuples(st.integers(0, SPACE), st.integers(0, SPACE), st.integers(0, 2)).filter(lambda b: b[0] < b[1])
    everything = [(0, SPACE, unit) for unit in range(3)]
    claimed = data.draw(st.one_of(st.just(everything), st.lists(bounds, max_size=4)))
    uncertain = data.draw(st.sets(st.integers(0, 2)))
    unknown: Gaps = []
    claims = claims_of_units(*claimed, uncertain=uncertain)
    starts, nodes, _ = segments_of(*columns(forest.ranges), parents, units, claims, unknown)
    held = [covered(claimed, unit) for unit in range(3)]
    pieces = claimed_pieces(forest, units, held, uncertain)
    ranks = []
    for begin, end, owner in pieces:
        is_outer = forest.parents[owner] < 0
        outside, uncovered = begin not in held[units[owner]], begin >= SPACE // 2
        ranks.append(2 * (end - begin) + (1000 * outside + uncovered) * is_outer)
    found = layer_at(starts, nodes, np.arange(SPACE + 1, dtype=np.uint64)).tolist()
    assert found == [winner_at(x, pieces, ranks, forest.parents) for x in range(SPACE + 1)]
    assert unknown == []


def claimed_pieces(forest: Forest, units: NDArray[np.int64], held: list[set[int]], uncertain: set[int]) -> list[Range]:
    """The merged ranges, those of functions cut at the claims of their units, and the others to those of parents."""
    pieces: list[list[tuple[int, int]]] = [[] for _ in forest.parents]
    for begin, end, owner in merged(forest.ranges):
        parent, unit = forest.parents[owner], int(units[owner])
        if parent >= 0:
            cut = [(max(begin, b), min(end, e)) for b, e in pieces[parent]]
            pieces[owner] += [(b, e) for b, e in cut if b < e]
            continue
        borders = [begin, *(x for x in range(begin + 1, end) if (x in held[unit]) != (x - 1 in held[unit])), end]
        pieces[owner] += [(b, e) for b, e in itertools.pairwise(borders) if b in held[unit] or unit in uncertain]
    return [(begin, end, owner) for owner, own in enumerate(pieces) for begin, end in own]


def claims_of_units(*claimed: Range, uncertain: Iterable[int] = ()) -> Claims:
    """Claims of three units: begin, end and unit of each."""
    begin, end, unit = columns(list(claimed))
    doubt = np.zeros(3, np.bool_)
    doubt[list(uncertain)] = True
    return Claims(begin, end, unit, doubt, Cover(begin[:0], end[:0], unit[:0], 3))


def segments_of(
    begin: NDArray[np.uint64],
    end: NDArray[np.uint64],
    owner: NDArray[np.int64],
    parents: NDArray[np.int64],
    units: NDArray[np.int64],
    claims: Claims,
    unknown: Gaps | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    """`function_segments`, of copies of the ranges."""
    ranges = (column.copy() for column in (begin, end, owner))
    gaps: Gaps = [] if unknown is None else unknown
    return function_segments(OwnedRanges(*ranges), parents, units, cast(LineRows, Uncovered()), claims, [], gaps)


class Uncovered:
    """Line programs that cover the first half of the addresses."""

    def cover(self, vaddrs: NDArray[np.uint64], units: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which addresses are covered."""
        return vaddrs < SPACE // 2


def test_sweep_up_to_the_top() -> None:
    """A range that ends at the last address is closed there."""
    top = (1 << 64) - 1
    columns = np.array([8], np.uint64), np.array([top], np.uint64), np.array([0]), np.array([0])
    starts, winners = disjoint(*columns, np.array([-1]))
    assert (starts.tolist(), winners.tolist()) == ([8, top], [0, -1])


def test_sweep_absurd_nesting() -> None:
    """More ranges over one address than any program has cost all answers there, nothing else (rule R254)."""
    count = 3000
    begin = np.arange(count, dtype=np.uint64)
    end = np.uint64(2 * count) - begin
    owner = np.arange(count)
    unknown: Gaps = []
    starts, winners = disjoint(begin, end, owner, owner[::-1].copy(), owner - 1, unknown)
    assert winners[:1024].tolist() == list(range(1024))
    assert winners[1024] == -1
    assert starts[1024:1026].tolist() == [1024, 2 * count - 1024]
    assert winners[1025:].tolist() == [*range(1023, -1, -1), -1]
    assert starts[-1] == 2 * count
    assert [(begin.tolist(), end.tolist()) for begin, end in unknown] == [([1024], [2 * count - 1024])]


def test_sweep_of_many_equal_functions() -> None:
    """Ranges that have ended make room for others, also below one that goes on."""
    count = 3000
    begin = np.arange(count, dtype=np.uint64)
    end = begin + np.uint64(8)
    end[0] = 2 * count
    rank = np.arange(count)[::-1].copy()
    rank[0] = -1  # on top all the time
    owner, parent, unknown = np.arange(count), np.full(count, -1), Gaps()
    starts, winners = disjoint(begin, end, owner, rank, parent, unknown)
    assert (starts.tolist(), winners.tolist(), unknown) == ([0, 2 * count], [0, -1], [])


@EXAMPLES
@given(st.data())
def test_lay_rows(data: st.DataObject) -> None:
    """Each address gets the row before it in the piece that covers it, a gap none (rules R31, R38)."""
    addresses: list[int] = []
    pieces: list[tuple[int, int, int, int]] = []
    position = 0
    for _ in range(data.draw(st.integers(0, 4))):
        begin = data.draw(st.integers(position, position + 3))
        end = data.draw(st.integers(begin + 1, begin + 6))
        own = sorted(data.draw(st.sets(st.integers(begin, end), min_size=1)) | {begin})
        pieces.append((begin, end, len(addresses), len(addresses) + len(own)))
        addresses += own
        position = end
    inputs = [np.array([piece[i] for piece in pieces], "u8" if i < 2 else "i8") for i in range(4)]
    inputs.append(np.array(addresses, np.uint64))
    nothing = memoryview(np.zeros(0, np.uint64)), memoryview(np.zeros(0, np.int64))
    everywhere = [*range(position + 2), (1 << 64) - 1]
    some = data.draw(st.none() | st.sets(st.sampled_from(everywhere)))
    asked = None if some is None else memoryview(np.array(sorted(some), np.uint64))
    count = lay_rows(*map(memoryview, inputs), *nothing, asked)
    starts, rows = np.zeros(count, np.uint64), np.zeros(count, np.int64)
    assert lay_rows(*map(memoryview, inputs), memoryview(starts), memoryview(rows), asked) == count
    for x in everywhere if some is None else some:
        place = int(np.searchsorted(starts, x, side="right")) - 1
        found = int(rows[place]) if place >= 0 else -1
        expected = -1
        for begin, end, first, last in pieces:
            if begin <= x < end:
                expected = max(k for k in range(first, last) if addresses[k] <= x)
        assert found == expected, x


@given(forests())
def test_inline_depths(forest: Forest) -> None:
    """The depth of a node is the number of functions around it (rule R30)."""
    expected: list[int] = []
    for parent in forest.parents:
        expected.append(0 if parent < 0 else expected[parent] + 1)
    depths = np.zeros(len(forest.parents), np.int64)
    assert inline_depths(*views(np.array(forest.parents, np.int64), depths)) == max(expected, default=0)
    assert depths.tolist() == expected


BOUNDS = st.tuples(st.integers(0, SPACE), st.integers(0, SPACE)).filter(lambda each: each[0] < each[1])


@EXAMPLES
@given(st.lists(BOUNDS, max_size=6), st.lists(BOUNDS, max_size=8), st.booleans())
def test_clip_to_code(code: list[tuple[int, int]], ranges: list[tuple[int, int]], at_the_top: bool) -> None:
    """Ranges that begin in code are kept, and end with the piece of it that they begin in."""
    base = (1 << 64) - SPACE - 1 if at_the_top else 0
    allowed = union(*(np.array([base + each[i] for each in code], np.uint64) for i in range(2)))
    pieces = [*zip(*(column.tolist() for column in allowed), strict=True)]
    begin, end = (np.array([base + each[i] for each in ranges], np.uint64) for i in range(2))
    expected = [
        (row, first, min(last, limit))
        for row, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True))
        for start, limit in pieces
        if start <= first < limit
    ]
    assert [*zip(*(column.tolist() for column in clip_to(begin, end, allowed)), strict=True)] == expected


@EXAMPLES
@given(
    forests(), st.lists(st.tuples(st.integers(0, SPACE), st.integers(-1, 7)), max_size=8), st.lists(BOUNDS, max_size=4)
)
def test_what_owners_have(forest: Forest, asked: list[tuple[int, int]], wanted: list[tuple[int, int]]) -> None:
    """An owner holds an address that is in one of its ranges; others are cut at the borders of these."""
    count = len(forest.parents)
    cover = Cover(*columns(forest.ranges), count)
    has = [
        {at for begin, end, owner in forest.ranges if owner == row for at in range(begin, end)} for row in range(count)
    ]
    asked = [(vaddr, min(owner, count - 1)) for vaddr, owner in asked]
    vaddrs, owners = (
        np.array([vaddr for vaddr, _ in asked], np.uint64),
        np.array([owner for _, owner in asked], np.int64),
    )
    assert cover.hold(vaddrs, owners).tolist() == [owner >= 0 and vaddr in has[owner] for vaddr, owner in asked]
    owner = np.arange(len(wanted), dtype=np.int64) % (count + 1) - 1
    begin, end = (np.array([each[i] for each in wanted], np.uint64) for i in range(2))
    pieces = cover.cut(begin, end, owner)
    rows = (
        []
        if pieces is None
        else [*zip(*(each.tolist() for each in (pieces.source, pieces.begin, pieces.end, pieces.inside)), strict=True)]
    )
    if pieces is None:
        rows = [(row, *each, True) for row, each in enumerate(wanted)]
    found = [(row, at, is_inside) for row, first, last, is_inside in rows for at in range(first, last)]
    expected = [
        (row, at, owner[row] < 0 or at in has[owner[row]]) for row, each in enumerate(wanted) for at in range(*each)
    ]
    assert found == expected
    assert all(first < last for _, first, last, _ in rows)


@EXAMPLES
@given(st.lists(st.tuples(st.integers(0, SPACE), st.integers(0, SPACE)), max_size=8), st.sets(st.integers(0, SPACE)))
def test_owners_of_addresses(ranges: list[tuple[int, int]], wanted: set[int]) -> None:
    """Those whose range holds one, or is empty and at one."""
    chosen = np.zeros(len(ranges), np.uint8)
    begin, end = (np.array([each[i] for each in ranges], np.uint64) for i in range(2))
    owned = RangeColumns(*views(begin, end, np.arange(len(ranges))))
    mark_owners(owned, *views(np.array(sorted(wanted), np.uint64), chosen))
    assert chosen.tolist() == [
        any(first <= at < last or at == first == last for at in wanted) for first, last in ranges
    ]
