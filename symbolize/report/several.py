"""Several profiles in one table: a row each."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from symbolize.analysis.units import quantity
from symbolize.core.errors import printable
from symbolize.core.terminal import LEAST_WIDTH, Style, cells, padded, shortened
from symbolize.report.model import Report

LEAST_COLUMN: Final = 6
"""Cells of a column of names, however narrow the terminal."""
LAST_COLUMN: Final = 12
WIDE: Final = 120
"""Cells of lines in which outputs are shown beside the profiles."""
GAP: Final = "  "
OUTPUT: Final = "output"


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One of several profiles: what it is of, its kind, its figures, and the file that it was written to."""

    subject: str
    kind: str
    samples: int
    value: str
    percent: str
    leaf_percent: str
    output: str

    @classmethod
    def of(cls, report: Report, subject: str, kind: str, output: str) -> "ProfileRow":
        """The row for a report."""
        value = quantity(report.sample_value, report.unit, " ")
        frames, leaves = (
            f"{each:.1f} %" if report.sample_value else "-" for each in (report.percent, report.leaf_percent)
        )
        return cls(subject, kind, report.samples, value, frames, leaves, output)


def render(rows: Sequence[ProfileRow], style: Style, width: int) -> Iterator[str]:
    """The table, in lines of `width` cells: names of profiles and outputs are shortened to fit."""
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


def common_folder(outputs: Sequence[str]) -> str:
    """The folder that all outputs are in; empty if there is none, or it is the current one."""
    folders = {os.path.dirname(each) for each in outputs}
    return folders.pop() if len(folders) == 1 else ""


def without_common_folder(rows: Sequence[ProfileRow]) -> list[ProfileRow]:
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
