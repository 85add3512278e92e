"""The binaries that may be what ran, and how each was found."""

import os
from collections.abc import Iterable
from typing import NamedTuple

from symbolize.binaries import BinaryMatch
from symbolize.symbols import Binary

HOW_FOUND = ("special", "path", "name", "build id", "debug file")
"""How a candidate was found, the likeliest first. One of these alone decides only where nothing else does."""


class Candidate(NamedTuple):
    """A binary that may be what ran: how it was found (one of HOW_FOUND), its files, and the opened binary."""

    how: str
    match: BinaryMatch
    binary: Binary

    @property
    def path(self) -> str:
        """The first file, which represents all."""
        return self.binary.images[0].path

    @property
    def described(self) -> str:
        """The first file with its build id, for a message."""
        return f"{self.path} ({self.binary.images[0].build_id or 'no build id'})"


def closeness(candidate: Candidate, filename: str) -> tuple[int, int]:
    """How near a candidate lies to the recorded path `filename`, the nearest the least: how it was found, and how many
    names they end with in common, all if it is the very path.

    Of several containers or folders with one layout that says which, and it proves nothing.
    """
    wanted = filename.split("/")[::-1]
    paths = [os.path.abspath(image.path) for image in candidate.binary.files]
    common = max(shared_begin(path.split("/")[::-1], wanted) for path in paths)
    return HOW_FOUND.index(candidate.how), -common


def shared_begin(one: list[str], other: list[str]) -> int:
    """How many items two lists begin with in common."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def ordered(candidates: Iterable[Candidate], filename: str = "") -> list[Candidate]:
    """The candidates in an order that does not depend on that of folders, the nearest to the recorded path first."""
    return sorted(candidates, key=lambda each: (closeness(each, filename), each.binary.rank, each.path))
