"""Folded stacks: a line for each stack, from the root to the leaf, and a count (R342, folded stacks)."""

import re
from collections.abc import Iterator
from typing import Final

from symbolize.core.arrays import NONE, TOP
from symbolize.core.interning import random_mixer
from symbolize.load.legacy import folded_scan as scanning
from symbolize.load.legacy.named_stacks import MAX_LINE, NamedStacks, whole_lines
from symbolize.load.legacy.samples import Frame
from symbolize.load.streams import HEAD
from symbolize.profile.model import AddressKind, Profile

TWO_COUNTS: Final = re.compile(rb".*\S\s\d+ \d+\s*\Z", re.DOTALL)
SEPARATOR: Final = b";"

IN_MODULE: Final = re.compile(rb"\[?([^\s()<>\[\]:]*[^\s()<>\[\]:+])\]?\+0x([0-9a-fA-F]{1,16})\Z")
"""`module+0xoffset`, which no name of a function with parameters or templates is."""

MODULE: Final = re.compile(rb"\[([^\s()<>\[\]]+(?:\.so\b[^\s\]]*|\.ko|\.exe|\.dll)|/[^\[\]]+)\]\Z")
"""A module whose functions are not known."""

UNKNOWN: Final = frozenset({b"[unknown]", b"unknown", b"??", b"0x0"})
SNIFFED: Final = 100
MAX_NAME: Final = 1 << 12
"""Longer frames are names."""


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


def matches(head: bytes | memoryview) -> bool:
    """Whether every line has a count at its end and some have several frames."""
    lines = sniffed(head)
    if not any(SEPARATOR in line for line in lines) or b"\0" in bytes(head) or has_two_counts(head):
        return False
    scan = scanning.Scan(random_mixer(), MAX_LINE, len, len)
    scan.read(memoryview(b"\n".join(lines)))
    return scan.skipped == 0


def load(pieces: Iterator[bytes], source: str) -> Profile:
    """Read the text in pieces. Names come with the profile; `module+0xoffset` is looked up in the module."""
    stacks = NamedStacks(source)
    leaves, callers = Known(stacks, False), Known(stacks, True)
    scan = scanning.Scan(random_mixer(), MAX_LINE, leaves.__getitem__, callers.__getitem__)
    for text in whole_lines(pieces):
        stacks.check(scan.read(memoryview(text)))
    if scan.skipped:
        stacks.warnings.append(f"Lines that are no folded stacks: {scan.skipped}; they are left out.")
    offsets, locations, sums = scan.arrays()
    return stacks.profile([(b"samples", b"count")], offsets, locations, sums[:, None])


class Known(dict[bytes, int]):
    """The locations of frames, which are made when they are asked for."""

    def __init__(self, stacks: NamedStacks, is_caller: bool) -> None:
        super().__init__()
        self._stacks, self._is_caller = stacks, is_caller

    def __missing__(self, text: bytes) -> int:
        self[text] = location = _location(self._stacks, text, self._is_caller)
        return location


def _location(stacks: NamedStacks, text: bytes, is_caller: bool) -> int:
    """The location of a frame: a name, an offset in a module, a module, or nothing that is known."""
    text = text.strip()
    if len(text) > MAX_NAME:
        return stacks.location(NONE, 0, [Frame(text)])
    if found := IN_MODULE.match(text):
        offset = int(found[2], 16)
        mapping = stacks.mapping(0, TOP, 0, found[1], AddressKind.IN_FILE)
        return stacks.location(mapping, offset - (is_caller and offset > 0), ())
    if found := MODULE.match(text):
        return stacks.location(stacks.mapping(0, 0, 0, found[1], AddressKind.PROCESS), 0, ())
    if not text or text in UNKNOWN:
        return stacks.location(NONE, 0, ())
    return stacks.location(NONE, 0, [Frame(text)])
