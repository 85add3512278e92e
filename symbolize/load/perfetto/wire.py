"""Messages that a trace has few of, field by field."""

from collections.abc import Iterator

MASK64 = (1 << 64) - 1
LAST = 127
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Damaged(ValueError):
    """A message is not protobuf."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint at `at`, and where it ends."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & MASK64, at
        shift += 7
    raise Damaged


def strict(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field; fixed-size values are bytes. Raises Damaged at the first that is damaged."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if tag < 8:
            raise Damaged
        if wire == VARINT:
            value, at = varint(data, at)
            yield tag >> 3, value
            continue
        size = 8 if wire == FIXED64 else 4
        if wire == BYTES:
            size, at = varint(data, at)
        elif wire not in (FIXED64, FIXED32):
            raise Damaged
        if size > len(data) - at:
            raise Damaged
        yield tag >> 3, data[at : at + size]
        at += size


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The same up to the first field that is damaged."""
    try:
        yield from strict(data)
    except Damaged:
        return


def message(data: bytes) -> dict[int, int | bytes]:
    """The last value of each field with a number up to `LAST`; no message that is read here has more."""
    return {field: value for field, value in fields(data) if field <= LAST}


def number(values: dict[int, int | bytes], field: int) -> int:
    """An integer field, 0 if it is not there."""
    value = values.get(field, 0)
    return value if isinstance(value, int) else 0


def text(values: dict[int, int | bytes], field: int) -> bytes:
    """A field of bytes, empty if it is not there."""
    value = values.get(field, b"")
    return value if isinstance(value, bytes) else b""


def signed(value: int, bits: int = 64) -> int:
    """The same bits as a signed number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
