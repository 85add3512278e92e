"""Mappings of the vdso."""

import io
from pathlib import Path

import pytest

import symbolize
from symbolize import Reason, Symbolizer
from tests.support.elf_writer import ALLOC, EXEC, NOTE, Section, Segment, Symbol, build_id_note, elf_file
from tests.support.pprof_writer import Mapping, Place, profile
from tests.support.whole_runs import run

START = 0x7FFD_1234_5000
ID = "aa" * 20


def vdso(path: Path, build_id: str = ID) -> Path:
    """A library with one function at 0x400 of its file."""
    note = Section(".note", build_id_note(bytes.fromhex(build_id)) if build_id else b"", NOTE, ALLOC)
    code = Section(".text", bytes(0x1000), flags=ALLOC | EXEC)
    symbol = Symbol("__vdso_gettimeofday", 0x400, 0x100)
    data = elf_file([note, code._replace(address=0x200)], [Segment(0, 0x1200)], [symbol])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["[vdso]", "/[vdso]", "linux-vdso.so.1"])
@pytest.mark.parametrize("path", [f"[vdso]/{ID}/vdso", f".build-id/{ID[:2]}/{ID[2:]}/vdso", "any"])
@pytest.mark.parametrize("offset", [0, START])
def test_by_build_id(tmp_path: Path, name: str, path: str, offset: int) -> None:
    """Where the recorder noted its build id, the vdso is found as any binary is; its offset is always 0."""
    vdso(tmp_path / path)
    names, report = run([Mapping(START, START + 0x2000, offset, name, ID)], [Place(START + 0x404, 1)], tmp_path)
    assert names == ["__vdso_gettimeofday"]
    assert report.mappings[0].verified


@pytest.mark.parametrize("path", ["vdso", "vdso.so", "lib/modules/6.1/vdso/vdso64.so", "vdso64.so.debug"])
def test_by_name(tmp_path: Path, path: str) -> None:
    """Without a build id the names that the file has in kernels and in perf's cache count, unverified."""
    vdso(tmp_path / path)
    vdso(tmp_path / "vdso32.so", "bb" * 20)
    mapping = Mapping(START, START + 0x2000, 0, "[vdso]")
    names, report = run([mapping], [Place(START + 0x404, 1), Place(START + 0x604, 1)], tmp_path)
    assert names == ["__vdso_gettimeofday", ""]
    assert not report.mappings[0].verified
    assert report.mappings[0].files == [str(tmp_path / path)]


def test_several_and_none(tmp_path: Path) -> None:
    """Of several builds none is taken; without any the mapping is no file."""
    mapping = Mapping(START, START + 0x2000, 0, "[vdso]")
    _, report = run([mapping], [Place(START + 0x404, 1)], tmp_path)
    assert report.mappings[0].misses[0][0] == Reason.NOT_A_FILE
    vdso(tmp_path / "a" / "vdso64.so")
    vdso(tmp_path / "b" / "vdso64.so", "bb" * 20)
    _, report = run([mapping], [Place(START + 0x404, 1)], tmp_path)
    assert report.mappings[0].misses[0][0] == Reason.AMBIGUOUS
    _, report = run([mapping._replace(build_id="cc" * 20)], [Place(START + 0x404, 1)], tmp_path)
    assert report.mappings[0].misses[0][0] == Reason.NOT_FOUND


def test_several_without_ids(tmp_path: Path) -> None:
    """Nothing says that files without build ids are of one build."""
    for folder in "ab":
        vdso(tmp_path / folder / "vdso64.so", "")
    mapping = Mapping(START, START + 0x2000, 0, "[vdso]")
    assert run([mapping], [Place(START + 0x404, 1)], tmp_path)[1].mappings[0].misses[0][0] == Reason.AMBIGUOUS


@pytest.mark.parametrize(("start", "name"), [(0xF7F0_0000, "vdso32.so"), (1 << 32, "vdso64.so"), (START, "vdso64.so")])
def test_width_of_the_process(tmp_path: Path, start: int, name: str) -> None:
    """Where the vdso is mapped tells which of the two it is."""
    vdso(tmp_path / "vdso32.so")
    vdso(tmp_path / "vdso64.so", "bb" * 20)
    _, report = run([Mapping(start, start + 0x2000, 0, "[vdso]")], [Place(start + 0x404, 1)], tmp_path)
    assert report.mappings[0].files == [str(tmp_path / name)]


def test_without_an_end(tmp_path: Path) -> None:
    """A mapping that does not say where it ends is placed by its beginning."""
    vdso(tmp_path / "vdso.so")
    names, _ = run([Mapping(START, 0, 0, "[vdso]", ID)], [Place(START + 0x404, 1), Place(START - 1, 1)], tmp_path)
    assert names == ["__vdso_gettimeofday", ""]


def test_copies(tmp_path: Path) -> None:
    """Copies of one build are one; files that have gone since the folders were walked are a reason (R284)."""
    for folder in "ab":
        vdso(tmp_path / folder / "vdso.so")
    mapping = Mapping(START, START + 0x2000, 0, "[vdso]")
    assert run([mapping], [Place(START + 0x404, 1)], tmp_path)[0] == ["__vdso_gettimeofday"]
    made = symbolize.load(io.BytesIO(profile([mapping], [([Place(START + 0x404, 1)], [1])])))
    with Symbolizer([tmp_path]) as symbolizer:
        symbolizer.plan(symbolize.load(io.BytesIO(profile([mapping._replace(file="/x")], [([Place(START, 1)], [1])]))))
        for folder in "ab":
            (tmp_path / folder / "vdso.so").unlink()
        report = symbolizer.symbolize(made).report
    assert report.mappings[0].misses[0][0] == Reason.CHANGED
    assert str(tmp_path / "a" / "vdso.so") in report.mappings[0].detail
