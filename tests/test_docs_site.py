"""The documentation as a site: it builds without a warning, needs no other host, and its examples are valid."""

import os
import re
import shutil
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from symbolize.cli.batch import batch_parser
from symbolize.cli.options import EXIT_BELOW, EXIT_SOME, EXIT_USAGE
from tests.support.docs_examples import DOCS, PAGES, ROOT

EXAMPLES = DOCS / "examples"
SMALL = 300
"""Pixels that a picture is wider than."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as CI builds it."""
    if find_spec("mkdocs") is None or find_spec("mkdocstrings") is None or find_spec("material") is None:
        pytest.skip("the extra docs is not installed")
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


@pytest.mark.parametrize("image", pictures())
def test_pictures(image: str) -> None:
    """Pictures in pages are there, as large as a reader needs."""
    data = (ROOT / image).read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    (width,) = struct.unpack_from(">I", data, 16)
    assert width > SMALL


def batch_arguments(command: list[str]) -> Any:
    """The options of a command of an example."""
    program, name, *arguments = command
    assert (program.rpartition("/")[2], name) == ("symbolize", "batch")
    return batch_parser().parse_args(arguments)


def test_crontab() -> None:
    """The line of the table has five times and a command that is one."""
    (line,) = (line for line in (EXAMPLES / "crontab").read_text().splitlines() if re.match(r"[\d*]", line))
    *times, command = line.split(None, 5)
    assert all(re.fullmatch(r"[\d*/,-]+", time) for time in times)
    assert batch_arguments(command.split()).quiet


def test_unit() -> None:
    """The command of the unit is one, and exit codes are treated as what they mean."""
    text = (EXAMPLES / "symbolize-nightly.service").read_text()
    settings = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    options = batch_arguments(settings["ExecStart"].split())
    assert settings["ReadWritePaths"] == options.out
    assert options.cache == f"/var/cache/{settings['CacheDirectory']}"
    assert (settings["SuccessExitStatus"], settings["RestartPreventExitStatus"]) == (str(EXIT_SOME), str(EXIT_USAGE))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_units_are_valid(tmp_path: Path) -> None:
    """systemd finds nothing wrong with the units."""
    for name in ("symbolize-nightly.service", "symbolize-nightly.timer"):
        text = (EXAMPLES / name).read_text().replace("/opt/symbolize/bin/symbolize", "/bin/true")
        (tmp_path / name).write_text(text.replace("Documentation=man:symbolize(1)\n", ""))
    units = [str(path) for path in sorted(tmp_path.iterdir())]
    command = ["systemd-analyze", "verify", *units]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "symbolize-nightly" not in run.stderr


def test_cron_job() -> None:
    """The command of the CronJob is one, and a pod is not repeated where it would end the same way."""
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((EXAMPLES / "kubernetes-cronjob.yaml").read_text())["spec"]["jobTemplate"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    options = batch_arguments(container["command"])
    assert str(options.jobs) == container["resources"]["limits"]["cpu"]
    (codes,) = (rule["onExitCodes"] for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule)
    assert codes["values"] == [EXIT_USAGE, EXIT_BELOW, EXIT_SOME]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in job["template"]["spec"]["volumes"]}
