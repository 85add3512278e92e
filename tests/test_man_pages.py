"""The manual pages that are made from the parsers."""

import subprocess
from pathlib import Path

import pytest

from symbolize.cli.commands import COMMANDS, parser_of
from tools import man_pages

NAMES = ["", *COMMANDS]


def test_every_option_is_on_its_page() -> None:
    """With what the help says of it."""
    missing = []
    for name in NAMES:
        text = man_pages.page(name)
        for action in parser_of(name)._actions:
            wanted = [f"\\fB{flag}\\fR" for flag in action.option_strings] + (action.help or "").split()[-1:]
            missing += [f"{name} {each}" for each in wanted if each.replace("-", "\\-") not in text]
    assert not missing, "\n".join(missing)


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The pages, made for a date."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1577836800")
    man_pages.main(str(tmp_path / "man"))
    return sorted((tmp_path / "man").iterdir())


def test_pages_are_made(pages: list[Path]) -> None:
    """A page for each command, the same for the same date."""
    assert [page.name for page in pages] == sorted(["symbolize.1", *(f"symbolize-{name}.1" for name in COMMANDS)])
    assert all('"2020-01-01"' in page.read_text() for page in pages)


@pytest.mark.needs("mandoc")
def test_mandoc_complains_of_nothing(pages: list[Path]) -> None:
    """The pages are sound."""
    run = subprocess.run(["mandoc", "-Tlint", *pages], capture_output=True, text=True, check=False)
    assert run.stdout + run.stderr == ""


@pytest.mark.needs("man")
def test_man_complains_of_nothing(pages: list[Path]) -> None:
    """It shows the pages without a warning."""
    run = subprocess.run(["man", "--warnings", "-l", *pages], capture_output=True, text=True, check=True)
    assert run.stderr == ""
