"""Symbols that say more of a function than its name in DWARF does (rule R262)."""

import numpy as np
import pytest

from symbolize import names
from symbolize.symbols import build_table
from tests.support.dwarf_writer import As, die, function
from tests.support.elf_writer import NOTYPE, Symbol, text
from tests.support.lookup import image_of, names_at
from tests.support.programs import unit

PASCAL, D = As("data2", 0x09), As("data2", 0x13)

ENCODED = {
    "crystal": ("area", "*Box#area<Int32>:Int32"),
    "crystal class method": ("new", "*Slice(UInt8)@Slice(T)::new<Pointer(UInt8), Int32>:Slice(UInt8)"),
    "crystal operator": ("<<", "*Int32@Int#<<<UInt8>:Int32"),
    "crystal proc": ("->", "~procProc(Nil)@/usr/lib/crystal/lib/gc/boehm.cr:341"),
    "pascal": ("Inner", "P$SHAPES$_$TWICE$LONGINT$$LONGINT_$$_INNER$LONGINT$$LONGINT"),
    "pascal unit": ("Scale", "GEOM_$$_SCALE$LONGINT$$LONGINT"),
    "d": ("__dgliteral4", "_D3std6format4spec__T10FormatSpecTaZQp6fillUpMFNlZ12__dgliteral4MFNaNbNiNfZAxa"),
    "d template": ("put!(char)", "_D3foo3barFZ__T3putTaZQhFaZv"),
}


@pytest.mark.parametrize("language", ENCODED)
def test_symbols_that_encode_the_name(language: str) -> None:
    """A symbol that encodes the plain name with scopes and types names the function, whatever its language; inside of
    the function, where another symbol begins, DWARF does (rule R262)."""
    name, symbol = ENCODED[language]
    symbols = [Symbol(symbol, 0x1000, 0x10), Symbol("inside@" + symbol, 0x1008, 4, binding=0)]
    image = image_of([unit(function(name, 0x1000, 0x10))], symbols=symbols)
    assert names_at(image, 0x1000, 0x1008) == [[symbol], [name]]


@pytest.mark.parametrize("language", ENCODED)
def test_functions_in_scopes(language: str) -> None:
    """The scopes that debug information has around the function are no part of the name that is looked for (rule
    R262)."""
    name, symbol = ENCODED[language]
    tree = die("structure_type", function(name, 0x1000, 0x10), name="Scope")
    assert names_at(image_of([unit(tree)], symbols=[Symbol(symbol, 0x1000, 0x10)]), 0x1000) == [[symbol]]


def test_a_linked_name_that_is_the_plain_one_says_no_more() -> None:
    """Crystal has its plain names as linked ones too (rule R262); one that says more stays."""
    symbol = "*Box#area<Int32>:Int32"
    for linkage, expected in (("area", symbol), ("_ZN3Box4areaEv", "_ZN3Box4areaEv")):
        f = function("area", 0x1000, 0x10, linkage_name=linkage)
        assert names_at(image_of([unit(f)], symbols=[Symbol(symbol, 0x1000, 0x10)]), 0x1000) == [[expected]]


NOT_ENCODED = {
    "other name": [Symbol("*Box#areas<Int32>:Int32", 0x1000, 0x10)],
    "part of an identifier": [Symbol("__GI_area", 0x1000, 0x10)],
    "suffix": [Symbol("area.abi0", 0x1000, 0x10)],
    "another length in D": [Symbol("_D4main5area2FiZi", 0x1000, 0x10)],
    "several": [Symbol("*Box#area<Int32>:Int32", 0x1000, 0x10), Symbol("*Ball#area<Int32>:Int32", 0x1000, 0x10)],
    "begins before": [Symbol("*Box#area<Int32>:Int32", 0xFF8, 0x18)],
    "begins behind": [Symbol("*Box#area<Int32>:Int32", 0x1004, 0xC)],
    "no size": [Symbol("*Box#area<Int32>:Int32", 0x1000, 0)],
    "no function": [Symbol("*Box#area<Int32>:Int32", 0x1000, 0x10, NOTYPE)],
}


@pytest.mark.parametrize("case", NOT_ENCODED)
def test_symbols_that_do_not(case: str) -> None:
    """Any other symbol leaves the function the name that DWARF has (rules R6, R262)."""
    image = image_of([unit(function("area", 0x1000, 0x10))], symbols=NOT_ENCODED[case], sections=[text(0xF00, 0x1100)])
    assert names_at(image, 0x1008) == [["area"]]


def test_the_program_of_pascal() -> None:
    """Free Pascal calls the main function of a program `$main`, which is linked as `main` (rule R6)."""
    symbols = [Symbol("PASCALMAIN", 0x1000, 0x10), Symbol("main", 0x1000, 0x10)]
    image = image_of([unit(function("$main", 0x1000, 0x10), language=PASCAL)], symbols=symbols)
    assert names_at(image, 0x1008) == [["main"]]


def test_parts_of_a_function() -> None:
    """A further range of the function with a symbol of its own has that symbol's name (rules R18, R262)."""
    f = die("subprogram", name="inner", ranges=[(0x1000, 0x1010), (0x1100, 0x1108)])
    symbol = "_D4main5outerFiZ5innerMFNaNbNiNfiZi"
    symbols = [Symbol(symbol, 0x1000, 0x10), Symbol(symbol + ".cold", 0x1100, 8, binding=0)]
    assert names_at(image_of([unit(f, language=D)], symbols=symbols), 0x1000, 0x1100) == [[symbol], [symbol + ".cold"]]


def test_functions_of_one_name_stay_apart() -> None:
    """Functions of one plain name are as many names as symbols, in every mode (rule R262)."""
    symbols = [
        Symbol("P$SHAPES$_$TWICE$LONGINT$$LONGINT_$$_INNER$LONGINT$$LONGINT", 0x1000, 0x10),
        Symbol("P$SHAPES$_$THRICE$LONGINT$$LONGINT_$$_INNER$LONGINT$$LONGINT", 0x1010, 0x10),
        Symbol("GEOM_$$_INNER$LONGINT$$LONGINT", 0x1020, 0x10),
    ]
    functions = [function("Inner", 0x1000 + 0x10 * i, 0x10) for i in range(3)]
    table = build_table([image_of([unit(*functions, language=PASCAL)], symbols=symbols)])
    rows = np.unique(table.lookup(np.array([0x1000, 0x1010, 0x1020], np.uint64)).function).astype(np.int64)
    for mode in names.MODES:
        shown, linked, _ = table.functions.shown(rows, mode)
        assert set(shown) == set(linked) == {symbol.name.encode() for symbol in symbols}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "system_name", "shown"),
    [
        ("f<int>", "f<int>", "ns::f"),
        ("f<a::b, (c::d)0>", "f<a::b, (c::d)0>", "ns::f"),
        ("operator()<int>", "operator()<int>", None),
        ("operator std::vector<int>", "operator std::vector<int>", None),
        ("f", "f", "ns::f"),
    ],
)
def test_system_name_is_whole(name: str, system_name: str, shown: str | None) -> None:
    """Without a linked name the system name is DW_AT_name, arguments included; `name` goes by the mode (rule R262)."""
    table = build_table([image_of([unit(die("namespace", function(name, 0x1000, 0x10), name="ns"))])])
    short, linked, _ = table.functions.shown(np.zeros(1, np.int64), "default")
    assert [*linked] == [system_name.encode()]
    assert shown is None or [*short] == [shown.encode()]
    full, _, _ = table.functions.shown(np.zeros(1, np.int64), "full")
    assert [*full] == [f"ns::{name}".encode()]


def test_names_of_crystal_have_no_version() -> None:
    """What follows the @ of a name of Crystal is no symbol version (rule R114)."""
    for name in (b"*Int32@Int#to_s:String", b"~procProc(Nil)@/x/y.cr:3", b"*A@B(T)::new:A"):
        assert names.strip_version(name) == name
    for name in (b"f@@GLIBC_2.34", b"f@V1-rc.1", b"f@libfoo.so.1"):
        assert names.strip_version(name) == b"f"
