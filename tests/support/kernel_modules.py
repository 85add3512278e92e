"""A kernel module."""

from pathlib import Path

from tests.support.elf_writer import (
    ALLOC,
    ET_REL,
    EXEC,
    NOTE,
    WRITE,
    Section,
    Symbol,
    build_id_note,
    elf_file,
)

MODULE_ID = bytes(range(20))
MODULE_START = 0xFFFF_FFFF_C010_0000


def write_module(path: Path, *first: Section, marked: bool = True) -> Path:
    """A kernel module with code in two sections, `first` before them."""
    sections = [
        *first,
        Section(".text", bytes(0x100), flags=ALLOC | EXEC, alignment=16),
        Section(".init.text", bytes(0x80), flags=ALLOC | EXEC),
        Section(".note.gnu.build-id", build_id_note(MODULE_ID), NOTE, ALLOC),
    ]
    if marked:
        sections.append(Section(".gnu.linkonce.this_module", bytes(64), flags=ALLOC | WRITE))
    symbols = [Symbol("handle", 0x10, 0x20), Symbol("setup", 0x10, 0x20, section=".init.text")]
    path.write_bytes(elf_file(sections, symbols=symbols, kind=ET_REL))
    return path
