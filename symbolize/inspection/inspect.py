"""The inspection of a file of any kind: of ELF files, lists of functions and archives here, of profiles and traces in
`profiles.py`; and a sentence on what symbolize gets from a binary, and how to get what is missing."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symbolize.binaries import (
    BinaryIndex,
    Companions,
    Member,
    SpecialFiles,
    decompress,
    inflate,
    is_build_id,
    read_member,
    read_members,
)
from symbolize.binaries.unpack import is_packed
from symbolize.core.arrays import TOP
from symbolize.core.errors import InputError
from symbolize.core.files import os_error_text
from symbolize.core.ranges import clip_to, union
from symbolize.dwarf.reader import Units
from symbolize.dwarf.sections import Buffer
from symbolize.dwarf.sources import DwarfSources
from symbolize.dwarf.units import scan_headers
from symbolize.elf import ElfImage, Section, read_symbols
from symbolize.elf.gotable import go_table
from symbolize.elf.headers import SHF_COMPRESSED, go_build_id
from symbolize.elf.probe import GO_NOTE
from symbolize.elf.symbols import STT_FUNC, STT_GNU_IFUNC, mini_image
from symbolize.inspection.model import Debug, Elf, Go, Inspection, Library, Listed, OtherContent
from symbolize.inspection.profiles import content_head, inspect_profile
from symbolize.inspection.related import (
    CODE_HERE,
    DEBUG_LINK,
    HAS_DWARF,
    debug_links,
    find_splits,
    has_bytes,
    offers,
    own_entry,
    packages,
    supplementary_links,
)
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
from symbolize.symbol_files.code_list import is_jitdump
from symbolize.symbol_files.gopclntab import RELEASES, read_header
from symbolize.symbol_files.gsym import UUID, DamagedFile, is_gsym, read_gsym
from symbolize.symbol_files.gsym import read_header as read_gsym_header
from symbolize.symbol_files.kallsyms import looks_like_kallsyms
from symbolize.symbols.split_dwarf_files import debug_sections, split_sections

CODE_UNITS = (1, 4)
PARTIAL_UNIT = 3
TYPE_UNITS = (2, 6)
COMPRESSIONS = {1: "zlib", 2: "zstd"}
MAX_BREAKPAD, MAX_DUMP, MAX_MAP, MAX_KERNEL = 4 << 30, 1 << 30, 128 << 20, 64 << 20
"""Bytes of the largest list of each kind that is read, as for profiles."""
MAX_MEMBERS = 256
"""Libraries of an archive that are inspected."""
MAX_MEMBER_BYTES = 1 << 30
"""Decompressed bytes of all libraries."""
HEAD = 4096
ELF_MAGIC = b"\x7fELF"
MAX_PACKED, MAX_UNPACKED = 256 << 20, 1 << 30
"""Bytes of the largest compressed file that is read, and of its content."""

Reader = Callable[[bytes], tuple[SymbolList | CodeList, dict[str, str]]]
MOST_DESCRIBED = 0.5
"""A smaller share of described code is reported. Parts of each program have no debug information."""
ALL_NAMES = "functions, lines and inlined calls"


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
        elf.same_build = [OtherContent(e.path, offers(e)) for e in same if not {e.path, os.path.realpath(e.path)} & own]
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


def read_debug(image: ElfImage, problems: list[str]) -> tuple[DwarfSources | None, Debug | None]:
    """The units of a file, and what their headers and roots contain; None without any."""
    name = next((n for n in (".debug_info", ".debug_info.dwo") if has_bytes(image.find_debug(n))), "")
    if not name:
        return None, None
    is_split = name.endswith(".dwo")
    sections = split_sections(image, b"".join) if is_split else debug_sections(image)
    sources = None if is_split else DwarfSources(sections, None, problems)
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


def share_of_code(sources: DwarfSources, image: ElfImage) -> float | None:
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
        header = read_gsym_header(data, len(data))
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
        return ALL_NAMES
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


def inspect(path: str, folders: Sequence[str] = (), cache_folder: str | None = None) -> Inspection:
    """What the file at `path` offers, with the other files of its build below `folders`, by default its own folder and
    the subfolders; or what is in a profile or trace. Raises InputError if it cannot be read or is of no known kind.
    `cache_folder` is for the index of `folders`."""
    if os.path.isdir(path):  # which perf recorded into
        return inspect_profile(path)
    files = SpecialFiles(BinaryIndex(()))
    head = files.head(path, HEAD)
    if files.problems:
        raise InputError(path, files.problems[0].removeprefix(f"{path}: "))
    if not head:
        raise InputError(path, "the file is empty")
    size = os.stat(path).st_size
    if head.startswith(ELF_MAGIC):
        try:
            image = ElfImage.open(path)
        except OSError as error:
            raise InputError(path, os_error_text(error)) from error
        with image:
            index = index_for(path, folders, cache_folder)
            try:
                result = inspect_elf(image, size, index)
            finally:
                index.close()
                image.check()
        if folders:
            result.problems += index.problems
        return result
    if is_packed(head):
        content = content_head(path)
        return inspect_profile(path) if content and not content.startswith(ELF_MAGIC) else inspect_packed(path, files)
    if head.startswith(b"PK"):
        return inspect_archive(path, size)
    for kind, limit, reader in list_readers(os.path.basename(path), head):
        data = files.read(path, limit)
        if data is None:
            raise InputError(path, files.problems[0].removeprefix(f"{path}: "))
        return inspect_list(path, kind, len(data), *reader(data))
    try:
        return inspect_profile(path)
    except InputError as error:
        problem = error.problem.replace("is not a profile:", "is no binary, list of symbols or profile:")
        raise InputError(path, problem, error.offset) from error


def index_for(path: str, folders: Sequence[str], cache_folder: str | None) -> BinaryIndex:
    """The index of the files that may belong to the one at `path`, which is among them."""
    if folders:
        return BinaryIndex([*folders, path], cache_folder)
    return BinaryIndex([os.path.dirname(path) or ".", path], depth=1)


def inspect_packed(path: str, files: SpecialFiles) -> Inspection:
    """Inspect a file that is compressed as a whole, as kernel modules and files of symbol stores are."""
    data = files.read(path, MAX_PACKED)
    if data is None:
        raise InputError(path, files.problems[0].removeprefix(f"{path}: "))
    unpacked = decompress(data, MAX_UNPACKED, path)
    if not unpacked.startswith(ELF_MAGIC):
        raise InputError(path, "is compressed and holds no ELF file")
    with ElfImage.parse(memoryview(unpacked), path) as image:
        result = inspect_elf(image, len(data), None)
    result.kind = "compressed ELF"
    return result


def conclude(elf: Elf) -> str:
    """One sentence: what symbolize gets from the file, with what was found for it, and how to get what is missing."""
    debug, splits = elf.debug, elf.splits
    if debug is not None and debug.section.endswith(".dwo"):
        return "holds split units: symbolize reads it beside the binary that names them, in the same folders"
    if elf.is_supplementary or (debug is not None and debug.units == debug.partial > 0):
        return "is a supplementary file: symbolize reads it beside the files that name it, in the same folders"
    if debug is not None and debug.units > debug.unreadable:
        text = f"symbolize gets {ALL_NAMES} from it"
        if debug.described is not None and debug.described < MOST_DESCRIBED:
            text += f", but only of {100 * debug.described:.0f} % of the code; other parts were built without -g"
        if splits is not None and splits.found < splits.needed:
            text = (
                f"symbolize gets functions and lines from it, but inlined calls only of those split units that are "
                f"there: {splits.needed - splits.found} of {splits.needed} are missing; add their .dwo files or the "
                ".dwp to the folders with binaries"
            )
        lost = [link for link in elf.links if link.section != DEBUG_LINK and not link.resolved]
        if lost:
            text += f"; names in the supplementary file {os.path.basename(lost[0].name)} are missing"
            text += f": {fetch('debuginfo', lost[0].identifier)}" if lost[0].section == ".gnu_debugaltlink" else ""
        if elf.code == "elsewhere" and not any(CODE_HERE in other.offers for other in elf.same_build):
            wanted = f": {fetch('executable', elf.build_id)}" if elf.build_id else ""
            text += f"; add the binary itself if addresses cannot be placed without it{wanted}"
        return text
    better = next((other.path for other in elf.same_build if HAS_DWARF in other.offers), "")
    if better:
        return f"symbolize gets {ALL_NAMES} from {better}, which has the same build id"
    linked = next((link.resolved for link in elf.links if HAS_DWARF in link.offers), "")
    if linked:
        return f"symbolize gets {ALL_NAMES} from {linked}, its debug file"
    if elf.go is not None:
        # The trees of inlined calls are beside the table.
        what = ALL_NAMES if elf.code == "here" else "functions and lines"
        return f"symbolize gets {what} from the line table of Go in it"
    return f"symbolize gets {poor(elf)}; {how_to_get(elf)}"


def poor(elf: Elf) -> str:
    """What there is without debug information."""
    others = {offer for each in elf.same_build for offer in each.offers}
    others |= {offer for link in elf.links for offer in link.offers}
    tables = {name for name, count in elf.functions.items() if count} | others
    if tables & {".symtab", ".gnu_debugdata"}:
        return "functions, but no lines and no inlined calls"
    return "exported functions only" if ".dynsym" in tables else "no names from it"


def how_to_get(elf: Elf) -> str:
    """How to get the debug information."""
    link = next((link for link in elf.links if link.section == DEBUG_LINK), None)
    named = f" {link.name}" if link is not None else ""
    if elf.build_id:
        return f"add its debug file{named}: {fetch('debuginfo', elf.build_id)}"
    return f"add its debug file{named} to the folders with binaries, or build it with -g"


def fetch(kind: str, build_id: str) -> str:
    """The command that fetches a file by its build id."""
    return f"debuginfod-find {kind} {build_id}"
