"""Metrics of a batch for Prometheus, in a registry of their own, in a file or served over HTTP."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    make_wsgi_app,
)
from prometheus_client.registry import Collector

from symbolize.batch.engines.engine import TaskFailure
from symbolize.batch.fetching import NOT_NEEDED
from symbolize.batch.manifest import IGNORED, UNREACHABLE, State
from symbolize.batch.monitoring.aggregates import has_values
from symbolize.batch.monitoring.observers import PASSES, Observer, Tally, Warn, state_text
from symbolize.binaries.store import ERRORS
from symbolize.core.errors import OutputError, UsageError, printable
from symbolize.core.files import os_error_text
from symbolize.core.reasons import Reason
from symbolize.formats.files import output_file

if TYPE_CHECKING:
    from prometheus_client import Metric

    from symbolize.batch.fetching import FetchedFile
    from symbolize.batch.manifest import InputResult, Item, Manifest
    from symbolize.batch.tasks import DecodeResult

PREFIX: Final = "symbolize_"
BUCKETS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Seconds, from milliseconds to the time limit of an input."""

MAX_LABELS: Final = 32
"""Distinct values of a label whose values are not known beforehand."""
MAX_TEXT: Final = 100
"""Characters of the value of a label."""
FAILED: Final = 1
"""The exit code of a batch that an error or a signal ended."""
OTHER: Final = "other"

REASONS: Final = (*(each.value for each in TaskFailure), "unreadable", "unwritable", UNREACHABLE, IGNORED, OTHER)
"""Why inputs are quarantined; the last is for what a later version may add."""

KINDS: Final = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}

METRICS: Final[tuple[tuple[str, str, str, tuple[str, ...]], ...]] = (
    ("build_info", "gauge", "Always 1; the version of the program.", ("version",)),
    ("up", "gauge", "1 while the batch runs, 0 when it is over.", ()),
    ("start_time_seconds", "gauge", "When the batch began, in Unix time.", ()),
    ("last_progress_time_seconds", "gauge", "When something was finished last, in Unix time.", ()),
    ("last_look_time_seconds", "gauge", "When all inputs were listed last, at first when the batch began.", ()),
    ("end_time_seconds", "gauge", "When the batch ended, in Unix time; 0 while it runs.", ()),
    ("exit_code", "gauge", "Exit code of the batch; 0 while it runs.", ()),
    ("coverage_percent", "gauge", "Mean percentage of the value of a profile that has names, of all inputs done.", ()),
    ("pass", "gauge", "1 for the pass that the batch is in, 0 for the others.", ("pass",)),
    ("pass_tasks", "gauge", "Inputs or binaries of a pass.", ("pass",)),
    ("pass_tasks_finished", "gauge", "Inputs or binaries that a pass is done with.", ("pass",)),
    ("inputs_waiting", "gauge", "Inputs that are neither done nor quarantined.", ()),
    ("inputs_done", "gauge", "Inputs that are done, by this run or an earlier one.", ()),
    ("inputs_quarantined", "gauge", "Inputs in quarantine by reason, by this run or an earlier one.", ("reason",)),
    ("inputs_total", "counter", "Inputs by what became of them; skipped: by an earlier run.", ("status",)),
    ("inputs_put_off_total", "counter", "Inputs that had to wait for symbol tables.", ()),
    ("quarantined_total", "counter", "Quarantined inputs by reason.", ("reason",)),
    ("incomplete_total", "counter", "Inputs that are done, and done again by the next run: something failed.", ()),
    (
        "debuginfod_fetches_total",
        "counter",
        "Files requested from servers, by result; failed: whether the file exists is unknown.",
        ("outcome",),
    ),
    ("debuginfod_bytes_total", "counter", "Bytes of the files that were fetched.", ()),
    ("problems_total", "counter", "Problems that are no fault of one input.", ()),
    ("input_bytes_total", "counter", "Bytes of the inputs that are done or quarantined.", ()),
    ("output_bytes_total", "counter", "Bytes of the profiles that were written.", ()),
    ("profiles_total", "counter", "Profiles that were written.", ()),
    ("profiles_with_warnings_total", "counter", "Profiles of which a warning says that something is wrong.", ()),
    ("samples_total", "counter", "Samples of the profiles that were written.", ()),
    ("locations_total", "counter", "Locations of profiles by outcome.", ("outcome",)),
    (
        "sample_value_total",
        "counter",
        "Value of the frames of samples by outcome; a sample adds its value for every frame of its stack.",
        ("sample_type", "unit", "outcome"),
    ),
    (
        "mappings_total",
        "counter",
        "Mappings of profiles by outcome: symbolized, partly, or the reason that most of the value has no names.",
        ("outcome",),
    ),
    ("tables_made_total", "counter", "Symbol tables that were made.", ()),
    ("tables_failed_total", "counter", "Binaries whose symbol table could not be made.", ()),
    ("table_seconds_total", "counter", "Seconds of workers for symbol tables.", ()),
    ("table_bytes_total", "counter", "Bytes of the symbol tables that were made.", ()),
    ("table_addresses_total", "counter", "Addresses that the symbol tables were made for.", ()),
    ("input_seconds", "histogram", "Seconds of a worker for one input in a pass.", ("pass",)),
)
"""Name without PREFIX, kind, help and labels of every metric."""
LOOPBACK: Final = "127.0.0.1"
INTERVAL: Final = 5.0
"""Seconds between two versions of the file."""
MAX_SECONDS: Final = 5.0
"""Seconds that a client may be silent in a request; a request may take twice as long."""
MAX_CLIENTS: Final = 8
"""Requests at a time; further connections are closed."""


class Metrics(Observer, Collector):
    """Counts the events of a batch, and what its manifest has of earlier runs. Any thread may read `registry`, at any
    time; it is consistent.

    Builds and inputs are no labels: they are in the report. The types of sample values come from profiles; the values
    of types after the first MAX_LABELS are not counted.
    """

    def __init__(
        self, version: str = "", clock: Callable[[], float] = time.time, manifest: Manifest | None = None
    ) -> None:
        self._manifest = manifest
        self._exit_code = FAILED
        self._lock = threading.Lock()
        self._clock = clock
        self._stage = ""
        self._types: set[tuple[str, str]] = set()
        self._tally = Tally()
        self._waiting = 0
        self._percents, self._profiles = 0.0, 0
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._own = CollectorRegistry()
        self._metrics: dict[str, Any] = {}
        for name, kind, text, labels in METRICS:
            more: dict[str, Any] = {"buckets": BUCKETS} if kind == "histogram" else {}
            self._metrics[name] = KINDS[kind](PREFIX + name, text, labels, registry=self._own, **more)
        self.registry = CollectorRegistry()
        self.registry.register(self)
        if version:
            self._set("build_info", 1, version)
        self._set("up", 1)
        began = clock()
        self._set("start_time_seconds", began)
        self._set("last_look_time_seconds", began)
        self._set("last_progress_time_seconds", clock())
        # Counters begin at 0, so that their rates are right from the first event on.
        reasons = (Reason.SYMBOLIZED.code, *(reason.code for reason in Reason if reason.is_miss))
        for name, values in (
            ("pass", PASSES),
            ("inputs_total", ("done", "quarantined", "skipped")),
            ("debuginfod_fetches_total", ("found", "missing", "failed")),
            ("locations_total", reasons),
            ("quarantined_total", REASONS),
            ("inputs_quarantined", REASONS),
        ):
            for value in values:
                self._metrics[name].labels(value)
        self._read_manifest()

    def collect(self) -> Iterable[Metric]:
        """All metrics as they are at one moment."""
        with self._lock:
            return [*self._own.collect()]

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _set(self, name: str, value: float, *labels: str) -> None:
        metric = self._metrics[name]
        (metric.labels(*labels) if labels else metric).set(value)

    def _add(self, name: str, amount: float, *labels: str) -> None:
        metric = self._metrics[name]
        (metric.labels(*labels) if labels else metric).inc(amount)

    def _task_done(self) -> None:
        self._set("last_progress_time_seconds", self._clock())
        self._add("pass_tasks_finished", 1, self._stage)

    def ended(self, exit_code: int) -> None:
        """Note how the batch ended; one that does not say so has failed."""
        self._exit_code = exit_code

    def close(self) -> None:
        """The batch is over."""
        with self._lock:
            self._read_manifest()
            self._set("end_time_seconds", self._clock())
            self._set("exit_code", self._exit_code)
            self._set("up", 0)
            self._show_pass("")

    def began(self, waiting: int, done: int, quarantined: int, renewed: Mapping[str, int]) -> None:
        """Count what waits, and what earlier runs did."""
        with self._lock:
            skipped = self._tally.finished_before
            self._tally.began(waiting, done, quarantined, renewed)
            self._add("inputs_total", self._tally.finished_before - skipped, "skipped")
            self._read_manifest()
            self._waiting = waiting
            self._set("inputs_waiting", waiting)
            if waiting:
                self._set("last_progress_time_seconds", self._clock())

    def _read_manifest(self) -> None:
        """Set the figures of all inputs, of which those that are to be done again count no more."""
        if self._manifest is None:
            return
        with suppress(*ERRORS):
            self._percents, self._profiles = self._manifest.sum_percents()
            quarantined = self._manifest.count_quarantined()
            self._set("inputs_done", self._manifest.count()[State.DONE])
            for reason in REASONS:
                self._set("inputs_quarantined", quarantined.pop(reason, 0), reason)
            self._add("inputs_quarantined", sum(quarantined.values()), OTHER)
            self._set_coverage()

    def _set_coverage(self) -> None:
        self._set("coverage_percent", self._percents / self._profiles if self._profiles else 0.0)

    def problem(self, where: str, text: str) -> None:
        """Count a problem."""
        with self._lock:
            self._add("problems_total", 1)

    def listed(self) -> None:
        """Note the time."""
        with self._lock:
            self._set("last_look_time_seconds", self._clock())

    def rested(self) -> None:
        """There is no pass."""
        with self._lock:
            self._show_pass("")

    def entered(self, stage: str, total: int) -> None:
        """Note the pass."""
        with self._lock:
            self._stage = stage
            self._show_pass(stage)
            self._set("pass_tasks", total, stage)
            self._set("pass_tasks_finished", 0, stage)
            self._set("last_progress_time_seconds", self._clock())

    def _show_pass(self, stage: str) -> None:
        for each in PASSES:
            self._set("pass", each == stage, each)

    def handled(self, item: Item, result: InputResult) -> None:
        """Count an input, with its profiles."""
        with self._lock:
            self._task_done()
            self._tally.handled(item, result)
            self._metrics["input_seconds"].labels(self._stage).observe(result.seconds)
            if result.state == State.SCANNED:
                self._add("inputs_put_off_total", 1)
                return
            self._waiting = max(self._waiting - 1, 0)
            self._set("inputs_waiting", self._waiting)
            self._add("input_bytes_total", max(item.size, 0))
            if result.state in (State.DONE, State.QUARANTINED):
                self._add("inputs_total", 1, state_text(result.state))
            if result.state == State.QUARANTINED:
                reason = result.reason if result.reason in REASONS else OTHER
                self._add("quarantined_total", 1, reason)
                self._add("inputs_quarantined", 1, reason)
            elif result.state == State.DONE:
                self._add("inputs_done", 1)
                self._add("incomplete_total", bool(result.reason))
            for row in result.profiles:
                self._add("profiles_total", 1)
                self._add("output_bytes_total", row.size)
                self._add("profiles_with_warnings_total", bool(row.coverage.get("warnings")))
                self._add_coverage(row.coverage)

    def fetched(self, result: FetchedFile) -> None:
        """Count a file."""
        with self._lock:
            self._task_done()
            if result.status != NOT_NEEDED:
                outcome = "failed" if result.failures else "found" if result.status == "found" else "missing"
                self._add("debuginfod_fetches_total", 1, outcome)
            self._add("debuginfod_bytes_total", result.size)

    def decoded(self, result: DecodeResult) -> None:
        """Count a table."""
        with self._lock:
            self._task_done()
            self._add("tables_failed_total" if result.failure else "tables_made_total", 1)
            self._add("table_seconds_total", result.seconds)
            self._add("table_bytes_total", result.size)
            self._add("table_addresses_total", result.addresses)

    def _add_coverage(self, coverage: dict[str, Any]) -> None:
        """Count the locations and values of a profile."""
        named = printable(coverage["sample_type"])[:MAX_TEXT], printable(coverage["unit"])[:MAX_TEXT]
        if len(self._types) < MAX_LABELS:
            self._types.add(named)
        kind = named if named in self._types else None
        symbolized = Reason.SYMBOLIZED.code
        if has_values(coverage):
            self._percents += coverage["symbolized_percent"]
            self._profiles += 1
            self._set_coverage()
        self._add("samples_total", coverage["samples"])
        self._add("locations_total", coverage["symbolized_locations"], symbolized)
        if kind:
            self._add("sample_value_total", coverage["symbolized_value"], *kind, symbolized)
        for mapping in coverage["mappings"]:
            for miss in mapping["misses"]:
                self._add("locations_total", miss["locations"], miss["reason"])
                if kind:
                    self._add("sample_value_total", miss["value"], *kind, miss["reason"])
            self._add("mappings_total", 1, outcome_of(mapping))


def outcome_of(mapping: dict[str, Any]) -> str:
    """The outcome of a mapping: "symbolized", "partly", or the code of its heaviest miss."""
    if not mapping["misses"]:
        return Reason.SYMBOLIZED.code
    return "partly" if mapping["symbolized_locations"] else str(mapping["misses"][0]["reason"])


class MetricsFile(Observer):
    """Writes `metrics` to the file `name` every few seconds, and when closed; each version whole.

    Close it after `metrics`, so that the last version reports that the batch is over. Raises OutputError if the file
    cannot be written at first; later there is one warning.
    """

    def __init__(self, metrics: Metrics, name: str, warn: Warn, every: float = INTERVAL) -> None:
        self._metrics = metrics
        self._name = name
        self._warn = warn
        self._every = every
        self._has_warned = False
        self._over = threading.Event()
        self._write()
        self._thread = threading.Thread(target=self._run, name="metrics-file", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the file a last time."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            self._try()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self._try()

    def _write(self) -> None:
        with output_file(self._name) as file:
            file.write(self._metrics.render())

    def _try(self) -> None:
        try:
            self._write()
        except OutputError as error:
            if not self._has_warned:
                self._has_warned = True
                self._warn(str(error))


class MetricsServer(Observer):
    """Serves the metrics at `url`. Port 0 takes any free one. Raises UsageError if it cannot listen."""

    def __init__(self, metrics: Metrics, port: int, address: str = LOOPBACK) -> None:
        try:
            self._server = _Server(address, port)
        except (OSError, OverflowError, UnicodeError) as error:
            text = os_error_text(error) if isinstance(error, OSError) else "there is no such address or port"
            raise UsageError(f"{address} port {port}: cannot listen there: {text}") from error
        self._server.set_app(make_wsgi_app(metrics.registry))
        self.port = self._server.server_port
        self.url = f"http://{f'[{address}]' if ':' in address else address}:{self.port}/metrics"
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="metrics-server", daemon=True).start()

    def close(self) -> None:
        """Stop to listen."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(WSGIRequestHandler):
    """Answers one request, in limited time."""

    timeout = MAX_SECONDS

    def setup(self) -> None:
        """Limit the time of the whole request too, for a client that sends a byte now and then."""
        super().setup()
        self._timer = threading.Timer(2 * MAX_SECONDS, self._end)
        self._timer.daemon = True
        self._timer.start()

    def finish(self) -> None:
        """Stop the timer."""
        self._timer.cancel()
        super().finish()

    def _end(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


class _Server(ThreadingMixIn, WSGIServer):
    """A server of few clients at a time."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_port = False
    request_queue_size = 64

    def __init__(self, address: str, port: int) -> None:
        self._free = threading.BoundedSemaphore(MAX_CLIENTS)
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Bind without looking up the name of the host, which could wait for DNS."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a request in a thread, unless there are too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a request in the thread for it."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Errors of clients are not reported."""
