"""Lines of a stream as they come: what is there is taken at once, and nothing is waited for while something is."""

import os
import select
import sys
from collections.abc import Iterator
from typing import Final

from symbolize.core.errors import InputError
from symbolize.core.files import os_error_text

STANDARD_INPUT: Final = "standard input"
AT_ONCE: Final = 1 << 20
"""Bytes that are read before the lines among them are answered."""
READ: Final = 1 << 16


def standard_input() -> int:
    """The descriptor of standard input. Raises InputError if it is closed."""
    if sys.stdin is None:
        raise InputError(STANDARD_INPUT, "cannot be read: it is closed")
    return sys.stdin.fileno()


def batches(descriptor: int, longest: int, source: str = STANDARD_INPUT) -> Iterator[list[bytes]]:
    """The lines of a stream, which errors call `source`, with their ends, in batches of what was there when the first
    of them came. Raises InputError.

    A line of more than `longest` bytes, its end included, comes in pieces of so many, as C's `fgets` reads it; so no
    line takes more memory. The last line may have no end.
    """
    rest = b""
    is_open = True
    while is_open:
        parts = [rest]
        size = 0
        while size < AT_ONCE and is_ready(descriptor, 0 if size else None):
            try:
                data = os.read(descriptor, READ)
            except OSError as error:
                raise InputError(source, f"cannot be read: {os_error_text(error)}") from error
            if not data:
                is_open = False
                break
            parts.append(data)
            size += len(data)
        lines = b"".join(parts).split(b"\n")
        rest = lines.pop()
        found: list[bytes] = []
        for line in lines:
            found += [line + b"\n"] if len(line) < longest else pieces(line + b"\n", longest)
        if len(rest) >= longest or not is_open:
            *whole, rest = pieces(rest, longest) or [b""]
            found += whole
            if rest and (len(rest) == longest or not is_open):
                found.append(rest)
                rest = b""
        if found:
            yield found


def pieces(line: bytes, longest: int) -> list[bytes]:
    """A line in pieces of `longest` bytes."""
    return [line[first : first + longest] for first in range(0, len(line), longest)]


def is_ready(descriptor: int, timeout: float | None) -> bool:
    """Whether reading would not wait, after at most `timeout` milliseconds (None: as many as that takes)."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(timeout))
