"""Small ELF files made in memory: every class, byte order and machine, and what goes beside such files."""

import lzma
import re
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support import elf_writer, plt_files, relocations
from tests.support.dwarf_corpus import small_file
from tests.support.dwarf_writer import As, Index, die, dwarf_sections, function
from tests.support.eh_frame import Frames, eh_frame
from tests.support.elf_writer import ALLOC, CREL, ET_REL, EXEC, REL, RELA, WRITE, Section, Segment, Symbol, elf_file
from tests.support.go_writer import Call, Function, Go, Row, go_file
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import TEXT
from tests.support.programs import unit
from tests.support.relocations import Reloc
from tests.support.split_writer import package_file, pair, split_file
from tests.support.supplementary_writer import ID, shared, sup, supplementary

FORMATS = [Format(5), Format(4), Format(2), Format(5, True, 8, True), Format(3, True, 4), Format(5, indirect=True)]
NARROW, NARROW_BIG, BIG = Format(4, address_size=4), Format(5, True, 4), Format(5, True)
MACHINES = (
    *((machine, Format(5)) for machine in ("AARCH64", "RISCV", "LOONGARCH", "PPC64", "MIPS")),
    *((machine, NARROW) for machine in ("I386", "ARM", "MIPS", "RISCV")),
    *((machine, NARROW_BIG) for machine in ("ARM", "MIPS")),
    *((machine, BIG) for machine in ("AARCH64", "PPC64", "MIPS", "S390")),
)
"""Machines that files are made for, with their class and byte order; FORMATS are of x86-64."""
SEGMENTS = [Segment(0x1000, 0x1000)]
ADDRESS = 0x25
"""What the fields of an object file that are relocated hold before."""


class Sample(NamedTuple):
    """A sound file, and the file that goes with it if there is one; `kind` tells of what sort that is."""

    name: str
    data: bytes
    companion: bytes = b""
    kind: str = ""


def gnu_split(packaged: bool) -> Sample:
    """A skeleton of GNU's split DWARF 4 and its `.dwo` file, or a package with that."""
    fmt = Format(4)
    identity = {"_0x2130": "a.dwo", "_0x2131": As("data8", 0x1122334455667788)}
    skeleton = unit(fmt=fmt, low_pc=0x1000, high_pc=0x100, lines=Lines(sequence((0x1000, 10), end=0x1100)), **identity)
    inner = unit(
        die("namespace", die("subprogram", name="f", low_pc=As("GNU_addr_index", Index(0)), high_pc=0x20), name="n"),
        function("g", 0x1040, 0x20, decl_line=4),
        fmt=fmt,
        **identity,
    )
    addresses = Section(".debug_addr", struct.pack("<Q", 0x1000))
    data = elf_file([TEXT, *dwarf_sections([skeleton]), addresses], SEGMENTS)
    parts = [section._replace(name=section.name + ".dwo") for section in dwarf_sections([inner])]
    if packaged:
        sizes = {section.name: len(section.data) for section in parts}
        kinds = [(1, ".debug_info.dwo"), (3, ".debug_abbrev.dwo")]
        index = struct.pack("<IIII", 2, len(kinds), 1, 2) + struct.pack("<QQ", 0x1122334455667788, 0)
        index += struct.pack("<II", 1, 0) + struct.pack("<II", *(kind for kind, _ in kinds)) + struct.pack("<II", 0, 0)
        index += struct.pack("<II", *(sizes[name] for _, name in kinds))
        parts.append(Section(".debug_cu_index", index))
    return Sample("split", data, elf_file(parts), "package" if packaged else "split")


def supplementary_file() -> Sample:
    """A file with names in a supplementary one (`dwz -m`)."""
    fmt = Format(4)
    partial = unit(die("subprogram", name="shared", decl_line=9), fmt=fmt)
    build_id = bytes(range(1, 21))
    note = Section(".note.gnu.build-id", struct.pack("<III", 4, 20, 3) + b"GNU\0" + build_id, 7, ALLOC)
    companion = elf_file([note, *dwarf_sections([partial]), Section(".debug_str", b"far\0away\0")])
    offset = next(section.data for section in dwarf_sections([partial]) if section.name == ".debug_info")
    functions = [
        die("subprogram", low_pc=0x1000, high_pc=16, abstract_origin=As(0x1F20, at))
        for at in range(len(offset) - 12, len(offset))
    ]
    functions.append(die("subprogram", low_pc=0x1100, high_pc=16, name=As(0x1F21, 4)))
    link = Section(".gnu_debugaltlink", b"common.debug\0" + build_id)
    return Sample(
        "dwz",
        elf_file([TEXT, link, *dwarf_sections([unit(*functions, fmt=fmt)])], SEGMENTS),
        companion,
        "supplementary",
    )


def stripped_file() -> Sample:
    """A file with exported symbols, unwinding tables and mini debug info."""
    frames = eh_frame([Frames([(0x1000 + 32 * i, 32) for i in range(20)]), Frames([(0x1400, 8)], None)], 0x3000)
    mini = elf_file([TEXT], symbols=[Symbol(f"hidden{i}", 0x1000 + 32 * i, 0) for i in range(20)])
    sections = [TEXT, Section(".eh_frame", frames, 1, ALLOC, 0x3000), Section(".gnu_debugdata", lzma.compress(mini))]
    return Sample("mini", elf_file(sections, [Segment(0x1000, 0x1000)], dynamic=[Symbol("export", 0x1000)]))


def go_files() -> Iterator[Sample]:
    """Go programs without DWARF, a layout of the line table each."""
    rows = [Row(0, "a.go", 1), Row(8, "a.go", 3), Row(16, "b.go", 9, 0), Row(24, "b.go", 11, 1), Row(40, "a.go", 4)]
    calls = [Call("main.inner", 8, "a.go", 3, 8), Call("main.[...].leaf", 16, "b.go", 9, 10, 0)]
    program = [Function(f"main.f{i}", 64 * i, 60, rows, calls, i) for i in range(6)]
    for go in (Go(102), Go(116, position_independent=True), Go(118, big_endian=True, word=4), Go(120, stated=False)):
        yield Sample(f"go-{go.layout}", go_file(program, go, symbols=[Symbol("main.f2", 0x1080, 60)]))


def for_machine(data: bytes, machine: str, fmt: Format) -> bytes:
    """A file with another machine in its header."""
    number = getattr(elf_writer, machine)
    return data[:18] + number.to_bytes(2, "big" if fmt.big_endian else "little") + data[20:]


def machine_files() -> Iterator[Sample]:
    """Files with DWARF for all machines, with descriptors of functions, and with tables of linkage."""
    for machine, fmt in MACHINES:
        name = f"{machine}-{8 * fmt.address_size}-{'big' if fmt.big_endian else 'little'}"
        yield Sample(name, for_machine(small_file(fmt), machine, fmt))
    words = b"".join(word.to_bytes(8, "big") for word in (0x1010, 0x8000, 0, 0x1020, 0x8000, 0))
    symbols = [Symbol("f", 0x5000, 0x10, section=".opd"), Symbol("g", 0x5018, 8, section=".opd")]
    opd = Section(".opd", words, flags=ALLOC | WRITE, address=0x5000)
    yield Sample("opd", elf_file([TEXT, opd], symbols=symbols, big_endian=True, machine=elf_writer.PPC64))
    for name, layout in plt_files.LAYOUTS.items():
        yield Sample(f"plt {name}", bytes(plt_files.file_of(layout).data))


def object_files() -> Iterator[Sample]:
    """Relocatable files with DWARF for all machines, their relocations in REL, RELA or CREL, and a kernel module."""
    text = Section(".text", bytes(0x200), flags=ALLOC | EXEC)
    symbols = [Symbol("f", 0x10, 0x40), Symbol("g", 0x80, 0x20), Symbol("h", 0xA0, 8)]
    for name, machine in relocations.MACHINES.items():
        fmt = Format(4, machine.big, 8 if machine.is_64 else 4)
        types = relocations.VALUES.get(name, {})
        number = next((number for number, size in types.items() if size == fmt.address_size), max(types, default=1))
        inner = unit(function("f", ADDRESS, 0x40), function("g", ADDRESS, 0x20), fmt=fmt)
        lines = unit(fmt=fmt, lines=Lines(sequence((ADDRESS, 1), (ADDRESS + 0x10, 2), end=ADDRESS + 0x40)))
        contents = dwarf_sections([inner, lines])
        plain: list[Section] = []
        packed: list[Section] = []
        for section in contents:
            field = fmt.uint(ADDRESS, fmt.address_size)
            at = [found.start() for found in re.finditer(re.escape(field), section.data)]
            relocs = [Reloc(offset, number, 1 + row % 3) for row, offset in enumerate(at)]
            if relocs and not section.name.startswith(".rel"):
                raw, kind = relocations.table_bytes(relocs, machine), RELA if machine.rela else REL
                table = Section(f".rela{section.name}", raw, kind, link=".symtab", info=section.name)
                plain.append(table)
                packed.append(table._replace(data=relocations.crel(relocs, machine.rela), type=CREL))
        for ending, tables in (("", plain), (" crel", packed)):
            data = elf_file(
                [text, *contents, *tables], symbols=symbols, is_64=machine.is_64, big_endian=machine.big,
                machine=machine.number, kind=ET_REL,
            )  # fmt: skip
            yield Sample(f"object {name}{ending}", data)
    mark = Section(".gnu.linkonce.this_module", bytes(64), flags=ALLOC | WRITE)
    yield Sample("module", elf_file([text, mark], symbols=symbols, kind=ET_REL))


def companions() -> Iterator[Sample]:
    """Files with split units, packages of those, and supplementary files, of DWARF 5 and 4."""
    for fmt in (Format(4), Format(5), BIG):
        image, units = pair(fmt)
        name = f"{fmt.version}{'-big' if fmt.big_endian else ''}"
        yield Sample(f"split-{name}", bytes(image.data), split_file(units[:1]), "split")
        yield Sample(f"package-{name}", bytes(image.data), package_file(units), "package")
    with tempfile.TemporaryDirectory() as folder:
        for fmt in (Format(5), BIG):
            path = Path(folder) / "common"
            places = supplementary(path, "sup", fmt, shared())
            named = die("subprogram", name=As("strp_sup", places["string common.h"]), low_pc=0x1100, high_pc=4)
            copy = die("subprogram", abstract_origin=As("ref_sup4", places["g"]), low_pc=0x1000, high_pc=16)
            sections = [TEXT, Section(".debug_sup", sup(b"common", ID, fmt))]
            debug = dwarf_sections([unit(named, copy, fmt=fmt)])
            data = elf_file([*sections, *debug], SEGMENTS, big_endian=fmt.big_endian)
            yield Sample(f"sup{'-big' if fmt.big_endian else ''}", data, path.read_bytes(), "supplementary")


def shapes() -> list[Sample]:
    """All of them."""
    made = [Sample(f"made-{number}", small_file(fmt)) for number, fmt in enumerate(FORMATS)]
    made += [gnu_split(False), gnu_split(True), supplementary_file(), stripped_file()]
    return [*made, *go_files(), *machine_files(), *object_files(), *companions()]
