"""Values by function, as `pprof -top` has them: a function is its name, unnamed code its module."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from symbolize.analysis.kernels import weigh
from symbolize.analysis.stacks import Stacks, stacks_of
from symbolize.core.arrays import Float64, Int32, Int64, UInt8, views
from symbolize.core.errors import check_count
from symbolize.profile import FunctionChange, FunctionRow, Profile, with_sample_type

ROUNDING: Final = 1e-12
"""Relative error of sums of scaled values."""


class Sums(NamedTuple):
    """Sums of values: for each location of a profile, for each key `flat` and `cumulative`, and for each group."""

    locations: Float64
    flat: Float64
    cumulative: Float64
    groups: Float64


def sums(stacks: Stacks, keys: Int32, count: int, values: Float64, groups: Int32 | None = None) -> Sums:
    """Sum `values`, one a stack, by location and by key. `keys` has one of `count` keys for each frame.

    `flat` of a key is the value of the stacks whose leaf has it, `cumulative` of those that have it anywhere. Locations
    may be in `groups`, numbered from 0, which get the value of the stacks that have any of their locations.
    """
    locations = len(stacks.frame_offsets) - 1
    groups = np.zeros(locations, np.int32) if groups is None else groups
    group_count = int(groups.max(initial=0)) + 1
    if not (
        len(values) == len(stacks)
        and are_within(stacks.location_offsets, stacks.locations, locations)
        and are_within(stacks.frame_offsets, keys, count)
        and len(groups) == locations
        and groups.min(initial=0) == 0
    ):
        raise IndexError("stacks refer to locations, frames or keys that there are not")
    found = Sums(np.zeros(locations), np.zeros(count), np.zeros(count), np.zeros(group_count))
    last = np.full(count, -1, np.int64), np.full(group_count, -1, np.int64)
    columns = (values, stacks.location_offsets, stacks.locations, stacks.frame_offsets, keys, groups)
    weigh(*views(*columns, *found, *last))
    return found


def are_within(offsets: Int64, items: Int32, count: int) -> bool:
    """Whether `offsets` are those of a CSR table whose items are rows of a table of `count`."""
    is_inside = not len(items) or (items.min() >= 0 and items.max() < count)
    is_whole = offsets[0] == 0 and offsets[len(offsets) - 1] == len(items)
    return bool(is_inside and is_whole and np.all(offsets[1:] >= offsets[:-1]))


@dataclass(frozen=True, eq=False)
class FunctionTotals:
    """Values by name of function: `flat` and `cumulative` are float64[n, k], `flags` what its frames have together."""

    names: Sequence[str]
    flags: UInt8
    flat: Float64
    cumulative: Float64

    def heaviest(self, column: int, count: int | None = None, by_total: bool = False) -> list[FunctionRow]:
        """The rows with the largest own value in a column, or with the largest total, equal ones by name as pprof has
        them; those without any value are left out."""
        flat, cumulative = self.flat[:, column], self.cumulative[:, column]
        has_value = ((flat != 0) | (cumulative != 0)).astype(np.float64)
        rows = self.ordered(cumulative if by_total else flat, has_value, count)
        return [self.row(row, column) for row in rows]

    def most_changed(self, column: int, base: int, count: int | None = None) -> list[FunctionChange]:
        """The rows that differ most between two columns, by own value, then by total."""
        flat, cumulative = (changes(each[:, column], each[:, base]) for each in (self.flat, self.cumulative))
        rows = self.ordered(flat, cumulative, count)
        return [FunctionChange(*self.row(row, column), *self.row(row, base)[1:]) for row in rows]

    def ordered(self, first: Float64, second: Float64, count: int | None) -> list[int]:
        """The rows with the largest value in `first`, then `second`, then by name; those without any are left out."""
        first, second = np.abs(first), np.abs(second)
        rows = np.flatnonzero((first != 0) | (second != 0))
        rows = rows[np.lexsort((-second[rows], -first[rows]))]
        if count is not None and 0 < count < len(rows):  # names are compared only where they may matter
            last = rows[count - 1]
            is_tied = (first[rows] == first[last]) & (second[rows] == second[last])
            is_tied[:count] = True
            rows = rows[is_tied]
        return sorted(rows.tolist(), key=lambda row: (-first[row], -second[row], self.names[row]))[:count]

    def row(self, row: int, column: int) -> FunctionRow:
        """One function in one sample type."""
        return FunctionRow(self.names[row], float(self.flat[row, column]), float(self.cumulative[row, column]))


def changes(new: Float64, base: Float64) -> Float64:
    """By how much values grew; what only rounding makes of scaled values is no change."""
    return np.where(np.isclose(new, base, rtol=ROUNDING, atol=0), 0.0, new - base)


def function_totals(stacks: Stacks) -> FunctionTotals:
    """The totals of all functions of `stacks`, in all sample types."""
    names, name_of = stacks.names.names.distinct()
    keys = name_of[stacks.frames]
    flags = np.zeros(len(names), np.uint8)
    np.bitwise_or.at(flags, keys, stacks.flags)
    return FunctionTotals(names, flags, *totals_by_key(stacks, keys, len(names)))


def heaviest_functions(profile: Profile, count: int, sample_type: str) -> list[FunctionRow]:
    """The functions of `profile` with the largest value of their own, see `Profile.top`."""
    check_count("count", count)
    stacks = stacks_of(with_sample_type(profile, sample_type), has_lines=False)
    return function_totals(stacks.only_default()).heaviest(0, count)


def totals_by_key(stacks: Stacks, keys: Int32, count: int) -> tuple[Float64, Float64]:
    """The values by key, flat and cumulative, in all sample types: float64[count, k] each. Raises InputError for a
    table that is too large."""
    stacks.check_size(count)
    stacks.check_steps(np.count_nonzero(stacks.values, axis=1))
    flat, cumulative = (np.zeros((count, stacks.values.shape[1])) for _ in range(2))
    for column, values in enumerate(stacks.values.T):
        _, flat[:, column], cumulative[:, column], _ = sums(stacks, keys, count, values)
    return flat, cumulative
