# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""The packets of a trace: the state of the sequence that each is of, and who reads what it carries.

Repeated integers are read packed and unpacked. Damage costs the message that it is in.
"""

from typing import TYPE_CHECKING

import cython

if TYPE_CHECKING:
    from symbolize.formats.perfetto.packets import Packets
    from symbolize.formats.perfetto.trace import Trace

if not cython.compiled:
    from symbolize.core.interning import InternTable
    from symbolize.core.protobuf import BYTES, FIXED32, FIXED64, MAX_TAG, NUMBER, VARINT, WIRE_TYPE
    from symbolize.formats.perfetto.constants import MASK32, MAX_INT64
    from symbolize.formats.perfetto.heaps import HeapReader
    from symbolize.formats.perfetto.packet_reader import PacketReader
    from symbolize.formats.perfetto.samples import CpuReader, StackReader
    from symbolize.formats.perfetto.sequences import Sequence
    from symbolize.proto.perfetto_trace_tags import *


MAX_HEAD = cython.declare(cython.Py_ssize_t, 20)
"""Bytes of a tag and a length that are padded as far as varints may be."""

MAX_SEQUENCES = 1 << 13
"""Sequences that a trace has at most: one a thread that writes packets with state."""
MAX_NUMBERS = cython.declare(cython.Py_ssize_t, 1 << 16)
"""Sequences whose first packet is known, with state or without."""


@cython.cclass
class Scanner:
    """Reads packets into a trace; `packets` inflates, and reads what is rare."""

    def __init__(self, trace: "Trace", packets: "Packets") -> None:
        self.packets = packets
        self.reader = trace.reader
        self.samples = trace.samples
        self.cpu = CpuReader(self.reader, self.samples)
        self.stack_samples = StackReader(self.reader, self.samples)
        self.heaps = HeapReader(self.reader)
        self.sequences = {}
        self.max_sequences = MAX_SEQUENCES
        self.current = None
        self.numbers = InternTable(self.reader.mixer)
        self.last_number = 0
        self.broken = False
        self.wanted = 0
        self.nested = self.invalid_state = self.losses = self.track_stacks = self.heap_graphs = 0

    def scan(self, data: bytes) -> int:
        """Read the packets of `data`; up to where, which is short of the end where the last packet goes on behind it.

        `wanted` is then how many bytes from there the packet has, 0 if not even its length is there. `broken`
        becomes true where what follows is no field of a trace.
        """
        self.reader.start(data)
        return self.walk(0)

    def forget(self) -> None:
        """Wait no longer for the packet with `wanted` bytes."""
        self.wanted = 0

    def walk(self, depth: cython.int) -> cython.Py_ssize_t:
        """Read the packets under the cursor."""
        reader: PacketReader = self.reader
        start: cython.Py_ssize_t
        size: cython.ulonglong
        tag: cython.ulonglong
        self.wanted = 0
        while reader.pos < reader.end:
            start = reader.pos
            tag = reader.varint()
            if not reader.bad and tag & WIRE_TYPE == BYTES and tag >> NUMBER != 0 and tag >> 32 == 0:
                size = reader.varint()
                if not reader.bad and size > cython.cast(cython.ulonglong, reader.end - reader.pos):
                    # No file is as large, and the sum must not wrap.
                    self.wanted = reader.pos - start + min(size, MAX_INT64 >> 1)
                    reader.pos = start
                    break
                if not reader.bad and tag == TRACE_PACKET:
                    self.packet(reader.pos + cython.cast(cython.Py_ssize_t, size), depth)
                elif not reader.bad:
                    reader.pos += cython.cast(cython.Py_ssize_t, size)
            elif not reader.bad:
                reader.pos = start
                reader.field()
            if reader.forgive():
                reader.pos = start
                self.broken = reader.end - start >= MAX_HEAD or self.is_broken()
                reader.pos = start
                break
        return reader.pos

    def is_broken(self) -> cython.bint:
        """Whether the bytes before the end cannot be the beginning of a field."""
        reader: PacketReader = self.reader
        start: cython.Py_ssize_t = reader.pos
        tag: cython.ulonglong = reader.varint()
        if reader.forgive():
            return reader.end - start > MAX_TAG
        return tag >> NUMBER == 0 or tag >> 32 != 0 or tag & WIRE_TYPE not in (VARINT, FIXED64, BYTES, FIXED32)

    def sequence(self, number: cython.ulonglong) -> Sequence:
        """The state of a sequence; None for 0, and for more sequences than any trace has."""
        seq: Sequence = self.current
        if number == 0:
            return None
        if seq is not None and seq.number == number:
            return seq
        found = self.sequences.get(number)
        if found is None:
            if len(self.sequences) >= self.max_sequences:
                self.reader.too_many += 1
                return None
            found = self.sequences[number] = Sequence(number, self.reader)
        seq = found
        self.current = seq
        return seq

    def begins(self, number: cython.ulonglong) -> cython.bint:
        """Whether a packet is the first of its sequence; notes that it came. Beyond the limit every packet is, so that
        no loss is reported that may be none."""
        if number == self.last_number:
            return False
        if self.numbers.find(number) < 0:
            if self.numbers.count >= MAX_NUMBERS:
                return True
            self.numbers.put(number, 0)
            self.last_number = number
            return True
        self.last_number = number
        return False

    def packet(self, end: cython.Py_ssize_t, depth: cython.int):
        """Read the packet from the cursor to `end`: first its state, then what it interns, then what it carries."""
        reader: PacketReader = self.reader
        outer: cython.Py_ssize_t = reader.end
        tag: cython.ulonglong
        number: cython.ulonglong = 0
        flags: cython.ulonglong = 0
        dropped: cython.ulonglong = 0
        first: cython.bint = False
        cleared: cython.bint = False
        kind: cython.ulonglong = 0
        begin: cython.Py_ssize_t = 0
        stop: cython.Py_ssize_t = 0
        event: cython.Py_ssize_t = -1
        event_end: cython.Py_ssize_t = 0
        seq: Sequence
        reader.end = end
        reader.machine = reader.timestamp = reader.clock = 0
        reader.has_time = False
        self.interned = self.defaults = -1
        while reader.field():
            tag = reader.tag
            if tag & WIRE_TYPE == BYTES:
                if tag == TRACE_PACKET_INTERNED_DATA:
                    self.interned, self.interned_end = reader.begin, reader.pos
                elif tag == TRACE_PACKET_TRACE_PACKET_DEFAULTS:
                    self.defaults, self.defaults_end = reader.begin, reader.pos
                elif tag in (
                    TRACE_PACKET_PERF_SAMPLE, TRACE_PACKET_PROFILE_PACKET, TRACE_PACKET_STACK_SAMPLE,
                    TRACE_PACKET_STREAMING_PROFILE_PACKET, TRACE_PACKET_COMPRESSED_PACKETS,
                    TRACE_PACKET_ZSTD_COMPRESSED_PACKETS, TRACE_PACKET_PROCESS_TREE, TRACE_PACKET_CLOCK_SNAPSHOT,
                    TRACE_PACKET_PROCESS_DESCRIPTOR, TRACE_PACKET_THREAD_DESCRIPTOR, TRACE_PACKET_TRACK_DESCRIPTOR,
                    TRACE_PACKET_PACKAGES_LIST, TRACE_PACKET_MODULE_SYMBOLS, TRACE_PACKET_DEOBFUSCATION_MAPPING,
                ):  # fmt: skip
                    kind, begin, stop = tag, reader.begin, reader.pos
                elif tag == TRACE_PACKET_TRACK_EVENT:
                    event, event_end = reader.begin, reader.pos
                elif tag == TRACE_PACKET_HEAP_GRAPH:
                    self.heap_graphs += 1
            elif tag == TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID:
                number = reader.value & MASK32
            elif tag == TRACE_PACKET_TIMESTAMP:
                reader.timestamp = reader.value
                reader.has_time = True
            elif tag == TRACE_PACKET_SEQUENCE_FLAGS:
                flags = reader.value
            elif tag == TRACE_PACKET_INCREMENTAL_STATE_CLEARED:
                cleared = reader.value != 0
            elif tag == TRACE_PACKET_PREVIOUS_PACKET_DROPPED:
                dropped = reader.value
            elif tag == TRACE_PACKET_FIRST_PACKET_ON_SEQUENCE:
                first = reader.value != 0
            elif tag == TRACE_PACKET_TIMESTAMP_CLOCK_ID:
                reader.clock = reader.value
            elif tag == TRACE_PACKET_MACHINE_ID:
                reader.machine = reader.value & MASK32
        if reader.forgive():
            reader.damaged += 1
            kind = 0
            event = self.interned = self.defaults = -1
        if cleared:
            flags |= SEQ_INCREMENTAL_STATE_CLEARED
        seq = self.update(number, flags, dropped, first)
        if event >= 0:
            self.track_event(event, event_end)
        if kind in (TRACE_PACKET_COMPRESSED_PACKETS, TRACE_PACKET_ZSTD_COMPRESSED_PACKETS):
            if depth > 0:
                self.nested += 1
            else:
                self.inner(kind, begin, stop)
        elif kind != 0:
            if flags & SEQ_NEEDS_INCREMENTAL_STATE and (seq is None or not seq.valid):
                self.invalid_state += 1
            else:
                self.payload(kind, begin, stop, number)
        if reader.forgive():
            reader.damaged += 1
        reader.pos = end
        reader.end = outer

    def update(
        self, number: cython.ulonglong, flags: cython.ulonglong, dropped: cython.ulonglong, first: cython.bint
    ) -> Sequence:
        """Bring the state of a packet's sequence up to date, and return it; None where the packet changes none.

        What a sequence interns while it is invalid is ignored. A clear takes precedence over a loss in the same packet
        and empties tables and defaults. A packet is read in the order state, defaults, interned data, content. The
        first packet of a sequence is marked like one after a loss, and is none: what came before was never in the
        trace. Nor is a packet that is marked as the first (R222, state of sequences; R271, losses).
        """
        reader: PacketReader = self.reader
        seq: Sequence
        begins: cython.bint = number != 0 and self.begins(number)
        if number == 0 or not (flags != 0 or dropped != 0 or first or self.interned >= 0 or self.defaults >= 0):
            return None
        seq = self.sequence(number)
        if seq is None:
            return None
        if first:
            seq.began = True
        if flags & SEQ_INCREMENTAL_STATE_CLEARED:
            if seq.pending_count > 0:
                self.heaps.settle(seq)
            seq.clear()
        # What came before the first packet of a sequence was never in the trace (R271, losses).
        if dropped != 0 and not first and not begins:
            self.losses += 1
            seq.lose()
        if dropped != 0 and not flags & SEQ_INCREMENTAL_STATE_CLEARED:
            seq.valid = False
            seq.has_time = False
        if self.defaults >= 0:
            reader.trace.sessions.defaults(seq, reader.source[self.defaults : self.defaults_end])
        if self.interned >= 0 and seq.valid:
            seq.interned.read(self.interned, self.interned_end)
        return seq

    def track_event(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Count the callstack of a TrackEvent, in it or by id; such callstacks are not read."""
        reader: PacketReader = self.reader
        reader.pos = begin
        reader.end = end
        while reader.field():
            if reader.tag == TRACK_EVENT_CALLSTACK or reader.tag == TRACK_EVENT_CALLSTACK_IID:
                self.track_stacks += 1
                break

    def inner(self, tag: cython.ulonglong, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read the packets that were compressed into one."""
        reader: PacketReader = self.reader
        data = reader.source
        outer: cython.Py_ssize_t = reader.end
        wanted: cython.ulonglong = self.wanted
        inflated = self.packets.inflate(tag, reader.source[begin:end])
        if inflated is None:
            reader.damaged += 1
            return
        reader.start(inflated)
        if self.walk(1) != len(inflated):
            reader.damaged += 1
        self.broken = False
        self.wanted = wanted
        reader.start(data)
        reader.end = outer

    def payload(
        self, tag: cython.ulonglong, begin: cython.Py_ssize_t, end: cython.Py_ssize_t, number: cython.ulonglong
    ):
        """Read what a packet carries besides its state."""
        reader: PacketReader = self.reader
        seq: Sequence = self.sequence(number)
        if tag in (
            TRACE_PACKET_PERF_SAMPLE, TRACE_PACKET_STACK_SAMPLE, TRACE_PACKET_PROFILE_PACKET,
            TRACE_PACKET_STREAMING_PROFILE_PACKET,
        ):  # fmt: skip
            if seq is None:
                self.invalid_state += 1
            elif tag == TRACE_PACKET_PERF_SAMPLE:
                self.cpu.perf_sample(seq, begin, end)
            elif tag == TRACE_PACKET_STACK_SAMPLE:
                self.stack_samples.stack_sample(seq, begin, end)
            elif tag == TRACE_PACKET_PROFILE_PACKET:
                self.heaps.heap_packet(seq, begin, end)
            else:
                self.cpu.streaming(seq, begin, end)
        else:
            self.packets.rare(tag, reader.source[begin:end], seq, reader.machine)
