"""Binaries in an object store: found by build id, fetched once, checked, and never listed."""

import errno
import gzip
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import symbolize
from symbolize.binaries.debuginfod import Debuginfod, FetchOptions, Limits
from symbolize.cli import main
from symbolize.core.errors import InputError, UsageError
from symbolize.elf import read_build_id
from symbolize.storage.servers import MAX_FAILURES, BinaryStore, SeveralClients, open_servers
from tests.support.batch_runs import SPECTRA, run
from tests.support.buckets import Bucket, impatient
from tests.support.debuginfod_servers import says
from tests.support.fixture_files import BINARIES
from tests.support.http_server import HttpServer
from tests.support.needs import package

FOLDER = BINARIES / "gcc-pie"
SPECTRA_FILE = FOLDER / "spectra"
ID = str(read_build_id(SPECTRA_FILE))
OTHER = "ab" * 20
KEYS = {
    "split": (f".build-id/{ID[:2]}/{ID[2:]}", f".build-id/{ID[:2]}/{ID[2:]}.debug"),
    "debuginfod": (f"buildid/{ID}/executable", f"buildid/{ID}/debuginfo"),
}


@pytest.fixture
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of downloads of a user without any."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "debuginfod_client"


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The requests to S3: the kind, and the key or prefix."""
    import s3fs

    found: list[tuple[str, str]] = []
    call = s3fs.S3FileSystem._call_s3

    async def noted(self: Any, method: str, *given: Any, **options: Any) -> Any:
        found.append((method, str(options.get("Key", options.get("Prefix", "")))))
        return await call(self, method, *given, **options)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", noted)
    return found


@pytest.mark.parametrize("layout", KEYS)
@pytest.mark.full
def test_found_by_build_id(layout: str, bucket: Bucket, downloads: Path, requests: list[tuple[str, str]]) -> None:
    """A file of either layout is fetched once; nothing but its own names is asked for."""
    executable, debug = KEYS[layout]
    bucket.put(f"symbols/{executable}", f"symbols/{debug}", data=SPECTRA_FILE.read_bytes())
    bucket.put(*(f"symbols/.build-id/{number:02x}/{OTHER[2:]}" for number in range(5)))
    requests.clear()
    for _ in range(2):
        with BinaryStore(f"{bucket.url}/symbols") as store:
            for kind in ("executable", "debuginfo"):
                fetched = store.fetch(ID.upper(), kind)  # type: ignore[arg-type]
                assert fetched.status == "found" and fetched.path == str(downloads / ID / kind)
                assert Path(fetched.path).read_bytes() == SPECTRA_FILE.read_bytes()
    assert sum(method == "get_object" for method, _ in requests) == 2
    assert requests and all(ID[2:] in key or key.rstrip("/") == "symbols" for _, key in requests)


def test_missing_is_remembered(bucket: Bucket, downloads: Path, requests: list[tuple[str, str]]) -> None:
    """What the store does not have is not asked for again, unless misses are to be refreshed."""
    bucket.put("other")
    with BinaryStore(bucket.url) as store:
        fetched = store.fetch(ID, "debuginfo")
    assert (fetched.status, fetched.failures) == ("missing", [])
    asked = len(requests)
    with BinaryStore(bucket.url) as store:
        known = store.known(ID, "debuginfo")
        assert store.fetch(ID, "debuginfo").status == "missing" == (known and known.status)
    assert len(requests) == asked
    bucket.put(KEYS["split"][1], data=SPECTRA_FILE.read_bytes())
    with BinaryStore(bucket.url, FetchOptions(refresh_misses=True)) as store:
        assert store.fetch(ID, "debuginfo").status == "found"


def test_misses_that_cannot_be_kept(bucket: Bucket, downloads: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk of downloads is no failure of what is not fetched anyway."""
    bucket.put("other")
    with BinaryStore(bucket.url) as store:
        monkeypatch.setattr(store.cache, "write_miss", full)
        fetched = store.fetch(ID, "debuginfo")
    assert (fetched.status, fetched.failures) == ("missing", [])


def full(*given: object) -> None:
    """No room."""
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("data", "status", "text"),
    [
        (b"<html>" + bytes(1000), "wrong", "refused: not an ELF file"),
        ((FOLDER / "ledger").read_bytes(), "wrong", f"wanted {ID}"),
        (SPECTRA_FILE.read_bytes()[:5000], "wrong", "refused: "),
        (b"", "wrong", "refused: an empty file came"),
        (SPECTRA_FILE.read_bytes() + bytes(1 << 20), "too-large", "too large: "),
    ],
    ids=["no ELF", "another", "cut", "empty", "large"],
)
def test_wrong_objects(data: bytes, status: str, text: str, bucket: Bucket, downloads: Path) -> None:
    """An object that is not the file is refused, and nothing of it stays; the other layout is tried."""
    bucket.put(KEYS["split"][0], data=data)
    limits = Limits(max_size=SPECTRA_FILE.stat().st_size)
    with BinaryStore(bucket.url, FetchOptions(limits=limits)) as store:
        fetched = store.fetch(ID, "executable")
    assert fetched.status == status
    assert any(text in attempt.outcome for attempt in fetched.attempts)
    assert bool(fetched.failures) == (status == "wrong")
    assert [path for path in downloads.rglob("*") if path.is_file() and path.stat().st_size > 4096] == []
    bucket.put(KEYS["debuginfod"][0], data=SPECTRA_FILE.read_bytes())
    with BinaryStore(bucket.url, FetchOptions(limits=limits)) as store:
        assert store.fetch(ID, "executable").status == "found"


@pytest.mark.parametrize("build_id", ["", "..", "../../etc/passwd", "abc", "a/b/", "z" * 40, "0" * 200])
@pytest.mark.full
def test_hostile_ids(build_id: str, bucket: Bucket, downloads: Path, requests: list[tuple[str, str]]) -> None:
    """What is no build id is asked of nobody."""
    with BinaryStore(bucket.url) as store:
        assert store.fetch(build_id, "debuginfo").status == "invalid"
        assert store.known(build_id, "debuginfo") is None
    assert requests == []


def lost(name: str, build_id: str, kind: str) -> str:
    """A request that is not answered."""
    raise InputError(name, "no answer")


def test_store_that_fails(bucket: Bucket, downloads: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some failures it is not asked any more, said once; nobody takes that for a miss."""
    impatient(monkeypatch)
    told: list[str] = []
    bucket.put("symbols/x")
    with BinaryStore(f"{bucket.url}/symbols", FetchOptions(tell=told.append)) as client:
        assert client.fetch(OTHER, "executable").status == "missing"
        monkeypatch.setattr(client, "_copy", lost)
        found = [client.fetch(f"{number + 1:02x}" * 20, "debuginfo") for number in range(MAX_FAILURES + 2)]
    assert [each.status for each in found] == ["failed"] * MAX_FAILURES + ["skipped"] * 2
    assert all(each.failures for each in found)
    assert len(told) == 1 and "not asked any more" in told[0]


@pytest.mark.parametrize("where", ["no server", "no bucket", "nothing there"])
@pytest.mark.full
def test_store_that_is_not_there(
    where: str, bucket: Bucket, downloads: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A mistyped URL, or a store that is down, is reported once and is no miss; when there is one, it is asked."""
    impatient(monkeypatch)
    url = "s3://no-such-bucket/symbols" if where == "no bucket" else f"{bucket.url}/symbols"
    told: list[str] = []
    with monkeypatch.context() as patch:
        if where == "no server":
            patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        with BinaryStore(url, FetchOptions(tell=told.append)) as client:
            for _ in range(2):
                fetched = client.fetch(ID, "debuginfo")
                assert (fetched.status, len(fetched.failures)) == ("skipped", 1)
            assert [is_up for is_up, _ in client.probe().values()] == [False]
    assert len(told) == 1 and url in told[0]
    if where == "nothing there":
        bucket.put(f"symbols/{KEYS['split'][1]}", data=SPECTRA_FILE.read_bytes())
        with BinaryStore(url) as client:
            assert client.fetch(ID, "debuginfo").status == "found"


def test_other_urls() -> None:
    """Only object stores are asked so."""
    for url in ("/srv/symbols", "http://example.com/symbols", "s3://", "s3://user:password@bucket/x"):
        with pytest.raises(UsageError):
            BinaryStore(url)


def test_store_and_server(bucket: Bucket, downloads: Path) -> None:
    """The store is asked first, then the servers; answers are joined."""
    bucket.put("other")
    with HttpServer(says(404)) as server, open_servers([server.url, bucket.url], FetchOptions()) as client:
        assert isinstance(client, SeveralClients)
        assert client.servers[0] == bucket.url
        assert client.known(ID, "debuginfo") is None
        fetched = client.fetch(ID, "debuginfo")
        assert fetched.status == "missing" and len(fetched.attempts) == 2
        assert [is_up for is_up, _ in client.probe().values()] == [True, True]
        bucket.put(KEYS["split"][0], data=SPECTRA_FILE.read_bytes())
        (future,) = client.prefetch([(ID, ["executable"], 1.0)])
        assert future.result()["executable"].path
        known = client.known(ID, "executable")
        assert known is not None and known.path
    with open_servers(["http://127.0.0.1:1"], FetchOptions()) as alone:
        assert isinstance(alone, Debuginfod)


def names(path: Path) -> set[str]:
    """The names of functions in a profile."""
    profile = symbolize.load(path)
    return {profile.strings.text(number) for number in profile.functions.name.tolist()}


def fill(bucket: Bucket) -> str:
    """A prefix with the binaries of a folder; its URL."""
    for path in FOLDER.iterdir():
        if path.is_file() and (build_id := read_build_id(path)):
            bucket.put(f"symbols/.build-id/{build_id[:2]}/{build_id[2:]}", data=path.read_bytes())
            bucket.put(f"symbols/.build-id/{build_id[:2]}/{build_id[2:]}.debug", data=path.read_bytes())
    return f"{bucket.url}/symbols/"


def test_one_profile(bucket: Bucket, downloads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--binaries URL` gives a profile the names that the same files in a folder do, and is named where files miss."""
    url = fill(bucket)
    for number, place in enumerate((str(FOLDER), url, url)):
        out = tmp_path / f"{number}.pb.gz"
        assert main([str(SPECTRA), "-b", place, "-o", str(out), "--no-cache", "-q"]) == 0
        assert gzip.decompress(out.read_bytes()) == gzip.decompress((tmp_path / "0.pb.gz").read_bytes())
    assert "resonance::LowPass::step" in names(tmp_path / "1.pb.gz")
    capsys.readouterr()
    assert main(["plan", str(SPECTRA), "-b", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.full
def test_serve(bucket: Bucket, downloads: Path) -> None:
    """The symbol server sends debug files that a store has."""
    package("starlette")
    from tests.support.symbol_server import symbol_server

    with symbol_server(["--binaries", fill(bucket), "--no-cache"]) as server:
        answer = server.ask("POST", "/symbolize", SPECTRA.read_bytes())
    assert answer.status == 200
    profile = symbolize.load(io.BytesIO(answer.body))
    texts = {profile.strings.text(row) for row in profile.functions.name.tolist()}
    assert any(text.startswith("resonance::LowPass::step(") for text in texts)


@pytest.mark.full
def test_batch(bucket: Bucket, downloads: Path, tmp_path: Path) -> None:
    """The driver fetches from the store, once for all; a store that fails makes the job unfinished."""
    url = fill(bucket)
    for name in ("a", "b"):
        (tmp_path / "in").mkdir(exist_ok=True)
        shutil.copy(SPECTRA, tmp_path / "in" / f"{name}.pb.gz")
    done = run(tmp_path / "in", "--binaries", url, "--out", tmp_path / "out", "--no-cache", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert all("resonance::LowPass::step" in names(tmp_path / "out" / f"{name}.pb.gz") for name in ("a", "b"))
    shutil.rmtree(downloads)
    arguments = (tmp_path / "in", "--out", tmp_path / "other", "--no-cache", "--binaries")
    gone = run(*arguments, f"{bucket.url}/mistyped")
    assert gone.returncode == 1 and "holds no files" in gone.stderr
    assert run(*arguments, url).returncode == 0
    assert "resonance::LowPass::step" in names(tmp_path / "other" / "a.pb.gz")
