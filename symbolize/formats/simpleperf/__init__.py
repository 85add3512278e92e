"""Reports of simpleperf, as `simpleperf report-sample --protobuf` writes them."""

from typing import Final

MAGIC: Final = b"SIMPLEPERF"


def matches(head: bytes) -> bool:
    """Whether what begins with `head` is a report."""
    return head.startswith(MAGIC)
