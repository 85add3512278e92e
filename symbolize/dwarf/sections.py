"""The debug sections of one binary, as buffers, and their links to supplementary files (R91, supplementary files)."""

from dataclasses import dataclass

from symbolize.core.arrays import Bool, UInt8
from symbolize.dwarf.constants import DWARF_5, LEB_MORE, DW_UT_compile, DW_UT_skeleton

Buffer = bytes | memoryview
MAX_LINK = 1 << 16
"""Links are names; what is longer is none."""


@dataclass(frozen=True, eq=False)
class DebugSections:
    """Contents of the `.debug_*` sections, decompressed and relocated; an absent one is empty (R100, decompression on
    demand).

    `is_split` marks the `.dwo` sections of a split unit, whose tables have other bases (R78, bases of split units). If
    `holds_types`, `info` is a `.debug_types`, whose unit headers have a signature.
    """

    info: Buffer = b""
    abbrev: Buffer = b""
    str: Buffer = b""
    line: Buffer = b""
    line_str: Buffer = b""
    ranges: Buffer = b""
    rnglists: Buffer = b""
    addr: Buffer = b""
    str_offsets: Buffer = b""
    types: Buffer = b""
    big_endian: bool = False
    is_split: bool = False
    holds_types: bool = False


def holds_code(kind: UInt8) -> Bool:
    """Which kinds of units may hold code: compile and skeleton units (R90, units with code)."""
    result: Bool = (kind == DW_UT_compile) | (kind == DW_UT_skeleton)
    return result


@dataclass(frozen=True)
class Link:
    """A link to the supplementary file `name`, whose build id, or whose checksum if `is_checksum`, is `identifier`."""

    name: bytes
    identifier: bytes
    is_checksum: bool


def read_altlink(data: Buffer) -> Link | None:
    """The link in a `.gnu_debugaltlink` section: a name, then a build id. None if it is cut off."""
    name, end, identifier = bytes(data[:MAX_LINK]).partition(b"\0")
    return Link(name, identifier, False) if end and identifier else None


def read_sup(data: Buffer, big_endian: bool) -> tuple[bool, Link] | None:
    """A `.debug_sup` section (DWARF 5 §7.3.6): whether the file is a supplementary one, and the link; None if
    unreadable.

    A supplementary file's own section has no name, and the checksum of its file. `ref_sup4`, `ref_sup8` and `strp_sup`
    lead to it, as `GNU_ref_alt` and `GNU_strp_alt` do to that of `.gnu_debugaltlink` (R91, supplementary files).
    """
    raw = bytes(data[:MAX_LINK])
    if int.from_bytes(raw[:2], "big" if big_endian else "little") != DWARF_5:
        return None
    name, _, rest = raw[3:].partition(b"\0")
    size = shift = 0
    for k, byte in enumerate(rest[:5]):
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < LEB_MORE:
            checksum = rest[k + 1 : k + 1 + size]
            return (raw[2] != 0, Link(name, checksum, True)) if len(checksum) == size else None
    return None
