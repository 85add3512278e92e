"""The events of a batch as JSON lines."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from symbolize.batch.manifest import State
from symbolize.batch.monitoring.observers import Observer, Tally, Warn, input_fields, one_line, table_fields
from symbolize.core.errors import OutputError
from symbolize.core.files import os_error_text

if TYPE_CHECKING:
    from symbolize.batch.fetching import FetchedFile
    from symbolize.batch.manifest import InputResult, Item
    from symbolize.batch.tasks import DecodeResult

STANDARD_OUTPUT: Final = "-"
MODE: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
"""How the file of a log is opened."""

COVERAGE_FIELDS: Final = ("samples", "locations", "symbolized_locations", "symbolized_percent")
"""The fields of the coverage of an output that the log has; the report has all."""
MAX_WARNINGS: Final = 10
"""Warnings on an output that the log has."""


class JsonLog(Observer):
    """Writes one object a line for each event: appends to the file `name`, or writes to standard output for `-`.

    Every object has `time` (RFC 3339, UTC) and `event`: "began", "problem", "pass", "input", "fetch", "binary",
    or "ended". Lines are ASCII and are written before the batch continues. Lines that cannot be written
    are lost, with a warning at the first one and their number at the end. Raises OutputError if the file cannot be
    opened.
    """

    def __init__(self, name: str, warn: Warn) -> None:
        self._name = "standard output" if name == STANDARD_OUTPUT else name
        self._warn = warn
        self._path: str | None = None
        self._lock = threading.RLock()
        self._lost = 0
        self._is_torn = False
        self._has_begun = False
        self._stage = ""
        self._tally = Tally()
        try:
            if name == STANDARD_OUTPUT:
                sys.stdout.flush()
                self._file = os.dup(sys.stdout.fileno())
            else:
                self._path = os.path.abspath(name)
                self._file = os.open(self._path, MODE, 0o666)
        except (OSError, ValueError, AttributeError) as error:  # AttributeError: standard output is closed
            reason = getattr(error, "strerror", None) or "is closed"
            raise OutputError(f"{self._name}: cannot be written: {reason}") from error

    def began(self, waiting: int, done: int, quarantined: int, renewed: Mapping[str, int]) -> None:
        """The event "began", but not for a scan of `--watch` that found nothing."""
        if waiting or not self._has_begun:
            self._has_begun = True
            self._write("began", {"waiting": waiting, "done": done, "quarantined": quarantined, "renewed": renewed})

    def problem(self, where: str, text: str) -> None:
        """The event "problem"."""
        self._write("problem", {"where": where, "text": text})

    def reopen(self) -> None:
        """Continue in a new file of the same name, after the old one was renamed. May be called at any moment, by the
        handler of a signal too. The old file is used on if there can be no new one."""
        if self._file < 0 or self._path is None:
            return
        try:
            new = os.open(self._path, MODE, 0o666)
        except OSError as error:
            self._warn(f"{self._name}: cannot be opened again: {os_error_text(error)}")
            return
        os.dup2(new, self._file, inheritable=False)  # in one step, also for a line that is being written
        os.close(new)

    def entered(self, stage: str, total: int) -> None:
        """The event "pass"."""
        self._stage = stage
        self._write("pass", {"pass": stage, "total": total})

    def handled(self, item: Item, result: InputResult) -> None:
        """The event "input"."""
        self._tally.handled(item, result)
        outputs = [
            {
                "path": row.output,
                "bytes": row.size,
                **{key: row.coverage.get(key) for key in COVERAGE_FIELDS},
                "warnings": [
                    one_line(" ".join(text.split())) for text in row.coverage.get("warnings", [])[:MAX_WARNINGS]
                ],
            }
            for row in result.profiles
        ]
        first = {"pass": self._stage, "input": "", "name": item.name}
        self._write("input", first | input_fields(item.uri, item.size, result) | {"outputs": outputs})

    def fetched(self, result: FetchedFile) -> None:
        """The event "fetch"."""
        self._write(
            "fetch",
            {
                "build_id": result.build_id,
                "kind": result.kind,
                "status": result.status,
                "bytes": result.size,
                "seconds": round(result.seconds, 6),
                "failures": [{"server": place, "text": text} for place, text in result.failures],
            },
        )

    def decoded(self, result: DecodeResult) -> None:
        """The event "binary"."""
        figures = table_fields(result.addresses, result.size, result.seconds, result.failure)
        self._write("binary", {"key": result.key} | figures)

    def close(self) -> None:
        """The event "ended"."""
        if self._file < 0:
            return
        done, quarantined = self._tally.by_state[State.DONE], self._tally.by_state[State.QUARANTINED]
        self._write("ended", {"done": done, "quarantined": quarantined, "incomplete": self._tally.incomplete})
        os.close(self._file)
        self._file = -1
        if self._lost:
            self._warn(f"{self._name}: {self._lost} lines of the log could not be written")

    def _write(self, event: str, more: dict[str, Any]) -> None:
        line = json.dumps({"time": timestamp(), "event": event} | more).encode() + b"\n"
        with self._lock:
            rest = b"\n" * self._is_torn + line
            try:
                while rest:
                    rest = rest[os.write(self._file, rest) :]
                    self._is_torn = bool(rest)
            except OSError as error:
                self._lost += 1
                if self._lost == 1:
                    self._warn(f"{self._name}: the log cannot be written: {os_error_text(error)}")


def timestamp() -> str:
    """The current time, as `2026-11-21T08:15:30.123456Z`."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
