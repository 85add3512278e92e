"""How requests wait for threads, and which are refused."""

import asyncio
import threading
import time

import pytest

from tests.support.needs import package

package("starlette")
package("prometheus_client")

from starlette.exceptions import HTTPException

from symbolize.serve import worker_pools
from symbolize.serve.metrics import ServerMetrics
from symbolize.serve.worker_pools import WorkerPool


def test_so_many_wait() -> None:
    """The third of them is refused while one runs and two wait, and nobody afterwards."""

    async def ask() -> tuple[int, bool]:
        names, ends = WorkerPool("names", 1, 2, ServerMetrics()), threading.Event()
        running = asyncio.create_task(names.run(ends.wait))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(names.run(int)) for _ in range(3)]
        await asyncio.sleep(0)
        ends.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        await running
        refused = [result for result in results if isinstance(result, HTTPException)]
        assert all(each.status_code == 503 and each.headers == {"Retry-After": "2"} for each in refused)
        await asyncio.sleep(0)
        return len(results) - len(refused), not names.is_full

    assert asyncio.run(ask()) == (2, True)


def test_nobody_begins_to_wait_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what jobs took until then the next one would wait for longer than it may; the thread that is free takes it."""
    monkeypatch.setattr(worker_pools, "LATEST", 1)

    async def ask() -> tuple[bool, bool]:
        names, ends = WorkerPool("names", 1, 2, ServerMetrics(), 0.2), threading.Event()
        await names.run(lambda: time.sleep(0.25))
        await asyncio.sleep(0)
        is_free = not names.is_full
        running = asyncio.create_task(names.run(ends.wait))
        await asyncio.sleep(0)
        is_full = names.is_full
        ends.set()
        await running
        return is_free, is_full

    assert asyncio.run(ask()) == (True, True)


def test_nobody_waits_too_long() -> None:
    """Behind a job of which nobody could know how long it takes: refused when the time has come, and not begun."""
    done: list[int] = []

    async def ask() -> HTTPException:
        names, ends = WorkerPool("names", 1, 2, ServerMetrics(), 0.2), threading.Event()
        running = asyncio.create_task(names.run(ends.wait))
        await asyncio.sleep(0)
        with pytest.raises(HTTPException) as refused:
            await names.run(lambda: done.append(1))
        ends.set()
        await running
        await names.run(lambda: done.append(2))
        return refused.value

    refused = asyncio.run(ask())
    assert (refused.status_code, refused.headers) == (503, {"Retry-After": "2"})
    assert done == [2]


def test_jobs_that_nobody_waits_for() -> None:
    """One that waits is not begun; one that runs is told."""
    done: list[int] = []

    async def ask() -> bool:
        names, begun, left = WorkerPool("names", 1, 2, ServerMetrics()), threading.Event(), threading.Event()

        def job() -> None:
            begun.set()
            left.wait()

        running = asyncio.create_task(names.run(job, left=left.set))
        waiting = asyncio.create_task(names.run(lambda: done.append(1)))
        await asyncio.to_thread(begun.wait)
        for each in (waiting, running):
            each.cancel()
            with pytest.raises(asyncio.CancelledError):
                await each
        await names.run(lambda: done.append(2))
        return left.is_set()

    assert asyncio.run(ask())
    assert done == [2]


def test_threads_that_are_stuck() -> None:
    """A pool is stuck when each of its threads has had a job for too long."""

    async def ask() -> list[bool]:
        names, begun, ends = WorkerPool("names", 2, 2, ServerMetrics()), threading.Semaphore(0), threading.Event()
        found, running = [], []

        def job() -> None:
            begun.release()
            ends.wait()

        for _ in range(2):
            running.append(asyncio.create_task(names.run(job)))
            await asyncio.to_thread(begun.acquire)
            found.append(names.is_stuck(0))
        found.append(names.is_stuck(60))
        ends.set()
        await asyncio.gather(*running)
        return [*found, names.is_stuck(0)]

    assert asyncio.run(ask()) == [False, True, False, False]
