"""Samples that are taken apart by their times, against the plain way to do it."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from symbolize.core.arrays import offsets_of
from symbolize.profile import Profile, sample_times
from symbolize.profile.attachments import SampleTimes, TimeConversion
from symbolize.profile.combine import combine
from symbolize.profile.model import Labels, Locations, Samples, ValueType
from symbolize.profile.sample_times import Borders, location_times, take_apart

Taken = tuple[tuple[int, ...], int, int, int, int]
"""A sample: its stack, its label, its time (0: unknown), its column, its value."""


def made(rng: np.random.Generator, count: int) -> tuple[Profile, list[Taken]]:
    """A profile of two pairs of columns with random samples, which were counted one by one."""
    taken = [
        (
            tuple(rng.integers(0, 5, rng.integers(0, 4)).tolist()),
            int(rng.integers(1, 3)),
            int(rng.integers(0, 12)),
            2 * int(rng.integers(0, 2)),
            int(rng.integers(1, 9)),
        )
        for _ in range(count)
    ]
    keys = list(dict.fromkeys(each[:2] for each in taken))
    values = np.zeros((len(keys), 4), np.int64)
    for stack, label, _, column, value in taken:
        values[keys.index((stack, label)), column : column + 2] += 1, value
    labels = Labels.zeros(len(keys))
    labels.key[:] = 1
    labels.number[:] = [label for _, label in keys]
    timed = [each for each in taken if each[2]]
    profile = Profile(
        sample_types=[ValueType(1, 1)] * 4,
        samples=Samples(
            offsets_of([len(stack) for stack, _ in keys]),
            np.array([each for stack, _ in keys for each in stack], np.int32),
            values,
            np.arange(len(keys) + 1),
            labels,
        ),
        locations=Locations(
            np.arange(5, dtype=np.uint64), np.zeros(5, np.int32), np.zeros(5, np.bool_), np.zeros(6, np.int64)
        ),
        sample_times=SampleTimes(
            np.array([keys.index(each[:2]) for each in timed], np.int64),
            np.array([each[2] for each in timed], np.uint64),
            np.array([each[3] for each in timed], np.int32),
            np.array([each[4] for each in timed], np.int64),
        ),
    )
    return profile, taken


def spans(profile: Profile) -> list[tuple[tuple[int, int], ...]]:
    """The stack of each sample: the address of each location, and the time of it."""
    times, samples = location_times(profile), profile.samples
    items = [(int(profile.locations.address[row]), int(times[row])) for row in samples.locations.tolist()]
    edges = samples.location_offsets.tolist()
    return [tuple(items[begin:end]) for begin, end in pairwise(edges)]


@pytest.mark.parametrize("at_once", [1, 1 << 22])
def test_against_the_plain_way(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """No location is on both sides of one of its borders, and each value is where its sample was taken."""
    monkeypatch.setattr(sample_times, "AT_ONCE", at_once)
    rng = np.random.default_rng(5)
    for _ in range(60):
        profile, taken = made(rng, int(rng.integers(0, 25)))
        borders = {row: sorted(rng.integers(1, 13, 3).tolist()) for row in (1, 3)}

        def part(row: int, time: int, borders: dict[int, list[int]] = borders) -> int:
            return sum(border <= time for border in borders[row]) if row in borders and time else -1

        wanted: Counter[tuple[object, ...]] = Counter()
        for stack, label, time, column, value in taken:
            places = tuple((row, part(row, time)) for row in stack)
            wanted[places, label, column] += 1
            wanted[places, label, column + 1] += value
        origin = take_apart(
            profile,
            Borders(np.array([*borders]), offsets_of([3, 3]), np.array([*borders.values()], np.uint64).reshape(-1)),
        )
        assert profile.locations.address.tolist() == origin.tolist()
        found: Counter[tuple[object, ...]] = Counter()
        numbers, edges = profile.samples.labels.number.tolist(), profile.samples.label_offsets.tolist()
        for row, stack_of in enumerate(spans(profile)):
            assert edges[row + 1] - edges[row] == 1
            places = tuple((address, part(address, time)) for address, time in stack_of)
            for column, value in enumerate(profile.samples.values[row].tolist()):
                found[places, numbers[edges[row]], column] += value
        assert +found == +wanted
        times = profile.sample_times
        assert times is not None
        assert sorted(times.time.tolist()) == sorted(each[2] for each in taken if each[2])
        before = profile.samples
        again = take_apart(profile, Borders(np.array([1, 3]), offsets_of([0, 0]), np.zeros(0, np.uint64)))
        assert len(again) == len(origin)
        assert profile.samples.values.tolist() == before.values.tolist()


def test_equal_samples_are_one_again() -> None:
    """The times of samples that become one are those of this one."""
    profile, _ = made(np.random.default_rng(1), 20)
    samples = profile.samples
    doubled = Samples(
        offsets_of(np.tile(np.diff(samples.location_offsets), 2)),
        np.tile(samples.locations, 2),
        np.tile(samples.values, (2, 1)),
        np.arange(2 * len(samples) + 1),
        samples.labels.take(np.tile(np.arange(len(samples)), 2)),
    )
    profile.samples = doubled
    times = profile.sample_times
    assert times is not None
    times.sample += len(samples)
    combined = combine(profile)
    assert combined.sample_times is not None
    assert combined.sample_times.sample.tolist() == (times.sample - len(samples)).tolist()


@pytest.mark.parametrize("label", [1, 2])
def test_filtered(label: int) -> None:
    """Samples that filters leave keep their own times."""
    for seed in range(20):
        profile, taken = made(np.random.default_rng(seed), seed)
        profile.strings.add(b"n")  # which is the key of the labels
        left = profile.filter(tagfocus=f"n={label}")
        times, samples = left.sample_times, left.samples
        assert times is not None
        edges = samples.location_offsets.tolist()
        found = [
            (tuple(left.locations.address[samples.locations[edges[row] : edges[row + 1]]].tolist()), *each)
            for row, *each in zip(
                times.sample.tolist(), times.time.tolist(), times.column.tolist(), times.value.tolist(), strict=True
            )
        ]
        assert sorted(found) == sorted((stack, *rest) for stack, own, *rest in taken if own == label and rest[0])


@pytest.mark.parametrize("limit", ["MAX_COMPARED", "MAX_FRAMES"])
def test_too_much_to_compare(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Where there is too much to compare nothing is taken apart, nothing is known of times, and a warning says so."""
    profile, _ = made(np.random.default_rng(2), 20)
    monkeypatch.setattr(sample_times, limit, 1)
    before = profile.samples
    take_apart(profile, Borders(np.array([1]), offsets_of([2]), np.array([3, 7], np.uint64)))
    assert profile.samples is before
    assert not location_times(profile).any()
    assert len(profile.warnings) == 1


def test_counters_of_the_processor() -> None:
    """Values of the counter become times as perf_event.h has it; of a short counter the higher bits are known."""
    counts = np.array([0, 1, 1 << 40, (1 << 64) - 1], np.uint64)
    shift, multiplier, zero = 10, 789, 12345
    wanted = [
        (zero + (c >> shift) * multiplier + (((c & (1 << shift) - 1) * multiplier) >> shift)) % (1 << 64)
        for c in counts.tolist()
    ]
    assert TimeConversion(shift, multiplier, zero).times(counts).tolist() == wanted
    short = TimeConversion(0, 1, 0, cycles=0x1_0000_0010, mask=0xFFFF_FFFF)
    assert short.times(np.array([0x20, 0x5], np.uint64)).tolist() == [0x1_0000_0020, 0x2_0000_0005]
