"""What is done of a batch: the inputs with their states, and what their binaries are still asked, in SQLite.

One process writes it. Whatever it is told is on disk before the next thing is begun, so that a batch that is killed
goes on where it stopped; an output that was written and not recorded is written once more, with the same bytes.
"""

import enum
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Self

from symbolize.batch.storage.input_names import ENDING, Input
from symbolize.batch.storage.inputs import alternative_names
from symbolize.binaries.store import ENDINGS, ERRORS, DamagedStore, check_consistency, is_damage, one_line, seal
from symbolize.core.errors import OutputError, UsageError
from symbolize.core.files import os_error_text, require_regular
from symbolize.core.reasons import Reason

UNREACHABLE = "unreachable"
"""The reason of inputs in quarantine that the next run tries without being told: a server did not answer."""

INCOMPLETE = tuple(reason.code for reason in Reason if reason.is_failure)
"""The reasons of inputs that are done, and that the next run does again: names are missing because something failed."""

FETCH = "fetch"
"""The reason of inputs that are put off because files have to be fetched first. They stay new."""

LAYOUT = 2
"""Raised when the tables change; a manifest of another layout is not continued."""

ROWS_AT_ONCE = 256

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
CREATE TEMP TABLE looks (
    uri TEXT PRIMARY KEY,
    version TEXT NOT NULL,
    look INTEGER NOT NULL
) WITHOUT ROWID;
"""

SEALED = {
    "inputs": (
        *("number", "uri", "name", "size", "version", "options", "state"),
        *("turn", "reason", "detail", "attempts", "seconds", "finished"),
    ),
    "profiles": ("input", "output", "size", "coverage"),
    "questions": ("number", "key", "spill", "start", "count", "answered"),
    "binaries": ("key", "files", "addresses", "size", "seconds", "failure"),
}
"""The columns of each table that the checksum in `seal` is of."""
KEYS = {"inputs": ("number",), "profiles": ("input", "output"), "questions": ("number",), "binaries": ("key",)}
"""By which columns a row is found."""

IS_FOLDER = "EXISTS (SELECT 1 FROM inputs AS other WHERE other.name > {0} || '/' AND other.name < {0} || '0')"
"""Whether the outputs of other inputs are in the folder of this name; 0 comes behind the slash."""


class State(enum.IntEnum):
    """How far an input is."""

    NEW = 0
    SCANNED = 1
    DONE = 2
    QUARANTINED = 3


class ProfileRow(NamedTuple):
    """What became of one profile: where it went, its bytes, and how much of it has names."""

    output: str
    size: int
    coverage: dict[str, Any]


class Item(NamedTuple):
    """An input as a task takes it. Its output goes by `name`; if it has several, these are in the folder `folder`, in
    which no others are. `before` are the outputs that an earlier run made of the same bytes, and that may stay; `asked`
    is what it said when it was SCANNED (see `InputResult`)."""

    number: int
    uri: str
    name: str
    size: int
    folder: str
    before: tuple[ProfileRow, ...] = ()
    asked: str = ""


class DecodeRequest(NamedTuple):
    """A binary with the places of the addresses that are asked of it: spill file, first address, how many."""

    key: str
    files: tuple[tuple[str, str], ...]
    spills: list[tuple[str, int, int]]


class InputRow(NamedTuple):
    """An input as it is on record; `finished` is when that was told last, in seconds since 1970 (0: never)."""

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
    """What came of one input in a worker.

    `state` is DONE with `profiles`, SCANNED, or QUARANTINED with `reason` and `detail`. What is DONE has a reason
    of INCOMPLETE if something failed that may have what is missing, what is SCANNED has FETCH if it waits for files,
    and else says in `detail`, as the task can read it, which binaries it asks. `attempts` counts the runs of
    its last task. `is_unanswered` is whether a server did not answer, which the next inputs may meet too; that it
    refused or missed one object says nothing of the others.
    """

    number: int
    state: State
    profiles: tuple[ProfileRow, ...] = ()
    reason: str = ""
    detail: str = ""
    seconds: float = 0.0
    attempts: int = 1
    is_unanswered: bool = False


class Manifest:
    """The manifest in the file `path`; a context manager. Raises OutputError where it cannot be kept, and UsageError if
    another batch is using it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._interrupts: list[KeyboardInterrupt] = []
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            for ending in ENDINGS:
                require_regular(path + ending)
            self._base = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        except OSError as error:
            raise OutputError(f"{path}: cannot be made: {os_error_text(error)}") from error
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
        """Take the file for this process, and check what it says."""
        self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._base.execute("BEGIN EXCLUSIVE")  # held from here on: one batch at a time
        layout = self._base.execute("PRAGMA user_version").fetchone()[0]
        if layout not in (0, LAYOUT):
            raise UsageError(f"{self.path}: is of another version of symbolize; remove it to begin anew")
        for statement in TABLES.split(";\n"):
            self._base.execute(statement)
        self._base.execute(f"PRAGMA user_version = {LAYOUT}")
        keep_sealed(self._base, self._interrupts)
        check(self._base)
        self._base.execute("COMMIT")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Closes the file; what went wrong with it inside is raised as OutputError."""
        self.close()
        if isinstance(error, sqlite3.Error):
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> BaseException:
        """What to raise for an error of the database: the interrupt that it stands for, if there was one."""
        return self._interrupts.pop() if self._interrupts else _failure(self.path, error)

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on disk, or nothing."""
        try:
            self._base.execute("BEGIN")
            try:
                yield self._base
            except BaseException:
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
        turn: int,
        *,
        retry: bool,
        again: bool,
        is_there: Callable[[str, int], bool] = lambda output, size: True,
    ) -> None:
        """Take inputs in. One that is on record with the same version and `options` keeps its state, unless it is to be
        done `again`, or is quarantined and to be tried once more (`retry`, or it could not be reached), or lacks names
        because something failed (R285, names missed by failures), or an output of it is not there any more in the size
        that it had (`is_there`)."""
        with self.writing() as base:
            for each in inputs:
                known = base.execute(
                    "SELECT number, version, options, state, turn, reason FROM inputs WHERE uri = ?", (each.uri,)
                ).fetchone()
                if known is None:
                    self._insert(base, each, options, turn)
                    continue
                number, version, before, state, seen, reason = known
                is_other = (version, before) != (each.version, options)
                if seen == turn and not is_other:
                    continue
                is_gone = state == State.DONE and not all(
                    is_there(output, size)
                    for output, size in base.execute("SELECT output, size FROM profiles WHERE input = ?", (number,))
                )
                is_retried = state == State.QUARANTINED and (retry or reason == UNREACHABLE)
                is_retried = is_retried or (state == State.DONE and reason in INCOMPLETE)
                if version != each.version or again or is_gone:
                    # What the next run makes of the input replaces its outputs, whatever they had.
                    base.execute("UPDATE profiles SET coverage = '{}' WHERE input = ?", (number,))
                if is_other or again or is_gone or is_retried:
                    state = State.NEW
                    base.execute(
                        "UPDATE inputs SET reason = '', detail = '', attempts = 0, seconds = 0 WHERE number = ?",
                        (number,),
                    )
                base.execute(
                    "UPDATE inputs SET size = ?, version = ?, options = ?, state = ?, turn = ? WHERE number = ?",
                    (each.size, each.version, options, state, turn, number),
                )

    def _insert(self, base: sqlite3.Connection, each: Input, options: str, turn: int) -> None:
        """A new input, by the first of its names that is free."""
        for name in alternative_names(each):
            if base.execute("SELECT 1 FROM profiles WHERE output = ?", (name + ENDING,)).fetchone():
                continue  # it is one of several of another input
            try:
                base.execute(
                    "INSERT INTO inputs (uri, name, size, version, options, state, turn) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (each.uri, name, each.size, each.version, options, State.NEW, turn),
                )
                return
            except sqlite3.IntegrityError:
                continue

    def items(self, state: State, turn: int) -> Iterator[Item]:
        """The inputs of this turn that are in `state` now, in the order in which they were found."""
        last = 0
        while True:
            rows = self._base.execute(
                f"SELECT number, uri, name, size, {IS_FOLDER.format('inputs.name')}, detail FROM inputs "
                "WHERE state = ? AND turn = ? AND number > ? ORDER BY number LIMIT ?",
                (state, turn, last, ROWS_AT_ONCE),
            ).fetchall()
            if not rows:
                return
            for number, uri, name, size, is_folder, detail in rows:
                before = [row for row in self.profiles(number) if row.coverage]
                item = Item(number, uri, name, size, name, tuple(before), detail if state == State.SCANNED else "")
                yield item._replace(folder=self._free_folder(item)) if is_folder else item
            last = rows[-1][0]

    def _free_folder(self, item: Item) -> str:
        """A name for a folder in which there are no outputs of other inputs."""
        for name in alternative_names(Input(item.uri, item.name, item.size, "")):
            question = f"SELECT {IS_FOLDER.format('?1')} OR EXISTS (SELECT 1 FROM inputs WHERE name = ?1)"
            if not self._base.execute(question, (name,)).fetchone()[0]:
                break
        return name

    def count(self, turn: int) -> dict[State, int]:
        """How many inputs of this turn are in each state."""
        rows = self._base.execute("SELECT state, count(*) FROM inputs WHERE turn = ? GROUP BY state", (turn,))
        return dict.fromkeys(State, 0) | {State(state): number for state, number in rows}

    def count_failed(self, turn: int) -> int:
        """How many inputs of this turn the next run does because something failed: a server that has them, or what may
        have their names."""
        reasons = UNREACHABLE, *INCOMPLETE
        marks = ", ".join("?" * len(reasons))
        row = self._base.execute(
            f"SELECT count(*) FROM inputs WHERE turn = ? AND reason IN ({marks})", (turn, *reasons)
        )
        return int(row.fetchone()[0])

    def retry_failed(self, turn: int, reason: str) -> None:
        """Have the inputs of this turn tried again that have `reason`, UNREACHABLE or one of INCOMPLETE."""
        with self.writing() as base:
            base.execute(
                "UPDATE inputs SET state = ?, reason = '', detail = '' WHERE turn = ? AND reason = ?",
                (State.NEW, turn, reason),
            )

    def has(self, turn: int, reason: str) -> bool:
        """Whether there are inputs of this turn with a reason."""
        found = self._base.execute("SELECT 1 FROM inputs WHERE turn = ? AND reason = ? LIMIT 1", (turn, reason))
        return found.fetchone() is not None

    def next_turn(self) -> int:
        """A number for the inputs of one more look at the arguments, higher than all before."""
        return int(self._base.execute("SELECT coalesce(max(turn), 0) + 1 FROM inputs").fetchone()[0])

    def superseded(self, handled: Iterable[InputResult]) -> list[tuple[str, int]]:
        """The outputs, with their sizes, that earlier versions of inputs had and those that were done now lack."""
        gone: list[tuple[str, int]] = []
        for each in handled:
            if each.state == State.DONE:
                made = {row.output for row in each.profiles}
                before = self._base.execute("SELECT output, size FROM profiles WHERE input = ?", (each.number,))
                gone += [row for row in before if row[0] not in made]
        return gone

    def record(self, handled: Iterable[InputResult], questions: Iterable[DecodeRequest] = ()) -> None:
        """Keep what came of inputs, together with what they ask."""
        with self.writing() as base:
            for each in handled:
                base.execute(
                    "UPDATE inputs SET state = ?, reason = ?, detail = ?, attempts = ?, seconds = seconds + ?, "
                    "finished = ? WHERE number = ?",
                    (each.state, each.reason, each.detail, each.attempts, each.seconds, time.time(), each.number),
                )
                if each.state == State.DONE:
                    base.execute("DELETE FROM profiles WHERE input = ?", (each.number,))
                base.executemany(
                    "INSERT INTO profiles (input, output, size, coverage) VALUES (?, ?, ?, ?)",
                    [(each.number, row.output, row.size, json.dumps(row.coverage)) for row in each.profiles],
                )
            for asked in questions:
                base.execute(
                    "INSERT OR IGNORE INTO binaries (key, files) VALUES (?, ?)", (asked.key, json.dumps(asked.files))
                )
                base.executemany(
                    "INSERT INTO questions (key, spill, start, count) VALUES (?, ?, ?, ?)",
                    [(asked.key, *spill) for spill in asked.spills],
                )

    def unanswered(self) -> list[tuple[str, int]]:
        """The binaries that are asked something, the most addresses first: key and addresses, counted with repeats."""
        return self._base.execute(
            "SELECT key, sum(count) FROM questions WHERE answered = 0 GROUP BY key ORDER BY sum(count) DESC, key"
        ).fetchall()

    def asked(self, key: str) -> DecodeRequest:
        """What is asked of a binary now."""
        files = json.loads(self._base.execute("SELECT files FROM binaries WHERE key = ?", (key,)).fetchone()[0])
        spills = self._base.execute(
            "SELECT spill, start, count FROM questions WHERE key = ? AND answered = 0 ORDER BY number", (key,)
        )
        return DecodeRequest(key, tuple((path, build_id) for path, build_id in files), spills.fetchall())

    def answer(self, key: str, addresses: int, size: int, seconds: float, failure: str) -> None:
        """Keep that a binary's table was made, or why not; then its addresses are looked up where they are met."""
        with self.writing() as base:
            base.execute("UPDATE questions SET answered = 1 WHERE key = ?", (key,))
            base.execute(
                "UPDATE binaries SET addresses = ?, size = ?, seconds = seconds + ?, failure = ? WHERE key = ?",
                (addresses, size, seconds, failure, key),
            )

    def forget_questions(self) -> None:
        """Drop what was asked. What waits for the answers still, as inputs that were not named this time, is new."""
        with self.writing() as base:
            base.execute("DELETE FROM questions")
            base.execute("UPDATE inputs SET state = ? WHERE state = ?", (State.NEW, State.SCANNED))

    def is_settled(self, found: Input, look: int) -> bool:
        """Whether an input is on record as it is, or was the same at the look before; it was seen at this one."""
        key = found.uri, found.version
        if self._base.execute("SELECT 1 FROM inputs WHERE uri = ? AND version = ?", key).fetchone():
            return True
        before = self._base.execute("SELECT 1 FROM looks WHERE uri = ? AND version = ?", key).fetchone()
        self._base.execute("INSERT OR REPLACE INTO looks VALUES (?, ?, ?)", (*key, look))
        return before is not None

    def end_look(self, look: int) -> None:
        """Forget what was not seen at this look."""
        self._base.execute("DELETE FROM looks WHERE look < ?", (look,))

    def rows(self, turn: int) -> Iterator[InputRow]:
        """The inputs of this turn."""
        last = 0
        while True:
            rows = self._base.execute(
                "SELECT number, uri, name, size, state, reason, detail, attempts, seconds, finished FROM inputs "
                "WHERE turn = ? AND number > ? ORDER BY number LIMIT ?",
                (turn, last, ROWS_AT_ONCE),
            ).fetchall()
            if not rows:
                return
            yield from (InputRow._make((*row[:4], State(row[4]), *row[5:])) for row in rows)
            last = rows[-1][0]

    def profiles(self, number: int) -> list[ProfileRow]:
        """The profiles of an input, as it was when it was done last."""
        rows = self._base.execute(
            "SELECT output, size, coverage FROM profiles WHERE input = ? ORDER BY output", (number,)
        )
        return [ProfileRow(output, size, json.loads(coverage)) for output, size, coverage in rows]

    def binaries(self) -> list[tuple[str, str, int, int, float, str]]:
        """The binaries that were asked: key, files (JSON), addresses, bytes of the table, seconds, failure."""
        return self._base.execute(
            "SELECT key, files, addresses, size, seconds, failure FROM binaries ORDER BY key"
        ).fetchall()


def keep_sealed(base: sqlite3.Connection, interrupts: list[KeyboardInterrupt]) -> None:
    """Have a checksum written with each row from now on. SQLite makes an error of its own of a KeyboardInterrupt that
    comes meanwhile, which is added to `interrupts`."""

    def sealed(*values: Any) -> int:
        try:
            return seal(values)
        except KeyboardInterrupt as interrupt:
            interrupts.append(interrupt)
            raise

    base.create_function("sealed", -1, sealed, deterministic=True)
    for table, columns in SEALED.items():
        values = ", ".join(f"NEW.{name}" for name in columns)
        here = " AND ".join(f"{name} = NEW.{name}" for name in KEYS[table])
        for event in ("INSERT", f"UPDATE OF {', '.join(columns)}"):
            base.execute(
                f"CREATE TEMP TRIGGER seal_{table}_{event[:6]} AFTER {event} ON main.{table} "
                f"BEGIN UPDATE {table} SET seal = sealed({values}) WHERE {here}; END"
            )


def check(base: sqlite3.Connection) -> None:
    """Raise DamagedStore or sqlite3.Error if anything is not what was written (rule R283)."""
    check_consistency(base, TABLES)
    for table, columns in SEALED.items():
        question = f"SELECT 1 FROM {table} WHERE seal IS NOT sealed({', '.join(columns)}) LIMIT 1"
        if base.execute(question).fetchone() is not None:
            raise DamagedStore(f"a row of {table} does not agree with its checksum")


def _failure(path: str, error: Exception) -> OutputError | UsageError:
    """What a person reads when the manifest cannot be used."""
    if "locked" in str(error):
        return UsageError(f"{path}: another batch is writing to this folder; wait for it, or name another folder")
    if is_damage(error):
        return OutputError(f"{path}: is damaged ({one_line(error)}); remove it to begin anew")
    return OutputError(f"{path}: {one_line(error)}")
