"""Progress, log, metrics and report of a batch, as the options of `symbolize batch` ask for."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

from symbolize.batch.monitoring.logs import JsonLog
from symbolize.batch.monitoring.observers import Observer, ObserverGroup
from symbolize.batch.monitoring.summary import Summary, Tally, write_quarantine
from symbolize.cli.batch_progress import BatchProgress
from symbolize.cli.hints import OPTION_HINTS
from symbolize.cli.options import NO_SAMPLES, print_error, print_output
from symbolize.core.closing import Closeable
from symbolize.core.errors import UsageError, printable
from symbolize.core.terminal import width_of
from symbolize.storage.input_names import ENDING, Input
from symbolize.storage.inputs import NAME_LIST, find_inputs, local_path
from symbolize.storage.patterns import is_pattern, split_pattern
from symbolize.write.files import check_inputs, output_file

if TYPE_CHECKING:
    from symbolize.batch.job import Plan
    from symbolize.batch.manifest import Manifest
    from symbolize.batch.monitoring.metrics import Metrics

QUARANTINE: Final = "quarantine.jsonl"
"""The list of quarantined inputs, in the folder of the manifest."""
STANDARD_OUTPUT: Final = "-"
FILES: Final = ("log_json", "metrics_file", "report_file")
"""The options that name a file to write."""


class BatchMonitor(Closeable):
    """Monitors a batch through its `observer`; metrics have the figures of all inputs of `manifest`.

    Raises OutputError or UsageError if the log or the metrics cannot be written or served.
    """

    def __init__(self, options: argparse.Namespace, version: str = "", manifest: Manifest | None = None) -> None:
        self._options = options
        self._tally = Tally()
        check_names(options)
        with ExitStack() as held:
            progress = held.enter_context(BatchProgress(options.quiet))
            self._progress = progress
            observers: list[Observer] = [progress, self._tally]
            self._log: JsonLog | None = None
            self._metrics: Metrics | None = None
            if options.log_json is not None:
                self._log = held.enter_context(JsonLog(options.log_json, progress.warn))
                observers.append(self._log)
            if options.metrics_file is not None or options.metrics_port is not None:
                try:
                    from symbolize.batch.monitoring.metrics import Metrics
                    from symbolize.batch.monitoring.metrics_export import MetricsFile, MetricsServer
                except ImportError:
                    option = "--metrics-port" if options.metrics_file is None else "--metrics-file"
                    needed = "the package prometheus-client: pip install prometheus-client"
                    raise UsageError(f"{option} needs {needed}") from None

                metrics = self._metrics = Metrics(version, manifest=manifest)
                observers.append(metrics)
                if options.metrics_file is not None:
                    held.enter_context(MetricsFile(metrics, options.metrics_file, progress.warn))
                if options.metrics_port is not None:
                    server = MetricsServer(metrics, options.metrics_port, options.metrics_address)
                    held.enter_context(server)
                    if not options.metrics_port and not options.quiet:
                        print_error(f"symbolize: metrics at {server.url}")
                held.enter_context(metrics)  # closed before the file is written a last time
            self.observer = ObserverGroup(observers)
            self._open = held.pop_all()

    def reopen_log(self) -> None:
        """Continue the log in a new file, after it was renamed."""
        if self._log is not None:
            self._log.reopen()

    def ended(self, exit_code: int) -> None:
        """Let the metrics have the exit code."""
        if self._metrics is not None:
            self._metrics.ended(exit_code)

    def close(self) -> None:
        """End progress, log and metrics."""
        self._open.close()

    def list_quarantined(self, manifest: Manifest, folder: str) -> str:
        """List the quarantined inputs in a file in `folder`; its path, empty if there are none."""
        path = os.path.join(folder, QUARANTINE)
        return path if write_quarantine(manifest, path) else ""

    def report(self, manifest: Manifest, folder: str) -> float:
        """List the quarantined inputs in `folder`, and write the report on all inputs; the percentage of the sample
        value of a profile that has names, on average, or NO_SAMPLES. Raises OutputError."""
        options = self._options
        self._progress.close()
        quarantine = self.list_quarantined(manifest, folder)
        later = "" if options.retry_missing or options.watch else "--retry-missing"
        with Summary(manifest, self._tally, OPTION_HINTS, "--again", later) as summary:
            if options.report == "json":
                self._write(summary.json_pieces(), options.report_file or STANDARD_OUTPUT)
            else:
                summary.read()
                if options.report_file is not None:
                    self._write([summary.text(quarantine)], options.report_file)
            if not options.quiet and (options.report != "text" or options.report_file is None):
                print_error(summary.text(quarantine, width_of(sys.stderr)).removesuffix("\n"))
            if not summary.outputs:
                return 100.0
            return summary.percents.mean if summary.percents.count else NO_SAMPLES

    def _write(self, pieces: Iterable[str], name: str) -> None:
        """Write text to a file, or to standard output."""
        if name == STANDARD_OUTPUT:
            for piece in pieces:
                print_output(piece)
            print_output("", flush=True)
            return
        with output_file(name) as file:
            for piece in pieces:
                file.write(piece.encode(errors="replace"))


def check_overwritten(options: argparse.Namespace, plan: Plan) -> None:
    """Raise UsageError if a log or report would overwrite an input, an output or the state of the batch (R278, inputs
    are kept)."""
    maps = [each.partition("=")[2] or each for each in options.proguard_maps]
    out = local_path(plan.config.out)
    for option in FILES:
        name, shown = getattr(options, option), f"--{option.replace('_', '-')}"
        if name is None:
            continue
        check_inputs([*options.binaries, *maps], [name])
        path = os.path.realpath(name)
        if name == STANDARD_OUTPUT or (os.path.exists(path) and not os.path.isfile(path)):
            continue
        if out is not None and is_in(path, out) and path.endswith(ENDING):
            raise UsageError(f"{shown} {name}: is the name of an output; choose another file")
        if is_in(path, plan.state):
            raise UsageError(f"{shown} {name}: is in the folder with the state of the batch; choose another file")
        check_arguments(plan, path, f"{shown} {name}")


def check_arguments(plan: Plan, path: str, shown: str) -> None:
    """Raise UsageError if the file at `path`, which may not exist yet, is an input or would be taken as one."""
    there = os.stat(path) if os.path.exists(path) else None
    for argument in plan.arguments:
        given = local_path(argument)
        if given is None or argument == NAME_LIST:
            continue
        if os.path.isdir(given) and is_in(path, given):
            raise UsageError(f"{shown}: is inside the input {argument}, and would be taken as an input")
        root = split_pattern(given)[0] or "." if is_pattern(given) else given
        # Only a file with several links can be an input by a name elsewhere.
        if there is None or not (there.st_nlink > 1 or is_in(path, root) or not os.path.isdir(root)):
            continue
        for found in find_inputs([argument], None):
            file = local_path(found.uri) if isinstance(found, Input) else None
            with suppress(OSError):
                if file is not None and os.path.samestat(os.stat(file), there):
                    raise UsageError(f"{shown}: is the same file as the input {found.uri}, and is never overwritten")


def is_in(path: str, folder: str) -> bool:
    """Whether a path without links is in a folder."""
    return path.startswith(os.path.realpath(folder).rstrip("/") + "/")


def check_names(options: argparse.Namespace) -> None:
    """Raise UsageError if two of the log, metrics and report would go to one file, or one has no name."""
    named: dict[str, str] = {}
    for option in FILES:
        name, shown = getattr(options, option), "--" + option.replace("_", "-")
        if name is None:
            if option != "report_file" or options.report == "text":
                continue
            name, shown = STANDARD_OUTPUT, f"--report {options.report}"
        if not name or (name == STANDARD_OUTPUT and option == "metrics_file"):
            raise UsageError(f"{shown} needs the name of a file")
        path = name if name == STANDARD_OUTPUT else os.path.realpath(name)
        if path in named and not (os.path.exists(path) and not os.path.isfile(path)):
            raise UsageError(f"{shown} and {named[path]} would both go to {printable(name)}")
        named[path] = shown
