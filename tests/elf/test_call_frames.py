"""Where FDEs say that functions begin and end (for rules R109, R111 and R112)."""

import random
import re
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.elf import ElfImage
from symbolize.elf.call_frames import frame_ranges, read_frames
from symbolize.elf.dynamic import file_offset
from tests.support.eh_frame import ABSOLUTE, RELATIVE, Frames, eh_frame
from tests.support.elf_writer import ALLOC, NOBITS, Section, elf_file, text

BINARIES = Path(__file__).parents[2] / "fixtures" / "bin"
RANGES = [(0x1000, 0x40), (0x1080, 0x10), (0x1040, 0x30)]
EXPECTED = [(0x1000, 0x1040), (0x1040, 0x1070), (0x1080, 0x1090)]
AT = 0x4000


def ranges_of(contents: bytes, **options: bool) -> list[tuple[int, int]]:
    """The FDEs of a file with one code section, 0x1000 to 0x2000."""
    section = Section(".eh_frame", contents, flags=ALLOC, address=AT)
    image = ElfImage.parse(memoryview(elf_file([text(), section], **options)), "test")  # type: ignore[arg-type]
    begin, end = frame_ranges(image)
    return list(zip(begin.tolist(), end.tolist(), strict=True))


@pytest.mark.parametrize("is_64", [True, False])
@pytest.mark.parametrize("big", [True, False])
def test_encodings(is_64: bool, big: bool) -> None:
    """Addresses are absolute or relative to their place, of 2, 4 or 8 bytes or LEB128, signed or not (rule R109)."""
    kinds = [0x00, 0x01, 0x02, 0x03, 0x04, 0x0A, 0x0B, 0x0C]
    encodings: list[int | None] = [None, *kinds, *(RELATIVE | kind for kind in (0x00, 0x04, 0x09, 0x0A, 0x0B, 0x0C))]
    for encoding in encodings:
        for version in (1, 3):
            for group in (Frames(RANGES, encoding, version), Frames(RANGES, encoding, version, wide=True)):
                contents = eh_frame([group], AT, is_64=is_64, big_endian=big)
                assert ranges_of(contents, is_64=is_64, big_endian=big) == EXPECTED, hex(encoding or 0)


@pytest.mark.parametrize(
    ("version", "register"), [(1, b"\x10"), (1, b"\x90"), (1, b"\xff"), (3, b"\x10"), (3, b"\x90\x01")]
)
def test_return_registers(version: int, register: bytes) -> None:
    """The number of the return register is a byte in version 1 and LEB128 since, however large it is."""
    group = Frames(RANGES, 0x04, version)
    cie = bytearray(eh_frame([group._replace(ranges=[])], AT))
    whole = eh_frame([group], AT)
    at = cie.rindex(b"\x10")
    cie[at : at + 1] = register
    cie[:4] = struct.pack("<I", len(cie) - 4)
    fdes = bytearray(whole[len(whole) - 25 * len(RANGES) :])
    for i in range(len(RANGES)):
        fdes[25 * i + 4 : 25 * i + 8] = struct.pack("<I", len(cie) + 25 * i + 4)
    assert ranges_of(bytes(cie + fdes)) == EXPECTED


@pytest.mark.parametrize(
    ("kind", "begin", "size", "wanted"),
    [
        (0x02, 0x9000, 0x8000, 0x9000),
        (0x03, 0x9000_0000, 0x8000_0000, 0x9000_0000),
        (0x0A, 0x9000, 0x4000, 0xFFFF_FFFF_FFFF_9000),
        (0x0B, 0x9000_0000, 0x4000_0000, 0xFFFF_FFFF_9000_0000),
        (0x0A, 0x7FFF, 0x9000, 0x7FFF),
        (0x04, 1 << 63, 0x10, 1 << 63),
        (0x0C, 1 << 63, 0x10, 1 << 63),
    ],
)
def test_upper_half(kind: int, begin: int, size: int, wanted: int) -> None:
    """Only signed numbers are extended by their sign, and sizes have none (rule R109)."""
    begins, ends, _ = read_frames(eh_frame([Frames([(begin, size)], kind)], AT), AT, 8, False)
    assert (begins.tolist(), ends.tolist()) == ([wanted], [wanted + size])


def test_several_cies() -> None:
    """Each FDE follows its own CIE; those with a personality routine and padding between entries do no harm."""
    first, second = Frames(RANGES[:1], RELATIVE | 0x0B, personality=True), Frames(RANGES[1:], ABSOLUTE | 0x04)
    contents = eh_frame([first, second], AT)
    assert ranges_of(contents) == EXPECTED
    assert ranges_of(contents + bytes(4)) == EXPECTED
    head = eh_frame([first], AT) + bytes(4)
    assert ranges_of(head + eh_frame([second], AT + len(head))) == EXPECTED


@pytest.mark.parametrize(
    "group",
    [
        Frames([(0x1200, 0x10)], 0x30 | 0x0B),  # relative to something else
        Frames([(0x1200, 0x10)], 0x80 | RELATIVE | 0x0B),  # indirect
        Frames([(0x1200, 0x10)], 0x05),  # no such size
        Frames([(0x1200, 0x10)], version=7),
        Frames([(0x1200, 0x10)], augmentation=b"eh"),
        Frames([(0x1200, 0x10)], augmentation=b"z" + b"S" * 40),
        Frames([(0x1200, 0)]),
        Frames([(0x8000, 0x10)]),  # no code
        Frames([(0x1200, (1 << 64) - 0x1000)], ABSOLUTE | 0x04),
    ],
)
def test_entries_that_say_nothing(group: Frames) -> None:
    """What cannot be read, or is no range of code, is left out and costs its neighbours nothing."""
    head = (
        eh_frame([group], AT)
        if group.encoding != 0x05
        else eh_frame([group._replace(encoding=0x04)], AT).replace(b"\x01\x04", b"\x01\x05")
    )
    assert ranges_of(head + eh_frame([Frames(RANGES)], AT + len(head))) == EXPECTED


@pytest.mark.parametrize("kind", [0x05, 0x06, 0x07])
def test_sizes_that_there_are_none_of(kind: int) -> None:
    """Numbers of an unknown size are not guessed, even where the entry would have the bytes."""
    head = eh_frame([Frames([], 0x04)], AT).replace(b"\x01\x04", bytes([1, kind]))
    size = 1 << (kind - 1)
    body = (
        struct.pack("<I", len(head) + 4) + (0x1200).to_bytes(size, "little") + (0x10).to_bytes(size, "little") + b"\0"
    )
    assert ranges_of(head + struct.pack("<I", len(body)) + body) == []


def test_no_frames() -> None:
    """A file without the section, or whose section has no bytes, has no FDEs."""
    image = ElfImage.parse(memoryview(elf_file([text()])), "test")
    assert [len(column) for column in frame_ranges(image)] == [0, 0]
    section = Section(".eh_frame", type=NOBITS, flags=ALLOC, size=64)
    image = ElfImage.parse(memoryview(elf_file([text(), section])), "test")
    assert [len(column) for column in frame_ranges(image)] == [0, 0]


def test_flags_before_the_encoding() -> None:
    """Letters that are flags do not hide what is behind them (rule R306)."""
    for letters in (b"zBR", b"zGR", b"zSR"):
        assert ranges_of(eh_frame([Frames(RANGES, augmentation=letters)], AT)) == EXPECTED


def test_entries_of_other_layouts() -> None:
    """Segment selectors and aligned addresses are not read (rule R306)."""
    sound = eh_frame([Frames(RANGES, 0x04, version=3)], AT)
    head = bytes(4) + b"\x04zR\0\x08%c\x01\x78\x10\x01\x04"
    for selector, expected in ((0, EXPECTED), (1, [])):
        cie = head % selector
        cie = struct.pack("<I", len(cie)) + cie
        at = struct.unpack("<I", sound[:4])[0] + 4
        fdes = bytearray(sound[at:])
        for i in range(len(RANGES)):  # each is 25 bytes long
            fdes[25 * i + 4 : 25 * i + 8] = struct.pack("<I", len(cie) + 25 * i + 4)
        assert ranges_of(cie + bytes(fdes)) == expected
    contents = eh_frame([Frames(RANGES, 0x04, personality=True)], AT)
    assert ranges_of(contents.replace(b"\x9b", b"\x1b", 1)) == EXPECTED
    assert ranges_of(contents.replace(b"\x9b", b"\x5b", 1)) == []


def test_where_loaded_frames_end() -> None:
    """Where other data follow a zero ends the walk (rule R305)."""
    head = eh_frame([Frames(RANGES[:1])], AT) + bytes(4)
    contents = head + eh_frame([Frames(RANGES[1:])], AT + len(head))
    assert [len(read_frames(contents, AT, 8, False, False, has_end)[0]) for has_end in (True, False)] == [3, 1]


def test_short_entries() -> None:
    """Addresses of a byte each make the shortest entries, all of which are read."""
    ranges = [(i % 100 + 1, 5) for i in range(200)]
    begin, end, _ = read_frames(eh_frame([Frames(ranges, 0x01)], AT), AT, 8, False)
    assert list(zip(begin.tolist(), end.tolist(), strict=True)) == [(begin, begin + size) for begin, size in ranges]


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("path", ["gcc-pie/spectra", "clang-nopie-dwarf4-lld/ledger", "aarch64/libresonance.so"])
def test_without_section_headers(path: str) -> None:
    """PT_GNU_EH_FRAME leads to the FDEs of a file without section headers (rule R305)."""
    data = bytearray((BINARIES / path).read_bytes())
    expected = [column.tolist() for column in frame_ranges(ElfImage.parse(memoryview(bytes(data)), "whole"))]
    data[40:48], data[60:64] = bytes(8), bytes(4)  # e_shoff, e_shnum, e_shstrndx
    image = ElfImage.parse(memoryview(data), "stripped")
    assert image.sections == []
    assert [column.tolist() for column in frame_ranges(image)] == expected
    assert len(expected[0]) > 20
    assert image.frame_header is not None
    at = file_offset(image, image.frame_header)
    assert at is not None
    for place, value in ((at, 2), (at + 1, 0x3B), (at + 1, 0xFF), (at + 7, 0x70)):
        damaged = bytearray(data)
        damaged[place] = value
        assert len(frame_ranges(ElfImage.parse(memoryview(damaged), "damaged"))[0]) == 0


@given(st.binary(max_size=200), st.booleans(), st.sampled_from([4, 8]))
def test_any_bytes(data: bytes, big: bool, size: int) -> None:
    """Any bytes give ranges that are not empty, no more than there is room for."""
    begin, end, _ = read_frames(data, AT, size, big)
    assert (begin < end).all()
    assert len(begin) <= len(data) // 10


@given(st.integers(0, 1 << 32), st.integers(1, 8))
def test_damaged(seed: int, count: int) -> None:
    """Damaged sections are read to some end."""
    contents = bytearray(eh_frame([Frames(RANGES, personality=True), Frames(RANGES, 0x04)], AT))
    dice = random.Random(seed)
    for _ in range(count):
        contents[dice.randrange(len(contents))] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
    begin, end, _ = read_frames(bytes(contents), AT, 8, False)
    assert (begin < end).all()


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("path", ["gcc-pie/spectra", "clang-nopie-dwarf4-lld/ledger", "aarch64/libresonance.so"])
def test_real_files(path: str) -> None:
    """The FDEs of real files are those that readelf shows."""
    command = ["readelf", "--debug-dump=frames", "--wide", BINARIES / path]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    expected = {(int(a, 16), int(b, 16)) for a, b in re.findall(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", shown)}
    with ElfImage.open(BINARIES / path) as image:
        begin, end = frame_ranges(image)
    assert set(zip(begin.tolist(), end.tolist(), strict=True)) == expected
    assert len(expected) > 20


def test_entries_that_are_no_cie() -> None:
    """An FDE that refers to another FDE says nothing, though that has what a CIE would."""
    sound = eh_frame([Frames(RANGES, 0x04)], AT)
    at = struct.unpack("<I", sound[:4])[0] + 4
    for back in (0, at + 4):  # of the second entry: it is a CIE, or an FDE of the first
        second = sound[:4] + struct.pack("<I", back) + sound[8:at]
        fdes = bytearray(sound[at:])
        for i in range(len(RANGES)):
            fdes[25 * i + 4 : 25 * i + 8] = struct.pack("<I", len(second) + 25 * i + 4)
        assert ranges_of(sound[:at] + second + fdes) == (EXPECTED if back == 0 else [])
