"""Lines of a stream as they come: what is there is taken at once, and nothing is waited for while something is."""

import os
import select
from collections.abc import Iterator
from typing import Final

AT_ONCE: Final = 1 << 20
"""Bytes that are read before the lines among them are answered."""
READ: Final = 1 << 16


def batches(descriptor: int, longest: int) -> Iterator[list[bytes]]:
    """The lines of a stream with their ends, in batches of what was there when the first of them came.

    A line of more than `longest` bytes, its end included, comes in pieces of so many, as C's `fgets` reads it; so no
    line takes more memory. The last line may have no end.
    """
    rest = b""
    is_open = True
    while is_open:
        parts = [rest]
        size = 0
        while size < AT_ONCE and (not size or is_ready(descriptor)):
            data = os.read(descriptor, READ)
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


def is_ready(descriptor: int) -> bool:
    """Whether reading would not wait."""
    return bool(select.select([descriptor], [], [], 0)[0])
