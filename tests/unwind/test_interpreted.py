"""The compiled modules and their sources, run as Python, unwind to the same stacks."""

from pathlib import Path

import pytest

from tests.support import dump_stacks
from tests.support.interpreted import run
from tests.support.needs import needs_compiled

pytestmark = [pytest.mark.process, needs_compiled]

SEEDS = 150


@pytest.mark.full
def test_compiled_equals_interpreted(tmp_path: Path) -> None:
    """The frames and warnings of sound and damaged programs and stacks are the same in both modes."""
    printed = run(tmp_path, Path(dump_stacks.__file__), str(SEEDS)).splitlines()
    assert printed[0] == "False"
    assert printed[1:] == [f"{dump_stacks.digest(seed)} {seed}" for seed in range(SEEDS)]
