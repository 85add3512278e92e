"""`symbolize log` puts names into stack traces and leaves everything else as it is."""

import os
import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from symbolize.drop_in.log import LONGEST, trace_line
from symbolize.elf import ElfImage, inside_calls
from tests.support.drop_ins import SPECTRA, Output, other, own
from tests.support.elf_writer import ALLOC, EXEC, Section, Segment, Symbol, elf_file
from tests.support.needs import find

BUILD_ID = "fddfb64b84f1b9151c2c4bfbd662e7eb392cb1d0"
MAIN = 0x2340
"""Where `main` of SPECTRA begins."""
HEADER = "/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/std_function.h"
INNER = f"std::function<double (double)>::function<main::$_1, void>(main::$_1&&) {HEADER}:452:19"
OUTER = "main /src/spectra/main.cc:116:22"


class Command:
    """`symbolize log`, in this process."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], patch: pytest.MonkeyPatch, cache: Path) -> None:
        self._capture, self._patch, self._cache = capture, patch, cache

    def __call__(self, lines: bytes | None, *words: str) -> Output:
        return own(["log", "--cache", str(self._cache), *words], lines, self._capture, self._patch)


@pytest.fixture
def log(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """The command under test."""
    return Command(capfdbinary, monkeypatch, tmp_path / "cache")


def return_address(path: Path) -> int:
    """The first address in `main` of SPECTRA that a call returns to."""
    with ElfImage.open(path) as image:
        places = np.arange(0x2340, 0x2900, dtype=np.uint64)
        calls = inside_calls(image, places)
        assert calls is not None
        inside = {int(place) for place, is_call in zip(places, calls, strict=True) if is_call}
    return min(place for place in inside if {place - 1, place - 5} <= inside)


def test_sanitizer(log: Command, tmp_path: Path) -> None:
    """A frame gets its names, with a line of its own for each inlined function; its address is in the call already
    (R385, addresses in texts)."""
    text = (
        "==1==ERROR: AddressSanitizer: \x00\xff weird\r\n"
        f"    #1 0x55d0c23d1  (/srv/spectra+0x23d1) (BuildId: {BUILD_ID})\n"
        "    #2 0x55d0c23d1  (/srv/spectra+0x23d1) (BuildId: 00112233)\n"
        "    #3 0x55d0c23d1 in already file.cc:1:2\n"
        f"    #4 0x1  (/srv/spectra+0x1) (BuildId: {BUILD_ID})\r\n"
        "no end"
    ).encode("latin-1")
    found = log(text, "-b", str(SPECTRA.parent))
    lines = text.split(b"\n")
    expected = [lines[0], *(f"    #1 0x55d0c23d1 in {each}".encode() for each in (INNER, OUTER)), *lines[2:]]
    assert found.out.split(b"\n") == expected
    assert found.code == 0


@pytest.mark.needs("llvm-symbolizer-19")
def test_glibc(log: Command, tmp_path: Path) -> None:
    """The line of the call is taken, not that of the instruction behind it, which a return address is of (R385,
    addresses in texts)."""
    address = return_address(SPECTRA)
    line = f"./spectra(+{address:#x}) [0x5555{address:08x}]"
    reference = own_line(address - 1)
    found = log(f"{line}\n./spectra(main+0x92)[0x55550000023d2]\n".encode(), "-b", str(SPECTRA.parent))
    first, second = found.out.decode().splitlines()
    assert first.startswith(f"{line} ") and first.endswith(f" at {reference}")
    assert second == f"./spectra(main+0x92)[0x55550000023d2] {INNER} (inlined by) {OUTER}".replace(
        " /usr", " at /usr"
    ).replace(" /src", " at /src")
    assert found.err.count(b"found by its name only") == 1


@pytest.mark.parametrize("symbol", ["", "main"])
def test_address_of_another_build(symbol: str, log: Command) -> None:
    """Where the address in brackets is at another offset in its page than the frame would be in the file, the file is
    not the one that ran (R386, files of texts)."""
    vaddr = return_address(SPECTRA)
    offset = vaddr - MAIN if symbol else vaddr
    for address, is_named in ((0x555500000000 + vaddr, True), (0x555500000001 + vaddr, False), (0, False)):
        line = f"./spectra({symbol}+{offset:#x}) [{address:#x}]".encode()
        assert (log(line, "-b", str(SPECTRA.parent)).out != line) == is_named


def own_line(vaddr: int) -> str:
    """File, line and column of the outermost function at an address of SPECTRA, as llvm-symbolizer has them."""
    return other([find("llvm-symbolizer-19"), f"--obj={SPECTRA}", hex(vaddr)]).out.decode().split("\n")[-3]


def test_name_alone_needs_a_call(log: Command) -> None:
    """Without a build id an address that is behind no call, or in another page, is another build's: the line stays."""
    address = return_address(SPECTRA)
    text = (
        f"./spectra(+{address - 2:#x}) [0x5555{address - 2:08x}]\n./spectra(+{address:#x}) [0x555500000001]\n".encode()
    )
    assert log(text, "-b", str(SPECTRA.parent)).out == text


def test_kernel(log: Command, tmp_path: Path) -> None:
    """Functions are found by name and size, modules by their names; where the kernel stopped the address itself is
    looked up, else the one before it (R385, addresses in texts)."""
    shutil.copy(SPECTRA, tmp_path / "vmlinux")
    shutil.copy(SPECTRA, tmp_path / "snd-usb.ko")
    names = f"{INNER} (inlined by) {OUTER}".replace(" /usr", " at /usr").replace(" /src", " at /src")
    lines = [
        ("[   12.3] RIP: 0010:main+0x91/0x5d0", names),
        ("[   12.3]  main+0x92/0x5d0", names),
        ("[   12.3]  ? main+0x92/0x5c3 [snd_usb]", names),
        ("pc : main+0x91/0x5d0", names),
        ("[   12.3]  main+0x92/0x900", ""),
        ("[   12.3]  main+0x92/0x5c2", ""),  # smaller than the function is
        ("[   12.3]  main+0x92/0x5d0 [other]", ""),
        ("[   12.3]  nosuch+0x92/0x5d0", ""),
        ("[<ffffffff81234567>] 0xffffffff81234567", ""),
    ]
    found = log("".join(f"{line}\n" for line, _ in lines).encode(), "-b", str(tmp_path))
    assert found.out.decode().splitlines() == [f"{line} {more}".rstrip() for line, more in lines]


def test_recorded_path_is_not_opened(log: Command) -> None:
    """Only folders that are given count, wherever the text says that a file is."""
    text = f"{SPECTRA}(main+0x92) [0x55550000023d2]\n    #1 0x1  ({SPECTRA}+0x23d1)\n".encode()
    found = log(text)
    assert (found.out, found.err) == (text, b"")


def test_file_and_stream(log: Command, tmp_path: Path) -> None:
    """A file is read as standard input is; one that is not there is an error of one line."""
    path = tmp_path / "log.txt"
    path.write_bytes(f"#1 0x55d0c23d1  (/srv/spectra+0x23d1) (BuildId: {BUILD_ID})".encode())
    found = log(None, str(path), "-b", str(SPECTRA.parent))
    inner, outer = found.out.decode().split("\n")  # a line each, the last one without an end as in the text
    assert (inner, outer) == (f"#1 0x55d0c23d1 in {INNER}", f"#1 0x55d0c23d1 in {OUTER}")
    missing = log(None, str(tmp_path / "nosuch"))
    assert (missing.code, missing.out, missing.err.count(b"\n")) == (1, b"", 1)


def test_build_id_is_no_path(log: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the current folder that is called as a build id in the text is not opened."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SPECTRA, "abcd")
    text = b"    #1 0x55d0c23d1  (/srv/spectra+0x23d1) (BuildId: abcd)\n"
    assert log(text).out == text


def test_what_is_not_verified(log: Command, tmp_path: Path) -> None:
    """A message says which files may be of other builds, once, and only if they gave names."""
    place = tmp_path / ".build-id" / "aa" / "bbbbbb.debug"
    place.parent.mkdir(parents=True)
    code = Section(".text", bytes(0x40), flags=ALLOC | EXEC, address=0x1000)
    made = elf_file([code], [Segment(0x1000, 0x40, 5)], [Symbol("f", 0x1000, 16, section=".text")])
    for path in (place, tmp_path / "other"):
        path.write_bytes(made)
    nowhere = b"    #1 0x1  (/x+0x9999) (BuildId: aabbbbbb)\n./other(g+0x1)[0x1]\n"
    found = log(nowhere, "-b", str(tmp_path))
    assert (found.out, found.err) == (nowhere, b"")
    found = log(b"    #1 0x1  (/x+0x1004) (BuildId: aabbbbbb)\n" * 2, "-b", str(tmp_path))
    assert found.out == b"    #1 0x1 in f (/x+0x1004) (BuildId: aabbbbbb)\n" * 2
    assert found.err.startswith(b"symbolize: aabbbbbb: unverified: ") and found.err.count(b"\n") == 1


def test_name_of_a_file_on_a_terminal(log: Command, tmp_path: Path) -> None:
    """The message that names a file has no control characters of its name."""
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(SPECTRA, folder / "a\x1b[2Jb")
    found = log(b"./a\x1b[2Jb(main+0x92) [0x3d2]\n", "-b", str(folder))
    assert b"found by its name only" in found.err and b"\x1b" not in found.err


def test_hostile_text(log: Command) -> None:
    """Garbage, long lines and long names get through as they are."""
    rows = [
        random.Random(1).randbytes(4000),
        b"#1 0x1 (" * 400,
        b"(" * LONGEST,
        b"a+0x1/0x2" * 300,
        b"#0 0x" + b"f" * 60_000,
    ]
    rows += [b"#1 0x1  (" + b"x" * 900 + b"+0x23d1)", b"f(+0x23d1)[0x3d1]" * 90, b"\0" * 100, b"x" * 200_000]
    text = b"\n".join(rows)
    for part in (text[:60_000], text[-60_000:]):
        found = log(part, "-b", str(SPECTRA.parent))
        assert found.out == part and b"Traceback" not in found.err


@pytest.mark.parametrize(
    "line", [b"x" * (LONGEST + 1) + b" main+0x1/0x2", b"main+0x2/0x1", b"a.out(+0x0) [0x0]", b"0x12"]
)
def test_no_frames(line: bytes) -> None:
    """What only looks like a frame is none."""
    assert trace_line(line) is None


@pytest.mark.parametrize("line", [b"a" * 4000 + b" 0x", (b"b" * 1000 + b"(") * 4 + b"0x", b"a.b$" * 1000 + b"0x"])
def test_long_words(line: bytes) -> None:
    """Words of thousands of bytes, as of dumps, are read in linear time: 300 lines take less than a second."""
    begin = time.monotonic()
    assert not any(trace_line(line) for _ in range(300))
    assert time.monotonic() - begin < 5


SOURCE = """
struct Box { int *values; __attribute__((noinline)) int get(int i) { return values[i]; } };
inline __attribute__((always_inline)) int deep(Box &box, int i) { return box.get(i) + 1; }
__attribute__((noinline)) int use(Box &box, int i) { return deep(box, i) * 2; }
int main() { Box box{new int[4]}; delete[] box.values; return use(box, 1); }
"""


@pytest.mark.needs("clang++-19", "libclang_rt.asan", "llvm-symbolizer-19")
def test_real_report(log: Command, tmp_path: Path) -> None:
    """A report of the address sanitizer gets the frames that the sanitizer gives it with llvm-symbolizer."""
    (tmp_path / "a.cc").write_text(SOURCE)
    program = tmp_path / "program"
    command = [
        find("clang++-19"),
        "-g",
        "-O1",
        "-fsanitize=address",
        "-Wl,--build-id",
        "-fno-omit-frame-pointer",
        "a.cc",
        "-o",
        program,
    ]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    plain = {**os.environ, "ASAN_OPTIONS": "symbolize=0"}
    raw = subprocess.run([program], capture_output=True, env=plain, check=False).stderr
    named = {**os.environ, "ASAN_SYMBOLIZER_PATH": find("llvm-symbolizer-19")}
    expected = subprocess.run([program], capture_output=True, env=named, check=False).stderr
    found = log(raw, "-b", str(tmp_path)).out
    frames = re.compile(rb" in (.*a\.cc:.*)")
    assert frames.findall(found) == frames.findall(expected.partition(b"SUMMARY")[0]) != []
