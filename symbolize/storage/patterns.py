"""Glob patterns, matched name by name while folders are walked, so that only what may match is visited."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

MAGIC: Final = frozenset("*?[")
ANY_FOLDERS: Final = "**"


def is_pattern(text: str) -> bool:
    """Whether `text` has wildcards."""
    return not MAGIC.isdisjoint(text)


class Pattern(NamedTuple):
    """The parts of a pattern between slashes; `**` matches any number of folders.

    A state is the set of the parts that may match next; `len(parts)` in it means that all have matched, this file or a
    folder, of which all files match then.
    """

    parts: tuple[str, ...]

    def start(self) -> frozenset[int]:
        """The state of the root."""
        return self._closed([0])

    def is_matched(self, state: frozenset[int]) -> bool:
        """Whether the path that led to `state` matches the pattern."""
        return len(self.parts) in state

    def step(self, state: frozenset[int], name: str) -> tuple[frozenset[int], bool]:
        """The state after `name`, empty if nothing below can match, and whether a part other than `**` matched it.
        Hidden names are matched only by parts that begin with a dot."""
        hidden = name.startswith(".")
        found = [
            row + 1
            for row in state
            if row < len(self.parts)
            and self.parts[row] != ANY_FOLDERS
            and (not hidden or self.parts[row].startswith("."))
            and fnmatchcase(name, self.parts[row])
        ]
        is_named = bool(found)
        if not hidden:
            found += [row for row in state if row < len(self.parts) and self.parts[row] == ANY_FOLDERS]
        return self._closed(found), is_named

    def _closed(self, rows: Iterable[int]) -> frozenset[int]:
        """`rows`, and those after a `**`, which may match no folder."""
        found = set()
        for row in rows:
            found.add(row)
            while row < len(self.parts) and self.parts[row] == ANY_FOLDERS:
                row += 1
                found.add(row)
        return frozenset(found)


def literal_start(part: str) -> str:
    """The common start of all names that a part of a pattern matches."""
    return part[: min((part.find(each) for each in MAGIC if each in part), default=len(part))]


def split_pattern(path: str) -> tuple[str, Pattern]:
    """The folder before the first wildcard of a path, and the pattern below it."""
    parts = path.split("/")
    fixed = next(row for row, part in enumerate(parts) if is_pattern(part))
    root = "/".join(parts[:fixed])
    if fixed and not root:
        root = "/"
    return root, Pattern(tuple(part for part in parts[fixed:] if part not in ("", ".")))
