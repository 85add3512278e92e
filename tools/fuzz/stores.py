"""Damaged databases: the index of binaries, and the manifest of a batch."""

import os
import random
import shutil
import sqlite3
from functools import cache
from pathlib import Path

from symbolize.batch.manifest import InputResult, Manifest, ProfileRow, State
from symbolize.binaries import BinaryIndex, store, verify
from symbolize.core.errors import OutputError, UsageError
from symbolize.storage.inputs import Input
from tests.support.tiny_elf import elf
from tools.fuzz.mutate import ANY, HOW_MANY, cut

FOLDER = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp")
BINARIES = 24
INPUTS = 12


def build_id(number: int) -> str:
    """A build id of its own for each binary."""
    return f"{number + 1:040x}"


def own_folder(name: str) -> Path:
    """The folder of this process."""
    return FOLDER / f"fuzz-{name}-{os.getpid()}"


@cache
def sound_index(process: int) -> tuple[Path, bytes]:
    """A folder with binaries, and the database of an index of them."""
    folder = FOLDER / f"fuzz-index-{process}"
    shutil.rmtree(folder, ignore_errors=True)
    for number in range(BINARIES):
        path = folder / "root" / f"d{number % 4}" / f"lib{number}.so"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(elf(bytes.fromhex(build_id(number))))
        os.utime(path, (1, 1))
    index = BinaryIndex([str(folder / "root")], folder / "cache")
    index.with_name("x")
    index.close()
    return folder, Path(store.database_path(str(folder / "cache"))).read_bytes()


def mutate_database(chance: random.Random, sound: bytes, path: Path) -> bool:
    """Damage a database: bytes of the file, or values of rows; whether the file is still a database."""
    if chance.random() < 0.5:
        data = bytearray(sound)
        for _ in range(chance.choice(HOW_MANY)):
            if data:
                chance.choice((*ANY[:4], cut) if chance.random() < 0.1 else ANY[:4])(chance, data)
        path.write_bytes(data)
        return bytes(data) == sound
    path.write_bytes(sound)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL").fetchall()
        for _ in range(chance.choice((1, 1, 2, 5))):
            table = chance.choice(names)[0]
            column = chance.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
            values = ("NULL", "''", "x'ff'", "CAST(x'ff' AS TEXT)", "1.5", "-1", "9223372036854775807", "'a'")
            change = chance.choice((*values, f"{column} + 1", f"{column} || 'x'", f"CAST({column} AS BLOB)"))
            where = chance.choice(("1", "rowid % 3 = 0" if table not in ("profiles", "binaries") else "1"))
            try:
                connection.execute(f"UPDATE OR IGNORE {table} SET {column} = {change} WHERE {where}")
            except sqlite3.Error:
                pass
    finally:
        connection.close()
    return False


def clear(database: Path) -> None:
    """Remove a database and the files beside it."""
    for ending in store.ENDINGS:
        Path(f"{database}{ending}").unlink(missing_ok=True)


def index_target(seed: int) -> int:
    """A damaged index: all answers are right, with one problem at most, and the next run has none."""
    chance = random.Random(seed)
    folder, sound = sound_index(os.getpid())
    database = Path(store.database_path(str(folder / "cache")))
    clear(database)
    mutate_database(chance, sound, database)
    if chance.random() < 0.05:
        verify(str(folder / "cache"))
    for run in range(2):
        index = BinaryIndex([str(folder / "root")], folder / "cache")
        for number in range(BINARIES):
            found = [os.path.basename(entry.path) for entry in index.with_build_id(build_id(number))]
            assert found == [f"lib{number}.so"], (number, found, index.problems)
            assert [entry.build_id for entry in index.with_name(f"lib{number}.so")] == [build_id(number)]
        assert len(index.problems) <= (1 - run), index.problems
        assert not any("\n" in problem for problem in index.problems)
        index.close()
    return len(sound)


@cache
def sound_manifest(process: int) -> tuple[Path, bytes, list[object]]:
    """The folder of a manifest, its bytes, and what it says."""
    folder = FOLDER / f"fuzz-manifest-{process}"
    shutil.rmtree(folder, ignore_errors=True)
    path = folder / "manifest.sqlite"
    with Manifest(str(path)) as manifest:
        inputs = [Input(f"/in/{number}.prof", str(number), number, "v") for number in range(INPUTS)]
        manifest.add(inputs, "options", retry=False, again=False)
        manifest.record(
            InputResult(number, State.DONE, (ProfileRow(f"{number}.pb.gz", 7, {"percent": 1.0}),))
            for number in range(1, INPUTS // 2)
        )
        manifest.record([InputResult(INPUTS, State.QUARANTINED, (), "unreadable", "it is none")])
        said = what_is_said(manifest)
    return folder, path.read_bytes(), said


def what_is_said(manifest: Manifest) -> list[object]:
    """All that a batch reads of a manifest."""
    rows = list(manifest.rows())
    return [
        *rows,
        *(manifest.profiles(row.number) for row in rows),
        *(list(manifest.items(state)) for state in State),
        manifest.count(),
        manifest.pending_decodes(),
        manifest.binaries(),
        manifest.generation,
    ]


def manifest_target(seed: int) -> int:
    """A damaged manifest: it says what it said, or one line ends the batch."""
    chance = random.Random(seed)
    folder, sound, said = sound_manifest(os.getpid())
    path = folder / "manifest.sqlite"
    clear(path)
    mutate_database(chance, sound, path)
    was_empty = path.stat().st_size <= 1  # as SQLite leaves it where a process ends early; one byte it takes for none
    try:
        with Manifest(str(path)) as manifest:
            assert was_empty or what_is_said(manifest) == said
    except (OutputError, UsageError) as error:
        assert "\n" not in str(error)
        assert str(path) in str(error)
    return len(sound)
