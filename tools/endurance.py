"""A long trial of the batch command: `python tools/endurance.py FOLDER [--good N] [--poison N] [--kills N]`.

Poison of every kind among good profiles, with kills of the whole process group in between: each bad input has to end in
quarantine for its reason, each good one with the output that the single command makes. Prints what was wrong; the exit
code says whether anything was.
"""

import argparse
import collections
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from symbolize.cli import main as symbolize  # noqa: E402
from tests.support.batch_runs import GPERFTOOLS, copies, kill_group, members, outputs, polling, start  # noqa: E402
from tests.support.fixture_files import BINARIES  # noqa: E402
from tests.support.poison import MEMORY, REASONS, Saboteur, write_poison  # noqa: E402

BINS = ["-b", str(BINARIES / "gcc-split"), "-b", str(BINARIES / "clang-pie")]
GOOD = [GPERFTOOLS / "ledger-gcc-split.prof", GPERFTOOLS / "spectra-clang-pie.prof"]
LIMITS = ["--time-limit", "4", "--memory-limit", str(MEMORY), "--attempts", "2", "--no-cache", "--jobs", "2"]
ACTED_ON_IN_TIME = "gone", "fifo"
"""Kinds that somebody has to make bad at the right moment, which the tests do."""


def main() -> None:
    """Run the trial."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="an empty folder")
    parser.add_argument("--good", type=int, default=500, help="good profiles")
    parser.add_argument("--poison", type=int, default=10, help="bad inputs of each kind")
    parser.add_argument("--kills", type=int, default=5, help="how often the job is killed and started again")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    inputs, out, choose = folder / "in", folder / "out", random.Random(options.seed)
    for number in range(options.good):
        copies(GOOD[number % 2], inputs, [f"{choose.randrange(1000):03}-good{number}.prof"])
    reasons: dict[str, str] = {}
    paths: dict[str, list[Path]] = collections.defaultdict(list)
    for kind in set(REASONS) - {*ACTED_ON_IN_TIME}:
        for number in range(options.poison):
            name = f"{choose.randrange(1000):03}-{kind}{number}"
            paths[kind].append(write_poison(inputs, kind, name, number))
            reasons[name] = REASONS[kind]
    wanted = []
    for path in GOOD:
        symbolize([str(path), *BINS, "-q", "--no-cache", "-o", str(folder / "single.pb.gz")])
        wanted.append((folder / "single.pb.gz").read_bytes())
    saboteur = Saboteur(paths["killer"], paths["hanging"])
    saboteur.start()
    began = time.monotonic()
    code = None
    with polling(out) as poller:
        for left in range(options.kills, -1, -1):
            log = (folder / "log.txt").open("a")
            batch = start(inputs, *BINS, "--out", out, *LIMITS, log=log)
            saboteur.group = batch.pid
            with suppress(subprocess.TimeoutExpired):
                batch.wait(choose.uniform(1, 8) if left else None)
            if batch.poll() is None:
                print(f"killed after {time.monotonic() - began:.0f} s, {len(outputs(out))} outputs")
            code = batch.poll()
            kill_group(batch)
    saboteur.stop()
    wrong = [f"exit code {code}"] * (code != 4) + poller.bad
    with closing(sqlite3.connect(out / ".symbolize" / "manifest.sqlite")) as base:
        found = {Path(uri).name: reason for uri, reason in base.execute("SELECT uri, reason FROM inputs")}
    wrong += [
        f"{name}: {found.get(name)!r} is not {reasons.get(name, '')!r}"
        for name in sorted({*found, *reasons})
        if found.get(name, "?") != reasons.get(name, "")
    ]
    made = outputs(out)
    for name in sorted(path.name for path in inputs.iterdir() if path.name not in reasons):
        number = int(name.removesuffix(".prof").rpartition("good")[2])
        if made.pop(name.removesuffix(".prof") + ".pb.gz", b"") != wanted[number % 2]:
            wrong.append(f"{name}: not what the single command makes")
    wrong += [f"{name}: nobody asked for it" for name in made]
    print(*wrong, sep="\n")
    print(f"{len(found)} inputs, {len(reasons)} of them bad, {len(wrong)} wrong, {time.monotonic() - began:.0f} s")
    assert not members(batch.pid)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
