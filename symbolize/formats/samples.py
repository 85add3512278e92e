"""Rows of samples as the columns of a profile: sample types, stacks, labels, and names that came along."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Int32, Int64, UInt64, offsets_of
from symbolize.formats.gperftools.records import number
from symbolize.profile.model import Functions, Labels, Lines, Locations, Profile, Samples, ValueType

Address = int
Label = tuple[bytes, bytes | int]
"""A key, and a text or a number."""


class TextFrame(NamedTuple):
    """A frame that a profile has a name for."""

    name: bytes
    file: bytes = b""
    line: int = 0


Names = Mapping[Address, Sequence[TextFrame]]


def fill(
    profile: Profile, types: Sequence[tuple[bytes, bytes]], values: NDArray[Any], offsets: Int64, addresses: UInt64
) -> None:
    """Give a profile its sample types, and a sample with these values for each stack of addresses."""
    distinct, indices = number(addresses)
    profile.sample_types = [value_type(profile, *each) for each in types]
    fill_samples(profile, offsets, indices, distinct, values)


def fill_samples(profile: Profile, offsets: Int64, frames: Int32, addresses: UInt64, values: NDArray[Any]) -> None:
    """Give a profile samples without labels; `frames` are indices of `addresses`, which become locations."""
    profile.samples = Samples(
        location_offsets=offsets,
        locations=frames,
        values=values,
        label_offsets=np.zeros(len(offsets), np.int64),
    )
    count = len(addresses)
    profile.locations = Locations(
        address=addresses,
        mapping=np.zeros(count, np.int32),
        is_folded=np.zeros(count, np.bool_),
        line_offsets=np.zeros(count + 1, np.int64),
    )


def value_type(profile: Profile, name: bytes, unit: bytes) -> ValueType:
    """A type of values by its texts."""
    return ValueType(profile.strings.add(name), profile.strings.add(unit))


def number_label(profile: Profile, key: bytes, numbers: Int64) -> None:
    """Give each sample, which has no label yet, one with a number."""
    count = len(numbers)
    labels = Labels.zeros(count)
    labels.key[:] = profile.strings.add(key)
    labels.number = numbers
    profile.samples.labels = labels
    profile.samples.label_offsets = np.arange(count + 1)


def set_labels(profile: Profile, labels: Sequence[Sequence[Label]]) -> None:
    """Give each sample its labels, texts or numbers by key; empty texts are left out, since pprof has none."""
    labels = [[(key, value) for key, value in each if value != b""] for each in labels]
    add = profile.strings.add
    flat = [
        (add(key), add(value) if isinstance(value, bytes) else 0, 0 if isinstance(value, bytes) else value)
        for each in labels
        for key, value in each
    ]
    table = Labels.zeros(len(flat))
    table.key[:], table.text[:], table.number[:] = np.array(flat, np.int64).reshape(len(flat), 3).T
    profile.samples.labels = table
    profile.samples.label_offsets = offsets_of([len(each) for each in labels])


def name_locations(profile: Profile, frames_of: Callable[[Address], Iterable[TextFrame]]) -> None:
    """Give locations the frames, innermost first, that the profile has for their addresses."""
    name_rows(profile, map(frames_of, profile.locations.address.tolist()))


def name_rows(profile: Profile, frames_of_each: Iterable[Iterable[TextFrame]]) -> None:
    """Give each location its frames, innermost first."""
    functions: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int]] = []
    ends = [0]
    add = profile.strings.add
    for frames in frames_of_each:
        for frame in frames:
            key = add(frame.name), add(frame.file)
            rows.append((functions.setdefault(key, len(functions)), frame.line))
        ends.append(len(rows))
    columns = np.array(rows, np.int64).reshape(len(rows), 2)
    profile.locations.line_offsets = np.array(ends, np.int64)
    profile.locations.lines = Lines(columns[:, 0].astype(np.int32), columns[:, 1].copy(), np.zeros(len(rows), np.int64))
    names = np.array(list(functions), np.int32).reshape(len(functions), 2)
    profile.functions = Functions.zeros(len(functions))
    profile.functions.name = profile.functions.system_name = names[:, 0].copy()
    profile.functions.filename = names[:, 1].copy()


def note_names(profile: Profile) -> None:
    """Set what mappings have by what their locations have."""
    locations, mappings, functions = profile.locations, profile.mappings, profile.functions
    owner = np.repeat(locations.mapping, np.diff(locations.line_offsets))
    inside = owner >= 0
    mappings.has_functions[owner[inside]] = True
    has_file = functions.filename[locations.lines.function] != 0
    mappings.has_filenames[owner[inside & has_file]] = True
    mappings.has_line_numbers[owner[inside & (locations.lines.line > 0)]] = True
    is_inlined = np.diff(locations.line_offsets) > 1
    mappings.has_inline_frames[locations.mapping[is_inlined & (locations.mapping >= 0)]] = True
