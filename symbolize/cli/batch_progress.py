"""Shows how far a batch is: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from statistics import median
from typing import TYPE_CHECKING, Final, Never

from symbolize.batch.manifest import State
from symbolize.batch.seen.watchers import Silent, duration, one_line, rate_text
from symbolize.batch.storage.urls import shown_uri
from symbolize.cli.options import tell
from symbolize.errors import printable

if TYPE_CHECKING:
    from tqdm import tqdm

    from symbolize.batch.fetching import FetchedFile
    from symbolize.batch.manifest import Handled, Item
    from symbolize.batch.tasks import Decoded

LINE_EVERY: Final = 10.0
"""Seconds between lines where there is no terminal."""
DRAW_EVERY: Final = 0.1
"""Seconds between two looks of the bar."""
TICK: Final = 1.0
"""Seconds after which the bar is drawn anew although nothing happened, because time passes."""
MAX_TOLD: Final = 20
"""Quarantined inputs that are named above a bar; the list of all is written at the end."""

WINDOW: Final = 60.0
"""Seconds over which the rate is measured."""
MEASURED: Final = 64
"""Inputs of each kind whose seconds are compared."""
REWRITE_COST: Final = 2.0
"""How much longer it is taken to be to symbolize an input than to look what it asks, until both were measured."""

UNITS: Final = {"scan": "inputs", "fetch": "files", "decode": "binaries", "rewrite": "inputs"}


class Outlook:
    """How far a batch is, and how long it may still take.

    The passes differ in speed, so what one of them did says nothing of the others. Each has a rate of its own, and a
    pass that is still to come is weighed by what is known: how many inputs are put off, and how much longer an input
    takes to symbolize than to put off. An input that is put off is not finished before it is rewritten.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.begin(0)

    def begin(self, waiting: int) -> None:
        """So many inputs are to be finished."""
        self.waiting, self.finished, self.failed, self.put_off = waiting, 0, 0, 0
        self.stage, self.total, self.done = "", 0, 0
        self._seconds = {state: deque[float](maxlen=MEASURED) for state in State}
        self._started = self._entered = self._clock()
        self._points: deque[tuple[float, int]] = deque()
        self._scan_rate = 0.0
        self._shown = 0.0

    def enter(self, stage: str, total: int) -> None:
        """A pass begins."""
        self.stage, self.total, self.done = stage, total, 0
        self._entered = self._clock()
        self._points = deque([(self._entered, 0)])

    def handled(self, result: Handled) -> None:
        """An input went through the pass."""
        self._seconds[result.state].append(result.seconds)
        if result.state == State.SCANNED:
            self.put_off += 1
        else:
            self.finished += 1
            self.failed += result.state == State.QUARANTINED
        self.step()
        if self.stage == "scan":
            self._scan_rate = self.done / max(self._clock() - self._entered, 1e-6)

    def step(self) -> None:
        """One more is done in the pass."""
        self.done += 1
        now = self._clock()
        if now - self._points[-1][0] >= 1:
            self._points.append((now, self.done))
            while len(self._points) > 2 and now - self._points[1][0] >= WINDOW:
                self._points.popleft()

    @property
    def elapsed(self) -> float:
        """Seconds since the batch began."""
        return self._clock() - self._started

    @property
    def pass_elapsed(self) -> float:
        """Seconds since the pass began."""
        return self._clock() - self._entered

    @property
    def rate(self) -> float:
        """What the pass did a second lately."""
        then, done = self._points[0] if self._points else (self._entered, 0)
        span = self._clock() - then
        return (self.done - done) / span if span > 0 else 0.0

    @property
    def rewrite_cost(self) -> float:
        """How often the time of putting an input off symbolizing one takes.

        Medians, because the first inputs of each worker also pay for opening binaries.
        """
        done, put_off = self._seconds[State.DONE], self._seconds[State.SCANNED]
        if not done or not put_off:
            return REWRITE_COST
        return min(max(median(done) / max(median(put_off), 1e-6), 0.5), 50.0)

    def left(self) -> tuple[float | None, bool]:
        """Seconds until the batch is done, None if unknown, and whether there is more to come that nobody can tell."""
        rate = self.rate
        here = (self.total - self.done) / rate if rate else None
        if self.stage == "rewrite":
            if here is None and self._scan_rate:
                here = (self.total - self.done) * self.rewrite_cost / self._scan_rate
            return here, False
        waits = float(self.waiting - self.finished - (self.total - self.done if self.stage == "scan" else 0))
        if self.stage == "scan" and self.done:
            waits += (self.total - self.done) * self.put_off / self.done
        if not waits:
            return here, False
        if not self._scan_rate:
            return here, here is not None
        later = waits * self.rewrite_cost / self._scan_rate
        return (later, True) if here is None else (here + later, self.stage == "scan")

    def fraction(self) -> float:
        """How much of the work is done, from 0 to 1; it does not fall."""
        seconds, has_more = self.left()
        if seconds is not None and self.total and not (has_more and self.stage == "decode"):
            if has_more:  # take it that making tables takes as long as finding out which
                seconds += self.pass_elapsed * self.total / max(self.done, 1)
            elapsed = self.elapsed
            part = elapsed / (elapsed + seconds) if elapsed + seconds > 0 else 0.0
            self._shown = max(self._shown, min(part, 1.0))
        if self.waiting and self.finished >= self.waiting:
            self._shown = 1.0
        return self._shown

    def left_text(self) -> str:
        """The time left for reading; `+` says that there is more, `?` that nothing is known."""
        seconds, has_more = self.left()
        return "?" if seconds is None else duration(seconds) + "+" * has_more

    def bar_text(self) -> str:
        """What stands beside the bar."""
        stage = self.stage
        if stage in ("decode", "fetch") or (stage == "scan" and self.put_off):
            stage += f" {self.done}/{self.total}"
        parts = [f"{duration(self.elapsed)}<{self.left_text()}", rate_text(self.rate), stage]
        if self.failed:
            parts.append(f"{self.failed} failed")
        return f"{self.finished}/{self.waiting} inputs [{', '.join(parts)}]"

    def line(self) -> str:
        """How far the pass is, as a line."""
        text = f"{self.stage}: {self.done} of {self.total} {UNITS.get(self.stage, '')}, {rate_text(self.rate)}"
        left = self.left_text()
        if left != "?":
            text += f", {left} left"
        return text + (f", {self.failed} failed" if self.failed else "")


class BatchProgress(Silent):
    """Shows what happens in a batch on standard error.

    On a terminal that is one bar, elsewhere a line at the begin and end of each pass and at most one in 10 seconds in
    between. Quarantined inputs and problems get a line each at once, also with `quiet`, which shows nothing else; above
    a bar they are named up to MAX_TOLD.
    """

    def __init__(
        self, quiet: bool = False, is_terminal: bool | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._quiet = quiet
        self._has_bar = (has_room_for_bar() if is_terminal is None else is_terminal) and not quiet
        self._clock = clock
        self._outlook = Outlook(clock)
        self._in_pass: dict[State, int] = {}
        self._bar: tqdm[Never] | None = None
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._ticker: threading.Thread | None = None
        self._last = 0.0
        self._told = 0
        self._has_begun = False

    def began(self, waiting: int, done: int, quarantined: int) -> None:
        """Say what there is to do. A batch that keeps looking for inputs tells it again and again."""
        with self._lock:
            if not waiting and self._has_begun:
                return
            self._has_begun = True
            self._outlook.begin(waiting)
            text = f"{waiting} inputs"
            if done:
                text += f", {done} done already"
            if quarantined:
                text += f", {quarantined} quarantined already"
            self._line(text)

    def warn(self, text: str) -> None:
        """Say what costs nothing but itself; any thread may."""
        self._say(f"warning: {one_line(text)}")

    def problem(self, where: str, text: str) -> None:
        """Say it."""
        self._say(f"{printable(where)}: {one_line(text)}")

    def entered(self, stage: str, total: int) -> None:
        """Say which pass begins."""
        with self._lock:
            self._outlook.enter(stage, total)
            self._in_pass = {}
            self._last = self._clock()
            self._line(f"{stage}: {total} {UNITS.get(stage, '')}")
            self._draw(is_due=True)

    def handled(self, item: Item, result: Handled) -> None:
        """Go on, and name what is quarantined."""
        with self._lock:
            self._outlook.handled(result)
            self._in_pass[result.state] = self._in_pass.get(result.state, 0) + 1
            if result.state == State.QUARANTINED:
                self._say_quarantined(item, result)
            self._went_on()

    def fetched(self, result: FetchedFile) -> None:
        """Go on."""
        with self._lock:
            self._outlook.step()
            self._went_on()

    def decoded(self, result: Decoded) -> None:
        """Go on, and say which table could not be made."""
        with self._lock:
            self._outlook.step()
            if result.failure:
                self._say(f"no symbol table: {one_line(result.failure)}")
            self._went_on()

    def close(self) -> None:
        """Take the bar away."""
        self._over.set()
        if self._ticker is not None:
            self._ticker.join()
        with self._lock, suppress(OSError, ValueError):
            if self._bar is not None:
                self._bar.close()
            self._bar = None

    def _say_quarantined(self, item: Item, result: Handled) -> None:
        detail = one_line(result.detail)
        uri = printable(shown_uri(item.uri))
        if detail.startswith(uri + ": "):
            detail = detail[len(uri) + 2 :]
        self._told += 1
        if not self._has_bar or self._told <= MAX_TOLD:
            self._say(f"quarantined ({result.reason}): {uri}: {detail}")
        elif self._told == MAX_TOLD + 1:
            self._say("further quarantined inputs are counted only; all are listed at the end")

    def _went_on(self) -> None:
        """Show that something was finished."""
        outlook = self._outlook
        if self._has_bar:
            self._draw()
        elif outlook.done == outlook.total:
            self._line(self._pass_text())
        elif self._clock() - self._last >= LINE_EVERY:
            self._last = self._clock()
            self._line(outlook.line())

    def _pass_text(self) -> str:
        """What came of a pass that is over."""
        outlook = self._outlook
        text = f"{outlook.stage}: done, {outlook.total} {UNITS.get(outlook.stage, '')} in "
        text += duration(outlook.pass_elapsed)
        words = {State.DONE: "symbolized", State.SCANNED: "put off", State.QUARANTINED: "quarantined"}
        parts = [f"{self._in_pass[state]} {word}" for state, word in words.items() if state in self._in_pass]
        return text + (f": {', '.join(parts)}" if parts else "")

    def _line(self, text: str) -> None:
        """A line where there is no bar."""
        if not self._quiet and not self._has_bar:
            tell(f"symbolize: {text}")

    def _say(self, text: str) -> None:
        """A line anyhow."""
        with self._lock:
            if self._bar is None:
                tell(f"symbolize: {text}")
                return
            with suppress(OSError, ValueError):
                self._bar.write(f"symbolize: {text}", file=sys.stderr)

    def _draw(self, is_due: bool = False) -> None:
        """Draw the bar, if it is time."""
        if not self._has_bar or self._over.is_set():
            return
        now = self._clock()
        if not is_due and now - self._last < DRAW_EVERY:
            return
        self._last = now
        with suppress(OSError, ValueError):
            if self._bar is None:
                from tqdm import tqdm

                form = "{percentage:3.0f}%|{bar}| {desc}"
                self._bar = tqdm(total=1, bar_format=form, leave=False, file=sys.stderr, dynamic_ncols=True)
                self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
                self._ticker.start()
            self._bar.n = self._outlook.fraction()
            self._bar.set_description_str(self._outlook.bar_text(), refresh=False)
            self._bar.refresh()

    def _tick(self) -> None:
        """Let the time go on where nothing happens for long."""
        while not self._over.wait(TICK):
            with self._lock:
                self._draw()


def has_room_for_bar() -> bool:
    """Whether standard error is a terminal that tells its size; some serial and container consoles do not."""
    try:
        return sys.stderr is not None and sys.stderr.isatty() and os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (OSError, ValueError):
        return False
