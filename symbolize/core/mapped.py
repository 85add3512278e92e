"""Files mapped into memory for reading, and whether they changed meanwhile (R280); memory given back."""

import ctypes
import mmap
import os
from typing import Any

import numpy as np

from symbolize.core import page_faults
from symbolize.core.errors import ChangedFile
from symbolize.core.files import open_regular

CHANGED = "changed while it was read"
UNREADABLE = "could not be read to its end"
"""What is wrong where a page of a file that did not change cannot be had: of a disk or a server, as a rule."""

BLOCK = 1 << 24


class MappedFile:
    """The regular file at `path`, mapped for reading; `data` are its bytes, `status` is as it was when it was opened.

    Reading `data` never fails, but where the file was truncated or cannot be read it gives zeros: whoever has read asks
    `check` before the answers are used. A file that is renamed, removed or replaced by another under its name stays
    what it was. Views of `data` keep the memory; `close` releases that of this object. Where files cannot be mapped
    with this protection they are read as a whole. Raises OSError, and ChangedFile where that happens meanwhile.

    What was read counts only if size and time of modification are those of the opening and every page could be read.
    That is asked when the answers are complete: before a table is kept, before names are taken, and when they are
    written into the profile (R280, files that change).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._mapping: page_faults.GuardedMapping | None = None
        self._problem = ""
        descriptor = open_regular(path)
        try:
            self.status = os.fstat(descriptor)
            if page_faults.COMPILED and self.status.st_size:
                try:
                    self._mapping = page_faults.GuardedMapping(descriptor, self.status.st_size)
                except page_faults.NoRange:
                    pass
                except OSError:
                    descriptor = -1
                    raise
                else:
                    descriptor = -1
                    self.data = memoryview(self._mapping)
            if self._mapping is None:
                contents = read_all(descriptor, self.status.st_size)
                if len(contents) != self.status.st_size or is_other(self.status, os.fstat(descriptor)):
                    raise ChangedFile(self.path, CHANGED)
                self.data = memoryview(contents)
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    @property
    def problem(self) -> str:
        """Why what was read does not count, empty as long as it does; after `close` that of then."""
        if self._mapping is not None:
            try:
                is_changed = is_other(self.status, os.fstat(self._mapping.descriptor))
            except OSError:  # a server that has it no more
                is_changed = True
            if is_changed:
                self._problem = CHANGED
            elif self._mapping.has_faulted:
                self._problem = self._problem or UNREADABLE
        return self._problem

    def check(self) -> None:
        """Raise ChangedFile if what was read so far does not count."""
        if self.problem:
            raise ChangedFile(self.path, self._problem)

    def close(self) -> None:
        """Unmap the file. Views of it that are still in use keep the memory."""
        _ = self.problem
        self.data.release()
        self._mapping = None


def let_go(data: bytes | memoryview, begin: int, size: int) -> None:
    """Tell the system that some bytes of `data` are not needed in memory for now, if it is a view of a mapped file,
    from which they come back when they are read."""
    whole = data.obj if isinstance(data, memoryview) else None
    if not isinstance(whole, page_faults.GuardedMapping | mmap.mmap):
        return
    place = _address(data) - _address(whole) + begin
    first = -(-place // mmap.PAGESIZE) * mmap.PAGESIZE
    size -= first - place
    if size <= 0:
        return
    if isinstance(whole, mmap.mmap):
        whole.madvise(mmap.MADV_DONTNEED, first, size)
    else:
        whole.forget(first, size)


def _address(data: Any) -> int:
    """Where the bytes of a buffer are, to tell where in another buffer they are."""
    return int(np.frombuffer(data, np.uint8).__array_interface__["data"][0])


def is_other(before: os.stat_result, after: os.stat_result) -> bool:
    """Whether a file was written to between two looks. What changes with its names only does not matter."""
    return (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)


def read_all(descriptor: int, size: int) -> bytes:
    """The contents of an open file, up to one byte more than `size`."""
    parts: list[bytes] = []
    left = size + 1
    while left > 0 and (part := os.read(descriptor, min(BLOCK, left))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def give_back() -> None:
    """Give memory that was freed back to the system, which the C library of GNU does not do by itself with what lies
    between memory in use; of other libraries nothing is asked."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
