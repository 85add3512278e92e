"""perf.data of Linux perf: from the content of an input to the profile."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from symbolize.core.errors import InputError
from symbolize.core.files import names_in
from symbolize.formats.content import CHUNK, Content, chunks
from symbolize.formats.model import LoadedProfile, LoadOptions, another_profile, only
from symbolize.formats.perf import BIG, LITTLE, OLD
from symbolize.formats.perf.build import build
from symbolize.formats.perf.header import PAIR, PIPE_HEADER, is_pipe, read_attrs, read_header
from symbolize.formats.perf.recording import Recording
from symbolize.formats.perf.stream import Stream

SIBLING: Final = re.compile(r"data\.\d+")
"""What the files of the threads of perf are called, in the folder of a recording."""


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The profile of a recording. Raises InputError."""
    if content.head.startswith(OLD):
        what = "is a perf.data of perf before 3.4 (PERFFILE), which is not read; record it with a newer perf"
        raise InputError(content.name, what)
    recording = Recording(content.name, content.head.startswith(BIG), options)
    mapped = None
    if is_pipe(content.head):
        read_streams(recording, [without_header(content.pieces(is_recording=True))])
    else:
        mapped = content.mapped()
        read_file(recording, mapped.data if mapped is not None else content.whole(), content.path)
    recording.finish()
    profile = build(recording)
    if mapped is not None:
        mapped.check()
        if profile.stack_dumps is not None and profile.stack_dumps.data is mapped.data:
            profile.stack_dumps.check = mapped.check
    return only(profile)


def read_file(recording: Recording, data: memoryview, path: str) -> None:
    """Read a recording in file mode, with the files beside it if it is a folder."""
    header = read_header(data, recording.name)
    for event in read_attrs(data, header, recording.name):
        recording.add_event(event)
    recording.is_cut = header.is_cut
    for feature, (offset, size) in header.features.items():
        if offset + size <= len(data):
            recording.facts.read(feature, data[offset : offset + size], recording.name)
        else:
            recording.is_cut = True
    begin, size = header.data
    end = min(begin + size, len(data))
    behind = max(sum(section) for section in (*header.features.values(), (end, PAIR * len(header.features))))
    if bytes(data[behind : behind + len(LITTLE)]) in (LITTLE, BIG):
        recording.facts.warnings.append(another_profile(behind))
    if recording.facts.is_directory:
        read_streams(recording, [pieces_of(data, begin, end), *siblings(recording, path)])
        return
    at = recording.read(data, begin, end)
    if recording.has_compressed:
        recording.flush(None)
        read_streams(recording, [pieces_of(data, at, end)])
    elif at < end and not recording.is_damaged:
        recording.is_cut = True


def siblings(recording: Recording, path: str) -> list[Iterator[bytes]]:
    """The contents of what the threads of perf wrote into the folder of a recording, beside its file `data`."""
    folder = os.path.dirname(path)
    names = sorted(name for name in names_in(folder or ".") if SIBLING.fullmatch(name)) if path else []
    if not names:
        recording.facts.warnings.append("The recording is a folder, of which only one file was read.")
    return [chunks(os.path.join(folder, name), name, is_named=False) for name in names]


def read_streams(recording: Recording, contents: Sequence[Iterable[bytes | memoryview]]) -> None:
    """Read the records in some files or pipes, of which some may be compressed."""
    streams = [Stream(pieces, recording.facts.is_big, recording.name) for pieces in contents]
    recording.read_pieces(chain.from_iterable(streams))
    for stream in streams:
        recording.facts.has_trace_data |= stream.has_trace_data
        recording.facts.warnings += stream.problems


def pieces_of(data: memoryview, begin: int, end: int) -> Iterator[memoryview]:
    """A part of a file in pieces."""
    return (data[at : min(at + CHUNK, end)] for at in range(begin, end, CHUNK))


def without_header(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The content of a pipe behind its header."""
    left = PIPE_HEADER
    for piece in pieces:
        if len(piece) > left:
            yield piece[left:]
        left = max(left - len(piece), 0)
