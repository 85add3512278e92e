"""Packages of split units: which part of them is whose (rules R85–R88)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symbolize.dwarf.sections import PackageError, read_index
from symbolize.elf import ElfError, ElfImage
from symbolize.symbols import build_table
from tests.support.dwarf_writer import TYPE, As, Index, Ref, Unit, die, dwarf_contents
from tests.support.elf_writer import Section, elf_file
from tests.support.line_writer import Format
from tests.support.lookup import finder_of, frames_of, image_of, names_at
from tests.support.split_writer import DWO_ID, F, G, at, index, package_file, pair, skeleton, split_file, split_unit

V4, V5 = Format(version=4), Format()
EACH = pytest.mark.parametrize("fmt", [V4, V5, Format(4, True), Format(5, True)], ids=["v4", "v5", "v4-big", "v5-big"])


def answer(folder: Path, image: ElfImage, package: bytes, *vaddrs: int) -> tuple[list[list[str]], str]:
    """The names at addresses with this package beside the binary, and what the table says."""
    (folder / "binary.dwp").write_bytes(package)
    finder = finder_of(folder / "binary")
    found = names_at(image, *vaddrs, finder=finder)
    return found, "\n".join(build_table([image], None, finder).problems)


@EACH
def test_contributions(fmt: Format, tmp_path: Path) -> None:
    """Each unit has its own abbreviations and string offsets, which count from its contribution (rule R86)."""
    image, units = pair(fmt)
    assert answer(tmp_path, image, package_file(units), F, G) == ([["f"], ["g"]], "")
    assert answer(tmp_path, image, package_file(units[::-1], gap=64), F, G) == ([["f"], ["g"]], "")


@EACH
def test_section_numbers(fmt: Format, tmp_path: Path) -> None:
    """Numbers from 5 on mean other sections in each version: what is of no use here may lie anywhere (rule R85)."""
    image, units = pair(fmt)
    unused = ("line", "loc", "macinfo", "macro") if fmt.version < 5 else ("line", "loclists", "macro")
    package = package_file(units, extra=dict.fromkeys(unused, (1 << 31, 1 << 31)))
    assert answer(tmp_path, image, package, F, G) == ([["f"], ["g"]], "")


def test_range_lists_of_a_package(tmp_path: Path) -> None:
    """Section 8 of DWARF 5 has the range lists (rules R84, R85)."""
    units = []
    for name, dwo_id, at_ in (("f", 1, 0x1000), ("g", 2, 0x1500)):
        ranges = As("rnglistx", [(at_, at_ + 4), (at_ + 8, at_ + 9)])
        units.append(split_unit(die("subprogram", name=As("strx", name), ranges=ranges), dwo_id=dwo_id))
    image = image_of([skeleton(dwo_id=1), skeleton(dwo_id=2)])
    package = package_file(units, ("info", "abbrev", "str_offsets", "rnglists"))
    found, problems = answer(tmp_path, image, package, 0x1000, 0x1004, 0x1008, 0x1500, 0x1508)
    assert found == [["f"], [], ["f"], ["g"], ["g"]]
    assert problems == ""


@EACH
def test_empty_slots(fmt: Format, tmp_path: Path) -> None:
    """A slot without a row is empty whatever its signature is, and rows that do not exist are none (rule R86)."""
    image, units = pair(fmt)
    slots = [(2, 0), (1, 9), (2, 2), (0, 0), (1, 0), (1, 1), (7, 1 << 31)]
    assert answer(tmp_path, image, package_file(units, slots=slots), F, G) == ([["f"], ["g"]], "")
    found, problems = answer(tmp_path, image, package_file(units, slots=[(1, 0), (2, 2)]), F, G)
    assert found == [[], ["g"]]
    assert "split unit a.dwo with dwo id 0x0000000000000001: not found" in problems


@EACH
def test_wrapped_offsets(fmt: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the offset into .debug_info.dwo wrapped around, the unit with the right id is found (rule R87)."""
    monkeypatch.setattr("symbolize.dwarf.sections.WRAP", 1 << 12)
    image, units = pair(fmt)
    package = package_file(units, gap=3000, wrap=1 << 12)
    assert answer(tmp_path, image, package, F, G) == ([["f"], ["g"]], "")


def test_other_sections_that_wrap_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No unit tells where the right strings are, so that they are not guessed (rule R87)."""
    monkeypatch.setattr("symbolize.dwarf.sections.WRAP", 16)
    image, units = pair(V5)
    found, problems = answer(tmp_path, image, package_file(units), F, G)
    assert found == [[], []]
    assert "is larger than the offsets into it" in problems


def test_contributions_outside_are_reported(tmp_path: Path) -> None:
    """A contribution past the end of its section costs its unit only (rule R77)."""
    image, units = pair(V5)
    data = bytearray(package_file(units))
    with ElfImage.parse(memoryview(bytes(data)), "package") as package:
        table = bytes(package.contents(".debug_cu_index") or b"")
    place = data.index(table) + len(table) - 4  # the size of the last section of the last unit
    data[place : place + 4] = b"\xff\xff\0\0"
    found, problems = answer(tmp_path, image, bytes(data), F, G)
    assert found == [["f"], []]
    assert "binary.dwp: the .debug_str_offsets.dwo of 0x0000000000000002 is outside of its section" in problems


def test_contributions_that_overlap_are_bounded(tmp_path: Path) -> None:
    """Units that all are the whole package would take memory and time without bound (rule R77)."""
    count = 100
    image = image_of([skeleton(dwo_id=i, addresses=[F + i], low_pc=F + i, high_pc=1) for i in range(count)])
    contents = dwarf_contents([split_unit(at("f", 0, 1), dwo_id=i) for i in range(count)])
    names = ("info", "abbrev", "str_offsets")
    places = [(0, len(contents[name])) for name in names]
    sections = [Section(f".debug_{name}.dwo", contents[name]) for name in (*names, "str")]
    table = Section(".debug_cu_index", index(5, dict.fromkeys(range(count), places), names))
    _, problems = answer(tmp_path, image, elf_file([*sections, table]), F)
    assert "binary.dwp: its units overlap absurdly" in problems
    assert f"{count - 7} more split units are missing" in problems


def test_a_wrong_unit_is_not_used(tmp_path: Path) -> None:
    """An index that leads to a unit with another id is not believed (rule R81)."""
    image, units = pair(V5)
    found, problems = answer(tmp_path, image, package_file(units, slots=[(1, 2), (2, 1)]), F, G)
    assert found == [[], []]
    assert "binary.dwp has another dwo id" in problems


@pytest.mark.parametrize("fmt", [V4, V5], ids=["v4", "v5"])
def test_type_units_of_a_package(fmt: Format, tmp_path: Path) -> None:
    """The other index leads to type units (rules R15, R16)."""
    inner = die("class_type", die("subprogram", name="f", declaration=True), name=As(named(fmt), "c"), label="c")
    root = die("type_unit", die("namespace", inner, name="n"), language=As("data2", 4))
    kind = TYPE if fmt.version < 5 else 6
    types = Unit(root, fmt, kind=kind, bases="none", signature=99, type="c")
    declared = die("class_type", die("subprogram", name="f", declaration=True, label="f"), signature=As("ref_sig8", 99))
    low = As("GNU_addr_index" if fmt.version < 5 else "addrx", Index(0))
    made = die("subprogram", specification=Ref("f"), low_pc=low, high_pc=4, _0x4000=As(named(fmt), "unused"))
    split = split_unit(declared, made, fmt=fmt)
    package = package_file([split], types=[types])
    assert answer(tmp_path, image_of([skeleton(fmt=fmt)]), package, F) == ([["n::c::f"]], "")


def named(fmt: Format) -> str:
    """The form of an indexed string."""
    return "GNU_str_index" if fmt.version < 5 else "strx"


def test_package_comes_first(tmp_path: Path) -> None:
    """A package answers before a .dwo file does; what it does not have is looked for in files (rule R88)."""
    image, units = pair(V5)
    (tmp_path / "a.dwo").write_bytes(split_file([split_unit(at("file", 0, 4), dwo_id=1)]))
    assert answer(tmp_path, image, package_file(units), F, G)[0] == [["f"], ["g"]]
    assert answer(tmp_path, image, package_file(units[1:]), F, G) == ([["file"], ["g"]], "")


def test_package_of_a_debug_file(tmp_path: Path) -> None:
    """The package may be called like the binary that the debug file belongs to (rule R88)."""
    image, units = pair(V5)
    (tmp_path / "program.dwp").write_bytes(package_file(units))
    table = build_table([image], None, finder_of(tmp_path / "program.debug"))
    assert [[frame.name for frame in frames] for frames in frames_of(table, [F, G])] == [["f"], ["g"]]


ROWS: dict[int, Sequence[tuple[int, int]]] = {DWO_ID: [(0, 1)]}


@pytest.mark.parametrize("file", ["binary.dwp", "a.dwo"])
@pytest.mark.parametrize(
    "why", ["ELF header is cut off", "Permission denied", "is of another byte order than the binary"]
)
def test_files_that_cannot_be_used(why: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged files and those of another processor are reported and passed over, and the right one is used (rules R77,
    R88)."""
    foreign = [split_unit(at("f", 0, 4), fmt=Format(5, big_endian=True))]
    (tmp_path / file).write_bytes(package_file(foreign) if file == "binary.dwp" else split_file(foreign))
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "a.dwo").write_bytes(split_file([split_unit(at("f", 0, 4))]))
    opened = ElfImage.open

    def refuse(path: str) -> ElfImage:
        if path == str(tmp_path / file) and why == "Permission denied":
            raise PermissionError(13, why)
        if path == str(tmp_path / file) and "ELF" in why:
            raise ElfError(path, why)
        return opened(path)

    monkeypatch.setattr(ElfImage, "open", refuse)
    image, finder = image_of([skeleton()]), finder_of(tmp_path / "binary")
    assert names_at(image, F, finder=finder) == [["f"]]
    assert build_table([image], None, finder).problems == [f"{tmp_path / file}: {why}"]


@pytest.mark.parametrize("change", ["cut", "version", "columns", "rows", "slots"])
@pytest.mark.parametrize("version", [2, 5])
def test_corrupt_index(version: int, change: str, tmp_path: Path) -> None:
    """An index whose counts cannot be is refused, and costs no memory (rule R77)."""
    data = bytearray(index(version, ROWS, ["info"]))
    sound = read_index(bytes(data), False)
    assert (sound.row(DWO_ID), sound.row(DWO_ID + 1)) == (0, -1)
    if change == "cut":
        del data[-1]
    else:
        place = ("version", "columns", "rows", "slots").index(change) * 4
        data[place : place + 4] = b"\x07\0\0\0" if change == "version" else b"\xff\xff\xff\x7f"
    with pytest.raises(PackageError):
        read_index(bytes(data), False)
    image, units = pair(V5)
    contents: Any = [Section(".debug_cu_index", bytes(data)), Section(".debug_info.dwo", b"x")]
    for split in units:
        (tmp_path / str(split.signature)).mkdir()
        (tmp_path / str(split.signature) / "a.dwo").write_bytes(split_file([split]))
    found, problems = answer(tmp_path, image, elf_file(contents), F, G)
    assert found == [["f"], ["g"]]
    assert "binary.dwp: its index" in problems


def test_every_truncation_of_an_index() -> None:
    """A shorter one is refused or empty, never read past its end (rule R77)."""
    data = index(5, ROWS, ["info", "abbrev"][:1])
    for size in range(1, len(data)):
        with pytest.raises(PackageError):
            read_index(data[:size], False)
    assert read_index(b"", False).row(0) == -1
    assert isinstance(read_index(data, False).signature, np.ndarray)
