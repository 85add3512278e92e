"""Local copies of remote files, and temporary files for uploads."""

import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from symbolize.core.files import CacheFolder, atomic_file, mark_used, remove, unfinished_path

LIMIT: Final = 4 << 30
"""Bytes of all copies in a folder."""

ENDING = ".copy"

IN_USE: Final = 60
"""Seconds for which a copy stays after it was found: a process may be about to open it."""


class Scratch:
    """A folder of copies, of which the least recently used are removed when they exceed LIMIT.

    Processes may share a folder that is `given`; one of its own is removed when the process ends. Raises OSError.
    """

    def __init__(self, given: str | None) -> None:
        self.given = given
        self._own = ""
        self._made_by = 0

    @property
    def folder(self) -> str:
        """The folder, which is made at the first use."""
        if self.given is not None:
            os.makedirs(self.given, mode=0o700, exist_ok=True)
            return self.given
        if self._made_by != os.getpid():
            self._own, self._made_by = tempfile.mkdtemp(prefix="symbolize-"), os.getpid()
            weakref.finalize(self, _remove_own, self._own, self._made_by)
        return self._own

    def path(self, identity: str) -> str:
        """The path of the copy of a file with this identity, which includes its version."""
        return os.path.join(self.folder, hashlib.sha256(identity.encode()).hexdigest()[:40] + ENDING)

    def find(self, identity: str) -> str | None:
        """The path of a copy, None if there is none."""
        path = self.path(identity)
        try:
            mark_used(path, os.stat(path))
        except FileNotFoundError:
            return None
        return path

    @contextmanager
    def copy(self, identity: str) -> Iterator[BinaryIO]:
        """A file to write, which becomes the copy with this identity."""
        with atomic_file(self.path(identity)) as file:
            yield file
        CacheFolder(self.folder, LIMIT, in_use=IN_USE).evict(ENDING)

    @contextmanager
    def temporary(self) -> Iterator[BinaryIO]:
        """A file to write, which is removed at the end."""
        path = unfinished_path(os.path.join(self.folder, "file"))
        try:
            with open(path, "xb") as file:
                yield file
        finally:
            remove(path)

    def sweep(self) -> int:
        """Remove what killed processes left unfinished; how many files. Never raises."""
        return 0 if self.given is None else CacheFolder(self.given).sweep()


def _remove_own(folder: str, process: int) -> None:
    """Remove the folder of a process, but not in a child that was forked."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
