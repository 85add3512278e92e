"""How the time that something takes grows with its size."""

import math
import time
from collections.abc import Callable

ATTEMPTS = 5
NOISE = 0.01
"""Seconds that a time may be off."""


def is_linear(task: Callable[[int], object], size: int) -> bool:
    """Whether four times the size takes at most eight times as long, not 16 as where each part meets each other one.

    The best of a few times counts, of the process: the machine may have other work.
    """
    short = long = math.inf
    for _ in range(ATTEMPTS):
        short, long = min(short, spent(task, size)), min(long, spent(task, 4 * size))
        if long <= 8 * short + NOISE:
            return True
    return False


def spent(task: Callable[[int], object], size: int) -> float:
    """The CPU time of one run in seconds."""
    begin = time.process_time()
    task(size)
    return time.process_time() - begin
