"""The engine of a cluster: tasks go to the workers of a dask scheduler.

Dask retries the tasks of a dead worker by itself, counts queued and ended ones as suspects too, and has no deadlines.
So each task writes a note to the scheduler before it begins, and its reply when it ends. The notes count the attempts,
tell the driver which worker to kill when a task is overdue, and keep the reply of a worker that dies. The scheduler has
a slot for the note of each running task.
"""

import contextlib
import hashlib
import itertools
import logging
import os
import platform
import signal
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from symbolize import __version__
from symbolize.batch.engines.engine import (
    Reply,
    Task,
    TaskFailure,
    TaskLimits,
    TaskOutcome,
    one_line,
    outcome_of,
    packed,
    perform,
)
from symbolize.core.closing import Closeable
from symbolize.core.errors import SymbolizeError, UsageError
from symbolize.core.parallel import call_within

CHECK_INTERVAL = 1.0
"""Seconds between two checks of the workers and the notes of running tasks."""

SHORT = 2.0
"""Mean seconds of tasks below which each worker has a second one queued."""

PATIENCE = 300.0
"""Seconds for which a cluster may be without workers during a run."""

SILENCE = 60.0
"""Seconds after which a scheduler that does not answer counts as lost."""

GOODBYE = 1.5
"""The same for requests when a run ends."""

REPLY = 5.0
"""The same for a worker."""

MAX_ASKED = 32
"""New workers that are checked at a time."""

LOSSES = 10
"""Times that a task may be lost before it begins."""


class Flight(NamedTuple):
    """A task on the cluster: its packed call, its future, key and slot of its note, and where and when it was sent."""

    task: Task
    call: bytes
    future: Any
    key: str
    slot: str
    worker: str
    losses: int
    sent: float


class Note(NamedTuple):
    """The note of a task: its key, how often it was started, where it was last, and its reply."""

    key: str
    starts: int
    worker: str
    process: int
    reply: Reply | None = None

    @classmethod
    def read(cls, entry: Any, key: str) -> "Note":
        """The note in a slot, an empty one if there is none of this task."""
        if not entry or entry[0] != key:
            return cls(key, 0, "", 0)
        _, starts, worker, process, reply = entry
        if reply is not None:
            data, failure, detail, seconds = reply
            reply = Reply(data, TaskFailure(failure) if failure else None, detail, seconds)
        return cls(key, starts, worker, process, reply)


class Begun(NamedTuple):
    """The note of an attempt, when it was first read, and the earliest time at which it may have begun."""

    note: Note
    read: float
    earliest: float


class DaskEngine(Closeable):
    """Runs tasks on the workers of the dask scheduler at `address`, as `tcp://host:8786`.

    TLS is configured by dask's own configuration. Workers have one thread each and the same version of this package;
    deadlines need their nannies. They may come and go during a run.
    """

    def __init__(self, address: str, patience: float = 30.0) -> None:
        """Connect, and wait at most `patience` seconds for the first worker.

        Raises UsageError if dask is not installed, the address is none, or a worker does not fit, SymbolizeError
        if there is no scheduler or no worker.
        """
        try:
            import distributed
            from distributed.comm.addressing import parse_address, parse_host_port
            from distributed.comm.registry import get_backend
        except ImportError:
            raise UsageError("a dask cluster needs the package distributed: pip install distributed") from None
        # It logs tracebacks of a lost connection, which the message at the end of the run reports.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self.address = address
        self._addresses: dict[str, bool] = {}
        self._fit: set[str] = set()
        self._mean = 0.0
        self._last_seen = time.monotonic()
        self._is_lost = False
        self._patience = SILENCE
        self._mute: dict[str, float] = {}
        try:  # a client with a bad address blocks when the process ends
            scheme, location = parse_address(address)
            get_backend(scheme)
            parse_host_port(location)
        except (ValueError, TypeError, ImportError) as error:
            raise UsageError(f"{address}: not the address of a dask scheduler, as tcp://host:8786") from error
        try:
            self._client: Any = distributed.Client(  # type: ignore[no-untyped-call]
                address, timeout=patience, set_as_default=False, name="symbolize"
            )
        except OSError as error:
            raise SymbolizeError(f"{address}: no dask scheduler answers") from error
        try:
            self._client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            self.close()
            raise SymbolizeError(f"{address}: the dask scheduler has no workers") from error
        try:
            self.update_workers()
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        """The number of workers at present."""
        return len(self._addresses)

    def close(self) -> None:
        """Disconnect from the cluster."""
        with contextlib.suppress(Exception):
            wait = 0.1 if self._is_lost else GOODBYE  # a scheduler that is lost does not hear it
            call_within(2 * wait, lambda: self._client.close(timeout=wait))

    def run(self, tasks: Iterable[Task], limits: TaskLimits) -> Iterator[TaskOutcome]:
        """See `Engine.run`. Raises SymbolizeError when the scheduler is lost or no workers are left."""
        return Run(self, limits).outcomes(tasks)

    def update_workers(self) -> None:
        """Update the workers. Raises UsageError for one of another version or with several threads."""
        info = self._asked(self._client.scheduler_info)["workers"]
        self._mute = {address: until for address, until in self._mute.items() if until > time.monotonic()}
        new = sorted(info.keys() - self._fit - self._mute.keys())
        with ThreadPoolExecutor(MAX_ASKED) as pool:  # in parallel, as one may be frozen
            answers = list(pool.map(lambda address: self._asked_there(address, describe_here, on_error="return"), new))
        for address, answer in zip(new, answers, strict=True):
            if answer is None or isinstance(answer, OSError):
                continue  # it has left again, or is frozen
            if isinstance(answer, BaseException):
                raise UsageError(f"dask worker {address} cannot import symbolize {__version__}: {one_line(answer)}")
            if tuple(answer) != describe_here():
                here, there = " on Python ".join(describe_here()), " on Python ".join(answer)
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
        """The result of a call to the scheduler. Raises SymbolizeError if the connection is lost, or the scheduler does
        not answer for SILENCE, and from then on."""
        what = "the connection to the dask scheduler is lost"
        if self._client.status == "running" and not self._is_lost:
            try:
                return call_within(self._patience, lambda: function(*arguments, **options))
            except TimeoutError:
                what = f"the dask scheduler does not answer for {self._patience:g} s"
            except OSError:  # the comm errors of dask among them
                pass
        self._is_lost = True
        raise SymbolizeError(f"{self.address}: {what}; the run can be continued")

    @contextlib.contextmanager
    def hurrying(self, is_wanted: bool) -> Iterator[None]:
        """In the block, the scheduler counts as lost after GOODBYE."""
        if is_wanted:
            self._patience = GOODBYE
        try:
            yield
        finally:
            self._patience = SILENCE

    def _asked_there(self, worker: str, *call: Any, **options: Any) -> Any:
        """The result of a call in a worker; None if it does not answer, after which it is not called for SILENCE."""
        try:
            return call_within(REPLY, lambda: self._client.run(*call, workers=[worker], **options)).get(worker)
        except OSError:
            self._mute[worker] = time.monotonic() + SILENCE
            return None


class Run:
    """One run of tasks on a cluster."""

    def __init__(self, engine: DaskEngine, limits: TaskLimits) -> None:
        self.engine = engine
        self.client = engine._client
        self.limits = limits
        self.name = f"symbolize-{uuid.uuid4().hex}"
        self.numbers = itertools.count()
        self.busy: dict[str, Flight] = {}
        self.loads: Counter[str] = Counter()
        self.free_slots: list[str] = []
        self.events: SimpleQueue[Any] = SimpleQueue()
        self.ended: deque[TaskOutcome] = deque()
        self.started: dict[str, Begun] = {}
        self.left: set[str] = set()
        self.checked = time.monotonic()

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[TaskOutcome]:
        """Run `tasks`; see `Engine.run`."""
        fresh = iter(tasks)
        is_last = is_whole = False
        try:
            while True:
                while not is_last and len(self.busy) + len(self.ended) < 2 * self.engine.workers:
                    worker = self.free_worker("")
                    if not worker:
                        break
                    task = next(fresh, None)
                    if task is None:
                        is_last = True
                        break
                    try:
                        call = packed(task)
                    except Exception as error:
                        self.ended.append(TaskOutcome(task, None, TaskFailure.ERROR, one_line(error), 1, 0.0))
                        continue
                    number = next(self.numbers)
                    slot = self.free_slots.pop() if self.free_slots else f"slot-{number}"
                    if task.affinity:
                        worker = self.free_worker(task.affinity)
                    self.send(task, call, f"task-{number}", slot, worker, 0)
                if self.ended:
                    yield self.ended.popleft()
                elif is_last and not self.busy:
                    is_whole = True
                    return
                else:
                    self.wait()
        finally:
            self.stop(is_whole)

    def free_worker(self, affinity: str) -> str:
        """A worker that may have one more task, empty if there is none.

        With an affinity it is chosen by rendezvous hashing, so that it changes little when workers come and go.
        """
        depth = 2 if 0 < self.engine._mean < SHORT else 1
        free = [worker for worker in self.engine._addresses if self.loads[worker] < depth]
        if not affinity:
            return min(free, key=lambda worker: self.loads[worker], default="")
        return max(free, key=lambda worker: hashlib.blake2b(f"{affinity}\0{worker}".encode()).digest(), default="")

    def send(self, task: Task, call: bytes, key: str, slot: str, worker: str, losses: int) -> None:
        """Send a task to a worker; `key` names it in its note at `slot`."""
        # The call has only objects of the standard library, so that a worker without this package can be refused.
        preferred = [worker] if worker else None
        sent = time.monotonic()  # before it can run: how long it ran is counted from here
        future = self.client.submit(
            perform_noted,
            call,
            (self.name, slot),
            key,
            self.limits.attempts,
            self.limits.private_bytes,
            # The clock of a task ends its process, which only a nanny starts again; any worker may be chosen.
            self.limits.own if all(self.engine._addresses.values()) else (0.0, 0.0),
            key=f"{self.name}-{key}-{next(self.numbers)}",
            workers=preferred,
            allow_other_workers=preferred is not None,
            pure=False,
            retries=0,
        )
        self.busy[future.key] = Flight(task, call, future, key, slot, worker, losses, sent)
        self.loads[worker] += 1
        future.add_done_callback(self.events.put)

    def send_again(self, flight: Flight, losses: int) -> None:
        """Send a task again that did not end."""
        worker = self.free_worker(flight.task.affinity)
        self.send(flight.task, flight.call, flight.key, flight.slot, worker, losses)

    def wait(self) -> None:
        """Wait for tasks to end, and check the running ones from time to time."""
        rest = self.checked + CHECK_INTERVAL - time.monotonic()
        if rest <= 0:
            self.check()
            rest = CHECK_INTERVAL
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
        """Remove a task from those that run."""
        del self.busy[flight.future.key]
        self.loads[flight.worker] -= 1

    def land(self, flight: Flight) -> None:
        """Process a task whose future is done."""
        self.take(flight)
        flight.future.release()
        note = Note.read(self.engine._asked(self.client.get_metadata, [self.name, flight.slot], None), flight.key)
        if note.reply is not None:
            self.finish(flight, note.reply, note.starts)
            return
        # It died with its worker, running or queued, or somebody restarted the cluster.
        losses = flight.losses + (note.starts == 0)
        if note.starts < self.limits.attempts and losses < LOSSES:
            self.send_again(flight, losses)
            return
        failure, detail = TaskFailure.CRASH, f"its dask worker {note.worker} died"
        if self.limits.waiting and time.monotonic() - self.began(flight, note) >= self.limits.seconds:
            failure, detail = TaskFailure.TIME, self.limits.overdue
        self.finish(flight, Reply(b"", failure, detail, 0.0), note.starts)

    def began(self, flight: Flight, note: Note) -> float:
        """The earliest time at which the attempt of a note may have begun."""
        begun = self.started.get(flight.slot)
        return flight.sent if begun is None or begun.note != note else max(begun.earliest, flight.sent)

    def finish(self, flight: Flight, reply: Reply, starts: int) -> None:
        """The outcome of a task, or one more attempt."""
        again = reply.failure not in (None, TaskFailure.ERROR, TaskFailure.CRASH)
        if again and starts < self.limits.attempts:
            self.send_again(flight, flight.losses)
            return
        self.engine._mean = 0.9 * self.engine._mean + 0.1 * reply.seconds if self.engine._mean else reply.seconds
        self.started.pop(flight.slot, None)
        self.free_slots.append(flight.slot)
        self.ended.append(outcome_of(flight.task, reply, min(max(starts, 1), self.limits.attempts)))

    def check(self) -> None:
        """Check for tasks that are overdue, and for those that wait for a worker that has left."""
        before, self.checked = self.checked, time.monotonic()
        self.engine.update_workers()
        present = self.engine._addresses
        # Dask never runs a task whose preferred worker left when there was no other one.
        left = {flight.key for flight in self.busy.values() if flight.worker not in present}
        if not left and not self.limits.seconds:
            self.left = left
            return
        notes = self.engine._asked(self.client.get_metadata, [self.name], {})
        now = time.monotonic()
        for flight in list(self.busy.values()):
            if flight.future.done():
                continue
            note = Note.read(notes.get(flight.slot), flight.key)
            if note.reply is not None:
                if flight.key in left & self.left:  # its worker died before dask knew that the task was done
                    self.cancel(flight)
                    self.finish(flight, note.reply, note.starts)
                continue
            if note.worker not in present:
                if flight.key in left & self.left:
                    self.cancel(flight)
                    self.send_again(flight, flight.losses)
                continue
            begun = self.started.get(flight.slot)
            if begun is None or begun.note != note:
                self.started[flight.slot] = Begun(note, now, before)
            elif self.limits.seconds and now - begun.read > self.limits.longest:
                self.cancel(flight)
                self.kill(note)
                self.finish(flight, Reply(b"", TaskFailure.TIME, self.limits.overdue, now - begun.read), note.starts)
        self.left = left

    def cancel(self, flight: Flight) -> None:
        """Cancel a task."""
        self.take(flight)
        self.engine._asked(self.client.cancel, [flight.future], force=True)

    def kill(self, note: Note) -> None:
        """Kill the worker of a running task, which its nanny replaces."""
        if note.reply is None and self.engine._addresses.get(note.worker):
            self.engine._asked_there(note.worker, kill_process, note.process, nanny=True, on_error="ignore")

    def stop(self, is_whole: bool) -> None:
        """Cancel the tasks that are still on the cluster, and remove the notes of this run. An interrupted run, which
        is not whole, does not wait for a scheduler that does not answer."""
        flights = [flight for flight in self.busy.values() if not flight.future.done()]
        self.busy.clear()
        with self.engine.hurrying(not is_whole), contextlib.suppress(Exception):
            if flights:
                self.engine._asked(self.client.cancel, [flight.future for flight in flights], force=True)
                notes = self.engine._asked(self.client.get_metadata, [self.name], {})
                for flight in flights:
                    self.kill(Note.read(notes.get(flight.slot), flight.key))
            self.engine._asked(self.client.set_metadata, [self.name], None)


def describe_here() -> tuple[str, str]:
    """The versions of this package and of Python, which driver and workers must have in common."""
    return __version__, ".".join(platform.python_version_tuple()[:2])


def kill_process(process: int, dask_worker: Any) -> None:
    """In a nanny: kill its worker, if it is still this process."""
    if dask_worker.process is not None and dask_worker.process.pid == process:
        os.kill(process, signal.SIGKILL)


def perform_noted(
    call: bytes, slot: tuple[str, str], key: str, attempts: int, private_bytes: int, own: tuple[float, float]
) -> None:
    """In a worker: run a task, with a note at `slot`, unless it was started too often or has a reply."""
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()

    async def read() -> Note:
        return Note.read(await worker.scheduler.get_metadata(keys=slot, default=None), key)

    async def write(note: Note) -> None:
        await worker.scheduler.set_metadata(keys=slot, value=tuple(note))

    note = sync(worker.loop, read)
    has_ended = note.reply is not None and note.reply.failure in (None, TaskFailure.ERROR)
    if has_ended or note.starts >= attempts:
        return
    note = Note(key, note.starts + 1, worker.address, os.getpid())
    sync(worker.loop, write, note)
    sync(worker.loop, write, note._replace(reply=perform(call, private_bytes, own)))
