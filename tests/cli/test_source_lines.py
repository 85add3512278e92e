"""The options that give frames lines and names of the source."""

from pathlib import Path

import pytest

from symbolize import load
from symbolize.cli import main
from tests.support import fixture_files as fixtures
from tests.support.fixture_files import BINARIES
from tests.support.pprof_writer import Line, Mapping, Place, profile
from tests.support.profile_frames import frames_of

BASE = 0x5555_5555_4000


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_nearest_line(capsys: pytest.CaptureFixture[str]) -> None:
    """--nearest-line changes line 0 and is told of; without it the line stays unknown (rule R170)."""
    path = BINARIES / "clang-pie" / "libresonance.so"
    ((offset, vaddr, size),) = fixtures.segments(path)
    mapping = Mapping(BASE, BASE + size, offset, "/lib/libresonance.so")
    Path("x.pb").write_bytes(profile([mapping], [([Place(BASE + 0x223F - vaddr, 1)], [1])]))
    lines = []
    for options in ([], ["--nearest-line"]):
        assert main(["x.pb", "-b", str(path.parent), "--no-cache", "-o", "out.gz", *options]) == 0
        lines.append(int(load("out.gz").locations.lines.line[0]))
        assert ("its location: approximate lines" in capsys.readouterr().out) == bool(options)
    assert lines == [0, 51]


def test_proguard_map(capsys: pytest.CaptureFixture[str]) -> None:
    """--proguard-map may be given several times, as PACKAGE=FILE too; a file that is not there ends with 2."""
    Path("a.txt").write_text("com.acme.A -> a:\n  void run() -> b\n")
    Path("b.txt").write_text("com.acme.B -> b:\n  void run() -> b\n")
    Path("x.pb").write_bytes(profile([], [([Place(1, 0, (Line("a.b"),)), Place(2, 0, (Line("b.b"),))], [1])]))
    maps = ["--proguard-map", "a.txt", "--proguard-map", "com.acme=b.txt"]
    assert main(["x.pb", "-o", "out.gz", *maps]) == 0
    assert [frames[0][0] for frames in frames_of(load("out.gz"))] == ["com.acme.A.run", "com.acme.B.run"]
    assert main(["x.pb", "-o", "out.gz", "--proguard-map", "none.txt"]) == 2
    assert "mapping file none.txt: no such file" in capsys.readouterr().err
