"""Local copies of remote files, and files that grow until they are uploaded."""

import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from symbolize.core.files import CacheFolder, mark_used, remove, unfinished_path

DEFAULT_LIMIT: Final = 4 << 30
"""Bytes that copies may take."""

ENDING = ".copy"

IN_USE: Final = 60
"""Seconds for which a copy that was asked for stays: another process may be about to open it."""


class Scratch:
    """A folder of copies, the ones used least recently removed when there are too many bytes.

    In a folder that is given, several processes may keep one set of copies. Raises OSError.
    """

    def __init__(self, given: str | None, limit: int = DEFAULT_LIMIT) -> None:
        self.given = given
        self.limit = limit
        self._own: str | None = None
        self._made_by = 0

    @property
    def folder(self) -> str:
        """Where the copies are, made at the first question; one of its own goes when the process ends."""
        if self.given is not None:
            os.makedirs(self.given, mode=0o700, exist_ok=True)
            return self.given
        if self._own is None or self._made_by != os.getpid():
            self._own, self._made_by = tempfile.mkdtemp(prefix="symbolize-"), os.getpid()
            weakref.finalize(self, _remove_own, self._own, self._made_by)
        return self._own

    def find(self, identity: str) -> str | None:
        """The copy of what `identity` identifies, content and all."""
        path = self._path(identity)
        try:
            mark_used(path, os.stat(path))  # which keeps it for now
        except FileNotFoundError:
            return None
        return path

    @contextmanager
    def write(self) -> Iterator[BinaryIO]:
        """A new file, gone in the end unless it was kept."""
        path = unfinished_path(os.path.join(self.folder, "file"))
        try:
            with open(path, "xb") as file:
                yield file
        finally:
            remove(path)

    def keep(self, file: BinaryIO, identity: str) -> str:
        """Make a file that is complete the copy of what `identity` identifies; its path."""
        path = self._path(identity)
        file.flush()
        os.replace(file.name, path)
        CacheFolder(self.folder, self.limit, in_use=IN_USE).evict(ENDING)
        return path

    def sweep(self) -> int:
        """Remove what killed processes left unfinished; how many files. Never raises."""
        return 0 if self.given is None else CacheFolder(self.given).sweep()

    def _path(self, identity: str) -> str:
        return os.path.join(self.folder, hashlib.sha256(identity.encode()).hexdigest()[:40] + ENDING)


def _remove_own(folder: str, process: int) -> None:
    """Remove the folder that a process made for itself; a child that was forked leaves it alone."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
