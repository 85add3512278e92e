"""Files by build id through a folder that is shared with other clients: from debuginfod servers, and what clients of
other stores share with that. The folder is asked first, then the servers; what comes is verified and kept."""

import hashlib
import os
import re
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Self
from urllib.parse import quote

from symbolize.binaries.build_id import is_build_id, same_build_id
from symbolize.binaries.debuginfod.cache import COMPOSED, ClientCache, section_entry, source_entry
from symbolize.binaries.debuginfod.sections import (
    NEEDED,
    NOTE,
    REQUIRED,
    NotComposable,
    check_note,
    compose,
    composed_entry,
)
from symbolize.binaries.debuginfod.server import (
    FetchOptions,
    Limits,
    Request,
    Server,
    ServerAnswer,
    check_header,
    parse_servers,
    read_environment,
)
from symbolize.binaries.links import default_folder
from symbolize.binaries.remote import Attempt, Fetched, Kind, Status, fetch_in_turn, missed
from symbolize.core.closing import Closeable
from symbolize.core.errors import InputError, UsageError, printable
from symbolize.core.files import os_error_text
from symbolize.elf import ElfError, ElfImage, read_build_id

SHA1_DIGITS = 40
FAILURE_LIFE = 600.0
"""Seconds for which a failed fetch is not tried again by the same client."""
MAX_FAILED = 1 << 16
"""Failed fetches that are remembered."""
SECTION_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
MAX_SOURCE = 8 << 20
"""Bytes of a source file."""


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
    """A client that keeps what it fetches, and what is missing, in a folder.

    `asked` identifies what is asked; misses on record hold for the same.
    """

    def __init__(self, asked: str, options: FetchOptions) -> None:
        self.limits = options.limits or Limits()
        super().__init__(self.limits.workers)
        self.cache = ClientCache(default_folder() if options.cache is None else options.cache)
        self._refresh_misses = options.refresh_misses
        self._asked = hashlib.sha256(asked.encode()).hexdigest()[:32]
        self._tell = options.tell
        self._started = time.time()
        self._flights: dict[tuple[str, str], Future[Fetched]] = {}
        self._failed: dict[tuple[str, str], tuple[float, Fetched]] = {}

    @abstractmethod
    def _download(self, build_id: str, kind: Kind, forwarded: str) -> Fetched:
        """Fetch a file that the folder does not have; "missing" only if everybody was asked."""

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

        def download(asked: str) -> Fetched:
            with suppress(OSError):
                self.cache.clean()
            result = self._download(asked, kind, forwarded)
            if result.status == "missing":
                with suppress(OSError):
                    self.cache.write_miss(asked, kind, self._asked)
            return result

        return self._fetch(build_id, kind, download)

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

    def _fetch(self, build_id: str, entry: str, run: Callable[[str], Fetched]) -> Fetched:
        """The file `entry` from the folder, or what `run` gets for it."""
        return self._single(
            build_id, entry, lambda asked: self._known(asked, entry) or self._with_lock(asked, entry, run)
        )

    def _known(self, build_id: str, kind: str) -> Fetched | None:
        """What the folder says of a file: the file, a miss, or nothing."""
        found = self._from_cache(build_id, kind)
        if found is None and kind == "debuginfo":
            found = self._from_cache(build_id, COMPOSED)
        if found is not None:
            return found
        miss = self.cache.miss(build_id, kind, self._asked)
        if miss is None or (self._refresh_misses and miss.when < self._started):
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

    def _with_lock(self, build_id: str, entry: str, run: Callable[[str], Fetched]) -> Fetched:
        """Fetch as the only one of all processes, or take what the other one got."""
        unasked = self._unasked()
        if unasked is not None:
            return unasked
        text = f"another process is fetching it, not waited for longer than {self.limits.patience:g} s"
        try:
            with self.cache.only_one(build_id, entry, self.limits.patience, lambda: self._closed) as is_mine:
                if is_mine:
                    return self._known(build_id, entry) or run(build_id)
        except OSError as error:
            text = f"cannot be written ({os_error_text(error)})"
        return missed([("failed", Attempt(self.cache.path, text))])


class Debuginfod(CachedClient):
    """A client for debuginfod servers; a context manager. Any number of threads may use one."""

    def __init__(self, urls: Iterable[str], options: FetchOptions | None = None) -> None:
        """`urls` as in DEBUGINFOD_URLS, tags included. Raises UsageError, without credentials in its text."""
        servers, problems = parse_servers(urls)
        if problems:
            raise UsageError(problems[0])
        self._set_up(servers, options or FetchOptions())

    def _set_up(self, servers: list[Server], options: FetchOptions, problems: Sequence[str] = ()) -> None:
        # urllib3 is imported when a client is made, not before.
        from symbolize.binaries.debuginfod.download import Downloader

        self.servers = servers
        super().__init__("\n".join(sorted(server.url for server in servers)), options)
        for problem in problems:
            self._tell(problem)
        for name, value in options.headers.items():
            check_header(name, value)
        self.wants_progress = False
        self._too_large: set[Server] = set()
        self._downloader = Downloader(servers, self.cache, self.limits, options)
        for server in servers:
            if server.refusal:
                self._tell(f"{server.url}: not asked: {server.refusal}")

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, options: FetchOptions | None = None
    ) -> Self:
        """The client that the DEBUGINFOD_... variables describe. What is wrong with them is reported and left out."""
        found = read_environment(os.environ if environment is None else environment, options or FetchOptions())
        client = cls.__new__(cls)
        client._set_up(found.servers, found.options, found.problems)
        client.wants_progress = found.wants_progress
        return client

    def close(self) -> None:
        """End all downloads. What was fetched stays."""
        self.end(self._downloader.transport.cancel_all)
        self._downloader.transport.close()

    # What to ask for.

    def fetch_source(self, build_id: str, path: str, forwarded: str = "") -> Fetched:
        """A source file of a build by its absolute path. Never raises for a miss."""
        if not path.startswith("/") or "\0" in path:
            raise UsageError(f"{printable(path)[:80]!r} is no absolute path")
        name = quote(os.fsencode(path).lstrip(b"/"), safe="/")
        entry = source_entry(path)

        def download(asked: str) -> Fetched:
            if (found := self.cache.find(asked, entry)) is not None:
                return Fetched(found, "found", [Attempt(self.cache.path, "found")])
            with suppress(OSError):
                self.cache.clean()
            request = Request(asked, "source", f"source/{name}", entry, MAX_SOURCE, None, False, forwarded)
            self._downloader.race(request)
            return self._result(request.won or None, request.outcomes)

        return self._single(build_id, entry, download)

    def fetch_sections(
        self, build_id: str, names: Sequence[str] = NEEDED, executable: str | os.PathLike[str] | None = None
    ) -> Fetched:
        """A debug file composed of sections, whatever its size; `executable` is fetched where it is not given."""
        for name in names:
            if not SECTION_NAME.fullmatch(name):
                raise UsageError(f"debuginfod has no section {printable(name)[:80]!r}")
        return self._fetch(
            build_id,
            composed_entry(names),
            lambda asked: self._compose(asked, names, executable, self._downloader.usable({})),
        )

    def probe(self) -> dict[str, tuple[bool, str]]:
        """Try out all servers at once, unless that was done in the last minutes: whether each answers, and a text.

        Happens by itself before the first request.
        """
        return self._downloader.probe()

    def _unasked(self) -> Fetched | None:
        outcomes: dict[Server, ServerAnswer] = {}
        return None if self._downloader.usable(outcomes) else self._result(None, outcomes)

    def _download(self, build_id: str, kind: Kind, forwarded: str) -> Fetched:
        """Ask the servers for a whole file, or for its sections if it is large."""
        above = self.limits.sections_above if kind == "debuginfo" else None
        request = Request(build_id, kind, kind, kind, self.limits.max_size, above, forwarded=forwarded)
        notes: list[Attempt] = []
        self._downloader.race(request)
        if request.large is not None:
            composed = self._compose(build_id, NEEDED, None, [request.large])
            if composed.path is not None:
                return composed
            notes = composed.attempts
            request = Request(build_id, kind, kind, kind, self.limits.max_size, None, forwarded=forwarded)
            self._downloader.race(request)
        for server, outcome in request.outcomes.items():
            if not request.won and outcome.status == "too-large" and server not in self._too_large:
                self._too_large.add(server)
                self._tell(f"{server.url}: {outcome.text}; such files are not fetched (max_size, DEBUGINFOD_MAXSIZE)")
        return self._result(request.won or None, request.outcomes, notes)

    def _result(
        self, path: str | None, outcomes: Mapping[Server, ServerAnswer], notes: Sequence[Attempt] = ()
    ) -> Fetched:
        answers = [
            (outcomes[server].status, Attempt(server.url, outcomes[server].text))
            for server in self.servers
            if server in outcomes
        ]
        if path is None:
            return missed(answers, notes)
        return Fetched(path, "found", [*notes, *(attempt for _, attempt in answers)])

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


def is_composed(entry: str) -> bool:
    """Whether the file of this name in the folder is one composed of sections."""
    return entry.startswith(COMPOSED)


def unpadded(build_id: str) -> str:
    """A build id as servers know it: perf and simpleperf fill up shorter ones, of 8 and 16 bytes, to 20."""
    if len(build_id) == SHA1_DIGITS and build_id.endswith("0" * 8):
        return build_id[:16] if build_id.endswith("0" * 24) else build_id[:32]
    return build_id
