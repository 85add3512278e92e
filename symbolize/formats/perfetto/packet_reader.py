# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, no-untyped-call, untyped-decorator, valid-type"
"""What the readers of all packets share: the cursor, the tables of a trace, and its limits."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.interning import Lists, Tuples
    from symbolize.formats.perfetto.wire import SMALL_FIELDS, MessageReader

MAX_ENTRIES = 1 << 21
"""Interned entries that are alive at one time, of all sequences together."""
MAX_IDS = 1 << 24
"""Frames in all interned callstacks, and parts of all paths, that are alive at one time."""
MAX_FRAMES = 1 << 21
MAX_STACKS = 1 << 21
MAX_STACK_ITEMS = 1 << 25
"""Distinct frames and callstacks of a whole trace, and the frames in those."""
MAX_COUNTERS = 1 << 22
"""Counters of all CPUs of all sequences."""


@cython.cclass
class PacketReader(MessageReader):
    """The cursor in the packets, and the header of the packet that is read. `trace` is asked for what is rare."""

    def __init__(self, trace: object, mixer: cython.ulonglong) -> None:
        MessageReader.__init__(self, b"")
        self.small = memoryview(np.zeros(SMALL_FIELDS, np.uint64))
        self.trace = trace
        self.mixer = mixer
        self.machine = self.timestamp = self.clock = 0
        self.has_time = False
        self.frames = Tuples(5, mixer)
        self.stacks = Lists(mixer)
        self.max_frames, self.max_stacks, self.max_items = MAX_FRAMES, MAX_STACKS, MAX_STACK_ITEMS
        self.entries_left = MAX_ENTRIES
        self.ids_left = MAX_IDS
        self.counters_left = MAX_COUNTERS
        self.damaged = self.too_many = 0
