"""Columns as protobuf messages of one kind, the reverse of `Rows` in `messages`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core import message_encode
from symbolize.core.arrays import Int64, UInt8, offsets_of, views
from symbolize.core.protobuf import BYTES, MAX_VARINT, WIRE_TYPE, varint

BLOCK: Final = 1 << 16
"""Rows that are written at a time."""


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
    """Messages of one kind as fields with `tag`, in the order of `fields`, which have `count` rows."""

    def __init__(self, tag: int, count: int, fields: Sequence[Field]) -> None:
        self._tag, self._count = tag, count
        numbers, offsets, items, raw = [], [], [], np.zeros(0, np.uint8)
        forms, tags = [], []
        self._bound = np.full(count, len(varint(tag)) + MAX_VARINT, np.int64)
        total = 0
        for each in fields:
            if isinstance(each, Number):
                forms.append(message_encode.FORMS["number"])
                tags.append(each.tag)
                numbers.append(each.column.astype(np.int64, copy=False).view(np.uint64))
                self._bound += len(varint(each.tag)) + MAX_VARINT
            elif isinstance(each, Numbers):
                forms.append(message_encode.FORMS["list"])
                tags.append(each.tag & ~WIRE_TYPE | BYTES)
                column = each.items.astype(np.int64, copy=False).view(np.uint64)
                size = len(varint(int(column.max()))) if len(column) else 0
                self._bound += np.diff(each.offsets) * size + len(varint(each.tag)) + MAX_VARINT
                offsets.append(each.offsets + total)
                items.append(column)
                total += len(column)
            else:
                forms.append(message_encode.FORMS["raw"])
                tags.append(0)
                self._bound += np.diff(each.offsets)
                offsets.append(each.offsets)
                raw = each.data
        self._columns = (
            *views(np.array(forms, np.uint8), np.array(tags, np.uint64)),
            *views(np.array(numbers, np.uint64).reshape(len(numbers), count)),
            *views(np.array(offsets, np.int64).reshape(len(offsets), count + 1)),
            *views(np.concatenate([np.zeros(0, np.uint64), *items]), raw),
        )

    def blocks(self) -> Iterator[tuple[UInt8, Int64]]:
        """Some messages at a time, and where each begins, and the last one ends, in those bytes."""
        encode: Callable[..., int] = message_encode.encode
        for first in range(0, self._count, BLOCK):
            last = min(first + BLOCK, self._count)
            buffer = np.empty(int(self._bound[first:last].sum()), np.uint8)
            begins = np.empty(last - first, np.int64)
            at = encode(self._tag, *self._columns, first, last, buffer.data, begins.data)
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
