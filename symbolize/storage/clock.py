"""The time limits of a task: its own, and that for which it waits for stores (R287, time of stores).

The clock of a task stops while it waits for a store, because a slow store is no fault of its input. Each request to a
store has a time limit, and all requests of a task have one together.
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
"""The signal that ends the process of a task that is overdue."""

_left = [math.inf]
"""Seconds for which the task of this process may still wait for stores."""


@contextmanager
def own_time(seconds: float, waiting: float) -> Iterator[None]:
    """End this process by OVERDUE when the block has taken `seconds`, without the time for which it waits for stores,
    at most `waiting` seconds. Without one of these there is no limit."""
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
    """The result or exception of a request to a store, while the clock of the task stops. Raises TimeoutError after
    `seconds`, or if the task has waited for stores for too long in all.

    All requests of a task have an hour.
    """
    own, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    began = time.monotonic()
    try:
        if _left[0] <= 0:
            raise TimeoutError("too slow: the task has waited for stores for too long")
        return call_within(min(seconds, _left[0]), call)
    finally:
        _left[0] -= time.monotonic() - began
        if own:
            signal.setitimer(signal.ITIMER_REAL, own)
