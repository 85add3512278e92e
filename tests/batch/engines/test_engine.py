"""What engines promise, for each of them; workers die, hang and run out of memory in earnest."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch.engines.engine import Engine, Failure, Limits, Outcome, Task
from symbolize.batch.engines.local import LocalEngine, ending
from symbolize.errors import SymbolizeError, UsageError
from tests.support import batch_tasks

ROOT = Path(__file__).parents[3]
ONCE = Limits(attempts=1)


def wait_until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait for a condition to hold."""
    end = time.monotonic() + seconds
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

    with DaskEngine(address) as dask:
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
    tasks = [*tasks_of(batch_tasks.sleep_natively, [100]), *tasks_of(batch_tasks.double, range(5))]
    began = time.monotonic()
    outcomes = {outcome.task.key: outcome for outcome in engine.run(tasks, Limits(seconds=0.3, attempts=1))}
    stuck = outcomes.pop("sleep_natively 100")
    assert (stuck.failure, stuck.detail, stuck.attempts) == (Failure.TIME, "took longer than 0.3 s", 1)
    assert [outcome.failure for outcome in outcomes.values()] == [None] * 5
    assert time.monotonic() - began < 15


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
    wait_until(path.exists)
    process = int(path.read_text())
    if number == signal.SIGINT:
        os.killpg(driver.pid, number)
    else:
        driver.send_signal(number)
    wait_until(lambda: not is_running(process))
    _, errors = driver.communicate(timeout=20)
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
        dask.DaskEngine(cluster.address)


def run_for_good(engine: Engine) -> None:
    """Run tasks without end."""
    with engine:
        for outcome in engine.run(tasks_of(batch_tasks.double, itertools.repeat(4)), Limits()):
            assert outcome.value == 8


def fits(address: str) -> bool:
    """Whether all workers of a cluster can be used."""
    from symbolize.batch.engines.cluster import DaskEngine

    try:
        DaskEngine(address).close()
    except UsageError:
        return False
    return True


def test_cluster_that_does_not_fit_and_is_lost(tmp_path: Path) -> None:
    """A worker that cannot import the package is refused, whenever it comes; a lost scheduler ends the run."""
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
            run_for_good(DaskEngine(cluster.address))
        cluster.processes.pop().kill()
        wait_until(lambda: fits(cluster.address))
        engine = DaskEngine(cluster.address)
        threading.Timer(0.3, cluster.processes[0].kill).start()
        with pytest.raises(SymbolizeError, match="connection to the dask scheduler is lost; the run can be continued"):
            run_for_good(engine)
    finally:
        cluster.stop()
