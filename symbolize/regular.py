"""Regular files only: a FIFO in the place of a file would be waited for without end, a device may do anything."""

import errno
import os
import stat


def is_regular(status: os.stat_result) -> bool:
    """Whether `stat` says that something is a regular file."""
    return stat.S_ISREG(status.st_mode)


def open_regular(path: str | os.PathLike[str]) -> int:
    """A descriptor to read the regular file at `path`. Raises OSError, also for anything else; it never waits."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not is_regular(os.fstat(descriptor)):
            raise no_file(path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def require_regular(path: str) -> None:
    """Raise OSError if there is something at `path` that is no regular file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    if not is_regular(status):
        raise no_file(path)


def no_file(path: str | os.PathLike[str]) -> OSError:
    """The error for something that is no regular file."""
    return OSError(errno.EINVAL, "is no regular file", os.fspath(path))
