"""The binaries that a server answers for: found by build id, opened when they are asked for, closed when others are."""

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from symbolize.binaries import BinaryIndex, Servers, find_binary
from symbolize.binaries.entries import Entry
from symbolize.resolve.module import Module
from symbolize.resolve.opened import OpenBinaries
from symbolize.symbols import TableCache

MAX_OPEN: Final = 256
"""Binaries that are open at a time."""
MAX_UNKNOWN: Final = 1 << 14
"""Ids without files that are remembered until the folders are walked again."""


class Modules:
    """The binaries below `roots`, and those that `servers` have, by build id or Breakpad id; used by many threads.

    What is new in the folders is found after `walk_again`.
    """

    def __init__(self, roots: Sequence[str], cache: TableCache | None, servers: Servers | None = None) -> None:
        self._roots, self._cache, self._servers = roots, cache, servers
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Module] = OrderedDict()
        self._unknown: dict[str, None] = {}
        self.index = self._walked()

    def __len__(self) -> int:
        return len(self._open)

    def find(self, build_id: str) -> Module | None:
        """The binary with a build id or Breakpad id; None if there is none."""
        with self._lock:
            module = self._open.get(build_id)
            if module is not None and module.binary.has_changed:
                del self._open[build_id]
                module.close()
                module = None
            if module is not None:
                self._open.move_to_end(build_id)
                return module
            if build_id in self._unknown:
                return None
            module = self._opened(build_id)
            if module is None:
                if len(self._unknown) < MAX_UNKNOWN:
                    self._unknown[build_id] = None
                return None
            self._open[build_id] = module
            unused = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - MAX_OPEN)]
        for each in unused:
            each.close()
        return module

    def files(self, build_id: str) -> list[Entry]:
        """The files of a build, as they were when the folders were walked."""
        with self._lock:
            return self.index.with_build_id(build_id)

    def walk_again(self) -> None:
        """Walk the folders again, and use what is found from then on."""
        index = self._walked()
        with self._lock:
            self.index, before = index, self.index
            self._unknown.clear()
        before.close()

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            for module in self._open.values():
                module.close()
            self._open.clear()
            self.index.close()

    def _walked(self) -> BinaryIndex:
        index = BinaryIndex(self._roots, self._cache.base if self._cache is not None else None, self._servers)
        index.binaries()
        self.walked_at = time.time()
        return index

    def _opened(self, build_id: str) -> Module | None:
        found = find_binary(self.index, build_id, "")
        if not found.paths or not found.verified:
            return None
        opened = OpenBinaries(self.index, self._cache)
        binary, _ = opened.one(found)
        return Module(opened, binary, found.build_id) if binary is not None else None
