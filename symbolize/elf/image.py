"""An opened ELF file. pyelftools reads the headers; contents are views of the mapped file."""

import mmap
import os
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from symbolize.elf.compressed import inflate_section, inflate_zdebug
from symbolize.elf.notes import gnu_build_id
from symbolize.errors import InputError

SHF_ALLOC = 0x2
SHF_EXECINSTR = 0x4
SHF_COMPRESSED = 0x800
PF_X = 0x1
MAX_SECTIONS = 1 << 20
MAX_SEGMENTS = 1 << 16

Buffer = bytes | memoryview


class ElfError(InputError):
    """A file is no ELF file that can be read, or a part of it is corrupt."""


class Segment(NamedTuple):
    """A PT_LOAD program header. Bytes `[file_offset, file_offset + file_size)` are mapped at `vaddr`."""

    file_offset: int
    vaddr: int
    file_size: int
    memory_size: int
    alignment: int
    executable: bool


class Section(NamedTuple):
    """A section header with the section's name."""

    name: str
    type: str | int
    flags: int
    vaddr: int
    file_offset: int
    size: int
    link: int

    @property
    def is_code(self) -> bool:
        """Whether the section is loaded and executable."""
        return self.flags & (SHF_ALLOC | SHF_EXECINSTR) == SHF_ALLOC | SHF_EXECINSTR


@dataclass(eq=False)
class ElfImage:
    """An ELF file, mapped into memory; a context manager that unmaps it.

    `problems` lists, a sentence each, what is wrong with the parts that could not be read.
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
    _inflated: dict[str, bytes | None] = field(default_factory=dict, repr=False)
    _close: list[mmap.mmap] = field(default_factory=list, repr=False)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open the file at `path`. Raises ElfError if it is not an ELF file, OSError if it cannot be opened."""
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ElfError(str(path), "the file is empty")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        image = cls.parse(memoryview(mapped), str(path))
        image._close.append(mapped)
        return image

    @classmethod
    def parse(cls, data: memoryview, path: str) -> Self:
        """Read the headers of an ELF file in memory; `path` is only for messages."""
        from elftools.elf.elffile import ELFFile

        if bytes(data[:4]) != b"\x7fELF":
            raise ElfError(path, "not an ELF file")
        problems: list[str] = []
        try:
            stream: Any = _Stream(data)
            elf = ELFFile(stream)
            if elf.num_segments() > MAX_SEGMENTS or elf.num_sections() > MAX_SECTIONS:
                raise ElfError(path, "absurd number of segments or sections in the ELF header")
            header = elf.header
        except ElfError:
            raise
        except Exception as error:  # pyelftools meets corrupt bytes with exceptions of many kinds
            raise ElfError(path, f"unreadable ELF header ({error})") from error
        segments: list[Segment] = []
        build_id = None
        for number in range(elf.num_segments()):
            try:
                segment = elf.get_segment(number)
            except Exception as error:
                problems.append(f"unreadable program header {number} ({error})")
                continue
            if segment["p_type"] == "PT_LOAD":
                segments.append(
                    Segment(
                        segment["p_offset"],
                        segment["p_vaddr"],
                        segment["p_filesz"],
                        segment["p_memsz"],
                        segment["p_align"],
                        bool(segment["p_flags"] & PF_X),
                    )
                )
            elif segment["p_type"] == "PT_NOTE" and build_id is None:
                notes = data[segment["p_offset"] : segment["p_offset"] + segment["p_filesz"]]
                build_id = gnu_build_id(notes, not elf.little_endian)
        sections: list[Section] = []
        unreadable: list[int] = []
        for number in range(elf.num_sections()):
            try:
                section = elf.get_section(number)
                sections.append(
                    Section(
                        section.name,
                        section["sh_type"],
                        section["sh_flags"],
                        section["sh_addr"],
                        section["sh_offset"],
                        section["sh_size"],
                        section["sh_link"],
                    )
                )
            except Exception as error:
                if not unreadable:
                    problems.append(f"unreadable section header {number}, the file may be cut off ({error})")
                unreadable.append(number)
                sections.append(Section("", "SHT_NULL", 0, 0, 0, 0, 0))
        if len(unreadable) == len(sections):
            sections = []
        image = cls(
            path,
            data,
            elf.elfclass == 64,
            not elf.little_endian,
            str(header["e_machine"]),
            str(header["e_type"]),
            segments,
            sections,
            build_id,
            problems,
        )
        if build_id is None:
            for found in image.sections:
                if found.type == "SHT_NOTE" and (raw := image.raw(found)) is not None:
                    image.build_id = gnu_build_id(memoryview(raw), image.big_endian)
                    if image.build_id is not None:
                        break
        return image

    def close(self) -> None:
        """Unmap the file. Views of it that are still in use keep the memory alive."""
        self._inflated.clear()
        self.data.release()
        for mapped in self._close:
            try:
                mapped.close()
            except BufferError:
                pass
        self._close.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def note(self, problem: str) -> None:
        """Remember a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)

    def find(self, name: str) -> Section | None:
        """The first section called `name`."""
        return next((section for section in self.sections if section.name == name), None)

    def raw(self, section: Section) -> memoryview | None:
        """The bytes of a section as they are in the file; None if it has none there or is out of bounds."""
        if section.type == "SHT_NOBITS":
            return None
        if section.file_offset + section.size > len(self.data):
            self.note(f"section {section.name} reaches past the end of the file")
            return None
        return self.data[section.file_offset : section.file_offset + section.size]

    def contents(self, name: str) -> Buffer | None:
        """The bytes of the section `name`, decompressed (rules R97, R98); None if there is none or it is corrupt.

        For a name `.debug_x` a `.zdebug_x` is found as well. Each section is decompressed once.
        """
        if name in self._inflated:
            return self._inflated[name]
        section = self.find(name)
        legacy = section is None and name.startswith(".debug_")
        if legacy:
            section = self.find(".z" + name[1:])
        if section is None or (data := self.raw(section)) is None:
            return None
        if not legacy and not section.flags & SHF_COMPRESSED:
            return data
        try:
            inflated = inflate_zdebug(data) if legacy else inflate_section(data, self.is_64, self.big_endian)
        except ValueError as error:
            self.note(f"section {section.name}: {error}")
            inflated = None
        self._inflated[name] = inflated
        return inflated

    @cached_property
    def code_ranges(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Where code can be: begin and end vaddrs of executable sections, else of executable segments (rule R54).

        Sorted and disjoint. In a debug file the sections have no bytes, but addresses and sizes (rule R103).
        """
        wanted = SHF_ALLOC | SHF_EXECINSTR
        ranges = [(s.vaddr, s.vaddr + s.size) for s in self.sections if s.flags & wanted == wanted and s.size]
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


class _Stream:
    """A read-only file over a memoryview, as pyelftools wants it, without a copy of the contents."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        end = len(self._data) if size < 0 else self._position + size
        chunk = bytes(self._data[self._position : end])
        self._position += len(chunk)
        return chunk

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._position, len(self._data))[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position
