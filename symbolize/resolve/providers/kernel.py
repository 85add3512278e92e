"""The kernel, as profiles record it: vmlinux, `kallsyms`, `System.map`, and where it was moved to."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from symbolize.binaries import (
    Attempt,
    BinaryIndex,
    BinaryMatch,
    SpecialFile,
    SpecialFiles,
    find_binary,
    is_build_id,
    ranked,
    same_build_id,
)
from symbolize.core.arrays import TOP, UInt64, distinct
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage, inside_calls, read_symbols
from symbolize.resolve.addresses import MIN_CALL_SITES, MappedAddresses, Shift, in_code, kernel_shifts
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.opened import OpenBinaries
from symbolize.resolve.providers.symbol_lists import SymbolLists
from symbolize.resolve.resolution import AddressMap, Resolution, as_they_are, by_symbol_list
from symbolize.symbol_files import Kallsyms, read_kallsyms
from symbolize.symbol_files.kallsyms import Anchors
from symbolize.symbols import Binary, SymbolListBinary

NAME = re.compile(
    r"\[(?P<guest>guest\.)?kernel(?:\.kallsyms|\.vmlinux)?(?:\.\d+)?\](?P<anchor>[A-Za-z_]\w*)?"
    r"|(?:.*/)?vmlinux(?:-(?P<release>[^/]*?))?(?:\.debug)?|/proc/kcore"
)
"""What a kernel is called in profiles. The name of a symbol behind the brackets is what its mapping begins at."""

RELEASE = re.compile(r"(?:^|/)(?:lib/modules|usr/lib/modules|usr/lib/debug/lib/modules)/([^/]+)/")

ANCHORS = ("_stext", "_text")
MAX_BYTES = 64 << 20
"""Bytes of the largest kallsyms file that is read; real ones have about 10 MiB."""
MIN_SHARE = 0.5
"""Of the addresses in a kernel so many lie in functions, or it is another one. Code made at run time is elsewhere."""

MIN_NAMES, MIN_NAMED_SHARE, MAX_NAMES = 2, 0.75, 64
"""Functions that have to agree where names tell how far a kernel was moved, their share, and how many are looked at."""
STEPS = (1 << 21, 1 << 16)
"""A kernel is moved by a multiple of the first, some by one of the second."""


def is_kernel(filename: str) -> bool:
    """Whether a recorded name denotes the kernel itself, not one of its modules."""
    return NAME.fullmatch(filename) is not None


def release_in(filename: str) -> str:
    """The release of the kernel in a recorded path of a module or of vmlinux; empty if it has none."""
    if match := RELEASE.search(filename):
        return match[1]
    match = NAME.fullmatch(filename)
    return (match["release"] or "") if match else ""


class Kernels:
    """Kernels below the roots of `index`."""

    def __init__(self, index: BinaryIndex, files: SpecialFiles, opened: OpenBinaries, lists: SymbolLists) -> None:
        self._index = index
        self._files = files
        self._opened = opened
        self._symbols: dict[tuple[str, ...], KernelSymbols] = {}
        self._lists = lists

    def find(self, mapping: MappingRecord, release: str) -> Resolution:
        """What names the addresses of a mapping of the kernel: vmlinux, else a list of symbols, else why nothing.

        vmlinux by build id; without a build id by `release`, if it is known, or the only one there is. Lists as
        `list_files` chooses them.
        """
        match = NAME.fullmatch(mapping.filename)
        assert match is not None
        anchor, is_guest = match["anchor"] or "", match["guest"] is not None
        result = self._vmlinux(mapping, anchor, release or match["release"] or "", is_guest)
        if result.binary is None:
            other = self._symbols_only(mapping, anchor, release, is_guest)
            if other is not None and (other.binary is not None or result.reason == Reason.NOT_FOUND):
                return replace(other, tried=[*result.tried, *other.tried])
        return result

    def module(self, mapping: MappingRecord, release: str) -> Resolution | None:
        """The list of symbols that names addresses in the mapping of a kernel module; None if there is none."""
        anywhere = mapping._replace(start=0, file_offset=0)
        result = self._symbols_only(anywhere, "", release, is_guest=False)
        return result if result is not None and result.binary is not None else None

    @property
    def count(self) -> int:
        """How many kernels are kept of what was read."""
        return len(self._symbols)

    def close(self) -> None:
        """Release what was read."""
        self._symbols.clear()

    def _vmlinux(self, mapping: MappingRecord, anchor: str, release: str, is_guest: bool) -> Resolution:
        found = self._files_of(mapping.build_id, release, is_guest)
        result = Resolution(reason=found.reason, detail=found.detail, tried=found.tried)
        if not found.paths:
            return result
        binary, unreadable = self._opened.one(found)
        if binary is None:
            return result.refused(Reason.UNREADABLE, detail="; ".join(unreadable))
        key = *(image.path for image in binary.images), anchor
        if key not in self._symbols:
            self._symbols[key] = read_kernel_symbols(binary, anchor)
        named = shift_by_names(binary, self._symbols[key].begins, mapping.linked_names)
        shift = choose_shift(mapping, anchor, binary.images[0], self._symbols[key], named)
        if shift is None:
            detail = (
                f"{binary.images[0].path}: the addresses do not fall into its functions, whether the mapping begins "
                "at _stext, at _text, or the kernel was not moved"
            )
            return result.refused(Reason.MISFIT, detail=detail, problems=unreadable)
        files = [image.path for image in binary.files]
        return Resolution(
            binary,
            image_map(binary.loaded, shift._replace(distance=shift.distance + binary.shift & TOP)),
            files,
            verdict=Verdict.by_identity(found.verified or shift == named),
            tried=[*found.tried, (files[0], f"moved by {signed(shift.distance):#x}: {shift.evidence}")],
            problems=unreadable,
        )

    def _files_of(self, build_id: str, release: str, is_guest: bool) -> BinaryMatch:
        """The files of vmlinux, or why there are none."""
        if build_id:
            return find_binary(self._index, build_id, f"/boot/vmlinux-{release}" if release else "vmlinux")
        tried: list[Attempt] = []
        if release:
            names = [
                f"/boot/vmlinux-{release}",
                f"/usr/lib/debug/lib/modules/{release}/vmlinux",
                f"/lib/modules/{release}/build/vmlinux",
                f"/usr/lib/debug/boot/vmlinux-{release}.debug",
            ]
            for where, entries in [
                *((f"path {name[1:]}", self._index.at_path(name)) for name in names),
                (f"name vmlinux-{release}", self._index.with_name(f"vmlinux-{release}")),
                (f"name vmlinux-{release}.debug", self._index.with_name(f"vmlinux-{release}.debug")),
            ]:
                found = f"found {entries[0].path}, unverified" if entries else "nothing there"
                tried.append(Attempt(where, found))
                if entries:
                    return BinaryMatch([entries[0].path], entries[0].build_id or "", tried=tried)
            return BinaryMatch(reason=Reason.NOT_FOUND, tried=tried)
        kernels = [] if is_guest else self._files.of_kind("kernel")
        entries = [entry for file in kernels for entry in self._index.at_path(file.relative) if entry.root == file.root]
        builds = {entry.build_id or entry.path: entry for entry in entries}
        if len(builds) > 1:
            several = " and ".join(entry.described for entry in [*builds.values()][:3])
            tried = [Attempt("the only vmlinux", "several builds")]
            return BinaryMatch(reason=Reason.AMBIGUOUS, detail=several, tried=tried)
        if not builds:
            return BinaryMatch(reason=Reason.NOT_FOUND, tried=[Attempt("the only vmlinux", "nothing there")])
        (entry,) = builds.values()
        tried = [Attempt("the only vmlinux", f"found {entry.path}, unverified")]
        same = self._index.with_build_id(entry.build_id) if entry.build_id else []
        paths = [each.path for each in ranked(list(dict.fromkeys([entry, *same])))]
        return BinaryMatch(paths, entry.build_id or "", tried=tried)

    def _symbols_only(self, mapping: MappingRecord, anchor: str, release: str, is_guest: bool) -> Resolution | None:
        """A list of the kernel's symbols as the answer, None if there is none."""
        hidden: list[str] = []
        misfits: list[str] = []
        fitting: list[tuple[int, Anchors, Resolution]] = []
        for file in list_files(self._files, mapping.build_id, release, is_guest):
            path, read = file.path, self._lists.read(file.path, read_kallsyms, MAX_BYTES)
            if read is None:
                continue
            kallsyms, binary = read
            if kallsyms.restricted:
                hidden.append(path)
                continue
            shifts = kernel_shifts(anchor, mapping.start, mapping.file_offset, named(kallsyms.anchors))
            best = max(
                ((share(list_map(kallsyms, shift), mapping.addresses, binary), shift) for shift in shifts),
                key=lambda pair: pair[0],
            )
            if best[0] < MIN_SHARE:
                misfits.append(path)
                continue
            found, shift = by_symbol_list(binary, list_map(kallsyms, best[1])), best[1]
            if shift.distance:
                text = f"used, unverified, moved by {signed(shift.distance):#x}: {shift.evidence}"
                found = replace(found, tried=[(path, text)])
            # What was recorded in the same run fits as it is, and beats a list of another run and one of the build.
            rank = 2 if file.name.startswith("System.map") else int(shift.distance != 0)
            fitting.append((rank, kallsyms.anchors, found))
        tried = [*((path, "all addresses are 0") for path in hidden), *((path, "does not fit") for path in misfits)]
        if fitting:
            first = min(rank for rank, _, _ in fitting)
            kernels = {anchors: found for rank, anchors, found in reversed(fitting) if rank == first}
            if len(kernels) > 1:  # addresses fall into functions of any kernel
                paths = " and ".join([*dict.fromkeys(found.files[0] for found in kernels.values())][:3])
                return Resolution(reason=Reason.AMBIGUOUS, detail=f"lists of several kernels: {paths}", tried=tried)
            (found,) = kernels.values()
            return found
        if misfits:
            detail = f"{misfits[0]}: the addresses do not fall into its functions"
            return Resolution(reason=Reason.MISFIT, detail=detail, tried=tried)
        if hidden:
            return Resolution(reason=Reason.RESTRICTED, detail=f"{hidden[0]}: all addresses are 0", tried=tried)
        return None


def list_files(files: SpecialFiles, build_id: str, release: str, is_guest: bool) -> list[SpecialFile]:
    """The lists of a kernel's symbols, those of the run before those of the build.

    perf keeps `kallsyms` in a folder that is called after the build id; such a one counts for no other build id, and
    for a guest only what perf keeps as that of a guest. `System.map-REL` counts for no other release.
    """
    exact: list[SpecialFile] = []
    loose: list[SpecialFile] = []
    for file in files.of_kind("kallsyms"):
        folders = file.relative.split("/")[:-1]
        if any(folder.startswith("[guest.kernel.kallsyms") for folder in folders) != is_guest:
            continue
        ids = [folder for folder in folders[-1:] if is_build_id(folder)]
        ids += ["".join(folders[-2:])] if len(folders) > 1 and is_build_id("".join(folders[-2:])) else []
        if build_id and any(same_build_id(each, build_id) for each in ids):
            exact.append(file)
        elif not (ids and build_id):
            loose.append(file)
    maps = [] if is_guest else files.of_kind("system-map")
    known = [file for file in maps if release and file.name == f"System.map-{release}"]
    unknown = [file for file in maps if not release or file.name == "System.map"]
    return exact or [*loose, *(known or unknown)]


class KernelSymbols(NamedTuple):
    """Symbols of vmlinux: the vaddrs of its anchors by name, and begins and ends of its functions, ascending."""

    anchors: dict[str, int]
    begins: UInt64
    ends: UInt64


def read_kernel_symbols(binary: Binary, anchor: str) -> KernelSymbols:
    """The symbols of vmlinux by which it is located; `anchor` is one to look for besides ANCHORS."""
    known: dict[str, int] = {}
    begins, ends = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    for image in binary.images:
        if (table := read_symbols(image, ".symtab")) is not None:
            for name in (*ANCHORS, *([anchor] if anchor else [])):
                if name not in known and (vaddr := vaddr_of(table.strings, table.name, table.vaddr, name)) is not None:
                    known[name] = vaddr
            if not len(begins):
                order = np.argsort(table.vaddr, kind="stable")
                begins, sizes = table.vaddr[order], table.size[order]
                ends = np.maximum.accumulate(begins + np.minimum(sizes, ~begins))
    executable = [segment for segment in binary.images[0].segments if segment.executable]
    if not known and executable:
        known["_text"] = executable[0].vaddr  # the kernel's image begins there
    return KernelSymbols(known, begins, ends)


def shift_by_names(binary: Binary, begins: UInt64, names: Sequence[tuple[int, bytes]]) -> Shift | None:
    """Infer the KASLR shift from addresses whose symbol names are known; None if they are inconclusive.

    `begins` are the vaddrs of its functions, ascending. A kernel is moved by a multiple of 2 MiB, or else of 64 KiB.
    Three quarters of the functions that vmlinux has, and two at least, have to agree (R169, kernel shift by names).
    """
    wanted: dict[bytes, int] = {}
    for address, name in names:
        if len(wanted) < MAX_NAMES:
            wanted.setdefault(name, address)
    if not wanted:
        return None
    tables = [table for image in binary.images if (table := read_symbols(image, ".symtab")) is not None]
    known: list[tuple[int, int]] = []
    for name, address in wanted.items():
        found = (vaddr_of(table.strings, table.name, table.vaddr, name.decode(errors="replace")) for table in tables)
        vaddr = next((each for each in found if each is not None), None)
        if vaddr is not None:
            known.append((address, vaddr))
    if not known or not len(begins):
        return None
    addresses, vaddrs = (np.array(column, np.uint64) for column in zip(*known, strict=True))
    for step in STEPS:
        moved = (addresses - vaddrs) // np.uint64(step) * np.uint64(step)
        for distance in distinct(moved).tolist():
            place = np.searchsorted(begins, addresses - np.uint64(distance), side="right") - 1
            count = int(((place >= 0) & (begins[place] == vaddrs)).sum())
            if count >= max(MIN_NAMES, MIN_NAMED_SHARE * len(known)):
                return Shift(distance, f"{count} of {len(known)} functions are where the profile has them")
    return None


def choose_shift(
    mapping: MappingRecord, anchor: str, image: ElfImage, symbols: KernelSymbols, named: Shift | None = None
) -> Shift | None:
    """Where the kernel was moved to: the shift under which call sites lie in calls and addresses in functions.

    Where names tell the shift, it is `named`. Else a relocation symbol in the name of the mapping is tried first, then
    `_stext` and `_text`. None if under none of them half of the addresses lie in functions.
    """
    begins, ends = symbols.begins, symbols.ends

    def score(shift: Shift) -> tuple[float, float]:
        mapped = image_map(image, shift)(mapping.addresses)
        assert mapped is not None
        vaddrs, inside = mapped
        if len(begins):
            at = np.searchsorted(begins, vaddrs, side="right") - 1
            covered = inside & (at >= 0) & (vaddrs < ends[np.maximum(at, 0)])
        else:
            covered = inside
        sites = vaddrs[inside & mapping.is_call]
        calls = inside_calls(image, sites) if len(sites) >= MIN_CALL_SITES else None
        in_calls = float(calls.sum()) / max(int(mapping.is_call.sum()), 1) if calls is not None else 0.0
        # Anywhere else in the code a few of the sites happen to lie in a call.
        return in_calls if in_calls >= MIN_SHARE else 0.0, float(covered.mean()) if len(covered) else 0.0

    shifts = [named] if named else kernel_shifts(anchor, mapping.start, mapping.file_offset, symbols.anchors)
    scores = [score(shift) for shift in shifts]
    best = max(range(len(shifts)), key=lambda i: scores[i])  # the first of equals
    return shifts[best] if scores[best][1] >= MIN_SHARE else None


def vaddr_of(strings: bytes, names: np.ndarray, vaddrs: UInt64, name: str) -> int | None:
    """The vaddr of the symbol called `name`; the strings of a table may share their ends."""
    text = name.encode() + b"\0"
    places = []
    at = strings.find(text)
    while at >= 0:
        places.append(at)
        at = strings.find(text, at + 1)
    rows = np.flatnonzero(np.isin(names, np.array(places, np.int64)))
    return int(vaddrs[rows[0]]) if len(rows) else None


def image_map(image: ElfImage, shift: Shift) -> AddressMap:
    """The map for an image of the kernel that was moved: what is in its executable segments."""

    def address_map(addresses: UInt64) -> MappedAddresses:
        vaddrs = addresses - np.uint64(shift.distance)
        return vaddrs, in_code(vaddrs, image.segments)

    return address_map


def list_map(kallsyms: Kallsyms, shift: Shift) -> AddressMap:
    """The map for a list of symbols. Of a kernel that was moved only its own code is known: modules moved elsewhere."""
    if not shift.distance:
        return as_they_are
    begin, end = kallsyms.anchors.core

    def address_map(addresses: UInt64) -> MappedAddresses:
        vaddrs = addresses - np.uint64(shift.distance)
        return vaddrs, (vaddrs >= np.uint64(begin)) & (vaddrs < np.uint64(end))

    return address_map


def share(address_map: AddressMap, addresses: UInt64, binary: SymbolListBinary) -> float:
    """Of `addresses` the share that functions of a list cover."""
    mapped = address_map(addresses)
    if mapped is None or not len(addresses):
        return 0.0
    return float((mapped[1] & binary.covers(mapped[0])).mean())


def named(anchors: Anchors) -> dict[str, int]:
    """The anchors that are known."""
    return {name: value for name, value in (("_stext", anchors.stext), ("_text", anchors.text)) if value}


def signed(distance: int) -> int:
    """A distance modulo 2⁶⁴ as one that may be negative."""
    return distance - (1 << 64) if distance >> 63 else distance
