"""Writes jitdump files."""

import struct


def record(kind: int, body: bytes, order: str = "<") -> bytes:
    """A record of a jitdump."""
    return struct.pack(order + "IIQ", kind, 16 + len(body), 5) + body


def load(address: int, size: int, number: int, name: bytes, order: str = "<") -> bytes:
    """Code that is loaded, with its bytes."""
    return record(
        0, struct.pack(order + "IIQQQQ", 77, 78, address, address, size, number) + name + b"\0" + bytes(size), order
    )


def lines(address: int, entries: list[tuple[int, int, bytes]], order: str = "<") -> bytes:
    """The lines of the code that is loaded next at `address`."""
    body = struct.pack(order + "QQ", address, len(entries))
    for place, line, name in entries:
        body += struct.pack(order + "QII", place, line, 0) + name + b"\0"
    return record(2, body, order)


def dump(*records: bytes, order: str = "<") -> bytes:
    """A jitdump of process 77."""
    return struct.pack(order + "IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 77, 9, 0) + b"".join(records)
