"""Figures of a batch for Prometheus, in its text format 0.0.4."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from symbolize.batch.fetching import NOT_NEEDED
from symbolize.batch.manifest import State
from symbolize.batch.seen.watchers import Silent
from symbolize.errors import printable
from symbolize.reasons import Reason

if TYPE_CHECKING:
    from symbolize.batch.fetching import FetchedFile
    from symbolize.batch.manifest import Handled, Item
    from symbolize.batch.tasks import Decoded

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "symbolize_"

PASSES: Final = ("scan", "fetch", "decode", "rewrite")
FETCHES: Final = ("found", "missing", "failed")
BUCKETS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Seconds; an input takes from milliseconds to the limit of a task."""

MAX_LABELS: Final = 32
"""Values of a label that are told apart where no closed set has them all."""
MAX_TEXT: Final = 100
"""Characters of the value of a label."""
OTHER: Final = "other"
"""A reason beyond those."""

T = TypeVar("T")
U = TypeVar("U")
Kind = Literal["counter", "gauge", "histogram"]


class Family:
    """A metric: its samples by the values of its labels. A sample that was never set is not there."""

    def __init__(self, name: str, kind: Kind, help: str, labels: Sequence[str] = ()) -> None:
        self.name = PREFIX + name
        self.kind = kind
        self.help = help
        self.labels = tuple(labels)
        self._samples: dict[tuple[str, ...], float] = {}

    def add(self, amount: float, *values: str) -> None:
        """Count `amount` more under the label values `values`."""
        self._samples[values] = self._samples.get(values, 0) + amount

    def set(self, value: float, *values: str) -> None:
        """What the figure is now."""
        self._samples[values] = value

    def get(self, *values: str) -> float:
        """The figure, 0 where there is none."""
        return self._samples.get(values, 0)

    def lines(self) -> Iterator[str]:
        """The metric in the text format."""
        yield f"# HELP {self.name} {escaped_help(self.help)}"
        yield f"# TYPE {self.name} {self.kind}"
        yield from self.samples()

    def samples(self) -> Iterator[str]:
        """A line a sample."""
        for values, amount in sorted(self._samples.items()):
            yield sample(self.name, zip(self.labels, values, strict=True), amount)


class Histogram(Family):
    """A metric that counts how large observed values are, in buckets up to BUCKETS."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, "histogram", help, labels)
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, value: float, *values: str) -> None:
        """Count a value."""
        counts = self._counts.setdefault(values, [0] * (len(BUCKETS) + 1))
        counts[next((i for i, bound in enumerate(BUCKETS) if value <= bound), len(BUCKETS))] += 1
        self._sums[values] = self._sums.get(values, 0.0) + value

    def samples(self) -> Iterator[str]:
        """The buckets, each with all below it, then sum and count."""
        for values, counts in sorted(self._counts.items()):
            labels = list(zip(self.labels, values, strict=True))
            total = 0
            for bound, count in zip([*BUCKETS, math.inf], counts, strict=True):
                total += count
                yield sample(self.name + "_bucket", [*labels, ("le", number(float(bound)))], total)
            yield sample(self.name + "_sum", labels, self._sums[values])
            yield sample(self.name + "_count", labels, total)


class Metrics(Silent):
    """Counts what happens in a batch. `render` may be called by any thread, at any time.

    No label tells builds or inputs apart: that is for the report. The types of sample values come from profiles, so of
    types beyond the first MAX_LABELS the value is not counted.
    """

    def __init__(self, version: str = "", clock: Callable[[], float] = time.time) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._stage = ""
        self._kinds: set[tuple[str, str]] = set()
        self._reasons: set[str] = set()
        families: list[Family] = []

        def family(name: str, kind: Kind, help: str, *labels: str) -> Family:
            families.append(Family(name, kind, help, labels))
            return families[-1]

        self._info = family("build_info", "gauge", "Always 1; the version of the program.", "version")
        self._up = family("up", "gauge", "1 while the batch runs, 0 when it is over.")
        self._start = family("start_time_seconds", "gauge", "When the batch began, in Unix time.")
        self._last = family("last_progress_time_seconds", "gauge", "When something was finished last, in Unix time.")
        self._pass = family("pass", "gauge", "1 for the pass that the batch is in, 0 for the others.", "pass")
        self._pass_total = family("pass_tasks", "gauge", "Inputs or binaries of a pass.", "pass")
        self._pass_done = family("pass_tasks_finished", "gauge", "Inputs or binaries that a pass is done with.", "pass")
        self._waiting = family("inputs_waiting", "gauge", "Inputs that are neither done nor quarantined.")
        self._inputs = family(
            "inputs_total", "counter", "Inputs by what became of them; skipped: by an earlier run.", "status"
        )
        self._put_off = family("inputs_put_off_total", "counter", "Inputs that had to wait for symbol tables.")
        self._quarantined = family("quarantined_total", "counter", "Quarantined inputs by reason.", "reason")
        self._incomplete = family(
            "incomplete_total", "counter", "Inputs that are done, and done again by the next run: a server failed."
        )
        self._fetches = family(
            "debuginfod_fetches_total",
            "counter",
            "Files that servers were asked for by what came of it; failed: nobody knows whether there is one.",
            "outcome",
        )
        self._fetched_bytes = family("debuginfod_bytes_total", "counter", "Bytes of the files that were fetched.")
        self._problems = family("problems_total", "counter", "Problems that are no fault of one input.")
        self._bytes_in = family("input_bytes_total", "counter", "Bytes of the inputs that are done or quarantined.")
        self._bytes_out = family("output_bytes_total", "counter", "Bytes of the profiles that were written.")
        self._profiles = family("profiles_total", "counter", "Profiles that were written.")
        self._samples = family("samples_total", "counter", "Samples of the profiles that were written.")
        self._locations = family("locations_total", "counter", "Locations of profiles by outcome.", "outcome")
        self._value = family(
            "sample_value_total",
            "counter",
            "Value of the frames of samples by outcome; a sample adds its value for every frame of its stack.",
            "sample_type",
            "unit",
            "outcome",
        )
        self._mappings = family(
            "mappings_total",
            "counter",
            "Mappings of profiles by outcome: symbolized, partly, or the reason that most of the value has no names.",
            "outcome",
        )
        self._tables = family("tables_made_total", "counter", "Symbol tables that were made.")
        self._no_tables = family("tables_failed_total", "counter", "Binaries whose symbol table could not be made.")
        self._table_seconds = family("table_seconds_total", "counter", "Seconds of workers for symbol tables.")
        self._table_bytes = family("table_bytes_total", "counter", "Bytes of the symbol tables that were made.")
        self._table_addresses = family(
            "table_addresses_total", "counter", "Addresses that the symbol tables were made for."
        )
        self._seconds = Histogram("input_seconds", "Seconds of a worker for one input in a pass.", ["pass"])
        families.append(self._seconds)
        self._families = families

        if version:
            self._info.set(1, version)
        self._up.set(1)
        self._start.set(clock())
        self._last.set(clock())
        for stage in PASSES:
            self._pass.set(0, stage)
        for status in ("done", "quarantined", "skipped"):
            self._inputs.set(0, status)
        for outcome in FETCHES:
            self._fetches.set(0, outcome)
        for outcome in (Reason.SYMBOLIZED.code, *(reason.code for reason in Reason if reason.is_miss)):
            self._locations.set(0, outcome)
        for each in (
            self._waiting,
            self._put_off,
            self._incomplete,
            self._fetched_bytes,
            self._problems,
            self._bytes_in,
            self._bytes_out,
            self._profiles,
            self._samples,
            self._tables,
            self._no_tables,
            self._table_seconds,
            self._table_bytes,
            self._table_addresses,
        ):
            each.set(0)

    def render(self) -> bytes:
        """All figures in the text format."""
        with self._lock:
            lines = [line for family in self._families for line in family.lines()]
        return "".join(line + "\n" for line in lines).encode(errors="replace")

    def close(self) -> None:
        """The batch is over."""
        with self._lock:
            self._up.set(0)
            for stage in PASSES:
                self._pass.set(0, stage)

    def began(self, waiting: int, done: int, quarantined: int) -> None:
        """Count what waits, and what earlier runs did: all that is done and was not done by this one."""
        with self._lock:
            before = done - self._inputs.get("done"), quarantined - self._inputs.get("quarantined")
            self._inputs.set(max(self._inputs.get("skipped"), sum(max(number, 0) for number in before)), "skipped")
            self._waiting.set(waiting)
            if waiting:
                self._last.set(self._clock())

    def problem(self, where: str, text: str) -> None:
        """Count a problem."""
        with self._lock:
            self._problems.add(1)

    def entered(self, stage: str, total: int) -> None:
        """Note the pass."""
        with self._lock:
            self._stage = stage
            for each in PASSES:
                self._pass.set(each == stage, each)
            self._pass_total.set(total, stage)
            self._pass_done.set(0, stage)
            self._last.set(self._clock())

    def handled(self, item: Item, result: Handled) -> None:
        """Count an input, with its profiles."""
        with self._lock:
            self._last.set(self._clock())
            self._pass_done.add(1, self._stage)
            self._seconds.observe(result.seconds, self._stage)
            if result.state == State.SCANNED:
                self._put_off.add(1)
                return
            self._waiting.set(max(self._waiting.get() - 1, 0))
            self._bytes_in.add(max(item.size, 0))
            if result.state == State.QUARANTINED:
                self._inputs.add(1, "quarantined")
                self._quarantined.add(1, limited(result.reason, self._reasons, OTHER))
            elif result.state == State.DONE:
                self._inputs.add(1, "done")
                self._incomplete.add(bool(result.reason))
            for row in result.profiles:
                self._profiles.add(1)
                self._bytes_out.add(row.size)
                self._add_coverage(row.coverage)

    def fetched(self, result: FetchedFile) -> None:
        """Count a file."""
        with self._lock:
            self._last.set(self._clock())
            self._pass_done.add(1, self._stage)
            if result.status != NOT_NEEDED:
                self._fetches.add(
                    1, "failed" if result.failures else "found" if result.status == "found" else "missing"
                )
            self._fetched_bytes.add(result.size)

    def decoded(self, result: Decoded) -> None:
        """Count a table."""
        with self._lock:
            self._last.set(self._clock())
            self._pass_done.add(1, self._stage)
            (self._no_tables if result.failure else self._tables).add(1)
            self._table_seconds.add(result.seconds)
            self._table_bytes.add(result.size)
            self._table_addresses.add(result.addresses)

    def _add_coverage(self, coverage: dict[str, Any]) -> None:
        """Count what has names in a profile."""
        named = printable(coverage["sample_type"])[:MAX_TEXT], printable(coverage["unit"])[:MAX_TEXT]
        kind = limited(named, self._kinds, None)
        symbolized = Reason.SYMBOLIZED.code
        self._samples.add(coverage["samples"])
        self._locations.add(coverage["symbolized_locations"], symbolized)
        if kind:
            self._value.add(coverage["symbolized_value"], *kind, symbolized)
        for mapping in coverage["mappings"]:
            for miss in mapping["misses"]:
                self._locations.add(miss["locations"], miss["reason"])
                if kind:
                    self._value.add(miss["value"], *kind, miss["reason"])
            self._mappings.add(1, outcome_of(mapping))


def limited(value: T, known: set[T], other: U) -> T | U:
    """`value`, or `other` if MAX_LABELS values are `known` and it is none of them; it is known from here on."""
    if value not in known and len(known) >= MAX_LABELS:
        return other
    known.add(value)
    return value


def outcome_of(mapping: dict[str, Any]) -> str:
    """What became of a mapping of a profile: "symbolized", "partly", or the code of its heaviest miss."""
    if not mapping["misses"]:
        return Reason.SYMBOLIZED.code
    return "partly" if mapping["symbolized_locations"] else str(mapping["misses"][0]["reason"])


def sample(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    """A sample as a line."""
    inner = ",".join(f'{label}="{escaped(text)}"' for label, text in labels)
    return f"{name}{{{inner}}} {number(value)}" if inner else f"{name} {number(value)}"


def escaped(text: str) -> str:
    """The value of a label."""
    return escaped_help(text).replace('"', '\\"')


def escaped_help(text: str) -> str:
    """The text of a HELP line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def number(value: float) -> str:
    """A number as the format has it."""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)
