"""Threads for the work of requests: of each kind so many at a time, so many wait, none for a client that has left, and
equal work is done once."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NoReturn, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from symbolize.serve.metrics import ServerMetrics

T = TypeVar("T")

RETRY_AFTER: Final = "2"
LATEST: Final = 16
"""Jobs whose times make up most of what the next one is thought to take."""


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
        self, job: Callable[[], T], after: Callable[[], None] | None = None, left: Callable[[], None] | None = None
    ) -> T:
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

        def ended(_: Future[T]) -> None:
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

    def _timed(self, job: Callable[[], T]) -> T:
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

    async def run(self, key: Any, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
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
