"""Asks what the debug information says of the stacks of a profile, by the binaries of its mappings."""

import numpy as np

from symbolize.core.arrays import distinct_inverse, pair, unpair
from symbolize.evidence.stacks import PairReader, StackPairs
from symbolize.profile import Profile
from symbolize.resolve.mapping_record import caller_mask
from symbolize.resolve.resolution import Resolutions
from symbolize.symbols import Binary


def reader_of(profile: Profile, resolutions: Resolutions) -> PairReader:
    """What is known of the pairs on all stacks of a profile."""
    answered = [
        (binary, np.concatenate([each.rows for each in parts]), np.concatenate([each.vaddrs for each in parts]))
        for binary, parts in resolutions.by_binary()
        if isinstance(binary, Binary)
    ]
    return PairReader(pairs_of(profile), answered, len(profile.locations))


def pairs_of(profile: Profile) -> StackPairs:
    """The pairs on the stacks of a profile."""
    samples = profile.samples
    at = np.flatnonzero(caller_mask(profile)[1:])
    keys, number = distinct_inverse(pair(samples.locations[at], samples.locations[at + 1]))
    which = np.full(len(samples.locations), -1, np.int64)
    which[at] = number
    callee, caller = (column.astype(np.int64) for column in unpair(keys))
    return StackPairs(callee, caller, which)


def check_stacks(profile: Profile, resolutions: Resolutions, reader: PairReader) -> None:
    """Judge all pairs of neighbours on the stacks of a profile (R361, stacks against call sites); `resolutions` get
    what was found, by the mapping of the caller.

    A caller agrees if it calls the next function on the stack there, or one that leads to it by tail calls. It
    contradicts if it calls another function, all of whose tail calls are known, or if its function lists all its
    calls (R371, lists of calls) and has none there. Calls by a pointer, of functions that are defined elsewhere,
    and in functions that do not list their calls are not judged, nor is where the kernel was entered: a page fault
    is no call. The entry of a function in a linkage table is that function (R361, stacks against call sites).
    """
    column = profile.weight_column()
    if not len(reader.pairs.callee) or column < 0:
        return
    weights = np.abs(profile.samples.values[:, column].astype(np.float64))
    of_frame = np.repeat(weights, np.diff(profile.samples.location_offsets))
    for mapping, found in reader.check(of_frame, profile.locations.mapping).items():
        resolutions.note(mapping, stack_check=found)
