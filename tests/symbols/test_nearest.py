"""The nearest earlier line for addresses without one (rule R170)."""

import zlib
from pathlib import Path

import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.symbols import Binary, lookup_nearest
from symbolize.symbols.answer import MAX_STEPS
from tests.support.dwarf_writer import die, function, inlined
from tests.support.elf_writer import AARCH64, ARM, PPC64, RISCV, S390, X86_64, Symbol
from tests.support.fixture_files import BINARIES
from tests.support.interpreted import run
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import image_of
from tests.support.programs import unit

ORIGINS = [die("subprogram", name=name, label=name) for name in "gh"]
FILES = [("a.cc", 0), ("b.cc", 0)]
Place = tuple[list[str], str, int, int, bool]


def nearest(image: ElfImage, *vaddrs: int) -> list[Place]:
    """Names, then place of the innermost frame and whether it is approximate; by a table for these and the whole."""
    asked = np.array(vaddrs, np.uint64)
    whole = Binary([image])
    whole.table()
    answers = []
    for binary in (Binary([image]), whole):
        _, frames, approximate = lookup_nearest(binary, asked)
        places: list[Place] = []
        for k, (first, last) in enumerate(zip(frames.offsets[:-1].tolist(), frames.offsets[1:].tolist(), strict=True)):
            called = frames.functions
            names = [(called.linkage[i] or called.name[i]).decode() for i in frames.function[first:last].tolist()]
            file = frames.files[frames.file[first]].decode() if last > first and frames.file[first] >= 0 else ""
            line, column = (int(frames.line[first]), int(frames.column[first])) if last > first else (0, 0)
            places.append((names, file, line, column, bool(approximate[k])))
        answers.append(places)
    assert answers[0] == answers[1]
    return answers[0]


def lines_at(image: ElfImage, *vaddrs: int) -> list[tuple[int, bool]]:
    """The line at each address and whether it is approximate."""
    return [(line, approximate) for _, _, line, _, approximate in nearest(image, *vaddrs)]


def test_earlier_line() -> None:
    """File, line and column of the nearest earlier row; rows with a line keep it (rule R170)."""
    rows = sequence((0x1000, 5, 1, 9), (0x1008, 7, 0, 3), (0x1010, 0, 1), (0x1020, 8), end=0x1030)
    image = image_of([unit(function("f", 0x1000, 0x30), lines=Lines(rows, files=FILES))])
    assert nearest(image, 0x1007, 0x1010, 0x101F, 0x1020) == [
        (["f"], "/src/b.cc", 5, 9, False),
        (["f"], "/src/a.cc", 7, 3, True),
        (["f"], "/src/a.cc", 7, 3, True),
        (["f"], "/src/b.cc", 8, 0, False),
    ]


def test_gaps_of_the_line_table() -> None:
    """Where the line table says nothing at all, the line before the gap answers as well (rule R170)."""
    image = image_of([unit(function("f", 0x1000, 0x30), lines=Lines(sequence((0x1000, 5), end=0x1010)))])
    assert lines_at(image, 0x100F, 0x1018) == [(5, False), (5, True)]


def test_the_walk_ends_with_the_function() -> None:
    """A line of the function before is none of this one, also where the two touch (rule R170)."""
    rows = sequence((0x1000, 5), (0x1010, 0), (0x1018, 7), end=0x1020)
    functions = [function("f", 0x1000, 0x10), function("k", 0x1010, 0x10)]
    assert lines_at(image_of([unit(*functions, lines=Lines(rows))]), 0x1010, 0x1018) == [(0, False), (7, False)]


def test_the_walk_ends_at_a_gap_between_parts() -> None:
    """What lies behind a foreign piece of code is not looked at, though it belongs to the function (rule R170)."""
    rows = sequence((0x1000, 5), (0x1010, 6), (0x1020, 0), end=0x1030)
    cut = die("subprogram", name="f", linkage_name="f", ranges=[(0x1000, 0x1010), (0x1020, 0x1030)])
    image = image_of([unit(cut, function("k", 0x1010, 0x10), lines=Lines(rows))])
    assert lines_at(image, 0x1028) == [(0, False)]


def test_inline_stack_stays() -> None:
    """Only a line of the same inline stack counts; the walk passes over others, and no name changes (rule R170)."""
    rows = sequence((0x1000, 5), (0x1010, 20), (0x1018, 0), (0x1020, 0), (0x1028, 9), (0x1030, 0), end=0x1040)
    g, h = inlined("g", [(0x1010, 0x1020)], line=2), inlined("h", [(0x1030, 0x1038)], line=3)
    image = image_of([unit(function("f", 0x1000, 0x40, g, h), *ORIGINS, lines=Lines(rows))])
    found = nearest(image, 0x1018, 0x1020, 0x1030, 0x1038)
    assert [(names, line, approximate) for names, _, line, _, approximate in found] == [
        (["g", "f"], 20, True),
        (["f"], 5, True),
        (["h", "f"], 0, False),
        (["f"], 9, True),
    ]


@pytest.mark.parametrize(
    ("machine", "step", "is_64"),
    [(X86_64, 1, True), (AARCH64, 4, True), (ARM, 2, False), (S390, 2, True), (RISCV, 2, True), (PPC64, 4, True)],
)
def test_reach(machine: int, step: int, is_64: bool) -> None:
    """The walk goes back 128 of the smallest instructions of the processor, no farther (rule R170)."""
    end, last = 0x1010, 0x1010 - step
    far = last + MAX_STEPS * step
    fmt = Format(address_size=8 if is_64 else 4)
    lines = Lines(sequence((0x1000, 5), (end, 0), end=0x2000), format=fmt)
    image = image_of([unit(function("f", 0x1000, 0x1000), fmt=fmt, lines=lines)], machine=machine)
    # A call site lies inside its call.
    assert lines_at(image, far, far + step - 1, far + step) == [(5, True), (5, True), (0, False)]


def test_without_lines() -> None:
    """A symbol alone has no line to be found, and an address in nothing stays without frames (rule R170)."""
    image = image_of(symbols=[Symbol("s", 0x1000, 0x10)])
    assert nearest(image, 0x1008, 0x1010) == [(["s"], "", 0, 0, False), ([], "", 0, 0, False)]


def test_first_address() -> None:
    """The walk back does not run below address 0 (rule R170)."""
    image = image_of([unit(function("f", 0x1000, 8), lines=Lines(sequence((0x1000, 0), end=0x1008)))])
    assert lines_at(image, 0x1000) == [(0, False)]


def test_not_a_second_visit() -> None:
    """Walking back is part of one lookup, and no reason to read all of a binary (rule R170)."""
    with ElfImage.open(str(BINARIES / "clang-pie" / "libresonance.so")) as image:
        binary = Binary([image])
        _, _, approximate = lookup_nearest(binary, np.array([0x223F], np.uint64))
        assert approximate.all()
        assert not binary.has_whole


def test_real_program() -> None:
    """What clang left without a line gets one of the same function, the rest stays as it is (rule R170)."""
    with ElfImage.open(str(BINARIES / "clang-pie" / "libresonance.so")) as image:
        vaddrs = np.concatenate(
            [np.arange(s.vaddr, s.vaddr + s.file_size, dtype=np.uint64) for s in image.segments if s.executable]
        )
        plain = Binary([image]).table(vaddrs).lookup(vaddrs)
        _, frames, approximate = lookup_nearest(Binary([image]), vaddrs)
    first = plain.offsets[:-1]
    assert np.array_equal(plain.offsets, frames.offsets)
    assert np.array_equal(plain.function, frames.function)
    assert 400 < approximate.sum() < len(vaddrs) / 4
    assert not plain.line[first[approximate]].any()
    assert frames.line[first[approximate]].all()
    same = np.ones(len(plain.line), np.bool_)
    same[first[approximate]] = False
    assert np.array_equal(plain.line[same], frames.line[same])
    place = np.searchsorted(vaddrs, 0x223F)
    assert (frames.files[frames.file[first[place]]], frames.line[first[place]]) == (b"/src/spectra/resonance.cc", 51)


@pytest.mark.process
@pytest.mark.full
def test_interpreted_is_the_same(tmp_path: Path) -> None:
    """The interpreted modules find the same lines (rule R170)."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, zlib, numpy as np\n"
        "from symbolize.elf import ElfImage\n"
        "from symbolize.symbols import Binary, lookup_nearest\n"
        "vaddrs = np.arange(0x2200, 0x2300, dtype=np.uint64)\n"
        "_, frames, approximate = lookup_nearest(Binary([ElfImage.open(sys.argv[1])]), vaddrs)\n"
        "print(approximate.sum(), zlib.crc32(frames.line.tobytes()), zlib.crc32(frames.column.tobytes()))\n"
    )
    vaddrs = np.arange(0x2200, 0x2300, dtype=np.uint64)
    path = str(BINARIES / "clang-pie" / "libresonance.so")
    with ElfImage.open(path) as image:
        _, frames, approximate = lookup_nearest(Binary([image]), vaddrs)
    expected = (approximate.sum(), zlib.crc32(frames.line.tobytes()), zlib.crc32(frames.column.tobytes()))
    assert run(tmp_path, script, path).split() == [str(value) for value in expected]
