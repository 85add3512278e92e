"""No process of a command imports what lies in the current folder, or in a folder of inputs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from symbolize.cli import main
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.interpreted import PACKAGE
from tests.support.symbol_server import job, symbol_server

pytestmark = pytest.mark.process

PROF = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
LEDGER = BINARIES / "gcc-pie" / "ledger"
FOLDER = str(LEDGER.parent)
PROFILE = ["inputs/" + PROF.name, "-b", FOLDER]
MAIN = 0x2320
MODULE = ["-m", "symbolize"]
SCRIPT = "import sys\nfrom symbolize.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
"""The command, as installers write it."""
PLANTED = (
    *("array", "cython", "elftools", "isal", "json", "multiprocessing", "numpy", "pebble", "pickle", "selectors"),
    *("signal", "socket", "struct", "tempfile", "threading", "typing", "urllib3", "uvicorn", "zlib", "zstandard"),
)
"""Modules that commands and their workers import, but Python itself does not before it runs `-m symbolize`."""


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of marks of what was imported; the current folder and the folder `inputs` in it have `PLANTED`."""
    marks, here = tmp_path / "marks", tmp_path / "here"
    inputs = here / "inputs"
    inputs.mkdir(parents=True)
    marks.mkdir()
    shutil.copyfile(PROF, inputs / PROF.name)
    for folder in (here, inputs):
        for name in PLANTED:
            plant(folder / f"{name}.py", marks)
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE.parent))
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return marks


def plant(path: Path, marks: Path) -> None:
    """A module that leaves a mark when it is imported."""
    path.write_text(f"open({str(marks)!r} + '/' + __name__, 'w').close()\n")


def run(start: Sequence[str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command with `arguments`; it has to succeed."""
    done = subprocess.run([sys.executable, *start, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def run_workers(start: Sequence[str]) -> None:
    """Run the commands that have worker processes."""
    assert "3 tables made" in run(start, "index", FOLDER, "inputs", "--jobs", "2").stderr
    run(start, "batch", "inputs", "-b", FOLDER, "--exclude", "*.py", "--out", "out", "--jobs", "1")
    assert main([*PROFILE, "-q", "-o", "expected.pb.gz"]) == 0
    assert Path("out/ledger-gcc-pie.pb.gz").read_bytes() == Path("expected.pb.gz").read_bytes()


def test_command(executed: Path, tmp_path: Path) -> None:
    """Workers are those of the installed program, also where another `symbolize` lies, such as a checkout."""
    script = tmp_path / "symbolize"
    script.write_text(SCRIPT)
    for folder in (Path("symbolize"), Path("inputs", "symbolize")):
        folder.mkdir()
        plant(folder / "__init__.py", executed)
    run_workers([str(script)])
    assert os.listdir(executed) == []


def test_module(executed: Path) -> None:
    """`python -m symbolize` looks into the current folder for nothing but `symbolize`."""
    run_workers(MODULE)
    for options, ending in ((PROFILE, ".pb.gz"), (["view", *PROFILE], ".html")):
        run(MODULE, *options, "-q", "-o", f"there{ending}")
        assert main([*options, "-q", "-o", f"here{ending}"]) == 0
        assert Path(f"there{ending}").read_bytes() == Path(f"here{ending}").read_bytes()
    for start in (MODULE, ["-msymbolize"], ["-Wignore", "-Bmsymbolize"]):
        assert run(start, "addr", str(LEDGER), hex(MAIN)).stdout == f"{MAIN:#x}: main  /src/ledger/main.cc:152:12\n"
    assert os.listdir(executed) == []


@pytest.mark.needs("starlette", "uvicorn")
def test_serve(executed: Path) -> None:
    """The workers of a server neither."""
    with symbol_server(["-b", FOLDER, "--workers", "2"]) as server:
        answer = server.symbolicate(job(LEDGER, [MAIN])).json()
        assert answer["results"][0]["stacks"][0][0]["function"] == "main"
    assert os.listdir(executed) == []


def test_safe_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `-P` Python does not look into the current folder, and the first folder of PYTHONPATH stays."""
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{PACKAGE.parent}")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    (tmp_path / "numpy.py").write_text("raise SystemExit('the one of the user')\n")
    command = [sys.executable, "-P", *MODULE, "addr", str(LEDGER), hex(MAIN)]
    assert subprocess.run(command, capture_output=True, text=True).stderr == "the one of the user\n"
