"""Made profiles whose samples have threads and times."""

import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import symbolize
from symbolize.profile import Profile
from tests.support.messages import profile_pb2


class Sample(NamedTuple):
    """A stack from the root on, its value in nanoseconds, its labels, and when it was taken."""

    stack: Sequence[str]
    value: int
    labels: Mapping[str, str | int]
    time: int | None = None


def threaded(samples: Sequence[Sample]) -> Profile:
    """A profile with these samples."""
    message: Any = profile_pb2.Profile()
    strings: dict[str, int] = {"": 0}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings))

    message.sample_type.add(type=string("cpu"), unit=string("nanoseconds"))
    message.mapping.add(id=1, memory_start=0x1000, memory_limit=0x9000, filename=string("/bin/app"), has_functions=True)
    names = sorted({name for each in samples for name in each.stack})
    for number, name in enumerate(names, 1):
        message.function.add(id=number, name=string(name), system_name=string(name))
        message.location.add(id=number, mapping_id=1, address=0x1000 + number).line.add(function_id=number)
    for each in samples:
        stack = [names.index(name) + 1 for name in reversed(each.stack)]
        sample = message.sample.add(location_id=stack, value=[each.value])
        for key, value in each.labels.items():
            text, number = (string(value), 0) if isinstance(value, str) else (0, value)
            sample.label.add(key=string(key), str=text, num=number)
        if each.time is not None:
            sample.label.add(key=string("timestamp_ns"), num=each.time, num_unit=string("nanoseconds"))
    message.string_table.extend(text.encode() for text in strings)
    return symbolize.load(io.BytesIO(message.SerializeToString()))
