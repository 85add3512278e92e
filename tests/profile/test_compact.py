"""Compaction of profiles."""

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from symbolize.profile import Functions, Lines, Locations, Mappings, Profile, Samples, compact
from tests.support.pprof_writer import by_row, raw_fields


def make(stacks: list[list[int]], lines: list[list[int]], names: list[int], unknown: Any = None) -> Profile:
    """A profile of stacks of locations, of locations with lines, of functions with names."""

    def offsets(rows: list[list[int]]) -> Any:
        return np.cumsum([0, *map(len, rows)], dtype=np.int64)

    functions = Functions.zeros(len(names))
    functions.name = np.array(names, np.int32)
    line_table = Lines.zeros(sum(map(len, lines)))
    line_table.function = np.array([*itertools.chain(*lines)], np.int32)
    line_table.line = np.arange(len(line_table))
    return Profile(
        samples=Samples(
            location_offsets=offsets(stacks),
            locations=np.array([*itertools.chain(*stacks)], np.int32),
            values=np.ones((len(stacks), 1), np.int64),
            label_offsets=np.zeros(len(stacks) + 1, np.int64),
        ),
        mappings=Mappings.zeros(3),
        locations=Locations(
            address=np.arange(len(lines), dtype=np.uint64),
            mapping=np.zeros(len(lines), np.int32),
            is_folded=np.zeros(len(lines), np.bool_),
            line_offsets=offsets(lines),
            lines=line_table,
        ),
        functions=functions,
        unknown={table: raw_fields(fields) for table, fields in (unknown or {}).items()},
    )


def told(profile: Profile) -> list[Any]:
    """Every sample as the frames it shows."""
    out = []
    locations = profile.locations
    for first, last in itertools.pairwise(profile.samples.location_offsets):
        for row in profile.samples.locations[first:last]:
            lines = range(locations.line_offsets[row], locations.line_offsets[row + 1])
            out.append((locations.address[row], [(function_of(profile, n), locations.lines.line[n]) for n in lines]))
    return out


def function_of(profile: Profile, line: int) -> Any:
    """The name of the function of a line."""
    row = profile.locations.lines.function[line]
    return None if row < 0 else profile.functions.name[row]


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Any profile of the shape that `make` makes."""
    names = draw(st.lists(st.integers(0, 3), max_size=6))
    lines = draw(st.lists(st.lists(st.integers(-1, len(names) - 1), max_size=3), max_size=6))
    stack = st.lists(st.integers(0, len(lines) - 1), max_size=4) if lines else st.just([])
    return make(draw(st.lists(stack, max_size=5)), lines, names)


@given(profiles())
def test_samples_tell_the_same(profile: Profile) -> None:
    """Nothing a sample shows changes, nothing is left unused or doubled, and a second time changes nothing."""
    before = told(profile)
    small = compact(profile)
    assert told(profile) == before
    assert told(small) == before
    assert len(small.mappings) == 3
    assert set(small.samples.locations.tolist()) == set(range(len(small.locations)))
    functions = small.locations.lines.function
    assert set(functions[functions >= 0].tolist()) == set(range(len(small.functions)))
    assert len(set(small.functions.name.tolist())) == len(small.functions)
    again = compact(small)
    assert again.functions is small.functions
    assert again.samples is small.samples


def test_order_is_that_of_the_first() -> None:
    """Kept rows keep their order, of equal functions the first stays; unknown fields move with their rows."""
    unknown = {
        "location": {0: b"gone", 2: b"two"},
        "function": {3: b"new"},
        "profile": {0: b"all"},
        "sample": {0: b"s"},
    }
    small = compact(make([[2, 1]], [[0], [4, 2], [1, 3]], [9, 7, 5, 5, 7], unknown))
    assert small.locations.address.tolist() == [1, 2]
    assert small.samples.locations.tolist() == [1, 0]
    assert small.functions.name.tolist() == [7, 5, 5]
    assert small.locations.lines.function.tolist() == [0, 1, 0, 2]
    assert {table: by_row(raw) for table, raw in small.unknown.items()} == {
        "location": {1: b"two"},
        "function": {2: b"new"},
        "profile": {0: b"all"},
        "sample": {0: b"s"},
    }


def test_functions_that_differ_in_one_column_stay_apart() -> None:
    """Functions are one only when all of their columns agree."""
    for column in ("name", "system_name", "filename", "start_line"):
        profile = make([[0]], [[0, 1]], [1, 1])
        getattr(profile.functions, column)[1] = 7
        assert len(compact(profile).functions) == 2
