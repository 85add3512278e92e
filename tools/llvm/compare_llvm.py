"""Compares our frames with those of llvm-symbolizer; every difference falls into a class with a rule, or is a bug.

    python -m tools.llvm.compare_llvm [ADDRESSES] [FILE...]

compares that many random addresses of the code of each file (20,000; the fixtures, and what the machine has of
large debug files) and prints the table of tests/symbols/llvm_classes.md.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symbolize.binaries import Companions
from symbolize.elf import ElfImage
from symbolize.symbols import build_table
from tests.support.lookup import Frame, frames_of
from tests.support.needs import DEBUG_FILES, find, missing
from tools.llvm.judge import CLASSES, Judge

ROOT = Path(__file__).parents[2]
SEED = 1
LEFT_OUT = {"stripped", "headers", "objects", "lld-stripped", "gcc-icf-stripped", "versions", "callers", "tails"}
"""Folders of fixtures without debug information, with a few instructions only, or much like others."""
NEEDED = ("llvm-symbolizer-19", "llvm-dwarfdump-19", "objdump", "readelf")


class Difference(NamedTuple):
    """An address at which the two differ in a way that no class allows."""

    vaddr: int
    ours: list[Frame]
    theirs: list[Frame]


@dataclass
class Comparison:
    """How many addresses fell into each class, and those that fell into none."""

    classes: Counter[str] = field(default_factory=Counter)
    unexplained: list[Difference] = field(default_factory=list)


def subjects() -> list[Path]:
    """The files that are compared: fixtures with debug information, and large debug files of this machine, which may be
    missing."""
    folder = ROOT / "fixtures" / "bin"
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and not LEFT_OUT & {*p.parts} and is_elf(p)]
    return [*files, *DEBUG_FILES.values()]


def is_elf(path: Path) -> bool:
    """Whether a file is an ELF file."""
    return path.read_bytes()[:4] == b"\x7fELF"


def label(path: Path) -> str:
    """A short name of a subject."""
    folder = ROOT / "fixtures" / "bin"
    if folder in path.absolute().parents:
        return str(path.absolute().relative_to(folder))
    return "libpython3.11.so.1.0" if path.suffix == ".debug" else path.name


def sample(image: ElfImage, count: int) -> list[int]:
    """Random addresses of .text, ascending."""
    text = image.find(".text")
    assert text is not None
    return sorted(random.Random(SEED).sample(range(text.vaddr, text.vaddr + text.size), min(count, text.size)))


def ask_llvm(path: Path, vaddrs: Sequence[int]) -> list[list[Frame]]:
    """What llvm-symbolizer says of each address; no frames where it knows neither name nor place."""
    llvm = find("llvm-symbolizer-19")
    arguments = [llvm, f"--obj={path.resolve()}", "--output-style=JSON", "--no-demangle", "--inlines"]
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD")}
    text = "\n".join(map(hex, vaddrs))
    # Split units that were compiled in "." are looked for where it runs.
    output = subprocess.run(
        arguments, input=text, capture_output=True, text=True, env=quiet, check=True, cwd=path.parent
    ).stdout
    result = []
    for line in output.splitlines():
        frames = [
            Frame(s["FunctionName"], s["FileName"], s["Line"], s["Column"], s["StartLine"])
            for s in json.loads(line).get("Symbol", [])
        ]
        result.append([] if len(frames) == 1 and not frames[0].name and not frames[0].file else frames)
    return result


def answers(
    path: Path, count: int, finder: Companions | None = None
) -> list[tuple[int, list[Frame], list[Frame], bool]]:
    """Random addresses of a file, what we say of each and what llvm-symbolizer says, and whether we call it folded."""
    with ElfImage.open(path) as image:
        vaddrs = sample(image, count)
        table = build_table([image], np.array(vaddrs, np.uint64), finder)
        ours, folded = frames_of(table, vaddrs), table.lookup(np.array(vaddrs, np.uint64)).folded.tolist()
    return [*zip(vaddrs, ours, ask_llvm(path, vaddrs), folded, strict=True)]


def compare(path: Path, count: int, finder: Companions | None = None) -> Comparison:
    """Compare `count` random addresses of a file; `finder` finds its split units."""
    result = Comparison()
    with ElfImage.open(path) as image:
        judge = Judge(image)
    for vaddr, ours, theirs, folded in answers(path, count, finder):
        kind = judge.classify(vaddr, ours, theirs, folded)
        if kind is None:
            result.unexplained.append(Difference(vaddr, ours, theirs))
        result.classes[kind or "unexplained"] += 1
    return result


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 if there is a difference without a class."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("addresses", nargs="?", type=int, default=20_000)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    if reason := missing(NEEDED):
        print(reason, file=sys.stderr)
        return 2
    paths = options.files or subjects()
    for path in paths:
        if not path.exists():
            print(f"{label(path)}: {path} is not there", file=sys.stderr)
    results = {path: compare(path, options.addresses) for path in paths if path.exists()}
    kinds = [kind for kind in (*CLASSES, "unexplained") if any(r.classes[kind] for r in results.values())]
    print("| file | addresses |", " | ".join(kinds), "|")
    print("|---|---:|" + "---:|" * len(kinds))
    total = Counter[str]()
    for path, result in results.items():
        total += result.classes
        counts = " | ".join(f"{result.classes[kind]:,}" if result.classes[kind] else "" for kind in kinds)
        print(f"| {label(path)} | {result.classes.total():,} | {counts} |")
    counts = " | ".join(f"{total[kind]:,}" for kind in kinds)
    print(f"| **all** | {total.total():,} | {counts} |")
    for path, result in results.items():
        for vaddr, ours, theirs in result.unexplained[:3]:
            print(f"\n{label(path)} {vaddr:#x}\n  ours   {ours}\n  theirs {theirs}", file=sys.stderr)
    return int(any(result.unexplained for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
