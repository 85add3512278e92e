"""Profiles whose addresses are those in files: which file each was, and what its addresses count from.

simpleperf records neither build ids nor where files were mapped. What it has is names of some functions.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.binaries import Attempt, Found
from symbolize.elf import Segment, without_tag
from symbolize.embedded import Agreement, EmbeddedNames, compare, some_of
from symbolize.match import Reading, doubt, in_code, readings
from symbolize.reasons import Reason
from symbolize.symbols import Binary

UInt64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]

MAX_TOLD = 3
"""So many refused files are told in the reason; all of them are in what was tried."""

WIDE = re.compile(r"lib64|arm64|x86_64|linker64|app_process64")
"""Parts of device paths that tell a library of 64 bits."""


class Candidate(NamedTuple):
    """A binary that may be what ran: in what kind of place it was found, its files, and the opened binary."""

    place: str
    found: Found
    binary: Binary


@dataclass(eq=False)
class Verdict:
    """What came of a candidate: how its addresses are read, None if it is refused for `problem`.

    `others` are further readings that nothing speaks against.
    """

    reading: Reading | None = None
    agreement: Agreement = field(default_factory=Agreement)
    problem: str = ""
    others: list[Reading] = field(default_factory=list)

    @property
    def rank(self) -> tuple[int, float, int]:
        """How much speaks for the candidate."""
        share = self.agreement.functions / max(self.agreement.judged, 1)
        return (2 if self.agreement.is_proof else 1 if self.agreement.functions else 0), share, self.agreement.functions

    @property
    def text(self) -> str:
        """The verdict, for a report."""
        if self.reading is None:
            return "refused: " + self.problem
        words = f"addresses {self.reading.text}"
        if self.others:
            words += ", or " + " or ".join(other.text for other in self.others)
        judged = f"{self.agreement.functions} of {self.agreement.judged} functions are where the profile has them"
        if self.agreement.is_proof:
            return f"found, {judged}; {words}"
        return f"found, unverified{': ' + judged if self.agreement.judged else ''}; {words}"


@dataclass(eq=False)
class Choice:
    """The candidate that answers for a mapping, if there is one, with its verdict; else why there is none."""

    candidate: Candidate | None = None
    verdict: Verdict = field(default_factory=Verdict)
    tried: list[Attempt] = field(default_factory=list)
    reason: Reason = Reason.SYMBOLIZED
    detail: str = ""

    def place(self, addresses: UInt64) -> tuple[UInt64, Bool] | None:
        """The vaddrs of addresses in the chosen binary, and which lie in its code."""
        if self.candidate is None or self.verdict.reading is None:
            return None
        binary = self.candidate.binary
        vaddrs = addresses + np.uint64(self.verdict.reading.distance)
        return vaddrs + np.uint64(binary.shift), in_code(vaddrs, code_of(binary))


def choose(
    candidates: Iterable[Candidate], filename: str, addresses: UInt64, is_call: Bool, embedded: EmbeddedNames
) -> Choice:
    """The candidate that agrees best with the names that came with the locations at `addresses` (rule R165).

    Of candidates that no name tells apart the first place decides, and several builds in one place are ambiguous.
    `is_call` marks call sites.
    """
    judged = [(each, settle(each.binary, filename, addresses, is_call, embedded)) for each in candidates]
    tried = [Attempt(path_of(each), verdict.text) for each, verdict in judged]
    fitting = [(each, verdict) for each, verdict in judged if verdict.reading is not None]
    if not fitting:
        details = [f"{path_of(each)} is refused: {verdict.problem}" for each, verdict in judged[:MAX_TOLD]]
        return Choice(tried=tried, reason=Reason.MISFIT, detail="; ".join(details))
    best = max(verdict.rank for _, verdict in fitting)
    equals = [(each, verdict) for each, verdict in fitting if verdict.rank == best]
    equals = [(each, verdict) for each, verdict in equals if each.place == equals[0][0].place]
    if len(equals) > 1 and not equals[0][1].agreement.is_proof:
        paths = [f"{path_of(each)} ({each.found.build_id or 'no build id'})" for each, _ in equals[:MAX_TOLD]]
        return Choice(tried=tried, reason=Reason.AMBIGUOUS, detail=" and ".join(paths))
    candidate, verdict = next(((e, v) for e, v in equals if e.found.has_dwarf), equals[0])
    return Choice(candidate, verdict, tried)


def settle(binary: Binary, filename: str, addresses: UInt64, is_call: Bool, embedded: EmbeddedNames) -> Verdict:
    """What the addresses in one file count from, if it may be `binary`; decided for all of them at once (rule R163).

    The reading that agrees with the names decides. Where there are none, all addresses have to lie in the code, and
    call sites in calls.
    """
    segments = code_of(binary)
    image = next((each for each in (binary.loaded, *binary.images) if each.has_code), None)
    fitting: list[tuple[Reading, Agreement]] = []
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
        if agreement.is_proof:
            fitting.append((reading, agreement))
            continue
        if not inside.all():
            outside = min(outside, int((~inside).sum()))
            continue
        if image is not None and (why := doubt(image, vaddrs[is_call])):
            problem = problem or why
            continue
        if agreement.functions or not reading.needs_proof:
            fitting.append((reading, agreement))
    if not fitting:
        default = f"{outside} of {len(addresses)} addresses lie outside of its code, whatever they count from"
        return Verdict(problem=problem or default)
    if WIDE.search(filename) and not binary.loaded.is_64 and not any(each.is_proof for _, each in fitting):
        return Verdict(problem="a file of 32 bits, and the path is that of one of 64")
    ranks = [(each.is_proof, each.functions / max(each.judged, 1), each.addresses) for _, each in fitting]
    best = ranks.index(max(ranks))
    reading, agreement = fitting[best]
    others = [
        other for (other, _), rank in zip(fitting, ranks, strict=True) if rank == ranks[best] and other != reading
    ]
    return Verdict(reading, agreement, others=others)


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


def path_of(candidate: Candidate) -> str:
    """The first file of a candidate, which stands for all."""
    return candidate.binary.images[0].path
