"""Kernel modules that are packed, or known only by release and name."""

import re
from collections.abc import Iterator

from symbolize.binaries import BinaryIndex, Found, SpecialFiles, decompress, same_build_id
from symbolize.elf import ElfError, ElfImage
from symbolize.match import place_module
from symbolize.reasons import Reason
from symbolize.special.kernel import Opener, release_in
from symbolize.special.source import Bool, Recorded, Source, UInt64
from symbolize.symbols import Binary

FILE = re.compile(r"(?:.*/)?([^/]+)\.ko(?:\.debug)?(?:\.(?:xz|gz|zst))?")
BRACKETED = re.compile(r"\[([\w-]+)\]")
NO_MODULES = {
    "heap",
    "stack",
    "vdso",
    "vdso32",
    "vdsox32",
    "vdso64",
    "vvar",
    "vsyscall",
    "vectors",
    "sigpage",
    "uprobes",
}

MAX_PACKED, MAX_UNPACKED = 256 << 20, 1 << 30
"""Bytes of the largest packed module that is read, and of what may come out of it."""


def module_name(filename: str) -> str:
    """The name of the kernel module that a recorded name stands for, empty if it is no such name."""
    match = FILE.fullmatch(filename) or BRACKETED.fullmatch(filename)
    return "" if match is None or match[1] in NO_MODULES else match[1].replace("-", "_")


class Modules:
    """Kernel modules below the roots of `index` that an ordinary lookup does not find."""

    def __init__(self, index: BinaryIndex, files: SpecialFiles, opener: Opener) -> None:
        self._index = index
        self._files = files
        self._open = opener
        self._unpacked: dict[str, Binary | None] = {}

    def find(self, mapping: Recorded, release: str) -> Source | None:
        """The file of a kernel module: a packed one with the build id of the mapping, or, where that has none, one in
        the folder of the release that the profile tells, unverified. None if there is none."""
        name = module_name(mapping.filename)
        if mapping.build_id:
            for path, _ in self._packed(name):
                binary = self._unpack(path)
                if binary is not None and same_build_id(binary.images[0].build_id or "", mapping.build_id):
                    return placed(binary, mapping, verified=True)
            return None
        release = release_in(mapping.filename) or release
        if not release:
            return None
        for file in {f"{name}.ko", f"{name.replace('_', '-')}.ko", f"{name}.ko.debug"}:
            for entry in self._index.with_name(file):
                if f"/{release}/" in entry.path:
                    binary, _ = self._open(Found([entry.path], entry.build_id or ""))
                    if binary is not None:
                        return placed(binary, mapping, verified=False)
        for path, relative in self._packed(name):
            if f"/{release}/" in "/" + relative and (binary := self._unpack(path)) is not None:
                return placed(binary, mapping, verified=False)
        return None

    @property
    def count(self) -> int:
        """How much is kept of what was read."""
        return len(self._unpacked)

    def close(self) -> None:
        """Close the files."""
        for binary in self._unpacked.values():
            if binary is not None:
                binary.close()
        self._unpacked.clear()

    def _packed(self, name: str) -> Iterator[tuple[str, str]]:
        """Paths of packed modules of that name, whole and below the root."""
        for file in self._files.of_kind("module"):
            if module_name(file.name) == name:
                yield file.path, file.relative

    def _unpack(self, path: str) -> Binary | None:
        if path not in self._unpacked:
            self._unpacked[path] = None
            data = self._files.read(path, MAX_PACKED)
            if data is not None:
                try:
                    image = ElfImage.parse(memoryview(decompress(data, MAX_UNPACKED)), path)
                    self._unpacked[path] = Binary([image])
                except ValueError as error:
                    self._files.tell(f"{path}: {error}")
                except ElfError as error:
                    self._files.tell(str(error))
        return self._unpacked[path]


def placed(binary: Binary, mapping: Recorded, *, verified: bool) -> Source:
    """A module as the source, placed as the kernel loads it (rule R96)."""
    image = binary.images[0]

    def place(addresses: UInt64) -> tuple[UInt64, Bool] | None:
        text = image.module_text
        return place_module(addresses, mapping.start, mapping.limit, mapping.file_offset, text)

    how = f"build id {mapping.build_id}" if verified else "release and name"
    tried = [(how, f"found {image.path}" + ("" if verified else ", unverified"))]
    return Source(binary, place, [image.path], verified, Reason.SYMBOLIZED, tried=tried)
