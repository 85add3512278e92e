"""The driver of a batch: its passes over the inputs.

Scan: every input is loaded and matched. If the tables of its binaries are there it is symbolized at once, else its
addresses are written to a spill file. Fetch: files from debuginfod servers are fetched once, by the driver, and inputs
that wait for them are scanned again. Decode: each binary is decoded once, for all addresses in spill files. Rewrite:
the inputs that wait for tables are symbolized with them. At the end the state is bounded (R404, retention): inputs that
were not found for long are forgotten, and outputs of inputs that are gone removed.
"""

import hashlib
import json
import os
import sqlite3
import time
import uuid
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from itertools import islice, takewhile
from typing import Any, Final, TextIO

from symbolize.batch.engines.engine import Engine, Task, TaskFailure, TaskLimits, TaskOutcome
from symbolize.batch.fetching import ANSWERS, FetchedFile, Fetcher
from symbolize.batch.late_binaries import LateBinaries
from symbolize.batch.manifest import (
    DECODED,
    FETCH,
    TAKEN,
    UNREACHABLE,
    InputResult,
    Item,
    Manifest,
    Renewed,
    State,
    name_key,
    uri_number,
)
from symbolize.batch.monitoring.observers import Observer
from symbolize.batch.tasks import (
    CACHE,
    FOLDER,
    GIVEN_UP,
    RUN,
    SPILLS,
    DecodeResult,
    DecodeTask,
    RunTables,
    SymbolizeTask,
    TaskResult,
    WorkerConfig,
    decode_binary,
    index_folder,
    open_shared,
    open_warehouse,
    symbolize_inputs,
)
from symbolize.binaries import Kind
from symbolize.core.closing import Closeable
from symbolize.core.errors import OutputError, SymbolizeError
from symbolize.core.failure_gate import FailureGate
from symbolize.core.reasons import Reason
from symbolize.storage import urls
from symbolize.storage.backend import Storage
from symbolize.storage.inputs import (
    ANY_FOLDERS,
    ENDING,
    Input,
    NotListed,
    Pattern,
    Problem,
    depth_below,
    find_inputs,
    local_path,
    roots_of,
)

DAY: Final = 86400.0
UNSEEN: Final = "unseen"
"""The notes of inputs that were not found: since when."""
AT_ONCE: Final = 500
LEAST_FREE: Final = 1 << 20
"""Bytes of free pages from which on the manifest is packed, if they are a quarter of it."""
RESULTS: Final = 2
"""The version of outputs. A change that makes other outputs of the same inputs raises it, so that the next run of a
batch makes them again; a release that changes none does not."""
MAX_FETCHES: Final = 4
"""Times that files are fetched: those that were fetched may need others."""
MAX_PROBLEMS: Final = {CACHE: 4, RUN: 64}
"""Problems that are reported, of all workers together."""
WITHOUT_EFFECT: Final = ("shared", "run", "cache", "cache_limit", "refresh_misses", "downloads", "ignored")
"""Fields of `WorkerConfig` that outputs do not depend on."""
INPUTS_AT_ONCE: Final = 512
"""Inputs that are added to the manifest in one transaction."""
FAILURES_IN_A_ROW: Final = 16
"""Successive inputs without an answer after which a store counts as down."""
STORE_PAUSE: Final = 60.0
"""Seconds after which one input is asked of a store that is down, to find out whether it is back."""
URL: Final = "://"


def note_unseen(manifest: Manifest, now: float | None = None) -> None:
    """Note since when inputs are not found, after all inputs were listed."""
    now = time.time() if now is None else now
    with manifest.writing() as base:
        base.execute(
            "DELETE FROM notes WHERE kind = ? AND key IN (SELECT CAST(number AS TEXT) FROM inputs WHERE turn = ?)",
            (UNSEEN, manifest.generation),
        )
        base.execute(
            "INSERT OR IGNORE INTO notes (kind, key, value) "
            "SELECT ?, CAST(number AS TEXT), ? FROM inputs WHERE turn < ?",
            (UNSEEN, now, manifest.generation),
        )


def forget_unseen(manifest: Manifest, days: float, now: float | None = None) -> int:
    """Remove the records of inputs that were not found for `days`, and of binaries that were not decoded for as long;
    how many inputs. Their outputs stay."""
    now = time.time() if now is None else now
    rows = manifest.read("SELECT key FROM notes WHERE kind = ? AND value < ?", UNSEEN, now - days * DAY)
    numbers = [int(key) for (key,) in rows]
    keep_names(manifest, numbers)
    remove_records(manifest, numbers)
    with manifest.writing() as base:
        base.execute("INSERT OR IGNORE INTO notes (kind, key, value) SELECT ?, key, ? FROM binaries", (DECODED, now))
        old = f"SELECT key FROM notes WHERE kind = '{DECODED}' AND value < ?"
        awaited = "SELECT key FROM questions WHERE answered = 0"
        base.execute(f"DELETE FROM binaries WHERE key IN ({old}) AND key NOT IN ({awaited})", (now - days * DAY,))
        base.execute("DELETE FROM notes WHERE kind = ? AND value < ?", (DECODED, now - days * DAY))
    manifest.forget_unwanted()
    pack(manifest)
    return len(rows)


def keep_names(manifest: Manifest, numbers: Iterable[int]) -> None:
    """Note the names of the outputs of these inputs, so that no output of another input replaces them.

    Hashes of the names are kept.
    """
    with manifest.writing() as base:
        for number in numbers:
            outputs = {output for (output,) in base.execute("SELECT output FROM profiles WHERE input = ?", (number,))}
            if outputs:
                uri, name = base.execute("SELECT uri, name FROM inputs WHERE number = ?", (number,)).fetchone()
                base.executemany(
                    "INSERT OR REPLACE INTO notes (kind, key, value) VALUES (?, ?, ?)",
                    [(TAKEN, name_key(output), uri_number(uri)) for output in sorted({*outputs, name + ENDING})],
                )


def remove_records(manifest: Manifest, numbers: Iterable[int]) -> None:
    """Remove all that is recorded of these inputs."""
    rest = list(numbers)
    while rest:
        some, rest = rest[:AT_ONCE], rest[AT_ONCE:]
        with manifest.writing() as base:
            for number in some:
                for table in ("profiles", "row_files", "wants"):
                    base.execute(f"DELETE FROM {table} WHERE input = ?", (number,))
                base.execute("DELETE FROM inputs WHERE number = ?", (number,))
                base.execute("DELETE FROM notes WHERE kind = ? AND key = ?", (UNSEEN, str(number)))


def pack(manifest: Manifest) -> None:
    """Give the space of removed records back, if there is much of it. Without room for a copy it stays as it is."""
    ((free,),), ((size,),), ((pages,),) = (
        manifest.read(f"PRAGMA {name}") for name in ("freelist_count", "page_size", "page_count")
    )
    if free * size >= LEAST_FREE and 4 * free >= pages:
        with suppress(sqlite3.Error):
            manifest.read("VACUUM")
            manifest.read("PRAGMA wal_checkpoint(TRUNCATE)")


def prune_outputs(manifest: Manifest, out: Storage, rows: Storage | None, is_covered: Callable[[str], bool]) -> int:
    """Remove the outputs of inputs that do not exist any more, with their files in `rows` and their records; how many
    files.

    An input that was not named, is left out or may exist keeps its outputs: the file of an empty folder, which may not
    be mounted, and that of a web server, which may be down (R404, retention).

    To be called after a listing in which nothing failed and which would have found the inputs that `is_covered`. A file
    that is not as it was recorded is left alone, and so are rows elsewhere. Raises SymbolizeError if the store of
    outputs fails.
    """
    question = "SELECT number, uri FROM inputs WHERE turn < ? ORDER BY number"
    count = 0
    for number, uri in manifest.read(question, manifest.generation):
        if not (is_covered(uri) and is_gone(uri)):
            continue
        files: list[tuple[Storage | None, str, int]] = [
            (out, row.output, row.size) for row in manifest.profiles(number)
        ]
        for file in manifest.row_files(number):
            files.append((rows if rows is not None and rows.url == file.storage else None, file.name, file.size))
        kept = 0
        for storage, name, recorded in files:
            size = storage.size(name) if storage is not None else -1
            if storage is not None and size == recorded:
                storage.remove(name)
                count += 1
            else:
                kept += size is not None
        if not kept:
            remove_records(manifest, [number])
    return count


def is_gone(uri: str) -> bool:
    """Whether an input certainly does not exist any more."""
    path = local_path(uri)
    if path is None:
        try:  # for other servers a file is missing, too, while they do not answer
            return urls.is_store(uri) and urls.entry_at(urls.files_at(uri)) is None
        except SymbolizeError:
            return False
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return not may_be_unmounted(path)
    except (OSError, ValueError):
        return False
    return False


def may_be_unmounted(path: str) -> bool:
    """Whether the innermost folder that there is of a missing file is empty, as one is that is not mounted."""
    folder = os.path.dirname(os.path.abspath(path))
    while True:
        try:
            with os.scandir(folder) as entries:
                return next(entries, None) is None
        except (FileNotFoundError, NotADirectoryError):
            folder = os.path.dirname(folder)
        except OSError:
            return True


class Exclusions:
    """Patterns of files and folders that are no inputs. One without a slash, or behind `**/`, is that of a name or path
    anywhere below what was named as an input; any other is a path as an input is one: relative to the current folder,
    absolute, or a URL (R401, excluded inputs).

    Of inputs in a list a pattern without a slash matches all names of the path, which their outputs have too. What
    matches is left out with all that is in it, before it is read or reported.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._anywhere: list[Pattern] = []
        self._paths: list[Pattern] = []
        for text in patterns:
            path = local_path(text)
            if path is None:
                self._paths.append(Pattern(parts_of(text)))
            elif "/" not in path.rstrip("/") or path.startswith(ANY_FOLDERS + "/"):
                self._anywhere.append(Pattern(parts_of(path.removeprefix(ANY_FOLDERS + "/"))))
            else:
                self._paths.append(Pattern(parts_of(os.path.abspath(path))))

    def leave_out(self, uri: str, depth: int) -> bool:
        """Whether the file or folder at `uri`, or a folder that it is in, matches a pattern; the last `depth` names of
        it are below what was named as an input."""
        if not self._anywhere and not self._paths:
            return False
        parts = parts_of(local_path(uri) or uri)
        if any(begins(pattern, parts) for pattern in self._paths):
            return True
        rows = range(max(len(parts) - depth, 0), len(parts))
        return any(begins(pattern, parts[row:]) for pattern in self._anywhere for row in rows)


def parts_of(path: str) -> tuple[str, ...]:
    """The names in a path, or in a URL: its scheme and bucket first."""
    scheme, divider, rest = path.partition(URL)
    bucket, _, key = rest.partition("/")
    first = (f"{scheme.lower()}{URL}{bucket}",) if divider else ()
    return (*first, *(part for part in (key if divider else path).split("/") if part not in ("", ".")))


def begins(pattern: Pattern, names: Sequence[str]) -> bool:
    """Whether the first of `names`, some or all, match a pattern."""
    state = pattern.start()
    for name in names:
        state, _ = pattern.step(state, name)
        if not state:
            return False
        if pattern.is_matched(state):
            return True
    return False


@dataclass(frozen=True)
class Shard:
    """Part `number` of `parts` equal parts of the inputs, from 0 on."""

    number: int = 0
    parts: int = 1

    def takes(self, name: str) -> bool:
        """Whether the input of this name is in this part."""
        return zlib.crc32(name.encode(errors="surrogateescape")) % self.parts == self.number


@dataclass(frozen=True)
class Plan:
    """A batch: its inputs, outputs and options.

    `arguments` are files, folders, patterns and URLs, or - for a list of names in `name_list`. `state` is the folder of
    the manifest. `retry_quarantined` tries quarantined inputs again, `retry_missing` does those again that miss names
    which there are files for now, `again` all. `limits` are those of one input, of which a task has up to `per_task`,
    `decode_limits` those of one binary. Inputs that match a pattern of `exclude` are left out. What is recorded of
    inputs that were not found for `keep_days` is forgotten; with `prune_outputs` the outputs of inputs that do not
    exist any more are removed.
    """

    arguments: Sequence[str]
    config: WorkerConfig
    state: str
    limits: TaskLimits = TaskLimits()
    decode_limits: TaskLimits = TaskLimits()
    shard: Shard = Shard()
    name_list: TextIO | None = None
    retry_quarantined: bool = False
    retry_missing: bool = False
    again: bool = False
    per_task: int = 1
    exclude: Sequence[str] = ()
    keep_days: float = 90.0
    prune_outputs: bool = False

    @property
    def options(self) -> str:
        """RESULTS, and a checksum of what else besides the input an output depends on: of the options that are not as
        by default, so that one which a release adds makes no output again."""
        given = given_options(self.config)
        given |= given.pop("options", {})
        without_effect = [*WITHOUT_EFFECT]
        if Storage.of(self.config.out).is_local:  # whose outputs are checked
            without_effect.append("out")
        if not self.config.rows:
            without_effect.append("service_label")
        for name in without_effect:
            given.pop(name, None)
        text = json.dumps(given, sort_keys=True, default=list)
        return f"{RESULTS} {hashlib.sha256(text.encode()).hexdigest()[:32]}"


def given_options(options: Any) -> dict[str, Any]:
    """The fields of a dataclass that are not as by default, and those of the dataclasses among them, by name."""
    return {
        field.name: given_options(value) if is_dataclass(value) else value
        for field in fields(options)
        if (value := getattr(options, field.name)) != field.default
    }


def new_run() -> str:
    """A unique name for a run."""
    return uuid.uuid4().hex


class Batch(Closeable):
    """Runs a plan with an engine, as the module explains.

    Once `is_stopping`, tasks that run are finished and no others are begun. `unlisted` counts the arguments whose
    servers did not list what they hold.
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
        self._shared = open_shared(plan.config)
        self._late = LateBinaries(manifest, plan.config.binaries, index_folder(plan.config), observer.problem)
        self._warehouse = open_warehouse(plan.config, self._shared)
        self._epoch = 0
        self._spills = 0
        self._missing: set[str] = set()
        self._problems: dict[str, set[str]] = {where: set() for where in MAX_PROBLEMS}
        self._breaker = Breaker(observer.problem)
        self._exclusions = Exclusions(plan.exclude)
        self.unlisted = 0
        self.begin_generation()
        self._has_begun = False
        self._renewed: Counter[str] = Counter()
        self._is_listed = self._is_whole = False
        rows = () if self._warehouse is None else (self._warehouse.storage,)
        for storage in (self._out, self._shared, *rows):
            storage.sweep()

    def close(self) -> None:
        """Close the index of binaries."""
        self._late.close()

    @property
    def missing(self) -> list[str]:
        """The arguments and names that matched no input."""
        return sorted(self._missing)

    def run(self) -> dict[State, int]:
        """Find the inputs and process them, those too that `retry_missing` of the plan makes new; how many are in each
        state at the end.

        Raises OutputError when outputs cannot be written or workers cannot start; what is done stays recorded.
        """
        self.take_in()
        self.look_after_state()
        if self._plan.retry_missing:
            self.retry_missing()
        return self.work()

    def take_in(self, is_ready: Callable[[Input], bool] = lambda _: True) -> None:
        """Find inputs, and add those that are ready to the manifest."""
        plan, out, rows = self._plan, self._out, self._warehouse
        real = lru_cache(64)(os.path.realpath)
        problems = unlisted = 0
        found: list[Input] = []

        def is_output(uri: str) -> bool:
            return is_below(uri, out, real) or (rows is not None and is_below(uri, rows.storage, real))

        def is_there(output: str, size: int) -> bool:
            return not out.is_local or out.size(output) == size

        def add() -> None:
            options, retry, again = plan.options, plan.retry_quarantined, plan.again
            ignores = bool(plan.config.ignored)
            has_rows = rows.has if rows is not None else lambda _: True
            self._renewed += self._manifest.add(
                found, options, retry=retry, again=again, ignores=ignores, is_there=is_there, has_rows=has_rows
            )
            found.clear()

        for each in find_inputs(plan.arguments, plan.name_list):
            if self._exclusions.leave_out(each.uri, each.name.count("/") + 1 if isinstance(each, Input) else 1):
                continue
            if isinstance(each, Problem):
                problems += 1
                unlisted += isinstance(each, NotListed)
                if each.uri not in self._missing:
                    self._missing.add(each.uri)
                    self.unlisted += isinstance(each, NotListed)
                    self._observer.problem(each.uri, each.sentence)
            elif plan.shard.takes(each.name) and not is_output(each.uri) and is_ready(each):
                found.append(each)
                if len(found) >= INPUTS_AT_ONCE:
                    add()
        add()
        self._is_listed, self._is_whole = not unlisted, not problems
        if self._is_listed:
            self._observer.listed()

    def look_after_state(self) -> None:
        """Bound the state of the batch after all inputs were listed (R404, retention)."""
        if self._is_listed:
            note_unseen(self._manifest)
            forget_unseen(self._manifest, self._plan.keep_days)
        if not self._plan.prune_outputs:
            return
        if not self._is_whole:
            text = "none is removed, because not everything that was named could be listed"
            self._observer.problem("outputs of inputs that are gone", text)
            return
        rows = self._warehouse.storage if self._warehouse is not None else None
        roots = roots_of(self._plan.arguments)

        def is_covered(uri: str) -> bool:
            depths = [depth for root in roots if (depth := depth_below(uri, root))]
            return any(not self._exclusions.leave_out(uri, depth) for depth in depths)

        try:
            prune_outputs(self._manifest, self._out, rows, is_covered)
        except SymbolizeError as error:
            self._observer.problem("outputs of inputs that are gone", f"cannot be removed: {error}")

    def begin_generation(self) -> None:
        """Look for all inputs again as a new run does, so that those are noticed which are not found any more."""
        self._manifest.generation += 1

    def work(self) -> dict[State, int]:
        """Process all inputs that are not done; how many are in each state at the end."""
        counts = self._manifest.count()
        waiting = counts[State.NEW] + counts[State.SCANNED]
        if waiting and self._has_begun and self._breaker.is_down:
            waiting *= not all(map(self._breaker.is_paused, self._manifest.unfinished()))
        if waiting or not self._has_begun:
            if not self._has_begun:
                self._settle_rows()
            if not self._has_begun and not counts[State.SCANNED]:
                self._manifest.forget_requests()
                for folder in (SPILLS, FOLDER):
                    self._clear(folder)
            if not counts[State.SCANNED]:  # servers may have more by now
                self._shared.remove(ANSWERS)
            self._has_begun = True
            self._observer.began(waiting, counts[State.DONE], counts[State.QUARANTINED], dict(self._renewed))
            self._renewed.clear()
        if not waiting:
            return counts
        # Workers open everything again, as new processes would: binaries may have been added or changed since.
        self._config = replace(self._plan.config, run=new_run())
        self._scan()
        self._decode()
        self._symbolize("rewrite", State.SCANNED, may_defer=False)
        self._settle_rows()
        self._clean_up()
        self._observer.rested()
        return self._manifest.count()

    def _scan(self) -> None:
        """Scan new inputs, fetch the files that they want, and scan those that wait for files again."""
        if not self._config.debuginfod:
            self._symbolize("scan", State.NEW, may_defer=True)
            return
        with self._fetcher() as fetcher:
            for number in range(MAX_FETCHES + 1):
                wanted = self._symbolize("scan", State.NEW, may_defer=True, may_want=number < MAX_FETCHES)
                if not wanted or self._is_stopping():
                    return
                self._observer.entered("fetch", sum(map(len, wanted.values())))
                files = {build_id: list(kinds) for build_id, kinds in wanted.items()}
                fetcher.fetch(files, self._observer.fetched, self._is_stopping)

    def _fetcher(self) -> Fetcher:
        """The client of the servers."""
        config = self._config
        return Fetcher(config.debuginfod, config.refresh_misses, self._shared, self._observer.problem)

    def retry_failed(self) -> None:
        """Retry inputs whose servers did not answer or whose binaries were written to, and those that lack names
        because a debuginfod server failed, if one of these servers answers now."""
        reasons = [UNREACHABLE, Reason.CHANGED.code]
        if self._config.debuginfod and self._manifest.count_reasons(Reason.SERVER_FAILED.code):
            with self._fetcher() as fetcher:
                if any(is_up for is_up, _ in fetcher.client.probe().values()):
                    reasons.append(Reason.SERVER_FAILED.code)
        self._renewed += Counter({Renewed.FAILED: sum(map(self._manifest.retry_failed, reasons))})

    def retry_missing(self) -> int:
        """Make inputs new that are done and miss names, if the folders or servers have files for them now that they had
        not (R400, late binaries); how many. Raises OutputError."""
        renewed = self._late.scan()
        wanted = self._late.server_files() if self._config.debuginfod else {}
        if wanted:
            found: dict[str, list[str]] = {}

            def fetched(result: FetchedFile) -> None:
                if result.status == "found":
                    found.setdefault(result.build_id, []).append(result.kind)
                self._observer.fetched(result)

            self._observer.entered("fetch", sum(map(len, wanted.values())))
            with self._fetcher() as fetcher:
                fetcher.fetch(wanted, fetched, self._is_stopping)
            renewed += self._late.fetched(found)
            self._observer.rested()
        self._renewed += Counter({Renewed.BINARIES: renewed})
        return renewed

    def watch_binaries(self) -> int:
        """As `retry_missing` for the folders alone, for a batch that calls this again and again; a look that would come
        too soon is left out."""
        renewed = self._late.scan_settled()
        self._renewed += Counter({Renewed.WATCHED: renewed})
        return renewed

    def _symbolize(
        self, stage: str, state: State, may_defer: bool, may_want: bool = False
    ) -> dict[str, dict[Kind, None]]:
        """One pass over the inputs in `state`; the files to be fetched, by build id."""
        wanted: dict[str, dict[Kind, None]] = {}
        total = self._manifest.count()[state]
        if not total:
            return wanted
        self._observer.entered(stage, total)
        self._epoch += 1
        again: deque[Item] = deque()
        size, limits = self._plan.per_task, self._plan.limits
        items = (item for item in self._manifest.items(state) if self._breaker.admits(item.uri))
        chunks = in_chunks(items, size)
        if size > 1:
            limits = limits._replace(seconds=limits.seconds * size, waiting=limits.waiting * size, attempts=1)
        while True:
            tasks = (self._task(items, may_defer, may_want) for items in chunks)
            for outcome in self._engine.run(self._until_stopping(tasks), limits):
                again += self._record(outcome)
                for build_id, kinds in outcome.value.wanted if outcome.failure is None else ():
                    wanted.setdefault(build_id, {}).update(dict.fromkeys(kinds))
            if not again or self._is_stopping():
                return wanted
            # The input that makes a task fail is found by running each of its inputs alone.
            chunks, limits = in_chunks([again.popleft() for _ in range(len(again))], 1), self._plan.limits

    def _until_stopping(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """The tasks until the batch is to stop."""
        return takewhile(lambda _: not self._is_stopping(), tasks)

    def _task(self, items: tuple[Item, ...], may_defer: bool, may_want: bool) -> Task:
        """The task for some inputs."""
        spill = ""
        if may_defer:
            self._spills += 1
            spill = f"{self._config.run}-{self._spills}"
        work = SymbolizeTask(self._config, self._epoch, items, spill, may_want)
        return Task(str(items[0].number), symbolize_inputs, work)

    def _record(self, outcome: TaskOutcome) -> Sequence[Item]:
        """Record the outcome of a task; the inputs that are to be tried one by one."""
        items: tuple[Item, ...] = outcome.task.argument.items
        if outcome.failure is None:
            done: TaskResult = outcome.value
        elif len(items) > 1:
            return items
        else:
            failed = InputResult(items[0].number, State.QUARANTINED, (), outcome.failure.value, outcome.detail)
            done = TaskResult((failed._replace(seconds=outcome.seconds),))
        if done.fatal:
            raise OutputError(done.fatal)
        results = [each._replace(attempts=outcome.attempts) for each in done.results]
        self._report(done.problems)
        self._remove_superseded(results)
        self._manifest.record([each for each in results if each.reason != FETCH], done.requests, self._config.rows)
        by_number = {item.number: item for item in items}
        for each in results:
            self._breaker.record(by_number[each.number].uri, not each.is_unanswered)
            shown = each._replace(detail="") if each.state == State.SCANNED else each
            self._observer.handled(by_number[each.number], shown)
        return ()

    def _report(self, problems: Sequence[tuple[str, str]]) -> None:
        """Report what is wrong with the cache and with the run, each kind once for all workers."""
        for where, problem in problems:
            kind = problem.partition(": ")[0]  # a store that fails is one problem, whatever each worker asked it for
            if kind not in self._problems[where] and len(self._problems[where]) < MAX_PROBLEMS[where]:
                self._problems[where].add(kind)
                self._observer.problem(where, problem)

    def _remove_superseded(self, results: Sequence[InputResult]) -> None:
        """Remove outputs that inputs had before they changed and no longer have."""
        for name, size in self._manifest.superseded(results):
            try:
                if self._out.size(name) == size:
                    self._out.remove(name)
            except SymbolizeError as error:
                self._observer.problem(name, f"is of an earlier version of its input, and cannot be removed: {error}")

        if self._warehouse is not None:
            for name in self._manifest.superseded_rows(results, self._warehouse.url):
                self._warehouse.remove(name)

    def _settle_rows(self) -> None:
        """Remove files with rows that a worker wrote and that are not recorded, as when it was killed."""
        if self._warehouse is not None:
            self._warehouse.settle(self._manifest.has_row_file)

    def _decode(self) -> None:
        """Make the tables that the inputs wait for."""
        waiting = self._manifest.pending_decodes()
        if not waiting:
            return
        self._observer.entered("decode", len(waiting))
        self._epoch += 1
        tasks = (
            Task(key, decode_binary, DecodeTask(self._config, self._epoch, self._manifest.decode_request(key)), key)
            for key, _ in waiting
        )
        for outcome in self._engine.run(self._until_stopping(tasks), self._plan.decode_limits):
            result: DecodeResult = outcome.value
            if outcome.failure is not None:
                reason = f"given up: {outcome.detail}"
                if outcome.failure is not TaskFailure.ERROR:
                    reason += f" ({outcome.attempts} attempts)"
                path = outcome.task.argument.request.files[0][0]
                result = DecodeResult(outcome.task.key, seconds=outcome.seconds, failure=f"{path}: {reason}")
                RunTables(self._shared, False).give_up(outcome.task.key, reason)
            if result.fatal:
                raise OutputError(result.fatal)
            self._report(result.problems)
            self._manifest.mark_decoded(result.key, result.addresses, result.size, result.seconds, result.failure)
            self._observer.decoded(result)

    def _clean_up(self) -> None:
        """Remove the files that workers shared."""
        if self._is_stopping() or self._manifest.pending_decodes() or self._manifest.count()[State.SCANNED]:
            return
        self._manifest.forget_requests()
        self._clear(SPILLS)
        # Binaries that were given up stay so until the next run begins.
        self._clear(FOLDER, but=GIVEN_UP)

    def _clear(self, folder: str, but: str | None = None) -> None:
        """Remove the files of a folder that workers share, except those with the ending `but`."""
        for name in self._shared.names(folder):
            if but is None or not name.endswith(but):
                self._shared.remove(name)


class Breaker:
    """Decides whether an input may be asked of its store.

    A store that did not answer for FAILURES_IN_A_ROW inputs is paused, and its inputs wait. After STORE_PAUSE seconds
    one of them is tried: with an answer the store is used again, without one it is paused again. `problem` is called
    with a store and what is wrong with it. A store is a host or bucket (R403, stores that are down).
    """

    def __init__(self, problem: Callable[[str, str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._problem = problem
        self._gates = defaultdict[str, FailureGate](lambda: FailureGate(FAILURES_IN_A_ROW, STORE_PAUSE, clock))

    @property
    def is_down(self) -> bool:
        """Whether any store is down."""
        return any(gate.is_down for gate in self._gates.values())

    def is_paused(self, uri: str) -> bool:
        """Whether the store of an input is paused now."""
        return self._gates[store_of(uri)].seconds_left > 0

    def admits(self, uri: str) -> bool:
        """Whether an input may be asked of its store; if that was paused and may be tried, this is the one input."""
        return self._gates[store_of(uri)].admits()

    def record(self, uri: str, is_answered: bool) -> None:
        """Note whether the store of an input answered."""
        store = store_of(uri)
        if is_answered:
            self._gates[store].answered()
        elif self._gates[store].failed():
            count = f"{FAILURES_IN_A_ROW} inputs in a row"
            text = f"{count} were not answered; the others of this store wait, those elsewhere go on"
            self._problem(store or "inputs", text)


def store_of(uri: str) -> str:
    """The scheme, and host or bucket, of an input; empty for a local file."""
    if local_path(uri) is not None:
        return ""
    scheme, _, rest = uri.partition("://")
    return f"{scheme.lower()}://{rest.partition('/')[0].rpartition('@')[2]}"


def is_below(uri: str, storage: Storage, real: Callable[[str], str] = os.path.realpath) -> bool:
    """Whether an input is in a storage, also by links, which `real` resolves."""
    path = local_path(uri)
    if path is None or not storage.is_local:
        return path is None and not storage.is_local and urls.is_inside(uri, storage.url)
    return f"{real(os.path.dirname(path))}/".startswith(real(storage.url).rstrip("/") + "/")


def in_chunks(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    """The items in tuples of `size`."""
    rest = iter(items)
    while chunk := tuple(islice(rest, size)):
        yield chunk
