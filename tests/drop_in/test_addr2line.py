"""`symbolize as addr2line` prints what addr2line of binutils prints."""

import shutil
from pathlib import Path

import pytest

from tests.support.drop_ins import SPECTRA, Output, other, own
from tests.support.fixture_files import BINARIES
from tests.support.needs import find

LEDGER = BINARIES / "gcc-pie" / "ledger"


class Tool:
    """addr2line, played by this program."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], patch: pytest.MonkeyPatch) -> None:
        self._capture, self._patch = capture, patch

    def __call__(self, words: list[str], lines: bytes | None = None) -> Output:
        return own(["as", "addr2line", *words], lines, self._capture, self._patch)


@pytest.fixture
def tool(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Tool:
    """The tool under test, with a cache of its own."""
    monkeypatch.setenv("SYMBOLIZE_CACHE", str(tmp_path_factory.mktemp("cache")))
    return Tool(capfdbinary, monkeypatch)


def test_golden(tool: Tool) -> None:
    """Functions, inlined ones and addresses as binutils prints them; without a tool to compare."""
    found = tool(["-afip", "-s", "-e", str(SPECTRA), "23d1", "1"])
    start = b"0x00000000000023d1: _ZNSt8functionIFddEEC2IZ4mainE3$_1vEEOT_ at std_function.h:452\n"
    assert found.out == start + b" (inlined by) main at main.cc:116\n0x0000000000000001: ?? ??:0\n"


OPTIONS = ["", "-f", "-fi", "-fiC", "-fipaC", "-a", "-s -f", "-pf", "-p", "-Rrfb elf64-x86-64"]


@pytest.mark.needs("addr2line")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.full
def test_options(options: str, tool: Tool) -> None:
    """Each option gives the same bytes, for words and for lines, also for what is no number."""
    inputs = ["23d1", "0x23d1", "0x1", "zz", "2340", "-1", "ffffffffffffffffffff", " 2340", "0x", "main", "2340 rest"]
    words = [*options.split(), "-e", str(SPECTRA)]
    reference = other(["addr2line", *words, *(each for each in inputs if not each.startswith("-"))])
    assert tool([*words, *(each for each in inputs if not each.startswith("-"))]).out == reference.out
    lines = "".join(f"{each}\n" for each in inputs).encode() + b"\n" + b"4" * 250 + b"\n2340"
    assert tool(words, lines).out == other(["addr2line", *words], lines).out


OFFSETS = [
    "4",
    "010",
    "08",
    "0x",
    "0x4",
    "1z",
    " 4",
    "-4",
    "+4",
    "-",
    "4+4",
    f"{1 << 64}",
    "9" * 90,
    "0" * 30 + "10",
    "",
]


@pytest.mark.needs("addr2line")
def test_offsets_of_symbols(tool: Tool) -> None:
    """An offset is read as C's strtoul reads it, and the highest number where it is too large."""
    lines = "".join(f"{symbol}+{offset}\n" for symbol in ("main", "main ") for offset in OFFSETS).encode()
    words = ["-a", "-e", str(SPECTRA)]
    found = tool(words, lines).out.splitlines()[::2]
    assert found == other(["addr2line", *words], lines).out.splitlines()[::2]


@pytest.mark.needs("addr2line", "llvm-addr2line-19", "nm")
def test_functions_of_gcc(tool: Tool) -> None:
    """Functions, inlined ones too, and lines of a program by gcc at 300 places.

    Discriminators are left out (R384, what drop-ins leave out). binutils gives an inlined function without a linkage
    name the name of the symbol around it, which is another function, and the outermost its DW_AT_name; here each has
    its own (R381, names of drop-ins), as in llvm-addr2line. Between functions, where both have the line before, there
    is none."""
    addresses = range(0x2400, 0x2400 + 3 * 300, 3)
    words, lines = ["-afi", "-e", str(LEDGER)], "".join(f"{each:x}\n" for each in addresses).encode()
    binutils, llvm = (
        [line.partition(b" (discriminator")[0] for line in other([name, *words], lines).out.splitlines()]
        for name in ("addr2line", find("llvm-addr2line-19"))
    )
    symbols = other(["nm", "-S", "--defined-only", str(LEDGER)]).out.splitlines()
    sized = [(int(row[0], 16), int(row[1], 16)) for line in symbols if len(row := line.split()) == 4]
    between = [each for each in addresses if not any(first <= each < first + size for first, size in sized)]
    at = 0
    for ours, *theirs in zip(tool(words, lines).out.splitlines(), binutils, llvm, strict=True):
        at = int(ours, 16) if ours.startswith(b"0x") else at
        assert ours in theirs or (ours == b"??:0" and at in between), (hex(at), theirs)


@pytest.mark.needs("addr2line")
def test_section(tool: Tool) -> None:
    """With -j numbers count from the begin of a section, are printed as they came, and have no name behind its end,
    where other sections are."""
    words = ["-a", "-j", ".text", "-e", str(SPECTRA)]
    lines = b"0\n3d1\n12de\n12e4\n1300\nffffffffffffffff\n"
    assert tool(words, lines).out == other(["addr2line", *words], lines).out
    # binutils adds the section to a symbol, which has its own already, and to the 0 of a word that is neither.
    words += ["main", "nosuch"]
    assert tool(words).out == b"0x0000000000002340\n/src/spectra/main.cc:113\n0x0000000000000000\n??:0\n"


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["-e", "/nonexist", "1"], 1, "/nonexist"),
        (["-e", "/etc/passwd", "1"], 1, "/etc/passwd: file format not recognized"),
        (["-e", str(SPECTRA), "-j", "nosec", "1"], 1, "cannot find section nosec"),
        (["--foo"], 2, "unrecognized option '--foo'"),
        (["--addresses=1"], 2, "option '--addresses' doesn't allow an argument"),
        (["-x"], 2, "invalid option -- 'x'"),
        (["-e"], 2, "-e: missing argument"),
        (["--exe"], 2, "missing argument"),
    ],
)
def test_errors(words: list[str], code: int, problem: str, tool: Tool) -> None:
    """Errors are one line."""
    found = tool(words)
    assert (found.code, found.out) == (code, b"")
    assert problem in found.err.decode() and found.err.count(b"\n") == 1


@pytest.mark.parametrize(("words", "begin"), [(["-v"], b"GNU addr2line\n"), (["--help"], b"Usage: addr2line ")])
def test_about(words: list[str], begin: bytes, tool: Tool) -> None:
    """Who it is, and how it is used."""
    found = tool(words)
    assert found.code == 0 and found.out.startswith(begin)


def test_words_behind_options(tool: Tool) -> None:
    """A long option may have its value in the next word, and `--` ends the options."""
    assert tool(["--functions", "--exe", str(SPECTRA), "--", "2340"]).out == b"main\n/src/spectra/main.cc:113\n"


def test_default_file(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without -e the file is a.out."""
    monkeypatch.chdir(tmp_path)
    assert b"a.out" in tool(["1"]).err
    shutil.copy(SPECTRA, "a.out")
    assert tool(["-f", "2340"]).out == b"main\n/src/spectra/main.cc:113\n"
