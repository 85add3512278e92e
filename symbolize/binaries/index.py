"""The files below the given roots, by build id and by name, from one walk that reads headers and notes only."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from symbolize.binaries.build_id import build_id_key
from symbolize.elf import ElfError, read_build_id

MAX_DEPTH = 64
"""Folders nested deeper than this are not entered."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An ELF file: where it is, its path relative to the root, and its build id if it has one."""

    path: str
    relative: str
    build_id: str | None


@dataclass(eq=False)
class BinaryIndex:
    """Index of the ELF files below `roots` (folders or single files), made at the first question.

    `problems` lists what could not be read, a sentence each.
    """

    roots: Sequence[Path]
    problems: list[str] = field(default_factory=list)
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

    def _walk(self) -> None:
        if self._walked:
            return
        self._walked = True
        real_roots = [os.path.realpath(root) for root in self.roots]
        for root in self.roots:
            for path, relative in self._files(root, real_roots):
                try:
                    build_id = read_build_id(path)
                except ElfError as error:
                    self.problems.append(str(error))
                    continue
                except OSError as error:
                    self.problems.append(f"{path}: {error.strerror or error}")
                    continue
                if build_id is not None:
                    entry = Entry(path, relative, build_id or None)
                    if build_id:
                        self._by_id.setdefault(build_id_key(build_id), []).append(entry)
                    self._by_path.setdefault(relative, []).append(entry)
                    self._by_name.setdefault(relative.rpartition("/")[2], []).append(entry)

    def _files(self, root: Path, real_roots: list[str]) -> Iterator[tuple[str, str]]:
        """Path and path relative to `root` of the regular files below it, in order of name.

        Links are followed where they lead to something inside one of the roots; folders are entered once.
        """
        try:
            status = os.stat(root)
        except OSError as error:
            self.problems.append(f"{root}: {error.strerror or error}")
            return
        if stat.S_ISREG(status.st_mode):
            yield str(root), root.name
            return
        seen = {(status.st_dev, status.st_ino)}
        stack = [(str(root), "", 0)]
        while stack:
            folder, prefix, depth = stack.pop()
            try:
                with os.scandir(folder) as scan:
                    entries = sorted(scan, key=lambda entry: entry.name)
            except OSError as error:
                self.problems.append(f"{folder}: {error.strerror or error}")
                continue
            folders = []
            for entry in entries:
                relative = prefix + entry.name
                try:
                    if entry.is_symlink() and not inside(os.path.realpath(entry.path), real_roots):
                        self.problems.append(f"{entry.path}: leads out of the --binaries folders, not followed")
                    elif entry.is_dir():
                        status = entry.stat()
                        if (status.st_dev, status.st_ino) not in seen and depth < MAX_DEPTH:
                            seen.add((status.st_dev, status.st_ino))
                            folders.append((entry.path, relative + "/", depth + 1))
                    elif entry.is_file():
                        yield entry.path, relative
                except OSError as error:
                    self.problems.append(f"{entry.path}: {error.strerror or error}")
            stack.extend(reversed(folders))


def inside(path: str, roots: Sequence[str]) -> bool:
    """Whether the resolved `path` is one of `roots` or lies below one."""
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)
