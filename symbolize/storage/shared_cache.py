"""Symbol tables that machines share through an object store; each machine has its own folder in front of it."""

import os
from typing import Final

from symbolize.core.errors import SymbolizeError, UsageError
from symbolize.core.failure_gate import FailureGate
from symbolize.core.files import remove, unfinished_path
from symbolize.storage.backend import LocalStorage, Storage, copy
from symbolize.storage.urls import is_url
from symbolize.symbols.cache import (
    DEFAULT_LIMIT,
    ENDING,
    Content,
    TableCache,
    default_folder,
    is_unchanged,
    renamed,
)
from symbolize.symbols.table import SymbolTable
from symbolize.symbols.table_file import FORMAT, DamagedTable, TableFacts, read_table, write_table

HASH_DIGITS: Final = 32
"""Digits of the hash of a binary's files in the name of its table; the table has all of them."""
MAX_FAILURES: Final = 3
"""Failed requests after which the store is not used any more."""


def open_tables(location: str, limit: int = DEFAULT_LIMIT) -> TableCache:
    """The cache in the folder `location`; for a URL, the user's own with the tables there behind it.

    Raises UsageError for a URL at which no tables can be kept.
    """
    if is_url(location):
        return open_shared_cache(location, default_folder(), limit)
    return TableCache(location, limit)


def open_shared_cache(url: str, folder: str, limit: int = DEFAULT_LIMIT) -> TableCache:
    """The cache in `folder`, filled from the tables below `url` and filling them; `url` may be a path.

    Raises UsageError for a URL at which no tables can be kept.
    """
    storage = Storage.of(url)
    if isinstance(storage, LocalStorage) and os.path.realpath(storage.url) == os.path.realpath(folder):
        raise UsageError(f"{url}: is the folder of the tables of this machine; choose another one")
    return SharedCache(storage, folder, limit)


class SharedCache(TableCache):
    """A cache that reads tables that it lacks from `storage`, and writes the tables that it makes there.

    A table has a name there by the build id and the hash of all bytes of its files, so that it is found wherever these
    are, and for these alone (R393, shared tables). Only tables with a build id are shared. Tables from `storage` are
    checked as hostile input. A storage that fails costs time only, until MAX_FAILURES in all.
    """

    def __init__(self, storage: Storage, folder: str, limit: int = DEFAULT_LIMIT) -> None:
        super().__init__(folder, limit)
        self.storage = storage
        self._missing: set[str] = set()
        self._gate = FailureGate(MAX_FAILURES)

    @property
    def location(self) -> str:
        """The URL, which opens the cache with the user's own folder in front."""
        return self.storage.url if is_url(self.storage.url) else f"file://{self.storage.url}"

    def load(self, facts: TableFacts, content: Content | None = None) -> SymbolTable | None:
        """The table from the own folder, else from the storage, None if there is none in both."""
        table = super().load(facts)
        if table is not None or content is None or not self._is_shared(facts):
            return table
        return super().load(facts) if self._fetch(facts, content()) else None

    def store(self, table: SymbolTable, facts: TableFacts, content: Content | None = None) -> bool:
        """Write a table to the own folder, and upload it; whether it could be written to the folder."""
        if not super().store(table, facts):
            return False
        if content is not None and self._is_shared(facts):
            self._publish(table, facts._replace(content=content()))
        return True

    def forget_misses(self) -> None:
        self._missing.clear()

    def _publish(self, table: SymbolTable, facts: TableFacts) -> None:
        """Upload a table, whole or not at all; another machine's, which is equal, may be there already."""
        name = self._name(facts, facts.content)
        path = unfinished_path(self._path(facts, ENDING))
        try:
            with open(path, "xb") as file:
                write_table(file, table, facts)
            self.storage.put(name, path)
            self._missing.discard(name)
        except (SymbolizeError, OSError) as error:
            self._failed(error)
        finally:
            remove(path)

    def _fetch(self, facts: TableFacts, content: str) -> bool:
        """Copy a table from the storage to the own folder; whether there is a sound one."""
        name = self._name(facts, content)
        if name in self._missing:
            return False
        self._missing.add(name)  # it is tried once, until misses are forgotten
        path = unfinished_path(self._path(facts, ENDING))
        try:
            size = self.storage.size(name)
            if size is None:
                return False
            if size > self.limit:
                raise DamagedTable(f"has {size} bytes, more than all tables here may have")
            os.makedirs(self.folder, exist_ok=True)
            with self.storage.open(name) as source, open(path, "xb") as file:
                copy(source, file, size)
            table, found = read_table(path)
            if (found.content, found.build_id, len(found.sources)) != (content, facts.build_id, len(facts.sources)):
                raise DamagedTable("was made from other files")
            if not all(map(is_unchanged, found.companions)):  # others beside the binary here
                return False
            table.problems = [renamed(problem, found, facts) for problem in table.problems]
            return super().store(table, facts._replace(companions=found.companions))
        except DamagedTable as error:
            self._note(f"{self.storage.shown}/{name}: {error}; it is not used")
        except SymbolizeError as error:
            self._failed(error)
        except OSError as error:
            self._note_unwritable(error)
        finally:
            remove(path)
        return False

    def _failed(self, error: Exception) -> None:
        is_closed = self._gate.failed()
        if self._gate.failures == 1:
            self._note(f"shared tables: {error}")
        elif is_closed:
            self._note(f"shared tables: {self.storage.shown} is not used any more after {MAX_FAILURES} failures")

    def _is_shared(self, facts: TableFacts) -> bool:
        """Whether to ask the storage at all."""
        return bool(facts.build_id.strip("0")) and not self._gate.is_down

    def _name(self, facts: TableFacts, content: str) -> str:
        """The name of a table in the storage."""
        return f"tables-{FORMAT}/{facts.build_id}-{content[:HASH_DIGITS]}{ENDING}"
