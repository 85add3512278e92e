"""What engines promise, for each of them; workers die, hang and run out of memory in earnest."""

import itertools
import mmap
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch.engines.engine import (
    Engine,
    Reply,
    Task,
    TaskFailure,
    TaskLimits,
    TaskOutcome,
    memory_line,
    outcome_of,
    packed,
    perform,
    private_bytes_now,
    private_memory,
)
from symbolize.batch.engines.local import LocalEngine
from tests.support import batch_tasks
from tests.support.batch_runs import wait_until
from tests.support.engines import is_running, only, tasks_of

pytestmark = pytest.mark.process


def test_values(engine: Engine) -> None:
    """Each task has one outcome with its value; affinity does not change it."""
    tasks = [Task(str(number), batch_tasks.double, number, "ab"[number % 2] * (number % 3)) for number in range(30)]
    outcomes = list(engine.run(tasks, TaskLimits()))
    assert sorted(outcome.value for outcome in outcomes) == [2 * number for number in range(30)]
    assert {outcome.task for outcome in outcomes} == set(tasks)
    assert {(outcome.failure, outcome.detail, outcome.attempts) for outcome in outcomes} == {(None, "", 1)}
    assert list(engine.run([], TaskLimits())) == []


def test_tasks_are_taken_as_needed(engine: Engine) -> None:
    """An endless iterable works, and is never far ahead of the outcomes."""
    taken = 0

    def endless() -> Iterator[Task]:
        nonlocal taken
        for taken in itertools.count(1):
            yield Task(str(taken), batch_tasks.double, taken)

    outcomes = engine.run(endless(), TaskLimits())
    for given, _ in enumerate(itertools.islice(outcomes, 20), 1):
        assert taken <= given + 2 * 2
    outcomes.close()  # type: ignore[attr-defined]
    assert only(engine.run(tasks_of(batch_tasks.double, [4]), TaskLimits())).value == 8


def test_crash(engine: Engine, tmp_path: Path) -> None:
    """A task that always kills its worker fails alone; one that does so once succeeds when tried again."""
    once = [str(tmp_path / "once")]
    tasks = [*tasks_of(batch_tasks.kill_self, [signal.SIGKILL]), *tasks_of(batch_tasks.kill_self_once, once)]
    outcomes = list(engine.run([*tasks, *tasks_of(batch_tasks.double, range(10))], TaskLimits(attempts=2)))
    found = {outcome.task.function: outcome for outcome in outcomes}
    crashed, tried = found[batch_tasks.kill_self], found[batch_tasks.kill_self_once]
    assert (crashed.failure, crashed.value, crashed.attempts) == (TaskFailure.CRASH, None, 2)
    assert ("killed by SIGKILL" if isinstance(engine, LocalEngine) else "died") in crashed.detail
    assert (tried.value, tried.failure, tried.attempts) == ("alive", None, 2)
    assert [outcome.failure for outcome in outcomes].count(None) == 11


def test_deadline(engine: Engine) -> None:
    """A task that is stuck in native code with the interpreter's lock is ended, and no other with it."""
    tasks = [*tasks_of(batch_tasks.sleep_natively, [1000]), *tasks_of(batch_tasks.double, range(5))]
    outcomes = {outcome.task.key: outcome for outcome in engine.run(tasks, TaskLimits(seconds=1, attempts=1))}
    stuck = outcomes.pop("sleep_natively 1000")
    assert (stuck.failure, stuck.detail, stuck.attempts) == (TaskFailure.TIME, "took longer than 1 s", 1)
    assert [outcome.failure for outcome in outcomes.values()] == [None] * 5


@pytest.mark.full
def test_stores_have_their_own_time(engine: Engine) -> None:
    """What a task waits for stores is not charged to it, but it is not to wait for good (rule R287). Its own time is
    limited as ever."""
    limits = TaskLimits(seconds=1.5, attempts=1, waiting=60)
    list(engine.run(tasks_of(batch_tasks.wait_for_store, [0.0] * 4), TaskLimits()))  # all is imported
    assert only(engine.run(tasks_of(batch_tasks.wait_for_store, [2.0]), limits)).value == "answered"
    short = limits._replace(waiting=0.3)
    assert only(engine.run(tasks_of(batch_tasks.wait_for_store, [20.0]), short)).value == "no answer in 0.3 s"
    stuck = only(engine.run(tasks_of(batch_tasks.sleep_natively, [100]), limits._replace(seconds=0.3)))
    assert (stuck.failure, stuck.detail) == (TaskFailure.TIME, "took longer than 0.3 s")


def test_memory(engine: Engine, tmp_path: Path) -> None:
    """Private memory is limited for each task; the pages of mapped files do not count, nor what others used."""
    file = tmp_path / "big"
    with file.open("wb") as opened:
        opened.truncate(200_000_000)
    mapped = tasks_of(batch_tasks.read_mapped, [str(file)])
    fitting = tasks_of(batch_tasks.allocate, [20_000_000] * 4)
    tasks = [*tasks_of(batch_tasks.allocate, [100_000_000]), *mapped, *fitting]
    found = {
        outcome.task.key: outcome for outcome in engine.run(tasks, TaskLimits(private_bytes=50_000_000, attempts=2))
    }
    over = found["allocate 100000000"]
    assert (over.failure, over.detail, over.attempts) == (TaskFailure.MEMORY, "out of memory of 50 MB", 2)
    assert found[f"read_mapped {file}"].value == 200_000_000
    assert found["allocate 20000000"].value == 20_000_000


def test_errors(engine: Engine) -> None:
    """Exceptions are a line each and are not tried again, whatever cannot travel among them."""
    tasks = [
        *tasks_of(batch_tasks.fail, ["input", "other"]),
        *tasks_of(batch_tasks.exit_politely, [0]),
        *tasks_of(batch_tasks.unpicklable, [0]),
        Task("argument", batch_tasks.double, lambda: 0),
    ]
    found = {outcome.task.key: outcome for outcome in engine.run(tasks, TaskLimits())}
    assert {(outcome.failure, outcome.attempts) for outcome in found.values()} == {(TaskFailure.ERROR, 1)}
    assert found["fail input"].detail == "a.pb.gz: cut off at offset 0xc"
    assert found["fail other"].detail == "ValueError: first second other"
    assert found["exit_politely 0"].detail == "SystemExit: 3"
    assert found["unpicklable 0"].detail == "its result cannot be pickled"
    assert found["argument"].detail == "its argument cannot be pickled"


def test_workers_killed_at_random(engine: Engine) -> None:
    """Whichever workers are killed, each task has one outcome with its value."""
    pids: list[int] = []
    outcomes = []
    for outcome in engine.run(tasks_of(batch_tasks.process_after, [0.01] * 40), TaskLimits(attempts=10)):
        outcomes.append(outcome)
        pids.append(outcome.value)
        if len(outcomes) in (5, 12, 30):
            try:
                os.kill(pids[-1], signal.SIGKILL)
            except ProcessLookupError:
                pass
    assert [outcome.failure for outcome in outcomes] == [None] * 40
    assert len(set(pids)) >= 3
    assert sum(outcome.attempts - 1 for outcome in outcomes) <= 3


def test_closing_the_iterator_stops_its_tasks(engine: Engine, tmp_path: Path) -> None:
    """A stuck task does not outlive the run, and the engine goes on."""
    path = tmp_path / "process"

    def tasks() -> Iterator[Task]:
        yield from tasks_of(batch_tasks.note_and_sleep_natively, [str(path)])
        wait_until(path.exists)  # or others may queue behind it, for ever
        yield from tasks_of(batch_tasks.double, itertools.count())

    outcomes = engine.run(tasks(), TaskLimits())
    next(outcomes)
    process = int(path.read_text())
    assert is_running(process)
    outcomes.close()  # type: ignore[attr-defined]
    wait_until(lambda: not is_running(process))
    assert only(engine.run(tasks_of(batch_tasks.double, [4]), TaskLimits())).value == 8


def allocated(size: int) -> int:
    """Map `size` private bytes, which malloc might take from what it kept, and say what the kernel counts then."""
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        return private_bytes_now()


def test_what_a_worker_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call's value, or one line that says why there is none; the limits of the process are what they were."""
    before = resource.getrlimit(resource.RLIMIT_DATA)

    def performed(function: Any, argument: Any, private_bytes: int = 0) -> TaskOutcome:
        task = Task("", function, argument)
        reply = perform(packed(task), private_bytes)
        assert 0 <= reply.seconds < 60
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
        return outcome_of(task, reply, 2)

    assert performed(batch_tasks.double, 4)[1:5] == (8, None, "", 2)
    assert performed(batch_tasks.fail, "input")[2:4] == (TaskFailure.ERROR, "a.pb.gz: cut off at offset 0xc")
    assert performed(batch_tasks.fail, "x")[2:4] == (TaskFailure.ERROR, "ValueError: first second x")
    assert performed(batch_tasks.allocate, 10_000_000, 50_000_000).value == 10_000_000
    limited = performed(batch_tasks.allocate, 400_000_000, 50_000_000)
    assert limited[2:4] == (TaskFailure.MEMORY, "out of memory of 50 MB")
    task = Task("", batch_tasks.double, 4)
    unreadable = outcome_of(task, Reply(b"?", None, "", 0.0), 1)
    assert unreadable.failure is TaskFailure.ERROR
    assert unreadable.detail.startswith("its result cannot be read back: UnpicklingError: ")
    assert memory_line(MemoryError("no\nmore"), 0) == "out of memory: no more"
    assert 20_000_000 < allocated(30_000_000) - private_bytes_now() < 40_000_000


def test_a_limit_of_the_process_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks do not get more private memory than the process may have."""
    limits = [(1000, resource.RLIM_INFINITY)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.append(both))
    monkeypatch.setattr("symbolize.batch.engines.engine.private_bytes_now", lambda: 700)
    for limit, expected in ((0, None), (-1, None), (200, 900), (300, 1000), (400, 1000)):
        del limits[1:]
        with private_memory(limit):
            assert limits[1:] == ([(expected, resource.RLIM_INFINITY)] if expected else [])
        assert limits[-1] == limits[0]
