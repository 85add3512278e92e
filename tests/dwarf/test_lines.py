"""Line programs and file tables (rules R31–R53)."""

import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.cursor import COMPILED
from symbolize.dwarf import files, sources
from symbolize.dwarf.files import join_path
from symbolize.symbols import build_table
from symbolize.symbols.table import SymbolTable
from tests.support.dwarf_writer import As, Index, Unit, die, function
from tests.support.elf_writer import Section, text
from tests.support.line_writer import (
    Format,
    Lines,
    advance_line,
    advance_pc,
    const_add_pc,
    copy,
    end_sequence,
    extended,
    fixed_advance_pc,
    line_program,
    negate_stmt,
    sequence,
    set_address,
    set_column,
    set_file,
    special,
    uleb,
)
from tests.support.lookup import TEXT, frames_of, image_of, places_at
from tests.support.programs import unit
from tests.support.seeds import examples

START = set_address(0x1000)


def lined(lines: Lines, version: int = 5, **attributes: Any) -> Unit:
    """A unit with a function over the whole code and this line program."""
    return unit(function("f", 0x1000, 0x1000), fmt=Format(version), lines=lines, **attributes)


def line_at(operations: Sequence[Any], *vaddrs: int, **header: Any) -> list[int]:
    """The line at each address, 0 where there is none."""
    return [place[1] for place in places_at(image_of([lined(Lines(operations, **header))]), *vaddrs)]


def test_sequences() -> None:
    """A row reaches to the next one, the last to the exclusive end; gaps stay gaps (rules R31, R38), whatever the
    order of the sequences (rule R37)."""
    first, second = sequence((0x1000, 10), (0x1008, 20), end=0x1010), sequence((0x1020, 30), end=0x1030)
    at = (0x1000, 0x1007, 0x1008, 0x100F, 0x1010, 0x101F, 0x1020, 0x102F, 0x1030)
    for operations in ([*first, *second], [*second, *first]):
        assert line_at(operations, *at) == [10, 10, 20, 20, 0, 0, 30, 30, 0]


def test_last_row_of_an_address_wins() -> None:
    """Of several rows at one address the last counts (rule R32)."""
    assert line_at(sequence((0x1000, 1), (0x1000, 2), (0x1008, 3), (0x1008, 4), end=0x1010), 0x1000, 0x1008) == [2, 4]


def test_no_filter() -> None:
    """Rows that are no statements count like others (rule R33)."""
    operations = [START, negate_stmt, b"\x0a", advance_line(4), copy, advance_pc(8), b"\x07\x0b", special(0, 1)]
    assert line_at([*operations, advance_pc(8), end_sequence], 0x1000, 0x1008) == [5, 6]


def test_rows_out_of_order() -> None:
    """Rows whose addresses go back are sorted, stably (rule R34)."""
    rows = [(0x1000, 1), (0x1010, 2), (0x1008, 3), (0x1010, 4), (0x1018, 5)]
    at = (0x1000, 0x1008, 0x1010, 0x1018)
    assert line_at(sequence(*rows, end=0x1020), *at) == [1, 3, 4, 5]


def test_wraparound() -> None:
    """An advance that wraps around makes no row over everything (rule R36)."""
    operations = [
        START,
        advance_line(4),
        copy,
        advance_pc((1 << 64) - 0x800),
        special(0, 1),
        advance_pc(4),
        end_sequence,
    ]
    assert line_at(operations, 0x1000, 0x1100, 0x1FFF) == [0, 0, 0]


def test_wraparound_in_32_bits() -> None:
    """Addresses of four bytes wrap around at their own width (rules R36, R50)."""
    operations = [START, advance_line(4), copy, advance_pc((1 << 32) - 8), advance_pc(0x10), special(0, 1)]
    fmt = Format(address_size=4)
    written = unit(function("f", 0x1000, 0x100), fmt=fmt, lines=Lines([*operations, advance_pc(8), end_sequence]))
    assert [place[1] for place in places_at(image_of([written]), 0x1007, 0x1008)] == [5, 6]


def test_sequences_are_read_apart() -> None:
    """That a sequence begins below the one before is no jump in it: a row at its end has no code (rules R32, R35)."""
    lower = sequence((0x1000, 3), (0x1008, 4), end=0x1008)
    for operations in (lower, [*sequence((0x1010, 1), (0x1018, 2), end=0x1020), *lower]):
        assert line_at(operations, 0x1000, 0x1007, 0x1008) == [3, 3, 0]


def test_sequences_are_read_again() -> None:
    """Nor is the begin of one that is read a second time, because it goes back behind rows that were left out (rules
    R34, R35)."""
    back = [advance_pc((1 << 64) - 8), advance_line(1), copy, advance_pc(8), end_sequence]
    operations = [START, copy, advance_pc(4), copy, advance_pc(12), advance_line(1), copy, *back]
    assert line_at(operations, 0x1000, 0x1007, 0x1008, 0x100F, 0x1010) == [1, 1, 3, 3, 0]


def test_own_unit_answers() -> None:
    """Where sequences of several units overlap, that of the function's unit answers, else any (rule R37)."""
    a = unit(function("f", 0x1000, 8), lines=Lines(sequence((0x1000, 1), end=0x1020)))
    b = unit(function("g", 0x1008, 8), lines=Lines(sequence((0x1000, 2), end=0x1020)))
    for units in ([a, b], [b, a]):
        assert [place[1] for place in places_at(image_of(units), 0x1000, 0x1007, 0x1008, 0x100F)] == [1, 1, 2, 2]


def test_large_columns() -> None:
    """A column that the table has no room for is unknown, and no other one (rule R40)."""
    columns = [1, 0x1_0000, (1 << 32) - 2, 1 << 32, (1 << 32) + 5, (1 << 63) + 5]
    rows = [(0x1000 + row, 7, 1, column) for row, column in enumerate(columns)]
    places = places_at(image_of([lined(Lines(sequence(*rows, end=0x1010)))]), *(row[0] for row in rows))
    assert [column for _, _, column in places] == [*columns[:3], 0, 0, 0]


def test_line_0_and_column_0() -> None:
    """Line 0 keeps the file (rule R39), column 0 is unknown (rule R40)."""
    image = image_of([lined(Lines(sequence((0x1000, 5, 0, 9), (0x1008, 0, 0, 0), end=0x1010)))])
    assert places_at(image, 0x1000, 0x1008) == [("/src/a.c", 5, 9), ("/src/a.c", 0, 0)]


FILES = [("a.c", 0), ("b.c", 1), ("/abs/c.c", 1), ("d.c", 2)]


@pytest.mark.parametrize(
    ("version", "files"),
    [
        (4, ["/src/a.cc", "/src/a.c", "/inc/b.c", "/abs/c.c", "/src/rel/d.c", "", "", ""]),
        (5, ["/src/a.c", "/inc/b.c", "/abs/c.c", "/src/rel/d.c", "", "", "", ""]),
    ],
)
def test_file_indexes(version: int, files: list[str]) -> None:
    """Files count from 1 before DWARF 5, with 0 the unit's primary file, and from 0 since (rules R41, R44);
    directories likewise (rule R42); paths are joined (rule R43); an index outside is no file."""
    directories = ["/inc", "rel"] if version < 5 else ["/src", "/inc", "rel"]
    rows = [(0x1000 + i, i + 1, file) for i, file in enumerate((*range(7), 1 << 40))]
    image = image_of([lined(Lines(sequence(*rows, end=0x1100), FILES, directories), version)])
    assert [place[0] for place in places_at(image, *(row[0] for row in rows))] == files


def test_relative_comp_dir() -> None:
    """A relative compilation directory stays relative (rule R45)."""
    for version in (4, 5):
        directories = ["inc"] if version < 5 else [".", "inc"]
        lines = Lines(sequence((0x1000, 1), end=0x1008), [("a.c", 1), ("a.c", 1)], directories)
        assert places_at(image_of([lined(lines, version, comp_dir=".")]), 0x1000) == [("./inc/a.c", 1, 0)]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("/c", "d", "f"), "/c/d/f"),
        (("/c", "/d", "f"), "/d/f"),
        (("/c", "d", "/f"), "/f"),
        (("", "", "f"), "f"),
        (("/c/", "./d", "../f"), "/c/d/../f"),
        (("/c", "", ".//f"), "/c/f"),
        (("..", "d/./././", "f"), "../d/f"),
        (("/", "", "f"), "/f"),
    ],
)
def test_join_path(parts: tuple[str, str, str], expected: str) -> None:
    """Absolute parts stand alone, `/./` and `//` are collapsed, `..` is not (rules R43, R46)."""
    assert join_path(*(part.encode() for part in parts)).decode() == expected


def test_entry_formats() -> None:
    """MD5, size, time and embedded source are passed over, unknown contents by their form (rule R47)."""
    lines = Lines(sequence((0x1000, 1), end=0x1008))
    lines.directory_format = [(1, "line_strp"), (0x3FFF, "block")]
    lines.directories = []
    lines.file_format = [(5, "data16"), (4, "udata"), (3, "data8"), (0x2001, "line_strp"), (2, "data1"), (1, "strp")]
    lines.files = [(bytes(16), 0x12345, 7, "int main;", 0, "x.c"), (bytes(16), 1, 7, "", 0, "y.c")]
    assert places_at(image_of([lined(lines)]), 0x1000) == [("/src/y.c", 1, 0)]


@pytest.mark.parametrize("form", ["string", "line_strp", "strp"])
@pytest.mark.parametrize("wide", [False, True])
def test_entry_strings(form: str, wide: bool) -> None:
    """Names of files lie in the header, in .debug_line_str or in .debug_str (rule R48)."""
    lines = Lines(sequence((0x1000, 1), end=0x1008), [("x.c", 0), ("y.c", 0)])
    lines.directory_format, lines.file_format = [(1, form)], [(1, form), (2, "data2")]
    written = unit(function("f", 0x1000, 8), fmt=Format(dwarf64=wide), lines=lines)
    assert places_at(image_of([written]), 0x1000) == [("/src/y.c", 1, 0)]


@pytest.mark.parametrize("form", ["strx", "strx1", "strx2", "strx3", "strx4"])
@pytest.mark.parametrize("wide", [False, True])
def test_indexed_entry_strings(form: str, wide: bool) -> None:
    """Names of files and directories may be indexes into the strings of the unit (rule R48)."""
    lines = Lines(sequence((0x1000, 1), end=0x1008), [(Index(0), 0), (Index(1), 1)], [Index(0), Index(2)])  # type: ignore[list-item]
    lines.directory_format, lines.file_format = [(1, form)], [(1, form), (2, "data2")]
    strings = [die("variable", name=As("strx", text)) for text in ("/src", "y.c", "inc")]
    written = unit(function("f", 0x1000, 8), *strings, fmt=Format(dwarf64=wide), lines=lines)
    assert places_at(image_of([written]), 0x1000) == [("/src/inc/y.c", 1, 0)]


def test_unknown_entry_form() -> None:
    """A form that nobody knows costs the program, not the functions (rules R47, R69)."""
    lines = Lines(sequence((0x1000, 1), end=0x1008), [(b"", "x.c")], file_format=[(7, "indirect"), (1, "string")])
    image = image_of([lined(lines)])
    assert places_at(image, 0x1000) == [("", 0, 0)]
    assert any("line program" in problem for problem in build_table([image]).problems)


@pytest.mark.parametrize("opcode_base", [1, 2, 4, 9, 10, 13, 14, 17])
def test_opcode_base(opcode_base: int) -> None:
    """Fewer and more standard opcodes than thirteen are legal; unknown ones go by their lengths (rule R49)."""
    lengths = [(0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 0, 3, 1)[i] for i in range(opcode_base - 1)]
    unknown = [bytes([13]) + uleb(300) + uleb(5), bytes([15, 1, 2, 0x83, 0])] if opcode_base == 17 else []
    unknown += [bytes([13, 1, 1])] if opcode_base == 14 else []
    operations = [START, *unknown, special(1, 3), special(2, 4), set_address(0x1010), end_sequence]
    assert line_at(operations, 0x1000, 0x1001, 0x1003, opcode_base=opcode_base, lengths=lengths) == [0, 4, 8]


def test_address_arithmetic() -> None:
    """Advances are scaled, const_add_pc advances as opcode 255, fixed_advance_pc is not scaled (rule R50)."""
    operations = [START, copy, const_add_pc, special(0, 1), advance_pc(3), special(0, 1), fixed_advance_pc(3)]
    operations += [special(1, 1), advance_pc(1), end_sequence]
    # (255 - 13) // 14 = 17 instructions of four bytes.
    at = (0x1000, 0x1000 + 68, 0x1000 + 80, 0x1000 + 87)
    assert line_at(operations, *(a - 1 for a in at[1:]), *at[3:], min_inst_length=4) == [1, 2, 3, 4]


@pytest.mark.parametrize("line_base", [-128, -1, 0, 127])
def test_line_base(line_base: int) -> None:
    """The lowest step of the line is a signed byte (rule R50)."""
    operations = [START, advance_line(299), special(0, line_base), special(1, line_base + 3), advance_pc(8)]
    expected = [300 + line_base, 303 + 2 * line_base]
    assert line_at([*operations, end_sequence], 0x1000, 0x1001, line_base=line_base) == expected


def test_vliw() -> None:
    """With several operations an instruction, an address moves when an instruction is full (rule R50)."""
    operations = [START, special(2, 1), special(1, 1), advance_pc(4), special(0, 1), advance_pc(6), end_sequence]
    # Operations 2, 3 and 7 lie in the instructions 0, 1 and 2 of three operations and four bytes.
    assert line_at(operations, 0x1000, 0x1004, 0x1008, max_ops=3, min_inst_length=4) == [2, 3, 4]


@pytest.mark.parametrize("odd", [extended(0x80, b"abc"), extended(4, b"\x07"), extended(3, b"x.c\0\0\0\0"), b"\0\0"])
def test_extended_opcodes(odd: bytes) -> None:
    """Extended opcodes that are of no use here are passed over by their length (rule R51)."""
    operations = [START, odd, advance_line(6), copy, odd, advance_pc(8), end_sequence]
    assert line_at(operations, 0x1000) == [7]


def test_extended_length_decides() -> None:
    """What an extended opcode says of its length counts, also where its operand is shorter (rule R51)."""
    padded = b"\0" + uleb(12) + b"\x02" + (0x1000).to_bytes(8, "little") + b"\x05\x06\x07"
    assert line_at([START, padded, copy, advance_pc(8), end_sequence], 0x1000) == [1]


@pytest.mark.parametrize(
    "header",
    [{"line_range": 0}, {"opcode_base": 0}, {"version": 0xF006}, {"version": 1}, {"version": 6}, {"line_range": 1}],
)
def test_hostile_headers(header: dict[str, int]) -> None:
    """A header that cannot be used costs its unit the lines only (rule R52)."""
    bad = lined(Lines([b"\x20\x30\xff"], **header))
    good = unit(function("g", 0x2000, 8), lines=Lines(sequence((0x2000, 4), end=0x2008)))
    image = image_of([bad, good], [text(0x1000, 0x2000)])
    assert places_at(image, 0x1000, 0x2000) == [("", 0, 0), ("/src/a.c", 4, 0)]


def test_missing_end() -> None:
    """Rows that no end_sequence closes have no end and do not count (rule R31)."""
    assert line_at([*sequence((0x1000, 1), end=0x1008), set_address(0x1010), copy, advance_pc(8)], 0x1000, 0x1010) == [
        1,
        0,
    ]


def test_version_of_the_table_decides() -> None:
    """A DWARF 4 table beside a DWARF 5 unit counts files its own way (rules R41, R70)."""
    lines = Lines(sequence((0x1000, 1, 0), (0x1008, 2, 1), end=0x1010), [("x.c", 0)], [], version=4)
    assert places_at(image_of([lined(lines)]), 0x1000, 0x1008) == [("/src/a.cc", 1, 0), ("/src/x.c", 2, 0)]


def test_shared_program() -> None:
    """Units may share a line program (partial units, type units): it is decoded once for all (rule R37)."""
    lines = Lines(sequence((0x1000, 3), end=0x1020))
    units = [lined(lines), Unit(die("compile_unit", function("g", 0x1010, 4), name="g.cc", stmt_list=0))]
    assert [place[1] for place in places_at(image_of(units), 0x1000, 0x1010)] == [3, 3]


@pytest.mark.parametrize("is_first", [True, False])
def test_files_of_a_shared_program(is_first: bool) -> None:
    """Of units that share a line program one that holds code says where its files are, wherever it stands (rule
    R43)."""
    fmt = Format(version=4)
    lines = Lines(sequence((0x1000, 3), end=0x1010), [("x.c", 0)], [])
    partial = Unit(die("partial_unit", name="p.cc", comp_dir="/partial", stmt_list=0), fmt)
    whole = unit(function("f", 0x1000, 16), fmt=fmt, stmt_list=0)
    units = [whole, partial] if is_first else [partial, whole]
    units[0].lines, units[0].root = lines, replace(units[0].root, attributes=units[0].root.attributes[:-1])
    assert places_at(image_of(units), 0x1000) == [("/src/x.c", 3, 0)]


def paths_in(table: SymbolTable, vaddrs: Sequence[int]) -> list[str]:
    """The file of the innermost frame at each of the ascending addresses."""
    return [frames[0].file for frames in frames_of(table, vaddrs)]


def test_absurdly_long_names_of_files() -> None:
    """Of files with longer names than any system has the directory alone is told, which is reported."""
    names = ["x" * 16_000, "y" * 17_000, "b.c"]
    lines = Lines(sequence(*((0x1000 + i, 5, i) for i in range(3)), end=0x1010), [(name, 0) for name in names])
    table = build_table([image_of([lined(lines)])])
    assert paths_in(table, range(0x1000, 0x1003)) == ["/src/" + names[0], "/src/", "/src/b.c"]
    assert table.problems == ["names of files longer than 16384 bytes are left out"]


@pytest.mark.parametrize(
    ("module", "text"),
    [(sources, "names of files overlap absurdly"), (files, "paths of files are absurdly long")],
    ids=["names", "joined"],
)
def test_paths_of_files_are_bounded(module: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths beyond what their sections can hold are left out, which is reported where one is."""
    image = image_of([lined(Lines(sequence(*((0x1000 + i, 5, i) for i in range(4)), end=0x1010), FILES))])
    whole = [place[0] for place in places_at(image, *range(0x1000, 0x1004))]
    monkeypatch.setattr(module, "PATHS_PER_BYTE", 0)

    def read(room: int) -> tuple[bool, bool]:
        """Whether all paths are there, and whether it is said that some are not."""
        monkeypatch.setattr(module, "MORE_PATHS", room)
        table = build_table([image])
        is_whole = paths_in(table, range(0x1000, 0x1004)) == whole
        return is_whole, any(text in problem for problem in table.problems)

    enough = bisect_left(range(1000), True, key=lambda room: read(room)[0])
    assert 0 < enough < 1000
    assert read(enough) == (True, False)
    assert read(enough - 1) == (False, True)


def test_overlapping_programs_are_bounded() -> None:
    """Of line programs within one another no more is decoded than twice their bytes, which is reported."""
    programs = [b""]
    for number in range(12):
        rows = sequence((0x1000 + 16 * number, 5), end=0x1010 + 16 * number)
        inner = extended(0x80, programs[-1]) if number else b""
        programs.append(line_program(Lines([inner, *rows] if number else rows), Format(), {}))
    outer = programs.pop()
    units = [
        unit(function("f", 0x10B0 - 16 * number, 16), stmt_list=outer.index(program))
        for number, program in enumerate((outer, *programs[:0:-1]))
    ]
    image = image_of(units, [TEXT, Section(".debug_line", outer)])
    lines = [place[1] for place in places_at(image, *(0x1000 + 16 * number for number in range(12)))]
    assert lines == [0] * 9 + [5] * 3
    assert "line programs overlap absurdly; some lines are left out" in build_table([image]).problems
    image = image_of(units[:2], [TEXT, Section(".debug_line", outer)])
    assert [place[1] for place in places_at(image, 0x10A0, 0x10B0)] == [5, 5]
    assert build_table([image]).problems == []


Row = tuple[int, int, int, int]


def interpret(lines: Lines, choices: Sequence[tuple[str, int, int]]) -> tuple[list[Any], list[list[Row]]]:
    """Operations for a list of choices, and the sequences (the last row is the end) that they describe."""
    operations: list[Any] = []
    sequences: list[list[Row]] = []
    rows: list[Row] = []
    address, op_index, line, file, column = 0, 0, 1, 1, 0

    def advance(count: int) -> None:
        nonlocal address, op_index
        address += lines.min_inst_length * ((op_index + count) // lines.max_ops)
        op_index = (op_index + count) % lines.max_ops

    for kind, a, b in choices:
        if kind == "special":
            step, delta = a % 10, b % lines.line_range + lines.line_base
            operations.append(special(step, delta))
            advance(step)
            line = (line + delta) % (1 << 32)
            rows.append((address, file, line, column))
        elif kind == "copy":
            operations.append(copy)
            rows.append((address, file, line, column))
        elif kind == "advance_pc":
            operations.append(advance_pc(a))
            advance(a)
        elif kind == "const_add_pc":
            operations.append(const_add_pc)
            advance((255 - lines.opcode_base) // lines.line_range)
        elif kind == "fixed_advance_pc":
            operations.append(fixed_advance_pc(a))
            address, op_index = address + a, 0
        elif kind == "set_address":
            operations.append(set_address(0x1000 + a * 4))
            address, op_index = 0x1000 + a * 4, 0
        elif kind == "advance_line":
            operations.append(advance_line(b - 20))
            line = (line + b - 20) % (1 << 32)
        elif kind == "file":
            operations.append(set_file(a % 3))
            file = a % 3
        elif kind == "column":
            operations.append(set_column(b))
            column = b
        else:
            operations.append(end_sequence)
            sequences.append([*rows, (address, -1, -1, -1)])
            rows, address, op_index, line, file, column = [], 0, 0, 1, 1, 0
    return operations, sequences


KINDS = ["special"] * 5 + ["copy", "advance_pc", "const_add_pc", "fixed_advance_pc", "advance_line", "file", "column"]


@examples(150 if COMPILED else 40)
@given(st.integers(0, 1 << 32), st.sampled_from([1, 2, 4]), st.sampled_from([1, 3]), st.sampled_from([10, 13, 20]))
def test_against_a_naive_interpreter(seed: int, min_inst_length: int, max_ops: int, opcode_base: int) -> None:
    """Random programs of disjoint ascending sequences give the rows that reading the standard aloud gives
    (rules R31, R32, R38, R50)."""
    chance = random.Random(seed)
    lengths = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][: opcode_base - 1]
    lines = Lines(
        (), [("x", 0), ("y", 0), ("z", 0)], ("/s",), None, min_inst_length, max_ops, -3, 12, opcode_base, lengths
    )
    choices: list[tuple[str, int, int]] = []
    for i in range(chance.randrange(1, 4)):
        choices.append(("set_address", i * 0x200, 0))
        choices += [(chance.choice(KINDS), chance.randrange(12), chance.randrange(60)) for _ in range(20)]
        choices.append(("end", 0, 0))
    lines.operations, sequences = interpret(lines, choices)
    vaddrs = sorted({row[0] + d for rows in sequences for row in rows for d in (-1, 0, 1) if row[0] + d >= 0x1000})
    expected = []
    for vaddr in vaddrs:
        place: tuple[str, int, int] = ("", 0, 0)
        for rows in sequences:
            before = [row for row in rows if row[0] <= vaddr]
            if before and vaddr < rows[-1][0]:
                _, file, line, column = before[-1]
                place = ("/s/" + "xyz"[file], line, column)
        expected.append(place)
    written = unit(function("f", 0x1000, 0x4000), lines=lines)
    assert places_at(image_of([written], [text(0x1000, 0x4000)]), *vaddrs) == expected
