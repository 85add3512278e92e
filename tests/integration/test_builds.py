"""Several builds of one name, and profiles without build ids: the evidence chooses, in any order of the folders."""

import io
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import symbolize
from symbolize import Reason, Symbolizer
from symbolize.binaries import BinaryIndex, BinaryMatch
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage, identify
from symbolize.formats import encode
from symbolize.report.text import render
from symbolize.resolve.opened import MAX_UNUSED, OpenBinaries
from symbolize.symbols import is_same_build
from symbolize.symbols.builds import same_code
from tests.support.elf_writer import (
    AARCH64,
    ALLOC,
    EXEC,
    NOBITS,
    NOTE,
    PROGBITS,
    RISCV,
    X86_64,
    Section,
    Segment,
    Symbol,
    build_id_note,
    elf_file,
    text,
)
from tests.support.fixture_files import BINARIES, FIXTURES, GPERFTOOLS, variant
from tests.support.pprof_writer import Mapping, Place, profile

VARIANTS = (
    "gcc-pie",
    "clang-pie",
    "gcc-split",
    "gcc-nopie-dwarf4",
    "clang-nopie-dwarf4-lld",
    "gcc-gz-zlib",
    "clang-gz-zstd",
    "gcc-gc-sections",
)
LEDGER = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
BASE = 0x5000_0000_0000
KERNEL = 0xFFFF_FFFF_8100_0000
OURS = ("/ledger", "/spectra", "/libresonance.so")


@cache
def encoded(recording: Path, *folders: Path) -> bytes:
    """A symbolized recording as it is written."""
    with Symbolizer(folders) as symbolizer:
        return encode(symbolizer.symbolize(symbolize.load(recording)).profile)


def report(recording: Path | bytes, *folders: Path) -> symbolize.Report:
    """The report on a recording."""
    source = io.BytesIO(recording) if isinstance(recording, bytes) else recording
    with Symbolizer(folders) as symbolizer:
        return symbolizer.symbolize(symbolize.load(source)).report


def row(found: symbolize.Report, name: str) -> Any:
    """What the report says of the mapping of a file."""
    return next(each for each in found.mappings if each.name.endswith(name))


class TestRecordings:
    """Recordings of gperftools, which have no build ids, with folders of several builds."""

    @pytest.mark.parametrize("recording", GPERFTOOLS, ids=lambda path: path.stem)
    @pytest.mark.full
    def test_any_two_folders(self, recording: Path) -> None:
        """Beside the folder of the right build any other one changes nothing, before it or behind it (rule R247)."""
        right = BINARIES / variant(recording)
        alone = encoded(recording, right)
        for other in VARIANTS:
            if other != right.name:
                assert encoded(recording, right, BINARIES / other) == alone, other
                assert encoded(recording, BINARIES / other, right) == alone, other

    @pytest.mark.parametrize("recording", GPERFTOOLS, ids=lambda path: path.stem)
    def test_all_builds_below_one_folder(self, recording: Path) -> None:
        """All builds below one folder give what the right one gives alone (rule R247)."""
        assert encoded(recording, BINARIES) == encoded(recording, BINARIES / variant(recording))

    @pytest.mark.parametrize("folders", list(permutations(["gcc-pie", "clang-pie", "gcc-gc-sections"])), ids="-".join)
    def test_what_was_tried(self, folders: Sequence[str]) -> None:
        """What came of each build is told: the one with the call sites, and why the others are none (rule R247)."""
        ledger = row(report(LEDGER, *(BINARIES / folder for folder in folders)), "/ledger")
        assert ledger.files == [str(BINARIES / "gcc-pie" / "ledger")]
        assert ledger.symbolized_locations == ledger.locations
        tried = dict(ledger.tried)
        assert ledger.verdict is Verdict.SUPPORTED
        text = tried[str(BINARIES / "gcc-pie" / "ledger")]
        assert text.startswith("found, supported: ")
        assert "30 of 30 call sites lie in a call, 27 of 27 calls lead to the next frame" in text
        for other in ("clang-pie", "gcc-gc-sections"):
            text = tried[str(BINARIES / other / "ledger")]
            assert text.startswith("refused: another build: ")
            assert re.search("[1-9]?[0-9] of (29|3[01]) call sites lie in a call", text)

    def test_only_wrong_builds(self) -> None:
        """Where all builds are wrong, nothing is named, and the reason has them (rule R247)."""
        ledger = row(report(LEDGER, BINARIES / "clang-pie", BINARIES / "gcc-split"), "/ledger")
        assert [reason for reason, _, _ in ledger.misses] == [Reason.MISFIT]
        assert "clang-pie/ledger is refused: another build: " in ledger.detail
        assert re.search("[1-9]?[0-9] of [23][0-9] call sites lie in a call", ledger.detail)
        assert "gcc-split" in ledger.detail

    def test_a_fixed_address_is_no_excuse(self) -> None:
        """Call sites that lie in no segment of a file lie in no call of it, so that it is refused (rule R148)."""
        recording = FIXTURES / "profiles" / "gperftools" / "spectra-gcc-pie.prof"
        spectra = row(report(recording, BINARIES / "gcc-nopie-dwarf4"), "/spectra")
        assert spectra.symbolized_locations == 0
        assert [reason for reason, _, _ in spectra.misses] == [Reason.MISFIT]

    def test_one_candidate_is_not_compared(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A single build costs nothing but that it is judged, and one that a build id proves not even that."""
        monkeypatch.setattr("symbolize.evidence.choice.is_same_build", None)
        monkeypatch.setattr("symbolize.resolve.resolver.same_names", None)
        assert row(report(LEDGER, BINARIES / "gcc-pie"), "/ledger").symbolized_locations > 100
        monkeypatch.setattr("symbolize.evidence.judge.Judge.judge", None)
        proved = row(report(FIXTURES / "profiles" / "perf_data" / "ids.data", BINARIES / "gcc-pie"), "/spectra")
        assert (proved.verdict, proved.evidence) == (Verdict.PROVED, "")
        assert proved.symbolized_locations > 10


CALL = 0xE8
SITES = 16


def build(
    functions: Sequence[str], calls: int = SITES, mark: bytes = b"\x90", build_id: str = "", go: str = ""
) -> bytes:
    """A program of functions of 64 bytes, the first `calls` of which call the one before them, at 32 bytes."""
    code = bytearray(mark * (64 * SITES))
    for number in range(calls):
        distance = 64 * max(number - 1, 0) - (64 * number + 37)
        code[64 * number + 32 : 64 * number + 37] = bytes([CALL]) + distance.to_bytes(4, "little", signed=True)
    notes = []
    if build_id:
        notes.append(Section(".note.gnu.build-id", build_id_note(bytes.fromhex(build_id)), NOTE, ALLOC, address=0x200))
    if go:
        raw = b"\x04\0\0\0" + len(go).to_bytes(4, "little") + b"\x04\0\0\0Go\0\0" + go.encode() + bytes(-len(go) % 4)
        notes.append(Section(".note.go.buildid", raw, NOTE, ALLOC, address=0x300))
    symbols = [Symbol(name, 0x1000 + 64 * number, 64) for number, name in enumerate(functions)]
    made = elf_file(
        [Section(".text", bytes(code), flags=ALLOC | EXEC, address=0x1000), *notes],
        [Segment(0, 0x400, 4, 0), Segment(0x1000, len(code), 5, 0x2000)],
        symbols,
    )
    return made.ljust(0x2000, b"\0") + bytes(code)


NAMES = [f"f{number}" for number in range(SITES)]
OTHERS = [f"g{number}" for number in range(SITES)]


def recorded(sites: int, name: str = "/opt/bin/tool") -> bytes:
    """A profile of a leaf and callers at the places of the calls."""
    mapping = Mapping(BASE + 0x1000, BASE + 0x2000, 0x2000, name)
    stack = [Place(BASE + 0x1000 + 64 * number + 36, 1) for number in range(sites)]
    return profile([mapping], [([Place(BASE + 0x1001, 1), *stack], [1])])


def laid(folder: Path, **files: bytes) -> list[Path]:
    """A folder for each file, in which it is `tool`."""
    for name, data in files.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "tool").write_bytes(data)
    return [folder / name for name in files]


class TestEvidence:
    """What decides between builds, and what does not."""

    @pytest.mark.parametrize("is_first", [True, False])
    def test_more_call_sites(self, tmp_path: Path, is_first: bool) -> None:
        """Of builds that nothing refutes the one with clearly fewer contradictions is taken (rule R247)."""
        roots = laid(tmp_path, right=build(NAMES), near=build(OTHERS, SITES - 2, b"\xcc"))
        tool = row(report(recorded(SITES), *(roots if is_first else roots[::-1])), "tool")
        assert tool.files == [str(tmp_path / "right" / "tool")]

    @pytest.mark.parametrize("is_first", [True, False])
    @pytest.mark.parametrize(("sites", "lost"), [(SITES, 1), (0, 0), (1, SITES), (4, 0)])
    def test_too_little_to_tell(self, tmp_path: Path, sites: int, lost: int, is_first: bool) -> None:
        """Builds that call sites do not tell apart are ambiguous, in any order, with the reason (rule R247)."""
        roots = laid(tmp_path, one=build(NAMES), two=build(OTHERS, SITES - lost, b"\xcc"))
        tool = row(report(recorded(sites), *(roots if is_first else roots[::-1])), "tool")
        assert tool.symbolized_locations == 0
        assert [reason for reason, _, _ in tool.misses] == [Reason.AMBIGUOUS]
        assert str(tmp_path / "one" / "tool") in tool.detail
        assert str(tmp_path / "two" / "tool") in tool.detail
        if lost:
            assert f": {sites} of {sites} call sites lie in a call" in tool.detail
            assert f": {sites - min(lost, sites)} of {sites} call sites lie in a call" in tool.detail
            return
        words = f"each: {sites} of {sites} call sites lie in a call" if sites else "each: not checked: neither exact"
        assert words in tool.detail

    @pytest.mark.parametrize("is_first", [True, False])
    @pytest.mark.parametrize("sites", [2, 3, 4, 5, 7])
    def test_few_call_sites(self, tmp_path: Path, sites: int, is_first: bool) -> None:
        """Two call sites are enough to choose the build that they support, and four to refuse one that has none in its
        calls (R148, R247)."""
        roots = laid(tmp_path, right=build(NAMES), wrong=build(OTHERS, 0))
        found = report(recorded(sites), *(roots if is_first else roots[::-1]))
        assert row(found, "tool").files == [str(tmp_path / "right" / "tool")]
        assert row(found, "tool").verdict is Verdict.SUPPORTED
        tool = row(report(recorded(sites), tmp_path / "wrong"), "tool")
        text = f"0 of {sites} call sites lie in a call"
        if sites < 4:
            assert (tool.symbolized_locations, tool.verdict, tool.evidence) == (sites + 1, Verdict.UNVERIFIED, text)
        else:
            assert [reason for reason, _, _ in tool.misses] == [Reason.MISFIT]
            assert f"is refused: another build: {text}" in tool.detail

    @pytest.mark.parametrize(
        ("sites", "verdict", "evidence"),
        [
            (0, "unverified", "not checked: neither exact addresses of instructions nor call sites"),
            (1, "unverified", "1 of 1 call sites lie in a call, 1 of 1 calls lead to the next frame"),
            (8, "supported", "8 of 8 call sites lie in a call, 8 of 8 calls lead to the next frame"),
        ],
    )
    def test_how_strong_the_evidence_is(self, tmp_path: Path, sites: int, verdict: str, evidence: str) -> None:
        """The report says what was counted for a build, and what that makes of it (rule R148)."""
        found = report(recorded(sites), *laid(tmp_path, right=build(NAMES)))
        tool = row(found, "tool")
        assert tool.symbolized_locations == sites + 1
        assert (tool.verdict.text, tool.evidence) == (verdict, evidence)
        assert f"({verdict}: {evidence})" in render(found, width=200)

    def test_what_cannot_be_checked(self, tmp_path: Path) -> None:
        """Of a file without code, and of a processor whose calls are not known, nothing is checked, which is said."""
        code, segment = bytes(0x400), Segment(0x1000, 0x400, 5, 0x1000)
        symbols = [Symbol("f", 0x1000, 0x400)]
        sections = [Section(".text", code, flags=ALLOC | EXEC, address=0x1000)]
        riscv = elf_file(sections, [segment], symbols, machine=RISCV).ljust(0x1000, b"\0") + code
        sections = [Section(".text", b"", NOBITS, ALLOC | EXEC, 0x1000, 0x400)]
        debug = elf_file(sections, [segment], symbols)
        for data, why in ((riscv, "what was sampled says nothing of its code"), (debug, "no file with the code")):
            mapping = Mapping(BASE + 0x1000, BASE + 0x2000, 0x1000, "/opt/bin/tool")
            stack = [Place(BASE + 0x1000 + offset, 1) for offset in (1, 40, 80)]
            found = report(profile([mapping], [(stack, [1])]), *laid(tmp_path, x=data))
            assert row(found, "tool").evidence == f"not checked: {why}"

    def test_where_the_kernel_was_entered(self, tmp_path: Path) -> None:
        """A frame below the kernel was at any instruction, which refutes no binary (rule R148)."""
        mappings = [
            Mapping(BASE + 0x1000, BASE + 0x2000, 0x2000, "/opt/bin/tool"),
            Mapping(KERNEL, KERNEL + 0x1000, 0, "[kernel.kallsyms]"),
        ]
        stacks = [
            ([Place(KERNEL + 0x10, 2), Place(KERNEL + 0x20, 2), Place(BASE + 0x1000 + 64 * number, 1)], [1])
            for number in range(SITES)
        ]
        tool = row(report(profile(mappings, stacks), *laid(tmp_path, right=build(NAMES))), "tool")
        assert tool.symbolized_locations == SITES
        assert tool.evidence == "not checked: neither exact addresses of instructions nor call sites"

    def test_the_recorded_path(self, tmp_path: Path) -> None:
        """Where call sites do not tell, the full path comes before a base name; where they do, it does not (R247)."""
        path = tmp_path / "sysroot" / "opt" / "bin"
        path.mkdir(parents=True)
        (path / "tool").write_bytes(build(NAMES))
        for calls, expected in ((SITES, path), (0, tmp_path / "x")):
            (path / "tool").write_bytes(build(NAMES, calls))
            roots = [*laid(tmp_path, x=build(OTHERS, SITES, b"\xcc")), tmp_path / "sysroot"]
            for order in (roots, roots[::-1]):
                assert row(report(recorded(SITES), *order), "tool").files == [str(expected / "tool")]

    @pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
    def test_the_same_code(self, tmp_path: Path, order: Sequence[int]) -> None:
        """Files with the same code are one build, and the one with most names answers (rule R249)."""
        roots = laid(tmp_path, a=build([]), b=build(NAMES), c=build([], build_id="ab" * 20))
        tool = row(report(recorded(0), *(roots[number] for number in order)), "tool")
        assert tool.symbolized_locations == 1

    @pytest.mark.parametrize("is_first", [True, False])
    def test_go_build_ids(self, tmp_path: Path, is_first: bool) -> None:
        """Files with one build id of Go's linker are one binary, as those with one GNU build id are (rule R250)."""
        roots = laid(tmp_path, stripped=build([], go="a/b/c/d"), whole=build(NAMES, go="a/b/c/d"))
        ident = identify(str(tmp_path / "whole" / "tool"))
        assert ident is not None
        assert (ident.go_build_id, ident.build_id) == ("a/b/c/d", "")
        tool = row(report(recorded(0), *(roots if is_first else roots[::-1])), "tool")
        assert sorted(tool.files) == [str(tmp_path / "stripped" / "tool"), str(tmp_path / "whole" / "tool")]
        assert tool.symbolized_locations == 1

    def test_a_refused_build_and_a_debug_file(self, tmp_path: Path) -> None:
        """Where the file of the name is another build, a debug file of the name may be of the right one."""
        laid(tmp_path, wrong=build(OTHERS, 0))
        shutil.copy(tmp_path / "wrong" / "tool", tmp_path / "wrong" / "tool.dbg")
        (tmp_path / "right").mkdir()
        (tmp_path / "right" / "tool.debug").write_bytes(build(NAMES))
        tool = row(report(recorded(SITES), tmp_path / "wrong", tmp_path / "right"), "tool")
        assert tool.files == [str(tmp_path / "right" / "tool.debug")]

    @pytest.mark.parametrize("is_first", [True, False])
    def test_path_and_name(self, tmp_path: Path, is_first: bool) -> None:
        """A build of which one file has the full path, and another one the name, counts by the path (rule R247)."""
        path = tmp_path / "sysroot" / "opt" / "bin"
        path.mkdir(parents=True)
        (path / "tool").write_bytes(build(NAMES, build_id="ab" * 20))
        copy, other = build(NAMES, build_id="ab" * 20), build(OTHERS, SITES, b"\xcc", build_id="ab" * 20)
        roots = [tmp_path / "sysroot", *laid(tmp_path, copy=copy, other=other)]
        tool = row(report(recorded(0), *(roots if is_first else roots[::-1])), "tool")
        assert sorted(tool.files) == [str(tmp_path / "copy" / "tool"), str(path / "tool")]

    def test_what_servers_have_of_the_chosen_build(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A build that was chosen stays so when servers have more of its build id, which another build has too."""
        lesser = build(OTHERS, SITES - 2, b"\xcc", build_id="ab" * 20)
        right = build(NAMES, build_id="ab" * 20)
        roots = laid(tmp_path, a=lesser, b=right, c=build([], 0, b"\xf4", build_id="cd" * 20))
        (fetched,) = laid(tmp_path, fetched=right)

        def fetch_missing(_: Any, match: BinaryMatch) -> BinaryMatch:
            return replace(match, paths=[*match.paths, str(fetched / "tool")])

        monkeypatch.setattr("symbolize.resolve.resolver.fetch_missing", fetch_missing)
        tool = row(report(recorded(SITES), *roots), "tool")
        assert sorted(tool.files) == [str(tmp_path / "b" / "tool"), str(fetched / "tool")]

    def test_open_files_are_bounded(self, tmp_path: Path) -> None:
        """Of many builds some are looked into, which is said, and rejected ones are closed again."""
        roots = laid(tmp_path, **{f"{number:02d}": build(OTHERS, 0, bytes([number])) for number in range(40)})
        source = profile(
            [Mapping(BASE + 0x1000 * n, BASE + 0x1000 * (n + 1), 0x2000, f"/opt/{n}/tool") for n in range(1, 9)],
            [([Place(BASE + 0x1000 * n + 1, n)], [1]) for n in range(1, 9)],
        )
        with Symbolizer(roots) as symbolizer:
            found = symbolizer.symbolize(symbolize.load(io.BytesIO(source))).report
            assert symbolizer.open_binaries <= 64
        assert "more builds, which are not looked into" in str(found.mappings[0].tried)


class TestUnreadable:
    """Files that cannot be read."""

    def test_without_the_right_to(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file of the name that may not be read is the reason, and not that there is none."""
        laid(tmp_path, x=build(NAMES))
        opened = os.open

        def refuse(path: Any, *arguments: Any, **more: Any) -> int:
            if str(path).endswith("tool"):
                raise PermissionError(13, "Permission denied", path)
            return opened(path, *arguments, **more)

        monkeypatch.setattr(os, "open", refuse)
        tool = row(report(recorded(0), tmp_path), "tool")
        assert [reason for reason, _, _ in tool.misses] == [Reason.UNREADABLE]
        assert tool.detail == f"{tmp_path / 'x' / 'tool'}: Permission denied"

    def test_damaged(self, tmp_path: Path) -> None:
        """So is a damaged one, also where the index remembers it; another build of the name is still looked at."""
        laid(tmp_path, x=b"\x7fELF\x02\x01\x01")
        cache = symbolize.TableCache(tmp_path / "cache")
        for _ in range(2):
            with Symbolizer([tmp_path / "x"], cache=cache) as symbolizer:
                found = symbolizer.symbolize(symbolize.load(io.BytesIO(recorded(0)))).report
            tool = row(found, "tool")
            assert [reason for reason, _, _ in tool.misses] == [Reason.UNREADABLE]
            assert "ELF header is cut off" in tool.detail
        laid(tmp_path, y=build(NAMES))
        tool = row(report(recorded(0), tmp_path), "tool")
        assert tool.symbolized_locations == 1
        assert (
            str(tmp_path / "x" / "tool"),
            "cannot be used: ELF header is cut off or of an unknown class",
        ) in tool.tried


@pytest.mark.parametrize("headers", [True, False])
@pytest.mark.parametrize("is_cut", [True, False])
def test_code_that_no_section_holds(headers: bool, is_cut: bool) -> None:
    """Where sections do not have the code the segments are compared; files that are cut off before it are not of one
    build (rule R249)."""
    images = []
    for mark in (b"\x90", b"\xcc", b"\x90"):
        made = elf_file([Section(".comment", b"x")], [Segment(0x1000, 64, 5, 0x1000)], section_headers=headers)
        data = made if is_cut else made.ljust(0x1000, b"\0") + 64 * mark
        images.append(ElfImage.parse(memoryview(data), "x"))
    assert all(image.has_code for image in images)
    assert not is_same_build(images[:1], images[1:2])
    assert is_same_build(images[:1], images[2:]) == (not is_cut)


def test_what_stays_open(tmp_path: Path) -> None:
    """Binaries that answer stay open; of those that were only looked at the last few do."""
    index = BinaryIndex([str(tmp_path)])
    opened = OpenBinaries(index, None)
    files = []
    for number in range(MAX_UNUSED + 4):
        path = tmp_path / str(number)
        path.write_bytes(build(NAMES, build_id=f"{number + 1:04x}"))
        files.append(BinaryMatch([str(path)], f"{number + 1:04x}"))
    binaries = [opened.open(found).binaries[0] for found in files]
    opened.use(files[1])
    assert opened.open(files[0]).binaries[0] is binaries[0]  # which makes it the last one
    opened.close_unused()
    assert len(opened) == MAX_UNUSED + 1
    assert [opened.open(files[number]).binaries[0] is binaries[number] for number in (0, 1, 2, 3, 4, 5)] == [
        True, True, False, False, False, True,
    ]  # fmt: skip
    assert opened.files_of(binaries[1]) == [(str(tmp_path / "1"), "0002")]
    assert opened.files_of(binaries[2]) is None
    with pytest.raises(ValueError, match="released"):
        bytes(binaries[2].images[0].data[:4])
    assert bytes(binaries[1].images[0].data[:4]) == b"\x7fELF"
    assert opened.with_file(str(tmp_path / "1"), files[1]) is binaries[1]
    assert opened.with_file(str(tmp_path / "2"), files[1]) is None
    opened.close()
    assert len(opened) == 0


def code_file(
    *parts: tuple[int, bytes], machine: int = X86_64, has_sections: bool = True, has_code: bool = True
) -> ElfImage:
    """A file with pieces of code, vaddr and bytes of each, as sections or as segments alone."""
    kind = PROGBITS if has_code else NOBITS
    sections = [
        Section(f".text{place}", code if has_code else b"", kind, ALLOC | EXEC, address, len(code))
        for place, (address, code) in enumerate(parts)
    ]
    segments = [Segment(address, len(code), 5, PAGE * (1 + place)) for place, (address, code) in enumerate(parts)]
    data = elf_file(sections if has_sections else [Section(".comment", b"x")], segments, machine=machine)
    for _, code in parts:
        data = data.ljust(-(-len(data) // PAGE) * PAGE, b"\0") + (code if has_code else b"")
    return ElfImage.parse(memoryview(data), "x")


PAGE = 0x1000
PARTS = [(0x1000, b"\x90" * 64), (0x3000, b"\xcc" * 32)]
OTHER_CODE: dict[str, dict[str, Any]] = {
    "other bytes": {"parts": [PARTS[0], (0x3000, b"\xcc" * 31 + b"\xcd")]},
    "of another size": {"parts": [PARTS[0], (0x3000, b"\xcc" * 31)]},
    "fewer pieces": {"parts": PARTS[:1]},
    "two distances": {"parts": [PARTS[0], (0x4000, PARTS[1][1])]},
    "another processor": {"parts": PARTS, "machine": AARCH64},
}


@pytest.mark.parametrize("has_sections", [True, False])
@pytest.mark.parametrize("other", OTHER_CODE)
def test_other_code(other: str, has_sections: bool) -> None:
    """Files have the same code if all pieces have the same bytes and are at one distance (rule R249)."""
    changes = dict(OTHER_CODE[other])
    file = code_file(*PARTS, has_sections=has_sections)
    wrong = code_file(*changes.pop("parts"), has_sections=has_sections, **changes)
    moved = code_file(*((address + 0x5000, code) for address, code in PARTS), has_sections=has_sections)
    for one, two, expected in ((file, moved, True), (moved, file, True), (file, wrong, False), (wrong, file, False)):
        assert same_code(one, two) == expected
        assert is_same_build([one], [two]) == expected


@pytest.mark.parametrize("changed", [False, True])
def test_code_that_one_file_has_no_sections_for(changed: bool) -> None:
    """Where one of two files has lost its sections, what the sections of the other have is compared (rule R249)."""
    whole = code_file(*PARTS)
    bare = code_file(PARTS[0], (0x3000, b"\xcc" * 31 + b"\xcd") if changed else PARTS[1], has_sections=False)
    assert same_code(whole, bare) == same_code(bare, whole) == (not changed)
    larger = code_file(PARTS[0], (0x3000, PARTS[1][1] + b"\x90"), has_sections=False)
    headed = code_file((0x1000 - 64, bytes(64) + PARTS[0][1]), PARTS[1], has_sections=False)
    for file in (larger, headed):
        assert same_code(whole, file)
        assert same_code(file, whole)
    cut = code_file(PARTS[0], (0x3000, PARTS[1][1][:-1]), has_sections=False)
    assert not same_code(whole, cut)
    assert not same_code(cut, whole)


def test_debug_files_of_one_build() -> None:
    """Of two debug files all bytes are compared; one with code and one without are not known to be one (rule R249)."""
    debug, copy, code = (code_file(*PARTS, has_code=kind) for kind in (False, False, True))
    assert not debug.has_code
    assert is_same_build([debug], [copy])
    assert not is_same_build([debug], [code])
    assert not is_same_build([code], [debug])
    assert is_same_build([debug, code], [code, copy])
    longer = ElfImage.parse(memoryview(bytes(debug.data) + b"x"), "x")
    other = ElfImage.parse(memoryview(bytes(debug.data[:-1]) + b"x"), "x")
    assert not is_same_build([debug], [longer])
    assert not is_same_build([debug], [other])


def test_fixtures_are_what_they_seem() -> None:
    """The programs made here have code at the place of the segment, as linkers write it."""
    image = ElfImage.parse(memoryview(build(NAMES)), "x")
    assert image.has_code
    assert image.data[0x2000 + 32] == CALL


@pytest.mark.parametrize("is_named", [False, True])
def test_how_builds_of_one_id_were_found(tmp_path: Path, is_named: bool) -> None:
    """A build with code was found as its mapping was, whether it has a debug file or not; without code it is last."""
    index = BinaryIndex([str(tmp_path)])
    opened = OpenBinaries(index, None)
    note = Section(".note.gnu.build-id", build_id_note(b"\1" * 20), NOTE)
    code = [
        elf_file([note, Section(".text", byte, flags=ALLOC | EXEC, address=0x1000)], symbols=[Symbol(name, 0x1000, 64)])
        for byte, name in ((b"\x90" * 64, "f"), (b"\xcc" * 64, "g"))
    ]
    debug = elf_file([note, text(0x1000, 64)], symbols=[Symbol("f", 0x1000, 64), Symbol("f2", 0x1000, 64)])
    other = elf_file([note, text(0x9000, 64)], symbols=[Symbol("h", 0x9000, 64)])
    paths = [str(tmp_path / name) for name in ("a", "b", "a.debug", "z.debug")]
    for path, data in zip(paths, (*code, debug, other), strict=True):
        Path(path).write_bytes(data)
    match = BinaryMatch(paths, "01" * 20, named={paths[0]: "path"} if is_named else {})
    found, unreadable = opened.candidates("build id", match)
    assert unreadable == []
    assert [(each.how, len(each.binary.files)) for each in found] == [
        ("path" if is_named else "build id", 2), ("build id", 1), ("debug file", 1),
    ]  # fmt: skip
    opened.close()
