"""The samples of a profile as stacks of shown frames."""

from dataclasses import replace
from typing import Final

import numpy as np

from symbolize.analysis.filters import Filters, selected
from symbolize.analysis.frames import MAX_PATH, FrameNames, shown_frames
from symbolize.analysis.units import quantity
from symbolize.core.arrays import (
    AT_ONCE,
    Float64,
    Int32,
    Int64,
    UInt8,
    gather_lists,
    marked,
    offsets_of,
    ranges,
    taken,
)
from symbolize.core.budget import Budget, Limit
from symbolize.core.records import record
from symbolize.profile import NONE, Profile

CELLS: Final = (1 << 20, 32, "has too many different calls to show: {spent:,} values or more", 1 << 25)
"""The values of a table or call tree. A small input can have far more: every sample may call the same code, in which
very many calls are inlined. A value takes some 60 bytes."""

STEPS: Final = (
    1 << 24,
    64,
    "has too many frames to walk over: {spent:,} or more, once for each sample type",
)
"""Frames on all stacks, for each sample type."""

LETTERS: Final = (
    1 << 26,
    1024,
    "repeats names in {spent:,} letters or more, which is too much to show; a pprof file (.pb.gz) has each name once",
    1 << 32,
)
"""Letters of names that an output repeats."""


@record(frozen=True)
class Stacks:
    """Stacks of frames with their values, as two layers of CSR: a stack has locations, a location has frames.

    Stacks run from the leaf to the root, frames of a location from the innermost to the outermost. `frames` are rows of
    `names`, `flags` their `FrameFlag`s; `sources` and `lines` are file (a row of `files`) and line of each, 0 where
    unknown. `values` is float64[n, k], exact to 2^53, with a column for each sample type (`types`: name and unit);
    `default` is the column that a viewer shows first. There is at least one. `totals` has the sum of each column over
    all samples of the profile, without their signs: percentages are of that, also where filters leave less, as pprof
    has it. `profile` has their samples and locations, in the same order: what filters leave of one.
    """

    names: FrameNames
    frame_offsets: Int64
    frames: Int32
    flags: UInt8
    files: list[str]
    sources: Int32
    lines: Int64
    location_offsets: Int64
    locations: Int32
    values: Float64
    types: list[tuple[str, str]]
    default: int
    totals: Float64
    profile: Profile

    def __len__(self) -> int:
        return len(self.location_offsets) - 1

    def location_of_frames(self) -> Int64:
        """The location of each frame: int64[m]."""
        return np.repeat(np.arange(len(self.frame_offsets) - 1), np.diff(self.frame_offsets))

    def only_default(self) -> "Stacks":
        """The same with the default sample type alone; of a difference, in both profiles."""
        columns = slice(self.default, None, len(self.types))
        types = [self.types[self.default]]
        return replace(self, values=self.values[:, columns], totals=self.totals[columns], types=types, default=0)

    def taken(self, rows: Int64) -> tuple["Stacks", Int64]:
        """The stacks at `rows` with the locations that they have, and which locations these are."""
        sizes = np.diff(self.location_offsets)[rows]
        offsets = offsets_of(sizes)
        locations = gather_lists(self.locations, self.location_offsets[rows], offsets)
        used = np.flatnonzero(marked(locations, len(self.frame_offsets) - 1))
        number = np.zeros(len(self.frame_offsets) - 1, np.int32)
        number[used] = np.arange(len(used))
        counts = np.diff(self.frame_offsets)[used]
        frames = ranges(self.frame_offsets[used], counts)
        stacks = replace(
            self,
            frame_offsets=offsets_of(counts),
            frames=self.frames[frames],
            flags=self.flags[frames],
            sources=self.sources[frames],
            lines=self.lines[frames],
            location_offsets=offsets,
            locations=taken(number, locations),
            values=self.values[rows],
        )
        return stacks, used

    def has_negative(self) -> bool:
        """Whether values are below 0, as in differences of heap profiles."""
        return bool((self.values < 0).any())

    def net(self, column: int) -> str:
        """The sum of a column with the signs of its values, in brackets; empty if none is negative."""
        values = self.values[:, column]
        unit = self.types[column % len(self.types)][1]
        return f" (net {quantity(float(values.sum()), unit)})" if (values < 0).any() else ""

    def budget(self, limit: Limit) -> Budget:
        """How much may be made of the stacks, by their places, frames and values (R276, size of tables)."""
        return Budget(
            self.profile.source or "profile", len(self.locations) + len(self.frames) + self.values.size, *limit
        )

    def most_rows(self) -> int:
        """As many rows as a table with the values of all sample types may have, and one more."""
        return self.budget(CELLS).limit // max(int(self.values.shape[1]), 1) + 1

    def check_size(self, rows: int) -> None:
        """Raise InputError for a table of so many rows with the values of all sample types that is too large."""
        self.budget(CELLS).spend(rows * self.values.shape[1])

    def check_names(self) -> None:
        """Raise InputError where a table of all frames has too many letters: code of many modules may have one name."""
        texts = (self.names.names, self.names.files, self.names.modules)
        self.budget(LETTERS).spend(sum(int(each.lengths().sum()) for each in texts))

    def check_steps(self, types: int | Int64) -> None:
        """Raise InputError where there are too many frames on the stacks to walk over those of each sample for so many
        sample types."""
        budget, frames, types = self.budget(STEPS), np.diff(self.frame_offsets), np.broadcast_to(types, len(self))
        if int(frames.max(initial=0)) * int(types.max(initial=0)) * len(self.locations) <= budget.limit:
            return
        for first in range(0, len(self.locations), AT_ONCE):
            locations = self.locations[first : first + AT_ONCE]
            samples = np.searchsorted(self.location_offsets, first + np.arange(len(locations)), side="right") - 1
            budget.spend(int((frames[locations] * types[samples]).sum()))


def stacks_of(profile: Profile, filters: Filters | None = None, *, has_lines: bool = True) -> Stacks:
    """The stacks of `profile`, those that `filters` leave. Without `has_lines` source files and lines are left unknown,
    and functions of one name in several files are one frame.

    Samples without a stack have the frame NO_STACK, of one more location than `profile` has."""
    totals = np.abs(profile.samples.values.astype(np.float64)).sum(axis=0)
    column = max(profile.weight_column(), 0)  # whatever the filters leave
    if filters is not None:
        profile = selected(profile, filters)
    samples, strings = profile.samples, profile.strings
    location_offsets, locations = located(profile)
    has_no_stack = len(locations) > len(samples.locations)
    shown = shown_frames(profile, has_files=has_lines, has_no_stack=has_no_stack)
    files, sources, lines = source_lines(profile, shown.lines) if has_lines else ([""], *no_lines(len(shown.lines)))
    types = [(strings.text(each.type), strings.text(each.unit)) for each in profile.sample_types]
    values = samples.values.astype(np.float64)
    if not types:  # only a profile without samples has none
        types, values, totals = [("samples", "count")], np.zeros((len(samples), 1)), np.zeros(1)
    stacks = Stacks(
        shown.names,
        shown.offsets,
        shown.frames,
        shown.flags,
        files,
        sources,
        lines,
        location_offsets,
        locations,
        values,
        types,
        column,
        totals,
        profile,
    )
    stacks.check_steps(1)
    return stacks


def located(profile: Profile) -> tuple[Int64, Int32]:
    """The locations of each sample as CSR; samples that have values and no stack have one behind those of `profile`."""
    offsets, locations = profile.samples.location_offsets, profile.samples.locations
    is_bare = (offsets[1:] == offsets[:-1]) & profile.samples.values.any(axis=1)
    if not is_bare.any():
        return offsets, locations
    return offsets + offsets_of(is_bare), np.insert(locations, offsets[:-1][is_bare], len(profile.locations))


def no_lines(count: int) -> tuple[Int32, Int64]:
    """Source and line of so many frames, all unknown: arrays of one element that repeats."""
    return np.broadcast_to(np.int32(0), count), np.broadcast_to(np.int64(0), count)


def source_lines(profile: Profile, rows: Int32) -> tuple[list[str], Int32, Int64]:
    """The distinct source files, the first of which is "", and file and line of each of some lines (NONE: unknown)."""
    functions, of_profile = profile.functions, profile.locations.lines
    known: dict[str, int] = {"": 0}
    paths = profile.strings.texts(functions.filename.tolist(), MAX_PATH)
    file_of = np.array([known.setdefault(path, len(known)) for path in paths], np.int32)
    sources, lines = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.int64)
    is_known = rows != NONE
    sources[is_known] = file_of[of_profile.function[rows[is_known]]]
    lines[is_known] = of_profile.line[rows[is_known]]
    return list(known), sources, lines
