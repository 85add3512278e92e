"""Relocatable files: virtual bases and relocated contents (rules R93–R95)."""

import re
import struct
import subprocess
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from elftools.elf import enums
from hypothesis import given
from hypothesis import strategies as st

from symbolize.elf import ElfImage
from symbolize.elf.crel import read_crel
from symbolize.elf.relocate import TYPES, Effect, section_reader
from tests.support.elf_writer import (
    AARCH64,
    ABS,
    ALLOC,
    COMPRESSED,
    CREL,
    ET_REL,
    EXEC,
    LOONGARCH,
    NOBITS,
    REL,
    RELA,
    RISCV,
    S390,
    X86_64,
    Section,
    Symbol,
    elf_file,
)
from tests.support.line_writer import uleb
from tests.support.lookup import vaddr_in
from tests.support.needs import find
from tests.support.relocations import MACHINES, VALUES, Machine, Reloc, crel, table_bytes

TEXT = Section(".text", bytes(0x40), flags=ALLOC | EXEC, alignment=16)
HOT = Section(".text.hot", bytes(0x20), flags=ALLOC | EXEC, alignment=64)
SYMBOLS = [Symbol("f", 0x10, 4), Symbol("h", 0x4, 4, section=".text.hot"), Symbol("a", 0x7, section=ABS)]
MASK64 = (1 << 64) - 1


def object_file(contents: bytes, relocs: Sequence[Reloc] | bytes, machine: Machine, kind: int = 0) -> ElfImage:
    """An object file whose .debug_info has these contents and relocations."""
    raw = relocs if isinstance(relocs, bytes) else table_bytes(relocs, machine)
    kind = kind or (RELA if machine.rela else REL)
    sections = [TEXT, HOT, Section(".debug_info", contents)]
    sections.append(Section(".rela.debug_info", raw, kind, link=".symtab", info=".debug_info"))
    data = elf_file(
        sections, symbols=SYMBOLS, is_64=machine.is_64, big_endian=machine.big, machine=machine.number, kind=ET_REL
    )
    return ElfImage.parse(memoryview(data), "test.o")


def relocated(image: ElfImage) -> bytes:
    """The relocated contents of .debug_info."""
    return bytes(section_reader(image)(".debug_info") or b"")


def base(image: ElfImage, section: str = ".text") -> int:
    """The virtual base of a section."""
    return vaddr_in(image, section)


DISTANCES = {
    "x86-64": {2: 4, 24: 8},
    "i386": {2: 4},
    "aarch64": {260: 8, 261: 4},
    "arm": {3: 4},
    "riscv": {57: 4},
    "loongarch": {99: 4},
    "ppc64": {26: 4, 44: 8},
    "mips": {248: 4},
    "s390": {5: 4, 23: 8},
}


@pytest.mark.parametrize("name", MACHINES)
def test_values(name: str) -> None:
    """Fields become symbol plus addend, which stands in the field where the relocation has none (rule R93)."""
    machine = MACHINES[name]
    order = "big" if machine.big else "little"
    for number, size in VALUES[name].items():
        addend = 0x12
        field = bytes(size) if machine.rela else addend.to_bytes(size, order)  # type: ignore[arg-type]
        junk = bytes([0xEE]) * size if machine.rela else field  # a field with an addend outside is overwritten
        contents = b"\x55" * 3 + junk + b"\x55" * 5
        image = object_file(contents, [Reloc(3, number, 2, addend if machine.rela else 0)], machine)
        value = (base(image, ".text.hot") + 4 + addend) % (1 << 8 * size)
        assert relocated(image) == b"\x55" * 3 + value.to_bytes(size, order) + b"\x55" * 5  # type: ignore[arg-type]
        assert image.problems == []


@pytest.mark.parametrize("name", DISTANCES)
def test_distances(name: str) -> None:
    """Fields that are relative to their place get the distance from there; debug sections lie at 0 (rule R93)."""
    machine = MACHINES[name]
    order = "big" if machine.big else "little"
    for number, size in DISTANCES[name].items():
        image = object_file(bytes(16), [Reloc(4, number, 1)], machine)
        value = (base(image) + 0x10 - 4) % (1 << 8 * size)
        assert relocated(image)[4 : 4 + size] == value.to_bytes(size, order)  # type: ignore[arg-type]


UNNAMED = {"EM_X86_64": {32, 33}, "EM_AARCH64": {0, 1}, "EM_MIPS": {248}, "EM_PPC": {78}, "EM_S390": {52}}
"""Types of which pyelftools has no names: sizes of symbols, R_AARCH64_P32_ABS32, R_MIPS_PC32, thread-local offsets."""


UNKNOWN = {"EM_68K": 4, "EM_AMDGPU": 224, "EM_AVR": 83, "EM_MSP430": 105, "EM_QDSP6": 164, "EM_RISCV": 243}
UNKNOWN |= {"EM_SPARC": 2, "EM_SPARC32PLUS": 18, "EM_SPARCV9": 43}
"""Machines of whose types pyelftools has no names, and their numbers."""


def check_types(machine: str, names: dict[int, str]) -> None:
    """Compare the types of a machine with the names that its processor supplement gives them."""
    sums = {"ADD": Effect.ADD, "SUB": Effect.SUBTRACT, "DISTANCE": Effect.DISTANCE, "": Effect.VALUE}
    checked = 0
    for number, kind in TYPES[machine].items():
        name = names.get(number, "")
        if kind.effect is Effect.NONE:
            assert re.search("NONE|TLS|DTP|RELAX|DIFF|^$", name), (number, name)
        elif kind.effect in sums.values() and name not in ("", "TARGET1"):
            bits = re.findall("8|16|32|64", name)
            assert bits, name
            assert (kind.size, name) == (int(bits[-1]) // 8, name)
            operation = "DISTANCE" if re.search("PC|REL|DISP", name) else name.rstrip("0123456789")
            assert kind.effect is sums.get(operation, Effect.VALUE), name
            checked += 1
    assert checked >= 2
    assert all(TYPES[machine][number].effect is Effect.NONE for number, name in names.items() if name == "NONE")
    assert TYPES[machine].keys() - names.keys() <= UNNAMED.get(machine, set())


@pytest.mark.parametrize("machine", sorted(TYPES.keys() - UNKNOWN.keys()))
def test_types_by_name(machine: str) -> None:
    """The names that the processor supplements give types tell sizes, and whether a distance is meant (rule R93)."""
    suffix = {"X86_64": "x64", "386": "i386", "S390": "S390X"}.get(machine[3:], machine[3:])
    prefix = re.compile(r"R_(X86_64|[A-Z0-9]+)_")
    known = getattr(enums, f"ENUM_RELOC_TYPE_{suffix}", None)
    if known is None:
        pytest.skip(f"this pyelftools has no relocations of {machine}: pip install --upgrade pyelftools")
    check_types(machine, {number: prefix.sub("", name, 1) for name, number in known.items()})


@pytest.mark.needs("llvm-readobj-19")
@pytest.mark.parametrize("machine", sorted(UNKNOWN.keys() - {"EM_RISCV"}))
def test_types_by_llvm(machine: str, tmp_path: Path) -> None:
    """Types of which pyelftools has no names are what LLVM calls them (rule R93)."""
    number, is_64 = UNKNOWN[machine], machine in ("EM_AMDGPU", "EM_SPARCV9")
    relocs = [Reloc(kind, kind) for kind in TYPES[machine]]
    made = Machine(number if machine != "EM_SPARC32PLUS" else UNKNOWN["EM_SPARC"], is_64)
    raw = Section(
        ".rela.debug_info",
        table_bytes(relocs, made),
        RELA,
        link=".symtab",
        info=".debug_info",
        entry_size=12 + 12 * is_64,
    )
    sections = [TEXT, Section(".debug_info", bytes(0x100)), raw]
    path = tmp_path / "test.o"
    path.write_bytes(elf_file(sections, symbols=SYMBOLS[:1], is_64=is_64, machine=made.number, kind=ET_REL))
    out = subprocess.run([find("llvm-readobj-19"), "-r", path], capture_output=True, text=True, check=True).stdout
    check_types(machine, {int(at, 16): name for at, name in re.findall(r"0x(\w+) R_[A-Z0-9]+_(\S+)", out)})


def test_negative_addends() -> None:
    """An addend may be negative."""
    image = object_file(bytes(8), [Reloc(0, 1, 1, -0x10)], Machine(X86_64))
    assert int.from_bytes(relocated(image), "little") == base(image)


def test_sums() -> None:
    """RISC-V and LoongArch write differences as pairs that add to a field and subtract from it (rule R93)."""
    for number, widths in (
        (RISCV, {8: (36, 40), 4: (35, 39), 2: (34, 38), 1: (33, 37)}),
        (LOONGARCH, {8: (51, 56), 4: (50, 55), 2: (48, 53), 1: (47, 52)}),
    ):
        for size, (add, subtract) in widths.items():
            relocs = [Reloc(0, add, 1, 0x22), Reloc(0, subtract, 1, 2)]
            for each in (relocs, relocs[::-1]):
                image = object_file((3).to_bytes(size, "little"), each, Machine(number))
                assert int.from_bytes(relocated(image), "little") == 0x23


@pytest.mark.parametrize(("number", "types"), [(RISCV, (53, 52)), (LOONGARCH, (105, 106))])
def test_six_bits(number: int, types: tuple[int, int]) -> None:
    """Pairs of 6 bits leave the upper two alone (rule R93)."""
    image = object_file(b"\xc0", [Reloc(0, types[0], 1, 0x1F), Reloc(0, types[1], 1, 4)], Machine(number))
    assert relocated(image) == bytes([0xC0 | 0x1B])


@pytest.mark.parametrize(("number", "types"), [(RISCV, (60, 61)), (LOONGARCH, (107, 108))])
@pytest.mark.parametrize(("difference", "width"), [(0, 1), (0x1C, 1), (0x1C, 3), (0x1234, 2), (0x1234, 4)])
def test_leb_pairs(number: int, types: tuple[int, int], difference: int, width: int) -> None:
    """A LEB128 number keeps its length, even where one of its two symbols alone would not fit (rule R93)."""
    contents = uleb(0, width) + b"\x7f"
    image = object_file(contents, [Reloc(0, types[0], 1, difference), Reloc(0, types[1], 1)], Machine(number))
    assert relocated(image) == uleb(difference, width) + b"\x7f"


def test_leb_without_end() -> None:
    """A LEB128 number that is cut off is left."""
    image = object_file(b"\x80\x80", [Reloc(0, 60, 1, 5)], Machine(RISCV))
    assert relocated(image) == b"\x80\x80"


def test_unknown_types() -> None:
    """Types that nobody knows are left and named once; the others are applied (rule R93)."""
    relocs = [Reloc(0, 99), Reloc(0, 99), Reloc(0, 98), Reloc(0, 97), Reloc(0, 96), Reloc(8, 1), Reloc(0, 0)]
    image = object_file(bytes(16), relocs, Machine(X86_64))
    relocated(image)
    assert int.from_bytes(relocated(image), "little") == (base(image) + 0x10) << 64
    assert image.problems == [
        "section .debug_info: relocations of unknown type 96, 97, 98 and 1 more (X86_64) are left"
    ]


def test_thread_local_offsets() -> None:
    """Offsets of thread-local variables do not concern code and are no problem."""
    for number, kind in ((X86_64, 17), (AARCH64, 1029), (RISCV, 9), (S390, 53)):
        machine = Machine(number, big=number == S390)
        image = object_file(bytes(8), [Reloc(0, kind)], machine)
        assert relocated(image) == bytes(8)
        assert image.problems == []


@pytest.mark.parametrize(
    "bad", [Reloc(9, 1), Reloc(1 << 63, 1), Reloc(MASK64, 1), Reloc(0, 1, 4), Reloc(0, 1, 1 << 31)]
)
def test_out_of_bounds(bad: Reloc) -> None:
    """A place outside of the section and a symbol that is not there are left, with a problem (rule R77)."""
    image = object_file(bytes(16), [bad, Reloc(8, 1)], Machine(X86_64))
    assert int.from_bytes(relocated(image), "little") == (base(image) + 0x10) << 64
    assert image.problems == ["section .debug_info: relocations out of bounds are left"]


def test_field_at_the_end() -> None:
    """A field may end with its section, and not reach past it (rule R77)."""
    for size, offset, fits in ((8, 0, True), (8, 1, False), (9, 1, True), (7, 0, False)):
        image = object_file(bytes(size), [Reloc(offset, 1)], Machine(X86_64))
        assert any(relocated(image)) == fits == (image.problems == [])


def test_without_symbols() -> None:
    """Relocations whose symbol table is not there are left, those without a symbol too (rule R77)."""
    raw = table_bytes([Reloc(0, 1, 0, 5)], Machine(X86_64))
    sections = [TEXT, Section(".debug_info", bytes(8)), Section(".rela.debug_info", raw, RELA, info=".debug_info")]
    image = ElfImage.parse(memoryview(elf_file(sections, kind=ET_REL)), "test.o")
    assert relocated(image) == bytes(8)
    assert image.problems == ["section .debug_info: relocations out of bounds are left"]


def test_absolute_and_undefined_symbols() -> None:
    """Absolute symbols have their value, undefined ones none."""
    image = object_file(bytes(16), [Reloc(0, 1, 3, 1), Reloc(8, 1, 0, 5)], Machine(X86_64))
    assert relocated(image) == struct.pack("<QQ", 8, 5)


def test_linked_files_are_not_relocated() -> None:
    """A linker that keeps relocations has applied them."""
    machine = Machine(X86_64)
    sections = [TEXT, Section(".debug_info", bytes(8))]
    raw = table_bytes([Reloc(0, 1)], machine)
    sections.append(Section(".rela.debug_info", raw, RELA, link=".symtab", info=".debug_info"))
    symbols = [Symbol("f", 0x10, 4)]
    image = ElfImage.parse(memoryview(elf_file(sections, symbols=symbols)), "test")
    assert relocated(image) == bytes(8)


def test_extended_indices() -> None:
    """The sections of symbols may stand in a table of their own, here too (rule R101)."""
    machine = Machine(X86_64)
    raw = table_bytes([Reloc(0, 1)], machine)
    sections = [TEXT, HOT, Section(".debug_info", bytes(8))]
    sections.append(Section(".rela.debug_info", raw, RELA, link=".symtab", info=".debug_info"))
    symbols = [Symbol("h", 4, section=".text.hot", extended=True)]
    image = ElfImage.parse(memoryview(elf_file(sections, symbols=symbols, kind=ET_REL)), "test")
    assert int.from_bytes(relocated(image), "little") == base(image, ".text.hot") + 4


def types_apart(*pieces: tuple[bytes, Sequence[Reloc]], packed: bool = False) -> ElfImage:
    """An object file with several sections called .debug_info, whose symbols are 1, 2 and so on."""
    machine, sections = Machine(X86_64), [TEXT]
    for number, (contents, relocs) in enumerate(pieces):
        data = struct.pack("<IIQQ", 1, 0, len(contents), 1) + zlib.compress(contents) if packed else contents
        name = f".debug_info{number}"
        sections.append(Section(name, data, flags=COMPRESSED if packed else 0))
        sections.append(Section(f".rela{number}", table_bytes(relocs, machine), RELA, link=".symtab", info=name))
    symbols = [Symbol("", section=f".debug_info{number}") for number in range(len(pieces))]
    data = elf_file(sections, symbols=symbols, kind=ET_REL)
    for number in range(len(pieces)):
        data = data.replace(b".debug_info%d\0" % number, b".debug_info\0\0")
    return ElfImage.parse(memoryview(data), "test.o")


@pytest.mark.parametrize("packed", [False, True])
def test_several_sections_of_one_name(packed: bool) -> None:
    """Shared types lie in sections of their own, which a linker would join; references follow (rule R93)."""
    first, second = (bytes(8), [Reloc(0, 1, 2, 3)]), (bytes(12), [Reloc(4, 1, 1, 1)])
    image = types_apart(first, second, packed=packed)
    assert relocated(image) == struct.pack("<QIQ", 8 + 3, 0, 1)
    assert image.problems == []


def test_sections_on_top_of_each_other() -> None:
    """Many sections over the same bytes cannot make a small file expand without bound (rule R77)."""
    data = bytearray(elf_file([TEXT, *[Section(".debug_info", bytes(1000))] * 200], kind=ET_REL))
    image = ElfImage.parse(memoryview(bytes(data)), "test.o")
    table = struct.unpack_from("<Q", data, 40)[0]
    first = image.sections[2].file_offset
    for index in range(2, 202):
        struct.pack_into("<QQ", data, table + 64 * index + 24, 64, first + 100_000)
    image = ElfImage.parse(memoryview(bytes(data)), "test.o")
    assert len(relocated(image)) <= len(data)
    assert image.problems[0].startswith("section .debug_info: left out")


@pytest.mark.parametrize(("size", "is_short"), [(0x40, True), (0x5000, True), (0x9000, False)])
@pytest.mark.parametrize("number", [83, 105])
def test_bases_of_short_addresses(number: int, size: int, is_short: bool) -> None:
    """AVR and MSP430 may have addresses of two bytes, in which all bases fit if the sections do (rule R94)."""
    sections = [Section(name, bytes(size), flags=ALLOC | EXEC) for name in (".text", ".text.hot")]
    image = ElfImage.parse(memoryview(elf_file(sections, kind=ET_REL, is_64=False, machine=number)), "test")
    loaded = [(s.vaddr, s.vaddr + s.size) for s in image.sections if s.is_code]
    assert size < loaded[0][0] < loaded[0][1] < loaded[1][0]
    assert (loaded[1][1] < 1 << 16) == is_short


def test_bases() -> None:
    """Loaded sections lie apart, aligned, and above every offset; others lie nowhere (rule R94)."""
    sections = [
        Section(".text", bytes(5), flags=ALLOC | EXEC),
        Section(".data", flags=ALLOC, type=NOBITS, size=0x123456, alignment=32),
        Section(".comment", bytes(9)),
        Section(".text", bytes(7), flags=ALLOC | EXEC, alignment=4096),
        Section(".huge", flags=ALLOC | EXEC, type=NOBITS, size=1 << 63),
    ]
    for is_64 in (True, False):
        chosen = sections if is_64 else sections[:-1]
        image = ElfImage.parse(memoryview(elf_file(chosen, kind=ET_REL, is_64=is_64)), "test")
        loaded = [(s.vaddr, s.vaddr + s.size) for s in image.sections if s.flags & ALLOC]
        assert len(loaded) == 3
        assert loaded[0][0] > 0x123456
        assert all(end < begin for (_, end), (begin, _) in pairwise(loaded))
        assert loaded[1][0] % 32 == loaded[2][0] % 4096 == 0
        assert [len(column) for column in image.code_ranges] == [2, 2]


U32 = st.integers(0, (1 << 32) - 1)
RELOCS = st.lists(st.builds(Reloc, st.integers(0, 1 << 61), U32, U32, st.integers(-(1 << 62), 1 << 62)), max_size=8)


@given(RELOCS, st.booleans(), st.integers(0, 3))
def test_crel(relocs: list[Reloc], addends: bool, shift: int) -> None:
    """A stream of differences gives the relocations back (rule R95)."""
    ordered = [reloc._replace(offset=reloc.offset >> shift << shift) for reloc in sorted(relocs)]
    offset, symbol, kind, addend, has_addend = read_crel(crel(ordered, addends, shift))
    found = list(zip(offset.tolist(), kind.tolist(), symbol.tolist(), addend.tolist(), strict=True))
    assert found == [(o, t, s, a & MASK64 if addends else 0) for o, t, s, a in ordered]
    assert has_addend is addends


@given(st.binary(max_size=60))
def test_crel_of_any_bytes(data: bytes) -> None:
    """Any bytes give relocations or a ValueError."""
    try:
        columns = read_crel(data)
    except ValueError:
        return
    assert len({len(column) for column in columns[:4]}) == 1


def test_relocations_in_crel() -> None:
    """CREL sections are applied like others, with addends or with those in the fields (rule R95)."""
    relocs = [Reloc(0, 1, 1, 8), Reloc(8, 1, 2, -4)]
    image = object_file(bytes(16), crel(relocs, shift=3), Machine(X86_64), CREL)
    expected = struct.pack("<QQ", base(image) + 0x18, base(image, ".text.hot"))
    assert relocated(image) == expected
    image = object_file(struct.pack("<QQ", 8, MASK64 - 3), crel(relocs, False), Machine(X86_64), CREL)
    assert relocated(image) == expected


@pytest.mark.parametrize("raw", [b"", b"\xff\xff\xff\x7f", crel([Reloc(0, 1), Reloc(8, 1)])[:-2]])
def test_bad_crel(raw: bytes) -> None:
    """A stream that is cut off leaves its section as it is, with a problem (rule R95)."""
    image = object_file(bytes(16), raw, Machine(X86_64), CREL)
    assert relocated(image) == bytes(16)
    assert [".rela.debug_info" in problem for problem in image.problems] == [True]
