# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""The structure of a pprof profile: reading protobuf fields, and counting what the profile holds.

Every list of integers is read packed and unpacked (protobuf encoding). Nothing here raises: the first problem is noted
in the `PprofScan`.
"""

import cython

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.core.protobuf import NUMBER, VARINT, WIRE_TYPE
    from symbolize.proto.profile_tags import *

CUT_SHORT = cython.declare(cython.int, 1)
DAMAGED = cython.declare(cython.int, 2)
CONCATENATED = cython.declare(cython.int, 3)
OTHER_TYPE = cython.declare(cython.int, 4)

LAST_TABLE = cython.declare(cython.ulonglong, PROFILE_STRING_TABLE >> NUMBER)
"""The number of the last field of a profile that is a message or string; all such fields but one have lower numbers."""

PROBLEMS = {
    CUT_SHORT: "is cut short: a field runs past the end of the profile",
    DAMAGED: "is damaged: a field is no protobuf or runs past the end of its message",
    CONCATENATED: "holds two concatenated profiles (time_nanos is set twice)",
    OTHER_TYPE: "is damaged: an entry of a table or list has another wire type than that field has",
}
"""What `PprofScan.problem` says where the structure is at fault."""

SNIFFED_FIELDS = cython.declare(cython.int, 64)


@cython.cclass
class PprofScan:
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


def walk(c: Cursor) -> cython.void:
    """Check that the rest of the message consists of whole fields."""
    while c.pos < c.end and not c.bad:
        c.skip_field(c.read_tag())


def fail(scan: PprofScan, c: Cursor, problem: cython.int, at: cython.Py_ssize_t) -> cython.void:
    """Note the first problem and stop every loop over the cursor."""
    if scan.problem == 0:
        scan.problem = problem
        scan.at = at
    c.bad = True


def check(scan: PprofScan, c: Cursor) -> cython.void:
    """Turn a bad cursor into a problem, unless one is known already."""
    if c.bad:
        fail(scan, c, CUT_SHORT if c.end == scan.size else DAMAGED, c.pos)


def note_unknown(scan: PprofScan, size: cython.Py_ssize_t) -> cython.void:
    """Count the unknown fields of one row."""
    if size > 0:
        scan.unknown_rows += 1
        scan.unknown_bytes += size


def pass_over(
    scan: PprofScan,
    c: Cursor,
    tag: cython.ulonglong,
    start: cython.Py_ssize_t,
    fits: cython.bint,
    last: cython.ulonglong,
) -> cython.Py_ssize_t:
    """Move over the field that begins at `start` with `tag`; its bytes if its number is above `last`, else 0.

    A field that the schema knows and that does not fit its wire type is dropped (R275, other wire types).
    """
    c.skip_field(tag)
    if tag >> NUMBER > last:
        return c.pos - start
    scan.other_types += not fits
    return 0


def count_sample(scan: PprofScan, c: Cursor) -> cython.void:
    """Count the lists of one sample."""
    start: cython.Py_ssize_t
    unknown: cython.Py_ssize_t = 0
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        start = c.pos
        tag = c.read_tag()
        if tag == SAMPLE_LOCATION_ID_PACKED:
            scan.stack += c.count_packed()
        elif tag == SAMPLE_LOCATION_ID:
            c.varint()
            scan.stack += 1
        elif tag == SAMPLE_VALUE_PACKED:
            scan.values += c.count_packed()
        elif tag == SAMPLE_VALUE:
            c.varint()
            scan.values += 1
        elif tag == SAMPLE_LABEL:
            c.skip_field(tag)
            scan.labels += 1
        elif 0 < tag >> NUMBER <= LAST_SAMPLE:
            fail(scan, c, OTHER_TYPE, start)
        else:
            c.skip_field(tag)
            unknown += c.pos - start
    note_unknown(scan, unknown)


def count_location(scan: PprofScan, c: Cursor) -> cython.void:
    """Count the lines of one location."""
    start: cython.Py_ssize_t
    unknown: cython.Py_ssize_t = 0
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        start = c.pos
        tag = c.read_tag()
        if tag >> NUMBER == LOCATION_LINE >> NUMBER and tag != LOCATION_LINE:
            fail(scan, c, OTHER_TYPE, start)
        scan.lines += tag == LOCATION_LINE
        unknown += pass_over(scan, c, tag, start, tag == LOCATION_LINE or tag & WIRE_TYPE == VARINT, LAST_LOCATION)
    note_unknown(scan, unknown)


def count_row(scan: PprofScan, c: Cursor, last: cython.ulonglong) -> cython.void:
    """Count the unknown fields of a message whose fields, up to the number `last`, are all integers."""
    start: cython.Py_ssize_t
    unknown: cython.Py_ssize_t = 0
    tag: cython.ulonglong
    while c.pos < c.end and not c.bad:
        start = c.pos
        tag = c.read_tag()
        unknown += pass_over(scan, c, tag, start, tag & WIRE_TYPE == VARINT, last)
    note_unknown(scan, unknown)


def count(scan: PprofScan) -> None:
    """Count every table, and check the structure of all messages.

    A field of another wire type than the schema's is never written again: protobuf skips it, and pprof refuses the
    file. In a list or table it is an entry that is missing and shifts what comes after it, so that the profile is
    refused; elsewhere it is dropped with a warning. Tags have up to five bytes, as protobuf reads them (R275, other
    wire types).
    """
    c: Cursor = scan.c
    start: cython.Py_ssize_t
    outer: cython.Py_ssize_t
    tag: cython.ulonglong
    fits: cython.bint
    with cython.nogil:
        while c.pos < c.end and not c.bad:
            start = c.pos
            tag = c.read_tag()
            if tag == PROFILE_STRING_TABLE:
                c.skip_field(tag)
                scan.strings += 1
            elif tag in (PROFILE_SAMPLE, PROFILE_LOCATION, PROFILE_FUNCTION, PROFILE_MAPPING):
                outer = c.enter()
                if tag == PROFILE_SAMPLE:
                    scan.samples += 1
                    count_sample(scan, c)
                elif tag == PROFILE_LOCATION:
                    scan.locations += 1
                    count_location(scan, c)
                elif tag == PROFILE_FUNCTION:
                    scan.functions += 1
                    count_row(scan, c, LAST_FUNCTION)
                else:
                    scan.mappings += 1
                    count_row(scan, c, LAST_MAPPING)
                c.leave(outer)
            elif tag in (PROFILE_SAMPLE_TYPE, PROFILE_PERIOD_TYPE):
                outer = c.enter()
                walk(c)
                c.leave(outer)
                scan.sample_types += tag == PROFILE_SAMPLE_TYPE
            elif tag == PROFILE_COMMENT_PACKED:
                scan.comments += c.count_packed()
            elif tag == PROFILE_TIME_NANOS:
                # pprof's rule: a second profile shows by its second time.
                if scan.time != 0:
                    fail(scan, c, CONCATENATED, start)
                scan.time = c.varint()
            elif tag == PROFILE_COMMENT:
                c.varint()
                scan.comments += 1
            elif 0 < tag >> NUMBER <= LAST_TABLE or tag >> NUMBER == PROFILE_COMMENT >> NUMBER:
                fail(scan, c, OTHER_TYPE, start)
            else:
                fits = tag & WIRE_TYPE == VARINT and tag >> NUMBER != PROFILE_PERIOD_TYPE >> NUMBER
                scan.top_bytes += pass_over(scan, c, tag, start, fits, LAST_PROFILE)
        check(scan, c)


def find(scan: PprofScan, c: Cursor, tag: cython.ulonglong) -> cython.bint:
    """Narrow the cursor to the next top-level message `tag`; false, and back to the start, after the last."""
    found: cython.ulonglong
    if c.bad:
        return False
    c.pos = scan.next
    c.end = scan.size
    while c.pos < c.end:
        found = c.varint()
        if found == tag:
            c.enter()
            scan.next = c.end
            return True
        c.skip_field(found)
    scan.next = 0
    return False


def has_shape(c: Cursor, message: cython.ulonglong) -> cython.bint:
    """Whether the fields of the message under the cursor that the schema knows have its wire types; `message` is the
    tag of its kind."""
    tag: cython.ulonglong
    is_list: cython.bint
    is_known: cython.bint = c.pos == c.end  # an empty message is one of any kind
    last: cython.ulonglong = LAST_LOCATION  # and of a function
    if message == PROFILE_SAMPLE_TYPE:
        last = LAST_VALUE_TYPE
    elif message == PROFILE_SAMPLE:
        last = LAST_SAMPLE
    elif message == PROFILE_MAPPING:
        last = LAST_MAPPING
    while c.pos < c.end and not c.bad:
        tag = c.varint()
        if message == PROFILE_SAMPLE:
            is_list = tag in (SAMPLE_LOCATION_ID_PACKED, SAMPLE_VALUE_PACKED, SAMPLE_LABEL)
        else:
            is_list = message == PROFILE_LOCATION and tag == LOCATION_LINE
        if tag >> NUMBER == 0 or (tag & WIRE_TYPE != VARINT and tag >> NUMBER <= last and not is_list):
            return False
        is_known |= tag >> NUMBER <= last
        c.skip_field(tag)
    return is_known and not c.bad


def begins_profile(data: object) -> cython.bint:
    """Whether the first fields of `data` are those of a profile; what is cut short needs one message to show for it."""
    c: Cursor = Cursor(data)
    outer: cython.Py_ssize_t
    tag: cython.ulonglong
    number: cython.ulonglong
    is_scalar: cython.bint
    fields: cython.int = 0
    messages: cython.int = 0
    while c.pos < c.end and fields < SNIFFED_FIELDS:
        tag = c.varint()
        number = tag >> NUMBER
        is_scalar = tag & WIRE_TYPE == VARINT and LAST_TABLE < number <= LAST_PROFILE
        if tag in (
            PROFILE_SAMPLE_TYPE,
            PROFILE_SAMPLE,
            PROFILE_MAPPING,
            PROFILE_LOCATION,
            PROFILE_FUNCTION,
            PROFILE_PERIOD_TYPE,
        ):
            outer = c.enter()
            if c.bad:
                return messages > 0
            messages += c.pos < c.end
            if not has_shape(c, PROFILE_SAMPLE_TYPE if tag == PROFILE_PERIOD_TYPE else tag):
                return False
            c.leave(outer)
        elif tag == PROFILE_STRING_TABLE:
            outer = c.enter()
            if fields == 0 and c.pos < c.end:
                return False
            c.leave(outer)
        elif (
            tag == PROFILE_COMMENT_PACKED
            or (is_scalar and number != PROFILE_PERIOD_TYPE >> NUMBER)
            or (number > LAST_PROFILE and messages > 0)
        ):
            c.skip_field(tag)
        else:
            return c.bad and messages > 0
        if c.bad:
            return messages > 0
        fields += 1
    return fields > 0
