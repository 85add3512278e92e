"""Protobuf's wire format: its numbers, which compiled modules include, and fields as bytes."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types of fields; groups (3 and 4) are not read."""

WIRE_TYPE, NUMBER = 7, 3
"""A tag's bits of the wire type, and how many bits below the field number they are."""

LAST_BYTE = 0x80
"""A byte below this is the last of its varint."""

MAX_TAG, MAX_VARINT = 5, 10
"""Bytes of the longest tag and of the longest varint that protobuf reads."""


def varint(value: int) -> bytes:
    """A number in as few bytes as hold it, seven bits each."""
    if value < LAST_BYTE:
        return value.to_bytes()
    out = bytearray()
    while value >= LAST_BYTE:
        out.append(value & 0x7F | LAST_BYTE)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(tag: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return varint(tag) + varint(len(content)) + content
