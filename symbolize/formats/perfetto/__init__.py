"""Traces of Perfetto: heap dumps of heapprofd, CPU samples of traced_perf and of Chromium (Perfetto wire format).

Compiled: `wire` reads messages field by field; `scan` walks the packets and keeps the state of `sequences` with a
`packet_reader`; `heaps` and `samples` read samples and add them up. `packets` reads what is rare. They fill a `trace`,
with tables of heap dumps, sessions and processes; `reader` makes profiles of it. Field tags are constants of
`proto/perfetto_trace_tags`.
"""

from typing import Final

from symbolize.core.cursor import varint_at
from symbolize.core.protobuf import BYTES, FIXED32, FIXED64, NUMBER, VARINT, WIRE_TYPE
from symbolize.formats.content import HEAD

PACKET: Final = 1 << NUMBER | BYTES
KNOWN_WIRE: Final = {
    8: 0, 58: 0, 3: 0, 79: 0, 10: 0, 13: 0, 41: 0, 42: 0, 87: 0, 98: 0,
    1: 2, 2: 2, 4: 2, 5: 2, 6: 2, 7: 2, 9: 2, 11: 2, 12: 2, 33: 2, 34: 2, 35: 2, 36: 2, 37: 2, 38: 2, 39: 2, 40: 2,
    43: 2, 44: 2, 45: 2, 46: 2, 47: 2, 48: 2, 49: 2, 50: 2, 51: 2, 54: 2, 56: 2, 59: 2, 60: 2, 61: 2, 62: 2, 63: 2,
    64: 2, 65: 2, 66: 2, 67: 2, 68: 2, 69: 2, 70: 2, 71: 2, 72: 2, 73: 2, 74: 2, 75: 2, 77: 2, 78: 2, 82: 2, 83: 2,
    84: 2, 86: 2, 89: 2, 90: 2, 91: 2, 107: 2, 109: 2, 123: 2, 124: 2, 131: 2, 133: 2, 135: 2,
}  # fmt: skip
"""Wire types of the fields of TracePacket that a trace may begin with."""

SNIFFED_PACKETS: Final = 16


def matches(head: bytes) -> bool:
    """Whether what begins with `head` is a trace: packets, and not the small messages that a pprof profile begins with,
    whose fields have the numbers of others here (R220, trace or pprof). The first packet with content decides."""
    at = packets = 0
    while at < len(head) and packets < SNIFFED_PACKETS:
        if head[at] != PACKET or (found := varint_at(head, at + 1)) is None:
            return False
        size, at = found
        if size:
            return _is_packet(head, at, at + size)
        packets += 1
    return False


def _is_packet(head: bytes, at: int, end: int) -> bool:
    """Whether the message from `at` to `end` has fields of a packet and none that contradict it."""
    known = 0
    if end > len(head) and len(head) < HEAD:
        return False
    while at < min(end, len(head)):
        if (found := varint_at(head, at)) is None:
            return known > 0 and end > len(head)
        tag, at = found
        number, wire = tag >> NUMBER, tag & WIRE_TYPE
        if not number or wire not in (VARINT, FIXED64, BYTES, FIXED32) or KNOWN_WIRE.get(number, wire) != wire:
            return False
        known += number in KNOWN_WIRE
        if wire in (VARINT, BYTES):
            if (found := varint_at(head, at)) is None:
                return known > 0 and end > len(head)
            at = found[1] + (found[0] if wire == BYTES else 0)
        else:
            at += 8 if wire == FIXED64 else 4
        if at > end:
            return False
    return known > 0
