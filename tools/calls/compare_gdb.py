"""Compares the frames that `--tail-calls` puts back with those of gdb, stack by stack, and with what the program did.

    python -m tools.calls.compare_gdb [--stops N] [--module FILE] [--save FILE] -- PROGRAM ARGUMENT...

gdb runs the program and stops at functions of the module (the program), chosen at random with a fixed seed. The frames
that it read from the stack become a profile; what symbolize makes of that has to be what gdb shows, frame by frame,
with inlined frames and those of tail calls. Debug information is that of the files, or below /usr/lib/debug.

A second run watches the tail calls of the frames that were put back: a frame is *passed* if the program entered its
function and then left it by that very call, both where the frame is on the stack, before it stopped. Where symbolize
alone puts frames back, it is counted whether gdb says that it knows no target of a call there.
"""

import argparse
import io
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, dropwhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from symbolize import Options, Profile, Symbolizer, load, write
from symbolize.elf import ElfImage, read_symbols
from symbolize.elf.symbols import STT_FUNC
from symbolize.enrich.callers import TAIL_CALL_MARK
from tests.support.gperftools_writer import profile

DEBUG = Path("/usr/lib/debug")
SEED = 1
MOST = 4000
"""Breakpoints that are set; most are never reached."""
PASSES = (0, 0, 1, 5, 20)
"""How often a function is passed before it stops: not only the first calls of a program are looked at."""
CLONE = re.compile(r"(\.(isra|part|constprop|cold|lto_priv|localalias|\d+))+$")
NO_TARGET = re.compile(r"(?:is not specified|for a call site target) at (0x[0-9a-f]+)")

GdbFrame = tuple[str, int, str, int]
"""Kind, pc, linked name, stack pointer."""
Stop = tuple[Sequence[GdbFrame], Sequence[tuple[int, int, int]]]
"""The frames that gdb shows, from the leaf on, and what was passed: stack pointer, vaddr, time."""


class Frame(NamedTuple):
    """A frame; `address` is that of the call, inlined frames have that of the frame around them."""

    kind: str
    address: int
    name: str


class Module:
    """A file that functions are chosen from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with ElfImage.open(path) as image:
            self.first = min(segment.vaddr - segment.file_offset for segment in image.segments if segment.file_size)
            found = read_symbols(image, ".symtab")
            build_id = image.build_id or ""
        if found is None:
            with ElfImage.open(DEBUG / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug") as debug:
                found = read_symbols(debug, ".symtab")
        if found is None:
            sys.exit(f"{path} has no symbols")
        rows = np.flatnonzero((found.type == STT_FUNC) & (found.size > 0))
        rows = rows[np.argsort(found.vaddr[rows], kind="stable")]
        self.vaddrs = found.vaddr[rows].tolist()
        self.names = [found.text(name).decode() for name in found.name[rows].tolist()]

    def chosen(self) -> list[tuple[int, int]]:
        """The vaddrs of some functions with how often each is passed."""
        vaddrs, chance = sorted({*self.vaddrs}), random.Random(SEED)
        return [(vaddr, chance.choice(PASSES)) for vaddr in chance.sample(vaddrs, min(len(vaddrs), MOST))]

    def begin(self, vaddr: int) -> int:
        """Where the function with code at a vaddr begins."""
        at = int(np.searchsorted(self.vaddrs, vaddr, "right")) - 1
        return self._whole.get(self.names[at].removesuffix(".cold"), self.vaddrs[at])

    @cached_property
    def _whole(self) -> dict[str, int]:
        return dict(zip(self.names, self.vaddrs, strict=True))


class Files:
    """The files of a memory map."""

    def __init__(self, maps: str) -> None:
        rows = [line.split(maxsplit=5) for line in maps.splitlines()]
        self._rows = [(*(int(end, 16) for end in row[0].split("-")), row[5]) for row in rows if len(row) > 5]

    def file(self, address: int) -> str:
        """The file at an address."""
        return next((path for begin, end, path in self._rows if begin <= address < end), "")


@dataclass
class Comparison:
    """Stacks by what is different, and inserted frames by who shows them."""

    stacks: Counter[str] = field(default_factory=Counter)
    inserted: Counter[str] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)
    differences: list[tuple[str, list[Frame], list[Frame]]] = field(default_factory=list)


def recorded(command: Sequence[str], module: Module, watched: Sequence[tuple[int, int]] = ()) -> dict[str, Any]:
    """What gdb found."""
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder) / "request.json", Path(folder) / "answer.json"
        asked = {
            "arguments": shlex.join(command[1:]),
            "module": str(module.path),
            "vaddr": module.first,
            "vaddrs": module.chosen(),
            "watched": watched,
            "answer": str(answer),
        }
        request.write_text(json.dumps(asked))
        gdb = ["gdb", "-batch", "-nx", "-x", str(Path(__file__).with_name("gdb_stacks.py")), command[0]]
        environment = os.environ | {"CALLS_REQUEST": str(request), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(gdb, env=environment, capture_output=True, text=True)
        if not answer.exists():
            sys.exit(done.stderr)
        no_target = {int(text, 16) for text in NO_TARGET.findall(done.stdout)}
        return json.loads(answer.read_text()) | {"no target": no_target}


def plain(name: str) -> str:
    """A linked name without suffixes of clones; gdb puts scopes before names of functions that have no linked one."""
    bare = CLONE.sub("", name)
    return bare if bare.startswith("_Z") or "<" in bare else bare.rpartition("::")[2]


def theirs(frames: Sequence[GdbFrame]) -> list[Frame]:
    """The frames of gdb. Their addresses are where callers go on, except in the frame that stopped."""
    leaf = next(i for i, (kind, *_) in enumerate(frames) if not kind)
    return [Frame(kind, pc - (i > leaf), plain(name)) for i, (kind, pc, name, _) in enumerate(frames)]


def as_profile(stops: Sequence[Stop], maps: str) -> Profile:
    """A profile of what is on the stacks: without the frames that gdb inferred."""
    records = [(1, [pc for kind, pc, *_ in frames if not kind]) for frames, _ in stops]
    return load(io.BytesIO(profile(records, maps.encode())))


def ours(made: Profile, maps: str) -> list[list[Frame]]:
    """The frames that symbolize makes of a profile."""
    files = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "r-xp" in line and "/" in line}
    with Symbolizer([*sorted(files), DEBUG], Options(demangle="none", tail_calls=True)) as symbolizer:
        stacks = symbolizer.symbolize(made).profile.stacks()
    mark = TAIL_CALL_MARK.decode()
    found = []
    for stack in stacks:
        frames = []
        for frame in stack:
            kind = "inlined" if frame.is_inlined else "tail call" if frame.function.endswith(mark) else ""
            frames.append(Frame(kind, frame.address, plain(frame.function.removesuffix(mark))))
        found.append(frames)
    return found


def as_gdb(frames: Sequence[Frame]) -> list[Frame]:
    """Frames in the way gdb shows them: without what is inlined at the very address at which a program stops. A frame
    of a tail call has the name of the innermost function that is inlined there, and no inlined frames."""
    shown: list[Frame] = []
    names: dict[int, str] = {}
    for frame in dropwhile(lambda frame: frame.kind == "inlined", frames):
        names.setdefault(frame.address, frame.name)
        if frame.kind == "tail call":
            while shown and shown[-1].kind == "inlined" and shown[-1].address == frame.address:
                shown.pop()
            frame = frame._replace(name=names[frame.address])
        shown.append(frame)
    return shown


def inserted(frames: Sequence[Frame]) -> dict[tuple[int, Frame], None]:
    """The frames of tail calls, each with the number of those on the stack that are below."""
    below = [0, *accumulate(not frame.kind for frame in frames)]
    return {(count, frame): None for count, frame in zip(below, frames, strict=False) if frame.kind == "tail call"}


def compare(comparison: Comparison, our: list[Frame], their: list[Frame], no_target: set[int], files: Files) -> None:
    """Count a stack."""
    our, their = as_gdb(our), as_gdb(their)
    we, they = inserted(our), inserted(their)
    stacked = [frame for frame in our if not frame.kind]
    for each in {**we, **they}:
        count = each[0]
        who = "both" if each in we and each in they else "gdb only" if each in they else "symbolize only"
        if who == "symbolize only":
            calls = {stacked[count].address, *(frame.address for below, frame in we if below == count)}
            who += ", gdb knows no target" if any(address + 1 in no_target for address in calls) else ""
        elif who == "gdb only" and each[1].name == stacked[count - 1].name:
            who += ", a function that calls its own split part"
        elif who == "gdb only" and files.file(each[1].address) != files.file(stacked[count].address):
            who += ", in another file than the caller"
        comparison.inserted[who] += 1
    kind = "equal" if our == their else "other tail calls" if [*we] != [*they] else "other names"
    comparison.stacks[kind] += 1
    if our != their:
        comparison.differences.append((kind, our, their))


def check_passed(comparison: Comparison, our: list[Frame], stop: Stop, module: Module, bias: int) -> None:
    """Count the inserted frames of a stack that the program passed."""
    pointers = [pointer for kind, *_, pointer in stop[0] if not kind]
    before: dict[int, int] = {}
    for count, frame in reversed(inserted(our)):
        times = {vaddr: time for pointer, vaddr, time in stop[1] if pointer == pointers[count]}
        vaddr = frame.address - bias
        if not module.vaddrs[0] <= vaddr < module.vaddrs[-1]:
            comparison.passed["in other modules"] += 1
            continue
        entry, left = times.get(module.begin(vaddr), 0), times.get(vaddr, 0)
        is_passed = before.get(count, 0) < entry < left
        before[count] = left
        comparison.passed["passed" if is_passed else "not passed"] += 1
        if not is_passed:
            comparison.differences.append((f"not passed: {frame.name}", our, theirs(stop[0])))


def main() -> int:
    """Compare, print; 1 if a frame that symbolize alone shows was not passed, or gdb shows one that it does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stops", type=int, default=200, metavar="N", help="stacks that are compared (default: 200)")
    parser.add_argument("--module", type=Path, metavar="FILE", help="where to stop, a library for example")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the profile of what is on the stacks")
    parser.add_argument("--show", type=int, default=3, metavar="N", help="differences to print (default: 3)")
    parser.add_argument("command", nargs="+", metavar="PROGRAM ARGUMENT")
    options = parser.parse_args()
    program = Path(shutil.which(options.command[0]) or options.command[0]).resolve()
    command, module = [str(program), *options.command[1:]], Module((options.module or program).resolve())
    answer, comparison = recorded(command, module), Comparison()
    maps, stops, bias = answer["maps"], answer["stops"], answer["bias"]
    some = sorted(random.Random(SEED).sample(range(len(stops)), min(len(stops), options.stops)))
    made = as_profile([stops[i] for i in some], maps)
    if options.save:
        write(made, options.save)
    found = ours(made, maps)
    for our, i in zip(found, some, strict=True):
        compare(comparison, our, theirs(stops[i][0]), answer["no target"], Files(maps))
    vaddrs = {frame.address - bias for our in found for _, frame in inserted(our)}
    watched = [(module.begin(vaddr), vaddr) for vaddr in vaddrs if module.vaddrs[0] <= vaddr < module.vaddrs[-1]]
    again = recorded(command, module, watched)["stops"]
    for our, i in zip(found, some, strict=True):
        if i < len(again) and theirs(again[i][0]) == theirs(stops[i][0]):
            check_passed(comparison, our, again[i], module, bias)
        else:
            comparison.passed["where the second run did not stop"] += len(inserted(our))
    print(f"{len(some)} of {len(stops)} stops:", counts(comparison.stacks))
    print("frames of tail calls:", counts(comparison.inserted))
    print("frames that were put back:", counts(comparison.passed))
    for kind, our, their in comparison.differences[: options.show]:
        print(f"\n{kind}")
        for who, frames in (("symbolize", our), ("gdb", their)):
            print(f"  {who}:", *(f"{f.address:#x} {f.name} {f.kind}".rstrip() for f in frames), sep="\n    ")
    return int(comparison.passed["not passed"] + comparison.inserted["gdb only"] > 0)


def counts(counter: Counter[str]) -> str:
    """Counts as text."""
    return "; ".join(f"{count} {kind}" for kind, count in sorted(counter.items())) or "none"


if __name__ == "__main__":
    sys.exit(main())
