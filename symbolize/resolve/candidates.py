"""The binaries that may be what ran, and how each was found."""

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


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates in an order that does not depend on that of folders."""
    return sorted(candidates, key=lambda each: (HOW_FOUND.index(each.how), each.binary.rank, each.path))
