"""The plan for a profile as text."""

from collections.abc import Iterator

from symbolize.core.errors import printable
from symbolize.core.terminal import DEFAULT_WIDTH, LEAST_WIDTH, Style, shortened, wrapped
from symbolize.report.advice import Advice
from symbolize.report.model import MappingRow, Report
from symbolize.report.reason_texts import HINTS, TEXTS, Hints
from symbolize.report.text import INDENT, by_weight, how_sure, label, locations, share, warnings


def render(
    report: Report, *, verbose: bool = False, colour: bool = False, hints: Hints = HINTS, width: int = DEFAULT_WIDTH
) -> str:
    """A mapping a paragraph, the heaviest first: what would be used, what is wanted, what would be missed and why; then
    what to do about it. Lines have `width` cells."""
    style, width = Style(colour), max(width, LEAST_WIDTH)
    advice = Advice(hints)
    advice.add(report)
    lines = [*warnings(report, advice, style, width), style.bold(f"{'flat':>7} {'cum':>7}  {'locations':>9}  mapping")]
    for row in by_weight(report.mappings):
        if not row.locations and not verbose:
            continue
        flat, cumulative = (share(value, report.sample_value) for value in (row.flat, row.cumulative))
        begin = f"{flat:>7} {cumulative:>7}  {row.locations:>9,}  "
        lines.append(begin + shortened(label(row), width - len(begin)))
        for text in details(row, verbose):
            lines += [style.dim(line) for line in wrapped(printable(text), width, 2 * INDENT, INDENT)]
    text = report.no_samples or (
        f"there is a binary or a name for {report.leaf_percent:.1f} % of the value, and for {report.percent:.1f} % of "
        "the frames on the stacks"
    )
    lines += ["", *(style.bold(line) for line in wrapped(text, width)), *advice.lines(style, width)]
    return "\n".join(lines) + "\n"


def details(row: MappingRow, verbose: bool) -> Iterator[str]:
    """What the plan says of a mapping, a line each."""
    if row.build_id:
        yield f"build id {row.build_id}"
    if row.files:
        yield f"use {', '.join(row.files)}{how_sure(row)}" + (f", {row.outcome.state}" if row.outcome.state else "")
    if row.outcome.wanted:
        yield f"wanted: {' and '.join(row.outcome.wanted)} of {row.outcome.wanted_id}"
    for reason, number, _ in row.misses:
        yield f"{locations(row, number)} without names: {TEXTS[reason]}" + (f" ({row.detail})" if row.detail else "")
    for problem in row.problems:
        yield f"problem: {problem}"
    if verbose:
        for place, outcome in row.tried:
            yield f"tried {place}: {outcome}"
