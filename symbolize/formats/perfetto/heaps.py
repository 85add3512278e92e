# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""Heap dumps (ProfilePacket), whose samples wait until all callstacks are there; the running totals of a heap's
callstacks, and how much each dump adds to them."""

from typing import Any

import cython
import numpy as np

from symbolize.core.arrays import Int32, extended

if not cython.compiled:
    from symbolize.core.interning import InternTable
    from symbolize.core.protobuf import BYTES, NUMBER, VARINT, WIRE_TYPE
    from symbolize.formats.perfetto.constants import MASK32, MAX_INT64
    from symbolize.formats.perfetto.packet_reader import PacketReader
    from symbolize.formats.perfetto.sequences import InternedState, Sequence
    from symbolize.proto.perfetto_trace_tags import *

MAX_PENDING = 1 << 20
"""Samples that wait for the end of their heap dump, of all sequences together."""

SETTLED = cython.declare(cython.ulonglong, 1 << 63)
LOWEST = cython.declare(cython.int, 2)
"""What makes a number that is not negative of what `InternedState.stack` gives."""

LAST_TAG = cython.declare(cython.ulonglong, 1 << 8)
"""Tags of the fields of ProcessHeapSamples are below this one."""

PENDING_WORDS = cython.declare(cython.Py_ssize_t, 6)
MAX_SPARE = cython.declare(cython.Py_ssize_t, 1 << 18)
"""Words of an array that is retained for the next dump."""

NO_WORDS = cython.declare(cython.ulonglong[::1], memoryview(np.zeros(0, np.uint64)))


@cython.cclass
class Totals:
    """The running totals of callstack ids: four values each."""

    def __init__(self, mixer: cython.ulonglong) -> None:
        self.mixer = mixer
        self.ids = InternTable(mixer)
        self.count = self.base = 0
        self.last = memoryview(np.zeros(0, np.int64))
        self.stacks = memoryview(np.zeros(0, np.int32))

    def restart(self) -> None:
        """Take ids for those of other callstacks from now on; rows from `base` on are theirs."""
        self.ids = InternTable(self.mixer)
        self.base = self.count

    def add(
        self,
        waiting: cython.const[cython.ulonglong][::1],
        found: cython.const[cython.int][::1],
        rows: cython.int[::1],
        added: cython.longlong[:, ::1],
    ) -> int:
        """Enter new totals; how many rows changed, which are written to `rows`, and by how much to `added`.

        `waiting` has six words for each id: a number that is not used, the id, its values. `found` has the stack of
        each id; what has none (below 0) is left out. An id that is now of another stack counts from 0 in a row of its
        own (R269, ids used again).

        Recorders of Android 10 repeat all callstacks with each dump, and may give an id that was free again to another
        one. The stack before keeps its last value.
        """
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        column: cython.Py_ssize_t
        row: cython.int
        known: cython.int
        change: cython.longlong
        changes: cython.bint
        changed: cython.Py_ssize_t = 0
        for i in range(found.shape[0]):
            if found[i] < 0:
                continue
            at = 6 * i + 1
            row = known = self.ids.find(waiting[at])
            if known < 0 or self.stacks[known] != found[i]:
                row = self.count
                if known < 0:
                    self.ids.put(waiting[at], row)
                else:
                    self.ids.move(waiting[at], row)
                if row == self.stacks.shape[0]:
                    self.stacks = extended(self.stacks, row + 1)
                    self.last = extended(self.last, 4 * self.stacks.shape[0])
                self.stacks[row] = found[i]
                self.count += 1
            changes = False
            for column in range(4):
                # Values have 63 bits, so that nothing is lost.
                change = cython.cast(cython.longlong, waiting[at + 1 + column]) - self.last[4 * row + column]
                added[column, changed] = change
                changes |= change != 0
                self.last[4 * row + column] += change
            if changes:
                rows[changed] = row
                changed += 1
        return changed

    def stack_rows(self) -> Int32:
        """The stack of each row."""
        return np.asarray(self.stacks)[: self.count]


@cython.cclass
class HeapReader:
    """Reads packets and hands their samples to the trace."""

    def __init__(self, reader: PacketReader) -> None:
        self.reader = reader
        self.open = {}
        self.waiting = 0
        self.max_pending = MAX_PENDING
        self.spare = NO_WORDS
        self.out_of_range = self.index_gaps = self.early_heaps = 0

    def heap_packet(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read a ProfilePacket; its samples wait until one comes that is not continued (R223, late callstacks)."""
        reader: PacketReader = self.reader
        tag: cython.ulonglong
        index: cython.ulonglong = 0
        outer: cython.Py_ssize_t
        continued: cython.bint = False
        damaged: cython.bint = False
        if not seq.dump_began:
            seq.dump_began = True
            seq.dump_time = reader.timestamp
        reader.pos = begin
        reader.end = end
        while reader.field():
            tag = reader.tag
            if tag == PROFILE_PACKET_CONTINUED:
                continued = reader.value != 0
            elif tag == PROFILE_PACKET_INDEX:
                index = reader.value
            elif tag & WIRE_TYPE == BYTES:
                outer = reader.reenter()
                if tag == PROFILE_PACKET_PROCESS_DUMPS:
                    self.heap_samples(seq, reader.pos, reader.end)
                elif tag in (
                    PROFILE_PACKET_STRINGS,
                    PROFILE_PACKET_FRAMES,
                    PROFILE_PACKET_CALLSTACKS,
                    PROFILE_PACKET_MAPPINGS,
                ):
                    self.intern(seq, tag)
                reader.go_on(outer)
                damaged |= reader.forgive()
        damaged |= reader.forgive()
        if index != cython.cast(cython.ulonglong, seq.index + 1):
            self.index_gaps += 1
        seq.index = cython.cast(cython.longlong, index & MAX_INT64)
        if not continued:
            self.finish(seq)
        reader.bad = damaged

    def intern(self, seq: Sequence, tag: cython.ulonglong):
        """Enter a string, frame, callstack or mapping that is in the packet itself, as those of Android 10 are."""
        inline: InternedState = seq.inline
        if inline is None:
            inline = seq.inline = InternedState(self.reader, True)
        if tag == PROFILE_PACKET_STRINGS:
            inline.read_string(inline.functions)
        elif tag == PROFILE_PACKET_FRAMES:
            inline.read_frame()
        elif tag == PROFILE_PACKET_CALLSTACKS:
            inline.read_stack()
        else:
            inline.read_mapping()

    def heap_samples(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read a ProcessHeapSamples: its own fields first, in whatever order they come, then its samples.

        A length past the end of its message invalidates what follows in that message (R238, damaged messages).
        """
        reader: PacketReader = self.reader
        dump: cython.ulonglong
        counts_max: cython.bint = False
        damaged: cython.bint = False
        header: dict[int, Any] = {}
        while reader.field():
            if reader.tag != PROCESS_HEAP_SAMPLES_SAMPLES and reader.tag < LAST_TAG:
                header[reader.tag] = reader.value if reader.tag & WIRE_TYPE == VARINT else reader.content()
        if reader.bad:
            return
        counts_max = header.get(PROCESS_HEAP_SAMPLES_ORIG_SAMPLING_INTERVAL_BYTES, 0) != 0
        dump = reader.trace.heaps.dump(seq, reader.machine, header)
        reader.pos = begin
        while reader.field():
            if reader.tag == PROCESS_HEAP_SAMPLES_SAMPLES:
                self.heap_sample(seq, dump, counts_max)
                if reader.bad:
                    damaged = True
                    reader.bad = False
        reader.bad |= damaged

    def heap_sample(self, seq: Sequence, dump: cython.ulonglong, counts_max: cython.bint) -> cython.int:
        """Read a HeapSample and keep it: callstack, bytes allocated and freed, and how often.

        Bytes are never scaled. With self_max, the size is that, nothing is freed, and the count is self_max_count if
        the recorder gives its original interval (R224, totals of heap dumps).
        """
        reader: PacketReader = self.reader
        size: cython.ulonglong
        freed: cython.ulonglong
        count: cython.ulonglong
        frees: cython.ulonglong
        at: cython.Py_ssize_t
        reader.read_small(reader.begin, reader.pos)
        if reader.bad:
            return 0
        if reader.small[0] >> (HEAP_SAMPLE_SELF_MAX >> NUMBER) & 1:
            size = reader.small[HEAP_SAMPLE_SELF_MAX >> NUMBER]
            count = reader.small[HEAP_SAMPLE_SELF_MAX_COUNT >> NUMBER] if counts_max else 0
            freed = frees = 0
        else:
            size = reader.small[HEAP_SAMPLE_SELF_ALLOCATED >> NUMBER]
            count = reader.small[HEAP_SAMPLE_ALLOC_COUNT >> NUMBER]
            freed = reader.small[HEAP_SAMPLE_SELF_FREED >> NUMBER]
            frees = reader.small[HEAP_SAMPLE_FREE_COUNT >> NUMBER]
        if size > MAX_INT64 or freed > MAX_INT64 or count > MAX_INT64 or frees > MAX_INT64:
            self.out_of_range += 1
            return 0
        if self.waiting >= self.max_pending:
            self.finish_all()
        if seq.pending_count == 0:
            self.open[seq.number] = seq
            seq.pending = self.spare
            self.spare = NO_WORDS
        at = seq.pending_count * PENDING_WORDS
        if at + PENDING_WORDS > seq.pending.shape[0]:
            seq.pending = extended(seq.pending, at + PENDING_WORDS)
        seq.pending[at] = dump
        seq.pending[at + 1] = reader.small[HEAP_SAMPLE_CALLSTACK_ID >> NUMBER]
        seq.pending[at + 2] = count
        seq.pending[at + 3] = size
        seq.pending[at + 4] = frees
        seq.pending[at + 5] = freed
        seq.pending_count += 1
        self.waiting += 1
        return 0

    def stack(self, seq: Sequence, iid: cython.ulonglong) -> cython.int:
        """The callstack of an id, as `InternedState.stack` returns it: from tables in packets if it is there, else
        from those of the sequence."""
        inline: InternedState = seq.inline
        interned: InternedState = seq.interned
        found: cython.int = -1
        if inline is not None and inline.stack_count > 0:
            found = inline.stack(iid)
        return found if found != -1 else interned.stack(iid)

    def settle(self, seq: Sequence):
        """Look up the callstacks of the samples that wait, because the state is about to be cleared (R222, state of
        sequences). Later packets may use their ids for others, so they get ids that no recorder has.
        """
        at: cython.Py_ssize_t
        stack: cython.int
        while seq.settled < seq.pending_count:
            at = seq.settled * PENDING_WORDS + 1
            stack = self.stack(seq, seq.pending[at])
            seq.settled += 1
            seq.pending[at] = SETTLED | cython.cast(cython.ulonglong, seq.settled) << 32
            seq.pending[at] += cython.cast(cython.ulonglong, stack + LOWEST)

    def finish(self, seq: Sequence):
        """Look up the callstacks of the samples that waited, and hand them to the trace.

        The tables within the packets (Android 10) come before those of the sequence (R223, late callstacks).
        """
        count: cython.Py_ssize_t = seq.pending_count
        i: cython.Py_ssize_t
        word: cython.ulonglong
        inline: InternedState = seq.inline
        if count > 0:
            found = np.empty(count, np.int32)
            rows: cython.int[::1] = memoryview(found)
            for i in range(count):
                word = seq.pending[i * PENDING_WORDS + 1]
                if i < seq.settled:
                    rows[i] = cython.cast(cython.int, word & MASK32) - LOWEST
                else:
                    rows[i] = self.stack(seq, word)
            waiting = np.asarray(seq.pending)[: count * PENDING_WORDS].reshape(-1, PENDING_WORDS)
            self.reader.trace.heaps.finish(seq, waiting, found)
            if seq.pending.shape[0] <= MAX_SPARE:
                self.spare = seq.pending
            seq.pending = NO_WORDS
            seq.pending_count = 0
            self.waiting -= count
            del self.open[seq.number]
            if seq.settled > 0:
                # The next dump has all callstacks again, and those of before the clear by other ids.
                seq.settled = 0
                seq.generation += 1
        if inline is not None:
            inline.release()
            seq.inline = None
        seq.dump_began = False

    def finish_all(self) -> None:
        """End the heap dumps whose last packet did not come."""
        for seq in list(self.open.values()):
            self.end_dump(seq)

    def end_dump(self, seq: Sequence) -> None:
        """End the heap dump of one sequence, if one is open."""
        if seq.pending_count > 0:
            self.early_heaps += 1
            self.finish(seq)
