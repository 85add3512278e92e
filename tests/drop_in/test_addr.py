"""`symbolize addr` prints the frames at addresses of a binary, or why there are none."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from symbolize import lookup
from tests.support.drop_ins import SPECTRA, Output, own
from tests.support.elf_writer import ALLOC, EXEC, Section, Segment, Symbol, elf_file
from tests.support.fixture_files import BINARIES

HEADER = "/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/std_function.h"


class Command:
    """`symbolize addr`, in this process."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], patch: pytest.MonkeyPatch, cache: Path) -> None:
        self._capture, self._patch, self._cache = capture, patch, cache

    def __call__(self, words: list[str], lines: bytes | None = None) -> Output:
        return own(["addr", "--cache", str(self._cache), *words], lines, self._capture, self._patch)


@pytest.fixture
def addr(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """The command under test."""
    return Command(capfdbinary, monkeypatch, tmp_path / "cache")


def test_text(addr: Command) -> None:
    """A line for each frame; functions that others are inlined into are indented; a miss has its reason."""
    found = addr([str(SPECTRA), "23d1", "0x1", "0x999999999", "main+0x4"])
    assert found.out.decode().splitlines() == [
        f"0x23d1: std::function::function  {HEADER}:452:19",
        "    inlined into main  /src/spectra/main.cc:116:22",
        "0x1: no name: address outside every symbol",
        "0x999999999: no name: address outside the code of the binary",
        "0x2344: main  /src/spectra/main.cc:113",
    ]
    assert (found.code, found.err) == (0, b"")


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        (b"MZ\x90\0", "a Windows program"),
        (b"\xcf\xfa\xed\xfe\7", "a Mach-O binary, which is not read"),
        (b"!<arch>\ndebian-binary   14", "a Debian package: `dpkg-deb -x x.deb folder` unpacks it"),
        (gzip.compress(b"a".ljust(257, b"\0") + b"ustar\0", mtime=0), "a tar archive: unpack it"),
    ],
)
def test_what_is_no_elf_file(addr: Command, tmp_path: Path, content: bytes, looks: str) -> None:
    """The error says what a file looks like instead (R344, other recordings)."""
    file = tmp_path / "file"
    file.write_bytes(content)
    found = addr([str(file), "10"])
    assert found.err.decode() == f"symbolize: {file}: is no ELF file: it looks like {looks}\n"
    assert (found.code, found.out) == (1, b"")


def test_json_of_lines(addr: Command) -> None:
    """Addresses come from standard input too; JSON has a line for each, in their order."""
    found = addr([str(SPECTRA), "--json", "--demangle", "none"], b"1\n\n0x23d1\n")
    missed, named = map(json.loads, found.out.splitlines())
    assert missed == {"address": "0x1", "frames": [], "reason": "outside-symbols"}
    inner, outer = named["frames"]
    linked = "_ZNSt8functionIFddEEC2IZ4mainE3$_1vEEOT_"
    assert inner == {
        "function": linked,
        "system_name": linked,
        "file": HEADER,
        "line": 452,
        "column": 19,
        "inlined": True,
    }
    assert (outer["function"], outer["line"], outer["inlined"]) == ("main", 116, False)


def test_build_id_below_folders(addr: Command) -> None:
    """A binary may be named by its build id; --binaries finds it, and debug files of a stripped one."""
    stripped = BINARIES / "gcc-split" / "stripped"
    program = next(path for path in stripped.iterdir() if path.name.startswith("ledger"))
    plain = addr([str(program), "main"])
    assert plain.code == 1 and b"no function has this name" in plain.err
    found = addr([str(program), "main", "-b", str(BINARIES / "gcc-split")])
    assert b"main  /src/ledger/main.cc" in found.out
    by_id = addr(["BUILDID:fddfb64b84f1b9151c2c4bfbd662e7eb392cb1d0", "main", "-b", str(BINARIES / "clang-pie")])
    assert by_id.out == b"0x2340: main  /src/spectra/main.cc:113\n"


def test_build_id_is_no_path(addr: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is called like a build id is opened by its path only."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SPECTRA, "abcd")
    found = addr(["BUILDID:abcd", "2340"])
    assert (found.code, found.err) == (1, b"symbolize: abcd: could not find build ID\n")
    assert addr(["abcd", "2340"]).out == b"0x2340: main  /src/spectra/main.cc:113\n"


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["/nonexist", "1"], 1, "/nonexist: No such file or directory"),
        (["/etc/passwd", "1"], 1, "/etc/passwd: is no ELF file: it looks like a text file"),
        (["BUILDID:abcd", "1"], 1, "abcd: could not find build ID"),
        ([str(SPECTRA), "12zz"], 1, "12zz: is neither an address"),
        ([str(SPECTRA), "nosuch+4"], 1, "nosuch+4: no function has this name"),
        ([str(SPECTRA), "1" * 5000], 1, "is neither an address"),
        ([str(SPECTRA), "main+08"], 1, "main+08: no function has this name"),
        ([str(SPECTRA), "main+" + "9" * 5000], 1, "no function has this name"),
        ([str(SPECTRA), f"main+{(1 << 64) - 1}"], 1, "leads to no address of 64 bits"),
        (["", "1"], 2, "BINARY has an empty name"),
        ([str(SPECTRA), "1", "-b", "/nonexist"], 2, "/nonexist: no such folder"),
    ],
)
def test_errors(words: list[str], code: int, problem: str, addr: Command) -> None:
    """Each error is one line."""
    found = addr(words)
    assert (found.code, found.err.count(b"\n")) == (code, 1)
    assert problem in found.err.decode() and len(found.err) < 400


def test_functions_that_share_code(addr: Command) -> None:
    """A function that may be any of several is marked: the outermost, not what is inlined there."""
    path = BINARIES / "twins" / "mold-all" / "twins"
    every = range(0x201340, 0x201BE0, 4)
    vaddrs = [vaddr for vaddr, is_folded in zip(every, lookup(path, every).folded, strict=True) if is_folded]
    words = [str(path), *map(hex, vaddrs)]
    for place in map(json.loads, addr([*words, "--json"]).out.splitlines()):
        *inlined, outer = place["frames"]
        assert outer["folded"] is True and not any("folded" in frame for frame in inlined)
    text = addr(words).out.decode()
    assert text.count(" [folded]  /src/") == len(vaddrs) > 5
    assert b"folded" not in addr([str(SPECTRA), "2340", "--json"]).out


def test_a_column_without_a_line(addr: Command) -> None:
    """Line 0 stays unknown, whatever column it has, which would be taken for the line."""
    path = BINARIES / "headers" / "debug" / "libwalk-thumb.so.debug"
    every = np.arange(0, 0x2D8, 2)
    frames = lookup(path, every)
    row = np.flatnonzero((frames.line == 0) & (frames.column > 0))[0]
    vaddr = int(every[np.searchsorted(frames.offsets, row, side="right") - 1])
    assert any(line.endswith("/walk.c") for line in addr([str(path), hex(vaddr)]).out.decode().splitlines())


def test_a_file_in_the_place_of_a_build_id(addr: Command, tmp_path: Path) -> None:
    """A message says that nothing else proves that the file has the build id."""
    place = tmp_path / ".build-id" / "aa" / "bbbbbb.debug"
    place.parent.mkdir(parents=True)
    code = Section(".text", bytes(0x40), flags=ALLOC | EXEC, address=0x1000)
    place.write_bytes(elf_file([code], [Segment(0x1000, 0x40, 5)], [Symbol("f", 0x1000, 16, section=".text")]))
    found = addr(["BUILDID:aabbbbbb", "1004", "-b", str(tmp_path)])
    assert (found.code, found.out) == (0, b"0x1004: f\n")
    assert found.err.startswith(b"symbolize: BUILDID:aabbbbbb: unverified: ") and found.err.count(b"\n") == 1


def test_kept_table(addr: Command, tmp_path: Path) -> None:
    """The second question builds a table that is kept, and later ones give the same answers with it."""
    path = tmp_path / "program"
    shutil.copy(SPECTRA, path)
    first = [addr([str(path), "23d1"]).out for _ in range(3)]
    assert first[0] == first[1] == first[2]
    assert list((tmp_path / "cache").glob("tables-*/*.symtab"))
