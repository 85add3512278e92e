"""Which entries of a symbol table are code (rules R101, R104–R106, R120, R133)."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.elf import ElfImage, Segment, read_symbols
from symbolize.elf.dynamic import dynamic_tags, symbol_count
from symbolize.elf.headers import SHT_SYMTAB_SHNDX
from symbolize.elf.symbols import section_indices
from symbolize.symbols.elf_symbols import read_layer
from tests.support import elf_writer
from tests.support.elf_writer import (
    ABS,
    ALLOC,
    ARM,
    COMMON,
    COMMON_INDEX,
    FILE,
    FUNC,
    GNU_IFUNC,
    LOCAL,
    MIPS,
    NOTYPE,
    OBJECT,
    SECTION,
    TLS,
    UNDEF,
    WRITE,
    XINDEX,
    Section,
    Symbol,
    elf_file,
)
from tests.support.lookup import vaddr_in

BINARIES = Path(__file__).parents[2] / "fixtures" / "bin"
SECTIONS = [elf_writer.text(), Section(".data", bytes(64), flags=ALLOC | WRITE, address=0x8000)]


def names(*symbols: Symbol, table: str = ".symtab", **options: object) -> list[str]:
    """The names that are read of a table of these symbols."""
    key = "symbols" if table == ".symtab" else "dynamic"
    data = elf_file(SECTIONS, **{key: [Symbol(""), *symbols]}, **options)  # type: ignore[arg-type]
    found = read_symbols(ElfImage.parse(memoryview(data), "test"), table)
    return [] if found is None else [found.text(int(name)).decode() for name in found.name]


@pytest.mark.parametrize("is_64", [True, False])
@pytest.mark.parametrize("big", [True, False])
@pytest.mark.parametrize("table", [".symtab", ".dynsym"])
def test_types(is_64: bool, big: bool, table: str) -> None:
    """Functions, indirect functions and untyped labels count, and objects among code (rule R104)."""
    kinds = {"f": FUNC, "i": GNU_IFUNC, "n": NOTYPE, "o": OBJECT, "s": SECTION, "file": FILE, "c": COMMON, "t": TLS}
    symbols = [Symbol(name, 0x1000 + k, 1, kind) for k, (name, kind) in enumerate(kinds.items())]
    assert names(*symbols, table=table, is_64=is_64, big_endian=big) == ["f", "i", "n", "o"]


@pytest.mark.parametrize("sizes", [(0x900,), (0x500, 0x400), (0x1800,), (1 << 63,)])
def test_data_that_contains_code(sizes: tuple[int, ...]) -> None:
    """Data symbols that together span most of a section are no functions, as in Dart snapshots (rule R104)."""
    data = [Symbol(f"data{k}", 0x1000 + 0x500 * k, size, OBJECT) for k, size in enumerate(sizes)]
    assert names(*data, Symbol("f", 0x1100, 4)) == ["f"]
    assert names(*data, Symbol("f", 0x1100, 4), table=".dynsym") == ["f"]


def test_data_in_code() -> None:
    """Data symbols that span less of a section count, however often its bytes (rule R104)."""
    data = [Symbol(f"data{k}", 0x1000, 0x700, OBJECT) for k in range(4)]
    assert names(*data) == ["data0", "data1", "data2", "data3"]


@pytest.mark.parametrize("section", [UNDEF, ABS, COMMON_INDEX, ".data", 40])
def test_sections(section: str | int) -> None:
    """Undefined, absolute and common symbols, and those of data, are no code (rules R104, R105)."""
    for kind in (FUNC, NOTYPE, OBJECT):
        assert names(Symbol("f", 0x1000, 8, kind, section=section)) == []


NAMES = {
    "": False, "$a": False, "$d": False, "$t": False, "$x": False, "$a.1": False, "$x.foo": False, "$xrv64i2p1": False,
    "$additional": True, "$": True, "$b": True, "$dispatch": True, ".L12": False, ".Ltmp3": False, ".hidden": True,
    "__typeid__ZTS1A_global_addr": False, ".annobin_a.c": False, "__typeof": True, "main": True, "_": True,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    """Mapping symbols, temporaries and marks of compilers are no functions; names that only look so are (rule R106)."""
    assert names(Symbol(name, 0x1000, 4)) == ([name] if NAMES[name] else [])


def test_reserved_indices() -> None:
    """The first index that is reserved is no section, however many there are (rule R101)."""
    image = ElfImage.parse(memoryview(elf_file(SECTIONS)), "test")
    found = section_indices(image, np.array([1, 0xFEFF, 0xFF00, 0xFFF1, 0xFFFF], np.uint16), -1)
    assert found.tolist() == [1, 0xFEFF, 0, 0, 0]


def test_extended_indices() -> None:
    """Section indices may stand in a table of their own (rule R101)."""
    assert names(Symbol("f", 0x1000, 4, extended=True), Symbol("d", 0x8000, 4, section=".data", extended=True)) == ["f"]


def test_extended_indices_that_are_missing() -> None:
    """A symbol whose section stands in a table that is not there, or is too short, lies nowhere (rules R77, R101)."""
    escaped, plain = Symbol("f", 0x1000, 4, section=XINDEX), Symbol("g", 0x1010, 4)
    assert names(escaped, plain) == ["g"]
    data = elf_file(SECTIONS, symbols=[plain, escaped._replace(section=".text", extended=True)])
    image = ElfImage.parse(memoryview(data), "test")
    for count, expected in ((3, [b"g", b"f"]), (2, [b"g"]), (0, [b"g"])):
        image.sections = [
            each._replace(size=4 * count) if each.type == SHT_SYMTAB_SHNDX else each for each in image.sections
        ]
        found = read_symbols(image, ".symtab")
        assert found is not None
        assert [found.text(int(name)) for name in found.name] == expected


def test_source_files() -> None:
    """A local symbol has the FILE symbol before it, a global one none (rule R120)."""
    symbols = [
        Symbol("before", 0x1000, 1, binding=LOCAL),
        Symbol("a.c", type=FILE, binding=LOCAL, section=ABS),
        Symbol("in_a", 0x1010, 1, binding=LOCAL),
        Symbol("b.c", type=FILE, binding=LOCAL, section=ABS),
        Symbol("in_b", 0x1020, 1, binding=LOCAL),
        Symbol("", type=FILE, binding=LOCAL, section=ABS),
        Symbol("nowhere", 0x1030, 1, binding=LOCAL),
        Symbol("global", 0x1040, 1),
    ]
    found = read_symbols(ElfImage.parse(memoryview(elf_file(SECTIONS, symbols=symbols)), "test"), ".symtab")
    assert found is not None
    files = {found.text(int(n)): found.text(int(f)) if f else b"" for n, f in zip(found.name, found.file, strict=True)}
    assert files == {b"before": b"", b"in_a": b"a.c", b"in_b": b"b.c", b"nowhere": b"", b"global": b""}


@pytest.mark.parametrize(("machine", "expected"), [(ARM, 0x1000), (MIPS, 0x1000), (elf_writer.X86_64, 0x1001)])
def test_tagged_addresses(machine: int, expected: int) -> None:
    """Bit 0 of a function's address is no part of it where it marks another instruction set (rule R133)."""
    symbols = [Symbol("f", 0x1001, 8), Symbol("n", 0x1003, type=NOTYPE)]
    data = elf_file(SECTIONS, symbols=symbols, machine=machine, is_64=False)
    found = read_symbols(ElfImage.parse(memoryview(data), "test"), ".symtab")
    assert found is not None
    assert found.vaddr.tolist() == [expected, 0x1003]


@pytest.mark.parametrize("kind", [elf_writer.ET_EXEC, elf_writer.ET_DYN])
@pytest.mark.parametrize("big", [True, False])
def test_descriptors(kind: int, big: bool) -> None:
    """PPC64 ELFv1 symbols name descriptors, whose first word says where the code is (rule R134)."""
    words = [0x1010, 0x8000, 0, 0x1020, 0x8000, 0, 0x9999, 0x8000, 0]
    opd = b"".join(word.to_bytes(8, "big" if big else "little") for word in words)
    section = Section(".opd", opd, flags=ALLOC | WRITE, address=0x5000)
    symbols = [
        Symbol("f", 0x5000, 0x10, section=".opd"),
        Symbol("g", 0x5018, 0x8, section=".opd"),
        Symbol("nowhere", 0x5030, 8, section=".opd"),
        Symbol("cut", 0x5044, 8, section=".opd"),
        Symbol("below", 0x4FF8, 8, section=".opd"),
        Symbol("table", 0x5000, 8, OBJECT, section=".opd"),
        Symbol(".g", 0x1020, 8),
    ]
    data = elf_file([*SECTIONS, section], symbols=symbols, machine=elf_writer.PPC64, big_endian=big, kind=kind)
    found = read_symbols(ElfImage.parse(memoryview(data), "test"), ".symtab")
    assert found is not None
    rows = zip(found.name, found.vaddr, found.size, found.section_end, strict=True)
    assert [(found.text(int(n)), *map(int, rest)) for n, *rest in rows] == [
        (b"f", 0x1010, 0x10, 0x2000),
        (b"g", 0x1020, 8, 0x2000),
        (b".g", 0x1020, 8, 0x2000),
    ]


def test_no_descriptors() -> None:
    """In a debug file, which has no bytes of .opd, and on other machines there is nothing to follow (rule R134)."""
    symbol = Symbol("f", 0x5000, 0x10, section=".opd")
    empty = Section(".opd", type=elf_writer.NOBITS, flags=ALLOC | WRITE, address=0x5000, size=24)
    full = Section(".opd", (0x1010).to_bytes(8, "big") * 3, flags=ALLOC | WRITE, address=0x5000)
    for section, machine in ((empty, elf_writer.PPC64), (full, elf_writer.AARCH64)):
        data = elf_file([*SECTIONS, section], symbols=[symbol], machine=machine, big_endian=True)
        found = read_symbols(ElfImage.parse(memoryview(data), "test"), ".symtab")
        assert found is not None
        assert len(found) == 0


def test_descriptors_of_another_file() -> None:
    """The symbols of a debug file are resolved with the descriptors of its binary. Without these a symbol that has no
    size would reach over the functions that are not known, and is left out (rule R134)."""
    symbols = [Symbol("f", 0x5000, 0x10, section=".opd"), Symbol("stub", 0x1004, type=NOTYPE)]
    empty = Section(".opd", type=elf_writer.NOBITS, flags=ALLOC | WRITE, address=0x5000, size=24)
    full = Section(".opd", (0x1010).to_bytes(8, "big") * 3, flags=ALLOC | WRITE, address=0x5000)
    debug, binary = (
        ElfImage.parse(memoryview(elf_file(sections, symbols=rows, machine=elf_writer.PPC64, big_endian=True)), "test")
        for sections, rows in (([*SECTIONS, empty], symbols), ([*SECTIONS, full], ()))
    )
    found = read_symbols(debug, ".symtab", binary)
    assert found is not None
    assert [(found.text(int(n)), int(v)) for n, v in zip(found.name, found.vaddr, strict=True)] == [
        (b"f", 0x1010),
        (b"stub", 0x1004),
    ]
    layer = read_layer([debug, binary])
    assert [name.decode() for name in layer.names] == ["f", "stub"]
    alone = read_symbols(debug, ".symtab")
    assert alone is not None
    assert len(alone) == 0


def test_extended_indices_of_two_tables() -> None:
    """Each symbol table has its own table of section indices (rule R101)."""
    here, there = Symbol("f", 0x1000, 4, extended=True), Symbol("d", 0x8000, 4, section=".data", extended=True)
    data = elf_file(SECTIONS, symbols=[here, there], dynamic=[there, here])
    image = ElfImage.parse(memoryview(data), "test")
    for table in (".symtab", ".dynsym"):
        found = read_symbols(image, table)
        assert found is not None
        assert [found.text(int(name)) for name in found.name] == [b"f"]


def test_relocatable_symbols() -> None:
    """In an object file the value of a symbol is an offset into its section (rule R94); one outside is none."""
    sections = [elf_writer.text(0, 0x40), elf_writer.text(0, 0x20, ".text.hot")]
    symbols = [
        Symbol("f", 0, 8),
        Symbol("h", 0x10, section=".text.hot"),
        Symbol("end", 0x40),
        Symbol("outside", 0x41, 8),
        Symbol("far", (1 << 64) - 0x10, 0x100, section=".text.hot"),
    ]
    image = ElfImage.parse(memoryview(elf_file(sections, symbols=symbols, kind=elf_writer.ET_REL)), "test")
    found = read_symbols(image, ".symtab")
    assert found is not None
    end, hot = vaddr_in(image, ".text", 0x40), vaddr_in(image, ".text.hot", 0x20)
    assert found.vaddr.tolist() == [vaddr_in(image, ".text"), vaddr_in(image, ".text.hot", 0x10), end]
    assert found.section_end.tolist() == [end, hot, end]


def test_empty_tables() -> None:
    """No table, an empty one, and one without strings are no trouble."""
    assert read_symbols(ElfImage.parse(memoryview(elf_file(SECTIONS)), "test"), ".symtab") is None
    for link in ("", ".data"):
        data = elf_file([*SECTIONS, Section(".symtab", b"", elf_writer.SYMTAB, link=link)])
        found = read_symbols(ElfImage.parse(memoryview(data), "test"), ".symtab")
        assert found is None or len(found) == 0


@pytest.mark.parametrize("path", ["gcc-pie/libresonance.so", "clang-pie/libresonance.so", "aarch64/libresonance.so"])
@pytest.mark.parametrize("cut", [False, True])
def test_symbols_without_section_headers(path: str, cut: bool) -> None:
    """A file that lost its section headers still gives its exported functions (rule R102)."""
    whole = bytearray((BINARIES / path).read_bytes())
    expected = read_symbols(ElfImage.parse(memoryview(bytes(whole)), path), ".dynsym")
    if cut:
        del whole[-len(whole) // 3 :]
    else:
        whole[40:48] = bytes(8)
        whole[60:64] = bytes(4)
    found = read_symbols(ElfImage.parse(memoryview(bytes(whole)), path), ".dynsym")
    assert expected is not None
    assert found is not None
    names = {(expected.text(name), vaddr) for name, vaddr in zip(expected.name, expected.vaddr, strict=True)}
    assert {(found.text(name), vaddr) for name, vaddr in zip(found.name, found.vaddr, strict=True)} == names
    assert len(names) > 10


BLOOM = 77
CHAINS = [2, 9, 4, 6, 9, 1]
"""Hashes of the symbols from number 3 on: the lowest bit marks the last one of a chain."""


@pytest.mark.parametrize("is_64", [False, True])
@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize(
    ("words", "count"),
    [
        ({"hash": [1, 7, 0, 0]}, 7),
        ({"hash": [1, 7], "gnu": [1, 3, 0, 6, 3, *CHAINS]}, 7),
        ({"hash": [1]}, 0),
        ({"gnu": [2, 3, 0, 6, 3, 5, *CHAINS]}, 8),
        ({"gnu": [2, 3, 1, 6, BLOOM, 5, 3, *CHAINS]}, 8),
        ({"gnu": [1, 3, 0, 6, 3, *CHAINS]}, 5),
        ({"gnu": [1, 3, 0, 6, 0, *CHAINS]}, 3),
        ({"gnu": [1, 3, 0, 6, 2, *CHAINS]}, 3),
        ({"gnu": [1, 3, 0, 6, 3, 2, 4]}, 3),
        ({"gnu": [1, 3, 0, 6]}, 3),
        ({"gnu": [1, 3, 0]}, 0),
        ({}, 0),
    ],
)
def test_number_of_dynamic_symbols(words: dict[str, list[int]], count: int, is_64: bool, big_endian: bool) -> None:
    """Either hash table tells how many symbols there are (rule R102)."""
    order: Literal["big", "little"] = "big" if big_endian else "little"
    base, size = 0x1_0000, 8 if is_64 else 4
    tables, tags = b"", {}
    for name, tag in (("hash", 4), ("gnu", 0x6FFFFEF5)):
        if name in words:
            tags[tag] = base + 0x100 + len(tables)
            tables += b"".join(bytes(size) if word == BLOOM else word.to_bytes(4, order) for word in words[name])
    dynamic = b"".join(each.to_bytes(size, order) for pair in tags.items() for each in pair)
    raw = dynamic.ljust(0x100, b"\0") + tables
    segment = Segment(0, base, len(raw), len(raw), 0x1000, True)
    data = memoryview(raw)
    image = ElfImage("test", data, is_64, big_endian, "EM_X86_64", "ET_DYN", [segment], [], None, [], (0, len(dynamic)))
    assert symbol_count(image, dynamic_tags(image)) == count


@given(st.binary(max_size=400))
def test_any_dynamic_segment(raw: bytes) -> None:
    """Whatever the dynamic segment holds, reading it ends, with symbols or without."""
    segment = Segment(0, 0x1000, len(raw), len(raw), 0x1000, True)
    image = ElfImage("test", memoryview(raw), True, False, "EM_X86_64", "ET_DYN", [segment], [], None, [], (0, 64))
    read_symbols(image, ".dynsym")
