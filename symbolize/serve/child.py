"""A process for work that may take too much time or memory: it is killed when nobody waits for that work any more."""

import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import wait
from threading import Event, Lock
from typing import Any, Final, TypeVar

from symbolize.batch.engines.engine import Task, TaskFailure, TaskLimits, TaskOutcome, packed
from symbolize.batch.engines.local import LOSSES, TaskAttempt, TaskLane, stop
from symbolize.core.errors import SymbolizeError
from symbolize.serve.symbolication import RequestTooLarge

Argument = TypeVar("Argument")
Result = TypeVar("Result")

LOOKS: Final = 0.2
"""Seconds between two looks at whether a job is still wanted, and its process alive."""
LINGER: Final = 1.0
"""Seconds that a job gets to end when nobody waits for it: a new process has to open its binaries again."""
MAX_LINGER: Final = 128
"""Times as long as it gets at most, after jobs that were killed; about as long as one that is waited for."""


class Child:
    """A process that does jobs one at a time, for one thread, each with at most `memory` bytes of its own. The first
    job starts it, and what it opens stays open.

    A job that is killed gives the next one twice as long, until one that nobody waited for has ended: a client that
    asks again would otherwise have the same download begun each time, and never done.
    """

    def __init__(self, memory: int) -> None:
        self._limits = TaskLimits(private_bytes=memory)
        self._lane: TaskLane | None = None
        self._longer = 1
        self._closing = Event()
        self._running = Lock()

    def run(self, function: Callable[[Argument], Result | Exception], argument: Argument, is_left: Event) -> Result:
        """What `function` returns, or the exception that it returns raised. Nobody waits for it once `is_left` is set.

        Raises TimeoutError if it was killed, TooLarge if the memory does not suffice, SymbolizeError if its process
        ended or cannot be started.
        """
        attempt = TaskAttempt(task := Task("", function, argument), packed(task))
        for _ in range(LOSSES):
            with self._running:
                outcome = self._attempt(attempt, is_left)
            if outcome is not None:
                result: Result = result_of(outcome, self._limits)
                return result
        raise SymbolizeError("the process for profiles cannot be started; ask again")

    def close(self) -> None:
        """End the process, and what it does; from any thread."""
        self._closing.set()
        with self._running:
            self._end()

    def _attempt(self, attempt: TaskAttempt, is_left: Event) -> TaskOutcome | None:
        """How an attempt ended; None if it did not begin. Raises TimeoutError if it was killed."""
        if is_left.is_set() or self._closing.is_set():
            raise TimeoutError("nobody waits for it any more")
        if self._lane is not None and not self._lane.is_alive():
            self._end()
        lane = self._lane = self._lane or TaskLane()
        future, until = lane.start(attempt, self._limits), math.inf
        while not future.done() and lane.is_alive():
            wait([future], timeout=LOOKS)
            now = time.monotonic()
            if is_left.is_set():
                until = min(until, now + self._longer * LINGER)
            if now >= until or self._closing.is_set():
                self._longer = min(2 * self._longer, MAX_LINGER)
                self._end()
                raise TimeoutError("nobody waits for it any more")
        if is_left.is_set():
            self._longer = 1
        _, outcome = lane.end(self._limits)
        if not lane.is_good:
            self._end()
        return outcome

    def _end(self) -> None:
        lane, self._lane = self._lane, None
        if lane is not None:
            stop([lane])


def result_of(outcome: TaskOutcome, limits: TaskLimits) -> Any:
    """The value of a job, or its exception raised."""
    if outcome.failure is TaskFailure.MEMORY:
        raise RequestTooLarge(f"the profile takes more than {limits.private_bytes / 1e6:,.0f} MB of memory")
    if outcome.failure is not None:
        logging.getLogger("uvicorn.error").error("a profile: %s", outcome.detail)
        if outcome.failure is TaskFailure.CRASH:
            raise SymbolizeError("the process that worked on the profile ended; ask again")
        raise RuntimeError(outcome.detail)
    value = outcome.value
    if isinstance(value, Exception):
        raise value
    return value
