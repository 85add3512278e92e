"""R402: exit code 4 is for what is newly in quarantine or newly missing."""

from pathlib import Path

import pytest

from symbolize.cli import main
from tests.support.batch_runs import LEDGER, copies

pytestmark = pytest.mark.process


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A batch over a folder with one good profile."""
    monkeypatch.chdir(tmp_path)
    copies(LEDGER, tmp_path / "in", ["good.prof"])
    return ["batch", "in", "--out", "out", "--no-cache", "-q", "-j", "1"]


@pytest.mark.full
def test_four_nights_with_a_bad_file(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit codes 4, 0, 0, 0; another one, and the same with other bytes, are new again."""
    Path("in/bad.prof").write_bytes(b"?")
    assert [main(arguments) for _ in range(4)] == [4, 0, 0, 0]
    Path("in/worse.prof").write_bytes(b"??")
    assert [main(arguments) for _ in range(2)] == [4, 0]
    Path("in/bad.prof").write_bytes(b"???")
    assert [main([*arguments, "--retry-quarantined"]) for _ in range(2)] == [4, 0]
    assert main([*arguments, "--demangle", "none"]) == 0
    capsys.readouterr()
    main([argument for argument in arguments if argument != "-q"])
    assert "quarantined: unreadable 2" in capsys.readouterr().err


def test_what_was_not_reported_is_new(arguments: list[str]) -> None:
    """A run that ends with another code has not reported what came into quarantine."""
    Path("in/bad.prof").write_bytes(b"?")
    Path("file").touch()
    assert main([*arguments, "--report-file", "file/no"]) == 1
    assert [main(arguments) for _ in range(2)] == [4, 0]


def test_names_that_are_missing(arguments: list[str]) -> None:
    """They are new once, and again when they were there in between."""
    with_missing = [*arguments, "later"]
    assert [main(with_missing) for _ in range(3)] == [4, 0, 0]
    copies(LEDGER, Path("later"), ["x.prof"])
    assert main(with_missing) == 0
    Path("later/x.prof").unlink()
    assert [main(with_missing) for _ in range(2)] == [4, 0]


def test_ignored_inputs(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """They have neither a line nor an exit code, and are reported when nothing is ignored."""
    Path("in/bad.prof").write_bytes(b"?")
    assert main([*arguments, "--ignore-unreadable"]) == 0
    assert capsys.readouterr().err == ""
    assert [main(arguments) for _ in range(2)] == [4, 0]
    Path("in/empty.prof").touch()
    assert main([*arguments, "--ignore-unreadable=no-profile"]) == 4
