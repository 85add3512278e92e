"""Files from debuginfod servers for a batch: fetched once, by the process that drives it, in nobody else's time.

Workers ask nobody. They hand out what is at hand and note what is wanted (`AtHand`); the driver fetches that between
two scans and writes the results to the storage that all share (`Fetcher`).
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from symbolize.batch.storage.backend import Storage
from symbolize.binaries import Answer, Attempt, Kind
from symbolize.core.errors import InputError

if TYPE_CHECKING:
    from symbolize.binaries.debuginfod import Debuginfod, Fetched

FOLDER: Final = "fetched"
"""The folder of the exchange storage with the results of fetches, and the files where workers are on other machines."""
ANSWERS: Final = "answers.json"
FROM_ENVIRONMENT: Final = "env"
NOT_NEEDED: Final = "not-needed"
"""The status of an executable whose debug file has the code."""
LOOK: Final = 0.2
"""Seconds between two looks whether to stop."""

Wanted = Mapping[str, Sequence[Kind]]
"""Build ids with the kinds of files of each, in the order in which they are asked for."""


class NotAsked(NamedTuple):
    """The answer of a server that was not asked, or was by the driver: a path, else each place and what it said."""

    path: str | None
    attempts: Sequence[Attempt]
    failures: Sequence[Attempt] = ()


class FetchedFile(NamedTuple):
    """What came of fetching a file: its bytes, or why there is none, and whether that is because servers failed."""

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
    tell: Callable[[str], None] | None = None,
    folder: str = "",
) -> "Debuginfod":
    """The client for the servers at `urls`, or for `env` for those of DEBUGINFOD_URLS; its files are in `folder`, by
    default the user's. Raises UsageError."""
    from symbolize.binaries.debuginfod import Debuginfod

    is_env = tuple(urls) == (FROM_ENVIRONMENT,)
    make = Debuginfod.from_environment if is_env else partial(Debuginfod, list(urls))
    return make(cache=folder or None, refresh_misses=refresh_misses, refresh_servers=refresh_servers, tell=tell)


class AtHand:
    """Stands for servers in a worker: hands out what the folder of `client` has and what the driver left in `exchange`.
    `wanted` collects what neither knows of."""

    def __init__(self, client: "Debuginfod", exchange: Storage) -> None:
        self._client = client
        self._exchange = exchange
        self._answers: dict[str, Any] = {}
        self._epoch = -1
        self.wanted: dict[str, list[Kind]] = {}

    def begin(self, epoch: int) -> None:
        """Look again for what the driver left, if `epoch` is another than before."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._answers = read_answers(self._exchange)

    def fetch(self, build_id: str, kind: Kind) -> Answer:
        """The file, what the servers said to the driver, or that they were not asked yet."""
        name = self._client.name_of(build_id, kind)
        if not name:
            return self._client.fetch(build_id, kind)  # that is no build id, and nobody is asked
        noted = self._answers.get(name)
        if noted is not None:
            return self._noted(name, noted)
        known = self._client.known(build_id, kind)
        if known is not None:
            return known
        kinds = self.wanted.setdefault(build_id, [])
        if kind not in kinds:
            kinds.append(kind)
        not_yet = [Attempt("debuginfod", "not asked yet")]
        return NotAsked(None, not_yet, not_yet)

    def _noted(self, name: str, noted: dict[str, Any]) -> Answer:
        """What the driver noted: the file at its path, or from the exchange place where that is another machine's."""
        attempts, failures = ([Attempt(*each) for each in noted[key]] for key in ("attempts", "failures"))
        path = noted["path"]
        if path is None or os.path.exists(path):
            return NotAsked(path, attempts, failures)
        try:
            return NotAsked(self._exchange.read_file(f"{FOLDER}/{name}"), attempts)
        except InputError as error:
            gone = [Attempt(path, f"was fetched, and is gone: {error}")]
            return NotAsked(None, gone, gone)

    def prefetch(self, wanted: Iterable[tuple[str, Sequence[Kind], float]]) -> None:
        """Do nothing: the driver does."""

    def take_wanted(self) -> dict[str, list[Kind]]:
        """What was wanted since this was asked last."""
        wanted, self.wanted = self.wanted, {}
        return wanted


class Fetcher:
    """Fetches files in the driver, and writes the results to `exchange`; a context manager, which ends downloads.

    With `hand_on` the files are put there too, for workers on other machines. `problem` gets what is wrong that
    is no fault of an input: where, and what.
    """

    def __init__(
        self,
        urls: Sequence[str],
        refresh_misses: bool,
        exchange: Storage,
        hand_on: bool,
        problem: Callable[[str, str], None],
    ) -> None:
        self._exchange = exchange
        self._hand_on = hand_on
        self._problem = problem
        self._answers = read_answers(exchange)
        self.client = open_client(urls, refresh_misses, refresh_servers=True, tell=self._tell)
        if not self.client.servers:
            problem("debuginfod", "no server is named that may be asked")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def _tell(self, line: str) -> None:
        """Report the messages of the client, but for its verdicts, whose cost is reported after the pass."""
        server, _, text = line.partition(": ")
        if not text.startswith(("answers (", "unreachable, not asked")):
            self._problem(server, text)

    def fetch(self, wanted: Wanted, done: Callable[[FetchedFile], None], is_stopping: Callable[[], bool]) -> None:
        """Fetch what is wanted, unless `is_stopping`; `done` is called for each file. Raises OutputError."""
        began = time.perf_counter()
        failed: dict[str, list[str]] = {}
        pending: dict[Future[dict[Kind, Fetched]], str] = {}
        for build_id, kinds in wanted.items():
            for future in self.client.prefetch([(build_id, kinds, 0.0)]):
                pending[future] = build_id
        while pending and not is_stopping():
            for future in wait(pending, LOOK, FIRST_COMPLETED).done:
                build_id = pending.pop(future)
                answers = future.result()
                for kind in wanted[build_id]:
                    fetched = answers.get(kind)
                    if fetched is None:
                        done(FetchedFile(build_id, kind, 0, 0.0, NOT_NEEDED, ()))
                        continue
                    self._note(build_id, kind, fetched)
                    size = os.stat(fetched.path).st_size if fetched.path is not None else 0
                    seconds = time.perf_counter() - began
                    done(FetchedFile(build_id, kind, size, seconds, fetched.status, tuple(fetched.failures)))
                    for place, text in fetched.failures:
                        failed.setdefault(place, []).append(text)
        self._write()
        for place, texts in failed.items():
            self._problem(place, f"failed for {len(texts)} files, at first: {texts[0]}")

    def _note(self, build_id: str, kind: Kind, fetched: "Fetched") -> None:
        """Keep the result of a fetch for the workers."""
        name = self.client.name_of(build_id, kind)
        if not name:
            return
        if fetched.path is not None and self._hand_on:
            self._exchange.put(f"{FOLDER}/{name}", fetched.path)
        self._answers[name] = {"path": fetched.path, "attempts": fetched.attempts, "failures": fetched.failures}

    def _write(self) -> None:
        with self._exchange.write(f"{FOLDER}/{ANSWERS}") as file:
            file.write(json.dumps(self._answers).encode())


def read_answers(exchange: Storage) -> dict[str, Any]:
    """What the driver left; nothing where that is not there or damaged."""
    try:
        with open(exchange.read_file(f"{FOLDER}/{ANSWERS}"), "rb") as file:
            answers = json.load(file)
    except (InputError, OSError, ValueError):
        return {}
    return answers if isinstance(answers, dict) else {}
