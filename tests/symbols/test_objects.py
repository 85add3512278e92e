"""Object files of many machines: their frames, and the same frames once they are linked (rules R93–R95)."""

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from symbolize.elf import ElfImage
from symbolize.symbols import Binary, build_table
from tests.support.dwarf_writer import function
from tests.support.elf_writer import ALLOC, COMPRESSED, ET_DYN, ET_REL, EXEC, Section, Symbol
from tests.support.lookup import TEXT, Frame, frames_at, frames_of, image_of, names_at, vaddr_in
from tests.support.needs import find
from tests.support.programs import unit
from tools.llvm.compare_llvm import ask_llvm

OBJECTS = sorted((Path(__file__).parents[2] / "fixtures" / "bin" / "objects").glob("*.o"))
UNLINKED = {"bpf", "bpf-big", "m68k", "sparc"}
"""Object files of machines for which lld does not link."""
SOURCE = "/src/walk/walk.c"
DECLARED = {"total": 12, "walk": 22, "walk_once": 26, "settle": 30, "choose": 36}
INLINING = {"total": {15, 17}, "walk": {23}, "settle": {32}}
"""The lines on which `damped` is called."""


@pytest.fixture(params=OBJECTS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    """Each of the object files."""
    found: Path = request.param
    return found


def functions(path: Path) -> list[tuple[str, str, int, int]]:
    """Name, section, offset and size of each function, as the symbol table has it."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        names = [section.name for section in elf.iter_sections()]
        found = []
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            if symbol["st_info"]["type"] == "STT_FUNC":
                place = names[symbol["st_shndx"]], symbol["st_value"] & ~1, symbol["st_size"]
                found.append((symbol.name, *place))
    return found


def test_frames(path: Path) -> None:
    """Every byte of every function has its name, file and lines, and what is inlined in it (rules R55, R93, R94)."""
    with ElfImage.open(path) as image:
        for name, section, offset, size in functions(path):
            first = vaddr_in(image, section, offset)
            if section == ".opd":  # descriptors of PPC64, which only a linker fills in
                continue
            frames = frames_at(image, *range(first, first + size))
            assert {stack[-1].name for stack in frames} == {name}
            assert {frame.file for stack in frames for frame in stack} == {SOURCE}
            assert {stack[-1].start_line for stack in frames} == {DECLARED[name]}
            damped = [stack[1] for stack in frames if stack[0].name == "damped"]
            assert all(caller.line in INLINING[caller.name] for caller in damped)
            assert damped or name not in INLINING
        assert image.problems == []


@pytest.mark.needs("ld.lld-19", "llvm-symbolizer-19")
@pytest.mark.parametrize("path", [path for path in OBJECTS if path.stem not in UNLINKED], ids=lambda path: path.stem)
def test_linked(path: Path, tmp_path: Path) -> None:
    """A linker that puts the sections where their virtual bases are makes a file with the very same frames."""
    linked, script = tmp_path / "linked", tmp_path / "script"
    with ElfImage.open(path) as image:
        code = [section for section in image.sections if section.is_code and section.size]
        vaddrs = [section.vaddr + offset for section in code for offset in range(section.size)]
        ours = frames_of(build_table([image], np.array(vaddrs, np.uint64)), vaddrs)
    places = "".join(f"{section.name} {section.vaddr:#x} : {{ *({section.name}) }}\n" for section in code)
    script.write_text(f"SECTIONS {{\n{places}}}\n")
    options = ["-e", "0", "--no-relax", "--unresolved-symbols=ignore-all"]
    subprocess.run([find("ld.lld-19"), *options, "-T", script, "-o", linked, path], check=True, capture_output=True)
    theirs = ask_llvm(linked, vaddrs)
    different = [(our, their) for our, their in zip(ours, theirs, strict=True) if our != their]
    # Between functions llvm-symbolizer extends the row before.
    assert [pair for pair in different if pair[0] or len(pair[1]) > 1 or pair[1][0].name] == []


CODE = [Section(name, bytes(0x40), flags=ALLOC | EXEC) for name in (".text", ".text.hot")]


def test_unrelocated_code_is_dead() -> None:
    """What no relocation fills in is no address of the file, not even 0 (rule R56)."""
    image = image_of([unit(function("f", 0, 0x10))], CODE, kind=ET_REL)
    first = vaddr_in(image, ".text")
    assert names_at(image, 0, 8, first, first + 8) == [[], [], [], []]


def test_code_at_zero() -> None:
    """In a linked file address 0 is an address like others (rule R55)."""
    code = Section(".text", bytes(0x40), flags=ALLOC | EXEC)
    image = image_of([unit(function("f", 0, 0x10))], [code], [Symbol("g", 0x10, 8)])
    assert names_at(image, 0, 0xF, 0x10, 0x18) == [["f"], ["f"], ["g"], []]


def test_only_needed_sections_are_decompressed() -> None:
    """Sections that lookups do not need may be corrupt, because they are never decompressed (rule R100)."""
    broken = struct.pack("<IIQQ", 1, 0, 1000, 1) + b"no zlib"
    names = ("loclists", "macro", "names", "aranges", "pubnames", "frame")
    extra = [Section(f".debug_{name}", broken, flags=COMPRESSED) for name in names]
    for kind in (ET_REL, ET_DYN):
        image = image_of([unit(function("f", 0x1000, 0x10))], [TEXT, *extra], kind=kind)
        assert build_table([image]).problems == []


def test_files_with_other_sections() -> None:
    """A second file of a module is used only if its sections lie where those of the first do (rule R94)."""
    symbols = [Symbol("f", 0, 0x10)]
    first = image_of(sections=CODE, symbols=symbols, kind=ET_REL)
    same = image_of(sections=CODE, symbols=[Symbol("g", 0x20, 0x10)], kind=ET_REL)
    longer = image_of(sections=[CODE[0], CODE[1]._replace(data=bytes(0x50))], symbols=symbols, kind=ET_REL)
    linked = image_of(sections=CODE, symbols=symbols)
    binary = Binary([first, same, longer, linked])
    assert binary.images == [first, same]
    assert first.problems == ["test has other sections and is not used"]
    vaddr = vaddr_in(first, ".text", 0x20)
    assert frames_of(binary.table(), [vaddr]) == [[Frame("g")]]
