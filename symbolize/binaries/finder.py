"""Which files answer for a mapping, by the rule that a wrong name is worse than none."""

from dataclasses import dataclass, field
from typing import NamedTuple

from symbolize.binaries.build_id import is_build_id, same_build_id
from symbolize.binaries.index import BinaryIndex, Entry
from symbolize.reasons import Reason

DEBUG_SUFFIXES = (".debug", ".dbg")


class Attempt(NamedTuple):
    """A place that was tried and what came of it."""

    place: str
    outcome: str


@dataclass(eq=False)
class Found:
    """The files of a binary, or the reason why there are none.

    `verified` tells that a build id agreed; otherwise only the name did. `build_id` is that of the files, empty
    if they have none.
    """

    paths: list[str] = field(default_factory=list)
    build_id: str = ""
    verified: bool = False
    reason: Reason = Reason.SYMBOLIZED
    detail: str = ""
    tried: list[Attempt] = field(default_factory=list)


def find_binary(index: BinaryIndex, build_id: str, filename: str) -> Found:
    """The files for a mapping with the given build id and recorded file name (either may be empty).

    With a build id only files with that id count (rule R138). Without one the full recorded path below a root
    counts, then the base name, then a debug file called after it, each in the first root that has it, and the
    match stays unverified (rule R144). The recorded path itself is never opened. Files that share the build id
    of a match belong to it.
    """
    if build_id:
        return _by_build_id(index, build_id, filename)
    found = Found()
    if not filename:
        found.reason = Reason.NO_IDENTITY
        return found
    name = filename.rpartition("/")[2]
    for place, entries in (
        (f"path {filename.lstrip('/')}", index.at_path(filename)),
        (f"name {name}", index.with_name(name)),
        *((f"name {name + suffix}", index.with_name(name + suffix)) for suffix in DEBUG_SUFFIXES),
    ):
        if not entries:
            found.tried.append(Attempt(place, "nothing there"))
            continue
        entries = [entry for entry in entries if entry.root == entries[0].root]
        if len(distinct_builds(entries)) > 1:
            found.tried.append(Attempt(place, "several builds: " + ", ".join(describe(entry) for entry in entries)))
            found.reason = Reason.AMBIGUOUS
            found.detail = " and ".join(describe(entry) for entry in entries[:3])
            return found
        found.tried.append(Attempt(place, f"found {entries[0].path}, unverified"))
        same = index.with_build_id(entries[0].build_id) if entries[0].build_id else []
        found.paths = unique([entry.path for entry in (*entries, *same)])
        found.build_id = entries[0].build_id or ""
        return found
    found.reason = Reason.NOT_FOUND
    return found


def _by_build_id(index: BinaryIndex, build_id: str, filename: str) -> Found:
    found = Found()
    if not is_build_id(build_id):
        found.reason = Reason.BAD_BUILD_ID
        found.detail = repr(build_id[:80])
        return found
    entries = index.with_build_id(build_id)
    if entries:
        found.paths = unique([entry.path for entry in entries])
        found.verified = True
        found.build_id = build_id
        found.tried.append(Attempt(f"build id {build_id}", "found " + ", ".join(found.paths)))
        return found
    found.tried.append(Attempt(f"build id {build_id}", "nothing there"))
    found.reason = Reason.NOT_FOUND
    name = filename.rpartition("/")[2]
    if name:
        others = unique_entries([*index.at_path(filename), *index.with_name(name)])
        for other in others:
            assert other.build_id is None or not same_build_id(other.build_id, build_id)
            found.tried.append(Attempt(other.path, f"has {other.build_id or 'no build id'}, wanted {build_id}"))
        if others:
            found.reason = Reason.BUILD_ID_DIFFERS
            found.detail = f"{others[0].path} has {others[0].build_id or 'no build id'}"
    return found


def distinct_builds(entries: list[Entry]) -> set[str]:
    """What tells the files apart: their build ids, or their paths where they have none."""
    return {entry.build_id or entry.path for entry in entries}


def describe(entry: Entry) -> str:
    """A file with its build id, for a message."""
    return f"{entry.path} ({entry.build_id or 'no build id'})"


def unique(paths: list[str]) -> list[str]:
    """The paths without repetitions, in order."""
    return list(dict.fromkeys(paths))


def unique_entries(entries: list[Entry]) -> list[Entry]:
    """The entries without repetitions, in order."""
    return list(dict.fromkeys(entries))
