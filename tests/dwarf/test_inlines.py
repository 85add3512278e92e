"""Inlined functions: chains, call sites, and what belongs to whom (rules R19–R30)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from symbolize.symbols import build_table
from tests.support.dwarf_writer import As, Die, Ref, Unit, die, function, inlined
from tests.support.elf_writer import text
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import frames_at, frames_of, image_of, names_at
from tests.support.programs import unit

V4 = Format(version=4)
ORIGINS = [die("subprogram", name=name, label=name, decl_line=line) for line, name in enumerate("ghi", 1)]
FILES = [("a.cc", 0), ("b.cc", 0), ("c.cc", 0)]
LINES = Lines(sequence((0x1000, 10, 0, 5), end=0x1100), files=FILES)


def chains(*children: Die, at: tuple[int, ...], **options: Any) -> list[list[str]]:
    """The names at addresses of a function f over [0x1000, 0x1100) with these children."""
    return names_at(image_of([unit(function("f", 0x1000, 0x100, *children), *ORIGINS, **options)]), *at)


def test_frames_of_a_chain() -> None:
    """The leaf has the line row's place, each further frame that at which the one inside was inlined
    (rules R19, R20)."""
    h = inlined("h", [(0x1020, 0x1030)], line=30, call_file=2, call_column=3)
    f = function(
        "f", 0x1000, 0x100, inlined("g", [(0x1010, 0x1040)], h, line=20, call_file=1, call_column=2), decl_line=9
    )
    image = image_of([unit(f, *ORIGINS, lines=LINES)])
    assert frames_at(image, 0x1020) == [
        [("h", "/src/a.cc", 10, 5, 2), ("g", "/src/c.cc", 30, 3, 1), ("f", "/src/b.cc", 20, 2, 9)]
    ]


@pytest.mark.parametrize(("column", "shown"), [(0xFFFF, 0xFFFF), (0x1_0000, 0), (0x1_0005, 0), (0xFFFF_FFFF, 0)])
def test_large_call_columns(column: int, shown: int) -> None:
    """A column that the table has no room for is unknown, and no other one (rule R40)."""
    g = inlined("g", [(0x1010, 0x1020)], line=20, call_file=1, call_column=column)
    image = image_of([unit(function("f", 0x1000, 0x100, g), *ORIGINS, lines=LINES)])
    assert frames_at(image, 0x1010)[0][1].column == shown


def test_rows_that_disagree_with_the_tree() -> None:
    """File and line of the leaf are those of the row, also where it stands in no file of the function (rule R29)."""
    rows = sequence((0x1000, 10), (0x1010, 99, 2), (0x1018, 0, 2), end=0x1100)
    g = inlined("g", [(0x1010, 0x1020)], line=4, call_file=1)
    image = image_of([unit(function("f", 0x1000, 0x100, g), *ORIGINS, lines=Lines(rows, files=FILES))])
    f = ("f", "/src/b.cc", 4, 0, 0)
    assert frames_at(image, 0x1010, 0x1018) == [[("g", "/src/c.cc", 99, 0, 1), f], [("g", "/src/c.cc", 0, 0, 1), f]]


@pytest.mark.parametrize("line", [{}, {"call_line": 0}])
def test_unknown_call_line(line: dict[str, int]) -> None:
    """Without a call line, or with line 0, the frame is there with an unknown line (rule R21)."""
    g = die("inlined_subroutine", abstract_origin=Ref("g"), ranges=[(0x1010, 0x1020)], **line)
    image = image_of([unit(function("f", 0x1000, 0x100, g), *ORIGINS, lines=LINES)])
    assert [(frame.name, frame.line) for frame in frames_at(image, 0x1010)[0]] == [("g", 10), ("f", 0)]


def test_call_file_of_the_concrete_unit() -> None:
    """call_file counts in the unit of the inlined DIE, decl_line comes from the origin's (rule R22)."""
    other = unit(die("subprogram", name="x", label="x", decl_file=1, decl_line=77), name="other.cc")
    other.lines = Lines(files=[("o1.cc", 0), ("o2.cc", 0)])
    origin = As("ref_addr", Ref("x"))
    x = die("inlined_subroutine", abstract_origin=origin, ranges=[(0x1010, 0x1020)], call_file=1, call_line=4)
    image = image_of([unit(function("f", 0x1000, 0x100, x), lines=LINES), other])
    assert frames_at(image, 0x1010) == [[("x", "/src/a.cc", 10, 5, 77), ("f", "/src/b.cc", 4, 0, 0)]]


@pytest.mark.parametrize(("version", "expected"), [(4, ""), (5, "/src/a.c")])
def test_call_file_0(version: int, expected: str) -> None:
    """call_file 0 is no file before DWARF 5 and the first since (rule R23)."""
    f = function("f", 0x1000, 0x100, inlined("g", [(0x1010, 0x1020)], line=4, call_file=0))
    image = image_of([unit(f, *ORIGINS, fmt=Format(version), lines=Lines(sequence((0x1000, 1), end=0x1100)))])
    assert frames_at(image, 0x1010)[0][1].file == expected


@pytest.mark.parametrize("tag", ["lexical_block", "try_block", "catch_block", "with_stmt", 0x7777])
def test_wrappers(tag: str | int) -> None:
    """Blocks without ranges are passed through (rule R24)."""
    assert chains(die(tag, die(tag, inlined("g", [(0x1010, 0x1020)]))), at=(0x1010,)) == [["g", "f"]]


def test_holes() -> None:
    """An address in a gap of the ranges belongs to the function around it (rule R25)."""
    g = inlined("g", [(0x1010, 0x1014), (0x1018, 0x101C)], inlined("h", [(0x1012, 0x101A)]))
    at = (0x100F, 0x1010, 0x1012, 0x1014, 0x1017, 0x1018, 0x101A, 0x101C)
    expected = ["f", "g f", "h g f", "f", "f", "h g f", "g f", "f"]
    assert [" ".join(chain) for chain in chains(g, at=at)] == expected


def test_clipped_to_the_parent() -> None:
    """What an inlined function claims outside the one around it is not its own (rule R26)."""
    g = inlined("g", [(0x10F0, 0x1110)], inlined("h", [(0x1000, 0x1200)]))
    assert chains(g, at=(0x1000, 0x10F0, 0x10FF, 0x1100, 0x1110)) == [["f"], ["h", "g", "f"], ["h", "g", "f"], [], []]


def test_siblings() -> None:
    """Of two siblings over one address the smaller range answers, then the first DIE (rule R27)."""
    g, h, i = (inlined(name, [(0x1010, end)]) for name, end in (("g", 0x1030), ("h", 0x1020), ("i", 0x1020)))
    for order in ((g, h, i), (h, g, i), (h, i, g)):
        assert chains(*order, at=(0x1010, 0x1020)) == [["h", "f"], ["g", "f"]]


def test_inlinee_without_code() -> None:
    """An inlined function without ranges has no frame, but its children may (rule R28)."""
    empty = die("inlined_subroutine", inlined("h", [(0x1010, 0x1020)]), abstract_origin=Ref("g"))
    dead = inlined("g", [(0x1010, 0x1010)], inlined("h", [(0x1010, 0x1020)]))
    for g in (empty, dead):
        assert chains(g, at=(0x1010,)) == [["h", "f"]]


def test_nested_function_is_no_frame() -> None:
    """A function within an inlined one stands alone, with what is inlined into it (rule R11)."""
    nested = function("n", 0x1010, 0x10, inlined("h", [(0x1010, 0x1014)]))
    assert chains(inlined("g", [(0x1000, 0x1040)], nested), at=(0x1000, 0x1010, 0x1018)) == [
        ["g", "f"],
        ["h", "n"],
        ["n"],
    ]


@pytest.mark.parametrize("extent", [{}, {"low_pc": 0x1010, "high_pc": 0}, {"ranges": [(0x1010, 0x1010)]}], ids=str)
@pytest.mark.parametrize("is_in_block", [False, True])
def test_inlined_into_a_nested_function_without_code(is_in_block: bool, extent: dict[str, Any]) -> None:
    """What is inlined into a function without a byte is not inlined into the one around that, and its code is not
    that one's (rules R10, R11, R24)."""
    g = inlined("g", [(0x1010, 0x1018)], inlined("h", [(0x1014, 0x1018)]))
    nested = die("subprogram", die("lexical_block", g) if is_in_block else g, name="n", **extent)
    found = chains(nested, at=(0x100F, 0x1010, 0x1014, 0x1018))
    assert found == [["f"], ["g"], ["h", "g"], ["f"]]


def test_low_and_high_pc() -> None:
    """An inlined function may have low_pc and high_pc like any other, also below a unit with low_pc (rule R1)."""
    g = die("inlined_subroutine", abstract_origin=Ref("g"), low_pc=0x1010, high_pc=As("data4", 4))
    assert chains(g, at=(0x1010, 0x1014), fmt=V4, low_pc=0x1000) == [["g", "f"], ["f"]]


def test_depth_is_capped() -> None:
    """Inlining is followed for 256 levels; deeper levels do not count, and nothing breaks (rule R30)."""

    def nest(levels: int) -> Die:
        tree = inlined("g", [(0x1010, 0x1020)])
        for _ in range(levels - 1):
            tree = inlined("g", [(0x1010, 0x1020)], tree)
        return tree

    for levels, expected in ((200, 200), (256, 256), (300, 256)):
        assert chains(nest(levels), at=(0x1010,)) == [["g"] * expected + ["f"]]


def copies(count: int, size: Callable[[int], int]) -> list[Unit]:
    """Units that each have a copy of one function at one address, with what is inlined into it, and lines."""
    result = []
    for number in range(count):
        end = 0x1000 + size(number)
        inner = inlined("inner", [(0x1008, 0x100C)], line=3)
        copy = function("copy", 0x1000, size(number), inlined("outer", [(0x1004, 0x1010)], inner, line=2))
        abstract = [die("subprogram", name=name, label=name) for name in ("inner", "outer")] if not number else []
        own = own_at(number), own_at(number) + 8
        operations = [*sequence((0x1000, 1), (0x1008, 9), end=end), *sequence((own[0], 5), end=own[1])]
        lines, claims = Lines(operations), [(0x1000, end), own]
        result.append(unit(copy, function(f"own{number}", own[0], 8), *abstract, lines=lines, ranges=claims))
    return result


def own_at(number: int) -> int:
    """Where the function that only one unit has begins."""
    return 0x2000 + 8 * number


def test_many_copies_of_one_function() -> None:
    """Linkers keep the address in all descriptions of a function that many units have: equal ones are one (R254)."""
    image = image_of(copies(1100, lambda number: 0x20), [text(0x1000, 0x8000)])
    vaddrs = [0x1000, 0x1006, 0x1009, 0x100D, 0x1018, own_at(1099)]
    names = [["copy"], ["outer", "copy"], ["inner", "outer", "copy"], ["outer", "copy"], ["copy"], ["own1099"]]
    assert names_at(image, *vaddrs) == names
    table = build_table([image])
    assert table.problems == []
    assert [frame.line for frame in frames_of(table, vaddrs)[2]] == [9, 3, 2]


def test_more_functions_than_can_be_told_apart() -> None:
    """Where more different functions are than any program has, no name or line is made up for one (R254)."""
    image = image_of(copies(1100, lambda number: 0x20 + number), [text(0x1000, 0x8000)])
    table = build_table([image])
    found = frames_of(table, [0x1000, 0x1009, 0x1020 + 1099, own_at(7)])
    assert [[frame.name for frame in frames] for frames in found] == [[], [], [], ["own7"]]
    assert table.doubtful(np.array([0x1000, 0x1009, own_at(7)], np.uint64)).tolist() == [True, True, False]
    assert len(table.problems) == 1
    assert f"; {0x20 + 1099} bytes of code stay without names and lines" in table.problems[0]
