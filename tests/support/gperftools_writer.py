"""Writes gperftools CPU profiles for tests, as gperftools' profiledata.cc lays them out."""

import struct
from collections.abc import Iterable, Sequence

LAYOUTS = "<I", ">I", "<Q", ">Q"

Record = tuple[int, Sequence[int]]
"""A count, and the addresses of a stack from the leaf to the root, return addresses unadjusted."""


def words(layout: str, *values: int) -> bytes:
    """The values as words of a layout such as "<Q"."""
    return struct.pack(f"{layout[0]}{len(values)}{layout[1]}", *values)


def header(layout: str = "<Q", period: int = 10_000, kind: int = 0, extra: Sequence[int] = ()) -> bytes:
    """The header for a period in microseconds; `kind` 1 is Java, `extra` are words of a longer header."""
    return words(layout, 0, 3 + len(extra), kind, period, 0, *extra)


def body(records: Iterable[Record], layout: str = "<Q") -> bytes:
    """The records without an end marker."""
    return b"".join(words(layout, count, len(stack), *stack) for count, stack in records)


def end(layout: str = "<Q") -> bytes:
    """The end marker."""
    return words(layout, 0, 1, 0)


def profile(records: Iterable[Record], maps: bytes = b"", layout: str = "<Q", period: int = 10_000) -> bytes:
    """A whole profile."""
    return header(layout, period) + body(records, layout) + end(layout) + maps
