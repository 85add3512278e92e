"""Bounds the state of a batch: forgets inputs that were not found for long, and removes outputs of inputs that are gone
(R404, retention)."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from symbolize.batch.manifest import Manifest
from symbolize.batch.manifest_tables import DECODED, TAKEN, name_key, uri_number
from symbolize.core.errors import SymbolizeError
from symbolize.storage import urls
from symbolize.storage.backend import Storage
from symbolize.storage.input_names import ENDING
from symbolize.storage.inputs import local_path

DAY: Final = 86400.0
UNSEEN: Final = "unseen"
"""The notes of inputs that were not found: since when."""
AT_ONCE: Final = 500
LEAST_FREE: Final = 1 << 20
"""Bytes of free pages from which on the manifest is packed, if they are a quarter of it."""


def note_unseen(manifest: Manifest, now: float | None = None) -> None:
    """Note since when inputs are not found, after all inputs were listed."""
    now = time.time() if now is None else now
    with manifest.writing() as base:
        base.execute(
            "DELETE FROM notes WHERE kind = ? AND key IN (SELECT CAST(number AS TEXT) FROM inputs WHERE turn = ?)",
            (UNSEEN, manifest.generation),
        )
        base.execute(
            "INSERT OR IGNORE INTO notes (kind, key, value) "
            "SELECT ?, CAST(number AS TEXT), ? FROM inputs WHERE turn < ?",
            (UNSEEN, now, manifest.generation),
        )


def forget_unseen(manifest: Manifest, days: float, now: float | None = None) -> int:
    """Remove the records of inputs that were not found for `days`, and of binaries that were not decoded for as long;
    how many inputs. Their outputs stay."""
    now = time.time() if now is None else now
    rows = manifest.read("SELECT key FROM notes WHERE kind = ? AND value < ?", UNSEEN, now - days * DAY)
    numbers = [int(key) for (key,) in rows]
    keep_names(manifest, numbers)
    remove_records(manifest, numbers)
    with manifest.writing() as base:
        base.execute("INSERT OR IGNORE INTO notes (kind, key, value) SELECT ?, key, ? FROM binaries", (DECODED, now))
        old = f"SELECT key FROM notes WHERE kind = '{DECODED}' AND value < ?"
        awaited = "SELECT key FROM questions WHERE answered = 0"
        base.execute(f"DELETE FROM binaries WHERE key IN ({old}) AND key NOT IN ({awaited})", (now - days * DAY,))
        base.execute("DELETE FROM notes WHERE kind = ? AND value < ?", (DECODED, now - days * DAY))
    manifest.forget_unwanted()
    pack(manifest)
    return len(rows)


def keep_names(manifest: Manifest, numbers: Iterable[int]) -> None:
    """Note the names of the outputs of these inputs, so that no output of another input replaces them.

    Hashes of the names are kept.
    """
    with manifest.writing() as base:
        for number in numbers:
            outputs = {output for (output,) in base.execute("SELECT output FROM profiles WHERE input = ?", (number,))}
            if outputs:
                uri, name = base.execute("SELECT uri, name FROM inputs WHERE number = ?", (number,)).fetchone()
                base.executemany(
                    "INSERT OR REPLACE INTO notes (kind, key, value) VALUES (?, ?, ?)",
                    [(TAKEN, name_key(output), uri_number(uri)) for output in sorted({*outputs, name + ENDING})],
                )


def remove_records(manifest: Manifest, numbers: Iterable[int]) -> None:
    """Remove all that is recorded of these inputs."""
    rest = list(numbers)
    while rest:
        some, rest = rest[:AT_ONCE], rest[AT_ONCE:]
        with manifest.writing() as base:
            for number in some:
                for table in ("profiles", "row_files", "wants"):
                    base.execute(f"DELETE FROM {table} WHERE input = ?", (number,))
                base.execute("DELETE FROM inputs WHERE number = ?", (number,))
                base.execute("DELETE FROM notes WHERE kind = ? AND key = ?", (UNSEEN, str(number)))


def pack(manifest: Manifest) -> None:
    """Give the space of removed records back, if there is much of it. Without room for a copy it stays as it is."""
    ((free,),), ((size,),), ((pages,),) = (
        manifest.read(f"PRAGMA {name}") for name in ("freelist_count", "page_size", "page_count")
    )
    if free * size >= LEAST_FREE and 4 * free >= pages:
        with suppress(sqlite3.Error):
            manifest.read("VACUUM")
            manifest.read("PRAGMA wal_checkpoint(TRUNCATE)")


def prune_outputs(manifest: Manifest, out: Storage, rows: Storage | None, is_covered: Callable[[str], bool]) -> int:
    """Remove the outputs of inputs that do not exist any more, with their files in `rows` and their records; how many
    files.

    An input that was not named, is left out or may exist keeps its outputs: the file of an empty folder, which may not
    be mounted, and that of a web server, which may be down (R404, retention).

    To be called after a listing in which nothing failed and which would have found the inputs that `is_covered`. A file
    that is not as it was recorded is left alone, and so are rows elsewhere. Raises SymbolizeError if the store of
    outputs fails.
    """
    question = "SELECT number, uri FROM inputs WHERE turn < ? ORDER BY number"
    count = 0
    for number, uri in manifest.read(question, manifest.generation):
        if not (is_covered(uri) and is_gone(uri)):
            continue
        files: list[tuple[Storage | None, str, int]] = [
            (out, row.output, row.size) for row in manifest.profiles(number)
        ]
        for file in manifest.row_files(number):
            files.append((rows if rows is not None and rows.url == file.storage else None, file.name, file.size))
        kept = 0
        for storage, name, recorded in files:
            size = storage.size(name) if storage is not None else -1
            if storage is not None and size == recorded:
                storage.remove(name)
                count += 1
            else:
                kept += size is not None
        if not kept:
            remove_records(manifest, [number])
    return count


def is_gone(uri: str) -> bool:
    """Whether an input certainly does not exist any more."""
    path = local_path(uri)
    if path is None:
        try:  # for other servers a file is missing, too, while they do not answer
            return urls.is_store(uri) and urls.entry_at(urls.files_at(uri)) is None
        except SymbolizeError:
            return False
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return not may_be_unmounted(path)
    except (OSError, ValueError):
        return False
    return False


def may_be_unmounted(path: str) -> bool:
    """Whether the innermost folder that there is of a missing file is empty, as one is that is not mounted."""
    folder = os.path.dirname(os.path.abspath(path))
    while True:
        try:
            with os.scandir(folder) as entries:
                return next(entries, None) is None
        except (FileNotFoundError, NotADirectoryError):
            folder = os.path.dirname(folder)
        except OSError:
            return True
