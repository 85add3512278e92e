"""Observers of a batch: their interface, several as one, the tally of a run, what they show, and events in JSON."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from symbolize.batch.manifest import State
from symbolize.core.closing import Closeable
from symbolize.core.errors import OutputError, printable
from symbolize.core.files import os_error_text
from symbolize.storage.urls import shown_uri

if TYPE_CHECKING:
    from symbolize.batch.fetching import FetchedFile
    from symbolize.batch.manifest import InputResult, InputRow, Item
    from symbolize.batch.tasks import DecodeResult

MAX_LINE: Final = 300
"""Characters of a detail that are shown."""

PASSES: Final = {"scan": "inputs", "fetch": "files", "decode": "binaries", "rewrite": "inputs"}
"""The passes of a batch in their order, and what each is over."""

Warn = Callable[[str], None]
"""Shows a warning to the person who runs the batch."""
STANDARD_OUTPUT: Final = "-"
MODE: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
"""How the file of a log is opened."""

COVERAGE_FIELDS: Final = ("samples", "locations", "symbolized_locations", "symbolized_percent")
"""The fields of the coverage of an output that the log has; the report has all."""
MAX_WARNINGS: Final = 10
"""Warnings on an output that the log has."""


class Observer(Closeable):
    """Is notified of events by the driver of the batch; a context manager. The base ignores all of them."""

    def close(self) -> None:
        """The batch is over, however it ended."""

    def began(self, waiting: int, done: int, quarantined: int, renewed: Mapping[str, int]) -> None:
        """So many inputs wait, and so many were done or quarantined before. Of those that wait, `renewed` were
        so too, by the reason why they are done again (a value of `Renewed`)."""

    def problem(self, where: str, text: str) -> None:
        """A problem that does not concern one input only."""

    def listed(self) -> None:
        """All inputs were listed, and no listing failed."""

    def rested(self) -> None:
        """All passes are over; a batch that watches for inputs goes on."""

    def entered(self, stage: str, total: int) -> None:
        """A pass began, one of PASSES, over so many inputs, files or binaries."""

    def handled(self, item: Item, result: InputResult) -> None:
        """An input was symbolized, put off or quarantined."""

    def fetched(self, result: FetchedFile) -> None:
        """A file was fetched from a server, or was not."""

    def decoded(self, result: DecodeResult) -> None:
        """The table of a binary was made, or was not."""


def _forwarded(event: str) -> Callable[..., None]:
    """A method that notifies all observers of a group of an event."""

    def notify(group: ObserverGroup, *values: object) -> None:
        for observer in [*group.observers]:
            if observer not in group.observers:  # it failed at the problem of another
                continue
            try:
                getattr(observer, event)(*values)
            except Exception as error:
                group.observers.remove(observer)
                group.problem(type(observer).__name__, f"failed, and is not used any more: {error!r}")

    return notify


class ObserverGroup(Observer):
    """Several observers as one, notified in their order, and closed in reverse.

    An observer that fails is removed, and the others are notified of the problem, so that it does not stop the batch.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = list(observers)
        self._all = list(observers)

    def close(self) -> None:
        for observer in reversed(self._all):
            with suppress(Exception):
                observer.close()

    began = _forwarded("began")
    problem = _forwarded("problem")
    listed = _forwarded("listed")
    rested = _forwarded("rested")
    entered = _forwarded("entered")
    handled = _forwarded("handled")
    fetched = _forwarded("fetched")
    decoded = _forwarded("decoded")


class Tally(Observer):
    """Counts what a run of a batch did; the manifest has the inputs of earlier runs too. Report, log and metrics show
    these figures."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self.by_state = dict.fromkeys(State, 0)
        self.done_before = self.quarantined_before = 0
        self.incomplete = 0
        self.problems = 0
        self.input_bytes = self.output_bytes = 0
        self.tables = 0
        self.table_seconds = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._started

    @property
    def finished(self) -> int:
        """Inputs that were symbolized or quarantined."""
        return self.by_state[State.DONE] + self.by_state[State.QUARANTINED]

    @property
    def finished_before(self) -> int:
        """Inputs that earlier runs symbolized or quarantined."""
        return self.done_before + self.quarantined_before

    def began(self, waiting: int, done: int, quarantined: int, renewed: Mapping[str, int]) -> None:
        """What is done and was not done by this run was done by earlier ones."""
        self.done_before = max(self.done_before, done - self.by_state[State.DONE])
        self.quarantined_before = max(self.quarantined_before, quarantined - self.by_state[State.QUARANTINED])

    def problem(self, where: str, text: str) -> None:
        """Count it."""
        self.problems += 1

    def handled(self, item: Item, result: InputResult) -> None:
        """Count it."""
        self.by_state[result.state] += 1
        self.incomplete += result.state == State.DONE and bool(result.reason)
        if result.state != State.SCANNED:
            self.input_bytes += max(item.size, 0)
        self.output_bytes += sum(row.size for row in result.profiles)

    def decoded(self, result: DecodeResult) -> None:
        """Count it."""
        self.tables += not result.failure
        self.table_seconds += result.seconds


def state_text(state: State) -> str:
    """The state of an input in JSON: "new", "put-off", "done" or "quarantined"."""
    return "put-off" if state == State.SCANNED else state.name.lower()


def input_fields(uri: str, size: int, result: InputResult | InputRow) -> dict[str, Any]:
    """The fields of an input in JSON."""
    return {
        "input": shown_uri(uri),
        "bytes": size,
        "state": state_text(result.state),
        "reason": result.reason,
        "detail": result.detail,
        "attempts": result.attempts,
        "seconds": round(result.seconds, 6),
    }


def table_fields(addresses: int, size: int, seconds: float, failure: str) -> dict[str, Any]:
    """The fields of a symbol table in JSON."""
    return {"addresses": addresses, "bytes": size, "seconds": round(seconds, 6), "failure": failure}


def one_line(detail: str) -> str:
    """The last line of a detail, which in a traceback is the message, safe for a terminal."""
    lines = [line for line in detail.splitlines() if line.strip()]
    text = printable(lines[-1].strip()) if lines else ""
    return text if len(text) <= MAX_LINE else text[: MAX_LINE - 1] + "…"


def duration(seconds: float) -> str:
    """A time span: `0.4s`, `12s`, `3:05`, `2:03:05`, `4d 02:03`."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f}s"
    whole = round(seconds)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour:02}:{minute:02}"
    if hours:
        return f"{hours}:{minute:02}:{second:02}"
    return f"{minutes}:{second:02}" if minutes else f"{second}s"


def rate_text(rate: float) -> str:
    """A rate per second, or per minute or hour if it is below one."""
    for factor, unit in ((1, "s"), (60, "min")):
        if rate * factor >= 1:
            return f"{rate * factor:.{0 if rate * factor >= 100 else 1}f}/{unit}"
    return f"{rate * 3600:.1f}/h"


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
