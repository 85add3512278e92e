"""The other files with the debug information of a binary that it names: where they may lie, and whether they belong.

The names come out of the binary and are not trusted. They are only looked up in the index, so that nothing outside of
the roots is opened. A candidate for the debug
file of a stripped binary, named in `.gnu_debuglink`, is taken if its contents have the checksum in the link (R141,
debug links); any other is a reason in the report, and the search goes on (R143, rejected candidates). Of packages,
split units and supplementary files the opener has to check that the ids in them agree. Of servers only a supplementary
file is asked for, by its build id.

Without an index `debug_files` looks where debuggers do. What it finds counts only if its build id or checksum agrees,
which who opens the files has to check.
"""

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from symbolize.binaries.build_id import is_build_id, same_build_id
from symbolize.binaries.entries import Entry
from symbolize.binaries.index import BinaryIndex
from symbolize.binaries.remote import Attempt
from symbolize.core.errors import InputError
from symbolize.core.records import record
from symbolize.elf.probe import DWARF, identify

DEBUG_SUFFIXES = (".debug", ".dbg")
MAX_LINKED = 16
"""Files of the linked name of which the checksum is computed. Each has to be read whole for it, once."""
MAX_COMPANIONS = 16
"""Packages, split units or supplementary files of one name that are handed out. In build trees a name may denote
hundreds."""
MAX_NAME = 255
SYSTEM: Final = "/usr/lib/debug"
"""Where distributions install debug files."""


def linked_files(index: BinaryIndex, entries: Sequence[Entry], filename: str = "") -> tuple[list[Entry], list[Attempt]]:
    """The debug files that `entries`, the files of one binary, lead to, and what was tried.

    Nothing is looked for where one of the files has debug information itself. `filename` is the recorded name of the
    binary, whose folder is one of the places. Chains are followed; each file is visited once, also one that names
    itself (R146, circular links).
    """
    found: list[Entry] = []
    tried: list[Attempt] = []
    if any(entry.has_dwarf for entry in entries):
        return found, tried
    visited = {entry.identity for entry in entries}
    followed: set[tuple[str, int]] = set()
    waiting = list(entries)
    while waiting:
        entry = waiting.pop(0)
        if not entry.link or (entry.link, entry.link_check) in followed:
            continue
        followed.add((entry.link, entry.link_check))
        place = f"debug link {entry.link[:MAX_NAME]} of {entry.path}"
        if not is_plain_name(entry.link):
            tried.append(Attempt(place, "is no plain file name, not followed"))
            continue
        candidates = candidates_for(index, entry, filename)
        if not candidates:
            tried.append(Attempt(place, "no file of that name, neither beside it, nor in .debug, nor anywhere else"))
            tried += [Attempt(*each) for each in index.links_out(entry.link).items()]
        for candidate in candidates:
            if candidate.identity in visited:
                tried.append(Attempt(place, f"{candidate.path} is the file itself or was visited already"))
                continue
            visited.add(candidate.identity)
            refusal = why_not(index, entry, candidate)
            if refusal:
                tried.append(Attempt(place, f"{candidate.path} {refusal}"))
                continue
            tried.append(Attempt(place, f"found {candidate.path}, its checksum agrees"))
            found.append(candidate)
            waiting.append(candidate)
            break
        if found and found[-1].has_dwarf:
            break
    return found, tried


def is_plain_name(name: str) -> bool:
    """Whether `name` is that of a file in a folder: no path, nothing that leads to another folder."""
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name and len(name) <= MAX_NAME


def candidates_for(index: BinaryIndex, entry: Entry, filename: str) -> list[Entry]:
    """The files that may be the debug file of `entry`, those in the usual places first (R141, debug links).

    These are beside the binary, in `.debug` there, and below any root under the folder that the binary has below its
    own root or was recorded with, with `usr/lib/debug` before it or not; then anywhere else under that name.
    """
    own = posixpath.dirname(entry.relative)
    recorded = posixpath.dirname(posixpath.normpath("/" + filename)).strip("/")
    places = [posixpath.join(own, entry.link), posixpath.join(own, ".debug", entry.link)]
    for folder in dict.fromkeys((own, recorded, posixpath.dirname(entry.path).strip("/"))):
        places += [posixpath.join(folder, entry.link), posixpath.join("usr/lib/debug", folder, entry.link)]
    near = [found for place in dict.fromkeys(places) for found in index.at_path(place)]
    near.sort(key=lambda found: found.root != entry.root)
    return list(dict.fromkeys([*near, *index.with_name(entry.link)]))[:MAX_LINKED]


def why_not(index: BinaryIndex, entry: Entry, candidate: Entry) -> str:
    """Why a file is not the debug file that `entry` names, empty if it is."""
    if entry.build_id and candidate.build_id and not same_build_id(entry.build_id, candidate.build_id):
        return f"has the build id {candidate.build_id}, wanted {entry.build_id}"
    checksum = index.checksum(candidate)
    if checksum is None:
        return "cannot be checked"
    if checksum != entry.link_check:
        return f"has the checksum {checksum:08x}, wanted {entry.link_check:08x}"
    return ""


def beside(index: BinaryIndex, entries: Sequence[Entry]) -> list[Attempt]:
    """Debug files that only their names connect with `entries`, which have neither build id nor debug link.

    None is used: nothing says that it is of the same build. They are reported, so that a person can check.
    """
    if any(entry.has_dwarf or entry.link or entry.build_id for entry in entries):
        return []
    names = dict.fromkeys(posixpath.basename(entry.relative) + suffix for entry in entries for suffix in DEBUG_SUFFIXES)
    return [
        Attempt(other.path, "neither a build id nor a checksum says that it belongs to the binary")
        for name in names
        for other in index.with_name(name)[:MAX_LINKED]
    ]


@record(frozen=True)
class Companions:
    """The companions of the binary whose files are `paths`, among the files of `index`."""

    index: BinaryIndex
    paths: Sequence[str]

    def packages(self) -> list[str]:
        """Packages: `<file>.dwp`, of a debug file also under the name of its binary (R88, search for split units)."""
        names = []
        for name in map(os.path.basename, self.paths):
            names += [name + ".dwp", *(name.removesuffix(s) + ".dwp" for s in DEBUG_SUFFIXES if name.endswith(s))]
        return self._ranked(unique(names), "")

    def split(self, name: str, comp_dir: str) -> list[str]:
        """Files that may be the `.dwo` file recorded as `name` in `comp_dir`, the likeliest first (R88, search for
        split units)."""
        recorded = posixpath.normpath(posixpath.join(comp_dir, name))
        return self._ranked([posixpath.basename(recorded)], recorded)

    def supplementary(self, name: str, identifier: str) -> list[str]:
        """Files that may be the supplementary file `name` with a build id or checksum, in hexadecimal (R91,
        supplementary files)."""
        same = [entry.path for entry in self.index.with_build_id(identifier)]
        if not same and self.index.servers is not None and is_build_id(identifier):
            fetched = self.index.servers.fetch(identifier, "debuginfo").path
            same = [fetched] if fetched is not None else []
        return unique([*same, *self._ranked([posixpath.basename(name)], name)])[:MAX_COMPANIONS]

    def _ranked(self, names: Iterable[str], recorded: str) -> list[str]:
        """The files called so: those that lie like the recorded path first, then those beside the binary."""
        folders = {os.path.dirname(path) for path in self.paths}
        wanted = recorded.split("/")[::-1]

        def rank(path: str) -> tuple[int, bool]:
            common = 0
            for own, other in zip(path.split("/")[::-1], wanted, strict=False):
                if own != other:
                    break
                common += 1
            return -common, os.path.dirname(path) not in folders

        found = unique([entry.path for name in names for entry in self.index.with_name(name)])
        return sorted(found, key=rank)[:MAX_COMPANIONS]


def unique(paths: Iterable[str]) -> list[str]:
    """The paths without repetitions, in order."""
    return list(dict.fromkeys(paths))


def default_folder(environment: Mapping[str, str] | None = None) -> str:
    """The folder in which debuginfod's client of elfutils keeps files, where DEBUGINFOD_CACHE_PATH says nothing."""
    variables = os.environ if environment is None else environment
    home = variables.get("HOME") or "/"
    old = os.path.join(home, ".debuginfod_client_cache")
    if os.path.exists(old):
        return old
    return os.path.join(variables.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "debuginfod_client")


def build_id_files(build_id: str, folders: Sequence[str]) -> list[str]:
    """The files that the folders have for a build id, `.build-id/xx/yyyy.debug` and the program beside it."""
    if not is_build_id(build_id):
        return []
    start, rest = build_id[:2].lower(), build_id[2:].lower()
    places = [
        os.path.join(folder, ".build-id", start, rest + ending) for folder in folders for ending in (".debug", "")
    ]
    return [path for path in places if os.path.isfile(path)]


def debug_files(path: str, folders: Sequence[str], fallback: str = "") -> list[str]:
    """The files that may be the debug file of the binary at `path`: by its build id in `folders`, else where its debug
    link may lead, the last in `fallback` instead of the folders if one is given (R380, debug files of one binary).

    None for a file that has debug information itself, or is no ELF file. The file of a link counts by its checksum,
    also if the binary has no build id. What is named by a build id is never the file of that name in the current
    folder.
    """
    try:
        ident = identify(path)
    except (InputError, OSError):
        return []
    if ident is None or ident.offers & DWARF:
        return []
    by_id = build_id_files(ident.build_id, folders)
    link = os.fsdecode(ident.link)
    if by_id or not is_plain_name(link):
        return by_id
    own = os.path.dirname(os.path.abspath(path))
    lasts = [os.path.join(folder, own.lstrip("/")) for folder in ([fallback] if fallback else folders)]
    places = [os.path.join(folder, link) for folder in (own, os.path.join(own, ".debug"), *lasts)]
    return [place for place in places if os.path.isfile(place) and not os.path.samefile(place, path)]
