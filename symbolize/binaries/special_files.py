"""Files below the roots that are no plain ELF files and yet hold names of functions, recognized by their own names."""

from typing import NamedTuple

from symbolize.binaries.index import BinaryIndex
from symbolize.binaries.layouts import SPECIAL_NAMES
from symbolize.core.files import open_regular, os_error_text, read_limited

MAX_FILES = 1 << 16
"""Files of one kind that are kept."""


class SpecialFile(NamedTuple):
    """A file: where it is, below which of the roots, and its path relative to that."""

    path: str
    root: int
    relative: str

    @property
    def name(self) -> str:
        """The name without folders."""
        return self.relative.rpartition("/")[2]


class SpecialFiles:
    """The special files that an index knows. `problems` lists what could not be read."""

    def __init__(self, index: BinaryIndex) -> None:
        self._index = index
        self._by_kind: dict[str, list[SpecialFile]] = {}
        self.problems: list[str] = []

    def of_kind(self, kind: str) -> list[SpecialFile]:
        """The files of one of the kinds of SPECIAL_NAMES, in order of roots and paths, each once."""
        if kind not in self._by_kind:
            entries = self._index.special(SPECIAL_NAMES[kind])[:MAX_FILES]
            self._by_kind[kind] = [SpecialFile(entry.path, entry.root, entry.relative) for entry in entries]
        return self._by_kind[kind]

    def head(self, path: str, size: int) -> bytes:
        """The first `size` bytes of a regular file, fewer if it is shorter, none if it cannot be read."""
        return self.part(path, 0, size)

    def part(self, path: str, offset: int, size: int) -> bytes:
        """`size` bytes of a regular file from `offset` on, fewer if it ends before, none if it cannot be read."""
        try:
            with open(open_regular(path), "rb") as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            self.tell(f"{path}: {os_error_text(error)}")
            return b""

    def read(self, path: str, limit: int) -> bytes | None:
        """The contents of a regular file of at most `limit` bytes; None, with a problem, if it is none."""
        try:
            data = read_limited(path, limit)
        except OSError as error:
            self.tell(f"{path}: {os_error_text(error)}")
            return None
        if data is None:
            self.tell(f"{path}: is larger than the {limit} bytes that are read of such a file")
        return data

    def tell(self, problem: str) -> None:
        """Remember a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)
