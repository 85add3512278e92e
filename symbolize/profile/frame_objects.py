"""Stacks as objects, for tests, notebooks and small profiles."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from symbolize.core.arrays import NONE

if TYPE_CHECKING:
    from symbolize.profile.model import Profile


class Frame(NamedTuple):
    """One frame of a stack as `Profile.stacks` gives it. Empty texts and line 0 are unknown; `is_inlined` frames have
    the address of the frame that they are inlined into; `mapping` is the file that was mapped there."""

    function: str
    file: str
    line: int
    column: int
    is_inlined: bool
    address: int
    mapping: str


def frame_stacks(profile: "Profile") -> Iterator[tuple[Frame, ...]]:
    """See `Profile.stacks`."""
    made: dict[int, tuple[Frame, ...]] = {}
    offsets, locations = profile.samples.location_offsets.tolist(), profile.samples.locations
    for begin, end in pairwise(offsets):
        stack: list[Frame] = []
        for location in locations[begin:end].tolist():
            if location not in made:
                made[location] = tuple(_frames_of(profile, location))
            stack += made[location]
        yield tuple(stack)


def _frames_of(profile: "Profile", location: int) -> Iterator[Frame]:
    """The frames of one location, innermost first."""
    locations, functions, strings = profile.locations, profile.functions, profile.strings
    address, mapping = int(locations.address[location]), int(locations.mapping[location])
    module = strings.text(profile.mappings.filename[mapping]) if mapping != NONE else ""
    begin, end = locations.line_offsets[location : location + 2].tolist()
    if begin == end:
        yield Frame("", "", 0, 0, False, address, module)
    for row in range(begin, end):
        function = locations.lines.function[row]
        line, column = int(locations.lines.line[row]), int(locations.lines.column[row])
        name, file = (strings.text(each[function]) for each in (functions.name, functions.filename))
        yield Frame(name, file, line, column, row + 1 < end, address, module)
