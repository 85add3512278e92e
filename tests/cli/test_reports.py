"""Where reports go and in which form: streams, files, several profiles in one table."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import symbolize
from symbolize.cli import main
from symbolize.cli.reports import has_colour, width_of
from tests.support.batch_runs import trace
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.needs import package
from tests.support.pprof_writer import Line, Mapping, Place, profile

PROF = str(FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof")
PERF = str(FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz")
BIN = str(BINARIES / "gcc-pie")
SCHEMA = json.loads((Path(symbolize.__file__).parent / "report" / "report.schema.json").read_text())


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in an empty folder, on a narrow terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def test_what_goes_where(capsys: pytest.CaptureFixture[str]) -> None:
    """The report is on standard output, what went wrong on standard error, so that JSON is JSON whatever happens."""
    Path("bad").write_text("no profile")
    Path("out").mkdir()
    assert main(["bad", PROF, "-b", BIN, "-o", "out", "--report", "json"]) == 1
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    package("jsonschema").validate(json.loads(line), SCHEMA)
    assert err.startswith("symbolize: bad: is not a profile")
    assert err.count("\n") == 1


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_report_file(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--report-file takes the report, in the form that --report says or its ending, and nothing is printed."""
    for arguments in (["--report", form, "--report-file", "report"], ["--report-file", f"report.{form}"]):
        Path("out.pb.gz").unlink(missing_ok=True)
        assert main([PROF, "-b", BIN, "-o", "out.pb.gz", *arguments]) == 0
        assert capsys.readouterr() == ("", "")
        text = Path(arguments[-1]).read_text()
        assert {"text": "  function\n", "json": '{"schema_version": 2', "html": "<!doctype html>"}[form] in text
        assert "Parser::skip_blanks" in text
    assert Path("report").read_text() == Path(f"report.{form}").read_text()
    assert main([PROF, "-b", BIN, "-q", "--report-file", f"quiet.{form}"]) == 0
    assert Path(f"quiet.{form}").exists()


def test_with_the_profile_on_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Text goes to standard error then; JSON and HTML need a file, and so does what the library does not mix."""
    assert main([PROF, "-b", BIN, "-o", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out.startswith(b"\x1f\x8b")
    assert b"is in named code" in err
    assert b"wrote" not in err
    for form in ("json", "html"):
        assert main([PROF, "-b", BIN, "-o", "-", "--report", form]) == 2
        out, err = capfdbinary.readouterr()
        assert out == b""
        assert b"name a file for the " + form.encode() + b" report with --report-file" in err
        assert main([PROF, "-b", BIN, "-o", "-", "--report", form, "--report-file", "r"]) == 0
        out, err = capfdbinary.readouterr()
        assert (out[:2], err) == (b"\x1f\x8b", b"")


def test_no_report(capsys: pytest.CaptureFixture[str]) -> None:
    """--report none prints nothing but warnings, and does not go with a file."""
    assert main([PROF, "-b", BIN, "--report", "none"]) == 0
    assert capsys.readouterr() == ("", "")
    os.mkdir("empty")
    assert main([PROF, "-b", "empty", "--report", "none"]) == 0
    assert "NOTHING WAS SYMBOLIZED" in capsys.readouterr().err
    assert main([PROF, "--report", "none", "--report-file", "r"]) == 2


def test_names_of_another_sample_type(capsys: pytest.CaptureFixture[str]) -> None:
    """A result whose names have no value in the default sample type has names all the same."""
    named, bare = Place(0x1100, 1, (Line("work"),)), Place(0x3100, 2)
    mappings = [Mapping(0x1000, 0x2000, 0, "/bin/app"), Mapping(0x3000, 0x4000, 0, "/bin/other")]
    types = (("samples", "count"), ("faults", "count"))
    Path("x.pb").write_bytes(profile(mappings, [([named], [5, 0]), ([bare], [0, 5])], types, "faults"))
    assert main(["x.pb", "-b", BIN, "--report", "none"]) == 0
    assert "NOTHING" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "-", "in.prof", "o.gz", "m"])
def test_names_of_report_files(name: str) -> None:
    """A report needs a name of its own: not that of an input, output or list."""
    Path("in.prof").write_bytes(Path(PROF).read_bytes())
    assert main(["in.prof", "-o", "o.gz", "--missing", "m", "--report-file", name]) == 2
    assert os.listdir() == ["in.prof"]


def test_how_to_look_at_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The last lines are commands that a shell takes as they are."""
    monkeypatch.setenv("COLUMNS", "300")
    assert main([PROF, "-b", BIN, "-o", "it's here.pb.gz"]) == 0
    view, _, pprof = capsys.readouterr().out.splitlines()[-1].partition("   or: ")
    assert shlex.split(view) == ["look", "at", "it:", "symbolize", "view", "it's here.pb.gz", "--open"]
    assert shlex.split(pprof) == ["go", "tool", "pprof", "-http=:", "it's here.pb.gz"]


def test_replaced_files(capsys: pytest.CaptureFixture[str]) -> None:
    """What was there before is said to be replaced; a device is not."""
    Path("t.pftrace").write_bytes(trace(7, 8))
    for word in ("wrote", "replaced"):
        assert main([PROF, "-b", BIN, "-o", "out.pb.gz"]) == 0
        assert f"\n{word} out.pb.gz\n" in capsys.readouterr().out
    for ending in ("", ", 2 of them replaced"):
        assert main(["t.pftrace", "-b", BIN]) == 0
        assert f"\nwrote 2 profiles to t.symbolized/{ending}\n" in capsys.readouterr().out


def test_a_result_with_names_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """A run that finds no names leaves the result of one that did, if it is of the same samples, and says so."""
    for first, second in ((PROF, PERF), (PERF, PROF)):
        assert main([first, "-b", BIN, "-o", "out.pb.gz", "-q"]) == 0
        named = Path("out.pb.gz").read_bytes()
        capsys.readouterr()
        assert main([first, "-o", "out.pb.gz"]) == 0
        out, err = capsys.readouterr()
        assert "symbolize: out.pb.gz kept: names are in it, and this run found none" in err
        assert "wrote" not in out and "replaced" not in out
        assert Path("out.pb.gz").read_bytes() == named
        for more in (["--merge", "all"], []):
            for binaries, is_kept in (["-b", BIN], False), ([], True):
                assert main([first, *binaries, "-o", "out.pb.gz", "-q", *more, "--report-file", "r.json"]) == 0
                row = json.loads(Path("r.json").read_text())
                assert (row["output"], row["kept"]) == ("out.pb.gz", is_kept)
        assert main([first, "-o", "out.pb.gz", "-q", "--report-file", "r.html"]) == 0
        assert "<p>Kept out.pb.gz: names are in it" in Path("r.html").read_text()
        assert main([second, "-o", "out.pb.gz", "-q"]) == 0  # of another recording
        assert Path("out.pb.gz").read_bytes() != named


def test_results_of_other_samples_are_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    """Also by a run without names, where neither times nor sums tell recordings apart (R279)."""
    gold, lld = (str(FIXTURES / "profiles" / "callers" / f"clang-{each}.prof") for each in ("gold", "lld"))
    for out in ("out.pb.gz", "out.html"):
        assert main([gold, "-b", str(BINARIES / "callers"), "-o", out, "-q"]) == 0
        assert main([lld, "-o", out, "-q"]) == 0
        assert "kept" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(("kind", "profile"), [("otlp", "otlp/spectra-gcc-pie.otlp"), ("json", "firefox/v75.json.gz")])
def test_a_message_with_names_is_kept(kind: str, profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    """So are results that are the input with names added."""
    out = f"out.{kind}"
    source = str(FIXTURES / "profiles" / profile)
    texts = []
    for binaries, words in (
        (["-b", BIN], "wrote out"),
        ([], f"{out} kept: names are in it"),
        (["-b", BIN], "wrote out"),
    ):
        assert main([source, *binaries, "-o", out]) == 0
        assert words in "".join(capsys.readouterr())
        texts.append(Path(out).read_bytes())
    assert texts == [texts[0]] * len(texts)


def test_frames_of_labels_are_no_names(capsys: pytest.CaptureFixture[str]) -> None:
    """A result with frames of labels alone is replaced; a label that no sample has is told of."""
    assert main([PERF, "-o", "out.pb.gz", "--tagroot", "tid,pod"]) == 0
    assert "note: no sample has the label pod; there are " in capsys.readouterr().err
    assert main([PERF, "-o", "out.pb.gz"]) == 0
    assert "kept" not in capsys.readouterr().err


def test_profiles_of_a_trace(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One table, a row a profile with its process, within the width of the terminal; -v has the reports too."""
    Path("t.pftrace").write_bytes(trace(7, 81))
    assert main(["t.pftrace", "-b", BIN]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    head, first, second, *rest = out.splitlines()
    assert head.split() == ["stacks", "value", "named", "profile", "kind"]
    assert first.split()[:8] == ["37", "2.02", "kB", "100.0", "%", "/bin/p7", "(pid", "7)"]
    assert "/bin/p81 (pid 81)  heap libc.malloc" in second
    assert "wrote 2 profiles to t.symbolized/" in rest
    assert max(map(len, (head, first, second))) <= 80
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["t.pftrace", "-b", BIN]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["stacks", "value", "named", "profile", "kind", "output"]
    assert first.endswith("heap_dump.1.7.libc.malloc.pb.gz")
    monkeypatch.delenv("COLUMNS")
    assert "t.pftrace" not in out
    assert main(["t.pftrace", "-b", BIN, "-v"]) == 0
    out = capsys.readouterr().out
    assert "t.pftrace: /bin/p7 (pid 7) heap libc.malloc:\n" in out
    assert out.count("is in named code") == 2
    assert main(["t.pftrace"]) == 0
    out, err = capsys.readouterr()
    assert out.count("without names: 100.0 % binary not found: ") == 2
    assert err == (
        "symbolize: warning: NOTHING WAS SYMBOLIZED in 2 of 2 profiles (t.pftrace: /bin/p7 (pid 7) heap libc.malloc, "
        "t.pftrace: /bin/p81 (pid 81) heap libc.malloc); name a folder with --binaries\n"
        "symbolize: t.symbolized/heap_dump.1.7.libc.malloc.pb.gz and 1 more kept: names are in it, and this run found "
        "none; delete it, or write elsewhere with -o\n"
    )


def test_why_several_have_no_names(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the row of a profile is why frames have no names, also where nothing helps against it: the shares of the
    samples by their leaf, and those of the frames where no leaf misses its name for that reason."""
    names = "/bin/app", "/bin/other", "[heap]"
    mappings = [Mapping(0x1000 * i, 0x1000 * i + 0x1000, 0, name) for i, name in enumerate(names, 1)]
    app, other, heap, nowhere = (Place(0x1000 * i + 8, i % 4) for i in range(1, 5))
    Path("a.pb").write_bytes(profile(mappings, [([app, nowhere], [5]), ([other], [1]), ([heap], [2])]))
    assert main(["a.pb", PROF, "-b", BIN]) == 0
    out = capsys.readouterr().out
    assert "a.pb" in out.splitlines()[1]
    reasons = "75.0 % binary not found: app and 1 more; 25.0 % mapping is no file on disk: [heap]; "
    reasons += "38.5 % of the frames address in no mapping"
    assert f"a.pb without names: {reasons} " in " ".join(out.split())


def test_profiles_of_a_trace_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has a line a profile, which says whose it is; HTML one page with a table of all."""
    Path("t.pftrace").write_bytes(trace(7, 81))
    assert main(["t.pftrace", "-b", BIN, "--report", "json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for row in rows:
        package("jsonschema").validate(row, SCHEMA)
    assert [row["of"] for row in rows] == [
        {"kind": "heap", "detail": "libc.malloc", "pid": pid, "process": f"/bin/p{pid}"} for pid in (7, 81)
    ]
    assert rows[1]["profile"] == "t.pftrace (heap_dump.2.81.libc.malloc)"
    assert main(["t.pftrace", "-b", BIN, "--report", "html"]) == 0
    out = capsys.readouterr().out
    assert out.count("<section>") == 2
    assert "<h1>2 profiles</h1>" in out
    assert main([PROF, "-b", BIN, "--report", "html"]) == 0
    assert "profiles</h1>" not in capsys.readouterr().out


def test_one_of_several(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the others cannot be read, the one that is left has its whole report."""
    Path("bad").write_text("no profile")
    assert main(["bad", PROF, "-b", BIN]) == 1
    assert "cum%  function" in capsys.readouterr().out


def test_many_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    """Of many profiles with warnings the first are shown, with the profile that each is of."""
    data = profile([Mapping(0x1000, 0x2000, 0, "/bin/app")], [])
    names = [f"{number}.pb" for number in range(15)]
    for name in names:
        Path(name).write_bytes(data)
    assert main([*names, "-b", BIN]) == 0
    out = capsys.readouterr().out
    assert "warning: 3.pb: the profile has no samples\n" in out
    assert "warning: and 5 more, which -v prints\n" in out
    assert main([*names, "-b", BIN, "-v"]) == 0
    assert "warning: 14.pb: the profile has no samples\n" in capsys.readouterr().out


def test_width_and_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS counts, then the terminal; a file has 80 columns and no colour."""
    assert width_of(sys.stdout) == 80
    monkeypatch.setenv("COLUMNS", "123")
    assert width_of(None) == 123
    monkeypatch.setenv("COLUMNS", "0")
    with open(os.devnull, "w") as file:
        assert width_of(file) == 80
        assert not has_colour(file)
    assert not has_colour(None)


def inspected(capsys: pytest.CaptureFixture[str], *paths: str) -> list[dict[str, Any]]:
    """What `symbolize inspect --json` says."""
    assert main(["inspect", "--json", *paths]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["files"]
    return found


def test_inspect_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """A trace lists its profiles with process, samples and value, and the mappings of all with their build ids."""
    Path("t.pftrace").write_bytes(trace(7, 81))
    assert main(["inspect", "t.pftrace"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("t.pftrace: Perfetto trace, ")
    assert "/bin/p81 (pid 81) heap libc.malloc\n" in out
    assert out.count("mapping ") == 1
    assert "build id 5e3ede9cfcac812af078bd0cfe366fe00b102526: 74 locations\n" in out
    (trace_,) = inspected(capsys, "t.pftrace")
    assert [(each["process"], each["pid"], each["kind"], each["samples"]) for each in trace_["profiles"]] == [
        ("/bin/p7", 7, "heap", 37),
        ("/bin/p81", 81, "heap", 37),
    ]


def test_inspect_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    """A profile says its format, sample types, mappings, and what has names and lines already, also when compressed."""
    places = [Place(0x1000, 1, (Line("f", "f.c", 3),)), Place(0x1100, 1, (Line("g"),)), Place(0x1200, 1)]
    Path("x.pb").write_bytes(profile([Mapping(0x1000, 0x2000, 0, "/bin/app", "ab" * 20)], [(places, [4])]))
    go = str(FIXTURES / "profiles" / "go" / "census.pb.gz")
    own, named, raw = inspected(capsys, "x.pb", go, PROF)
    assert [each["kind"] for each in (own, named, raw)] == ["pprof", "pprof", "gperftools CPU profile"]
    (content,) = own["profiles"]
    assert (content["locations"], content["named_locations"], content["with_lines"]) == (3, 2, 1)
    assert content["mappings"] == [{"name": "/bin/app", "build_id": "ab" * 20, "locations": 3, "named_locations": 2}]
    assert own["conclusion"] == "1 of 3 locations have no names: symbolize finds their binaries by build id"
    assert named["conclusion"] == "all locations have names already"
    assert "their mappings have no build id" in raw["conclusion"]
    assert main(["inspect", PROF]) == 0
    out = capsys.readouterr().out
    assert "sample type      cpu/nanoseconds, 1.51 s, shown first\n" in out
    assert "locations        214, 0 with names\n" in out
    Path("text").write_text("hello")
    assert main(["inspect", "text"]) == 1
    assert capsys.readouterr().err.startswith("symbolize: text: is no binary, list of symbols or profile: it looks")
