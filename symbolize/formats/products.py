"""What a profile has by reference: in a small input many rows may refer to one that is large."""

from typing import Final

import numpy as np

from symbolize.core.budget import Budget
from symbolize.profile.model import Profile

FREE_FRAMES: Final = 1 << 24
MAX_FRAMES_RATIO: Final = 64
"""Frames on all stacks with those that are inlined: in any case, and for each place on a stack and each line. Two or
three calls are inlined into one on average, some thirty in the deepest."""
FRAMES: Final = "has {spent:,} frames or more, {times:,.0f} times its places on stacks and lines, as only a bomb has"

VALUES: Final = (
    1 << 24,
    512,
    "has samples with {spent:,} values, {times:,.0f} for each record, as only a bomb has",
    1 << 28,
)
"""Values of samples that have some for each event: in any case, and for each record, and the most."""

ROW: Final = 64
FREE_TEXTS: Final = 32 << 20
MAX_TEXTS_RATIO: Final = 4
"""Bytes of the texts that become one for each mapping, comment and sample type: in any case, and for each byte of the
strings, of which each such row has ROW more."""
TEXTS: Final = "repeats texts of {spent:,} bytes, {times:,.0f} times its strings, as only a bomb does"


def check_products(profile: Profile, source: str) -> None:
    """Raise InputError for a profile whose stacks have the lines of few locations far too often, or whose mappings,
    comments and sample types have few strings far too often (R276, size of tables)."""
    samples, lines = profile.samples, np.diff(profile.locations.line_offsets)
    frames = Budget(source, len(samples.locations) + int(lines.sum()), FREE_FRAMES, MAX_FRAMES_RATIO, FRAMES)
    frames.spend_by_reference(lines, samples.locations)
    mappings, strings = profile.mappings, profile.strings.array()
    rows = np.concatenate(
        (mappings.filename, mappings.build_id, profile.comments, np.ravel(profile.sample_types))
    ).astype(np.int64)
    texts = Budget(source, len(strings.data) + ROW * len(rows), FREE_TEXTS, MAX_TEXTS_RATIO, TEXTS)
    texts.spend(int(strings.only(rows).lengths().sum()))
