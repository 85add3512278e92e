"""The quick look at a file, against pyelftools."""

import time
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from symbolize.elf import ElfError, ElfImage, identify, read_build_id
from symbolize.elf.probe import CODE, MAX_SECTION_BYTES, OFFERS, read_link
from tests.support.elf_writer import (
    ALLOC,
    COMPRESSED,
    EXEC,
    NOBITS,
    Section,
    Segment,
    Symbol,
    build_id_note,
    elf_file,
    text,
)
from tests.support.fixture_files import BINARIES, PARTS

REAL = sorted(path for folder in (BINARIES, PARTS) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", REAL, ids=lambda path: "-".join(path.parts[-2:]))
def test_real_files(path: Path) -> None:
    """Type, build id, offers and links are what pyelftools reads."""
    ident = identify(str(path))
    with path.open("rb") as stream:
        if stream.read(4) != b"\x7fELF":
            assert ident is None
            return
        file = ELFFile(stream)
        assert ident is not None
        assert ident.kind == {"ET_REL": 1, "ET_EXEC": 2, "ET_DYN": 3}[file["e_type"]]
        offers, build_id = 0, ""
        for section in file.iter_sections():
            if section["sh_type"] != "SHT_NOBITS":
                offers |= OFFERS.get(section.name.encode(), 0)
            if isinstance(section, NoteSection):
                build_id = next(
                    (n["n_desc"] for n in section.iter_notes() if n["n_type"] == "NT_GNU_BUILD_ID"), build_id
                )
        code = [s for s in file.iter_sections() if s["sh_flags"] & (ALLOC | EXEC) == ALLOC | EXEC and s["sh_size"]]
        if any(section["sh_type"] != "SHT_NOBITS" for section in code):
            offers |= CODE
        assert ident.offers == offers
        assert ident.build_id == build_id
        link = file.get_section_by_name(".gnu_debuglink")
        if link is None:
            assert ident.link == b""
        else:
            data = link.data()
            assert ident.link == data.partition(b"\0")[0]
            assert ident.link_check == int.from_bytes(data[-4:], "little" if file.little_endian else "big")
        alternate = file.get_section_by_name(".gnu_debugaltlink")
        assert ident.alternate == (b"" if alternate is None else alternate.data())
    with ElfImage.open(path) as image:
        assert (image.build_id or "") == ident.build_id
        assert image.has_code == bool(offers & CODE)


@pytest.mark.parametrize("is_64", [False, True], ids=["32", "64"])
@pytest.mark.parametrize("big_endian", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("escaped", [False, True], ids=["short", "many sections"])
@pytest.mark.parametrize("name", OFFERS)
def test_offers(name: bytes, is_64: bool, big_endian: bool, escaped: bool, tmp_path: Path) -> None:
    """Each kind of section is seen in all classes and byte orders, not where it has no bytes (rule R101)."""
    path = tmp_path / "x"

    def offers(*sections: Section) -> int:
        data = elf_file(sections, is_64=is_64, big_endian=big_endian, escaped_count=escaped)
        path.write_bytes(data)
        ident = identify(str(path))
        assert ident is not None
        return ident.offers

    assert offers(Section(name.decode(), b"xx")) == OFFERS[name]
    assert offers(Section(name.decode(), b"xx", flags=COMPRESSED)) == OFFERS[name]
    assert offers(Section(name.decode(), type=NOBITS, size=9)) == 0
    assert offers(Section(".rela" + name.decode(), b"xx"), Section(name.decode() + "x", b"xx")) == 0


def test_symbol_tables_and_code(tmp_path: Path) -> None:
    """Symbols and bytes of code count; a debug file has none of the latter."""
    path = tmp_path / "x"
    path.write_bytes(elf_file([text()], [Segment(0x1000, 0)], [Symbol("f")]))
    ident = identify(str(path))
    assert ident is not None
    assert ident.offers == OFFERS[b".symtab"]
    path.write_bytes(elf_file([], [Segment(0x1000, 64)], section_headers=False))
    ident = identify(str(path))
    assert ident is not None
    assert ident.offers == CODE


@pytest.mark.parametrize("is_64", [False, True], ids=["32", "64"])
@pytest.mark.full
def test_every_cut_and_every_byte(is_64: bool, tmp_path: Path) -> None:
    """However a file is cut or changed in one place, the look answers or raises ElfError."""
    whole = elf_file(
        [text(), Section(".gnu_debuglink", b"x.debug\0\1\2\3\4"), Section(".note", b"\0" * 20, 7)],
        [Segment(0x1000, 64)],
        is_64=is_64,
    )
    path = tmp_path / "x"
    damaged = [whole[:length] for length in range(0, len(whole), 3)]
    damaged += [whole[:i] + bytes([v]) + whole[i + 1 :] for i in range(len(whole)) for v in (0, 0x7F, 0xFF)]
    for data in damaged:
        path.write_bytes(data)
        try:
            identify(str(path))
        except ElfError as error:
            assert str(error).startswith(f"{path}: ")


def test_crowded_headers_are_bounded(tmp_path: Path) -> None:
    """Thousands of headers that all name the same long notes or names cost no more than a few reads."""
    path = tmp_path / "x"
    notes = bytes(12) * 80_000
    sections = [Section(f".s{number}", b"", 7) for number in range(3000)]
    data = bytearray(elf_file([Section(".notes", notes, 7), *sections]))
    table = int.from_bytes(data[40:48], "little")
    first = table + 64
    for number in range(2, 3000):
        data[table + 64 * number + 24 : table + 64 * number + 40] = data[first + 24 : first + 40]
    path.write_bytes(data)
    started = time.process_time()
    ident = identify(str(path))
    assert ident is not None
    assert ident.build_id == ""
    assert time.process_time() - started < 2


@pytest.mark.parametrize("count", [MAX_SECTION_BYTES // 64, MAX_SECTION_BYTES // 64 + 1, 1 << 40])
def test_absurd_number_of_sections(count: int, tmp_path: Path) -> None:
    """A table of sections that is absurdly large is left out; one that is cut off is an error, of a file that tells no
    build id elsewhere."""
    path = tmp_path / "x"
    note = build_id_note(bytes(range(20)))
    for has_note in (False, True):
        segments = [Segment(0, len(note), 4, 64 + 56, 4)] if has_note else []
        data = bytearray(elf_file([Section("n", note)], segments, escaped_count=True))
        data[64 + 56 : 64 + 56 + len(note)] = note
        table = int.from_bytes(data[40:48], "little")
        data[table + 32 : table + 40] = count.to_bytes(8, "little")
        path.write_bytes(data)
        if count * 64 > MAX_SECTION_BYTES or has_note:
            assert read_build_id(str(path)) == (bytes(range(20)).hex() if has_note else "")
        else:
            with pytest.raises(ElfError, match="past the end"):
                identify(str(path))


@pytest.mark.parametrize(
    ("data", "link"),
    [
        (b"a\0\0\0\1\2\3\4", (b"a", 0x04030201)),
        (b"abc\0\1\2\3\4", (b"abc", 0x04030201)),
        (b"abcd\0\0\0\0\1\2\3\4more", (b"abcd", 0x04030201)),
        (b"abcd\0\0\0\0\1\2\3", (b"", 0)),
        (b"\0\0\0\0\1\2\3\4", (b"", 0)),
        (b"", (b"", 0)),
    ],
)
def test_links(data: bytes, link: tuple[bytes, int]) -> None:
    """A name, padding to four bytes, and a checksum."""
    assert read_link(data, big_endian=False) == link


def test_device_is_no_elf_file(tmp_path: Path) -> None:
    """Devices and folders are not read on and on."""
    assert identify("/dev/zero") is None
    with pytest.raises(OSError, match="directory"):
        identify(str(tmp_path))
    (tmp_path / "empty").touch()
    assert identify(str(tmp_path / "empty")) is None
