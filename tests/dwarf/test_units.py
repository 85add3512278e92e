"""Units, abbreviations, forms and strings: what one of them costs when it is wrong (rules R64–R77)."""

from typing import Any

import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.symbols import Binary, build_table
from tests.support.dwarf_writer import (
    COMPILE,
    PARTIAL,
    SKELETON,
    TYPE,
    As,
    Die,
    Index,
    Ref,
    Unit,
    die,
    function,
)
from tests.support.elf_writer import Section, elf_file
from tests.support.line_writer import Format, uleb
from tests.support.lookup import TEXT, frames_at, frames_of, image_of, names_at
from tests.support.programs import FORMATS, format_name, unit

BEFORE, AFTER = unit(function("before", 0x1100, 1)), unit(function("after", 0x1200, 1))
SOUND = [["before"], ["after"]]

VALUES: dict[str, Any] = {
    **{f"data{size}": 1 for size in (1, 2, 4, 8)},
    "data16": bytes(16),
    "flag": 1,
    "flag_present": True,
    "udata": 1 << 63,
    "sdata": -(1 << 62),
    "implicit_const": -7,
    "string": "some text",
    "block": b"abc",
    "block1": b"abc",
    "block2": b"",
    "block4": b"a",
    "exprloc": b"\x91\x00",
    "addr": 7,
    "ref1": 5,
    "ref2": 5,
    "ref4": 5,
    "ref8": 5,
    "ref_udata": 5,
    "ref_addr": 5,
    "ref_sig8": 1 << 60,
    "ref_sup4": 5,
    "ref_sup8": 5,
    "GNU_ref_alt": 5,
    "strp_sup": 5,
    "GNU_strp_alt": 5,
    "sec_offset": 9,
    "strp": "x",
    "line_strp": "y",
    "loclistx": 300,
    "rnglistx": 300,
    **{form: Index(200) for form in ("strx", "strx1", "strx2", "strx3", "strx4", "GNU_str_index")},
    **{form: Index(200) for form in ("addrx", "addrx1", "addrx2", "addrx3", "addrx4", "GNU_addr_index")},
}


@pytest.mark.parametrize("fmt", [f for f in FORMATS if f.version in (2, 5)], ids=format_name)
def test_all_forms_are_passed_over(fmt: Format) -> None:
    """Every form has its size, on DIEs that are walked past and on functions alike (rules R16, R68)."""
    attributes = {f"_{0x3000 + i:#x}": As(form, value) for i, (form, value) in enumerate(VALUES.items())}
    if fmt.indirect:
        attributes = {name: value for name, value in attributes.items() if value.form != "implicit_const"}
    tree = [
        die("variable", **attributes),
        die("structure_type", die("member", **attributes), sibling=True, **attributes),
        function("f", 0x1000, 8, die("formal_parameter", **attributes), **attributes),
    ]
    written = unit(*tree, function("last", 0x1010, 1), fmt=fmt)
    written.bases = "none"
    assert names_at(image_of([written]), 0x1000, 0x1010) == [["f"], ["last"]]


@pytest.mark.parametrize("form", ["string", "strp", "line_strp", "strx", "strx1", "strx2", "strx3", "strx4"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("bases", ["first", "last"])
def test_string_forms(form: str, wide: bool, bases: str) -> None:
    """Names come from wherever their form says, and base attributes may stand anywhere in the root
    (rules R67, R68)."""
    first = unit(function("x", 0x1100, 1, decl_file=1), fmt=Format(dwarf64=wide), name=As("strx", "x.cc"))
    written = unit(
        die("subprogram", name=As(form, "f"), low_pc=As("addrx", 0x1000), high_pc=1), fmt=Format(dwarf64=wide)
    )
    written.bases = bases
    assert names_at(image_of([first, written]), 0x1000) == [["f"]]


BROKEN: dict[str, Any] = {
    "unknown form on the function": unit(die("subprogram", name="f", low_pc=0x1000, high_pc=8, _0x3000=As(0x7F, b"a"))),
    "unknown form on another DIE": unit(die("variable", name=As(0x7F, b"abc")), function("f", 0x1000, 8)),
    "unknown version": Unit(die("compile_unit", function("f", 0x1000, 8)), header_version=6),
    "version 1": Unit(die("compile_unit", function("f", 0x1000, 8)), header_version=1),
    "unknown unit type": Unit(die("compile_unit", function("f", 0x1000, 8)), kind=0x70),
    "address size": Unit(die("compile_unit", name="x"), Format(address_size=3)),
    "unknown abbreviation": unit(die("namespace"), function("f", 0x1000, 8)),
}
BROKEN["unknown abbreviation"].tail = b"\x7f\x01"
BROKEN["unknown abbreviation"].root = die("compile_unit", name="x")


@pytest.mark.parametrize("broken", BROKEN)
def test_one_bad_unit(broken: str) -> None:
    """A unit that cannot be read costs its own names, and the table says so (rule R69)."""
    image = image_of([BEFORE, BROKEN[broken], AFTER])
    assert names_at(image, 0x1100, 0x1200) == SOUND
    if broken != "unknown abbreviation":  # it stands behind the end of the tree
        assert any(".debug_info offset" in problem for problem in build_table([image]).problems)


def test_what_was_read_before_stands() -> None:
    """Functions before the unreadable place of a unit keep their names (rule R69)."""
    broken = unit(function("f", 0x1000, 8), die("variable", name=As(0x7F, b"abc")), function("g", 0x1010, 8))
    assert names_at(image_of([broken]), 0x1000, 0x1010) == [["f"], []]


@pytest.mark.parametrize("kind", [TYPE, PARTIAL])
@pytest.mark.parametrize("wide", [False, True])
def test_units_without_code(kind: int, wide: bool) -> None:
    """Type and partial units hold no code, but can be referred to (rules R66, R89, R90)."""
    fmt = Format(dwarf64=wide)
    other = Unit(die("partial_unit", die("subprogram", name="f", label="a"), function("g", 0x1010, 8)), fmt, kind=kind)
    f = die("subprogram", abstract_origin=As("ref_addr", Ref("a")), low_pc=0x1000, high_pc=1)
    assert names_at(image_of([other, unit(f, fmt=fmt)]), 0x1000, 0x1010) == [["f"], []]


@pytest.mark.parametrize("kind", [COMPILE, SKELETON])
def test_units_with_code(kind: int) -> None:
    """Compile and skeleton units hold code (rules R66, R83)."""
    written = Unit(die("compile_unit", function("f", 0x1000, 8)), kind=kind)
    assert names_at(image_of([BEFORE, written, AFTER]), 0x1000) == [["f"]]


def test_mixed_file() -> None:
    """Versions, widths and address sizes may be mixed (rules R64, R65, R70)."""
    formats = [Format(2), Format(5, dwarf64=True), Format(3, dwarf64=True), Format(4, address_size=4), Format(5)]
    units = [
        unit(die("subprogram", name=f"f{i}", ranges=[(0x1000 + i, 0x1001 + i)]), fmt=f) for i, f in enumerate(formats)
    ]
    image = image_of(units, is_64=True)
    assert names_at(image, *range(0x1000, 0x1005)) == [[f"f{i}"] for i in range(5)]


@pytest.mark.parametrize(
    "length", [b"\xf0\xff\xff\xff", b"\xfe\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x01\x00", b"\xff" * 12]
)
def test_lengths(length: bytes) -> None:
    """A reserved length, or one past the section, ends the units; those before stand (rule R64)."""
    before = unit(function("before", 0x1100, 1))
    before.padding = length
    assert names_at(image_of([before, AFTER]), 0x1100, 0x1200) in ([["before"], []], SOUND)


def test_padding() -> None:
    """Null entries, unused bytes and zero padding are harmless (rule R72)."""
    padded = unit(function("before", 0x1100, 1))
    padded.tail, padded.padding = b"\0\0\0\x99\x88", bytes(8)
    image = image_of([padded, AFTER])
    assert names_at(image, 0x1100, 0x1200) == SOUND
    assert build_table([image]).problems == []


@pytest.mark.parametrize(
    "code", [lambda i: i * 1000, lambda i: 100 - i, lambda i: (i ^ 1) + 1, lambda i: i + (1 << 30)]
)
def test_sparse_abbreviations(code: Any) -> None:
    """Codes of abbreviations may be sparse and in any order (rule R71)."""
    written = unit(
        function("f", 0x1000, 8, die("variable", name="v")), die("base_type", name="int"), function("g", 0x1010, 8)
    )
    written.code = code
    assert names_at(image_of([written]), 0x1000, 0x1010) == [["f"], ["g"]]


def test_shared_abbreviations() -> None:
    """Units that share a table read it by their own sizes (rule R73)."""
    units = []
    for i, fmt in enumerate((Format(3), Format(3, address_size=4), Format(4, dwarf64=True), Format(2, address_size=4))):
        sized = {"_0x3000": As("strp", "x"), "_0x3001": As("ref_addr", 0)}
        f = die("subprogram", name=f"f{i}", low_pc=0x1000 + i, high_pc=1, **sized)
        units.append(Unit(die("compile_unit", f), fmt, shared="one"))
    assert names_at(image_of(units, is_64=True), *range(0x1000, 0x1004)) == [[f"f{i}"] for i in range(4)]


def test_names_out_of_units_that_were_not_decoded() -> None:
    """A lookup needs the abbreviations of units that it decodes none of: what is inlined from there (rule R73)."""
    home = unit(die("namespace", function("f", 0x1800, 8, inline=1, label="f"), name="n"), function("g", 0x1900, 8))
    origin = As("ref_addr", Ref("f"))
    call = die("inlined_subroutine", abstract_origin=origin, ranges=[(0x1004, 0x1008)], call_line=3)
    user = unit(function("main", 0x1000, 16, call))
    for units in ([home, user], [user, home]):
        table = build_table([image_of(units)], np.array([0x1005], np.uint64))
        assert [[frame.name for frame in frames] for frames in frames_of(table, [0x1005])] == [["n::f", "main"]]


def test_root_with_very_many_attributes() -> None:
    """A root with more attributes than any producer writes is unreadable, the units beside it are not."""
    absurd = unit(function("f", 0x1000, 8))
    attributes = tuple((0x3000 + i, As("flag_present", True)) for i in range(300))
    absurd.root = Die("compile_unit", absurd.root.attributes + attributes, absurd.root.children)
    table = build_table([image_of([BEFORE, absurd, AFTER])])
    assert [[frame.name for frame in frames] for frames in frames_of(table, [0x1100, 0x1200])] == SOUND
    assert any("unreadable units" in problem for problem in table.problems)


def test_many_roots_of_one_table() -> None:
    """Roots are found in a table that many units share, each with an abbreviation of its own (rules R71, R73)."""
    codes = [*range(100, 112), 300, 5]
    abbrev = b"".join(uleb(code) + bytes([0x11, 0, 0x11, 0x01, 0x12, 0x0B, 0, 0]) for code in codes) + b"\0"
    roots = [uleb(code) + (0x1000 + i).to_bytes(8, "little") + b"\1" for i, code in enumerate([*codes, 301])]
    info = b"".join((len(root) + 7).to_bytes(4, "little") + b"\4\0" + bytes(4) + b"\x08" + root for root in roots)
    data = elf_file([TEXT, Section(".debug_info", info), Section(".debug_abbrev", abbrev)])
    table = build_table([ElfImage.parse(memoryview(data), "test")])
    last = len(info) - len(roots[-1]) - 11
    assert table.problems == [f"unreadable units at .debug_info offset {last:#x}"]


def test_strings_are_bytes() -> None:
    """Names that are no UTF-8 come through (rule R74)."""
    image = image_of([unit(die("subprogram", name=b"f\xff\xe9", low_pc=0x1000, high_pc=1))])
    table = build_table([image])
    assert b"f\xff\xe9" in table.functions.name


def test_unterminated_string() -> None:
    """A string without NUL ends with its section (rule R75); one outside is none (rule R77)."""
    written = unit(
        die("subprogram", name=As("strp", Index(0)), low_pc=0x1000, high_pc=1),
        die("subprogram", name=As("strp", Index(2)), low_pc=0x1001, high_pc=1),
        die("subprogram", name=As("strp", Index(999)), low_pc=0x1002, high_pc=1),
    )
    image = image_of([written], [TEXT, Section(".debug_str", b"abc")])
    frames = frames_at(image, 0x1000, 0x1001, 0x1002)
    assert [frame.name for (frame,) in frames[:2]] == ["abc", "c"]
    assert len(frames[2]) == 1


def test_shared_lists_and_programs_stay_bounded() -> None:
    """Many DIEs that name one long range list cost no more than a file of that size could hold (rule R77)."""
    entries = [(0x1000 + 2 * i, 0x1001 + 2 * i) for i in range(1500)]
    first = die("subprogram", name="f", ranges=entries)
    others = [die("subprogram", name="f", ranges=As("sec_offset", 0)) for _ in range(3000)]
    written = unit(first, *others, fmt=Format(version=4))
    table = build_table([image_of([written])])
    assert any("range list entries" in problem for problem in table.problems)


def test_overlapping_abbreviation_tables_stay_bounded() -> None:
    """Units that each begin a table one byte further into the same abbreviations do not multiply it (rule R77)."""
    abbrev = b"".join(bytes([1 + i % 100, 0x34, 0, 3, 8, 0, 0]) for i in range(4000)) + b"\0"
    info = b"".join(
        (8).to_bytes(4, "little") + b"\x04\0" + (7 * i).to_bytes(4, "little") + b"\x08\0" for i in range(4000)
    )
    data = elf_file([TEXT, Section(".debug_info", info), Section(".debug_abbrev", abbrev)])
    assert build_table([ElfImage.parse(memoryview(data), "test")]).problems


def test_the_rest_behind_a_reserved_length_is_reported() -> None:
    """What no unit header leads to is lost, and the table says so (rule R64)."""
    before = unit(function("before", 0x1100, 1))
    before.padding = b"\xf0\xff\xff\xff"
    binary = Binary([image_of([before, AFTER])])
    table = binary.table()
    assert any("no unit can be read" in problem for problem in table.problems)
    assert table.doubtful(np.array([0x1200], np.uint64)).all()
