"""Distinct values of arrays. numpy's own `unique` imports the masked arrays, which start-up time cannot spare."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def distinct(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """The distinct values in ascending order."""
    ordered = np.sort(values)
    return ordered[first_of_runs(ordered)]


def distinct_inverse(values: NDArray[Scalar]) -> tuple[NDArray[Scalar], NDArray[np.int64]]:
    """The distinct values in ascending order, and for every element which of them it is."""
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


def is_among(values: NDArray[Scalar], some: NDArray[Scalar]) -> NDArray[np.bool_]:
    """Which values occur in `some`; numpy's `isin` would import what its `unique` does."""
    known = np.sort(some)
    if not len(known):
        return np.zeros(len(values), np.bool_)
    found: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values
    return found


def first_of_runs(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it."""
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return new


def views(*columns: NDArray[Any]) -> list[Any]:
    """Arrays as the compiled modules take them, which read Python integers from them when they run interpreted."""
    return [np.ascontiguousarray(column).data for column in columns]


def pair(high: NDArray[Any], low: NDArray[Any]) -> NDArray[np.int64]:
    """Two columns of 32-bit values (or -1) as one of 64-bit keys; `unpair` takes them apart."""
    key: NDArray[np.int64] = (high.astype(np.int64) << 32) | (low.astype(np.int64) & 0xFFFFFFFF)
    return key


def unpair(key: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The columns that `pair` joined."""
    return (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.uint32).astype(np.int32)


def layer_at(start: NDArray[np.uint64], value: NDArray[np.int64], vaddrs: NDArray[np.uint64]) -> NDArray[np.int64]:
    """What a layer of disjoint ranges holds at `vaddrs`, -1 outside: `value[i]` from `start[i]` to `start[i + 1]`."""
    if not len(start):
        return np.full(len(vaddrs), -1, np.int64)
    place = np.searchsorted(start, vaddrs, side="right") - 1
    return np.where(place >= 0, value[np.maximum(place, 0)], -1)
