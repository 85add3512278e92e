# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""The state of one sequence of packets (trusted_packet_sequence_id)."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.interning import InternTable
    from symbolize.formats.perfetto.interned_state import InternedState
    from symbolize.formats.perfetto.packet_reader import PacketReader

NO_WORDS = cython.declare(cython.ulonglong[::1], memoryview(np.zeros(0, np.uint64)))
NO_ROWS = cython.declare(cython.int[::1], memoryview(np.zeros(0, np.int32)))


@cython.cclass
class Sequence:
    """What is known of a sequence. `valid`: what it interns can be trusted (R222, state of sequences)."""

    def __init__(self, number: cython.ulonglong, reader: PacketReader) -> None:
        self.reader = reader
        self.number = number
        self.valid = self.began = False
        self.interned = InternedState(reader, False)
        self.generation = 0
        # Of PerfSamples: the events, the defaults that named them, and the counters of each CPU
        self.session = -1
        self.followers = 0
        self.nominal = 0
        self.defaults = b""
        self.stack_defaults = self.stack_events = None
        self.clock = 0
        self.cpus = InternTable(reader.mixer)
        self.counters = NO_WORDS
        self.counted = NO_ROWS
        self.counter_words = 0
        self.losses = 1
        # Of heap dumps: samples that wait for the end of theirs, of which the first `settled` have their callstack, the
        # tables within the packets (Android 10), and whether one began, and when in the trace
        self.inline = None
        self.pending = NO_WORDS
        self.pending_count = self.settled = 0
        self.dump_began = False
        self.dump_time = 0
        self.index = -1
        # Of Chromium: its pid, one more, 0 unknown; the thread and its time
        self.pid = self.tid = 0
        self.has_tid = False
        self.time_us = 0
        self.has_time = False

    def clear(self):
        """Forget what was interned, and the defaults."""
        if self.interned.entries > 0 or len(self.interned.sessions) > 0:
            self.interned.release()
            self.interned = InternedState(self.reader, False)
        self.valid = True
        self.generation += 1
        self.session = -1
        self.stack_defaults = self.stack_events = None
        self.clock = 0
        self.has_time = False

    def lose(self):
        """Packets were lost: what counters and times were is not known any more."""
        self.losses = (self.losses + 1) & 0x3FFFFFFF
        self.began = False
        self.has_time = False

    def reset_counters(self) -> None:
        """Forget the counters because the events changed."""
        self.reader.counters_left += self.counter_words
        self.counter_words = 0
        self.cpus = InternTable(self.reader.mixer)
        self.counters = NO_WORDS
        self.counted = NO_ROWS
