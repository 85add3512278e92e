"""Profiles in pprof's own format, profile.proto (pprof schema)."""

import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from symbolize.errors import InputError
from symbolize.load import pprof_columns as columns
from symbolize.load import pprof_scan
from symbolize.load.ids import Ids
from symbolize.profile.model import (
    NONE,
    Functions,
    Int32,
    Labels,
    Lines,
    Locations,
    Mappings,
    Profile,
    Samples,
    UInt64,
    ValueType,
)
from symbolize.profile.strings import Strings

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from symbolize.proto import profile_pb2

MAX_MAPPINGS: Final = 1 << 20
"""More than any process or fleet has; each costs a protobuf object, which a hostile file gets for two bytes."""

MAX_SAMPLE_TYPES: Final = 1 << 16

STRINGS_AT_ONCE: Final = 1 << 16
"""How many string offsets become Python integers at a time."""

TEXT: Final = bytes({*b"\t\n\f\r", *range(32, 127), *range(128, 256)})


def matches(data: bytes | memoryview) -> bool:
    """Whether `data` begins with the fields of a profile. Text never does: a profile has small lengths and ids."""
    return bool(bytes(data[:1024]).translate(None, TEXT)) and bool(pprof_scan.begins_profile(data))


def load(data: bytes | memoryview, source: str) -> Profile:
    """Read a profile (not compressed); offsets in errors count from the start of `data`.

    Valid is what pprof's CheckValid accepts. Beyond it, a line without a function and an unknown mapping id are
    dropped with a warning.
    """
    if not len(data):
        raise InputError(source, "is empty")
    scan = pprof_scan.Scan(data)
    pprof_scan.count(scan)
    _check(scan, source)
    header = _header(scan, source)
    strings, indices = _strings(scan, data, source)
    known = indices.data
    unknown, kept = _unknown(scan)
    mapping_ids, mappings = _mappings(header, indices, source)
    function_ids, functions = _functions(scan, unknown, known, source)
    location_ids, locations = _locations(scan, unknown, mapping_ids, function_ids, source)
    samples = _samples(scan, unknown, location_ids, known, len(header.sample_type), source)

    def string(index: int) -> int:
        return _string(index, indices, source)

    profile = Profile(
        strings=strings,
        sample_types=[ValueType(string(each.type), string(each.unit)) for each in header.sample_type],
        samples=samples,
        mappings=mappings,
        locations=locations,
        functions=functions,
        drop_frames=string(header.drop_frames),
        keep_frames=string(header.keep_frames),
        time_nanos=header.time_nanos,
        duration_nanos=header.duration_nanos,
        period_type=ValueType(string(header.period_type.type), string(header.period_type.unit)),
        period=header.period,
        comments=[string(each) for each in header.comment],
        default_sample_type=string(header.default_sample_type),
        doc_url=string(header.doc_url),
        unknown=kept(),
    )
    for table, fields in (("profile", {0: header}), ("mapping", dict(enumerate(header.mapping)))):
        found = {row: raw for row, message in fields.items() if (raw := _unknown_fields(message))}
        if found:
            profile.unknown[table] = found
    _warn(profile, scan, header)
    return profile


def _check(scan: Any, source: str) -> None:
    """Raise what the scanner found wrong."""
    if scan.problem:
        problem = pprof_scan.PROBLEMS.get(scan.problem) or columns.PROBLEMS[scan.problem]
        raise InputError(source, problem, scan.at)


def _header(scan: Any, source: str) -> "profile_pb2.Profile":
    """Everything but the mass tables, as protobuf reads it."""
    from google.protobuf.message import DecodeError

    from symbolize.proto.profile_pb2 import Profile as Message

    for count, limit, what in (
        (scan.mappings, MAX_MAPPINGS, "mappings"),
        (scan.sample_types, MAX_SAMPLE_TYPES, "sample types"),
    ):
        if count > limit:
            raise InputError(source, f"has {count} {what}, more than any profile can have ({limit})")
    rest = np.empty(scan.rest, np.uint8)
    columns.fill_rest(scan, rest.data)
    try:
        return Message.FromString(rest.tobytes())
    except DecodeError as error:
        raise InputError(source, f"is no protobuf profile: {error}") from error


def _strings(scan: Any, data: bytes | memoryview, source: str) -> tuple[Strings, Int32]:
    """The string table, each string once, and the index of each of its entries."""
    starts, ends = np.empty(scan.strings, np.int64), np.empty(scan.strings, np.int64)
    columns.fill_strings(scan, starts.data, ends.data)
    if scan.strings and ends[0] != starts[0]:
        raise InputError(source, "has a string table whose first entry is not empty", int(starts[0]))
    strings = Strings()
    add = strings.add
    # A profile without strings may still say "string 0".
    indices = np.zeros(max(scan.strings, 1), np.int32)
    for first in range(0, scan.strings, STRINGS_AT_ONCE):
        some = slice(first, first + STRINGS_AT_ONCE)
        spans = zip(starts[some].tolist(), ends[some].tolist(), strict=True)
        indices[some] = [add(bytes(data[start:end])) for start, end in spans]
    return strings, indices


def _string(index: int, indices: Int32, source: str) -> int:
    if not 0 <= index < len(indices):
        raise InputError(source, f"names string {index} of {len(indices)}")
    return int(indices[index])


def _ids(ids: UInt64, what: str, source: str) -> Any:
    """The rows of a table by id; a repeated id is an error (pprof's CheckValid)."""
    count = len(ids)
    if not count or (ids[0] == 1 and ids[-1] == count and bool(np.all(np.diff(ids) == 1))):
        return Ids(count, np.zeros(0, np.uint64).data, np.zeros(0, np.int32).data, 1)
    slots = 2 << count.bit_length()
    rows = np.zeros(slots, np.int32).data
    table = Ids(0, np.zeros(slots, np.uint64).data, rows, int.from_bytes(os.urandom(8), "little"))
    repeated = table.insert(ids.data)
    if repeated >= 0:
        raise InputError(source, f"has two {what}s with id {ids[repeated]}")
    return table


def _mappings(header: "profile_pb2.Profile", indices: Int32, source: str) -> tuple[Any, Mappings]:
    """The mappings; few enough for a loop."""
    messages = header.mapping
    ids = np.array([each.id for each in messages], np.uint64)
    if not ids.all():
        raise InputError(source, "has a mapping with id 0")
    mappings = Mappings(
        start=np.array([each.memory_start for each in messages], np.uint64),
        limit=np.array([each.memory_limit for each in messages], np.uint64),
        file_offset=np.array([each.file_offset for each in messages], np.uint64),
        filename=np.array([_string(each.filename, indices, source) for each in messages], np.int32),
        build_id=np.array([_string(each.build_id, indices, source) for each in messages], np.int32),
        has_functions=np.array([each.has_functions for each in messages], np.bool_),
        has_filenames=np.array([each.has_filenames for each in messages], np.bool_),
        has_line_numbers=np.array([each.has_line_numbers for each in messages], np.bool_),
        has_inline_frames=np.array([each.has_inline_frames for each in messages], np.bool_),
    )
    return _ids(ids, "mapping", source), mappings


def _functions(scan: Any, unknown: Any, strings: memoryview, source: str) -> tuple[Any, Functions]:
    functions = Functions.zeros(scan.functions)
    ids = np.zeros(scan.functions, np.uint64)
    columns.fill_functions(
        scan,
        unknown,
        strings,
        *_views(ids, functions.name, functions.system_name, functions.filename, functions.start_line),
    )
    _check(scan, source)
    return _ids(ids, "function", source), functions


def _locations(scan: Any, unknown: Any, mapping_ids: Any, function_ids: Any, source: str) -> tuple[Any, Locations]:
    count = scan.locations
    locations = Locations(
        address=np.zeros(count, np.uint64),
        mapping=np.full(count, NONE, np.int32),
        is_folded=np.zeros(count, np.bool_),
        line_offsets=np.zeros(count + 1, np.int64),
        lines=Lines.zeros(scan.lines),
    )
    ids = np.zeros(count, np.uint64)
    lines = locations.lines
    folded = locations.is_folded.view(np.uint8)
    columns.fill_locations(
        scan,
        unknown,
        mapping_ids,
        function_ids,
        *_views(ids, locations.address, locations.mapping, folded, locations.line_offsets),
        *_views(lines.function, lines.line, lines.column),
    )
    _check(scan, source)
    if scan.lines_dropped:
        locations.lines = lines.take(np.arange(scan.lines - scan.lines_dropped))
    return _ids(ids, "location", source), locations


def _samples(scan: Any, unknown: Any, location_ids: Any, strings: memoryview, width: int, source: str) -> Samples:
    if scan.samples and not width:
        raise InputError(source, "has samples but no sample types")
    count = scan.samples
    values = np.zeros(scan.values, np.int64)
    samples = Samples(
        location_offsets=np.zeros(count + 1, np.int64),
        locations=np.zeros(scan.stack, np.int32),
        label_offsets=np.zeros(count + 1, np.int64),
        labels=Labels.zeros(scan.labels),
    )
    labels = samples.labels
    columns.fill_samples(
        scan,
        unknown,
        location_ids,
        strings,
        width,
        *_views(samples.location_offsets, samples.locations, values, samples.label_offsets),
        *_views(labels.key, labels.text, labels.number, labels.unit),
    )
    _check(scan, source)
    samples.values = values.reshape(count, width)
    return samples


def _views(*arrays: NDArray[Any]) -> list[memoryview]:
    """Arrays as buffers, whose items are plain integers to uncompiled code too."""
    return [array.data for array in arrays]


def _unknown(scan: Any) -> tuple[Any, Any]:
    """Where the fills put unknown fields of table rows, and a function that gives them as `Profile.unknown`."""
    tables = np.empty(scan.unknown_rows, np.uint8)
    rows, ends = np.empty(scan.unknown_rows, np.int64), np.empty(scan.unknown_rows, np.int64)
    raw = np.empty(scan.unknown_bytes, np.uint8)
    unknown = columns.Unknown(*_views(tables, rows, ends, raw))

    def kept() -> dict[str, dict[int, bytes]]:
        found: dict[str, dict[int, bytes]] = {}
        start = 0
        for table, row, end in zip(tables.tolist(), rows.tolist(), ends.tolist(), strict=True):
            found.setdefault(columns.TABLES[table], {})[row] = raw[start:end].tobytes()
            start = end
        return found

    return unknown, kept


def _unknown_fields(message: "Message") -> bytes:
    """The fields of a message that its schema does not have, as they stood in the file."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    if not len(UnknownFieldSet(message)):
        return b""
    copy = type(message)()
    copy.CopyFrom(message)
    for field in copy.DESCRIPTOR.fields:
        copy.ClearField(field.name)
    return copy.SerializeToString()


def _warn(profile: Profile, scan: Any, header: "profile_pb2.Profile") -> None:
    """Say what was dropped."""
    dropped = scan.fields_dropped + sum(
        bool(_unknown_fields(each)) for each in (*header.sample_type, header.period_type)
    )
    for count, problem in (
        (scan.lines_dropped, "lines without a function were dropped"),
        (scan.mappings_dropped, "locations name a mapping that does not exist and are read without one"),
        (dropped, "unknown fields of lines, labels and value types were dropped"),
    ):
        if count:
            profile.warnings.append(f"{count} {problem}")
