"""Which symbol answers where (rules R107–R114, R118, R120)."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.elf.symbols import Symbols, read_symbols
from symbolize.names import demangle
from symbolize.symbols import Binary, build_table
from symbolize.symbols.binary import source_rank
from symbolize.symbols.elf_symbols import extents, needs_frames, symbol_layer, symbol_tables, without_copies
from tests.support import elf_writer
from tests.support.dwarf_writer import As, C, die, dwarf_sections, function
from tests.support.eh_frame import Frames, eh_frame
from tests.support.elf_writer import (
    ABS,
    ALLOC,
    FILE,
    FUNC,
    GLOBAL,
    GNU_IFUNC,
    LOCAL,
    NOTYPE,
    OBJECT,
    WEAK,
    Section,
    Symbol,
)
from tests.support.fixture_files import BINARIES
from tests.support.lookup import frames_at, frames_of, image_of
from tests.support.programs import unit

S = Symbol


def symbol_at(symbols: list[Symbol], *vaddrs: int, dynamic: list[Symbol] | None = None) -> list[str]:
    """The name at each address, empty where there is none."""
    image = image_of([], [elf_writer.text(0x1000, 0x100)], symbols, dynamic or [])
    return [frames[0].name if frames else "" for frames in frames_at(image, *vaddrs)]


@pytest.mark.parametrize(
    ("symbol", "is_own"),
    [
        ("f.0", True),
        ("f.1234", True),
        ("f.0.constprop.0", True),
        ("f.0.cold", True),
        ("f.part.0", True),
        ("f.x0", False),
        ("g.0", False),
    ],
)
def test_nested_functions(symbol: str, is_own: bool) -> None:
    """gcc numbers the symbols of functions that are nested in others, which are shown as their source has them (rules
    R6, R18)."""
    described = unit(function("f", 0x1000, 8), language=As("data2", C))
    table = build_table([image_of([described], symbols=[S(symbol, 0x1000, 8, FUNC, LOCAL)])])
    shown = table.functions.shown(table.lookup(np.array([0x1000], np.uint64)).function.astype(np.int64), "default")
    assert (shown.names[0], shown.system_names[0]) == (b"f", symbol.encode() if is_own else b"f")


def test_functions_of_c_in_namespaces() -> None:
    """A function that is `extern "C"` in a namespace has the symbol that its last component is (rule R6)."""
    described = unit(die("namespace", function("f", 0x1000, 8), name="n"))
    names = [frames_at(image_of([described], symbols=[S(name, 0x1000, 8)]), 0x1000)[0][0].name for name in ("f", "g")]
    assert names == ["f", "n::f"]


PAIRS = {
    "sized before sizeless": (S("b", 0x1000, 4, NOTYPE, LOCAL), S("a", 0x1000, 0)),
    "function before label": (S("b", 0x1000, 4, FUNC, LOCAL), S("a", 0x1000, 4, NOTYPE)),
    "ifunc before label": (S("b", 0x1000, 4, GNU_IFUNC), S("a", 0x1000, 4, NOTYPE)),
    "label before object": (S("b", 0x1000, 4, NOTYPE), S("a", 0x1000, 4, OBJECT)),
    "global before weak": (S("b", 0x1000, 4), S("a", 0x1000, 4, binding=WEAK)),
    "weak before local": (S("b", 0x1000, 4, binding=WEAK), S("a", 0x1000, 4, binding=LOCAL)),
    "default version before none": (S("b@@V1", 0x1000, 4), S("a", 0x1000, 4)),
    "none before another version": (S("b", 0x1000, 4), S("a@V1", 0x1000, 4)),
    "fewer underscores": (S("b", 0x1000, 4), S("__a", 0x1000, 4)),
    "shorter": (S("b", 0x1000, 4), S("aa", 0x1000, 4)),
    "byte order": (S("a", 0x1000, 4), S("b", 0x1000, 4)),
    "size is no key": (S("a", 0x1000, 4), S("b", 0x1000, 8)),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_order_at_one_address(pair: str) -> None:
    """Of symbols at one address the better one answers, in whatever order they stand (rule R107)."""
    better, worse = PAIRS[pair]
    expected = str(better.name).partition("@")[0]
    for symbols in ([better, worse], [worse, better]):
        assert symbol_at(symbols, 0x1000) == [expected]


def test_nearest_start() -> None:
    """The nearest start answers among those that cover (rule R107); one that does not cover hides none (rule R108)."""
    symbols = [S("outer", 0x1000, 0x40), S("inner", 0x1010, 8)]
    at = (0x100F, 0x1010, 0x1017, 0x1018, 0x103F, 0x1040)
    assert symbol_at(symbols, *at) == ["outer", "inner", "inner", "outer", "outer", ""]


def test_sizeless() -> None:
    """A label without size reaches to the next start, or to the end of the section (rule R109)."""
    symbols = [S("a", 0x1000, type=NOTYPE), S("b", 0x1020, type=FUNC, binding=LOCAL), S("$x", 0x1010)]
    assert symbol_at(symbols, 0x1000, 0x101F, 0x1020, 0x10FF, 0x1100) == ["a", "a", "b", "b", ""]


def test_sizeless_inside() -> None:
    """A label without size inside a sized function takes nothing from it (rule R110)."""
    symbols = [S("f", 0x1000, 0x20), S("label", 0x1010, type=NOTYPE), S("next", 0x1030, 4)]
    assert symbol_at(symbols, 0x1010, 0x101F, 0x1020, 0x1030) == ["f", "f", "", "next"]
    symbols = [S("f", 0x1000, 0x40), S("inner", 0x1010, 8), S("label", 0x1020, type=NOTYPE)]
    assert symbol_at(symbols, 0x1017, 0x1018, 0x1020, 0x103F) == ["inner", "f", "f", "f"]


def test_sizeless_dynamic() -> None:
    """A .dynsym symbol without size stands for its very address (rule R111), a sized one for its size (rule R112)."""
    dynamic = [S("export", 0x1000), S("sized", 0x1020, 4)]
    assert symbol_at([], 0x1000, 0x1001, 0x1020, 0x1023, 0x1024, dynamic=dynamic) == [
        "export",
        "",
        "sized",
        "sized",
        "",
    ]


FRAMES = Section(
    ".eh_frame",
    eh_frame([Frames([(0x1000, 0x10), (0x1040, 0x20), (0x1060, 0x10)])], 0x4000),
    flags=ALLOC,
    address=0x4000,
)


def framed(symbols: list[Symbol], dynamic: list[Symbol], *vaddrs: int) -> list[str]:
    """The name at each address of a file with FRAMES, empty where there is none."""
    image = image_of([], [elf_writer.text(0xF00, 0x200), FRAMES], symbols, dynamic)
    return [frames[0].name if frames else "" for frames in frames_at(image, *vaddrs)]


def test_sizeless_with_frames() -> None:
    """A label without size ends with its FDE too; one without an FDE reaches to the next start (rule R109)."""
    symbols = [S("a", 0x1000, type=NOTYPE), S("b", 0x1020), S("c", 0x1040), S("inner", 0x1050, type=NOTYPE)]
    at = (0x1000, 0x100F, 0x1010, 0x1020, 0x103F, 0x104F, 0x1050, 0x105F, 0x1060)
    assert framed(symbols, [], *at) == ["a", "a", "", "b", "b", "c", "inner", "inner", ""]


def test_sizeless_dynamic_with_frames() -> None:
    """A .dynsym symbol without size ends with its FDE, wherever in it it stands, without one at once (rule R111)."""
    dynamic = [S("before", 0xF80), S("a", 0x1000), S("late", 0x1048), S("none", 0x1080)]
    at = (0xF80, 0xF81, 0x1000, 0x100F, 0x1010, 0x1047, 0x1048, 0x105F, 0x1060, 0x1080, 0x1081)
    assert framed([], dynamic, *at) == ["before", "", "a", "a", "", "", "late", "late", "", "none", ""]


def test_sized_dynamic_with_frames() -> None:
    """A .dynsym symbol ends at its size and at its FDE, a .symtab symbol with a size at its size (rule R112)."""
    dynamic = [S("long", 0x1000, 0x30), S("short", 0x1040, 8)]
    at = (0x1000, 0x100F, 0x1010, 0x1047, 0x1048)
    assert framed([], dynamic, *at) == ["long", "long", "", "short", ""]
    assert framed(dynamic, [], *at) == ["long", "long", "long", "short", ""]


def test_frames_of_another_file() -> None:
    """The FDEs of the stripped binary bound the symbols of its debug file, which has none (rules R109, R142)."""
    code = elf_writer.text(0x1000, 0x100)
    empty = Section(".eh_frame", type=elf_writer.NOBITS, flags=ALLOC, address=0x4000, size=0x40)
    debug = image_of([], [code, empty], [S("a", 0x1000)])
    stripped = image_of([], [code, FRAMES], [])
    table = build_table([debug, stripped], np.array([0x100F, 0x1010], np.uint64))
    assert [len(frames) for frames in frames_of(table, (0x100F, 0x1010))] == [1, 0]


def test_united_tables() -> None:
    """What only one of the tables knows answers beside the other (rule R113)."""
    assert symbol_at([S("a", 0x1000, 4)], 0x1000, 0x1010, dynamic=[S("b", 0x1010, 4), S("c", 0x1000, 4)]) == ["a", "b"]


def test_clipped_to_the_section() -> None:
    """A symbol that claims to reach beyond its section ends there (rule R109)."""
    assert symbol_at([S("f", 0x10F0, 0x1000)], 0x10FF, 0x1100) == ["f", ""]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("f@@GLIBC_2.2.5", "f"), ("f@GLIBC_2.2.5", "f"), ("f@plt", "f@plt"), ("operator@V1", "operator")],
)
def test_versions(name: str, expected: str) -> None:
    """Symbol versions are no part of a name, @plt is (rule R114)."""
    assert symbol_at([S(name, 0x1000, 4)], 0x1000) == [expected]


def test_folded() -> None:
    """Distinct functions at one address mark it as folded (rule R118), clones of one do not."""
    symbols = [S("a", 0x1000, 4), S("b", 0x1000, 4), S("c", 0x1010, 4), S("c.localalias", 0x1010, 4, binding=LOCAL)]
    image = image_of([], [elf_writer.text()], symbols)
    table = build_table([image])
    assert table.lookup(np.array([0x1000, 0x1010], np.uint64)).folded.tolist() == [True, False]


def test_functions_by_symbols_alone() -> None:
    """The names of the functions at addresses, all of each, and which addresses have none (rule R118)."""
    symbols = [S("f", 0x1010, 0x10), S("alias", 0x1010, 0x20), S("g", 0x1040, 0x10), S("label", 0x1060, type=NOTYPE)]
    inside = [0x1010, 0x101F, 0x1040, 0x1060]
    outside = [0x1000, 0x1010, 0x1038, 0x104F]
    for vaddrs, expected in (
        (inside, [{"f", "alias"}, {"f", "alias"}, {"g"}, {"label"}]),
        (outside, [set(), {"f", "alias"}, set(), {"g"}]),
    ):
        found = Binary([image_of(symbols=symbols)]).functions_at(np.array(vaddrs, np.uint64))
        assert [{n.decode() for n in found.names[i]} if i >= 0 else set() for i in found.number.tolist()] == expected


def test_file_symbols() -> None:
    """Without DWARF a local symbol has the file of its FILE symbol and no line (rule R120)."""
    symbols = [
        S("x.c", type=FILE, binding=LOCAL, section=ABS),
        S("f", 0x1000, 4, binding=LOCAL),
        S("g", 0x1010, 4, binding=GLOBAL),
    ]
    image = image_of([], [elf_writer.text()], symbols)
    assert frames_at(image, 0x1000, 0x1010) == [[("f", "x.c", 0, 0, 0)], [("g", "", 0, 0, 0)]]


def test_suffixes_without_dwarf() -> None:
    """A number proves a clone suffix; a bare word does only beside its base: Go has functions like `main.cold`."""
    symbols = [
        Symbol("main.cold", 0x1000, 8),
        Symbol("gone.constprop.0", 0x1010, 8),
        Symbol("known", 0x1020, 8),
        Symbol("known.cold", 0x1030, 8),
    ]
    table = build_table([image_of(symbols=symbols)])
    frames = table.lookup(np.array([0x1000, 0x1010, 0x1030], np.uint64))
    plain = [frames.functions.name[f] for f in frames.function]
    assert plain == [b"main.cold", b"", b""]
    assert demangle([frames.functions.linkage[f] for f in frames.function])[1:] == [b"gone", b"known"]


@pytest.mark.parametrize(
    ("change", "is_copy"),
    [
        ((), True),
        (("name", "firsu"), False),
        (("name", "firsts"), False),
        (("size", 0x18), False),
        (("binding", WEAK), False),
    ],
)
def test_copies_of_tables(change: tuple[Any, ...], is_copy: bool) -> None:
    """A table with the symbols of one before is left out: the binary of a debug file may have them all. Names of
    another order in the file do not matter, nor does a local symbol's source file."""
    symbols = [S("first", 0x1010, 0x20, FUNC, GLOBAL), S("second", 0x1030, 0x10, FUNC, LOCAL)]
    other = symbols[::-1]
    if change:
        other[1] = other[1]._replace(**{change[0]: change[1]})
    tables = []
    for given in ([S("a.c", 0, 0, FILE, LOCAL, ABS), *symbols], other):
        image = image_of([], [elf_writer.text(0x1000, 0x100)], given)
        tables += symbol_tables(image)
    assert len(without_copies(tables)) == (1 if is_copy else 2)


def test_symbols_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name leads to all its symbols, and from the second one on without reading all names: a text of a kernel has
    thousands of them."""
    with ElfImage.open(BINARIES / "gcc-pie" / "ledger") as image:
        layer = symbol_layer(list(symbol_tables(image)))
        rows: dict[bytes, list[int]] = {}
        for row, name in enumerate(layer.names):
            rows.setdefault(name, []).append(row)
        assert layer.named(b"no such symbol").tolist() == []
        for method in ("__getitem__", "__iter__", "take", "texts"):
            monkeypatch.setattr(type(layer.names), method, None)
        assert {name: layer.named(name).tolist() for name in rows} == rows


def test_which_file_knows_most() -> None:
    """DWARF comes before all symbols or Go's line table, then come exported symbols; equal files stay as given."""
    symbols, code, elf_file = [Symbol("f", 0x1000, 16)], elf_writer.text(), elf_writer.elf_file
    debug = [code, *dwarf_sections([unit(function("f", 0x1000, 16))])]
    files = [
        elf_file(debug),
        elf_file([code], symbols=symbols),
        elf_file([code, Section(".gnu_debugdata", b"x")]),
        elf_file([code, Section(".gopclntab", b"x")]),
        elf_file([code], dynamic=symbols),
        elf_file([code]),
    ]
    ranks = [source_rank(ElfImage.parse(memoryview(each), "x")) for each in files]
    assert ranks == [0, 1, 1, 1, 2, 3]


def table_of(*symbols: Symbol, **facts: Any) -> Symbols:
    """A table of symbols with the source files of local ones."""
    image = ElfImage.parse(memoryview(elf_writer.elf_file([elf_writer.text()], symbols=symbols)), "x")
    found = read_symbols(image, ".symtab")
    assert found is not None
    return replace(found, **facts)


def test_several_tables() -> None:
    """Each symbol has the source file of its own table, and what one table is counts for all: that it has all symbols,
    or others than linker-made code."""
    tables = [
        table_of(
            *(
                symbol
                for number in range(2)
                for symbol in (
                    Symbol(f"{name}{number}.c", 0, 0, elf_writer.FILE, LOCAL, elf_writer.ABS),
                    Symbol(f"{name}{number}", place + 0x10 * number, 8, binding=LOCAL),
                )
            ),
            Symbol(f"{name}_global", place + 0x80, 8),
        )
        for name, place in (("a", 0x1000), ("b", 0x1100))
    ]
    layer = symbol_layer(tables)
    files = {name: layer.files[file] for name, file in zip(layer.names, layer.file.tolist(), strict=True)}
    assert files == {b"a0": b"a0.c", b"a1": b"a1.c", b"b0": b"b0.c", b"b1": b"b1.c", b"a_global": b"", b"b_global": b""}
    for first in (False, True):
        for second in (False, True):
            given = [replace(tables[0], dynamic=first), replace(tables[1], dynamic=second)]
            assert symbol_layer(given).complete == (not (first and second))
            given = [replace(tables[0], stubs=first), replace(tables[1], stubs=second)]
            assert symbol_layer(given).has_functions == (not (first and second))


@pytest.mark.parametrize(
    ("sizes", "dynamic", "expected"),
    [
        ([[8], [8]], [False, False], False),
        ([[8], [8, 0]], [False, False], True),
        ([[8], [8]], [True, False], False),
        ([[8], [8]], [True, True], True),
        ([[8]], [True], True),
    ],
)
def test_when_frames_are_needed(sizes: list[list[int]], dynamic: list[bool], expected: bool) -> None:
    """For symbols without a size, and where there are exported ones only."""
    tables = [
        table_of(*(Symbol(f"f{i}", 0x1000 + 0x10 * i, size) for i, size in enumerate(each)), dynamic=is_dynamic)
        for each, is_dynamic in zip(sizes, dynamic, strict=True)
    ]
    assert needs_frames(tables) == expected


TOP = (1 << 64) - 1
COVERED = (np.array([0x1000, 0x1010, 0x1020], np.uint64), np.array([0x1008, 0x1010, 0x1028], np.uint64))


@pytest.mark.parametrize(
    ("vaddr", "size", "dynamic", "frames", "end"),
    [
        (0x1000, 0x20, False, None, 0x1020),
        (0x1000, TOP, False, None, 0x2000),  # which would wrap
        (0x1000, 0, False, None, 0x1080),  # up to the next
        (0x1080, 0, False, None, 0x2000),
        (0x1000, 0, True, None, 0x1001),
        (0x1000, 0, False, COVERED, 0x1008),
        (0x1004, 0, False, COVERED, 0x1008),
        (0x1008, 0, False, COVERED, 0x1080),  # behind it
        (0x1010, 0, False, COVERED, 0x1080),  # of no bytes
        (0x1020, 0, True, COVERED, 0x1028),
        (0x1028, 0, True, COVERED, 0x1029),
        (0x1020, 0x40, True, COVERED, 0x1028),
        (0x1020, 0x40, False, COVERED, 0x1060),
    ],
)
def test_where_symbols_end(vaddr: int, size: int, dynamic: bool, frames: tuple[Any, Any] | None, end: int) -> None:
    """By the size, else with the FDE or at the next symbol, and with the section (rules R109, R111)."""
    table = table_of(Symbol("f", vaddr, size), Symbol("g", 0x1080, 8), dynamic=dynamic)
    ends = extents(table, *([frames] if frames else []))
    assert int(ends[table.vaddr.tolist().index(vaddr)]) == end
