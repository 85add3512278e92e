"""The engine of one machine: worker processes of the pebble library."""

import math
import os
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from multiprocessing.context import ForkServerContext, ForkServerProcess
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from pebble import ProcessExpired, ProcessPool

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
from symbolize.core.errors import SymbolizeError
from symbolize.core.parallel import end_with_parent, limit_threads, own_import_path
from symbolize.storage.urls import OVERDUE

PRELOADED = ["symbolize.batch.tasks", "symbolize.pipeline"]
"""Modules that are imported once for all workers."""

CHECK_INTERVAL = 1.0
"""Seconds without an answer after which the engine checks whether its workers are alive."""

WORKER_THREADS = 2
"""In how many threads a worker decodes: the other processors are for the other workers."""

GRACE = 60.0
"""Seconds beyond its limit after which a task is ended if pebble did not end it."""

LOSSES = 5
"""Times in a row that a worker may fail to start, or that a task may be lost before it began."""


class TaskAttempt(NamedTuple):
    """A run of a task: its packed call, the number of the run, and how often it was lost before it began."""

    task: Task
    call: bytes
    number: int = 1
    losses: int = 0


class LocalEngine(Closeable):
    """Runs tasks in `workers` processes of this machine, by default one for each core that it may use.

    Each worker is a pebble pool of its own that runs one task at a time. So the engine knows of which task a worker
    died, a lock of a killed worker blocks no other, and no task waits for a long one. A worker that does not answer is
    replaced with its pool. Affinity is not used: binaries are large tasks, and mapped files are in the page cache.
    """

    def __init__(self, workers: int | None = None) -> None:
        """`workers` None: one for each core."""
        self.workers = max(1, workers or len(os.sched_getaffinity(0)))
        self._lanes: list[TaskLane] = []
        self._failed_starts = 0
        self._closed = False

    def close(self) -> None:
        """Stop all workers at once."""
        self._closed = True
        lanes, self._lanes = self._lanes, []
        stop(lanes)

    def run(self, tasks: Iterable[Task], limits: TaskLimits) -> Iterator[TaskOutcome]:
        """See `Engine.run`. Raises SymbolizeError if workers cannot be started."""
        if self._closed:
            raise SymbolizeError("the engine is closed")
        events: SimpleQueue[Future[Any]] = SimpleQueue()
        busy: dict[Future[Any], TaskLane] = {}
        again: deque[TaskAttempt] = deque()
        outcomes: deque[TaskOutcome] = deque()
        fresh = iter(tasks)
        is_last = False
        try:
            while True:
                while len(busy) < self.workers and len(busy) + len(outcomes) < 2 * self.workers:
                    if again:
                        attempt = again.popleft()
                    else:
                        task = None if is_last else next(fresh, None)
                        if task is None:
                            is_last = True
                            break
                        try:
                            attempt = TaskAttempt(task, packed(task))
                        except Exception as error:
                            outcomes.append(TaskOutcome(task, None, TaskFailure.ERROR, one_line(error), 1, 0.0))
                            continue
                    lane = self._idle_lane()
                    future = lane.start(attempt, limits)
                    busy[future] = lane
                    future.add_done_callback(events.put)
                if outcomes:
                    yield outcomes.popleft()
                    continue
                if not busy:
                    return
                for future in ended(events, busy):
                    lane = busy.pop(future)
                    attempt, end = lane.end(limits)
                    if end is None:
                        self._failed_starts = 0 if lane.has_started() else self._failed_starts + 1
                        if self._failed_starts >= LOSSES:
                            raise SymbolizeError("worker processes cannot be started: they end before their first task")
                        again.append(attempt._replace(losses=attempt.losses + 1))
                    elif end.failure in (None, TaskFailure.ERROR) or attempt.number >= limits.attempts:
                        outcomes.append(end)
                    else:
                        again.append(attempt._replace(number=attempt.number + 1))
                    if not lane.is_good:
                        self._lanes.remove(lane)
                        stop([lane])
        finally:
            running = [lane for lane in self._lanes if lane.attempt is not None]
            self._lanes = [lane for lane in self._lanes if lane.attempt is None]
            stop(running)

    def _idle_lane(self) -> "TaskLane":
        """A worker without a task, a new one if there is none."""
        for lane in [lane for lane in self._lanes if lane.attempt is None]:
            if lane.is_alive():
                return lane
            self._lanes.remove(lane)
            stop([lane])
        lane = TaskLane()
        self._lanes.append(lane)
        return lane


class WorkerProcess(ForkServerProcess):
    """A worker process; who starts it, which may be a thread of pebble, starts the fork server if there is none."""

    def start(self) -> None:
        """Start it."""
        with own_import_path():
            super().start()


class WorkerContext(ForkServerContext):
    """What pebble starts workers with."""

    Process = WorkerProcess


class TaskLane:
    """A worker process in a pebble pool, and the attempt that it runs."""

    def __init__(self) -> None:
        context = WorkerContext()
        context.set_forkserver_preload(PRELOADED)
        self.pool = ProcessPool(1, initializer=begin_worker, context=context)
        self.attempt: TaskAttempt | None = None
        self.future: Future[Any] | None = None
        self.sent = 0.0
        self.latest = math.inf
        self.is_good = True
        # Workers, and the server that forks them, inherit the mask: only this process handles Ctrl-C.
        with own_import_path():
            resource_tracker.ensure_running()  # which would clear the mask when it starts
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.hello: Future[int] = self.pool.schedule(os.getpid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def start(self, attempt: TaskAttempt, limits: TaskLimits) -> Future[Any]:
        """Send an attempt to the worker."""
        self.attempt = attempt
        self.sent = time.monotonic()
        timeout = limits.longest or None
        self.latest = self.sent + limits.longest + GRACE if limits.seconds else math.inf
        self.future = self.pool.schedule(perform, (attempt.call, limits.private_bytes, limits.own), timeout=timeout)
        return self.future

    def end(self, limits: TaskLimits) -> tuple[TaskAttempt, TaskOutcome | None]:
        """The attempt that has ended, with its outcome, None if it did not begin."""
        attempt, future = self.attempt, self.future
        assert attempt is not None and future is not None
        self.attempt = self.future = None
        seconds = time.monotonic() - self.sent
        if not future.done():
            error: BaseException | None = None if self.has_started() else BrokenProcessPool()
            if error is None and limits.seconds and seconds > limits.longest:
                error = TimeoutError()
        else:
            error = future.exception()
            if error is None:
                reply: Reply = future.result()
                self.is_good = reply.failure is not TaskFailure.MEMORY
                return attempt, outcome_of(attempt.task, reply, attempt.number)
        self.is_good = False
        if isinstance(error, BrokenProcessPool) and attempt.losses < LOSSES:
            return attempt, None
        failure, detail = TaskFailure.CRASH, "its worker process ended without an answer"
        if isinstance(error, TimeoutError) or (isinstance(error, ProcessExpired) and error.exitcode == -OVERDUE):
            failure, detail = TaskFailure.TIME, limits.overdue
        elif isinstance(error, ProcessExpired):
            detail = f"its worker process {ending(error.exitcode)}"
        return attempt, TaskOutcome(attempt.task, None, failure, detail, attempt.number, seconds)

    def has_started(self) -> bool:
        """Whether the worker has started."""
        return self.hello.done() and self.hello.exception() is None

    def is_alive(self) -> bool:
        """Whether an answer may still come: in time, and from the worker with which the pool began."""
        if self.attempt is not None and time.monotonic() > self.latest:
            return False
        if not self.pool.active or (self.hello.done() and not self.has_started()):
            return False
        if not self.hello.done():
            return True
        try:
            os.kill(self.hello.result(), 0)
        except ProcessLookupError:
            return False
        return True


def begin_worker() -> None:
    """Prepare a process that is one of several workers."""
    end_with_parent()
    limit_threads(WORKER_THREADS)


def ended(events: "SimpleQueue[Future[Any]]", busy: dict[Future[Any], TaskLane]) -> list[Future[Any]]:
    """The futures of `busy` that are done, at least one, or whose worker died unnoticed by pebble."""
    silent: list[Future[Any]] = []
    while True:
        try:
            future = events.get(timeout=CHECK_INTERVAL)
        except Empty:
            # pebble notices a dead worker within 0.1 s; one that is dead at two checks was missed.
            gone = [future for future, lane in busy.items() if not future.done() and not lane.is_alive()]
            missed = [future for future in gone if future in silent]
            if missed:
                return missed
            silent = gone
            continue
        done = [future]
        while not events.empty():
            done.append(events.get_nowait())
        done = [future for future in done if future in busy]
        if done:
            return done


def stop(lanes: list[TaskLane]) -> None:
    """End the workers of `lanes` at once."""
    for lane in lanes:
        lane.pool.stop()  # type: ignore[no-untyped-call]
    for lane in lanes:
        lane.pool.join()


def ending(status: int) -> str:
    """How a process with this exit status ended, in words."""
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
