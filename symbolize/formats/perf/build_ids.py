"""Which build id of the table of a recording is that of a mapping, and which files had a path while it was recorded."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from symbolize.formats.perf.header import RecordedBuildId
from symbolize.profile.model import IdOrigin

KERNEL: Final = re.compile(rb"\[kernel[^]]*\]\w*|(?:.*/)?vmlinux[^/]*|/proc/kcore")
MODULE: Final = re.compile(rb"\[([\w-]+)\]|(?:.*/)?([^/]+)\.ko(?:\.(?:gz|xz|zst))?")
VDSO: Final = re.compile(rb"\[vdso\w*\]")
MAX_FILES: Final = 16
"""Files that one path had which are distinguished; further ones count as the last of them."""


class FileId(NamedTuple):
    """What tells one file from another that had its path before, as the kernel has it: the device, the inode, and how
    often that was used anew, 0 where it is not known."""

    major: int
    minor: int
    inode: int
    generation: int


class RecordedFiles:
    """The files that the paths of mappings were of, each by its number among those of its path.

    An id is void where the path was of files of different device, inode or generation (unless that is 0, as perf has it
    for what was mapped before), where the table has two for one path, and for mappings that a process made in another
    mount namespace than the first (R293, names in the table of build ids).
    """

    def __init__(self) -> None:
        self._known: dict[int, list[FileId]] = {}

    def number(self, name: int, file: FileId) -> int:
        """The number of a file, whose path is string `name`, from 0 on in the order in which they were mapped; 0 if it
        is not known which file it is."""
        if not file.inode:
            return 0
        known = self._known.setdefault(name, [])
        for number, each in enumerate(known):
            if each[:3] == file[:3] and (0 in (each.generation, file.generation) or each == file):
                # What perf finds mapped when it starts has no generation.
                known[number] = max(each, file)
                return number
        if len(known) < MAX_FILES:
            known.append(file)
        return len(known) - 1

    def are_several(self, name: int) -> bool:
        """Whether a path was of several files."""
        return len(self._known.get(name, ())) > 1


class BuildIds:
    """The table of build ids by the names that mappings have (R293, names in the table of build ids).

    perf writes it when it stops, and takes the ids from the files that have the paths then. Only those of the kernel,
    its modules and the vdso are from memory. The kernel is `[kernel.kallsyms]` or a vmlinux there, a module `[NAME]` or
    a path to `NAME.ko`, packed or not, where `-` and `_` are equal.
    """

    def __init__(self, entries: Sequence[RecordedBuildId]) -> None:
        self._by_name: dict[bytes, RecordedBuildId] = {}
        self._ambiguous: set[bytes] = set()
        self._modules: dict[bytes, bytes] = {}
        self._kernel = b""
        for entry in entries:
            if not entry.build_id or entry.is_guest:
                continue
            if entry.is_kernel and KERNEL.fullmatch(entry.name):
                self._kernel = self._kernel or entry.build_id
            elif entry.is_kernel and (module := module_name(entry.name)):
                self._modules.setdefault(module, entry.build_id)
            else:
                known = self._by_name.setdefault(entry.name, entry)
                if known.build_id != entry.build_id:
                    self._ambiguous.add(entry.name)

    def find(self, name: bytes) -> tuple[bytes, IdOrigin]:
        """The build id of the file of a mapping, empty if it is not known, and what it was read from."""
        if name.startswith(b"[kernel.kallsyms]"):
            return self._kernel, IdOrigin.RECORDED
        entry = self._by_name.get(name)
        if entry is None:
            return self._modules.get(module_name(name), b""), IdOrigin.RECORDED
        if name in self._ambiguous:
            return b"", IdOrigin.UNKNOWN
        is_memory = entry.is_kernel or VDSO.fullmatch(name) is not None
        return entry.build_id, IdOrigin.RECORDED if is_memory else IdOrigin.READ_LATER


def module_name(name: bytes) -> bytes:
    """The name of the kernel module that a file or mapping is of, empty if it is none."""
    match = MODULE.fullmatch(name)
    return (match[1] or match[2]).replace(b"-", b"_") if match else b""
