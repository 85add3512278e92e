"""Jobs at once, and where processes import from."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from symbolize.core import parallel
from symbolize.core.parallel import at_once, limit_threads, own_import_path, together


@pytest.fixture(params=[1, 2, 16])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many processors, whatever the machine has."""
    monkeypatch.setattr(parallel, "_most_threads", 1 << 10)
    monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda _: range(request.param))
    count: int = request.param
    return count


def test_results_are_in_order(threads: int) -> None:
    """Each job runs once, and its result is where it was; with enough threads, all run at the same time."""
    meeting = threading.Barrier(min(threads, 5))

    def job(number: int) -> Callable[[], int]:
        def run() -> int:
            if number < min(threads, 5):
                meeting.wait(20)
            return number * number

        return run

    assert at_once([job(number) for number in range(5)]) == [0, 1, 4, 9, 16]
    assert at_once([]) == []


def test_an_exception_ends_it(threads: int) -> None:
    """The exception of a job reaches the caller, and jobs that did not begin never do."""
    begun: list[int] = []

    def job(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise ValueError("the first")
        threading.Event().wait(0.05)

    with pytest.raises(ValueError, match="the first"):
        at_once([lambda number=number: job(number) for number in range(100)])  # type: ignore[misc]
    assert len(begun) <= threads + 1


def test_limited_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was told so uses no more threads, whatever the machine has."""
    limit_threads(1)
    used = at_once([threading.get_ident for _ in range(20)])
    assert set(used) == {threading.get_ident()}


@pytest.mark.process
@pytest.mark.parametrize("before", [None, "/before"])
def test_own_import_path(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes import from the folders of this one, but for those that depend on the current folder; then the
    environment is as it was."""
    for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.delenv(name, raising=False)
        if before is not None:
            monkeypatch.setenv(name, before)
    environment = dict(os.environ)
    monkeypatch.setattr(sys, "path", ["", "/first", "relative", "/second"])
    command = [sys.executable, "-c", "import sys; print(*sys.path, sep='\\n')"]
    with own_import_path(), own_import_path():
        path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert path[:2] == ["/first", "/second"]
    assert not {"", "relative"} & set(path)
    assert os.environ == environment


@pytest.mark.parametrize("which", ["neither", "the first", "the second", "both"])
def test_two_together(which: str) -> None:
    """Both results, or the exception of either, that of the first if both raise; when it is over both have ended."""
    ended = []

    def work(name: str, seconds: float) -> str:
        time.sleep(seconds)
        ended.append(name)
        if which in (name, "both"):
            raise ValueError(name)
        return name

    for seconds in ((0, 0.02), (0.02, 0)):
        ended.clear()
        first, second = (partial(work, *each) for each in zip(("the first", "the second"), seconds, strict=True))
        if which == "neither":
            assert together(first, second) == ("the first", "the second")
        else:
            with pytest.raises(ValueError, match="the second" if which == "the second" else "the first"):
                together(first, second)
        assert sorted(ended) == ["the first", "the second"]
