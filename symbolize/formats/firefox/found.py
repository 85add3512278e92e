"""What was found for the addresses of a processed profile."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import NONE, Bool, UInt64, first_of_runs
from symbolize.core.errors import UsageError
from symbolize.formats.firefox.tables import Document
from symbolize.profile.model import Profile

SymbolsOf = Callable[[Profile], tuple[UInt64, UInt64]]
"""What gives, for each location, how far its address is from the begin of its symbol, and the size of that, 0 if it is
not known."""


class SiteFrame(NamedTuple):
    """A frame at a site."""

    name: str
    file: str
    line: int


class SiteNames(NamedTuple):
    """What was found for a site: the frames, outermost first, the address of its symbol, and the size of that."""

    frames: tuple[SiteFrame, ...]
    symbol: int
    size: int


Found = dict[int, SiteNames]
"""What was found, by site."""


class FoundSites:
    """The names that were found for the sites of a document, each once. `symbols_of` says where symbols begin."""

    def __init__(self, document: Document, symbols_of: SymbolsOf) -> None:
        self.document, self._symbols_of = document, symbols_of
        self.found: Found = {}
        self._modules: set[int] = set()
        document.has_all_frames = True  # those of markers too

    @property
    def addresses(self) -> int:
        """How many addresses have names."""
        return len(self.found)

    @property
    def modules(self) -> int:
        """How many binaries they are in."""
        return len(self._modules)

    def add(self, profile: Profile, resolved: Bool) -> None:
        """Take the lines of the locations `resolved` (bool[n]), which a lookup found. Of a location that was split by
        its callers the part counts that shows what the others share.

        Raises UsageError if the profile is not of such a document.
        """
        locations, lines, text = profile.locations, profile.locations.lines, profile.strings.text
        if len(locations.source_row) != len(locations):
            raise UsageError("names for a profile of the Firefox Profiler can only be those of its own addresses")
        rows = np.flatnonzero(resolved & locations.has_lines() & (locations.source_row != NONE))
        rows = rows[np.argsort(locations.source_row[rows], kind="stable")]
        rows = rows[first_of_runs(locations.source_row[rows])]
        distance, size = self._symbols_of(profile)
        for row in rows.tolist():
            frames = []
            for at in range(int(locations.line_offsets[row + 1]) - 1, int(locations.line_offsets[row]) - 1, -1):
                function = int(lines.function[at])
                name = text(int(profile.functions.name[function]))
                frames.append(SiteFrame(name, text(int(profile.functions.filename[function])), int(lines.line[at])))
            symbol = max(int(locations.address[row]) - int(distance[row]), 0)
            self.found[int(locations.source_row[row])] = SiteNames(tuple(frames), symbol, int(size[row]))
            self._modules.add(int(locations.mapping[row]))
