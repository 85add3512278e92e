"""The debug sections of one binary, as buffers."""

from dataclasses import dataclass

Buffer = bytes | memoryview


@dataclass(frozen=True, eq=False)
class DebugSections:
    """Contents of the `.debug_*` sections, decompressed and relocated; an absent one is empty (rule R100)."""

    info: Buffer = b""
    abbrev: Buffer = b""
    str: Buffer = b""
    line: Buffer = b""
    line_str: Buffer = b""
    ranges: Buffer = b""
    rnglists: Buffer = b""
    addr: Buffer = b""
    str_offsets: Buffer = b""
    big_endian: bool = False
