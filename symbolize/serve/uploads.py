"""Debug files that clients send: checked, whole or not at all, never replaced, bounded in all."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final

from symbolize.binaries.debuginfod.cache import Wrong, verify_file
from symbolize.core.errors import InputError, SymbolizeError, UsageError
from symbolize.core.files import atomic_file, file_lock, sync_folder
from symbolize.elf.probe import CODE, DWARF, HEADER_BYTES, SYMTAB, identify_open
from symbolize.serve.request_bodies import pieces

WANTED: Final = {"debuginfo": DWARF | SYMTAB, "executable": CODE}
"""What a file has to have of these to be of a kind."""
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PATIENCE: Final = 30.0


class Full(SymbolizeError):
    """There is no room for another file."""


class Uploads:
    """Debug files that clients sent, in the layout `.build-id/XX/REST` below `folder`; at most `limit` bytes each, and
    `space` bytes in all."""

    def __init__(self, folder: str, limit: int, space: int) -> None:
        self.folder = folder
        self.limit = limit
        self.space = space

    def path(self, build_id: str, kind: str) -> str:
        """Where a file of a build is kept."""
        suffix = ".debug" * (kind == "debuginfo")
        return os.path.join(self.folder, ".build-id", build_id[:2], build_id[2:] + suffix)

    def has(self, build_id: str, kind: str) -> bool:
        """Whether a file is there."""
        return os.path.lexists(self.path(build_id, kind))

    def check_room(self, size: int) -> None:
        """Raise Full if there is no room for a file of so many bytes."""
        if size + total_size(self.folder) > self.space:
            raise Full(f"the uploads may have {self.space} bytes in all")

    def receive(self, build_id: str, kind: str, body: BinaryIO) -> bool:
        """Keep what was sent, a file of the folder without a name, once it is known to be an ELF file with the build
        id; whether it is new. A file that is there is not replaced (R416, uploads). Raises UsageError for another file,
        Full, OSError.

        The file gets its name, below `.build-id`, when all of it is on the disk.
        """
        check(build_id, kind, body)
        path = self.path(build_id, kind)
        with file_lock(os.path.join(self.folder, ".uploading"), PATIENCE) as is_mine:
            if not is_mine:
                raise SymbolizeError("other uploads take long; send it again")
            if os.path.lexists(path):
                return False
            body.seek(0, os.SEEK_END)
            self.check_room(body.tell())
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.fchmod(body.fileno(), 0o644)
            os.fsync(body.fileno())
            try:
                os.link(f"/proc/self/fd/{body.fileno()}", path, follow_symlinks=True)
            except FileExistsError:  # a file system without locks
                return False
            except OSError as error:
                if error.errno in FULL:
                    raise
                copy(body, path)  # a file system without links to files without a name
            sync_folder(os.path.dirname(path))
        return True


@contextmanager
def full_disk() -> Iterator[None]:
    """Raises Full for an OSError of a disk that is full."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise Full("the disk is full") from error
        raise


def check(build_id: str, kind: str, body: BinaryIO) -> None:
    """Raise UsageError unless a body is an ELF file of a kind with the build id, and all of it."""
    try:
        found = identify_open(body.fileno(), "upload", os.pread(body.fileno(), HEADER_BYTES, 0))
    except InputError as error:
        raise UsageError(f"the file is damaged: {error.problem}") from error
    if found is None:
        raise UsageError("the file is no ELF file")
    if found.build_id != build_id:
        raise UsageError(f"the file has the build id {found.build_id or 'none'}, not {build_id}")
    if not found.offers & WANTED[kind]:
        raise UsageError(f"the file is no {kind}: it has no {'code' if kind == 'executable' else 'debug information'}")
    try:
        verify_file(f"/proc/self/fd/{body.fileno()}", build_id)
    except Wrong as error:
        raise UsageError(f"the file is {error}") from error


def copy(body: BinaryIO, path: str) -> None:
    """Write a body to a file. Raises OSError."""
    body.seek(0)
    with atomic_file(path, durable=True) as file:
        for piece in pieces(body):
            file.write(piece)


def total_size(folder: str) -> int:
    """Bytes of all files below a folder."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(parent, name)).st_size
    return size
