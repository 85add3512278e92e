"""A batch that watches, as a process: binaries that come later, and signals."""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from symbolize.cli import main
from symbolize.cli.batch import PATIENCE, calling_on_hangup
from tests.support.batch_runs import BINS, SPECTRA, copies, kill_group, outputs, run, start, wait_until
from tests.support.fixture_files import BINARIES
from tests.support.poison import Saboteur

pytestmark = pytest.mark.process

SOON = 60.0
"""Seconds in which a batch ends even on a busy machine, and much less than it waits for a task that hangs."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in an empty folder with a folder of binaries."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()


@contextmanager
def watching(*options: str) -> Iterator[tuple[int, list[int]]]:
    """A batch that watches the folder `in`; its process id, and behind the block its exit code."""
    code: list[int] = []
    batch = start("--watch", "in", "-b", "bin", "--out", "out", "--no-cache", "--interval", "0.2", "-j", "1", *options)
    try:
        yield batch.pid, code
        os.kill(batch.pid, signal.SIGTERM)
        batch.communicate(timeout=SOON)
        code.append(batch.returncode)
    finally:
        kill_group(batch)


@pytest.mark.full
def test_binaries_that_come_later(tmp_path: Path) -> None:
    """They reach profiles that are done, without a restart, with the bytes of a run that had them."""
    copies(SPECTRA, tmp_path / "in", ["a.pb.gz", "b.pb.gz"])
    (tmp_path / "in" / "bad.prof").write_bytes(b"?")
    assert main(["batch", "in", *("-b", str(BINS[1])), "--out", "whole", "--no-cache", "-q", "-j", "1"]) == 4
    assert run("in", "-b", "bin", "--out", "out", "--no-cache", "-j", "1").returncode == 4
    assert outputs(tmp_path / "out") != outputs(tmp_path / "whole")
    with watching() as (_, code):
        shutil.copytree(BINARIES / "gcc-pie", tmp_path / "bin" / "new")
        wait_until(lambda: outputs(tmp_path / "out") == outputs(tmp_path / "whole"))
    assert code == [0]  # the bad file was reported before


@pytest.mark.full
def test_a_task_that_hangs(tmp_path: Path) -> None:
    """SIGTERM ends a batch that watches soon though a task hangs."""
    copies(SPECTRA, tmp_path / "in", ["a.pb.gz"])
    saboteur = Saboteur([], [tmp_path / "in" / "a.pb.gz"])
    saboteur.start()
    try:
        with watching("-q") as (_, code):
            wait_until(lambda: saboteur.held)
            began = time.monotonic()
        assert time.monotonic() - began < SOON
    finally:
        saboteur.stop()
    assert code == [0]
    assert outputs(tmp_path / "out") == {}
    assert PATIENCE < 5


@pytest.mark.full
def test_a_log_that_is_rotated(tmp_path: Path) -> None:
    """SIGHUP opens the log again; what happens later is in the new file."""
    (tmp_path / "in").mkdir()
    log, old = tmp_path / "log", tmp_path / "log.1"
    with watching("--log-json", "log", "-q") as (process, code):
        wait_until(lambda: log.exists() and "began" in log.read_text())
        log.rename(old)
        os.kill(process, signal.SIGHUP)
        wait_until(log.exists)
        copies(SPECTRA, tmp_path / "in", ["a.pb.gz"])
        wait_until(lambda: '"done"' in log.read_text())
    assert code == [0]
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()][-1] == "ended"
    assert '"input"' not in old.read_text()


def test_a_signal_without_a_log() -> None:
    """SIGHUP means what it did where there is no log to open again."""
    before = signal.getsignal(signal.SIGHUP)
    with calling_on_hangup(None):
        assert signal.getsignal(signal.SIGHUP) == before
    calls: list[int] = []
    with calling_on_hangup(lambda: calls.append(1)):
        os.kill(os.getpid(), signal.SIGHUP)
    assert calls == [1]
    assert signal.getsignal(signal.SIGHUP) == before


@pytest.mark.parametrize(("is_out_of_patience", "code"), [(False, 130), (True, 0)])
def test_what_ends_a_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_out_of_patience: bool, code: int
) -> None:
    """A second signal interrupts the batch; where it was asked to stop and took too long, it ends as it would have."""

    def watch(_batch: object, _manifest: object, _interval: float, stop: Any, _report: object) -> None:
        stop.is_out_of_patience = is_out_of_patience
        raise KeyboardInterrupt

    (tmp_path / "in").mkdir()
    monkeypatch.setattr("symbolize.cli.batch.keep_watching", watch)
    assert main(["batch", "--watch", "in", "-b", "bin", "--out", "out", "--no-cache", "-j", "1"]) == code
