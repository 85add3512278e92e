"""The report as text for a terminal."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from symbolize.analysis.text import function_lines
from symbolize.analysis.units import quantity, quantity_of
from symbolize.core.errors import printable
from symbolize.core.outcome import StackCheck
from symbolize.core.reasons import Reason
from symbolize.core.terminal import DEFAULT_WIDTH, LEAST_WIDTH, Style, shortened, wrapped
from symbolize.report.advice import Advice
from symbolize.report.model import MappingRow, Report
from symbolize.report.reason_texts import HINTS, TEXTS, Hints

INDENT: Final = "    "
BUILD_ID: Final = 12
"""Digits of a build id that are shown."""
BROKEN_STACKS: Final = 0.8
"""Share of callers that agree with the debug information below which something is wrong: with the right binary and
sound stacks nearly all do."""
MANY_WITHOUT_LINES: Final = 0.1
"""Share of a mapping's frames without lines that is worth a line: every program has some functions of assembler."""


def render(
    report: Report, *, verbose: bool = False, colour: bool = False, hints: Hints = HINTS, width: int = DEFAULT_WIDTH
) -> str:
    """Warnings, the table of mappings, the summary, the heaviest functions and what to do about what is missing, in
    lines of `width` cells; `verbose` adds everything that was tried."""
    style, width = Style(colour), max(width, LEAST_WIDTH)
    advice = Advice(hints)
    advice.add(report)
    rows = [(row, named(row), mapping_details(report, row, verbose)) for row in report.by_weight(unused=verbose)]
    lines = [*warnings(report, advice, style, width), *mapping_table(report, "named", rows, style, width)]
    lines += ["", *summary(report, style, width)]
    if report.top:
        lines += ["", *top_table(report, style, width)]
    lines += advice.lines(style, width)
    return "\n".join(lines) + "\n"


def warnings(report: Report, advice: Advice, style: Style, width: int) -> Iterator[str]:
    """What a reader has to know first."""
    texts = [*advice.first, *report.cautions]
    for text in texts:
        for line in wrapped(f"warning: {printable(text)}", width, INDENT, ""):
            yield style.warning(line)
    if texts:
        yield ""


def mapping_table(
    report: Report, head: str, rows: Sequence[tuple[MappingRow, str, Iterable[str]]], style: Style, width: int
) -> Iterator[str]:
    """A row a mapping, each with what is in the column `head`, and what is said below it."""
    column = max([len(head), *(len(number) for _, number, _ in rows)])
    yield style.bold(f"{'flat':>7} {'cum':>7}  {head:>{column}}  mapping")
    for row, number, details in rows:
        flat, cumulative = shares(report, row)
        begin = f"{flat:>7} {cumulative:>7}  {number:>{column}}  "
        yield begin + shortened(label(row.name, row.build_id), width - len(begin))
        for text in details:
            yield from map(style.dim, wrapped(printable(text), width, 2 * INDENT, INDENT))


def mapping_details(report: Report, row: MappingRow, verbose: bool) -> Iterator[str]:
    """What the report says of a mapping besides its shares, a line each."""
    build_id = f"build id {row.build_id if verbose else row.build_id[:BUILD_ID]}" if row.build_id else ""
    if row.files:
        yield f"from {', '.join(row.files)}" + (f" ({build_id})" if row.verified and build_id else how_sure(row))
    if row.had_names:
        yield f"{locations(row, row.had_names)}: names came with the profile"
    for reason, missed, _ in row.misses:
        if reason is Reason.NOT_ASKED:
            continue  # said once, on top
        detail = f" ({row.detail})" if row.detail else ""
        detail += f", {build_id}" if build_id and not row.files else ""
        weight = f", {share(row.missed_flat[reason], report.sample_value)} flat: "
        whole = "" if missed == row.locations else locations(row, missed) + weight
        yield whole + TEXTS[reason] + detail
    if verbose or row.without_lines_value > MANY_WITHOUT_LINES * row.value:
        if row.without_lines:
            yield f"{locations(row, row.without_lines)}: names only, no lines"
    if row.approximate_lines:
        number = locations(row, row.approximate_lines)
        yield f"{number}: approximate lines, the nearest earlier ones of their functions"
    if row.outcome.stack_check is not None:
        yield calls_text(row.outcome.stack_check)
    for problem in row.problems:
        yield f"problem: {problem}"
    if verbose:
        for place, outcome in row.tried:
            yield f"tried {place}: {outcome}"


def calls_text(check: StackCheck) -> str:
    """How well the callers in a mapping agree with its call sites."""
    text = (
        f"calls: {100 * check.share:.1f} % of the judged callers agree with the debug information "
        f"({share(check.explained, check.judged)} by tail calls)"
    )
    if check.share < BROKEN_STACKS:
        text += "; this is another build, or the stacks were not unwound right"
    return text


def summary(report: Report, style: Style, width: int) -> Iterator[str]:
    """How much of the value is in named code, and how many frames have names."""
    kind = "CPU" if report.sample_type == "cpu" else printable(report.sample_type)
    number, what = (report.samples, "stack") if report.sample_count is None else (report.sample_count, "sample")
    samples = f"{number:,} {what}{'s' * (number != 1)}"
    value = quantity_of(report.sample_value, kind, report.unit)
    whole = samples if report.unit == "count" and report.sample_type == "samples" else f"{value} ({samples})"
    text = (
        f"{report.no_samples}."
        if report.no_samples
        else (
            f"{report.leaf_percent:.1f} % of {' '.join(whole.split())} is in named code; {report.percent:.1f} % of the "
            "frames on the stacks have names."
        )
    )
    if report.had_names:
        which = f"{report.had_names:,} of {report.symbolized_locations:,}"
        text += f" {'All' if report.had_names == report.symbolized_locations else which} names came with the profile."
    if report.shared_value:
        text += (
            f" {share(report.shared_value, report.value)} of the frames are in code that functions share; the callers "
            f"name {share(report.decided_value, report.shared_value)} of these."
        )
    rest = report.sample_value - report.leaf_value
    if rest > 0:
        text += f" {quantity(rest, report.unit, ' ')} is in samples without a stack."
    for line in wrapped(text, width):
        yield style.bold(style.rated(line, report.lower_percent))


def top_table(report: Report, style: Style, width: int) -> Iterator[str]:
    """The functions with the most value of their own."""
    lines = function_lines(report.top, report.sample_value, report.unit, width)
    yield style.bold(next(lines))
    yield from lines


def shares(report: Report, row: MappingRow) -> tuple[str, str]:
    """The parts of the samples with their leaf in a mapping, and with it on their stack."""
    return share(row.flat, report.sample_value), share(row.cumulative, report.sample_value)


def named(row: MappingRow) -> str:
    """How many locations of a mapping have names, of how many."""
    return f"{row.symbolized_locations:,}/{row.locations:,}"


def share(value: float, total: float) -> str:
    """A part of a total in percent; `-` if there is none."""
    return f"{100 * value / total:.1f} %" if total else "-"


def locations(row: MappingRow, number: int) -> str:
    """So many of the locations of a mapping."""
    if number == row.locations:
        return "all" if number > 1 else "its location"
    return f"{number:,} location{'s' * (number != 1)}"


def label(name: str, build_id: str) -> str:
    """What a mapping or binary is called, by its recorded name and its build id."""
    return printable(name) or ("(no file name)" if build_id else "(no mapping)")


def how_sure(row: MappingRow) -> str:
    """The mark of files that may not be those that ran."""
    if row.verified:
        return ""
    return f" ({row.outcome.sureness})"
