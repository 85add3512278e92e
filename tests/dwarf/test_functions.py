"""Functions: which ranges they have and what they are called (rules R1–R16)."""

from typing import Any

import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.names import demangle
from symbolize.symbols import build_table
from tests.support.dwarf_writer import As, C, Die, Index, Ref, Unit, die, function, inlined
from tests.support.elf_writer import Symbol
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import TEXT, frames_at, image_of, names_at
from tests.support.programs import FORMATS, format_name, unit

V4 = Format(version=4)


def one_name(image: ElfImage, vaddr: int) -> str:
    """The single name at an address, empty if there is none."""
    (names,) = names_at(image, vaddr)
    assert len(names) < 2
    return names[0] if names else ""


def extent(image: ElfImage, first: int, last: int) -> list[int]:
    """The addresses of `[first, last)` that have a name."""
    vaddrs = list(range(first, last))
    return [vaddr for vaddr, names in zip(vaddrs, names_at(image, *vaddrs), strict=True) if names]


@pytest.mark.parametrize("fmt", FORMATS, ids=format_name)
def test_every_format(fmt: Format) -> None:
    """Name, place and inline chain come out alike for every version, byte order, width and form of attributes
    (rules R16, R64, R65, R66, R68, R70)."""
    file = 0 if fmt.version >= 5 else 1
    program = Lines(
        sequence((0x1000, 10, file), (0x1010, 20, file, 3), (0x1020, 30, file), end=0x1040),
        files=[("a.cc", 0 if fmt.version >= 5 else 1)],
    )
    caller = function("f", 0x1000, 0x40, inlined("g", [(0x1010, 0x1020)], line=7, call_file=file), decl_line=5)
    image = image_of([unit(caller, die("subprogram", name="g", label="g", decl_line=3), fmt=fmt, lines=program)])
    inner, outer = ("g", "/src/a.cc", 20, 3, 3), ("f", "/src/a.cc", 7, 0, 5)
    assert frames_at(image, 0xFFF, 0x1000, 0x1010, 0x103F, 0x1040) == [
        [],
        [("f", "/src/a.cc", 10, 0, 5)],
        [inner, outer],
        [("f", "/src/a.cc", 30, 0, 5)],
        [],
    ]


def test_where_a_function_is_declared() -> None:
    """File and line are those of the definition, where it and the declaration in the class have some (rule R14)."""
    declared = die("subprogram", name="f", declaration=True, decl_file=2, decl_line=3, label="f")
    shape = die("class_type", declared, name="c")
    made = die("subprogram", specification=Ref("f"), low_pc=0x1000, high_pc=0x10, decl_file=1, decl_line=30)
    lines = Lines(sequence((0x1000, 31), end=0x1010), files=[("a.cc", 0), ("a.h", 0)])
    image = image_of([unit(shape, made, fmt=Format(4), lines=lines)])
    ((frame,),) = frames_at(image, 0x1000)
    assert (frame.name, frame.start_line) == ("c::f", 30)


@pytest.mark.parametrize(
    "high",
    [
        As("addr", 0x1010),
        As("addrx", 0x1010),
        As("addrx2", 0x1010),
        As("addrx3", 0x1010),
        *(As(form, 0x10) for form in ("data1", "data2", "data4", "data8", "udata", "sdata", "implicit_const")),
    ],
    ids=lambda high: high.form,
)
def test_high_pc_by_form(high: As) -> None:
    """high_pc of an address form is an end, of any constant form a length (rule R1)."""
    assert extent(image_of([unit(die("subprogram", name="f", low_pc=0x1000, high_pc=high))]), 0xFFE, 0x1014) == list(
        range(0x1000, 0x1010)
    )


def test_high_pc_by_form_not_by_value() -> None:
    """A length above the low_pc stays a length (rule R1)."""
    text = TEXT._replace(address=0x10, size=0x100)
    image = image_of([unit(function("f", 0x20, 0x40))], [text])
    assert extent(image, 0x10, 0x80) == list(range(0x20, 0x60))


@pytest.mark.parametrize("version", [3, 4, 5])
def test_ranges_win(version: int) -> None:
    """With ranges, low_pc and high_pc are not the extent (rule R2), and order among ranges is nothing (rule R5)."""
    ranges = [(0x1100, 0x1104), (0x1000, 0x1004)]
    f = die("subprogram", name="f", low_pc=0x1100, high_pc=0x80, ranges=ranges)
    image = image_of([unit(f, fmt=Format(version))])
    assert extent(image, 0x1000, 0x1200) == [*range(0x1000, 0x1004), *range(0x1100, 0x1104)]


@pytest.mark.parametrize(
    ("low", "entries", "expected"),
    [
        ({}, [(0x1010, 0x1012)], [0x1010, 0x1011]),
        ({"low_pc": 0x1000}, [(0x10, 0x12)], [0x1010, 0x1011]),
        ({"low_pc": 0x1000}, [("base", 0x1100), (0, 1), ("base", 0x1200), (2, 3)], [0x1100, 0x1202]),
        ({"low_pc": 0x1000}, [("base", 0), (0x1020, 0x1021)], [0x1020]),
        ({}, [(0x1010, 0x1010), (0x1030, 0x1020), (0x1040, 0x1041)], [0x1040]),
        ({}, [((1 << 64) - 2, (1 << 64) - 1), (0x1040, 0x1041)], [0x1040]),
        ({}, [(1, 1), (0x1040, 0x1041)], [0x1040]),
        ({}, [("base", (1 << 64) - 1), (0x1001, 0x1009), ("base", 0), (0x1040, 0x1041)], [0x1040]),
    ],
)
def test_debug_ranges(low: dict[str, int], entries: list[Any], expected: list[int]) -> None:
    """Entries of .debug_ranges count from the unit's low_pc, or from 0, until a base selector (rule R3); empty,
    inverted and tombstoned ones fall away alone (rules R7, R57, R58)."""
    image = image_of([unit(die("subprogram", name="f", ranges=entries), fmt=V4, **low)])
    assert extent(image, 0x1000, 0x1300) == expected


def test_tombstones_have_the_units_width() -> None:
    """2³²-1 selects a base, and 2³²-2 is dead, in units with 4-byte addresses (rule R57)."""
    fmt = Format(version=4, address_size=4)
    entries = [((1 << 32) - 2, (1 << 32) - 1), ("base", 0x1100), (0, 2)]
    assert extent(image_of([unit(die("subprogram", name="f", ranges=entries), fmt=fmt)]), 0x1000, 0x1200) == [
        0x1100,
        0x1101,
    ]


@pytest.mark.parametrize("form", ["sec_offset", "rnglistx"])
@pytest.mark.parametrize("bases", ["first", "last"])
def test_rnglists(form: str, bases: str) -> None:
    """All kinds of .debug_rnglists entries, by offset and by index, wherever the base attributes stand
    (rules R4, R67)."""
    entries = [
        ("offset_pair", 0x10, 0x11),
        ("base", 0x1100),
        ("offset_pair", 0x1, 0x2),
        ("basex", 0x1200),
        ("offset_pair", 0x2, 0x3),
        ("startx_endx", 0x1303, 0x1304),
        ("startx_length", 0x1404, 1),
        ("start_end", 0x1505, 0x1506),
        ("start_length", 0x1606, 1),
        ("start_length", 0x1700, 0),
        ("start_end", 0x1720, 0x1710),
    ]
    expected = [0x1010, 0x1101, 0x1202, 0x1303, 0x1404, 0x1505, 0x1606]
    for size in (4, 8):
        f = die("subprogram", name="f", ranges=As(form, entries))
        written = unit(die("subprogram", name="g", ranges=As(form, [(0x1800, 0x1801)])), f, low_pc=0x1000)
        written.format, written.bases = Format(address_size=size), bases
        assert extent(image_of([written]), 0x1000, 0x2000) == [*expected, 0x1800]


def test_rnglistx_without_a_base() -> None:
    """An index without a base or past the table costs its function the extent, nothing else (rules R4, R77)."""
    broken = [die("subprogram", name="f", ranges=As("rnglistx", Index(index))) for index in (1 << 40, 0)]
    written = unit(*broken, function("g", 0x1000, 1))
    written.bases = "none"
    assert one_name(image_of([written]), 0x1000) == "g"


def test_range_whose_end_cannot_be_read() -> None:
    """A range that ends at an address of no table is none; those beside it stay (rules R7, R77)."""
    index = Index(1 << 20)
    entries = [("startx_endx", 0x1000, 0x1001), ("startx_endx", 0x1010, index), ("start_end", 0x1020, 0x1021)]
    image = image_of([unit(die("subprogram", name="f", ranges=entries))])
    assert extent(image, 0x1000, 0x1040) == [0x1000, 0x1020]


def test_inverted_ranges() -> None:
    """An empty or inverted low_pc and high_pc costs that function only (rule R7)."""
    inverted = [
        die("subprogram", name="f", low_pc=0x1010, high_pc=As("addr", 0x1000)),
        die("subprogram", name="g", low_pc=0x1010, high_pc=As("sdata", -4)),
        function("h", 0x1010, 0),
    ]
    image = image_of([unit(*inverted, function("rest", 0x1000, 0x20))])
    assert extent(image, 0xFF0, 0x1030) == list(range(0x1000, 0x1020))
    assert one_name(image, 0x1010) == "rest"


@pytest.mark.parametrize("extent_of", [{"low_pc": 0x1010, "high_pc": 0}, {"ranges": [(0x1010, 0x1010)]}])
@pytest.mark.parametrize("fmt", [V4, Format()], ids=format_name)
def test_function_of_length_zero(extent_of: dict[str, Any], fmt: Format) -> None:
    """A function without a byte answers for its address where nothing else does, and takes nothing (rule R8)."""
    empty = [die("subprogram", name=name, **extent_of) for name in ("f", "g")]
    alone = image_of([unit(*empty, function("rest", 0x1011, 4), function("before", 0x1000, 0x10), fmt=fmt)])
    assert names_at(alone, 0x100F, 0x1010, 0x1011) == [["before"], ["f"], ["rest"]]
    covered = image_of([unit(*empty, function("rest", 0x1000, 0x20), fmt=fmt)])
    assert extent(covered, 0xFFF, 0x1030) == list(range(0x1000, 0x1020))
    assert one_name(covered, 0x1010) == "rest"
    gap = image_of([unit(*empty, function("rest", 0x1000, 4), ranges=[(0x1000, 0x1040)], fmt=fmt)])
    assert extent(gap, 0xFFF, 0x1030) == [*range(0x1000, 0x1004), 0x1010]
    dead = image_of([unit(die("subprogram", name="f", low_pc=0, high_pc=0), function("rest", 0x1000, 4), fmt=fmt)])
    assert extent(dead, 0, 0x20) == []


def test_function_of_length_zero_in_a_symbol() -> None:
    """A sized symbol of another function that covers its address answers, its own symbol does not (rule R8)."""
    empty = unit(die("subprogram", name="f", low_pc=0x1010, high_pc=0), function("other", 0x1800, 4))

    def names(*symbols: Symbol) -> list[list[str]]:
        return names_at(image_of([empty], symbols=symbols), 0x100F, 0x1010, 0x1011)

    assert names(Symbol("around", 0x1000, 0x20)) == [["around"]] * 3
    assert names(Symbol("around", 0x1000, 0x20), Symbol("f", 0x1010, 0)) == [["around"]] * 3
    assert names(Symbol("before", 0x1000, 0x10), Symbol("behind", 0x1010, 8)) == [["before"], ["behind"], ["behind"]]
    assert names(Symbol("f", 0x1010, 1), Symbol("g", 0x1010, 1)) == [[], ["f"], []]
    assert names(Symbol("before", 0x1000, 0)) == [["before"], ["f"], ["before"]]


def test_inlined_into_a_function_of_length_zero() -> None:
    """What is inlined where no byte is left has no frame; a function with other ranges is not there (rules R7, R8)."""
    inner = [inlined("g", [(0x1010, 0x1010)]), die("subprogram", name="g", label="g")]
    other = die("subprogram", name="h", ranges=[(0x1018, 0x1018), (0x1020, 0x1024)])
    image = image_of([unit(die("subprogram", inner[0], name="f", low_pc=0x1010, high_pc=0), inner[1], other)])
    assert names_at(image, 0x1010, 0x1018, 0x1020) == [["f"], [], ["h"]]


def test_smallest_function_wins() -> None:
    """Of overlapping functions the smallest range answers, in one unit and across units (rule R9)."""
    units = [unit(function("wide", 0x1000, 0x40), function("tail", 0x1030, 0x20)), unit(function("narrow", 0x1010, 8))]
    for order in (units, units[::-1]):
        names = names_at(image_of(order), 0x1008, 0x1010, 0x1018, 0x1030, 0x1045)
        assert names == [["wide"], ["narrow"], ["wide"], ["tail"], ["tail"]]


def test_equal_functions() -> None:
    """Of equal ranges the one whose unit's line table covers it answers, then the first DIE (rule R9)."""
    plain, lined = unit(function("plain", 0x1000, 16)), unit(function("lined", 0x1000, 16))
    assert one_name(image_of([plain, lined]), 0x1004) == "plain"
    lined.lines = Lines(sequence((0x1000, 1), end=0x1010))
    assert one_name(image_of([plain, lined]), 0x1004) == "lined"


def test_a_line_table_counts_less_than_a_byte() -> None:
    """The smaller range answers, though only the unit of the other one, which comes first, has lines (rule R9)."""
    wide, narrow = unit(function("wide", 0x1000, 9)), unit(function("narrow", 0x1000, 8))
    wide.lines = Lines(sequence((0x1000, 1), end=0x1009))
    assert one_name(image_of([wide, narrow]), 0x1004) == "narrow"


def test_overlapping_trees_do_not_mix() -> None:
    """What is inlined into a function that another one hides is hidden with it (rules R9, R11)."""
    big = function("big", 0x1000, 0x20, inlined("g", [(0x1008, 0x100A)]))
    g = die("subprogram", name="g", label="g")
    assert names_at(image_of([unit(big, g, function("small", 0x1004, 0x10))]), 0x1008) == [["small"]]


NESTINGS = {
    "namespace": lambda f: die("namespace", f, name="n"),
    "class": lambda f: die("class_type", f, name="n"),
    "structure": lambda f: die("structure_type", f, name="n", sibling=True),
    "union": lambda f: die("union_type", f, name="n", sibling=True),
    "block": lambda f: function("outer", 0x1100, 0x10, die("lexical_block", f)),
    "function": lambda f: function("outer", 0x1000, 0x40, f),
    "abstract function": lambda f: die("subprogram", f, name="outer", inline=1, sibling=True),
    "local class": lambda f: die("subprogram", die("structure_type", f, name="n", sibling=True), name="o", inline=1),
    "module": lambda f: die("module", f, name="m", sibling=True),
    "unknown tag": lambda f: die(0x7777, f, sibling=True),
}


@pytest.mark.parametrize("nesting", NESTINGS)
def test_functions_wherever_they_are(nesting: str) -> None:
    """Functions are found below whatever holds them (rule R10), and are no inline frames of it (rule R11)."""
    f = die("subprogram", linkage_name="f", low_pc=0x1010, high_pc=8)
    image = image_of([unit(NESTINGS[nesting](f), function("after", 0x1200, 1))])
    assert names_at(image, 0x1010, 0x1200) == [["f"], ["after"]]


def test_skipped_subtrees() -> None:
    """Subtrees without code are passed over by their sibling attribute, structures in C only (rule R12)."""
    f = function("f", 0x1010, 8)
    for tag in ("enumeration_type", "array_type", "subroutine_type"):
        assert names_at(image_of([unit(die(tag, f, sibling=True), function("g", 0x1100, 1))]), 0x1100) == [["g"]]
    structure = die("structure_type", f, name="n", sibling=True)
    assert names_at(image_of([unit(structure)]), 0x1010) == [["n::f"]]
    assert names_at(image_of([unit(structure, language=C)]), 0x1010) == [[]]


def test_languages() -> None:
    """Structures hold no functions in C, of whatever year (rule R12), and there and in assembly scopes are no part of a
    name (rule R15)."""
    c = {0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E}  # C89, C, C99, C11, C17, C23
    assembly = 0x8001
    for language in sorted({each + step for each in (*c, assembly) for step in (-1, 0, 1)}):
        inner = die("structure_type", die("subprogram", linkage_name="g", low_pc=0x1010, high_pc=8), sibling=True)
        scope = die("namespace", function("f", 0x1000, 8), name="n")
        name = "f" if language in (*c, assembly) else "n::f"
        image = image_of([unit(scope, inner, language=As("data2", language))])
        assert names_at(image, 0x1000, 0x1010) == [[name], [] if language in c else ["g"]], hex(language)


@pytest.mark.parametrize("sibling", [0, 1, 0xB, 0x7FFFFFFF, 0xFFFFFFFF])
def test_useless_siblings(sibling: int) -> None:
    """A sibling attribute that points backwards or out of the unit is no way to go (rule R76)."""
    array = die("array_type", die("subrange_type", name="i"), sibling=As("ref4", sibling))
    assert names_at(image_of([unit(array, function("f", 0x1000, 1))]), 0x1000) == [["f"]]


CHAINS: dict[str, tuple[list[Die], dict[str, Any], str]] = {
    "own linkage name": ([], {"linkage_name": "_Z1fv", "name": "f"}, "_Z1fv"),
    "old linkage name": ([], {"_0x2007": "_Z1fv", "name": "f"}, "_Z1fv"),
    "linkage name behind a plain one": (
        [die("subprogram", name="f", label="a", specification=Ref("s")),
         die("subprogram", linkage_name="_Z1fv", label="s")],
        {"abstract_origin": Ref("a"), "name": "f"},
        "_Z1fv",
    ),
    "abstract origin": ([die("subprogram", name="f", inline=1, label="a")], {"abstract_origin": Ref("a")}, "f"),
    "specification": ([die("subprogram", name="f", declaration=True, label="s")], {"specification": Ref("s")}, "f"),
    "cycle": ([die("subprogram", name="f", label="a", abstract_origin=Ref("a"))], {"abstract_origin": Ref("a")}, "f"),
    "nowhere": ([], {"abstract_origin": As("ref4", 0xFFFFFF), "name": "f"}, "f"),
    "supplementary file": ([], {"abstract_origin": As("GNU_ref_alt", 4), "name": "f"}, "f"),
}  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS)
def test_names_along_references(chain: str) -> None:
    """Names come from the DIE or along its references (rules R13, R14); what leads nowhere ends the search."""
    others, attributes, expected = CHAINS[chain]
    f = die("subprogram", low_pc=0x1000, high_pc=1, **attributes)
    assert one_name(image_of([unit(f, *others)]), 0x1000) == expected


def test_long_chains_end() -> None:
    """A chain of references is followed for sixteen steps and no further (rule R14)."""
    for length, expected in ((15, "f"), (16, ""), (4000, "")):
        chain = [die("subprogram", label=f"d{i}", specification=Ref(f"d{i + 1}")) for i in range(length - 1)]
        chain += [die("subprogram", name="f", label=f"d{length - 1}")]
        image = image_of([unit(die("subprogram", low_pc=0x1000, high_pc=1, specification=Ref("d0")), *chain)])
        (frames,) = frames_at(image, 0x1000)
        assert [frame.name for frame in frames if frame.name in ("f", "")] == ([expected] if expected else [])


@pytest.mark.parametrize("form", ["ref1", "ref2", "ref4", "ref8", "ref_udata", "ref_addr"])
@pytest.mark.parametrize("version", [2, 3, 5])
def test_reference_forms(form: str, version: int) -> None:
    """References count from their unit, ref_addr from the section and with a size of its own (rule R16)."""
    for size in (4, 8):
        f = die("subprogram", low_pc=0x1001, high_pc=1, abstract_origin=As(form, Ref("a")), decl_line=7)
        written = unit(die("subprogram", name="f", label="a"), f, fmt=Format(version, address_size=size))
        assert one_name(image_of([unit(function("x", 0x1000, 1)), written]), 0x1001) == "f"


def test_references_across_units() -> None:
    """An origin in another unit, of another version and language, gives its name by its own rules (rules R16, R17)."""
    c = unit(die("namespace", die("subprogram", name="f", label="a"), name="n"), language=C, fmt=V4)
    f = die("subprogram", low_pc=0x1000, high_pc=1, abstract_origin=As("ref_addr", Ref("a")))
    for units in ([unit(f), c], [c, unit(f)]):
        assert one_name(image_of(units), 0x1000) == "f"


SCOPES: dict[str, tuple[Die, str]] = {
    "namespace": (die("namespace", function("f", 0x1000, 1), name="a"), "a::f"),
    "anonymous": (die("namespace", function("f", 0x1000, 1)), "(anonymous namespace)::f"),
    "types": (
        die("namespace", die("class_type", die("union_type", function("f", 0x1000, 1), name="u"), name="c"), name="n"),
        "n::c::u::f",
    ),
    "local class": (
        function("main", 0x1100, 1, die("structure_type", function("f", 0x1000, 1), name="s"), external=True),
        "main::s::f",
    ),
    "local class in a namespace": (
        die("namespace", function("g", 0x1100, 1, die("structure_type", function("f", 0x1000, 1), name="s")), name="n"),
        "n::g()::s::f",
    ),
    "local class of a function without scopes": (
        die(
            "namespace",
            function("g", 0x1100, 1, die("union_type", function("f", 0x1000, 1), name="u"), external=True),
            name="n",
        ),
        "g::u::f",
    ),
    "linkage name": (
        die("namespace", die("subprogram", linkage_name="_Z1fv", name="f", low_pc=0x1000, high_pc=1), name="n"),
        "_Z1fv",
    ),
    "block": (die("namespace", die("lexical_block", function("f", 0x1000, 1)), name="n"), "n::f"),
}


@pytest.mark.parametrize("scope", SCOPES)
def test_qualified_names(scope: str) -> None:
    """A function without linkage name is qualified by the scopes around it (rules R15, R264)."""
    tree, expected = SCOPES[scope]
    assert one_name(image_of([unit(tree)]), 0x1000) == expected
    assert one_name(image_of([unit(tree, language=C)]), 0x1000) == expected.rpartition("::")[2]


def test_qualified_by_the_declaration() -> None:
    """The scopes are those of the declaration, also where a class is itself completed elsewhere (rule R15)."""
    declared = die("class_type", name="c", declaration=True, label="c")
    completed = die("class_type", die("subprogram", name="f", label="s"), specification=Ref("c"))
    f = die("subprogram", low_pc=0x1000, high_pc=1, specification=Ref("s"))
    tree = [die("namespace", declared, name="n"), completed, f]
    assert one_name(image_of([unit(*tree)]), 0x1000) == "n::c::f"


@pytest.mark.parametrize("attribute", ["specification", "abstract_origin"])
def test_a_scope_that_refers_to_a_function(attribute: str) -> None:
    """A class that refers to a function is corrupt and no scope, and what is in it keeps its name (rule R15)."""
    scope = die("class_type", function("method", 0x1000, 4), **{attribute: Ref("outer")})
    image = image_of([unit(die("subprogram", name="outer", label="outer"), scope, language=As("data2", 0x21))])
    assert one_name(image, 0x1000) == "method"


def test_symbol_gives_the_suffix() -> None:
    """A sized symbol that agrees with DWARF up to a clone suffix names the frame (rules R6, R18); a sizeless one,
    or one of another function, does not."""
    ranges = [(0x1000, 0x1010), (0x1100, 0x1108)]
    f = die("subprogram", name="f", linkage_name="_Z1fv", ranges=ranges)
    symbols = [
        Symbol("_Z1fv", 0x1000, 0x10),
        Symbol("other.cold", 0x1100, 0, binding=0),
        Symbol("_Z1fv.cold", 0x1100, 8, binding=0),
    ]
    assert names_at(image_of([unit(f)], symbols=symbols), 0x1000, 0x1100) == [["_Z1fv"], ["_Z1fv.cold"]]
    others = [Symbol("_Z1gv", 0x1000, 0x10), Symbol("_Z1fv.cold", 0x1100, 0)]
    assert names_at(image_of([unit(f)], symbols=others), 0x1000, 0x1100) == [["_Z1fv"], ["_Z1fv"]]


def test_numbers_of_nested_functions() -> None:
    """Symbols of nested functions have a number, which stays in the linked name (rules R6, R18); other dots part."""
    f = [function("f", 0x1000 + 0x10 * i, 8) for i in range(5)]
    linked = ["f.0", "f.12.constprop.0", "f.x", "f.", "g.0"]
    symbols = [Symbol(name, 0x1000 + 0x10 * i, 8, binding=0) for i, name in enumerate(linked)]
    image = image_of([unit(*f, language=As("data2", C))], symbols=symbols)
    places = [0x1000 + 0x10 * i for i in range(5)]
    assert names_at(image, *places) == [["f.0"], ["f.12.constprop.0"], ["f"], ["f"], ["f"]]
    functions = build_table([image]).lookup(np.array(places, np.uint64)).functions
    assert {name for name in functions.name if name} == {b"f"}


def test_functions_called_like_a_suffix() -> None:
    """A Go function may be called `cold`: where DWARF has the name whole it is no clone of another one (rule R18)."""
    names = ["main.cold", "main.eh", "main.part.1", "main.other"]
    children = [function(name, 0x1000 + 0x10 * i, 8) for i, name in enumerate(names)]
    symbols = [Symbol(name, 0x1000 + 0x10 * i, 8) for i, name in enumerate([*names, "main"])]
    image = image_of([unit(*children, language=As("data2", 0x16))], symbols=symbols)
    frames = build_table([image]).lookup(np.array([0x1000, 0x1010, 0x1020, 0x1030], np.uint64))
    functions = frames.functions.take(frames.function)
    readable = demangle(functions.linkage, "default")
    assert [(n or r).decode() for n, r in zip(functions.name, readable, strict=True)] == names


def test_linkage_names_with_suffixes() -> None:
    """What is left of a clone in another partition of the program keeps its whole suffix (rules R6, R18)."""
    ranges = [(0x1000, 0x1010), (0x1100, 0x1108)]
    f = die("subprogram", name="f", linkage_name="_Z1fv.constprop.0", ranges=ranges)
    linked = ["_Z1fv.constprop.0", "_Z1fv.constprop.0.cold"]
    symbols = [Symbol(linked[0], 0x1000, 0x10), Symbol(linked[1], 0x1100, 8, binding=0)]
    assert names_at(image_of([unit(f)], symbols=symbols), 0x1000, 0x1100) == [linked[:1], linked[1:]]


def test_names_in_a_file_that_is_not_there() -> None:
    """A function whose name lies in a missing supplementary file takes the symbol's, else `??`; the rest of it, and
    its neighbours, stand (rule R92)."""
    away = {"abstract_origin": As("GNU_ref_alt", Index(0x40))}
    inner = die("inlined_subroutine", **away, ranges=[(0x1004, 0x1008)], call_line=3, call_file=1)
    children = [die("subprogram", inner, low_pc=low, high_pc=0x10, **away) for low in (0x1000, 0x1010)]
    lines = Lines(sequence((0x1000, 7), end=0x1028))
    both = unit(*children, function("f", 0x1020, 8), lines=lines)
    image = image_of([both], symbols=[Symbol("known", 0x1000, 0x10)])
    assert names_at(image, 0x1000, 0x1004, 0x1010, 0x1020) == [["known"], ["??", "known"], ["??"], ["f"]]
    assert [frame.line for frame in frames_at(image, 0x1004)[0]] == [7, 3]


def test_operators_agree_with_their_symbols() -> None:
    """Template arguments of an operator, which DWARF and the mangled name spell differently, do not part them
    (rule R6)."""
    f = die("namespace", function("operator!=<P const*>", 0x1000, 8), name="n")
    linked = "_ZN1nneIPK1PEEbT_S3_"
    assert one_name(image_of([unit(f)], symbols=[Symbol(linked, 0x1000, 8, binding=0)]), 0x1000) == linked


def test_abstract_functions_have_no_code() -> None:
    """Abstract instances and declarations answer nowhere (rule R13)."""
    tree = [die("subprogram", name="f", inline=1), die("subprogram", name="g", declaration=True)]
    assert names_at(image_of([Unit(die("compile_unit", *tree))]), 0x1000) == [[]]
