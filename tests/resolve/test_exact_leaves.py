"""Which frames of stacks are evidence for a build (R148): exact leaves and call sites."""

from collections.abc import Sequence

import numpy as np

from symbolize.core.arrays import offsets_of
from symbolize.profile import LeafKind, Locations, Mappings, Profile, Samples, ValueType
from symbolize.resolve.mapping_record import call_site_mask, exact_leaves

KERNEL = 0xFFFFFFFF81000000
PROGRAM = 0x400000
NOTHING = 0x7FFF00000000
"""An address in no mapping."""
UPPER = 0xC91C665755E653FF
"""In the upper half, but nobody's."""


def profile_of(*stacks: Sequence[int]) -> Profile:
    """A profile of stacks, from the leaf on; a mapping has the addresses of the program."""
    profile = Profile()
    profile.sample_types = [ValueType()]
    profile.leaf_kinds = np.array([LeafKind.EXACT], np.uint8)
    profile.mappings = Mappings.zeros(1)
    profile.mappings.start[0], profile.mappings.limit[0] = PROGRAM, 2 * PROGRAM
    profile.mappings.filename[0] = profile.strings.add(b"/opt/prog")
    frames = np.array([address for stack in stacks for address in stack], np.uint64)
    addresses, rows = np.unique(frames, return_inverse=True)
    is_own = (addresses >= PROGRAM) & (addresses < 2 * PROGRAM)
    profile.locations = Locations(
        addresses,
        np.where(is_own, 0, -1).astype(np.int32),
        np.zeros(len(addresses), np.bool_),
        np.zeros(len(addresses) + 1, np.int64),
    )
    profile.samples = Samples(
        offsets_of(np.array([len(stack) for stack in stacks])),
        rows.astype(np.int32),
        np.ones((len(stacks), 1), np.int64),
        np.zeros(len(stacks) + 1, np.int64),
    )
    return profile


def exact(*stacks: Sequence[int]) -> list[int]:
    """The addresses of the program that are exact, from its begin on."""
    profile = profile_of(*stacks)
    found = profile.locations.address[exact_leaves(profile)].tolist()
    return [address - PROGRAM for address in found if PROGRAM <= address < 2 * PROGRAM]


def call_sites(*stacks: Sequence[int]) -> list[int]:
    """The addresses of the program that are call sites, from its begin on."""
    profile = profile_of(*stacks)
    found = profile.locations.address[call_site_mask(profile, is_sound=False)].tolist()
    return [address - PROGRAM for address in found if PROGRAM <= address < 2 * PROGRAM]


def test_leaves() -> None:
    """What was sampled, and where the kernel was entered from a process."""
    assert exact([PROGRAM + 1, PROGRAM + 2]) == [1]
    assert exact([KERNEL, KERNEL + 8, PROGRAM + 1, PROGRAM + 2]) == [1]


def test_a_number_that_looks_like_the_kernel() -> None:
    """A walk along frame pointers reads any number. What follows one is neither exact nor found behind known code."""
    stack = [PROGRAM + 1, UPPER, PROGRAM + 2, PROGRAM + 3]
    assert exact(stack) == [1]
    assert exact([KERNEL, *stack]) == [1]
    assert call_sites(stack) == []
    assert call_sites([KERNEL, PROGRAM + 1, PROGRAM + 2, NOTHING, PROGRAM + 3]) == [2]


def test_a_program_that_is_being_replaced() -> None:
    """In execve the address is still that of the program before, in the memory of the new one; nothing called it."""
    assert exact([KERNEL, PROGRAM + 1]) == []
    assert exact([PROGRAM + 1]) == [1]


def test_samples_without_frames() -> None:
    """They have no leaf."""
    assert exact([], [PROGRAM + 1], [], [KERNEL, PROGRAM + 2, PROGRAM + 3], []) == [1, 2]
