# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Writes protobuf messages: field by field for compiled modules, and columns as messages of one kind.

A message is written from its end to its begin: when the length in front of it is due, its content is there.
"""

import cython

if not cython.compiled:
    from symbolize.core.interning import Lists
    from symbolize.core.message_scan import MessageColumns
    from symbolize.core.protobuf import LAST_BYTE

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
NUMBER_FORM = cython.declare(cython.int, 1)
LIST_FORM = cython.declare(cython.int, 2)
RAW_FORM = cython.declare(cython.int, 3)

FORMS = {"number": NUMBER_FORM, "list": LIST_FORM, "raw": RAW_FORM}


@cython.cclass
class Encoder:
    """What is written is `out[pos:]`; the caller gives a buffer that is large enough."""

    def __init__(self, out: cython.uchar[::1]) -> None:
        self.out = out
        self.pos = len(out)

    def varint(self, value: cython.ulonglong) -> cython.void:
        """Put a number in front, in as few bytes as hold it."""
        pos: cython.Py_ssize_t = self.pos - 1
        rest: cython.ulonglong = value >> 7
        while rest != 0:
            rest >>= 7
            pos -= 1
        self.pos = pos
        while value >= LAST_BYTE:
            self.out[pos] = value & 0x7F | LAST_BYTE
            value >>= 7
            pos += 1
        self.out[pos] = cython.cast(cython.uchar, value)

    def int64(self, value: cython.longlong) -> cython.void:
        """Put a signed number in front."""
        self.varint(cython.cast(cython.ulonglong, value) & MASK64)

    def number(self, tag: cython.ulonglong, value: cython.ulonglong) -> cython.void:
        """Put a field with a number in front, unless it is zero (proto3)."""
        if value != 0:
            self.varint(value)
            self.varint(tag)

    def signed(self, tag: cython.ulonglong, value: cython.longlong) -> cython.void:
        """Put a field with a signed number in front, unless it is zero."""
        self.number(tag, cython.cast(cython.ulonglong, value) & MASK64)

    def raw(
        self, data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.void:
        """Put the bytes `data[begin:end]` in front."""
        self.pos -= end - begin
        self.out[self.pos : self.pos + end - begin] = data[begin:end]

    def close(self, tag: cython.ulonglong, end: cython.Py_ssize_t) -> cython.void:
        """Put tag and length in front of what was written since `pos` was `end`."""
        self.varint(end - self.pos)
        self.varint(tag)


@cython.cclass
class MessageForm:
    """A kind of message as it is written, as a field with `tag`: what its fields are, in order (`forms`, constants
    above, uint8[k]), and their `tags` (uint64[k])."""

    def __init__(
        self,
        tag: cython.ulonglong,
        forms: cython.const[cython.uchar][::1],
        tags: cython.const[cython.ulonglong][::1],
    ) -> None:
        self.tag = tag
        self.forms = forms
        self.tags = tags


def encode(
    form: MessageForm,
    columns: MessageColumns,
    raw: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    buffer: cython.uchar[::1],
    begins: cython.longlong[::1],
) -> int:
    """Write the messages `first` up to `last` to the end of `buffer`; where they begin, each in `begins`.

    A field is a number from the next row of numbers, a packed list from the next row of offsets, or whole fields as
    they are, from the next row of offsets, which then count in `raw`.
    """
    out: Encoder = Encoder(buffer)
    tag: cython.ulonglong = form.tag
    forms: cython.const[cython.uchar][::1] = form.forms
    tags: cython.const[cython.ulonglong][::1] = form.tags
    numbers: cython.ulonglong[:, ::1] = columns.numbers
    offsets: cython.longlong[:, ::1] = columns.offsets
    items: cython.ulonglong[::1] = columns.items
    row: cython.Py_ssize_t
    end: cython.Py_ssize_t
    inner: cython.Py_ssize_t
    k: cython.Py_ssize_t
    i: cython.Py_ssize_t
    number: cython.Py_ssize_t
    list_: cython.Py_ssize_t
    with cython.nogil:
        for row in range(last - 1, first - 1, -1):
            end = out.pos
            number = numbers.shape[0]
            list_ = offsets.shape[0]
            for k in range(forms.shape[0] - 1, -1, -1):
                if forms[k] == NUMBER_FORM:
                    number -= 1
                    out.number(tags[k], numbers[number, row])
                elif forms[k] == LIST_FORM:
                    list_ -= 1
                    inner = out.pos
                    for i in range(offsets[list_, row + 1] - 1, offsets[list_, row] - 1, -1):
                        out.varint(items[i])
                    if out.pos < inner:
                        out.close(tags[k], inner)
                else:
                    list_ -= 1
                    out.raw(raw, offsets[list_, row], offsets[list_, row + 1])
            out.close(tag, end)
            begins[row - first] = out.pos
    return out.pos


def number_lists(
    lists: Lists,
    offsets: cython.const[cython.longlong][::1],
    items: cython.const[cython.int][::1],
    rows: cython.int[::1],
) -> None:
    """Add lists, each once; `rows` gets the number of each."""
    row: cython.Py_ssize_t
    i: cython.Py_ssize_t
    size: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    for row in range(rows.shape[0]):
        begin = offsets[row]
        size = offsets[row + 1] - begin
        while lists.used + size > len(lists.items):
            lists.extend_items()
        for i in range(size):
            lists.items[lists.used + i] = items[begin + i]
        lists.size = size
        rows[row] = cython.cast(cython.int, lists.add())
