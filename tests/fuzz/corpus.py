"""What is damaged: small sound files of all kinds, with the files that go with them, tables, and linkage names."""

import lzma
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.dwarf.corpus import small_file
from tests.support.dwarf_writer import As, Index, die, dwarf_sections, function
from tests.support.eh_frame import Frames, eh_frame
from tests.support.elf_writer import ALLOC, Section, Segment, Symbol, elf_file
from tests.support.go_writer import Call, Function, Go, Row, go_file
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import TEXT
from tests.support.programs import unit

ROOT = Path(__file__).parents[2]
MAX_SIZE = 80_000
FORMATS = [Format(5), Format(4), Format(2), Format(5, True, 8, True), Format(3, True, 4), Format(5, indirect=True)]


class Sample(NamedTuple):
    """A sound file, and the file that goes with it if there is one; `kind` tells of what sort that is."""

    name: str
    data: bytes
    companion: bytes = b""
    kind: str = ""


def split_file(packaged: bool) -> Sample:
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
    data = elf_file([TEXT, *dwarf_sections([skeleton]), addresses])
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
        "dwz", elf_file([TEXT, link, *dwarf_sections([unit(*functions, fmt=fmt)])]), companion, "supplementary"
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


def samples() -> list[Sample]:
    """All sound files."""
    result = [Sample(f"made-{number}", small_file(fmt)) for number, fmt in enumerate(FORMATS)]
    result += [split_file(False), split_file(True), supplementary_file(), stripped_file()]
    result += go_files()
    for path in sorted((ROOT / "fixtures" / "bin").rglob("*")):
        if path.is_file() and path.stat().st_size < MAX_SIZE:
            result.append(Sample(str(path.relative_to(ROOT)), path.read_bytes()))
    return result


def names() -> Iterator[bytes]:
    """Linkage names of all kinds."""
    for line in (ROOT / "tests" / "names" / "golden.tsv").read_bytes().splitlines():
        name = line.split(b"\t")[0]
        if name and len(name) < 2000:
            yield name
