"""What is corrupt costs no more than its own unit (rules R69, R77)."""

import numpy as np
import pytest

from symbolize.core.cursor import COMPILED
from symbolize.elf import ElfImage
from symbolize.symbols import build_table
from tests.support.dwarf_writer import As, Unit, die, dwarf_contents, function, inlined
from tests.support.elf_writer import Section, Symbol, elf_file
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import TEXT, Frame, frames_of
from tests.support.programs import unit

UNITS = 5
DAMAGED = 2
STEP = 5 if COMPILED else 31
VADDRS = [0x1000 + 0x100 * i + at for i in range(UNITS) for at in (0, 0x14, 0x44)]


def one_unit(number: int, fmt: Format) -> Unit:
    """A unit with a namespace, two functions, an inlined one and lines."""
    base = 0x1000 + 0x100 * number
    g = die("subprogram", name=f"g{number}", label=f"g{number}", decl_line=3, decl_file=1)
    place = As("sec_offset", [(base + 0x10, base + 0x20)])
    f = function(f"f{number}", base, 0x40, inlined(f"g{number}", place, line=7, call_file=1), decl_line=5)
    lines = Lines(
        sequence((base, 10), (base + 0x10, 20, 1, 3), (base + 0x20, 30), end=base + 0x80), [("a", 0), ("b", 0)]
    )
    return unit(
        die("namespace", g, name=f"n{number}"), f, function(f"h{number}", base + 0x40, 0x40), fmt=fmt, lines=lines
    )


def contents_of(fmt: Format) -> tuple[dict[str, bytes], dict[str, tuple[int, int]]]:
    """The debug sections of all units, and where in each that of the unit to be damaged lies."""
    units = [one_unit(number, fmt) for number in range(UNITS)]
    whole, before, after = (dwarf_contents(units[:count]) for count in (UNITS, DAMAGED, DAMAGED + 1))
    own = ("info", "abbrev", "line", "ranges", "rnglists", "addr", "str_offsets")
    return whole, {name: (len(before[name]), len(after[name])) for name in own}


def frames_in(contents: dict[str, bytes], lazily: bool) -> tuple[list[list[Frame]], list[str]]:
    """The frames at VADDRS, and what was wrong."""
    sections = [Section(f".debug_{name}", data) for name, data in contents.items() if data]
    symbols = [Symbol(f"s{i}", 0x1000 + 0x100 * i, 0x80) for i in range(UNITS)]
    with ElfImage.parse(memoryview(elf_file([TEXT, *sections], symbols=symbols)), "units") as image:
        table = build_table([image], np.array(VADDRS, np.uint64) if lazily else None)
        return frames_of(table, VADDRS), table.problems


@pytest.mark.parametrize("fmt", [Format(5), Format(4)], ids=["v5", "v4"])
@pytest.mark.parametrize("lazily", [False, True], ids=["whole", "lazy"])
@pytest.mark.full
def test_neighbours_of_a_corrupt_unit(fmt: Format, lazily: bool) -> None:
    """Wherever a unit is damaged, behind its length, all others answer as before; where DIEs cannot be read it is said.

    Left out are lies that a reader has to believe, as other addresses are: the answers of the others may then
    be hidden, but never lost where nothing lies over them.
    """
    sound, places = contents_of(fmt)
    expected, problems = frames_in(sound, lazily)
    assert problems == []
    others = [i for i in range(len(VADDRS)) if i // 3 != DAMAGED]
    told = 0
    for name, (first, last) in places.items():
        length = 4 if name in ("info", "line", "rnglists", "addr", "str_offsets") and last > first else 0
        for place in range(first + length, last, STEP):
            for value in (0xFF, sound[name][place] ^ 0x15):
                damaged = bytearray(sound[name])
                damaged[place] = value
                frames, problems = frames_in(sound | {name: bytes(damaged)}, lazily)
                wrong = [i for i in others if frames[i] != expected[i]]
                claimed = {frame for i in wrong for frame in frames[i]} - {f for i in others for f in expected[i]}
                assert not wrong or claimed, (name, place, value, problems)
                told += bool(problems)
    assert told > 20 // STEP


@pytest.mark.parametrize("fmt", [Format(5), Format(4)], ids=["v5", "v4"])
@pytest.mark.full
def test_cut_off_abbreviations(fmt: Format) -> None:
    """A DIE whose abbreviation lacks its last attributes is not read: what follows them would be taken for it."""
    sound, _ = contents_of(fmt)
    expected, _ = frames_in(sound, False)
    known = {frame.name for frames in expected for frame in frames} | {f"s{UNITS - 1}"}
    end = len(sound["abbrev"])
    for cut in range(end - 60, end - 3):
        frames, problems = frames_in(sound | {"abbrev": sound["abbrev"][:cut]}, False)
        assert frames[: -len(VADDRS) // UNITS] == expected[: -len(VADDRS) // UNITS]
        assert known >= {frame.name for found in frames for frame in found}, cut
        assert frames == expected or problems, cut


@pytest.mark.parametrize("fmt", [Format(5), Format(4)], ids=["v5", "v4"])
def test_unreadable_abbreviations(fmt: Format) -> None:
    """A unit whose DIEs end in the middle is told by its offset, and only its names are missing."""
    sound, places = contents_of(fmt)
    expected, _ = frames_in(sound, False)
    first, last = places["abbrev"]
    damaged = sound | {"abbrev": sound["abbrev"][:first] + bytes(last - first) + sound["abbrev"][last:]}
    frames, problems = frames_in(damaged, False)
    assert any(f"{places['info'][0]:#x}" in problem for problem in problems)
    for i in range(len(VADDRS)):
        if i // 3 != DAMAGED:
            assert frames[i] == expected[i]
    assert [frame.name for frame in frames[3 * DAMAGED]] == [f"s{DAMAGED}"]
