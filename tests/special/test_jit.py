"""Frames in code that was compiled at run time."""

import io
from pathlib import Path

import pytest

import symbolize
from symbolize import Reason, Symbolizer
from symbolize.proto import profile_pb2
from tests.listings.test_compiled_code import dump, lines, load
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

    def test_no_jitdump(self, tmp_path: Path) -> None:
        """A file of such a name with other contents is passed over."""
        (tmp_path / "jit-77.dump").write_text("something else")
        assert run([mapping("//anon")], [Place(START, 1)], tmp_path)[0] == [""]
