"""Marks the frames that were put back where tail calls had taken them off the stacks (R360, frames of tail calls)."""

from typing import Final

import numpy as np

from symbolize.core.arrays import Int64, distinct_inverse, ranges
from symbolize.profile import NONE, Functions, Profile

SUFFIX: Final = b" [tail call]"


def mark_tail_callers(profile: Profile, rows: Int64) -> None:
    """Append SUFFIX to the names of the functions of the locations `rows`; linked names stay."""
    locations, functions = profile.locations, profile.functions
    counts = np.diff(locations.line_offsets)[rows]
    lines = ranges(locations.line_offsets[:-1][rows], counts)
    lines = lines[locations.lines.function[lines] != NONE]
    used, which = distinct_inverse(locations.lines.function[lines])
    marked = functions.take(used)
    named = np.flatnonzero(marked.name)
    texts = [profile.strings[number] + SUFFIX for number in marked.name[named].tolist()]
    marked.name[named] = profile.strings.add_all(texts)
    profile.functions = Functions.joined([functions, marked])
    locations.lines.function[lines] = len(functions) + which
