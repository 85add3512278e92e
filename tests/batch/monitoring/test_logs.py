"""What happens in a batch as JSON lines."""

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch.fetching import FetchedFile
from symbolize.batch.manifest import Manifest
from symbolize.batch.monitoring.observers import JsonLog, timestamp
from symbolize.batch.monitoring.summary import write_quarantine
from symbolize.binaries import Attempt
from symbolize.core.errors import OutputError
from symbolize.storage.inputs import Input
from tests.support import batch_events as events


def written(path: Path) -> list[dict[str, Any]]:
    """The objects in a log."""
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def unexpected(text: str) -> None:
    """A warning that no test waits for."""
    raise AssertionError(text)


def test_no_secrets(tmp_path: Path) -> None:
    """What signs a URL is neither in the log nor in the list of quarantined inputs."""
    url = "https://store.example/a.pb?X-Signature=secret"
    with JsonLog(str(tmp_path / "log"), unexpected) as log:
        log.handled(events.item(1, url), events.done(1))
    with Manifest(str(tmp_path / "manifest.sqlite")) as manifest:
        manifest.add([Input(url, "a", 1, "1")], "", retry=False, again=False)
        manifest.record([events.quarantined(1)])
        write_quarantine(manifest, str(tmp_path / "list"))
    for name in ("log", "list"):
        line = written(tmp_path / name)[0]
        assert line["input"] == "https://store.example/a.pb"


def test_every_event_is_an_object(tmp_path: Path) -> None:
    """An object a line, with all that is known, in order."""
    path = tmp_path / "log.jsonl"
    with JsonLog(str(path), unexpected) as log:
        log.began(3, 1, 0, {"options": 2})
        log.problem("/nowhere", "is missing")
        log.entered("scan", 3)
        log.handled(events.item(1), events.put_off(1))
        log.handled(events.item(2), events.quarantined(2, "time", "took 61 s"))
        log.entered("fetch", 1)
        log.fetched(FetchedFile("00ab", "debuginfo", 7, 0.25, "fetched", (Attempt("https://one.example", "is down"),)))
        log.entered("decode", 1)
        log.decoded(events.decoded("ab12", "app: has changed"))
        log.entered("rewrite", 1)
        log.handled(events.item(1), events.done(1, events.coverage(events.mapping())))
    found = written(path)
    for each in found:
        assert abs(datetime.fromisoformat(each.pop("time")) - datetime.now().astimezone()) < timedelta(minutes=1)
    assert found == [
        {"event": "began", "waiting": 3, "done": 1, "quarantined": 0, "renewed": {"options": 2}},
        {"event": "problem", "where": "/nowhere", "text": "is missing"},
        {"event": "pass", "pass": "scan", "total": 3},
        {
            "event": "input",
            "pass": "scan",
            "input": "/in/1.prof",
            "name": "1",
            "bytes": 1000,
            "state": "put-off",
            "reason": "",
            "detail": "",
            "attempts": 1,
            "seconds": 0.1,
            "outputs": [],
        },
        {
            "event": "input",
            "pass": "scan",
            "input": "/in/2.prof",
            "name": "2",
            "bytes": 1000,
            "state": "quarantined",
            "reason": "time",
            "detail": "took 61 s",
            "attempts": 1,
            "seconds": 0.2,
            "outputs": [],
        },
        {"event": "pass", "pass": "fetch", "total": 1},
        {
            "event": "fetch",
            "build_id": "00ab",
            "kind": "debuginfo",
            "status": "fetched",
            "bytes": 7,
            "seconds": 0.25,
            "failures": [{"server": "https://one.example", "text": "is down"}],
        },
        {"event": "pass", "pass": "decode", "total": 1},
        {
            "event": "binary",
            "key": "ab12",
            "addresses": 0,
            "bytes": 0,
            "seconds": 1.5,
            "failure": "app: has changed",
        },
        {"event": "pass", "pass": "rewrite", "total": 1},
        {
            "event": "input",
            "pass": "rewrite",
            "input": "/in/1.prof",
            "name": "1",
            "bytes": 1000,
            "state": "done",
            "reason": "",
            "detail": "",
            "attempts": 1,
            "seconds": 0.5,
            "outputs": [
                {
                    "path": "1-0.pb.gz",
                    "bytes": 700,
                    "samples": 5,
                    "locations": 10,
                    "symbolized_locations": 10,
                    "symbolized_percent": 100.0,
                    "warnings": [],
                }
            ],
        },
        {"event": "ended", "done": 1, "quarantined": 1, "incomplete": 0},
    ]


def test_lines_are_there_at_once_and_appended(tmp_path: Path) -> None:
    """A line is in the file before the next thing happens, behind those of earlier runs."""
    path = tmp_path / "log.jsonl"
    for _ in range(2):
        with JsonLog(str(path), unexpected) as log:
            before = len(written(path))
            log.entered("scan", 1)
            assert len(written(path)) == before + 1
    assert [each["event"] for each in written(path)] == ["pass", "ended"] * 2


def test_looking_in_vain_is_no_event(tmp_path: Path) -> None:
    """A batch that keeps looking for inputs says so when there are some, and once at the beginning."""
    path = tmp_path / "log.jsonl"
    with JsonLog(str(path), unexpected) as log:
        for waiting in (0, 0, 2, 0):
            log.began(waiting, 5, 0, {})
    assert [each["waiting"] for each in written(path) if each["event"] == "began"] == [0, 2]


def test_names_of_any_bytes(tmp_path: Path) -> None:
    """Line feeds, escapes and bytes that are no text stay in their line."""
    path = tmp_path / "log.jsonl"
    name = "a\n\x1b[2J\udcff.prof"
    with JsonLog(str(path), unexpected) as log:
        log.handled(events.item(1, name), events.quarantined(1, detail=name))
    assert written(path)[0]["input"] == written(path)[0]["detail"] == name


def test_time_is_utc() -> None:
    """Times end in Z, whole seconds have a fraction too."""
    assert timestamp()[-1] == "Z"
    assert len(timestamp()) == len("2026-11-21T08:15:30.123456Z")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full: run it on Linux")
def test_full_disk_costs_one_warning() -> None:
    """What cannot be written is lost; the first says so, and the end says how many."""
    said: list[str] = []
    with JsonLog("/dev/full", said.append) as log:
        for _ in range(3):
            log.entered("scan", 1)
    assert said == [
        "/dev/full: the log cannot be written: No space left on device",
        "/dev/full: 4 lines of the log could not be written",
    ]


def test_half_a_line_does_not_spoil_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a disk was full for a while the log goes on, in a line of its own."""
    path, said = tmp_path / "log.jsonl", list[str]()
    with JsonLog(str(path), said.append) as log:
        real, left = os.write, [5]

        def write(file: int, data: bytes) -> int:
            if not left:
                raise OSError(28, "No space left on device")
            return real(file, data[: left.pop()])

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write)
            log.entered("scan", 1)
        log.entered("decode", 2)
    lines = path.read_text().splitlines()
    assert len(lines[0]) == 5
    assert [json.loads(line)["event"] for line in lines[1:]] == ["pass", "ended"]
    assert len(said) == 2


def test_no_such_folder(tmp_path: Path) -> None:
    """A log that cannot be begun stops the batch before it begins."""
    with pytest.raises(OutputError, match=r"log: cannot be written: No such file or directory"):
        JsonLog(str(tmp_path / "no" / "log"), unexpected)


@pytest.mark.process
def test_standard_output() -> None:
    """- is standard output, and a reader that goes away is a warning."""
    code = (
        "from symbolize.batch.monitoring.observers import JsonLog; import sys\n"
        "with JsonLog('-', lambda text: print(text, file=sys.stderr)) as log:\n"
        "    sys.stdin.readline()\n"
        "    log.entered('scan', 2)\n"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, input=b"\n", capture_output=True, check=True)
    assert [json.loads(line)["event"] for line in run.stdout.splitlines()] == ["pass", "ended"]
    assert run.stderr == b""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as broken:
        assert broken.stdin and broken.stdout and broken.stderr
        broken.stdout.close()
        broken.stdin.write(b"\n")
        broken.stdin.close()
        assert broken.stderr.read().decode().splitlines() == [
            "standard output: the log cannot be written: Broken pipe",
            "standard output: 2 lines of the log could not be written",
        ]
    assert broken.returncode == 0


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
