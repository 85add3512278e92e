# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type, no-any-return"
"""Tables as protobuf bytes: `limit` bounds the size of a block of rows, `encode` writes it to the end of a buffer.

Ids are row numbers from 1. Fields that are zero are left out (proto3), integer lists are packed. All is written from
the end to the begin, so rows and fields come in descending order.
"""

import cython

if not cython.compiled:
    from symbolize.core.encoder import Encoder
    from symbolize.core.protobuf import MAX_VARINT
    from symbolize.proto.profile_tags import *

FIELD = cython.declare(cython.Py_ssize_t, 1 + MAX_VARINT)
"""Bytes of a field with an integer, or of the tag and length of another one, at most; tags are of one byte here."""


@cython.cclass
class Extra:
    """Raw fields to append to messages: those of row `i` are `raw[offsets[i]:offsets[i + 1]]`. No offsets: none."""

    def __init__(self, offsets: cython.const[cython.longlong][::1], raw: cython.const[cython.uchar][::1]) -> None:
        self.offsets = offsets
        self.raw = raw

    def size(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Bytes of the rows from `first` up to `last`."""
        return self.offsets[last] - self.offsets[first] if len(self.offsets) > 0 else 0

    def put(self, out: Encoder, row: cython.Py_ssize_t) -> cython.void:
        """Write the fields of `row`."""
        if len(self.offsets) > 0:
            out.raw(self.raw, self.offsets[row], self.offsets[row + 1])


@cython.cclass
class Samples:
    """The sample table; no location id takes more than `id_size` bytes."""

    def __init__(
        self,
        offsets: cython.const[cython.longlong][::1],
        stack: cython.const[cython.int][::1],
        id_size: cython.Py_ssize_t,
        values: cython.const[cython.longlong][::1],
        width: cython.Py_ssize_t,
        label_offsets: cython.const[cython.longlong][::1],
        keys: cython.const[cython.int][::1],
        texts: cython.const[cython.int][::1],
        numbers: cython.const[cython.longlong][::1],
        units: cython.const[cython.int][::1],
        extra: Extra,
    ) -> None:
        self.offsets = offsets
        self.stack = stack
        self.id_size = id_size
        self.values = values
        self.width = width
        self.label_offsets = label_offsets
        self.keys = keys
        self.texts = texts
        self.numbers = numbers
        self.units = units
        self.extra = extra

    def limit(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> int:
        """Bytes that the rows from `first` up to `last` take at most."""
        size: cython.Py_ssize_t = (last - first) * (3 * FIELD + self.width * MAX_VARINT)
        size += (self.offsets[last] - self.offsets[first]) * self.id_size
        size += (self.label_offsets[last] - self.label_offsets[first]) * 5 * FIELD
        return size + self.extra.size(first, last)

    def encode(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t, buffer: cython.uchar[::1]) -> int:
        """Write the rows from `first` up to `last` to the end of `buffer`; where they begin."""
        out: Encoder = Encoder(buffer)
        row: cython.Py_ssize_t
        end: cython.Py_ssize_t
        inner: cython.Py_ssize_t
        k: cython.Py_ssize_t
        with cython.nogil:
            for row in range(last - 1, first - 1, -1):
                end = out.pos
                self.extra.put(out, row)
                for k in range(self.label_offsets[row + 1] - 1, self.label_offsets[row] - 1, -1):
                    inner = out.pos
                    out.number(LABEL_NUM_UNIT, self.units[k])
                    out.signed(LABEL_NUM, self.numbers[k])
                    out.number(LABEL_STR, self.texts[k])
                    out.number(LABEL_KEY, self.keys[k])
                    out.close(SAMPLE_LABEL, inner)
                inner = out.pos
                for k in range((row + 1) * self.width - 1, row * self.width - 1, -1):
                    out.int64(self.values[k])
                if out.pos < inner:
                    out.close(SAMPLE_VALUE_PACKED, inner)
                inner = out.pos
                for k in range(self.offsets[row + 1] - 1, self.offsets[row] - 1, -1):
                    out.varint(cython.cast(cython.ulonglong, self.stack[k] + 1))
                if out.pos < inner:
                    out.close(SAMPLE_LOCATION_ID_PACKED, inner)
                out.close(PROFILE_SAMPLE, end)
        return out.pos


@cython.cclass
class Locations:
    """The location table with its lines."""

    def __init__(
        self,
        addresses: cython.const[cython.ulonglong][::1],
        mappings: cython.const[cython.int][::1],
        folded: cython.const[cython.uchar][::1],
        offsets: cython.const[cython.longlong][::1],
        functions: cython.const[cython.int][::1],
        lines: cython.const[cython.longlong][::1],
        columns: cython.const[cython.longlong][::1],
        extra: Extra,
    ) -> None:
        self.addresses = addresses
        self.mappings = mappings
        self.folded = folded
        self.offsets = offsets
        self.functions = functions
        self.lines = lines
        self.columns = columns
        self.extra = extra

    def limit(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> int:
        """Bytes that the rows from `first` up to `last` take at most."""
        lines: cython.Py_ssize_t = self.offsets[last] - self.offsets[first]
        return ((last - first) * 5 + lines * 4) * FIELD + self.extra.size(first, last)

    def encode(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t, buffer: cython.uchar[::1]) -> int:
        """Write the rows from `first` up to `last` to the end of `buffer`; where they begin."""
        out: Encoder = Encoder(buffer)
        row: cython.Py_ssize_t
        end: cython.Py_ssize_t
        inner: cython.Py_ssize_t
        k: cython.Py_ssize_t
        with cython.nogil:
            for row in range(last - 1, first - 1, -1):
                end = out.pos
                self.extra.put(out, row)
                out.number(LOCATION_IS_FOLDED, self.folded[row])
                for k in range(self.offsets[row + 1] - 1, self.offsets[row] - 1, -1):
                    inner = out.pos
                    out.signed(LINE_COLUMN, self.columns[k])
                    out.signed(LINE_LINE, self.lines[k])
                    out.number(LINE_FUNCTION_ID, cython.cast(cython.ulonglong, self.functions[k] + 1))
                    out.close(LOCATION_LINE, inner)
                out.number(LOCATION_ADDRESS, self.addresses[row])
                out.number(LOCATION_MAPPING_ID, cython.cast(cython.ulonglong, self.mappings[row] + 1))
                out.number(LOCATION_ID, row + 1)
                out.close(PROFILE_LOCATION, end)
        return out.pos


@cython.cclass
class Functions:
    """The function table."""

    def __init__(
        self,
        names: cython.const[cython.int][::1],
        system_names: cython.const[cython.int][::1],
        filenames: cython.const[cython.int][::1],
        start_lines: cython.const[cython.longlong][::1],
        extra: Extra,
    ) -> None:
        self.names = names
        self.system_names = system_names
        self.filenames = filenames
        self.start_lines = start_lines
        self.extra = extra

    def limit(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> int:
        """Bytes that the rows from `first` up to `last` take at most."""
        return (last - first) * 6 * FIELD + self.extra.size(first, last)

    def encode(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t, buffer: cython.uchar[::1]) -> int:
        """Write the rows from `first` up to `last` to the end of `buffer`; where they begin."""
        out: Encoder = Encoder(buffer)
        row: cython.Py_ssize_t
        end: cython.Py_ssize_t
        with cython.nogil:
            for row in range(last - 1, first - 1, -1):
                end = out.pos
                self.extra.put(out, row)
                out.signed(FUNCTION_START_LINE, self.start_lines[row])
                out.number(FUNCTION_FILENAME, self.filenames[row])
                out.number(FUNCTION_SYSTEM_NAME, self.system_names[row])
                out.number(FUNCTION_NAME, self.names[row])
                out.number(FUNCTION_ID, row + 1)
                out.close(PROFILE_FUNCTION, end)
        return out.pos


@cython.cclass
class Mappings:
    """The mapping table: `numbers` are start, limit and file offset, `texts` file name and build id, a row each."""

    def __init__(
        self,
        numbers: cython.const[cython.ulonglong][:, ::1],
        texts: cython.const[cython.int][:, ::1],
        flags: cython.const[cython.uchar][:, ::1],
        extra: Extra,
    ) -> None:
        self.numbers = numbers
        self.texts = texts
        self.flags = flags
        self.extra = extra

    def limit(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> int:
        """Bytes that the rows from `first` up to `last` take at most."""
        return (last - first) * 11 * FIELD + self.extra.size(first, last)

    def encode(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t, buffer: cython.uchar[::1]) -> int:
        """Write the rows from `first` up to `last` to the end of `buffer`; where they begin."""
        out: Encoder = Encoder(buffer)
        row: cython.Py_ssize_t
        end: cython.Py_ssize_t
        with cython.nogil:
            for row in range(last - 1, first - 1, -1):
                end = out.pos
                self.extra.put(out, row)
                out.number(MAPPING_HAS_INLINE_FRAMES, self.flags[3, row])
                out.number(MAPPING_HAS_LINE_NUMBERS, self.flags[2, row])
                out.number(MAPPING_HAS_FILENAMES, self.flags[1, row])
                out.number(MAPPING_HAS_FUNCTIONS, self.flags[0, row])
                out.number(MAPPING_BUILD_ID, self.texts[1, row])
                out.number(MAPPING_FILENAME, self.texts[0, row])
                out.number(MAPPING_FILE_OFFSET, self.numbers[2, row])
                out.number(MAPPING_MEMORY_LIMIT, self.numbers[1, row])
                out.number(MAPPING_MEMORY_START, self.numbers[0, row])
                out.number(MAPPING_ID, row + 1)
                out.close(PROFILE_MAPPING, end)
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
