"""An opened ELF file: its headers are read, contents are views of the mapped file.

Compressed sections are SHF_COMPRESSED (gABI) or the older .zdebug (R97, types of compression). The sections of
relocatable files, in which nothing has an address yet, get virtual bases (R94, sections of object files).
"""

import os
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

import numpy as np

from symbolize.core.arrays import UInt64
from symbolize.core.closing import Closeable
from symbolize.core.compression import ZLIB, ZSTD, CompressionError, inflate_exact
from symbolize.core.errors import InputError
from symbolize.core.mapped import MappedFile, let_go
from symbolize.core.records import record
from symbolize.elf.go_header import GO_SECTIONS, code_bounds
from symbolize.elf.headers import (
    ET_REL,
    KINDS,
    PF_X,
    PT_DYNAMIC,
    PT_GNU_EH_FRAME,
    PT_LOAD,
    PT_NOTE,
    SHF_ALLOC,
    SHF_COMPRESSED,
    SHF_EXECINSTR,
    SHT_NOBITS,
    SHT_NOTE,
    Headers,
    gnu_build_id,
    holds_code,
    machine_name,
)

ELFCOMPRESS = {1: ZLIB, 2: ZSTD}
CHDR_SIZE = {False: 12, True: 24}
ZDEBUG_MAGIC = b"ZLIB"
ZDEBUG_HEADER = 12
MAX_SIZE = 1 << 34


def inflate_section(data: memoryview, is_64: bool, big_endian: bool, limit: int = MAX_SIZE) -> bytes | memoryview:
    """The contents of an SHF_COMPRESSED section (R97, types of compression).

    The header has 12 or 24 bytes, by ELF class, in the byte order of the file; type 1 is zlib, 2 zstd.

    Raises CompressionError if it is corrupt or the contents are larger than `limit` bytes.
    """
    header_size = CHDR_SIZE[is_64]
    if len(data) < header_size:
        raise CompressionError("", "compression header is cut off")
    order: Any = "big" if big_endian else "little"
    kind = int.from_bytes(data[0:4], order)
    size = int.from_bytes(data[8:16] if is_64 else data[4:8], order)
    check_limit(size, len(data), limit)
    if kind not in ELFCOMPRESS:
        raise CompressionError("", f"unknown compression type {kind}")
    return inflate_exact(data[header_size:], ELFCOMPRESS[kind], size)


def inflate_zdebug(data: memoryview, limit: int = MAX_SIZE) -> bytes | memoryview:
    """The contents of a .zdebug section: `ZLIB`, a big-endian size, a zlib stream (R98, .zdebug sections)."""
    if bytes(data[: len(ZDEBUG_MAGIC)]) != ZDEBUG_MAGIC or len(data) < ZDEBUG_HEADER:
        raise CompressionError("", "no ZLIB header")
    size = int.from_bytes(data[len(ZDEBUG_MAGIC) : ZDEBUG_HEADER], "big")
    check_limit(size, len(data), limit)
    return inflate_exact(data[ZDEBUG_HEADER:], ZLIB, size)


def check_limit(size: int, compressed: int, limit: int) -> None:
    """Refuse a size that is out of all proportion to the file (R99, sizes of compressed sections)."""
    if size > min(limit, MAX_SIZE):
        problem = f"claims to expand from {compressed} to {size} bytes, out of all proportion to the file"
        raise CompressionError("", problem)


ALIGNMENT = 16
MAX_ALIGNMENT = 1 << 16
SHORT_ADDRESSES = frozenset({"EM_AVR", "EM_MSP430"})
"""Machines whose DWARF may have addresses of 16 bits."""


def lay_out(sections: Sequence["Section"], is_64: bool, machine: str) -> list["Section"]:
    """The sections with virtual bases as vaddrs: those that are loaded behind one another, all others at 0.

    A file and its debug file get the same bases. The lowest base exceeds every offset into a section, so that an
    unrelocated address is in none (R56, discarded code near zero), and no two sections touch. A section that does not
    fit into the address space is not loaded. For AVR and MSP430, whose DWARF may have addresses of 16 bits, the bases
    are below 64 KiB if they fit. All files of a module must have the same sections, since the bases depend on them
    (R94, sections of object files).
    """
    if machine in SHORT_ADDRESSES:
        result = placed(sections, 1 << 16, ALIGNMENT)
        if all(new.flags == old.flags for new, old in zip(result, sections, strict=True)):
            return result
    return placed(sections, 1 << (63 if is_64 else 31), MAX_ALIGNMENT)


def placed(sections: Sequence["Section"], limit: int, first_alignment: int) -> list["Section"]:
    """The sections with bases below `limit`, the lowest of which has the alignment `first_alignment`."""
    loaded = [section.size for section in sections if section.flags & SHF_ALLOC and section.size < limit // 2]
    base = aligned(max(loaded, default=0) + 1, first_alignment)
    result = []
    for section in sections:
        vaddr, flags = 0, section.flags
        if flags & SHF_ALLOC:
            vaddr = aligned(base, min(max(section.alignment, ALIGNMENT), MAX_ALIGNMENT))
            if vaddr + section.size < limit:
                base = vaddr + section.size + 1
            else:
                vaddr, flags = 0, flags & ~SHF_ALLOC
        result.append(section._replace(vaddr=vaddr, flags=flags))
    return result


def aligned(value: int, alignment: int) -> int:
    """`value` rounded up to a multiple."""
    return -(-value // alignment) * alignment


MAX_SECTIONS = 1 << 20
MAX_SEGMENTS = 1 << 16
MAX_NAME = 1 << 12
"""Longer names of sections are cut off; they could overlap and add up to any size."""
MAX_EXPANSION = 64
MORE_EXPANSION = 1 << 24
"""Bytes that the decompressed sections of a file may take, for each byte of the file and in addition."""

Buffer = bytes | memoryview


class ElfError(InputError):
    """A file is no ELF file that can be read, or a part of it is corrupt."""


PAGE: Final = 4096
"""Bytes that the system maps at once."""


class Segment(NamedTuple):
    """A PT_LOAD program header. Bytes `[file_offset, file_offset + file_size)` are mapped at `vaddr`."""

    file_offset: int
    vaddr: int
    file_size: int
    memory_size: int
    alignment: int
    executable: bool


def loaded_base(segments: Sequence[Segment]) -> int:
    """The vaddr that addresses counted from where a file was loaded count from: that of the page with the first loaded
    byte, where the system maps it, whatever alignment the segment asks for (R415, offsets of frames)."""
    return min((segment.vaddr for segment in segments), default=0) // PAGE * PAGE


class Section(NamedTuple):
    """A section header with the section's name. In a relocatable file `vaddr` is a virtual base (R94, sections of
    object files)."""

    name: str
    type: int
    flags: int
    vaddr: int
    file_offset: int
    size: int
    link: int
    info: int = 0
    alignment: int = 1

    @property
    def is_code(self) -> bool:
        """Whether the section is loaded and executable."""
        return self.flags & (SHF_ALLOC | SHF_EXECINSTR) == SHF_ALLOC | SHF_EXECINSTR

    @property
    def has_bytes(self) -> bool:
        """Whether the contents are in the file."""
        return self.type != SHT_NOBITS


@record
class ElfImage(Closeable):
    """An ELF file, mapped into memory; a context manager that unmaps it.

    `problems` are sentences about unreadable parts, `dynamic` is file offset and size of PT_DYNAMIC,
    `frame_header` the vaddr of PT_GNU_EH_FRAME, `modified_ns` the time of modification, `changed_ns` the time of the
    last change of any kind, which no program can set.
    """

    path: str
    data: memoryview
    is_64: bool
    big_endian: bool
    machine: str
    kind: str
    segments: list[Segment]
    sections: list[Section]
    build_id: str | None
    problems: list[str] = field(default_factory=list)
    dynamic: tuple[int, int] | None = None
    frame_header: int | None = None
    modified_ns: int = 0
    changed_ns: int = 0
    _inflated: dict[str, Buffer] = field(default_factory=dict, repr=False)
    _file: MappedFile | None = field(default=None, repr=False)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open the file at `path`. Raises ElfError if it is not an ELF file, OSError if it cannot be opened, and
        ChangedFile if it changes meanwhile."""
        file = MappedFile(path)
        if not file.status.st_size:
            raise ElfError(str(path), "the file is empty")
        image = cls._read(file, file.data, str(path))
        image.changed_ns = file.status.st_ctime_ns
        return image

    @classmethod
    def open_part(cls, path: str, offset: int, size: int, name: str) -> Self:
        """Open the ELF file that is stored in `size` bytes from `offset` of the file at `path`; `name` is for messages.

        Raises as `open` does.
        """
        file = MappedFile(path)
        if not 0 <= offset < offset + size <= file.status.st_size:
            raise ElfError(name, "reaches past the end of the file around it")
        return cls._read(file, file.data[offset : offset + size], name)

    @classmethod
    def _read(cls, file: MappedFile, data: memoryview, name: str) -> Self:
        """Read the headers of an ELF file in `data`, which is of `file`."""
        try:
            image = cls.parse(data, name)
        finally:
            file.check()  # zeros where the file was cut off are no fault of it
        image.modified_ns = file.status.st_mtime_ns
        image._file = file
        return image

    @classmethod
    def parse(cls, data: memoryview, path: str) -> Self:
        """Read the headers of an ELF file in memory; `path` is only for messages."""
        if bytes(data[:4]) != b"\x7fELF":
            raise ElfError(path, "not an ELF file")
        problems: list[str] = []
        try:
            headers = Headers(lambda offset, size: data[offset : offset + size])
        except ValueError as error:
            raise ElfError(path, f"unreadable ELF header ({error})") from error
        if headers.segment_count > MAX_SEGMENTS or headers.section_count > MAX_SECTIONS:
            raise ElfError(path, "absurd number of segments or sections in the ELF header")
        segments: list[Segment] = []
        build_id = dynamic = frame_header = None
        notes_left = 2 * len(data)  # many headers could name the same long notes
        rows = headers.segments("p_type", "p_flags", "p_offset", "p_vaddr", "p_filesz", "p_memsz", "p_align")
        if len(rows) < headers.segment_count:
            problems.append(f"unreadable program headers from number {len(rows)} on, the file may be cut off")
        for kind, flags, offset, vaddr, size, memory_size, alignment in rows:
            if kind == PT_LOAD:
                segments.append(Segment(offset, vaddr, size, memory_size, alignment, bool(flags & PF_X)))
            elif kind == PT_DYNAMIC:
                dynamic = offset, size
            elif kind == PT_GNU_EH_FRAME:
                frame_header = vaddr
            elif kind == PT_NOTE and build_id is None:
                notes = data[offset : offset + min(size, notes_left)]
                notes_left -= len(notes)
                build_id = gnu_build_id(notes, headers.big_endian)
        sections = read_sections(headers, data)
        if len(sections) < headers.section_count:
            problems.append("unreadable section headers, the file may be cut off")
        file_type = headers.file["e_type"]
        machine = machine_name(headers.file["e_machine"]) or str(headers.file["e_machine"])
        image = cls(
            path,
            data,
            headers.is_64,
            headers.big_endian,
            machine,
            KINDS.get(file_type, str(file_type)),
            segments,
            lay_out(sections, headers.is_64, machine) if file_type == ET_REL else sections,
            build_id,
            problems,
            dynamic,
            frame_header,
        )
        if sections and file_type != ET_REL and not any(section.is_code for section in sections):
            restore_code(image)
        if build_id is None:
            for found in image.sections:
                if found.type == SHT_NOTE and (raw := image.raw(found)) is not None:
                    image.build_id = gnu_build_id(memoryview(raw)[:notes_left], image.big_endian)
                    notes_left -= min(len(raw), notes_left)
                    if image.build_id is not None:
                        break
        return image

    def check(self) -> None:
        """Raise ChangedFile if the file changed since it was opened (R280, files that change)."""
        if self._file is not None:
            self._file.check()

    @property
    def has_changed(self) -> bool:
        """Whether the file changed since it was opened, and before it was closed."""
        return self._file is not None and bool(self._file.problem)

    def close(self) -> None:
        """Unmap the file. Views of it that are still in use keep the memory alive."""
        self._inflated.clear()
        self.data.release()
        if self._file is not None:
            self._file.close()

    def let_go(self) -> None:
        """Tell the system that nothing of the file is needed in memory for now."""
        for data in (self.data, *self._inflated.values()):
            let_go(data, 0, len(data))

    def forget(self) -> None:
        """Free the decompressed sections."""
        self._inflated.clear()

    def note(self, problem: str) -> None:
        """Remember a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)

    @property
    def is_relocatable(self) -> bool:
        """Whether nothing in the file has an address yet: an object file or a kernel module (ET_REL)."""
        return self.kind == "ET_REL"

    @cached_property
    def has_code(self) -> bool:
        """Whether the file holds the bytes of its code, which a debug file does not (R103, code of debug files)."""
        sections = (section.has_bytes for section in self.sections if section.is_code and section.size)
        return holds_code(sections, (segment.file_size for segment in self.segments if segment.executable))

    @cached_property
    def has_file_offsets(self) -> bool:
        """Whether segments with code have their file offsets; those of debug files that objcopy made have not.

        eu-strip keeps them (R103, code of debug files).
        """
        sizes = [(s.file_size, s.memory_size) for s in self.segments if s.executable and s.memory_size]
        return self.has_code or (len(sizes) > 0 and all(size == memory for size, memory in sizes))

    @cached_property
    def has_dwarf(self) -> bool:
        """Whether the file has debug information that can describe code."""
        return any(section.name in (".debug_info", ".zdebug_info") and section.has_bytes for section in self.sections)

    @property
    def loaded_sections(self) -> list[tuple[str, int, int]]:
        """Name, vaddr and size of the sections that are loaded."""
        return [(section.name, section.vaddr, section.size) for section in self.sections if section.flags & SHF_ALLOC]

    @property
    def module_text(self) -> Section | None:
        """The section `.text` of a kernel module, if it is the first one with code; the kernel loads it first."""
        if not self.is_relocatable or self.find(".gnu.linkonce.this_module") is None:
            return None
        first = next((section for section in self.sections if section.is_code and section.size), None)
        return first if first is not None and first.name == ".text" else None

    def find(self, name: str) -> Section | None:
        """The first section called `name`."""
        return next((section for section in self.sections if section.name == name), None)

    def find_debug(self, name: str) -> Section | None:
        """The first section called `name`, and for `.debug_x` else the first called `.zdebug_x`."""
        section = self.find(name)
        return self.find(".z" + name[1:]) if section is None and name.startswith(".debug_") else section

    def raw(self, section: Section) -> memoryview | None:
        """The bytes of a section as they are in the file; None if it has none there or is out of bounds."""
        if not section.has_bytes:
            return None
        if section.file_offset + section.size > len(self.data):
            self.note(f"section {section.name} reaches past the end of the file")
            return None
        return self.data[section.file_offset : section.file_offset + section.size]

    def contents(self, name: str) -> Buffer | None:
        """The bytes of the section `name` (or `.zdebug_x` for `.debug_x`), decompressed once (R97, types of
        compression).

        None if there is no such section or it is corrupt.
        """
        if name in self._inflated:
            return self._inflated[name]
        section = self.find_debug(name)
        if section is None:
            return None
        contents = self.section_contents(section)
        if contents is not None and self.is_compressed(section):
            self._inflated[name] = contents
        return contents

    def is_compressed(self, section: Section) -> bool:
        """Whether the bytes of a section are compressed (R97, types of compression)."""
        return section.name.startswith(".zdebug_") or bool(section.flags & SHF_COMPRESSED)

    def section_contents(self, section: Section) -> Buffer | None:
        """The bytes of a section, decompressed at each call (R97, types of compression); None if it is corrupt."""
        data = self.raw(section)
        if data is None or not self.is_compressed(section):
            return data
        try:
            return self._inflate(data, section.name.startswith(".zdebug_"), sum(map(len, self._inflated.values())))
        except CompressionError as error:
            self.note(f"section {section.name}: {error.problem}")
            return None
        finally:
            let_go(data, 0, len(data))

    def all_contents(self, name: str) -> list[Buffer]:
        """The bytes of every section called `name`, decompressed; relocatable files may have several."""
        result: list[Buffer] = []
        inflated = sum(map(len, self._inflated.values()))
        for section in self.sections:
            if section.name != name or (data := self.raw(section)) is None:
                continue
            if not section.flags & SHF_COMPRESSED:
                result.append(data)
                continue
            try:
                result.append(self._inflate(data, False, inflated))
                inflated += len(result[-1])
            except CompressionError as error:
                self.note(f"section {section.name}: {error.problem}")
        return result

    @property
    def max_inflated(self) -> int:
        """Bytes that all decompressed sections of the file may take together (R99, sizes of compressed sections)."""
        return MAX_EXPANSION * len(self.data) + MORE_EXPANSION

    def _inflate(self, data: memoryview, legacy: bool, others: int) -> Buffer:
        """Decompress a section beside `others`, bytes of other sections. Raises CompressionError."""
        limit = self.max_inflated - others
        return inflate_zdebug(data, limit) if legacy else inflate_section(data, self.is_64, self.big_endian, limit)

    @cached_property
    def code_ranges(self) -> tuple[UInt64, UInt64]:
        """Begin and end vaddrs of executable sections, else of executable segments, sorted and disjoint (R54, discarded
        code)."""
        ranges = [(s.vaddr, s.vaddr + s.size) for s in self.sections if s.is_code and s.size]
        if not self.sections:
            ranges = [(s.vaddr, s.vaddr + s.memory_size) for s in self.segments if s.executable and s.memory_size]
        begins: list[int] = []
        ends: list[int] = []
        for begin, end in sorted(ranges):
            if end > 1 << 64:
                continue
            if ends and begin <= ends[-1]:
                ends[-1] = max(ends[-1], end)
            else:
                begins.append(begin)
                ends.append(end)
        top = (1 << 64) - 1
        return np.array(begins, np.uint64), np.array([min(end, top) for end in ends], np.uint64)


def restore_code(image: ElfImage) -> None:
    """Add the code that the line table of Go describes to a file which has kept that and no section of code, as the
    debug files that profilers upload: a section without bytes, in an executable segment (R121, Go line table)."""
    table = next((section for section in image.sections if section.name in GO_SECTIONS), None)
    data = image.raw(table) if table is not None else None
    bounds = code_bounds(data, image.is_64, image.big_endian) if data is not None else None
    if bounds is None:
        return
    begin, end = bounds
    flags = SHF_ALLOC | SHF_EXECINSTR
    image.sections.append(Section("code of .gopclntab", SHT_NOBITS, flags, begin, 0, end - begin, 0))
    before = [segment for segment in image.segments if segment.executable and segment.vaddr <= begin]
    if before:
        cut = max(before, key=lambda segment: segment.vaddr)
        whole = cut._replace(memory_size=max(cut.memory_size, end - cut.vaddr))
        image.segments[image.segments.index(cut)] = whole
    elif image.kind == "ET_EXEC":  # elsewhere nothing tells what file offset begins where
        image.segments.append(Segment(0, begin, 0, end - begin, 1, True))


def read_sections(headers: Headers, data: memoryview) -> list[Section]:
    """The section headers with their names, fewer if they are cut off, none if their names are."""
    rows = headers.sections(
        *("sh_name", "sh_type", "sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link", "sh_info", "sh_addralign")
    )
    if headers.names_index >= len(rows):
        return []
    offset, size = rows[headers.names_index][4:6]
    names = bytes(data[offset : offset + size])
    if len(names) < size:
        return []
    result = []
    for start, *rest in rows:
        name = names[start : start + MAX_NAME].partition(b"\0")[0].decode("utf-8", "replace")
        result.append(Section(name, *rest))
    return result
