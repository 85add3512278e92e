"""Stores of inputs that do not answer are left alone for a while, each by itself (R403, stores that are down)."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from symbolize.core.failure_gate import FailureGate
from symbolize.storage.inputs import local_path

IN_A_ROW: Final = 16
"""Successive inputs without an answer after which a store counts as down."""
PAUSE: Final = 60.0
"""Seconds after which one input is asked of a store that is down, to find out whether it is back."""


class Breaker:
    """Decides whether an input may be asked of its store.

    A store that did not answer for IN_A_ROW inputs is paused, and its inputs wait. After PAUSE seconds one of them is
    tried: with an answer the store is used again, without one it is paused again. `problem` is called with a store and
    what is wrong with it.
    """

    def __init__(self, problem: Callable[[str, str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._problem = problem
        self._gates = defaultdict[str, FailureGate](lambda: FailureGate(IN_A_ROW, PAUSE, clock))

    @property
    def is_down(self) -> bool:
        """Whether any store is down."""
        return any(gate.is_down for gate in self._gates.values())

    def is_paused(self, uri: str) -> bool:
        """Whether the store of an input is paused now."""
        return self._gates[store_of(uri)].seconds_left > 0

    def admits(self, uri: str) -> bool:
        """Whether an input may be asked of its store; if that was paused and may be tried, this is the one input."""
        return self._gates[store_of(uri)].admits()

    def record(self, uri: str, is_answered: bool) -> None:
        """Note whether the store of an input answered."""
        store = store_of(uri)
        if is_answered:
            self._gates[store].answered()
        elif self._gates[store].failed():
            text = f"{IN_A_ROW} inputs in a row were not answered; the others of this store wait, those elsewhere go on"
            self._problem(store or "inputs", text)


def store_of(uri: str) -> str:
    """The scheme, and host or bucket, of an input; empty for a local file."""
    if local_path(uri) is not None:
        return ""
    scheme, _, rest = uri.partition("://")
    return f"{scheme.lower()}://{rest.partition('/')[0].rpartition('@')[2]}"
