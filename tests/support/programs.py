"""Small debug information that many tests vary."""

from typing import Any

from tests.support.dwarf_writer import C_PLUS_PLUS, As, Die, Unit, die
from tests.support.line_writer import Format, Lines

FORMATS = [
    Format(version, big, size, wide, indirect)
    for version in (2, 3, 4, 5)
    for big in (False, True)
    for size in (4, 8)
    for wide in (False, True)
    for indirect in (False, True)
    if version > 2 or not wide  # DWARF 2 has no 64-bit form
]


def format_name(fmt: Format) -> str:
    """The parameters of a format as the id of a test."""
    order, width = "big" if fmt.big_endian else "little", "dwarf64" if fmt.dwarf64 else "dwarf32"
    return f"v{fmt.version}-{order}-{fmt.address_size}-{width}{'-indirect' * fmt.indirect}"


def unit(*children: Die, fmt: Format | None = None, lines: Lines | None = None, **attributes: Any) -> Unit:
    """A C++ compile unit a.cc of /src; `attributes` come on top."""
    fmt = fmt or Format()
    given = {"name": "a.cc", "comp_dir": "/src", "language": As("data2", C_PLUS_PLUS)} | attributes
    return Unit(die("compile_unit", *children, **given), fmt, lines)
