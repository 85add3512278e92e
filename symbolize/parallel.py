"""Two jobs at once, for work that releases the GIL."""

from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


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
