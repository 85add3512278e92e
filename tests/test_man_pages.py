"""The manual pages that are made from the parsers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from symbolize.cli.commands import COMMANDS, parser_of
from tools import man_pages

NAMES = ["", *COMMANDS]


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_on_the_page(name: str) -> None:
    """With what the help says of it."""
    text = man_pages.page(name)
    for action in parser_of(name)._actions:
        for flag in action.option_strings:
            assert "\\fB" + flag.replace("-", "\\-") + "\\fR" in text
        assert (action.help or "").split()[-1].replace("-", "\\-") in text


def test_pages_are_made_and_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page for each command, without anything that mandoc and man complain of, the same for the same date."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1577836800")
    man_pages.main(str(tmp_path / "man"))
    pages = sorted((tmp_path / "man").iterdir())
    assert [page.name for page in pages] == sorted(["symbolize.1", *(f"symbolize-{name}.1" for name in COMMANDS)])
    for page in pages:
        assert '"2020-01-01"' in page.read_text()
        for command in (["mandoc", "-Tlint"], ["man", "--warnings", "-l"]):
            if shutil.which(command[0]) is not None:
                run = subprocess.run([*command, page], capture_output=True, text=True, check=True)
                assert run.stderr == ""
                assert command[0] != "mandoc" or run.stdout == ""
