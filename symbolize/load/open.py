"""From a path, standard input or an open file to profiles: read, decompress, pick the loader by content."""

import os
from collections.abc import Iterator
from typing import BinaryIO, Final

from symbolize.core.errors import InputError, first_names
from symbolize.load.compression import decompressed
from symbolize.load.detect import FORMATS, describe, is_trace
from symbolize.load.model import DEFAULTS, LoadedProfile, LoadOptions
from symbolize.load.streams import HEAD, MAX_STREAM, STANDARD_INPUT, Limited, chunks, peeked, source_name
from symbolize.profile.model import Profile

MAX_INPUT: Final = 4 << 30
"""Bytes, also after decompression, that no profile has: a pipe without end does not fill the memory."""

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
    """The profiles of an input, which may be compressed; offsets in errors about them count in what it holds."""
    name = source_name(source)
    packed = Limited(chunks(source, name), name, MAX_INPUT)
    head, content = peeked(decompressed(packed, name, MAX_STREAM), HEAD)
    if is_trace(head):
        from symbolize.load.perfetto.load import load

        packed.limit = MAX_STREAM
        return load(Limited(content, name, MAX_STREAM), name, options.choice, lambda: packed.size)
    format_name, profile = _load_single(head, Limited(content, name, MAX_INPUT), name, options)
    without_effect = list(_without_effect(options, head.startswith(STREAMED)))
    return [LoadedProfile("", lambda: profile, warnings=without_effect, format=format_name)]


def _without_effect(options: LoadOptions, is_simpleperf: bool) -> Iterator[str]:
    """The options that have no effect on an input that is no trace, a sentence each."""
    if any(vars(options.choice).values()):
        yield "Choosing processes, heaps or kinds, and merging, applies to Perfetto traces only: it had no effect."
    if not is_simpleperf and options.trace_offcpu is not None:
        yield "The choice of on-CPU or off-CPU samples applies to simpleperf reports only: it had no effect."
    if not is_simpleperf and options.show_art_frames:
        yield "Showing the frames of Android's runtime applies to simpleperf reports only: it had no effect."


def load_one(source: str | os.PathLike[str] | BinaryIO, options: LoadOptions) -> Profile:
    """The profile of an input that has only one."""
    found = load_all(source, options)
    if len(found) > 1:
        names = first_names(each.name for each in found)
        raise InputError(source_name(source), f"holds {len(found)} profiles: {names}")
    return found[0].profile


def _load_single(head: bytes, content: Iterator[bytes], name: str, options: LoadOptions) -> tuple[str, Profile]:
    """The name of the format, of which a file has one profile, and the profile in `content`, which begins with
    `head`."""
    if head.startswith(STREAMED):
        from symbolize.load import simpleperf

        return "simpleperf report", simpleperf.load(
            content, name, trace_offcpu=options.trace_offcpu, show_art_frames=options.show_art_frames
        )
    whole = bytearray()
    for piece in content:
        whole += piece
    if not whole:
        raise InputError(name, "is empty")
    data = memoryview(whole)
    from symbolize.load import pprof

    if pprof.matches(data):
        return "pprof", pprof.load(data, name)
    from symbolize.load import gperftools

    if gperftools.matches(data):
        return "gperftools CPU profile", gperftools.load(data, name, keep_trampolines=options.keep_trampolines)
    raise InputError(name, f"is not a profile: it looks like {describe(data)}; formats read: {FORMATS}")
