"""Libraries that are mapped out of an archive: members of an APK that are stored as they are."""

import re
from collections.abc import Sequence
from functools import partial

from symbolize.binaries import (
    BinaryIndex,
    BinaryMatch,
    Member,
    SpecialFile,
    SpecialFiles,
    find_recorded,
    inflate,
    read_member,
    read_members,
    same_build_id,
)
from symbolize.core.arrays import UInt64
from symbolize.core.errors import ChangedFile, InputError
from symbolize.core.files import os_error_text
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage, Segment
from symbolize.resolve.addresses import MappedAddresses, map_addresses, page_ceil, page_floor
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.opened import OpenBinaries, OpenFiles
from symbolize.resolve.resolution import Resolution
from symbolize.symbols import Binary, builds_of, misfit

NAME = re.compile(r"(?P<archive>.+\.(?:apk|zip|aab|jar))(?:!/?(?P<member>[^!]+))?", re.IGNORECASE)
LIBRARY = ".so"
MAX_INFLATED = 1 << 30
"""Bytes of the largest deflated member that is read."""
MAX_MATCHES = 8
"""Deflated members of one name that are looked into."""


def is_in_archive(filename: str) -> bool:
    """Whether a recorded name is that of an archive, or of a member of one."""
    return NAME.fullmatch(filename) is not None


class Members:
    """Libraries in the archives below the roots of `index`."""

    def __init__(self, index: BinaryIndex, files: SpecialFiles, opened: OpenBinaries) -> None:
        self._index = index
        self._files = files
        self._opened = opened
        self._lists: dict[str, list[Member]] = {}

    def find(self, mapping: MappingRecord) -> Resolution | None:
        """The library that a mapping of an archive holds; None if it is not known which.

        The archive, if it is below a root, tells by its list which member the mapping is of, and where that begins.
        Files of the index with the build id of the mapping, or of that member, come before; without any build id a
        file called like the member counts.
        """
        match = NAME.fullmatch(mapping.filename)
        assert match is not None
        held = self._member(match["archive"], match["member"] or "", mapping)
        image = self._image(*held) if held is not None else None
        build_id = mapping.build_id or (image.build_id or "" if image is not None else "")
        name = (held[1].name if held is not None else match["member"] or "").rpartition("/")[2]
        if image is not None and mapping.build_id and not same_build_id(image.build_id or "", mapping.build_id):
            image, held = None, None  # the archive of another version, which is no evidence for this one
        images, found = self._images_for(build_id, name, image)
        if not images:
            if found is None:
                return None
            return Resolution(reason=found.reason, detail=found.detail, tried=found.tried)
        builds = builds_of(images)
        for each in images:
            each.check()
        images = next((build for build in builds if image in build), builds[0])  # what is mapped before other builds
        key = tuple(images)  # and not their paths: a file that was replaced has the path of the one before
        (binary,) = self._opened.part(key, lambda: OpenFiles([Binary(images)], images=[*images])).binaries
        with_code = binary.loaded if binary.loaded.has_file_offsets else None
        verified = bool(mapping.build_id)
        begin = held[1].offset if held is not None else None

        def address_map(addresses: UInt64) -> MappedAddresses | None:
            loaded = with_code.segments if with_code is not None else None
            offset = offset_in_member(mapping, loaded or [], begin)
            if offset is None:
                return None
            first, limits = binary.images[0], (mapping.start, mapping.limit, offset)
            return map_addresses(addresses, *limits, loaded, first.segments, kind=first.kind, verified=verified)

        files = [each.path for each in binary.files]
        how = f"build id {build_id}" if build_id else f"name {name}"
        tried = [(how, "found " + ", ".join(files) + ("" if verified else ", unverified"))]
        problems = [misfit(images[0], build[0]) for build in builds if build[0] not in images]
        verdict = Verdict.by_identity(mapping.is_proof)
        return Resolution(binary, address_map, verified, files=files, verdict=verdict, tried=tried, problems=problems)

    def _images_for(
        self, build_id: str, name: str, image: ElfImage | None
    ) -> tuple[Sequence[ElfImage], BinaryMatch | None]:
        """The images of a library: of the index, deflated in archives, and `image`; if there are none, why."""
        found = None
        images: list[ElfImage] = []
        if build_id or name:
            found = find_recorded(self._index, build_id, name)
            if found.paths and (build_id or image is None):
                binary, _ = self._opened.one(found)
                images += binary.images if binary is not None else []
        if build_id and name and not any(each.has_dwarf for each in images):
            images += self._deflated(build_id, name)
        if image is not None:
            images.append(image)
        return images, found

    def _member(self, archive: str, name: str, mapping: MappingRecord) -> tuple[SpecialFile, Member] | None:
        """The stored member that a mapping is of: by its name if that is known, else by the file offset."""
        base = archive.rpartition("/")[2]
        files = [file for file in self._files.of_kind("archive") if file.name == base]
        exact = [file for file in files if file.relative == archive.lstrip("/")]
        found = []
        for file in exact or files:
            for member in self._members(file):
                end = member.offset + page_ceil(member.size)
                inside = member.offset <= mapping.file_offset < end
                is_it = member.name.endswith("/" + name) or member.name == name if name else inside
                if member.is_stored and is_it:
                    found.append((file, member))
        builds = {}
        for each in found:
            if (image := self._image(*each)) is not None:
                builds[image.build_id or image.path] = each
        if mapping.build_id:
            builds = {key: each for key, each in builds.items() if same_build_id(key, mapping.build_id)} or builds
        return next(iter(builds.values())) if len(builds) == 1 else None

    def _deflated(self, build_id: str, name: str) -> list[ElfImage]:
        """The library called `name` with this build id among deflated members, as archives of symbols have them."""
        stem = name.removesuffix(".dbg").removesuffix(".sym")
        looked = 0
        for file in self._files.of_kind("archive"):
            for member in self._members(file):
                if member.name.rpartition("/")[2] not in (stem, stem + ".dbg", stem + ".sym") or member.is_stored:
                    continue
                looked += 1
                image = self._image(file, member) if looked <= MAX_MATCHES else None
                if image is not None and same_build_id(image.build_id or "", build_id):
                    return [image]
        return []

    def _members(self, file: SpecialFile) -> list[Member]:
        if file.path not in self._lists:
            self._lists[file.path] = []
            try:
                self._lists[file.path] = read_members(file.path, (LIBRARY,))
            except ValueError as error:
                self._files.tell(f"{file.path}: {error}")
            except OSError as error:
                self._files.tell(f"{file.path}: {os_error_text(error)}")
        return self._lists[file.path]

    def _image(self, file: SpecialFile, member: Member) -> ElfImage | None:
        """A member, opened; None if it is no ELF file."""
        images = self._opened.part((file.path, member.offset), partial(self._open, file, member)).images
        return images[0] if images else None

    def _open(self, file: SpecialFile, member: Member) -> OpenFiles:
        name = f"{file.path}!/{member.name}"
        try:
            if member.is_stored:
                return OpenFiles(images=[ElfImage.open_part(file.path, member.offset, member.size, name)])
            data = inflate(read_member(file.path, member, MAX_INFLATED), member.size, MAX_INFLATED, name)
            return OpenFiles(images=[ElfImage.parse(memoryview(data), name)])
        except ChangedFile:
            raise
        except InputError as error:
            self._files.tell(str(error))
        except ValueError as error:
            self._files.tell(f"{name}: {error}")
        except OSError as error:
            self._files.tell(f"{file.path}: {os_error_text(error)}")
        return OpenFiles()


def offset_in_member(mapping: MappingRecord, segments: Sequence[Segment], begin: int | None) -> int | None:
    """The file offset of a mapping in the library that it is of; None if it is not known.

    Recorders give the offset in the archive, in which the library begins at `begin`, or that in the library: the one
    under which the mapping is in an executable segment. Where the archive is not at hand and the offset is in none,
    a mapping as long as exactly one executable segment, rounded to pages, is that segment.
    """
    length, code = mapping.limit - mapping.start, [s for s in segments if s.executable and s.file_size]
    pages = [(page_floor(s.file_offset), page_ceil(s.file_offset + s.file_size)) for s in code]
    offsets = [mapping.file_offset]
    if begin is not None and mapping.file_offset >= begin:
        offsets.insert(0, mapping.file_offset - begin)
    for offset in offsets:
        if any(low <= offset and offset + length <= high for low, high in pages):
            return offset
    if begin is None and code:
        fitting = [low for low, high in pages if high - low == length]
        return fitting[0] if len(fitting) == 1 else None
    return offsets[0]
