"""A cache whose tables are made after the answer."""

import os
from contextlib import suppress
from typing import Final

from symbolize.symbols.cache import SEEN, HasFacts, TableCache
from symbolize.symbols.table_file import TableFacts

QUICK: Final = 1 << 24
"""Bytes of debug information in all whose tables are made before the answer, which takes a tenth of a second."""
MAX_WAITING: Final = 1 << 29
"""Bytes of debug information in all that wait, since they stay in memory."""
LOCK: Final = "later"


class LaterTables(TableCache):
    """A cache for a run that looks up what it was asked, and makes the tables that pay, `waiting`, afterwards: by
    `begin`, and then `make` in a process of its own.

    Such a process may be killed with the command, as in a container. So what was begun and is not there is made before
    the answer the next time.
    """

    def __init__(self, folder: str, limit: int) -> None:
        super().__init__(folder, limit)
        self.waiting: list[HasFacts] = []
        self._quick, self._room = QUICK, MAX_WAITING
        self._may_make_folder = True

    def puts_off(self, binary: HasFacts, size: int) -> bool:
        """Whether the table of `binary` waits, or another process makes tables that did."""
        if size <= self._quick:
            self._quick -= size
            return False
        with self._lock(LOCK, 0) as is_free:
            if size > self._room or (is_free and self._was_begun(binary.facts)):
                return False
            self._room -= size
            if is_free:
                self.waiting.append(binary)
        return True

    def begin(self) -> bool:
        """Note that the tables that still wait are begun; whether there are such, and the folder can be written."""
        self.waiting = [binary for binary in self.waiting if not binary.has_whole]
        for binary in self.waiting:
            with suppress(OSError):  # the note of another user of the folder
                self._note_seen(binary.facts, b"begun")
        return bool(self.waiting) and self.is_writable()

    def make(self) -> None:
        """Make the tables that wait, and close the binaries. One process at a time does so, since each takes the memory
        for it; a folder that was removed meanwhile stays so. What fails is left to the next run."""
        self._may_make_folder = False
        with self._lock(LOCK, 0) as is_free:
            for binary in self.waiting if is_free else ():
                with suppress(Exception):
                    binary.prepare()
                binary.close()

    def _was_begun(self, facts: TableFacts) -> bool:
        with suppress(OSError):
            return os.stat(self._path(facts, SEEN)).st_size > 0
        return False

    def _make_folder(self) -> None:
        if self._may_make_folder:
            super()._make_folder()
