"""The files below the given roots, by build id and by name, from one walk that reads headers and notes only."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from symbolize.binaries.build_id import build_id_key, is_build_id
from symbolize.elf import ElfError, read_build_id

MAX_DEPTH = 64
"""Folders nested deeper than this are not entered."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An ELF file: where it was met first, below which of the roots, and its build id if it has one."""

    path: str
    root: int
    build_id: str | None


@dataclass(eq=False)
class BinaryIndex:
    """Index of the ELF files below `roots` (folders or single files), made at the first question.

    `problems` lists what could not be read or was left out, a sentence each; `unread` has the paths of folders and
    files that the system did not let us read.
    """

    roots: Sequence[str]
    problems: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    _by_id: dict[str, list[Entry]] = field(default_factory=dict, repr=False)
    _by_path: dict[str, list[Entry]] = field(default_factory=dict, repr=False)
    _by_name: dict[str, list[Entry]] = field(default_factory=dict, repr=False)
    _walked: bool = False

    def with_build_id(self, build_id: str) -> list[Entry]:
        """The files with this build id, in order of the roots."""
        self._walk()
        return self._by_id.get(build_id_key(build_id), [])

    def at_path(self, path: str) -> list[Entry]:
        """The files that lie at the recorded `path` below a root, in order of the roots."""
        self._walk()
        return self._by_path.get(path.lstrip("/"), [])

    def with_name(self, name: str) -> list[Entry]:
        """The files called `name` anywhere below the roots, in order of the roots."""
        self._walk()
        return self._by_name.get(name, [])

    def binaries(self) -> list[list[str]]:
        """The paths of all files, those that share a build id together, as `with_build_id` has them."""
        self._walk()
        groups: dict[str, list[str]] = {}
        for entry in dict.fromkeys(entry for entries in self._by_path.values() for entry in entries):
            if entry.build_id is None:
                groups["/" + entry.path] = [entry.path]
            elif (key := build_id_key(entry.build_id)) not in groups:
                groups[key] = [same.path for same in self._by_id[key]]
        return list(groups.values())

    def _walk(self) -> None:
        if self._walked:
            return
        self._walked = True
        real_roots = [os.path.realpath(root) for root in self.roots]
        met: dict[tuple[int, int], Entry | None] = {}
        for number, root in enumerate(self.roots):
            for path, relative, file in self._files(root, real_roots):
                if file not in met:
                    met[file] = self._entry(path, number)
                    if (entry := met[file]) is not None and entry.build_id is not None:
                        self._by_id.setdefault(build_id_key(entry.build_id), []).append(entry)
                if (entry := met[file]) is not None:
                    for names, key in ((self._by_path, relative), (self._by_name, relative.rpartition("/")[2])):
                        if entry not in names.setdefault(key, []):
                            names[key].append(entry)

    def _cannot_read(self, path: str, error: OSError) -> None:
        self.unread.append(path)
        self.problems.append(f"{path}: {error.strerror or error}")

    def _entry(self, path: str, root: int) -> Entry | None:
        """The entry of a file; None if it is no ELF file or cannot be read."""
        try:
            build_id = read_build_id(path)
        except ElfError as error:
            self.problems.append(str(error))
            return None
        except OSError as error:
            self._cannot_read(path, error)
            return None
        return None if build_id is None else Entry(path, root, build_id if is_build_id(build_id) else None)

    def _files(self, root: str, real_roots: list[str]) -> Iterator[tuple[str, str, tuple[int, int]]]:
        """Path, path relative to `root` and identity of the regular files below it, in order of name.

        Links are followed where they lead to something inside one of the roots. Folders are entered once, linked
        ones last, so that a folder goes by its own name and not by that of a link to it.
        """
        try:
            status = os.stat(root)
        except OSError as error:
            self._cannot_read(root, error)
            return
        if stat.S_ISREG(status.st_mode):
            yield root, os.path.basename(root), (status.st_dev, status.st_ino)
            return
        if not stat.S_ISDIR(status.st_mode):
            self.problems.append(f"{root}: is neither a folder nor a regular file")
            return
        seen = {(status.st_dev, status.st_ino)}
        stack = [(root, "", 0)]
        links: list[tuple[tuple[int, int], str, str, int]] = []
        while stack or links:
            if stack:
                folder, prefix, depth = stack.pop()
            else:
                identity, folder, prefix, depth = links.pop(0)
                if identity in seen:
                    continue
                seen.add(identity)
            try:
                with os.scandir(folder) as scan:
                    entries = sorted(scan, key=lambda entry: entry.name)
            except OSError as error:
                self._cannot_read(folder, error)
                continue
            folders = []
            for entry in entries:
                relative = prefix + entry.name
                try:
                    if entry.is_symlink() and not inside(os.path.realpath(entry.path), real_roots):
                        self.problems.append(f"{entry.path}: leads out of the --binaries folders, not followed")
                    elif entry.is_dir():
                        status = entry.stat()
                        identity = status.st_dev, status.st_ino
                        if identity in seen:
                            continue
                        if depth == MAX_DEPTH:
                            self.problems.append(f"{entry.path}: is nested too deep, not entered")
                        elif entry.is_symlink():
                            links.append((identity, entry.path, relative + "/", depth + 1))
                        else:
                            seen.add(identity)
                            folders.append((entry.path, relative + "/", depth + 1))
                    elif entry.is_file():
                        status = entry.stat()
                        yield entry.path, relative, (status.st_dev, status.st_ino)
                except OSError as error:
                    self._cannot_read(entry.path, error)
            stack.extend(reversed(folders))


def inside(path: str, roots: Sequence[str]) -> bool:
    """Whether the resolved `path` is one of `roots` or lies below one."""
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)
