"""From a path, standard input or an open file to a profile: read, decompress, pick the format by content."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

from symbolize.errors import InputError
from symbolize.load.compression import decompress
from symbolize.profile.model import Profile

MAX_INPUT: Final = 4 << 30
"""Bytes of input that no profile reaches: what keeps a pipe without end from filling the memory."""

CHUNK: Final = 1 << 20

STANDARD_INPUT: Final = "-"

FORMATS: Final = "pprof, gperftools CPU profile"

LOOKS: Final = (
    (b"\x7fELF", "an ELF binary"),
    (b"PERFILE2", "perf.data, which is read after conversion to pprof"),
    (b"2ELIFREP", "perf.data of a machine with the other byte order"),
    (b"SIMPLEPERF", "a simpleperf report"),
    (b"\xfd7zXZ\x00", "xz compressed, which is not read"),
    (b"BZh", "bzip2 compressed, which is not read"),
    (b"PK\x03\x04", "a zip archive"),
    (b"%PDF-", "a PDF file"),
    (b"\x89PNG", "a picture"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"heap profile:", "a heap profile as text"),
    (b"--- contention", "a contention profile as text"),
    (b"goroutine profile:", "a Go profile as text"),
)
"""How known files begin that are no profile of a format read here."""

JSON_STARTS: Final = (b"{", b"[{", b"[\n", b"[ ", b'["')


def load(source: str | os.PathLike[str] | BinaryIO, *, keep_trampolines: bool = False) -> Profile:
    """The profile in `source`: a path, `-` for standard input, or a binary file object, read to its end.

    The input may be compressed with gzip, zstd or lz4; offsets in errors about the profile count in the decompressed
    data. `keep_trampolines` leaves the frames that gperftools signal handlers add (gperftools profiles only).
    """
    name = _name(source)
    data = memoryview(decompress(_read(source, name), name))
    if not data:
        raise InputError(name, "is empty")
    for matches, parse in _formats(keep_trampolines):
        if matches(data):
            return parse(data, name)
    raise InputError(name, f"is not a profile: it looks like {describe(data)}; formats read: {FORMATS}")


def _formats(keep_trampolines: bool) -> Iterator[tuple[Callable[[Any], bool], Callable[[Any, str], Profile]]]:
    """Test and reader of each format, imported when its turn comes."""
    from symbolize.load import pprof

    yield pprof.matches, pprof.load
    from symbolize.load import gperftools

    def load_gperftools(data: memoryview, source: str) -> Profile:
        return gperftools.load(data, source, keep_trampolines=keep_trampolines)

    yield gperftools.matches, load_gperftools


def describe(data: bytes | memoryview) -> str:
    """What data of no known profile format looks like, for a person."""
    head = bytes(data[:4096])
    for magic, what in LOOKS:
        if head.startswith(magic):
            return what
    if not any(head):
        return "nothing but zeros"
    try:
        # A character may be cut in two at the end of the head.
        text = head.decode("utf-8") if len(head) < 4096 else head[:-4].decode("utf-8", "ignore")
    except UnicodeDecodeError:
        return "random data"
    if len(text.encode()) < len(head) - 8 or any(ord(each) < 32 and each not in "\t\n\r\f\x1b" for each in text):
        return "random data"
    return "JSON" if head.lstrip().startswith(JSON_STARTS) else "a text file"


def _name(source: str | os.PathLike[str] | BinaryIO) -> str:
    """What errors call the source."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == STANDARD_INPUT else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def _read(source: str | os.PathLike[str] | BinaryIO, name: str) -> memoryview:
    """The whole of the source, at most `MAX_INPUT` bytes."""
    try:
        if not isinstance(source, str | os.PathLike):
            return _read_all(source, name)
        if source == STANDARD_INPUT:
            if sys.stdin is None:
                raise InputError(name, "cannot be read: it is closed")
            return _read_all(sys.stdin.buffer, name)
        mode = os.stat(source).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(name, "is a directory")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise InputError(name, "is a device or socket, not a file")
        with open(source, "rb") as file:
            return _read_all(file, name)
    except (OSError, ValueError) as error:  # ValueError: a NUL in a path, a closed file
        raise InputError(name, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _read_all(file: BinaryIO, name: str) -> memoryview:
    data = bytearray()
    while chunk := file.read(CHUNK):
        if isinstance(chunk, str):
            raise InputError(name, "is open as text; a profile is binary")
        data += chunk
        if len(data) > MAX_INPUT:
            raise InputError(name, f"is larger than {MAX_INPUT} bytes")
    return memoryview(data)
