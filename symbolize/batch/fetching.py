"""Files from debuginfod servers for a batch: fetched once, by the driver, outside of the time limits of inputs.

Workers ask no server. They return what is fetched already and note what is wanted (`WorkerServers`); the driver fetches
that between two scans and writes the results to the storage that workers share (`Fetcher`).
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from symbolize.binaries import Attempt, FetchResult, Kind
from symbolize.core.closing import Closeable
from symbolize.core.errors import InputError
from symbolize.storage.backend import Storage

if TYPE_CHECKING:
    from symbolize.binaries.debuginfod import Fetched
    from symbolize.storage.servers import AnyClient

ANSWERS: Final = "fetched.json"
"""The file with the results of fetches, in the storage that workers share."""
NOT_NEEDED: Final = "not-needed"
"""The status of an executable whose debug file has the code."""
STOP_INTERVAL: Final = 0.2
"""Seconds between two checks whether to stop."""

Wanted = Mapping[str, Sequence[Kind]]
"""Build ids with the kinds of files of each, in the order in which they are asked for."""


class WorkerAnswer(NamedTuple):
    """The answer to a worker: a path, or None and the attempts of the driver, or that there were none."""

    path: str | None
    attempts: Sequence[Attempt]
    failures: Sequence[Attempt] = ()


class FetchedFile(NamedTuple):
    """The result of fetching a file: its bytes, or why there is none, and which servers failed."""

    build_id: str
    kind: str
    size: int
    seconds: float
    status: str
    failures: tuple[Attempt, ...]


def open_client(
    urls: Sequence[str],
    refresh_misses: bool,
    refresh_servers: bool = False,
    report: Callable[[str], None] = lambda line: None,
    folder: str = "",
) -> "AnyClient":
    """The client for the servers and stores at `urls`, or for `env` for those of DEBUGINFOD_URLS; its files are in
    `folder`, by default the user's. Raises UsageError."""
    from symbolize.binaries.debuginfod import FetchOptions
    from symbolize.storage.servers import open_servers

    options = FetchOptions(folder or None, refresh_misses=refresh_misses, refresh_servers=refresh_servers, tell=report)
    return open_servers(urls, options)


class WorkerServers:
    """The servers of a worker: returns what is in the folder of `client`, and what the driver recorded in `shared`.
    `wanted` collects what neither has."""

    def __init__(self, client: "AnyClient", shared: Storage) -> None:
        self._client = client
        self._shared = shared
        self._answers: dict[str, Any] = {}
        self._epoch = -1
        self.wanted: dict[str, list[Kind]] = {}

    def begin(self, epoch: int) -> None:
        """Read what the driver recorded again, if `epoch` is new."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._answers = read_answers(self._shared)

    def fetch(self, build_id: str, kind: Kind) -> FetchResult:
        """The file, what the servers answered the driver, or that they were not asked yet."""
        name = self._client.name_of(build_id, kind)
        if not name:
            return self._client.fetch(build_id, kind)  # that is no build id, and nobody is asked
        recorded = self._answers.get(name)
        if recorded is not None:
            return answer_of(recorded)
        known = self._client.known(build_id, kind)
        if known is not None:
            return known
        kinds = self.wanted.setdefault(build_id, [])
        if kind not in kinds:
            kinds.append(kind)
        not_yet = [Attempt("debuginfod", "not asked yet")]
        return WorkerAnswer(None, not_yet, not_yet)

    def prefetch(self, wanted: Iterable[tuple[str, Sequence[Kind], float]]) -> None:
        """Nothing: the driver fetches."""

    def take_wanted(self) -> dict[str, list[Kind]]:
        """What was wanted since the last call."""
        wanted, self.wanted = self.wanted, {}
        return wanted


def answer_of(recorded: dict[str, Any]) -> WorkerAnswer:
    """What the driver recorded of a file, as the answer to a worker."""
    attempts, failures = ([Attempt(*each) for each in recorded[key]] for key in ("attempts", "failures"))
    path = recorded["path"]
    if path is not None and not os.path.exists(path):
        gone = [Attempt(path, "was fetched, and was removed, or is in a folder that this machine does not reach")]
        return WorkerAnswer(None, gone, gone)
    return WorkerAnswer(path, attempts, failures)


class Fetcher(Closeable):
    """Fetches files in the driver, and writes the results to `shared`; closing it ends downloads.

    `problem` is called with a server and what is wrong with it.
    """

    def __init__(
        self,
        urls: Sequence[str],
        refresh_misses: bool,
        shared: Storage,
        problem: Callable[[str, str], None],
    ) -> None:
        self._shared = shared
        self._problem = problem
        self._answers = read_answers(shared)
        self.client = open_client(urls, refresh_misses, refresh_servers=True, report=self._report)
        if not self.client.servers:
            problem("debuginfod", "no server is named that may be asked")

    def close(self) -> None:
        """End all downloads."""
        self.client.close()

    def _report(self, line: str) -> None:
        """Report a message of the client, unless it is about the state of a server, which is reported after the
        pass."""
        server, _, text = line.partition(": ")
        if not text:  # of no server
            self._problem("debuginfod", line)
        elif not text.startswith(("answers (", "unreachable, not asked")):
            self._problem(server, text)

    def fetch(self, wanted: Wanted, done: Callable[[FetchedFile], None], is_stopping: Callable[[], bool]) -> None:
        """Fetch what is wanted until `is_stopping`; `done` is called for each file. Raises OutputError."""
        began = time.perf_counter()
        failed: dict[str, list[str]] = {}
        pending: dict[Future[dict[Kind, Fetched]], str] = {}
        for build_id, kinds in wanted.items():
            for future in self.client.prefetch([(build_id, kinds, 0.0)]):
                pending[future] = build_id
        while pending and not is_stopping():
            for future in wait(pending, STOP_INTERVAL, FIRST_COMPLETED).done:
                build_id = pending.pop(future)
                answers = future.result()
                for kind in wanted[build_id]:
                    fetched = answers.get(kind)
                    if fetched is None:
                        done(FetchedFile(build_id, kind, 0, 0.0, NOT_NEEDED, ()))
                        continue
                    self._record(build_id, kind, fetched)
                    size = os.stat(fetched.path).st_size if fetched.path is not None else 0
                    seconds = time.perf_counter() - began
                    done(FetchedFile(build_id, kind, size, seconds, fetched.status, tuple(fetched.failures)))
                    for place, text in fetched.failures:
                        failed.setdefault(place, []).append(text)
        self._write()
        for place, texts in failed.items():
            self._problem(place, f"failed for {len(texts)} files, first: {texts[0]}")

    def _record(self, build_id: str, kind: Kind, fetched: "Fetched") -> None:
        """Record the result of a fetch for the workers."""
        name = self.client.name_of(build_id, kind)
        if name:
            self._answers[name] = {"path": fetched.path, "attempts": fetched.attempts, "failures": fetched.failures}

    def _write(self) -> None:
        with self._shared.write(ANSWERS) as file:
            file.write(json.dumps(self._answers).encode())


def read_answers(shared: Storage) -> dict[str, Any]:
    """What the driver recorded; nothing if that is missing or damaged."""
    try:
        with open(shared.read_file(ANSWERS), "rb") as file:
            answers = json.load(file)
    except (InputError, OSError, ValueError):
        return {}
    return answers if isinstance(answers, dict) else {}
