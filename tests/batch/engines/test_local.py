"""The engine of one machine: workers that die, or that pebble does not miss, and how it ends."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from symbolize.batch.engines import local
from symbolize.batch.engines.engine import Task, TaskFailure, TaskLimits
from symbolize.batch.engines.local import LocalEngine, TaskAttempt, TaskLane, ended, ending
from symbolize.core.errors import SymbolizeError
from tests.support import batch_tasks
from tests.support.batch_runs import ROOT, kill_group, wait_until
from tests.support.engines import ONCE, PATIENCE, is_running, only, tasks_of


@pytest.mark.process
def test_worker_that_ends_without_a_word() -> None:
    """A worker that native code ended with exit status 0 is missed, though it tells of no failure."""
    with LocalEngine(1) as engine:
        outcome = only(engine.run(tasks_of(batch_tasks.leave, [0]), ONCE))
        assert (outcome.failure, outcome.detail) == (TaskFailure.CRASH, "its worker process ended without an answer")
        outcome = only(engine.run(tasks_of(batch_tasks.leave, [7]), ONCE))
        assert outcome.detail == "its worker process ended with exit status 7"


@pytest.mark.process
def test_idle_worker_that_died() -> None:
    """What kills a worker between two tasks is not the fault of the next."""
    with LocalEngine(1) as engine:
        process = only(engine.run(tasks_of(batch_tasks.process_after, [0]), ONCE)).value
        os.kill(process, signal.SIGKILL)
        outcome = only(engine.run(tasks_of(batch_tasks.double, [4]), ONCE))
        assert (outcome.value, outcome.attempts) == (8, 1)


@pytest.mark.process
def test_workers_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no worker starts the run ends, with one line."""
    monkeypatch.setattr("symbolize.batch.engines.local.begin_worker", batch_tasks.refuse_to_start)
    with LocalEngine(2) as engine, pytest.raises(SymbolizeError, match="worker processes cannot be started"):
        list(engine.run(tasks_of(batch_tasks.double, range(4)), TaskLimits()))


class Pool:
    """A pebble pool whose worker says nothing."""

    active = True

    def schedule(self, *_: Any, **options: Any) -> "Future[Any]":
        return Future()


def lane(seconds: float, process: int | None, losses: int = 0) -> TaskLane:
    """A worker with a task that began now; `process` is its number once it has started."""
    result = TaskLane.__new__(TaskLane)
    vars(result).update(pool=Pool(), attempt=None, future=None, is_good=True, hello=Future())
    if process is not None:
        result.hello.set_result(process)
    result.start(TaskAttempt(Task("", batch_tasks.double, 1), b"", 1, losses), TaskLimits(seconds=seconds))
    return result


def test_workers_that_pebble_does_not_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task ends whose worker is gone at two looks, or that is long overdue; no other."""
    monkeypatch.setattr(local, "CHECK_INTERVAL", 0.01)
    gone = subprocess.Popen(["true"])
    gone.wait()
    here = os.getpid()
    lanes = [lane(0, here), lane(5, here), lane(5, None), lane(0, gone.pid), lane(5, here)]
    lanes[4].latest = time.monotonic() - 1
    assert [each.is_alive() for each in lanes] == [True, True, True, False, False]
    busy = {each.future: each for each in lanes if each.future is not None}
    assert ended(SimpleQueue(), busy) == [lanes[3].future, lanes[4].future]
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 64)
    assert [each.is_alive() for each in lanes[:3]] == [True, True, True]
    monkeypatch.setattr(time, "monotonic", lambda: now + 66)
    assert [each.is_alive() for each in lanes[:3]] == [True, False, False]
    vars(lanes[0].pool)["active"] = False
    assert not lanes[0].is_alive()


@pytest.mark.parametrize(
    ("process", "losses", "after", "failure"),
    [
        (None, 0, 1, None),
        (None, 4, 9, None),
        (None, 5, 1, TaskFailure.CRASH),
        (7, 0, 1, TaskFailure.CRASH),
        (7, 0, 6, TaskFailure.TIME),
    ],
)
def test_how_a_task_ended_that_pebble_did_not_end(
    process: int | None, losses: int, after: float, failure: TaskFailure | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It vanished before it began, which is no attempt, or with its worker, or took too long."""
    now = time.monotonic()
    limits = TaskLimits(seconds=5)
    worker = lane(5, process, losses)
    monkeypatch.setattr(time, "monotonic", lambda: now + after)
    attempt, outcome = worker.end(limits)
    assert (attempt.losses, worker.attempt, worker.is_good) == (losses, None, False)
    assert (outcome.failure if outcome else None) == failure
    if failure is TaskFailure.TIME:
        assert outcome is not None and outcome.detail == "took longer than 5 s"


@pytest.mark.process
def test_a_closed_engine_has_no_workers() -> None:
    """They end at once; and those that a run is closed on are not those that are idle."""
    engine = LocalEngine(2)
    process = only(engine.run(tasks_of(batch_tasks.process_after, [0]), ONCE)).value
    outcomes = engine.run(tasks_of(batch_tasks.process_after, [0, 100]), ONCE)
    assert next(outcomes).value
    outcomes.close()  # type: ignore[attr-defined]
    assert len(engine._lanes) == 1
    assert all(lane.is_alive() for lane in engine._lanes)
    last = only(engine.run(tasks_of(batch_tasks.process_after, [0]), ONCE)).value
    assert is_running(last)
    engine.close()
    wait_until(lambda: not is_running(process) and not is_running(last))


def test_closed_engine() -> None:
    """A closed engine runs nothing, and closing it again does nothing."""
    engine = LocalEngine(1)
    engine.close()
    engine.close()
    with pytest.raises(SymbolizeError, match="closed"):
        next(engine.run(tasks_of(batch_tasks.double, [4]), TaskLimits()))


@pytest.mark.parametrize(
    ("status", "text"),
    [(3, "ended with exit status 3"), (-11, "was killed by SIGSEGV"), (-40, "was killed by signal 40")],
)
def test_ending(status: int, text: str) -> None:
    """Exit statuses in words."""
    assert ending(status) == text


DRIVER = """
import sys
from symbolize.batch.engines.engine import Task, TaskLimits
from symbolize.batch.engines.local import LocalEngine
from tests.support import batch_tasks
if __name__ == "__main__":
    with LocalEngine(1) as engine:
        list(engine.run([Task("", batch_tasks.note_and_sleep_natively, sys.argv[1])], TaskLimits()))
"""


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.full
def test_workers_end_with_their_driver(number: signal.Signals, tmp_path: Path) -> None:
    """However the driver ends, a worker stuck in native code ends too; Ctrl-C is answered by the driver only."""
    script, path = tmp_path / "driver.py", tmp_path / "process"
    script.write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), str(path)]
    driver = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_until(path.exists)
        process = int(path.read_text())
        if number == signal.SIGINT:
            os.killpg(driver.pid, number)
        else:
            driver.send_signal(number)
        wait_until(lambda: not is_running(process))
        _, errors = driver.communicate(timeout=PATIENCE)
    finally:
        kill_group(driver)
    if number == signal.SIGINT:
        assert errors.count("Traceback") == errors.count("KeyboardInterrupt") == 1
