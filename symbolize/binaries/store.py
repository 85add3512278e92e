"""What earlier walks learnt about the files below folders, in an SQLite database that several processes share.

The version of the schema is in the name of the file, so that no program meets tables that it does not know. All paths
are bytes, because names of files need not be text.
"""

import os
import sqlite3
import time

VERSION = 2
BUSY_SECONDS = 5.0
FORGOTTEN = 90 * 86400
"""Seconds after which the files below a folder that nobody asked for are forgotten."""

ELF, PACKED, EMPTY, LIST, OTHER = 1, 2, 3, 4, 0
"""What a file is: an ELF file, a compressed one whose path vouches for a build id, an empty one of that kind, a list
of build ids, or of no interest."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS root(
    id INTEGER PRIMARY KEY, path BLOB NOT NULL, device INTEGER, inode INTEGER, used INTEGER,
    UNIQUE(path, device, inode));
CREATE TABLE IF NOT EXISTS folder(
    id INTEGER PRIMARY KEY, root INTEGER NOT NULL, path BLOB NOT NULL, linked INTEGER, UNIQUE(root, path));
CREATE TABLE IF NOT EXISTS file(
    id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, name BLOB NOT NULL,
    size INTEGER, modified INTEGER, changed INTEGER, inode INTEGER, device INTEGER,
    what INTEGER NOT NULL, kind INTEGER, build_id TEXT, key TEXT, vouched TEXT, offers INTEGER,
    link BLOB, link_check INTEGER, alternate BLOB, go TEXT, crc INTEGER, problem TEXT, UNIQUE(folder, name));
CREATE TABLE IF NOT EXISTS listed(folder INTEGER NOT NULL, key TEXT NOT NULL, path BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS file_key ON file(key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS file_vouched ON file(vouched) WHERE vouched IS NOT NULL;
CREATE INDEX IF NOT EXISTS file_name ON file(name) WHERE what = 1;
CREATE INDEX IF NOT EXISTS file_inode ON file(inode, device) WHERE what = 1;
CREATE INDEX IF NOT EXISTS listed_key ON listed(key);
CREATE INDEX IF NOT EXISTS listed_folder ON listed(folder);
"""


def database_path(folder: str) -> str:
    """The database in a cache folder."""
    return os.path.join(folder, f"binaries-{VERSION}.sqlite")


def connect(folder: str | None, *, in_memory: bool = False) -> sqlite3.Connection:
    """The database in `folder`, made if there is none; without a folder a temporary one,
    all of it in memory if that is wanted.

    Raises OSError or sqlite3.Error if it cannot be used.
    """
    if folder is None:
        # Kept in memory while it is small, and then in a file without a name.
        connection = sqlite3.connect(":memory:" if in_memory else "", check_same_thread=False)
        connection.execute("PRAGMA journal_mode = OFF")
    else:
        os.makedirs(folder, exist_ok=True)
        connection = sqlite3.connect(database_path(folder), timeout=BUSY_SECONDS, check_same_thread=False)
    try:
        if folder is not None:
            connection.execute("PRAGMA journal_mode = WAL")
        # A database that a crash damaged is made anew.
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript(SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection


def is_damage(error: Exception) -> bool:
    """Whether an error says that the database is damaged, and not that it is locked or that there is no room."""
    if not isinstance(error, sqlite3.Error) or (code := getattr(error, "sqlite_errorcode", None)) is None:
        return False
    damage = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
    return code & 0xFF in damage or code == sqlite3.SQLITE_IOERR_SHORT_READ


def remove_database(folder: str) -> None:
    """Remove a damaged database, with the files that belong to it."""
    for ending in ("", "-wal", "-shm"):
        try:
            os.unlink(database_path(folder) + ending)
        except FileNotFoundError:
            pass


def known_root(connection: sqlite3.Connection, path: str, device: int, inode: int) -> int | None:
    """The number of a root whose files were met before; None if they were not."""
    row = connection.execute(
        "SELECT id FROM root WHERE path = ? AND device = ? AND inode = ?",
        (os.fsencode(path), signed(device), signed(inode)),
    ).fetchone()
    return None if row is None else int(row[0])


def root_id(connection: sqlite3.Connection, path: str, device: int, inode: int) -> int:
    """The number of a root, whose files were met before or will be."""
    now = int(time.time())
    known = known_root(connection, path, device, inode)
    if known is None:
        forget(connection, now - FORGOTTEN)
        connection.execute(
            "INSERT OR IGNORE INTO root(path, device, inode, used) VALUES (?, ?, ?, ?)",
            (os.fsencode(path), signed(device), signed(inode), now),
        )
        known = known_root(connection, path, device, inode)
        assert known is not None
    elif connection.execute("SELECT used FROM root WHERE id = ?", (known,)).fetchone()[0] < now - 86400:
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
