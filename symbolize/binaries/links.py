"""The debug file that a stripped binary names in `.gnu_debuglink`: where it may lie, and whether it belongs.

The name comes out of the binary and is not trusted. It is only looked up in the index, so that nothing outside of the
roots is opened. A candidate is taken if its contents have the checksum in the link (R141, debug links); any other is a
reason in the report, and the search goes on (R143, rejected candidates).
"""

import posixpath
from collections.abc import Sequence

from symbolize.binaries.build_id import same_build_id
from symbolize.binaries.entries import Entry
from symbolize.binaries.index import BinaryIndex
from symbolize.binaries.remote import Attempt

DEBUG_SUFFIXES = (".debug", ".dbg")
MAX_CANDIDATES = 16
"""Files of the linked name of which the checksum is computed. Each has to be read whole for it, once."""
MAX_NAME = 255


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
    """The files that may be the debug file of `entry`, those in the usual places first (R141, debug links)."""
    own = posixpath.dirname(entry.relative)
    recorded = posixpath.dirname(posixpath.normpath("/" + filename)).strip("/")
    places = [posixpath.join(own, entry.link), posixpath.join(own, ".debug", entry.link)]
    for folder in dict.fromkeys((own, recorded, posixpath.dirname(entry.path).strip("/"))):
        places += [posixpath.join(folder, entry.link), posixpath.join("usr/lib/debug", folder, entry.link)]
    near = [found for place in dict.fromkeys(places) for found in index.at_path(place)]
    near.sort(key=lambda found: found.root != entry.root)
    return list(dict.fromkeys([*near, *index.with_name(entry.link)]))[:MAX_CANDIDATES]


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
        for other in index.with_name(name)[:MAX_CANDIDATES]
    ]
