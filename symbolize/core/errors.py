"""What can go wrong for a user, as exceptions that print as one line."""

from collections.abc import Iterable
from itertools import islice
from numbers import Integral
from typing import Self

MAX_LISTED = 10
"""Names that a message lists."""
SIMILAR = 0.65
"""How much of a mistyped word the one that was meant has in common with it, at least: more than thread and heap."""


def printable(text: str) -> str:
    """`text` without control characters, with which the name of a file could steer a terminal."""
    if text.isprintable():  # nearly all are, and names recur in outputs
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def first_names(names: Iterable[str]) -> str:
    """The first names of a list for a message, `...` for more."""
    first = list(islice(names, MAX_LISTED + 1))
    return ", ".join([*first[:MAX_LISTED], "..."] if len(first) > MAX_LISTED else first)


def closest(word: str, known: Iterable[object]) -> str:
    """The one of `known` that a mistyped `word` resembles; empty if there is none."""
    import difflib

    return next(iter(difflib.get_close_matches(word, map(str, known), 1, SIMILAR)), "")


def did_you_mean(word: str, known: Iterable[object]) -> str:
    """The end of a message on a `word` that is none of `known`: which it may have been."""
    meant = closest(word, known)
    return f"; did you mean {meant}?" if meant else ""


def check_type(name: str, value: object, expected: str, *types: type) -> None:
    """Raise TypeError, which names the argument, for a value that is of none of the types."""
    if not isinstance(value, types):
        raise TypeError(f"{name}: expected {expected}, not {type(value).__name__}")


def check_flags(**flags: object) -> None:
    """Raise TypeError, which names the argument, for one that is neither True nor False."""
    for name, value in flags.items():
        check_type(name, value, "True or False", bool)


def check_count(name: str, value: object) -> None:
    """Raise TypeError or UsageError, which name the argument, for what is no number of things."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name}: expected a whole number, not {type(value).__name__}")
    if value < 0:
        raise UsageError(f"{name}: expected a number from 0 on, not {value}")


class SymbolizeError(Exception):
    """Root of the errors a person can act on; `str()` is one line."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(SymbolizeError):
    """An input cannot be read: which one, what is wrong, and at which offset where that is known."""

    def __init__(self, source: str, problem: str, offset: int | None = None) -> None:
        self.source = source
        self.problem = problem
        self.offset = offset
        where = "" if offset is None else f" at offset {offset:#x}"
        super().__init__(f"{source}: {problem}{where}")

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, int | None]]:
        """So that an error gets from a worker process to the one that asked."""
        return type(self), (self.source, self.problem, self.offset)


class EmptyInput(InputError):
    """An input has no bytes."""


class NoProfile(InputError):
    """An input is of no format that is read here."""


class ReadFailure(InputError):
    """What may have names could not be read, for a reason that may pass: another run may find them (R285, names missed
    by failures)."""


class ChangedFile(ReadFailure):
    """A file changed while it was read, so that nothing that was read of it counts."""


class OutputError(SymbolizeError):
    """An output cannot be written."""


class UsageError(SymbolizeError):
    """A call that asks for something contradictory or unknown."""
