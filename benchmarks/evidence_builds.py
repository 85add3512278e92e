"""Builds of programs that differ little, and recordings of each: what `evidence.py` judges.

The sources are those of `programs/evidence/` and, below FOLDER/sources and FOLDER/packages where they are there, source
packages of Debian, unpacked, and versions of its libraries (`apt-get source`, `apt-get download`).
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

OWN = Path(__file__).with_name("programs") / "evidence"
SECONDS = "0.7"
SEED = 7
FREQUENCY, STACK_FREQUENCY = "2000", "700"
STACK_SIZE = 8192
LIBPROFILER = Path("/usr/lib/x86_64-linux-gnu/libprofiler.so.0")

EDITS = ("early", "late", "split")
"""Lines of our own programs that a build of this name has."""
ADDED = "\nstatic __attribute__((noinline, used)) int added_{name}(int x) {{ return x * 31 % 977 + (x >> 2) * x; }}\n"
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
    """Versions of a library from Debian's packages, and the command that uses it, where `{place}` is the folder of the
    library."""

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
    own = [
        Program(path.stem, LANGUAGES[path.suffix], sources=[path.name])
        for path in sorted(OWN.iterdir())
        if path.suffix in LANGUAGES
    ]
    others = [(root, each) for each in OTHERS for root in sorted((folder / "sources").glob(str(each.root)))]
    return own + [
        replace(each, root=root, arguments=[text.format(folder=folder) for text in each.arguments])
        for root, each in others
    ]


LANGUAGES = {".c": "C", ".cc": "C++", ".go": "Go", ".rs": "Rust"}
BZIP2 = ("blocksort", "huffman", "crctable", "randtable", "compress", "decompress", "bzlib", "bzip2")
OTHERS = (
    Program("bzip2", "C", Path("bzip2-*"), [f"{name}.c" for name in BZIP2], ["-k", "-c", "{folder}/text"]),
    Program("minigzip", "C", Path("zlib-*"), ["*.c", "test/minigzip.c"], ["-9", "-c", "{folder}/text"], ["."]),
    Program(
        "lz4", "C", Path("lz4-*"), ["lib/*.c", "programs/*.c"], ["-9", "-f", "-k", "{folder}/text", os.devnull], ["lib"]
    ),
)
"""Programs of Debian's source packages: `root` is their folder below FOLDER/sources."""

PYTHON = """
import json, random, re
random.seed(1)
for i in range(6000):
    json.loads(json.dumps([{f"k{j}": random.random() for j in range(50)}]))
    re.findall("[0-9]+", str(i) * 50), sorted(str(i * 7919) * 9)
"""
EMBEDDED = "int Py_BytesMain(int, char **);\nint main(int c, char **v) { return Py_BytesMain(c, v); }\n"
LOADER = ("{place}/ld-linux-x86-64.so.2", "--library-path", "{place}", "{folder}/builds/words/gcc/words", SECONDS)
SPEED = ("openssl", "speed", "-seconds", "1", "rsa1024", "ecdsap384")
LIBRARIES = (
    Library("libcrypto", "libssl3", "libcrypto.so.3", SPEED),
    Library("libpython", "libpython3.11", "libpython3.11.so.1.0", ("{folder}/python", "-I", "-c", PYTHON)),
    Library("libc", "libc6", "libc.so.6", LOADER),
)


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
    """Run a command; raises Missing."""
    try:
        done = subprocess.run(
            [*map(str, command)],
            capture_output=True,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
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
    (folder / "python.c").write_text(EMBEDDED)


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
    return re.sub(rf"^( *)// {variant}: ", r"\1", text, flags=re.MULTILINE)


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
        command = ["go", "build", *flags, f"-ldflags=-B 0x{digest}", "-o", str(made), str(paths[0])]
        run(command, {"GO111MODULE": "off"})
    elif program.language == "Rust":
        options = [
            "-C",
            f"opt-level={RUST.get(variant, '2')}",
            "-C",
            "link-arg=-Wl,--build-id=sha1",
            "-C",
            "strip=debuginfo",
        ]
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
        result = Build(
            library, package.name.split("_")[1], folder / "builds" / library.name / package.name.split("_")[1]
        )
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
    if made.variant == "gcc" and LIBPROFILER.exists():
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
        command = [each if each is PYTHON else each.format(place=place, folder=folder) for each in subject.command]
        if subject.name != "libc":
            environment = {"LD_LIBRARY_PATH": str(place), "PYTHONHOME": "/usr"}
    else:
        command = [str(place / subject.file), *subject.arguments]
    perf = ["perf", "record", "-q", "-N", "-e", "cpu-clock"]
    run([*perf, "-F", FREQUENCY, "-g", "-o", result["pointers"], "--", *command], environment)
    graph = f"dwarf,{STACK_SIZE}"
    run([*perf, "-F", STACK_FREQUENCY, "--call-graph", graph, "-o", result["copies"], "--", *command], environment)
    if "gperftools" in result:
        profiler = {
            "CPUPROFILE": str(result["gperftools"]),
            "CPUPROFILE_FREQUENCY": "1000",
            "LD_PRELOAD": str(LIBPROFILER),
        }
        run(command, profiler)
    if "go" in result:
        run([*command, str(result["go"])])
    return result
