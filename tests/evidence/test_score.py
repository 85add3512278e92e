"""The score of evidence: what refutes a build, and what supports one (R148)."""

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.verdict import Verdict
from symbolize.evidence.judge import CLAIM, Count, Evidence, doubt, support, verdict_of

MINIMA = {
    Evidence.LEAVES: [0, 5, 39, 118, 197, 275, 354, 433],
    Evidence.PLACES: [0, 5, 39, 118, 197, 275, 354, 433],
    Evidence.SITES: [0, 0, 5, 8, 21, 47, 72, 97],
    Evidence.TARGETS: [0, 0, 4, 7, 21, 47, 72, 97],
    Evidence.DOUBTFUL_SITES: [0, 0, 0, 6, 9, 12, 17, 30],
    Evidence.DOUBTFUL_TARGETS: [0] * 8,
    Evidence.LISTED: [0] * 9 + [10, 11, 12, 14, 15, 16],
}
"""Of how many items at most 1, 2, 3... contradictions refute a build, 0 where they never do."""
SUPPORTING = {
    Evidence.LEAVES: (8, 2, 14),
    Evidence.SITES: (4, 1, 6),
    Evidence.DOUBTFUL_SITES: (4, 1, 6),
    Evidence.TARGETS: (3, 1, 5),
    Evidence.DOUBTFUL_TARGETS: (3, 1, 5),
    Evidence.LISTED: (6, 2, 10),
}
"""How many items that all fit support a build: alone, if it has the build id that was read later, and if not."""


@pytest.mark.parametrize("kind", Evidence, ids=lambda kind: kind.name)
def test_what_refutes(kind: Evidence) -> None:
    """The largest number of items of which a few contradictions refute a build."""
    for contradicting, limit in enumerate(MINIMA[kind], 1):
        refuting = [n for n in range(contradicting, 600) if is_refuted(Count(kind, n, contradicting))]
        assert refuting == [*range(contradicting, limit + 1)], contradicting


@pytest.mark.parametrize("kind", Evidence, ids=lambda kind: kind.name)
def test_what_supports(kind: Evidence) -> None:
    """The fewest items, all of which fit, that support a build; nearly all code has functions at most addresses, which
    supports none."""
    for claim, fewest in zip((0, 1, -1), SUPPORTING.get(kind, (1 << 20,) * 3), strict=True):
        assert verdict_of([Count(kind, fewest - 1, 0)], claim) is (Verdict.REFUTED if claim < 0 else Verdict.UNVERIFIED)
        assert kind is Evidence.PLACES or verdict_of([Count(kind, fewest, 0)], claim) is Verdict.SUPPORTED


def test_a_claim_alone() -> None:
    """A build id that was read later supports nothing without evidence; that of another file refutes without."""
    assert verdict_of([], 0) is Verdict.UNVERIFIED
    assert verdict_of([], 1) is Verdict.UNVERIFIED
    assert verdict_of([], -1) is Verdict.REFUTED


def test_evidence_refutes_a_claim() -> None:
    """What speaks clearly against a file does so whatever build id it has."""
    count = Count(Evidence.LEAVES, 162, 112)
    assert [verdict_of([count], claim) for claim in (-1, 0, 1)] == [Verdict.REFUTED] * 3


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ([Count(Evidence.LEAVES, 188, 7)], Verdict.REFUTED),  # most code is the same
        ([Count(Evidence.LEAVES, 103, 0), Count(Evidence.DOUBTFUL_SITES, 3, 1)], Verdict.SUPPORTED),
        ([Count(Evidence.LEAVES, 103, 0), Count(Evidence.DOUBTFUL_SITES, 3, 3)], Verdict.SUPPORTED),
        ([Count(Evidence.LEAVES, 103, 0), Count(Evidence.DOUBTFUL_SITES, 6, 6)], Verdict.UNVERIFIED),
        (
            [Count(Evidence.LEAVES, 1719, 0), Count(Evidence.DOUBTFUL_SITES, 17, 17)],
            Verdict.SUPPORTED,
        ),  # walks find data
        ([Count(Evidence.LEAVES, 8, 1), Count(Evidence.DOUBTFUL_SITES, 5, 5)], Verdict.REFUTED),
        ([Count(Evidence.LEAVES, 3, 1), Count(Evidence.SITES, 4, 2)], Verdict.REFUTED),  # neither of them does alone
        ([Count(Evidence.LEAVES, 3, 1)], Verdict.UNVERIFIED),
        ([Count(Evidence.SITES, 4, 2)], Verdict.UNVERIFIED),
        ([Count(Evidence.LEAVES, 42, 1)], Verdict.UNVERIFIED),  # would be supported if there were less doubt
        ([Count(Evidence.LEAVES, 43, 1)], Verdict.SUPPORTED),
        ([Count(Evidence.LEAVES, 5, 1), Count(Evidence.DOUBTFUL_SITES, 36, 5)], Verdict.UNVERIFIED),
        ([Count(Evidence.DOUBTFUL_TARGETS, 27, 27)], Verdict.UNVERIFIED),  # leaf functions without frames
        ([Count(Evidence.LEAVES, 4, 0), Count(Evidence.DOUBTFUL_TARGETS, 2, 0)], Verdict.SUPPORTED),
    ],
    ids=lambda each: "",
)
def test_kinds_together(counts: Sequence[Count], verdict: Verdict) -> None:
    """All kinds count together, and one alone may refute, unless its items are doubtful."""
    assert verdict_of(counts) is verdict


def test_one_kind_is_not_outvoted() -> None:
    """However many of one kind fit, contradictions of another one refute: code that is shared fits everywhere."""
    refuting = Count(Evidence.LEAVES, 30, 5)
    assert doubt([refuting, Count(Evidence.SITES, 1000, 0)]) >= 4


counts = st.lists(
    st.builds(
        lambda kind, agreeing, contradicting: Count(kind, agreeing + contradicting, contradicting),
        st.sampled_from(Evidence),
        st.integers(0, 300),
        st.integers(0, 300),
    ),
    max_size=4,
)
claims = st.sampled_from((-1, 0, 1))


@given(counts, claims)
def test_order_says_nothing(given: list[Count], claim: int) -> None:
    """The order of the kinds changes no score and no verdict."""
    for order in permutations(given):
        assert doubt(order) == pytest.approx(doubt(given))
        assert support(order) == pytest.approx(support(given))


@given(counts, claims, st.sampled_from(Evidence))
def test_more_that_fits(given: list[Count], claim: int, kind: Evidence) -> None:
    """An item that fits never makes a verdict worse, and a contradiction never makes it better."""
    before = verdict_of(given, claim)
    assert verdict_of([*given, Count(kind, 1, 0)], claim) >= before
    assert verdict_of(more(given, kind, 1, 0), claim) >= before
    assert verdict_of(more(given, kind, 1, 1), claim) <= before
    assert doubt(more(given, kind, 1, 0)) <= doubt(given) + 1e-9
    assert doubt(more(given, kind, 1, 1)) >= doubt(given) - 1e-9


@given(counts)
def test_claims_are_ordered(given: list[Count]) -> None:
    """The build id that was read later speaks for a file, another one against it."""
    assert verdict_of(given, -1) <= verdict_of(given, 0) <= verdict_of(given, 1)


@given(counts)
def test_a_supported_build_is_hardly_doubted(given: list[Count]) -> None:
    """What supports is at least ten thousand to one, that much less with the build id, and never beside real doubt."""
    for claim in (0, 1):
        if verdict_of(given, claim) is Verdict.SUPPORTED:
            assert support(given) + claim * CLAIM >= 4 and doubt(given) < 1


def is_refuted(count: Count) -> bool:
    """Whether so many of a kind refute a build."""
    return verdict_of([count]) is Verdict.REFUTED


def more(given: Sequence[Count], kind: Evidence, judged: int, contradicting: int) -> list[Count]:
    """The counts with more items of a kind."""
    before = next((each for each in given if each.kind is kind), Count(kind, 0, 0))
    others = [*given]
    if before in others:
        others.remove(before)
    return [*others, Count(kind, before.judged + judged, before.contradicting + contradicting)]
