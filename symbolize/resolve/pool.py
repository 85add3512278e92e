"""The pool of what is open: it says whether files may have changed, and closes what nobody uses."""

import threading
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from symbolize.core.closing import Closeable


class Pooled(Closeable):
    """A base for what a pool keeps open; `memory` are the bytes that it takes about.

    The rest is the pool's: how many use it, whether it was taken out and is closed with the last of them, and when it
    was opened and looked at.
    """

    memory = users = 0
    is_retired = False
    opened_at = looked_at = 0.0

    @property
    @abstractmethod
    def is_outdated(self) -> bool:
        """Whether it has to be opened anew, as when a file changed."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Pooled)


class BinaryPool(Generic[K, V]):
    """What openers make of keys, open once each; many threads may use it.

    Of what nobody uses the `limit` that were used last stay open, fewer if these take more than `max_bytes`, and one
    whatever that takes. What was looked at more than `age` seconds ago is looked at again when it is asked for, and if
    it is outdated opened anew, and closed once nobody uses it.
    """

    def __init__(self, limit: int, age: float = 0.0, max_bytes: float = float("inf")) -> None:
        self._limit, self._age, self._max_bytes = limit, age, max_bytes
        self._lock = threading.Lock()
        self._open: OrderedDict[K, V] = OrderedDict()
        self.memory = 0

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[V]:
        with self._lock:
            return iter([*self._open.values()])

    def get(self, key: K) -> V | None:
        """What is open of a key, as it is and not held; None if nothing is."""
        return self._open.get(key)

    def hold(self, key: K, opener: Callable[[], V]) -> V:
        """What is open of a key, or what `opener` makes for it; `release` has to follow. Raises as `opener`, and then
        keeps nothing."""
        return self.hold_open(key) or self.add(key, opener())

    def hold_open(self, key: K) -> V | None:
        """As `hold`; None if nothing is open of the key, or what was is outdated."""
        with self._lock:
            value = self._open.get(key)
            if value is None:
                return None
            value.users += 1
            self._open.move_to_end(key)
        if (now := time.monotonic()) - value.looked_at >= self._age:
            value.looked_at = now
            if value.is_outdated:
                if self.get(key) is value:
                    self.drop(key)
                self.release(value)
                return None
        return value

    def add(self, key: K, value: V) -> V:
        """Keep `value`, which is new and held from now on, in place of what is open of a key."""
        value.users = 1
        value.opened_at = value.looked_at = time.monotonic()
        self.drop(key, value)
        return value

    def drop(self, key: K, successor: V | None = None) -> None:
        """Keep nothing of a key, or what comes after it; who holds what was open still has it open."""
        with self._lock:
            before = self._taken(key)
            for value in before:
                value.users += 1
            if successor is not None:
                self._open[key] = successor
                self.memory += successor.memory
        self.release(*before)

    def release(self, *values: V) -> None:
        """End a use of each. What nobody uses is closed then, if it was taken out or is too much."""
        with self._lock:
            for value in values:
                value.users -= 1
            unused = [value for value in dict.fromkeys(values) if value.is_retired and not value.users]
            unused += self._surplus()
        for value in unused:
            value.close()

    def close(self) -> None:
        """Close all, used or not."""
        for value in self:
            value.close()
        self._open.clear()
        self.memory = 0

    def _taken(self, key: K) -> list[V]:
        """What was open of a key and is not kept any more."""
        if key not in self._open:
            return []
        value = self._open.pop(key)
        value.is_retired = True
        self.memory -= value.memory
        return [value]

    def _surplus(self) -> list[V]:
        """What was too much and is not kept any more, that first which was not used for longest."""
        taken: list[V] = []
        if len(self._open) > self._limit or self.memory > self._max_bytes:
            unused = [key for key, value in self._open.items() if not value.users]
            size = sum(self._open[key].memory for key in unused)
            while len(unused) - len(taken) > (self._limit if size <= self._max_bytes else 1):
                taken += self._taken(unused[len(taken)])
                size -= taken[-1].memory
        return taken
