"""What earlier walks learnt about the files below folders, in an SQLite database that several processes share.

The version of the schema is in the name of the file, so that no program meets tables that it does not know. All paths
are bytes, because names of files need not be text. What the database and decompressed files leave in the cache folder
is counted and tidied here.
"""

import marshal
import os
import sqlite3
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from symbolize.binaries.unpack import cache_folder, folder_in
from symbolize.core.files import CacheFolder, file_size, os_error_text, require_regular

VERSION = 8
BUSY_SECONDS = 20.0
"""How long to wait for other processes that write; walking the folders anew takes as long where machines are busy."""
FORGOTTEN = 90 * 86400
"""Seconds after which the files below a folder that nobody asked for are forgotten."""

ELF, PACKED, EMPTY, LIST, OTHER = 1, 2, 3, 4, 0
"""What a file is: an ELF file, a compressed one with a build id in its path, an empty one of that kind, a list
of build ids, or of no interest."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS root(
    id INTEGER PRIMARY KEY, path BLOB NOT NULL, device INTEGER, inode INTEGER, used INTEGER, seal INTEGER NOT NULL,
    UNIQUE(path, device, inode));
CREATE TABLE IF NOT EXISTS folder(
    id INTEGER PRIMARY KEY, root INTEGER NOT NULL, path BLOB NOT NULL, linked INTEGER, seal INTEGER NOT NULL,
    UNIQUE(root, path));
CREATE TABLE IF NOT EXISTS file(
    id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, name BLOB NOT NULL,
    size INTEGER, modified INTEGER, changed INTEGER, inode INTEGER, device INTEGER,
    what INTEGER NOT NULL, build_id TEXT, key TEXT, path_key TEXT, offers INTEGER,
    link BLOB, link_check INTEGER, go TEXT, crc INTEGER, hash TEXT, problem TEXT, special INTEGER NOT NULL,
    seal INTEGER NOT NULL, UNIQUE(folder, name));
CREATE TABLE IF NOT EXISTS listed(
    folder INTEGER NOT NULL, key TEXT NOT NULL, path BLOB NOT NULL, seal INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS checked(boot TEXT NOT NULL, seal INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS file_key ON file(key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS file_path_key ON file(path_key) WHERE path_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS file_name ON file(name) WHERE what = 1;
CREATE INDEX IF NOT EXISTS file_inode ON file(inode, device) WHERE what = 1;
CREATE INDEX IF NOT EXISTS file_special ON file(special) WHERE special = 1;
CREATE INDEX IF NOT EXISTS listed_key ON listed(key);
CREATE INDEX IF NOT EXISTS listed_folder ON listed(folder);
"""

FILE = (
    *("folder", "name", "size", "modified", "changed", "inode", "device", "what", "build_id", "key"),
    *("path_key", "offers", "link", "link_check", "go", "crc", "hash", "problem", "special"),
)
OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
SEALED = {
    "root": ("path", "device", "inode"),
    "folder": ("root", "path", "linked"),
    "file": FILE,
    "listed": ("folder", "key", "path"),
    "checked": ("boot",),
}
"""The columns of each table that the checksum in `seal` is of. Of rows and their numbers SQLite keeps indexes, which
have to agree."""
BOOT_ID = "/proc/sys/kernel/random/boot_id"
ENDINGS = ("", "-wal", "-shm", "-journal")
"""What the names of the files of a database end with."""


class DamagedStore(Exception):
    """The database is not what was written to it."""


ERRORS = (sqlite3.Error, OSError, UnicodeError, DamagedStore)
"""What goes wrong with a database."""


def seal(values: Sequence[Any]) -> int:
    """The checksum of a row, of integers, text, bytes and None."""
    return zlib.crc32(marshal.dumps(tuple(values), 0))


def insert(connection: sqlite3.Connection, table: str, values: Sequence[object], how: str = "INSERT") -> None:
    """Add a row with its checksum; `values` are those of the columns in SEALED."""
    connection.execute(insertion(table, how), [*values, seal(values)])


def require_sealed(table: str, values: Sequence[object], checksum: object) -> None:
    """Raise DamagedStore unless the values of the columns in SEALED agree with the checksum of their row."""
    if seal(values) != checksum:
        raise DamagedStore(f"a row of {table} does not agree with its checksum")


@cache
def insertion(table: str, how: str) -> str:
    """The statement that adds a row."""
    columns = (*SEALED[table], "seal")
    return f"{how} INTO {table}({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def update(connection: sqlite3.Connection, table: str, number: int, column: str, value: object) -> None:
    """Change a column of a row, and the checksum. What is damaged stays so. Raises DamagedStore."""
    columns = SEALED[table]
    question = f"SELECT seal, {', '.join(columns)} FROM {table} WHERE id = ?"
    for row in connection.execute(question, (number,)).fetchall():
        require_sealed(table, row[1:], row[0])
        values = [value if name == column else old for name, old in zip(columns, row[1:], strict=True)]
        changed = f"UPDATE {table} SET {column} = ?, seal = ? WHERE id = ?"
        connection.execute(changed, (value, seal(values), number))


@cache
def objects(schema: str) -> list[tuple[object, ...]]:
    """The tables and indexes that the statements of a schema make."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(schema)
        return connection.execute(OBJECTS).fetchall()
    finally:
        connection.close()


def check_tables(connection: sqlite3.Connection, schema: str) -> None:
    """Raise DamagedStore or sqlite3.Error if a database does not have the tables and indexes of a schema."""
    if connection.execute(OBJECTS).fetchall() != objects(schema):
        raise DamagedStore("its tables are not those that were made")


def check_consistency(connection: sqlite3.Connection, schema: str) -> None:
    """Raise DamagedStore or sqlite3.Error if a database does not have the tables and indexes of a schema, or its pages,
    tables and indexes do not agree with one another."""
    check_tables(connection, schema)
    result = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if result != [("ok",)]:
        raise DamagedStore(str(result[0][0]) if result else "its integrity cannot be checked")


def check(connection: sqlite3.Connection) -> None:
    """Raise DamagedStore or sqlite3.Error if anything is not what was written (R281, damaged caches)."""
    check_consistency(connection, SCHEMA)
    for table, columns in SEALED.items():
        for row in connection.execute(f"SELECT seal, {', '.join(columns)} FROM {table}"):
            require_sealed(table, row[1:], row[0])
    if connection.execute("SELECT count(*) FROM root WHERE typeof(used) != 'integer'").fetchone() != (0,):
        raise DamagedStore("a row of root has no time")


def check_once(connection: sqlite3.Connection) -> None:
    """Check the whole database if it was not since the machine started; only the tables' definitions otherwise.

    What is not written through may be lost when a machine stops; a process that ends leaves all it wrote. Each row
    is checked when it is read, see `require_sealed`.
    """
    check_tables(connection, SCHEMA)
    boot = boot_id()
    known = connection.execute("SELECT boot, seal FROM checked").fetchall()
    for row in known:
        require_sealed("checked", row[:1], row[1])
    if not boot or [row[0] for row in known] != [boot]:
        check(connection)
        connection.execute("DELETE FROM checked")
        insert(connection, "checked", (boot,))
        connection.commit()


def boot_id() -> str:
    """What names the time since the machine started, empty if that is not known."""
    try:
        with open(BOOT_ID, "rb") as file:
            return file.read(64).decode("ascii", "replace").strip()
    except OSError:
        return ""


def database_path(folder: str) -> str:
    """The database in a cache folder."""
    return os.path.join(folder, f"binaries-{VERSION}.sqlite")


def connect(folder: str | None, *, in_memory: bool = False) -> sqlite3.Connection:
    """The database in `folder`, made if there is none; without a folder a temporary one,
    all of it in memory if that is wanted.

    Raises one of ERRORS if it cannot be used.
    """
    if folder is None:
        # Kept in memory while it is small, and then in a file without a name.
        connection = sqlite3.connect(":memory:" if in_memory else "", check_same_thread=False)
        connection.execute("PRAGMA journal_mode = OFF")
    else:
        os.makedirs(folder, exist_ok=True)
        for ending in ENDINGS:
            require_regular(database_path(folder) + ending)
        check_versions(database_path(folder))
        connection = sqlite3.connect(database_path(folder), timeout=BUSY_SECONDS, check_same_thread=False)
    try:
        if folder is not None:
            connection.execute("PRAGMA journal_mode = WAL")
        # A database that a crash damaged is made anew.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.executescript(SCHEMA)
        if folder is not None:
            check_once(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def check_versions(path: str) -> None:
    """Raise DamagedStore if a header has format versions that SQLite would only read, or not at all, from then on."""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        versions = file.read(20)[18:]  # to write and to read: 1 is with a rollback journal, 2 with a WAL
        if versions and max(versions) > 2:
            raise DamagedStore("its header is not the one that was made")


def is_damage(error: Exception) -> bool:
    """Whether an error says that the database is damaged, and not that it is locked or that there is no room."""
    if isinstance(error, DamagedStore | UnicodeError):  # what SQLite says of a damaged schema quotes it
        return True
    if not isinstance(error, sqlite3.Error):
        return False
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # of Python's module, as for text that is none
        return isinstance(error, sqlite3.OperationalError | sqlite3.DataError)
    damage = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
    return code & 0xFF in damage or code == sqlite3.SQLITE_IOERR_SHORT_READ


def one_line(error: Exception) -> str:
    """What went wrong. SQLite quotes statements of several lines."""
    return " ".join(os_error_text(error).split())[:200]


def remove_database(folder: str) -> None:
    """Remove a damaged database, with the files that belong to it."""
    for ending in ENDINGS:
        try:
            os.unlink(database_path(folder) + ending)
        except FileNotFoundError:
            pass


def known_root(connection: sqlite3.Connection, path: str, device: int, inode: int) -> int | None:
    """The number of a root whose files were met before; None if they were not."""
    key = os.fsencode(path), signed(device), signed(inode)
    row = connection.execute("SELECT id, seal FROM root WHERE path = ? AND device = ? AND inode = ?", key).fetchone()
    if row is None:
        return None
    require_sealed("root", key, row[1])
    return int(row[0])


def root_id(connection: sqlite3.Connection, path: str, device: int, inode: int) -> int:
    """The number of a root, whose files were met before or will be."""
    now = int(time.time())
    known = known_root(connection, path, device, inode)
    if known is None:
        forget(connection, now - FORGOTTEN)
        insert(connection, "root", (os.fsencode(path), signed(device), signed(inode)), "INSERT OR IGNORE")
        known = known_root(connection, path, device, inode)
        assert known is not None
        connection.execute("UPDATE root SET used = ? WHERE id = ?", (now, known))
    else:
        (used,) = connection.execute("SELECT used FROM root WHERE id = ?", (known,)).fetchone()
        if not isinstance(used, int):
            raise DamagedStore("a row of root has no time")
        if used < now - 86400:
            connection.execute("UPDATE root SET used = ? WHERE id = ?", (now, known))
    return known


def forget(connection: sqlite3.Connection, before: int) -> None:
    """Drop the files below roots that were last used before a time."""
    for (root,) in connection.execute("SELECT id FROM root WHERE used < ?", (before,)).fetchall():
        drop_folders(
            connection, [row[0] for row in connection.execute("SELECT id FROM folder WHERE root = ?", (root,))]
        )
        connection.execute("DELETE FROM root WHERE id = ?", (root,))


def drop_folders(connection: sqlite3.Connection, folders: list[int]) -> None:
    """Drop folders and all files in them."""
    for table, column in (("file", "folder"), ("listed", "folder"), ("folder", "id")):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(folder,) for folder in folders])


def signed(value: int) -> int:
    """A number of 64 bits as SQLite can hold it."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


class Kept(NamedTuple):
    """Files that the index knows and bytes of its database, and decompressed files and their bytes."""

    known: int
    index_size: int
    unpacked: int
    unpacked_size: int


def kept(folder: str) -> Kept:
    """What is in a cache folder; what cannot be read counts as nothing."""
    known = 0
    if os.path.exists(database_path(folder)):
        try:
            connection = connect(folder)
            try:
                (known,) = connection.execute("SELECT count(*) FROM file").fetchone()
            finally:
                connection.close()
        except ERRORS:
            pass
    sizes = [file.size for file in CacheFolder(folder_in(folder)).files()]
    return Kept(known, file_size(database_path(folder)), len(sizes), sum(sizes))


def collect(folder: str) -> tuple[int, str]:
    """Forget folders that nobody asked for in a long time and decompressed files that nobody used.

    Returns how many decompressed files were removed, and what went wrong with the index, if anything did.
    """
    problem = ""
    if os.path.exists(database_path(folder)):
        try:
            connection = connect(folder)
            try:
                forget(connection, int(time.time()) - FORGOTTEN)
                connection.commit()
                connection.execute("VACUUM")
            finally:
                connection.close()
        except ERRORS as error:
            problem = f"{database_path(folder)}: {one_line(error)}"
    return cache_folder(folder_in(folder)).evict(), problem


def verify(folder: str) -> str:
    """What is wrong with the index in a cache folder, which is removed if it is damaged; empty for a sound one."""
    path = database_path(folder)
    if not os.path.lexists(path):
        return ""
    try:
        connection = connect(folder)
        try:
            check(connection)
        finally:
            connection.close()
    except ERRORS as error:
        problem = f"{path}: {one_line(error)}"
        if is_damage(error):
            try:
                remove_database(folder)
                problem += "; removed"
            except OSError:
                pass
        return problem
    return ""
