"""Mini debug info: the symbols in .gnu_debugdata (rule R113)."""

import lzma

import pytest

from symbolize.elf import ElfImage
from symbolize.elf.symbols import MINI_LIMITS, mini_image
from symbolize.symbols import Binary
from tests.support.elf_writer import AARCH64, ALLOC, ARM, Section, Symbol, elf_file, text
from tests.support.lookup import TEXT, frames_at, image_of

MINI = [Symbol("hidden", 0x1010, 8), Symbol("export", 0x1000, 8)]
EXPORTS = [Symbol("export", 0x1000, 8)]


def packed(data: bytes) -> Section:
    """A .gnu_debugdata section."""
    return Section(".gnu_debugdata", lzma.compress(data, preset=0))


def mini_file(**options: object) -> bytes:
    """An ELF file that has only the symbols of MINI."""
    return elf_file([text()], symbols=MINI, **options)  # type: ignore[arg-type]


def names(image: ElfImage) -> list[str]:
    """The names at the two functions and between them."""
    return [frames[0].name if frames else "" for frames in frames_at(image, 0x1000, 0x1008, 0x1010)]


def test_united() -> None:
    """Exported symbols come from .dynsym, the others from the compressed file (rule R113)."""
    image = image_of(sections=[TEXT, packed(mini_file())], dynamic=EXPORTS)
    assert names(image) == ["export", "", "hidden"]
    assert not Binary([image]).is_stripped
    assert image.problems == []


def test_united_with_a_symbol_table() -> None:
    """A file that kept a part of .symtab is united with the compressed file too (rule R113)."""
    image = image_of(sections=[TEXT, packed(mini_file())], symbols=[Symbol("kept", 0x1000, 8)])
    assert names(image) == ["kept", "", "hidden"]


def test_big_endian() -> None:
    """Files of other classes and byte orders have it as well."""
    options = {"is_64": False, "big_endian": True, "machine": ARM}
    image = image_of(sections=[TEXT, packed(mini_file(**options))], **options)
    assert names(image) == ["export", "", "hidden"]


GOOD = lzma.compress(mini_file())
BAD = {
    "no xz": (b"garbage, not xz", "xz stream is damaged"),
    "damaged": (GOOD[:60] + bytes([GOOD[60] ^ 0xFF]) + GOOD[61:], "xz stream is damaged"),
    "cut off": (GOOD[:-20], "cut short"),
    "empty": (b"", "not an ELF file"),
    "bomb": (lzma.compress(bytes(1 << 24)), "as only a bomb does"),
    "no ELF file": (lzma.compress(b"text"), "not an ELF file"),
    "another machine": (lzma.compress(mini_file(machine=AARCH64)), "another kind of file"),
    "cut off inside": (lzma.compress(mini_file()[:30]), "unreadable ELF header"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad(bad: str) -> None:
    """Data that are no ELF file of this kind, or too large, cost themselves only (rule R99)."""
    data, problem = BAD[bad]
    image = image_of(sections=[TEXT, Section(".gnu_debugdata", data)], dynamic=EXPORTS)
    assert names(image) == ["export", "", ""]
    assert [problem in text and ".gnu_debugdata" in text for text in image.problems] == [True]


def test_bytes_behind_the_stream() -> None:
    """They are no concern of ours: the stream holds what is looked for (R113, mini debug info)."""
    image = image_of(sections=[TEXT, Section(".gnu_debugdata", GOOD + b"behind")], dynamic=EXPORTS)
    assert mini_image(image) is not None
    assert image.problems == []


def test_size_limit() -> None:
    """What expands further than symbol tables do is refused (rule R99)."""
    filler = Section(".comment", bytes(1 << 20), flags=ALLOC)
    data = lzma.compress(elf_file([text(), filler], symbols=MINI))
    assert MINI_LIMITS.most(len(data)) < 1 << 20
    assert mini_image(image_of(sections=[TEXT, Section(".gnu_debugdata", data)])) is None


def test_only_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside DWARF with all symbols the compressed file is not looked at."""
    from symbolize.symbols import elf_symbols

    monkeypatch.setattr(elf_symbols, "mini_image", lambda image: pytest.fail("decompressed"))
    sections = [TEXT, packed(mini_file()), Section(".debug_info", bytes(4))]
    image = image_of(sections=sections, symbols=[Symbol("kept", 0x1000, 8)])
    assert names(image) == ["kept", "", ""]
