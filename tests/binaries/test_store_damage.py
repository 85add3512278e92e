"""An index database that is damaged, made up, or no file (rule R281)."""

import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from symbolize.binaries import BinaryIndex, store, verify
from symbolize.binaries.debuginfod.cache import ClientCache
from symbolize.elf import ElfImage
from symbolize.symbols import TableCache
from symbolize.symbols.cache import facts_of
from tests.support.tiny_elf import write

BUILD_ID = "ab" * 20
OTHER = "cd" * 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a binary."""
    write(tmp_path / "root" / "x", BUILD_ID)
    return tmp_path / "root"


@pytest.fixture
def cache(tmp_path: Path, root: Path) -> str:
    """A cache folder with the index of the folder."""
    folder = str(tmp_path / "cache")
    assert found(root, folder) == (["x"], [])
    return folder


def found(root: Path, cache: str) -> tuple[list[str], list[str]]:
    """The files with the build id, and the problems."""
    index = BinaryIndex([str(root)], cache)
    entries = [entry.relative for entry in index.with_build_id(BUILD_ID)]
    problems = list(index.problems)
    index.close()
    return entries, problems


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE file SET build_id = '{OTHER}'",
        f"UPDATE file SET key = '{OTHER}'",
        "UPDATE file SET name = 'text'",
        "UPDATE file SET offers = 'many'",
        "UPDATE file SET link = 7",
        "UPDATE file SET build_id = CAST(x'ff' AS TEXT)",
        "UPDATE folder SET path = x'61'",
        "UPDATE folder SET linked = 'no'",
        "UPDATE root SET used = 'never'",
        "UPDATE root SET inode = 1.5",
        "DROP INDEX file_key",
        "DELETE FROM sqlite_master WHERE name = 'file_key'",
    ],
)
def test_rows_that_were_not_written(root: Path, cache: str, statement: str) -> None:
    """No row is believed whose checksum does not agree; the folders are walked anew, with one sentence at most."""
    connection = sqlite3.connect(store.database_path(cache))
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(statement)
    connection.commit()
    connection.close()
    entries, problems = found(root, cache)
    assert entries == ["x"]
    assert all("is damaged" in problem for problem in problems)
    assert len(problems) <= 1
    assert found(root, cache) == (["x"], [])


def test_an_index_that_misses_a_row(root: Path, cache: str) -> None:
    """A table whose rows are sound and whose index does not have them is damaged, too."""
    swap_index_entries(cache)
    assert "file_key" in verify(cache)
    assert found(root, cache) == (["x"], [])


def test_an_index_that_answers_by_another_row(root: Path, cache: str) -> None:
    """A row that an index gives for a key that it does not have is no answer, though it is sound."""
    swap_index_entries(cache)
    entries, problems = found(root, cache)
    assert entries == ["x"]
    assert ["it is removed and made anew" in problem for problem in problems] == [True]


def swap_index_entries(cache: str) -> None:
    """Give the only row another key, of which the index of keys does not know. SQLite or we notice."""
    path = store.database_path(cache)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        (kept,) = connection.execute("SELECT * FROM sqlite_master WHERE name = 'file_key'").fetchall()
        connection.execute("DELETE FROM sqlite_master WHERE name = 'file_key'")
        connection.commit()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        store.update(connection, "file", 1, "key", OTHER)
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", kept)
        connection.commit()


def test_the_whole_is_checked_after_a_start(root: Path, cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of other folders are not read again before the machine was started anew, which may have lost some."""
    other = root.parent / "other"
    write(other / "y", OTHER)
    assert BinaryIndex([str(other)], cache).with_build_id(OTHER)
    with closing(sqlite3.connect(store.database_path(cache))) as connection:
        connection.execute("UPDATE file SET size = 7 WHERE name = CAST('y' AS BLOB)")
        connection.commit()
    assert found(root, cache) == (["x"], [])
    monkeypatch.setattr(store, "boot_id", lambda: "another")
    entries, problems = found(root, cache)
    assert entries == ["x"]
    assert ["a row of file does not agree" in problem for problem in problems] == [True]


@pytest.mark.parametrize("position", [18, 19])
def test_versions_of_the_format(root: Path, cache: str, position: int) -> None:
    """A header that makes SQLite only read a database, or refuse it, is damaged: it would stay so for good."""
    path = Path(store.database_path(cache))
    header = bytearray(path.read_bytes())
    header[position] = 0x40
    path.write_bytes(header)
    (entries, problems) = found(root, cache)
    assert entries == ["x"]
    assert [problem.partition(": ")[2] for problem in problems] == [
        "is damaged (its header is not the one that was made); it is removed and made anew"
    ]
    assert found(root, cache) == (["x"], [])


def test_verify(root: Path, cache: str) -> None:
    """The command that looks after the cache finds damage, and removes the index."""
    assert verify(cache) == ""
    connection = sqlite3.connect(store.database_path(cache))
    connection.execute("UPDATE file SET size = 1")
    connection.commit()
    connection.close()
    assert verify(cache).endswith("a row of file does not agree with its checksum; removed")
    assert verify(cache) == ""
    assert found(root, cache) == (["x"], [])


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket"])
def test_no_file_in_the_place_of_one(root: Path, cache: str, kind: str, tmp_path: Path) -> None:
    """Nothing waits for who may write to a FIFO: database, tables, notes, downloaded files."""

    def put(path: str) -> None:
        Path(path).unlink(missing_ok=True)
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            os.mkdir(path)
        else:
            before = os.getcwd()
            os.chdir(os.path.dirname(path))  # the path of a socket has a limit
            try:
                with socket.socket(socket.AF_UNIX) as made:
                    made.bind(os.path.basename(path))
            finally:
                os.chdir(before)

    put(store.database_path(cache))
    entries, problems = found(root, cache)
    assert entries == ["x"]
    assert ["cannot be used" in problem for problem in problems] == [True]
    assert "is no regular file" in verify(cache)

    tables = TableCache(tmp_path / "tables")
    os.makedirs(tables.folder)
    with ElfImage.open(root / "x") as image:
        facts = facts_of([image])
    for ending in (".symtab", ".seen"):
        path = tables._path(facts, ending)
        put(path)
        os.utime(path, (0, 0))
    assert tables.load(facts) is None
    assert tables.was_seen(facts) in (True, False)

    client = ClientCache(tmp_path / "client")
    os.makedirs(tmp_path / "client" / BUILD_ID)
    put(str(tmp_path / "client" / BUILD_ID / "debuginfo"))
    put(str(tmp_path / "client" / "cache_miss_s"))
    assert client.find(BUILD_ID, "debuginfo") is None
    assert client.miss(BUILD_ID, "debuginfo", "asked") is None
    with pytest.raises(OSError, match=r"no regular file|No such device"):
        ElfImage.open(tmp_path / "client" / BUILD_ID / "debuginfo")
