"""What linkers leave of dead code answers nowhere, and address 0 is an address (rules R54–R62)."""

import struct
from typing import Any

import pytest

from tests.support.dwarf_writer import As, die, function
from tests.support.elf_writer import ALLOC, EXEC, NOBITS, WRITE, Section, Segment, text
from tests.support.line_writer import Format, Lines, advance_line, copy, end_sequence, sequence, set_address, special
from tests.support.lookup import TEXT, frames_at, image_of, names_at, places_at
from tests.support.programs import unit

V4 = Format(version=4)
TOP = (1 << 64) - 1


@pytest.mark.parametrize("low", [0, 1, 4, 0x10, 0xFFF, 0x2000, TOP, TOP - 1, 0x8000])
def test_dead_functions(low: int) -> None:
    """A function that begins outside the code is dead, whatever value the linker left (rules R54, R56, R63)."""
    data = Section(".data", type=NOBITS, flags=ALLOC | WRITE, address=0x8000, size=0x100)
    image = image_of([unit(function("dead", low, 0x2000), function("live", 0x1800, 8))], [text(), data])
    near = sorted({0, 1, 4, low, 0x1000, 0x1800})
    assert names_at(image, *near) == [["live"] if vaddr == 0x1800 else [] for vaddr in near]


@pytest.mark.parametrize("dead", [(0, 8), (1, 1), (1, 9), (TOP - 1, TOP), (TOP - 1, TOP - 1), (4, 0x10)])
@pytest.mark.parametrize("version", [4, 5])
def test_dead_range_entries(dead: tuple[int, int], version: int) -> None:
    """A dead entry of a range list costs itself only (rules R54, R57, R58)."""
    f = die("subprogram", name="f", ranges=[dead, (0x1000, 0x1008)])
    assert names_at(image_of([unit(f, fmt=Format(version))]), 0, 1, 4, 0x1000) == [[], [], [], ["f"]]


def test_clipped_to_the_section() -> None:
    """A range is cut at the end of its section, not carried into the next one (rule R54)."""
    sections = [text(0x1000, 0x100), text(0x2000, 0x100, ".text2")]
    image = image_of([unit(function("f", 0x10F0, 0x2000), lines=Lines(sequence((0x10F0, 3), end=0x3000)))], sections)
    assert names_at(image, 0x10FF, 0x1100, 0x2000) == [["f"], [], []]
    assert places_at(image, 0x10FF, 0x2000) == [("/src/a.c", 3, 0), ("", -1, -1)]


def test_adjacent_sections() -> None:
    """Sections that touch are one stretch of code: hot and cold parts of one program (rule R54)."""
    sections = [text(0x1000, 0x100), text(0x1100, 0x100, ".text.cold")]
    assert names_at(image_of([unit(function("f", 0x10F0, 0x20))], sections), 0x10FF, 0x1100) == [["f"], ["f"]]


@pytest.mark.parametrize("version", [4, 5])
def test_address_0(version: int) -> None:
    """Where code lies at 0 the function there lives (rule R55)."""
    f = die("subprogram", name="f", low_pc=0, high_pc=8)
    g = die("subprogram", name="g", ranges=[(8, 16)])
    program = Lines(sequence((0, 3), end=16))
    image = image_of([unit(f, g, fmt=Format(version), lines=program)], [text(0, 0x100)])
    assert names_at(image, 0, 7, 8) == [["f"], ["f"], ["g"]]
    assert [place[1] for place in places_at(image, 0)] == [3]


def test_segments_without_sections() -> None:
    """Without section headers the executable segments say where code is (rules R54, R102)."""
    segments = [Segment(0x1000, 0x100, 5), Segment(0x2000, 0x100, 6)]
    image = image_of([], [], segments=segments, section_headers=False)
    begin, end = image.code_ranges
    assert (begin.tolist(), end.tolist()) == ([0x1000], [0x1100])


def test_debug_file_sections() -> None:
    """NOBITS sections of code, as in debug files, say where code is; flags decide, not names (rules R54, R103)."""
    sections = [
        text(0x1000, 0x10, ".plt"),
        text(0x2000, 0x10, ".x", ALLOC),
        text(0x3000, 0x10, ".y", EXEC),
        text(0x4000, 0),
    ]
    begin, end = image_of([], sections).code_ranges
    assert (begin.tolist(), end.tolist()) == ([0x1000], [0x1010])


def test_section_at_the_top() -> None:
    """Code up to the last address, and a section that claims to go beyond, are no trouble (rule R54)."""
    sections = [text(TOP - 0xF, 0x10), text(TOP, 0x100, ".beyond")]
    image = image_of([unit(function("f", TOP - 0xF, 0xF))], sections)
    assert names_at(image, TOP - 2) == [["f"]]


def test_lines_are_filtered_on_their_own() -> None:
    """A live sequence does not revive a dead function, a dead one does not cost the others (rules R37, R62)."""
    operations = [*sequence((0x1000, 7), end=0x1010), *sequence((0, 8), end=0x2000), *sequence((0x1020, 9), end=0x1030)]
    image = image_of([unit(function("dead", 0, 0x10), function("f", 0x1020, 8), lines=Lines(operations))])
    assert names_at(image, 0, 0x1000, 0x1020) == [[], [], ["f"]]
    assert places_at(image, 0x1020) == [("/src/a.c", 9, 0)]


ROOTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "low_pc alone": {"low_pc": 0},
    "dead low_pc": {"low_pc": 0, "high_pc": 0x100},
    "inverted": {"low_pc": 0x1000, "high_pc": As("addr", 0x800)},
    "dead ranges": {"ranges": [(0, 8), (TOP - 1, TOP)]},
    "ranges out of bounds": {"ranges": As("sec_offset", 0x7FFFFFFF)},
}


@pytest.mark.parametrize("root", ROOTS)
def test_units_that_claim_nothing(root: str) -> None:
    """A unit whose own ranges are missing or unusable is searched all the same (rule R61)."""
    units = [unit(function("f", 0x1000, 8), **ROOTS[root]), unit(function("g", 0x1100, 8), low_pc=0x1100, high_pc=8)]
    for order in (units, units[::-1]):
        assert names_at(image_of(order), 0x1000, 0x1100) == [["f"], ["g"]]


PARTS: dict[str, tuple[int, dict[str, Any], bool]] = {
    "one range in DWARF 2": (2, {"low_pc": 0x1000, "high_pc": As("addr", 0x1008)}, True),
    "one range in DWARF 4": (4, {"low_pc": 0x1000, "high_pc": 8}, False),
    "ranges": (4, {"ranges": [(0x1000, 0x1008)]}, False),
    "ranges of assembly": (4, {"ranges": [(0x1000, 0x1008)], "language": As("data2", 0x8001)}, True),
}


@pytest.mark.parametrize("part", PARTS)
def test_units_that_claim_a_part(part: str) -> None:
    """What a unit has outside of its claims counts if these may be incomplete, after what is claimed (rule R255)."""
    version, root, counts = PARTS[part]
    lines = Lines([*sequence((0x1000, 1), end=0x1008), *sequence((0x1100, 2), end=0x1200)])
    both = function("f", 0x1000, 8), function("g", 0x1100, 16), function("small", 0x1180, 4)
    partial = unit(*both, lines=lines, fmt=Format(version), **root)
    other = unit(function("whole", 0x1180, 0x80), low_pc=0x1180, high_pc=0x80)
    image = image_of([partial, other])
    for vaddr, name in ((0x1000, ["f"]), (0x1100, ["g"] if counts else []), (0x1180, ["whole"])):
        assert names_at(image, vaddr) == [name]
    assert places_at(image, 0x1100) == [("/src/a.c", 2, 0) if counts else ("", -1, -1)]
    assert places_at(image, 0x1180) == [("", 0, 0)]


def aranges(unit_offset: int, *tuples: tuple[int, int], address_size: int = 8) -> bytes:
    """A set of .debug_aranges: ranges of the unit at an offset of .debug_info, as begin and length."""
    body = struct.pack("<HIBB", 2, unit_offset, address_size, 0)
    body += bytes(-(4 + len(body)) % (2 * address_size))
    order = "<QQ" if address_size == 8 else "<II"
    body += b"".join(struct.pack(order, *entry) for entry in tuples)
    return struct.pack("<I", len(body)) + body


ARANGES = {
    "of one unit only": aranges(0, (0x1000, 8), (0, 0)),
    "without end": aranges(0, (0x1000, 8)),
    "zeros in the middle": aranges(0, (0, 0), (0x1000, 8), (0, 0)),
    "dead": aranges(0, (0, 0x100), (TOP, 8), (TOP - 1, 8), (0, 0)),
    "of the other unit": aranges(0, (0x1100, 8), (0, 0)),
    "of no unit": aranges(0x7FFFFFFF, (0x1000, 0x1000), (0, 0)),
    "small addresses": aranges(0, (0x1000, 8), (0, 0), address_size=4),
    "cut": aranges(0, (0x1000, 8), (0, 0))[:-9],
    "no set": b"\xff" * 20,
}


@pytest.mark.parametrize("contents", ARANGES)
def test_aranges_change_nothing(contents: str) -> None:
    """Whatever .debug_aranges says or leaves out, the same functions are found (rules R59, R60)."""
    units = [unit(function("f", 0x1000, 8)), unit(function("g", 0x1100, 8), low_pc=0x1100, high_pc=8)]
    image = image_of(units, [TEXT, Section(".debug_aranges", ARANGES[contents])])
    assert names_at(image, 0, 4, 0x1000, 0x1008, 0x1100) == [[], [], ["f"], [], ["g"]]
    assert image.problems == []


def test_backward_jump_in_a_sequence() -> None:
    """After a backward jump rows outside the code are dropped, the others are sorted (rules R34, R35)."""
    operations = [
        *(set_address(0x1010), advance_line(9), copy, set_address(0x1000), special(0, 1)),
        *(set_address(0x4), special(0, 1), set_address(0x1020), special(0, 1), set_address(0x1030), end_sequence),
    ]
    image = image_of([unit(function("f", 0x1000, 0x40), lines=Lines(operations))])
    at = (0x1000, 0x100F, 0x1010, 0x1020, 0x1030)
    assert [place[1] for place in places_at(image, *at)] == [11, 11, 10, 13, 0]
    assert frames_at(image, 4) == [[]]


@pytest.mark.parametrize(
    ("jump", "end", "expected"),
    [
        pytest.param(0x4, 0xC, [10, 10, 10, 10, 11, 0], id="dead"),
        pytest.param(0x4, 0x1030, [10, 10, 10, 10, 11, 0], id="dead, with a live end"),
        pytest.param(0x1004, 0x100C, [10, 12, 12, 0, 11, 0], id="alive"),
    ],
)
def test_backward_jump_at_the_end_of_a_sequence(jump: int, end: int, expected: list[int]) -> None:
    """Rows before a jump back keep their places, whether those behind it are live or not (rules R34, R35)."""
    operations = [
        *(set_address(0x1000), advance_line(9), copy, set_address(0x1020), special(0, 1)),
        *(set_address(jump), special(0, 1), set_address(end), end_sequence),
    ]
    image = image_of([unit(function("f", 0x1000, 0x40), lines=Lines(operations))])
    at = (0x1000, 0x1004, 0x100B, 0x100C, 0x1020, 0x1021)
    assert [place[1] for place in places_at(image, *at)] == expected
    assert frames_at(image, 4) == [[]]


def test_repeated_rows_before_a_backward_jump() -> None:
    """A row that repeats the one before it counts where a jump back puts another row between them (rules R34, R35)."""
    operations = [
        *(set_address(0x1000), advance_line(9), copy, set_address(0x1010), copy),
        *(set_address(0x1008), special(0, 1), set_address(0x1020), end_sequence),
    ]
    image = image_of([unit(function("f", 0x1000, 0x20), lines=Lines(operations))])
    assert [place[1] for place in places_at(image, 0x1000, 0x1008, 0x1010, 0x101F)] == [10, 11, 10, 10]
