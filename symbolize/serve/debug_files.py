"""Debug files, sections and sources by build id, as debuginfod serves them."""

import os
import posixpath
from io import FileIO
from typing import Final, NamedTuple

from symbolize.analysis.sources import Sources
from symbolize.binaries import find_binary, is_build_id, plain_build_id, same_build_id
from symbolize.binaries.debuginfod import Fetched
from symbolize.binaries.entries import Entry, matches
from symbolize.core.errors import SymbolizeError, UsageError
from symbolize.core.files import open_regular
from symbolize.elf import ElfImage
from symbolize.elf.probe import DWARF, SYMTAB
from symbolize.serve.modules import Modules

KINDS: Final = ("debuginfo", "executable")
MAX_SECTION_NAME: Final = 256
MAX_PATH: Final = 4096


class Opened(NamedTuple):
    """A part of an open file, which is closed when nobody has it any more: what is sent of it, and what it is called.
    `tag` distinguishes it from all other answers for the same address."""

    file: FileIO
    offset: int
    size: int
    name: str
    tag: str


def checked_build_id(text: str) -> str:
    """A build id of a URL, in lower case. Raises UsageError for text that is none."""
    if not is_build_id(text.lower()):
        raise UsageError("not a build id: an even number of hex digits, 4 to 128")
    return plain_build_id(text)


def file_of(modules: Modules, build_id: str, kind: str) -> Opened | None:
    """The file with debug information ("debuginfo") or with code ("executable") of a build, None if there is none below
    the folders. Compressed files are decompressed."""
    entries = sorted((entry for entry in modules.files(build_id) if is_wanted(entry, kind)), key=lambda each: each.rank)
    for entry in entries:
        try:
            file = opened_file(entry.path)
        except OSError:
            continue
        if matches(entry, os.fstat(file.fileno())):  # else it was replaced since the folders were walked
            return whole(file, build_id, kind, entry.path)
    for path in find_binary(modules.index, build_id, "", fetch=False).paths if not entries else ():
        opened = checked(path, build_id, kind)
        if opened is not None:
            return opened
    return None


def checked(path: str, build_id: str, kind: str) -> Opened | None:
    """The file at `path`, if it is one of a kind with the build id."""
    try:
        with ElfImage.open(path) as image:
            has_it = image.build_id is not None and same_build_id(image.build_id, build_id)
            is_kind = image.has_code if kind == "executable" else image.has_dwarf or ".symtab" in names_of(image)
        return whole(opened_file(path), build_id, kind, path) if has_it and is_kind else None
    except (OSError, SymbolizeError):
        return None


def names_of(image: ElfImage) -> set[str]:
    """The names of the sections of a file."""
    return {section.name for section in image.sections}


def fetched(answer: Fetched, build_id: str, kind: str) -> Opened | None:
    """The file that came from a server, unless it is one composed of some sections; None if no server has it. Raises
    SymbolizeError if that is not known."""
    if answer.path is None or answer.is_composed:
        if answer.failures:
            raise SymbolizeError("a server that may have the file did not answer as it should")
        return None
    return whole(opened_file(answer.path), build_id, kind, answer.path)


def opened_file(path: str) -> FileIO:
    """The regular file at `path`. Raises OSError."""
    return FileIO(open_regular(path))


def whole(file: FileIO, build_id: str, kind: str, path: str) -> Opened:
    """All of an open file."""
    status = os.fstat(file.fileno())
    tag = f"{build_id}-{kind}-{status.st_size:x}-{status.st_mtime_ns:x}"
    return Opened(file, 0, status.st_size, os.path.basename(path), tag)


def is_wanted(entry: Entry, kind: str) -> bool:
    """Whether a file is one of a kind: files with symbols but no DWARF are debug files too."""
    return entry.has_code if kind == "executable" else bool(entry.offers & (DWARF | SYMTAB))


def section_of(modules: Modules, build_id: str, name: str) -> Opened | None:
    """A section as it is in the file, of the debug file, else of the one with the code."""
    if len(name) > MAX_SECTION_NAME:
        raise UsageError("the name of a section is too long")
    for kind in KINDS:
        opened = file_of(modules, build_id, kind)
        if opened is None:
            continue
        with ElfImage.open(f"/proc/self/fd/{opened.file.fileno()}") as image:
            section = image.find(name)
            if section is not None and image.raw(section) is not None:
                tag = f"{opened.tag}-{section.file_offset:x}"
                return opened._replace(offset=section.file_offset, size=section.size, tag=tag)
    return None


def source_of(modules: Modules, folders: Sources, build_id: str, path: str) -> Opened | None:
    """A source file that the debug information of a build names; None if it names no such file, or there is none below
    the folders with sources."""
    wanted = normalized(path)
    found = folders.find(wanted)
    if found is None:
        return None
    with modules.held(build_id) as module:
        if module is None or not module.names_source(wanted):
            return None
    return whole(opened_file(found), build_id, "source", found)


def normalized(path: str) -> str:
    """An absolute path without `.`, `..` and `//`. Raises UsageError for another one."""
    if not path.startswith("/") or "\0" in path or len(path) > MAX_PATH:
        raise UsageError("the path of a source file is not absolute, or too long")
    return "/" + posixpath.normpath(path).lstrip("/")
