"""Gates that close when requests get no answer."""

import math

import pytest

from symbolize.core.failure_gate import FailureGate
from symbolize.core.reasons import Failure, Reason


class Clock:
    """A clock that tests set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_pause() -> None:
    """After `limit` failures in a row nothing is asked for `pause` seconds, then one request finds out."""
    clock = Clock()
    gate = FailureGate(3, 60, clock)
    assert [gate.failed(), gate.failed()] == [False, False]
    gate.answered()
    assert [gate.failed(), gate.failed(), gate.admits(), gate.is_down] == [False, False, True, False]
    assert (gate.failed(), gate.is_down, gate.admits(), gate.seconds_left) == (True, True, False, 60)
    clock.now += 59
    assert (gate.seconds_left, gate.admits()) == (1, False)
    clock.now += 1
    assert [gate.admits() for _ in range(3)] == [True, False, False]
    clock.now += 10
    assert (gate.failed(), gate.seconds_left) == (False, 60)
    clock.now += 60
    assert gate.admits()
    gate.answered()
    assert (gate.is_down, gate.failures, gate.seconds_left) == (False, 0, 0)
    assert [gate.admits() for _ in range(3)] == [True] * 3


def test_for_good() -> None:
    """Without a pause a gate that is closed stays so."""
    clock = Clock()
    gate = FailureGate(1, clock=clock)
    assert gate.failed()
    clock.now += 1e12
    assert (gate.admits(), gate.seconds_left) == (False, math.inf)


@pytest.mark.parametrize("events", ["", "f", "a", "fa", "af"])
def test_closed_for_a_time(events: str) -> None:
    """Who asked to be left alone is, whatever fails and answers; the longest of several pauses counts."""
    clock = Clock()
    gate = FailureGate(1, 60, clock)
    gate.close(100)
    gate.close(5)
    for event in events:
        if event == "f":
            gate.failed()
        else:
            gate.answered()
    assert (gate.admits(), gate.seconds_left, gate.is_asked) == (False, 100, True)
    clock.now += 100
    assert gate.admits()
    gate.failed()
    assert (gate.seconds_left, gate.is_asked) == (60, False)


def test_sentences_of_failures() -> None:
    """A server failed; of a file is said what is wrong with it."""
    assert Failure(Reason.SERVER_FAILED, "http://x", "no answer").sentence == "http://x failed: no answer"
    assert Failure(Reason.UNREADABLE, "/bin/x", "is cut off").sentence == "/bin/x: is cut off"
