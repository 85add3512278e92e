"""Whole runs of symbolize and llvm-symbolizer on the same addresses, alternating, medians and ratios.

    python benchmarks/against_llvm.py BINARY [DEBUG_FILE] [--addresses N] [--runs N] [--llvm COMMAND]

`symbolize` reads a profile and writes a pprof file; llvm-symbolizer reads the addresses and prints JSON. Both
times are those of the whole process, both memories its peak resident set.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from profiles import random_profile, text_vaddrs

import symbolize
from symbolize.elf import ElfImage


class Run(NamedTuple):
    """Wall seconds, CPU seconds and peak memory in MiB of one process."""

    wall: float
    cpu: float
    memory: float


def timed(command: list[str], stdin: Path | None = None) -> Run:
    """Run a command to its end."""
    environment = {key: value for key, value in os.environ.items() if key != "DEBUGINFOD_URLS"}
    with open(stdin or os.devnull, "rb") as source:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed with {process.returncode}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median(runs: list[Run]) -> Run:
    """The median of each figure."""
    return Run(*(statistics.median(column) for column in zip(*runs, strict=True)))


def main() -> None:
    """Parse the arguments, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("debug", type=Path, nargs="?", help="debug file of the binary, if it is a separate one")
    parser.add_argument("--addresses", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--llvm", default="llvm-symbolizer-19")
    options = parser.parse_args()
    debug = options.debug or options.binary
    with tempfile.TemporaryDirectory() as folder, ElfImage.open(options.binary) as image:
        vaddrs = text_vaddrs(image, options.addresses)
        profile, addresses, output = Path(folder, "in.pb.gz"), Path(folder, "addresses"), Path(folder, "out.pb.gz")
        symbolize.write(random_profile(image, vaddrs), profile)
        addresses.write_text("".join(f"{vaddr:#x}\n" for vaddr in vaddrs))
        ours = [sys.executable, "-m", "symbolize", "-q", str(profile), "-o", str(output)]
        ours += ["-b", str(options.binary)] + (["-b", str(options.debug)] if options.debug else [])
        theirs = [options.llvm, f"--obj={debug}", "--output-style=JSON", "--inlines", "--demangle"]
        timed(ours), timed(theirs, addresses)
        runs = [(timed(ours), timed(theirs, addresses)) for _ in range(options.runs)]
    us, them = (median([pair[side] for pair in runs]) for side in (0, 1))
    print(f"{options.binary.name}: {len(vaddrs)} addresses, {options.runs} alternating runs, medians")
    print(f"{'':>18} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9}")
    for name, run in (("symbolize", us), (Path(options.llvm).name, them)):
        print(f"{name:>18} {run.wall:8.2f} {run.cpu:8.2f} {run.memory:9.0f}")
    ratios = (f"{a / b:8.2f}" for a, b in zip(us, them, strict=True))
    print(f"{'ratio':>18} " + " ".join(ratios))


if __name__ == "__main__":
    main()
