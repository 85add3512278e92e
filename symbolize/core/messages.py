"""Protobuf messages of one kind as columns, read and written: numbers, lists of numbers, messages and strings."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from symbolize.core import encoder, message_scan
from symbolize.core.arrays import Int64, UInt8, UInt64, offsets_of, views
from symbolize.core.budget import Budget
from symbolize.core.errors import InputError
from symbolize.core.protobuf import BYTES, MAX_VARINT, NUMBER, WIRE_TYPE, varint

DAMAGED: Final = "is damaged: a field is no protobuf or runs past the end of its message"
BLOCK: Final = 1 << 16
"""Rows that are written at a time."""


class Spans(NamedTuple):
    """Messages or strings: span i is `data[begins[i]:ends[i]]`, and those of row r are from `offsets[r]` up to
    `offsets[r + 1]`."""

    offsets: Int64
    begins: Int64
    ends: Int64

    @classmethod
    def of(cls, begin: int, end: int) -> Self:
        """One span."""
        return cls(np.array([0, 1]), np.array([begin], np.int64), np.array([end], np.int64))

    def __len__(self) -> int:
        return len(self.begins)

    def of_row(self, row: int) -> "Spans":
        """The spans of one row, as those of the only row."""
        first, last = int(self.offsets[row]), int(self.offsets[row + 1])
        return Spans(np.array([0, last - first]), self.begins[first:last], self.ends[first:last])

    def take(self, rows: NDArray[np.int64]) -> "Spans":
        """Some of the spans, as those of the only row."""
        return Spans(np.array([0, len(rows)]), self.begins[rows], self.ends[rows])


class MessageLayout:
    """Which fields of a kind of message are read, by their tags: `numbers`, `lists` of numbers (the tags of single
    items), and `spans`."""

    def __init__(self, *, numbers: tuple[int, ...] = (), lists: tuple[int, ...] = (), spans: tuple[int, ...] = ()):
        self.slots: dict[int, int] = {tag: slot for slot, tag in enumerate(numbers)}
        self.slots |= {tag: slot for slot, tag in enumerate((*lists, *spans))}
        self.numbers, self.lists, self.spans = numbers, lists, spans
        size = max(tag >> NUMBER for tag in self.slots) + 1
        self.forms, self.wires, self.columns = (np.zeros(size, np.uint8) for _ in range(3))
        for form, tags in (("number", numbers), ("list", lists), ("span", spans)):
            for tag in tags:
                assert (tag & WIRE_TYPE == BYTES) == (form == "span")
                number = tag >> NUMBER
                self.forms[number] = message_scan.FORMS[form]
                self.wires[number] = tag & WIRE_TYPE
                self.columns[number] = self.slots[tag]


class Rows:
    """The messages `data[spans.begins[i]:spans.ends[i]]`, of which `layout` is read. Raises InputError where one is no
    protobuf.

    `last` is the number of the last known field of each message; `unknown` is how many unknown fields all have.
    """

    def __init__(self, data: memoryview, spans: Spans, layout: MessageLayout, budget: Budget) -> None:
        count, lists = len(spans), len(layout.lists) + len(layout.spans)
        counts, found = np.zeros(len(layout.forms), np.int64), np.array([0, 0, -1])
        begins, ends = views(spans.begins, spans.ends)
        fields = message_scan.MessageFields(*views(layout.forms, layout.wires, layout.columns))
        message_scan.count(data, begins, ends, fields, counts.data, found.data)
        if found[2] >= 0:
            raise InputError(budget.source, DAMAGED, int(found[2]))
        sizes = [int(counts[tag >> NUMBER]) * (2 if tag in layout.spans else 1) for tag in layout.lists + layout.spans]
        self.cost = 8 * (sum(sizes) + count * (len(layout.numbers) + lists)) + count
        budget.spend(self.cost)
        self.unknown = int(found[0] + found[1])
        self.last: UInt8 = np.zeros(count, np.uint8)
        self._layout = layout
        self._numbers: UInt64 = np.zeros((len(layout.numbers), count), np.uint64)
        self._items: UInt64 = np.empty(sum(sizes), np.uint64)
        self._offsets: Int64 = np.zeros((lists, count + 1), np.int64)
        self._begins = np.array([0, *sizes], np.int64).cumsum()[:-1]
        self._offsets[:, 0] = at = self._begins.copy()
        columns = message_scan.MessageColumns(*views(self._numbers, self._offsets, self._items))
        damaged_at = message_scan.fill(data, begins, ends, fields, columns, at.data, self.last.data)
        if damaged_at >= 0:
            raise InputError(budget.source, DAMAGED, damaged_at)
        self._offsets -= self._begins[:, None]

    def __len__(self) -> int:
        return len(self.last)

    def number(self, tag: int) -> UInt64:
        """The number that a field has in each message, 0 where it is missing."""
        column: UInt64 = self._numbers[self._layout.slots[tag]]
        return column

    def signed(self, tag: int) -> Int64:
        """The same as signed numbers."""
        return self.number(tag).view(np.int64)

    def list(self, tag: int) -> tuple[Int64, UInt64]:
        """The lists that a field has in each message, as offsets and items."""
        slot = self._layout.slots[tag]
        offsets = self._offsets[slot]
        return offsets, self._items[self._begins[slot] :][: offsets[-1]]

    def spans(self, tag: int) -> Spans:
        """The messages or strings that a field has in each message."""
        offsets, items = self.list(tag)
        pairs = items.view(np.int64).reshape(-1, 2)
        return Spans(offsets >> 1, np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]))


class Number(NamedTuple):
    """A number of each message, which is left out where it is 0."""

    tag: int
    column: NDArray[Any]


class Numbers(NamedTuple):
    """A list of numbers of each message, in the form of offsets and items. `tag` is that of a single item."""

    tag: int
    offsets: Int64
    items: NDArray[Any]


class Raw(NamedTuple):
    """Whole fields of each message as they are."""

    offsets: Int64
    data: UInt8


Field = Number | Numbers | Raw


class Messages:
    """Messages of one kind, to be written as fields with `tag`, in the order of `fields`, which have `count` rows."""

    def __init__(self, tag: int, count: int, fields: Sequence[Field]) -> None:
        self._count = count
        numbers, offsets, items, raw = [], [], [], np.zeros(0, np.uint8)
        forms, tags = [], []
        self._bound = np.full(count, len(varint(tag)) + MAX_VARINT, np.int64)
        total = 0
        for each in fields:
            if isinstance(each, Number):
                forms.append(encoder.FORMS["number"])
                tags.append(each.tag)
                numbers.append(each.column.astype(np.int64, copy=False).view(np.uint64))
                self._bound += len(varint(each.tag)) + MAX_VARINT
            elif isinstance(each, Numbers):
                forms.append(encoder.FORMS["list"])
                tags.append(each.tag & ~WIRE_TYPE | BYTES)
                column = each.items.astype(np.int64, copy=False).view(np.uint64)
                size = len(varint(int(column.max()))) if len(column) else 0
                self._bound += np.diff(each.offsets) * size + len(varint(each.tag)) + MAX_VARINT
                offsets.append(each.offsets + total)
                items.append(column)
                total += len(column)
            else:
                forms.append(encoder.FORMS["raw"])
                tags.append(0)
                self._bound += np.diff(each.offsets)
                offsets.append(each.offsets)
                raw = each.data
        self._form = encoder.MessageForm(tag, *views(np.array(forms, np.uint8), np.array(tags, np.uint64)))
        self._columns = message_scan.MessageColumns(
            *views(
                np.array(numbers, np.uint64).reshape(len(numbers), count),
                np.array(offsets, np.int64).reshape(len(offsets), count + 1),
                np.concatenate([np.zeros(0, np.uint64), *items]),
            )
        )
        self._raw = raw

    def blocks(self) -> Iterator[tuple[UInt8, Int64]]:
        """Some messages at a time, and where each begins, and the last one ends, in those bytes."""
        encode: Callable[..., int] = encoder.encode
        for first in range(0, self._count, BLOCK):
            last = min(first + BLOCK, self._count)
            buffer = np.empty(int(self._bound[first:last].sum()), np.uint8)
            begins = np.empty(last - first, np.int64)
            at = encode(self._form, self._columns, *views(self._raw), first, last, *views(buffer, begins))
            yield buffer[at:], np.append(begins, len(buffer)) - at

    def pieces(self) -> list[bytes]:
        """The bytes of all messages, in pieces."""
        return [block.tobytes() for block, _ in self.blocks()]

    def joined(self) -> Raw:
        """The bytes of all messages, and the offsets of each."""
        sizes, parts = [np.zeros(0, np.int64)], [np.zeros(0, np.uint8)]
        for block, begins in self.blocks():
            parts.append(block)
            sizes.append(np.diff(begins))
        return Raw(offsets_of(np.concatenate(sizes)), np.concatenate(parts))
