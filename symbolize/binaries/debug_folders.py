"""Where debuggers look for the files of a build without an index: folders by build id, and places of a debug link.

The names come out of files and requests: they are build ids and plain names, and what is found counts only if its build
id or checksum agrees, which who opens the files has to check.
"""

import os
from collections.abc import Sequence
from typing import Final

from symbolize.binaries.build_id import is_build_id
from symbolize.binaries.links import is_plain_name
from symbolize.core.errors import InputError
from symbolize.elf.probe import DWARF, identify

SYSTEM: Final = "/usr/lib/debug"
"""Where distributions install debug files."""


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
