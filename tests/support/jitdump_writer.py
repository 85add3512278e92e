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


def function_frames(size: int, program: bytes) -> bytes:
    """The .eh_frame of code of a size, with relative addresses as behind the code: the CFA is rsp + 8 at first, then
    `program` says."""
    cie = struct.pack("<II", 20, 0) + b"\1zR\0\1\x78\x10\1\x1b\x0c\7\x08\x90\1\0\0"
    program += bytes(-(len(program) + 1) % 4)
    begin = -(-(-size // 8) * 8 + len(cie) + 8)
    fde = struct.pack("<IiI", len(cie) + 4, begin, size) + b"\0" + program
    return cie + struct.pack("<I", len(fde)) + fde


def unwinding(frames: bytes, order: str = "<", header: int = 20) -> bytes:
    """The call frame information of the code that is loaded next, with an .eh_frame_hdr behind it, and padding."""
    body = struct.pack(order + "QQQ", len(frames) + header, header, 0) + frames + bytes(header)
    return record(4, body + bytes(-len(body) % 8), order)


def dump(*records: bytes, order: str = "<", flags: int = 0, machine: int = 62) -> bytes:
    """A jitdump of process 77."""
    return struct.pack(order + "IIIIIIQQ", 0x4A695444, 1, 40, machine, 0, 77, 9, flags) + b"".join(records)
