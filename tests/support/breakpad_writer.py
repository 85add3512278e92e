"""Writes Breakpad symbol files from what a symbol table answers."""

import itertools
from pathlib import Path
from typing import NamedTuple

from symbolize.elf import ElfImage
from symbolize.symbol_files.breakpad import debug_id
from symbolize.symbols import build_table
from symbolize.symbols.table import SymbolTable
from tests.support.lookup import Frame, frames_of


class Call(NamedTuple):
    """An inlined call as a node of a function: name, and file and line of the call."""

    name: str
    file: str
    line: int


def symbols_of(path: Path) -> bytes:
    """The symbol file of a program, written from its DWARF."""
    with ElfImage.open(path) as image:
        base = min(segment.vaddr for segment in image.segments)
        (code,) = [segment for segment in image.segments if segment.executable]
        table = build_table([image])
        return symbol_file(table, code.vaddr, code.vaddr + code.file_size, base, image.build_id or "", path.name)


def symbol_file(table: SymbolTable, begin: int, end: int, base: int, build_id: str, name: str) -> bytes:
    """The symbol file of a module for the vaddrs `[begin, end)`; addresses in it count from `base`."""
    files: dict[str, int] = {}
    origins: dict[str, int] = {}
    records: list[str] = []
    frames = frames_of(table, range(begin, end))
    at = begin
    while at < end:
        stop = at + 1
        while stop < end and root_of(frames[stop - begin]) == root_of(frames[at - begin]):
            stop += 1
        if frames[at - begin]:
            here = frames[at - begin : stop - begin]
            records.append(f"FUNC {at - base:x} {stop - at:x} 0 {here[0][-1].name}")
            records += inline_records(here, at - base, files, origins)
            records += line_records(here, at - base, files)
        at = stop
    head = [f"MODULE Linux x86_64 {debug_id(build_id)}0 {name}", f"INFO CODE_ID {build_id.upper()}"]
    head += [f"FILE {number} {path}" for path, number in files.items()]
    head += [f"INLINE_ORIGIN {number} {origin}" for origin, number in origins.items()]
    tail = ["STACK CFI INIT 1000 10 .cfa: $rsp 8 +"]
    return "\n".join([*head, *records, *tail, ""]).encode()


def root_of(frames: list[Frame]) -> str:
    """The outermost function of an address."""
    return frames[-1].name if frames else ""


def inline_records(
    frames: list[list[Frame]], address: int, files: dict[str, int], origins: dict[str, int]
) -> list[str]:
    """The inlined calls of one function, depth first, as INLINE records."""
    ranges: dict[tuple[Call, ...], list[list[int]]] = {}
    for offset, chain in enumerate(frames):
        outer = chain[::-1]
        path = tuple(Call(inner.name, o.file, o.line) for o, inner in itertools.pairwise(outer))
        for depth in range(1, len(path) + 1):
            pieces = ranges.setdefault(path[:depth], [])
            if pieces and pieces[-1][1] == offset:
                pieces[-1][1] = offset + 1
            else:
                pieces.append([offset, offset + 1])
    records = []
    for path, pieces in sorted(ranges.items(), key=lambda item: (item[1][0][0], len(item[0]))):
        call = path[-1]
        file = files.setdefault(call.file, len(files))
        origin = origins.setdefault(call.name, len(origins))
        places = " ".join(f"{address + low:x} {high - low:x}" for low, high in pieces)
        records.append(f"INLINE {len(path) - 1} {call.line} {file} {origin} {places}")
    return records


def line_records(frames: list[list[Frame]], address: int, files: dict[str, int]) -> list[str]:
    """The lines of one function, those of the innermost frames."""
    records = []
    at = 0
    while at < len(frames):
        first = frames[at][0]
        stop = at + 1
        while stop < len(frames) and (frames[stop][0].file, frames[stop][0].line) == (first.file, first.line):
            stop += 1
        if first.file:
            file = files.setdefault(first.file, len(files))
            records.append(f"{address + at:x} {stop - at:x} {first.line} {file}")
        at = stop
    return records
