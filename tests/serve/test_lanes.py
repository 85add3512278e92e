"""How requests wait for threads, and which are refused."""

import asyncio
import threading
import time

from tests.support.needs import package

package("starlette")
package("prometheus_client")

from starlette.exceptions import HTTPException

from symbolize.serve.lanes import Lane
from symbolize.serve.metrics import Metrics


def busy(patience: float) -> tuple[int, bool]:
    """How many of three requests are done that come while one thread is busy and jobs take 10 ms or so; and whether
    the next one is admitted when the thread is free again."""

    async def ask() -> tuple[int, bool]:
        names, ends = Lane("names", 1, 2, Metrics(), patience), threading.Event()
        await names.run(lambda: time.sleep(0.01))
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

    return asyncio.run(ask())


def test_so_many_wait() -> None:
    """The third of them is refused, and nobody afterwards."""
    assert busy(60) == (2, True)


def test_nobody_waits_too_long() -> None:
    """By what jobs took until then, all would wait for longer than they may; the thread that is free takes the next."""
    assert busy(0.0001) == (0, True)
