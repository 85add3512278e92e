"""What is seen of a batch, from its options."""

import argparse
import json
import os
import re
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch.manifest import InputResult, Manifest
from symbolize.cli import main
from symbolize.cli.batch_monitoring import BatchMonitor
from symbolize.cli.console import EXIT_SOME
from symbolize.core.errors import OutputError, UsageError
from symbolize.storage.inputs import Input
from tests.support import batch_events as events
from tests.support.fixture_files import BINARIES, FIXTURES

PROFILE = FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz"


def options(**more: Any) -> argparse.Namespace:
    """The options, as given and else by default."""
    given: dict[str, Any] = {
        "quiet": False,
        "retry_missing": False,
        "watch": [],
        "log_json": None,
        "metrics_file": None,
        "metrics_port": None,
        "metrics_address": "127.0.0.1",
        "report": "text",
        "report_file": None,
    }
    return argparse.Namespace(**given | more)


def run(seen: BatchMonitor, folder: Path, *results: InputResult) -> float:
    """A batch with these results; what `report` gives."""
    with Manifest(str(folder / "manifest.sqlite")) as manifest:
        inputs = [Input(f"/in/{each.number}.prof", str(each.number), 1000, "v") for each in results]
        manifest.add(inputs, "options", retry=False, again=False)
        seen.observer.began(len(results), 0, 0, {})
        seen.observer.entered("scan", len(results))
        for each in results:
            manifest.record([each])
            seen.observer.handled(events.item(each.number), each)
        return seen.report(manifest, str(folder))


HALF = events.coverage(events.mapping(misses=[("not-found", 5, 50.0)]))


@pytest.mark.process
def test_all_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines, log, figures in a file and at a port, list of the quarantine, report in a file: all of one run."""
    log, prom, report = (tmp_path / name for name in ("log.jsonl", "m.prom", "report.json"))
    asked = options(log_json=str(log), metrics_file=str(prom), metrics_port=0, report="json", report_file=str(report))
    with BatchMonitor(asked, "1.2") as seen:
        said = capsys.readouterr().err
        url = re.fullmatch(r"symbolize: metrics at (http://127\.0\.0\.1:\d+/metrics)\n", said)
        assert url
        percent = run(seen, tmp_path / "state", events.done(1, HALF), events.quarantined(2))
        with urllib.request.urlopen(url[1], timeout=10) as answer:
            assert b'symbolize_inputs_total{status="done"} 1.0\n' in answer.read()
    assert percent == 50
    assert b'symbolize_build_info{version="1.2"} 1.0\n' in prom.read_bytes()
    assert b"symbolize_up 0.0\n" in prom.read_bytes()
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()] == [
        "began",
        "pass",
        "input",
        "input",
        "ended",
    ]
    assert json.loads(report.read_text())["inputs"]["done"] == 1
    listed = (tmp_path / "state" / "quarantine.jsonl").read_text().splitlines()
    assert [json.loads(line)["input"] for line in listed] == ["/in/2.prof"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "symbolize: quarantined (unreadable): /in/2.prof: is empty\n" in captured.err
    assert f"listed in {tmp_path}/state/quarantine.jsonl\n" in captured.err


def test_json_goes_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report alone is there; what a person reads is on standard error."""
    with BatchMonitor(options(report="json")) as seen:
        run(seen, tmp_path, events.done(1))
    captured = capsys.readouterr()
    assert json.loads(captured.out)["outputs"]["profiles"] == 1
    assert "inputs: 1 done\n" in captured.err


@pytest.mark.process
def test_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only failures are said, and what is asked for is written."""
    report = tmp_path / "report.txt"
    with BatchMonitor(options(quiet=True, metrics_port=0, report_file=str(report))) as seen:
        run(seen, tmp_path, events.done(1), events.quarantined(2))
    assert capsys.readouterr() == ("", "symbolize: quarantined (unreadable): /in/2.prof: is empty\n")
    assert "inputs: 1 done, 1 quarantined\n" in report.read_text()


@pytest.mark.process
def test_nothing_stays_behind_when_something_cannot_begin(tmp_path: Path) -> None:
    """A log that was begun is ended when the figures have no place to go."""
    log = tmp_path / "log"
    with pytest.raises(OutputError):
        BatchMonitor(options(log_json=str(log), metrics_file=str(tmp_path / "no" / "m")))
    assert json.loads(log.read_text())["event"] == "ended"
    with pytest.raises(UsageError, match="cannot listen"):
        BatchMonitor(options(metrics_port=0, metrics_address="203.0.113.1"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"log_json": "x", "metrics_file": "./x"}, "--metrics-file and --log-json would both go to ./x"),
        ({"log_json": "-", "report": "json"}, "--report json and --log-json would both go to -"),
        ({"metrics_file": "-"}, "--metrics-file needs the name of a file"),
        ({"log_json": ""}, "--log-json needs the name of a file"),
        ({"report_file": "x", "metrics_file": "x"}, "--report-file and --metrics-file would both go to x"),
    ],
)
def test_two_things_in_one_place(given: dict[str, Any], message: str) -> None:
    """What would overwrite each other is refused before anything is written."""
    with pytest.raises(UsageError) as caught:
        BatchMonitor(options(**given))
    assert str(caught.value) == message
    assert not os.path.exists("x")


def test_report_to_a_closed_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that nobody can read is an error in a line."""
    monkeypatch.setattr(sys, "stdout", None)
    with (
        BatchMonitor(options(report="json")) as seen,
        pytest.raises(OutputError, match="it is closed"),
    ):
        run(seen, tmp_path, events.done(1))


def test_report_that_cannot_be_written(tmp_path: Path) -> None:
    """So is a file in a folder that is not there, and no half of it stays."""
    with (
        BatchMonitor(options(report_file=str(tmp_path / "no" / "r"), report="json")) as seen,
        pytest.raises(OutputError),
    ):
        run(seen, tmp_path, events.done(1))


@pytest.mark.process
def test_the_command_reports(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A batch of a good and a bad input: report, list, figures and exit code agree."""
    (tmp_path / "in").mkdir()
    shutil.copy(PROFILE, tmp_path / "in")
    (tmp_path / "in" / "bad.prof").write_text("nonsense")
    given = ["--out", f"{tmp_path}/out", "-b", str(BINARIES), "--jobs", "1", "--metrics-file", f"{tmp_path}/m.prom"]
    assert (
        main(["batch", f"{tmp_path}/in", f"{tmp_path}/none", *given, "--report", "json", "--metrics-port", "0"])
        == EXIT_SOME
    )
    captured = capfd.readouterr()
    report = json.loads(captured.out)
    assert (report["inputs"]["done"], report["inputs"]["quarantined"], report["inputs"]["problems"]) == (1, 1, 1)
    assert report["run"]["tables"] == len([each for each in report["binaries"] if each["table"]]) > 0
    assert report["profiles"][1]["outputs"][0]["symbolized_percent"] == report["coverage"]["mean_percent"] > 50
    listed = (tmp_path / "out" / ".symbolize" / "quarantine.jsonl").read_text()
    assert json.loads(listed)["input"] == f"{tmp_path}/in/bad.prof"
    assert b'symbolize_inputs_total{status="quarantined"} 1.0\n' in (tmp_path / "m.prom").read_bytes()
    assert f"symbolize: {tmp_path}/none: is missing\n" in captured.err
    assert "symbolize: metrics at http://127.0.0.1:" in captured.err
    figures = in_all(tmp_path / "m.prom")
    assert figures == {
        "coverage_percent": report["coverage"]["mean_percent"],
        "inputs_done": 1,
        'inputs_quarantined{reason="unreadable"}': 1,
        "exit_code": EXIT_SOME,
        "up": 0,
    }
    assert main(["batch", f"{tmp_path}/in", *given, "--no-cache", "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")
    assert in_all(tmp_path / "m.prom") == figures | {"exit_code": 0}


def in_all(path: Path) -> dict[str, float]:
    """The figures in a file of metrics that do not count what one run did."""
    rows = dict(line.rsplit(" ", 1) for line in path.read_text().splitlines() if not line.startswith("#"))
    names = ("coverage_percent", "inputs_done", 'inputs_quarantined{reason="unreadable"}', "exit_code", "up")
    return {name: round(float(rows[f"symbolize_{name}"]), 4) for name in names}


@pytest.mark.parametrize("option", ["--report-file", "--metrics-file", "--log-json"])
@pytest.mark.parametrize(
    ("name", "argument", "said"),
    [
        ("one.prof", "one.prof", "is the same file as the input"),
        ("soft", "one.prof", "is the same file as the input"),
        ("hard", "in", "is the same file as the input"),
        ("in/a.prof", "in/*.prof", "is the same file as the input"),
        ("in/a.prof", "in", "is inside the input in"),
        ("in/new.log", "in", "is inside the input in"),
        ("-", "in", "an input is never overwritten"),
        ("map.txt", "in", "an input is never overwritten"),
        ("app", "in", "an input is never overwritten"),
        ("out/a.pb.gz", "in", "is the name of an output"),
        ("out/.symbolize/manifest.sqlite", "in", "with the state of the batch"),
    ],
)
def test_no_input_or_output_is_overwritten(
    option: str,
    name: str,
    argument: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R278: neither by its name nor by a link, of any of the files that tell of a batch."""
    monkeypatch.chdir(tmp_path)
    for folder in ("in", "out/.symbolize"):
        os.makedirs(folder)
    for file in ("one.prof", "in/a.prof", "map.txt", "app", "out/a.pb.gz"):
        Path(file).write_bytes(b"kept")
    os.symlink("one.prof", "soft")
    os.link("in/a.prof", "hard")
    maps = ["--proguard-map", "com.app=map.txt", "-b", "app"]
    with open("map.txt", "a") as standard:
        if name == "-":
            monkeypatch.setattr("sys.stdout", standard)
        assert main(["batch", argument, "--out", "out", "--no-cache", *maps, option, name]) == 2
    assert said in capsys.readouterr().err
    assert {Path(file).read_bytes() for file in ("one.prof", "in/a.prof", "map.txt", "app", "out/a.pb.gz")} == {b"kept"}
    assert not os.path.exists("in/new.log")


@pytest.mark.process
def test_what_was_told_before_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of an earlier run is no input, beside patterns and in the folder of outputs too."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("in")
    Path("in/a.prof").write_bytes(PROFILE.read_bytes())
    arguments = ["in/*.prof", "--out", "out", "--no-cache", "-q", "-j", "1", "--report-file"]
    for name in ("in/report", "out/report", "in/report", "out/report"):
        assert main(["batch", *arguments, name]) == 0
    assert "inputs: 1 done (1 of them before)" in Path("in/report").read_text()
