"""The binaries that a server answers for: found by build id, opened when they are asked for, closed when others are."""

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from symbolize.binaries import Attempt, BinaryIndex, BinaryMatch, FetchResult, Kind, Servers, find_binary
from symbolize.binaries.entries import Entry, is_same_file
from symbolize.core.errors import SymbolizeError
from symbolize.core.files import file_lock
from symbolize.core.mapped import give_back
from symbolize.resolve.module import Module
from symbolize.resolve.opened import BinaryPool, OpenBinaries
from symbolize.serve.metrics import ServerMetrics
from symbolize.symbols import Binary, TableCache

T = TypeVar("T")

MAX_OPEN: Final = 256
"""Binaries that are open at a time."""
MAX_BYTES: Final = 4 << 30
"""Bytes of their tables and symbols, most of which are mapped from the cache."""
MAX_UNKNOWN: Final = 1 << 14
"""Ids without files that are remembered until the folders are walked again."""
FRESH_SECONDS: Final = 1.0
"""For which files, and folders with files that have changed, are not looked at again."""
PATIENCE: Final = 60.0
"""Seconds for which the walk of another worker is waited for."""


class Watched(threading.local):
    """Servers, and what failed of them, as each thread sees it."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.failures: list[Attempt] = []

    def fetch(self, build_id: str, kind: Kind) -> FetchResult:
        """The answer of the servers."""
        answer = self._servers.fetch(build_id, kind)
        self.failures += answer.failures
        return answer

    def prefetch(self, wanted: Iterable[tuple[str, Sequence[Kind], float]]) -> Any:
        """Have the servers do it."""
        return self._servers.prefetch(wanted)


class HeldModule(Module):
    """A binary that a pool keeps open; it is closed when no request holds it any more, and it was replaced or too much
    is open.

    `walk` is the walk after which its files were looked for. `is_quick`: whether its whole table is at hand.
    """

    def __init__(self, opened: OpenBinaries, binary: Binary, found: BinaryMatch, walk: int) -> None:
        super().__init__(opened, binary, found.build_id)
        self.paths, self.walk = tuple(found.paths), walk
        self.is_quick = False
        self.looked_at = time.monotonic()

    def prepare(self) -> str:
        """Have the table at hand, if the binary is not too large for that; where it came from."""
        with self.used() as binary:
            is_cached = binary.is_cached()
            self.is_quick = is_cached or binary.prepare()
            binary.function_bounds(np.zeros(1, np.uint64))
            self.memory = binary.memory
        return "cached" if is_cached else "built" if self.is_quick else "partial"

    def names_source(self, path: str) -> bool:
        """Whether the debug information names a source file at `path`, as it is or normalized; no of one that is too
        large to have its table at hand."""
        if not self.is_quick:
            return False
        wanted = os.fsencode(os.path.normpath(path))
        with self.used() as binary:
            return any(os.path.normpath(name) == wanted for name in binary.table().files)


class Modules:
    """The binaries below `roots`, and those that `servers` have, by build id or Breakpad id; used by many threads.

    All workers of a server have one `cache`, and one folder `shared` for what they tell each other: when one has walked
    the folders, the others answer by what it found.
    """

    def __init__(
        self, roots: Sequence[str], cache: TableCache, shared: str, servers: Servers | None, metrics: ServerMetrics
    ) -> None:
        self.roots = roots
        self._servers = Watched(servers) if servers is not None else None
        self._cache, self._shared, self._metrics = cache, shared, metrics
        self._stamp = os.path.join(shared, "walked")
        self._walked_at = 0
        self._lock = threading.Lock()
        self._pool: BinaryPool[str, HeldModule] = BinaryPool(MAX_OPEN, FRESH_SECONDS, MAX_BYTES, counts_used=True)
        self._full_ids: dict[str, str] = {}
        self._unknown: OrderedDict[str, None] = OrderedDict()
        self.index = BinaryIndex(roots, cache.base, self._servers)
        self.index.walk()

    def __len__(self) -> int:
        return len(self._pool)

    def is_unknown(self, build_id: str) -> bool:
        """Whether nothing had the id, and the folders have not been walked since."""
        return build_id in self._unknown and self.last_walk() == self._walked_at

    def hold(self, build_id: str) -> HeldModule | None:
        """The binary with a build id or Breakpad id if it is open, and the folders were not walked since: there may be
        further files of it. `release` has to follow."""
        module = self._pool.hold_open(self._full_ids.get(build_id, build_id))
        if module is not None and module.walk == self._walked_at == self.last_walk():
            return module
        self.release(*filter(None, [module]))
        return None

    def release(self, *modules: HeldModule) -> None:
        """Some modules are not needed any more."""
        self._pool.release(*modules)
        self._note()

    @contextmanager
    def held(self, build_id: str) -> Iterator[HeldModule | None]:
        """The binary with a build id, opened if need be; None if there is none. Raises SymbolizeError."""
        module = self.hold(build_id) or (self.hold(build_id) if self.open(build_id) else None)
        try:
            yield module
        finally:
            if module is not None:
                self.release(module)

    def open(self, build_id: str) -> bool:
        """Open the binary with an id, and have its table; whether there is one. Takes as long as downloads and decoding
        do, and a walk if its files are not what they were. Raises SymbolizeError if that is not known, or its files
        cannot be read."""
        try:
            return self._open_known(build_id)
        except SymbolizeError:
            if all(is_same_file(entry, entry.path) for entry in self.files(build_id)):
                raise
            return self.after_walk(partial(self._open_known, build_id))

    def _open_known(self, build_id: str) -> bool:
        """As `open`, by what is known of the folders."""
        self._notice_walk()
        if self._servers is not None:
            self._servers.failures = []
        walk = self._walked_at
        found = find_binary(self.index, build_id, "")
        if self._is_open(build_id, found, walk):
            return True
        module = self._opened(found, walk)
        if module is None:
            if self._servers is not None and self._servers.failures:
                raise SymbolizeError("a server that may have the file did not answer as it should")
            self._note_miss(build_id)
            return False
        try:
            source = module.prepare()
            self._metrics.table(source)
            if source != "cached":
                give_back()  # what making a table took, several times its size
        except BaseException:
            module.close()
            raise
        self._pool.add(module.build_id, module)
        self._know_as(build_id, module)
        self.release(module)
        return True

    def _note_miss(self, build_id: str) -> None:
        with self._lock:
            self._unknown[build_id] = None
            if len(self._unknown) > MAX_UNKNOWN:
                self._unknown.popitem(last=False)
        self._pool.drop(self._full_ids.get(build_id, build_id))
        self._note()

    def _is_open(self, build_id: str, found: BinaryMatch, walk: int) -> bool:
        """Whether a binary is open with all the files that were found; then it is good until the next walk, and known
        by the id by which it was found."""
        module = self._pool.get(found.build_id)
        if module is None or not found.verified or module.paths != tuple(found.paths):
            return False
        module.walk = walk
        self._know_as(build_id, module)
        return True

    def _know_as(self, build_id: str, module: HeldModule) -> None:
        if build_id == module.build_id:
            return
        with self._lock:
            self._full_ids[build_id] = module.build_id
            if len(self._full_ids) > 4 * MAX_OPEN:
                known = self._full_ids.items()
                self._full_ids = {key: full for key, full in known if self._pool.get(full) is not None}

    def _note(self) -> None:
        self._metrics.opened(len(self._pool), self._pool.memory)

    def files(self, build_id: str) -> list[Entry]:
        """The files of a build, as they were when the folders were walked."""
        return self.index.with_build_id(build_id)

    def walk_again(self, seconds: float, patience: float = 0) -> bool:
        """Walk the folders again, unless another worker did in the last `seconds`, or is at it, after waiting for that
        one; and use what was found. False if another one is still at it after `patience` seconds."""
        with file_lock(os.path.join(self._shared, "walking"), patience) as is_mine:
            # A walk of the future is one before the clock was set.
            if is_mine and not 0 <= time.time_ns() - self.last_walk() <= seconds * 1e9:
                self._walk(self.roots)
        self._notice_walk()
        return is_mine

    def after_walk(self, ask: Callable[[], T]) -> T:
        """The answer of `ask`, for which a file was not what it was when the folders were walked, after another walk.
        Who asks by build id, without a mapping, asks twice at most, as `MappingResolver.resolve` does for mappings."""
        self.walk_again(FRESH_SECONDS, PATIENCE)
        return ask()

    def walk_uploads(self, folder: str) -> None:
        """Learn of the files in one of the folders."""
        self._walk([folder])
        self._notice_walk()

    def _walk(self, roots: Sequence[str]) -> None:
        index = BinaryIndex(roots, self._cache.base)
        try:
            index.walk()
        finally:
            index.close()
        with open(self._stamp, "ab"):
            os.utime(self._stamp)

    def last_walk(self) -> int:
        """When a worker has walked the folders since the server began; 0 if none has."""
        with suppress(OSError):
            return os.stat(self._stamp).st_mtime_ns
        return 0

    def _notice_walk(self) -> None:
        """Believe in misses and Breakpad ids no more if the folders were walked since."""
        walked_at = self.last_walk()
        if walked_at == self._walked_at:
            return
        with self._lock:
            self._walked_at = walked_at
            self._unknown.clear()
            self._full_ids.clear()  # there may be two builds by now with the beginning that a Breakpad id has
            # It numbers the roots anew, which may have been replaced; and one without its database is made anew.
            before = self.index
            if before.folder is None:
                self.index = BinaryIndex(self.roots, self._cache.base, self._servers)
        before.close()

    def close(self) -> None:
        """Close all files."""
        self._pool.close()
        self.index.close()

    def _opened(self, found: BinaryMatch, walk: int) -> HeldModule | None:
        if not found.paths or not found.verified:
            return None
        opened = OpenBinaries(self.index, self._cache)
        binary, problems = opened.one(found)
        if binary is None:
            logging.getLogger("uvicorn.error").error("%s: %s", found.build_id, "; ".join(problems))
            raise SymbolizeError("the files of this build cannot be read")
        return HeldModule(opened, binary, found, walk)
