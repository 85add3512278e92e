"""What LLVM's gsymutil makes of GSYM files."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from symbolize.symbols import SymbolTable
from tests.support.needs import find

GSYMUTIL = "llvm-gsymutil-19"

FRAME = re.compile(r"(?P<name>.+?)(?: \+ \d+)?(?: @ (?P<path>.*?):(?P<line>\d+))?(?: \[inlined\])?")

Frame = tuple[str, str, int]
"""Name, path and line; no line is given without a path."""


def looked_up(path: Path, vaddrs: Sequence[int]) -> list[list[Frame]]:
    """The frames at some addresses, innermost first, as gsymutil prints them; none where it finds nothing."""
    asked = "".join(f"{vaddr:#x} {path}\n" for vaddr in vaddrs)
    command = [find(GSYMUTIL), "--addresses-from-stdin"]
    run = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    result: list[list[Frame]] = []
    for line in run.stdout.splitlines():
        head, _, text = line.partition(": ") if line.startswith("0x") else ("", "", line.strip())
        if head:
            result.append([])
        if text and not text.startswith("error:"):
            match = FRAME.fullmatch(text)
            assert match is not None, line
            result[-1].append((match["name"], match["path"] or "", int(match["line"] or 0)))
    return result


def converted(binary: Path, path: Path) -> None:
    """Have gsymutil make a GSYM file of a binary."""
    subprocess.run([find(GSYMUTIL), "--convert", str(binary), "-o", str(path)], capture_output=True, check=True)


def frames_of(table: SymbolTable, vaddrs: Sequence[int]) -> list[list[Frame]]:
    """The frames at ascending addresses in a table, without what a list of functions does not hold."""
    frames = table.lookup(np.array(vaddrs, np.uint64))
    names = [(a or b).decode() for a, b in zip(frames.functions.linkage, frames.functions.name, strict=True)]
    paths = [path.decode() for path in frames.files]
    offsets, function = frames.offsets.tolist(), frames.function.tolist()
    file, line = frames.file.tolist(), frames.line.tolist()
    return [
        [
            (names[function[j]], paths[file[j]] if file[j] >= 0 else "", line[j] if file[j] >= 0 else 0)
            for j in range(offsets[i], offsets[i + 1])
        ]
        for i in range(len(vaddrs))
    ]
