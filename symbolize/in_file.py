"""Profiles whose addresses are those in files: which file each was, and what its addresses count from.

simpleperf records neither build ids nor where files were mapped. What it has is names of some functions.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from symbolize.elf import Segment, without_tag
from symbolize.embedded import Agreement, EmbeddedNames, compare, some_of
from symbolize.match import Calls, Reading, doubt, in_code, readings
from symbolize.resolve import Verdict, calls_of
from symbolize.symbols import Binary

UInt64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]

WIDE = re.compile(r"lib64|arm64|x86_64|linker64|app_process64")
"""Parts of device paths that tell a library of 64 bits."""


def placing(binary: Binary, reading: Reading) -> Callable[[UInt64], tuple[UInt64, Bool]]:
    """What turns addresses in a file, read so, into vaddrs of the binary, and tells which lie in its code."""

    def place(addresses: UInt64) -> tuple[UInt64, Bool]:
        vaddrs = addresses + np.uint64(reading.distance)
        return vaddrs + np.uint64(binary.shift), in_code(vaddrs, code_of(binary))

    return place


def settle(
    binary: Binary,
    filename: str,
    addresses: UInt64,
    is_call: Bool,
    embedded: EmbeddedNames,
    *,
    is_one_of_several: bool = False,
) -> Verdict:
    """What the addresses in one file count from, if it may be `binary`; decided for all of them at once (rule R163).

    The reading that agrees with the names decides. Where there are none, all addresses have to lie in the code, and
    call sites in calls, which are also counted where `is_one_of_several` candidates is to be chosen.
    """
    segments = code_of(binary)
    fitting: list[tuple[Reading, Agreement, Calls | None]] = []
    problem = ""
    outside = len(addresses)
    for reading in meanings(binary):
        vaddrs = addresses + np.uint64(reading.distance)
        inside = in_code(vaddrs, segments)
        agreement = agreement_of(binary, vaddrs, embedded)
        if agreement.judged and not agreement.is_sound:
            problem = problem or (
                f"another build: {agreement.functions} of {agreement.judged} functions are where the profile has them; "
                + agreement.example
            )
            continue
        if not agreement.is_proof and not inside.all():
            outside = min(outside, int((~inside).sum()))
            continue
        is_asked = is_one_of_several or not agreement.is_proof
        calls = calls_of(binary, (vaddrs, inside), is_call) if is_asked else None
        if not agreement.is_proof and (why := doubt(calls)):
            problem = problem or why
            continue
        if agreement.functions or not reading.needs_proof:
            fitting.append((reading, agreement, calls))
    if not fitting:
        default = f"{outside} of {len(addresses)} addresses lie outside of its code, whatever they count from"
        return Verdict(problem=problem or default)
    if WIDE.search(filename) and not binary.loaded.is_64 and not any(each.is_proof for _, each, _ in fitting):
        return Verdict(problem="a file of 32 bits, and the path is that of one of 64")
    ranks = [(each.is_proof, each.functions / max(each.judged, 1), each.addresses) for _, each, _ in fitting]
    best = ranks.index(max(ranks))
    reading, agreement, calls = fitting[best]
    others = [
        each for (each, _, _), rank in zip(fitting, ranks, strict=True) if rank == ranks[best] and each != reading
    ]
    return Verdict("", agreement, calls, reading, others)


def agreement_of(binary: Binary, vaddrs: UInt64, embedded: EmbeddedNames) -> Agreement:
    """How the functions of `binary` agree with the names that came with the locations, were they at `vaddrs`."""
    named = some_of(embedded)
    if not len(named):
        return Agreement()
    there = without_tag(binary.images[0], vaddrs[named] + np.uint64(binary.shift))
    order = np.argsort(there, kind="stable")
    names = EmbeddedNames(embedded.names, embedded.of_location[named[order]])
    return compare(names, vaddrs[named[order]], binary.functions_at(there[order]), silence=not binary.is_stripped)


def meanings(binary: Binary) -> list[Reading]:
    """What addresses may count from. Those in a file that is not linked, a kernel module, count from `.text`."""
    image = binary.images[0]
    if not image.is_relocatable:
        return readings(binary.loaded.segments)
    text = image.module_text
    return [Reading(text.vaddr, "counted from .text")] if text is not None else []


def code_of(binary: Binary) -> Sequence[Segment]:
    """The segments with the code of a binary; of a kernel module what is loaded first."""
    image = binary.images[0]
    if not image.is_relocatable:
        return binary.loaded.segments
    text = image.module_text
    return [Segment(text.file_offset, text.vaddr, text.size, text.size, 1, True)] if text is not None else []
