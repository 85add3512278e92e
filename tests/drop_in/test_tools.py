"""Other programs give the same output with this program in the place of llvm-symbolizer and addr2line."""

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.tool_folders import (
    Tools,
    address_only,
    addresses_inside,
    build_pprof,
    function_bounds,
    real,
    stand_in,
)

PROGRAMS = Path(__file__).parent / "programs"
LLVM = shutil.which("llvm-symbolizer-19") or ""
RUSTC = shutil.which("rustc") or shutil.which("rustc", path=str(Path.home() / ".cargo" / "bin")) or ""
CLANG = shutil.which("clang++-19") or ""
PERF = shutil.which("perf") or ""
PERL_PPROF = shutil.which("google-pprof") or ""
needs_llvm = pytest.mark.skipif(not LLVM, reason="llvm-symbolizer-19 is not installed")
needs_pprof = pytest.mark.skipif(not shutil.which("go"), reason="pprof is built with go, which is not installed")
needs_binutils = pytest.mark.skipif(not shutil.which("addr2line"), reason="addr2line is not installed")
COUNT = 150
"""Addresses in a profile."""
FEW = COUNT // 10


class Subject(NamedTuple):
    """A binary, the file with its symbols, a function whose source lines are listed, options to find these, and at
    how many addresses names may differ."""

    path: Path
    symbols: Path
    listed: str
    options: tuple[str, ...] = ()
    differing: int = 0

    def profile(self, folder: Path) -> Path:
        """A profile of addresses in the functions of the binary."""
        result = folder / f"{self.path.name}.pb"
        result.write_bytes(address_only(self.path, addresses_inside(function_bounds(self.symbols), COUNT)))
        return result


SOURCES = "-trim_path=/src", f"-source_path={FIXTURES / 'src'}"


def fixture(variant: str, name: str, listed: str, differing: int = 0) -> Callable[[Path], Subject]:
    """A committed binary, with its debug information."""
    path = BINARIES / variant / name
    return lambda folder: Subject(path, path, listed, SOURCES, differing)


def split(variant: str, name: str, listed: str, differing: int = 0) -> Callable[[Path], Subject]:
    """A committed binary without symbols, with its debug file beside it."""

    def copied(folder: Path) -> Subject:
        path, debug = folder / name, folder / f"{name}.debug"
        shutil.copy(BINARIES / variant / "stripped" / name, path)
        shutil.copy(BINARIES / variant / "debug" / debug.name, debug)
        return Subject(path, debug, listed, SOURCES, differing)

    return copied


def rust(folder: Path) -> Subject:
    """A program built with rustc."""
    if not RUSTC:
        pytest.skip("rustc is not installed")
    path = folder / "shelf"
    subprocess.run([RUSTC, "-O", "-g", "-o", path, PROGRAMS / "shelf.rs"], check=True)
    return Subject(path, path, "shelf::Shelf.*::add", differing=FEW)


def go(folder: Path) -> Subject:
    """A program built with Go."""
    path = folder / "census"
    subprocess.run(["go", "build", "-buildvcs=false", "-o", path], cwd=FIXTURES / "src" / "census", check=True)
    return Subject(path, path, "main[.]", differing=FEW)


SUBJECTS = {
    "c": split("headers", "libwalk-x86_64.so", "walk"),
    "c++": fixture("clang-pie", "spectra", "describe_window"),
    "c++-gcc": fixture("gcc-pie", "ledger", "price_list"),
    "c++-library": fixture("gcc-pie", "libresonance.so", "normalize", 23),
    "rust": rust,
    "go": go,
    "zstd": fixture("clang-gz-zstd", "spectra", "describe_window"),
    "zlib": fixture("gcc-gz-zlib", "ledger", "price_list"),
    "split": split("gcc-split", "ledger", "price_list", COUNT),
}


@pytest.fixture(scope="module", params=SUBJECTS)
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """Each of the binaries."""
    return SUBJECTS[request.param](tmp_path_factory.mktemp("binary"))


@pytest.fixture(scope="module")
def pprof(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program pprof."""
    return build_pprof(tmp_path_factory.mktemp("pprof"))


class Reports(NamedTuple):
    """What pprof prints: for each address of `-raw` its frames, `-top` by function, and `-list`."""

    raw: dict[int, list[str]]
    top: dict[str, str]
    listed: str


def reports(pprof: Path, tools: Tools, subject: Subject, profile: Path) -> Reports:
    """Three reports of one run of pprof, which finds its tools in a folder."""
    commands = f"nodecount=0\nnodefraction=0\nraw\ntop\nlist {subject.listed}\n"
    variables = tools.environment(PPROF_TOOLS=str(tools.folder), PPROF_BINARY_PATH=str(tools.folder / "none"))
    run = subprocess.run(
        [pprof, *subject.options, profile],
        input=commands,
        capture_output=True,
        text=True,
        check=True,
        env=variables,
        timeout=300,
    )
    before, _, rest = run.stdout.partition("\nMappings\n")
    rest, _, listed = rest.partition("\nROUTINE ")
    listed = listed.partition("\n")[2]  # behind the name
    rows = re.findall(r"^ +(\S+) +\S+ +\S+ +(\S+) +\S+  (.+)$", rest, re.MULTILINE)
    return Reports(raw_frames(before), {name: f"{flat} {total}" for flat, total, name in rows}, listed)


def raw_frames(text: str) -> dict[int, list[str]]:
    """The frames of each location of `-raw`, innermost first, as `LINKED NAME FILE:LINE`."""
    result: dict[int, list[str]] = {}
    frames: list[str] = []
    for line in text.partition("\nLocations\n")[2].splitlines():
        match = re.fullmatch(r"(?: +\d+: 0x([0-9a-f]+) M=\d+)? *(?:(.*) (\S*):(\d+) s=0(?:\((.*)\))?)?", line)
        assert match is not None, line
        if match[1]:
            frames = result.setdefault(int(match[1], 16), [])
        if match[2]:
            # addr2line has `?` for an unknown line, which pprof takes for a part of the path.
            path = re.sub(r"^\?\?$", "", match[3].removesuffix(":?").replace("/./", "/"))
            frames.append(f"{match[5] or match[2]} {path}:{match[4]}")
    return result


def is_settled(ours: list[str], theirs: list[str], bounds: dict[str, tuple[int, int]]) -> bool:
    """Whether frames differ in names only, and these as R384, what drop-ins leave out, says: of aliases another one is
    named, Go's functions have no `.abi0` of the linker, and symbols of debug files have fuller names than DWARF."""

    def is_one(name: str, other: str) -> bool:
        if name == other or f"{name}.abi0" == other or (name in bounds and bounds[name] == bounds.get(other)):
            return True
        own = other.partition("<")[0].removeprefix("~")
        return name in bounds and other not in bounds and (f"{len(own)}{own}" in name or own == "operator()")

    if not theirs:
        return len(ours) == 1 and ours[0].removesuffix(" :0") in bounds
    pairs = [(a.rsplit(" ", 1), b.rsplit(" ", 1)) for a, b in zip(ours, theirs, strict=False)]
    return len(ours) == len(theirs) and all(a[1] == b[1] and is_one(a[0], b[0]) for a, b in pairs)


@needs_llvm
@needs_pprof
def test_pprof(pprof: Path, subject: Subject, tmp_path: Path) -> None:
    """pprof, which asks llvm-symbolizer, prints the same frames, totals and source lines; where names differ, ours is
    better."""
    tools = stand_in(tmp_path / "ours", "llvm-symbolizer", "nm")
    profile = subject.profile(tmp_path)
    ours = reports(pprof, tools, subject, profile)
    theirs = reports(pprof, real(tmp_path / "llvm", f"llvm-symbolizer={LLVM}", "nm"), subject, profile)
    assert tools.starts and set(tools.starts) == {"llvm-symbolizer --inlining -demangle=false"}
    assert list(ours.raw) == list(theirs.raw) and len(ours.raw) > COUNT // 2
    differing = {each for each, frames in ours.raw.items() if frames != theirs.raw[each]}
    bounds = function_bounds(subject.symbols)
    assert all(is_settled(ours.raw[each], theirs.raw[each], bounds) for each in differing)
    assert len(differing) <= subject.differing
    assert ours.listed == theirs.listed and len(ours.listed) > 300
    if subject.differing < COUNT:
        named = ours.top.keys() & theirs.top.keys()
        assert len(named) >= len(theirs.top) - len(differing)
        assert [ours.top[each] for each in named] == [theirs.top[each] for each in named]
