"""Files at places appear whole or not at all, and nowhere else."""

import io
import os
import pickle
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.errors import InputError, OutputError
from symbolize.storage import backend as places
from symbolize.storage.backend import PIECE, ObjectStorage, Scratch, Storage, copy
from tests.support.batch_runs import files_below
from tests.support.buckets import Bucket
from tests.support.storage_files import BAD_NAMES, content, write


def test_folder(tmp_path: Path) -> None:
    """Files are written, replaced, listed and removed; nothing is made before."""
    place = Storage.of(str(tmp_path / "out"))
    assert place.is_local and list(place.names()) == [] and not place.exists("a/x")
    assert not (tmp_path / "out").exists()
    write(place, "a/x", b"1")
    write(place, "a/x", b"22")
    with place.write("y") as file:
        file.write(b"")
    place.put(".symbolize/tables/t", place.read_file("a/x"))
    assert (place.size("a/x"), place.size("y"), place.size("z"), place.size("a")) == (2, 0, None, None)
    assert content(place, "a/x") == b"22"
    assert place.read_file("a/x") == str(tmp_path / "out/a/x")
    assert sorted(place.names()) == ["a/x", "y"] and list(place.names("a")) == ["a/x"]
    assert list(place.names(".symbolize")) == [".symbolize/tables/t"]
    place.remove("y")
    place.remove("y")
    assert files_below(tmp_path / "out") == [".symbolize/tables/t", "a/x"]
    assert content(pickle.loads(pickle.dumps(place)), "a/x") == b"22"


def test_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it is there."""
    place = Storage.of(str(tmp_path))
    write(place, "x", b"1")

    def no_more(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(places, "open", no_more, raising=False)
    with pytest.raises(InputError, match="x: cannot be read: Too many open files"):
        place.open("x")


def test_links_are_no_files_of_a_place(tmp_path: Path) -> None:
    """What they lead to is somebody else's, and the names of a place may be removed."""
    write(Storage.of(str(tmp_path / "other")), "x", b"1")
    place = Storage.of(str(tmp_path / "out"))
    write(place, "tables/y", b"1")
    (tmp_path / "out" / "tables" / "folder").symlink_to(tmp_path / "other")
    (tmp_path / "out" / "tables" / "file").symlink_to(tmp_path / "other" / "x")
    os.mkfifo(tmp_path / "out" / "tables" / "pipe")
    assert [*place.names("tables")] == [*place.names()] == ["tables/y"]


def test_copies_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what they are copies of, until they have to make room; one that was just asked for stays."""
    monkeypatch.setattr("symbolize.storage.backend.LIMIT", 10)
    scratch = Scratch(str(tmp_path))
    for identity in "abc":
        with scratch.copy(identity) as file:
            file.write(identity.encode() * 4)
            assert scratch.find(identity) is None
        path = scratch.path(identity)
        assert Path(path).read_bytes() == identity.encode() * 4
        assert scratch.find(identity) == path
    assert len(files_below(tmp_path)) == 3
    for age, identity in ((100, "c"), (200, "b"), (300, "a")):
        os.utime(str(scratch.find(identity)), (time.time() - age, time.time() - age))
    assert scratch.find("a") is not None
    with scratch.copy("d"):
        pass
    assert [identity for identity in "abcd" if scratch.find(identity)] == ["a", "c", "d"]


def test_files_are_closed(tmp_path: Path) -> None:
    """No descriptor stays open, whatever was done."""
    place = Storage.of(str(tmp_path / "out"))
    before = len(os.listdir("/proc/self/fd"))
    with place.write("x") as file:
        file.write(b"1")
    place.put("y", place.read_file("x"))
    with place.open("y") as stream:
        assert stream.read() == b"1"
    with pytest.raises(ZeroDivisionError), place.write("z"):
        raise ZeroDivisionError
    assert [*place.names()] and place.size("x") and place.sweep() == 0
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("size", [0, 5, PIECE, PIECE + 1, 9 * PIECE])
def test_copies_of_what_grows(size: int) -> None:
    """Of a stream that has more bytes than its store said, a piece more is read: enough to tell."""
    target = io.BytesIO()
    assert copy(io.BytesIO(b"x" * size), target, PIECE) == len(target.getvalue()) == min(size, 2 * PIECE)


def test_missing_file(tmp_path: Path) -> None:
    """What cannot be read is told in a line."""
    place = Storage.of(str(tmp_path))
    (tmp_path / "d").mkdir()
    with pytest.raises(InputError, match="x: cannot be read: No such file"):
        place.read_file("x")
    with pytest.raises(InputError, match="d: is not a file"):
        place.read_file("d")


def test_nothing_of_a_failed_write(tmp_path: Path) -> None:
    """When the writer fails, the old file stays and nothing else is there."""
    place = Storage.of(str(tmp_path))
    write(place, "x", b"old")
    with pytest.raises(ZeroDivisionError), place.write("x") as file:
        file.write(b"new" * (100_000 + file.write(b"new") // 0))
    assert content(place, "x") == b"old" and files_below(tmp_path) == ["x"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_lead_out(tmp_path: Path, name: str) -> None:
    """No name leads out of a place, in whatever is asked."""
    place = Storage.of(str(tmp_path / "out"))
    with pytest.raises(OutputError, match="is not a valid name for a file"):
        write(place, name, b"")
    for ask in (place.read_file, place.size, place.remove):
        with pytest.raises(OutputError):
            ask(name)
    assert files_below(tmp_path) == []


def test_links_that_lead_out(tmp_path: Path) -> None:
    """A link in a place to elsewhere is not written through, neither as a folder nor as a file."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"mine")
    place = Storage.of(str(tmp_path / "out"))
    write(place, "x", b"")
    (tmp_path / "out/d").symlink_to(outside)
    (tmp_path / "out/dangling").symlink_to(outside / "new")
    (tmp_path / "out/f").symlink_to(outside / "file")
    for name in ("d/y", "d/e/y", "dangling/y"):
        with pytest.raises(OutputError):
            write(place, name, b"")
    write(place, "f", b"theirs")
    assert files_below(outside) == ["file"] and (outside / "file").read_bytes() == b"mine"
    assert content(place, "f") == b"theirs"


def test_place_that_cannot_be_written(tmp_path: Path) -> None:
    """Where no folder can be made, the error names the file and why."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="file/x: cannot be written: Not a directory"):
        write(Storage.of(str(tmp_path / "file")), "x", b"")
    place = Storage.of(str(tmp_path))
    write(place, "a", b"")
    with pytest.raises(OutputError, match="cannot be written"):
        write(place, "a/b", b"")
    assert files_below(tmp_path) == ["a", "file"]


def test_what_readers_see(tmp_path: Path) -> None:
    """Somebody who watches sees the old file or the new one, never a part."""
    place = Storage.of(str(tmp_path))
    old, new = b"o" * 100_000, b"n" * 300_000
    write(place, "x", old)
    seen: set[bytes] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.add(content(place, "x"))
            assert list(place.names()) == ["x"]

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(3):
        for data in (new, old):
            with place.write("x") as file:
                for start in range(0, len(data), 50_000):
                    file.write(data[start : start + 50_000])
                    time.sleep(0.002)
    done.set()
    watcher.join()
    assert seen <= {old, new} and seen


def test_sweep(tmp_path: Path) -> None:
    """What killed runs left goes after an hour; what is being written stays."""
    place = Storage.of(str(tmp_path))
    assert place.sweep() == 0
    with place.write("x") as file:
        [growing] = (tmp_path / ".symbolize/tmp").iterdir()
        left = growing.with_name(".left")
        left.write_bytes(b"")
        os.utime(left, (1, 1))
        assert place.sweep() == 1
        assert growing.exists() and not left.exists()
        file.write(b"1")
    assert content(place, "x") == b"1"


@given(st.text(alphabet="a./\0~", max_size=6))
def test_no_name_escapes(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    """A name is refused, or the file lies below the place."""
    folder = tmp_path_factory.mktemp("place")
    place = Storage.of(str(folder / "out"))
    try:
        write(place, name, b"")
    except OutputError:
        assert files_below(folder) == []
    else:
        assert files_below(folder) == [f"out/{name}"]


@pytest.mark.parametrize("data", [b"abc", b"abcdefgh", b""])
def test_objects_that_change_while_they_are_copied(
    data: bytes, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is longer or shorter than the listing said is no copy, and is not kept as one."""
    bucket.put("x", data=b"abcd")
    place = ObjectStorage(bucket.url, str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(places.urls, "open_url", lambda _: io.BytesIO(data))
        with pytest.raises(InputError, match="/x: changed while it was read"):
            place.read_file("x")
    assert Path(place.read_file("x")).read_bytes() == b"abcd"
