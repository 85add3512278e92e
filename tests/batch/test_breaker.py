"""R403: stores of inputs that do not answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch import job as breakers
from symbolize.batch import tasks
from symbolize.batch.job import FAILURES_IN_A_ROW, STORE_PAUSE, Batch, Breaker, store_of
from symbolize.batch.manifest import Manifest, State
from symbolize.storage.inputs import Input
from symbolize.storage.urls import Unreachable
from tests.support.batch_engines import DirectEngine, Recorder, plan
from tests.support.batch_runs import LEDGER


def test_states() -> None:
    """A store is paused after so many failures in a row, then one input is tried: with an answer all follow."""
    now, problems = 0.0, []
    breaker = Breaker(lambda where, text: problems.append(where), lambda: now)
    one, other = "s3://one/x", "s3://other/x"
    for _ in range(FAILURES_IN_A_ROW - 1):
        breaker.record(one, False)
    breaker.record(one, True)
    for _ in range(FAILURES_IN_A_ROW - 1):
        breaker.record(one, False)
    assert breaker.admits(one) and not breaker.is_down
    breaker.record(one, False)
    assert problems == ["s3://one"]
    assert (breaker.admits(one), breaker.is_paused(one)) == (False, True)
    assert (breaker.admits(other), breaker.is_paused(other)) == (True, False)
    now = STORE_PAUSE
    assert not breaker.is_paused(one)
    assert [breaker.admits(one) for _ in range(3)] == [True, False, False]
    breaker.record(one, False)
    now = 1.5 * STORE_PAUSE
    assert not breaker.admits(one)
    now = 2 * STORE_PAUSE
    assert breaker.admits(one)
    breaker.record(one, True)
    assert [breaker.admits(one) for _ in range(3)] == [True] * 3
    assert problems == ["s3://one"]


@pytest.mark.parametrize(
    ("uri", "store"),
    [
        ("/data/x", ""),
        ("file:///data/x", ""),
        ("S3://bucket/x", "s3://bucket"),
        ("https://user@host:8443/x", "https://host:8443"),
    ],
)
def test_stores(uri: str, store: str) -> None:
    """What counts as one store."""
    assert store_of(uri) == store


def test_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two stores one is down: its inputs wait, and all of the other are done. While watching one input after a
    minute finds out that it is back."""
    now = 0.0
    is_down = True
    tried: list[str] = []
    found = [Input(f"s3://{store}/{n}.prof", f"{store}/{n}", 1, "v") for n in range(40) for store in ("down", "up")]

    @contextmanager
    def opened(uri: str) -> Iterator[str]:
        if is_down and "down" in uri:
            tried.append(uri)
            raise Unreachable(uri, "cannot be read")
        yield str(LEDGER)

    monkeypatch.setattr(tasks, "open_input", opened)
    monkeypatch.setattr("symbolize.batch.job.find_inputs", lambda *_: iter(found))
    monkeypatch.setattr(breakers.time, "monotonic", lambda: now)
    given = plan("", tmp_path / "out", [])
    seen: Any = Recorder()
    with Manifest(given.state + "/manifest.sqlite") as manifest, DirectEngine() as engine:
        batch = Batch(given, engine, manifest, seen)
        batch._breaker = Breaker(seen.problem, lambda: now)
        counts = batch.run()
        assert (counts[State.DONE], counts[State.QUARANTINED], counts[State.NEW]) == (40, 16, 24)
        assert [each for each in seen.problems if each.startswith("s3://down 16 inputs in a row")]
        passes = len(seen.stages)
        batch.work()  # it is paused: there is nothing to do, and no pass begins
        assert (len(tried), len(seen.stages)) == (16, passes)
        now = STORE_PAUSE
        batch.retry_failed()
        batch.work()
        assert len(tried) == 17
        is_down = False
        now = 2 * STORE_PAUSE
        batch.retry_failed()
        batch.work()
        assert batch.work()[State.DONE] == 80
