# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""The structure of a pprof profile: reading protobuf fields, and counting what the profile holds.

The constants are field tags as they stand on the wire: field number << 3 | wire type. Every list of integers is
read packed and unpacked (protobuf encoding). Nothing here raises: the first problem is noted in the `Scan`.
"""

import cython

if not cython.compiled:
    from symbolize.core.cursor import Cursor

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

CUT_SHORT = cython.declare(cython.int, 1)
DAMAGED = cython.declare(cython.int, 2)
CONCATENATED = cython.declare(cython.int, 3)
OTHER_TYPE = cython.declare(cython.int, 4)

TAG_SIZE = cython.declare(cython.Py_ssize_t, 5)
"""Bytes of the longest tag that protobuf reads."""

SAMPLE_TYPE = cython.declare(cython.ulonglong, 0x0A)
SAMPLE = cython.declare(cython.ulonglong, 0x12)
MAPPING = cython.declare(cython.ulonglong, 0x1A)
LOCATION = cython.declare(cython.ulonglong, 0x22)
FUNCTION = cython.declare(cython.ulonglong, 0x2A)
STRING = cython.declare(cython.ulonglong, 0x32)
TIME_NANOS = cython.declare(cython.ulonglong, 0x48)
PERIOD_TYPE = cython.declare(cython.ulonglong, 0x5A)
COMMENT = cython.declare(cython.ulonglong, 0x68)
COMMENTS = cython.declare(cython.ulonglong, 0x6A)
LINE = cython.declare(cython.ulonglong, 0x22)
"""Tags of fields of Profile, and of Location's lines; COMMENTS are packed."""

LAST_PROFILE = cython.declare(cython.ulonglong, 15)
LAST_SAMPLE = cython.declare(cython.ulonglong, 3)
LAST_MAPPING = cython.declare(cython.ulonglong, 10)
LAST_LOCATION = cython.declare(cython.ulonglong, 5)
LAST_FUNCTION = cython.declare(cython.ulonglong, 5)
"""The highest numbers of fields that the schema knows."""

PROBLEMS = {
    1: "is cut short: a field runs past the end of the profile",
    2: "is damaged: a field is no protobuf or runs past the end of its message",
    3: "holds two concatenated profiles (time_nanos is set twice)",
    4: "is damaged: an entry of a table or list has another wire type than that field has",
}
"""What `Scan.problem` says where the structure is at fault."""

SNIFFED_FIELDS = cython.declare(cython.int, 64)


@cython.cclass
class Scan:
    """A profile under the scanner: how many rows it holds, and what was first found wrong with it."""

    def __init__(self, data: object) -> None:
        self.c = Cursor(data)
        self.size = self.c.end
        self.next = 0
        self.time = 0
        self.problem = self.at = 0
        self.samples = self.stack = self.values = self.labels = 0
        self.locations = self.lines = self.functions = self.strings = 0
        self.sample_types = self.mappings = self.comments = self.top_bytes = 0
        self.unknown_rows = self.unknown_bytes = 0
        self.lines_dropped = self.mappings_dropped = self.fields_dropped = self.other_types = 0


def varint(c: Cursor) -> cython.ulonglong:
    """The next varint; one of more than ten bytes is bad (protobuf encoding)."""
    value: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    pos: cython.Py_ssize_t = c.pos
    while pos < c.end and shift < 70:
        byte = c.data[pos]
        pos += 1
        value |= ((byte & 0x7F) << shift) & MASK64
        if byte < 0x80:
            c.pos = pos
            return value
        shift += 7
    c.bad = True
    return 0


def tag_of(c: Cursor) -> cython.ulonglong:
    """The next tag; one of more bytes than protobuf reads is bad."""
    start: cython.Py_ssize_t = c.pos
    tag: cython.ulonglong = varint(c)
    if c.pos - start > TAG_SIZE:
        c.bad = True
    return tag


def as_signed(value: cython.ulonglong) -> cython.longlong:
    """The same 64 bits as a signed number."""
    if cython.compiled:
        return cython.cast(cython.longlong, value)
    return value - (1 << 64) if value >> 63 else value


def skip(c: Cursor, tag: cython.ulonglong) -> cython.void:
    """Move over the field whose tag was read; groups are bad, as they are for pprof."""
    wire: cython.int = tag & 7
    if tag < 8 or tag >> 32 != 0:
        c.bad = True
    elif wire == 0:
        varint(c)
    elif wire == 1:
        c.skip(8)
    elif wire == 2:
        c.skip(varint(c))
    elif wire == 5:
        c.skip(4)
    else:
        c.bad = True


def enter(c: Cursor) -> cython.Py_ssize_t:
    """Narrow the cursor to the length-delimited payload that starts here; the end to give to `leave`."""
    outer: cython.Py_ssize_t = c.end
    size: cython.ulonglong = varint(c)
    if c.need(size):
        c.end = c.pos + cython.cast(cython.Py_ssize_t, size)
    return outer


def leave(c: Cursor, outer: cython.Py_ssize_t) -> cython.void:
    """Widen the cursor again; a bad one stays narrow, which tells damage inside a message from a cut end."""
    if not c.bad:
        c.pos = c.end
        c.end = outer


def walk(c: Cursor) -> cython.void:
    """Check that the rest of the message consists of whole fields."""
    while c.pos < c.end and not c.bad:
        skip(c, tag_of(c))


def count_packed(c: Cursor) -> cython.Py_ssize_t:
    """Move over a packed list of varints; how many they are."""
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    outer: cython.Py_ssize_t = enter(c)
    if not c.bad:
        for i in range(c.pos, c.end):
            count += c.data[i] < 0x80
        if c.pos < c.end and c.data[c.end - 1] >= 0x80:
            c.pos = c.end - 1
            c.bad = True
    leave(c, outer)
    return count


def fail(scan: Scan, c: Cursor, problem: cython.int, at: cython.Py_ssize_t) -> cython.void:
    """Note the first problem and stop every loop over the cursor."""
    if scan.problem == 0:
        scan.problem = problem
        scan.at = at
    c.bad = True


def check(scan: Scan, c: Cursor) -> cython.void:
    """Turn a bad cursor into a problem, unless one is known already."""
    if c.bad:
        fail(scan, c, CUT_SHORT if c.end == scan.size else DAMAGED, c.pos)


def note_unknown(scan: Scan, size: cython.Py_ssize_t) -> cython.void:
    """Count the unknown fields of one row."""
    if size > 0:
        scan.unknown_rows += 1
        scan.unknown_bytes += size


def pass_over(
    scan: Scan, c: Cursor, tag: cython.ulonglong, start: cython.Py_ssize_t, fits: cython.bint, last: cython.ulonglong
) -> cython.Py_ssize_t:
    """Move over the field that begins at `start` with `tag`; its bytes if its number is above `last`, else 0.

    A field that the schema knows and that does not fit its wire type is dropped (rule R275, other wire types).
    """
    skip(c, tag)
    if tag >> 3 > last:
        return c.pos - start
    scan.other_types += not fits
    return 0


def count_sample(scan: Scan, c: Cursor) -> cython.void:
    """Count the lists of one sample."""
    start: cython.Py_ssize_t
    unknown: cython.Py_ssize_t = 0
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        start = c.pos
        tag = tag_of(c)
        if tag == 0x0A:
            scan.stack += count_packed(c)
        elif tag == 0x08:
            varint(c)
            scan.stack += 1
        elif tag == 0x12:
            scan.values += count_packed(c)
        elif tag == 0x10:
            varint(c)
            scan.values += 1
        elif tag == 0x1A:
            skip(c, tag)
            scan.labels += 1
        elif tag >= 8 and tag >> 3 <= LAST_SAMPLE:
            fail(scan, c, OTHER_TYPE, start)
        else:
            skip(c, tag)
            unknown += c.pos - start
    note_unknown(scan, unknown)


def count_location(scan: Scan, c: Cursor) -> cython.void:
    """Count the lines of one location."""
    start: cython.Py_ssize_t
    unknown: cython.Py_ssize_t = 0
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        start = c.pos
        tag = tag_of(c)
        if tag >> 3 == LINE >> 3 and tag != LINE:
            fail(scan, c, OTHER_TYPE, start)
        scan.lines += tag == LINE
        unknown += pass_over(scan, c, tag, start, tag == LINE or tag & 7 == 0, LAST_LOCATION)
    note_unknown(scan, unknown)


def count_row(scan: Scan, c: Cursor, last: cython.ulonglong) -> cython.void:
    """Count the unknown fields of a message whose fields, up to the number `last`, are all integers."""
    start: cython.Py_ssize_t
    unknown: cython.Py_ssize_t = 0
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        start = c.pos
        tag = tag_of(c)
        unknown += pass_over(scan, c, tag, start, tag & 7 == 0, last)
    note_unknown(scan, unknown)


def count(scan: Scan) -> None:
    """Count every table, and check the structure of all messages."""
    c: Cursor = scan.c
    start: cython.Py_ssize_t
    outer: cython.Py_ssize_t
    tag: cython.ulonglong
    with cython.nogil:
        while c.pos < c.end and not c.bad:
            start = c.pos
            tag = tag_of(c)
            if tag == STRING:
                skip(c, tag)
                scan.strings += 1
            elif tag in (SAMPLE, LOCATION, FUNCTION, MAPPING):
                outer = enter(c)
                if tag == SAMPLE:
                    scan.samples += 1
                    count_sample(scan, c)
                elif tag == LOCATION:
                    scan.locations += 1
                    count_location(scan, c)
                elif tag == FUNCTION:
                    scan.functions += 1
                    count_row(scan, c, LAST_FUNCTION)
                else:
                    scan.mappings += 1
                    count_row(scan, c, LAST_MAPPING)
                leave(c, outer)
            elif tag in (SAMPLE_TYPE, PERIOD_TYPE):
                outer = enter(c)
                walk(c)
                leave(c, outer)
                scan.sample_types += tag == SAMPLE_TYPE
            elif tag == COMMENTS:
                scan.comments += count_packed(c)
            elif tag == TIME_NANOS:
                # pprof's rule: a second profile shows by its second time.
                if scan.time != 0:
                    fail(scan, c, CONCATENATED, start)
                scan.time = varint(c)
            elif tag >= 8 and (tag >> 3 <= STRING >> 3 or (tag >> 3 == COMMENT >> 3 and tag != COMMENT)):
                fail(scan, c, OTHER_TYPE, start)
            else:
                scan.comments += tag == COMMENT
                scan.top_bytes += pass_over(scan, c, tag, start, tag & 7 == 0 and tag != PERIOD_TYPE - 2, LAST_PROFILE)
        check(scan, c)


def find(scan: Scan, c: Cursor, tag: cython.ulonglong) -> cython.bint:
    """Narrow the cursor to the next top-level message `tag`; false, and back to the start, after the last."""
    found: cython.ulonglong
    if c.bad:
        return False
    c.pos = scan.next
    c.end = scan.size
    while c.pos < c.end:
        found = varint(c)
        if found == tag:
            enter(c)
            scan.next = c.end
            return True
        skip(c, found)
    scan.next = 0
    return False


def has_shape(c: Cursor, message: cython.ulonglong) -> cython.bint:
    """Whether the fields of the message under the cursor that the schema knows have its wire types."""
    tag: cython.ulonglong
    lists: cython.bint
    at_home: cython.bint = c.pos == c.end  # an empty message is one of any kind
    known: cython.ulonglong = 5  # the last field of a location and of a function
    if message == 0x0A:
        known = 2
    elif message == 0x12:
        known = 3
    elif message == 0x1A:
        known = 10
    while c.pos < c.end and not c.bad:
        tag = varint(c)
        lists = (message == 0x12 and (tag == 0x0A or tag == 0x12 or tag == 0x1A)) or (message == 0x22 and tag == 0x22)
        if tag < 8 or (tag & 7 != 0 and tag >> 3 <= known and not lists):
            return False
        at_home |= tag >> 3 <= known
        skip(c, tag)
    return at_home and not c.bad


def begins_profile(data: object) -> cython.bint:
    """Whether the first fields of `data` are those of a profile; what is cut short needs one message to show for it."""
    c: Cursor = Cursor(data)
    outer: cython.Py_ssize_t
    tag: cython.ulonglong
    fields: cython.int = 0
    messages: cython.int = 0
    while c.pos < c.end and fields < SNIFFED_FIELDS:
        tag = varint(c)
        if tag in (0x0A, 0x12, 0x1A, 0x22, 0x2A, 0x5A):
            outer = enter(c)
            if c.bad:
                return messages > 0
            messages += c.pos < c.end
            if not has_shape(c, 0x0A if tag == 0x5A else tag):
                return False
            leave(c, outer)
        elif tag == 0x32:
            outer = enter(c)
            if fields == 0 and c.pos < c.end:
                return False
            leave(c, outer)
        elif tag == 0x6A or (tag & 7 == 0 and 0x38 <= tag <= 0x78 and tag != 0x58) or (tag >= 0x80 and messages > 0):
            skip(c, tag)
        else:
            return c.bad and messages > 0
        if c.bad:
            return messages > 0
        fields += 1
    return fields > 0
