"""`symbolize export`."""

import shutil
from pathlib import Path

import pytest

from symbolize.cli import main
from symbolize.symbol_files import read_breakpad, read_gsym
from tests.support.fixture_files import BINARIES

LEDGER = BINARIES / "gcc-pie" / "ledger"
STRIPPED, DEBUG = (BINARIES / "gcc-split" / name for name in ("stripped/ledger", "debug/ledger.debug"))


def test_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The ending chooses the format, or --emit; what was written is said with -v only."""
    gsym, sym, other = tmp_path / "a.gsym", tmp_path / "a.SYM", tmp_path / "x"
    assert main(["export", str(LEDGER), "-o", str(gsym)]) == 0
    assert main(["export", str(LEDGER), "-o", str(sym)]) == 0
    assert capsys.readouterr().err == ""
    assert main(["export", str(LEDGER), "-o", str(other), "--emit", "gsym", "-v", "--no-cache"]) == 0
    assert f"{other}: {gsym.stat().st_size:,} bytes of {LEDGER}" in capsys.readouterr().err
    assert other.read_bytes() == gsym.read_bytes()
    assert b"main" in read_gsym(gsym.read_bytes()).names()
    assert b"main" in read_breakpad(sym.read_bytes()).names()


def test_debug_file(tmp_path: Path) -> None:
    """A stripped binary with its debug file, given or found by its build id, is as good as one with all."""
    for number, arguments in enumerate(([str(STRIPPED), str(DEBUG)], [str(STRIPPED), "-b", str(DEBUG.parent)])):
        assert main(["export", *arguments, "-o", str(tmp_path / f"{number}.gsym"), "--no-cache"]) == 0
    first, second = ((tmp_path / name).read_bytes() for name in ("0.gsym", "1.gsym"))
    assert first == second
    listing = read_gsym(first)
    assert b"main" in listing.names() and (listing.node_parent >= 0).any()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{ledger}", "-o", "x.bin"], 2, "-o x.bin: the ending names no format"),
        (["{ledger}", "-o", "{ledger}", "--emit", "gsym"], 2, "an input is never overwritten"),
        (["{ledger}", "-o", "x.sym", "--merged-functions"], 2, "--merged-functions has an effect only on GSYM"),
        (["{ledger}", "-o", "x.sym", "-b", "nowhere"], 2, "nowhere: "),
        (["{ledger}", "{debug}", "-o", "x.sym"], 2, "not the files of one binary"),
        (["{ledger}", "-o", ""], 2, "a file has an empty name"),
        (["missing", "-o", "x.sym"], 1, "missing: "),
        (["{ledger}", "-o", "no/such/x.sym"], 1, "cannot be written"),
    ],
)
def test_errors(
    arguments: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each mistake is one line, and no file is written."""
    monkeypatch.chdir(tmp_path)
    ledger = Path(shutil.copy2(LEDGER, tmp_path / "ledger"))
    names = {"ledger": str(ledger), "debug": str(DEBUG)}
    assert main(["export", *(each.format(**names) for each in arguments)]) == code
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err
    assert [file.name for file in tmp_path.iterdir()] == ["ledger"]
    assert ledger.read_bytes() == LEDGER.read_bytes()
