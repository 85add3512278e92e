"""The values of samples summed over locations and functions, and the functions with the most of their own."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import taken
from symbolize.profile import Profile
from symbolize.report.weights import weigh

Float64 = NDArray[np.float64]


class TopFunction(NamedTuple):
    """A function with the value of the samples it is the leaf of (`flat`, its own), and of those it is on the stack of
    (`cumulative`, the total)."""

    name: str
    flat: float
    cumulative: float


class Weights(NamedTuple):
    """Sums of the values of the default sample type: `samples` are the values, `locations` the sum for each location,
    `flat` and `cumulative` those for each function name, a row a string; `names` is the name of each line."""

    samples: Float64
    locations: Float64
    flat: Float64
    cumulative: Float64
    names: NDArray[np.int32]


def weights_of(profile: Profile) -> Weights:
    """Sum the values of `profile`, one pass over the stacks."""
    strings, locations, samples = profile.strings, profile.locations, profile.samples
    column = profile.weight_column()
    if column >= 0 and len(samples):
        values = np.abs(np.ascontiguousarray(samples.values[:, column]).astype(np.float64))
    else:
        values = np.zeros(len(samples))
    names = taken(profile.functions.name, locations.lines.function)
    by_location = np.zeros(len(locations))
    flat, cumulative = np.zeros(len(strings)), np.zeros(len(strings))
    last_sample = np.full(len(strings), -1, np.int64)
    weigh(
        values.data,
        np.ascontiguousarray(samples.location_offsets).data,
        np.ascontiguousarray(samples.locations).data,
        np.ascontiguousarray(locations.line_offsets).data,
        names.data,
        by_location.data,
        flat.data,
        cumulative.data,
        last_sample.data,
    )
    return Weights(values, by_location, flat, cumulative, names)


def heaviest(profile: Profile, weights: Weights, count: int) -> list[TopFunction]:
    """The `count` functions with the largest `flat` value, then `cumulative`; those without any value are left out."""
    rows = np.lexsort((-weights.cumulative, -weights.flat))
    rows = rows[(weights.cumulative[rows] > 0) & (rows != 0)][:count]  # row 0 is the empty name
    return [
        TopFunction(profile.strings.text(row), float(weights.flat[row]), float(weights.cumulative[row]))
        for row in rows.tolist()
    ]
