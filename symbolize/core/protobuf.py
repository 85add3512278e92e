"""Protobuf's wire format, written field by field."""

BYTES = 2
"""The wire type of length-delimited fields."""


def varint(value: int) -> bytes:
    """A number in as few bytes as hold it, seven bits each."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content
