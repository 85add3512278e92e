"""Small files with much in them, for tests that damage them."""

from tests.support.dwarf_writer import As, Ref, die, dwarf_sections, function, inlined
from tests.support.elf_writer import NOTE, Section, Segment, Symbol, build_id_note, elf_file
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import TEXT
from tests.support.programs import unit

FORMATS = [Format(5), Format(4), Format(5, big_endian=True, dwarf64=True), Format(3, big_endian=True, address_size=4)]
"""Formats that differ in version, byte order and sizes."""


def small_file(fmt: Format, headers_first: bool = False) -> bytes:
    """Two units with functions, inlined functions, scopes, ranges and lines; symbols and a build id."""
    v5 = fmt.version >= 5
    strings = "strx" if v5 else "strp"
    g = die("subprogram", name=As(strings, "g"), label="g", decl_line=3, decl_file=1)
    f = function(
        "f",
        0x1000,
        0x40,
        die(
            "lexical_block",
            inlined("g", As("rnglistx" if v5 else "sec_offset", [(0x1010, 0x1020)]), line=7, call_file=1),
        ),
        decl_line=5,
    )
    scope = die("namespace", die("class_type", g, name="c", sibling=True), name="n")
    lines = Lines(sequence((0x1000, 10), (0x1010, 20, 1, 3), (0x1020, 0), end=0x1040), [("a.cc", 0), ("b.cc", 1)])
    h = die(
        "subprogram", low_pc=As("addrx", 0x1100) if v5 else 0x1100, high_pc=8, abstract_origin=As("ref_addr", Ref("g"))
    )
    units = [unit(scope, f, fmt=fmt, lines=lines), unit(h, fmt=fmt, lines=Lines(sequence((0x1100, 1), end=0x1108)))]
    symbols = [Symbol("f.cold", 0x1000, 0x40, binding=0), Symbol("label", 0x1200, type=0)]
    note = Section(".note.gnu.build-id", build_id_note(bytes(range(20)), fmt.big_endian), NOTE, 2)
    sections = [TEXT, note, *dwarf_sections(units)]
    return elf_file(
        sections,
        [Segment(0x1000, 0x1000)],
        symbols,
        symbols,
        is_64=fmt.address_size == 8,
        big_endian=fmt.big_endian,
        headers_first=headers_first,
    )
