"""Reading regular files, writing files whole or not at all, folders of bounded size, locks.

Other files are refused: opening a FIFO would block, a device may do anything.
"""

import errno
import io
import math
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import BinaryIO, Final, NamedTuple

from symbolize.core.errors import OutputError, closest

ABANDONED: Final = 3600
"""Seconds after which an unfinished file was left by a process that died."""
LONGEST_PAUSE: Final = 0.5
"""Seconds between two attempts to get a lock, at most."""
READ_AT_ONCE: Final = 1 << 20
MAX_COMPARED: Final = 4096
"""Names in a folder that a mistyped one is compared with."""
READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""How files are opened: without waiting for anything."""
LOOK: Final = getattr(os, "O_PATH", READ) | os.O_CLOEXEC
"""How it is looked what is at a path, where the system can without opening it."""
VALUE_ERRORS: Final = {
    "embedded null": "its name has a NUL",
    "closed file": "it is closed",
    "integer string conversion": "a number in it has too many digits",
}
"""What a ValueError of Python says of a name, a stream and a text, by words of it."""


def is_regular(status: os.stat_result) -> bool:
    """Whether this is the status of a regular file."""
    return stat.S_ISREG(status.st_mode)


def open_regular(path: str | os.PathLike[str]) -> int:
    """A descriptor to read the regular file at `path`. Raises OSError, also for anything else, which is not opened even
    if it was put there a moment ago; it never waits.

    A FIFO in a cache folder would block forever, and a device may do something when it is opened.
    """
    place = os.open(path, LOOK)
    try:
        if not is_regular(os.fstat(place)):
            raise no_file(path)
        try:
            return os.open(f"/proc/self/fd/{place}", READ)
        except FileNotFoundError:  # without /proc
            descriptor = os.open(path, READ)
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        if os.path.samestat(os.fstat(descriptor), os.fstat(place)):
            return descriptor
        os.close(descriptor)
        raise no_file(path)
    finally:
        os.close(place)


def require_regular(path: str) -> None:
    """Raise OSError if there is something at `path` that is no regular file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    if not is_regular(status):
        raise no_file(path)


def read_limited(path: str | os.PathLike[str], limit: int) -> bytes | None:
    """The contents of the regular file at `path`; None if it has more than `limit` bytes. Raises OSError.

    The size is read first, so that the limit is not allocated; files of /proc have no size, others may grow.
    """
    with open(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1) if size <= limit else b""
        while size < len(data) <= limit and (more := file.read(READ_AT_ONCE)):
            data += more
        return None if max(len(data), size) > limit else data


def no_such(path: str | os.PathLike[str], what: str = "file") -> str:
    """What is wrong with a path at which nothing is, with a name beside it that it resembles."""
    if "://" in os.fspath(path):
        return "is a URL, and only local folders and files are read: mount or copy it"
    folder, name = os.path.split(os.fspath(path).rstrip("/"))
    meant = closest(name, names_in(folder or "."))
    return f"no such {what}" + (f"; did you mean {os.path.join(folder, meant)}?" if meant else "")


def names_in(folder: str) -> list[str]:
    """The names in a folder, up to a number; none if it cannot be read."""
    with suppress(OSError, ValueError), os.scandir(folder) as entries:  # ValueError: a NUL in the path
        return [entry.name for entry in islice(entries, MAX_COMPARED)]
    return []


def no_file(path: str | os.PathLike[str]) -> OSError:
    """The error for something that is no regular file."""
    return OSError(errno.EINVAL, "is no regular file", os.fspath(path))


def os_error_text(error: BaseException) -> str:
    """The message of an error of the system, without number and path, or of any other error.

    What Python says of names, streams and text, which is for programmers and changes with its version, is said in our
    words.
    """
    if isinstance(error, UnicodeEncodeError):
        return "its name has a character that no name can have"
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, io.UnsupportedOperation):
        return "it is not open for that"
    text = str(getattr(error, "strerror", None) or error)
    if type(error) is ValueError:
        return next((ours for word, ours in VALUE_ERRORS.items() if word in text), text)
    return text


def output_error(name: str, error: Exception) -> OutputError:
    """What went wrong with an output, as a person reads it."""
    return OutputError(f"{name}: cannot be written: {os_error_text(error)}")


def file_size(path: str) -> int:
    """The size of a file, 0 if there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def remove(path: str) -> bool:
    """Remove a file, if it is there and that is allowed; whether it was."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def unfinished_path(path: str) -> str:
    """A new name, beside it, for what becomes the file `path`; it begins with a dot."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:64]}.{os.urandom(6).hex()}")


def is_unfinished(path: str) -> bool:
    """Whether a file has a name of `unfinished_path`."""
    return os.path.basename(path).startswith(".")


@contextmanager
def atomic_file(path: str, unfinished: str = "", durable: bool = False) -> Iterator[BinaryIO]:
    """A file to write, which becomes `path` when the block ends and is removed when it raises.

    It is written at `unfinished`, by default beside `path`. A `durable` file outlives a loss of power after the block.
    Raises OSError.
    """
    unfinished = unfinished or unfinished_path(path)
    try:
        with open(unfinished, "xb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        remove(unfinished)
        raise
    if durable:
        sync_folder(os.path.dirname(path))


def sync_folder(folder: str) -> None:
    """Keep the names in a folder over a loss of power; some file systems cannot."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def mark_used(path: str | os.PathLike[str], status: os.stat_result, interval: float = 0) -> None:
    """Set the access time of a cached file, unless that was done in the last `interval` seconds.

    Mounts may not keep it by themselves. Its time of modification stays: who has it mapped would take it for changed
    (R280, files that change). Raises OSError.
    """
    if not interval or time.time() - last_used(status) > interval:
        os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))


def last_used(status: os.stat_result) -> float:
    """When a cached file was last written or used, in seconds since 1970."""
    return max(status.st_atime, status.st_mtime)


class CachedFile(NamedTuple):
    """A file of a cache, its bytes, and when it was last used."""

    path: str
    size: int
    used: float


class CacheFolder:
    """Files that can be made again, right in the folder `path`, of at most `limit` bytes in all.

    Those used least recently go first, but none that was used in the last `in_use` seconds; what was not used for
    `unused` seconds goes in any case. Files that are being written go by names of `unfinished_path`. Never raises.
    """

    def __init__(self, path: str, limit: float = math.inf, unused: float = math.inf, in_use: float = 0) -> None:
        self.path = path
        self.limit = limit
        self.unused = unused
        self.in_use = in_use

    def files(self, ending: str = "") -> list[CachedFile]:
        """The files with this ending, also unfinished ones."""
        found = []
        with suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.name.endswith(ending) and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        found.append(CachedFile(entry.path, status.st_size, last_used(status)))
        return found

    def evict(self, ending: str = "", keep: str = "") -> int:
        """Remove what dead processes left, and of the files with this ending what is too old or too much, but not the
        one at `keep`; how many files were removed."""
        removed = self.sweep()
        files = [file for file in self.files(ending) if not is_unfinished(file.path)]
        files.sort(key=lambda file: file.used)
        excess = sum(file.size for file in files) - self.limit
        now = time.time()
        for path, size, used in files:
            if path != keep and (now - used > self.unused or (excess > 0 and not 0 <= now - used < self.in_use)):
                excess -= size  # also if another process is faster
                removed += remove(path)
        return removed

    def sweep(self, age: float = ABANDONED) -> int:
        """Remove unfinished files that nobody has written to for `age` seconds; how many."""
        now = time.time()
        return sum(remove(file.path) for file in self.files() if is_unfinished(file.path) and now - file.used > age)


@contextmanager
def file_lock(path: str, patience: float, stop: Callable[[], bool] = lambda: False) -> Iterator[bool]:
    """A lock of one holder among all threads and processes, which the kernel releases when its process ends; False if
    another one holds it for more than `patience` seconds, or until `stop` says so.

    The file at `path` is there while somebody holds it. A file system without locks lets everybody in. Raises OSError
    if the file cannot be made.
    """
    deadline, pause = time.monotonic() + patience, 0.02
    while (descriptor := _try_lock(path)) is None:
        if time.monotonic() >= deadline or stop():
            yield False
            return
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    try:
        yield True
    finally:
        try:
            if _is_at(descriptor, path):  # else somebody took it for a leftover
                remove(path)
        finally:
            os.close(descriptor)


def _try_lock(path: str) -> int | None:
    """A descriptor that holds the lock of a file; None if another one does."""
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    is_ours = False
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        except OSError:  # a file system without locks
            is_ours = True
            return descriptor
        is_ours = _is_at(descriptor, path)  # else who held it has removed it meanwhile
        if is_ours:
            with suppress(OSError):
                os.utime(descriptor)  # cleaning removes what is old, also a file that a killed process left
        return descriptor if is_ours else None
    finally:
        if not is_ours:
            os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    """Whether the open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def drop_output() -> None:
    """Send what is left in the buffer of standard output nowhere; it would be written again at the end."""
    with suppress(OSError, ValueError, AttributeError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
