"""Whether something that fails is worth asking again: a circuit breaker."""

import math
import threading
import time
from collections.abc import Callable


class FailureGate:
    """Closes for `pause` seconds, or for good, when `limit` requests in a row got no answer.

    After the pause `admits` lets one request through; without an answer to it the gate closes again, with one it is as
    new. Threads may share it.
    """

    def __init__(self, limit: int, pause: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._down_until = self._asked_until = -math.inf
        self.failures = 0
        """Requests in a row without an answer."""

    def __reduce__(self) -> tuple[object, ...]:
        """In another process it is as new."""
        return FailureGate, (self._limit, self._pause, self._clock)

    @property
    def is_down(self) -> bool:
        """Whether the limit was reached, and no answer came since."""
        return self.failures >= self._limit

    @property
    def seconds_left(self) -> float:
        """How long the gate stays closed, 0 if it is open."""
        return max(self._down_until - self._clock(), self._asked_until - self._clock(), 0.0)

    @property
    def is_asked(self) -> bool:
        """Whether it is closed, or was, because it was asked to, rather than for failures."""
        return self._asked_until > self._down_until

    def admits(self) -> bool:
        """Whether to ask; after a pause True for one request, and False for the others until that has an answer or
        another pause is over."""
        with self._lock:
            if self.seconds_left:
                return False
            if self.is_down:
                self._down_until = self._clock() + self._pause
            return True

    def answered(self) -> None:
        """Note that there was an answer. A gate that was closed by `close` stays so."""
        with self._lock:
            self._down_until = -math.inf
            self.failures = 0

    def failed(self) -> bool:
        """Note that there was none; whether that closed a gate that was not down before."""
        with self._lock:
            self.failures += 1
            if self.is_down:
                self._down_until = self._clock() + self._pause
            return self.failures == self._limit

    def close(self, seconds: float) -> None:
        """Close for some time, as one was asked to."""
        with self._lock:
            self._asked_until = max(self._asked_until, self._clock() + seconds)
