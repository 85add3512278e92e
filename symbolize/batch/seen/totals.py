"""Sums over the profiles of a batch, in bounded memory: coverage, and what is missing by binary."""

from __future__ import annotations

import posixpath
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self

from symbolize.errors import OutputError

MAX_PENDING: Final = 4096
"""Binaries whose sums are in memory; those of all are in a temporary database. Some megabytes."""
MAX_NAME: Final = 255
MAX_BUILD_ID: Final = 160
MAX_DETAIL: Final = 300
MAX_LISTED: Final = 16
"""Files, and types of values, that are told of one binary."""
PARTS: Final = 100
"""Parts of a percent in which coverage is told apart for medians."""

TABLES: Final = """
CREATE TABLE binaries (
    build_id BLOB, name BLOB, profiles INTEGER, locations INTEGER, symbolized INTEGER, share REAL, missing REAL,
    detail BLOB, PRIMARY KEY (build_id, name)) WITHOUT ROWID;
CREATE TABLE misses (
    build_id BLOB, name BLOB, reason TEXT, locations INTEGER, share REAL,
    PRIMARY KEY (build_id, name, reason)) WITHOUT ROWID;
CREATE TABLE amounts (
    build_id BLOB, name BLOB, type BLOB, unit BLOB, value REAL, symbolized REAL,
    PRIMARY KEY (build_id, name, type, unit)) WITHOUT ROWID;
CREATE TABLE files (build_id BLOB, name BLOB, path BLOB, PRIMARY KEY (build_id, name, path)) WITHOUT ROWID;
"""


@dataclass
class BinarySums:
    """What profiles have of one binary. Shares are sums over profiles: the part of the value of each."""

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


class Binaries:
    """The sums of every binary: of all mappings with the same build id and base name of a file. A context manager.

    Values of different types cannot be added up, so each type has a sum of its own. What all profiles have in common
    are shares: the part of the value of a profile that is in a binary, or of its locations where all values are 0.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[str, str], BinarySums] = {}
        self._base = sqlite3.connect("", isolation_level=None)  # a file of its own that is gone when closed
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
            self._base.execute(f"PRAGMA {pragma}")
        self._base.executescript(TABLES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary database."""
        self._base.close()

    def add(self, coverage: dict[str, Any]) -> None:
        """Count the mappings of a profile."""
        by_value = coverage["value"] > 0
        whole = coverage["value"] if by_value else coverage["locations"]
        kind = coverage["sample_type"][:MAX_NAME], coverage["unit"][:MAX_NAME]
        met = set()
        for mapping in coverage["mappings"]:
            key = mapping["build_id"][:MAX_BUILD_ID], base_name(mapping["name"])
            sums = self._pending.get(key)
            if sums is None:
                sums = self._pending[key] = BinarySums(*key)
            if key not in met:
                met.add(key)
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
        with told_as_output_error():
            self._store([*self._pending.values()])
        self._pending.clear()

    def _store(self, pending: list[BinarySums]) -> None:
        base = self._base
        keys = [(packed(sums.build_id), packed(sums.name)) for sums in pending]
        both = list(zip(keys, pending, strict=True))
        base.execute("BEGIN")
        base.executemany(
            "INSERT INTO binaries VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "profiles = profiles + excluded.profiles, locations = locations + excluded.locations, "
            "symbolized = symbolized + excluded.symbolized, share = share + excluded.share, "
            "missing = missing + excluded.missing, "
            "detail = CASE WHEN length(detail) THEN detail ELSE excluded.detail END",
            [
                (*key, sums.profiles, sums.locations, sums.symbolized, sums.share, sums.missing, packed(sums.detail))
                for key, sums in both
            ],
        )
        base.executemany(
            "INSERT INTO misses VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "locations = locations + excluded.locations, share = share + excluded.share",
            [(*key, reason, *miss) for key, sums in both for reason, miss in sums.misses.items()],
        )
        base.executemany(
            "INSERT INTO amounts VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "value = value + excluded.value, symbolized = symbolized + excluded.symbolized",
            [
                (*key, packed(kind), packed(unit), *amount)
                for key, sums in both
                for (kind, unit), amount in sums.amounts.items()
            ],
        )
        base.executemany(
            "INSERT OR IGNORE INTO files VALUES (?, ?, ?)",
            [(*key, packed(path)) for key, sums in both for path in sums.files],
        )
        base.execute("COMMIT")

    def rows(self, limit: int = -1) -> Iterator[BinarySums]:
        """The binaries, or so many: those first that miss the most, then those with the largest share."""
        self._flush()
        with told_as_output_error():
            yield from self._rows(limit)

    def _rows(self, limit: int) -> Iterator[BinarySums]:
        order = self._base.execute(
            "SELECT * FROM binaries ORDER BY missing DESC, share DESC, name, build_id LIMIT ?", (limit,)
        )
        for build_id, name, profiles, locations, symbolized, share, missing, detail in order:
            key = build_id, name, MAX_LISTED
            misses = self._base.execute(
                "SELECT reason, locations, share FROM misses WHERE build_id = ? AND name = ? "
                "ORDER BY share DESC, locations DESC, reason",
                key[:2],
            )
            amounts = self._base.execute(
                "SELECT type, unit, value, symbolized FROM amounts WHERE build_id = ? AND name = ? LIMIT ?", key
            )
            files = self._base.execute("SELECT path FROM files WHERE build_id = ? AND name = ? LIMIT ?", key)
            yield BinarySums(
                unpacked(build_id),
                unpacked(name),
                profiles,
                locations,
                symbolized,
                share,
                missing,
                unpacked(detail),
                {reason: (count, part) for reason, count, part in misses},
                {(unpacked(kind), unpacked(unit)): (value, named) for kind, unit, value, named in amounts},
                {unpacked(path) for (path,) in files},
            )


@contextmanager
def told_as_output_error() -> Iterator[None]:
    """Have a full disk said in a line."""
    try:
        yield
    except sqlite3.Error as error:
        raise OutputError(f"temporary database for sums over binaries: {error}") from error


class Percents:
    """Percentages, to a hundredth, as how often each occurs."""

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
        """The mean; 100 of nothing."""
        return self._sum / self.count if self.count else 100.0

    def reached_by(self, part: float) -> float:
        """The percentage that this part of them has at least: the median for 0.5; 100 of nothing."""
        below, allowed = 0, (1 - part) * self.count + 1e-6
        for percent, count in enumerate(self._counts):
            below += count
            if below > allowed:
                return percent / PARTS
        return 100.0


def base_name(path: str) -> str:
    """The name of a mapping without folders, and without what the system appends to a file that is gone."""
    return posixpath.basename(path.removesuffix(" (deleted)"))[:MAX_NAME]


def packed(text: str) -> bytes:
    """Any text, also half a surrogate pair, as the database keeps it."""
    return text.encode("utf-8", "surrogatepass")


def unpacked(data: bytes) -> str:
    """The text again."""
    return data.decode("utf-8", "surrogatepass")
