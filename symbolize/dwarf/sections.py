"""The debug sections of one binary, as buffers."""

from dataclasses import dataclass

from symbolize.core.arrays import Bool, UInt8
from symbolize.dwarf.constants import DW_UT_compile, DW_UT_skeleton

Buffer = bytes | memoryview


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
