"""Supplementary files and partial units (rules R17, R89–R92)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symbolize import Reason
from symbolize.dwarf.sections import Link, read_altlink, read_sup
from symbolize.elf import ElfImage
from symbolize.symbols import build_table
from tests.support.dwarf_writer import (
    C_PLUS_PLUS,
    PARTIAL,
    As,
    C,
    Die,
    Ref,
    Unit,
    die,
    dwarf_sections,
    function,
    inlined,
)
from tests.support.elf_writer import Section, elf_file
from tests.support.line_writer import Format, Lines, sequence
from tests.support.lookup import TEXT, Frame, finder_of, frames_of, image_of, names_at
from tests.support.pprof_writer import Mapping, Place
from tests.support.programs import unit
from tests.support.supplementary_writer import ID, shared, sup, supplementary
from tests.support.whole_runs import run

STYLES = pytest.mark.parametrize(
    ("style", "fmt"),
    [("gnu", Format(version=4)), ("gnu", Format(dwarf64=True)), ("sup", Format()), ("sup", Format(big_endian=True))],
    ids=["gnu-v4", "gnu-v5-wide", "sup-v5", "sup-v5-big"],
)
REFERENCES = {"gnu": ["GNU_ref_alt"], "sup": ["ref_sup4", "ref_sup8"]}
STRING = {"gnu": "GNU_strp_alt", "sup": "strp_sup"}


def binary(
    style: str, fmt: Format, *children: Die, name: bytes = b"/usr/lib/debug/.dwz/common", **root: Any
) -> ElfImage:
    """A binary with a link to the supplementary file."""
    if style == "gnu":
        link = Section(".gnu_debugaltlink", name + b"\0" + ID)
    else:
        link = Section(".debug_sup", sup(name, ID, fmt))
    return image_of([unit(*children, fmt=fmt, **root)], [TEXT, link])


@STYLES
def test_references_and_strings(style: str, fmt: Format, tmp_path: Path) -> None:
    """DIEs and strings of the other file are found, in both styles and all forms, and so are the scopes and the file
    of a declaration there (rules R15, R22, R91)."""
    places = supplementary(
        tmp_path / "common",
        style,
        fmt,
        shared(),
        lines=Lines(sequence((0x1F00, 1), end=0x1F01), [("x.h", 0), ("y.h", 0)]),
    )
    for form in REFERENCES[style]:
        caller = function("f", 0x1000, 16, inlined("", [(0x1004, 0x1008)], line=7))
        caller = Die(caller.tag, caller.attributes, (at_other(form, places["g"]),))
        named = die("subprogram", name=As(STRING[style], places["string common.h"]), low_pc=0x1100, high_pc=4)
        image = binary(style, fmt, caller, named)
        finder = finder_of(tmp_path / "binary")
        found = names_at(image, 0x1000, 0x1004, 0x1100, finder=finder)
        assert found == [["f"], ["n::g", "f"], ["common.h"]]
        table = build_table([image], None, finder)
        assert table.problems == []
        declared = {table.files[file] for file in table.function_decl_file.tolist() if file >= 0}
        assert declared == {b"/common/x.h" if fmt.version < 5 else b"/src/y.h"}
        ((inner, outer),) = frames_of(table, [0x1004])
        assert inner == Frame("n::g", "", 0, 0, 3)
        assert outer.line == 7


def at_other(form: str, place: int) -> Die:
    """An inlined function whose origin lies in the other file."""
    return die(
        "inlined_subroutine", abstract_origin=As(form, place), low_pc=0x1004, high_pc=As("udata", 4), call_line=7
    )


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, (b"n::g", b"/common/x.h", 3)),
        ({"name": "f"}, (b"n::f", b"/common/x.h", 3)),
        ({"decl_file": 1, "decl_line": 9}, (b"n::g", b"/src/own.c", 9)),
    ],
    ids=str,
)
def test_described_in_both_files(own: dict[str, Any], expected: tuple[bytes, bytes, int], tmp_path: Path) -> None:
    """What a function says of itself counts before what its origin in the other file says (rule R91)."""
    fmt = Format(version=4)
    theirs = Lines(sequence((0x1F00, 1), end=0x1F01), [("x.h", 0)])
    places = supplementary(tmp_path / "common", "gnu", fmt, shared(), lines=theirs)
    made = die("subprogram", abstract_origin=As("GNU_ref_alt", places["g"]), low_pc=0x1000, high_pc=4, **own)
    image = binary("gnu", fmt, made, lines=Lines(sequence((0x1000, 1), end=0x1004), [("own.c", 0)]))
    table = build_table([image], None, finder_of(tmp_path / "binary"))
    functions = table.functions
    ((row,),) = (table.lookup(np.array([0x1000], np.uint64)).function.tolist(),)
    assert (functions.name[row], table.files[functions.decl_file[row]], functions.decl_line[row]) == expected


@STYLES
def test_another_identity(style: str, fmt: Format, tmp_path: Path) -> None:
    """A file of that name with another id or checksum is refused; the right one is found further on (rule R91)."""
    wrong, right = tmp_path / "a" / "common", tmp_path / "b" / "common"
    place = supplementary(wrong, style, fmt, shared(), identifier=ID[:-1] + b"\0")["g"]
    image = binary(style, fmt, function("f", 0x1000, 16, at_other(REFERENCES[style][0], place)))
    assert names_at(image, 0x1000, 0x1004, finder=finder_of(tmp_path / "binary")) == [["f"], ["??", "f"]]
    (problem,) = build_table([image], None, finder_of(tmp_path / "binary")).problems
    assert f"{wrong} has another; names in it are missing" in problem
    supplementary(right, style, fmt, shared())
    assert names_at(image, 0x1004, finder=finder_of(tmp_path / "binary")) == [["n::g", "f"]]


@STYLES
def test_missing_file(style: str, fmt: Format, tmp_path: Path) -> None:
    """Without the file only its names are missing, and one sentence says which file it is (rule R92)."""
    image = binary(
        style,
        fmt,
        function("f", 0x1000, 16, at_other(REFERENCES[style][0], 30)),
        die("subprogram", name=As(STRING[style], 0), low_pc=0x1100, high_pc=4),
    )
    for finder in (None, finder_of(tmp_path / "binary")):
        assert names_at(image, 0x1000, 0x1004, 0x1100, finder=finder) == [["f"], ["??", "f"], ["??"]]
        (problem,) = build_table([image], None, finder).problems
        assert "supplementary file /usr/lib/debug/.dwz/common with" in problem
        assert ID.hex() in problem


@pytest.mark.parametrize("name", [b"../outside/common", b"/proc/self/root", b"", b"\xff\n", b"..", b"/"])
@STYLES
def test_names_never_lead_out_of_the_roots(
    style: str, fmt: Format, name: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a binary calls the file, nothing outside of the roots is opened (rule R91)."""
    (tmp_path / "roots").mkdir()
    place = supplementary(tmp_path / "outside" / "common", style, fmt, shared())["g"]
    image = binary(style, fmt, function("f", 0x1000, 16, at_other(REFERENCES[style][0], place)), name=name)
    monkeypatch.setattr(ElfImage, "open", None)
    assert names_at(image, 0x1004, finder=finder_of(tmp_path / "roots" / "binary")) == [["??", "f"]]


def test_no_link(tmp_path: Path) -> None:
    """A binary that refers to such a file and names none (rule R92)."""
    image = image_of([unit(function("f", 0x1000, 16, at_other("GNU_ref_alt", 30)))])
    assert names_at(image, 0x1004) == [["??", "f"]]
    assert build_table([image], None, finder_of(tmp_path / "x")).problems == [
        "no supplementary file is named; names in it are missing"
    ]


@pytest.mark.parametrize("kind", [PARTIAL, 1])
@pytest.mark.parametrize("fmt", [Format(version=4), Format()], ids=["v4", "v5"])
def test_imported_partial_units(fmt: Format, kind: int, tmp_path: Path) -> None:
    """What a partial unit claims to hold adds no code, also where it is imported, and can be referred to, in one file
    or two (rules R89, R90)."""
    children = (
        function("wrong", 0x1000, 16),
        die("subprogram", name=As("strp", "f"), label="f", decl_line=4),
    )
    partial = Unit(die("partial_unit", *children, low_pc=0x1000, high_pc=0x100, label="p"), fmt, kind=kind)
    if fmt.version >= 5:
        partial.kind = PARTIAL
    imported = die("imported_unit", **{"import": As("ref_addr", Ref("p"))})
    made = die("subprogram", abstract_origin=As("ref_addr", Ref("f")), low_pc=0x1010, high_pc=1)
    assert names_at(image_of([partial, unit(imported, made, fmt=fmt)]), 0x1000, 0x1010) == [[], ["f"]]
    places = supplementary(tmp_path / "common", "gnu", fmt, *children, low_pc=0x1000, high_pc=0x100)
    imported = die("imported_unit", **{"import": As("GNU_ref_alt", 11)})
    made = die("subprogram", abstract_origin=As("GNU_ref_alt", places["f"]), low_pc=0x1010, high_pc=1)
    image = binary("gnu", fmt, imported, made)
    assert names_at(image, 0x1000, 0x1010, finder=finder_of(tmp_path / "binary")) == [[], ["f"]]


@pytest.mark.parametrize(("language", "expected"), [(C_PLUS_PLUS, "n::g"), (C, "g")])
def test_language_of_the_origin(language: int, expected: str, tmp_path: Path) -> None:
    """A function is named by the language of the unit that its origin is in, not of the one it was inlined in, also
    across files (rule R17)."""
    other = C if language == C_PLUS_PLUS else C_PLUS_PLUS
    held = unit(shared(), language=As("data2", language))
    inner = die("inlined_subroutine", abstract_origin=As("ref_addr", Ref("g")), low_pc=0x1004, high_pc=4)
    image = image_of([held, unit(function("f", 0x1000, 16, inner), language=As("data2", other))])
    assert names_at(image, 0x1004) == [[expected, "f"]]
    place = supplementary(tmp_path / "common", "gnu", Format(), shared(), language=As("data2", language))["g"]
    image = binary(
        "gnu", Format(), function("f", 0x1000, 16, at_other("GNU_ref_alt", place)), language=As("data2", other)
    )
    assert names_at(image, 0x1004, finder=finder_of(tmp_path / "binary")) == [[expected, "f"]]


def test_links() -> None:
    """What is cut off or of another version is no link (rules R77, R91)."""
    assert read_altlink(b"name\0id") == Link(b"name", b"id", False)
    assert [read_altlink(data) for data in (b"", b"name", b"name\0")] == [None] * 3
    data = sup(b"name", b"id", Format())
    assert read_sup(data, False) == (False, Link(b"name", b"id", True))
    assert read_sup(sup(b"", b"id", Format(), True), False) == (True, Link(b"", b"id", True))
    assert read_sup(sup(b"name", bytes(200), Format()), False) == (False, Link(b"name", bytes(200), True))
    assert [read_sup(data[:size], False) for size in range(len(data))] == [None] * len(data)
    assert read_sup(data, True) is None
    assert read_sup(b"\5\0\0\0" + b"\xff" * 9, False) is None


def test_frames_without_names_are_not_named(tmp_path: Path) -> None:
    """Where the only function at an address has its name in the missing file, its location counts as unnamed."""
    named = die("subprogram", name=As(STRING["gnu"], 0), low_pc=0x1100, high_pc=4)
    units = [unit(function("f", 0x1000, 16), named)]
    link = Section(".gnu_debugaltlink", b"/usr/lib/debug/.dwz/common\0" + ID)
    (tmp_path / "x").write_bytes(elf_file([TEXT, link, *dwarf_sections(units)]))
    for address, name, reason in ((0x1004, "f", []), (0x1102, "??", [Reason.CORRUPT_DEBUG_INFO])):
        names, report = run([Mapping(0, (1 << 64) - 1, 0, "/x")], [Place(address, 1)], tmp_path)
        assert names == [name]
        assert [each for each, _, _ in report.mappings[0].misses] == reason
        assert report.leaf_percent == (0 if reason else 100)
