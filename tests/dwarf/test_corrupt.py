"""Damaged files: nothing but ElfError, no hang, and a bad part costs no more than itself (rules R69, R77)."""

import random
import time
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.cursor import COMPILED
from symbolize.elf import ElfError, ElfImage
from symbolize.symbols import build_table
from tests.support.dwarf_corpus import FORMATS, small_file
from tests.support.elf_writer import Section, Symbol, elf_file
from tests.support.lookup import TEXT, frames_of
from tests.support.seeds import examples, seeds

VADDRS = [0, 4, 0x1000, 0x1010, 0x1014, 0x1020, 0x1100, 0x1200, 0x2000]
FILES = [small_file(fmt) for fmt in FORMATS]
SECONDS = 5
"""Of processor time: more than any file of a few kilobytes takes, on any machine."""
SCALE = 2 if COMPILED else 1


def look_up(data: bytes) -> None:
    """Build the table for some addresses and for all, and look up; ElfError is the only way out."""
    start = time.process_time()
    try:
        with ElfImage.parse(memoryview(data), "damaged") as image:
            frames_of(build_table([image], np.array(VADDRS, np.uint64)), VADDRS)
            frames_of(build_table([image]), VADDRS)
    except ElfError as error:
        assert "\n" not in str(error)
    assert time.process_time() - start < SECONDS


def test_sound_file() -> None:
    """The files that are damaged below are sound to begin with."""
    for data in FILES:
        image = ElfImage.parse(memoryview(data), "sound")
        table = build_table([image])
        assert table.problems == []
        assert image.build_id == bytes(range(20)).hex()
        names = [[frame.name for frame in frames] for frames in frames_of(table, [0x1000, 0x1010, 0x1100])]
        assert names == [["f.cold"], ["n::c::g", "f.cold"], ["n::c::g"]]


@pytest.mark.parametrize("numbers", seeds(300))
def test_flipped_bytes(numbers: Sequence[int]) -> None:
    """Bytes that are flipped, set to extremes or swapped for others do no harm."""
    for number in numbers if COMPILED else numbers[:30]:
        chance = random.Random(number)
        data = bytearray(chance.choice(FILES))
        for _ in range(chance.choice((1, 1, 2, 8, 64))):
            place = chance.randrange(len(data))
            data[place] = chance.choice(
                (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256), data[place] ^ 1 << chance.randrange(8))
            )
        look_up(bytes(data))


@pytest.mark.parametrize("number", range(len(FILES)))
@pytest.mark.parametrize("numbers", seeds(120))
def test_cut_files(number: int, numbers: Sequence[int]) -> None:
    """A file may end anywhere. Without its section headers, which come last, nothing of its sections is read, so that
    few ends are enough; of one in which they come first, more are tried."""
    data = small_file(FORMATS[number], headers_first=True)
    begin = ElfImage.parse(memoryview(data), "sound").sections[1].file_offset
    for part in numbers if COMPILED else numbers[:20]:
        look_up(data[: begin + (len(data) - begin) * part // 120 + number])
        if part % 4 == 0:
            look_up(FILES[number][: len(FILES[number]) * part // 120 + number])


@pytest.mark.parametrize("numbers", seeds(150))
def test_each_byte(numbers: Sequence[int]) -> None:
    """Bytes all over a file, each flipped once."""
    for part in numbers if COMPILED else numbers[:20]:
        damaged = bytearray(FILES[0])
        place = len(damaged) * part // 150
        damaged[place] ^= 0xFF
        look_up(bytes(damaged))


SECTIONS = ["info", "abbrev", "line", "ranges", "rnglists", "addr", "str_offsets", "str", "line_str"]


@examples(20 * SCALE)
@given(st.dictionaries(st.sampled_from(SECTIONS), st.binary(max_size=120)), st.sampled_from([8, 4]), st.booleans())
def test_random_sections(contents: dict[str, bytes], size: int, big: bool) -> None:
    """Sections of any bytes do no harm."""
    sections = [TEXT, *(Section(f".debug_{name}", data) for name, data in contents.items())]
    look_up(elf_file(sections, is_64=size == 8, big_endian=big))


@examples(20 * SCALE)
@given(st.data())
def test_random_section_among_sound_ones(data: st.DataObject) -> None:
    """A section of which a stretch is replaced by any bytes does no harm."""
    raw = bytearray(data.draw(st.sampled_from(FILES)))
    start = data.draw(st.integers(0, len(raw) - 1))
    replacement = data.draw(st.binary(min_size=1, max_size=40))
    raw[start : start + len(replacement)] = replacement
    look_up(bytes(raw))


@examples(20 * SCALE)
@given(st.binary(max_size=200))
def test_random_bytes_behind_a_header(data: bytes) -> None:
    """Any bytes behind an ELF magic do no harm."""
    look_up(b"\x7fELF" + data)


def test_symbols_of_any_values() -> None:
    """Symbols with extreme values, sizes, names and sections do no harm."""
    extremes = [0, 1, 0x1000, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    symbols = [
        Symbol(f"s{v}", v, s, k, b, ".text") for v in extremes for s in extremes for k in (0, 2, 10) for b in (0, 1, 15)
    ]
    symbols += [Symbol("odd", 0x1000, 8, section=index) for index in (0, 50, 0xFF00, 0xFFFF)]
    look_up(elf_file([TEXT], symbols=symbols, dynamic=symbols))


@pytest.mark.full
def test_memory_is_bounded() -> None:
    """Counts and sizes that a damaged header claims are not allocated."""
    for number, data in enumerate(FILES):
        chance = random.Random(100 + number)
        tracemalloc.start()
        for _ in range(8):
            damaged = bytearray(data)
            for _ in range(4):
                place = chance.randrange(len(damaged) - 8)
                damaged[place : place + 8] = chance.choice((b"\xff" * 8, b"\xff\xff\xff\x7f" * 2, b"\0\0\0\x10" * 2))
            look_up(bytes(damaged))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 64 << 20
