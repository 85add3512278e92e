"""What of a batch is seen while it runs and when it is over, as the options of `symbolize batch` say."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, Self

from symbolize.batch.monitoring.logs import JsonLog
from symbolize.batch.monitoring.observers import Observer, ObserverGroup
from symbolize.batch.monitoring.summary import Summary, Tally, write_quarantine
from symbolize.batch.storage.input_names import ENDING, Input
from symbolize.batch.storage.inputs import LISTING, find_inputs, local_path
from symbolize.batch.storage.patterns import is_pattern, split_pattern
from symbolize.cli.batch_progress import BatchProgress
from symbolize.cli.hints import OPTION_HINTS
from symbolize.cli.options import print_error
from symbolize.core.errors import OutputError, UsageError, printable
from symbolize.write.files import check_inputs, output_file

if TYPE_CHECKING:
    from symbolize.batch.job import Plan
    from symbolize.batch.manifest import Manifest

QUARANTINE: Final = "quarantine.jsonl"
"""The list of quarantined inputs, in the folder of the manifest."""
STANDARD_OUTPUT: Final = "-"
FILES: Final = ("log_json", "metrics_file", "report_file")
"""The options that name a file to write."""


class BatchMonitor:
    """What looks on at a batch: `observer` is to be told of everything. A context manager.

    Of `options` it takes quiet, log_json, metrics_file, metrics_port, metrics_address, report and report_file. Raises
    OutputError or UsageError where something that was asked for cannot be begun.
    """

    def __init__(self, options: argparse.Namespace, version: str = "") -> None:
        self._options = options
        self._tally = Tally()
        check_names(options)
        with ExitStack() as held:
            progress = held.enter_context(BatchProgress(options.quiet))
            self._progress = progress
            observers: list[Observer] = [progress, self._tally]
            if options.log_json is not None:
                observers.append(held.enter_context(JsonLog(options.log_json, progress.warn)))
            if options.metrics_file is not None or options.metrics_port is not None:
                try:
                    from symbolize.batch.monitoring.metrics import Metrics
                    from symbolize.batch.monitoring.metrics_export import MetricsFile, MetricsServer
                except ImportError:
                    option = "--metrics-port" if options.metrics_file is None else "--metrics-file"
                    needed = "the package prometheus-client: pip install 'symbolize[metrics]'"
                    raise UsageError(f"{option} needs {needed}") from None

                metrics = Metrics(version)
                observers.append(metrics)
                if options.metrics_file is not None:
                    held.enter_context(MetricsFile(metrics, options.metrics_file, progress.warn))
                if options.metrics_port is not None:
                    server = held.enter_context(MetricsServer(metrics, options.metrics_port, options.metrics_address))
                    if not options.metrics_port and not options.quiet:
                        print_error(f"symbolize: metrics at {server.url}")
                held.enter_context(metrics)  # closed before the file is written a last time
            self.observer = ObserverGroup(observers)
            self._held = held.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def list_quarantined(self, manifest: Manifest, folder: str) -> str:
        """Write the list of what is in quarantine in `folder`; its path, empty if there is nothing."""
        listing = os.path.join(folder, QUARANTINE)
        return listing if write_quarantine(manifest, listing) else ""

    def close_up(self, manifest: Manifest, folder: str) -> float:
        """List what is quarantined in `folder`, and report; the percentage of sample value that has names in a profile,
        on average.

        The report is on all inputs of the turn, also those that earlier runs did. Raises OutputError.
        """
        options = self._options
        self._progress.close()
        listing = self.list_quarantined(manifest, folder)
        with Summary(manifest, self._tally, OPTION_HINTS, "--again") as summary:
            if options.report == "json":
                self._write(summary.json_pieces(), options.report_file or STANDARD_OUTPUT)
            else:
                summary.read()
                if options.report_file is not None:
                    self._write([summary.text(listing)], options.report_file)
            if not options.quiet and (options.report == "json" or options.report_file is None):
                print_error(summary.text(listing).removesuffix("\n"))
            return summary.percents.mean

    def _write(self, pieces: Iterable[str], name: str) -> None:
        """Write text to a file, or to standard output."""
        if name == STANDARD_OUTPUT:
            try:
                for piece in pieces:
                    sys.stdout.write(piece)
                sys.stdout.flush()
            except (OSError, ValueError, AttributeError) as error:  # AttributeError: standard output is closed
                raise OutputError(f"standard output: {getattr(error, 'strerror', None) or 'is closed'}") from error
            return
        with output_file(name) as file:
            for piece in pieces:
                file.write(piece.encode(errors="replace"))


def check_overwritten(options: argparse.Namespace, plan: Plan) -> None:
    """Raise UsageError where what is told would go to an input, an output or the records of the batch (rule R278)."""
    maps = [each.partition("=")[2] or each for each in options.proguard_map]
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
            raise UsageError(f"{shown} {name}: is the name of an output; name another file")
        if is_in(path, plan.state):
            raise UsageError(f"{shown} {name}: lies where the batch keeps its records; name another file")
        check_arguments(plan, path, f"{shown} {name}")


def check_arguments(plan: Plan, path: str, shown: str) -> None:
    """Raise UsageError if the file at `path`, which need not be there yet, is an input or would be taken for one."""
    there = os.stat(path) if os.path.exists(path) else None
    for argument in plan.arguments:
        given = local_path(argument)
        if given is None or argument == LISTING:
            continue
        if os.path.isdir(given) and is_in(path, given):
            raise UsageError(f"{shown}: lies in the input {argument}, where it would be taken for one")
        root = split_pattern(given)[0] or "." if is_pattern(given) else given
        # What has one name only is found where that is.
        if there is None or not (there.st_nlink > 1 or is_in(path, root) or not os.path.isdir(root)):
            continue
        for found in find_inputs([argument], None):
            file = local_path(found.uri) if isinstance(found, Input) else None
            with suppress(OSError):
                if file is not None and os.path.samestat(os.stat(file), there):
                    raise UsageError(f"{shown}: is the same file as the input {found.uri}, and is never overwritten")


def is_in(path: str, folder: str) -> bool:
    """Whether a path without links lies in a folder."""
    return path.startswith(os.path.realpath(folder).rstrip("/") + "/")


def check_names(options: argparse.Namespace) -> None:
    """Raise UsageError where two things that are told would go to the same place, or one has no name."""
    named: dict[str, str] = {}
    for option in FILES:
        name, shown = getattr(options, option), "--" + option.replace("_", "-")
        if name is None:
            if option != "report_file" or options.report != "json":
                continue
            name, shown = STANDARD_OUTPUT, "--report json"
        if not name or (name == STANDARD_OUTPUT and option == "metrics_file"):
            raise UsageError(f"{shown} needs the name of a file")
        path = name if name == STANDARD_OUTPUT else os.path.realpath(name)
        if path in named and not (os.path.exists(path) and not os.path.isfile(path)):
            raise UsageError(f"{shown} and {named[path]} would both go to {printable(name)}")
        named[path] = shown
