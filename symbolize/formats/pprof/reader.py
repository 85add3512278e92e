"""Profiles in pprof's own format, profile.proto (pprof schema).

Index 0 of the string table is the empty string. Ids are not zero and occur once in their table. A sample has a value
for each sample type. Lines of a location run from the innermost inlined function outwards, stacks from leaf to root.
The mapping in row 0 is the main binary.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import NONE, Int32, UInt8, UInt64, views
from symbolize.core.budget import Budget
from symbolize.core.errors import EmptyInput, InputError
from symbolize.core.interning import InternTable, random_mixer
from symbolize.core.protobuf import NUMBER
from symbolize.formats.content import Content
from symbolize.formats.model import LoadedProfile, LoadOptions, only
from symbolize.formats.pprof import columns, read_columns
from symbolize.formats.pprof import scan as pprof_scan
from symbolize.profile.facts import take_comments
from symbolize.profile.model import (
    Functions,
    Labels,
    Lines,
    Locations,
    Mappings,
    Profile,
    RawFields,
    Samples,
    Strings,
    ValueType,
)
from symbolize.proto import profile_tags as tags

MAX_MAPPINGS: Final = 1 << 18
"""Merged profiles of a fleet have 200,000; each is a row of the report and takes about 1 KiB there."""

MAX_SAMPLE_TYPES: Final = 1 << 16
MAX_COMMENTS: Final = 1 << 16

COSTS: Final = {
    "samples": 16,
    "stack": 4,
    "values": 8,
    "labels": 20,
    "locations": 29,
    "lines": 20,
    "functions": 28,
    "mappings": 44,
    "strings": 64,
    "unknown_rows": 13,
    "unknown_bytes": 1,
    "top_bytes": 1,
}
"""Bytes that a row of each table takes in memory, by the counts of the scan."""

FREE_COST: Final = 128 << 20
MAX_COST_RATIO: Final = 8
"""Tables may take so much in any case, and beyond it so many times the size of the profile (R276, size of tables).
Those of profiles with a span id a sample, or a dozen sample types of which most are 0, take 4 to 6 times their size."""

DROP_FRAMES: Final = tags.PROFILE_DROP_FRAMES >> NUMBER
KEEP_FRAMES: Final = tags.PROFILE_KEEP_FRAMES >> NUMBER
TIME_NANOS: Final = tags.PROFILE_TIME_NANOS >> NUMBER
DURATION_NANOS: Final = tags.PROFILE_DURATION_NANOS >> NUMBER
PERIOD: Final = tags.PROFILE_PERIOD >> NUMBER
DEFAULT_SAMPLE_TYPE: Final = tags.PROFILE_DEFAULT_SAMPLE_TYPE >> NUMBER
DOC_URL: Final = tags.PROFILE_DOC_URL >> NUMBER

TEXT: Final = bytes({*b"\t\n\f\r", *range(32, 127), *range(128, 256)})


def matches(head: bytes | memoryview) -> bool:
    """Whether `head` begins with the fields of a profile. Text never does: a profile has small lengths and ids."""
    return bool(bytes(head[:1024]).translate(None, TEXT)) and bool(pprof_scan.begins_profile(head))


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The profile of a content. Raises InputError."""
    return only(load(content.whole(), content.name))


def load(data: bytes | memoryview, source: str) -> Profile:
    """Read a profile (not compressed); offsets in errors count from the start of `data`. Addresses are inside the calls
    already (R131, one adjustment).

    Valid is what pprof's CheckValid accepts. Beyond it, a line without a function and an unknown mapping id are dropped
    with a warning. pprof refuses an id that occurs twice or is zero, a sample whose location does not exist, a wrong
    number of values, and so two profiles written one after another, which a second time stamp or repeated ids show.
    """
    if not len(data):
        raise EmptyInput(source, "is empty")
    scan = pprof_scan.PprofScan(data)
    pprof_scan.count(scan)
    _check(scan, source)
    _check_cost(scan, len(data), source)
    strings, indices = _strings(scan, data, source)
    known = indices.data
    header, top = _header(scan, indices, source)
    unknown, kept = _unknown(scan)
    mapping_ids, mappings = _mappings(scan, unknown, known, source)
    function_ids, functions = _functions(scan, unknown, known, source)
    location_ids, locations = _locations(scan, unknown, mapping_ids, function_ids, source)
    samples = _samples(scan, unknown, location_ids, known, len(header.sample_types), source)
    profile = Profile(
        strings=strings,
        samples=samples,
        mappings=mappings,
        locations=locations,
        functions=functions,
        unknown=kept(),
        **header._asdict(),
    )
    if scan.top_bytes:
        profile.unknown["profile"] = RawFields(np.zeros(1, np.int32), np.array([0, scan.top_bytes]), top)
    take_comments(profile)
    _warn(profile, scan)
    return profile


def _check(scan: Any, source: str) -> None:
    """Raise what the scanner found wrong."""
    if scan.problem:
        problem = pprof_scan.PROBLEMS.get(scan.problem) or read_columns.PROBLEMS[scan.problem]
        raise InputError(source, problem, scan.at)


def _check_cost(scan: Any, size: int, source: str) -> None:
    """Refuse a profile of `size` bytes whose tables would take far more memory than that (R276, size of tables)."""
    for count, limit, what in (
        (scan.mappings, MAX_MAPPINGS, "mappings"),
        (scan.sample_types, MAX_SAMPLE_TYPES, "sample types"),
        (scan.comments, MAX_COMMENTS, "comments"),
    ):
        if count > limit:
            raise InputError(source, f"has {count} {what}, more than any profile can have ({limit})")
    budget = Budget(source, size, FREE_COST, MAX_COST_RATIO)
    budget.spend(sum(getattr(scan, rows) * each for rows, each in COSTS.items()))


class PprofHeader(NamedTuple):
    """What belongs to no table, as the fields of Profile."""

    sample_types: list[ValueType]
    drop_frames: int
    keep_frames: int
    time_nanos: int
    duration_nanos: int
    period_type: ValueType
    period: int
    comments: list[int]
    default_sample_type: int
    doc_url: int


def _header(scan: Any, indices: Int32, source: str) -> tuple[PprofHeader, UInt8]:
    """Everything but the tables, and the unknown fields of the profile."""
    numbers = np.zeros(DOC_URL + 1, np.int64)
    types, units = np.zeros(scan.sample_types + 1, np.int32), np.zeros(scan.sample_types + 1, np.int32)
    comments, unknown = np.zeros(scan.comments, np.int32), np.empty(scan.top_bytes, np.uint8)
    read_columns.fill_header(scan, indices.data, *views(numbers, types, units, comments, unknown))
    _check(scan, source)
    *sample_types, period_type = map(ValueType, types.tolist(), units.tolist())

    def string(field: int) -> int:
        index = int(numbers[field])
        if not 0 <= index < len(indices):
            raise InputError(source, f"names string {index} of {len(indices)}")
        return int(indices[index])

    header = PprofHeader(
        sample_types,
        string(DROP_FRAMES),
        string(KEEP_FRAMES),
        int(numbers[TIME_NANOS]),
        int(numbers[DURATION_NANOS]),
        period_type,
        int(numbers[PERIOD]),
        comments.tolist(),
        string(DEFAULT_SAMPLE_TYPE),
        string(DOC_URL),
    )
    return header, unknown


def _strings(scan: Any, data: bytes | memoryview, source: str) -> tuple[Strings, Int32]:
    """The string table, each string once, and the index of each of its entries."""
    starts, ends = np.empty(scan.strings, np.int64), np.empty(scan.strings, np.int64)
    read_columns.fill_strings(scan, starts.data, ends.data)
    if scan.strings and ends[0] != starts[0]:
        raise InputError(source, "has a string table whose first entry is not empty", int(starts[0]))
    strings = Strings()
    # A profile without strings may still say "string 0".
    indices = np.zeros(max(scan.strings, 1), np.int32)
    indices[: scan.strings] = strings.add_slices(data, starts, ends)
    return strings, indices


def _ids(ids: UInt64, what: str, source: str) -> Any:
    """The rows of a table by id; a repeated id is an error (pprof's CheckValid)."""
    count = len(ids)
    if not count or (ids[0] == 1 and ids[-1] == count and bool(np.all(np.diff(ids) == 1))):
        return InternTable(0, count)
    table = InternTable(random_mixer())
    repeated = table.put_all(ids.data)
    if repeated >= 0:
        hint = "; perhaps it holds two concatenated profiles"
        raise InputError(source, f"has two {what}s with id {ids[repeated]}{hint}")
    return table


def _mappings(scan: Any, unknown: Any, strings: memoryview, source: str) -> tuple[Any, Mappings]:
    count = scan.mappings
    ids = np.zeros(count, np.uint64)
    numbers, texts, flags = (
        np.zeros((3, count), np.uint64),
        np.zeros((2, count), np.int32),
        np.zeros((4, count), np.uint8),
    )
    table = columns.PprofMappings(*views(numbers, texts, flags))
    read_columns.fill_mappings(scan, unknown, strings, ids.data, table)
    _check(scan, source)
    return _ids(ids, "mapping", source), Mappings(*numbers, *texts, *flags.view(np.bool_))


def _functions(scan: Any, unknown: Any, strings: memoryview, source: str) -> tuple[Any, Functions]:
    functions = Functions.zeros(scan.functions)
    ids = np.zeros(scan.functions, np.uint64)
    table = columns.PprofFunctions(
        *views(functions.name, functions.system_name, functions.filename, functions.start_line)
    )
    read_columns.fill_functions(scan, unknown, strings, ids.data, table)
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
    table = columns.PprofLocations(
        columns.PprofLines(*views(lines.function, lines.line, lines.column)),
        *views(locations.address, locations.mapping, folded, locations.line_offsets),
    )
    read_columns.fill_locations(scan, unknown, mapping_ids, function_ids, ids.data, table)
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
    table = columns.PprofSamples(
        width,
        columns.PprofLabels(*views(labels.key, labels.text, labels.number, labels.unit)),
        *views(samples.location_offsets, samples.locations, values, samples.label_offsets),
    )
    read_columns.fill_samples(scan, unknown, location_ids, strings, table)
    _check(scan, source)
    samples.values = values.reshape(count, width)
    return samples


def _unknown(scan: Any) -> tuple[Any, Callable[[], dict[str, RawFields]]]:
    """Where the fills put unknown fields of table rows, and a function that gives them as `Profile.unknown`."""
    tables, rows = np.empty(scan.unknown_rows, np.uint8), np.empty(scan.unknown_rows, np.int32)
    ends = np.zeros(scan.unknown_rows + 1, np.int64)
    raw = np.empty(scan.unknown_bytes, np.uint8)
    unknown = read_columns.Unknown(*views(tables, rows, ends[1:], raw))

    def kept() -> dict[str, RawFields]:
        found = {}
        # The rows of one table are next to one another.
        edges = [0, *(np.flatnonzero(np.diff(tables)) + 1).tolist(), len(tables)]
        for first, last in pairwise(edges):
            if first < last:
                begin, end = int(ends[first]), int(ends[last])
                fields = RawFields(rows[first:last], ends[first : last + 1] - begin, raw[begin:end])
                found[read_columns.TABLES[tables[first]]] = fields
        return found

    return unknown, kept


def _warn(profile: Profile, scan: Any) -> None:
    """Say what was dropped."""
    for count, problem in (
        (scan.lines_dropped, "lines without a function were dropped"),
        (scan.mappings_dropped, "locations name a mapping that does not exist and are read without one"),
        (scan.fields_dropped, "unknown fields of lines, labels and value types were dropped"),
        (scan.other_types, "fields of another wire type than the format has were dropped"),
    ):
        if count:
            profile.warnings.append(f"{count} {problem}")
