# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""Tables as protobuf bytes: `measure` notes the size of each message in a block of rows, `emit` fills the block.

The constants are field tags as they stand on the wire: field number << 3 | wire type. Ids are row numbers from 1.
Fields that are zero are left out (proto3), integer lists are packed.
"""

import cython

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cclass
class Sink:
    """Where the next byte goes."""

    def __init__(self, out: cython.uchar[::1]) -> None:
        self.out = out
        self.pos = 0


@cython.cclass
class Extra:
    """Raw fields to append to messages: those of row `i` are `raw[offsets[i]:offsets[i + 1]]`. No offsets: none."""

    def __init__(self, offsets: cython.const[cython.longlong][::1], raw: cython.const[cython.uchar][::1]) -> None:
        self.offsets = offsets
        self.raw = raw


def as_unsigned(value: cython.longlong) -> cython.ulonglong:
    """The same 64 bits as an unsigned number."""
    return cython.cast(cython.ulonglong, value) & MASK64


def size_of(value: cython.ulonglong) -> cython.Py_ssize_t:
    """Bytes in a varint."""
    size: cython.Py_ssize_t = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


def field_size(value: cython.ulonglong) -> cython.Py_ssize_t:
    """Bytes in a varint field, which is left out when zero."""
    return 1 + size_of(value) if value != 0 else 0


def message_size(size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Bytes in a length-delimited field of `size` bytes."""
    return 1 + size_of(size) + size


def put(sink: Sink, value: cython.ulonglong) -> cython.void:
    """Write a varint."""
    pos: cython.Py_ssize_t = sink.pos
    while value >= 0x80:
        sink.out[pos] = value & 0x7F | 0x80
        value >>= 7
        pos += 1
    sink.out[pos] = cython.cast(cython.uchar, value)
    sink.pos = pos + 1


def put_field(sink: Sink, tag: cython.int, value: cython.ulonglong) -> cython.void:
    """Write a varint field, unless it is zero."""
    if value != 0:
        put(sink, tag)
        put(sink, value)


def extra_size(extra: Extra, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Bytes of the raw fields of `row`."""
    return extra.offsets[row + 1] - extra.offsets[row] if extra.offsets.shape[0] > 0 else 0


def put_extra(sink: Sink, extra: Extra, row: cython.Py_ssize_t) -> cython.void:
    """Write the raw fields of `row`."""
    i: cython.Py_ssize_t
    if extra.offsets.shape[0] > 0:
        for i in range(extra.offsets[row], extra.offsets[row + 1]):
            sink.out[sink.pos] = extra.raw[i]
            sink.pos += 1


@cython.cclass
class Samples:
    """The sample table."""

    def __init__(
        self,
        offsets: cython.const[cython.longlong][::1],
        stack: cython.const[cython.int][::1],
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
        self.values = values
        self.width = width
        self.label_offsets = label_offsets
        self.keys = keys
        self.texts = texts
        self.numbers = numbers
        self.units = units
        self.extra = extra

    def stack_size(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Bytes of the packed location ids of `row`."""
        i: cython.Py_ssize_t
        size: cython.Py_ssize_t = 0
        for i in range(self.offsets[row], self.offsets[row + 1]):
            size += size_of(cython.cast(cython.ulonglong, self.stack[i] + 1))
        return size

    def values_size(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Bytes of the packed values of `row`."""
        i: cython.Py_ssize_t
        size: cython.Py_ssize_t = 0
        for i in range(row * self.width, (row + 1) * self.width):
            size += size_of(as_unsigned(self.values[i]))
        return size

    def label_size(self, label: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Bytes of one label."""
        return (
            field_size(self.keys[label])
            + field_size(self.texts[label])
            + field_size(as_unsigned(self.numbers[label]))
            + field_size(self.units[label])
        )

    def measure(self, first: cython.Py_ssize_t, sizes: cython.longlong[:, ::1]) -> cython.Py_ssize_t:
        """Note message, stack and value sizes of the rows from `first` on; the bytes they take together."""
        row: cython.Py_ssize_t
        label: cython.Py_ssize_t
        i: cython.Py_ssize_t
        size: cython.Py_ssize_t
        total: cython.Py_ssize_t = 0
        with cython.nogil:
            for i in range(sizes.shape[0]):
                row = first + i
                sizes[i, 1] = self.stack_size(row)
                sizes[i, 2] = self.values_size(row)
                size = extra_size(self.extra, row)
                if sizes[i, 1] > 0:
                    size += message_size(sizes[i, 1])
                if sizes[i, 2] > 0:
                    size += message_size(sizes[i, 2])
                for label in range(self.label_offsets[row], self.label_offsets[row + 1]):
                    size += message_size(self.label_size(label))
                sizes[i, 0] = size
                total += message_size(size)
        return total

    def emit(
        self, first: cython.Py_ssize_t, sizes: cython.const[cython.longlong][:, ::1], out: cython.uchar[::1]
    ) -> None:
        """Write the rows that `measure` sized."""
        sink: Sink = Sink(out)
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        with cython.nogil:
            for i in range(sizes.shape[0]):
                row = first + i
                put(sink, 0x12)
                put(sink, sizes[i, 0])
                if sizes[i, 1] > 0:
                    put(sink, 0x0A)
                    put(sink, sizes[i, 1])
                    for k in range(self.offsets[row], self.offsets[row + 1]):
                        put(sink, cython.cast(cython.ulonglong, self.stack[k] + 1))
                if sizes[i, 2] > 0:
                    put(sink, 0x12)
                    put(sink, sizes[i, 2])
                    for k in range(row * self.width, (row + 1) * self.width):
                        put(sink, as_unsigned(self.values[k]))
                for k in range(self.label_offsets[row], self.label_offsets[row + 1]):
                    put(sink, 0x1A)
                    put(sink, self.label_size(k))
                    put_field(sink, 0x08, self.keys[k])
                    put_field(sink, 0x10, self.texts[k])
                    put_field(sink, 0x18, as_unsigned(self.numbers[k]))
                    put_field(sink, 0x20, self.units[k])
                put_extra(sink, self.extra, row)


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

    def line_size(self, line: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Bytes of one line."""
        return (
            field_size(cython.cast(cython.ulonglong, self.functions[line] + 1))
            + field_size(as_unsigned(self.lines[line]))
            + field_size(as_unsigned(self.columns[line]))
        )

    def measure(self, first: cython.Py_ssize_t, sizes: cython.longlong[:, ::1]) -> cython.Py_ssize_t:
        """Note the message sizes of the rows from `first` on; the bytes they take together."""
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        size: cython.Py_ssize_t
        total: cython.Py_ssize_t = 0
        with cython.nogil:
            for i in range(sizes.shape[0]):
                row = first + i
                size = field_size(row + 1) + field_size(cython.cast(cython.ulonglong, self.mappings[row] + 1))
                size += field_size(self.addresses[row]) + field_size(self.folded[row]) + extra_size(self.extra, row)
                for k in range(self.offsets[row], self.offsets[row + 1]):
                    size += message_size(self.line_size(k))
                sizes[i, 0] = size
                total += message_size(size)
        return total

    def emit(
        self, first: cython.Py_ssize_t, sizes: cython.const[cython.longlong][:, ::1], out: cython.uchar[::1]
    ) -> None:
        """Write the rows that `measure` sized."""
        sink: Sink = Sink(out)
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        with cython.nogil:
            for i in range(sizes.shape[0]):
                row = first + i
                put(sink, 0x22)
                put(sink, sizes[i, 0])
                put_field(sink, 0x08, row + 1)
                put_field(sink, 0x10, cython.cast(cython.ulonglong, self.mappings[row] + 1))
                put_field(sink, 0x18, self.addresses[row])
                for k in range(self.offsets[row], self.offsets[row + 1]):
                    put(sink, 0x22)
                    put(sink, self.line_size(k))
                    put_field(sink, 0x08, cython.cast(cython.ulonglong, self.functions[k] + 1))
                    put_field(sink, 0x10, as_unsigned(self.lines[k]))
                    put_field(sink, 0x18, as_unsigned(self.columns[k]))
                put_field(sink, 0x28, self.folded[row])
                put_extra(sink, self.extra, row)


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

    def measure(self, first: cython.Py_ssize_t, sizes: cython.longlong[:, ::1]) -> cython.Py_ssize_t:
        """Note the message sizes of the rows from `first` on; the bytes they take together."""
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        size: cython.Py_ssize_t
        total: cython.Py_ssize_t = 0
        with cython.nogil:
            for i in range(sizes.shape[0]):
                row = first + i
                size = field_size(row + 1) + field_size(self.names[row]) + field_size(self.system_names[row])
                size += field_size(self.filenames[row]) + field_size(as_unsigned(self.start_lines[row]))
                size += extra_size(self.extra, row)
                sizes[i, 0] = size
                total += message_size(size)
        return total

    def emit(
        self, first: cython.Py_ssize_t, sizes: cython.const[cython.longlong][:, ::1], out: cython.uchar[::1]
    ) -> None:
        """Write the rows that `measure` sized."""
        sink: Sink = Sink(out)
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(sizes.shape[0]):
                row = first + i
                put(sink, 0x2A)
                put(sink, sizes[i, 0])
                put_field(sink, 0x08, row + 1)
                put_field(sink, 0x10, self.names[row])
                put_field(sink, 0x18, self.system_names[row])
                put_field(sink, 0x20, self.filenames[row])
                put_field(sink, 0x28, as_unsigned(self.start_lines[row]))
                put_extra(sink, self.extra, row)


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

    def measure(self, first: cython.Py_ssize_t, sizes: cython.longlong[:, ::1]) -> cython.Py_ssize_t:
        """Note the message sizes of the rows from `first` on; the bytes they take together."""
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        size: cython.Py_ssize_t
        total: cython.Py_ssize_t = 0
        with cython.nogil:
            for i in range(sizes.shape[0]):
                row = first + i
                size = field_size(row + 1) + extra_size(self.extra, row)
                for k in range(self.numbers.shape[0]):
                    size += field_size(self.numbers[k, row])
                for k in range(self.texts.shape[0]):
                    size += field_size(self.texts[k, row])
                for k in range(self.flags.shape[0]):
                    size += field_size(self.flags[k, row])
                sizes[i, 0] = size
                total += message_size(size)
        return total

    def emit(
        self, first: cython.Py_ssize_t, sizes: cython.const[cython.longlong][:, ::1], out: cython.uchar[::1]
    ) -> None:
        """Write the rows that `measure` sized."""
        sink: Sink = Sink(out)
        row: cython.Py_ssize_t
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        with cython.nogil:
            for i in range(sizes.shape[0]):
                row = first + i
                put(sink, 0x1A)
                put(sink, sizes[i, 0])
                put_field(sink, 0x08, row + 1)
                for k in range(self.numbers.shape[0]):
                    put_field(sink, cython.cast(cython.int, 0x10 + 8 * k), self.numbers[k, row])
                for k in range(self.texts.shape[0]):
                    put_field(sink, cython.cast(cython.int, 0x28 + 8 * k), self.texts[k, row])
                for k in range(self.flags.shape[0]):
                    put_field(sink, cython.cast(cython.int, 0x38 + 8 * k), self.flags[k, row])
                put_extra(sink, self.extra, row)


def number(column: cython.const[cython.int][::1], numbers: cython.int[::1], used: cython.int) -> cython.int:
    """Give the strings of `column` that have no number yet (-1) the next ones, after `used`; the last one given."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(column.shape[0]):
            if numbers[column[i]] < 0:
                used += 1
                numbers[column[i]] = used
    return used
