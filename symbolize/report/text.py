"""The report as text for a terminal: on one profile, on several in a table with a row each, the plan for a profile, and
the missing files as a shell script with comments."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from symbolize.analysis.markdown import MAX_SENTENCE, code, more, noted, table_rows
from symbolize.analysis.text import function_lines
from symbolize.analysis.units import quantity, quantity_of
from symbolize.core.errors import printable
from symbolize.core.mapped_names import base_name
from symbolize.core.outcome import StackCheck
from symbolize.core.reasons import TEXTS, Reason
from symbolize.core.terminal import DEFAULT_WIDTH, LEAST_WIDTH, Style, cells, padded, shortened, wrapped
from symbolize.report.advice import HINTS, INDENT, NO_LIST, Advice, AdviceSums, Hints, hint_of, kind_of
from symbolize.report.model import MappingRow, Report

LEAST_COLUMN: Final = 6
"""Cells of a column of names, however narrow the terminal."""
LAST_COLUMN: Final = 12
MAX_MISSES, LEAST_MISS = 3, 1.0
"""Reasons that a row has, and the share in percent from which it has one."""
WIDE: Final = 120
"""Cells of lines in which outputs are shown beside the profiles."""
GAP: Final = "  "
OUTPUT: Final = "output"
BUILD_ID: Final = 12
"""Digits of a build id that are shown."""
BROKEN_STACKS: Final = 0.8
"""Share of callers that agree with the debug information below which something is wrong: with the right binary and
sound stacks nearly all do."""
MANY_WITHOUT_LINES: Final = 0.1
"""Share of a mapping's frames without lines that is worth a line: every program has some functions of assembler."""
UNIDENTIFIED = (
    Reason.NO_IDENTITY,
    Reason.NOT_FOUND,
    Reason.BAD_BUILD_ID,
    Reason.NOT_ELF,
    Reason.AMBIGUOUS,
    Reason.MISFIT,
    Reason.NO_SYMBOLS,
    Reason.RESTRICTED,
    Reason.UNREADABLE,
    Reason.SERVER_FAILED,
)
"""Reasons that another file would help against, though its build id is not known."""


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One of several profiles: what it is of, its kind, its figures, the file that it was written to, and why frames
    have no names."""

    subject: str
    kind: str
    samples: int
    value: str
    percent: str
    leaf_percent: str
    output: str
    misses: str = ""

    @classmethod
    def of(cls, report: Report, subject: str, kind: str, output: str) -> "ReportRow":
        """The row for a report."""
        value = quantity(report.sample_value, report.unit, " ")
        frames, leaves = (
            f"{each:.1f} %" if report.sample_value else "-" for each in (report.percent, report.leaf_percent)
        )
        return cls(subject, kind, report.samples, value, frames, leaves, output, misses_of(report))


def misses_of(report: Report) -> str:
    """Why frames have no names: the reasons with the largest shares of the samples by their leaf, then of the frames,
    and where; empty if there are none but that nothing was asked for, which is said once for all."""
    sums: dict[Reason, AdviceSums] = {}
    first: dict[Reason, str] = {}
    for row in report.by_weight():
        for reason, _, value in row.misses if report.sample_value else ():
            sums.setdefault(reason, AdviceSums()).add(row.missed_flat[reason], value, 1)
            first.setdefault(reason, base_name(row.name))
    sums.pop(Reason.NOT_ASKED, None)
    texts = []
    for reason, each in sorted(sums.items(), key=lambda item: (-item[1].leaves, -item[1].frames, item[0])):
        leaves, frames = 100 * each.leaves / report.sample_value, 100 * each.frames / (report.value or 1.0)
        if max(leaves, frames) >= LEAST_MISS:
            where = f": {first[reason]}" * bool(first[reason]) + f" and {each.mappings - 1} more" * (each.mappings > 1)
            part = f"{leaves:.1f} %" if leaves >= LEAST_MISS else f"{frames:.1f} % of the frames"
            texts.append(f"{part} {TEXTS[reason]}{where}")
    return "; ".join(texts[:MAX_MISSES])


def profile_table(rows: Sequence[ReportRow], style: Style, width: int) -> Iterator[str]:
    """The table, in lines of `width` cells: names of profiles and outputs are shortened to fit. Below a row is why
    frames of the profile have no names."""
    numbers = [("stacks", *(f"{row.samples:,}" for row in rows)), ("value", *(row.value for row in rows))]
    numbers += [("named", *(row.leaf_percent for row in rows))]
    names = [
        ("profile", *(printable(row.subject) for row in rows)),
        ("kind", *(printable(row.kind) for row in rows)),
        (OUTPUT, *(printable(row.output) for row in rows)),
    ]
    names = [column for column in names if any(column[1:]) and (column[0] != OUTPUT or width >= WIDE)]
    taken = sum(max(map(cells, column)) + len(GAP) for column in numbers)
    widths = fitted([max(map(cells, column)) for column in names], max(width, LEAST_WIDTH) - taken)
    for number in range(len(rows) + 1):
        parts = [f"{column[number]:>{max(map(cells, column))}}" for column in numbers]
        for column, size in zip(names, widths, strict=True):
            head = size // 2 if column[0] == OUTPUT else 0  # names of outputs begin with what tells them apart
            parts.append(padded(shortened(column[number], size, head), size))
        line = GAP.join(parts).rstrip()
        yield style.bold(line) if not number else line
        if number and rows[number - 1].misses:
            text = f"without names: {printable(rows[number - 1].misses)}"
            yield from map(style.dim, wrapped(text, width, 2 * INDENT, INDENT))


def common_folder(outputs: Sequence[str]) -> str:
    """The folder that all outputs are in; empty if there is none, or it is the current one."""
    folders = {os.path.dirname(each) for each in outputs}
    return folders.pop() if len(folders) == 1 else ""


def without_common_folder(rows: Sequence[ReportRow]) -> list[ReportRow]:
    """The rows, their outputs without the folder that all are in."""
    folder = common_folder([row.output for row in rows])
    return [replace(row, output=os.path.basename(row.output)) if folder else row for row in rows]


def fitted(widths: Sequence[int], width: int) -> list[int]:
    """Column widths that fit `width` with gaps between them: the last column is cut first, then the widest."""
    result = list(widths)
    too_much = sum(result) + len(GAP) * (len(result) - 1) - width
    last = len(result) - 1
    given = max(min(too_much, result[last] - LAST_COLUMN), 0)
    result[last] -= given
    for _ in range(too_much - given):
        widest = result.index(max(result))
        result[widest] = max(result[widest] - 1, LEAST_COLUMN)
    return result


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
        place = "of this machine: " if row.outcome.is_local else "from "
        yield place + ", ".join(row.files) + (f" ({build_id})" if row.verified and build_id else how_sure(row))
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


def render_plan(
    report: Report,
    *,
    verbose: bool = False,
    colour: bool = False,
    hints: Hints = HINTS,
    width: int = DEFAULT_WIDTH,
    limit: int | None = None,
) -> str:
    """A mapping a paragraph, the heaviest first: what would be used, what is wanted, what would be missed and why; then
    what to do about it. Lines have `width` cells."""
    style, width = Style(colour), max(width, LEAST_WIDTH)
    advice = Advice(hints)
    advice.add(report)
    found = report.by_weight(unused=verbose)
    rows = [(row, f"{row.locations:,}", plan_details(row, verbose)) for row in found[:limit]]
    lines = [*warnings(report, advice, style, width), *mapping_table(report, "locations", rows, style, width)]
    lines += [f"and {len(found) - len(rows):,} more"] if len(rows) < len(found) else []
    lines += ["", *(style.bold(line) for line in wrapped(plan_summary(report), width)), *advice.lines(style, width)]
    return "\n".join(lines) + "\n"


def plan_markdown(
    report: Report, subject: str, *, verbose: bool = False, hints: Hints = HINTS, limit: int | None = None
) -> Iterator[str]:
    """The same as lines of Markdown: a mapping a row of a table."""
    advice = Advice(hints)
    advice.add(report)
    found = report.by_weight(unused=verbose)
    rows = (
        (*shares(report, row), f"{row.locations:,}", label(row.name, row.build_id), "; ".join(details))
        for row, details in ((row, plan_details(row, verbose)) for row in found[:limit])
    )
    yield from (f"### Plan for {code(subject)}", "", code(plan_summary(report)), "")
    headings = ("flat", "cum", "locations", "mapping", "what would be used, and what is missing")
    yield from table_rows(headings, rows, MAX_SENTENCE)
    if limit is not None and (rest := more(limit, len(found), "mappings")):
        yield from ("", rest)
    yield from noted([*advice.first, *report.cautions, *(f"{what}: {hint}" for what, hint in advice.sentences())])


def plan_summary(report: Report) -> str:
    """How much of a profile there is a binary for."""
    return report.no_samples or (
        f"there is a binary or a name for {report.leaf_percent:.1f} % of the value, and for {report.percent:.1f} % of "
        "the frames on the stacks"
    )


def plan_details(row: MappingRow, verbose: bool) -> Iterator[str]:
    """What the plan says of a mapping, a line each."""
    if row.build_id:
        yield f"build id {row.build_id}"
    if row.files:
        place = "of this machine: " if row.outcome.is_local else ""
        yield f"use {place}{', '.join(row.files)}{how_sure(row)}" + (
            f", {row.outcome.state}" if row.outcome.state else ""
        )
    if row.outcome.wanted:
        yield f"wanted: {' and '.join(row.outcome.wanted)} of {row.outcome.wanted_id}"
    for reason, number, _ in row.misses:
        yield f"{locations(row, number)} without names: {TEXTS[reason]}" + (f" ({row.detail})" if row.detail else "")
    for problem in row.problems:
        yield f"problem: {problem}"
    if verbose:
        for place, outcome in row.tried:
            yield f"tried {place}: {outcome}"


class Missing:
    """The files that the reports on some profiles want, each with the value of the frames in its mappings."""

    def __init__(self, hints: Hints = HINTS) -> None:
        self._hints = hints
        self._total = 0.0
        self._files: dict[tuple[str, str], tuple[float, str, str]] = {}
        self._names: dict[str, tuple[float, str]] = {}

    def add(self, report: Report) -> None:
        """Add the files of a report."""
        self._total += report.value
        for row in report.mappings:
            if not row.locations:
                continue
            reason = row.misses[0][0] if row.misses else Reason.SYMBOLIZED
            name = base_name(row.name) or "(no name)"
            for kind in row.outcome.wanted:
                value, _, _ = self._files.get((row.outcome.wanted_id, kind), (0.0, "", ""))
                self._files[row.outcome.wanted_id, kind] = value + row.value, name, why(row, kind)
            is_listed = reason in NO_LIST and kind_of(row.name) != ""
            if not row.outcome.wanted and (reason in UNIDENTIFIED or is_listed):
                value, _ = self._names.get(row.name, (0.0, ""))
                found = hint_of(reason, row.name, self._hints)
                self._names[row.name] = value + row.value, TEXTS[reason] + (f", {found[1]}" if found else "")

    def text(self) -> str:
        """A command a line, the heaviest first; names from files are in comments only."""
        lines = ["# What is missing, heaviest first. Run this file, or let symbolize ask a debuginfod server."]
        files = sorted(self._files.items(), key=lambda item: (-item[1][0], item[0]))
        for (build_id, kind), (value, name, reason) in files:
            lines.append(f"debuginfod-find {kind} {build_id}  # {self._share(value)}{printable(name)}: {reason}")
        for name, (value, reason) in sorted(self._names.items(), key=lambda item: (-item[1][0], item[0])):
            lines.append(f"# {self._share(value)}{printable(name) or '(no name)'}: {reason}")
        if len(lines) == 1:
            lines = ["# Nothing is missing."]
        return "\n".join(lines) + "\n"

    def _share(self, value: float) -> str:
        return f"{100 * value / self._total:.1f} %, " if self._total else ""


def why(row: MappingRow, kind: str) -> str:
    """What a missing file would add."""
    if row.symbolized_locations and kind == "debuginfo":
        return "would add lines and inlined functions" + (", and names" if row.misses else "")
    if not row.files:
        return TEXTS[row.misses[0][0]] if row.misses else "not found"
    return "has the addresses of the code" if kind == "executable" else "has names and lines"
