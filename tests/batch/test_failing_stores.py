"""Stores that fail, in a batch: exit codes, and what is told."""

from pathlib import Path

import pytest

from symbolize.batch import Manifest, State
from symbolize.cli import main
from tests.batch.conftest import Bucket, impatient
from tests.support.batch_engines import DirectEngine, plan, run_plan
from tests.support.fixture_files import BINARIES, FIXTURES

PERF = FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz"


def test_a_store_that_cannot_be_listed_is_a_failure(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, with which the same command goes on, and not 4 as for names that stand for nothing. Once the store
    answers, the batch is done."""
    bucket.put("in/one.pb.gz", data=PERF.read_bytes())
    arguments = [f"{bucket.url}/in/", "--out", str(tmp_path / "out"), "--no-cache", "-j", "1"]
    with monkeypatch.context() as down:
        impatient(down)
        down.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        assert main(["batch", *arguments]) == 1
    assert f"symbolize: {bucket.url}/in: cannot be read: " in capsys.readouterr().err
    bucket.system.clear_instance_cache()
    assert main(["batch", "-q", f"{bucket.url}/none/", *arguments[1:]]) == 4
    counts, seen = run_plan(plan(arguments[0], tmp_path / "out", []))
    assert (counts[State.DONE], seen.problems) == (1, [])


def test_a_cache_that_fails_is_told_once(bucket: Bucket, tmp_path: Path) -> None:
    """It costs time, not answers, and one line for the batch."""
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.pb.gz").write_bytes(PERF.read_bytes())
    given = plan(tmp_path / "in", tmp_path / "out", [BINARIES / "gcc-pie"], cache="s3://no-such-bucket/tables")
    counts, seen = run_plan(given, DirectEngine())
    assert counts[State.DONE] == 3
    assert len([problem for problem in seen.problems if problem.startswith("--cache ")]) == 1


def test_a_store_that_is_down_is_not_asked_for_each_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After 16 inputs in a row the others wait for the next run, which does all."""
    from symbolize.batch import tasks
    from symbolize.batch.storage.urls import Unreachable

    (tmp_path / "in").mkdir()
    for number in range(30):
        (tmp_path / "in" / f"{number:02}.pb.gz").write_bytes(PERF.read_bytes())
    given = plan(tmp_path / "in", tmp_path / "out", [])

    def down(uri: str) -> object:
        raise Unreachable(uri, "cannot be read: down")

    with monkeypatch.context() as patched:
        patched.setattr(tasks, "open_input", down)
        counts, seen = run_plan(given)
    assert (counts[State.QUARANTINED], counts[State.NEW]) == (16, 14)
    assert [problem for problem in seen.problems if "16 inputs in a row" in problem]
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        assert manifest.count_failed(1) == 16
    assert run_plan(given)[0][State.DONE] == 30
