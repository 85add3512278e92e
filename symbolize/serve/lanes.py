"""Threads for the work of requests: of each kind so many at a time, so many wait, and equal work is done once."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

from starlette.exceptions import HTTPException

from symbolize.serve.metrics import Metrics

T = TypeVar("T")

RETRY_AFTER: Final = "2"


class Lane:
    """`threads` for one kind of work, for which `waiting` requests may wait. What runs keeps its thread to its end,
    also if nobody waits for it any more."""

    def __init__(self, name: str, threads: int, waiting: int, metrics: Metrics) -> None:
        self.name = name
        self._pool = ThreadPoolExecutor(threads, f"serve-{name}")
        self._most = threads + waiting
        self._admitted = 0
        self._metrics = metrics

    @property
    def is_full(self) -> bool:
        """Whether the next request is refused."""
        return self._admitted >= self._most

    async def run(self, job: Callable[[], T], after: Callable[[], None] | None = None) -> T:
        """Do a job; `after` it, or when it will not be done, something in any thread. Raises HTTPException if too many
        wait."""
        if self.is_full:
            if after is not None:
                after()
            self._metrics.refused(f"{self.name} busy")
            raise HTTPException(503, "too many requests; ask again", {"Retry-After": RETRY_AFTER})
        loop = asyncio.get_running_loop()
        self._count(1)
        future = self._pool.submit(job)

        def ended(_: Future[T]) -> None:
            if after is not None:
                after()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._count, -1)

        future.add_done_callback(ended)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _count(self, change: int) -> None:
        self._admitted += change
        self._metrics.admitted(self.name, self._admitted)


class Once:
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
