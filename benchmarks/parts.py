"""What run.py measures: each part is a table, with the goals of its figures."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import peers as p
from measure import Contender, Failed, Result, race, run_once
from page import Goal, Part, mib, ratio, seconds, size
from peers import Ours, Peers
from subjects import RECORDINGS, Subject, large_program, recorded

from symbolize.elf import read_build_id

ROOT = Path(__file__).resolve().parents[1]
PROFILE, BINARIES = ROOT / "fixtures/profiles/gperftools/ledger-gcc-pie.prof", ROOT / "fixtures/bin/gcc-pie"
"""Those of the README's command."""
LIBRARY = ROOT / "fixtures/bin/gcc-split/stripped/libresonance.so"
LIBRARIES, OTHERS = 10_000, 11
"""Copies of it in the folder whose index is large, and empty files beside each."""
RIVALS = (p.NEWEST_GIMLI, p.GIMLI, p.LLVM)
COSTS = (f"{p.OURS}:", "CPU:", "peak:", *(word for name in RIVALS for word in (f"{name}:", "peak:")))
RATIOS = ("wall ratio:", "CPU ratio:", "peak ratio:")
LARGE = ("libjvm", "libjvm-zlib", "vmlinux", "ceph-mon")
"""Binaries with more than 200 MB of debug information."""
GOALS: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("libjvm", "10,000"): (0.65, 0.75, 0.9),
    ("libjvm", "10,000, one processor"): (1.0,),
    ("libjvm", "100"): (0.85,),
    ("libjvm-zlib", "10,000"): (0.45, None, 0.75),
    ("libjvm-zlib", "100"): (0.5,),
}
"""Ratios of wall, CPU and peak to the newest gimli."""


@dataclass
class Bench:
    """What all parts share: subjects, commands, how often and how long, a folder for files and one for programs."""

    subjects: Sequence[Subject]
    peers: Peers
    ours: Ours
    folder: Path
    work: Path
    runs: int
    limit: int

    def race(self, contenders: Sequence[Contender], runs: int = 0) -> dict[str, Result]:
        """Run contenders in turn."""
        return race(contenders, runs or self.runs, self.limit)

    def once(self, contender: Contender) -> str:
        """What a command prints; it is run for what it leaves, and if it fails, that will be missing."""
        try:
            return run_once(contender, self.limit).output
        except Failed as failure:
            print(f"{contender.name}: {failure}", file=sys.stderr)
            return ""

    def chosen(self, *keys: str) -> list[Subject]:
        """The subjects with these names."""
        return [subject for subject in self.subjects if subject.key in keys]

    @property
    def with_debug_information(self) -> list[Subject]:
        """The subjects that have some."""
        return [subject for subject in self.subjects if subject.debug_bytes]

    @property
    def output(self) -> Path:
        """Where results go."""
        return self.folder / "out.pb.gz"


def against(bench: Bench, subject: Subject, profile: Path, addresses: Path, bound: Sequence[str] = ()) -> list[Result]:
    """symbolize without a cache and RIVALS over the same addresses, each behind the words of `bound`."""
    able = RIVALS if subject.debug_bytes else (p.LLVM,)
    contenders = [bench.ours.lookup(subject, profile, bench.output), *bench.peers.lookups(subject, addresses, able)]
    results = bench.race([replace(each, command=[*bound, *each.command]) for each in contenders])
    return [results.get(name, Result(name)) for name in (p.OURS, *RIVALS)]


def cells(results: Sequence[Result]) -> list[str]:
    """The cells of COSTS and RATIOS."""
    ours, *others = results
    first = next((each for each in others if each.runs), Result(""))
    found = [seconds(ours.median()), seconds(ours.median("cpu")), mib(ours.median("memory"))]
    for each in others:
        found += [each.trouble or seconds(each.median()), mib(each.median("memory"))]
    return [*found, *(ratio(ours.median(figure), first.median(figure)) for figure in ("wall", "cpu", "memory"))]


def cold(bench: Bench) -> Part:
    """Whole commands without a cache."""
    part = Part(
        "Cold: without a cache",
        "Whole commands including start-up. symbolize reads a pprof profile of random `.text` addresses and writes a "
        "symbolized one; the others read the addresses and print functions, lines and inline frames; llvm-symbolizer "
        "demangles too. Ratios are to the newest gimli.",
        ("binary", "addresses", *COSTS, *RATIOS),
    )
    one = ["taskset", "-c", "0"]
    for subject in bench.with_debug_information:
        ways = [("10,000", 10_000, []), ("100", 100, [])]
        for label, count, bound in [*ways, *[("10,000, one processor", 10_000, one)][: subject.key in LARGE]]:
            profile, addresses, _ = subject.inputs(bench.folder, count)
            results = against(bench, subject, profile, addresses, bound)
            part.rows.append([subject.key, label, *cells(results)])
            ours, newest, *_ = results
            limits = GOALS.get((subject.key, label), ())
            for limit, figure in zip(limits, ("wall", "cpu", "memory"), strict=False):
                if limit is None:
                    continue
                figures = ours.median(figure), newest.median(figure)
                what = f"cold, {subject.key}, {label}: {figure} to the newest gimli"
                part.goals.append(Goal(what, figures[0] / figures[1], limit))
    return part


def stacks(bench: Bench) -> Part:
    """The same over real stacks."""
    part = Part(
        "Real stacks",
        "The same with recordings that perf made here, of the frames in the one binary: stacks and distinct addresses. "
        "Those of the kernel are of this machine's, put into the functions of the same names. gimli reads no symbols: "
        "without debug information ratios are to llvm-symbolizer.",
        ("binary", "stacks:", "addresses:", *COSTS, *RATIOS),
    )
    for subject in bench.chosen(*RECORDINGS):
        found = recorded(subject, bench.folder, bench.work)
        if isinstance(found, str):
            part.missing.append(f"{subject.key}: {found}")
            continue
        profile, addresses, samples, distinct = found
        row = cells(against(bench, subject, profile, addresses))
        part.rows.append([subject.key, f"{samples:,}", f"{distinct:,}", *row])
    return part


def first(bench: Bench) -> Part:
    """The default first run and the second, and what they cost together."""
    part = Part(
        "First and second run",
        "10,000 addresses with the default cache: empty, where the time is that until the command returns, that until "
        "all it left behind has ended, and the CPU of both; then filled.",
        ("binary", "no cache:", "CPU:", "first:", "ended:", "CPU:", "second:", "CPU:", "peak:", "first to no cache:"),
    )
    for subject in bench.chosen(*LARGE):
        profile, _, _ = subject.inputs(bench.folder, 10_000)
        home = bench.folder / f"home-{subject.key}"
        plain = bench.ours.lookup(subject, profile, bench.output)
        empty = bench.ours.lookup(subject, profile, bench.output, home, "first")
        empty = replace(empty, before=lambda home=home: shutil.rmtree(home, ignore_errors=True))  # type: ignore[misc]
        results = bench.race([plain, empty])
        results |= bench.race([bench.ours.lookup(subject, profile, bench.output, home, "second")])
        none, one, two = results[p.OURS], results["first"], results["second"]
        found = [seconds(none.median()), seconds(none.median("cpu")), seconds(one.median())]
        found += [seconds(one.median("ended")), seconds(one.median("cpu")), seconds(two.median())]
        found += [seconds(two.median("cpu")), mib(two.median("memory"))]
        part.rows.append([subject.key, *found, ratio(one.median(), none.median())])
        if subject.key == "libjvm-zlib":
            part.goals.append(Goal("first run, libjvm-zlib: wall to no cache", one.median() / none.median(), 1.15))
            part.goals.append(Goal("second run, libjvm-zlib: wall", two.median(), 0.17, "s"))
    return part


def small(bench: Bench) -> Part:
    """Small jobs, alone and beside a large index."""
    files = LIBRARIES * (1 + OTHERS)
    part = Part(
        "Small jobs",
        f"The README's profile with the default cache filled, and an index of a folder with {files:,} files, "
        f"{LIBRARIES:,} of them stripped libraries. A profile more is what a batch of one worker takes for each.",
        ("what", "wall:", "CPU:", "peak:"),
    )
    tree, alone, beside = bench.folder / "tree", bench.folder / "alone", bench.folder / "beside"
    make_tree(tree)
    job = [*bench.ours.command, "-q", PROFILE, "-b", BINARIES, "-o", bench.output]
    walk = [*job, "-b", tree]
    addr = [*bench.ours.command, "addr", BINARIES / "ledger", "0x1200"]
    commands = {
        "`symbolize --version`": (alone, [*bench.ours.command, "--version"]),
        "one address (`addr`)": (alone, addr),
        "README's job": (alone, job),
        "beside the large index": (beside, job),
        "second walk of the large folder": (beside, walk),
    }
    commands = {name: (home, p.at_home(home, command)) for name, (home, command) in commands.items()}
    for home, command in commands.values():
        bench.once(Contender(f"filling {home.name}", command))
    results = bench.race([Contender(name, command) for name, (_, command) in commands.items()])
    walked = Contender("first walk of it", p.at_home(bench.folder / "walk", walk))
    results |= bench.race([replace(walked, before=lambda: shutil.rmtree(bench.folder / "walk", ignore_errors=True))])
    for name, result in results.items():
        figures = [seconds(result.median()), seconds(result.median("cpu")), mib(result.median("memory"))]
        part.rows.append([name, result.trouble or figures[0], *figures[1:]])
    version, one, job_alone, job_beside, *_ = (result.median() for result in results.values())
    each = batch(bench)
    part.rows.append(["a profile more in a batch", f"{each * 1000:.0f} ms", "", ""])
    part.goals += [
        Goal("`symbolize --version`", version, 0.03, "s"),
        Goal("one address (`addr`)", one, 0.12, "s"),
        Goal("README's job", job_alone, 0.12, "s"),
        Goal("README's job: wall beside a large index to alone", job_beside / job_alone, 1.05),
        Goal("a profile more in a batch", each, 0.022, "s"),
    ]
    return part


def make_tree(folder: Path) -> None:
    """Make copies of a library with build ids of their own, each beside empty files, ten in a folder."""
    data = LIBRARY.read_bytes()
    build_id = bytes.fromhex(read_build_id(str(LIBRARY)) or "")
    at = data.index(build_id)
    for number in range(LIBRARIES):
        place = folder / f"{number // 10:04d}"
        place.mkdir(parents=True, exist_ok=True)
        own = number.to_bytes(len(build_id), "big")
        (place / f"lib{number:05d}.so").write_bytes(data[:at] + own + data[at + len(own) :])
        for other in range(OTHERS):
            (place / f"file{number:05d}-{other}.txt").touch()


def batch(bench: Bench) -> float:
    """Seconds of a profile more with 10,000 locations, in a batch of one worker with kept tables."""
    found = bench.chosen("libjvm-zlib", "libjvm", "libpython")
    if not found:
        return float("nan")
    profile, _, _ = found[-1].inputs(bench.folder, 10_000)
    contenders = []
    for count in (2, 42):
        inputs = bench.folder / f"batch-{count}"
        inputs.mkdir()
        for number in range(count):
            shutil.copy(profile, inputs / f"{number}.pb.gz")
        files = [word for path in found[-1].files for word in ("-b", path)]
        command = [*bench.ours.command, "batch", inputs, *files, "--jobs", "1", "-q", "--out", bench.folder / "many"]
        command = p.at_home(bench.folder / "batch-home", command)
        empty = lambda: shutil.rmtree(bench.folder / "many", ignore_errors=True)  # noqa: E731
        contenders.append(Contender(str(count), command, before=empty))
    results = bench.race(contenders)
    return (results["42"].median() - results["2"].median()) / 40


def table(bench: Bench) -> Part:
    """Making the table of a whole binary, its size, and answering from it."""
    part = Part(
        "The table of a whole binary",
        "`symbolize index` with one and two threads beside `llvm-gsymutil --convert` and symbolic's `make_symcache`, "
        "from the debug file to a file on disk; the size of that; and a whole command that answers 10,000 addresses "
        "from it.",
        ("binary", "command", "1 thread:", "2 threads:", "peak:", "size:", "lookup:", "peak:"),
    )
    for subject in bench.with_debug_information:
        profile, addresses, _ = subject.inputs(bench.folder, 10_000)
        cache = bench.folder / f"tables-{subject.key}"
        made = bench.race([*(bench.ours.index(subject, cache, jobs) for jobs in (1, 2))], min(3, bench.runs))
        made |= bench.race(bench.peers.conversions(subject, bench.folder), min(3, bench.runs))
        asked = bench.race(
            [
                bench.ours.lookup(subject, profile, bench.output, cache, p.OURS),
                *bench.peers.converted_lookups(subject, bench.folder, addresses),
            ]
        )
        files = {p.OURS: cache, p.GSYM: p.gsym(subject, bench.folder), p.SYMBOLIC: p.symcache(subject, bench.folder)}
        for name, stored in files.items():
            one, two = (made.get(f"{name}, {p.count(jobs)}") for jobs in (1, 2))
            if one is None:
                continue
            answer = asked.get(name, Result(name))
            row = [
                one.trouble or seconds(one.median()),
                seconds(two.median()) if two else "",
                mib(one.median("memory")),
            ]
            row += [size(bytes_of(stored)), seconds(answer.median()), mib(answer.median("memory"))]
            part.rows.append([subject.key, name, *row])
    return part


def bytes_of(path: Path) -> int:
    """The size of a file, or of all files in a folder."""
    paths = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in paths if file.is_file())


def phases(bench: Bench) -> Part:
    """Where the time of a cold run goes, as decoder.py measures it."""
    columns = ("read and inflate", "DIE walk", "line programs", "segments", "lookup")
    part = Part(
        "Phases and rates",
        "Decoding the whole binary, each phase by itself in one thread: seconds of CPU, and millions of DIEs, rows, "
        "ranges and addresses a second (`benchmarks/decoder.py`); and with all threads.",
        ("binary", *(f"{name}:" for name in columns), "decode, all threads:"),
    )
    for subject in bench.with_debug_information:
        command = [sys.executable, p.HERE / "decoder.py", subject.debug, "--json", "--runs", str(bench.runs)]
        if not (text := bench.once(Contender("decoder", command, keep_output=True))):
            continue
        found = json.loads(text)
        row = []
        for name in columns:
            took, count, _ = found.get(name, (float("nan"), 0, ""))
            rate = f" ({count / took / 1e6:,.1f} M/s)" if count and name != "read and inflate" else ""
            row.append(f"{took:.3f} s{rate}" if took == took else "")
        part.rows.append([subject.key, *row, seconds(found["decode, all threads"][0])])
    return part


def memory(bench: Bench) -> Part:
    """Time and peak over 4 GiB of debug sections."""
    part = Part(
        "4 GiB of debug sections",
        "A library of 4,130 units of C with 200 functions and 4,000 types each, linked for this, not compressed.",
        ("addresses", *COSTS, *RATIOS),
    )
    subject = large_program(bench.work)
    if subject is None:
        part.missing.append("it cannot be made; Debian: gcc, mold")
        return part
    for count in (10_000, 100):
        profile, addresses, _ = subject.inputs(bench.folder, count)
        results = against(bench, subject, profile, addresses)
        part.rows.append([f"{count:,}", *cells(results)])
        peak = results[0].median("memory") / 1024
        part.goals.append(Goal(f"4 GiB of debug sections, {count:,} addresses: peak", peak, 0.7, "GiB"))
    return part


PARTS: dict[str, Callable[[Bench], Part]] = {
    "cold": cold,
    "first": first,
    "small": small,
    "stacks": stacks,
    "memory": memory,
    "table": table,
    "phases": phases,
}
QUICK = ("cold", "first", "small", "stacks")
"""The parts of a quick run."""
