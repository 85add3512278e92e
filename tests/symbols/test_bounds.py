"""Small files that stand for a lot: memory and time stay within a multiple of the file (rules R69, R77, R99)."""

import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from symbolize.core.cursor import COMPILED
from symbolize.elf import ElfImage
from symbolize.symbols import build_table
from tests.support.dwarf_writer import As, Die, Index, Ref, die, dwarf_sections, function, inlined
from tests.support.elf_writer import COMPRESSED, NOTE, Section, Segment, Symbol, elf_file, text
from tests.support.line_writer import Format, Lines, sequence, uleb
from tests.support.programs import unit

TEXT = text(0x1000, 1 << 24)
SCALE = 0.25 if COMPILED else 0.1
"""Interpreted, smaller files are made. At 1 all are of some hundred kilobytes."""
MULTIPLE = 400
"""Bytes of memory for a byte of a file; and MORE bytes, whatever its size."""
MORE = 16 << 20
SECONDS = 4.0
"""For a megabyte, on a slow machine that does other things as well."""

Made = tuple[bytes, list[str]]
"""A file and what its problems must tell of, a word of each."""


def many(count: int) -> int:
    """So many parts of a file."""
    return int(count * SCALE)


def file_of(*children: Die, extra: tuple[Section, ...] = (), **attributes: object) -> bytes:
    """A file of one unit."""
    return elf_file([TEXT, *dwarf_sections([unit(*children, **attributes)]), *extra])


def functions(count: int, **attributes: object) -> list[Die]:
    """Functions behind one another, 16 bytes each."""
    return [die("subprogram", low_pc=0x1000 + 16 * i, high_pc=16, **attributes) for i in range(count)]


def many_attributes() -> Made:
    """Functions whose abbreviation has a hundred thousand attributes that take no bytes."""
    sections = dwarf_sections([unit(*functions(many(30000)), fmt=Format(4))])
    rest = [section for section in sections if section.name != ".debug_abbrev"]
    abbrev = next(section.data for section in sections if section.name == ".debug_abbrev")
    at = abbrev.rindex(b"\x11\x01") + 2
    padded = abbrev[:at] + b"\x34\x19" * many(100_000) + abbrev[at:]
    return elf_file([TEXT, *rest, Section(".debug_abbrev", padded)]), ["corrupt DIEs"]


def long_origin() -> Made:
    """Functions that share an origin with a long string in front of its name."""
    origin = die("subprogram", producer="x" * many(400_000), name="f", label="f")
    return file_of(origin, *functions(many(20000), abstract_origin=Ref("f"))), ["names of functions"]


def corrupt_line_programs() -> Made:
    """Units whose line programs are all corrupt."""
    units = [unit(stmt_list=i, low_pc=0x1000 + i, high_pc=1) for i in range(many(120_000))]
    return elf_file([TEXT, *dwarf_sections(units), Section(".debug_line", bytes(many(120_000)))]), [
        "corrupt line program"
    ]


def deep_scopes() -> Made:
    """Functions in a thousand namespaces within one another."""
    inner = functions(many(20000), name="f")
    tree = die("namespace", *inner, name="n")
    for _ in range(900):
        tree = die("namespace", tree, name="n")
    return file_of(tree), ["names of functions"]


def long_scope() -> Made:
    """Functions in a namespace with a long name."""
    return file_of(die("namespace", *functions(many(20000), name="f"), name="n" * many(400_000))), [
        "names of functions"
    ]


def shared_name() -> Made:
    """Functions that all have one long name, which their symbols do not."""
    count = many(20000)
    named = [die("subprogram", low_pc=0x1000 + 16 * i, high_pc=16, name=As("strp", Index(0))) for i in range(count)]
    symbols = [Symbol(f"f{i}", 0x1000 + 16 * i, 16) for i in range(count)]
    name = Section(".debug_str", b"s" * many(400_000))
    return elf_file([TEXT, *dwarf_sections([unit(*named)]), name], symbols=symbols), []


def shared_name_in_scope() -> Made:
    """Functions in a namespace that all have one long name."""
    count = many(20000)
    named = [die("subprogram", low_pc=0x1000 + 16 * i, high_pc=16, name=As("strp", Index(0))) for i in range(count)]
    return file_of(die("namespace", *named, name="n"), extra=(Section(".debug_str", b"s" * many(400_000)),)), [
        "names of functions"
    ]


def overlapping_strings() -> Made:
    """Functions whose names all end with one long string."""
    named = [
        die("subprogram", low_pc=0x1000 + 16 * i, high_pc=16, name=As("strp", Index(i))) for i in range(many(20000))
    ]
    return file_of(*named, extra=(Section(".debug_str", b"s" * many(400_000)),)), ["names overlap"]


def shared_file_tables() -> Made:
    """Units whose line programs all have the same large table of files, but other directories."""
    files = [("f", 0)] * many(20000)
    lines = Lines(sequence((0x1000, 1), end=0x1010), files)
    fmt = Format(5)
    first = unit(function("f", 0x1000, 16, decl_file=1), fmt=fmt, lines=lines)
    others = [
        unit(function("f", 0x2000 + 16 * i, 16, decl_file=2), fmt=fmt, stmt_list=0, comp_dir=f"/{i}")
        for i in range(many(4000))
    ]
    return elf_file([TEXT, *dwarf_sections([first, *others])]), []


def long_directory() -> Made:
    """A long directory in front of many files."""
    files = [(f"f{i}", 0) for i in range(many(10000))]
    rows = [(0x1000 + i, 1, i) for i in range(many(10000))]
    place = [b"\x04" + uleb(row[2]) for row in rows]
    operations: list[bytes] = [b"\0\x09\x02" + struct.pack("<Q", 0x1000)]
    operations += [step + b"\x01\x02\x01" for step in place]
    lines = Lines([*operations, b"\0\x01\x01"], files, directories=["/" + "d" * many(400_000)])
    return file_of(function("f", 0x1000, 1 << 16), lines=lines), ["names of files"]


def large_file_number() -> Made:
    """A function that says to be declared in the file of the highest number that there could be tables for."""
    return file_of(*functions(1, name="f", decl_file=As("data4", 0xFFFFF0))), []


def overlapping_sequences() -> Made:
    """Line sequences that all reach over all functions, of two units in turn."""
    count = many(10000)
    every = sequence((0x1000, 1), end=0x1000 + 16 * count) * count
    units = [
        unit(
            *(function("f", 0x1000 + 32 * i + 16 * which, 16) for i in range(count // 2)),
            lines=Lines(every[: len(every) // 2]),
        )
        for which in range(2)
    ]
    return elf_file([TEXT, *dwarf_sections(units)]), ["line sequences"]


def overlapping_notes() -> Made:
    """Program headers that all name the same long notes."""
    notes = struct.pack("<III", 4, 0, 7) + b"GNU\0"
    sections = [TEXT, Section(".note", notes * many(20000), NOTE)]
    offset = 64 + 56 * many(8000)
    return elf_file(sections, [Segment(0, len(sections[1].data), 4, offset, 4)] * many(8000)), []


def same_segment_often() -> Made:
    """Program headers that all load the whole of a file without section headers."""
    size = many(4 << 20)
    segments = [Segment(0x1000, size, 4 + i % 2) for i in range(many(80000))]
    return elf_file([Section(".data", b"\xff" * size)], segments, section_headers=False), []


def long_section_names() -> Made:
    """Sections whose names all end with one long string."""
    count = many(6000)
    data = bytearray(elf_file([TEXT, *(Section(f"s{i}") for i in range(count)), Section("n" * many(400_000))]))
    (start,) = struct.unpack_from("<Q", data, 40)
    index = data.index(b"n" * many(400_000))
    (base,) = struct.unpack_from("<Q", data, start + 64 * (count + 3) + 24)
    for i in range(count):
        struct.pack_into("<I", data, start + 64 * (i + 2), index - base + i)
    return bytes(data), []


def long_symbol_names() -> Made:
    """Symbols whose names all end with one long string."""
    count = many(10000)
    data = bytearray(elf_file([TEXT], symbols=[Symbol("x" * many(400_000), 0x1000 + i // 2, 16) for i in range(count)]))
    place = data.index(struct.pack("<IBBH", 1, 0x12, 0, 1))
    for i in range(count):
        struct.pack_into("<I", data, place + 24 * i, 1 + i)
    return bytes(data), ["names"]


def variants_of_deep_chains() -> Made:
    """A chain of inlined functions under symbols that are all variants of the outermost function."""
    count = many(12000)
    chain: Die | None = None
    for _ in range(200):
        chain = inlined("g", As("sec_offset", [(0x1000, 0x1000 + 16 * count)]), *([chain] if chain else []), line=1)
    assert chain is not None
    outer = function("f", 0x1000, 16 * count, chain, linkage_name="f")
    symbols = [Symbol(f"f.part.{i}", 0x1000 + 16 * i, 16) for i in range(count)]
    sections = dwarf_sections([unit(die("subprogram", name="g", label="g"), outer)])
    return elf_file([TEXT, *sections], symbols=symbols), ["inlined"]


def zlib_bomb() -> Made:
    """Debug sections of zeros, compressed as far as that goes."""
    size = many(400 << 20)
    packed = struct.pack("<IIQQ", 1, 0, size, 1) + zlib.compress(bytes(size), 1)
    names = ("info", "abbrev", "str", "line", "line_str", "ranges", "rnglists", "addr", "str_offsets")
    return elf_file([TEXT, *(Section(f".debug_{name}", packed, flags=COMPRESSED) for name in names)]), ["expand"]


def same_compressed_section_often() -> Made:
    """Many sections of one name in a relocatable file."""
    size = many(2 << 20)
    packed = struct.pack("<IIQQ", 1, 0, size, 1) + zlib.compress(bytes(size), 1)
    sections = [Section(".debug_info", packed, flags=COMPRESSED) for _ in range(300)]
    return elf_file([TEXT, *sections], kind=1), ["expand"]


BOMBS: list[Callable[[], Made]] = [
    many_attributes,
    long_origin,
    corrupt_line_programs,
    deep_scopes,
    long_scope,
    shared_name,
    shared_name_in_scope,
    overlapping_strings,
    shared_file_tables,
    long_directory,
    large_file_number,
    overlapping_sequences,
    overlapping_notes,
    same_segment_often,
    long_section_names,
    long_symbol_names,
    variants_of_deep_chains,
    zlib_bomb,
    same_compressed_section_often,
]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
@pytest.mark.full
def test_bounded(bomb: Callable[[], Made]) -> None:
    """What would grow without bound is cut off, and said."""
    data, told = bomb()
    start = time.process_time()
    with ElfImage.parse(memoryview(data), "bomb") as image:
        table = build_table([image])
    assert time.process_time() - start < SECONDS * max(len(data), 1 << 20) / (1 << 20)
    for word in told:
        assert any(word in problem for problem in table.problems), table.problems
    tracemalloc.start()
    try:
        with ElfImage.parse(memoryview(data), "bomb") as image:
            build_table([image])
        assert tracemalloc.get_traced_memory()[1] < MULTIPLE * len(data) + MORE
    finally:
        tracemalloc.stop()
