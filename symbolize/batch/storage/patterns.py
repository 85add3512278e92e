"""Glob patterns, matched name by name while a tree is walked, so that nothing is visited that cannot match."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

MAGIC: Final = frozenset("*?[")
ANY_FOLDERS: Final = "**"


def is_pattern(text: str) -> bool:
    """Whether `text` has characters that mean something in a pattern."""
    return not MAGIC.isdisjoint(text)


class Pattern(NamedTuple):
    """A pattern in its parts between slashes; `**` stands for any number of folders.

    A state is the set of the parts that may come next; `len(parts)` in it means that all were matched, by this
    file or by a folder, of which everything is then wanted.
    """

    parts: tuple[str, ...]

    def start(self) -> frozenset[int]:
        """The state of the root."""
        return self._closed([0])

    def is_matched(self, state: frozenset[int]) -> bool:
        """Whether the path that led to `state` is one that the pattern means."""
        return len(self.parts) in state

    def step(self, state: frozenset[int], name: str) -> tuple[frozenset[int], bool]:
        """The state behind `name`, empty if nothing there can match; and whether a part other than `**` meant it.

        Hidden names are matched by parts only that begin with a dot themselves.
        """
        hidden = name.startswith(".")
        found = [
            row + 1
            for row in state
            if row < len(self.parts)
            and self.parts[row] != ANY_FOLDERS
            and (not hidden or self.parts[row].startswith("."))
            and fnmatchcase(name, self.parts[row])
        ]
        meant = bool(found)
        if not hidden:
            found += [row for row in state if row < len(self.parts) and self.parts[row] == ANY_FOLDERS]
        return self._closed(found), meant

    def _closed(self, rows: Iterable[int]) -> frozenset[int]:
        """`rows`, and what follows a `**`, which may stand for no folder."""
        found = set()
        for row in rows:
            found.add(row)
            while row < len(self.parts) and self.parts[row] == ANY_FOLDERS:
                row += 1
                found.add(row)
        return frozenset(found)


def literal_start(part: str) -> str:
    """What every name begins with that a part of a pattern matches."""
    return part[: min((part.find(each) for each in MAGIC if each in part), default=len(part))]


def split_pattern(path: str) -> tuple[str, Pattern]:
    """The path of the folder in which a pattern begins to mean something, and the pattern below it."""
    parts = path.split("/")
    fixed = next(row for row, part in enumerate(parts) if is_pattern(part))
    root = "/".join(parts[:fixed])
    if fixed and not root:
        root = "/"
    return root, Pattern(tuple(part for part in parts[fixed:] if part not in ("", ".")))
