"""Stores that fail, in a batch: exit codes, and what is told."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from symbolize.batch.manifest import Manifest, State
from symbolize.cli import main
from tests.support.batch_engines import DirectEngine, plan, run_plan
from tests.support.buckets import Bucket, impatient
from tests.support.failing_store import FailingStore, hasty
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.store_proxy import FAILURES, StoreProxy

PERF = FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz"

SAID = {
    "denied": "access is denied",
    "no-bucket": "([Bb]ucket|missing|Not Found)",
    "overloaded": "(SlowDown|reduce|Service Unavailable|503|busy)",
    "breaks": "(disconnected|closed|reset|connect)",
    "hangs": "no answer in [0-9.]+ s",
    "slow": "no answer in [0-9.]+ s",
    "stops": "(disconnected|closed|payload|reset|connect|incomplete)",
    "down": "(connect|refused)",
    "credentials": "[Cc]redentials",
}
"""What is reported of a store that fails so."""


LINES = {
    "listing": "{}/in/?: ",
    "input": "{}/in/one.pb.gz: ",
    "output": "{}/out/one.pb.gz: ",
    "cache": "table cache: shared tables: ",
}
"""What the line about a store begins with, by what the store is for: the rows of the second table in
docs/batch-storage.md; those of the first are SAID."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The output where nothing fails."""
    path = tmp_path_factory.mktemp("undisturbed") / "one.pb.gz"
    assert main([str(PERF), "-b", str(BINARIES / "gcc-pie"), "-q", "--no-cache", "-o", str(path)]) == 0
    return path.read_bytes()


def runs(
    url: str,
    role: str,
    how: str,
    failing: AbstractContextManager[None],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Run a batch whose store at `url`, which has the input, fails in a role, and again when it does not any more."""
    (folder / "in").mkdir()
    (folder / "in/one.pb.gz").write_bytes(PERF.read_bytes())
    inputs = f"{url}/in/" if role in ("listing", "input") else str(folder / "in")
    out = f"{url}/out" if role == "output" else str(folder / "out")
    cache = ["--cache", f"{url}/tables"] if role == "cache" else ["--no-cache"]
    log = folder / "log"
    arguments = ["batch", inputs, "--out", out, *cache, "--state", str(folder / "state"), "--log-json", str(log)]
    arguments += ["-b", str(BINARIES / "gcc-pie")]
    with failing:
        code = main(arguments)
        errors = capsys.readouterr().err
        events = [json.loads(line) for line in log.read_text().splitlines()]
    is_missing = (role, how) == ("listing", "no-bucket")
    assert code == (0 if role == "cache" else 4 if is_missing else 1), errors
    line = f"^symbolize: (?:quarantined .unreachable.: )?{LINES[role].format(re.escape(url))}(.*)$"
    said = re.findall(line, errors, re.MULTILINE)
    assert said and re.search(SAID[how], said[0]), errors
    assert len(said) <= 2
    assert [event["reason"] for event in events if event.get("state") == "quarantined"] in ([], ["unreachable"])
    assert main(arguments) == 0, capsys.readouterr().err


@pytest.fixture
def _direct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches run in this process, and find nothing of the user."""
    monkeypatch.setattr("symbolize.cli.batch.open_engine", lambda _: DirectEngine())
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


UNLISTED = "down", "credentials"
"""Failures that begin with the listing, so that no input is read."""


@pytest.mark.usefixtures("_direct")
@pytest.mark.parametrize(
    ("role", "how"),
    [(role, how) for role in LINES for how in (*FAILURES, *UNLISTED) if role != "input" or how not in UNLISTED],
)
def test_a_store_that_fails(
    role: str,
    how: str,
    undisturbed: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a store that fails costs is reported, and nothing is lost for good: exit code 1, and the same command ends
    with the bytes of an undisturbed run once the store is back. A cache costs no more than time (rule R287)."""
    with FailingStore(monkeypatch) as store:
        store.put("/bucket/in/one.pb.gz", PERF.read_bytes())
        runs("memory://bucket", role, how, store.failing(role, how), tmp_path, capsys)
        made = store.get("/bucket/out/one.pb.gz") if role == "output" else (tmp_path / "out/one.pb.gz").read_bytes()
    assert made == undisturbed


FAILS: dict[str, Callable[[str, str], bool]] = {
    "listing": lambda method, path: "list-type" in path and "in%2F" in path,
    "input": lambda method, path: "/in/" in path and "list-type" not in path,
    "output": lambda method, path: "/out/" in path,
    "cache": lambda method, path: "/tables/" in path,
}
"""Which requests to an S3 server are for what."""


@contextmanager
def failing(role: str, how: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the S3 server at `endpoint` fail in a role while this lasts."""
    with monkeypatch.context() as patched, StoreProxy(endpoint, lambda *asked: how * FAILS[role](*asked)) as proxy:
        impatient(patched)
        patched.setattr("symbolize.storage.urls.call_within", hasty(lambda: proxy.failed[-1:] in (["hangs"], ["slow"])))
        patched.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1" if how == "down" else proxy.url)
        if how == "credentials":
            patched.delenv("AWS_ACCESS_KEY_ID")
            patched.delenv("AWS_SECRET_ACCESS_KEY")
        yield


@pytest.mark.process
@pytest.mark.usefixtures("_direct")
@pytest.mark.parametrize(
    ("role", "how"),
    [
        *(("listing", "denied"), ("input", "stops"), ("output", "overloaded"), ("cache", "hangs")),
        *(pytest.param("listing", how, marks=pytest.mark.full) for how in UNLISTED),
        *(pytest.param("input", how, marks=pytest.mark.full) for how in ("breaks", "slow")),
        pytest.param("output", "no-bucket", marks=pytest.mark.full),
    ],
)
def test_an_s3_server_that_fails(
    role: str,
    how: str,
    bucket: Bucket,
    endpoint: str,
    undisturbed: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same with a real client and server: each role, and each failure, in the words of the client."""
    bucket.put("in/one.pb.gz", data=PERF.read_bytes())
    runs(bucket.url, role, how, failing(role, how, endpoint, monkeypatch), tmp_path, capsys)
    bucket.system.clear_instance_cache()
    key = f"{bucket.url}/out/one.pb.gz"
    made = bucket.system.cat_file(key) if role == "output" else (tmp_path / "out/one.pb.gz").read_bytes()
    assert made == undisturbed


def test_a_store_that_cannot_be_listed_is_a_failure(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, with which the same command goes on, and not 4 as for names that stand for nothing. Once the store
    answers, the batch is done."""
    bucket.put("in/one.pb.gz", data=PERF.read_bytes())
    arguments = [f"{bucket.url}/in/", "--out", str(tmp_path / "out"), "--no-cache", "-j", "1"]
    with monkeypatch.context() as down:
        impatient(down)
        down.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        assert main(["batch", *arguments]) == 1
    assert f"symbolize: {bucket.url}/in: cannot be read: " in capsys.readouterr().err
    bucket.system.clear_instance_cache()
    assert main(["batch", "-q", f"{bucket.url}/none/", *arguments[1:]]) == 4
    counts, seen = run_plan(plan(arguments[0], tmp_path / "out", []))
    assert (counts[State.DONE], seen.problems) == (1, [])


def test_a_cache_that_fails_is_told_once(bucket: Bucket, tmp_path: Path) -> None:
    """It costs time, not answers, and one line for the batch."""
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.pb.gz").write_bytes(PERF.read_bytes())
    given = plan(tmp_path / "in", tmp_path / "out", [BINARIES / "gcc-pie"], cache="s3://no-such-bucket/tables")
    counts, seen = run_plan(given, DirectEngine())
    assert counts[State.DONE] == 3
    assert len([problem for problem in seen.problems if problem.startswith("table cache ")]) == 1


@pytest.mark.parametrize("is_denied", [False, True], ids=["down", "denied"])
def test_a_store_that_is_down_is_not_asked_for_each_input(
    is_denied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 16 inputs in a row the others wait for the next run, which does all; objects that are denied or missing say
    nothing of the others, which would never be reached behind them."""
    from symbolize.batch import tasks
    from symbolize.storage.urls import Denied, Unreachable

    (tmp_path / "in").mkdir()
    for number in range(30):
        (tmp_path / "in" / f"{number:02}.pb.gz").write_bytes(PERF.read_bytes())
    given = plan(tmp_path / "in", tmp_path / "out", [])

    def down(uri: str) -> object:
        raise (Denied if is_denied else Unreachable)(uri, "cannot be read")

    with monkeypatch.context() as patched:
        patched.setattr(tasks, "open_input", down)
        counts, seen = run_plan(given)
    assert (counts[State.QUARANTINED], counts[State.NEW]) == ((30, 0) if is_denied else (16, 14))
    assert bool([problem for problem in seen.problems if "16 inputs in a row" in problem]) != is_denied
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        assert manifest.count_failed() == counts[State.QUARANTINED]
    assert run_plan(given)[0][State.DONE] == 30
