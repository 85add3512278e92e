"""perf.data of Linux perf: from the content of an input to the profile."""

from symbolize.core.errors import InputError
from symbolize.load.content import Content
from symbolize.load.model import LoadOptions
from symbolize.load.perf.build import build
from symbolize.load.perf.header import BIG, LITTLE, OLD, is_pipe, read_attrs, read_header
from symbolize.load.perf.recording import Recording
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
    if is_pipe(content.head):
        raise InputError(content.name, "pipe mode is not read")
    mapped = content.mapped()
    data = mapped.data if mapped is not None else content.whole()
    read_file(recording, data)
    if mapped is not None:
        mapped.check()
    recording.finish()
    return build(recording)


def read_file(recording: Recording, data: memoryview) -> None:
    """Read a recording in file mode."""
    header = read_header(data, recording.name)
    for event in read_attrs(data, header, recording.name):
        recording.add_event(event)
    for feature, (offset, size) in header.features.items():
        if offset + size <= len(data):
            recording.facts.read(feature, data[offset : offset + size], recording.name)
    recording.name_events()
    begin, size = header.data
    recording.read(data, begin, min(begin + size, len(data)))
