"""Compressed binaries, as symbol stores keep them: decompressed into the cache folder, once."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from symbolize.core.compression import GZIP, XZ, ZSTD, CompressionError, InflateLimits, codec_of, inflate
from symbolize.core.files import CacheFolder, atomic_file, is_regular, mark_used, open_regular

if TYPE_CHECKING:
    import tempfile

CODECS = (ZSTD, GZIP, XZ)
LIMITS = InflateLimits(size=8 << 30, ratio=64, free=1 << 24)
"""Bytes that one file may take when it is decompressed."""
CHUNK = 1 << 18
"""Bytes of a compressed file that are read at a time."""
MAX_ALL = 16 << 30
"""Bytes that all together may take; those that were used least recently go first."""
TOUCH_INTERVAL = 3600
"""Seconds between two notes of the last use of a file."""
FORGOTTEN = 30 * 86400
"""Seconds after which a decompressed file that nobody used is removed."""


class Unpacked:
    """The decompressed files in `folder`, a temporary one if there is none, which goes with this object."""

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else folder_in(folder)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def path_of(self, path: str, key: str) -> str:
        """Where the contents of the compressed ELF file at `path` lie; `key` is the key of its build id.

        Raises OSError if it cannot be read or written, CompressionError if it is corrupt, out of all proportion, or no
        ELF file.
        """
        with open(open_regular(path), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            folder = self._home()
            identity = f"{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_dev:x}"
            target = os.path.join(folder, f"{key[:64]}-{identity}")
            with suppress(FileNotFoundError):
                known = os.stat(target)
                if is_regular(known):
                    mark_used(target, known, TOUCH_INTERVAL)
                    return target
            with atomic_file(target) as output:
                blocks = iter(lambda: file.read(CHUNK), b"")
                for block in _inflated(blocks, path, LIMITS, status.st_size):
                    if not output.tell() and not block.startswith(b"\x7fELF"[: len(block)]):
                        raise CompressionError(path, "is compressed and holds no ELF file")
                    output.write(block)
            cache_folder(folder).evict(keep=target)
            return target

    def _home(self) -> str:
        if self._folder is not None:
            try:
                os.makedirs(self._folder, exist_ok=True)
                return self._folder
            except OSError:
                self._folder = None
        if self._temporary is None:
            import tempfile

            self._temporary = tempfile.TemporaryDirectory(prefix="symbolize-")
        return self._temporary.name


def folder_in(cache: str) -> str:
    """Where decompressed files lie in a cache folder."""
    return os.path.join(cache, "unpacked-1")


def cache_folder(folder: str) -> CacheFolder:
    """A folder of decompressed files, with its limits."""
    return CacheFolder(folder, MAX_ALL, FORGOTTEN)


def is_packed(head: bytes) -> bool:
    """Whether a file that begins with `head` is compressed in a known way."""
    return codec_of(head, CODECS) is not None


def decompress(data: bytes, limit: int, source: str) -> bytes:
    """The contents of an xz, gzip or zstd file, at most `limit` bytes and in proportion to its size.

    Raises CompressionError about `source`.
    """
    return b"".join(_inflated([data], source, LIMITS._replace(size=limit), len(data)))


def _inflated(pieces: Iterable[bytes], source: str, limits: InflateLimits, size: int) -> Iterator[bytes]:
    """The contents of a compressed file of `size` bytes that comes in pieces. Raises CompressionError."""
    unread = iter(pieces)
    head = next(unread, b"")
    codec = codec_of(head, CODECS)
    if codec is None:
        raise CompressionError(source, "is not compressed in a known way")
    return inflate(chain([head], unread), codec, source, limits, size)
