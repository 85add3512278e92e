"""`perf-PID.map`: the functions that a runtime compiled, one on each line."""

import re

import numpy as np

from symbolize.core.ranges import latest
from symbolize.symbol_files.symbol_list import SymbolList

_LINE = re.compile(rb"^[ \t]*(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]+(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]+(\S[^\n]*)$", re.M)


def read_perf_map(data: bytes) -> SymbolList:
    """The functions of a perf map: lines `START SIZE NAME`, numbers in hexadecimal, names with spaces, runtime
    addresses.

    The runtime appends a line whenever it compiles, so the later of overlapping lines wins. Other lines are counted in
    `problems`.
    """
    begins: list[int] = []
    sizes: list[int] = []
    names: list[bytes] = []
    for start, size, name in _LINE.findall(data):
        begins.append(int(start, 16))
        sizes.append(int(size, 16))
        names.append(name.rstrip())
    begin = np.array(begins, np.uint64)
    end = begin + np.minimum(np.array(sizes, np.uint64), ~begin)
    begin, end, row = latest(begin, end)
    listing = SymbolList.of_functions(begin, end, [names[i] for i in row.tolist()])
    lines = [line for line in data.split(b"\n") if line.strip()]
    if len(names) < len(lines):
        listing.problems.append(f"{len(lines) - len(names)} of {len(lines)} lines are not START SIZE NAME")
    return listing
