"""Watchers of a batch: what all of them share, and several as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from symbolize.errors import printable

if TYPE_CHECKING:
    from symbolize.batch.fetching import FetchedFile
    from symbolize.batch.job import Watcher
    from symbolize.batch.manifest import Handled, Item
    from symbolize.batch.tasks import Decoded

MAX_LINE: Final = 300
"""Characters of a detail that are shown in one line."""

Warn = Callable[[str], None]
"""Tells the person who runs the batch of something that costs it nothing but what is said."""


class Silent:
    """A watcher that takes no notice, for others to build on; a context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The batch is over, however it ended."""

    def began(self, waiting: int, done: int, quarantined: int) -> None:
        """So many inputs wait, and so many were done or quarantined before."""

    def problem(self, where: str, text: str) -> None:
        """Something is wrong that is no fault of one input."""

    def entered(self, stage: str, total: int) -> None:
        """A pass began."""

    def handled(self, item: Item, result: Handled) -> None:
        """An input was symbolized, put off or quarantined."""

    def fetched(self, result: FetchedFile) -> None:
        """A file was fetched from a server, or was not."""

    def decoded(self, result: Decoded) -> None:
        """The table of a binary was made, or was not."""


class Watchers(Silent):
    """Several watchers as one, told in their order.

    A watcher that fails is left out from then on, and the others are told of the problem: looking on costs no batch.
    Closing closes all that can be closed.
    """

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = list(watchers)
        self._all = list(watchers)

    def close(self) -> None:
        """Close the watchers, the last first."""
        for watcher in reversed(self._all):
            close = getattr(watcher, "close", None)
            if close is not None:
                with suppress(Exception):
                    close()

    def began(self, waiting: int, done: int, quarantined: int) -> None:
        """Tell all."""
        self._tell(lambda watcher: watcher.began(waiting, done, quarantined))

    def problem(self, where: str, text: str) -> None:
        """Tell all."""
        self._tell(lambda watcher: watcher.problem(where, text))

    def entered(self, stage: str, total: int) -> None:
        """Tell all."""
        self._tell(lambda watcher: watcher.entered(stage, total))

    def handled(self, item: Item, result: Handled) -> None:
        """Tell all."""
        self._tell(lambda watcher: watcher.handled(item, result))

    def fetched(self, result: FetchedFile) -> None:
        """Tell all."""
        self._tell(lambda watcher: watcher.fetched(result))

    def decoded(self, result: Decoded) -> None:
        """Tell all."""
        self._tell(lambda watcher: watcher.decoded(result))

    def _tell(self, call: Callable[[Watcher], None]) -> None:
        for watcher in [*self._watchers]:
            if watcher not in self._watchers:  # it failed at the problem of another
                continue
            try:
                call(watcher)
            except Exception as error:
                self._watchers.remove(watcher)
                self.problem(type(watcher).__name__, f"is left out from here on: {error!r}")


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
