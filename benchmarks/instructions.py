"""Counts the instructions of fixed tasks, and says which take 3 % more or less than in another record.

    python benchmarks/instructions.py take FILE [TASK...]
    python benchmarks/instructions.py compare OLD NEW

The time that something takes on a machine with other work moves by 5 % by itself, instructions by less than 0.5 %. They
are those of `valgrind --tool=callgrind`; what a process does before its first task is subtracted. Records of other
machines, interpreters or libraries are not comparable.
"""

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import symbolize
from symbolize.formats import load
from symbolize.formats.outputs import OUTPUTS
from symbolize.profile import Profile

FIXTURES = Path(__file__).parent.parent / "fixtures"
BINARIES = FIXTURES / "bin"
LOADED = {
    "gperftools": "profiles/gperftools/ledger-gcc-pie.prof",
    "pprof": "profiles/perf/spectra-gcc-pie.pb.gz",
    "otlp": "profiles/otlp/spectra-gcc-pie.otlp",
    "perf-data": "profiles/perf_data/threads.data/data",
    "perf-dwarf": "profiles/perf_data/dwarf.data",
    "simpleperf": "simpleperf/mixer.proto",
    "perf-script": "legacy/plain.perf-script",
    "heap": "legacy/profiler.heap",
    "go": "legacy/goroutine.txt",
}
"""An input of each loader."""
NAMED = FIXTURES / LOADED["gperftools"]
SHARED_CODE = FIXTURES / "profiles/callers/gcc-lld.prof"
UNPROVED = FIXTURES / "profiles/perf/ledger-clang-nopie-dwarf4-lld.pb.gz"
REPEATS, REPEATS_OF_SMALL = 3, 60
"""How often a task is done for its count: loading and writing take less than what start-up varies by."""
LIMIT = 0.03
"""Share of a change that is told of."""
COLLECTED = re.compile(rb"Collected : (\d+)")


def named(profile: Path, cache: str | None = None) -> symbolize.Result:
    """The result for a profile, by a symbolizer of its own."""
    with symbolize.Symbolizer([BINARIES], cache=cache) as symbolizer:
        return symbolizer.symbolize(load(profile))


def tasks() -> dict[str, Callable[[], object]]:
    """What is counted, by name: each loader, lookups without and with kept tables, where builds have to be judged and
    calls weighed, and each output."""
    found: dict[str, Callable[[], object]] = {f"load {name}": partial(load, FIXTURES / LOADED[name]) for name in LOADED}
    found |= {
        "cold": partial(named, NAMED),
        "warm": warm,
        "inlined": partial(named, FIXTURES / LOADED["pprof"]),
        "judge": partial(named, UNPROVED),
        "shared code": partial(named, SHARED_CODE),
    }
    found |= {f"write {output.name}": partial(write, output.name) for output in OUTPUTS}
    return found


def warm() -> object:
    """A lookup with kept tables."""
    return named(NAMED, os.environ["TABLES"])


def write(name: str) -> object:
    """An output of a profile with names."""
    symbolize.write(profile_with_names(), io.BytesIO(), emit=name)
    return None


@cache
def profile_with_names() -> Profile:
    """A profile to write."""
    return named(FIXTURES / LOADED["pprof"]).profile


def count(task: str, folder: str) -> int:
    """How many instructions a task takes, once what is done before was done."""
    repeats = REPEATS_OF_SMALL if task.startswith(("load ", "write ")) else REPEATS
    few, many = (collected([sys.executable, __file__, "run", task, str(n)], folder) for n in (1, 1 + repeats))
    return (many - few) // repeats


def collected(command: list[str], folder: str) -> int:
    """The instructions of a command."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "TABLES": folder, "HOME": folder}
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.devnull}"]
    done = subprocess.run([*valgrind, *command], capture_output=True, env=environment, check=False)
    match = COLLECTED.search(done.stderr)
    if done.returncode or match is None:
        sys.exit(f"{' '.join(command)}: {done.stderr.decode(errors='replace')[-2000:]}")
    return int(match[1])


def take(target: Path, names: list[str]) -> int:
    """Count the instructions of tasks, of all if none is named, and of a whole small command."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        named(NAMED, folder)
        counts = dict(zip(names, pool.map(partial(count, folder=folder), names), strict=True))
        command = [sys.executable, "-m", "symbolize", str(NAMED), "-b", str(BINARIES), "-q", "-o", os.devnull]
        counts["command"] = collected(command, folder)
    target.write_text(json.dumps(counts, indent=1) + "\n")
    for name, instructions in counts.items():
        print(f"{instructions / 1e6:12,.1f} million  {name}")
    return 0


def changes(old: dict[str, int], new: dict[str, int]) -> Iterator[str]:
    """The tasks that changed, a line each."""
    for name in sorted(old.keys() & new.keys(), key=lambda name: -abs(new[name] / max(old[name], 1) - 1)):
        if abs(change := new[name] / max(old[name], 1) - 1) > LIMIT:
            yield f"{change:+8.1%}  {name}: {old[name] / 1e6:,.1f} -> {new[name] / 1e6:,.1f} million instructions"


def compare(old: Path, new: Path) -> int:
    """List what changed; 1 if anything takes more."""
    records = [json.loads(path.read_text()) for path in (old, new)]
    lines = list(changes(*records))
    print("\n".join(lines) or "nothing changed by more than 3 %")
    return int(any(line.lstrip().startswith("+") for line in lines))


def main() -> int:
    """Count, compare, or do a task so many times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    taking = commands.add_parser("take")
    taking.add_argument("file", type=Path)
    taking.add_argument("tasks", nargs="*", choices=[*tasks(), []])
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    running = commands.add_parser("run")
    running.add_argument("task", choices=tasks())
    running.add_argument("times", type=int)
    options = parser.parse_args()
    if options.command == "take":
        return take(options.file, options.tasks or list(tasks()))
    if options.command == "compare":
        return compare(options.old, options.new)
    for _ in range(options.times):
        tasks()[options.task]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
