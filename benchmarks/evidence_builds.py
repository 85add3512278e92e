"""Builds of programs that differ little, and recordings of each: what `evidence.py` judges.

The sources are those of `programs/evidence/` and, below FOLDER/sources and FOLDER/packages where they are there, source
packages of Debian, unpacked, and versions of its libraries (`apt-get source`, `apt-get download`).
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


OWN = Path(__file__).with_name("programs") / "evidence"
SECONDS = "1"
SEED = 7
FREQUENCY, STACK_FREQUENCY = "2000", "700"
STACK_SIZE = 8192
LIBPROFILER = Path("/usr/lib/x86_64-linux-gnu/libprofiler.so.0")

EDITS = ("early", "late", "split")
"""Lines of our own programs that a build of this name has."""
ADDED = "\n__attribute__((noinline, used)) int added_{name}(int x) {{ return x * 31 % 977 + (x >> 2) * x; }}\n"
"""What is added to sources of others."""
FLAGS = {
    "gcc": ["gcc", "-O2"],
    "O0": ["gcc", "-O0"],
    "Os": ["gcc", "-Os"],
    "O3": ["gcc", "-O3"],
    "clang": ["clang-19", "-O2"],
}
CXX = {"gcc": "g++", "clang-19": "clang++-19"}
RUST = {"O": "2", "O0": "0", "Os": "s", "O3": "3"}


class Missing(Exception):
    """What a build or recording needs is not there; the text says what."""


@dataclass(frozen=True)
class Program:
    """A program, or with `library` a library: `target` is the file that is judged, `language` what it is written in.

    `sources` are globs below `root`; `arguments` follow the program in recordings, `libraries` are linked.
    """

    name: str
    language: str
    root: Path = OWN
    sources: Sequence[str] = ()
    arguments: Sequence[str] = (SECONDS,)
    include: Sequence[str] = ()
    target: str = ""

    @property
    def file(self) -> str:
        """The name of the file that is judged."""
        return self.target or self.name


@dataclass(frozen=True)
class Library:
    """Versions of a library from Debian's packages, and the command that uses it: `{file}` is the library, `{folder}`
    what is beside it."""

    name: str
    package: str
    target: str
    command: Sequence[str]
    language: str = "C library"

    @property
    def file(self) -> str:
        """The name of the file that is judged."""
        return self.target


@dataclass(frozen=True)
class Build:
    """A build of a program: the folder that has it alone, and the machine's command that runs it from `place`."""

    subject: Program | Library
    variant: str
    folder: Path

    @property
    def file(self) -> Path:
        """The file that is judged."""
        return self.folder / self.subject.file


def programs(folder: Path) -> list[Program]:
    """Our own, and those of others whose sources are below `folder`."""
    own = [Program(p.stem, LANGUAGES[p.suffix], sources=[p.name]) for p in sorted(OWN.iterdir()) if p.suffix in LANGUAGES]
    text = str(folder / "text")
    others = [
        ("bzip2", "bzip2-*", ["blocksort.c", "huffman.c", "crctable.c", "randtable.c", "compress.c", "decompress.c", "bzlib.c", "bzip2.c"], ["-k", "-c", text], []),
        ("minigzip", "zlib-*", ["*.c", "test/minigzip.c"], ["-9", "-c", text], ["."]),
        ("lz4", "lz4-*", ["lib/*.c", "programs/*.c"], ["-9", "-f", "-k", text, os.devnull], ["lib"]),
    ]
    found = []
    for name, where, sources, arguments, include in others:
        roots = sorted((folder / "sources").glob(where))
        if roots:
            found.append(Program(name, "C", roots[0], sources, arguments, include))
    return own + found


LANGUAGES = {".c": "C", ".cc": "C++", ".go": "Go", ".rs": "Rust"}
PYTHON = "import json,re,random;random.seed(1);[json.loads(json.dumps([{'k%d'%j:random.random() for j in range(50)}])) and re.findall('[0-9]+', str(i)*50) and sorted(str(i*7919)*9) for i in range(9000)]"  # fmt: skip


def libraries(folder: Path) -> list[Library]:
    """Those of Debian whose packages may be in `folder`."""
    return [
        Library("libcrypto", "libssl3", "libcrypto.so.3", ["openssl", "speed", "-seconds", "1", "rsa1024", "ecdsap384"]),
        Library("libpython", "libpython3.11", "libpython3.11.so.1.0", [str(folder / "python"), "-I", "-c", PYTHON]),
        Library("libc", "libc6", "libc.so.6", ["{folder}/ld-linux-x86-64.so.2", "--library-path", "{folder}", str(folder / "builds/words/gcc/words"), SECONDS]),
        Library("libbrotli", "libbrotli1", "libbrotlienc.so.1", ["brotli", "-9", "-f", "-o", os.devnull, str(folder / "text")]),
    ]  # fmt: skip


def run(command: Sequence[str | Path], cwd: Path | None = None, **environment: str) -> None:
    """Run a command; raises Missing."""
    try:
        done = subprocess.run(
            [*map(str, command)], capture_output=True, cwd=cwd, env=os.environ | environment, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        raise Missing(f"{command[0]} is not installed") from error
    if done.returncode:
        raise Missing(f"{command[0]}: exit code {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")


def prepare(folder: Path) -> None:
    """What the programs work on."""
    folder.mkdir(parents=True, exist_ok=True)
    state, words = 1, []
    for _ in range(400_000):
        state = (state * 1103515245 + 12345) % (1 << 31)
        words.append(f"{'etaoinshr'[state % 9]}{state >> 12:x}"[: 2 + (state >> 8) % 6])
    (folder / "text").write_text(" ".join(words) * 4)
    source = folder / "python.c"
    source.write_text("int Py_BytesMain(int, char **);\nint main(int c, char **v) { return Py_BytesMain(c, v); }\n")


def variants(program: Program) -> Sequence[str]:
    """The names of the builds of a program."""
    if program.root != OWN:
        return [*FLAGS, "early", "middle", "late"]
    edits = [*EDITS, "constant"]
    return {"Go": ["go", "unoptimized", *edits], "Rust": [*RUST, *edits]}.get(program.language, [*FLAGS, *edits])


def edited(text: str, variant: str) -> str:
    """The source of one of our programs in a build."""
    if variant == "constant":
        return re.sub(r"(\bSTEP\b[^=\n]*= )(\d+)", lambda found: f"{found[1]}{int(found[2]) + 2}", text, count=1)
    return re.sub(rf"^// {variant}: ", "", text, flags=re.MULTILINE)


def build(program: Program, variant: str, folder: Path) -> Build:
    """A build of a program in FOLDER/builds, made unless it is there; raises Missing."""
    result = Build(program, variant, folder / "builds" / program.name / variant)
    if result.file.exists():
        return result
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(program.root, work, symlinks=True)
    result.folder.mkdir(parents=True, exist_ok=True)
    paths = [path for pattern in program.sources for path in sorted(work.glob(pattern))]
    if program.root == OWN:
        paths[0].write_text(edited(paths[0].read_text(), variant))
    elif variant in ("early", "middle", "late"):
        path = paths[{"early": 0, "middle": len(paths) // 2, "late": -1}[variant]]
        added = ADDED.format(name=variant)
        text = path.read_text(errors="surrogateescape")
        path.write_text(added + text if variant == "early" else text + added, errors="surrogateescape")
    made = result.folder / "made"
    if program.language == "Go":
        digest = hashlib.sha1(f"{program.name} {variant}".encode()).hexdigest()
        flags = ["-gcflags=-N -l"] if variant == "unoptimized" else []
        run(["go", "build", *flags, f"-ldflags=-B 0x{digest}", "-o", made, paths[0]], GOFLAGS="-mod=mod", GO111MODULE="off")
    elif program.language == "Rust":
        options = ["-C", f"opt-level={RUST.get(variant, '2')}", "-C", "link-arg=-Wl,--build-id=sha1", "-C", "strip=debuginfo"]
        run(["rustc", "--edition", "2021", *options, "-o", made, paths[0]])
    else:
        compiler, level = FLAGS.get(variant, FLAGS["gcc"])
        compiler = CXX[compiler] if program.language == "C++" else compiler
        include = [f"-I{work / each}" for each in program.include]
        options = [level, "-w", "-D_GNU_SOURCE", "-Wl,--build-id=sha1", *include]
        run([compiler, *options, "-o", made, *paths, "-lm"], cwd=work)
    made.rename(result.file)
    return result


def builds(program: Program, folder: Path) -> Iterator[Build]:
    """All builds of a program."""
    for variant in variants(program):
        yield build(program, variant, folder)


def unpacked(library: Library, folder: Path) -> Iterator[Build]:
    """The versions of a library whose packages are in FOLDER/packages."""
    for package in sorted((folder / "packages").glob(f"{library.package}_*.deb")):
        result = Build(library, package.name.split("_")[1], folder / "builds" / library.name / package.name.split("_")[1])
        if not result.file.exists():
            work = folder / "work"
            shutil.rmtree(work, ignore_errors=True)
            run(["dpkg-deb", "-x", package, work])
            result.folder.mkdir(parents=True, exist_ok=True)
            for path in work.rglob("*.so*"):
                if path.is_file() and path.parent.name == "x86_64-linux-gnu":
                    shutil.copy(path.resolve(), result.folder / path.name)
        if library.name == "libpython":
            run(["gcc", "-o", folder / "python", folder / "python.c", result.file, "-lm"])
        yield result


def record(made: Build, folder: Path) -> dict[str, Path]:
    """The recordings of a build in FOLDER/recordings, made unless they are there: by kind, `pointers` with stacks along
    frame pointers, `copies` with copies of stacks, and of other recorders; raises Missing."""
    subject = made.subject
    where = folder / "recordings" / subject.name / made.variant
    names = {"pointers": "pointers.data", "copies": "copies.data"}
    if subject.language in ("C", "C++") and LIBPROFILER.exists():
        names["gperftools"] = "gperftools.prof"
    if subject.language == "Go":
        names["go"] = "go.pb.gz"
    result = {kind: where / name for kind, name in names.items()}
    if all(path.exists() for path in result.values()):
        return result
    place = folder / "run" / subject.name  # the same for all builds, so that paths tell nothing
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(made.folder, place)
    where.mkdir(parents=True, exist_ok=True)
    environment = {}
    if isinstance(subject, Library):
        command = [each.format(folder=place) for each in subject.command]
        if subject.name != "libc":
            environment = {"LD_LIBRARY_PATH": str(place), "PYTHONHOME": "/usr"}
    else:
        command = [str(place / subject.file), *subject.arguments]
    perf = ["perf", "record", "-q", "-N", "-e", "cpu-clock"]
    run([*perf, "-F", FREQUENCY, "-g", "-o", result["pointers"], "--", *command], **environment)
    graph = f"dwarf,{STACK_SIZE}"
    run([*perf, "-F", STACK_FREQUENCY, "--call-graph", graph, "-o", result["copies"], "--", *command], **environment)
    if "gperftools" in result:
        profiler = {"CPUPROFILE": str(result["gperftools"]), "CPUPROFILE_FREQUENCY": "1000"}
        run(command, **profiler, LD_PRELOAD=str(LIBPROFILER))
    if "go" in result:
        run([*command, str(result["go"])])
    return result
