"""Profiles as rows of a data warehouse: their values, and what hostile profiles may put into them."""

import gzip
import hashlib
import io
from typing import Any

import pytest

from symbolize.analysis import function_totals, stacks_of
from symbolize.batch.warehouse import (
    MAX_LABELS,
    MAX_NAME,
    MAX_TEXT,
    WarehouseRow,
    common_labels,
    shown_labels,
    write_rows,
)
from symbolize.formats.pprof.reader import load
from tests.support.fixture_files import FIXTURES
from tests.support.messages import profile_pb2
from tests.support.needs import package
from tests.support.pprof_writer import Line, Mapping, Place, profile

parquet = package("pyarrow.parquet")

IDS = ("aa" * 20, "bb" * 20)
MAPPINGS = [Mapping(0x1000, 0x2000, 0, "/bin/app", IDS[0]), Mapping(0x3000, 0x4000, 0, "/old/app", IDS[1])]


def rows_of(data: bytes, row: WarehouseRow | None = None) -> list[dict[str, Any]]:
    """The rows of a pprof file."""
    file = io.BytesIO()
    write_rows(load(data, "p"), row or WarehouseRow("p.pb.gz", {}), file)
    rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
    return rows


def test_values_by_line_and_build() -> None:
    """Code has a row for each line, build and sample type; what is on a stack twice counts once, unnamed code is its
    module, and rows without any value are left out."""
    leaf = Place(0x1010, 1, (Line("inner", "/src/a.cc", 7), Line("outer", "/src/a.cc", 20)))
    again = Place(0x1020, 1, (Line("outer", "/src/a.cc", 20),))
    other = Place(0x3010, 2, (Line("outer", "/src/a.cc", 20),))
    bare = Place(0x1030, 1)
    stacks = [([leaf, again], (3, 0)), ([other, bare], (4, 400))]
    rows = rows_of(profile(MAPPINGS, stacks, [("samples", "count"), ("cpu", "nanoseconds")]))
    found = {
        (each["sample_type"], each["function"], each["build_id"], each["line"]): (each["flat"], each["cumulative"])
        for each in rows
    }
    assert found == {
        ("samples", "inner", IDS[0], 7): (3, 3),
        ("samples", "outer", IDS[0], 20): (0, 3),
        ("samples", "outer", IDS[1], 20): (4, 4),
        ("samples", "[app]", IDS[0], None): (0, 4),
        ("cpu", "outer", IDS[1], 20): (400, 400),
        ("cpu", "[app]", IDS[0], None): (0, 400),
    }
    assert len(rows) == len(found)
    assert {each["unit"] for each in rows if each["sample_type"] == "cpu"} == {"nanoseconds"}
    assert {(each["module"], each["profile"], each["time"]) for each in rows} == {("app", "p.pb.gz", None)}
    assert {each["file"] for each in rows} == {"/src/a.cc", None}


@pytest.mark.parametrize("name", ["go/census.pb.gz", "perf/spectra-gcc-pie.pb.gz"])
def test_sums_are_those_of_functions(name: str) -> None:
    """The flat values of a function add up to what `symbolize top` shows, in each sample type."""
    data = gzip.decompress((FIXTURES / "profiles" / name).read_bytes())
    loaded = load(data, name)
    totals = function_totals(stacks_of(loaded))
    for column, each in enumerate(loaded.sample_types):
        sums: dict[str, int] = {}
        for row in rows_of(data):
            if row["sample_type"] == loaded.strings.text(each.type):
                sums[row["function"]] = sums.get(row["function"], 0) + row["flat"]
        wanted = {row.name: row.flat for row in totals.heaviest(column) if row.flat}
        assert {function: value for function, value in sums.items() if value} == wanted


def test_order_does_not_depend_on_that_of_strings() -> None:
    """Profiles with the same code in another order have the same bytes."""
    places = [Place(0x1000 + 16 * number, 1, (Line(name, f"/src/{name}.c", 3),)) for number, name in enumerate("dacb")]
    files = []
    for order in (places, places[::-1]):
        file = io.BytesIO()
        write_rows(load(profile(MAPPINGS, [([place], (1,)) for place in order]), "p"), WarehouseRow("p", {}), file)
        files.append(file.getvalue())
    assert files[0] == files[1]


def test_columns_never_change() -> None:
    """A profile without samples has the columns of any other, and no rows."""
    schemas = []
    for stacks in ([], [([Place(0x1000, 1, (Line("main"),))], (1,))]):
        file = io.BytesIO()
        write_rows(load(profile(MAPPINGS, stacks), "p"), WarehouseRow("p", {"host": "h"}), file)
        table = parquet.read_table(file)
        schemas.append(table.schema)
        assert len(table) == len(stacks)
    assert schemas[0] == schemas[1]


def test_hostile_texts_and_values() -> None:
    """Control characters are escaped, long names are cut and stay apart, and a sum of more than 64 bits is null."""
    long = "f" * (MAX_NAME + 10)
    places = [Place(0x1000 + 16 * number, 1, (Line(name),)) for number, name in enumerate((long + "a", long + "b"))]
    huge = Place(0x1800, 1, (Line("huge\x1b[31m", "/src/\x00.c", 1 << 40),))
    stacks = [([place], (1,)) for place in places] + [([huge], ((1 << 63) - 1,)), ([huge, huge], ((1 << 63) - 1,))]
    rows = {row["function"]: row for row in rows_of(profile(MAPPINGS, stacks))}
    assert {*rows} == {"huge\\x1b[31m", *(name for name in rows if name.startswith(long[:MAX_NAME] + "~"))}
    assert len(rows) == 3
    assert rows["huge\\x1b[31m"]["flat"] is None and rows["huge\\x1b[31m"]["line"] is None
    assert rows["huge\\x1b[31m"]["file"] == "/src/\\x00.c"


def labelled(*samples: dict[str, str | int], comments: tuple[str, ...] = ()) -> bytes:
    """A pprof file of samples with labels."""
    message: Any = profile_pb2.Profile()
    strings: dict[str, int] = {"": 0}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings))

    message.sample_type.add(type=string("samples"), unit=string("count"))
    for labels in samples:
        sample = message.sample.add(value=[1])
        for key, value in labels.items():
            name = string(key.rstrip("+"))
            if isinstance(value, int):
                sample.label.add(key=name, num=value)
            else:
                sample.label.add(key=name, str=string(value))
    message.comment.extend(map(string, comments))
    message.string_table.extend(text.encode() for text in strings)
    return bytes(message.SerializeToString())


def test_labels_that_all_samples_have() -> None:
    """A label counts if each sample has it once with one value; attributes of the resource count too."""
    data = labelled(
        {"service": "shop", "pid": 7, "thread": "a", "twice": "x", "twice+": "x", "some": "s"},
        {"service": "shop", "pid": 7, "thread": "b", "twice": "x"},
        comments=("resource: host.name=h1", "resource: odd", "built=today"),
    )
    assert common_labels(load(data, "p")) == {"service": "shop", "pid": "7", "host.name": "h1"}
    assert common_labels(load(labelled({"a": "b"}, {}), "p")) == {}


def test_labels_are_bounded() -> None:
    """Neither many nor long labels make large rows."""
    labels = shown_labels({f"key{number}\n": "x" * (2 * MAX_TEXT) for number in range(2 * MAX_LABELS)})
    assert len(labels) == MAX_LABELS
    assert {len(value) for value in labels.values()} == {MAX_TEXT}
    leaf = [([Place(0x1000, 1, (Line("main"),))], (1,))]
    (row,) = rows_of(profile(MAPPINGS, leaf), WarehouseRow("p", labels))
    assert dict(row["labels"]) == labels


def test_long_names_recur() -> None:
    """A name that is too long is the same in the rows of every run: its beginning and 16 digits of its SHA-256."""
    shown = []
    for length in (MAX_NAME, MAX_NAME + 1):
        (row,) = rows_of(profile(MAPPINGS, [([Place(0x1010, 1, (Line("f" * length),))], (1,))]))
        shown.append(row["function"])
    digest = hashlib.sha256(b"f" * (MAX_NAME + 1)).hexdigest()
    assert shown == ["f" * MAX_NAME, "f" * MAX_NAME + "~" + digest[:16]]
