"""Frames in code that was compiled at run time."""

import io
from pathlib import Path

import pytest

import symbolize
from symbolize import Reason, Symbolizer
from symbolize.resolve.providers import jit
from tests.support.jitdump_writer import dump, lines, load
from tests.support.messages import profile_pb2
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
            "/dev/ashmem/dalvik-jit-code-cache (deleted)",
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

    @pytest.mark.parametrize(("process", "wanted"), [(77, "hot"), (78, "")])
    def test_process_in_the_header(self, tmp_path: Path, process: int, wanted: str) -> None:
        """The header of a jitdump tells the process, whatever the file is called."""
        (tmp_path / "jit-renamed.dump").write_bytes(dump(load(START, 0x40, 1, b"hot")))
        assert run([mapping(f"jitted-{process}-1.so")], [Place(START, 1)], tmp_path)[0] == [wanted]

    def test_no_jitdump(self, tmp_path: Path) -> None:
        """A file of such a name with other contents is passed over."""
        (tmp_path / "jit-77.dump").write_text("something else")
        assert run([mapping("//anon")], [Place(START, 1)], tmp_path)[0] == [""]
