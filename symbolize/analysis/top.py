"""Values by function, as `pprof -top` has them: a function is its name, unnamed code its module."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from symbolize.analysis.kernels import weigh
from symbolize.analysis.stacks import Float64, Stacks
from symbolize.core.arrays import Int32, UInt8, views


class Sums(NamedTuple):
    """Sums of values: for each location of a profile, and for each key `flat` and `cumulative`."""

    locations: Float64
    flat: Float64
    cumulative: Float64


def sums(stacks: Stacks, keys: Int32, count: int, values: Float64) -> Sums:
    """Sum `values`, one a stack, by location and by key. `keys` has one of `count` keys for each frame.

    `flat` of a key is the value of the stacks whose leaf has it, `cumulative` of those that have it anywhere.
    """
    found = Sums(np.zeros(len(stacks.frame_offsets) - 1), np.zeros(count), np.zeros(count))
    last_sample = np.full(count, -1, np.int64)
    weigh(
        *views(values, stacks.location_offsets, stacks.locations, stacks.frame_offsets, keys, *found, last_sample),
    )
    return found


class FunctionRow(NamedTuple):
    """One function: the value of the samples it is the leaf of (`flat`, its own), and of those it is on the stack of
    (`cumulative`, the total)."""

    name: str
    flat: float
    cumulative: float


@dataclass(frozen=True, eq=False)
class FunctionTotals:
    """Values by name of function: `flat` and `cumulative` are float64[n, k], `flags` what its frames have together."""

    names: list[str]
    flags: UInt8
    flat: Float64
    cumulative: Float64

    def heaviest(self, column: int, count: int | None = None, by_total: bool = False) -> list[FunctionRow]:
        """The rows with the largest own value in a column, then total, then by name; those without any are left out.

        With `by_total` the total decides before the own value.
        """
        flat, cumulative = self.flat[:, column], self.cumulative[:, column]
        first, second = (cumulative, flat) if by_total else (flat, cumulative)
        rows = np.flatnonzero((cumulative != 0) | (flat != 0)).tolist()
        rows.sort(key=lambda row: (-abs(first[row]), -abs(second[row]), self.names[row]))
        return [self.row(row, column) for row in rows[:count]]

    def most_changed(self, column: int, base: int, count: int | None = None) -> list[tuple[FunctionRow, FunctionRow]]:
        """The rows that differ most between two columns, by own value, then by total, each in both columns."""
        flat, cumulative = (each[:, column] - each[:, base] for each in (self.flat, self.cumulative))
        rows = np.flatnonzero((cumulative != 0) | (flat != 0)).tolist()
        rows.sort(key=lambda row: (-abs(flat[row]), -abs(cumulative[row]), self.names[row]))
        return [(self.row(row, column), self.row(row, base)) for row in rows[:count]]

    def row(self, row: int, column: int) -> FunctionRow:
        """One function in one sample type."""
        return FunctionRow(self.names[row], float(self.flat[row, column]), float(self.cumulative[row, column]))


def function_totals(stacks: Stacks) -> FunctionTotals:
    """The totals of all functions of `stacks`, in all sample types."""
    names, name_of = stacks.names.by_name()
    keys = name_of[stacks.frames]
    flags = np.zeros(len(names), np.uint8)
    np.bitwise_or.at(flags, keys, stacks.flags)
    return FunctionTotals(names, flags, *totals_by_key(stacks, keys, len(names)))


def totals_by_key(stacks: Stacks, keys: Int32, count: int) -> tuple[Float64, Float64]:
    """The values by key, flat and cumulative, in all sample types: float64[count, k] each."""
    flat, cumulative = (np.zeros((count, stacks.values.shape[1])) for _ in range(2))
    for column, values in enumerate(stacks.values.T):
        _, flat[:, column], cumulative[:, column] = sums(stacks, keys, count, values)
    return flat, cumulative
