"""A small part of what `tools.fuzz.run` does, the same inputs each time."""

from collections.abc import Sequence

import pytest

from symbolize.core.cursor import COMPILED
from tests.support.seeds import seeds
from tools.fuzz.loaders import TARGETS as LOADERS
from tools.fuzz.targets import TARGETS

COUNTS = {"files": 200, "names": 20, "tables": 300, "profiles": 60, "merged": 100, "otlp": 300, "index": 60}
COUNTS |= {"firefox": 300, "manifest": 60, "texts": 300, "commands": 60, "served": 20, "stacks": 1500}
COUNTS |= dict.fromkeys(LOADERS, 1000)
"""Inputs of each target."""
INTERPRETED = 5
"""Inputs of a part where nothing is compiled."""


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        pytest.param(name, *part.values, id=f"{name}-{part.id}", marks=part.marks)
        for name in TARGETS
        for part in seeds(COUNTS[name])
    ],
)
def test_slice(name: str, numbers: Sequence[int]) -> None:
    """Damaged input raises nothing but what says that it is damaged (rules R69, R77)."""
    for seed in numbers if COMPILED else numbers[:INTERPRETED]:
        TARGETS[name](seed)
