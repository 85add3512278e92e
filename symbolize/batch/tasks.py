"""The tasks of a batch: symbolize inputs, or request what has to be decoded for them, and decode it, once a binary,
into tables that every profile uses.

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
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from symbolize.batch.fetching import WorkerServers, open_client
from symbolize.batch.late_binaries import KnownFiles, Want
from symbolize.batch.manifest import (
    FETCH,
    IGNORED,
    INCOMPLETE,
    UNREACHABLE,
    DecodeRequest,
    InputResult,
    Item,
    ProfileRow,
    RowFile,
    State,
)
from symbolize.batch.warehouse import Warehouse
from symbolize.binaries import Kind
from symbolize.core.arrays import UInt64, distinct
from symbolize.core.errors import (
    EmptyInput,
    InputError,
    NoProfile,
    OutputError,
    ReadFailure,
    SymbolizeError,
    UsageError,
)
from symbolize.core.reasons import Failure
from symbolize.formats import write
from symbolize.formats.files import check_inputs
from symbolize.formats.model import DEFAULTS, LoadedProfile, LoadOptions
from symbolize.formats.open import load_all, load_one
from symbolize.options import Options
from symbolize.pipeline import Result, Symbolizer
from symbolize.profile import Profile
from symbolize.report import Report
from symbolize.report.json import coverage
from symbolize.resolve.resolution import Resolutions
from symbolize.resolve.resolver import PendingDecode
from symbolize.storage.backend import Storage
from symbolize.storage.inputs import ENDING, local_path, open_input
from symbolize.storage.shared_cache import open_tables
from symbolize.storage.urls import Denied, Unreachable, is_url
from symbolize.symbols import (
    Binary,
    DamagedTable,
    FailedTable,
    SymbolTable,
    default_folder,
    read_table,
    was_made_of,
    write_table,
)

FOLDER: Final = "tables"
TABLE, ADDRESSES, WHOLE, GIVEN_UP = ".symtab", ".vaddrs", ".whole", ".failed"
MAX_REASON: Final = 1000
MAX_OPEN: Final = 512
"""Binaries that a worker keeps open; with one more it closes all."""
MAX_REQUESTED: Final = 4 << 20
"""Requested addresses that a worker remembers."""
UNREADABLE: Final = ("empty", "no-profile", "damaged", "denied", "gone")
"""Kinds of inputs that cannot be read: without bytes, of no known format, damaged, not permitted, removed."""
SPILLS: Final = "asked"
CACHE, RUN = "table cache", "run"
"""What has problems that are no fault of an input: the cache; folders, mapping files and the installation."""
NAMING_ERRORS: Final = (
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.EINVAL, errno.EILSEQ),
)
"""Errors of the system for one name: a file where a folder is needed, a loop of links, a name that is too long or
invalid."""


class RunTables:
    """The tables of a batch, in the storage that its workers share.

    A table is stored with the addresses that it covers, and is used only for these. With `whole_only` tables of some
    addresses are not used at all. A binary that was given up is not decoded again, so that it costs no profile.
    """

    def __init__(self, storage: Storage, whole_only: bool) -> None:
        self._storage = storage
        self._whole_only = whole_only
        self._epoch = -1
        self._known: dict[str, tuple[SymbolTable, UInt64 | None] | FailedTable | None] = {}

    def begin(self, epoch: int) -> None:
        """Read the tables again, if `epoch` is new."""
        if epoch != self._epoch:
            self._epoch = epoch
            self.forget()

    def forget(self) -> None:
        """Close the tables that were read."""
        self._known.clear()

    def find(self, binary: Binary, vaddrs: UInt64) -> SymbolTable | None:
        """The table that covers all of `vaddrs` (ascending), None if there is none. Raises FailedTable if the binary
        was given up."""
        if binary.has_whole:
            return None
        key = binary.key
        if key not in self._known:
            self._known[key] = self._read(binary)
        known = self._known[key]
        if isinstance(known, FailedTable):
            raise FailedTable(known.source, known.problem)
        if known is None or known[0].has_changed:
            return None
        table, covered = known
        if covered is None:
            binary.adopt(table)
            return table
        return table if not self._whole_only and covers(covered, vaddrs) else None

    def write(self, binary: Binary, table: SymbolTable, vaddrs: UInt64 | None) -> int:
        """Store `table`, which covers `vaddrs` (None: all); its bytes. Raises OutputError and ReadFailure."""
        name = f"{FOLDER}/{binary.key}"
        # The addresses are written while there is no table: if this is interrupted, no table is used for more
        # addresses than it covers.
        for ending in (TABLE, WHOLE if vaddrs is not None else ADDRESSES):
            self._storage.remove(name + ending)
        with self._storage.write(name + (WHOLE if vaddrs is None else ADDRESSES)) as file:
            file.write((np.zeros(0, np.uint64) if vaddrs is None else vaddrs).tobytes())
        with self._storage.write(name + TABLE) as file:
            size = write_table(file, table, binary.facts_of_table)
            table.check()  # if it raises, the file is not stored
        return size

    def give_up(self, key: str, reason: str) -> None:
        """Record why a binary is not to be decoded again. Raises OutputError."""
        with self._storage.write(f"{FOLDER}/{key}{GIVEN_UP}") as file:
            file.write(reason[:MAX_REASON].encode(errors="replace"))

    def addresses(self, key: str) -> UInt64:
        """The addresses that the table of a binary covers so far."""
        name = f"{FOLDER}/{key}{ADDRESSES}"
        try:
            return read_addresses(self._storage.read_file(name), 0, -1)
        except (OSError, InputError):
            return np.zeros(0, np.uint64)

    def _read(self, binary: Binary) -> tuple[SymbolTable, UInt64 | None] | FailedTable | None:
        name = f"{FOLDER}/{binary.key}"
        try:
            if self._storage.exists(name + GIVEN_UP):
                with open(self._storage.read_file(name + GIVEN_UP), "rb") as file:
                    return FailedTable(binary.images[0].path, file.read(MAX_REASON).decode(errors="replace"))
            if not self._storage.exists(name + TABLE):
                return None
            table, facts = read_table(self._storage.read_file(name + TABLE))
            if not was_made_of(facts, binary.facts):
                return None
            if self._storage.exists(name + WHOLE):
                return table, None
            return table, read_addresses(self._storage.read_file(name + ADDRESSES), 0, -1)
        except (OSError, DamagedTable, InputError):  # the addresses are looked up without it
            return None


def read_addresses(path: str, start: int, count: int) -> UInt64:
    """`count` addresses (-1: all) of a file of them, from the one numbered `start` on."""
    return np.fromfile(path, np.uint64, count, offset=8 * start)


def covers(covered: UInt64, vaddrs: UInt64) -> bool:
    """Whether all of `vaddrs` are among `covered`; both ascend."""
    if not len(covered):
        return not len(vaddrs)
    row = np.minimum(np.searchsorted(covered, vaddrs), len(covered) - 1)
    return bool((covered[row] == vaddrs).all())


@dataclass(frozen=True)
class WorkerConfig:
    """How profiles are read and symbolized, the same for all tasks of a batch.

    `out` is the storage of outputs, `shared` that of files which the driver and all workers share. `cache` is a folder
    or URL that all of them reach, empty for none; so is `downloads`, the folder of fetched files, empty for that of the
    environment. `ignored` are the kinds of UNREADABLE that nobody has to look after. `run` identifies the process that
    drives the batch. `rows` is the storage of files with the rows of profiles, empty for none; see `warehouse`.
    """

    binaries: tuple[str, ...]
    out: str
    shared: str
    run: str
    cache: str = ""
    cache_limit: int = 8 << 30
    options: Options = field(default_factory=Options)
    debuginfod: tuple[str, ...] = ()
    refresh_misses: bool = False
    downloads: str = ""
    ignored: tuple[str, ...] = ()
    load_options: LoadOptions = DEFAULTS
    rows: str = ""
    service_label: str = ""


class SymbolizeTask(NamedTuple):
    """Inputs to symbolize. Those that need binaries decoded wait, unless `spill` is empty, the file for the addresses.

    `epoch` grows when there are new tables or files. With `may_want` inputs that need files fetched wait as well.
    """

    config: WorkerConfig
    epoch: int
    items: tuple[Item, ...]
    spill: str = ""
    may_want: bool = False


class TaskResult(NamedTuple):
    """The result of a `SymbolizeTask`: for each input, and what has to be decoded for those that wait.

    `fatal` says why no input can be done, as when the disk is full. `wanted` are the build ids of files to fetch, with
    their kinds; `problems` are no fault of an input, each with what has it, CACHE or RUN.
    """

    results: tuple[InputResult, ...] = ()
    requests: tuple[DecodeRequest, ...] = ()
    fatal: str = ""
    wanted: tuple[tuple[str, tuple[Kind, ...]], ...] = ()
    problems: tuple[tuple[str, str], ...] = ()


class DecodeTask(NamedTuple):
    """A binary whose table is to be made."""

    config: WorkerConfig
    epoch: int
    request: DecodeRequest


class DecodeResult(NamedTuple):
    """The result of a `DecodeTask`: how many addresses the table has, its bytes, or why there is none. `fatal` and
    `problems` are as in `TaskResult`."""

    key: str
    addresses: int = 0
    size: int = 0
    seconds: float = 0.0
    failure: str = ""
    fatal: str = ""
    problems: tuple[tuple[str, str], ...] = ()


class WaitingTime(NamedTuple):
    """What an input waits for: binaries to decode, or files to fetch, which may need to be decoded too. `mappings` has
    the number of a profile, and a mapping of it with path and key of its binary."""

    decodes: list[PendingDecode]
    wanted: dict[str, list[Kind]]
    mappings: list[tuple[int, int, str, str]]


class Outputs(NamedTuple):
    """The outputs of an input and its files with rows, by server or file the failures that may have cost names, and the
    binaries that names are missing for."""

    profiles: list[ProfileRow]
    failures: dict[str, Failure]
    wants: set[Want]
    row_files: list[RowFile]

    def result(self, number: int) -> InputResult:
        """The result of the input with this number."""
        detail = "; ".join(f"{failure.place}: {failure.text}" for failure in self.failures.values())
        reasons = {failure.reason.code for failure in self.failures.values()}
        reason = next((code for code in INCOMPLETE if code in reasons), "")
        wants = tuple(sorted((want.key, want.found) for want in self.wants))
        rows = tuple(self.row_files)
        return InputResult(number, State.DONE, tuple(self.profiles), reason, detail, wants=wants, row_files=rows)


class Worker:
    """The state of a worker process."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.out, self.shared = Storage.of(config.out), open_shared(config)
        self.tables = RunTables(self.shared, config.options.nearest_line)
        self.warehouse = open_warehouse(config, self.shared)
        self.requested: dict[str, UInt64] = {}
        self._epoch = -1
        self._open_files = ExitStack()
        self._problems: list[tuple[str, str]] = []
        self._reported: set[tuple[str, str]] = set()
        self.symbolizer = self._open()
        self.files = KnownFiles(self.symbolizer.index)

    def _open(self) -> Symbolizer:
        config = self.config
        self.servers = None
        if config.debuginfod:
            client = open_client(config.debuginfod, config.refresh_misses, folder=config.downloads)
            self._open_files.enter_context(client)
            self.servers = WorkerServers(client, self.shared)
        self.cache = open_tables(config.cache, config.cache_limit) if config.cache else None
        symbolizer = Symbolizer(
            config.binaries, config.options, cache=self.cache, servers=self.servers, tables=self.tables
        )
        return self._open_files.enter_context(symbolizer)

    def begin(self, epoch: int) -> None:
        """Prepare for a task."""
        self.tables.begin(epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self.requested.clear()
            if self.cache is not None:
                self.cache.forget_misses()
        if self.symbolizer.open_binaries > MAX_OPEN:
            self.close()
            self.symbolizer = self._open()
            self.files = KnownFiles(self.symbolizer.index)
        if self.servers is not None:
            self.servers.begin(epoch)
            self.servers.take_wanted()

    def match(self, profile: Profile) -> Resolutions:
        """Match a profile. What the folders have for it is noted before that."""
        if self.config.binaries:
            self.files.note(profile)
        return self.symbolizer.match(profile)

    def note(self, report: Report) -> None:
        """Note what is wrong with the run by the report on a profile: with folders, mapping files, the installation."""
        self._problems += ((RUN, each) for each in report.problems)

    def new_problems(self) -> tuple[tuple[str, str], ...]:
        """What is wrong with the cache and with the run, and was not reported before."""
        of_cache = self.cache.problems if self.cache else []
        problems = [(CACHE, each) for each in of_cache]
        problems += (each for each in self._problems if each[1] not in of_cache)  # reports have those of the cache too
        self._problems.clear()
        new = tuple(each for each in dict.fromkeys(problems) if each not in self._reported)
        self._reported.update(new)
        return new

    def close(self) -> None:
        """Close all files."""
        self._open_files.close()
        self.tables.forget()
        gc.collect()

    def not_requested(self, key: str, vaddrs: UInt64) -> UInt64:
        """Those of `vaddrs` of a binary that this worker has not requested before."""
        return np.setdiff1d(vaddrs, self.requested.get(key, vaddrs[:0]), assume_unique=True)

    def note_requested(self, key: str, vaddrs: UInt64) -> None:
        """Note that `vaddrs` of a binary are requested."""
        self.requested[key] = distinct(np.concatenate((self.requested.get(key, vaddrs[:0]), vaddrs)))
        if sum(map(len, self.requested.values())) > MAX_REQUESTED:
            self.requested.clear()


def index_folder(config: WorkerConfig) -> str | None:
    """The folder of the index of binaries, None if nothing is kept."""
    return default_folder() if is_url(config.cache) else config.cache or None


def open_shared(config: WorkerConfig) -> Storage:
    """The storage that workers share; those of one machine share their copies of remote files."""
    return Storage.of(config.shared, os.path.join(default_folder(), "fetched"))


def open_warehouse(config: WorkerConfig, shared: Storage) -> Warehouse | None:
    """The files with rows, if they are wanted."""
    return Warehouse(config.rows, shared, config.service_label) if config.rows else None


_worker: list[Worker] = []


def worker_for(config: WorkerConfig, epoch: int) -> Worker:
    """The worker of this process, a new one for another batch."""
    if not _worker or _worker[0].config != config:
        forget_worker()
        _worker.append(Worker(config))
    _worker[0].begin(epoch)
    return _worker[0]


def symbolize_inputs(work: SymbolizeTask) -> TaskResult:
    """Symbolize inputs and write their outputs, or request what has to be decoded or fetched for them."""
    try:
        worker = worker_for(work.config, work.epoch)
    except SymbolizeError as error:
        return TaskResult(fatal=str(error))
    results: list[InputResult] = []
    decodes: list[PendingDecode] = []
    wanted: dict[str, dict[Kind, None]] = {}
    for item in work.items:
        started = time.perf_counter()
        result = InputResult(item.number, State.QUARANTINED)
        try:
            found = symbolize_input(worker, item, may_defer=bool(work.spill), may_want=work.may_want)
        except Unreachable as error:
            is_unanswered = not isinstance(error, Denied)
            result = result._replace(reason=UNREACHABLE, detail=str(error), is_unanswered=is_unanswered)
        except InputError as error:
            is_ignored = kind_of(error) in work.config.ignored
            result = result._replace(reason=IGNORED if is_ignored else "unreadable", detail=str(error))
        except (OutputError, UsageError) as error:
            if isinstance(error, OutputError) and not (worker.out.is_local and is_of_one_name(error)):
                return TaskResult(fatal=str(error))
            result = result._replace(reason="unwritable", detail=str(error))
        except MemoryError:
            raise
        except Exception:  # a bug costs this input only; the detail says where it is
            result = result._replace(reason="error", detail=traceback.format_exc(limit=-3))
        else:
            if isinstance(found, Outputs):
                result = found.result(item.number)
            else:
                decodes += found.decodes
                for build_id, kinds in found.wanted.items():
                    wanted.setdefault(build_id, {}).update(dict.fromkeys(kinds))
                reason, detail = (FETCH, "") if found.wanted else ("", json.dumps(found.mappings))
                result = InputResult(item.number, State.SCANNED, (), reason, detail)
        results.append(result._replace(seconds=time.perf_counter() - started))
    try:
        requests = spill_addresses(worker, decodes, work.spill)
    except OutputError as error:
        return TaskResult(fatal=str(error))
    files = tuple((build_id, tuple(kinds)) for build_id, kinds in wanted.items())
    return TaskResult(tuple(results), requests, wanted=files, problems=worker.new_problems())


def kind_of(error: InputError) -> str:
    """Why an input cannot be read: one of UNREADABLE."""
    if isinstance(error, EmptyInput):
        return "empty"
    if isinstance(error, NoProfile):
        return "no-profile"
    if isinstance(error.__cause__, FileNotFoundError):
        return "gone"
    return "denied" if isinstance(error.__cause__, PermissionError) else "damaged"


def is_of_one_name(error: OutputError) -> bool:
    """Whether an output cannot be written because of its name, which does not concern the others."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in NAMING_ERRORS


def symbolize_input(worker: Worker, item: Item, may_defer: bool, may_want: bool) -> Outputs | WaitingTime:
    """Symbolize all profiles of an input; the outputs, or, if it may wait, what has to be decoded or fetched first."""
    with open_input(item.uri) as source:
        found = load_all(source, worker.config.load_options)
        single = found[0].profile if len(found) == 1 else None
        outputs = Outputs([], {}, set(), [])
        if may_defer:
            waiting = WaitingTime([], {}, [])
            for number, each in enumerate(found):
                profile = single or each.profile
                matched = worker.match(profile)
                for decode in worker.symbolizer.pending_decodes(matched):
                    waiting.decodes.append(decode)
                    path, key = decode.files[0][0], decode.key
                    waiting.mappings.extend((number, mapping, path, key) for mapping in decode.mappings)
                if worker.servers is not None:
                    waiting.wanted.update(worker.servers.take_wanted() if may_want else {})
                if single is not None and not any(waiting):
                    write_profile(worker, item, each, worker.symbolizer.finish(single, matched), outputs)
                    return outputs
            if waiting.wanted:
                return waiting._replace(decodes=[])  # requested again when the files are there
            if waiting.decodes:
                return waiting
        decoded: dict[int, dict[int, tuple[str, str]]] = {}
        for number, mapping, path, key in json.loads(item.pending) if item.pending else ():
            decoded.setdefault(number, {})[mapping] = path, key
        for number, each in enumerate(found):
            profile = single or each.profile
            matched = worker.match(profile)
            matched.mark_changed_files(decoded.get(number, {}))
            write_profile(worker, item, each, worker.symbolizer.finish(profile, matched), outputs)
        return outputs


def write_profile(worker: Worker, item: Item, loaded: LoadedProfile, result: Result, outputs: Outputs) -> None:
    """Write one profile, and add it to `outputs`.

    One without any name does not replace an output with names that an earlier run made of the same input (R279, results
    of earlier runs). An input is the same if its bytes are, and none is kept if all inputs are to be done again.
    """
    for failure in result.report.failures:
        outputs.failures.setdefault(failure.place, failure)
    outputs.wants.update(worker.files.wants(result.report))
    worker.note(result.report)
    name = (f"{item.folder}/{loaded.name}" if loaded.name else item.name) + ENDING
    if not result.report.percent:
        for row in item.before:
            if row.output == name and row.coverage["symbolized_percent"] and has_size(worker.out, name, row.size):
                outputs.profiles.append(row._replace(coverage=row.coverage | {"kept": True}))
                if worker.warehouse is not None:
                    kept = load_one(worker.out.read_file(name), DEFAULTS)
                    outputs.row_files.append(worker.warehouse.write(kept, name, item.uri))
                return
    path = local_path(item.uri)
    if path is not None and worker.out.is_local:
        check_inputs([path], [os.path.join(worker.out.url, name)])
    with worker.out.write(name) as file:
        write(result.profile, file)
        size = file.tell()
    outputs.profiles.append(ProfileRow(name, size, coverage(result.report)))
    if worker.warehouse is not None:
        outputs.row_files.append(worker.warehouse.write(result.profile, name, item.uri))


def has_size(out: Storage, name: str, size: int) -> bool:
    """Whether an output is there and has this size. Raises OutputError if the store does not answer."""
    try:
        return out.size(name) == size
    except InputError as error:
        raise OutputError(str(error)) from error


def spill_addresses(worker: Worker, decodes: list[PendingDecode], spill: str) -> tuple[DecodeRequest, ...]:
    """Write the addresses that this worker has not requested before to the file `spill`; the requests for them."""
    merged: dict[str, list[PendingDecode]] = {}
    for decode in decodes:
        merged.setdefault(decode.key, []).append(decode)
    requests: list[DecodeRequest] = []
    pieces: list[UInt64] = []
    start = 0
    for key, same in merged.items():
        vaddrs = worker.not_requested(key, distinct(np.concatenate([decode.vaddrs for decode in same])))
        if len(vaddrs):
            requests.append(DecodeRequest(key, same[0].files, [(spill, start, len(vaddrs))]))
            pieces.append(vaddrs)
            start += len(vaddrs)
    if pieces:
        with worker.shared.write(f"{SPILLS}/{spill}") as file:
            file.writelines(vaddrs.tobytes() for vaddrs in pieces)
    for request, vaddrs in zip(requests, pieces, strict=True):  # not before they are written
        worker.note_requested(request.key, vaddrs)
    return tuple(requests)


def decode_binary(work: DecodeTask) -> DecodeResult:
    """Make the table of a binary for all requested addresses, and share it unless the cache has it as a whole."""
    started = time.perf_counter()
    result = DecodeResult(work.request.key)
    try:
        worker = worker_for(work.config, work.epoch)
    except SymbolizeError as error:
        return result._replace(fatal=str(error))
    try:
        result = decode(worker, work.request)
    except ReadFailure as error:  # each profile tries for itself, and reports it
        result = result._replace(failure=str(error))
    except OutputError as error:
        result = result._replace(fatal=str(error))
    return result._replace(seconds=time.perf_counter() - started, problems=worker.new_problems())


def decode(worker: Worker, request: DecodeRequest) -> DecodeResult:
    """Make and share the table of a binary. Raises ReadFailure and OutputError."""
    key, files, spills = request
    pieces = [worker.tables.addresses(key)]
    for spill, start, count in spills:
        with suppress(OSError, InputError):  # the addresses of a lost file are looked up without the table
            pieces.append(read_addresses(worker.shared.read_file(f"{SPILLS}/{spill}"), start, count))
    vaddrs = distinct(np.concatenate(pieces))
    binary = worker.symbolizer.binary_of(PendingDecode(key, files, vaddrs))
    if binary is None:
        return DecodeResult(key, failure=f"{files[0][0] if files else ''}: was removed, or has changed")
    try:
        table = binary.table(None if worker.config.options.nearest_line else vaddrs)
        size = table.file_size
        if not binary.is_kept:
            try:
                size = worker.tables.write(binary, table, None if binary.has_whole else vaddrs)
            finally:
                table.check()  # raises the reason, if the table is of a file that was truncated
    finally:
        binary.forget()
    return DecodeResult(key, len(vaddrs), size)


def forget_worker() -> None:
    """Close what this process keeps."""
    while _worker:
        _worker.pop().close()
