"""Replaces, rewrites, truncates and removes binaries and kept tables at random moments of a run.

python -m tools.fuzz.replaced [--count N] [--first SEED] [--folder FOLDER]

A seed says the command (three profiles of different binaries, or a batch of two workers over six), the cache, what
becomes of which file, and when. No process may end by a signal; the profiles of other binaries have the bytes of an
undisturbed run, those of the hit one these too, or no name that an undisturbed run does not have; the exit code is 1 if
names are missing, unless the file had been replaced before anybody looked at it; and when the file is back, the next
run makes what an undisturbed one does. Needs gcc.
"""

import argparse
import collections
import gzip
import importlib
import json
import multiprocessing
import os
import pkgutil
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from symbolize.cli import main
from symbolize.symbols import DamagedTable, read_table
from tests.support.messages import profile_pb2
from tests.support.pprof_writer import Mapping, Place, profile

FUNCTIONS = 8_000
BINARIES = 3
PROFILES_OF_EACH = 2
ABSENT = {"not-found", "build-id-differs", "unreadable", "misfit"}
"""Reasons of a file that was another one, or none, when it was looked at first."""
FAILED = {"changed", "read-failed"}
SECONDS = 600.0


def source(number: int) -> Iterator[str]:
    """A program of many functions with inlined calls, another one for each number."""
    yield f"volatile long sink = {number};\nstruct pair {{ long a; long b; }};\n"
    for i in range(FUNCTIONS):
        yield (
            f"static inline __attribute__((always_inline)) long in{number}_{i}(struct pair *p, long v) {{\n"
            f"  long w = v * {i + 3};\n  p->a += w; sink += p->b;\n  return w ^ {i + number};\n}}\n"
            f"long f{number}_{i}(struct pair *p, long v) {{\n"
            f"  long r = in{number}_{i}(p, v + {number});\n  sink = r;\n  return r + p->a;\n}}\n"
        )
    yield "int main(void) { return 0; }\n"


def build(folder: Path, number: int) -> Path:
    """A binary with much debug information."""
    path = folder / "sound" / f"app{number}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        code = folder / f"app{number}.c"
        code.write_text("".join(source(number)))
        unfinished = path.with_suffix(".new")
        arguments = ["gcc", "-O0", "-g", "-no-pie", "-Wl,--build-id=sha1", "-o", str(unfinished), str(code)]
        subprocess.run(arguments, check=True)
        os.utime(unfinished, ns=(10**18, 10**18))
        unfinished.rename(path)
    return path


def profile_of(path: Path, every: int) -> bytes:
    """A profile with an address in one of `every` functions of a binary."""
    with path.open("rb") as file:
        elf: Any = ELFFile(file)
        notes = elf.get_section_by_name(".note.gnu.build-id")
        build_id = next(notes.iter_notes())["n_desc"]
        code = next(segment for segment in elf.iter_segments("PT_LOAD") if segment["p_flags"] & 1)
        begin, offset = code["p_vaddr"], code["p_offset"]
        found = (symbol["st_value"] for symbol in elf.get_section_by_name(".symtab").iter_symbols())
        functions = sorted({vaddr for vaddr in found if begin <= vaddr < begin + code["p_memsz"]})
    limit = begin + (code["p_memsz"] + 4095) // 4096 * 4096
    mappings = [Mapping(begin, limit, offset, f"/opt/{path.name}", build_id)]
    return gzip.compress(profile(mappings, [([Place(vaddr + 8, 1)], [1]) for vaddr in functions[::every]]), mtime=0)


def names(data: bytes) -> dict[int, list[tuple[str, str, int]]]:
    """The frames at each address of a profile that have names."""
    message: Any = profile_pb2.Profile.FromString(gzip.decompress(data))
    text = message.string_table
    functions = {each.id: (text[each.name], text[each.filename]) for each in message.function}
    return {
        location.address: [(*functions[line.function_id], line.line) for line in location.line]
        for location in message.location
        if location.line
    }


def put(sound: Path, path: Path) -> None:
    """Put a file back under its name, as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".back")
    shutil.copy2(sound, new)
    new.rename(path)


def replace(path: Path, other: bytes) -> None:
    """Another build under the same name, as installers do."""
    new = path.with_suffix(".other")
    new.write_bytes(other)
    new.rename(path)


def rewrite(path: Path, other: bytes) -> None:
    """The bytes of another build in place."""
    with path.open("r+b") as file:
        file.write(other)
        file.truncate()


HARM: dict[str, Callable[[Path, bytes], object]] = {
    "replaced": replace,
    "rewritten": rewrite,
    "rewritten, same size": lambda path, other: rewrite(path, other[: path.stat().st_size].ljust(path.stat().st_size)),
    "truncated to nothing": lambda path, _: os.truncate(path, 0),
    "truncated to a page": lambda path, _: os.truncate(path, 4096),
    "truncated to half": lambda path, _: os.truncate(path, path.stat().st_size // 2),
    "removed": lambda path, _: path.unlink(),
}
CACHES = "none", "empty", "warm"


FORK = multiprocessing.get_context("fork")
"""Commands are forked from a process that has imported what they need, so that moments fall into what they do."""


def import_all() -> None:
    """Import what commands import when they need it."""
    for name in ("cli", "dwarf", "elf", "listings", "load", "names", "report", "symbols", "write"):
        package = importlib.import_module(f"symbolize.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"symbolize.{name}."):
            importlib.import_module(module.name)


def run_command(arguments: list[str], log: Path) -> None:
    """The command, as a process of its own."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.exit(main(arguments))


class Run:
    """A folder with binaries, profiles and what undisturbed runs make of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sound = [build(folder, number) for number in range(BINARIES)]
        self.bins = folder / "bin"
        self.bytes = [path.read_bytes() for path in self.sound]
        self.profiles: list[list[Path]] = []
        for number, path in enumerate(self.sound):
            self.profiles.append([])
            for copy in range(PROFILES_OF_EACH):
                made = folder / "in" / f"p{number}-{copy}.pb.gz"
                made.parent.mkdir(exist_ok=True)
                made.write_bytes(profile_of(path, 2 + copy))
                self.profiles[-1].append(made)
        self.restore()
        self.undisturbed: dict[str, bytes] = {}
        self.seconds: dict[tuple[str, str], float] = {}
        shutil.rmtree(folder / "warm", ignore_errors=True)
        for mode in ("single", "batch"):
            for cache in ("none", "empty", "warm", "warm"):
                began = time.monotonic()
                code, _ = self.finish(self.start(mode, cache))
                self.seconds[mode, cache] = time.monotonic() - began
                assert code == 0, (mode, cache, code, (self.folder / "log").read_text())
                made = self.outputs()
                self.undisturbed |= {name: made[name] for name in made if name not in self.undisturbed}
                assert made.items() <= self.undisturbed.items(), (mode, cache)
        self.tables = {path: path.read_bytes() for path in (folder / "warm").rglob("*.symtab")}

    def restore(self) -> None:
        """Put all binaries back."""
        for path in self.sound:
            put(path, self.bins / path.name)

    def restore_tables(self) -> list[Path]:
        """Put all kept tables back. One that is not what it was has to be damaged, and known as that."""
        for path, data in self.tables.items():
            if not path.exists() or path.read_bytes() != data:
                with suppress(OSError, DamagedTable):
                    read_table(str(path))
                    raise AssertionError(f"{path}: is believed, and not what it was")
                path.write_bytes(data)
        return sorted(self.tables)

    def start(self, mode: str, cache: str, *more: str, is_anew: bool = True) -> BaseProcess:
        """A run, without outputs and cache of earlier ones, unless it goes on with them."""
        self.mode, out = mode, self.folder / "out"
        if is_anew:
            shutil.rmtree(out, ignore_errors=True)
            shutil.rmtree(self.folder / "empty", ignore_errors=True)
        out.mkdir(exist_ok=True)
        options = ["--binaries", str(self.bins), "--report", "json"]
        options += ["--no-cache"] if cache == "none" else ["--cache", str(self.folder / cache)]
        if mode == "single":
            arguments = [*(str(each[0]) for each in self.profiles), *options, "-o", str(out)]
        else:
            report = ["--report-file", str(self.folder / "report")]
            arguments = ["batch", str(self.folder / "in"), *options, *report, "--out", str(out), "-j", "2", *more]
        process = FORK.Process(target=run_command, args=(arguments, self.folder / "log"))
        process.start()
        return process

    def finish(self, process: BaseProcess) -> tuple[int | None, dict[str, set[str]]]:
        """The exit code of a run, and the reasons of what it missed, by profile."""
        process.join(SECONDS)
        code = process.exitcode
        reasons: dict[str, set[str]] = collections.defaultdict(set)
        if self.mode == "single":
            lines = (self.folder / "log").read_text().splitlines()
            reports = [json.loads(line) for line in lines if line.startswith("{")]
        else:
            path = self.folder / "report"
            reports = json.loads(path.read_text())["profiles"] if path.exists() else []
        for report in reports:
            name = Path(report.get("profile") or report.get("input")).name
            for output in report.get("outputs", [report]):
                for mapping in output["mappings"]:
                    reasons[name] |= {miss["reason"] for miss in mapping["misses"]}
        return code, reasons

    def outputs(self) -> dict[str, bytes]:
        """What was written, by the names of the profiles."""
        found = (self.folder / "out").glob("*.pb.gz")
        return {path.name.replace(".symbolized", ""): path.read_bytes() for path in found}


def trial(run: Run, seed: int, tally: "collections.Counter[str]") -> list[str]:
    """One moment; what was wrong."""
    chance = random.Random(seed)
    mode, cache = chance.choice(("single", "single", "batch")), chance.choice(CACHES)
    number, how = chance.randrange(BINARIES), chance.choice(list(HARM))
    of_table = cache == "warm" and chance.random() < 0.4
    moment = chance.random() * 1.05 * run.seconds[mode, cache]
    run.restore()
    tables = run.restore_tables()
    victim = chance.choice(tables) if of_table else run.bins / f"app{number}"
    other = run.bytes[(number + 1) % BINARIES] if not of_table else run.tables[tables[0]][::-1]
    began = time.monotonic()
    process = run.start(mode, cache)
    time.sleep(moment)
    was_over = process.exitcode is not None
    if victim.exists():
        HARM[how](victim, other)
    code, reasons = run.finish(process)
    run.seconds[mode, cache] = (run.seconds[mode, cache] + time.monotonic() - began) / 2  # others may have come or gone
    made, wrong = run.outputs(), []
    what = f"{'table' if of_table else 'binary'} {how}, {mode}, cache {cache}, after {moment:.2f} s"
    log = (run.folder / "log").read_text()
    if code not in (0, 1) or "Traceback" in log:
        wrong.append(f"exit code {code}: {log[-2000:]}")
    # A table that changes when its names are written into the profile is too late to be made anew.
    hit = {path.name for group in (run.profiles if of_table else [run.profiles[number]]) for path in group}
    wanted = {each.name for group in run.profiles for each in (group[:1] if mode == "single" else group)}
    lacking: set[str] = set()
    for name in sorted(wanted):
        if name not in made:
            wrong.append(f"{name}: was not written")
        elif made[name] != run.undisturbed[name]:
            lacking.add(name)
            if name not in hit:
                wrong.append(f"{name}: is of another binary, and not what an undisturbed run makes")
            elif not names(made[name]).items() <= names(run.undisturbed[name]).items():
                wrong.append(f"{name}: has wrong names")
    failed = {name for name in lacking if reasons[name] & FAILED}
    if failed and code != 1:
        wrong.append(f"exit code {code}, though {sorted(failed)} failed")
    if lacking - failed and of_table:
        wrong.append(f"{sorted(lacking)} lack names because of a kept table")
    if not failed and lacking and not all(reasons[name] & ABSENT for name in lacking):
        wrong.append(f"{sorted(lacking)} lack names because of {[sorted(reasons[name]) for name in sorted(lacking)]}")
    if not lacking and code == 1 and how == "replaced":
        wrong.append("exit code 1 without anything missing")
    outcome = "over" if was_over else "failed" if failed else "absent" if lacking else "code 1" if code else "unhurt"
    tally[f"{mode}: {outcome}"] += 1
    tally["after the run, or without effect" if outcome in ("over", "unhurt") else "in time"] += 1
    run.restore()
    is_absent = bool(lacking - failed)
    again = run.start(mode, cache, *(["--again"] if is_absent and mode == "batch" else []), is_anew=False)
    code, reasons = run.finish(again)
    if code != 0:
        wrong.append(f"exit code {code} of the next run: {(run.folder / 'log').read_text()[-2000:]}")
    if run.outputs() != {name: run.undisturbed[name] for name in wanted}:
        wrong.append("the next run does not make what an undisturbed one does")
    if is_absent and mode == "batch":
        tally["batch: next run with --again"] += 1
    return [f"{seed} {what}: {each}" for each in wrong]


def campaign() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where binaries and outputs go (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        import_all()
        os.environ["XDG_CACHE_HOME"] = str(folder / "home")
        run = Run(folder)
        print({" ".join(key): round(seconds, 2) for key, seconds in run.seconds.items()}, flush=True)
        tally: collections.Counter[str] = collections.Counter()
        found: list[str] = []
        for seed in range(options.first, options.first + options.count):
            wrong = trial(run, seed, tally)
            found += wrong
            for text in wrong:
                print(text, flush=True)
            if (seed - options.first) % 20 == 19:
                print(f"after {seed - options.first + 1}: {dict(sorted(tally.items()))}", flush=True)
        print(f"{options.count} moments, {len(found)} findings; {dict(sorted(tally.items()))}")
    sys.exit(bool(found))


if __name__ == "__main__":
    campaign()
