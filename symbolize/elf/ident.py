"""A quick look at a file: is it ELF, and what is its build id?

Reads the ELF header, the program headers and the notes with a few small reads, because a folder of binaries
has thousands of files that are never opened for more.
"""

import os
import struct

from symbolize.elf.image import ElfError, ElfImage
from symbolize.elf.notes import gnu_build_id

PT_NOTE = 4
ET_REL = 1
HEADER_BYTES = 4096
MAX_NOTE_BYTES = 1 << 20
MAX_PROGRAM_HEADERS = 4096


def read_build_id(path: str) -> str | None:
    """The build id of the ELF file at `path`, "" if it has none; None if the file is no ELF file.

    Raises OSError if it cannot be read, ElfError if its headers are cut off.
    """
    # Never block on a FIFO that took the file's place, never become the owner of a terminal.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        head = os.read(descriptor, HEADER_BYTES)
        if head[:4] != b"\x7fELF":
            return None
        if len(head) < 52 or head[4] not in (1, 2) or head[5] not in (1, 2):
            raise ElfError(path, "ELF header is cut off or of an unknown class")
        is_64, big_endian = head[4] == 2, head[5] == 2
        order = ">" if big_endian else "<"
        try:
            (kind,) = struct.unpack_from(order + "H", head, 16)
            (table,) = struct.unpack_from(order + ("Q" if is_64 else "I"), head, 32 if is_64 else 28)
            entry_size, count = struct.unpack_from(order + "HH", head, 54 if is_64 else 42)
        except struct.error:
            raise ElfError(path, "ELF header is cut off") from None
        if kind == ET_REL or count == 0:
            return _from_sections(path)
        if count > MAX_PROGRAM_HEADERS or entry_size < (56 if is_64 else 32):
            raise ElfError(path, "absurd program header table", table)
        size = entry_size * count
        headers = head[table : table + size] if table + size <= len(head) else os.pread(descriptor, size, table)
        if len(headers) < size:
            raise ElfError(path, "program headers reach past the end of the file", table)
        for position in range(0, size, entry_size):
            if is_64:
                kind, _, offset, _, _, length = struct.unpack_from(order + "IIQQQQ", headers, position)
            else:
                kind, offset, _, _, length = struct.unpack_from(order + "IIIII", headers, position)
            if kind == PT_NOTE and 0 < length <= MAX_NOTE_BYTES and offset < 1 << 63:
                inside = offset + length <= len(head)
                notes = head[offset : offset + length] if inside else os.pread(descriptor, length, offset)
                build_id = gnu_build_id(memoryview(notes), big_endian)
                if build_id is not None:
                    return build_id
        return ""
    finally:
        os.close(descriptor)


def _from_sections(path: str) -> str:
    """The build id of a file without program headers, from its note sections."""
    with ElfImage.open(path) as image:
        return image.build_id or ""
