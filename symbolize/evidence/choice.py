"""Selects the build that ran from several candidates by the evidence; none if that is inconclusive."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np

from symbolize.core.arrays import Bool, UInt64
from symbolize.core.reasons import Reason
from symbolize.core.records import record
from symbolize.core.verdict import Verdict
from symbolize.elf import without_tag
from symbolize.evidence.judge import Judge, Judgement, Observed
from symbolize.symbols import Binary, is_same_build

MIN_SHARE = 0.75
"""Of the named functions so many are where the profile has them, or the file is of another build."""
MIN_FUNCTIONS = 2
"""So many functions have to agree to prove a build; a single one may lie at the same place in another."""
MAX_NAMED = 3
"""So many files are named in the reason; all of them are in what was tried."""
MIN_LEAD = 2.0
"""A build is preferred to another whose contradictions are so much less likely in the right one, in powers of ten: one
sampled instruction makes that difference, or two call sites that a walk found."""


class Agreement(NamedTuple):
    """How many of the functions that could be judged are where the profile has them, and how many addresses of theirs.

    `example` describes one address with different names, empty if there is none.
    """

    functions: int = 0
    judged: int = 0
    addresses: int = 0
    example: str = ""

    @property
    def share(self) -> float:
        """The share of the functions that were judged."""
        return self.functions / max(self.judged, 1)

    @property
    def is_sound(self) -> bool:
        """Whether nothing speaks against the binary, or much more for it."""
        return not self.judged or self.functions >= MIN_SHARE * self.judged

    @property
    def is_proof(self) -> bool:
        """Whether the names prove that it is the binary."""
        return self.is_sound and self.functions >= MIN_FUNCTIONS

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.functions} of {self.judged} functions are where the profile has them"


class AddressBase(NamedTuple):
    """What addresses in a file count from: the distance to vaddrs, modulo 2⁶⁴, and words for it."""

    distance: int
    text: str
    needs_proof: bool = False


@record(frozen=True)
class BuildMatch:
    """How a candidate matches a mapping: the `problem` if it cannot be what ran, else the `judgement`.

    `agreement` is how the names that came with the profile agree with it. Of addresses in a file, `base` is what they
    count from; `other_bases` fit as well.
    """

    problem: str = ""
    judgement: Judgement = field(default_factory=lambda: Judgement(Verdict.UNVERIFIED))
    agreement: Agreement = field(default_factory=Agreement)
    base: AddressBase | None = None
    other_bases: list[AddressBase] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """Whether it is the build that ran."""
        if self.problem:
            return Verdict.REFUTED
        return Verdict.PROVED if self.agreement.is_proof else self.judgement.verdict

    @property
    def rank(self) -> tuple[Verdict, bool, float, int]:
        """The strength of the evidence: the verdict, then names."""
        return self.verdict, self.agreement.functions > 0, self.agreement.share, self.agreement.functions

    @property
    def evidence(self) -> str:
        """The evidence in words."""
        return self.agreement.text if self.agreement.judged else self.judgement.text

    @property
    def text(self) -> str:
        """The outcome, for a report."""
        if self.verdict is Verdict.REFUTED:
            return "refused: " + self.refusal
        text = f"found, {self.verdict.text}" + (f": {self.evidence}" if self.evidence else "")
        if self.base is not None:
            text += f"; addresses {self.base.text}"
        return text + (", or " + " or ".join(other.text for other in self.other_bases) if self.other_bases else "")

    @property
    def refusal(self) -> str:
        """Why it is not what ran; empty if it may be."""
        if self.problem or self.verdict is not Verdict.REFUTED:
            return self.problem
        return (
            f"another build: {self.judgement.text}" if self.judgement.counts else "its build id is not the recorded one"
        )


F = TypeVar("F")
"""What is known of the files of a candidate where they were found."""
HOW_FOUND: Final = ("special", "path", "name", "build id", "debug file")
"""How a candidate was found, the likeliest first. One of these alone decides only where nothing else does."""


class Candidate(NamedTuple, Generic[F]):
    """A binary that may be what ran: how it was found (one of HOW_FOUND), its files, and the opened binary."""

    how: str
    match: F
    binary: Binary

    @property
    def path(self) -> str:
        """The first file, which represents all."""
        return self.binary.images[0].path

    @property
    def described(self) -> str:
        """The first file with its build id, for a message."""
        return f"{self.path} ({self.binary.images[0].build_id or 'no build id'})"

    def closeness(self, filename: str) -> tuple[int, int]:
        """How near it lies to the recorded path `filename`, the nearest the least: how it was found, and how many names
        they end with in common, all if it is the very path.

        Of several containers or folders with one layout that says which, and it proves nothing.
        """
        wanted = filename.split("/")[::-1]
        paths = [os.path.abspath(image.path) for image in self.binary.files]
        common = max(shared_begin(path.split("/")[::-1], wanted) for path in paths)
        return HOW_FOUND.index(self.how), -common


def shared_begin(one: list[str], other: list[str]) -> int:
    """How many items two lists begin with in common."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@record(frozen=True)
class Selection(Generic[F]):
    """The candidate that answers for a mapping, if there is one, with its match and verdict; else why there is none.

    `evidence` is what the verdict is known by, and `is_by_path` that other builds fit as well. `rejected` are the other
    candidates.
    """

    candidate: Candidate[F] | None = None
    match: BuildMatch = field(default_factory=BuildMatch)
    verdict: Verdict = Verdict.UNVERIFIED
    evidence: str = ""
    is_by_path: bool = False
    tried: list[tuple[str, str]] = field(default_factory=list)
    reason: Reason = Reason.SYMBOLIZED
    detail: str = ""
    rejected: list[Candidate[F]] = field(default_factory=list)


Judged = list[tuple[Candidate[F], BuildMatch]]


def select_build(
    candidates: Iterable[Candidate[F]],
    match_of: Callable[[Binary], BuildMatch],
    filename: str,
    same_names: Callable[[Judged[F]], bool],
) -> Selection[F]:
    """The candidate that the evidence speaks for (R165, candidates without a build id; R247, choice among builds): what
    is refuted goes, then come names that came along, the verdict, and fewer contradictions. Where it was found orders
    what is left, and proves nothing.

    Builds that nothing distinguishes are ambiguous, unless they have the same code (R249, equal code) or give the
    `same_names` for all that is asked.

    What the place decided is unverified.
    """
    judged = [(each, match_of(each.binary)) for each in ordered(candidates, filename)]
    tried = [(each.path, match.text) for each, match in judged]
    fitting = [(each, match) for each, match in judged if match.verdict is not Verdict.REFUTED]
    if not fitting:
        details = [f"{each.path} is refused: {match.refusal}" for each, match in judged]
        return Selection(tried=tried, reason=Reason.MISFIT, detail="; ".join(details[:MAX_NAMED]))
    best = max(match.rank for _, match in fitting)
    equals = leading([(each, match) for each, match in fitting if match.rank == best])
    candidate, match = equals[0]
    verdict, evidence, is_by_path = match.verdict, match.evidence, False
    if not is_one_build(equals) and not same_names(equals):
        nearest = candidate.closeness(filename)
        if not is_one_build([each for each in equals if each[0].closeness(filename) == nearest]):
            return Selection(tried=tried, reason=Reason.AMBIGUOUS, detail=ambiguity(equals[:MAX_NAMED]))
        verdict, is_by_path = Verdict.UNVERIFIED, True
        evidence = f"{len(equals)} builds fit, this one by its path"
    rejected = [each for each, _ in judged if each is not candidate]
    return Selection(candidate, match, verdict, evidence, is_by_path, tried, rejected=rejected)


def ambiguity(equals: Judged[F]) -> str:
    """Why none of several builds is chosen: the evidence of each, once if it is the same."""
    evidence = {match.evidence for _, match in equals}
    if len(evidence) > 1:
        return " and ".join(f"{each.described}: {match.evidence}" for each, match in equals) + "; that decides nothing"
    why = f"each: {evidence.pop()}" if all(evidence) else "nothing tells them apart"
    return " and ".join(each.described for each, _ in equals) + f"; {why}"


def is_one_build(equals: Judged[F]) -> bool:
    """Whether all are the same build."""
    return all(is_same_build(equals[0][0].binary.files, each.binary.files) for each, _ in equals[1:])


def leading(fitting: Judged[F]) -> Judged[F]:
    """Drop builds whose contradictions are MIN_LEAD less likely than those of another of which as much is known.

    One sampled instruction makes that difference.
    """

    def is_behind(match: BuildMatch) -> bool:
        own = match.judgement
        return any(
            own.strangeness >= each.judgement.strangeness + MIN_LEAD and each.judgement.agreeing >= own.agreeing
            for _, each in fitting
        )

    return [(each, match) for each, match in fitting if not is_behind(match)]


def ordered(candidates: Iterable[Candidate[F]], filename: str = "") -> list[Candidate[F]]:
    """The candidates in an order that does not depend on that of folders, the nearest to the recorded path first."""
    return sorted(candidates, key=lambda each: (each.closeness(filename), each.binary.rank, each.path))


def same_names(binaries: Sequence[tuple[Binary, tuple[UInt64, Bool]]]) -> bool:
    """Whether binaries give the same names for all locations of a mapping, inlined functions too: each with the vaddrs,
    and which of them it has."""
    first = None
    for binary, (vaddrs, inside) in binaries:
        there = without_tag(binary.images[0], vaddrs[inside] + np.uint64(binary.shift))
        frames = binary.answer(there).frames
        names = [linked or name for linked, name in zip(frames.functions.linkage, frames.functions.name, strict=True)]
        found = inside, frames.offsets, [names[i] for i in frames.function.tolist()]
        first = first or found
        if not all(np.array_equal(*each) for each in zip(first[:2], found[:2], strict=True)) or first[2] != found[2]:
            return False
    return True


def match_bases(
    judge: Judge,
    binary: Binary,
    count: int,
    places: Iterable[tuple[AddressBase, Agreement, Observed]],
    *,
    is_one_of_several: bool,
) -> BuildMatch:
    """Infer what `count` addresses in one file count from, if it may be `binary`; one base for all of them (R163, base
    of file addresses). `places` are how names agree and what was observed by each base.

    The base that agrees with the names decides. Where there are none, all addresses have to lie in the code, and the
    judge decides, who is asked too where `is_one_of_several` candidates is to be chosen.
    """
    fitting: list[BuildMatch] = []
    problem, outside = "", count
    for base, agreement, observed in places:
        if agreement.judged and not agreement.is_sound:
            problem = problem or f"another build: {agreement.text}; {agreement.example}"
            continue
        if not agreement.is_proof and not observed.inside.all():
            outside = min(outside, int((~observed.inside).sum()))
            continue
        match = BuildMatch(agreement=agreement, base=base)
        if is_one_of_several or not agreement.is_proof:
            match = replace(match, judgement=judge.judge(binary, observed))
        if match.verdict is Verdict.REFUTED:
            problem = problem or match.refusal
        elif agreement.functions or not base.needs_proof or match.judgement.verdict is Verdict.SUPPORTED:
            fitting.append(match)
    if not fitting:
        return BuildMatch(
            problem or f"{outside} of {count} addresses lie outside of its code, whatever they count from"
        )
    names = [each.agreement for each in fitting]
    ranks = [(a.is_proof, a.share, a.addresses, m.judgement.verdict) for a, m in zip(names, fitting, strict=True)]
    equals = [each for each, rank in zip(fitting, ranks, strict=True) if rank == max(ranks)]
    return replace(equals[0], other_bases=[each.base for each in equals[1:] if each.base])
