"""The Python interface: what arguments may be, what comes back, and that what goes in stays as it was."""

import builtins
import gzip
import io
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symbolize
from symbolize import InputError, OutputError, SymbolizeError, UsageError
from symbolize.analysis.frame_table import NumberColumns, frame_columns
from symbolize.batch.tasks import WorkerConfig
from symbolize.enrich.edits import Edits
from symbolize.formats import encode
from symbolize.options import Options
from symbolize.profile import Frame, Profile
from symbolize.symbols import Frames, TableCache
from symbolize.symbols import lookup as lookup_files
from tests.support.messages import profile_pb2
from tests.support.needs import package

FIXTURES = Path(__file__).parent.parent / "fixtures"
BINARIES = FIXTURES / "bin/gcc-pie"
SPECTRA = FIXTURES / "profiles/perf/spectra-gcc-pie.pb.gz"
LIBRARY = BINARIES / "libresonance.so"
SPLIT = FIXTURES / "bin/gcc-split"
SPLIT_ID = "af378328040b5c601337f2a6b48ca78874340d8b"
PROFILES = [
    SPECTRA,
    FIXTURES / "profiles/gperftools/ledger-gcc-pie.prof",
    *sorted((FIXTURES / "simpleperf").glob("*.proto"))[:4],
]


@pytest.fixture(scope="module")
def result() -> symbolize.Result:
    """A profile with inlined frames, and some without names."""
    return symbolize.symbolize(SPECTRA, BINARIES)


def contents(value: Any) -> Any:
    """All that a profile holds, to compare later; arrays are copied."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if is_dataclass(value):
        return [contents(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, dict):
        return {key: contents(each) for key, each in value.items()}
    return list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else value


@pytest.mark.process
def test_public_names_are_shown() -> None:
    """Tab completion asks `dir`, before anything was imported by its first use."""
    code = (
        "import symbolize; print(set(symbolize.__all__) <= set(dir(symbolize)), 'numpy' in __import__('sys').modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "False"]
    assert [name for name in symbolize.__all__ if not hasattr(symbolize, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'symbolise'"):
        symbolize.symbolise  # noqa: B018


def kind(value: object) -> str:
    """The same name in each process that runs tests; the representation of an iterator is not."""
    return type(value).__name__


@pytest.mark.parametrize("source", PROFILES, ids=lambda path: path.name)
def test_the_profile_is_not_changed(source: Path) -> None:
    """Neither `symbolize` nor `plan` changes its argument, so that both can be asked again with the same answer."""
    profile = symbolize.load(source)
    before = contents(profile)
    with symbolize.Symbolizer([BINARIES, FIXTURES / "simpleperf/binaries"], Options(annotate=True)) as symbolizer:
        plan = symbolizer.plan(profile)
        first = symbolizer.symbolize(profile)
        assert contents(profile) == before
        kept = contents(first.profile)
        second = symbolizer.symbolize(profile)
    assert encode(first.profile) == encode(second.profile)
    assert contents(first.profile) == kept
    assert contents(profile) == before
    assert plan.locations == first.report.locations


@pytest.mark.parametrize(
    "given", [str(BINARIES), BINARIES, [str(BINARIES)], (BINARIES,), {BINARIES}, iter([BINARIES])], ids=kind
)
def test_binaries(given: Any, result: symbolize.Result) -> None:
    """A path, a string, or a sequence of them."""
    assert encode(symbolize.symbolize(SPECTRA, given).profile) == encode(result.profile)


@pytest.mark.parametrize("given", ["folder", Path("folder"), TableCache("folder")], ids=kind)
def test_cache(given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder or a `TableCache`."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        symbolize.symbolize(SPECTRA, BINARIES, cache=given)
    assert TableCache("folder").stats().tables > 0


@pytest.mark.parametrize("given", ["http://127.0.0.1:1", ["http://127.0.0.1:1"]], ids=kind)
def test_servers(given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL or several; the client is closed with the symbolizer."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with symbolize.Symbolizer(servers=given) as symbolizer:
        report = symbolizer.symbolize(symbolize.load(SPECTRA)).report
    assert {failure.reason for failure in report.failures} == {symbolize.Reason.SERVER_FAILED}
    assert "127.0.0.1" in report.failures[0].place


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"binaries": 3}, "binaries: expected a path or a sequence of paths, not int"),
        ({"binaries": b"bin"}, "binaries: expected a path or a sequence of paths, not bytes"),
        ({"binaries": {"bin": 1}}, "binaries: expected a path or a sequence of paths, not dict"),
        ({"binaries": ["/", None]}, "binaries: expected paths in the sequence, not NoneType"),
        ({"cache": 8 << 30}, "cache: expected a folder, a URL or a TableCache, not int"),
        ({"cache": ["folder"]}, "cache: expected a folder, a URL or a TableCache, not list"),
        ({"servers": 80}, "servers: expected a URL, a sequence of URLs or a client, not int"),
        ({"servers": [80]}, "servers: expected URLs in the sequence, not int"),
        ({"options": {"demangle": "full"}}, "options: expected Options, not dict"),
    ],
    ids=str,
)
def test_wrong_types(arguments: dict[str, Any], message: str) -> None:
    """Anything else is a TypeError that names the argument."""
    with pytest.raises(TypeError) as raised:
        symbolize.Symbolizer(**arguments)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: symbolize.write("cpu.prof", "x.pb.gz"), "profile: expected a Profile or a Result, not str"),
        (
            lambda result: result.write(io.StringIO()),
            "destination: expected a path or a binary file object, not StringIO",
        ),
        (lambda result: result.top("3"), "count: expected a whole number, not str"),
        (lambda result: result.profile.top(2.5), "count: expected a whole number, not float"),
        (lambda result: result.profile.diff("a.prof"), "base: expected a Profile or a Result, not str"),
        (lambda result: result.profile.diff(result, True), "count: expected a whole number, not bool"),
        (lambda result: result.profile.diff(result, normalize=1), "normalize: expected True or False, not int"),
        (lambda result: result.profile.filter(focus=3), "focus: expected text, not int"),
        (lambda _: Profile.from_proto(b""), "message: expected a protobuf message of pprof's schema, not bytes"),
        (lambda _: symbolize.TableCache(3), "folder: expected a path, not int"),
        (lambda _: symbolize.TableCache("x", limit="1G"), "limit: expected a whole number, not str"),
        (lambda _: symbolize.Edits(synthesize="yes"), "synthesize: expected True or False, not str"),
        (lambda _: symbolize.Edits().apply(3), "profile: expected a Profile or a Result, not int"),
        (
            lambda _: symbolize.load(b"data"),
            "source: expected a path or a binary file object, not bytes; io.BytesIO makes one of bytes",
        ),
        *(
            (lambda _, name=each.name: Options(**{name: "yes"}), f"{each.name}: expected True or False, not str")
            for each in fields(Options)
            if isinstance(each.default, bool)
        ),
        (lambda result: result.write(3), "destination: expected a path or a binary file object, not int"),
        (lambda result: result.write("x.svg", view={}), "view: expected a View, not dict"),
        (lambda _: symbolize.merge(["cpu.prof"]), "profiles: expected a Profile or a Result, not str"),
        (lambda _: symbolize.merge([], side_by_side=1), "side_by_side: expected True or False, not int"),
        (lambda result: symbolize.merge(result.profile), "profiles: expected several Profiles, not Profile"),
        (lambda _: symbolize.lookup(LIBRARY, "0x2000"), "vaddrs: expected whole numbers"),
        (lambda _: symbolize.lookup(LIBRARY, ["0x2000"]), "vaddrs: expected whole numbers"),
        (lambda _: symbolize.lookup(3, [0x2000]), "binary: expected a path or a build id, not int"),
        (lambda _: symbolize.Edits(path_prefixes="a=b"), "path_prefixes: expected a list of pairs of folders, not str"),
        (
            lambda _: symbolize.Edits(path_prefixes=["ab"]),
            "path_prefixes: expected pairs of folders in the list, not str",
        ),
        (
            lambda _: symbolize.Edits(path_prefixes=[("a", 3)]),
            "path_prefixes: expected two texts in a pair, not ('a', 3)",
        ),
        (lambda _: symbolize.Edits(trim_paths="/build"), "trim_paths: expected a list of folders, not str"),
        (lambda _: symbolize.Edits(drop=re.compile("x")), "drop: expected text, not Pattern"),
        (lambda _: symbolize.Filters(focus=3), "focus: expected text, not int"),
        (lambda _: symbolize.View(filters="x"), "filters: expected Filters, not str"),
        (lambda _: symbolize.View(base="a.prof"), "base: expected a Profile or a Result, not str"),
        (lambda _: symbolize.Symbolizer().symbolize("a.prof"), "profile: expected a Profile or a Result, not str"),
        (lambda _: Options(edits={"drop": "x"}), "edits: expected Edits, not dict"),
        (
            lambda _: Options(proguard_maps=1),
            "proguard_maps: expected a path or a sequence of paths, not int",
        ),
        (
            lambda _: symbolize.load(SPECTRA, sample_labels="pid"),
            "sample_labels: expected a sequence of names, not str",
        ),
        (lambda _: symbolize.load_all(SPECTRA, choice="heap"), "choice: expected a Choice, not str"),
        (lambda result: symbolize.write_module_symbols(result, "x"), "results: expected Results, not Result"),
        (lambda result: symbolize.write_otlp([result], [], "x"), "profiles: expected LoadedProfiles, not Result"),
    ],
)
def test_wrong_types_of_all(call: Any, message: str, result: symbolize.Result) -> None:
    """A text where a list belongs, a result where its profile does: a TypeError that names the argument."""
    with pytest.raises(TypeError) as raised:
        call(result)
    assert str(raised.value).startswith(message)


def test_filters_are_checked_at_once() -> None:
    """When they are made, not when a profile has been read and looked up."""
    for name in ("focus", "ignore", "hide", "show", "tagfocus", "tagignore", "tagshow", "taghide"):
        with pytest.raises(UsageError, match=rf"^{name}: '\(' is not a regular expression"):
            symbolize.Filters(**{name: "("})


def test_what_can_be_pickled(result: symbolize.Result) -> None:
    """Data can. What has files open says what to do instead."""
    again = pickle.loads(pickle.dumps(result))
    assert encode(again.profile) == encode(result.profile)
    for value, advice in (
        (symbolize.Symbolizer(), "a Symbolizer has files open, and cannot be pickled: make one in each process"),
        (symbolize.load_all(SPECTRA)[0], "and cannot be pickled: pickle its `profile`"),
    ):
        with pytest.raises(TypeError, match=advice):
            pickle.dumps(value)


def test_wrong_values() -> None:
    """Right types with values that cannot be are errors of the library, without the names of options."""
    wrong: list[dict[str, Any]] = [
        {"binaries": "none"},
        {"servers": "ftp://x"},
        {"demangle": "all"},
        {"accept": "all"},
        {"proguard_maps": "none.txt"},
    ]
    for arguments in wrong:
        own = {name: arguments[name] for name in arguments if name in Options.__dataclass_fields__}
        with pytest.raises(symbolize.UsageError) as raised:
            symbolize.Symbolizer(options=Options(**own), **{name: arguments[name] for name in arguments.keys() - own})
        assert "--" not in str(raised.value)


def test_options_can_be_compared() -> None:
    """Whatever sequences they were made of: processes that serve are told apart by them."""
    made = {Options(proguard_maps=maps) for maps in ([], ())} | {Options(proguard_maps=maps) for maps in (["a"], "a")}
    assert len(made) == 2
    edits = [Edits([("/a", "/b")], ["/c"]), Edits((("/a", "/b"),), ("/c",))]
    assert len({Options(edits=each) for each in edits}) == 1
    assert {*Options.__dataclass_fields__}.isdisjoint(WorkerConfig.__dataclass_fields__)  # one checksum is of both


def test_messages_name_no_options() -> None:
    """Strings of the library hold no option of the command. Those of other programs are named with these."""
    options = {"--binaries", "--cache", "--debuginfod", "--pid", "--merge", "--again", "--out", "--proguard-map"}
    package = Path(symbolize.__file__).parent
    paths = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] != "cli"]
    found = [
        f"{path.relative_to(package)}: {option}" for path in paths for option in options if option in path.read_text()
    ]
    assert len(paths) > 100
    assert found == []


def test_one_call(tmp_path: Path, result: symbolize.Result) -> None:
    """`symbolize.symbolize` takes a path, a file object or a profile; `Result.write` writes what `write` does."""
    output = tmp_path / "out.pb.gz"
    result.write(output)
    symbolize.write(result.profile, tmp_path / "other.pb.gz")
    assert output.read_bytes() == (tmp_path / "other.pb.gz").read_bytes()
    with open(SPECTRA, "rb") as file:
        assert encode(symbolize.symbolize(file, BINARIES).profile) == encode(result.profile)
    assert encode(symbolize.symbolize(symbolize.load(SPECTRA), BINARIES).profile) == encode(result.profile)
    with pytest.raises(symbolize.UsageError, match="never overwritten"):
        result.write(SPECTRA)


def test_top(result: symbolize.Result) -> None:
    """The heaviest functions by their own value, in the default sample type, as the report has them."""
    assert result.top() == result.report.top
    assert result.top(3) == result.report.top[:3]
    everything = result.top(10_000)
    assert len(everything) > len(result.report.top)
    assert [each.flat for each in everything] == sorted((each.flat for each in everything), reverse=True)
    assert all(each.cumulative >= each.flat >= 0 for each in everything)
    assert sum(each.flat for each in everything) == result.report.sample_value  # unnamed code has rows too
    assert "[libm.so.6]" in [each.name for each in everything]
    assert result.top(0) == []
    assert symbolize.Result(Profile(), result.report, np.zeros(0, np.bool_)).top() == []


def test_reprs_are_short(result: symbolize.Result, tmp_path: Path) -> None:
    """An object of the interface at the prompt takes a line or two, however much it holds."""
    profile = symbolize.load(SPECTRA)
    assert repr(profile) == f"<Profile of {os.fspath(SPECTRA)!r}: 293 samples of 2 types, 173 locations, 5 mappings>"
    assert repr(Profile()) == "<Profile: 0 samples of 0 types, 0 locations, 0 mappings>"
    assert repr(result.report) == "<Report: 69.4 % of cpu-clock_event value is in named code, 115 of 173 locations>"
    assert repr(result) == f"<Result: {result.profile!r}, {result.report!r}>"
    assert repr(TableCache(tmp_path)) == f"TableCache({os.fspath(tmp_path)!r}, limit=8589934592)"
    with symbolize.Symbolizer("/dev/null") as symbolizer:
        assert repr(symbolizer) == "<Symbolizer: binaries ['/dev/null'], 0 open>"
    assert repr(symbolize.lookup(LIBRARY, [0x25B0, 0])) == "<Frames: 1 at 2 addresses>"


def frames_of(profile: Profile) -> list[list[Frame]]:
    """The stacks of a profile, read from its columns one index at a time."""
    text, samples, locations = profile.strings.text, profile.samples, profile.locations
    stacks = []
    for sample in range(len(samples)):
        stack = []
        for item in range(samples.location_offsets[sample], samples.location_offsets[sample + 1]):
            row = samples.locations[item]
            address, mapping = int(locations.address[row]), locations.mapping[row]
            file = text(profile.mappings.filename[mapping]) if mapping >= 0 else ""
            lines = range(locations.line_offsets[row], locations.line_offsets[row + 1])
            for line in lines:
                function = locations.lines.function[line]
                names = text(profile.functions.name[function]), text(profile.functions.filename[function])
                numbers = int(locations.lines.line[line]), int(locations.lines.column[line])
                stack.append(Frame(*names, *numbers, line != lines[-1], address, file))
            if not lines:
                stack.append(Frame("", "", 0, 0, False, address, file))
        stacks.append(stack)
    return stacks


def test_stacks(result: symbolize.Result) -> None:
    """A tuple of frames a sample, from leaf to root, inlined frames too."""
    stacks = list(result.profile.stacks())
    assert stacks == [tuple(stack) for stack in frames_of(result.profile)]
    assert any(frame.is_inlined for stack in stacks for frame in stack)
    assert any(not frame.function for stack in stacks for frame in stack)
    assert list(Profile().stacks()) == []


def rows_of(profile: Profile) -> list[tuple[Any, ...]]:
    """The rows that a table of the frames has."""
    stacks, values, samples = frames_of(profile), profile.samples.values.tolist(), profile.samples
    keys, texts, numbers = (each.tolist() for each in (samples.labels.key, samples.labels.text, samples.labels.number))
    labels = [
        {
            profile.strings.text(keys[i]): profile.strings.text(texts[i]) if texts[i] else numbers[i]
            for i in range(*each)
        }
        for each in pairwise(samples.label_offsets.tolist())
    ]
    return [
        (
            sample,
            depth,
            frame.function
            or (frame.mapping and "[" + frame.mapping.rpartition("/")[2].strip("[]") + "]")
            or "<unknown>",
            *(value or None for value in frame[:2]),
            *frame[2:6],
            frame.mapping or None,
            *values[sample],
            *(labels[sample].get(key) for key in LABELS),
        )
        for sample, stack in enumerate(stacks)
        for depth, frame in enumerate(stack)
    ]


COLUMNS = ["sample", "depth", "name", "function", "file", "line", "column", "is_inlined", "address", "mapping"]
LABELS = ["comm", "tid"]
VALUES = ["cpu-clock_sample/count", "cpu-clock_event/count"]


def test_arrow(result: symbolize.Result) -> None:
    """A row a frame, texts as dictionaries that are null where nothing is known."""
    package("pyarrow")
    table = result.profile.to_arrow()
    assert table.column_names == [*COLUMNS, *VALUES, *LABELS]
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == rows_of(result.profile)
    assert Profile().to_arrow().num_rows == 0


def test_pandas(result: symbolize.Result) -> None:
    """The same as a frame of pandas, texts as categories; its sums are those of the report."""
    package("pandas")
    table = result.profile.to_pandas()
    assert list(table.columns) == [*COLUMNS, *VALUES, *LABELS]
    cells = table.astype(object).where(table.notna(), None)
    assert list(cells.itertuples(index=False, name=None)) == rows_of(result.profile)
    own = table[table.depth == 0].groupby("name", observed=True)[VALUES[1]].sum()
    total = table.drop_duplicates(["sample", "name"]).groupby("name", observed=True)[VALUES[1]].sum()
    top = {row.name: (row.flat, row.cumulative) for row in result.top(1000)}
    assert {name: (own.get(name, 0), value) for name, value in total.items()} == top
    assert len(Profile().to_pandas()) == 0


def test_equal_names_of_columns(result: symbolize.Result) -> None:
    """Two sample types of one name are two columns, and strings that read alike are one category."""
    package("pandas")
    profile = result.profile.copy()
    profile.sample_types = [profile.sample_types[0]] * 2
    names = profile.functions.name.copy()
    names[:2] = profile.strings.add(b"\xff"), profile.strings.add(b"\\xff")
    profile.functions.name = names
    table = profile.to_pandas()
    assert list(table.columns[-4:-2]) == [VALUES[0], f"{VALUES[0]} 1"]
    assert len(set(table.function.cat.categories)) == len(table.function.cat.categories)


def labelled() -> Profile:
    """Three samples, the last without a stack, with labels of all kinds."""
    message = profile_pb2.Profile(
        string_table=[b"", b"n", b"count", b"request", b"a", b"b", b"size", b"bytes", b"line"]
    )
    message.sample_type.add(type=1, unit=2)
    message.location.add(id=1, address=16)
    for value, ids in ((5, [1]), (7, [1]), (100, [])):
        message.sample.add(location_id=ids, value=[value])
    first, second, third = message.sample
    first.label.add(key=3, str=4)
    first.label.add(key=3, str=5)
    first.label.add(key=6, num=512, num_unit=7)
    second.label.add(key=3, num=3)
    third.label.add(key=8, num=-1)
    return symbolize.load(io.BytesIO(message.SerializeToString()))


def test_labels_in_tables() -> None:
    """A column a key: numbers, or texts with commas between those of one sample; another column's name is avoided. A
    sample without a stack has a row, so that sums are those of the profile."""
    package("pandas"), package("pyarrow")
    profile = labelled()
    rows = profile.to_arrow().select(["name", "n/count", "label line", "request", "size"]).to_pylist()
    assert [list(row.values()) for row in rows] == [
        ["<unknown>", 5, None, "a,b", 512],
        ["<unknown>", 7, None, "3", None],
        ["[no stack]", 100, -1, None, None],
    ]
    table = profile.to_pandas()
    assert table.groupby("name", observed=True)["n/count"].sum().to_dict() == {"<unknown>": 12, "[no stack]": 100}
    assert table["size"].sum() == 512


def test_labels_called_as_columns() -> None:
    """Each label has a column of its own, whatever it is called."""
    message = profile_pb2.Profile(string_table=[b"", b"line", b"count", b"label line"])
    message.sample_type.add(type=1, unit=2)
    sample = message.sample.add(value=[5])
    sample.label.add(key=1, num=7)
    sample.label.add(key=3, num=8)
    columns = frame_columns(symbolize.load(io.BytesIO(message.SerializeToString())))
    found = {name: column.values.tolist() for name, column in columns.items() if isinstance(column, NumberColumns)}
    assert found == {"label line": [8], "label label line": [7]}


def test_messages_of_protobuf(result: symbolize.Result) -> None:
    """A profile becomes a message of the caller's class or of an own one, and a message of any such class a profile."""
    from google.protobuf import descriptor_pool

    profile = result.profile
    written = io.BytesIO()
    symbolize.write(result, written)
    data = gzip.decompress(written.getvalue())
    own, theirs = profile.to_proto(), profile.to_proto(profile_pb2.Profile)
    assert isinstance(theirs, profile_pb2.Profile)
    for message in (own, theirs):
        assert message.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True)
        assert profile_pb2.Profile.FromString(data) == profile_pb2.Profile.FromString(message.SerializeToString())
        again = io.BytesIO()
        symbolize.write(Profile.from_proto(message), again)
        assert gzip.decompress(again.getvalue()) == data
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("perftools.profiles.Profile")
    with pytest.raises(TypeError, match="message_class: expected a class of protobuf messages"):
        profile.to_proto(profile_pb2.Sample)


def test_top_filter_and_diff(result: symbolize.Result) -> None:
    """A profile has what the commands have: its heaviest functions, what expressions leave, what has changed."""
    profile = result.profile
    assert profile.top(5) == result.top(5) == result.report.top[:5]
    counts = profile.top(1000, sample_type="0")
    assert sum(row.flat for row in counts) == profile.samples.values[:, 0].sum()
    name = next(row.name for row in profile.top() if not row.name.startswith("["))
    left = profile.filter(focus=f"^{re.escape(name)}$")
    assert 0 < len(left.samples) < len(profile.samples)
    changes = profile.diff(left, 1000)
    rows = {row.name: row for row in profile.top(1000)}
    others = {row.name: row for row in left.top(1000)}
    assert changes == sorted(changes, key=lambda row: -abs(row.flat - row.base_flat))
    for change in changes:
        other = others.get(change.name)
        assert (change.flat, change.cumulative) == rows[change.name][1:]
        assert (change.base_flat, change.base_cumulative) == (other[1:] if other else (0, 0))
    assert name not in [row.name for row in changes if row.flat != row.base_flat]
    assert profile.diff(profile) == []
    assert symbolize.merge([result, result]).top(1)[0].flat == 2 * profile.top(1)[0].flat
    assert [repr(profile.samples), repr(profile.mappings)] == [
        f"<Samples: {len(profile.samples)} with 2 values each, {len(profile.samples.locations):,} frames and "
        f"{len(profile.samples.labels)} labels>",
        f"<Mappings: {len(profile.mappings)} rows of start, limit, file_offset, filename, build_id, has_functions, "
        "has_filenames, has_line_numbers, has_inline_frames>",
    ]


@pytest.mark.parametrize(("method", "module"), [("to_arrow", "pyarrow"), ("to_pandas", "pandas")])
def test_a_missing_extra(method: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    imported = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name == module:
            raise ImportError(name)
        return imported(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=rf"Profile\.{method} needs {module}: pip install {module}$"):
        getattr(Profile(), method)()


def lines_of(frames: Frames) -> list[list[tuple[bytes, int]]]:
    """Linked name and line of the frames at each address."""
    rows = list(zip([frames.functions.linkage[f] for f in frames.function], frames.line.tolist(), strict=True))
    offsets = frames.offsets.tolist()
    return [rows[begin:end] for begin, end in pairwise(offsets)]


NORMALIZE, CLIPPED = (b"_ZN9resonance9normalizeERSt6vectorIdSaIdEEd", 101), (b"_ZN9resonance7ClippedC2EPKcd", 48)


@pytest.mark.parametrize(
    "vaddrs", [[0x27B0, 0, 0x25B0, 0x25B0], np.array([0x27B0, 0, 0x25B0, 0x25B0], np.int32)], ids=["list", "int32"]
)
def test_lookup(vaddrs: Any, tmp_path: Path) -> None:
    """Frames in the order of the addresses, by a path or a build id, with and without kept tables."""
    wanted = [[NORMALIZE], [], [CLIPPED], [CLIPPED]]
    assert lines_of(symbolize.lookup(LIBRARY, vaddrs)) == wanted
    assert lines_of(lookup_files(LIBRARY, vaddrs)) == wanted
    for _ in range(2):
        build_id = "eebd284d49c6dd35a78e8d4171b37edf0f9a4424"
        assert lines_of(symbolize.lookup(build_id, vaddrs, BINARIES, cache=tmp_path)) == wanted
        assert lines_of(lookup_files([LIBRARY], vaddrs, cache=TableCache(tmp_path))) == wanted
    assert TableCache(tmp_path).stats().tables == 1
    assert len(symbolize.lookup(LIBRARY, [])) == 0


def test_lookup_with_a_debug_file() -> None:
    """The file at a path is completed by what the folders have of its build."""
    stripped, debug = SPLIT / "stripped/spectra", SPLIT / "debug/spectra.debug"
    wanted = lines_of(lookup_files([stripped, debug], [0x3000, 0x2F00]))
    assert wanted[0]
    assert lines_of(symbolize.lookup(stripped, [0x3000])) == [[]]
    assert lines_of(symbolize.lookup(stripped, [0x3000, 0x2F00], SPLIT)) == wanted
    for spelled in (SPLIT_ID, f"0x{SPLIT_ID.upper()}", SPLIT_ID.encode().hex()):
        assert lines_of(symbolize.lookup(spelled, [0x3000, 0x2F00], SPLIT)) == wanted


def test_lookup_errors() -> None:
    """Binaries that are not there or not readable, and addresses that are none."""
    for binary, message in (
        ("none", "none: No such file or directory"),
        (FIXTURES / "README.md", f"{FIXTURES / 'README.md'}: not an ELF file"),
        ("abcd", "abcd: no binary has this build id"),
    ):
        with pytest.raises(symbolize.InputError) as raised:
            symbolize.lookup(binary, [1])
        assert str(raised.value) == message
    with pytest.raises(symbolize.InputError, match="No such file"):
        lookup_files("none", [1])
    for files in ([LIBRARY, BINARIES / "spectra"], []):
        with pytest.raises(symbolize.UsageError, match="not the files of one binary"):
            lookup_files(files, [1])
    for vaddrs, error in (
        ([1.5], TypeError),
        (["1"], TypeError),
        ([-1], ValueError),
        ([1 << 64], ValueError),
        ([1, -1], ValueError),
        (np.array([-1]), ValueError),
        (np.array([[1]]), ValueError),
        (np.array([1.0]), TypeError),
    ):
        with pytest.raises(error, match="vaddrs: "):
            symbolize.lookup(LIBRARY, vaddrs)  # type: ignore[arg-type]


def test_frames_of_an_open_binary() -> None:
    """What `lookup` does for a binary that stays open."""
    from symbolize.elf import ElfImage
    from symbolize.symbols import Binary

    binary = Binary([ElfImage.open(LIBRARY)])
    assert lines_of(binary.answer([0x27B0, 0x25B0]).frames) == [[NORMALIZE], [CLIPPED]]
    assert lines_of(binary.answer(np.array([(1 << 64) - 1, 0x25B0], np.uint64)).frames) == [[], [CLIPPED]]
    binary.close()


def test_a_kept_table_that_changed_is_not_believed(tmp_path: Path) -> None:
    """It is made anew (R280, files that change)."""
    from symbolize.elf import ElfImage
    from symbolize.symbols import Binary

    symbolize.lookup(LIBRARY, [0x25B0], cache=tmp_path)
    binary = Binary([ElfImage.open(LIBRARY)], cache=TableCache(tmp_path))
    if not binary.is_cached():
        binary.table(np.array([0x25B0], np.uint64))
        binary.close()
        binary = Binary([ElfImage.open(LIBRARY)], cache=TableCache(tmp_path))
    assert binary.is_cached()
    (kept,) = tmp_path.rglob("*.symtab")
    os.truncate(kept, 4096)
    assert lines_of(binary.answer([0x27B0, 0x25B0]).frames) == [[NORMALIZE], [CLIPPED]]
    binary.close()


def test_types_are_published() -> None:
    """Type checkers of others read the annotations (PEP 561)."""
    assert (Path(symbolize.__file__).parent / "py.typed").exists()
    assert symbolize.load(io.BytesIO(SPECTRA.read_bytes())).source == ""


@pytest.mark.parametrize(
    "error",
    [InputError("a.prof", "is empty"), InputError("a.prof", "is cut", 7), OutputError("no space"), UsageError("x")],
)
def test_errors_get_from_process_to_process(error: SymbolizeError) -> None:
    """An error of a worker arrives as it was."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_views_from_python(tmp_path: Path) -> None:
    """A result is written in the format of its ending; a view has filters, a base, and the title of the profile."""
    result = symbolize.symbolize(PROFILES[1], BINARIES)
    result.write(tmp_path / "x.html")
    assert b"<title>ledger-gcc-pie.prof" in (tmp_path / "x.html").read_bytes()
    view = symbolize.View(filters=symbolize.Filters(focus="Parser"), sample_type="samples")
    result.write(tmp_path / "x.txt", view=view)
    first, second = (tmp_path / "x.txt").read_text().splitlines()[:2]
    assert first.startswith("# not proved to be what ran: ledger, ") and second.startswith("samples: ")
    with pytest.raises(UsageError, match="emit: 'svgg' is none of pprof, otlp, html"):
        result.write(tmp_path / "y", emit="svgg")


@pytest.mark.parametrize("source", [5, b"\x1f\x8b", ["a.prof"]])
def test_sources_that_are_none(source: Any) -> None:
    """What is neither a path nor a file is refused by its type."""
    for read in (symbolize.load, symbolize.load_all):
        with pytest.raises(TypeError, match="source: expected a path or a binary file object, not"):
            read(source)


def test_closed() -> None:
    """A closed Symbolizer says so."""
    symbolizer = symbolize.Symbolizer(BINARIES)
    symbolizer.close()
    with pytest.raises(UsageError, match="the Symbolizer is closed"):
        symbolizer.symbolize(symbolize.load(SPECTRA))


def test_closed_while_in_use() -> None:
    """As by another thread: whatever is read then raises the same error."""
    profile = symbolize.load(SPECTRA)
    symbolizer = symbolize.Symbolizer(BINARIES)
    with pytest.raises(UsageError, match="the Symbolizer was closed while it was in use"):
        symbolizer.symbolize(profile, lambda *_: symbolizer.close())
    symbolizer = symbolize.Symbolizer(BINARIES)
    symbolizer.symbolize(profile)
    with pytest.raises(UsageError, match="the Symbolizer was closed while it was in use"):
        symbolizer.symbolize(profile, lambda *_: symbolizer.close())


def in_child(job: Callable[[], object]) -> bytes:
    """What `job` gives in a forked process, as text, or the error that it raises; it may take some seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(10)
        try:
            answer = str(job())
        except Exception as error:
            answer = str(error)
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


@pytest.mark.process
def test_a_fork_beside_a_thread_in_the_index() -> None:
    """It waits for the thread, whose locks would stay locked in the child; there the folders are walked again."""
    profile = symbolize.load(SPECTRA)
    with symbolize.Symbolizer(BINARIES) as symbolizer, symbolize.Symbolizer(BINARIES) as other:
        expected = symbolizer.symbolize(profile).report.leaf_percent
        held, forked = threading.Event(), threading.Event()

        def work() -> None:
            with other.index._lock:
                held.set()
                forked.wait(0.2)

        thread = threading.Thread(target=work)
        thread.start()
        held.wait()
        assert in_child(lambda: other.symbolize(profile).report.leaf_percent) == str(expected).encode()
        forked.set()
        thread.join()
        assert symbolizer.symbolize(profile).report.leaf_percent == expected


@pytest.mark.process
@pytest.mark.parametrize("servers", [(), "http://127.0.0.1:1"])
def test_a_fork_while_it_is_in_use(servers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread was doing is never done in the child, and connections cannot be shared: an error says so."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    profile = symbolize.load(SPECTRA)
    with symbolize.Symbolizer(BINARIES, servers=servers or None) as symbolizer:
        answers: list[bytes] = []

        def fork(*_: object) -> None:
            answers.append(in_child(lambda: symbolizer.symbolize(profile)))

        if servers:
            fork()
        else:
            symbolizer.symbolize(profile, fork)
    assert set(answers) == {
        b"the Symbolizer was in use, or has connections to servers, when this process was forked: make another"
    }
