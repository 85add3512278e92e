"""Discriminators of rows and inlined calls, against llvm-symbolizer."""

import io
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import symbolize
from symbolize.binaries import BinaryIndex, Companions
from symbolize.core.arrays import Int64
from symbolize.elf import ElfImage
from symbolize.symbols import Binary
from tests.support.fixture_files import FIXTURES
from tests.support.needs import find
from tests.support.pprof_writer import Mapping, Place, profile

SOURCE = FIXTURES / "src" / "spectra" / "resonance.cc"
CLANG = ("clang++-19", "-O3", "-mavx2", "-fdebug-info-for-profiling")
MAX_LONG = 14


def library(folder: Path, tool: str, *flags: str) -> Path:
    """A library with loops, some of them in several copies, and inlined functions."""
    path = folder / "libresonance.so"
    command = [find(tool), *flags, "-fPIC", "-shared", "-Wl,--build-id", "-o", path, SOURCE]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return path


def found_at(path: Path, vaddrs: Int64) -> list[list[tuple[int, int]]]:
    """Line and discriminator of the frames at each of `vaddrs`, innermost first."""
    image = ElfImage.open(str(path))
    try:
        binary = Binary([image], Companions(BinaryIndex([str(path.parent)]), [str(path)])).with_discriminators()
        frames = binary.table(vaddrs.astype(np.uint64)).lookup(vaddrs.astype(np.uint64))
        pairs = list(zip(frames.line.tolist(), frames.column.tolist(), strict=True))
        return [pairs[i:j] for i, j in zip(frames.offsets[:-1].tolist(), frames.offsets[1:].tolist(), strict=True)]
    finally:
        image.close()


def expected_at(path: Path, vaddrs: Int64) -> list[list[tuple[int, int]]]:
    """The same by llvm-symbolizer, whose discriminators are packed."""
    text = "".join(f"{vaddr:#x}\n" for vaddr in vaddrs.tolist())
    command = [find("llvm-symbolizer-19"), "--obj", path, "--output-style=JSON"]
    printed = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    answers = [json.loads(line)["Symbol"] for line in printed.splitlines()]
    return [[(each["Line"], unpacked(each["Discriminator"], not k)) for k, each in enumerate(some)] for some in answers]


def unpacked(packed: int, is_row: bool) -> int:
    """The base of a discriminator, and of a row's above it the number of copies, read bit by bit from the lowest on."""
    bits = [packed >> bit & 1 for bit in range(32)]
    numbers = []
    for _ in range(2):
        if bits[0]:
            numbers.append(0)
            bits = bits[1:]
            continue
        digits = [*bits[1:6], *(bits[7:MAX_LONG] if bits[6] else [])]
        numbers.append(sum(bit << at for at, bit in enumerate(digits)))
        bits = bits[MAX_LONG if bits[6] else MAX_LONG // 2 :]
    return numbers[0] | (numbers[1] << 16 if is_row else 0)


@pytest.mark.needs("clang++-19", "llvm-symbolizer-19")
@pytest.mark.parametrize("flags", [("-gdwarf-4",), ("-gdwarf-5",), ("-gdwarf-5", "-gsplit-dwarf")], ids="-".join)
def test_against_llvm(flags: tuple[str, ...], tmp_path: Path) -> None:
    path = library(tmp_path, *CLANG, *flags)
    image = ElfImage.open(str(path))
    text = next(section for section in image.sections if section.name == ".text")
    vaddrs = np.arange(text.vaddr, text.vaddr + text.size)
    image.close()
    found, expected = found_at(path, vaddrs), expected_at(path, vaddrs)
    known = [k for k, frames in enumerate(expected) if len(found[k]) == len(frames)]
    assert len(known) > 0.9 * len(vaddrs)
    assert [found[k] for k in known] == [expected[k] for k in known]
    marks = [mark for k in known for _, mark in found[k]]
    assert {mark & 0xFFFF for mark in marks} > {0, 1, 2, 3}
    assert max(marks) >> 16 > 1  # a loop that was unrolled
    assert any(mark for k in known for _, mark in found[k][1:])  # of inlined calls


@pytest.mark.needs("g++")
def test_those_of_gcc_are_none(tmp_path: Path) -> None:
    path = library(tmp_path, "g++", "-O2", "-g")
    vaddrs = np.arange(0x1000, 0x8000, 4)
    found = [frame for frames in found_at(path, vaddrs) for frame in frames]
    assert any(line for line, _ in found)
    assert not any(mark for _, mark in found)


@pytest.mark.needs("clang++-19")
def test_tables_have_columns_as_before(tmp_path: Path) -> None:
    """What discriminators were read for has no effect on the tables of the same files."""
    image = ElfImage.open(str(library(tmp_path, *CLANG, "-g")))
    vaddrs = np.arange(0x1000, 0x8000, 4, dtype=np.uint64)
    fresh, used = Binary([image]), Binary([image])
    used.with_discriminators().table(vaddrs)
    columns = [each.table(vaddrs).lookup(vaddrs).column.tolist() for each in (fresh, used)]
    assert columns[0] == columns[1]
    assert columns[0] != used.with_discriminators().table(vaddrs).lookup(vaddrs).column.tolist()
    image.close()


@pytest.mark.needs("clang++-19")
def test_lines_of_a_profile(tmp_path: Path) -> None:
    """Each line of a location has its own; where lines are others than those of the binary none has."""
    path = library(tmp_path, *CLANG, "-g")
    vaddrs = np.arange(0x2200, 0x2800)
    places = [Place(0x7F0000000000 + vaddr, 1) for vaddr in vaddrs.tolist()]
    image = ElfImage.open(str(path))
    mapping = Mapping(0x7F0000000000, 0x7F0000100000, 0, str(path), image.build_id or "")
    image.close()
    data = profile([mapping], [([place], [1]) for place in places])
    with symbolize.Symbolizer([tmp_path]) as symbolizer:
        given = symbolizer.symbolize(symbolize.load(io.BytesIO(data))).profile
        found = symbolizer.discriminators(given).tolist()
        pairs = list(zip(given.locations.lines.line.tolist(), found, strict=True))
        assert any(mark for _, mark in pairs)
        assert pairs == [pair for pairs in found_at(path, vaddrs) for pair in pairs]
        given.locations.lines.line = given.locations.lines.line + 1
        assert not symbolizer.discriminators(given).any()
    with symbolize.Symbolizer() as nothing:
        assert not nothing.discriminators(given).any()
