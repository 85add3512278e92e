"""Help in two lengths, errors of one line, suggestions, and binaries among the profiles."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from symbolize.cli import main
from symbolize.cli.arguments import GROUPS
from symbolize.cli.commands import COMMANDS, parser_of
from tests.support.fixture_files import BINARIES, FIXTURES

PROF = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
NAMES = ["", *COMMANDS]
SCREEN = 40
"""Lines of a terminal window, less a few for the prompt."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a profile, its binaries, and sources."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    shutil.copy(PROF, "prod.prof")
    shutil.copytree(BINARIES / "gcc-pie", "build")
    Path("src").mkdir()
    for each in "abc":
        Path(f"src/{each}.cc").write_text("int a;\n")


def outcome(*arguments: str) -> int:
    """The exit code of the command."""
    try:
        return main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


@pytest.mark.parametrize("name", NAMES)
def test_short_help_is_one_screen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """At most 80 columns, commands first, whole explanations on their lines."""
    assert outcome(*filter(None, [name]), "-h") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= 80
    assert any(line.startswith(f"Usage: symbolize {name} ".replace("  ", " ")) for line in lines)
    if not name:
        headings = [line for line in lines if line.endswith(":")]
        assert headings == ["Commands:", "Binaries:", "Output:", "Names:", "Report:", "General:"]
        assert not any(line.startswith(" " * 20) for line in lines)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("columns", [20, 80, 200])
def test_long_help_has_all(
    name: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each option in its group, in the same order for all commands; `help` prints the same."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert outcome(*filter(None, [name]), "--help") == 0
    text = capsys.readouterr().out
    parser = parser_of(name)
    for action in parser._actions:
        for flag in action.option_strings:
            assert flag in text
    titles = [title for title, _ in parser.sections()]
    assert titles == [title for title in GROUPS if title in titles]
    assert [text.index(f"\n{title}:\n") for title in titles] == sorted(text.index(f"\n{title}:\n") for title in titles)
    assert columns < 80 or max(map(len, text.splitlines())) <= min(columns, 100)
    assert outcome("help", *filter(None, [name])) == 0
    assert capsys.readouterr().out == text


@pytest.mark.process
def test_commands_are_imported_when_they_are_chosen() -> None:
    """The short help of the program reads their descriptions from a table."""
    code = (
        "import sys; from symbolize.cli import main; from symbolize.cli.commands import COMMANDS\ntry: main(['-h'])\n"
    )
    code += "except SystemExit: print([m for m in COMMANDS if 'symbolize.cli.' + m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=with_package())
    assert run.stdout.endswith("[]\n")


def with_package() -> dict[str, str]:
    """The environment of a process that has the package."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--binary", "build"], "no such option: --binary; did you mean --binaries?"),
        (["prod.prof", "--demangel=full"], "no such option: --demangel; did you mean --demangle?"),
        (["prod.prof", "-x"], "no such option: -x"),
        (
            ["prod.prof", "--demangle", "ful"],
            "--demangle: ful is not one of default, templates, full, none; did you mean full?",
        ),
        (["prod.prof", "--demangle"], "--demangle: expected one argument"),
        ([], "missing: PROFILE"),
        (["cach", "stats"], "no such file or command: cach; did you mean symbolize cache?"),
        (["plann", "x"], "no such file or command: plann; did you mean symbolize plan?"),
        (
            ["record", "./app"],
            "no such file or command: record; symbolize records nothing: `perf record -g -- PROGRAM`, then "
            "`symbolize view perf.data`",
        ),
        (["web", "prod.prof"], "no such file or command: web; `symbolize view PROFILE --open` shows the flame graph"),
        (["cache", "stat"], "ACTION: stat is not one of stats, verify, gc, path; did you mean stats?"),
        (["help", "bach"], "COMMAND: bach is not one of " + ", ".join(COMMANDS) + "; did you mean batch?"),
        (["prod.prof", "-b", "buidl"], "buidl: no such folder or file; did you mean build?"),
        (["diff", "prod.prof", "build"], "expected 2 profiles, not 1: prod.prof"),
        (["list", "f", "prod.prof", "prod.prof"], "expected 1 profile, not 2: prod.prof, prod.prof"),
        (["build"], "no profile given: build is a folder; usage: symbolize [OPTIONS] PROFILE... -b build"),
        (
            ["plan", "build/ledger"],
            "no profile given: build/ledger is an ELF file; usage: symbolize plan [OPTIONS] PROFILE... -b build/ledger",
        ),
    ],
)
def test_usage_errors(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what is wrong and what was meant, perhaps one more where help is."""
    assert outcome(*arguments) == 2
    out, err = capsys.readouterr()
    first, *hint = (line for line in err.splitlines() if not line.startswith("note: "))
    assert (out, first) == ("", f"symbolize: {line}")
    assert not hint or (len(hint) == 1 and hint[0].startswith("try: symbolize ") and hint[0].endswith(" -h"))


def test_options_among_the_profiles() -> None:
    """In any order, and none behind `--`."""
    for arguments in (["a", "-b", "x", "b", "-q", "c"], ["-q", "a", "b", "c"], ["-q", "--", "a", "b", "c"]):
        options = parser_of("").parse_args(arguments)
        assert (options.profiles, options.quiet) == (["a", "b", "c"], True)
    assert parser_of("").parse_args(["--", "-x", "-q"]).profiles == ["-x", "-q"]


@pytest.mark.parametrize(
    ("arguments", "profiles"),
    [
        (["list", "f", "build", "prod.prof"], ["prod.prof"]),
        (["diff", "prod.prof", "build", "prod.prof"], ["prod.prof", "prod.prof"]),
        (["top", "build/ledger", "prod.prof"], ["prod.prof"]),
    ],
)
def test_binaries_among_the_arguments_of_other_commands(arguments: list[str], profiles: list[str]) -> None:
    """Those that show profiles take them too."""
    options = parser_of(arguments[0]).parse_args(arguments[1:])
    assert options.profiles == profiles
    assert len(options.binaries) == 1


def test_mistyped_files(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a file that is not there the one that was meant is named; the others are not stopped."""
    assert main(["prod.pro", "prod.prof", "-q"]) == 1
    assert capsys.readouterr().err == "symbolize: prod.pro: no such file; did you mean prod.prof?\n"
    assert Path("prod.symbolized.pb.gz").exists()
    assert main(["src/d.cc", "-q"]) == 1
    assert "src/d.cc: no such file; did you mean src/" in capsys.readouterr().err
    Path("planned.prof").touch()
    assert main(["planned", "-q"]) == 1
    assert capsys.readouterr().err == "symbolize: planned: no such file; did you mean planned.prof?\n"
    assert main(["cache.x", "-q"]) == 1
    assert capsys.readouterr().err == "symbolize: cache.x: no such file\n"


@pytest.mark.parametrize("arguments", [["prod.prof", "build"], ["build", "prod.prof"], ["build/ledger", "prod.prof"]])
def test_binaries_among_the_profiles(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """In the order of pprof or the other way round; a note says what they are taken for."""
    assert main(["prod.prof", "-b", "build", "-o", "wanted", "-q"]) == 0
    assert main([*arguments, "-o", "found"]) == 0
    assert Path("found").read_bytes() == Path("wanted").read_bytes()
    err = capsys.readouterr().err
    (binaries,) = set(arguments) - {"prod.prof"}
    assert err.startswith(f"note: {binaries} is taken as --binaries\n")
    assert main([*arguments, "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["plan", *arguments]) == 0
    assert "build/ledger" in capsys.readouterr().out


def test_folder_without_binaries(capsys: pytest.CaptureFixture[str]) -> None:
    """One line says so, each time, also if the walk is remembered; none about folders that have some."""
    for _ in range(2):
        assert main(["prod.prof", "-b", "src", "-b", "build", "-b", "src/a.cc"]) == 0
        warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
        assert warnings == [
            "warning: no ELF files below src (3 files looked at)",
            "warning: src/a.cc: is neither an ELF file nor a list of symbols of a known name",
        ]
    assert main(["index", "src"]) == 0
    assert capsys.readouterr().err.startswith("symbolize: no ELF files below src (3 files looked at)\n0 binaries: ")


def test_options_without_effect(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Choosing among the profiles of a trace, or samples of simpleperf, is noted where there is nothing to choose."""
    monkeypatch.setenv("COLUMNS", "1000")
    assert main(["prod.prof", "--pid", "5", "--trace-offcpu", "on-cpu", "--show-art-frames"]) == 0
    assert capsys.readouterr().out.count(": it had no effect.\n") == 3
    for arguments in (["prod.prof"], ["top", "prod.prof"]):
        assert main(arguments) == 0
        captured = capsys.readouterr()
        assert "no effect" not in captured.out + captured.err


def test_waiting_for_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` on a terminal says that it waits."""

    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    for arguments, note in ((["-"], True), (["-", "-q"], False)):
        monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(PROF.read_bytes())))
        assert main(arguments) == 0
        assert ("note: waiting for a profile on standard input" in capsys.readouterr().err) == note
