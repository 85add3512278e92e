"""Numbers that several modules share. Compiled modules include them as C constants."""

MISSING = -1
EMPTY = -2
"""What `InternedState.stack` returns for a callstack that is not there, or has no frames."""
MAX_FOLLOWERS = 64
"""Events beside the one that triggers a sample."""
MAX_DEPTH = 1 << 12
"""Frames of one callstack; unwinders stop at 1000."""
MAX_KEPT = 1 << 10
"""Descriptions of events of one sequence, and combinations of them, that are cached."""
MASK32 = 0xFFFFFFFF
MAX_INT64 = 0x7FFFFFFFFFFFFFFF
