"""How much evidence weighs: one number against a file and one for it, likelihood ratios in powers of ten (R148, the
score of evidence)."""

from collections.abc import Sequence
from enum import Enum
from math import log10
from typing import Final, NamedTuple

from symbolize.core.verdict import Verdict

REFUTED: Final = 4.0
"""From this score on a file is another build: in the right one a ratio of 10⁴ is reached in one of 10⁴ profiles."""
SUPPORTED: Final = 4.0
"""From this score on hardly any other code would fit so well."""
MAX_DOUBT: Final = 0.5
"""A file is supported only while less than this speaks against it."""
CLAIM: Final = 3.0
"""What a build id says that was read later, by path: of a thousand files fewer than one is replaced while its program
is recorded."""


class Rates(NamedTuple):
    """A kind of evidence: the share of its items that contradict the right build, in another build that differs little
    and in one that differs much, and the share that agrees in unrelated code. Without `another` it refutes nothing.

    `text` has `{agreeing}` of `{judged}`.
    """

    text: str
    in_right: float
    in_another: tuple[float, float] | None
    by_chance: float


class Evidence(Enum):
    """The kinds of evidence, with rates measured on recordings (docs/correctness.md)."""

    LEAVES = Rates("{agreeing} of {judged} sampled addresses begin an instruction", 0.001, (0.05, 0.6), 0.30)
    """Sampled instructions of x86, whose length varies."""
    PLACES = Rates("{agreeing} of {judged} sampled addresses are in functions", 0.001, (0.05, 0.6), 0.999)
    """Sampled instructions of other machines: nearly every address in code may begin one, which speaks for no file."""
    SITES = Rates("{agreeing} of {judged} call sites lie in a call", 0.01, (0.1, 0.8), 0.06)
    """Call sites on stacks that were unwound by call frame information."""
    DOUBTFUL_SITES = Rates("{agreeing} of {judged} call sites lie in a call", 0.03, (0.15, 0.8), 0.06)
    """Call sites on other stacks: walks along frame pointers invent some."""
    TARGETS = Rates("{agreeing} of {judged} calls lead to the next frame", 0.01, (0.1, 0.9), 0.02)
    """Targets of direct calls on stacks that were unwound by call frame information."""
    DOUBTFUL_TARGETS = Rates("{agreeing} of {judged} calls lead to the next frame", 0.10, None, 0.02)
    """Targets on other stacks, which lack the callers of code that has not made its frame yet."""
    LISTED = Rates("{agreeing} of {judged} callers call the next function on their stacks", 1 / 3, (0.97, 0.97), 1 / 8)
    """Callers by the lists of calls in debug information, where there is no code (R370, builds by their callers). The
    stacks may lack some: a file of whose callers a quarter agrees is never refuted. If every other frame is missing on
    the stacks two of three callers may not agree in the right build, so that it takes 25 of which none agrees to
    refute."""


class Count(NamedTuple):
    """How many items of a kind were judged, and how many of them contradict."""

    kind: Evidence
    judged: int
    contradicting: int

    @property
    def agreeing(self) -> int:
        """How many fit."""
        return self.judged - self.contradicting

    @property
    def text(self) -> str:
        """In words."""
        return self.kind.value.text.format(agreeing=self.agreeing, judged=self.judged)


def doubt(counts: Sequence[Count]) -> float:
    """How much likelier the evidence is if the file is another build, in powers of ten: by the better of the two
    alternatives, a small and a large difference, for all kinds together or one alone; each choice has its price.
    Doubtful call sites count together with the rest only: if a program keeps no frame pointers most are none."""
    sums = [0.0, 0.0]
    best = 0.0
    for count in counts:
        kind = count.kind.value
        if kind.in_another is None:
            continue
        ratios = [ratio(count.contradicting, count.agreeing, share, kind.in_right) for share in kind.in_another]
        if count.kind is not Evidence.DOUBTFUL_SITES:
            best = max(best, max(ratios) - log10(2) - log10(3))
        sums = [before + each for before, each in zip(sums, ratios, strict=True)]
    return max(best, max(sums) - log10(2))


def support(counts: Sequence[Count]) -> float:
    """How much likelier the evidence is in the right build than in unrelated code, in powers of ten."""
    kinds = [(each, each.kind.value) for each in counts]
    return sum(ratio(each.contradicting, each.agreeing, kind.in_right, 1 - kind.by_chance) for each, kind in kinds)


def ratio(contradicting: int, agreeing: int, share: float, other: float) -> float:
    """The likelihood ratio, in powers of ten, of so many items if a share of them contradicts, against another one."""
    return contradicting * log10(share / other) + agreeing * log10((1 - share) / (1 - other))


def verdict_of(counts: Sequence[Count], claim: int = 0) -> Verdict:
    """Whether a file is the build that ran, by the items that were judged. `claim` is 1 if it has the build id that was
    read later, and -1 if it has another one.

    A build id that was read by path, as in perf's table at the end of a recording, says nothing more once the file is
    refuted: then files of the recorded name are judged as if there were none. Where no file has the id, one of the name
    with another id has to make up for it. A symbol file has no code to judge: it is as sure as the binary that has its
    id, unverified without one, and none if what was sampled refutes that (R372, build ids that were read later).

    Two of five sampled instructions of x86 that contradict refute a file, three of 39, four of 118; three of five call
    sites on stacks that were unwound by call frame information, four of six on others. Eight sampled instructions that
    agree support it (R148, the score of evidence).
    """
    against = doubt(counts)
    if against >= REFUTED:
        return Verdict.REFUTED
    is_supported = against < MAX_DOUBT and support(counts) + claim * CLAIM >= SUPPORTED
    if claim < 0 and not is_supported:
        return Verdict.REFUTED
    return Verdict.SUPPORTED if is_supported else Verdict.UNVERIFIED
