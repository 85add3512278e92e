"""The documentation as a site: it builds without a warning, needs no other host, and its examples are valid."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs_examples import DOCS, PAGES, ROOT
from tests.support.needs import package

SMALL = 300
"""Pixels that a picture is wider than."""


@pytest.mark.full
def test_site(tmp_path: Path) -> None:
    """The site builds without a warning. Each page is in it and in its navigation, none loads a script, style, font or
    picture from elsewhere, and the page of the API has the signatures and docstrings of the package."""
    for name in ("mkdocs", "mkdocstrings", "material"):
        package(name)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    wanted = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    home = (tmp_path / "index.html").read_text()
    assert [str(path) for path in sorted(wanted) if not (tmp_path / path).exists()] == []
    assert [str(path) for path in sorted(wanted) if f'href="{path}"' not in home] == []
    loaded = r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//"""
    pages, styles = sorted(tmp_path.rglob("*.html")), sorted(tmp_path.rglob("*.css"))
    assert pages and styles
    assert [str(page) for page in pages if re.search(loaded, page.read_text())] == []
    foreign = r"""url\(["']?(?:https?:)?//|@import"""
    assert [str(style) for style in styles if re.search(foreign, style.read_text())] == []
    text = re.sub(r"<[^>]+>", "", (tmp_path / "api.html").read_text())
    assert "Symbolize one profile, which is read from" in text
    assert "options: Options = DEFAULTS" in text


def pictures() -> list[str]:
    """The pictures that pages show, from the root of the checkout."""
    found = {
        os.path.normpath(path.parent.relative_to(ROOT) / link)
        for path in PAGES
        for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", path.read_text())
    }
    return sorted(found)


def width_of(image: Path) -> int:
    """The width of a picture, 0 if it is not there or no PNG file."""
    data = image.read_bytes() if image.exists() else b""
    return int.from_bytes(data[16:20]) if data.startswith(b"\x89PNG\r\n\x1a\n") else 0


def test_pictures() -> None:
    """Pictures in pages are there, as large as a reader needs."""
    widths = {image: width_of(ROOT / image) for image in pictures()}
    assert widths
    small = [image for image, width in widths.items() if width <= SMALL]
    assert not small, "\n".join(small)
