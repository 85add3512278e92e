"""Totals by function and line, call trees, filters and differences, against plain Python over stacks of objects."""

import gzip
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolize.analysis import (
    CallTree,
    Filters,
    FrameFlag,
    call_tree,
    difference,
    function_totals,
    line_totals,
    stacks_of,
)
from symbolize.analysis.difference import note_on_extent
from symbolize.analysis.stacks import CELLS
from symbolize.analysis.totals import sums, totals_by_key
from symbolize.core.errors import InputError, UsageError
from symbolize.formats.pprof import reader as loader
from symbolize.profile import Profile, choose_sample_type
from tests.support.pprof_oracle import pprof
from tests.support.pprof_writer import Line, Mapping, Place, profile

MAPPINGS = [
    Mapping(0x1000, 0x9000, 0, "/bin/app", "ab" * 20),
    Mapping(0x10000, 0x20000, 0, "/lib/libc.so"),
    Mapping(0x30000, 0x40000, 0, "/[libc.so]"),
]
PLACES = [
    Place(0x1000, 1, (Line("inner", "a.c", 1), Line("outer", "a.c", 2))),
    Place(0x1010, 1, (Line("inner", "a.c", 5),)),
    Place(0x2000, 1, (Line("main", "b.c", 3),)),
    Place(0x2010, 2, (Line("main", "c.c", 3),)),
    Place(0x10010, 2),
    Place(0x10020, 2, (Line("", "", 0),)),
    Place(0x999999),
    Place(0x99999A, 0, (Line("<unknown>", "d.c", 1),)),
    Place(0x99999B, 0, (Line("after", "d.c", 1),)),
    Place(0x30010, 3),
    Place(0x30020, 3, (Line(r"bytes \xff", "", 0),)),
]
STACKS = st.lists(
    st.tuples(st.lists(st.sampled_from(PLACES), max_size=6), st.lists(st.integers(-9, 99), min_size=2, max_size=2)),
    max_size=12,
)
EXAMPLES = settings(deadline=None)
Stack = tuple[Sequence[Place], Sequence[int]]


def made(stacks: Sequence[Stack]) -> Profile:
    """A profile of these stacks, leaf first, with two sample types."""
    types = [("samples", "count"), ("cpu", "nanoseconds")]
    return loader.load(memoryview(profile(MAPPINGS, stacks, types=types)), "test")


def frames(place: Place) -> list[tuple[str, str, int]]:
    """Name, file and line of the frames of a place, innermost first."""
    module = {1: "[app]", 2: "[libc.so]", 3: "[libc.so]"}.get(place.mapping, "<unknown>")
    return [(line.name or module, line.file, line.line) for line in place.lines] or [(module, "", 0)]


def stack_frames(places: Sequence[Place], values: Sequence[int]) -> list[tuple[str, str, int]]:
    """The frames of a stack; a sample with a value and no stack has one that says so."""
    if not places and any(values):
        return [("[no stack]", "", 0)]
    return [frame for place in places for frame in frames(place)]


def flat_and_cumulative(
    stacks: Sequence[Stack], key: Callable[[tuple[str, str, int]], object]
) -> dict[object, tuple[int, int]]:
    """The sums of the second value by what `key` makes of frames; frames with the key None are left out."""
    flat: defaultdict[object, int] = defaultdict(int)
    cumulative: defaultdict[object, int] = defaultdict(int)
    for places, values in stacks:
        found = [key(frame) for frame in stack_frames(places, values)]
        if found:
            flat[found[0]] += values[1]
        for each in set(found):
            cumulative[each] += values[1]
    return {each: (flat[each], cumulative[each]) for each in cumulative if each is not None}


@EXAMPLES
@given(STACKS)
def test_functions(stacks: list[Stack]) -> None:
    """The value of a function is that of the stacks it is the leaf of, and once of each that it is on."""
    totals = function_totals(stacks_of(made(stacks)))
    rows = {row.name: (row.flat, row.cumulative) for row in totals.heaviest(1)}
    expected = flat_and_cumulative(stacks, lambda frame: frame[0])
    assert rows == {name: sums for name, sums in expected.items() if sums != (0, 0)}
    for by_total in (False, True):
        rows_ = totals.heaviest(1, by_total=by_total)
        order = [(-abs(row.cumulative if by_total else row.flat), row.name) for row in rows_]
        assert order == sorted(order)
        assert totals.heaviest(1, 2, by_total) == rows_[:2]


@EXAMPLES
@given(STACKS)
def test_lines(stacks: list[Stack]) -> None:
    """The value of a source line is that of the stacks it is the leaf of, and once of each that it is on."""
    lines = line_totals(stacks_of(made(stacks)))
    rows = zip(lines.file.tolist(), lines.line.tolist(), lines.flat[:, 1], lines.cumulative[:, 1], strict=True)
    found = {(lines.files[file], line): (flat, cumulative) for file, line, flat, cumulative in rows}
    expected = flat_and_cumulative(stacks, lambda frame: frame[1:] if frame[1] and frame[2] else None)
    assert {key: sums for key, sums in found.items() if any(sums)} == {
        key: sums for key, sums in expected.items() if any(sums)
    }


def paths(tree: CallTree) -> list[tuple[str, ...]]:
    """The names that lead to each node."""
    found: list[tuple[str, ...]] = [()]
    for parent, frame in zip(tree.parent.tolist()[1:], tree.frame.tolist()[1:], strict=True):
        found.append((*found[parent], tree.frames.names[frame]))
    return found


@EXAMPLES
@given(STACKS, st.booleans())
def test_tree(stacks: list[Stack], inverted: bool) -> None:
    """A node is what all stacks with the same callers share: its total is the sum of theirs."""
    tree = call_tree(stacks_of(made(stacks)), inverted=inverted)
    expected: defaultdict[tuple[str, ...], int] = defaultdict(int)
    for places, values in stacks:
        names = [frame[0] for frame in stack_frames(places, values)]
        path = names if inverted else names[::-1]
        for end in range(len(path) + 1):
            expected[tuple(path[:end])] += values[1]
    found: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for path_of, total in zip(paths(tree), tree.totals()[:, 1].tolist(), strict=True):
        found[path_of] += total  # functions of one name in two modules are two nodes
    assert dict(found) == (expected or {(): 0})
    assert all(parent < node for node, parent in enumerate(tree.parent.tolist()))


def test_flags() -> None:
    """A node says how its calls were resolved, also if these differ."""
    tree = call_tree(stacks_of(made([([PLACES[0]], [1, 1]), ([PLACES[1]], [1, 1]), ([PLACES[4]], [1, 1])])))
    flags = dict(zip(paths(tree)[1:], map(FrameFlag, tree.flags.tolist()[1:]), strict=True))
    assert flags == {
        ("outer",): FrameFlag.CALLED,
        ("outer", "inner"): FrameFlag.INLINED,
        ("inner",): FrameFlag.CALLED,
        ("[libc.so]",): FrameFlag.CALLED | FrameFlag.UNSYMBOLIZED,
    }


def kept(stacks: Sequence[Stack], filters: Filters) -> list[Stack]:
    """What filters leave, as pprof's documentation has it; the places hold the frames that are left."""

    def matches(pattern: str, place: Place, line: Line | None) -> bool:
        texts = [MAPPINGS[place.mapping - 1].file if place.mapping else ""]
        texts += [line.name, line.file] if line is not None else []
        return any(re.search(pattern, text) for text in texts if text)

    left = []
    for places, values in stacks:
        every = [(place, line) for place in places for line in (place.lines or (None,))]
        if filters.focus and not any(matches(filters.focus, *each) for each in every):
            continue
        if filters.ignore and any(matches(filters.ignore, *each) for each in every):
            continue
        seen = [
            (place, line)
            for place, line in every
            if not (filters.hide and matches(filters.hide, place, line))
            and not (filters.show and not matches(filters.show, place, line))
        ]
        if seen:
            parts = [Place(place.address, place.mapping, (line,) if line else ()) for place, line in seen]
            left.append((parts, values))
    return left


PATTERNS = st.sampled_from(["", "inner", "main", "a.c", "app", "libc", "nothing", "^o|^m"])


@EXAMPLES
@given(STACKS, st.builds(Filters, PATTERNS, PATTERNS, PATTERNS, PATTERNS))
def test_filters(stacks: list[Stack], filters: Filters) -> None:
    """Samples and frames are chosen as pprof does, by function, file and mapping."""
    totals = function_totals(stacks_of(made(stacks), filters))
    rows = {row.name: (row.flat, row.cumulative) for row in totals.heaviest(1)}
    expected = flat_and_cumulative(kept(stacks, filters), lambda frame: frame[0])
    assert rows == {name: sums for name, sums in expected.items() if sums != (0, 0)}


def test_invalid_filter() -> None:
    """An expression that is none is refused with its name."""
    with pytest.raises(UsageError, match=r"focus: '\(' is not a regular expression: missing \)"):
        stacks_of(made([]), Filters(focus="("))


@EXAMPLES
@given(STACKS, STACKS)
def test_difference(new: list[Stack], base: list[Stack]) -> None:
    """Both profiles are in one: each function, line and node has its values in either."""
    both = difference(stacks_of(made(new)), stacks_of(made(base)))
    totals = function_totals(both)
    for column, stacks in ((1, new), (3, base)):
        expected = flat_and_cumulative(stacks, lambda frame: frame[0])
        rows = {row.name: (row.flat, row.cumulative) for row in totals.heaviest(column)}
        assert rows == {name: sums for name, sums in expected.items() if sums != (0, 0)}
        assert both.totals[column] == sum(abs(values[1]) for _, values in stacks)
    assert call_tree(both).totals()[0].tolist()[1::2] == [sum(v[1] for _, v in each) for each in (new, base)]
    changes = [row.flat - row.base_flat for row in totals.most_changed(1, 3)]
    assert changes == sorted(changes, key=lambda change: -abs(change))


@pytest.mark.parametrize(
    ("new", "base", "rows"),
    [
        (["/new/a.c"], ["/old/a.c"], {("/new/a.c", 1, 1)}),
        (["/a.c", "/b.c"], ["/a.c"], {("/a.c", 1, 1), ("/b.c", 1, 0)}),
        (["/b.c"], ["/a.c", "/b.c"], {("/b.c", 1, 1), ("/a.c", 0, 1)}),
    ],
    ids=["other folder", "new has two", "base has two"],
)
def test_difference_of_files(new: list[str], base: list[str], rows: set[tuple[str, float, float]]) -> None:
    """A function is its name, whatever folder it was built in; one of several with that name is its file too."""
    profiles = (
        stacks_of(made([([Place(0x1000 + row, 1, (Line("f", file, 1),))], [0, 1]) for row, file in enumerate(files)]))
        for files in (new, base)
    )
    both = difference(*profiles)
    own = totals_by_key(both, both.frames, len(both.names))[0]
    assert {(file, *values) for file, values in zip(both.names.files, own[:, 1::2].tolist(), strict=True)} == rows


def test_normalized_difference() -> None:
    """The same program recorded for a fifth of the time has not changed: its values are scaled to the base's total."""
    first, second = [PLACES[2]], [PLACES[3]]
    base = stacks_of(made([(first, [30, 300]), (second, [10, 100])]))
    new = stacks_of(made([(first, [6, 60]), (second, [2, 20])]))
    plain, both = difference(new, base), difference(new, base, normalize=True)
    assert plain.totals.tolist() == [8, 80, 40, 400]
    assert both.totals.tolist() == [40, 400, 40, 400]
    assert all(
        row.flat == pytest.approx(row.base_flat) and row.cumulative == pytest.approx(row.base_cumulative)
        for row in function_totals(both).most_changed(1, 3)
    )
    third = stacks_of(made([(stack, [6, 7 * value]) for stack in (first, second) for value in (1, 3, 11)]))
    thirds = stacks_of(made([(stack, [6, 3 * value]) for stack in (first, second) for value in (1, 3, 11)]))
    assert not function_totals(difference(third, thirds, normalize=True)).most_changed(1, 3)
    nothing = difference(stacks_of(made([])), base, normalize=True)
    assert nothing.totals.tolist() == [0, 0, 40, 400]


@pytest.mark.needs("go")
def test_pprof_normalizes_the_same(tmp_path: Path) -> None:
    """By function the change is that of `-diff_base` with `-normalize`, which rounds the values of each sample."""
    ours, theirs = (
        [(PLACES[:3], [1, 3_000_000]), (PLACES[2:3], [2, 5_000_000]), (PLACES[8:9], [3, 1_000_000])],
        [(PLACES[1:3], [1, 70_000]), (PLACES[2:3], [2, 900_000])],
    )
    base, new = made(ours), made(theirs)
    types = [("samples", "count"), ("cpu", "nanoseconds")]
    base_file = tmp_path / "base.gz"
    base_file.write_bytes(gzip.compress(profile(MAPPINGS, ours, types=types)))
    command = [profile(MAPPINGS, theirs, types=types)], "-normalize", f"-diff_base={base_file}"
    found = function_totals(stacks_of(pprof(tmp_path, *command)))
    expected = {row.name: (row.flat, row.cumulative) for row in found.heaviest(1)}
    both = function_totals(difference(stacks_of(new), stacks_of(base), normalize=True)).most_changed(1, 3)
    changes = {row.name: (row.flat - row.base_flat, row.cumulative - row.base_cumulative) for row in both}
    assert expected == {name: pytest.approx(each, abs=2) for name, each in changes.items()}
    assert changes


@pytest.mark.parametrize(
    ("durations", "values", "text"),
    [
        ((10, 2), (100, 100), "the base was recorded for 10.00 s, the other profile for 2.00 s"),
        ((10, 10.4), (100, 105), ""),
        ((0, 2), (100, 105), ""),
        ((0, 0), (100, 106), "the base has a total of 100 ns, the other profile of 106 ns"),
        ((10, 10), (-1000, 2000), "the base has a total of 1.00 us, the other profile of 2.00 us"),
        ((0, 0), (0, 106), ""),
    ],
)
def test_unlike_extent(durations: tuple[float, float], values: tuple[int, int], text: str) -> None:
    """A note says where two profiles differ by more than 5 % in time or total."""
    base, new = (made([([PLACES[2]], [1, value])]) for value in values)
    for each, seconds in zip((base, new), durations, strict=True):
        each.duration_nanos = int(seconds * 1e9)
    assert note_on_extent(new, base) == text


def test_difference_of_other_types() -> None:
    """A base without the sample type that is shown is refused, with what both have."""
    heap = profile(MAPPINGS, [], types=[("space", "bytes")])
    base = stacks_of(loader.load(memoryview(heap), "base"))
    message = "the base has no sample type cpu/nanoseconds, only space/bytes; no sample type is in both"
    with pytest.raises(UsageError, match=message):
        difference(stacks_of(made([])), base)
    counts = profile(MAPPINGS, [], types=[("space", "bytes"), ("sample", "count")])
    base = stacks_of(loader.load(memoryview(counts), "base"))
    with pytest.raises(UsageError, match="choose a sample type that both have: samples"):
        difference(stacks_of(made([])), base)


def test_difference_of_common_types() -> None:
    """Sample types are paired by what they mean, whatever their order, and values get the finer unit."""
    stack = [PLACES[2]]
    types = [("alloc_space", "bytes"), ("inuse_space", "kb"), ("wall", "us")]
    new = loader.load(memoryview(profile(MAPPINGS, [(stack, [9, 3, 5])], types=types)), "new")
    types = [("wall", "nanoseconds"), ("space", "bytes"), ("cpu", "nanoseconds")]
    base = loader.load(memoryview(profile(MAPPINGS, [(stack, [400, 1000, 7])], types=types)), "base")
    both = difference(stacks_of(new), stacks_of(base))
    assert both.types == [("inuse_space", "bytes"), ("wall", "nanoseconds")]
    assert both.default == 1
    assert both.totals.tolist() == [3 * 1024, 5000, 1000, 400]
    (row,) = function_totals(both).most_changed(1, 3)
    assert (row.flat, row.base_flat) == (5000, 400)


def test_sample_type() -> None:
    """A sample type is chosen by name; a name that there is not is refused with those there are."""
    profile = made([([PLACES[2]], [3, 4])])
    stacks = stacks_of(profile)
    assert stacks.types[stacks.default] == ("cpu", "nanoseconds")
    choose_sample_type(profile, "samples")
    chosen = stacks_of(profile)
    assert chosen.types[chosen.default] == ("samples", "count")
    with pytest.raises(UsageError, match="no sample type is called 'wall'; the profile has samples, cpu"):
        choose_sample_type(profile, "wall")


def test_large_values() -> None:
    """Values beyond 2^53 lose their last digits, not their size, and sums do not wrap around."""
    totals = function_totals(stacks_of(made([([PLACES[2]], [1, 2**63 - 1])] * 3)))
    assert totals.heaviest(1)[0].flat == pytest.approx(3 * 2**63)


def test_no_samples() -> None:
    """A profile without samples, or without sample types, has no totals."""
    stacks = stacks_of(Profile())
    assert (len(stacks), [*function_totals(stacks).names], len(call_tree(stacks)), len(line_totals(stacks))) == (
        0,
        [],
        1,
        0,
    )
    assert np.array_equal(stacks.totals, [0])


@given(STACKS, STACKS)
def test_only_default(new: list[Stack], base: list[Stack]) -> None:
    """One sample type has the values that it has among all, also in a difference."""
    both = difference(stacks_of(made(new)), stacks_of(made(base)))
    alone = both.only_default()
    column = both.default
    assert (alone.types, alone.totals.tolist()) == ([both.types[column]], both.totals[column::2].tolist())
    every, one = function_totals(both), function_totals(alone)
    assert one.most_changed(0, 1) == every.most_changed(column, column + 2)
    assert call_tree(alone).totals().tolist() == call_tree(both).totals()[:, column::2].tolist()


@pytest.mark.parametrize("inverted", [False, True])
def test_too_large(inverted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few samples may have very many calls, if these are inlined: the tree is not grown beyond a limit."""
    deep = Place(0x3000, 1, tuple(Line(f"f{number}") for number in range(100)))
    samples = [([place, deep, place], [1, 1]) for place in PLACES]
    stacks = stacks_of(made(samples))
    monkeypatch.setattr("symbolize.analysis.stacks.CELLS", (150, 0, *CELLS[2:]))
    with pytest.raises(InputError, match=r"^profile: has too many different calls to show: [1-4]\d\d values or more"):
        call_tree(stacks, inverted=inverted)
    with pytest.raises(InputError, match=r"2[0-9]{2} values or more"):
        function_totals(stacks)
    assert len(function_totals(stacks.only_default()).names) > 100


@pytest.mark.parametrize("column", ["locations", "location_offsets", "frame_offsets", "keys", "groups", "values"])
def test_sums_check_what_they_get(column: str) -> None:
    """The loop checks no bounds, so rows that there are not are refused before it; so are groups of each location."""
    stacks = stacks_of(made([([PLACES[0], PLACES[2]], [1, 2]), ([PLACES[2]], [1, 3])]))
    values, keys = stacks.values[:, 1], stacks.frames
    groups = np.arange(len(stacks.frame_offsets) - 1, dtype=np.int32)
    found = sums(stacks, keys, len(stacks.names), values, groups)
    assert sorted(found.groups.tolist()) == [2, 5]
    assert sums(stacks, keys, len(stacks.names), values).groups.tolist() == [5]
    if column in ("keys", "groups", "values"):
        wrong = {"keys": keys + 100, "groups": groups - 1, "values": values[:1]}
        given = {"keys": keys, "groups": groups, "values": values} | {column: wrong[column]}
    else:
        stacks = replace(stacks, **{column: getattr(stacks, column) - 1})
        given = {"keys": keys, "groups": groups, "values": values}
    with pytest.raises(IndexError):
        sums(stacks, given["keys"], len(stacks.names), given["values"], given["groups"])


def test_long_paths() -> None:
    """A path that many functions have is in memory once, and only the end of one that no system has is shown."""
    path = "/x" * 5000 + "/a.c"
    places = [Place(0x1000 + number, 1, (Line(f"f{number}", path, 1),)) for number in range(2)]
    stacks = stacks_of(made([(places, [1, 1])]))
    first, second = stacks.names.files
    assert first is second
    assert (first, stacks.files) == (path[-4096:], ["", path[-4096:]])
