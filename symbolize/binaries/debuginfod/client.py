"""Fetching files by build id from debuginfod servers, through a folder shared with other clients."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Self
from urllib.parse import quote

from symbolize.binaries.build_id import same_build_id
from symbolize.binaries.debuginfod.cache import COMPOSED, ClientCache, default_folder, section_entry, source_entry
from symbolize.binaries.debuginfod.cached_client import CachedClient
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
from symbolize.binaries.remote import Attempt, Kind
from symbolize.core.errors import InputError, UsageError, printable
from symbolize.elf import ElfImage
from symbolize.elf.notes import gnu_build_id

SECTION_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
MAX_SOURCE = 8 << 20
"""Bytes of a source file."""


class Debuginfod(CachedClient):
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

        self.servers = settings.servers
        asked = hashlib.sha256("\n".join(sorted(server.url for server in self.servers)).encode()).hexdigest()[:32]
        tell = tell or (lambda line: None)
        super().__init__(ClientCache(settings.cache), settings.limits, asked, refresh_misses, tell)
        for problem in settings.problems:
            self._tell(problem)
        for name, value in settings.headers.items():
            check_header(name, value)
        self.refresh_servers = refresh_misses or refresh_servers
        self._too_large: set[Server] = set()
        limits = settings.limits
        self.wants_progress = settings.wants_progress
        askable = [server for server in self.servers if not server.refusal]
        self._transport = Transport(askable, settings.headers, limits.connect_time, settings.proxies)
        self._health = ServerHealth(self.servers, self._transport, self.cache, limits, self.refresh_servers, self._tell)
        self._downloader = Downloader(self._transport, self.cache, limits, self._tell, progress)
        for server in self.servers:
            if server.refusal:
                self._tell(f"{server.url}: not asked: {server.refusal}")

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
        self.end(self._transport.cancel_all)
        self._transport.close()

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
            self._downloader.race(request, self._health.usable(request.outcomes))
            return self._result(request.won or None, request.outcomes)

        return self._single(build_id, entry, download)

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

    def probe(self) -> dict[str, tuple[bool, str]]:
        """Try out all servers at once, unless that was done in the last minutes: whether each answers, and a text.

        Happens by itself before the first request.
        """
        return self._health.probe()

    def _unasked(self) -> Fetched | None:
        outcomes: dict[Server, Outcome] = {}
        return None if self._health.usable(outcomes) else self._result(None, outcomes)

    def _download(self, build_id: str, kind: Kind, forwarded: str) -> Fetched:
        """Ask the servers for a whole file, or for its sections if it is large."""
        with suppress(OSError):
            self.cache.clean()
        above = self.limits.sections_above if kind == "debuginfo" else None
        request = Request(build_id, kind, kind, kind, self.limits.max_size, above, forwarded=forwarded)
        notes: list[Attempt] = []
        self._downloader.race(request, self._health.usable(request.outcomes))
        if request.large is not None:
            composed = self._compose(build_id, NEEDED, None, [request.large])
            if composed.path is not None:
                return composed
            notes = composed.attempts
            request = Request(build_id, kind, kind, kind, self.limits.max_size, None, forwarded=forwarded)
            self._downloader.race(request, self._health.usable(request.outcomes))
        if request.won:
            return self._result(request.won, request.outcomes, notes)
        everybody = [request.outcomes.get(server) for server in self.servers]
        if everybody and all(outcome is not None and outcome.status == "missing" for outcome in everybody):
            with suppress(OSError):
                self.cache.write_miss(build_id, kind, self._asked)
        for server, outcome in request.outcomes.items():
            if outcome.status == "too-large" and server not in self._too_large:
                self._too_large.add(server)
                self._tell(f"{server.url}: {outcome.text}; such files are not fetched (max_size, DEBUGINFOD_MAXSIZE)")
        return self._result(None, request.outcomes, notes)

    def _result(self, path: str | None, outcomes: Mapping[Server, Outcome], notes: Sequence[Attempt] = ()) -> Fetched:
        attempts = [*notes]
        for server in self.servers:
            if server in outcomes:
                attempts.append(Attempt(server.url, outcomes[server].text))
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


def check_note(path: str, build_id: str, big_endian: bool) -> None:
    """Check the build id in a note section. Raises NotComposable."""
    with open(path, "rb") as file:
        found = gnu_build_id(memoryview(file.read(1 << 20)), big_endian)
    if found is None or not same_build_id(found, build_id):
        raise NotComposable(f"section {NOTE} has {found or 'no build id'}, wanted {build_id}")
