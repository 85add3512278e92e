"""Numbers that the compiled scan of simpleperf reports and its callers share."""

MORE = 0
"""Status of a scan: the data ends before the next record does."""
OTHER = 1
"""A record for the caller: its message has the tag `Scan.kind` and is at `begin:end`."""
BAD = 2
"""What comes next is no record; the next one would begin at `Scan.end`."""
TOO_LARGE = 3
"""The next record would have more than `MAX_RECORD` bytes."""
ENDED = 4
"""The mark after the last record."""

SIZE_BYTES = 4
"""The size in front of each record."""
MAX_RECORD = 1 << 27
"""Bytes that no record reaches: the largest hold the symbols of one file."""

NATIVE, JAVA, ART, TRAMPOLINE = 0, 1, 2, 3
"""What a frame is for `mark_art`."""

NO_EXECUTION = 255
"""The execution type of a frame that does not have one."""
MAX_ERROR = 255
"""The highest error code; larger ones are read as this."""
