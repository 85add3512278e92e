"""`symbolize batch INPUT... --out DIR`: many profiles, each binary decoded once, and watching for more."""

from __future__ import annotations

import argparse
import gc
import hashlib
import itertools
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from symbolize.cli.arguments import Parser
from symbolize.cli.console import EXIT_BELOW, EXIT_DONE, EXIT_FAILED, EXIT_SOME, print_error
from symbolize.cli.options import (
    add_cache_options,
    add_input_options,
    add_list,
    add_naming_options,
    add_volume_options,
    at_least_one,
    below_text,
    binary_roots,
    byte_size,
    check_servers,
    load_options,
    number,
    percentage,
    positive,
    warn_if_interpreted,
)
from symbolize.cli.selection import add_edit_options, edits_of
from symbolize.cli.symbolizing import asked_for
from symbolize.core.errors import UsageError, did_you_mean
from symbolize.core.files import no_such
from symbolize.storage.inputs import STATE_FOLDER

if TYPE_CHECKING:
    from symbolize.batch.engines.engine import Engine
    from symbolize.batch.job import Batch, Plan, Shard
    from symbolize.batch.manifest import Manifest
    from symbolize.batch.monitoring.summary import PendingEvents
    from symbolize.storage.backend import Storage

SECONDS, DECODE_SECONDS = 600.0, 3600.0
MEMORY, DECODE_MEMORY = 4 << 30, 16 << 30
MAX_PORT = 65535
ALL_KINDS = "all"
IGNORE = "--ignore-unreadable"
RETRY_EVERY = 60.0
"""Seconds after which inputs are retried while watching."""
LOOK_AFTER_EVERY = 86400.0
"""Seconds after which the state is looked after while watching."""
PATIENCE = 1.5
"""Seconds that running tasks have to end after the first signal while watching."""
TASKS_ON_CLUSTER = 8
"""Inputs in one task of a cluster, which takes milliseconds to send."""
STORE_SECONDS = 3600.0
"""Seconds that an input may wait for stores in all; each request has a limit of its own."""


def with_all_kinds(arguments: Sequence[str]) -> list[str]:
    """The arguments, with its default value behind the one option whose value may be left out."""
    return [f"{IGNORE}={ALL_KINDS}" if argument == IGNORE else argument for argument in arguments]


def kinds_of(text: str) -> tuple[str, ...]:
    """The kinds of unreadable inputs in a list. Raises UsageError."""
    from symbolize.batch.tasks import UNREADABLE

    kinds = tuple(filter(None, text.split(",")))
    for kind in kinds:
        if kind not in (*UNREADABLE, ALL_KINDS):
            raise UsageError(f"{IGNORE}={kind}: is not one of {', '.join(UNREADABLE)}{did_you_mean(kind, UNREADABLE)}")
    return UNREADABLE if ALL_KINDS in kinds else kinds


def batch_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize batch",
        "Symbolize many profiles: every binary is decoded once for all of them, on all cores or on a cluster. A batch "
        "that was interrupted or killed continues when the same command is run again.",
        ["[OPTIONS] --out DIR INPUT..."],
        brief=(
            *("--out", "-b", "--debuginfod", "--demangle", "--jobs", "--dask", "--watch", "--again"),
            *("--retry-quarantined", "--report", "--report-file", "--fail-under", "--log-json", "-v", "-q"),
        ),
        epilog="Exit codes: 0 done; 1 the batch, a binary or a server failed, run it again; 2 usage; 3 below "
        "--fail-under; 4 some inputs are newly missing or quarantined; 130 interrupted.",
    )
    result.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*",
        help="file, folder, pattern, or URL of one (s3://, gs://, file://);\n- for a list of names on standard input",
    )
    selection = result.group("Selection")
    add_list(
        selection,
        "--exclude",
        metavar="PATTERN",
        help="leave out inputs that match, and all in folders that do;\na name without a slash matches anywhere",
    )
    selection.add_argument(
        IGNORE,
        metavar="KIND,...",
        default="",
        help="quarantine unreadable inputs without exit code 4 and without a line each; of all kinds without a value, "
        "or of these: empty, no-profile, damaged, denied, gone",
    )
    output = result.group("Output")
    output.add_argument(
        "--out",
        "-o",
        metavar="DIR",
        required=True,
        help="folder or URL for the outputs;\nwhich are named as the inputs",
    )
    add_row_options(output)
    add_input_options(result)
    add_naming_options(result)
    add_edit_options(result)
    add_cache_options(result)
    add_execution_options(result.group("Execution"))
    add_limit_options(result.group("Limits"))
    watch = result.group("Watching")
    add_list(
        watch,
        "--watch",
        metavar="DIR",
        help="also take this input, and scan all for new files;\nuntil interrupted. May be given several times. A file "
        "is taken when it is unchanged between two scans",
    )
    watch.add_argument(
        "--interval", metavar="SECONDS", type=positive, default=5.0, help="time between two scans (default: 5)"
    )
    add_report_options(result.group("Report"))
    add_volume_options(result, "also print notes on folders with binaries")
    return result


def add_row_options(group: argparse._ArgumentGroup) -> None:
    """The options for rows of a data warehouse."""
    group.add_argument(
        "--parquet",
        metavar="DIR",
        help="folder or URL for the values by function and line,\na Parquet file for each profile below "
        "date=DAY/service=NAME",
    )
    group.add_argument(
        "--service-label",
        metavar="KEY",
        default="service.name",
        help="label, attribute or comment with the service of a profile\n(default: service.name), else it is the first "
        "folder of the input",
    )


def add_execution_options(group: argparse._ArgumentGroup) -> None:
    """The options for where the batch runs and keeps its state."""
    engine = group.add_mutually_exclusive_group()
    engine.add_argument(
        "--jobs", "-j", metavar="N", type=at_least_one, help="worker processes (default: one for each core)"
    )
    engine.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on a dask.distributed cluster, for example\ntcp://scheduler:8786; needs a --cache that all reach",
    )
    group.add_argument(
        "--shard",
        metavar="I/N",
        help="process only part I of N equal parts, from 0 on; with N alone, I is taken from JOB_COMPLETION_INDEX",
    )
    group.add_argument(
        "--state",
        metavar="DIR",
        help=f"local folder for the record of what is done (default: {STATE_FOLDER} in --out, or in the user's cache "
        "folder if --out is a URL)",
    )
    group.add_argument(
        "--keep-state",
        metavar="DAYS",
        type=positive,
        default=90.0,
        help="forget inputs that were not found for so long\n(default: 90 days)",
    )
    group.add_argument(
        "--prune-outputs", action="store_true", help="remove outputs and rows of inputs that were deleted"
    )
    group.add_argument("--retry-quarantined", action="store_true", help="try quarantined inputs again")
    group.add_argument(
        "--retry-missing",
        action="store_true",
        help="symbolize inputs again that are done and miss names,\nif there are files for these now",
    )
    group.add_argument("--again", action="store_true", help="symbolize all inputs again,\nalso those that are done")


def add_limit_options(group: argparse._ArgumentGroup) -> None:
    """The options for limits; an input that exceeds one is quarantined."""
    group.add_argument(
        "--time-limit",
        metavar="SECONDS",
        type=positive,
        default=SECONDS,
        help=f"time for one input (default: {SECONDS:.0f}), which is quarantined if it takes longer; decoding a binary "
        f"may take {DECODE_SECONDS:.0f} s, or this if it is more",
    )
    group.add_argument(
        "--memory-limit",
        metavar="SIZE",
        type=byte_size,
        default=MEMORY,
        help="private memory for one input, for example 2G (default: 4G), which is quarantined if it takes more; "
        "decoding a binary may take 16G, or this if it is more",
    )
    group.add_argument(
        "--attempts",
        metavar="N",
        type=at_least_one,
        default=3,
        help="how often to try an input that kills its worker or exceeds a limit (default: 3)",
    )


def add_report_options(group: argparse._ArgumentGroup) -> None:
    """The options for what is reported of the batch, and where."""
    group.add_argument(
        "--report",
        metavar="FORM",
        choices=("text", "json"),
        default="text",
        help="format of the report at the end: text or json (default: text)",
    )
    group.add_argument(
        "--report-file",
        metavar="FILE",
        help="write the report to this file\n(default: text to standard error, json to standard output)",
    )
    group.add_argument("--metrics-file", metavar="FILE", help="write Prometheus metrics to this file every 5 seconds")
    group.add_argument(
        "--metrics-port", metavar="PORT", type=port, help="serve Prometheus metrics at this port; 0: any free one"
    )
    group.add_argument(
        "--metrics-address",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address of the metrics server (default: 127.0.0.1)",
    )
    group.add_argument(
        "--log-json",
        metavar="FILE",
        help="append events to this file as JSON lines;\n- for standard output. SIGHUP opens the file again",
    )
    group.add_argument(
        "--fail-under",
        metavar="PERCENT",
        type=percentage,
        help="exit with 3 if less than this share has names;\nof the frames of a profile, on average",
    )


def port(text: str) -> int:
    """A port to listen at."""
    value: int = number(text)
    if not 0 <= value <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a port (0 to {MAX_PORT})")
    return value


class Stop:
    """Whether a batch is to stop. While watching, the first signal asks for it: tasks that run have PATIENCE to end,
    and are stopped by KeyboardInterrupt then. Without `is_watching`, and at the second signal, that is raised at once.
    """

    def __init__(self, is_watching: bool) -> None:
        self._is_watching = is_watching
        self._event = threading.Event()
        self._timer = threading.Timer(PATIENCE, self._hurry)
        self._timer.daemon = True
        self._is_over = self.is_out_of_patience = False

    def is_set(self) -> bool:
        """Whether the batch is to stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until the batch is to stop."""
        self._event.wait(seconds)

    def handle(self, number: int, _: object) -> None:
        """Handle a signal."""
        if self._is_over and self.is_out_of_patience:
            return
        if not self._is_watching or self._event.is_set():
            raise KeyboardInterrupt
        self._event.set()
        self._timer.start()

    def end_patience(self) -> None:
        """From here on nothing is stopped any more."""
        self._is_over = True
        self._timer.cancel()

    def _hurry(self) -> None:
        self.is_out_of_patience = True
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def stop_on_signals(is_watching: bool) -> Iterator[Stop]:
    """Handle SIGTERM and SIGINT in the block."""
    stop = Stop(is_watching)
    before = {number: signal.signal(number, stop.handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        stop.end_patience()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def calling_on_hangup(call: Callable[[], None] | None) -> Iterator[None]:
    """Call `call` at SIGHUP in the block; without it the signal does what it did."""
    if call is None:
        yield
        return
    before = signal.signal(signal.SIGHUP, lambda number, frame: call())
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def keep_watching(
    batch: Batch, manifest: Manifest, interval: float, stop: Stop, when_failed: Callable[[], object]
) -> None:
    """Scan the inputs and process them, again and again until `stop`. Files that change wait for the next scan.

    `when_failed` is called when the number of quarantined inputs has changed.
    """
    from symbolize.batch.manifest import State

    failed = 0
    tried = looked_after = time.monotonic()
    for scan in itertools.count():
        if stop.is_set():
            return
        if time.monotonic() - tried > RETRY_EVERY:
            tried = time.monotonic()
            batch.retry_failed()
        is_due = time.monotonic() - looked_after > LOOK_AFTER_EVERY
        if is_due:
            looked_after = time.monotonic()
            batch.begin_generation()
        batch.watch_binaries()
        batch.take_in(lambda found, scan=scan: manifest.is_settled(found, scan))  # type: ignore[misc]
        manifest.end_scan(scan)
        if is_due or not scan:
            batch.look_after_state()
        counts = batch.work()
        if counts[State.QUARANTINED] != failed:
            failed = counts[State.QUARANTINED]
            when_failed()
        stop.wait(interval)


def run_batch(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code."""
    from symbolize import __version__
    from symbolize.batch.job import Batch
    from symbolize.batch.manifest import Manifest
    from symbolize.batch.monitoring.summary import PendingEvents
    from symbolize.cli.batch_monitoring import BatchMonitor, check_overwritten

    options = batch_parser().parse_args(with_all_kinds(arguments))
    plan = plan_of(options)
    check_overwritten(options, plan)
    gc.enable()  # the command may run for days
    warn_if_interpreted(options.quiet)
    with ExitStack() as held:
        stop = held.enter_context(stop_on_signals(bool(options.watch)))
        manifest = held.enter_context(Manifest(os.path.join(plan.state, "manifest.sqlite")))
        monitor = held.enter_context(BatchMonitor(options, __version__, manifest))
        held.enter_context(calling_on_hangup(monitor.reopen_log if options.log_json else None))
        engine = held.enter_context(open_engine(options))
        batch = held.enter_context(Batch(plan, engine, manifest, monitor.observer, stop.is_set))
        events = PendingEvents(manifest)
        try:
            if options.watch:
                keep_watching(
                    batch, manifest, options.interval, stop, lambda: monitor.list_quarantined(manifest, plan.state)
                )
            else:
                batch.run()
        except KeyboardInterrupt:
            if not stop.is_out_of_patience:
                raise
        finally:
            stop.end_patience()
            percent = monitor.report(manifest, plan.state)
        code = exit_code(options, batch, manifest, events, percent)
        events.forget_settled(batch.missing)
        if code == EXIT_SOME or options.watch:
            events.note_reported(batch.missing)
        monitor.ended(code)
    return code


def exit_code(
    options: argparse.Namespace, batch: Batch, manifest: Manifest, events: PendingEvents, percent: float
) -> int:
    """The exit code of a batch whose profiles have names for `percent` of their value: 1 before 4 before 3."""
    from symbolize.batch.manifest import State

    counts = manifest.count()
    is_waiting = counts[State.NEW] or counts[State.SCANNED]
    if not options.watch and (is_waiting or manifest.count_failed() or batch.unlisted):
        return EXIT_FAILED
    is_below = options.fail_under is not None and percent < options.fail_under
    if is_below:
        print_error(f"symbolize: {below_text(percent, options.fail_under)}")
    if events.count() or (not options.watch and events.missing(batch.missing)):  # missing inputs may still appear
        return EXIT_SOME
    return EXIT_BELOW if is_below else EXIT_DONE


def plan_of(options: argparse.Namespace) -> Plan:
    """The batch that the options ask for. Raises UsageError."""
    from symbolize.batch.engines.engine import TaskLimits
    from symbolize.batch.job import Plan, new_run
    from symbolize.batch.tasks import WorkerConfig
    from symbolize.storage.backend import Storage
    from symbolize.storage.urls import is_url
    from symbolize.symbols import DEFAULT_LIMIT, default_folder

    inputs = [*options.inputs, *options.watch]
    check_options(options, inputs)
    shard = shard_of(options.shard)
    out = Storage.of(options.out)
    rows = Storage.of(options.parquet) if options.parquet else None
    part = STATE_FOLDER if shard.parts == 1 else f"{STATE_FOLDER}/shard-{shard.number}-of-{shard.parts}"
    state = state_folder(options, inputs, out, part)
    if rows is not None:
        check_apart(inputs, rows, f"--parquet {options.parquet}")
    cache = "" if options.no_cache else options.cache or default_folder()
    if cache and not is_url(cache):
        cache = os.path.abspath(cache)
    elif cache:
        Storage.of(cache)
    downloads = ""
    if options.debuginfod and "env" not in options.debuginfod:
        from symbolize.binaries.links import default_folder as downloads_folder

        downloads = downloads_folder()
    config = WorkerConfig(
        tuple(os.path.abspath(root) for root in binary_roots(options)),
        out.url,
        f"{out.url}/{part}/work" if options.dask else os.path.join(state, "work"),
        new_run(),
        cache=cache,
        cache_limit=DEFAULT_LIMIT if options.cache_limit is None else options.cache_limit,
        options=asked_for(options, edits_of(options)),
        debuginfod=tuple(options.debuginfod),
        refresh_misses=options.refresh_misses,
        downloads=downloads,
        ignored=kinds_of(options.ignore_unreadable),
        load_options=load_options(options),
        rows=rows.url if rows is not None else "",
        service_label=options.service_label,
    )
    seconds, memory, attempts = options.time_limit, options.memory_limit, options.attempts
    waiting = STORE_SECONDS if "-" in inputs or any(map(is_url, (*inputs, options.out, cache))) else 0.0
    return Plan(
        inputs,
        config,
        state,
        limits=TaskLimits(seconds, memory, attempts, waiting),
        decode_limits=TaskLimits(max(seconds, DECODE_SECONDS), max(memory, DECODE_MEMORY), attempts, waiting),
        shard=shard,
        name_list=sys.stdin,
        retry_quarantined=options.retry_quarantined,
        retry_missing=options.retry_missing,
        again=options.again,
        exclude=options.exclude,
        keep_days=options.keep_state,
        prune_outputs=options.prune_outputs,
        per_task=TASKS_ON_CLUSTER if options.dask else 1,
    )


def check_options(options: argparse.Namespace, inputs: Sequence[str]) -> None:
    """Raise UsageError for options that are wrong by themselves."""
    if not inputs:
        raise UsageError("no inputs; name files, folders, patterns or URLs, or - for a list on standard input")
    if "" in inputs or not options.out:
        raise UsageError("an input or --out has an empty name")
    if options.watch and "-" in inputs:
        raise UsageError("a list on standard input cannot be watched")
    for root in options.binaries:
        if not os.path.exists(root):
            raise UsageError(f"--binaries {root}: {no_such(root, 'folder or file')}")
    check_servers(options.debuginfod)
    for name in ("cache", "parquet"):
        if getattr(options, name) == "":
            raise UsageError(f"--{name} has an empty name")
    if options.parquet:
        from symbolize.formats.outputs import check_parquet

        check_parquet()
    if options.dask and not (options.cache or options.no_cache):
        raise UsageError("--dask needs a --cache that all workers reach, a folder or a URL, or --no-cache")
    if any(not pattern.strip("/") for pattern in options.exclude):
        raise UsageError("--exclude needs a pattern of files or folders")


def state_folder(options: argparse.Namespace, inputs: Sequence[str], out: Storage, part: str) -> str:
    """The local folder for the manifest; `part` is its path below the outputs. Raises UsageError where inputs and
    outputs overlap."""
    from symbolize.batch.job import is_below
    from symbolize.storage.backend import LocalStorage
    from symbolize.storage.inputs import local_path
    from symbolize.symbols import default_folder

    local = [(argument, path) for argument in inputs if (path := local_path(argument)) is not None]
    check_apart(inputs, out, f"--out {options.out}")
    if options.state:
        if any(is_below(os.path.join(options.state, ""), LocalStorage(path)) for _, path in local):
            raise UsageError(f"--state {options.state}: is inside an input, so its files would be taken as inputs")
        return os.path.join(os.path.abspath(options.state), part.removeprefix(STATE_FOLDER).lstrip("/"))
    if out.is_local:
        return os.path.join(out.url, part)
    return os.path.join(default_folder(), "batches", hashlib.sha256(out.url.encode()).hexdigest()[:16], part)


def check_apart(inputs: Sequence[str], storage: Storage, shown: str) -> None:
    """Raise UsageError for an input in a storage of outputs."""
    from symbolize.batch.job import is_below
    from symbolize.storage.inputs import local_path

    for argument in inputs:
        path = local_path(argument)
        folder = argument if path is None else os.path.realpath(path)
        if is_below(os.path.join(folder, ""), storage):
            raise UsageError(f"{argument}: is inside {shown}, where files are not taken as inputs")


def shard_of(text: str | None) -> Shard:
    """The part of the inputs that `--shard` names. Raises UsageError."""
    from symbolize.batch.job import Shard

    if text is None:
        return Shard()
    index = os.environ.get("JOB_COMPLETION_INDEX", "")
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text if "/" in text else f"{index}/{text}")
    if match is None:
        raise UsageError(f"--shard {text}: is not I/N, or N with the number I in JOB_COMPLETION_INDEX")
    shard = Shard(int(match[1]), int(match[2]))
    if shard.number >= shard.parts:
        raise UsageError(f"--shard {text}: the parts are numbered from 0 to {shard.parts - 1}")
    return shard


def open_engine(options: argparse.Namespace) -> Engine:
    """What runs the tasks."""
    if options.dask:
        from symbolize.batch.engines.cluster import DaskEngine

        return DaskEngine(options.dask)
    from symbolize.batch.engines.local import LocalEngine

    return LocalEngine(options.jobs)
