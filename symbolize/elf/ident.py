"""A quick look at a file: is it ELF, and what is its build id?

Reads the ELF header, the program headers and the notes with a few small reads, because a folder of binaries
has thousands of files that are never opened for more. The section headers are read only where the segments
hold no build id: relocatable files have no segments, and Go's linker leaves the note out of them.
"""

import os
import struct

from symbolize.elf.image import ElfError
from symbolize.elf.notes import gnu_build_id

PT_NOTE = 4
SHT_NOTE = 7
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
            (table,) = struct.unpack_from(order + ("Q" if is_64 else "I"), head, 32 if is_64 else 28)
            entry_size, count = struct.unpack_from(order + "HH", head, 54 if is_64 else 42)
        except struct.error:
            raise ElfError(path, "ELF header is cut off") from None
        if count > MAX_PROGRAM_HEADERS or (count and entry_size < (56 if is_64 else 32)):
            raise ElfError(path, "absurd program header table", table)
        size = entry_size * count
        if table + size <= len(head):
            headers = head[table : table + size]
        else:
            headers = os.pread(descriptor, size, table) if table < 1 << 63 else b""
        if len(headers) < size:
            raise ElfError(path, "program headers reach past the end of the file", table)
        for position in range(0, size, entry_size or 1):
            if is_64:
                kind, _, offset, _, _, length = struct.unpack_from(order + "IIQQQQ", headers, position)
            else:
                kind, offset, _, _, length = struct.unpack_from(order + "IIIII", headers, position)
            if kind == PT_NOTE:
                build_id = _in_notes(descriptor, offset, length, big_endian)
                if build_id is not None:
                    return build_id
        return _in_sections(path, descriptor, head, is_64, big_endian)
    finally:
        os.close(descriptor)


def _in_notes(descriptor: int, offset: int, length: int, big_endian: bool) -> str | None:
    """The build id among the notes at `offset`."""
    if not 0 < length <= MAX_NOTE_BYTES or offset >= 1 << 63:
        return None
    return gnu_build_id(memoryview(os.pread(descriptor, length, offset)), big_endian)


def _in_sections(path: str, descriptor: int, head: bytes, is_64: bool, big_endian: bool) -> str:
    """The build id from the note sections, "" if there is none."""
    order = ">" if big_endian else "<"
    try:
        (table,) = struct.unpack_from(order + ("Q" if is_64 else "I"), head, 40 if is_64 else 32)
        entry_size, count = struct.unpack_from(order + "HH", head, 58 if is_64 else 46)
    except struct.error:
        raise ElfError(path, "ELF header is cut off") from None
    if not table or not count:
        return ""
    headers = os.pread(descriptor, entry_size * count, table) if table < 1 << 63 else b""
    if entry_size < (64 if is_64 else 40) or len(headers) < entry_size * count:
        raise ElfError(path, "section headers reach past the end of the file", table)
    for position in range(0, len(headers), entry_size):
        (kind,) = struct.unpack_from(order + "I", headers, position + 4)
        if kind == SHT_NOTE:
            place = position + (24 if is_64 else 16)
            offset, length = struct.unpack_from(order + ("QQ" if is_64 else "II"), headers, place)
            build_id = _in_notes(descriptor, offset, length, big_endian)
            if build_id is not None:
                return build_id
    return ""
