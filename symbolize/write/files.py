"""Output files: whole or not at all."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from symbolize.errors import OutputError


@contextmanager
def output_file(name: str) -> Iterator[BinaryIO]:
    """A file to write, which becomes `name` when all is written and is nowhere when something fails.

    Devices and pipes are written as they are, links to files followed. Raises OutputError.
    """
    try:
        if os.path.exists(name) and not stat.S_ISREG(os.stat(name).st_mode):
            with open(name, "wb") as file:
                yield file
            return
        path = os.path.realpath(name)
        temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)[:64]}.{os.urandom(6).hex()}")
        try:
            with open(temporary, "xb") as file:
                yield file
            if os.path.exists(path):
                os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise output_error(name, error) from error


def output_error(name: str, error: Exception) -> OutputError:
    """What went wrong with an output, as a person reads it."""
    return OutputError(f"{name}: cannot be written: {getattr(error, 'strerror', None) or error}")
