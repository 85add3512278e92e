# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""The mass fields of a pprof profile as flat arrays of the exact size that the scan counted.

Ids and string indices are resolved on the way, so no array of ids outlives its table. The scan has checked the
structure; what is left to find wrong is noted in the `PprofScan`, with the offset.
"""

import cython

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.core.interning import InternTable
    from symbolize.core.protobuf import LAST_BYTE, NUMBER, VARINT, WIRE_TYPE
    from symbolize.formats.pprof.columns import (
        PprofFunctions,
        PprofLabels,
        PprofLines,
        PprofLocations,
        PprofMappings,
        PprofSamples,
    )
    from symbolize.formats.pprof.scan import PprofScan, check, fail, find
    from symbolize.proto.profile_tags import *

STRING_OUTSIDE = cython.declare(cython.int, 16)
LOCATION_MISSING = cython.declare(cython.int, 17)
VALUE_COUNT = cython.declare(cython.int, 18)
LOCATION_ZERO = cython.declare(cython.int, 19)
FUNCTION_ZERO = cython.declare(cython.int, 20)
MAPPING_ZERO = cython.declare(cython.int, 21)

PROBLEMS = {
    STRING_OUTSIDE: "names a string outside the string table",
    LOCATION_MISSING: "has a sample with a location that does not exist",
    VALUE_COUNT: "has a sample with more or fewer values than there are sample types",
    LOCATION_ZERO: "has a location with id 0",
    FUNCTION_ZERO: "has a function with id 0",
    MAPPING_ZERO: "has a mapping with id 0",
}
"""What `PprofScan.problem` says where the content is at fault."""

TABLES = ("sample", "location", "function", "mapping")
"""The tables of `Unknown`, by number."""

SAMPLES = cython.declare(cython.int, 0)
LOCATIONS = cython.declare(cython.int, 1)
FUNCTIONS = cython.declare(cython.int, 2)
MAPPINGS = cython.declare(cython.int, 3)


@cython.cclass
class Unknown:
    """Fields of a newer schema: the raw bytes of run `i` belong to row `rows[i]` of table `tables[i]`."""

    def __init__(
        self, tables: cython.uchar[::1], rows: cython.int[::1], ends: cython.longlong[::1], raw: cython.uchar[::1]
    ) -> None:
        self.tables = tables
        self.rows = rows
        self.ends = ends
        self.raw = raw
        self.count = 0
        self.size = 0


def keep(
    unknown: Unknown, c: Cursor, table: cython.int, row: cython.Py_ssize_t, start: cython.Py_ssize_t
) -> cython.void:
    """Keep the bytes from `start` to the cursor as unknown fields of `row`."""
    i: cython.Py_ssize_t
    last: cython.Py_ssize_t = unknown.count - 1
    if c.bad:
        return
    for i in range(start, c.pos):
        unknown.raw[unknown.size] = c.data[i]
        unknown.size += 1
    if last < 0 or unknown.rows[last] != row or unknown.tables[last] != table:
        last += 1
        unknown.count += 1
        unknown.tables[last] = table
        unknown.rows[last] = cython.cast(cython.int, row)
    unknown.ends[last] = unknown.size


def string(scan: PprofScan, c: Cursor, strings: cython.const[cython.int][::1]) -> cython.int:
    """A string index, translated by `strings`; the empty string needs no table."""
    start: cython.Py_ssize_t = c.pos
    value: cython.ulonglong = c.varint()
    if value < cython.cast(cython.ulonglong, strings.shape[0]):
        return strings[cython.cast(cython.Py_ssize_t, value)]
    fail(scan, c, STRING_OUTSIDE, start)
    return 0


def fill_value_type(
    scan: PprofScan,
    c: Cursor,
    strings: cython.const[cython.int][::1],
    types: cython.int[::1],
    units: cython.int[::1],
    row: cython.Py_ssize_t,
) -> cython.void:
    """One ValueType into `row`; of several that are one field, what each has replaces what the one before had."""
    outer: cython.Py_ssize_t = c.enter()
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        tag = c.read_tag()
        if tag == VALUE_TYPE_TYPE:
            types[row] = string(scan, c, strings)
        elif tag == VALUE_TYPE_UNIT:
            units[row] = string(scan, c, strings)
        else:
            c.skip_field(tag)
            scan.fields_dropped += 1
    c.leave(outer)


def fill_comments(
    scan: PprofScan,
    c: Cursor,
    strings: cython.const[cython.int][::1],
    comments: cython.int[::1],
    row: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """A packed list of comments into `comments` from `row` on; the row after them."""
    outer: cython.Py_ssize_t = c.enter()
    while c.pos < c.end and not c.bad:
        comments[row] = string(scan, c, strings)
        row += 1
    c.leave(outer)
    return row


def fill_header(
    scan: PprofScan,
    strings: cython.const[cython.int][::1],
    numbers: cython.longlong[::1],
    types: cython.int[::1],
    units: cython.int[::1],
    comments: cython.int[::1],
    unknown: cython.uchar[::1],
) -> None:
    """The fields that belong to no table: integers by their field number, comments, and unknown ones as bytes.

    Of `types` and `units` the last row is for the period type.
    """
    c: Cursor = scan.c
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t
    size: cython.Py_ssize_t = 0
    sample_type: cython.Py_ssize_t = 0
    comment: cython.Py_ssize_t = 0
    tag: cython.ulonglong
    with cython.nogil:
        c.pos = 0
        while c.pos < c.end and not c.bad:
            start = c.pos
            tag = c.read_tag()
            if tag == PROFILE_SAMPLE_TYPE:
                fill_value_type(scan, c, strings, types, units, sample_type)
                sample_type += 1
            elif tag == PROFILE_PERIOD_TYPE:
                fill_value_type(scan, c, strings, types, units, types.shape[0] - 1)
            elif tag == PROFILE_COMMENT_PACKED:
                comment = fill_comments(scan, c, strings, comments, comment)
            elif tag == PROFILE_COMMENT:
                comments[comment] = string(scan, c, strings)
                comment += 1
            elif tag & WIRE_TYPE == VARINT and tag >> NUMBER <= LAST_PROFILE:
                numbers[cython.cast(cython.Py_ssize_t, tag >> NUMBER)] = c.int64()
            else:
                c.skip_field(tag)
                if tag >> NUMBER > LAST_PROFILE:
                    for i in range(start, c.pos):
                        unknown[size] = c.data[i]
                        size += 1
        check(scan, c)


def fill_mappings(
    scan: PprofScan,
    unknown: Unknown,
    strings: cython.const[cython.int][::1],
    ids: cython.ulonglong[::1],
    mappings: PprofMappings,
) -> None:
    """The mapping table."""
    c: Cursor = scan.c
    numbers: cython.ulonglong[:, ::1] = mappings.numbers
    texts: cython.int[:, ::1] = mappings.texts
    flags: cython.uchar[:, ::1] = mappings.flags
    row: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    tag: cython.ulonglong
    with cython.nogil:
        while find(scan, c, PROFILE_MAPPING):
            begin = c.pos
            while c.pos < c.end and not c.bad:
                start = c.pos
                tag = c.read_tag()
                if tag == MAPPING_ID:
                    ids[row] = c.varint()
                elif tag == MAPPING_MEMORY_START:
                    numbers[0, row] = c.varint()
                elif tag == MAPPING_MEMORY_LIMIT:
                    numbers[1, row] = c.varint()
                elif tag == MAPPING_FILE_OFFSET:
                    numbers[2, row] = c.varint()
                elif tag == MAPPING_FILENAME:
                    texts[0, row] = string(scan, c, strings)
                elif tag == MAPPING_BUILD_ID:
                    texts[1, row] = string(scan, c, strings)
                elif tag == MAPPING_HAS_FUNCTIONS:
                    flags[0, row] = c.varint() != 0
                elif tag == MAPPING_HAS_FILENAMES:
                    flags[1, row] = c.varint() != 0
                elif tag == MAPPING_HAS_LINE_NUMBERS:
                    flags[2, row] = c.varint() != 0
                elif tag == MAPPING_HAS_INLINE_FRAMES:
                    flags[3, row] = c.varint() != 0
                else:
                    c.skip_field(tag)
                    if tag >> NUMBER > LAST_MAPPING:
                        keep(unknown, c, MAPPINGS, row, start)
            check(scan, c)
            if ids[row] == 0:
                fail(scan, c, MAPPING_ZERO, begin)
            row += 1


def fill_strings(scan: PprofScan, starts: cython.longlong[::1], ends: cython.longlong[::1]) -> None:
    """Where every entry of the string table begins and ends."""
    c: Cursor = scan.c
    row: cython.Py_ssize_t = 0
    with cython.nogil:
        while find(scan, c, PROFILE_STRING_TABLE):
            starts[row] = c.pos
            ends[row] = c.end
            row += 1


def fill_functions(
    scan: PprofScan,
    unknown: Unknown,
    strings: cython.const[cython.int][::1],
    ids: cython.ulonglong[::1],
    functions: PprofFunctions,
) -> None:
    """The function table."""
    c: Cursor = scan.c
    names: cython.int[::1] = functions.names
    system_names: cython.int[::1] = functions.system_names
    filenames: cython.int[::1] = functions.filenames
    start_lines: cython.longlong[::1] = functions.start_lines
    row: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    tag: cython.ulonglong
    with cython.nogil:
        while find(scan, c, PROFILE_FUNCTION):
            begin = c.pos
            while c.pos < c.end and not c.bad:
                start = c.pos
                tag = c.varint()
                if tag == FUNCTION_ID:
                    ids[row] = c.varint()
                elif tag == FUNCTION_NAME:
                    names[row] = string(scan, c, strings)
                elif tag == FUNCTION_SYSTEM_NAME:
                    system_names[row] = string(scan, c, strings)
                elif tag == FUNCTION_FILENAME:
                    filenames[row] = string(scan, c, strings)
                elif tag == FUNCTION_START_LINE:
                    start_lines[row] = c.int64()
                else:
                    c.skip_field(tag)
                    if tag >> NUMBER > LAST_FUNCTION:
                        keep(unknown, c, FUNCTIONS, row, start)
            check(scan, c)
            if ids[row] == 0:
                fail(scan, c, FUNCTION_ZERO, begin)
            row += 1


def fill_line(
    scan: PprofScan, c: Cursor, functions: InternTable, lines: PprofLines, row: cython.Py_ssize_t
) -> cython.bint:
    """One line of a location into `row`; false if it names no function."""
    outer: cython.Py_ssize_t = c.enter()
    tag: cython.ulonglong
    function: cython.int = -1
    line: cython.longlong = 0
    column: cython.longlong = 0
    while c.pos < c.end and not c.bad:
        tag = c.read_tag()
        if tag == LINE_FUNCTION_ID:
            function = functions.find(c.varint())
        elif tag == LINE_LINE:
            line = c.int64()
        elif tag == LINE_COLUMN:
            column = c.int64()
        else:
            c.skip_field(tag)
            scan.fields_dropped += 1
    c.leave(outer)
    lines.functions[row] = function
    lines.lines[row] = line
    lines.columns[row] = column
    return function >= 0


def fill_locations(
    scan: PprofScan,
    unknown: Unknown,
    mappings: InternTable,
    functions: InternTable,
    ids: cython.ulonglong[::1],
    locations: PprofLocations,
) -> None:
    """The location table with its lines; lines without a function are dropped."""
    c: Cursor = scan.c
    addresses: cython.ulonglong[::1] = locations.addresses
    location_mappings: cython.int[::1] = locations.mappings
    folded: cython.uchar[::1] = locations.folded
    line_offsets: cython.longlong[::1] = locations.offsets
    lines: PprofLines = locations.lines
    row: cython.Py_ssize_t = 0
    line: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    tag: cython.ulonglong
    mapping: cython.ulonglong
    with cython.nogil:
        while find(scan, c, PROFILE_LOCATION):
            begin = c.pos
            mapping = 0
            while c.pos < c.end and not c.bad:
                start = c.pos
                tag = c.varint()
                if tag == LOCATION_ID:
                    ids[row] = c.varint()
                elif tag == LOCATION_MAPPING_ID:
                    mapping = c.varint()
                elif tag == LOCATION_ADDRESS:
                    addresses[row] = c.varint()
                elif tag == LOCATION_LINE:
                    if fill_line(scan, c, functions, lines, line):
                        line += 1
                    else:
                        scan.lines_dropped += 1
                elif tag == LOCATION_IS_FOLDED:
                    folded[row] = c.varint() != 0
                else:
                    c.skip_field(tag)
                    if tag >> NUMBER > LAST_LOCATION:
                        keep(unknown, c, LOCATIONS, row, start)
            check(scan, c)
            if ids[row] == 0:
                fail(scan, c, LOCATION_ZERO, begin)
            location_mappings[row] = mappings.find(mapping)
            scan.mappings_dropped += mapping != 0 and location_mappings[row] < 0
            row += 1
            line_offsets[row] = line


def fill_label(
    scan: PprofScan,
    c: Cursor,
    strings: cython.const[cython.int][::1],
    labels: PprofLabels,
    row: cython.Py_ssize_t,
) -> cython.void:
    """One label of a sample into `row`."""
    outer: cython.Py_ssize_t = c.enter()
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        tag = c.read_tag()
        if tag == LABEL_KEY:
            labels.keys[row] = string(scan, c, strings)
        elif tag == LABEL_STR:
            labels.texts[row] = string(scan, c, strings)
        elif tag == LABEL_NUM:
            labels.numbers[row] = c.int64()
        elif tag == LABEL_NUM_UNIT:
            labels.units[row] = string(scan, c, strings)
        else:
            c.skip_field(tag)
            scan.fields_dropped += 1
    c.leave(outer)


def fill_stack(
    scan: PprofScan, c: Cursor, locations: InternTable, stack: cython.int[::1], at: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """A packed list of location ids into `stack` from `at` on; where the next one goes.

    Nearly all bytes of a profile are read here, and nearly every profile numbers from 1: so varints of up to three
    bytes, and such ids, take no call.
    """
    outer: cython.Py_ssize_t = c.enter()
    pos: cython.Py_ssize_t = c.pos
    end: cython.Py_ssize_t = c.end
    start: cython.Py_ssize_t
    numbered: cython.ulonglong = locations.numbered
    value: cython.ulonglong
    row: cython.int
    while pos < end and not c.bad:
        start = pos
        value = c.data[pos]
        if value < LAST_BYTE:
            pos += 1
        elif pos + 1 < end and c.data[pos + 1] < LAST_BYTE:
            value = (value & 0x7F) | (cython.cast(cython.ulonglong, c.data[pos + 1]) << 7)
            pos += 2
        elif pos + 2 < end and c.data[pos + 2] < LAST_BYTE:
            value = (value & 0x7F) | (cython.cast(cython.ulonglong, c.data[pos + 1] & 0x7F) << 7)
            value |= cython.cast(cython.ulonglong, c.data[pos + 2]) << 14
            pos += 3
        else:
            c.pos = pos
            value = c.varint()
            pos = c.pos
        if 0 < value <= numbered:
            stack[at] = cython.cast(cython.int, value - 1)
        else:
            row = locations.find(value)
            if row < 0:
                fail(scan, c, LOCATION_MISSING, start)
            stack[at] = row
        at += 1
    c.leave(outer)
    return at


def fill_values(
    scan: PprofScan, c: Cursor, values: cython.longlong[::1], at: cython.Py_ssize_t, limit: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """A packed list of values into `values[at:limit]`; where the next one goes."""
    outer: cython.Py_ssize_t = c.enter()
    while c.pos < c.end and at < limit and not c.bad:
        values[at] = c.int64()
        at += 1
    if c.pos < c.end and not c.bad:
        fail(scan, c, VALUE_COUNT, c.pos)
    c.leave(outer)
    return at


def fill_samples(
    scan: PprofScan,
    unknown: Unknown,
    locations: InternTable,
    strings: cython.const[cython.int][::1],
    samples: PprofSamples,
) -> None:
    """The sample table with its stacks, values and labels."""
    c: Cursor = scan.c
    offsets: cython.longlong[::1] = samples.offsets
    stack: cython.int[::1] = samples.stack
    values: cython.longlong[::1] = samples.values
    width: cython.Py_ssize_t = samples.width
    label_offsets: cython.longlong[::1] = samples.label_offsets
    labels: PprofLabels = samples.labels
    row: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    value: cython.Py_ssize_t = 0
    label: cython.Py_ssize_t = 0
    limit: cython.Py_ssize_t
    start: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    found: cython.int
    tag: cython.ulonglong
    with cython.nogil:
        while find(scan, c, PROFILE_SAMPLE):
            begin = c.pos
            limit = value + width
            while c.pos < c.end and not c.bad:
                start = c.pos
                tag = c.varint()
                if tag == SAMPLE_LOCATION_ID_PACKED:
                    at = fill_stack(scan, c, locations, stack, at)
                elif tag == SAMPLE_VALUE_PACKED:
                    value = fill_values(scan, c, values, value, limit if limit < values.shape[0] else values.shape[0])
                elif tag == SAMPLE_LABEL:
                    fill_label(scan, c, strings, labels, label)
                    label += 1
                elif tag == SAMPLE_LOCATION_ID:
                    found = locations.find(c.varint())
                    if found < 0:
                        fail(scan, c, LOCATION_MISSING, start)
                    stack[at] = found
                    at += 1
                elif tag == SAMPLE_VALUE:
                    if value < limit and value < values.shape[0]:
                        values[value] = c.int64()
                        value += 1
                    else:
                        fail(scan, c, VALUE_COUNT, start)
                else:
                    c.skip_field(tag)
                    if tag >> NUMBER > LAST_SAMPLE:
                        keep(unknown, c, SAMPLES, row, start)
            check(scan, c)
            if value != limit:
                fail(scan, c, VALUE_COUNT, begin)
            row += 1
            offsets[row] = at
            label_offsets[row] = label
