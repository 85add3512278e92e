"""Packed ranges and chains of inlined functions against plain Python."""

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolize.core.arrays import views
from symbolize.symbols import range_table
from symbolize.symbols.range_table import (
    BLOCK_SIZE,
    DecodedNodes,
    InlineTree,
    LeafColumns,
    TableRanges,
    chain_nodes,
    encode,
    lookup,
    merge_layers,
)

TOP = (1 << 64) - 1
ADDRESSES = st.one_of(st.integers(0, 300), st.integers(0, TOP))
VALUES = st.one_of(st.integers(0, 20), st.integers(0, (1 << 32) - 1))
SMALL = st.one_of(st.integers(-1, 5), st.integers(-1, (1 << 31) - 2))
Range = tuple[int, int, int, int]
RANGES = st.dictionaries(ADDRESSES, st.tuples(SMALL, SMALL, VALUES, VALUES), max_size=3 * BLOCK_SIZE)


def packed(ranges: dict[int, Range]) -> list[np.ndarray]:
    """The block columns and bytes of ranges by start."""
    starts = np.array(sorted(ranges), np.uint64)
    columns = list(zip(*(ranges[start] for start in sorted(ranges)), strict=True)) or [()] * 4
    node, file = (np.array(column, np.int32) for column in columns[:2])
    line, column = (np.array(column, np.uint32) for column in columns[2:])
    return list(encode(starts, node, file, line, column))


def found(columns: list[np.ndarray], vaddrs: list[int]) -> list[Range]:
    """What seek finds at addresses."""
    leaves = [np.empty(len(vaddrs), kind) for kind in (np.int32, np.int32, np.uint32, np.uint32)]
    ranges = TableRanges(1 << 31, 1 << 31, *views(*columns))
    lookup(ranges, *views(np.array(vaddrs, np.uint64)), LeafColumns(*views(*leaves)))
    return list(zip(*(part.tolist() for part in leaves), strict=True))


@settings(deadline=None)
@given(RANGES, st.lists(ADDRESSES, max_size=40), st.booleans())
def test_what_is_packed_is_found(ranges: dict[int, Range], others: list[int], ascending: bool) -> None:
    """At every address stands what the range before it says, whatever the order of the questions."""
    starts = sorted(ranges)
    vaddrs = [*others, *starts, *(start - 1 for start in starts if start), *(min(start + 1, TOP) for start in starts)]
    vaddrs = sorted(vaddrs) if ascending else vaddrs
    nothing = (-1, -1, 0, 0)
    expected = []
    for vaddr in vaddrs:
        place = bisect_right(starts, vaddr) - 1
        there = ranges[starts[place]] if place >= 0 else nothing
        expected.append(there if there[0] >= 0 else nothing)
    assert found(packed(ranges), vaddrs) == expected


def test_neighbours_that_agree_are_one() -> None:
    """Equal neighbours take no room, and nor do gaps before the first range."""
    same = (3, 1, 10, 2)
    assert [a.tolist() for a in packed({0: (-1, 0, 5, 5), 5: same, 9: same, 12: same})] == [
        a.tolist() for a in packed({5: same})
    ]


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.integers(0, 60), st.integers(-1, 9), max_size=12), min_size=3, max_size=3))
def test_layers_are_cut_at_each_others_borders(layers: list[dict[int, int]]) -> None:
    """Each piece says what every layer says there."""
    columns = [
        (np.array(sorted(layer), np.uint64), np.array([layer[start] for start in sorted(layer)], np.int64))
        for layer in layers
    ]
    start, *merged = merge_layers(*columns)
    assert start.tolist() == sorted(set().union(*layers))
    for layer, values in zip(layers, merged, strict=True):
        known = sorted(layer)
        expected = [layer[known[bisect_right(known, at) - 1]] if known and known[0] <= at else -1 for at in start]
        assert values.tolist() == expected


@settings(deadline=None)
@given(st.data())
def test_chains_are_kept_and_each_node_once(data: st.DataObject) -> None:
    """Behind every range stands the decoder's chain with the outermost function of the range; equal nodes are one."""
    count = data.draw(st.integers(1, 12))
    parents = [data.draw(st.integers(-1, i - 1)) for i in range(count)]
    functions, files, lines, columns = ([data.draw(st.integers(0, 2)) for _ in range(count)] for _ in range(4))
    leaves = data.draw(st.lists(st.integers(-1, count - 1), max_size=20))
    outer = [data.draw(st.integers(-1 if leaf < 0 else 0, 2)) for leaf in leaves]

    def expected(leaf: int, outermost: int) -> list[tuple[int, ...]]:
        chain: list[tuple[int, ...]] = []
        while leaf >= 0 and parents[leaf] >= 0:
            chain.append((functions[leaf], files[leaf], lines[leaf], columns[leaf]))
            leaf = parents[leaf]
        return [*chain, (outermost, -1, 0, 0)] if outermost >= 0 else []

    node = np.empty(len(leaves), np.int32)
    calls = np.array(files, np.int32), np.array(lines, np.uint32), np.array(columns, np.uint32)
    nodes = DecodedNodes(*views(np.array(parents, np.int64), np.array(functions, np.int32), *calls))
    tree = InlineTree(100, 12345)
    chain_nodes(*views(np.array(leaves, np.int32), np.array(outer, np.int32)), nodes, tree, *views(node))
    made = [(tree.parent[i], tree.function[i], tree.file[i], tree.line[i], tree.column[i]) for i in range(tree.count)]
    assert len(set(made)) == len(made)
    for leaf, outermost, row in zip(leaves, outer, node.tolist(), strict=True):
        chain = []
        while row >= 0:
            chain.append(made[row][1:])
            assert made[row][0] < row
            row = made[row][0]
        assert chain == expected(leaf, outermost)


def test_a_tree_that_cannot_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exhausted memory ends the work; no range gets the row of another one."""
    count = 70_000
    outer, no_nodes = np.arange(count, dtype=np.int32), np.zeros(0, np.int32)
    nodes = DecodedNodes(*views(np.zeros(0, np.int64), no_nodes, no_nodes, *[np.zeros(0, np.uint32)] * 2))
    leaves, node = np.full(count, -1, np.int32), np.empty(count, np.int32)
    chain_nodes(*views(leaves, outer), nodes, InlineTree(count, 12345), *views(node))
    assert node.tolist() == outer.tolist()
    tree = InlineTree(count, 12345)

    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(range_table, "extended", exhausted)
    with pytest.raises(MemoryError):
        chain_nodes(*views(leaves, outer), nodes, tree, *views(node))


@pytest.mark.parametrize("count", [0, 1, BLOCK_SIZE, BLOCK_SIZE + 1, 5 * BLOCK_SIZE])
def test_block_borders(count: int) -> None:
    """Nothing is lost where a block ends."""
    ranges = {10 * i: (i, i % 7 - 1, 3 * i, i % 200) for i in range(count)}
    vaddrs = [10 * i + 9 for i in range(count)]
    assert found(packed(ranges), vaddrs) == list(ranges.values())
