"""Split units: what they take from their skeleton, which files they may come from (rules R78–R84, R88)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symbolize.binaries import BinaryIndex, Companions
from symbolize.elf import ElfImage
from symbolize.symbols import build_table
from tests.support.dwarf_writer import TYPE, As, C, Index, Ref, Unit, die, function, inlined
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import Frame, finder_of, frames_of, image_of, names_at
from tests.support.programs import unit
from tests.support.split_writer import (
    DWO_ID,
    DWO_ID_4,
    DWO_NAME,
    RANGES_BASE_4,
    at,
    skeleton,
    split_file,
    split_unit,
)

V4, V5 = Format(version=4), Format()
F = [["f"]]


def names(folder: Path, units: list[Unit], *vaddrs: int, **files: list[Unit]) -> list[list[str]]:
    """The names in a binary of `units` with split units in `<name>.dwo` beside it."""
    write(folder, **files)
    return names_at(image_of(units), *vaddrs, finder=finder_of(folder / "binary"))


def write(folder: Path, **files: list[Unit]) -> None:
    """Write .dwo files of these names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, split in files.items():
        (folder / f"{name}.dwo").write_bytes(split_file(split))


def problems(image: ElfImage, finder: Companions | None) -> str:
    """What a whole table says of its binary."""
    return "\n".join(build_table([image], None, finder).problems)


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("version", [4, 5])
def test_bases(version: int, wide: bool, big: bool, tmp_path: Path) -> None:
    """Indexed strings begin behind the header of DWARF 5, at 0 in DWARF 4; addresses are those of the skeleton, also
    of one that is not the first (rule R78)."""
    fmt = Format(version, big, dwarf64=wide)
    first = skeleton(fmt=fmt, addresses=[0x1500, 0x1510], dwo_id=7, file="other.dwo")
    second = skeleton(fmt=fmt)
    if version == 4:  # a part of .debug_addr further on
        first, second = second, skeleton(fmt=fmt, addresses=[0x1500], dwo_id=7, file="other.dwo", _0x2133=32)
    split = split_unit(at("f", 0, 4, fmt=fmt), at("g", 1, 4, fmt=fmt), fmt=fmt)
    other = split_unit(at("h", 0, 4, fmt=fmt), fmt=fmt, dwo_id=7)
    found = names(tmp_path, [first, second], 0x1000, 0x1004, 0x1010, 0x1500, a=[split], other=[other])
    assert found == [["f"], [], ["g"], ["h"]]


def test_ranges_base_is_for_the_split_unit(tmp_path: Path) -> None:
    """GNU_ranges_base moves the lists that the split unit names, not the skeleton's own; both count from the
    skeleton's low_pc (rule R79)."""
    lists = {"ranges": [(0, 0x100)], "_0x4000": As("sec_offset", [(4, 6), (0x20, 0x21)])}
    main = skeleton(fmt=V4, low_pc=0x1000, **lists, **{RANGES_BASE_4: As("sec_offset", 32)})
    f = die("subprogram", name=As("GNU_str_index", "f"), ranges=As("sec_offset", Index(0)))
    found = names(tmp_path, [main], 0x1003, 0x1004, 0x1006, 0x1020, a=[split_unit(f, fmt=V4)])
    assert found == [[], ["f"], [], ["f"]]


def test_lines_and_files_are_the_skeletons(tmp_path: Path) -> None:
    """Rows, and the files that calls and declarations count in, are in the binary (rule R80)."""
    lines = Lines(sequence((0x1000, 10, 0), (0x1004, 20, 1), end=0x1010), [("a.cc", 0), ("b.h", 0)])
    g = die("subprogram", name=As("strx", "g"), label="g", decl_line=3, decl_file=1)
    ranges = As("rnglistx", [("startx_length", Index(1), 4)])
    caller = at("f", 0, 16, inlined("g", ranges, line=7, call_file=1), decl_line=5)
    write(tmp_path, a=[split_unit(g, caller)])
    image = image_of([skeleton(lines=lines, addresses=[0x1000, 0x1004])])
    table = build_table([image], None, finder_of(tmp_path / "binary"))
    assert frames_of(table, [0x1000, 0x1004]) == [
        [Frame("f", "/src/a.cc", 10, 0, 5)],
        [Frame("g", "/src/b.h", 20, 0, 3), Frame("f", "/src/b.h", 7, 0, 5)],
    ]
    declared = {table.files[file] for file in table.function_decl_file.tolist() if file >= 0}
    assert declared == {b"/src/b.h"}
    assert table.problems == []


def test_primary_file_is_the_split_units(tmp_path: Path) -> None:
    """A skeleton has no name; file 0 of its rows is the one that the split unit is named after (rules R44, R80)."""
    split = at("f", 0, 16, fmt=V4)
    write(tmp_path, a=[split_unit(split, fmt=V4)])
    lines = Lines(sequence((0x1000, 10, 0), end=0x1010))
    table = build_table([image_of([skeleton(fmt=V4, lines=lines)])], None, finder_of(tmp_path / "binary"))
    assert frames_of(table, [0x1000]) == [[Frame("f", "/build/a.cc", 10)]]


def test_units_that_are_not_asked_for(tmp_path: Path) -> None:
    """For an address whose unit has a function there no other unit is read, nor missed (rule R61)."""
    other = skeleton(low_pc=0x1100, high_pc=0x10)
    image, finder = image_of([unit(function("f", 0x1000, 8)), other]), finder_of(tmp_path / "binary")
    tables = [build_table([image], asked, finder) for asked in (None, np.array([0x1000], np.uint64))]
    assert [len(table.problems) for table in tables] == [1, 0]
    assert frames_of(tables[1], [0x1000]) == frames_of(tables[0], [0x1000])


@pytest.mark.parametrize("fmt", [V4, V5], ids=["v4", "v5"])
def test_other_dwo_id(fmt: Format, tmp_path: Path) -> None:
    """A unit with another id is not that of the skeleton; the search goes on (rule R81)."""
    write(tmp_path, a=[split_unit(at("stale", 0, 4, fmt=fmt), fmt=fmt, dwo_id=DWO_ID ^ 1)])
    image, finder = image_of([skeleton(fmt=fmt)]), finder_of(tmp_path / "binary")
    assert names_at(image, 0x1000, finder=finder) == [[]]
    assert f"split unit a.dwo with dwo id {DWO_ID:#x}: {tmp_path}/a.dwo has another dwo id" in problems(image, finder)
    write(tmp_path / "new", a=[split_unit(at("f", 0, 4, fmt=fmt), fmt=fmt)])
    assert names_at(image_of([skeleton(fmt=fmt)]), 0x1000, finder=finder_of(tmp_path / "binary")) == F
    if fmt is V5:  # whose id is in the header, whatever attribute of GNU there is
        beside = skeleton(fmt=fmt, **{DWO_ID_4: As("data8", DWO_ID ^ 1)})
        assert names_at(image_of([beside]), 0x1000, finder=finder_of(tmp_path / "binary")) == F


@pytest.mark.parametrize(
    "plain",
    [
        unit(function("f", 0x1000, 8), **{DWO_NAME: "a.dwo"}),
        unit(function("f", 0x1000, 8), **{DWO_NAME: "a.dwo", DWO_ID_4: As("data8", DWO_ID)}),
        unit(function("f", 0x1000, 8), fmt=V4, **{DWO_ID_4: As("data8", DWO_ID)}),
    ],
    ids=["v5 with a file", "v5 with file and id", "v4 with an id"],
)
def test_what_is_no_skeleton(plain: Unit, tmp_path: Path) -> None:
    """A compile unit with a dwo id is whole: nothing is looked for (rule R82)."""
    write(tmp_path, a=[split_unit(function("wrong", 0x1000, 8))])
    image, finder = image_of([plain]), finder_of(tmp_path / "binary")
    assert names_at(image, 0x1000, finder=finder) == F
    assert problems(image, finder) == ""


@pytest.mark.parametrize("fmt", [V4, V5], ids=["v4", "v5"])
def test_children_of_skeletons(fmt: Format, tmp_path: Path) -> None:
    """They answer where the split unit is missing, and only there (rule R83)."""
    g = die("subprogram", name="g", label="g")
    caller = function("f", 0x1000, 16, inlined("g", [(0x1004, 0x1008)]))
    image = image_of([skeleton(g, caller, fmt=fmt)])
    finder = finder_of(tmp_path / "binary")
    assert names_at(image, 0x1000, 0x1004, finder=finder) == [["f"], ["g", "f"]]
    assert "a.dwo" in problems(image, finder)
    assert names_at(image, 0x1000, 0x1004) == [["f"], ["g", "f"]]
    found = names(
        tmp_path, [skeleton(g, caller, fmt=fmt)], 0x1000, 0x1004, a=[split_unit(at("h", 0, 16, fmt=fmt), fmt=fmt)]
    )
    assert found == [["h"], ["h"]]


@pytest.mark.parametrize("form", ["rnglistx", "sec_offset"])
@pytest.mark.parametrize("wide", [False, True])
def test_range_lists_of_split_units(form: str, wide: bool, tmp_path: Path) -> None:
    """They are in .debug_rnglists.dwo, or in the binary if there is none (rule R84)."""
    fmt = Format(dwarf64=wide)
    held = As("rnglistx", [(0x1100, 0x1104)])
    before = unit(die("subprogram", name="x", ranges=As("rnglistx", [(0x1800, 0x1801)])), fmt=fmt)
    table = (20 if wide else 12) + fmt.offset_size + 18
    # The skeleton's own list is the first of its table, the one of the function the second.
    main = skeleton(fmt=fmt, ranges=As("rnglistx", [(0x1000, 0x1200)]), _0x4000=held)
    own = die("subprogram", name=As("strx", "f"), ranges=As(form, [("startx_length", Index(0), 4)]))
    assert names(tmp_path, [before, main], 0x1000, 0x1100, a=[split_unit(own, fmt=fmt)]) == [["f"], []]
    if form == "rnglistx":
        named = As("rnglistx", Index(1))
    else:  # behind the other table, the header, both offsets and the first list
        named = As("sec_offset", Index(table + (20 if wide else 12) + 2 * fmt.offset_size + 18))
    elsewhere = die("subprogram", name=As("strx", "f"), ranges=named)
    assert names(tmp_path, [before, main], 0x1000, 0x1100, a=[split_unit(elsewhere, fmt=fmt)]) == [[], ["f"]]


def test_recorded_path_leads(tmp_path: Path) -> None:
    """Of several units with one id and name the one that lies like the recorded path is taken, then the one beside
    the binary (rule R88)."""
    for folder, name in (("x/build/sub", "recorded"), ("x/other/sub", "other"), ("x", "beside")):
        write(tmp_path / folder, a=[split_unit(at(name, 0, 4))])
    binary = tmp_path / "x" / "binary"
    assert names_at(image_of([skeleton(file="sub/a.dwo")]), 0x1000, finder=finder_of(binary)) == [["recorded"]]
    assert names_at(image_of([skeleton(file="./a.dwo")]), 0x1000, finder=finder_of(binary)) == [["beside"]]
    assert names_at(image_of([skeleton(file="/build/sub/a.dwo")]), 0x1000, finder=finder_of(binary)) == [["recorded"]]
    root = finder_of(binary, tmp_path / "x" / "other")
    assert names_at(image_of([skeleton(file="sub/a.dwo")]), 0x1000, finder=root) == [["other"]]


HOSTILE = [
    "../outside/a.dwo",
    "{outside}/a.dwo",
    "roots/../../outside/a.dwo",
    "/proc/self/../../{outside}/a.dwo",
    "",
    "/",
    "..",
]


@pytest.mark.parametrize("file", [*HOSTILE, b"\xff/a\n.dwo", b"a" * 5000])
def test_names_never_lead_out_of_the_roots(file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a binary calls its split unit or its folder, nothing outside of the roots is opened (rule R88)."""
    outside, roots = tmp_path / "outside", tmp_path / "roots"
    roots.mkdir()
    write(outside, a=[split_unit(at("outside", 0, 4))])
    if isinstance(file, str):
        file = file.format(outside=outside)
    opened = []
    real = ElfImage.open
    monkeypatch.setattr(ElfImage, "open", lambda path, *rest: (opened.append(path), real(path, *rest))[1])
    for comp_dir in (str(outside), "/", "..", str(roots)):
        image = image_of([skeleton(file=file, comp_dir=comp_dir)])
        finder = Companions(BinaryIndex([str(roots)]), [str(roots / "binary")])
        assert names_at(image, 0x1000, finder=finder) == [[]]
        assert "split unit" in problems(image, finder)
    assert opened == []


def test_many_missing_units_are_counted(tmp_path: Path) -> None:
    """Three are named, the others counted (rule R83)."""
    units = [skeleton(dwo_id=i + 1, file=f"{i}.dwo") for i in range(9)]
    text = problems(image_of(units), finder_of(tmp_path / "binary"))
    assert [f"split unit {i}.dwo" in text for i in range(9)] == [True] * 3 + [False] * 6
    assert "6 more split units are missing" in text


def test_corrupt_split_unit(tmp_path: Path) -> None:
    """What was read before the nonsense stands, a problem says where it is, and others are sound (rule R69)."""
    broken = split_unit(at("f", 0, 4), die("variable", name=As(0x7F, b"abc")), at("g", 1, 4))
    write(tmp_path, a=[broken], b=[split_unit(at("h", 0, 4), dwo_id=2)])
    units = [skeleton(), skeleton(dwo_id=2, file="b.dwo", addresses=[0x1800])]
    finder = finder_of(tmp_path / "binary")
    assert names_at(image_of(units), 0x1000, 0x1010, 0x1800, finder=finder) == [["f"], [], ["h"]]
    assert "corrupt DIEs in the split unit of the one at .debug_info offset 0x0" in problems(image_of(units), finder)


@pytest.mark.parametrize("damage", ["header", "root"])
def test_damaged_split_unit(damage: str, tmp_path: Path) -> None:
    """A split unit that cannot be read at all is as good as none: the skeleton answers, and a problem says why (rule
    R83)."""
    if damage == "header":
        broken = split_unit(at("h", 0, 16), fmt=Format(address_size=3))
    else:
        broken = split_unit(at("h", 0, 16), _0x4000=As(0x7F, b"abc"))
    write(tmp_path, a=[broken])
    image, finder = image_of([skeleton(function("f", 0x1000, 16))]), finder_of(tmp_path / "binary")
    assert names_at(image, 0x1000, finder=finder) == F
    assert f"{tmp_path}/a.dwo is damaged; its skeleton is used instead" in problems(image, finder)


def typed(signature: int, fmt: Format, kind: int, name: str = "c") -> Unit:
    """A type unit with the class n::c, which declares the function f."""
    inner = die("class_type", die("subprogram", name="f", declaration=True), name=name, label=name)
    return Unit(
        die("type_unit", die("namespace", inner, name="n"), language=As("data2", 4)),
        fmt,
        kind=kind,
        bases="none",
        signature=signature,
        type=name,
    )


@pytest.mark.parametrize("fmt", [V4, V5], ids=["v4", "v5"])
@pytest.mark.parametrize("is_split", [False, True])
def test_type_units(fmt: Format, is_split: bool, tmp_path: Path) -> None:
    """The scopes of a function in a class that stands for a type unit are those of the type, whether that is in
    .debug_types or .debug_info, of the binary or of the .dwo file (rules R15, R16)."""
    declared = die("class_type", die("subprogram", name="f", declaration=True, label="f"), signature=As("ref_sig8", 99))
    types = typed(99, fmt, TYPE if fmt.version < 5 or not is_split else 6)
    if is_split:
        low = As("GNU_addr_index" if fmt.version < 5 else "addrx", Index(0))
        made = die("subprogram", specification=Ref("f"), low_pc=low, high_pc=4)
        found = names(tmp_path, [skeleton(fmt=fmt)], 0x1000, a=[split_unit(declared, made, fmt=fmt), types])
    else:
        made = die("subprogram", specification=Ref("f"), low_pc=0x1000, high_pc=4)
        found = names_at(image_of([unit(declared, made, fmt=fmt), types]), 0x1000)
    assert found == [["n::c::f"]]


@pytest.mark.parametrize("is_first", [True, False])
def test_damaged_type_unit(is_first: bool) -> None:
    """Of two units with the signature of a type one that cannot be read does not count (rule R16)."""
    declared = die("class_type", die("subprogram", name="f", declaration=True, label="f"), signature=As("ref_sig8", 99))
    made = die("subprogram", specification=Ref("f"), low_pc=0x1000, high_pc=4)
    types = [typed(99, Format(address_size=3), TYPE, "damaged"), typed(99, V5, TYPE)]
    image = image_of([unit(declared, made), *(types if is_first else types[::-1])])
    assert names_at(image, 0x1000) == [["n::c::f"]]


def test_types_of_two_versions(tmp_path: Path) -> None:
    """A class in .debug_types of a .dwo file may be in one of the type units in its .debug_info (rules R15, R16)."""
    inner = die("class_type", die("subprogram", name="f", declaration=True), name="inner", label="inner")
    around = die("class_type", inner, signature=As("ref_sig8", 99))
    root = die("type_unit", around, language=As("data2", 4))
    nested = Unit(root, V4, kind=TYPE, bases="none", signature=100, type="inner")
    declared = die(
        "class_type", die("subprogram", name="f", declaration=True, label="f"), signature=As("ref_sig8", 100)
    )
    made = die("subprogram", specification=Ref("f"), low_pc=As("addrx", Index(0)), high_pc=4)
    units = [split_unit(declared, made), typed(99, V5, 6), nested]
    assert names(tmp_path, [skeleton()], 0x1000, a=units) == [["n::c::inner::f"]]


def test_missing_type_unit() -> None:
    """Without the type the function keeps its own name (rule R16)."""
    declared = die("class_type", die("subprogram", name="f", declaration=True, label="f"), signature=As("ref_sig8", 99))
    made = die("subprogram", specification=Ref("f"), low_pc=0x1000, high_pc=4)
    ((name,),) = names_at(image_of([unit(declared, made)]), 0x1000)
    assert name.endswith("::f")


def test_language_of_a_split_unit(tmp_path: Path) -> None:
    """A function of a split unit is named by the language that the split unit has (rule R17)."""
    scoped = die("namespace", at("f", 0, 4), name="n")
    assert names(tmp_path, [skeleton()], 0x1000, a=[split_unit(scoped)]) == [["n::f"]]
    assert names(tmp_path, [skeleton()], 0x1000, a=[split_unit(scoped, language=As("data2", C))]) == F
