"""The kernel, as profiles record it: vmlinux, `kallsyms`, `System.map`, and where it was moved to."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from symbolize.arrays import distinct
from symbolize.binaries import (
    BinaryIndex,
    Found,
    SpecialFile,
    SpecialFiles,
    find_binary,
    is_build_id,
    ranked,
    same_build_id,
)
from symbolize.elf import ElfImage, inside_calls, read_symbols
from symbolize.listings import Kallsyms, read_kallsyms
from symbolize.listings.kallsyms import Anchors
from symbolize.match import Shift, kernel_shifts
from symbolize.reasons import Reason
from symbolize.special.source import Bool, Placing, Recorded, Source, UInt64, as_they_are, listed
from symbolize.symbols import Binary, ListedBinary

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
MIN_CALL_SITES = 8
"""Fewer call sites than this prove nothing."""

MIN_NAMES, MIN_NAMED_SHARE, MAX_NAMES = 2, 0.75, 64
"""Functions that have to agree where names tell how far a kernel was moved, their share, and how many are looked at."""
STEPS = (1 << 21, 1 << 16)
"""A kernel is moved by a multiple of the first, some by one of the second."""

Opener = Callable[[Found], tuple[Binary | None, list[str]]]


def is_kernel(filename: str) -> bool:
    """Whether a recorded name stands for the kernel itself, and not for one of its modules."""
    return NAME.fullmatch(filename) is not None


def release_in(filename: str) -> str:
    """The release of the kernel that a recorded path of a module or of vmlinux tells; empty if it does not."""
    if match := RELEASE.search(filename):
        return match[1]
    match = NAME.fullmatch(filename)
    return (match["release"] or "") if match else ""


class Kernels:
    """Kernels below the roots of `index`; `opener` opens the files of one."""

    def __init__(self, index: BinaryIndex, files: SpecialFiles, opener: Opener) -> None:
        self._index = index
        self._files = files
        self._open = opener
        self._symbols: dict[tuple[str, ...], KernelSymbols] = {}
        self._lists: dict[str, tuple[Kallsyms, ListedBinary] | None] = {}

    def find(self, mapping: Recorded, release: str) -> Source:
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
                other.tried = [*result.tried, *other.tried]
                return other
        return result

    def module(self, mapping: Recorded, release: str) -> Source | None:
        """The list of symbols that names addresses in the mapping of a kernel module; None if there is none."""
        anywhere = mapping._replace(start=0, file_offset=0)
        result = self._symbols_only(anywhere, "", release, is_guest=False)
        return result if result is not None and result.binary is not None else None

    @property
    def count(self) -> int:
        """How much is kept of what was read."""
        return len(self._lists) + len(self._symbols)

    def close(self) -> None:
        """Let go of what was read."""
        self._lists.clear()
        self._symbols.clear()

    def _vmlinux(self, mapping: Recorded, anchor: str, release: str, is_guest: bool) -> Source:
        result = Source(reason=Reason.NOT_FOUND)
        found = self._files_of(mapping.build_id, release, is_guest, result)
        if not found.paths:
            return result
        binary, unreadable = self._open(found)
        if binary is None:
            result.reason, result.detail = Reason.UNREADABLE, "; ".join(unreadable)
            return result
        result.problems = unreadable
        key = *(image.path for image in binary.images), anchor
        if key not in self._symbols:
            self._symbols[key] = read_kernel_symbols(binary, anchor)
        named = shift_by_names(binary, self._symbols[key].begins, mapping.names)
        shift = choose(mapping, anchor, binary.images[0], self._symbols[key], named)
        if shift is None:
            result.reason = Reason.MISFIT
            result.detail = (
                f"{binary.images[0].path}: the addresses do not fall into its functions, whether the mapping begins "
                "at _stext, at _text, or the kernel was not moved"
            )
            return result
        result.binary, result.reason = binary, Reason.SYMBOLIZED
        result.verified = found.verified or shift == named
        result.files = [image.path for image in binary.images]
        result.place = placed_in(binary.images[0], shift)
        result.tried.append((result.files[0], f"moved by {signed(shift.distance):#x}: {shift.evidence}"))
        return result

    def _files_of(self, build_id: str, release: str, is_guest: bool, result: Source) -> Found:
        """The files of vmlinux; where there are none, `result` says why."""
        if build_id:
            found = find_binary(self._index, build_id, f"/boot/vmlinux-{release}" if release else "vmlinux")
            result.tried, result.reason, result.detail = list(found.tried), found.reason, found.detail
            return found
        if release:
            names = [
                f"/boot/vmlinux-{release}",
                f"/usr/lib/debug/lib/modules/{release}/vmlinux",
                f"/lib/modules/{release}/build/vmlinux",
                f"/usr/lib/debug/boot/vmlinux-{release}.debug",
            ]
            for place, entries in [
                *((f"path {name[1:]}", self._index.at_path(name)) for name in names),
                (f"name vmlinux-{release}", self._index.with_name(f"vmlinux-{release}")),
                (f"name vmlinux-{release}.debug", self._index.with_name(f"vmlinux-{release}.debug")),
            ]:
                result.tried.append((place, f"found {entries[0].path}, unverified" if entries else "nothing there"))
                if entries:
                    return Found([entries[0].path], entries[0].build_id or "", tried=[])
            return Found()
        kernels = [] if is_guest else self._files.of_kind("kernel")
        entries = [entry for file in kernels for entry in self._index.at_path(file.relative) if entry.root == file.root]
        builds = {entry.build_id or entry.path: entry for entry in entries}
        if len(builds) > 1:
            result.reason = Reason.AMBIGUOUS
            result.detail = " and ".join(f"{e.path} ({e.build_id or 'no build id'})" for e in [*builds.values()][:3])
        if len(builds) != 1:
            result.tried.append(("the only vmlinux", "several builds" if builds else "nothing there"))
            return Found()
        (entry,) = builds.values()
        result.tried.append(("the only vmlinux", f"found {entry.path}, unverified"))
        same = self._index.with_build_id(entry.build_id) if entry.build_id else []
        return Found([each.path for each in ranked(list(dict.fromkeys([entry, *same])))], entry.build_id or "")

    def _symbols_only(self, mapping: Recorded, anchor: str, release: str, is_guest: bool) -> Source | None:
        """A list of the kernel's symbols as the source, None if there is none."""
        files = list_files(self._files, mapping.build_id, release, is_guest)
        restricted = Source(reason=Reason.RESTRICTED)
        usable: list[tuple[SpecialFile, Kallsyms, ListedBinary]] = []
        for file in files:
            read = self._listing(file)
            if read is None:
                continue
            kallsyms, binary = read
            if kallsyms.restricted:
                restricted.detail = restricted.detail or f"{file.path}: all addresses are 0"
                restricted.tried.append((file.path, "all addresses are 0"))
            else:
                usable.append((file, kallsyms, binary))
        refused = Source(reason=Reason.MISFIT, tried=restricted.tried)
        fitting: list[tuple[int, Anchors, Source]] = []
        for file, kallsyms, binary in usable:
            path = file.path
            known = named(kallsyms.anchors)
            shifts = kernel_shifts(anchor, mapping.start, mapping.file_offset, known)
            best = max(
                ((share(placed_list(binary, kallsyms, shift), mapping.addresses, binary), shift) for shift in shifts),
                key=lambda pair: pair[0],
            )
            if best[0] < MIN_SHARE:
                refused.detail = refused.detail or f"{path}: the addresses do not fall into its functions"
                refused.tried.append((path, "does not fit"))
                continue
            source = listed(binary, placed_list(binary, kallsyms, best[1]))
            if best[1].distance:
                text = f"used, unverified, moved by {signed(best[1].distance):#x}: {best[1].evidence}"
                source.tried = [(path, text)]
            # What was recorded in the same run fits as it is, and beats a list of another run and one of the build.
            rank = 2 if file.name.startswith("System.map") else int(best[1].distance != 0)
            fitting.append((rank, kallsyms.anchors, source))
        if fitting:
            first = min(rank for rank, _, _ in fitting)
            kernels = {anchors: source for rank, anchors, source in reversed(fitting) if rank == first}
            if len(kernels) > 1:  # addresses fall into functions of any kernel
                paths = " and ".join([*dict.fromkeys(source.files[0] for source in kernels.values())][:3])
                return Source(reason=Reason.AMBIGUOUS, detail=f"lists of several kernels: {paths}", tried=refused.tried)
            (source,) = kernels.values()
            return source
        if refused.detail:
            return refused
        return restricted if restricted.detail else None

    def _listing(self, file: SpecialFile) -> tuple[Kallsyms, ListedBinary] | None:
        if file.path not in self._lists:
            data = self._files.read(file.path, MAX_BYTES)
            self._lists[file.path] = None
            if data is not None:
                kallsyms = read_kallsyms(data)
                for problem in kallsyms.listing.problems:
                    self._files.tell(f"{file.path}: {problem}")
                self._lists[file.path] = kallsyms, ListedBinary(file.path, kallsyms.listing)
        return self._lists[file.path]


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
    """The symbols of vmlinux that tell where it lies; `anchor` is one to look for besides ANCHORS."""
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
    """How far the kernel lies from vmlinux by addresses that came with linked names; None if these do not tell.

    `begins` are the vaddrs of its functions, ascending. A kernel is moved by a multiple of 2 MiB, or else of 64 KiB.
    Three quarters of the functions that vmlinux has, and two at least, have to agree (rule R169).
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


def choose(
    mapping: Recorded, anchor: str, image: ElfImage, symbols: KernelSymbols, named: Shift | None = None
) -> Shift | None:
    """Where the kernel was moved to: the shift under which call sites lie in calls and addresses in functions.

    Where names tell the shift, it is `named`. Else a relocation symbol in the name of the mapping is tried first, then
    `_stext` and `_text`. None if under none of them half of the addresses lie in functions.
    """
    begins, ends = symbols.begins, symbols.ends

    def score(shift: Shift) -> tuple[float, float]:
        placed = placed_in(image, shift)(mapping.addresses)
        assert placed is not None
        vaddrs, inside = placed
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


def placed_in(image: ElfImage, shift: Shift) -> Placing:
    """Placing for an image of the kernel that was moved: what lies in its executable segments."""

    def place(addresses: UInt64) -> tuple[UInt64, Bool]:
        vaddrs = addresses - np.uint64(shift.distance)
        inside = np.zeros(len(addresses), np.bool_)
        for segment in image.segments:
            end = min(segment.vaddr + segment.memory_size, (1 << 64) - 1)
            inside |= segment.executable & (vaddrs >= np.uint64(segment.vaddr)) & (vaddrs < np.uint64(end))
        return vaddrs, inside

    return place


def placed_list(binary: ListedBinary, kallsyms: Kallsyms, shift: Shift) -> Placing:
    """Placing for a list of symbols. Of a kernel that was moved only its own code is known: modules moved elsewhere."""
    if not shift.distance:
        return as_they_are
    begin, end = kallsyms.anchors.core

    def place(addresses: UInt64) -> tuple[UInt64, Bool]:
        vaddrs = addresses - np.uint64(shift.distance)
        return vaddrs, (vaddrs >= np.uint64(begin)) & (vaddrs < np.uint64(end))

    return place


def share(place: Placing, addresses: UInt64, binary: ListedBinary) -> float:
    """Of `addresses` the share that functions of a list cover."""
    placed = place(addresses)
    if placed is None or not len(addresses):
        return 0.0
    return float((placed[1] & binary.covers(placed[0])).mean())


def named(anchors: Anchors) -> dict[str, int]:
    """The anchors that are known."""
    return {name: value for name, value in (("_stext", anchors.stext), ("_text", anchors.text)) if value}


def signed(distance: int) -> int:
    """A distance modulo 2⁶⁴ as one that may be negative."""
    return distance - (1 << 64) if distance >> 63 else distance
