"""The pool of what is open: it says whether files may have changed, and closes what nobody uses."""

import threading
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from symbolize.core.closing import Closeable


class Pooled(Closeable):
    """A base for what a pool keeps open; `memory` are the bytes that it takes about, `looked_at` when it was opened, if
    that was before it came into the pool.

    The rest is the pool's: its key, how many use it, and when it was opened and looked at.
    """

    memory = users = 0
    opened_at = looked_at = 0.0
    pool_key: Hashable = None

    @property
    @abstractmethod
    def is_outdated(self) -> bool:
        """Whether it has to be opened anew, as when a file changed."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Pooled)


class BinaryPool(Generic[K, V]):
    """What openers make of keys; many threads may use it. Where two open the same at once, the later one stays.

    Of what nobody uses, the `limit` whose use ended last stay open. With `counts_used`, all that is open counts: what
    was asked for longest ago is taken out, and closed with its last use, until `limit` and `max_bytes` are kept or one
    is left. What was looked at more than `age` seconds ago is looked at again when it is asked for; if it is outdated
    it is opened anew, and closed once nobody uses it.
    """

    def __init__(
        self, limit: int, age: float = 0.0, max_bytes: float = float("inf"), *, counts_used: bool = False
    ) -> None:
        self._limit, self._age, self._max_bytes, self._counts_used = limit, age, max_bytes, counts_used
        self._lock = threading.Lock()
        self._open: OrderedDict[K, V] = OrderedDict()
        self._unused: OrderedDict[Hashable, V] = OrderedDict()
        self._retired: set[V] = set()
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
            self._unused.pop(key, None)
        if (now := time.monotonic()) - value.looked_at >= self._age:
            value.looked_at = now
            if value.is_outdated:
                with self._lock:
                    if self._open.get(key) is value:  # another thread may have opened it anew meanwhile
                        self._take_out(key)
                self.release(value)
                return None
        return value

    def add(self, key: K, value: V) -> V:
        """Keep `value`, which is new and held from now on, in place of what is open of a key."""
        value.users, value.pool_key, value.opened_at = 1, key, time.monotonic()
        value.looked_at = value.looked_at or value.opened_at
        with self._lock:
            self._take_out(key)
            self._open[key] = value
            self.memory += value.memory
            unused = self._surplus()
        self._close(unused)
        return value

    def drop(self, key: K) -> None:
        """Keep nothing of a key; who holds what was open still has it open."""
        with self._lock:
            self._take_out(key)
            unused = self._surplus()
        self._close(unused)

    def release(self, *values: V) -> None:
        """End a use of each. What nobody uses is closed then, if it was taken out or is too much."""
        with self._lock:
            for value in values:
                value.users -= 1
                key = value.pool_key
                if not value.users and self._open.get(key) is value:  # type: ignore[arg-type]
                    self._unused[key] = value
            unused = self._surplus()
        self._close(unused)

    def close(self) -> None:
        """Close all, used or not, also what was taken out."""
        with self._lock:
            values = [*self._open.values(), *self._retired]
            self._open.clear()
            self._unused.clear()
            self._retired.clear()
            self.memory = 0
        self._close(values)

    def _take_out(self, key: K) -> None:
        """Keep what is open of a key no more; `_surplus` gives it once nobody uses it."""
        if (value := self._open.pop(key, None)) is not None:
            self._unused.pop(key, None)
            self._retired.add(value)
            self.memory -= value.memory

    def _surplus(self) -> list[V]:
        """What has to be closed, after what is too much was taken out."""
        kept = self._open if self._counts_used else self._unused
        while len(kept) > self._limit or (self.memory > self._max_bytes and len(kept) > 1):
            self._take_out(next(iter(kept)))  # type: ignore[arg-type]
        unused = [value for value in self._retired if not value.users]
        self._retired.difference_update(unused)
        return unused

    @staticmethod
    def _close(values: Iterable[V]) -> None:
        for value in values:
            value.close()
