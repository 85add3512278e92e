"""`symbolize view`, `top`, `tree`, `list` and `diff`, and views as outputs of the default command."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from symbolize.cli import main
from tests.support.batch_runs import trace
from tests.support.fixture_files import BINARIES, FIXTURES

PROFILES = FIXTURES / "profiles" / "gperftools"
PROFILE = str(PROFILES / "ledger-gcc-pie.prof")
CLANG = str(PROFILES / "ledger-clang-pie.prof")
BIN = str(BINARIES / "gcc-pie")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    """What a command prints."""
    assert main(arguments) == code
    streams = capsys.readouterr()
    return streams.out, streams.err


NOTE = f"note: {PROFILE}: not proved to be what ran: ledger, 89.2 % (supported)"
"""What the commands say of a profile without build ids."""


def numbers(line: str) -> list[str]:
    """The columns of a line without the name of the function."""
    return line.split()[:4]


def test_top(capsys: pytest.CaptureFixture[str]) -> None:
    """The heaviest functions, unnamed code as its module; without binaries all is unnamed."""
    out, err = printed(capsys, "top", PROFILE, "-b", BIN, "-n", "4")
    lines = out.splitlines()
    assert lines[0] == "cpu: 1.51s"
    assert err.startswith(NOTE) and err.count("\n") == 1
    assert [line.split("  ")[-1] for line in lines[2:]] == [
        "(anonymous namespace)::even_step",
        "ledger::(anonymous namespace)::Parser::skip_blanks",
        "(anonymous namespace)::odd_step",
        "[libgcc_s.so.1]",
    ]
    assert numbers(lines[2]) == ["328.00ms", "21.69%", "476.00ms", "31.48%"]
    raw, _ = printed(capsys, "top", PROFILE, "-n", "1")
    assert raw.splitlines()[2].endswith("[ledger]")


@pytest.mark.needs("go")
@pytest.mark.parametrize(
    "filters",
    [
        [],
        ["--focus", "Parser"],
        ["--ignore", "even_step|libgcc"],
        ["--hide", "Parser::.*a"],
        ["--show", "ledger"],
        ["--focus", "formula.cc", "--hide", "libstdc"],
    ],
)
def test_top_is_that_of_pprof(capsys: pytest.CaptureFixture[str], tmp_path: Path, filters: list[str]) -> None:
    """Rows, values and percentages are those of `go tool pprof -top`, whatever is filtered."""
    assert main([PROFILE, "-b", BIN, "-o", "x.pb.gz", "-q"]) == 0
    capsys.readouterr()
    out, _ = printed(capsys, "top", "x.pb.gz", "-n", "1000", *filters)
    options = [f"-{name[2:]}={value}" for name, value in zip(filters[::2], filters[1::2], strict=True)]
    command = ["go", "tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0", *options, "x.pb.gz"]
    pprof = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(tmp_path)).stdout
    rows = (line.split(maxsplit=5) for line in pprof[pprof.index("cum%") :].splitlines()[1:])
    theirs = {
        re.sub(r" \((partial-)?inline\)$", "", name): (flat, flat_share, total, share)
        for flat, flat_share, _, total, share, name in rows
    }
    ours = {name: figures for *figures, name in (line.split(maxsplit=4) for line in out.splitlines()[2:])}
    assert ours.keys() == theirs.keys()
    for name, figures in ours.items():
        assert [*map(number, figures)] == pytest.approx([*map(number, theirs[name])], rel=0.01, abs=0.006), name


def number(figure: str) -> float:
    """A value in milliseconds, or a percentage."""
    digits, unit = re.fullmatch(r"([\d.]+)(ns|ms|s|%|)", figure).groups()  # type: ignore[union-attr]
    return float(digits) * {"s": 1000.0, "ns": 1e-6}.get(unit, 1.0)


def environment(folder: Path) -> dict[str, str]:
    """What pprof needs, without the user's files."""
    return {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(folder), "PPROF_TMPDIR": str(folder)}


def test_tree(capsys: pytest.CaptureFixture[str]) -> None:
    """From the root on, or from the leaves on; smaller branches are left out, and only branches are indented."""
    out, _ = printed(capsys, "tree", PROFILE, "-b", BIN, "--min", "30")
    assert out.splitlines()[1].split() == ["total", "total%", "self", "function"]
    assert re.search(r"1\.02s +67\.72% +│ std::__invoke_impl\n", out)
    assert re.search(r"532\.00ms +35\.19% +│ ├ main::{lambda\(\)#2}::operator\(\)\n", out)
    assert "Book::post" not in out
    callers, _ = printed(capsys, "tree", PROFILE, "-b", BIN, "--callers", "--min", "15")
    assert re.search(r"240\.00ms +15\.87% +└ ledger::\(anonymous namespace\)::Parser::skip_blanks\n", callers)


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Source lines with their values, and around them; without the sources the lines that have values."""
    out, _ = printed(capsys, "list", "even_step", PROFILE, "-b", BIN, "--source", str(FIXTURES / "src"))
    assert "(anonymous namespace)::even_step in /src/ledger/main.cc\n" in out
    assert re.search(r" 184\.00ms +468\.00ms +128    if \(n % 2 != 0\) return odd_step\(n, steps\);\n", out)
    assert re.search(r"         \. +\. +126\n", out)
    bare, _ = printed(capsys, "list", "even_step", PROFILE, "-b", BIN)
    assert "(source not found)" in bare
    assert [line.split()[2] for line in bare.splitlines()[2:]] == ["127", "128", "130"]
    mapped, _ = printed(capsys, "list", "even_step", PROFILE, "-b", BIN, "--path-map", f"/src={FIXTURES / 'src'}")
    assert mapped == out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "no_such", PROFILE, "-b", BIN), "has no function with source lines that matches 'no_such'"),
        (("list", "(", PROFILE), "'(' is not a regular expression"),
        (("list", "x", PROFILE, "--path-map", "here"), "--path-map here: has to be OLD=NEW"),
        (("list", "x", PROFILE, "--source", "none"), "none: no such folder"),
        (("top", PROFILE, "--focus", "("), "focus: '(' is not a regular expression"),
        (("top", PROFILE, "--sample-type", "wall"), " has samples, cpu"),
        (("view", PROFILE, "-o", "x.jpg"), "no format has the ending .jpg"),
        (("view", PROFILE, "--open", "-o", "-"), "--open needs a file"),
        (("view", PROFILE, "--base", CLANG, "-o", "x.svg"), "svg shows one profile"),
        (("view", PROFILE, "-o", PROFILE), "input"),
        (("top", "none.prof"), "none.prof: no such file"),
    ],
)
def test_refused(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    """What cannot be done is said in a line, and nothing is written."""
    assert main(arguments) in (1, 2)
    streams = capsys.readouterr()
    assert message in streams.err
    assert len([line for line in streams.err.splitlines() if not line.startswith("note: ")]) <= 2
    assert not [*Path().iterdir()]


def test_diff(capsys: pytest.CaptureFixture[str]) -> None:
    """What changed most comes first, with its sign; a profile does not differ from itself."""
    both = ["-b", BIN, "-b", str(BINARIES / "clang-pie")]
    out, _ = printed(capsys, "diff", PROFILE, CLANG, *both, "-n", "2")
    lines = out.splitlines()
    assert lines[0] == "cpu: 1.37s, base 1.51s"
    assert lines[2].split()[:6] == ["-56.00ms", "-3.70%", "56.00ms", "3.70%", "0ns", "0.00%"]
    same, _ = printed(capsys, "diff", PROFILE, PROFILE, *both)
    assert len(same.splitlines()) == 2


@pytest.mark.parametrize("name", ["x.html", "x.svg", "x.folded", "x.speedscope.json", "x.firefox.json", "x.csv"])
@pytest.mark.full
def test_endings(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The default command and `view` write the same, by the ending; `--emit` overrides it."""
    assert printed(capsys, PROFILE, "-b", BIN, "-o", name, "--report", "none")[0] == ""
    first = Path(name).read_bytes()
    assert f"replaced {name}" in printed(capsys, "view", PROFILE, "-b", BIN, "-o", name)[1]
    assert Path(name).read_bytes() == first
    emit = {"x.speedscope.json": "speedscope", "x.firefox.json": "firefox"}.get(name, name[2:])
    assert "wrote other.bin" in printed(capsys, "view", PROFILE, "-b", BIN, "-o", "other.bin", "--emit", emit)[1]
    assert Path("other.bin").read_bytes() == first


def test_view(capsys: pytest.CaptureFixture[str]) -> None:
    """A page for each profile in the current folder, or in a folder; the titles are names, not paths."""
    out, err = printed(capsys, "view", PROFILE, CLANG, "-b", BIN)
    assert out == ""
    assert err.startswith(NOTE)
    assert "\nwrote ledger-gcc-pie.html: 89.2 % of the samples in named code\n" in err
    assert "ledger-clang-pie.prof: 0.0 % of the samples are in named code; symbolize" in err
    assert err.endswith("wrote ledger-clang-pie.html: 0.0 % of the samples in named code\n")
    page = Path("ledger-gcc-pie.html").read_bytes()
    assert b"<title>ledger-gcc-pie.prof" in page
    assert b'<details class="caveat"><summary>not proved to be what ran: ledger, 89.2 %' in page
    Path("old").mkdir()
    shutil.copy(PROFILE, "old/ledger-gcc-pie.prof")
    printed(capsys, "view", PROFILE, "-b", BIN, "--base", "old/ledger-gcc-pie.prof", "-o", "d.html")
    assert f"<title>{PROFILE}".encode() in Path("d.html").read_bytes()
    Path("pages").mkdir()
    err = printed(capsys, "view", PROFILE, "-o", "pages")[1]
    assert err.endswith("has no names: give the folders with its binaries with -b\nwrote pages/ledger-gcc-pie.html\n")


def test_a_page_with_names_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """A page that has names stays where the same samples have none now, by either command, and only then."""
    printed(capsys, "view", PROFILE, "-b", BIN, "-o", "p.html")
    named = Path("p.html").read_bytes()
    for command in (["view"], []):
        _, err = printed(capsys, *command, PROFILE, "-o", "p.html")
        assert "symbolize: p.html kept: names are in it, and this run found none; delete it, or write" in err
        assert "replaced" not in err and Path("p.html").read_bytes() == named
    _, err = printed(capsys, "view", PROFILE, "-o", "p.html", "--base", CLANG)
    assert "replaced p.html" in err
    printed(capsys, "view", PROFILE, "-o", "p.html")
    nameless = Path("p.html").read_bytes()
    assert printed(capsys, "view", PROFILE, "-b", BIN, "-o", "p.html")[1].count("replaced p.html") == 1
    assert printed(capsys, "view", CLANG, "-o", "p.html")[1].endswith("replaced p.html\n")  # of another recording
    assert Path("p.html").read_bytes() != nameless


def test_view_of_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """The profiles of a trace get a page each in a folder; tables and differences want one of them."""
    Path("x.pftrace").write_bytes(trace(1, 2))
    printed(capsys, "view", "x.pftrace")
    pages = sorted(path.name for path in Path("x").iterdir())
    assert len(pages) > 1 and all(page.endswith(".html") for page in pages)
    assert b"<title>x.pftrace: /bin/p1 (pid 1) heap" in (Path("x") / pages[0]).read_bytes()
    out, _ = printed(capsys, "top", "x.pftrace")
    assert out.count("x.pftrace") == len(pages)
    assert f"has {len(pages)} profiles" in printed(capsys, "diff", "x.pftrace", PROFILE, code=2)[1]


def test_one_bad_profile(capsys: pytest.CaptureFixture[str]) -> None:
    """A profile that cannot be read does not stop the others."""
    Path("bad.prof").write_bytes(b"nothing")
    out, err = printed(capsys, "top", "bad.prof", PROFILE, code=1)
    assert "bad.prof: is not a profile" in err and "[ledger]" in out
    assert "wrote ledger-gcc-pie.html" in printed(capsys, "view", "bad.prof", PROFILE, code=1)[1]


def test_standard_output(capfdbinary: Any) -> None:
    """A text view may go to a pipe, and nothing else goes there."""
    assert main(["view", PROFILE, "-b", BIN, "-o", "-", "--emit", "folded"]) == 0
    streams = capfdbinary.readouterr()
    assert streams.out.startswith(b"[libc.so.6];") and streams.err.startswith(NOTE.encode())


def test_open(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--open` shows the page in the browser; without one it says what to do."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)) or len(opened) == 1)
    printed(capsys, "view", PROFILE, "--open")
    assert opened == [Path("ledger-gcc-pie.html").absolute().as_uri()]
    assert "no browser was found; open ledger-gcc-pie.html" in printed(capsys, "view", PROFILE, "--open")[1]
