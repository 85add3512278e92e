"""Progress, log, metrics and report of a batch, as the options of `symbolize batch` ask for: a bar on a terminal, a
line now and then elsewhere."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, Never

from symbolize.batch.manifest import IGNORED, Renewed, State
from symbolize.batch.monitoring.observers import (
    PASSES,
    JsonLog,
    Observer,
    ObserverGroup,
    Tally,
    duration,
    one_line,
    rate_text,
)
from symbolize.batch.monitoring.summary import Summary, write_quarantine
from symbolize.cli.console import print_error, print_output
from symbolize.cli.hints import OPTION_HINTS
from symbolize.cli.options import NO_SAMPLES
from symbolize.core.closing import Closeable
from symbolize.core.errors import UsageError, printable
from symbolize.core.terminal import width_of
from symbolize.formats.files import check_inputs, output_file
from symbolize.storage.inputs import ENDING, NAME_LIST, Input, find_inputs, is_pattern, local_path, split_pattern
from symbolize.storage.urls import shown_uri

if TYPE_CHECKING:
    from tqdm import tqdm

    from symbolize.batch.fetching import FetchedFile
    from symbolize.batch.job import Plan
    from symbolize.batch.manifest import InputResult, Item, Manifest
    from symbolize.batch.monitoring.metrics import Metrics
    from symbolize.batch.tasks import DecodeResult


LINE_EVERY: Final = 10.0
"""Seconds between lines where there is no terminal."""
TICK: Final = 1.0
"""Seconds after which the time in the bar is updated."""
MAX_NAMED: Final = 20
"""Quarantined inputs that are named above a bar; the list at the end has all."""

RENEWED: Final = {
    Renewed.ASKED: "as asked with --again",
    Renewed.CHANGED: "because the input has changed",
    Renewed.RESULTS: "because this version of symbolize has other results",
    Renewed.OPTIONS: "because of other options",
    Renewed.OUTPUT: "because an output is gone or has changed",
    Renewed.RETRIED: "as asked with --retry-quarantined",
    Renewed.FAILED: "because something failed",
    Renewed.BINARIES: "because --retry-missing found files for them",
    Renewed.WATCHED: "because --watch found files for them",
}
RESULTS: Final = {State.DONE: "symbolized", State.SCANNED: "put off", State.QUARANTINED: "quarantined"}


class BatchProgress(Observer):
    """Shows the progress of a batch on standard error.

    On a terminal there is a bar for each pass; elsewhere a line when a pass begins and ends, and at most one in
    10 seconds in between. Quarantined inputs, up to MAX_NAMED above a bar, and problems have a line each. With `quiet`
    these lines are all.
    """

    def __init__(
        self, quiet: bool = False, is_terminal: bool | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._quiet = quiet
        self._has_bar = (has_terminal() if is_terminal is None else is_terminal) and not quiet
        self._clock = clock
        self._stage, self._total, self._done = "", 0, 0
        self._entered = self._last = 0.0
        self._results: Counter[State] = Counter()
        self._failed = 0
        self._bar: tqdm[Never] | None = None
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._ticker: threading.Thread | None = None
        self._has_begun = False

    def began(self, waiting: int, done: int, quarantined: int, renewed: Mapping[str, int]) -> None:
        """Show how much there is to do, once if the batch watches for inputs."""
        if not waiting and self._has_begun:
            return
        self._has_begun = True
        text = f"{waiting} inputs"
        if done:
            text += f", {done} done already"
        if quarantined:
            text += f", {quarantined} quarantined already"
        if renewed:
            reasons = ", ".join(f"{count} {RENEWED[Renewed(why)]}" for why, count in renewed.items())
            text += f"; {sum(renewed.values())} are done again: {reasons}"
        self._line(text)

    def warn(self, text: str) -> None:
        """Show a warning; any thread may call this."""
        self._write(f"warning: {one_line(text)}")

    def problem(self, where: str, text: str) -> None:
        """Show it."""
        self._write(f"{printable(where)}: {one_line(text)}")

    def entered(self, stage: str, total: int) -> None:
        """Begin the bar of a pass."""
        self._stage, self._total, self._done = stage, total, 0
        self._results.clear()
        self._entered = self._last = self._clock()
        self._line(f"{stage}: {total} {PASSES.get(stage, '')}")
        if self._has_bar:
            with self._lock, suppress(OSError, ValueError):
                self._open_bar()

    def handled(self, item: Item, result: InputResult) -> None:
        """Count an input, and name it if it is quarantined."""
        self._results[result.state] += 1
        if result.state == State.QUARANTINED and result.reason != IGNORED:
            self._failed += 1
            self._show_quarantined(item, result)
        self._step()

    def fetched(self, result: FetchedFile) -> None:
        """Count a file."""
        self._step()

    def decoded(self, result: DecodeResult) -> None:
        """Count a binary, and report it if it has no table."""
        if result.failure:
            self._write(f"no symbol table: {one_line(result.failure)}")
        self._step()

    def close(self) -> None:
        """Remove the bar."""
        self._over.set()
        if self._ticker is not None:
            self._ticker.join()
        self._close_bar()

    def _show_quarantined(self, item: Item, result: InputResult) -> None:
        uri = printable(shown_uri(item.uri))
        detail = one_line(result.detail).removeprefix(f"{uri}: ")
        if not self._has_bar or self._failed <= MAX_NAMED:
            self._write(f"quarantined ({result.reason}): {uri}: {detail}")
        elif self._failed == MAX_NAMED + 1:
            self._write("further quarantined inputs are counted only; all are listed at the end")

    def _step(self) -> None:
        """Count one more as done."""
        self._done += 1
        with self._lock, suppress(OSError, ValueError):
            if self._bar is not None:
                self._bar.set_postfix_str(f"{self._failed} failed" if self._failed else "", refresh=False)
                self._bar.update()
        now = self._clock()
        if self._done == self._total:
            self._line(self._pass_text(now - self._entered))
        elif now - self._last >= LINE_EVERY:
            self._last = now
            self._line(self._progress_text(now - self._entered))

    def _progress_text(self, elapsed: float) -> str:
        """The progress after so many seconds; `+` marks a time that does not include the passes after this one."""
        rate = self._done / elapsed
        is_last = self._stage == "rewrite" or (self._stage == "scan" and not self._results[State.SCANNED])
        text = f"{self._stage}: {self._done} of {self._total} {PASSES.get(self._stage, '')}, {rate_text(rate)}"
        text += f", {duration((self._total - self._done) / rate)}{'' if is_last else '+'} left"
        return text + (f", {self._failed} failed" if self._failed else "")

    def _pass_text(self, elapsed: float) -> str:
        """The result of a pass."""
        text = f"{self._stage}: done, {self._total} {PASSES.get(self._stage, '')} in {duration(elapsed)}"
        parts = [f"{self._results[state]} {word}" for state, word in RESULTS.items() if self._results[state]]
        return text + (f": {', '.join(parts)}" if parts else "")

    def _line(self, text: str) -> None:
        """Print a line, unless there is a bar."""
        if not self._quiet and not self._has_bar:
            print_error(f"symbolize: {text}")

    def _write(self, text: str) -> None:
        """Print a line, above the bar if there is one."""
        with self._lock:
            if self._bar is None:
                print_error(f"symbolize: {text}")
                return
            with suppress(OSError, ValueError):
                self._bar.write(f"symbolize: {text}", file=sys.stderr)

    def _open_bar(self) -> None:
        from tqdm import tqdm

        self._close_bar()
        counts = "{n_fmt}/{total_fmt} " + PASSES.get(self._stage, "")
        times = "[{elapsed}<{remaining}, {rate_noinv_fmt}, " + self._stage + "{postfix}]"
        form = "{percentage:3.0f}%|{bar}| " + f"{counts} {times}"
        self._bar = tqdm(total=self._total, unit="", bar_format=form, leave=False, file=sys.stderr, dynamic_ncols=True)
        if self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
            self._ticker.start()

    def _close_bar(self) -> None:
        with self._lock, suppress(OSError, ValueError):
            if self._bar is not None:
                self._bar.close()
            self._bar = None

    def _tick(self) -> None:
        """Update the time in the bar while nothing else does."""
        while not self._over.wait(TICK):
            with self._lock, suppress(OSError, ValueError):
                if self._bar is not None:
                    self._bar.refresh()


def has_terminal() -> bool:
    """Whether standard error is a terminal with a known size; some serial and container consoles have none."""
    try:
        return sys.stderr is not None and os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (OSError, ValueError):
        return False


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
                    from symbolize.batch.monitoring.metrics import Metrics, MetricsFile, MetricsServer
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
    are kept).

    Nor may one have the name of an output, or be in the folder of the records of what is done or in a folder of inputs.
    """
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
