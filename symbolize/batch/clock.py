"""The time of a task: its own, and that for which it waits for stores (R287, time of stores).

A store that is frozen or slow is no fault of the input that is read from it. So the clock of a task stops while the
task waits for a store; requests to stores have a time limit each, and all those of a task have one together.
"""

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from symbolize.core.parallel import call_within

Result = TypeVar("Result")

OVERDUE: Final = signal.SIGALRM
"""The signal that ends the process of a task that is overdue, whatever it does."""

_left = [math.inf]
"""Seconds for which the task of this process may still wait for stores."""


@contextmanager
def own_time(seconds: float, waiting: float) -> Iterator[None]:
    """End this process by OVERDUE once the body has taken `seconds`, without the time for which it waited for stores;
    that is at most `waiting` seconds in all. Without these nothing is limited here."""
    if not seconds or not waiting:
        yield
        return
    _left[0] = waiting
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _left[0] = math.inf


def wait_for(seconds: float, call: Callable[[], Result]) -> Result:
    """The result of a request to a store, or its exception; TimeoutError after `seconds`, or if the task has waited for
    stores for too long in all. The clock of the task stands still meanwhile."""
    own, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    began = time.monotonic()
    try:
        if _left[0] <= 0:
            raise TimeoutError("too slow: the task has waited for stores for as long as it may")
        return call_within(min(seconds, _left[0]), call)
    finally:
        _left[0] -= time.monotonic() - began
        if own:
            signal.setitimer(signal.ITIMER_REAL, own)
