"""Profiles for clang and rustc: what is in them, and that LLVM takes them."""

import io
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import symbolize
from symbolize.cli.main import main
from symbolize.core.arrays import UInt32
from symbolize.core.errors import InputError, UsageError
from symbolize.formats.outputs import View
from symbolize.pipeline import Symbolizer
from symbolize.profile import Profile, StackSource
from tests.support.fixture_files import BINARIES, FIXTURES, GPERFTOOLS, PERF, variant
from tests.support.needs import find
from tests.support.pprof_writer import Line, Mapping, Place, profile

MAPPINGS = [Mapping(0x400000, 0x500000, 0, "/app/server"), Mapping(0x900000, 0xA00000, 0, "/app/server")]
STARTS = {"main": 10, "_Z4workRK4Item": 20, "_ZN4Item4sizeEv": 30, "_ZL4swapv": 40, "far": 1}


def frame(name: str, line: int) -> Line:
    return Line(name, "/src/a.cc", line)


MAIN = Place(0x400100, 1, (frame("main", 12),))
WORK = Place(0x400200, 1, (frame("_Z4workRK4Item", 23),))
LATER = Place(0x400204, 1, (frame("_Z4workRK4Item", 23),))
INLINED = Place(0x400208, 1, (frame("_ZN4Item4sizeEv", 31), frame("_Z4workRK4Item", 25)))
DEEPER = Place(0x40020C, 1, (frame("_ZL4swapv", 44), *INLINED.lines))
ELSEWHERE = Place(0x400210, 1, (frame("_ZN4Item4sizeEv", 33), frame("_Z4workRK4Item", 19)))
KERNEL = Place(0xFFFFFFFF81000010, 0, (frame("do_syscall_64", 5),))


def loaded(
    stacks: list[tuple[list[Place], list[int]]], types: tuple[tuple[str, str], ...] = (("samples", "count"),)
) -> Profile:
    """A profile of stacks, with the lines where the functions are declared."""
    result = symbolize.load(io.BytesIO(profile(MAPPINGS, stacks, types)))
    names = [result.strings.text(row) for row in result.functions.name.tolist()]
    result.functions.start_line = np.array([STARTS.get(name.partition(".")[0], 0) for name in names], np.int64)
    return result


def written(given: Profile, trim: float = 0.0, marks: dict[int, int] | None = None) -> str:
    """The text of a profile; `marks` are discriminators by line."""

    def discriminators(of: Profile) -> UInt32:
        return np.array([(marks or {}).get(line, 0) for line in of.locations.lines.line.tolist()], np.uint32)

    output = io.BytesIO()
    symbolize.write(given, output, emit="llvm-profile", view=View(trim=trim, discriminators=discriminators))
    return output.getvalue().decode()


def shown_by_llvm(text: str, folder: Path) -> str:
    """How llvm-profdata understands a profile."""
    path = folder / "program.afdo"
    path.write_text(text)
    command = [find("llvm-profdata-19"), "show", "--sample", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout


STACKS: list[tuple[list[Place], list[int]]] = [
    ([MAIN], [1]),
    ([WORK, MAIN], [20]),
    ([LATER, MAIN], [30]),
    ([INLINED, MAIN], [4]),
    ([DEEPER, MAIN], [8]),
    ([ELSEWHERE, MAIN], [16]),
    ([KERNEL, DEEPER, MAIN], [100]),
]
TEXT = """\
_Z4workRK4Item:78:0
 3: 30
 5.2: _ZN4Item4sizeEv:12
  1: 4
  1: _ZL4swapv:8
   4.33: 24
 65535: _ZN4Item4sizeEv:16
  3: 16
main:1:0
 2: 1 _Z4workRK4Item:178
"""
SHOWN = """\
Function: _Z4workRK4Item: 78, 0, 1 sampled lines
Samples collected in the function's body {
  3: 30
}
Samples collected in inlined callsites {
  5.2: inlined callee: _ZN4Item4sizeEv: 12, 0, 1 sampled lines
    Samples collected in the function's body {
      1: 4
    }
    Samples collected in inlined callsites {
      1: inlined callee: _ZL4swapv: 8, 0, 1 sampled lines
        Samples collected in the function's body {
          4.33: 24
        }
        No inlined callsites in this function
    }
  65535: inlined callee: _ZN4Item4sizeEv: 16, 0, 1 sampled lines
    Samples collected in the function's body {
      3: 16
    }
    No inlined callsites in this function
}
Function: main: 1, 0, 1 sampled lines
Samples collected in the function's body {
  2: 1, calls: _Z4workRK4Item:178
}
No inlined callsites in this function
"""
MARKS = {25: 2, 44: 33 | 3 << 16}


def test_text() -> None:
    """Of the addresses of a line the largest count, and of code in three copies three times that."""
    assert written(loaded(STACKS), marks=MARKS) == TEXT


@pytest.mark.needs("llvm-profdata-19")
def test_llvm_reads_it(tmp_path: Path) -> None:
    assert shown_by_llvm(TEXT, tmp_path) == SHOWN


def test_filters_leave_discriminators() -> None:
    def discriminators(of: Profile) -> UInt32:
        return np.full(len(of.locations.lines), 7, np.uint32)

    view = View(filters=symbolize.Filters(focus="main"), discriminators=discriminators)
    output = io.BytesIO()
    symbolize.write(loaded([([WORK], [5]), ([MAIN], [1])]), output, emit="llvm-profile", view=view)
    assert output.getvalue() == b"main:1:0\n 2.7: 1\n"


def test_without_binaries_there_are_no_discriminators() -> None:
    output = io.BytesIO()
    symbolize.write(loaded([([WORK], [5])]), output, emit="llvm-profile")
    assert output.getvalue() == b"_Z4workRK4Item:5:0\n 3: 5\n"


def test_processes_are_added_up() -> None:
    """The same code at the addresses of two processes is one place."""
    assert written(loaded([([WORK], [5]), ([WORK._replace(address=0x900200, mapping=2)], [6])])) == (
        "_Z4workRK4Item:11:0\n 3: 11\n"
    )


def test_samples_without_a_line_count_in_totals() -> None:
    unknown = Place(0x400300, 1, (frame("_ZN4Item4sizeEv", 0), frame("_Z4workRK4Item", 25)))
    assert written(loaded([([unknown], [3]), ([INLINED], [4])])) == (
        "_Z4workRK4Item:7:0\n 5: _ZN4Item4sizeEv:7\n  1: 4\n"
    )


@pytest.mark.parametrize("name", ["_Z4workRK4Item.llvm.123", "_Z4workRK4Item.cold", "_Z4workRK4Item.part.0.cold.1"])
def test_names_are_those_of_the_source(name: str) -> None:
    assert written(loaded([([Place(0x400300, 1, (frame(name, 22),))], [3])])) == "_Z4workRK4Item:3:0\n 2: 3\n"


@pytest.mark.parametrize("name", ["far away", "far\n", "far:1", "1far", "[far]", "#far", "ns::far", "far@plt", ""])
def test_other_names_are_left_out(name: str) -> None:
    given = loaded([([Place(0x400300, 1, (frame(name, 22),)), MAIN], [3]), ([MAIN], [1])])
    given.functions.start_line = np.full(len(given.functions), 1, np.int64)
    assert written(given) == "main:1:0\n 11: 1\n"


def test_calls_once_a_sample() -> None:
    text = written(loaded([([WORK, MAIN, WORK, MAIN], [2]), ([MAIN, WORK], [3])]))
    assert text == "main:3:0\n 2: 3 _Z4workRK4Item:2\n_Z4workRK4Item:2:0\n 3: 2 main:5\n"


def test_callers_of_unknown_lines_have_no_calls() -> None:
    unknown = Place(0x400300, 1, (frame("_ZN4Item4sizeEv", 0), frame("_Z4workRK4Item", 25)))
    assert written(loaded([([MAIN, unknown], [2])])) == "main:2:0\n 2: 2\n"


def test_along_frame_pointers_the_caller_of_a_leaf_is_not_sure() -> None:
    given = replace(loaded([([INLINED, WORK, MAIN], [2]), ([MAIN], [1])]), stack_source=StackSource.FRAME_POINTERS)
    assert " 2: 1 _Z4workRK4Item:2\n" in written(given)
    assert "_Z4workRK4Item:2\n" in written(given) and "3: 0 " not in written(given)


def test_small_functions_are_trimmed() -> None:
    given = loaded([([WORK], [99]), ([MAIN], [1])])
    assert written(given, 0.02) == "_Z4workRK4Item:99:0\n 3: 99\n"
    assert "main:1:0\n" in written(given, 0.01)


def test_memory_is_refused() -> None:
    given = loaded([([MAIN], [1, 4096])], types=(("alloc_objects", "count"), ("alloc_space", "bytes")))
    with pytest.raises(UsageError, match="llvm-profile: alloc_space/bytes"):
        written(given)


def test_functions_without_a_declaration_are_left_out() -> None:
    given = loaded([([MAIN], [1])])
    given.functions.start_line = np.zeros(len(given.functions), np.int64)
    assert written(given) == ""


def test_nesting_is_bounded() -> None:
    place = Place(0x400300, 1, tuple(frame("far", 2 + row) for row in range(5_000)))
    lines = written(loaded([([place], [3]), ([MAIN], [1])])).splitlines()
    assert lines[0] == "far:3:0" and len(lines) == 258
    assert max(len(line) - len(line.lstrip()) for line in lines) == 255


def test_repeated_names_are_bounded() -> None:
    long = Line("far" + "r" * 40_000, "/src/a.cc", 2)
    stacks = [([Place(0x400300 + row, 1, (*[long] * 200, frame("main", 12 + row)))], [1]) for row in range(20)]
    given = loaded(stacks)
    given.functions.start_line = np.full(len(given.functions), 1, np.int64)
    with pytest.raises(InputError, match="repeats names"):
        written(given)


def test_largest_counts() -> None:
    largest = (1 << 63) - 1
    given = loaded([([WORK], [largest]), ([LATER], [largest]), ([MAIN], [-5])])
    assert written(given) == f"_Z4workRK4Item:{largest}:0\n 3: {largest}\n"


@pytest.mark.needs("clang++-19", "llvm-profdata-19")
@pytest.mark.parametrize(
    "source",
    [*GPERFTOOLS, *PERF, FIXTURES / "profiles" / "otlp" / "spectra-gcc-pie.otlp"],
    ids=lambda path: path.name,
)
def test_clang_takes_those_of_fixtures(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "program.afdo"
    with Symbolizer([BINARIES / variant(source)]) as symbolizer:
        result = symbolizer.symbolize(symbolize.load(source))
        result.write(path, view=View(discriminators=symbolizer.discriminators))
    assert shown_by_llvm(path.read_text(), tmp_path).startswith("Function: ")
    compiled = FIXTURES / "src" / "spectra" / "resonance.cc"
    command = [find("clang++-19"), "-O2", "-g", "-Werror", f"-fprofile-sample-use={path}", "-c", compiled, "-o", "a.o"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")


HOT = """
__attribute__((noinline)) static int often(int x) { return x * 7 + 1; }
__attribute__((noinline)) static int seldom(int x) { return x - 3; }
int choose(int (*f)(int), int x) {
    return f(x);
}
int (*both[2])(int) = {often, seldom};
"""


@pytest.mark.needs("clang++-19")
def test_clang_promotes_the_function_that_is_called(tmp_path: Path) -> None:
    source, path = tmp_path / "a.cc", tmp_path / "program.afdo"
    source.write_text(HOT)
    STARTS.update(_Z6choosePFiiEi=4, _ZL5ofteni=2)
    call = Place(0x400100, 1, (frame("_Z6choosePFiiEi", 5),))
    often = Place(0x400200, 1, (frame("_ZL5ofteni", 2),))
    path.write_text(written(loaded([([often, call], [900]), ([call], [100])])))
    command = [find("clang++-19"), "-O2", "-g1", f"-fprofile-sample-use={path}", "-Rpass=pgo-icall-prom", "-c", source]
    done = subprocess.run([*command, "-o", "a.o"], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "Promote indirect call to _ZL5ofteni" in done.stderr


def test_ending_chooses_it(tmp_path: Path) -> None:
    source, path = FIXTURES / "profiles" / "gperftools" / "ledger-clang-pie.prof", tmp_path / "ledger.afdo"
    command = [str(source), "-b", str(BINARIES / "clang-pie"), "-o", str(path), "--report", "none"]
    assert main([*command, "--trim", "3"]) == 0
    trimmed = path.read_text()
    assert main(command) == 0
    assert path.read_text().startswith(trimmed) and len(path.read_text()) > len(trimmed) > 0


def test_view_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both commands ask the binaries for discriminators."""

    def ones(self: Symbolizer, found: Profile) -> UInt32:
        return np.ones(len(found.locations.lines), np.uint32)

    monkeypatch.setattr(Symbolizer, "discriminators", ones)
    source = FIXTURES / "profiles" / "gperftools" / "ledger-clang-pie.prof"
    command = [str(source), "-b", str(BINARIES / "clang-pie"), "-q"]
    assert main([*command, "-o", str(tmp_path / "plain.afdo"), "--report", "none"]) == 0
    assert main(["view", *command, "-o", str(tmp_path / "view.afdo")]) == 0
    written = (tmp_path / "view.afdo").read_text()
    assert ".1: " in written
    assert written == (tmp_path / "plain.afdo").read_text()
