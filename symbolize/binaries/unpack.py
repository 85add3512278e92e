"""Compressed binaries, as symbol stores keep them: decompressed into the cache folder, once."""

import io
import os
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from symbolize.regular import is_regular, open_regular

if TYPE_CHECKING:
    import tempfile

MAX_BYTES = 8 << 30
"""Bytes that one file may take when it is decompressed."""
MAX_ALL = 16 << 30
"""Bytes that all together may take; those that were used least recently go first."""
MAX_RATIO = 64
FREE_BYTES = 1 << 24
"""A file may expand to this many bytes and MAX_RATIO times its size in addition."""
MAX_WINDOW = 1 << 27
FORGOTTEN = 30 * 86400
"""Seconds after which a decompressed file that nobody used is removed."""


class Unpacked:
    """The decompressed files in `folder`, a temporary one if there is none, which goes with this object."""

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else folder_in(folder)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def path_of(self, path: str, key: str) -> str:
        """Where the contents of the compressed ELF file at `path` lie; `key` is the key of its build id.

        Raises OSError if it cannot be read or written, ValueError with a sentence if it is corrupt or out of all
        proportion.
        """
        with open(open_regular(path), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            folder = self._home()
            identity = f"{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_dev:x}"
            target = os.path.join(folder, f"{key[:64]}-{identity}")
            try:
                known = os.stat(target)
                if is_regular(known):
                    if time.time() - known.st_mtime > 3600:
                        os.utime(target)
                    return target
            except FileNotFoundError:
                pass
            limit = proportion(status.st_size, MAX_BYTES)
            temporary = os.path.join(folder, f".{os.urandom(8).hex()}")
            try:
                with open(temporary, "xb") as output:
                    for block in inflated(file, limit):
                        if not output.tell() and not block.startswith(b"\x7fELF"[: len(block)]):
                            raise ValueError("is compressed and holds no ELF file")
                        output.write(block)
                os.replace(temporary, target)
                forget(folder, target)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
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


def forget(folder: str, keep: str = "") -> int:
    """Remove what was not used for a long time, what is too much, and what dead processes left; how many files.

    The file at `keep` stays.
    """
    now, total, removed = time.time(), 0, 0
    files = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                files.append((now - status.st_mtime, status.st_size, entry.path))
    for age, size, path in sorted(files):
        total += size
        unfinished = os.path.basename(path).startswith(".")
        if path != keep and (age > (3600 if unfinished else FORGOTTEN) or (total > MAX_ALL and not unfinished)):
            with suppress(OSError):
                os.unlink(path)
                removed += 1
    return removed


class Codec(NamedTuple):
    """A compressed format: `step` bytes are decoded at a time, so that what comes out of one step stays small."""

    name: str
    magic: bytes
    step: int
    decoder: Callable[[], Any]


def _gzip() -> Any:
    return zlib.decompressobj(31)


def _zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()


def _xz() -> Any:
    from lzma import FORMAT_XZ, LZMADecompressor

    return LZMADecompressor(FORMAT_XZ, MAX_WINDOW)


CODECS = (
    Codec("zstd", b"\x28\xb5\x2f\xfd", 1 << 10, _zstd),
    Codec("gzip", b"\x1f\x8b", 1 << 14, _gzip),
    Codec("xz", b"\xfd7zXZ\0", 1 << 12, _xz),
)


def is_packed(head: bytes) -> bool:
    """Whether a file that begins with `head` is compressed in a known way."""
    return head.startswith(tuple(codec.magic for codec in CODECS))


def proportion(size: int, limit: int) -> int:
    """The bytes to which `size` compressed ones may expand, `limit` at most."""
    return min(limit, MAX_RATIO * size + FREE_BYTES)


def decompress(data: bytes, limit: int) -> bytes:
    """The contents of an xz, gzip or zstd file, at most `limit` bytes and in proportion to its size.

    Raises ValueError with a sentence if it is corrupt.
    """
    return b"".join(inflated(io.BytesIO(data), proportion(len(data), limit)))


def inflated(file: Any, limit: int) -> Iterator[bytes]:
    """The contents of a compressed file, `limit` bytes at most, in blocks of bounded size.

    Raises ValueError with a sentence if it is corrupt or expands to more.
    """
    left = limit
    for block in blocks(file):
        left -= len(block)
        if left < 0:
            raise ValueError(f"expands to more than {limit} bytes, out of all proportion to its size")
        yield block


def blocks(file: Any) -> Iterator[bytes]:
    """The contents of a compressed file, as `inflated` has them, without a bound."""
    head = file.read(6)
    file.seek(0)
    codec = next((codec for codec in CODECS if head.startswith(codec.magic)), None)
    if codec is None:
        raise ValueError("is not compressed in a known way")
    stream, begun = codec.decoder(), False
    while data := file.read(codec.step):
        while data:
            if stream.eof:
                data = data.lstrip(b"\0")
                if not data:
                    break
                stream, begun = codec.decoder(), False
            try:
                block = stream.decompress(data)
            except Exception as error:  # each library has its own
                raise ValueError(f"is a corrupt {codec.name} stream ({error})") from error
            begun = True
            if block:
                yield block
            data = stream.unused_data if stream.eof else b""
    if begun and not stream.eof:
        raise ValueError(f"is a {codec.name} stream that is cut off")
