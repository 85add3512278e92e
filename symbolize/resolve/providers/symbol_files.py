"""Breakpad symbol files and GSYM files, for binaries that are not there, or stripped."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symbolize.binaries import IdKind, SpecialFile, SpecialFiles, is_build_id, module_prefix, parse_build_id
from symbolize.core.arrays import TOP, UInt64
from symbolize.core.files import file_size
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage
from symbolize.resolve.addresses import MappedAddresses, map_addresses, page_ceil, page_floor
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.providers.symbol_lists import SymbolLists
from symbolize.resolve.resolution import Resolution
from symbolize.symbol_files import SymbolList, debug_id, read_breakpad, read_module
from symbolize.symbol_files.breakpad import HEAD, BreakpadModule
from symbolize.symbol_files.gsym import HEAD as GSYM_HEAD
from symbolize.symbol_files.gsym import UUID, DamagedFile, read_gsym, read_header
from symbolize.symbols import SymbolListBinary

MAX_ID = 1 << 8
"""Bytes of an id that are looked at; longer ones are none."""
MAX_BYTES = 4 << 30
"""Bytes of the largest symbol file that is read."""


class Known(NamedTuple):
    """A symbol file and what it is of."""

    file: SpecialFile
    module: BreakpadModule


class Found(NamedTuple):
    """A symbol file that was read: where, its list and the binary of it, and the vaddr from which addresses of the list
    count, None if that is not known; with `is_relative` those of the list begin with 0 there."""

    path: str
    listing: SymbolList
    binary: SymbolListBinary
    base: int | None
    is_relative: bool


class SymbolFiles:
    """The symbol files below the roots of `files`: GSYM files, known by their ids, and those of Breakpad, known by
    their first records."""

    def __init__(self, files: SpecialFiles, lists: SymbolLists) -> None:
        self._files = files
        self._lists = lists
        self._known: list[Known] | None = None
        self._gsym: dict[str, list[str]] | None = None

    def find(
        self, mapping: MappingRecord, name: str, others: Sequence[MappingRecord], images: Sequence[ElfImage]
    ) -> Resolution | None:
        """The symbol file for a mapping, by build id, or without one by the base name `name`; None if there is none.

        `images` are the files of the binary itself, if it is there, and `others` the other mappings of the profile.
        """
        build_id = mapping.build_id or next((image.build_id for image in images if image.build_id), None) or ""
        found = self._gsym_of(build_id) or self._breakpad_of(build_id, name)
        if found is None or isinstance(found, Resolution):
            return found
        how = f"build id {build_id}" if build_id else f"name {name}"
        verified = bool(mapping.build_id)
        tried = [(how, f"found {found.path}" + ("" if verified else ", unverified"))]

        def address_map(addresses: UInt64) -> MappedAddresses | None:
            if images:
                return mapped_by_image(addresses, mapping, images, verified=verified, is_relative=found.is_relative)
            if found.base is None:
                return None
            base = load_base(mapping, others, found.listing, 0 if found.is_relative else found.base)
            if base is None:
                return None
            limit = mapping.limit or TOP
            inside = (addresses >= np.uint64(mapping.start)) & (addresses < np.uint64(limit))
            origin = 0 if found.is_relative else found.base
            return addresses - np.uint64(base) + np.uint64(origin), inside & (addresses >= np.uint64(base))

        paths = [found.path, *(image.path for image in images)]
        verdict = Verdict.by_identity(mapping.is_proof)
        return Resolution(found.binary, address_map, bool(build_id), files=paths, verdict=verdict, tried=tried)

    def _breakpad_of(self, build_id: str, name: str) -> Found | Resolution | None:
        """The symbol file of Breakpad, or why none of them is used."""
        candidates = self._of(build_id, name)
        if not candidates:
            return None
        if len({known.module.debug_id for known in candidates}) > 1:
            paths = " and ".join(f"{known.file.path} ({known.module.debug_id})" for known in candidates[:3])
            return Resolution(reason=Reason.AMBIGUOUS, detail=paths)
        path = candidates[0].file.path
        read = self._lists.read(path, read_breakpad, MAX_BYTES)
        if read is None:
            return Resolution(reason=Reason.UNREADABLE, detail=path)
        return Found(path, *read, 0, True)

    def _gsym_of(self, build_id: str) -> Found | None:
        """The GSYM file of a build; one that is damaged is as good as none."""
        if self._gsym is None:
            self._gsym = {}
            for file in self._files.of_kind("gsym"):
                if found := self._uuid(file.path):
                    self._gsym.setdefault(found, []).append(file.path)
        for path in self._gsym.get(module_prefix(build_id) or build_id, ()) if build_id else ():
            read = self._lists.read(path, read_gsym, MAX_BYTES)
            if read is not None and len(read[0].start):
                return Found(path, *read, self._image_base(path, read[0]), False)
        return None

    def _uuid(self, path: str) -> str:
        """The id in a GSYM file, empty if there is none."""
        try:
            at, size = read_header(self._files.head(path, GSYM_HEAD), file_size(path)).parts[UUID]
        except DamagedFile as error:
            self._files.tell(f"{path}: {error}")
            return ""
        found = self._files.part(path, at, min(size, MAX_ID)).hex()
        return found if is_build_id(found) else ""

    def _image_base(self, path: str, listing: SymbolList) -> int | None:
        """The vaddr of the first segment, from which writers count; None if it cannot be that.

        Some count from the first function; the file's header is at the base, so that no function is.
        """
        base = read_header(self._files.head(path, GSYM_HEAD), file_size(path)).base
        return base if base == page_floor(base) and int(listing.start[0]) > base else None

    def _of(self, build_id: str, name: str) -> list[Known]:
        if self._known is None:
            self._known = []
            for file in self._files.of_kind("breakpad"):
                module = read_module(self._files.head(file.path, HEAD))
                if module is not None:
                    self._known.append(Known(file, module))
        if build_id:
            identity = parse_build_id(build_id)
            if identity is None or identity.kind in (IdKind.GO, IdKind.HASH):
                return []
            whole = identity.text.upper()
            if identity.kind is IdKind.FOREIGN:
                return [known for known in self._known if known.module.debug_id == whole]
            guid = debug_id(identity.prefix or identity.text)  # of ELF files the age says nothing
            return [
                known for known in self._known if known.module.debug_id[:32] == guid or known.module.debug_id == whole
            ]
        return [known for known in self._known if name and known.module.name == name]


def mapped_by_image(
    addresses: UInt64, mapping: MappingRecord, images: Sequence[ElfImage], *, verified: bool, is_relative: bool
) -> MappedAddresses | None:
    """Mapping through the segments of the binary; with `is_relative` addresses count from the page of the first one."""
    loaded = next((image.segments for image in images if image.has_file_offsets), None)
    image = images[0]
    limits = mapping.start, mapping.limit, mapping.file_offset
    found = map_addresses(addresses, *limits, loaded, image.segments, kind=image.kind, verified=verified)
    if found is None:
        return None
    base = page_floor(min((segment.vaddr for segment in loaded or image.segments), default=0)) if is_relative else 0
    return found[0] - np.uint64(base), found[1] & (found[0] >= np.uint64(base))


def load_base(mapping: MappingRecord, others: Sequence[MappingRecord], listing: SymbolList, origin: int) -> int | None:
    """The runtime address of what the symbol file has at `origin`, without the binary; None if it is not known.

    It is where the first segment was loaded: the start of the mapping of the file's beginning, if the profile has that.
    Otherwise only the code's own mapping is known. Where vaddrs run like file offsets (GNU ld), the base is
    its start less its file offset; where segments are moved apart by pages (lld), the page of the first function is
    the start of the mapping. Either counts only if all functions then lie within the mapping.
    """
    if mapping.file_offset == 0:
        return mapping.start
    covered = np.flatnonzero(listing.node >= 0)
    if not len(covered):
        return None
    low = int(listing.start[covered[0]]) - origin
    last = int(covered[-1])
    high = int(listing.start[last + 1]) - origin if last + 1 < len(listing.start) else low
    same = [
        other.start
        for other in others
        if (other.filename, other.build_id) == (mapping.filename, mapping.build_id)
        and other.file_offset == 0
        # In memory segments are as far apart as in the file, or farther; what is nearer, or behind all functions, is of
        # another process.
        and mapping.file_offset <= mapping.start - other.start < high
    ]
    if same:
        return max(same)
    length = page_ceil(mapping.limit - mapping.start)
    for distance in (mapping.file_offset, page_floor(low)):
        if distance <= low and high <= distance + length and distance <= mapping.start:
            return mapping.start - distance
    return None
