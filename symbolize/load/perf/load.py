"""perf.data of Linux perf: from the content of an input to the profile."""

from collections.abc import Iterable, Iterator

from symbolize.core.errors import InputError
from symbolize.load.content import Content
from symbolize.load.model import LoadOptions
from symbolize.load.perf.build import build
from symbolize.load.perf.header import BIG, LITTLE, OLD, PIPE_HEADER, is_pipe, read_attrs, read_header
from symbolize.load.perf.recording import Recording
from symbolize.load.perf.stream import Stream
from symbolize.load.streams import CHUNK
from symbolize.profile.model import Profile


def matches(content: Content) -> bool:
    """Whether a content is a recording of perf."""
    return content.head.startswith((LITTLE, BIG, OLD))


def load(content: Content, options: LoadOptions) -> Profile:
    """Read a recording. Raises InputError."""
    if content.head.startswith(OLD):
        what = "is a perf.data of perf before 2.6.39 (PERFFILE), which is not read; record it with a newer perf"
        raise InputError(content.name, what)
    recording = Recording(content.name, content.head.startswith(BIG), options)
    mapped = None
    if is_pipe(content.head):
        read_stream(recording, without_header(content.pieces(is_recording=True)))
    else:
        mapped = content.mapped()
        read_file(recording, mapped.data if mapped is not None else content.whole())
    recording.finish()
    profile = build(recording)
    if mapped is not None:
        mapped.check()
    return profile


def read_file(recording: Recording, data: memoryview) -> None:
    """Read a recording in file mode."""
    header = read_header(data, recording.name)
    for event in read_attrs(data, header, recording.name):
        recording.add_event(event)
    for feature, (offset, size) in header.features.items():
        if offset + size <= len(data):
            recording.facts.read(feature, data[offset : offset + size], recording.name)
    recording.name_events()
    recording.is_cut = header.is_cut
    begin, size = header.data
    end = min(begin + size, len(data))
    at = recording.read(data, begin, end)
    if recording.has_compressed:
        recording.flush(None)
        read_stream(recording, (data[i : min(i + CHUNK, end)] for i in range(at, end, CHUNK)))
    elif at < end and not recording.is_damaged:
        recording.is_cut = True


def read_stream(recording: Recording, pieces: Iterable[bytes | memoryview]) -> None:
    """Read the records in `pieces`, of which some may be compressed."""
    stream = Stream(pieces, recording.facts.is_big, recording.name)
    recording.read_pieces(stream)
    recording.name_events()
    recording.facts.has_trace_data |= stream.has_trace_data
    recording.facts.warnings += stream.problems


def without_header(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The content of a pipe behind its header."""
    left = PIPE_HEADER
    for piece in pieces:
        if len(piece) > left:
            yield piece[left:]
        left = max(left - len(piece), 0)
