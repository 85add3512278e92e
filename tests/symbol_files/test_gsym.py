"""GSYM files: both versions and byte orders, and what LLVM writes."""

import struct
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from symbolize.symbol_files import read_gsym
from symbolize.symbol_files.gsym import UUID, DamagedFile, read_header
from symbolize.symbols import SymbolListBinary, SymbolTable
from tests.support import gsymutil
from tests.support.fixture_files import BINARIES, segments
from tests.support.gsym_writer import EXAMPLE, UUID_BYTES, Function, Inlined, gsym_file
from tests.support.gsymutil import GSYMUTIL, frames_of

PROGRAMS = [
    *("aarch64/ledger", "clang-pie/ledger", "clang-nopie-dwarf4-lld/spectra", "gcc-o0/ledger"),
    *("gcc-gc-sections/ledger", "gcc-pie/libresonance.so", "twins/lld-all/twins", "twins/gcc-icf-stripped/twins"),
    "callers/clang-lld/callers",
]
needs_gsymutil = pytest.mark.needs(GSYMUTIL)


def table_of(data: bytes) -> SymbolTable:
    """The table of a GSYM file, which has to be sound."""
    listing = read_gsym(data)
    assert listing.problems == []
    return SymbolListBinary("x.gsym", listing).table()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("order", ["<", ">"])
def test_both_versions_and_byte_orders(version: int, order: str) -> None:
    """Functions, lines, nested inlined calls, symbols without a size and shared code, and the id (R390, GSYM files)."""
    data = gsym_file(EXAMPLE, version, order, base=0x400)
    header = read_header(data, len(data))
    at, size = header.parts[UUID]
    assert (header.version, header.big, data[at : at + size]) == (version, order == ">", UUID_BYTES)
    outer, inner = ("outer(int)", "/src/a.cc"), ("inner()", "/src/b.cc")
    expected = {
        0xFFF: [],
        0x1000: [(*outer, 3)],
        0x1008: [(*inner, 4), (*outer, 7)],
        0x100D: [("deeper<int>(char)", "/src/b.cc", 4), (*inner, 9), (*outer, 7)],
        0x1018: [("outer(int)", "/src/b.cc", 4)],
        0x1024: [("inner()", "/src/a.cc", 900), (*outer, 7)],
        0x1028: [(*outer, 900)],
        0x1040: [],
        0x1110: [("twice", "a.cc", 9)],
        0x3001: [("exported", "", 0)],
        0x4000: [],
    }
    table = table_of(data)
    assert frames_of(table, list(expected)) == list(expected.values())
    (group, _), *more = table.folded(np.array([0x1110], np.uint64))
    assert not more and [name for name, _, _ in group.functions] == [b"twice", b"once", b"thrice"]


@needs_gsymutil
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.full
def test_what_llvm_writes(program: str, tmp_path: Path) -> None:
    """Of files that LLVM converted, its own lookups are our answers, at all addresses of the code."""
    binary, path = BINARIES / program, tmp_path / "x.gsym"
    gsymutil.converted(binary, path)
    asked = [vaddr for _, begin, size in segments(binary) for vaddr in range(begin, begin + size)]
    answers = gsymutil.looked_up(path, asked)
    assert any(len(frames) > 1 for frames in answers) or "stripped" in program
    assert frames_of(table_of(path.read_bytes()), asked) == answers


def test_merged_functions() -> None:
    """All names of code that is shared as a whole; none where functions overlap."""
    pairs = [(0x1000, 0x40, "a", "b"), (0x1010, 8, "c", "d"), (0x2000, 8, "e", "f"), (0x3000, 0, "g", "h")]
    data = gsym_file([Function(begin, size, name, merged=[other]) for begin, size, name, other in pairs])
    table = table_of(data)
    groups = [group for group, _ in table.folded(table.folded_begin)]
    assert [group.begin for group in groups] == [0x1010, 0x2000]
    assert [[name for name, _, _ in group.functions] for group in groups] == [[b"c", b"d"], [b"e", b"f"]]


def test_more_rows_than_at_first() -> None:
    """Calls, their ranges and further names have no limit of their own."""
    functions = [
        Function(at, 16, f"f{at}", [(at, "a.c", 7)], [Inlined(f"g{at}", "a.c", 9, [(at, 4)])], [f"h{at}"])
        for at in range(0x1000, 0x9000, 16)
    ]
    table = table_of(gsym_file(functions))
    assert frames_of(table, [0x8FF0]) == [[("g36848", "a.c", 7), ("f36848", "a.c", 9)]]
    assert len(table.folded_begin) == len(functions)


@pytest.mark.parametrize("line", [(0x1004, "a.c", 1 << 40), (0x1004, "a.c", -9), (1 << 64, "a.c", 100)])
def test_unsound_lines(line: tuple[int, str, int]) -> None:
    """A function keeps what its record has before the damage, and the others keep all."""
    lines = [(0x1000, "a.c", 7), (0x1004, "a.c", 8), line]
    listing = read_gsym(gsym_file([Function(0x1000, 16, "a", lines), Function(0x1010, 4, "b", [(0x1010, "a.c", 5)])]))
    assert listing.problems == ["1 function records are damaged"]
    expected = [[("a", "a.c", 7)], [("a", "a.c", 8)], [("b", "a.c", 5)]]
    assert frames_of(SymbolListBinary("x", listing).table(), [0x1000, 0x1008, 0x1010]) == expected


def test_lines_behind_a_function() -> None:
    """Code of no function has no line."""
    table = table_of(gsym_file([Function(0x1000, 4, "a", [(0x1000, "a.c", 7), (0x1004, "a.c", 8)])]))
    assert frames_of(table, [0x1000, 0x1004]) == [[("a", "a.c", 7)], []]


@pytest.mark.parametrize("version", [1, 2])
def test_each_truncation(version: int) -> None:
    """A file that is cut off anywhere gives what is whole, or says what is wrong with it."""
    data = gsym_file(EXAMPLE, version, "<")
    for size in range(len(data)):
        listing = read_gsym(data[:size])
        table = SymbolListBinary("x", listing).table()
        assert listing.problems or frames_of(table, [0x1000])[0][0][0] in ("", "outer(int)")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"GSYX" + bytes(60), "is no GSYM file"),
        (gsym_file(EXAMPLE)[:30], "is cut off"),
        (gsym_file(EXAMPLE)[:4] + struct.pack("<H", 3) + gsym_file(EXAMPLE)[6:], "is GSYM of version 3"),
        (gsym_file(EXAMPLE)[:6] + b"\3" + gsym_file(EXAMPLE)[7:], "has an unsound header"),
        (gsym_file(EXAMPLE)[:7] + b"\x15" + gsym_file(EXAMPLE)[8:], "has an unsound header"),
        (gsym_file(EXAMPLE)[:16] + b"\xff" * 4 + gsym_file(EXAMPLE)[20:], "has tables that do not fit into it"),
        (gsym_file(EXAMPLE, 2)[:28] + b"\xff" * 8 + gsym_file(EXAMPLE, 2)[36:], "has tables that do not fit into it"),
    ],
)
def test_damaged_headers(data: bytes, problem: str) -> None:
    """What is wrong with a file as a whole is one sentence, and it has no functions."""
    listing = read_gsym(data)
    assert len(listing.start) == 0 and listing.problems[0].startswith(problem)
    with pytest.raises(DamagedFile):
        read_header(data, len(data))


def test_records_that_share_their_bytes() -> None:
    """Thousands of addresses with one large record do not make it be read thousands of times."""
    lines = [(0x1000 + i, "/src/a.c", i) for i in range(2000)]
    data = bytearray(gsym_file([Function(0x1000 + i, 4000, f"f{i}", lines if i == 0 else ()) for i in range(2000)]))
    places = 48 + 4 * 2000
    first = data[places : places + 4]
    data[places : places + 8000] = first * 2000
    listing = read_gsym(bytes(data))
    assert "function records are damaged" in listing.problems[0]
    assert len(listing.row_start) < len(data)


def test_deep_trees_are_left_out() -> None:
    """A function with calls inlined into each other without end keeps its lines."""
    call = Inlined("leaf", "/src/a.c", 1, [(0x1000, 1)])
    for i in range(300):
        call = Inlined(f"f{i}", "/src/a.c", 1, [(0x1000, 4)], [call])
    listing = read_gsym(gsym_file([Function(0x1000, 8, "main", [(0x1000, "/src/a.c", 5)], [call])]))
    assert listing.problems == ["1 function records are damaged"]
    assert frames_of(SymbolListBinary("x", listing).table(), [0x1001]) == [[("main", "/src/a.c", 5)]]


def test_calls_beyond_all_addresses() -> None:
    """A function with such an inlined call, the only one, keeps its lines and its other names."""
    call = Inlined("f", "/src/a.c", 1, [(0x1000, (1 << 64) - 1)])
    listing = read_gsym(gsym_file([Function(0x1000, 8, "main", [(0x1000, "/src/a.c", 5)], [call], ["other"])]))
    table = SymbolListBinary("x", listing).table()
    assert listing.problems == ["1 function records are damaged"]
    assert frames_of(table, [0x1001]) == [[("main", "/src/a.c", 5)]]
    assert [[name for name, _, _ in group.functions] for group, _ in table.folded(table.folded_begin)] == [
        [b"main", b"other"]
    ]


@pytest.mark.parametrize(("size", "last"), [(1, 0x80), (2, 0x8000), (4, 1 << 20), (8, 1 << 40)])
def test_addresses_far_apart(size: int, last: int) -> None:
    """The addresses take as many bytes as the header says."""
    data = gsym_file([Function(0x10, 4, "a"), Function(last, 4, "b")], address_size=size)
    assert read_header(data, len(data)).address_size == size
    assert frames_of(table_of(data), [0x13, last + 3]) == [[("a", "", 0)], [("b", "", 0)]]


@pytest.mark.process
def test_interpreted(tmp_path: Path) -> None:
    """The compiled reader and its source give the same."""
    from tests.support import interpreted

    (tmp_path / "x.gsym").write_bytes(data := gsym_file(EXAMPLE))
    script = tmp_path / "dump.py"
    script.write_text(
        "import sys\nfrom dataclasses import asdict\nfrom symbolize.symbol_files import read_gsym\n"
        "print(asdict(read_gsym(open(sys.argv[1], 'rb').read())))\n"
    )
    said = interpreted.run(tmp_path / "copy", script, str(tmp_path / "x.gsym"))
    assert said == f"{asdict(read_gsym(data))}\n"
