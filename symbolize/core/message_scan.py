# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""Fields of many protobuf messages of one kind, gathered into columns.

Lists of integers are read packed and unpacked, as protobuf demands.
"""

import cython

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.core.protobuf import BYTES, FIXED64, LAST_BYTE, NUMBER, VARINT, WIRE_TYPE

NUMBER_FORM = cython.declare(cython.int, 1)
LIST_FORM = cython.declare(cython.int, 2)
SPAN_FORM = cython.declare(cython.int, 3)

UNKNOWN_FIELDS = cython.declare(cython.int, 0)
OTHER_TYPES = cython.declare(cython.int, 1)
DAMAGED_AT = cython.declare(cython.int, 2)

FORMS = {"number": NUMBER_FORM, "list": LIST_FORM, "span": SPAN_FORM}


@cython.cclass
class MessageFields:
    """What the fields of a kind of message are, in arrays by field number: `forms` (one of the constants above, 0 for
    unknown fields), `wires` (the wire type) and `slots` (the column)."""

    def __init__(
        self,
        forms: cython.const[cython.uchar][::1],
        wires: cython.const[cython.uchar][::1],
        slots: cython.const[cython.uchar][::1],
    ) -> None:
        self.forms = forms
        self.wires = wires
        self.slots = slots

    def form(self, tag: cython.ulonglong) -> cython.int:
        """What the field with `tag` is; 0 for an unknown one, -1 for one of another wire type than the field has."""
        number: cython.ulonglong = tag >> NUMBER
        wire: cython.int = tag & WIRE_TYPE
        form: cython.int
        if number >= cython.cast(cython.ulonglong, self.forms.shape[0]):
            return 0
        form = self.forms[cython.cast(cython.Py_ssize_t, number)]
        if form != 0 and wire != self.wires[cython.cast(cython.Py_ssize_t, number)]:
            return LIST_FORM if form == LIST_FORM and wire == BYTES else -1
        return form


@cython.cclass
class MessageColumns:
    """The fields of n messages: a row of `numbers` (uint64[k, n]) for each field that is a number, one of `offsets`
    (int64[m, n + 1]) for each list, which count in `items` (uint64)."""

    def __init__(
        self, numbers: cython.ulonglong[:, ::1], offsets: cython.longlong[:, ::1], items: cython.ulonglong[::1]
    ) -> None:
        self.numbers = numbers
        self.offsets = offsets
        self.items = items


def count_list(c: Cursor, wire: cython.int) -> cython.Py_ssize_t:
    """Move over a packed list of numbers of a wire type; how many they are."""
    count: cython.Py_ssize_t
    outer: cython.Py_ssize_t
    if wire != FIXED64:
        return c.count_packed()
    outer = c.enter()
    count = (c.end - c.pos) >> 3
    c.bad |= (c.end - c.pos) & 7 != 0
    c.leave(outer)
    return count


def count(
    data: object,
    begins: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    fields: MessageFields,
    counts: cython.longlong[::1],
    found: cython.longlong[::1],
) -> None:
    """Count the items of each list, by field number, in the messages `data[begins[i]:ends[i]]`; `found` gets the number
    of unknown fields, of those with another wire type, and where the first damage is (-1: none)."""
    c: Cursor = Cursor(data)
    row: cython.Py_ssize_t
    number: cython.Py_ssize_t
    tag: cython.ulonglong
    form: cython.int
    with cython.nogil:
        for row in range(begins.shape[0]):
            c.pos = begins[row]
            c.end = ends[row]
            while c.pos < c.end and not c.bad:
                tag = c.read_tag()
                form = fields.form(tag)
                number = cython.cast(cython.Py_ssize_t, tag >> NUMBER)
                if form == LIST_FORM and tag & WIRE_TYPE == BYTES:
                    counts[number] += count_list(c, fields.wires[number])
                    continue
                c.skip_field(tag)
                if form >= LIST_FORM:
                    counts[number] += 1
                elif form == 0:
                    found[UNKNOWN_FIELDS] += 1
                elif form < 0:
                    found[OTHER_TYPES] += 1
            if c.bad:
                found[DAMAGED_AT] = c.pos
                break


def item(c: Cursor, wire: cython.int) -> cython.ulonglong:
    """One number of a wire type."""
    return c.uint(8) if wire == FIXED64 else c.varint()


def fill(
    data: object,
    begins: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    fields: MessageFields,
    columns: MessageColumns,
    at: cython.longlong[::1],
    last: cython.uchar[::1],
) -> int:
    """Gather what `count` counted; where a list has a number that is none, else -1.

    Of several numbers of a field the last one counts. Items of lists, and begins and ends of spans, go to the items
    from `at[slot]` on. `last` gets the number of the last known field of each message.
    """
    c: Cursor = Cursor(data)
    numbers: cython.ulonglong[:, ::1] = columns.numbers
    offsets: cython.longlong[:, ::1] = columns.offsets
    items: cython.ulonglong[::1] = columns.items
    row: cython.Py_ssize_t
    number: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    k: cython.Py_ssize_t
    outer: cython.Py_ssize_t
    tag: cython.ulonglong
    form: cython.int
    wire: cython.int
    with cython.nogil:
        for row in range(begins.shape[0]):
            c.pos = begins[row]
            c.end = ends[row]
            while c.pos < c.end and not c.bad:
                tag = c.read_tag()
                form = fields.form(tag)
                if form <= 0:
                    c.skip_field(tag)
                    continue
                number = cython.cast(cython.Py_ssize_t, tag >> NUMBER)
                slot = fields.slots[number]
                wire = fields.wires[number]
                last[row] = cython.cast(cython.uchar, number)
                if form == NUMBER_FORM:
                    numbers[slot, row] = item(c, wire)
                    continue
                k = at[slot]
                if form == LIST_FORM and tag & WIRE_TYPE != BYTES:
                    items[k] = item(c, wire)
                    at[slot] = k + 1
                    continue
                outer = c.enter()
                if form == LIST_FORM:
                    while c.pos < c.end and not c.bad:
                        # Most numbers are rows below 128.
                        if wire == VARINT and c.data[c.pos] < LAST_BYTE:
                            items[k] = c.data[c.pos]
                            c.pos += 1
                        else:
                            items[k] = item(c, wire)
                        k += 1
                    at[slot] = k
                else:
                    items[k] = cython.cast(cython.ulonglong, c.pos)
                    items[k + 1] = cython.cast(cython.ulonglong, c.end)
                    at[slot] = k + 2
                    c.pos = c.end
                c.leave(outer)
            for k in range(at.shape[0]):
                offsets[k, row + 1] = at[k]
            if c.bad:
                break
    return int(c.pos) if c.bad else -1


def field_begins(
    data: object,
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    wanted: cython.ulonglong,
    begins: cython.longlong[::1],
) -> int:
    """Where the fields with the tag `wanted` begin in the message `data[begin:end]`, which was read before; how many
    they are. What does not fit into `begins` is left out."""
    c: Cursor = Cursor(data, begin, end)
    start: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    tag: cython.ulonglong
    with cython.nogil:
        while c.pos < c.end and not c.bad:
            start = c.pos
            tag = c.read_tag()
            c.skip_field(tag)
            if tag == wanted and count < begins.shape[0]:
                begins[count] = start
                count += 1
    return int(count)


def without_fields(content: bytes, number: int) -> bytes:
    """The fields of a message, which was read before, other than those of a number, whatever their wire types."""
    c: Cursor = Cursor(content)
    kept = []
    while c.pos < c.end and not c.bad:
        start: cython.Py_ssize_t = c.pos
        tag: cython.ulonglong = c.read_tag()
        c.skip_field(tag)
        if tag >> NUMBER != number:
            kept.append(content[start : c.pos])
    return b"".join(kept)
