"""Files by build id through a folder of downloads: what clients of debuginfod servers and of object stores share."""

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from symbolize.binaries.build_id import is_build_id, same_build_id
from symbolize.binaries.debuginfod.cache import COMPOSED, ClientCache
from symbolize.binaries.debuginfod.types import Fetched, Limits
from symbolize.binaries.remote import Attempt, Kind, fetch_in_turn
from symbolize.core.closing import Closeable
from symbolize.core.errors import UsageError, printable
from symbolize.core.files import os_error_text
from symbolize.elf import ElfError, read_build_id

SHA1_DIGITS = 40
FAILURE_LIFE = 600.0
"""Seconds for which a failed fetch is not tried again by the same client."""
MAX_FAILED = 1 << 16
"""Failed fetches that are remembered."""


class Prefetching(Closeable):
    """Fetches files in the background; `fetch` is that of the client."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    @abstractmethod
    def fetch(self, build_id: str, kind: Kind, forwarded: str = "") -> Fetched:
        """The debug file or the executable with a build id. Never raises for a miss. `forwarded` are the clients that
        it is asked for, as X-Forwarded-For has them."""

    def fetch_source(self, build_id: str, path: str, forwarded: str = "") -> Fetched:
        """A source file of a build by its absolute path; only debuginfod servers have any. Never raises for a miss."""
        return Fetched(None, "missing", [])

    def prefetch(self, wanted: Iterable[tuple[str, Sequence[Kind], float]]) -> list[Future[dict[Kind, Fetched]]]:
        """Begin to fetch files in the background, those of most weight first; returns at once.

        Of one build they come in the order of the kinds, and no executable after a debug file that has the code.
        What is asked for with `fetch` meanwhile does not wait behind the others.
        """
        ordered = sorted(wanted, key=lambda each: -each[2])
        with self._lock:
            if self._closed:
                return []
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._workers, "debuginfod")
            return [self._pool.submit(fetch_in_turn, self.fetch, build_id, kinds) for build_id, kinds, _ in ordered]

    def end(self, cancel: Callable[[], None]) -> None:
        """Begin no more, `cancel` what runs, and wait for its end."""
        with self._lock:
            self._closed = True
            pool = self._pool
        cancel()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    @staticmethod
    def name_of(build_id: str, kind: Kind) -> str:
        """A name for a file, the same for all spellings of its build id; empty for what is no build id."""
        return f"{unpadded(build_id.lower())}-{kind}" if is_build_id(build_id) else ""


class CachedClient(Prefetching):
    """A client that keeps what it fetches, and what is missing, in the folder `cache`.

    `asked` identifies what is asked; misses on record hold for the same. `refresh_misses` asks again for what was
    missing before the client was made. `tell` is called with a line for a person.
    """

    def __init__(
        self, cache: ClientCache, limits: Limits, asked: str, refresh_misses: bool, tell: Callable[[str], None]
    ) -> None:
        super().__init__(limits.workers)
        self.cache = cache
        self.limits = limits
        self.refresh_misses = refresh_misses
        self._asked = asked
        self._tell = tell
        self._started = time.time()
        self._flights: dict[tuple[str, str], Future[Fetched]] = {}
        self._failed: dict[tuple[str, str], tuple[float, Fetched]] = {}

    @abstractmethod
    def _download(self, build_id: str, kind: Kind, forwarded: str) -> Fetched:
        """Fetch a file that the folder does not have."""

    @abstractmethod
    def _unasked(self) -> Fetched | None:
        """The answer if nobody can be asked at the moment."""

    def fetch(self, build_id: str, kind: Kind, forwarded: str = "") -> Fetched:
        """The debug file or the executable with a build id, from the folder or elsewhere. Never raises for a miss.

        A thread that asks for what another one is fetching waits for the same result. `forwarded` are the clients that
        it is asked for, as X-Forwarded-For has them.
        """
        if kind not in ("debuginfo", "executable"):
            raise UsageError(f"debuginfod has no {kind!r}")
        return self._single(build_id, kind, lambda asked: self._fetch(asked, kind, forwarded))

    def known(self, build_id: str, kind: Kind) -> Fetched | None:
        """What the folder says of a file without a server being asked: the file, a miss, or nothing."""
        return self._known(unpadded(build_id.lower()), kind) if is_build_id(build_id) else None

    def _single(self, build_id: str, entry: str, run: Callable[[str], Fetched]) -> Fetched:
        """Run a fetch, once for all threads that want the same."""
        if not is_build_id(build_id):
            return Fetched(None, "invalid", [Attempt(printable(repr(build_id[:140])), "is no build id")])
        asked = unpadded(build_id.lower())
        key = asked, entry
        with self._lock:
            when, failed = self._failed.get(key, (0.0, None))
            if failed is not None and time.monotonic() - when < FAILURE_LIFE:
                return failed
            flight = self._flights.get(key)
            is_mine = flight is None
            if flight is None:
                flight = self._flights[key] = Future()
        if not is_mine:
            return flight.result()
        try:
            result = run(asked)
            if result.status not in ("found", "skipped"):
                with self._lock:
                    if len(self._failed) >= MAX_FAILED:
                        del self._failed[next(iter(self._failed))]
                    self._failed[key] = time.monotonic(), result
            flight.set_result(result)
            return result
        except BaseException as error:
            flight.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._flights[key]

    def _fetch(self, build_id: str, kind: Kind, forwarded: str) -> Fetched:
        found = self._known(build_id, kind)
        return found or self._with_lock(build_id, kind, lambda: self._download(build_id, kind, forwarded))

    def _known(self, build_id: str, kind: str) -> Fetched | None:
        """What the folder says of a file: the file, a miss, or nothing."""
        found = self._from_cache(build_id, kind)
        if found is None and kind == "debuginfo":
            found = self._from_cache(build_id, COMPOSED)
        if found is not None:
            return found
        miss = self.cache.miss(build_id, kind, self._asked)
        if miss is None or (self.refresh_misses and miss.when < self._started):
            return None
        minutes = f"{miss.age / 60:.0f} min ago"
        return Fetched(None, "missing", [Attempt(self.cache.path, f"no server had it, as found out {minutes}")])

    def _from_cache(self, build_id: str, entry: str) -> Fetched | None:
        path = self.cache.find(build_id, entry)
        if path is None:
            return None
        try:
            other = read_build_id(path)
        except (OSError, ElfError):
            other = None
        if other and same_build_id(other, build_id):
            text = "found, composed of sections" if is_composed(entry) else "found"
            return Fetched(path, "found", [Attempt(self.cache.path, text)], is_composed(entry))
        self._tell(f"{path}: has {other or 'no build id'}, wanted {build_id}; removed")
        self.cache.remove(build_id, entry)
        return None

    def _with_lock(self, build_id: str, entry: str, run: Callable[[], Fetched]) -> Fetched:
        """Fetch as the only one of all processes, or take what the other one got."""
        unasked = self._unasked()
        if unasked is not None:
            return unasked
        try:
            with self.cache.only_one(build_id, entry, self.limits.patience, lambda: self._closed) as is_mine:
                if not is_mine:
                    text = f"another process is fetching it, not waited for longer than {self.limits.patience:g} s"
                    return self._failed_here(text)
                known = self._from_cache(build_id, entry) if is_composed(entry) else self._known(build_id, entry)
                return known or run()
        except OSError as error:
            return self._failed_here(f"cannot be written ({os_error_text(error)})")

    def _failed_here(self, text: str) -> Fetched:
        """The answer where it is the folder that failed."""
        attempts = [Attempt(self.cache.path, text)]
        return Fetched(None, "failed", attempts, failures=attempts)


def is_composed(entry: str) -> bool:
    """Whether the file of this name in the folder is one composed of sections."""
    return entry.startswith(COMPOSED)


def unpadded(build_id: str) -> str:
    """A build id as servers know it: perf and simpleperf fill up shorter ones, of 8 and 16 bytes, to 20."""
    if len(build_id) == SHA1_DIGITS and build_id.endswith("0" * 8):
        return build_id[:16] if build_id.endswith("0" * 24) else build_id[:32]
    return build_id
