"""What the benchmarks ask of the PyPI package `symbolic`; runs under a Python that has it.

with_symbolic.py convert BINARY SYMCACHE
with_symbolic.py lookup SYMCACHE BASE            addresses on standard input
with_symbolic.py rate SYMCACHE BASE              the same, prints lookups a second
with_symbolic.py answers SYMCACHE BASE           the same, prints the frames of each as JSON
"""

import json
import sys
import time

from symbolic.debuginfo import Archive
from symbolic.symcache import SymCache


def convert(binary: str, target: str) -> None:
    """Make a symcache."""
    symcache = next(Archive.open(binary).iter_objects()).make_symcache()
    with open(target, "wb") as file:
        symcache.dump_into(file)


def main() -> None:
    """Do what the arguments say."""
    what, path, argument = sys.argv[1:]
    if what == "convert":
        convert(path, argument)
        return
    symcache, base = SymCache.open(path), int(argument)
    addresses = [int(line, 16) - base for line in sys.stdin]
    start = time.perf_counter()
    for address in addresses:
        found = symcache.lookup(address)
        if what == "answers":
            print(json.dumps([(frame.symbol, frame.full_path or "", frame.line) for frame in found]))
    if what == "rate":
        print(json.dumps({"rate": len(addresses) / (time.perf_counter() - start)}))


if __name__ == "__main__":
    main()
