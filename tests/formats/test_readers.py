"""Every output as its readers see it: the names they show are those that we show."""

import csv
import gzip
import io
import json
import re
import subprocess
from pathlib import Path

import pytest

import symbolize
from symbolize.formats.outputs import OUTPUTS
from symbolize.profile import Profile
from tests.support.messages import profile_pb2
from tests.support.pprof_writer import Line, Mapping, Place, profile

NAMES = [
    "py::<module>:/a/x.py",
    "py::<listcomp>:/a/x.py",
    "py::<module>:<frozen abc>",
    "java.util.ArrayList::<init>",
    "instance void [App] A.P+<Run>d__3::MoveNext()[Tier1]",
    "operator<=>",
    "Foo::(anonymous namespace)::bar(int)",
    "Array[Int]::map(fn)",
    "a.<init>(x)::y",
    "plain",
    "main.(*T).run",
    'gr\u00f6\u00dfe "x" & <b>',
    "=cmd|x",
    "\u4e2d\u6587",
]
"""Names of Python, Java, .NET, C++, Swift, Go, and of those who mean harm."""


@pytest.fixture(scope="module")
def made() -> Profile:
    """A profile whose functions have one name each, with values 1, 2, 3, ..."""
    stacks = [([Place(0x1000 + row, 1, (Line(name.encode(), b"", 1),))], [row + 1]) for row, name in enumerate(NAMES)]
    data = profile([Mapping(0x1000, 0x9000, 0, "/bin/app")], stacks, types=[("samples", "count")])
    message = profile_pb2.Profile.FromString(data)
    for function in message.function:
        function.system_name = function.name
    return symbolize.load(io.BytesIO(message.SerializeToString()))


def written(made: Profile, emit: str) -> bytes:
    """What is written as `emit`."""
    file = io.BytesIO()
    symbolize.write(made, file, emit=emit)
    return file.getvalue()


def shown(output: str, data: bytes, folder: Path) -> dict[str, float]:
    """The values by function that a reader of an output has."""
    text = "" if output in ("pprof", "go-pgo", "otlp", "parquet") else data.decode()
    if output in ("pprof", "go-pgo"):
        path = folder / "x.pb.gz"
        path.write_bytes(data)
        return pprof_top(path)
    if output == "otlp":
        again = symbolize.load(io.BytesIO(data))
        return {row.name: row.flat for row in again.top(100)}
    if output == "folded":
        rows = (re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line) for line in text.splitlines())
        return {row[1]: float(row[2]) for row in rows if row}
    if output == "speedscope":
        file = json.loads(text)
        names = [each["name"] for each in file["shared"]["frames"]]
        (only,) = file["profiles"]
        return {names[stack[-1]]: value for stack, value in zip(only["samples"], only["weights"], strict=True)}
    if output == "csv":
        return {
            row["function"].removeprefix("'"): float(row["flat samples/count"])
            for row in csv.DictReader(io.StringIO(text))
        }
    if output == "text":
        rows = (line.split(None, 4) for line in text.splitlines()[2:])
        return {name: float(flat) for flat, _, _, _, name in rows}
    if output == "parquet":
        from pyarrow import parquet

        table = parquet.read_table(io.BytesIO(data)).to_pydict()
        return dict(zip(table["function"], table["flat samples/count"], strict=True))
    raise AssertionError(output)


def pprof_top(path: Path) -> dict[str, float]:
    """What `go tool pprof -top` prints."""
    command = ["go", "tool", "pprof", "-top", "-nodecount=100", str(path)]
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    begin = next(number for number, line in enumerate(lines) if "flat%" in line)
    return {row[5]: float(row[0]) for row in (line.split(None, 5) for line in lines[begin + 1 :])}


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(
            each.name,
            marks=[pytest.mark.needs(need)]
            if (need := {"pprof": "go", "go-pgo": "go", "parquet": "pyarrow"}.get(each.name))
            else [],
        )
        for each in OUTPUTS
        if each.name not in ("html", "svg", "firefox", "llvm-profile")  # their tests read names out of them
    ],
)
def test_names_as_readers_show_them(output: str, made: Profile, tmp_path: Path) -> None:
    """Each function is there under its own name, with its value."""
    expected = {name: row + 1 for row, name in enumerate(NAMES)}
    assert shown(output, written(made, output), tmp_path) == expected


def test_linked_names_that_stay(made: Profile) -> None:
    """Only names that pprof would cut lose their linked names, and a profile that is read again is the same."""
    data = written(made, "pprof")
    message = profile_pb2.Profile.FromString(gzip.decompress(data))
    text = [each.decode() for each in message.string_table]
    kept = {text[each.name] for each in message.function if each.system_name}
    assert kept == {"a.<init>(x)::y", "plain", "main.(*T).run", "=cmd|x", "\u4e2d\u6587"}
    assert written(symbolize.load(io.BytesIO(data)), "pprof") == data


def test_negative_values() -> None:
    """speedscope refuses weights below 0 and flamegraph.pl lines with them: neither has any, and no value is lost."""
    stacks = [
        ([Place(0x1000 + row, 1, (Line(name.encode(), b"", 1),))], [value])
        for row, (name, value) in enumerate((("a", 1000), ("b", -400), ("c", -600)))
    ]
    data = profile([Mapping(0x1000, 0x9000, 0, "/bin/app")], stacks, types=[("space", "bytes")])
    made = symbolize.load(io.BytesIO(data))
    folded = written(made, "folded").decode().splitlines()
    assert folded == ["a 1000", "[negative];b 400", "[negative];c 600"]
    again = symbolize.load(io.BytesIO(written(made, "folded")))
    assert again.samples.values.sum() == 2000
    file = json.loads(written(made, "speedscope"))
    assert [each["name"] for each in file["profiles"]] == ["space", "space below 0"]
    assert [each["weights"] for each in file["profiles"]] == [[1000, 0, 0], [0, 400, 600]]
    assert [each["endValue"] for each in file["profiles"]] == [1000, 1000]
    assert file["activeProfileIndex"] == 0
    only_below = json.loads(written(made.filter(ignore="^a$"), "speedscope"))
    assert only_below["profiles"][only_below["activeProfileIndex"]]["weights"] == [400, 600]
