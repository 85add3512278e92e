"""What of a batch is seen while it runs and when it is over, as the options of `symbolize batch` say."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

from symbolize.batch.seen.logs import JsonLog
from symbolize.batch.seen.summary import Summary, Tally, write_quarantine
from symbolize.batch.seen.watchers import Watchers
from symbolize.cli.batch_progress import BatchProgress
from symbolize.cli.options import tell
from symbolize.errors import OutputError, UsageError, printable
from symbolize.write.files import output_file

if TYPE_CHECKING:
    from symbolize.batch.job import Watcher
    from symbolize.batch.manifest import Manifest

QUARANTINE: Final = "quarantine.jsonl"
"""The list of quarantined inputs, in the folder of the manifest."""
STANDARD_OUTPUT: Final = "-"


class Seen:
    """What looks on at a batch: `watcher` is to be told of everything. A context manager.

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
            watchers: list[Watcher] = [progress, self._tally]
            if options.log_json is not None:
                watchers.append(held.enter_context(JsonLog(options.log_json, progress.warn)))
            if options.metrics_file is not None or options.metrics_port is not None:
                from symbolize.batch.seen.metrics import Metrics
                from symbolize.batch.seen.metrics_out import MetricsFile, MetricsServer

                metrics = Metrics(version)
                watchers.append(metrics)
                if options.metrics_file is not None:
                    held.enter_context(MetricsFile(metrics, options.metrics_file, progress.warn))
                if options.metrics_port is not None:
                    server = held.enter_context(MetricsServer(metrics, options.metrics_port, options.metrics_address))
                    if not options.metrics_port and not options.quiet:
                        tell(f"symbolize: metrics at {server.url}")
                held.enter_context(metrics)  # closed before the file is written a last time
            self.watcher = Watchers(watchers)
            self._held = held.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def list_quarantined(self, manifest: Manifest, turn: int, folder: str) -> str:
        """Write the list of what is in quarantine in `folder`; its path, empty if there is nothing."""
        listing = os.path.join(folder, QUARANTINE)
        return listing if write_quarantine(manifest, turn, listing) else ""

    def close_up(self, manifest: Manifest, turn: int, folder: str) -> float:
        """List what is quarantined in `folder`, and report; the percentage of sample value that has names in a profile,
        on average.

        The report is on all inputs of the turn, also those that earlier runs did. Raises OutputError.
        """
        options = self._options
        self._progress.close()
        listing = self.list_quarantined(manifest, turn, folder)
        with Summary(manifest, turn, self._tally) as summary:
            if options.report == "json":
                self._write(summary.json_pieces(), options.report_file or STANDARD_OUTPUT)
            else:
                summary.read()
                if options.report_file is not None:
                    self._write([summary.text(listing)], options.report_file)
            if not options.quiet and (options.report == "json" or options.report_file is None):
                tell(summary.text(listing).removesuffix("\n"))
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


def check_names(options: argparse.Namespace) -> None:
    """Raise UsageError where two things that are told would go to the same place, or one has no name."""
    named: dict[str, str] = {}
    for option in ("log_json", "metrics_file", "report_file"):
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
