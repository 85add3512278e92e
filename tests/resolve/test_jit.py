"""Frames in code that was compiled at run time."""

import io
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

import symbolize
from symbolize import Reason, Symbolizer
from symbolize.resolve.providers import jit
from symbolize.symbol_files import code_list
from tests.support import perf_writer as w
from tests.support.jitdump_writer import dump, lines, load, move
from tests.support.messages import profile_pb2
from tests.support.perf_writer import LITTLE, Event
from tests.support.pprof_writer import Mapping, Place, profile
from tests.support.whole_runs import run

START = 0x7F12_3400_0000
MAP = f"{START:x} 100 Interpreter\n{START + 0x100:x} 40 void Main::run(int)\n"


def mapping(name: str) -> Mapping:
    """A mapping of memory without a file."""
    return Mapping(START, START + 0x10000, 0, name)


class TestPerfMap:
    """`perf-PID.map` below a root."""

    @pytest.mark.parametrize(
        "name",
        [
            "//anon", "[anon]", "[anon:.bss]", "[anon:dalvik-jit-code-cache]", "/memfd:jit-cache (deleted)", "[heap]",
            "anon_inode:[perf_event]", "/dev/zero (deleted)", "/tmp/perf-4711.map", "jitted-4711-12.so", "",
            "/dev/ashmem/dalvik-jit-code-cache (deleted)", "/[anon:dart-code]", "/[heap]", "/anon", "[JIT] tid 4711",
            "/anon_inode:[perf_event]",
        ],
    )  # fmt: skip
    def test_anonymous_memory(self, tmp_path: Path, name: str) -> None:
        """Frames in memory without a file get the names that the runtime wrote; nothing verifies them."""
        (tmp_path / "tmp").mkdir()
        path = tmp_path / "tmp" / "perf-4711.map"
        path.write_text(MAP)
        names, report = run([mapping(name)], [Place(START + at, 1) for at in (0, 0x13F, 0x140)], tmp_path)
        assert names == ["Interpreter", "void Main::run(int)", ""]
        assert report.mappings[0].files == [str(path)]
        assert not report.mappings[0].verified
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.OUTSIDE_SYMBOLS]

    @pytest.mark.parametrize("name", ["[JIT] tid 4711", "/tmp/perf-4711.map"])
    def test_process_in_the_name(self, tmp_path: Path, name: str) -> None:
        """Of the lists of several processes that of the one in the name counts; where it is missing, that is said."""
        for process, text in ((4711, MAP), (9, MAP.replace("Interpreter", "Other"))):
            (tmp_path / f"perf-{process}.map").write_text(text)
        assert run([mapping(name)], [Place(START, 1)], tmp_path)[0] == ["Interpreter"]
        (tmp_path / "perf-4711.map").unlink()
        _, report = run([mapping(name)], [Place(START, 1)], tmp_path)
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.NOT_A_FILE]

    def test_is_counted(self, tmp_path: Path) -> None:
        """A list that stays in memory counts as an open binary, so that those who open many can close them."""
        (tmp_path / "perf-4711.map").write_text(MAP)
        data = profile([mapping("//anon")], [([Place(START)], [1])])
        with Symbolizer([tmp_path]) as symbolizer:
            symbolizer.symbolize(symbolize.load(io.BytesIO(data)))
            assert symbolizer.open_binaries == 1
            symbolizer.close()
            assert symbolizer.open_binaries == 0

    def test_no_mapping(self, tmp_path: Path) -> None:
        """Frames in no mapping at all get them too."""
        (tmp_path / "perf-1.map").write_text(MAP)
        names, report = run([], [Place(START + 4), Place(START + 0x104)], tmp_path)
        assert names == ["Interpreter", "void Main::run(int)"]
        assert report.mappings[-1].files == [str(tmp_path / "perf-1.map")]

    def test_nothing_covered(self, tmp_path: Path) -> None:
        """A list that knows none of the addresses is not named, and the reason stays what it was."""
        (tmp_path / "perf-1.map").write_text(MAP)
        names, report = run([mapping("[heap]")], [Place(START + 0x8000, 1), Place(0x1000)], tmp_path)
        assert names == ["", ""]
        assert [row.misses[0][0] for row in report.mappings] == [Reason.NOT_A_FILE, Reason.NO_MAPPING]
        assert [row.files for row in report.mappings] == [[], []]

    def test_process_of_the_mapping(self, tmp_path: Path) -> None:
        """The process that the name of the mapping tells decides."""
        (tmp_path / "perf-1.map").write_text(MAP)
        (tmp_path / "perf-2.map").write_text(MAP.replace("Interpreter", "Other"))
        assert run([mapping("/tmp/perf-2.map")], [Place(START, 1)], tmp_path)[0] == ["Other"]
        assert run([mapping("/tmp/perf-3.map")], [Place(START, 1)], tmp_path)[0] == [""]

    def test_other_process(self, tmp_path: Path) -> None:
        """Where the list of a process is not there, the report names it, and the lists that are there instead: that of
        a container has another number (R482, lists that are not there)."""
        absent = "no perf-3.map or jit-3.dump in the folders"
        row = run([mapping("/tmp/perf-3.map")], [Place(START, 1)], tmp_path)[1].mappings[0]
        assert (row.misses[0][0], row.detail) == (Reason.NOT_A_FILE, absent)
        (tmp_path / "perf-1.map").write_text(MAP)
        row = run([mapping("/tmp/perf-3.map")], [Place(START, 1)], tmp_path)[1].mappings[0]
        assert row.detail.startswith(f"{absent}, but perf-1.map: rename it if it is of this process")
        (tmp_path / "perf-1.map").rename(tmp_path / "perf-3.map")
        names, report = run([mapping("/tmp/perf-3.map")], [Place(START, 1)], tmp_path)
        assert (names, report.mappings[0].detail) == (["Interpreter"], "")
        assert run([mapping("/tmp/perf-3.map")], [Place(START + 0x8000, 1)], tmp_path)[1].mappings[0].detail == ""
        assert run([mapping("//anon")], [Place(START + 0x8000, 1)], tmp_path)[1].mappings[0].detail == ""

    def test_several_processes(self, tmp_path: Path) -> None:
        """Lists of several processes that cover an address are a choice that nothing decides, but labels may."""
        (tmp_path / "perf-1.map").write_text(MAP)
        (tmp_path / "perf-2.map").write_text(MAP.replace("Interpreter", "Other"))
        names, report = run([mapping("//anon")], [Place(START, 1)], tmp_path)
        assert names == [""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.AMBIGUOUS]
        message = profile_pb2.Profile.FromString(profile([mapping("//anon")], [([Place(START, 1)], [1])]))
        message.string_table.append(b"pid")
        message.sample[0].label.add(key=len(message.string_table) - 1, num=2)
        with Symbolizer([tmp_path]) as symbolizer:
            result = symbolizer.symbolize(symbolize.load(io.BytesIO(message.SerializeToString())))
        assert result.report.mappings[0].files == [str(tmp_path / "perf-2.map")]

    @pytest.mark.parametrize(
        ("key", "label", "wanted"),
        [
            (b"pid", 2, "Other"),
            (b"PID", 2, "Other"),
            (b"process_id", b"2", "Other"),
            (b"process.pid", b"1", "Interpreter"),
            (b"tgid", 3, ""),
            (b"thread", 2, ""),
            (b"pid", b"two", ""),
            (b"pid", "\u0662".encode(), ""),
            (b"pid", b"2" * 20, ""),
            (b"pid", 0, ""),
        ],
    )
    def test_labels(self, tmp_path: Path, key: bytes, label: bytes | int, wanted: str) -> None:
        """Numbers and texts of the labels that name processes count, of no other ones."""
        (tmp_path / "perf-1.map").write_text(MAP)
        (tmp_path / "perf-2.map").write_text(MAP.replace("Interpreter", "Other"))
        message = profile_pb2.Profile.FromString(profile([mapping("//anon")], [([Place(START, 1)], [1])]))
        message.string_table.extend([key, label if isinstance(label, bytes) else b"unused"])
        place = len(message.string_table)
        if isinstance(label, bytes):
            message.sample[0].label.add(key=place - 2, str=place - 1)
        else:
            message.sample[0].label.add(key=place - 2, num=label)
        with Symbolizer([tmp_path]) as symbolizer:
            result = symbolizer.symbolize(symbolize.load(io.BytesIO(message.SerializeToString())))
        lines_ = result.profile.locations.lines
        assert [result.profile.strings.text(name) for name in result.profile.functions.name[lines_.function]] == (
            [wanted] if wanted else []
        )

    def test_mapping_with_a_build_id(self, tmp_path: Path) -> None:
        """A mapping with a build id is that of a file, and no list of code compiled at run time answers for it."""
        (tmp_path / "perf-1.map").write_text(MAP)
        for name in ("", "/dev/zero"):
            assert run([mapping(name)], [Place(START, 1)], tmp_path)[0] == ["Interpreter"]
            assert run([mapping(name)._replace(build_id="ab" * 20)], [Place(START, 1)], tmp_path)[0] == [""]

    def test_broken_lines_are_told(self, tmp_path: Path) -> None:
        """What could not be read of a list is a warning."""
        (tmp_path / "perf-1.map").write_text(MAP + "rubbish\n")
        names, report = run([mapping("//anon")], [Place(START, 1)], tmp_path)
        assert names == ["Interpreter"]
        assert any("1 of 3 lines" in warning for warning in report.warnings)


class TestJitdump:
    """jitdump files below a root."""

    def test_names_and_lines(self, tmp_path: Path) -> None:
        """A jitdump gives lines as well, and goes before the perf map of the same process."""
        path = tmp_path / "jit-77.dump"
        path.write_bytes(dump(lines(START, [(START, 8, b"/srv/a.js")]), load(START, 0x40, 1, b"hot")))
        (tmp_path / "perf-77.map").write_text(f"{START:x} 40 other\n")
        made = symbolize.load(io.BytesIO(profile([mapping("jitted-77-1.so")], [([Place(START + 4, 1)], [1])])))
        with Symbolizer([tmp_path]) as symbolizer:
            result = symbolizer.symbolize(made)
        lines_ = result.profile.locations.lines
        function = int(lines_.function[0])
        strings, functions = result.profile.strings, result.profile.functions
        assert strings[functions.name[function]] == b"hot"
        assert strings[functions.filename[function]] == b"/srv/a.js"
        assert lines_.line.tolist() == [8]
        assert result.report.mappings[0].files == [str(path)]

    def test_limits(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each kind of list has its own limit; what is larger is not read, and reported."""
        (tmp_path / "jit-77.dump").write_bytes(dump(load(START, 0x40, 1, b"hot")))
        (tmp_path / "perf-77.map").write_text(f"{START + 0x40:x} 40 other\n")
        monkeypatch.setattr(jit, "MAX_MAP", 4)
        names, report = run([mapping("//anon")], [Place(START, 1), Place(START + 0x40, 1)], tmp_path)
        assert names == ["hot", ""]
        assert any("perf-77.map" in warning for warning in report.warnings)
        monkeypatch.undo()
        monkeypatch.setattr(jit, "MAX_DUMP", 4)
        names, report = run([mapping("//anon")], [Place(START, 1), Place(START + 0x40, 1)], tmp_path)
        assert names == ["", "other"]
        assert any("jit-77.dump" in warning for warning in report.warnings)

    def test_the_list_that_covers_most(self, tmp_path: Path) -> None:
        """Of the lists of a process the one that covers most of the addresses answers."""
        (tmp_path / "jit-77.dump").write_bytes(dump(load(START, 0x40, 1, b"hot")))
        (tmp_path / "perf-77.map").write_text(f"{START:x} 80 other\n")
        assert run([mapping("//anon")], [Place(START, 1), Place(START + 8, 1)], tmp_path)[0] == ["hot", "hot"]
        assert run([mapping("//anon")], [Place(START, 1), Place(START + 0x48, 1)], tmp_path)[0] == ["other"] * 2

    def test_lists_of_two_runs(self, tmp_path: Path) -> None:
        """Where two lists of one process number have entries that begin elsewhere nothing is named, around it all is;
        very many entries, which are not compared, are no sign of another run (rule R460)."""
        (tmp_path / "jit-77.dump").write_bytes(dump(load(START, 0x40, 1, b"hot"), load(START + 0x80, 0x40, 2, b"more")))
        (tmp_path / "perf-77.map").write_text(f"{START + 8:x} 10 other\n{START + 0x80:x} 40 more\n")
        places = [Place(START + at, 1) for at in (4, 0xC, 0x84)]
        names, report = run([mapping("//anon")], places, tmp_path)
        assert names == ["hot", "", "more"]
        (row,) = report.mappings
        assert "are of two runs: 1 addresses" in "".join(row.problems)
        assert [(reason, count) for reason, count, _ in row.misses] == [(Reason.REUSED_ADDRESS, 1)]

    @pytest.mark.parametrize(("process", "wanted"), [(77, "hot"), (78, "")])
    def test_process_in_the_header(self, tmp_path: Path, process: int, wanted: str) -> None:
        """The header of a jitdump tells the process, whatever the file is called."""
        (tmp_path / "jit-renamed.dump").write_bytes(dump(load(START, 0x40, 1, b"hot")))
        assert run([mapping(f"jitted-{process}-1.so")], [Place(START, 1)], tmp_path)[0] == [wanted]

    def test_no_jitdump(self, tmp_path: Path) -> None:
        """A file of such a name with other contents is passed over."""
        (tmp_path / "jit-77.dump").write_text("something else")
        assert run([mapping("//anon")], [Place(START, 1)], tmp_path)[0] == [""]


MONOTONIC = Event(clock=1)
OTHER = Event()
PID = 77


def recording(
    event: Event, stacks: Sequence[tuple[int, list[int]]], *more: bytes, marker: str = "/x/jit-77.dump"
) -> bytes:
    """A recording of a process that writes a jitdump: samples by time and stack, the leaf first."""
    form = LITTLE
    records = [
        form.comm(event, PID, "app", w.EXEC),
        form.mmap2(event, PID, START, 0x10000, "//anon"),
        form.mmap2(event, PID, 0x5000_0000, 0x1000, marker),
        *more,
    ]
    for time, (ip, *callers) in stacks:
        chain = [w.USER_CHAIN, ip, *(each + 1 for each in callers)]
        records.append(form.sample(event, pid=PID, time=time, ip=ip, chain=chain))
    return form.file([event], records)


def named(data: bytes, root: Path) -> tuple[Counter[tuple[str, ...]], symbolize.Report]:
    """How many samples have each stack of names, `?` where there is none, and the report."""
    with Symbolizer([root]) as symbolizer:
        result = symbolizer.symbolize(symbolize.load(io.BytesIO(data)))
    profile = result.profile
    lines_, edges = profile.locations.lines, profile.locations.line_offsets.tolist()
    name = [
        profile.strings.text(profile.functions.name[lines_.function[begin]]) if begin < end else "?"
        for begin, end in pairwise(edges)
    ]
    found: Counter[tuple[str, ...]] = Counter()
    items = profile.samples.locations.tolist()
    for row, (begin, end) in enumerate(pairwise(profile.samples.location_offsets.tolist())):
        found[tuple(name[each] for each in items[begin:end])] += int(profile.samples.values[row, 0])
    return found, result.report


class TestTimes:
    """Addresses that several functions had one after another (rule R460)."""

    TWO = dump(load(START, 0x40, 1, b"old", time=100), load(START, 0x40, 2, b"new", time=200))
    STACKS = tuple((time, [START + 4]) for time in (50, 100, 150, 199, 200, 250))

    def test_one_clock(self, tmp_path: Path) -> None:
        """On one clock the code that was loaded before a sample was taken names it, and before all of them the first,
        which is said."""
        (tmp_path / "jit-77.dump").write_bytes(self.TWO)
        found, report = named(recording(MONOTONIC, self.STACKS), tmp_path)
        assert found == {("old",): 4, ("new",): 2}
        (row,) = (row for row in report.mappings if row.locations)
        assert row.symbolized_locations == row.locations == 2
        assert len(row.problems) == 1
        assert "before the first of them" in row.problems[0]

    def test_stacks(self, tmp_path: Path) -> None:
        """Stacks that are apart by any of their frames are, others stay one."""
        other = load(START + 0x100, 0x40, 3, b"caller", time=90), load(START + 0x100, 0x40, 4, b"new_caller", time=150)
        (tmp_path / "jit-77.dump").write_bytes(self.TWO + b"".join(other))
        stacks = [(time, [START + 4, START + 0x108, START + 0x108]) for time in (120, 130, 160, 170, 210, 220)]
        found, report = named(recording(MONOTONIC, stacks), tmp_path)
        assert found == {
            ("old", "caller", "caller"): 2,
            ("old", "new_caller", "new_caller"): 2,
            ("new", "new_caller", "new_caller"): 2,
        }
        assert report.samples == 3

    def test_code_that_moves(self, tmp_path: Path) -> None:
        """Code that moves is at its new address from then on."""
        data = dump(
            load(START, 0x40, 1, b"old", time=100), load(START + 0x80, 0x40, 2, b"moving", time=100),
            move(2, START, 0x40, time=200),
        )  # fmt: skip
        (tmp_path / "jit-77.dump").write_bytes(data)
        found, _ = named(recording(MONOTONIC, self.STACKS), tmp_path)
        assert found == {("old",): 4, ("moving",): 2}

    def test_memory_that_is_mapped_later(self, tmp_path: Path) -> None:
        """Memory is made executable after its code was listed: that drops no code."""
        later = LITTLE.mmap2(MONOTONIC, PID, START, 0x1000, "//anon", time=220)
        (tmp_path / "jit-77.dump").write_bytes(self.TWO)
        found, _ = named(recording(MONOTONIC, self.STACKS, later), tmp_path)
        assert found == {("old",): 4, ("new",): 2}

    @pytest.mark.parametrize(
        ("zero", "more"),
        [
            (100, b""),
            (100, LITTLE.pack("QQBB6x", 1 << 32, 0xFF, 1, 0)),
            ((100 - (1 << 32)) % (1 << 64), LITTLE.pack("QQBB6x", 1 << 32, 0xFF, 1, 1)),
        ],
        ids=["old", "whole", "short"],
    )
    def test_counter_of_the_processor(self, tmp_path: Path, zero: int, more: bytes) -> None:
        """Times of the processor's counter are converted as the recording says; the counter may have few bits."""
        data = dump(load(START, 0x40, 1, b"old", time=50), load(START, 0x40, 2, b"new", time=100), flags=1)
        (tmp_path / "jit-77.dump").write_bytes(data)
        record = LITTLE.record(79, LITTLE.pack("QQQ", 4, 16, zero) + more, 0)
        found, _ = named(recording(OTHER, self.STACKS, record), tmp_path)
        assert found == {("old",): 4, ("new",): 2}
        found, _ = named(recording(MONOTONIC, self.STACKS), tmp_path)
        assert found == {("?",): 6}

    @pytest.mark.parametrize(
        ("event", "marker"), [(OTHER, "/x/jit-77.dump"), (Event(clock=4), "/x/jit-77.dump"), (MONOTONIC, "/x/other")]
    )
    def test_other_clock(self, tmp_path: Path, event: Event, marker: str) -> None:
        """Where the times are not known, or of another clock, functions that had one address are not named, and the
        report has both; others are."""
        more = load(START + 0x80, 0x40, 3, b"once", time=120), load(START + 0xC0, 0x10, 4, b"again", time=120)
        (tmp_path / "jit-77.dump").write_bytes(
            self.TWO + b"".join(more) + load(START + 0xC0, 0x10, 5, b"again", time=170)
        )
        stacks = [*self.STACKS, (130, [START + 0x84]), (130, [START + 0xC4])]
        found, report = named(recording(event, stacks, marker=marker), tmp_path)
        assert found == {("?",): 6, ("once",): 1, ("again",): 1}
        (row,) = (row for row in report.mappings if row.locations)
        assert [reason for reason, _, _ in row.misses] == [Reason.REUSED_ADDRESS]
        assert row.missed_flat[Reason.REUSED_ADDRESS] == 6
        assert any("old and new had the address" in problem for problem in row.problems)

    def test_perf_map(self, tmp_path: Path) -> None:
        """A perf map has no times, so that of functions that had one address none is named."""
        (tmp_path / "perf-77.map").write_text(f"{START:x} 40 old\n{START:x} 8 new\n{START + 0x20:x} 8 old\n")
        stacks = [*self.STACKS, (120, [START + 0x10]), (120, [START + 0x24])]
        found, report = named(recording(MONOTONIC, stacks), tmp_path)
        assert found == {("?",): 6, ("old",): 2}
        (row,) = (row for row in report.mappings if row.locations)
        assert any("old and new had the address" in problem for problem in row.problems)

    def test_too_many_entries(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of addresses whose entries are too many to be compared the others are named, and the report says so."""
        monkeypatch.setattr(code_list, "MAX_COMPARED", 3)
        (tmp_path / "perf-77.map").write_text(f"{START:x} 8 f\n{START + 0x10:x} 8 g\n" * 2)
        found, report = named(recording(MONOTONIC, [(1, [START]), (1, [START + 0x10])]), tmp_path)
        assert found == {("f",): 1, ("?",): 1}
        (row,) = (row for row in report.mappings if row.locations)
        assert any("more functions than are compared had the address" in problem for problem in row.problems)

    def test_callers_from_copies_of_stacks(self, tmp_path: Path) -> None:
        """The times of samples stay known while their stacks are unwound."""
        event = Event(clock=1, sample_type=w.IP | w.TID | w.TIME | w.USER_REGISTERS | w.USER_STACK, registers=w.X86_64,
                      stack=64)  # fmt: skip
        form = LITTLE
        records = [
            form.comm(event, PID, "app", w.EXEC),
            form.mmap2(event, PID, START, 0x10000, "//anon"),
            form.mmap2(event, PID, 0x5000_0000, 0x1000, "jit-77.dump"),
        ]
        for time in (100, 150, 250):
            registers = [START + 4 if bit == 8 else 0x7000 for bit in range(20)]
            ip = START + 4
            records.append(form.sample(event, pid=PID, time=time, ip=ip, registers=registers, stack=bytes(64)))
        (tmp_path / "jit-77.dump").write_bytes(self.TWO)
        found, _ = named(form.file([event], records), tmp_path)
        assert {stack[0]: count for stack, count in found.items()} == {"old": 2, "new": 1}
