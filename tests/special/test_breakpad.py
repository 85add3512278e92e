"""Breakpad symbol files below a root."""

import shutil
import subprocess
from pathlib import Path

import pytest

from symbolize import Reason
from symbolize.elf import ElfImage
from symbolize.listings.breakpad import debug_id
from symbolize.match import page_ceil, page_floor
from symbolize.symbols import build_table
from tests.support.breakpad_writer import symbol_file
from tests.support.pprof_writer import Mapping, Place
from tests.support.whole_runs import run
from tests.test_pipeline import BASE, FIXED, MAIN, PIE, PIE_ID, WHOLE, function

DEBUG_ID = debug_id(PIE_ID) + "0"


def symbols_of(path: Path) -> bytes:
    """The symbol file of a program, written from its DWARF."""
    with ElfImage.open(path) as image:
        base = min(segment.vaddr for segment in image.segments)
        (code,) = [segment for segment in image.segments if segment.executable]
        table = build_table([image])
        return symbol_file(table, code.vaddr, code.vaddr + code.file_size, base, image.build_id or "", path.name)


@pytest.fixture(scope="module")
def symbols() -> bytes:
    """The symbol file of `PIE`."""
    return symbols_of(PIE)


@pytest.mark.parametrize(
    "path",
    [
        f"spectra/{DEBUG_ID}/spectra.sym", f"{DEBUG_ID}.breakpad", f"{PIE_ID}.breakpad", "any.sym",
        f"{PIE_ID[:2]}/{PIE_ID[2:]}/breakpad",
    ],
)  # fmt: skip
@pytest.mark.parametrize("build_id", [PIE_ID, PIE_ID.upper(), ""])
def test_layouts(tmp_path: Path, symbols: bytes, path: str, build_id: str) -> None:
    """Wherever it lies, a symbol file is known by its first records: by build id, or by the name of its module."""
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(symbols)
    names, report = run([WHOLE._replace(build_id=build_id)], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == ["main"]
    assert report.mappings[0].files == [str(file)]
    assert report.mappings[0].verified == bool(build_id)


def test_beside_a_stripped_binary(tmp_path: Path, symbols: bytes) -> None:
    """A binary that is stripped gets its symbols from there, and tells where its segments lie."""
    subprocess.run(["strip", "-s", "-o", tmp_path / "spectra", PIE], check=True)
    (tmp_path / "spectra.sym").write_bytes(symbols)
    for build_id in (PIE_ID, ""):
        recorded = WHOLE._replace(limit=WHOLE.limit - 0x1000, build_id=build_id)
        names, report = run([recorded], [Place(BASE + MAIN, 1)], tmp_path)
        assert names == ["main"]
        assert report.mappings[0].files == [str(tmp_path / "spectra.sym"), str(tmp_path / "spectra")]


def test_a_binary_with_symbols_is_better(tmp_path: Path, symbols: bytes) -> None:
    """Where the binary has symbols of its own, they are used."""
    shutil.copy(PIE, tmp_path / "spectra")
    (tmp_path / "spectra.sym").write_bytes(symbols)
    assert run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)[1].mappings[0].files == [str(tmp_path / "spectra")]


class TestBase:
    """Where addresses count from, without the binary."""

    def test_whole_file_mapped(self, tmp_path: Path, symbols: bytes) -> None:
        """A mapping of the file's beginning is the base, whether it holds the code or not."""
        (tmp_path / "x.sym").write_bytes(symbols)
        whole = WHOLE._replace(start=BASE, offset=0)
        assert run([whole], [Place(BASE + MAIN, 1)], tmp_path)[0] == ["main"]
        pieces = [WHOLE._replace(start=BASE, limit=BASE + 0x2000, offset=0), WHOLE._replace(limit=WHOLE.limit - 0x1000)]
        assert run(pieces, [Place(BASE + MAIN, 2)], tmp_path)[0] == ["main"]

    def test_code_alone(self, tmp_path: Path, symbols: bytes) -> None:
        """A mapping of the code alone has to hold all functions, or it is not placed."""
        (tmp_path / "x.sym").write_bytes(symbols)
        assert run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)[0] == ["main"]
        names, report = run([WHOLE._replace(limit=WHOLE.start + 0x800)], [Place(BASE + MAIN, 1)], tmp_path)
        assert names == [""]
        assert report.mappings[0].misses[0][0] in (Reason.MISFIT, Reason.OUTSIDE_SEGMENTS)

    def test_segments_moved_apart(self, tmp_path: Path) -> None:
        """lld moves segments by pages against their file offsets; the functions tell by how many."""
        (tmp_path / "x.sym").write_bytes(symbols_of(FIXED))
        with ElfImage.open(FIXED) as image:
            (code,) = [segment for segment in image.segments if segment.executable]
            build_id = image.build_id or ""
        begin, offset = page_floor(code.vaddr), page_floor(code.file_offset)
        assert code.vaddr - code.file_offset != min(segment.vaddr for segment in image.segments)
        recorded = Mapping(begin, page_ceil(code.vaddr + code.file_size), offset, "/x/spectra", build_id)
        assert run([recorded], [Place(function(FIXED, "main"), 1)], tmp_path)[0] == ["main"]


def test_other_build(tmp_path: Path, symbols: bytes) -> None:
    """A symbol file of another build is not used; of two without a build id none is."""
    (tmp_path / "a.sym").write_bytes(symbols)
    names, report = run([WHOLE._replace(build_id="ee" * 20)], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == [""]
    assert report.mappings[0].misses[0][0] == Reason.NOT_FOUND
    (tmp_path / "b.sym").write_bytes(symbols.replace(DEBUG_ID.encode(), b"0" * 31 + b"10"))
    names, report = run([WHOLE._replace(build_id="")], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == [""]
    assert report.mappings[0].misses[0][0] == Reason.AMBIGUOUS


def test_what_is_no_symbol_file(tmp_path: Path) -> None:
    """Other files with such names are passed over."""
    (tmp_path / "x.sym").write_text("hello")
    (tmp_path / "y.breakpad").write_bytes(b"\0" * 100)
    _, report = run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)
    assert report.mappings[0].misses[0][0] == Reason.NOT_FOUND
