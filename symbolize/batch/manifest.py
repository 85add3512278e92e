"""The record of a batch in SQLite: the state of each input, and the addresses for which binaries are to be decoded.

One process writes it. What it records is on disk before the next step begins, so that a batch that is killed continues
where it stopped; an output that was written and not recorded is written again, with the same bytes.
"""

import enum
import hashlib
import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Self

from symbolize.binaries.store import ENDINGS, ERRORS, DamagedStore, check_consistency, is_damage, one_line, seal
from symbolize.core.errors import OutputError, UsageError
from symbolize.core.files import os_error_text, require_regular
from symbolize.core.reasons import Reason
from symbolize.storage.inputs import ENDING, Input, alternative_names

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
UNREACHABLE = "unreachable"
"""The reason of quarantined inputs that every run tries again: a server did not answer."""

IGNORED = "ignored"
"""The reason of quarantined inputs that cannot be read, of a kind that is to be ignored."""

INCOMPLETE = (Reason.CHANGED.code, Reason.SERVER_FAILED.code, Reason.READ_FAILED.code)
"""The reasons of inputs that are done and that the next run does again: names are missing because something failed.
First those that `--watch` retries soonest; an input with several failures has the first of them."""

FETCH = "fetch"
"""The reason of inputs that wait for files to be fetched. They stay new."""

ROWS_AT_ONCE = 256

MAX_WANTED = 1 << 16
"""Wanted binaries whose numbers are in memory."""

IS_FOLDER = "EXISTS (SELECT 1 FROM inputs AS other WHERE other.name > {0} || '/' AND other.name < {0} || '0')"
"""Whether the outputs of other inputs are in the folder of this name; 0 is the character after the slash."""


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


class State(enum.IntEnum):
    """The state of an input."""

    NEW = 0
    SCANNED = 1
    DONE = 2
    QUARANTINED = 3


class Renewed(enum.StrEnum):
    """Why an input that was done, or put into quarantine, is done again."""

    ASKED = "asked"
    CHANGED = "changed"
    RESULTS = "results"
    OPTIONS = "options"
    OUTPUT = "output"
    RETRIED = "retried"
    FAILED = "failed"
    BINARIES = "binaries"
    WATCHED = "watched"


class ProfileRow(NamedTuple):
    """The output of one profile: its name, its bytes, and how much of the profile has names."""

    output: str
    size: int
    coverage: dict[str, Any]


class RowFile(NamedTuple):
    """A file with the rows of a profile: the URL or path of the storage that it is in, its name there, its bytes."""

    storage: str
    name: str
    size: int


class Item(NamedTuple):
    """An input as a task takes it. Its output is called `name`; several outputs are in the folder `folder`, which holds
    no others. `before` are the outputs that an earlier run made of the same bytes, and that may stay; `pending` is the
    detail of its `InputResult` when it was SCANNED."""

    number: int
    uri: str
    name: str
    size: int
    folder: str
    before: tuple[ProfileRow, ...] = ()
    pending: str = ""


class DecodeRequest(NamedTuple):
    """A binary to decode, and where its addresses are: spill file, number of the first address, count."""

    key: str
    files: tuple[tuple[str, str], ...]
    spills: list[tuple[str, int, int]]


class InputRow(NamedTuple):
    """An input as it is recorded; `finished` is the time of its last result, in seconds since 1970 (0: none)."""

    number: int
    uri: str
    name: str
    size: int
    state: State
    reason: str
    detail: str
    attempts: int
    seconds: float
    finished: float


class InputResult(NamedTuple):
    """The result of one input in a worker.

    `state` is DONE with `profiles`, SCANNED, or QUARANTINED with `reason` and `detail`. A DONE input has a reason of
    INCOMPLETE if something failed that may have missing names. A SCANNED one has the reason FETCH if it waits for
    files; else its `detail` lists the binaries that it needs, for the task that continues with it. `attempts` counts
    the runs of its last task. `is_unanswered`: a server did not answer, so that the next inputs may fail too; an object
    that is denied or missing does not count. `wants` has the binaries that names are missing for, and what there is of
    each. `row_files` are the files with the rows of the profiles, if there are any.
    """

    number: int
    state: State
    profiles: tuple[ProfileRow, ...] = ()
    reason: str = ""
    detail: str = ""
    seconds: float = 0.0
    attempts: int = 1
    is_unanswered: bool = False
    wants: tuple[tuple[str, str], ...] = ()
    row_files: tuple[RowFile, ...] = ()


class Manifest:
    """The manifest in the file `path`; a context manager. Raises OutputError if it cannot be written, and UsageError if
    another batch is using it.

    `generation` numbers the runs that looked for inputs; methods are about the inputs that were found in this one.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.generation = 0
        self._interrupts: list[KeyboardInterrupt] = []
        self._wanted: dict[tuple[str, str], int] = {}
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            for ending in ENDINGS:
                require_regular(path + ending)
            self._base = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        except OSError as error:
            raise OutputError(f"{path}: cannot be created: {os_error_text(error)}") from error
        except sqlite3.Error as error:
            raise _failure(path, error) from error
        try:
            self._begin()
        except BaseException as error:
            self._base.close()
            if isinstance(error, ERRORS):
                raise self._failure(error) from error
            raise

    def _begin(self) -> None:
        """Lock the file for this process, and check its contents."""
        self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._base.execute("BEGIN EXCLUSIVE")  # held from here on: one batch at a time
        layout = self._base.execute("PRAGMA user_version").fetchone()[0]
        if layout not in (0, LAYOUT, *CONTINUED):
            raise UsageError(f"{self.path}: is of another version of symbolize; remove it to start from the beginning")
        for statement in TABLES.split(";\n"):
            self._base.execute(statement)
        self._base.execute(f"PRAGMA user_version = {LAYOUT}")
        keep_sealed(self._base, self._interrupts)
        check(self._base)
        self._base.execute("COMMIT")
        (self.generation,) = self._base.execute("SELECT coalesce(max(turn), 0) FROM inputs").fetchone()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the file; an error of the database in the block is raised as OutputError."""
        self.close()
        if isinstance(error, sqlite3.Error):
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> BaseException:
        """What to raise for an error of the database: the interrupt that caused it, if there was one."""
        return self._interrupts.pop() if self._interrupts else _failure(self.path, error)

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        try:
            self._base.execute("BEGIN")
            try:
                yield self._base
            except BaseException:
                self._wanted.clear()
                with suppress(sqlite3.Error):  # a full disk has ended it already
                    self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def add(
        self,
        inputs: Iterable[Input],
        options: str,
        *,
        retry: bool,
        again: bool,
        ignores: bool = False,
        is_there: Callable[[str, int], bool] = lambda output, size: True,
        has_rows: Callable[[RowFile], bool] = lambda file: True,
    ) -> Counter[Renewed]:
        """Add inputs; how many of earlier runs are to be done again, by the reason. One that is recorded with the same
        version and `options` (the version of results, and a checksum) keeps its state, unless it is to be done
        `again`, or is quarantined and to be retried (`retry`, or it could not be reached, or was ignored and nothing is
        to be ignored now), or lacks names because something failed (R285, names missed by failures), or an output of it
        is gone or has another size (`is_there`, and `has_rows` for files with rows)."""
        renewed: Counter[Renewed] = Counter()
        with self.writing() as base:
            for each in inputs:
                known = base.execute(
                    "SELECT number, version, options, state, turn, reason FROM inputs WHERE uri = ?", (each.uri,)
                ).fetchone()
                if known is None:
                    self._insert(base, each, options)
                    continue
                number, version, before, state, generation, reason = known
                is_other = (version, before) != (each.version, options)
                if generation == self.generation and not is_other:
                    continue
                is_gone = state == State.DONE and not (
                    all(
                        is_there(output, size)
                        for output, size in base.execute("SELECT output, size FROM profiles WHERE input = ?", (number,))
                    )
                    and all(map(has_rows, self.row_files(number)))
                )
                is_retried = state == State.QUARANTINED and (
                    retry or reason == UNREACHABLE or (reason == IGNORED and not ignores)
                )
                is_retried = is_retried or (state == State.DONE and reason in INCOMPLETE)
                if version != each.version or again or is_gone:
                    # What the next run makes of the input replaces its outputs, whatever they had.
                    base.execute("UPDATE profiles SET coverage = '{}' WHERE input = ?", (number,))
                if is_other or again or is_gone or is_retried:
                    if state in (State.DONE, State.QUARANTINED):
                        if again:
                            why = Renewed.ASKED
                        elif version != each.version:
                            why = Renewed.CHANGED
                        elif before.partition(" ")[0] != options.partition(" ")[0]:
                            why = Renewed.RESULTS
                        elif before != options:
                            why = Renewed.OPTIONS
                        elif is_gone:
                            why = Renewed.OUTPUT
                        elif reason == IGNORED and not ignores:
                            why = Renewed.OPTIONS
                        else:
                            is_failure = reason == UNREACHABLE or reason in INCOMPLETE
                            why = Renewed.FAILED if is_failure else Renewed.RETRIED
                        renewed[why] += 1
                    state = State.NEW
                    base.execute(
                        "UPDATE inputs SET reason = '', detail = '', attempts = 0, seconds = 0 WHERE number = ?",
                        (number,),
                    )
                base.execute(
                    "UPDATE inputs SET size = ?, version = ?, options = ?, state = ?, turn = ? WHERE number = ?",
                    (each.size, each.version, options, state, self.generation, number),
                )
        return renewed

    def _insert(self, base: sqlite3.Connection, each: Input, options: str) -> None:
        """Add a new input under the first of its names that is free, also of outputs of inputs that were forgotten."""
        taken = "SELECT 1 FROM notes WHERE kind = ? AND key = ? AND value <> ?"
        for name in alternative_names(each):
            if base.execute("SELECT 1 FROM profiles WHERE output = ?", (name + ENDING,)).fetchone():
                continue  # it is one of several of another input
            if base.execute(taken, (TAKEN, name_key(name + ENDING), uri_number(each.uri))).fetchone():
                continue  # it is that of an input that was forgotten
            try:
                base.execute(
                    "INSERT INTO inputs (uri, name, size, version, options, state, turn) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (each.uri, name, each.size, each.version, options, State.NEW, self.generation),
                )
                return
            except sqlite3.IntegrityError:
                continue

    def items(self, state: State) -> Iterator[Item]:
        """The inputs that are in `state` now, in the order in which they were found."""
        columns = f"number, uri, name, size, {IS_FOLDER.format('inputs.name')}, detail"
        for number, uri, name, size, is_folder, detail in self._pages(columns, "AND state = ?", state):
            before = tuple(row for row in self.profiles(number) if row.coverage)
            item = Item(number, uri, name, size, name, before, detail if state == State.SCANNED else "")
            yield item._replace(folder=self._free_folder(item)) if is_folder else item

    def _pages(self, columns: str, condition: str = "", *values: object) -> Iterator[tuple[Any, ...]]:
        """Columns of the inputs by number, the first of the columns; changes meanwhile are allowed."""
        query = f"SELECT {columns} FROM inputs WHERE turn = ? AND number > ? {condition} ORDER BY number LIMIT ?"
        last = 0
        while rows := self._base.execute(query, (self.generation, last, *values, ROWS_AT_ONCE)).fetchall():
            yield from rows
            last = rows[-1][0]

    def _free_folder(self, item: Item) -> str:
        """A name for a folder in which there are no outputs of other inputs."""
        for name in alternative_names(Input(item.uri, item.name, item.size, "")):
            question = f"SELECT {IS_FOLDER.format('?1')} OR EXISTS (SELECT 1 FROM inputs WHERE name = ?1)"
            if not self._base.execute(question, (name,)).fetchone()[0]:
                break
        return name

    def count(self) -> dict[State, int]:
        """How many inputs are in each state."""
        query = "SELECT state, count(*) FROM inputs WHERE turn = ? GROUP BY state"
        rows = self._base.execute(query, (self.generation,))
        return dict.fromkeys(State, 0) | {State(state): number for state, number in rows}

    def count_quarantined(self) -> dict[str, int]:
        """How many inputs are in quarantine for each reason."""
        query = "SELECT reason, count(*) FROM inputs WHERE turn = ? AND state = ? GROUP BY reason"
        return dict(self._base.execute(query, (self.generation, State.QUARANTINED)))

    def sum_percents(self) -> tuple[float, int]:
        """The percentages of the value of the profiles of all done inputs that have names, added up, and how many
        profiles with values these are."""
        percent = "json_extract(coverage, '$.symbolized_percent')"
        row = self._base.execute(
            f"SELECT total({percent}), count({percent}) FROM inputs JOIN profiles ON input = number "
            "WHERE turn = ? AND state = ? "
            "AND coalesce(json_extract(coverage, '$.sample_value'), json_extract(coverage, '$.value')) > 0",
            (self.generation, State.DONE),
        ).fetchone()
        return float(row[0]), int(row[1])

    def unfinished(self) -> Iterator[str]:
        """The URIs of the inputs that are neither done nor quarantined."""
        condition = "AND state IN (?, ?)"
        return (uri for _, uri in self._pages("number, uri", condition, State.NEW, State.SCANNED))

    def count_reasons(self, *reasons: str) -> int:
        """How many inputs have one of these reasons."""
        marks = ", ".join("?" * len(reasons))
        row = self._base.execute(
            f"SELECT count(*) FROM inputs WHERE turn = ? AND reason IN ({marks})", (self.generation, *reasons)
        )
        return int(row.fetchone()[0])

    def count_failed(self) -> int:
        """How many inputs the next run does again because something failed: their server, or a source of names."""
        return self.count_reasons(UNREACHABLE, *INCOMPLETE)

    def retry_failed(self, reason: str) -> int:
        """Make the inputs with `reason`, UNREACHABLE or one of INCOMPLETE, new again; how many."""
        with self.writing() as base:
            return base.execute(
                "UPDATE inputs SET state = ?, reason = '', detail = '' WHERE turn = ? AND reason = ?",
                (State.NEW, self.generation, reason),
            ).rowcount

    def make_new(self, numbers: Iterable[int]) -> None:
        """Make the inputs with these numbers new again."""
        with self.writing() as base:
            base.executemany(
                "UPDATE inputs SET state = ?, reason = '', detail = '', attempts = 0, seconds = 0 WHERE number = ?",
                [(State.NEW, number) for number in numbers],
            )

    def forget_unwanted(self) -> None:
        """Remove the wanted binaries that no input misses."""
        with self.writing() as base:
            base.execute("DELETE FROM wanted WHERE number NOT IN (SELECT wanted FROM wants)")
        self._wanted.clear()

    def read(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that answer a question of another module of the batch."""
        return self._base.execute(question, values).fetchall()

    def superseded(self, results: Iterable[InputResult]) -> list[tuple[str, int]]:
        """The outputs, with their sizes, that earlier versions of inputs had and those that were done now lack."""
        gone: list[tuple[str, int]] = []
        for each in results:
            if each.state == State.DONE:
                made = {row.output for row in each.profiles}
                before = self._base.execute("SELECT output, size FROM profiles WHERE input = ?", (each.number,))
                gone += [row for row in before if row[0] not in made]
        return gone

    def row_files(self, number: int) -> list[RowFile]:
        """The files with the rows of an input, in all storages that it was ever written to."""
        rows = self._base.execute("SELECT storage, name, size FROM row_files WHERE input = ?", (number,))
        return [RowFile._make(row) for row in rows]

    def superseded_rows(self, results: Iterable[InputResult], storage: str) -> list[str]:
        """The names of files with rows in `storage` that inputs had before and those that were done now lack."""
        return [
            file.name
            for each in results
            if each.state == State.DONE
            for file in self.row_files(each.number)
            if file.storage == storage and file.name not in {made.name for made in each.row_files}
        ]

    def has_row_file(self, storage: str, name: str) -> bool:
        """Whether a file with rows is recorded."""
        query = "SELECT 1 FROM row_files WHERE name = ? AND storage = ?"
        return self._base.execute(query, (name, storage)).fetchone() is not None

    def record(self, results: Iterable[InputResult], requests: Iterable[DecodeRequest] = (), rows_in: str = "") -> None:
        """Record the results of inputs, with their files of rows in the storage `rows_in`, and the binaries to decode
        for them."""
        with self.writing() as base:
            for each in results:
                base.execute(
                    "UPDATE inputs SET state = ?, reason = ?, detail = ?, attempts = ?, seconds = seconds + ?, "
                    "finished = ? WHERE number = ?",
                    (each.state, each.reason, each.detail, each.attempts, each.seconds, time.time(), each.number),
                )
                if each.state == State.DONE:
                    base.execute("DELETE FROM profiles WHERE input = ?", (each.number,))
                    base.execute("DELETE FROM wants WHERE input = ?", (each.number,))
                    base.execute("DELETE FROM row_files WHERE input = ? AND storage = ?", (each.number, rows_in))
                base.executemany(
                    "INSERT INTO wants (wanted, input) VALUES (?, ?)",
                    [(number, each.number) for number in sorted({self._number(base, want) for want in each.wants})],
                )
                base.executemany(
                    "INSERT INTO row_files (input, storage, name, size) VALUES (?, ?, ?, ?)",
                    [(each.number, *file) for file in each.row_files],
                )
                base.executemany(
                    "INSERT INTO profiles (input, output, size, coverage) VALUES (?, ?, ?, ?)",
                    [(each.number, row.output, row.size, json.dumps(row.coverage)) for row in each.profiles],
                )
            for request in requests:
                base.execute(
                    "INSERT OR IGNORE INTO binaries (key, files) VALUES (?, ?)",
                    (request.key, json.dumps(request.files)),
                )
                base.executemany(
                    "INSERT INTO questions (key, spill, start, count) VALUES (?, ?, ?, ?)",
                    [(request.key, *spill) for spill in request.spills],
                )

    def _number(self, base: sqlite3.Connection, want: tuple[str, str]) -> int:
        """The number of a wanted binary with what there was of it."""
        number = self._wanted.get(want)
        if number is None:
            base.execute("INSERT OR IGNORE INTO wanted (key, found) VALUES (?, ?)", want)
            (number,) = base.execute("SELECT number FROM wanted WHERE key = ? AND found = ?", want).fetchone()
            if len(self._wanted) >= MAX_WANTED:
                self._wanted.clear()
            self._wanted[want] = number
        return number

    def pending_decodes(self) -> list[tuple[str, int]]:
        """The binaries to decode, the most addresses first: key, and addresses counted with repeats."""
        return self._base.execute(
            "SELECT key, sum(count) FROM questions WHERE answered = 0 GROUP BY key ORDER BY sum(count) DESC, key"
        ).fetchall()

    def decode_request(self, key: str) -> DecodeRequest:
        """What is to be decoded of a binary."""
        files = json.loads(self._base.execute("SELECT files FROM binaries WHERE key = ?", (key,)).fetchone()[0])
        spills = self._base.execute(
            "SELECT spill, start, count FROM questions WHERE key = ? AND answered = 0 ORDER BY number", (key,)
        )
        return DecodeRequest(key, tuple((path, build_id) for path, build_id in files), spills.fetchall())

    def mark_decoded(self, key: str, addresses: int, size: int, seconds: float, failure: str) -> None:
        """Record that the table of a binary was made, or why not."""
        with self.writing() as base:
            base.execute("UPDATE questions SET answered = 1 WHERE key = ?", (key,))
            base.execute(
                "INSERT OR REPLACE INTO notes (kind, key, value) VALUES (?, ?, ?)", (DECODED, key, time.time())
            )
            base.execute(
                "UPDATE binaries SET addresses = ?, size = ?, seconds = seconds + ?, failure = ? WHERE key = ?",
                (addresses, size, seconds, failure, key),
            )

    def forget_requests(self) -> None:
        """Remove all requests. Inputs that still wait for tables, as those that were not named this time, are new."""
        with self.writing() as base:
            base.execute("DELETE FROM questions")
            base.execute("UPDATE inputs SET state = ? WHERE state = ?", (State.NEW, State.SCANNED))

    def is_settled(self, found: Input, scan: int) -> bool:
        """Whether an input is recorded as it is, or was the same at the scan before `scan`, which it is noted for."""
        key = found.uri, found.version
        if self._base.execute("SELECT 1 FROM inputs WHERE uri = ? AND version = ?", key).fetchone():
            return True
        before = self._base.execute("SELECT 1 FROM scans WHERE uri = ? AND version = ?", key).fetchone()
        self._base.execute("INSERT OR REPLACE INTO scans VALUES (?, ?, ?)", (*key, scan))
        return before is not None

    def end_scan(self, scan: int) -> None:
        """Forget what was not found by this scan."""
        self._base.execute("DELETE FROM scans WHERE scan < ?", (scan,))

    def rows(self) -> Iterator[InputRow]:
        """The inputs."""
        columns = "number, uri, name, size, state, reason, detail, attempts, seconds, finished"
        return (InputRow._make((*row[:4], State(row[4]), *row[5:])) for row in self._pages(columns))

    def profiles(self, number: int) -> list[ProfileRow]:
        """The profiles of an input when it was last done."""
        rows = self._base.execute(
            "SELECT output, size, coverage FROM profiles WHERE input = ? ORDER BY output", (number,)
        )
        return [ProfileRow(output, size, json.loads(coverage)) for output, size, coverage in rows]

    def binaries(self) -> list[tuple[str, str, int, int, float, str]]:
        """The binaries that were to be decoded: key, files (JSON), addresses, bytes of the table, seconds, failure."""
        return self._base.execute(
            "SELECT key, files, addresses, size, seconds, failure FROM binaries ORDER BY key"
        ).fetchall()


def _failure(path: str, error: Exception) -> OutputError | UsageError:
    """The error for a manifest that cannot be used."""
    if "locked" in str(error):
        return UsageError(f"{path}: another batch is writing to this folder; wait for it, or name another folder")
    if is_damage(error):
        return OutputError(f"{path}: is damaged ({one_line(error)}); remove it to start from the beginning")
    return OutputError(f"{path}: {one_line(error)}")
