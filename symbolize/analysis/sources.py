"""Source files below folders that the user gives."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from symbolize.analysis.frames import MAX_PATH
from symbolize.core.errors import UsageError
from symbolize.core.files import open_regular

MAX_SOURCE: Final = 8 << 20
"""Bytes of a source file that is shown."""
MAX_SOURCES: Final = 64 << 20
"""Characters of all source files that a page has; packed it is about a fifth."""
MAX_PARTS: Final = 64
"""Folders of a recorded path that are tried."""


class Sources:
    """Finds the source files that debug information names, in folders of this machine only.

    A recorded path is never opened as it is: its last parts, as many as possible, have to be a file below one of
    `folders`, or what follows the first of a pair in `path_map` a file below the second, and no link may lead out of
    there. Raises UsageError for a folder that is none.
    """

    def __init__(self, folders: Iterable[str], path_map: Sequence[tuple[str, str]] = ()) -> None:
        self._roots = []
        for folder in folders:
            if not os.path.isdir(folder):
                raise UsageError(f"sources: {folder}: no such folder")
            self._roots.append(os.path.realpath(folder))
        self._path_map = [(old.rstrip("/"), os.path.realpath(new)) for old, new in path_map]
        self._found: dict[str, str | None] = {}

    def find(self, recorded: str) -> str | None:
        """The path of the file that `recorded` names; None if it is nowhere."""
        if recorded not in self._found:
            self._found[recorded] = next(self._candidates(recorded), None)
        return self._found[recorded]

    def read(self, recorded: str) -> str | None:
        """The text of the file that `recorded` names, bytes that are not UTF-8 replaced; None if there is none."""
        path = self.find(recorded)
        if path is None:
            return None
        try:
            with open(open_regular(path), "rb") as file:
                data = file.read(MAX_SOURCE + 1)
        except OSError:
            return None
        return data.decode("utf-8", "replace") if len(data) <= MAX_SOURCE else None

    def read_all(self, recorded: Iterable[str], space: int = MAX_SOURCES) -> dict[str, str]:
        """The texts of those files that are found, the first ones if all have more characters than `space`."""
        texts: dict[str, str] = {}
        for each in recorded:
            text = self.read(each)
            if text is not None and len(text) <= space:
                texts[each] = text
                space -= len(text)
        return texts

    def _candidates(self, recorded: str) -> Iterator[str]:
        """Files that `recorded` may name, the likeliest first."""
        for old, folder in self._path_map:
            rest = recorded.removeprefix(old)
            if rest != recorded and rest.startswith("/"):
                yield from file_below(folder, rest.split("/"))
        parts = recorded.replace("\\", "/").split("/")
        for root in self._roots:
            for first in range(max(len(parts) - MAX_PARTS, 0), len(parts)):
                yield from file_below(root, parts[first:])


def file_below(root: str, parts: Sequence[str]) -> Iterator[str]:
    """The file at `parts` below the folder `root`, if it is there and inside of it when all links are followed."""
    try:
        path = os.path.join(root, *filter(None, parts))
        path = os.path.realpath(path) if len(path) <= MAX_PATH else ""
        if path.startswith(root + os.sep) and os.path.isfile(path):
            yield path
    except (OSError, ValueError):  # a NUL in the path, or links in a circle
        return
