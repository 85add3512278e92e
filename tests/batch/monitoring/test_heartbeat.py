"""R406: signs of life of a batch."""

import json
import os
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from symbolize.batch.monitoring import heartbeat
from symbolize.batch.monitoring.heartbeat import HANGS_AFTER, Heartbeat, Pulse
from symbolize.batch.monitoring.logs import JsonLog
from symbolize.batch.monitoring.metrics import Metrics
from symbolize.batch.monitoring.metrics_export import MetricsServer
from symbolize.cli.batch_progress import BatchProgress
from tests.support import batch_events as events


def test_nothing_finishes() -> None:
    """It is reported each time that nothing has finished for so long while a pass runs, and at no other time."""
    now = 0.0
    said: list[tuple[str, float, int, int]] = []
    with Heartbeat(lambda *values: said.append(values), 60.0, lambda: now) as seen:

        def at(seconds: float) -> int:
            nonlocal now
            now = seconds
            seen.check()
            return len(said)

        assert at(1000) == 0
        seen.entered("scan", 7)
        assert (at(1059), at(1060), at(1061), at(1119), at(1120)) == (0, 1, 1, 1, 2)
        seen.handled(events.item(), events.done())
        assert (at(1179), at(1180)) == (2, 3)
        seen.rested()
        assert at(5000) == 3
    assert said == [("scan", 60.0, 0, 7), ("scan", 120.0, 0, 7), ("scan", 60.0, 1, 7)]


def test_its_thread() -> None:
    """It reports by itself, and ends when it is closed."""
    told = threading.Event()
    with Heartbeat(lambda *values: told.set(), 0.01) as seen:
        seen.entered("decode", 1)
        assert told.wait(60)
    assert not seen._thread.is_alive()


def test_where_it_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a line, in the log and in the metrics, until something finishes."""
    metrics = Metrics()
    with JsonLog(str(tmp_path / "log"), print) as log, BatchProgress(is_terminal=False) as progress:
        for each in (metrics, log, progress):
            each.entered("scan", 9)
            each.stalled("scan", 61.5, 2, 9)
    assert "symbolize: scan: nothing finished for 1:02, 2 of 9 inputs done\n" in capsys.readouterr().err
    line = json.loads((tmp_path / "log").read_text().splitlines()[1])
    del line["time"]
    assert line == {"event": "stalled", "pass": "scan", "seconds": 61.5, "finished": 2, "total": 9}
    assert b"symbolize_stalled 1.0\n" in metrics.render()
    metrics.handled(events.item(), events.done())
    assert b"symbolize_stalled 0.0\n" in metrics.render()


def test_health() -> None:
    """503 once the driver has shown no sign of life for minutes; the metrics are served all the same."""
    now = 0.0
    pulse = Pulse(lambda: now)
    server = MetricsServer(Metrics(), 0, pulse=pulse)
    url = server.url.replace("/metrics", "/healthz")
    try:
        now = HANGS_AFTER
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert (answer.status, answer.read()) == (200, b"ok\n")
        now = HANGS_AFTER + 1
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(url, timeout=60)
        with urllib.request.urlopen(server.url, timeout=60) as answer:
            assert b"symbolize_up 1.0" in answer.read()
        pulse.beat()
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.status == 200
    finally:
        server.close()


def test_a_log_that_is_renamed(tmp_path: Path) -> None:
    """What follows goes to a new file; where there can be none, to the old one."""
    path, old = tmp_path / "folder" / "log", tmp_path / "log.1"
    path.parent.mkdir()
    said: list[str] = []
    with JsonLog(str(path), said.append) as log:
        log.problem("one", "")
        path.rename(old)
        log.problem("two", "")
        log.reopen()
        log.problem("three", "")
        path.rename(tmp_path / "log.2")
        path.parent.rmdir()
        log.reopen()
        log.problem("four", "")
        assert not os.get_inheritable(log._file)
    log.reopen()  # it is closed, and stays so

    def places(file: Path) -> list[str]:
        return [json.loads(line).get("where", "") for line in file.read_text().splitlines()]

    assert places(old) == ["one", "two"]
    assert places(tmp_path / "log.2") == ["three", "four", ""]
    assert len(said) == 1 and "cannot be opened again" in said[0]


def test_a_look_and_the_coverage() -> None:
    """When all inputs were listed last, and the mean percentage of the profiles that were written."""
    now = 10.0
    metrics = Metrics(clock=lambda: now)
    assert b"symbolize_last_look_time_seconds 10.0\n" in metrics.render()
    now = 70.0
    metrics.listed()
    assert b"symbolize_last_look_time_seconds 70.0\n" in metrics.render()
    metrics.entered("scan", 2)
    half = events.coverage(events.mapping(misses=[("not-found", 5, 50.0)]))
    metrics.handled(events.item(1), events.done(1, half))
    metrics.handled(events.item(2), events.done(2))
    assert b"symbolize_coverage_percent 75.0\n" in metrics.render()


def test_intervals() -> None:
    """A walk of many folders gives no sign of life, so that the time is long."""
    assert heartbeat.EVERY == 60
    assert HANGS_AFTER >= 300
