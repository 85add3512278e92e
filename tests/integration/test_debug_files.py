"""Stripped binaries and debug files: which of them has the code, which of them belong together."""

import io
import shutil
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symbolize
from symbolize import Reason, Symbolizer
from symbolize.elf import ElfImage, identify
from symbolize.elf.probe import CODE
from symbolize.formats import encode
from symbolize.inspection import inspect
from symbolize.symbols import Binary, builds_of
from symbolize.symbols.builds import MAX_COMPARED, same_code
from tests.support import elf_writer
from tests.support import fixture_files as fixtures
from tests.support.elf_writer import ALLOC, EXEC, NOBITS, NOTE, PROGBITS, Section, Symbol, build_id_note, elf_file
from tests.support.lookup import frames_of
from tests.support.messages import profile_pb2
from tests.support.pprof_writer import Mapping, Place, profile

PAGE = 4096
TEXT = 0x1000
HEADERS = fixtures.BINARIES / "headers"
STRIPPED = sorted((HEADERS / "stripped").iterdir())
LIBRARY = "/opt/lib/library.so"


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

    @pytest.mark.needs("llvm-symbolizer-19")
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


def test_debug_file_with_true_offsets() -> None:
    """A debug file of eu-strip has no code and the segments of its binary, by which it places addresses (rule R103)."""
    text = Section(".text", type=NOBITS, flags=ALLOC | EXEC, address=TEXT, size=0x80)
    halves = [elf_writer.Segment(TEXT + 0x5000 * part, 0x40, 5, 0x1000 * part) for part in (1, 2)]
    image = ElfImage.parse(memoryview(elf_file([text], halves)), "x")
    assert (image.has_code, image.has_file_offsets) == (False, True)
    lost = image.segments[1]._replace(file_size=0x10)
    image = ElfImage.parse(memoryview(elf_file([text], halves)), "x")
    image.segments[1] = lost
    assert (image.has_code, image.has_file_offsets) == (False, False)


def shifted(distance: int, *names: str, sizes: Sequence[int] = (0x80, 0x40), is_debug: bool = True) -> ElfImage:
    """A file of two segments of code that begin at TEXT and a page behind it, and functions of 16 bytes."""
    begins = [TEXT + distance, TEXT + PAGE + distance]
    sections = [
        Section(
            f".text{number}",
            bytes(0 if is_debug else 0x40),
            NOBITS if is_debug else PROGBITS,
            ALLOC | EXEC,
            begin,
            0x40,
        )
        for number, begin in enumerate(begins)
    ]
    segments = [elf_writer.Segment(begin, size, 5, PAGE) for begin, size in zip(begins, sizes, strict=True)]
    symbols = [Symbol(name, begins[0] + 16 * number, 16, section=".text0") for number, name in enumerate(names)]
    made = elf_file(sections, segments, symbols)
    path = f"{'debug' if is_debug else 'code'}-{distance:x}"
    return ElfImage.parse(memoryview(made if is_debug else made.ljust(2 * PAGE, b"\0")), path)


class TestOtherAddresses:
    """A debug file may have all addresses one distance away from its binary (rule R145)."""

    def test_one_distance(self) -> None:
        """The distance is added to the addresses, and what has the names answers."""
        binary = Binary([shifted(0, is_debug=False), shifted(0x5000, "f", "g")])
        assert (binary.shift, binary.refused) == (0x5000, [])
        vaddrs = np.array([TEXT, TEXT + 16], np.uint64) + np.uint64(binary.shift)
        assert [frames[0].name for frames in frames_of(binary.table(), vaddrs.tolist())] == ["f", "g"]

    @pytest.mark.parametrize("sizes", [(0x80, 0x48), (0x88, 0x40)])
    def test_segments_of_other_sizes(self, sizes: Sequence[int]) -> None:
        """Where the segments are also of other sizes they are of another layout, and the file is refused."""
        binary = Binary([shifted(0, is_debug=False), shifted(0x5000, "f", sizes=sizes)])
        assert [image.path for image in binary.files] == ["code-0"]
        (problem,) = binary.refused
        assert problem == ("debug-5000 has sections or segments that do not agree with those of code-0 and is not used")

    @pytest.mark.parametrize("other", [0, 0x1000, 0x6000])
    def test_two_distances(self, other: int) -> None:
        """Of files with names at two distances those like the first are used, as one table has one distance."""
        images = [shifted(0, is_debug=False), shifted(0x5000, "f", "g"), shifted(other, "x", "y", "z")]
        binary = Binary(images)
        assert [image.path for image in binary.files] == ["debug-5000", "code-0"]
        assert binary.refused == [f"debug-{other:x} is at other addresses than debug-5000 and is not used"]
        names = [frames[0].name for frames in frames_of(binary.table(), (TEXT + 0x5000, TEXT + 0x5010)) if frames]
        assert names == ["f", "g"]


ID = "00112233445566778899aabbccddeeff00112233"
NOTE_SECTION = Section(".note.gnu.build-id", build_id_note(bytes.fromhex(ID)), NOTE, ALLOC, address=0x200)
SIZE = 0x40
RUNS = {"one": ("f", "g", "h"), "other": ("h", "f", "g")}
"""Two programs as a tool that reorders functions leaves them: the same functions, the sections equal in size."""


def program(run: str, *, is_debug: bool, size: int = SIZE, exports: bool = True) -> bytes:
    """One of the programs, stripped, with what it exports, or its debug file."""
    order = RUNS[run]
    code = b"".join(name.encode() * size for name in order)
    kind = NOBITS if is_debug else PROGBITS
    text = Section(".text", b"" if is_debug else code, kind, ALLOC | EXEC, TEXT, size=len(code))
    symbols = [Symbol(name, TEXT + size * place, size) for place, name in enumerate(order)]
    sections = [text, NOTE_SECTION, *([Section(".debug_str", b"x")] if is_debug else [])]
    segments = [elf_writer.Segment(0, 0x300, 4, 0), elf_writer.Segment(TEXT, len(code), 5, 0x1000)]
    return elf_file(sections, segments, symbols if is_debug else (), [] if is_debug or not exports else symbols)


FILES = {
    "one": program("one", is_debug=False),
    "other": program("other", is_debug=False),
    "one.debug": program("one", is_debug=True),
    "other.debug": program("other", is_debug=True),
}


def asked(folder: Path, order: Sequence[str], name: str) -> tuple[list[str], Any]:
    """The names of three functions of a mapping called `name`, where `order` are the files, each in its own folder."""
    roots = []
    for number, file in enumerate(order):
        roots.append(folder / f"{number}")
        roots[-1].mkdir(parents=True)
        (roots[-1] / file).write_bytes(FILES[file])
    base = 0x5000_0000_0000
    mapping = Mapping(base + TEXT, base + 0x2000, 0x1000, f"/opt/bin/{name}", ID)
    raw = profile([mapping], [([Place(base + TEXT + SIZE * place + 1, 1)], [1]) for place in range(3)])
    with Symbolizer(roots) as symbolizer:
        result = symbolizer.symbolize(symbolize.load(io.BytesIO(raw)))
    message = profile_pb2.Profile.FromString(encode(result.profile))
    chains = [fixtures.frames_of(message, location) for location in message.location]
    return [chain[0][0] if chain else "" for chain in chains], result.report.mappings[0]


class TestOneBuildIdAndSeveralBuilds:
    """Files with one build id and different contents: set by hand, or left by a tool that rewrites binaries."""

    @pytest.mark.parametrize("named", RUNS)
    @pytest.mark.parametrize("order", list(permutations(FILES)), ids="-".join)
    def test_the_file_that_the_mapping_names(self, order: tuple[str, ...], named: str, tmp_path: Path) -> None:
        """In any order of the folders the file that is called as the mapping answers, with its own debug file, and the
        other one is reported (rule R248)."""
        names, row = asked(tmp_path, order, named)
        assert tuple(names) == RUNS[named]
        assert sorted(Path(path).name for path in row.files) == [named, f"{named}.debug"]
        (problem,) = row.problems
        other = "other" if named == "one" else "one"
        assert "has other code than" in problem
        assert f"/{other} " in problem

    @pytest.mark.parametrize("order", list(permutations(["one", "other", "other.debug"])), ids="-".join)
    def test_debug_file_of_the_other_build(self, order: tuple[str, ...], tmp_path: Path) -> None:
        """The debug file of another build with equal sections is never joined with a file (rule R248)."""
        names, row = asked(tmp_path, order, "one")
        assert tuple(names) == RUNS["one"]
        assert [Path(path).name for path in row.files] == ["one"]

    @pytest.mark.parametrize("order", [[*FILES], [*FILES][::-1]], ids="-".join)
    def test_nothing_tells(self, order: tuple[str, ...], tmp_path: Path) -> None:
        """Where neither name nor call sites tell, there are no names, whatever the order (rules R247, R248)."""
        names, row = asked(tmp_path, order, "renamed")
        assert names == ["", "", ""]
        assert [reason for reason, _, _ in row.misses] == [Reason.AMBIGUOUS]
        assert row.detail.endswith("each: not checked: neither exact addresses of instructions nor call sites")

    def test_sections_of_another_size(self, tmp_path: Path) -> None:
        """A debug file with a code section of another size is not joined, though segments agree (rule R145)."""
        (tmp_path / "one").write_bytes(FILES["one"])
        debug = bytearray(FILES["one.debug"])
        size = (3 * SIZE).to_bytes(8, "little")
        at = debug.rindex(size)  # in the header of the section
        debug[at : at + 8] = (2 * SIZE).to_bytes(8, "little")
        (tmp_path / "one.debug").write_bytes(debug)
        for kind, path in ((True, "one"), (False, "one.debug")):
            with ElfImage.open(tmp_path / path) as image:
                assert image.has_code == kind
        with ElfImage.open(tmp_path / "one") as code, ElfImage.open(tmp_path / "one.debug") as other:
            assert len(builds_of([code, other])) == 2
            assert len(builds_of([other, code])) == 2

    def test_sections_elsewhere(self) -> None:
        """A debug file with its code at another address is of another build, though segments agree (rule R145)."""
        text, segment = Section(".text", bytes(64), flags=ALLOC | EXEC, address=TEXT), elf_writer.Segment(TEXT, 0x100)
        code, here, elsewhere = (
            ElfImage.parse(memoryview(elf_file([section], [segment])), "x")
            for section in (
                text,
                text._replace(type=NOBITS, size=64),
                text._replace(type=NOBITS, size=64, address=0x1040),
            )
        )
        assert len(builds_of([code, here])) == 1
        assert len(builds_of([code, elsewhere])) == 2

    @pytest.mark.parametrize(("moved", "builds"), [((0x5000, 0x5000), 1), ((0, 0), 1), ((0x5000, 0), 2)])
    def test_sections_moved_apart(self, moved: Sequence[int], builds: int) -> None:
        """The sections of a debug file whose segments are moved are moved as far, or none of them are (rule R145)."""
        code, debug = (
            ElfImage.parse(
                memoryview(
                    elf_file(
                        [
                            Section(name, b"" if is_debug else bytes(64), NOBITS if is_debug else PROGBITS,
                                    ALLOC | EXEC, TEXT + start + is_debug * distance, 64)
                            for name, start, distance in zip((".text", ".fini"), (0, 64), moved, strict=True)
                        ],
                        [elf_writer.Segment(TEXT + is_debug * 0x5000, 0x100)],
                    )
                ),
                "x",
            )
            for is_debug in (False, True)
        )  # fmt: skip
        assert len(builds_of([code, debug])) == builds

    def test_copies_are_one_build(self) -> None:
        """Copies of a file, stripped or not, are one build and take their debug file (rule R248)."""
        files = [FILES["one"], FILES["one.debug"], FILES["one"], program("one", is_debug=False, exports=False)]
        images = [ElfImage.parse(memoryview(data), str(number)) for number, data in enumerate(files)]
        for order in permutations(images):
            (build,) = builds_of(order)
            assert set(build) == set(images)

    @pytest.mark.parametrize("size", [MAX_COMPARED // 2, 2 * MAX_COMPARED])
    def test_large_code(self, size: int) -> None:
        """Of large files a part is compared: reordered code is found, and equal code is equal."""
        made = {name: program(name, is_debug=False, size=size // 3) for name in RUNS}
        one, other, again = (
            ElfImage.parse(memoryview(data), "x") for data in (made["one"], made["other"], bytes(made["one"]))
        )
        assert same_code(one, again)
        assert not same_code(one, other)
