"""GSYM files below a root."""

import shutil
import subprocess
from pathlib import Path

import pytest

from symbolize.elf import ElfImage
from tests.support.fixture_files import FIXTURES
from tests.support.gsym_writer import Function, gsym_file
from tests.support.pprof_writer import Place
from tests.support.spectra import BASE, FIXED, MAIN, PIE, PIE_ID, WHOLE, main_of
from tests.support.whole_runs import run


@pytest.fixture(scope="module")
def symbols() -> bytes:
    """The GSYM file of `PIE` that LLVM made."""
    return (FIXTURES / "gsym" / "spectra.gsym").read_bytes()


@pytest.mark.parametrize("name", ["spectra.gsym", "deep/er/ANY.GSYM"])
def test_without_the_binary(tmp_path: Path, symbols: bytes, name: str) -> None:
    """Wherever it is and whatever it is called, a GSYM file answers for its build id (R390, GSYM files)."""
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(symbols)
    names, report = run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == ["main"]
    assert report.mappings[0].files == [str(file)] and report.mappings[0].verified
    assert run([WHOLE._replace(build_id=PIE_ID[:-2] + "00")], [Place(BASE + MAIN, 1)], tmp_path)[0] == [""]
    assert run([WHOLE._replace(build_id="")], [Place(BASE + MAIN, 1)], tmp_path)[0] == [""]


@pytest.mark.needs("strip")
def test_beside_a_stripped_binary(tmp_path: Path, symbols: bytes) -> None:
    """A stripped binary has the segments; one with symbols of its own needs no other names."""
    subprocess.run(["strip", "-s", "-o", tmp_path / "spectra", PIE], check=True)
    (tmp_path / "spectra.gsym").write_bytes(symbols)
    names, report = run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == ["main"]
    assert report.mappings[0].files == [str(tmp_path / "spectra.gsym"), str(tmp_path / "spectra")]
    shutil.copy(PIE, tmp_path / "spectra")
    assert run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)[1].mappings[0].files == [str(tmp_path / "spectra")]


def test_fixed_addresses(tmp_path: Path) -> None:
    """Of a program that is not moved, the first segment is where the file says it is."""
    with ElfImage.open(FIXED) as image:
        low, build_id = min(segment.vaddr for segment in image.segments), image.build_id or ""
    vaddr = main_of(FIXED)
    data = gsym_file([Function(vaddr, 0x10, "main")], base=low, uuid=bytes.fromhex(build_id))
    (tmp_path / "x.gsym").write_bytes(data)
    recorded = WHOLE._replace(start=low, limit=low + 0x10000, offset=0, build_id=build_id)
    assert run([recorded], [Place(vaddr, 1)], tmp_path)[0] == ["main"]


@pytest.mark.parametrize("base", [0x1000, 0x123])
def test_unknown_base(tmp_path: Path, base: int) -> None:
    """Where the file does not say where the first segment is, nothing is guessed without the binary."""
    data = gsym_file([Function(0x1000, 0x8000, "all")], base=base, uuid=bytes.fromhex(PIE_ID))
    (tmp_path / "x.gsym").write_bytes(data)
    assert run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)[0] == [""]


def test_damaged_file(tmp_path: Path, symbols: bytes) -> None:
    """A damaged file is as good as none, and is reported."""
    (tmp_path / "x.gsym").write_bytes(symbols[:4] + b"\7" + symbols[5:])
    names, report = run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == [""] and report.mappings[0].files == []
    assert any("is GSYM of version 7" in problem for problem in report.warnings)
    (tmp_path / "x.gsym").write_bytes(gsym_file([], uuid=bytes.fromhex(PIE_ID)))
    assert run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)[0] == [""]
    (tmp_path / "y.gsym").write_bytes(symbols)
    assert run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)[0] == ["main"]
