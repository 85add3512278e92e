"""What is new since the last run that reported it: inputs in quarantine, missing names (R402, new failures)."""

import json
import time
from collections.abc import Iterable
from typing import Final

from symbolize.batch.manifest import IGNORED, UNREACHABLE, Manifest, State

REPORTED: Final = "reported"
"""The notes of inputs in quarantine that were reported: when they came there."""
MISSING: Final = "missing"
"""The notes of names that are missing."""

KEY: Final = "CAST(number AS TEXT) || '@' || version"
"""The key of such a note: an input with the version of its content."""


class PendingEvents:
    """Compares the inputs of a manifest, and names that are missing, with what earlier runs have reported.

    An input is the same while its content is, by the version in its listing, whatever the options and however often it
    is tried. What a run with another exit code than 4 found was not reported.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def count(self) -> int:
        """How many inputs are newly in quarantine; those of servers that did not answer, and those to be ignored, do
        not count."""
        question = (
            f"SELECT count(*) FROM inputs LEFT JOIN notes ON kind = ? AND key = {KEY} "
            "WHERE turn = ? AND state = ? AND reason NOT IN (?, ?) AND key IS NULL"
        )
        newly = REPORTED, self._manifest.generation, State.QUARANTINED, UNREACHABLE, IGNORED
        return int(self._manifest.read(question, *newly)[0][0])

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that were not missing before."""
        known = {key for (key,) in self._manifest.read("SELECT key FROM notes WHERE kind = ?", MISSING)}
        return [name for name in names if note_key(name) not in known]

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
