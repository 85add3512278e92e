"""Names recordings that are made here, beside the tool that people use for each: `python benchmarks/recordings.py`.

Prints the table of docs/comparison.md: which share of the samples has a named leaf, and how long that took.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from measure import Contender, race  # noqa: E402
from page import seconds, table  # noqa: E402
from peers import OURS, Ours  # noqa: E402

import symbolize  # noqa: E402

PROGRAMS = ROOT / "tests" / "integration" / "recorders"


class Recording(NamedTuple):
    """A recording: what it is, the commands that make it in a folder, its file, and what another tool names it by;
    `named` says of its output which share of the samples has a named leaf."""

    what: str
    commands: Sequence[str]
    file: str
    peer: str
    command: Sequence[str]
    named: Callable[[str], float]


def leaves_of_perf(text: str) -> float:
    """The share of the samples of `perf script` whose leaf has a name."""
    leaves = [sample.strip().split("\n")[0] for sample in text.split("\n\n") if sample.strip()]
    return sum("[unknown]" not in leaf for leaf in leaves) / len(leaves)


def rows_of_pprof(text: str) -> float:
    """The share of the samples in rows of `google-pprof --text` that are no address."""
    rows = [line.split(None, 5) for line in text.splitlines()[1:]]
    named = sum(int(row[0]) for row in rows if not re.match(r"(0x)?[0-9a-f]{8,}$", row[5]))
    return named / sum(int(row[0]) for row in rows)


BUILD = "g++ -O2 -g -o ledger ledger.cc"

PERF_NAMES = ["perf", "script", "-F", "ip,sym"]
GPERFTOOLS = "LD_PRELOAD=libprofiler.so.0 CPUPROFILE=cpu.prof ./ledger"
RECORDINGS = [
    Recording(
        "perf, C++, copies of stacks",
        [BUILD, "perf record -q --call-graph dwarf -o perf.data -- ./ledger"],
        "perf.data",
        "perf script",
        PERF_NAMES,
        leaves_of_perf,
    ),
    Recording(
        "perf, `tar`, frame pointers, kernel",
        ["perf record -q -g -o perf.data -- tar -czf /dev/null /usr/share/doc"],
        "perf.data",
        "perf script",
        PERF_NAMES,
        leaves_of_perf,
    ),
    Recording(
        "gperftools, C++",
        [BUILD, GPERFTOOLS],
        "cpu.prof",
        "google-pprof --text",
        ["google-pprof", "--text", "./ledger", "cpu.prof"],
        rows_of_pprof,
    ),
]


def row(recording: Recording, folder: Path, runs: int, limit: int) -> list[str]:
    """How much of a recording has a name and how long that takes, here and by the other tool."""
    subprocess.run(["cp", "-r", PROGRAMS, folder], check=True)
    for command in recording.commands:
        if subprocess.run(command, shell=True, cwd=folder, capture_output=True, check=False).returncode:
            return [recording.what, f"cannot be recorded here: `{command}`", "", "", "", ""]
    file, out = folder / recording.file, folder / "out.pb.gz"
    ours = Contender(OURS, [*Ours().command, "-q", file, "-o", out, "--local", "--no-cache"])
    words = [str(folder / word) if (folder / word).is_file() else word for word in recording.command]
    if words[0] == "perf":
        words += ["-i", str(file)]
    results = race([ours, Contender(recording.peer, words, keep_output=True)], runs, limit)
    theirs = results[recording.peer]
    named = symbolize.symbolize(file, options=symbolize.Options(local=True)).report.leaf_percent / 100
    cells = [recording.what, f"{named:.1%}", seconds(results[OURS].median()), recording.peer]
    if not theirs.runs:
        return [*cells, theirs.trouble, ""]
    return [*cells, f"{recording.named(theirs.runs[0].output):.1%}", seconds(theirs.median())]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs that count (default: 5)")
    parser.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="for one command (default: 300)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recordings-") as base:
        rows = [
            row(recording, Path(base) / str(number), options.runs, options.limit)
            for number, recording in enumerate(RECORDINGS)
        ]
    print(table(["recording", "named by symbolize:", "time:", "by", "named:", "time:"], rows))


if __name__ == "__main__":
    main()
