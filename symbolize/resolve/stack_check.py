"""Checks stacks against what the debug information says of calls (R361, stacks against call sites)."""

import numpy as np

from symbolize.core.stack_check import StackCheck
from symbolize.profile import Profile
from symbolize.resolve.resolution import Resolutions
from symbolize.resolve.stack_pairs import PairVerdict, StackReader


def check_stacks(profile: Profile, resolutions: Resolutions, reader: StackReader) -> None:
    """Judge all pairs of neighbours on the stacks of a profile; `resolutions` get what was found, by the mapping of the
    caller."""
    pairs, column = reader.pairs, profile.weight_column()
    if not len(pairs.callee) or column < 0:
        return
    weights = np.abs(profile.samples.values[:, column].astype(np.float64))
    of_frame = np.repeat(weights, np.diff(profile.samples.location_offsets))
    has_caller = pairs.which >= 0
    value = np.bincount(pairs.which[has_caller], of_frame[has_caller], minlength=len(pairs.callee))
    mapping = profile.locations.mapping[pairs.caller] + 1  # 0: none
    sums = np.bincount(mapping * len(PairVerdict) + reader.verdicts, value).astype(np.float64)
    sums = np.append(sums, np.zeros(-len(sums) % len(PairVerdict))).reshape(-1, len(PairVerdict))
    for number in np.flatnonzero(sums[:, PairVerdict.CONFIRMED :].any(axis=1)).tolist():
        if number:
            resolutions.note(number - 1, stack_check=StackCheck(*sums[number, PairVerdict.CONFIRMED :].tolist()))
