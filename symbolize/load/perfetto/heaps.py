# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""Heap dumps (ProfilePacket), whose samples wait until all callstacks are there.

The constants are field tags as they stand on the wire: field number << 3 | wire type.
"""

from typing import Any

import cython
import numpy as np

from symbolize.core.arrays import extended

if not cython.compiled:
    from symbolize.load.perfetto.interned_state import Names
    from symbolize.load.perfetto.packet_reader import Common
    from symbolize.load.perfetto.sequences import Sequence

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
INT64_MAX = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)

MAX_PENDING = 1 << 20
"""Samples that wait for the end of their heap dump, of all sequences together."""

SETTLED = cython.declare(cython.ulonglong, 1 << 63)
LOWEST = cython.declare(cython.int, 2)
"""What makes a number that is not negative of what `Names.stack` gives."""

PENDING_WORDS = cython.declare(cython.Py_ssize_t, 6)
MAX_SPARE = cython.declare(cython.Py_ssize_t, 1 << 18)
"""Words of an array that is kept for the next dump."""

LAST_FIELD = cython.declare(cython.ulonglong, 32)
"""Fields of a ProcessHeapSamples have numbers below this one."""

SAMPLE_FIELDS = cython.declare(cython.Py_ssize_t, 10)
"""Fields of a HeapSample have numbers below this one."""
HAS_TOP = cython.declare(cython.Py_ssize_t, 0)
"""Number that no field has, for whether self_max is there."""

NO_WORDS = cython.declare(cython.ulonglong[::1], memoryview(np.zeros(0, np.uint64)))


@cython.cclass
class HeapReader:
    """Reads packets and hands their samples to the trace."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.open = {}
        self.waiting = 0
        self.max_pending = MAX_PENDING
        self.spare = NO_WORDS
        self.fields = memoryview(np.zeros(SAMPLE_FIELDS, np.uint64))
        self.out_of_range = self.index_gaps = self.early_heaps = 0

    def heap_packet(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read a ProfilePacket; its samples wait until one comes that is not continued (rule R223)."""
        common: Common = self.common
        tag: cython.ulonglong
        index: cython.ulonglong = 0
        outer: cython.Py_ssize_t
        continued: cython.bint = False
        damaged: cython.bint = False
        if not seq.dump_began:
            seq.dump_began = True
            seq.dump_time = common.timestamp
        common.pos = begin
        common.end = end
        while common.field():
            tag = common.tag
            if tag == 0x30:
                continued = common.value != 0
            elif tag == 0x38:
                index = common.value
            elif tag & 7 == 2:
                outer = common.enter()
                if tag == 0x2A:
                    self.heap_samples(seq, common.pos, common.end)
                elif tag == 0x0A or tag == 0x12 or tag == 0x1A or tag == 0x22:
                    self.intern(seq, tag)
                common.leave(outer)
                damaged |= common.forgive()
        damaged |= common.forgive()
        if index != cython.cast(cython.ulonglong, seq.index + 1):
            self.index_gaps += 1
        seq.index = cython.cast(cython.longlong, index & INT64_MAX)
        if not continued:
            self.finish(seq)
        common.bad = damaged

    def intern(self, seq: Sequence, tag: cython.ulonglong):
        """Enter what a packet has in tables of its own, as those of Android 10 do."""
        inline: Names = seq.inline
        if inline is None:
            inline = seq.inline = Names(self.common, True)
        if tag == 0x0A:
            inline.read_string(inline.functions)
        elif tag == 0x12:
            inline.read_frame()
        elif tag == 0x1A:
            inline.read_stack()
        else:
            inline.read_mapping()

    def heap_samples(self, seq: Sequence, begin: cython.Py_ssize_t, end: cython.Py_ssize_t):
        """Read a ProcessHeapSamples: what it says of itself first, wherever it stands, then its samples."""
        common: Common = self.common
        outer: cython.Py_ssize_t
        dump: cython.ulonglong
        counts_max: cython.bint = False
        damaged: cython.bint = False
        header: dict[int, Any] = {}
        while common.field():
            if common.tag == 0x12 or common.tag >> 3 >= LAST_FIELD:
                continue
            if common.tag & 7 == 0:
                header[common.tag >> 3] = common.value
            elif common.tag & 7 == 2:
                header[common.tag >> 3] = common.content()
        if common.bad:
            return
        counts_max = header.get(13, 0) != 0
        dump = common.trace.dump(seq, common.machine, header)
        common.pos = begin
        while common.pos < common.end:
            if self.usual_sample():
                self.wait(seq, dump, counts_max)
            elif not common.field():
                break
            elif common.tag == 0x12:
                outer = common.enter()
                self.heap_sample()
                common.leave(outer)
                if common.forgive():
                    damaged = True
                else:
                    self.wait(seq, dump, counts_max)
        common.bad |= damaged

    def usual_sample(self) -> cython.bint:
        """Read a HeapSample of the form that all have: size and tags in one byte each, numbers only. False where the
        next field is something else, which is then to be read field by field."""
        common: Common = self.common
        pos: cython.Py_ssize_t = common.pos
        end: cython.Py_ssize_t
        i: cython.Py_ssize_t
        tag: cython.ulonglong
        byte: cython.ulonglong
        value: cython.ulonglong
        shift: cython.int
        if common.end - pos < 2 or common.view[pos] != 0x12 or common.view[pos + 1] > 0x7F:
            return False
        end = pos + 2 + common.view[pos + 1]
        if end > common.end:
            return False
        for i in range(SAMPLE_FIELDS):
            self.fields[i] = 0
        pos += 2
        while pos < end:
            tag = common.view[pos]
            pos += 1
            if tag < 8 or tag & 7 != 0 or tag >= 8 * SAMPLE_FIELDS:
                return False
            value = 0
            shift = 0
            while True:
                if pos >= end or shift > 63:
                    return False
                byte = common.view[pos]
                pos += 1
                value |= ((byte & 0x7F) << shift) & MASK64
                if byte < 0x80:
                    break
                shift += 7
            self.fields[cython.cast(cython.Py_ssize_t, tag >> 3)] = value
            if tag == 0x40:
                self.fields[HAS_TOP] = 1
        common.pos = end
        return True

    def heap_sample(self):
        """Read a HeapSample field by field."""
        common: Common = self.common
        i: cython.Py_ssize_t
        for i in range(SAMPLE_FIELDS):
            self.fields[i] = 0
        while common.field():
            if common.tag & 7 == 0 and common.tag < 8 * SAMPLE_FIELDS:
                self.fields[cython.cast(cython.Py_ssize_t, common.tag >> 3)] = common.value
                if common.tag == 0x40:
                    self.fields[HAS_TOP] = 1

    def wait(self, seq: Sequence, dump: cython.ulonglong, counts_max: cython.bint):
        """Keep the sample that was read: callstack, bytes allocated and freed, and how often."""
        size: cython.ulonglong = self.fields[2]
        freed: cython.ulonglong = self.fields[3]
        count: cython.ulonglong = self.fields[5]
        frees: cython.ulonglong = self.fields[6]
        at: cython.Py_ssize_t
        if self.fields[HAS_TOP] != 0:
            size = self.fields[8]
            count = self.fields[9] if counts_max else 0
            freed = frees = 0
        if size > INT64_MAX or freed > INT64_MAX or count > INT64_MAX or frees > INT64_MAX:
            self.out_of_range += 1
            return
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
        seq.pending[at + 1] = self.fields[1]
        seq.pending[at + 2] = count
        seq.pending[at + 3] = size
        seq.pending[at + 4] = frees
        seq.pending[at + 5] = freed
        seq.pending_count += 1
        self.waiting += 1

    def stack(self, seq: Sequence, iid: cython.ulonglong) -> cython.int:
        """The callstack of an id, as `Names.stack` gives it: of the tables in the packets if it is there, else of those
        of the sequence."""
        inline: Names = seq.inline
        names: Names = seq.names
        found: cython.int = -1
        if inline is not None and inline.stack_count > 0:
            found = inline.stack(iid)
        return found if found != -1 else names.stack(iid)

    def settle(self, seq: Sequence):
        """Look up the callstacks of the samples that wait, because the state is about to be cleared (rule R222).

        What comes after may say the same ids of others, so they get ids that no recorder has.
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
        """Look up the callstacks of the samples that waited, and hand them to the trace."""
        count: cython.Py_ssize_t = seq.pending_count
        i: cython.Py_ssize_t
        word: cython.ulonglong
        inline: Names = seq.inline
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
            self.common.trace.finish(seq, waiting, found)
            if seq.pending.shape[0] <= MAX_SPARE:
                self.spare = seq.pending
            seq.pending = NO_WORDS
            seq.pending_count = 0
            self.waiting -= count
            del self.open[seq.number]
            if seq.settled > 0:
                # The next dump says all callstacks anew, and those of before the clear by other ids.
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
