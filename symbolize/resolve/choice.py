"""Selects the build that ran from several candidates by the evidence; none if that is inconclusive."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from symbolize.binaries import Attempt
from symbolize.core.reasons import Reason
from symbolize.core.stack_check import CallerAgreement
from symbolize.resolve.addresses import AddressBase, Calls
from symbolize.resolve.caller_agreement import caller_mismatch
from symbolize.resolve.candidates import Candidate, ordered
from symbolize.resolve.name_agreement import Agreement
from symbolize.symbols import Binary, is_same_build

MAX_NAMED = 3
"""So many files are named in the reason; all of them are in what was tried."""
MIN_LEAD = 2
"""So many more call sites lie in calls of the build that ran than in those of another one. A site that lies in a call
of one of two builds only is some 60 times likelier if that one ran: nine in ten of the call sites are in its calls, and
one in eight or fewer of what is no call site."""


@dataclass(frozen=True, eq=False)
class BuildMatch:
    """How a candidate matches a mapping: the `problem` if it cannot be what ran, else the evidence.

    `agreement` is how the names that came with the profile agree with it, `calls` how many call sites are in calls of
    it, and `callers` how many callers call what is next to them on the stacks, None if that is unknown. Of addresses in
    a file, `base` is what they count from; `other_bases` fit as well.
    """

    problem: str = ""
    agreement: Agreement = field(default_factory=Agreement)
    calls: Calls | None = None
    callers: CallerAgreement | None = None
    base: AddressBase | None = None
    other_bases: list[AddressBase] = field(default_factory=list)

    @property
    def rank(self) -> tuple[int, float, int]:
        """The strength of the evidence of names."""
        share = self.agreement.functions / max(self.agreement.judged, 1)
        return (2 if self.agreement.is_proof else 1 if self.agreement.functions else 0), share, self.agreement.functions

    @property
    def text(self) -> str:
        """The evidence, for a report."""
        if self.problem:
            return "refused: " + self.problem
        evidence = []
        if self.agreement.judged:
            judged = f"{self.agreement.functions} of {self.agreement.judged} functions are where the profile has them"
            evidence.append(judged)
        elif self.calls is not None:
            evidence.append(self.calls.text)
        if self.callers is not None:
            evidence.append(self.callers.text)
        if self.agreement.is_proof:
            text = "found, " + evidence[0]
        else:
            text = ": ".join(["found, unverified", *filter(None, [", ".join(evidence)])])
        if self.base is not None:
            text += f"; addresses {self.base.text}"
        return text + (", or " + " or ".join(other.text for other in self.other_bases) if self.other_bases else "")


@dataclass(frozen=True, eq=False)
class Selection:
    """The candidate that answers for a mapping, if there is one, with its verdict; else why there is none.

    `rejected` are the other candidates.
    """

    candidate: Candidate | None = None
    verdict: BuildMatch = field(default_factory=BuildMatch)
    tried: list[Attempt] = field(default_factory=list)
    reason: Reason = Reason.SYMBOLIZED
    detail: str = ""
    rejected: list[Candidate] = field(default_factory=list)


JudgeCallers = Callable[[Binary, BuildMatch], CallerAgreement | None]
"""How the callers agree with a binary that matches a mapping in some way."""


def select_build(
    candidates: Iterable[Candidate],
    judge: Callable[[Binary], BuildMatch],
    judge_callers: JudgeCallers = lambda _, __: None,
) -> Selection:
    """The candidate that the evidence speaks for (R165, candidates without a build id; R247, choice among builds):
    names that came along, then callers, then call sites, then where it was found. Callers, whose debug information has
    to be read, are judged only where call sites leave several.

    Builds that nothing distinguishes are ambiguous, unless they have the same code (R249, equal code).
    """
    judged = [(each, judge(each.binary)) for each in ordered(candidates)]
    best = max((verdict.rank for _, verdict in judged if not verdict.problem), default=None)
    equals = [(each, verdict) for each, verdict in judged if not verdict.problem and verdict.rank == best]
    if not is_decided(equals):
        known = {each: with_callers(verdict, judge_callers(each.binary, verdict)) for each, verdict in equals}
        judged = [(each, known.get(each, verdict)) for each, verdict in judged]
        equals = [(each, verdict) for each, verdict in known.items() if not verdict.problem]
    tried = [Attempt(each.path, verdict.text) for each, verdict in judged]
    if not equals:
        details = [f"{each.path} is refused: {verdict.problem}" for each, verdict in judged if verdict.problem]
        return Selection(tried=tried, reason=Reason.MISFIT, detail="; ".join(details[:MAX_NAMED]))
    equals = leading(leading(equals, callers_that_agree, majority_of_callers), call_sites_in_calls)
    equals = [(each, verdict) for each, verdict in equals if each.how == equals[0][0].how]
    candidate, verdict = equals[0]
    if not is_one_build(equals):
        detail = " and ".join(each.described for each, _ in equals[:MAX_NAMED])
        known_calls = all(verdict.calls is not None and verdict.calls.is_strong for _, verdict in equals)
        why = (
            "the call sites lie in calls of each" if known_calls else "there are too few call sites to tell them apart"
        )
        return Selection(tried=tried, reason=Reason.AMBIGUOUS, detail=f"{detail}; {why}")
    return Selection(candidate, verdict, tried, rejected=[each for each, _ in judged if each is not candidate])


Judged = list[tuple[Candidate, BuildMatch]]


def is_decided(equals: Judged) -> bool:
    """Whether one build is left, or many call sites prefer one."""
    if is_one_build(equals):
        return True
    first = leading(equals, call_sites_in_calls)
    calls = first[0][1].calls
    return is_one_build(first) and calls is not None and calls.is_strong


def is_one_build(equals: Judged) -> bool:
    """Whether all are the same build."""
    return all(is_same_build(equals[0][0].binary.files, each.binary.files) for each, _ in equals[1:])


def with_callers(verdict: BuildMatch, callers: CallerAgreement | None) -> BuildMatch:
    """How a candidate matches where its callers are known too."""
    return replace(verdict, callers=callers, problem=verdict.problem or caller_mismatch(callers))


def leading(fitting: Judged, *counts: Callable[[BuildMatch], int]) -> Judged:
    """Those of which no others have clearly more of all that is counted (R247, choice among builds)."""
    columns = [[count(verdict) for _, verdict in fitting] for count in counts]
    least = [max(column) - MIN_LEAD for column in columns]
    is_behind = [
        all(number <= limit for number, limit in zip(row, least, strict=True)) for row in zip(*columns, strict=True)
    ]
    return [each for each, behind in zip(fitting, is_behind, strict=True) if not behind]


def call_sites_in_calls(verdict: BuildMatch) -> int:
    """How many of the call sites are in calls of a build."""
    return verdict.calls.inside if verdict.calls is not None else 0


def callers_that_agree(verdict: BuildMatch) -> int:
    """How many of the callers call what is next to them on the stacks."""
    return verdict.callers.agreeing if verdict.callers is not None else 0


def majority_of_callers(verdict: BuildMatch) -> int:
    """How many more of the callers do so than do not: a build of which nothing is known of that may be the one."""
    return 2 * verdict.callers.agreeing - verdict.callers.judged if verdict.callers is not None else 0
