#!/usr/bin/env python3
"""What a page with 100,000 distinct stacks takes: to write, to its first picture, and to zoom, in headless Chromium.

python benchmarks/pictures.py
"""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from symbolize.page import page_pieces  # noqa: E402
from tests.support.browser import browser, browser_path  # noqa: E402
from tests.support.pictures import large_picture  # noqa: E402

RUNS = 5
ZOOMS = ["ArrowDown", *["ArrowDown", "Enter"] * 8, *"--------"]


def main() -> int:
    """Print the figures. The exit code."""
    if browser_path() is None:
        print("needs chromium", file=sys.stderr)
        return 1
    picture = large_picture()
    with tempfile.TemporaryDirectory() as name, browser(Path(name)) as tab:
        path = Path(name) / "page.html"
        before = time.process_time()
        path.write_bytes(b"".join(page_pieces(picture)))
        print(f"writing: {time.process_time() - before:.2f} s CPU, {path.stat().st_size / 1e6:.2f} MB")
        first, zooms = [], []
        for _ in range(RUNS):
            tab.open(path)
            first.append(tab.run("performance.getEntriesByName('first picture')[0].startTime"))
            for key in ZOOMS:
                at = tab.cpu()
                tab.key(key)
                tab.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
                if not key.startswith("Arrow"):
                    zooms.append(tab.cpu() - at)
    print(f"first picture: {min(first):.0f} ms, median {median(first):.0f}, most {max(first):.0f}")
    print(f"zoom: median {median(zooms):.0f} ms CPU, most {max(zooms):.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
