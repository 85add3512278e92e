"""Two jobs at once, for work that releases the GIL; calls with a deadline; and processes that do not outlive the one
that started them."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")
Result = TypeVar("Result")


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


def end_with_parent() -> None:
    """Make this process, started by multiprocessing, end with its parent, and at once on SIGTERM.

    The parent holds the other end of a pipe; the kernel kills this process when it closes, even in a loop that holds
    the interpreter's lock. (PR_SET_PDEATHSIG would follow the thread, or the fork server, that started the worker.)
    SIGTERM would otherwise wait for the interpreter too.
    """
    import fcntl
    import multiprocessing
    import os
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None
    pipe = parent.sentinel
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if not parent.is_alive():
        os._exit(1)
