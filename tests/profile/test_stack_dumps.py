"""Copies of stacks stay with the samples that they are of."""

import numpy as np

from symbolize.profile import Locations, Profile, Samples, StackDumps, compact


def profile_with_dumps() -> Profile:
    """Two samples of one location each, the second with a dump; a third location is unused."""
    dumps = StackDumps(
        "x86-64",
        memoryview(bytes(64)),
        sample=np.array([1]),
        offset=np.array([16]),
        size=np.array([48]),
        registers=np.zeros((1, 17), np.uint64),
        is_32bit=np.zeros(1, np.bool_),
        is_full=np.ones(1, np.bool_),
        space=np.zeros(1, np.int32),
        space_offsets=np.zeros(2, np.int64),
    )
    locations = Locations(
        np.array([1, 2, 3], np.uint64), np.full(3, -1, np.int32), np.zeros(3, np.bool_), np.zeros(4, np.int64)
    )
    samples = Samples(np.arange(3), np.array([0, 2], np.int32), np.ones((2, 1), np.int64), np.zeros(3, np.int64))
    return Profile(locations=locations, samples=samples, stack_dumps=dumps)


def test_dumps_survive_copies_and_compaction() -> None:
    """A copy and a compacted profile have the same dumps: neither changes the rows of samples."""
    profile = profile_with_dumps()
    assert profile.copy().stack_dumps is profile.stack_dumps
    smaller = compact(profile)
    assert len(smaller.locations) == 2
    assert smaller.stack_dumps is profile.stack_dumps
    assert repr(profile.stack_dumps) == "<StackDumps: 1 of x86-64>"
