"""What the index knows of one file, and whether the file is still the same."""

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from symbolize.binaries import store
from symbolize.core.files import open_regular
from symbolize.elf.probe import CODE, DWARF, DYNSYM, MINI, SYMTAB

MAX_CHECKED = 8 << 30
"""Bytes of the largest file whose checksum is computed."""


HASHED_BYTES, HASH_DIGITS = 4096, 32


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: where it was found first, below which of the roots, and its build id if it has one.

    `relative` is its path below the root, `offers` a union of the bits of `elf.probe`, `link` and `link_check` name and
    CRC32 of its debug file if it names one, `go_build_id` what Go's linker wrote. `path_key` is the key of the build id
    in its path, if the layout of its folder has one there. `what` is one of the constants of `store`.
    """

    path: str
    root: int
    build_id: str | None
    relative: str = field(compare=False)
    offers: int = field(compare=False)
    link: str = field(compare=False)
    link_check: int = field(compare=False)
    path_key: str = field(compare=False)
    what: int = field(compare=False)
    number: int = field(compare=False)
    identity: tuple[int, int] = field(compare=False)
    state: tuple[int, int] = field(compare=False)
    crc: int | None = field(compare=False)
    go_build_id: str = field(compare=False)

    @property
    def build(self) -> str:
        """The identity of the build: the build id, else that of Go's linker, else the path."""
        return self.build_id or (f"go {self.go_build_id}" if self.go_build_id else self.path)

    @property
    def described(self) -> str:
        """The path with the build id, for a message."""
        return f"{self.path} ({self.build_id or 'no build id'})"

    @property
    def has_dwarf(self) -> bool:
        """Whether the file has debug information of its own."""
        return bool(self.offers & DWARF)

    @property
    def rank(self) -> int:
        """DWARF beats .symtab beats .dynsym and mini debug info beats nothing: 0 to 3, the lower the better."""
        if self.offers & DWARF:
            return 0
        return 1 if self.offers & SYMTAB else 2 if self.offers & (DYNSYM | MINI) else 3

    @property
    def has_code(self) -> bool:
        """Whether the file holds the bytes of its code."""
        return bool(self.offers & CODE)


def is_same_file(entry: Entry, path: str) -> bool:
    """Whether the file at `path` is still the one of the entry, as far as its status tells."""
    try:
        return matches(entry, os.stat(path))
    except OSError:
        return False


def matches(entry: Entry, status: os.stat_result) -> bool:
    """Whether a status is that of the file of an entry, as it was."""
    identity = store.signed(status.st_ino), store.signed(status.st_dev)
    return (identity, (status.st_size, store.signed(status.st_mtime_ns))) == (entry.identity, entry.state)


def file_checksum(entry: Entry, limit: int = MAX_CHECKED, block: int = 1 << 20) -> int | None:
    """The CRC32 of a file as `.gnu_debuglink` has it; None if it is not the file of the entry any more or too large."""
    descriptor = open_regular(entry.path)
    try:
        status = os.fstat(descriptor)
        if not matches(entry, status) or status.st_size > limit:
            return None
        update, crc, left = crc32_function(), 0, status.st_size
        while left > 0 and (data := os.read(descriptor, min(block, left))):
            crc = update(data, crc)
            left -= len(data)
        return None if left else crc
    finally:
        os.close(descriptor)


def file_hash(entry: Entry) -> str | None:
    """The hash of a file by which the eBPF profiler of OpenTelemetry knows it: the first 16 bytes, in hex, of the
    SHA-256 of its first and last 4096 bytes and its length. None if it is not the file of the entry any more."""
    descriptor = open_regular(entry.path)
    try:
        status = os.fstat(descriptor)
        if not matches(entry, status):
            return None
        size = status.st_size
        tail = min(size, HASHED_BYTES)
        parts = os.pread(descriptor, HASHED_BYTES, 0), os.pread(descriptor, tail, size - tail), size.to_bytes(8, "big")
        return sha256(b"".join(parts)).hexdigest()[:HASH_DIGITS]
    finally:
        os.close(descriptor)


def crc32_function() -> Callable[[bytes, int], int]:
    """A CRC32, of the fastest library there is."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.crc32
    return isal_zlib.crc32
