"""Breakpad symbol files, for binaries that are not there, or stripped."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symbolize.binaries import SpecialFile, SpecialFiles, is_build_id, module_prefix
from symbolize.core.arrays import TOP, UInt64
from symbolize.core.reasons import Reason
from symbolize.elf import ElfImage
from symbolize.resolve.addresses import MappedAddresses, map_addresses, page_ceil, page_floor
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.providers.symbol_lists import SymbolLists
from symbolize.resolve.resolution import Resolution
from symbolize.symbol_files import SymbolList, debug_id, read_breakpad, read_module
from symbolize.symbol_files.breakpad import HEAD, Module

MAX_BYTES = 4 << 30
"""Bytes of the largest symbol file that is read."""


class Known(NamedTuple):
    """A symbol file and what it is of."""

    file: SpecialFile
    module: Module


class SymbolFiles:
    """The Breakpad symbol files below the roots of `files`, known by their first records."""

    def __init__(self, files: SpecialFiles, lists: SymbolLists) -> None:
        self._files = files
        self._lists = lists
        self._known: list[Known] | None = None

    def find(
        self, mapping: MappingRecord, name: str, others: Sequence[MappingRecord], images: Sequence[ElfImage]
    ) -> Resolution | None:
        """The symbol file for a mapping, by build id, or without one by the base name `name`; None if there is none.

        `images` are the files of the binary itself, if it is there, and `others` the other mappings of the profile.
        """
        build_id = mapping.build_id or next((image.build_id for image in images if image.build_id), None) or ""
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
        listing, binary = read
        how = f"build id {build_id}" if build_id else f"name {name}"
        verified = bool(mapping.build_id)
        tried = [(how, f"found {path}" + ("" if verified else ", unverified"))]

        def address_map(addresses: UInt64) -> MappedAddresses | None:
            if images:
                return mapped_by_image(addresses, mapping, images, verified=verified)
            base = load_base(mapping, others, listing)
            if base is None:
                return None
            limit = mapping.limit or TOP
            inside = (addresses >= np.uint64(mapping.start)) & (addresses < np.uint64(limit))
            return addresses - np.uint64(base), inside & (addresses >= np.uint64(base))

        return Resolution(binary, address_map, [path, *(image.path for image in images)], verified, tried=tried)

    def _of(self, build_id: str, name: str) -> list[Known]:
        if self._known is None:
            self._known = []
            for file in self._files.of_kind("breakpad"):
                module = read_module(self._files.head(file.path, HEAD))
                if module is not None:
                    self._known.append(Known(file, module))
        if build_id:
            full = module_prefix(build_id) or build_id
            wanted = debug_id(full) if is_build_id(full) else ""
            return [known for known in self._known if wanted and known.module.debug_id[:32] == wanted]
        return [known for known in self._known if name and known.module.name == name]


def mapped_by_image(
    addresses: UInt64, mapping: MappingRecord, images: Sequence[ElfImage], *, verified: bool
) -> MappedAddresses | None:
    """Mapping through the segments of the binary: addresses of a symbol file count from the page of the first one."""
    loaded = next((image.segments for image in images if image.has_file_offsets), None)
    image = images[0]
    limits = mapping.start, mapping.limit, mapping.file_offset
    found = map_addresses(addresses, *limits, loaded, image.segments, kind=image.kind, verified=verified)
    if found is None:
        return None
    base = page_floor(min((segment.vaddr for segment in loaded or image.segments), default=0))
    return found[0] - np.uint64(base), found[1] & (found[0] >= np.uint64(base))


def load_base(mapping: MappingRecord, others: Sequence[MappingRecord], listing: SymbolList) -> int | None:
    """The runtime address from which addresses of a symbol file count, without the binary; None if it is not known.

    It is where the first segment was loaded: the start of the mapping of the file's beginning, if the profile has that.
    Otherwise only the code's own mapping is known. Where vaddrs run like file offsets (GNU ld), the base is
    its start less its file offset; where segments are moved apart by pages (lld), the page of the first function is
    the start of the mapping. Either counts only if all functions then lie within the mapping.
    """
    if mapping.file_offset == 0:
        return mapping.start
    same = [
        other.start
        for other in others
        if (other.filename, other.build_id) == (mapping.filename, mapping.build_id)
        and other.file_offset == 0
        and other.start < mapping.start
    ]
    if same:
        return max(same)
    covered = np.flatnonzero(listing.node >= 0)
    if not len(covered):
        return None
    low = int(listing.start[covered[0]])
    last = int(covered[-1])
    high = int(listing.start[last + 1]) if last + 1 < len(listing.start) else low
    length = page_ceil(mapping.limit - mapping.start)
    for distance in (mapping.file_offset, page_floor(low)):
        if distance <= low and high <= distance + length and distance <= mapping.start:
            return mapping.start - distance
    return None
