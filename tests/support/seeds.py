"""How much of what is random a run takes: the plain run a part, the full run all."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings

STEP = 10
FULL_EXAMPLES = 100
"""Examples of a property test, where it does not say how many."""


def seeds(count: int) -> list[Any]:
    """Parameters of a test with the seeds below `count`: every tenth, and the others, left to the full run."""
    every: Sequence[int] = range(count)
    others = [seed for seed in every if seed % STEP]
    return [pytest.param(every[::STEP], id="tenth"), pytest.param(others, id="others", marks=pytest.mark.full)]


def examples(count: int) -> settings:
    """Settings of a property test with so many examples in the full run, and as much less in the plain one as its
    profile says (tests/conftest.py)."""
    return settings(max_examples=max(1, count * settings().max_examples // FULL_EXAMPLES))
