"""Of several builds that may be what ran the one that the evidence speaks for; none if it does not tell."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from symbolize.binaries import Attempt, Found
from symbolize.embedded import Agreement
from symbolize.match import MIN_CALL_SHARE, Calls, Reading
from symbolize.reasons import Reason
from symbolize.symbols import Binary, is_same_build

MAX_NAMED = 3
"""So many files are named in the reason; all of them are in what was tried."""
MIN_LEAD = 4
"""So many more call sites lie in calls of the build that ran than in those of another one. Of what is no call site one
in eight lies in a call by chance."""
PLACES = ("special", "path", "name", "build id", "debug file")
"""How a candidate was found, the likeliest first. One of these alone decides only where nothing else does."""


class Candidate(NamedTuple):
    """A binary that may be what ran: how it was found (one of PLACES), its files, and the opened binary."""

    place: str
    found: Found
    binary: Binary

    @property
    def path(self) -> str:
        """The first file, which stands for all."""
        return self.binary.images[0].path

    @property
    def described(self) -> str:
        """The first file with its build id, for a message."""
        return f"{self.path} ({self.binary.images[0].build_id or 'no build id'})"


@dataclass(eq=False)
class Verdict:
    """What came of a candidate: whether it may be what ran, and if not, the `problem`.

    `agreement` is how the names that came along agree with it, `calls` how many call sites lie in calls of it, None if
    nobody knows. Of addresses in a file, `reading` is what they count from, and `others` are further readings that
    nothing speaks against.
    """

    problem: str = ""
    agreement: Agreement = field(default_factory=Agreement)
    calls: Calls | None = None
    reading: Reading | None = None
    others: list[Reading] = field(default_factory=list)

    @property
    def rank(self) -> tuple[int, float, int]:
        """How much the names that came along speak for the candidate."""
        share = self.agreement.functions / max(self.agreement.judged, 1)
        return (2 if self.agreement.is_proof else 1 if self.agreement.functions else 0), share, self.agreement.functions

    @property
    def text(self) -> str:
        """The verdict, for a report."""
        if self.problem:
            return "refused: " + self.problem
        evidence = []
        if self.agreement.judged:
            judged = f"{self.agreement.functions} of {self.agreement.judged} functions are where the profile has them"
            evidence.append(judged)
        elif self.calls is not None:
            evidence.append(self.calls.text)
        if self.agreement.is_proof:
            text = "found, " + evidence[0]
        else:
            text = ": ".join(["found, unverified", *evidence])
        if self.reading is not None:
            text += f"; addresses {self.reading.text}"
        return text + (", or " + " or ".join(other.text for other in self.others) if self.others else "")


@dataclass(eq=False)
class Choice:
    """The candidate that answers for a mapping, if there is one, with its verdict; else why there is none.

    `rejected` are the other candidates.
    """

    candidate: Candidate | None = None
    verdict: Verdict = field(default_factory=Verdict)
    tried: list[Attempt] = field(default_factory=list)
    reason: Reason = Reason.SYMBOLIZED
    detail: str = ""
    rejected: list[Candidate] = field(default_factory=list)


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates in an order that does not depend on that of folders."""
    return sorted(candidates, key=lambda each: (PLACES.index(each.place), each.binary.rank, each.path))


def choose(candidates: Iterable[Candidate], judge: Callable[[Binary], Verdict]) -> Choice:
    """The candidate that the evidence speaks for (rules R165, R247): names that came along, then call sites, then where
    it was found.

    Builds that nothing tells apart are ambiguous, unless they have the same code (rule R249).
    """
    judged = [(each, judge(each.binary)) for each in ordered(candidates)]
    tried = [Attempt(each.path, verdict.text) for each, verdict in judged]
    fitting = [(each, verdict) for each, verdict in judged if not verdict.problem]
    if not fitting:
        details = [f"{each.path} is refused: {verdict.problem}" for each, verdict in judged[:MAX_NAMED]]
        return Choice(tried=tried, reason=Reason.MISFIT, detail="; ".join(details))
    best = max(verdict.rank for _, verdict in fitting)
    equals = leading([(each, verdict) for each, verdict in fitting if verdict.rank == best])
    equals = [(each, verdict) for each, verdict in equals if each.place == equals[0][0].place]
    candidate, verdict = equals[0]
    if not all(is_same_build(candidate.binary.files, each.binary.files) for each, _ in equals):
        detail = " and ".join(each.described for each, _ in equals[:MAX_NAMED])
        known = all(verdict.calls is not None and verdict.calls.is_known for _, verdict in equals)
        why = "the call sites lie in calls of each" if known else "there are too few call sites to tell them apart"
        return Choice(tried=tried, reason=Reason.AMBIGUOUS, detail=f"{detail}; {why}")
    return Choice(candidate, verdict, tried, rejected=[each for each, _ in judged if each is not candidate])


def leading(fitting: list[tuple[Candidate, Verdict]]) -> list[tuple[Candidate, Verdict]]:
    """Those of which no other has clearly more of the call sites in its calls (rule R247)."""
    known = [verdict.calls for _, verdict in fitting if verdict.calls is not None]
    best = max(known, key=lambda calls: calls.inside, default=None)
    if best is None or best.share < MIN_CALL_SHARE or best.inside < MIN_LEAD:
        return fitting
    return [
        (each, verdict)
        for each, verdict in fitting
        if (verdict.calls.inside if verdict.calls is not None else 0) > best.inside - MIN_LEAD
    ]
