"""Values by function, by line, by code of a module, and by node of the call tree, as `pprof -top` has them: a function
is its name, unnamed code its module."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from symbolize.analysis.frames import FrameNames
from symbolize.analysis.kernels import StackColumns, add_to_parents, grow_tree, weigh
from symbolize.analysis.stacks import Stacks, stacks_of
from symbolize.core.arrays import (
    Float64,
    Int32,
    Int64,
    UInt8,
    distinct,
    distinct_inverse,
    first_of_runs,
    pair,
    unpair,
    views,
)
from symbolize.core.errors import check_count
from symbolize.core.records import record
from symbolize.profile import NONE, FunctionChange, FunctionRow, Profile, with_sample_type

MAX_LINE = np.iinfo(np.int32).max
ROUNDING: Final = 1e-12
"""Relative error of sums of scaled values."""


@record(frozen=True)
class CallTree:
    """A tree of frames: node 0 is the root, which is no frame; parents come before their children.

    By node: `parent` and `frame`, a row of `frames` (NONE for the root); `flags`, the `FrameFlag`s that its calls have
    together; `values`, those of the stacks that end there, and `sizes`, the same without their signs: float64[n, k].
    `ends` is the node at which each stack ends.
    """

    frames: FrameNames
    parent: Int32
    frame: Int32
    flags: UInt8
    values: Float64
    sizes: Float64
    ends: Int64

    def __len__(self) -> int:
        return len(self.parent)

    def totals(self) -> Float64:
        """The values of each node and all below it: float64[n, k]."""
        return self._summed(self.values)

    def widths(self) -> Float64:
        """How wide each node is drawn, float64[n, k]: negative values below it do not cancel others."""
        return self._summed(self.sizes)

    def _summed(self, values: Float64) -> Float64:
        totals = values.copy()
        add_to_parents(self.parent.data, totals.data)
        return totals

    def children(self, weights: Float64, least: float, limit: int | None = None) -> dict[int, list[int]]:
        """The children of each node, the heaviest first, without those whose weight is below `least` or 0; of more than
        `limit` the heaviest ones of all, whose parents are among them."""
        shown = np.flatnonzero(weights >= max(least, np.finfo(np.float64).tiny))
        children: dict[int, list[int]] = {}
        most = None if limit is None else limit + 1  # with the root
        for node in shown[np.argsort(-weights[shown], kind="stable")][:most].tolist():
            if node:
                children.setdefault(int(self.parent[node]), []).append(node)
        return children

    def leaves(self) -> Int64:
        """The nodes at which stacks with values end, in their order."""
        return np.flatnonzero(self.values.any(axis=1) & (self.parent != NONE))


def call_tree(stacks: Stacks, keys: Int32 | None = None, inverted: bool = False) -> CallTree:
    """The tree of all stacks, from the roots on, or from the leaves on if it is `inverted`.

    With `keys`, a number for each frame of `stacks`, frames are the same where these are; `frame` of a node is then
    such a number. Raises InputError for a tree that is too large.
    """
    leaves = np.zeros(len(stacks), np.int64)
    keys = stacks.frames if keys is None else keys
    columns = StackColumns(*views(stacks.location_offsets, stacks.locations, stacks.frame_offsets, keys))
    flags, ends = views(stacks.flags, leaves)
    nodes = grow_tree(columns, flags, ends, inverted, stacks.most_rows())
    stacks.check_size(len(nodes))
    parent, frame = nodes[:, 0].astype(np.int32), nodes[:, 1].astype(np.int32)
    parent[0] = frame[0] = NONE
    values = by_node(leaves, stacks.values, len(nodes))
    sizes = by_node(leaves, np.abs(stacks.values), len(nodes)) if stacks.has_negative() else values
    return CallTree(stacks.names, parent, frame, nodes[:, 2].astype(np.uint8), values, sizes, leaves)


def by_node(leaves: Int64, values: Float64, count: int) -> Float64:
    """The values of stacks summed by the nodes at which they end: float64[count, k]."""
    own = [np.bincount(leaves, column, minlength=count) for column in values.T]
    return np.ascontiguousarray(np.array(own, np.float64).reshape(len(own), count).T)


@record(frozen=True)
class LineTotals:
    """Values by line of a source file: `file` is a row of `files`, `flat` and `cumulative` are float64[m, k].

    Rows are ordered by `function`, then file and line. `function` is a row of the names of functions, or 0 where totals
    are not by function. Frames without a file or line are left out.
    """

    files: list[str]
    function: Int32
    file: Int32
    line: Int64
    flat: Float64
    cumulative: Float64

    def __len__(self) -> int:
        return len(self.line)

    def heaviest_files(self, column: int) -> list[str]:
        """The files that have lines, those with the largest own values in a column first."""
        used = distinct(self.file)
        weights = np.bincount(self.file, np.abs(self.flat[:, column]), minlength=len(self.files))
        return [self.files[row] for row in used[np.argsort(-weights[used], kind="stable")].tolist()]

    def by_file(self) -> Iterator["LineTotals"]:
        """The lines of each file, or of each function in a file."""
        edges = [*np.flatnonzero(first_of_runs(pair(self.function, self.file))).tolist(), len(self)]
        for begin, end in pairwise(edges):
            rows = slice(begin, end)
            yield LineTotals(
                self.files,
                self.function[rows],
                self.file[rows],
                self.line[rows],
                self.flat[rows],
                self.cumulative[rows],
            )


def line_totals(stacks: Stacks, functions: Int32 | None = None) -> LineTotals:
    """The values of all source lines of `stacks`, in all sample types: a line counts once a stack.

    With `functions`, the function of each frame (negative: left out), they are by function too.
    """
    has_line = (stacks.sources > 0) & (stacks.lines > 0) & (stacks.lines <= np.iinfo(np.int32).max)
    if functions is None:
        functions = np.zeros(len(has_line), np.int32)
    has_line &= functions >= 0
    # Row 0 takes the frames without a line.
    files, file_of = distinct_inverse(np.where(has_line, pair(functions, stacks.sources), -1))
    keys, rows = distinct_inverse(pair(file_of, np.where(has_line, stacks.lines, 0)))
    flat, cumulative = totals_by_key(stacks, rows.astype(np.int32), len(keys))
    number, line = unpair(keys)
    known = np.flatnonzero(line > 0)
    function, file = unpair(files[number[known]])
    return LineTotals(stacks.files, function, file, line[known].astype(np.int64), flat[known], cumulative[known])


@record(frozen=True)
class CodeTotals:
    """Values by code: `name` is a row of the names of frames, `build` a number of a build, `file` a row of the files of
    the stacks and `line` a line of it, 0 where unknown; `flat` and `cumulative` are float64[n, k]."""

    name: Int32
    build: Int32
    file: Int32
    line: Int32
    flat: Float64
    cumulative: Float64


def code_totals(stacks: Stacks, builds: Int32) -> CodeTotals:
    """The values of all code of `stacks`, in all sample types; `builds` has a number for each location: int32[n].

    Code that is on a stack several times counts once. Raises InputError for a table that is too large.
    """
    is_line = (stacks.lines > 0) & (stacks.lines <= MAX_LINE)
    names, name_of = distinct_inverse(pair(stacks.frames, builds[stacks.location_of_frames()]))
    files, file_of = distinct_inverse(pair(name_of, stacks.sources))
    keys, key_of = distinct_inverse(pair(file_of, np.where(is_line, stacks.lines, 0)))
    flat, cumulative = totals_by_key(stacks, key_of.astype(np.int32), len(keys))
    file_row, line = unpair(keys)
    name_row, file = unpair(files[file_row])
    name, build = unpair(names[name_row])
    return CodeTotals(name, build, file, line, flat, cumulative)


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
    columns = StackColumns(*views(stacks.location_offsets, stacks.locations, stacks.frame_offsets, keys))
    weigh(*views(values), columns, *views(groups, *found))
    return found


def are_within(offsets: Int64, items: Int32, count: int) -> bool:
    """Whether `offsets` are those of a CSR table whose items are rows of a table of `count`."""
    is_inside = not len(items) or (items.min() >= 0 and items.max() < count)
    is_whole = offsets[0] == 0 and offsets[len(offsets) - 1] == len(items)
    return bool(is_inside and is_whole and np.all(offsets[1:] >= offsets[:-1]))


@record(frozen=True)
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


def totals_at(stacks: Stacks, at: Int32, count: int) -> tuple[Float64, Float64]:
    """The values by place, flat and cumulative, in all sample types: float64[count, k] each. `at` has the place of each
    location of the profile, -1 for none."""
    keys = np.zeros(len(stacks.frame_offsets) - 1, np.int32)
    keys[: len(at)] = at + 1
    flat, cumulative = totals_by_key(stacks, keys[stacks.location_of_frames()], count + 1)
    return flat[1:], cumulative[1:]


def totals_by_key(stacks: Stacks, keys: Int32, count: int) -> tuple[Float64, Float64]:
    """The values by key, flat and cumulative, in all sample types: float64[count, k] each. Raises InputError for a
    table that is too large."""
    stacks.check_size(count)
    stacks.check_steps(np.count_nonzero(stacks.values, axis=1))
    flat, cumulative = (np.zeros((count, stacks.values.shape[1])) for _ in range(2))
    for column, values in enumerate(stacks.values.T):
        _, flat[:, column], cumulative[:, column], _ = sums(stacks, keys, count, values)
    return flat, cumulative
