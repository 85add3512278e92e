"""The judge of builds: what it counts of a file, and its verdict."""

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from symbolize.core.arrays import Bool, Int64, UInt64
from symbolize.core.verdict import Verdict
from symbolize.evidence import judge
from symbolize.evidence.code import CodePlace
from symbolize.evidence.judge import MAX_ITEMS, Count, Evidence, Judge, Judgement, Observed, joined, targets
from symbolize.symbols import Binary
from tests.support.elf_writer import AARCH64, RISCV
from tests.support.made_builds import BEGIN, NAMES, SIZE, binary, leaf, program, site


def seen(
    leaves: Iterable[int] = (),
    stacks: Iterable[Sequence[int]] = (),
    outside: Sequence[int] = (),
    *,
    is_sound: bool = False,
) -> Observed:
    """What was seen: leaves, and stacks of call sites, the first called function first; some are not in the file."""
    stacks = [*stacks]
    vaddrs = [*leaves, *(vaddr for stack in stacks for vaddr in stack)]
    is_leaf = np.arange(len(vaddrs)) < len(vaddrs) - sum(map(len, stacks))
    at = len(vaddrs) - sum(map(len, stacks))
    callee, caller = [], []
    for stack in stacks:
        callee += range(at, at + len(stack) - 1)
        caller += range(at + 1, at + len(stack))
        at += len(stack)
    pairs = np.array(callee, np.int64), np.array(caller, np.int64)
    inside = np.array([vaddr not in outside for vaddr in vaddrs], np.bool_)
    return Observed(np.array(vaddrs, np.uint64), inside, is_leaf, ~is_leaf, is_sound, lambda: pairs)


def judged(build: Binary, observed: Observed, claim: int = 0) -> Judgement:
    """What a new judge says."""
    return Judge().judge(build, observed, claim=claim)


RIGHT, WRONG, NEAR = (binary(program(late=late)) for late in (0, 64, 8))


class TestLeaves:
    """Exact addresses of instructions."""

    @pytest.mark.parametrize(
        ("count", "right", "wrong"),
        [
            (0, Verdict.UNVERIFIED, Verdict.UNVERIFIED),
            (1, Verdict.UNVERIFIED, Verdict.UNVERIFIED),
            (2, Verdict.UNVERIFIED, Verdict.REFUTED),
            (7, Verdict.UNVERIFIED, Verdict.REFUTED),
            (8, Verdict.SUPPORTED, Verdict.REFUTED),
            (64, Verdict.SUPPORTED, Verdict.REFUTED),
        ],
    )
    def test_how_many(self, count: int, right: Verdict, wrong: Verdict) -> None:
        """Two refute a build in which nothing is where it was, and eight support the one that ran."""
        observed = seen(map(leaf, range(count)))
        assert (judged(RIGHT, observed).verdict, judged(WRONG, observed).verdict) == (right, wrong)

    def test_a_build_that_shares_most_of_its_code(self) -> None:
        """It fits what is shared, and is refuted by a few that are not."""
        for count, verdict in ((57, Verdict.SUPPORTED), (58, Verdict.UNVERIFIED), (59, Verdict.UNVERIFIED)):
            assert judged(NEAR, seen(map(leaf, range(count)))).verdict is verdict
        found = judged(NEAR, seen(map(leaf, range(60))))
        assert (found.verdict, found.text) == (Verdict.REFUTED, "56 of 60 sampled addresses begin an instruction")

    def test_each_address_counts_once(self) -> None:
        """However often it was sampled."""
        found = judged(RIGHT, seen([leaf(3)] * 20))
        assert found.counts == [Count(Evidence.LEAVES, 1, 0)]
        assert found.verdict is Verdict.UNVERIFIED

    def test_addresses_that_the_file_does_not_have(self) -> None:
        """They contradict it."""
        leaves = [leaf(number) for number in range(12)]
        found = judged(RIGHT, seen(leaves, outside=leaves[:5]))
        assert found.counts == [Count(Evidence.LEAVES, 12, 5)]
        assert found.verdict is Verdict.REFUTED

    def test_aarch64(self) -> None:
        """Where all instructions have one length, leaves support nothing; outside of all functions they contradict."""
        build = binary(program(machine=AARCH64))
        found = judged(build, seen(range(BEGIN, BEGIN + 64 * SIZE, 4)))
        assert (found.verdict, found.text) == (Verdict.UNVERIFIED, "1280 of 1280 sampled addresses are in functions")
        beyond = range(BEGIN + 63 * SIZE, BEGIN + 65 * SIZE, 4)
        assert judged(build, seen(beyond)).verdict is Verdict.REFUTED


class TestCalls:
    """Call sites, and where the calls lead."""

    def test_right_and_wrong(self) -> None:
        """A stack supports the build that ran and refutes another one, whoever found its callers."""
        for is_sound in (False, True):
            observed = seen(stacks=[[*map(site, range(8))]], is_sound=is_sound)
            right, wrong = judged(binary(program(has_frames=True)), observed), judged(WRONG, observed)
            assert (right.verdict, wrong.verdict) == (Verdict.SUPPORTED, Verdict.REFUTED)
            assert right.text == "8 of 8 call sites lie in a call, 7 of 7 calls lead to the next frame"
            assert wrong.text == "0 of 8 call sites lie in a call"

    def test_sound_stacks_weigh_more(self) -> None:
        """Three call sites of sound stacks refute, of others only four."""
        refuted = {
            is_sound: [
                judged(WRONG, seen(stacks=[[site(each)] for each in range(n)], is_sound=is_sound)).verdict
                is Verdict.REFUTED
                for n in range(1, 7)
            ]
            for is_sound in (True, False)
        }
        assert refuted == {True: [False] * 2 + [True] * 4, False: [False] * 3 + [True] * 3}

    def test_begins_of_functions(self) -> None:
        """What returns to where a function begins is no call site where walks take anything for frames; on sound
        stacks it is one, which nothing before it called."""
        entries = [[BEGIN + SIZE * number - 1] for number in range(1, 9)]
        assert judged(RIGHT, seen(stacks=entries)).counts == []
        assert judged(RIGHT, seen(stacks=[[site(9), *each] for each in entries])).counts[1:] == []
        found = judged(RIGHT, seen(stacks=entries, is_sound=True))
        assert found.counts == [Count(Evidence.SITES, 8, 8)]

    def test_where_calls_lead(self) -> None:
        """To the function that the next frame is in; of a call with several next frames most decide."""
        stacks = [[site(1), site(2)], [site(4), site(2)], [site(5), site(2)]]
        assert target_count(RIGHT, stacks) == Count(Evidence.DOUBTFUL_TARGETS, 1, 1)
        assert target_count(RIGHT, stacks[:2]) == Count(Evidence.DOUBTFUL_TARGETS, 1, 0)
        assert target_count(RIGHT, [[site(4), site(2)], [site(5), site(3)]]) == Count(Evidence.DOUBTFUL_TARGETS, 2, 2)

    def test_targets_alone_refute_nothing_on_other_stacks(self) -> None:
        """Code that has not made its frame yet lacks its caller, so that the next one seems to call it."""
        stacks = [[site(number), site(number + 20)] for number in range(20)]
        build = binary(program(has_frames=True))
        assert judged(build, seen(stacks=stacks)).verdict is not Verdict.REFUTED
        assert judged(build, seen(stacks=stacks, is_sound=True)).verdict is Verdict.REFUTED

    def test_targets_of_what_has_no_call_frame_information(self) -> None:
        """It was unwound along frame pointers, which skips callers, whatever the stacks were else."""
        stacks = [[site(number), site(number + 20)] for number in range(20)]
        assert judged(RIGHT, seen(stacks=stacks, is_sound=True)).counts == [Count(Evidence.SITES, 40, 0)]

    def test_calls_of_what_the_file_does_not_have(self) -> None:
        """Sites in no file contradict it, unless a walk may have invented them; where they would lead is not asked."""
        stack = [*map(site, range(6))]
        found = judged(RIGHT, seen(stacks=[stack], outside=stack[3:]))
        assert found.counts == [Count(Evidence.DOUBTFUL_SITES, 3, 0), Count(Evidence.DOUBTFUL_TARGETS, 2, 0)]
        sound = judged(RIGHT, seen(stacks=[stack], outside=stack[3:], is_sound=True))
        assert sound.counts[0] == Count(Evidence.SITES, 6, 3)

    def test_aarch64(self) -> None:
        """Call sites refute there too."""
        found = judged(binary(program(machine=AARCH64)), seen(stacks=[[*map(site, range(6))]]))
        assert (found.verdict, found.text) == (Verdict.REFUTED, "0 of 6 call sites lie in a call")


def target_count(build: Binary, stacks: Iterable[Sequence[int]]) -> Count:
    """What is counted of where calls lead."""
    (found,) = (each for each in judged(build, seen(stacks=stacks)).counts if "lead to" in each.text)
    return found


class TestWhatCannotBeJudged:
    """Files and profiles that say nothing."""

    @pytest.mark.parametrize(
        ("build", "observed", "why"),
        [
            (RIGHT, seen(), "neither exact addresses of instructions nor call sites"),
            (binary(program(has_code=False)), seen([leaf(1)]), "no file with the code"),
            (
                binary(program(machine=RISCV)),
                seen(stacks=[[site(0), site(1)]]),
                "what was sampled says nothing of its code",
            ),
        ],
    )
    def test_why(self, build: Binary, observed: Observed, why: str) -> None:
        """The reason is told."""
        found = judged(build, observed)
        assert (found.verdict, found.text) == (Verdict.UNVERIFIED, f"not checked: {why}")
        assert (found.agreeing, found.contradicting, found.support) == (0, 0, 0)

    def test_without_code(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where there is no code the lists of calls count."""
        monkeypatch.setattr(judge, "listed_callers", lambda *_: Count(Evidence.LISTED, 12, 0))
        found = judged(binary(program(has_code=False)), seen([leaf(1)]))
        assert (found.verdict, found.text) == (
            Verdict.SUPPORTED,
            "12 of 12 callers call the next function on their stacks",
        )


class TestClaims:
    """Build ids that were read later."""

    def test_with_the_id(self) -> None:
        """Little evidence supports a file that has it, and what refutes does so all the same."""
        two = seen(map(leaf, range(2)))
        assert judged(RIGHT, two, claim=1).verdict is Verdict.SUPPORTED
        assert judged(WRONG, two, claim=1).verdict is Verdict.REFUTED
        assert judged(RIGHT, seen(), claim=1).verdict is Verdict.UNVERIFIED

    def test_with_another_id(self) -> None:
        """Only a file for which much speaks may be used although its id is another one."""
        found = [judged(RIGHT, seen(map(leaf, range(n))), claim=-1).verdict for n in (0, 8, 13, 14, 64)]
        assert found == [Verdict.REFUTED] * 3 + [Verdict.SUPPORTED] * 2


class TestJoined:
    """Several mappings of one file."""

    def test_they_count_together(self) -> None:
        """Each of them says too little alone."""
        parts = [seen([leaf(2 * each), leaf(2 * each + 1)]) for each in range(4)]
        assert {judged(RIGHT, each).verdict for each in parts} == {Verdict.UNVERIFIED}
        assert judged(RIGHT, joined(parts)).verdict is Verdict.SUPPORTED

    def test_their_pairs(self) -> None:
        """Each keeps its own calls."""
        parts = [seen([leaf(2 * each), leaf(2 * each + 1)], [[site(each), site(each + 1)]]) for each in range(4)]
        found = judged(RIGHT, joined(parts))
        assert found.counts == [
            Count(Evidence.LEAVES, 8, 0),
            Count(Evidence.DOUBTFUL_SITES, 5, 0),
            Count(Evidence.DOUBTFUL_TARGETS, 4, 0),
        ]

    def test_what_they_share_counts_once(self) -> None:
        """Two processes that were at one place are no more evidence than one."""
        part = seen(map(leaf, range(4)), [[site(0), site(1)]])
        assert judged(RIGHT, joined([part] * 3)).counts == judged(RIGHT, part).counts

    def test_soundness(self) -> None:
        """Stacks are sound together if each of them is."""
        sound, other = (seen([leaf(1)], is_sound=each) for each in (True, False))
        assert [joined(parts).is_sound for parts in ([sound, sound], [sound, other])] == [True, False]


def test_of_many_items_the_same_are_looked_at() -> None:
    """However many addresses of a large profile lie in each of several builds, the counts compare."""
    vaddrs = np.arange(BEGIN, BEGIN + 3 * MAX_ITEMS, dtype=np.uint64)
    every = np.ones(len(vaddrs), np.bool_)
    counts = []
    for lost in (0, 1):
        inside = every.copy()
        inside[: lost * 500] = False
        counts.append(judged(binary(program(NAMES[:4])), Observed(vaddrs, inside, every, every)).counts[0])
    assert MAX_ITEMS / 2 < counts[0].judged <= MAX_ITEMS
    assert all(each.judged <= MAX_ITEMS for each in counts)


class FakeCode:
    """Functions of 0x100 bytes; calls lead to 0x9000 and on, by the address of the call."""

    varies_in_length = True

    def functions(self, vaddrs: UInt64) -> tuple[UInt64, UInt64]:
        begin = vaddrs & ~np.uint64(0xFF)
        return begin, begin + np.uint64(0x100)

    def places(self, vaddrs: UInt64) -> Int64:
        kinds = {0x9200: CodePlace.STUB, 0x9300: CodePlace.UNKNOWN, 0x7010: CodePlace.PADDING}
        return np.array([kinds.get(each, CodePlace.FUNCTION) for each in vaddrs.tolist()], np.int64)

    def targets(self, vaddrs: UInt64) -> UInt64:
        other = {0x2010: 0x9200, 0x3010: 0x9300, 0x4010: 0}
        return np.array([other.get(each, 0x9100) for each in vaddrs.tolist()], np.uint64)

    def has_frame(self, vaddrs: UInt64) -> Bool:
        result: Bool = vaddrs != np.uint64(0x9110)
        return result

    def leads_to(self, target: int, vaddr: int) -> bool | None:
        return None if vaddr == 0x9F00 else vaddr & ~0xFF == target


SEEN: dict[str, tuple[Sequence[tuple[int, int]], tuple[int, int]]] = {
    "the right function": ([(0x1010, 0x9120)], (1, 0)),
    "another one": ([(0x1010, 0x9520)], (1, 1)),
    "as often the one as the other": ([(0x1010, 0x9120), (0x1010, 0x9520)], (1, 0)),
    "more often another one": ([(0x1010, 0x9120), (0x1010, 0x9520), (0x1010, 0x9520)], (1, 1)),
    "more often the right one": ([(0x1010, 0x9520), (0x1010, 0x9120), (0x1010, 0x9120)], (1, 0)),
    "two calls": ([(0x1010, 0x9120), (0x1020, 0x9520)], (2, 1)),
    "through a stub": ([(0x2010, 0x9520)], (0, 0)),
    "to what is not known": ([(0x3010, 0x9520)], (0, 0)),
    "by a pointer": ([(0x4010, 0x9520)], (0, 0)),
    "where nobody knows where it leads": ([(0x1010, 0x9F00)], (0, 0)),
    "the begin of a function": ([(0x1000, 0x9520)], (0, 0)),
    "what returns to one": ([(0x10FF, 0x9520)], (0, 0)),
    "a caller between functions": ([(0x7010, 0x9520)], (0, 0)),
    "no call site": ([(0x6010, 0x9520)], (0, 0)),
    "outside of the file": ([(0x5010, 0x9520), (0x1010, 0x9820)], (0, 0)),
}


@pytest.mark.parametrize("case", SEEN)
def test_which_calls_are_judged(case: str) -> None:
    """Direct calls of call sites that are believed, by where most of their next frames are."""
    seen, expected = SEEN[case]
    vaddrs = np.array([vaddr for pair in seen for vaddr in pair[::-1]], np.uint64)
    inside = ~np.isin(vaddrs, np.array([0x5010, 0x9820], np.uint64))
    is_call = vaddrs != np.uint64(0x6010)
    callee = np.arange(0, len(vaddrs), 2)
    observed = Observed(vaddrs, inside, np.zeros(len(vaddrs), np.bool_), is_call, False, lambda: (callee, callee + 1))
    count = targets(FakeCode(), observed)  # type: ignore[arg-type]
    assert (count.kind, count.judged, count.contradicting) == (Evidence.DOUBTFUL_TARGETS, *expected)


def test_calls_of_sound_stacks() -> None:
    """What has no call frame information skips its caller there; what returns to the begin of a function may be one."""
    for caller, callee, expected in ((0x1010, 0x9110, 0), (0x1010, 0x9120, 1), (0x10FF, 0x9120, 1)):
        vaddrs, yes = np.array([callee, caller], np.uint64), np.ones(2, np.bool_)
        observed = Observed(vaddrs, yes, ~yes, yes, True, lambda: (np.array([0]), np.array([1])))
        assert targets(FakeCode(), observed).judged == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("first", [False, True])
def test_what_is_joined_is_as_doubtful_as_its_parts(first: bool) -> None:
    """Stacks of one part that were walked along frame pointers, or not by call frame information, make all so."""
    nothing, none = np.zeros(0, np.uint64), np.zeros(0, np.bool_)
    empty = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    parts = [Observed(nothing, none, none, none, each, lambda: empty, not each) for each in (first, not first)]
    whole = joined(parts)
    assert (whole.is_sound, whole.by_pointers) == (False, True)
