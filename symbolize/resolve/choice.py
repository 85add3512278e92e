"""Selects the build that ran from several candidates by the evidence; none if that is inconclusive."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from symbolize.binaries import Attempt
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.evidence.judge import Judgement
from symbolize.resolve.addresses import AddressBase
from symbolize.resolve.candidates import Candidate, closeness, ordered
from symbolize.resolve.name_agreement import Agreement
from symbolize.symbols import Binary, is_same_build

MAX_NAMED = 3
"""So many files are named in the reason; all of them are in what was tried."""
MIN_LEAD = 2.0
"""A build is preferred to another whose contradictions are so much less likely in the right one, in powers of ten: one
sampled instruction makes that difference, or two call sites that a walk found."""


@dataclass(frozen=True, eq=False)
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
        share = self.agreement.functions / max(self.agreement.judged, 1)
        return self.verdict, self.agreement.functions > 0, share, self.agreement.functions

    @property
    def evidence(self) -> str:
        """The evidence in words."""
        if self.agreement.judged:
            return f"{self.agreement.functions} of {self.agreement.judged} functions are where the profile has them"
        return self.judgement.text

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


@dataclass(frozen=True, eq=False)
class Selection:
    """The candidate that answers for a mapping, if there is one, with its match and verdict; else why there is none.

    `evidence` is what the verdict is known by, and `is_by_path` that other builds fit as well. `rejected` are the other
    candidates.
    """

    candidate: Candidate | None = None
    match: BuildMatch = field(default_factory=BuildMatch)
    verdict: Verdict = Verdict.UNVERIFIED
    evidence: str = ""
    is_by_path: bool = False
    tried: list[Attempt] = field(default_factory=list)
    reason: Reason = Reason.SYMBOLIZED
    detail: str = ""
    rejected: list[Candidate] = field(default_factory=list)


Judged = list[tuple[Candidate, BuildMatch]]

GivesSameNames = Callable[[Judged], bool]
"""Whether several candidates give the same names for all that is asked."""


def select_build(
    candidates: Iterable[Candidate],
    match_of: Callable[[Binary], BuildMatch],
    filename: str,
    same_names: GivesSameNames,
) -> Selection:
    """The candidate that the evidence speaks for (R165, candidates without a build id; R247, choice among builds): what
    is refuted goes, then come names that came along, the verdict, and fewer contradictions. Where it was found orders
    what is left, and proves nothing.

    Builds that nothing distinguishes are ambiguous, unless they have the same code (R249, equal code) or give the same
    names.
    """
    judged = [(each, match_of(each.binary)) for each in ordered(candidates, filename)]
    tried = [Attempt(each.path, match.text) for each, match in judged]
    fitting = [(each, match) for each, match in judged if match.verdict is not Verdict.REFUTED]
    if not fitting:
        details = [f"{each.path} is refused: {match.refusal}" for each, match in judged]
        return Selection(tried=tried, reason=Reason.MISFIT, detail="; ".join(details[:MAX_NAMED]))
    best = max(match.rank for _, match in fitting)
    equals = leading([(each, match) for each, match in fitting if match.rank == best])
    candidate, match = equals[0]
    verdict, evidence, is_by_path = match.verdict, match.evidence, False
    if not is_one_build(equals) and not same_names(equals):
        nearest = closeness(candidate, filename)
        if not is_one_build([each for each in equals if closeness(each[0], filename) == nearest]):
            return Selection(tried=tried, reason=Reason.AMBIGUOUS, detail=ambiguity(equals[:MAX_NAMED]))
        verdict, is_by_path = Verdict.UNVERIFIED, True
        evidence = f"{len(equals)} builds fit, this one by its path"
    rejected = [each for each, _ in judged if each is not candidate]
    return Selection(candidate, match, verdict, evidence, is_by_path, tried, rejected=rejected)


def ambiguity(equals: Judged) -> str:
    """Why none of several builds is chosen: the evidence of each, once if it is the same."""
    evidence = {match.evidence for _, match in equals}
    if len(evidence) > 1:
        return " and ".join(f"{each.described}: {match.evidence}" for each, match in equals) + "; that decides nothing"
    why = f"each: {evidence.pop()}" if all(evidence) else "nothing tells them apart"
    return " and ".join(each.described for each, _ in equals) + f"; {why}"


def is_one_build(equals: Judged) -> bool:
    """Whether all are the same build."""
    return all(is_same_build(equals[0][0].binary.files, each.binary.files) for each, _ in equals[1:])


def leading(fitting: Judged) -> Judged:
    """Drop builds whose contradictions are MIN_LEAD less likely than those of another of which as much is known."""

    def is_behind(match: BuildMatch) -> bool:
        own = match.judgement
        return any(
            own.strangeness >= each.judgement.strangeness + MIN_LEAD and each.judgement.agreeing >= own.agreeing
            for _, each in fitting
        )

    return [(each, match) for each, match in fitting if not is_behind(match)]
