"""Observers of a batch: their interface, several as one, and the formats of what they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from symbolize.batch.manifest import State
from symbolize.core.closing import Closeable
from symbolize.core.errors import printable
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
