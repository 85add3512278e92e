"""The report on a batch: a few lines of text, or JSON that is written while the manifest is read; and what is new since
the last run that reported it (R402, new failures)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from symbolize.analysis.units import quantity
from symbolize.batch.manifest import IGNORED, UNREACHABLE, Manifest, State
from symbolize.batch.monitoring.aggregates import BinaryAggregates, BinarySums, Percents, has_values
from symbolize.batch.monitoring.observers import (
    Tally,
    duration,
    input_fields,
    one_line,
    rate_text,
    table_fields,
)
from symbolize.core.closing import Closeable
from symbolize.core.errors import printable
from symbolize.core.reasons import Reason
from symbolize.core.terminal import DEFAULT_WIDTH, LEAST_WIDTH, Style, padded, shortened, wrapped
from symbolize.formats.files import output_file
from symbolize.report import HINTS, TEXTS, Hints
from symbolize.report.advice import INDENT, Advice
from symbolize.report.text import label

REPORTED: Final = "reported"
"""The notes of inputs in quarantine that were reported: when they came there."""
MISSING: Final = "missing"
"""The notes of names that are missing."""

KEY: Final = "CAST(number AS TEXT) || '@' || version"
"""The key of such a note: an input with the version of its content."""
SCHEMA_VERSION: Final = 1
HEAVIEST: Final = 10
"""Binaries in the text."""
NAME_WIDTH: Final = 44
"""Cells of the name of a binary."""
MAX_DETAIL: Final = 120
"""Characters of a detail that are shown."""

BY_CODE: Final = {reason.code: reason for reason in Reason}
SEARCHED: Final = frozenset(
    (
        *(Reason.NO_MAPPING, Reason.NO_IDENTITY, Reason.NOT_A_FILE, Reason.NOT_FOUND, Reason.BUILD_ID_DIFFERS),
        *(Reason.AMBIGUOUS, Reason.MISFIT, Reason.UNREADABLE, Reason.NO_SYMBOLS, Reason.RESTRICTED),
    )
)
"""Reasons that files help against which were added to the folders."""


class PendingEvents:
    """Compares the inputs of a manifest, and names that are missing, with what earlier runs have reported.

    An input is the same while its content is, by the version in its listing, whatever the options and however often it
    is tried. What a run with another exit code than 4 found was not reported.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def count(self) -> int:
        """How many inputs are newly in quarantine; those of servers that did not answer, and those to be ignored, do
        not count."""
        question = (
            f"SELECT count(*) FROM inputs LEFT JOIN notes ON kind = ? AND key = {KEY} "
            "WHERE turn = ? AND state = ? AND reason NOT IN (?, ?) AND key IS NULL"
        )
        newly = REPORTED, self._manifest.generation, State.QUARANTINED, UNREACHABLE, IGNORED
        return int(self._manifest.read(question, *newly)[0][0])

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that were not missing before."""
        known = {key for (key,) in self._manifest.read("SELECT key FROM notes WHERE kind = ?", MISSING)}
        return [name for name in names if note_key(name) not in known]

    def note_reported(self, missing: Iterable[str]) -> None:
        """Note that all that is in quarantine, and the names that are missing, were reported."""
        with self._manifest.writing() as base:
            base.execute(
                "INSERT OR REPLACE INTO notes (kind, key, value) "
                f"SELECT ?, {KEY}, finished FROM inputs WHERE turn = ? AND state = ?",
                (REPORTED, self._manifest.generation, State.QUARANTINED),
            )
            base.executemany(
                "INSERT OR REPLACE INTO notes (kind, key, value) VALUES (?, ?, ?)",
                [(MISSING, note_key(name), time.time()) for name in missing],
            )

    def forget_settled(self, missing: Iterable[str]) -> None:
        """Forget what is not in quarantine any more, or not as it was, and names that are not missing any more."""
        known = {key for (key,) in self._manifest.read("SELECT key FROM notes WHERE kind = ?", MISSING)}
        with self._manifest.writing() as base:
            base.execute(
                f"DELETE FROM notes WHERE kind = ? AND key NOT IN (SELECT {KEY} FROM inputs WHERE state = ?)",
                (REPORTED, State.QUARANTINED),
            )
            gone = known.difference(map(note_key, missing))
            base.executemany("DELETE FROM notes WHERE kind = ? AND key = ?", [(MISSING, key) for key in gone])


def note_key(name: str) -> str:
    """A name as the key of a note: text without what SQLite cannot have."""
    return json.dumps(name)


class Summary(Closeable):
    """The results of all inputs of a generation, by this run and by earlier ones.

    The manifest is read once, by `read` or while `json_pieces` are written. `hints` says what to do about each reason,
    `again` how to do inputs again that are done, `retry_missing` those of them that added files can name,
    empty if that was done. `events` says what earlier runs have not reported.
    """

    def __init__(
        self,
        manifest: Manifest,
        tally: Tally,
        hints: Hints = HINTS,
        again: str = "again=True",
        retry_missing: str = "retry_missing=True",
    ) -> None:
        self._hints, self._again, self._retry_missing = hints, again, retry_missing
        self.events = PendingEvents(manifest)
        self._manifest = manifest
        self.tally = tally
        self.states = dict.fromkeys(State, 0)
        self.reasons: dict[str, int] = {}
        self.outputs = self.empty = self.nameless = self.kept = self.incomplete = self.warned = 0
        self.first_warning = ""
        self.output_bytes = 0
        self.percents = Percents()
        self.binaries = BinaryAggregates()
        self._rows = self._read()

    def close(self) -> None:
        """Remove the sums."""
        self.binaries.close()

    def read(self) -> None:
        """Read the rest of the manifest."""
        for _ in self._rows:
            pass

    def _read(self) -> Iterator[dict[str, Any]]:
        """Read the inputs; each as the report has it."""
        for row in self._manifest.rows():
            self.states[row.state] += 1
            self.incomplete += row.state == State.DONE and bool(row.reason)
            if row.state == State.QUARANTINED:
                self.reasons[row.reason] = self.reasons.get(row.reason, 0) + 1
            outputs = []
            for profile in self._manifest.profiles(row.number) if row.state == State.DONE else ():
                self.outputs += 1
                self.output_bytes += profile.size
                if has_values(profile.coverage):
                    self.percents.add(profile.coverage["symbolized_percent"])
                    self.nameless += not profile.coverage["symbolized_percent"]
                else:
                    self.empty += 1
                self.kept += profile.coverage.get("kept", False)
                if warnings := profile.coverage.get("warnings"):
                    self.warned += 1
                    self.first_warning = self.first_warning or " ".join(f"{profile.output}: {warnings[0]}".split())
                self.binaries.add(profile.coverage)
                outputs.append({"path": profile.output, "bytes": profile.size, **profile.coverage})
            shown = row._replace(detail="") if row.state == State.SCANNED else row
            yield input_fields(row.uri, row.size, shown) | {"outputs": outputs}

    def json_pieces(self) -> Iterator[str]:
        """The report as JSON, an input or a binary a line; only one of them is in memory.

        `profiles` are the inputs with their outputs, `binaries` sums over all profiles, those that miss most first.
        Shares are means over all profiles of the part that is in a binary, in percent.
        """
        yield f'{{"schema_version": {SCHEMA_VERSION},\n"profiles": [\n'
        yield from listed(self._rows)
        yield '],\n"binaries": [\n'
        tables = self._tables()
        yield from listed(self._binary(sums, tables) for sums in self.binaries.rows())
        yield "],\n" + json.dumps(self.figures())[1:] + "\n"

    def figures(self) -> dict[str, Any]:
        """The totals of the batch."""
        tally = self.tally
        return {
            "inputs": {
                "done": self.states[State.DONE],
                "incomplete": self.incomplete,
                "quarantined": self.states[State.QUARANTINED],
                "unfinished": self.states[State.NEW] + self.states[State.SCANNED],
                "done_before": tally.done_before,
                "quarantined_before": tally.quarantined_before,
                "quarantined_newly": self.events.count(),
                "quarantined_by_reason": dict(sorted(self.reasons.items())),
                "problems": tally.problems,
            },
            "outputs": {
                "profiles": self.outputs,
                "bytes": self.output_bytes,
                "without_names": self.nameless,
                "empty": self.empty,
                "kept": self.kept,
                "with_warnings": self.warned,
            },
            "coverage": {
                "mean_percent": round(self.percents.mean, 4),
                "median_percent": self.percents.reached_by(0.5),
                "reached_by_nine_tenths_percent": self.percents.reached_by(0.9),
            },
            "run": {
                "inputs": tally.finished,
                "input_bytes": tally.input_bytes,
                "output_bytes": tally.output_bytes,
                "tables": tally.tables,
                "table_seconds": round(tally.table_seconds, 6),
            },
            "seconds": round(tally.seconds, 6),
        }

    def _tables(self) -> dict[str, dict[str, Any]]:
        """The symbol tables, by the files that they were made of and by build id."""
        found: dict[str, dict[str, Any]] = {}
        for _, files, addresses, size, seconds, failure in self._manifest.binaries():
            table = table_fields(addresses, size, seconds, failure)
            for path, build_id in json.loads(files):
                found.setdefault(path, table)
                if build_id:
                    found.setdefault(build_id, table)
        return found

    def _binary(self, sums: BinarySums, tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """A binary as the report has it."""
        files = sorted(sums.files)
        table = next((tables[key] for key in (*files, sums.build_id) if key in tables), None)
        return {
            "name": sums.name,
            "build_id": sums.build_id,
            "files": files,
            "profiles": sums.profiles,
            "locations": sums.locations,
            "symbolized_locations": sums.symbolized,
            "share_percent": self._percent(sums.share),
            "missing_percent": self._percent(sums.missing),
            "values": [
                {"sample_type": kind, "unit": unit, "value": value, "symbolized_value": symbolized}
                for (kind, unit), (value, symbolized) in sorted(sums.amounts.items())
            ],
            "misses": [
                {"reason": code, "text": text_of(code), "locations": locations, "percent": self._percent(share)}
                for code, (locations, share) in sums.misses.items()
            ],
            "detail": sums.detail,
            "table": table,
        }

    def _percent(self, share: float) -> float:
        """The mean of a sum of shares, in percent."""
        return round(100 * share / self.outputs, 4) if self.outputs else 0.0

    def text(self, quarantine: str = "", width: int = DEFAULT_WIDTH) -> str:
        """The report as text of `width` cells, but for paths that are longer; `quarantine` is the file that lists the
        quarantined inputs."""
        return "".join(line + "\n" for line in self._lines(quarantine, max(width, LEAST_WIDTH)))

    def _lines(self, quarantine: str, width: int) -> Iterator[str]:
        yield from self._binaries_without_names(width)
        if self.percents.count:
            half, most = self.percents.reached_by(0.5), self.percents.reached_by(0.9)
            text = (
                f"coverage: on average {self.percents.mean:.1f} % of the sample value of a profile has names (median "
                f"{half:.1f} %; 90 % of the profiles have at least {most:.1f} %)"
            )
            yield from wrapped(text, width, INDENT, "")
        if self.empty:
            yield f"no samples: {self.empty} of {self.outputs} profiles, which are not in the coverage"
        if self.nameless:
            yield f"warning: NOTHING WAS SYMBOLIZED in {self.nameless} of {self.outputs} profiles"
        if self.warned:
            text = f"warnings on {self.warned} of {self.outputs} profiles, such as {one_line(self.first_warning)}"
            yield from wrapped(text, width, INDENT, "")
        yield from self._counts(quarantine, width)

    def _binaries_without_names(self, width: int) -> Iterator[str]:
        """The binaries that miss most, and what to do about all."""
        heaviest = list(islice((sums for sums in self.binaries.rows() if sums.misses), HEAVIEST))
        if heaviest:
            head = f"{'heaviest binaries without names':<{NAME_WIDTH}}"
            yield f"{head} {'build id':<12} {'profiles':>8} {'missing':>8}"
        for sums in heaviest:
            yield from self._missing(sums, width)
        advice, later = self._advice()
        for text in [*(f"warning: {text}" for text in advice.first), *later]:
            yield from wrapped(text, width, INDENT, "")
        yield from advice.lines(Style(), width)
        if heaviest:
            yield ""

    def _advice(self) -> tuple[Advice, list[str]]:
        """What to do about all binaries without names, and sentences on what other runs could do."""
        advice, searched = Advice(self._hints, ("binary", "binaries")), False
        for sums in self.binaries.rows():
            for code, (_, share) in sums.misses.items():
                if (reason := BY_CODE.get(code)) is not None:
                    advice.add_miss(reason, sums.name, share / self.outputs, share / self.outputs)
                    searched = searched or reason in SEARCHED
        if not searched or not self.tally.done_before or not self._retry_missing:
            return advice, []
        before = f"{self.tally.done_before} inputs were done by earlier runs: if binaries were added since, "
        return advice, [f"{before}{self._retry_missing} does those again that these can name"]

    def _counts(self, quarantine: str, width: int) -> Iterator[str]:
        """What became of the inputs, and the time."""
        tally, states = self.tally, self.states
        if self.kept:
            kept = f"kept: {self.kept} outputs of earlier runs, because a later run found no names"
            yield from wrapped(f"{kept}; {self._again} replaces them", width, INDENT, "")
        text = f"inputs: {states[State.DONE]} done"
        if tally.done_before:
            text += f" ({tally.done_before} of them before)"
        if self.incomplete:
            text += f", {self.incomplete} of them incomplete because something failed: run the same command again"
        if states[State.QUARANTINED]:
            text += f", {states[State.QUARANTINED]} quarantined"
            if tally.quarantined_before and (new := self.events.count()) < states[State.QUARANTINED]:
                text += f" ({new} of them newly)"
        unfinished = states[State.NEW] + states[State.SCANNED]
        if unfinished:
            text += f", {unfinished} unfinished: run the same command again"
        yield from wrapped(text, width, INDENT, "")
        if self.reasons:
            parts = sorted(self.reasons.items(), key=lambda pair: (-pair[1], pair[0]))
            text = "quarantined: " + ", ".join(f"{printable(reason)} {count}" for reason, count in parts)
            yield text + (f"; listed in {printable(quarantine)}" if quarantine else "")
        if tally.problems:
            yield f"problems: {tally.problems}, reported above"
        text = f"time: {duration(tally.seconds)}, {tally.finished} inputs"
        if tally.finished and tally.seconds > 0:
            text += f", {rate_text(tally.finished / tally.seconds)}"
        text += f", read {quantity(tally.input_bytes, 'bytes')}, wrote {quantity(tally.output_bytes, 'bytes')}"
        if tally.tables:
            text += f"; {tally.tables} symbol tables took workers {duration(tally.table_seconds)}"
        yield from wrapped(text, width, INDENT, "")

    def _missing(self, sums: BinarySums, width: int) -> Iterator[str]:
        """A binary with the reasons why it lacks names."""
        build_id = printable(sums.build_id)[:12] or "-"
        share = f"{self._percent(sums.missing):.1f} %"
        name = padded(shortened(label(sums.name, sums.build_id), NAME_WIDTH), NAME_WIDTH)
        yield f"{name} {build_id:<12} {sums.profiles:>8} {share:>8}"
        detail = f" ({cut(one_line(sums.detail))})" if sums.detail else ""
        for code, (locations, missed) in sums.misses.items():
            text = f"{locations} location{'s' * (locations != 1)}, {self._percent(missed):.1f} %: {text_of(code)}"
            yield from wrapped(text + detail, width, 2 * INDENT, INDENT)
            detail = ""


def listed(objects: Iterator[dict[str, Any]]) -> Iterator[str]:
    """The elements of a JSON array, one a line."""
    before = ""
    for each in objects:
        yield before + json.dumps(each)
        before = ",\n"
    yield "\n"


def cut(text: str) -> str:
    """A detail, shortened."""
    return text if len(text) <= MAX_DETAIL else text[: MAX_DETAIL - 1] + "…"


def text_of(code: str) -> str:
    """The text of the reason with this code, which may be of another version of the program."""
    return TEXTS[BY_CODE[code]] if code in BY_CODE else printable(code)


def write_quarantine(manifest: Manifest, path: str) -> int:
    """Write the quarantined inputs to the file `path`, a JSON object a line; how many there are.

    The file appears as a whole, empty if there are none. Raises OutputError.
    """
    count = 0
    with output_file(path) as file:
        for row in manifest.rows():
            if row.state == State.QUARANTINED:
                count += 1
                time = datetime.fromtimestamp(row.finished, UTC).isoformat(timespec="milliseconds")
                entry = {"time": time} | input_fields(row.uri, row.size, row)
                del entry["state"]
                file.write(json.dumps(entry).encode() + b"\n")
    return count
