"""Rewrites the paths of source files."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from symbolize.core.arrays import distinct
from symbolize.core.errors import UsageError
from symbolize.profile import Profile

ALWAYS_TRIMMED: Final = (b"/proc/self/cwd/./", b"/proc/self/cwd/")
"""Folders that pprof trims besides those that it is given: the sandboxes of builds have them."""


def rewrite_paths(profile: Profile, prefixes: Sequence[tuple[str, str]] = (), trimmed: Sequence[str] = ()) -> Profile:
    """A profile whose source files have other paths; it is not changed.

    Of `prefixes`, pairs of folders, the longest first one that a path begins with is replaced by the second. Then the
    first of `trimmed` that it begins with is removed; each may be several folders, separated as in PATH. Folders match
    whole names.
    """
    pairs = [(folder(old), folder(new) if new else b"") for old, new in prefixes]
    replaced = sorted(pairs, key=lambda each: -len(each[0]))
    removed = [folder(each) for text in trimmed for each in text.split(os.pathsep) if each]
    removed += ALWAYS_TRIMMED if removed else ()
    functions, strings = profile.functions, profile.strings
    number = np.arange(len(strings), dtype=np.int32)
    added = strings.copy()
    for row in distinct(functions.filename).tolist():
        path = strings[row]
        path = next((new + path[len(old) :] for old, new in replaced if path.startswith(old)), path)
        path = next((path[len(old) :] for old in removed if path.startswith(old)), path)
        number[row] = added.add(path)
    filenames = number[functions.filename]
    return replace(profile, strings=added, functions=replace(functions, filename=filenames))


def folder(path: str) -> bytes:
    """A folder as the beginning of paths in it."""
    return os.fsencode(path.rstrip("/") + "/")


def pairs_of(name: str, texts: Iterable[str], *, may_be_empty: bool = True) -> list[tuple[str, str]]:
    """The pairs that texts of the form OLD=NEW denote, NEW perhaps empty; OLD has none of the equals signs. Raises
    UsageError, which names the parameter."""
    found = [each.partition("=") for each in texts]
    for old, equals, new in found:
        if not (old and equals and (new or may_be_empty)):
            raise UsageError(f"{name} {old}{equals}{new}: has to be OLD=NEW")
    return [(old, new) for old, _, new in found]
