"""The plan for a profile as text."""

from collections.abc import Iterator

from symbolize.core.terminal import DEFAULT_WIDTH, LEAST_WIDTH, Style, wrapped
from symbolize.report.advice import Advice
from symbolize.report.model import MappingRow, Report
from symbolize.report.reason_texts import HINTS, TEXTS, Hints
from symbolize.report.text import how_sure, locations, mapping_table, warnings


def render(
    report: Report, *, verbose: bool = False, colour: bool = False, hints: Hints = HINTS, width: int = DEFAULT_WIDTH
) -> str:
    """A mapping a paragraph, the heaviest first: what would be used, what is wanted, what would be missed and why; then
    what to do about it. Lines have `width` cells."""
    style, width = Style(colour), max(width, LEAST_WIDTH)
    advice = Advice(hints)
    advice.add(report)
    rows = [(row, f"{row.locations:,}", details(row, verbose)) for row in report.by_weight(unused=verbose)]
    lines = [*warnings(report, advice, style, width), *mapping_table(report, "locations", rows, style, width)]
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
