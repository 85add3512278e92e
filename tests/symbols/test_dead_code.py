"""Code that linkers discarded answers nowhere, also where it lies in live code (rules R54–R56)."""

from typing import Any

import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.symbols import build_table
from tests.support.dwarf_writer import As, die, function, inlined
from tests.support.elf_writer import LOCAL, NOTYPE, OBJECT, Symbol, text
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import image_of, names_at, places_at
from tests.support.programs import unit

START = Symbol("_start", 0x500, 0x40)
LIVE = unit(function("live", 0x600, 0x20), low_pc=0x600, high_pc=0x20, lines=Lines(sequence((0x600, 3), end=0x620)))


def dead_unit(lines: Lines | None, version: int = 4, **root: Any) -> Any:
    """A unit of functions up to 0x700 whose section is not in the file, as gold writes it: it begins at 0."""
    functions = [function(f"dead{low:x}", low, 0x80) for low in range(0, 0x700, 0x80)]
    return unit(*functions, fmt=Format(version), lines=lines, **root)


def program_of(*units: Any, **options: Any) -> ElfImage:
    """A program with code from 0x500 on, of which `_start` has no debug information."""
    return image_of([*units, LIVE], [text(0x500, 0x300)], [START, Symbol("live", 0x600, 0x20)], **options)


@pytest.mark.parametrize("root", [{"low_pc": 0, "high_pc": 0x700}, {"low_pc": 0, "ranges": [(0, 0x700)]}])
@pytest.mark.parametrize("version", [4, 5])
def test_units_that_are_dead_as_a_whole(version: int, root: dict[str, Any]) -> None:
    """The second function of a discarded section lies in the middle of live code, and is dead (rule R54)."""
    image = program_of(dead_unit(Lines(sequence((0, 1), (0x80, 2), end=0x700)), version, **root))
    assert names_at(image, 0x500, 0x53F, 0x540, 0x580, 0x600, 0x620) == [["_start"], ["_start"], [], [], ["live"], []]


def test_dead_functions_without_lines() -> None:
    """Where a unit has no lines its functions in a dead range are dead, in live symbols and beside them (rule R54)."""
    image = program_of(dead_unit(None, low_pc=0, high_pc=0x700))
    assert names_at(image, 0x500, 0x540, 0x580, 0x600) == [["_start"], [], [], ["live"]]


def test_live_functions_of_units_with_dead_ranges() -> None:
    """A unit has live functions if a line sequence is live, or if the symbols name them (rules R54, R61)."""
    lines = Lines([*sequence((0, 1), end=0x80), *sequence((0x700, 9), end=0x720)])
    other = function("other", 0x700, 0x20), function("dead", 0x500, 0x30)
    partial = unit(*other, lines=lines, low_pc=0, high_pc=0x80)
    assert names_at(program_of(partial), 0x500, 0x700) == [["_start"], ["other"]]
    named = unit(function("_start", 0x500, 0x50, decl_line=7), low_pc=0, high_pc=0x80)
    assert names_at(program_of(named), 0x500, 0x548) == [["_start"], ["_start"]]


@pytest.mark.parametrize(("size", "names"), [(0x20, ["f"]), (0x21, []), (0x80, [])])
def test_functions_longer_than_live_ranges(size: int, names: list[str]) -> None:
    """Where nothing but the ranges of a unit tells, a function in its dead range lives if all of it is in its live one
    too (rule R54)."""
    code = unit(function("f", 0x600, size), low_pc=0, ranges=[(0, 0x700), (0x600, 0x620)])
    assert names_at(image_of([code], [text(0x500, 0x300)]), 0x600) == [names]


def firmware(*symbols: Symbol, live: int = 0x10, more: Any = ()) -> ElfImage:
    """A program whose code begins at 0, where two discarded functions were placed, each with its lines."""
    child = inlined("inline", [(0, 4)], line=5)
    functions = (
        function("dead", 0, 0x1A, child, decl_line=1),
        function("long", 0, 0x200, decl_line=2),
        function("live", live, 0x20, decl_line=3),
        die("subprogram", name="inline", inline=As("data1", 1), label="inline"),
    )
    lines = [
        *sequence((0, 1), end=0x1A),
        *sequence((0, 2), (0x30, 22), end=0x200),
        *sequence((live, 3), (live + 8, 4), end=live + 0x20),
    ]
    root = {"ranges": [(0, 0x1A), (0, 0x200), (live, live + 0x20)], "low_pc": 0}
    return image_of([unit(*functions, lines=Lines(lines), **root), *more], [text(0, 0x300)], symbols)


def is_folded(image: ElfImage, vaddr: int) -> bool:
    """Whether several functions are said to share the code at an address."""
    return bool(build_table([image]).lookup(np.array([vaddr], np.uint64)).folded[0])


@pytest.mark.parametrize("kind", [OBJECT, NOTYPE])
def test_vectors_at_0(kind: int) -> None:
    """Where a table of vectors lies at 0, no function and no line sequence begins there (rule R55)."""
    vectors = Symbol("vectors", 0, 0x10, kind)
    image = firmware(vectors, Symbol("live", 0x10, 0x20), Symbol("asm", 0x30, 0x40))
    assert names_at(image, 0, 0x10, 0x18, 0x30, 0x80) == [["vectors"], ["live"], ["live"], ["asm"], []]
    assert [place[1] for place in places_at(image, 0, 0x10, 0x18, 0x30)] == [0, 3, 4, 0]
    assert not any(is_folded(image, vaddr) for vaddr in (0, 0x10, 0x20))


@pytest.mark.parametrize(("name", "size", "line"), [("dead", 0x1A, 1), ("long", 0x200, 2)])
def test_the_function_at_0(name: str, size: int, line: int) -> None:
    """Of functions and sequences that begin at 0 those live that have the name and the length of the symbol
    (rule R55)."""
    image = firmware(Symbol(name, 0, size), Symbol("live", size + 6, 0x20), live=size + 6)
    assert names_at(image, 8, 0x18, size, size + 6)[1:] == [[name], [], ["live"]]
    assert [place[1] for place in places_at(image, 8, 0x18, size + 6)] == [line, line, 3]
    assert not is_folded(image, 8)


def test_functions_of_one_name_at_0() -> None:
    """A discarded function of the same name is another one if its length is (rule R55)."""
    twin = unit(
        function("dead", 0, 0x40, decl_line=70), lines=Lines(sequence((0, 70), end=0x40)), low_pc=0, high_pc=0x40
    )
    for more in ((), (twin,)):
        image = firmware(Symbol("dead", 0, 0x1A, binding=LOCAL), Symbol("asm", 0x1C, 0x80), live=0xA0, more=more)
        assert names_at(image, 8, 0x20) == [["dead"], ["asm"]]
        assert [place[1] for place in places_at(image, 8, 0x20)] == [1, 0]


def test_folded_functions_at_0() -> None:
    """Functions that were folded into the one at 0 share it as anywhere else (rules R55, R119)."""
    image = firmware(
        Symbol("dead", 0, 0x1A),
        Symbol("same", 0, 0x1A),
        live=0x20,
        more=[unit(function("same", 0, 0x1A, decl_line=9), low_pc=0, high_pc=0x1A)],
    )
    assert is_folded(image, 8)


def test_code_at_0_without_symbols() -> None:
    """Without symbols nothing speaks against a function at 0 (rule R55)."""
    assert names_at(firmware(), 8, 0x50) == [["dead"], ["long"]]


def test_assembly_at_0() -> None:
    """Lines of assembly at 0, whose label has no size, are live (rule R55)."""
    startup = unit(
        lines=Lines(sequence((0, 11), (4, 12), end=0x10)), low_pc=0, high_pc=0x10, language=As("data2", 0x8001)
    )
    image = firmware(Symbol("reset", 0, 0, NOTYPE), Symbol("live", 0x10, 0x20), Symbol("next", 0x30, 4), more=[startup])
    assert names_at(image, 0, 4, 0x10) == [["reset"], ["reset"], ["live"]]
    assert [place[1] for place in places_at(image, 0x10)] == [3]
