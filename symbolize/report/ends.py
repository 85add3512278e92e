"""How much of a profile is in stacks that end before the code that began them."""

from typing import Final

import numpy as np

from symbolize.analysis import FrameFlag, Stacks
from symbolize.analysis.frames import Texts
from symbolize.core.arrays import Bool, Float64, Int32, marked
from symbolize.profile import NONE, Profile

KERNEL: Final = 1 << 63
"""Addresses of the kernel begin here."""

MAX_NOISE: Final = 8
"""Frames that are looked behind for code, from the root."""

# fmt: off
ENTRIES: Final = {
    "start", "start_c", "start_main", "libc_start_main", "libc_start_main_impl", "libc_start_call_main",
    "libc_init", "dl_start", "dl_start_user", "main", "clone", "clone2", "clone3", "start_thread",
    "thread_start", "pthread_start", "ret_from_fork", "rt0_amd64", "rt0_amd64_linux", "runtime.goexit",
    "runtime.mstart", "runtime.rt0_go", "runtime.mcall", "runtime.systemstack", "runtime.morestack",
}
# fmt: on
"""Functions that begin a program, a thread or a goroutine, without the underscores in front."""


def early_value(stacks: Stacks, values: Float64, keys: Int32, names: Texts) -> float:
    """The value of the stacks that end early in user code, though another frame was looked for along frame pointers
    (R481, stacks that end early). `values` are those of the stacks, `keys` the rows of the frames in `names`."""
    profile, begin, end = stacks.profile, stacks.location_offsets[:-1], stacks.location_offsets[1:]
    outer = stacks.frame_offsets[1:] - 1
    is_user = np.zeros(len(outer), np.bool_)  # those behind are of samples without a stack
    is_user[: len(profile.locations)] = profile.locations.address < KERNEL
    is_named = (stacks.flags[outer] & FrameFlag.UNSYMBOLIZED) == 0
    is_code = is_user & is_named
    is_code[: len(profile.locations)] |= is_user[: len(profile.locations)] & _is_mapped(profile)

    rows = np.flatnonzero(end > begin)
    rows = rows[is_user[stacks.locations[end[rows] - 1]]]
    last = end[rows] - 1
    for _ in range(MAX_NOISE):
        last -= ~is_code[stacks.locations[last]] & (last > begin[rows])
    location = stacks.locations[last]
    key, is_noise = keys[outer[location]], ~is_code[location]
    is_alone = (last == begin[rows]) | ~is_code[stacks.locations[last - 1]]

    is_inner = np.ones(len(stacks.locations), np.bool_)
    is_inner[last] = False
    is_called = is_code & marked(stacks.locations, len(outer), is_inner)
    has_callers = marked(keys[outer[is_called]], len(names))
    is_entry = marked(key[~is_noise & ~is_alone], len(names)) & ~has_callers
    for row in np.flatnonzero(marked(key[~is_noise], len(names))).tolist():
        is_entry[row] |= names[row].lstrip("_").removeprefix("GI_").lstrip("_").removesuffix(".abi0") in ENTRIES
    return float(values[rows[is_noise | (is_named[location] & ~is_entry[key])]].sum())


def _is_mapped(profile: Profile) -> Bool:
    """Which locations are in what was mapped: others are what else the register of the frame pointer led to."""
    mapping, filename = profile.locations.mapping, np.append(profile.mappings.filename, 0)
    found: Bool = (mapping != NONE) & ~np.isin(filename[mapping], (0, profile.strings.find(b"[unknown]")))
    return found
