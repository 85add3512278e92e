"""Several recordings a side: which functions changed by more than recordings of one program differ among themselves."""

from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Final

import numpy as np

from symbolize.analysis.difference import common_types, differ
from symbolize.analysis.stacks import Stacks
from symbolize.analysis.tables import FUNCTION, ShownColumn, ShownTable, plain, share_column, valid
from symbolize.analysis.totals import function_totals
from symbolize.analysis.units import quantity
from symbolize.core.arrays import Float64, Int64
from symbolize.core.errors import InputError, printable

LEVEL: Final = 0.01
"""Of comparisons of recordings that do not differ, the share that may show a change of any function."""
MAX_SPLITS: Final = 2000
"""Ways to split the recordings that are tried; of more so many are drawn."""
AT_ONCE: Final = 1024
"""Functions that are judged at a time."""
ROUNDING: Final = 1e-12
"""Difference of shares that only rounding makes."""
CHANGED, WITHIN, UNCLEAR = "changed", "within", "unclear"


class Recordings:
    """The shares that functions have of recordings, which are added one after another; of each only these are kept.
    They are of the sample type that the first one is shown by."""

    def __init__(self) -> None:
        self._types: list[tuple[str, str]] = []
        self._default = 0
        self._rows: dict[str, int] = {}
        self._shares: list[tuple[Int64, Float64]] = []
        self._totals: list[float] = []

    def __len__(self) -> int:
        return len(self._shares)

    def add(self, stacks: Stacks, title: str) -> None:
        """Add the stacks of a recording. Raises InputError if they have no value, UsageError if not the sample type."""
        if not self._types:
            self._types, self._default = stacks.types, stacks.default
        common = common_types(self._types, self._default, stacks)
        first, own = next(pair for pair in zip(*common.columns, strict=True) if pair[0].row == self._default)
        stacks = replace(stacks, default=own.row).only_default()
        totals, total = function_totals(stacks), float(stacks.totals[0])
        if not total:
            raise InputError(title, "has no value, so there are no shares to compare")
        values = np.column_stack((totals.flat[:, 0], totals.cumulative[:, 0])) / total
        used = np.flatnonzero(values.any(axis=1))
        rows = [self._rows.setdefault(totals.names[row], len(self._rows)) for row in used.tolist()]
        stacks.check_size(len(self._rows))
        self._shares.append((np.array(rows, np.int64), values[used]))
        self._totals.append(total * own.factor / first.factor)

    def shares(self) -> tuple[Float64, Float64]:
        """The own and the whole shares, a row a recording: float64[n, k] each."""
        shares = np.zeros((len(self), len(self._rows), 2))
        for recording, (rows, values) in zip(shares, self._shares, strict=True):
            recording[rows] = values
        return shares[:, :, 0], shares[:, :, 1]

    def table(self, base: int, limit: int | None = None) -> ShownTable:
        """A row a function with its mean shares of the first `base` recordings and of the others: those that changed
        first, then by the size of the difference."""
        own, whole = self.shares()
        change, whole_change = (each[base:].mean(axis=0) - each[:base].mean(axis=0) for each in (own, whole))
        least = (2 if 2 * base == len(self) else 1) / comb(len(self), base)
        can_tell = least <= LEVEL
        if can_tell:
            p_value = p_values(own, base)
            judged = np.where(p_value <= LEVEL, CHANGED, WITHIN)
        else:
            p_value = np.full(len(change), np.nan)
            least_old, least_new = own[:base].min(axis=0), own[base:].min(axis=0)
            are_apart = (least_new > own[:base].max(axis=0)) | (own[base:].max(axis=0) < least_old)
            judged = np.where(are_apart, UNCLEAR, WITHIN)
        sides = [figures for side in (own[:base], own[base:]) for figures in (side.mean(axis=0), deviations(side))]
        figures = np.column_stack((change, *sides, whole_change)) * 100
        order = np.lexsort((-np.abs(whole_change), -np.abs(change), judged == WITHIN)).tolist()
        names = [*self._rows]
        rows = [
            (*(known(each) for each in (*figures[row].tolist(), float(p_value[row]))), str(judged[row]), names[row])
            for row in order[:limit]
        ]
        kind, unit = self._types[self._default]
        new_total, total = (float(np.mean(each)) for each in (self._totals[base:], self._totals[:base]))
        counts = {each: int(np.count_nonzero(judged == each)) for each in (CHANGED, WITHIN, UNCLEAR)}
        summary = (
            f"{kind}: mean {quantity(new_total, unit)} of {len(self) - base}, "
            f"base mean {quantity(total, unit)} of {base}"
        )
        about = {"sample_type": valid(kind), "unit": valid(unit), "total": plain(new_total), "base_total": plain(total)}
        about |= {"level": LEVEL, **counts}
        told = conclusion(counts, can_tell)
        if differ(new_total, total):
            told += "; the means differ, and only shares are compared"
        return ShownTable("spread", printable(summary), COLUMNS, rows, len(names), about, told)


def deviations(shares: Float64) -> Float64:
    """The standard deviation of each column, unknown for a single row."""
    return shares.std(axis=0, ddof=1) if len(shares) > 1 else np.full(shares.shape[1], np.nan)


def known(value: float) -> float | None:
    """A number, None for one that is unknown."""
    return None if np.isnan(value) else value


def conclusion(counts: dict[str, int], can_tell: bool) -> str:
    """A sentence on how many functions changed."""
    within = f"{counts[WITHIN]:,} within the spread of the recordings"
    if can_tell:
        return f"{counts[CHANGED]:,} function{'s' * (counts[CHANGED] != 1)} changed, {within}"
    return (
        f"too few recordings to tell a change from their spread (5 a side can): {counts[UNCLEAR]:,} unclear, {within}"
    )


def p_values(shares: Float64, base: int) -> Float64:
    """The p-value of each function: how often recordings of one program, split at random as the first `base` and the
    others are, differ at least as much in any function. This is a permutation test of the largest difference, so that
    the number of functions is accounted for.

    A difference counts in standard deviations within the two groups. These come from few recordings, so the one that
    its share lets expect is added: variances grow with shares as those of counts do, at the rate of most functions.
    """
    count = len(shares)
    means = shares.mean(axis=0)
    centred = shares - means
    centred[np.abs(centred) < ROUNDING] = 0.0
    squares = (centred**2).sum(axis=0)
    expected = np.abs(means) * np.maximum(1 - np.abs(means), 0)
    varied = np.flatnonzero(squares > 0)
    usual = varied[expected[varied] > 0]
    rate = float(np.median(squares[usual] / expected[usual])) / (count - 1) if len(usual) else 0.0
    groups = splits(count, base)
    largest, own = np.zeros(len(groups)), np.zeros(len(means))
    weight = 1 / base + 1 / (count - base)
    for first in range(0, len(varied), AT_ONCE):
        rows = varied[first : first + AT_ONCE]
        differences = np.abs(groups @ centred[:, rows]) * weight
        within = np.maximum(squares[rows] - differences**2 / weight, 0) / (count - 2) + rate * expected[rows]
        with np.errstate(divide="ignore"):  # by 0, where neither recordings nor shares let a function vary
            ratios = np.divide(differences, np.sqrt(within), out=np.zeros_like(within), where=differences > ROUNDING)
        largest = np.maximum(largest, ratios.max(axis=1))
        own[rows] = ratios[0]
    largest.sort()
    at_least = len(largest) - np.searchsorted(largest, own * (1 - 1e-9))
    return at_least / len(largest)


def splits(count: int, base: int) -> Float64:
    """Ways to choose `base` of `count` recordings, all or MAX_SPLITS of them: float64[m, count], 1 for those chosen.
    The first one chooses the first recordings."""
    if comb(count, base) <= MAX_SPLITS:
        chosen = np.array([*combinations(range(count), base)])
    else:
        draw = np.random.default_rng(count)
        chosen = np.array([range(base), *(draw.permutation(count)[:base] for _ in range(MAX_SPLITS - 1))])
    groups = np.zeros((len(chosen), count))
    np.put_along_axis(groups, chosen, 1.0, axis=1)
    return groups


COLUMNS: Final = (
    ShownColumn("change_points", "change", lambda value: f"{value:+.2f}"),
    share_column("base_percent", "base"),
    ShownColumn("base_deviation", "±", lambda value: "" if value is None else f"{value:.2f}"),
    share_column("new_percent", "new"),
    ShownColumn("new_deviation", "±", lambda value: "" if value is None else f"{value:.2f}"),
    ShownColumn("cumulative_change_points", "cum change", lambda value: f"{value:+.2f}"),
    ShownColumn("p_value", ""),
    ShownColumn("judgement", "judgement"),
    FUNCTION,
)
"""Shares are in percent, changes in points; a deviation is the standard one of the recordings of a side."""
