"""From a path, standard input or an open file to a profile: read, decompress, pick the format by content."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from symbolize.errors import InputError
from symbolize.load.compression import pieces
from symbolize.load.streams import chunks, source_name
from symbolize.profile.model import Profile

if TYPE_CHECKING:
    from symbolize.load.simpleperf import OffCpuMode

MAX_INPUT: Final = 4 << 30
"""Bytes of input that no profile reaches: what keeps a pipe without end from filling the memory."""

STREAMED: Final = b"SIMPLEPERF"
"""How a simpleperf report begins, which is read piece by piece."""

FORMATS: Final = "pprof, gperftools CPU profile, simpleperf report_sample, Perfetto trace"

LOOKS: Final = (
    (b"\x7fELF", "an ELF binary"),
    (b"PERFILE2", "perf.data, which is read after conversion to pprof"),
    (b"2ELIFREP", "perf.data of a machine with the other byte order"),
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


class Options(NamedTuple):
    """What single formats can be asked for."""

    keep_trampolines: bool = False
    trace_offcpu: "OffCpuMode | None" = None
    show_art_frames: bool = False


DEFAULTS: Final = Options()


def load(source: str | os.PathLike[str] | BinaryIO, options: Options = DEFAULTS) -> Profile:
    """The profile in `source`: a path, `-` for standard input, or a binary file object, read to its end.

    The input may be compressed with gzip, zstd or lz4; offsets in errors about the profile count in the decompressed
    data.
    """
    name = source_name(source)
    rest = chunks(source, name, MAX_INPUT)
    head = next(rest, b"")
    whole = itertools.chain([head], rest)
    if head.startswith(STREAMED):
        return _load_report(whole, name, options)
    data = memoryview(_joined(whole))
    decompressed = pieces(data, name)
    start = next(decompressed)
    if bytes(start[: len(STREAMED)]) == STREAMED:
        return _load_report(itertools.chain([start], decompressed), name, options)
    if start is not data:
        data = memoryview(_joined(itertools.chain([start], decompressed)))
    if not data:
        raise InputError(name, "is empty")
    for matches, parse in _formats(options):
        if matches(data):
            return parse(data, name)
    raise InputError(name, f"is not a profile: it looks like {describe(data)}; formats read: {FORMATS}")


def _load_report(chunks: Iterable[bytes | memoryview], name: str, options: Options) -> Profile:
    """The profile in a simpleperf report, which can be larger than the memory."""
    from symbolize.load import simpleperf

    return simpleperf.load(chunks, name, trace_offcpu=options.trace_offcpu, show_art_frames=options.show_art_frames)


def _formats(options: Options) -> Iterator[tuple[Callable[[Any], bool], Callable[[Any, str], Profile]]]:
    """Test and reader of each format that is read as a whole, imported when its turn comes."""
    from symbolize.load import pprof

    yield pprof.matches, pprof.load
    from symbolize.load import gperftools

    def load_gperftools(data: memoryview, source: str) -> Profile:
        return gperftools.load(data, source, keep_trampolines=options.keep_trampolines)

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


def _joined(chunks: Iterable[bytes | memoryview]) -> bytearray:
    data = bytearray()
    for chunk in chunks:
        data += chunk
    return data
