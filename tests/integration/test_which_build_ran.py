"""Whole runs that ask which build ran, without build ids or with ones that were read later (R148, R247, R372)."""

import gc
import io
import struct
import zipfile
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symbolize
from symbolize import Profile, Reason, Symbolizer
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage, read_build_id, read_symbols
from symbolize.profile import IdOrigin, LeafKind, StackSource
from tests.support.breakpad_writer import symbols_of
from tests.support.elf_writer import AARCH64
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.made_builds import BASE, BEGIN, NAMES, OFFSET, SIZE, TOOL, leaf, of_tool, program, site
from tests.support.pprof_writer import Mapping, Place, profile

RECORDING = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
RIGHT, WRONG, OTHER = (BINARIES / name for name in ("gcc-pie", "clang-pie", "gcc-gc-sections"))


def recorded(path: Path = RECORDING, *, only_leaves: bool = False) -> Profile:
    """A recording of a program without build ids, whose leaves are exact."""
    made = symbolize.load(path)
    made.leaf_kinds = np.full(len(made.sample_types), LeafKind.EXACT, np.uint8)
    if only_leaves:
        first = made.samples.location_offsets[:-1]
        offsets = np.arange(len(first) + 1, dtype=made.samples.location_offsets.dtype)
        made.samples = replace(made.samples, locations=made.samples.locations[first], location_offsets=offsets)
    return made


def with_id(made: Profile, name: str, build_id: str, origin: IdOrigin) -> Profile:
    """The profile with a build id for the mappings of a file."""
    rows = [made.strings.text(each).endswith(name) for each in made.mappings.filename.tolist()]
    ids = np.where(rows, made.strings.add(build_id.encode()), made.mappings.build_id)
    made.mappings = replace(made.mappings, build_id=ids.astype(made.mappings.build_id.dtype))
    made.id_origins = np.where(rows, np.uint8(origin), np.uint8(0)).astype(np.uint8)
    return made


def rows_of(made: Profile, name: str, *folders: Path) -> list[Any]:
    """What the report says of the mappings of a file."""
    with Symbolizer(folders) as symbolizer:
        found = symbolizer.symbolize(made).report
    return [each for each in found.mappings if each.name.endswith(name)]


def row_of(made: Profile, name: str, *folders: Path) -> Any:
    """What the report says of a file that is mapped once."""
    (found,) = rows_of(made, name, *folders)
    return found


def laid(folder: Path, **files: bytes) -> list[Path]:
    """A folder for each file, in which it is `tool`."""
    for name, data in files.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "tool").write_bytes(data)
    return [folder / name for name in files]


def is_refused(row: Any) -> bool:
    """Whether nothing is named because what there is did not run."""
    return (row.files, [reason for reason, _, _ in row.misses]) == ([], [Reason.MISFIT])


class TestLeavesAlone:
    """Profiles without callers."""

    def test_the_right_build(self) -> None:
        """It is supported, whatever other builds there are."""
        for folders in ([RIGHT], *permutations([RIGHT, WRONG, OTHER])):
            row = row_of(recorded(only_leaves=True), "/ledger", *folders)
            assert row.files == [str(RIGHT / "ledger")]
            assert row.symbolized_locations == row.locations > 100
            assert row.verdict is Verdict.SUPPORTED
            count = row.evidence.split()[0]
            assert row.evidence == f"{count} of {count} sampled addresses begin an instruction"

    @pytest.mark.parametrize("folder", [WRONG, OTHER], ids=lambda each: each.name)
    def test_another_build(self, folder: Path) -> None:
        """It is refused where it is alone, and names nothing."""
        row = row_of(recorded(only_leaves=True), "/ledger", folder)
        assert is_refused(row)
        assert row.symbolized_locations == 0
        assert f"{folder / 'ledger'} is refused: another build: " in row.detail
        assert "sampled addresses begin an instruction" in row.detail

    def test_leaves_that_are_call_sites(self) -> None:
        """Those of a heap profile, or of which nothing is known, say nothing of instructions."""
        for kind in (LeafKind.CALL_SITE, LeafKind.UNKNOWN):
            made = recorded(only_leaves=True)
            made.leaf_kinds[:] = kind
            row = row_of(made, "/ledger", WRONG)
            assert (row.files, row.verdict) == ([str(WRONG / "ledger")], Verdict.UNVERIFIED)
            assert row.evidence == "not checked: neither exact addresses of instructions nor call sites"


class TestSameNames:
    """Builds that name everything that was sampled alike."""

    def test_a_function_at_the_end(self, tmp_path: Path) -> None:
        """One function more behind all others changes no name: one of the builds answers, and is as sure as alone."""
        folders = laid(tmp_path, new=program([*NAMES, "added"], mark=0x22), old=program())
        for order in permutations(folders):
            for leaves, verdict in ((64, Verdict.SUPPORTED), (3, Verdict.UNVERIFIED)):
                row = row_of(of_tool([*map(leaf, range(leaves))]), "/tool", *order)
                assert (len(row.files), row.verdict) == (1, verdict)
                assert row.symbolized_locations == row.locations == leaves

    def test_other_names(self, tmp_path: Path) -> None:
        """Where one function that was sampled is called otherwise, nothing tells which of them ran."""
        folders = laid(tmp_path, one=program(), two=program([*NAMES[:60], *"abcd"], mark=0x22))
        for order in permutations(folders):
            assert row_of(of_tool([*map(leaf, range(60))]), "/tool", *order).symbolized_locations == 60
            row = row_of(of_tool([*map(leaf, range(61))]), "/tool", *order)
            assert [reason for reason, _, _ in row.misses] == [Reason.AMBIGUOUS]
            assert "; each: 61 of 61 sampled addresses begin an instruction" in row.detail


class TestIdsThatWereReadLater:
    """Build ids that a recorder took from the files when it had ended."""

    def test_that_of_another_file(self) -> None:
        """The file with the id is refused, and the one that ran is found by its name, which is told."""
        wrong_id = read_build_id(str(WRONG / "ledger")) or ""
        for folders in permutations([RIGHT, WRONG]):
            made = with_id(recorded(), "/ledger", wrong_id, IdOrigin.READ_LATER)
            row = row_of(made, "/ledger", *folders)
            assert (row.files, row.verdict) == ([str(RIGHT / "ledger")], Verdict.SUPPORTED)
            assert row.evidence.startswith("the recorded build id, read later, is that of another file; ")
            assert any(place == str(WRONG / "ledger") and "refused: another build" in said for place, said in row.tried)

    def test_only_the_file_with_the_id(self) -> None:
        """Alone it is refused all the same."""
        wrong_id = read_build_id(str(WRONG / "ledger")) or ""
        assert is_refused(row_of(with_id(recorded(), "/ledger", wrong_id, IdOrigin.READ_LATER), "/ledger", WRONG))

    def test_only_the_file_that_ran(self) -> None:
        """It is used though the id is that of a file that is nowhere."""
        made = with_id(recorded(), "/ledger", "ab" * 20, IdOrigin.READ_LATER)
        row = row_of(made, "/ledger", RIGHT)
        assert (row.files, row.verdict) == ([str(RIGHT / "ledger")], Verdict.SUPPORTED)
        assert "is that of another file" in row.evidence

    def test_the_right_id(self) -> None:
        """It proves nothing; what was sampled supports the file."""
        right_id = read_build_id(str(RIGHT / "ledger")) or ""
        row = row_of(with_id(recorded(), "/ledger", right_id, IdOrigin.READ_LATER), "/ledger", RIGHT, WRONG)
        assert (row.files, row.verdict) == ([str(RIGHT / "ledger")], Verdict.SUPPORTED)
        assert "another file" not in row.evidence

    @pytest.mark.parametrize("origin", [IdOrigin.RECORDED, IdOrigin.UNKNOWN])
    def test_ids_that_were_recorded(self, origin: IdOrigin) -> None:
        """They prove, and no other file is looked for."""
        made = with_id(recorded(), "/ledger", read_build_id(str(RIGHT / "ledger")) or "", origin)
        row = row_of(made, "/ledger", RIGHT, WRONG)
        assert (row.files, row.verdict) == ([str(RIGHT / "ledger")], Verdict.PROVED)
        row = row_of(with_id(recorded(), "/ledger", "ab" * 20, origin), "/ledger", RIGHT)
        assert (row.files, [reason for reason, _, _ in row.misses]) == ([], [Reason.BUILD_ID_DIFFERS])

    @pytest.mark.parametrize(
        ("leaves", "with_its_id", "with_another"),
        [(0, Verdict.UNVERIFIED, None), (2, Verdict.SUPPORTED, None), (13, Verdict.SUPPORTED, None),
         (14, Verdict.SUPPORTED, Verdict.SUPPORTED)],
    )  # fmt: skip
    def test_how_much_has_to_speak_for_a_file(
        self, leaves: int, with_its_id: Verdict, with_another: Verdict | None, tmp_path: Path
    ) -> None:
        """With the id two sampled instructions are enough, against it fourteen."""
        (folder,) = laid(tmp_path, one=program(build_id="ab" * 20))
        for build_id, expected in (("ab" * 20, with_its_id), ("cd" * 20, with_another)):
            made = of_tool([*map(leaf, range(leaves))], [] if leaves else [[BEGIN + SIZE - 1]], build_id=build_id)
            row = row_of(with_id(made, "/tool", build_id, IdOrigin.READ_LATER), "/tool", folder)
            assert (row.verdict if row.files else None) == expected


def test_frames_that_a_walk_invented() -> None:
    """The build that ran stays although the stacks go on through no file and into tables of virtual functions."""
    made = recorded(only_leaves=True)
    names = [made.strings.text(each) for each in made.mappings.filename.tolist()]
    (ledger,) = (number for number, name in enumerate(names) if name.endswith("/ledger"))
    rows = np.unique(made.samples.locations)
    leaves = made.locations.address[rows[made.locations.mapping[rows] == ledger]].tolist()[:40]
    start, limit, offset = (
        int(each[ledger]) for each in (made.mappings.start, made.mappings.limit, made.mappings.file_offset)
    )
    with ElfImage.open(str(RIGHT / "ledger")) as image:
        code = next(each for each in image.segments if each.executable)
        assert code.vaddr == code.file_offset
        symbols = read_symbols(image, ".symtab")
    assert symbols is not None
    entries = [
        start - offset + each for each in sorted({*symbols.vaddr[symbols.size > 0].tolist()}) if each > code.vaddr
    ]
    stacks = [[each, 0x99, entry - 1] for each, entry in zip(leaves, entries, strict=False)]
    stacks += [[each, entry - 1] for each, entry in zip(leaves, entries, strict=False)]
    places = [([Place(each, int(each > start)) for each in stack], [1]) for stack in stacks]
    made = symbolize.load(io.BytesIO(profile([Mapping(start, limit, offset, "/opt/bin/ledger")], places)))
    made.leaf_kinds = np.full(1, LeafKind.EXACT, np.uint8)
    row = row_of(made, "/ledger", RIGHT)
    assert (row.files, row.verdict) == ([str(RIGHT / "ledger")], Verdict.SUPPORTED)
    assert row.evidence == f"{len(leaves)} of {len(leaves)} sampled addresses begin an instruction"
    assert is_refused(row_of(made, "/ledger", WRONG))


class TestAArch64:
    """A processor whose instructions all have one length."""

    @staticmethod
    def stacks() -> list[list[int]]:
        """Direct calls of a program, each as a leaf in the function that is called, and the call."""
        with ElfImage.open(str(BINARIES / "aarch64" / "ledger")) as image:
            symbols = read_symbols(image, ".symtab")
            text = image.find(".text")
            assert symbols is not None and text is not None
            words = struct.unpack_from(f"<{text.size // 4}I", image.data, text.file_offset)
        begins = set(symbols.vaddr.tolist())
        found = []
        for number, word in enumerate(words):
            target = text.vaddr + 4 * number + ((word & 0x3FFFFFF) << 2) - ((word & 0x2000000) << 3)
            if word >> 26 == 0x25 and target in begins:
                found.append([target + 4, text.vaddr + 4 * number + 3])
        return found[::4]

    def recorded(self, count: int) -> Profile:
        """A profile of some of these calls."""
        with ElfImage.open(str(BINARIES / "aarch64" / "ledger")) as image:
            code = next(each for each in image.segments if each.executable)
        base, page = BASE + code.vaddr - code.file_offset, code.file_offset & ~0xFFF
        mapping = Mapping(base + page, base + (code.file_offset + code.file_size + 0xFFF & ~0xFFF), page, "/opt/ledger")
        stacks = [([Place(BASE + each, 1) for each in stack], [1]) for stack in self.stacks()[:count]]
        made = symbolize.load(io.BytesIO(profile([mapping], stacks)))
        made.leaf_kinds = np.full(1, LeafKind.EXACT, np.uint8)
        return made

    def test_the_right_build(self) -> None:
        """Call sites and where the calls lead support it."""
        row = row_of(self.recorded(12), "/ledger", BINARIES / "aarch64")
        assert row.verdict is Verdict.SUPPORTED
        assert "12 of 12 call sites lie in a call, 12 of 12 calls lead to the next frame" in row.evidence

    def test_one_instruction_more(self, tmp_path: Path) -> None:
        """Call sites refute another build; that all leaves are in functions does not help it."""
        data = bytearray((BINARIES / "aarch64" / "ledger").read_bytes())
        with ElfImage.open(str(BINARIES / "aarch64" / "ledger")) as image:
            text = image.find(".text")
        assert text is not None
        begin, end = text.file_offset, text.file_offset + text.size
        data[begin + 4 : end] = data[begin : end - 4]
        (tmp_path / "ledger").write_bytes(data)
        row = row_of(self.recorded(12), "/ledger", tmp_path)
        assert is_refused(row)
        assert "12 of 12 sampled addresses are in functions, 2 of 12 call sites lie in a call" in row.detail
        both = row_of(self.recorded(12), "/ledger", tmp_path, BINARIES / "aarch64")
        assert both.files == [str(BINARIES / "aarch64" / "ledger")]

    def test_where_calls_lead(self, tmp_path: Path) -> None:
        """Calls that lead elsewhere speak against a build whose call sites are where they were."""
        data = bytearray((BINARIES / "aarch64" / "ledger").read_bytes())
        with ElfImage.open(str(BINARIES / "aarch64" / "ledger")) as image:
            text = image.find(".text")
        assert text is not None
        for at in range(text.file_offset, text.file_offset + text.size, 4):
            (word,) = struct.unpack_from("<I", data, at)
            if word >> 26 == 0x25:
                target = at + ((word & 0x3FFFFFF) << 2) - ((word & 0x2000000) << 3)
                moved = text.file_offset + (target - text.file_offset + text.size // 2) % text.size
                struct.pack_into("<I", data, at, 0x25 << 26 | (moved - at >> 2) & 0x3FFFFFF)
        (tmp_path / "ledger").write_bytes(data)
        row = row_of(self.recorded(12), "/ledger", tmp_path)
        assert row.verdict is Verdict.UNVERIFIED
        assert "12 of 12 call sites lie in a call, 0 of 11 calls lead to the next frame" in row.evidence
        sound = self.recorded(12)
        sound.stack_source = StackSource.OWN_UNWINDING
        assert is_refused(row_of(sound, "/ledger", tmp_path))

    def test_leaves_alone(self, tmp_path: Path) -> None:
        """They refute nothing, and support nothing however many they are."""
        folders = laid(tmp_path, one=program(machine=AARCH64))
        every = [BEGIN + SIZE * number + offset for number in range(64) for offset in range(0, SIZE, 4)]
        row = row_of(of_tool(every), "/tool", *folders)
        assert (row.symbolized_locations, row.verdict) == (len(every), Verdict.UNVERIFIED)
        assert row.evidence == f"{len(every)} of {len(every)} sampled addresses are in functions"


class TestPaths:
    """Builds of which nothing says which one ran."""

    ONE, TWO = program(), program([f"g{number}" for number in range(64)], mark=0x22)

    def paths(self, root: Path, one: str, two: str) -> None:
        """Two builds at two paths below a folder."""
        for path, data in ((one, self.ONE), (two, self.TWO)):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)

    @pytest.mark.parametrize("leaves", [2, 20], ids=["undecided", "both fit"])
    @pytest.mark.parametrize(
        ("name", "right", "wrong"),
        [
            ("{root}/x/tool", "x/tool", "y/tool"),
            ("/srv/a/bin/tool", "image/a/bin/tool", "image/b/bin/tool"),
            ("/srv/a/bin/tool", "z/bin/tool", "a/a/tool"),
            ("/opt/bin/tool", "opt/bin/tool", "a/x/opt/bin/tool"),
        ],
        ids=["the very path", "the longest end", "counted from the end", "a root's path"],
    )
    def test_the_nearest(self, leaves: int, name: str, right: str, wrong: str, tmp_path: Path) -> None:
        """The one that lies where the profile says is taken, as one that is not verified."""
        self.paths(tmp_path, right, wrong)
        made = of_tool([*map(leaf, range(leaves))], name=name.format(root=tmp_path))
        row = row_of(made, "/tool", tmp_path)
        assert row.files == [str(tmp_path / right)]
        assert (row.verdict, row.evidence) == (Verdict.UNVERIFIED, "2 builds fit, this one by its path")

    def test_equally_near(self, tmp_path: Path) -> None:
        """Neither is."""
        self.paths(tmp_path, "x/bin/tool", "y/bin/tool")
        row = row_of(of_tool([*map(leaf, range(20))]), "/tool", tmp_path)
        assert [reason for reason, _, _ in row.misses] == [Reason.AMBIGUOUS]

    def test_what_fits_comes_before_any_path(self, tmp_path: Path) -> None:
        """Even before the very path that was recorded."""
        path = tmp_path / "opt" / "bin" / "tool"
        path.parent.mkdir(parents=True)
        path.write_bytes(program(late=3))
        right = laid(tmp_path / "z", a=program())
        observed = of_tool([*map(leaf, range(63))])
        row = row_of(observed, "/tool", tmp_path)
        assert (row.files, row.verdict) == ([str(right[0] / "tool")], Verdict.SUPPORTED)
        alone = row_of(of_tool([*map(leaf, range(63))], name=str(path)), "/tool", path.parent)
        assert alone.verdict is Verdict.UNVERIFIED


class TestProcesses:
    """One file in several processes."""

    def test_they_are_judged_together(self, tmp_path: Path) -> None:
        """Each of them says too little alone."""
        right, wrong = laid(tmp_path, right=program(), near=program(late=3))
        made = of_tool([*map(leaf, range(64))], mappings=16)
        for row in rows_of(made, "/tool", right):
            assert (row.locations, row.symbolized_locations, row.verdict) == (4, 4, Verdict.SUPPORTED)
            assert row.evidence == "64 of 64 sampled addresses begin an instruction"
        made = of_tool([*map(leaf, range(64))], mappings=16)
        assert {tuple(row.files) for row in rows_of(made, "/tool", right, wrong)} == {(str(right / "tool"),)}

    def test_no_profile_is_kept(self, tmp_path: Path) -> None:
        """What was asked of one is forgotten with its result."""
        (folder,) = laid(tmp_path, one=program())
        with Symbolizer([folder]) as symbolizer:
            symbolizer.symbolize(of_tool([*map(leaf, range(64))], mappings=16))
            gc.collect()
            kept = [each for each in gc.get_objects() if isinstance(each, Profile)]
        assert not [each for each in kept if TOOL in map(each.strings.text, each.mappings.filename.tolist())]

    def test_together_they_refute(self, tmp_path: Path) -> None:
        """What each of them alone would leave open."""
        (wrong,) = laid(tmp_path, wrong=program(late=40))
        rows = rows_of(of_tool([*map(leaf, range(64))], mappings=64), "/tool", wrong)
        assert len(rows) == 64
        assert all(map(is_refused, rows))
        (alone,) = rows_of(of_tool([leaf(63)]), "/tool", wrong)
        assert (alone.symbolized_locations, alone.verdict) == (1, Verdict.UNVERIFIED)

    def test_a_file_that_was_replaced(self, tmp_path: Path) -> None:
        """Where each says enough alone, each has its own build: the file was replaced between them."""
        old, new = laid(tmp_path, old=program(late=64), new=program())
        shifted = [leaf(number) + 2 for number in range(30)]
        leaves = [each for pair in zip(map(leaf, range(30)), shifted, strict=True) for each in pair]
        for folders in permutations([old, new]):
            rows = rows_of(of_tool(leaves, mappings=2), "/tool", *folders)
            assert [row.files for row in rows] == [[str(new / "tool")], [str(old / "tool")]]
            assert {row.verdict for row in rows} == {Verdict.SUPPORTED}
        rows = rows_of(of_tool(leaves, mappings=2), "/tool", new)
        assert [row.files for row in rows] == [[str(new / "tool")], []]

    def test_others_support_nothing_that_is_contradicted(self, tmp_path: Path) -> None:
        """A process of which one of two addresses begins no instruction may have run another file."""
        (folder,) = laid(tmp_path, one=program(late=4))
        leaves = [each for number in range(50) for each in (leaf(number), leaf(0 if number else 62))]
        long, short = rows_of(of_tool(leaves, mappings=2), "/tool", folder)
        assert (long.locations, long.verdict) == (50, Verdict.SUPPORTED)
        assert (short.locations, short.verdict) == (2, Verdict.UNVERIFIED)
        assert short.evidence == "1 of 2 sampled addresses begin an instruction"


class TestOtherDoors:
    """Symbol files, and files of mappings that have a way of their own: they know no more of what ran."""

    BUILD_ID = "5a" * 20

    def laid(self, folder: Path, late: int, build_id: str = "") -> Path:
        """A build and its symbol file."""
        (folder,) = laid(folder, one=program(late=late, build_id=build_id))
        (folder / "tool.sym").write_bytes(symbols_of(folder / "tool"))
        return folder

    def test_the_symbol_file_of_a_build_that_is_refused(self, tmp_path: Path) -> None:
        """It names nothing either, found by the name or by a build id that was read later."""
        folder = self.laid(tmp_path / "a", 60)
        assert is_refused(row_of(of_tool([*map(leaf, range(64))]), "/tool", folder))
        folder = self.laid(tmp_path / "b", 60, self.BUILD_ID)
        made = with_id(of_tool([*map(leaf, range(64))]), "/tool", self.BUILD_ID, IdOrigin.READ_LATER)
        assert is_refused(row_of(made, "/tool", folder))

    def test_the_symbol_file_of_a_stripped_build(self, tmp_path: Path) -> None:
        """It is as sure as the build, if it has its id."""
        for build_id, verdict in ((self.BUILD_ID, Verdict.SUPPORTED), ("", Verdict.UNVERIFIED)):
            folder = self.laid(tmp_path / build_id, 0, build_id)
            (folder / "tool").write_bytes(program(build_id=build_id, has_symbols=False, has_frames=True))
            row = row_of(of_tool([*map(leaf, range(64))]), "/tool", folder)
            assert row.files == [str(folder / "tool.sym"), str(folder / "tool")]
            assert (row.symbolized_locations, row.verdict) == (64, verdict)

    @pytest.mark.parametrize(
        ("origin", "verdict", "evidence"),
        [
            (IdOrigin.RECORDED, Verdict.PROVED, ""),
            (IdOrigin.READ_LATER, Verdict.UNVERIFIED, "the recorded build id, read later, agrees"),
        ],
    )
    def test_a_symbol_file_alone(self, origin: IdOrigin, verdict: Verdict, evidence: str, tmp_path: Path) -> None:
        """Only an id that was recorded with the mapping proves it."""
        folder = self.laid(tmp_path, 0, self.BUILD_ID)
        (folder / "tool").unlink()
        row = row_of(with_id(of_tool([*map(leaf, range(64))]), "/tool", self.BUILD_ID, origin), "/tool", folder)
        assert (row.symbolized_locations, row.verdict, row.evidence) == (64, verdict, evidence)

    @pytest.mark.parametrize(("late", "verdict"), [(0, Verdict.SUPPORTED), (60, None)])
    def test_a_library_in_an_archive(self, late: int, verdict: Verdict | None, tmp_path: Path) -> None:
        """Without a build id what was sampled decides."""
        with zipfile.ZipFile(tmp_path / "base.apk", "w") as made:
            made.writestr("lib/tool.so", program(late=late))
        row = row_of(of_tool([*map(leaf, range(64))], name="/app/base.apk!/lib/tool.so"), "/tool.so", tmp_path)
        assert is_refused(row) if verdict is None else (row.symbolized_locations, row.verdict) == (64, verdict)

    @pytest.mark.parametrize(("late", "verdict"), [(0, Verdict.SUPPORTED), (60, None)])
    def test_the_library_of_the_kernel(self, late: int, verdict: Verdict | None, tmp_path: Path) -> None:
        """Likewise."""
        (tmp_path / "vdso64.so").write_bytes(program(late=late))
        maps = [Mapping(BASE, BASE + 0x6000, 0, "[vdso]")]
        stacks = [([Place(BASE + OFFSET - BEGIN + leaf(number), 1)], [1]) for number in range(64)]
        made = symbolize.load(io.BytesIO(profile(maps, stacks)))
        made.leaf_kinds = np.full(1, LeafKind.EXACT, np.uint8)
        row = row_of(made, "[vdso]", tmp_path)
        assert is_refused(row) if verdict is None else (row.symbolized_locations, row.verdict) == (64, verdict)


def test_stacks_support_a_build_of_which_few_leaves_are_known(tmp_path: Path) -> None:
    """All kinds of evidence count together."""
    right, wrong = laid(tmp_path, right=program(), wrong=program(late=64))
    for folders in permutations([right, wrong]):
        made = of_tool([leaf(0), leaf(9)], [[site(1), site(2)]])
        row = row_of(made, "/tool", *folders)
        assert (row.files, row.verdict) == ([str(right / "tool")], Verdict.SUPPORTED)
        assert row.evidence == (
            "2 of 2 sampled addresses begin an instruction, 2 of 2 call sites lie in a call, "
            "1 of 1 calls lead to the next frame"
        )
