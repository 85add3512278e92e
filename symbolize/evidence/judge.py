"""The judge of builds: is this file what ran? Evidence weighs by one number against a file and one for it, likelihood
ratios in powers of ten (R148, the score of evidence)."""

from collections.abc import Callable, Sequence
from dataclasses import field
from enum import Enum
from math import log10
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt64, distinct, marked, offsets_of
from symbolize.core.records import record
from symbolize.core.verdict import Verdict
from symbolize.elf import inside_calls, without_tag
from symbolize.evidence.code import CodePlace, DecodedCode
from symbolize.symbols import Binary

REFUTED: Final = 4.0
"""From this score on a file is another build: in the right one a ratio of 10⁴ is reached in one of 10⁴ profiles."""
SUPPORTED: Final = 4.0
"""From this score on hardly any other code would fit so well."""
MAX_DOUBT: Final = 0.5
"""A file is supported only while less than this speaks against it."""
CLAIM: Final = 3.0
"""What a build id says that was read later, by path: of a thousand files fewer than one is replaced while its program
is recorded."""
MAX_ITEMS: Final = 2048
"""Addresses and calls of a kind that are judged; of more an evenly spaced part, the same for all builds."""

MAX_PAIRS: Final = 512
"""Pairs of a caller and what it called that are judged by lists of calls; of more an evenly spaced part, the same for
all builds."""
NOT_CHECKED: Final = "not checked: "


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


@record(frozen=True)
class Observed:
    """What a profile saw of a mapping, at `vaddrs` of the file that is judged; `inside` is whether it has them at all.

    `is_leaf` marks exact addresses of instructions, `is_call` call sites that count as evidence: with `is_sound` stacks
    all, otherwise those behind known code. `pairs` finds what was called and its call site, as indices of `vaddrs`.
    `by_pointers`: the stacks were walked along frame pointers.
    """

    vaddrs: UInt64
    inside: Bool
    is_leaf: Bool
    is_call: Bool
    is_sound: bool = False
    pairs: Callable[[], tuple[Int64, Int64]] = lambda: (np.zeros(0, np.int64), np.zeros(0, np.int64))
    by_pointers: bool = False


def joined(parts: Sequence[Observed]) -> Observed:
    """What was seen of several mappings of one file: as doubtful as the most doubtful of them."""
    begins = offsets_of([len(each.vaddrs) for each in parts])[:-1].tolist()

    def pairs() -> tuple[Int64, Int64]:
        found = [[column + begin for column in each.pairs()] for each, begin in zip(parts, begins, strict=True)]
        callee, caller = (np.concatenate(columns) for columns in zip(*found, strict=True))
        return callee, caller

    columns = ((each.vaddrs, each.inside, each.is_leaf, each.is_call) for each in parts)
    vaddrs, inside, is_leaf, is_call = (np.concatenate(column) for column in zip(*columns, strict=True))
    is_sound, by_pointers = all(each.is_sound for each in parts), any(each.by_pointers for each in parts)
    return Observed(vaddrs, inside, is_leaf, is_call, is_sound, pairs, by_pointers)


class Judgement(NamedTuple):
    """Whether a file is the build that ran: the verdict, and what was counted; `unchecked` says why nothing was."""

    verdict: Verdict
    counts: Sequence[Count] = ()
    unchecked: str = ""

    @property
    def text(self) -> str:
        """The evidence in words."""
        return ", ".join(each.text for each in self.counts) or self.unchecked

    @property
    def agreeing(self) -> int:
        """How many items fit the file."""
        return sum(each.agreeing for each in self.counts)

    @property
    def contradicting(self) -> int:
        """How many do not."""
        return sum(each.contradicting for each in self.counts)

    @property
    def doubt(self) -> float:
        """How much the evidence speaks against the file, in powers of ten."""
        return doubt(self.counts)

    @property
    def strangeness(self) -> float:
        """How unlikely its contradictions are in the right build, in powers of ten."""
        return -sum(each.contradicting * log10(each.kind.value.in_right) for each in self.counts)

    @property
    def support(self) -> float:
        """How much more it speaks for the file than against it."""
        return support(self.counts) - self.doubt


@record
class Judge:
    """Judges binaries; what it decoded of them is kept as long as they are."""

    codes: "WeakKeyDictionary[Binary, DecodedCode]" = field(default_factory=WeakKeyDictionary)

    def judge(self, binary: Binary, observed: Observed, *, claim: int = 0) -> Judgement:
        """Whether `binary` is the build that a mapping was of. `claim` is as in `verdict_of`. Raises ChangedFile if a
        file changed meanwhile."""
        has_code = binary.code is not None  # where there is none, lists of calls are evidence
        counts = self.count(binary, observed) if has_code else [listed_callers(binary, observed)]
        counts = [each for each in counts if each.judged]
        unchecked = "" if counts else NOT_CHECKED + self._lack(binary, observed)
        return Judgement(verdict_of(counts, claim), counts, unchecked)

    def count(self, binary: Binary, observed: Observed) -> list[Count]:
        """What the code of a binary says of what was observed, of each kind of evidence."""
        with binary.reading():
            code = self._code(binary)
            if code is None:
                return []
            code.renew()
            counts = [leaves(code, observed)] if observed.is_leaf.any() else []
            # Of the thousands of mappings of a fleet most have one kind of evidence, or none.
            return [*counts, *sites(code, observed), targets(code, observed)] if observed.is_call.any() else counts

    def _code(self, binary: Binary) -> DecodedCode | None:
        if binary not in self.codes:
            code = DecodedCode.of(binary)
            if code is None:
                return None
            self.codes[binary] = code
        return self.codes[binary]

    def _lack(self, binary: Binary, observed: Observed) -> str:
        """Why nothing was judged."""
        if not (observed.is_leaf.any() or observed.is_call.any()):
            return "neither exact addresses of instructions nor call sites"
        if binary.code is None:
            return "no file with the code"
        return "what was sampled says nothing of its code"


def leaves(code: DecodedCode, observed: Observed) -> Count:
    """How many of the exact addresses begin an instruction."""
    vaddrs, inside = some(observed, observed.is_leaf)
    begins = code.begins_instruction(vaddrs[inside])
    kind = Evidence.LEAVES if code.varies_in_length else Evidence.PLACES
    outside = int((~inside).sum())
    return Count(kind, int((begins >= 0).sum()) + outside, int((begins == 0).sum()) + outside)


def sites(code: DecodedCode, observed: Observed) -> list[Count]:
    """How many of the call sites lie in a call; none where that is not known of the machine."""
    vaddrs, inside = some(observed, observed.is_call)
    is_site = np.where(inside, is_believed(code, observed, vaddrs), observed.is_sound)
    vaddrs, inside = vaddrs[is_site], inside[is_site]
    found = inside_calls(code.image, vaddrs[inside])
    if found is None:
        return []
    kind = Evidence.SITES if observed.is_sound else Evidence.DOUBTFUL_SITES
    return [Count(kind, len(vaddrs), len(vaddrs) - int(found.sum()))]


def is_believed(code: DecodedCode, observed: Observed, vaddrs: UInt64) -> Bool:
    """Which of some call sites are believed to be some. No call is where a function begins: there is where a stack ends
    that was made, as those of goroutines are. On stacks that are not sound, neither what returns to the begin of a
    function is one, nor what is in none: a walk reads any data as frames, and tables of virtual functions."""
    believed: Bool = vaddrs - code.functions(vaddrs)[0] >= np.uint64(1 if code.varies_in_length else 4)
    if not observed.is_sound:
        returns = vaddrs + np.uint64(1)
        believed &= (code.functions(returns)[0] != returns) & (code.places(vaddrs) <= CodePlace.FUNCTION)
    return believed


def targets(code: DecodedCode, observed: Observed) -> Count:
    """How many call sites call directly what most of their next frames are in, by tail calls too; calls through
    pointers and tables of linkage say nothing. Code without call frame information is unwound along frame pointers,
    which skips its caller; a walk along them skips that of a leaf that has not made its frame yet.

    So on other stacks than those unwound by call frame information this speaks for a file and never against it (R375,
    targets of calls).
    """
    kind = Evidence.TARGETS if observed.is_sound else Evidence.DOUBTFUL_TARGETS
    callee, caller = observed.pairs()
    is_known = observed.inside[callee] & observed.inside[caller] & observed.is_call[caller]
    known = np.flatnonzero(is_known & observed.is_call[callee] if observed.by_pointers else is_known)
    known = known[:: len(known) // MAX_ITEMS + 1]
    callees, callers = observed.vaddrs[callee[known]], observed.vaddrs[caller[known]]
    called = code.targets(callers)
    places, (begin, end) = code.places(called), code.functions(called)
    is_judged = is_believed(code, observed, callers) & (called != 0)
    is_judged &= (places != CodePlace.STUB) & (places != CodePlace.UNKNOWN)
    if observed.is_sound:
        is_judged &= code.has_frame(callees)
    balance: dict[int, int] = {}
    is_inside = (begin <= callees) & (callees < end)
    columns = (column[is_judged].tolist() for column in (callers, called, callees, is_inside))
    for caller_vaddr, target, vaddr, leads_there in zip(*columns, strict=True):
        leads = leads_there or code.leads_to(target, vaddr)
        if leads is not None:
            balance[caller_vaddr] = balance.get(caller_vaddr, 0) + (1 if leads else -1)
    return Count(kind, len(balance), sum(each < 0 for each in balance.values()))


def listed_callers(binary: Binary, observed: Observed) -> Count:
    """How many callers call what is next to them on a stack of theirs, by the debug information of a binary without
    code (R370, builds by their callers).

    That one calls another function than the leaf speaks against no binary: code that has not made its frame yet lacks
    its caller. A caller agrees if it calls the next function of the mapping on one of its stacks, or one that leads to
    it by tail calls. One whose function lists all calls and has none there does not agree, nor one that calls another
    function, unless that is a leaf on every stack. What calls a function whose name or tail calls are not known is not
    judged.
    """
    callee, caller = observed.pairs()
    known = np.flatnonzero(observed.inside[callee] & observed.inside[caller])
    known = known[:: len(known) // MAX_PAIRS + 1]
    if not len(known):
        return Count(Evidence.LISTED, 0, 0)
    from symbolize.evidence.stacks import PairReader, PairVerdict, StackPairs

    count = len(observed.vaddrs)
    there = without_tag(binary.images[0], observed.vaddrs + np.uint64(binary.shift))
    rows = np.flatnonzero(observed.inside)
    pairs = StackPairs(callee[known], caller[known], np.zeros(0, np.int64))
    reader = PairReader(pairs, [(binary, rows, there[rows])], count, believes_all=True)
    verdicts = reader.verdicts
    agrees = (verdicts == PairVerdict.CONFIRMED) | (verdicts == PairVerdict.EXPLAINED)
    counts = (observed.is_call[callee[known]] | reader.has_no_call) & ~reader.may_be_unlisted
    agreeing = marked(caller[known], count, agrees)
    judged = agreeing | marked(caller[known], count, (verdicts == PairVerdict.CONTRADICTED) & counts)
    return Count(Evidence.LISTED, int(judged.sum()), int((judged & ~agreeing).sum()))


def some(observed: Observed, chosen: Bool) -> tuple[UInt64, Bool]:
    """The vaddrs that are `chosen`, each once, and which of them the file has; of very many an evenly spaced part."""
    rows = np.flatnonzero(chosen)
    there = distinct(observed.vaddrs[rows[observed.inside[rows]]])
    outside = rows[~observed.inside[rows]]
    vaddrs = np.concatenate((there, observed.vaddrs[outside]))
    inside = np.arange(len(vaddrs)) < len(there)
    step = len(vaddrs) // MAX_ITEMS + 1
    return vaddrs[::step], inside[::step]
