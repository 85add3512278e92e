"""Folded stacks: a line for each stack, from the root to the leaf, and a count (R342, folded stacks)."""

import re
from typing import Final

from symbolize.core.arrays import NONE
from symbolize.core.interning import random_mixer
from symbolize.formats.content import HEAD, Content
from symbolize.formats.folded import scan as scanning
from symbolize.formats.model import LoadedProfile, LoadOptions, only
from symbolize.formats.samples import MAX_LINE, NamedStacks, TextFrame, whole_lines
from symbolize.formats.stand_ins import in_call, place_of
from symbolize.names.stand_ins import StandIn, stand_in

TWO_COUNTS: Final = re.compile(rb".*\S\s\d+ \d+\s*\Z", re.DOTALL)
TYPES: Final = re.compile(rb"[^\s/;]+/[^\s/;]*(?: [^\s/;]+/[^\s/;]*)+\s*\Z")
"""The first line of stacks with several counts: what each is of, and its unit."""
SEPARATOR: Final = b";"

SNIFFED: Final = 100


def sniffed(head: bytes | memoryview) -> list[bytes]:
    """The first whole lines that are no comments."""
    lines = bytes(head).split(b"\n")
    if len(head) >= HEAD:
        lines.pop()
    return [line for line in lines[:SNIFFED] if line.strip() and not line.startswith(b"#")]


def has_two_counts(head: bytes | memoryview) -> bool:
    """Whether every line has two counts, as the difference of two recordings has."""
    lines = sniffed(head)
    return bool(lines) and all(map(TWO_COUNTS.match, lines)) and any(SEPARATOR in line for line in lines)


def has_types(head: bytes | memoryview) -> bool:
    """Whether the stacks have several counts, with a line that says of what, as pprofutils writes them."""
    lines = sniffed(head)
    return bool(lines) and TYPES.match(lines[0]) is not None


def matches(head: bytes | memoryview) -> bool:
    """Whether most lines have a count at their end, and some of these several frames: lines of another form are left
    out, as flamegraph.pl does."""
    lines = sniffed(head)
    if b"\0" in bytes(head) or has_two_counts(head) or has_types(head):
        return False
    stacks = [line for line in lines if is_stack(line)]
    return 2 * len(stacks) >= len(lines) and any(SEPARATOR in line for line in stacks)


def is_stack(line: bytes) -> bool:
    """Whether a line has a count at its end."""
    scan = scanning.FoldedScan(random_mixer(), MAX_LINE, len, len)
    scan.read(memoryview(line))
    return scan.skipped == 0


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The profile of a text, read in pieces. Names come with the profile; what stands in for one is looked up (R452,
    stand-ins).

    The address of a caller that stands in is one less; whether it was inside the call already is not known, and it is
    in both cases then. Lines with two counts are a difference of recordings, and refused. Other lines are read as
    flamegraph.pl does: one without a count is left out, and fractions add up, to a sum that is rounded (R342, folded
    stacks).
    """
    stacks = NamedStacks(content.name)
    leaves, callers = FrameLocations(stacks, False), FrameLocations(stacks, True)
    scan = scanning.FoldedScan(random_mixer(), MAX_LINE, leaves.__getitem__, callers.__getitem__)
    for text in whole_lines(content.pieces()):
        stacks.check(scan.read(memoryview(text)))
    if scan.skipped:
        first = f"the first is line {scan.first_skipped}"
        stacks.warnings.append(f"Lines that are no folded stacks: {scan.skipped}, {first}; they are left out.")
    offsets, locations, sums = scan.arrays()
    if scan.fractions:
        stacks.warnings.append(
            f"Counts with fractions: {scan.fractions}; the sum of each stack is rounded, so that {scan.total():,.2f} "
            f"in all became {int(sums.sum())}."
        )
    return only(stacks.profile([(b"samples", b"count")], offsets, locations, sums[:, None]))


class FrameLocations(dict[bytes, int]):
    """The locations of frames, which are made when they are asked for."""

    def __init__(self, stacks: NamedStacks, is_caller: bool) -> None:
        super().__init__()
        self._stacks, self._is_caller = stacks, is_caller

    def __missing__(self, text: bytes) -> int:
        self[text] = location = _location(self._stacks, text, self._is_caller)
        return location


def _location(stacks: NamedStacks, text: bytes, is_caller: bool) -> int:
    """The location of a frame: a name, or what a stand-in for one tells; addresses of callers are inside the call."""
    text = text.strip()
    found = stand_in(text) if text else StandIn()
    if found is None or found.is_in_function:
        return stacks.location(NONE, 0, [TextFrame(text)])
    mapping, address = place_of(in_call(found) if is_caller else found)
    row = stacks.mapping(mapping) if mapping is not None else NONE
    return stacks.location(row, address, (), found.function_start)
