"""What `top`, `tree`, `list`, `diff`, `plan` and `inspect` print with --json and --markdown."""

import json
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import symbolize
from symbolize.cli import main
from tests.support.batch_runs import trace
from tests.support.needs import package
from tests.support.pprof_writer import Line, Mapping, Place, profile

ROOT = Path(__file__).parent.parent.parent
SCHEMA = json.loads((Path(symbolize.__file__).parent / "report" / "commands.schema.json").read_text())
MAPPING = Mapping(0x1000, 0x90000, 0, "/bin/a|p`p")
HOST = Mapping(0x100000, 0x190000, 0, "www.a.example")
NAMES = [
    *(
        "work",
        "@user",
        "<img src=x onerror=a()>",
        "[x](https://a.example)",
        "a|b",
        "a\\|b",
        "`code`",
        "``|`|``",
        "&lt;b&gt;",
    ),
    *(
        "two\nlines",
        "\x1b[31mred",
        "www.a.example",
        "**bold** _it_ #1",
        "`" * 99 + "<img>",
        "~~~",
        "ends\\",
        " ",
        "$x$",
        "\udcff",
    ),
]
"""Names with which a line, a table, code or a terminal could be left, or that could be markup, mentions or links."""
RUNS = {
    "top": ["top"],
    "cum": ["top", "--cum", "-n", "3"],
    "tree": ["tree", "--min", "0"],
    "callers": ["tree", "--callers", "-n", "4"],
    "list": ["list", "."],
    "source": ["list", ".", "--source", "src", "--limit", "5"],
    "plan": ["plan", "--no-local"],
    "inspect": ["inspect"],
}


def named(names: list[str], values: list[int]) -> bytes:
    """A profile of two sample types in which `main` calls a function of each name."""
    places = [Place(0x1000 + row, 1, (Line(name, "/src/a.c", row + 1),)) for row, name in enumerate(["main", *names])]
    stacks = [([place, places[0]], [value, 7]) for place, value in zip(places[1:], values, strict=True)]
    return profile(
        [MAPPING, HOST],
        [*stacks, ([Place(0x100010, 2)], [0, 7])],
        types=[("inuse_space", "bytes"), ("@samples", "w|w www.a.example")],
    )


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in a folder with profiles and a source."""
    monkeypatch.chdir(tmp_path)
    names = [name.encode(errors="surrogateescape").decode(errors="backslashreplace") for name in NAMES]
    Path("hard.pb").write_bytes(named(names, [*range(100, 100 + len(names))]))
    Path("negative.pb").write_bytes(named(["kept", "freed", "both", "both"], [2**60, -400, 50, -50]))
    Path("empty.pb").write_bytes(profile([MAPPING], [], types=[("cpu", "nanoseconds")]))
    Path("go.pb.gz").write_bytes((ROOT / "fixtures/profiles/go/census.pb.gz").read_bytes())
    Path("t.pftrace").write_bytes(trace(7, 8))
    Path("src").mkdir()
    Path("src/a.c").write_text("one\n\ttwo `````\n" * 12)


def lines_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[Any]:
    """What a command prints as JSON, a line each, checked against the schema."""
    assert main([*arguments, "--json"]) == 0
    output = capsys.readouterr().out
    assert output.isascii() and "\x1b" not in output
    found = [json.loads(output)] if arguments[0] == "inspect" else [json.loads(line) for line in output.splitlines()]
    kind = arguments[0] if arguments[0] in ("plan", "inspect") else "table"
    for each in found:
        package("jsonschema").validate(each, {**SCHEMA, "anyOf": [{"$ref": f"#/$defs/{kind}"}]})
        json.dumps(each, ensure_ascii=False).encode()  # no lone surrogates
        if kind == "table":
            assert set(each) <= set(SCHEMA["$defs"]["table"]["properties"])
            fields = set(SCHEMA["$defs"][each["kind"]]["properties"]) - ({"self"} if each.get("callers") else set())
            assert all(set(row) == fields for row in each["rows"])
            assert each["truncated"] == (len(each["rows"]) < each["rows_total"])
        else:
            assert each["truncated"] == bool(each["cuts"])
    return found


@pytest.mark.parametrize("name", ["hard.pb", "negative.pb", "empty.pb", "go.pb.gz", "t.pftrace"])
@pytest.mark.parametrize("run", RUNS)
def test_schema(run: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON of each command is as its schema says, a line a profile, bounded by the limit, with the values of the
    text."""
    if RUNS[run][0] == "list" and name in ("empty.pb", "t.pftrace"):
        return  # no lines, or several profiles
    found = lines_of([*RUNS[run], name], capsys)
    assert len(found) == (2 if name == "t.pftrace" and run != "inspect" else 1)
    if "-n" in RUNS[run] or "--limit" in RUNS[run]:
        limit = int(RUNS[run][RUNS[run].index("-n" if "-n" in RUNS[run] else "--limit") + 1])
        assert all(len(each["rows"]) == min(limit, each["rows_total"]) for each in found)


def test_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """Values are plain and whole, shares are of the total without signs; names are whole, whatever is in them."""
    (found,) = lines_of(["top", "negative.pb", "--sample-type", "inuse_space"], capsys)
    assert (found["sample_type"], found["unit"]) == ("inuse_space", "bytes")
    assert (found["total"], found["net"], found["rows_total"]) == (pytest.approx(2**60), pytest.approx(2**60), 3)
    rows = {row.pop("function"): row for row in found["rows"]}
    assert rows["kept"] == {
        "flat": 2**60,
        "flat_percent": pytest.approx(100),
        "cumulative": 2**60,
        "cumulative_percent": pytest.approx(100),
    }
    assert rows["freed"]["flat"] == -400 and isinstance(rows["freed"]["flat"], int)
    (found,) = lines_of(["top", "hard.pb"], capsys)
    names = {name.encode(errors="surrogateescape").decode(errors="backslashreplace") for name in NAMES}
    assert {row["function"] for row in found["rows"]} == {"main", "[www.a.example]", *names}
    (found,) = lines_of(["diff", "hard.pb", "negative.pb", "--sample-type", "inuse_space", "-n", "2"], capsys)
    assert (found["kind"], found["base"][0]["name"], len(found["rows"])) == ("changes", "hard.pb", 2)
    assert found["rows"][0]["function"] == "kept" and found["rows"][0]["new"] == 2**60
    assert lines_of(["diff", "empty.pb", "empty.pb"], capsys)[0]["rows"] == []


@pytest.mark.parametrize("command", ["top", "plan", "inspect"])
def test_names_of_files(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes of a name that are not UTF-8 are escaped, so that what is printed can be read as UTF-8."""
    name = os.fsdecode(b"\xff.pb")
    Path(name).write_bytes(Path("hard.pb").read_bytes())
    (found,) = lines_of([command, name], capsys)
    assert "\\x" in json.dumps(found)
    assert main([command, name, "--markdown"]) == 0
    capsys.readouterr().out.encode()


def test_heaviest_calls(capsys: pytest.CaptureFixture[str]) -> None:
    """A tree with a limit has the heaviest nodes of all with their callers, in the order of the tree."""
    whole = lines_of(["tree", "--min", "0", "go.pb.gz"], capsys)[0]["rows"]
    for limit in (1, 4, 9):
        (found,) = lines_of(["tree", "--min", "0", "go.pb.gz", "-n", str(limit)], capsys)
        weights = sorted((row["total"] for row in whole), reverse=True)[:limit]
        assert sorted((row["total"] for row in found["rows"]), reverse=True) == weights
        rows = iter(whole)
        assert all(row in rows for row in found["rows"])  # in that order
        depths = [-1, *(row["depth"] for row in found["rows"])]
        assert all(after <= before + 1 for before, after in pairwise(depths))
    assert main(["tree", "go.pb.gz", "-n", "4"]) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 6 and "note: 4 of 11 calls are shown\n" in output.err


def test_cuts(capsys: pytest.CaptureFixture[str]) -> None:
    """Lists that the limit cuts are named, with how long they were; the heaviest mappings stay."""
    prof = str(ROOT / "fixtures/profiles/gperftools/ledger-gcc-pie.prof")
    (found,) = lines_of(["plan", prof, "--no-local", "-n", "1"], capsys)
    assert [row["name"] for row in found["mappings"]] == ["/opt/ledger/bin/ledger"]
    assert {"field": "mappings", "total": 11} in found["cuts"]
    (found,) = lines_of(["inspect", prof, "-n", "1"], capsys)
    assert len(found["files"][0]["profiles"][0]["mappings"]) == 1
    assert {"field": "files[0].profiles[0].mappings", "total": 5} in found["cuts"]
    assert main(["plan", prof, "--no-local", "-n", "1"]) == 0
    assert "\nand 4 more\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["hard.pb", "negative.pb", "empty.pb", "go.pb.gz", "t.pftrace"])
@pytest.mark.parametrize("run", [*RUNS, "diff"])
def test_markdown(run: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A cell is a figure or code, and so is all else of a profile; blocks of code end where they should."""
    if RUNS.get(run, ["diff"])[0] in ("list", "diff") and name in ("empty.pb", "t.pftrace"):
        return
    arguments = RUNS.get(run, ["diff", name])
    assert main([*arguments, name, "--markdown"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("### ") and all(line.isprintable() for line in output.split("\n"))
    fence = ""
    columns = 0
    for line in output.splitlines():
        if fence:
            assert line == fence or fence not in line
            fence = "" if line == fence else fence
            continue
        if found := re.fullmatch("(```+)text", line):
            fence = found[1]
            continue
        bare = re.sub(r"`[^`]+`", "", line)  # without code
        columns = 0 if not line.startswith("|") else columns or bare.count("|")
        assert bare.count("|") == columns
        assert not re.search(r"[<@`\\\[$~_*]|www|#(?!96;|124;)", bare.removeprefix("### ")), line
    assert not fence


def test_markdown_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows that are left out, and binaries that are not proved, are below the table."""
    prof = str(ROOT / "fixtures/profiles/gperftools/ledger-gcc-pie.prof")
    assert main(["top", prof, "-b", str(ROOT / "fixtures/bin/gcc-pie"), "-n", "2", "--markdown", "-q"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"\n\n2 of \d+ rows are shown\.\n\n- `.*: not proved to be what ran: ledger", output)
