"""The version of results: outputs that change without it would stay as they are in every fleet."""

from pathlib import Path

import pytest

from symbolize.batch import job
from tests.support.batch_engines import plan
from tools.results import needs_version, recorded, results


@pytest.mark.process
def test_changed_outputs_have_another_version() -> None:
    """Outputs of the fixtures are those recorded with the version. If this fails and the change is meant, raise RESULTS
    in symbolize/batch/job.py and run `python -m tools.results`."""
    before, now = recorded(), results()
    assert len(now["outputs"]) > 30
    assert not needs_version(before, now)
    assert now == before, "record them: python -m tools.results"


@pytest.mark.parametrize(
    ("version", "outputs", "expected"),
    [
        (1, {"a": "1", "b": "2"}, False),
        (1, {"a": "1"}, False),
        (1, {"a": "1", "b": "2", "c": "3"}, False),
        (1, {"a": "1", "b": "3"}, True),
        (2, {"a": "1", "b": "3"}, False),
    ],
)
def test_when_a_version_is_needed(version: int, outputs: dict[str, str], expected: bool) -> None:
    """Only where an output that was recorded differs."""
    before = {"version": 1, "outputs": {"a": "1", "b": "2"}}
    assert needs_version(before, {"version": version, "outputs": outputs}) == expected


def test_options_that_are_added_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an output depends on are the options that were given, and not how many there are or the release."""
    options = {"demangle": "full", "nearest_line": True}
    given = plan(tmp_path, tmp_path / "out", [], **options).options
    assert plan(tmp_path, tmp_path / "out", [], **options, tail_calls=False, accept="unverified").options == given
    assert plan(tmp_path, tmp_path / "out", [], **options, tail_calls=True).options != given
    monkeypatch.setattr("symbolize.__version__", "99.0")
    assert plan(tmp_path, tmp_path / "out", [], **options).options == given
    monkeypatch.setattr(job, "RESULTS", job.RESULTS + 1)
    assert plan(tmp_path, tmp_path / "out", [], **options).options != given
