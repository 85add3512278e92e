"""Files in zip archives (APK and others), by name and by offset. Only the list at the end of an archive is read."""

import os
import struct
from typing import BinaryIO, NamedTuple

from symbolize.binaries.unpack import LIMITS
from symbolize.core.compression import DEFLATE, CompressionError, inflate_exact
from symbolize.core.files import open_regular

MAX_DIRECTORY = 8 << 20
"""Bytes of the largest list of members that is read."""
END_MAGIC, END_SIZE = b"PK\x05\x06", 22
"""The end of central directory record: the last of an archive, but for a comment."""
LOCATOR_MAGIC, LOCATOR_SIZE = b"PK\x06\x07", 20
"""The zip64 end of central directory locator before it, in a large archive."""
END64_MAGIC, END64_SIZE = b"PK\x06\x06", 56
LOCAL_MAGIC, LOCAL_SIZE = b"PK\x03\x04", 30
IN_ZIP64 = 0xFFFFFFFF
MAX_COMMENT = 0xFFFF
TAIL = LOCATOR_SIZE + END_SIZE + MAX_COMMENT


class Member(NamedTuple):
    """A member that is stored as it is (`is_stored`) or deflated: its bytes are `size_in_file` long at `offset`."""

    name: str
    offset: int
    size: int
    size_in_file: int
    is_stored: bool


def read_members(path: str, endings: tuple[str, ...]) -> list[Member]:
    """The members of the archive at `path` whose names contain one of `endings`, with offsets within the file.

    Raises OSError if it cannot be read, ValueError with a sentence if it is no archive or its list is absurd.
    """
    import zipfile  # slow to import, and archives are rare

    with open(open_regular(path), "rb") as file:
        end = os.fstat(file.fileno()).st_size
        if directory_size(file, end) > MAX_DIRECTORY:
            raise ValueError(f"its list of members is larger than {MAX_DIRECTORY} bytes")
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, UnicodeDecodeError) as error:
            raise ValueError(f"is a corrupt archive ({error})") from error
        members, misplaced = [], 0
        for entry in entries:
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 1:
                continue
            if not any(ending in entry.filename for ending in endings) or entry.file_size == 0:
                continue
            head = b""
            if 0 <= entry.header_offset <= end - LOCAL_SIZE:
                file.seek(entry.header_offset)
                head = file.read(LOCAL_SIZE)
            if len(head) < LOCAL_SIZE or not head.startswith(LOCAL_MAGIC):
                misplaced += 1
                continue
            name_size, extra_size = struct.unpack_from("<HH", head, 26)
            offset = entry.header_offset + LOCAL_SIZE + name_size + extra_size
            stored = entry.compress_type == zipfile.ZIP_STORED
            if offset + entry.compress_size > end or (stored and entry.compress_size != entry.file_size):
                misplaced += 1
                continue
            members.append(Member(entry.filename, offset, entry.file_size, entry.compress_size, stored))
        if misplaced and not members:
            raise ValueError("is a corrupt archive (its members are not where its list says)")
        return members


def directory_size(file: BinaryIO, end: int) -> int:
    """Bytes of the list of members of an archive that is `end` bytes long. Raises ValueError if it is none."""
    file.seek(max(end - TAIL, 0))
    tail = file.read(TAIL)
    at = tail.rfind(END_MAGIC)
    if at < 0 or at + END_SIZE > len(tail):
        raise ValueError("is no zip archive")
    size = int.from_bytes(tail[at + 12 : at + 16], "little")
    locator = tail[max(at - LOCATOR_SIZE, 0) : at]
    if locator.startswith(LOCATOR_MAGIC):
        size = 0 if size == IN_ZIP64 else size
        # Readers look for the record where the pointer leads, or right before the pointer.
        before = max(end - TAIL, 0) + at - LOCATOR_SIZE - END64_SIZE
        for offset in (int.from_bytes(locator[8:16], "little"), before):
            if 0 <= offset <= end - END64_SIZE:
                file.seek(offset)
                record = file.read(END64_SIZE)
                if record.startswith(END64_MAGIC):
                    size = max(size, int.from_bytes(record[40:48], "little"))
    return size


def read_member(path: str, member: Member, limit: int) -> bytes:
    """The bytes of a member as they are in the file. Raises OSError, or ValueError if they are more than `limit`."""
    if member.size_in_file > limit:
        raise ValueError(f"{member.name} is larger than {limit} bytes")
    with open(open_regular(path), "rb") as file:
        file.seek(member.offset)
        return file.read(member.size_in_file)


def inflate(data: bytes, size: int, limit: int, source: str) -> bytes:
    """A raw deflate stream that has to expand to `size` bytes, at most `limit` and in proportion to it.

    Raises CompressionError about `source` if it does not.
    """
    most = LIMITS._replace(size=limit).most(len(data))
    if size > most:
        raise CompressionError(source, f"expands to more than {most} bytes, out of all proportion to its size")
    return bytes(inflate_exact(data, DEFLATE, size, source))
