"""Inputs of a batch."""

from pathlib import Path

import pytest

from tests.support.batch_runs import LEDGER, SPECTRA, copies


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """A folder with three profiles of two programs."""
    copies(LEDGER, tmp_path / "in", ["a.prof", "b.prof"])
    copies(SPECTRA, tmp_path / "in", ["c.pb.gz"])
    return tmp_path / "in"
