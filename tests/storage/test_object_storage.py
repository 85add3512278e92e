"""Files in object stores appear whole or not at all, and can be mapped."""

import os
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from symbolize.core.errors import InputError, OutputError, UsageError
from symbolize.storage import backend
from symbolize.storage import backend as places
from symbolize.storage.backend import Storage
from tests.support.batch_runs import files_below
from tests.support.buckets import Bucket, impatient
from tests.support.needs import package
from tests.support.storage_files import BAD_NAMES, content, write


@pytest.fixture
def place(bucket: Bucket, tmp_path: Path) -> Storage:
    """A prefix of a bucket."""
    return Storage.of(f"{bucket.url}/out/", str(tmp_path / "scratch"))


def test_prefix(place: Storage, bucket: Bucket, tmp_path: Path) -> None:
    """Files are written, replaced, listed and removed; nothing of what was copied stays unfinished."""
    assert not place.is_local and list(place.names()) == [] and not place.exists("a/x")
    write(place, "a/x", b"1")
    write(place, "a/x", b"22")
    write(place, "y", b"")
    place.put(".symbolize/tables/t?é", place.read_file("a/x"))
    assert bucket.keys() == ["out/.symbolize/tables/t?é", "out/a/x", "out/y"]
    assert (place.size("a/x"), place.size("y"), place.size("z"), place.size("a")) == (2, 0, None, None)
    assert content(place, "a/x") == b"22" and content(place, "y") == b""
    with place.open("a/x") as stream:
        assert (stream.read(1), stream.read(), stream.read()) == (b"2", b"2", b"")
    assert sorted(place.names()) == ["a/x", "y"] and list(place.names("a/")) == ["a/x"]
    assert list(place.names(".symbolize")) == [".symbolize/tables/t?é"]
    place.remove("y")
    place.remove("y")
    assert not place.exists("y")
    assert content(pickle.loads(pickle.dumps(place)), "a/x") == b"22"
    assert all(name.endswith(".copy") for name in os.listdir(tmp_path / "scratch"))


def test_memory_place() -> None:
    """What holds of S3 holds of another file system."""
    package("fsspec").filesystem("memory").store.clear()
    place = Storage.of("memory://bucket/out")
    assert list(place.names()) == []
    write(place, "a/b/x", b"1")
    write(place, "y", b"22")
    assert sorted(place.names()) == ["a/b/x", "y"] and list(place.names("a")) == ["a/b/x"]
    assert (place.size("y"), place.size("z"), content(place, "y")) == (2, None, b"22")
    place.remove("z")
    place.remove("y")
    assert list(place.names()) == ["a/b/x"]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.full
def test_names_that_lead_out(place: Storage, bucket: Bucket, name: str) -> None:
    """No name leads out of a prefix."""
    with pytest.raises(OutputError, match="is not a valid name for a file"):
        write(place, name, b"")
    for ask in (place.read_file, place.size, place.remove, place.open):
        with pytest.raises(OutputError):
            ask(name)
    assert bucket.keys() == []


@pytest.mark.parametrize("limit", [places.ONE_REQUEST, 0])
def test_nothing_of_a_failed_write(
    place: Storage, bucket: Bucket, limit: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """When the writer fails, the old object stays and no upload is left open."""
    monkeypatch.setattr(places, "ONE_REQUEST", limit)
    write(place, "x", b"old")
    with pytest.raises(ZeroDivisionError), place.write("x") as file:
        file.write(b"new" * (2_000_000 + file.write(bytes(6 << 20)) // 0))
    assert content(place, "x") == b"old" and bucket.keys() == ["out/x"]
    assert files_below(tmp_path / "scratch") == [Path(place.read_file("x")).name]


def test_parts_of_an_upload_that_fails(place: Storage, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the store fails in the midst of an upload in parts, nothing is visible and the parts are gone."""
    monkeypatch.setattr(places, "ONE_REQUEST", 0)
    system = type(bucket.system)
    call, put = system._call_s3, system._put_file

    async def failing(self: Any, method: str, *args: Any, **kw: Any) -> Any:
        if method == "upload_part" and kw["PartNumber"] == 3:
            raise OSError(5, "Input/output error")
        return await call(self, method, *args, **kw)

    async def in_parts(self: Any, *args: Any, **kw: Any) -> Any:
        return await put(self, *args, **{**kw, "chunksize": 5 << 20})

    monkeypatch.setattr(system, "_call_s3", failing)
    monkeypatch.setattr(system, "_put_file", in_parts)
    system.clear_instance_cache()
    with pytest.raises(OutputError, match=f"{bucket.url}/out/x: cannot be written: Input/output error"):
        write(place, "x", bytes(12 << 20))
    assert bucket.keys() == []
    name = bucket.url.removeprefix("s3://")
    assert "Uploads" not in bucket.system.call_s3("list_multipart_uploads", Bucket=name)
    monkeypatch.setattr(system, "_call_s3", call)
    write(place, "x", bytes(12 << 20))
    assert place.size("x") == 12 << 20


def test_what_readers_see(place: Storage, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who watches sees no object, then all of it."""
    monkeypatch.setattr(places, "ONE_REQUEST", 1 << 20)
    seen: set[int | None] = set()
    done = threading.Event()

    def watch() -> None:
        watching = Storage.of(place.url)
        while not done.is_set():
            seen.add(watching.size("x"))
            assert list(watching.names()) in ([], ["x"])

    watcher = threading.Thread(target=watch)
    watcher.start()
    sizes = [100_000, 11 << 20]
    for size in sizes:
        with place.write("x") as file:
            for _ in range(10):
                file.write(bytes(size // 10))
                file.flush()
                time.sleep(0.005)
            file.write(bytes(size % 10))
        place.remove("x")
    done.set()
    watcher.join()
    assert None in seen and seen <= {None, *sizes}


def test_copies(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object is fetched once for all processes of a machine, again when it has changed, and the copies do not
    grow without end."""
    monkeypatch.setattr(backend, "LIMIT", 250)
    folder = tmp_path / "scratch"
    place = Storage.of(bucket.url, str(folder))
    write(place, "x", bytes(100))
    first = place.read_file("x")
    assert Storage.of(bucket.url, str(folder)).read_file("x") == first
    write(place, "x", b"1" * 100)
    assert place.read_file("x") != first and content(place, "x") == b"1" * 100
    write(place, "y", bytes(100))
    assert len({first, place.read_file("x"), place.read_file("y")}) == len(os.listdir(folder)) == 3
    monkeypatch.setattr(backend, "IN_USE", 0)
    os.utime(first, (1, 1))
    write(place, "z", bytes(100))
    place.read_file("z")
    assert len(os.listdir(folder)) == 2 and not os.path.exists(first)


def test_copies_of_an_own_folder(bucket: Bucket) -> None:
    """A place that was given no folder removes its copies in the end."""
    place = Storage.of(bucket.url)
    write(place, "x", b"1")
    path = place.read_file("x")
    assert os.path.exists(path)
    del place
    assert not os.path.exists(path)


def test_sweep(place: Storage, tmp_path: Path) -> None:
    """What killed runs left in the folder for copies goes after an hour."""
    write(place, "x", b"1")
    kept = place.read_file("x")
    for name in (".old", ".young", "other"):
        (tmp_path / "scratch" / name).write_bytes(b"")
    for name in (".old", "other"):
        os.utime(tmp_path / "scratch" / name, (1, 1))
    assert place.sweep() == 1
    assert files_below(tmp_path / "scratch") == sorted([Path(kept).name, "other", ".young"])


def test_errors(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing and what cannot be reached is told in a line."""
    place = Storage.of(bucket.url)
    with pytest.raises(InputError, match=f"^{bucket.url}/x: is missing$"):
        place.read_file("x")
    with pytest.raises(OutputError, match="s3://no-such-bucket/x: cannot be written: The specified bucket does not"):
        write(Storage.of("s3://no-such-bucket"), "x", b"")
    assert list(Storage.of("s3://no-such-bucket").names()) == []
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    impatient(monkeypatch)
    with pytest.raises(OutputError, match=f"^{bucket.url}/x: cannot be written: Could not connect"):
        write(place, "x", b"")
    for ask in (place.size, place.exists, place.read_file):
        with pytest.raises(InputError, match=f"^{bucket.url}/x: cannot be read: Could not connect"):
            ask("x")


@pytest.mark.parametrize("url", ["https://host/x", "s3://", "s3:///", "s3://me:secret@bucket/x", "ftp://host/x"])
def test_no_place_to_write(url: str) -> None:
    """URLs of what is no object store are refused at once, without passwords."""
    with pytest.raises(UsageError) as caught:
        Storage.of(url)
    assert "secret" not in str(caught.value)
