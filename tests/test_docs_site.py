"""The documentation as a site: it builds without a warning, needs no other host, and its examples are valid."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs_examples import DOCS, PAGES, ROOT
from tests.support.tools import package

SMALL = 300
"""Pixels that a picture is wider than."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as CI builds it."""
    for name in ("mkdocs", "mkdocstrings", "material"):
        package(name)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return folder


def test_every_page_is_in_the_site(site: Path) -> None:
    """Each page has a page there, and each is in the navigation."""
    wanted = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    home = (site / "index.html").read_text()
    assert [str(path) for path in sorted(wanted) if not (site / path).exists()] == []
    assert [str(path) for path in sorted(wanted) if f'href="{path}"' not in home] == []


def test_nothing_comes_from_other_hosts(site: Path) -> None:
    """No page loads a script, style, font or picture from elsewhere."""
    loaded = r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//"""
    pages = sorted(site.rglob("*.html"))
    assert pages
    assert [str(page) for page in pages if re.search(loaded, page.read_text())] == []
    styles = sorted(site.rglob("*.css"))
    assert styles
    assert [
        str(style) for style in styles if re.search(r"""url\(["']?(?:https?:)?//|@import""", style.read_text())
    ] == []


def test_api_has_docstrings(site: Path) -> None:
    """The page of the API has the signatures and docstrings of the package."""
    text = re.sub(r"<[^>]+>", "", (site / "api.html").read_text())
    assert "Symbolize one profile, which is read from" in text
    assert "nearest_line: bool = False" in text


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
