"""Folders whose layout says which build id a file has: the build id in the path of a file (docs/finding-binaries.md).

Nothing here makes a path out of a build id. The paths of files that were met are read, so that an id of one character
or one with `..` in it leads nowhere.
"""

import posixpath
import re
from collections.abc import Iterator

from symbolize.binaries.build_id import build_id_key, is_build_id, plain_build_id

LIST_NAME = "build_id_list"
MAX_LIST_BYTES = 1 << 24
MAX_LISTED = 1 << 18

SPECIAL_NAMES = {
    "kernel": re.compile(r"vmlinux(-[^/]*)?"),
    "kallsyms": re.compile(r"kallsyms([-.][^/]*)?"),
    "system-map": re.compile(r"System\.map(-[^/]*)?"),
    "perf-map": re.compile(r"perf-\d+\.map"),
    "jitdump": re.compile(r"jit[^/]*\.dump"),
    "archive": re.compile(r"[^/]*\.(apk|zip|aab|jar)", re.IGNORECASE),
    "module": re.compile(r"[^/]*\.ko\.(xz|gz|zst)"),
    "gsym": re.compile(r"[^/]*\.gsym", re.IGNORECASE),
    "breakpad": re.compile(r"[^/]*\.(sym|breakpad)|breakpad", re.IGNORECASE),
}
"""Files that are no plain ELF files and yet hold names of functions: what those of each kind are called."""

SPECIAL_NAME = re.compile("|".join(f"(?i:{pattern.pattern})" for pattern in SPECIAL_NAMES.values()))

KERNEL_LISTS, RUN_TIME_LISTS = ("kallsyms", "system-map", "kernel"), ("perf-map", "jitdump")
"""Kinds of files with the names of mappings that have no file of their own: of the kernel, of code made at run time."""

_ID = "(?:0x)?[0-9a-f]"
_SPLIT = re.compile(r"/([0-9a-f]{2})/([0-9a-f]{2,126})(?:\.debug|\.dbg)?$", re.IGNORECASE)
_SPLIT_FOLDER = re.compile(r"/([0-9a-f]{2})/([0-9a-f]{2,126})/(?:debuginfo|executable|elf|vdso|debug)$", re.IGNORECASE)
_SYMSTORE = re.compile(r"/elf-buildid-(?:sym-)?([0-9a-f]{4,128})/[^/]+$", re.IGNORECASE)
_FOLDER = re.compile(rf"/({_ID}{{4,128}})/[^/]+$", re.IGNORECASE)
_PREFIX = re.compile(rf"/({_ID}{{40}})-[^/]+$", re.IGNORECASE)


def list_kinds(name: str) -> list[str]:
    """The kinds of KERNEL_LISTS and RUN_TIME_LISTS that a file of this name is of."""
    return [kind for kind in (*KERNEL_LISTS, *RUN_TIME_LISTS) if SPECIAL_NAMES[kind].fullmatch(name)]


def path_build_id_key(path: str) -> str:
    """The key of the build id that a file at `path` (absolute) has if its folder is laid out by build ids, else "".

    `.build-id/xx/rest.debug` and without `.build-id` (gdb, pprof, Symbolicator), `xx/rest/debuginfo` (Sentry, perf),
    `ID/debuginfo`, `ID/elf` and `ID/name` (debuginfod, Parca, perf, simpleperf), `name/elf-buildid-ID/name` (symstore),
    `ID-name` (simpleperf until 2023).
    """
    tail = path[-400:]
    for pattern in (_SPLIT, _SPLIT_FOLDER, _SYMSTORE, _FOLDER, _PREFIX):
        match = pattern.search(tail)
        if match is not None and is_build_id(build_id := plain_build_id("".join(match.groups()))):
            return build_id_key(build_id)
    return ""


def listed(data: bytes) -> Iterator[tuple[str, str]]:
    """Key of the build id and relative path of each entry of a simpleperf `build_id_list`: lines `0xID=path`."""
    for number, line in enumerate(data.splitlines()):
        if number == MAX_LISTED:
            return
        build_id, equals, path = line.decode("utf-8", "surrogateescape").strip().partition("=")
        build_id = plain_build_id(build_id)
        path = posixpath.normpath(path.lstrip("/")) if path else ""
        if equals and path and path != "." and path.split("/")[0] != ".." and is_build_id(build_id):
            yield build_id_key(build_id), path
