"""Signs of life of a batch: a report when nothing has finished for a while, and whether its driver still runs (R406,
heartbeat)."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from symbolize.batch.monitoring.observers import Observer

if TYPE_CHECKING:
    from symbolize.batch.fetching import FetchedFile
    from symbolize.batch.manifest import InputResult, Item
    from symbolize.batch.tasks import DecodeResult

EVERY: Final = 60.0
"""Seconds without a result after which that is reported."""
HANGS_AFTER: Final = 300.0
"""Seconds without a sign of life of the driver after which it hangs; a walk of many folders gives none."""
TICKS: Final = 10
"""Checks in the time after which a report is due."""


class Pulse:
    """When the driver has last shown that it runs; any thread may ask."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def beat(self) -> None:
        """The driver runs."""
        self._last = self._clock()

    @property
    def hangs(self) -> bool:
        """Whether there was no sign of life for too long."""
        return self._clock() - self._last > HANGS_AFTER


class Heartbeat(Observer):
    """Calls `report` with the pass, the seconds, and how much of the pass is done and in all, each time that nothing
    has finished for `every` seconds while a pass runs. It is called in a thread."""

    def __init__(
        self,
        report: Callable[[str, float, int, int], None],
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._every = every
        self._clock = clock
        self._stage, self._total, self._done = "", 0, 0
        self._last = self._told = clock()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._over.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def entered(self, stage: str, total: int) -> None:
        """A pass begins."""
        with self._lock:
            self._stage, self._total, self._done = stage, total, 0
            self._last = self._told = self._clock()

    def rested(self) -> None:
        """Nothing is to be done for now."""
        with self._lock:
            self._stage = ""

    def handled(self, item: "Item", result: "InputResult") -> None:
        """Something finished."""
        self._finish()

    def fetched(self, result: "FetchedFile") -> None:
        """Something finished."""
        self._finish()

    def decoded(self, result: "DecodeResult") -> None:
        """Something finished."""
        self._finish()

    def _finish(self) -> None:
        with self._lock:
            self._done += 1
            self._last = self._told = self._clock()

    def check(self) -> None:
        """Report if that is due."""
        with self._lock:
            now = self._clock()
            if not self._stage or now - self._told < self._every:
                return
            self._told = now
            values = self._stage, now - self._last, self._done, self._total
        self._report(*values)

    def _run(self) -> None:
        while not self._over.wait(self._every / TICKS):
            self.check()
