"""Kernel modules that are packed, or known only by release and name."""

import re
from collections.abc import Iterator
from functools import partial

from symbolize.binaries import BinaryIndex, BinaryMatch, SpecialFiles, decompress, same_build_id
from symbolize.core.arrays import UInt64
from symbolize.core.errors import InputError
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage
from symbolize.resolve.addresses import MappedAddresses, map_module_addresses
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.opened import OpenBinaries, OpenFiles
from symbolize.resolve.providers.kernel import release_in
from symbolize.resolve.resolution import Resolution
from symbolize.symbols import Binary

FILE = re.compile(r"(?:.*/)?([^/]+)\.ko(?:\.debug)?(?:\.(?:xz|gz|zst))?")
BRACKETED = re.compile(r"\[([\w-]+)\]")
NO_MODULES = frozenset(
    ["heap", "stack", "vdso", "vdso32", "vdsox32", "vdso64", "vvar", "vsyscall", "vectors", "sigpage", "uprobes"]
)

MAX_PACKED, MAX_UNPACKED = 256 << 20, 1 << 30
"""Bytes of the largest packed module that is read, and of what may come out of it."""


def module_name(filename: str) -> str:
    """The name of the kernel module that a recorded name denotes, empty if it is no such name."""
    match = FILE.fullmatch(filename) or BRACKETED.fullmatch(filename)
    return "" if match is None or match[1] in NO_MODULES else match[1].replace("-", "_")


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
        for file in {f"{name}.ko", f"{name.replace('_', '-')}.ko", f"{name}.ko.debug"}:
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
