"""What each engine answers for a list of addresses, in one form.

An answer is a tuple of frames, innermost first; an engine that knows neither function nor file gives none.
"""

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import peers as p
from measure import environment
from peers import Peers
from subjects import Subject

from symbolize.elf import ElfImage
from symbolize.names import demangle, drop_template_arguments, last_component, split_suffix, strip_version
from symbolize.symbols import build_table


class Frame(NamedTuple):
    """A function as the engine spells it (linked, where it does), file and line; empty and 0 for unknown."""

    function: str
    file: str
    line: int


Answer = tuple[Frame, ...]


def answer(frames: Iterable[tuple[str, str, int]]) -> Answer:
    """The frames of an engine without its ways of saying that it does not know."""
    found = tuple(
        Frame("" if function == "??" else sys.intern(function), "" if file in ("??", ":") else sys.intern(file), line)
        for function, file, line in frames
    )
    return found if any(frame.function or frame.file for frame in found) else ()


def ours(subject: Subject, vaddrs: Sequence[int]) -> list[Answer]:
    """The answers of symbolize."""
    images = [ElfImage.open(path) for path in subject.files]
    found = build_table(images, np.array(vaddrs, np.uint64)).lookup(np.array(vaddrs, np.uint64))
    functions = [
        (a or b).decode(errors="replace") for a, b in zip(found.functions.linkage, found.functions.name, strict=True)
    ]
    files = [path.decode(errors="replace") for path in found.files] + [""]  # the last for -1
    columns = (found.function.tolist(), found.file.tolist(), found.line.tolist())
    frames = [(functions[function], files[file], line) for function, file, line in zip(*columns, strict=True)]
    offsets = found.offsets.tolist()
    for image in images:
        image.close()
    return [answer(frames[first:last]) for first, last in itertools.pairwise(offsets)]


def of_llvm(lines: Iterable[str]) -> Iterator[Answer]:
    """What llvm-symbolizer prints as JSON."""
    for line in lines:
        yield answer((s["FunctionName"], s["FileName"], s["Line"]) for s in json.loads(line).get("Symbol", []))


def of_addr2line(lines: Iterable[str]) -> Iterator[Answer]:
    """What addr2line and eu-addr2line print: an address, then two lines a frame."""
    frames: list[tuple[str, str, int]] = []
    function, started = "", False
    for line in map(str.rstrip, lines):
        if re.fullmatch(r"0x[0-9a-f]{16}", line):
            if started:
                yield answer(frames)
            frames, function, started = [], "", True
        elif not function:
            function = re.sub(r" inlined at .* in \S.*$", "", line)
        else:
            place = re.fullmatch(r"(.*?):(\d+|\?)(?::\d+)?(?: \(.*\))?", line)
            file, number = place.groups() if place else (line, "0")
            frames.append((function, file, 0 if number == "?" else int(number)))
            function = ""
    if started:
        yield answer(frames)


def of_symbolic(lines: Iterable[str]) -> Iterator[Answer]:
    """What with_symbolic.py prints."""
    for line in lines:
        yield answer(json.loads(line))


def ask(command: Sequence[str | Path], vaddrs: Sequence[int], limit: int) -> Iterable[str]:
    """The lines that a command prints for addresses; raises ValueError or subprocess.TimeoutExpired."""
    text = "".join(f"{vaddr:#x}\n" for vaddr in vaddrs).encode()
    done = subprocess.run(command, input=text, capture_output=True, env=environment(), timeout=limit)
    if done.returncode and not done.stdout:
        raise ValueError(done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}")
    return done.stdout.decode(errors="replace").split("\n")[:-1]


def theirs(name: str, peers: Peers, subject: Subject, folder: Path, vaddrs: Sequence[int], limit: int) -> list[Answer]:
    """The answers of a peer; raises ValueError or subprocess.TimeoutExpired with the reason that there are none."""
    debug = subject.debug
    if name == p.LLVM and peers.llvm:
        command = [peers.llvm, f"--obj={debug}", "--output-style=JSON", "--inlines", "--no-demangle"]
        found = list(of_llvm(ask(command, vaddrs, limit)))
    elif name == p.GNU and peers.gnu:
        found = list(of_addr2line(ask([peers.gnu, "-a", "-i", "-f", "-e", debug], vaddrs, limit)))
    elif name == p.ELFUTILS and peers.elfutils:
        found = list(of_addr2line(ask([peers.elfutils, "-a", "-i", "-f", "-e", debug], vaddrs, limit)))
    elif program := {p.GIMLI: peers.gimli, p.NEWEST_GIMLI: peers.newest_gimli}.get(name):
        found = list(of_addr2line(ask([program, debug], vaddrs, limit)))
    elif name == p.SYMBOLIC and peers.symbolic:
        symcache = p.symcache(subject, folder)
        script = [peers.symbolic, p.HERE / "with_symbolic.py"]
        ask([*script, "convert", debug, symcache], [], limit)
        found = list(of_symbolic(ask([*script, "answers", symcache, str(subject.base)], vaddrs, limit)))
    else:
        raise ValueError("not there")
    if len(found) != len(vaddrs):
        raise ValueError(f"{len(found)} answers for {len(vaddrs)} addresses")
    return found


@cache
def readable(function: str) -> str:
    """A function's qualified name without parameters, template arguments, clone suffix and version."""
    base = split_suffix(strip_version(function.encode()))[0]
    shown = demangle([base], "default")[0]
    return (drop_template_arguments(shown) if shown == base else shown).decode(errors="replace")


@cache
def plain(function: str) -> str:
    """The last component of that, which engines agree on when one of them knows no scopes."""
    return last_component(readable(function).encode()).decode(errors="replace")


def same_function(one: str, other: str) -> bool:
    """Whether two names are of one function; one may lack scopes."""
    a, b = readable(one), readable(other)
    return a == b or (plain(one) == plain(other) and (a.endswith("::" + b) or b.endswith("::" + a)))


@cache
def parts(path: str) -> tuple[str, ...]:
    """The components of a path, `.` and `..` resolved."""
    result: list[str] = []
    for part in path.split("/"):
        if part == ".." and result and result[-1] != "..":
            result.pop()
        elif part not in ("", "."):
            result.append(part)
    return tuple(result)


def base(path: str) -> str:
    """The name of a file."""
    return parts(path)[-1] if parts(path) else ""


def same_file(one: str, other: str) -> bool:
    """Whether one path ends with the other."""
    a, b = parts(one), parts(other)
    shared = min(len(a), len(b))
    return bool(shared) == bool(a or b) and a[len(a) - shared :] == b[len(b) - shared :]
