"""Checks stacks against what the debug information says of calls (R361, stacks against call sites)."""

from enum import IntEnum

import numpy as np

from symbolize.core.stack_check import StackCheck
from symbolize.profile import Profile
from symbolize.resolve.resolution import Resolutions
from symbolize.resolve.stack_pairs import StackReader


class Verdict(IntEnum):
    """What call sites say of a caller and the next function on the stack."""

    OPEN = 0
    CONFIRMED = 1
    EXPLAINED = 2
    CONTRADICTED = 3


def check_stacks(profile: Profile, resolutions: Resolutions) -> None:
    """Judge all pairs of neighbours on the stacks of a profile; `resolutions` get what was found, by the mapping of the
    caller."""
    reader = StackReader(profile, resolutions)
    pairs, column = reader.pairs, profile.weight_column()
    if not len(pairs.callee) or column < 0:
        return
    weights = np.abs(profile.samples.values[:, column].astype(np.float64))
    of_frame = np.repeat(weights, np.diff(profile.samples.location_offsets))
    has_caller = pairs.which >= 0
    value = np.bincount(pairs.which[has_caller], of_frame[has_caller], minlength=len(pairs.callee))
    verdict = [judge(reader, *each) for each in zip(pairs.callee.tolist(), pairs.caller.tolist(), strict=True)]
    mapping = profile.locations.mapping[pairs.caller] + 1  # 0: none
    sums = np.bincount(mapping * len(Verdict) + np.array(verdict), value).astype(np.float64)
    sums = np.append(sums, np.zeros(-len(sums) % len(Verdict))).reshape(-1, len(Verdict))
    for number in np.flatnonzero(sums[:, Verdict.CONFIRMED :].any(axis=1)).tolist():
        if number:
            resolutions.note(number - 1, stack_check=StackCheck(*sums[number, Verdict.CONFIRMED :].tolist()))


def judge(reader: StackReader, callee: int, caller: int) -> Verdict:
    """Whether the code at a location can have been called by the one next to it."""
    called, is_call = reader.site(caller)
    if is_call is False:
        return Verdict.CONTRADICTED
    is_callee, graph = reader.is_in(callee), reader.graph(caller)
    if called is None or is_callee is None or graph is None:
        return Verdict.OPEN
    if is_callee(called):
        return Verdict.CONFIRMED
    chains, is_whole = graph.chains(called, is_callee)
    if chains:
        return Verdict.EXPLAINED
    return Verdict.CONTRADICTED if is_whole else Verdict.OPEN
