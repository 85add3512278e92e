"""Compares our frames with those of llvm-symbolizer; every difference falls into a class with a rule, or is a bug.

    python tests/symbols/compare_llvm.py [ADDRESSES] [FILE...]

compares that many random addresses of the code of each file (20,000; the fixtures, and what the machine has of
large debug files) and prints the table that docs/correctness.md quotes.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symbolize.binaries import Companions
from symbolize.elf import ElfImage, read_build_id, read_symbols
from symbolize.elf.unwind import frame_ranges
from symbolize.names import scope_text
from symbolize.symbols import build_table
from tests.support.lookup import Frame, frames_of

ROOT = Path(__file__).parents[2]
SEED = 1
LEFT_OUT = {"stripped", "headers", "objects", "lld-stripped", "gcc-icf-stripped", "versions"}
"""Folders of fixtures without debug information, or with a few instructions only."""
MIN_VERSION = 15
LIBPYTHON = Path("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0")
LIBSTDCXX = Path("/usr/lib/x86_64-linux-gnu/debug/libstdc++.so.6")

CLASSES = {
    "equal": "every field of every frame is the same",
    "qualified": "R15: llvm-symbolizer prints the bare name of a function without linkage name",
    "local": "R264: llvm-symbolizer prints the bare name of what is local to a function and has no linkage name",
    "entry": "R263: we name the entries of linkage tables, which llvm-symbolizer has no name for",
    "alias": "R118: both names are symbols with one address",
    "symbol": "R6, R114: llvm-symbolizer takes the symbol whose name is spelled otherwise than the function's in DWARF",
    "path": "R46: llvm-symbolizer leaves `/./` in",
    "padding": "R38: no function covers the address, and we extend no row beyond its sequence",
    "unsized": "R109: llvm-symbolizer takes a symbol without size to the next one, we end it with its FDE",
    "folded": "R119, R161: several functions or variants are this code; llvm-symbolizer names one with another's lines",
    "label": "R110: llvm-symbolizer takes a label without size in a sized function, also behind that function",
    "no-code": "R104, R106: llvm-symbolizer takes a symbol of data without size, such as `_end`, or a temporary",
    "claim": "R61: no unit claims the address, so llvm-symbolizer has its symbol only",
    "empty": "R8: a function of length zero; llvm-symbolizer knows its symbol only",
    "file-symbol": "R120: DWARF knows the function but not the file; llvm-symbolizer takes the FILE symbol's",
}


PLT = (".plt", ".plt.sec", ".plt.got", ".iplt")
LAMBDA = re.compile(r"::\{lambda(?:\(.*\))?#[1-9]\d*\}")
IS_CALL = re.compile(r"(?:\(.*\)(?: const)?)?")


def without_arguments(name: str) -> str:
    """A name without what stands in angle brackets."""
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    return name


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


def find_symbolizer() -> str | None:
    """llvm-symbolizer of a version that prints JSON with start lines; None if there is none."""
    for name in ("llvm-symbolizer-19", "llvm-symbolizer"):
        path = shutil.which(name)
        if path:
            version = re.search(
                r"version (\d+)", subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            )
            if version and int(version[1]) >= MIN_VERSION:
                return path
    return None


def subjects() -> list[Path]:
    """The files that are compared: fixtures with debug information, and large debug files of this machine."""
    folder = ROOT / "fixtures" / "bin"
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and not LEFT_OUT & {*p.parts} and is_elf(p)]
    if LIBPYTHON.exists() and (build_id := read_build_id(str(LIBPYTHON))):
        files.append(Path(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"))
    files.append(LIBSTDCXX)
    return [path for path in files if path.exists()]


def is_elf(path: Path) -> bool:
    """Whether a file is an ELF file."""
    return path.read_bytes()[:4] == b"\x7fELF"


def label(path: Path) -> str:
    """A short name of a subject."""
    if ROOT in path.parents:
        return str(path.relative_to(ROOT / "fixtures" / "bin"))
    return "libpython3.11.so.1.0" if path.suffix == ".debug" else path.name


def sample(image: ElfImage, count: int) -> list[int]:
    """Random addresses of .text, ascending."""
    text = image.find(".text")
    assert text is not None
    return sorted(random.Random(SEED).sample(range(text.vaddr, text.vaddr + text.size), min(count, text.size)))


def ask_llvm(symbolizer: str, path: Path, vaddrs: Sequence[int]) -> list[list[Frame]]:
    """What llvm-symbolizer says of each address; no frames where it knows neither name nor place."""
    arguments = [symbolizer, f"--obj={path.resolve()}", "--output-style=JSON", "--no-demangle", "--inlines"]
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


class Judge:
    """Finds the class of a difference; `symbols` are name, start, end and FILE symbol of those of the binary."""

    def __init__(self, image: ElfImage) -> None:
        self.starts: dict[str, set[int]] = {}
        self.symbols: list[tuple[str, int, int, str]] = []
        self.frames = [(int(begin), int(end)) for begin, end in zip(*frame_ranges(image), strict=True)]
        self.sections = [(s.vaddr, s.vaddr + s.size) for s in image.sections if s.is_code]
        self.readable: set[str] = set()
        self.tables = [(s.vaddr, s.vaddr + s.size) for s in image.sections if s.is_code and s.name in PLT]
        for name in (".symtab", ".dynsym"):
            table = read_symbols(image, name)
            for i in range(0 if table is None else len(table)):
                assert table is not None
                symbol = table.text(int(table.name[i])).decode().partition("@")[0]
                start, size, file = int(table.vaddr[i]), int(table.size[i]), int(table.file[i])
                self.starts.setdefault(symbol, set()).add(start)
                self.symbols.append((symbol, start, start + size, table.text(file).decode() if file else ""))

    def classify(self, vaddr: int, ours: list[Frame], theirs: list[Frame], folded: bool) -> str | None:
        """The class of an address, None if the difference is not allowed. Several differences count as the last.

        `folded` tells whether we say that several functions share the code.
        """
        kind = self.class_of(vaddr, ours, theirs)
        if kind is None and ours and theirs:
            names = self.starts.get(ours[-1].name, set()), self.starts.get(theirs[-1].name.partition("@")[0], set())
            variants = ours[-1].name != theirs[-1].name and names[0] & names[1]
            return "folded" if folded or variants else None
        return kind

    def class_of(self, vaddr: int, ours: list[Frame], theirs: list[Frame]) -> str | None:
        """The class of an address where one function has the code."""
        if ours == theirs:
            return "equal"
        if self.is_entry(vaddr, ours) and (not theirs or theirs[0][1:] == ("", 0, 0, 0)):
            unknown = not theirs or not theirs[0].name or self.is_unsized_before(vaddr, theirs[0].name)
            return "entry" if unknown else None
        if not ours and len(theirs) == 1 and not theirs[0].name:
            covered = any(start <= vaddr < end for _, start, end, _ in self.symbols)
            return None if covered else "padding"
        if not ours and len(theirs) == 1 and not theirs[0].line and self.behind_frame(vaddr, theirs[0].name):
            return "unsized"
        temporary = len(theirs) == 1 and theirs[0].name.startswith(".L")
        if not ours and len(theirs) == 1 and theirs[0].name not in self.starts and (temporary or not theirs[0].line):
            return "no-code"
        if not ours and len(theirs) == 1 and self.in_function(theirs[0].name):
            return "label"
        if len(theirs) == 1 and theirs[0][2:] == (0, 0, 0) and ours and self.is_symbol(vaddr, ours[-1], theirs[0]):
            return "claim"
        if len(ours) == 1 and ours[0][:4] == theirs[0][:4] and self.is_empty(vaddr, ours[0].name):
            return "empty"
        if len(ours) != len(theirs):
            return None
        found = set()
        for depth, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            if our[2:] != their[2:]:
                return None
            found.add(self.file_class(vaddr, our, their))
            found.add(self.name_class(vaddr, our.name, their.name, [frame.name for frame in ours[depth + 1 :]]))
        return None if None in found else max(found - {"equal"}, key=list(CLASSES).index)

    def is_entry(self, vaddr: int, ours: list[Frame]) -> bool:
        """Whether we say that a place of no file is an entry of a linkage table, and it is in one."""
        named = len(ours) == 1 and ours[0][1:] == ("", 0, 0, 0) and ours[0].name.endswith("@plt")
        return named and any(begin <= vaddr < end for begin, end in self.tables)

    def is_unsized_before(self, vaddr: int, name: str) -> bool:
        """Whether a symbol without size is called `name` that begins before `vaddr`."""
        return any(symbol == name and start == end < vaddr for symbol, start, end, _ in self.symbols)

    def behind_frame(self, vaddr: int, name: str) -> bool:
        """Whether a symbol without size is called `name` that ends before `vaddr`, by FDE or section."""
        starts = {start for symbol, start, end, _ in self.symbols if symbol == name and start == end}
        ends = [end for begin, end in self.frames if any(begin <= start < end for start in starts)]
        if any(begin <= start < end <= vaddr for begin, end in self.sections for start in starts):
            return True
        if any(not any(begin <= start < end for begin, end in self.sections) for start in starts):
            return True
        return any(end <= vaddr for end in ends) and not any(begin <= vaddr < end for begin, end in self.frames)

    def is_symbol(self, vaddr: int, our: Frame, their: Frame) -> bool:
        """Whether `their` is what the symbol table alone says of our outermost function, which DWARF declares."""
        named = self.name_class(vaddr, our.name, their.name, []) is not None
        files = {file for symbol, start, end, file in self.symbols if start <= vaddr < end}
        return named and our.start_line > 0 and their.file in files

    def is_empty(self, vaddr: int, name: str) -> bool:
        """Whether the symbol `name` stands at `vaddr` and has no size."""
        return any(symbol == name and start == end == vaddr for symbol, start, end, _ in self.symbols)

    def in_function(self, name: str) -> bool:
        """Whether a symbol without size is called `name` that lies in one with a size."""
        starts = {start for symbol, start, end, _ in self.symbols if symbol == name and start == end}
        return any(begin < start < end for start in starts for _, begin, end, _ in self.symbols)

    def is_local(self, scope: str, their: str, callers: list[str]) -> bool:
        """Whether `scope`, what we have before the bare name `their`, is a function and a lambda or classes in it, as
        c++filt spells them. The function is a symbol of the file, a frame around this one or a lambda itself."""
        if not self.readable:
            self.readable = {scope_text(name.encode()).decode() for name in self.starts}
        around, closure, kind = scope.rpartition("::{lambda")
        if closure:
            if not (LAMBDA.fullmatch(closure + kind) and their.startswith("operator()")):
                return False
            functions = [around]
        else:
            ends = [match.span() for match in re.finditer("::", scope)]
            functions = [scope[:begin] for begin, end in ends if "(" not in scope[end:]]
        known = self.readable | {scope_text(name.encode()).decode() for name in callers}
        for function in functions:
            if function in known or any(function.startswith(n) and IS_CALL.fullmatch(function, len(n)) for n in known):
                return True
            outer = re.fullmatch(r"(.*)::operator\(\)\(.*\)(?: const)?", function)
            if outer is not None and self.is_local(outer[1], "operator()", callers):
                return True
        return False

    def file_class(self, vaddr: int, our: Frame, their: Frame) -> str | None:
        """The class of a difference in files."""
        if our.file == their.file:
            return "equal"
        if not our.file and their.line == 0:
            files = {file for _, start, end, file in self.symbols if start <= vaddr < end or start == end <= vaddr}
            return "file-symbol" if their.file in files else None
        return "path" if same_file(our.file, their.file) else None

    def name_class(self, vaddr: int, our: str, their: str, callers: list[str]) -> str | None:
        """The class of a difference in names; only the outermost function, which has no `callers`, has a symbol."""
        if our == their:
            return "equal"
        scope = our.removesuffix("::" + their)
        plain = without_arguments(scope).replace("(anonymous namespace)", "").replace("(anonymous struct)", "")
        if scope != our and ("{" in plain or "(" in plain):
            return "local" if self.is_local(scope, their, callers) else None
        if our.endswith("::" + their):
            return "qualified"
        if callers:
            return None
        plain = their.partition("@")[0]
        if plain == our:
            return "symbol"
        if any(start <= vaddr for start in self.starts.get(our, set()) & self.starts.get(plain, set())):
            return "alias"
        if self.in_function(their):
            return "label"
        if re.fullmatch(re.escape(our) + r"\.\d+", their):  # a nested function of C
            return "symbol"
        if their in (our + ".abi0", our.replace("·", "."), our + "_"):  # Go, Fortran
            return "symbol"
        # An inherited constructor is called like its class in DWARF and like the class it comes from in the symbol.
        constructor = re.sub(r"<.*?>(?=::|$)", "", our).split("::")
        return "symbol" if re.search(r"CI[12]", their) and len(set(constructor[-2:])) == 1 else None


def same_file(one: str, other: str) -> bool:
    """Whether two paths are the same but for `/./`."""
    return one.replace("/./", "/") == other.replace("/./", "/")


def compare(path: Path, count: int, symbolizer: str, finder: Companions | None = None) -> Comparison:
    """Compare `count` random addresses of a file; `finder` finds its split units."""
    result = Comparison()
    with ElfImage.open(path) as image:
        vaddrs = sample(image, count)
        table = build_table([image], np.array(vaddrs, np.uint64), finder)
        ours, folded = frames_of(table, vaddrs), table.lookup(np.array(vaddrs, np.uint64)).folded.tolist()
        judge = Judge(image)
    theirs = ask_llvm(symbolizer, path, vaddrs)
    for vaddr, our, their, is_folded in zip(vaddrs, ours, theirs, folded, strict=True):
        kind = judge.classify(vaddr, our, their, is_folded)
        if kind is None:
            result.unexplained.append(Difference(vaddr, our, their))
        result.classes[kind or "unexplained"] += 1
    return result


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 if there is a difference without a class."""
    symbolizer = find_symbolizer()
    if symbolizer is None:
        print("there is no llvm-symbolizer", file=sys.stderr)
        return 2
    count = int(arguments[0]) if arguments else 20_000
    results = {path: compare(path, count, symbolizer) for path in map(Path, arguments[1:])} or {
        path: compare(path, count, symbolizer) for path in subjects()
    }
    kinds = [kind for kind in (*CLASSES, "unexplained") if any(r.classes[kind] for r in results.values())]
    print("| file | addresses |", " | ".join(kinds), "|")
    print("|---|---:|" + "---:|" * len(kinds))
    for path, result in results.items():
        counts = " | ".join(f"{result.classes[kind]:,}" if result.classes[kind] else "" for kind in kinds)
        print(f"| {label(path)} | {result.classes.total():,} | {counts} |")
    for path, result in results.items():
        for vaddr, ours, theirs in result.unexplained[:3]:
            print(f"\n{label(path)} {vaddr:#x}\n  ours   {ours}\n  theirs {theirs}", file=sys.stderr)
    return int(any(result.unexplained for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
