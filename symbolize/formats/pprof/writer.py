"""Profiles out, in pprof's own format, profile.proto (pprof schema)."""

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Bool, Int32, Int64, UInt8, distinct_inverse, offsets_of
from symbolize.core.compression import gzipped
from symbolize.core.protobuf import MAX_VARINT, field, varint
from symbolize.core.string_array import StringArray
from symbolize.formats.files import write_pieces
from symbolize.formats.pprof import columns, write_columns
from symbolize.profile.facts import with_comment
from symbolize.profile.model import Profile, RawFields, ValueType
from symbolize.profile.sample_types import with_types
from symbolize.proto import profile_tags as tags

BLOCK: Final = 1 << 16
"""Rows that are written at a time: only a block is in memory beside the profile."""

LAST_ASCII: Final = 0x7F

MAX_MESSAGE: Final = 5 * (1 + MAX_VARINT)
"""Bytes of a label or line at most: four numbers, and tag and length; tags are of one byte."""

MAX_ROW: Final = 11 * (1 + MAX_VARINT)
"""Bytes of a row of a table at most, without its lists: a mapping has ten numbers."""


class PackedLists(NamedTuple):
    """The lists of a table, as CSR, and how many bytes one item takes at most."""

    offsets: Int64
    size: int


class Numbering(NamedTuple):
    """The string table that is written: for each string of the profile its number in it, and the strings themselves."""

    numbers: Int32
    strings: StringArray


def encode(profile: Profile) -> bytes:
    """The profile as protobuf bytes, not compressed; equal profiles give equal bytes.

    Ids are numbered from 1 in table order. Of the strings those in use are written, in the order of first use. Bytes
    that are not UTF-8 come out as `\\xNN`, because proto3 demands UTF-8 and viewers refuse anything else. What is known
    of the evidence in the profile is its last comment (R426, facts in a comment).
    """
    buffer = io.BytesIO()
    for piece in _pieces(profile):
        buffer.write(piece)
    return buffer.getvalue()


def write(profile: Profile, destination: str | os.PathLike[str] | BinaryIO) -> None:
    """Write the profile, gzipped, to a path, to `-` (standard output) or to a binary file object.

    A file appears at its path whole or not at all.
    """
    write_pieces(gzipped(_pieces(profile)), destination)


def _pieces(profile: Profile) -> Iterator[Any]:
    """The fields of the profile in ascending order."""
    profile = with_comment(_default_last(profile))
    profile = _with_whole_names(profile)
    numbering = _number_strings(profile)
    numbers = numbering.numbers.tolist()
    for each in profile.sample_types:
        yield field(tags.PROFILE_SAMPLE_TYPE, _value_type(each, numbers))
    yield from _samples(profile, numbering.numbers)
    yield from _mappings(profile, numbering.numbers)
    yield from _locations(profile)
    yield from _functions(profile, numbering.numbers)
    yield from _string_table(numbering.strings)
    yield _tail(profile, numbers)
    if raw := profile.unknown.get("profile"):
        yield raw[0]


def _default_last(profile: Profile) -> Profile:
    """The profile with its default sample type as the last one, because some viewers show the last whatever the default
    is (R274, order of sample types).

    The others keep their order. A name that two types share would then be that of the other one, so it stays.
    """
    column, types = profile.weight_column(), profile.sample_types
    names = [each.type for each in types]
    if not profile.default_sample_type or names.count(profile.default_sample_type) != 1 or column == len(types) - 1:
        return profile
    return with_types(profile, [*range(column), *range(column + 1, len(types)), column])


def _number_strings(profile: Profile) -> Numbering:
    """Number the strings in use, in the order in which pprof's own writer meets them."""
    numbers = np.full(len(profile.strings), -1, np.int32)
    numbers[0] = 0
    labels, mappings, functions = profile.samples.labels, profile.mappings, profile.functions
    scalars = profile.drop_frames, profile.keep_frames, *profile.period_type, *profile.comments
    used = 0
    for column in (
        np.array(profile.sample_types, np.int32),
        np.stack((labels.key, labels.text, labels.unit), axis=1),
        np.stack((mappings.filename, mappings.build_id), axis=1),
        np.stack((functions.name, functions.system_name, functions.filename), axis=1),
        np.array((*scalars, profile.default_sample_type, profile.doc_url), np.int32),
    ):
        used = write_columns.number(_view(column.ravel(), np.int32), numbers.data, used)
    order = np.empty(used + 1, np.int64)
    known = np.flatnonzero(numbers >= 0)
    order[numbers[known]] = known
    return Numbering(numbers, profile.strings.array().only(order))


def _with_whole_names(profile: Profile) -> Profile:
    """The profile without the linked names of functions whose shown name pprof would cut (R466, whole names in pprof).

    Where both are the same, pprof takes a name with `::`, `<` or `[` for one of C++ and removes what is in brackets
    (looksLikeDemangledCPlusPlus): of `ArrayList::<init>` it shows `ArrayList::`. A name alone it leaves as it is.
    """
    functions, strings = profile.functions, profile.strings.array()
    rows = np.flatnonzero((functions.name == functions.system_name) & (functions.name != 0))
    names, which = distinct_inverse(functions.name[rows])
    is_cut = _are_cut(strings.only(names))[which]
    if not is_cut.any():
        return profile
    linked = functions.system_name.copy()
    linked[rows[is_cut]] = 0
    return replace(profile, functions=replace(functions, system_name=linked))


def _are_cut(names: StringArray) -> Bool:
    """Which names pprof takes for C++ and shortens: bool[n]."""
    data, (begin, end) = names.data, names.places()

    def have(marks: Bool, size: int = 1) -> Bool:
        at = np.flatnonzero(marks)
        found: Bool = np.searchsorted(at, begin) < np.searchsorted(at, end - size + 1)
        return found

    pairs = np.append(data[1:], 0)
    is_open = data == ord("<")
    is_java = have((data == ord(".")) & (pairs == ord("<")), 2)
    is_cpp = have(np.isin(data, list(b"<>[]"))) | have((data == ord(":")) & (pairs == ord(":")), 2)
    return is_cpp & ~is_java & have(is_open | (data == ord("(")))


def _string_table(strings: StringArray) -> Iterator[UInt8]:
    """The strings, a block at a time."""
    high = np.flatnonzero(strings.data > LAST_ASCII)
    first_high, end_high = (np.searchsorted(high, places) for places in strings.places())
    others = np.flatnonzero(first_high < end_high)
    readable = [each.decode("utf-8", "backslashreplace").encode() for each in strings.take(others)]
    strings = strings.with_changed(others, readable)
    begins, ends = strings.places()
    offsets = offsets_of(ends - begins)
    data = np.ascontiguousarray(strings.data, np.uint8).data
    for first in range(0, len(strings), BLOCK):
        last = min(first + BLOCK, len(strings))
        block = np.empty(int(offsets[last] - offsets[first]) + (last - first) * (1 + MAX_VARINT), np.uint8)
        places = begins[first:last].data, ends[first:last].data
        yield block[write_columns.encode_strings(data, *places, block.data) :]


def _integers(*fields: tuple[int, int]) -> bytes:
    """Integer fields by tag; those that are 0 are left out, as proto3 has it."""
    return b"".join(varint(tag) + varint(value & 0xFFFFFFFFFFFFFFFF) for tag, value in fields if value)


def _value_type(value_type: ValueType, numbers: list[int]) -> bytes:
    return _integers((tags.VALUE_TYPE_TYPE, numbers[value_type.type]), (tags.VALUE_TYPE_UNIT, numbers[value_type.unit]))


def _blocks(
    encode: Callable[..., int],
    rows: Any,
    profile: Profile,
    table: str,
    count: int,
    *lists: PackedLists,
    row_size: int = MAX_ROW,
) -> Iterator[UInt8]:
    """The `count` rows of a table of the profile, a block at a time."""
    ends = np.zeros(count + 1 if table in profile.unknown else 0, np.int64)
    raw = profile.unknown.get(table, RawFields())
    if len(ends):
        ends[raw.rows + 1] = np.diff(raw.offsets)
        lists = (*lists, PackedLists(np.cumsum(ends, out=ends), 1))
    extra = write_columns.Extra(ends.data, np.ascontiguousarray(raw.data, np.uint8).data)
    for first in range(0, count, BLOCK):
        last = min(first + BLOCK, count)
        items = sum(int(each.offsets[last] - each.offsets[first]) * each.size for each in lists)
        block = np.empty((last - first) * row_size + items, np.uint8)
        yield block[encode(rows, extra, first, last, block.data) :]


def _view(array: NDArray[Any], dtype: Any) -> memoryview:
    """An array as the compiled writer takes it, a copy of one that may not be written."""
    return np.require(array, dtype, ("C", "W")).data


def _samples(profile: Profile, numbers: Int32) -> Iterator[UInt8]:
    samples, labels = profile.samples, profile.samples.labels
    width = samples.values.shape[1]
    rows = columns.PprofSamples(
        width,
        columns.PprofLabels(
            _view(numbers[labels.key], np.int32),
            _view(numbers[labels.text], np.int32),
            _view(labels.number, np.int64),
            _view(numbers[labels.unit], np.int32),
        ),
        _view(samples.location_offsets, np.int64),
        _view(samples.locations, np.int32),
        _view(samples.values.ravel(), np.int64),
        _view(samples.label_offsets, np.int64),
    )
    stacks = PackedLists(samples.location_offsets, len(varint(len(profile.locations))))
    label_lists = PackedLists(samples.label_offsets, MAX_MESSAGE)
    encode = write_columns.encode_samples
    row_size = MAX_ROW + width * MAX_VARINT
    return _blocks(encode, rows, profile, "sample", len(samples), stacks, label_lists, row_size=row_size)


def _locations(profile: Profile) -> Iterator[UInt8]:
    locations, lines = profile.locations, profile.locations.lines
    rows = columns.PprofLocations(
        columns.PprofLines(_view(lines.function, np.int32), _view(lines.line, np.int64), _view(lines.column, np.int64)),
        _view(locations.address, np.uint64),
        _view(locations.mapping, np.int32),
        _view(locations.is_folded, np.uint8),
        _view(locations.line_offsets, np.int64),
    )
    line_lists = PackedLists(locations.line_offsets, MAX_MESSAGE)
    return _blocks(write_columns.encode_locations, rows, profile, "location", len(locations), line_lists)


def _functions(profile: Profile, numbers: Int32) -> Iterator[UInt8]:
    functions = profile.functions
    rows = columns.PprofFunctions(
        _view(numbers[functions.name], np.int32),
        _view(numbers[functions.system_name], np.int32),
        _view(numbers[functions.filename], np.int32),
        _view(functions.start_line, np.int64),
    )
    return _blocks(write_columns.encode_functions, rows, profile, "function", len(functions))


def _mappings(profile: Profile, numbers: Int32) -> Iterator[UInt8]:
    mappings = profile.mappings
    flags = mappings.has_functions, mappings.has_filenames, mappings.has_line_numbers, mappings.has_inline_frames
    rows = columns.PprofMappings(
        _view(np.stack((mappings.start, mappings.limit, mappings.file_offset)), np.uint64),
        _view(numbers[np.stack((mappings.filename, mappings.build_id))], np.int32),
        _view(np.stack(flags), np.uint8),
    )
    return _blocks(write_columns.encode_mappings, rows, profile, "mapping", len(mappings))


def _tail(profile: Profile, numbers: list[int]) -> bytes:
    """The fields after the string table."""
    comments = b"".join(varint(numbers[each]) for each in profile.comments)
    return b"".join(
        (
            _integers(
                (tags.PROFILE_DROP_FRAMES, numbers[profile.drop_frames]),
                (tags.PROFILE_KEEP_FRAMES, numbers[profile.keep_frames]),
                (tags.PROFILE_TIME_NANOS, profile.time_nanos),
                (tags.PROFILE_DURATION_NANOS, profile.duration_nanos),
            ),
            field(tags.PROFILE_PERIOD_TYPE, _value_type(profile.period_type, numbers))
            if any(profile.period_type)
            else b"",
            _integers((tags.PROFILE_PERIOD, profile.period)),
            field(tags.PROFILE_COMMENT_PACKED, comments) if comments else b"",
            _integers(
                (tags.PROFILE_DEFAULT_SAMPLE_TYPE, numbers[profile.default_sample_type]),
                (tags.PROFILE_DOC_URL, numbers[profile.doc_url]),
            ),
        )
    )
