"""Writes pprof files for tests with protobuf."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symbolize.profile.model import RawFields
from tests.support.messages import profile_pb2


class Mapping(NamedTuple):
    """A mapping of a profile."""

    start: int
    limit: int
    offset: int = 0
    file: str | bytes = ""
    build_id: str = ""
    flags: Sequence[bool] = (False, False, False, False)


class Line(NamedTuple):
    """A frame that came with the profile."""

    name: str
    file: str = ""
    line: int = 0
    system_name: str | None = None


class Place(NamedTuple):
    """A location: an address, the number of its mapping (from 1, 0: none) and its frames, leaf first."""

    address: int
    mapping: int = 0
    lines: Sequence[Line] = ()
    is_folded: bool = False


def raw_fields(fields: dict[int, bytes]) -> RawFields:
    """Unknown fields by row."""
    rows = sorted(fields)
    offsets = np.cumsum([0, *(len(fields[row]) for row in rows)])
    data = np.frombuffer(b"".join(fields[row] for row in rows), np.uint8)
    return RawFields(np.array(rows, np.int32), offsets, data)


def by_row(raw: RawFields) -> dict[int, bytes]:
    """The unknown fields of each row."""
    return {row: raw[entry] for entry, row in enumerate(raw.rows.tolist())}


def profile(
    mappings: Sequence[Mapping],
    stacks: Sequence[tuple[Sequence[Place], Sequence[int]]],
    types: Sequence[tuple[str, str]] = (("samples", "count"),),
    default_type: str = "",
) -> bytes:
    """An uncompressed pprof file of stacks, leaf first, with their values."""
    message: Any = profile_pb2.Profile()
    strings: dict[bytes, int] = {b"": 0}

    def string(value: str | bytes) -> int:
        return strings.setdefault(value if isinstance(value, bytes) else value.encode(), len(strings))

    for kind, unit in types:
        message.sample_type.add(type=string(kind), unit=string(unit))
    message.default_sample_type = string(default_type)
    for number, each in enumerate(mappings, 1):
        message.mapping.add(
            id=number,
            memory_start=each.start,
            memory_limit=each.limit,
            file_offset=each.offset,
            filename=string(each.file),
            build_id=string(each.build_id),
            has_functions=each.flags[0],
            has_filenames=each.flags[1],
            has_line_numbers=each.flags[2],
            has_inline_frames=each.flags[3],
        )
    functions: dict[tuple[str, str, str], int] = {}
    places: dict[Place, int] = {}
    for stack, values in stacks:
        ids = []
        for place in stack:
            if place not in places:
                places[place] = len(places) + 1
                location = message.location.add(
                    id=places[place], mapping_id=place.mapping, address=place.address, is_folded=place.is_folded
                )
                for line in place.lines:
                    system_name = line.name if line.system_name is None else line.system_name
                    key = line.name, system_name, line.file
                    if key not in functions:
                        functions[key] = len(functions) + 1
                        message.function.add(
                            id=functions[key],
                            name=string(line.name),
                            system_name=string(system_name),
                            filename=string(line.file),
                        )
                    location.line.add(function_id=functions[key], line=line.line)
            ids.append(places[place])
        message.sample.add(location_id=ids, value=values)
    message.string_table.extend(strings)
    return message.SerializeToString(deterministic=True)
