"""The command: arguments, outputs, reports, exit codes."""

import gzip
import io
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import symbolize
from symbolize.cli import main
from symbolize.cli.commands import parser_of
from symbolize.cli.console import ProgressBar
from symbolize.cli.options import below_text
from symbolize.core.cursor import uncompiled
from symbolize.options import Options
from tests.support import fixture_files as fixtures
from tests.support.elf_writer import ALLOC, NOTE, Section, Segment, Symbol, build_id_note, elf_file, text
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.messages import profile_pb2
from tests.support.pprof_writer import Line, Mapping, Place, profile

ROOT = Path(__file__).parent.parent.parent
PROF = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
PERF = FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz"
BIN = str(BINARIES / "gcc-pie")


def small(*places: Place) -> bytes:
    """A small profile."""
    mapping = Mapping(0x1000, 0x9000, 0, "/bin/app")
    return profile([mapping], [(places or (Place(0x1000, 1), Place(0x2000, 1)), [1])])


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")


def process(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    """The command as a process."""
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-m", "symbolize", *arguments], capture_output=True, env=path, **options)


def test_default_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without -o the result lies in the current folder under the profile's name, and the report goes to stdout,
    with how to look at the result as its last line."""
    assert main([str(PROF), "--binaries", BIN]) == 0
    assert os.listdir() == ["ledger-gcc-pie.symbolized.pb.gz"]
    out, err = capsys.readouterr()
    assert err == ""
    assert "/opt/ledger/bin/ledger" in out
    assert f"from {BIN}/ledger (supported: " in " ".join(out.split())
    name = "ledger-gcc-pie.symbolized.pb.gz"
    assert out.endswith(f"wrote {name}\nlook at it: symbolize view {name} --open   or: go tool pprof -http=: {name}\n")


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("a.prof", "a.symbolized.pb.gz"),
        ("a.pb.gz", "a.symbolized.pb.gz"),
        ("a.pb.zst", "a.symbolized.pb.gz"),
        ("cpu", "cpu.symbolized.pb.gz"),
        ("mixer.proto", "mixer.symbolized.pb.gz"),
        ("mixer.symbolized.pb.gz", "mixer.symbolized.pb.gz"),
        ("x.pprof.heap", "x.symbolized.pb.gz"),
        ("x.heap.pb.gz", "x.heap.symbolized.pb.gz"),
        (".gz", ".gz.symbolized.pb.gz"),
        ("a b\n.prof", "a b\n.symbolized.pb.gz"),
    ],
)
def test_names_of_outputs(name: str, output: str, tmp_path: Path) -> None:
    """The endings of profiles are cut off before the ending of results is put on."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(small())
    assert main([f"in/{name}", "-q"]) == 0
    assert sorted(os.listdir()) == sorted(["in", output])


def test_output_file(tmp_path: Path) -> None:
    """-o names the file; one that exists is replaced, and nothing lies beside it."""
    Path("out.pb.gz").write_text("old")
    assert main([str(PROF), "-b", BIN, "-o", "out.pb.gz", "-q"]) == 0
    assert os.listdir() == ["out.pb.gz"]
    assert fixtures.read_pprof(Path("out.pb.gz")).sample


def test_output_folder(capsys: pytest.CaptureFixture[str]) -> None:
    """-o may name a folder; several profiles need one, and get a table; with -v also reports that say which is
    which."""
    Path("out").mkdir()
    assert main([str(PROF), str(PERF), "-o", "out", "-q"]) == 0
    assert sorted(os.listdir("out")) == ["ledger-gcc-pie.symbolized.pb.gz", "spectra-gcc-pie.symbolized.pb.gz"]
    Path("one").mkdir()
    for name in ("one", "one/"):
        assert main([str(PROF), "-o", name]) == 0
        assert os.listdir("one") == ["ledger-gcc-pie.symbolized.pb.gz"]
    assert f"{PROF}:\n" not in capsys.readouterr().out
    assert main([str(PROF), str(PERF), "-o", "out"]) == 0
    out = capsys.readouterr().out
    assert out.count("without names: 100.0 % binary not found: ") == 2
    table = [line.split() for line in out.partition("stacks ")[2].splitlines()[1:5:2]]
    assert [(row[0], row[-2], row[-1]) for row in table] == [
        ("328", str(PROF), "ledger-gcc-pie.symbolized.pb.gz"),
        ("293", str(PERF), "spectra-gcc-pie.symbolized.pb.gz"),
    ]
    assert "wrote 2 profiles to out/, 2 of them replaced\n" in out
    assert "cum%  function" not in out
    assert main([str(PROF), str(PERF), "-o", "out", "-v"]) == 0
    out = capsys.readouterr().out
    assert f"{PROF}:\n" in out
    assert f"{PERF}:\n" in out
    assert out.count("cum%  function") == 2


@pytest.mark.process
def test_standard_streams() -> None:
    """`-` reads standard input and writes standard output; the report does not get into the profile."""
    run = process("-", "-o", "-", "-b", BIN, input=PERF.read_bytes())
    assert run.returncode == 0
    assert b"is in named code" in run.stderr
    assert b"wrote" not in run.stderr
    message: Any = profile_pb2.Profile.FromString(gzip.decompress(run.stdout))
    assert len(message.function) > 30


def test_standard_input_to_default_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of standard input has a name as well."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(small())))
    assert main(["-", "-q"]) == 0
    assert os.listdir() == ["stdin.symbolized.pb.gz"]


@pytest.mark.process
def test_reader_goes_away() -> None:
    """When nobody reads standard output any more the command ends with a failure and without a traceback."""
    Path("x.pb").write_bytes(PERF.read_bytes())
    command = f"{sys.executable} -m symbolize x.pb -o - -q; echo $? >&2"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(["sh", "-c", f"({command}) | true"], capture_output=True, env=environment, check=True)
    assert b"Traceback" not in run.stderr
    assert run.stderr.split()[-1] in (b"0", b"1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing: PROFILE"),
        (["x.pb", "--unknown"], "no such option: --unknown"),
        (["x.pb", "--fail-under", "101"], "not between 0 and 100"),
        (["x.pb", "--fail-under", "nan"], "not between 0 and 100"),
        (["x.pb", "--fail-under", "much"], "invalid percentage"),
        (["x.pb", "-q", "-v"], "not allowed with"),
        (["x.pb", "--demangle", "some"], "some is not one of default, templates, full, none"),
        (["x.pb", "-b", "nowhere"], "nowhere: no such folder or file"),
        (
            ["x.pb", "-b", "http://x/y"],
            "http://x/y: is a URL, and only local folders and files are read: mount or copy it",
        ),
        (["x.pb", "--pid", "server"], "'server' is no process ID; use --process for the name of a process"),
        (["x.pb", "-b", "n" * 300], "no such folder or file"),
        (["x.pb", "y.pb", "-o", "one.pb.gz"], "name a folder"),
        (["x.pb", "y.pb", "-o", "-"], "name a folder"),
        (["x.pb", "-o", "nowhere/"], "no such folder"),
        (["-", "-"], "once only"),
        (["a/x.pb", "b/x.pb"], "several profiles would be written to x.symbolized.pb.gz"),
        (["x.pb", "-o", "a.gz", "--folded-report", "./a.gz"], "--folded-report ./a.gz is the output of a profile too"),
        (["x.pb", "--folded-report", "x.symbolized.pb.gz"], "is the output of a profile too"),
        (["x.pb", "x.pb.gz"], "several profiles would be written to x.symbolized.pb.gz"),
        (["x.pb", ""], "empty name"),
        (["x.pb", "-o", ""], "empty name"),
        (["x.pb", "--annotate", "--emit", "module-symbols"], "--annotate changes displayed names"),
        (["x.pb", "-b", ".", "--cache", ""], "--cache has an empty name"),
        (["x.pb", "-b", ".", "--cache", "https://b/x"], "https://b/x: cannot be written to"),
        (["x.pb", "--cache-limit", "5X"], "5X is not a size"),
        (["x.pb", "--cache-limit", "-5"], "-5 is not a size"),
        (["x.pb", "--cache-limit", "M"], "M is not a size"),
        (["plan", "x.pb", ""], "empty name"),
        (["plan", "-", "-"], "can be read once only"),
    ],
)
def test_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong arguments end with 2 before anything is read or written."""
    Path("x.pb").write_bytes(small())
    try:
        code: Any = main(arguments)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert os.listdir() == ["x.pb"]
    assert message in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.full
def test_more_binaries_than_open_files() -> None:
    """A binary and its kept table stay open, so the limit that processes start with is raised as far as it goes."""
    Path("bin").mkdir()
    mappings, places = [], []
    for number in range(1, 101):
        build_id = number.to_bytes(20)
        sections = [text(), Section(".note.gnu.build-id", build_id_note(build_id), NOTE, ALLOC)]
        data = elf_file(sections, [Segment(0x1000, 0x1000)], [Symbol(f"f{number}", 0x1000, 16)])
        Path(f"bin/{number}").write_bytes(data)
        mappings.append(Mapping(number << 16, (number << 16) + 0x1000, 0, f"/{number}", build_id.hex()))
        places.append(Place(number << 16, number))
    Path("x.pb").write_bytes(profile(mappings, [(places, [1])]))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    few = 64, hard
    for _ in range(3):
        run = process(
            *("x.pb", "-b", "bin", "-o", "y.pb.gz", "--cache", "cache", "--fail-under", "100"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few),
        )
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("limit", "places", "code"),
    [
        ("50", [Place(0x2000, 1, (Line("f"),)), Place(0x1000, 1)], 0),
        ("50.1", [Place(0x2000, 1, (Line("f"),)), Place(0x1000, 1)], 3),
        ("0.1", [Place(0x1000, 1), Place(0x2000, 1, (Line("f"),))], 3),
        ("100", [Place(0x2000, 1, (Line("f"),))], 0),
        ("0", [Place(0x1000, 1)], 0),
        ("0.1", [Place(0x1000, 1)], 3),
        ("0.1", [Place(0x1000, 1, (Line("[unknown]"),)), Place(0x2000, 1, (Line("0x2000"),))], 3),
    ],
)
def test_fail_under(limit: str, places: list[Place], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Below --fail-under, by samples or by frames, the command ends with 3 and says so, and has written its output all
    the same."""
    Path("x.pb").write_bytes(small(*places))
    assert main(["x.pb", "--fail-under", limit, "-q"]) == code
    assert Path("x.symbolized.pb.gz").exists()
    err = capsys.readouterr().err
    assert err.startswith("symbolize: x.pb: coverage ") == bool(code)
    assert err.endswith(f" % is below --fail-under {limit} (of samples and frames the lower one)\n") == bool(code)


@pytest.mark.parametrize("stacks", [[], [((Place(0x1000, 1, (Line("f"),)),), (0,))]], ids=["no samples", "no values"])
def test_no_samples_are_below_any_limit(stacks: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of nothing is no percentage: the report says so, and the check fails."""
    Path("x.pb").write_bytes(profile([Mapping(0x1000, 0x2000, 0, "/bin/app")], stacks))
    assert main(["x.pb", "--fail-under", "0"]) == 3
    err = capsys.readouterr().err
    assert "no samples" in err
    assert "100.0 %" not in err
    assert err.endswith("there are no samples, which is below --fail-under 0\n")


def test_several_below_fail_under(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for all, with the lowest; a coverage is rounded so that it is below."""
    for number in range(3):
        Path(f"{number}.pb").write_bytes(small(Place(0x1000 + number, 1)))
    assert main(["0.pb", "1.pb", "2.pb", "--fail-under", "5.25", "-q"]) == 3
    line = "symbolize: 0.pb: coverage 0.0 % is below --fail-under 5.25 (the lowest of 3 inputs below it)\n"
    assert capsys.readouterr().err == line
    assert below_text(99.96, 100) == "coverage 99.9 % is below --fail-under 100"


@pytest.mark.parametrize("order", [["bad.pb", "x.pb"], ["x.pb", "bad.pb"]])
def test_failure_beats_fail_under(order: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A profile that cannot be read does not stop the others, and its exit code wins."""
    Path("x.pb").write_bytes(small())
    Path("bad.pb").write_text("no profile")
    assert main([*order, "--fail-under", "90", "-q"]) == 1
    assert Path("x.symbolized.pb.gz").exists()
    assert not Path("bad.symbolized.pb.gz").exists()
    assert capsys.readouterr().err.startswith("symbolize: bad.pb: is not a profile")


def test_json_report(capsys: pytest.CaptureFixture[str]) -> None:
    """--report json writes one line of JSON a profile to stdout, and nothing else."""
    Path("out").mkdir()
    assert main([str(PROF), str(PERF), "-b", BIN, "-o", "out", "--report", "json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    first, second = (json.loads(line) for line in out.splitlines())
    assert (first["profile"], second["profile"]) == (str(PROF), str(PERF))
    assert first["output"] == "out/ledger-gcc-pie.symbolized.pb.gz"
    assert [row["verified"] for row in second["mappings"] if row["files"]] == [True, True]


def test_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    """-v lists every place that was tried."""
    assert main([str(PROF), "-b", BIN, "-v"]) == 0
    out = capsys.readouterr().out
    assert "tried path opt/ledger/bin/ledger: nothing there\n" in out
    assert f"tried name ledger: found {BIN}/ledger, unverified\n" in out


def test_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    """-q says nothing at all when all goes well, also about what could not be symbolized."""
    assert main([str(PROF), "-b", BIN, "-q"]) == 0
    assert capfd.readouterr() == ("", "")


def test_warning_without_the_compiled_core(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """That the compiled modules are missing is reported once a run, as text and as JSON, and not with -q."""
    for name in ("x.pb", "y.pb"):
        Path(name).write_bytes(small())
    monkeypatch.setattr("symbolize.core.cursor.COMPILED", False)
    assert main(["x.pb", "y.pb"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "without the compiled core" in line]
    assert len(lines) == 1
    assert lines[0].startswith("warning: ")
    assert main(["x.pb", "y.pb", "--report", "json"]) == 0
    first, second = (json.loads(line)["warnings"] for line in capsys.readouterr().out.splitlines())
    assert [warning for warning in first if "C compiler" in warning] == [uncompiled()]
    assert not any("C compiler" in warning for warning in second)
    assert main(["x.pb", "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_version_without_the_compiled_core(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """--version says that the hot loops run interpreted, and what to do about it."""
    for compiled, ending in ((True, ""), (False, " (interpreted: slow; install a C compiler and reinstall)")):
        monkeypatch.setattr("symbolize.core.cursor.COMPILED", compiled)
        with pytest.raises(SystemExit) as exit_:
            main(["--version"])
        assert exit_.value.code == 0
        assert capsys.readouterr().out == f"symbolize {symbolize.__version__}{ending}\n"


def test_without_binaries(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --binaries a profile is converted, and the report says what to do: of what was looked for here, and of
    what nobody looked for."""
    assert main([str(PROF)]) == 0
    out = capsys.readouterr().out
    assert "binary not found (not on this machine)" in out and "no binaries were given" not in out
    assert main([str(PROF), "--no-local"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("warning: no binaries were given: name a folder with --binaries\n")
    assert out.count("no binaries were given") == 1
    message = fixtures.read_pprof(Path("ledger-gcc-pie.symbolized.pb.gz"))
    assert message.sample
    assert not message.function


@pytest.mark.parametrize("mode", ["default", "templates", "full", "none"])
def test_demangle(mode: str) -> None:
    """--demangle decides how much of a name is shown."""
    Path("x.pb").write_bytes(small(Place(0x1000, 1, (Line("_ZN2ns1fIiEEvT_"),))))
    Path("empty").mkdir()
    assert main(["x.pb", "-b", "empty", "--demangle", mode, "-q"]) == 0
    message = fixtures.read_pprof(Path("x.symbolized.pb.gz"))
    expected = {
        "default": "ns::f",
        "templates": "ns::f<int>",
        "full": "void ns::f<int>(int)",
        "none": "_ZN2ns1fIiEEvT_",
    }
    assert message.string_table[message.function[0].name].decode() == expected[mode]
    assert message.string_table[message.function[0].system_name] == b"_ZN2ns1fIiEEvT_"


def test_roots_in_any_order() -> None:
    """Of several --binaries that have the name the one with the build that ran answers (rule R247)."""
    assert main([str(PROF), "-b", str(BINARIES / "gcc-pie"), "-o", "one.pb.gz", "-q"]) == 0
    for first, second in (("gcc-pie", "clang-pie"), ("clang-pie", "gcc-pie")):
        roots = ["-b", str(BINARIES / first), "-b", str(BINARIES / second)]
        assert main([str(PROF), *roots, "-o", "both.pb.gz", "-q"]) == 0
        assert Path("both.pb.gz").read_bytes() == Path("one.pb.gz").read_bytes()


def test_output_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    """An output that cannot be written is one line and exit code 1, and leaves nothing behind."""
    Path("x.pb").write_bytes(small())
    for output in ("missing/out.pb.gz", "n" * 300, "x.pb/out"):
        assert main(["x.pb", "-o", output]) == 1
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert err.startswith(f"symbolize: {output}: cannot be written: ")
    assert os.listdir() == ["x.pb"]


def test_disk_full(capsys: pytest.CaptureFixture[str]) -> None:
    """A full disk is one line and exit code 1."""
    Path("x.pb").write_bytes(small())
    assert main(["x.pb", "-o", "/dev/full", "-q"]) == 1
    assert capsys.readouterr().err == "symbolize: /dev/full: cannot be written: No space left on device\n"


def test_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An interrupted run leaves no output, says so in one line and ends as shells expect."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    Path("x.pb").write_bytes(small())
    monkeypatch.setattr("symbolize.pipeline.Symbolizer.finish", interrupt)
    assert main(["x.pb"]) == 130
    assert os.listdir() == ["x.pb"]
    assert capsys.readouterr().err == "symbolize: interrupted\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("output", ["x.pb.gz", "x.svg", "x.folded"])
def test_signals_leave_nothing(
    output: str, number: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGTERM and SIGHUP, while an output is written, are as an interrupt; afterwards they do what they did."""
    unfinished: list[str] = []

    def replace(*_: Any) -> None:
        unfinished.extend(name for name in os.listdir() if name.startswith("."))
        os.kill(os.getpid(), number)

    Path("x.pb").write_bytes(small())
    monkeypatch.setattr("symbolize.core.files.os.replace", replace)
    assert main(["x.pb", "-o", output]) == code
    assert len(unfinished) == 1
    assert os.listdir() == ["x.pb"]
    assert capsys.readouterr().err == f"symbolize: ended by {number.name}\n"
    assert signal.getsignal(number) == signal.SIG_DFL


def test_signals_that_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGHUP stays ignored under nohup."""
    move = os.replace

    def replace(*paths: str) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        move(*paths)

    Path("x.pb").write_bytes(small())
    monkeypatch.setattr("symbolize.core.files.os.replace", replace)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert main(["x.pb", "-q", "-o", "x.pb.gz"]) == 0
    finally:
        assert signal.signal(signal.SIGHUP, before) == signal.SIG_IGN


@pytest.mark.process
def test_help_and_version() -> None:
    """--help names every option and the exit codes; --version and -V are one line."""
    run = process("--help")
    assert run.returncode == 0
    for option in ("--binaries", "--output", "--demangle", "--report", "--fail-under", "-q", "-v", "Exit codes"):
        assert option.encode() in run.stdout
    for option in ("--version", "-V"):
        assert re.fullmatch(rb"symbolize \d+\.\d+\.\d+\n", process(option).stdout)


def test_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress bar shows the name of a mapping without what could steer the terminal; -q and files have none."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with ProgressBar(quiet=False) as progress:
        progress(0, 2, "/bin/\x1b]0;owned\x07")
        progress._bar.refresh()
    assert "\\x1b]0;owned\\x07" in shown.getvalue()
    assert "\x1b]" not in shown.getvalue()
    for quiet, stream in ((True, shown), (False, io.StringIO())):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressBar(quiet) as progress:
            progress(0, 2, "name")
            assert progress._bar is None


@pytest.mark.process
@pytest.mark.full
def test_terminal() -> None:
    """On a terminal there is colour, unless NO_COLOR forbids, and names of mappings cannot steer it."""
    hostile = Mapping(0x1000, 0x9000, 0, "/bin/\x1b]0;owned\x07\x9b2J")
    Path("x.pb").write_bytes(profile([hostile], [([Place(0x1000, 1)], [1])]))

    def shown(**environment: str) -> bytes:
        controller, terminal = pty.openpty()
        try:
            variables = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **environment}
            command = [sys.executable, "-m", "symbolize", "x.pb", "-b", ".", "-o", "o"]
            subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, env=variables, check=True)
            os.set_blocking(controller, False)
            return os.read(controller, 1 << 16)
        finally:
            os.close(terminal)
            os.close(controller)

    variables = {name: value for name, value in os.environ.items() if name == "NO_COLOR"}
    if not variables:
        assert b"\x1b[1m" in shown()
    plain = shown(NO_COLOR="1")
    assert b"\x1b[1m" not in plain
    assert b"owned" in plain
    assert b"\x1b]" not in plain
    assert b"\x07" not in plain
    assert "\x9b".encode() not in plain


@pytest.mark.parametrize(
    ("name", "missing"),
    [("", set()), ("view", set()), ("batch", {"sample_type", "force", "local"})],
)
def test_options_have_their_names(name: str, missing: set[str]) -> None:
    """What a command line says of how profiles are symbolized is found by the names of `Options`; edits are made of
    several options."""
    given = {action.dest for action in parser_of(name)._actions}
    assert {*Options.__dataclass_fields__} - given == {"edits", *missing}
