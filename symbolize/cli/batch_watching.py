"""Watching for inputs, and the signals of a batch."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symbolize.batch.job import Batch
    from symbolize.batch.manifest import Manifest

RETRY_EVERY = 60.0
"""Seconds after which inputs are retried while watching."""
LOOK_AFTER_EVERY = 86400.0
"""Seconds after which the state is looked after while watching."""
PATIENCE = 1.5
"""Seconds that running tasks have to end after the first signal while watching."""


class Stop:
    """Whether a batch is to stop. While watching, the first signal asks for it: tasks that run have PATIENCE to end,
    and are stopped by KeyboardInterrupt then. Without `is_watching`, and at the second signal, that is raised at once.
    """

    def __init__(self, is_watching: bool) -> None:
        self._is_watching = is_watching
        self._event = threading.Event()
        self._timer = threading.Timer(PATIENCE, self._hurry)
        self._timer.daemon = True
        self._is_over = self.is_out_of_patience = False

    def is_set(self) -> bool:
        """Whether the batch is to stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until the batch is to stop."""
        self._event.wait(seconds)

    def handle(self, number: int, _: object) -> None:
        """Handle a signal."""
        if self._is_over and self.is_out_of_patience:
            return
        if not self._is_watching or self._event.is_set():
            raise KeyboardInterrupt
        self._event.set()
        self._timer.start()

    def end_patience(self) -> None:
        """From here on nothing is stopped any more."""
        self._is_over = True
        self._timer.cancel()

    def _hurry(self) -> None:
        self.is_out_of_patience = True
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def stop_on_signals(is_watching: bool) -> Iterator[Stop]:
    """Handle SIGTERM and SIGINT in the block."""
    stop = Stop(is_watching)
    before = {number: signal.signal(number, stop.handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        stop.end_patience()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def calling_on_hangup(call: Callable[[], None] | None) -> Iterator[None]:
    """Call `call` at SIGHUP in the block; without it the signal does what it did."""
    if call is None:
        yield
        return
    before = signal.signal(signal.SIGHUP, lambda number, frame: call())
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def keep_watching(
    batch: Batch, manifest: Manifest, interval: float, stop: Stop, when_failed: Callable[[], object]
) -> None:
    """Scan the inputs and process them, again and again until `stop`. Files that change wait for the next scan.

    `when_failed` is called when the number of quarantined inputs has changed.
    """
    from symbolize.batch.manifest import State

    failed = 0
    tried = looked_after = time.monotonic()
    for scan in itertools.count():
        if stop.is_set():
            return
        if time.monotonic() - tried > RETRY_EVERY:
            tried = time.monotonic()
            batch.retry_failed()
        is_due = time.monotonic() - looked_after > LOOK_AFTER_EVERY
        if is_due:
            looked_after = time.monotonic()
            batch.begin_generation()
        batch.watch_binaries()
        batch.take_in(lambda found, scan=scan: manifest.is_settled(found, scan))  # type: ignore[misc]
        manifest.end_scan(scan)
        if is_due or not scan:
            batch.look_after_state()
        counts = batch.work()
        if counts[State.QUARANTINED] != failed:
            failed = counts[State.QUARANTINED]
            when_failed()
        stop.wait(interval)
