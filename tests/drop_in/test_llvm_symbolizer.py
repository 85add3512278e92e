"""`symbolize as llvm-symbolizer` prints what llvm-symbolizer 19 prints."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from symbolize.cli.commands import tool_of
from symbolize.cli.drop_in import AT_ONCE, batches
from symbolize.drop_in.binaries import Binaries, Places
from symbolize.drop_in.llvm import LlvmSymbolizer
from symbolize.drop_in.llvm_options import parsed
from symbolize.elf import ElfImage, read_symbols
from symbolize.names import same_function
from tests.support.drop_ins import SPECTRA, Output, other, own
from tests.support.dwarf_writer import dwarf_sections, function
from tests.support.elf_writer import Segment, elf_file, text
from tests.support.fixture_files import BINARIES, PARTS
from tests.support.line_writer import Format, Lines, sequence
from tests.support.needs import find
from tests.support.programs import unit

LLVM = find("llvm-symbolizer-19")
needs_llvm = pytest.mark.needs("llvm-symbolizer-19")

INLINED = "0x23d1"
"""An address in `main` of SPECTRA, where another function is inlined."""


COMPARED = ["clang-pie/spectra", "gcc-pie/ledger", "gcc-nopie-dwarf4/libresonance.so", "gcc-o0/ledger"]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of each test's own, and no options from the environment."""
    monkeypatch.setenv("SYMBOLIZE_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("LLVM_SYMBOLIZER_OPTS", raising=False)


class Tool:
    """llvm-symbolizer, played by this program."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], patch: pytest.MonkeyPatch) -> None:
        self._capture, self._patch = capture, patch

    def __call__(self, words: list[str], lines: bytes | None = None, tool: str = "llvm-symbolizer") -> Output:
        return own(["as", tool, *words], lines, self._capture, self._patch)


@pytest.fixture
def tool(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Tool:
    """The tool under test."""
    return Tool(capfdbinary, monkeypatch)


def addresses(path: Path, count: int) -> list[str]:
    """Addresses in `.text`, the same in every run."""
    chosen = random.Random(path.name)
    with ElfImage.open(path) as image:
        section = image.find(".text")
        assert section is not None
        return [hex(section.vaddr + chosen.randrange(section.size)) for _ in range(count)]


def test_golden(tool: Tool) -> None:
    """Function, file, line and column of each frame, innermost first, and a blank line; without a tool to compare."""
    header = b"/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/std_function.h:452:19"
    answer = b"std::function<double (double)>::function<main::$_1, void>(main::$_1&&)\n" + header
    expected = answer + b"\nmain\n/src/spectra/main.cc:116:22\n\n??\n??:0:0\n\n"
    assert tool([f"--obj={SPECTRA}"], f"{INLINED}\n0x1\n".encode()).out == expected
    assert tool([f"--obj={SPECTRA}", INLINED, "1"]).out == expected


def test_adjustments_wrap_around(tool: Tool) -> None:
    """One larger than an address leads to the end of the address space, as the numbers of LLVM do, or around it."""
    words = [f"--obj={SPECTRA}", "-a"]
    found = tool([*words, "--adjust-vma=0xfffffffffffff000", hex(int(INLINED, 16) - 0x1000)]).out
    assert found.split(b"\n", 1)[1] == tool([*words, INLINED]).out.split(b"\n", 1)[1]
    assert b"main" in found


STYLES = [
    "--output-style=JSON",
    "--output-style=JSON -p",
    "--output-style=GNU -a",
    "--output-style=GNU --no-inlines",
    "--output-style=GNU -p -a",
    "--output-style GNU -s -C",
    "-a -p",
    "--pretty-print --print-address",
    "--functions=none -p",
    "-f=none",
    "--no-inlines",
    "--inlining=false",
    "-s",
    "--basenames -afi",
    "--no-demangle",
    "-demangle=false --inlining",
    "--adjust-vma=0x10 -a",
    "--relative-address --no-untag-addresses --cache-size=1 --default-arch=x86_64",
    "--output-style=GNU --no-inlines -p --functions",
]


@needs_llvm
@pytest.mark.parametrize("options", STYLES)
@pytest.mark.full
def test_styles(options: str, tool: Tool) -> None:
    """Each style and option gives the same bytes, also of addresses without a name and of symbols."""
    words = [*options.split(), f"--obj={SPECTRA}", INLINED, "0x11", "zz", "main", "main+4", "0x2340"]
    ours = tool(words)
    reference = other([LLVM, *words])
    if "JSON" in options:  # where inlined functions begin is not known
        assert without_starts(json.loads(ours.out)) == without_starts(json.loads(reference.out))
        assert ours.out.count(b"\n") == reference.out.count(b"\n")
    else:
        assert ours.out == reference.out
    assert (ours.code, ours.err) == (0, b"")


def without_starts(answers: list[dict[str, list[dict[str, object]]]]) -> object:
    """JSON answers without the begin of inlined functions (R384, what drop-ins leave out)."""
    for answer in answers:
        for frame in answer.get("Symbol", [])[:-1]:
            frame["StartAddress"] = ""
    return answers


@needs_llvm
def test_verbose(tool: Tool) -> None:
    """All that is known of a frame, but where inlined functions begin (R384, what drop-ins leave out)."""
    words = ["--verbose", f"--obj={SPECTRA}", INLINED, "1", "main"]
    reference = other([LLVM, *words]).out
    assert tool(words).out == reference.replace(b"  Function start address: 0x23b5\n", b"")


@needs_llvm
def test_offsets_in_symbols(tool: Tool) -> None:
    """An offset counts below the size of the symbol; a larger one leads to its begin."""
    with ElfImage.open(SPECTRA) as image:
        symbols = read_symbols(image, ".symtab")
        assert symbols is not None
        (size,) = (int(symbols.size[row]) for row in range(len(symbols)) if symbols.text(symbols.name[row]) == b"main")
    words = [f"--obj={SPECTRA}", *(f"main+{offset}" for offset in (0, size - 1, size, size + 1, 1 << 40))]
    assert tool(words).out == other([LLVM, *words]).out


LINES = [
    *(INLINED, "foo", "", f"CODE {INLINED}", f"DATA {INLINED}", f"FRAME {INLINED}", "main", "main+0x4", "main+zz"),
    *("0x99999999999999999", "12zz", f"FILE:x {INLINED}", "BUILDID:12 0x1", "FILE:", "-5", f"  {INLINED} trailing"),
    *(
        "010",
        "0b11",
        "0o17",
        ",",
        f"{INLINED},",
        f"\t{INLINED}\t",
        "CODE",
        "18446744073709551616",
    ),
]
FILE_LINES = [
    *("/nonexist 0x10", "CODE /nonexist 0x20", '"/non exist" 0x3', "/etc/passwd 0x4", "/etc 0x5", 'FILE:"/a b" 0x3'),
    *("BUILDID:abcd 0x1", "BUILDID:zz 0x1", "'un 0x3", "onlyone", "FILE:FILE:x 1", "FILE: ", "BUILDID:", '"" 0x3'),
    *(f"{SPECTRA} {INLINED}", f"{SPECTRA} main", f"FILE:{SPECTRA} main+3", f'CODE "{SPECTRA}" {INLINED}', "", " "),
    f"'{SPECTRA}'{INLINED}",
]


@needs_llvm
@pytest.mark.parametrize("style", ["LLVM", "GNU", "JSON"])
@pytest.mark.parametrize("has_object", [True, False])
@pytest.mark.full
def test_lines(style: str, has_object: bool, tool: Tool) -> None:
    """Every form of a line, and every wrong one, is answered with the same bytes and the same error."""
    words = [f"--output-style={style}", *([f"--obj={SPECTRA}"] if has_object else [])]
    lines = "".join(f"{line}\n" for line in (LINES if has_object else FILE_LINES)).encode()
    ours, reference = tool(words, lines), other([LLVM, *words], lines)
    expected = reference.out
    if style == "JSON":
        expected = expected.replace(b'"StartAddress":"0x23b5"', b'"StartAddress":""')
    # Tables have no data.
    expected = expected.replace(b"main\n9024 1475\n??:?", b"??\n0 0\n??:?")
    expected = expected.replace(
        b'"Name":"main","Size":"0x5c3","Start":"0x2340"', b'"Name":"","Size":"0x0","Start":"0x0"'
    )
    assert ours.out.splitlines() == expected.splitlines()
    assert sorted(ours.err.splitlines()) == sorted(
        re.sub(b"(?m)^.*?: error", b"llvm-symbolizer: error", reference.err).splitlines()
    )


@needs_llvm
@pytest.mark.parametrize("name", COMPARED)
def test_many_addresses(name: str, tool: Tool) -> None:
    """Of 1,000 addresses of a binary nearly all are answered with the same bytes; the rules explain the others.

    The paths differ by `./` (R384, what drop-ins leave out)."""
    path = BINARIES / name
    lines = "".join(f"{each}\n" for each in addresses(path, 1000)).encode()
    words = ["--no-demangle", f"--obj={path}"]
    ours = tool(words, lines).out.split(b"\n\n")
    reference = other([LLVM, *words], lines).out.replace(b"/./", b"/").split(b"\n\n")
    assert len(ours) == len(reference) == 1001
    differing = [(a, b) for a, b in zip(ours, reference, strict=True) if a != b and not is_explained(a, b)]
    assert len(differing) <= len(ours) // 100, differing[:3]


def is_explained(ours: bytes, reference: bytes) -> bool:
    """Whether answers differ only in ways that rules explain: code between functions has no name and no line, and of
    aliases, such as the variants of a constructor, another one may be named (R118, aliases)."""
    if ours == b"??\n??:0:0":
        return reference.startswith(b"??\n")
    pairs = list(zip(ours.split(b"\n"), reference.split(b"\n"), strict=False))
    return len(ours.split(b"\n")) == len(reference.split(b"\n")) and all(
        a == b or (not number % 2 and same_function(a, b)) for number, (a, b) in enumerate(pairs)
    )


@pytest.mark.process
def test_flushed_before_it_waits(tmp_path: Path) -> None:
    """A client that waits for an answer gets it before it closes the pipe, through a link with the name of the tool."""
    link = tmp_path / "x86_64-linux-gnu-llvm-symbolizer-19"
    code = "import sys; from symbolize.cli import main; sys.exit(main())"
    script = tmp_path / "program"
    script.write_text(f"#!{sys.executable}\n{code}\n")
    script.chmod(0o755)
    link.symlink_to(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([link], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(2):
            process.stdin.write(f'CODE "{SPECTRA}" {INLINED}\n'.encode())
            process.stdin.flush()
            answer = [process.stdout.readline() for _ in range(5)]
            assert answer[2:] == [b"main\n", b"/src/spectra/main.cc:116:22\n", b"\n"]
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--relativenames"], "--relativenames"),
        (["--print-source-context-lines=3"], "--print-source-context-lines"),
        (["--filter-markup"], "--filter-markup"),
        (["--dsym-hint=x.dSYM"], "--dsym-hint"),
        (["--foo"], "unknown argument '--foo'"),
        (["---addresses"], "unknown argument '---addresses'"),
        (["-addresses"], "unknown argument '-addresses'"),
        (["--adjust-vma=zz"], "expected a non-negative integer"),
        (["--build-id=zz"], "expected a build ID"),
        (["--obj=x", "--build-id=abcd"], "cannot specify both"),
        (["@/dev/zero"], "@/dev/zero"),
        (["@OPEN"], "@OPEN: a quotation or an escape in it has no end"),
    ],
)
def test_refused_options(
    words: list[str], problem: str, tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not honoured is refused by its name, in one line."""
    monkeypatch.chdir(tmp_path)
    Path("OPEN").write_text("--obj='x")
    found = tool([*words, "0x1"])
    assert (found.code, found.out) == (2, b"")
    assert problem in found.err.decode() and found.err.count(b"\n") == 1


@pytest.mark.parametrize("word", ["help", "version"])
def test_one_dash(word: str, tool: Tool) -> None:
    """-help and -version are -h and -v, with a value of -e behind them, as there; people write them."""
    found = tool([f"-{word}"])
    assert found.code == 0 and found.out == tool([f"--{word}"]).out != b""


def test_empty_word(tool: Tool) -> None:
    """An empty word is none, so that lines are read."""
    assert tool([f"--obj={SPECTRA}", ""], b"0x2340\n").out == b"main\n/src/spectra/main.cc:113:0\n\n"


def test_missing_value(tool: Tool) -> None:
    """An option at the end lacks its value."""
    found = tool(["--obj"])
    assert (found.code, found.err) == (2, b"llvm-symbolizer: error: --obj: missing argument\n")


def test_missing_object(tool: Tool) -> None:
    """A file that the command line names has to be there."""
    found = tool(["--obj=/nonexist", "1"])
    assert (found.code, found.out) == (1, b"")
    assert found.err == b"llvm-symbolizer: error: '/nonexist': No such file or directory\n"


@pytest.mark.parametrize("words", [[], ["-a"]])
def test_file_that_becomes_unreadable(words: list[str], tmp_path: Path) -> None:
    """A process that stays answers on when its file is overwritten by what is no binary, and reports that once."""
    path = tmp_path / "program"
    shutil.copy(SPECTRA, path)
    problems: list[str] = []
    with Binaries(Places(), None) as binaries:
        symbolizer = LlvmSymbolizer(parsed([f"--obj={path}", *words], "", False), binaries, problems.append)
        assert b"main.cc" in symbolizer.answers([b"0x2340\n"])[0] and not problems
        path.write_bytes(b"no binary")
        answers = [symbolizer.answers([b"0x2340\n"]) for _ in range(2)]
    assert all(each[0].endswith(b"??\n??:0:0\n\n") for each in answers)
    assert len(problems) == 1 and "was not recognized" in problems[0]


def test_options_from_files_and_environment(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`@FILE` and LLVM_SYMBOLIZER_OPTS are read, also the one in the other."""
    file = tmp_path / "options"
    file.write_text(f"--obj='{SPECTRA}' --no-demangle")
    monkeypatch.setenv("LLVM_SYMBOLIZER_OPTS", "-s -a")
    expected = b"0x2340\nmain\nmain.cc:113:0\n\n"
    assert tool([f"@{file}", "0x2340"]).out == expected
    monkeypatch.setenv("LLVM_SYMBOLIZER_OPTS", f"-s -a @{file}")
    assert tool(["0x2340"]).out == expected
    monkeypatch.delenv("LLVM_SYMBOLIZER_OPTS")
    words = [f"--obj={SPECTRA}", "--cache-size", "9", "--", "@none", "0x2340"]
    assert tool(words).out == b"??\n??:0:0\n\nmain\n/src/spectra/main.cc:113:0\n\n"


def test_named_package(tool: Tool, tmp_path: Path) -> None:
    """Split units come from the package of --dwp, wherever it is."""
    parts = PARTS / "clang-dwarf5"
    path = shutil.copy(parts / "ledger.debug", tmp_path)
    asked = addresses(parts / "ledger.debug", 20)
    alone, found = (
        tool([f"--obj={path}", *more, *asked]).out for more in ([], [f"--dwp={parts / 'dwp' / 'ledger.dwp'}"])
    )
    assert found.count(b".cc:") > alone.count(b".cc:")


def test_debug_file_by_build_id_and_link(tool: Tool, tmp_path: Path) -> None:
    """The debug file is found by build id below --debug-file-directory, and beside the file by its debug link if its
    checksum agrees (R380, debug files of one binary)."""
    stripped, debug = (BINARIES / "gcc-split" / each for each in ("stripped", "debug"))
    program = next(path for path in stripped.iterdir() if path.name.startswith("ledger"))
    debug_file = next(path for path in debug.iterdir() if path.name.startswith("ledger"))
    with ElfImage.open(program) as image:
        build_id = image.build_id or ""
    asked = addresses(program, 20)
    alone = tool([f"--obj={program}", f"--debug-file-directory={tmp_path}", *asked]).out
    folder = tmp_path / "debug" / ".build-id" / build_id[:2]
    folder.mkdir(parents=True)
    shutil.copy(debug_file, folder / f"{build_id[2:]}.debug")
    found = tool([f"--obj={program}", f"--debug-file-directory={tmp_path / 'debug'}", *asked]).out
    assert b".cc:" in found and b".cc:" not in alone
    linked = tmp_path / "linked" / str(program.resolve().parent).lstrip("/")
    shutil.copytree(debug_file.parent, linked)
    assert tool([f"--obj={program}", f"--fallback-debug-path={tmp_path / 'linked'}", *asked]).out == found
    by_id = tool([f"--debug-file-directory={tmp_path / 'debug'}", f"--build-id={build_id}", *asked]).out
    assert by_id.count(b"\n\n") == len(asked) and by_id.count(b".cc:") == found.count(b".cc:")


def test_file_that_is_called_like_a_build_id(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build id leads to no file of that name, and a path to no binary with that build id (R380, debug files of one
    binary)."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SPECTRA, "abcd")
    unknown = b"??\n??:0:0\n\n"
    found = tool([], b"BUILDID:abcd 0x2340\nabcd 0x2340\n")
    assert found.out == unknown + b"main\n/src/spectra/main.cc:113:0\n\n"
    assert found.err == b"llvm-symbolizer: error: 'ABCD': could not find build ID\n"
    assert tool(["--build-id=abcd", "0x2340"]).out == unknown
    with ElfImage.open(SPECTRA) as image:
        build_id = image.build_id
    folder = tmp_path / ".build-id" / build_id[:2]
    folder.mkdir(parents=True)
    shutil.copy(SPECTRA, folder / build_id[2:])
    words = [f"--debug-file-directory={tmp_path}"]
    found = tool(words, f"{build_id} 0x2340\nBUILDID:{build_id} 0x2340\n".encode())
    assert found.out == unknown + b"main\n/src/spectra/main.cc:113:0\n\n"
    assert b"No such file or directory" in found.err


def test_hostile_lines(tool: Tool) -> None:
    """Garbage is answered as unknown, each piece of 1023 bytes of a long line once, and nothing else happens."""
    lines = [b"\0\0\xff", b"\x80" * 300, b"9" * 900, b"a" * 20_000, b"0x" + b"f" * 500, b"FILE:" * 100, b'"' * 50]
    found = tool([f"--obj={SPECTRA}"], b"\n".join(lines) + b"\n0x2340")
    blocks = found.out.split(b"\n\n")
    assert blocks[-1] == b"" and blocks[-2] == b"main\n/src/spectra/main.cc:113:0"
    assert set(blocks[:-2]) == {b"??\n??:0:0"}
    assert b"Traceback" not in found.err and b"\x80" not in found.err and b"\0" not in found.err


def test_pieces_of_long_lines() -> None:
    """Lines come in batches of bounded size, a long one in pieces, the last one also without an end."""
    data = b"a\n\n" + b"b" * 25 + b"\n" + b"c" * 10 + b"\n" + b"d" * 9 + b"\nlast"
    read, written = os.pipe()
    os.write(written, data)
    os.close(written)
    found = [line for batch in batches(read, 10) for line in batch]
    os.close(read)
    expected = [b"a\n", b"\n", b"b" * 10, b"b" * 10, b"b" * 5 + b"\n", b"c" * 10, b"\n", b"d" * 9 + b"\n", b"last"]
    assert found == expected
    assert AT_ONCE >= 1 << 17


NAMED = ["main.cold", "main.start"]


def test_names_that_end_like_marks_of_copies(tool: Tool, tmp_path: Path) -> None:
    """Without a symbol table a function has the name that the debug information gives it, whole."""
    made = [function(name, 0x1000 + 16 * row, 16, decl_file=1, decl_line=9) for row, name in enumerate(NAMED)]
    lines = Lines(sequence((0x1000, 9), end=0x1020), files=[("a.go", 0)])
    sections = dwarf_sections([unit(*made, fmt=Format(4), lines=lines)])
    (tmp_path / "x").write_bytes(elf_file([text(), *sections], [Segment(0x1000, 0x1000)]))
    found = tool([f"--obj={tmp_path / 'x'}", "0x1004", "0x1014"]).out.split(b"\n")
    assert [each.decode() for each in found if each and b":" not in each] == NAMED


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("/usr/bin/llvm-symbolizer", "llvm-symbolizer"),
        ("llvm-symbolizer-19", "llvm-symbolizer"),
        ("x86_64-linux-gnu-addr2line", "addr2line"),
        ("llvm-addr2line-19.1", "llvm-addr2line"),
        ("symbolize", ""),
        ("addr2line.py", ""),
        ("my-llvm-symbolizer-wrapper", ""),
    ],
)
def test_names_of_links(program: str, name: str) -> None:
    """A link may have the prefix of a target and the suffix of a version."""
    assert tool_of(program) == name


@pytest.mark.needs("llvm-addr2line-19")
@pytest.mark.parametrize("options", ["", "-f", "-fi", "-fiC", "-fipaC", "-a -s"])
def test_llvm_addr2line(options: str, tool: Tool) -> None:
    """llvm-addr2line has GNU's style and other defaults; all addresses are hexadecimal."""
    words = [*options.split(), "-e", str(SPECTRA)]
    lines = f"{INLINED[2:]}\n{INLINED}\n11\nzz\n,\nmain\n".encode()
    assert tool(words, lines, "llvm-addr2line").out == other([find("llvm-addr2line-19"), *words], lines).out
