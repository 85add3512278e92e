"""The engine of a dask cluster: workers that do not fit, leave or take too long, and a scheduler that is lost."""

import itertools
import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from symbolize.batch.engines.engine import Engine, Task, TaskFailure, TaskLimits, TaskOutcome
from symbolize.core.errors import SymbolizeError, UsageError
from tests.support import batch_tasks
from tests.support.batch_runs import wait_until
from tests.support.engines import PATIENCE, Cluster, tasks_of
from tests.support.needs import package


def test_package_of_the_cluster_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a cluster is a usage error that says what to install."""
    from symbolize.batch.engines.cluster import DaskEngine

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install distributed$"):
        DaskEngine("tcp://127.0.0.1:1")


def test_no_scheduler() -> None:
    """An address at which nobody listens, and one that is none."""
    package("distributed")
    from symbolize.batch.engines.cluster import DaskEngine

    with pytest.raises(SymbolizeError, match=r"^tcp://127\.0\.0\.1:1: no dask scheduler answers$"):
        DaskEngine("tcp://127.0.0.1:1", patience=0.3)
    for address in ("what://x", "what://127.0.0.1:8786", "tcp://x:y"):
        with pytest.raises(UsageError, match=rf"^{address}: not the address of a dask scheduler"):
            DaskEngine(address, patience=0.3)


@pytest.mark.process
def test_workers_that_do_not_fit(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of the package at the workers is a usage error with both versions."""
    from symbolize.batch.engines import cluster as dask

    monkeypatch.setattr(dask, "__version__", "9.9.9")
    with pytest.raises(UsageError, match=r"has symbolize .* on Python 3\..*, but this is 9\.9\.9 on Python 3\."):
        dask.DaskEngine(cluster.address, PATIENCE)


@pytest.fixture
def workers() -> dict[str, dict[str, Any]]:
    """The workers of a scheduler that `dask_engine` is connected to."""
    return {name: {"nthreads": 1, "nanny": True} for name in ("a", "b", "c")}


@pytest.fixture
def dask_engine(workers: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> Any:
    """An engine whose scheduler is none."""
    distributed = package("distributed")
    from symbolize.batch.engines.cluster import DaskEngine

    monkeypatch.setattr(distributed, "Client", lambda *_, **__: Scheduler(workers))
    return DaskEngine("tcp://x:1")


class Scheduler:
    """The client of a scheduler with these workers: what they were told to do is in `sent`, `cancelled` and `killed`,
    and what they would note is put into `notes`."""

    status = "running"

    def __init__(self, workers: dict[str, dict[str, Any]]) -> None:
        self.workers = workers
        self.notes: dict[str, Any] = {}
        self.sent: list[str] = []
        self.clocks: list[tuple[float, float]] = []
        self.futures: list[Any] = []
        self.cancelled = 0
        self.killed: list[tuple[int, list[str]]] = []

    def wait_for_workers(self, count: int, timeout: float) -> None:
        assert len(self.workers) >= count

    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": self.workers}

    def run(self, function: Any, *arguments: Any, workers: list[str], on_error: str, nanny: bool = False) -> Any:
        from symbolize.batch.engines.cluster import describe_here, kill_process

        if function is kill_process:
            assert nanny
            self.killed.append((*arguments, workers))
            return dict.fromkeys(workers)
        assert function is describe_here
        return dict.fromkeys(workers, describe_here())

    def submit(self, *arguments: Any, key: str, workers: list[str], **options: Any) -> Any:
        self.sent += workers
        self.clocks.append(arguments[-1])
        self.futures.append(
            SimpleNamespace(key=key, done=lambda: False, add_done_callback=lambda _: None, release=lambda: None)
        )
        return self.futures[-1]

    def get_metadata(self, keys: list[str], default: Any) -> Any:
        return self.notes.get(keys[1], default) if len(keys) > 1 else self.notes

    def set_metadata(self, keys: list[str], value: Any) -> None:
        self.notes = value

    def cancel(self, futures: list[Any], force: bool) -> None:
        self.cancelled += len(futures)


def test_cluster_that_loses_its_workers(
    workers: dict[str, dict[str, Any]], dask_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may come back for some time, after which the run ends."""
    dask_engine.update_workers()
    assert dask_engine.workers == 3
    kept = dict(workers)
    workers.clear()
    dask_engine.update_workers()
    assert dask_engine.workers == 0
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 301)
    with pytest.raises(SymbolizeError, match=r"^tcp://x:1: .* has no workers left; the run can be continued"):
        dask_engine.update_workers()
    workers.update(kept)
    dask_engine.update_workers()
    assert dask_engine.workers == 3
    workers.clear()
    monkeypatch.setattr(time, "monotonic", lambda: now + 600)
    dask_engine.update_workers()
    workers["d"] = {"nthreads": 2, "nanny": True}
    with pytest.raises(UsageError, match="dask worker d has 2 threads"):
        dask_engine.update_workers()


def test_no_clock_ends_a_worker_without_a_nanny(workers: dict[str, dict[str, Any]], dask_engine: Any) -> None:
    """Nobody would start it again; the driver's own limit stays."""
    from symbolize.batch.engines.cluster import Run

    dask_engine.update_workers()
    run = Run(dask_engine, TaskLimits(5.0, waiting=9.0))
    run.send(Task("", batch_tasks.double, 4), b"", "task-0", "slot-0", "a", 0)
    workers["b"]["nanny"] = False
    dask_engine.update_workers()
    run.send(Task("", batch_tasks.double, 4), b"", "task-1", "slot-1", "a", 0)
    assert dask_engine._client.clocks == [TaskLimits(5.0, waiting=9.0).own, (0.0, 0.0)]
    assert all(dask_engine._client.clocks[0])


def test_which_worker_of_a_cluster_is_next(workers: dict[str, dict[str, Any]], dask_engine: Any) -> None:
    """The one with the least to do; with an affinity always the same; with short tasks each has a second one."""
    from symbolize.batch.engines.cluster import Run

    dask_engine.update_workers()
    run = Run(dask_engine, TaskLimits())
    run.loads["a"] = 1
    assert run.free_worker("") in ("b", "c")
    own = {key: run.free_worker(key) for key in map(str, range(20))}
    assert set(own.values()) == {"b", "c"}
    assert {key: run.free_worker(key) for key in own} == own
    run.loads.update("bc")
    assert run.free_worker("") == run.free_worker("1") == ""
    dask_engine._mean = 1.9
    assert {run.free_worker(key) for key in own} == {"a", "b", "c"}
    for name in workers:
        run.loads[name] -= 1
        assert run.free_worker("") == name
        run.loads[name] += 1
    del workers["b"]
    dask_engine.update_workers()
    run.loads.update("ac")
    assert run.free_worker("") == ""


def test_a_task_of_a_cluster_that_takes_too_long(dask_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time begins with each start anew; the worker is killed where it runs, and it is tried as often as it may."""
    from symbolize.batch.engines.cluster import Run

    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    client = dask_engine._client
    dask_engine.update_workers()
    run = Run(dask_engine, TaskLimits(seconds=10, attempts=2))
    run.send(Task("", batch_tasks.double, 1), b"", "task", "slot", "a", 0)

    def look(seconds: float) -> tuple[int, list[tuple[int, list[str]]], int]:
        clock[0] += seconds
        run.check()
        return client.cancelled, client.killed, len(client.sent)

    assert look(11) == (0, [], 1)  # it has not begun
    client.notes["slot"] = ("task", 1, "b", 77, None)
    assert look(11) == look(9.5) == (0, [], 1)
    assert look(1) == (1, [(77, ["b"])], 2)
    client.notes["slot"] = ("task", 2, "c", 78, None)
    assert look(20) == look(9.5) == (1, [(77, ["b"])], 2)
    assert not run.ended
    assert look(1) == (2, [(77, ["b"]), (78, ["c"])], 2)
    (outcome,) = run.ended
    assert (outcome.failure, outcome.detail, outcome.attempts) == (TaskFailure.TIME, "took longer than 10 s", 2)
    assert not run.busy
    assert run.free_slots == ["slot"]


def test_a_worker_of_a_cluster_that_has_left(workers: dict[str, dict[str, Any]], dask_engine: Any) -> None:
    """What was sent to it is sent again if it was away at two looks and nobody else has taken it; a reply counts."""
    from symbolize.batch.engines.cluster import Run

    client = dask_engine._client
    dask_engine.update_workers()
    run = Run(dask_engine, TaskLimits())
    for name in ("lost", "moved", "answered", "waiting"):
        run.send(Task(name, batch_tasks.double, 1), b"", name, name, "b" if name == "waiting" else "a", 0)
    client.notes["moved"] = ("moved", 1, "c", 77, None)
    client.notes["answered"] = ("answered", 1, "a", 76, (pickle.dumps(5), None, "", 0.1))
    run.check()
    del workers["a"]
    for _ in range(2):
        assert (client.sent, client.cancelled) == (["a", "a", "a", "b"], 0)
        run.check()
    assert (client.sent[4:], client.cancelled, client.killed) == (["c"], 2, [])
    assert [(outcome.task.key, outcome.value, outcome.failure) for outcome in run.ended] == [("answered", 5, None)]
    assert sorted((flight.task.key, flight.worker) for flight in run.busy.values()) == [
        ("lost", "c"),
        ("moved", "a"),
        ("waiting", "b"),
    ]


@pytest.mark.parametrize(
    ("starts", "sent", "attempts", "detail"),
    [([0] * 10, 10, 1, "its dask worker  died"), ([1, 2, 3], 3, 3, "its dask worker b died")],
)
def test_a_task_of_a_cluster_that_dies(
    starts: list[int], sent: int, attempts: int, detail: str, dask_engine: Any
) -> None:
    """It is sent again as often as it may be started; what is lost before it began is no attempt, but not for good."""
    from symbolize.batch.engines.cluster import Run

    client = dask_engine._client
    dask_engine.update_workers()
    run = Run(dask_engine, TaskLimits())
    run.send(Task("", batch_tasks.double, 1), b"", "task", "slot", "a", 0)
    for number in starts:
        if number:
            client.notes["slot"] = ("task", number, "b", 77, None)
        assert not run.ended
        run.land(run.busy[client.futures[-1].key])
    (outcome,) = run.ended
    assert (outcome.failure, outcome.detail, outcome.attempts) == (TaskFailure.CRASH, detail, attempts)
    assert (len(client.sent), run.busy, +run.loads) == (sent, {}, {})


def test_only_the_worker_that_is_meant_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that its nanny has replaced meanwhile is not."""
    from symbolize.batch.engines.cluster import kill_process

    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *given: killed.append(given))
    for process in (None, SimpleNamespace(pid=8), SimpleNamespace(pid=7)):
        kill_process(7, SimpleNamespace(process=process))
    assert killed == [(7, signal.SIGKILL)]


def test_what_a_run_leaves_on_a_cluster(dask_engine: Any) -> None:
    """Nothing: what is under way is taken back, where it runs by killing, and the notes go."""
    from symbolize.batch.engines.cluster import Run

    client = dask_engine._client
    dask_engine.update_workers()
    run = Run(dask_engine, TaskLimits())
    for name in ("running", "waiting", "answered"):
        run.send(Task(name, batch_tasks.double, 1), b"", name, name, "a", 0)
    client.notes["running"] = ("running", 1, "b", 77, None)
    client.notes["answered"] = ("answered", 1, "a", 76, (pickle.dumps(5), None, "", 0.1))
    run.stop(is_whole=False)
    assert (client.cancelled, client.killed, client.notes, run.busy) == (3, [(77, ["b"])], None, {})


def test_a_run_that_is_interrupted_between_tasks(dask_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends without an answer of the scheduler, although nothing is on the cluster any more."""
    from symbolize.batch.engines import cluster

    answers = threading.Event()
    monkeypatch.setattr(cluster, "GOODBYE", 0.01)
    monkeypatch.setattr(dask_engine._client, "set_metadata", lambda *_: answers.wait())
    run = cluster.Run(dask_engine, TaskLimits())
    run.ended.append(TaskOutcome(Task("done", batch_tasks.double, 1), 2, None, "", 1, 0.0))
    outcomes = run.outcomes([])
    assert next(outcomes).value == 2
    began = time.monotonic()
    outcomes.close()
    answers.set()
    assert time.monotonic() - began < cluster.SILENCE / 2


def run_for_good(engine: Engine) -> None:
    """Run tasks without end."""
    with engine:
        for outcome in engine.run(tasks_of(batch_tasks.double, itertools.repeat(4)), TaskLimits()):
            assert outcome.value == 8


def fits(address: str) -> bool:
    """Whether all workers of a cluster can be used."""
    from symbolize.batch.engines.cluster import DaskEngine

    try:
        DaskEngine(address, PATIENCE).close()
    except UsageError:
        return False
    return True


@pytest.mark.process
@pytest.mark.full
def test_cluster_that_does_not_fit_and_is_lost(tmp_path: Path) -> None:
    """A worker that cannot import the package is refused, whenever it comes; a scheduler that is frozen or lost ends
    the run."""
    package("distributed")
    from symbolize.batch.engines.cluster import DaskEngine

    other = tmp_path / "other"
    (other / "symbolize").mkdir(parents=True)
    (other / "symbolize" / "__init__.py").touch()
    cluster = Cluster(tmp_path, 1)
    cluster.add_worker(path=str(other))
    try:
        with pytest.raises(
            UsageError, match=r"^dask worker tcp://.* cannot import symbolize .*(ModuleNotFound|Import)Error"
        ):
            run_for_good(DaskEngine(cluster.address, PATIENCE))
        cluster.processes.pop().kill()
        wait_until(lambda: fits(cluster.address))
        scheduler = cluster.processes[0]
        engine = DaskEngine(cluster.address, PATIENCE)
        engine._patience = 1.0
        threading.Timer(0.3, scheduler.send_signal, [signal.SIGSTOP]).start()
        with pytest.raises(
            SymbolizeError, match="the dask scheduler does not answer for 1 s; the run can be continued"
        ):
            run_for_good(engine)
        scheduler.send_signal(signal.SIGCONT)
        engine = DaskEngine(cluster.address, PATIENCE)
        threading.Timer(0.3, scheduler.kill).start()
        with pytest.raises(SymbolizeError, match="connection to the dask scheduler is lost; the run can be continued"):
            run_for_good(engine)
    finally:
        cluster.stop()
