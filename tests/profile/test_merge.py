"""Merging of samples and of profiles."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.arrays import offsets_of
from symbolize.profile import Labels, Locations, Profile, Samples, ValueType, combine
from tests.support.pprof_writer import by_row, raw_fields

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
        locations=Locations(np.arange(4, dtype=np.uint64)),
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


def test_samples_without_values() -> None:
    """Samples of a profile without sample types have no values to sum."""
    profile = made([(((1,), (), b""), [1, 2])] * 3)
    profile = replace(profile, samples=replace(profile.samples, values=np.zeros((3, 0), np.int64)))
    assert combine(profile).samples.values.shape == (1, 0)
