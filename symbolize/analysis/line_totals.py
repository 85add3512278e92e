"""Values by source line."""

from dataclasses import dataclass

import numpy as np

from symbolize.analysis.stacks import Float64, Stacks
from symbolize.analysis.top import sums
from symbolize.core.arrays import Int32, Int64, distinct_inverse, pair, unpair


@dataclass(frozen=True, eq=False)
class LineTotals:
    """Values by line of a source file: `file` is a row of `files`, `flat` and `cumulative` are float64[m, k].

    Rows are ordered by file, then line. Frames without a file or line are left out.
    """

    files: list[str]
    file: Int32
    line: Int64
    flat: Float64
    cumulative: Float64


def line_totals(stacks: Stacks) -> LineTotals:
    """The values of all source lines of `stacks`, in all sample types: a line counts once a stack."""
    has_line = (stacks.sources > 0) & (stacks.lines > 0) & (stacks.lines < 1 << 31)
    keys, rows = distinct_inverse(pair(np.where(has_line, stacks.sources, 0), np.where(has_line, stacks.lines, 0)))
    columns = [
        sums(stacks, rows.astype(np.int32), len(keys), np.ascontiguousarray(column)) for column in stacks.values.T
    ]
    file, line = unpair(keys)
    known = np.flatnonzero(file > 0)
    shape = (len(columns), len(keys))
    return LineTotals(
        stacks.files,
        file[known],
        line[known].astype(np.int64),
        np.array([each.flat for each in columns]).reshape(shape).T[known],
        np.array([each.cumulative for each in columns]).reshape(shape).T[known],
    )
