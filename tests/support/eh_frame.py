"""Writes .eh_frame sections: CIEs and FDEs of any address encoding."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from tests.support.line_writer import sleb, uleb

ABSOLUTE, RELATIVE = 0x00, 0x10
SIZES = {0x02: "H", 0x03: "I", 0x04: "Q", 0x0A: "h", 0x0B: "i", 0x0C: "q"}


class Frames(NamedTuple):
    """FDEs of one CIE: begin and size of each, and how they are written.

    `encoding` is that of addresses, None for a CIE that says nothing of it.
    """

    ranges: Sequence[tuple[int, int]]
    encoding: int | None = RELATIVE | 0x0B
    version: int = 1
    personality: bool = False
    augmentation: bytes | None = None
    wide: bool = False


def eh_frame(groups: Sequence[Frames], vaddr: int, *, is_64: bool = True, big_endian: bool = False) -> bytes:
    """The contents of an .eh_frame section at `vaddr`."""
    order, out = ">" if big_endian else "<", bytearray()

    def entry(body: bytes, wide: bool) -> None:
        nonlocal out
        out += struct.pack(order + "IQ", 0xFFFFFFFF, len(body)) if wide else struct.pack(order + "I", len(body))
        out += body

    def number(value: int, encoding: int) -> bytes:
        kind = encoding & 0x0F
        if kind in (0x01, 0x09):
            return uleb(value) if kind == 1 else sleb(value)
        letter = SIZES.get(kind, "Q" if is_64 else "I")
        size = struct.calcsize("<" + letter)
        return (value & ((1 << 8 * size) - 1)).to_bytes(size, "big" if big_endian else "little")

    for group in groups:
        start = len(out)
        letters = b"" if group.encoding is None else b"zPLR" if group.personality else b"zR"
        data = b"" if group.encoding is None else bytes([group.encoding])
        if group.personality:
            data = bytes([0x9B]) + number(0x1234, 0x0B) + bytes([0x1B]) + data
        letters = letters if group.augmentation is None else group.augmentation
        body = bytes(4) + bytes([group.version]) + letters + b"\0" + uleb(1) + sleb(-8)
        body += b"\x10" if group.version == 1 else uleb(16)
        entry(body + (uleb(len(data)) + data if letters[:1] == b"z" else b""), group.wide)
        encoding = group.encoding or 0
        for begin, size in group.ranges:
            field = len(out) + (12 if group.wide else 4)
            place = vaddr + field + 4 if encoding & 0x70 == RELATIVE else 0
            body = struct.pack(order + "I", field - start)
            body += number(begin - place, encoding) + number(size, encoding & 0x07)
            entry(body + (uleb(0) if letters[:1] == b"z" else b""), group.wide)
    return bytes(out)
