"""Built symbol tables on disk: shared by any number of processes, bounded in size, never believed when damaged."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple, Protocol

from symbolize.core.errors import check_count, check_type
from symbolize.core.files import (
    CacheFolder,
    atomic_file,
    file_lock,
    is_unfinished,
    mark_used,
    os_error_text,
    remove,
    unfinished_path,
)
from symbolize.elf import ElfImage
from symbolize.symbols.table import SymbolTable
from symbolize.symbols.table_file import FORMAT, DamagedTable, TableFacts, crc32, read_table, write_table

DEFAULT_LIMIT = 8 << 30
"""Bytes that the tables of a cache may take."""

ENDING, SEEN = ".symtab", ".seen"
TOUCH_INTERVAL = 3600
"""Seconds between two notes of the last use of a table; its time of modification keeps it."""
FORGOTTEN = 30 * 86400
"""Seconds after which a binary counts as new again."""
PATIENCE = 600.0
"""Seconds for which a table is waited for that another process makes."""

MAX_BUILD_ID = 128
"""Characters of a build id that can be part of a name of a file."""
SAMPLES, SAMPLE_SIZE = 16, 4096


Content = Callable[[], str]
"""Computes the hash of the files that a table is of, in hex."""


class HasFacts(Protocol):
    """A binary as a cache sees it that has tables made later."""

    @property
    def facts(self) -> TableFacts:
        """What identifies its files."""

    @property
    def has_whole(self) -> bool:
        """Whether its table was made."""

    def prepare(self) -> bool:
        """Have its table made, and kept."""

    def close(self) -> None:
        """Close its files."""


class Stats(NamedTuple):
    """What a cache holds: tables, their bytes, and the bytes that they may take."""

    folder: str
    tables: int
    size: int
    limit: int


class TableCache:
    """The tables below `folder`, a file each; `base` is the folder given, `problems` are sentences.

    A cache that cannot be written or read costs time, not answers: nothing here raises OSError.
    """

    def __init__(self, folder: str | os.PathLike[str], limit: int = DEFAULT_LIMIT) -> None:
        check_type("folder", folder, "a path", str, os.PathLike)
        check_count("limit", limit)
        # The version is in the name, so that readers find only layouts that they support.
        self.base = os.fspath(folder)
        self.folder = os.path.join(folder, f"tables-{FORMAT}")
        self.limit = limit
        self.problems: list[str] = []

    def __repr__(self) -> str:
        return f"TableCache({self.base!r}, limit={self.limit})"

    @property
    def location(self) -> str:
        """What the tables are opened by."""
        return self.base

    def load(self, facts: TableFacts, content: Content | None = None) -> SymbolTable | None:
        """The table made from the files that `facts` describes, None if there is none."""
        path = self._path(facts, ENDING)
        try:
            table, found = read_table(path)
            if identities(found) != identities(facts):
                raise DamagedTable("was made from other files")
            table.problems = [renamed(problem, found, facts) for problem in table.problems]
            if not all(map(is_unchanged, found.companions)):
                return None
            with suppress(OSError):  # in a folder that is only read, or evicted by another process meanwhile
                mark_used(path, os.stat(path), TOUCH_INTERVAL)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except DamagedTable as error:
            self._note(f"{path}: {error}; it is removed and made anew")
            remove(path)
            return None
        except OSError as error:
            self._note(f"{path}: {os_error_text(error)}")
            return None
        return table

    def store(self, table: SymbolTable, facts: TableFacts, content: Content | None = None) -> bool:
        """Write a table atomically, set its `file_size`, and evict; False, with a problem, if it could not be
        written."""
        path = self._path(facts, ENDING)
        try:
            self._make_folder()
            with atomic_file(path) as file:
                size = write_table(file, table, facts)
                os.fsync(file.fileno())
            remove(self._path(facts, SEEN))
        except OSError as error:
            self._note_unwritable(error)
            return False
        table.file_size = size
        self.evict(keep=path)
        return True

    def forget_misses(self) -> None:
        """Look again for tables that were missing: others may have stored them meanwhile."""

    def was_seen(self, facts: TableFacts) -> bool:
        """Whether these files were met before; from now on they were."""
        path = self._path(facts, SEEN)
        try:
            if time.time() - os.stat(path).st_mtime < FORGOTTEN:
                return True
        except OSError:
            pass
        try:
            self._note_seen(facts)
        except OSError as error:
            self._note_unwritable(error)
        return False

    def puts_off(self, binary: HasFacts, size: int) -> bool:
        """Whether the table of `binary`, from `size` bytes of debug information, is not to be made now though it
        pays."""
        return False

    @contextmanager
    def only_one(self, facts: TableFacts) -> Iterator[None]:
        """While one process makes the table of these files, others that want to make it wait for a while."""
        with self._lock(table_name(facts), PATIENCE):
            yield

    def is_writable(self) -> bool:
        """Whether tables can be cached; if not, `problems` has the reason."""
        path = unfinished_path(os.path.join(self.folder, "trial"))
        try:
            self._make_folder()
            with open(path, "xb"):
                os.unlink(path)
        except OSError as error:
            self._note_unwritable(error)
            return False
        return True

    def evict(self, keep: str | None = None) -> int:
        """Remove what dead processes left, and the tables used least recently beyond the limit; how many files."""
        return CacheFolder(self.folder, self.limit).evict(ENDING, keep or "")

    def collect(self) -> int:
        """Evict, and remove what was forgotten and what older versions left; how many files were removed."""
        now = time.time()
        stale = [path for path, _, used in CacheFolder(self.folder).files(SEEN) if now - used > FORGOTTEN]
        for folder in self._other_versions():
            with suppress(OSError):
                paths = [os.path.join(folder, name) for name in os.listdir(folder)]
                stale += [path for path in paths if path.endswith((ENDING, SEEN)) or is_unfinished(path)]
        return self.evict() + sum(map(remove, stale))

    def verify(self) -> Iterator[tuple[str, str]]:
        """Check every table: its path, and what is wrong with it, empty for a sound one. Damaged ones are removed."""
        for path, _, _ in sorted(CacheFolder(self.folder).files(ENDING)):
            try:
                _, facts = read_table(path)
                if self._path(facts, ENDING) != path:
                    raise DamagedTable("goes by the name of another table")
                yield path, ""
            except DamagedTable as error:
                remove(path)
                yield path, f"{error}; removed"
            except OSError as error:
                yield path, os_error_text(error)

    def stats(self) -> Stats:
        """What the cache holds."""
        sizes = [size for _, size, _ in CacheFolder(self.folder).files(ENDING)]
        return Stats(self.folder, len(sizes), sum(sizes), self.limit)

    def _make_folder(self) -> None:
        os.makedirs(self.folder, exist_ok=True)

    def _note_seen(self, facts: TableFacts, what: bytes = b"") -> None:
        """Note that these files were met, and `what` was done for them."""
        self._make_folder()
        # It never waits for who reads a FIFO, and writes to no file elsewhere.
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path(facts, SEEN), flags, 0o666)
        try:
            os.write(descriptor, what)
            os.utime(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _lock(self, name: str, patience: float) -> Iterator[bool]:
        """A lock that one process has at a time; false if another one has it for `patience` seconds."""
        with ExitStack() as held:
            is_ours = True
            with suppress(OSError):
                self._make_folder()
                is_ours = held.enter_context(file_lock(os.path.join(self.folder, f".{name}.lock"), patience))
            yield is_ours

    def _path(self, facts: TableFacts, ending: str) -> str:
        return os.path.join(self.folder, table_name(facts) + ending)

    def _other_versions(self) -> list[str]:
        """The folders of other versions of the layout."""
        base = os.path.dirname(self.folder)
        with suppress(OSError):
            names = [name for name in os.listdir(base) if name.startswith("tables-") and name[7:].isdigit()]
            return [path for name in names if (path := os.path.join(base, name)) != self.folder]
        return []

    def _note_unwritable(self, error: OSError) -> None:
        self._note(
            f"{self.folder}: cannot be written, tables are not kept ({os_error_text(error)}); "
            "name another folder for the cache"
        )

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def table_name(facts: TableFacts) -> str:
    """The cache key, as which the table of these files is kept: the build id and a checksum of what identifies them."""
    text = json.dumps(identities(facts)).encode()
    return f"{facts.build_id or 'no-build-id'}-{crc32(text):08x}{crc32(text[::-1]):08x}"


def default_folder() -> str:
    """The folder of the user's cache (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "symbolize")


def facts_of(images: Sequence[ElfImage]) -> TableFacts:
    """What identifies the files of a binary: the build id and, of each file, size, time and a checksum of samples.

    Files that share a build id may differ; reading all of them takes longer than a lookup. Without a build id the time
    of the last change of any kind counts too, because packers give all files one time of modification.
    """
    build_id = next((image.build_id for image in images if image.build_id), "")
    return TableFacts(
        build_id if len(build_id) <= MAX_BUILD_ID and build_id.isalnum() else "", [source_of(image) for image in images]
    )


def content_of(images: Sequence[ElfImage]) -> str:
    """The hash of all bytes of the files of a binary, in their order.

    Times of modification differ from copy to copy. On one machine size, time and samples identify a file, because
    reading all of it takes longer than a lookup (R393, shared tables).
    """
    total = hashlib.sha256()
    for image in images:
        total.update(len(image.data).to_bytes(8, "little"))
        total.update(image.data)
    return total.hexdigest()


def source_of(image: ElfImage) -> dict[str, Any]:
    """The identity of a file, and its path, which is not part of it."""
    size = len(image.data)
    has_build_id = (image.build_id or "").strip("0")
    check = 0 if has_build_id else crc32(image.changed_ns.to_bytes(8, "little", signed=True))
    for sample in range(SAMPLES):
        offset = max(size - SAMPLE_SIZE, 0) * sample // (SAMPLES - 1)
        check = crc32(image.data[offset : offset + SAMPLE_SIZE], check)
    return {"path": image.path, "size": size, "modified_ns": image.modified_ns, "check": check}


def is_unchanged(companion: Sequence[Any]) -> bool:
    """Whether a file still has the size and the time of modification that are on record: path, size, time."""
    path, size, modified_ns = companion
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return (status.st_size, status.st_mtime_ns) == (size, modified_ns)


def renamed(problem: str, found: TableFacts, facts: TableFacts) -> str:
    """A problem of a cached table, with the path that its file has now."""
    for old, new in zip(found.sources, facts.sources, strict=True):
        if problem.startswith(f"{old['path']}: "):
            return f"{new['path']}{problem[len(old['path']) :]}"
    return problem


def was_made_of(found: TableFacts, facts: TableFacts) -> bool:
    """Whether the table with the facts `found` is of the files at hand, and no further file has changed since."""
    return identities(found) == identities(facts) and all(map(is_unchanged, found.companions))


def identities(facts: TableFacts) -> list[Any]:
    """What has to agree for a table to be that of the files at hand, in their order: the first with DWARF is read."""
    return [facts.build_id, *([source["size"], source["modified_ns"], source["check"]] for source in facts.sources)]
