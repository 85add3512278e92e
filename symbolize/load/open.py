"""From a path, standard input or an open file to profiles: read, decompress, pick the loader by content."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final

from symbolize.core.compression import Counted
from symbolize.core.errors import InputError
from symbolize.load.compression import MAX_OUTPUT, decompressed
from symbolize.load.detect import FORMATS, describe, is_trace
from symbolize.load.model import DEFAULTS, LoadedProfile, LoadOptions
from symbolize.load.streams import HEAD, MAX_STREAM, STANDARD_INPUT, Replayed, beginning, chunks, source_name
from symbolize.profile.model import Profile

MAX_INPUT: Final = 4 << 30
"""Bytes of input that no profile reaches: what keeps a pipe without end from filling the memory."""

STREAMED: Final = b"SIMPLEPERF"
"""How a simpleperf report begins, which is read piece by piece."""


def load_all(source: str | os.PathLike[str] | BinaryIO, options: LoadOptions = DEFAULTS) -> list[LoadedProfile]:
    """The profiles of an input, as `symbolize.load.load_all` says."""
    found = _load_all(source, options)
    if isinstance(source, str | os.PathLike) and source != STANDARD_INPUT:
        path = os.path.abspath(source)
        for each in found:
            each.source = path
    return found


def _load_all(source: str | os.PathLike[str] | BinaryIO, options: LoadOptions) -> list[LoadedProfile]:
    name = source_name(source)
    unread = chunks(source, name)
    head = b""
    while len(head) < HEAD and (piece := next(unread, b"")):
        head += piece
    pieces = Counted(itertools.chain([head], unread))
    if is_trace(beginning(head, name)):
        from symbolize.load.perfetto.load import load

        return load(decompressed(pieces, name, MAX_STREAM), name, options.choice, lambda: pieces.size)
    profile = _load_whole(Replayed(pieces, name), options)  # type: ignore[arg-type]
    return [LoadedProfile("", lambda: profile)]


def load_one(source: str | os.PathLike[str] | BinaryIO, options: LoadOptions) -> Profile:
    """The profile of an input that has only one."""
    found = load_all(source, options)
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:10]) + (", ..." if len(found) > 10 else "")
        raise InputError(source_name(source), f"holds {len(found)} profiles: {names}")
    return found[0].profile


def _load_whole(source: str | os.PathLike[str] | BinaryIO, options: LoadOptions) -> Profile:
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
    content = decompressed([data], name, MAX_OUTPUT)
    start = next(content, b"")
    if bytes(start[: len(STREAMED)]) == STREAMED:
        return _load_report(itertools.chain([start], content), name, options)
    if start is not data:
        data = memoryview(_joined(itertools.chain([start], content)))
    if not data:
        raise InputError(name, "is empty")
    for matches, parse in _formats(options):
        if matches(data):
            return parse(data, name)
    raise InputError(name, f"is not a profile: it looks like {describe(data)}; formats read: {FORMATS}")


def _load_report(chunks: Iterable[bytes | memoryview], name: str, options: LoadOptions) -> Profile:
    """The profile in a simpleperf report, which can be larger than the memory."""
    from symbolize.load import simpleperf

    return simpleperf.load(chunks, name, trace_offcpu=options.trace_offcpu, show_art_frames=options.show_art_frames)


def _formats(options: LoadOptions) -> Iterator[tuple[Callable[[Any], bool], Callable[[Any, str], Profile]]]:
    """Test and reader of each format that is read as a whole, imported when its turn comes."""
    from symbolize.load import pprof

    yield pprof.matches, pprof.load
    from symbolize.load import gperftools

    def load_gperftools(data: memoryview, source: str) -> Profile:
        return gperftools.load(data, source, keep_trampolines=options.keep_trampolines)

    yield gperftools.matches, load_gperftools


def _joined(chunks: Iterable[bytes | memoryview]) -> bytearray:
    data = bytearray()
    for chunk in chunks:
        data += chunk
    return data
