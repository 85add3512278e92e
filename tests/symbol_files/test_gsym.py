"""GSYM files: read in both versions and byte orders, written so that LLVM and we read back what the table says."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.symbol_files import read_gsym
from symbolize.symbol_files.gsym import UUID, DamagedFile, read_header
from symbolize.symbols import Binary, SymbolListBinary, SymbolTable
from symbolize.symbols.export import GSYM, export
from tests.support import gsymutil
from tests.support.fixture_files import BINARIES
from tests.support.gsym_writer import EXAMPLE, UUID_BYTES, Function, Inlined, gsym_file
from tests.support.gsymutil import GSYMUTIL, frames_of

PROGRAMS = [
    *(
        "aarch64/ledger",
        "clang-pie/ledger",
        "clang-nopie-dwarf4-lld/spectra",
        "gcc-o0/ledger",
        "gcc-gc-sections/ledger",
    ),
    *("gcc-pie/libresonance.so", "twins/lld-all/twins", "twins/gcc-icf-stripped/twins", "callers/clang-lld/callers"),
]
needs_gsymutil = pytest.mark.skipif(GSYMUTIL is None, reason="needs llvm-gsymutil")


def table_of(data: bytes) -> SymbolTable:
    """The table of a GSYM file, which has to be sound."""
    listing = read_gsym(data)
    assert listing.problems == []
    return SymbolListBinary("x.gsym", listing).table()


@pytest.fixture(params=PROGRAMS)
def binary(request: pytest.FixtureRequest) -> Iterator[Binary]:
    """A program of the fixtures."""
    path = BINARIES / request.param
    if not path.exists():
        path = next(each for each in path.parent.iterdir() if each.is_file())
    result = Binary([ElfImage.open(path)])
    yield result
    result.close()


def borders(table: SymbolTable) -> list[int]:
    """The addresses at which answers change, and those behind them."""
    starts = table.starts()
    return np.unique(np.concatenate((starts, starts + np.uint64(1)))).tolist()


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
        0x1110: [("twice", "/src/a.cc", 9)],
        0x3001: [("exported", "", 0)],
        0x4000: [],
    }
    table = table_of(data)
    assert frames_of(table, list(expected)) == list(expected.values())
    (group, _), *more = table.folded(np.array([0x1110], np.uint64))
    assert not more and [name for name, _, _ in group.functions] == [b"twice", b"once", b"thrice"]


@needs_gsymutil
def test_what_is_written_reads_back(binary: Binary, tmp_path: Path) -> None:
    """At all borders of ranges LLVM and we find in the written file what the table says; equal tables are equal bytes
    (R391, GSYM output)."""
    data = b"".join(export(binary, GSYM))
    assert data == b"".join(export(binary, GSYM))
    path = tmp_path / "x.gsym"
    path.write_bytes(data)
    asked = borders(binary.table())
    expected = frames_of(binary.table(), asked)
    assert frames_of(table_of(data), asked) == expected
    assert gsymutil.looked_up(path, asked) == expected
    assert re.search(r"FunctionInfo @ \S+: FunctionInfo:", gsymutil.dumped(path)) is None  # no record is refused


@needs_gsymutil
def test_what_llvm_writes(binary: Binary, tmp_path: Path) -> None:
    """Of files that LLVM converted, its own lookups are our answers, at all borders."""
    path = tmp_path / "x.gsym"
    gsymutil.converted(Path(binary.images[0].path), path)
    asked = borders(binary.table())
    assert frames_of(table_of(path.read_bytes()), asked) == gsymutil.looked_up(path, asked)


@needs_gsymutil
def test_merged_functions(tmp_path: Path) -> None:
    """With the names of shared code lookups of LLVM 19 stay the same, and we read all names."""
    with ElfImage.open(BINARIES / "twins" / "lld-all" / "twins") as image:
        binary = Binary([image])
        data = b"".join(export(binary, GSYM, merged=True))
        table, read = binary.table(), table_of(data)
    (tmp_path / "x.gsym").write_bytes(data)
    asked = borders(table)
    assert gsymutil.looked_up(tmp_path / "x.gsym", asked) == frames_of(table, asked)
    names, found = shared_names(table), shared_names(read)
    # A function may have another name than its symbols, such as that of another variant of the constructor. Code that
    # is a part of a function has no record of its own.
    assert len(names) - 1 <= len(found) and all(names[begin] <= found[begin] for begin in found)


def shared_names(table: SymbolTable) -> dict[int, set[bytes]]:
    """The names of the code that functions share in a table, by its begin."""
    groups = (group for group, _ in table.folded(table.folded_begin))
    return {group.begin: {name for name, _, _ in group.functions} for group in groups}


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


def test_long_build_id() -> None:
    """An id that version 1 cannot hold is refused."""
    from symbolize.symbol_files.gsym_write import write_gsym

    with pytest.raises(ValueError, match="a build id of 32 bytes does not fit"):
        write_gsym(read_gsym(gsym_file(EXAMPLE)), bytes(32), 0)


def test_addresses_far_apart() -> None:
    """The addresses take as many bytes as the distance of the last from the first needs."""
    from symbolize.symbol_files.gsym_write import write_gsym

    for distance, size in ((0x80, 1), (0x8000, 2), (1 << 20, 4), (1 << 40, 8)):
        listing = read_gsym(gsym_file([Function(0x10, 4, "a"), Function(0x20, 4, "b")]))
        listing.start = np.array([0, 4, distance, distance + 4], np.uint64)
        data = write_gsym(listing, b"", 0)
        assert data[6] == size
        assert frames_of(table_of(data), [3, distance + 3]) == [[("a", "", 0)], [("b", "", 0)]]


def test_interpreted(tmp_path: Path) -> None:
    """Compiled reader and writer and their sources give the same."""
    from tests.support import interpreted

    (tmp_path / "x.gsym").write_bytes(data := gsym_file(EXAMPLE))
    script = tmp_path / "dump.py"
    script.write_text(
        "import sys\nfrom symbolize.symbol_files import read_gsym\nfrom symbolize.symbol_files.gsym_write import "
        "write_gsym\nlisting = read_gsym(open(sys.argv[1], 'rb').read())\n"
        "print(write_gsym(listing, b'12345678', 64, merged=True).hex())\n"
    )
    from symbolize.symbol_files.gsym_write import write_gsym

    said = interpreted.run(tmp_path / "copy", script, str(tmp_path / "x.gsym"))
    assert said.strip() == write_gsym(read_gsym(data), b"12345678", 64, merged=True).hex()
