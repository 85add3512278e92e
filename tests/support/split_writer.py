"""Builds skeletons, split units and packages of them."""

import struct
from collections.abc import Sequence
from typing import Any

from symbolize.elf import ElfImage
from tests.support.dwarf_writer import (
    C_PLUS_PLUS,
    SKELETON,
    SPLIT,
    As,
    Die,
    Index,
    Unit,
    die,
    dwarf_contents,
    dwarf_sections,
)
from tests.support.elf_writer import Section, elf_file
from tests.support.line_writer import Format, Lines
from tests.support.lookup import image_of

DWO_ID = 0x1122334455667788
ADDR_BASE_4, RANGES_BASE_4, DWO_NAME_4, DWO_ID_4, DWO_NAME = "_0x2133", "_0x2132", "_0x2130", "_0x2131", "_0x76"
IDS = {
    2: {"info": 1, "types": 2, "abbrev": 3, "line": 4, "loc": 5, "str_offsets": 6, "macinfo": 7, "macro": 8},
    5: {"info": 1, "abbrev": 3, "line": 4, "loclists": 5, "str_offsets": 6, "macro": 7, "rnglists": 8},
}
"""The numbers of sections in an index."""
F, G = 0x1000, 0x1500
"""Where the functions of `pair` are."""


def skeleton(
    *children: Die,
    fmt: Format | None = None,
    lines: Lines | None = None,
    dwo_id: int = DWO_ID,
    file: str = "a.dwo",
    addresses: Sequence[int] = (0x1000, 0x1010, 0x1020, 0x1030),
    **attributes: Any,
) -> Unit:
    """The skeleton of the split unit `dwo_id` in `file`; `addresses` are its part of .debug_addr."""
    fmt = fmt or Format()
    old = fmt.version < 5
    form = "GNU_addr_index" if old else "addrx"
    given: dict[str, Any] = {"comp_dir": "/build"}
    given |= {f"_{0x3000 + i:#x}": As(form, address) for i, address in enumerate(addresses)}
    if old:
        given |= {DWO_NAME_4: file, DWO_ID_4: As("data8", dwo_id), ADDR_BASE_4: As("sec_offset", 0)}
        return Unit(die("compile_unit", *children, **given | attributes), fmt, lines)
    given[DWO_NAME] = file
    return Unit(die(0x4A, *children, **given | attributes), fmt, lines, SKELETON, signature=dwo_id)


def split_unit(*children: Die, fmt: Format | None = None, dwo_id: int = DWO_ID, **attributes: Any) -> Unit:
    """A split unit; what it says of addresses are raw indices."""
    fmt = fmt or Format()
    given = {"name": "a.cc", "language": As("data2", C_PLUS_PLUS)} | attributes
    if fmt.version < 5:
        given[DWO_ID_4] = As("data8", dwo_id)
    return Unit(die("compile_unit", *children, **given), fmt, kind=SPLIT, bases="none", signature=dwo_id)


def at(name: str, index: int, size: int, *children: Die, fmt: Format | None = None, **attributes: Any) -> Die:
    """A function with an indexed name whose code begins at address `index` of the skeleton."""
    old = fmt is not None and fmt.version < 5
    named, placed = ("GNU_str_index", "GNU_addr_index") if old else ("strx", "addrx")
    return die(
        "subprogram", *children, name=As(named, name), low_pc=As(placed, Index(index)), high_pc=size, **attributes
    )


def split_file(units: Sequence[Unit], left_out: Sequence[str] = ()) -> bytes:
    """A .dwo file of these units, without the sections `left_out`."""
    sections = [s for s in dwarf_sections(units, ".dwo") if s.name not in left_out]
    return elf_file(sections, big_endian=units[0].format.big_endian)


def index(
    version: int,
    rows: dict[int, Sequence[tuple[int, int]]],
    names: Sequence[str],
    slots: Sequence[tuple[int, int]] | None = None,
    big_endian: bool = False,
) -> bytes:
    """An index: `rows` are the contributions of each signature to the sections `names`, as offset and size.

    `slots` are pairs of a signature and a row instead of those that belong to `rows`.
    """
    order = ">" if big_endian else "<"
    if slots is None:
        slots = [(0, 0), *((signature, row + 1) for row, signature in enumerate(rows)), (0, 0), (0, 0)]
    head = struct.pack(order + ("I" if version == 2 else "HH"), *([2] if version == 2 else [version, 0]))
    head += struct.pack(order + "III", len(names), len(rows), len(slots))
    body = b"".join(struct.pack(order + "Q", signature) for signature, _ in slots)
    body += b"".join(struct.pack(order + "I", row) for _, row in slots)
    body += b"".join(struct.pack(order + "I", IDS[version][name]) for name in names)
    for part in (0, 1):
        body += b"".join(struct.pack(order + "I", place[part]) for places in rows.values() for place in places)
    return head + body


def package_file(
    units: Sequence[Unit],
    names: Sequence[str] = ("info", "abbrev", "str_offsets"),
    gap: int = 0,
    wrap: int = 1 << 32,
    extra: dict[str, tuple[int, int]] | None = None,
    slots: Sequence[tuple[int, int]] | None = None,
    types: Sequence[Unit] = (),
) -> bytes:
    """A package of `units`, which an index of their version names, and of type units.

    Before each unit of .debug_info.dwo lie `gap` bytes; offsets in the index are modulo `wrap`. `extra` are further
    columns with contributions that are the same in every row.
    """
    fmt = units[0].format
    version, extra = (5 if fmt.version >= 5 else 2), extra or {}
    sections: dict[str, bytes] = {}
    indexes = {}
    for kind, members in (("cu", units), ("tu", types)):
        own = ["types" if name == "info" and kind == "tu" and version == 2 else name for name in names]
        rows: dict[int, list[tuple[int, int]]] = {}
        for unit in members:
            contents = dwarf_contents([unit])
            # Strings are shared in a package; here each unit brings its own, so that its offsets move.
            contents["str_offsets"] = moved(contents["str_offsets"], len(sections.get("str", b"")), fmt)
            places = []
            for name in own:
                before = sections.get(name, b"") + bytes(gap if name == "info" else 0)
                places.append((len(before) % wrap, len(contents[name])))
                sections[name] = before + contents[name]
            sections["str"] = sections.get("str", b"") + contents["str"]
            rows[unit.signature] = [*places, *extra.values()]
        if rows:
            indexes[kind] = index(version, rows, [*own, *extra], slots, fmt.big_endian)
    return elf_file(
        [
            *(Section(f".debug_{name}.dwo", data) for name, data in sections.items()),
            *(Section(f".debug_{kind}_index", data) for kind, data in indexes.items()),
        ],
        big_endian=fmt.big_endian,
    )


def moved(str_offsets: bytes, distance: int, fmt: Format) -> bytes:
    """A table of string offsets with `distance` added to each."""
    header = 8 if fmt.version >= 5 and str_offsets else 0
    order = ">" if fmt.big_endian else "<"
    count = (len(str_offsets) - header) // 4
    offsets = struct.unpack_from(f"{order}{count}I", str_offsets, header)
    return str_offsets[:header] + struct.pack(f"{order}{count}I", *(offset + distance for offset in offsets))


def pair(fmt: Format) -> tuple[ElfImage, list[Unit]]:
    """A binary of two skeletons, and their split units with the functions f and g, at F and G."""
    later = {"_0x2133": As("sec_offset", 8)} if fmt.version < 5 else {}
    skeletons = [skeleton(fmt=fmt, addresses=[F], dwo_id=1), skeleton(fmt=fmt, addresses=[G], dwo_id=2, **later)]
    return image_of(skeletons), [
        split_unit(die("base_type", byte_size=8), at("f", 0, 4, fmt=fmt), fmt=fmt, dwo_id=1),
        split_unit(at("g", 0, 4, fmt=fmt), fmt=fmt, dwo_id=2),
    ]
