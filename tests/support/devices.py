"""A device for tests to write to."""

import os
import stat
from pathlib import Path


def null_device(folder: Path) -> Path:
    """A null device below `folder`; without the right to make one that of the system, which only root can replace."""
    path = folder / "null"
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.stat(os.devnull).st_rdev)
    except PermissionError:
        return Path(os.devnull)
    return path
