"""Commands in the documentation run as written, in a folder with the files that they name."""

import re
from pathlib import Path

import pytest

from tests.support.docs_examples import PAGES, ROOT, blocks, run_blocks, substituted
from tests.support.http_server import HttpServer

RUN = [page for page in PAGES if any(not block.reason for block in blocks(page))]
COMMAND = re.compile(r"^(?:    )?(?:\$ )?(?:symbolize|pip|python3?|go tool|kubectl|docker|sudo|adb) ", re.MULTILINE)
OWN_LIBRARIES = re.compile(r"\s\(libraries\s+of\s+this\s+machine:[^)]*\)")
"""The options for them, in a hint."""


@pytest.mark.process
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.full
def test_commands_run(page: Path, tmp_path: Path) -> None:
    """The blocks of a page succeed, one after another in one folder, and print what is below them; where that has to
    change, `python -m tools.site.outputs` does it."""
    with HttpServer(lambda request: request.reply(404)) as server:
        failed = [
            f"line {block.line}, exit code {result.code}:\n{block.text}{result.printed}"
            for block, result in run_blocks(page, tmp_path, server.url)
            if result.code or (block.output and portable(block.output) != portable(result.printed))
        ]
    assert not failed, "\n".join(failed)


def portable(text: str) -> str:
    """What a command prints, without what depends on the machine: the folders of its libraries, and where lines break
    around them."""
    without, count = OWN_LIBRARIES.subn("", text)
    return " ".join(without.split()) if count else text


def test_commands_are_in_blocks() -> None:
    """What looks like a command for a shell is in a block of commands, where the test above finds it."""
    outside = []
    for page in PAGES:
        text = re.sub(r"^```(?:sh|console)\n.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        fenced = "".join(re.findall(r"^```(?!text)\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        indented = "".join(re.findall(r"^    .*\n", re.sub(r"(?ms)^```.*?^```$", "", text), re.MULTILINE))
        outside += [f"{page.relative_to(ROOT)}: {each}" for each in COMMAND.findall(fenced + indented)]
    assert not outside, "\n".join(outside)


def test_substituted() -> None:
    """Servers and folders of a machine become those of the test; what follows them stays."""
    text = 'symbolize x -b /usr/lib/x86_64-linux-gnu --debuginfod "https://debuginfod.debian.net https://a.example"'
    assert substituted(text, "http://here") == 'symbolize x -b libraries --debuginfod "http://here https://a.example"'


def test_blocks(tmp_path: Path) -> None:
    """Blocks have their line, the reason of the comment directly above, and the output directly below."""
    page = tmp_path / "page.md"
    page.write_text("a\n\n```sh\none\n```\n\n<!-- not run: no two -->\n```sh\ntwo\n```\n\n```\nthree\n```\n")
    assert blocks(page) == [(3, "one\n", "", ""), (8, "two\n", "no two", "three\n")]
