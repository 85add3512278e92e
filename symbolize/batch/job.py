"""The driver of a batch: its passes over the inputs, and nothing lost or done twice between them.

Fetch: what debuginfod servers have to be asked for is fetched by the driver, once, and what waits for it scanned again.
Scan: every input is loaded and matched. If the tables of its binaries are at hand it is symbolized right away, else the
addresses that it asks go to a spill file. Decode: each binary is decoded once, for the union of what is asked of it.
Rewrite: the inputs that were put off are symbolized with these tables.
"""

import hashlib
import json
import os
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import takewhile
from typing import Final, TextIO

from symbolize.batch.engines.engine import Engine, Failure, Limits, Outcome, Task
from symbolize.batch.fetching import FOLDER as FETCHED
from symbolize.batch.fetching import Fetcher
from symbolize.batch.manifest import FETCH, UNREACHABLE, InputResult, Item, Manifest, State
from symbolize.batch.monitoring.observers import Observer
from symbolize.batch.run_tables import FOLDER, GIVEN_UP, RunTables
from symbolize.batch.storage.backend import Storage
from symbolize.batch.storage.input_names import Input, NotListed, Problem
from symbolize.batch.storage.inputs import find_inputs, local_path
from symbolize.batch.tasks import (
    SPILLS,
    DecodeResult,
    DecodeTask,
    SymbolizeTask,
    TaskResult,
    WorkerConfig,
    decode_binary,
    open_exchange,
    symbolize_inputs,
)
from symbolize.binaries import Kind
from symbolize.core.errors import OutputError, SymbolizeError
from symbolize.core.reasons import Reason

MAX_FETCHES: Final = 4
"""Times that files are fetched: those that were fetched may show that others are wanted."""
MAX_TOLD: Final = 4
"""Problems of caches that are reported, of all workers together."""
UNREACHABLE_IN_A_ROW: Final = 16
"""Inputs whose servers do not answer, one after the other, after which the others wait for the next run."""
AT_ONCE: Final = 512
"""Inputs that are taken into the manifest together."""


@dataclass(frozen=True)
class Shard:
    """Part `number` of `parts` equal parts of the inputs, from 0 on."""

    number: int = 0
    parts: int = 1

    def takes(self, name: str) -> bool:
        """Whether the input of this name is in this part; each is in one, and those of one name in the same."""
        return zlib.crc32(name.encode(errors="surrogateescape")) % self.parts == self.number


@dataclass(frozen=True)
class Plan:
    """A batch: what is read, where it goes, and how.

    `arguments` are files, folders, patterns and URLs, or - for a list in `listing`. `state` is the folder of the
    manifest. `version` is that of the program: what another one did is done again. Inputs that were quarantined by
    earlier runs are tried again with `retry_quarantined`, all inputs with `again`. `limits` are those of one input, of
    which a task has up to `per_task`, and `decode_limits` those of one binary.
    """

    arguments: Sequence[str]
    config: WorkerConfig
    state: str
    version: str
    limits: Limits = Limits()
    decode_limits: Limits = Limits()
    shard: Shard = Shard()
    listing: TextIO | None = None
    retry_quarantined: bool = False
    again: bool = False
    per_task: int = 1

    @property
    def options(self) -> str:
        """What an output depends on besides its input, as a checksum."""
        config = asdict(self.config)
        for name in ("exchange", "run", "cache", "cache_limit", "hand_on_kept", "refresh_misses", "downloads"):
            del config[name]
        if Storage.of(self.config.out).is_local:  # where it is seen whether an output is there
            del config["out"]
        loading = config["load_options"]  # in two parts, so that manifests of earlier versions stay valid
        config["choice"] = loading.pop("choice")
        config["load_options"] = sorted(loading.items())
        text = json.dumps([self.version, config], sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def new_run() -> str:
    """A name for this process's run, different from all others."""
    return uuid.uuid4().hex


class Batch:
    """Runs a plan with an engine; see the module. `turn` numbers its inputs in the manifest.

    Once `is_stopping`, what is under way is brought to its end and nothing more is begun.
    """

    def __init__(
        self,
        plan: Plan,
        engine: Engine,
        manifest: Manifest,
        observer: Observer,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._plan = plan
        self._engine = engine
        self._manifest = manifest
        self._observer = observer
        self._is_stopping = is_stopping
        self._config = plan.config
        self._out = Storage.of(plan.config.out)
        self._exchange = open_exchange(plan.config)
        self._epoch = 0
        self._spills = 0
        self._told: set[str] = set()
        self._cache_problems: set[str] = set()
        self._unreachable = 0
        self.unlisted = 0
        self.turn = manifest.next_turn()
        self._has_begun = False
        for storage in (self._out, self._exchange):
            storage.sweep()

    @property
    def missing(self) -> int:
        """How many names stood for no input; of `unlisted` of them the servers did not say what there is."""
        return len(self._told)

    def run(self) -> dict[State, int]:
        """Take in the inputs and do all that waits; how many are in each state at the end.

        Raises OutputError when outputs cannot be written, or workers lack what all need; what is done stays done.
        """
        self.take_in()
        return self.work()

    def take_in(self, is_ready: Callable[[Input], bool] = lambda _: True) -> None:
        """Look for inputs, and put those that are ready into the manifest."""
        plan, out = self._plan, self._out
        real = lru_cache(64)(os.path.realpath)
        some: list[Input] = []

        def is_there(output: str, size: int) -> bool:
            return not out.is_local or out.size(output) == size

        def keep() -> None:
            options, retry, again = plan.options, plan.retry_quarantined, plan.again
            self._manifest.add(some, options, self.turn, retry=retry, again=again, is_there=is_there)
            some.clear()

        for found in find_inputs(plan.arguments, plan.listing):
            if isinstance(found, Problem):
                if found.uri not in self._told:
                    self._told.add(found.uri)
                    self.unlisted += isinstance(found, NotListed)
                    self._observer.problem(found.uri, found.sentence)
            elif plan.shard.takes(found.name) and not is_below(found.uri, out, real) and is_ready(found):
                some.append(found)
                if len(some) >= AT_ONCE:
                    keep()
        keep()

    def work(self) -> dict[State, int]:
        """Do all that waits; how many inputs are in each state at the end."""
        counts = self._manifest.count(self.turn)
        waiting = counts[State.NEW] + counts[State.SCANNED]
        if waiting or not self._has_begun:
            if not self._has_begun and not counts[State.SCANNED]:
                self._manifest.forget_questions()
                for folder in (SPILLS, FOLDER, FETCHED):
                    self._clear(folder)
            self._has_begun = True
            self._observer.began(waiting, counts[State.DONE], counts[State.QUARANTINED])
        if not waiting:
            return counts
        # Workers begin anew, as a process of its own would: binaries may have come or changed since they looked.
        self._config = replace(self._plan.config, run=new_run())
        self._scan()
        self._decode()
        self._symbolize("rewrite", State.SCANNED, may_defer=False)
        self._clean_up()
        return self._manifest.count(self.turn)

    def _scan(self) -> None:
        """Scan all that is new, fetch what is wanted and not at hand, and scan again what waits for it."""
        if not self._config.debuginfod:
            self._symbolize("scan", State.NEW, may_defer=True)
            return
        with self._fetcher() as fetcher:
            for number in range(MAX_FETCHES + 1):
                wanted = self._symbolize("scan", State.NEW, may_defer=True, may_want=number < MAX_FETCHES)
                if not wanted or self._is_stopping():
                    return
                self._observer.entered("fetch", sum(map(len, wanted.values())))
                fetcher.fetch(
                    {key: list(kinds) for key, kinds in wanted.items()}, self._observer.fetched, self._is_stopping
                )

    def _fetcher(self) -> Fetcher:
        """What fetches from the servers."""
        config = self._config
        return Fetcher(
            config.debuginfod, config.refresh_misses, self._exchange, config.hand_on_kept, self._observer.problem
        )

    def retry_failed(self) -> None:
        """Take up again the inputs whose servers did not answer, those that lack names because a binary was written to,
        and those that lack some because a server failed, if one of the servers answers by now."""
        self._manifest.retry_failed(self.turn, UNREACHABLE)
        self._manifest.retry_failed(self.turn, Reason.CHANGED.code)
        if self._config.debuginfod and self._manifest.has(self.turn, Reason.SERVER_FAILED.code):
            with self._fetcher() as fetcher:
                if any(is_up for is_up, _ in fetcher.client.probe().values()):
                    self._manifest.retry_failed(self.turn, Reason.SERVER_FAILED.code)

    def _symbolize(
        self, stage: str, state: State, may_defer: bool, may_want: bool = False
    ) -> dict[str, dict[Kind, None]]:
        """One pass over the inputs in `state`; the files to be fetched, by build id."""
        wanted: dict[str, dict[Kind, None]] = {}
        total = self._manifest.count(self.turn)[state]
        if not total:
            return wanted
        self._observer.entered(stage, total)
        self._epoch += 1
        self._unreachable = 0
        again: deque[Item] = deque()
        size, limits = self._plan.per_task, self._plan.limits
        chunks = in_chunks(self._manifest.items(state, self.turn), size)
        if size > 1:
            limits = limits._replace(seconds=limits.seconds * size, waiting=limits.waiting * size, attempts=1)
        while True:
            tasks = (self._task(items, may_defer, may_want) for items in chunks)
            answered = takewhile(lambda _: self._unreachable < UNREACHABLE_IN_A_ROW, tasks)
            for outcome in self._engine.run(self._until_stopping(answered), limits):
                again += self._keep(outcome)
                for build_id, kinds in outcome.value.wanted if outcome.failure is None else ():
                    wanted.setdefault(build_id, {}).update(dict.fromkeys(kinds))
            if not again or self._is_stopping():
                return wanted
            # The one that spoils a task is found by running its inputs one by one.
            chunks, limits = in_chunks([again.popleft() for _ in range(len(again))], 1), self._plan.limits

    def _until_stopping(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """The tasks as long as the batch is to go on."""
        return takewhile(lambda _: not self._is_stopping(), tasks)

    def _task(self, items: tuple[Item, ...], may_defer: bool, may_want: bool) -> Task:
        """The task for some inputs."""
        spill = ""
        if may_defer:
            self._spills += 1
            spill = f"{self._config.run}-{self._spills}"
        work = SymbolizeTask(self._config, self._epoch, items, spill, may_want)
        return Task(str(items[0].number), symbolize_inputs, work)

    def _keep(self, outcome: Outcome) -> Sequence[Item]:
        """Record what came of a task; the inputs to be tried one by one."""
        items: tuple[Item, ...] = outcome.task.argument.items
        if outcome.failure is not None:
            if len(items) > 1:
                return items
            failed = InputResult(
                items[0].number,
                State.QUARANTINED,
                (),
                outcome.failure.value,
                outcome.detail,
                outcome.seconds,
                outcome.attempts,
            )
            done = TaskResult((failed,))
        else:
            done = outcome.value
            done = done._replace(handled=tuple(each._replace(attempts=outcome.attempts) for each in done.handled))
        if done.fatal:
            raise OutputError(done.fatal)
        self._tell_cache(done.problems)
        self._remove_superseded(done.handled)
        self._manifest.record([each for each in done.handled if each.reason != FETCH], done.questions)
        by_number = {item.number: item for item in items}
        for each in done.handled:
            self._unreachable = self._unreachable + 1 if each.is_unanswered else 0
            if self._unreachable == UNREACHABLE_IN_A_ROW:
                text = f"servers of {self._unreachable} inputs in a row do not answer; the others wait for the next run"
                self._observer.problem("inputs", text)
            shown = each._replace(detail="") if each.state == State.SCANNED else each
            self._observer.handled(by_number[each.number], shown)
        return ()

    def _tell_cache(self, problems: Sequence[str]) -> None:
        """Tell what is wrong with the cache, once for all workers."""
        for problem in problems:
            kind = problem.partition(": ")[0]  # of a store, what each worker met there is one problem
            if kind not in self._cache_problems and len(self._cache_problems) < MAX_TOLD:
                self._cache_problems.add(kind)
                self._observer.problem("table cache", problem)

    def _remove_superseded(self, handled: Sequence[InputResult]) -> None:
        """Remove outputs that the inputs had before they changed and have no more."""
        for name, size in self._manifest.superseded(handled):
            try:
                if self._out.size(name) == size:
                    self._out.remove(name)
            except SymbolizeError as error:
                self._observer.problem(name, f"is of what its input was before, and cannot be removed: {error}")

    def _decode(self) -> None:
        """Make the tables that the inputs wait for."""
        waiting = self._manifest.unanswered()
        if not waiting:
            return
        self._observer.entered("decode", len(waiting))
        self._epoch += 1
        tasks = (
            Task(key, decode_binary, DecodeTask(self._config, self._epoch, self._manifest.asked(key)), affinity=key)
            for key, _ in waiting
        )
        for outcome in self._engine.run(self._until_stopping(tasks), self._plan.decode_limits):
            result: DecodeResult = outcome.value
            if outcome.failure is not None:
                reason = f"given up: {outcome.detail}"
                if outcome.failure is not Failure.ERROR:
                    reason += f" ({outcome.attempts} attempts)"
                path = outcome.task.argument.asked.files[0][0]
                result = DecodeResult(outcome.task.key, 0, 0, outcome.seconds, f"{path}: {reason}")
                RunTables(self._exchange, False).give_up(outcome.task.key, reason)
            if result.fatal:
                raise OutputError(result.fatal)
            self._tell_cache(result.problems)
            self._manifest.answer(result.key, result.addresses, result.size, result.seconds, result.failure)
            self._observer.decoded(result)

    def _clean_up(self) -> None:
        """Remove what the passes left for one another."""
        if self._is_stopping() or self._manifest.unanswered() or self._manifest.count(self.turn)[State.SCANNED]:
            return
        self._manifest.forget_questions()
        self._clear(SPILLS)
        # What was given up stays so until the next run begins.
        self._clear(FOLDER, but=GIVEN_UP)

    def _clear(self, folder: str, but: str | None = None) -> None:
        """Remove the files of a folder of the exchange storage, except those with the ending `but`."""
        for name in self._exchange.names(folder):
            if but is None or not name.endswith(but):
                self._exchange.remove(name)


def is_below(uri: str, storage: Storage, real: Callable[[str], str] = os.path.realpath) -> bool:
    """Whether an input lies in a storage, on whatever way links lead there; `real` resolves them."""
    path = local_path(uri)
    if path is None or not storage.is_local:
        return path is None and uri.startswith(storage.url.rstrip("/") + "/")
    return f"{real(os.path.dirname(path))}/".startswith(real(storage.url).rstrip("/") + "/")


def in_chunks(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    """The items in tuples of `size`."""
    some: list[Item] = []
    for item in items:
        some.append(item)
        if len(some) >= size:
            yield tuple(some)
            some.clear()
    if some:
        yield tuple(some)
