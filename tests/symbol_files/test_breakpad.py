"""Breakpad symbol files."""

from pathlib import Path

import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.symbol_files import read_breakpad, read_module
from symbolize.symbol_files.breakpad import debug_id
from symbolize.symbols import SymbolListBinary, build_table
from symbolize.symbols.table import SymbolTable
from tests.support.breakpad_writer import symbol_file
from tests.support.fixture_files import BINARIES
from tests.support.listed import names_at
from tests.support.lookup import Frame, frames_of

TEXT = b"""\
MODULE Linux x86_64 D8B296CBD7254C32F1E87DDE7772EA780 libx.so
INFO CODE_ID CB96B8D25342C1F32E87DDE7772EA78C32607AD4
FILE 0 /src/a.c
FILE 7 /src/b.h
INLINE_ORIGIN 3 helper(int)
INLINE_ORIGIN 4 deep
FUNC 1000 40 0 run(int, char)
INLINE 0 11 0 3 1008 10 1020 8
INLINE 1 70 7 4 100c 4
1000 8 10 0
1008 4 77 7
100c 4 99 7
1010 8 78 7
1018 28 12 0
FUNC m 1040 10 0 shared
1040 10 5 0
PUBLIC 1030 0 inside
PUBLIC m 2000 0 exported
PUBLIC 2010 0 next one
STACK CFI INIT 1000 40 .cfa: $rsp 8 +
"""


def table_of(data: bytes) -> SymbolTable:
    """The table of a symbol file."""
    return SymbolListBinary("x.sym", read_breakpad(data)).table()


def short(frames: list[Frame]) -> list[tuple[str, str, int]]:
    """Name, file and line of each frame."""
    return [frame[:3] for frame in frames]


@pytest.mark.parametrize("data", [TEXT, TEXT.replace(b"\n", b"\r\n")], ids=["lf", "crlf"])
def test_records(data: bytes) -> None:
    """Functions, lines, inlined calls with several ranges and levels, and exported symbols in the gaps."""
    found = frames_of(table_of(data), [0xFFF, 0x1000, 0x1008, 0x100D, 0x1010, 0x1018, 0x1024, 0x1030, 0x1040, 0x1050])
    run, a, b = "run(int, char)", "/src/a.c", "/src/b.h"
    assert [short(frames) for frames in found] == [
        [],
        [(run, a, 10)],
        [("helper(int)", b, 77), (run, a, 11)],
        [("deep", b, 99), ("helper(int)", b, 70), (run, a, 11)],
        [("helper(int)", b, 78), (run, a, 11)],
        [(run, a, 12)],
        [("helper(int)", a, 12), (run, a, 11)],
        [(run, a, 12)],
        [("shared", a, 5)],
        [],
    ]
    assert names_at(table_of(data), [0x1FFF, 0x2000, 0x200F, 0x2010, 0x2FFF, 0x3000]) == [
        b"", b"exported", b"exported", b"next one", b"next one", b"",
    ]  # fmt: skip
    assert read_breakpad(data).problems == []


def test_module() -> None:
    """The first records tell build id, debug id and name; a file without them is none."""
    module = read_module(TEXT[:200])
    assert module == (
        "D8B296CBD7254C32F1E87DDE7772EA780", "cb96b8d25342c1f32e87dde7772ea78c32607ad4", "libx.so",
    )  # fmt: skip
    assert read_module(TEXT.partition(b"INFO")[0]) == (module[0], "", "libx.so")
    assert read_module(b"MODULE Linux x86_64 12 libx.so\n") is None
    assert read_module(b"\x7fELF") is None


def test_debug_id() -> None:
    """The first three fields of the GUID are swapped; short build ids are padded."""
    assert debug_id("00112233445566778899aabbccddeeff00112233") == "33221100554477668899AABBCCDDEEFF"
    assert debug_id("0011223344556677") == "33221100554477660000000000000000"


@pytest.mark.parametrize("variant", ["gcc-pie", "clang-nopie-dwarf4-lld", "clang-pie"])
@pytest.mark.full
def test_against_dwarf(variant: str) -> None:
    """A symbol file written from DWARF answers at every address as the DWARF does."""
    path = BINARIES / variant / "spectra"
    with ElfImage.open(path) as image:
        table = build_table([image])
        base = min(segment.vaddr for segment in image.segments)
        (code,) = [s for s in image.segments if s.executable]
        begin, end = code.vaddr, code.vaddr + code.file_size
        data = symbol_file(table, begin, end, base, image.build_id or "", "spectra")
        wanted = frames_of(table, range(begin, end))
    found = frames_of(table_of(data), range(begin - base, end - base))
    assert sum(len(frames) > 2 for frames in wanted) > 100
    assert [short(frames) for frames in found] == [short(frames) for frames in wanted]


def test_order_and_overlaps() -> None:
    """Records may come in any order; functions that overlap are cut, inlined ones stay within their function."""
    data = b"""MODULE Linux x86_64 D8B296CBD7254C32F1E87DDE7772EA780 x
FUNC 200 100 0 second
INLINE 1 2 0 1 220 10
INLINE 0 1 0 0 210 1000
FUNC 100 180 0 first
INLINE 0 1 0 0 0 ffffffffffffffff
INLINE_ORIGIN 0 a
INLINE_ORIGIN 1 b
FILE 0 /f
"""
    frames = frames_of(table_of(data), [0xFF, 0x100, 0x1FF, 0x200, 0x20F, 0x210, 0x220, 0x2FF, 0x300])
    assert [[frame.name for frame in chain] for chain in frames] == [
        [], ["a", "first"], ["a", "first"], ["second"], ["second"], ["a", "second"], ["b", "a", "second"],
        ["a", "second"], [],
    ]  # fmt: skip


@pytest.mark.parametrize("scale", [1, 1000, 10**15])
def test_numbers_of_files(scale: int) -> None:
    """Files may be numbered in any way; of equal numbers the first counts, and an unknown one is no file."""
    data = b"".join(b"FILE %d /f%d\n" % (scale * number, i) for i, number in enumerate([2, 0, 1, 2]))
    data += b"".join(b"FUNC %x 10 0 f\n%x 10 1 %d\n" % (16 * i, 16 * i, scale * i) for i in range(4))
    frames = frames_of(table_of(data), [0, 0x10, 0x20, 0x30])
    assert [frame.file for (frame,) in frames] == ["/f1", "/f2", "/f0", ""]


def test_lines_that_are_no_records() -> None:
    """What is damaged is counted and spoils no other record."""
    bad = [
        b"FUNC", b"FUNC ", b"FUNC zz 10 0 f", b"FUNC 10", b"PUBLIC x", b"INLINE 0 1", b"INLINE 0 1 0 0 10", b"FILE x y",
        b"1000 zz 1 0", b"1000", b"1000 1 1f 0", b"abc", b"\xff\xfe", b"FUNC 11112222333344445 1 0 f", b"INLINE_ORIGIN",
        b"INLINE 0 1 99 99 5000 10", b"5000 1 1 99", b"INLINE 0 1 0 3 1000 5 zz",
    ]  # fmt: skip
    for line in bad:
        listing = read_breakpad(TEXT + line + b"\nFUNC 6000 10 0 last\n")
        found = frames_of(SymbolListBinary("x.sym", listing).table(), [0x100D, 0x2000, 0x6000])
        assert [frames[0].name for frames in found] == ["deep", "exported", "last"], line
    assert read_breakpad(TEXT + b"FUNC zz 1 0 f\n1 2\n").problems == ["2 lines are no sound records"]


def test_cut_anywhere() -> None:
    """A file that is cut off gives what it has."""
    for end in range(len(TEXT)):
        table_of(TEXT[:end]).lookup(np.array([0x1000, 0x1024, 0x2000], np.uint64))


def test_absurd_numbers() -> None:
    """Sizes and addresses at the end of the address space, and nesting without end, are bounded."""
    data = b"MODULE Linux x86_64 D8B296CBD7254C32F1E87DDE7772EA780 x\nFUNC fffffffffffffff0 ffffffffffffffff 0 f\n"
    data += b"INLINE_ORIGIN 0 a\n" + b"".join(b"INLINE %d 1 0 0 fffffffffffffff0 8\n" % i for i in range(2000))
    data += b"PUBLIC ffffffffffffffff 0 p\n1 0 0 0\n0 0 0 0\n"
    (frames,) = frames_of(table_of(data), [0xFFFFFFFFFFFFFFF1])
    assert len(frames) == 256
    assert read_breakpad(b"").problems == []


@pytest.mark.process
def test_interpreted(tmp_path: Path) -> None:
    """The compiled reader and its source give the same."""
    from tests.support import interpreted

    (tmp_path / "x.sym").write_bytes(TEXT)
    script = tmp_path / "dump.py"
    script.write_text(
        "import sys\nfrom dataclasses import fields\nfrom symbolize.symbol_files import read_breakpad\n"
        "listing = read_breakpad(open(sys.argv[1], 'rb').read())\n"
        "for field in fields(listing):\n"
        "    value = getattr(listing, field.name)\n"
        "    print(field.name, value.tolist() if hasattr(value, 'tolist') else value)\n"
    )
    said = interpreted.run(tmp_path / "copy", script, str(tmp_path / "x.sym"))
    listing = read_breakpad(TEXT)
    assert f"start {listing.start.tolist()}\n" in said
    assert f"node {listing.node.tolist()}\n" in said
    assert f"row_line {listing.row_line.tolist()}\n" in said
    assert f"node_call_line {listing.node_call_line.tolist()}\n" in said
