"""Values by source line."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from symbolize.analysis.stacks import Stacks
from symbolize.analysis.top import totals_by_key
from symbolize.core.arrays import Float64, Int32, Int64, distinct, distinct_inverse, first_of_runs, pair, unpair


@dataclass(frozen=True, eq=False)
class LineTotals:
    """Values by line of a source file: `file` is a row of `files`, `flat` and `cumulative` are float64[m, k].

    Rows are ordered by `function`, then file and line. `function` is a row of the names of functions, or 0 where totals
    are not by function. Frames without a file or line are left out.
    """

    files: list[str]
    function: Int32
    file: Int32
    line: Int64
    flat: Float64
    cumulative: Float64

    def __len__(self) -> int:
        return len(self.line)

    def heaviest_files(self, column: int) -> list[str]:
        """The files that have lines, those with the largest own values in a column first."""
        used = distinct(self.file)
        weights = np.bincount(self.file, np.abs(self.flat[:, column]), minlength=len(self.files))
        return [self.files[row] for row in used[np.argsort(-weights[used], kind="stable")].tolist()]

    def by_file(self) -> Iterator["LineTotals"]:
        """The lines of each file, or of each function in a file."""
        edges = [*np.flatnonzero(first_of_runs(pair(self.function, self.file))).tolist(), len(self)]
        for begin, end in pairwise(edges):
            rows = slice(begin, end)
            yield LineTotals(
                self.files,
                self.function[rows],
                self.file[rows],
                self.line[rows],
                self.flat[rows],
                self.cumulative[rows],
            )


def line_totals(stacks: Stacks, functions: Int32 | None = None) -> LineTotals:
    """The values of all source lines of `stacks`, in all sample types: a line counts once a stack.

    With `functions`, the function of each frame (negative: left out), they are by function too.
    """
    has_line = (stacks.sources > 0) & (stacks.lines > 0) & (stacks.lines <= np.iinfo(np.int32).max)
    if functions is None:
        functions = np.zeros(len(has_line), np.int32)
    has_line &= functions >= 0
    # Row 0 takes the frames without a line.
    files, file_of = distinct_inverse(np.where(has_line, pair(functions, stacks.sources), -1))
    keys, rows = distinct_inverse(pair(file_of, np.where(has_line, stacks.lines, 0)))
    flat, cumulative = totals_by_key(stacks, rows.astype(np.int32), len(keys))
    number, line = unpair(keys)
    known = np.flatnonzero(line > 0)
    function, file = unpair(files[number[known]])
    return LineTotals(stacks.files, function, file, line[known].astype(np.int64), flat[known], cumulative[known])
