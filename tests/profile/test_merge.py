"""Merging of samples and of profiles."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symbolize
from symbolize.core.arrays import offsets_of
from symbolize.core.errors import UsageError
from symbolize.formats import encode
from symbolize.formats.pprof.reader import load
from symbolize.profile import (
    AddressKind,
    IdOrigin,
    Labels,
    LeafKind,
    Locations,
    Merger,
    Profile,
    Samples,
    StackDumps,
    StackSource,
    ValueType,
    assign_mappings,
    choose_sample_type,
    combine,
    merged,
)
from symbolize.profile.attachments import Obfuscation, SampleTimes
from tests.support import pprof_writer
from tests.support.fixture_files import FIXTURES
from tests.support.pprof_oracle import pprof, summed
from tests.support.pprof_writer import Line, Mapping, Place, by_row, raw_fields

LARGEST, SMALLEST = 2**63 - 1, -(2**63)
NUMBERS = st.integers(-3, 3) | st.integers(SMALLEST, LARGEST)

Sample = tuple[tuple[int, ...], tuple[tuple[int, int, int, int], ...], bytes]
"""Stack, labels and unknown fields."""


@st.composite
def sampled(draw: st.DrawFn) -> list[tuple[Sample, list[int]]]:
    """Samples, many of them equal, with two values each."""
    label = st.tuples(st.integers(1, 2), st.integers(0, 1), st.sampled_from([0, -1, 2**40]), st.integers(0, 1))
    stack = st.lists(st.integers(0, 3), max_size=3).map(tuple)
    labels = st.just(()) | st.lists(label, max_size=3).map(tuple)
    few = draw(st.lists(st.tuples(stack, labels, st.sampled_from([b"", b"", b"x", b"yz"])), min_size=1, max_size=5))
    return draw(st.lists(st.tuples(st.sampled_from(few), st.lists(NUMBERS, min_size=2, max_size=2)), max_size=12))


def made(samples: list[tuple[Sample, list[int]]]) -> Profile:
    """A profile of samples."""
    labels = Labels.zeros(sum(len(sample[1]) for sample, _ in samples))
    rows = [label for sample, _ in samples for label in sample[1]]
    for column, name in enumerate(("key", "text", "number", "unit")):
        setattr(labels, name, np.array([row[column] for row in rows], getattr(labels, name).dtype))
    unknown = {row: sample[2] for row, (sample, _) in enumerate(samples) if sample[2]}
    return Profile(
        sample_types=[ValueType(), ValueType()],
        samples=Samples(
            offsets_of([len(sample[0]) for sample, _ in samples]),
            np.array([*itertools.chain(*(sample[0] for sample, _ in samples))], np.int32),
            np.array([values for _, values in samples], np.int64).reshape(-1, 2),
            offsets_of([len(sample[1]) for sample, _ in samples]),
            labels,
        ),
        locations=Locations(
            np.arange(4, dtype=np.uint64), np.full(4, -1, np.int32), np.zeros(4, np.bool_), np.zeros(5, np.int64)
        ),
        unknown={"sample": raw_fields(unknown)} if unknown else {},
        warnings=["before"],
    )


def read(profile: Profile) -> list[tuple[Sample, list[int]]]:
    """The samples of a profile, as `made` takes them."""
    samples, labels = profile.samples, profile.samples.labels
    unknown = by_row(profile.unknown["sample"]) if "sample" in profile.unknown else {}
    columns = [labels.key, labels.text, labels.number, labels.unit]
    rows = [tuple(row) for row in zip(*[column.tolist() for column in columns], strict=True)]
    found: Any = []
    for row in range(len(samples)):
        stack = samples.locations[samples.location_offsets[row] : samples.location_offsets[row + 1]]
        of_sample = rows[samples.label_offsets[row] : samples.label_offsets[row + 1]]
        sample = tuple(stack.tolist()), tuple(of_sample), unknown.get(row, b"")
        found.append((sample, samples.values[row].tolist()))
    return found


def by_key(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Labels as pprof compares them: by key, several of one key in their order."""
    return tuple(sorted(labels, key=lambda label: label[0]))


@given(sampled())
def test_equal_samples_are_one(samples: list[tuple[Sample, list[int]]]) -> None:
    """The samples are those of a dictionary, sums stop at the bounds of 64 bits, labels are those of the first."""
    sums: dict[Any, list[int]] = {}
    firsts: dict[Any, Sample] = {}
    exceeded = 0
    for sample, values in samples:
        key = sample[0], by_key(sample[1]), sample[2]
        firsts.setdefault(key, sample)
        known = sums.setdefault(key, [0, 0])
        for column, value in enumerate(values):
            total = known[column] + value
            known[column] = min(max(total, SMALLEST), LARGEST)
            exceeded += known[column] != total
    profile = made(samples)
    combined = combine(profile)
    assert read(combined) == [(firsts[key], values) for key, values in sums.items()]
    assert read(profile) == samples
    assert combined.warnings[:1] == profile.warnings == ["before"]
    assert combined.warnings[1:] == (
        [f"{exceeded} sums of values were too large and are the largest number instead"] if exceeded else []
    )
    assert combine(combined) is combined


def test_profiles_without_equal_samples_stay_as_they_are() -> None:
    """Nothing is copied where nothing is equal, nor where there is nothing."""
    for profile in (Profile(), made([(((1,), (), b""), [1, 2]), (((2,), (), b""), [1, 2])])):
        assert combine(profile) is profile


def test_samples_to_unwind_stay_apart() -> None:
    """Their callers are not known yet; copies of stacks stay with their samples."""
    profile = made([(((1,), (), b""), [1, 1])] * 4)
    profile.stack_dumps = StackDumps("x86-64", memoryview(b""), sample=np.array([1, 3]))
    combined = combine(profile)
    assert combined.samples.values.tolist() == [[2, 2], [1, 1], [1, 1]]
    assert combined.stack_dumps is not None
    assert combined.stack_dumps.sample.tolist() == [1, 2]
    whole = merged([profile])
    assert whole.stack_dumps is None
    assert whole.samples.values.tolist() == [[4, 4]]
    assert whole.warnings[1:] == ["2 stacks were not unwound before they were merged: they keep their leaf only"]


def test_samples_without_values() -> None:
    """Samples of a profile without sample types have no values to sum."""
    profile = made([(((1,), (), b""), [1, 2])] * 3)
    profile = replace(profile, samples=replace(profile.samples, values=np.zeros((3, 0), np.int64)))
    assert combine(profile).samples.values.shape == (1, 0)


# Profiles


EXE, LIBRARY = (
    Mapping(0x400000, 0x405000, 0, "/bin/app", "abcd"),
    Mapping(0x7F0000000000, 0x7F0000010000, 0, "/lib/x.so"),
)
MOVED = LIBRARY._replace(start=0x7E0000003000, limit=0x7E0000013000)


def loaded(*parts: Any, **more: Any) -> Profile:
    """A profile of mappings and stacks, as `pprof_writer` writes them."""
    return load(pprof_writer.profile(*parts, **more), "made")


def sum_of(*parts: dict[Any, list[int]]) -> dict[Any, list[int]]:
    """The values of several profiles by stack."""
    found: dict[Any, list[int]] = {}
    for part in parts:
        for key, values in part.items():
            found[key] = [a + b for a, b in zip(found.get(key, [0] * len(values)), values, strict=True)]
    return {key: values for key, values in found.items() if any(values)}


@st.composite
def mapped(draw: st.DrawFn) -> Profile:
    """A profile of one of two programs with a library, at any of some addresses, with and without names."""
    start = draw(st.sampled_from([0x7F0000000000, 0x7E0000003000, 0x7F0000001000]))
    library = LIBRARY._replace(start=start, limit=start + draw(st.sampled_from([0x10000, 0xFF01])))
    mappings = [EXE._replace(build_id=draw(st.sampled_from(["abcd", "ef01", ""]))), library]
    lines = draw(st.sampled_from([(), (Line("f", "f.c", 1),), (Line("g", "f.c", 2), Line("f", "f.c", 1))]))
    places = [
        Place(EXE.start + 0x10, 1, lines),
        Place(EXE.start + 0x20, 1, (Line("main", "m.c", 3),)),
        Place(start + 0x30, 2, lines),
        Place(start + 0x30, 0, lines),
        Place(0, 1, (Line("named", "", 0),)),
    ]
    stack = st.lists(st.sampled_from(places), max_size=3).map(tuple)
    stacks = draw(st.lists(st.tuples(stack, st.tuples(st.integers(0, 3), st.integers(0, 9))), max_size=5))
    return loaded(mappings, stacks, types=[("samples", "count"), ("cpu", "nanoseconds")])


@given(st.lists(mapped(), min_size=1, max_size=5))
def test_merged_stacks_are_those_of_all(profiles: list[Profile]) -> None:
    """Every stack has the sum of its values, wherever the library was in each; nothing is there twice."""
    whole = merged(profiles)
    for profile in profiles:  # an address that its profile's own mappings hold is in that mapping
        assign_mappings(profile)
    expected = sum_of(*map(summed, profiles))
    found = summed(whole)
    stand_in = {  # R346: what is in no mapping of its own is in none of another profile
        (tuple(frame if frame[0] else ("", "", *frame[2:]) for frame in stack), labels): values
        for (stack, labels), values in found.items()
    }
    assert stand_in == expected
    assert len(set(map(str, read(whole)))) == len(whole.samples)


def test_libraries_move_to_the_first_address() -> None:
    """A library that was elsewhere is one mapping, and its code one location (R345, merged mappings)."""
    profiles = [
        loaded([EXE, library], [((Place(library.start + 0x30, 2),), (7,))], default_type="samples")
        for library in (LIBRARY, MOVED)
    ]
    whole = merged(profiles)
    assert whole.locations.address.tolist() == [LIBRARY.start + 0x30]
    assert whole.mappings.start.tolist() == [EXE.start, LIBRARY.start]
    assert whole.samples.values.tolist() == [[14]]


@pytest.mark.parametrize("is_longer_first", [False, True])
def test_lengths_of_merged_libraries(is_longer_first: bool) -> None:
    """A mapping that ends elsewhere on its last page is the same, and the merged one is as long as the longest; a frame
    without an address stays one (R345, merged mappings)."""
    shorter = LIBRARY._replace(limit=LIBRARY.limit - 0x800)
    last = MOVED.limit - 0x10
    profiles = [
        loaded([EXE, shorter], [((Place(shorter.start + 0x30, 2),), (1,))]),
        loaded([EXE, MOVED], [((Place(last, 2), Place(0, 2, (Line("f"),))), (2,))]),
    ]
    whole = merged(profiles[::-1] if is_longer_first else profiles)
    base, start = (MOVED, shorter) if is_longer_first else (shorter, MOVED)
    assert whole.mappings.limit[1] - whole.mappings.start[1] == MOVED.limit - MOVED.start
    expected = {shorter.start + 0x30 - shorter.start + base.start, last - MOVED.start + base.start, 0}
    assert set(whole.locations.address.tolist()) == expected
    assert start.start not in whole.mappings.start.tolist()


def test_libraries_elsewhere_on_a_page_stay_apart() -> None:
    """Files are mapped by pages: what begins elsewhere on one is not moved (R345, merged mappings)."""
    other = MOVED._replace(start=MOVED.start + 0x800, limit=MOVED.limit + 0x800)
    places = [LIBRARY.start + 0x30, other.start + 0x30]
    whole = merged(
        loaded([EXE, each], [((Place(at, 2),), (7,))]) for each, at in zip((LIBRARY, other), places, strict=True)
    )
    assert whole.locations.address.tolist() == places


@pytest.mark.parametrize(
    "name", ["[vdso]", "//anon", "/memfd:jit (deleted)", "", "[kernel.kallsyms]", "/tmp/perf-7.map"]
)
def test_memory_of_processes_stays_apart(name: str) -> None:
    """What is at another address is other code where no file says that it is the same (R345, merged mappings)."""
    mappings = [LIBRARY._replace(file=name), MOVED._replace(file=name)]
    whole = merged(loaded([EXE, each], [((Place(each.start + 0x30, 2),), (7,))]) for each in mappings)
    assert whole.locations.address.tolist() == [each.start + 0x30 for each in mappings]
    assert whole.samples.values.tolist() == [[7], [7]]


def test_other_builds_stay_apart() -> None:
    """Overlapping mappings of different binaries keep their locations."""
    builds = [EXE, EXE._replace(build_id="ef01"), EXE._replace(file="/bin/other", build_id="")]
    whole = merged(loaded([each], [((Place(each.start + 0x30, 1),), (7,))]) for each in builds)
    assert whole.locations.address.tolist() == [EXE.start + 0x30] * 3
    assert whole.locations.mapping.tolist() == [0, 1, 2]


def test_builds_of_one_path_stay_apart() -> None:
    """Without build ids other names at one address show that the file is another (R349, builds of one path)."""
    names = [["f", "", "g"], ["f", "h", ""], ["x", "h", "y"], ["", "", ""], ["x", "", "y"], ["f", "h", "g"]]
    profiles = []
    for row, each in enumerate(names):
        start = LIBRARY.start + (row << 20)
        library = LIBRARY._replace(start=start, limit=start + 0x10000)
        places = [Place(start + 16 * n, 2, (Line(name),) if name else ()) for n, name in enumerate(each)]
        profiles.append(loaded([EXE, library], [(places, (1 << row,))]))
    for parts in (profiles, profiles[::-1]):
        whole = merged(parts)
        modules = [int(whole.locations.mapping[stack[0]]) for stack in np.split(whole.samples.locations, len(parts))]
        bits = {int(value): module for value, module in zip(whole.samples.values[:, 0], modules, strict=True)}
        builds = {frozenset(bit for bit, module in bits.items() if module == each) for each in modules}
        assert {frozenset({1, 2, 32}), frozenset({4, 16})} <= {build - {8} for build in builds}
        assert len(builds) == 2


def test_addresses_without_a_mapping_get_none_of_another_profile() -> None:
    """A later run would assign them; so they are in the stand-in for addresses outside mappings (R346)."""
    unmapped = loaded([EXE], [((Place(LIBRARY.start + 0x30, 0),), (7,))])
    whole = merged([unmapped, loaded([EXE, LIBRARY], [((Place(LIBRARY.start + 0x30, 2),), (7,))])])
    assert assign_mappings(whole) == 0
    first, second = whole.locations.mapping.tolist()
    assert whole.mappings.limit[first] == 2**64 - 1
    assert whole.strings.text(whole.mappings.filename[second]) == LIBRARY.file


def test_headers() -> None:
    """Earliest time, sum of durations, longest period, all comments once, the rest of the first that has it."""
    parts = []
    for number, (time, duration, period) in enumerate([(0, 5, 10), (30, 7, 100), (20, 0, 50)]):
        profile = loaded([EXE], [((Place(EXE.start, 1),), (1,))])
        strings = profile.strings
        profile.time_nanos, profile.duration_nanos, profile.period = time, duration, period
        profile.comments = strings.add_all([b"same", b"of %d" % number]).tolist()
        profile.doc_url = strings.add(b"doc" * number)
        profile.drop_frames = strings.add(b"drop%d" % number)
        profile.period_type = ValueType(*strings.add_all([b"cpu", b"ns"]).tolist())
        parts.append(profile)
    whole = merged(parts)
    assert (whole.time_nanos, whole.duration_nanos, whole.period) == (20, 12, 100)
    assert [whole.strings[row] for row in whole.comments] == [b"same", b"of 0", b"of 1", b"of 2"]
    assert (whole.strings[whole.doc_url], whole.strings[whole.drop_frames]) == (b"doc", b"drop0")


def test_headers_stay_within_64_bits() -> None:
    """Sums of durations, and periods in another unit, are the largest or smallest number instead."""
    parts = []
    for period, unit in ((2**62, b"hours"), (1, b"nanoseconds")):
        profile = loaded([EXE], [((Place(EXE.start, 1),), (1,))])
        profile.duration_nanos, profile.period = SMALLEST, period
        profile.period_type = ValueType(*profile.strings.add_all([b"cpu", unit]).tolist())
        parts.append(profile)
    whole = load(encode(merged(parts)), "merged")
    assert (whole.duration_nanos, whole.period) == (SMALLEST, LARGEST)


def whole_of(profile: Profile) -> tuple[Any, ...]:
    """What a merge has to keep whatever the order: stacks with their values, and the header."""
    comments = frozenset(profile.strings[row] for row in profile.comments)
    return summed(profile), profile.duration_nanos, profile.period, comments


@given(mapped(), mapped(), mapped())
def test_merging_in_any_grouping(first: Profile, second: Profile, third: Profile) -> None:
    """Parts may be merged before, one profile gives itself, and the totals are those of all."""
    for number, profile in enumerate((first, second, third)):
        profile.duration_nanos, profile.period = number, 10 * number
        profile.comments = [profile.strings.add(b"of %d" % number)]
    whole = merged([first, second, third])
    assert whole_of(merged([merged([first, second]), third])) == whole_of(whole)
    assert whole_of(merged([first, merged([second, third])])) == whole_of(whole)
    assert whole_of(merged([whole])) == whole_of(whole)
    totals = sum(each.samples.values.sum(axis=0) for each in (first, second, third))
    assert whole.samples.values.sum(axis=0).tolist() == np.asarray(totals).tolist()
    again = merged([whole])
    assert (len(again.samples), len(again.locations), len(again.mappings)) == (
        len(whole.samples),
        len(whole.locations),
        len(whole.mappings),
    )
    assert encode(merged([again])) == encode(again)


@given(mapped(), mapped())
def test_merging_in_any_order(first: Profile, second: Profile) -> None:
    """The other order gives the same stacks and values; only code without a file may be in another stand-in."""
    assert whole_of(merged([second, first])) == whole_of(merged([first, second]))


def test_inputs_are_not_overwritten(tmp_path: Path) -> None:
    """A merged profile knows where it is from (R278, inputs are kept)."""
    paths = [tmp_path / name for name in ("a.pb", "b.pb")]
    for path in paths:
        path.write_bytes(pprof_writer.profile([EXE], [((Place(EXE.start, 1),), (1,))]))
    whole = merged(map(symbolize.load, paths))
    assert whole.inputs == tuple(map(str, paths))
    assert merged([merged([whole]), symbolize.load(paths[0])]).inputs == whole.inputs
    with pytest.raises(UsageError, match="never overwritten"):
        symbolize.write(whole, paths[1])


def test_unlike_types() -> None:
    """They are refused with both profiles and types, or kept side by side."""
    place = ((Place(EXE.start, 1),), (3,))
    cpu, heap = loaded([EXE], [place], types=[("cpu", "ms")]), loaded([EXE], [place], types=[("space", "bytes")])
    cpu.source = "cpu.pb"
    with pytest.raises(UsageError, match=r"profile 2 has .* space/bytes, and cpu.pb has cpu/ms"):
        merged([cpu, heap])
    whole = merged([cpu, heap], side_by_side=True)
    assert whole.samples.values.tolist() == [[3, 3]]
    assert whole.strings[whole.default_sample_type] == b"cpu"
    with pytest.raises(UsageError, match="no profiles"):
        merged([])


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_common_types(order: tuple[int, int, int]) -> None:
    """The result has the sample types that all have, by what they mean; a warning names the others."""
    place = (Place(EXE.start, 1),)
    profiles = [
        loaded([EXE], [(place, (3, 300))], types=[("objects", "count"), ("space", "bytes")]),
        loaded(
            [EXE],
            [(place, (9, 900, 4, 500))],
            types=[
                ("alloc_objects", "count"),
                ("alloc_space", "bytes"),
                ("inuse_objects", "count"),
                ("inuse_space", "b"),
            ],
        ),
        loaded([EXE], [(place, (2, 1))], types=[("inuse_space", "kb"), ("page", "count")]),
    ]
    whole = merged(profiles[row] for row in order)
    assert whole.samples.values.tolist() == [[300 + 500 + 2 * 1024]]
    (warning,) = whole.warnings
    for name in ("objects/count", "alloc_space/bytes", "page/count"):
        assert name in warning
    assert "inuse_space" not in warning


def test_default_of_common_types() -> None:
    """A default that is left out is none; one that only a later profile has counts."""
    place = (Place(EXE.start, 1),)
    first = loaded([EXE], [(place, (1, 2, 3))], types=[("a", "count"), ("b", "count"), ("c", "count")])
    second = loaded([EXE], [(place, (1, 2))], types=[("a", "count"), ("b", "count")])
    first.default_sample_type = first.sample_types[2].type
    assert merged([first, second]).default_sample_type == 0
    second.default_sample_type = second.sample_types[0].type
    whole = merged([first, second])
    assert whole.strings[whole.default_sample_type] == b"a"


def test_units() -> None:
    """Values in other units of time or size get the finer one, as in pprof; order and a final s make no difference."""
    place = Place(EXE.start, 1)
    first = loaded([EXE], [((place,), (3, 5))], types=[("samples", "count"), ("cpu", "milliseconds")])
    second = loaded([EXE], [((place,), (7, 2))], types=[("cpu", "microseconds"), ("sample", "count")])
    whole = merged([first, second])
    assert whole.samples.values.tolist() == [[5, 5007]]
    assert [whole.strings[each.unit] for each in whole.sample_types] == [b"count", b"microseconds"]
    huge = loaded([EXE], [((place,), (1, 2**60))], types=[("samples", "count"), ("cpu", "milliseconds")])
    whole = merged([huge, second])
    assert whole.samples.values.tolist() == [[3, LARGEST]]
    assert set(whole.warnings) == {"1 sums of values were too large and are the largest number instead"}


def test_what_is_not_written() -> None:
    """Kinds of addresses, modules and obfuscated names stay with their mappings."""
    plain, kernel = (loaded([EXE], [((Place(EXE.start, 1), Place(0x10, 0)), (1,))]) for _ in range(2))
    kernel.address_kinds = np.array([AddressKind.KERNEL], np.uint8)
    kernel.obfuscation = Obfuscation(["names"], [(0,), (0,)])  # type: ignore[list-item]
    whole = merged([plain, kernel, plain])
    assert whole.address_kinds.tolist() == [AddressKind.PROCESS, AddressKind.KERNEL]
    assert whole.samples.values.tolist() == [[2], [1]]
    assert whole.obfuscation is not None
    assert list(whole.obfuscation.applies) == [(), (0,), ()]


CLAIMS = [IdOrigin.READ_LATER, IdOrigin.UNKNOWN, IdOrigin.RECORDED]
"""From the weakest to the strongest."""


@st.composite
def with_claims(draw: st.DrawFn) -> Profile:
    """A profile of up to four mappings with build ids, some of them equal, whose claims are given or not, and of up to
    two sample types."""
    files = draw(st.lists(st.integers(0, 2), min_size=1, max_size=4))
    mappings = [EXE._replace(start=0x10000 * (row + 1), build_id=f"{file}a") for row, file in enumerate(files)]
    mappings = [each._replace(limit=each.start + 0x1000) for each in mappings]
    types = draw(st.permutations([("cpu", "count"), ("wall", "count")]))[: draw(st.integers(1, 2))]
    samples = [((Place(each.start + 1, row + 1),), (1,) * len(types)) for row, each in enumerate(mappings)]
    profile = loaded(mappings, samples, types=types)
    if draw(st.booleans()):
        profile.id_origins = np.array([draw(st.sampled_from(CLAIMS)) for _ in mappings], np.uint8)
    if draw(st.booleans()):
        profile.leaf_kinds = np.array([draw(st.sampled_from(LeafKind)) for _ in types], np.uint8)
    profile.stack_source = draw(st.sampled_from(StackSource))
    return profile


@given(st.lists(with_claims(), min_size=1, max_size=4))
def test_the_weaker_claim_wins(profiles: list[Profile]) -> None:
    """Of equal mappings, of sample types and of profiles the merged one claims what the weakest of them does."""
    origins: dict[bytes, set[IdOrigin]] = {}
    kinds: dict[bytes, set[LeafKind]] = {}
    for each in profiles:
        for row, build_id in enumerate(each.mappings.build_id.tolist()):
            origins.setdefault(each.strings[build_id], set()).add(each.id_origin(row))
        for column, (name, _) in enumerate(each.sample_types):
            kinds.setdefault(each.strings[name], set()).add(each.leaf_kind(column))
    whole = merged(profiles, side_by_side=True)
    assert len(whole.id_origins) in (0, len(whole.mappings))
    for row, build_id in enumerate(whole.mappings.build_id.tolist()):
        assert whole.id_origin(row) == next(each for each in CLAIMS if each in origins[whole.strings[build_id]])
    for column, (name, _) in enumerate(whole.sample_types):
        assert {whole.leaf_kind(column)} == only(kinds[whole.strings[name]], LeafKind.UNKNOWN)
    sources = {each.stack_source for each in profiles}
    weakest = {StackSource.FRAME_POINTERS} & sources
    assert {whole.stack_source} == (weakest or only(sources, StackSource.UNKNOWN))


def only(found: set[Any], otherwise: Any) -> set[Any]:
    """What was found if it is one thing."""
    return found if len(found) == 1 else {otherwise}


def test_a_chosen_type_keeps_its_leaves() -> None:
    """What the leaves of a sample type are goes where its values go."""
    types = [("a", "count"), ("b", "count"), ("a", "bytes"), ("c", "count")]
    profile = loaded([EXE], [((Place(EXE.start, 1),), (1, 2, 3, 4))], types=types)
    profile.leaf_kinds = np.array([0, 0, LeafKind.EXACT, LeafKind.CALL_SITE], np.uint8)
    one = np.ones(1, np.int64)
    profile.sample_times = SampleTimes(0 * one, one.astype(np.uint64), one.astype(np.int32), one)
    choose_sample_type(profile, "b")
    assert profile.sample_times is not None
    choose_sample_type(profile, "2")
    assert profile.sample_times is None  # it says in which columns samples were counted
    assert profile.samples.values.tolist() == [[3, 1, 2, 4]]
    assert profile.leaf_kinds.tolist() == [LeafKind.EXACT, 0, 0, LeafKind.CALL_SITE]


def test_unknown_fields_stay_with_their_rows() -> None:
    """Rows that differ in fields of a newer schema are not one; those of the profile are kept once."""
    parts = [loaded([EXE], [((Place(EXE.start, 1, (Line("f"),)),), (1,))]) for _ in range(3)]
    for number, part in enumerate(parts):
        data = b"\xf8\x01%c" % (number % 2)
        part.unknown = {table: raw_fields({0: data}) for table in ("mapping", "location", "function", "sample")}
        part.unknown["profile"] = raw_fields({0: b"\xf8\x01\x07"})
    whole = merged(parts)
    assert whole.samples.values.tolist() == [[2], [1]]
    assert len(whole.mappings) == len(whole.locations) == len(whole.functions) == 2
    for table in ("mapping", "location", "function", "sample"):
        assert by_row(whole.unknown[table]) == {0: b"\xf8\x01\x00", 1: b"\xf8\x01\x01"}
    assert by_row(whole.unknown["profile"]) == {0: b"\xf8\x01\x07"}


def test_sample_types_are_chosen_as_in_pprof() -> None:
    """By name, also with inuse_ before it, or by number; of two with one name the second can be chosen by number."""
    types = [("space", "bytes"), ("objects", "count"), ("space", "count")]
    for name, expected in (("inuse_space", 1), ("objects", 2), ("0", 1), ("2", 3)):
        profile = loaded([EXE], [((Place(EXE.start, 1),), (1, 2, 3))], types=types)
        choose_sample_type(profile, name)
        assert profile.samples.values[0, profile.weight_column()] == expected
        again = load(encode(profile), "again")
        assert again.samples.values[0, again.weight_column()] == expected
    profile = loaded([EXE], [((Place(EXE.start, 1),), (1, 2, 0))], types=types)
    assert profile.weight_column() == 1  # the last one that has values
    choose_sample_type(profile, "2")
    assert profile.samples.values[0, profile.weight_column()] == 0
    profile = loaded([EXE], [((Place(EXE.start, 1),), (1, 2, 3))], types=types)
    for name in ("3", "inuse_", "", "9" * 5000):
        with pytest.raises(UsageError, match="the profile has space, objects, space"):
            choose_sample_type(profile, name)


def test_many_profiles_take_the_memory_of_their_merge() -> None:
    """Parts are merged as they come, each few times."""
    merger = Merger()
    for number in range(64):
        merger.add(loaded([EXE], [((Place(EXE.start + number % 4, 1),), (1,))]))
        assert len(merger._parts) <= 7
    assert merger.result().samples.values.tolist() == [[16]] * 4


@pytest.mark.needs("go")
@pytest.mark.parametrize(
    "names",
    [
        ["gperftools/ledger-gcc-pie.prof", "gperftools/ledger-gcc-split.prof", "gperftools/ledger-gcc-pie.prof"],
        ["gperftools/spectra-clang-pie.prof", "gperftools/ledger-clang-pie.prof"],
        ["go/census.pb.gz", "go/census-unnamed.pb.gz"],
    ],
)
def test_pprof_merges_the_same(names: list[str], tmp_path: Path) -> None:
    """Stacks and values are those that pprof writes for the same files."""
    paths = [FIXTURES / "profiles" / name for name in names]
    theirs, ours = pprof(tmp_path, [path.read_bytes() for path in paths]), merged(map(symbolize.load, paths))
    assert summed(ours) == summed(theirs)
    assert (ours.time_nanos, ours.duration_nanos, ours.period) == (
        theirs.time_nanos,
        theirs.duration_nanos,
        theirs.period,
    )
