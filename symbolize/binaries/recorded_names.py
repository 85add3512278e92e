"""Names under which recorders and kernels know files, and what those files are called."""

import re
from dataclasses import replace

from symbolize.binaries.finder import BinaryMatch, find_binary, named_files
from symbolize.binaries.index import BinaryIndex
from symbolize.binaries.remote import Attempt
from symbolize.core.mapped_names import is_no_file
from symbolize.core.reasons import Reason

MAX_NAMES = 8
"""So many forms of a name are looked for."""

_ENDINGS = (" (deleted)", "\\040(deleted)", ".dpkg-new", ".dpkg-tmp")
_REWRITES = [
    (re.compile(r"//deleted(/.+)"), r"\1"),
    (re.compile(r"(/.*[^/]);[0-9a-f]{6,16}"), r"\1"),
    (re.compile(r"(/.+)\.#prelink#\.\w{6}"), r"\1"),
    (re.compile(r"/proc/(?:\d+|self)/root(/.+)"), r"\1"),
    (re.compile(r"/newroot(/.+)"), r"\1"),
    (re.compile(r"/memfd:([^/]+)"), r"\1"),
    (re.compile(r"/dev/ashmem/(.+)"), r"\1"),
    (re.compile(r"/.*/(?:overlay2?|overlay-containers)/[^/]+/(?:diff|merged|rootfs/merge)(/.+)"), r"\1"),
    (re.compile(r"/.*/snapshots/\d+/fs(/.+)"), r"\1"),
    (re.compile(r"/run/containerd/.*/rootfs(/.+)"), r"\1"),
]
"""What is put around the name of a file that was replaced, is in memory, or has a path outside of its container."""


def plain_names(filename: str) -> list[str]:
    """The recorded name and, behind it, what is left as its parts that name no file go, one after the other."""
    names = [filename]
    while len(names) < MAX_NAMES:
        name = names[-1]
        for ending in _ENDINGS:
            name = name.removesuffix(ending)
        for pattern, kept in _REWRITES:
            if name == names[-1] and (match := pattern.fullmatch(name)):
                name = match.expand(kept)
        if name == names[-1] or not name:
            break
        names.append(name)
    return names


def find_recorded(index: BinaryIndex, build_id: str, filename: str, *, fetch: bool = True) -> BinaryMatch:
    """`find_binary` for the recorded name, then for what it may denote; the first that is there counts."""
    names = [name for name in plain_names(filename) if build_id or not is_no_file(name)]
    if not names:
        return BinaryMatch(reason=Reason.NOT_A_FILE)
    tried: list[Attempt] = []
    found = BinaryMatch()
    for name in names:
        found = find_binary(index, build_id, name, fetch=fetch)
        tried += [attempt for attempt in found.tried if attempt not in tried]
        if found.paths or found.reason != Reason.NOT_FOUND:
            break
    if build_id and len(found.paths) > 1:  # found by its first name, but the files may be called by another one
        for name in names[1:]:
            found = replace(found, named=found.named or named_files(index, found.paths, name))
    is_miss = found.reason == Reason.NOT_FOUND and is_no_file(filename) and not build_id
    return replace(found, tried=tried, reason=Reason.NOT_A_FILE if is_miss else found.reason)
