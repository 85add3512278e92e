"""ELF headers, sections, notes and compressed contents (rules R97–R103)."""

import struct
import zlib
from pathlib import Path

import pytest
import zstandard
from elftools.elf import enums
from elftools.elf.structs import ELFStructs
from hypothesis import given
from hypothesis import strategies as st

from symbolize.elf import ElfError, ElfImage, read_build_id, read_symbols
from symbolize.elf.headers import KINDS, USUAL_MACHINES, gnu_build_id, layouts_of, machine_name
from tests.support.elf_writer import (
    ALLOC,
    COMPRESSED,
    ET_REL,
    EXEC,
    NOBITS,
    NOTE,
    Section,
    Segment,
    Symbol,
    build_id_note,
    elf_file,
    text,
)

CONTENTS = b"some debug information " * 50


def parse(data: bytes) -> ElfImage:
    """An ELF file in memory."""
    return ElfImage.parse(memoryview(data), "test")


@pytest.mark.parametrize("is_64", [False, True])
@pytest.mark.parametrize("big", [False, True])
def test_layouts(is_64: bool, big: bool) -> None:
    """The headers have the fields that pyelftools knows, of the same names and at the same places."""
    structs = ELFStructs(little_endian=not big, elfclass=64 if is_64 else 32)
    structs.create_basic_structs()
    structs.create_advanced_structs()
    expected = (structs.Elf_Ehdr, structs.Elf_Phdr, structs.Elf_Shdr)
    for layout, structure in zip(layouts_of(is_64, big), expected, strict=True):
        assert layout.size == structure.sizeof()
        data = bytes(range(layout.size))
        fields = {field.name: field for field in structure.subcons if field.name != "e_ident"}
        at = 16 if len(fields) < len(layout.names) else 0
        for name, field in fields.items():
            width = field.sizeof()
            assert layout.parse(data)[name] == int.from_bytes(data[at : at + width], "big" if big else "little"), name
            at += width


def test_names_of_numbers() -> None:
    """Types of files and machines are called as pyelftools calls them, also machines that are not usual."""
    for names, known in ((KINDS, enums.ENUM_E_TYPE), (USUAL_MACHINES, enums.ENUM_E_MACHINE)):
        assert {number: known[name] for number, name in names.items()} == {number: number for number in names}
    assert (machine_name(62), machine_name(94), machine_name(0xFFFF)) == ("EM_X86_64", "EM_XTENSA", "")


def header(kind: int, size: int, is_64: bool = True, big: bool = False) -> bytes:
    """The header of an SHF_COMPRESSED section."""
    order = "big" if big else "little"
    word = (kind).to_bytes(4, order)
    if is_64:
        return word + bytes(4) + size.to_bytes(8, order) + (1).to_bytes(8, order)
    return word + size.to_bytes(4, order) + (1).to_bytes(4, order)


@pytest.mark.parametrize("is_64", [True, False])
@pytest.mark.parametrize("big", [True, False])
def test_compressed_sections(is_64: bool, big: bool) -> None:
    """zlib and zstd contents come out whole, with headers of either class and byte order (rule R97)."""
    packed = {1: zlib.compress(CONTENTS), 2: zstandard.compress(CONTENTS)}
    for kind, data in packed.items():
        section = Section(".debug_info", header(kind, len(CONTENTS), is_64, big) + data, flags=COMPRESSED)
        image = parse(elf_file([section], is_64=is_64, big_endian=big))
        assert image.contents(".debug_info") == CONTENTS
        assert image.problems == []


@pytest.mark.parametrize("big", [True, False])
def test_zdebug(big: bool) -> None:
    """.zdebug sections have a big-endian size in files of either byte order (rule R98)."""
    data = b"ZLIB" + len(CONTENTS).to_bytes(8, "big") + zlib.compress(CONTENTS)
    assert parse(elf_file([Section(".zdebug_info", data)], big_endian=big)).contents(".debug_info") == CONTENTS


ZLIB = zlib.compress(CONTENTS)
BAD = {
    "unknown type": (header(3, len(CONTENTS)) + ZLIB, "unknown compression type 3"),
    "cut header": (header(1, 8)[:20], "compression header is cut off"),
    "larger": (header(1, len(CONTENTS) + 1) + ZLIB, "does not expand to"),
    "smaller": (header(1, len(CONTENTS) - 1) + ZLIB, "does not expand to"),
    "absurd": (header(1, 1 << 60) + ZLIB, "claims to expand"),
    "ratio": (header(1, 1033 * len(ZLIB) + 100) + ZLIB, "claims to expand"),
    "cut": (header(1, len(CONTENTS)) + ZLIB[:10], "zlib"),
    "garbage": (header(1, len(CONTENTS)) + b"abcdefgh" * 9, "zlib stream is damaged"),
    "zstd garbage": (header(2, len(CONTENTS)) + b"abcdefgh" * 9, "zstd stream is damaged"),
    "zstd larger": (header(2, len(CONTENTS) + 1) + zstandard.compress(CONTENTS), "does not expand to"),
    "zstd cut": (header(2, len(CONTENTS)) + zstandard.compress(CONTENTS)[:20], "zstd"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_compression(bad: str) -> None:
    """A section that does not expand to what its header says is absent, and the problem says why (rule R99)."""
    data, problem = BAD[bad]
    sections = [Section(".debug_info", data, flags=COMPRESSED), Section(".debug_str", b"abc")]
    image = parse(elf_file(sections))
    assert image.contents(".debug_info") is None
    assert image.contents(".debug_str") == b"abc"
    assert len(image.problems) == 1
    assert problem in image.problems[0]
    assert ".debug_info" in image.problems[0]


def test_zstd_bomb() -> None:
    """A frame that expands far beyond its header is refused without being expanded (rule R99)."""
    bomb = zstandard.compress(bytes(1 << 28))
    image = parse(elf_file([Section(".debug_info", header(2, 1000) + bomb, flags=COMPRESSED)]))
    assert image.contents(".debug_info") is None


def test_escaped_section_count() -> None:
    """Section 0 may hold the number of sections and the index of their names (rule R101)."""
    image = parse(elf_file([Section(".debug_str", b"abc")], escaped_count=True))
    assert image.contents(".debug_str") == b"abc"


def test_section_out_of_bounds() -> None:
    """A section past the end of the file is absent, with a problem (rule R77)."""
    image = parse(elf_file([Section(".debug_str", b"abc", size=1 << 40), Section(".debug_info", b"i")]))
    assert image.contents(".debug_str") is None
    assert image.contents(".debug_info") == b"i"
    assert "past the end" in image.problems[0]


@pytest.mark.parametrize("big", [True, False])
@pytest.mark.parametrize("is_64", [True, False])
def test_build_id(is_64: bool, big: bool, tmp_path: Path) -> None:
    """The build id comes from a note segment, else from a note section, by both ways of reading it."""
    note = build_id_note(bytes(range(20)), big)
    for position, segments in enumerate(([], [Segment(0, len(note), 4, 0, 4)])):
        section = Section(".note.gnu.build-id", note, NOTE)
        data = elf_file([section], segments, is_64=is_64, big_endian=big)
        if segments:
            offset = data.index(note)
            data = elf_file([section], [Segment(0, len(note), 4, offset, 4)], is_64=is_64, big_endian=big)
        path = tmp_path / str(position)
        path.write_bytes(data)
        assert parse(data).build_id == bytes(range(20)).hex()
        assert read_build_id(str(path)) == bytes(range(20)).hex()


@pytest.mark.parametrize(("size", "kept"), [(0, False), (1, False), (2, True), (8, True), (64, True), (65, False)])
def test_build_id_lengths(size: int, kept: bool) -> None:
    """A build id has 2 to 64 bytes."""
    found = gnu_build_id(memoryview(build_id_note(bytes(size))), False)
    assert found == (bytes(size).hex() if kept else None)


def test_build_id_behind_other_notes() -> None:
    """Other notes, of any owner and padding, are passed over."""
    other = (
        (4).to_bytes(4, "little") + (5).to_bytes(4, "little") + (1).to_bytes(4, "little") + b"GNU\0" + b"abcde\0\0\0"
    )
    foreign = other.replace(b"GNU\0", b"XYZ\0")
    assert gnu_build_id(memoryview(foreign + other + build_id_note(b"\xab\xcd")), False) == "abcd"


@given(st.binary(max_size=80))
def test_notes_of_any_bytes(data: bytes) -> None:
    """Any bytes give a build id or none."""
    found = gnu_build_id(memoryview(data), False)
    assert found is None or 4 <= len(found) <= 128


@pytest.mark.parametrize("data", [b"", b"\x7fEL", b"MZ" + bytes(100), b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(20)])
def test_no_elf(data: bytes, tmp_path: Path) -> None:
    """What is no ELF file is an ElfError of one line that names the file."""
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ElfError) as caught:
        ElfImage.open(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_where_code_can_be() -> None:
    """Code is in executable sections that are loaded, neighbours and overlaps in one range; without section headers in
    executable segments (rule R54)."""
    code, top = ALLOC | EXEC, 1 << 64
    sections = [
        Section(".fini", flags=code, type=NOBITS, address=0x1130, size=0x10),
        Section(".text", flags=code, type=NOBITS, address=0x1000, size=0x100),
        Section(".plt", flags=code, type=NOBITS, address=0x1100, size=0x20),
        Section(".inner", flags=code, type=NOBITS, address=0x1010, size=0x10),
        Section(".empty", flags=code, type=NOBITS, address=0x2000),
        Section(".unloaded", flags=EXEC, type=NOBITS, address=0x3000, size=0x10),
        Section(".data", flags=ALLOC, type=NOBITS, address=0x4000, size=0x10),
        Section(".last", flags=code, type=NOBITS, address=top - 0x10, size=0x10),
        Section(".beyond", flags=code, type=NOBITS, address=top - 0x8, size=0x10),
    ]
    begins, ends = parse(elf_file(sections, [Segment(0x8000, 0x100)])).code_ranges
    assert begins.tolist() == [0x1000, 0x1130, top - 0x10]
    assert ends.tolist() == [0x1120, 0x1140, top - 1]
    segments = [Segment(0x8000, 0x100), Segment(0x9000, 0x100, flags=6), Segment(0x7000, 0, 5)]
    begins, ends = parse(elf_file((), segments, section_headers=False)).code_ranges
    assert (begins.tolist(), ends.tolist()) == ([0x8000], [0x8100])


@pytest.mark.parametrize(
    ("names", "is_module"),
    [
        ([".note", ".text", ".init.text", ".gnu.linkonce.this_module"], True),
        ([".text", ".init.text"], False),
        ([".init.text", ".text", ".gnu.linkonce.this_module"], False),
        ([".init.text", ".gnu.linkonce.this_module"], False),
        ([".gnu.linkonce.this_module"], False),
    ],
)
def test_code_of_a_kernel_module(names: list[str], is_module: bool) -> None:
    """A kernel module is known by the section that describes it, and placed if `.text` is its first code (rule R96)."""
    sections = [Section(".empty", flags=ALLOC | EXEC)]
    sections += [Section(name, bytes(16), flags=ALLOC | (EXEC if name.endswith("text") else 0)) for name in names]
    found = parse(elf_file(sections, kind=ET_REL)).module_text
    assert (found is not None and found.name == ".text") == is_module == (found is not None)
    assert parse(elf_file(sections)).module_text is None


def test_part_of_a_file(tmp_path: Path) -> None:
    """An ELF file within another one is read where it lies, if it is all there."""
    data = elf_file([Section(".debug_str", b"abc")])
    path = tmp_path / "archive"
    path.write_bytes(bytes(4096) + data)
    with ElfImage.open_part(str(path), 4096, len(data), "member") as image:
        assert image.contents(".debug_str") == b"abc"
        assert (image.path, image.modified_ns) == ("member", path.stat().st_mtime_ns)
    for offset, size in ((4096, len(data) + 1), (-1, 10), (4096, 0), (1 << 63, 10), (0, 8192 + len(data))):
        with pytest.raises(ElfError, match=r"member.*past the end"):
            ElfImage.open_part(str(path), offset, size, "member")


def test_tiny_section_headers() -> None:
    """A header that puts thousands of sections on the same bytes is refused, not read thousands of times."""
    data = bytearray(elf_file([Section(".debug_str", b"abc")]))
    data[58:62] = (0).to_bytes(2, "little") + (0xFFFF).to_bytes(2, "little")
    try:
        assert len(parse(bytes(data)).sections) < 10
    except ElfError:
        pass


def test_a_bad_section_header_costs_one_section() -> None:
    """A symbol table that is linked to no strings is of no use; the sections around it are."""
    symbols = [Symbol("f", 0x1000, 8)]
    data = bytearray(elf_file([text(), Section(".debug_str", b"abc")], dynamic=symbols))
    image = parse(bytes(data))
    place = struct.unpack_from("<Q", data, 40)[0] + 64 * [s.name for s in image.sections].index(".dynsym")
    struct.pack_into("<I", data, place + 40, 9999)
    broken = parse(bytes(data))
    assert broken.contents(".debug_str") == b"abc"
    assert read_symbols(broken, ".dynsym") is None
    assert len(broken.sections) == len(image.sections)
