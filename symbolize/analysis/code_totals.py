"""Values by function, file and line of each build of a module: what tables of many profiles are made of."""

from dataclasses import dataclass

import numpy as np

from symbolize.analysis.stacks import Stacks
from symbolize.analysis.top import totals_by_key
from symbolize.core.arrays import Float64, Int32, distinct_inverse, pair, unpair

MAX_LINE = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class CodeTotals:
    """Values by code: `name` is a row of the names of frames, `build` a number of a build, `file` a row of the files of
    the stacks and `line` a line of it, 0 where unknown; `flat` and `cumulative` are float64[n, k]."""

    name: Int32
    build: Int32
    file: Int32
    line: Int32
    flat: Float64
    cumulative: Float64

    def __len__(self) -> int:
        return len(self.name)


def code_totals(stacks: Stacks, builds: Int32) -> CodeTotals:
    """The values of all code of `stacks`, in all sample types; `builds` has a number for each location: int32[n].

    Code that is on a stack several times counts once. Raises InputError for a table that is too large.
    """
    is_line = (stacks.lines > 0) & (stacks.lines <= MAX_LINE)
    names, name_of = distinct_inverse(pair(stacks.frames, builds[stacks.location_of_frames()]))
    files, file_of = distinct_inverse(pair(name_of, stacks.sources))
    keys, key_of = distinct_inverse(pair(file_of, np.where(is_line, stacks.lines, 0)))
    flat, cumulative = totals_by_key(stacks, key_of.astype(np.int32), len(keys))
    file_row, line = unpair(keys)
    name_row, file = unpair(files[file_row])
    name, build = unpair(names[name_row])
    return CodeTotals(name, build, file, line, flat, cumulative)
