"""Rows of a batch for a data warehouse: one file for each profile, in its partition, whatever happens."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import symbolize
from symbolize.batch import warehouse
from symbolize.batch.engines.engine import Task, TaskFailure, TaskLimits, TaskOutcome
from symbolize.batch.manifest import State
from symbolize.batch.tasks import symbolize_inputs
from symbolize.batch.warehouse import MAX_VALUE, UNKNOWN, escaped, file_name
from symbolize.cli import main
from symbolize.core.files import unfinished_path
from symbolize.storage.backend import UNFINISHED_FOLDER
from symbolize.storage.urls import Unreachable
from tests.support.batch_engines import DirectEngine, plan, run_plan
from tests.support.batch_runs import ALL_DONE, BINS, LEDGER, SPECTRA, copies, files_below, make_inputs, run, trace
from tests.support.buckets import Bucket
from tests.support.docs_examples import DOCS, lay_out
from tests.support.fixture_files import FIXTURES
from tests.support.messages import profile_pb2
from tests.support.needs import package

parquet = package("pyarrow.parquet")

DAY = 86_400_000_000_000
CENSUS = FIXTURES / "profiles" / "go" / "census.pb.gz"


def made(day: int = 0, service: str = "", comment: str = "") -> bytes:
    """A profile of a day since 1970 (0: it does not say), with a label of its service and a comment."""
    strings = ["", "samples", "count", "main", "service.name", service, comment]
    message: Any = profile_pb2.Profile(time_nanos=day * DAY, string_table=[text.encode() for text in strings])
    message.sample_type.add(type=1, unit=2)
    message.function.add(id=1, name=3)
    message.location.add(id=1, address=16).line.add(function_id=1)
    sample = message.sample.add(value=[5], location_id=[1])
    if service:
        sample.label.add(key=4, str=5)
    if comment:
        message.comment.append(6)
    return gzip.compress(message.SerializeToString())


def put(folder: Path, **files: bytes) -> Path:
    """A folder with files; `__` in a name is a slash."""
    for name, data in files.items():
        path = folder / f"{name.replace('__', '/')}.pb.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def partitions(rows: Path) -> list[str]:
    """The folder of each file with rows."""
    return [name.rpartition("/")[0] for name in files_below(rows)]


def test_partitions(tmp_path: Path) -> None:
    """The day is that of the profile, of a folder, or of the file; the service that of a label, a comment, or a
    folder."""
    inputs = put(
        tmp_path / "in",
        **{
            "by_label": made(1, "shop/../x", "service.name=other"),
            "web__by_comment": made(2, comment="service.name=api"),
            "web__by_resource": made(2, comment="resource: service.name=res"),
            "web__by_folder": made(3),
            "raw__date=2026-02-03__service=a%20b__x": made(),
            "raw__date=2026-02-99__y": made(),
            "alone": made(4),
        },
    )
    os.utime(inputs / "raw" / "date=2026-02-99" / "y.pb.gz", (1e9, 1e9))
    rows = tmp_path / "rows"
    assert run_plan(plan(inputs, tmp_path / "out", [], rows=str(rows), service_label="service.name"))[0] == {
        **ALL_DONE,
        State.DONE: 7,
    }
    assert partitions(rows) == [
        "date=1970-01-02/service=shop%2F..%2Fx",
        "date=1970-01-03/service=api",
        "date=1970-01-03/service=res",
        "date=1970-01-04/service=web",
        f"date=1970-01-05/service={UNKNOWN}",
        "date=2001-09-09/service=raw",
        "date=2026-02-03/service=a%20b",
    ]


@pytest.mark.parametrize("seconds", [316_516_982_400.0, -1e12, 1e30])
def test_days_that_no_calendar_has(seconds: float) -> None:
    """Files may have any time of change: the year 12000 is no known day, and no reason for quarantine."""
    assert warehouse.day(seconds) == UNKNOWN


@pytest.mark.parametrize("value", ["", ".", "..", "a/../../b", "\x00\x1f\x7f", "ü" * 500, "\ud800", "%2e=", "x" * 5000])
def test_values_of_partitions(value: str) -> None:
    """Whatever a profile says, the value is one short part of a path without anything that leads elsewhere."""
    text = escaped(value)
    assert re.fullmatch(r"([A-Za-z0-9._~@-]|%[0-9A-F]{2})+", text)
    assert text not in (".", "..") and len(text) <= MAX_VALUE
    assert escaped(value) == text != escaped(value + "x")


@pytest.mark.parametrize("output", ["a/b.pb.gz", "..pb.gz", "a/_x.pb.gz", "ü/" + "ü" * 90 + ".pb.gz", "a b=c.pb.gz"])
def test_names_of_files(output: str) -> None:
    """They follow from the output alone, are short and plain, and none is hidden from engines."""
    assert re.fullmatch(r"[A-Za-z0-9-][A-Za-z0-9._-]{0,80}-[0-9a-f]{20}\.parquet", file_name(output))
    assert file_name(output) != file_name("x" + output)


def test_profile_that_moves(tmp_path: Path) -> None:
    """A profile that got another day or another service has one file; one that is gone is written again."""
    inputs, rows = put(tmp_path / "in", web__a=made(1), web__b=made(1)), tmp_path / "rows"
    given = plan(inputs, tmp_path / "out", [], rows=str(rows), service_label="service.name")
    run_plan(given)
    assert partitions(rows) == ["date=1970-01-02/service=web"] * 2
    put(inputs, web__a=made(2))
    run_plan(given)
    assert partitions(rows) == ["date=1970-01-02/service=web", "date=1970-01-03/service=web"]
    (rows / files_below(rows)[0]).unlink()
    run_plan(given)
    assert partitions(rows) == ["date=1970-01-02/service=web", "date=1970-01-03/service=web"]
    times = [(rows / name).stat().st_mtime_ns for name in files_below(rows)]
    run_plan(given)
    assert times == [(rows / name).stat().st_mtime_ns for name in files_below(rows)]
    assert not (tmp_path / "out" / ".symbolize" / "work" / "rows").exists() or not list(
        (tmp_path / "out" / ".symbolize" / "work" / "rows").iterdir()
    )


def test_other_folder_and_back(tmp_path: Path) -> None:
    """Each folder has one file for each profile, also after another folder, or none, was used meanwhile."""
    inputs = put(tmp_path / "in", a=made(1))
    folders = [tmp_path / "first", tmp_path / "second", None, tmp_path / "first"]
    for day, folder in enumerate(folders, 1):
        put(inputs, a=made(day))
        options = {"rows": str(folder), "service_label": "service.name"} if folder else {}
        run_plan(plan(inputs, tmp_path / "out", [], **options))
    assert partitions(tmp_path / "first") == [f"date=1970-01-05/service={UNKNOWN}"]
    assert partitions(tmp_path / "second") == [f"date=1970-01-03/service={UNKNOWN}"]


class DyingEngine(DirectEngine):
    """An engine whose workers do the tasks on inputs and die before they say so; `error` kills the driver too."""

    def __init__(self, error: type[BaseException] | None) -> None:
        super().__init__()
        self.error = error

    def run(self, tasks: Iterable[Task], limits: TaskLimits) -> Iterator[TaskOutcome]:
        """Run tasks."""
        for outcome in super().run(tasks, limits):
            if outcome.task.function is symbolize_inputs and any(each.profiles for each in outcome.value.results):
                if self.error is not None:
                    raise self.error
                yield TaskOutcome(outcome.task, None, TaskFailure.CRASH, "died", 1, 0.0)
            else:
                yield outcome


def test_worker_that_dies_behind_its_file(tmp_path: Path) -> None:
    """What a quarantined input has written is removed."""
    inputs, rows = put(tmp_path / "in", a=made(1)), tmp_path / "rows"
    given = plan(inputs, tmp_path / "out", [], rows=str(rows), service_label="service.name", retry_quarantined=True)
    assert run_plan(given, DyingEngine(None))[0] == {**ALL_DONE, State.QUARANTINED: 1, State.DONE: 0}
    assert files_below(rows) == []
    run_plan(given)
    assert partitions(rows) == [f"date=1970-01-02/service={UNKNOWN}"]


@pytest.mark.parametrize("is_known", [False, True])
def test_killed_between_file_and_record(is_known: bool, tmp_path: Path) -> None:
    """The file of a run that was killed is removed, even if its profile belongs elsewhere when the next run begins."""
    inputs, rows = put(tmp_path / "in", a=made(1)), tmp_path / "rows"
    given = plan(inputs, tmp_path / "out", [], rows=str(rows), service_label="service.name")
    if is_known:
        run_plan(given)
    for day in (2, 3):
        put(inputs, a=made(day))
        with pytest.raises(KeyboardInterrupt):
            run_plan(given, DyingEngine(KeyboardInterrupt))
    put(inputs, a=made(4))
    run_plan(given)
    assert partitions(rows) == [f"date=1970-01-05/service={UNKNOWN}"]


def test_leftovers_of_a_killed_worker(tmp_path: Path) -> None:
    """An unfinished file with rows is removed by a later run."""
    inputs, rows = put(tmp_path / "in", a=made(1)), tmp_path / "rows"
    left = unfinished_path(str(rows / UNFINISHED_FOLDER / "file"))
    Path(left).parent.mkdir(parents=True)
    Path(left).write_bytes(b"PAR1")
    os.utime(left, (1e9, 1e9))
    run_plan(plan(inputs, tmp_path / "out", [], rows=str(rows), service_label="x"))
    assert not os.path.exists(left) and len(files_below(rows)) == 1


def test_rows_of_a_kept_result(tmp_path: Path) -> None:
    """Where an output with names is kept (R279), the rows have them as well."""
    copies(LEDGER, tmp_path / "in", ["a.prof"])
    options = {"rows": str(tmp_path / "rows"), "service_label": "service.name"}
    names = []
    for binaries in (BINS, []):
        run_plan(plan(tmp_path / "in", tmp_path / "out", binaries, **options))
        (file,) = files_below(tmp_path / "rows")
        names.append({row["function"] for row in parquet.read_table(tmp_path / "rows" / file).to_pylist()})
    assert names[0] == names[1] and "main" in names[0]


def test_profiles_of_a_trace_and_inputs_inside(tmp_path: Path) -> None:
    """Each profile of an input has its file, and files with rows are no inputs."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "two.pftrace").write_bytes(trace(7, 8))
    given = plan(inputs, tmp_path / "out", BINS, rows=str(inputs / "rows"), service_label="x")
    for _ in range(2):
        assert run_plan(given)[0] == {**ALL_DONE, State.DONE: 1}
    names = {row["profile"] for name in files_below(inputs / "rows") for row in rows_in(inputs / "rows" / name)}
    assert names == {name for name in files_below(tmp_path / "out") if not name.startswith(".")}
    assert len(names) == 2


def rows_in(path: Path) -> list[dict[str, Any]]:
    """The rows of a file."""
    rows: list[dict[str, Any]] = parquet.read_table(path, partitioning=None).to_pylist()
    return rows


def test_without_rows_manifests_stay(tmp_path: Path) -> None:
    """The options of a batch without rows are those that existing manifests have."""
    plain = plan(tmp_path, tmp_path / "out", [])
    assert plain.options == plan(tmp_path, tmp_path / "out", [], service_label="other").options
    with_rows = plan(tmp_path, tmp_path / "out", [], rows=str(tmp_path / "rows"))
    assert plain.options != with_rows.options


def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An input inside the rows, an empty name, and a missing library are refused in one line."""
    inputs = put(tmp_path / "rows" / "in", a=made(1))
    arguments = ["batch", str(inputs), "--out", str(tmp_path / "out"), "--parquet"]
    for value, text in ((str(tmp_path / "rows"), "is inside --parquet"), ("", "--parquet has an empty name")):
        assert main([*arguments, value]) == 2
        assert text in capsys.readouterr().err
    monkeypatch.setattr(sys.modules["symbolize.formats.outputs"], "find_spec", lambda name: None)
    assert main([*arguments, str(tmp_path / "other")]) == 2
    assert "Parquet needs pyarrow: pip install pyarrow" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.full
def test_everything_in_a_bucket(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout by day and service in an object store: outputs mirror it, rows are partitioned by it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, path in (("web/c", CENSUS), ("db/l", LEDGER)):
        service, base = name.split("/")
        bucket.put(f"raw/date=2026-11-20/service={service}/{base}.pb.gz", data=path.read_bytes())
    bucket.put("raw/other/m.pb.gz", data=made())
    arguments = (f"{bucket.url}/raw/", "--out", f"{bucket.url}/named", "--parquet", f"{bucket.url}/rows")
    done = run(*arguments, "--binaries", BINS[0], "--jobs", "1", "--state", tmp_path / "state")
    assert done.returncode == 0, done.stderr
    keys = bucket.keys()
    today = bucket.system.modified(f"{bucket.url}/raw/other/m.pb.gz").strftime("%Y-%m-%d")
    assert [key for key in keys if key.startswith("named/")] == [
        "named/date=2026-11-20/service=db/l.pb.gz",
        "named/date=2026-11-20/service=web/c.pb.gz",
        "named/other/m.pb.gz",
    ]
    taken = symbolize.load(CENSUS).time_nanos // DAY
    assert taken
    assert sorted(key.rpartition("/")[0] for key in keys if key.startswith("rows/")) == sorted(
        ["rows/date=2026-11-20/service=db", "rows/date=2026-11-20/service=web", f"rows/date={today}/service=other"]
    )


def test_store_that_does_not_say_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input whose time cannot be asked now is unreachable, and done by the next run; its rows get no wrong day."""
    inputs, rows = put(tmp_path / "in", a=made()), tmp_path / "rows"
    given = plan(inputs, tmp_path / "out", [], rows=str(rows), service_label="x")
    monkeypatch.setattr("symbolize.batch.warehouse.local_path", lambda uri: None)

    def fail(uri: str) -> float:
        raise Unreachable(uri, "no answer")

    monkeypatch.setattr("symbolize.batch.warehouse.modified_at", fail)
    assert run_plan(given)[0] == {**ALL_DONE, State.QUARANTINED: 1, State.DONE: 0}
    assert files_below(rows) == []
    monkeypatch.setattr("symbolize.batch.warehouse.modified_at", lambda uri: None)
    assert run_plan(given)[0] == {**ALL_DONE, State.DONE: 1}
    assert partitions(rows) == [f"date={UNKNOWN}/service={UNKNOWN}"]


QUERY = """
SELECT profile, function, sum(flat) FROM read_parquet(?, hive_partitioning = true)
WHERE sample_type = ? GROUP BY ALL HAVING sum(flat) <> 0
"""


def tops(path: Path, kind: str, unit: str) -> dict[str, int]:
    """The own values of functions as `go tool pprof -top` shows them."""
    command = ["go", "tool", "pprof", "-top", "-symbolize=none", "-nodecount=100000", "-nodefraction=0"]
    options = [f"-sample_index={kind}", f"-unit={unit}", str(path)]
    text = subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout
    found: dict[str, int] = {}
    for line in text.partition("flat%")[2].splitlines()[1:]:
        flat, _, _, _, _, name = line.split(maxsplit=5)
        value = round(float(re.sub("[a-z]+$", "", flat)))
        if value:
            found[name.removesuffix(" (inline)").removesuffix(" (partial-inline)")] = value
    return found


@pytest.mark.needs("go", "duckdb")
def test_duckdb_sums_what_pprof_shows(tmp_path: Path) -> None:
    """Over all profiles, the sum of a function in the files is what `go tool pprof -top` shows of the outputs."""
    duckdb = package("duckdb")
    inputs = tmp_path / "in"
    for name, path in (("web/a.prof", LEDGER), ("db/b.pb.gz", SPECTRA), ("go/c.pb.gz", CENSUS)):
        (inputs / name).parent.mkdir(parents=True)
        shutil.copy(path, inputs / name)
    out = tmp_path / "out"
    run_plan(plan(inputs, out, BINS, rows=str(out / "rows"), service_label="service.name"))
    files = str(out / "rows" / "**" / "*.parquet")
    for name, kind, unit in (
        ("web/a.pb.gz", "cpu", "nanoseconds"),
        ("db/b.pb.gz", "cpu-clock_event", "count"),
        ("go/c.pb.gz", "cpu", "nanoseconds"),
    ):
        found = duckdb.execute(QUERY, [files, kind]).fetchall()
        ours = {function: int(value) for profile, function, value in found if profile == name}
        assert ours == tops(out / name, kind, unit)
    services = duckdb.execute("SELECT DISTINCT service FROM read_parquet(?, hive_partitioning = true)", [files])
    assert {service for (service,) in services.fetchall()} == {"web", "db", "go"}


@pytest.mark.process
def test_queries_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queries of the guide give what it shows."""
    duckdb = package("duckdb")
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    arguments = ["profiles/", "--binaries", "build/", "--out", "symbolized/", "--parquet", "rows/", "-q"]
    assert run(*arguments).returncode == 0
    guide = (DOCS / "guides" / "warehouse.md").read_text()
    shown = re.findall(r"```sql\n(.*?)```\n\n```text\n(.*?)\n```", guide, re.DOTALL)
    assert len(shown) == guide.count("```sql") == 3
    for query, wanted in shown:
        assert [" | ".join(map(str, row)) for row in duckdb.execute(query).fetchall()] == wanted.splitlines()


def test_every_format(tmp_path: Path) -> None:
    """Profiles of all formats have rows, as many files as outputs."""
    inputs = make_inputs(tmp_path / "in")
    given = plan(inputs, tmp_path / "out", BINS, rows=str(tmp_path / "rows"), service_label="x", per_task=8)
    run_plan(given)
    outputs = [name for name in files_below(tmp_path / "out") if name.endswith(".pb.gz")]
    assert (
        sorted({row["profile"] for name in files_below(tmp_path / "rows") for row in rows_in(tmp_path / "rows" / name)})
        == outputs
    )
    assert len(files_below(tmp_path / "rows")) == len(outputs)


def test_rows_of_inputs_that_are_gone(tmp_path: Path) -> None:
    """They are pruned with the outputs; those in another folder stay, with the record of their input, until it is
    named again (R404, retention)."""
    inputs = put(tmp_path / "in", a=made(1, "x"), b=made(2, "x"))
    rows, out = tmp_path / "rows", tmp_path / "out"
    given = {"rows": str(rows), "service_label": "service.name"}
    run_plan(plan(inputs, out, [], **given))
    (inputs / "a.pb.gz").unlink()
    run_plan(plan(inputs, out, [], rows=str(tmp_path / "other"), service_label="service.name", prune_outputs=True))
    assert partitions(rows) == ["date=1970-01-02/service=x", "date=1970-01-03/service=x"]
    run_plan(plan(inputs, out, [], **given, prune_outputs=True))
    assert partitions(rows) == ["date=1970-01-03/service=x"]
