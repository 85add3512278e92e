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

    def heaviest(self, column: int, count: int | None = None) -> list[FunctionRow]:
        """The rows with the largest own value in a column, then total, then by name; those without any are left out."""
        flat, cumulative = self.flat[:, column], self.cumulative[:, column]
        rows = np.flatnonzero((cumulative != 0) | (flat != 0)).tolist()
        rows.sort(key=lambda row: (-abs(flat[row]), -abs(cumulative[row]), self.names[row]))
        return [FunctionRow(self.names[row], float(flat[row]), float(cumulative[row])) for row in rows[:count]]


def function_totals(stacks: Stacks) -> FunctionTotals:
    """The totals of all functions of `stacks`, in all sample types."""
    names, name_of = stacks.names.by_name()
    keys = name_of[stacks.frames]
    columns = [sums(stacks, keys, len(names), np.ascontiguousarray(column)) for column in stacks.values.T]
    flags = np.zeros(len(names), np.uint8)
    np.bitwise_or.at(flags, keys, stacks.flags)
    shape = (len(columns), len(names))
    return FunctionTotals(
        names,
        flags,
        np.array([each.flat for each in columns]).reshape(shape).T,
        np.array([each.cumulative for each in columns]).reshape(shape).T,
    )
