"""What an output may not be: an input, a terminal, or worse than what an earlier run wrote (rules R278, R279)."""

import gc
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import symbolize
from symbolize.cli import main, profiles
from symbolize.core.errors import UsageError
from symbolize.formats import files, outputs, write
from tests.support.batch_runs import trace
from tests.support.devices import null_device
from tests.support.fixture_files import BINARIES, FIXTURES

ROOT = Path(__file__).parent.parent.parent
PROF = (FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof").read_bytes()
BIN = str(BINARIES / "gcc-pie")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in a folder with a profile, as if the compiled core were there."""
    (tmp_path / "x.prof").write_bytes(PROF)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("symbolize.core.cursor.COMPILED", True)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is said of arguments that are refused before anything is done, in one line."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert main([*arguments, "-b", BIN]) == 2
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


LINKS: dict[str, Callable[[], Any]] = {
    "x.prof": lambda: None,
    "./x.prof": lambda: None,
    "sub/../x.prof": lambda: os.mkdir("sub"),
    "soft": lambda: os.symlink("x.prof", "soft"),
    "hard": lambda: os.link("x.prof", "hard"),
    "folder/x.prof": lambda: os.symlink(".", "folder"),
}


@pytest.mark.parametrize("output", LINKS)
def test_an_input_is_never_overwritten(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    """R278: whatever the output calls the input, by whichever option."""
    LINKS[output]()
    for option in ("-o", "--missing", "--folded-report"):
        assert "an input is never overwritten" in refused(capsys, "x.prof", option, output)


def test_default_names_hit_no_input(capsys: pytest.CaptureFixture[str]) -> None:
    """R278: the result of one input would be itself or another one; nothing is begun."""
    Path("x.symbolized.pb.gz").write_bytes(PROF)
    assert "is the input itself" in refused(capsys, "x.symbolized.pb.gz")
    assert "several profiles would be written to x.symbolized.pb.gz" in refused(capsys, "x.symbolized.pb.gz", "x.prof")
    os.mkdir("out")
    os.link("x.prof", "out/x.symbolized.pb.gz")
    assert "same file as the input" in refused(capsys, "x.prof", "-o", "out")


def test_other_inputs_than_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    """R278: binaries and maps are inputs too."""
    Path("map.txt").write_text("a.b -> c:\n")
    Path("app").write_bytes(b"\x7fELF")
    refused(capsys, "x.prof", "--proguard-map", "map.txt", "-o", "map.txt")
    refused(capsys, "x.prof", "--proguard-map", "com.app=map.txt", "-o", "map.txt")
    refused(capsys, "x.prof", "-b", "app", "-o", "app")


def test_profiles_of_a_trace_hit_no_input(capsys: pytest.CaptureFixture[str]) -> None:
    """R278: their names are known when the trace was read; nothing is written then."""
    Path("t.pftrace").write_bytes(trace(7, 8))
    os.mkdir("out")
    os.symlink("../t.pftrace", "out/heap_dump.2.8.libc.malloc.pb.gz")
    assert "an input is never overwritten" in refused(capsys, "t.pftrace", "-o", "out/")


@pytest.mark.process
def test_standard_input_is_an_input(capsys: pytest.CaptureFixture[str]) -> None:
    """R278: a file that standard input is read from."""
    with open("x.prof", "rb") as file:
        path = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "symbolize", "-", "-o", "x.prof"]
        run = subprocess.run(command, stdin=file, capture_output=True, env=path, check=False)
    assert run.returncode == 2
    assert Path("x.prof").read_bytes() == PROF


def test_devices_and_other_files_are_written(tmp_path: Path) -> None:
    """What is no input is replaced, and a device takes what it gets."""
    Path("old").write_bytes(b"old")
    assert main(["x.prof", "-b", BIN, "-o", "old", "-q"]) == 0
    assert main(["x.prof", "-b", BIN, "-o", str(null_device(tmp_path)), "-q"]) == 0
    assert Path("old").read_bytes()[:2] == b"\x1f\x8b"


def test_no_profile_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """R278: refused before any work, also by the name of the terminal, and by the library."""
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    try:
        assert "is a terminal" in refused(capsys, "x.prof", "-o", name)
        with os.fdopen(os.dup(slave), "w") as terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            assert main(["x.prof", "-b", BIN, "-o", "-"]) == 2
            with pytest.raises(UsageError, match="standard output: is a terminal"):
                symbolize.write(symbolize.load("x.prof"), "-")
            monkeypatch.undo()
        os.set_blocking(master, False)
        with pytest.raises(BlockingIOError):
            os.read(master, 1)
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("option", ["--missing", "--folded-report"])
def test_a_report_on_a_terminal(option: str) -> None:
    """R278: reports are text, and a terminal shows them."""
    master, slave = pty.openpty()
    try:
        assert main(["x.prof", "-b", BIN, "-o", "y", "-q", option, os.ttyname(slave)]) == 0
        assert os.read(master, 1)
    finally:
        os.close(master)
        os.close(slave)


def test_many_outputs_look_at_each_input_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """R278: checking the outputs of a second run costs a multiple of their number, not of its square."""
    inputs, outputs = [f"{each}.prof" for each in range(30)], [f"{each}.symbolized.pb.gz" for each in range(30)]
    for each in (*inputs, *outputs):
        Path(each).touch()
    looked_at = []
    status = files._status
    monkeypatch.setattr(files, "_status", lambda path, standard: looked_at.append(path) or status(path, standard))
    profiles.check_outputs(profiles.parser().parse_args(inputs), None, outputs)
    assert len(looked_at) < 4 * (len(inputs) + len(outputs))


def test_the_library_overwrites_no_input() -> None:
    """R278: a profile knows what file it was read from, also after it was symbolized."""
    profile = symbolize.load("x.prof")
    with symbolize.Symbolizer([BIN]) as symbolizer:
        result = symbolizer.symbolize(profile)
    os.symlink("x.prof", "link")
    for path in ("x.prof", "link", Path("x.prof").absolute()):
        with pytest.raises(UsageError, match="an input is never overwritten"):
            symbolize.write(result.profile, path)
    assert Path("x.prof").read_bytes() == PROF
    symbolize.write(result.profile, "y")


def test_a_failed_input_leaves_what_was_written() -> None:
    """R279: outputs and reports of earlier runs stay when an input cannot be read."""
    options = ["-b", BIN, "--missing", "missing", "--folded-report", "folded", "-q"]
    assert main(["x.prof", *options]) == 0
    before = {name: Path(name).read_bytes() for name in ("x.symbolized.pb.gz", "missing", "folded")}
    Path("x.prof").write_bytes(PROF[:30])
    assert main(["x.prof", *options]) == 1
    assert {name: Path(name).read_bytes() for name in before} == before


def test_nothing_symbolized_is_said_loudly(capsys: pytest.CaptureFixture[str]) -> None:
    """R279: a result without names ends with a warning, and one with names does not."""
    os.mkdir("empty")
    assert main(["x.prof", "-b", "empty"]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert "warning: x.prof: NOTHING WAS SYMBOLIZED" in last and "--binaries" not in last
    assert main(["x.prof"]) == 0
    assert capsys.readouterr().err.endswith("name a folder with --binaries\n")
    assert main(["x.prof", "-b", BIN]) == 0
    assert "NOTHING" not in capsys.readouterr().err


@pytest.fixture
def _unfrozen() -> Iterator[None]:
    """The collector looks at all objects, as it does where no tests run."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("_unfrozen")
def test_many_profiles_cost_each_what_a_few_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector looks only at what came since the profile before, and all is as it was at the end."""
    Path("t.pftrace").write_bytes(trace(*range(1, 21)))
    looked_at = []
    collect = gc.collect
    monkeypatch.setattr(profiles.gc, "collect", lambda: (looked_at.append(len(gc.get_objects())), collect()))
    before = gc.get_freeze_count()
    assert main(["t.pftrace", "-o", "out/", "-q", "-b", BIN, "--no-cache"]) == 2
    os.mkdir("out")
    assert main(["t.pftrace", "-o", "out/", "-q", "-b", BIN, "--no-cache"]) == 0
    assert len(looked_at) == 20
    assert max(looked_at[1:]) * 5 < looked_at[0]
    assert gc.get_freeze_count() == before


def test_disassembly_without_what_decodes_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said in one line before anything is done."""
    monkeypatch.setattr(outputs, "find_spec", lambda _: None)
    assert main(["view", "no such profile", "-b", BIN, "--disassembly"]) == 2
    assert capsys.readouterr().err.splitlines()[0].endswith("disassembly needs capstone: pip install capstone")


def test_parquet_without_what_writes_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said before anything is done, by the command and by the library."""
    monkeypatch.setattr(outputs, "find_spec", lambda _: None)
    assert main(["no such profile", "-b", BIN, "-o", "x.parquet"]) == 2
    assert "Parquet needs pyarrow: pip install pyarrow" in capsys.readouterr().err
    with pytest.raises(UsageError, match="pip install pyarrow"):
        write(symbolize.load("x.prof"), "x.parquet")
    assert not os.path.exists("x.parquet")
