"""Inspection of ELF files."""

import os
from typing import Any

import numpy as np

from symbolize.binaries import BinaryIndex, Companions, is_build_id
from symbolize.core.ranges import clip_to, union
from symbolize.dwarf.reader import Units
from symbolize.dwarf.sections import Buffer
from symbolize.dwarf.sources import Sources
from symbolize.dwarf.units import scan_headers
from symbolize.elf import ElfImage, Section, read_symbols
from symbolize.elf.gotable import go_table
from symbolize.elf.headers import SHF_COMPRESSED
from symbolize.elf.minidebug import mini_image
from symbolize.elf.notes import go_build_id
from symbolize.elf.probe import GO_NOTE
from symbolize.elf.symbols import STT_FUNC, STT_GNU_IFUNC
from symbolize.inspection.advice import conclude
from symbolize.inspection.model import Debug, Elf, Go, Inspection, Other
from symbolize.inspection.related import (
    debug_links,
    find_splits,
    has_bytes,
    offers,
    own_entry,
    packages,
    supplementary_links,
)
from symbolize.symbol_files.gopclntab import RELEASES, read_header
from symbolize.symbols.split_dwarf_files import debug_sections, split_sections

CODE_UNITS = (1, 4)
PARTIAL_UNIT = 3
TYPE_UNITS = (2, 6)
COMPRESSIONS = {1: "zlib", 2: "zstd"}


def inspect_elf(image: ElfImage, size: int, index: BinaryIndex | None) -> Inspection:
    """What an ELF file of `size` bytes offers, and what of it is among the files of `index`."""
    result = Inspection(image.path, "ELF", size)
    build_id = image.build_id if image.build_id is not None and is_build_id(image.build_id) else ""
    elf = Elf(
        image.kind.removeprefix("ET_"),
        image.machine.removeprefix("EM_"),
        64 if image.is_64 else 32,
        "big-endian" if image.big_endian else "little-endian",
        build_id,
        where_code_is(image),
        image.segments,
    )
    result.elf = elf
    elf.functions = symbol_counts(image)
    elf.go = read_go(image)
    sources, elf.debug = read_debug(image, result.problems)
    entry = own_entry(index, image.path) if index is not None else None
    companions = Companions(index, [image.path]) if index is not None else None
    if index is not None and build_id:
        same = index.with_build_id(build_id)
        own = {os.path.realpath(image.path), entry.path if entry is not None else ""}
        elf.same_build = [Other(e.path, offers(e)) for e in same if not {e.path, os.path.realpath(e.path)} & own]
    elf.links = [*debug_links(image, index, entry), *supplementary_links(image, companions, elf)]
    if companions is not None:
        elf.packages = list(packages(companions, image, result.problems))
    if sources is not None and sources.has_skeletons:
        elf.splits = find_splits(sources, image, companions, result.problems)
    result.problems[:0] = image.problems
    result.conclusion = conclude(elf)
    return result


def where_code_is(image: ElfImage) -> str:
    """Whether the bytes of the code are "here", "elsewhere", as in a debug file (R103, code of debug files), or there
    is "none"."""
    return "here" if image.has_code else "elsewhere" if len(image.code_ranges[0]) else "none"


def symbol_counts(image: ElfImage) -> dict[str, int]:
    """The number of functions in each symbol table that there is."""
    counts = {}
    mini = mini_image(image)
    for name, holder, table in (
        (".symtab", image, ".symtab"),
        (".dynsym", image, ".dynsym"),
        (".gnu_debugdata", mini, ".symtab"),
    ):
        symbols = read_symbols(holder, table) if holder is not None else None
        if symbols is not None:
            counts[name] = int(np.isin(symbols.type, (STT_FUNC, STT_GNU_IFUNC)).sum())
    return counts


def read_go(image: ElfImage) -> Go | None:
    """The line table of Go, None if there is none that can be read."""
    found = go_table(image)
    if found is None:
        return None
    try:
        header = read_header(found.data, image.big_endian)
    except ValueError as error:
        image.note(f"the line table of Go cannot be read: {error}")
        return None
    notes = image.contents(GO_NOTE.decode()) or b""
    build_id = go_build_id(memoryview(notes), image.big_endian)
    return Go(RELEASES[header.layout], header.functions, build_id)


def read_debug(image: ElfImage, problems: list[str]) -> tuple[Sources | None, Debug | None]:
    """The units of a file, and what their headers and roots contain; None without any."""
    name = next((n for n in (".debug_info", ".debug_info.dwo") if has_bytes(image.find_debug(n))), "")
    if not name:
        return None, None
    is_split = name.endswith(".dwo")
    sections = split_sections(image, b"".join) if is_split else debug_sections(image)
    sources = None if is_split else Sources(sections, None, problems)
    # The roots of the units in a package could only be read with its index; their headers are enough.
    units = sources.main.reader.units if sources is not None else read_headers(sections.info, image.big_endian)
    good = np.asarray(units.bad) == 0
    kind, version = np.asarray(units.kind)[good], np.asarray(units.version)[good]
    types = sections.types if is_split else image.contents(".debug_types") or b""
    old = scan_headers(types, image.big_endian, True, Units(0), False)  # only DWARF 4 has that section
    numbers, counts = np.unique(version, return_counts=True)
    versions = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    if old:
        versions[4] = versions.get(4, 0) + old
    debug = [s for s in image.sections if s.name.startswith((".debug_", ".zdebug_")) and has_bytes(s)]
    return sources, Debug(
        name,
        versions,
        len(good) + old,
        int((kind == PARTIAL_UNIT).sum()),
        int(np.isin(kind, TYPE_UNITS).sum()) + old,
        int(sources.is_skeleton.sum()) if sources is not None else 0,
        int((~good).sum()),
        sorted({how for section in debug if (how := compression(image, section))}),
        sum(section.size for section in debug),
        len(sections.info),
        share_of_code(sources, image) if sources is not None else None,
    )


def share_of_code(sources: Sources, image: ElfImage) -> float | None:
    """The share of the code in the ranges of units; None if there is no code or units have no ranges."""
    units, (begin, end, unit) = sources.main.reader.units, sources.claims
    holds_code = np.isin(np.asarray(units.kind), CODE_UNITS) & (np.asarray(units.bad) == 0)
    holds_code[unit] = False
    first, last = image.code_ranges
    code = int((last - first).sum())
    if holds_code.any() or not code:
        return None
    _, begin, end = clip_to(begin, end, image.code_ranges)
    begin, end = union(begin, end)
    return float((end - begin).sum()) / code


def read_headers(info: Buffer, big_endian: bool) -> Any:
    """The units of a section, from their headers alone."""
    units = Units(scan_headers(info, big_endian, False, Units(0), False))
    scan_headers(info, big_endian, False, units, True)
    return units


def compression(image: ElfImage, section: Section) -> str:
    """How a section is compressed, empty if it is not."""
    if section.name.startswith(".zdebug_"):
        return "zlib (.zdebug)"
    if not section.flags & SHF_COMPRESSED or (data := image.raw(section)) is None:
        return ""
    kind = int.from_bytes(data[:4], "big" if image.big_endian else "little")
    return COMPRESSIONS.get(kind, f"unknown type {kind}")
