"""When samples were taken, and samples apart by it: what an address was may change while a process runs."""

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import (
    NONE,
    Int64,
    UInt64,
    distinct,
    distinct_inverse,
    first_of_runs,
    gather_lists,
    marked,
    offsets_of,
    pair,
    passed,
    ranges,
    unpair,
)
from symbolize.profile.attachments import SampleTimes
from symbolize.profile.model import Profile, Samples

MAX_COMPARED: Final = 1 << 26
"""Borders that are compared with the times of samples, for all samples."""
AT_ONCE: Final = 1 << 22
"""Borders and times that are compared at once."""
MAX_FRAMES: Final = 1 << 28
"""Frames on the stacks of samples that were taken apart."""

LARGEST: Final = (1 << 64) - 1


class Borders(NamedTuple):
    """At which times it changes what the locations `rows` are: of `rows[i]` at each of
    `times[offsets[i]:offsets[i + 1]]`, ascending."""

    rows: Int64
    offsets: Int64
    times: UInt64


def first_times(profile: Profile) -> UInt64:
    """When each sample of a profile was taken, the first time; 0 where that is not known."""
    found = np.full(len(profile.samples), LARGEST, np.uint64)
    if profile.sample_times is not None:
        np.minimum.at(found, profile.sample_times.sample, profile.sample_times.time)
    found[found == LARGEST] = 0
    return found


def location_times(profile: Profile) -> UInt64:
    """A time at which each location was on a stack, the first; 0 if that is not known for all samples that have it."""
    samples, times = profile.samples, profile.sample_times
    found = np.zeros(len(profile.locations), np.uint64)
    if times is None or not len(times):
        return found
    found += np.uint64(LARGEST)
    np.minimum.at(found, samples.locations, np.repeat(first_times(profile), np.diff(samples.location_offsets)))
    found[found == LARGEST] = 0
    return found


def take_apart(profile: Profile, borders: Borders) -> Int64:
    """Let no location have been on stacks both before and after one of its borders: which location each was.

    Samples are taken apart by the times at which they were counted; what of their values was counted at an unknown time
    stays together, and keeps its locations. The profile is changed. If there is too much to compare, the times are
    forgotten, and a warning says so.
    """
    every = np.arange(len(profile.locations))
    times, samples = profile.sample_times, profile.samples
    if times is None or not len(borders.rows):
        return every
    number = np.full(len(every), -1, np.int64)
    number[borders.rows] = np.arange(len(borders.rows))
    frames = np.flatnonzero(number[samples.locations] >= 0)
    sample_of = np.searchsorted(samples.location_offsets, frames, side="right") - 1
    # Each location once of each sample: the number of the location among those with borders.
    having = distinct(pair(sample_of, number[samples.locations[frames]]))
    owner, location = (each.astype(np.int64) for each in unpair(having))
    timed = np.flatnonzero(marked(owner, len(samples))[times.sample])
    if not len(timed):
        return every
    group = _groups(times, timed, borders, owner, location)
    if group is None:
        return _forgotten(profile, every)
    parts = _Parts(profile, times, timed, group)
    stacks = np.diff(samples.location_offsets)
    if int(stacks[parts.source].sum()) > MAX_FRAMES:
        return _forgotten(profile, every)
    profile.samples = parts.samples()
    if raw := profile.unknown.get("sample"):
        profile.unknown["sample"] = raw.taken(parts.source)
    profile.sample_times = replace(times, sample=parts.sample_of_row())
    return _with_locations(profile, borders, number, parts.time)


def _forgotten(profile: Profile, every: Int64) -> Int64:
    profile.sample_times = None
    profile.warnings.append(
        "Code that was compiled at run time was replaced too often to be told apart by the times of the samples."
    )
    return every


def _groups(times: SampleTimes, timed: Int64, borders: Borders, owner: Int64, location: Int64) -> Int64 | None:
    """For each of the rows `timed` a number that those of one sample share that lie between the same borders of all of
    its locations, ascending by sample and time; None if there is too much to compare.

    `owner` are samples, ascending, and `location` the locations with borders that they have.
    """
    counts = np.diff(borders.offsets)[location]
    order = np.lexsort((times.time[timed], times.sample[timed]))
    row_sample, row_time = times.sample[timed][order], times.time[timed][order]
    if int(counts.sum()) > MAX_COMPARED:
        return None
    # How many borders and rows the samples up to each one have.
    samples = distinct(owner)
    total = np.searchsorted(row_sample, samples, side="right")
    last = np.searchsorted(owner, samples, side="right")
    total += offsets_of(counts)[last]
    number = np.empty(len(timed), np.int64)
    begin = before = 0
    while begin < len(samples):
        end = max(int(np.searchsorted(total, (total[begin - 1] if begin else 0) + AT_ONCE)), begin + 1)
        pairs = slice(int(last[begin - 1]) if begin else 0, int(last[end - 1]))
        rows = slice(*np.searchsorted(row_sample, (samples[begin], samples[end - 1] + 1)).tolist())
        at = ranges(borders.offsets[location[pairs]], counts[pairs])
        border_sample = np.repeat(owner[pairs], counts[pairs])
        is_row = np.repeat((False, True), (len(at), rows.stop - rows.start))
        sample = np.concatenate((border_sample, row_sample[rows]))
        time = np.concatenate((borders.times[at], row_time[rows]))
        mixed = np.lexsort((is_row, time, sample))  # a border counts from its own time on
        count = np.cumsum(~is_row[mixed])[is_row[mixed]]
        new = first_of_runs(count) | first_of_runs(row_sample[rows])
        number[rows] = before + np.cumsum(new) - 1
        before += int(new.sum())
        begin = end
    group = np.empty(len(timed), np.int64)
    group[order] = number
    return group


class _Parts:
    """The samples of a profile, of which the rows `timed` of its times are taken out and made samples by `group`."""

    def __init__(self, profile: Profile, times: SampleTimes, timed: Int64, group: Int64) -> None:
        self._samples, self._times, self._timed, self._group = profile.samples, times, timed, group
        count = int(group.max()) + 1
        width = self._samples.values.shape[1]
        sums = np.zeros((count * width, 1), np.int64)
        for column, added in ((0, np.ones(len(timed), np.int64)), (1, times.value[timed])):
            at = group * width + times.column[timed] + column
            np.add.at(sums[:, 0], at, added)
        sums = sums.reshape(count, width)
        owner = np.zeros(count, np.int64)
        owner[group] = times.sample[timed]
        first = np.full(count, LARGEST, np.uint64)
        np.minimum.at(first, group, times.time[timed])
        rest = self._samples.values.copy()
        np.subtract.at(rest, owner, sums)
        kept = np.flatnonzero(~marked(owner, len(rest)) | rest.any(axis=1))
        self._count = count
        source = np.concatenate((owner, kept))
        order = np.argsort(source, kind="stable")  # parts, then what is left of their sample
        self.source: Int64 = source[order]
        self.time: UInt64 = np.concatenate((first, np.zeros(len(kept), np.uint64)))[order]
        """When the parts were taken; 0 of what is left."""
        self._values = np.concatenate((sums, rest[kept]))[order]
        self._rank = np.empty(len(order), np.int64)
        self._rank[order] = np.arange(len(order))
        self._kept = kept

    def samples(self) -> Samples:
        """All of them."""
        old, source = self._samples, self.source
        offsets = offsets_of(np.diff(old.location_offsets)[source])
        labels = np.diff(old.label_offsets)[source]
        return replace(
            old,
            location_offsets=offsets,
            locations=gather_lists(old.locations, old.location_offsets[:-1][source], offsets),
            values=self._values,
            label_offsets=offsets_of(labels),
            labels=old.labels.take(ranges(old.label_offsets[:-1][source], labels)),
        )

    def sample_of_row(self) -> Int64:
        """Which of them each row of the times is of."""
        place = np.zeros(len(self._samples), np.int64)
        place[self._kept] = self._rank[self._count :]
        found = place[self._times.sample]
        found[self._timed] = self._rank[self._group]
        return found


def _with_locations(profile: Profile, borders: Borders, number: Int64, time: UInt64) -> Int64:
    """Give stacks of samples that were taken at `time` (0: unknown) locations of their own for each time between two
    borders: which location each was."""
    samples, locations = profile.samples, profile.locations
    when = np.repeat(time, np.diff(samples.location_offsets))
    frames = np.flatnonzero((number[samples.locations] >= 0) & (when != 0))
    of, when = number[samples.locations[frames]], when[frames]
    parts, which = distinct_inverse(pair(of, passed(borders.offsets, borders.times, of, when)))
    owner = unpair(parts)[0]
    row = borders.rows[owner]
    stacks = samples.locations.copy()
    stacks[frames] = NONE
    # The first of a location is that itself, unless stacks of an unknown time have it.
    is_new = ~first_of_runs(owner) | marked(stacks, len(locations), stacks != NONE)[row]
    origin = np.concatenate((np.arange(len(locations)), row[is_new]))
    row[is_new] = np.arange(len(locations), len(origin))
    stacks[frames] = row[which].astype(stacks.dtype)
    profile.samples = replace(samples, locations=stacks)
    profile.locations = locations.take(origin)
    if raw := profile.unknown.get("location"):
        profile.unknown["location"] = raw.taken(origin)
    return origin
