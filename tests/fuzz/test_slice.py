"""A small part of what `tools.fuzz.run` does, the same inputs each time."""

import pytest

from symbolize.core.cursor import COMPILED
from tools.fuzz.loaders import TARGETS as LOADERS
from tools.fuzz.targets import TARGETS

COUNTS = {"files": 200, "names": 20, "tables": 300, "profiles": 100, "merged": 100, "otlp": 300, "index": 60}
COUNTS |= {"manifest": 60, "texts": 300, "commands": 60, "served": 20, "stacks": 5000}
COUNTS |= dict.fromkeys(LOADERS, 10_000)
"""Inputs of each target; stacks and loaders take about a minute of processor time together."""
MOST_INTERPRETED = 50
"""Inputs of a target where nothing is compiled."""


@pytest.mark.parametrize("name", TARGETS)
def test_slice(name: str) -> None:
    """Damaged input raises nothing but what says that it is damaged (rules R69, R77)."""
    for seed in range(COUNTS[name] if COMPILED else min(COUNTS[name] // 20, MOST_INTERPRETED)):
        TARGETS[name](seed)
