"""Observers of a batch: their interface, several as one, and the forms of what they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from symbolize.core.closing import Closeable
from symbolize.core.errors import printable

if TYPE_CHECKING:
    from symbolize.batch.fetching import FetchedFile
    from symbolize.batch.manifest import InputResult, Item
    from symbolize.batch.tasks import DecodeResult

MAX_LINE: Final = 300
"""Characters of a detail that are shown in one line."""

Warn = Callable[[str], None]
"""Tells the person who runs the batch of something that costs it nothing but what is said."""


class Observer(Closeable):
    """Is notified of what happens, in the process that drives the batch; a context manager. The base ignores it all."""

    def close(self) -> None:
        """The batch is over, however it ended."""

    def began(self, waiting: int, done: int, quarantined: int) -> None:
        """So many inputs wait, and so many were done or quarantined by runs before."""

    def problem(self, where: str, text: str) -> None:
        """Something is wrong that is no fault of one input."""

    def entered(self, stage: str, total: int) -> None:
        """A pass began: "scan", "fetch", "decode" or "rewrite", over so many inputs, builds or binaries."""

    def handled(self, item: Item, result: InputResult) -> None:
        """An input was symbolized, put off or quarantined."""

    def fetched(self, result: FetchedFile) -> None:
        """A file was fetched from a server, or was not."""

    def decoded(self, result: DecodeResult) -> None:
        """The table of a binary was made, or was not."""


class ObserverGroup(Observer):
    """Several observers as one, notified in their order, and closed in reverse.

    An observer that fails is left out from then on, and the others are notified of the problem: observing costs no
    batch.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self._all = list(observers)

    def close(self) -> None:
        for observer in reversed(self._all):
            with suppress(Exception):
                observer.close()

    def began(self, waiting: int, done: int, quarantined: int) -> None:
        self._notify(lambda observer: observer.began(waiting, done, quarantined))

    def problem(self, where: str, text: str) -> None:
        self._notify(lambda observer: observer.problem(where, text))

    def entered(self, stage: str, total: int) -> None:
        self._notify(lambda observer: observer.entered(stage, total))

    def handled(self, item: Item, result: InputResult) -> None:
        self._notify(lambda observer: observer.handled(item, result))

    def fetched(self, result: FetchedFile) -> None:
        self._notify(lambda observer: observer.fetched(result))

    def decoded(self, result: DecodeResult) -> None:
        self._notify(lambda observer: observer.decoded(result))

    def _notify(self, call: Callable[[Observer], None]) -> None:
        for observer in [*self._observers]:
            if observer not in self._observers:  # it failed at the problem of another
                continue
            try:
                call(observer)
            except Exception as error:
                self._observers.remove(observer)
                self.problem(type(observer).__name__, f"is left out from here on: {error!r}")


def one_line(detail: str) -> str:
    """The line of a detail that says what happened, which in a traceback is the last one, safe for a terminal."""
    lines = [line for line in detail.splitlines() if line.strip()]
    text = printable(lines[-1].strip()) if lines else ""
    return text if len(text) <= MAX_LINE else text[: MAX_LINE - 1] + "…"


def duration(seconds: float) -> str:
    """A time span for reading: `0.4s`, `12s`, `3:05`, `2:03:05`, `4d 02:03`."""
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
    """Things a second, or a minute or hour where they are few."""
    for factor, unit in ((1, "s"), (60, "min")):
        if rate * factor >= 1:
            return f"{rate * factor:.{0 if rate * factor >= 100 else 1}f}/{unit}"
    return f"{rate * 3600:.1f}/h"
