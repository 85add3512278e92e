"""The files below a folder, folder by folder, in an order that does not depend on the file system."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

MAX_DEPTH = 64
"""Folders nested deeper than this are not entered."""
MAX_TARGET = 4000
"""Characters of the target of a link that is resolved by its folder; the system takes 4,095 bytes."""
MAX_KNOWN = 4096
"""Resolved folders that are kept, because links of one folder lead to few others."""

VIRTUAL = ("/proc", "/sys")
"""File systems of the kernel: `/proc` has a list of its symbols, their subfolders have no binaries of their own."""


class File(NamedTuple):
    """A regular file: its name, and what `stat` says of it (of what a link leads to)."""

    name: str
    status: os.stat_result


class Folder(NamedTuple):
    """A folder: its path, its path below the root with `/` at the end, whether it was entered through a link, and
    its regular files."""

    path: str
    relative: str
    is_linked: bool
    files: list[File]


class Walk:
    """Walks below folders; links are followed where they lead to something inside one of `roots` (resolved paths).

    `tell` gets a sentence for each thing that is not entered, `leave` the path of each link that leads out of the
    roots, whole and below its root, `fail` the path of what cannot be read, and why. With a `depth` folders nested
    deeper are left out on purpose.
    """

    def __init__(
        self,
        roots: Sequence[str],
        tell: Callable[[str], None],
        leave: Callable[[str, str], None],
        fail: Callable[[str, OSError], None],
        depth: int | None = None,
    ) -> None:
        self._depth = depth
        self._roots = roots
        self._tell = tell
        self._leave = leave
        self._fail = fail
        self._known: dict[str, str] = {}

    def folders(self, root: str, status: os.stat_result) -> Iterator[Folder]:
        """The folder `root` and those below it, except those of `VIRTUAL` file systems.

        Folders are entered once, linked ones last, so that a folder goes by its own name and not by that of a link to
        it.
        """
        seen = {(status.st_dev, status.st_ino)}
        stack = [(root, "", 0)]
        links: list[tuple[tuple[int, int], str, str, int]] = []
        linked = 0
        while stack or linked < len(links):
            if stack:
                folder, prefix, depth = stack.pop()
            else:
                identity, folder, prefix, depth = links[linked]
                linked += 1
                if identity in seen:
                    continue
                seen.add(identity)
            try:
                with os.scandir(folder) as scan:
                    entries = sorted(scan, key=lambda entry: entry.name)
            except OSError as error:
                self._fail(folder, error)
                continue
            files: list[File] = []
            folders = []
            for entry in entries:
                try:
                    is_link = entry.is_symlink()
                    if is_link and not self._is_inside(folder, entry):
                        self._leave(entry.path, prefix + entry.name)
                    elif entry.is_dir():
                        if folder in VIRTUAL and depth:
                            continue
                        status = entry.stat()
                        identity = status.st_dev, status.st_ino
                        if identity in seen:
                            continue
                        if depth == self._depth:
                            continue
                        if depth == MAX_DEPTH:
                            self._tell(f"{entry.path}: is nested too deep, not entered")
                        elif is_link:
                            links.append((identity, entry.path, prefix + entry.name + "/", depth + 1))
                        else:
                            seen.add(identity)
                            folders.append((entry.path, prefix + entry.name + "/", depth + 1))
                    elif entry.is_file():
                        files.append(File(entry.name, entry.stat()))
                except OSError as error:
                    self._fail(entry.path, error)
            yield Folder(folder, prefix, linked > 0, files)
            stack.extend(reversed(folders))

    def _is_inside(self, folder: str, entry: os.DirEntry[str]) -> bool:
        """Whether what a link leads to is below a root. A target that is no link itself is resolved by its folder."""
        target = os.path.join(folder, os.readlink(entry.path))
        parent, name = os.path.split(target)
        if name in ("", ".", "..") or len(target) > MAX_TARGET:
            return inside(os.path.realpath(entry.path), self._roots)
        if parent not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[parent] = os.path.realpath(parent)
        path = os.path.join(self._known[parent], name)
        try:
            if stat.S_ISLNK(os.lstat(path).st_mode):
                path = os.path.realpath(path)
        except (FileNotFoundError, NotADirectoryError):
            pass  # leads to nothing, which is no problem
        return inside(path, self._roots)


def inside(path: str, roots: Sequence[str]) -> bool:
    """Whether the resolved `path` is one of `roots` or is below one."""
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)
