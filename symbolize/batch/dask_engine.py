"""The engine of a cluster: tasks go to the workers of a dask scheduler.

Dask tries the tasks of a worker that died again by itself, counts queued ones as suspects too, and knows no
deadline. So each task notes its start with the scheduler before it begins: from these notes the attempts are
counted, and the driver sees which worker to kill when a task is overdue.
"""

import contextlib
import hashlib
import itertools
import os
import platform
import signal
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, Self

from symbolize import __version__
from symbolize.batch.engine import Failure, Limits, Outcome, Reply, Task, one_line, outcome_of, packed, perform
from symbolize.errors import SymbolizeError, UsageError

LOOK = 1.0
"""Seconds between two looks at the notes of the running tasks and at the workers."""

SHORT = 2.0
"""Mean seconds of tasks below which each worker has a second one waiting, so that it need not wait for the driver."""

PATIENCE = 300.0
"""Seconds for which a cluster may be without workers during a run, and a finished task without its result."""

LOSSES = 10
"""Times that a task may get lost before it began, until it counts as failed."""


class Flight(NamedTuple):
    """A task on the cluster: its packed call, its future, the key and place of its note, and the worker that it was sent to."""

    task: Task
    call: bytes
    future: Any
    key: str
    slot: str
    worker: str
    losses: int


class Note(NamedTuple):
    """What a task notes when it starts: its key, the how many-th start this is, and where."""

    key: str
    starts: int
    worker: str
    process: int


class DaskEngine:
    """Runs tasks on the workers of the dask scheduler at `address`, as `tcp://host:8786`.

    TLS and its certificates are taken from dask's own configuration. Workers have one thread each and the same
    version of this package; deadlines need their nannies. They may come and go during a run.
    """

    def __init__(self, address: str, patience: float = 30.0) -> None:
        """Connect, and wait at most `patience` seconds for the first worker.

        Raises UsageError if dask is not installed, the address is none, or a worker does not fit, SymbolizeError
        if there is no scheduler or no worker.
        """
        try:
            import distributed
        except ImportError:
            raise UsageError("a dask cluster needs the package distributed: pip install 'symbolize[dask]'") from None
        self.address = address
        self._addresses: dict[str, bool] = {}
        self._fit: set[str] = set()
        self._mean = 0.0
        self._last_seen = time.monotonic()
        try:
            self._client = distributed.Client(address, timeout=patience, set_as_default=False, name="symbolize")
        except (ValueError, TypeError, ImportError) as error:
            raise UsageError(f"{address}: not the address of a dask scheduler: {one_line(error)}") from error
        except OSError as error:
            raise SymbolizeError(f"{address}: no dask scheduler answers") from error
        try:
            self._client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            self.close()
            raise SymbolizeError(f"{address}: the dask scheduler has no workers") from error
        try:
            self._look_at_workers()
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        """Workers at present."""
        return len(self._addresses)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster, whose workers stay."""
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)

    def run(self, tasks: Iterable[Task], limits: Limits) -> Iterator[Outcome]:
        """See `Engine.run`. Raises SymbolizeError when the scheduler is lost or no workers are left."""
        return Run(self, limits).outcomes(tasks)

    def _look_at_workers(self) -> None:
        """Learn which workers there are. Raises UsageError for one that does not fit."""
        info = self._asked(self._client.scheduler_info)["workers"]
        new = [address for address in info if address not in self._fit]
        if new:
            answers = self._asked(self._client.run, describe, workers=new, on_error="return")
            for address, answer in answers.items():
                if isinstance(answer, OSError):
                    continue  # it has left again
                if isinstance(answer, BaseException):
                    raise UsageError(f"dask worker {address} cannot import symbolize {__version__}: {one_line(answer)}")
                if tuple(answer) != describe():
                    here, there = " on Python ".join(describe()), " on Python ".join(answer)
                    raise UsageError(f"dask worker {address} has symbolize {there}, but this is {here}")
                if info[address]["nthreads"] != 1:
                    raise UsageError(f"dask worker {address} has {info[address]['nthreads']} threads: use --nthreads 1")
                self._fit.add(address)
        self._addresses = {address: bool(entry["nanny"]) for address, entry in info.items() if address in self._fit}
        self._fit &= info.keys()
        if self._addresses:
            self._last_seen = time.monotonic()
        elif time.monotonic() - self._last_seen > PATIENCE:
            raise SymbolizeError(f"{self.address}: the dask scheduler has no workers left; the run can be continued")

    def _asked(self, function: Any, *arguments: Any, **options: Any) -> Any:
        """What a call to the scheduler returns. Raises SymbolizeError if the connection is lost."""
        if self._client.status == "running":
            with contextlib.suppress(OSError):  # the comm errors of dask among them
                return function(*arguments, **options)
        raise SymbolizeError(f"{self.address}: the connection to the dask scheduler is lost; the run can be continued")


class Run:
    """One run of tasks on a cluster."""

    def __init__(self, engine: DaskEngine, limits: Limits) -> None:
        self.engine = engine
        self.client = engine._client
        self.limits = limits
        self.name = f"symbolize-{uuid.uuid4().hex}"
        self.numbers = itertools.count()
        self.busy: dict[str, Flight] = {}
        self.loads: Counter[str] = Counter()
        self.free_slots: list[str] = []
        self.events: SimpleQueue[Any] = SimpleQueue()
        self.ended: deque[Outcome] = deque()
        self.started: dict[str, tuple[Note, float]] = {}
        self.looked = time.monotonic()

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        """Run `tasks`; see `Engine.run`."""
        fresh = iter(tasks)
        try:
            while True:
                while len(self.ended) <= self.engine.workers and (worker := self.free_worker("")):
                    task = next(fresh, None)
                    if task is None:
                        break
                    try:
                        call = packed(task)
                    except Exception as error:
                        self.ended.append(Outcome(task, None, Failure.ERROR, one_line(error), 1, 0.0))
                        continue
                    number = next(self.numbers)
                    slot = self.free_slots.pop() if self.free_slots else f"slot-{number}"
                    if task.affinity:
                        worker = self.free_worker(task.affinity)
                    self.send(task, call, f"task-{number}", slot, worker, 0)
                if self.ended:
                    yield self.ended.popleft()
                elif self.busy:
                    self.wait()
                elif self.engine.workers:
                    return
                else:
                    time.sleep(LOOK)
                    self.engine._look_at_workers()
        finally:
            self.stop()

    def free_worker(self, affinity: str) -> str:
        """A worker that may have one more task, empty if there is none.

        With an affinity it is the first in an order of the workers that is the same each time, and changes
        little when workers come and go (rendezvous hashing).
        """
        depth = 2 if 0 < self.engine._mean < SHORT else 1
        free = [worker for worker in self.engine._addresses if self.loads[worker] < depth]
        if not affinity:
            return min(free, key=lambda worker: self.loads[worker], default="")
        return max(free, key=lambda worker: hashlib.blake2b(f"{affinity}\0{worker}".encode()).digest(), default="")

    def send(self, task: Task, call: bytes, key: str, slot: str, worker: str, losses: int) -> None:
        """Send a task to a worker; `key` names it in its note at `slot`."""
        place = [worker] if worker else None
        future = self.client.submit(
            perform_noted,
            call,
            (self.name, slot),
            key,
            self.limits,
            key=f"{self.name}-{key}-{next(self.numbers)}",
            workers=place,
            allow_other_workers=place is not None,
            pure=False,
            retries=0,
        )
        self.busy[future.key] = Flight(task, call, future, key, slot, worker, losses)
        self.loads[worker] += 1
        future.add_done_callback(self.events.put)

    def send_again(self, flight: Flight, losses: int) -> None:
        """Send a task that did not come to an end."""
        worker = self.free_worker(flight.task.affinity)
        self.send(flight.task, flight.call, flight.key, flight.slot, worker, losses)

    def wait(self) -> None:
        """Wait for tasks to end, and look after those that run from time to time."""
        rest = self.looked + LOOK - time.monotonic()
        if rest <= 0:
            self.look()
            rest = LOOK
        try:
            future = self.events.get(timeout=rest)
        except Empty:
            return
        while True:
            flight = self.busy.get(future.key)
            if flight is not None and flight.future is future:
                self.land(flight)
            if self.events.empty():
                return
            future = self.events.get_nowait()

    def take(self, flight: Flight) -> None:
        """Forget a flight, and what the cluster keeps of it."""
        del self.busy[flight.future.key]
        self.loads[flight.worker] -= 1

    def land(self, flight: Flight) -> None:
        """Take what came of a task whose future is done."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        self.take(flight)
        reply: Reply | None = None
        try:
            reply, starts = flight.future.result(timeout=PATIENCE)
        except (KilledWorker, FutureCancelledError, TimeoutError) as error:
            # The worker died with it, running or queued; or a stranger has restarted the cluster.
            if isinstance(error, TimeoutError):
                self.engine._asked(self.client.cancel, [flight.future], force=True)
            note = self.note(flight)
            starts = note.starts if note else 0
            losses = flight.losses + (starts == 0)
            if starts < self.limits.attempts and losses < LOSSES:
                self.send_again(flight, losses)
                return
            where = f" {note.worker}" if note else ""
            reply = Reply(b"", Failure.CRASH, f"its dask worker{where} died", 0.0)
        except Exception as error:
            reply, starts = Reply(b"", Failure.ERROR, one_line(error), 0.0), 1
        flight.future.release()
        self.finish(flight, Reply(*reply), starts)

    def finish(self, flight: Flight, reply: Reply, starts: int) -> None:
        """The outcome of a task, or one more attempt."""
        again = reply.failure not in (None, Failure.ERROR, Failure.CRASH)
        if again and starts < self.limits.attempts:
            self.send_again(flight, flight.losses)
            return
        self.engine._mean = 0.9 * self.engine._mean + 0.1 * reply.seconds if self.engine._mean else reply.seconds
        self.started.pop(flight.slot, None)
        self.free_slots.append(flight.slot)
        self.ended.append(outcome_of(flight.task, reply, min(max(starts, 1), self.limits.attempts)))

    def note(self, flight: Flight) -> Note | None:
        """The note of a task's last start."""
        note = self.engine._asked(self.client.get_metadata, [self.name, flight.slot], None)
        return Note(*note) if note and note[0] == flight.key else None

    def look(self) -> None:
        """Look at the workers, and for tasks that take too long."""
        self.looked = time.monotonic()
        self.engine._look_at_workers()
        if not self.limits.seconds:
            return
        notes = self.engine._asked(self.client.get_metadata, [self.name], {})
        now = time.monotonic()
        for flight in list(self.busy.values()):
            entry = notes.get(flight.slot)
            if not entry or entry[0] != flight.key or flight.future.done():
                continue
            note = Note(*entry)
            seen = self.started.get(flight.slot)
            if seen is None or seen[0] != note:
                self.started[flight.slot] = (note, now)
            elif now - seen[1] > self.limits.seconds:
                self.take(flight)
                self.engine._asked(self.client.cancel, [flight.future], force=True)
                self.kill(note)
                detail = f"took longer than {self.limits.seconds:g} s"
                self.finish(flight, Reply(b"", Failure.TIME, detail, now - seen[1]), note.starts)

    def kill(self, note: Note) -> None:
        """Kill the worker of a note, which its nanny then replaces."""
        if self.engine._addresses.get(note.worker):
            self.engine._asked(
                self.client.run, kill_process, note.process, workers=[note.worker], nanny=True, on_error="ignore"
            )

    def stop(self) -> None:
        """End the tasks that are still on the cluster, and remove what it keeps of this run."""
        flights = [flight for flight in self.busy.values() if not flight.future.done()]
        self.busy.clear()
        with contextlib.suppress(Exception):
            if flights:
                self.engine._asked(self.client.cancel, [flight.future for flight in flights], force=True)
                notes = self.engine._asked(self.client.get_metadata, [self.name], {})
                for flight in flights:
                    entry = notes.get(flight.slot)
                    if entry and entry[0] == flight.key:
                        self.kill(Note(*entry))
            self.engine._asked(self.client.set_metadata, [self.name], None)


def describe() -> tuple[str, str]:
    """What driver and workers must have in common: the version of this package, and Python's, as pickles depend on it."""
    return __version__, ".".join(platform.python_version_tuple()[:2])


def kill_process(process: int, dask_worker: Any) -> None:
    """In a nanny: kill its worker if that is still the process with this number."""
    if dask_worker.process is not None and dask_worker.process.pid == process:
        os.kill(process, signal.SIGKILL)


def perform_noted(call: bytes, place: tuple[str, str], key: str, limits: Limits) -> tuple[Reply, int]:
    """In a worker: note the start of a task at `place`, and run it unless it has been started too often.

    Returns the reply and the number of starts that the task has had, this one among them if it was run.
    """
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()

    async def start() -> Note:
        entry = await worker.scheduler.get_metadata(keys=place, default=None)
        last = Note(*entry) if entry and entry[0] == key else Note(key, 0, "", 0)
        if last.starts < limits.attempts:
            note = Note(key, last.starts + 1, worker.address, os.getpid())
            await worker.scheduler.set_metadata(keys=place, value=tuple(note))
        return last

    last = sync(worker.loop, start)
    if last.starts >= limits.attempts:
        return Reply(b"", Failure.CRASH, f"its dask worker {last.worker} died", 0.0), last.starts
    return perform(call, limits.private_bytes), last.starts + 1
