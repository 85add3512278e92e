"""Stores of inputs that do not answer are left alone for a while, each by itself (R403, stores that are down)."""

import time
from collections.abc import Callable
from typing import Final

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
        self._clock = clock
        self._failed: dict[str, int] = {}
        self._until: dict[str, float] = {}

    @property
    def is_open(self) -> bool:
        """Whether any store is paused."""
        return bool(self._until)

    def is_paused(self, uri: str) -> bool:
        """Whether the store of an input is paused now."""
        return self._clock() < self._until.get(store_of(uri), 0.0)

    def admits(self, uri: str) -> bool:
        """Whether an input may be asked of its store; if that was paused and may be tried, this is the one input."""
        store = store_of(uri)
        until = self._until.get(store)
        if until is None:
            return True
        now = self._clock()
        if now < until:
            return False
        self._until[store] = now + PAUSE
        return True

    def record(self, uri: str, is_answered: bool) -> None:
        """Note whether the store of an input answered."""
        store = store_of(uri)
        if is_answered:
            self._failed.pop(store, None)
            self._until.pop(store, None)
            return
        self._failed[store] = self._failed.get(store, 0) + 1
        if store in self._until:
            self._until[store] = self._clock() + PAUSE
        elif self._failed[store] >= IN_A_ROW:
            self._until[store] = self._clock() + PAUSE
            text = f"{IN_A_ROW} inputs in a row were not answered; the others of this store wait, those elsewhere go on"
            self._problem(store or "inputs", text)


def store_of(uri: str) -> str:
    """The scheme, and host or bucket, of an input; empty for a local file."""
    if local_path(uri) is not None:
        return ""
    scheme, _, rest = uri.partition("://")
    return f"{scheme.lower()}://{rest.partition('/')[0].rpartition('@')[2]}"
