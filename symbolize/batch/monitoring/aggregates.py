"""Sums over the profiles of a batch, in bounded memory: coverage, and what is missing by binary."""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from symbolize.core.closing import Closeable
from symbolize.core.errors import OutputError

MAX_PENDING: Final = 4096
"""Binaries whose sums are in memory, some megabytes; all are in a temporary database."""
MAX_NAME: Final = 255
MAX_BUILD_ID: Final = 160
MAX_DETAIL: Final = 300
MAX_LISTED: Final = 16
"""Files, and types of values, that are listed for a binary."""
PARTS: Final = 100
"""Steps of a percent in which coverage is counted for medians."""

TABLE: Final = (
    "CREATE TABLE binaries (name BLOB, build_id BLOB, missing REAL, share REAL, sums TEXT, "
    "PRIMARY KEY (name, build_id)) WITHOUT ROWID"
)


@dataclass
class BinarySums:
    """Sums over the profiles that use a binary. Shares are parts of the value of a profile, added up."""

    build_id: str
    name: str
    profiles: int = 0
    locations: int = 0
    symbolized: int = 0
    share: float = 0.0
    missing: float = 0.0
    detail: str = ""
    misses: dict[str, tuple[int, float]] = field(default_factory=dict)
    amounts: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Name and build id as bytes, in which the database orders them."""
        name, build_id = (text.encode("utf-8", "surrogatepass") for text in (self.name, self.build_id))
        return name, build_id

    def add(self, other: BinarySums) -> None:
        """Add sums over other profiles. Of files and types of values the first MAX_LISTED by name are kept."""
        self.profiles += other.profiles
        self.locations += other.locations
        self.symbolized += other.symbolized
        self.share += other.share
        self.missing += other.missing
        self.detail = self.detail or other.detail
        add_pairs(self.misses, other.misses)
        add_pairs(self.amounts, other.amounts)
        self.amounts = dict(sorted(self.amounts.items())[:MAX_LISTED])
        self.files = set(sorted(self.files | other.files)[:MAX_LISTED])

    def to_json(self) -> str:
        """The sums as JSON."""
        fields = vars(self) | {"amounts": [*self.amounts.items()], "files": [*self.files]}
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> BinarySums:
        """The sums that `to_json` wrote, with the misses in order of their share."""
        fields = json.loads(text)
        misses = sorted(fields["misses"].items(), key=lambda miss: (-miss[1][1], -miss[1][0], miss[0]))
        fields["misses"] = {reason: (count, share) for reason, (count, share) in misses}
        fields["amounts"] = {(kind, unit): (value, named) for (kind, unit), (value, named) in fields["amounts"]}
        return cls(**fields | {"files": set(fields["files"])})


def add_pairs(sums: dict[Any, Any], others: dict[Any, Any]) -> None:
    """Add pairs of numbers key by key."""
    for key, (first, second) in others.items():
        before = sums.get(key, (0, 0))
        sums[key] = before[0] + first, before[1] + second


class BinaryAggregates(Closeable):
    """The sums of every binary: of all mappings with the same build id and base name of a file.

    Each type of values has a sum of its own. Shares are comparable between all types: the part of the value of a
    profile that is in a binary, or of its locations if all values are 0.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[str, str], BinarySums] = {}
        self._base = sqlite3.connect("", isolation_level=None)  # a temporary file, removed when closed
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
            self._base.execute(f"PRAGMA {pragma}")
        self._base.execute(TABLE)

    def close(self) -> None:
        """Remove the temporary database."""
        self._base.close()

    def add(self, coverage: dict[str, Any]) -> None:
        """Count the mappings of a profile."""
        by_value = coverage["value"] > 0
        whole = coverage["value"] if by_value else coverage["locations"]
        kind = coverage["sample_type"][:MAX_NAME], coverage["unit"][:MAX_NAME]
        counted = set()
        for mapping in coverage["mappings"]:
            key = mapping["build_id"][:MAX_BUILD_ID], base_name(mapping["name"])
            sums = self._pending.get(key)
            if sums is None:
                sums = self._pending[key] = BinarySums(*key)
            if key not in counted:
                counted.add(key)
                sums.profiles += 1
            amount, symbolized = mapping["value"], mapping["symbolized_value"]
            sums.locations += mapping["locations"]
            sums.symbolized += mapping["symbolized_locations"]
            sums.share += (amount if by_value else mapping["locations"]) / whole
            before = sums.amounts.get(kind, (0.0, 0.0))
            sums.amounts[kind] = before[0] + amount, before[1] + symbolized
            for miss in mapping["misses"]:
                share = (miss["value"] if by_value else miss["locations"]) / whole
                sums.missing += share
                missed = sums.misses.get(miss["reason"], (0, 0.0))
                sums.misses[miss["reason"]] = missed[0] + miss["locations"], missed[1] + share
            sums.detail = sums.detail or mapping["detail"][:MAX_DETAIL]
            if len(sums.files) < MAX_LISTED:
                sums.files.update(mapping["files"][:MAX_LISTED])
        if len(self._pending) >= MAX_PENDING:
            self._flush()

    def _flush(self) -> None:
        """Add what is in memory to the database."""
        with database_errors():
            self._base.execute("BEGIN")
            for sums in self._pending.values():
                query = "SELECT sums FROM binaries WHERE name = ? AND build_id = ?"
                before = self._base.execute(query, sums.key).fetchone()
                whole = BinarySums.from_json(before[0]) if before else BinarySums(sums.build_id, sums.name)
                whole.add(sums)
                self._base.execute(
                    "INSERT OR REPLACE INTO binaries VALUES (?, ?, ?, ?, ?)",
                    (*whole.key, whole.missing, whole.share, whole.to_json()),
                )
            self._base.execute("COMMIT")
        self._pending.clear()

    def rows(self, limit: int = -1) -> Iterator[BinarySums]:
        """The binaries, at most `limit`: those that miss most first, then those with the largest share."""
        self._flush()
        order = "SELECT sums FROM binaries ORDER BY missing DESC, share DESC, name, build_id LIMIT ?"
        with database_errors():
            for (text,) in self._base.execute(order, (limit,)):
                yield BinarySums.from_json(text)


@contextmanager
def database_errors() -> Iterator[None]:
    """Raise errors of the database, as of a full disk, as OutputError."""
    try:
        yield
    except sqlite3.Error as error:
        raise OutputError(f"temporary database for sums over binaries: {error}") from error


class Percents:
    """A distribution of percentages, to a hundredth."""

    def __init__(self) -> None:
        self._counts = [0] * (100 * PARTS + 1)
        self._sum = 0.0
        self.count = 0

    def add(self, percent: float) -> None:
        """Count one."""
        percent = min(max(percent, 0.0), 100.0)
        self._counts[int(percent * PARTS + 1e-6)] += 1
        self._sum += percent
        self.count += 1

    @property
    def mean(self) -> float:
        """The mean; 0 if there are none."""
        return self._sum / self.count if self.count else 0.0

    def reached_by(self, part: float) -> float:
        """The percentage that this part of them reaches: the median for 0.5; 0 if there are none."""
        below, allowed = 0, (1 - part) * self.count + 1e-6
        for percent, count in enumerate(self._counts):
            below += count
            if below > allowed:
                return percent / PARTS
        return 0.0


def has_values(coverage: dict[str, Any]) -> bool:
    """Whether a profile has samples with values, so that there is a percentage of them."""
    return bool(coverage.get("sample_value", coverage["value"]))  # older manifests have that of frames only


def base_name(path: str) -> str:
    """The file name of a mapping, without the mark of a deleted file."""
    return posixpath.basename(path.removesuffix(" (deleted)"))[:MAX_NAME]
