"""How far a batch is, as a bar and as lines."""

import os
import pty
import re
import subprocess
import sys
import termios

import pytest

from symbolize.cli.batch_progress import MAX_TOLD, BatchProgress, Outlook
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
        progress.began(100, 5, 1)
        progress.entered("scan", 100)
        assert lines(capsys) == ["100 inputs, 5 done already, 1 quarantined already", "scan: 100 inputs"]
        for i in range(99):
            clock.now += 0.5
            progress.handled(events.item(i), events.done(i) if i % 2 else events.put_off(i))
        found = lines(capsys)
        assert len(found) == 4
        assert found[0] == "scan: 20 of 100 inputs, 2.0/s, 2:45+ left"
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
            progress.began(waiting, 5, 0)
        progress.warn("m.prom: is gone")
    assert lines(capsys) == ["0 inputs, 5 done already", "2 inputs, 5 done already", "warning: m.prom: is gone"]


def test_failures_are_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """With their reason, in one line that steers no terminal, also where all else is quiet."""
    with BatchProgress(quiet=True, is_terminal=True) as progress:
        progress.began(3, 0, 0)
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
        progress.began(1, 0, 0)
        progress.entered("scan", 1)
        progress.handled(events.item(1), events.quarantined(1))


def test_put_off_inputs_are_finished_when_rewritten() -> None:
    """The count of inputs does not go up twice for one."""
    outlook = Outlook(Clock())
    outlook.begin(2)
    outlook.enter("scan", 2)
    outlook.handled(events.put_off(1))
    outlook.handled(events.quarantined(2))
    assert (outlook.finished, outlook.done, outlook.failed) == (1, 2, 1)
    outlook.enter("rewrite", 1)
    outlook.handled(events.done(1))
    assert (outlook.finished, outlook.done) == (2, 1)
    assert outlook.fraction() == 1


def test_time_left_of_one_pass() -> None:
    """Where nothing is put off it is what is left by the rate."""
    clock = Clock()
    outlook = Outlook(clock)
    outlook.begin(100)
    outlook.enter("scan", 100)
    assert outlook.left() == (None, False)
    assert outlook.left_text() == "?"
    for i in range(20):
        clock.now += 2
        outlook.handled(events.done(i))
    assert outlook.rate == pytest.approx(0.5)
    assert outlook.left() == (pytest.approx(160), False)
    assert outlook.fraction() == pytest.approx(0.2)


def test_time_left_weighs_the_passes() -> None:
    """Scanning fast does not make the rewriting look as fast: symbolizing one takes five times as long here."""
    clock = Clock()
    outlook = Outlook(clock)
    outlook.begin(110)
    outlook.enter("scan", 110)
    for i in range(10):
        clock.now += 5
        outlook.handled(events.done(i, seconds=0.5))
    for i in range(50):
        clock.now += 1
        outlook.handled(events.put_off(i, seconds=0.1))
    seconds, has_more = outlook.left()
    assert has_more
    # 50 are put off, and of the 50 left 50/60 will be; 60 took 100 seconds.
    assert seconds == pytest.approx(50 / outlook.rate + (50 + 50 * 50 / 60) * 5 / 0.6)
    assert outlook.left_text().endswith("+")
    before = outlook.fraction()
    assert 0 < before < 100 / (100 + seconds)
    for i in range(50):
        clock.now += 1
        outlook.handled(events.put_off(i, seconds=0.1))
    before = outlook.fraction()
    outlook.enter("decode", 4)
    assert outlook.left() == (pytest.approx(100 * 5 / (110 / 150)), True)
    assert outlook.fraction() == before
    clock.now += 20
    outlook.step()
    seconds, has_more = outlook.left()
    assert not has_more
    assert seconds == pytest.approx(60 + 100 * 5 / (110 / 150))
    assert outlook.fraction() >= before
    outlook.enter("rewrite", 100)
    assert outlook.left() == (pytest.approx(100 * 5 / (110 / 150)), False)
    for i in range(50):
        clock.now += 2
        outlook.handled(events.done(i))
    assert outlook.left() == (pytest.approx(100), False)


def test_first_inputs_of_workers_do_not_count_for_all() -> None:
    """One that had to open the binaries took long; those after it will not."""
    clock = Clock()
    outlook = Outlook(clock)
    outlook.begin(100)
    outlook.enter("scan", 100)
    for i in range(5):
        clock.now += 1
        outlook.handled(events.done(i, seconds=0.2 if i else 30.0))
        outlook.handled(events.put_off(i, seconds=0.1))
    assert outlook.rewrite_cost == pytest.approx(2)


def test_resumed_batch_that_was_put_off() -> None:
    """Where an earlier run did the scan nothing is known of the speed of the rewriting, and it says so."""
    clock = Clock()
    outlook = Outlook(clock)
    outlook.begin(50)
    outlook.enter("decode", 2)
    clock.now += 10
    outlook.step()
    assert outlook.left() == (pytest.approx(10), True)
    outlook.enter("rewrite", 50)
    assert outlook.left() == (None, False)


def test_fraction_does_not_fall() -> None:
    """A pass that turns out to be slow makes the bar wait, not go back."""
    clock = Clock()
    outlook = Outlook(clock)
    outlook.begin(100)
    outlook.enter("scan", 100)
    shown = []
    for i in range(100):
        clock.now += 1 if i < 50 else 20
        outlook.handled(events.done(i))
        shown.append(outlook.fraction())
    assert shown == sorted(shown)
    assert shown[-1] == 1


def test_rate_is_the_recent_one() -> None:
    """What happened minutes ago does not count."""
    clock = Clock()
    outlook = Outlook(clock)
    outlook.begin(10_000)
    outlook.enter("scan", 10_000)
    for step in (0.01, 1.0):
        for i in range(150):
            clock.now += step
            outlook.handled(events.done(i))
    assert outlook.rate == pytest.approx(1.0, rel=0.1)


def test_text_beside_the_bar() -> None:
    """Finished inputs, times, rate, the pass and failures."""
    clock = Clock()
    outlook = Outlook(clock)
    outlook.begin(4)
    outlook.enter("scan", 4)
    clock.now += 1
    outlook.handled(events.quarantined(1))
    assert outlook.bar_text() == "1/4 inputs [1.0s<3.0s, 1.0/s, scan, 1 failed]"
    clock.now += 1
    outlook.handled(events.put_off(2))
    assert outlook.bar_text() == "1/4 inputs [2.0s<6.0s+, 1.0/s, scan 2/4, 1 failed]"


SHOWS = """
import sys, time
sys.path.insert(0, {root!r})
from symbolize.cli.batch_progress import BatchProgress
from tests.support import batch_events as events
with BatchProgress() as progress:
    assert "tqdm" not in sys.modules
    progress.began({count}, 0, 0)
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


def test_bar_on_a_terminal() -> None:
    """One bar, drawn on also where nothing happens; named failures above it, and it is gone at the end."""
    text = on_terminal(1)
    assert re.search(r"\r  0%\|.*\| 0/1 inputs \[[\d.]+s<\?, 0\.0/h, scan\]", text)
    assert "symbolize: quarantined (unreadable): /in/0.prof: is empty\r\n" in text
    assert re.search(r"\r100%\|.*\| 1/1 inputs \[[\d.]+s<0\.0s, ", text)
    assert text.rpartition("\r")[0].rpartition("\r")[2].strip() == ""
    assert text.count("\n") == 1


def test_failures_do_not_flood_a_terminal() -> None:
    """Some are named, all are counted."""
    text = on_terminal(100)
    assert text.count("quarantined (unreadable)") == MAX_TOLD
    assert text.count("\n") == MAX_TOLD + 1


def test_tqdm_is_not_imported_elsewhere() -> None:
    """Without a terminal there is no bar to import."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    run = subprocess.run(
        [sys.executable, "-c", SHOWS.format(root=root, count=2)], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"
    assert run.stderr.splitlines()[:2] == ["symbolize: 2 inputs", "symbolize: scan: 2 inputs"]


def test_terminal_without_size_gets_lines() -> None:
    """Where there is no telling how long a bar may be there is none."""
    assert on_terminal(2, columns=0).splitlines()[:2] == ["symbolize: 2 inputs", "symbolize: scan: 2 inputs"]
