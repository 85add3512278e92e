"""What the finders of special sources take and give."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.reasons import Reason
from symbolize.symbols import Binary, ListedBinary

UInt64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]

Placing = Callable[[UInt64], tuple[UInt64, Bool] | None]
"""Turns runtime addresses into vaddrs and tells which of them lie in the binary at all; None if it does not fit."""


class Recorded(NamedTuple):
    """What a profile records of a mapping: its name and build id (either may be empty), bounds, and file offset.

    `addresses` are those of its locations, `is_call` tells which of them are call sites. `names` are linked names that
    came with some of the addresses, of a kernel only.
    """

    filename: str
    build_id: str
    start: int
    limit: int
    file_offset: int
    addresses: UInt64
    is_call: Bool
    names: Sequence[tuple[int, bytes]] = ()


@dataclass(eq=False)
class Source:
    """What answers for a mapping: a binary, the files it is made of, and how addresses get there.

    Without a `binary` it is a miss, and `reason` says why. `verified` tells that a build id agreed.
    """

    binary: Binary | ListedBinary | None = None
    place: Placing | None = None
    files: list[str] = field(default_factory=list)
    verified: bool = False
    reason: Reason = Reason.SYMBOLIZED
    detail: str = ""
    tried: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def listed(binary: ListedBinary, place: Placing) -> Source:
    """A list of functions as the source; nothing in it proves that it belongs to the mapping."""
    return Source(binary, place, [binary.path], tried=[(binary.path, "used, unverified")])


def as_they_are(addresses: UInt64) -> tuple[UInt64, Bool]:
    """Placing for lists of runtime addresses."""
    return addresses, np.ones(len(addresses), np.bool_)
