"""Array types, and arithmetic on arrays: distinct values, CSR offsets and ranges, pairs of columns, layers of ranges.

numpy's own `unique` imports the masked arrays, which start-up time cannot spare.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from symbolize.core.kernels import mark, mark_chosen

Bool = NDArray[np.bool_]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Int8 = NDArray[np.int8]
UInt8 = NDArray[np.uint8]
UInt16 = NDArray[np.uint16]
UInt32 = NDArray[np.uint32]
UInt64 = NDArray[np.uint64]
Float64 = NDArray[np.float64]

Scalar = TypeVar("Scalar", bound=np.generic)

NONE = -1
"""Index of no row."""
TOP = (1 << 64) - 1
"""The highest address, which also takes the lower 64 bits of a sum."""

AT_ONCE = 1 << 18
"""Indices that numpy gets at a time: it makes 64-bit ones of all of them, twice the memory of a column of stacks."""


def distinct(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """The distinct values in ascending order."""
    ordered = np.sort(values)
    return ordered[first_of_runs(ordered)]


def distinct_inverse(values: NDArray[Scalar]) -> tuple[NDArray[Scalar], Int64]:
    """The distinct values in ascending order, and for every element which of them it is."""
    if len(values) and values.dtype.kind in "iu":
        least = values.min()
        count = int(values.max()) - int(least) + 1
        if count <= len(values):  # such as rows of a table: without sorting
            rows = (values - least).astype(np.int64, copy=False)
            present = marked(rows, count)
            numbers = np.cumsum(present) - 1
            return np.flatnonzero(present).astype(values.dtype) + least, numbers[rows]
    new = first_of_runs(values)
    if 4 * np.count_nonzero(new) < len(values):
        ordered, which = distinct_inverse(values[new])
        return ordered, which[np.cumsum(new) - 1]
    order = np.argsort(values)
    ordered = values[order]
    new = first_of_runs(ordered)
    inverse = np.empty(len(values), np.int64)
    inverse[order] = np.cumsum(new) - 1
    return ordered[new], inverse


def is_among(values: NDArray[Scalar], some: NDArray[Scalar]) -> Bool:
    """Which values occur in `some`; numpy's `isin` would import what its `unique` does."""
    known = np.sort(some)
    if not len(known):
        return np.zeros(len(values), np.bool_)
    found: Bool = known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values
    return found


def marked(rows: NDArray[Any], count: int, chosen: Bool | None = None) -> Bool:
    """Which of `count` rows, fewer than 2³¹, occur in `rows`, or in those of them that are `chosen`: bool[count].
    Raises IndexError for a negative row."""
    found = np.zeros(count, np.bool_)
    into = found.view(np.uint8)
    for first in range(0, len(rows), AT_ONCE):
        piece = slice(first, first + AT_ONCE)
        some = rows[piece].astype(np.int32, copy=False)
        if chosen is None:
            mark(*views(some, into))
        else:
            mark_chosen(*views(some, chosen[piece].view(np.uint8), into))
    return found


def taken(column: NDArray[Scalar], rows: NDArray[Any]) -> NDArray[Scalar]:
    """`column[rows]`."""
    result = np.empty(len(rows), column.dtype)
    for first in range(0, len(rows), AT_ONCE):
        result[first : first + AT_ONCE] = column[rows[first : first + AT_ONCE]]
    return result


def first_of_runs(ordered: NDArray[Any]) -> Bool:
    """Where a value differs from the one before it."""
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return new


def rows_by_number(numbers: NDArray[Any], count: int) -> list[Int64]:
    """The rows with each of the numbers from 0 on, fewer than `count`, in ascending order."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(1, count)))


def offsets_of(lengths: NDArray[Any] | Sequence[int]) -> Int64:
    """Where runs of the given lengths begin that lie behind one another, and where the last one ends: int64[n + 1]."""
    offsets: Int64 = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, dtype=np.int64, out=offsets[1:])
    return offsets


def ranges(starts: Int64, lengths: Int64) -> Int64:
    """`lengths[i]` numbers from `starts[i]` on, for each `i`, behind one another."""
    offsets = offsets_of(lengths)
    result: Int64 = np.arange(offsets[-1])
    result += np.repeat(starts - offsets[:-1], lengths)
    return result


def gather_lists(items: NDArray[Scalar], begins: Int64, edges: Int64) -> NDArray[Scalar]:
    """Lists of items one after another: list i begins at `begins[i]` of `items` and goes to `edges[i]` of the result,
    up to `edges[i + 1]`. In pieces, because the positions take more memory than the items."""
    found = np.empty(int(edges[-1]), items.dtype)
    pieces = np.searchsorted(edges, np.arange(0, len(found), AT_ONCE)).tolist()
    for first, last in pairwise([*pieces, len(begins)]):
        start, end = edges[first], edges[last]
        shift = np.repeat(begins[first:last] - edges[first:last], np.diff(edges[first : last + 1]))
        found[start:end] = items[shift + np.arange(start, end)]
    return found


def passed(offsets: Int64, values: UInt64, rows: Int64, limits: UInt64) -> Int64:
    """How many of the values of list `rows[i]` are `limits[i]` at most: list j is `values[offsets[j]:offsets[j + 1]]`,
    ascending."""
    known = distinct(values)
    step = len(known) + 1
    keys = np.repeat(np.arange(len(offsets) - 1) * step, np.diff(offsets)) + np.searchsorted(known, values)
    return np.searchsorted(keys, rows * step + np.searchsorted(known, limits, side="right")) - offsets[rows]


def views(*columns: NDArray[Any]) -> list[Any]:
    """Arrays as the compiled modules take them, which read Python integers from them when they run interpreted."""
    return [np.ascontiguousarray(column).data for column in columns]


def pair(high: NDArray[Any], low: NDArray[Any]) -> Int64:
    """Two columns of 32-bit values (or -1) as one of 64-bit keys; `unpair` takes them apart."""
    key: Int64 = (high.astype(np.int64) << 32) | (low.astype(np.int64) & 0xFFFFFFFF)
    return key


def unpair(key: Int64) -> tuple[Int32, Int32]:
    """The columns that `pair` joined."""
    return (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.uint32).astype(np.int32)


def layer_at(start: UInt64, value: Int64, vaddrs: UInt64) -> Int64:
    """What a layer of disjoint ranges holds at `vaddrs`, -1 outside: `value[i]` from `start[i]` to `start[i + 1]`."""
    if not len(start):
        return np.full(len(vaddrs), -1, np.int64)
    place = np.searchsorted(start, vaddrs, side="right") - 1
    return np.where(place >= 0, value[np.maximum(place, 0)], -1)


def extended(array: Any, size: int) -> Any:
    """A copy of a memoryview, with at least `size` items and twice its own; pages never written take no memory."""
    old = np.asarray(array)
    new = np.zeros(max(size, 2 * len(old), 16), old.dtype)
    new[: len(old)] = old
    return new.data
