# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type, no-any-return"
"""Tables as protobuf bytes: each function writes the rows from `first` up to `last` to the end of `buffer`, and returns
where they begin.

Ids are row numbers from 1. Fields that are zero are left out (proto3), integer lists are packed. All is written from
the end to the begin, so rows and fields come in descending order.
"""

import cython

if not cython.compiled:
    from symbolize.core.encoder import Encoder
    from symbolize.formats.pprof.columns import (
        PprofFunctions,
        PprofLabels,
        PprofLines,
        PprofLocations,
        PprofMappings,
        PprofSamples,
    )
    from symbolize.proto.profile_tags import *


@cython.cclass
class Extra:
    """Raw fields to append to messages: those of row `i` are `raw[offsets[i]:offsets[i + 1]]`. No offsets: none."""

    def __init__(self, offsets: cython.const[cython.longlong][::1], raw: cython.const[cython.uchar][::1]) -> None:
        self.offsets = offsets
        self.raw = raw

    def put(self, out: Encoder, row: cython.Py_ssize_t) -> cython.void:
        """Write the fields of `row`."""
        if len(self.offsets) > 0:
            out.raw(self.raw, self.offsets[row], self.offsets[row + 1])


def encode_samples(
    samples: PprofSamples,
    extra: Extra,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    buffer: cython.uchar[::1],
) -> int:
    """Write samples: their stacks, values and labels."""
    out: Encoder = Encoder(buffer)
    offsets: cython.longlong[::1] = samples.offsets
    stack: cython.int[::1] = samples.stack
    values: cython.longlong[::1] = samples.values
    width: cython.Py_ssize_t = samples.width
    label_offsets: cython.longlong[::1] = samples.label_offsets
    labels: PprofLabels = samples.labels
    row: cython.Py_ssize_t
    end: cython.Py_ssize_t
    inner: cython.Py_ssize_t
    k: cython.Py_ssize_t
    with cython.nogil:
        for row in range(last - 1, first - 1, -1):
            end = out.pos
            extra.put(out, row)
            for k in range(label_offsets[row + 1] - 1, label_offsets[row] - 1, -1):
                inner = out.pos
                out.number(LABEL_NUM_UNIT, labels.units[k])
                out.signed(LABEL_NUM, labels.numbers[k])
                out.number(LABEL_STR, labels.texts[k])
                out.number(LABEL_KEY, labels.keys[k])
                out.close(SAMPLE_LABEL, inner)
            inner = out.pos
            for k in range((row + 1) * width - 1, row * width - 1, -1):
                out.int64(values[k])
            if out.pos < inner:
                out.close(SAMPLE_VALUE_PACKED, inner)
            inner = out.pos
            for k in range(offsets[row + 1] - 1, offsets[row] - 1, -1):
                out.varint(cython.cast(cython.ulonglong, stack[k] + 1))
            if out.pos < inner:
                out.close(SAMPLE_LOCATION_ID_PACKED, inner)
            out.close(PROFILE_SAMPLE, end)
    return out.pos


def encode_locations(
    locations: PprofLocations,
    extra: Extra,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    buffer: cython.uchar[::1],
) -> int:
    """Write locations with their lines."""
    out: Encoder = Encoder(buffer)
    addresses: cython.ulonglong[::1] = locations.addresses
    mappings: cython.int[::1] = locations.mappings
    folded: cython.uchar[::1] = locations.folded
    offsets: cython.longlong[::1] = locations.offsets
    lines: PprofLines = locations.lines
    row: cython.Py_ssize_t
    end: cython.Py_ssize_t
    inner: cython.Py_ssize_t
    k: cython.Py_ssize_t
    with cython.nogil:
        for row in range(last - 1, first - 1, -1):
            end = out.pos
            extra.put(out, row)
            out.number(LOCATION_IS_FOLDED, folded[row])
            for k in range(offsets[row + 1] - 1, offsets[row] - 1, -1):
                inner = out.pos
                out.signed(LINE_COLUMN, lines.columns[k])
                out.signed(LINE_LINE, lines.lines[k])
                out.number(LINE_FUNCTION_ID, cython.cast(cython.ulonglong, lines.functions[k] + 1))
                out.close(LOCATION_LINE, inner)
            out.number(LOCATION_ADDRESS, addresses[row])
            out.number(LOCATION_MAPPING_ID, cython.cast(cython.ulonglong, mappings[row] + 1))
            out.number(LOCATION_ID, row + 1)
            out.close(PROFILE_LOCATION, end)
    return out.pos


def encode_functions(
    functions: PprofFunctions,
    extra: Extra,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    buffer: cython.uchar[::1],
) -> int:
    """Write functions."""
    out: Encoder = Encoder(buffer)
    names: cython.int[::1] = functions.names
    system_names: cython.int[::1] = functions.system_names
    filenames: cython.int[::1] = functions.filenames
    start_lines: cython.longlong[::1] = functions.start_lines
    row: cython.Py_ssize_t
    end: cython.Py_ssize_t
    with cython.nogil:
        for row in range(last - 1, first - 1, -1):
            end = out.pos
            extra.put(out, row)
            out.signed(FUNCTION_START_LINE, start_lines[row])
            out.number(FUNCTION_FILENAME, filenames[row])
            out.number(FUNCTION_SYSTEM_NAME, system_names[row])
            out.number(FUNCTION_NAME, names[row])
            out.number(FUNCTION_ID, row + 1)
            out.close(PROFILE_FUNCTION, end)
    return out.pos


def encode_mappings(
    mappings: PprofMappings,
    extra: Extra,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    buffer: cython.uchar[::1],
) -> int:
    """Write mappings."""
    out: Encoder = Encoder(buffer)
    numbers: cython.ulonglong[:, ::1] = mappings.numbers
    texts: cython.int[:, ::1] = mappings.texts
    flags: cython.uchar[:, ::1] = mappings.flags
    row: cython.Py_ssize_t
    end: cython.Py_ssize_t
    with cython.nogil:
        for row in range(last - 1, first - 1, -1):
            end = out.pos
            extra.put(out, row)
            out.number(MAPPING_HAS_INLINE_FRAMES, flags[3, row])
            out.number(MAPPING_HAS_LINE_NUMBERS, flags[2, row])
            out.number(MAPPING_HAS_FILENAMES, flags[1, row])
            out.number(MAPPING_HAS_FUNCTIONS, flags[0, row])
            out.number(MAPPING_BUILD_ID, texts[1, row])
            out.number(MAPPING_FILENAME, texts[0, row])
            out.number(MAPPING_FILE_OFFSET, numbers[2, row])
            out.number(MAPPING_MEMORY_LIMIT, numbers[1, row])
            out.number(MAPPING_MEMORY_START, numbers[0, row])
            out.number(MAPPING_ID, row + 1)
            out.close(PROFILE_MAPPING, end)
    return out.pos


def encode_strings(
    data: cython.const[cython.uchar][::1],
    begins: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    buffer: cython.uchar[::1],
) -> int:
    """Write the strings `data[begins[i]:ends[i]]`."""
    out: Encoder = Encoder(buffer)
    row: cython.Py_ssize_t
    end: cython.Py_ssize_t
    with cython.nogil:
        for row in range(len(begins) - 1, -1, -1):
            end = out.pos
            out.raw(data, begins[row], ends[row])
            out.close(PROFILE_STRING_TABLE, end)
    return out.pos


def number(column: cython.const[cython.int][::1], numbers: cython.int[::1], used: cython.int) -> cython.int:
    """Give the strings of `column` that have no number yet (-1) the next ones, after `used`; the last one given."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(column.shape[0]):
            if numbers[column[i]] < 0:
                used += 1
                numbers[column[i]] = used
    return used
