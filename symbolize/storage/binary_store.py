"""Binaries in an object store, by build id: a prefix with one of the layouts that say which build id a file has.

Files are looked for under the few names that they can have; nothing is listed. They come into the folder of downloads,
like those of debuginfod servers, and are checked like these (R412, binaries in stores).
"""

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from symbolize.binaries.debuginfod import Fetched, Limits, Progress, Status, default_folder
from symbolize.binaries.debuginfod.cache import ClientCache
from symbolize.binaries.debuginfod.cached_client import CachedClient
from symbolize.binaries.debuginfod.received import Wrong, check_head, verify_file
from symbolize.binaries.debuginfod.types import WORST_FIRST
from symbolize.binaries.remote import Attempt, Kind
from symbolize.core.errors import InputError, UsageError
from symbolize.core.failure_gate import FailureGate
from symbolize.core.files import os_error_text
from symbolize.storage import urls
from symbolize.storage.backend import PIECE, Storage
from symbolize.storage.urls import Denied

MAX_FAILURES: Final = 3
"""Requests in a row without an answer, after which the store is not asked any more."""

LAYOUTS: Final[Mapping[Kind, Sequence[str]]] = {
    "debuginfo": (".build-id/{0}/{1}.debug", "buildid/{0}{1}/debuginfo"),
    "executable": (".build-id/{0}/{1}", "buildid/{0}{1}/executable"),
}
"""The names of a file of each kind: {0} are the first two digits of its build id, {1} the others."""


class TooLarge(Exception):
    """The object is larger than allowed."""


class BinaryStore(CachedClient):
    """A client for the binaries below the URL of an object store; the arguments are those of `Debuginfod`.

    Raises UsageError for a URL of something else, or if its library is missing.
    """

    def __init__(
        self,
        url: str,
        *,
        cache: str | None = None,
        limits: Limits | None = None,
        refresh_misses: bool = False,
        tell: Callable[[str], None] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._storage = Storage.of(url)
        if self._storage.is_local:
            raise UsageError(f"{url}: is no URL of an object store")
        self.servers = [self._storage.shown]
        self._progress = progress
        self._gate = FailureGate(MAX_FAILURES)
        self._checking = threading.Lock()
        self._is_checked = False
        self._stop = ""
        folder = ClientCache(default_folder() if cache is None else cache)
        asked = hashlib.sha256(self._storage.url.encode()).hexdigest()[:32]
        super().__init__(folder, limits or Limits(), asked, refresh_misses, tell or (lambda line: None))

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
        if not self._stop:
            return None
        attempts = [Attempt(self.servers[0], self._stop)]
        return Fetched(None, "skipped", attempts, failures=attempts)

    def _check(self) -> None:
        """Find out whether there is something below the URL: one that is mistyped is no store without the files."""
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
        """Copy the file from the first name that the store has for it."""
        with suppress(OSError):
            self.cache.clean()
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
            except TooLarge as error:
                found["too-large"] = Attempt(place, f"too large: {error}")
            except OSError as error:
                found["failed"] = Attempt(self.cache.path, f"cannot be written: {os_error_text(error)}")
                break
            else:
                self._gate.answered()
                if path is not None:
                    return Fetched(path, "found", [Attempt(place, "found")])
        return self._missed(build_id, kind, found)

    def _missed(self, build_id: str, kind: Kind, found: dict[Status, Attempt]) -> Fetched:
        """The answer where there is no file; a miss goes on record if every name was asked for."""
        status = next((each for each in WORST_FIRST if each in found), None)
        if status is None:
            with suppress(OSError):
                self.cache.write_miss(build_id, kind, self._asked)
            return Fetched(None, "missing", [Attempt(self.servers[0], "has no such file")])
        attempts = [*found.values()]
        return Fetched(None, status, attempts, failures=[found[each] for each in found if each != "too-large"])

    def _copy(self, name: str, build_id: str, kind: Kind) -> str | None:
        """Copy an object to the folder and check it; None if there is none. Raises InputError, Wrong, TooLarge and
        OSError."""
        size = self._storage.size(name)
        if size is None:
            return None
        if size > self.limits.max_size:
            raise TooLarge(f"{size:,} bytes, {self.limits.max_size:,} allowed")
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
