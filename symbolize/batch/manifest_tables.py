"""The tables of the manifest of a batch, and the checksums of their rows."""

import hashlib
import sqlite3
from typing import Any

from symbolize.binaries.store import DamagedStore, check_consistency, seal

LAYOUT = 3
"""Raised when the tables change. A manifest of a layout in CONTINUED gets the tables that it lacks; one of any other
layout is not continued."""

CONTINUED = (2,)

TABLES = """
CREATE TABLE IF NOT EXISTS inputs (
    number INTEGER PRIMARY KEY,
    uri TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    version TEXT NOT NULL,
    options TEXT NOT NULL,
    state INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    detail TEXT NOT NULL DEFAULT '',
    attempts INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    finished REAL NOT NULL DEFAULT 0,
    seal INTEGER
);
CREATE INDEX IF NOT EXISTS inputs_by_state ON inputs (state, number);
CREATE TABLE IF NOT EXISTS profiles (
    input INTEGER NOT NULL,
    output TEXT NOT NULL,
    size INTEGER NOT NULL,
    coverage TEXT NOT NULL,
    seal INTEGER,
    PRIMARY KEY (input, output)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS profiles_by_output ON profiles (output);
CREATE TABLE IF NOT EXISTS row_files (
    input INTEGER NOT NULL,
    storage TEXT NOT NULL,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    seal INTEGER,
    PRIMARY KEY (input, storage, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS row_files_by_name ON row_files (name);
CREATE TABLE IF NOT EXISTS questions (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    spill TEXT NOT NULL,
    start INTEGER NOT NULL,
    count INTEGER NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0,
    seal INTEGER
);
CREATE INDEX IF NOT EXISTS questions_by_key ON questions (answered, key);
CREATE TABLE IF NOT EXISTS binaries (
    key TEXT PRIMARY KEY,
    files TEXT NOT NULL,
    addresses INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    failure TEXT NOT NULL DEFAULT '',
    seal INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS wanted (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    found TEXT NOT NULL,
    seal INTEGER,
    UNIQUE (key, found)
);
CREATE TABLE IF NOT EXISTS wants (
    wanted INTEGER NOT NULL,
    input INTEGER NOT NULL,
    seal INTEGER,
    PRIMARY KEY (wanted, input)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS wants_by_input ON wants (input);
CREATE TABLE IF NOT EXISTS notes (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    value REAL NOT NULL,
    seal INTEGER,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE TEMP TABLE scans (
    uri TEXT PRIMARY KEY,
    version TEXT NOT NULL,
    scan INTEGER NOT NULL
) WITHOUT ROWID;
"""
"""`inputs.turn` is the generation in which an input was last found; `row_files` are the files with rows of a data
warehouse (`warehouse.py`); `questions` are addresses to decode, in spill files; `wanted` are binaries that names are
missing for, with the files that were there (`late_binaries.py`), and `wants` the inputs that miss them; `notes` are
times and figures that later runs ask for, by kind."""

DECODED = "decoded"
"""The notes of binaries that were decoded: when they were last."""

TAKEN = "taken"
"""The notes of outputs of inputs that were forgotten, by `name_key`: the input, as `uri_number`."""

SEALED = ("inputs", "profiles", "row_files", "questions", "binaries", "wanted", "wants", "notes")
"""The tables whose rows have a checksum, in `seal`."""


def name_key(output: str) -> str:
    """The key of the note of an output."""
    return hashlib.blake2b(output.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def uri_number(uri: str) -> float:
    """A hash of an input as the value of a note: 48 bits."""
    return float(int.from_bytes(hashlib.blake2b(uri.encode("utf-8", "surrogatepass"), digest_size=6).digest()))


def sealed_columns(base: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """The columns of a table that its checksum covers, and those that identify a row."""
    columns = base.execute(f"PRAGMA main.table_info({table})").fetchall()
    return [name for _, name, *_ in columns if name != "seal"], [name for _, name, *_, key in columns if key]


def keep_sealed(base: sqlite3.Connection, interrupts: list[KeyboardInterrupt]) -> None:
    """Write a checksum with each row from now on. SQLite turns a KeyboardInterrupt in it into an error of its own; the
    interrupt is added to `interrupts`."""

    def sealed(*values: Any) -> int:
        try:
            return seal(values)
        except KeyboardInterrupt as interrupt:
            interrupts.append(interrupt)
            raise

    base.create_function("sealed", -1, sealed, deterministic=True)
    for table in SEALED:
        columns, keys = sealed_columns(base, table)
        values = ", ".join(f"NEW.{name}" for name in columns)
        here = " AND ".join(f"{name} = NEW.{name}" for name in keys)
        for event in ("INSERT", f"UPDATE OF {', '.join(columns)}"):
            base.execute(
                f"CREATE TEMP TRIGGER seal_{table}_{event[:6]} AFTER {event} ON main.{table} "
                f"BEGIN UPDATE {table} SET seal = sealed({values}) WHERE {here}; END"
            )


def check(base: sqlite3.Connection) -> None:
    """Raise DamagedStore or sqlite3.Error if a row or the schema is damaged (R283, damaged manifests).

    A damaged one is not rebuilt, since that would repeat all inputs: one sentence names it, and the exit code is 1.
    """
    check_consistency(base, TABLES)
    for table in SEALED:
        columns, _ = sealed_columns(base, table)
        query = f"SELECT 1 FROM {table} WHERE seal IS NOT sealed({', '.join(columns)}) LIMIT 1"
        if base.execute(query).fetchone() is not None:
            raise DamagedStore(f"a row of {table} does not agree with its checksum")
