"""Inspection of lists of functions, and of archives of libraries."""

from collections.abc import Callable, Iterator

import numpy as np

from symbolize.binaries import Member, inflate, read_member, read_members
from symbolize.core.arrays import TOP
from symbolize.core.errors import InputError
from symbolize.core.files import os_error_text
from symbolize.elf import ElfImage
from symbolize.inspection.advice import ALL
from symbolize.inspection.binary import symbol_counts
from symbolize.inspection.model import Inspection, Library, Listed
from symbolize.symbol_files import (
    CodeList,
    Kallsyms,
    SymbolList,
    process_of,
    read_breakpad,
    read_jitdump,
    read_kallsyms,
    read_module,
    read_perf_map,
)
from symbolize.symbol_files.gsym import UUID, DamagedFile, is_gsym, read_gsym, read_header
from symbolize.symbol_files.jitdump import is_jitdump
from symbolize.symbol_files.kallsyms import looks_like_kallsyms

MAX_BREAKPAD, MAX_DUMP, MAX_MAP, MAX_KERNEL = 4 << 30, 1 << 30, 128 << 20, 64 << 20
"""Bytes of the largest list of each kind that is read, as for profiles."""
MAX_MEMBERS = 256
"""Libraries of an archive that are inspected."""
MAX_MEMBER_BYTES = 1 << 30
"""Decompressed bytes of all libraries."""


Reader = Callable[[bytes], tuple[SymbolList | CodeList, dict[str, str]]]


def list_readers(name: str, head: bytes) -> Iterator[tuple[str, int, Reader]]:
    """The kind of list that a file of this name and beginning is: its title, limit of bytes, and reader."""
    is_map = name.startswith("perf-") and name.endswith(".map")
    lines = head.rpartition(b"\n")[0] or head
    if is_jitdump(head):
        process = str(process_of(head))
        yield "jitdump", MAX_DUMP, lambda data: (read_jitdump(data), {"process": process})
    elif is_gsym(head):
        yield "GSYM symbols", MAX_BREAKPAD, lambda data: (read_gsym(data), about_gsym(data))
    elif (module := read_module(head)) is not None:
        about = {"module": module.name, "debug id": module.debug_id, "build id": module.build_id}
        yield "Breakpad symbols", MAX_BREAKPAD, lambda data: (read_breakpad(data), about)
    elif looks_like_kallsyms(head) and not is_map:
        yield "kernel symbols", MAX_KERNEL, lambda data: read_kernel(read_kallsyms(data))
    elif is_map or (len(read_perf_map(lines).begin) and not read_perf_map(lines).listing.problems):
        yield "perf map", MAX_MAP, lambda data: (read_perf_map(data), {})


def about_gsym(data: bytes) -> dict[str, str]:
    """Facts about a GSYM file."""
    try:
        header = read_header(data, len(data))
    except DamagedFile:
        return {}
    at, size = header.parts[UUID]
    order = "big-endian" if header.big else ""
    return {"version": str(header.version), "byte order": order, "build id": data[at : at + size].hex()}


def read_kernel(symbols: Kallsyms) -> tuple[SymbolList, dict[str, str]]:
    """The functions of a list of kernel symbols, and facts about it."""
    begin, end = symbols.anchors.core
    about = {"kernel code": f"{begin:#x}-{end:#x}"} if end else {}
    if symbols.restricted:
        about["addresses"] = "hidden from the reader of the list, all are 0"
    return symbols.listing, about


def inspect_list(path: str, kind: str, size: int, contents: SymbolList | CodeList, about: dict[str, str]) -> Inspection:
    """What a list of functions offers."""
    symbols = contents.listing if isinstance(contents, CodeList) else contents
    covered = np.flatnonzero(symbols.node >= 0)
    begin = int(symbols.start[covered[0]]) if len(covered) else 0
    last = int(covered[-1]) + 1 if len(covered) else 0
    end = int(symbols.start[last]) if last < len(symbols.start) else begin and TOP
    if isinstance(contents, CodeList):
        begin, end = contents.bounds
    listed = Listed(
        int((symbols.node_parent < 0).sum()),
        begin,
        end,
        bool((symbols.row_line > 0).any()),
        bool((symbols.node_parent >= 0).any()),
        {key: value for key, value in about.items() if value},
    )
    if "addresses" in listed.about:
        conclusion = "symbolize gets nothing from it: copy /proc/kallsyms as root, with kernel.kptr_restrict below 2"
    elif not len(covered):
        conclusion = "symbolize gets nothing from it: it lists no functions"
    else:
        conclusion = f"symbolize gets {what(listed.has_lines, listed.has_inlined)} from it"
    return Inspection(path, kind, size, listed=listed, conclusion=conclusion, problems=symbols.problems)


def what(lines: bool, inlined: bool) -> str:
    """What a list offers."""
    if lines and inlined:
        return ALL
    return "functions and lines" if lines else "functions and inlined calls" if inlined else "functions, no lines"


def inspect_archive(path: str, size: int) -> Inspection:
    """What the libraries in an archive offer."""
    try:
        members = read_members(path, (".so",))
    except (ValueError, OSError) as error:
        raise InputError(path, os_error_text(error)) from error
    problems = []
    if len(members) > MAX_MEMBERS:
        problems.append(f"has {len(members)} libraries, of which {MAX_MEMBERS} are inspected")
    left = MAX_MEMBER_BYTES
    libraries = []
    for member in members[:MAX_MEMBERS]:
        left -= 0 if member.is_stored else member.size
        libraries.append(inspect_member(path, member, left >= 0))
    named = sum(1 for library in libraries if library.functions or library.has_dwarf)
    conclusion = f"symbolize gets names from {named} of {len(members)} libraries in it"
    return Inspection(path, "archive", size, libraries=libraries, conclusion=conclusion, problems=problems)


def inspect_member(path: str, member: Member, may_inflate: bool) -> Library:
    """What a library in an archive offers."""
    result = Library(member.name, member.size, member.is_stored)
    name = f"{path}!/{member.name}"
    try:
        if member.is_stored:
            image = ElfImage.open_part(path, member.offset, member.size, name)
        elif not may_inflate:
            return result._replace(problem="not inspected, the libraries are too large together")
        else:
            data = inflate(read_member(path, member, MAX_MEMBER_BYTES), member.size, MAX_MEMBER_BYTES, name)
            image = ElfImage.parse(memoryview(data), name)
    except InputError as error:
        return result._replace(problem=error.problem)
    except (ValueError, OSError) as error:
        return result._replace(problem=os_error_text(error))
    with image:
        result = result._replace(
            build_id=image.build_id or "",
            functions=max(symbol_counts(image).values(), default=0),
            has_dwarf=image.has_dwarf,
        )
        image.check()
        return result
