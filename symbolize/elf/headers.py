"""ELF header, program headers and section headers, as pyelftools reads them.

Only pyelftools' structures are used: its file object imports a whole DWARF reader, and gives up on all sections
when one is corrupt.
"""

from typing import Any

PN_XNUM = 0xFFFF
SHN_XINDEX = 0xFFFF
MAX_NAME = 1 << 12
"""Longer names of sections are cut off; they could overlap and add up to any size."""


class Headers:
    """The headers of the file `data`. Reading one that is corrupt raises, with exceptions of many kinds."""

    def __init__(self, data: memoryview) -> None:
        from elftools.elf.structs import ELFStructs

        if data[4] not in (1, 2) or data[5] not in (1, 2):
            raise ValueError("unknown class or byte order")
        self.is_64 = data[4] == 2
        self.big_endian = data[5] == 2
        self._stream: Any = _Stream(data)
        self._structs: Any = ELFStructs(little_endian=not self.big_endian, elfclass=64 if self.is_64 else 32)
        self._structs.create_basic_structs()
        self.file = self._parse(self._structs.Elf_Ehdr, 0)
        self._structs.create_advanced_structs(self.file["e_type"], self.file["e_machine"])
        self.segment_count = self.file["e_phnum"]
        self.section_count = self.file["e_shnum"]
        names = self.file["e_shstrndx"]
        if self.file["e_shoff"] and (self.section_count == 0 or PN_XNUM in (self.segment_count, names)):
            first = self.section(0)  # holds what does not fit into the header (rule R101)
            self.section_count = self.section_count or first["sh_size"]
            self.segment_count = first["sh_info"] if self.segment_count == PN_XNUM else self.segment_count
            names = first["sh_link"] if names == SHN_XINDEX else names
        # Headers smaller than their structure would lie over one another, and there could be very many.
        if not self.file["e_shoff"] or self.file["e_shentsize"] < self._structs.Elf_Shdr.sizeof():
            self.section_count = 0
        if self.file["e_phentsize"] < self._structs.Elf_Phdr.sizeof():
            self.segment_count = 0
        self._names_index = names
        self._names: bytes | None = None

    def segment(self, number: int) -> Any:
        """Program header `number`."""
        return self._parse(self._structs.Elf_Phdr, self.file["e_phoff"] + number * self.file["e_phentsize"])

    def section(self, number: int) -> Any:
        """Section header `number`."""
        return self._parse(self._structs.Elf_Shdr, self.file["e_shoff"] + number * self.file["e_shentsize"])

    def name(self, offset: int) -> str:
        """The section name at `offset` of the table of names."""
        if self._names is None:
            table = self.section(self._names_index)
            self._stream.seek(table["sh_offset"])
            self._names = self._stream.read(table["sh_size"])
            if len(self._names) < table["sh_size"]:
                raise ValueError("the names of the sections reach past the end of the file")
        return self._names[offset : offset + MAX_NAME].partition(b"\0")[0].decode("utf-8", "replace")

    def _parse(self, structure: Any, position: int) -> Any:
        from elftools.common.utils import struct_parse

        return struct_parse(structure, self._stream, position)


class _Stream:
    """A read-only file over a memoryview, as pyelftools wants it, without a copy of the contents."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, or all that are left."""
        end = len(self._data) if size < 0 else self._position + size
        chunk = bytes(self._data[self._position : end])
        self._position += len(chunk)
        return chunk

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a position."""
        base = (0, self._position, len(self._data))[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position
