"""Record what symbolize answers by every door for the fixtures, and list what differs from another record.

    python -m tools.snapshot take FOLDER [BINARY...] [--debug DIR]
    python -m tools.snapshot compare OLD NEW

`take` keeps below FOLDER what commands print for all profiles and binaries of fixtures/ and for random addresses of
each BINARY: every row of OUTPUTS, reports, `top`, `tree`, `list`, `view`, `diff`, `inspect`, `plan`, `addr`, `as`,
`log`, `lookup()`, the outputs and rows of a batch, the answers of a server, and kept tables. It uses commands and the
public library alone, so that it works the same before and after a change of the code. Take both records in one
checkout, because messages name paths, and with the same FOLDER, moved away in between.
"""

import argparse
import contextlib
import filecmp
import gzip
import importlib
import io
import multiprocessing
import os
import pkgutil
import random
import re
import runpy
import struct
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

import symbolize
from symbolize.formats.outputs import OUTPUTS
from tests.support.symbol_server import SymbolServer, build_id, job, symbol_server

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
PROFILES = ("profiles/**/*.*", "legacy/*.*", "folded/*.txt", "simpleperf/*.proto", "unwind/*.dump")
NO_PROFILES = (".py", ".cc", ".go")
ADDRESSES = 5_000
"""Random addresses in the profile of a binary."""
FEW_ADDRESSES = 200
"""Those that are asked for one by one."""
BIAS = 0x5555_0000_0000


class Job(NamedTuple):
    """What comes of one profile or binary, with what else it is called with, kept below `folder`."""

    make: Callable[["Job"], None]
    folder: Path
    subject: Path
    others: tuple[Path, ...]


def in_child(action: Callable[[], object], output: Path) -> None:
    """Do something in a child of this process, and keep what it prints, and its exit code."""
    sys.stdout.flush()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # the threads are numpy's, and idle
        pid = os.fork()
    if pid == 0:
        code: object = 70
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            for number in (1, 2):
                os.dup2(os.open(f"{output}.{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.chdir(ROOT)
            try:
                action()
                code = 0
            except SystemExit as end:
                code = end.code or 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code if isinstance(code, int) else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    streams = [Path(f"{output}.{number}") for number in (1, 2)]
    printed = b"\n--\n".join(stream.read_bytes() for stream in streams) + f"\n-- exit code {status}\n".encode()
    for stream in streams:
        stream.unlink()
    output.write_bytes(printed)


def command(output: Path, *arguments: str | Path) -> None:
    """Keep what the command prints for some arguments."""

    def call() -> None:
        sys.argv = ["symbolize", *map(str, arguments)]
        runpy.run_module("symbolize", run_name="__main__", alter_sys=False)

    in_child(call, output)


def of_random(job: Job) -> None:
    """What the main command makes of a profile, whose binaries are the others."""
    here = job.folder
    here.mkdir(parents=True)
    common = [job.subject, "--no-cache", *(f"--binaries={each}" for each in job.others)]
    for mode in ("default", "templates", "full", "none"):
        command(here / f"{mode}.txt", *common, "--demangle", mode, "-v", "-o", here / f"{mode}.pb.gz")
    folded = ["--folded-report", here / "folded.json", "--missing", here / "missing.txt"]
    command(
        here / "json.txt", *common, "--report=json", "-v", "--nearest-line", "--annotate", *folded, "-o", os.devnull
    )
    command(here / "stacks.txt", *common, "--tail-calls", "--check-stacks", "-v", "-o", here / "stacks.pb.gz")
    unzip(here)


def of_profile(job: Job) -> None:
    """What all commands say of a profile; the first of the others is what it is compared with."""
    of_random(job._replace(others=job.others[1:]))
    here, profile = job.folder, job.subject
    base, *binaries = job.others
    common = [profile, "--no-cache", *(f"--binaries={each}" for each in binaries)]
    for output in OUTPUTS:
        written = here / f"output{output.endings[0]}"
        command(here / f"{output.name}.txt", *common, "--emit", output.name, "-v", "-o", written)
    shown = ["--no-cache", *common[2:]]
    command(here / "top.txt", "top", profile, *shown)
    command(here / "tree.txt", "tree", profile, *shown)
    command(here / "list.txt", "list", "main|parse", profile, *shown)
    command(here / "view.txt", "view", profile, *shown, "-o", here / "view.html")
    command(here / "diff.txt", "diff", base, profile, *shown)
    command(here / "inspect.txt", "inspect", profile)
    command(here / "plan.txt", "plan", profile, *common[2:])
    unzip(here)


def unzip(folder: Path) -> None:
    """Leave what was compressed in a folder and those below: another zlib writes other bytes."""
    for zipped in folder.rglob("*.gz"):
        zipped.with_suffix("").write_bytes(gzip.decompress(zipped.read_bytes()))
        zipped.unlink()


def of_binary(job: Job) -> None:
    """What commands and the library say of a binary, whose debug files are below the others."""
    here, binary = job.folder, job.subject
    here.mkdir(parents=True)
    choose = random.Random(binary.name)
    begin, size = code_of(binary)
    vaddrs = sorted(begin + choose.randrange(size) for _ in range(FEW_ADDRESSES))
    words = [f"{each:#x}" for each in vaddrs]
    folders = [f"--binaries={each}" for each in job.others]
    command(here / "addr.txt", "addr", binary, *words, "--no-cache", *folders)
    command(here / "addr-json.txt", "addr", binary, *words, "--json", "--no-cache", *folders)
    command(here / "llvm-symbolizer.txt", "as", "llvm-symbolizer", f"--obj={binary}", *words)
    command(here / "llvm-json.txt", "as", "llvm-symbolizer", "--output-style=JSON", f"--obj={binary}", *words)
    command(here / "addr2line.txt", "as", "addr2line", "-a", "-f", "-i", "-C", "-e", binary, *words)
    command(here / "inspect.txt", "inspect", binary, *folders)
    command(here / "inspect-json.txt", "inspect", "--json", binary, *folders)
    trace = here / "trace.txt"
    trace.write_text("".join(f"    #{n} {BIAS + each:#x}  ({binary}+{each:#x})\n" for n, each in enumerate(vaddrs)))
    command(here / "log.txt", "log", trace, "--no-cache", *folders)

    def look_up() -> None:
        frames = symbolize.lookup(binary, vaddrs, job.others)
        for name in frames.__slots__ if hasattr(frames, "__slots__") else sorted(vars(frames)):
            print(name, columns(getattr(frames, name)))

    in_child(look_up, here / "lookup.txt")


def columns(value: object) -> object:
    """What is in a table of columns, as text; of what is no column nothing."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | str | bytes | int | None):
        return value
    public = {name: part for name, part in getattr(value, "__dict__", {}).items() if not name.startswith("_")}
    return {name: columns(part) for name, part in sorted(public.items())}


def of_batch(job: Job) -> None:
    """Outputs, rows and reports of a batch over a folder."""
    import pyarrow.parquet

    here, out, rows = job.folder, job.folder / "out", job.folder / "rows"
    folders = [f"--binaries={each}" for each in job.others]
    arguments = ["--no-cache", "--quiet", "--parquet", rows, "--service", "made", "--date", "2026-01-01"]
    report = ["--report=json", "--report-file", here / "report.json", "--missing", here / "missing.txt"]
    command(here / "batch.txt", "batch", job.subject, "--out", out, *folders, *arguments, *report)
    unzip(out)
    for path in sorted(rows.rglob("*.parquet")):
        table = pyarrow.parquet.read_table(path)
        path.with_suffix(".json").write_text("\n".join(map(str, table.to_pylist())))
        path.unlink()
    for path in [*out.rglob("*.sqlite*"), *out.glob(".*"), here / "report.json"]:  # they have times
        if path.is_file():
            path.unlink()


def of_server(job: Job) -> None:
    """The answers of a server to requests for names, profiles and debug files."""
    here = job.folder
    here.mkdir(parents=True)
    binaries = sorted(path for path in job.subject.rglob("*") if is_executable(path))
    with symbol_server([f"--binaries={job.subject}", "--cache", str(here / "cache")]) as server:
        for binary in binaries:
            keep_answers(server, binary, here / as_name(binary))
        for profile in filter(Path.is_file, profiles()):
            for emit in ("pprof", "otlp"):
                answer = server.ask("POST", f"/symbolize?emit={emit}", profile.read_bytes())
                body = gzip.decompress(answer.body) if answer.body[:2] == b"\x1f\x8b" else answer.body
                report = answer.headers.get("x-symbolize-report", "")
                (here / f"{as_name(profile)}.{emit}").write_bytes(b"%d %s\n" % (answer.status, report.encode()) + body)
    for path in sorted((here / "cache").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (here / "cache").rmdir()


def keep_answers(server: SymbolServer, binary: Path, target: Path) -> None:
    """Keep what a server says of a binary."""
    with contextlib.suppress(Exception):  # a file without a build id is not asked for
        number = build_id(binary)
        begin, size = code_of(binary)
        choose = random.Random(binary.name)
        offsets = [choose.randrange(begin + size) for _ in range(FEW_ADDRESSES)]
        target.write_bytes(server.symbolicate(job(binary, offsets)).body)
        for kind in ("executable", "debuginfo", "section/.text"):
            answer = server.ask("GET", f"/buildid/{number}/{kind}")
            target.with_suffix(f".{kind.replace('/', '-')}").write_text(f"{answer.status} {len(answer.body)}\n")


def code_of(binary: Path) -> tuple[int, int]:
    """Where the code of a binary begins, and how long it is in memory."""
    with open(binary, "rb") as file:
        header = next(s.header for s in ELFFile(file).iter_segments("PT_LOAD") if s.header.p_flags & 1)
    return header.p_vaddr, header.p_memsz


def random_profile(binary: Path, target: Path) -> None:
    """Write a gperftools profile of one-frame stacks at random addresses of the code of `binary`."""
    with open(binary, "rb") as file:
        header = next(s.header for s in ELFFile(file).iter_segments("PT_LOAD") if s.header.p_flags & 1)
    begin = (BIAS + header.p_vaddr) & -4096
    end = (BIAS + header.p_vaddr + header.p_memsz + 4095) & -4096
    choose = random.Random(binary.name)
    words = [0, 3, 0, 10_000, 0]
    for _ in range(ADDRESSES):
        words += [1, 1, BIAS + header.p_vaddr + choose.randrange(header.p_memsz)]
    words += [0, 1, 0]
    line = f"{begin:x}-{end:x} r-xp {header.p_offset & -4096:08x} 08:01 1 {binary}\n"
    target.write_bytes(struct.pack(f"<{len(words)}Q", *words) + line.encode())


def profiles() -> list[Path]:
    """The profiles of fixtures/, and what looks like them."""
    found = {path for pattern in PROFILES for path in FIXTURES.glob(pattern)}
    return sorted(path for path in found if path.suffix not in NO_PROFILES)


def as_name(path: Path) -> str:
    """A path as the name of one file."""
    inside = path.relative_to(FIXTURES) if path.is_relative_to(FIXTURES) else path
    return str(inside).strip("/").replace("/", "-")


def is_executable(path: Path) -> bool:
    """Whether a file is an ELF file with code that is loaded."""
    if not path.is_file() or path.is_symlink():
        return False
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return False
        segments = ELFFile(file).iter_segments("PT_LOAD")
        return any(segment.header.p_flags & 1 and segment.header.p_filesz for segment in segments)


def jobs_of(folder: Path, subjects: Sequence[Path], debug: Path) -> Iterator[Job]:
    """All that is recorded."""
    given = profiles()
    for base, profile in zip([*given[-1:], *given], given, strict=False):
        binaries = FIXTURES / ("simpleperf/binaries" if profile.parent.name == "simpleperf" else "bin")
        yield Job(of_profile, folder / "profiles" / as_name(profile), profile, (base, binaries))
    wrong = FIXTURES / "simpleperf/wrong_build"
    for profile in sorted((FIXTURES / "simpleperf").glob("*.proto")):
        yield Job(of_profile, folder / "wrong" / profile.name, profile, (profile, wrong))
    binaries = sorted(path for path in FIXTURES.rglob("*") if is_executable(path))
    for binary in [*binaries, *subjects]:
        others = (binary.parent,) if binary in binaries else (debug,)
        made = folder / "random" / f"{as_name(binary)}.prof"
        made.parent.mkdir(parents=True, exist_ok=True)
        random_profile(binary, made)
        yield Job(of_random, made.with_suffix(""), made, (binary, *others))
        yield Job(of_binary, folder / "binaries" / as_name(binary), binary, others)
    yield Job(of_batch, folder / "batch", FIXTURES / "profiles", (FIXTURES / "bin",))
    yield Job(of_server, folder / "server", FIXTURES / "bin", ())


def make(job: Job) -> None:
    """Record what a job says."""
    job.make(job)


def prepare(folder: Path) -> None:
    """Import all that children need, and keep what this machine has out of the record."""
    for name in ("HOME", "XDG_CACHE_HOME"):
        os.environ[name] = str(folder / "home")
    os.environ.pop("DEBUGINFOD_URLS", None)
    for module in pkgutil.walk_packages(symbolize.__path__, "symbolize."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError), contextlib.redirect_stdout(io.StringIO()):
                importlib.import_module(module.name)


def take(folder: Path, subjects: Sequence[Path], debug: Path) -> int:
    """Write a record below `folder`."""
    folder.mkdir(parents=True)
    prepare(folder)
    jobs = list(jobs_of(folder, subjects, debug))
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
        for done in [pool.submit(make, job) for job in jobs]:
            done.result()
    kept = folder / "tables"
    given = [str(path) for path in (FIXTURES / "bin", FIXTURES / "simpleperf/binaries", *subjects)]
    made = folder / "index.txt"
    command(made, "index", *given, "--cache", kept, "-v")
    lines = re.sub(rb"\d+\.\d+ s\b", b"", made.read_bytes()).splitlines(keepends=True)
    made.write_bytes(b"".join(sorted(lines)))  # processes of their own make the tables
    for database in [*kept.rglob("*.sqlite*"), *(folder / "home").rglob("*")]:  # they have times and inodes
        if database.is_file():
            database.unlink()
    for path in folder.rglob("*"):
        if path.is_file() and os.fsencode(folder) in (data := path.read_bytes()):
            path.write_bytes(data.replace(os.fsencode(folder), b"FOLDER"))
    print(f"{len(jobs)} jobs, {sum(path.is_file() for path in folder.rglob('*'))} files")
    return 0


def compare(old: Path, new: Path) -> int:
    """List the files that differ or are in one record only; 1 if there are any."""
    names = {path.relative_to(top) for top in (old, new) for path in top.rglob("*") if path.is_file()}
    differing = [
        name
        for name in sorted(names)
        if not (old / name).is_file()
        or not (new / name).is_file()
        or not filecmp.cmp(old / name, new / name, shallow=False)
    ]
    for name in differing:
        print(name)
    print(f"{len(differing)} of {len(names)} files differ")
    return 1 if differing else 0


def main() -> int:
    """Take a record or compare two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    taking = commands.add_parser("take")
    taking.add_argument("folder", type=Path)
    taking.add_argument("binaries", type=Path, nargs="*")
    taking.add_argument(
        "--debug", type=Path, default=Path("/usr/lib/debug"), help="with their debug files (%(default)s)"
    )
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    options = parser.parse_args()
    if options.command == "take":
        return take(options.folder.resolve(), [path.resolve() for path in options.binaries], options.debug)
    return compare(options.old, options.new)


if __name__ == "__main__":
    sys.exit(main())
