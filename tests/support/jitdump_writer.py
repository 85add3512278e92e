"""Writes jitdump files."""

import struct


def record(kind: int, body: bytes, order: str = "<", time: int = 5) -> bytes:
    """A record of a jitdump."""
    return struct.pack(order + "IIQ", kind, 16 + len(body), time) + body


def load(address: int, size: int, number: int, name: bytes, order: str = "<", time: int = 5) -> bytes:
    """Code that is loaded, with its bytes."""
    body = struct.pack(order + "IIQQQQ", 77, 78, address, address, size, number) + name + b"\0" + bytes(size)
    return record(0, body, order, time)


def move(number: int, address: int, size: int, time: int = 5) -> bytes:
    """Code that moved to an address."""
    return record(1, struct.pack("<IIQQQQQ", 77, 78, 0, 0, address, size, number), time=time)


def lines(address: int, entries: list[tuple[int, int, bytes]], order: str = "<") -> bytes:
    """The lines of the code that is loaded next at `address`."""
    body = struct.pack(order + "QQ", address, len(entries))
    for place, line, name in entries:
        body += struct.pack(order + "QII", place, line, 0) + name + b"\0"
    return record(2, body, order)


def dump(*records: bytes, order: str = "<", flags: int = 0) -> bytes:
    """A jitdump of process 77."""
    return struct.pack(order + "IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 77, 9, flags) + b"".join(records)
