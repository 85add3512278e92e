"""Times the index of binaries: the first walk over many files, the next one, and their memory.

    python benchmarks/walk.py [--files N] [--folder DIR]

Each walk runs in a process of its own and answers one question. Files are made in a temporary folder first, copies of a
stripped binary with build ids of their own, a hundred in each folder, and are in the page cache.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "fixtures" / "bin" / "gcc-split" / "stripped" / "libresonance.so"
PER_FOLDER = 100

ASK = """
import resource, sys, time
sys.path.insert(0, sys.argv[3])
import symbolize.binaries.index, sqlite3
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from symbolize.binaries import BinaryIndex
index = BinaryIndex([sys.argv[1]], sys.argv[2])
started, used = time.perf_counter(), time.process_time()
found = index.with_build_id(f"{7:040x}"[::-1])
seconds, cpu = time.perf_counter() - started, time.process_time() - used
assert len(found) == 1, found
print(seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def make_files(folder: Path, count: int) -> None:
    """Make `count` binaries below a folder."""
    from symbolize.elf import read_build_id

    data = MODEL.read_bytes()
    build_id = bytes.fromhex(read_build_id(str(MODEL)) or "")
    at = data.index(build_id)
    for number in range(count):
        path = folder / f"{number // PER_FOLDER:04d}" / f"lib{number:06d}.so"
        path.parent.mkdir(parents=True, exist_ok=True)
        own = bytes.fromhex(f"{number + 1:040x}"[::-1])
        path.write_bytes(data[:at] + own + data[at + len(own) :])


def ask(folder: Path, cache: Path) -> tuple[float, float, int]:
    """Seconds, seconds of CPU and KiB of additional peak memory of one process that asks for one build id."""
    text = subprocess.run(
        [sys.executable, "-c", ASK, str(folder), str(cache), str(ROOT)], capture_output=True, text=True, check=True
    ).stdout
    seconds, cpu, memory = text.split()
    return float(seconds), float(cpu), int(memory)


def main() -> None:
    """Make files, walk, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5, help="runs, of which the fastest is printed")
    parser.add_argument("--folder", help="where to make the files (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as base:
        folder, cache = Path(base) / "binaries", Path(base) / "cache"
        make_files(folder, options.files)
        first = []
        for _ in range(options.runs):
            shutil.rmtree(cache, ignore_errors=True)
            first.append(ask(folder, cache))
        second = [ask(folder, cache) for _ in range(options.runs)]
        size = sum(os.path.getsize(path) for path in cache.rglob("*") if path.is_file())
    for name, runs in (("first walk", first), ("second walk", second)):
        seconds, cpu, memory = (min(run[part] for run in runs) for part in range(3))
        print(
            f"{name}: {seconds:.3f} s ({options.files / seconds:,.0f} files a second), {cpu:.3f} s of CPU "
            f"({options.files / cpu:,.0f} files a second), {memory / 1024:.1f} MiB of memory in addition"
        )
    print(f"database: {size / 1e6:.1f} MB, {size / options.files:.0f} bytes a file")


if __name__ == "__main__":
    main()
