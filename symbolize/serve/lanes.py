"""Threads for the work of requests: of each kind so many at a time, so many wait, and equal work is done once."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

from starlette.exceptions import HTTPException

from symbolize.serve.metrics import Metrics

T = TypeVar("T")

RETRY_AFTER: Final = "2"
LATEST: Final = 16
"""Jobs whose times make up most of what the next one is thought to take."""


class Lane:
    """`threads` for one kind of work, for which `waiting` requests may wait, and not longer than `patience` seconds as
    far as that is known. What runs keeps its thread to its end, also if nobody waits for it any more."""

    def __init__(self, name: str, threads: int, waiting: int, metrics: Metrics, patience: float = math.inf) -> None:
        self.name = name
        self._pool = ThreadPoolExecutor(threads, f"serve-{name}")
        self._threads, self._most = threads, threads + waiting
        self._patience = patience
        self._admitted = 0
        self._seconds = 0.0  # of a job, the last ones counting most
        self._metrics = metrics

    @property
    def is_full(self) -> bool:
        """Whether the next request is refused."""
        return self._admitted >= self._most or self._admitted // self._threads * self._seconds > self._patience

    def check(self) -> None:
        """Raise HTTPException if the next request is refused."""
        if self.is_full:
            self._metrics.refused(f"{self.name} busy")
            raise HTTPException(503, "too many requests; ask again", {"Retry-After": RETRY_AFTER})

    async def run(self, job: Callable[[], T], after: Callable[[], None] | None = None) -> T:
        """Do a job; `after` it, or when it will not be done, something in any thread. Raises HTTPException if too many
        wait."""
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
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _timed(self, job: Callable[[], T]) -> T:
        began = time.perf_counter()
        try:
            return job()
        finally:  # several threads do this: one of them may not be counted
            self._seconds += (time.perf_counter() - began - self._seconds) / LATEST

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
