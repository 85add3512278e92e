"""The shell commands of the documentation, and a folder in which they find the files that they name."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import symbolize
from tests.support import perfetto_traces as t
from tests.support import perfetto_writer as w
from tests.support.pprof_writer import Line, Mapping, Place, profile

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]

BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?:sh|console)\n(?P<text>.*?)^```$"
    r"(?:\n\n```\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
"""Commands, perhaps below a comment that says why no test runs them, and above what they print."""

LEDGER_ID = "5e3ede9cfcac812af078bd0cfe366fe00b102526"
GPERFTOOLS, PERF, GO, OTLP = (Path("fixtures/profiles") / name for name in ("gperftools", "perf", "go", "otlp"))
FILES = {
    "README.md": Path("README.md"),
    "binary_cache": Path("fixtures/simpleperf/binaries"),
    "build": Path("fixtures/bin/gcc-pie"),
    "builds/new": Path("fixtures/bin/gcc-pie"),
    "builds/old": Path("fixtures/bin/clang-pie"),
    "cpu.pb.gz": PERF / "spectra-gcc-pie.pb.gz",
    "cpu.prof": GPERFTOOLS / "ledger-gcc-pie.prof",
    "fixtures": Path("fixtures"),
    "go.pb.gz": GO / "census.pb.gz",
    "kernel/vmlinux-6.1.0": Path("fixtures/bin/gcc-pie/spectra"),
    "libraries/libresonance.so": Path("fixtures/bin/gcc-pie/libresonance.so"),
    **{f"new{number}.prof": GPERFTOOLS / "ledger-gcc-pie.prof" for number in ("", 1, 2, 3)},
    "perf.data": Path("fixtures/profiles/perf_data/frames.data"),
    "profile.json.gz": Path("fixtures/profiles/firefox/v75.json.gz"),
    **{f"old{number}.prof": GPERFTOOLS / "ledger-clang-pie.prof" for number in ("", 1, 2, 3)},
    "profiles/host-1/cpu.prof": GPERFTOOLS / "ledger-gcc-pie.prof",
    "profiles/host-2/cpu.pb.gz": PERF / "spectra-gcc-pie.pb.gz",
    "report.proto": Path("fixtures/simpleperf/mixer.proto"),
    "rootfs/opt/ledger/bin/ledger": Path("fixtures/bin/gcc-pie/ledger"),
    "spectra.otlp": OTLP / "spectra-gcc-pie.otlp",
    "src": Path("fixtures/src"),
}
"""What the names in commands are, by files of a checkout."""

SUBSTITUTIONS = {
    r"https://debuginfod\.[\w.]+": "{server}",
    r"/usr/lib/(x86_64-linux-gnu|debug)\b": "libraries",
}
"""What a test cannot use as it is in a command, and what it uses instead."""


WARNING = re.compile(r"^symbolize: warning.*\n", re.MULTILINE)
LIMIT = 120
"""Seconds for a block."""


class Block(NamedTuple):
    """A block of commands, the line of the page that it begins on, why it is not run, if so, and what it prints, if the
    page says so."""

    line: int
    text: str
    reason: str
    output: str


def blocks(page: Path) -> list[Block]:
    """The blocks of commands of a page."""
    text = page.read_text()
    return [
        Block(text.count("\n", 0, match.start("text")), match["text"], match["reason"] or "", match["output"] or "")
        for match in BLOCK.finditer(text)
    ]


def substituted(text: str, server: str) -> str:
    """Commands with what a test can use."""
    for pattern, instead in SUBSTITUTIONS.items():
        text = re.sub(pattern, instead.format(server=server), text)
    return text


class Result(NamedTuple):
    """The exit code of a block, and what it printed to standard output and standard error, without warnings."""

    code: int
    printed: str


def run_blocks(page: Path, folder: Path, server: str) -> Iterator[tuple[Block, Result]]:
    """Run the blocks of a page, one after another, with files and programs that are put into `folder`."""
    lay_out(work := folder / "work")
    variables = dict(environment(programs(folder / "bin"), folder))
    for block in blocks(page):
        if block.reason:
            continue
        command = ["bash", "-euo", "pipefail", "-c", substituted(block.text, server)]
        both = subprocess.STDOUT
        run = subprocess.run(
            command, cwd=work, env=variables, stdout=subprocess.PIPE, stderr=both, text=True, timeout=LIMIT
        )
        yield block, Result(run.returncode, WARNING.sub("", run.stdout))


DUMPS = (("app.0001.heap", "jeprof.4242.0.i0.heap"), ("app.0002.heap", "jeprof.4242.1.i1.heap"))
"""Dumps of heaps as text, the first of each series and the second."""


def lay_out(folder: Path) -> None:
    """Make the files that commands name."""
    for name, origin in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == "fixtures":
            path.symlink_to(ROOT / origin)
        elif (ROOT / origin).is_dir():
            shutil.copytree(ROOT / origin, path)
        else:
            shutil.copy(ROOT / origin, path)
    (folder / "mapping.txt").write_text("com.acme.Codec -> a.a.a:\n    1:3:int encode(int):20:22 -> a\n")
    (folder / "trace.pftrace").write_bytes(trace())
    for number, name in enumerate(("heap.pb.gz", "heap-1.pb.gz", "heap-2.pb.gz"), 1):
        (folder / name).write_bytes(gzip.compress(heap(number)))
    for number, names in enumerate(DUMPS, 1):
        for name in names:
            stacks = f"{number}: {number << 10} [{number}: {number << 10}] @ 0x1300 0x1900\n"
            head = f"heap profile: {stacks.partition(' @')[0]} @ heapprofile\n"
            (folder / name).write_text(f"{head}  {stacks}MAPPED_LIBRARIES:\n")


def heap(number: int) -> bytes:
    """A heap profile in which one function holds more from one to the next."""
    types = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
    main = Place(0x1900, 1, (Line("main", "/src/ledger/main.cc", 90),))
    stacks = [
        ([Place(0x1300, 1, (Line("load", "/src/ledger/main.cc", 40),)), main], (9, 9 << 10, number, number << 10)),
        ([Place(0x1500, 1, (Line("parse", "/src/ledger/formula.cc", 60),)), main], (99, 99 << 10, 1, 1 << 10)),
    ]
    mapping = Mapping(0x1000, 0x3000, 0x1000, "/opt/ledger/bin/ledger", LEDGER_ID, (True, True, True, False))
    return profile([mapping], stacks, types, "inuse_space")


def trace() -> bytes:
    """A Perfetto trace with heap dumps and CPU samples of one process."""
    state = w.interned(**t.NAMES | {"builds": {1: bytes.fromhex(LEDGER_ID)}})
    samples = b"".join(w.perf_sample(stack) for stack in (1, 2, 3, 2))
    dump = w.heap_packet([w.heap_dump(7, [w.heap_sample(2, 100, 40, 3, 1), w.heap_sample(3, 50, 0, 1)])], index=0)
    return t.born(7, "com.example.app", 1) + w.packet(1, w.CLEARED, state) + samples + dump


def programs(folder: Path) -> Path:
    """A folder with the programs `symbolize` and `python` that are tested."""
    folder.mkdir()
    for name, module in (("symbolize", "-m symbolize"), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def environment(programs: Path, home: Path) -> Iterator[tuple[str, str]]:
    """The environment for commands: the programs first, no files of the user, and no browser."""
    yield "PATH", f"{programs}:{os.environ.get('PATH', os.defpath)}"
    yield "PYTHONPATH", str(Path(symbolize.__file__).parents[1])
    yield "HOME", str(home)
    yield "LANG", "C.UTF-8"
    yield "BROWSER", "true"
    yield "SYMBOLIZE_NO_CONFIG", "1"
    yield "XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME", str(home / "cache"))
