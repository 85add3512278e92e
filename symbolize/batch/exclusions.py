"""Inputs that are left out: patterns in the language of the inputs (R401, excluded inputs)."""

import os
from collections.abc import Iterable, Sequence
from typing import Final

from symbolize.storage.inputs import local_path
from symbolize.storage.patterns import ANY_FOLDERS, Pattern

URL: Final = "://"


class Exclusions:
    """Patterns of files and folders that are no inputs. One without a slash, or behind `**/`, is that of a name or path
    anywhere below what was named as an input; any other is a path as an input is one: relative to the current folder,
    absolute, or a URL."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._anywhere: list[Pattern] = []
        self._paths: list[Pattern] = []
        for text in patterns:
            path = local_path(text)
            if path is None:
                self._paths.append(Pattern(parts_of(text)))
            elif "/" not in path.rstrip("/") or path.startswith(ANY_FOLDERS + "/"):
                self._anywhere.append(Pattern(parts_of(path.removeprefix(ANY_FOLDERS + "/"))))
            else:
                self._paths.append(Pattern(parts_of(os.path.abspath(path))))

    def leave_out(self, uri: str, depth: int) -> bool:
        """Whether the file or folder at `uri`, or a folder that it is in, matches a pattern; the last `depth` names of
        it are below what was named as an input."""
        if not self._anywhere and not self._paths:
            return False
        parts = parts_of(local_path(uri) or uri)
        if any(begins(pattern, parts) for pattern in self._paths):
            return True
        rows = range(max(len(parts) - depth, 0), len(parts))
        return any(begins(pattern, parts[row:]) for pattern in self._anywhere for row in rows)


def parts_of(path: str) -> tuple[str, ...]:
    """The names in a path, or in a URL: its scheme and bucket first."""
    scheme, divider, rest = path.partition(URL)
    bucket, _, key = rest.partition("/")
    first = (f"{scheme.lower()}{URL}{bucket}",) if divider else ()
    return (*first, *(part for part in (key if divider else path).split("/") if part not in ("", ".")))


def begins(pattern: Pattern, names: Sequence[str]) -> bool:
    """Whether the first of `names`, some or all, match a pattern."""
    state = pattern.start()
    for name in names:
        state, _ = pattern.step(state, name)
        if not state:
            return False
        if pattern.is_matched(state):
            return True
    return False
