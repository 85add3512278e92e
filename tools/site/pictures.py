"""Takes the pictures of the documentation with a headless Chromium: `python tools/site/pictures.py`.

They are in docs/images: the page of `symbolize view` in both schemes, and the table of `symbolize top`.
"""

import argparse
import html
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
FILES = {"cpu.prof": "profiles/gperftools/ledger-gcc-pie.prof", "build": "bin/gcc-pie", "src": "src"}
"""What the commands name, by files of the fixtures."""
TOP = ("top", "cpu.prof", "-b", "build/", "-n", "15")
SCHEMES = {"dark": 0, "light": 1}
"""The numbers that Chromium gives them."""
PAGE = """<!doctype html><meta charset="utf-8"><body style="margin:0;background:#1d1f21;color:#e8e8e8">
<pre style="margin:16px;font:14px/1.4 'DejaVu Sans Mono',monospace">$ symbolize {}
{}</pre>"""


def symbolize(folder: Path, *arguments: str) -> str:
    """What a command prints in a folder."""
    command = [sys.executable, "-m", "symbolize", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def photograph(browser: str, page: Path, image: Path, scheme: str, size: tuple[int, int]) -> None:
    """Save what a browser shows of a page once its scripts have run."""
    command: Sequence[str] = (
        *(browser, "--headless", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=3000"),
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
        f"--window-size={size[0]},{size[1]}",
        f"--screenshot={image}",
        page.as_uri(),
    )
    subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    """Take all pictures."""
    arguments = argparse.ArgumentParser(description="Take the pictures of the documentation.")
    arguments.add_argument("--browser", default=shutil.which("chromium") or "chromium", help="a Chromium")
    browser = arguments.parse_args().browser
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, origin in FILES.items():
            (folder / file).symlink_to(ROOT / "fixtures" / origin)
        symbolize(folder, "view", "cpu.prof", "-b", "build/", "--source", "src/", "-o", "cpu.html")
        for scheme in SCHEMES:
            photograph(browser, folder / "cpu.html", IMAGES / f"flame-{scheme}.png", scheme, (1280, 720))
        text = symbolize(folder, *TOP)
        (folder / "top.html").write_text(PAGE.format(" ".join(TOP), html.escape(text)))
        height = 56 + 20 * text.count("\n")
        photograph(browser, folder / "top.html", IMAGES / "top.png", "dark", (960, height))


if __name__ == "__main__":
    main()
