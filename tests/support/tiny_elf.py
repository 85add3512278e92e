"""Writes the smallest ELF files that have a build id."""

import struct
from pathlib import Path


def note(build_id: bytes, owner: bytes = b"GNU\0", kind: int = 3, order: str = "<") -> bytes:
    """A note with a build id."""
    pad = -len(build_id) % 4
    return struct.pack(order + "III", len(owner), len(build_id), kind) + owner + build_id + bytes(pad)


def elf(build_id: bytes | None = None, *, in_section: bool = False, wide: bool = True, order: str = "<") -> bytes:
    """An ELF file whose only contents are a build id, in a note segment or in a note section."""
    notes = b"" if build_id is None else note(build_id, order=order)
    header, program, section = (64, 56, 64) if wide else (52, 32, 40)
    at = header + program
    sections = at + len(notes) if in_section else 0
    ident = b"\x7fELF" + bytes((2 if wide else 1, 1 if order == "<" else 2, 1)) + bytes(9)
    word = "Q" if wide else "I"
    head = ident + struct.pack(
        f"{order}HHI{word}{word}{word}IHHHHHH",
        3, 62 if wide else 3, 1, 0, header, sections, 0, header, program, 1, section, 2 if in_section else 0, 0,
    )  # fmt: skip
    kind, length = (1, 0) if in_section else (4, len(notes))
    if wide:
        table = struct.pack(order + "IIQQQQQQ", kind, 4, at, 0, 0, length, length, 4)
    else:
        table = struct.pack(order + "IIIIIIII", kind, at, 0, 0, length, length, 4, 4)
    data = head + table + notes
    if in_section:
        layout = order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII")
        data += bytes(section) + struct.pack(layout, 0, 7, 0, 0, at, len(notes), 0, 0, 4, 0)
    return data


def write(path: Path, build_id: str | None = None) -> Path:
    """Write such a file, with all folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(elf(None if build_id is None else bytes.fromhex(build_id)))
    return path
