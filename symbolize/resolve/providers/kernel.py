"""The kernel, as profiles record it: vmlinux, `kallsyms`, `System.map`, and where KASLR moved it to; its modules that
are packed, or known only by release and name; and the vdso, the library that it maps into every process."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from symbolize.binaries import (
    Attempt,
    BinaryIndex,
    BinaryMatch,
    SpecialFile,
    SpecialFiles,
    decompress,
    find_binary,
    is_build_id,
    ranked,
    same_build_id,
)
from symbolize.binaries.this_machine import KALLSYMS, is_loaded, own_vdso, running_kernel_id
from symbolize.core.arrays import TOP, UInt64
from symbolize.core.errors import InputError
from symbolize.core.mapped_names import KERNEL_NAME, Mapped, mapped_by, release_in
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage
from symbolize.evidence.kernels import (
    AS_LINKED,
    MIN_SHARE,
    KernelFile,
    KernelSymbols,
    RecordedKernel,
    Shift,
    choose_shift,
    compare,
    read_kernel_symbols,
    shift_by_names,
    shifts,
)
from symbolize.resolve.addresses import MappedAddresses, in_code, map_module_addresses, to_vaddrs
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.opened import OpenBinaries, OpenFiles
from symbolize.resolve.providers.symbol_lists import SymbolLists
from symbolize.resolve.resolution import AddressMap, Resolution, as_they_are, by_symbol_list
from symbolize.symbol_files import Kallsyms, read_kallsyms
from symbolize.symbol_files.kallsyms import Anchors, looks_like_kallsyms
from symbolize.symbols import Binary, SymbolListBinary

MAX_BYTES = 64 << 20
"""Bytes of the largest kallsyms file that is read; real ones have about 10 MiB."""

HIDDEN = "all addresses are 0"
NOT_MOVED = "no kernel is moved as it would have to be"
MODULE_FILE = re.compile(r"(?:.*/)?([^/]+)\.ko(?:\.debug)?(?:\.(?:xz|gz|zst))?")
BRACKETED = re.compile(r"\[([\w-]+)\]")
NO_MODULES = frozenset(
    ["heap", "stack", "vdso", "vdso32", "vdsox32", "vdso64", "vvar", "vsyscall", "vectors", "sigpage", "uprobes"]
)

MAX_PACKED, MAX_UNPACKED = 256 << 20, 1 << 30
"""Bytes of the largest packed module that is read, and of what may come out of it."""
WIDE_VDSO = ("vdso64.so", "vdso.so", "vdso", "linux-vdso.so.1", "linux-vdso64.so.1")
NARROW_VDSO = ("vdso32.so", "vdsox32.so", "linux-gate.so.1", "linux-vdso32.so.1", "vdso.so", "vdso")
VDSO_SUFFIXES = ("", ".debug", ".dbg")
VDSO_FILES = tuple(dict.fromkeys(name + suffix for name in (*WIDE_VDSO, *NARROW_VDSO) for suffix in VDSO_SUFFIXES))
"""All names of the vdso's files."""


def is_kernel(filename: str) -> bool:
    """Whether a recorded name denotes the kernel itself, not one of its modules."""
    return KERNEL_NAME.fullmatch(filename) is not None


def is_guest_kernel(filename: str) -> bool:
    """Whether a recorded name denotes the kernel of a guest."""
    match = KERNEL_NAME.fullmatch(filename)
    return match is not None and match["guest"] is not None


class Kernels:
    """Kernels below the roots of `index`."""

    def __init__(self, index: BinaryIndex, files: SpecialFiles, opened: OpenBinaries, lists: SymbolLists) -> None:
        self._index = index
        self._files = files
        self._opened = opened
        self._symbols: dict[tuple[str, ...], KernelSymbols] = {}
        self._lists = lists

    def find(self, mapping: MappingRecord, machine: str, release: str) -> Resolution:
        """What names the addresses of a mapping of the kernel: vmlinux, else a list of symbols, else why nothing.

        vmlinux by build id; without a build id by `release`, if it is known, or the only one there is. Lists as
        `list_files` chooses them. What is known of the recorded `machine` and kernel may refute either.
        """
        match = KERNEL_NAME.fullmatch(mapping.filename)
        assert match is not None
        is_guest = match["guest"] is not None
        recorded = recorded_kernel(mapping, "" if is_guest else machine, "" if is_guest else release)
        result = self._vmlinux(mapping, recorded, is_guest)
        if result.binary is None:
            other = self._symbols_only(mapping, recorded, is_guest=is_guest)
            if other is not None and (other.binary is not None or result.reason == Reason.NOT_FOUND):
                return replace(other, tried=[*result.tried, *other.tried])
        return result

    def module(
        self, mapping: MappingRecord, kernel: MappingRecord | None, machine: str, release: str
    ) -> Resolution | None:
        """The list of symbols that names addresses in the mapping of a kernel module; None if there is none.

        `kernel` is the mapping of the kernel itself, if there is one: a list that does not fit that as it is, is not of
        the run. The list of the kernel that runs counts where the module is loaded at the recorded address.
        """
        if self._index.is_listed:
            return self._loaded(mapping)
        place = kernel or mapping._replace(start=0, file_offset=0)
        recorded = recorded_kernel(place._replace(addresses=mapping.addresses), machine, release)
        result = self._symbols_only(mapping, recorded, is_guest=False, is_module=True)
        return result if result is not None and result.binary is not None else None

    def _loaded(self, mapping: MappingRecord) -> Resolution | None:
        """The list of the kernel that runs, for a module that is loaded where it was recorded; None for any other."""
        name = module_name(mapping.filename)
        read = None
        if is_loaded(name, mapping.build_id, mapping.start):
            read = self._lists.read(KALLSYMS, read_list, MAX_BYTES)
        if read is None or read[0].restricted or name not in read[0].modules:
            return None
        verdict = Verdict.PROVED if mapping.is_proof else Verdict.SUPPORTED
        evidence = f"{name} is loaded with the recorded build id and at the recorded address"
        found = by_symbol_list(read[1], between(*read[0].modules[name]))
        return replace(found, verdict=verdict, evidence=evidence, is_by_id=True, tried=[(KALLSYMS, evidence)])

    @property
    def count(self) -> int:
        """How many kernels are kept of what was read."""
        return len(self._symbols)

    def close(self) -> None:
        """Release what was read."""
        self._symbols.clear()

    def _vmlinux(self, mapping: MappingRecord, recorded: RecordedKernel, is_guest: bool) -> Resolution:
        anchor = recorded.anchor
        found = self._files_of(mapping.build_id, recorded.release, is_guest)
        result = Resolution(reason=found.reason, detail=found.detail, tried=found.tried)
        if not found.paths:
            return result
        binary, unreadable = self._opened.one(found)
        if binary is None:
            return result.refused(Reason.UNREADABLE, detail="; ".join(unreadable))
        key = *(image.path for image in binary.images), anchor
        if key not in self._symbols:
            self._symbols[key] = read_kernel_symbols(binary, anchor)
        image = binary.images[0]
        file = KernelFile(image.machine, release_in(image.path), image.is_64, self._symbols[key].anchors)
        differs = "" if found.verified else compare(recorded, file).differs
        if differs:
            detail = f"{image.path} is of another kernel: {differs}"
            return result.refused(Reason.MISFIT, detail=detail, problems=unreadable)
        named = shift_by_names(binary, self._symbols[key].begins, mapping.linked_names)
        possible = [named] if named else shifts(recorded, self._symbols[key].anchors)
        places = ((each, in_image(image, each, mapping.addresses)) for each in possible)
        shift = choose_shift(image, self._symbols[key], mapping.is_call, places)
        if shift is None:
            detail = (
                f"{image.path}: the addresses do not fall into its functions, whether the mapping begins "
                "at _stext, at _text, or the kernel was not moved"
            )
            return result.refused(Reason.MISFIT, detail=detail, problems=unreadable)
        files = [image.path for image in binary.files]
        is_guess = self._index.is_listed and shift.evidence == AS_LINKED and shift != named
        return Resolution(
            binary,
            partial(in_image, binary.loaded, shift._replace(distance=shift.distance + binary.shift & TOP)),
            files=files,
            verdict=Verdict.by_identity((found.verified and not is_guess) or shift == named),
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
        kernels = [] if is_guest else self._files.of_kind("kernel")
        entries = [entry for file in kernels for entry in self._index.at_path(file.relative) if entry.root == file.root]
        entries = [entry for entry in entries if not release or release_in(entry.path) in ("", release)]
        builds = {entry.build_id or entry.path: entry for entry in entries}
        if len(builds) > 1:
            several = " and ".join(entry.described for entry in [*builds.values()][:3])
            tried.append(Attempt("the only vmlinux", "several builds"))
            return BinaryMatch(reason=Reason.AMBIGUOUS, detail=several, tried=tried)
        if not builds:
            return BinaryMatch(reason=Reason.NOT_FOUND, tried=[*tried, Attempt("the only vmlinux", "nothing there")])
        (entry,) = builds.values()
        tried.append(Attempt("the only vmlinux", f"found {entry.path}, unverified"))
        same = self._index.with_build_id(entry.build_id) if entry.build_id else []
        paths = [each.path for each in ranked(list(dict.fromkeys([entry, *same])))]
        return BinaryMatch(paths, entry.build_id or "", tried=tried)

    def _symbols_only(
        self, mapping: MappingRecord, recorded: RecordedKernel, *, is_guest: bool, is_module: bool = False
    ) -> Resolution | None:
        """A list of the kernel's symbols as the answer, None if there is none.

        Of several that nothing refutes those count that fit without having moved, if there are any: they are of the
        same run. They have to give the same names. Modules are elsewhere in each run.
        """
        hidden: list[str] = []
        tried: list[tuple[str, str]] = []
        fitting: list[tuple[bool, list[bytes], Resolution]] = []
        for file, is_proof in list_files(self._files, mapping.build_id, recorded.release, is_guest):
            read = self._lists.read(file.path, read_list, MAX_BYTES)
            if read is None:
                continue
            kallsyms, binary = read
            if kallsyms.restricted:
                hidden.append(file.path)
                continue
            symbols = named(kallsyms.anchors)
            release = "" if file.name.startswith("kallsyms") else file.name.removeprefix("System.map").removeprefix("-")
            compared = compare(recorded, KernelFile("", release or release_in(file.path), kallsyms.is_64, symbols))
            possible = [] if compared.differs else shifts(recorded, symbols)
            possible = [shift for shift in possible if not (is_module and shift.distance)]
            is_core = self._index.is_listed  # modules may have been loaded anew since
            scores = [share(list_map(kallsyms, shift, is_core), mapping.addresses, binary) for shift in possible]
            if not possible or max(scores) < MIN_SHARE:
                why = compared.differs and f"of another kernel: {compared.differs}"
                why = why or ("the addresses do not fall into its functions" if possible else NOT_MOVED)
                tried.append((file.path, why))
                continue
            shift = possible[scores.index(max(scores))]
            result = by_symbol_list(binary, list_map(kallsyms, shift, is_core))
            moved = f", moved by {signed(shift.distance):#x}: {shift.evidence}" if shift.distance else ""
            # The kernel is moved at each start: its own list says nothing of a profile that does not say where it was.
            is_proof = is_proof and (file.path != KALLSYMS or shift.evidence != AS_LINKED)
            verdict = Verdict.by_identity(is_proof)
            evidence = f"kept for build id {mapping.build_id}" if is_proof else compared.text
            result = replace(result, verdict=verdict, evidence=evidence, is_by_id=is_proof)
            result = replace(result, tried=[(file.path, f"used, {verdict.text}{moved}")])
            vaddrs, inside = list_map(kallsyms, shift, is_core)(mapping.addresses) or as_they_are(mapping.addresses)
            names = [name if here else b"" for name, here in zip(binary.names_at(vaddrs), inside.tolist(), strict=True)]
            fitting.append((shift.distance != 0, names, result))
        tried = [*((path, HIDDEN) for path in hidden), *tried]
        if fitting:
            least = min(is_moved for is_moved, _, _ in fitting)
            best = [(names, found) for is_moved, names, found in fitting if is_moved == least]
            if any(names != best[0][0] for names, _ in best):  # addresses fall into functions of any kernel
                paths = " and ".join([found.files[0] for _, found in best][:3])
                return Resolution(reason=Reason.AMBIGUOUS, detail=f"lists of several kernels: {paths}", tried=tried)
            found = best[0][1]
            return replace(found, tried=[*tried, *found.tried])
        if tried:
            path, why = tried[-1]
            reason = Reason.RESTRICTED if why == HIDDEN else Reason.MISFIT
            return Resolution(reason=reason, detail=f"{path}: {why}", tried=tried)
        return None


def list_files(files: SpecialFiles, build_id: str, release: str, is_guest: bool) -> list[tuple[SpecialFile, bool]]:
    """The lists of a kernel's symbols, those of the run before those of the build, and whether the place of each proves
    it.

    perf keeps `kallsyms` in a folder that is called after the build id, and the kernel its own list in /proc; such a
    one counts for no other build id, and
    for a guest only what perf keeps as that of a guest. Where `System.map-REL` of the release is there, `System.map`
    does not count.
    """
    exact: list[SpecialFile] = []
    loose: list[SpecialFile] = []
    for file in files.of_kind("kallsyms"):
        folders = file.relative.split("/")[:-1]
        if any(folder.startswith("[guest.kernel.kallsyms") for folder in folders) != is_guest:
            continue
        ids = [folder for folder in folders[-1:] if is_build_id(folder)]
        ids += filter(None, [running_kernel_id()] if file.path == KALLSYMS else [])
        ids += ["".join(folders[-2:])] if len(folders) > 1 and is_build_id("".join(folders[-2:])) else []
        if build_id and any(same_build_id(each, build_id) for each in ids):
            exact.append(file)
        elif not (ids and build_id):
            loose.append(file)
    maps = [] if is_guest else files.of_kind("system-map")
    if any(file.name == f"System.map-{release}" for file in maps):
        maps = [file for file in maps if file.name != "System.map"]
    chosen = exact or [*loose, *maps]
    return [(file, bool(exact)) for file in chosen]


def read_list(data: bytes) -> Kallsyms | None:
    """The contents of a list of symbols; None of a file that is only called like one."""
    return read_kallsyms(data) if looks_like_kallsyms(data) else None


def in_image(image: ElfImage, shift: Shift, addresses: UInt64) -> MappedAddresses:
    """Where addresses are in an image of the kernel that was moved: what is in its executable segments."""
    vaddrs = addresses - np.uint64(shift.distance)
    return vaddrs, in_code(vaddrs, image.segments)


def list_map(kallsyms: Kallsyms, shift: Shift, is_core: bool) -> AddressMap:
    """The map for a list of symbols. Of a kernel that was moved only its own code, `core`, is known, or if that alone
    `is_core`: modules moved elsewhere."""
    if not shift.distance and not is_core:
        return as_they_are
    return between(*kallsyms.anchors.core, shift.distance)


def between(begin: int, end: int, distance: int = 0) -> AddressMap:
    """The map for the part of a list from `begin` up to `end`, whose code was moved by `distance`."""

    def address_map(addresses: UInt64) -> MappedAddresses:
        vaddrs = addresses - np.uint64(distance)
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
    known = {"_stext": anchors.stext, "_text": anchors.text, "_etext": anchors.etext, "_edata": anchors.edata}
    return {name: value for name, value in known.items() if value}


def recorded_kernel(mapping: MappingRecord, machine: str, release: str) -> RecordedKernel:
    """What a recording says of the kernel of a mapping."""
    match = KERNEL_NAME.fullmatch(mapping.filename)
    anchor, own = (match["anchor"] or "", match["release"] or "") if match is not None else ("", "")
    highest = int(mapping.addresses.max()) if len(mapping.addresses) else 0
    bounds = mapping.start, mapping.limit, mapping.file_offset
    return RecordedKernel(machine, release or own, anchor, *bounds, highest)


def signed(distance: int) -> int:
    """A distance modulo 2⁶⁴ as one that may be negative."""
    return distance - (1 << 64) if distance >> 63 else distance


def module_name(filename: str) -> str:
    """The name of the kernel module that a recorded name denotes, empty if it is no such name."""
    match = MODULE_FILE.fullmatch(filename) or BRACKETED.fullmatch(filename)
    return "" if match is None or match[1] in NO_MODULES else match[1].replace("-", "_")


def module_files(name: str) -> tuple[str, ...]:
    """What the files of the kernel module of this name are called, unless they are packed."""
    return tuple(dict.fromkeys((f"{name}.ko", f"{name.replace('_', '-')}.ko", f"{name}.ko.debug")))


class KernelModules:
    """Kernel modules below the roots of `index` that an ordinary lookup does not find."""

    def __init__(self, index: BinaryIndex, files: SpecialFiles, opened: OpenBinaries) -> None:
        self._index = index
        self._files = files
        self._opened = opened

    def find(self, mapping: MappingRecord, release: str) -> Resolution | None:
        """The file of a kernel module: a packed one with the build id of the mapping, or, where that has none, one in
        the folder of the release of the profile, unverified. None if there is none."""
        name = module_name(mapping.filename)
        if mapping.build_id:
            for path, _ in self._packed(name):
                binary = self._unpacked(path)
                if binary is not None and same_build_id(binary.images[0].build_id or "", mapping.build_id):
                    return answer(binary, mapping, verified=True)
            return None
        release = release_in(mapping.filename) or release
        if not release:
            return None
        for file in module_files(name):
            for entry in self._index.with_name(file):
                if f"/{release}/" in entry.path:
                    binary, _ = self._opened.one(BinaryMatch([entry.path], entry.build_id or ""))
                    if binary is not None:
                        return answer(binary, mapping, verified=False)
        for path, relative in self._packed(name):
            if f"/{release}/" in "/" + relative and (binary := self._unpacked(path)) is not None:
                return answer(binary, mapping, verified=False)
        return None

    def _packed(self, name: str) -> Iterator[tuple[str, str]]:
        """Paths of packed modules of that name, whole and below the root."""
        for file in self._files.of_kind("module"):
            if module_name(file.name) == name:
                yield file.path, file.relative

    def _unpacked(self, path: str) -> Binary | None:
        return next(iter(self._opened.part(path, partial(self._unpack, path)).binaries), None)

    def _unpack(self, path: str) -> OpenFiles:
        data = self._files.read(path, MAX_PACKED)
        if data is not None:
            try:
                image = ElfImage.parse(memoryview(decompress(data, MAX_UNPACKED, path)), path)
                return OpenFiles([Binary([image])])
            except InputError as error:
                self._files.tell(str(error))
        return OpenFiles()


def answer(binary: Binary, mapping: MappingRecord, *, verified: bool) -> Resolution:
    """A module as the answer, its addresses mapped as the kernel loads it (R96, sections of kernel modules)."""
    image = binary.images[0]

    def address_map(addresses: UInt64) -> MappedAddresses | None:
        text = image.module_text
        bounds = mapping.start, mapping.limit, mapping.file_offset
        return map_module_addresses(addresses, *bounds, text, verified=verified)

    how = f"build id {mapping.build_id}" if verified else "release and name"
    tried = [(how, f"found {image.path}" + ("" if verified else ", unverified"))]
    verdict = Verdict.by_identity(verified and mapping.is_proof)
    return Resolution(binary, address_map, verified, files=[image.path], verdict=verdict, tried=tried)


def is_vdso(filename: str) -> bool:
    """Whether a recorded name denotes the vdso."""
    return mapped_by(filename) is Mapped.VDSO


def find_vdso(index: BinaryIndex, opened: OpenBinaries, mapping: MappingRecord) -> Resolution | None:
    """The file of the vdso, by build id, else by one of the names it has; None if there is none. On this machine that
    of this process, too."""
    if mapping.build_id:
        entries = index.with_build_id(mapping.build_id)
        if not entries:
            return resident_vdso(opened, mapping) if index.is_listed else None
        tried = Attempt(f"build id {mapping.build_id}", "found " + ", ".join(entry.path for entry in ranked(entries)))
    else:
        names = [
            name + suffix
            for name in (NARROW_VDSO if mapping.start < 1 << 32 else WIDE_VDSO)
            for suffix in VDSO_SUFFIXES
        ]
        entries = next((entries for name in names if (entries := index.with_name(name))), [])
        if not entries:
            return None
        if len({entry.build_id or entry.path for entry in entries}) > 1:
            paths = " and ".join(entry.described for entry in entries[:3])
            return Resolution(reason=Reason.AMBIGUOUS, detail=paths)
        tried = Attempt("the names of the vdso", f"found {entries[0].path}, unverified")
    build_id = mapping.build_id or entries[0].build_id or ""
    found = BinaryMatch([entry.path for entry in ranked(entries)], build_id, bool(mapping.build_id), tried=[tried])
    binary, unreadable = opened.one(found)
    if binary is None:
        return Resolution(reason=Reason.UNREADABLE, detail="; ".join(unreadable), tried=found.tried)
    return vdso_answer(binary, mapping, found, unreadable)


def resident_vdso(opened: OpenBinaries, mapping: MappingRecord) -> Resolution | None:
    """The vdso of this process, if it has the build id of a mapping."""

    def read() -> OpenFiles:
        with suppress(InputError):
            return OpenFiles([Binary([ElfImage.parse(memoryview(own_vdso()), mapping.filename)])])
        return OpenFiles()

    binary = next(iter(opened.part(own_vdso, read).binaries), None)
    if binary is None or not same_build_id(binary.images[0].build_id or "", mapping.build_id):
        return None
    tried = Attempt(f"build id {mapping.build_id}", "found in the memory of this process")
    return vdso_answer(binary, mapping, BinaryMatch(build_id=mapping.build_id, verified=True, tried=[tried]), [])


def vdso_answer(binary: Binary, mapping: MappingRecord, found: BinaryMatch, unreadable: list[str]) -> Resolution:
    """A vdso as the answer. The kernel maps the whole file, so that the mapping begins at its first byte whatever the
    recorded offset is."""
    segments = binary.loaded.segments

    def address_map(addresses: UInt64) -> MappedAddresses | None:
        limit = mapping.limit or TOP
        return to_vaddrs(addresses, mapping.start, limit, 0, segments, relocatable=True) if segments else None

    files = [image.path for image in binary.files]
    verdict = Verdict.by_identity(mapping.is_proof)
    return Resolution(
        binary, address_map, found.verified, files=files, verdict=verdict, tried=found.tried, problems=unreadable
    )
