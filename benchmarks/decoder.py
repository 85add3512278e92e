"""Measures the DWARF decoder phase by phase, in one thread, over the whole of a binary or its debug file.

    python benchmarks/decoder.py FILE... [--runs N]

Printed is the fastest of N runs of each phase, in processor time of the one thread, which other load on the machine
disturbs least; of the whole decoding with all its threads it is wall time.
"""

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from symbolize.core.ranges import clip_to
from symbolize.dwarf.columns import Nodes, Ranges
from symbolize.dwarf.constants import SKIP_SUBTREE, TYPE_SUBTREE
from symbolize.dwarf.decode import Dwarf, function_segments, line_rows
from symbolize.dwarf.die_walk import walk_units
from symbolize.elf import ElfImage
from symbolize.symbols.split_dwarf_files import SECTIONS, debug_sections

Result = TypeVar("Result")
SKIPS = SKIP_SUBTREE | TYPE_SUBTREE
"""The bits of AbbrevTables.step by which the walk passes over subtrees."""


def fastest(
    runs: int, job: Callable[[], Result], clock: Callable[[], float] = time.thread_time
) -> tuple[float, Result]:
    """Seconds of the fastest of `runs` runs, and what the last one returned."""
    best = float("inf")
    for _ in range(runs):
        start = clock()
        result = job()
        best = min(best, clock() - start)
    return best, result


def line(phase: str, seconds: float, note: str = "") -> None:
    """Print a row."""
    print(f"  {phase:<22}{seconds:8.3f} s   {note}".rstrip())


def measure(path: Path, runs: int) -> None:
    """Print the phases of decoding `path`."""
    print(f"{path} ({path.stat().st_size / 1e6:.0f} MB)")

    def inflate() -> int:
        with ElfImage.open(path) as image:
            return sum(len(image.contents(f".debug_{name}") or b"") for name in SECTIONS)

    seconds, size = fastest(runs, inflate)
    line("read and inflate", seconds, f"{size / 1e6:.0f} MB")
    with ElfImage.open(path) as image:
        sections, code = debug_sections(image), image.code_ranges
        dwarf = Dwarf(sections, code)
        line("units", fastest(runs, lambda: Dwarf(sections, code))[0], f"{len(dwarf.units.offset)} units")
        tables = [Dwarf(sections, code).reader.tables for _ in range(runs)]
        every = np.asarray(dwarf.units.table)
        seconds, _ = fastest(runs, lambda: tables.pop().compile(every))
        line("abbreviations", seconds, f"{len(sections.abbrev) / 1e6:.1f} MB")
        measure_units(dwarf, runs)


def measure_units(dwarf: Dwarf, runs: int) -> None:
    """Print the phases that follow when the units are known."""
    chosen = dwarf.holding_code()
    units, tables = dwarf.units, dwarf.reader.tables
    size = int((np.asarray(units.end)[chosen] - np.asarray(units.first_die)[chosen]).sum())

    def walk() -> tuple[int, Nodes, Ranges]:
        nodes, ranges = Nodes(), Ranges()
        return walk_units(dwarf.reader, chosen, nodes, ranges), nodes, ranges

    seconds, (visited, nodes, ranges) = fastest(runs, walk)
    steps = tables.step
    tables.step = memoryview(np.asarray(steps) & ~np.uint32(SKIPS))
    slow, (total, _, _) = fastest(1, walk)
    tables.step = steps
    note = f"{total / 1e6:.2f} M DIEs: {total / seconds / 1e6:.0f} M/s, {size / seconds / 1e6:.0f} MB/s"
    line("DIE walk", seconds, note)
    line("", seconds, f"{visited / 1e6:.2f} M of them visited: {visited / seconds / 1e6:.0f} M/s")
    line("all DIEs visited", slow, f"{total / slow / 1e6:.0f} M/s")
    seconds, lines = fastest(runs, lambda: dwarf.files.read_rows(chosen))
    count = lines.tables.row_count
    emitted = lines.tables.emitted
    note = f"{emitted / 1e6:.2f} M rows: {emitted / seconds / 1e6:.0f} M/s, {count / 1e6:.2f} M kept"
    line("line programs", seconds, note)
    parent, unit = np.asarray(nodes.parent)[: nodes.count], np.asarray(nodes.unit)[: nodes.count]
    begin, end, owner = ranges.arrays()
    live, begin, end = clip_to(begin, end, dwarf.code)
    owner = owner[live]
    claims, problems = dwarf.claims, dwarf.problems
    seconds, lines = fastest(runs, lambda: claims.cut_lines(lines, problems))
    line("claims of lines", seconds, f"{len(lines.begin)} sequences")

    def segment() -> tuple[Any, Any, Any]:
        return function_segments(begin.copy(), end.copy(), owner.copy(), parent, unit, lines, claims, problems, [])

    seconds, segments = fastest(runs, segment)
    starts = segments[0]
    rate = f"{nodes.count / 1e6:.2f} M nodes, {len(begin) / 1e6:.2f} M ranges to {len(starts) / 1e6:.2f} M"
    line("segments", seconds, f"{rate}: {len(starts) / seconds / 1e6:.1f} M/s")
    seconds, (starts, _) = fastest(runs, lambda: line_rows(lines, segments, unit, claims, problems, []))
    line("rows by vaddr", seconds, f"{len(starts) / 1e6:.2f} M: {len(starts) / seconds / 1e6:.1f} M/s")
    seconds, _ = fastest(runs, dwarf.decode, time.perf_counter)
    line("decode, all threads", seconds)
    print(f"  peak of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def main() -> None:
    """Measure the files of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="of which the fastest counts (default: 5)")
    options = parser.parse_args()
    for path in options.files:
        measure(path, max(1, options.runs))


if __name__ == "__main__":
    main()
