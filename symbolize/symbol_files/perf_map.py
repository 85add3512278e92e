"""`perf-PID.map`: the functions that a runtime compiled, one on each line."""

import re

from symbolize.symbol_files.code_list import CodeList

_LINE = re.compile(rb"^[ \t]*(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]+(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]+(\S[^\n]*)$", re.M)


def read_perf_map(data: bytes) -> CodeList:
    """The functions of a perf map: lines `START SIZE NAME`, numbers in hexadecimal, names with spaces, runtime
    addresses.

    The runtime appends a line whenever it compiles. Other lines are counted in `problems`.
    """
    begins: list[int] = []
    sizes: list[int] = []
    names: list[bytes] = []
    for start, size, name in _LINE.findall(data):
        begins.append(int(start, 16))
        sizes.append(int(size, 16))
        names.append(name.rstrip())
    code = CodeList.of_functions(begins, sizes, names)
    lines = [line for line in data.split(b"\n") if line.strip()]
    if len(names) < len(lines):
        code.listing.problems.append(f"{len(lines) - len(names)} of {len(lines)} lines are not START SIZE NAME")
    return code
