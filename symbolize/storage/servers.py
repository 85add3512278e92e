"""The servers and object stores that files are fetched from by build id, as one client.

A store is a prefix with one of the layouts that say which build id a file has. Files are looked for under the few names
that they can have; nothing is listed. They come into the folder of downloads, like those of debuginfod servers, and are
checked like these (R412, binaries in stores).
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from symbolize.binaries.debuginfod import Debuginfod, FetchOptions, Limits, Progress
from symbolize.binaries.debuginfod.cache import FileTooLarge, Wrong, check_head, verify_file
from symbolize.binaries.debuginfod.client import CachedClient, Prefetching
from symbolize.binaries.remote import WORST_FIRST, Attempt, Fetched, Kind, Status, missed
from symbolize.core.errors import InputError, UsageError
from symbolize.core.failure_gate import FailureGate
from symbolize.core.files import os_error_text
from symbolize.storage import urls
from symbolize.storage.backend import PIECE, Storage
from symbolize.storage.urls import Denied, is_store

MAX_FAILURES: Final = 3
"""Requests in a row without an answer, after which the store is not asked any more."""

LAYOUTS: Final[Mapping[Kind, Sequence[str]]] = {
    "debuginfo": (".build-id/{0}/{1}.debug", "buildid/{0}{1}/debuginfo"),
    "executable": (".build-id/{0}/{1}", "buildid/{0}{1}/executable"),
}
"""The names of a file of each kind: {0} are the first two digits of its build id, {1} the others."""
FROM_ENVIRONMENT: Final = "env"
"""Stands for the servers of DEBUGINFOD_URLS."""


class BinaryStore(CachedClient):
    """A client for the binaries below the URL of an object store.

    Raises UsageError for a URL of something else, or if its library is missing.
    """

    def __init__(self, url: str, options: FetchOptions | None = None) -> None:
        self._storage = Storage.of(url)
        if self._storage.is_local:
            raise UsageError(f"{url}: is no URL of an object store")
        self.servers = [self._storage.shown]
        options = options or FetchOptions()
        self._progress = options.progress
        self._gate = FailureGate(MAX_FAILURES)
        self._checking = threading.Lock()
        self._is_checked = False
        self._stop = ""
        super().__init__(self._storage.url, options)

    def close(self) -> None:
        """End the downloads that have not begun."""
        self.end(lambda: None)

    def probe(self) -> dict[str, tuple[bool, str]]:
        """Whether the store answers now, and a text, by its URL."""
        with self._checking:
            self._check()
            return {self.servers[0]: (not self._stop, self._stop or "answers")}

    def _unasked(self) -> Fetched | None:
        with self._checking:
            if not self._is_checked:
                self._check()
                if self._stop:
                    self._tell(f"{self.servers[0]}: {self._stop}")
        return missed([("skipped", Attempt(self.servers[0], self._stop))]) if self._stop else None

    def _check(self) -> None:
        """Find out whether there is something below the URL: one that is mistyped is no store without the files.

        A miss counts only if there is, and it answered for each name; else it is a failure. After three requests
        without an answer a client asks no more.
        """
        self._is_checked, self._stop, self._gate = True, "", FailureGate(MAX_FAILURES)
        try:
            if urls.entry_at(urls.files_at(self._storage.url)) is None:
                self._stop = "holds no files"
        except Denied:
            pass  # single files may be readable
        except InputError as error:
            self._stop = error.problem

    def _failed_once(self, error: InputError) -> None:
        """Count a request without an answer, and stop asking after some."""
        with self._checking:
            if self._gate.failed():
                self._stop = f"not asked any more after {MAX_FAILURES} failures: {error.problem}"
                self._tell(f"{self.servers[0]}: {self._stop}")

    def _download(self, build_id: str, kind: Kind, forwarded: str) -> Fetched:
        """Copy the file from the first name that the store has for it.

        A build id makes two names of each kind; it is checked first, so that none leads elsewhere. What comes has to
        have the announced size and the build id, and replaces nothing (R412, binaries in stores).
        """
        found: dict[Status, Attempt] = {}
        for layout in LAYOUTS[kind]:
            name = layout.format(build_id[:2], build_id[2:])
            place = f"{self.servers[0]}/{name}"
            try:
                path = self._copy(name, build_id, kind)
            except Denied as error:
                found["denied"] = Attempt(place, error.problem)
            except InputError as error:
                self._failed_once(error)
                found["failed"] = Attempt(place, error.problem)
                break
            except Wrong as error:
                found["wrong"] = Attempt(place, str(error))
            except FileTooLarge as error:
                found["too-large"] = Attempt(place, f"too large: {error}")
            except OSError as error:
                found["failed"] = Attempt(self.cache.path, f"cannot be written: {os_error_text(error)}")
                break
            else:
                self._gate.answered()
                if path is not None:
                    return Fetched(path, "found", [Attempt(place, "found")])
        return missed([*found.items()] or [("missing", Attempt(self.servers[0], "has no such file"))])

    def _copy(self, name: str, build_id: str, kind: Kind) -> str | None:
        """Copy an object to the folder and check it; None if there is none. Raises InputError, Wrong, FileTooLarge and
        OSError."""
        size = self._storage.size(name)
        if size is None:
            return None
        if size > self.limits.max_size:
            raise FileTooLarge(f"{size:,} bytes, {self.limits.max_size:,} allowed")
        with self._storage.open(name) as source, self.cache.writing(build_id, kind) as file:
            done = 0
            while data := source.read(PIECE):
                if not done:
                    check_head(data)
                file.write(data)
                done += len(data)
                if done > size:
                    break
                if self._progress is not None:
                    self._progress(Progress(build_id, kind, self.servers[0], done, size))
            if done != size:
                raise Wrong("refused: changed while it was read")
            file.flush()
            verify_file(file.name, build_id)
        return self.cache.path_of(build_id, kind)


class SeveralClients(Prefetching):
    """Clients that are asked one after another, until one has the file; closing it closes them."""

    def __init__(self, clients: "Sequence[Debuginfod | BinaryStore]") -> None:
        super().__init__(Limits().workers)
        self._clients = clients
        self.servers = [server for client in clients for server in client.servers]

    def close(self) -> None:
        """End all downloads. What was fetched stays."""
        with ExitStack() as held:
            for client in self._clients:
                held.push(client)
            self.end(lambda: None)

    def fetch(self, build_id: str, kind: Kind, forwarded: str = "") -> Fetched:
        """The file, or why no client has it."""
        return first_found(client.fetch(build_id, kind, forwarded) for client in self._clients)

    def fetch_source(self, build_id: str, path: str, forwarded: str = "") -> Fetched:
        """The source file, or why no client has it."""
        return first_found(client.fetch_source(build_id, path, forwarded) for client in self._clients)

    def known(self, build_id: str, kind: Kind) -> Fetched | None:
        """What is known without anybody being asked: the file, a miss of all, or nothing."""
        answers = [client.known(build_id, kind) for client in self._clients]
        known = [answer for answer in answers if answer is not None]
        found = next((answer for answer in known if answer.path is not None), None)
        return found or (joined(known) if len(known) == len(answers) else None)

    def probe(self) -> dict[str, tuple[bool, str]]:
        """Whether each answers, and a text."""
        return {server: verdict for client in self._clients for server, verdict in client.probe().items()}


AnyClient = Debuginfod | BinaryStore | SeveralClients


def first_found(asked: Iterable[Fetched]) -> Fetched:
    """The first answer with a file, or why there is none; clients behind that are not asked."""
    answers: list[Fetched] = []
    for answer in asked:
        if answer.path is not None:
            return answer
        answers.append(answer)
    return joined(answers)


def joined(answers: Sequence[Fetched]) -> Fetched:
    """The answer of clients none of which has the file."""
    seen = {answer.status for answer in answers}
    status = next((each for each in WORST_FIRST if each in seen), answers[0].status)
    attempts = [attempt for answer in answers for attempt in answer.attempts]
    return Fetched(None, status, attempts, failures=[each for answer in answers for each in answer.failures])


def open_servers(urls: Sequence[str], options: FetchOptions) -> AnyClient:
    """The client for all of `urls`: object stores, which are asked first, and debuginfod servers, or `env` for those of
    DEBUGINFOD_URLS, whose variables have limits of their own. Raises UsageError."""
    servers = [url for url in urls if not is_store(url)]
    with ExitStack() as held:
        clients: list[Debuginfod | BinaryStore] = [
            held.enter_context(BinaryStore(url, options)) for url in urls if is_store(url)
        ]
        if servers == [FROM_ENVIRONMENT]:
            clients.append(held.enter_context(Debuginfod.from_environment(options=options)))
        elif servers or not clients:
            clients.append(held.enter_context(Debuginfod(servers, options)))
        held.pop_all()
    return clients[0] if len(clients) == 1 else SeveralClients(clients)
