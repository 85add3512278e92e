"""Built symbol tables on disk: shared by any number of processes, bounded in size, never believed when damaged."""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from symbolize.elf import ElfImage
from symbolize.symbols.table import SymbolTable
from symbolize.symbols.table_file import FORMAT, DamagedTable, Facts, read_table, write_table

DEFAULT_LIMIT = 8 << 30
"""Bytes that the tables of a cache may take."""

ENDING, SEEN = ".symtab", ".seen"
TOUCH_INTERVAL = 3600
"""Seconds between two notes of the last use of a table; its time of modification keeps it."""
ABANDONED = 3600
"""Seconds after which an unfinished file was left by a process that died."""
FORGOTTEN = 30 * 86400
"""Seconds after which a binary that was seen once counts as new again."""

SAMPLES, SAMPLE_SIZE = 16, 4096


class Stats(NamedTuple):
    """What a cache holds: tables, their bytes, and the bytes that they may take."""

    folder: str
    tables: int
    size: int
    limit: int


class TableCache:
    """The tables below `folder`, a file each. `problems` lists what went wrong with it, a sentence each.

    A cache that cannot be written or read costs time, not answers: nothing here raises OSError.
    """

    def __init__(self, folder: str | os.PathLike[str], limit: int = DEFAULT_LIMIT) -> None:
        # The version is in the name, so that no reader meets a layout that it does not know.
        self.folder = Path(folder) / f"tables-{FORMAT}"
        self.limit = limit
        self.problems: list[str] = []

    def load(self, facts: Facts) -> SymbolTable | None:
        """The table made from the files that `facts` describes, None if there is none."""
        path = self._path(facts, ENDING)
        try:
            table, found = read_table(path)
            if identities(found) != identities(facts):
                raise DamagedTable("was made from other files")
            if time.time() - path.stat().st_mtime > TOUCH_INTERVAL:
                os.utime(path)
        except FileNotFoundError:
            return None
        except DamagedTable as error:
            self._note(f"{path}: {error}; it is removed and made anew")
            with suppress(OSError):
                path.unlink()
            return None
        except OSError as error:
            self._note(f"{path}: {error.strerror or error}")
            return None
        return table

    def store(self, table: SymbolTable, facts: Facts) -> None:
        """Write a table, whole or not at all, and remove the ones used least recently if there are too many."""
        path = self._path(facts, ENDING)
        temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
        try:
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            try:
                write_table(table, facts, temporary)
                os.replace(temporary, path)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink()
                raise
            with suppress(OSError):
                self._path(facts, SEEN).unlink()
        except OSError as error:
            self._note(f"{self.folder}: cannot be written, tables are not kept ({error.strerror or error})")
            return
        self.evict(keep=path)

    def was_seen(self, facts: Facts) -> bool:
        """Whether these files were met before; from now on they were."""
        path = self._path(facts, SEEN)
        try:
            if time.time() - path.stat().st_mtime < FORGOTTEN:
                return True
        except OSError:
            pass
        with suppress(OSError):
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.touch()
        return False

    def evict(self, keep: Path | None = None) -> int:
        """Remove tables, the least recently used first, until the rest is small enough; how many were removed."""
        files = sorted(self._files(ENDING), key=lambda file: file[2])
        total, removed = sum(size for _, size, _ in files), 0
        for path, size, _ in files:
            if total <= self.limit:
                break
            if path != keep:
                with suppress(OSError):
                    path.unlink()
                    total, removed = total - size, removed + 1
        return removed

    def collect(self) -> int:
        """Evict, and remove what dead processes and older versions left; how many files were removed."""
        removed = self.evict()
        now = time.time()
        stale = [path for path, _, modified in self._files(SEEN) if now - modified > FORGOTTEN]
        stale += [
            path for path, _, modified in self._files("") if path.name.startswith(".") and now - modified > ABANDONED
        ]
        for folder in self.folder.parent.glob("tables-*"):
            if folder != self.folder and folder.name.removeprefix("tables-").isdigit():
                stale += [
                    path for path in folder.iterdir() if path.suffix in (ENDING, SEEN) or path.name.startswith(".")
                ]
        for path in stale:
            with suppress(OSError):
                path.unlink()
                removed += 1
        return removed

    def verify(self) -> Iterator[tuple[Path, str]]:
        """Check every table: its path, and what is wrong with it, empty for a sound one. Damaged ones are removed."""
        for path, _, _ in sorted(self._files(ENDING)):
            try:
                _, facts = read_table(path)
                yield path, "" if self._path(facts, ENDING) == path else "goes by the name of another table"
            except DamagedTable as error:
                with suppress(OSError):
                    path.unlink()
                yield path, f"{error}; removed"
            except OSError as error:
                yield path, error.strerror or str(error)

    def stats(self) -> Stats:
        """What the cache holds."""
        sizes = [size for _, size, _ in self._files(ENDING)]
        return Stats(str(self.folder), len(sizes), sum(sizes), self.limit)

    def _path(self, facts: Facts, ending: str) -> Path:
        digest = hashlib.blake2b(json.dumps(identities(facts)).encode(), digest_size=12).hexdigest()
        return self.folder / f"{facts.build_id or 'no-build-id'}-{digest}{ending}"

    def _files(self, ending: str) -> list[tuple[Path, int, float]]:
        """Path, size and time of modification of the files with this ending."""
        found = []
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.name.endswith(ending) and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        found.append((Path(entry.path), status.st_size, status.st_mtime))
        return found

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def default_folder() -> Path:
    """The folder of the user's cache (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache")) / "symbolize"


def facts_of(images: Sequence[ElfImage]) -> Facts:
    """What identifies the files of a binary: the build id and, of each file, size, time and a digest of samples.

    Files that share a build id may differ, as a stripped file and its debug file do; reading all of a large file
    for a digest would take longer than the lookup.
    """
    build_id = next((image.build_id for image in images if image.build_id), "")
    return Facts(
        build_id if len(build_id) <= 128 and build_id.isalnum() else "", [source_of(image) for image in images]
    )


def source_of(image: ElfImage) -> dict[str, Any]:
    """The identity of a file, and its path, which is not part of it."""
    size = len(image.data)
    state = hashlib.blake2b(digest_size=16)
    for sample in range(SAMPLES):
        offset = max(size - SAMPLE_SIZE, 0) * sample // (SAMPLES - 1)
        state.update(image.data[offset : offset + SAMPLE_SIZE])
    return {"path": image.path, "size": size, "modified_ns": image.modified_ns, "digest": state.hexdigest()}


def identities(facts: Facts) -> list[Any]:
    """What has to agree for a table to be that of the files at hand."""
    files = [[source["size"], source["modified_ns"], source["digest"]] for source in facts.sources]
    return [facts.build_id, *sorted(files)]
