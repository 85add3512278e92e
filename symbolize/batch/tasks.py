"""What the workers of a batch do: symbolize inputs, or put off what would have to be decoded, and decode it.

A worker keeps its `Symbolizer`, so that binaries and tables stay open from task to task. Nothing here knows which
engine runs it.
"""

import errno
import gc
import json
import os
import time
import traceback
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from symbolize.batch.fetching import AtHand, open_client
from symbolize.batch.manifest import FETCH, UNREACHABLE, DecodeRequest, InputResult, Item, ProfileRow, State
from symbolize.batch.run_tables import RunTables, read_addresses
from symbolize.batch.storage.backend import Storage
from symbolize.batch.storage.input_names import ENDING
from symbolize.batch.storage.inputs import local_path, open_input
from symbolize.batch.storage.urls import Denied, Unreachable, is_url
from symbolize.binaries import Kind
from symbolize.core.arrays import UInt64, distinct
from symbolize.core.errors import InputError, OutputError, ReadFailure, SymbolizeError, UsageError
from symbolize.core.failures import Failure
from symbolize.load.model import DEFAULTS, LoadedProfile, LoadOptions
from symbolize.load.open import load_all
from symbolize.pipeline import Result, Symbolizer
from symbolize.report.json import coverage
from symbolize.resolve import Question
from symbolize.symbols import TableCache, default_folder
from symbolize.write import write
from symbolize.write.files import check_inputs

MAX_OPEN: Final = 512
"""Binaries that a worker keeps open; with one more it begins anew."""
MAX_NOTED: Final = 4 << 20
"""Addresses that a worker knows to be on record already."""
SPILLS: Final = "asked"
NAMING_ERRORS: Final = (
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.EINVAL, errno.EILSEQ),
)
"""What the system says where a file stands in the way of a folder, a link leads astray, or a name is too long or none
for the file system."""


@dataclass(frozen=True)
class WorkerConfig:
    """How profiles are read and symbolized, the same for all tasks of a batch.

    `out` is where outputs go, `exchange` where the workers leave what others of them need. `cache` is a folder or URL,
    empty for none; with `hand_on_kept` tables that are kept there are left for the others too, which may not have the
    same folder. `downloads` is that of fetched files, empty for the one of each machine's user. `run` tells one process
    that drives a batch from all others.
    """

    binaries: tuple[str, ...]
    out: str
    exchange: str
    run: str
    cache: str = ""
    cache_limit: int = 8 << 30
    hand_on_kept: bool = False
    demangle: str = "default"
    nearest_line: bool = False
    proguard_maps: tuple[str, ...] = ()
    annotate: bool = False
    debuginfod: tuple[str, ...] = ()
    refresh_misses: bool = False
    downloads: str = ""
    load_options: LoadOptions = DEFAULTS


class SymbolizeTask(NamedTuple):
    """Inputs to symbolize. What has to be decoded first is put off to the file `spill`, if that is not empty.

    `epoch` grows when there are new tables or files. With `may_want` inputs for which files have to be fetched are put
    off as well.
    """

    config: WorkerConfig
    epoch: int
    items: tuple[Item, ...]
    spill: str = ""
    may_want: bool = False


class TaskResult(NamedTuple):
    """What came of a `SymbolizeTask`: of each input, and what has to be decoded for those that are put off.

    `fatal` says why nothing can be done, as when there is no space for outputs, which is no fault of the inputs.
    `wanted` are the build ids of files to fetch, with their kinds; `problems` what is wrong with the cache.
    """

    handled: tuple[InputResult, ...]
    questions: tuple[DecodeRequest, ...] = ()
    fatal: str = ""
    wanted: tuple[tuple[str, tuple[Kind, ...]], ...] = ()
    problems: tuple[str, ...] = ()


class DecodeTask(NamedTuple):
    """A binary whose table is to be made."""

    config: WorkerConfig
    epoch: int
    asked: DecodeRequest


class DecodeResult(NamedTuple):
    """What came of `DecodeTask`: how many addresses the table answers for, its bytes, or why there is none. `fatal` and
    `problems` are as in `TaskResult`."""

    key: str
    addresses: int
    size: int
    seconds: float
    failure: str = ""
    fatal: str = ""
    problems: tuple[str, ...] = ()


class Postponed(NamedTuple):
    """What an input waits for: binaries to decode, or files to fetch, which may need to be decoded too. `asked` has
    the number of a profile of it, and a mapping of that with path and key of its binary."""

    questions: list[Question]
    wanted: dict[str, list[Kind]]
    asked: list[tuple[int, int, str, str]]


class WrittenOutputs(NamedTuple):
    """The outputs of an input, and what failed that may have more names, by server or file."""

    profiles: tuple[ProfileRow, ...]
    failures: dict[str, Failure]


class Worker:
    """What a worker process keeps from task to task."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.out, self.exchange = Storage.of(config.out), open_exchange(config)
        self.tables = RunTables(self.exchange, config.nearest_line)
        self.noted: dict[str, UInt64] = {}
        self._epoch = -1
        self._held = ExitStack()
        self._told: set[str] = set()
        self.symbolizer = self._open()

    def _open(self) -> Symbolizer:
        config = self.config
        self.servers = None
        if config.debuginfod:
            client = self._held.enter_context(
                open_client(config.debuginfod, config.refresh_misses, folder=config.downloads)
            )
            self.servers = AtHand(client, self.exchange)
        self.cache = open_cache(config) if config.cache else None
        symbolizer = Symbolizer(
            config.binaries,
            demangle=config.demangle,  # type: ignore[arg-type]
            cache=self.cache,
            servers=self.servers,
            nearest_line=config.nearest_line,
            proguard_maps=config.proguard_maps,
            annotate=config.annotate,
            tables=self.tables,
        )
        return self._held.enter_context(symbolizer)

    def begin(self, epoch: int) -> None:
        """Make ready for a task."""
        self.tables.begin(epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self.noted.clear()
        if self.symbolizer.open_binaries > MAX_OPEN:
            self.close()
            self.symbolizer = self._open()
        if self.servers is not None:
            self.servers.begin(epoch)
            self.servers.take_wanted()

    def new_problems(self) -> tuple[str, ...]:
        """What is wrong with the cache and was not told before."""
        problems = tuple(each for each in (self.cache.problems if self.cache else ()) if each not in self._told)
        self._told.update(problems)
        return problems

    def close(self) -> None:
        """Close all files."""
        self._held.close()
        self.tables.forget()
        gc.collect()

    def new_addresses(self, questions: list[Question]) -> list[Question]:
        """The questions without the addresses that this worker has put on record before."""
        fresh = []
        for question in questions:
            known = self.noted.get(question.key)
            vaddrs = question.vaddrs if known is None else np.setdiff1d(question.vaddrs, known, assume_unique=True)
            if len(vaddrs) or known is None:
                fresh.append(question._replace(vaddrs=vaddrs))
        return fresh

    def note(self, questions: list[Question]) -> None:
        """Remember which addresses are on record."""
        for key, _, vaddrs, _ in questions:
            self.noted[key] = distinct(np.concatenate((self.noted.get(key, vaddrs[:0]), vaddrs)))
        if sum(map(len, self.noted.values())) > MAX_NOTED:
            self.noted.clear()


def open_cache(config: WorkerConfig) -> TableCache:
    """The cache of symbol tables; with a URL, this machine's own in front of it."""
    if not is_url(config.cache):
        return TableCache(config.cache, config.cache_limit)
    from symbolize.batch.storage.shared_cache import open_shared_cache

    return open_shared_cache(config.cache, default_folder(), config.cache_limit)


def open_exchange(config: WorkerConfig) -> Storage:
    """The place that workers share; copies of remote files are shared by those of one machine."""
    return Storage.of(config.exchange, os.path.join(default_folder(), "fetched"))


_worker: list[Worker] = []


def worker_for(config: WorkerConfig, epoch: int) -> Worker:
    """The worker of this process, made anew for another batch."""
    if not _worker or _worker[0].config != config:
        forget_worker()
        _worker.append(Worker(config))
    _worker[0].begin(epoch)
    return _worker[0]


def symbolize_inputs(work: SymbolizeTask) -> TaskResult:
    """Symbolize inputs and write what comes of them; what needs binaries decoded may be put off."""
    try:
        worker = worker_for(work.config, work.epoch)
    except SymbolizeError as error:
        return TaskResult((), (), str(error))
    handled: list[InputResult] = []
    questions: list[Question] = []
    wanted: dict[str, dict[Kind, None]] = {}
    for item in work.items:
        started = time.perf_counter()
        try:
            found = symbolize_input(worker, item, may_defer=bool(work.spill), may_want=work.may_want)
        except InputError as error:
            reason = UNREACHABLE if isinstance(error, Unreachable) else "unreadable"
            silent = isinstance(error, Unreachable) and not isinstance(error, Denied)
            result = InputResult(item.number, State.QUARANTINED, (), reason, str(error), is_unanswered=silent)
        except (OutputError, UsageError) as error:
            if isinstance(error, OutputError) and not (worker.out.is_local and is_of_one_name(error)):
                return TaskResult((), (), str(error))
            result = InputResult(item.number, State.QUARANTINED, (), "unwritable", str(error))
        except MemoryError:
            raise
        except Exception:  # a fault of ours costs this input, and says where it is
            result = InputResult(item.number, State.QUARANTINED, (), "error", traceback.format_exc(limit=-3))
        else:
            if isinstance(found, WrittenOutputs):
                said = "; ".join(f"{failure.place}: {failure.text}" for failure in found.failures.values())
                reason = next((failure.reason.code for failure in found.failures.values()), "")
                result = InputResult(item.number, State.DONE, found.profiles, reason, said)
            else:
                questions += found.questions
                for build_id, kinds in found.wanted.items():
                    wanted.setdefault(build_id, {}).update(dict.fromkeys(kinds))
                reason, detail = (FETCH, "") if found.wanted else ("", json.dumps(found.asked))
                result = InputResult(item.number, State.SCANNED, (), reason, detail)
        handled.append(result._replace(seconds=time.perf_counter() - started))
    try:
        asked = put_off(worker, questions, work.spill)
        files = tuple((build_id, tuple(kinds)) for build_id, kinds in wanted.items())
        return TaskResult(tuple(handled), asked, wanted=files, problems=worker.new_problems())
    except OutputError as error:
        return TaskResult((), (), str(error))


def is_of_one_name(error: OutputError) -> bool:
    """Whether an output cannot be written because of its name, which is no hindrance to others."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in NAMING_ERRORS


def symbolize_input(worker: Worker, item: Item, may_defer: bool, may_want: bool) -> WrittenOutputs | Postponed:
    """Symbolize all profiles of an input; the outputs, or, if it may be put off, what would have to be decoded, or
    fetched first."""
    with open_input(item.uri) as source:
        found = load_all(source, worker.config.load_options)
        single = found[0].profile if len(found) == 1 else None
        written = WrittenOutputs((), {})
        if may_defer:
            put_off = Postponed([], {}, [])
            for number, each in enumerate(found):
                profile = single or each.profile
                matched = worker.symbolizer.match(profile)
                for question in worker.symbolizer.open_questions(matched):
                    put_off.questions.append(question)
                    path, key = question.files[0][0], question.key
                    put_off.asked.extend((number, mapping, path, key) for mapping in question.mappings)
                if worker.servers is not None:
                    put_off.wanted.update(worker.servers.take_wanted() if may_want else {})
                if single is not None and not any(put_off):
                    return write_result(worker, item, each, worker.symbolizer.finish(single, matched), written)
            if put_off.wanted:
                return put_off._replace(questions=[])  # asked again when the files are there
            if put_off.questions:
                return put_off
        asked: dict[int, dict[int, tuple[str, str]]] = {}
        for number, mapping, path, key in json.loads(item.asked) if item.asked else ():
            asked.setdefault(number, {})[mapping] = path, key
        for number, each in enumerate(found):
            profile = single or each.profile
            matched = worker.symbolizer.match(profile)
            matched.suspect(asked.get(number, {}))
            written = write_result(worker, item, each, worker.symbolizer.finish(profile, matched), written)
        return written


def write_result(
    worker: Worker, item: Item, loaded: LoadedProfile, result: Result, written: WrittenOutputs
) -> WrittenOutputs:
    """Write one profile where it belongs; returns `written` with its row and failures added."""
    failures = {failure.place: failure for failure in result.report.failures} | written.failures
    return WrittenOutputs((*written.profiles, write_profile(worker, item, loaded, result)), failures)


def write_profile(worker: Worker, item: Item, loaded: LoadedProfile, result: Result) -> ProfileRow:
    """Write one profile where it belongs; what is told of it.

    One without any name does not replace what an earlier run made of the same input with names (rule R279).
    """
    name = (f"{item.folder}/{loaded.name}" if loaded.name else item.name) + ENDING
    if not result.report.percent:
        for row in item.before:
            if row.output == name and row.coverage["symbolized_percent"] and output_size(worker.out, name) == row.size:
                return row._replace(coverage=row.coverage | {"kept": True})
    path = local_path(item.uri)
    if path is not None and worker.out.is_local:
        check_inputs([path], [os.path.join(worker.out.url, name)])
    with worker.out.write(name) as file:
        write(result.profile, file)
        size = file.tell()
    return ProfileRow(name, size, coverage(result.report))


def output_size(out: Storage, name: str) -> int | None:
    """The bytes of an output. A store that does not tell is one that cannot be written to: raises OutputError."""
    try:
        return out.size(name)
    except InputError as error:
        raise OutputError(str(error)) from error


def put_off(worker: Worker, questions: list[Question], spill: str) -> tuple[DecodeRequest, ...]:
    """Write the addresses that are asked and not on record yet; where they are."""
    merged: dict[str, Question] = {}
    for question in questions:
        before = merged.get(question.key)
        vaddrs = question.vaddrs if before is None else np.concatenate((before.vaddrs, question.vaddrs))
        merged[question.key] = question._replace(vaddrs=vaddrs)
    fresh = worker.new_addresses([each._replace(vaddrs=distinct(each.vaddrs)) for each in merged.values()])
    if not fresh:
        return ()
    asked: list[DecodeRequest] = []
    start = 0
    with worker.exchange.write(f"{SPILLS}/{spill}") as file:
        for key, files, vaddrs, _ in fresh:
            file.write(vaddrs.tobytes())
            asked.append(DecodeRequest(key, files, [(spill, start, len(vaddrs))]))
            start += len(vaddrs)
    worker.note(fresh)
    return tuple(asked)


def decode_binary(work: DecodeTask) -> DecodeResult:
    """Make the table of a binary for all addresses that are asked of it, where it is not kept as a whole."""
    started = time.perf_counter()
    key, files, spills = work.asked
    try:
        worker = worker_for(work.config, work.epoch)
    except SymbolizeError as error:
        return DecodeResult(key, 0, 0, time.perf_counter() - started, fatal=str(error))
    pieces = [worker.tables.addresses(key)]
    for spill, start, count in spills:
        with suppress(OSError, InputError):  # what is lost is looked up where it is met
            pieces.append(read_addresses(worker.exchange.read_file(f"{SPILLS}/{spill}"), start, count))
    vaddrs = distinct(np.concatenate(pieces))
    binary = worker.symbolizer.binary_of(Question(key, files, vaddrs))
    if binary is None:
        path = files[0][0] if files else ""
        return DecodeResult(key, 0, 0, time.perf_counter() - started, f"{path}: is not there any more, or has changed")
    try:
        table = binary.table(None if work.config.nearest_line else vaddrs)
        size = table.file_size
        if not binary.is_kept or work.config.hand_on_kept:
            try:
                size = worker.tables.write(binary, table, None if binary.has_whole else vaddrs)
            finally:
                table.check()  # says why, if it is of a file that was truncated
    except ReadFailure as error:  # each profile tries for itself, and says so
        return DecodeResult(key, 0, 0, time.perf_counter() - started, str(error))
    except OutputError as error:
        return DecodeResult(key, 0, 0, time.perf_counter() - started, fatal=str(error))
    finally:
        binary.forget()
    return DecodeResult(key, len(vaddrs), size, time.perf_counter() - started, problems=worker.new_problems())


def forget_worker() -> None:
    """Close what this process keeps."""
    while _worker:
        _worker.pop().close()
