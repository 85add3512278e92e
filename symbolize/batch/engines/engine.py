"""Tasks of a batch, their limits and outcomes, and the interface of engines, which run them in other processes.

Calls and results are pickled here, so that all engines treat those alike that cannot be pickled.
"""

import enum
import pickle
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, Self

from symbolize.core.errors import SymbolizeError, printable
from symbolize.storage.urls import own_time


class TaskFailure(enum.StrEnum):
    """Why a task has no value."""

    CRASH = "crash"
    """Its worker process died."""
    TIME = "time"
    """It exceeded `TaskLimits.seconds`, and its worker was killed."""
    MEMORY = "memory"
    """It exceeded `TaskLimits.private_bytes`, or the memory of the machine."""
    ERROR = "error"
    """It raised an exception; it is not tried again."""


class Task(NamedTuple):
    """A call of the module-level `function` with an `argument` that can be pickled. `key` names the task for the
    caller. An engine may run tasks of equal `affinity` in the same worker."""

    key: str
    function: Callable[[Any], Any]
    argument: Any
    affinity: str = ""


class TaskLimits(NamedTuple):
    """The limits of a task; 0 is no limit.

    `seconds` is the time of an attempt. With `waiting` it does not include the time for which the task waits for stores
    (`wait_for`), which has this limit. `private_bytes` is writable private memory that a task may reserve beyond what
    its worker has: mapped files do not count. A task that exceeds it gets a MemoryError, or crashes in native code.
    `attempts` is how often a task that ends by CRASH, TIME or MEMORY is run in all, at least 1.
    """

    seconds: float = 0
    private_bytes: int = 0
    attempts: int = 3
    waiting: float = 0

    @property
    def longest(self) -> float:
        """Seconds after which an attempt is overdue."""
        return self.seconds and self.seconds + self.waiting

    @property
    def own(self) -> tuple[float, float]:
        """The time limits that the worker itself enforces: `seconds` and `waiting`."""
        return self.seconds, self.waiting

    @property
    def overdue(self) -> str:
        """The detail of a task that was overdue."""
        return f"took longer than {self.seconds:g} s"


class TaskOutcome(NamedTuple):
    """How a task ended: its `value`, or with `failure` a line of `detail` that says why there is none.

    `attempts` counts its runs. `seconds` is what the last one took.
    """

    task: Task
    value: Any
    failure: TaskFailure | None
    detail: str
    attempts: int
    seconds: float


class Engine(Protocol):
    """Runs tasks. A context manager: leaving it, by an exception too, stops the workers at once."""

    @property
    def workers(self) -> int:
        """Tasks that run at a time; of a cluster, the number at the time of asking."""

    def run(self, tasks: Iterable[Task], limits: TaskLimits) -> Iterator[TaskOutcome]:
        """Run `tasks` and yield one outcome for each, in the order in which they end.

        Tasks are taken as workers become free, at most twice the number of workers ahead of the outcomes, so `tasks`
        may be endless. Closing the iterator stops running tasks. One run at a time.
        """

    def close(self) -> None:
        """Stop all workers at once; a closed engine cannot run tasks."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Reply(NamedTuple):
    """The answer of a worker to an attempt: the pickled value, or why there is none."""

    data: bytes
    failure: TaskFailure | None
    detail: str
    seconds: float


def one_line(error: BaseException) -> str:
    """An exception as one line, with its type unless it is an error for users."""
    if isinstance(error, SymbolizeError):
        return str(error)
    text = " ".join(str(error).split())
    return printable(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def packed(task: Task) -> bytes:
    """The pickled call of a task, for `perform`. Raises SymbolizeError if it cannot be pickled."""
    return pickled((task.function, task.argument), "its argument")


def pickled(value: Any, name: str) -> bytes:
    """`value` for another process. Raises SymbolizeError, which calls it `name`, if it cannot be pickled."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        raise
    except Exception as error:  # of many classes, which depend on the value
        raise SymbolizeError(f"{name} cannot be pickled") from error


def perform(call: bytes, private_bytes: int, own: tuple[float, float] = (0, 0)) -> Reply:
    """Run a call of `packed` in a worker, with `private_bytes` and `own` of `TaskLimits`; the process ends when it is
    overdue. Never raises."""
    started = time.perf_counter()
    data, failure, detail = b"", None, ""
    try:
        with own_time(*own), private_memory(private_bytes):
            function, argument = pickle.loads(call)
            value = function(argument)
            del argument
            data = pickled(value, "its result")
    except MemoryError as error:
        failure, detail = TaskFailure.MEMORY, memory_line(error, private_bytes)
    except BaseException as error:
        failure, detail = TaskFailure.ERROR, one_line(error)
    return Reply(data, failure, detail, time.perf_counter() - started)


def outcome_of(task: Task, reply: Reply, attempts: int) -> TaskOutcome:
    """The outcome of a task that a worker has answered."""
    failure, detail, value = reply.failure, reply.detail, None
    if failure is None:
        try:
            value = pickle.loads(reply.data)
        except Exception as error:
            failure, detail = TaskFailure.ERROR, f"its result cannot be read back: {one_line(error)}"
    return TaskOutcome(task, value, failure, detail, attempts, reply.seconds)


def memory_line(error: MemoryError, private_bytes: int) -> str:
    """The detail of a task that ran out of memory."""
    limit = f" of {private_bytes / 1e6:,.0f} MB" if private_bytes else ""
    text = " ".join(str(error).split())
    return printable(f"out of memory{limit}: {text}" if text else f"out of memory{limit}")


@contextmanager
def private_memory(limit: int) -> Iterator[None]:
    """Limit the writable private memory of this process to what it has now and `limit` bytes; 0 is no limit.

    The kernel counts what is reserved, touched or not; read-only and shared maps of files are not part of it.
    """
    if limit <= 0:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bounds = [bound for bound in (soft, hard) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([private_bytes_now() + limit, *bounds]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def private_bytes_now() -> int:
    """The bytes that the kernel counts for RLIMIT_DATA in this process."""
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmData:"):
                return int(line.split()[1]) * 1024
    return 0
