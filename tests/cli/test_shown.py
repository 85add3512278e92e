"""`symbolize view`, `top`, `tree`, `list` and `diff`: what they print of profiles, and of what is wrong with these."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from symbolize.cli import main
from symbolize.formats.model import LoadedProfile
from symbolize.profile import Profile
from tests.support.batch_runs import trace
from tests.support.pprof_writer import Line, Mapping, Place, profile

ROOT = Path(__file__).parent.parent.parent
MAPPING = Mapping(0x1000, 0x90000, 0, "/bin/app")
WORK = Place(0x1010, 1, (Line("work", "/src/a.c", 3),))
MAIN = Place(0x1020, 1, (Line("main", "/src/a.c", 6),))
BARE = Place(0x1030, 1, (Line("bare"),))
SOURCE = "/* a */\n\f\nint work() { return 1; }\r\n\n\n  main() {\n"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in a folder with a profile and its source."""
    monkeypatch.chdir(tmp_path)
    Path("x.pb").write_bytes(profile([MAPPING], [([WORK, MAIN], [3]), ([BARE, MAIN], [1])]))
    Path("src").mkdir()
    Path("src/a.c").write_text(SOURCE)


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines are those of compilers, which end at line feeds only, with their values and some around them."""
    assert main(["list", "work", "x.pb", "--source", "src"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "samples: 4",
        "work in /src/a.c",
        "         .          .      1  /* a */",
        "         .          .      2  \\x0c",
        "         3          3      3  int work() { return 1; }",
        "         .          .      4",
        "         .          .      5",
        "         .          .      6    main() {",
    ]
    assert main(["list", "main", "x.pb"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "main in /src/a.c (source not found)",
        "         .          4      6",
    ]


def test_normalize(capsys: pytest.CaptureFixture[str]) -> None:
    """A profile of a fifth of the value is scaled to its base, and a note says so, or else what differs."""
    Path("y.pb").write_bytes(profile([MAPPING], [([WORK, MAIN], [15]), ([BARE, MAIN], [5])]))
    assert main(["diff", "y.pb", "x.pb"]) == 0
    output = capsys.readouterr()
    assert output.out.splitlines()[:3] == [
        "samples: 4, base 20",
        "change  change%  base   base%  new    new%  cum change  function",
        "   -12  -60.00%    15  75.00%    3  75.00%         -12  work",
    ]
    assert output.err == "note: x.pb: the base has a total of 20, the other profile of 4; --normalize compares shares\n"
    assert main(["diff", "--normalize", "y.pb", "x.pb"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("samples: 20, base 20\n")
    assert output.err == "note: the values of x.pb are scaled to the total of the base\nnote: no function differs\n"
    assert main(["view", "x.pb", "--base", "y.pb", "-o", "x.html"]) == 0
    assert "--normalize compares shares" in capsys.readouterr().err


MAPPED = "\nMAPPED_LIBRARIES:\n00400000-00401000 r-xp 00000000 00:00 4 /srv/app\n"
DUMPS = {
    "gperftools": (
        "heap profile: 3: 300 [ 3: 300] @ heapprofile\n1: 100 [1: 100] @ 0x400100\n2: 200 [2: 200] @ 0x400200\n",
        "heap profile: 4: 500 [ 6: 700] @ heapprofile\n1: 100 [2: 200] @ 0x400100\n3: 400 [4: 500] @ 0x400200\n",
    ),
    "jemalloc": (
        "heap_v2/1\n  t*: 3: 300 [0: 0]\n@ 0x400100\n  t*: 1: 100 [0: 0]\n@ 0x400200\n  t*: 2: 200 [0: 0]\n",
        "heap_v2/1\n  t*: 4: 500 [6: 700]\n@ 0x400100\n  t*: 1: 100 [2: 200]\n@ 0x400200\n  t*: 3: 400 [4: 500]\n",
    ),
}
"""Two dumps of one program: before it freed anything, where all that was allocated is in use, and after that."""


@pytest.mark.parametrize("kind", DUMPS)
def test_growing_heap(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A dump of a heap is compared with an earlier one, which has other sample types, in what is in use."""
    for number, text in enumerate(DUMPS[kind], 1):
        Path(f"{number}.heap").write_text(text + MAPPED)
    for name in ("inuse_space", "space", ""):
        choice = ["--sample-type", name] if name else []
        assert main(["diff", "1.heap", "2.heap", *choice]) == 0
        title, _, row = capsys.readouterr().out.splitlines()
        assert title.partition(": ")[2] == "500B, base 300B"
        assert row.split() == ["+200B", "+66.67%", "300B", "100.00%", "500B", "100.00%", "+200B", "[app]"]
    assert main(["view", "2.heap", "--base", "1.heap", "-o", "leak.html"]) == 0
    capsys.readouterr()
    assert main(["top", "--merge", "all", "1.heap", "2.heap"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("space: 800B\n")
    assert "left out: alloc_objects/count, alloc_space/bytes" in output.err


@pytest.mark.parametrize("regex", ["bare", "nothing"])
def test_list_without_lines(regex: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A function without lines, or that there is not, is an error and no table."""
    assert main(["list", regex, "x.pb"]) == 1
    output = capsys.readouterr()
    assert output.err == f"symbolize: x.pb: has no function with source lines that matches '{regex}'\n"
    assert output.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["top", "-", "-"], "standard input can be read once only"),
        (["diff", "-", "-"], "standard input can be read once only"),
        (["view", "-", "--base", "-"], "standard input can be read once only"),
        (["top", ""], "a profile has an empty name"),
        (["top", "x.pb", "--proguard-map", "none.txt"], "mapping file none.txt: no such file"),
        (["view", "x.pb", "--proguard-map", "map.txt", "-o", "map.txt", "--emit", "html"], "never overwritten"),
        (["view", "x.pb", "--proguard-map", "a=map.txt", "-o", "map.txt"], "never overwritten"),
        (["top", "x.pb", "--side-by-side"], "--side-by-side has an effect only with --merge all"),
        (["top", "x.pb", "--keep", "main"], "--keep has an effect only with --drop or --prune"),
        (["top", "x.pb", "--path-prefix", "a"], "--path-prefix a: has to be OLD=NEW"),
        (["top", "x.pb", "--tagfocus", "("], "tagfocus: '(' is not a regular expression"),
        (["view", "x.pb", "--normalize"], "--normalize has an effect only with --base"),
        (["top", "x.pb", "--drop", "("], "drop: '(' is not a regular expression"),
        (["top", "x.pb", "--sample-index", "9"], "no sample type 9 is there"),
        (
            ["view", "x.pb", "--disassembly", "--no-local"],
            "--disassembly needs the binaries: give their folders with -b",
        ),
        (["view", "x.pb", "--disassembly", "-o", "y.svg"], "--disassembly has an effect only on a page (.html)"),
        (["view", "x.pb", "-o", "y.pb.gz", "--base", "x.pb"], "--base has no effect on a pprof file"),
    ],
)
def test_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What would be ignored, destroyed or empty is refused in one line, before anything is written."""
    Path("map.txt").write_text("com.acme.A -> a:\n")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert main(arguments) == 2
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


@pytest.mark.parametrize("more", [[], ["-b", "src"]])
@pytest.mark.parametrize("command", [["top"], ["tree"], ["view", "-o", "x.folded"]])
def test_no_values_are_said(command: list[str], more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What shows nothing says why: there are no samples, or the type that was asked for has no values."""
    stack = (Place(0x1000, 1, (Line("f"),)),)
    types = [("cpu", "count"), ("wall", "count")]
    Path("none.pb").write_bytes(profile([Mapping(0x1000, 0x2000, 0, "/bin/app")], [], types=types))
    Path("some.pb").write_bytes(profile([Mapping(0x1000, 0x2000, 0, "/bin/app")], [(stack, (5, 0))], types=types))
    assert main([*command, "none.pb", *more]) == 0
    assert "note: none.pb has no samples\n" in capsys.readouterr().err
    assert main([*command, "some.pb", "--sample-type", "wall", *more]) == 0
    assert "note: some.pb has no samples of wall: all values are 0\n" in capsys.readouterr().err
    assert main([*command, "some.pb", *more]) == 0
    assert "no samples" not in capsys.readouterr().err


def test_notes_name_what_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    """A command that a note names is whole, and does what the note says; filters are those that were given."""
    Path("no names.pb").write_bytes(profile([Mapping(0x1000, 0x2000, 0, "/bin/app")], [([Place(0x1008, 1)], [1])]))
    Path("other folder").mkdir()
    command = "symbolize 'no names.pb' -b src -b 'other folder'"
    assert main(["top", "no names.pb", "-b", "src", "-b", "other folder"]) == 0
    note = f"note: no names.pb: 0.0 % of the samples are in named code; {command} says what is missing\n"
    assert note in capsys.readouterr().err
    assert main(shlex.split(command)[1:]) == 0
    assert "binary not found" in capsys.readouterr().out
    assert main(["top", "x.pb", "--focus", "none", "--tagignore", "a"]) == 0
    assert capsys.readouterr().err == "note: no sample is left by --focus, --tagignore\n"


@pytest.mark.parametrize("more", [[], ["-b", "src"]])
def test_warnings(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Once each, on standard error; options without effect are among them."""
    assert main(["top", "x.pb", "--pid", "5", *more]) == 0
    assert capsys.readouterr().err.count("x.pb: Choosing processes") == 1
    assert main(["top", "x.pb", "--pid", "5", "-q", *more]) == 0
    assert capsys.readouterr().err == ""


def test_a_trace_is_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its profiles are made one after another, each once; none where one is wanted and there are several."""
    Path("t.pftrace").write_bytes(trace(7, 8))
    made: list[int] = []
    make = LoadedProfile.profile.fget  # type: ignore[attr-defined]

    def counted(loaded: LoadedProfile) -> Profile:
        made.append(len(os.listdir("t")) if os.path.isdir("t") else -1)
        return make(loaded)  # type: ignore[no-any-return]

    monkeypatch.setattr(LoadedProfile, "profile", property(counted))
    assert main(["list", "x", "t.pftrace", "-b", "src"]) == 2
    assert made == []
    assert main(["view", "t.pftrace", "-b", "src"]) == 0
    assert made == [*range(len(os.listdir("t")))]
    capsys.readouterr()


@pytest.mark.process
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_other_encodings(encoding: str) -> None:
    """What standard output cannot have is printed as escapes."""
    Path("y.pb").write_bytes(profile([MAPPING], [([Place(0x1040, 1, (Line("naïve→"),))], [1])]))
    variables = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-m", "symbolize", "top", "y.pb"], capture_output=True, env=variables)
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.splitlines()[2].endswith("naïve→".encode(encoding, "backslashreplace"))


@pytest.mark.process
@pytest.mark.parametrize("arguments", [["-V"], ["--help"], ["top", "x.pb"], ["tree", "x.pb"], ["list", "main", "x.pb"]])
@pytest.mark.full
def test_full_disk(arguments: list[str]) -> None:
    """What cannot be printed is an error in one line."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "symbolize", *arguments, *(["-q"] if "x.pb" in arguments else [])]
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=variables, text=True)
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert "standard output: cannot be written: No space left on device" in run.stderr
