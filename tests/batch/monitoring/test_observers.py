"""Several observers as one, and what they share."""

import pytest

from symbolize.batch.monitoring.observers import Observer, ObserverGroup, duration, one_line, rate_text


class Recorder(Observer):
    """Keeps what it is told."""

    def __init__(self, fails_at: str = "") -> None:
        self.told: list[tuple[str, str]] = []
        self.fails_at = fails_at

    def problem(self, where: str, text: str) -> None:
        """Keep it."""
        self.told.append((where, text))

    def entered(self, stage: str, total: int) -> None:
        """Keep it, or fail."""
        if stage == self.fails_at:
            raise ValueError(stage)
        self.told.append((stage, str(total)))

    def close(self) -> None:
        """Keep it."""
        self.told.append(("closed", ""))


def test_all_are_told_in_order() -> None:
    """Every observer hears every event, and is closed."""
    a, b = Recorder(), Recorder()
    with ObserverGroup([a, b]) as observers:
        observers.began(1, 0, 0, {})
        observers.entered("scan", 3)
        observers.problem("x", "is missing")
    assert a.told == b.told == [("scan", "3"), ("x", "is missing"), ("closed", "")]


def test_failing_watcher_costs_itself_only() -> None:
    """One that fails is left out, the others hear why and go on, and it is closed all the same."""
    bad, good = Recorder("scan"), Recorder()
    with ObserverGroup([bad, good]) as observers:
        observers.entered("scan", 3)
        observers.entered("decode", 1)
    assert bad.told == [("closed", "")]
    assert good.told == [
        ("Recorder", "failed, and is not used any more: ValueError('scan')"),
        ("scan", "3"),
        ("decode", "1"),
        ("closed", ""),
    ]


def test_interrupt_goes_through() -> None:
    """A person who interrupts is no failure of a observer."""

    class Interrupted(Observer):
        def entered(self, stage: str, total: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ObserverGroup([Interrupted()]).entered("scan", 1)


@pytest.mark.parametrize(
    ("detail", "line"),
    [
        ("", ""),
        ("a.prof: is empty", "a.prof: is empty"),
        ("Traceback (most recent call last):\n  File x\nValueError: \x1b[2Jno\n", "ValueError: \\x1b[2Jno"),
        ("x" * 1000, "x" * 299 + "…"),
    ],
)
def test_one_line(detail: str, line: str) -> None:
    """A traceback shows its last line; nothing steers a terminal."""
    assert one_line(detail) == line


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0s"),
        (9.94, "9.9s"),
        (12, "12s"),
        (185, "3:05"),
        (7385, "2:03:05"),
        (4 * 86400 + 7380, "4d 02:03"),
        (-1, "0.0s"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    """Spans are short."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(1234.5, "1234/s"), (12.34, "12.3/s"), (0.5, "30.0/min"), (0.01, "36.0/h"), (0, "0.0/h")]
)
def test_rate(rate: float, text: str) -> None:
    """What is slow is counted by the minute or hour."""
    assert rate_text(rate) == text
