"""Several profiles in one table: a row each."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from symbolize.analysis.units import quantity
from symbolize.core.errors import printable
from symbolize.core.mapped_names import base_name
from symbolize.core.reasons import Reason
from symbolize.core.terminal import LEAST_WIDTH, Style, cells, padded, shortened, wrapped
from symbolize.report.advice import INDENT, AdviceSums
from symbolize.report.model import Report
from symbolize.report.reason_texts import TEXTS

LEAST_COLUMN: Final = 6
"""Cells of a column of names, however narrow the terminal."""
LAST_COLUMN: Final = 12
MAX_MISSES, LEAST_MISS = 3, 1.0
"""Reasons that a row has, and the share in percent from which it has one."""
WIDE: Final = 120
"""Cells of lines in which outputs are shown beside the profiles."""
GAP: Final = "  "
OUTPUT: Final = "output"


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
            share = f"{leaves:.1f} %" if leaves >= LEAST_MISS else f"{frames:.1f} % of the frames"
            texts.append(f"{share} {TEXTS[reason]}{where}")
    return "; ".join(texts[:MAX_MISSES])


def render(rows: Sequence[ReportRow], style: Style, width: int) -> Iterator[str]:
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
