# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""Fields of many protobuf messages of one kind, gathered into columns.

What a field is comes in three arrays by field number: `forms` (one of the constants below, 0 for unknown fields),
`wires` (the wire type) and `slots` (the column). Lists of integers are read packed and unpacked, as protobuf demands.
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


def form_of(
    forms: cython.const[cython.uchar][::1], wires: cython.const[cython.uchar][::1], tag: cython.ulonglong
) -> cython.int:
    """What the field with `tag` is; 0 for an unknown one, -1 for one of another wire type than the field has."""
    number: cython.ulonglong = tag >> NUMBER
    wire: cython.int = tag & WIRE_TYPE
    form: cython.int
    if number >= cython.cast(cython.ulonglong, forms.shape[0]):
        return 0
    form = forms[cython.cast(cython.Py_ssize_t, number)]
    if form != 0 and wire != wires[cython.cast(cython.Py_ssize_t, number)]:
        return LIST_FORM if form == LIST_FORM and wire == BYTES else -1
    return form


def count_list(c: Cursor, wire: cython.int) -> cython.Py_ssize_t:
    """Move over a packed list of numbers of a wire type; how many they are."""
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    outer: cython.Py_ssize_t = c.enter()
    if not c.bad and wire == FIXED64:
        count = (c.end - c.pos) >> 3
        c.bad = (c.end - c.pos) & 7 != 0
    elif not c.bad:
        for i in range(c.pos, c.end):
            count += c.data[i] < LAST_BYTE
        c.bad = c.pos < c.end and c.data[c.end - 1] >= LAST_BYTE
    c.leave(outer)
    return count


def count(
    data: object,
    begins: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    forms: cython.const[cython.uchar][::1],
    wires: cython.const[cython.uchar][::1],
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
                tag = c.tag()
                form = form_of(forms, wires, tag)
                number = cython.cast(cython.Py_ssize_t, tag >> NUMBER)
                if form == LIST_FORM and tag & WIRE_TYPE == BYTES:
                    counts[number] += count_list(c, wires[number])
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


def fill_list(
    c: Cursor, tag: cython.ulonglong, wire: cython.int, items: cython.ulonglong[::1], at: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """One number or a packed list of them into `items` from `at` on; where the next one goes."""
    outer: cython.Py_ssize_t
    if tag & WIRE_TYPE != BYTES:
        items[at] = item(c, wire)
        return at + 1
    outer = c.enter()
    while c.pos < c.end and not c.bad:
        # Most numbers are rows below 128.
        if wire == VARINT and c.data[c.pos] < LAST_BYTE:
            items[at] = c.data[c.pos]
            c.pos += 1
        else:
            items[at] = item(c, wire)
        at += 1
    c.leave(outer)
    return at


def fill(
    data: object,
    begins: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    forms: cython.const[cython.uchar][::1],
    wires: cython.const[cython.uchar][::1],
    slots: cython.const[cython.uchar][::1],
    numbers: cython.ulonglong[:, ::1],
    last: cython.uchar[::1],
    offsets: cython.longlong[:, ::1],
    at: cython.longlong[::1],
    items: cython.ulonglong[::1],
) -> int:
    """Gather what `count` counted; where a list has a number that is none, else -1.

    Numbers go to `numbers[slot, row]`, the last one of a message counts. Items of lists, and begins and ends of spans,
    go to `items` from `at[slot]` on, and `offsets[slot, row + 1]` is where those of a row end. `last` gets the number
    of the last known field of each message.
    """
    c: Cursor = Cursor(data)
    row: cython.Py_ssize_t
    number: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    k: cython.Py_ssize_t
    outer: cython.Py_ssize_t
    tag: cython.ulonglong
    form: cython.int
    with cython.nogil:
        for row in range(begins.shape[0]):
            c.pos = begins[row]
            c.end = ends[row]
            while c.pos < c.end and not c.bad:
                tag = c.tag()
                form = form_of(forms, wires, tag)
                if form <= 0:
                    c.skip_field(tag)
                    continue
                number = cython.cast(cython.Py_ssize_t, tag >> NUMBER)
                slot = slots[number]
                last[row] = cython.cast(cython.uchar, number)
                if form == NUMBER_FORM:
                    numbers[slot, row] = item(c, wires[number])
                elif form == LIST_FORM:
                    at[slot] = fill_list(c, tag, wires[number], items, at[slot])
                else:
                    outer = c.enter()
                    items[at[slot]] = cython.cast(cython.ulonglong, c.pos)
                    items[at[slot] + 1] = cython.cast(cython.ulonglong, c.end)
                    at[slot] += 2
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
            tag = c.tag()
            c.skip_field(tag)
            if tag == wanted and count < begins.shape[0]:
                begins[count] = start
                count += 1
    return int(count)
