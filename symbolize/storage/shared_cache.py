"""Symbol tables that machines share through an object store; each machine has its own folder in front of it."""

import os
from typing import Final

from symbolize.core.errors import SymbolizeError, UsageError
from symbolize.core.files import atomic_file
from symbolize.storage.backend import LocalStorage, Storage, copy
from symbolize.symbols.cache import DEFAULT_LIMIT, ENDING, TableCache, identities, is_unchanged
from symbolize.symbols.table import SymbolTable
from symbolize.symbols.table_file import FORMAT, DamagedTable, Facts, read_table

MAX_FAILURES: Final = 3
"""Failed requests after which the store is not used any more."""


class _OtherFiles(Exception):
    """Files beside the binary differ on this machine."""


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

    Names below `storage` are those of the cache: they follow from the build id and the files that a table was made of.
    Only tables with a build id are shared: other files are identified on one machine only. Tables from `storage` are
    checked as hostile input. A storage that fails costs time only, until MAX_FAILURES.
    """

    def __init__(self, storage: Storage, folder: str, limit: int = DEFAULT_LIMIT) -> None:
        super().__init__(folder, limit)
        self.storage = storage
        self._missing: set[str] = set()
        self._failures = 0

    def load(self, facts: Facts) -> SymbolTable | None:
        """The table from the own folder, else from the storage, None if there is none in both."""
        table = super().load(facts)
        if table is not None or not self._fetch(facts):
            return table
        return super().load(facts)

    def store(self, table: SymbolTable, facts: Facts) -> bool:
        """Write a table to the own folder, and upload it; whether it could be written to the folder."""
        if not super().store(table, facts):
            return False
        name = self._name(facts)
        if name and self._failures < MAX_FAILURES:
            try:
                self.storage.put(name, self._path(facts, ENDING))
            except (SymbolizeError, OSError) as error:
                self._failed(error)
            self._missing.discard(name)
        return True

    def _fetch(self, facts: Facts) -> bool:
        """Copy a table from the storage to the own folder; whether there is a sound one."""
        name = self._name(facts)
        if not name or name in self._missing or self._failures >= MAX_FAILURES:
            return False
        self._missing.add(name)  # it is tried once
        path = self._path(facts, ENDING)
        try:
            size = self.storage.size(name)
            if size is None:
                return False
            if size > self.limit:
                raise DamagedTable(f"has {size} bytes, more than all tables here may have")
            os.makedirs(self.folder, exist_ok=True)
            with self.storage.open(name) as source, atomic_file(path) as file:
                copy(source, file, size)
                file.flush()
                _, found = read_table(file.name)
                if identities(found) != identities(facts):
                    raise DamagedTable("was made from other files")
                if not all(map(is_unchanged, found.companions)):
                    raise _OtherFiles
            self.evict(keep=path)
            return True
        except _OtherFiles:
            pass
        except DamagedTable as error:
            self._note(f"{self.storage.shown}/{name}: {error}; it is not used")
        except SymbolizeError as error:
            self._failed(error)
        except OSError as error:
            self._note_unwritable(error)
        return False

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        if self._failures == 1:
            self._note(f"shared tables: {error}")
        elif self._failures == MAX_FAILURES:
            self._note(f"shared tables: {self.storage.shown} is not used any more after {MAX_FAILURES} failures")

    def _name(self, facts: Facts) -> str:
        """The name of a table in the storage, empty if it is not to be shared."""
        if not facts.build_id.strip("0"):
            return ""
        return f"tables-{FORMAT}/{os.path.basename(self._path(facts, ENDING))}"
