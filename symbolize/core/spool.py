"""Bytes that are kept in a file without a name, because there may be more of them than memory."""

import mmap


class Spool:
    """A file that is gone when nothing refers to its bytes any more."""

    def __init__(self) -> None:
        import tempfile  # which takes as long as much of a start

        self._file = tempfile.TemporaryFile(prefix="symbolize-")  # noqa: SIM115
        self._size = 0

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes; where they begin."""
        begin = self._size
        self._file.write(data)
        self._size += len(data)
        return begin

    def mapped(self) -> memoryview:
        """All bytes, mapped for reading."""
        self._file.flush()
        if not self._size:
            return memoryview(b"")
        return memoryview(mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ))
