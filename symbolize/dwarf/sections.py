"""The debug sections of one binary, as buffers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COMPILE_UNIT, SKELETON_UNIT = 1, 4

Buffer = bytes | memoryview


@dataclass(frozen=True, eq=False)
class DebugSections:
    """Contents of the `.debug_*` sections, decompressed and relocated; an absent one is empty (rule R100).

    `is_split` says that they are the `.dwo` sections of a split unit, whose tables have other bases (rule R78). `types`
    is `.debug_types`. If `holds_types`, `info` is such a section, whose unit headers have a signature.
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


def holds_code(kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which kinds of units may hold code: compile and skeleton units (rule R90)."""
    result: NDArray[np.bool_] = (kind == COMPILE_UNIT) | (kind == SKELETON_UNIT)
    return result
