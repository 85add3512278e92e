"""Measures the DWARF decoder phase by phase, in one thread, over the whole of a binary or its debug file, and lookups
in its table.

    python benchmarks/decoder.py FILE... [--runs N] [--json]

Printed is the fastest of N runs of each phase, in processor time of the one thread, which other load on the machine
disturbs least; of the whole decoding with all its threads it is wall time.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from symbolize.core.ranges import Gaps, clip_to
from symbolize.dwarf.columns import Nodes, Ranges
from symbolize.dwarf.constants import SKIP_SUBTREE, TYPE_SUBTREE
from symbolize.dwarf.decode import Dwarf, OwnedRanges, function_segments, line_rows
from symbolize.dwarf.die_walk import walk_units
from symbolize.elf import ElfImage
from symbolize.symbols import Binary
from symbolize.symbols.split_dwarf_files import SECTIONS, debug_sections

Result = TypeVar("Result")
SKIPS = SKIP_SUBTREE | TYPE_SUBTREE
"""The bits of AbbrevTables.step by which the walk passes over subtrees."""
LOOKUPS = 100_000


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


class Phases(dict[str, tuple[float, float, str]]):
    """Seconds of each phase, how many of what it did, and what these are."""

    def add(self, phase: str, timed: tuple[float, Any], count: float = 0, what: str = "") -> Any:
        """Add a phase; what it returned."""
        seconds, result = timed
        self[phase] = (seconds, count, what)
        return result


def measure(path: Path, runs: int) -> Phases:
    """The phases of decoding `path`."""
    phases = Phases()

    def inflate() -> int:
        with ElfImage.open(path) as image:
            return sum(len(image.contents(f".debug_{name}") or b"") for name in SECTIONS)

    timed = fastest(runs, inflate)
    phases.add("read and inflate", timed, timed[1], "bytes")
    with ElfImage.open(path) as image:
        sections, code = debug_sections(image), image.code_ranges
        dwarf = Dwarf(sections, code)
        phases.add("units", fastest(runs, lambda: Dwarf(sections, code)), len(dwarf.units.offset), "units")
        tables = [Dwarf(sections, code).reader.tables for _ in range(runs)]
        every = np.asarray(dwarf.units.table)
        phases.add("abbreviations", fastest(runs, lambda: tables.pop().compile(every)), len(sections.abbrev), "bytes")
        measure_units(phases, dwarf, runs)
        look_up(phases, image, runs)
    return phases


def measure_units(phases: Phases, dwarf: Dwarf, runs: int) -> None:
    """Add the phases that follow when the units are known."""
    chosen = dwarf.holding_code()
    units, tables = dwarf.units, dwarf.reader.tables

    def walk() -> tuple[int, Nodes, Ranges]:
        nodes, ranges = Nodes(), Ranges()
        return walk_units(dwarf.reader, chosen, nodes, ranges), nodes, ranges

    timed = fastest(runs, walk)
    steps = tables.step
    tables.step = memoryview(np.asarray(steps) & ~np.uint32(SKIPS))
    slow = fastest(1, walk)
    tables.step = steps
    visited, nodes, ranges = phases.add("DIE walk", timed, slow[1][0], "DIEs")
    phases.add("of these visited", timed, visited, "DIEs")
    phases.add("all DIEs visited", slow, slow[1][0], "DIEs")
    lines = phases.add("line programs", timed := fastest(runs, lambda: dwarf.files.read_rows(chosen)))
    phases["line programs"] = (timed[0], lines.tables.emitted, "rows")
    parent, unit = np.asarray(nodes.parent)[: nodes.count], np.asarray(nodes.unit)[: nodes.count]
    begin, end, owner = ranges.arrays()
    live, begin, end = clip_to(begin, end, dwarf.code)
    owner = owner[live]
    claims, problems = dwarf.claims, dwarf.problems
    lines = phases.add("claims of lines", fastest(runs, lambda: claims.cut_lines(lines, problems)))

    def segment() -> tuple[Any, Any, Any]:
        owned = OwnedRanges(begin.copy(), end.copy(), owner.copy())
        return function_segments(owned, parent, unit, lines, claims, problems, Gaps())

    segments = phases.add("segments", fastest(runs, segment), len(begin), "ranges")
    phases.add("rows by vaddr", fastest(runs, lambda: line_rows(lines, segments, unit, claims, problems, Gaps(), None)))
    phases.add("decode, all threads", fastest(runs, dwarf.decode, time.perf_counter), len(units.offset), "units")


def look_up(phases: Phases, image: ElfImage, runs: int) -> None:
    """Add the lookup of random addresses of the code, ascending, with inline chains, in a table that is open."""
    begins, ends = image.code_ranges
    largest = int(np.argmax(ends - begins))
    vaddrs = np.random.default_rng(1).integers(begins[largest], ends[largest], LOOKUPS, np.uint64)
    vaddrs.sort()
    table = Binary([image]).table()
    phases.add("lookup", fastest(runs, lambda: table.lookup(vaddrs)), LOOKUPS, "addresses")


def main() -> None:
    """Measure the files of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="of which the fastest counts (default: 5)")
    parser.add_argument("--json", action="store_true", help="seconds, counts and their units, for programs")
    options = parser.parse_args()
    for path in options.files:
        phases = measure(path, max(1, options.runs))
        if options.json:
            print(json.dumps(phases))
            continue
        print(f"{path} ({path.stat().st_size / 1e6:.0f} MB)")
        for phase, (seconds, count, what) in phases.items():
            rate = f"{count / 1e6:.2f} M {what}: {count / seconds / 1e6:.1f} M/s" if count else ""
            print(f"  {phase:<22}{seconds:8.3f} s   {rate}".rstrip())
        print(f"  peak of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
