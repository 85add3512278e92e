# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""The packets of a trace: the state of the sequence that each is of, and who reads what it carries.

The constants are field tags as they stand on the wire: field number << 3 | wire type. Repeated integers are read
packed and unpacked. Damage costs the message that it is in.
"""

import cython

if not cython.compiled:
    from symbolize.core.interning import Table
    from symbolize.load.perfetto.cpu import CpuReader
    from symbolize.load.perfetto.heaps import HeapReader
    from symbolize.load.perfetto.packet_reader import Common
    from symbolize.load.perfetto.samples import Samples
    from symbolize.load.perfetto.sequences import Sequence
    from symbolize.load.perfetto.stack_samples import StackReader

MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
INT64_MAX = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)

CLEARED = cython.declare(cython.ulonglong, 1)
NEEDS_STATE = cython.declare(cython.ulonglong, 2)

MAX_SEQUENCES = 1 << 13
"""Sequences that a trace has at most: one a thread that writes packets with state."""
MAX_NUMBERS = cython.declare(cython.Py_ssize_t, 1 << 16)
"""Sequences whose first packet is known, with state or without."""


@cython.cclass
class Scanner:
    """Reads packets. `trace` is asked for what is rare: strings, inflating, headers, sessions, ends of heap dumps."""

    def __init__(self, trace: object, mixer: cython.ulonglong) -> None:
        self.common = Common(trace, mixer)
        self.samples = Samples(self.common)
        self.cpu = CpuReader(self.common, self.samples)
        self.stack_samples = StackReader(self.common, self.samples)
        self.heaps = HeapReader(self.common)
        self.sequences = {}
        self.max_sequences = MAX_SEQUENCES
        self.current = None
        self.numbers = Table(mixer)
        self.last_number = 0
        self.broken = False
        self.wanted = 0
        self.nested = self.invalid_state = self.losses = self.track_stacks = self.heap_graphs = 0

    def scan(self, data: bytes) -> int:
        """Read the packets of `data`; up to where, which is short of the end where the last packet goes on behind it.

        `wanted` then tells how many bytes from there the packet has, 0 if not even its length is there. `broken`
        becomes true where what follows is no field of a trace.
        """
        self.common.start(data)
        return self.walk(0)

    def forget(self) -> None:
        """Wait no longer for the packet that `wanted` tells of."""
        self.wanted = 0

    def walk(self, depth: cython.int) -> cython.Py_ssize_t:
        """Read the packets under the cursor."""
        common: Common = self.common
        start: cython.Py_ssize_t
        size: cython.ulonglong
        tag: cython.ulonglong
        self.wanted = 0
        while common.pos < common.end:
            start = common.pos
            tag = common.varint()
            if not common.bad and tag & 7 == 2 and tag >> 3 != 0 and tag >> 32 == 0:
                size = common.varint()
                if not common.bad and size > cython.cast(cython.ulonglong, common.end - common.pos):
                    # No file is as large, and the sum must not wrap.
                    self.wanted = common.pos - start + min(size, INT64_MAX >> 1)
                    common.pos = start
                    break
                if not common.bad and tag == 0x0A:
                    self.packet(common.pos + cython.cast(cython.Py_ssize_t, size), depth)
                elif not common.bad:
                    common.pos += cython.cast(cython.Py_ssize_t, size)
            elif not common.bad:
                common.pos = start
                common.field()
            if common.forgive():
                common.pos = start
                self.broken = common.end - start >= 20 or self.is_broken()
                break
        return common.pos

    def is_broken(self) -> cython.bint:
        """Whether the bytes before the end cannot be the beginning of a field."""
        common: Common = self.common
        tag: cython.ulonglong = 0
        shift: cython.int = 0
        pos: cython.Py_ssize_t = common.pos
        while pos < common.end and shift < 63:
            tag |= (cython.cast(cython.ulonglong, common.view[pos]) & 0x7F) << shift
            shift += 7
            pos += 1
            if common.view[pos - 1] < 0x80:
                return tag < 8 or tag >> 32 != 0 or tag & 7 in (3, 4, 6, 7)
        return shift > 35

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
                self.common.too_many += 1
                return None
            found = self.sequences[number] = Sequence(number, self.common)
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
        common: Common = self.common
        outer: cython.Py_ssize_t = common.end
        tag: cython.ulonglong
        number: cython.ulonglong = 0
        flags: cython.ulonglong = 0
        dropped: cython.ulonglong = 0
        first: cython.bint = False
        defaults: cython.Py_ssize_t = -1
        defaults_end: cython.Py_ssize_t = 0
        interned: cython.Py_ssize_t = -1
        interned_end: cython.Py_ssize_t = 0
        kind: cython.ulonglong = 0
        begin: cython.Py_ssize_t = 0
        stop: cython.Py_ssize_t = 0
        event: cython.Py_ssize_t = -1
        event_end: cython.Py_ssize_t = 0
        seq: Sequence = None
        common.end = end
        common.machine = common.timestamp = common.clock = 0
        common.has_time = False
        while common.field():
            tag = common.tag
            if tag & 7 == 2:
                if tag == 0x62:
                    interned = common.begin
                    interned_end = common.pos
                elif tag == 0x1DA:
                    defaults = common.begin
                    defaults_end = common.pos
                elif (
                    tag == 0x212 or tag == 0x12A or tag == 0x192 or tag == 0x42A or tag == 0x1B2 or tag == 0x43A
                    or tag == 0x12 or tag == 0x32 or tag == 0x15A or tag == 0x162 or tag == 0x17A
                    or tag == 0x1E2 or tag == 0x1EA or tag == 0x202
                ):  # fmt: skip
                    kind = tag
                    begin = common.begin
                    stop = common.pos
                elif tag == 0x5A:
                    event = common.begin
                    event_end = common.pos
                elif tag == 0x1C2:
                    self.heap_graphs += 1
            elif tag == 0x50:
                number = common.value & MASK32
            elif tag == 0x40:
                common.timestamp = common.value
                common.has_time = True
            elif tag == 0x68:
                flags = common.value
            elif tag == 0x148:
                if common.value != 0:
                    flags |= CLEARED
            elif tag == 0x150:
                dropped = common.value
            elif tag == 0x2B8:
                first = common.value != 0
            elif tag == 0x1D0:
                common.clock = common.value
            elif tag == 0x310:
                common.machine = common.value & MASK32
        if common.forgive():
            common.damaged += 1
            kind = 0
            interned = defaults = event = -1
        begins: cython.bint = number != 0 and self.begins(number)
        if number != 0 and (flags != 0 or dropped != 0 or first or interned >= 0 or defaults >= 0):
            seq = self.sequence(number)
            if seq is not None:
                if first:
                    seq.began = True
                if flags & CLEARED:
                    if seq.pending_count > 0:
                        self.heaps.settle(seq)
                    seq.clear()
                # What came before the first packet of a sequence was never in the trace (R271, losses).
                if dropped != 0 and not first and not begins:
                    self.losses += 1
                    seq.lose()
                if dropped != 0 and not flags & CLEARED:
                    seq.valid = False
                    seq.has_time = False
                if defaults >= 0:
                    common.trace.defaults(seq, common.text(defaults, defaults_end))
                if interned >= 0 and seq.valid:
                    seq.names.read(interned, interned_end)
        if event >= 0:
            self.track_event(event, event_end)
        if kind == 0x192 or kind == 0x42A:
            if depth > 0:
                self.nested += 1
            else:
                self.inner(kind, begin, stop)
        elif kind != 0:
            if flags & NEEDS_STATE and (seq is None or not seq.valid):
                self.invalid_state += 1
            else:
                self.payload(kind, begin, stop, number)
        if common.forgive():
            common.damaged += 1
        common.pos = end
        common.end = outer

    def track_event(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Count the callstack of a TrackEvent, in it or by id; such callstacks are not read."""
        common: Common = self.common
        common.pos = begin
        common.end = end
        while common.field():
            if common.tag == 0x1BA or common.tag == 0x1C0:
                self.track_stacks += 1
                break

    def inner(self, tag: cython.ulonglong, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read the packets that were compressed into one."""
        common: Common = self.common
        data = common.data
        outer: cython.Py_ssize_t = common.end
        wanted: cython.ulonglong = self.wanted
        inflated = common.trace.inflate(tag >> 3, common.text(begin, end))
        if inflated is None:
            common.damaged += 1
            return
        common.start(inflated)
        if self.walk(1) != len(inflated):
            common.damaged += 1
        self.broken = False
        self.wanted = wanted
        common.start(data)
        common.end = outer

    def payload(
        self, tag: cython.ulonglong, begin: cython.Py_ssize_t, end: cython.Py_ssize_t, number: cython.ulonglong
    ):
        """Read what a packet carries besides its state."""
        common: Common = self.common
        seq: Sequence = self.sequence(number)
        if tag == 0x212 or tag == 0x43A or tag == 0x12A or tag == 0x1B2:
            if seq is None:
                self.invalid_state += 1
            elif tag == 0x212:
                self.cpu.perf_sample(seq, begin, end)
            elif tag == 0x43A:
                self.stack_samples.stack_sample(seq, begin, end)
            elif tag == 0x12A:
                self.heaps.heap_packet(seq, begin, end)
            else:
                self.cpu.streaming(seq, begin, end)
        else:
            time = common.timestamp if common.has_time else None
            common.trace.rare(tag >> 3, common.text(begin, end), seq, common.machine, time)
