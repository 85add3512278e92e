"""Compares symbolize with its peers on the same inputs: names of addresses, and of recordings made here.

python benchmarks/compare.py [--runs N] [--binaries NAME...] [--file NAME=BINARY[,DEBUG]] [--peers-python PYTHON]

Prints the tables of docs/comparison.md. What is missing (a peer, a binary, the right to record) is left out and said.
`python3 -m venv DIR && DIR/bin/pip install symbolic` makes a Python for --peers-python.
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

import peers as p  # noqa: E402
from agreement import ENGINES, compare, share  # noqa: E402
from bench import Bench  # noqa: E402
from measure import Contender  # noqa: E402
from page import mib, ratio, seconds, table  # noqa: E402
from peers import Ours, Peers, output_of  # noqa: E402
from subjects import KNOWN, find_subjects  # noqa: E402

import symbolize  # noqa: E402

COUNTS = (10_000, 100)
"""Addresses that are asked at once."""
CONTENDERS = (p.NEWEST_GIMLI, p.GIMLI, p.LLVM, p.GNU)
"""What reads a binary as symbolize does without a cache."""
VOTERS = [name for name in ENGINES if name != p.ELFUTILS]
"""The engines whose answers are counted; eu-addr2line is asked for few addresses."""
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


def names_of_binaries(bench: Bench, addresses: int) -> list[str]:
    """The tables of costs and of agreement."""
    costs, agreement = [], []
    for subject in bench.subjects:
        for count in COUNTS:
            results = bench.cold(subject, count, CONTENDERS)
            ours = results[p.OURS]
            cells = [f"{seconds(ours.median())}, {mib(ours.median('memory'))}"]
            for name in CONTENDERS:
                other = results.get(name)
                if other is None or not other.runs:
                    cells.append(other.trouble if other else "")
                    continue
                of_ours = ratio(ours.median(), other.median())
                cells.append(f"{seconds(other.median())}, {mib(other.median('memory'))} ({of_ours})")
            costs.append([subject.key, f"{count:,}", *cells])
        found = compare(subject, bench.peers, bench.folder, addresses, addresses // 50, bench.limit)
        engines = [share(found.whole[e], found.asked[e]) or found.troubles.get(e, "") for e in VOTERS]
        agreement.append([subject.key, f"{found.addresses:,}", share(found.whole[p.OURS], found.addresses), *engines])
    return [
        table(["binary", "addresses:", f"{p.OURS}:", *(f"{name}:" for name in CONTENDERS)], costs),
        table(["binary", "addresses:", f"{p.OURS}:", *(f"{name}:" for name in VOTERS)], agreement),
    ]


def names_of_recordings(bench: Bench) -> str:
    """The table of recordings that are made here, each named where it was recorded."""
    rows = []
    for number, recording in enumerate(RECORDINGS):
        folder = bench.folder / f"recording-{number}"
        subprocess.run(["cp", "-r", PROGRAMS, folder], check=True)
        for command in recording.commands:
            with (folder / "printed").open("w") as printed:
                done = subprocess.run(command, shell=True, cwd=folder, stdout=printed, stderr=printed, check=False)
            if done.returncode:
                rows.append([recording.what, f"cannot be recorded here: `{command}`", "", "", "", ""])
                break
        else:
            rows.append(row_of(bench, recording, folder))
    return table(["recording", "named by symbolize:", "time:", "by", "named:", "time:"], rows)


def row_of(bench: Bench, recording: Recording, folder: Path) -> list[str]:
    """How much of a recording has a name and how long that takes, here and by the other tool."""
    file, out = folder / recording.file, folder / "out.pb.gz"
    ours = Contender(p.OURS, [*bench.ours.command, "-q", file, "-o", out, "--local", "--no-cache"])
    words = [str(folder / word) if (folder / word).is_file() else word for word in recording.command]
    if words[0] == "perf":
        words += ["-i", str(file)]
    results = bench.race([ours, Contender(recording.peer, words, keep_output=True)])
    theirs = results[recording.peer]
    named = (
        symbolize.symbolize(file, options=symbolize.Options(local=True)).report.leaf_percent / 100
        if results[p.OURS].runs
        else 0.0
    )
    cells = [recording.what, f"{named:.1%}", seconds(results[p.OURS].median()), recording.peer]
    if not theirs.runs:
        return [*cells, theirs.trouble, ""]
    return [*cells, f"{recording.named(theirs.runs[0].output):.1%}", seconds(theirs.median())]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs that count (default: 5)")
    parser.add_argument("--addresses", type=int, default=20_000, metavar="N", help="whose answers are compared")
    parser.add_argument("--binaries", nargs="+", metavar="NAME", help=f"of these only: {', '.join(KNOWN)}, or a --file")
    parser.add_argument("--file", action="append", default=[], metavar="NAME=BINARY[,DEBUG]", help="another binary")
    parser.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="for one command (default: 300)")
    parser.add_argument("--llvm", default="19", metavar="VERSION", help="of llvm-symbolizer (default: 19)")
    parser.add_argument("--peers-python", type=Path, metavar="PYTHON", help="a Python with the package symbolic")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "benchmarks", help="for programs that are built")
    options = parser.parse_args()
    given = {
        name: list(map(Path, files.split(","))) for name, _, files in (text.partition("=") for text in options.file)
    }
    work = options.work.resolve()
    subjects, missing = find_subjects(work, given)
    subjects = [each for each in subjects if not options.binaries or each.key in options.binaries]
    peers = Peers.find(options.llvm, options.peers_python, work)
    with tempfile.TemporaryDirectory(prefix="comparison-") as folder:
        bench = Bench(subjects, peers, Ours(), Path(folder), options.runs, options.limit, quick=True)
        parts = [*names_of_binaries(bench, options.addresses), names_of_recordings(bench)]
    others = {"perf": output_of("perf", "--version"), "go": output_of("go", "version")}
    versions = {**peers.versions(), **{name: text.strip() for name, text in others.items()}}
    print("\n\n".join(["; ".join(f"{name} {text}" for name, text in versions.items()), *parts]))
    for name, why in missing.items():
        print(f"{name}: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
