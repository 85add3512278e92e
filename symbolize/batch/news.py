"""What is new since the last run that reported it: inputs in quarantine, names that are missing, coverage (R402, new
failures)."""

import json
import time
from collections.abc import Iterable
from typing import Final

from symbolize.batch.manifest import IGNORED, UNREACHABLE, Manifest, State

REPORTED: Final = "reported"
"""The notes of inputs in quarantine that were reported: when they came there."""
MISSING: Final = "missing"
"""The notes of names that are missing."""
COVERAGE: Final = "coverage"
"""The notes of the coverage of the last run, by what it is of."""

KEY: Final = "CAST(number AS TEXT) || '@' || version"
"""The key of such a note: an input with the version of its content."""
NEWLY: Final = (
    f"FROM inputs LEFT JOIN notes ON kind = ? AND key = {KEY} "
    "WHERE turn = ? AND state = ? AND reason NOT IN (?, ?) AND key IS NULL"
)


class News:
    """Compares the inputs of a manifest, and names that are missing, with what earlier runs have reported."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    @property
    def _newly(self) -> tuple[object, ...]:
        return REPORTED, self._manifest.generation, State.QUARANTINED, UNREACHABLE, IGNORED

    def quarantined(self, limit: int = -1) -> list[tuple[str, str, str]]:
        """The inputs that are newly in quarantine, at most `limit`: each with the reason and detail. Servers that did
        not answer, and what is to be ignored, are none."""
        question = f"SELECT uri, reason, detail {NEWLY} ORDER BY number LIMIT ?"
        return [(uri, reason, detail) for uri, reason, detail in self._manifest.read(question, *self._newly, limit)]

    def count(self) -> int:
        """How many inputs are newly in quarantine."""
        return int(self._manifest.read(f"SELECT count(*) {NEWLY}", *self._newly)[0][0])

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that were not missing before."""
        known = {key for (key,) in self._manifest.read("SELECT key FROM notes WHERE kind = ?", MISSING)}
        return [name for name in names if note_key(name) not in known]

    def coverage(self) -> float | None:
        """The mean coverage in percent when it was reported last."""
        rows = self._manifest.read("SELECT value FROM notes WHERE kind = ? AND key = 'mean'", COVERAGE)
        return float(rows[0][0]) if rows else None

    def note_coverage(self, percent: float) -> None:
        """Note the mean coverage of this run."""
        with self._manifest.writing() as base:
            base.execute("INSERT OR REPLACE INTO notes (kind, key, value) VALUES (?, 'mean', ?)", (COVERAGE, percent))

    def note_reported(self, missing: Iterable[str]) -> None:
        """Note that all that is in quarantine, and the names that are missing, were reported."""
        with self._manifest.writing() as base:
            base.execute(
                "INSERT OR REPLACE INTO notes (kind, key, value) "
                f"SELECT ?, {KEY}, finished FROM inputs WHERE turn = ? AND state = ?",
                (REPORTED, self._manifest.generation, State.QUARANTINED),
            )
            base.executemany(
                "INSERT OR REPLACE INTO notes (kind, key, value) VALUES (?, ?, ?)",
                [(MISSING, note_key(name), time.time()) for name in missing],
            )

    def forget_settled(self, missing: Iterable[str]) -> None:
        """Forget what is not in quarantine any more, or not as it was, and names that are not missing any more."""
        known = {key for (key,) in self._manifest.read("SELECT key FROM notes WHERE kind = ?", MISSING)}
        with self._manifest.writing() as base:
            base.execute(
                f"DELETE FROM notes WHERE kind = ? AND key NOT IN (SELECT {KEY} FROM inputs WHERE state = ?)",
                (REPORTED, State.QUARANTINED),
            )
            gone = known.difference(map(note_key, missing))
            base.executemany("DELETE FROM notes WHERE kind = ? AND key = ?", [(MISSING, key) for key in gone])


def note_key(name: str) -> str:
    """A name as the key of a note: text without what SQLite cannot have."""
    return json.dumps(name)
