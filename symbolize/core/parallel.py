"""Jobs at once, for work that releases the GIL; calls with a deadline; and processes that import from where the one
that started them does, and do not outlive it."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, RLock, Thread
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")
Result = TypeVar("Result")

_most_threads = 1 << 10
_environment = RLock()


def beside(job: Callable[[], First]) -> Callable[[], First]:
    """Begin `job` in a thread. The function that is returned waits for its result, or raises its exception."""
    results: list[First] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(job())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run)
    started = True
    try:
        thread.start()
    except RuntimeError:  # no more threads to be had
        started = False

    def result() -> First:
        if started:
            thread.join()
        elif not results and not errors:
            run()
        if errors:
            raise errors[0]
        return results[0]

    return result


def together(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Run `second` in a thread beside `first`; both results. An exception of either is raised, `first`'s first."""
    other = beside(second)
    try:
        result = first()
    except BaseException:
        with suppress(BaseException):
            other()
        raise
    return result, other()


def at_once(jobs: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run jobs in as many threads as this process may use processors, begun in their order; their results.

    Once a job has raised none is begun; its exception is raised when those that run are done.
    """
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    waiting = iter(enumerate(jobs))

    def work() -> None:
        # Iterators of Python's own give each item to one thread only.
        for number, job in waiting:
            try:
                results[number] = job()
            except BaseException as error:
                errors.append(error)
            if errors:
                return

    others = [beside(work) for _ in range(min(processors(), len(jobs)) - 1)]
    work()
    for finished in others:
        finished()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(jobs))]


def processors() -> int:
    """How many processors this process may use."""
    return min(_most_threads, len(os.sched_getaffinity(0)))


def limit_threads(count: int) -> None:
    """Run at most `count` jobs at once in this process, as is right for one of several on a machine."""
    global _most_threads
    _most_threads = max(count, 1)


def call_within(seconds: float, call: Callable[[], Result]) -> Result:
    """The result of `call`, or the exception that it raises, or TimeoutError if it takes longer than `seconds`.

    For calls of libraries that may wait for good. The call runs in a thread, and goes on there after its time. Signals
    interrupt the wait.
    """
    results: list[Result] = []
    errors: list[BaseException] = []
    ended = Event()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        ended.set()

    try:
        Thread(target=run, daemon=True).start()
    except RuntimeError:  # no more threads to be had
        run()
    if not ended.wait(seconds):
        raise TimeoutError(f"no answer in {seconds:.3g} s")
    if errors:
        raise errors[0]
    return results[0]


@contextmanager
def own_import_path() -> Iterator[None]:
    """Let the Python processes that are started meanwhile import from the folders that this one imports from.

    multiprocessing starts its servers and workers by `python -c`, which looks into the current folder first, and tells
    them the path of this process late or not at all.
    """
    path = os.pathsep.join(os.fspath(folder) for folder in sys.path if os.path.isabs(folder))
    with _environment:
        names = {"PYTHONSAFEPATH": "1", "PYTHONPATH": path}
        before = {name: os.environ.get(name) for name in names}
        os.environ.update(names)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def end_with_parent() -> None:
    """Make this process, started by multiprocessing, end with its parent, and at once on SIGTERM, which would otherwise
    wait for the interpreter."""
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    be_killed_with_parent()


def be_killed_with_parent() -> None:
    """Make this process, started by multiprocessing, end with its parent.

    The parent holds the other end of a pipe; the kernel kills this process when it closes, even in a loop that holds
    the interpreter's lock. (PR_SET_PDEATHSIG would follow the thread, or the fork server, that started the worker.)
    """
    import fcntl
    import multiprocessing
    import os
    import signal

    parent = multiprocessing.parent_process()
    assert parent is not None
    pipe = parent.sentinel
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if not parent.is_alive():
        os._exit(1)
