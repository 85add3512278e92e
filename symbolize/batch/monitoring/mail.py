"""The report on a batch as a mail: at most 40 lines of 78 columns, the most important first (R405, short report)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from symbolize.analysis.units import quantity
from symbolize.batch.manifest import IGNORED, State
from symbolize.batch.monitoring.observers import duration, one_line
from symbolize.batch.monitoring.summary import Summary
from symbolize.core.errors import printable
from symbolize.core.terminal import padded, shortened, wrapped
from symbolize.storage.urls import shown_uri

COLUMNS: Final = 78
LINES: Final = 40
LABEL: Final = 12
"""Columns of the labels of figures."""
FAILED: Final = 4
"""Inputs newly in quarantine that are shown, two lines each."""
HEAVIEST: Final = 6
"""Binaries that are shown."""
BUILD_ID: Final = 12
NAME: Final = COLUMNS - 9 - 10 - BUILD_ID - 3


def mail(summary: Summary, quarantine: str = "") -> str:
    """The report; `quarantine` is the file that lists the quarantined inputs. The first line serves as subject."""
    lines = [_subject(summary), ""]
    lines += _figures(summary)
    for part in (_failed(summary, quarantine), _binaries(summary)):
        lines += ["", *part] if part else []
    rest = LINES - len(lines) - 2
    hints = [line for hint in _hints(summary) for line in wrapped(hint, COLUMNS, "    ", "  - ")]
    if hints:
        lines += ["", "What to do"]
        lines += hints if len(hints) <= rest else [*hints[: rest - 1], "  - and more: see the text of the report"]
    return "".join(line + "\n" for line in lines)


def _subject(summary: Summary) -> str:
    """The result in one line."""
    states, new = summary.states, summary.news.count()
    unfinished = states[State.NEW] + states[State.SCANNED]
    parts = [f"{states[State.DONE]} of {sum(states.values())} inputs done"]
    parts += [f"{unfinished} unfinished"] * bool(unfinished)
    parts += [f"{summary.incomplete} incomplete"] * bool(summary.incomplete)
    parts += [f"{new} newly in quarantine"] * bool(new)
    if summary.outputs:
        parts.append(f"coverage {summary.percents.mean:.1f} %")
    return shortened("symbolize batch: " + ", ".join(parts), COLUMNS, COLUMNS - 1)


def _figures(summary: Summary) -> list[str]:
    """What was done, and how much of it has names."""
    tally, states = summary.tally, summary.states
    written = quantity(tally.output_bytes, "bytes")
    rows = [
        ("this run", f"{tally.finished} inputs in {duration(tally.seconds)}, wrote {written}"),
        ("in all", f"{states[State.DONE]} inputs done, {summary.outputs} profiles"),
    ]
    unfinished = states[State.NEW] + states[State.SCANNED]
    if unfinished:
        rows.append(("unfinished", f"{unfinished} inputs: run the same command again"))
    if summary.incomplete:
        rows.append(("incomplete", f"{summary.incomplete} inputs, because something failed: run the command again"))
    if summary.outputs:
        before = summary.news.coverage()
        change = "" if before is None else f" ({summary.percents.mean - before:+.1f} since the last run)"
        nameless = f", {summary.nameless} profiles without any name" if summary.nameless else ""
        rows.append(("coverage", f"{summary.percents.mean:.1f} % on average{change}{nameless}"))
    if summary.reasons:
        ignored = summary.reasons.get(IGNORED, 0)
        text = f"{states[State.QUARANTINED] - ignored} inputs, {summary.news.count()} of them newly"
        rows.append(("quarantine", text + (f"; {ignored} ignored" if ignored else "")))
    if tally.problems:
        rows.append(("problems", f"{tally.problems}, reported on standard error and in the log"))
    return [f"{label:<{LABEL}}{shortened(text, COLUMNS - LABEL, COLUMNS - LABEL - 1)}" for label, text in rows]


def _failed(summary: Summary, quarantine: str) -> list[str]:
    """The inputs that are newly in quarantine."""
    new = summary.news.count()
    if not new:
        return []
    lines = ["Newly in quarantine"]
    for uri, reason, detail in summary.news.quarantined(FAILED):
        shown = printable(shown_uri(uri))
        lines.append(f"  {reason:<{LABEL}}{shortened(shown, COLUMNS - LABEL - 2)}")
        text = one_line(detail).removeprefix(f"{shown}: ")
        lines.append(" " * (LABEL + 2) + shortened(text, COLUMNS - LABEL - 2, COLUMNS - LABEL - 3))
    if new > FAILED:
        lines.append(shortened(f"  and {new - FAILED} more: {printable(quarantine)}", COLUMNS, 20))
    return lines


def _binaries(summary: Summary) -> list[str]:
    """The binaries that miss most names."""
    heaviest = summary.heaviest(HEAVIEST)
    if not heaviest:
        return []
    lines = ["Binaries that miss most names", f"{'missing':>9} {'profiles':>9}  {'build id':<{BUILD_ID}} name"]
    for sums in heaviest:
        name = printable(sums.name) or ("(no file name)" if sums.build_id else "(no mapping)")
        build_id = padded(printable(sums.build_id)[:BUILD_ID] or "-", BUILD_ID)
        share = f"{100 * sums.missing / summary.outputs:.1f} %"
        lines.append(f"{share:>9} {sums.profiles:>9}  {build_id} {shortened(name, NAME)}")
    return lines


def _hints(summary: Summary) -> Iterator[str]:
    """What to do, the most valuable first."""
    advice, later = summary.advice()
    yield from advice.first
    for what, hint in advice.sentences():
        yield f"{what}: {hint}"
    yield from later
