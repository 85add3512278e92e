"""The binaries that are asked for by path or build id: each is opened once, with its debug files, and stays open."""

import errno
import os
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from symbolize.binaries import BinaryIndex, Companions, Servers, find_binary, is_build_id
from symbolize.binaries.links import SYSTEM, build_id_files, debug_files
from symbolize.core.closing import Closeable
from symbolize.core.errors import InputError, SymbolizeError
from symbolize.core.files import os_error_text
from symbolize.core.mapped_names import release_in
from symbolize.core.reasons import Reason
from symbolize.core.records import record
from symbolize.elf import read_build_id
from symbolize.resolve.module import Module, open_module
from symbolize.resolve.opened import BinaryPool
from symbolize.symbols import TableCache

MAX_OPEN: Final = 64
"""Binaries that are open at a time."""
MAX_FAILED: Final = 1 << 12
"""Names that lead to no binary and are remembered, so that each is reported once."""
COMPANION_DEPTH: Final = 2
NOT_AN_OBJECT: Final = "The file was not recognized as a valid object file"


class Wanted(NamedTuple):
    """A binary that is asked for, by its path or by its build id. The one never stands for the other: a file that is
    called like a build id need not have it (R380, debug files of one binary)."""

    name: str
    is_build_id: bool = False


class Places(NamedTuple):
    """Where files are looked for: folders in the layout of debuggers, what replaces them for debug links, folders that
    are searched whole, and a package of split units."""

    debug_folders: Sequence[str] = (SYSTEM,)
    fallback: str = ""
    binaries: Sequence[str] = ()
    package: str = ""


@record(frozen=True)
class WithPackage(Companions):
    """The companions of a binary, and a package that was named for it."""

    package: str = ""

    def packages(self) -> list[str]:
        """The named package alone."""
        return [self.package]


class Binaries(Closeable):
    """The binaries of one run; tables are kept in `cache`, if there is one, and `servers` may have what is missing."""

    def __init__(self, places: Places, cache: TableCache | None, servers: Servers | None = None) -> None:
        self._places, self._cache, self._servers = places, cache, servers
        self._pool: BinaryPool[Wanted, Module] = BinaryPool(MAX_OPEN)
        self._failed: dict[Wanted, None] = {}
        self._base = cache.base if cache is not None and places.binaries else None
        self._index = BinaryIndex(places.binaries, self._base, servers)

    def module(self, wanted: Wanted) -> Module | None:
        """The binary at a path or with a build id; None if that failed before. Raises InputError the first time."""
        if wanted in self._failed:
            return None
        try:
            module = self._pool.hold(wanted, partial(self._opened, wanted))
        except SymbolizeError:
            if len(self._failed) < MAX_FAILED:
                self._failed[wanted] = None
            raise
        self._pool.release(module)  # one at a time is used, and the last one stays open
        return module

    def module_again(self, wanted: Wanted) -> Module:
        """As `module`, of a binary that was open before. Raises InputError each time."""
        module = self.module(wanted)
        if module is None:
            raise InputError(wanted.name, "cannot be opened again")
        return module

    def called(self, name: str, release: str = "") -> str | None:
        """The path of the one file in the folders that has a name, or of the one build that has; None for none or
        several (R144, unverified matches). With the release of a kernel those do not count whose path has another
        one (R465, other kernels)."""
        found = find_binary(self._index, "", name)
        matches = [match for _, match in found.candidates] if release and found.candidates else [found]
        paths = [match.paths[0] for match in matches if match.paths and match.reason == Reason.SYMBOLIZED]
        paths = [path for path in paths if not release or release_in(path) in ("", release)]
        return paths[0] if len(paths) == 1 else None

    def has_symbol_table(self, wanted: Wanted) -> bool:
        """Whether the file that was opened has a table of all symbols itself, not only its debug file."""
        module = self._pool.get(wanted)
        return module is not None and module.binary.loaded.find(".symtab") is not None

    def _opened(self, wanted: Wanted) -> Module:
        name, folders = wanted.name, self._places.debug_folders
        if wanted.is_build_id:
            files = build_id_files(name, folders)
            if not is_build_id(name) or not (files or self._index.has_sources):
                raise InputError(name, "could not find build ID")
        else:
            check_object(name)
            files = [name, *debug_files(name, folders, self._places.fallback)]
        index = nearby = self._index
        if files:
            index = BinaryIndex([*files, *self._places.binaries], self._base, self._servers)
            roots = [os.path.dirname(os.path.abspath(files[0])), *(os.path.join(each, ".dwz") for each in folders)]
            nearby = BinaryIndex([*self._places.binaries, *filter(os.path.isdir, roots)], depth=COMPANION_DEPTH)
        owned = [each for each in (index, nearby) if each is not self._index]

        def companions(paths: Sequence[str]) -> Companions:
            package = self._places.package
            return WithPackage(nearby, paths, package) if package else Companions(nearby, paths)

        return open_module(name, index, self._cache, companions, wanted.is_build_id, owned)

    def close(self) -> None:
        """Close all files."""
        self._pool.close()
        self._index.close()


def check_object(path: str) -> None:
    """Raise InputError, in the words of the system and of LLVM, if there is no ELF file at `path`."""
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        build_id = read_build_id(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError(path, os_error_text(error)) from error
    except InputError as error:
        raise InputError(path, NOT_AN_OBJECT) from error
    if build_id is None:
        raise InputError(path, NOT_AN_OBJECT)
