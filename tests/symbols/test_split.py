"""Debug information in parts, as compilers and tools write it: split units, packages, type units, supplementary files.

The same on made input: tests/dwarf/test_split_units.py, test_packages.py, test_supplementary.py.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from symbolize.batch.prebuild import build_one, index_binaries
from symbolize.binaries import Companions
from symbolize.core.cursor import COMPILED
from symbolize.elf import ElfImage, read_build_id
from symbolize.symbols import Binary, TableCache, build_table
from symbolize.symbols.table import SymbolTable
from tests.support.fixture_files import BINARIES, PARTS
from tests.support.lookup import Frame, finder_of, frames_of
from tools.llvm.compare_llvm import NEEDED, compare, sample

ADDRESSES = 1500 if COMPILED else 60
WITH_UNITS = ("clang-dwarf4", "clang-dwarf5", "gcc-dwarf5")
WITH_PACKAGE = ("clang-dwarf5", "gcc-dwarf4")


def units_of(name: str, folder: Path) -> Path:
    """The binary of a fixture in `folder`, with its split units beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for unit in (PARTS / name / "dwo").iterdir():
        shutil.copy(unit, folder)
    return Path(shutil.copy(PARTS / name / "ledger.debug", folder))


def package_of(name: str, folder: Path) -> Path:
    """The binary of a fixture in `folder`, with its package beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(PARTS / name / "dwp" / "ledger.dwp", folder / "ledger.debug.dwp")
    return Path(shutil.copy(PARTS / name / "ledger.debug", folder))


def answers(path: Path, finder: Companions | None) -> tuple[list[list[Frame]], SymbolTable]:
    """The frames at addresses all over a file, by a table for them and by the whole one; the latter."""
    with ElfImage.open(path) as image:
        vaddrs = sample(image, ADDRESSES)
        whole, some = (build_table([image], asked, finder) for asked in (None, np.array(vaddrs, np.uint64)))
        frames = frames_of(whole, vaddrs)
        assert frames == frames_of(some, vaddrs)
        return frames, whole


@pytest.mark.needs(*NEEDED)
@pytest.mark.parametrize(
    ("name", "arrange"),
    [*((name, units_of) for name in WITH_UNITS), *((name, package_of) for name in WITH_PACKAGE)],
    ids=lambda value: getattr(value, "__name__", value),
)
@pytest.mark.full
def test_split_units_against_llvm(name: str, arrange: Callable[[str, Path], Path], tmp_path: Path) -> None:
    """Frames of split units, as files or in a package, are those of llvm-symbolizer (rules R78–R88)."""
    path = arrange(name, tmp_path)
    result = compare(path, ADDRESSES, finder_of(path))
    assert result.unexplained == []
    assert result.classes["equal"] > ADDRESSES // 3


@pytest.mark.needs(*NEEDED)
@pytest.mark.parametrize("name", ["types", "clang-dwarf4"])
def test_binaries_alone_against_llvm(name: str) -> None:
    """So are those of a binary with .debug_types, and those of skeletons without their units (rules R83, R90)."""
    result = compare(PARTS / name / "ledger.debug", ADDRESSES)
    assert result.unexplained == []
    assert result.classes["equal"] > ADDRESSES // 3


@pytest.mark.parametrize("name", WITH_UNITS)
def test_split_units_lie_anywhere_below_the_roots(name: str, tmp_path: Path) -> None:
    """Beside the binary or below another root, the units give the same frames, and nothing is amiss (rule R88)."""
    beside = units_of(name, tmp_path / "beside")
    expected, table = answers(beside, finder_of(beside))
    assert table.problems == []
    alone = PARTS / name / "ledger.debug"
    other = tmp_path / "other" / "deep" / "below"
    shutil.copytree(PARTS / name / "dwo", other)
    found, table = answers(alone, finder_of(alone, tmp_path / "other"))
    assert found == expected
    assert table.problems == []
    assert {len(frames) for frames in expected} > {1, 2, 3}


@pytest.mark.parametrize("file", ["ledger.debug.dwp", "ledger.dwp"])
@pytest.mark.parametrize("name", WITH_PACKAGE)
def test_package_by_either_name(name: str, file: str, tmp_path: Path) -> None:
    """The package of a debug file is called like it or like its binary, and has what the units have (rule R88)."""
    path = Path(shutil.copy(PARTS / name / "ledger.debug", tmp_path))
    (tmp_path / "packages").mkdir()
    shutil.copy(PARTS / name / "dwp" / "ledger.dwp", tmp_path / "packages" / file)
    found, table = answers(path, finder_of(path))
    assert table.problems == []
    assert any(len(frames) > 3 for frames in found)
    if name in WITH_UNITS:
        beside = units_of(name, tmp_path / "beside")
        assert found == answers(beside, finder_of(beside))[0]


@pytest.mark.parametrize("name", [*WITH_UNITS, "gcc-dwarf4"])
def test_missing_split_units(name: str) -> None:
    """Without its split units a binary has the lines, what its skeletons know and its symbols; a sentence names each
    unit that is missing (rule R83)."""
    path = PARTS / name / "ledger.debug"
    found, table = answers(path, finder_of(path, BINARIES / "gcc-pie"))
    text = "\n".join(table.problems)
    assert all(f"split unit {unit}.dwo with dwo id" in text for unit in ("main.cc", "formula.cc", "digest.c"))
    assert "not found; its skeleton is used instead" in text
    assert sum(bool(frames and frames[0].name and frames[0].line) for frames in found) > len(found) * 0.8
    # -fsplit-dwarf-inlining leaves the inlined functions in the skeleton.
    assert any(len(frames) > 1 for frames in found) == (name == "clang-dwarf4")


def test_stale_split_unit(tmp_path: Path) -> None:
    """A unit of another build has another dwo id and is not used, even where it is the only one (rule R81)."""
    path = units_of("clang-dwarf5", tmp_path)
    shutil.copy(PARTS / "gcc-dwarf5" / "dwo" / "main.cc.dwo", tmp_path)
    found, table = answers(path, finder_of(path))
    (problem,) = table.problems
    assert "split unit main.cc.dwo with dwo id 0x" in problem
    assert f"{tmp_path}/main.cc.dwo has another dwo id" in problem
    right = tmp_path / "second" / "main.cc.dwo"
    right.parent.mkdir()
    shutil.copy(PARTS / "clang-dwarf5" / "dwo" / "main.cc.dwo", right)
    mended, table = answers(path, finder_of(path))
    assert table.problems == []
    assert found != mended


def test_damaged_split_unit(tmp_path: Path) -> None:
    """What is no ELF file is none of the units, and a cut-off one is told; the others answer (rule R77)."""
    path = units_of("gcc-dwarf5", tmp_path)
    (tmp_path / "digest.c.dwo").write_text("no ELF file")
    unit = tmp_path / "formula.cc.dwo"
    unit.write_bytes(unit.read_bytes()[:3000])
    _, table = answers(path, finder_of(path))
    text = "\n".join(table.problems)
    assert "digest.c.dwo" in text
    assert "formula.cc.dwo" in text
    assert "main.cc.dwo" not in text


@pytest.mark.parametrize("name", ["dwz", "dwz-dwarf5"])
def test_supplementary_file(name: str, tmp_path: Path) -> None:
    """What dwz moved to another file is found there: the frames are those of the binary that it was given, whatever
    the file is called (rules R89, R91)."""
    expected, _ = answers(BINARIES / "gcc-pie" / "ledger", None)
    path = PARTS / name / "ledger.debug"
    found, table = answers(path, finder_of(path))
    assert found == expected
    assert table.problems == []
    if name == "dwz":  # found by its build id
        shutil.copy(PARTS / name / "common.dwz", tmp_path / "renamed")
        found, table = answers(path, finder_of(path, tmp_path))
        assert found == expected
        assert table.problems == []


@pytest.mark.parametrize("name", ["dwz", "dwz-dwarf5"])
def test_missing_supplementary_file(name: str, tmp_path: Path) -> None:
    """Without the file, depth, lines and files stay as they were, and a problem names it (rule R92)."""
    expected, _ = answers(BINARIES / "gcc-pie" / "ledger", None)
    path = PARTS / name / "ledger.debug"
    found, table = answers(path, finder_of(path, tmp_path))
    (problem,) = table.problems
    assert "supplementary file common.dwz with" in problem
    assert "not found; names in it are missing" in problem
    assert [len(frames) for frames in found] == [len(frames) for frames in expected]
    assert [[f[2:4] for f in frames] for frames in found] == [[f[2:4] for f in frames] for frames in expected]
    agree = sum(
        our.name == their.name
        for ours, theirs in zip(found, expected, strict=True)
        for our, their in zip(ours, theirs, strict=True)
    )
    assert agree > sum(map(len, expected)) * 0.4
    assert found != expected


@pytest.mark.parametrize("name", ["dwz", "dwz-dwarf5"])
def test_other_supplementary_file(name: str, tmp_path: Path) -> None:
    """A file of that name with another id is not used (rule R91)."""
    path = PARTS / name / "ledger.debug"
    data = bytearray((PARTS / name / "common.dwz").read_bytes())
    with ElfImage.parse(memoryview(bytes(data)), "common.dwz") as image:
        identity = bytes.fromhex(image.build_id or "") or bytes(image.contents(".debug_sup") or b"")
    data[data.index(identity) + len(identity) - 1] ^= 1
    (tmp_path / "common.dwz").write_bytes(data)
    found, table = answers(path, finder_of(path, tmp_path))
    (problem,) = table.problems
    assert f"{tmp_path}/common.dwz has another" in problem
    missing = tmp_path / "empty"
    missing.mkdir()
    assert found == answers(path, finder_of(path, missing))[0]


@pytest.mark.parametrize("name", ["gcc-dwarf4", "types"])
def test_type_units_qualify_names(name: str, tmp_path: Path) -> None:
    """A function whose class is a type unit is called as in a binary without such units (rules R15, R16)."""
    path, finder = PARTS / name / "ledger.debug", None
    if name in WITH_PACKAGE:
        path = package_of(name, tmp_path)
        finder = finder_of(path)
    found, table = answers(path, finder)
    assert table.problems == []
    expected, _ = answers(BINARIES / "gcc-pie" / "ledger", None)
    names = unlinked(found)
    assert names <= unlinked(expected)
    assert "(anonymous namespace)::OrderStream::advance" in names
    assert any(name.endswith(")::ByBalance::operator()") for name in names)


def unlinked(frames: list[list[Frame]]) -> set[str]:
    """The names that are no linked ones."""
    return {frame.name for chain in frames for frame in chain if not frame.name.startswith("_Z")}


@pytest.fixture
def cache(tmp_path: Path) -> TableCache:
    """An empty cache."""
    return TableCache(tmp_path / "cache")


def kept(cache: TableCache) -> list[Path]:
    """The tables in a cache."""
    return sorted(Path(cache.folder).glob("*.symtab"))


def build(path: Path, cache: TableCache) -> tuple[bool, SymbolTable]:
    """Whether the table of a binary is in the cache, and the table."""
    with ElfImage.open(path) as image:
        binary = Binary([image], finder_of(path), cache)
        return binary.is_cached(), binary.table()


@pytest.mark.parametrize("arrange", [units_of, package_of], ids=["units", "package"])
def test_tables_are_kept_with_their_companions(
    arrange: Callable[[str, Path], Path], tmp_path: Path, cache: TableCache
) -> None:
    """A table is that of the binary and of all companions: when one of them changes, or goes, it is made anew."""
    path = arrange("clang-dwarf5", tmp_path / "roots")
    assert not build(path, cache)[0]
    assert len(kept(cache)) == 1
    was_kept, table = build(path, cache)
    assert was_kept
    companion = next(
        other for other in (tmp_path / "roots").iterdir() if other.name[:4] in ("main", "ledg") and other != path
    )
    status = companion.stat()
    os.utime(companion, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    was_kept, again = build(path, cache)
    assert not was_kept
    assert again.problems == []
    assert build(path, cache)[0]
    companion.unlink()
    was_kept, poorer = build(path, cache)
    assert not was_kept
    assert any("main.cc.dwo" in problem for problem in poorer.problems)
    assert len(poorer.functions.name) < len(table.functions.name)
    assert cache.problems == []


def test_tables_without_companions_are_not_kept(tmp_path: Path, cache: TableCache) -> None:
    """What is missing may be there the next time, so that a table without it is made anew."""
    for path in (PARTS / "gcc-dwarf5" / "ledger.debug", PARTS / "dwz" / "ledger.debug"):
        alone = Path(shutil.copy(path, tmp_path / f"{path.parent.name}.debug"))
        for _ in range(2):
            was_kept, table = build(alone, cache)
            assert not was_kept
            assert table.problems
        assert kept(cache) == []
    shutil.copy(PARTS / "dwz" / "common.dwz", tmp_path)
    assert build(tmp_path / "dwz.debug", cache)[1].problems == []
    assert build(tmp_path / "dwz.debug", cache)[0]
    os.utime(tmp_path / "common.dwz", (0, 0))
    assert not build(tmp_path / "dwz.debug", cache)[0]


@pytest.mark.parametrize("name", ["gcc-dwarf5", "gcc-dwarf4", "dwz", "dwz-dwarf5"])
def test_tables_made_ahead_have_the_companions(name: str, cache: TableCache) -> None:
    """`symbolize index` finds them below the folders that it is given (rules R88, R91)."""
    path = str(PARTS / name / "ledger.debug")
    built = build_one([(path, str(read_build_id(path) or ""))], index_binaries([str(PARTS / name)]), cache)
    assert built.failure == ""
    assert built.problems == ()
    assert len(kept(cache)) == 1


def test_truncated_companions_never_crash(tmp_path: Path) -> None:
    """A companion that ends anywhere costs its own units, never the run (rule R77)."""
    for arrange, name in ((units_of, "main.cc.dwo"), (package_of, "ledger.debug.dwp")):
        path = arrange("clang-dwarf5", tmp_path / name)
        companion = path.parent / name
        whole = companion.read_bytes()
        for part in range(1, 8):
            companion.write_bytes(whole[: len(whole) * part // 8])
            with ElfImage.open(path) as image:
                table = build_table([image], None, finder_of(path))
                assert table.problems
                assert any(frames_of(table, sample(image, 50)))
