"""Tasks of a batch job, their limits and outcomes, and what every engine that runs them does.

An engine runs module-level functions in other processes. What travels there and back is pickled here, once, so that
no engine has to guess what its library makes of an argument or a result that cannot be pickled.
"""

import enum
import pickle
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, Self

from symbolize.batch.clock import own_time
from symbolize.core.errors import SymbolizeError, printable


class Failure(enum.StrEnum):
    """Why a task has no value."""

    CRASH = "crash"
    """Its worker process died: by a signal, by the kernel's out-of-memory killer, or because native code ended it."""
    TIME = "time"
    """It ran longer than `Limits.seconds`, and its worker was killed."""
    MEMORY = "memory"
    """It ran into `Limits.private_bytes`, or the machine had no memory for it."""
    ERROR = "error"
    """It raised an exception. It would do so again, so it is not tried again."""


class Task(NamedTuple):
    """A call of `function(argument)` in a worker.

    `key` names the task for the caller. `function` is module-level; it and `argument` can be pickled. Tasks of equal
    `affinity` are best run by the same worker; an engine may ignore it.
    """

    key: str
    function: Callable[[Any], Any]
    argument: Any
    affinity: str = ""


class Limits(NamedTuple):
    """What every task may use; 0 is no limit.

    `seconds` is the time of one attempt from its start in a worker. With `waiting` that is its own time, and for so
    long it may wait for stores besides (`wait_for`). `private_bytes` are bytes of writable private
    memory that a task may reserve on top of what its worker had before: mapped files do not count. A task that
    reaches it meets MemoryError; native code that does not expect malloc to fail may crash there instead, which is
    `Failure.CRASH`. `attempts` is how often a task that ends by CRASH, TIME or MEMORY is run in all, at least 1.
    """

    seconds: float = 0
    private_bytes: int = 0
    attempts: int = 3
    waiting: float = 0

    @property
    def longest(self) -> float:
        """Seconds after which an attempt is overdue, whatever it does."""
        return self.seconds and self.seconds + self.waiting

    @property
    def own(self) -> tuple[float, float]:
        """The time limits that the worker itself sees to: `seconds` and `waiting`."""
        return self.seconds, self.waiting

    @property
    def overdue(self) -> str:
        """What to say of a task that was."""
        return f"took longer than {self.seconds:g} s"


class Outcome(NamedTuple):
    """How a task ended: its `value`, or with `failure` a line of `detail` that says why there is none.

    `attempts` counts its runs. `seconds` is what the last one took.
    """

    task: Task
    value: Any
    failure: Failure | None
    detail: str
    attempts: int
    seconds: float


class Engine(Protocol):
    """Runs tasks. A context manager: leaving it, by an exception too, stops the workers at once."""

    @property
    def workers(self) -> int:
        """Tasks that run at a time; of a cluster, the number at the time of asking."""

    def run(self, tasks: Iterable[Task], limits: Limits) -> Iterator[Outcome]:
        """Run `tasks` and yield one outcome for each, in the order in which they end.

        Tasks are taken from the iterable as workers become free, at most twice the number of workers ahead of the
        outcomes, so it may be endless. Closing the iterator stops the tasks in flight. One run at a time.
        """

    def close(self) -> None:
        """Stop all workers at once, whatever they do; a closed engine runs nothing more."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Reply(NamedTuple):
    """What a worker answers for an attempt: the pickled value, or why there is none."""

    data: bytes
    failure: Failure | None
    detail: str
    seconds: float


def one_line(error: BaseException) -> str:
    """An exception as one line: those for users as they are, others behind their type."""
    if isinstance(error, SymbolizeError):
        return str(error)
    text = " ".join(str(error).split())
    return printable(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def packed(task: Task) -> bytes:
    """A task's call as bytes for `perform`. Raises what pickle raises, which depends on the argument."""
    return pickle.dumps((task.function, task.argument), pickle.HIGHEST_PROTOCOL)


def perform(call: bytes, private_bytes: int, own: tuple[float, float] = (0, 0)) -> Reply:
    """Run a call of `packed` in a worker, with at most `private_bytes` more private memory, and within its `own` time
    (`Limits.own`), after which this process ends. Never raises."""
    started = time.perf_counter()
    data, failure, detail = b"", None, ""
    try:
        with own_time(*own), private_memory(private_bytes):
            function, argument = pickle.loads(call)
            value = function(argument)
            del argument
            data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except MemoryError as error:
        failure, detail = Failure.MEMORY, memory_line(error, private_bytes)
    except BaseException as error:
        failure, detail = Failure.ERROR, one_line(error)
    return Reply(data, failure, detail, time.perf_counter() - started)


def outcome_of(task: Task, reply: Reply, attempts: int) -> Outcome:
    """The outcome of a task that a worker has answered."""
    failure, detail, value = reply.failure, reply.detail, None
    if failure is None:
        try:
            value = pickle.loads(reply.data)
        except Exception as error:
            failure, detail = Failure.ERROR, f"its result cannot be read back: {one_line(error)}"
    return Outcome(task, value, failure, detail, attempts, reply.seconds)


def memory_line(error: MemoryError, private_bytes: int) -> str:
    """What to say of a task that had too little memory."""
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
