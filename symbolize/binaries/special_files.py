"""Files below the roots that are no plain ELF files and yet tell names, known by their own names."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_DEPTH = 64
"""Folders nested deeper than this are not entered."""
MAX_FILES = 1 << 16
"""Files of one kind that are remembered."""

KINDS = {
    "kernel": re.compile(r"vmlinux(-[^/]*)?"),
    "kallsyms": re.compile(r"kallsyms([-.][^/]*)?"),
    "system-map": re.compile(r"System\.map(-[^/]*)?"),
    "perf-map": re.compile(r"perf-\d+\.map"),
    "jitdump": re.compile(r"jit[^/]*\.dump"),
    "archive": re.compile(r"[^/]*\.(apk|zip|aab|jar)", re.IGNORECASE),
    "module": re.compile(r"[^/]*\.ko\.(xz|gz|zst)"),
    "breakpad": re.compile(r"[^/]*\.(sym|breakpad)|breakpad", re.IGNORECASE),
}
"""Kinds of files, and what files of that kind are called."""


ANY = re.compile("|".join(f"(?i:{pattern.pattern})" for pattern in KINDS.values()))


class SpecialFile(NamedTuple):
    """A file: where it is, below which of the roots, and its path relative to that."""

    path: str
    root: int
    relative: str

    @property
    def name(self) -> str:
        """The name without folders."""
        return self.relative.rpartition("/")[2]


@dataclass(eq=False)
class SpecialFiles:
    """The special files below `roots` (folders or single files), found by name when the first one is wanted.

    Links are followed where they lead to something inside one of the roots. `problems` lists what could not be used.
    """

    roots: Sequence[str]
    problems: list[str] = field(default_factory=list)
    _by_kind: dict[str, list[SpecialFile]] | None = field(default=None, repr=False)

    def of_kind(self, kind: str) -> list[SpecialFile]:
        """The files of one of the KINDS, in order of roots and paths, each once."""
        if self._by_kind is None:
            self._by_kind = {each: [] for each in KINDS}
            met: set[tuple[str, tuple[int, int]]] = set()
            for number, root in enumerate(self.roots):
                for file, identity in self._walk(root, number):
                    for each, pattern in KINDS.items():
                        if pattern.fullmatch(file.name) and (each, identity) not in met:
                            met.add((each, identity))
                            if len(self._by_kind[each]) < MAX_FILES:
                                self._by_kind[each].append(file)
        return self._by_kind[kind]

    def head(self, path: str, size: int) -> bytes:
        """The first `size` bytes of a regular file, fewer if it is shorter, none if it cannot be read."""
        return self._contents(path, size, only_head=True) or b""

    def read(self, path: str, limit: int) -> bytes | None:
        """The contents of a regular file of at most `limit` bytes; None, with a problem, if it is none."""
        return self._contents(path, limit, only_head=False)

    def _contents(self, path: str, limit: int, *, only_head: bool) -> bytes | None:
        try:
            # Never block on a FIFO that took the file's place.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            with open(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    self.tell(f"{path}: is no regular file")
                    return None
                if only_head:
                    return file.read(limit)
                data = file.read(limit + 1) if status.st_size <= limit else b""
                if len(data) > limit or status.st_size > limit:
                    self.tell(f"{path}: is larger than the {limit} bytes that are read of such a file")
                    return None
                return data
        except OSError as error:
            self.tell(f"{path}: {error.strerror or error}")
            return None

    def tell(self, problem: str) -> None:
        """Remember a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)

    def _walk(self, root: str, number: int) -> Iterator[tuple[SpecialFile, tuple[int, int]]]:
        """The regular files below a root, and their identity. What cannot be read the index tells of."""
        real_roots = [os.path.realpath(each) for each in self.roots]
        try:
            status = os.stat(root)
        except OSError:
            return
        if stat.S_ISREG(status.st_mode):
            yield SpecialFile(root, number, os.path.basename(root)), (status.st_dev, status.st_ino)
            return
        seen = {(status.st_dev, status.st_ino)}
        stack = [(root, "", 0)]
        linked: list[tuple[str, str, int]] = []
        while stack or linked:
            folder, prefix, depth = stack.pop() if stack else linked.pop(0)
            try:
                with os.scandir(folder) as scan:
                    entries = sorted(scan, key=lambda entry: entry.name, reverse=True)
            except OSError:
                continue
            files = []
            for entry in entries:
                try:
                    is_link = entry.is_symlink()
                    if not is_link and not entry.is_dir() and not ANY.fullmatch(entry.name):
                        continue  # most files, without a question to the system
                    if is_link and not is_inside(os.path.realpath(entry.path), real_roots):
                        continue
                    status = entry.stat()
                except OSError:
                    continue
                identity = status.st_dev, status.st_ino
                relative = prefix + entry.name
                if stat.S_ISREG(status.st_mode):
                    files.append((SpecialFile(entry.path, number, relative), identity))
                elif stat.S_ISDIR(status.st_mode) and depth < MAX_DEPTH:
                    if is_link:
                        linked.append((entry.path, relative + "/", depth + 1))
                    elif identity not in seen:
                        seen.add(identity)
                        stack.append((entry.path, relative + "/", depth + 1))
            yield from reversed(files)
            while linked and not stack:  # linked folders last, so that a folder goes by its own name
                status = os.stat(linked[0][0])
                if (status.st_dev, status.st_ino) not in seen:
                    seen.add((status.st_dev, status.st_ino))
                    break
                linked.pop(0)


def is_inside(path: str, roots: Sequence[str]) -> bool:
    """Whether the resolved `path` is one of `roots` or lies below one."""
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)
