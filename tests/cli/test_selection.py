"""`--merge all`, and the options that choose samples, frames, labels and names, on the command line."""

import gzip
import json
import re
from pathlib import Path

import pytest

import symbolize
from symbolize.cli import main
from symbolize.cli.selection import FILTERS
from tests.support.batch_runs import trace
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.pprof_oracle import summed
from tests.support.pprof_writer import Line, Mapping, Place, profile

GPERFTOOLS = FIXTURES / "profiles" / "gperftools"
GCC, CLANG = str(GPERFTOOLS / "ledger-gcc-pie.prof"), str(GPERFTOOLS / "ledger-clang-pie.prof")
PERF = str(FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz")
BUILDS = ["-b", str(BINARIES / "gcc-pie"), "-b", str(BINARIES / "clang-pie")]

MAPPING = Mapping(0x1000, 0x90000, 0, "/bin/app")
WORK = Place(0x1010, 1, (Line("work", "/src/a.c", 3),))
MAIN = Place(0x1020, 1, (Line("main", "/src/a.c", 6),))
BARE = Place(0x1030, 1)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.pb").write_bytes(profile([MAPPING], [([WORK, MAIN], [3]), ([BARE, MAIN], [1])]))


def written(*arguments: str) -> symbolize.Profile:
    """What the command writes to `out.pb.gz`."""
    assert main([*arguments, "-o", "out.pb.gz", "-q"]) == 0
    return symbolize.load("out.pb.gz")


def test_merge_all(capsys: pytest.CaptureFixture[str]) -> None:
    """One file with the values of all, each input symbolized; the report has a row for each."""
    assert main([GCC, CLANG, GCC, "--merge", "all", *BUILDS]) == 0
    out = capsys.readouterr().out
    assert out.count("ledger-gcc-pie.prof") == 2
    assert "wrote merged.symbolized.pb.gz" in out
    whole = symbolize.load("merged.symbolized.pb.gz")
    parts = [symbolize.load(each) for each in (GCC, CLANG, GCC)]
    assert whole.samples.values.sum(axis=0).tolist() == sum(each.samples.values.sum(axis=0) for each in parts).tolist()
    apart = [symbolize.symbolize(each, [BUILDS[1], BUILDS[3]]).profile for each in (GCC, CLANG, GCC)]
    assert summed(whole) == summed(symbolize.merge(apart))
    assert len(whole.mappings) < len(apart[0].mappings) + len(apart[1].mappings)


def test_merge_all_of_formats(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the formats; unlike sample types are refused with both names, or kept side by side."""
    arguments = [GCC, PERF, "--merge", "all", "-o", "all.pb.gz", *BUILDS]
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert f"{PERF} has the sample types" in message
    assert f"and {GCC} has samples/count, cpu/nanoseconds" in message
    assert not Path("all.pb.gz").exists()
    assert main([*arguments, "--side-by-side", "--report", "json"]) == 0
    assert [json.loads(line)["output"] for line in capsys.readouterr().out.splitlines()] == ["all.pb.gz"] * 2
    whole, parts = symbolize.load("all.pb.gz"), [symbolize.load(each) for each in (GCC, PERF)]
    assert len(whole.sample_types) == 4
    assert sorted(whole.samples.values.sum(axis=0)) == sorted(
        total for each in parts for total in each.samples.values.sum(axis=0)
    )


def test_merge_all_of_a_trace() -> None:
    """The profiles of traces are merged too."""
    Path("t.pftrace").write_bytes(trace(2, 3))
    several = symbolize.load_all("t.pftrace")
    assert len(several) == 2
    whole = written("t.pftrace", "--merge", "all")
    assert whole.samples.values.sum() == sum(each.profile.samples.values.sum() for each in several)


def test_one_input_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """The others are merged; none at all is an error without an output."""
    Path("bad.pb").write_bytes(b"nothing")
    assert main(["x.pb", "bad.pb", "x.pb", "--merge", "all", "-q"]) == 1
    assert symbolize.load("merged.symbolized.pb.gz").samples.values.tolist() == [[6], [2]]
    Path("merged.symbolized.pb.gz").unlink()
    assert main(["bad.pb", "--merge", "all"]) == 1
    assert not Path("merged.symbolized.pb.gz").exists()
    capsys.readouterr()
    for command in (["top"], ["list", "work"], ["view", "-o", "x.html"]):
        assert main([*command, "x.pb", "bad.pb", "--merge", "all"]) == 1
        assert "bad.pb: is not a profile" in capsys.readouterr().err
        assert main([*command, "bad.pb", "--merge", "all"]) == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["top"], "   9   75.00%    9   75.00%  work"),
        (["tree"], "   12  100.00%"),
        (["list", "work"], "         9          9      3"),
        (["diff", "x.pb"], "    +6  +150.00%     3  75.00%    9  75.00%"),
    ],
)
def test_tables_of_all(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands that show profiles show all as one; `diff` compares the first with the others."""
    assert main([*arguments, "x.pb", "x.pb", "x.pb", "--merge", "all"]) == 0
    out = capsys.readouterr().out
    assert " ".join(line.split()) in [" ".join(each.split()[: len(line.split())]) for each in out.splitlines()]


def test_merged_view() -> None:
    """One page of all, called by the first."""
    assert main(["view", "x.pb", "x.pb", "--merge", "all", "-q"]) == 0
    assert "x.pb and 1 more" in Path("merged.html").read_text()


def test_filters_of_pprof_files(capsys: pytest.CaptureFixture[str]) -> None:
    """A pprof file has what the filters leave, as a picture shows it."""
    assert written("x.pb", "--focus", "work").samples.values.tolist() == [[3]]
    assert written("view", "x.pb", "--hide", "main").samples.values.tolist() == [[3], [1]]
    assert [len(stack) for stack in written("x.pb", "--hide", "main").stacks()] == [1, 1]
    assert main(["x.pb", "--focus", "work", "-o", "x.folded", "-q"]) == 0
    assert Path("x.folded").read_text() == "main;work 3\n"
    assert main(["x.pb", "--emit", "module-symbols", "--focus", "work"]) == 2
    assert "--focus has no effect on the symbols of a trace" in capsys.readouterr().err
    assert main(["x.pb", "--emit", "module-symbols", "--tail-calls"]) == 2
    assert "--tail-calls has no effect on the symbols of a trace" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--sample-type", "--sample-index"])
def test_sample_index(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It weighs the report, is the default of the output and what tables show, by name or number."""
    for name in ("samples", "0"):
        assert main([GCC, *BUILDS, option, name, "-o", "out.pb.gz", "--report", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["sample_type"] == "samples"
        chosen = symbolize.load("out.pb.gz")
        assert chosen.strings[chosen.default_sample_type] == b"samples"
        assert main(["top", GCC, option, name]) == 0
        assert capsys.readouterr().out.startswith("samples: 378\n")
    assert main([GCC, PERF, "--merge", "all", "--side-by-side", option, "cpu", "-q", "-o", "out.pb.gz"]) == 0
    chosen = symbolize.load("out.pb.gz")
    assert chosen.strings[chosen.default_sample_type] == b"cpu"


def test_edits() -> None:
    """Paths, stand-ins for names and dropped frames are in the output."""
    named = written("x.pb", "--path-prefix", "/src=/home/user", "--synthesize", "--drop", "work")
    assert b"app+0x30" in gzip.decompress(Path("out.pb.gz").read_bytes())
    frames = [[(frame.function, frame.file) for frame in stack] for stack in named.stacks()]
    assert frames == [[("main", "/home/user/a.c")], [("", ""), ("main", "/home/user/a.c")]]  # it is no name
    (stack, _) = written("view", "x.pb", "--trim-path", "/src").stacks()
    assert [frame.file for frame in stack] == ["a.c", "a.c"]


def test_force(capsys: pytest.CaptureFixture[str]) -> None:
    """Names that came along are replaced wherever a lookup answers, and only there."""
    whole = symbolize.symbolize(GCC, BUILDS[1]).profile
    whole.functions.name = whole.functions.system_name = whole.functions.name * 0 + whole.strings.add(b"stale")
    symbolize.write(whole, "stale.pb.gz")

    def stale(*more: str) -> set[str]:
        return {
            frame.mapping
            for stack in written("stale.pb.gz", *more).stacks()
            for frame in stack
            if frame.function == "stale"
        }

    known = {frame.mapping for stack in whole.stacks() for frame in stack if frame.function == "stale"}
    assert stale() == stale("--force") == stale(*BUILDS[:2]) == known
    assert stale(*BUILDS[:2], "--force") < known


def test_what_the_options_take(capsys: pytest.CaptureFixture[str]) -> None:
    """Patterns, but for those that name a label."""
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    taken = {name: re.search(rf"--{name} (\w+)", text) for name in FILTERS}
    assert {name for name, found in taken.items() if found and found[1] == "KEY"} == {"tagroot", "tagleaf"}
    assert {name for name, found in taken.items() if found and found[1] == "REGEX"} == FILTERS.keys() - {
        "tagroot",
        "tagleaf",
    }
