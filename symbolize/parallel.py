"""Two jobs at once, for work that releases the GIL."""

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


def together(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Run `second` in a thread beside `first`; both results. An exception of either is raised, `first`'s first."""
    results: list[Second] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(second())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run)
    try:
        thread.start()
    except RuntimeError:  # no more threads to be had
        return first(), second()
    try:
        result = first()
    finally:
        thread.join()
    if errors:
        raise errors[0]
    return result, results[0]
