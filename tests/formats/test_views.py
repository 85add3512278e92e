"""What a profile can be written as beside pprof: folded stacks, speedscope, Firefox Profiler, SVG, text and tables."""

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symbolize
from symbolize.analysis import Filters, Sources, stacks_of
from symbolize.analysis.tables import list_table, top_table, tree_table
from symbolize.analysis.text import text_lines
from symbolize.core.errors import UsageError
from symbolize.core.expressions import compiled
from symbolize.core.terminal import cells_of
from symbolize.formats.outputs import OUTPUTS, Output, View, output_of
from symbolize.formats.pprof import reader as loader
from symbolize.profile import Profile
from tests.support.needs import package
from tests.support.pprof_writer import Line, Mapping, Place, profile
from tests.support.seeds import examples

HOSTILE = 'a;b\n<script>alert("&\x1b[31m")</script> \ud800c'
MAPPINGS = [Mapping(0x1000, 0x9000, 0x400, "/bin/app", "0123456789abcdef" * 2 + "ffffffff"), Mapping(0x10000, 0x20000)]
INLINED = Place(0x1010, 1, (Line("inner", "/src/a.c", 1), Line("outer", "/src/a.c", 2)))
MAIN = Place(0x2000, 1, (Line("main", "/src/b.c", 3),))
FOLDED = Place(0x3000, 1, (Line("twin", "", 0),), True)
RAW = Place(0x4000, 1)
STRANGE = Place(0x10010, 2, (Line(HOSTILE.encode(errors="surrogatepass"), HOSTILE.encode(errors="surrogatepass"), 7),))
STACKS = [
    ([INLINED, MAIN], [1, 10_000_000]),
    ([RAW, MAIN], [2, 20_000_000]),
    ([INLINED, MAIN], [1, 5_000_000]),
    ([FOLDED], [1, 1]),
    ([STRANGE, MAIN], [1, 2_000_000]),
]
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]


@pytest.fixture
def shown() -> Profile:
    """A profile with inlined, folded, unnamed and hostile frames."""
    return loader.load(memoryview(profile(MAPPINGS, STACKS, types=TYPES)), "test")


def writable(outputs: Iterable[Output]) -> list[Any]:
    """The names of outputs as parameters, with what each needs."""
    return [
        pytest.param(each.name, marks=pytest.mark.needs("pyarrow") if each.name == "parquet" else ())
        for each in outputs
    ]


def written(made: Profile, emit: str, **view: Any) -> bytes:
    """What is written as `emit`."""
    file = io.BytesIO()
    symbolize.write(made, file, emit=emit, view=View(**view))
    return file.getvalue()


def test_folded(shown: Profile) -> None:
    """A line a stack, from the root to the leaf, with what separates frames replaced in names."""
    assert written(shown, "folded").decode().splitlines() == [
        "main;outer;inner 15000000",
        "main;[app] 20000000",
        "twin 1",
        'main;a:b <script>alert("&\\x1b[31m")</script> \\xed\\xa0\\x80c 2000000',
    ]
    assert written(shown, "folded", sample_type="samples").decode().splitlines()[:2] == [
        "main;outer;inner 2",
        "main;[app] 2",
    ]


def test_speedscope(shown: Profile) -> None:
    """A profile for each sample type, the default one shown, with a frame for each inlined function and module."""
    file = json.loads(written(shown, "speedscope", title="cpu.prof"))
    assert (file["$schema"], file["name"]) == ("https://www.speedscope.app/file-format-schema.json", "cpu.prof")
    assert file["activeProfileIndex"] == 1
    assert [(each["name"], each["unit"], each["type"]) for each in file["profiles"]] == [
        ("samples", "none", "sampled"),
        ("cpu", "nanoseconds", "sampled"),
    ]
    frames = file["shared"]["frames"]
    assert {"name": "inner", "file": "/src/a.c"} in frames
    assert {"name": "[app]"} in frames
    for each, column in zip(file["profiles"], range(2), strict=True):
        assert each["startValue"] == 0
        assert each["endValue"] == sum(each["weights"]) == sum(values[column] for _, values in STACKS)
        assert len(each["samples"]) == len(each["weights"]) == 4
    stacks = [[frames[row]["name"] for row in stack] for stack in file["profiles"][1]["samples"]]
    assert stacks[:3] == [["main", "outer", "inner"], ["main", "[app]"], ["twin"]]


@pytest.mark.parametrize(
    ("unit", "speedscope", "firefox"),
    [
        ("ms", ("milliseconds", 3), ("tracing-ms", 3)),
        ("minutes", ("nanoseconds", 180e9), ("tracing-ms", 180e3)),
        ("kB", ("bytes", 3072), ("bytes", 3072)),
        ("byte", ("bytes", 3), ("bytes", 3)),
        ("cycles", ("none", 3), ("samples", 3)),
    ],
)
def test_units(unit: str, speedscope: tuple[str, float], firefox: tuple[str, float]) -> None:
    """Values have a unit that the viewer knows, however it is spelled."""
    shown = loader.load(memoryview(profile([], [([Place(1, 0, (Line("f"),))], [3])], types=[("x", unit)])), "x.pb")
    (only,) = json.loads(written(shown, "speedscope"))["profiles"]
    assert (only["unit"], only["weights"], only["endValue"]) == (speedscope[0], [speedscope[1]], speedscope[1])
    (thread,) = json.loads(written(shown, "firefox"))["threads"]
    assert (thread["samples"]["weightType"], thread["samples"]["weight"]) == (firefox[0], [firefox[1]])


def test_firefox(shown: Profile) -> None:
    """All tables are whole; frames have the address in their file, how they were inlined, and how they got names."""
    file = json.loads(written(shown, "firefox", title="cpu.prof"))
    (thread,) = file["threads"]
    texts, frames, functions = thread["stringArray"], thread["frameTable"], thread["funcTable"]
    for name in ("samples", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "markers"):
        table = thread[name]
        assert {len(column) for column in table.values() if isinstance(column, list)} == {table["length"]}, name
    assert file["meta"]["symbolicated"] is True
    library = file["libs"][0]
    assert (library["debugName"], library["codeId"]) == ("app", "0123456789abcdef" * 2 + "ffffffff")
    assert library["breakpadId"] == "67452301AB89EFCD0123456789ABCDEF0"

    def named(row: int) -> tuple[str, int, int, int | None, str]:
        """Name, address, inline depth, line and category of a frame."""
        name = texts[functions["name"][frames["func"][row]]]
        category = file["meta"]["categories"][frames["category"][row]]["name"]
        return name, frames["address"][row], frames["inlineDepth"][row], frames["line"][row], category

    stacks: defaultdict[tuple[Any, ...], float] = defaultdict(float)
    for node, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True):
        path, at = [], node
        while at is not None:
            path.append(named(thread["stackTable"]["frame"][at]))
            at = thread["stackTable"]["prefix"][at]
        stacks[tuple(path[:2])] += weight
    main = ("main", 0x1400, 0, 3, "Named")
    assert stacks[("inner", 0x410, 1, 1, "Inlined"), ("outer", 0x410, 0, 2, "Named")] == 15
    assert stacks[("[app]", 0x3400, 0, None, "Unsymbolized"), main] == 20
    assert stacks[(("twin", 0x2400, 0, None, "Folded"),)] == 1e-6
    assert thread["samples"]["weightType"] == "tracing-ms"
    symbols = thread["nativeSymbols"]
    inner, outer = (row for row in range(frames["length"]) if frames["address"][row] == 0x410)
    assert frames["nativeSymbol"][inner] == frames["nativeSymbol"][outer] is not None
    assert texts[symbols["name"][frames["nativeSymbol"][inner]]] == "outer"
    assert texts[thread["resourceTable"]["name"][functions["resource"][frames["func"][outer]]]] == "app"


def test_svg(shown: Profile) -> None:
    """A picture that is well-formed whatever names hold: a box for each node, with name, value and share."""
    root = ElementTree.fromstring(written(shown, "svg", title=HOSTILE))
    space = "{http://www.w3.org/2000/svg}"
    boxes = {
        (group.findtext(f"{space}title") or "").split(" (")[0]: group.find(f"{space}rect")
        for group in root.iter(f"{space}g")
    }
    assert {"all", "main", "outer", "inner", "[app]"} <= set(boxes)
    assert "twin" not in boxes, "too narrow to be seen"
    titles = [each.text for each in root.iter(f"{space}title")]
    assert "[app] (20.00ms, 54.05%)" in titles
    widths = {name: float(box.get("width") or 0) for name, box in boxes.items() if box is not None}
    assert widths["inner"] == pytest.approx(widths["all"] * 15 / 37, abs=0.1)
    assert not [*root.iter(f"{space}script")]


def test_text(shown: Profile) -> None:
    """The functions as `pprof -top` has them, with control characters made visible."""
    lines = written(shown, "text").decode().splitlines()
    assert lines[:3] == [
        "cpu: 37.00ms",
        "   flat   flat%      cum     cum%  function",
        "20.00ms  54.05%  20.00ms   54.05%  [app]",
    ]
    assert "\x1b" not in "".join(lines)
    base = loader.load(memoryview(profile(MAPPINGS, STACKS[:1], types=TYPES)), "base")
    assert written(shown, "text", base=base).decode().splitlines()[:3] == [
        "cpu: 37.00ms, base 10.00ms",
        "  change   change%     base    base%      new    new%  cum change  function",
        "+20.00ms  +200.00%      0ns    0.00%  20.00ms  54.05%    +20.00ms  [app]",
    ]
    note, title, _, row, *_ = written(shown, "text", base=base, normalize=True).decode().splitlines()
    assert (note, title) == ("# values are scaled to the total of the base", "cpu: 10.00ms, base 10.00ms")
    assert row.split() == ["-5.95ms", "-59.46%", "10.00ms", "100.00%", "4.05ms", "40.54%", "-5.95ms", "inner"]


DELTA = {"kept": 1000, "freed": -400, "gone": -600, "moved": 300, "moved back": -300}


def delta() -> Profile:
    """A difference of heaps: what `main` calls sums up to 0, and so does `swap`, which two samples have."""
    names = [*DELTA, "swap", "swap"]
    places = {name: Place(0x1000 + row, 1, (Line(name),)) for row, name in enumerate(["main", *names])}
    values = [*DELTA.values(), 50, -50]
    stacks = [([places[name], places["main"]], [value]) for name, value in zip(names, values, strict=True)]
    data = profile(MAPPINGS, stacks, types=[("inuse_space", "bytes")])
    return loader.load(memoryview(data), "test")


def test_tree_of_values_that_cancel() -> None:
    """Branches are ordered and left out by their size; figures keep their signs, and their sum is beside the total."""
    lines = [*text_lines(tree_table(stacks_of(delta()), 0.03))]
    assert lines[0] == "inuse_space: 2.64kB (net 0B)"
    names = ["main", "kept", "gone", "freed", "moved", "back", "swap"]
    assert [line.split()[-1] for line in lines[2:]] == names
    assert [line.split()[0] for line in lines[2:]] == ["0B", "1000B", "-600B", "-400B", "300B", "-300B", "0B"]


def test_pictures_of_values_that_cancel() -> None:
    """A width is the sum of absolute values below a frame, in the picture and in the page."""
    root = ElementTree.fromstring(written(delta(), "svg", title="delta"))
    space = "{http://www.w3.org/2000/svg}"
    boxes = {group.findtext(f"{space}title"): group.find(f"{space}rect") for group in root.iter(f"{space}g")}
    widths = {name: float(box.get("width") or 0) for name, box in boxes.items() if box is not None}
    assert root.findtext(f"{space}text") == "delta: inuse_space, 2.64kB (net 0B)"
    assert widths["main (0B, 0.00%)"] == widths["all (0B, 0.00%)"]
    assert widths["gone (-600B, -22.22%)"] == pytest.approx(widths["main (0B, 0.00%)"] * 600 / 2700, abs=0.1)
    assert widths["swap (0B, 0.00%)"] == pytest.approx(widths["main (0B, 0.00%)"] * 100 / 2700, abs=0.1)


def test_tables(shown: Profile) -> None:
    """CSV and Parquet have the same rows: function, module, file, and the values of all sample types."""
    rows = [*csv.DictReader(io.StringIO(written(shown, "csv").decode(), newline=""))]
    assert [row for row in rows if row["function"] == "main"] == [
        {
            "function": "main",
            "module": "app",
            "file": "/src/b.c",
            "flat samples/count": "0",
            "cumulative samples/count": "5",
            "flat cpu/nanoseconds": "0",
            "cumulative cpu/nanoseconds": "37000000",
        }
    ]
    parquet = package("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(written(shown, "parquet"))).to_pylist()
    assert [{key: str(value) for key, value in row.items()} for row in table] == rows


def of_two_files() -> Profile:
    """Two functions called `helper` in one module, each in a file of its own, 370 and 60; one is inlined too."""
    main = Place(0x1000, 1, (Line("main", "/src/b.c", 1),))
    first, second = (
        Place(0x1010 + row, 1, (Line("helper", file, 2),)) for row, file in enumerate(["/src/a.c", "/src/b.c"])
    )
    inlined = Place(0x1020, 1, (Line("helper", "/src/b.c", 2), Line("main", "/src/b.c", 7)))
    stacks = [([first, main], [370]), ([second, main], [40]), ([inlined], [20])]
    return loader.load(memoryview(profile(MAPPINGS, stacks, types=[("cpu", "nanoseconds")])), "test")


OF_FILES = {("helper", "/src/a.c"): 370, ("helper", "/src/b.c"): 60}


@pytest.mark.parametrize("emit", writable(output for output in OUTPUTS if output.name in ("csv", "parquet")))
def test_tables_tell_files_apart(emit: str) -> None:
    """A function is its name and its file, as `pprof -filefunctions` has it."""
    data = io.BytesIO(written(of_two_files(), emit))
    if emit == "csv":
        rows: list[Any] = [*csv.DictReader(io.TextIOWrapper(data, newline=""))]
    else:
        rows = package("pyarrow.parquet").read_table(data).to_pylist()
    found = {(row["function"], row["file"]): int(row["flat cpu/nanoseconds"]) for row in rows}
    assert found == {**OF_FILES, ("main", "/src/b.c"): 0}
    assert len(rows) == len(found)


def test_stacks_tell_files_apart() -> None:
    """Frames of speedscope and functions of the Firefox Profiler have the file that they are in on each stack."""
    speedscope = json.loads(written(of_two_files(), "speedscope"))
    frames, shown = speedscope["shared"]["frames"], speedscope["profiles"][0]
    sums: defaultdict[tuple[str, str], float] = defaultdict(float)
    for stack, weight in zip(shown["samples"], shown["weights"], strict=True):
        sums[frames[stack[-1]]["name"], frames[stack[-1]]["file"]] += weight
    assert sums == OF_FILES

    (thread,) = json.loads(written(of_two_files(), "firefox"))["threads"]
    texts, functions, sums = thread["stringArray"], thread["funcTable"], defaultdict(float)
    for node, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True):
        row = thread["frameTable"]["func"][thread["stackTable"]["frame"][node]]
        sums[texts[functions["name"][row]], texts[functions["fileName"][row]]] += weight * 1e6
    assert sums == pytest.approx(OF_FILES)


def test_one_frame_where_no_file_is_shown() -> None:
    """Stacks that read alike are one line and one box."""
    made = of_two_files()
    assert written(made, "folded").decode() == "main;helper 430\n"
    assert written(made, "svg").count(b"<title>helper (430ns, 100.00%)</title>") == 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("x.pb.gz", "pprof"),
        ("x", "pprof"),
        ("x.gz", "pprof"),
        ("dir.d/x", "pprof"),
        ("x.html", "html"),
        ("X.SVG", "svg"),
        ("x.collapsed", "folded"),
        ("x.speedscope.json", "speedscope"),
        ("x.firefox.json", "firefox"),
        ("x.txt", "text"),
        ("x.csv", "csv"),
        pytest.param("x.parquet", "parquet", marks=pytest.mark.needs("pyarrow")),
        ("-", "pprof"),
    ],
)
def test_endings(name: str, kind: str) -> None:
    """The ending decides, whatever its case."""
    assert output_of(name, None, "pprof").name == kind
    assert output_of(name, "csv", "pprof").name == "csv"


def test_unknown_ending(shown: Profile, tmp_path: Path) -> None:
    """Another ending is refused with those there are, and nothing is written."""
    with pytest.raises(UsageError, match=r"x\.csv\.gz: csv is not written compressed; leave out \.gz"):
        symbolize.write(shown, tmp_path / "x.csv.gz")
    with pytest.raises(
        UsageError, match=r"x\.jpg: no format has the ending \.jpg; the endings are \.pb\.gz, \.otlp, \.html"
    ):
        symbolize.write(shown, tmp_path / "x.jpg")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "emit", writable(output for output in OUTPUTS if not output.has_base and output.name != "pprof")
)
def test_views_without_a_base(shown: Profile, emit: str) -> None:
    """What shows one profile says what shows two."""
    with pytest.raises(UsageError, match=f"{emit} shows one profile; a difference can be shown as html, text"):
        written(shown, emit, base=shown)


@pytest.mark.parametrize("emit", writable(OUTPUTS))
def test_empty(emit: str) -> None:
    """A profile without samples, mappings or sample types can be written."""
    assert written(Profile(), emit) or emit in ("folded", "llvm-profile")


@pytest.mark.parametrize("emit", [output.name for output in OUTPUTS if not output.is_binary])
def test_terminal(emit: str) -> None:
    """No name steers the terminal that a view is printed on, and a picture stays XML."""
    name = "a\x00\x1b[31m\x9b\u2028\uffff;b"
    places = [Place(0x1000, 1, (Line(name, name, 1),)), Place(0x10000, 2)]
    mappings = [Mapping(0x1000, 0x9000, 0, "/bin/app"), Mapping(0x10000, 0x20000, 0, name)]
    hostile = loader.load(memoryview(profile(mappings, [(places, [1])], types=[(name, name)])), "test")
    text = written(hostile, emit, title=name).decode()
    assert all(each.isprintable() or each in "\r\n" for each in text)
    if emit == "svg":
        ElementTree.fromstring(text)


def test_large_values() -> None:
    """Sums beyond 64 bits are in tables as they are: whole in CSV, as floating-point numbers in Parquet."""
    made = loader.load(memoryview(profile(MAPPINGS, [([MAIN], [2**62])] * 4)), "test")
    assert written(made, "csv").decode().splitlines()[1] == f"main,app,/src/b.c,{2**64},{2**64}"
    parquet = package("pyarrow.parquet")
    assert parquet.read_table(io.BytesIO(written(made, "parquet"))).to_pylist()[0]["flat samples/count"] == 2.0**64


@pytest.mark.parametrize("name", ["=cmd|'/c calc'!A1", "+1", "-[NSString length]", "@SUM(A1)", "＝1"])
def test_no_cell_is_a_formula(name: str) -> None:
    """A spreadsheet runs no name of a CSV, whatever column it is in; numbers stay numbers, and Parquet as it is."""
    places = [Place(0x1000, 1, (Line(name, name, 1),))]
    made = loader.load(memoryview(profile([Mapping(0x1000, 0x9000, 0, name)], [(places, [-1])])), "test")
    heading, row = csv.reader(io.StringIO(written(made, "csv").decode(), newline=""))
    assert row[0] == row[2] == f"'{name}"
    assert not row[1].startswith(tuple("=+-@＝"))
    assert {each for title, each in zip(heading, row, strict=True) if title not in ("function", "module", "file")} == {
        "-1"
    }
    parquet = package("pyarrow.parquet")
    assert parquet.read_table(io.BytesIO(written(made, "parquet"))).to_pylist()[0]["function"] == name


def test_sample_types_of_one_name() -> None:
    """Both are in the tables."""
    made = loader.load(memoryview(profile(MAPPINGS, [([MAIN], [1, 2])], types=[("a/b", "c"), ("a", "b/c")])), "test")
    assert written(made, "csv").decode().splitlines() == [
        "function,module,file,flat a/b/c,cumulative a/b/c,flat a/b/c (2),cumulative a/b/c (2)",
        "main,app,/src/b.c,1,1,2,2",
    ]


def test_unknown_kind(shown: Profile) -> None:
    """A kind that there is not is refused with those there are."""
    with pytest.raises(UsageError, match="emit: 'jpg' is none of pprof, otlp, html, svg"):
        written(shown, "jpg")


HARD = HOSTILE.encode(errors="surrogatepass").decode(errors="backslashreplace")
TEXTS = st.sampled_from(["", "main", HARD, "\0\uffff"])
PLACES = st.builds(
    Place,
    st.sampled_from([0, 0x1000, 0x10010, 2**64 - 1]),
    st.integers(0, 2),
    st.lists(st.builds(Line, TEXTS, TEXTS, st.sampled_from([0, 1, -1, 2**31, 2**63 - 1])), max_size=3).map(tuple),
    st.booleans(),
)
VALUES = st.lists(st.sampled_from([0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)]), min_size=2, max_size=2)
FILTERS = st.builds(Filters, *[st.sampled_from(["", "m", "^$"])] * 4)


@examples(50)
@given(st.lists(st.tuples(st.lists(PLACES, max_size=4), VALUES), max_size=6), FILTERS)
def test_any_profile(stacks: list[tuple[list[Place], list[int]]], filters: Filters) -> None:
    """Whatever addresses, lines, names and values it has, a profile can be written in all kinds and printed."""
    made = loader.load(memoryview(profile(MAPPINGS, stacks, types=TYPES)), "test")
    for output in OUTPUTS:
        if output.name != "parquet":  # whose library is slow
            written(made, output.name, filters=filters or None, base=made if output.has_base else None)
    shown = stacks_of(made, filters or None).only_default()
    for lines in (
        text_lines(top_table(shown, 3, True), 40),
        text_lines(tree_table(shown, 0.01, True), 40),
        text_lines(tree_table(shown, 0.0)),
        text_lines(list_table(shown, compiled("REGEX", "."), Sources([]))),
    ):
        assert all(line.isprintable() for line in lines)
    narrow = [*text_lines(list_table(shown, compiled("REGEX", "."), Sources([])), 20)][1:]
    assert all(sum(map(cells_of, line)) <= 20 for line in narrow)
