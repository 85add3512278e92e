"""Which locations of a profile have names, and what its mappings say of that."""

from hashlib import sha256
from typing import Final

import numpy as np

from symbolize.core.arrays import Bool, Int64, offsets_of
from symbolize.profile.model import Profile

MARK: Final = 32
"""Digits of the mark of samples."""


def lines_per_location(profile: Profile, wanted: Bool) -> Int64:
    """How many of the lines that `wanted` selects each location has: int64[n]."""
    total = offsets_of(wanted)
    offsets = profile.locations.line_offsets
    count: Int64 = total[offsets[1:]] - total[offsets[:-1]]
    return count


def named_locations(profile: Profile) -> Bool:
    """Which locations have a line whose function has a name: bool[n]."""
    return lines_per_location(profile, profile.functions.name[profile.locations.lines.function] != 0) > 0


def samples_mark(profile: Profile) -> str:
    """A text that is the same for results of the same samples: of their time, number and sums, in hex."""
    values = profile.samples.values
    facts = profile.time_nanos, len(values), sorted(values.sum(axis=0).tolist())
    return sha256(repr(facts).encode()).hexdigest()[:MARK]


def set_flags(profile: Profile, touched: Bool) -> None:
    """Make the `has_*` flags of the mappings `touched` true to the lines of their locations."""
    locations, mappings = profile.locations, profile.mappings
    lines = locations.lines
    filename = profile.functions.filename[lines.function] if len(lines) else np.zeros(0, np.int32)
    facts = {
        "has_functions": named_locations(profile),
        "has_filenames": lines_per_location(profile, filename > 0) > 0,
        "has_line_numbers": lines_per_location(profile, lines.line > 0) > 0,
        "has_inline_frames": np.diff(locations.line_offsets) > 1,
    }
    for flag, fact in facts.items():
        found = np.zeros(len(mappings), np.bool_)
        found[locations.mapping[fact & (locations.mapping >= 0)]] = True
        setattr(mappings, flag, np.where(touched, found, getattr(mappings, flag)))
