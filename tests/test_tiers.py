"""What tests need, and which of them are of which tier."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.needs import find, missing, package


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder without programs, where alone they are looked for."""
    monkeypatch.setenv("PATH", str(tmp_path))
    find.cache_clear()
    yield tmp_path
    find.cache_clear()


def test_reasons(path: Path) -> None:
    """What is missing is said with what installs it, once for all that one package has."""
    assert missing(["go", "nm", "readelf", "nm"]) == (
        "go is not installed: apt-get install golang-go; nm and readelf are not installed: apt-get install binutils"
    )
    assert missing([]) == ""


@pytest.mark.parametrize(("version", "is_found"), [("14.0.6", False), ("19.1.7", True), ("21.1.0", True)])
def test_llvm_without_a_version_in_its_name(version: str, is_found: bool, path: Path) -> None:
    """It is used if it is as new as the one with it."""
    program = path / "llvm-symbolizer"
    program.write_text(f"#!/bin/sh\necho 'Debian LLVM version {version}'\n")
    program.chmod(0o755)
    assert find("llvm-symbolizer-19") == (str(program) if is_found else "")


def test_unknown_names() -> None:
    """Nobody knows what would install them."""
    with pytest.raises(pytest.UsageError, match=r"'nosuch': .* does not say what installs it"):
        missing(["nosuch"])
    with pytest.raises(pytest.UsageError):
        package("nosuch.part")


@pytest.mark.needs("bash")
def test_a_program_is_an_oracle(request: pytest.FixtureRequest) -> None:
    """The hook adds the marker, which `-m oracle` then finds."""
    assert "oracle" in request.node.keywords


@pytest.mark.process
@pytest.mark.needs("bash")
def test_unless_the_test_is_one_of_processes(request: pytest.FixtureRequest) -> None:
    """That is the tier then."""
    assert "oracle" not in request.node.keywords


@pytest.mark.needs("yaml")
def test_a_package_is_none(request: pytest.FixtureRequest) -> None:
    """It is in the process of the tests."""
    assert not {"oracle", "process"} & {*request.node.keywords}
