"""Which functions share their code, against what linkers say that they folded (rules R119, R149-R162)."""

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symbolize.core.arrays import distinct
from symbolize.core.folded_code import FoldedCode, FoldedFunction, FoldingEvidence
from symbolize.core.string_array import StringArray
from symbolize.dwarf.decode import Decoded
from symbolize.dwarf.icf_evidence import sequence_starts
from symbolize.elf import ElfImage
from symbolize.names import demangle, function_key, public_name, variants
from symbolize.symbols import Binary
from symbolize.symbols.assemble import assemble
from symbolize.symbols.build import decode_for
from symbolize.symbols.elf_symbols import symbol_layer, symbol_tables
from symbolize.symbols.icf import (
    _disjoint,
    _outermost,
    _where_entered,
    find_shared,
)
from symbolize.symbols.table import SymbolTable, range_at
from tests.support.dwarf_writer import As, C, Die, Unit, die, function
from tests.support.elf_writer import FILE, GNU_IFUNC, LOCAL, NOTYPE, WEAK, Symbol, text
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import finder_of, frames_of, image_of
from tests.support.programs import unit
from tests.support.split_writer import at, skeleton, split_file, split_unit

TWINS = BINARIES / "twins"
REPORTS = sorted(path.stem for path in (FIXTURES / "folded").glob("*.txt"))
LENGTHS = ["shapes::Measured::length() const", "shapes::Measured::width() const", "shapes::Weighed::weight() const"]
PAIRS = ["shapes::Pair::Pair(int, int)", "shapes::Range::Range(int, int)"]
CLIMBS = ["climb_first", "climb_second"]

BY_COMPILER = {
    "gcc-icf": [LENGTHS[:2], CLIMBS],
    "gcc-icf-stripped": [LENGTHS[:2], CLIMBS, ["plain_alias", "strong_name"]],
    "gcc-plain": [],
    "clang-merge": [LENGTHS, PAIRS],
}
"""What gcc's -fdump-ipa-icf and clang's output show of the variants that no linker folded."""

Sets = Counter[tuple[str, ...]]


def opened(name: str) -> Binary:
    """A variant of the twins."""
    return Binary([ElfImage.open(TWINS / name / "twins")])


def shared_of(table: SymbolTable) -> list[FoldedCode]:
    """The shared code of a table."""
    names, paths = (
        StringArray(table.text, table.text_offset, rows).take(np.arange(len(rows)))
        for rows in (table.folded_name, table.folded_path)
    )
    candidates = list(map(FoldedFunction, names, paths, table.folded_line.tolist()))
    bounds = zip(table.folded_begin.tolist(), table.folded_end.tolist(), table.folded_evidence.tolist(), strict=True)
    offsets = pairwise(table.folded_offset.tolist())
    return [FoldedCode(*code, candidates[i:j]) for code, (i, j) in zip(bounds, offsets, strict=True)]


def table_of(binary: Binary, vaddrs: Sequence[int]) -> SymbolTable:
    """The table that is built for these addresses alone."""
    dwarf, symbols = binary._builder.dwarf, binary._builder.symbols
    asked = np.array(vaddrs, np.uint64)
    decoded = decode_for(dwarf, asked, lambda: symbols) if dwarf is not None else Decoded.nothing()
    return assemble(dwarf, decoded, symbols, asked)


def full(name: bytes | str) -> str:
    """A name as the tables here have it."""
    return demangle([name.encode() if isinstance(name, str) else name], "full")[0].decode()


def shared_by(shared: list[FoldedCode]) -> Sets:
    """The functions of every range."""
    return Counter(tuple(sorted(full(c.name) for c in code.functions)) for code in shared)


def reported(name: str) -> Sets:
    """The functions that a linker says that it folded; variants of one destructor are one function (rule R149)."""
    kept: dict[tuple[str, str], set[tuple[str, str]]] = {}
    section = re.compile(r"([a-z]+\.cc?)\.o'?:\(\.text\.(\w+)\)")
    gold = re.compile(r"folding section '\.text\.(\w+)' in file '(\S+)\.o' into '\.text\.(\w+)' in file '(\S+)\.o'")
    current = None
    for line in (FIXTURES / "folded" / f"{name}.txt").read_text().splitlines():
        found = gold.search(line)
        if found:
            kept.setdefault((found[4], found[3]), set()).add((found[2], found[1]))
        place = section.search(line)
        if line.startswith("selected"):
            current = (place[1], place[2]) if place else None
        elif place and current:
            kept.setdefault(current, set()).add((place[1], place[2]))
    groups = [{key, *others} for key, others in kept.items()]
    named = [sorted({(full(symbol), file * (symbol == "namesake")) for file, symbol in group}) for group in groups]
    return Counter(tuple(symbol for symbol, _ in group) for group in named if len(group) > 1)


def test_reports_are_read() -> None:
    """The tables of the linkers say what a person reads there."""
    assert len(REPORTS) == 7
    assert reported("lld-all")["namesake", "namesake"] == reported("gold-all")["namesake", "namesake"] == 1
    assert reported("mold-all")[tuple(LENGTHS)] == 1
    assert [sum(reported(name).values()) for name in ("lld-all", "lld-safe", "gold-all", "mold-all")] == [10, 9, 10, 10]


@pytest.mark.parametrize("name", REPORTS)
def test_folded_by_linkers(name: str) -> None:
    """Just what lld, gold and mold say that they folded is found, whatever each leaves of it (rule R119)."""
    with_dwarf = reported(name)
    if name == "lld-stripped":  # equal names show no difference, and names of C do not show that one is an alias
        with_dwarf = with_dwarf - Counter([("namesake", "namesake")]) + Counter([("plain_alias", "strong_name")])
    assert shared_by(shared_of(opened(name).table())) == with_dwarf


@pytest.mark.parametrize("name", BY_COMPILER)
def test_folded_by_compilers(name: str) -> None:
    """What a compiler made one function is found, and where it made nothing one, nothing is (rules R119, R155)."""
    assert shared_by(shared_of(opened(name).table())) == Counter(map(tuple, map(sorted, BY_COMPILER[name])))


def test_versions_of_one_definition() -> None:
    """Names in several versions are names of one function (rules R114, R155)."""
    image = ElfImage.open(TWINS / "versions" / "libversions.so")
    assert not len(shared_of(Binary([image]).table()))
    layer = symbol_layer(list(symbol_tables(image)))
    assert not len(find_shared(layer, None, Decoded.nothing()))


@pytest.mark.parametrize("name", sorted({*REPORTS, *BY_COMPILER}))
@pytest.mark.full
def test_one_address_at_a_time(name: str) -> None:
    """What is said of an address is the same, whichever others are asked for and decoded (rule R159)."""
    binary = opened(name)
    whole = binary.table()
    shared = shared_of(whole)
    starts = distinct(binary._builder.symbols.vaddr) + np.uint64(1)
    begin, end = (np.array([code[i] for code in shared], np.uint64) for i in (0, 1))
    asked = distinct(np.concatenate((starts, begin, end - np.uint64(1)))).tolist()
    expected = whole.lookup(np.array(asked, np.uint64))
    assert expected.folded.any() == (name != "gcc-plain")
    for vaddr, folded in zip(asked, expected.folded.tolist(), strict=True):
        one = np.array([vaddr], np.uint64)
        table = table_of(binary, [vaddr])
        assert table.lookup(one).folded.tolist() == [folded], hex(vaddr)
        place = int(range_at(one, begin, end)[0])
        if folded:
            assert shared_of(table)[0].functions == shared[place].functions


def test_the_whole_range_is_folded() -> None:
    """Every address of a function is folded, the first behind it is not, and inlined frames change nothing (R160)."""
    table = opened("lld-all").table()
    shared = shared_of(table)
    ((begin, end),) = (code[:2] for code in shared if any(b"twin_left" in c.name for c in code.functions))
    vaddrs = np.arange(begin - 1, end + 1, dtype=np.uint64)
    frames = table.lookup(vaddrs)
    assert frames.folded.tolist() == [False] + [True] * (end - begin) + [False]
    assert (np.diff(frames.offsets) > 1).any()


def test_addresses_in_any_order() -> None:
    """Which of the addresses that were asked for are in shared code is told by their places, also where some are asked
    for twice and others are elsewhere."""
    binary = opened("lld-all")
    begins = [code.begin for code in shared_of(binary.table())]
    vaddrs = np.array([1, *begins[::-1], begins[2], 2, begins[2] + 1], np.uint64)
    folded = binary.answer(vaddrs).folded
    assert sorted(code.begin for code, _ in folded) == begins
    for code, rows in folded:
        assert rows.tolist() == [row for row, vaddr in enumerate(vaddrs.tolist()) if code.begin <= vaddr < code.end]


@pytest.mark.parametrize("name", ["lld-all", "mold-all", "gold-all", "lld-gcc"])
def test_without_symbols(name: str) -> None:
    """DWARF alone finds the functions: by line tables where DIEs are dead, by DIEs where they are not (rule R158).

    Two instances of one template stand in one line; only their DIEs tell them apart.
    """
    dwarf = opened(name)._builder.dwarf
    assert dwarf is not None
    shared = find_shared(symbol_layer([]), dwarf, dwarf.decode())
    spans = (
        "int shapes::span<int>(int const*, int)",
        "unsigned int shapes::span<unsigned int>(unsigned int const*, int)",
    )
    expected = reported(name)
    if name != "gold-all":
        expected -= Counter([spans])
        assert {code.evidence for code in shared} == {FoldingEvidence.LINES}
    else:
        assert {code.evidence for code in shared} == {FoldingEvidence.DEFINITIONS}
    assert shared_by(shared) == expected
    for code in shared:
        one = np.array([code.begin + (code.end > code.begin + 1)], np.uint64)
        alone = find_shared(symbol_layer([]), dwarf, decode_for(dwarf, one), one)
        assert alone[0].functions == code.functions


def test_places_of_all_candidates() -> None:
    """All functions of a range can be listed with their declarations, that of the code that stayed first (R119)."""
    shared = shared_of(opened("lld-all").table())
    listed = [[(full(c.name), Path(c.path.decode()).name, c.line) for c in shared[i].functions] for i in range(10)]
    assert [("namesake", "names.c", 40), ("namesake", "more.c", 9)] in listed
    assert [(PAIRS[0], "shapes.cc", 63), (PAIRS[1], "shapes.cc", 64)] in listed
    assert [(LENGTHS[0], "shapes.cc", 54), (LENGTHS[2], "shapes.cc", 56), (LENGTHS[1], "shapes.cc", 55)] in listed
    left = next(names for names in listed if names[0][0].startswith("shapes::twin_left"))
    assert [line for _, _, line in left] == [7, 13]


S = Symbol
ONE = {
    "constructor (R149)": (S("_ZN1aC1Ev", size=4), S("_ZN1aC2Ev", size=4)),
    "unified constructor (R149)": (S("_ZN1aC4Ev", size=4), S("_ZN1aC2Ev", size=4)),
    "inherited constructor (R149)": (S("_ZN1bCI11aEi", size=4), S("_ZN1bCI21aEi", size=4)),
    "deleting destructor (R149)": (S("_ZN1aD0Ev", size=4), S("_ZN1aD1Ev", size=4), S("_ZN1aD2Ev", size=4)),
    "versions (R114)": (S("f@V1", size=4), S("f@@V2", size=4)),
    "clones (R115)": (S("f", size=4), S("f.localalias", size=4, binding=LOCAL), S("f.constprop.0", size=4)),
    "v0 copies in two crates (R150)": (
        S("_RINvCs1_3lib3fooyECs2_3one", size=4), S("_RINvCs1_3lib3fooyECs3_5other", size=4),
        S("_RINvCs1_3lib3fooyEB2_", size=4),
    ),
    "thunk (R151)": (S("_ZN1a1fEv", size=4), S("_ZThn8_N1a1fEv", size=4), S("_ZTv0_n24_N1a1fEv", size=4)),
    "stub (R151)": (S("f", size=4), S("g@plt", size=4), S("__AArch64ADRPThunk_h", size=4)),
    "glibc's names (R152)": (
        S("__GI_read", size=4, binding=LOCAL), S("__libc_read", size=4), S("read", size=4), S("__read", size=4),
    ),
    "stdio's names (R152)": (S("_IO_puts", size=4), S("puts", size=4)),
    "large files (R152)": (S("open", size=4), S("open64", size=4)),
    "large files, inside of a name (R152)": (S("preadv64v2", size=4), S("preadv2", size=4)),
    "weak name (R153)": (S("strong", size=4), S("weak", size=4, binding=WEAK)),
    "weak names only (R153)": (S("a", size=4, binding=WEAK), S("b", size=4, binding=WEAK)),
    "local name of an export (R154)": (S("a_impl", size=4, binding=LOCAL), S("a", size=4)),
    "other sizes": (S("a", size=4), S("b", size=8)),
    "no size": (S("a", size=4), S("b")),
    "a label": (S("a", size=4), S("b", size=4, type=NOTYPE)),
}  # fmt: skip
SEVERAL = {
    "global names of C (R154)": (S("a", size=4), S("b", size=4)),
    "local names of C (R154)": (S("a", size=4, binding=LOCAL), S("b", size=4, binding=LOCAL)),
    "indirect functions": (S("a", size=4, type=GNU_IFUNC), S("b", size=4, type=GNU_IFUNC)),
    "C++ (R157)": (S("_Z1fv", size=4), S("_Z1gv", size=4, binding=WEAK)),
    "C++ overloads (R157)": (S("_Z1fv", size=4, binding=WEAK), S("_Z1fi", size=4, binding=WEAK)),
    "constructors of two classes (R157)": (S("_ZN1aC1Ev", size=4), S("_ZN1bC1Ev", size=4), S("_ZN1aC2Ev", size=4)),
    "functions that look like variants (R157)": (S("_Z3fC1v", size=4), S("_Z3fC2v", size=4)),
    "Rust instances (R157)": (
        S("_ZN4core3fmt17h0123456789abcdefE", size=4), S("_ZN4core3fmt17h0123456789abcdeeE", size=4),
    ),
    "v0 functions (R157)": (S("_RNvCs1_3lib3foo", size=4), S("_RNvCs1_3lib3bar", size=4)),
    "v0 instances (R157)": (S("_RINvCs1_3lib3fooyECs2_3one", size=4), S("_RINvCs1_3lib3foojECs2_3one", size=4)),
    "C++ and C": (S("_Z1fv", size=4), S("g", size=4)),
}  # fmt: skip


def is_folded(symbols: Sequence[Symbol], units: Sequence[Unit] = ()) -> bool:
    """Whether what stands at 0x1000 is folded, to the last of four bytes; symbols move there. Asked alone and of the
    whole table."""
    moved = [each._replace(value=0x1000 + each.value) if each.type != FILE else each for each in symbols]
    vaddrs = np.array([0x1000, 0x1003], np.uint64)
    answers: set[bool] = set()
    for order in (moved, moved[::-1]) if not any(each.type == FILE for each in moved) else (moved,):
        binary = Binary([image_of(units, symbols=order)])
        for table in (table_of(binary, vaddrs.tolist()), binary.table()):
            answers |= set(table.lookup(vaddrs).folded.tolist())
    (answer,) = answers
    return answer


@pytest.mark.parametrize("case", ONE)
def test_several_names_of_one_function(case: str) -> None:
    """Names that are names of one function do not make it folded (rules R149-R154)."""
    assert not is_folded(ONE[case])


@pytest.mark.parametrize("case", SEVERAL)
def test_several_functions(case: str) -> None:
    """Names of functions that differ do (rules R119, R154, R157)."""
    assert is_folded(SEVERAL[case])


def defined(name: str, low: int, line: int, size: int = 4, **more: object) -> Die:
    """A definition with the place of its declaration."""
    return die("subprogram", name=name, low_pc=low, high_pc=size, decl_file=1, decl_line=line, **more)  # type: ignore[arg-type]


def c_unit(
    *functions: Die,
    rows: Sequence[tuple[int, int]] = (),
    files: Sequence[tuple[str, int]] = Lines.files,  # type: ignore[assignment]
    **more: object,
) -> Unit:
    """A unit that claims its live functions and has a sequence for each of `rows`: address and line."""
    operations = [operation for address, line in rows for operation in sequence((address, line), end=address + 4)]
    lines = Lines(operations, files)
    live = [value for f in functions for key, value in f.attributes if key == "low_pc" and value >= 0x1000]
    claim: dict[str, object] = {"ranges": [(low, low + 4) for low in live]} if live else {}
    return unit(*functions, lines=lines, **(claim | more))


PAIR = (S("first", size=4), S("second", size=4))


def test_definitions_tell_functions_from_aliases() -> None:
    """A name with a definition of its own is a function, in whatever state, one without is an alias (rule R155)."""
    live, dead = defined("first", 0x1000, 3), defined("second", 0, 9)
    codeless = die("subprogram", name="second", decl_file=1, decl_line=9)
    declared = die("subprogram", name="second", declaration=True, decl_file=1, decl_line=9)
    inline = die("subprogram", name="second", inline=3, decl_file=1, decl_line=9)
    assert is_folded(PAIR)
    assert not is_folded(PAIR, [c_unit(live)])
    assert is_folded(PAIR, [c_unit(live, dead)])
    assert is_folded(PAIR, [c_unit(live, codeless)])
    assert not is_folded(PAIR, [c_unit(live, declared)])
    assert not is_folded(PAIR, [c_unit(live, inline)])
    assert not is_folded(PAIR, [c_unit(live, defined("second", 0x1800, 9))])  # another one of this name
    assert is_folded(PAIR, [c_unit(defined("other", 0x1800, 3))])  # names decide where DWARF has nothing


@pytest.mark.parametrize("version", [4, 5])
def test_definitions_in_split_units(version: int, tmp_path: Path) -> None:
    """Definitions count wherever they are: in units of the binary, and in the split units of skeletons (rules R78,
    R155)."""
    fmt = Format(version)
    symbols = [each._replace(value=0x1000) for each in PAIR]
    claim = {"low_pc": 0x1000, "high_pc": 4}
    other = skeleton(fmt=fmt, dwo_id=7, file="b.dwo", addresses=[0x1000, 0x1800], **claim)
    image = image_of([skeleton(fmt=fmt, **claim), other], symbols=symbols)
    first = split_unit(at("first", 0, 4, fmt=fmt, decl_line=3), fmt=fmt, language=C)
    (tmp_path / "a.dwo").write_bytes(split_file([first]))
    for name, place, expected in (("second", 0, True), ("other", 1, False)):
        second = split_unit(at(name, place, 4, fmt=fmt, decl_line=9), fmt=fmt, dwo_id=7, language=C)
        (tmp_path / "b.dwo").write_bytes(split_file([second]))
        binary = Binary([image], finder_of(tmp_path / "binary"))
        for table in (table_of(binary, [0x1000]), binary.table()):
            assert bool(table.lookup(np.array([0x1000], np.uint64)).folded[0]) == expected


GCC, CLANG, GIMPLE = "GNU C++17 12.2.0", "clang version 19.1.7", "GNU GIMPLE 12.2.0 -flto"


@pytest.mark.parametrize(
    ("producers", "expected"),
    [
        ([GCC], False),
        ([GCC, GCC], False),
        ([GCC, CLANG], True),
        ([CLANG, GCC], True),
        ([CLANG], True),
        ([CLANG, CLANG], True),
        ([GIMPLE], True),
    ],
    ids=str,
)
def test_units_that_do_not_list_all_definitions(producers: list[str], expected: bool) -> None:
    """That a name with types has no definition makes it an alias only where every unit there has all definitions (rules
    R157, R162): the first one here has the code, the others lost a copy."""
    names = (S("_Z5firstv", size=4), S("_Z6secondv", size=4))
    first = defined("first", 0x1000, 3, linkage_name="_Z5firstv")
    units = [
        c_unit(*([] if number else [first]), rows=[(0x1000, 4 + number)], producer=producer)
        for number, producer in enumerate(producers)
    ]
    assert is_folded(names, units) == expected


@pytest.mark.parametrize("version", [4, 5])
def test_definitions_in_skeletons(version: int, tmp_path: Path) -> None:
    """What a skeleton says of a function, as clang does for those with inlined ones, is no second function beside the
    one of its split unit, but counts where that is missing (rules R83, R158)."""
    fmt, claim = Format(version), {"low_pc": 0x1000, "high_pc": 4}
    lines = Lines(sequence((0x1000, 4), end=0x1004))
    split = split_unit(at("first", 0, 4, fmt=fmt, decl_file=1, decl_line=3), fmt=fmt, language=C)
    (tmp_path / "a.dwo").write_bytes(split_file([split]))
    copy = unit(fmt=fmt, lines=lines)  # of one header, whose code was folded
    functions = [function(name, 0x1000, 4) for name in ("first", "second")]
    for count, finder, expected in (
        (1, finder_of(tmp_path / "binary"), False),
        (2, finder_of(tmp_path / "binary"), False),
        (1, None, False),
        (2, None, True),
    ):
        image = image_of([skeleton(*functions[:count], fmt=fmt, lines=lines, language=As("data2", C), **claim), copy])
        for table in (table_of(Binary([image], finder), [0x1000]), Binary([image], finder).table()):
            assert bool(table.lookup(np.array([0x1000], np.uint64)).folded[0]) == expected, count


def test_definitions_of_namesakes() -> None:
    """A function of the same name in a unit that has nothing at an address is another one, whatever else is read of
    that unit (rules R155, R159)."""
    others = (S("third", 0x100, 4), S("fourth", 0x100, 4))
    away = c_unit(defined("third", 0x1100, 3), defined("second", 0, 9))
    assert not is_folded((*PAIR, *others), [c_unit(defined("first", 0x1000, 3)), away])


def test_places_of_namesakes() -> None:
    """Nor is it where a candidate without a definition is declared (rules R119, R159)."""
    far = 0x1100
    pairs = [
        (S(f"_ZL5{one}v", size=4), S(f"_ZL6{other}v", size=4))
        for one, other in (("first", "second"), ("third", "fourth"))
    ]
    symbols = [each._replace(value=place) for place, pair in zip((0x1000, far), pairs, strict=True) for each in pair]
    near = c_unit(defined("first", 0x1000, 3, linkage_name="_ZL5firstv"), producer=CLANG)
    away = c_unit(
        defined("third", far, 70, linkage_name="_ZL5thirdv"),
        defined("second", 0x1800, 77, linkage_name="_ZL6secondv"),
        producer=CLANG,
    )
    shared = shared_of(Binary([image_of([near, away], symbols=symbols)]).table())
    assert [code.begin for code in shared] == [0x1000, far]
    assert shared[0].functions == [
        FoldedFunction(b"_ZL5firstv", b"/src/a.c", 3),
        FoldedFunction(b"_ZL6secondv", b"", 0),
    ]


def test_definitions_in_other_units() -> None:
    """The unit that lost its copy is found by the sequence that its line program kept (rules R37, R62, R159)."""
    kept = c_unit(defined("first", 0x1000, 3), rows=[(0x1000, 4)])
    lost, row = defined("second", 0, 9), (0x1000, 10)
    assert is_folded(PAIR, [kept, c_unit(lost, rows=[row])])
    assert not is_folded(PAIR, [kept, c_unit(lost, rows=[(0x1800, 10)])])  # collected, not folded
    assembly = {"language": 0x8001}
    assert is_folded(PAIR, [c_unit(defined("first", 0x1000, 3), defined("second", 0x1000, 3), **assembly)])
    weak = (PAIR[0], PAIR[1]._replace(binding=WEAK))
    assert not is_folded(weak, [c_unit(defined("first", 0x1000, 3), defined("second", 0x1000, 3), **assembly)])


def test_local_functions_of_one_name() -> None:
    """Local functions of one name are as many as their places; code of another size was not this (rule R156)."""
    names = (S("same", size=4, binding=LOCAL), S("same", size=4, binding=LOCAL))
    kept = c_unit(defined("same", 0x1000, 3), rows=[(0x1000, 4)])
    assert not is_folded(names)
    assert is_folded(names, [kept, c_unit(defined("same", 0, 9), rows=[(0x1000, 10)])])
    assert not is_folded(names, [kept, c_unit(defined("same", 0, 3), rows=[(0x1000, 4)])])  # of one header
    assert not is_folded(names, [kept, c_unit(defined("same", 0, 9, size=8), rows=[(0x1000, 10)])])
    other = c_unit(defined("same", 0, 3), rows=[(0x1000, 4)], files=[("b.c", 0)] * 2)
    assert is_folded(names, [kept, other])  # in another file
    moved = c_unit(defined("same", 0, 3), rows=[(0x1000, 4)], files=[("/inc/a.c", 0)] * 2)
    assert not is_folded(names, [kept, moved])  # the same header by another path


def test_definitions_at_one_place() -> None:
    """Functions without symbols show by their DIEs at one address, as gold leaves them (rule R158)."""
    one = (S("first", size=4, binding=LOCAL),)
    assert is_folded(one, [c_unit(defined("first", 0x1000, 3), defined("second", 0x1000, 9))])
    assert is_folded(one, [c_unit(defined("first", 0x1000, 3)), c_unit(defined("first", 0x1000, 9))])
    copies = [c_unit(defined("first", 0x1000, 3, linkage_name="_Z5firstv")) for _ in range(2)]
    assert not is_folded(one, copies)
    for linked in ("_ZL5firstv", "_ZN12_GLOBAL__N_15firstEv"):  # each file has its own
        assert is_folded(one, [c_unit(defined("first", 0x1000, line, linkage_name=linked)) for line in (3, 9)])
        assert not is_folded(one, [c_unit(defined("first", 0x1000, 3, linkage_name=linked)) for _ in range(2)])


PARTS = [(0x1020, 0x1028), (0x1000, 0x1004)]
ENTRIES: dict[str, tuple[dict[str, Any], list[tuple[int, int]], list[bool]]] = {
    "entry_pc": ({"entry_pc": 0x1000, "low_pc": 0x1020}, PARTS, [True, False]),
    "entry_pc, as an offset": ({"entry_pc": As("udata", 0), "low_pc": 0x1000}, PARTS, [True, False]),
    "low_pc": ({"low_pc": 0x1000}, PARTS, [True, False]),
    "first range": ({}, PARTS, [False, True]),
    "first range, the lowest": ({}, PARTS[::-1], [True, False]),
    "none of the ranges": ({"entry_pc": 0x1010}, PARTS, [False, False]),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_functions_in_parts_are_folded_where_they_are_entered(case: str) -> None:
    """Functions of several ranges are at one place if they are entered there, whatever range comes first (rules R5,
    R158)."""
    attributes, ranges, expected = ENTRIES[case]
    both = [
        die("subprogram", name=name, ranges=ranges, decl_file=1, decl_line=line, **attributes)
        for name, line in (("first", 3), ("second", 9))
    ]
    binary = Binary([image_of([unit(*both, lines=Lines(), ranges=ranges)])])
    vaddrs = np.array([0x1000, 0x1020], np.uint64)
    for table in (table_of(binary, [0x1000, 0x1020]), binary.table()):
        assert table.lookup(vaddrs).folded.tolist() == expected


OTHER, ANOTHER = (defined("other", 0, 9, linkage_name=f"_Z5otherI{letter}Evv") for letter in "ic")
ONLY_A_PLACE = FoldedFunction(b"", b"/src/a.c", 10)
LOST = {
    "one": ([OTHER], FoldedFunction(b"_Z5otherIiEvv", b"/src/a.c", 9)),
    "one, twice": ([OTHER, OTHER], FoldedFunction(b"_Z5otherIiEvv", b"/src/a.c", 9)),
    "two instances of one template": ([OTHER, ANOTHER], ONLY_A_PLACE),
    "one of another size": ([defined("other", 0, 9, size=16)], ONLY_A_PLACE),
    "one behind it": ([defined("other", 0, 11)], ONLY_A_PLACE),
    "one of another size between": ([OTHER, defined("between", 0, 10, size=16)], ONLY_A_PLACE),
}


@pytest.mark.parametrize("case", LOST)
def test_functions_of_folded_sequences(case: str) -> None:
    """A folded sequence is that of the only definition that fits; where there is none, or several, its function has no
    name, but a place (rules R119, R158)."""
    functions, expected = LOST[case]
    kept = c_unit(defined("first", 0x1000, 3), rows=[(0x1000, 4)])
    shared = shared_of(Binary([image_of([kept, c_unit(*functions, rows=[(0x1000, 10)])])]).table())
    assert [code.functions for code in shared] == [[FoldedFunction(b"first", b"/src/a.c", 3), expected]]


def test_line_tables_alone() -> None:
    """Where no definition describes a symbol, sequences that begin with it in different lines are several functions, as
    gold leaves them of a local one with `-gmlt` (rule R265)."""
    one, claim = (S("first", size=4, binding=LOCAL),), {"low_pc": 0x1000, "high_pc": 0x100}

    def line_unit(*rows: tuple[int, int], **more: object) -> Unit:
        return c_unit(rows=rows, **(claim | more))

    assert is_folded(one, [line_unit((0x1000, 4)), line_unit((0x1000, 10))])
    assert is_folded(one, [line_unit((0x1000, 4), (0x1000, 10))])
    assert not is_folded(one, [line_unit((0x1000, 4)), line_unit((0x1000, 4))])  # of one header
    assert not is_folded(one, [line_unit((0x1000, 4)), line_unit((0x1004, 10))])
    assert not is_folded(one, [c_unit(rows=[(0x1000, 4)]), c_unit(rows=[(0x1000, 10)])])  # claimed by none
    assert not is_folded(one, [c_unit(defined("first", 0x1000, 3), rows=[(0x1000, 4)]), line_unit((0x1000, 10))])
    long = (S("first", size=8, binding=LOCAL),)
    assert not is_folded(long, [line_unit((0x1000, 4)), line_unit((0x1000, 10))])  # of no bytes that the symbol has
    units = [line_unit((0x1000, 4)), line_unit((0x1000, 10))]
    shared = shared_of(Binary([image_of(units, symbols=[one[0]._replace(value=0x1000)])]).table())
    assert [code.functions for code in shared] == [
        [FoldedFunction(b"first", b"", 0), FoldedFunction(b"", b"/src/a.c", 4), FoldedFunction(b"", b"/src/a.c", 10)]
    ]


def test_names_inside_a_function() -> None:
    """Two names of a place inside a function do not share the function (rule R160), unless another one ends there."""
    symbols = [S("f", 0x1000, 0x20), S("a", 0x1010, 4), S("b", 0x1010, 4)]
    vaddrs = np.array([0x1000, 0x1010, 0x1014], np.uint64)
    image = image_of([unit(function("f", 0x1000, 0x20))], symbols=symbols)
    assert Binary([image]).table().lookup(vaddrs).folded.tolist() == [False, False, False]
    assert Binary([image_of(symbols=symbols)]).table().lookup(vaddrs).folded.tolist() == [False, True, False]
    behind = Binary([image_of([unit(function("f", 0x1000, 0x20), function("g", 0x1008, 8))], symbols=symbols)])
    for table in (behind.table(), table_of(behind, [0x1010])):
        assert table.lookup(vaddrs[1:2]).folded.tolist() == [True]


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("big", [False, True])
def test_sequence_starts(size: int, big: bool) -> None:
    """Sequences are found by the address that they set, a few one by one or many in one pass (rule R159)."""
    fmt = Format(4, big, size)
    starts = list(range(0x1000, 0x1100, 8))
    units = [unit(fmt=fmt, lines=Lines(sequence((start, 3), end=start + 4))) for start in starts]
    dwarf = Binary([image_of(units)])._builder.dwarf
    assert dwarf is not None
    programs = np.asarray(dwarf.units.line_program).tolist()
    for asked in (starts, starts[3:5], [0x1004], []):
        places, found = sequence_starts(dwarf, np.array(asked, np.uint64))
        assert [programs[starts.index(asked[i])] for i in places.tolist()] == found.tolist()
        assert len(found) == len(set(asked) & set(starts))


def test_hostile_groups() -> None:
    """A place with very many names is looked at for a part of them only."""
    symbols = [S(f"f{i}x", 0x1000, 4) for i in range(5000)]
    shared = shared_of(Binary([image_of(symbols=symbols)]).table())
    assert len(shared[0].functions) == 4096


def test_keys_and_public_names() -> None:
    """How names are reduced to what their functions have in common (rules R149-R152)."""
    assert function_key(b"_ZN1aC2Ev") == b"a::a()"
    assert function_key(b"_ZThn8_N1a1fEv") == b"a::f()"
    assert function_key(b"_RNvCs1_3lib5xC3ab") == b"_RNvCs1_3lib5xC3ab"
    for name in (b"_D3lib1fFiZv", b"_D3lib1fFNaiZv", b"main"):  # the text of D's leaves out attributes
        assert function_key(name) == name
    names = [b"__GI___libc_read", b"_IO_new_fopen64", b"__", b"modff64", b"__wcslen_ifunc", b"x_np", b"64", b"_IO_new_"]
    public = [b"read", b"fopen", b"__", b"modf", b"wcslen", b"x", b"64", b"new_"]
    assert [public_name(name) for name in names] == public
    assert set(variants(b"_ZN1aC1Ev")) == {b"_ZN1aC1Ev", b"_ZN1aC2Ev", b"_ZN1aC4Ev"}
    assert set(variants(b"_ZN1a3bD1Ei")) == {b"_ZN1a3bD1Ei"}  # a function of this name is no destructor


@pytest.mark.parametrize("name", [b"_IO_" * 500_000, b"_R" + b"Cs" * 500_000, b"_R" + b"B" * 1_000_000])
def test_long_names(name: bytes) -> None:
    """What is done to names takes time in proportion to them (rule R117)."""
    start = time.process_time()
    function_key(name)
    public_name(name)
    assert time.process_time() - start < 4


def test_lines_of_the_function_that_is_shown() -> None:
    """Of the sequences over one place the one behind the function's declaration answers (rule R161).

    It ends with its section, whatever rows it has behind that.
    """
    lines = [
        *sequence((0x1000, 20), (0x1020, 22), end=0x1030),
        *sequence((0x1000, 10), (0x1020, 12), end=0x1030),
        *sequence((0x1014, 30), end=0x1040),
    ]
    functions = [function("f", 0x1000, 16, decl_file=1, decl_line=9), function("h", 0x1014, 16)]
    image = image_of([unit(*functions, lines=Lines(lines))], [text(0x1000, 16), text(0x1014, 64)])
    frames = frames_of(Binary([image]).table(), [0x1000, 0x100F, 0x1012, 0x1014, 0x1023])
    found = [[(frame.name, frame.line) for frame in stack] for stack in frames]
    assert found == [[("f", 10)], [("f", 10)], [], [("h", 30)], [("h", 30)]]


def test_sequences_of_another_size_are_no_copies() -> None:
    """Of several sequences only one that ends where the one that is shown does may be chosen (rule R161)."""
    for end, expected in ((0x1030, [10, 10, 12, 12]), (0x1020, [20, 20, 22, 22])):
        lines = [*sequence((0x1000, 20), (0x1010, 22), end=0x1030), *sequence((0x1000, 10), (0x1010, 12), end=end)]
        image = image_of([unit(function("f", 0x1000, 0x30, decl_file=1, decl_line=9), lines=Lines(lines))])
        frames = frames_of(Binary([image]).table(), [0x1000, 0x100F, 0x1010, 0x102F])
        assert [stack[0].line for stack in frames] == expected


def test_parts_of_a_range_at_high_addresses() -> None:
    """Borders of segments are found to the byte where numbers of 64 bits have no exact float."""
    start = (1 << 60) + np.arange(4, dtype=np.uint64)
    decoded = SimpleNamespace(segment_start=start)
    verdict = FoldedCode(int(start[1]), int(start[3]), FoldingEvidence.DEFINITIONS, [])
    entered = np.array([start[0], start[1], start[1], start[3]], np.uint64)
    assert list(_where_entered(decoded, entered, verdict)) == [(verdict.begin, verdict.end)]  # type: ignore[arg-type]


def test_shared_code_inside_of_a_function() -> None:
    """What begins between the parts of a function, or between two others that are inlined there, is none (R160, whole
    shared code)."""
    decoded = SimpleNamespace(
        segment_start=np.array([0x1000, 0x1010, 0x1020, 0x1030, 0x1040], np.uint64),
        segment_node=np.array([1, 2, 0, 3, -1], np.int64),
        node_parent=np.array([-1, 0, 0, -1], np.int64),
    )
    begins = [0x1000, 0x1010, 0x1020, 0x1030, 0x1040]
    verdicts = [FoldedCode(begin, begin + 8, FoldingEvidence.NAMES, []) for begin in begins]
    found = _outermost(verdicts, decoded)  # type: ignore[arg-type]
    assert [verdict.begin for verdict in found] == [0x1000, 0x1030, 0x1040]


def test_verdicts_on_one_address() -> None:
    """That with more functions counts, wherever it ends; what overlaps the one before is left out."""
    some = [FoldedFunction(name, b"a.c", 1) for name in (b"f", b"g", b"h")]
    verdicts = [
        FoldedCode(0x1000, 0x1010, FoldingEvidence.DEFINITIONS, some[:2]),
        FoldedCode(0x1000, 0x1008, FoldingEvidence.NAMES, some),
        FoldedCode(0x1004, 0x1010, FoldingEvidence.NAMES, some[:2]),
        FoldedCode(0x1008, 0x1010, FoldingEvidence.NAMES, some[:2]),
    ]
    for given in (verdicts, verdicts[::-1]):
        assert _disjoint(given) == [verdicts[1], verdicts[3]]


ASSEMBLY: dict[str, Any] = {"language": 0x8001}
CLAIM: dict[str, Any] = {"low_pc": 0x1000, "high_pc": 0x100}
FIRST = defined("first", 0x1000, 3)
BORDERS: dict[str, tuple[Sequence[Symbol], list[Unit], bool]] = {
    "one name declared twice": (PAIR, [c_unit(FIRST), c_unit(defined("first", 0, 9), rows=[(0x1000, 10)])], False),
    "a copy, and no definition of the code": (PAIR, [c_unit(defined("second", 0, 9), rows=[(0x1000, 10)])], True),
    "a copy of either": (
        PAIR, [c_unit(defined("first", 0, 3), defined("second", 0, 9), rows=[(0x1000, 10)])], True,
    ),
    "a weak version of a global name": (
        (S("a", size=4), S("a@V1", size=4, binding=WEAK), S("b", size=4)), [], True,
    ),
    "a function that its unit does not claim": (
        PAIR[:1], [c_unit(FIRST), c_unit(defined("second", 0x1000, 9), ranges=[(0x1800, 0x1804)])], False,
    ),
    "two functions that no unit claims": (
        PAIR[:1], [c_unit(FIRST, defined("second", 0x1000, 9), ranges=[(0x1800, 0x1804)])], False,
    ),
    "lines of labels": (
        (S("first", size=4, binding=LOCAL),),
        [c_unit(rows=[(0x1000, line)], **CLAIM, **ASSEMBLY) for line in (4, 10)],
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BORDERS)
def test_what_counts_as_a_function(case: str) -> None:
    """What is shared depends on the definitions and lines of units that have code there, and on the strongest binding
    of each name (rules R155, R158, R265)."""
    symbols, units, expected = BORDERS[case]
    assert is_folded(symbols, units) == expected


def test_names_that_are_known_are_no_places() -> None:
    """Where names tell the functions, their line tables add none."""
    units = [c_unit(rows=[(0x1000, line)], **CLAIM) for line in (4, 10)]
    symbols = [S("_Z5firstv", 0x1000, 4), S("_Z6secondv", 0x1000, 4)]
    (code,) = shared_of(Binary([image_of(units, symbols=symbols)]).table())
    assert [(each.name, each.line) for each in code.functions] == [(b"_Z5firstv", 0), (b"_Z6secondv", 0)]


def test_a_definition_of_another_file() -> None:
    """A folded sequence is not that of a function that is declared in another file (rule R158)."""
    other = die("subprogram", name="other", low_pc=0, high_pc=4, decl_file=2, decl_line=9)
    for declared, expected in (
        (2, FoldedFunction(b"", b"/src/a.c", 10)),
        (1, FoldedFunction(b"other", b"/src/a.c", 9)),
    ):
        attributes = tuple((key, declared if key == "decl_file" else value) for key, value in other.attributes)
        files = [("a.c", 0), ("b.c", 0)]
        lost = c_unit(replace(other, attributes=attributes), rows=[(0x1000, 10)], files=files, fmt=Format(4))
        (code,) = shared_of(Binary([image_of([c_unit(FIRST, rows=[(0x1000, 4)]), lost])]).table())
        assert code.functions == [FoldedFunction(b"first", b"/src/a.c", 3), expected]


def test_ranges_of_several_sizes() -> None:
    """Of groups of one begin the shorter one has its bytes and the longer one the rest; both end where another symbol
    begins."""
    symbols = [S(name, 0x1000, size) for size, names in ((4, "ab"), (16, "cd")) for name in names]
    symbols.append(S("e", 0x1008, 4))
    shared = shared_of(Binary([image_of(symbols=symbols)]).table())
    assert [(code.begin, code.end, [each.name for each in code.functions]) for code in shared] == [
        (0x1000, 0x1004, [b"a", b"b"]), (0x1004, 0x1008, [b"c", b"d"]), (0x100C, 0x1010, [b"c", b"d"]),
    ]  # fmt: skip


def test_parts_below_the_entry() -> None:
    """A range does not reach below its begin, though the function does."""
    decoded = SimpleNamespace(segment_start=np.array([0xFF0, 0x1008, 0x1020], np.uint64))
    verdict = FoldedCode(0x1000, 0x1010, FoldingEvidence.DEFINITIONS, [])
    entered = np.array([0x1000, 0x1000, 0x1020], np.uint64)
    assert list(_where_entered(decoded, entered, verdict)) == [(0x1000, 0x1010)]  # type: ignore[arg-type]
