"""Builds small programs with many toolchains and compares our frames with those of up to three other engines.

    python -m tools.llvm.matrix FOLDER [PATTERN]

builds every variant whose name contains PATTERN in FOLDER, asks symbolize, llvm-symbolizer, eu-addr2line and GNU
addr2line for (nearly) every byte of its code, and prints what differs. Variants whose tools are missing are left
out, and those that cannot be built are named. Set ADDR2LINE to an addr2line that knows all processors.
"""

import argparse
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symbolize.elf import ElfImage, read_symbols
from symbolize.names import demangle, last_component, split_suffix
from symbolize.symbols import Binary
from tests.support.lookup import Frame, finder_of, frames_of
from tests.support.needs import missing
from tools.llvm.compare_llvm import NEEDED, SEED, ask_llvm
from tools.llvm.judge import CLASSES, Judge, unversioned
from tools.llvm.recipes import Recipe, recipes
from tools.llvm.variants import LLD, Variant, variants

MAX_ADDRESSES = 4000
LARGE = 1 << 20
SHOWN = 3
"""Differences of a kind that are shown of each binary."""

NAMED_OTHERWISE = ("alias", "symbol", "qualified", "folded")
VOTES_EXPECTED = ("padding", "label", "unsized", "claim")
"""Classes in which engines agree with each other by their rules for padding."""

EXPLAINED = "|".join((*CLASSES, "binaries", "not built", "addresses", "asked .*"))
"""What may be in the table."""


Program = Variant | Recipe


class Opinion(NamedTuple):
    """What an engine says of a frame that all engines say: base name of the function, file without folder, line."""

    name: str
    file: str
    line: int


def addresses(image: ElfImage, debug: ElfImage, own: str) -> list[int]:
    """Every byte of executable sections, or MAX_ADDRESSES random ones if they have more, fewer of large files.

    Besides up to MAX_ADDRESSES in functions whose symbols match `own`, if that is not empty.
    """
    every = [range(int(b), int(e)) for b, e in zip(*image.code_ranges, strict=True)]
    chosen = some_of(every, MAX_ADDRESSES if len(image.data) < LARGE and not own else MAX_ADDRESSES // 4)
    table = read_symbols(debug, ".symtab") if own else None
    if table is not None:
        named = [i for i in range(len(table)) if re.search(own, table.text(int(table.name[i])).decode())]
        ranges = [range(int(table.vaddr[i]), int(table.vaddr[i] + table.size[i])) for i in named]
        inside = [r for r in ranges if any(r.start in code for code in every)]
        chosen |= some_of(inside, MAX_ADDRESSES)
    return sorted(chosen)


def some_of(ranges: Sequence[range], count: int) -> set[int]:
    """The numbers of some ranges, random ones if there are more than `count`."""
    every = list(itertools.chain.from_iterable(ranges))
    return {*(every if len(every) <= count else random.Random(SEED).sample(every, count))}


def dead_addresses(image: ElfImage) -> list[int]:
    """Addresses outside of code that no function may answer for: near zero, beside and far from sections (R54, R56)."""
    begin, end = image.code_ranges
    near = [
        *range(0x20),
        *(int(b) - k for b in begin for k in (1, 2, 16)),
        *(int(e) + k for e in end for k in (0, 1, 15)),
    ]
    near += [int(s.vaddr) + 1 for s in image.sections if s.vaddr]
    top = 1 << 64
    near += [top - k for k in range(1, 20)] + [(1 << 32) - k for k in range(1, 20)]
    code = [(int(b), int(e)) for b, e in zip(begin, end, strict=True)]
    return sorted({a for a in near if 0 <= a < top and not any(b <= a < e for b, e in code)})


def padding(image: ElfImage, vaddrs: Sequence[int]) -> set[int]:
    """Those of `vaddrs` that lie behind the end of sized functions, with no symbol without size between."""
    table = read_symbols(image, ".symtab")
    if table is None or not len(table):
        return set()
    order = np.argsort(table.vaddr, kind="stable")
    starts, sizes = table.vaddr[order], table.size[order]
    reach = np.maximum.accumulate(starts + sizes)
    wanted = np.array(vaddrs, np.uint64)
    last = np.searchsorted(starts, wanted, side="right") - 1
    first = np.searchsorted(starts, starts[np.maximum(last, 0)])
    sizeless = np.concatenate(([0], np.cumsum(sizes == 0)))
    unsized = sizeless[last + 1] > sizeless[first]
    return set(wanted[(last >= 0) & ~unsized & (wanted >= reach[np.maximum(last, 0)])].tolist())


def ask_lines(command: Sequence[str], vaddrs: Sequence[int], env: dict[str, str]) -> list[list[Opinion]]:
    """What an addr2line says, which prints address, then function and place by turns."""
    text = "".join(f"{vaddr:#x}\n" for vaddr in vaddrs)
    output = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", env=env).stdout
    result: list[list[Opinion]] = []
    name = None
    for line in output.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line) and name is None:
            result.append([])
        elif name is None:
            name = re.sub(r" inlined at .*| \(inlined by\) ", "", line)
        else:
            place = re.match(r"(.*?):(\d+|\?)", line)
            file, number = (place[1], place[2]) if place else (line, "0")
            opinion = opinion_of(name, file, int(number) if number.isdigit() else 0)
            if opinion.name or opinion.line:
                result[-1].append(opinion)
            name = None
    return result


def opinion_of(name: str, file: str, line: int) -> Opinion:
    """A frame as far as all engines agree on how to write it."""
    file = "" if file.startswith("??") else file.rpartition("/")[2]
    return Opinion(base_name(name), file if line else "", line)


@cache
def base_name(name: str) -> str:
    """A name without scopes, versions and suffixes; empty if it is unknown."""
    plain = split_suffix(unversioned(name).encode())[0]
    plain = re.sub(rb"\.\d+$", b"", plain)  # a function nested in another one
    return "" if plain in (b"", b"??") else last_component(demangle([plain], "default")[0]).decode(errors="replace")


def opinions(frames: Sequence[Frame]) -> list[Opinion]:
    """Our frames or those of llvm-symbolizer as opinions."""
    return [opinion_of(frame.name, frame.file, frame.line) for frame in frames]


def nameless(said: Sequence[Opinion]) -> list[Opinion]:
    """Opinions of the places alone."""
    return [opinion._replace(name="") for opinion in said]


def agree(one: Sequence[Opinion], other: Sequence[Opinion]) -> bool:
    """Whether two engines say the same; names of the symbol table have no scopes or clones."""
    if len(one) != len(other):
        return False
    return all(a.line == b.line and a.file == b.file and a.name == b.name for a, b in zip(one, other, strict=True))


def is_encoded(ours: Sequence[Frame], others: dict[str, list[Opinion]]) -> bool:
    """Whether our only frame has a symbol that is no C++ name, and some have the plain name that is in it (R262)."""
    if len(ours) != 1 or ours[0].name.startswith("_Z"):
        return False
    names = {opinion.name for said in others.values() for opinion in said}
    words = {re.sub(r"\W", "", name).upper() for name in names}
    return len(names) > 1 and all(word and word in re.sub(r"\W", "", ours[0].name).upper() for word in words)


@dataclass
class Outcome:
    """What came of a variant: how many addresses of each kind there are, and examples."""

    kinds: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, kind: str, example: str = "") -> None:
        """Count an address; the first examples of a kind are kept."""
        self.kinds[kind] += 1
        if example and self.kinds[kind] <= SHOWN:
            self.examples.append(f"{kind} {example}")


def compare(program: Program, folder: Path) -> Outcome:
    """Compare all engines over a program that was built in `folder`."""
    outcome = Outcome()
    path = folder / program.asked
    with ExitStack() as stack:
        image = stack.enter_context(ElfImage.open(path))
        code = stack.enter_context(ElfImage.open(folder / program.files[0]))
        vaddrs, dead = addresses(code, image, program.own), dead_addresses(code)
        binary = Binary([ElfImage.open(folder / file) for file in program.files], finder_of(path))
        stack.callback(binary.close)
        part = binary.table(np.array(vaddrs, np.uint64))
        ours = frames_of(part, vaddrs)
        whole = binary.table()  # the second visit
        if ours != frames_of(whole, vaddrs):
            outcome.add("whole-and-part", "differ")
        folded = whole.lookup(np.array(vaddrs, np.uint64)).folded.tolist()
        for vaddr, frames in zip(dead, frames_of(whole, dead), strict=True):
            if frames:
                outcome.add("DEAD", f"{vaddr:#x} {frames}")
        between = padding(image, vaddrs)
        outcome.kinds["asked in padding"] += len(between)
        outcome.kinds["asked outside of code"] += len(dead)
        judge = Judge(image, code)
        problems = [*image.problems, *binary.refused, *whole.problems]
        if problems:
            outcome.add("PROBLEM", str(problems[:2]))
    theirs = ask_llvm(path, vaddrs)
    env = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
    eu = ask_lines(["eu-addr2line", "-a", "-f", "-i", "-e", str(path)], vaddrs, env)
    gnu = ask_lines([os.environ.get("ADDR2LINE", "addr2line"), "-a", "-f", "-i", "-e", str(path)], vaddrs, env)
    icf = ".icf" in program.name  # the others take name and line of different functions (rule R161)
    for i, vaddr in enumerate(vaddrs):
        outcome.add("addresses")
        kind = judge.classify(vaddr, ours[i], theirs[i], folded[i])
        if vaddr in between and ours[i] and kind not in ("equal", "entry"):
            outcome.add("PADDING", f"{vaddr:#x} {ours[i]}")
        mine = opinions(ours[i])
        others = {"llvm": opinions(theirs[i])}
        if len(eu) == len(vaddrs) and not program.is_hard:
            others["eu"] = eu[i]
        if len(gnu) == len(vaddrs) and not program.is_hard:
            others["gnu"] = gnu[i]
        if code.machine == "EM_ARM" and vaddr in judge.entry_points:
            others = {"llvm": others["llvm"]}  # the others take Thumb functions to begin a byte later
        if kind in NAMED_OTHERWISE or is_encoded(ours[i], others):  # the names differ by a rule, so the places decide
            mine, others = nameless(mine), {name: nameless(said) for name, said in others.items()}
        # Engines that take temporary labels for functions have no voice (rule R106).
        others = {name: said for name, said in others.items() if not any(o.name.startswith(".L") for o in said)}
        against = sorted(name for name, said in others.items() if not agree(mine, said))
        votes = sum(agree(others[one], others[two]) for one, two in itertools.combinations(against, 2))
        said = "\n".join(f"    {name:5}{others[name]}" for name in others)
        text = f"{vaddr:#x}\n    ours {ours[i]}\n    full {theirs[i]}\n{said}"
        has_lines = ours[i] and all(frame.line for frame in ours[i])
        if kind is None:
            outcome.add("unexplained by " + "+".join(against), text)
        elif votes and kind not in VOTES_EXPECTED and not folded[i] and has_lines and not icf:
            outcome.add(f"outvoted ({kind})", text)
        else:
            outcome.add(kind)
    return outcome


def print_table(groups: dict[str, Counter[str]]) -> None:
    """Print how many addresses of each toolchain are of each class, which docs/correctness.md sums up."""
    kinds = [kind for kind in CLASSES if any(counts[kind] for counts in groups.values())]
    print("| toolchain | binaries | addresses | share equal |", " | ".join(kinds), "|")
    print("|---|---:|---:|---:|" + "---:|" * len(kinds))
    for group, counts in groups.items():
        row = [f"{counts[kind]:,}" if counts[kind] else "" for kind in kinds]
        share = f"{counts['equal'] / counts['addresses']:.1%}".replace("%", " %")
        print(f"| {group} | {counts['binaries']} | {counts['addresses']:,} | {share} |", " | ".join(row), "|")


def main(arguments: Sequence[str]) -> int:
    """Build, compare and print; 1 if something has no class."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pattern", nargs="?", default="", help="a regular expression")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    if reason := missing(NEEDED):
        print(reason, file=sys.stderr)
        return 2
    tools = folder / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    if not (tools / "ld.lld").exists():
        (tools / "ld.lld").symlink_to(shutil.which(LLD) or LLD)
    total: Counter[str] = Counter()
    groups: dict[str, Counter[str]] = {}
    seen: Counter[str] = Counter()
    for program in itertools.chain(variants(), recipes()):
        if not re.search(options.pattern, program.name):
            continue
        trouble = program.build(folder / program.name)
        if trouble:
            print(f"{program.name}: not built: {trouble.strip()}", flush=True)
            total["not built"] += 1
            continue
        outcome = compare(program, folder / program.name)
        outcome.kinds["binaries"] += 1
        total += outcome.kinds
        groups[program.group] = groups.get(program.group, Counter()) + outcome.kinds
        print(f"{program.name}: {dict(outcome.kinds)}", flush=True)
        for example in outcome.examples:
            key = re.sub(r"0x[0-9a-f]+|line=\d+|column=\d+", "", example)
            seen[key] += 1
            if seen[key] == 1:
                print("  " + example, flush=True)
    print("\n".join(f"{kind}: {count:,}" for kind, count in total.most_common()))
    print_table(groups | {"**all**": total})
    return int(any(not re.fullmatch(EXPLAINED, kind) for kind in total))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
