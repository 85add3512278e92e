"""What an output shows adds up to the values of the profile, whatever samples it has."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from functools import cache
from xml.etree import ElementTree

import pytest

import symbolize
from symbolize.analysis import Filters, stacks_of
from symbolize.analysis.tables import tree_table
from symbolize.analysis.text import text_lines
from symbolize.formats.outputs import COMPILERS, OUTPUTS, View
from symbolize.formats.pprof import reader as loader
from symbolize.profile import Profile
from symbolize.profile.sample_types import unit_of
from tests.support.fixture_files import FIXTURES
from tests.support.messages import profile_pb2
from tests.support.needs import package
from tests.support.page_data import read_data
from tests.support.pprof_writer import Line, Mapping, Place, profile

MAPPINGS = [Mapping(0x1000, 0x9000, 0, "/bin/app"), Mapping(0xA000, 0xB000, 0, "/lib/[no stack]")]
MAIN, STEP = Place(0x1000, 1, (Line("main", "/src/a.c", 3),)), Place(0x1010, 1, (Line("step", "/src/a.c", 9),))
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
MADE = {
    "part without stacks": [([STEP, MAIN], [1, 100]), ([], [7, 700]), ([], [2, 200])],
    "all without stacks": [([], [3, 300])],
    "unnamed code that reads alike": [([Place(0xA010, 2), MAIN], [1, 100]), ([], [9, 900])],
}
FOLDER = FIXTURES / "profiles"
FILES = [
    str(path.relative_to(FOLDER))
    for pattern in ("*/*.pb.gz", "*/*.prof", "*/*.otlp", "*/*.data")
    for path in sorted(FOLDER.glob(pattern))
]
ROUNDED = {"svg": 0.02, "text": 0.005}
"""How far outputs for people are off, which round values and leave out what is narrow."""


@cache
def subject(name: str) -> Profile:
    """A fixture or a made profile."""
    if name in MADE:
        return loader.load(memoryview(profile(MAPPINGS, MADE[name], types=TYPES)), name)
    return symbolize.load(FOLDER / name)


def total(made: Profile) -> int:
    """The values of the default sample type, added up."""
    return sum(made.samples.values[:, made.weight_column()].tolist())


def in_pprof(data: bytes, column: int) -> float:
    """As protobuf reads it; the default sample type is the last one (rule R274)."""
    message = profile_pb2.Profile.FromString(gzip.decompress(data))
    return sum(each.value[-1 if message.default_sample_type else column] for each in message.sample)


def in_otlp(data: bytes, column: int) -> float:
    """As it is read again: a profile for each sample type."""
    profiles = [each.profile for each in symbolize.load_all(io.BytesIO(data))]
    return total(profiles[column if len(profiles) > 1 else 0])


def in_html(data: bytes, column: int) -> float:
    """The own values of all nodes but the root, which is no frame."""
    _, columns = read_data(data.decode())
    assert columns["value.step"][0] > 0
    return float(columns[f"value.own.{column}"].sum())


def in_svg(data: bytes, column: int) -> float:
    """The share of the width that has frames on it."""
    root = ElementTree.fromstring(data)
    boxes = [
        each for group in root.iter("{http://www.w3.org/2000/svg}g") for each in group.iter() if "fill" in each.attrib
    ]
    rows: dict[str, float] = {}
    for box in boxes:
        rows[box.attrib["y"]] = rows.get(box.attrib["y"], 0) + float(box.attrib["width"])
    lowest, roots, *_ = sorted(rows, key=float, reverse=True)
    return rows[roots] / rows[lowest]


def in_speedscope(data: bytes, column: int) -> float:
    """The weights of stacks with frames."""
    shown = json.loads(data)["profiles"][column]
    return sum(weight for weight, stack in zip(shown["weights"], shown["samples"], strict=True) if stack)


def in_firefox(data: bytes, column: int) -> float:
    """The weights of samples with a stack in all threads, which are milliseconds of time."""
    tables = [thread["samples"] for thread in json.loads(data)["threads"]]
    return sum(
        weight
        for samples in tables
        for weight, stack in zip(samples["weight"], samples["stack"], strict=True)
        if stack is not None
    )


def in_csv(data: bytes, column: int) -> float:
    """The own values."""
    rows = [*csv.reader(io.StringIO(data.decode(), newline=""))]
    return sum(int(row[3 + 2 * column]) for row in rows[1:])


def in_parquet(data: bytes, column: int) -> float:
    """The own values."""
    table = package("pyarrow.parquet").read_table(io.BytesIO(data))
    return sum(table.column(3 + 2 * column).to_pylist())


def in_text(data: bytes, column: int) -> float:
    """The shares of own values."""
    lines = [line for line in data.decode().splitlines() if not line.startswith("#")]
    return sum(float(line.split()[1].rstrip("%")) for line in lines[2:]) / 100


TOTALS: dict[str, Callable[[bytes, int], float]] = {
    "pprof": in_pprof,
    "otlp": in_otlp,
    "html": in_html,
    "svg": in_svg,
    "folded": lambda data, _: sum(int(line.rpartition(" ")[2]) for line in data.decode().splitlines()),
    "speedscope": in_speedscope,
    "firefox": in_firefox,
    "text": in_text,
    "csv": in_csv,
    "parquet": in_parquet,
}


EMIT = pytest.mark.parametrize(
    "emit",
    [
        pytest.param(each.name, marks=pytest.mark.needs("pyarrow") if each.name == "parquet" else ())
        for each in OUTPUTS
        if each.name not in COMPILERS  # which have how often was sampled, whatever is shown
    ],
)


def shown_total(made: Profile, emit: str, view: View | None = None) -> float:
    """What an output adds up to, in the unit of the profile."""
    file = io.BytesIO()
    symbolize.write(made, file, emit=emit, view=view)
    column = made.weight_column()
    found = TOTALS[emit](file.getvalue(), column)
    unit = unit_of(made.strings.text(made.sample_types[column].unit))
    if emit in ROUNDED:
        return found * total(made)
    return found * 1e6 / unit.factor if emit == "firefox" and unit is not None and unit.kind == "time" else found


@EMIT
@pytest.mark.parametrize("name", [*MADE, *FILES])
def test_totals(name: str, emit: str) -> None:
    """No value of a profile is missing in an output, nor there twice: samples without a stack are a frame."""
    made = subject(name)
    assert shown_total(made, emit) == pytest.approx(float(total(made)), rel=ROUNDED.get(emit, 1e-9))


@EMIT
@pytest.mark.parametrize(("name", "key"), [("perf_data/threads.data", "tid"), ("perf_data/lives.data", "comm,pid")])
def test_totals_with_labels_on_stacks(name: str, key: str, emit: str) -> None:
    """Frames for labels take no value and give none; what is apart by them adds up to the same."""
    made, view = subject(name), View(filters=Filters(tagroot=key))
    assert shown_total(made, emit, view) == pytest.approx(float(total(made)), rel=ROUNDED.get(emit, 1e-9))
    if emit == "speedscope":
        file = io.BytesIO()
        symbolize.write(made, file, emit=emit, view=view)
        apart = json.loads(file.getvalue())["profiles"][len(made.sample_types) :]
        assert len(apart) > 1
        assert sum(each["endValue"] for each in apart) == total(made)


@pytest.mark.parametrize("name", [*MADE][:2])
def test_tree(name: str) -> None:
    """The branches of the root have all values, in a tree of callers too, and a frame says what has no stack."""
    made = subject(name)
    bare = sum(values[1] for stack, values in MADE[name] if not stack)
    for callers in (False, True):
        lines = [line.split() for line in text_lines(tree_table(stacks_of(made), 0, callers))]
        assert [f"{bare}ns", f"{100 * bare / total(made):.2f}%"] in [
            line[:2] for line in lines if line[-2:] == ["[no", "stack]"]
        ]
