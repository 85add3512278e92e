"""Other programs give the same output with this program in the place of llvm-symbolizer and addr2line."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import gperftools_writer
from tests.support.fixture_files import BINARIES, FIXTURES, segments
from tests.support.needs import find
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
LLVM = find("llvm-symbolizer-19")
COUNT = 150
"""Addresses in a profile."""
FEW = COUNT // 10
AS_BINUTILS = "libwalk-x86_64.so", "shelf"
"""Binaries of C and Rust, in which binutils finds all that LLVM finds."""


class Subject(NamedTuple):
    """A binary, the file with its symbols, a function whose source lines are listed, options to find these, and at
    how many addresses names may differ."""

    path: Path
    symbols: Path
    listed: str
    options: tuple[str, ...] = ()
    differing: int = 0


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
    path = folder / "shelf"
    subprocess.run([find("rustc"), "-O", "-g", "-o", path, PROGRAMS / "shelf.rs"], check=True)
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
SUBJECT_PARAMS = [
    pytest.param(name, marks=pytest.mark.needs("rustc", "gcc") if name == "rust" else ()) for name in SUBJECTS
]


@pytest.fixture(scope="module", params=SUBJECT_PARAMS)
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


@pytest.fixture(scope="module")
def profile(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of addresses in the functions of the binary."""
    result = tmp_path_factory.mktemp("profile") / "addresses.pb"
    result.write_bytes(address_only(subject.path, addresses_inside(function_bounds(subject.symbols), COUNT)))
    return result


@pytest.fixture(scope="module")
def llvm(pprof: Path, subject: Subject, profile: Path, tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """What pprof prints with LLVM's symbolizer."""
    tools = real(tmp_path_factory.mktemp("llvm") / "tools", f"llvm-symbolizer={LLVM}", "nm")
    return reports(pprof, tools, subject, profile)


@pytest.mark.needs("llvm-symbolizer-19", "go", "nm")
@pytest.mark.full
def test_pprof(pprof: Path, subject: Subject, profile: Path, llvm: Reports, tmp_path: Path) -> None:
    """pprof, which asks llvm-symbolizer, prints the same frames, totals and source lines; names may differ where ours
    is better."""
    tools = stand_in(tmp_path / "ours", "llvm-symbolizer", "nm")
    ours = reports(pprof, tools, subject, profile)
    assert tools.starts and set(tools.starts) == {"llvm-symbolizer --inlining -demangle=false"}
    assert list(ours.raw) == list(llvm.raw) and len(ours.raw) > COUNT // 2
    differing = {each for each, frames in ours.raw.items() if frames != llvm.raw[each]}
    bounds = function_bounds(subject.symbols)
    assert all(is_settled(ours.raw[each], llvm.raw[each], bounds) for each in differing)
    assert len(differing) <= subject.differing
    assert ours.listed == llvm.listed and len(ours.listed) > 300
    if subject.differing < COUNT:
        named = ours.top.keys() & llvm.top.keys()
        assert len(named) >= len(llvm.top) - len(differing)
        assert [ours.top[each] for each in named] == [llvm.top[each] for each in named]


@pytest.mark.needs("llvm-symbolizer-19", "addr2line", "go", "nm")
@pytest.mark.full
def test_pprof_with_addr2line(pprof: Path, subject: Subject, profile: Path, llvm: Reports, tmp_path: Path) -> None:
    """Where pprof finds addr2line only, it prints what it prints with that of binutils or, where this is wrong, with
    LLVM's symbolizer."""
    tools = stand_in(tmp_path / "ours", "addr2line", "nm")
    ours = reports(pprof, tools, subject, profile)
    gnu = reports(pprof, real(tmp_path / "gnu", "addr2line", "nm"), subject, profile)
    assert tools.starts and set(tools.starts) == {f"addr2line -aif -e {subject.path}"}
    assert list(ours.raw) == list(gnu.raw) == list(llvm.raw)
    differing = {each for each, frames in ours.raw.items() if frames != gnu.raw[each]}
    bounds = function_bounds(subject.symbols)
    assert all(is_settled(ours.raw[each], llvm.raw[each], bounds) for each in differing)
    assert ours.listed in (gnu.listed, llvm.listed) and len(ours.listed) > 300
    assert not differing or subject.path.name not in AS_BINUTILS
    if not differing:
        assert ours.top == gnu.top and len(ours.top) > 4


@pytest.mark.needs("google-pprof", "addr2line", "nm", "objdump", "c++filt")
@pytest.mark.parametrize("unit", ["lines", "functions"])
@pytest.mark.full
def test_perl_pprof(unit: str, tmp_path: Path) -> None:
    """The pprof of gperftools, which asks addr2line, prints the same totals of functions and lines (R384: no `/./`)."""
    path = BINARIES / "clang-nopie-dwarf4-lld" / "spectra"
    ((offset, vaddr, size),) = segments(path)
    start = vaddr & -0x1000
    maps = f"{start:x}-{start + (size + 0x1FFF & -0x1000):x} r-xp {offset & -0x1000:08x} 00:00 0 {path}\n"
    vaddrs = addresses_inside(function_bounds(path), COUNT)
    profile = tmp_path / "spectra.prof"
    profile.write_bytes(gperftools_writer.profile([(1, [each]) for each in vaddrs], maps.encode()))

    def totals(tools: Tools) -> str:
        variables = tools.environment(PATH="/usr/bin:/bin", PPROF_TOOLS=f"{tools.folder}/")
        command = [find("google-pprof"), "--text", f"--{unit}", path, profile]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=variables).stdout

    others = "nm", "objdump", "c++filt"
    tools = stand_in(tmp_path / "ours", "addr2line", *others)
    ours = totals(tools)
    assert f"addr2line -f -C -e {path} -i" in tools.starts
    assert ours == totals(real(tmp_path / "gnu", "addr2line", *others)).replace("/./", "/")
    assert ours.count("\n") > 30


@pytest.mark.needs("perf", "addr2line")
@pytest.mark.full
def test_perf(tmp_path: Path) -> None:
    """perf, which asks addr2line, prints the same functions and source lines of a recording, inlined ones too."""
    installed = tmp_path / "root" / "opt" / "spectra"
    for folder, name in (("bin", "spectra"), ("lib", "libresonance.so")):
        (installed / folder).mkdir(parents=True)
        shutil.copy(BINARIES / "gcc-pie" / name, installed / folder)
    options = "-F", "comm,ip,sym,dso,srcline", f"--symfs={tmp_path / 'root'}"
    file = FIXTURES / "profiles" / "perf_data" / "ids.data"

    def frames(tools: Tools) -> list[str]:
        variables = tools.environment(PATH=f"{tools.folder}:/usr/bin:/bin")
        command = ["perf", "script", *options, "-i", file]  # it looks first in the folder of a path to itself
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=variables)
        return perf_frames(run.stdout)

    tools = stand_in(tmp_path / "ours", "addr2line")
    ours = frames(tools)
    if not tools.starts:
        pytest.skip("this perf asks no addr2line, as that of Debian does: apt-get install linux-perf")
    assert ours == frames(real(tmp_path / "gnu", "addr2line"))
    assert len(ours) > 100 and any("resonance.h:" in each for each in ours)


def perf_frames(text: str) -> list[str]:
    """The frames in the output of `perf script` that are of the recorded program or were inlined into one of these."""
    found: list[str] = []
    inlined: list[str] = []
    for frame in re.findall(r"^\t.*(?:\n  .*)?", text, re.MULTILINE):
        inlined.append(frame)
        if "(inlined)" not in frame:
            found += inlined if "(/opt/spectra/" in frame else []
            inlined = []
    return found


MISTAKES = {
    "behind": "heap-buffer-overflow",
    "after": "heap-use-after-free",
    "on": "stack-buffer-overflow",
    "too": "signed integer overflow",
}
"""What the program with mistakes can be asked for, and how sanitizers call it."""


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with mistakes that sanitizers find."""
    path = tmp_path_factory.mktemp("program") / "shelf"
    flags = "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"
    subprocess.run([find("clang++-19"), *flags, "-o", path, PROGRAMS / "shelf.cc"], check=True, capture_output=True)
    return path


def comparable(report: str) -> str:
    """A report without what differs from run to run, and with one name of two that the C library has for a function."""
    text = re.sub("==[0-9]+==", "==PID==", re.sub("0x[0-9a-f]+", "0x", report))
    return text.replace("__libc_start_main_impl", "__libc_start_main")


@pytest.mark.needs("llvm-symbolizer-19", "clang++-19", "libclang_rt.asan")
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.full
def test_sanitizers(mistake: str, mistaken: Path, tmp_path: Path) -> None:
    """The reports of the address and undefined-behaviour sanitizers are equal."""

    def report(tools: Tools) -> str:
        symbolizer = str(tools.folder / "llvm-symbolizer")
        variables = tools.environment(ASAN_SYMBOLIZER_PATH=symbolizer, UBSAN_OPTIONS="print_stacktrace=1")
        return subprocess.run(
            [mistaken, mistake], capture_output=True, text=True, check=False, env=variables, timeout=300
        ).stderr

    tools = stand_in(tmp_path / "ours", "llvm-symbolizer")
    ours = report(tools)
    assert tools.starts == ["llvm-symbolizer --demangle --inlines --default-arch=x86_64"]
    assert comparable(ours) == comparable(report(real(tmp_path / "llvm", f"llvm-symbolizer={LLVM}")))
    assert MISTAKES[mistake] in ours and re.search(r"#[01] .* in .*shelf.cc:\d+:\d+\n", ours)


@pytest.mark.needs("llvm-symbolizer-19", "clang++-19", "libclang_rt.asan", "asan_symbolize-19")
@pytest.mark.full
def test_asan_symbolize(mistaken: Path, tmp_path: Path) -> None:
    """asan_symbolize puts the same names into a report that has none."""
    alone = {"ASAN_OPTIONS": "symbolize=0", "PATH": str(tmp_path)}
    report = subprocess.run([mistaken, "after"], capture_output=True, text=True, check=False, env=alone).stderr

    def named(tools: Tools) -> str:
        variables = tools.environment(PATH=f"{tools.folder}:/usr/bin:/bin")
        run = subprocess.run(
            [find("asan_symbolize-19"), "--demangle"],
            input=report,
            capture_output=True,
            text=True,
            check=True,
            env=variables,
        )
        return comparable(run.stdout)

    tools = stand_in(tmp_path / "ours", "llvm-symbolizer")
    ours = named(tools)
    assert tools.starts and "shelf.cc:" in ours and "shelf.cc:" not in report
    assert ours == named(real(tmp_path / "llvm", f"llvm-symbolizer={LLVM}"))
