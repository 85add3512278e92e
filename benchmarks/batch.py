"""Measures `symbolize batch` over a fleet that fleet.py made: `python benchmarks/batch.py FOLDER [--only PART...]`.

Throughput with an empty cache and a filled one, one worker and two, the single command in a loop, pprof and
llvm-symbolizer over a few of the profiles, the memory of the job by the number of profiles, and with --kill N whether a
job that is killed N times ends with the same outputs. Prints tables, and JSON at the end or into a file (--json).
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from measure import Contender, Failed, Run, environment, run_once  # noqa: E402
from page import Part, mib, seconds  # noqa: E402
from peers import LLVM, OURS, Peers  # noqa: E402
from subjects import built  # noqa: E402

import symbolize  # noqa: E402
from symbolize.elf import ElfImage  # noqa: E402

COMMAND: list[str | Path] = [sys.executable, "-m", "symbolize"]
PPROF = ("GO111MODULE=off", "GOPATH=/usr/share/gocode", "go", "build")
"""How pprof is built from the Debian package golang-github-google-pprof-dev. Go's own `go tool pprof` reads no build
ids and takes no other file for a binary than the one at the recorded path."""

SINGLE, PEERS = 20, 5
"""Profiles that the single command and the peers get."""
TICK = 0.05
SHARES = (0.1, 0.5, 1.0)
"""Parts of the fleet over which memory is measured."""
NAN = float("nan")


@dataclass(frozen=True)
class Cost:
    """What a job cost: seconds, those of processors in all its processes, as far as seen; and peaks in MiB, where asked
    for: resident and private memory of the process that drives it, private memory of all processes together."""

    wall: float
    cpu: float
    resident: float
    private: float
    all_private: float


@dataclass
class Fleet:
    """The profiles and binaries in `folder`; jobs work in `work`. `figures` are what was measured, by part."""

    folder: Path
    work: Path
    limit: int
    workers: int
    peers: Peers
    pprof: Path | None
    figures: dict[str, object] = field(default_factory=dict)

    @cached_property
    def hosts(self) -> list[Path]:
        """The folders with profiles."""
        return sorted(path for path in (self.folder / "profiles").iterdir() if path.is_dir())

    @cached_property
    def profiles(self) -> list[Path]:
        """All profiles."""
        return sorted(path for host in self.hosts for path in host.iterdir())

    @property
    def binaries(self) -> Path:
        """The folder of the binaries."""
        return self.folder / "binaries"

    @property
    def out(self) -> Path:
        """Where outputs go."""
        return self.work / "out"

    @property
    def cache(self) -> Path:
        """Where tables are kept."""
        return self.work / "cache"

    def sample(self, count: int) -> list[Path]:
        """Gzipped profiles, evenly spaced."""
        profiles = [path for path in self.profiles if path.name.endswith(".pb.gz")]
        return [profiles[row * len(profiles) // count] for row in range(min(count, len(profiles)))]

    def job(self, inputs: Sequence[Path] = (), workers: int = 0) -> list[str | Path]:
        """The command of a job over all profiles, or over `inputs`."""
        where = inputs or [self.folder / "profiles"]
        command: list[str | Path] = [*COMMAND, "batch", *where, "--binaries", self.binaries, "--out", self.out]
        return [*command, "--cache", self.cache, "--jobs", str(workers or self.workers)]

    def single(self, profile: Path, output: Path) -> list[str | Path]:
        """The command for one profile."""
        return [*COMMAND, "-q", profile, "-b", self.binaries, "--cache", self.cache, "--foreground", "-o", output]

    def forget(self, cache: bool = True) -> None:
        """Remove the outputs of earlier jobs, and the cache."""
        for folder in (self.out, self.cache) if cache else (self.out,):
            shutil.rmtree(folder, ignore_errors=True)

    def timed(self, command: Sequence[str | Path], stdin: Path | None = None, keep: bool = False) -> Run:
        """Run a command once; raises Failed."""
        return run_once(Contender("command", command, stdin, keep_output=keep), self.limit)


def rates(fleet: Fleet, workers: Sequence[int]) -> list[dict[str, float]]:
    """Jobs over everything with so many workers each, with an empty cache and then with what that left there."""
    rows = []
    for count in workers:
        for cold in (True, False):
            fleet.forget(cold)
            run = watched(fleet.job(workers=count), fleet.limit)
            rate = len(fleet.profiles) / run.wall
            row = {"workers": count, "cold": cold, "wall": run.wall, "cpu": run.cpu, "profiles_per_second": rate}
            rows.append({**row, "outputs": len(outputs(fleet.out))})
    return rows


def rate_table(title: str, text: str, rows: Sequence[Mapping[str, float]]) -> Part:
    """Rates as a table."""
    part = Part(title, text, ("workers:", "cache", "wall:", "CPU:", "profiles a second:", "outputs:"))
    for row in rows:
        state = "empty" if row["cold"] else "filled"
        cells = [seconds(row["wall"]), seconds(row["cpu"]), f"{row['profiles_per_second']:.1f}"]
        part.rows.append([f"{row['workers']:.0f}", state, *cells, f"{row['outputs']:,.0f}"])
    return part


def throughput(fleet: Fleet) -> Part:
    """The job as it is meant."""
    rows = rates(fleet, [fleet.workers])
    fleet.figures["throughput"] = rows
    return rate_table("Throughput", f"One job over {len(fleet.profiles):,} profiles.", rows)


def jobs(fleet: Fleet) -> Part:
    """What a second worker brings."""
    rows = rates(fleet, [1, 2])
    gain = rows[0]["wall"] / rows[2]["wall"], rows[1]["wall"] / rows[3]["wall"]
    fleet.figures["jobs"] = {"runs": rows, "speedup_cold": gain[0], "speedup_warm": gain[1]}
    text = f"Two workers are {gain[0]:.2f} times as fast with an empty cache, {gain[1]:.2f} times with a filled one."
    return rate_table("One worker and two", text, rows)


def single(fleet: Fleet) -> Part:
    """The single command in a loop, after a round that fills the cache."""
    sample, output = fleet.sample(SINGLE), fleet.work / "single.pb.gz"
    walls: list[float] = []
    fleet.forget()
    for is_timed in (False, True):
        for profile in sample:
            run = fleet.timed(fleet.single(profile, output))
            if is_timed:
                walls.append(run.wall)
    fleet.figures["single"] = {"profiles": len(walls), "profiles_per_second": len(walls) / sum(walls)}
    part = Part("The single command in a loop", "With a filled cache.", ("profiles:", "each:", "profiles a second:"))
    part.rows.append([str(len(walls)), seconds(sum(walls) / len(walls)), f"{len(walls) / sum(walls):.1f}"])
    return part


def peers(fleet: Fleet) -> Part:
    """pprof and llvm-symbolizer, a process for each profile, beside the single command with a filled cache.

    pprof finds the binaries by build id, and writes a profile. llvm-symbolizer gets vaddrs of all binaries in one list,
    which is made beforehand, and prints names.
    """
    sample, output = fleet.sample(PEERS), fleet.work / "peer.pb.gz"
    lists = [fleet.work / f"addresses-{row}.txt" for row in range(len(sample))]
    for profile, addresses in zip(sample, lists, strict=True):
        write_addresses(profile, fleet.binaries, addresses)
    commands: dict[str, Callable[[Path], list[str | Path]]] = {OURS: lambda profile: fleet.single(profile, output)}
    missing = []
    if pprof := fleet.pprof:
        where = f"PPROF_BINARY_PATH={fleet.binaries}"
        given = ["-symbolize=local", "-proto", "-output"]
        commands["pprof"] = lambda profile: ["env", where, pprof, *given, output, profile]
    else:
        missing.append("pprof is not there; Debian: golang-go, golang-github-google-pprof-dev")
    if llvm := fleet.peers.llvm:
        commands[LLVM] = lambda _: [llvm, "--output-style=JSON", "--inlines", "--demangle"]
    else:
        missing.append(f"{LLVM} is not there")
    part = Part(
        "Peers, a process for each profile",
        "Over a few profiles. The lists of addresses that llvm-symbolizer reads are made beforehand.",
        ("command", "profiles:", "each:", "peak:", "named locations:", "profiles a second:"),
        missing=missing,
    )
    figures = {}
    for name, command in commands.items():
        runs, named = [], []
        if name == OURS:
            for profile in sample:
                fleet.timed(command(profile))
        for profile, addresses in zip(sample, lists, strict=True):
            try:
                runs.append(fleet.timed(command(profile), addresses if name == LLVM else None, name == LLVM))
            except Failed as failure:
                part.missing.append(f"{name}, {profile.name}: {failure}")
                continue
            named.append(named_lines(runs[-1].output) if name == LLVM else named_locations(output))
        if runs:
            each, peak = sum(run.wall for run in runs) / len(runs), max(run.memory for run in runs)
            share = sum(named) / len(named)
            part.rows.append([name, str(len(runs)), seconds(each), mib(peak), f"{share:.1%}", f"{1 / each:.1f}"])
            figures[name] = {"profiles": len(runs), "seconds": each, "peak_mib": peak, "named_share": share}
    fleet.figures["peers"] = figures
    return part


def named_locations(path: Path) -> float:
    """The share of the locations of a profile that have names."""
    locations = symbolize.load(path).locations
    return float(locations.has_lines().mean()) if len(locations) else NAN


def named_lines(output: str) -> float:
    """The share of the answers of llvm-symbolizer, a line of JSON each, that have names."""
    answers = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    named = [any(frame.get("FunctionName") for frame in answer.get("Symbol", ())) for answer in answers]
    return sum(named) / len(named) if named else NAN


def write_addresses(profile: Path, binaries: Path, target: Path) -> None:
    """Write what llvm-symbolizer is to answer: for each location a binary, or its debug file, and a vaddr."""
    loaded = symbolize.load(profile)
    mappings, lines = loaded.mappings, []
    for row in range(len(mappings)):
        name = loaded.strings.text(int(mappings.filename[row])).rpartition("/")[2]
        build_id = loaded.strings.text(int(mappings.build_id[row])) or "none"
        found = [path for path in (binaries / build_id).glob("*") if build_id != "none" or path.name == name]
        if not found:
            continue
        debug = binaries / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        start, offset = int(mappings.start[row]), int(mappings.file_offset[row])
        with ElfImage.open(found[0]) as image:
            segments = [each for each in image.segments if each.executable]
        for address in loaded.locations.address[loaded.locations.mapping == row].tolist():
            place = address - start + offset
            holding = [each for each in segments if 0 <= place - each.file_offset < each.memory_size]
            vaddr = holding[0].vaddr + place - holding[0].file_offset if holding else address  # else the kernel's
            lines.append(f'"{debug if debug.exists() else found[0]}" {vaddr:#x}\n')
    target.write_text("".join(lines))


def memory(fleet: Fleet) -> Part:
    """Whether the parent grows with the number of profiles."""
    part = Part(
        "Memory by the number of profiles",
        "The largest resident and private memory of the process that drives the job, private memory of all its "
        f"processes together; looked at every {TICK * 1000:.0f} ms. The cache is empty.",
        ("profiles:", "parent:", "private:", "private, all processes:"),
    )
    figures = []
    for share in SHARES:
        hosts = fleet.hosts[: max(1, round(len(fleet.hosts) * share))]
        count = sum(1 for path in fleet.profiles if path.parent in hosts)
        fleet.forget()
        peak = watched(fleet.job(hosts), fleet.limit, with_memory=True)
        part.rows.append([f"{count:,}", mib(peak.resident), mib(peak.private), mib(peak.all_private)])
        figures.append({"profiles": count, **vars(peak)})
    fleet.figures["memory"] = figures
    return part


def start(command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
    """Start a job in a process group of its own."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group of a job with SIGKILL and wait until all of it is gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while True:
        try:
            os.killpg(process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return
        if not members(process.pid):  # zombies that nobody has waited for yet
            return
        time.sleep(TICK)


def members(group: int) -> dict[int, float]:
    """The living processes of a process group, and the seconds of processors that each has used."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] not in "ZX":
                found[int(path.parent.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def watched(command: Sequence[str | Path], limit: int, with_memory: bool = False) -> Cost:
    """Run a job and look at its processes, whose costs the system does not add up; raises Failed."""
    resident = private = everything = 0.0
    cpu: dict[int, float] = {}
    began = time.perf_counter()
    process = start(command)
    try:
        while process.poll() is None:
            if time.perf_counter() - began > limit:
                raise Failed(f"more than {limit} s")
            cpu |= members(process.pid)
            if with_memory:
                sizes = {pid: memory_of(pid) for pid in members(process.pid)}
                own = sizes.get(process.pid, (0.0, 0.0))
                resident, private = max(resident, own[0]), max(private, own[1])
                everything = max(everything, sum(size for _, size in sizes.values()))
            with suppress(subprocess.TimeoutExpired):
                process.wait(TICK)
        wall = time.perf_counter() - began
    finally:
        kill(process)
    if process.returncode:
        raise Failed(f"exit code {process.returncode}")
    return Cost(wall, sum(cpu.values()), resident, private, everything)


def memory_of(pid: int) -> tuple[float, float]:
    """Resident and private memory of a process in MiB; none if it is gone."""
    resident = private = 0
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name == "Rss":
                resident = int(rest.split()[0])
            elif name.startswith("Private_") and name != "Private_Hugetlb":
                private += int(rest.split()[0])
    return resident / 1024, private / 1024


def killing(fleet: Fleet, kills: int, seed: int) -> Part:
    """Kill jobs `kills` times and go on each time; compare the outputs with those of a job left alone.

    A job that ends before its moment comes is compared too, and the next one starts with nothing.
    """
    choose = random.Random(seed)
    fleet.forget()
    whole = watched(fleet.job(), fleet.limit).wall
    wanted = checksums(fleet.out)
    differing: set[str] = set()
    after_kills: list[int] = []
    ended = 0

    def compare() -> None:
        got = checksums(fleet.out)
        differing.update(name for name in wanted.keys() | got.keys() if wanted.get(name) != got.get(name))

    fleet.forget()
    while len(after_kills) < kills:
        if ends_before(fleet.job(), choose.uniform(0.05, whole)):
            compare()
            ended += 1
            fleet.forget()
        else:
            after_kills.append(len(outputs(fleet.out)))
    fleet.timed(fleet.job())
    compare()
    counts = {"killed": kills, "jobs": ended + 1, "outputs": len(wanted), "after_kills": after_kills}
    fleet.figures["kill"] = {**counts, "differing": sorted(differing)}
    part = Part(
        "Killed and continued",
        "The process group of the job was killed with SIGKILL at random moments, and the job started again each time. "
        f"Outputs after each: {', '.join(map(str, after_kills))}.",
        ("killed:", "jobs that ended:", "outputs:", "of them differing:"),
    )
    part.rows.append([str(kills), str(ended + 1), f"{len(wanted):,}", f"{len(differing):,}"])
    return part


def ends_before(command: Sequence[str | Path], moment: float) -> bool:
    """Start a job and kill it after so many seconds, unless it ends before; raises Failed if it fails."""
    process = start(command)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        return False
    finally:
        kill(process)
    if process.returncode:
        raise Failed(f"exit code {process.returncode}")
    return True


def outputs(folder: Path) -> dict[str, Path]:
    """The profiles below a folder by their path there, without what is hidden."""
    found = {path.relative_to(folder): path for path in folder.rglob("*.pb.gz")}
    return {str(name): path for name, path in found.items() if not any(part.startswith(".") for part in name.parts)}


def checksums(folder: Path) -> dict[str, str]:
    """The checksums of the profiles below a folder."""
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in outputs(folder).items()}


PARTS: dict[str, Callable[[Fleet], Part]] = {
    "throughput": throughput,
    "single": single,
    "peers": peers,
    "jobs": jobs,
    "memory": memory,
}


def find_pprof(work: Path) -> Path | None:
    """pprof from the path, else built from its package."""
    if found := shutil.which("pprof"):
        return Path(found)
    target = work / "pprof"
    return next(iter(built(target, "env", *PPROF, "-o", str(target), "github.com/google/pprof")), None)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what fleet.py made")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--kill", type=int, default=0, metavar="N", help="kill a job N times; without --only nothing else"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the moments of killing")
    parser.add_argument("--jobs", type=int, default=2, help="workers (default: 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the figures (default: standard output)")
    parser.add_argument("--limit", type=int, default=3600, metavar="SECONDS", help="time for one command")
    parser.add_argument("--llvm", default="19", metavar="VERSION", help="of llvm-symbolizer (default: 19)")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "benchmarks", help="folder for pprof")
    options = parser.parse_args()
    names = options.only or ([] if options.kill else list(PARTS))
    pprof = find_pprof(options.work.resolve()) if "peers" in names else None
    failed = False
    with tempfile.TemporaryDirectory(prefix="batch-", dir=options.folder) as work:
        found = Peers.find(options.llvm, None, options.work.resolve())
        fleet = Fleet(options.folder.resolve(), Path(work).resolve(), options.limit, options.jobs, found, pprof)
        todo: dict[str, Callable[[], Part]] = {name: lambda name=name: PARTS[name](fleet) for name in names}  # type: ignore[misc]
        if options.kill:
            todo["kill"] = lambda: killing(fleet, options.kill, options.seed)
        for name, measure in todo.items():
            try:
                print(measure().markdown, flush=True)
            except Failed as failure:
                failed = True
                fleet.figures[name] = {"failed": str(failure)}
                print(f"{name}: {failure}\n", file=sys.stderr)
    text = json.dumps(fleet.figures, indent=2) + "\n"
    if options.json:
        options.json.write_text(text)
    else:
        print(text, end="")
    sys.exit(failed)


if __name__ == "__main__":
    main()
