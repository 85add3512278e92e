"""Frames in text that was moved into anonymous memory."""

import io
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import symbolize
from symbolize import Reason, Symbolizer
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage, Segment, inside_calls
from symbolize.profile import AddressKind
from symbolize.resolve.huge_pages import FileLayout, is_in_text, is_moved_text, load_distances
from symbolize.resolve.mapping_record import records_of
from symbolize.symbols import Binary
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.pprof_writer import Mapping, Place, profile
from tests.support.whole_runs import run

BASE = 0x5601_2340_0000
LEDGER = BINARIES / "gcc-o0" / "ledger"
SHIFTED = BINARIES / "clang-gz-zstd" / "ledger"
"""Its code has vaddrs a page above the file offsets."""
PATH = "/opt/ledger/bin/ledger"
RECORDED = FIXTURES / "profiles" / "moved" / "ledger-gcc-o0.prof"


@cache
def vaddrs_of(path: Path) -> tuple[list[int], list[int]]:
    """Vaddrs of a program in calls, and others, both in the code but on its first page."""
    with ElfImage.open(str(path)) as image:
        code = next(each for each in image.segments if each.executable)
        every = np.arange(code.vaddr // 0x1000 * 0x1000 + 0x1000, code.vaddr + code.memory_size, dtype=np.uint64)
        calls = inside_calls(image, every)
        assert calls is not None
        return every[calls][::40].tolist(), every[~calls][::40].tolist()


def moved(name: str = "", path: Path = LEDGER, base: int = BASE) -> Mapping:
    """The memory onto which all text of a program but its first page was moved."""
    with ElfImage.open(str(path)) as image:
        code = next(each for each in image.segments if each.executable)
        end = -(-(code.vaddr + code.memory_size) // 0x1000) * 0x1000
        return Mapping(base + code.vaddr // 0x1000 * 0x1000 + 0x1000, base + end, 0, name)


HEAD = Mapping(BASE + 0x2000, BASE + 0x3000, 0x2000, PATH)
HEADERS = Mapping(BASE, BASE + 0x2000, 0, PATH)


def symbolized(mappings: list[Mapping], callers: list[int], root: Path = LEDGER) -> tuple[list[str], Any]:
    """The names of callers in the first mapping, of something in the second, and what the report says of that."""
    leaf = Place(mappings[1].start + 1, 2)
    stacks = [([leaf, Place(caller, 1)], [1]) for caller in callers] or [([Place(mappings[0].start + 1, 1)], [1])]
    with Symbolizer(root) as symbolizer:
        result = symbolizer.symbolize(symbolize.load(io.BytesIO(profile(mappings, stacks))))
    names = [stack[-1].function for stack in result.profile.stacks()]
    return names, result.report.mappings[0]


def expected(path: Path, vaddrs: list[int]) -> list[str]:
    """The names of the same vaddrs where the file is mapped as a whole."""
    with ElfImage.open(str(path)) as image:
        code = next(each for each in image.segments if each.executable)
    page = code.file_offset // 0x1000 * 0x1000
    start = code.vaddr - code.file_offset + page + BASE
    whole = Mapping(start, start + -(-(code.file_offset + code.file_size - page) // 0x1000) * 0x1000, page, PATH)
    return run([whole], [Place(BASE + vaddr, 1) for vaddr in vaddrs], path)[0]


class TestRecorded:
    """A program whose text was moved while it ran."""

    def test_names(self) -> None:
        """Addresses in anonymous memory have the names that addr2line gives to those of the file."""
        golden = dict(line.split(" ", 1) for line in RECORDED.with_suffix(".txt").read_text().splitlines())
        loaded = symbolize.load(RECORDED)
        with Symbolizer(LEDGER, symbolize.Options(demangle="none")) as symbolizer:
            result = symbolizer.symbolize(loaded)
        compared = 0
        text = result.profile.strings.text
        for record in records_of(result.profile, with_names=False)[:-1]:
            if record.filename:
                continue
            lines = result.profile.locations
            for row, address in zip(record.rows.tolist(), record.addresses.tolist(), strict=True):
                if f"{address:x}" in golden:
                    function = int(lines.lines.function[lines.line_offsets[row + 1] - 1])
                    name = text(result.profile.functions.system_name[function])
                    assert name.replace("C1E", "C2E") == golden[f"{address:x}"].replace("C1E", "C2E")
                    compared += 1
        assert compared > 100
        (row,) = (row for row in result.report.mappings if not row.name and row.files)
        assert row.files == [str(LEDGER)]
        assert not row.verified
        assert row.tried[-1][0] == f"text of {PATH} on huge pages"

    def test_another_build(self) -> None:
        """Of all builds of the program the one that ran is taken, as for its own mappings."""
        with Symbolizer([path for path in BINARIES.iterdir() if path.name != "aarch64"]) as symbolizer:
            result = symbolizer.symbolize(symbolize.load(RECORDED))
        named = [row.files for row in result.report.mappings if row.files]
        assert named == [[str(LEDGER)]] * 3

    def test_binary_is_missing(self) -> None:
        """Without the file the reason is that of any memory without a name."""
        with Symbolizer(BINARIES / "twins" / "lld-all") as symbolizer:
            result = symbolizer.symbolize(symbolize.load(RECORDED))
        (row,) = (row for row in result.report.mappings if not row.name and row.value)
        assert [reason for reason, _, _ in row.misses] == [Reason.NO_IDENTITY]


class TestNeighbours:
    """Which file is taken."""

    @pytest.mark.parametrize(
        "name",
        [
            "", "//anon", "[anon]", "[anon:.text]", "/[anon:.text]", "/anon_hugepage", "/anon_hugepage (deleted)",
            "/tmp/perf-12.map",
            "/memfd:text (deleted)", "/dev/zero (deleted)", "/dev/hugepages/text",
            "/var/lib/hugetlbfs/libhugetlbfs.tmp.a1B2c3 (deleted)",
        ],
    )  # fmt: skip
    def test_names_of_memory(self, name: str) -> None:
        """All names that such memory has."""
        calls = vaddrs_of(LEDGER)[0]
        names, row = symbolized([moved(name), HEAD], [BASE + vaddr for vaddr in calls])
        assert names == expected(LEDGER, calls)
        assert all(names)
        assert (row.files, row.verified) == ([str(LEDGER)], False)

    @pytest.mark.parametrize("name", ["[heap]", "[stack]", "/tmp/perf-12.data", "/opt/other", "[vdso]"])
    def test_other_memory(self, name: str) -> None:
        """Other memory is never text of a file."""
        names, row = symbolized([moved(name), HEAD], [BASE + vaddr for vaddr in vaddrs_of(LEDGER)[0]])
        assert not any(names)
        assert row.files == []

    @pytest.mark.parametrize(
        "neighbours",
        [
            [HEADERS],
            [Mapping(BASE + 0x9000, BASE + 0xE000, 0x9000, PATH)],
            [Mapping(BASE + 0xD000, BASE + 0xE000, 0xD000, PATH)],
            [Mapping(BASE + 0x2000, BASE + 0x9000, 0x2000, PATH)],
            [Mapping(BASE + 0x10000, BASE + 0x20000, 0x1000, "/lib/other.so"), HEAD],
            [Mapping(BASE + 0x2800, BASE + 0x3000, 0x1000, "/lib/missing.so"), HEAD],
        ],
    )
    def test_place_of_neighbours(self, neighbours: list[Mapping]) -> None:
        """Any mapping of the file shows where it is: before, behind, not next to it, and one that lasted until then."""
        calls = vaddrs_of(LEDGER)[0]
        names, _ = symbolized([moved(), *neighbours], [BASE + vaddr for vaddr in calls])
        assert names == expected(LEDGER, calls)

    @pytest.mark.parametrize(
        "neighbour",
        [
            Mapping(BASE, BASE + 0x2000, 0, PATH),
            Mapping(BASE + 0x2000, BASE + 0x3000, 0x1000, PATH),
            Mapping(BASE + 0x1000, BASE + 0x2000, 0x1000, PATH),
        ],
        ids=["headers", "code", "a page of headers that code begins on"],
    )
    def test_shifted_segments(self, neighbour: Mapping) -> None:
        """The distance is that of the segments, where vaddrs and file offsets differ."""
        calls = vaddrs_of(SHIFTED)[0]
        names, _ = symbolized([moved(path=SHIFTED), neighbour], [BASE + vaddr for vaddr in calls], SHIFTED)
        assert names == expected(SHIFTED, calls)
        assert all(names)

    def test_a_page_of_two_segments(self) -> None:
        """Of two places that fit equally well the one by the code is taken, not the one by what shares its page."""
        with ElfImage.open(str(SHIFTED)) as image:
            vaddrs = np.arange(0x3C00, 0x4730, dtype=np.uint64)
            here, there = (inside_calls(image, vaddrs - np.uint64(shift)) for shift in (0, 0x1000))
        assert here is not None and there is not None
        calls = vaddrs[here & there].tolist()
        assert len(calls) >= 4
        neighbour = Mapping(BASE + 0x2000, BASE + 0x3000, 0x1000, PATH)
        names, _ = symbolized([moved(path=SHIFTED), neighbour], [BASE + vaddr for vaddr in calls], SHIFTED)
        assert names == expected(SHIFTED, calls)

    def test_fixed_addresses(self) -> None:
        """A program at fixed addresses is where it was linked."""
        path = BINARIES / "clang-nopie-dwarf4-lld" / "ledger"
        calls = vaddrs_of(path)[0]
        neighbour = Mapping(0x200000, 0x202000, 0, PATH)
        names, _ = symbolized([moved(path=path, base=0), neighbour], calls, path)
        assert all(names)

    def test_build_id(self) -> None:
        """The build id of the neighbour decides which file it is; the memory has none, and is not verified."""
        with ElfImage.open(str(LEDGER)) as image:
            build_id = image.build_id or ""
        calls = [BASE + vaddr for vaddr in vaddrs_of(LEDGER)[0]]
        names, row = symbolized([moved(), HEAD._replace(build_id=build_id, file="")], calls)
        assert all(names)
        assert not row.verified
        names, row = symbolized([moved(), HEAD._replace(build_id="12" * 20)], calls)
        assert not any(names)

    def test_two_files(self) -> None:
        """Where what was sampled fits two files, neither is taken."""
        builds = LEDGER, BINARIES / "clang-pie" / "ledger"
        found: list[Any] = []
        ids: list[str] = []
        vaddrs = np.arange(0x3000, 0x3F00, dtype=np.uint64)
        for path in builds:
            with ElfImage.open(str(path)) as image:
                found.append(inside_calls(image, vaddrs))
                ids.append(image.build_id or "")
        calls = [BASE + vaddr for vaddr in vaddrs[found[0] & found[1]].tolist()]
        assert len(calls) > 4
        around = [HEAD._replace(build_id=ids[0]), HEADERS._replace(build_id=ids[1])]
        stacks = [([Place(BASE + 0x2001, 2), Place(call, 1)], [1]) for call in calls]
        data = profile([Mapping(BASE + 0x3000, BASE + 0x4000), *around], stacks)
        with Symbolizer(builds) as symbolizer:
            result = symbolizer.symbolize(symbolize.load(io.BytesIO(data)))
        row = result.report.mappings[0]
        assert [reason for reason, _, _ in row.misses] == [Reason.AMBIGUOUS]
        assert row.detail == f"what was sampled fits {builds[0]} and {builds[1]}"

    def test_two_copies(self, tmp_path: Path) -> None:
        """Two files with the same code are no contradiction."""
        for name in ("ledger", "copy"):
            (tmp_path / name).write_bytes(LEDGER.read_bytes())
        calls = vaddrs_of(LEDGER)[0]
        around = [HEAD, HEADERS._replace(file="/opt/copy")]
        names, _ = symbolized([moved(), *around], [BASE + vaddr for vaddr in calls], tmp_path)
        assert names == expected(LEDGER, calls)


class TestConfirmation:
    """When it is taken."""

    @pytest.mark.parametrize(
        ("count", "why"),
        [
            (0, "not checked: neither exact addresses of instructions nor call sites"),
            (1, "1 of 1 call sites lie in a call"),
            (3, "3 of 3 call sites lie in a call"),
        ],
    )
    def test_too_few_callers(self, count: int, why: str) -> None:
        """Where too little supports it nothing is named, and the report says why."""
        names, row = symbolized([moved(), HEAD], [BASE + vaddr for vaddr in vaddrs_of(LEDGER)[0][:count]])
        assert not any(names)
        assert [reason for reason, _, _ in row.misses] == [Reason.UNCONFIRMED]
        assert row.detail == f"may be text of {PATH} on huge pages; {why}"

    def test_four_callers(self) -> None:
        """Four callers in calls support it; the report has their number."""
        names, row = symbolized([moved(), HEAD], [BASE + vaddr for vaddr in vaddrs_of(LEDGER)[0][1:5]])
        assert all(names)
        assert (row.verdict, row.evidence) == (Verdict.SUPPORTED, "4 of 4 call sites lie in a call")

    def test_compiled_code_in_the_hole(self) -> None:
        """Memory whose callers are in no calls is other code, wherever it is."""
        names, row = symbolized([moved(), HEAD], [BASE + vaddr for vaddr in vaddrs_of(LEDGER)[1]])
        assert not any(names)
        assert [reason for reason, _, _ in row.misses] == [Reason.NO_IDENTITY]
        assert row.tried[-1][0] == f"text of {PATH} on huge pages"
        assert f"{LEDGER} is refused: another build: 0 of " in row.tried[-1][1]

    def test_compiled_code_beside(self) -> None:
        """Memory next to a library and not where its text is, as a JIT's, is not taken for it."""
        behind = Mapping(BASE + 0x40_0000, BASE + 0x48_0000)
        neighbour = Mapping(BASE + 0x3F_E000, BASE + 0x40_0000, 0x2000, PATH)
        names, row = symbolized([behind, neighbour], [behind.start + 64 * each for each in range(20)])
        assert not any(names)
        assert [reason for reason, _, _ in row.misses] == [Reason.NO_IDENTITY]

    def test_list_of_a_runtime(self, tmp_path: Path) -> None:
        """What the runtime wrote of its code comes first."""
        memory = moved("//anon")
        (tmp_path / "perf-1.map").write_text(f"{memory.start:x} {memory.limit - memory.start:x} compiled\n")
        (tmp_path / "ledger").write_bytes(LEDGER.read_bytes())
        names, _ = symbolized([memory, HEAD], [BASE + vaddr for vaddr in vaddrs_of(LEDGER)[0]], tmp_path)
        assert set(names) == {"compiled"}

    def test_debug_file_alone(self, tmp_path: Path) -> None:
        """A debug file has no code to check calls in, so nothing is taken."""
        debug = BINARIES / "gcc-split" / "debug" / "ledger.debug"
        names, row = symbolized([Mapping(BASE + 0x3000, BASE + 0x4000), HEAD], [BASE + 0x3100, BASE + 0x3200], debug)
        assert not any(names)
        assert row.files == []


def test_distances_of_hostile_segments() -> None:
    """Distances wrap around, and a file offset in no segment gives none."""
    with ElfImage.open(str(SHIFTED)) as image:
        layout = FileLayout.of(Binary([image]))
        record = records_of(
            symbolize.load(io.BytesIO(profile([HEAD], [([Place(HEAD.start, 1)], [1])]))), with_names=False
        )
        assert load_distances(record[0]._replace(file_offset=1 << 40), layout) == []
        assert all(0 <= each < 1 << 64 for each in load_distances(record[0], layout))
        assert not is_in_text(layout, (1 << 64) - 0x1000, 0x2000)


def test_ends_of_text() -> None:
    """Text may be rounded to huge pages, and no further; an empty segment is none, nor one of data."""
    segments = [Segment(0x1000, 0x20_1000, 0x100, 0x100, 0x1000, True), Segment(0, 0x60_0000, 0, 0, 0x1000, True)]
    segments.append(Segment(0x2000, 0xA0_0000, 0x100, 0x100, 0x1000, False))
    layout = FileLayout("ET_DYN", segments)
    assert is_in_text(layout, 0x20_0000, 0x20_0000)
    assert not is_in_text(layout, 0x20_0000, 0x20_0001)
    assert not is_in_text(layout, 0x1F_F000, 0x1000)
    assert not is_in_text(layout, 0x60_0000, 0)
    assert not is_in_text(layout, 0xA0_0000, 0x1000)


def test_larger_pages() -> None:
    """A segment is mapped from the page that it begins on, which may be larger than 4 KiB."""
    segments = [Segment(0x1_2340, 0x2_2340, 0x100, 0x100, 0x1_0000, True)]
    mapping: Any = SimpleNamespace(start=0x4000_0000, file_offset=0x1_0000)
    assert load_distances(mapping, FileLayout("ET_DYN", segments)) == [(0x2_0000 - 0x4000_0000) % (1 << 64)]


TOP_OF_USERS = 0x8000_0000_0000_0000


@pytest.mark.parametrize(
    ("changes", "is_moved"),
    [
        ({}, True),
        ({"filename": "/anon_hugepage"}, True),
        ({"filename": "/lib/x.so"}, False),
        ({"build_id": "ab" * 20}, False),
        ({"start": 0}, False),
        ({"start": 0x1000, "limit": 0x1000}, False),
        ({"limit": TOP_OF_USERS}, True),
        ({"limit": TOP_OF_USERS + 1}, False),
        *(({"kind": kind}, kind == AddressKind.PROCESS) for kind in AddressKind),
    ],
)
def test_what_may_be_moved_text(changes: dict[str, Any], is_moved: bool) -> None:
    """Memory of a process without a file, below the kernel; addresses of another kind are in no memory."""
    made: Any = {"build_id": "", "kind": AddressKind.PROCESS, "start": 0x1000, "limit": 0x2000, "filename": "//anon"}
    assert is_moved_text(SimpleNamespace(**made | changes)) == is_moved  # type: ignore[arg-type]


@pytest.mark.parametrize(("offset", "is_in"), [(0xFFF, False), (0x1000, True), (0x1FFF, True), (0x2000, False)])
def test_which_segment_a_mapping_is_of(offset: int, is_in: bool) -> None:
    """The one that has the byte of the file at which the mapping begins."""
    layout = FileLayout("ET_DYN", [Segment(0x1000, 0x2_1000, 0x1000, 0x1000, 0x1000, True)])
    mapping: Any = SimpleNamespace(start=0x4000_0000, file_offset=offset)
    assert load_distances(mapping, layout) == ([(offset + 0x2_0000 - 0x4000_0000) % (1 << 64)] if is_in else [])
