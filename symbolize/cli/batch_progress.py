"""The progress of a batch: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Never

from symbolize.batch.manifest import IGNORED, Renewed, State
from symbolize.batch.monitoring.observers import Observer, duration, one_line, rate_text
from symbolize.cli.options import print_error
from symbolize.core.errors import printable
from symbolize.storage.urls import shown_uri

if TYPE_CHECKING:
    from tqdm import tqdm

    from symbolize.batch.fetching import FetchedFile
    from symbolize.batch.manifest import InputResult, Item
    from symbolize.batch.tasks import DecodeResult

LINE_EVERY: Final = 10.0
"""Seconds between lines where there is no terminal."""
TICK: Final = 1.0
"""Seconds after which the time in the bar is updated."""
MAX_NAMED: Final = 20
"""Quarantined inputs that are named above a bar; the list at the end has all."""

UNITS: Final = {"scan": "inputs", "fetch": "files", "decode": "binaries", "rewrite": "inputs"}
RENEWED: Final = {
    Renewed.ASKED: "as asked with --again",
    Renewed.CHANGED: "because the input has changed",
    Renewed.RESULTS: "because this version of symbolize has other results",
    Renewed.OPTIONS: "because of other options",
    Renewed.OUTPUT: "because an output is gone or has changed",
    Renewed.RETRIED: "as asked with --retry-quarantined",
    Renewed.FAILED: "because something failed",
    Renewed.BINARIES: "because --retry-missing found files for them",
    Renewed.WATCHED: "because --watch found files for them",
}
RESULTS: Final = {State.DONE: "symbolized", State.SCANNED: "put off", State.QUARANTINED: "quarantined"}


class BatchProgress(Observer):
    """Shows the progress of a batch on standard error.

    On a terminal there is a bar for each pass; elsewhere a line when a pass begins and ends, and at most one in
    10 seconds in between. Quarantined inputs, up to MAX_NAMED above a bar, and problems have a line each. With `quiet`
    these lines are all.
    """

    def __init__(
        self, quiet: bool = False, is_terminal: bool | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._quiet = quiet
        self._has_bar = (has_terminal() if is_terminal is None else is_terminal) and not quiet
        self._clock = clock
        self._stage, self._total, self._done = "", 0, 0
        self._entered = self._last = 0.0
        self._results: Counter[State] = Counter()
        self._failed = 0
        self._bar: tqdm[Never] | None = None
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._ticker: threading.Thread | None = None
        self._has_begun = False

    def began(self, waiting: int, done: int, quarantined: int, renewed: Mapping[str, int]) -> None:
        """Show how much there is to do, once if the batch watches for inputs."""
        if not waiting and self._has_begun:
            return
        self._has_begun = True
        text = f"{waiting} inputs"
        if done:
            text += f", {done} done already"
        if quarantined:
            text += f", {quarantined} quarantined already"
        if renewed:
            reasons = ", ".join(f"{count} {RENEWED[Renewed(why)]}" for why, count in renewed.items())
            text += f"; {sum(renewed.values())} are done again: {reasons}"
        self._line(text)

    def warn(self, text: str) -> None:
        """Show a warning; any thread may call this."""
        self._write(f"warning: {one_line(text)}")

    def problem(self, where: str, text: str) -> None:
        """Show it."""
        self._write(f"{printable(where)}: {one_line(text)}")

    def entered(self, stage: str, total: int) -> None:
        """Begin the bar of a pass."""
        self._stage, self._total, self._done = stage, total, 0
        self._results.clear()
        self._entered = self._last = self._clock()
        self._line(f"{stage}: {total} {UNITS.get(stage, '')}")
        if self._has_bar:
            with self._lock, suppress(OSError, ValueError):
                self._open_bar()

    def handled(self, item: Item, result: InputResult) -> None:
        """Count an input, and name it if it is quarantined."""
        self._results[result.state] += 1
        if result.state == State.QUARANTINED and result.reason != IGNORED:
            self._failed += 1
            self._show_quarantined(item, result)
        self._step()

    def fetched(self, result: FetchedFile) -> None:
        """Count a file."""
        self._step()

    def decoded(self, result: DecodeResult) -> None:
        """Count a binary, and report it if it has no table."""
        if result.failure:
            self._write(f"no symbol table: {one_line(result.failure)}")
        self._step()

    def close(self) -> None:
        """Remove the bar."""
        self._over.set()
        if self._ticker is not None:
            self._ticker.join()
        self._close_bar()

    def _show_quarantined(self, item: Item, result: InputResult) -> None:
        uri = printable(shown_uri(item.uri))
        detail = one_line(result.detail).removeprefix(f"{uri}: ")
        if not self._has_bar or self._failed <= MAX_NAMED:
            self._write(f"quarantined ({result.reason}): {uri}: {detail}")
        elif self._failed == MAX_NAMED + 1:
            self._write("further quarantined inputs are counted only; all are listed at the end")

    def _step(self) -> None:
        """Count one more as done."""
        self._done += 1
        with self._lock, suppress(OSError, ValueError):
            if self._bar is not None:
                self._bar.set_postfix_str(f"{self._failed} failed" if self._failed else "", refresh=False)
                self._bar.update()
        now = self._clock()
        if self._done == self._total:
            self._line(self._pass_text(now - self._entered))
        elif now - self._last >= LINE_EVERY:
            self._last = now
            self._line(self._progress_text(now - self._entered))

    def _progress_text(self, elapsed: float) -> str:
        """The progress after so many seconds; `+` marks a time that does not include the passes after this one."""
        rate = self._done / elapsed
        is_last = self._stage == "rewrite" or (self._stage == "scan" and not self._results[State.SCANNED])
        text = f"{self._stage}: {self._done} of {self._total} {UNITS.get(self._stage, '')}, {rate_text(rate)}"
        text += f", {duration((self._total - self._done) / rate)}{'' if is_last else '+'} left"
        return text + (f", {self._failed} failed" if self._failed else "")

    def _pass_text(self, elapsed: float) -> str:
        """The result of a pass."""
        text = f"{self._stage}: done, {self._total} {UNITS.get(self._stage, '')} in {duration(elapsed)}"
        parts = [f"{self._results[state]} {word}" for state, word in RESULTS.items() if self._results[state]]
        return text + (f": {', '.join(parts)}" if parts else "")

    def _line(self, text: str) -> None:
        """Print a line, unless there is a bar."""
        if not self._quiet and not self._has_bar:
            print_error(f"symbolize: {text}")

    def _write(self, text: str) -> None:
        """Print a line, above the bar if there is one."""
        with self._lock:
            if self._bar is None:
                print_error(f"symbolize: {text}")
                return
            with suppress(OSError, ValueError):
                self._bar.write(f"symbolize: {text}", file=sys.stderr)

    def _open_bar(self) -> None:
        from tqdm import tqdm

        self._close_bar()
        counts = "{n_fmt}/{total_fmt} " + UNITS.get(self._stage, "")
        times = "[{elapsed}<{remaining}, {rate_noinv_fmt}, " + self._stage + "{postfix}]"
        form = "{percentage:3.0f}%|{bar}| " + f"{counts} {times}"
        self._bar = tqdm(total=self._total, unit="", bar_format=form, leave=False, file=sys.stderr, dynamic_ncols=True)
        if self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
            self._ticker.start()

    def _close_bar(self) -> None:
        with self._lock, suppress(OSError, ValueError):
            if self._bar is not None:
                self._bar.close()
            self._bar = None

    def _tick(self) -> None:
        """Update the time in the bar while nothing else does."""
        while not self._over.wait(TICK):
            with self._lock, suppress(OSError, ValueError):
                if self._bar is not None:
                    self._bar.refresh()


def has_terminal() -> bool:
    """Whether standard error is a terminal with a known size; some serial and container consoles have none."""
    try:
        return sys.stderr is not None and os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (OSError, ValueError):
        return False
