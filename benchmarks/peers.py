"""The commands that are compared: how each is called, which of them are there, in which versions."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from measure import Contender
from subjects import Subject

import symbolize

HERE = Path(__file__).resolve().parent
OURS, LLVM, GNU, ELFUTILS, SYMBOLIC, GSYM, GIMLI, NEWEST_GIMLI = (
    "symbolize",
    "llvm-symbolizer",
    "addr2line",
    "eu-addr2line",
    "symbolic",
    "gsym",
    "gimli 0.27",
    "gimli, newest",
)
CRATES = Path("/usr/share/cargo/registry")
"""The sources of Debian's packages of crates."""


def output_of(*command: str | Path) -> str:
    """What a command prints, empty if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


@dataclass
class Peers:
    """Paths of the programs; `symbolic` is a Python that has the package. None for what is not there."""

    llvm: str | None
    gnu: str | None
    elfutils: str | None
    gsym: str | None
    symbolic: Path | None
    gimli: Path | None
    newest_gimli: Path | None

    @classmethod
    def find(cls, llvm_version: str, python: Path | None, work: Path) -> "Peers":
        """Look for them on the path; those of gimli are built in the folder `work`."""
        if python is not None and not output_of(python, "-c", "import symbolic; print('found')").startswith("found"):
            python = None
        llvm = shutil.which(f"llvm-symbolizer-{llvm_version}") or shutil.which("llvm-symbolizer")
        gsym = shutil.which(f"llvm-gsymutil-{llvm_version}") or shutil.which("llvm-gsymutil")
        on_path = [shutil.which(name) for name in ("addr2line", "eu-addr2line")]
        return cls(llvm, *on_path, gsym, python, gimli(work), newest_gimli(work))

    def versions(self) -> dict[str, str]:
        """The version of each, or that it is missing."""

        def version(path: str | None, pattern: str = r"\d+\.[\d.]+\d") -> str:
            found = re.search(pattern, output_of(path, "--version")) if path else None
            return found[0] if found else "unknown version" if path else "not there"

        of_symbolic = "import importlib.metadata as m; print(m.version('symbolic'))"
        return {
            OURS: symbolize.__version__,
            "llvm-symbolizer and llvm-gsymutil": version(self.llvm),
            "GNU addr2line": version(self.gnu, r"\d+\.\d[\d.]*(?=$|\n)"),
            "eu-addr2line": version(self.elfutils, r"0\.\d+"),
            "symbolic": output_of(self.symbolic, "-c", of_symbolic).strip() if self.symbolic else "not there",
            GIMLI: "with addr2line 0.19, of Debian's crates" if self.gimli else "not there",
            NEWEST_GIMLI: f"that of {output_of('rustc', '--version').strip()}" if self.newest_gimli else "not there",
        }

    def lookups(self, subject: Subject, addresses: Path, names: Sequence[str] = (LLVM,)) -> list[Contender]:
        """The commands that answer for a list of addresses from the binary itself, with inline frames, demangled."""
        debug = subject.debug
        commands = {
            LLVM: [self.llvm, f"--obj={debug}", "--output-style=JSON", "--inlines", "--demangle"],
            GNU: [self.gnu, "-i", "-f", "-C", "-e", debug],
            ELFUTILS: [self.elfutils, "-i", "-f", "-C", "-e", debug],
            GIMLI: [self.gimli, debug],
            NEWEST_GIMLI: [self.newest_gimli, debug],
        }
        return [Contender(name, commands[name], addresses) for name in names if commands[name][0]]

    def conversions(self, subject: Subject, folder: Path) -> list[Contender]:
        """The commands that make a table of the whole binary."""
        result = []
        if self.symbolic:
            command = [self.symbolic, HERE / "with_symbolic.py", "convert", subject.debug, symcache(subject, folder)]
            result.append(Contender(f"{SYMBOLIC}, {count(1)}", command))
        if self.gsym:
            for threads in (1, 2):
                options = [f"--num-threads={threads}", f"--out-file={gsym(subject, folder)}", "--quiet"]
                contender = Contender(f"{GSYM}, {count(threads)}", [self.gsym, f"--convert={subject.debug}", *options])
                result.append(contender)
        return result

    def converted_lookups(self, subject: Subject, folder: Path, addresses: Path) -> list[Contender]:
        """The commands that answer from such a table; it has to be there."""
        result = []
        if self.symbolic and symcache(subject, folder).exists():
            command = [self.symbolic, HERE / "with_symbolic.py", "lookup", symcache(subject, folder), str(subject.base)]
            result.append(Contender(SYMBOLIC, command, addresses))
        if self.gsym and gsym(subject, folder).exists():
            lines = folder / f"{addresses.stem}.gsym.txt"
            lines.write_text("".join(f"{line} {gsym(subject, folder)}\n" for line in addresses.read_text().split()))
            result.append(Contender(GSYM, [self.gsym, "--addresses-from-stdin"], lines))
        return result


def gimli(work: Path) -> Path | None:
    """The program of this folder with Debian's crates (librust-addr2line-dev, librust-object-dev); None without."""
    folder = work / "gimli"
    if CRATES.is_dir() and not folder.exists() and shutil.which("cargo"):
        shutil.copytree(HERE / "programs" / "gimli", folder)
        (folder / ".cargo").mkdir()
        config = f'[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "{CRATES}"\n'
        (folder / ".cargo" / "config.toml").write_text(config)
        subprocess.run(["cargo", "build", "-q", "--release", "--offline"], cwd=folder, check=False)
    program = folder / "target" / "release" / "gimli-frames"
    return program if program.exists() else None


def newest_gimli(work: Path) -> Path | None:
    """The same with what the Rust compiler carries for its own backtraces; None without one that has it."""
    program = work / "gimli-newest"
    if not program.exists() and (compiler := shutil.which("rustc")):
        work.mkdir(parents=True, exist_ok=True)
        source = HERE / "programs" / "gimli" / "src" / "main.rs"
        command = [compiler, "--edition", "2021", "-O", "--cfg", "newest", "-o", program, source]
        subprocess.run(command, env={**os.environ, "RUSTC_BOOTSTRAP": "1"}, check=False, capture_output=True)
    return program if program.exists() else None


def count(threads: int) -> str:
    """`1 thread`, `2 threads`."""
    return f"{threads} thread{'s' * (threads > 1)}"


def symcache(subject: Subject, folder: Path) -> Path:
    """Where the table of symbolic goes."""
    return folder / f"{subject.key}.symcache"


def gsym(subject: Subject, folder: Path) -> Path:
    """Where the table of llvm-gsymutil goes."""
    return folder / f"{subject.key}.gsym"


def at_home(home: Path, command: Sequence[str | Path]) -> list[str | Path]:
    """A command whose default cache is below `home`."""
    return ["env", f"XDG_CACHE_HOME={home}", *command]


class Ours:
    """The commands of symbolize."""

    def __init__(self) -> None:
        self.command = [sys.executable, "-m", "symbolize"]

    def lookup(
        self, subject: Subject, profile: Path, output: Path, home: Path | None = None, name: str = OURS
    ) -> Contender:
        """Symbolize a profile: without a cache, or with the default one below `home`."""
        command = [*self.command, "-q", profile, "-o", output]
        for path in subject.files:
            command += ["-b", path]
        return Contender(name, at_home(home, command) if home else [*command, "--no-cache"])

    def index(self, subject: Subject, home: Path, jobs: int) -> Contender:
        """Make the table of the whole binary in an empty cache, on so many processors."""
        bound = ["taskset", "-c", ",".join(map(str, range(jobs)))]
        command = [*bound, *self.command, "index", *subject.files, "--jobs", str(jobs)]
        empty = partial(shutil.rmtree, home, ignore_errors=True)
        return Contender(f"{OURS}, {count(jobs)}", at_home(home, command), before=empty)
