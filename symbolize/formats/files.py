"""Files of profiles: what their names end in, and outputs: whole or not at all, never over an input, and never on a
terminal."""

import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, TextIO

from symbolize.core.errors import OutputError, UsageError, printable
from symbolize.core.files import atomic_file, drop_output, output_error

ENDINGS: Final = (
    *(".gz", ".zst", ".lz4", ".proto", ".heap", ".data", ".trace"),
    *(".folded", ".collapsed", ".txt"),
    *(".pb", ".symbolized", ".prof", ".pprof", ".perfetto-trace", ".pftrace", ".otlp", ".json"),
)
"""In the order in which they are taken off: what a profile was packed with, then what it is. `.heap` in `x.heap.pb.gz`
tells it from `x.cpu.pb.gz` and stays."""

GZIP: Final = ".gz"
STANDARD_OUTPUT: Final = "-"
"""The output of this name; the input of this name is standard input."""


def without_endings(name: str) -> str:
    """The base name of a profile without the endings that profiles have; never empty unless `name` is."""
    for ending in ENDINGS:
        name = name.removesuffix(ending) or name
    return name


def check_terminal(output: str) -> None:
    """Raise UsageError if a profile, which is binary, would go to a terminal; `-` is standard output."""
    there = _status(output, sys.stdout)
    if there is not None and stat.S_ISCHR(there.st_mode) and _is_terminal(output):
        raise UsageError(f"{_shown(output)}: is a terminal, and a profile is binary: name a file, or pipe it on")


def check_inputs(inputs: Iterable[str], outputs: Iterable[str]) -> None:
    """Raise UsageError if writing to one of `outputs` would destroy one of `inputs`, also by a link or another spelling
    (R278, inputs are kept). All are paths, or `-` for standard input and output.

    Binaries that are given as files, and ProGuard maps, are inputs too. Outputs are checked before anything is done,
    those whose names depend on what is in a trace before anything is written.
    """
    files: dict[tuple[int, int], str] = {}
    for each in inputs:
        known = _status(each, sys.stdin)
        if known is not None and stat.S_ISREG(known.st_mode):
            files.setdefault((known.st_dev, known.st_ino), each)
    for output in outputs:
        there = _status(output, sys.stdout)
        if there is not None and (name := files.get((there.st_dev, there.st_ino))) is not None:
            what = "is the input itself" if name == output else f"is the same file as the input {name}"
            raise UsageError(f"{_shown(output)}: {printable(what)}, and an input is never overwritten")


def _shown(output: str) -> str:
    return "standard output" if output == STANDARD_OUTPUT else output


def _status(path: str, standard: TextIO | None) -> os.stat_result | None:
    """What the system knows of a file, `-` being a standard stream; None if there is none."""
    try:
        if path != STANDARD_OUTPUT:
            return os.stat(path)
        return os.fstat(standard.fileno()) if standard is not None else None
    except (OSError, ValueError):  # no such file, no file under the stream, or a NUL in the path
        return None


def _is_terminal(output: str) -> bool:
    """Whether a character device is a terminal."""
    if output == STANDARD_OUTPUT:
        return sys.stdout.isatty()
    try:
        device = os.open(output, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.isatty(device)
    finally:
        os.close(device)


def write_pieces(
    pieces: Iterable[bytes], destination: str | os.PathLike[str] | BinaryIO, is_binary: bool = True
) -> None:
    """Write bytes to a path, to `-` (standard output) or to a binary file object.

    A file appears at its path whole or not at all. That the reader of a text on standard output wants no more, as
    `head`, is no failure. Raises OutputError, and UsageError for a terminal that would get what is no text.
    """
    if is_binary and isinstance(destination, str | os.PathLike):
        check_terminal(os.fspath(destination))
    if not isinstance(destination, str | os.PathLike):
        if not hasattr(destination, "write") or isinstance(destination, io.TextIOBase):
            raise TypeError(f"destination: expected a path or a binary file object, not {type(destination).__name__}")
        name = getattr(destination, "name", None)
        _write_to(pieces, destination, name if isinstance(name, str) else "<stream>")
    elif destination == STANDARD_OUTPUT:
        if sys.stdout is None:
            raise OutputError("standard output: cannot be written: it is closed")
        try:
            _write_to(pieces, sys.stdout.buffer, "standard output")
        except OutputError as error:
            if is_binary or not isinstance(error.__cause__, BrokenPipeError):
                raise
            drop_output()
    else:
        name = os.fspath(destination)
        with output_file(name) as file:
            _write_to(pieces, file, name)


def packed(pieces: Iterable[bytes], destination: str | os.PathLike[str] | BinaryIO) -> Iterable[bytes]:
    """The pieces, compressed if the destination is a path that ends so."""
    from symbolize.core.compression import gzipped

    name = os.fspath(destination) if isinstance(destination, str | os.PathLike) else ""
    return gzipped(pieces) if name.lower().endswith(GZIP) else pieces


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
        with atomic_file(path) as file:
            yield file
            if os.path.exists(path):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise output_error(name, error) from error
