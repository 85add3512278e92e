"""Fetching files by build id from debuginfod servers, through a folder shared with other clients."""

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Self

from symbolize.binaries.build_id import is_build_id, same_build_id
from symbolize.binaries.debuginfod.cache import COMPOSED, ClientCache, default_folder, section_entry
from symbolize.binaries.debuginfod.sections import NEEDED, NOTE, REQUIRED, NotComposable, compose
from symbolize.binaries.debuginfod.server import Server, check_header, parse_servers
from symbolize.binaries.debuginfod.types import (
    FAILURES,
    WORST_FIRST,
    Fetched,
    Limits,
    Outcome,
    Progress,
    Request,
    Settings,
    Status,
)
from symbolize.binaries.remote import Attempt, Kind, fetch_in_turn
from symbolize.core.closing import Closeable
from symbolize.core.errors import InputError, UsageError, printable
from symbolize.core.files import os_error_text
from symbolize.elf import ElfError, ElfImage, read_build_id
from symbolize.elf.notes import gnu_build_id

SECTION_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
SHA1_DIGITS = 40
FAILURE_LIFE = 600.0
"""Seconds for which a failed fetch is not tried again by the same client."""


class Debuginfod(Closeable):
    """A client for debuginfod servers; a context manager. Any number of threads may use one.

    `tell` is called with a line for a person: verdicts on servers and what is wrong with the configuration.
    `progress` is called while bytes come, from several threads. `refresh_misses` asks again for what was missing before
    the client was made, `refresh_servers` servers that did not answer before.
    """

    def __init__(
        self,
        urls: Iterable[str],
        *,
        cache: str | os.PathLike[str] | None = None,
        limits: Limits | None = None,
        headers: Mapping[str, str] | None = None,
        proxies: Mapping[str, str] | None = None,
        refresh_misses: bool = False,
        refresh_servers: bool = False,
        tell: Callable[[str], None] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        """`urls` as in DEBUGINFOD_URLS, tags included; `proxies` for `http`, `https` or `all`, and `no` as in no_proxy.

        Raises UsageError, without credentials in its text.
        """
        servers, problems = parse_servers(urls)
        if problems:
            raise UsageError(problems[0])
        folder = default_folder() if cache is None else os.fspath(cache)
        settings = Settings(servers, folder, limits or Limits(), headers or {}, proxies or {})
        self._set_up(settings, refresh_misses, refresh_servers, tell, progress)

    def _set_up(
        self,
        settings: Settings,
        refresh_misses: bool,
        refresh_servers: bool,
        tell: Callable[[str], None] | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        # urllib3 is imported when a client is made, not before.
        from symbolize.binaries.debuginfod.download import Downloader
        from symbolize.binaries.debuginfod.server_health import ServerHealth
        from symbolize.binaries.debuginfod.transport import Transport

        self._tell = tell or (lambda line: None)
        for problem in settings.problems:
            self._tell(problem)
        for name, value in settings.headers.items():
            check_header(name, value)
        self.refresh_misses, self.refresh_servers = refresh_misses, refresh_misses or refresh_servers
        self.servers = [server for server in settings.servers if server.ima != "enforcing"]
        self.limits = limits = settings.limits
        self.cache = ClientCache(settings.cache)
        self.wants_progress = settings.wants_progress
        self._skipped = [server for server in settings.servers if server.ima == "enforcing"]
        self._transport = Transport(self.servers, settings.headers, limits.connect_time, settings.proxies)
        self._health = ServerHealth(self.servers, self._transport, self.cache, limits, self.refresh_servers, self._tell)
        self._downloader = Downloader(self._transport, self.cache, limits, self._tell, progress)
        self._asked = hashlib.sha256("\n".join(sorted(server.url for server in self.servers)).encode()).hexdigest()[:32]
        self._started = time.time()
        self._lock = threading.Lock()
        self._flights: dict[tuple[str, str], Future[Fetched]] = {}
        self._failed: dict[tuple[str, str], tuple[float, Fetched]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False
        for server in self._skipped:
            self._tell(f"{server.url}: not asked, it demands signatures (ima:enforcing), which cannot be checked here")

    @classmethod
    def from_environment(
        cls,
        environment: Mapping[str, str] | None = None,
        *,
        cache: str | os.PathLike[str] | None = None,
        refresh_misses: bool = False,
        refresh_servers: bool = False,
        tell: Callable[[str], None] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Self:
        """The client that the DEBUGINFOD_... variables describe. What is wrong with them is reported and left out."""
        from symbolize.binaries.debuginfod.environment import read_environment

        settings = read_environment(os.environ if environment is None else environment)
        if cache is not None:
            settings.cache = os.fspath(cache)
        client = cls.__new__(cls)
        client._set_up(settings, refresh_misses, refresh_servers, tell, progress)
        return client

    def close(self) -> None:
        """End all downloads. What was fetched stays."""
        with self._lock:
            self._closed = True
            pool = self._pool
        self._transport.cancel_all()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        self._transport.close()

    # What to ask for.

    def fetch(self, build_id: str, kind: Kind) -> Fetched:
        """The debug file or the executable with a build id, from the folder or a server. Never raises for a miss.

        A thread that asks for what another one is fetching waits for the same result.
        """
        if kind not in ("debuginfo", "executable"):
            raise UsageError(f"debuginfod has no {kind!r}")
        return self._single(build_id, kind, lambda asked: self._fetch(asked, kind))

    def known(self, build_id: str, kind: Kind) -> Fetched | None:
        """What the folder says of a file without a server being asked: the file, a miss, or nothing."""
        return self._known(unpadded(build_id.lower()), kind) if is_build_id(build_id) else None

    @staticmethod
    def name_of(build_id: str, kind: Kind) -> str:
        """A name for a file, the same for all spellings of its build id; empty for what is no build id."""
        return f"{unpadded(build_id.lower())}-{kind}" if is_build_id(build_id) else ""

    def fetch_sections(
        self, build_id: str, names: Sequence[str] = NEEDED, executable: str | os.PathLike[str] | None = None
    ) -> Fetched:
        """A debug file composed of sections, whatever its size; `executable` is fetched where it is not given."""

        for name in names:
            if not SECTION_NAME.fullmatch(name):
                raise UsageError(f"debuginfod has no section {printable(name)[:80]!r}")
        entry = composed_entry(names)
        return self._single(
            build_id,
            entry,
            lambda asked: (
                self._from_cache(asked, entry)
                or self._with_lock(
                    asked, entry, lambda: self._compose(asked, names, executable, self._health.usable({}))
                )
            ),
        )

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
                self._pool = ThreadPoolExecutor(self.limits.workers, "debuginfod")
            return [self._pool.submit(fetch_in_turn, self.fetch, build_id, kinds) for build_id, kinds, _ in ordered]

    def probe(self) -> dict[str, tuple[bool, str]]:
        """Try out all servers at once, unless that was done in the last minutes: whether each answers, and a text.

        Happens by itself before the first request.
        """
        return self._health.probe()

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
                    self._failed[key] = time.monotonic(), result
            flight.set_result(result)
            return result
        except BaseException as error:
            flight.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._flights[key]

    def _fetch(self, build_id: str, kind: Kind) -> Fetched:
        found = self._known(build_id, kind)
        return found or self._with_lock(build_id, kind, lambda: self._download(build_id, kind))

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
        outcomes: dict[Server, Outcome] = {}
        usable = self._health.usable(outcomes)
        if not usable:
            return self._result(None, outcomes)
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

    def _download(self, build_id: str, kind: Kind) -> Fetched:
        """Ask the servers for a whole file, or for its sections if it is large."""
        with suppress(OSError):
            self.cache.clean()
        above = self.limits.sections_above if kind == "debuginfo" else None
        request = Request(build_id, kind, kind, kind, self.limits.max_size, above)
        notes: list[Attempt] = []
        self._downloader.race(request, self._health.usable(request.outcomes))
        if request.large is not None:
            composed = self._compose(build_id, NEEDED, None, [request.large])
            if composed.path is not None:
                return composed
            notes = composed.attempts
            request = Request(build_id, kind, kind, kind, self.limits.max_size, None)
            self._downloader.race(request, self._health.usable(request.outcomes))
        if request.won:
            return self._result(request.won, request.outcomes, notes)
        everybody = [request.outcomes.get(server) for server in self.servers]
        if everybody and all(outcome is not None and outcome.status == "missing" for outcome in everybody):
            with suppress(OSError):
                self.cache.write_miss(build_id, kind, self._asked)
        return self._result(None, request.outcomes, notes)

    def _result(self, path: str | None, outcomes: Mapping[Server, Outcome], notes: Sequence[Attempt] = ()) -> Fetched:
        attempts = [*notes]
        for server in self.servers:
            if server in outcomes:
                attempts.append(Attempt(server.url, outcomes[server].text))
        attempts += [Attempt(server.url, "not asked, ima:enforcing") for server in self._skipped]
        if path is not None:
            return Fetched(path, "found", attempts)
        seen = {outcome.status for outcome in outcomes.values()} or {"skipped"}
        failures = [
            Attempt(server.url, outcomes[server].text)
            for server in self.servers
            if server in outcomes and outcomes[server].status in FAILURES
        ]
        return Fetched(None, next(status for status in WORST_FIRST if status in seen), attempts, failures=failures)

    # The sections of a large one.

    def _compose(
        self, build_id: str, names: Sequence[str], executable: str | os.PathLike[str] | None, servers: Sequence[Server]
    ) -> Fetched:
        """A debug file of sections from the first of the servers that has them all."""
        notes: list[Attempt] = []
        if executable is None:
            fetched = self.fetch(build_id, "executable")
            if fetched.path is None:
                notes.append(Attempt(self.cache.path, "no sections without the executable, which was not found"))
                return Fetched(None, fetched.status, [*fetched.attempts, *notes])
            executable = fetched.path
        status: Status = "skipped"
        for server in servers:
            try:
                with ElfImage.open(executable) as image:
                    if image.build_id is None or not same_build_id(image.build_id, build_id):
                        raise NotComposable(f"{executable} has {image.build_id or 'no build id'}, wanted {build_id}")
                    path = self._compose_from(server, build_id, names, image)
                notes.append(Attempt(server.url, "found, composed of sections"))
                return Fetched(path, "found", notes, True)
            except (NotComposable, InputError, OSError, ValueError) as error:
                status = "failed"
                notes.append(Attempt(server.url, f"sections: {printable(str(error))}"))
        return Fetched(None, status, notes)

    def _compose_from(self, server: Server, build_id: str, names: Sequence[str], executable: ElfImage) -> str:
        """Fetch the sections from one server and compose them. Raises NotComposable, InputError, OSError."""
        paths: dict[str, str] = {}
        fetched: list[str] = []
        origins: set[str] = set()
        left = self.limits.max_size
        try:
            for name in (NOTE, *REQUIRED, *(name for name in names if name not in (NOTE, *REQUIRED))):
                entry = section_entry(name)
                request = Request(build_id, f"section {name}", f"section/{name}", entry, left, None, False)
                # Always asked anew: of a section in the folder nobody knows which file it came from.
                self._downloader.race(request, [server])
                outcome = request.outcomes[server]
                if not request.won:
                    if outcome.status != "missing" or name in (NOTE, *REQUIRED):
                        raise NotComposable(f"{name}: {outcome.text}")
                    continue
                fetched.append(entry)
                paths[name] = request.won
                left -= os.stat(request.won).st_size
                if name == NOTE:
                    check_note(request.won, build_id, executable.big_endian)
                elif name.startswith(".debug_"):
                    origins.add(request.origin)
                    if len(origins) > 1:
                        raise NotComposable("sections come from different files: " + ", ".join(sorted(origins)))
            with self.cache.writing(build_id, composed_entry(names)) as file:
                compose(executable, paths, file)
                file.flush()
                with ElfImage.open(file.name) as image:
                    if image.problems or image.build_id is None or not same_build_id(image.build_id, build_id):
                        raise NotComposable("; ".join(image.problems) or "no build id in what was composed")
            return self.cache.path_of(build_id, composed_entry(names))
        finally:
            for entry in fetched:
                self.cache.remove(build_id, entry)


def composed_entry(names: Sequence[str]) -> str:
    """The name of a file composed of some sections."""
    if set(names) == set(NEEDED):
        return COMPOSED
    return f"{COMPOSED}-{hashlib.sha256(' '.join(sorted(names)).encode()).hexdigest()[:16]}"


def is_composed(entry: str) -> bool:
    """Whether the file of this name in the folder is one composed of sections."""
    return entry.startswith(COMPOSED)


def unpadded(build_id: str) -> str:
    """A build id as servers know it: perf and simpleperf fill up shorter ones, of 8 and 16 bytes, to 20."""
    if len(build_id) == SHA1_DIGITS and build_id.endswith("0" * 8):
        return build_id[:16] if build_id.endswith("0" * 24) else build_id[:32]
    return build_id


def check_note(path: str, build_id: str, big_endian: bool) -> None:
    """Check the build id in a note section. Raises NotComposable."""
    with open(path, "rb") as file:
        found = gnu_build_id(memoryview(file.read(1 << 20)), big_endian)
    if found is None or not same_build_id(found, build_id):
        raise NotComposable(f"section {NOTE} has {found or 'no build id'}, wanted {build_id}")
