"""Where the work of requests is done: threads, of each kind so many at a time, so many wait, none for a client that has
left, and equal work is done once; and a process for what may take too much time or memory, killed when nobody waits."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager, suppress
from threading import Event, Lock
from typing import Any, Final, NoReturn, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from symbolize.batch.engines.engine import Task, TaskFailure, TaskLimits, TaskOutcome, packed
from symbolize.batch.engines.local import LOSSES, TaskAttempt, TaskLane, stop
from symbolize.core.errors import SymbolizeError
from symbolize.serve.metrics import ServerMetrics
from symbolize.serve.symbolication import RequestTooLarge

RETRY_AFTER: Final = "2"
LATEST: Final = 16
"""Jobs whose times make up most of what the next one is thought to take."""
Argument = TypeVar("Argument")
Result = TypeVar("Result")

LOOKS: Final = 0.2
"""Seconds between two looks at whether a job is still wanted, and its process alive."""
LINGER: Final = 1.0
"""Seconds that a job gets to end when nobody waits for it: a new process has to open its binaries again."""
MAX_LINGER: Final = 128
"""Times as long as it gets at most, after jobs that were killed; about as long as one that is waited for."""


class WorkerPool:
    """`threads` for one kind of work, for which `waiting` requests may wait, and not longer than `patience` seconds. A
    job that waits is dropped when its client leaves; one that runs keeps its thread to its end."""

    def __init__(
        self, name: str, threads: int, waiting: int, metrics: ServerMetrics, patience: float = math.inf
    ) -> None:
        self.name = name
        self._pool = ThreadPoolExecutor(threads, f"serve-{name}")
        self._threads, self._most = threads, threads + waiting
        self._patience = patience
        self._admitted = 0
        self._seconds = 0.0  # of a job, the last ones counting most
        self._begun: list[float] = []
        self._metrics = metrics

    @property
    def is_full(self) -> bool:
        """Whether the next request is refused, as it would wait for too long by what the last jobs took."""
        return self._admitted >= self._most or self._admitted // self._threads * self._seconds > self._patience

    @property
    def oldest(self) -> float:
        """Seconds since the oldest job that runs began."""
        now = time.perf_counter()
        return now - min([*self._begun], default=now)

    def is_stuck(self, seconds: float) -> bool:
        """Whether each thread has had its job for longer than that."""
        until = time.perf_counter() - seconds
        return sum(began < until for began in [*self._begun]) >= self._threads

    def check(self) -> None:
        """Raise HTTPException if the next request is refused."""
        if self.is_full:
            self._refuse()

    async def run(
        self, job: Callable[[], Result], after: Callable[[], None] | None = None, left: Callable[[], None] | None = None
    ) -> Result:
        """Do a job; `after` it, or when it will not be done, something in any thread; and `left` if nobody waits for it
        any more. Raises HTTPException if too many wait, or it has waited for too long."""
        try:
            self.check()
        except HTTPException:
            if after is not None:
                after()
            raise
        loop = asyncio.get_running_loop()
        self._count(1)
        future = self._pool.submit(self._timed, job)

        def ended(_: Future[Result]) -> None:
            if after is not None:
                after()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._count, -1)

        future.add_done_callback(ended)
        is_late = False

        def drop() -> None:
            nonlocal is_late
            is_late = future.cancel()

        dropping = loop.call_later(self._patience, drop) if self._patience < math.inf else None
        task = asyncio.current_task()
        assert task is not None
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if left is not None:
                left()
            if is_late and not task.cancelling():
                self._refuse()
            raise
        finally:
            if dropping is not None:
                dropping.cancel()

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _refuse(self) -> NoReturn:
        self._metrics.refused(f"{self.name} busy")
        raise HTTPException(503, "too many requests; ask again", {"Retry-After": RETRY_AFTER})

    def _timed(self, job: Callable[[], Result]) -> Result:
        began = time.perf_counter()
        self._begun.append(began)
        try:
            return job()
        finally:  # several threads do this: one of them may not be counted
            self._begun.remove(began)
            # A single one that takes very long is no measure of those that follow.
            self._seconds += (min(time.perf_counter() - began, 2 * self._patience) - self._seconds) / LATEST

    def _count(self, change: int) -> None:
        self._admitted += change
        self._metrics.admitted(self.name, self._admitted)


@asynccontextmanager
async def while_connected(request: Request) -> AsyncIterator[None]:
    """Cancel the block, and raise ClientDisconnect, when the client of a request whose body was read leaves."""
    task = asyncio.current_task()
    assert task is not None
    is_left = False

    async def watch() -> None:
        nonlocal is_left
        while (await request.receive())["type"] != "http.disconnect":
            pass
        is_left = True
        task.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if is_left and not task.uncancel():
            raise ClientDisconnect from None
        raise
    finally:
        watching.cancel()


class SingleFlight:
    """Work by key, which is done once for all who want it at the same time."""

    def __init__(self) -> None:
        self._tasks: dict[Any, asyncio.Task[Any]] = {}

    async def run(self, key: Any, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """The result of `work`, which goes on if who waits is cancelled."""
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(work())
            task.add_done_callback(lambda _: self._ended(key, task))
        return await asyncio.shield(task)

    def _ended(self, key: Any, task: asyncio.Task[Any]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # who waited got it, if anybody did


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
