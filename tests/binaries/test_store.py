"""What the index remembers from run to run."""

import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from symbolize.binaries import BinaryIndex, index_update, store
from tests.support.tiny_elf import elf, write

ID_A, ID_B, ID_C = "aa" * 20, "bb" * 20, "cc" * 20

Looks = Callable[[], list[str]]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Gives the names of the files below the roots that were opened since it was last asked, sorted."""
    opened: list[str] = []
    original = os.open

    def call(path: str, *arguments: int, **more: int) -> int:
        if not str(path).startswith("/proc/self/fd/"):  # what was just opened to see that it is a file
            opened.append(os.path.basename(path))
        return original(path, *arguments, **more)

    monkeypatch.setattr(index_update.os, "open", call)

    def since() -> list[str]:
        names, opened[:] = sorted(opened), []
        return names

    return since


def remember(root: Path, cache: str | Path) -> None:
    """Walk a folder as an earlier run did, whose database is closed: an index keeps it open until it is collected."""
    index = BinaryIndex([str(root)], cache)
    index.with_name("x")
    index.close()


def settle() -> None:
    """Wait until files that were just written may be remembered."""
    time.sleep(index_update.SETTLED_NS / 1e9 + 0.02)


def names_of(index: BinaryIndex, build_id: str) -> list[str]:
    """Where files with a build id lie below their root."""
    return [entry.relative for entry in index.with_build_id(build_id)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with binaries and other files, a while ago."""
    root = tmp_path / "root"
    write(root / "a/x", ID_A)
    write(root / "b/y", ID_B)
    (root / "notes").write_text("no binary")
    (root / "bad").write_bytes(elf(bytes(20))[:50])
    settle()
    return root


def test_unchanged_files_are_not_opened_again(root: Path, tmp_path: Path, looks: Looks) -> None:
    """The second run looks at no file, gives the same answers and tells the same problems (rule R140)."""
    cache = str(tmp_path / "cache")
    first = BinaryIndex([str(root)], cache)
    assert names_of(first, ID_A) == ["a/x"]
    assert looks() == ["bad", "notes", "x", "y"]
    second = BinaryIndex([str(root)], cache)
    assert second.with_build_id(ID_A) == first.with_build_id(ID_A)
    assert second.at_path("/b/y") == second.with_name("y") == second.with_build_id(ID_B) != []
    assert looks() == []
    assert first.problems == second.problems == [f"{root}/bad: ELF header is cut off"]
    assert [path.name for path in Path(cache).glob("*.sqlite")] == [f"binaries-{store.VERSION}.sqlite"]


def test_paths_are_those_of_the_root_as_given(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One folder under another name is known already, and its files go by that name."""
    cache = str(tmp_path / "cache")
    remember(root, cache)
    monkeypatch.chdir(tmp_path)
    index = BinaryIndex(["root"], cache)
    assert [entry.path for entry in index.with_name("x")] == ["root/a/x"]
    assert index.problems[0].startswith("root/bad: ")


def test_changes_are_noticed(root: Path, tmp_path: Path, looks: Looks) -> None:
    """Files that are new, changed, replaced, renamed or gone, and folders that are gone (rule R140)."""
    cache = str(tmp_path / "cache")
    write(root / "c/gone", ID_A)
    write(root / "d/kept", ID_A)
    write(root / "a/removed", ID_A)
    times = os.stat(root / "a/x")
    remember(root, cache)
    (root / "a/x").write_bytes(elf(bytes.fromhex(ID_C)))  # of the same size
    os.utime(root / "a/x", ns=(times.st_atime_ns, times.st_mtime_ns))
    shutil.rmtree(root / "c")
    (root / "a/removed").unlink()
    os.rename(root / "d", root / "e")
    (root / "new").symlink_to("b/y")
    write(root / "other", ID_B)
    os.replace(root / "other", root / "b/y")
    looks()
    index = BinaryIndex([str(root)], cache)
    assert names_of(index, ID_C) == ["a/x"]
    assert names_of(index, ID_A) == ["e/kept"]
    assert names_of(index, ID_B) == ["b/y"]
    assert index.with_name("new") == index.with_build_id(ID_B)
    assert index.with_name("gone") == []
    assert looks() == ["kept", "new", "x", "y"]


def test_a_file_that_just_changed_is_looked_at_again(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock has ticks: a file may change twice in one, and only a later look can be trusted (rule R140)."""
    monkeypatch.setattr(index_update, "SETTLED_NS", 60_000_000_000)
    write(tmp_path / "root/x", ID_A)
    cache = str(tmp_path / "cache")
    remember(tmp_path / "root", cache)
    looks()
    assert names_of(BinaryIndex([str(tmp_path / "root")], cache), ID_A) == ["x"]
    assert looks() == ["x"]


def test_without_a_cache_nothing_is_written(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder the index is of this process alone."""
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert names_of(BinaryIndex([str(root)]), ID_A) == ["a/x"]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("what", ["text", "cut", "zeros"])
def test_damaged_database(root: Path, tmp_path: Path, what: str) -> None:
    """A database that is damaged is told of, made anew, and used from then on."""
    cache = tmp_path / "cache"
    remember(root, cache)
    (database,) = cache.glob("*.sqlite")
    whole = database.read_bytes()
    middle = len(whole) // 2
    damaged = {"text": b"hello" * 2000, "cut": whole[: middle // 512 * 512 + 100], "zeros": whole[:100] + bytes(middle)}
    database.write_bytes(damaged[what])
    index = BinaryIndex([str(root)], cache)
    assert names_of(index, ID_A) == ["a/x"]
    assert index.problems[0].startswith(f"{database}: is damaged")
    index.close()
    again = BinaryIndex([str(root)], cache)
    assert names_of(again, ID_B) == ["b/y"]
    assert not any("sqlite" in problem for problem in again.problems)


def test_database_damaged_between_questions(root: Path, tmp_path: Path) -> None:
    """The same when it happens to a database that is in use."""
    cache = tmp_path / "cache"
    index = BinaryIndex([str(root)], cache)
    assert names_of(index, ID_A) == ["a/x"]
    index.close()
    (database,) = cache.glob("*.sqlite")
    database.write_bytes(b"no database at all" * 1000)
    assert names_of(index, ID_B) == ["b/y"]
    assert index.problems[0].startswith(f"{database}: is damaged")


def test_folder_that_cannot_be_used(root: Path, tmp_path: Path) -> None:
    """Where no database can be, the folders are read without one, and that is said."""
    (tmp_path / "cache").write_text("a file")
    index = BinaryIndex([str(root)], str(tmp_path / "cache"))
    assert names_of(index, ID_A) == ["a/x"]
    assert len([problem for problem in index.problems if "the folders are read without it" in problem]) == 1


def test_locked_database(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process writes, what is known answers; what is new is read without the database."""
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.1)
    cache = str(tmp_path / "cache")
    remember(root, cache)
    other = sqlite3.connect(store.database_path(cache))
    other.execute("BEGIN IMMEDIATE")
    index = BinaryIndex([str(root)], cache)
    assert names_of(index, ID_A) == ["a/x"]
    assert not any("sqlite" in problem for problem in index.problems)
    write(root / "new", ID_C)
    index = BinaryIndex([str(root)], cache)
    assert names_of(index, ID_C) == ["new"]
    assert "locked" in index.problems[0]
    other.rollback()
    other.close()


ASK = """
import sys
from symbolize.binaries import BinaryIndex
index = BinaryIndex([sys.argv[1]], sys.argv[2])
assert len(index.with_build_id("aa" * 20)) == 1
assert len(index.with_name("lib7.so")) == 1
assert index.problems == [], index.problems
"""


@pytest.mark.process
def test_several_processes_share_it(tmp_path: Path) -> None:
    """Processes that walk the same folders at once all get their answers."""
    for number in range(300):
        write(tmp_path / f"root/{number % 10}/lib{number}.so", f"{number + 1:040x}")
    write(tmp_path / "root/x", ID_A)
    command = [sys.executable, "-c", ASK, str(tmp_path / "root"), str(tmp_path / "cache")]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error


def test_two_roots_of_one_tree(root: Path, tmp_path: Path) -> None:
    """A folder and one inside it are remembered apart, and a file in both is one."""
    cache = str(tmp_path / "cache")
    inner = BinaryIndex([str(root / "a")], cache)
    assert names_of(inner, ID_A) == ["x"]
    assert inner.with_build_id(ID_B) == []
    both = BinaryIndex([str(root), str(root / "a")], cache)
    assert names_of(both, ID_A) == ["a/x"]
    assert both.at_path("/x") == both.with_build_id(ID_A)
    assert names_of(BinaryIndex([str(root / "a")], cache), ID_A) == ["x"]


def test_roots_that_nobody_asks_for_are_forgotten(root: Path, tmp_path: Path) -> None:
    """What was not asked for in a long time makes room."""
    cache = str(tmp_path / "cache")
    remember(root, cache)
    with sqlite3.connect(store.database_path(cache)) as connection:
        connection.execute("UPDATE root SET used = used - ?", (store.FORGOTTEN + 10,))
    connection.close()
    write(tmp_path / "other/x", ID_A)
    remember(tmp_path / "other", cache)
    connection = sqlite3.connect(store.database_path(cache))
    assert connection.execute("SELECT count(*) FROM file").fetchone() == (1,)
    connection.close()


def test_huge_sparse_file(tmp_path: Path) -> None:
    """Of a file that claims a terabyte only the headers are read, wherever they say that the rest lies."""
    path = write(tmp_path / "root/huge", ID_A)
    far = bytearray(path.read_bytes())
    far[40:48] = (1 << 39).to_bytes(8, "little")  # section headers in the middle of nowhere
    far[58:64] = bytes([64, 0, 9, 0, 1, 0])
    path.write_bytes(far)
    os.truncate(path, 1 << 40)
    started = time.process_time()
    index = BinaryIndex([str(tmp_path / "root")])
    assert names_of(index, ID_A) == ["huge"]
    assert index.checksum(index.with_build_id(ID_A)[0]) is None
    assert "too large" in index.problems[-1]
    assert time.process_time() - started < 2


def test_files_that_vanish_meanwhile(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that goes between the listing and the look is a problem of its own."""
    original = os.open

    def call(path: str, *arguments: int, **more: int) -> int:
        if os.path.basename(path) == "x":
            os.unlink(path)
        return original(path, *arguments, **more)

    monkeypatch.setattr(index_update.os, "open", call)
    index = BinaryIndex([str(root)])
    assert names_of(index, ID_B) == ["b/y"]
    assert index.with_build_id(ID_A) == []
    assert f"{root}/a/x: No such file or directory" in index.problems


def test_problems_are_counted_when_they_are_many(tmp_path: Path) -> None:
    """Hundreds of bad files make one sentence more than fifty."""
    for number in range(120):
        path = tmp_path / f"root/{number:03d}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\x7fELF")
    index = BinaryIndex([str(tmp_path / "root")])
    index.with_name("x")
    assert len(index.problems) == index_update.MAX_PROBLEMS + 1
    assert index.problems[-1].startswith(f"and {120 - index_update.MAX_PROBLEMS} more")


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """File names are bytes, in any encoding and with control characters."""
    for name in (b"\xff\xfe", b"line\nbreak", "ключ".encode(), b"quo'te\"; DROP TABLE file"):
        path = os.path.join(os.fsencode(tmp_path), b"root", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(elf(bytes.fromhex(ID_A)))
    index = BinaryIndex([str(tmp_path / "root")], str(tmp_path / "cache"))
    assert len(index.with_build_id(ID_A)) == 4
    for name in ("\udcff\udcfe", "line\nbreak", "ключ", "quo'te\"; DROP TABLE file"):
        assert [entry.relative for entry in index.with_name(name)] == [name]
    assert index.with_name("\ud800") == index.with_name("a\0b") == []


def test_asked_from_several_threads(root: Path, tmp_path: Path) -> None:
    """Decoding asks from threads of its own."""
    index = BinaryIndex([str(root)], str(tmp_path / "cache"))
    answers: list[list[str]] = []
    threads = [threading.Thread(target=lambda: answers.append(names_of(index, ID_A))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [["a/x"]] * 8


MEASURE = """
import sys, tracemalloc
from symbolize.binaries import BinaryIndex

first, root, cache = sys.argv[1:]
assert BinaryIndex([first], None).with_name("lib.so")  # imports what files are read with
index = BinaryIndex([root], cache)
tracemalloc.start()
assert len(index.with_name("lib7.so")) == 1
print(*tracemalloc.get_traced_memory())
"""
"""Prints the bytes that an index of a folder retains, and their peak; threads of other tests may allocate meanwhile."""


@pytest.mark.process
@pytest.mark.full
def test_memory_does_not_grow_with_the_files(tmp_path: Path) -> None:
    """The files are rows of the database, and none is an object of the program."""
    for number in range(3000):
        write(tmp_path / f"root/{number % 100}/lib{number}.so", f"{number + 1:040x}")
    write(tmp_path / "first/lib.so", "00" * 20)
    command = [sys.executable, "-c", MEASURE, *(str(tmp_path / name) for name in ("first", "root", "cache"))]
    retained, peak = map(int, subprocess.run(command, capture_output=True, check=True).stdout.split())
    assert retained < 150_000
    assert peak < 600_000


def test_sent_to_a_worker(root: Path, tmp_path: Path, looks: Looks) -> None:
    """A worker process asks the same database, and walks itself if that has gone or there is none."""
    cache = tmp_path / "cache"
    for folder in (str(cache), None):
        index = BinaryIndex([str(root / "b"), str(root)], folder)
        expected = [entry.path for entry in index.with_build_id(ID_A)]
        looks()
        assert [entry.path for entry in pickle.loads(pickle.dumps(index)).with_build_id(ID_A)] == expected
        assert (looks() == []) == (folder is not None)
    index = BinaryIndex([str(root / "b"), str(root)], str(cache))
    index.with_name("x")
    sent = pickle.dumps(index)
    index.close()
    shutil.rmtree(cache)
    remember(tmp_path / "other", str(cache))
    assert [entry.path for entry in pickle.loads(sent).with_build_id(ID_A)] == expected


def test_closed_and_asked_again(root: Path, tmp_path: Path) -> None:
    """A closed index opens its database again."""
    for folder in (str(tmp_path / "cache"), None):
        index = BinaryIndex([str(root)], folder)
        assert names_of(index, ID_A) == ["a/x"]
        index.close()
        assert names_of(index, ID_B) == ["b/y"]
        index.close()
        index.close()


def test_no_room_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a temporary database fails the index is kept in memory, and finds the same."""
    path = write(tmp_path / "server", ID_A)
    connect = store.connect

    def full(folder: str | None, *, in_memory: bool = False) -> sqlite3.Connection:
        if not in_memory:
            raise sqlite3.OperationalError("database or disk is full")
        return connect(folder, in_memory=in_memory)

    monkeypatch.setattr(store, "connect", full)
    index = BinaryIndex([str(tmp_path)])
    assert [entry.path for entry in index.with_build_id(ID_A)] == [str(path)]
    assert "disk is full" in index.problems[0]
    index.close()
