"""R247: which of several builds leads the others."""

from collections.abc import Sequence

import pytest

from symbolize.evidence.choice import BuildMatch, Candidate, leading
from symbolize.evidence.judge import Count, Evidence, Judgement, verdict_of


def match(*counts: Count) -> BuildMatch:
    """How a build matches of which this was counted."""
    return BuildMatch(judgement=Judgement(verdict_of(counts), counts))


@pytest.mark.parametrize(
    ("kind", "judged", "contradicting", "is_led"),
    [
        (Evidence.LEAVES, 5, 1, True),
        (Evidence.LEAVES, 500, 1, True),
        (Evidence.PLACES, 500, 1, True),
        (Evidence.SITES, 10, 1, True),
        (Evidence.DOUBTFUL_SITES, 10, 1, False),
        (Evidence.DOUBTFUL_SITES, 10, 2, True),
        (Evidence.LISTED, 30, 2, False),
        (Evidence.LISTED, 30, 5, True),
    ],
)
def test_what_makes_a_build_lead(kind: Evidence, judged: int, contradicting: int, is_led: bool) -> None:
    """What would be rare in the right build, if another one has nothing of that."""
    right, other = match(Count(kind, judged, 0)), match(Count(kind, judged, contradicting))
    led = [each for _, each in leading(named([right, other]))]
    assert led == ([right] if is_led else [right, other])


def test_a_build_of_which_less_is_known() -> None:
    """Contradictions are only compared with those of a build that was looked at as well."""
    known, unknown = match(Count(Evidence.LEAVES, 30, 1)), match()
    assert [each for _, each in leading(named([known, unknown]))] == [known, unknown]


def named(matches: Sequence[BuildMatch]) -> list[tuple[Candidate[None], BuildMatch]]:
    """Matches of candidates that nobody looks at."""
    return [(Candidate("name", None, None), each) for each in matches]  # type: ignore[arg-type]
