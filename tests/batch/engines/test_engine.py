"""What engines promise, for each of them; workers die, hang and run out of memory in earnest."""

import itertools
import json
import mmap
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from symbolize.batch.engines import local
from symbolize.batch.engines.engine import (
    Engine,
    Failure,
    Limits,
    Outcome,
    Reply,
    Task,
    memory_line,
    outcome_of,
    packed,
    perform,
    private_bytes_now,
    private_memory,
)
from symbolize.batch.engines.local import Attempt, Lane, LocalEngine, ended, ending
from symbolize.core.errors import SymbolizeError, UsageError
from tests.support import batch_tasks
from tests.support.batch_runs import kill_group

ROOT = Path(__file__).parents[3]
ONCE = Limits(attempts=1)
PATIENCE = 120.0
"""Seconds in which workers and whatever is waited for have come, on the busiest machine."""


def wait_until(condition: Callable[[], Any]) -> None:
    """Wait for a condition to hold."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def is_running(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Cluster:
    """A dask scheduler and its workers, as processes of this machine."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        self.start("distributed.cli.dask_scheduler", *options)
        for _ in range(workers):
            self.add_worker()
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        self.address: str = json.loads(file.read_text())["address"]

    def add_worker(self, *options: str, path: str = str(ROOT)) -> None:
        """Start one more worker."""
        always = ["--host", "127.0.0.1", "--memory-limit", "0", "--no-dashboard", "--local-directory", str(self.folder)]
        always += ["--scheduler-file", str(self.folder / "scheduler.json")]
        self.start("distributed.cli.dask_worker", *always, *(options or ("--nthreads", "1")), path=path)

    def start(self, module: str, *arguments: str, path: str = str(ROOT)) -> None:
        """Start a process of the cluster."""
        log = (self.folder / f"{len(self.processes)}.log").open("wb")
        with log:
            environment = {**os.environ, "PYTHONPATH": path}
            command = [sys.executable, "-m", module, *arguments]
            self.processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.folder))

    def stop(self) -> None:
        """End all of it; workers end with their nannies."""
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two workers."""
    pytest.importorskip("distributed")
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), 2)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module", params=["local", "dask"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine, with two workers."""
    if request.param == "local":
        with LocalEngine(2) as local:
            yield local
        return
    address = request.getfixturevalue("cluster").address
    from symbolize.batch.engines.cluster import DaskEngine

    with DaskEngine(address, PATIENCE) as dask:
        wait_until(lambda: len(dask._client.nthreads()) == 2)
        yield dask


def tasks_of(function: Callable[[Any], Any], arguments: Any) -> Iterator[Task]:
    """A task for each argument, whose text is its key."""
    return (Task(f"{function.__name__} {argument}", function, argument) for argument in arguments)


def only(outcomes: Iterator[Outcome]) -> Outcome:
    """The one outcome that there is."""
    (outcome,) = outcomes
    return outcome


def test_values(engine: Engine) -> None:
    """Each task has one outcome with its value; affinity does not change it."""
    tasks = [Task(str(number), batch_tasks.double, number, "ab"[number % 2] * (number % 3)) for number in range(30)]
    outcomes = list(engine.run(tasks, Limits()))
    assert sorted(outcome.value for outcome in outcomes) == [2 * number for number in range(30)]
    assert {outcome.task for outcome in outcomes} == set(tasks)
    assert {(outcome.failure, outcome.detail, outcome.attempts) for outcome in outcomes} == {(None, "", 1)}
    assert list(engine.run([], Limits())) == []


def test_tasks_are_taken_as_needed(engine: Engine) -> None:
    """An endless iterable works, and is never far ahead of the outcomes."""
    taken = 0

    def endless() -> Iterator[Task]:
        nonlocal taken
        for taken in itertools.count(1):
            yield Task(str(taken), batch_tasks.double, taken)

    outcomes = engine.run(endless(), Limits())
    for given, _ in enumerate(itertools.islice(outcomes, 20), 1):
        assert taken <= given + 2 * 2
    outcomes.close()  # type: ignore[attr-defined]
    assert only(engine.run(tasks_of(batch_tasks.double, [4]), Limits())).value == 8


def test_crash(engine: Engine, tmp_path: Path) -> None:
    """A task that always kills its worker fails alone; one that does so once succeeds when tried again."""
    once = [str(tmp_path / "once")]
    tasks = [*tasks_of(batch_tasks.kill_self, [signal.SIGKILL]), *tasks_of(batch_tasks.kill_self_once, once)]
    outcomes = list(engine.run([*tasks, *tasks_of(batch_tasks.double, range(10))], Limits(attempts=2)))
    found = {outcome.task.function: outcome for outcome in outcomes}
    crashed, tried = found[batch_tasks.kill_self], found[batch_tasks.kill_self_once]
    assert (crashed.failure, crashed.value, crashed.attempts) == (Failure.CRASH, None, 2)
    assert ("killed by SIGKILL" if isinstance(engine, LocalEngine) else "died") in crashed.detail
    assert (tried.value, tried.failure, tried.attempts) == ("alive", None, 2)
    assert [outcome.failure for outcome in outcomes].count(None) == 11


def test_deadline(engine: Engine) -> None:
    """A task that is stuck in native code with the interpreter's lock is ended, and no other with it."""
    tasks = [*tasks_of(batch_tasks.sleep_natively, [1000]), *tasks_of(batch_tasks.double, range(5))]
    outcomes = {outcome.task.key: outcome for outcome in engine.run(tasks, Limits(seconds=1, attempts=1))}
    stuck = outcomes.pop("sleep_natively 1000")
    assert (stuck.failure, stuck.detail, stuck.attempts) == (Failure.TIME, "took longer than 1 s", 1)
    assert [outcome.failure for outcome in outcomes.values()] == [None] * 5


def test_stores_have_their_own_time(engine: Engine) -> None:
    """What a task waits for stores is not charged to it, but it is not to wait for good (rule R287). Its own time is
    limited as ever."""
    limits = Limits(seconds=1.5, attempts=1, waiting=60)
    list(engine.run(tasks_of(batch_tasks.wait_for_store, [0.0] * 4), Limits()))  # all is imported
    assert only(engine.run(tasks_of(batch_tasks.wait_for_store, [2.0]), limits)).value == "answered"
    short = limits._replace(waiting=0.3)
    assert only(engine.run(tasks_of(batch_tasks.wait_for_store, [20.0]), short)).value == "no answer in 0.3 s"
    stuck = only(engine.run(tasks_of(batch_tasks.sleep_natively, [100]), limits._replace(seconds=0.3)))
    assert (stuck.failure, stuck.detail) == (Failure.TIME, "took longer than 0.3 s")


def test_memory(engine: Engine, tmp_path: Path) -> None:
    """Private memory is limited for each task; the pages of mapped files do not count, nor what others used."""
    file = tmp_path / "big"
    with file.open("wb") as opened:
        opened.truncate(200_000_000)
    mapped = tasks_of(batch_tasks.read_mapped, [str(file)])
    fitting = tasks_of(batch_tasks.allocate, [20_000_000] * 4)
    tasks = [*tasks_of(batch_tasks.allocate, [100_000_000]), *mapped, *fitting]
    found = {outcome.task.key: outcome for outcome in engine.run(tasks, Limits(private_bytes=50_000_000, attempts=2))}
    over = found["allocate 100000000"]
    assert (over.failure, over.detail, over.attempts) == (Failure.MEMORY, "out of memory of 50 MB", 2)
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
    found = {outcome.task.key: outcome for outcome in engine.run(tasks, Limits())}
    assert {(outcome.failure, outcome.attempts) for outcome in found.values()} == {(Failure.ERROR, 1)}
    assert found["fail input"].detail == "a.pb.gz: cut off at offset 0xc"
    assert found["fail other"].detail == "ValueError: first second other"
    assert found["exit_politely 0"].detail == "SystemExit: 3"
    assert "pickle" in found["unpicklable 0"].detail and "pickle" in found["argument"].detail


def test_workers_killed_at_random(engine: Engine) -> None:
    """Whichever workers are killed, each task has one outcome with its value."""
    pids: list[int] = []
    outcomes = []
    for outcome in engine.run(tasks_of(batch_tasks.process_after, [0.01] * 40), Limits(attempts=10)):
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
    tasks = itertools.chain(
        tasks_of(batch_tasks.note_and_sleep_natively, [str(path)]), tasks_of(batch_tasks.double, itertools.count())
    )
    outcomes = engine.run(tasks, Limits())
    next(outcomes)
    wait_until(path.exists)
    process = int(path.read_text())
    assert is_running(process)
    outcomes.close()  # type: ignore[attr-defined]
    wait_until(lambda: not is_running(process))
    assert only(engine.run(tasks_of(batch_tasks.double, [4]), Limits())).value == 8


def test_worker_that_ends_without_a_word() -> None:
    """A worker that native code ended with exit status 0 is missed, though it tells of no failure."""
    with LocalEngine(1) as engine:
        outcome = only(engine.run(tasks_of(batch_tasks.leave, [0]), ONCE))
        assert (outcome.failure, outcome.detail) == (Failure.CRASH, "its worker process ended without an answer")
        outcome = only(engine.run(tasks_of(batch_tasks.leave, [7]), ONCE))
        assert outcome.detail == "its worker process ended with exit status 7"


def test_idle_worker_that_died() -> None:
    """What kills a worker between two tasks is not the fault of the next."""
    with LocalEngine(1) as engine:
        process = only(engine.run(tasks_of(batch_tasks.process_after, [0]), ONCE)).value
        os.kill(process, signal.SIGKILL)
        outcome = only(engine.run(tasks_of(batch_tasks.double, [4]), ONCE))
        assert (outcome.value, outcome.attempts) == (8, 1)


def test_workers_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no worker starts the run ends, with one line."""
    monkeypatch.setattr("symbolize.batch.engines.local.end_with_parent", batch_tasks.refuse_to_start)
    with LocalEngine(2) as engine, pytest.raises(SymbolizeError, match="worker processes cannot be started"):
        list(engine.run(tasks_of(batch_tasks.double, range(4)), Limits()))


def allocated(size: int) -> int:
    """Map `size` private bytes, which malloc might take from what it kept, and say what the kernel counts then."""
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        return private_bytes_now()


def test_what_a_worker_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call's value, or one line that says why there is none; the limits of the process are what they were."""
    before = resource.getrlimit(resource.RLIMIT_DATA)

    def performed(function: Any, argument: Any, private_bytes: int = 0) -> Outcome:
        task = Task("", function, argument)
        reply = perform(packed(task), private_bytes)
        assert 0 <= reply.seconds < 60
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
        return outcome_of(task, reply, 2)

    assert performed(batch_tasks.double, 4)[1:5] == (8, None, "", 2)
    assert performed(batch_tasks.fail, "input")[2:4] == (Failure.ERROR, "a.pb.gz: cut off at offset 0xc")
    assert performed(batch_tasks.fail, "x")[2:4] == (Failure.ERROR, "ValueError: first second x")
    assert performed(batch_tasks.allocate, 10_000_000, 50_000_000).value == 10_000_000
    limited = performed(batch_tasks.allocate, 400_000_000, 50_000_000)
    assert limited[2:4] == (Failure.MEMORY, "out of memory of 50 MB")
    task = Task("", batch_tasks.double, 4)
    unreadable = outcome_of(task, Reply(b"?", None, "", 0.0), 1)
    assert unreadable.failure is Failure.ERROR
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


class Pool:
    """A pebble pool whose worker says nothing."""

    active = True

    def schedule(self, *_: Any, **options: Any) -> "Future[Any]":
        return Future()


def lane(seconds: float, process: int | None, losses: int = 0) -> Lane:
    """A worker with a task that began now; `process` is its number once it has started."""
    result = Lane.__new__(Lane)
    vars(result).update(pool=Pool(), attempt=None, future=None, is_good=True, hello=Future())
    if process is not None:
        result.hello.set_result(process)
    result.start(Attempt(Task("", batch_tasks.double, 1), b"", 1, losses), Limits(seconds=seconds))
    return result


def test_workers_that_pebble_does_not_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task ends whose worker is gone at two looks, or that is long overdue; no other."""
    monkeypatch.setattr(local, "LOOK_AGAIN", 0.01)
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
        (None, 5, 1, Failure.CRASH),
        (7, 0, 1, Failure.CRASH),
        (7, 0, 6, Failure.TIME),
    ],
)
def test_how_a_task_ended_that_pebble_did_not_end(
    process: int | None, losses: int, after: float, failure: Failure | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It vanished before it began, which is no attempt, or with its worker, or took too long."""
    now = time.monotonic()
    limits = Limits(seconds=5)
    worker = lane(5, process, losses)
    monkeypatch.setattr(time, "monotonic", lambda: now + after)
    attempt, outcome = worker.end(limits)
    assert (attempt.losses, worker.attempt, worker.is_good) == (losses, None, False)
    assert (outcome.failure if outcome else None) == failure
    if failure is Failure.TIME:
        assert outcome is not None and outcome.detail == "took longer than 5 s"


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
        next(engine.run(tasks_of(batch_tasks.double, [4]), Limits()))


@pytest.mark.parametrize(
    ("status", "text"),
    [(3, "ended with exit status 3"), (-11, "was killed by SIGSEGV"), (-40, "was killed by signal 40")],
)
def test_ending(status: int, text: str) -> None:
    """Exit statuses in words."""
    assert ending(status) == text


DRIVER = """
import sys
from symbolize.batch.engines.engine import Limits, Task
from symbolize.batch.engines.local import LocalEngine
from tests.support import batch_tasks
if __name__ == "__main__":
    with LocalEngine(1) as engine:
        list(engine.run([Task("", batch_tasks.note_and_sleep_natively, sys.argv[1])], Limits()))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
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


def test_package_of_the_cluster_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra a cluster is a usage error that names it."""
    from symbolize.batch.engines.cluster import DaskEngine

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'symbolize\[dask\]'"):
        DaskEngine("tcp://127.0.0.1:1")


def test_no_scheduler() -> None:
    """An address at which nobody listens, and one that is none."""
    pytest.importorskip("distributed")
    from symbolize.batch.engines.cluster import DaskEngine

    with pytest.raises(SymbolizeError, match=r"^tcp://127\.0\.0\.1:1: no dask scheduler answers$"):
        DaskEngine("tcp://127.0.0.1:1", patience=0.3)
    with pytest.raises(UsageError, match=r"^what://x: not the address of a dask scheduler"):
        DaskEngine("what://x", patience=0.3)


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
    distributed = pytest.importorskip("distributed")
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
    dask_engine._look_at_workers()
    assert dask_engine.workers == 3
    kept = dict(workers)
    workers.clear()
    dask_engine._look_at_workers()
    assert dask_engine.workers == 0
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 301)
    with pytest.raises(SymbolizeError, match=r"^tcp://x:1: .* has no workers left; the run can be continued"):
        dask_engine._look_at_workers()
    workers.update(kept)
    dask_engine._look_at_workers()
    assert dask_engine.workers == 3
    workers.clear()
    monkeypatch.setattr(time, "monotonic", lambda: now + 600)
    dask_engine._look_at_workers()
    workers["d"] = {"nthreads": 2, "nanny": True}
    with pytest.raises(UsageError, match="dask worker d has 2 threads"):
        dask_engine._look_at_workers()


def test_no_clock_ends_a_worker_without_a_nanny(workers: dict[str, dict[str, Any]], dask_engine: Any) -> None:
    """Nobody would start it again; the driver's own limit stays."""
    from symbolize.batch.engines.cluster import Run

    dask_engine._look_at_workers()
    run = Run(dask_engine, Limits(5.0, waiting=9.0))
    run.send(Task("", batch_tasks.double, 4), b"", "task-0", "slot-0", "a", 0)
    workers["b"]["nanny"] = False
    dask_engine._look_at_workers()
    run.send(Task("", batch_tasks.double, 4), b"", "task-1", "slot-1", "a", 0)
    assert dask_engine._client.clocks == [Limits(5.0, waiting=9.0).own, (0.0, 0.0)]
    assert all(dask_engine._client.clocks[0])


def test_which_worker_of_a_cluster_is_next(workers: dict[str, dict[str, Any]], dask_engine: Any) -> None:
    """The one with the least to do; with an affinity always the same; with short tasks each has a second one."""
    from symbolize.batch.engines.cluster import Run

    dask_engine._look_at_workers()
    run = Run(dask_engine, Limits())
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
    dask_engine._look_at_workers()
    run.loads.update("ac")
    assert run.free_worker("") == ""


def test_a_task_of_a_cluster_that_takes_too_long(dask_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time begins with each start anew; the worker is killed where it runs, and it is tried as often as it may."""
    from symbolize.batch.engines.cluster import Run

    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    client = dask_engine._client
    dask_engine._look_at_workers()
    run = Run(dask_engine, Limits(seconds=10, attempts=2))
    run.send(Task("", batch_tasks.double, 1), b"", "task", "slot", "a", 0)

    def look(seconds: float) -> tuple[int, list[tuple[int, list[str]]], int]:
        clock[0] += seconds
        run.look()
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
    assert (outcome.failure, outcome.detail, outcome.attempts) == (Failure.TIME, "took longer than 10 s", 2)
    assert not run.busy
    assert run.free_slots == ["slot"]


def test_a_worker_of_a_cluster_that_has_left(workers: dict[str, dict[str, Any]], dask_engine: Any) -> None:
    """What was sent to it is sent again if it was away at two looks and nobody else has taken it; a reply counts."""
    from symbolize.batch.engines.cluster import Run

    client = dask_engine._client
    dask_engine._look_at_workers()
    run = Run(dask_engine, Limits())
    for name in ("lost", "moved", "answered", "waiting"):
        run.send(Task(name, batch_tasks.double, 1), b"", name, name, "b" if name == "waiting" else "a", 0)
    client.notes["moved"] = ("moved", 1, "c", 77, None)
    client.notes["answered"] = ("answered", 1, "a", 76, (pickle.dumps(5), None, "", 0.1))
    run.look()
    del workers["a"]
    for _ in range(2):
        assert (client.sent, client.cancelled) == (["a", "a", "a", "b"], 0)
        run.look()
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
    dask_engine._look_at_workers()
    run = Run(dask_engine, Limits())
    run.send(Task("", batch_tasks.double, 1), b"", "task", "slot", "a", 0)
    for number in starts:
        if number:
            client.notes["slot"] = ("task", number, "b", 77, None)
        assert not run.ended
        run.land(run.busy[client.futures[-1].key])
    (outcome,) = run.ended
    assert (outcome.failure, outcome.detail, outcome.attempts) == (Failure.CRASH, detail, attempts)
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
    dask_engine._look_at_workers()
    run = Run(dask_engine, Limits())
    for name in ("running", "waiting", "answered"):
        run.send(Task(name, batch_tasks.double, 1), b"", name, name, "a", 0)
    client.notes["running"] = ("running", 1, "b", 77, None)
    client.notes["answered"] = ("answered", 1, "a", 76, (pickle.dumps(5), None, "", 0.1))
    run.stop()
    assert (client.cancelled, client.killed, client.notes, run.busy) == (3, [(77, ["b"])], None, {})


def run_for_good(engine: Engine) -> None:
    """Run tasks without end."""
    with engine:
        for outcome in engine.run(tasks_of(batch_tasks.double, itertools.repeat(4)), Limits()):
            assert outcome.value == 8


def fits(address: str) -> bool:
    """Whether all workers of a cluster can be used."""
    from symbolize.batch.engines.cluster import DaskEngine

    try:
        DaskEngine(address, PATIENCE).close()
    except UsageError:
        return False
    return True


def test_cluster_that_does_not_fit_and_is_lost(tmp_path: Path) -> None:
    """A worker that cannot import the package is refused, whenever it comes; a scheduler that is frozen or lost ends
    the run."""
    pytest.importorskip("distributed")
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
