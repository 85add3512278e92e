#!/usr/bin/env python3
"""What a page with 100,000 distinct stacks takes: to write, to its first picture, to zoom, and to choose a thread and a
range of time where its samples have both, in headless Chromium.

python benchmarks/pictures.py
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from symbolize.page import Picture, page_pieces  # noqa: E402
from tests.support.browser import Page, browser  # noqa: E402
from tests.support.needs import BROWSERS  # noqa: E402
from tests.support.pictures import large_picture, with_slices  # noqa: E402

RUNS = 5
ZOOMS = ["ArrowDown", *["ArrowDown", "Enter"] * 8, *"--------"]


CHOICES = ["labels: '0.1'", "time: '100.200'", "labels: '', time: ''", "ignore: 'operation_1'", "ignore: ''"]


def main() -> int:
    """Print the figures. The exit code."""
    if not any(map(shutil.which, BROWSERS)):
        print("needs chromium", file=sys.stderr)
        return 1
    picture = large_picture()
    with tempfile.TemporaryDirectory() as name, browser(Path(name)) as tab:
        for what, each in (("stacks", picture), ("stacks with threads and times", with_slices(picture))):
            print(what)
            measure(tab, Path(name) / "page.html", each)
    return 0


def measure(tab: Page, path: Path, picture: Picture) -> None:
    """Print the figures of a picture."""
    before = time.process_time()
    path.write_bytes(b"".join(page_pieces(picture)))
    print(f"writing: {time.process_time() - before:.2f} s CPU, {path.stat().st_size / 1e6:.2f} MB")
    first, zooms, choices = [], [], []
    for _ in range(RUNS):
        tab.open(path)
        first.append(tab.run("performance.getEntriesByName('first picture')[0].startTime"))
        for key in ZOOMS:
            at = tab.cpu()
            tab.key(key)
            tab.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
            if not key.startswith("Arrow"):
                zooms.append(tab.cpu() - at)
        for choice in CHOICES if picture.slices is not None else ():
            at = tab.cpu()
            tab.run(f"symbolizePage.state.set({{{choice}}})")
            choices.append(tab.cpu() - at)
    print(f"first picture: {min(first):.0f} ms, median {median(first):.0f}, most {max(first):.0f}")
    print(f"zoom: median {median(zooms):.0f} ms CPU, most {max(zooms):.0f}")
    if choices:
        print(f"choosing a thread, time or frames: median {median(choices):.0f} ms CPU, most {max(choices):.0f}")


if __name__ == "__main__":
    sys.exit(main())
