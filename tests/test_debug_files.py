"""Stripped binaries and debug files: which of them has the code, which of them belong together."""

import io
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import symbolize
from symbolize import Symbolizer
from symbolize.elf import ElfImage, identify
from symbolize.elf.ident import CODE
from symbolize.inspection import inspect
from symbolize.proto import profile_pb2
from symbolize.write import encode
from tests.support import fixture_files as fixtures
from tests.support.pprof_writer import Mapping, Place, profile

PAGE = 4096
HEADERS = fixtures.BINARIES / "headers"
STRIPPED = sorted((HEADERS / "stripped").iterdir())
LIBRARY = "/opt/lib/library.so"

needs_llvm = pytest.mark.skipif(fixtures.LLVM_SYMBOLIZER is None, reason="llvm-symbolizer-19 is not installed")


def debug_file(stripped: Path) -> Path:
    """The debug file of one of the libraries."""
    return HEADERS / "debug" / f"{stripped.name}.debug"


def symbolized(
    path: Path, roots: Sequence[Path], vaddrs: Sequence[int], build_id: str
) -> tuple[dict[int, list[fixtures.Frame]], symbolize.Report]:
    """The frames at vaddrs of the binary at `path`, mapped as the kernel maps it, and the report."""
    with ElfImage.open(path) as image:
        (segment,) = (segment for segment in image.segments if segment.executable)
        base = 0x5000_0000_0000 if image.is_64 else 0x4000_0000
    start, end = segment.vaddr // PAGE * PAGE, -(-(segment.vaddr + segment.memory_size) // PAGE) * PAGE
    mapping = Mapping(base + start, base + end, segment.file_offset // PAGE * PAGE, LIBRARY, build_id)
    raw = profile([mapping], [([Place(base + vaddr, 1)], [1]) for vaddr in vaddrs])
    with Symbolizer(roots) as symbolizer:
        result = symbolizer.symbolize(symbolize.load(io.BytesIO(raw)))
    message = profile_pb2.Profile.FromString(encode(result.profile))
    return {each.address - base: fixtures.frames_of(message, each) for each in message.location}, result.report


class TestHeadersInTheSegmentOfTheCode:
    """Libraries whose executable segment begins with the ELF headers, which their debug files keep."""

    @pytest.mark.parametrize("stripped", STRIPPED, ids=lambda path: path.stem)
    def test_who_has_the_code(self, stripped: Path) -> None:
        """The headers are no code, for the index, for an opened file and for `inspect` (rule R103)."""
        for path, expected in ((stripped, True), (debug_file(stripped), False)):
            with ElfImage.open(path) as image:
                assert any(segment.executable and segment.file_size for segment in image.segments)
                assert (image.has_code, image.has_file_offsets) == (expected, expected)
            ident = identify(str(path))
            assert ident is not None
            assert bool(ident.offers & CODE) == expected
            elf = inspect(str(path), None).elf
            assert elf is not None
            assert elf.code == ("here" if expected else "elsewhere")

    @needs_llvm
    @pytest.mark.parametrize("by_name", [False, True], ids=["build id", "name"])
    @pytest.mark.parametrize("beside", [True, False], ids=["beside", "alone"])
    @pytest.mark.parametrize("stripped", STRIPPED, ids=lambda path: path.stem)
    def test_every_frame(self, stripped: Path, beside: bool, by_name: bool, tmp_path: Path) -> None:
        """The debug file gives what llvm-symbolizer finds, beside the binary and alone (rules R103, R145)."""
        debug = debug_file(stripped)
        shutil.copy(debug, tmp_path / "library.so.debug")
        if beside:
            shutil.copy(stripped, tmp_path / "library.so")
        with ElfImage.open(debug) as image:
            begins, ends = image.code_ranges
            build_id = image.build_id or ""
        step = 2 if "thumb" in stripped.name else 4
        vaddrs = [v for begin, end in zip(begins.tolist(), ends.tolist(), strict=True) for v in range(begin, end, step)]
        found, report = symbolized(stripped, [tmp_path], vaddrs, "" if by_name else build_id)
        expected = fixtures.llvm_frames(debug, vaddrs)
        named = {vaddr: chain for vaddr, chain in expected.items() if chain and chain[0][0]}
        assert len(named) > 40
        assert {vaddr: found[vaddr] for vaddr in named} == named
        assert report.mappings[0].problems == []
