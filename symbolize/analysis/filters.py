"""Choosing samples and frames by regular expressions, with the meaning that pprof gives them."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from symbolize.core.arrays import Bool, offsets_of, taken
from symbolize.core.errors import UsageError
from symbolize.profile import NONE, Profile

if TYPE_CHECKING:
    from symbolize.analysis.frames import ShownFrames
    from symbolize.analysis.stacks import Stacks


@dataclass(frozen=True)
class Filters:
    """Regular expressions that are searched in the name and source file of a function and in the path of its mapping.

    `focus` keeps the samples with a match on their stack, `ignore` drops them; `hide` removes the frames that match and
    `show` all others. A sample without frames left is dropped. Empty expressions do nothing.
    """

    focus: str = ""
    ignore: str = ""
    hide: str = ""
    show: str = ""

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


def filtered(stacks: Stacks, shown: ShownFrames, profile: Profile, filters: Filters) -> Stacks:
    """What `filters` leave of `stacks`. Raises UsageError for an invalid expression."""
    location = shown.locations()
    sample = np.repeat(np.arange(len(stacks)), np.diff(stacks.location_offsets))

    def matching(name: str) -> Bool | None:
        pattern = getattr(filters, name)
        return frames_matching(shown, location, profile, compiled(name, pattern)) if pattern else None

    def has_match(frames: Bool) -> Bool:
        of_location = np.bitwise_or.reduceat(frames, shown.offsets[:-1]) if len(frames) else frames
        found = np.zeros(len(stacks), np.bool_)
        found[sample[taken(of_location, stacks.locations)]] = True
        return found

    kept = np.ones(len(stacks), np.bool_)
    if (focus := matching("focus")) is not None:
        kept &= has_match(focus)
    if (ignore := matching("ignore")) is not None:
        kept &= ~has_match(ignore)
    visible = np.ones(len(shown.frames), np.bool_)
    if (hide := matching("hide")) is not None:
        visible &= ~hide
    if (show := matching("show")) is not None:
        visible &= show
    kept &= has_match(visible)
    counts = np.diff(stacks.location_offsets)
    return replace(
        stacks,
        frame_offsets=offsets_of(np.bincount(location[visible], minlength=len(shown.offsets) - 1)),
        frames=stacks.frames[visible],
        flags=stacks.flags[visible],
        sources=stacks.sources[visible],
        lines=stacks.lines[visible],
        location_offsets=offsets_of(counts[kept]),
        locations=stacks.locations[np.repeat(kept, counts)],
        values=stacks.values[kept],
    )


def compiled(name: str, pattern: str) -> re.Pattern[str]:
    """The expression of the filter `name`."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{name}: {pattern!r} is not a regular expression: {error}") from error


def frames_matching(shown: ShownFrames, location: np.ndarray, profile: Profile, pattern: re.Pattern[str]) -> Bool:
    """Which frames match by name, source file or mapping: bool[m]."""
    strings, functions, mappings = profile.strings, profile.functions, profile.mappings
    texts: dict[int, bool] = {0: False}

    def match(row: int) -> bool:
        if row not in texts:
            texts[row] = pattern.search(strings.text(row)) is not None
        return texts[row]

    by_function = np.array(
        [match(a) or match(b) for a, b in zip(functions.name.tolist(), functions.filename.tolist(), strict=True)]
        + [False],
        np.bool_,
    )
    by_mapping = np.array([match(row) for row in mappings.filename.tolist()] + [False], np.bool_)
    function = np.full(len(shown.lines), NONE, np.int64)
    has_line = shown.lines >= 0
    function[has_line] = profile.locations.lines.function[shown.lines[has_line]]
    found: Bool = by_function[function] | by_mapping[profile.locations.mapping[location]]
    return found
