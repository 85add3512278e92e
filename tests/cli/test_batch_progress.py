"""How far a batch is, as a bar and as lines."""

import os
import pty
import re
import subprocess
import sys
import termios

import pytest

from symbolize.batch.manifest import Renewed
from symbolize.cli.batch_monitoring import MAX_NAMED, BatchProgress
from tests.support import batch_events as events


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was written to standard error since the last time."""
    return [line.removeprefix("symbolize: ") for line in capsys.readouterr().err.splitlines()]


def test_lines_without_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for the beginning, for begin and end of each pass, and one in 10 seconds in between."""
    clock = Clock()
    with BatchProgress(is_terminal=False, clock=clock) as progress:
        progress.began(100, 5, 1, {Renewed.RESULTS: 60, "changed": 2})
        progress.entered("scan", 100)
        assert lines(capsys) == [
            "100 inputs, 5 done already, 1 quarantined already; 62 are done again: 60 because this "
            "version of symbolize has other results, 2 because the input has changed",
            "scan: 100 inputs",
        ]
        for i in range(99):
            clock.now += 0.5
            progress.handled(events.item(i), events.done(i) if i % 2 else events.put_off(i))
        found = lines(capsys)
        assert len(found) == 4
        assert found[0] == "scan: 20 of 100 inputs, 2.0/s, 40s+ left"
        clock.now += 0.5
        progress.handled(events.item(100), events.done(100))
        assert lines(capsys) == ["scan: done, 100 inputs in 50s: 50 symbolized, 50 put off"]
        progress.entered("decode", 1)
        progress.decoded(events.decoded())
        assert lines(capsys) == ["decode: 1 binaries", "decode: done, 1 binaries in 0.0s"]


def test_looking_in_vain_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A batch that keeps looking for inputs is quiet until there are some."""
    with BatchProgress(is_terminal=False) as progress:
        for waiting in (0, 0, 2, 0):
            progress.began(waiting, 5, 0, {})
        progress.warn("m.prom: is gone")
    assert lines(capsys) == ["0 inputs, 5 done already", "2 inputs, 5 done already", "warning: m.prom: is gone"]


def test_failures_are_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """With their reason, in one line that steers no terminal, also where all else is quiet."""
    with BatchProgress(quiet=True, is_terminal=True) as progress:
        progress.began(3, 0, 0, {})
        progress.problem("/no\x1b[2J", "is missing")
        progress.entered("scan", 3)
        progress.handled(events.item(1), events.quarantined(1))
        bad = events.item(2, "/in/\x1b]0;x\n.prof")
        progress.handled(bad, events.quarantined(2, "error", "Traceback:\n  File\nValueError: \x07\n"))
        progress.decoded(events.decoded("ab12", "/bin/app: has changed"))
    assert lines(capsys) == [
        "/no\\x1b[2J: is missing",
        "quarantined (unreadable): /in/1.prof: is empty",
        "quarantined (error): /in/\\x1b]0;x\\x0a.prof: ValueError: \\x07",
        "no symbol table: /bin/app: has changed",
    ]


def test_no_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed standard error costs nothing."""
    monkeypatch.setattr(sys, "stderr", None)
    with BatchProgress() as progress:
        progress.began(1, 0, 0, {})
        progress.entered("scan", 1)
        progress.handled(events.item(1), events.quarantined(1))


def test_failures_are_counted_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """With the rate and the time left of a pass, which is that of the batch where no other pass follows."""
    clock = Clock()
    with BatchProgress(is_terminal=False, clock=clock) as progress:
        progress.began(100, 0, 0, {})
        progress.entered("scan", 100)
        clock.now += 20
        progress.handled(events.item(1), events.quarantined(1))
        progress.handled(events.item(2), events.done(2))
        progress.entered("rewrite", 10)
        clock.now += 40
        progress.handled(events.item(3), events.done(3))
    assert [line for line in lines(capsys) if "left" in line] == [
        "scan: 1 of 100 inputs, 3.0/min, 33:00 left, 1 failed",
        "rewrite: 1 of 10 inputs, 1.5/min, 6:00 left, 1 failed",
    ]


SHOWS = """
import sys, time
sys.path.insert(0, {root!r})
from symbolize.cli.batch_monitoring import BatchProgress
from tests.support import batch_events as events
with BatchProgress() as progress:
    assert "tqdm" not in sys.modules
    progress.began({count}, 0, 0, {{}})
    progress.entered("scan", {count})
    for i in range({count}):
        progress.handled(events.item(i), events.quarantined(i))
    if {count} == 1:
        time.sleep(1.2)
print("tqdm" in sys.modules)
"""


def on_terminal(count: int, columns: int = 100) -> str:
    """What a terminal gets when `count` inputs are quarantined."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = SHOWS.format(root=root, count=count)
    with subprocess.Popen(
        [sys.executable, "-c", code], stderr=theirs, stdin=theirs, stdout=subprocess.DEVNULL
    ) as process:
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    assert process.returncode == 0, text.decode()
    return text.decode()


@pytest.mark.process
@pytest.mark.full
def test_bar_on_a_terminal() -> None:
    """One bar, drawn on also where nothing happens; named failures above it, and it is gone at the end."""
    text = on_terminal(1)
    assert re.search(r"\r  0%\|.*\| 0/1 inputs \[00:00<\?, +\?/s, scan\]", text)
    assert "symbolize: quarantined (unreadable): /in/0.prof: is empty\r\n" in text
    assert re.search(r"\r100%\|.*\| 1/1 inputs \[00:0\d<00:00, .*/s, scan, 1 failed\]", text)
    assert text.rpartition("\r")[0].rpartition("\r")[2].strip() == ""
    assert text.count("\n") == 1


@pytest.mark.process
def test_failures_do_not_flood_a_terminal() -> None:
    """Some are named, all are counted."""
    text = on_terminal(100)
    assert text.count("quarantined (unreadable)") == MAX_NAMED
    assert text.count("\n") == MAX_NAMED + 1


@pytest.mark.process
def test_tqdm_is_not_imported_elsewhere() -> None:
    """Without a terminal there is no bar to import."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    run = subprocess.run(
        [sys.executable, "-c", SHOWS.format(root=root, count=2)], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"
    assert run.stderr.splitlines()[:2] == ["symbolize: 2 inputs", "symbolize: scan: 2 inputs"]


@pytest.mark.process
def test_terminal_without_size_gets_lines() -> None:
    """Where there is no telling how long a bar may be there is none."""
    assert on_terminal(2, columns=0).splitlines()[:2] == ["symbolize: 2 inputs", "symbolize: scan: 2 inputs"]
