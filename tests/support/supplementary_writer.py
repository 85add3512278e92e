"""Writes supplementary files."""

from pathlib import Path
from typing import Any

from tests.support.dwarf_writer import C_PLUS_PLUS, PARTIAL, As, Die, Unit, UnitWriter, Writer, die
from tests.support.elf_writer import NOTE, Section, build_id_note, elf_file
from tests.support.line_writer import Format, Lines, uleb
from tests.support.lookup import TEXT

ID = bytes(range(1, 21))


def sup(name: bytes, identifier: bytes, fmt: Format, supplementary: bool = False) -> bytes:
    """A .debug_sup section."""
    return fmt.uint(5, 2) + bytes([supplementary]) + name + b"\0" + uleb(len(identifier)) + identifier


def supplementary(
    path: Path, style: str, fmt: Format, *children: Die, identifier: bytes = ID, lines: Lines | None = None, **root: Any
) -> dict[str, int]:
    """Write a supplementary file of one partial unit; where its labels and strings are."""
    given = {"name": As("strp", "common.h"), "comp_dir": "/common", "language": As("data2", C_PLUS_PLUS)} | root
    writer = Writer()
    UnitWriter(writer, Unit(die("partial_unit", *children, **given), fmt, lines, PARTIAL)).write()
    contents = writer.finish()
    sections = [TEXT, *(Section(f".debug_{name}", data) for name, data in contents.items() if data)]
    if style == "gnu":
        sections.append(Section(".note.gnu.build-id", build_id_note(identifier, fmt.big_endian), NOTE, 2))
    else:
        sections.append(Section(".debug_sup", sup(b"", identifier, fmt, True)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(elf_file(sections, big_endian=fmt.big_endian))
    return writer.labels | {f"string {t.decode()}": contents["str"].index(t) for t in contents["str"].split(b"\0")}


def shared() -> Die:
    """n::g, as several binaries have it in common."""
    return die("namespace", die("subprogram", name=As("strp", "g"), label="g", decl_line=3, decl_file=1), name="n")
