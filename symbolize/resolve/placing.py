"""Where the addresses of a mapping are in the files of a binary, and what its call sites say of that."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from symbolize.match import Calls, calls_at, doubt, place, place_module
from symbolize.resolve.choice import Verdict
from symbolize.symbols import Binary

UInt64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]
Places = tuple[UInt64, Bool]
"""Vaddrs, and which of them lie in the binary at all."""

MAX_SITES = 4096
"""Call sites that are looked at; of more an evenly spaced part, which is the same for all builds of a mapping."""


class Mapped(Protocol):
    """A mapping with bounds and file offset, and the addresses in it, of which `is_call` tells the call sites."""

    @property
    def start(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def file_offset(self) -> int: ...
    @property
    def addresses(self) -> UInt64: ...
    @property
    def is_call(self) -> Bool: ...


def judge(mapped: Mapped, binary: Binary, *, verified: bool) -> Verdict:
    """Whether a binary may be what was mapped, and how many of the call sites lie in calls of it."""
    places, problem = place_in_images(mapped, binary, verified=verified)
    if places is None:
        return Verdict(problem or "does not fit the mapping")
    calls = calls_of(binary, places, mapped.is_call)
    return Verdict(doubt(calls), calls=calls)


def calls_of(binary: Binary, places: Places, is_call: Bool) -> Calls | None:
    """How many of the call sites among placed addresses lie in calls of a binary; None if that cannot be told."""
    vaddrs, inside = places
    if binary.code is None:
        return None
    sites = np.flatnonzero(is_call)
    sites = sites[:: len(sites) // MAX_SITES + 1]
    there = sites[inside[sites]]
    return calls_at(binary.code, vaddrs[there], len(sites) - len(there))


def place_in_images(mapped: Mapped, binary: Binary, *, verified: bool) -> tuple[Places | None, str]:
    """Where the addresses of a mapping are; None if the files do not fit, and why where there is more to say."""
    image = binary.images[0]
    bounds = mapped.start, mapped.limit, mapped.file_offset
    if image.is_relocatable:
        # A module is built for one kernel, and nothing else tells another build of it.
        places = place_module(mapped.addresses, *bounds, image.module_text if verified else None)
        why = "not linked: only a kernel module is placed, found by build id and mapped from .text on"
        return places, "" if places is not None else why
    loaded = binary.loaded.segments if binary.loaded.has_file_offsets else None
    return place(mapped.addresses, *bounds, loaded, image.segments, kind=image.kind, verified=verified), ""
