"""The files with the DWARF of a binary as sections: its own, split units, packages, a supplementary file."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from symbolize.core.errors import ChangedFile
from symbolize.core.files import os_error_text
from symbolize.core.parallel import together
from symbolize.dwarf.sections import (
    Buffer,
    DebugSections,
    Link,
    Package,
    PackageError,
    read_altlink,
    read_index,
    read_sup,
)
from symbolize.elf import ElfError, ElfImage
from symbolize.elf.relocate import section_reader

SECTIONS = ("info", "abbrev", "str", "line", "line_str", "ranges", "rnglists", "addr", "str_offsets")
SPLIT_SECTIONS = ("info", "types", "abbrev", "str", "str_offsets", "rnglists")


class Finder(Protocol):
    """Proposes paths of companions of a binary, the likeliest first; see `symbolize.binaries.Companions`."""

    def packages(self) -> Sequence[str]:
        """Packages of split units."""

    def split(self, name: str, comp_dir: str) -> Sequence[str]:
        """Files that may be a `.dwo` file."""

    def supplementary(self, name: str, identifier: str) -> Sequence[str]:
        """Files that may be the supplementary file with an id."""


def debug_sections(image: ElfImage, has_discriminators: bool = False) -> DebugSections:
    """The debug sections that lookups need, decompressed (R100, decompression on demand) and relocated (R93, relocated
    debug sections)."""
    read = section_reader(image)

    def contents(names: Sequence[str]) -> dict[str, bytes | memoryview]:
        return {name: read(f".debug_{name}") or b"" for name in names}

    # .debug_info is about as large as all others together.
    largest, others = together(lambda: contents(SECTIONS[:1]), lambda: contents(SECTIONS[1:]))
    return DebugSections(
        **largest,
        **others,
        big_endian=image.big_endian,
        is_split=False,
        holds_types=False,
        has_discriminators=has_discriminators,
    )


class CompanionFiles:
    """Opens the companions of a binary whose DWARF is in `image`; implements `symbolize.dwarf.sources.DwarfCompanions`.

    `problems` are sentences about files that cannot be read or do not belong to it; `opened` has size and time of
    modification of the others.
    """

    def __init__(self, image: ElfImage, finder: Finder | None) -> None:
        self.problems: list[str] = []
        self.opened: dict[str, tuple[int, int]] = {}
        self._image = image
        self._finder = finder
        self._splits: dict[str, DebugSections | None] = {}
        self._open: list[ElfImage] = []
        self._changed: ChangedFile | None = None

    def check(self) -> None:
        """Raise ChangedFile if one of the files changed since it was opened (R280, files that change)."""
        for image in self._open:
            image.check()
        if self._changed is not None:
            raise self._changed

    def packages(self) -> Iterator[Package]:
        """The packages of split units that can be read."""
        for path in self._finder.packages() if self._finder is not None else ():
            image = self._image_of(path)
            if image is None:
                continue
            self._open.append(image)
            index = [image.contents(f".debug_{kind}_index") or b"" for kind in ("cu", "tu")]
            try:
                units, types = (read_index(data, image.big_endian) for data in index)
            except PackageError as error:
                self._note(f"{path}: {error}")
                continue
            yield Package(path, split_sections(image, lambda parts: parts[0] if parts else b""), units, types)
            self._note_all(image)

    def split(self, name: bytes, comp_dir: bytes) -> Iterator[tuple[str, DebugSections]]:
        """Files that may be the `.dwo` file recorded as `name`: path and sections of each."""
        paths = self._finder.split(os.fsdecode(name), os.fsdecode(comp_dir)) if self._finder is not None else ()
        for path in paths:
            if path not in self._splits:
                self._splits[path] = self._read_split(path)
            sections = self._splits[path]
            if sections is not None:
                yield path, sections

    def supplementary(self) -> DebugSections | None:
        """The supplementary file that the binary names, if its id agrees (R91, supplementary files).

        Without it only names in it are missing: a symbol at the address names the function, or `??` does (R92, missing
        supplementary files).
        """
        link = self._link()
        if link is None:
            self._note("no supplementary file is named; names in it are missing")
            return None
        identifier, name = link.identifier.hex(), os.fsdecode(link.name)
        rejected = []
        for path in self._finder.supplementary(name, identifier) if self._finder is not None else ():
            image = self._image_of(path)
            if image is None:
                continue
            if identity(image, link) == link.identifier:
                self._open.append(image)
                sections = debug_sections(image)
                self._note_all(image)
                return sections
            rejected.append(f"{path} has another")
            self._close(image)
        kind = "checksum" if link.is_checksum else "build id"
        shown = link.name.decode(errors="backslashreplace")
        self._note(
            f"supplementary file {shown} with {kind} {identifier}: {'; '.join(rejected[:3]) or 'not found'}; "
            "names in it are missing"
        )
        return None

    def types(self) -> Buffer:
        """The binary's own .debug_types section."""
        return self._image.contents(".debug_types") or b""

    def close(self) -> None:
        """Close all files."""
        for image in self._open:
            image.close()
        self._open.clear()
        self._splits.clear()

    def _link(self) -> Link | None:
        link = read_altlink(self._image.contents(".gnu_debugaltlink") or b"")
        if link is None:
            sup = read_sup(self._image.contents(".debug_sup") or b"", self._image.big_endian)
            link = sup[1] if sup is not None and not sup[0] else None
        return link

    def _read_split(self, path: str) -> DebugSections | None:
        """The sections of a `.dwo` file. They are copied, so that thousands of files need not stay open."""
        image = self._image_of(path)
        if image is None:
            return None
        try:
            sections = split_sections(image, b"".join)
            self._note_all(image)
            return sections
        finally:
            self._close(image)

    def _close(self, image: ElfImage) -> None:
        """Close a file that is not needed any more, and remember whether it changed until then."""
        try:
            image.check()
        except ChangedFile as error:
            self._changed = error
        image.close()

    def _image_of(self, path: str) -> ElfImage | None:
        try:
            image = ElfImage.open(path)
        except ChangedFile as error:
            self._changed = error
            return None
        except ElfError as error:
            self._note(str(error))
            return None
        except OSError as error:
            self._note(f"{path}: {os_error_text(error)}")
            return None
        self.opened[path] = len(image.data), image.modified_ns
        if image.big_endian != self._image.big_endian:
            self._note(f"{path}: is of another byte order than the binary")
            self._close(image)
            return None
        return image

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def _note_all(self, image: ElfImage) -> None:
        for problem in image.problems:
            self._note(f"{image.path}: {problem}")


def split_sections(image: ElfImage, join: Callable[[Sequence[Buffer]], Buffer]) -> DebugSections:
    """The `.dwo` sections of a file; `join` makes one of those of one name, as type units have."""
    parts = {name: join(image.all_contents(f".debug_{name}.dwo")) for name in SPLIT_SECTIONS}
    big = image.big_endian
    return DebugSections(**parts, big_endian=big, is_split=True, holds_types=False, has_discriminators=False)


def identity(image: ElfImage, link: Link) -> bytes:
    """The build id or checksum of a supplementary file, empty if it has none."""
    if not link.is_checksum:
        return bytes.fromhex(image.build_id or "")
    sup = read_sup(image.contents(".debug_sup") or b"", image.big_endian)
    return sup[1].identifier if sup is not None and sup[0] else b""
