"""Measurements inside one process of the library, each printed as JSON.

probe.py inflate FILE                inflating the debug sections that lookups need, one after the other
probe.py lookup COUNT FILE...        lookups of sorted random addresses in a table that is open
"""

import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from subjects import NEEDED

from symbolize.elf import ElfImage
from symbolize.symbols import Binary

LOOKUPS = 5


def inflate(path: str) -> dict[str, float]:
    """Seconds of inflating, with nothing beside it."""
    with ElfImage.open(path) as image:
        start = time.perf_counter()
        size = sum(len(image.contents(f".debug_{name}") or b"") for name in NEEDED)
        return {"seconds": time.perf_counter() - start, "bytes": size}


def lookup(count: int, paths: list[str]) -> dict[str, float]:
    """Addresses a second of the best of LOOKUPS, and frames an address; and seconds of making the table."""
    images = [ElfImage.open(path) for path in paths]
    text = images[0].find(".text")
    if text is None:
        raise SystemExit(f"{paths[0]}: no .text")
    vaddrs = np.random.default_rng(1).integers(text.vaddr, text.vaddr + text.size, count, np.uint64)
    vaddrs.sort()
    start = time.perf_counter()
    table = Binary(images).table()
    made = time.perf_counter() - start
    seconds = []
    for _ in range(LOOKUPS):
        start = time.perf_counter()
        found = table.lookup(vaddrs)
        seconds.append(time.perf_counter() - start)
    return {"rate": count / min(seconds), "first": seconds[0], "frames": len(found.function) / count, "made": made}


def main() -> None:
    """Do what the arguments say."""
    what, *arguments = sys.argv[1:]
    print(json.dumps(inflate(arguments[0]) if what == "inflate" else lookup(int(arguments[0]), arguments[1:])))


if __name__ == "__main__":
    main()
