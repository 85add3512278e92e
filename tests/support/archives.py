"""Writes archives of libraries, as Android has them."""

import struct
import zipfile
from pathlib import Path

from symbolize.binaries import read_members

MEMBER = "lib/x86_64/libspectra.so"


def archive(path: Path, library: Path, name: str = MEMBER, *, deflated: bool = False, before: int = 0) -> int:
    """An archive of one library, stored on a page unless deflated, behind so many other bytes; where that begins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("AndroidManifest.xml", b"x" * 5000, zipfile.ZIP_DEFLATED)
        made.writestr("assets", bytes(before), zipfile.ZIP_STORED)
        entry = zipfile.ZipInfo(name)
        if not deflated:
            entry.extra = bytes(4) + bytes(-(made.fp.tell() + 34 + len(name)) % 4096)  # type: ignore[union-attr]
            entry.extra = struct.pack("<HH", 0xD935, len(entry.extra) - 4) + entry.extra[4:]
        made.writestr(entry, library.read_bytes(), zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED)
        made.writestr("resources.arsc", bytes(100))
    (member,) = read_members(str(path), (".so",))
    assert deflated or member.offset % 4096 == 0
    return member.offset
