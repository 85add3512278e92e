"""Debug files, sections and sources by build id, as debuginfod serves them."""

import os
import posixpath
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from io import FileIO
from typing import Final, NamedTuple

from symbolize.analysis.sources import Sources
from symbolize.binaries import find_binary, is_build_id, plain_build_id, same_build_id
from symbolize.binaries.debuginfod import Fetched
from symbolize.binaries.debuginfod.cache import Wrong, verify_file
from symbolize.binaries.entries import Entry, matches
from symbolize.core.errors import ChangedFile, ReadFailure, SymbolizeError, UsageError
from symbolize.core.files import open_regular
from symbolize.elf import ElfError, ElfImage
from symbolize.elf.probe import DWARF, SYMTAB
from symbolize.resolve.opened import LASTING
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
    the folders. Compressed files are decompressed. Raises OSError or ReadFailure if that is not known."""
    found = modules.files(build_id)
    entries = sorted((entry for entry in found if is_wanted(entry, kind)), key=lambda each: each.rank)
    if entries:
        return first_of(partial(indexed, entry, build_id, kind) for entry in entries)
    for entry in found:
        check_whole(entry)  # one that is cut may have lost what it is wanted for
    paths = find_binary(modules.index, build_id, "", fetch=False).paths
    return first_of(partial(checked, path, build_id, kind) for path in paths)


def first_of(looks: Iterable[Callable[[], Opened | None]]) -> Opened | None:
    """The first file that is there. If none is, raises the error of one that may be: clients remember misses."""
    failure: OSError | ReadFailure | None = None
    for look in looks:
        try:
            if (opened := look()) is not None:
                return opened
        except ReadFailure as error:
            failure = error
        except OSError as error:
            failure = failure if error.errno in LASTING else error
    if failure is not None:
        raise failure
    return None


def indexed(entry: Entry, build_id: str, kind: str) -> Opened | None:
    """The file of an entry. Raises OSError, ReadFailure."""
    file = opened_file(entry.path)
    if not matches(entry, os.fstat(file.fileno())):
        raise ChangedFile(entry.path, "has changed since the folders were walked")
    check_whole(entry)
    return whole(file, build_id, kind, entry.path)


def check_whole(entry: Entry) -> None:
    """Raise ReadFailure if the file of an entry is cut."""
    if problem := damage(entry.path, entry.build_id or "", entry.identity, entry.state):
        raise ReadFailure(entry.path, problem)


@lru_cache(4096)
def damage(path: str, build_id: str, *_: object) -> str:
    """What is wrong with a file that is in a certain state; empty if it is whole."""
    try:
        verify_file(path, build_id)
    except Wrong as error:
        return str(error)
    return ""


def checked(path: str, build_id: str, kind: str) -> Opened | None:
    """The file at `path`, if it is one of a kind with the build id. Raises OSError, ReadFailure."""
    file = opened_file(path)
    try:
        with ElfImage.open(path_of(file)) as image:
            has_it = image.build_id is not None and same_build_id(image.build_id, build_id)
            is_kind = image.has_code if kind == "executable" else image.has_dwarf or ".symtab" in names_of(image)
    except ElfError as error:
        raise ReadFailure(path, error.problem) from error
    return whole(file, build_id, kind, path) if has_it and is_kind else None


def path_of(file: FileIO) -> str:
    """A path that leads to an open file, whatever is at its own by now."""
    return f"/proc/self/fd/{file.fileno()}"


def names_of(image: ElfImage) -> set[str]:
    """The names of the sections of a file."""
    return {section.name for section in image.sections}


def fetched(answer: Fetched, build_id: str, kind: str) -> Opened | None:
    """The file that came from a server; None if no server has it. Raises SymbolizeError if that is not known, or only
    sections of it came."""
    if answer.is_composed:
        raise SymbolizeError("the debug file is so large that only parts of it are here, which are not passed on")
    if answer.path is None:
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
        try:
            with ElfImage.open(path_of(opened.file)) as image:
                section = image.find(name)
                is_there = section is not None and image.raw(section) is not None
        except ElfError as error:
            raise ReadFailure(opened.name, error.problem) from error
        if section is not None and is_there:
            tag = f"{opened.tag}-{section.file_offset:x}"
            return opened._replace(offset=section.file_offset, size=section.size, tag=tag)
        if section is not None and section.has_bytes:
            raise ReadFailure(opened.name, f"ends before its section {name} does")
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
