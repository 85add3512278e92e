"""Breakpad symbol files below a root."""

import io
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import symbolize
from symbolize import Reason
from symbolize.elf import ElfImage
from symbolize.resolve.addresses import page_ceil, page_floor
from symbolize.symbol_files.breakpad import debug_id
from tests.support.breakpad_writer import symbols_of
from tests.support.elf_writer import ALLOC, EXEC, NOTE, Section, Segment, build_id_note, elf_file
from tests.support.pprof_writer import Mapping, Place, profile
from tests.support.spectra import BASE, FIXED, MAIN, PIE, PIE_ID, WHOLE, main_of
from tests.support.whole_runs import run

DEBUG_ID = debug_id(PIE_ID) + "0"


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


GUID = "E3C6E8F14A2B4C0D9E11AABBCCDDEEFF"


@pytest.mark.parametrize("age", ["1", "12F", "2A"])
def test_windows(tmp_path: Path, age: str) -> None:
    """GUID and age of a module of Windows are those of the symbol file, whole (R451, spellings of build ids)."""
    lines = ["MODULE windows x86_64 {}{} chrome.dll", "FUNC 2000 100 0 content::Run"]
    (tmp_path / f"{GUID}{age}.breakpad").write_text("\n".join(lines).format(GUID, age) + "\n")
    path = r"C:\Program Files\Chrome\chrome.dll"
    for build_id in (GUID + age, f"{GUID}{age}".lower(), f"{GUID}{age}".encode().hex(), ""):
        names, report = run([WHOLE._replace(file=path, build_id=build_id)], [Place(BASE + 0x2004, 1)], tmp_path)
        assert names == ["content::Run"]
        assert report.mappings[0].verified == bool(build_id)
    others = GUID + "3", GUID[:-1] + "0" + age
    for build_id in others:
        names, report = run([WHOLE._replace(file=path, build_id=build_id)], [Place(BASE + 0x2004, 1)], tmp_path)
        assert names == [""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.NOT_ELF]


def test_mapping_without_a_name(tmp_path: Path, symbols: bytes) -> None:
    """A build id is enough, whatever the mapping is called."""
    (tmp_path / "spectra.sym").write_bytes(symbols)
    for name in ("", "[anon]"):
        assert run([WHOLE._replace(file=name)], [Place(BASE + MAIN, 1)], tmp_path)[0] == ["main"]
        assert run([WHOLE._replace(file=name, build_id="")], [Place(BASE + MAIN, 1)], tmp_path)[0] == [""]


@pytest.mark.needs("strip")
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


def test_code_at_the_beginning_of_a_binary(tmp_path: Path) -> None:
    """The first byte of a stripped binary is one of the function there."""
    code = Section(".text", bytes(0x1000), flags=ALLOC | EXEC, address=0x1000)
    note = Section(".note", build_id_note(bytes.fromhex(PIE_ID)), NOTE, ALLOC, address=0x3000)
    (tmp_path / "spectra").write_bytes(elf_file([code, note], [Segment(0x1000, 0x1000, 5, 0x1000)]))
    lines = [f"MODULE Linux x86_64 {DEBUG_ID} spectra", "FUNC 0 10 0 first", "FUNC 10 10 0 second"]
    (tmp_path / "spectra.sym").write_text("\n".join(lines) + "\n")
    recorded = Mapping(BASE, BASE + 0x1000, 0x1000, "/x/spectra", PIE_ID)
    names, report = run([recorded], [Place(BASE, 1), Place(BASE + 0x10, 1)], tmp_path)
    assert names == ["first", "second"]
    assert report.mappings[0].files == [str(tmp_path / "spectra.sym"), str(tmp_path / "spectra")]


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
        assert run([recorded], [Place(main_of(FIXED), 1)], tmp_path)[0] == ["main"]


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


def test_copies_of_one_symbol_file(tmp_path: Path, symbols: bytes) -> None:
    """Symbol files of the same build are one, with a build id and without."""
    for name in ("a.sym", "b.sym"):
        (tmp_path / name).write_bytes(symbols)
    for build_id in (PIE_ID, ""):
        assert run([WHOLE._replace(build_id=build_id)], [Place(BASE + MAIN, 1)], tmp_path)[0] == ["main"]


def test_what_is_no_symbol_file(tmp_path: Path) -> None:
    """Other files with such names are passed over."""
    (tmp_path / "x.sym").write_text("hello")
    (tmp_path / "y.breakpad").write_bytes(b"\0" * 100)
    _, report = run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)
    assert report.mappings[0].misses[0][0] == Reason.NOT_FOUND


class TestLoadBase:
    """Where addresses count from by mapping and functions alone: a file whose functions are at 0x2100 to 0x2900."""

    MODULE = "ab" * 20

    def name_at(self, tmp_path: Path, recorded: Sequence[Mapping], address: int, functions: str) -> str:
        """The name at an address in the last mapping."""
        (tmp_path / "x.sym").write_text(f"MODULE Linux x86_64 {debug_id(self.MODULE)}0 x\n{functions}")
        return run(recorded, [Place(address, len(recorded))], tmp_path)[0][0]

    @pytest.mark.parametrize(
        ("desc", "offset", "length", "distance", "functions"),
        [
            ("vaddrs run like offsets", 0x2000, 0x1000, 0x2000, "FUNC 2100 800 0 f\n"),
            ("the last function ends with the mapping", 0x2000, 0x1000, 0x2000, "FUNC 2100 F00 0 f\n"),
            ("the last function ends behind the mapping", 0x2000, 0x1000, None, "FUNC 2100 F01 0 f\n"),
            ("the first function begins with the mapping", 0x2100, 0x1000, 0x2100, "FUNC 2100 800 0 f\n"),
            ("the mapping ends within a page", 0x2000, 0xF80, 0x2000, "FUNC 2100 F00 0 f\n"),
            ("segments moved apart by a page", 0x1000, 0x1000, 0x2000, "FUNC 2100 800 0 f\n"),
            ("offsets behind the functions", 0x3000, 0x1000, 0x2000, "FUNC 2100 800 0 f\n"),
            ("no functions", 0x2000, 0x1000, None, ""),
            (
                "a function behind a gap",
                0x2000,
                0x1000,
                0x2000,
                "FUNC 2100 100 0 f\nFUNC 2200 10 0 g\nFUNC 2900 10 0 h\n",
            ),
        ],
    )
    def test_of_one_mapping(
        self, tmp_path: Path, desc: str, offset: int, length: int, distance: int | None, functions: str
    ) -> None:
        """The code's own mapping tells, if all functions lie in it then."""
        recorded = Mapping(BASE, BASE + length, offset, "/x", self.MODULE)
        found = self.name_at(tmp_path, [recorded], BASE - (distance or 0x2000) + 0x2108, functions)
        assert found == ("" if distance is None else "f")

    def test_of_the_beginning_of_the_file(self, tmp_path: Path) -> None:
        """Where the file's beginning is mapped the addresses count from there: the nearest one before the code, of the
        same file."""
        code = Mapping(BASE, BASE + 0x1000, 0x1000, "/x", self.MODULE)
        first = Mapping(BASE - 0x3000, BASE - 0x2000, 0, "/x", self.MODULE)
        for others in (
            [first],
            [first, first._replace(start=BASE - 0x9000, limit=BASE - 0x8000)],
            [first, first._replace(start=BASE - 0x4000, limit=BASE - 0x3000)],
            [first, first._replace(start=BASE + 0x9000, limit=BASE + 0xA000)],
            [first, first._replace(start=BASE - 0x2000, limit=BASE - 0x1000, offset=0x800)],
            [first, first._replace(start=BASE - 0x2000, limit=BASE - 0x1000, file="/y")],
            [first, first._replace(start=BASE - 0x2000, limit=BASE - 0x1000, build_id="cd" * 20)],
        ):
            functions = "FUNC 2100 800 0 f\nFUNC 3100 800 0 g\nFUNC 4100 800 0 h\n"
            assert self.name_at(tmp_path, [*others, code], BASE + 0x108, functions) == "g"

    def test_of_another_process(self, tmp_path: Path) -> None:
        """The beginning of the file in another process is no place to count from."""
        code = Mapping(BASE, BASE + 0x1000, 0x2000, "/x", self.MODULE)
        for distance in (0x100000, 0x1000):  # behind all functions, and nearer than in the file
            other = Mapping(BASE - distance, BASE - distance + 0x1000, 0, "/x", self.MODULE)
            assert self.name_at(tmp_path, [other, code], BASE + 0x108, "FUNC 2100 800 0 f\n") == "f"

    def test_without_an_end(self, tmp_path: Path) -> None:
        """A mapping that does not say where it ends is placed by its beginning, and else not at all."""
        for offset, wanted in ((0, "f"), (0x2000, "")):
            recorded = Mapping(BASE, 0, offset, "/x", self.MODULE)
            assert self.name_at(tmp_path, [recorded], BASE + 0x2108 - offset, "FUNC 2100 800 0 f\n") == wanted

    def test_below_address_0(self, tmp_path: Path) -> None:
        """No file begins below address 0."""
        recorded = Mapping(0x1000, 0x2000, 0x2000, "/x", self.MODULE)
        assert self.name_at(tmp_path, [recorded], 0x1108, "FUNC 2100 800 0 f\n") == ""

    def test_addresses_outside(self, tmp_path: Path) -> None:
        """What lies outside of the mapping has no name, wherever the functions are."""
        recorded = Mapping(BASE, BASE + 0x1000, 0, "/x", self.MODULE)
        for at, wanted in ((0, "f"), (0xFFF, "f"), (0x1000, ""), (-1, "")):
            assert self.name_at(tmp_path, [recorded], BASE + at, "FUNC 0 2000 0 f\n") == wanted


def test_mappings_that_are_no_file_have_no_namesakes(tmp_path: Path, symbols: bytes) -> None:
    """A symbol file of a module that is called as memory without a file is not taken for its name."""
    (tmp_path / "x.sym").write_bytes(symbols.replace(b" spectra\n", b" [heap]\n", 1))
    for build_id, names in (("", [""]), (PIE_ID, ["main"])):
        assert run([WHOLE._replace(file="[heap]", build_id=build_id)], [Place(BASE + MAIN, 1)], tmp_path)[0] == names


def test_how_many_files_are_open(tmp_path: Path, symbols: bytes) -> None:
    """Binaries and symbol files that were used, until all are closed."""
    (tmp_path / "spectra.sym").write_bytes(symbols)
    made = symbolize.load(io.BytesIO(profile([WHOLE], [([Place(BASE + MAIN, 1)], [1])])))
    with symbolize.Symbolizer([tmp_path]) as symbolizer:
        assert symbolizer.open_binaries == 0
        symbolizer.symbolize(made)
        assert symbolizer.open_binaries == 1
        assert repr(symbolizer).endswith(", 1 open>")
