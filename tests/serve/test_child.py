"""The process for profiles: what becomes of jobs that take too much, or that nobody waits for."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Event, Timer

import pytest

from tests.support.needs import package

package("starlette")
package("prometheus_client")

from symbolize.core.errors import SymbolizeError, UsageError
from symbolize.serve import worker_pools
from symbolize.serve.symbolication import RequestTooLarge
from symbolize.serve.worker_pools import Child
from tests.support import batch_tasks

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def process() -> Iterator[Child]:
    """One that all tests share: each leaves it in order."""
    shared = Child(256 << 20)
    yield shared
    shared.close()


def test_it_stays(process: Child) -> None:
    """Jobs one after another are done by the same process, which is another one."""
    first, second = (process.run(batch_tasks.process_after, 0.0, Event()) for _ in range(2))
    assert first == second != os.getpid()


def test_memory(process: Child) -> None:
    """More than it may have is refused with the figure."""
    with pytest.raises(RequestTooLarge, match=r"takes more than 268 MB of memory"):
        process.run(bytes, 1 << 30, Event())
    assert process.run(batch_tasks.double, 2, Event()) == 4


def test_death(process: Child) -> None:
    """One that dies is replaced, and the client may ask again."""
    with pytest.raises(SymbolizeError, match="ask again"):
        process.run(batch_tasks.kill_self, 9, Event())
    assert process.run(batch_tasks.double, 2, Event()) == 4


def test_nobody_waits(process: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was left is killed, and what was left before it began is not begun."""
    monkeypatch.setattr(worker_pools, "LINGER", 0.05)
    left = Event()
    Timer(0.05, left.set).start()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        process.run(batch_tasks.sleep, 60.0, left)
    with pytest.raises(TimeoutError):
        process.run(batch_tasks.sleep, 60.0, left)
    assert process.run(batch_tasks.double, 2, Event()) == 4
    assert time.monotonic() - began < 30


def test_asking_again(process: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that takes longer than its client waits is done at last, if the client comes again."""
    monkeypatch.setattr(worker_pools, "LINGER", 0.05)
    done: list[int] = []
    for _ in range(10):
        left = Event()
        Timer(0.01, left.set).start()
        with suppress(TimeoutError):
            done.append(process.run(batch_tasks.process_after, 0.7, left))
            break
    assert len(done) == 1


def test_errors(process: Child) -> None:
    """An error for the client is raised as it was; another one is not told."""
    with pytest.raises(UsageError, match="is none"):
        process.run(UsageError, "the body is none", Event())
    with pytest.raises(RuntimeError):
        process.run(len, 1, Event())
