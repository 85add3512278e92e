"""Output files: whole or not at all."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final

from symbolize.errors import OutputError

STANDARD_OUTPUT: Final = "-"


def write_pieces(pieces: Iterable[bytes], destination: str | os.PathLike[str] | BinaryIO) -> None:
    """Write bytes to a path, to `-` (standard output) or to a binary file object.

    A file appears at its path whole or not at all. Raises OutputError.
    """
    if not isinstance(destination, str | os.PathLike):
        name = getattr(destination, "name", None)
        _write_to(pieces, destination, name if isinstance(name, str) else "<stream>")
    elif destination == STANDARD_OUTPUT:
        if sys.stdout is None:
            raise OutputError("standard output: cannot be written: it is closed")
        _write_to(pieces, sys.stdout.buffer, "standard output")
    else:
        name = os.fspath(destination)
        with output_file(name) as file:
            _write_to(pieces, file, name)


def _write_to(pieces: Iterable[bytes], file: BinaryIO, name: str) -> None:
    try:
        for piece in pieces:
            _write_all(file, piece)
        file.flush()
    except (OSError, ValueError) as error:  # ValueError: a closed file
        raise output_error(name, error) from error


def _write_all(file: BinaryIO, piece: bytes) -> None:
    """Write all of `piece`, also to an unbuffered file, which may take a part at a time."""
    rest = memoryview(piece)
    while rest:
        written = file.write(rest)
        rest = rest[len(rest) if written is None else written :]


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
