"""The answer for an address does not depend on what else is asked: tables of some addresses against the whole one."""

import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.cursor import COMPILED
from symbolize.elf import ElfImage
from symbolize.symbols.build import Builder
from symbolize.symbols.table import SymbolTable
from tests.support.dwarf_writer import As, Die, Unit, die, function, inlined
from tests.support.elf_writer import Symbol, text
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import Frame, frames_of, image_of
from tests.support.programs import unit
from tests.support.seeds import examples

FIXTURES = Path(__file__).parents[2] / "fixtures"
START, SPACE = 0x1000, 24
ASSEMBLY = 0x8001


def answers(table: SymbolTable, vaddrs: list[int]) -> list[tuple[list[Frame], bool]]:
    """What a table answers at each of the ascending addresses: frames, and whether the code is shared."""
    folded = table.lookup(np.array(vaddrs, np.uint64)).folded
    frames = frames_of(table, vaddrs)
    return [(found, bool(found) and is_folded) for found, is_folded in zip(frames, folded.tolist(), strict=True)]


def bounds(most: int = SPACE) -> st.SearchStrategy[tuple[int, int]]:
    """Begin and end of a range of the code."""
    addresses = st.integers(0, most).map(lambda x: START + x)
    return st.tuples(addresses, addresses).map(lambda b: (min(b), max(b)))


@st.composite
def functions(draw: st.DrawFn, name: str, depth: int = 2) -> Die:
    """A function with any ranges, or none, and perhaps one that is inlined into it, and functions inside of both."""
    inside = [draw(functions(f"{name}.{i}", depth - 1)) for i in range(draw(st.integers(0, depth)))]
    inner = draw(st.lists(bounds(), max_size=2))
    children = [inlined("inline", inner, *inside[1:], line=7), *inside[:1]] if inner else inside
    ranges = draw(st.lists(bounds(), min_size=1, max_size=2))
    if len(ranges) > 1:
        return die("subprogram", *children, name=name, ranges=ranges)
    begin, end = ranges[0]
    return function(name, begin, end - begin, *children)


@st.composite
def units(draw: st.DrawFn) -> list[Unit]:
    """Units that claim what they have, a part of it, something else or nothing, with any lines."""
    result = []
    for number in range(draw(st.integers(1, 4))):
        children = [draw(functions(f"f{number}.{i}")) for i in range(draw(st.integers(0, 3)))]
        root: dict[str, Any] = {"name": f"{number}.cc"}
        claims = draw(st.lists(bounds(), max_size=2))
        if len(claims) == 1 and draw(st.booleans()):
            root |= {"low_pc": claims[0][0], "high_pc": claims[0][1] - claims[0][0]}
        elif claims:
            root["ranges"] = claims
        if draw(st.integers(0, 3)) == 0:
            root["language"] = As("data2", ASSEMBLY)
        operations: list[bytes] = []
        for line, (begin, end) in enumerate(draw(st.lists(bounds(), max_size=3)), 100 * number + 1):
            if begin < end:
                operations += sequence((begin, line), (begin + (end - begin) // 2, line + 50), end=end)
        version = draw(st.sampled_from([2, 4, 5]))
        lines = Lines(operations) if operations else None
        origin = die("subprogram", name="inlined", label="inline") if number == 0 else None
        result.append(unit(*children, *([origin] if origin else []), fmt=Format(version), lines=lines, **root))
    return result


@examples(40 if COMPILED else 10)
@given(units(), st.lists(bounds(), max_size=2), st.randoms(use_true_random=False))
def test_any_claims(made: list[Unit], symbols: list[tuple[int, int]], rng: random.Random) -> None:
    """Whatever units claim, one address gets the same answer alone, with others and with all (rule R255)."""
    named = [Symbol(f"s{i}", begin, end - begin) for i, (begin, end) in enumerate(symbols)]
    check(image_of(made, [text(START, SPACE)], named), rng, 5)


def check(image: ElfImage, rng: random.Random, count: int) -> None:
    """Compare tables for `count` random sets of addresses of the code, half of them single ones, with the whole one."""
    builder = Builder([image], None)
    begin, end = (column.tolist() for column in image.code_ranges)
    every = [x for low, high in zip(begin, end, strict=True) for x in range(low, high)]
    expected = dict(zip(every, answers(builder.build(None), every), strict=True))
    for number in range(count):
        some = sorted(rng.sample(every, 1 if number % 2 else rng.randint(1, min(len(every), 40))))
        found = answers(builder.build(np.array(some, np.uint64)), some)
        assert found == [expected[x] for x in some], [hex(x) for x in some]
    builder.close()


@pytest.mark.parametrize("name", ["gcc-pie/ledger", "twins/lld-all/twins", "clang-pie/spectra"])
def test_fixtures(name: str) -> None:
    """So it is in programs."""
    with ElfImage.open(FIXTURES / "bin" / name) as image:
        check(image, random.Random(1), 12)


def test_damage_where_nothing_is_asked() -> None:
    """A unit ends at a DIE that cannot be read, also at one that no address needs (rule R69)."""
    damaged = inlined("inline", [(START + 1, START + 2)], call_file=As("indirect", bytes([0x21])))  # implicit_const
    functions = function("first", START, 4, damaged), function("second", START + 8, 4)
    made = unit(die("subprogram", name="inlined", label="inline"), *functions)
    check(image_of([made], [text(START, SPACE)]), random.Random(1), 10)


NESTED = """
int sum(int count, int (*each)(int)) { int s = 0; for (int i = 0; i < count; i++) s += each(i); return s; }
static inline int middle(int count) {
    int calls = 0;
    int square(int x) { int twice(int y) { return y * calls++; } return twice(x) + x; }
    return sum(count, square) + calls;
}
int outer(int count) { int cube(int x) { return x * x * count; } return sum(count, cube) + middle(count); }
"""


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("options", [["-O0"], ["-O2", "-ffunction-sections", "-gdwarf-4"]])
def test_functions_inside_functions(tmp_path: Path, options: list[str]) -> None:
    """A function inside another is apart from its code (rule R11)."""
    program, source = tmp_path / "nested", tmp_path / "nested.c"
    source.write_text(NESTED)
    subprocess.run(["gcc", "-g", *options, "-nostdlib", "-shared", "-fPIC", source, "-o", program], check=True)
    with ElfImage.open(program) as image:
        check(image, random.Random(1), 30)


@pytest.mark.needs("g++")
def test_one_range_for_many_sections(tmp_path: Path) -> None:
    """Strict DWARF 2 has one range for a root, and gcc gives it `.text` of units with many sections (rule R255)."""
    program, sources = tmp_path / "twins", FIXTURES / "src" / "twins"
    options = [
        "-O1",
        "-gdwarf-2",
        "-gstrict-dwarf",
        "-ffunction-sections",
        "-nostdlib",
        "-shared",
        "-fPIC",
        "-fno-exceptions",
    ]
    files = [str(sources / name) for name in ("shapes.cc", "other.cc", "main.cc")]
    subprocess.run(["g++", *options, "-fno-rtti", "-fno-stack-protector", *files, "-o", str(program)], check=True)
    with ElfImage.open(program) as image:
        begin, end, _ = Builder([image], None).dwarf.sources.claims
        assert (end - begin).sum() == 0
        check(image, random.Random(1), 30)


def test_units_that_decide_one_after_another() -> None:
    """Each unit may claim where the lines of the one before begin; the work for such a chain is bounded."""
    count = 1200
    asked = START + 2 * count + 50
    made = []
    for number in range(count):
        begin = START + 2 * max(number, 1)
        rows = [(START + 2 * number + 2, number + 1), (START + 2 * number + 3, number + 2)]
        lines = Lines([*sequence(*rows, end=asked + 4), *sequence(*rows, end=asked + 4)])
        root = {"name": f"{number}.c", "low_pc": begin, "high_pc": 1 if number else asked + 1 - begin}
        made.append(unit(function(f"f{number}", begin if number else asked, 1), fmt=Format(2), lines=lines, **root))
    builder = Builder([image_of(made, [text(START, 4 * count)])], None)
    rounds = []
    read = builder.dwarf.read_lines
    builder.dwarf.read_lines = lambda units: rounds.append(len(units)) or read(units)
    ((found, _),) = answers(builder.build(np.array([asked], np.uint64)), [asked])
    assert [frame.name for frame in found] == ["f0"]
    assert len(rounds) < 20
